//! Conversion of cells of tables to JSON values.

use rondel_event::ValueType;

/// Not a number, which JSON does not have.
const NAN: &[u8] = b"NaN";
/// Number of bytes of a cell shown in an error.
const SHOWN: usize = 40;

/// Returns a cell in quotation marks, for errors.
pub(super) fn shown(cell: &[u8]) -> String {
    let text = String::from_utf8_lossy(cell);
    let beginning: String = text.chars().take(SHOWN).collect();
    let more = if beginning.len() < text.len() { "…" } else { "" };
    format!("{:?}", beginning + more)
}

/// Format of numbers.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Numbers {
    /// Whether numbers may have a decimal comma.
    pub(super) has_comma: bool,
    /// Whether NaN is written as `NaN`, which is not JSON, instead of null.
    pub(super) takes_nan: bool,
}

/// Writes a cell that is not empty as a value of this type; as a text if it cannot be one.
///
/// # Errors
/// The cell is not UTF-8.
#[inline]
pub(super) fn write(
    cell: &[u8],
    kind: Option<ValueType>,
    numbers: Numbers,
    out: &mut Vec<u8>,
) -> Result<(), ()> {
    match kind {
        Some(ValueType::String) => return text(cell, out),
        Some(ValueType::Bool) => {
            if let Some(value) = boolean(cell.trim_ascii()) {
                out.extend_from_slice(value);
                return Ok(());
            }
        }
        Some(kind) => {
            if number(cell.trim_ascii(), kind == ValueType::Int, numbers, out) {
                return Ok(());
            }
        }
        None => {
            let cell = cell.trim_ascii();
            if is_json_number(cell) {
                out.extend_from_slice(cell);
                return Ok(());
            }
            // Without a wanted number the result must be JSON, so NaN becomes null.
            if let Some(value) = word(cell).or_else(|| is_nan(cell).then_some(b"null")) {
                out.extend_from_slice(value);
                return Ok(());
            }
        }
    }
    text(cell, out)
}

/// Whether a cell is NaN in the spelling of any program.
fn is_nan(cell: &[u8]) -> bool {
    matches!(cell, b"nan" | b"NaN" | b"NAN")
}

/// Returns `true` or `false` for the spellings of tables.
fn word(cell: &[u8]) -> Option<&'static [u8]> {
    match cell {
        b"true" | b"True" | b"TRUE" => Some(b"true"),
        b"false" | b"False" | b"FALSE" => Some(b"false"),
        _ => None,
    }
}

/// Returns a boolean, which may also be a number.
fn boolean(cell: &[u8]) -> Option<&'static [u8]> {
    let digit = |rest: &[u8]| match rest {
        [] => true,
        [b'.', zeros @ ..] => zeros.iter().all(|byte| *byte == b'0'),
        _ => false,
    };
    match cell {
        [b'1', rest @ ..] if digit(rest) => Some(b"true"),
        [b'0', rest @ ..] if digit(rest) => Some(b"false"),
        _ => word(cell),
    }
}

/// Whether a cell is a number in the syntax of JSON.
#[inline]
pub(super) fn is_json_number(cell: &[u8]) -> bool {
    let digits = |bytes: &[u8]| bytes.iter().take_while(|byte| byte.is_ascii_digit()).count();
    let mut rest = cell.strip_prefix(b"-").unwrap_or(cell);
    let whole = digits(rest);
    if whole == 0 || whole > 1 && rest[0] == b'0' {
        return false;
    }
    rest = &rest[whole..];
    if let Some(fraction) = rest.strip_prefix(b".") {
        let places = digits(fraction);
        if places == 0 {
            return false;
        }
        rest = &fraction[places..];
    }
    if let [b'e' | b'E', exponent @ ..] = rest {
        let exponent = match exponent {
            [b'+' | b'-', exponent @ ..] => exponent,
            _ => exponent,
        };
        let places = digits(exponent);
        return places > 0 && places == exponent.len();
    }
    rest.is_empty()
}

/// Writes a number in any of the spellings of tables; returns whether it is one.
#[inline]
fn number(cell: &[u8], is_whole: bool, numbers: Numbers, out: &mut Vec<u8>) -> bool {
    if is_json_number(cell) {
        // Tables of numbers often write integers with decimal places.
        if is_whole
            && let Some(point) = cell.iter().position(|byte| *byte == b'.')
            && cell[point + 1..].iter().all(|byte| *byte == b'0')
        {
            out.extend_from_slice(&cell[..point]);
        } else {
            out.extend_from_slice(cell);
        }
        return true;
    }
    uncommon(cell, is_whole, numbers, out)
}

