//! Messages in XML. A refused message leaves the block unchanged, what is read of one does not depend on what else is
//! read, and what is written as JSON is JSON.

#![no_main]

mod slots;

use libfuzzer_sys::fuzz_target;
use rondel_decode::json::JsonForm;
use rondel_decode::xml::{XmlDecoder, is_message};
use rondel_decode::{Encoding, MessageWriter};
use rondel_event::{Block, Path, Projection, TimeUnit, Timestamp, TopicId};
use slots::{LAYOUT, projection, row};

fuzz_target!(|payload: &[u8]| {
    let time = Path::keys(["time"]);
    let decoder = |projection: &Projection, time| {
        XmlDecoder::new(TopicId(0), projection, time, TimeUnit::Seconds).unwrap()
    };
    let mut decoder_of_all = decoder(&projection(), Some(&time));
    let mut block = Block::new(LAYOUT);
    block.push(TopicId(0), Timestamp::ZERO);
    let before = row(&block, 1);
    let result = decoder_of_all.decode(payload, Timestamp::ZERO, &mut block);
    assert_eq!(block.len(), 1 + usize::from(result.is_ok()));
    match result {
        Err(error) => {
            assert!(error.offset <= payload.len());
            assert_eq!((row(&block, 1), block.text_len()), (before, 0));
        }
        Ok(()) => {
            // Each field alone has the same value.
            for field in projection().fields {
                let mut alone = Block::new(LAYOUT);
                alone.push(TopicId(0), Timestamp::ZERO);
                let projection = Projection { fields: vec![field.clone()] };
                decoder(&projection, None).decode(payload, Timestamp::ZERO, &mut alone).unwrap();
                let bit = |rows: u64| rows >> 1 & 1;
                assert_eq!(bit(alone.present(field.slot)), bit(block.present(field.slot)));
                assert_eq!(bit(alone.invalid(field.slot)), bit(block.invalid(field.slot)));
            }
        }
    }
    let mut out = Vec::new();
    let writer = MessageWriter::new(Encoding::Xml, None, JsonForm::READABLE).unwrap();
    if writer.write(payload, 1 << 20, &mut out).is_ok() {
        assert!(is_message(payload) || payload.is_empty());
        serde_json::from_slice::<serde::de::IgnoredAny>(&out).unwrap();
    }
});
