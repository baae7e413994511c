//! Avro: data that another library has written, and data that no library writes.

#![allow(clippy::unwrap_used, clippy::panic)] // a test

#[path = "../common/mod.rs"]
mod common;
mod corpus;
mod naive;
mod random;
mod registry;

use common::{Found, assert_unchanged, found, path, projection};
use naive::{bytes, long};
use rondel_decode::avro::{AvroDecoder, AvroSchema, AvroType, unframe};
use rondel_decode::json::JsonForm;
use rondel_decode::{Encoding, MessageErrorKind, MessageType, MessageWriter, Part, PlanErrorKind};
use rondel_event::{
    Block, Comparison, Condition, Path, Quantifier, Read, Test, TimeUnit, Timestamp, TopicId, ValueType,
};
use std::sync::Arc;

const CAR: &str = r#"{
  "type": "record", "name": "Car", "namespace": "fleet", "fields": [
    {"name": "at", "type": {"type": "long", "logicalType": "timestamp-millis"}},
    {"name": "speed", "type": ["null", "double"]},
    {"name": "gear", "type": {"type": "enum", "name": "Gear", "symbols": ["PARK", "DRIVE"]}},
    {"name": "wheels", "type": {"type": "array", "items": {
      "type": "record", "name": "Wheel", "fields": [
        {"name": "id", "type": "string"}, {"name": "bar", "type": "float"}]}}},
    {"name": "tags", "type": {"type": "map", "values": "long"}},
    {"name": "load", "type": {"type": "bytes", "logicalType": "decimal", "precision": 8, "scale": 2}},
    {"name": "next", "type": ["null", "Car"]}]}"#;

fn of(schema: &str) -> AvroType {
    AvroSchema::from_json(schema.as_bytes()).unwrap().root()
}

/// A datum of a car; `next` is the rest of it.
fn car(speed: Option<f64>, blocks: &[u8], next: &[u8]) -> Vec<u8> {
    let mut datum = long(1_500);
    match speed {
        Some(speed) => {
            datum.extend(long(1));
            datum.extend(speed.to_le_bytes());
        }
        None => datum.extend(long(0)),
    }
    datum.extend(long(1));
    datum.extend(blocks);
    datum.extend(long(1));
    datum.extend(bytes(b"site"));
    datum.extend(long(-7));
    datum.extend(long(0));
    datum.extend(bytes(&[0x30, 0x39]));
    datum.extend(next);
    datum
}

fn wheel(id: &str, bar: f32) -> Vec<u8> {
    [bytes(id.as_bytes()), bar.to_le_bytes().to_vec()].concat()
}

/// Two wheels in one block, and a third one in a block that states its size.
fn wheels() -> Vec<u8> {
    let third = wheel("rl", 2.5);
    let sized = [long(-1), long(third.len() as i64), third].concat();
    [long(2), wheel("fl", 2.0), wheel("fr", 1.5), sized, long(0)].concat()
}

fn low_pressure() -> Read {
    let test = Test::Number(Comparison::Less, 1.9);
    Read::Elements(Quantifier::Count, vec![Condition { alternative: 0, path: Path::keys(["bar"]), test }])
}

/// Reads fields of a message.
fn read(
    of: &AvroType,
    reads: &[(&str, Read)],
    message: &[u8],
) -> Result<Vec<Found>, (MessageErrorKind, String)> {
    let (projection, layout) = projection(reads.iter().map(|(text, read)| (path(text), read.clone())));
    let mut decoder = AvroDecoder::new(TopicId(0), of, &projection, None, TimeUnit::Seconds).unwrap();
    let mut block = Block::new(layout);
    block.push(TopicId(0), Timestamp::ZERO);
    match decoder.decode(message, Timestamp::ZERO, &mut block) {
        Ok(()) => Ok(found(&projection, &block, 1)),
        Err(error) => {
            assert_unchanged(&projection, &block);
            assert!(error.offset <= message.len(), "{error}");
            Err((error.kind, error.path.into()))
        }
    }
}

fn all() -> Vec<(&'static str, Read)> {
    let value = Read::Value;
    vec![
        ("at", value(ValueType::Time)),
        ("at", value(ValueType::Int)),
        ("speed", value(ValueType::Float)),
        ("gear", value(ValueType::String)),
        ("wheels", Read::Length),
        ("wheels.1.id", value(ValueType::String)),
        ("wheels.-1.bar", value(ValueType::Float)),
        ("wheels.id=fl.bar", value(ValueType::Float)),
        ("wheels", low_pressure()),
        ("tags.site", value(ValueType::Int)),
        ("load", value(ValueType::Float)),
        ("next.next.speed", value(ValueType::Float)),
    ]
}

