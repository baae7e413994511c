//! `Read::Number`: numbers that may be written as texts, in every encoding.

#![allow(clippy::unwrap_used, clippy::panic)] // a test

use std::sync::Arc;

use proptest::prelude::*;
use rondel_decode::json::JsonDecoder;
use rondel_decode::protobuf::Descriptors;
use rondel_decode::schema::Library;
use rondel_decode::{Decoder, Encoding, MessageType, Parameters};
use rondel_event::{
    Block, Field, Layout, Path, Projection, Read, Slot, TimeUnit, Timestamp, TopicId, ValueType,
};

fn projection(exact: bool) -> Projection {
    let field = |value_type, slot, exact| Field {
        path: Path::keys(["value"]),
        read: Read::Number(value_type),
        slot,
        exact,
    };
    let fields =
        vec![field(ValueType::Float, Slot::Float(0), exact), field(ValueType::Int, Slot::Int(0), false)];
    Projection { fields }
}

fn block() -> Block {
    Block::new(Layout { topics: 1, ints: 1, floats: 1, ..Layout::default() })
}

/// A float, an integer, and the number of values of another type.
type Found = (Option<f64>, Option<i64>, u64);

fn found(block: &Block, mistyped: u64) -> Found {
    let (float, int) = (block.floats(0), block.ints(0));
    let is_known = |valid: u64| valid & 1 == 1;
    (is_known(float.valid).then_some(float.values[0]), is_known(int.valid).then_some(int.values[0]), mistyped)
}

fn read(decoder: &mut Decoder, payload: &[u8]) -> Found {
    let (mut block, before) = (block(), decoder.mistyped());
    decoder.decode(payload, Timestamp::ZERO, &mut block).unwrap();
    found(&block, decoder.mistyped() - before)
}

/// Texts, and the numbers that they contain.
const TEXTS: [(&str, Found); 18] = [
    ("150.5", (Some(150.5), None, 1)),
    ("7", (Some(7.0), Some(7), 0)),
    ("-7", (Some(-7.0), Some(-7), 0)),
    (" +3\n", (Some(3.0), Some(3), 0)),
    ("1e3", (Some(1000.0), Some(1000), 0)),
    ("2.50E-1", (Some(0.25), None, 1)),
    (".5", (Some(0.5), None, 1)),
    ("5.", (Some(5.0), Some(5), 0)),
    ("9223372036854775807", (Some(9_223_372_036_854_775_807.0), Some(i64::MAX), 0)),
    ("9223372036854775808", (Some(9_223_372_036_854_775_808.0), None, 1)),
    ("", (None, None, 0)),
    (" ", (None, None, 0)),
    ("n/a", (None, None, 2)),
    ("nan", (None, None, 2)),
    ("inf", (None, None, 2)),
    ("0x10", (None, None, 2)),
    ("1,5", (None, None, 2)),
    ("1 2", (None, None, 2)),
];

/// Returns `message T { string value = 1; }` as a descriptor set.
fn protobuf() -> MessageType {
    let field = [&[0x12, 13, 0x0a, 5][..], b"value", &[0x18, 1, 0x20, 1, 0x28, 9]].concat();
    let message = [&[0x0a, 1, b'T'][..], &field].concat();
    let file = [&[0x22, message.len() as u8][..], &message, &[0x62, 6], b"proto3"].concat();
    let set = [&[0x0a, file.len() as u8][..], &file].concat();
    MessageType::Protobuf(Descriptors::from_bytes(&set).unwrap().message("T").unwrap())
}

fn cdr(definition: &str) -> MessageType {
    let mut library = Library::new();
    library.add_msg("t/msg/T", definition).unwrap();
    MessageType::Cdr(library.schema("t/msg/T").unwrap())
}

