//! `Read::Length` in JSON, with and without a recorded shape. The tests of the other encodings compare with it.

#![allow(clippy::unwrap_used)] // a test

use rondel_decode::json::JsonDecoder;
use rondel_event::{
    Block, Field, Layout, Path, Projection, Read, Slot, TimeUnit, Timestamp, TopicId, ValueType,
};

#[test]
fn arrays_have_elements_and_texts_characters() {
    let field = |name, read, slot| Field { path: Path::keys([name]), read, slot, exact: false };
    let fields = vec![
        field("x", Read::Length, Slot::Int(0)),
        field("s", Read::Value(ValueType::String), Slot::String(0)),
    ];
    let layout = Layout { topics: 1, ints: 1, strings: 1, ..Layout::default() };
    let mut decoder = JsonDecoder::new(TopicId(0), &Projection { fields }, None, TimeUnit::Seconds);
    let mut block = Block::new(layout);
    let mut decode = |text: &str| {
        block.clear();
        let before = decoder.refused().mistyped();
        decoder.decode(text.as_bytes(), Timestamp::ZERO, &mut block).unwrap();
        let column = block.ints(0);
        let value = (column.valid & 1 == 1).then_some(column.values[0]);
        (column.present & 1, value, decoder.refused().mistyped() - before)
    };
    for _ in 0..3 {
        for (text, expected) in [
            (r#"{"x": [], "s": "a"}"#, (1, Some(0), 0)),
            (r#"{"x": [1, [2, 3], {"a": 4}], "s": "a"}"#, (1, Some(3), 0)),
            (r#"{"x": "", "s": "a"}"#, (1, Some(0), 0)),
            ("{\"x\": \"a\u{e4}\u{20ac}\u{1f600}\", \"s\": \"a\"}", (1, Some(4), 0)),
            (r#"{"x": "a\n\u20ac\ud83d\ude00", "s": "a"}"#, (1, Some(4), 0)),
            (r#"{"s": "a"}"#, (0, None, 0)),
            (r#"{"x": null, "s": "a"}"#, (1, None, 0)),
            (r#"{"x": {"a": 1}, "s": "a"}"#, (1, None, 1)),
            (r#"{"x": 5, "s": "a"}"#, (1, None, 1)),
        ] {
            assert_eq!(decode(text), expected, "{text}");
        }
    }
}
