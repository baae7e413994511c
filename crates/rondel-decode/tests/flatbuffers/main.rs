//! FlatBuffers against the compiler of its authors, which wrote `types.bfbs` and `message.bin` (from `types.fbs` and
//! `message.json`), and against their library, which writes random messages.

#![allow(clippy::unwrap_used, clippy::panic)] // a test

#[path = "../common/mod.rs"]
mod common;
mod random;

use common::{Found, assert_unchanged, found, path, projection};
use rondel_decode::flatbuffers::{BinarySchema, FlatbuffersDecoder, FlatbuffersType};
use rondel_decode::{Decoder, Encoding, MessageError, MessageErrorKind, MessageType};
use rondel_event::{
    Block, Comparison, Condition, Layout, Path, Quantifier, Read, Test, TimeUnit, Timestamp, TopicId, Value,
    ValueType,
};
use rondel_testkit::Random;

const SCHEMA: &[u8] = include_bytes!("types.bfbs");
const MESSAGE: &[u8] = include_bytes!("message.bin");

const INT: Read = Read::Value(ValueType::Int);
const FLOAT: Read = Read::Value(ValueType::Float);
const BOOL: Read = Read::Value(ValueType::Bool);
const STRING: Read = Read::Value(ValueType::String);
const TIME: Read = Read::Value(ValueType::Time);

fn root() -> FlatbuffersType {
    BinarySchema::from_bytes(SCHEMA).unwrap().root().unwrap()
}

fn read(message: &[u8], reads: &[(&str, Read)]) -> Result<(Vec<Found>, u64), MessageError> {
    let (projection, layout) = projection(reads.iter().map(|(text, read)| (path(text), read.clone())));
    let unit = TimeUnit::Milliseconds;
    let mut decoder = FlatbuffersDecoder::new(TopicId(0), &root(), &projection, None, unit).unwrap();
    let mut block = Block::new(layout);
    decoder.decode(message, Timestamp::ZERO, &mut block)?;
    Ok((found(&projection, &block, 0), decoder.refused().mistyped()))
}

fn elements(quantifier: Quantifier, conditions: &[(&str, Test)]) -> Read {
    let condition =
        |(text, test): &(&str, Test)| Condition { alternative: 0, path: path(text), test: test.clone() };
    Read::Elements(quantifier, conditions.iter().map(condition).collect())
}

/// Asserts that these reads of the message of the compiler have these values.
fn assert_read(cases: &[(&str, Read, Found)]) {
    let reads: Vec<(&str, Read)> = cases.iter().map(|(path, read, _)| (*path, read.clone())).collect();
    let (found, mistyped) = read(MESSAGE, &reads).unwrap();
    for ((path, read, expected), found) in cases.iter().zip(found) {
        assert_eq!(found, *expected, "{path} {read:?}");
    }
    assert_eq!(mistyped, 0);
}

fn text(text: &str) -> Found {
    Found::Text(text.into())
}

fn above(bound: f64) -> Test {
    Test::Number(Comparison::Greater, bound)
}

