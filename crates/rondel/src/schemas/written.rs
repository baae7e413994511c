//! Messages of a type in CDR, written from JSON.

use std::collections::HashSet;

use rondel_decode::schema::{Definition, Enum, Extensibility, Primitive, Schema, Struct, Type, TypeId};
use rondel_event::Timestamp;
use serde_json::Value;

/// The bytes before a message in little-endian CDR.
const ENCODING: [u8; 4] = [0, 1, 0, 0];
/// Name of the member that ROS 2 gives to types without members.
const FILLER: &str = "structure_needs_at_least_one_member";
/// The text that stands for the time of sending, in place of a structure with seconds and nanoseconds.
const NOW: &str = "now";
/// The largest message whose fields may be left out, in bytes.
const LARGEST: usize = 16 << 20;

/// A value that does not fit its type.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unfit {
    /// Path of the field; empty for the message itself.
    path: String,
    /// The mistake.
    reason: String,
}

impl std::fmt::Display for Unfit {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self.path.as_str() {
            "" => f.write_str(&self.reason),
            path => write!(f, "`{path}`: {}", self.reason),
        }
    }
}

impl Unfit {
    /// The names of the members and the positions of the elements, from the message to the field.
    pub fn path(&self) -> impl Iterator<Item = &str> {
        self.path.split('.').filter(|part| !part.is_empty())
    }
}

/// A message with times in it that are those of sending.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Stamped {
    payload: Vec<u8>,
    stamps: Vec<Stamp>,
}

/// Place of a time in a message: offset and size of the seconds and of the nanoseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Stamp {
    seconds: (usize, usize),
    nanos: (usize, usize),
}

impl From<Vec<u8>> for Stamped {
    /// A message without such times.
    fn from(payload: Vec<u8>) -> Stamped {
        Stamped { payload, stamps: Vec::new() }
    }
}

impl Stamped {
    /// The message as it is sent at this time.
    pub fn at(&mut self, time: Timestamp) -> &[u8] {
        let nanos = time.as_nanos();
        for stamp in &self.stamps {
            let parts = [
                (stamp.seconds, nanos.div_euclid(1_000_000_000)),
                (stamp.nanos, nanos.rem_euclid(1_000_000_000)),
            ];
            for ((at, size), value) in parts {
                if let Some(place) = self.payload.get_mut(at..at + size) {
                    place.copy_from_slice(&value.to_le_bytes()[..size]);
                }
            }
        }
        &self.payload
    }
}

/// Returns a message in CDR of which fields may be left out: they are zero, false or empty. `header.stamp` is then the time
/// of sending, and so is `now` in place of a structure of seconds and nanoseconds.
///
/// # Errors
/// [`Unfit`], the first field that is unknown, or has a value of another type.
pub fn write_partial(schema: &Schema, message: &Value) -> Result<Stamped, Unfit> {
    let (out, path) = (ENCODING.to_vec(), Vec::new());
    let mut writer = Writer { schema, out, path, stamps: Some(Vec::new()) };
    writer.structure(schema.root(), message)?;
    Ok(Stamped { payload: writer.out, stamps: writer.stamps.unwrap_or_default() })
}

/// Returns a message in CDR with the bytes of its encoding.
///
/// # Errors
/// [`Unfit`], the first field that is missing, is unknown, or has a value of another type.
pub fn write_message(schema: &Schema, message: &Value) -> Result<Vec<u8>, Unfit> {
    let mut writer = Writer { schema, out: ENCODING.to_vec(), path: Vec::new(), stamps: None };
    writer.structure(schema.root(), message)?;
    Ok(writer.out)
}

/// Checks a value of a type that is no structure, list or union.
///
/// # Errors
/// [`Unfit`]
pub fn check_value(schema: &Schema, of: &Type, value: &Value) -> Result<(), Unfit> {
    Writer { schema, out: ENCODING.to_vec(), path: Vec::new(), stamps: None }.value(of, value)
}

/// Whether a structure is one without members, to which ROS 2 adds one.
pub fn is_empty(structure: &Struct) -> bool {
    matches!(&structure.members[..], [only] if &*only.name == FILLER)
}

/// Returns the reason why messages of a type cannot be written, if they cannot.
pub fn unwritable(schema: &Schema) -> Option<String> {
    let mut seen = HashSet::new();
    let reason = unwritable_structure(schema, schema.root(), &mut seen)?;
    Some(format!("messages of {} cannot be written: {reason}", schema.name()))
}

