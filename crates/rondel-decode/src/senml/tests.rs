use super::*;
use crate::error::MessageErrorKind;
use crate::json::JsonForm;
use crate::{Encoding, MessageWriter};
use rondel_event::{Field, Layout, Named, Slot, Value};

fn json(payload: &[u8]) -> Result<String, String> {
    let mut out = Vec::new();
    let writer = MessageWriter::new(Encoding::Senml, None, JsonForm::READABLE).unwrap();
    writer.write(payload, 100_000, &mut out).map_err(|error| error.to_string())?;
    Ok(String::from_utf8(out).unwrap())
}

#[test]
fn records_are_resolved() {
    for (pack, expected) in [
        (
            r#"[{"n":"urn:dev:ow:10e2073a01080063","u":"Cel","v":23.1}]"#,
            r#"{"records":[{"n":"urn:dev:ow:10e2073a01080063","u":"Cel","t":0,"v":23.1}],"time":0}"#,
        ),
        (
            r#"[{"bn":"urn:dev:","bt":1.276020076001e9,"bu":"A","bver":5,"n":"voltage","u":"V","v":120.1},
                {"n":"current","t":-5,"v":1.2},{"n":"current","t":-4.5,"v":1}]"#,
            concat!(
                r#"{"records":[{"n":"urn:dev:voltage","u":"V","t":1276020076.001,"v":120.1},"#,
                r#"{"n":"urn:dev:current","u":"A","t":1276020071.001,"v":1.2},"#,
                r#"{"n":"urn:dev:current","u":"A","t":1276020071.501,"v":1}],"time":1276020076.001}"#
            ),
        ),
        (
            r#"[{"bn":"a/","bv":20,"bs":100},{"n":"x","v":3,"s":1},{"n":"y","v":0.5},{"n":"z","vb":true,"ut":7},
                {"n":"w","vs":"\u0041"},{"n":"d","vd":"aGk"},{"bn":"b"},{"s":1,"other":[{}]},{"t":1}]"#,
            concat!(
                r#"{"records":[{"n":"a/x","t":0,"v":23,"s":101},{"n":"a/y","t":0,"v":20.5},{"n":"a/z","t":0,"ut":7,"vb":true},"#,
                r#"{"n":"a/w","t":0,"vs":"A"},{"n":"a/d","t":0,"vd":"aGk"},{"n":"b","t":0,"v":20,"s":101},"#,
                r#"{"n":"b","t":1,"v":20}],"time":1}"#
            ),
        ),
        ("[]", r#"{"records":[]}"#),
    ] {
        assert_eq!(json(pack.as_bytes()).as_deref(), Ok(expected));
    }
}

#[test]
fn faults_are_named_with_their_places() {
    for (pack, expected) in [
        (&b"{}"[..], "byte 0: not a pack of SenML"),
        (b"[1]", "field `[0]`, byte 1: not a pack"),
        (b"[{\"n\":\"a\",\"v\":1},{\"n\":\"b\"}]", "field `[1]`, byte 17: the record has no value"),
        (b"[{\"v\":1}]", "field `[0]`, byte 1: the record has no name"),
        (b"[{\"n\":\"a\",\"v\":1,\"vb\":true}]", "several of the values"),
        (b"[{\"n\":\"a\",\"v\":\"1\"}]", "field `[0]`, byte 14: the value of `v` has another type"),
        (b"[{\"n\":\"a\",\"v\":1,\"x_\":2}]", "must be understood"),
        (b"[{\"n\":\"a\",\"v\":1,\"bver\":11}]", "later version"),
        (b"[{\"n\":\"a\",\"v\":1,\"t\":1e300}]", "the time lies beyond"),
        (b"[{\"n\":\"a\",\"v\":1}", "not a pack of SenML"),
        (&[0x81, 0xa1, 0x00, 0x61, b'a'], "field `[0]`, byte 1: the record has no value"),
        (&[0x81, 0xa1, 0x00], "the length 2 reaches beyond the end"),
        (&[0x80, 0x00], "bytes follow"),
    ] {
        let found = json(pack).unwrap_err();
        assert!(found.contains(expected), "{found}");
    }
}

#[test]
fn cbor_is_as_json() {
    // {-2: "dev/", -3: 1700000000.5, 0: "a", 2: 4([-1, 235]), 1: "Cel"}, {"n": "b", 4: true, 6: -1}, {0: "c", 8: h'6869'}
    let mut pack = vec![0x83, 0xa5, 0x21, 0x64];
    pack.extend(b"dev/");
    pack.extend([0x22, 0xfb]);
    pack.extend(1_700_000_000.5_f64.to_be_bytes());
    pack.extend([0x00, 0x61, b'a', 0x02, 0xc4, 0x82, 0x20, 0x18, 235, 0x01, 0x63]);
    pack.extend(b"Cel");
    pack.extend([0xa3, 0x61, b'n', 0x61, b'b', 0x04, 0xf5, 0x06, 0x20]);
    pack.extend([0xa2, 0x00, 0x61, b'c', 0x08, 0x42, b'h', b'i']);
    let expected = concat!(
        r#"{"records":[{"n":"dev/a","u":"Cel","t":1700000000.5,"v":23.5},{"n":"dev/b","t":1699999999.5,"vb":true},"#,
        r#"{"n":"dev/c","t":1700000000.5,"vd":[104,105]}],"time":1700000000.5}"#
    );
    assert_eq!(json(&pack).as_deref(), Ok(expected));
    assert!(is_pack(&pack) && !is_pack(b"[]") && !is_pack(b"[{\"id\":1}]") && !is_pack(b""));
}

