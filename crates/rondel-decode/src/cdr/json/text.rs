//! Values in JSON.

use std::io::Write as _;

/// Appends a text in quotes.
pub(super) fn quoted(text: &str, out: &mut Vec<u8>) {
    out.push(b'"');
    let mut rest = text.as_bytes();
    let is_special = |byte: &u8| matches!(byte, b'"' | b'\\' | 0..0x20);
    while let Some(at) = rest.iter().position(is_special) {
        out.extend_from_slice(&rest[..at]);
        // Writing to a vector does not fail.
        match rest[at] {
            special @ (b'"' | b'\\') => out.extend_from_slice(&[b'\\', special]),
            control => _ = write!(out, "\\u{control:04x}"),
        }
        rest = &rest[at + 1..];
    }
    out.extend_from_slice(rest);
    out.push(b'"');
}

/// Appends a number: the shortest digits that name it. One that is not finite is null.
pub(super) fn float(value: f64, out: &mut Vec<u8>) {
    if value.is_finite() {
        _ = write!(out, "{value:?}");
    } else {
        out.extend_from_slice(b"null");
    }
}

/// Appends an integer.
pub(super) fn integer(value: i128, out: &mut Vec<u8>) {
    _ = write!(out, "{value}");
}
