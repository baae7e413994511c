//! Topics with a string type.

use std::ffi::c_char;
use std::ptr;

use cyclors::{
    dds_dynamic_member_descriptor_t, dds_dynamic_type_descriptor_t, dds_dynamic_type_spec_t,
    dds_dynamic_type_t,
};

use super::domain::Domain;
use super::entity::{Entity, c_name, check};
use super::{DeclareError, Extensibility, StringType};

/// Creates a topic whose type is a structure with one string. It has full type information, so that
/// other participants can compare types and tools can show them.
pub(super) fn create(domain: &Domain, name: &str, string_type: &StringType) -> Result<Entity, DeclareError> {
    let topic_name = c_name(name)?;
    let info = TypeInfo::new(domain, string_type)?;
    let mut descriptor = ptr::null_mut();
    // SAFETY: `info.info` comes from `dds_dynamic_type_register`, `descriptor` is a place for a
    // pointer. The type is known locally, so nothing is waited for.
    let code = unsafe {
        cyclors::dds_create_topic_descriptor(
            cyclors::dds_find_scope_DDS_FIND_SCOPE_LOCAL_DOMAIN,
            domain.participant(),
            info.info,
            0,
            &mut descriptor,
        )
    };
    check(code, "DDS type")?;
    // SAFETY: `descriptor` was just filled in; the name is terminated; both outlive the call, which
    // copies them.
    let topic = unsafe {
        cyclors::dds_create_topic(
            domain.participant(),
            descriptor,
            topic_name.as_ptr(),
            ptr::null(),
            ptr::null(),
        )
    };
    // SAFETY: made by `dds_create_topic_descriptor`, freed once.
    unsafe { cyclors::dds_delete_topic_descriptor(descriptor) };
    match Entity::own(topic, "DDS topic") {
        Err(DeclareError::Network { .. }) if topic == cyclors::DDS_RETCODE_BAD_PARAMETER => {
            Err(DeclareError::Name(name.to_owned()))
        }
        result => result,
    }
}

/// Type information of a registered type. Owns the type, since the library drops unreferenced ones.
struct TypeInfo {
    info: *mut cyclors::dds_typeinfo_t,
    _type: DynamicType,
}

impl TypeInfo {
    fn new(domain: &Domain, string_type: &StringType) -> Result<TypeInfo, DeclareError> {
        let name = c_name(&string_type.name)?;
        let member = c_name(&string_type.member)?;
        let kind = cyclors::dds_dynamic_type_kind_DDS_DYNAMIC_STRUCTURE;
        let made = dynamic_type(domain, kind, name.as_ptr());
        let mut structure = DynamicType(made);
        if check(structure.0.ret, "DDS type").is_err() {
            return Err(DeclareError::Name(string_type.name.clone()));
        }
        let extensibility = match string_type.extensibility {
            Extensibility::Final => cyclors::dds_dynamic_type_extensibility_DDS_DYNAMIC_TYPE_EXT_FINAL,
            Extensibility::Appendable => {
                cyclors::dds_dynamic_type_extensibility_DDS_DYNAMIC_TYPE_EXT_APPENDABLE
            }
        };
        // Must be set before members are added.
        // SAFETY: a live type, as just checked.
        let code = unsafe { cyclors::dds_dynamic_type_set_extensibility(&mut structure.0, extensibility) };
        check(code, "DDS type")?;
        let kind = cyclors::dds_dynamic_type_kind_DDS_DYNAMIC_STRING8;
        let string = dynamic_type(domain, kind, ptr::null());
        check(string.ret, "DDS type")?;
        // SAFETY: as above; the member's name is copied, and the structure takes over our reference
        // to the member's type.
        let code = unsafe {
            cyclors::dds_dynamic_type_add_member(
                &mut structure.0,
                dds_dynamic_member_descriptor_t {
                    name: member.as_ptr(),
                    // DDS_DYNAMIC_MEMBER_ID_AUTO: the next free number.
                    id: 0x0f00_0000,
                    type_: spec(cyclors::dds_dynamic_type_spec_kind_DDS_DYNAMIC_TYPE_KIND_DEFINITION, string),
                    default_value: ptr::null_mut(),
                    index: u32::MAX,
                    num_labels: 0,
                    labels: ptr::null_mut(),
                    default_label: false,
                },
            )
        };
        if check(code, "DDS type").is_err() {
            return Err(DeclareError::Name(string_type.member.clone()));
        }
        let mut info = ptr::null_mut();
        // SAFETY: as above; `info` is a place for a pointer.
        let code = unsafe { cyclors::dds_dynamic_type_register(&mut structure.0, &mut info) };
        check(code, "DDS type")?;
        Ok(TypeInfo { info, _type: structure })
    }
}

impl Drop for TypeInfo {
    fn drop(&mut self) {
        // SAFETY: made by `dds_dynamic_type_register`, freed once.
        unsafe { cyclors::dds_free_typeinfo(self.info) };
    }
}

struct DynamicType(dds_dynamic_type_t);

impl Drop for DynamicType {
    fn drop(&mut self) {
        // SAFETY: our own reference, given up once; a type that could not be made is refused.
        unsafe { cyclors::dds_dynamic_type_unref(&mut self.0) };
    }
}

fn dynamic_type(domain: &Domain, kind: u32, name: *const c_char) -> dds_dynamic_type_t {
    let none = dds_dynamic_type_t { x: [ptr::null_mut(); 2], ret: 0 };
    let unset = spec(cyclors::dds_dynamic_type_spec_kind_DDS_DYNAMIC_TYPE_KIND_UNSET, none);
    let descriptor = dds_dynamic_type_descriptor_t {
        kind,
        name,
        base_type: unset,
        discriminator_type: unset,
        num_bounds: 0,
        bounds: ptr::null(),
        element_type: unset,
        key_element_type: unset,
    };
    // SAFETY: a live handle; `name` is terminated, or null for a type that has none, and is copied;
    // nothing else is pointed to. The result contains the return code.
    unsafe { cyclors::dds_dynamic_type_create(domain.participant(), descriptor) }
}

fn spec(kind: u32, type_: dds_dynamic_type_t) -> dds_dynamic_type_spec_t {
    dds_dynamic_type_spec_t { kind, type_: cyclors::dds_dynamic_type_spec__bindgen_ty_1 { type_ } }
}
