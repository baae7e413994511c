//! Common parts of several tests: the values of the fields of a projection in a row.

#![allow(dead_code)] // each test uses a part of it

pub(crate) mod conditions;
pub(crate) mod measures;

use std::sync::Arc;

use rondel_decode::json::{JsonDecoder, JsonForm};
use rondel_decode::{Encoding, MessageType, MessageWriter};
use rondel_event::{
    Block, Field, Layout, Named, Path, Projection, Quantifier, Read, Segment, Slot, Test, TimeUnit,
    Timestamp, TopicId, Value, ValueType,
};

use conditions::Met;
use measures::measured;

/// Returns the number of random cases, which `RONDEL_CASES` multiplies.
pub(crate) fn cases() -> u64 {
    rondel_testkit::cases(500)
}

/// Value of a field in a row.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Found {
    Absent,
    Invalid,
    Bool(bool),
    Int(i64),
    Float(f64),
    Text(String),
}

/// Parses a path, in which numbers are indices, negative ones from the end, `id=a` is the element whose `id` is `a`,
/// and `id~a` the one whose name in the array `id` is `a`.
pub(crate) fn path(text: &str) -> Path {
    let named = |part: &str| {
        let (key, name) = part.split_once(['=', '~'])?;
        let value = name.parse().map_or_else(|_| Value::String(name.into()), Value::Int);
        Some(Segment::Named(Box::new(Named::new(Path::keys([key]), value, part.contains('~')))))
    };
    let segment = |part: &str| match part.parse::<i32>() {
        Ok(index) if index < 0 => Segment::FromEnd(index.unsigned_abs()),
        Ok(index) => Segment::Index(index as u32),
        Err(_) => named(part).unwrap_or_else(|| Segment::Key(part.into())),
    };
    Path(text.split('.').filter(|part| !part.is_empty()).map(segment).collect())
}

/// Returns a projection of these fields, each with its own column.
pub(crate) fn projection(reads: impl IntoIterator<Item = (Path, Read)>) -> (Projection, Layout) {
    let mut layout = Layout { topics: 1, ..Layout::default() };
    let next = |count: &mut usize| {
        *count += 1;
        *count as u32 - 1
    };
    let field = |(path, read)| {
        let slot = match &read {
            Read::Value(ValueType::Int | ValueType::Time | ValueType::Duration)
            | Read::Number(ValueType::Int)
            | Read::Length
            | Read::LengthOf(_)
            | Read::Elements(Quantifier::Count, _) => Slot::Int(next(&mut layout.ints)),
            Read::Elements(quantifier, _) if quantifier.is_measure() => Slot::Float(next(&mut layout.floats)),
            Read::Value(ValueType::Float) | Read::Number(_) => Slot::Float(next(&mut layout.floats)),
            Read::Value(ValueType::String) | Read::Witness(..) => Slot::String(next(&mut layout.strings)),
            _ => Slot::Bool(next(&mut layout.bools)),
        };
        Field { path, read, slot, exact: false }
    };
    let fields = reads.into_iter().map(field).collect();
    (Projection { fields }, layout)
}

pub(crate) fn found(projection: &Projection, block: &Block, row: usize) -> Vec<Found> {
    let is_in = |rows: u64| rows >> row & 1 == 1;
    let found = |field: &Field| {
        if !is_in(block.present(field.slot)) {
            return Found::Absent;
        }
        if is_in(block.invalid(field.slot)) {
            return Found::Invalid;
        }
        match field.slot {
            Slot::Bool(at) => Found::Bool(is_in(block.bools(at).values)),
            Slot::Int(at) => Found::Int(block.ints(at).values[row]),
            Slot::Float(at) => Found::Float(block.floats(at).values[row]),
            Slot::String(at) => Found::Text(String::from_utf8(block.text(at, row).to_vec()).unwrap()),
        }
    };
    projection.fields.iter().map(found).collect()
}

/// Returns a measure by its definition, of elements that are numbers; `None` for others.
pub(crate) fn measure(quantifier: Quantifier, elements: impl Iterator<Item = Option<f64>>) -> Found {
    let numbers = elements.collect::<Option<Vec<f64>>>();
    numbers.and_then(|numbers| measured(quantifier, &numbers)).map_or(Found::Invalid, Found::Float)
}

/// Returns the value of a field that a typed message omits.
#[allow(dead_code)] // not of encodings without types
pub(crate) fn left_out(read: &Read) -> Found {
    if *read == Read::Presence { Found::Absent } else { Found::Invalid }
}

/// Whether JSON gives the same value of a field as the typed message that it was written from: members omitted there
/// are omitted in JSON, too, where fields keep their values.
#[allow(dead_code)] // not of encodings without types
pub(crate) fn is_same_in_json(as_json: &Found, typed: &Found) -> bool {
    as_json == typed || (as_json, typed) == (&Found::Absent, &Found::Invalid)
}

/// Returns the value of a quantifier if `met` of `total` elements meet the conditions.
pub(crate) fn quantified(quantifier: Quantifier, of: &Met) -> Found {
    let Some(decided) = of.decided() else { return Found::Invalid };
    match quantifier {
        Quantifier::Any => Found::Bool(of.met > 0),
        Quantifier::All => Found::Bool(of.met == decided),
        _ => Found::Int(of.met as i64),
    }
}

/// Asserts that a refused message left nothing in the second row.
pub(crate) fn assert_unchanged(projection: &Projection, block: &Block) {
    assert_eq!((block.len(), block.text_len()), (1, 0));
    assert!(projection.fields.iter().all(|field| block.present(field.slot) == 0));
}

/// Reads each field from the JSON of a message. Texts are read from JSON with names of enumerations, all others from
/// JSON with numbers.
pub(crate) fn found_as_json(
    encoding: Encoding,
    message_type: Option<&MessageType>,
    projection: &Projection,
    layout: Layout,
    unit: TimeUnit,
    message: &[u8],
) -> Vec<Found> {
    let read = |form: JsonForm| {
        let message_type = message_type.cloned().map(Arc::new);
        let writer = MessageWriter::new(encoding, message_type, form).unwrap();
        let mut json = b"before".to_vec();
        writer.write(message, 1 << 20, &mut json).unwrap_or_else(|error| panic!("{error} {message:02x?}"));
        let length = json.len() - 6;
        let mut short = b"before".to_vec();
        assert!(length == 0 || writer.write(message, length - 1, &mut short).is_err());
        assert_eq!(short, b"before");
        let mut block = Block::new(layout);
        let mut decoder = JsonDecoder::new(TopicId(0), projection, None, unit);
        let decoded = decoder.decode(&json[6..], Timestamp::ZERO, &mut block);
        decoded.unwrap_or_else(|error| panic!("{error} {}", String::from_utf8_lossy(&json)));
        found(projection, &block, 0)
    };
    let (named, exact) = (read(JsonForm { names: true, infinite: true }), read(JsonForm::EXACT));
    let is_text = |read: &Read| match read {
        Read::Value(value_type) => *value_type == ValueType::String,
        Read::Elements(_, conditions) => {
            let is_text = |test: &Test| matches!(test, Test::Equals(Value::String(_)) | Test::OtherText(_));
            conditions.iter().any(|condition| is_text(&condition.test))
        }
        _ => false,
    };
    let pairs = projection.fields.iter().zip(named.into_iter().zip(exact));
    pairs.map(|(field, (named, exact))| if is_text(&field.read) { named } else { exact }).collect()
}