fn unwritable_structure(schema: &Schema, structure: &Struct, seen: &mut HashSet<TypeId>) -> Option<String> {
    if structure.extensibility == Some(Extensibility::Mutable) {
        return Some("the type is mutable".to_owned());
    }
    structure.members.iter().find_map(|member| match member.optional {
        true => Some(format!("the field `{}` is optional", member.name)),
        false => unwritable_type(schema, &member.name, &member.member_type, seen),
    })
}

fn unwritable_type(schema: &Schema, name: &str, of: &Type, seen: &mut HashSet<TypeId>) -> Option<String> {
    match of {
        Type::Primitive(Primitive::WChar) | Type::String { wide: true, .. } => {
            Some(format!("the field `{name}` has characters of 16 bits"))
        }
        Type::Primitive(_) | Type::String { .. } => None,
        Type::Array { element, .. } | Type::Sequence { element, .. } => {
            unwritable_type(schema, name, element, seen)
        }
        Type::Named(id) if !seen.insert(*id) => None,
        Type::Named(id) => match schema.definition(*id) {
            Definition::Struct(structure) => unwritable_structure(schema, structure, seen),
            Definition::Union(_) => Some(format!("the field `{name}` is a union")),
            Definition::Enum(_) | Definition::Bitmask(_) => None,
            Definition::Alias(of) => unwritable_type(schema, name, of, seen),
        },
    }
}

/// The bytes of a message so far, and the field that is being written.
struct Writer<'s> {
    schema: &'s Schema,
    out: Vec<u8>,
    path: Vec<String>,
    /// The times of sending, if fields may be left out.
    stamps: Option<Vec<Stamp>>,
}

type Written = Result<(), Unfit>;

impl<'s> Writer<'s> {
    fn unfit(&self, reason: impl Into<String>) -> Unfit {
        Unfit { path: self.path.join("."), reason: reason.into() }
    }

    fn other(&self, wanted: &str, value: &Value) -> Unfit {
        self.unfit(format!("{} is no {wanted}", shown(value)))
    }

    /// Appends bytes at a multiple of their number.
    fn bytes(&mut self, bytes: &[u8]) {
        let at = self.out.len() - ENCODING.len();
        let padding = at.next_multiple_of(bytes.len().max(1)) - at;
        self.out.resize(self.out.len() + padding, 0);
        self.out.extend_from_slice(bytes);
    }

    fn value(&mut self, of: &'s Type, value: &Value) -> Written {
        match of {
            Type::Primitive(primitive) => self.primitive(*primitive, value),
            Type::String { bound, wide: false } => self.text(*bound, value),
            Type::String { wide: true, .. } => Err(self.unfit("it has characters of 16 bits")),
            Type::Array { element, dimensions } => self.array(element, dimensions, value),
            Type::Sequence { element, bound } => {
                let items = value.as_array().ok_or_else(|| self.other("list", value))?;
                let count = u32::try_from(items.len()).unwrap_or(u32::MAX);
                if bound.is_some_and(|bound| count > bound) {
                    return Err(
                        self.unfit(format!("{count} elements, and at most {} fit", bound.unwrap_or(0)))
                    );
                }
                self.bytes(&count.to_le_bytes());
                self.elements(items, |writer, item| writer.value(element, item))
            }
            Type::Named(id) => match self.schema.definition(*id) {
                Definition::Struct(structure) => self.structure(structure, value),
                Definition::Union(_) => Err(self.unfit("it is a union")),
                Definition::Enum(enumeration) => self.enumeration(enumeration, value),
                Definition::Bitmask(mask) => self.primitive(mask.holder(), value),
                // A schema contains none.
                Definition::Alias(of) => self.value(of, value),
            },
        }
    }

    fn elements(&mut self, items: &[Value], mut write: impl FnMut(&mut Self, &Value) -> Written) -> Written {
        for (number, item) in items.iter().enumerate() {
            self.path.push(number.to_string());
            write(self, item)?;
            self.path.pop();
        }
        Ok(())
    }

    fn array(&mut self, element: &'s Type, dimensions: &'s [u32], value: &Value) -> Written {
        let Some((size, rest)) = dimensions.split_first() else { return self.value(element, value) };
        let items = value.as_array().ok_or_else(|| self.other("list", value))?;
        if items.len() != *size as usize {
            return Err(self.unfit(format!("{} elements instead of {size}", items.len())));
        }
        self.elements(items, |writer, item| writer.array(element, rest, item))
    }

