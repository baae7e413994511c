//! Messages byte by byte, and errors.

use rondel_decode::protobuf::{Descriptors, ProtobufDecoder};
use rondel_decode::{MessageError, MessageErrorKind};
use rondel_event::{Block, Layout, Path, Read, TimeUnit, Timestamp, TopicId, ValueType};

use crate::common::{Found, found, path, projection};
use crate::types;

const INT: Read = Read::Value(ValueType::Int);
const FLOAT: Read = Read::Value(ValueType::Float);
const STRING: Read = Read::Value(ValueType::String);

fn read(message: &[u8], reads: &[(&str, Read)]) -> Result<Vec<Found>, MessageError> {
    let (projection, layout) = projection(reads.iter().map(|(text, read)| (path(text), read.clone())));
    let mut decoder =
        ProtobufDecoder::new(TopicId(0), &types::root(), &projection, None, TimeUnit::Seconds).unwrap();
    let mut block = Block::new(layout);
    decoder.decode(message, Timestamp::ZERO, &mut block)?;
    Ok(found(&projection, &block, 0))
}

fn plan_errors(reads: &[(&str, Read)]) -> Vec<String> {
    let (projection, _) = projection(reads.iter().map(|(text, read)| (path(text), read.clone())));
    let decoder = ProtobufDecoder::new(TopicId(0), &types::root(), &projection, None, TimeUnit::Seconds);
    decoder.unwrap_err().iter().map(ToString::to_string).collect()
}

#[test]
fn an_empty_message_is_all_defaults() {
    let reads = [
        ("d", FLOAT),
        ("i32", INT),
        ("s", STRING),
        ("e", STRING),
        ("oi", INT),
        ("m.x", FLOAT),
        ("ch_i", INT),
        ("rd", Read::Length),
        ("ms", Read::Length),
        ("old.a", INT),
    ];
    let found = read(&[], &reads).unwrap();
    let (zero, unknown) = (Found::Int(0), Found::Invalid);
    let text = |text: &str| Found::Text(text.into());
    assert_eq!(
        found,
        [
            Found::Float(0.0),
            zero.clone(),
            text(""),
            text("PARK"),
            unknown.clone(),
            unknown.clone(),
            unknown.clone(),
            zero.clone(),
            zero,
            unknown
        ]
    );
}

#[test]
fn packed_and_single_elements_are_one_list() {
    // ri (42): packed [1, 2], single 3, packed [4]; it may be cut anywhere.
    let message = [0xd2, 0x02, 2, 1, 2, 0xd0, 0x02, 3, 0xd2, 0x02, 1, 4];
    let reads = [("ri", Read::Length), ("ri.0", INT), ("ri.2", INT), ("ri.3", INT), ("ri.4", INT)];
    let int = Found::Int;
    assert_eq!(read(&message, &reads).unwrap(), [int(4), int(1), int(3), int(4), Found::Invalid]);
    // rf (48), of fixed size.
    let message = [0x82, 0x03, 8, 1, 0, 0, 0, 2, 0, 0, 0, 0x85, 0x03, 3, 0, 0, 0];
    let reads = [("rf", Read::Length), ("rf.1", INT), ("rf.2", INT)];
    assert_eq!(read(&message, &reads).unwrap(), [int(3), int(2), int(3)]);
    // A field of another wire type than its type, here of 32 bits, counts as unknown.
    assert_eq!(read(&[0x0d, 1, 2, 3, 4], &[("d", FLOAT)]).unwrap(), [Found::Float(0.0)]);
    // Two entries with the same key.
    let message = [0xea, 0x03, 5, 0x0a, 1, b'a', 0x10, 1, 0xea, 0x03, 3, 0x0a, 1, b'a'];
    let reads = [("ms", Read::Length), ("ms.a", INT)];
    assert_eq!(read(&message, &reads).unwrap(), [int(2), int(0)]);
}

#[test]
fn the_time_of_the_event_is_a_message_or_a_number() {
    for (field, message, expected) in [
        ("t", &[0xba, 0x04, 4, 0x08, 2, 0x10, 7][..], Ok(2_000_000_007)),
        ("k", &[0xca, 0x04, 2, 0x08, 2], Ok(2_000_000_000)),
        ("t", &[0xba, 0x04, 0], Ok(0)),
        ("i64", &[0x20, 3], Ok(3_000_000)),
        ("i64", &[], Ok(0)),
        ("oi", &[], Ok(5)),
        ("t", &[], Ok(5)),
        ("s", &[0x72, 3, b'7', b' ', b's'], Ok(7_000_000_000)),
        ("s", &[], Ok(5)),
        ("s", &[0x72, 1, b'x'], Err(MessageErrorKind::NotATime)),
        (
            "u64",
            &[0x30, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 1],
            Err(MessageErrorKind::TimeOutOfRange),
        ),
    ] {
        let time = Path::keys([field]);
        let mut decoder = ProtobufDecoder::new(
            TopicId(0),
            &types::root(),
            &Default::default(),
            Some(&time),
            TimeUnit::Milliseconds,
        )
        .unwrap();
        let mut block = Block::new(Layout { topics: 1, ..Layout::default() });
        let result =
            decoder.decode(message, Timestamp::from_nanos(5), &mut block).map_err(|error| error.kind);
        assert_eq!(result.map(|()| block.time(0).as_nanos()), expected, "{field} {message:02x?}");
    }
}