#[test]
fn fields_of_the_message_of_the_compiler_are_read() {
    let (int, float, unknown) = (Found::Int, Found::Float, Found::Invalid);
    assert_read(&[
        ("d", FLOAT, float(-1.5)),
        ("f", FLOAT, float(1.25)),
        ("b", BOOL, Found::Bool(false)),
        ("i8", INT, int(-128)),
        ("u8", INT, int(255)),
        ("i16", INT, int(-7)),
        ("u16", INT, int(65_535)),
        ("i32", INT, int(i32::MIN.into())),
        ("u32", INT, int(u32::MAX.into())),
        ("u32", FLOAT, float(4_294_967_295.0)),
        ("i64", INT, int(i64::MIN)),
        ("u64", FLOAT, float(18_446_744_073_709_551_615.0)),
        ("s", STRING, text("gr\u{f6}\u{df}e")),
        ("s", Read::Length, int(5)),
        ("m.x", FLOAT, float(0.5)),
        ("m.y", FLOAT, float(2.5)),
        ("m.gear", STRING, text("Drive")),
        ("m.name", STRING, text("point")),
        ("m.l", Read::Length, int(3)),
        ("m.l.1", INT, int(-2)),
        ("m.l.3", INT, unknown.clone()),
        ("m.inner.x", FLOAT, float(7.0)),
        ("m.inner.gear", STRING, text("Back")),
        ("m.inner.inner.x", FLOAT, unknown.clone()),
        ("m.inner", Read::Presence, Found::Bool(true)),
        ("e", STRING, text("Back")),
        ("e", INT, int(-1)),
        ("w", STRING, text("Low")),
        ("g", INT, int(5)),
        ("oi", INT, int(0)),
        ("ob", BOOL, unknown.clone()),
        ("oe", STRING, text("Park")),
        ("of", FLOAT, unknown.clone()),
        ("v.x", FLOAT, float(1.0)),
        ("v.z", FLOAT, float(3.5)),
        ("v.n", INT, int(-4)),
        ("v", Read::Presence, Found::Bool(true)),
        ("p.at.n", INT, int(40)),
        ("p.turn.3", FLOAT, float(3.5)),
        ("p.turn", Read::Length, int(4)),
        ("p.turn", elements(Quantifier::All, &[("", above(0.0))]), Found::Bool(true)),
        ("p.gears.1", STRING, text("Park")),
        ("p.stamps.1.nanosec", INT, int(4)),
        ("p.stamps.1", TIME, int(3_000_000_004)),
        ("t", TIME, int(5_000_000_006)),
        ("st", TIME, int(-4_000_000_001)),
        ("i16", TIME, int(-7_000_000)),
        ("u_type", STRING, text("Number")),
        ("u.Number.value", FLOAT, float(4.5)),
        ("u.Text.text", STRING, unknown.clone()),
        ("u.Place.x", FLOAT, unknown.clone()),
        ("u", Read::Presence, Found::Bool(true)),
        ("us", Read::Length, unknown),
        ("last", INT, int(99)),
    ]);
    // Beyond the range of an int; several bits.
    let (found, mistyped) = read(MESSAGE, &[("u64", INT), ("g", STRING)]).unwrap();
    assert_eq!((found, mistyped), (vec![Found::Invalid, Found::Invalid], 2));
}

#[test]
fn arrays_of_the_message_of_the_compiler_are_read() {
    let (int, float, unknown) = (Found::Int, Found::Float, Found::Invalid);
    let is = |text: &str| Test::Equals(Value::String(text.into()));
    let (any, all) = (Quantifier::Any, Quantifier::All);
    assert_read(&[
        ("rd.1", FLOAT, float(4.0)),
        ("rd", elements(any, &[("", above(3.0))]), Found::Bool(true)),
        ("rd", elements(all, &[("", above(3.0))]), Found::Bool(false)),
        ("rd", elements(Quantifier::Max, &[]), float(4.0)),
        ("p.turn", elements(Quantifier::Mean, &[]), float(2.0)),
        ("rb.2", BOOL, Found::Bool(true)),
        ("ru", Read::Length, int(4)),
        ("rs.2", STRING, text("c")),
        ("rs", elements(any, &[("", is(""))]), Found::Bool(true)),
        ("rm", Read::Length, int(3)),
        ("rm.1.name", STRING, text("two")),
        ("rm.0.name", STRING, unknown.clone()),
        ("rm", elements(any, &[("x", above(4.0)), ("gear", is("Park"))]), Found::Bool(true)),
        ("rm", elements(any, &[("x", above(6.0)), ("gear", is("Park"))]), Found::Bool(false)),
        ("rv.1.n", INT, int(9)),
        ("rm.name=two.x", FLOAT, float(5.0)),
        ("rm.name=two.y", FLOAT, float(2.5)),
        ("rm.name=two.gear", STRING, text("Park")),
        ("rm.name=two.l.0", INT, unknown.clone()),
        ("rm.name=none.x", FLOAT, Found::Absent),
        ("rv.n=9.x", FLOAT, float(2.0)),
        ("rd.rs~", FLOAT, float(4.0)),
        ("rd.rs~a", FLOAT, float(0.25)),
        ("rd.rs~c", FLOAT, unknown),
        ("rd.rs~none", FLOAT, Found::Absent),
        ("rm.rs~c.y", FLOAT, float(0.0)),
        ("rv", elements(all, &[("x", above(0.5))]), Found::Bool(true)),
        ("re.0", STRING, text("Drive")),
    ]);
}