/// Returns a message of each encoding with this text: its decoder, and its bytes.
fn messages(text: &str) -> Vec<(Decoder, Vec<u8>)> {
    let decoder = |encoding, message_type: Option<MessageType>| {
        let (topic, unit) = (TopicId(0), TimeUnit::Seconds);
        Decoder::new(encoding, message_type.as_ref(), topic, &projection(false), None, unit).unwrap()
    };
    let (bytes, length) = (text.as_bytes(), text.len() as u8);
    let units: Vec<u8> = text.encode_utf16().flat_map(|unit| u32::from(unit).to_le_bytes()).collect();
    let json = serde_json::json!({ "value": text }).to_string();
    vec![
        (decoder(Encoding::Json, None), json.into_bytes()),
        (decoder(Encoding::Cbor, None), [b"\xa1\x65value\x78", &[length][..], bytes].concat()),
        (decoder(Encoding::Msgpack, None), [b"\x81\xa5value\xd9", &[length][..], bytes].concat()),
        (decoder(Encoding::Protobuf, Some(protobuf())), [&[0x0a, length][..], bytes].concat()),
        (
            decoder(Encoding::Cdr, Some(cdr("string value"))),
            [&[0, 1, 0, 0, length + 1, 0, 0, 0][..], bytes, &[0]].concat(),
        ),
        (
            decoder(Encoding::Cdr, Some(cdr("wstring value"))),
            [&[0, 1, 0, 0, length, 0, 0, 0][..], &units].concat(),
        ),
    ]
}

