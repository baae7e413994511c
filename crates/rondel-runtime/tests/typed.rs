//! Messages in CDR: the fields of the specification are read by the definition of their type.

#![allow(clippy::unwrap_used, clippy::panic)]

use std::sync::Arc;

use rondel_decode::MessageType;
use rondel_event::{Path, TimeUnit, Timestamp, TopicId, Verdict};
use rondel_runtime::alignment::Policy;
use rondel_runtime::{
    Alignment, Encoding, Input, Options, Session, SessionPlan, Specification, Stamp, TimeSource, Types,
};
use rondel_spec::{ParseOptions, Spec, parse_typed};

const TEXT: &str = "topic gear : autoware_vehicle_msgs/msg/GearReport
    topic velocity : autoware_vehicle_msgs/msg/VelocityReport
    property standstill = changed(gear.report) and gear.report == GearReport.REVERSE ->
        abs(velocity.longitudinal_velocity) < 0.1";

fn spec() -> Spec {
    let outcome = parse_typed(TEXT, &ParseOptions::default(), &Types::ros());
    assert!(outcome.diagnostics.is_empty(), "{}", outcome.render("test", TEXT, false));
    outcome.spec.unwrap()
}

fn input(name: &str, time: &[&str]) -> Input {
    Input {
        time: TimeSource::Field(Path::keys(time.iter().copied())),
        encoding: Encoding::Cdr,
        message_type: Some(message_type(name)),
        ..Input::default()
    }
}

fn message_type(name: &str) -> Arc<MessageType> {
    Arc::new(MessageType::Cdr(Types::ros().schema(name).unwrap()))
}

fn options() -> Options {
    let gear = input("autoware_vehicle_msgs/msg/GearReport", &["stamp"]);
    let velocity = input("autoware_vehicle_msgs.VelocityReport", &["header", "stamp"]);
    Options { inputs: vec![gear, velocity], ..Options::default() }
}

/// A message in CDR, little-endian.
fn cdr(parts: &[&[u8]]) -> Vec<u8> {
    [&[0, 1, 0, 0], parts.concat().as_slice()].concat()
}

fn gear(seconds: i32, report: u8) -> Vec<u8> {
    cdr(&[&seconds.to_le_bytes(), &500_000_000u32.to_le_bytes(), &[report]])
}

fn velocity(seconds: i32, longitudinal: f32) -> Vec<u8> {
    let frame = b"base_link\0\0\0";
    let numbers = [longitudinal, 0.0, 0.0].map(f32::to_le_bytes).concat();
    cdr(&[&seconds.to_le_bytes(), &0u32.to_le_bytes(), &10u32.to_le_bytes(), frame, &numbers])
}

#[test]
fn fields_times_and_constants_are_read() {
    let mut session = Session::new(&spec(), options()).unwrap();
    session.push(TopicId(1), Stamp::default(), &velocity(1, 8.5)).unwrap();
    session.push(TopicId(0), Stamp::default(), &gear(1, 2)).unwrap();
    session.push(TopicId(0), Stamp::default(), &gear(2, 20)).unwrap();
    session.push(TopicId(1), Stamp::default(), &velocity(3, 0.0)).unwrap();
    session.finish();
    let verdicts: Vec<(Verdict, Timestamp)> =
        session.reports().map(|report| (report.verdict(), report.time())).collect();
    let at = |seconds: f64| Timestamp::from_nanos((seconds * 1e9) as i64);
    assert_eq!(verdicts.last(), Some(&(Verdict::Satisfied, at(3.0))));
    assert!(verdicts.contains(&(Verdict::Violated, at(2.5))), "{verdicts:?}");
    assert_eq!(session.summary().counts.checked, 4);
}