#[test]
fn the_common_decoder_reads_it_with_a_time() {
    let message_type = MessageType::Flatbuffers(root());
    assert_eq!((message_type.name(), message_type.encoding()), ("demo.Root", Encoding::Flatbuffers));
    let (projection, layout) = projection([(path("d"), FLOAT)]);
    let new = |time: &Path| {
        let (encoding, topic, unit) = (Encoding::Flatbuffers, TopicId(0), TimeUnit::Seconds);
        Decoder::new(encoding, Some(&message_type), topic, &projection, Some(time), unit)
    };
    let mut block = Block::new(layout);
    new(&path("t")).unwrap().decode(MESSAGE, Timestamp::ZERO, &mut block).unwrap();
    assert_eq!(block.time(0), Timestamp::from_nanos(5_000_000_006));
    let error = new(&path("u64")).unwrap().decode(MESSAGE, Timestamp::ZERO, &mut block).unwrap_err();
    assert!(error.is_about_time(), "{error}");
    assert_eq!((error.path(), block.len()), (Some("u64"), 1));
    assert!(new(&path("m")).is_err());
}

#[test]
fn schemas_name_their_tables() {
    let schema = BinarySchema::from_bytes(SCHEMA).unwrap();
    let names: Vec<&str> = schema.table_names().collect();
    assert_eq!(names, ["demo.Number", "demo.Point", "demo.Root", "demo.Text", "demo.Time"]);
    assert_eq!(schema.table("demo.Time").unwrap().name(), "demo.Time");
    let error = schema.table("demo.Vec3").unwrap_err().to_string();
    assert!(error.contains("no table `demo.Vec3`; there are demo.Number"), "{error}");
    assert!(BinarySchema::from_bytes(MESSAGE).is_err());
}

#[test]
fn fields_that_a_type_does_not_have_are_all_named() {
    let reads = [
        ("m.w", FLOAT),
        ("d", INT),
        ("s", FLOAT),
        ("m", FLOAT),
        ("rd", FLOAT),
        ("rd.x", FLOAT),
        ("d.0", FLOAT),
        ("p.turn.4", FLOAT),
        ("us.0", Read::Presence),
        ("u.Other", Read::Presence),
        ("i32", Read::Length),
        ("gone", INT),
        ("e", elements(Quantifier::Any, &[])),
        ("re", elements(Quantifier::Any, &[("", Test::Equals(Value::String("Fast".into())))])),
    ];
    let (projection, _) = projection(reads.iter().map(|(text, read)| (path(text), read.clone())));
    let decoder = FlatbuffersDecoder::new(TopicId(0), &root(), &projection, None, TimeUnit::Seconds);
    let errors: Vec<String> = decoder.unwrap_err().iter().map(ToString::to_string).collect();
    for part in [
        "field `m.w`: the message type has no such field; there are",
        "field `d`: expected int, but the field is a floating-point number",
        "field `s`: expected float, but the field is text",
        "field `m`: expected float, but the field is a value of type demo.Point",
        "field `rd`: expected float, but the field is a vector",
        "field `rd.x`: the message type has no such field",
        "field `d[0]`: the field is no array",
        "field `p.turn[4]`: the array has 4 elements",
        "field `us[0]`: a vector of unions cannot be read",
        "field `u.Other`: the message type has no such field; there are `Text`, `Number`, `Place`",
        "field `i32`: expected an array or text",
        "field `gone`: the message type has no such field",
        "field `e`: the field is no array",
        "field `re.[]`: the enumeration has no constant `Fast`",
    ] {
        let part = part.replace(".[]", "[]");
        assert!(errors.iter().any(|error| error.contains(&part)), "{part}\n{errors:#?}");
    }
}

