//! Types of the library made from a schema, so that other participants can discover them.

use std::ffi::{CString, c_char};
use std::ptr;

use cyclors::{
    dds_dynamic_enum_literal_value_t, dds_dynamic_member_descriptor_t, dds_dynamic_type_descriptor_t,
    dds_dynamic_type_spec_t, dds_dynamic_type_t,
};
use rondel_decode::schema::{
    Bitmask, Definition, Enum, Extensibility, Primitive, Schema, Struct, Type, TypeId, Union,
};

use super::domain::Domain;
use super::entity::message;

/// Limit of the parts of a type, counting each use: the library needs an object for each.
const PARTS: usize = 20_000;

/// A registered type with its description.
#[derive(Debug)]
pub(super) struct RegisteredType {
    pub(super) info: *mut cyclors::dds_typeinfo_t,
    /// The library drops unreferenced types.
    _type: DynamicType,
}

impl Drop for RegisteredType {
    fn drop(&mut self) {
        // SAFETY: made by `dds_dynamic_type_register`, freed once.
        unsafe { cyclors::dds_free_typeinfo(self.info) };
    }
}

/// A type under construction; released when it is dropped, unless another type has taken it over.
struct DynamicType(dds_dynamic_type_t);

impl std::fmt::Debug for DynamicType {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("DynamicType").finish_non_exhaustive()
    }
}

impl Drop for DynamicType {
    fn drop(&mut self) {
        // SAFETY: our own reference, given up once; a type that could not be made is refused.
        unsafe { cyclors::dds_dynamic_type_unref(&mut self.0) };
    }
}

impl DynamicType {
    /// Passes the reference on to the type that contains this one.
    fn into_spec(self) -> dds_dynamic_type_spec_t {
        let made = self.0;
        std::mem::forget(self);
        definition(made)
    }
}

fn definition(type_: dds_dynamic_type_t) -> dds_dynamic_type_spec_t {
    dds_dynamic_type_spec_t {
        kind: cyclors::dds_dynamic_type_spec_kind_DDS_DYNAMIC_TYPE_KIND_DEFINITION,
        type_: cyclors::dds_dynamic_type_spec__bindgen_ty_1 { type_ },
    }
}

fn primitive(primitive: u32) -> dds_dynamic_type_spec_t {
    dds_dynamic_type_spec_t {
        kind: cyclors::dds_dynamic_type_spec_kind_DDS_DYNAMIC_TYPE_KIND_PRIMITIVE,
        type_: cyclors::dds_dynamic_type_spec__bindgen_ty_1 { primitive },
    }
}

/// Registers the type of a schema under this name.
///
/// # Errors
/// The reason why the library cannot describe it.
pub(super) fn register(domain: &Domain, name: &str, schema: &Schema) -> Result<RegisteredType, String> {
    let mut maker = Maker { domain, schema, is_ros: name.contains("::dds_::"), parts: 0 };
    let mut made = maker.structure(name, schema.root())?;
    let mut info = ptr::null_mut();
    // SAFETY: a live type, and a place for a pointer.
    let code = unsafe { cyclors::dds_dynamic_type_register(&mut made.0, &mut info) };
    check(code, "the type")?;
    Ok(RegisteredType { info, _type: made })
}

/// Whether samples of a type need the second version of the encoding: CycloneDDS writes extensible types and optional
/// members only in that version.
pub(super) fn needs_second_version(schema: &Schema) -> bool {
    fn of_structure(schema: &Schema, structure: &Struct) -> bool {
        is_extensible(structure.extensibility)
            || structure.members.iter().any(|member| member.optional || of_type(schema, &member.member_type))
    }
    fn of_type(schema: &Schema, found: &Type) -> bool {
        match found {
            Type::Array { element, .. } | Type::Sequence { element, .. } => of_type(schema, element),
            Type::Named(id) => match schema.definition(*id) {
                Definition::Struct(structure) => of_structure(schema, structure),
                Definition::Union(union) => {
                    is_extensible(union.extensibility)
                        || union.cases.iter().any(|case| of_type(schema, &case.member_type))
                }
                _ => false,
            },
            Type::Primitive(_) | Type::String { .. } => false,
        }
    }
    of_structure(schema, schema.root())
}

fn is_extensible(extensibility: Option<Extensibility>) -> bool {
    !matches!(extensibility, None | Some(Extensibility::Final))
}

