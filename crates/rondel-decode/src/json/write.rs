//! Writing values as JSON.

use std::io::Write as _;

use rondel_event::terminal::is_obeyed;

/// Options of the JSON of messages in another encoding, for values that JSON cannot represent.
///
/// Integers are numbers with all their digits, bytes an array of numbers, points in time objects of seconds and
/// nanoseconds, and NaN is null.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct JsonForm {
    /// Whether a value of an enumeration is the name of its constant, and a character a text; otherwise both are
    /// numbers, which a specification converts by their definition.
    pub names: bool,
    /// Whether an infinite number is `1e999`, which readers take for infinite; otherwise it is null.
    pub infinite: bool,
}

impl JsonForm {
    /// For users, and for programs without knowledge of the type.
    pub const READABLE: JsonForm = JsonForm { names: true, infinite: false };
    /// For recordings: a property has the same verdicts as on the message itself.
    pub const EXACT: JsonForm = JsonForm { names: false, infinite: true };
}

/// Appends a text in quotes. Characters that a terminal obeys are escaped.
pub(crate) fn quoted(text: &str, out: &mut Vec<u8>) {
    out.push(b'"');
    let mut rest = text;
    while let Some(at) = rest.find(|c: char| c == '"' || c == '\\' || is_obeyed(c)) {
        out.extend_from_slice(&rest.as_bytes()[..at]);
        let special = rest[at..].chars().next().unwrap_or_default();
        // Writing to a vector does not fail.
        match special {
            '"' | '\\' => out.extend_from_slice(&[b'\\', special as u8]),
            obeyed => {
                for unit in obeyed.encode_utf16(&mut [0; 2]) {
                    _ = write!(out, "\\u{unit:04x}");
                }
            }
        }
        rest = &rest[at + special.len_utf8()..];
    }
    out.extend_from_slice(rest.as_bytes());
    out.push(b'"');
}

/// Appends a number with the fewest digits that determine it.
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

/// Appends bytes as an array of numbers.
pub(crate) fn bytes(bytes: &[u8], out: &mut Vec<u8>) {
    out.push(b'[');
    for (i, byte) in bytes.iter().enumerate() {
        let comma = if i > 0 { "," } else { "" };
        _ = write!(out, "{comma}{byte}");
    }
    out.push(b']');
}

/// Appends the name of a member after the previous ones in the open object.
pub(crate) fn key(name: &str, out: &mut Vec<u8>) {
    separate(out);
    quoted(name, out);
    out.push(b':');
}

/// Appends the comma before an element or member, unless it is the first one.
pub(crate) fn separate(out: &mut Vec<u8>) {
    if !matches!(out.last(), Some(b'{' | b'[')) {
        out.push(b',');
    }
}