#[test]
fn a_synchronizer_passes_messages_on_as_json() {
    let options = Options { alignment: Alignment::new(Policy::Exact), ..options() };
    let specification = Specification::new(spec()).unwrap();
    let mut session = SessionPlan::synchronizer(specification.clone(), options.clone()).start().unwrap();
    let whole = |seconds| cdr(&[&velocity(seconds, 8.5)[4..24], &[0; 4]]);
    assert!(session.push(TopicId(1), Stamp::default(), &whole(1)).is_err(), "one number is there, not three");
    session.push(TopicId(1), Stamp::default(), &velocity(1, 8.5)).unwrap();
    let mut exact = gear(1, 2);
    exact[8..12].fill(0);
    session.push(TopicId(0), Stamp::default(), &exact).unwrap();
    session.finish();
    assert_eq!(
        String::from_utf8_lossy(session.released().unwrap()),
        "{\"time\":1,\"gear\":{\"stamp\":{\"sec\":1,\"nanosec\":0},\"report\":2},\"velocity\":{\"header\":{\"stamp\":\
         {\"sec\":1,\"nanosec\":0},\"frame_id\":\"base_link\"},\"longitudinal_velocity\":8.5,\"lateral_velocity\":0.0,\
         \"heading_rate\":0.0}}"
    );
    let summary = session.summary();
    assert_eq!((summary.counts.checked, summary.counts.undecodable), (2, 1));
    let cbor = Input { encoding: Encoding::Cbor, ..Input::default() };
    let untyped = Input { encoding: Encoding::Protobuf, ..Input::default() };
    let inputs = vec![Input::default(), cbor];
    let other = Options { alignment: Alignment::by_default(&inputs), inputs, ..options };
    let mut session = SessionPlan::synchronizer(specification.clone(), other.clone()).start().unwrap();
    session.push(TopicId(1), Stamp::default(), &[0xa1, 0x61, b'v', 0x42, 7, 8]).unwrap();
    session.finish();
    let released = String::from_utf8_lossy(session.released().unwrap()).into_owned();
    assert!(released.ends_with("\"velocity\":{\"v\":[7,8]}}"), "{released}");
    let other = Options { inputs: vec![Input::default(), untyped], ..other };
    let error = SessionPlan::synchronizer(specification, other).start().err().unwrap();
    assert_eq!(error.to_string(), "topic 'velocity': messages in protobuf cannot be read without their type");
}

#[test]
fn a_message_of_another_type_is_refused_and_counted() {
    let mut session = Session::new(&spec(), options()).unwrap();
    let error = session.push(TopicId(0), Stamp::default(), &gear(1, 2)[..10]).unwrap_err();
    assert_eq!(error.to_string(), "field `stamp.nanosec`, byte 8: the message ends here");
    assert!(session.push(TopicId(0), Stamp::default(), b"{\"report\": 2}").is_err());
    assert!(session.push(TopicId(0), Stamp::default(), b"").is_err());
    session.finish();
    let summary = session.summary();
    assert_eq!((summary.counts.undecodable, summary.counts.checked), (3, 0));
}

#[test]
fn an_unsuitable_schema_is_reported_before_the_start() {
    let mut options = options();
    options.inputs[0].message_type = Some(message_type("std_msgs/msg/Bool"));
    let error = Session::new(&spec(), options.clone()).err().unwrap().to_string();
    assert!(error.starts_with("topic 'gear': field `report`: the message type has no such field"), "{error}");
    options.inputs[0].message_type = None;
    let error = Session::new(&spec(), options).err().unwrap().to_string();
    assert!(error.contains("cannot be read without their type"), "{error}");
}

/// Numbers beyond 64 bits with a sign are unknown, and said so with their topic and field.
#[test]
fn an_integer_beyond_the_range_is_reported_with_its_field() {
    let mut types = Types::ros();
    types.library.add_msg("demo_msgs/msg/Counter", "uint64 ticks\nuint64 other").unwrap();
    let text = "topic counter : demo_msgs/msg/Counter property few = counter.ticks < 5";
    let outcome = parse_typed(text, &ParseOptions::default(), &types);
    assert!(outcome.diagnostics.is_empty(), "{}", outcome.render("test", text, false));
    let message_type = Arc::new(MessageType::Cdr(types.schema("demo_msgs/msg/Counter").unwrap()));
    let input = Input { encoding: Encoding::Cdr, message_type: Some(message_type), ..Input::default() };
    let options = Options { inputs: vec![input], ..Options::default() };
    let mut session = Session::new(&outcome.spec.unwrap(), options).unwrap();
    let push = |session: &mut Session, ticks: u64, second: i64| {
        let message = cdr(&[&ticks.to_le_bytes(), &u64::MAX.to_le_bytes()]);
        let stamp = Stamp::at(Timestamp::from_nanos(second * 1_000_000_000));
        session.push(TopicId(0), stamp, &message).unwrap();
    };
    push(&mut session, 1 << 63, 1);
    push(&mut session, u64::MAX, 2);
    session.flush();
    let losses = session.losses();
    let notice = losses.iter().find(|notice| notice.topic == Some(TopicId(0))).unwrap();
    assert_eq!(notice.topic_name.as_deref(), Some("counter"));
    let said = notice.text(&mut |_| String::new());
    assert!(said.contains("`ticks` has an integer beyond 9223372036854775807"), "{said}");
    assert!(session.losses().is_empty());
    session.finish();
    let vacuous = session.summary().vacuous(0);
    assert!(vacuous[0].text.contains("a value for `ticks` that can be read"), "{vacuous:?}");
}