#[test]
fn texts_are_numbers_in_every_encoding() {
    for (text, expected) in TEXTS {
        for (mut decoder, message) in messages(text) {
            assert_eq!(read(&mut decoder, &message), expected, "{text:?} {decoder:?}");
            let is_text = expected.2 == 2;
            let first = decoder.no_number().map(|text| text.quoted());
            assert_eq!(first, is_text.then(|| format!("{text:?}")), "{text:?}");
            // Numbers are read as without texts.
            if let Decoder::Json(_) = decoder {
                assert_eq!(read(&mut decoder, br#"{"value": 2.5}"#), (Some(2.5), None, 1));
                assert_eq!(read(&mut decoder, br#"{"value": -4}"#), (Some(-4.0), Some(-4), 0));
                assert_eq!(read(&mut decoder, br#"{"value": null}"#), (None, None, 0));
                assert_eq!(read(&mut decoder, br#"{"value": true}"#), (None, None, 2));
                assert_eq!(read(&mut decoder, b"{\"value\": \"\\u0035\"}"), (Some(5.0), Some(5), 0));
            }
        }
    }
}

#[test]
fn numbers_of_typed_messages_are_read_as_without_texts() {
    let typed = |definition, value_type, slot| {
        let path = Path::keys(["value"]);
        let fields = vec![Field { path, read: Read::Number(value_type), slot, exact: false }];
        let message_type = cdr(definition);
        Decoder::new(
            Encoding::Cdr,
            Some(&message_type),
            TopicId(0),
            &Projection { fields },
            None,
            TimeUnit::Seconds,
        )
    };
    let mut decoder = typed("float32 value", ValueType::Float, Slot::Float(0)).unwrap();
    let message = [&[0, 1, 0, 0], &2.5_f32.to_le_bytes()[..]].concat();
    assert_eq!(read(&mut decoder, &message), (Some(2.5), None, 0));
    let mut decoder = typed("int16 value", ValueType::Int, Slot::Int(0)).unwrap();
    assert_eq!(read(&mut decoder, &[0, 1, 0, 0, 5, 0]), (None, Some(5), 0));
    let error = typed("bool value", ValueType::Float, Slot::Float(0)).unwrap_err().to_string();
    assert_eq!(error, "field `value`: expected float, but the field is a boolean");
}

/// An integer that a double rounds is refused where exactness is required, also in a text.
#[test]
fn integers_in_texts_are_exact_where_they_must_be() {
    let (topic, unit) = (TopicId(0), TimeUnit::Seconds);
    for exact in [false, true] {
        let mut decoder = Decoder::Json(JsonDecoder::new(topic, &projection(exact), None, unit));
        let found = read(&mut decoder, br#"{"value": "9007199254740993"}"#);
        let rounded = (Some(9_007_199_254_740_992.0), Some(9_007_199_254_740_993), 0);
        let refused = (None, Some(9_007_199_254_740_993), 1);
        assert_eq!(found, if exact { refused } else { rounded });
        assert_eq!(decoder.too_large().is_some(), exact);
    }
}

#[test]
fn parameters_of_addresses_are_numbers() {
    let names = ["rack/{value}/state".to_owned()];
    let parameters = Parameters::of(&names, &projection(false)).unwrap();
    for (name, expected) in [("rack/12/state", Some(12.0)), ("rack/a/state", None)] {
        let mut block = block();
        block.push(TopicId(0), Timestamp::ZERO);
        parameters.write(&parameters.captures(name).unwrap(), &mut block, 0);
        assert_eq!(found(&block, 0).0, expected, "{name}");
    }
}

#[test]
fn plain_payloads_are_read_as_without_texts() {
    let (topic, unit) = (TopicId(0), TimeUnit::Seconds);
    let mut decoder = Decoder::plain(Arc::default(), topic, &projection(false), None, unit).unwrap();
    for (text, expected) in [("23.5", (Some(23.5), None, 1)), ("\"8\"", (Some(8.0), Some(8), 0))] {
        assert_eq!(read(&mut decoder, text.as_bytes()), expected, "{text}");
    }
}

/// The definition: a sign, digits with at most one point, and an exponent, between white space.
fn is_decimal(text: &str) -> bool {
    let text = text.trim_matches([' ', '\t', '\n', '\r', '\x0c']);
    let digits = text.strip_prefix(['+', '-']).unwrap_or(text);
    let (mantissa, exponent) = match digits.split_once(['e', 'E']) {
        Some((mantissa, exponent)) => (mantissa, Some(exponent)),
        None => (digits, None),
    };
    let are_digits = |part: &str| part.bytes().all(|byte| byte.is_ascii_digit());
    let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    let is_exponent = |exponent: &str| {
        let digits = exponent.strip_prefix(['+', '-']).unwrap_or(exponent);
        !digits.is_empty() && are_digits(digits)
    };
    whole.len() + fraction.len() > 0
        && are_digits(whole)
        && are_digits(fraction)
        && exponent.is_none_or(is_exponent)
}

proptest! {
    #[test]
    fn a_text_is_a_number_by_the_definition(text in "[ +\\-.0-9eEx]{0,8}|\\PC{0,6}") {
        let (topic, unit) = (TopicId(0), TimeUnit::Seconds);
        let mut decoder = Decoder::Json(JsonDecoder::new(topic, &projection(false), None, unit));
        let (float, ..) = read(&mut decoder, serde_json::json!({ "value": text }).to_string().as_bytes());
        let expected = is_decimal(&text).then(|| text.trim().parse::<f64>().unwrap());
        prop_assert_eq!(float, expected, "{:?}", text);
    }

    /// A shape recorded from messages with numbers does not change how texts are read, and vice versa.
    #[test]
    fn earlier_messages_change_nothing(values in proptest::collection::vec((any::<i32>(), 0..4_usize), 1..30)) {
        let (topic, unit) = (TopicId(0), TimeUnit::Seconds);
        let mut decoder = Decoder::Json(JsonDecoder::new(topic, &projection(true), None, unit));
        for (value, form) in values {
            let message = match form {
                0 => format!("{{\"value\": {value}}}"),
                1 => format!("{{\"value\": \"{value}\"}}"),
                2 => format!("{{\"value\": {value}.5}}"),
                _ => format!("{{\"value\": \"{value}.5\"}}"),
            };
            let fresh = &mut Decoder::Json(JsonDecoder::new(topic, &projection(true), None, unit));
            prop_assert_eq!(read(&mut decoder, message.as_bytes()), read(fresh, message.as_bytes()), "{}", message);
        }
    }
}
