//! The common interface: one decoder for every encoding.

#![allow(clippy::unwrap_used, clippy::panic)] // a test

mod common;

use common::{Found, found, path, projection};
use rondel_decode::protobuf::Descriptors;
use rondel_decode::schema::Library;
use rondel_decode::{DecodeError, Decoder, DecoderError, Encoding, MessageType};
use rondel_event::{Block, Read, TimeUnit, Timestamp, TopicId, ValueType};

fn cdr() -> MessageType {
    let mut library = Library::new();
    library.add_msg("demo/msg/Speed", "int64 t\nfloat64 v").unwrap();
    MessageType::Cdr(library.schema("demo/msg/Speed").unwrap())
}

/// `message Speed { int64 t = 1; double v = 2; }`, as a descriptor set.
fn protobuf() -> MessageType {
    let field = |name: u8, number: u8, kind: u8| [0x12, 9, 0x0a, 1, name, 0x18, number, 0x20, 1, 0x28, kind];
    let message = [&[0x0a, 5][..], b"Speed", &field(b't', 1, 3), &field(b'v', 2, 1)].concat();
    let file = [&[0x22, message.len() as u8][..], &message, &[0x62, 6], b"proto3"].concat();
    let set = [&[0x0a, file.len() as u8][..], &file].concat();
    MessageType::Protobuf(Descriptors::from_bytes(&set).unwrap().message("Speed").unwrap())
}

fn decoder(
    encoding: Encoding,
    message_type: Option<&MessageType>,
    field: &str,
) -> Result<Decoder, DecoderError> {
    let (projection, _) = projection([(path(field), Read::Value(ValueType::Float))]);
    let time = path("t");
    Decoder::new(encoding, message_type, TopicId(0), &projection, Some(&time), TimeUnit::Seconds)
}

#[test]
fn every_encoding_has_a_name() {
    for encoding in Encoding::ALL {
        assert_eq!(Encoding::from_name(encoding.name()), Some(encoding));
        let is_refused = decoder(encoding, None, "v").err() == Some(DecoderError::NoType(encoding));
        assert_eq!(is_refused, encoding.needs_schema(), "{encoding}");
    }
    assert_eq!(Encoding::from_name("yaml"), None);
}

#[test]
fn a_type_must_be_of_the_encoding_and_have_the_fields() {
    let error = decoder(Encoding::Protobuf, Some(&cdr()), "v").unwrap_err();
    assert_eq!(error.to_string(), "the type is one of cdr, but the messages are in protobuf");
    let error = decoder(Encoding::Json, Some(&cdr()), "v").unwrap_err();
    assert_eq!(error.to_string(), "messages in json have no type");
    let error = decoder(Encoding::Cdr, Some(&cdr()), "w").unwrap_err();
    assert_eq!(error.to_string(), "field `w`: the message type has no such field; there are `t`, `v`");
}

#[test]
fn every_encoding_reads_the_same_and_locates_errors() {
    let body = [[3_i64.to_le_bytes(), 1.5_f64.to_le_bytes()].concat(), [7_i64.to_le_bytes(); 2].concat()];
    let encapsulated = |body: &[u8]| [&[0, 1, 0, 0], body].concat();
    let cases = [
        (Encoding::Json, None, br#"{"t": 3, "v": 1.5}"#.to_vec(), br#"{"t": true}"#.to_vec(), 6, None),
        (Encoding::Cdr, Some(cdr()), encapsulated(&body[0]), encapsulated(&[0xff; 7]), 4, Some("t")),
        (
            Encoding::Protobuf,
            Some(protobuf()),
            b"\x08\x03\x11\0\0\0\0\0\0\xf8\x3f".to_vec(),
            b"\x11\x08\xff".to_vec(),
            3,
            Some("v"),
        ),
        (
            Encoding::Cbor,
            None,
            b"\xa2\x61t\x03\x61v\xf9\x3e\0".to_vec(),
            b"\xa1\x61t\xf5".to_vec(),
            3,
            Some("t"),
        ),
        (
            Encoding::Msgpack,
            None,
            b"\x82\xa1t\x03\xa1v\xca\x3f\xc0\0\0".to_vec(),
            b"\x81\xa1t\xc3".to_vec(),
            3,
            Some("t"),
        ),
        (
            Encoding::Xml,
            None,
            b"<m t='3'><v>1.5</v></m>".to_vec(),
            b"<m><v/><t>soon</t></m>".to_vec(),
            7,
            Some("t"),
        ),
    ];
    for (encoding, message_type, message, bad, offset, field) in cases {
        let (projection, layout) = projection([(path("v"), Read::Value(ValueType::Float))]);
        let mut decoder = decoder(encoding, message_type.as_ref(), "v").unwrap();
        let mut block = Block::new(layout);
        decoder.decode(&message, Timestamp::ZERO, &mut block).unwrap();
        assert_eq!(block.time(0), Timestamp::from_nanos(3_000_000_000), "{encoding}");
        assert_eq!(found(&projection, &block, 0), [Found::Float(1.5)], "{encoding}");
        let error: DecodeError = decoder.decode(&bad, Timestamp::ZERO, &mut block).unwrap_err();
        assert_eq!((error.offset(), error.path()), (offset, field), "{encoding}: {error}");
        assert_eq!(error.is_about_time(), !encoding.needs_schema(), "{encoding}");
        assert_eq!((block.len(), decoder.mistyped()), (1, 0));
    }
}

#[test]
fn first_value_of_another_type_has_time_and_offset() {
    for (encoding, message, offset) in [
        (Encoding::Json, &br#"{"t": 4, "v": "x"}"#[..], None),
        (Encoding::Cbor, b"\xa2\x61t\x04\x61v\x61x", Some(6)),
        (Encoding::Cbor, b"\xa2\x61v\xa1\x61v\x01\x61t\x04", Some(3)),
        (Encoding::Msgpack, b"\x82\xa1t\x04\xa1v\x91\x01", Some(6)),
        (Encoding::Xml, b"<m t='4'>\n<v>x</v></m>", Some(10)),
        (Encoding::Xml, b"<m><t>4</t><v>1</v><v>2</v></m>", Some(11)),
        (Encoding::Xml, b"<m t='4'><v><w/></v></m>", Some(9)),
    ] {
        let (_, layout) = projection([(path("v"), Read::Value(ValueType::Float))]);
        let mut decoder = decoder(encoding, None, "v").unwrap();
        let mut block = Block::new(layout);
        assert_eq!(decoder.first_mistyped(), None, "{encoding}");
        for message in [message, message] {
            decoder.decode(message, Timestamp::ZERO, &mut block).unwrap();
            let first = decoder.first_mistyped().unwrap();
            assert_eq!(first.time, Timestamp::from_nanos(4_000_000_000), "{encoding}");
            assert_eq!(first.offset, offset, "{encoding} {}", String::from_utf8_lossy(message));
        }
        assert_eq!(decoder.mistyped(), 2, "{encoding}");
    }
}
