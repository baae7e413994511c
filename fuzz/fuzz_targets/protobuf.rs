//! Messages in Protobuf, and descriptor sets. A refused message leaves the block unchanged, and a message that is
//! merged with itself has the same single values.

#![no_main]

mod slots;

use std::sync::OnceLock;

use libfuzzer_sys::fuzz_target;
use rondel_decode::protobuf::{Descriptors, ProtobufDecoder, ProtobufType};
use rondel_event::{Block, Path, Projection, Read, Segment, Test, TimeUnit, Timestamp, TopicId, Value};
use slots::{LAYOUT, projection, row};

/// Types of the fields of `slots`, as a descriptor set.
const TYPES: &[u8] = include_bytes!("../seeds/protobuf/types");

/// What a repeated message does not change, without the conditions that the types refuse.
fn fields() -> Projection {
    let mut projection = projection();
    projection.fields.retain(|field| field.path.0.iter().all(|part| matches!(part, Segment::Key(_))));
    for field in &mut projection.fields {
        if let Read::Elements(_, conditions) = &mut field.read {
            conditions.retain(|condition| !matches!(condition.test, Test::Equals(Value::Bool(_))));
        }
    }
    projection
}

fn message_type() -> ProtobufType {
    Descriptors::from_bytes(TYPES).unwrap().message("Root").unwrap()
}

fuzz_target!(|payload: &[u8]| {
    static TYPE: OnceLock<ProtobufType> = OnceLock::new();
    let message_type = TYPE.get_or_init(message_type);
    let time = Path::keys(["time"]);
    let projection = fields();
    let mut decoder =
        ProtobufDecoder::new(TopicId(0), message_type, &projection, Some(&time), TimeUnit::Seconds).unwrap();
    let mut block = Block::new(LAYOUT);
    block.push(TopicId(0), Timestamp::ZERO);
    let before = row(&block, 1);
    let result = decoder.decode(payload, Timestamp::ZERO, &mut block);
    assert_eq!(block.len(), 1 + usize::from(result.is_ok()));
    match result {
        Err(error) => {
            assert!(error.offset <= payload.len());
            assert_eq!((row(&block, 1), block.text_len()), (before, 0));
        }
        Ok(()) => {
            let first = row(&block, 1);
            decoder.decode(&payload.repeat(2), Timestamp::ZERO, &mut block).unwrap();
            assert_eq!(first, row(&block, 2));
        }
    }
    if let Ok(descriptors) = Descriptors::from_bytes(payload) {
        for root in descriptors.message_names().filter_map(|name| descriptors.message(name).ok()).take(3) {
            let _ = ProtobufDecoder::new(TopicId(0), &root, &projection, None, TimeUnit::Seconds);
        }
    }
});