#[test]
fn every_kind_of_field_is_read() {
    let inner = car(Some(2.0), &long(0), &long(0));
    let next = [long(1), car(None, &long(0), &[long(1), inner].concat())].concat();
    let message = car(Some(1.0), &wheels(), &next);
    let expected = vec![
        Found::Int(1_500_000_000),
        Found::Int(1_500),
        Found::Float(1.0),
        Found::Text("DRIVE".into()),
        Found::Int(3),
        Found::Text("fr".into()),
        Found::Float(2.5),
        Found::Float(2.0),
        Found::Int(1),
        Found::Int(-7),
        Found::Float(123.45),
        Found::Float(2.0),
    ];
    assert_eq!(read(&of(CAR), &all(), &message), Ok(expected));
}

#[test]
fn null_and_what_would_be_in_it_are_unknown() {
    let message = car(None, &long(0), &long(0));
    let found = read(&of(CAR), &all(), &message).unwrap();
    assert_eq!((&found[2], &found[4], &found[8]), (&Found::Invalid, &Found::Int(0), &Found::Int(0)));
    assert_eq!(found[11], Found::Invalid);
}

#[test]
fn message_that_ends_early_or_late_is_refused() {
    let message = car(Some(1.0), &wheels(), &long(0));
    for reads in [all(), Vec::new()] {
        for end in 0..message.len() {
            let error = read(&of(CAR), &reads, &message[..end]).unwrap_err().0;
            let is_short =
                matches!(error, MessageErrorKind::Truncated | MessageErrorKind::LengthBeyondEnd(_));
            assert!(is_short, "{end}: {error:?}");
        }
        let long = [message.clone(), vec![0]].concat();
        assert_eq!(read(&of(CAR), &reads, &long).unwrap_err().0, MessageErrorKind::TrailingBytes);
    }
}

#[test]
fn invalid_lengths_and_indices_are_named() {
    let refused = |schema: &str, message: &[u8]| read(&of(schema), &[], message).unwrap_err().0;
    assert_eq!(refused("\"string\"", &long(-1)), MessageErrorKind::NegativeLength(-1));
    assert_eq!(refused("\"bytes\"", &long(i64::MAX)), MessageErrorKind::LengthBeyondEnd(i64::MAX as u64));
    assert_eq!(refused("[\"null\", \"int\"]", &long(2)), MessageErrorKind::NoSuchBranch(2));
    assert_eq!(refused("\"boolean\"", &[2]), MessageErrorKind::UnknownByte(2));
    assert_eq!(refused("\"long\"", &[0xff; 10]), MessageErrorKind::Misplaced);
    let list = r#"{"type": "array", "items": "int"}"#;
    assert_eq!(refused(list, &long(9)), MessageErrorKind::LengthBeyondEnd(9));
    assert_eq!(refused(list, &long(i64::MIN)), MessageErrorKind::Truncated);
    assert_eq!(refused(list, &[long(-1), long(-4)].concat()), MessageErrorKind::NegativeLength(-4));
    assert_eq!(refused(list, &[long(-1), long(4)].concat()), MessageErrorKind::LengthBeyondEnd(4));
    let error = read(&of(CAR), &[], &[long(0), long(7)].concat()).unwrap_err();
    assert_eq!(error, (MessageErrorKind::NoSuchBranch(7), "speed".to_owned()));
    // A block whose elements have another size than it states.
    let message = [long(-1), long(2), long(5), long(5), long(0)].concat();
    assert_eq!(read(&of(list), &[("", Read::Length)], &message).unwrap_err().0, MessageErrorKind::Misplaced);
}

