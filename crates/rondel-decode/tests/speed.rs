//! Time to decode a message in each encoding: run alone, optimised, with `--ignored --nocapture`; `ONLY=cbor` selects
//! one encoding. CDR has more cases in `cdr/speed.rs`.

#![allow(clippy::unwrap_used, clippy::panic)] // a test

mod common;

use std::hint::black_box;
use std::time::Instant;

use common::{Found, found, path, projection};
use flatbuffers::FlatBufferBuilder;
use rondel_decode::flatbuffers::BinarySchema;
use rondel_decode::protobuf::Descriptors;
use rondel_decode::schema::Library;
use rondel_decode::sparkplug::SparkplugDecoder;
use rondel_decode::{Decoder, Encoding, MessageType};
use rondel_event::{
    Block, Comparison, Condition, NameId, Path, Quantifier, Read, Test, TimeUnit, Timestamp, TopicId,
    ValueType,
};

/// Names of the fields in the types of the tests of FlatBuffers, and their ids: the types do not have ten doubles.
const FLAT: [(&str, u16); 10] = [
    ("d", 0),
    ("f", 1),
    ("b", 2),
    ("i8", 3),
    ("u8", 4),
    ("i16", 5),
    ("u16", 6),
    ("i32", 7),
    ("u32", 8),
    ("i64", 9),
];

