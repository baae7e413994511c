//! Messages in CBOR and MessagePack. A refused message leaves the block unchanged, and what is read of one
//! does not depend on what else is read.

#![no_main]

mod slots;

use libfuzzer_sys::fuzz_target;
use rondel_decode::binary::{BinaryDecoder, BinaryFormat};
use rondel_event::{Block, Path, Projection, TimeUnit, Timestamp, TopicId};
use slots::{LAYOUT, projection, row};

fuzz_target!(|payload: &[u8]| {
    let time = Path::keys(["time"]);
    for format in [BinaryFormat::Cbor, BinaryFormat::Msgpack] {
        let decoder = |projection: &Projection, time| {
            BinaryDecoder::new(format, TopicId(0), projection, time, TimeUnit::Seconds).unwrap()
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
    }
});
