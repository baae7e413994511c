//! CBOR and MessagePack: random values written by other libraries are read like their JSON, and single bytes by the
//! standards.

#![allow(clippy::unwrap_used, clippy::panic)] // a test

#[path = "../common/mod.rs"]
mod common;
mod wire;

use common::conditions::{Coverage, alternatives, meets_number, number_test};
use common::measures::MEASURES;
use common::{Found, assert_unchanged, cases, found, found_as_json, measure, path, projection, quantified};
use rondel_decode::Encoding;
use rondel_decode::binary::{BinaryDecoder, BinaryFormat};
use rondel_decode::json::JsonDecoder;
use rondel_event::{
    Block, Condition, Countable, Layout, Path, Projection, Quantifier, Read, Segment, Test, TimeUnit,
    Timestamp, TopicId, Value, ValueType,
};
use rondel_testkit::Random;
use serde_json::{Value as Json, json};

const KEYS: [&str; 6] = ["a", "b", "long name of a member", "\u{e4}", "7", "sec"];
const UNITS: [TimeUnit; 3] = [TimeUnit::Seconds, TimeUnit::Milliseconds, TimeUnit::Nanoseconds];

fn value(random: &mut Random, depth: usize) -> Json {
    match random.index(if depth > 4 { 7 } else { 12 }) {
        0 => Json::Null,
        1 => random.one_in(2).into(),
        2 => (random.next() as i64 >> random.index(64)).into(),
        3 => random.pick(&[0, 1, u64::MAX, 1 << 63, i64::MAX as u64, 255, 65_536]).to_owned().into(),
        // Below a nanosecond, a time in JSON is truncated and one from a double is rounded: equal for these values.
        4 => random
            .pick(&[0.0, -1.25, 3.0, 0.1, 65_504.0, 1e30, -2.5e-7, 1.001, 16_777_217.0])
            .to_owned()
            .into(),
        5 => random
            .pick(&["", "x", "longer than a short text of 31 bytes is", "\u{20ac}\u{1f600}"])
            .to_owned()
            .into(),
        6 => random
            .pick(&["12 ms", "2026-11-22T18:04:13.5Z", "1.5", "1e99 h", "0001-01-01T00:00:00Z"])
            .to_owned()
            .into(),
        7 => match random.index(4) {
            0 => json!({"sec": random.next() as i32, "nanosec": random.next() as u32 % 1_000_000_000}),
            1 => json!({"secs": random.next() as i64, "nsecs": 5}),
            2 => json!({"sec": u64::MAX, "nsec": random.next() as i32}),
            _ => json!({"sec": 1, "nanosec": 2.0, "b": 1}),
        },
        8..10 => Json::Array((0..random.index(6)).map(|_| value(random, depth + 1)).collect()),
        _ => object(random, depth + 1),
    }
}

fn object(random: &mut Random, depth: usize) -> Json {
    let member = |_| {
        let key = random.pick(&KEYS).to_string();
        (key, value(random, depth))
    };
    Json::Object((0..6).map(member).collect())
}

/// Returns a path that probably leads to a value.
fn some_path(random: &mut Random, json: &Json) -> Path {
    let (mut path, mut at) = (Vec::new(), json);
    loop {
        at = match at {
            Json::Object(members) if !members.is_empty() && !random.one_in(8) => {
                let key = random.pick(&KEYS);
                path.push(Segment::Key(key.into()));
                members.get(key).unwrap_or(&Json::Null)
            }
            Json::Array(elements) if random.one_in(4) => {
                let index = 1 + random.index(3);
                path.push(Segment::FromEnd(index as u32));
                elements.iter().nth_back(index - 1).unwrap_or(&Json::Null)
            }
            Json::Array(elements) if !random.one_in(3) => {
                let index = random.index(6);
                path.push(Segment::Index(index as u32));
                elements.get(index).unwrap_or(&Json::Null)
            }
            _ => return Path(path),
        };
    }
}

fn test(random: &mut Random) -> (Path, Test) {
    let test = match random.index(11) {
        9 | 10 => match number_test(|end| random.index(end)) {
            Test::Number(comparison, bound) => Test::Integer(comparison, bound),
            test => test,
        },
        0 => Test::Present,
        1 => Test::Equals(Value::Bool(random.one_in(2))),
        2 => Test::Equals(Value::Int(1)),
        3 => Test::Equals(Value::Float(-1.25)),
        4 => Test::Equals(Value::String("x".into())),
        5 => Test::OtherText("x".into()),
        _ => number_test(|end| random.index(end)),
    };
    let keys = if random.one_in(2) { vec![] } else { vec![random.pick(&KEYS)] };
    (Path::keys(keys), test)
}

