//! Messages byte by byte, by the standards.

use rondel_decode::MessageErrorKind::{self, *};
use rondel_decode::binary::BinaryFormat::{self, Cbor, Msgpack};
use rondel_event::{Condition, Path, Quantifier, Read, Test, Value, ValueType};

use crate::Found::{self, Absent, Bool, Float, Int, Invalid, Text};
use crate::read;

const INT: Read = Read::Value(ValueType::Int);
const FLOAT: Read = Read::Value(ValueType::Float);
const BOOL: Read = Read::Value(ValueType::Bool);
const STRING: Read = Read::Value(ValueType::String);
const TIME: Read = Read::Value(ValueType::Time);
const DURATION: Read = Read::Value(ValueType::Duration);

/// Asserts the reads of a single value.
fn is(format: BinaryFormat, hex: &str, cases: &[(Read, Found)]) {
    let message = bytes(hex);
    for (what, expected) in cases {
        let (found, mistyped) = read(format, &message, &[("", what.clone())]).unwrap();
        assert_eq!(found[0], *expected, "{hex} {what:?}");
        let is_null = ["f6", "f7", "c0"].contains(&hex) || hex.contains("7e00");
        assert_eq!(mistyped, u64::from(*expected == Invalid && !is_null), "{hex} {what:?}");
    }
}

fn fails(format: BinaryFormat, hex: &str, reads: &[(&str, Read)], offset: usize, kind: MessageErrorKind) {
    let error = read(format, &bytes(hex), reads).unwrap_err();
    assert_eq!((error.offset, error.kind), (offset, kind), "{hex}: {error}");
}

fn bytes(hex: &str) -> Vec<u8> {
    let digits: Vec<u32> = hex.chars().filter_map(|c| c.to_digit(16)).collect();
    digits.chunks(2).map(|pair| (pair[0] * 16 + pair[1]) as u8).collect()
}

#[test]
fn examples_of_the_standard_of_cbor() {
    for (hex, value) in [
        ("00", 0),
        ("17", 23),
        ("1818", 24),
        ("1903e8", 1000),
        ("1a000f4240", 1_000_000),
        ("1b000000e8d4a51000", 1_000_000_000_000),
        ("20", -1),
        ("3863", -100),
        ("3903e7", -1000),
        ("3b7fffffffffffffff", i64::MIN),
        ("1b7fffffffffffffff", i64::MAX),
    ] {
        is(Cbor, hex, &[(INT, Int(value)), (FLOAT, Float(value as f64)), (STRING, Invalid)]);
    }
    let huge = 18_446_744_073_709_551_616.0;
    is(Cbor, "1bffffffffffffffff", &[(INT, Invalid), (FLOAT, Float(huge))]);
    is(Cbor, "3bffffffffffffffff", &[(INT, Invalid), (FLOAT, Float(-huge))]);
    is(Cbor, "c249010000000000000000", &[(INT, Invalid), (FLOAT, Invalid), (Read::Presence, Bool(true))]);
    is(Cbor, "c35f4101ff", &[(INT, Invalid), (Read::Length, Invalid)]);
    for (hex, value) in [
        ("f90000", 0.0),
        ("f93c00", 1.0),
        ("f93e00", 1.5),
        ("f97bff", 65_504.0),
        ("f90001", 5.960_464_477_539_063e-8),
        ("f9c400", -4.0),
        ("fa47c35000", 100_000.0),
        ("fb3ff199999999999a", 1.1),
        ("f97c00", f64::INFINITY),
        ("faff800000", f64::NEG_INFINITY),
    ] {
        is(Cbor, hex, &[(FLOAT, Float(value)), (BOOL, Invalid)]);
    }
    is(Cbor, "f93c00", &[(INT, Int(1)), (Read::IsNan, Bool(false))]);
    is(Cbor, "f93e00", &[(INT, Invalid)]);
    is(Cbor, "f97e00", &[(FLOAT, Invalid), (Read::IsNan, Bool(true))]);
    is(Cbor, "00", &[(Read::IsNan, Bool(false))]);
    is(Cbor, "f6", &[(Read::IsNan, Invalid)]);
    is(Cbor, "f4", &[(BOOL, Bool(false)), (INT, Invalid)]);
    is(Cbor, "f5", &[(BOOL, Bool(true))]);
    for hex in ["f6", "f7"] {
        is(
            Cbor,
            hex,
            &[(BOOL, Invalid), (INT, Invalid), (Read::Length, Invalid), (Read::Presence, Bool(true))],
        );
    }
    is(Cbor, "f0", &[(INT, Invalid)]);
    is(Cbor, "f8ff", &[(INT, Invalid)]);
    is(Cbor, "6161", &[(STRING, Text("a".into())), (Read::Length, Int(1))]);
    is(Cbor, "64f0908591", &[(STRING, Text("\u{10151}".into())), (Read::Length, Int(1))]);
    is(Cbor, "7f657374726561646d696e67ff", &[(STRING, Text("streaming".into())), (Read::Length, Int(9))]);
    is(Cbor, "7fff", &[(STRING, Text(String::new()))]);
    is(Cbor, "4401020304", &[(STRING, Invalid), (Read::Length, Int(4))]);
    is(Cbor, "5f42010243030405ff", &[(STRING, Invalid), (Read::Length, Int(5))]);
    is(Cbor, "d9d9f7d8206161", &[(STRING, Text("a".into()))]);
    is(Cbor, "9f018202039f0405ffff", &[(Read::Length, Int(3)), (Read::Presence, Bool(true))]);
}