#[test]
fn endless_nesting_and_elements_without_bytes_are_bounded() {
    let deep = car(Some(1.0), &long(0), &[]);
    let mut message = Vec::new();
    for _ in 0..200 {
        message.extend(&deep);
        message.extend(long(1));
    }
    assert_eq!(read(&of(CAR), &[], &message).unwrap_err().0, MessageErrorKind::TooDeep);
    let nulls = of(r#"{"type": "array", "items": "null"}"#);
    let many = [long(i64::MAX), long(0)].concat();
    assert_eq!(read(&nulls, &[], &many), Ok(Vec::new()));
    let counted = read(&nulls, &[("", Read::Length)], &many).unwrap_err().0;
    assert!(matches!(counted, MessageErrorKind::LengthBeyondEnd(_)), "{counted:?}");
    let writer =
        MessageWriter::new(Encoding::Avro, Some(Arc::new(MessageType::Avro(nulls))), JsonForm::EXACT);
    assert!(writer.unwrap().write(&many, 1_000, &mut Vec::new()).unwrap_err().is_about_size());
}

#[test]
fn fields_that_the_type_does_not_have_are_named() {
    let (projection, _) = projection([
        (path("none"), Read::Value(ValueType::Int)),
        (path("gear"), Read::Value(ValueType::Int)),
        (path("wheels.0.none"), Read::Value(ValueType::Int)),
        (path("speed"), Read::Value(ValueType::String)),
    ]);
    let errors = AvroDecoder::new(TopicId(0), &of(CAR), &projection, None, TimeUnit::Seconds).unwrap_err();
    let mut paths: Vec<&str> = errors.iter().map(|error| &*error.path).collect();
    paths.sort_unstable();
    assert_eq!(paths, ["gear", "none", "speed", "wheels[0].none"]);
    let missing = errors.iter().filter(|error| matches!(error.kind, PlanErrorKind::NoField(_))).count();
    assert_eq!(missing, 2);
}

#[test]
fn branch_of_another_type_is_mistyped() {
    let either = of(r#"{"type": "record", "name": "R", "fields": [
        {"name": "v", "type": ["string", "double", {"type": "record", "name": "P", "fields": [
            {"name": "x", "type": "double"}]}]}]}"#);
    let reads = [("v", Read::Value(ValueType::Float))];
    let number = [long(1), 2.5_f64.to_le_bytes().to_vec()].concat();
    assert_eq!(read(&either, &reads, &number), Ok(vec![Found::Float(2.5)]));
    assert_eq!(read(&either, &reads, &[long(0), bytes(b"x")].concat()), Ok(vec![Found::Invalid]));
    let inner = [("v.x", Read::Value(ValueType::Float))];
    let record = [long(2), 2.5_f64.to_le_bytes().to_vec()].concat();
    assert_eq!(read(&either, &inner, &record), Ok(vec![Found::Float(2.5)]));
    assert_eq!(read(&either, &inner, &number), Ok(vec![Found::Invalid]));
}

#[test]
fn event_time_is_that_of_the_logical_type() {
    let (projection, layout) = projection([(path("speed"), Read::Value(ValueType::Float))]);
    let time = Path::keys(["at"]);
    let decoder = AvroDecoder::new(TopicId(0), &of(CAR), &projection, Some(&time), TimeUnit::Seconds);
    let mut block = Block::new(layout);
    decoder.unwrap().decode(&car(None, &long(0), &long(0)), Timestamp::ZERO, &mut block).unwrap();
    assert_eq!(block.time(0), Timestamp::from_nanos(1_500_000_000));
}

#[test]
fn invalid_schemas_are_refused() {
    let refused = |schema: &str| AvroSchema::from_json(schema.as_bytes()).unwrap_err().to_string();
    assert!(refused("{").contains("EOF"));
    assert!(refused("\"Car\"").contains("the type `Car` is not defined"));
    assert!(refused("[]").contains("no branch"));
    assert!(refused("[[\"int\"]]").contains("contains a union"));
    let own = r#"{"type": "record", "name": "A", "fields": [{"name": "a", "type": "A"}]}"#;
    assert!(refused(own).contains("contains itself"));
    let twice = r#"[{"type": "fixed", "name": "A", "size": 1}, {"type": "fixed", "name": "A", "size": 1}]"#;
    assert!(refused(twice).contains("`A` is defined twice"));
    assert!(refused(r#"{"type": "record", "name": "A"}"#).contains("no list of `fields`"));
    assert!(refused(r#"{"type": "enum", "name": "A"}"#).contains("no `symbols`"));
    assert!(refused(r#"{"type": "fixed", "name": "A", "size": -1}"#).contains("no number of bytes"));
    let nested = "{\"type\":\"array\",\"items\":".repeat(200);
    assert!(refused(&nested).contains("recursion"));
}

#[test]
fn names_and_namespaces_are_resolved() {
    let schema = AvroSchema::from_json(CAR.as_bytes()).unwrap();
    assert_eq!(schema.record_names().collect::<Vec<_>>(), ["fleet.Car", "fleet.Wheel"]);
    assert_eq!(schema.root().name(), "fleet.Car");
    assert_eq!(schema.record("fleet.Wheel").unwrap().name(), "fleet.Wheel");
    assert!(schema.record("fleet.Gear").is_err());
    let outline = MessageType::Avro(schema.root()).outline().unwrap();
    let part =
        |name: &str| outline.fields.iter().find(|(own, _)| **own == *name).map(|(_, part)| part.clone());
    assert_eq!(part("at"), Some(Part::Value(ValueType::Time)));
    assert_eq!(part("speed"), Some(Part::Value(ValueType::Float)));
    assert_eq!(part("gear"), Some(Part::Value(ValueType::String)));
    assert_eq!((part("tags"), part("next")), (Some(Part::Open), Some(Part::Open)));
}

#[test]
fn framing_of_registries_is_recognised() {
    assert_eq!(unframe(&[0, 0, 0, 1, 2, 9]), Some((258, &[9][..])));
    assert_eq!(unframe(&[0, 0, 0, 1]), None);
    assert_eq!(unframe(&[1, 0, 0, 0, 1, 9]), None);
}