fn of(name: &str, rest: &str) -> Path {
    let named = Named::new(Path::keys(["n"]), Value::String(name.into()), false);
    let begin = [Segment::Key("records".into()), Segment::Named(Box::new(named))];
    Path(begin.into_iter().chain(Path::keys([rest]).0).collect())
}

#[test]
fn relative_times_are_after_the_time_of_the_message() {
    let field = |path, value_type, slot| Field { path, read: Read::Value(value_type), slot, exact: false };
    let projection = Projection {
        fields: vec![
            field(of("a", "v"), ValueType::Float, Slot::Float(0)),
            field(of("a", "t"), ValueType::Time, Slot::Int(0)),
        ],
    };
    let layout = Layout { topics: 1, ints: 1, floats: 1, ..Layout::default() };
    let mut block = Block::new(layout);
    let time = Path::keys(["time"]);
    let mut decoder = SenmlDecoder::new(TopicId(0), &projection, Some(&time)).unwrap();
    let now = Timestamp::from_nanos(1_700_000_000_000_000_000);
    decoder.decode(br#"[{"n":"a","t":-2.000000001,"v":3}]"#, now, &mut block).unwrap();
    assert_eq!(block.time(0).as_nanos(), 1_699_999_997_999_999_999);
    assert_eq!(block.ints(0).values[0], 1_699_999_997_999_999_999);
    assert_eq!(block.floats(0).values[0], 3.0);
    // From 2^28 on they are absolute.
    decoder
        .decode(br#"[{"n":"a","t":268435456,"v":3},{"n":"b","t":268435455,"v":3}]"#, now, &mut block)
        .unwrap();
    assert_eq!(block.ints(0).values[1], 268_435_456_000_000_000);
    assert_eq!(block.time(1).as_nanos(), 1_700_000_000_000_000_000 + 268_435_455_000_000_000);
    let error = decoder.decode(br#"[{"n":"a","v":3}]"#, Timestamp::from_nanos(i64::MAX), &mut block);
    assert_eq!(error, Ok(()));
    let error = decoder.decode(br#"[{"n":"a","t":1,"v":3}]"#, Timestamp::from_nanos(i64::MAX), &mut block);
    assert_eq!(error.unwrap_err().kind, MessageErrorKind::TimeOutOfRange);
}

/// The packs that a pack is split into, as JSON.
fn parts(pack: &str) -> Option<Vec<String>> {
    let now = Timestamp::from_nanos(1_700_000_000_000_000_000);
    Some(split(pack.as_bytes(), now)?.iter().map(|part| json(part).unwrap()).collect())
}

#[test]
fn a_series_is_split_by_its_times() {
    assert_eq!(parts(r#"[{"n":"a","t":1,"v":1},{"n":"b","t":2,"v":2},{"n":"a","t":1,"v":3}]"#), None);
    assert_eq!(parts("[{\"n\":\"a\"}]"), None);
    let series = r#"[{"bn":"x","bt":0.000000001,"n":"a","t":-1,"v":1},{"n":"b","t":1700000000.5,"vs":"c"},
        {"n":"a","t":1699999998,"v":2,"s":0.5},{"n":"a","t":-1.000,"vb":true}]"#;
    let expected = [
        r#"{"records":[{"n":"xa","t":1699999998,"v":2,"s":0.5}],"time":1699999998}"#,
        r#"{"records":[{"n":"xa","t":-0.999999999,"v":1},{"n":"xa","t":-0.999999999,"vb":true}],"time":-0.999999999}"#,
        r#"{"records":[{"n":"xb","t":1700000000.5,"vs":"c"}],"time":1700000000.5}"#,
    ];
    // The base time is added to absolute times as well.
    let found = parts(series).unwrap();
    assert_eq!(found[1], expected[1]);
    assert!(found[0].contains("\"v\":2,\"s\":0.5") && found[2].contains("\"vs\":\"c\""), "{found:?}");
    let mut decoder = SenmlDecoder::new(TopicId(0), &Projection::default(), None).unwrap();
    let mut block = Block::new(Layout { topics: 1, ..Layout::default() });
    let refused = decoder.decode(series.as_bytes(), Timestamp::ZERO, &mut block).unwrap_err();
    assert_eq!((refused.kind, block.len()), (MessageErrorKind::Series, 0));
    for part in split(series.as_bytes(), Timestamp::ZERO).unwrap() {
        decoder.decode(&part, Timestamp::ZERO, &mut block).unwrap();
    }
    assert_eq!(block.len(), 3);
}

proptest::proptest! {
    #[test]
    fn no_payload_panics(payload in proptest::collection::vec(proptest::prelude::any::<u8>(), 0..60), cbor: bool) {
        let payload = if cbor { [&[0x9f, 0xbf][..], &payload].concat() } else { payload };
        for part in split(&payload, Timestamp::ZERO).into_iter().flatten() {
            proptest::prop_assert!(split(&part, Timestamp::ZERO).is_none());
        }
        if let Ok(text) = json(&payload) {
            proptest::prop_assert!(crate::json::check(text.as_bytes()).is_ok(), "{}", text);
        }
    }
}
