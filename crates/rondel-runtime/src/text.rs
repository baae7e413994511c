//! Text of values, times and counts, in JSON and in sentences.

use rondel_event::terminal::is_obeyed;
use rondel_event::{Timestamp, Value};

pub use crate::specification::formula::value_text;

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
pub fn write_integer(value: i64, out: &mut Vec<u8>) {
    let mut text = TextFromEnd::default();
    text.integer(value);
    out.extend_from_slice(text.as_bytes());
}

/// Appends a count in decimal.
pub fn write_count(value: u64, out: &mut Vec<u8>) {
    let mut text = TextFromEnd::default();
    text.count(value);
    out.extend_from_slice(text.as_bytes());
}

/// Appends a time in seconds, exactly.
pub fn write_seconds(time: Timestamp, out: &mut Vec<u8>) {
    let mut text = TextFromEnd::default();
    text.seconds(time);
    out.extend_from_slice(text.as_bytes());
}

/// Up to 128 bytes of text, each part put in front of those before it: the length of a number is known when it has
/// been written, and a vector is extended once. By hand, as verdicts may be millions.
pub(crate) struct TextFromEnd {
    bytes: [u8; TextFromEnd::CAPACITY],
    start: usize,
}

impl Default for TextFromEnd {
    #[inline(always)]
    fn default() -> TextFromEnd {
        TextFromEnd { bytes: [0; TextFromEnd::CAPACITY], start: TextFromEnd::CAPACITY }
    }
}

impl TextFromEnd {
    const CAPACITY: usize = 128;

    /// Puts a text in front, if there is room.
    #[inline(always)]
    pub(crate) fn text<const N: usize>(&mut self, text: &[u8; N]) {
        if let Some(place) = self.bytes.get_mut(..self.start).and_then(<[u8]>::last_chunk_mut) {
            *place = *text;
            self.start -= N;
        }
    }

    #[inline(always)]
    pub(crate) fn count(&mut self, mut value: u64) {
        while value >= 100_000_000 {
            self.text(&(decimal((value % 100_000_000) as u32) | ZEROS).to_le_bytes());
            value /= 100_000_000;
        }
        let digits = decimal(value as u32);
        self.text(&(digits | ZEROS).to_le_bytes());
        // Without the zeros in front, unless the last is the number.
        self.start += (digits.trailing_zeros() as usize / 8).min(7);
    }

    #[inline(always)]
    pub(crate) fn integer(&mut self, value: i64) {
        self.count(value.unsigned_abs());
        if value < 0 {
            self.text(b"-");
        }
    }

    /// Puts a time in seconds in front, exactly.
    #[inline(always)]
    pub(crate) fn seconds(&mut self, time: Timestamp) {
        let ns = time.as_nanos();
        let (seconds, rest) = (ns.unsigned_abs() / 1_000_000_000, ns.unsigned_abs() % 1_000_000_000);
        if rest != 0 {
            self.fraction(rest as u32);
        }
        self.count(seconds);
        if ns < 0 {
            self.text(b"-");
        }
    }

    /// The nanoseconds behind the point, at least one, without zeros at the end.
    #[inline(always)]
    fn fraction(&mut self, nanos: u32) {
        let (digits, ninth) = (decimal(nanos / 10), (nanos % 10) as u8);
        let zeros = if ninth == 0 { digits.leading_zeros() / 8 } else { 0 };
        if ninth != 0 {
            self.text(&[b'0' + ninth]);
        }
        self.text(&((digits | ZEROS) << (8 * zeros)).to_le_bytes());
        self.start += zeros as usize;
        self.text(b".");
    }

    #[inline(always)]
    pub(crate) fn as_bytes(&self) -> &[u8] {
        self.bytes.get(self.start..).unwrap_or_default()
    }
}

/// The character `0` eight times.
const ZEROS: u64 = 0x3030_3030_3030_3030;

/// The digits of a number below 100,000,000, a byte for each of eight: the first is the lowest byte.
#[inline(always)]
fn decimal(value: u32) -> u64 {
    let fours = u64::from(value / 10_000) | u64::from(value % 10_000) << 32;
    // In each half the quotient by 100; below 10,000 this multiplication divides exactly, as that by 103 does below 100.
    let hundreds = (fours * 10_486) >> 20 & 0x0000_007f_0000_007f;
    let pairs = hundreds | (fours - 100 * hundreds) << 16;
    let tens = (pairs * 103) >> 10 & 0x000f_000f_000f_000f;
    tens | (pairs - 10 * tens) << 8
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
            // JSON has the same escapes for all other characters, and writes without an allocation.
            Value::String(text) if !text.contains(is_obeyed) => write_value(value, out),
            other => out.extend_from_slice(value_text(other).as_bytes()),
        }
    }
    if !values.is_empty() {
        out.push(b']');
    }
}

/// The beginning of a text, of at most this many bytes, in whole characters.
pub fn beginning(text: &str, most: usize) -> &str {
    let mut end = text.len().min(most);
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    text.get(..end).unwrap_or_default()
}

/// A size in bytes: `16 MiB`, `64 MB`.
pub fn size(bytes: usize) -> String {
    match bytes {
        0 => "0 B".to_owned(),
        _ if bytes.is_multiple_of(1 << 30) => format!("{} GiB", bytes >> 30),
        _ if bytes.is_multiple_of(1 << 20) => format!("{} MiB", bytes >> 20),
        _ if bytes.is_multiple_of(1_000_000) => format!("{} MB", bytes / 1_000_000),
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
        assert_eq!([0, 1, 2, 3, 9].map(|most| beginning("aä", most)), ["", "a", "a", "aä", "aä"]);
        for ns in [0, 1, -1, 10, 5_000_000, -1_500_000_000, 12_000_000_001, i64::MAX, i64::MIN] {
            let (time, mut text) = (Timestamp::from_nanos(ns), Vec::new());
            write_seconds(time, &mut text);
            assert_eq!(String::from_utf8(text).unwrap(), time.to_string());
        }
        for value in [0, 7, 10, 99, 100, 101, 1_000, 12_345, -1, -10, i64::MAX, i64::MIN] {
            let mut text = Vec::new();
            write_integer(value, &mut text);
            write_count(value.unsigned_abs(), &mut text);
            assert_eq!(String::from_utf8(text).unwrap(), format!("{value}{}", value.unsigned_abs()));
        }
        for value in (0..100_000_000_u32).step_by(997).chain([99_999_999]) {
            assert_eq!((decimal(value) | ZEROS).to_le_bytes(), *format!("{value:08}").as_bytes());
        }
        for place in 0..9 {
            for nanos in [1, 12, 901, 123_456_789, 999_999_999, 100_000_001] {
                let (time, mut text) = (Timestamp::from_nanos(nanos * 10_i64.pow(place)), Vec::new());
                write_seconds(time, &mut text);
                assert_eq!(String::from_utf8(text).unwrap(), time.to_string());
            }
        }
        assert_eq!(parameters_text(&[Value::Int(7), Value::String("x\"".into())]), r#"[7, "x\""]"#);
        let obeyed = Value::String("a\u{202e}\x1b\n\"\\".into());
        assert_eq!(parameters_text(&[obeyed]), r#"["a\u{202e}\u{1b}\n\"\\"]"#);
        assert_eq!(parameters_text(&[]), "");
    }
}