/// A message of ten numbers, its type, and the names of the two that are read.
struct Case {
    encoding: Encoding,
    message_type: Option<MessageType>,
    message: Vec<u8>,
    names: [&'static str; 2],
}

fn cases() -> Vec<Case> {
    let names: Vec<String> = (0..10).map(|index| format!("f{index}")).collect();
    let values: Vec<f64> = (0..10).map(|index| f64::from(index) + 0.125).collect();
    let json: serde_json::Map<String, serde_json::Value> =
        names.iter().zip(&values).map(|(name, value)| (name.clone(), (*value).into())).collect();
    let json = serde_json::Value::Object(json);
    let mut cbor = Vec::new();
    ciborium::into_writer(&json, &mut cbor).unwrap();

    let members = names.iter().map(|name| format!("float64 {name}\n")).collect::<String>();
    let mut library = Library::new();
    library.add_msg("demo/msg/Ten", &members).unwrap();
    let mut cdr = vec![0, 1, 0, 0];
    values.iter().for_each(|value| cdr.extend(value.to_le_bytes()));

    let members = (1..).zip(&names).map(|(number, name)| format!("double {name} = {number};"));
    let text = format!("syntax = \"proto3\"; message Ten {{ {} }}", members.collect::<String>());
    let file = protox::file::File::from_source("ten.proto", &text).unwrap();
    let files =
        prost_reflect::prost_types::FileDescriptorSet { file: vec![file.file_descriptor_proto().clone()] };
    let resolver = protox::file::DescriptorSetFileResolver::new(files);
    let mut compiler = protox::Compiler::with_file_resolver(resolver);
    let set = compiler.include_imports(true).open_file("ten.proto").unwrap().encode_file_descriptor_set();
    let protobuf = Descriptors::from_bytes(&set).unwrap().message("Ten").unwrap();
    let mut message = Vec::new();
    for (number, value) in (1_u8..).zip(&values) {
        message.push(number << 3 | 1);
        message.extend(value.to_le_bytes());
    }

    let schema = BinarySchema::from_bytes(include_bytes!("flatbuffers/types.bfbs")).unwrap();
    let mut builder = FlatBufferBuilder::new();
    let start = builder.start_table();
    for (name, id) in FLAT.iter().rev() {
        let entry = 4 + 2 * id;
        match *name {
            "d" => builder.push_slot_always(entry, 1.125_f64),
            "f" => builder.push_slot_always(entry, 0.5_f32),
            "i16" | "u16" => builder.push_slot_always(entry, 5_i16),
            "i32" | "u32" => builder.push_slot_always(entry, 7_i32),
            "i64" => builder.push_slot_always(entry, 7_i64),
            _ => builder.push_slot_always(entry, 1_u8),
        }
    }
    let root = builder.end_table(start);
    builder.finish(root, Some("DEMO"));

    let case =
        |encoding, message_type, message| Case { encoding, message_type, message, names: ["f1", "f7"] };
    let cdr_type = MessageType::Cdr(library.schema("demo/msg/Ten").unwrap());
    vec![
        case(Encoding::Json, None, json.to_string().into_bytes()),
        case(Encoding::Cdr, Some(cdr_type), cdr),
        case(Encoding::Protobuf, Some(MessageType::Protobuf(protobuf)), message),
        Case {
            encoding: Encoding::Flatbuffers,
            message_type: Some(MessageType::Flatbuffers(schema.root().unwrap())),
            message: builder.finished_data().to_vec(),
            names: ["d", "i32"],
        },
        case(Encoding::Cbor, None, cbor),
        case(Encoding::Msgpack, None, rmp_serde::to_vec(&json).unwrap()),
    ]
}

fn decode(case: &Case, rounds: u32) -> (Vec<Found>, f64) {
    let fields = case.names.map(|name| (path(name), Read::Value(ValueType::Float)));
    let (projection, layout) = projection(fields);
    let (topic, unit, time) = (TopicId(0), TimeUnit::Seconds, None::<&Path>);
    let message_type = case.message_type.as_ref();
    let mut decoder = Decoder::new(case.encoding, message_type, topic, &projection, time, unit).unwrap();
    let mut block = Block::new(layout);
    let mut best = f64::MAX;
    for _ in 0..10 {
        let start = Instant::now();
        for _ in 0..rounds.div_ceil(64) {
            block.clear();
            for _ in 0..64 {
                decoder.decode(black_box(&case.message), Timestamp::ZERO, &mut block).unwrap();
            }
            black_box(&block);
        }
        best = best.min(start.elapsed().as_nanos() as f64 / f64::from(rounds.div_ceil(64) * 64));
    }
    (found(&projection, &block, 63), best)
}

#[test]
fn measured_fields_are_read() {
    for case in cases() {
        let expected = if case.encoding == Encoding::Flatbuffers { [1.125, 7.0] } else { [1.125, 7.125] };
        assert_eq!(decode(&case, 1).0, expected.map(Found::Float), "{}", case.encoding);
    }
}

#[test]
#[ignore = "a measurement: needs an idle machine and an optimised build"]
fn speed() {
    let rounds = std::env::var("ROUNDS").map_or(200_000, |rounds| rounds.parse().unwrap());
    let only = std::env::var("ONLY").ok();
    for case in cases().iter().filter(|case| only.as_ref().is_none_or(|only| *only == case.encoding.name())) {
        let (_, ns) = decode(case, rounds);
        println!("two fields of ten in {}: {ns:.1} ns, {} bytes", case.encoding, case.message.len());
    }
}

#[test]
#[ignore = "a measurement: needs an idle machine and an optimised build"]
fn speed_of_one_number() {
    let rounds: u32 = std::env::var("ROUNDS").map_or(200_000, |rounds| rounds.parse().unwrap());
    let (number, text) = (Read::Value(ValueType::Float), Read::Number(ValueType::Float));
    for (name, encoding, read, payload) in [
        ("plain", Encoding::Plain, &number, "23.5"),
        ("plain, also as text", Encoding::Plain, &text, "23.5"),
        ("a number in JSON", Encoding::Json, &number, "{\"value\":23.5}"),
        ("a number in JSON, also as text", Encoding::Json, &text, "{\"value\":23.5}"),
        ("a text in JSON", Encoding::Json, &text, "{\"value\":\"23.5\"}"),
    ] {
        let (projection, layout) = projection([(path("value"), read.clone())]);
        let (topic, unit, time) = (TopicId(0), TimeUnit::Seconds, None::<&Path>);
        let mut decoder = Decoder::new(encoding, None, topic, &projection, time, unit).unwrap();
        let mut block = Block::new(layout);
        let mut best = f64::MAX;
        for _ in 0..10 {
            let start = Instant::now();
            for _ in 0..rounds.div_ceil(64) {
                block.clear();
                for _ in 0..64 {
                    decoder.decode(black_box(payload.as_bytes()), Timestamp::ZERO, &mut block).unwrap();
                }
                black_box(&block);
            }
            best = best.min(start.elapsed().as_nanos() as f64 / f64::from(rounds.div_ceil(64) * 64));
        }
        assert_eq!(found(&projection, &block, 63), [Found::Float(23.5)], "{name}");
        println!("{name}: {best:.1} ns");
    }
}

/// Returns a message of a thousand numbers in each encoding that is simple to write.
fn arrays() -> Vec<(Encoding, Option<MessageType>, Vec<u8>)> {
    let values: Vec<f64> = (0..1000).map(|index| 0.5 + f64::from(index * 7919 % 1000) * 0.0137).collect();
    let json = serde_json::json!({ "a": values });
    let mut cbor = Vec::new();
    ciborium::into_writer(&json, &mut cbor).unwrap();
    let mut library = Library::new();
    library.add_msg("demo/msg/Scan", "float32[] a\n").unwrap();
    let cdr_type = MessageType::Cdr(library.schema("demo/msg/Scan").unwrap());
    let mut cdr = vec![0, 1, 0, 0];
    cdr.extend(1000_u32.to_le_bytes());
    values.iter().for_each(|value| cdr.extend((*value as f32).to_le_bytes()));
    vec![
        (Encoding::Json, None, json.to_string().into_bytes()),
        (Encoding::Cdr, Some(cdr_type), cdr),
        (Encoding::Cbor, None, cbor),
        (Encoding::Msgpack, None, rmp_serde::to_vec(&json).unwrap()),
    ]
}

#[test]
#[ignore = "a measurement: needs an idle machine and an optimised build"]
fn speed_of_conditions_on_elements() {
    let condition = |alternative, comparison, bound| Condition {
        alternative,
        path: Path::default(),
        test: Test::Number(comparison, bound),
    };
    let near = condition(0, Comparison::Less, 0.2);
    for (encoding, message_type, message) in arrays() {
        for (text, conditions) in [
            ("r < 0.2", vec![near.clone()]),
            ("r < 0.2 or r > 30", vec![near.clone(), condition(1, Comparison::Greater, 30.0)]),
        ] {
            let (projection, layout) = projection([(path("a"), Read::Elements(Quantifier::Any, conditions))]);
            let (topic, unit, time) = (TopicId(0), TimeUnit::Seconds, None::<&Path>);
            let mut decoder =
                Decoder::new(encoding, message_type.as_ref(), topic, &projection, time, unit).unwrap();
            let mut block = Block::new(layout);
            let mut best = f64::MAX;
            for _ in 0..100 {
                block.clear();
                let start = Instant::now();
                for _ in 0..64 {
                    decoder.decode(black_box(&message), Timestamp::ZERO, &mut block).unwrap();
                }
                best = best.min(start.elapsed().as_nanos() as f64 / 64.0);
            }
            assert_eq!(found(&projection, &block, 63), [Found::Bool(false)]);
            println!("any of 1,000 numbers, {text}, in {encoding}: {best:.0} ns, {} bytes", message.len());
        }
    }
}

/// Returns a birth of ten metrics by Sparkplug B, and data messages of all ten, with their aliases and with their
/// names.
fn metrics() -> [Vec<u8>; 3] {
    let part = |number: u8, bytes: &[u8]| [&[number << 3 | 2, bytes.len() as u8], bytes].concat();
    let time = [0x18, 0xfb, 0xd0, 0x95, 0xff, 0xbc, 0x31];
    let message = |metric: &dyn Fn(u8) -> Vec<u8>| {
        let metrics: Vec<u8> = (0..10).flat_map(|index| part(2, &metric(index))).collect();
        [&[8], &time[1..], &metrics, &[0x18, 7]].concat()
    };
    let name = |index: u8| part(1, format!("Line 1/Press/m{index}").as_bytes());
    let value = |index: u8| [&[0x69][..], &(f64::from(index) + 0.125).to_le_bytes()].concat();
    [
        message(&|index| [&name(index)[..], &[0x10, index], &time, &[0x20, 10], &value(index)].concat()),
        message(&|index| [&[0x10, index][..], &time, &value(index)].concat()),
        message(&|index| [&name(index)[..], &time, &value(index)].concat()),
    ]
}

#[test]
#[ignore = "a measurement: needs an idle machine and an optimised build"]
fn speed_of_metrics() {
    let rounds: u32 = std::env::var("ROUNDS").map_or(200_000, |rounds| rounds.parse().unwrap());
    let [birth, by_alias, by_name] = metrics();
    for (text, message) in [("aliases", by_alias), ("names", by_name)] {
        for read in [1, 2, 10] {
            let of =
                |index: usize| path(&format!("metrics.name=Line 1/Press/m{}.value", (7 * index + 3) % 10));
            let fields = (0..read).map(|index| (of(index), Read::Value(ValueType::Float)));
            let (projection, layout) = projection(fields);
            let mut decoder = SparkplugDecoder::new(TopicId(0), &projection, None).unwrap();
            let mut block = Block::new(layout);
            decoder.set_name(Some(NameId(0)), |_| Some("spBv1.0/plant/NBIRTH/press"));
            decoder.decode(&birth, Timestamp::ZERO, &mut block).unwrap();
            let mut best = f64::MAX;
            for _ in 0..10 {
                let start = Instant::now();
                for _ in 0..rounds.div_ceil(64) {
                    block.clear();
                    for _ in 0..64 {
                        decoder.set_name(Some(NameId(1)), |_| Some("spBv1.0/plant/NDATA/press"));
                        decoder.decode(black_box(&message), Timestamp::ZERO, &mut block).unwrap();
                    }
                    black_box(&block);
                }
                best = best.min(start.elapsed().as_nanos() as f64 / f64::from(rounds.div_ceil(64) * 64));
            }
            assert_eq!(found(&projection, &block, 63)[0], Found::Float(3.125), "{text}");
            println!("{read} of ten metrics with {text}: {best:.1} ns, {} bytes", message.len());
        }
    }
}