/// Fields that no property reads are inspected as well.
#[test]
fn a_topic_that_many_share_is_reported() {
    let text = "topic velocity : autoware_vehicle_msgs/msg/VelocityReport
        property steady = prev(velocity.longitudinal_velocity) <= velocity.longitudinal_velocity";
    let spec = parse_typed(text, &ParseOptions::default(), &Types::ros()).spec.unwrap();
    let inputs = vec![input("autoware_vehicle_msgs.VelocityReport", &["header", "stamp"])];
    let mut session = Session::new(&spec, Options { inputs, ..Options::default() }).unwrap();
    for i in 0..64 {
        let frame = [b"robot_a\0", b"robot_b\0", b"robot_c\0"][i as usize % 3];
        let numbers = [i as f32, 0.0, 0.0].map(f32::to_le_bytes).concat();
        let message = cdr(&[&i32::to_le_bytes(i), &0u32.to_le_bytes(), &8u32.to_le_bytes(), frame, &numbers]);
        session.push(TopicId(0), Stamp::default(), &message).unwrap();
    }
    let notices: Vec<_> = session.notices().filter(|notice| notice.kind == "shared").collect();
    let clauses: Vec<_> = notices.iter().map(|notice| notice.json()["clause"].clone()).collect();
    assert_eq!(clauses, ["for each frame_id in velocity.header.frame_id"]);
}

