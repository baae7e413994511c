//! Messages of Sparkplug B: a sequence of them, each after a byte for the name of its topic and one for its length. A
//! refused message leaves the block unchanged, and what is written as JSON is JSON.

#![no_main]

use libfuzzer_sys::fuzz_target;
use rondel_decode::json::JsonForm;
use rondel_decode::sparkplug::{SparkplugDecoder, SparkplugWriter, sequence};
use rondel_decode::{Encoding, MessageWriter};
use rondel_event::{
    Block, Field, Layout, NameId, Named, Path, Projection, Quantifier, Read, Segment, Slot, Timestamp,
    TopicId, Value, ValueType,
};

const NAMES: [&str; 8] = [
    "spBv1.0/g/NBIRTH/n",
    "spBv1.0/g/NDATA/n",
    "spBv1.0/g/NDEATH/n",
    "spBv1.0/g/NCMD/n",
    "spBv1.0/g/DBIRTH/n/d",
    "spBv1.0/g/DDATA/n/d",
    "spBv1.0/g/DDEATH/n/d",
    "spBv1.0/STATE/h",
];

fn projection(reads_all: bool) -> Projection {
    let of = |name: &str, rest: &str| {
        let named = Named::new(Path::keys(["name"]), Value::String(name.into()), false);
        let begin = [Segment::Key("metrics".into()), Segment::Named(Box::new(named))];
        Path(begin.into_iter().chain(Path::keys(rest.split('.')).0).collect())
    };
    let field = |path, read, slot| Field { path, read, slot, exact: false };
    let mut fields = vec![
        field(of("a", "value"), Read::Value(ValueType::Float), Slot::Float(0)),
        field(of("b", "value"), Read::Value(ValueType::Int), Slot::Int(0)),
        field(of("a", "properties.q"), Read::Value(ValueType::Int), Slot::Int(1)),
        field(of("a", "datatype"), Read::Value(ValueType::String), Slot::String(0)),
        field(of("b", "is_null"), Read::Value(ValueType::Bool), Slot::Bool(0)),
    ];
    if reads_all {
        let all = Read::Elements(Quantifier::Count, Vec::new());
        fields.push(field(Path::keys(["metrics"]), all, Slot::Int(2)));
    }
    Projection { fields }
}

fuzz_target!(|bytes: &[u8]| {
    let layout = Layout { topics: 1, bools: 1, ints: 3, floats: 1, strings: 1 };
    let time = Path::keys(["timestamp"]);
    let writer = MessageWriter::new(Encoding::SparkplugB, None, JsonForm::READABLE).unwrap();
    let mut decoders = [false, true]
        .map(|reads_all| SparkplugDecoder::new(TopicId(0), &projection(reads_all), Some(&time)).unwrap());
    let mut tap = SparkplugWriter::new(JsonForm::EXACT);
    let mut rest = bytes;
    while let [name, length, after @ ..] = rest {
        let (payload, after) = after.split_at(usize::from(*length).min(after.len()));
        rest = after;
        let name = usize::from(*name) % NAMES.len();
        let mut block = Block::new(layout);
        for decoder in &mut decoders {
            decoder.set_name(Some(NameId(name as u32)), |_| Some(NAMES[name]));
            block.clear();
            let result = decoder.decode(payload, Timestamp::ZERO, &mut block);
            assert_eq!(block.len(), usize::from(result.is_ok()));
            assert!(result.err().is_none_or(|error| error.offset <= payload.len()));
        }
        let _ = sequence(payload);
        let mut tapped = Vec::new();
        tap.set_name(Some(NameId(name as u32)), |_| Some(NAMES[name]));
        if tap.write(payload, Timestamp::ZERO, 1 << 20, &mut tapped).is_ok() {
            serde_json::from_slice::<serde::de::IgnoredAny>(&tapped).unwrap();
        }
        let mut out = Vec::new();
        if writer.write(payload, 1 << 20, &mut out).is_ok() {
            serde_json::from_slice::<serde::de::IgnoredAny>(&out).unwrap();
        }
    }
});