fn check(code: i32, what: &str) -> Result<(), String> {
    if code >= 0 { Ok(()) } else { Err(format!("{what}: {}", message(code))) }
}

/// Makes types, a new object for every use: objects passed to the library belong to it, and it may substitute an equal
/// known type for one of them.
struct Maker<'s> {
    domain: &'s Domain,
    schema: &'s Schema,
    /// Whether names are written in the form of ROS 2 on DDS.
    is_ros: bool,
    parts: usize,
}

/// Types that a type is made of.
#[derive(Default)]
struct PartTypes {
    base: Option<dds_dynamic_type_spec_t>,
    discriminator: Option<dds_dynamic_type_spec_t>,
    element: Option<dds_dynamic_type_spec_t>,
}

impl Maker<'_> {
    fn create(
        &mut self,
        kind: u32,
        name: *const c_char,
        of: PartTypes,
        bounds: &[u32],
    ) -> Result<DynamicType, String> {
        self.parts += 1;
        if self.parts > PARTS {
            return Err(format!("it is made of more than {PARTS} types"));
        }
        let none = dds_dynamic_type_t { x: [ptr::null_mut(); 2], ret: 0 };
        let unset = dds_dynamic_type_spec_t {
            kind: cyclors::dds_dynamic_type_spec_kind_DDS_DYNAMIC_TYPE_KIND_UNSET,
            type_: cyclors::dds_dynamic_type_spec__bindgen_ty_1 { type_: none },
        };
        let descriptor = dds_dynamic_type_descriptor_t {
            kind,
            name,
            base_type: of.base.unwrap_or(unset),
            discriminator_type: of.discriminator.unwrap_or(unset),
            num_bounds: bounds.len() as u32,
            bounds: if bounds.is_empty() { ptr::null() } else { bounds.as_ptr() },
            element_type: of.element.unwrap_or(unset),
            key_element_type: unset,
        };
        // SAFETY: a live handle; name and bounds outlive the call, which copies them, and takes over the references to
        // other types. The result contains the return code.
        let made =
            DynamicType(unsafe { cyclors::dds_dynamic_type_create(self.domain.participant(), descriptor) });
        check(made.0.ret, "a type")?;
        Ok(made)
    }

    fn structure(&mut self, name: &str, structure: &Struct) -> Result<DynamicType, String> {
        let c_name = text(name)?;
        let kind = cyclors::dds_dynamic_type_kind_DDS_DYNAMIC_STRUCTURE;
        let mut made = self.create(kind, c_name.as_ptr(), PartTypes::default(), &[])?;
        extend(&mut made, structure.extensibility)?;
        for member in &structure.members {
            let spec = self.spec(&member.member_type)?;
            add(&mut made, &member.name, Some(member.id), spec, None)?;
            if member.key {
                // SAFETY: a live type that has this member.
                let code = unsafe { cyclors::dds_dynamic_member_set_key(&mut made.0, member.id, true) };
                check(code, &member.name)?;
            }
            if member.optional {
                // SAFETY: as above.
                let code = unsafe { cyclors::dds_dynamic_member_set_optional(&mut made.0, member.id, true) };
                check(code, &member.name)?;
            }
        }
        Ok(made)
    }

    fn union(&mut self, name: &str, union: &Union) -> Result<DynamicType, String> {
        let c_name = text(name)?;
        let discriminator = self.spec(&union.discriminator)?;
        let kind = cyclors::dds_dynamic_type_kind_DDS_DYNAMIC_UNION;
        let mut made = self.create(
            kind,
            c_name.as_ptr(),
            PartTypes { discriminator: Some(discriminator), ..PartTypes::default() },
            &[],
        )?;
        extend(&mut made, union.extensibility)?;
        for case in &union.cases {
            let labels: Result<Vec<i32>, _> = case.labels.iter().map(|label| i32::try_from(*label)).collect();
            let labels = labels.map_err(|_| format!("a label of `{}` is too large", case.name))?;
            let spec = self.spec(&case.member_type)?;
            // Otherwise the library numbers cases from 0; the id is unused then, but changes the hash of the type.
            let id = (union.extensibility == Some(Extensibility::Mutable)).then_some(case.id);
            add(&mut made, &case.name, id, spec, Some((labels, case.is_default)))?;
        }
        Ok(made)
    }

    fn enumeration(&mut self, name: &str, found: &Enum) -> Result<DynamicType, String> {
        let c_name = text(name)?;
        let kind = cyclors::dds_dynamic_type_kind_DDS_DYNAMIC_ENUMERATION;
        let mut made = self.create(kind, c_name.as_ptr(), PartTypes::default(), &[])?;
        // SAFETY: a live type.
        let code = unsafe { cyclors::dds_dynamic_type_set_bit_bound(&mut made.0, found.bits.into()) };
        check(code, name)?;
        for (constant, value) in &found.constants {
            let constant = text(constant)?;
            let value_kind =
                cyclors::dds_dynamic_type_enum_value_kind_DDS_DYNAMIC_ENUM_LITERAL_VALUE_EXPLICIT;
            let value = dds_dynamic_enum_literal_value_t { value_kind, value: *value };
            // SAFETY: a live type, and a terminated name, which is copied.
            let code = unsafe {
                cyclors::dds_dynamic_type_add_enum_literal(&mut made.0, constant.as_ptr(), value, false)
            };
            check(code, name)?;
        }
        Ok(made)
    }

    fn bitmask(&mut self, name: &str, found: &Bitmask) -> Result<DynamicType, String> {
        let c_name = text(name)?;
        let kind = cyclors::dds_dynamic_type_kind_DDS_DYNAMIC_BITMASK;
        let mut made = self.create(kind, c_name.as_ptr(), PartTypes::default(), &[])?;
        // SAFETY: a live type.
        let code = unsafe { cyclors::dds_dynamic_type_set_bit_bound(&mut made.0, found.bits.into()) };
        check(code, name)?;
        for (flag, position) in &found.flags {
            let flag = text(flag)?;
            // SAFETY: a live type, and a terminated name, which is copied.
            let code = unsafe {
                let position = u16::from(*position);
                cyclors::dds_dynamic_type_add_bitmask_field(&mut made.0, flag.as_ptr(), position)
            };
            check(code, name)?;
        }
        Ok(made)
    }

    fn named(&mut self, id: TypeId) -> Result<DynamicType, String> {
        let schema = self.schema;
        let name = schema.type_name(id).replace('/', "::");
        let name = match name.split("::").collect::<Vec<_>>()[..] {
            [package, kind, own] if self.is_ros => format!("{package}::{kind}::dds_::{own}_"),
            _ => name,
        };
        match schema.definition(id) {
            Definition::Struct(structure) => self.structure(&name, structure),
            Definition::Union(union) => self.union(&name, union),
            Definition::Enum(found) => self.enumeration(&name, found),
            Definition::Bitmask(found) => self.bitmask(&name, found),
            Definition::Alias(_) => Err(format!("`{name}` is an alias")),
        }
    }

    /// Returns the type of elements. When the library discovers an array of arrays, it takes it for another type unless
    /// the inner array has a name.
    fn element(&mut self, element: &Type) -> Result<dds_dynamic_type_spec_t, String> {
        let spec = self.spec(element)?;
        if !matches!(element, Type::Array { .. } | Type::Sequence { .. }) {
            return Ok(spec);
        }
        let name = text(&format!("rondel::Elements{}", self.parts))?;
        let kind = cyclors::dds_dynamic_type_kind_DDS_DYNAMIC_ALIAS;
        Ok(self
            .create(kind, name.as_ptr(), PartTypes { base: Some(spec), ..PartTypes::default() }, &[])?
            .into_spec())
    }

    fn spec(&mut self, found: &Type) -> Result<dds_dynamic_type_spec_t, String> {
        let made = match found {
            Type::Primitive(found) => return Ok(primitive(kind_of(*found))),
            Type::String { bound, wide } => {
                let kind = if *wide {
                    cyclors::dds_dynamic_type_kind_DDS_DYNAMIC_STRING16
                } else {
                    cyclors::dds_dynamic_type_kind_DDS_DYNAMIC_STRING8
                };
                self.create(kind, ptr::null(), PartTypes::default(), bound.as_slice())?
            }
            Type::Array { element, dimensions } => {
                let element = self.element(element)?;
                let kind = cyclors::dds_dynamic_type_kind_DDS_DYNAMIC_ARRAY;
                self.create(
                    kind,
                    c"array".as_ptr(),
                    PartTypes { element: Some(element), ..PartTypes::default() },
                    dimensions,
                )?
            }
            Type::Sequence { element, bound } => {
                let element = self.element(element)?;
                let kind = cyclors::dds_dynamic_type_kind_DDS_DYNAMIC_SEQUENCE;
                self.create(
                    kind,
                    c"sequence".as_ptr(),
                    PartTypes { element: Some(element), ..PartTypes::default() },
                    bound.as_slice(),
                )?
            }
            Type::Named(id) => self.named(*id)?,
        };
        Ok(made.into_spec())
    }
}

