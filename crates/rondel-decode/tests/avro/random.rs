//! Random data and random bytes, against the naive decoder.

use std::sync::Arc;

use rondel_decode::avro::{AvroDecoder, AvroSchema};
use rondel_decode::json::JsonForm;
use rondel_decode::{Encoding, MessageType, MessageWriter};
use rondel_event::{Block, TimeUnit, Timestamp, TopicId};
use rondel_testkit::Random;
use serde_json::Value;

use super::common::projection;
use super::corpus::is_same;
use super::naive::{Rest, Type, bytes, long};

fn random_type(random: &mut Random, depth: usize) -> Type {
    let simple = [Type::Null, Type::Boolean, Type::Long, Type::Float, Type::Double, Type::Bytes, Type::Text];
    if depth > 3 || random.one_in(2) {
        return simple[random.index(simple.len())].clone();
    }
    match random.index(6) {
        0 => Type::Fixed(random.index(5)),
        1 => Type::Enum(1 + random.index(3)),
        2 => Type::Record((0..random.index(4)).map(|_| random_type(random, depth + 1)).collect()),
        // Elements without bytes may be as many as a number can state.
        3 => Type::Array(Box::new(Type::Union(vec![random_type(random, 4)]))),
        4 => Type::Map(Box::new(random_type(random, depth + 1))),
        _ => Type::Union((0..1 + random.index(3)).map(|_| random_type(random, 4)).collect()),
    }
}

/// Returns blocks of these elements, some with their size.
fn blocks(random: &mut Random, elements: &[Vec<u8>]) -> Vec<u8> {
    let (mut out, mut rest) = (Vec::new(), elements);
    while !rest.is_empty() {
        let (some, others) = rest.split_at(1 + random.index(rest.len()));
        let content = some.concat();
        let count = some.len() as i64;
        match random.one_in(2) {
            true => out.extend([long(-count), long(content.len() as i64)].concat()),
            false => out.extend(long(count)),
        }
        out.extend(content);
        rest = others;
    }
    out.extend(long(0));
    out
}

fn datum(random: &mut Random, of: &Type) -> Vec<u8> {
    match of {
        Type::Null => Vec::new(),
        Type::Boolean => vec![random.index(2) as u8],
        Type::Long => long(random.next() as i64 >> random.index(64)),
        Type::Float => random.pick(&[0.5_f32, -1.0, f32::NAN]).to_le_bytes().to_vec(),
        Type::Double => random.pick(&[0.5_f64, -1.0, f64::INFINITY]).to_le_bytes().to_vec(),
        Type::Bytes => bytes(&vec![0xff; random.index(4)]),
        Type::Text => bytes(random.pick(&["", "x", "c\u{e4}"]).as_bytes()),
        Type::Fixed(size) => vec![7; *size],
        Type::Enum(count) => long(random.index(*count) as i64),
        Type::Record(fields) => fields.iter().flat_map(|of| datum(random, of)).collect(),
        Type::Array(of) => {
            let elements: Vec<Vec<u8>> = (0..random.index(4)).map(|_| datum(random, of)).collect();
            blocks(random, &elements)
        }
        Type::Map(of) => {
            let keys = ["a", "b", "c"];
            let entries = keys[..random.index(4)].iter();
            let entries: Vec<Vec<u8>> =
                entries.map(|key| [bytes(key.as_bytes()), datum(random, of)].concat()).collect();
            blocks(random, &entries)
        }
        Type::Union(branches) => {
            let branch = random.index(branches.len());
            [long(branch as i64), datum(random, &branches[branch])].concat()
        }
    }
}

/// Changes a few bytes of a datum.
fn disturb(random: &mut Random, datum: &mut Vec<u8>) {
    match random.index(4) {
        0 => datum.truncate(random.index(datum.len() + 1)),
        1 => datum.push(random.next() as u8),
        _ if datum.is_empty() => {}
        2 => {
            let at = random.index(datum.len());
            datum[at] = random.next() as u8;
        }
        _ => {
            let at = random.index(datum.len());
            datum.insert(at, random.pick(&[0, 1, 2, 0x80, 0xff]));
        }
    }
}

#[test]
fn random_data_is_read_as_the_specification_says() {
    let mut refused = 0;
    for seed in rondel_testkit::seeds("avro", 500) {
        let random = &mut Random::new(seed);
        let of = Type::Record(vec![random_type(random, 0), random_type(random, 0)]);
        let schema = of.schema(&mut 0).to_string();
        let root = AvroSchema::from_json(schema.as_bytes()).unwrap().root();
        let message_type = Arc::new(MessageType::Avro(root.clone()));
        let writer = MessageWriter::new(Encoding::Avro, Some(message_type), JsonForm::READABLE).unwrap();
        let (none, layout) = projection([]);
        let mut skipping = AvroDecoder::new(TopicId(0), &root, &none, None, TimeUnit::Seconds).unwrap();
        for round in 0..10 {
            let mut message = datum(random, &of);
            if round > 0 {
                disturb(random, &mut message);
            }
            let mut rest = Rest(&message);
            let expected = rest.value(&of).filter(|_| rest.0.is_empty());
            let mut json = Vec::new();
            let written = writer.write(&message, 1 << 20, &mut json);
            assert_eq!(written.is_ok(), expected.is_some(), "{schema} {message:02x?} {written:?}");
            let skipped = skipping.decode(&message, Timestamp::ZERO, &mut Block::new(layout));
            if let Some(expected) = expected {
                let written: Value = serde_json::from_slice(&json).unwrap();
                // Keys of a map that come twice are written twice, and the last one counts.
                assert!(is_same(&written, &expected), "{schema} {message:02x?}: {written}");
            } else {
                refused += 1;
            }
            if round == 0 {
                assert!(skipped.is_ok(), "{schema} {message:02x?}: {skipped:?}");
            }
        }
    }
    assert!(refused > 0);
}
