//! Data in Avro, and schemas. A refused message leaves the block unchanged.

#![no_main]

use std::sync::{Arc, OnceLock};

use libfuzzer_sys::fuzz_target;
use rondel_decode::avro::{AvroDecoder, AvroSchema, AvroType};
use rondel_decode::json::JsonForm;
use rondel_decode::{Encoding, MessageType, MessageWriter};
use rondel_event::{
    Block, Comparison, Condition, Field, Layout, Path, Projection, Quantifier, Read, Segment, Slot, Test,
    TimeUnit, Timestamp, TopicId, ValueType,
};

const SCHEMA: &str = r#"{"type": "record", "name": "R", "fields": [
    {"name": "t", "type": {"type": "long", "logicalType": "timestamp-micros"}},
    {"name": "v", "type": ["null", "double", "string", {"type": "map", "values": "float"}]},
    {"name": "e", "type": {"type": "enum", "name": "E", "symbols": ["A", "B"]}},
    {"name": "d", "type": {"type": "fixed", "name": "D", "size": 5, "logicalType": "decimal", "scale": 2}},
    {"name": "a", "type": {"type": "array", "items": {"type": "record", "name": "P", "fields": [
        {"name": "x", "type": "double"}, {"name": "n", "type": ["null", "bytes"]}]}}},
    {"name": "r", "type": ["null", "R"]}]}"#;
const LAYOUT: Layout = Layout { topics: 1, bools: 1, ints: 2, floats: 5, strings: 1 };

fn projection() -> Projection {
    let path = |text: &str| {
        let segment = |part: &str| match part.parse() {
            Ok(index) => Segment::Index(index),
            Err(_) => Segment::Key(part.into()),
        };
        Path(text.split('.').map(segment).collect())
    };
    let field = |text: &str, read, slot| Field { path: path(text), read, slot, exact: false };
    let test = Test::Number(Comparison::Greater, 3.0);
    let above = vec![Condition { alternative: 0, path: Path::keys(["x"]), test }];
    let float = Read::Value(ValueType::Float);
    Projection {
        fields: vec![
            field("v", float.clone(), Slot::Float(0)),
            field("v.k", float.clone(), Slot::Float(1)),
            field("e", Read::Value(ValueType::String), Slot::String(0)),
            field("d", float.clone(), Slot::Float(2)),
            field("a", Read::Length, Slot::Int(0)),
            field("a.1.n", Read::Length, Slot::Int(1)),
            field("a", Read::Elements(Quantifier::Any, above), Slot::Bool(0)),
            field("r.d", float.clone(), Slot::Float(3)),
            field("r.r.a.0.x", float, Slot::Float(4)),
        ],
    }
}

fn decoder(of: &AvroType) -> Option<AvroDecoder> {
    let time = Path::keys(["t"]);
    AvroDecoder::new(TopicId(0), of, &projection(), Some(&time), TimeUnit::Seconds).ok()
}

fn decode(decoder: &mut AvroDecoder, payload: &[u8]) {
    let mut block = Block::new(LAYOUT);
    block.push(TopicId(0), Timestamp::ZERO);
    let result = decoder.decode(payload, Timestamp::ZERO, &mut block);
    assert_eq!(block.len(), 1 + usize::from(result.is_ok()));
    if let Err(error) = result {
        assert!(error.offset <= payload.len());
        assert_eq!(block.text_len(), 0);
        assert!(projection().fields.iter().all(|field| block.present(field.slot) == 0));
    }
}

fuzz_target!(|payload: &[u8]| {
    static KNOWN: OnceLock<(AvroDecoder, Arc<MessageType>)> = OnceLock::new();
    let (known, of) = KNOWN.get_or_init(|| {
        let root = AvroSchema::from_json(SCHEMA.as_bytes()).unwrap().root();
        (decoder(&root).unwrap(), Arc::new(MessageType::Avro(root)))
    });
    decode(&mut known.clone(), payload);
    let writer = MessageWriter::new(Encoding::Avro, Some(Arc::clone(of)), JsonForm::READABLE).unwrap();
    let _ = writer.write(payload, 1 << 16, &mut Vec::new());
    // A schema, and a datum behind a line end.
    let (schema, datum) = match payload.iter().position(|byte| *byte == b'\n') {
        Some(end) => payload.split_at(end),
        None => (payload, &[][..]),
    };
    if let Ok(schema) = AvroSchema::from_json(schema) {
        let root = schema.root();
        if let Some(mut decoder) = decoder(&root) {
            decode(&mut decoder, datum);
        }
        let _ = MessageType::Avro(root.clone()).outline();
        let _ = MessageWriter::new(Encoding::Avro, Some(Arc::new(MessageType::Avro(root))), JsonForm::EXACT)
            .unwrap()
            .write(datum, 1 << 16, &mut Vec::new());
    }
});
