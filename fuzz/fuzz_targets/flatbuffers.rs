//! Messages in FlatBuffers, and binary schemas. A refused message leaves the block unchanged.

#![no_main]

use std::sync::OnceLock;

use libfuzzer_sys::fuzz_target;
use rondel_decode::flatbuffers::{BinarySchema, FlatbuffersDecoder};
use rondel_event::{
    Block, Comparison, Condition, Field, Layout, Path, Projection, Quantifier, Read, Segment, Slot, Test,
    TimeUnit, Timestamp, TopicId, ValueType,
};

/// The schema of the tests.
const TYPES: &[u8] = include_bytes!("../../crates/rondel-decode/tests/flatbuffers/types.bfbs");
const LAYOUT: Layout = Layout { topics: 1, bools: 3, ints: 4, floats: 4, strings: 4 };

fn projection() -> Projection {
    let path = |text: &str| {
        let segment = |part: &str| match part.parse() {
            Ok(index) => Segment::Index(index),
            Err(_) => Segment::Key(part.into()),
        };
        Path(text.split('.').map(segment).collect())
    };
    let field = |text: &str, read, slot| Field { path: path(text), read, slot, exact: false };
    let condition = |alternative, comparison| Condition {
        alternative,
        path: Path::keys(["x"]),
        test: Test::Number(comparison, 3.0),
    };
    let outside = vec![condition(0, Comparison::Greater), condition(1, Comparison::NotEqual)];
    let value = Read::Value;
    Projection {
        fields: vec![
            field("b", value(ValueType::Bool), Slot::Bool(0)),
            field("m.inner.x", value(ValueType::Float), Slot::Float(0)),
            field("m.name", value(ValueType::String), Slot::String(0)),
            field("p.turn.3", value(ValueType::Float), Slot::Float(1)),
            field("u.Number.value", value(ValueType::Float), Slot::Float(2)),
            field("u.Place.x", value(ValueType::Float), Slot::Float(3)),
            field("u.Text.text", value(ValueType::String), Slot::String(1)),
            field("u_type", value(ValueType::String), Slot::String(2)),
            field("rm.1.gear", value(ValueType::String), Slot::String(3)),
            field("rm", Read::Elements(Quantifier::Any, outside.clone()), Slot::Bool(1)),
            field("rv", Read::Elements(Quantifier::All, outside), Slot::Bool(2)),
            field("rs", Read::Length, Slot::Int(0)),
            field("s", Read::Length, Slot::Int(1)),
            field("st", value(ValueType::Time), Slot::Int(2)),
            field("oi", value(ValueType::Int), Slot::Int(3)),
        ],
    }
}

fuzz_target!(|payload: &[u8]| {
    static DECODER: OnceLock<FlatbuffersDecoder> = OnceLock::new();
    let (time, unit) = (Path::keys(["t"]), TimeUnit::Seconds);
    let decoder = DECODER.get_or_init(|| {
        let root = BinarySchema::from_bytes(TYPES).unwrap().root().unwrap();
        FlatbuffersDecoder::new(TopicId(0), &root, &projection(), Some(&time), unit).unwrap()
    });
    let mut block = Block::new(LAYOUT);
    block.push(TopicId(0), Timestamp::ZERO);
    let result = decoder.clone().decode(payload, Timestamp::ZERO, &mut block);
    assert_eq!(block.len(), 1 + usize::from(result.is_ok()));
    if let Err(error) = result {
        assert!(error.offset <= payload.len());
        assert_eq!(block.text_len(), 0);
        assert!(projection().fields.iter().all(|field| block.present(field.slot) == 0));
    }
    if let Ok(schema) = BinarySchema::from_bytes(payload)
        && let Some(root) = schema.root()
    {
        let _ = FlatbuffersDecoder::new(TopicId(0), &root, &projection(), Some(&time), unit);
    }
});
