//! Protobuf against another library: messages written by it, and its reading of messages in several parts.

#![allow(clippy::unwrap_used, clippy::panic)] // a test

#[path = "../common/mod.rs"]
mod common;
mod types;
mod wire;

use common::conditions::{Coverage, alternatives, meets_number, number_test};
use common::measures::MEASURES;
use common::{
    Found, assert_unchanged, cases, found, found_as_json, is_same_in_json, left_out, measure, projection,
    quantified,
};
use prost_reflect::prost::Message as _;
use prost_reflect::{
    DynamicMessage, FieldDescriptor, Kind, MapKey, MessageDescriptor, ReflectMessage as _, Value as Proto,
};
use rondel_decode::protobuf::ProtobufDecoder;
use rondel_decode::{Encoding, MessageType};
use rondel_event::{
    Block, Condition, Path, Quantifier, Read, Segment, Test, TimeUnit, Timestamp, TopicId, Value, ValueType,
};
use rondel_testkit::Random;

fn scalar(random: &mut Random, kind: &Kind, depth: usize) -> Proto {
    let edge = random.one_in(3);
    let number = random.next() as i64 >> random.index(64);
    match kind {
        Kind::Double => Proto::F64(random.pick(&[0.0, -1.5, 0.1, 1e300, f64::NAN, f64::INFINITY])),
        Kind::Float => Proto::F32(random.pick(&[0.0, -1.5, 0.1, 1e30, f32::NAN])),
        Kind::Int32 | Kind::Sint32 | Kind::Sfixed32 => {
            Proto::I32(if edge { i32::MIN } else { number as i32 })
        }
        Kind::Int64 | Kind::Sint64 | Kind::Sfixed64 => Proto::I64(if edge { i64::MIN } else { number }),
        Kind::Uint32 | Kind::Fixed32 => Proto::U32(if edge { u32::MAX } else { number as u32 }),
        Kind::Uint64 | Kind::Fixed64 => Proto::U64(if edge { u64::MAX } else { number as u64 }),
        Kind::Bool => Proto::Bool(random.one_in(2)),
        Kind::String => Proto::String(random.pick(&["", "x", "c\u{e4}\u{1f600}", "12 ms"]).to_owned()),
        Kind::Bytes => Proto::Bytes(vec![0xff; random.index(4)].into()),
        Kind::Enum(_) => Proto::EnumNumber(random.pick(&[0, 1, 2, 4, -1, 9])),
        Kind::Message(message) => Proto::Message(self::message(random, message, depth + 1)),
    }
}

fn key(random: &mut Random, kind: &Kind) -> MapKey {
    match kind {
        Kind::String => MapKey::String(random.pick(&["", "a", "b"]).to_owned()),
        Kind::Int32 => MapKey::I32(random.pick(&[0, 7, -7])),
        Kind::Bool => MapKey::Bool(random.one_in(2)),
        Kind::Uint64 => MapKey::U64(random.pick(&[0, 7, u64::MAX])),
        other => panic!("{other:?}"),
    }
}

fn message(random: &mut Random, descriptor: &MessageDescriptor, depth: usize) -> DynamicMessage {
    let mut message = DynamicMessage::new(descriptor.clone());
    if descriptor.name() == "Timestamp" || descriptor.name() == "Stamp" {
        let fields: Vec<FieldDescriptor> = descriptor.fields().collect();
        message
            .set_field(&fields[0], Proto::I64((random.next() as i64 >> 28) * i64::from(!random.one_in(3))));
        let nanos = random.next() as u32 % 1_100_000_000;
        let nanos = if matches!(fields[1].kind(), Kind::Uint32) {
            Proto::U32(nanos)
        } else {
            Proto::I32(nanos as i32)
        };
        message.set_field(&fields[1], nanos);
        return message;
    }
    for field in descriptor.fields() {
        if random.one_in(2) || depth > 3 && matches!(field.kind(), Kind::Message(_)) {
            continue;
        }
        let value = if field.is_map() {
            let Kind::Message(entry) = field.kind() else { panic!() };
            let entries = (0..random.index(3)).map(|_| {
                let value = scalar(random, &entry.map_entry_value_field().kind(), depth);
                (key(random, &entry.map_entry_key_field().kind()), value)
            });
            Proto::Map(entries.collect())
        } else if field.is_list() {
            Proto::List((0..random.index(4)).map(|_| scalar(random, &field.kind(), depth)).collect())
        } else {
            scalar(random, &field.kind(), depth)
        };
        message.set_field(&field, value);
    }
    message
}