#[test]
fn errors_name_place_and_field() {
    let deep = [("m.name", STRING), ("rm.0.x", FLOAT), ("i32", INT)];
    for (message, offset, kind, field) in [
        (&[0x08][..], 1, MessageErrorKind::Truncated, ""),
        (&[0x18], 1, MessageErrorKind::Truncated, "i32"),
        (&[0x18, 0xff], 2, MessageErrorKind::Truncated, "i32"),
        (&[0x00], 0, MessageErrorKind::Misplaced, ""),
        (&[0x0c], 0, MessageErrorKind::Misplaced, ""),
        (&[0x0f], 0, MessageErrorKind::Misplaced, ""),
        (&[0x0b, 0x14], 1, MessageErrorKind::Misplaced, ""),
        (&[0x72, 0xff, 0xff, 0xff, 0xff, 0x0f], 1, MessageErrorKind::LengthBeyondEnd(0xffff_ffff), ""),
        (&[0x8a, 0x01, 4, 0xc2, 0x0c, 9, 0], 5, MessageErrorKind::LengthBeyondEnd(9), "m.name"),
        (&[0x8a, 0x01, 4, 0xc2, 0x0c, 1, 0xff], 3, MessageErrorKind::NotText, "m.name"),
        (&[0xea, 0x02, 3, 0x09, 0, 0], 6, MessageErrorKind::Truncated, "rm[0].x"),
        (
            &[0x08, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 1],
            1,
            MessageErrorKind::Misplaced,
            "",
        ),
    ] {
        let error = read(message, &deep).unwrap_err();
        assert_eq!((error.offset, error.kind, &*error.path), (offset, kind, field), "{message:02x?}");
    }
    // Nesting of groups is limited.
    let error = read(&[0x0b; 100_000], &deep).unwrap_err();
    assert_eq!(error.kind, MessageErrorKind::TooDeep);
    let claims: Vec<u8> = [0xd2, 0x02, 0xff, 0xff, 0xff, 0xff, 0x0f].repeat(1000);
    assert!(read(&claims, &[("ri", Read::Length)]).is_err());
}

#[test]
fn fields_that_a_type_does_not_have_are_all_named() {
    let errors = plan_errors(&[
        ("m.w", FLOAT),
        ("d", INT),
        ("s", FLOAT),
        ("m", FLOAT),
        ("rd", FLOAT),
        ("i32", Read::Length),
        ("d.x", FLOAT),
        ("d.0", FLOAT),
        ("ms", FLOAT),
        ("old.g", INT),
        ("t", Read::Value(ValueType::Duration)),
        ("g", Read::Value(ValueType::Time)),
        ("y", STRING),
    ]);
    for part in [
        "field `m.w`: the message type has no such field; there are `x`, `y`, `z`",
        "field `d`: expected int, but the field is a floating-point number",
        "field `s`: expected float, but the field is text",
        "field `m`: expected float, but the field is a message of type demo.v1.Point",
        "field `rd`: expected float, but the field is a repeated field",
        "field `i32`: expected an array or text",
        "field `d.x`: the message type has no such field",
        "field `d[0]`: the field is no array",
        "field `ms`: expected float, but the field is a map",
        "field `old.g`: a group cannot be read",
        "field `t`: expected duration",
        "field `g`: expected time",
        "field `y`: expected string, but the field is bytes",
    ] {
        assert!(errors.iter().any(|error| error.contains(part)), "{part}\n{errors:#?}");
    }
}

#[test]
fn descriptor_sets_are_checked() {
    let error = Descriptors::from_bytes(&types::set(false)).unwrap_err();
    assert!(error.to_string().contains("--include_imports"), "{error}");
    let descriptors = Descriptors::from_bytes(&types::set(true)).unwrap();
    let names: Vec<&str> = descriptors.message_names().collect();
    let known =
        ["demo.v1.Old", "demo.v1.Old.G", "demo.v1.Old.H", "demo.v1.Point", "demo.v1.Root", "demo.v1.Stamp"];
    assert_eq!(names[..6], known);
    assert!(descriptors.message("demo.v1.Gear").is_err());
    assert_eq!(descriptors.message(".demo.v1.Root").unwrap().name(), "demo.v1.Root");
    // Damaged sets.
    let set = types::set(true);
    for end in 0..set.len() {
        let _ = Descriptors::from_bytes(&set[..end]);
    }
    let mut random = rondel_testkit::Random::new(1);
    let mut damaged = set.clone();
    for _ in 0..20_000 {
        let at = random.index(set.len());
        damaged[at] = random.next() as u8;
        if random.one_in(20) {
            damaged.clone_from(&set);
        }
        let Ok(descriptors) = Descriptors::from_bytes(&damaged) else { continue };
        for root in descriptors.message_names().filter_map(|name| descriptors.message(name).ok()) {
            let (projection, _) = projection([(path("rm.0.x"), FLOAT), (path("m.gear"), STRING)]);
            let _ = ProtobufDecoder::new(TopicId(0), &root, &projection, None, TimeUnit::Seconds);
        }
    }
}