#[cold]
fn uncommon(cell: &[u8], is_whole: bool, numbers: Numbers, out: &mut Vec<u8>) -> bool {
    let (sign, digits): (&[u8], &[u8]) = match cell {
        [b'-', digits @ ..] => (b"-", digits),
        [b'+', digits @ ..] => (b"", digits),
        _ => (b"", cell),
    };
    let lower = digits.to_ascii_lowercase();
    match &lower[..] {
        b"nan" => out.extend_from_slice(if numbers.takes_nan { NAN } else { b"null" }),
        b"inf" | b"infinity" => {
            out.extend_from_slice(sign);
            // JSON has no infinity; readers round this number to it.
            out.extend_from_slice(b"1e999");
        }
        _ => {
            let mut own = sign.to_vec();
            if numbers.has_comma
                && digits.iter().filter(|byte| **byte == b',').count() == 1
                && !digits.contains(&b'.')
            {
                own.extend(digits.iter().map(|byte| if *byte == b',' { b'.' } else { *byte }));
            } else {
                own.extend_from_slice(digits);
            }
            // Numbers such as `.5`, `5.` and `007`.
            let start = sign.len();
            let zeros = own[start..].iter().take_while(|byte| **byte == b'0').count();
            // One zero stays if no other digit follows.
            let is_before_digit = own.get(start + zeros).is_some_and(u8::is_ascii_digit);
            own.drain(start..start + zeros.saturating_sub(usize::from(!is_before_digit)));
            if own.get(start) == Some(&b'.') {
                own.insert(start, b'0');
            }
            if own.last() == Some(&b'.') {
                own.pop();
            }
            return is_json_number(&own) && number(&own, is_whole, Numbers::default(), out);
        }
    }
    true
}

/// Writes JSON with null instead of NaN.
#[cfg(feature = "parquet")]
pub(super) fn without_nan(json: &[u8], out: &mut Vec<u8>) {
    let (mut rest, mut is_quoted) = (json, false);
    while let Some((byte, behind)) = rest.split_first() {
        match byte {
            b'\\' if behind.len() > 1 => {
                out.extend_from_slice(&rest[..2]);
                rest = &rest[2..];
                continue;
            }
            b'"' => is_quoted = !is_quoted,
            b'N' if !is_quoted && rest.starts_with(NAN) => {
                out.extend_from_slice(b"null");
                rest = &rest[NAN.len()..];
                continue;
            }
            _ => {}
        }
        out.push(*byte);
        rest = behind;
    }
}

/// Writes a text as a JSON string.
pub(super) fn text(cell: &[u8], out: &mut Vec<u8>) -> Result<(), ()> {
    let text = std::str::from_utf8(cell).map_err(|_| ())?;
    out.push(b'"');
    let mut rest = text.as_bytes();
    while let Some(at) = rest.iter().position(|byte| *byte < 0x20 || matches!(byte, b'"' | b'\\')) {
        out.extend_from_slice(&rest[..at]);
        match rest[at] {
            byte @ (b'"' | b'\\') => out.extend_from_slice(&[b'\\', byte]),
            byte => out.extend_from_slice(format!("\\u{byte:04x}").as_bytes()),
        }
        rest = &rest[at + 1..];
    }
    out.extend_from_slice(rest);
    out.push(b'"');
    Ok(())
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn cells_become_values_of_their_types() {
        let of = |cell: &str, kind, has_comma| {
            let mut out = Vec::new();
            let numbers = Numbers { has_comma, takes_nan: true };
            write(cell.as_bytes(), kind, numbers, &mut out).unwrap();
            String::from_utf8(out).unwrap()
        };
        let cases = [
            ("12", None, "12"),
            ("007", None, "\"007\""),
            ("-0.5e3", None, "-0.5e3"),
            ("True", None, "true"),
            ("a \"b\"\\\n", None, "\"a \\\"b\\\"\\\\\\u000a\""),
            ("12", Some(ValueType::String), "\"12\""),
            ("1.000", Some(ValueType::Bool), "true"),
            ("0", Some(ValueType::Bool), "false"),
            ("maybe", Some(ValueType::Bool), "\"maybe\""),
            ("22.000", Some(ValueType::Int), "22"),
            ("22.5", Some(ValueType::Int), "22.5"),
            ("22.000", Some(ValueType::Float), "22.000"),
            ("+5", Some(ValueType::Float), "5"),
            (".5", Some(ValueType::Float), "0.5"),
            ("-5.", Some(ValueType::Float), "-5"),
            ("007", Some(ValueType::Int), "7"),
            ("000", Some(ValueType::Int), "0"),
            ("-00.5", Some(ValueType::Float), "-0.5"),
            ("NaN", Some(ValueType::Float), "NaN"),
            ("nan", Some(ValueType::Int), "NaN"),
            ("NaN", Some(ValueType::String), "\"NaN\""),
            ("NaN", None, "null"),
            ("-inf", Some(ValueType::Float), "-1e999"),
            ("1,5", Some(ValueType::Float), "\"1,5\""),
            ("x", Some(ValueType::Float), "\"x\""),
            ("2026-11-22T18:16:04Z", Some(ValueType::Time), "\"2026-11-22T18:16:04Z\""),
        ];
        for (cell, kind, expected) in cases {
            assert_eq!(of(cell, kind, false), expected, "{cell} {kind:?}");
        }
        assert_eq!(of("-1,5", Some(ValueType::Float), true), "-1.5");
        let mut json = Vec::new();
        write(b"nan", Some(ValueType::Float), Numbers::default(), &mut json).unwrap();
        assert_eq!(json, b"null");
        assert!(write(b"\xff", None, Numbers::default(), &mut Vec::new()).is_err());
    }
}