/// Kind of the value at a path of a type.
#[derive(Clone)]
enum Place {
    One(Kind),
    List(Kind),
    Map(Kind),
}

/// Returns a random path, and the kind of its value.
fn walk(random: &mut Random, root: &MessageDescriptor) -> (Path, Place) {
    let (mut path, mut at) = (Vec::new(), Place::One(Kind::Message(root.clone())));
    loop {
        at = match at {
            Place::One(Kind::Message(message))
                if path.is_empty() || message.full_name().starts_with("demo") && !random.one_in(8) =>
            {
                let fields: Vec<FieldDescriptor> =
                    message.fields().filter(|field| !field.is_group()).collect();
                let field = &fields[random.index(fields.len())];
                path.push(Segment::Key(field.name().into()));
                match field.kind() {
                    Kind::Message(entry) if field.is_map() => Place::Map(Kind::Message(entry)),
                    kind if field.is_list() => Place::List(kind),
                    kind => Place::One(kind),
                }
            }
            Place::List(kind) if random.one_in(4) => {
                path.push(Segment::FromEnd(1));
                Place::One(kind)
            }
            Place::List(kind) if random.one_in(2) => {
                path.push(Segment::Index(random.index(5) as u32));
                Place::One(kind)
            }
            Place::Map(Kind::Message(entry)) if !random.one_in(3) => {
                let key = key(random, &entry.map_entry_key_field().kind());
                path.push(Segment::Key(named(&key).into()));
                Place::One(entry.map_entry_value_field().kind())
            }
            at => return (Path(path), at),
        };
    }
}

fn named(key: &MapKey) -> String {
    match key {
        MapKey::Bool(key) => key.to_string(),
        MapKey::I32(key) => key.to_string(),
        MapKey::U64(key) => key.to_string(),
        MapKey::String(key) => key.clone(),
        other => panic!("{other:?}"),
    }
}

/// Returns a test of an element.
fn test(random: &mut Random, kind: &Kind) -> (Path, Test) {
    let is = |text: &str| Test::Equals(Value::String(text.into()));
    let other = |text: &str| Test::OtherText(text.into());
    let number = |random: &mut Random| number_test(|end| random.index(end));
    match kind {
        Kind::Message(message) if message.name() == "Point" => {
            let (name, test) = match random.index(9) {
                0 => ("x", Test::Equals(Value::Float(0.0))),
                1 => ("x", number(random)),
                2 => ("z", Test::Present),
                3 => ("z", number(random)),
                4 => ("gear", is("ZERO")),
                5 => ("gear", is("DRIVE")),
                6 => ("gear", other("BACK")),
                7 => ("name", is("x")),
                _ => ("name", other("x")),
            };
            (Path::keys([name]), test)
        }
        Kind::Message(_) | Kind::Bytes => (Path::default(), Test::Present),
        Kind::Bool => (Path::default(), Test::Equals(Value::Bool(random.one_in(2)))),
        Kind::String => (Path::default(), if random.one_in(2) { is("x") } else { other("x") }),
        _ => (Path::default(), number(random)),
    }
}

