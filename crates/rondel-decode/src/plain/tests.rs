//! Tests of plain values of every type.

use proptest::prelude::*;
use rondel_event::{Field, Layout, Read, Value, ValueType};

use super::*;

/// Returns a decoder that reads the value as every type.
fn all() -> (PlainDecoder, Block) {
    let path = Path::keys([VALUE]);
    let field = |read, slot| Field { path: path.clone(), read, slot, exact: false };
    let fields = vec![
        field(Read::Value(ValueType::Float), Slot::Float(0)),
        field(Read::Value(ValueType::Int), Slot::Int(0)),
        field(Read::Value(ValueType::Bool), Slot::Bool(0)),
        field(Read::Value(ValueType::String), Slot::String(0)),
        field(Read::Value(ValueType::Duration), Slot::Int(1)),
    ];
    let projection = Projection { fields };
    let layout = Layout { bools: 1, ints: 2, floats: 1, strings: 1, topics: 1 };
    let words = Arc::default();
    let decoder = PlainDecoder::new(TopicId(0), &projection, None, TimeUnit::Seconds, words).unwrap();
    (decoder, Block::new(layout))
}

/// The value of a payload as a float, an integer, a boolean, a text and a duration, each if it is one.
type Read5 = (Option<f64>, Option<i64>, Option<bool>, Option<String>, Option<i64>);

fn read(payload: &str) -> Read5 {
    let (mut decoder, mut block) = all();
    decoder.decode(payload.as_bytes(), Timestamp::ZERO, &mut block).unwrap();
    let value = |slot, value_type| block.value(slot, value_type, 0).flatten();
    let integer = |value| if let Some(Value::Int(value)) = value { Some(value) } else { None };
    let float = value(Slot::Float(0), ValueType::Float);
    let text = value(Slot::String(0), ValueType::String);
    (
        if let Some(Value::Float(value)) = float { Some(value) } else { None },
        integer(value(Slot::Int(0), ValueType::Int)),
        value(Slot::Bool(0), ValueType::Bool).map(|value| value == Value::Bool(true)),
        if let Some(Value::String(text)) = text { Some(text.to_string()) } else { None },
        integer(value(Slot::Int(1), ValueType::Int)),
    )
}

#[test]
fn texts_are_read_by_their_type() {
    let text = |text: &str| Some(text.to_owned());
    for (payload, wanted) in [
        ("23.5", (Some(23.5), None, None, text("23.5"), Some(23_500_000_000))),
        (" 7\n", (Some(7.0), Some(7), None, text("7"), Some(7_000_000_000))),
        ("1", (Some(1.0), Some(1), Some(true), text("1"), Some(1_000_000_000))),
        ("-3.0", (Some(-3.0), Some(-3), None, text("-3.0"), Some(-3_000_000_000))),
        ("ON", (None, None, Some(true), text("ON"), None)),
        ("\"Offline\"", (None, None, Some(false), text("Offline"), None)),
        ("250 ms", (None, None, None, text("250 ms"), Some(250_000_000))),
        ("heat", (None, None, None, text("heat"), None)),
        ("1e3", (Some(1000.0), Some(1000), None, text("1e3"), Some(1_000_000_000_000))),
        ("", (None, None, None, None, None)),
        ("null", (None, None, None, None, None)),
        ("{\"a\": 1}", (None, None, None, text("{\"a\": 1}"), None)),
    ] {
        assert_eq!(read(payload), wanted, "{payload:?}");
    }
}

#[test]
fn words_of_a_deployment_come_before_the_usual_ones() {
    let mut words = Words::default();
    words.add("Heat", true).unwrap();
    words.add("open", false).unwrap();
    assert_eq!(words.add("HEAT", false), Err("heat".to_owned()));
    let truths = ["heat", "OPEN", "on", "cool"].map(|word| words.truth(word.as_bytes()));
    assert_eq!(truths, [Some(true), Some(false), Some(true), None]);
}

#[test]
fn messages_are_objects_with_one_member() {
    for (payload, wanted) in [
        ("23.5", r#"{"value":23.5}"#),
        ("+5", r#"{"value":5.0}"#),
        ("nan", r#"{"value":null}"#),
        ("true", r#"{"value":true}"#),
        ("ON", r#"{"value":"ON"}"#),
        ("\"7\"", r#"{"value":"7"}"#),
        ("", r#"{"value":null}"#),
        ("a \"b\"", r#"{"value":"a \"b\""}"#),
    ] {
        let mut out = Vec::new();
        let form = crate::json::JsonForm::READABLE;
        crate::MessageWriter::new(crate::Encoding::Plain, None, form)
            .unwrap()
            .write(payload.as_bytes(), 1000, &mut out)
            .unwrap();
        assert_eq!(String::from_utf8(out).unwrap(), wanted, "{payload:?}");
    }
}

#[test]
fn other_fields_are_refused() {
    let field = |path: &str| Field {
        path: Path::keys(path.split('.')),
        read: Read::Value(ValueType::Float),
        slot: Slot::Float(0),
        exact: false,
    };
    for (path, wanted) in [
        ("state", "field `state`: the message type has no such field; there are `value`"),
        (
            "value.x",
            "field `value.x`: the message type has no such field: what it would be part of has no fields",
        ),
    ] {
        let projection = Projection { fields: vec![field(path)] };
        let decoder = PlainDecoder::new(TopicId(0), &projection, None, TimeUnit::Seconds, Arc::default());
        let errors = decoder.unwrap_err();
        assert_eq!(errors.iter().map(ToString::to_string).collect::<Vec<_>>(), [wanted]);
    }
}

proptest! {
    #[test]
    fn no_payload_panics(payload in proptest::collection::vec(any::<u8>(), 0..100)) {
        let (mut decoder, mut block) = all();
        let decoded = decoder.decode(&payload, Timestamp::ZERO, &mut block);
        prop_assert_eq!(block.len(), usize::from(decoded.is_ok()));
        let mut out = Vec::new();
        let form = crate::json::JsonForm::READABLE;
        let writer = crate::MessageWriter::new(crate::Encoding::Plain, None, form).unwrap();
        if writer.write(&payload, 1000, &mut out).is_ok() {
            prop_assert!(json::check(&out).is_ok(), "{}", String::from_utf8_lossy(&out));
        }
    }

    #[test]
    fn numbers_are_read_as_by_the_standard_library(value in any::<f64>()) {
        let text = value.to_string();
        prop_assert_eq!(number(text.as_bytes()).map(f64::to_bits), Some(value.to_bits()));
    }
}
