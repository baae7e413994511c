//! Data that fastavro has written, by `corpus.py`.

use std::sync::Arc;

use rondel_decode::avro::{AvroDecoder, AvroSchema, AvroType};
use rondel_decode::json::{JsonDecoder, JsonForm};
use rondel_decode::{Encoding, MessageType, MessageWriter};
use rondel_event::{Block, Path, Read, Segment, TimeUnit, Timestamp, TopicId, ValueType};
use serde_json::Value;

use super::common::{Found, found, projection};

struct Case {
    of: AvroType,
    datum: Vec<u8>,
    json: Value,
    /// Its text: the parser of JSON may round.
    text: String,
}

fn cases() -> Vec<Case> {
    let unhex = |text: &str| -> Vec<u8> {
        let byte = |at: usize| u8::from_str_radix(&text[at..at + 2], 16).unwrap();
        (0..text.len()).step_by(2).map(byte).collect()
    };
    let case = |line: &str| {
        let text = line.rsplit_once("\"json\": ").unwrap().1.strip_suffix('}').unwrap().to_owned();
        let line: Value = serde_json::from_str(line).unwrap();
        let of = AvroSchema::from_json(line["schema"].to_string().as_bytes()).unwrap().root();
        Case { of, datum: unhex(line["datum"].as_str().unwrap()), json: line["json"].clone(), text }
    };
    include_str!("corpus.jsonl").lines().map(case).collect()
}

/// Whether both are the same. A whole number may be written with a point, and the parser of JSON may round.
pub(crate) fn is_same(one: &Value, other: &Value) -> bool {
    match (one, other) {
        (Value::Number(a), Value::Number(b)) => {
            let near = |a: f64, b: f64| a == b || (a - b).abs() <= a.abs() * 1e-15;
            a == b || a.as_f64().zip(b.as_f64()).is_some_and(|(a, b)| near(a, b))
        }
        (Value::Array(a), Value::Array(b)) => {
            a.len() == b.len() && a.iter().zip(b).all(|(a, b)| is_same(a, b))
        }
        (Value::Object(a), Value::Object(b)) => {
            a.len() == b.len() && a.iter().all(|(key, a)| b.get(key).is_some_and(|b| is_same(a, b)))
        }
        _ => one == other,
    }
}

#[test]
fn data_of_another_library_is_the_same_in_json() {
    let all = cases();
    assert!(all.len() >= 200, "{}", all.len());
    for (line, case) in (1..).zip(all) {
        let of = Some(Arc::new(MessageType::Avro(case.of)));
        let writer = MessageWriter::new(Encoding::Avro, of, JsonForm::READABLE).unwrap();
        let mut json = Vec::new();
        writer.write(&case.datum, 1 << 20, &mut json).unwrap_or_else(|error| panic!("line {line}: {error}"));
        let written: Value = serde_json::from_slice(&json).unwrap();
        assert!(is_same(&written, &case.json), "line {line}: {written} instead of {}", case.json);
    }
}

/// Appends the paths of values that have no parts, with the type by which they are read.
fn collect(value: &Value, path: &mut Vec<Segment>, into: &mut Vec<(Path, ValueType)>) {
    let of = match value {
        Value::Bool(_) => ValueType::Bool,
        Value::Number(number) if number.is_i64() => ValueType::Int,
        Value::Number(_) => ValueType::Float,
        Value::String(_) => ValueType::String,
        Value::Null => return,
        Value::Array(elements) => {
            for (index, element) in (0..).zip(elements) {
                path.push(Segment::Index(index));
                collect(element, path, into);
                path.pop();
            }
            return;
        }
        // A time is read as such, or not.
        Value::Object(members) if members.contains_key("nanosec") => ValueType::Time,
        Value::Object(members) => {
            for (key, member) in members {
                path.push(Segment::Key(key.as_str().into()));
                collect(member, path, into);
                path.pop();
            }
            return;
        }
    };
    into.push((Path(path.clone()), of));
}

#[test]
fn fields_of_another_library_are_read_as_from_json() {
    let mut count = 0;
    for (line, case) in (1..).zip(cases()) {
        let mut fields = Vec::new();
        collect(&case.json, &mut Vec::new(), &mut fields);
        for (path, of) in fields {
            let (projection, layout) = projection([(path.clone(), Read::Value(of))]);
            let decoder = AvroDecoder::new(TopicId(0), &case.of, &projection, None, TimeUnit::Seconds);
            // Bytes are no arrays, and a time with a negative number stays a number.
            let Ok(mut decoder) = decoder else { continue };
            let (mut block, mut expected) = (Block::new(layout), Block::new(layout));
            decoder.decode(&case.datum, Timestamp::ZERO, &mut block).unwrap();
            let mut reader = JsonDecoder::new(TopicId(0), &projection, None, TimeUnit::Seconds);
            reader.decode(case.text.as_bytes(), Timestamp::ZERO, &mut expected).unwrap();
            let (own, other) = (found(&projection, &block, 0), found(&projection, &expected, 0));
            // Bytes are no array: where a union has one, they come in its place.
            let is_missing = matches!(own[0], Found::Absent | Found::Invalid);
            if is_missing && matches!(path.0.last(), Some(Segment::Index(_))) {
                continue;
            }
            assert_eq!(own, other, "line {line}: {path}");
            count += u32::from(!matches!(own[0], Found::Absent | Found::Invalid));
        }
        // Nothing behind a datum, and no part of it, is a datum.
        let empty = AvroDecoder::new(TopicId(0), &case.of, &projection([]).0, None, TimeUnit::Seconds);
        let (mut empty, layout) = (empty.unwrap(), projection([]).1);
        for end in 0..case.datum.len() {
            assert!(empty.decode(&case.datum[..end], Timestamp::ZERO, &mut Block::new(layout)).is_err());
        }
        let longer = [&case.datum[..], &[0]].concat();
        assert!(empty.decode(&longer, Timestamp::ZERO, &mut Block::new(layout)).is_err());
    }
    assert!(count > 200, "{count}");
}