#[test]
fn times_of_cbor() {
    // The unit of the topic is the millisecond, that of the tag the second.
    is(Cbor, "c11a514b67b0", &[(TIME, Int(1_363_896_240_000_000_000)), (INT, Int(1_363_896_240))]);
    is(Cbor, "c1fb41d452d9ec200000", &[(TIME, Int(1_363_896_240_500_000_000)), (DURATION, Invalid)]);
    is(Cbor, "c11b7fffffffffffffff", &[(TIME, Invalid)]);
    is(Cbor, "19012c", &[(TIME, Int(300_000_000)), (DURATION, Int(300_000_000))]);
    is(Cbor, "c074323031332d30332d32315432303a30343a30305a", &[(TIME, Int(1_363_896_240_000_000_000))]);
    // A tag within the map does not mark the map.
    is(
        Cbor,
        "a2 63736563 01 676e616e6f736563 c1 02",
        &[(TIME, Int(1_000_000_002)), (DURATION, Int(1_000_000_002))],
    );
    is(Cbor, "bf 63736563 01 676e616e6f736563 02 ff", &[(TIME, Int(1_000_000_002))]);
    is(Cbor, "a2 63736563 01 676e616e6f736563 6101", &[(TIME, Invalid)]);
}

#[test]
fn keys_are_texts_or_integers() {
    // {1: 10, -2: 11, "a": 12, h'00': 13, [1]: 14, {_ 1: 2}: 15, (_ "b", "c"): 16, 1.5: 17}
    let map = "a8 010a 210b 61610c 41000d 81010e bf0102ff 0f 7f61626163ff 10 f93e0011";
    let int = |name: &str| (name.to_owned(), INT);
    let names = ["a", "bc", "-2", "01", "0"].map(int);
    let reads: Vec<(&str, Read)> = names.iter().map(|(name, read)| (name.as_str(), read.clone())).collect();
    let (found, _) = keyed(Cbor, map, &reads);
    assert_eq!(found, [Int(12), Int(16), Int(11), Absent, Absent]);
    let (found, _) = keyed(Cbor, map, &[("1", INT)]);
    assert_eq!(found, [Int(10)]);
    let (found, _) =
        keyed(Msgpack, "84 010a ff0b a1610c cd01000d", &[("1", INT), ("-1", INT), ("a", INT), ("256", INT)]);
    assert_eq!(found, [Int(10), Int(11), Int(12), Int(13)]);
    // If a key is repeated, the last value counts.
    let (found, _) = keyed(Cbor, "a3 616101 616202 616103", &[("a", INT), ("b", INT)]);
    assert_eq!(found, [Int(3), Int(2)]);
}

/// Like [`read`], with fields of the message by name, including names of digits.
fn keyed(format: BinaryFormat, hex: &str, reads: &[(&str, Read)]) -> (Vec<Found>, u64) {
    let paths = reads.iter().map(|(name, read)| (Path::keys([*name]), read.clone()));
    let (projection, layout) = crate::projection(paths);
    let unit = rondel_event::TimeUnit::Seconds;
    let topic = rondel_event::TopicId(0);
    let mut decoder =
        rondel_decode::binary::BinaryDecoder::new(format, topic, &projection, None, unit).unwrap();
    let mut block = rondel_event::Block::new(layout);
    decoder.decode(&bytes(hex), rondel_event::Timestamp::ZERO, &mut block).unwrap();
    (crate::found(&projection, &block, 0), decoder.refused().mistyped())
}

