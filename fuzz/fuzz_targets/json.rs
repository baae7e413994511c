//! Payloads, one a line. A decoder that has learnt from the payloads before says of each what one that
//! has learnt nothing says; and both say what another JSON library says.

#![no_main]

mod slots;

use libfuzzer_sys::fuzz_target;
use rondel_event::{Block, Path, TimeUnit, Timestamp, TopicId};
use rondel_decode::json::{JsonDecoder, JsonErrorKind};
use serde::de::IgnoredAny;

fuzz_target!(|text: &[u8]| {
    let time = Path::keys(["z"]);
    let decoder = || JsonDecoder::new(TopicId(1), &slots::projection(), Some(&time), TimeUnit::Milliseconds);
    let mut taught = decoder();
    let start = Timestamp::from_nanos(5);
    for payload in text.split(|b| *b == b'\n').take(100) {
        let mut fresh = decoder();
        let (mut block, mut alone) = (Block::new(slots::LAYOUT), Block::new(slots::LAYOUT));
        let before = taught.mistyped();
        let result = taught.decode(payload, start, &mut block);
        assert_eq!(result, fresh.decode(payload, start, &mut alone));
        assert_eq!(block.len(), usize::from(result.is_ok()));
        assert_eq!(block.len(), alone.len());
        assert_eq!(taught.mistyped() - before, fresh.mistyped());
        if result.is_ok() {
            assert_eq!(slots::row(&block, 0), slots::row(&alone, 0));
            // It checks that a text is well formed, not what stands in it.
            assert!(serde_json::from_slice::<IgnoredAny>(payload).is_ok());
        }
        // Deep nesting is refused by both, but not at the same level.
        if payload.iter().filter(|b| matches!(b, b'[' | b'{')).count() > 100 {
            continue;
        }
        let Ok(message) = serde_json::from_slice::<serde_json::Value>(payload) else { continue };
        match result {
            Ok(()) => agree(&block, &message),
            // A time that is none is refused with its message.
            Err(error) => {
                assert!(matches!(error.kind, JsonErrorKind::Expected(what) if what.contains("time")))
            }
        }
    }
});

/// What was read is what stands there.
fn agree(block: &Block, message: &serde_json::Value) {
    let (bools, ints, floats, strings) = (block.bools(0), block.ints(0), block.floats(0), block.strings(0));
    for (key, present) in
        [("b", bools.present), ("i", ints.present), ("f", floats.present), ("s", strings.present)]
    {
        assert_eq!(present == 1, message.get(key).is_some());
    }
    let bool = (bools.valid == 1).then_some(bools.values == 1);
    assert_eq!(bool, message.get("b").and_then(|v| v.as_bool()));
    if let Some(value) = message.get("i").and_then(|v| v.as_i64()) {
        assert_eq!((ints.valid, ints.values[0]), (1, value));
    }
    let float = (floats.valid == 1).then_some(floats.values[0]);
    assert_eq!(float, message.get("f").and_then(|v| v.as_f64()));
    let string = (strings.valid == 1).then(|| block.text(0, 0));
    assert_eq!(string, message.get("s").and_then(|v| v.as_str()).map(str::as_bytes));
}