fn some_read(random: &mut Random, place: &Place) -> Read {
    use ValueType::{Bool, Duration, Float, Int, String, Time};
    let one_of = |random: &mut Random, types: &[ValueType]| Read::Value(random.pick(types));
    match place {
        _ if random.one_in(8) => Read::Presence,
        Place::Map(_) => Read::Length,
        Place::List(kind) => {
            let is_number = !matches!(kind, Kind::Message(_) | Kind::Bytes | Kind::Bool | Kind::String);
            match random.index(4) {
                0 => return Read::Length,
                1 if is_number => return Read::Elements(random.pick(&MEASURES), Vec::new()),
                _ => {}
            }
            let tests: Vec<_> = (0..1 + random.index(4)).map(|_| test(random, kind)).collect();
            Read::Elements(
                random.pick(&[Quantifier::Any, Quantifier::All, Quantifier::Count]),
                alternatives(|end| random.index(end), &tests),
            )
        }
        Place::One(kind) => match kind {
            Kind::Double | Kind::Float if random.one_in(4) => Read::IsNan,
            Kind::Double | Kind::Float => Read::Value(Float),
            Kind::Bool => Read::Value(Bool),
            Kind::String if random.one_in(3) => Read::Length,
            Kind::String => Read::Value(String),
            Kind::Bytes => Read::Length,
            Kind::Enum(_) => one_of(random, &[Int, String, Float]),
            Kind::Message(message) => match message.name() {
                "Timestamp" => Read::Value(Time),
                "Duration" => Read::Value(Duration),
                "Stamp" => one_of(random, &[Time, Duration]),
                _ => Read::Presence,
            },
            _ => one_of(random, &[Int, Int, Float, Time]),
        },
    }
}

/// Returns the value at a path in the other library, and its kind.
fn look_up(path: &[Segment], value: &Proto, kind: &Kind) -> Option<(Proto, Kind)> {
    let Some((first, rest)) = path.split_first() else { return Some((value.clone(), kind.clone())) };
    match (first, value) {
        (Segment::Key(name), Proto::Message(message)) => {
            let field = message.descriptor().get_field_by_name(name).unwrap();
            if field.supports_presence() && !message.has_field(&field) {
                return None;
            }
            look_up(rest, &message.get_field(&field), &field.kind())
        }
        (Segment::Key(name), Proto::Map(entries)) => {
            let Kind::Message(entry) = kind else { panic!() };
            let (_, value) = entries.iter().find(|(key, _)| named(key) == **name)?;
            look_up(rest, value, &entry.map_entry_value_field().kind())
        }
        (Segment::Index(index), Proto::List(values)) => look_up(rest, values.get(*index as usize)?, kind),
        (Segment::FromEnd(_), Proto::List(values)) => look_up(rest, values.last()?, kind),
        other => panic!("{other:?}"),
    }
}

fn number(value: &Proto) -> Option<i128> {
    Some(match value {
        Proto::I32(value) | Proto::EnumNumber(value) => (*value).into(),
        Proto::I64(value) => (*value).into(),
        Proto::U32(value) => (*value).into(),
        Proto::U64(value) => (*value).into(),
        _ => return None,
    })
}

fn float(value: &Proto) -> f64 {
    match value {
        Proto::F32(value) => (*value).into(),
        Proto::F64(value) => *value,
        other => number(other).unwrap() as f64,
    }
}

