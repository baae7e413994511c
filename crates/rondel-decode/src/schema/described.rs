//! Descriptions of types by nodes of ROS 2: the answer of the service `get_type_description`
//! (`type_description_interfaces/srv/GetTypeDescription`), in CDR.

use rondel_event::terminal;

use super::library::filed_name;
use super::{Definition, Library, MAX_TYPES, Member, Primitive, SchemaError, Struct, Type};

/// Offsets of the number of an element's type for arrays, bounded sequences, and sequences.
const ARRAY: u8 = 48;
const BOUNDED: u8 = 96;
const SEQUENCE: u8 = 144;

/// Adds the types of an answer to a library; returns the name of the requested type.
pub(super) fn parse(library: &mut Library, answer: &[u8]) -> Result<String, SchemaError> {
    let mut reader = Reader::new(answer)?;
    let (is_successful, reason) = (reader.bytes::<1>()? != [0], reader.text()?);
    if !is_successful {
        let reason = terminal::escaped_beginning(reason, 300);
        return Err(SchemaError::new(format!("the node does not describe it: {reason}")));
    }
    let name = structure(library, &mut reader)?;
    let count = reader.word()?;
    if count as usize > MAX_TYPES {
        return Err(SchemaError::new(format!("it is made of {count} types; at most {MAX_TYPES} are read")));
    }
    for _ in 0..count {
        structure(library, &mut reader)?;
    }
    Ok(name)
}

fn structure(library: &mut Library, reader: &mut Reader<'_>) -> Result<String, SchemaError> {
    let name = reader.text()?.to_owned();
    let count = reader.word()?;
    let mut members = Vec::new();
    for id in 0..count {
        let member = reader.text()?.into();
        let number = reader.bytes::<1>()?[0];
        let (capacity, string_capacity) = (reader.long()?, reader.long()?);
        let nested = reader.text()?;
        let member_type = type_of(library, number, capacity, string_capacity, nested).ok_or_else(|| {
            SchemaError::new(format!("{name}.{member} has the type {number}, which is not read"))
        })?;
        let _default = reader.text()?;
        members.push(Member { name: member, member_type, id, key: false, optional: false });
    }
    let structure = Struct { extensibility: None, members, constants: Vec::new() };
    library.define(&filed_name(&name), Definition::Struct(structure)).map_err(SchemaError::new)?;
    Ok(name)
}

fn type_of(library: &mut Library, number: u8, capacity: u64, string: u64, nested: &str) -> Option<Type> {
    let bound = || u32::try_from(capacity).ok().filter(|bound| *bound > 0);
    let mut element = |number| element(library, number, string, nested).map(Box::new);
    Some(if number > SEQUENCE {
        Type::Sequence { element: element(number - SEQUENCE)?, bound: None }
    } else if number > BOUNDED {
        Type::Sequence { element: element(number - BOUNDED)?, bound: Some(bound()?) }
    } else if number > ARRAY {
        Type::Array { element: element(number - ARRAY)?, dimensions: Box::new([bound()?]) }
    } else {
        *element(number)?
    })
}

fn element(library: &mut Library, number: u8, string: u64, nested: &str) -> Option<Type> {
    let text = |wide, bound| Some(Type::String { bound, wide });
    let bound = || u32::try_from(string).ok().filter(|bound| *bound > 0);
    Some(Type::Primitive(match number {
        1 if !nested.is_empty() => return Some(Type::Named(library.mention(&filed_name(nested)))),
        2 => Primitive::Int8,
        3 => Primitive::Uint8,
        4 => Primitive::Int16,
        5 => Primitive::Uint16,
        6 => Primitive::Int32,
        7 => Primitive::Uint32,
        8 => Primitive::Int64,
        9 => Primitive::Uint64,
        10 => Primitive::Float32,
        11 => Primitive::Float64,
        13 => Primitive::Char,
        14 => Primitive::WChar,
        15 => Primitive::Bool,
        16 => Primitive::Octet,
        17 => return text(false, None),
        18 => return text(true, None),
        21 => return text(false, Some(bound()?)),
        22 => return text(true, Some(bound()?)),
        _ => return None,
    }))
}

/// Sequential reader of CDR. Memory is not reserved for unchecked lengths.
struct Reader<'a> {
    /// Bytes after the header.
    rest: &'a [u8],
    at: usize,
    is_little: bool,
}

impl<'a> Reader<'a> {
    fn new(bytes: &'a [u8]) -> Result<Reader<'a>, SchemaError> {
        match bytes.split_first_chunk::<4>() {
            Some(([0, order @ (0 | 1), ..], rest)) => Ok(Reader { rest, at: 0, is_little: *order == 1 }),
            _ => Err(SchemaError::new("the answer is not in CDR")),
        }
    }

    fn take(&mut self, count: usize) -> Result<&'a [u8], SchemaError> {
        let end = self.at.checked_add(count);
        let taken = end.and_then(|end| self.rest.get(self.at..end));
        let taken = taken
            .ok_or_else(|| SchemaError::new(format!("the answer ends at byte {}", self.rest.len() + 4)))?;
        self.at += count;
        Ok(taken)
    }

    /// Reads a value of `N` bytes, aligned to `N`.
    fn bytes<const N: usize>(&mut self) -> Result<[u8; N], SchemaError> {
        self.take(self.at.next_multiple_of(N) - self.at)?;
        let mut bytes = [0; N];
        bytes.copy_from_slice(self.take(N)?);
        if !self.is_little {
            bytes.reverse();
        }
        Ok(bytes)
    }

