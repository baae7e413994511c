//! Whole messages as JSON.

use rondel_decode::cdr::{CdrDecoder, CdrErrorKind, Check, write_json};
use rondel_decode::json::JsonForm;
use rondel_decode::schema::{Definition, Extensibility, Library, Primitive, Schema, Struct, Type};
use rondel_event::{Block, Layout, Projection, TimeUnit, Timestamp, TopicId};
use serde_json::{Map, Value, json};

use crate::random::{self, Tree};
use crate::reads::Reads;
use crate::wire::{Encoding, Wire};
use crate::{encodings, schema};
use rondel_testkit::Random;

fn text(schema: &Schema, message: &[u8], limit: usize) -> Result<String, rondel_decode::cdr::CdrError> {
    let mut out = b"before".to_vec();
    let written = write_json(schema, message, JsonForm::READABLE, limit, &mut out);
    let text = String::from_utf8(out).unwrap();
    let text = text.strip_prefix("before").unwrap();
    assert!(written.is_ok() || text.is_empty(), "{text}");
    written.map(|()| text.to_owned())
}

fn members(schema: &Schema, structure: &Struct, members: &[Option<Tree>]) -> Value {
    let pairs = structure.members.iter().zip(members);
    let there = pairs.filter_map(|(member, value)| {
        Some((member.name.to_string(), expected(schema, &member.member_type, value.as_ref()?)))
    });
    Value::Object(there.collect::<Map<_, _>>())
}

fn nested(schema: &Schema, element: &Type, dimensions: &[u32], all: &[Tree]) -> Value {
    match dimensions {
        [] | [_] => all.iter().map(|tree| expected(schema, element, tree)).collect(),
        [size, inner @ ..] => {
            all.chunks(all.len() / *size as usize).map(|part| nested(schema, element, inner, part)).collect()
        }
    }
}

/// Returns the JSON of a value.
fn expected(schema: &Schema, value_type: &Type, tree: &Tree) -> Value {
    match (value_type, tree) {
        (Type::Primitive(Primitive::Char | Primitive::WChar), Tree::Int(code)) => {
            json!(char::from_u32(*code as u32).unwrap())
        }
        (Type::Array { element, dimensions }, Tree::List(all)) => nested(schema, element, dimensions, all),
        (Type::Sequence { element, .. }, Tree::List(all)) => nested(schema, element, &[], all),
        (Type::Named(id), tree) => match (schema.definition(*id), tree) {
            (Definition::Struct(structure), Tree::Struct(all)) => members(schema, structure, all),
            (Definition::Union(union), Tree::Union(label, case)) => {
                let mut object = Map::from_iter([("discriminator".to_owned(), json!(*label as i64))]);
                if let Some((at, value)) = case {
                    let case = &union.cases[*at];
                    object.insert(case.name.to_string(), expected(schema, &case.member_type, value));
                }
                Value::Object(object)
            }
            (Definition::Enum(of), Tree::Int(value)) => {
                json!(of.constants.iter().find(|(_, constant)| i128::from(*constant) == *value).unwrap().0)
            }
            (_, Tree::Int(value)) => json!(u64::try_from(*value).unwrap()),
            other => panic!("{other:?}"),
        },
        (_, Tree::Bool(value)) => json!(value),
        (_, Tree::Int(value)) => match i64::try_from(*value) {
            Ok(value) => json!(value),
            Err(_) => json!(u64::try_from(*value).unwrap()),
        },
        (_, Tree::Float(value)) => json!(value),
        (_, Tree::Text(value)) => json!(value),
        other => panic!("{other:?}"),
    }
}

/// Whether the wide strings of a message are taken for another form.
fn is_mistaken(schema: &Schema, encoding: Encoding, message: &[u8]) -> bool {
    let (fields, unit) = (Projection::default(), TimeUnit::Seconds);
    let mut decoder = CdrDecoder::new(TopicId(0), schema, &fields, None, unit, Check::Whole).unwrap();
    let mut block = Block::new(Layout { topics: 1, ..Layout::default() });
    let read = decoder.decode(message, Timestamp::ZERO, &mut block);
    assert!(read.is_ok() || decoder.wide_form().is_some());
    decoder.wide_form().is_some_and(|form| form != encoding.wide)
}

