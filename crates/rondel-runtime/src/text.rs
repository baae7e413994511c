//! How values, times and counts are written, in JSON and in text alike.

use rondel_event::{Timestamp, Value};

pub use crate::formula::value_text;

/// Appends a value in JSON. A number that is not finite is null.
pub fn write_value(value: &Value, out: &mut Vec<u8>) {
    match value {
        Value::Bool(b) => out.extend_from_slice(if *b { b"true" } else { b"false" }),
        Value::Int(i) => write_integer(*i, out),
        Value::Float(x) => out.extend_from_slice(serde_json::json!(x).to_string().as_bytes()),
        Value::Time(ns) | Value::Duration(ns) => write_seconds(Timestamp::from_nanos(*ns), out),
        // Writing to a vector does not fail.
        Value::String(text) => {
            let _ = serde_json::to_writer(&mut *out, text);
        }
    }
}

/// Appends an integer in decimal.
pub fn write_integer(value: impl itoa::Integer, out: &mut Vec<u8>) {
    out.extend_from_slice(itoa::Buffer::new().format(value).as_bytes());
}

/// Appends a time in seconds, exactly.
pub fn write_seconds(time: Timestamp, out: &mut Vec<u8>) {
    let ns = time.as_nanos();
    let (seconds, mut rest) = (ns / 1_000_000_000, (ns % 1_000_000_000).unsigned_abs());
    if ns < 0 && seconds == 0 {
        out.push(b'-');
    }
    write_integer(seconds, out);
    if rest == 0 {
        return;
    }
    // Nine digits without trailing zeros; by hand, as verdicts may be millions.
    let mut digits = *b".000000000";
    for digit in digits[1..].iter_mut().rev() {
        *digit = b'0' + (rest % 10) as u8;
        rest /= 10;
    }
    let len = digits.iter().rposition(|digit| *digit != b'0').map_or(0, |last| last + 1);
    out.extend_from_slice(&digits[..len]);
}

/// The values of parameters in brackets, as a specification writes them; empty without parameters.
pub fn parameters_text(values: &[Value]) -> String {
    let mut text = Vec::new();
    write_parameters(values, &mut text);
    // Everything appended is text.
    String::from_utf8(text).unwrap_or_default()
}

/// Appends what [`parameters_text`] returns.
pub fn write_parameters(values: &[Value], out: &mut Vec<u8>) {
    for (i, value) in values.iter().enumerate() {
        out.extend_from_slice(if i == 0 { b"[" } else { b", " });
        match value {
            Value::Int(i) => write_integer(*i, out),
            Value::String(_) => write_value(value, out),
            other => out.extend_from_slice(value_text(other).as_bytes()),
        }
    }
    if !values.is_empty() {
        out.push(b']');
    }
}

/// A size in bytes: `16 MiB`.
pub fn size(bytes: usize) -> String {
    match bytes {
        0 => "0 B".to_owned(),
        _ if bytes.is_multiple_of(1 << 30) => format!("{} GiB", bytes >> 30),
        _ if bytes.is_multiple_of(1 << 20) => format!("{} MiB", bytes >> 20),
        _ if bytes.is_multiple_of(1 << 10) => format!("{} KiB", bytes >> 10),
        _ => format!("{} B", grouped(bytes as u64)),
    }
}

/// A count in groups of three digits: `1,234,567`.
pub fn grouped(count: u64) -> String {
    let digits = count.to_string();
    let mut text = String::with_capacity(digits.len() + digits.len() / 3);
    for (i, digit) in digits.chars().enumerate() {
        if i > 0 && (digits.len() - i).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// A count with its noun, in the plural unless the count is one.
pub fn counted(count: u64, one: &str, many: &str) -> String {
    format!("{} {}", grouped(count), if count == 1 { one } else { many })
}

/// A duration in the unit that reads best.
pub fn duration(nanos: u64) -> String {
    match nanos {
        0..10_000 => format!("{nanos} ns"),
        10_000..10_000_000 => format!("{:.1} us", nanos as f64 / 1e3),
        10_000_000..1_000_000_000 => format!("{:.1} ms", nanos as f64 / 1e6),
        1_000_000_000..10_000_000_000 => format!("{} s", (nanos as f64 / 1e6).round() / 1e3),
        10_000_000_000..7_200_000_000_000 => format!("{:.1} s", nanos as f64 / 1e9),
        7_200_000_000_000..172_800_000_000_000 => format!("{:.1} h", nanos as f64 / 3.6e12),
        _ => format!("{} days", grouped((nanos as f64 / 8.64e13).round() as u64)),
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn counts_and_times() {
        assert_eq!([0, 999, 1_000, 1_234_567].map(grouped), ["0", "999", "1,000", "1,234,567"]);
        assert_eq!(counted(1, "event", "events"), "1 event");
        for ns in [0, 1, -1, 10, 5_000_000, -1_500_000_000, 12_000_000_001, i64::MAX, i64::MIN] {
            let (time, mut text) = (Timestamp::from_nanos(ns), Vec::new());
            write_seconds(time, &mut text);
            assert_eq!(String::from_utf8(text).unwrap(), time.to_string());
        }
        assert_eq!(parameters_text(&[Value::Int(7), Value::String("x\"".into())]), r#"[7, "x\""]"#);
        assert_eq!(parameters_text(&[]), "");
    }
}