/// Whether an element of an array meets a condition, by its JSON.
fn meets(condition: &Condition, element: &Json) -> Option<bool> {
    let element = match &condition.path.0[..] {
        [Segment::Key(key)] => element.get(&**key),
        _ => Some(element),
    };
    let Some(element) = element else { return Some(false) };
    let is_of_number = matches!(
        condition.test,
        Test::Number(..) | Test::Integer(..) | Test::Equals(Value::Int(_) | Value::Float(_))
    );
    if element.is_null() && is_of_number {
        return None;
    }
    Some(match &condition.test {
        Test::Present => true,
        Test::Equals(Value::Bool(wanted)) => element.as_bool() == Some(*wanted),
        Test::Equals(Value::Int(wanted)) => element.as_f64() == Some(*wanted as f64),
        Test::Equals(Value::Float(wanted)) => element.as_f64() == Some(*wanted),
        Test::Equals(Value::String(wanted)) => element.as_str() == Some(&**wanted),
        Test::OtherText(text) => element.as_str().is_some_and(|found| *found != **text),
        Test::Integer(comparison, bound) => {
            let float = || element.as_f64().filter(|x| x.fract() == 0.0 && x.abs() <= 2_f64.powi(53));
            let integer = element.as_i64().map(|x| x as f64);
            let integer = if element.is_u64() { integer } else { integer.or_else(float) };
            integer.is_some_and(|x| comparison.holds(x, *bound))
        }
        test => element.as_f64().is_some_and(|number| meets_number(test, number) == Some(true)),
    })
}

/// Returns a number of an array; null represents NaN.
fn number(element: &Json) -> Option<f64> {
    if element.is_null() { Some(f64::NAN) } else { element.as_f64() }
}

fn some_read(random: &mut Random) -> Read {
    use ValueType::{Bool, Duration, Float, Int, String, Time};
    match random.index(9) {
        0 => Read::Presence,
        1 => {
            let kinds = [None, None, Some(Countable::Array), Some(Countable::Text)];
            Read::length(random.pick(&kinds))
        }
        2 => {
            if random.one_in(2) {
                return Read::Elements(random.pick(&MEASURES), Vec::new());
            }
            let quantifier = random.pick(&[Quantifier::Any, Quantifier::All, Quantifier::Count]);
            if random.one_in(8) {
                return Read::Elements(quantifier, Vec::new());
            }
            let tests: Vec<_> = (0..1 + random.index(4)).map(|_| test(random)).collect();
            Read::Elements(quantifier, alternatives(|end| random.index(end), &tests))
        }
        3 => Read::Number(random.pick(&[Float, Int])),
        _ => Read::Value(random.pick(&[Bool, Duration, Float, Int, String, Time])),
    }
}

fn written(json: &Json) -> [(BinaryFormat, Vec<u8>); 2] {
    let mut cbor = Vec::new();
    ciborium::into_writer(json, &mut cbor).unwrap();
    [(BinaryFormat::Cbor, cbor), (BinaryFormat::Msgpack, rmp_serde::to_vec(json).unwrap())]
}

/// Returns the value of a field by the language reference: absent if the message does not have it, invalid if the value
/// or an enclosing object or array is null or of another type, or an array is too short. `None` for times.
fn definition(json: &Json, path: &Path, read: &Read, coverage: &Coverage) -> Option<Found> {
    let mut at = json;
    for segment in &path.0 {
        let part = match (segment, at) {
            (Segment::Key(key), Json::Object(members)) => members.get(&**key),
            (Segment::Index(index), Json::Array(elements)) => elements.get(*index as usize),
            (Segment::FromEnd(index), Json::Array(elements)) => elements.iter().nth_back(*index as usize - 1),
            _ if *read == Read::Presence => return Some(Found::Absent),
            _ => return Some(Found::Invalid),
        };
        let Some(part) = part else {
            // An array that is too short lacks the element; a message that is itself an array omits it.
            let is_short = at.is_array() && !std::ptr::eq(at, json) && *read != Read::Presence;
            return Some(if is_short { Found::Invalid } else { Found::Absent });
        };
        at = part;
    }
    let integer =
        |value: f64| (value.fract() == 0.0 && value.abs() <= 2_f64.powi(53)).then_some(value as i64);
    let as_number = match (read, at.as_str().map(str::trim)) {
        // No text of the values here is an integer.
        (Read::Number(ValueType::Float), Some(text)) => {
            return Some(text.parse().map_or(Found::Invalid, Found::Float));
        }
        (Read::Number(_), Some(_)) => return Some(Found::Invalid),
        (Read::Number(value_type), None) => Some(Read::Value(*value_type)),
        _ => None,
    };
    let found = match as_number.as_ref().unwrap_or(read) {
        Read::Number(_) => None,
        Read::Presence => Some(Found::Bool(true)),
        // JSON has no NaN, and `some_read` chooses neither that nor the deciding element nor tables.
        Read::IsNan | Read::Witness(..) | Read::Table(_) => return None,
        Read::Value(ValueType::Bool) => at.as_bool().map(Found::Bool),
        Read::Value(ValueType::Float) => at.as_f64().map(Found::Float),
        Read::Value(ValueType::String) => at.as_str().map(|text| Found::Text(text.to_owned())),
        Read::Value(ValueType::Int) if at.is_u64() => at.as_i64().map(Found::Int),
        Read::Value(ValueType::Int) => at.as_i64().or_else(|| integer(at.as_f64()?)).map(Found::Int),
        Read::Length | Read::LengthOf(_) => match at {
            Json::Array(elements) if *read != Read::LengthOf(Countable::Text) => {
                Some(Found::Int(elements.len() as i64))
            }
            Json::String(text) if *read != Read::LengthOf(Countable::Array) => {
                Some(Found::Int(text.chars().count() as i64))
            }
            _ => None,
        },
        Read::Elements(quantifier, _) if quantifier.is_measure() => {
            at.as_array().map(|elements| measure(*quantifier, elements.iter().map(number)))
        }
        Read::Elements(quantifier, conditions) => {
            at.as_array().map(|elements| quantified(*quantifier, &coverage.met(conditions, elements, meets)))
        }
        Read::Value(ValueType::Time | ValueType::Duration) => return None,
    };
    Some(found.unwrap_or(Found::Invalid))
}