fn expected(read: &Read, path: &Path, root: &DynamicMessage, coverage: &Coverage) -> Found {
    let kind = Kind::Message(root.descriptor());
    let Some((value, kind)) = look_up(&path.0, &Proto::Message(root.clone()), &kind) else {
        return left_out(read);
    };
    let int = |value: Option<i128>| {
        value.and_then(|value| i64::try_from(value).ok()).map_or(Found::Invalid, Found::Int)
    };
    match (read, &value) {
        (Read::Presence, _) => Found::Bool(true),
        (Read::Length, Proto::List(values)) => Found::Int(values.len() as i64),
        (Read::Length, Proto::Map(entries)) => panic!("{entries:?} has entries, not elements"),
        (Read::Length, Proto::String(text)) => Found::Int(text.chars().count() as i64),
        (Read::Length, Proto::Bytes(bytes)) => Found::Int(bytes.len() as i64),
        (Read::Elements(quantifier, _), Proto::List(values)) if quantifier.is_measure() => {
            measure(*quantifier, values.iter().map(|value| Some(float(value))))
        }
        (Read::Elements(quantifier, conditions), Proto::List(values)) => {
            let met = coverage.met(conditions, values, |condition, value| meets(condition, value, &kind));
            quantified(*quantifier, &met)
        }
        (Read::Value(ValueType::Bool), Proto::Bool(value)) => Found::Bool(*value),
        (Read::Value(ValueType::Int), value) => int(number(value)),
        (Read::IsNan, value) => Found::Bool(float(value).is_nan()),
        (Read::Value(ValueType::Float), value) if float(value).is_nan() => Found::Invalid,
        (Read::Value(ValueType::Float), value) => Found::Float(float(value)),
        (Read::Value(ValueType::String), Proto::String(text)) => Found::Text(text.clone()),
        (Read::Value(ValueType::String), Proto::EnumNumber(value)) => {
            let Kind::Enum(enumeration) = kind else { panic!() };
            // If a value has several names, the first one counts.
            let label = enumeration.values().find(|label| label.number() == *value && label.name() != "ZERO");
            label.map_or(Found::Invalid, |label| Found::Text(label.name().to_owned()))
        }
        (Read::Value(ValueType::Time | ValueType::Duration), Proto::Message(message)) => {
            let parts: Vec<i128> = message
                .descriptor()
                .fields()
                .map(|field| number(&message.get_field(&field)).unwrap())
                .collect();
            let sum = parts[0] * 1_000_000_000 + parts[1];
            let is_time = match message.descriptor().name() {
                "Duration" => parts[1].abs() < 1_000_000_000 && parts[0].signum() * parts[1].signum() >= 0,
                _ => (0..1_000_000_000).contains(&parts[1]),
            };
            if is_time { int(Some(sum)) } else { Found::Invalid }
        }
        (Read::Value(ValueType::Time), value) => int(number(value).map(|value| value * 1_000_000)),
        other => panic!("{other:?}"),
    }
}

fn meets(condition: &Condition, value: &Proto, kind: &Kind) -> Option<bool> {
    let Some((value, kind)) = look_up(&condition.path.0, value, kind) else { return Some(false) };
    Some(match (&condition.test, &value) {
        (Test::Present, _) => true,
        (Test::Equals(Value::Bool(wanted)), Proto::Bool(value)) => value == wanted,
        (Test::Equals(Value::String(wanted)), Proto::String(value)) => **value == **wanted,
        (Test::Equals(Value::String(wanted)), Proto::EnumNumber(value)) => {
            let Kind::Enum(enumeration) = kind else { panic!() };
            enumeration.get_value_by_name(wanted).unwrap().number() == *value
        }
        (Test::Equals(Value::Float(_)), value) if float(value).is_nan() => return None,
        (Test::Equals(Value::Float(wanted)), value) => float(value) == *wanted,
        (Test::OtherText(text), Proto::String(value)) => **value != **text,
        (Test::OtherText(text), Proto::EnumNumber(value)) => {
            let Kind::Enum(enumeration) = kind else { panic!() };
            enumeration.get_value(*value).is_some()
                && enumeration.get_value_by_name(text).unwrap().number() != *value
        }
        (test @ Test::Number(..), value) => return meets_number(test, float(value)),
        other => panic!("{other:?}"),
    })
}

struct Case {
    reads: Vec<(Path, Read)>,
    message: Vec<u8>,
}

