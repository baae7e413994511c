//! Packs of SenML. A refused pack leaves the block unchanged, and what is written as JSON is JSON.

#![no_main]

use libfuzzer_sys::fuzz_target;
use rondel_decode::json::JsonForm;
use rondel_decode::senml::{SenmlDecoder, is_pack};
use rondel_decode::{Encoding, MessageWriter};
use rondel_event::{
    Block, Field, Layout, Named, Path, Projection, Read, Segment, Slot, Timestamp, TopicId, Value, ValueType,
};

fn of(name: &str, label: &str) -> Path {
    let named = Named::new(Path::keys(["n"]), Value::String(name.into()), false);
    Path(vec![Segment::Key("records".into()), Segment::Named(Box::new(named)), Segment::Key(label.into())])
}

fuzz_target!(|payload: &[u8]| {
    let field = |path, value_type, slot| Field { path, read: Read::Value(value_type), slot, exact: false };
    let fields = vec![
        field(of("a", "v"), ValueType::Float, Slot::Float(0)),
        field(of("a", "t"), ValueType::Time, Slot::Int(0)),
        field(of("ab", "vs"), ValueType::String, Slot::String(0)),
        field(of("ab", "vb"), ValueType::Bool, Slot::Bool(0)),
    ];
    let layout = Layout { topics: 1, bools: 1, ints: 1, floats: 1, strings: 1 };
    let time = Path::keys(["time"]);
    let mut decoder = SenmlDecoder::new(TopicId(0), &Projection { fields }, Some(&time)).unwrap();
    for now in [0, 1_700_000_000_000_000_000, i64::MAX] {
        let mut block = Block::new(layout);
        let result = decoder.decode(payload, Timestamp::from_nanos(now), &mut block);
        assert_eq!(block.len(), usize::from(result.is_ok()));
        assert!(result.err().is_none_or(|error| error.offset <= payload.len()));
    }
    let mut out = Vec::new();
    let writer = MessageWriter::new(Encoding::Senml, None, JsonForm::READABLE).unwrap();
    let written = writer.write(payload, 1 << 20, &mut out);
    if written.is_ok() {
        serde_json::from_slice::<serde::de::IgnoredAny>(&out).unwrap();
    }
    let _ = is_pack(payload);
});
