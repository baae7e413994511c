//! Random messages of the library of FlatBuffers' authors.

use flatbuffers::{FlatBufferBuilder, TableFinishedWIPOffset, Vector, WIPOffset};
use rondel_decode::flatbuffers::FlatbuffersDecoder;
use rondel_decode::{Encoding, MessageType};
use rondel_event::{Condition, Path, Quantifier, Read, Test, TimeUnit, Timestamp, TopicId, Value};

use crate::common::conditions::{Coverage, alternatives, meets_number, number_test};
use crate::common::{Found, cases, found, found_as_json, is_same_in_json, path, projection, quantified};
use crate::{BOOL, FLOAT, INT, STRING};
use rondel_testkit::Random;

/// Returns the offset of the entry of the field with this id.
const fn entry(id: u16) -> u16 {
    4 + 2 * id
}

type Table = WIPOffset<TableFinishedWIPOffset>;

/// Expected reads of a message: field, read and value.
type Expected = Vec<(String, Read, Found)>;

/// The values of a point, including missing ones.
struct Values {
    x: f64,
    gear: Option<&'static str>,
    text: Option<String>,
}

/// Returns a point, and adds its expected reads below `name`.
fn point(
    random: &mut Random,
    out: &mut FlatBufferBuilder<'_>,
    name: &str,
    expected: &mut Expected,
) -> (Table, Values) {
    let text = random.one_in(2).then(|| random.pick(&["", "x", "a longer text \u{20ac}"]).to_owned());
    let text_at = text.as_ref().map(|text| out.create_string(text));
    let any = random.next() as i32;
    let x = random.one_in(2).then(|| random.pick(&[any, 0, 1, 3]));
    let gear = random.one_in(2).then(|| random.pick(&[0_i8, 4, -1, 7]));
    let start = out.start_table();
    if let Some(x) = x {
        out.push_slot_always(entry(0), f64::from(x));
    }
    if let Some(gear) = gear {
        out.push_slot_always(entry(3), gear);
    }
    if let Some(text_at) = text_at {
        out.push_slot_always(entry(2), text_at);
    }
    let labels = [(0, "Park"), (4, "Drive"), (-1, "Back")];
    let label = labels.iter().find(|(value, _)| *value == gear.unwrap_or(4));
    let label = label.map(|(_, label)| *label);
    let values = Values { x: x.unwrap_or(0).into(), gear: label, text: text.clone() };
    let label = label.map_or(Found::Invalid, |label| Found::Text(label.into()));
    expected.extend([
        (format!("{name}.x"), FLOAT, Found::Float(x.unwrap_or(0).into())),
        (format!("{name}.gear"), STRING, label),
        (format!("{name}.gear"), INT, Found::Int(gear.unwrap_or(4).into())),
        (format!("{name}.name"), STRING, text.map_or(Found::Invalid, Found::Text)),
    ]);
    (out.end_table(start), values)
}

/// Returns a test of a point.
fn test(random: &mut Random) -> (Path, Test) {
    let is = |text: &str| Test::Equals(Value::String(text.into()));
    let other = |text: &str| Test::OtherText(text.into());
    let (name, test) = match random.index(7) {
        0 => ("name", Test::Present),
        1 => ("name", is("x")),
        2 => ("name", other("")),
        3 => ("gear", is("Park")),
        4 => ("gear", other("Drive")),
        _ => ("x", number_test(|end| random.index(end))),
    };
    (Path::keys([name]), test)
}

/// Whether a point meets a condition.
fn meets(condition: &Condition, values: &Values) -> Option<bool> {
    let text = match &*condition.path.to_string() {
        "name" => values.text.as_deref(),
        "gear" => values.gear,
        _ => return meets_number(&condition.test, values.x),
    };
    Some(text.is_some_and(|text| match &condition.test {
        Test::Equals(Value::String(wanted)) => **wanted == *text,
        Test::OtherText(other) => **other != *text,
        _ => true,
    }))
}

/// Returns a number as it is read: NaN is invalid.
fn float(value: f64) -> Found {
    if value.is_nan() { Found::Invalid } else { Found::Float(value) }
}

/// Returns an array of numbers, or none, and adds its expected reads.
fn numbers<'b>(
    random: &mut Random,
    out: &mut FlatBufferBuilder<'b>,
    expected: &mut Expected,
    coverage: &Coverage,
) -> Option<WIPOffset<Vector<'b, f64>>> {
    let numbers: Vec<f64> = (0..random.index(5))
        .map(|_| match random.index(6) {
            0 => random.next() as f64,
            1 => f64::NAN,
            _ => random.pick(&[0.0, 0.5, 2.0, -1.25]),
        })
        .collect();
    let numbers_at = random.one_in(2).then(|| out.create_vector(&numbers));
    let there = |found| if numbers_at.is_some() { found } else { Found::Invalid };
    expected.push(("rd".into(), Read::Length, there(Found::Int(numbers.len() as i64))));
    let tests: Vec<_> = (0..3).map(|_| (Path::default(), number_test(|end| random.index(end)))).collect();
    let conditions = alternatives(|end| random.index(end), &tests);
    let met = coverage.met(&conditions, &numbers, |condition, number| meets_number(&condition.test, *number));
    let result = quantified(Quantifier::Count, &met);
    expected.push(("rd".into(), Read::Elements(Quantifier::Count, conditions), there(result)));
    let second = numbers.get(1).map_or(Found::Invalid, |value| float(*value));
    expected.push(("rd.1".into(), FLOAT, there(second)));
    let is_nan = numbers.get(1).map_or(Found::Invalid, |value| Found::Bool(value.is_nan()));
    expected.push(("rd.1".into(), Read::IsNan, there(is_nan)));
    for from_end in [1, 2] {
        let found = numbers.iter().nth_back(from_end - 1).map_or(Found::Invalid, |value| float(*value));
        expected.push((format!("rd.-{from_end}"), FLOAT, there(found)));
    }
    numbers_at
}