/// Returns a message of one to three parts, which are merged, and the reads of it.
fn case(random: &mut Random, root: &MessageDescriptor) -> Case {
    let mut bytes = Vec::new();
    for _ in 0..1 + random.index(3) {
        message(random, root, 0).encode(&mut bytes).unwrap();
        if random.one_in(3) {
            // Unknown fields: a number, and a group with a text in it.
            bytes.extend([0x98, 0x3f, 0x96, 0x01, 0x9b, 0x3f, 0x0a, 0x01, 0x41, 0x9c, 0x3f]);
        }
    }
    let reads = (0..random.index(10)).map(|_| {
        let (path, place) = walk(random, root);
        let read = some_read(random, &place);
        // If a map repeats keys, the entries on the wire are counted.
        let read = if matches!(place, Place::Map(_)) { Read::Presence } else { read };
        (path, read)
    });
    Case { reads: reads.collect(), message: bytes }
}

#[test]
fn messages_are_read_as_by_another_library() {
    let (root, other) = (types::root(), types::pool().get_message_by_name("demo.v1.Root").unwrap());
    let coverage = Coverage::default();
    for seed in rondel_testkit::seeds("messages_are_read_as_by_another_library", 2000) {
        let mut random = Random::new(seed);
        let Case { reads, message } = case(&mut random, &other);
        let (projection, layout) = projection(reads.clone());
        let unit = TimeUnit::Milliseconds;
        let mut decoder = ProtobufDecoder::new(TopicId(0), &root, &projection, None, unit).unwrap();
        let reference = DynamicMessage::decode(other.clone(), &message[..]).unwrap();
        let of = MessageType::Protobuf(root.clone());
        let as_json = found_as_json(Encoding::Protobuf, Some(&of), &projection, layout, unit, &message);
        for ((path, read), found) in reads.iter().zip(as_json) {
            let expected = expected(read, path, &reference, &coverage);
            // JSON has the first of several names, and no NaN.
            if format!("{read:?}").contains("ZERO") || *read == Read::IsNan {
                continue;
            }
            let context = format!("as JSON, {path} {read:?} seed {seed} {reference}\n{message:02x?}");
            assert!(is_same_in_json(&found, &expected), "{found:?} {expected:?} {context}");
        }
        let mut block = Block::new(layout);
        // The second time, after another message.
        for row in 0..2 {
            let context = format!("seed {seed} {reference}\n{message:02x?}");
            decoder.decode(&message, Timestamp::ZERO, &mut block).unwrap_or_else(|e| panic!("{e} {context}"));
            for ((path, read), found) in reads.iter().zip(found(&projection, &block, row)) {
                assert_eq!(found, expected(read, path, &reference, &coverage), "{path} {read:?} {context}");
            }
        }
    }
    coverage.assert(cases() / 4);
}

#[test]
fn damaged_messages_leave_the_block_unchanged() {
    let (root, other) = (types::root(), types::pool().get_message_by_name("demo.v1.Root").unwrap());
    for seed in rondel_testkit::seeds("protobuf-damaged_messages_leave_the_block_unchanged", 500) {
        let mut random = Random::new(seed ^ 0x7777);
        let Case { reads, mut message } = case(&mut random, &other);
        let (projection, layout) = projection(reads);
        let mut decoder =
            ProtobufDecoder::new(TopicId(0), &root, &projection, None, TimeUnit::Seconds).unwrap();
        for _ in 0..40 {
            if message.is_empty() {
                break;
            }
            let at = random.index(message.len());
            match random.index(4) {
                0 => message.truncate(at),
                1 => message[at] = random.next() as u8,
                2 => message[at] = 0xff,
                _ => message[at] ^= 1 << random.index(8),
            }
            let mut block = Block::new(layout);
            block.push(TopicId(0), Timestamp::ZERO);
            if let Err(error) = decoder.decode(&message, Timestamp::ZERO, &mut block) {
                assert!(error.offset <= message.len(), "{error}");
                assert_unchanged(&projection, &block);
            }
        }
    }
}