#[test]
fn elements_without_a_number_are_read_and_tested() {
    let above = |bound| {
        let test = Test::Number(rondel_event::Comparison::Greater, bound);
        Read::Elements(Quantifier::All, vec![Condition { alternative: 0, path: Path::default(), test }])
    };
    let reads = [("1", INT), ("3", INT), ("4", INT), ("", Read::Length), ("", above(0.0)), ("", above(1.0))];
    let expected = [Int(2), Int(4), Absent, Int(4), Bool(true), Bool(false)];
    for array in ["84 01 02 03 04", "9f 01 02 03 04 ff"] {
        assert_eq!(read(Cbor, &bytes(array), &reads).unwrap().0, expected, "{array}");
    }
    assert_eq!(read(Msgpack, &bytes("dc0004 01 02 03 04"), &reads).unwrap().0, expected);
    let nested =
        Condition { alternative: 0, path: Path::keys(["k"]), test: Test::Equals(Value::String("v".into())) };
    let any = Read::Elements(Quantifier::Any, vec![nested]);
    let found = read(Cbor, &bytes("9f a0 01 bf 616b 7f6176ff ff ff"), &[("", any)]).unwrap();
    assert_eq!(found, (vec![Bool(true)], 0));
}

#[test]
fn values_of_messagepack() {
    for (hex, value) in [
        ("7f", 127),
        ("e0", -32),
        ("ccff", 255),
        ("cdffff", 65_535),
        ("ceffffffff", 4_294_967_295),
        ("cf7fffffffffffffff", i64::MAX),
        ("d080", -128),
        ("d18000", -32_768),
        ("d280000000", -2_147_483_648),
        ("d38000000000000000", i64::MIN),
    ] {
        is(Msgpack, hex, &[(INT, Int(value)), (FLOAT, Float(value as f64))]);
    }
    is(Msgpack, "cfffffffffffffffff", &[(INT, Invalid), (FLOAT, Float(18_446_744_073_709_551_616.0))]);
    is(Msgpack, "ca3fc00000", &[(FLOAT, Float(1.5))]);
    is(Msgpack, "cb3ff8000000000000", &[(FLOAT, Float(1.5))]);
    is(Msgpack, "d90161", &[(STRING, Text("a".into())), (Read::Length, Int(1))]);
    is(Msgpack, "da000161", &[(STRING, Text("a".into()))]);
    is(Msgpack, "db0000000161", &[(STRING, Text("a".into()))]);
    is(Msgpack, "c403000102", &[(STRING, Invalid), (Read::Length, Int(3))]);
    is(Msgpack, "c50001ff", &[(Read::Length, Int(1))]);
    is(Msgpack, "c600000001ff", &[(Read::Length, Int(1))]);
    is(Msgpack, "dd0000000201c0", &[(Read::Length, Int(2))]);
    is(Msgpack, "c0", &[(INT, Invalid), (Read::Presence, Bool(true))]);
    is(Msgpack, "d60100000000", &[(INT, Invalid), (TIME, Invalid), (Read::Presence, Bool(true))]);
}

#[test]
fn timestamps_of_messagepack() {
    is(Msgpack, "d6ff00000002", &[(TIME, Int(2_000_000_000)), (DURATION, Invalid), (INT, Invalid)]);
    is(Msgpack, "d7ff 0000000c 00000002", &[(TIME, Int(2_000_000_003))]);
    is(Msgpack, "c70cff 00000003 fffffffffffffffe", &[(TIME, Int(-1_999_999_997))]);
    is(Msgpack, "c70cff 3b9aca00 0000000000000000", &[(TIME, Invalid)]);
    is(Msgpack, "c70cff 00000000 7fffffffffffffff", &[(TIME, Invalid)]);
    is(Msgpack, "c705ff 0000000000", &[(TIME, Invalid)]);
}

