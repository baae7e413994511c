//! Writing values as JSON.

use std::io::Write as _;

/// What the JSON of a message in another encoding says where JSON has no form of its own.
///
/// Integers are numbers with all their digits, bytes an array of numbers, points in time objects of seconds and
/// nanoseconds, and a number that is not one (NaN) is null.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct JsonForm {
    /// Whether a value of an enumeration is the name of its constant, and a character a text; otherwise both are
    /// numbers, as a specification reads them by their definition.
    pub names: bool,
    /// Whether an infinite number is `1e999`, which readers take for infinite; otherwise it is null.
    pub infinite: bool,
}

impl JsonForm {
    /// For people, and for programs that know nothing of the type.
    pub const READABLE: JsonForm = JsonForm { names: true, infinite: false };
    /// For recordings: a property has the verdicts that it has on the message itself.
    pub const EXACT: JsonForm = JsonForm { names: false, infinite: true };
}

/// Appends a text in quotes. What could control a terminal is escaped.
pub(crate) fn quoted(text: &str, out: &mut Vec<u8>) {
    out.push(b'"');
    let mut rest = text;
    while let Some(at) = rest.find(|c: char| c == '"' || c == '\\' || c.is_control()) {
        out.extend_from_slice(&rest.as_bytes()[..at]);
        let special = rest[at..].chars().next().unwrap_or_default();
        // Writing to a vector does not fail.
        match special {
            '"' | '\\' => out.extend_from_slice(&[b'\\', special as u8]),
            control => _ = write!(out, "\\u{:04x}", u32::from(control)),
        }
        rest = &rest[at + special.len_utf8()..];
    }
    out.extend_from_slice(rest.as_bytes());
    out.push(b'"');
}

/// Appends a number: the shortest digits that name it.
pub(crate) fn float(value: f64, form: JsonForm, out: &mut Vec<u8>) {
    if value.is_finite() {
        _ = write!(out, "{value:?}");
    } else if value.is_nan() || !form.infinite {
        out.extend_from_slice(b"null");
    } else {
        out.extend_from_slice(if value > 0.0 { b"1e999" } else { b"-1e999" });
    }
}

/// Appends an integer.
pub(crate) fn integer(value: i128, out: &mut Vec<u8>) {
    _ = write!(out, "{value}");
}

/// Appends bytes: an array of numbers, which has their length.
pub(crate) fn bytes(bytes: &[u8], out: &mut Vec<u8>) {
    out.push(b'[');
    for (i, byte) in bytes.iter().enumerate() {
        let comma = if i > 0 { "," } else { "" };
        _ = write!(out, "{comma}{byte}");
    }
    out.push(b']');
}

/// Appends the name of a member after those before it in the object that is open.
pub(crate) fn key(name: &str, out: &mut Vec<u8>) {
    separate(out);
    quoted(name, out);
    out.push(b':');
}

/// Appends the comma before a further element or member, unless it is the first one.
pub(crate) fn separate(out: &mut Vec<u8>) {
    if !matches!(out.last(), Some(b'{' | b'[')) {
        out.push(b',');
    }
}