fn text(name: &str) -> Result<CString, String> {
    CString::new(name).map_err(|_| format!("`{}` is not a name", name.escape_default()))
}

/// Sets the extensibility, which must be done before members are added.
fn extend(made: &mut DynamicType, extensibility: Option<Extensibility>) -> Result<(), String> {
    let extensibility = match extensibility {
        None | Some(Extensibility::Final) => {
            cyclors::dds_dynamic_type_extensibility_DDS_DYNAMIC_TYPE_EXT_FINAL
        }
        Some(Extensibility::Appendable) => {
            cyclors::dds_dynamic_type_extensibility_DDS_DYNAMIC_TYPE_EXT_APPENDABLE
        }
        Some(Extensibility::Mutable) => cyclors::dds_dynamic_type_extensibility_DDS_DYNAMIC_TYPE_EXT_MUTABLE,
    };
    // SAFETY: a live type.
    check(unsafe { cyclors::dds_dynamic_type_set_extensibility(&mut made.0, extensibility) }, "the type")
}

/// Adds a member to a structure, or a case with its labels to a union.
fn add(
    made: &mut DynamicType,
    name: &str,
    id: Option<u32>,
    spec: dds_dynamic_type_spec_t,
    labels: Option<(Vec<i32>, bool)>,
) -> Result<(), String> {
    let c_name = text(name)?;
    let (mut labels, default_label) = labels.unwrap_or_default();
    let member = dds_dynamic_member_descriptor_t {
        name: c_name.as_ptr(),
        // DDS_DYNAMIC_MEMBER_ID_AUTO: the next free number.
        id: id.unwrap_or(0x0f00_0000),
        type_: spec,
        default_value: ptr::null_mut(),
        index: u32::MAX,
        num_labels: labels.len() as u32,
        labels: labels.as_mut_ptr(),
        default_label,
    };
    // SAFETY: a live type; name and labels are copied, and the reference to the member's type is taken over.
    check(unsafe { cyclors::dds_dynamic_type_add_member(&mut made.0, member) }, name)
}