    fn structure(&mut self, structure: &'s Struct, value: &Value) -> Written {
        if let Some(stamp) = structure.stamp().filter(|_| self.stamps.is_some() && *value == NOW) {
            return self.now(structure, stamp);
        }
        if let (Some(stamp), Some(text)) = (structure.stamp(), value.as_str()) {
            return self.time(structure, stamp, text);
        }
        let members = value.as_object().ok_or_else(|| self.other("mapping of fields", value))?;
        let is_known = |name: &str| structure.members.iter().any(|member| *member.name == *name);
        if let Some(name) = members.keys().find(|name| !is_known(name)) {
            return Err(self.unfit(format!("there is no field `{name}`")));
        }
        for member in &structure.members {
            self.path.push(member.name.to_string());
            match members.get(&*member.name) {
                Some(value) => self.value(&member.member_type, value)?,
                None if *member.name == *FILLER => self.bytes(&[0]),
                None if self.stamps.is_some() => self.left_out(&member.member_type)?,
                None => return Err(self.unfit("the field is missing")),
            }
            self.path.pop();
        }
        Ok(())
    }

    /// Writes a field that is left out.
    fn left_out(&mut self, of: &'s Type) -> Written {
        if self.out.len() > LARGEST {
            return Err(self.unfit(format!("the message is larger than {} MiB", LARGEST >> 20)));
        }
        match of {
            Type::Primitive(primitive) => self.bytes(&[0; 8][..primitive.size() as usize]),
            // An empty text has its zero byte.
            Type::String { wide: false, .. } => {
                self.bytes(&1_u32.to_le_bytes());
                self.out.push(0);
            }
            Type::String { wide: true, .. } | Type::Sequence { .. } => self.bytes(&0_u32.to_le_bytes()),
            Type::Array { element, dimensions } => {
                let count = dimensions.iter().fold(1_u64, |all, size| all.saturating_mul((*size).into()));
                for _ in 0..count {
                    self.left_out(element)?;
                }
            }
            Type::Named(id) => match self.schema.definition(*id) {
                Definition::Struct(structure) => self.left_out_structure(structure)?,
                Definition::Union(_) => return Err(self.unfit("it is a union")),
                Definition::Enum(enumeration) => {
                    let is_zero = |(_, number): &&(Box<str>, i32)| *number == 0;
                    let constants = &enumeration.constants;
                    let number =
                        constants.iter().find(is_zero).or(constants.first()).map_or(0, |(_, own)| *own);
                    self.primitive(enumeration.holder(), &Value::from(number))?;
                }
                Definition::Bitmask(mask) => self.bytes(&[0; 8][..mask.holder().size() as usize]),
                // A schema contains none.
                Definition::Alias(of) => self.left_out(of)?,
            },
        }
        Ok(())
    }

    fn left_out_structure(&mut self, structure: &'s Struct) -> Written {
        if let Some(stamp) = structure.stamp().filter(|_| self.path == ["header", "stamp"]) {
            return self.now(structure, stamp);
        }
        for member in &structure.members {
            self.path.push(member.name.to_string());
            self.left_out(&member.member_type)?;
            self.path.pop();
        }
        Ok(())
    }

    /// Leaves room for the time of sending in the members for seconds and nanoseconds, which are at these positions.
    fn now(&mut self, structure: &'s Struct, (seconds, nanos): (usize, usize)) -> Written {
        let mut stamp = Stamp::default();
        for (position, member) in structure.members.iter().enumerate() {
            self.left_out(&member.member_type)?;
            let Type::Primitive(primitive) = member.member_type else { continue };
            let size = primitive.size() as usize;
            let place = (self.out.len() - size, size);
            if position == seconds {
                stamp.seconds = place;
            } else if position == nanos {
                stamp.nanos = place;
            }
        }
        self.stamps.iter_mut().for_each(|stamps| stamps.push(stamp));
        Ok(())
    }

    /// Writes a time of day to the members for seconds and nanoseconds, which are at these positions.
    fn time(&mut self, structure: &'s Struct, (seconds, nanos): (usize, usize), text: &str) -> Written {
        let time: jiff::Timestamp =
            text.parse().map_err(|_| self.unfit(format!("\"{text}\" is no time of day")))?;
        let all = time.as_nanosecond();
        for (position, member) in structure.members.iter().enumerate() {
            let part = match position {
                _ if position == seconds => all.div_euclid(1_000_000_000),
                _ if position == nanos => all.rem_euclid(1_000_000_000),
                _ => 0,
            };
            // The seconds of such a time fit into 64 bits.
            self.value(&member.member_type, &Value::from(part as i64))?;
        }
        Ok(())
    }