    fn word(&mut self) -> Result<u32, SchemaError> {
        self.bytes().map(u32::from_le_bytes)
    }

    fn long(&mut self) -> Result<u64, SchemaError> {
        self.bytes().map(u64::from_le_bytes)
    }

    fn text(&mut self) -> Result<&'a str, SchemaError> {
        let length = self.word()? as usize;
        let text = self.take(length)?.strip_suffix(&[0]).and_then(|text| std::str::from_utf8(text).ok());
        text.ok_or_else(|| SchemaError::new(format!("the answer has no text at byte {}", self.at + 4)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Writer(Vec<u8>);

    impl Writer {
        fn value<const N: usize>(&mut self, bytes: [u8; N]) -> &mut Writer {
            self.0.resize((self.0.len() - 4).next_multiple_of(N) + 4, 0);
            self.0.extend_from_slice(&bytes);
            self
        }

        fn text(&mut self, text: &str) -> &mut Writer {
            self.value((text.len() as u32 + 1).to_le_bytes());
            self.0.extend_from_slice(text.as_bytes());
            self.0.push(0);
            self
        }

        fn field(&mut self, name: &str, number: u8, capacity: u64, string: u64, nested: &str) -> &mut Writer {
            self.text(name).value([number]).value(capacity.to_le_bytes()).value(string.to_le_bytes());
            self.text(nested).text("")
        }
    }

    fn answer() -> Vec<u8> {
        let mut writer = Writer(vec![0, 1, 0, 0]);
        writer.value([1]).text("");
        writer.text("rover_msgs/msg/Pack").value(7u32.to_le_bytes());
        writer.field("cells", 1 + SEQUENCE, 0, 0, "rover_msgs/msg/Cell");
        writer.field("name", 21, 0, 9, "").field("limits", 11 + ARRAY, 3, 0, "");
        writer.field("codes", 7 + BOUNDED, 5, 0, "").field("at", 1, 0, 0, "builtin_interfaces/msg/Time");
        writer.field("words", 17 + SEQUENCE, 0, 0, "").field("ok", 15, 0, 0, "");
        writer.value(2u32.to_le_bytes());
        writer.text("builtin_interfaces/msg/Time").value(2u32.to_le_bytes());
        writer.field("sec", 6, 0, 0, "").field("nanosec", 7, 0, 0, "");
        writer.text("rover_msgs/msg/Cell").value(1u32.to_le_bytes()).field("volts", 10, 0, 0, "");
        writer.value(0u32.to_le_bytes()).value(0u32.to_le_bytes());
        writer.0
    }

    #[test]
    fn a_described_type_is_the_one_of_its_file() {
        let mut library = Library::ros().unwrap();
        assert_eq!(library.add_description(&answer()).unwrap(), "rover_msgs/msg/Pack");
        let mut files = Library::ros().unwrap();
        files.add_msg("rover_msgs/msg/Cell", "float32 volts").unwrap();
        let text = "Cell[] cells\nstring<=9 name\nfloat64[3] limits\nuint32[<=5] codes\n\
                    builtin_interfaces/Time at\nstring[] words\nbool ok";
        files.add_msg("rover_msgs/msg/Pack", text).unwrap();
        let [described, of_file] =
            [library, files].map(|library| library.schema("rover_msgs/msg/Pack").unwrap());
        assert!(described.rihs01().is_some());
        assert_eq!(described.rihs01(), of_file.rihs01());
    }

    #[test]
    fn bad_answers_are_refused() {
        let answer = answer();
        // The lists at the end are not read, nor the three bytes before them.
        for length in 0..answer.len() - 11 {
            let mut library = Library::ros().unwrap();
            assert!(library.add_description(&answer[..length]).is_err(), "{length}");
            assert!(library.schema("rover_msgs/msg/Pack").is_err());
        }
        let refused = |answer: &[u8]| Library::new().add_description(answer).unwrap_err().to_string();
        let mut failed = Writer(vec![0, 1, 0, 0]);
        failed.value([0]).text("no such type");
        assert_eq!(refused(&failed.0), "the node does not describe it: no such type");
        assert_eq!(refused(&[0, 7, 0, 0, 1]), "the answer is not in CDR");
        let mut many = Writer(vec![0, 1, 0, 0]);
        many.value([1]).text("").text("a/msg/A").value(0u32.to_le_bytes()).value(u32::MAX.to_le_bytes());
        assert!(refused(&many.0).contains("at most 2048"));
        for number in [0, 12, 19, 30, ARRAY, 255] {
            let mut other = Writer(vec![0, 1, 0, 0]);
            other.value([1]).text("").text("a/msg/A").value(1u32.to_le_bytes()).field("x", number, 1, 1, "");
            assert_eq!(refused(&other.0), format!("a/msg/A.x has the type {number}, which is not read"));
        }
    }

    proptest::proptest! {
        #[test]
        fn no_bytes_panic(bytes in proptest::collection::vec(proptest::prelude::any::<u8>(), 0..200), at in 0usize..400, to in proptest::prelude::any::<u8>()) {
            _ = Library::new().add_description(&bytes);
            let mut changed = answer();
            let at = at % changed.len();
            changed[at] = to;
            _ = Library::new().add_description(&changed);
        }
    }
}