#[test]
fn json_equals_the_values_written_by_the_standard() {
    for seed in rondel_testkit::seeds("json_equals_the_values_written_by_the_standard", 400) {
        let mut random = Random::new(seed ^ 0x77);
        let idl = random::idl(&mut random);
        let schema = schema(&idl);
        for encoding in encodings(&schema) {
            let mut all = random::members(&mut random, &schema, schema.root());
            let is_appendable =
                schema.root().extensibility.unwrap_or(encoding.unstated) == Extensibility::Appendable;
            if encoding.version == 2 && is_appendable && random.one_in(3) {
                let known = 1 + random.index(all.len());
                all[known..].fill(None);
            }
            let message = Wire::message(&schema, encoding, random.next(), &all);
            if is_mistaken(&schema, encoding, &message) {
                continue;
            }
            let at = format!("seed {seed}, {encoding:?}\n{idl}\n{message:02x?}");
            let json = text(&schema, &message, 1 << 20).unwrap_or_else(|error| panic!("{error}, {at}"));
            let found: Value = serde_json::from_str(&json).unwrap_or_else(|error| panic!("{error}: {json}"));
            // Converted to text and back like the other one, since parsing may round large numbers.
            let expected = members(&schema, schema.root(), &all).to_string();
            assert_eq!(found, serde_json::from_str::<Value>(&expected).unwrap(), "{at}");
            // The names of missing members count before it is known that they are missing.
            assert_eq!(text(&schema, &message, json.len() + 1000).as_ref(), Ok(&json));
            let short = text(&schema, &message, json.len() - 1).unwrap_err();
            assert_eq!(short.kind, CdrErrorKind::TooLarge(json.len() - 1));
        }
    }
}

#[test]
fn damaged_messages_have_json_only_if_every_byte_is_right() {
    for seed in rondel_testkit::seeds("damaged_messages_have_json_only_if_every_byte_is_right", 400) {
        let mut random = Random::new(seed ^ 0xaaaa);
        let idl = random::idl(&mut random);
        let schema = schema(&idl);
        let reads = Reads::random(&mut random, &schema);
        let decoder = reads.decoder(&schema, Check::Whole);
        for encoding in encodings(&schema) {
            let all = random::members(&mut random, &schema, schema.root());
            let mut message = Wire::message(&schema, encoding, random.next(), &all);
            for _ in 0..20 {
                let at = random.index(message.len());
                match random.index(4) {
                    0 => message.truncate(at),
                    1 => message[at] = random.next() as u8,
                    2 => message[at] = 0xff,
                    _ => message[at] ^= 1 << random.index(8),
                }
                if message.is_empty() {
                    break;
                }
                match text(&schema, &message, 1 << 20) {
                    Ok(json) => {
                        serde_json::from_str::<Value>(&json).unwrap();
                        let mut block = Block::new(reads.layout());
                        let read =
                            decoder.clone().decode(&message, rondel_event::Timestamp::ZERO, &mut block);
                        assert_eq!(read, Ok(()), "seed {seed}, {encoding:?}\n{idl}\n{message:02x?}\n{json}");
                    }
                    Err(error) => assert!(error.offset <= message.len(), "{error}"),
                }
            }
        }
    }
}

#[test]
fn errors_name_the_field_and_large_lengths_are_refused() {
    let mut library = Library::new();
    library.add_msg("t/msg/Part", "bool on").unwrap();
    library.add_msg("t/msg/Whole", "uint8 gear\nPart[] parts\nstring name").unwrap();
    let schema = library.schema("t/msg/Whole").unwrap();
    let message = [0, 1, 0, 0, 7, 0, 0, 0, 2, 0, 0, 0, 1, 0, 0, 0, 3, 0, 0, 0, b'"', 10, 0];
    let expected = "{\"gear\":7,\"parts\":[{\"on\":true},{\"on\":false}],\"name\":\"\\\"\\u000a\"}";
    assert_eq!(text(&schema, &message, 100).unwrap(), expected);
    let mut wrong = message;
    wrong[13] = 2;
    let error = text(&schema, &wrong, 100).unwrap_err();
    assert_eq!((&*error.path, error.offset, error.kind), ("parts[].on", 13, CdrErrorKind::NotABoolean(2)));
    wrong[8..12].fill(0xff);
    let error = text(&schema, &wrong, 100).unwrap_err();
    assert_eq!((&*error.path, error.kind), ("parts", CdrErrorKind::LengthBeyondEnd(u32::MAX)));
    assert_eq!(text(&schema, &message[..3], 100).unwrap_err().kind, CdrErrorKind::NoEncapsulation);
    let longer = [&message[..], &[0; 4]].concat();
    assert_eq!(text(&schema, &longer, 100).unwrap_err().kind, CdrErrorKind::TrailingBytes);
}