#[test]
fn values_of_other_writers_are_read_like_their_json() {
    let (mut compared, coverage) = (0, Coverage::default());
    for seed in rondel_testkit::seeds("values_of_other_writers_are_read_like_their_json", 500) {
        let mut random = Random::new(seed);
        let json = if random.one_in(8) { value(&mut random, 0) } else { object(&mut random, 0) };
        let reads: Vec<_> = (0..1 + random.index(9))
            .map(|_| (some_path(&mut random, &json), some_read(&mut random)))
            .collect();
        let (projection, layout) = projection(reads);
        let time = random.one_in(2).then(|| some_path(&mut random, &json));
        let unit = random.pick(&UNITS);
        let mut reference = JsonDecoder::new(TopicId(0), &projection, time.as_ref(), unit);
        let mut expected = Block::new(layout);
        let start = Timestamp::from_nanos(77);
        let text = json.to_string();
        let is_read = reference.decode(text.as_bytes(), start, &mut expected);
        let mistyped = reference.refused().mistyped();
        if is_read.is_ok() {
            reference.decode(text.as_bytes(), start, &mut expected).unwrap();
            assert_eq!(reference.refused().mistyped(), 2 * mistyped, "seed {seed}, {json}\n{projection:?}");
        }
        for (format, message) in written(&json) {
            let context = format!("seed {seed}, {format:?}, {json}\n{projection:?} {time:?}\n{message:02x?}");
            let mut decoder =
                BinaryDecoder::new(format, TopicId(0), &projection, time.as_ref(), unit).unwrap();
            let mut block = Block::new(layout);
            match (decoder.decode(&message, start, &mut block), &is_read) {
                (Ok(()), Ok(())) => {}
                (Err(error), Err(_)) => {
                    assert!(error.kind.is_about_time(), "{context}");
                    assert!(block.is_empty());
                    continue;
                }
                other => panic!("{other:?} {context}"),
            }
            assert_eq!(found(&projection, &block, 0), found(&projection, &expected, 0), "{context}");
            let encoding = match format {
                BinaryFormat::Cbor => Encoding::Cbor,
                BinaryFormat::Msgpack => Encoding::Msgpack,
            };
            let (first, repeated) = (found(&projection, &expected, 0), found(&projection, &expected, 1));
            assert_eq!(first, repeated, "by its shape, {context}");
            for (field, found) in projection.fields.iter().zip(&first) {
                if let Some(defined) = definition(&json, &field.path, &field.read, &coverage) {
                    assert_eq!(*found, defined, "{field:?}, {context}");
                    compared += 1;
                }
            }
            let as_json = found_as_json(encoding, None, &projection, layout, unit, &message);
            assert_eq!(as_json, found(&projection, &expected, 0), "as JSON, {context}");
            assert_eq!(block.time(0), expected.time(0), "{context}");
            assert_eq!(decoder.refused().mistyped(), mistyped, "{context}");
        }
    }
    assert!(rondel_testkit::is_replay() || compared >= cases(), "only {compared} fields were compared");
}

/// Returns an element that conditions probably fit.
fn element(random: &mut Random) -> Json {
    let plain = |random: &mut Random| match random.index(6) {
        0 => Json::Null,
        1 => random.one_in(2).into(),
        2 => random.pick(&["", "x", "\u{20ac}"]).to_owned().into(),
        3 => random.pick(&[0, 1, 3, i64::MIN]).to_owned().into(),
        _ => random.pick(&[0.5, 0.0, -1.25, 2.0]).to_owned().into(),
    };
    if random.one_in(2) {
        return plain(random);
    }
    Json::Object((0..4).map(|_| (random.pick(&KEYS).to_string(), plain(random))).collect())
}

