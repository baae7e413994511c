//! Structures of the Arrow C data interface from other languages, checked before they are read.

use std::ffi::{CStr, c_char, c_void};
use std::panic::{AssertUnwindSafe, catch_unwind};

use arrow_array::ffi::{FFI_ArrowArray, FFI_ArrowSchema, from_ffi};
use arrow_array::{Array, RecordBatch, StructArray};

use crate::status::{Failure, RONDEL_ERROR_COLUMNS, panic_text};

/// The largest depth of structures and lists.
const DEPTH: u32 = 64;

/// The fields of a schema: those of [`FFI_ArrowSchema`] are private, and its methods panic for wrong ones.
#[repr(C)]
#[allow(dead_code)] // the layout of the interface
struct Schema {
    format: *const c_char,
    name: *const c_char,
    metadata: *const c_char,
    flags: i64,
    n_children: i64,
    children: *mut *mut Schema,
    dictionary: *mut Schema,
    release: Option<unsafe extern "C" fn(*mut Schema)>,
    private_data: *mut c_void,
}

/// The fields of an array.
#[repr(C)]
#[allow(dead_code)] // the layout of the interface
struct ArrayFields {
    length: i64,
    null_count: i64,
    offset: i64,
    n_buffers: i64,
    n_children: i64,
    buffers: *mut *const c_void,
    children: *mut *mut ArrayFields,
    dictionary: *mut ArrayFields,
    release: Option<unsafe extern "C" fn(*mut ArrayFields)>,
    private_data: *mut c_void,
}

const _: () = assert!(size_of::<Schema>() == size_of::<FFI_ArrowSchema>());
const _: () = assert!(size_of::<ArrayFields>() == size_of::<FFI_ArrowArray>());

fn failure(text: impl std::fmt::Display) -> Failure {
    Failure::new(RONDEL_ERROR_COLUMNS, format!("the columns cannot be read: {text}"))
}

/// Reads the columns of an array of structures. Lengths, offsets and texts are checked; buffers must be as long as the
/// schema and these say.
///
/// # Errors
/// Released or inconsistent structures, and arrays that are no structure.
///
/// # Safety
/// Both are as the Arrow C data interface defines them.
pub(crate) unsafe fn read(array: FFI_ArrowArray, schema: &FFI_ArrowSchema) -> Result<RecordBatch, Failure> {
    let fields = (&raw const array).cast::<ArrayFields>();
    // SAFETY: both structures have the layout of the interface, and live on.
    unsafe { check(&*fields, &*std::ptr::from_ref(schema).cast::<Schema>(), 0).map_err(failure)? };
    // Arrow asserts what is not checked above.
    let imported = catch_unwind(AssertUnwindSafe(|| {
        // SAFETY: the contract of this function.
        let data = unsafe { from_ffi(array, schema) }.map_err(failure)?;
        data.validate_full().map_err(failure)?;
        let all = StructArray::from(data);
        if all.null_count() > 0 {
            return Err(failure("a row is null: only its values may be"));
        }
        Ok(RecordBatch::from(all))
    }));
    imported.unwrap_or_else(|panic| Err(failure(panic_text(&*panic))))
}

/// Checks an array against its schema.
///
/// # Safety
/// Both are as the Arrow C data interface defines them.
unsafe fn check(array: &ArrayFields, schema: &Schema, depth: u32) -> Result<(), &'static str> {
    if depth > DEPTH {
        return Err("structures and lists are too deep");
    }
    if depth == 0 && (schema.release.is_none() || array.release.is_none()) {
        return Err("the array or its schema was released");
    }
    if schema.format.is_null() {
        return Err("a schema has no format");
    }
    // SAFETY: the contract of this function.
    let format = unsafe { CStr::from_ptr(schema.format) };
    if depth == 0 && format != c"+s" {
        return Err("the array has no columns: it must be a structure");
    }
    // SAFETY: the contract of this function.
    let has_text = schema.name.is_null() || unsafe { CStr::from_ptr(schema.name) }.to_str().is_ok();
    if !has_text || format.to_str().is_err() {
        return Err("a name or a format is not UTF-8");
    }
    let is_plausible = |count: i64| (0..=1 << 40).contains(&count);
    if ![array.length, array.offset, array.n_buffers].into_iter().all(is_plausible) {
        return Err("a length, an offset or a number of buffers is out of range");
    }
    if array.n_buffers > 0 && array.buffers.is_null() {
        return Err("an array has no buffers");
    }
    if array.n_children != schema.n_children || !is_plausible(array.n_children) {
        return Err("an array and its schema have different numbers of children");
    }
    if array.n_children > 0 && (array.children.is_null() || schema.children.is_null()) {
        return Err("an array has no children");
    }
    for i in 0..array.n_children as usize {
        // SAFETY: the contract of this function; `i` is below the number of children.
        unsafe { check_both(*array.children.add(i), *schema.children.add(i), depth)? };
    }
    match (array.dictionary.is_null(), schema.dictionary.is_null()) {
        (true, true) => Ok(()),
        // SAFETY: the contract of this function.
        (false, false) => unsafe { check_both(array.dictionary, schema.dictionary, depth) },
        _ => Err("only one of an array and its schema has a dictionary"),
    }
}

/// # Safety
/// As that of [`check`].
unsafe fn check_both(
    array: *const ArrayFields,
    schema: *const Schema,
    depth: u32,
) -> Result<(), &'static str> {
    // SAFETY: the contract of this function.
    match unsafe { (array.as_ref(), schema.as_ref()) } {
        // SAFETY: the contract of this function.
        (Some(array), Some(schema)) => unsafe { check(array, schema, depth + 1) },
        _ => Err("an array or a schema has a null child"),
    }
}
