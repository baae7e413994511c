//! CBOR and MessagePack as JSON values, to see what fields messages have.

use serde_json::{Map, Value};

use super::fields::NO_NUMBER;

/// Levels of nested maps and arrays.
const DEPTH: usize = 32;

/// Reads one CBOR value that fills the payload.
pub(super) fn cbor(payload: &[u8]) -> Option<Value> {
    let mut bytes = Bytes(payload);
    let value = bytes.cbor(DEPTH)?;
    bytes.0.is_empty().then_some(value)
}

/// Reads one MessagePack value that fills the payload.
pub(super) fn msgpack(payload: &[u8]) -> Option<Value> {
    let mut bytes = Bytes(payload);
    let value = bytes.msgpack(DEPTH)?;
    bytes.0.is_empty().then_some(value)
}

/// Remaining bytes of a payload.
struct Bytes<'p>(&'p [u8]);

impl<'p> Bytes<'p> {
    fn take(&mut self, length: u64) -> Option<&'p [u8]> {
        let (taken, rest) = self.0.split_at_checked(usize::try_from(length).ok()?)?;
        self.0 = rest;
        Some(taken)
    }

    /// A big-endian number of so many bytes.
    fn number(&mut self, length: u64) -> Option<u64> {
        Some(self.take(length)?.iter().fold(0, |number, byte| number << 8 | u64::from(*byte)))
    }

    fn text(&mut self, length: u64) -> Option<Value> {
        Some(Value::String(std::str::from_utf8(self.take(length)?).ok()?.to_owned()))
    }

    /// An array; `read` reads an element.
    fn array(&mut self, length: u64, read: impl Fn(&mut Self) -> Option<Value>) -> Option<Value> {
        // Each element takes a byte at least: a length that is a lie ends soon.
        (0..length).map(|_| read(self)).collect::<Option<Vec<_>>>().map(Value::Array)
    }

    /// A map; `read` reads a key or a value. Keys are texts or integers.
    fn map(&mut self, length: u64, read: impl Fn(&mut Self) -> Option<Value>) -> Option<Value> {
        let mut members = Map::new();
        for _ in 0..length {
            let key = key(read(self)?)?;
            members.insert(key, read(self)?);
        }
        Some(Value::Object(members))
    }

    fn cbor(&mut self, depth: usize) -> Option<Value> {
        let depth = depth.checked_sub(1)?;
        let head = self.number(1)?;
        let (major, low) = (head >> 5, head & 31);
        if major == 7 {
            return match low {
                20 | 21 => Some(Value::Bool(low == 21)),
                0..=19 | 22 | 23 => Some(Value::Null),
                24 => self.take(1).map(|_| Value::Null),
                25 => Some(float(half(self.number(2)? as u16))),
                26 => Some(float(f64::from(f32::from_bits(self.number(4)? as u32)))),
                27 => Some(float(f64::from_bits(self.number(8)?))),
                _ => None,
            };
        }
        let length = match low {
            0..=23 => Some(low),
            24..=27 => Some(self.number(1 << (low - 24))?),
            31 => None,
            _ => return None,
        };
        let is_end = |bytes: &mut Self| bytes.0.first() == Some(&0xff);
        match (major, length) {
            (0, Some(number)) => Some(Value::from(number)),
            (1, Some(number)) => {
                let number = i64::try_from(number).ok().map(|number| Value::from(-1 - number));
                Some(number.unwrap_or(Value::Null))
            }
            (2, Some(length)) => self.take(length).map(|_| Value::Null),
            (3, Some(length)) => self.text(length),
            (4, Some(length)) => self.array(length, |bytes| bytes.cbor(depth)),
            (5, Some(length)) => self.map(length, |bytes| bytes.cbor(depth)),
            (6, Some(_)) => self.cbor(depth),
            (2..=5, None) => {
                let (mut parts, mut members) = (Vec::new(), Map::new());
                while !is_end(self) {
                    let part = self.cbor(depth)?;
                    match major {
                        5 => _ = members.insert(key(part)?, self.cbor(depth)?),
                        _ => parts.push(part),
                    }
                }
                self.take(1)?;
                Some(match major {
                    2 => Value::Null,
                    3 => Value::String(parts.iter().filter_map(Value::as_str).collect()),
                    4 => Value::Array(parts),
                    _ => Value::Object(members),
                })
            }
            _ => None,
        }
    }

    fn msgpack(&mut self, depth: usize) -> Option<Value> {
        let depth = depth.checked_sub(1)?;
        let head = self.number(1)?;
        let element = |bytes: &mut Self| bytes.msgpack(depth);
        match head {
            0x00..=0x7f => Some(Value::from(head)),
            0x80..=0x8f => self.map(head & 15, element),
            0x90..=0x9f => self.array(head & 15, element),
            0xa0..=0xbf => self.text(head & 31),
            0xc0 => Some(Value::Null),
            0xc2 | 0xc3 => Some(Value::Bool(head == 0xc3)),
            0xc4..=0xc6 => {
                let length = self.number(1 << (head - 0xc4))?;
                self.take(length).map(|_| Value::Null)
            }
            0xc7..=0xc9 => {
                let length = self.number(1 << (head - 0xc7))?;
                self.take(length.checked_add(1)?).map(|_| Value::Null)
            }
            0xca => Some(float(f64::from(f32::from_bits(self.number(4)? as u32)))),
            0xcb => Some(float(f64::from_bits(self.number(8)?))),
            0xcc..=0xcf => self.number(1 << (head - 0xcc)).map(Value::from),
            0xd0..=0xd3 => {
                let length = 1 << (head - 0xd0);
                let unused = 64 - 8 * length as u32;
                Some(Value::from((self.number(length)? << unused) as i64 >> unused))
            }
            0xd4..=0xd8 => self.take((1 << (head - 0xd4)) + 1).map(|_| Value::Null),
            0xd9..=0xdb => {
                let length = self.number(1 << (head - 0xd9))?;
                self.text(length)
            }
            0xdc | 0xdd => {
                let length = self.number(2 << (head - 0xdc))?;
                self.array(length, element)
            }
            0xde | 0xdf => {
                let length = self.number(2 << (head - 0xde))?;
                self.map(length, element)
            }
            0xe0..=0xff => Some(Value::from(head as i64 - 256)),
            _ => None,
        }
    }
}