#[test]
fn conditions_on_elements_hold_as_defined() {
    let coverage = Coverage::default();
    for seed in rondel_testkit::seeds("conditions_on_elements_hold_as_defined", 500) {
        let mut random = Random::new(seed ^ 0x4321);
        let json = Json::Array((0..random.index(8)).map(|_| element(&mut random)).collect());
        // JSON tests plain numbers in the first pass over an array, if nothing else is read.
        let only_numbers = random.one_in(3);
        let read = |_| {
            let quantifier = random.pick(&[Quantifier::Any, Quantifier::All, Quantifier::Count]);
            let test = |random: &mut Random| match only_numbers {
                true => (Path::default(), number_test(|end| random.index(end))),
                false => test(random),
            };
            let tests: Vec<_> = (0..1 + random.index(4)).map(|_| test(&mut random)).collect();
            (Path::default(), Read::Elements(quantifier, alternatives(|end| random.index(end), &tests)))
        };
        let mut reads: Vec<_> = (0..4).map(read).collect();
        if random.one_in(4) {
            reads.push((Path::default(), Read::Length));
        }
        let (projection, layout) = projection(reads);
        let expected: Vec<Found> = projection
            .fields
            .iter()
            .map(|field| definition(&json, &field.path, &field.read, &coverage).unwrap())
            .collect();
        let mut decoder = JsonDecoder::new(TopicId(0), &projection, None, TimeUnit::Seconds);
        let mut block = Block::new(layout);
        for row in 0..2 {
            decoder.decode(json.to_string().as_bytes(), Timestamp::ZERO, &mut block).unwrap();
            assert_eq!(found(&projection, &block, row), expected, "seed {seed}, {json}\n{projection:?}");
        }
        for (format, message) in written(&json) {
            let context = format!("seed {seed}, {format:?}, {json}\n{projection:?}");
            let mut decoder =
                BinaryDecoder::new(format, TopicId(0), &projection, None, TimeUnit::Seconds).unwrap();
            let mut block = Block::new(layout);
            decoder.decode(&message, Timestamp::ZERO, &mut block).unwrap();
            assert_eq!(found(&projection, &block, 0), expected, "{context}");
        }
    }
    coverage.assert(cases() / 4);
}

#[test]
fn damaged_messages_leave_the_block_unchanged() {
    for seed in rondel_testkit::seeds("binary-damaged_messages_leave_the_block_unchanged", 500) {
        let mut random = Random::new(seed ^ 0x1234);
        let json = object(&mut random, 0);
        let reads: Vec<_> = (0..6).map(|_| (some_path(&mut random, &json), some_read(&mut random))).collect();
        let (projection, layout) = projection(reads);
        for (format, whole) in written(&json) {
            let mut decoder =
                BinaryDecoder::new(format, TopicId(0), &projection, None, TimeUnit::Seconds).unwrap();
            let mut check = |message: &[u8], is_short: bool| {
                let mut block = Block::new(layout);
                block.push(TopicId(0), Timestamp::ZERO);
                match decoder.decode(message, Timestamp::ZERO, &mut block) {
                    Ok(()) => assert!(!is_short, "seed {seed} {format:?} {message:02x?}"),
                    Err(error) => {
                        assert!(error.offset <= message.len(), "{error}");
                        assert_unchanged(&projection, &block);
                    }
                }
            };
            for end in 0..whole.len() {
                check(&whole[..end], true);
            }
            check(&[&whole[..], &[0]].concat(), true);
            let mut message = whole.clone();
            for _ in 0..20 {
                let at = random.index(message.len());
                match random.index(3) {
                    0 => message[at] = random.next() as u8,
                    1 => message[at] = 0xff,
                    _ => message[at] ^= 1 << random.index(8),
                }
                check(&message, false);
            }
        }
    }
}

/// Reads fields of one message, each by its path and read.
fn read(
    format: BinaryFormat,
    message: &[u8],
    reads: &[(&str, Read)],
) -> Result<(Vec<Found>, u64), rondel_decode::MessageError> {
    let (projection, layout): (Projection, Layout) =
        projection(reads.iter().map(|(text, read)| (path(text), read.clone())));
    let mut decoder =
        BinaryDecoder::new(format, TopicId(0), &projection, None, TimeUnit::Milliseconds).unwrap();
    let mut block = Block::new(layout);
    decoder.decode(message, Timestamp::ZERO, &mut block)?;
    Ok((found(&projection, &block, 0), decoder.refused().mistyped()))
}
