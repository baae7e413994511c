//! Arguments: pointers and lengths, checked as far as they can be.

use std::ffi::{CStr, c_char, c_void};
use std::ptr::NonNull;

use crate::status::Failure;

/// The length of a text that ends with a NUL.
pub const RONDEL_NUL_TERMINATED: usize = usize::MAX;

/// A place for a result.
pub(crate) struct Out<T>(NonNull<T>);

impl<T> Out<T> {
    /// Checks a pointer to a place for a result.
    ///
    /// # Errors
    /// A null pointer.
    ///
    /// # Safety
    /// The pointer is null or valid for writing as long as the place is used.
    pub(crate) unsafe fn new(name: &str, pointer: *mut T) -> Result<Out<T>, Failure> {
        match NonNull::new(pointer) {
            Some(place) if pointer.is_aligned() => Ok(Out(place)),
            found => Err(wrong(name, found.is_some())),
        }
    }

    /// Writes a result, without reading what is there.
    pub(crate) fn set(&self, value: T) {
        // SAFETY: valid for writing, by the contract of `new`.
        unsafe { self.0.write(value) };
    }
}

/// Checks a handle, or a pointer to one structure.
///
/// # Errors
/// A null pointer.
///
/// # Safety
/// The pointer is null or valid for reading during `'a`.
pub(crate) unsafe fn reference<'a, T>(name: &str, pointer: *const T) -> Result<&'a T, Failure> {
    if pointer.is_null() || !pointer.is_aligned() {
        return Err(wrong(name, !pointer.is_null()));
    }
    // SAFETY: the contract of this function.
    Ok(unsafe { &*pointer })
}

/// Checks an array, whose pointer may be null if it is empty.
///
/// # Errors
/// A null pointer, or more elements than fit into memory.
///
/// # Safety
/// The pointer is null or valid for reading this many elements during `'a`.
pub(crate) unsafe fn slice<'a, T>(name: &str, pointer: *const T, count: usize) -> Result<&'a [T], Failure> {
    if count == 0 {
        return Ok(&[]);
    }
    if pointer.is_null() || !pointer.is_aligned() {
        return Err(wrong(name, !pointer.is_null()));
    }
    if count > isize::MAX as usize / size_of::<T>().max(1) {
        return Err(Failure::argument(format!("`{name}` has {count} elements, more than fit into memory")));
    }
    // SAFETY: the contract of this function.
    Ok(unsafe { std::slice::from_raw_parts(pointer, count) })
}

/// Checks the bytes of a payload, or a text that ends with a NUL.
///
/// # Errors
/// As those of [`slice`].
///
/// # Safety
/// The pointer is null or valid for reading this many bytes during `'a`; with [`RONDEL_NUL_TERMINATED`] up to a NUL.
pub(crate) unsafe fn payload<'a>(
    name: &str,
    pointer: *const c_void,
    length: usize,
) -> Result<&'a [u8], Failure> {
    if length == RONDEL_NUL_TERMINATED && !pointer.is_null() {
        // SAFETY: the contract of this function.
        return Ok(unsafe { CStr::from_ptr(pointer.cast()) }.to_bytes());
    }
    // SAFETY: the contract of this function.
    unsafe { slice(name, pointer.cast(), length) }
}

/// Checks a text.
///
/// # Errors
/// As those of [`slice`], and bytes that are not UTF-8.
///
/// # Safety
/// As that of [`payload`].
pub(crate) unsafe fn text<'a>(name: &str, pointer: *const c_char, length: usize) -> Result<&'a str, Failure> {
    // SAFETY: the contract of this function.
    let bytes = unsafe { payload(name, pointer.cast(), length)? };
    std::str::from_utf8(bytes)
        .map_err(|error| Failure::argument(format!("`{name}` is not UTF-8 at byte {}", error.valid_up_to())))
}

/// The error of a pointer.
fn wrong(name: &str, is_misaligned: bool) -> Failure {
    Failure::argument(format!("`{name}` is {}", if is_misaligned { "not aligned" } else { "null" }))
}