fn kind_of(found: Primitive) -> u32 {
    match found {
        Primitive::Bool => cyclors::dds_dynamic_type_kind_DDS_DYNAMIC_BOOLEAN,
        Primitive::Octet => cyclors::dds_dynamic_type_kind_DDS_DYNAMIC_BYTE,
        Primitive::Char => cyclors::dds_dynamic_type_kind_DDS_DYNAMIC_CHAR8,
        Primitive::WChar => cyclors::dds_dynamic_type_kind_DDS_DYNAMIC_CHAR16,
        Primitive::Int8 => cyclors::dds_dynamic_type_kind_DDS_DYNAMIC_INT8,
        Primitive::Uint8 => cyclors::dds_dynamic_type_kind_DDS_DYNAMIC_UINT8,
        Primitive::Int16 => cyclors::dds_dynamic_type_kind_DDS_DYNAMIC_INT16,
        Primitive::Uint16 => cyclors::dds_dynamic_type_kind_DDS_DYNAMIC_UINT16,
        Primitive::Int32 => cyclors::dds_dynamic_type_kind_DDS_DYNAMIC_INT32,
        Primitive::Uint32 => cyclors::dds_dynamic_type_kind_DDS_DYNAMIC_UINT32,
        Primitive::Int64 => cyclors::dds_dynamic_type_kind_DDS_DYNAMIC_INT64,
        Primitive::Uint64 => cyclors::dds_dynamic_type_kind_DDS_DYNAMIC_UINT64,
        Primitive::Float32 => cyclors::dds_dynamic_type_kind_DDS_DYNAMIC_FLOAT32,
        Primitive::Float64 => cyclors::dds_dynamic_type_kind_DDS_DYNAMIC_FLOAT64,
    }
}