#[test]
fn errors_name_place_and_field() {
    use MessageErrorKind::{NotATable, OffsetBeyondEnd, OtherIdentifier, Truncated};
    let kind = |message: &[u8]| read(message, &[("d", FLOAT)]).unwrap_err();
    assert_eq!((kind(&[]).kind, kind(&[8, 0]).kind), (Truncated, Truncated));
    assert_eq!(kind(&[0; 12]).kind, OffsetBeyondEnd(0));
    assert_eq!(kind(&[0xff; 12]).kind, OffsetBeyondEnd(0xffff_ffff));
    assert_eq!(kind(b"\x08\0\0\0NONE\0\0\0\0").kind, OtherIdentifier(*b"DEMO"));
    let unmarked = kind(b"\x08\0\0\0NONE\0\0\0\0").to_string();
    assert_eq!(unmarked, "byte 4: the message is not marked `DEMO`, as its schema demands");
    assert_eq!(kind(b"\x08\0\0\0DEMO\0\0\0\x80").kind, NotATable);
    // A size before the message is not expected.
    let sized = [&(MESSAGE.len() as u32).to_le_bytes(), MESSAGE].concat();
    assert!(read(&sized, &[("d", FLOAT)]).is_err());
    // A text of 4 GB.
    let at = MESSAGE.windows(7).position(|part| part == "gr\u{f6}\u{df}e".as_bytes()).unwrap() - 4;
    let mut long = MESSAGE.to_vec();
    long[at..at + 4].fill(0xff);
    let error = read(&long, &[("s", STRING)]).unwrap_err();
    assert_eq!((error.offset, &*error.path), (at, "s"));
    assert_eq!(error.kind, MessageErrorKind::LengthBeyondEnd(0xffff_ffff));
    // Fields that are not read are not checked.
    assert_eq!(read(&long, &[("d", FLOAT)]).unwrap().0, [Found::Float(-1.5)]);
}

#[test]
fn damaged_messages_and_schemas_do_not_panic() {
    let names = ["m.inner.x", "s", "p.turn.3", "rm.1.name", "rs.2", "u.Number.value", "t", "rd"];
    let kinds = [FLOAT, STRING, FLOAT, STRING, STRING, FLOAT, TIME, Read::Length];
    let (projection, layout) = projection(names.iter().map(|name| path(name)).zip(kinds));
    let mut decoder =
        FlatbuffersDecoder::new(TopicId(0), &root(), &projection, None, TimeUnit::Seconds).unwrap();
    let mut random = Random::new(1);
    let mut message = MESSAGE.to_vec();
    for round in 0..20_000 {
        if round % 8 == 0 {
            message = MESSAGE.to_vec();
        }
        let at = random.index(message.len());
        match random.index(8) {
            0 => message.truncate(at + 1),
            1 => message[at] = 0xff,
            _ => message[at] = random.next() as u8,
        }
        let mut block = Block::new(layout);
        block.push(TopicId(0), Timestamp::ZERO);
        if let Err(error) = decoder.decode(&message, Timestamp::ZERO, &mut block) {
            assert!(error.offset <= message.len(), "{error}");
            assert_unchanged(&projection, &block);
        }
    }
    let mut schema = SCHEMA.to_vec();
    for round in 0..20_000 {
        if round % 4 == 0 {
            schema = SCHEMA.to_vec();
        }
        let at = 8 + random.index(schema.len() - 8);
        schema[at] = random.next() as u8;
        let Ok(found) = BinarySchema::from_bytes(&schema) else { continue };
        let Some(root) = found.root() else { continue };
        let decoder = FlatbuffersDecoder::new(TopicId(0), &root, &projection, None, TimeUnit::Seconds);
        if let Ok(mut decoder) = decoder {
            let mut block = Block::new(layout);
            let _ = decoder.decode(MESSAGE, Timestamp::ZERO, &mut block);
        }
    }
}

/// A block for one message.
fn block(layout: Layout) -> Block {
    Block::new(layout)
}