    fn enumeration(&mut self, enumeration: &Enum, value: &Value) -> Written {
        let constants = enumeration.constants.iter();
        let found = match value {
            Value::String(name) => constants.clone().find(|(own, _)| **own == **name),
            _ => constants.clone().find(|(_, own)| value.as_i64() == Some(i64::from(*own))),
        };
        let Some((_, number)) = found else {
            let names: Vec<&str> = constants.map(|(name, _)| &**name).collect();
            return Err(self.unfit(format!("{} is none of {}", shown(value), names.join(", "))));
        };
        self.primitive(enumeration.holder(), &Value::from(*number))
    }

    fn primitive(&mut self, of: Primitive, value: &Value) -> Written {
        match of {
            Primitive::Bool => {
                let value = value.as_bool().ok_or_else(|| self.other("boolean", value))?;
                self.bytes(&[u8::from(value)]);
            }
            Primitive::Float32 => {
                let value = self.number(value)? as f32;
                self.bytes(&value.to_le_bytes());
            }
            Primitive::Float64 => {
                let value = self.number(value)?;
                self.bytes(&value.to_le_bytes());
            }
            Primitive::Char | Primitive::WChar => {
                let text = value.as_str().and_then(|text| u8::try_from(text.chars().next()?).ok());
                let is_one = value.as_str().is_some_and(|text| text.len() == 1);
                let number = value.as_u64().and_then(|number| u8::try_from(number).ok());
                match text.filter(|_| is_one && of == Primitive::Char).or(number) {
                    Some(byte) if of == Primitive::Char => self.bytes(&[byte]),
                    _ => return Err(self.other("character", value)),
                }
            }
            integer => self.integer(integer, value)?,
        }
        Ok(())
    }

    /// Reads a number; an unknown one is NaN.
    fn number(&self, value: &Value) -> Result<f64, Unfit> {
        match value {
            Value::Null => Ok(f64::NAN),
            _ => value.as_f64().ok_or_else(|| self.other("number", value)),
        }
    }

    fn integer(&mut self, of: Primitive, value: &Value) -> Written {
        let whole = value.as_i64().map(i128::from).or(value.as_u64().map(i128::from));
        // A measured value may be a whole number without being an integer.
        let whole = whole.or_else(|| {
            value
                .as_f64()
                .filter(|value| value.fract() == 0.0 && value.abs() < 1e18)
                .map(|value| value as i128)
        });
        let whole = whole.ok_or_else(|| self.other("whole number", value))?;
        let (least, most) = of.range().unwrap_or((0, 0));
        if !(least..=most).contains(&whole) {
            return Err(self.unfit(format!("{whole} is not from {least} to {most}")));
        }
        let bytes = whole.to_le_bytes();
        self.bytes(&bytes[..of.size() as usize]);
        Ok(())
    }

    fn text(&mut self, bound: Option<u32>, value: &Value) -> Written {
        let text = value.as_str().ok_or_else(|| self.other("text", value))?;
        if text.contains('\0') {
            return Err(self.unfit("a text in CDR contains no zero byte"));
        }
        let length = u32::try_from(text.len()).ok().filter(|length| *length < u32::MAX);
        let length = length.filter(|length| bound.is_none_or(|bound| *length <= bound));
        let Some(length) = length else {
            let most = bound.unwrap_or(u32::MAX - 1);
            return Err(self.unfit(format!("the text has {} bytes, and at most {most} fit", text.len())));
        };
        self.bytes(&(length + 1).to_le_bytes());
        self.out.extend_from_slice(text.as_bytes());
        self.out.push(0);
        Ok(())
    }
}