/// A key of a map, as a path names it.
fn key(value: Value) -> Option<String> {
    match value {
        Value::String(text) => Some(text),
        Value::Number(number) if !number.is_f64() => Some(number.to_string()),
        _ => None,
    }
}

/// A number; [`NO_NUMBER`] if it is not finite.
fn float(number: f64) -> Value {
    Value::from(if number.is_finite() { number } else { NO_NUMBER })
}

fn half(bits: u16) -> f64 {
    let (exponent, fraction) = (i32::from(bits >> 10 & 31), f64::from(bits & 0x3ff));
    let size = match exponent {
        0 => fraction * 2f64.powi(-24),
        31 => f64::NAN,
        _ => (1024.0 + fraction) * 2f64.powi(exponent - 25),
    };
    if bits >> 15 == 1 { -size } else { size }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn values_of_cbor() {
        let map = [0xbf, 0x61, b'a', 0x39, 0x01, 0xf3, 0x02, 0x9f, 0xf9, 0x3c, 0x00, 0xff, 0xff];
        assert_eq!(cbor(&map), Some(json!({"a": -500, "2": [1.0]})));
        let text = [0xa1, 0x61, b't', 0x7f, 0x61, b'x', 0x62, b'y', b'z', 0xff];
        assert_eq!(cbor(&text), Some(json!({"t": "xyz"})));
        let tagged = [0xc1, 0xfb, 0x40, 0x09, 0x21, 0xfb, 0x54, 0x44, 0x2d, 0x18];
        assert_eq!(cbor(&tagged), Some(json!(std::f64::consts::PI)));
        assert_eq!(cbor(&[0xa1, 0x61, b'a']), None);
        assert_eq!(cbor(&[0x01, 0x02]), None);
    }

    #[test]
    fn values_of_msgpack() {
        let map = [0x83, 0xa1, b'a', 0xd1, 0xfe, 0x0c, 2, 0x91, 0xc3, 0xa1, b'c', 0xca, 0x3f, 0x80, 0, 0];
        assert_eq!(msgpack(&map), Some(json!({"a": -500, "2": [true], "c": 1.0})));
        assert_eq!(msgpack(&[0xff]), Some(json!(-1)));
        assert_eq!(msgpack(&[0xdb, 0xff, 0xff, 0xff, 0xff]), None);
        assert_eq!(msgpack(&[0xc1]), None);
    }
}