fn message(random: &mut Random, expected: &mut Expected, coverage: &Coverage) -> Vec<u8> {
    let out = &mut FlatBufferBuilder::new();
    let text = random.one_in(2).then(|| out.create_string("text"));
    expected.push(("s".into(), STRING, text.map_or(Found::Invalid, |_| Found::Text("text".into()))));
    let points = (0..random.index(4)).map(|index| point(random, out, &format!("rm.{index}"), expected));
    let (points, values): (Vec<Table>, Vec<Values>) = points.collect();
    for quantifier in [Quantifier::Any, Quantifier::All, Quantifier::Count] {
        let tests: Vec<_> = (0..1 + random.index(4)).map(|_| test(random)).collect();
        let conditions = alternatives(|end| random.index(end), &tests);
        let met = coverage.met(&conditions, &values, meets);
        let result = quantified(quantifier, &met);
        expected.push(("rm".into(), Read::Elements(quantifier, conditions), result));
    }
    expected.push((format!("rm.{}.x", points.len()), FLOAT, Found::Invalid));
    let points_at = out.create_vector(&points);
    expected.push(("rm".into(), Read::Length, Found::Int(points.len() as i64)));
    let numbers_at = numbers(random, out, expected, coverage);
    let last = values.last().map_or(Found::Invalid, |last| float(last.x));
    expected.push(("rm.-1.x".into(), FLOAT, last));
    let inner = random.one_in(2).then(|| point(random, out, "m", expected).0);
    expected.push(("m".into(), Read::Presence, inner.map_or(Found::Absent, |_| Found::Bool(true))));

    let start = out.start_table();
    let (d, i16, u64) = (random.next() as f64, random.next() as i16, random.next() >> random.index(64));
    let (is_d, is_i16, is_u64) = (random.one_in(2), random.one_in(2), random.one_in(2));
    let (b, oi, last) = (random.one_in(2), random.one_in(2), random.one_in(2));
    if is_d {
        out.push_slot_always(entry(0), d);
    }
    if last {
        out.push_slot_always(entry(36), -5_i64);
    }
    if is_i16 {
        out.push_slot_always(entry(5), i16);
    }
    if is_u64 {
        out.push_slot_always(entry(10), u64);
    }
    if b {
        out.push_slot_always(entry(2), false);
    }
    if oi {
        out.push_slot_always(entry(16), 0_i32);
    }
    if let Some(text) = text {
        out.push_slot_always(entry(11), text);
    }
    if let Some(inner) = inner {
        out.push_slot_always(entry(12), inner);
    }
    if let Some(numbers) = numbers_at {
        out.push_slot_always(entry(24), numbers);
    }
    out.push_slot_always(entry(28), points_at);
    let root = out.end_table(start);
    out.finish(root, Some("DEMO"));
    let u64 = if is_u64 { i64::try_from(u64).map_or(Found::Invalid, Found::Int) } else { Found::Int(0) };
    expected.extend([
        ("d".into(), FLOAT, Found::Float(if is_d { d } else { 0.0 })),
        ("last".into(), INT, Found::Int(if last { -5 } else { 0 })),
        ("i16".into(), INT, Found::Int(if is_i16 { i16.into() } else { -7 })),
        ("u64".into(), INT, u64),
        ("b".into(), BOOL, Found::Bool(!b)),
        ("oi".into(), INT, if oi { Found::Int(0) } else { Found::Invalid }),
        ("f".into(), FLOAT, Found::Float(1.25)),
        ("u".into(), Read::Presence, Found::Absent),
        ("u_type".into(), STRING, Found::Text("NONE".into())),
    ]);
    out.finished_data().to_vec()
}

#[test]
fn messages_of_another_library_are_read() {
    let coverage = Coverage::default();
    for seed in rondel_testkit::seeds("messages_of_another_library_are_read", 500) {
        let mut random = Random::new(seed);
        let mut expected = Vec::new();
        let message = message(&mut random, &mut expected, &coverage);
        let reads = expected.iter().map(|(name, read, _)| (path(name), read.clone()));
        let (projection, layout) = projection(reads);
        let mut decoder =
            FlatbuffersDecoder::new(TopicId(0), &crate::root(), &projection, None, TimeUnit::Seconds)
                .unwrap();
        let mut block = crate::block(layout);
        decoder.decode(&message, Timestamp::ZERO, &mut block).unwrap();
        for ((name, read, expected), found) in expected.iter().zip(found(&projection, &block, 0)) {
            assert_eq!(found, *expected, "seed {seed} {name} {read:?}\n{message:02x?}");
        }
        let of = MessageType::Flatbuffers(crate::root());
        let unit = TimeUnit::Seconds;
        let as_json = found_as_json(Encoding::Flatbuffers, Some(&of), &projection, layout, unit, &message);
        // JSON has no NaN.
        let pairs = expected.iter().zip(as_json).filter(|((_, read, _), _)| *read != Read::IsNan);
        for ((name, read, expected), found) in pairs {
            let context = format!("as JSON, seed {seed} {name} {read:?}\n{message:02x?}");
            assert!(is_same_in_json(&found, expected), "{found:?} {expected:?} {context}");
        }
    }
    coverage.assert(cases() / 4);
}