/// A wide string is read in the form that fits; a guess is reported once.
#[test]
fn wide_strings_are_read_and_a_guess_is_reported() {
    let mut types = Types::ros();
    types.library.add_msg("demo_msgs/msg/State", "wstring name\nuint8[] data").unwrap();
    let text = r#"topic state : demo_msgs/msg/State property named = state.name != "ready""#;
    let outcome = parse_typed(text, &ParseOptions::default(), &types);
    assert!(outcome.diagnostics.is_empty(), "{}", outcome.render("test", text, false));
    let message_type = Arc::new(MessageType::Cdr(types.schema("demo_msgs/msg/State").unwrap()));
    let input = Input { encoding: Encoding::Cdr, message_type: Some(message_type), ..Input::default() };
    let options = Options { inputs: vec![input], ..Options::default() };
    let mut session = Session::new(&outcome.spec.unwrap(), options).unwrap();
    let ready = |unit: usize, length: u32| {
        let units = "ready".bytes().flat_map(|byte| [byte, 0, 0, 0].into_iter().take(unit));
        let text: Vec<u8> = units.chain((0..10 % 4 * usize::from(unit == 2)).map(|_| 0)).collect();
        cdr(&[&length.to_le_bytes(), &text, &0_u32.to_le_bytes()])
    };
    let ambiguous = cdr(&[&2_u32.to_le_bytes(), &[b'a', 0, b'b', 0], &0_u32.to_le_bytes()]);
    let messages = [ready(4, 5), ambiguous.clone(), ready(2, 10), ready(2, 5), ambiguous.clone(), ambiguous];
    for (second, message) in (1_i64..).zip(&messages) {
        let stamp = Stamp::at(Timestamp::from_nanos(second * 1_000_000_000));
        session.push(TopicId(0), stamp, message).unwrap();
    }
    session.flush();
    session.losses();
    session.finish();
    let reports: Vec<_> = session.reports().map(|report| (report.verdict(), report.time())).collect();
    let at = |second: i64| Timestamp::from_nanos(second * 1_000_000_000);
    let expected = [
        (Verdict::Violated, at(1)),
        (Verdict::Satisfied, at(2)),
        (Verdict::Violated, at(3)),
        (Verdict::Satisfied, at(5)),
    ];
    assert_eq!(reports, expected);
    let notices: Vec<_> = session.notices().map(|notice| notice.json().to_string()).collect();
    assert_eq!(
        notices,
        [r#"{"count":3,"form":"UTF-16 with the length in bytes","report":"wide_strings","topic":"state"}"#]
    );
}

/// Texts that are numbers are read as such; the first that is none is named.
#[test]
fn a_text_that_is_no_number_is_counted_and_named() {
    for (text, number_texts) in [("number(meter.power) < 200", false), ("meter.power < 200", true)] {
        let text = format!("topic meter property limited = {text}");
        let spec = rondel_spec::parse(&text).spec.unwrap();
        let input = Input { number_texts, ..Input::default() };
        let options = Options { inputs: vec![input], ..Options::default() };
        let mut session = Session::new(&spec, options).unwrap();
        let texts = ["\"150.5\"", "250", "\"n/a\"", "\"off, says the meter in the cellar\"", "\"1e2\""];
        for (second, power) in (1_i64..).zip(texts) {
            let stamp = Stamp::at(Timestamp::from_nanos(second * 1_000_000_000));
            session.push(TopicId(0), stamp, format!("{{\"power\": {power}}}").as_bytes()).unwrap();
        }
        let losses: Vec<_> =
            session.losses().iter().map(|notice| notice.text(&mut |_| String::new())).collect();
        session.finish();
        let verdicts: Vec<Verdict> = session.reports().map(|report| report.verdict()).collect();
        use Verdict::{Inconclusive, Satisfied, Violated};
        assert_eq!(verdicts, [Satisfied, Violated, Inconclusive, Satisfied], "{text}");
        assert_eq!(
            losses,
            [
                "`power` is the text \"n/a\", which is not a number; it counts as unknown (2 values are of another type so far)"
            ]
        );
        let omitted = session.summary().omitted();
        let sentence = omitted[0].sentence(&mut |time| time.to_string());
        assert!(sentence.ends_with("`power` is the text \"n/a\", which is not a number"), "{sentence}");
        assert_eq!((omitted.len(), omitted[0].count), (1, 2));
    }
}

/// An omitted field keeps its value, or is zero, false or empty: pushed and in lines, in order of arrival or by time.
#[test]
fn a_field_that_is_left_out_keeps_its_value_or_has_the_default_of_its_type() {
    let text = "topic t { b: bool, i: int, x: float, s: string, e: [int] }
        property of_bool = t.b property of_int = t.i == 7 property of_float = t.x == 0.5
        property of_text = t.s == \"a\" property of_length = len(t.e) == 2
        property of_any = any e in t.e: e > 1 property of_all = not (all e in t.e: e > 1)
        property of_count = (count e in t.e: e > 1) == 1 property of_least = min(t.e) == 1";
    let full = r#"{"b":true,"i":7,"x":0.5,"s":"a","e":[1,2]}"#;
    let outcome = rondel_spec::parse(text);
    let spec = outcome.spec.clone().unwrap_or_else(|| panic!("{}", outcome.render("", text, false)));
    for absent_is_default in [false, true] {
        for policy in [Policy::Arrival, Policy::EventTime] {
            let input = Input { absent_is_default, ..Input::default() };
            let options = || {
                let alignment = Alignment::new(policy);
                Options { inputs: vec![input.clone()], alignment, ..Options::default() }
            };
            let mut pushed = Session::new(&spec, options()).unwrap();
            for (second, payload) in [(1_i64, full), (2, "{}")] {
                let stamp = Stamp::at(Timestamp::from_nanos(second * 1_000_000_000));
                pushed.push(TopicId(0), stamp, payload.as_bytes()).unwrap();
            }
            let mut read = Session::new(&spec, options()).unwrap();
            let mut lines = read.lines(TimeUnit::Seconds);
            let all = format!(
                "{{\"topic\":\"t\",\"time\":1,\"data\":{full}}}\n{{\"topic\":\"t\",\"time\":2,\"data\":{{}}}}\n"
            );
            let mut at = 0;
            while at < all.len() {
                at = read.push_lines(&mut lines, all.as_bytes(), at, all.len()).unwrap();
            }
            for mut session in [pushed, read] {
                session.finish();
                let mut left: Vec<String> = Vec::new();
                for report in session.reports() {
                    assert!(report.verdict() != Verdict::Inconclusive, "{absent_is_default} {policy:?}");
                    if report.verdict() == Verdict::Violated {
                        left.push(report.property().name.clone());
                    }
                }
                left.sort();
                let all = ["all", "any", "bool", "count", "float", "int", "length", "text"]
                    .map(|of| format!("of_{of}"));
                let expected: &[String] = if absent_is_default { &all } else { &[] };
                assert_eq!(left, expected, "{absent_is_default} {policy:?}");
            }
        }
    }
}