#[test]
fn errors_name_place_and_field() {
    let a = [("a", INT)];
    fails(Cbor, "", &a, 0, Truncated);
    fails(Cbor, "a1", &a, 1, LengthBeyondEnd(2));
    fails(Cbor, "a1 6161 19ff", &a, 5, Truncated);
    fails(Cbor, "a1 6161 01 00", &a, 4, TrailingBytes);
    fails(Cbor, "a1 6161 1c", &a, 3, UnknownByte(0x1c));
    fails(Cbor, "a1 6162 1c", &a, 3, UnknownByte(0x1c));
    fails(Cbor, "ff", &a, 0, Misplaced);
    fails(Cbor, "a1 6161 ff", &a, 3, Misplaced);
    fails(Cbor, "bf 6161 ff", &a, 3, Misplaced);
    fails(Cbor, "bf 6161 01", &a, 4, Truncated);
    fails(Cbor, "9f 1f ff", &[("0", INT)], 1, UnknownByte(0x1f));
    fails(Cbor, "7f 01 ff", &[("", STRING)], 1, Misplaced);
    fails(Cbor, "7f 7fff ff", &[("", STRING)], 1, Misplaced);
    fails(Cbor, "5f 6161 ff", &a, 1, Misplaced);
    // Lengths of 4 GB and more.
    fails(Cbor, "9a ffffffff 01", &a, 5, LengthBeyondEnd(0xffff_ffff));
    fails(Cbor, "bb ffffffffffffffff 01", &a, 9, LengthBeyondEnd(u64::MAX));
    fails(Cbor, "a1 6162 9a ffffffff", &a, 3, LengthBeyondEnd(0xffff_ffff));
    fails(Cbor, "a1 6162 7b ffffffffffffffff 00", &a, 12, LengthBeyondEnd(u64::MAX));
    fails(Cbor, "7a ffffffff 00", &[("", STRING)], 5, LengthBeyondEnd(0xffff_ffff));
    fails(Msgpack, "dd ffffffff 01", &a, 5, LengthBeyondEnd(0xffff_ffff));
    fails(Msgpack, "df ffffffff 01", &a, 5, LengthBeyondEnd(0x1_ffff_fffe));
    fails(Msgpack, "81 a162 db ffffffff", &a, 8, LengthBeyondEnd(0xffff_ffff));
    fails(Msgpack, "81 a162 c9 ffffffff 05", &a, 9, LengthBeyondEnd(0xffff_ffff));
    fails(Msgpack, "c1", &a, 0, UnknownByte(0xc1));
    fails(Msgpack, "81 a162 c1", &a, 3, UnknownByte(0xc1));
    let deep = [("a.1.b", STRING)];
    fails(Cbor, "a1 6161 82 00 a1 6162 61ff", &deep, 8, NotText);
    let error = read(Cbor, &bytes("a1 6161 82 00 a1 6162 61ff"), &deep).unwrap_err();
    assert_eq!(error.to_string(), "field `a[1].b`, byte 8: a text that is not UTF-8");
    // Skipped values are not decoded.
    assert_eq!(read(Cbor, &bytes("a1 6162 61ff"), &deep).unwrap().0, [Absent]);
}

#[test]
fn depth_is_limited_and_lengths_cost_nothing() {
    let open = [vec![0x9f; 200_000], vec![0xff; 200_000]].concat();
    let error = read(Cbor, &open, &[("a", INT)]).unwrap_err();
    assert_eq!(error.kind, TooDeep);
    let error = read(Cbor, &[vec![0xbf; 129], vec![0xff; 129]].concat(), &[("a", INT)]).unwrap_err();
    assert!(matches!(error.kind, Misplaced | TooDeep), "{error}");
    // With numbers nothing is recursive.
    for (format, byte, end) in [(Cbor, 0x81, 0x00), (Msgpack, 0x91, 0x00)] {
        let nested = [vec![byte; 200_000], vec![end]].concat();
        assert_eq!(read(format, &nested, &[("a", INT)]).unwrap().0, [Invalid]);
        assert_eq!(read(format, &nested, &[("0.0.0", Read::Presence)]).unwrap().0, [Bool(true)]);
        let long: Vec<&str> = vec!["0"; 300];
        let error = read(format, &nested, &[(&long.join("."), Read::Presence)]).unwrap_err();
        assert_eq!(error.kind, TooDeep);
    }
    // Many claims of many elements.
    let claims = [[0x9a, 0, 0, 0xff, 0xff].repeat(50_000), vec![0]].concat();
    assert!(read(Cbor, &claims, &[("a", INT)]).is_err());
    let tags = vec![0xc6; 1_000_000];
    assert!(read(Cbor, &tags, &[("a", INT)]).is_err());
}