/// Returns a value for a message, cut off if it is long.
fn shown(value: &Value) -> String {
    const LONGEST: usize = 40;
    let text = value.to_string();
    match text.char_indices().nth(LONGEST) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text,
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use rondel_decode::json::JsonForm;
    use rondel_decode::schema::Library;
    use serde_json::json;

    use super::*;

    fn schema(name: &str) -> Schema {
        let mut library = Library::ros().unwrap();
        let text = "bool on\nint16 level\nfloat64 value\nstring<=3 name\nuint8[2] pair\nint32[] list\n\
                    builtin_interfaces/Time at\n";
        library.add_msg("demo_msgs/msg/Alarm", text).unwrap();
        library.add_msg("demo_msgs/msg/Wide", "wstring text\n").unwrap();
        library.schema(name).unwrap()
    }

    fn alarm() -> Value {
        json!({
            "on": true, "level": -2, "value": 0.5, "name": "abc", "pair": [1, 2], "list": [7],
            "at": "1970-01-01T00:00:03.5Z",
        })
    }

    #[test]
    fn message_is_aligned_as_in_cdr() {
        assert_eq!(
            write_message(&schema("std_msgs/msg/Bool"), &json!({"data": true})).unwrap(),
            [0, 1, 0, 0, 1]
        );
        let expected: Vec<u8> = [
            &[0, 1, 0, 0][..],
            &[1, 0, 254, 255, 0, 0, 0, 0],
            &0.5f64.to_le_bytes(),
            &[4, 0, 0, 0, b'a', b'b', b'c', 0],
            &[1, 2, 0, 0, 1, 0, 0, 0, 7, 0, 0, 0],
            &[3, 0, 0, 0],
            &500_000_000u32.to_le_bytes(),
        ]
        .concat();
        assert_eq!(write_message(&schema("demo_msgs/msg/Alarm"), &alarm()).unwrap(), expected);
        assert_eq!(write_message(&schema("std_msgs/msg/Empty"), &json!({})).unwrap(), [0, 1, 0, 0, 0]);
    }

    #[test]
    fn written_message_is_read_back() {
        let schema = schema("demo_msgs/msg/Alarm");
        let message = write_message(&schema, &alarm()).unwrap();
        let mut text = Vec::new();
        rondel_decode::cdr::write_json(&schema, &message, JsonForm::READABLE, 1 << 16, &mut text).unwrap();
        let read: Value = serde_json::from_slice(&text).unwrap();
        assert_eq!((&read["level"], &read["name"], &read["list"]), (&json!(-2), &json!("abc"), &json!([7])));
    }

    #[test]
    fn fields_that_are_left_out_are_zero_and_headers_have_the_time_of_sending() {
        let written = |name: &str, message: Value| {
            let schema = schema(name);
            let mut message = write_partial(&schema, &message).unwrap();
            let (mut text, payload) = (Vec::new(), message.at(Timestamp::from_nanos(7_000_000_009)));
            rondel_decode::cdr::write_json(&schema, payload, JsonForm::READABLE, 1 << 16, &mut text).unwrap();
            serde_json::from_slice::<Value>(&text).unwrap()
        };
        let alarm = written("demo_msgs/msg/Alarm", json!({"level": 3, "at": "now"}));
        assert_eq!((&alarm["on"], &alarm["level"], &alarm["name"]), (&json!(false), &json!(3), &json!("")));
        assert_eq!((&alarm["pair"], &alarm["list"]), (&json!([0, 0]), &json!([])));
        assert_eq!(alarm["at"], json!({"sec": 7, "nanosec": 9}));
        let twist = written("geometry_msgs/msg/TwistStamped", json!({"twist": {"linear": {"x": 0.5}}}));
        assert_eq!(twist["header"]["stamp"], json!({"sec": 7, "nanosec": 9}));
        let own = json!({"header": {"stamp": {"sec": 3}}});
        let twist = written("geometry_msgs/msg/TwistStamped", own);
        assert_eq!(twist["header"]["stamp"], json!({"sec": 3, "nanosec": 0}));
        let unfit = write_partial(&schema("demo_msgs/msg/Alarm"), &json!({"pair": [1, true]})).unwrap_err();
        assert_eq!(unfit.path().collect::<Vec<_>>(), ["pair", "1"]);
    }

    #[test]
    fn mistakes_name_the_field() {
        let of = schema("demo_msgs/msg/Alarm");
        for (name, value, expected) in [
            ("on", json!(1), "`on`: 1 is no boolean"),
            ("level", json!(40_000), "`level`: 40000 is not from -32768 to 32767"),
            ("level", json!(1.5), "`level`: 1.5 is no whole number"),
            ("value", json!("x"), "`value`: \"x\" is no number"),
            ("name", json!("abcd"), "`name`: the text has 4 bytes, and at most 3 fit"),
            ("name", json!("a\0"), "`name`: a text in CDR contains no zero byte"),
            ("pair", json!([1]), "`pair`: 1 elements instead of 2"),
            ("pair", json!([1, true]), "`pair.1`: true is no whole number"),
            ("at", json!("noon"), "`at`: \"noon\" is no time of day"),
            ("at", json!({"sec": 1}), "`at.nanosec`: the field is missing"),
            ("other", json!(1), "there is no field `other`"),
        ] {
            let mut message = alarm();
            message[name] = value;
            assert_eq!(write_message(&of, &message).unwrap_err().to_string(), expected);
        }
        let nothing = write_message(&of, &json!(1)).unwrap_err();
        assert_eq!(nothing.to_string(), "1 is no mapping of fields");
        assert_eq!(unwritable(&of), None);
        let wide = unwritable(&schema("demo_msgs/msg/Wide")).unwrap();
        assert!(wide.contains("`text` has characters of 16 bits"), "{wide}");
    }
}
