//! Messages by the values of their fields: as the same messages in text.

#![allow(clippy::unwrap_used, clippy::panic)] // the helpers are tests as well

use rondel_event::{Timestamp, TopicId};
use rondel_runtime::{
    Emit, Encoding, FieldValue, Input, MessageValues, Options, Session, SessionPlan, Stamp, ValueField,
};
use rondel_testkit::Random;

const SPEC: &str = "topic s { x: float, n: int, flag: bool } \
                    property p = s.x > 5 -> eventually[0, 3 s] s.n > 5 \
                    property q = s.flag or s.x < 5";

fn session(text: &str, input: Input) -> Session {
    let outcome = rondel_spec::parse(text);
    let spec = outcome.spec.clone().unwrap_or_else(|| panic!("{}", outcome.render("spec", text, false)));
    let options = Options { inputs: vec![input], emit: Emit::Every, ..Options::immediate() };
    SessionPlan::new(&spec, options).unwrap().start().unwrap()
}

fn rows() -> Input {
    Input { encoding: Encoding::Row, ..Input::default() }
}

fn at(step: i64) -> Stamp {
    Stamp::at(Timestamp::from_nanos(step * 1_000_000_000))
}

fn field<'f>(fields: &'f [ValueField], name: &str) -> &'f ValueField {
    fields.iter().find(|field| field.name() == name).unwrap()
}

fn written(value: FieldValue) -> String {
    match value {
        FieldValue::Bool(value) => value.to_string(),
        FieldValue::Int(value) => value.to_string(),
        FieldValue::Float(value) => format!("{value:?}"),
    }
}

fn reports(session: &mut Session) -> Vec<String> {
    let text = |report: rondel_runtime::Report<'_>| {
        let mut text = Vec::new();
        report.json(&mut text);
        String::from_utf8(text).unwrap()
    };
    session.reports().map(text).collect()
}

#[test]
fn values_and_texts_have_equal_reports() {
    let mut random = Random::new(17);
    let (mut by_values, mut by_text) = (session(SPEC, rows()), session(SPEC, rows()));
    let fields = by_values.value_fields(TopicId(0)).unwrap();
    let mut values = MessageValues::default();
    for step in 0..500 {
        values.clear();
        let mut members = Vec::new();
        let all = [
            ("x", FieldValue::Float(random.int(40) as f64 / 4.0)),
            ("n", FieldValue::Int(random.int(10))),
            ("flag", FieldValue::Bool(random.one_in(2))),
        ];
        for (name, value) in all {
            if !random.one_in(5) {
                assert!(values.add(field(&fields, name), value));
                members.push(format!("\"{name}\":{}", written(value)));
            }
        }
        assert!(by_values.push_values(TopicId(0), at(step), &values));
        by_text.push(TopicId(0), at(step), format!("{{{}}}", members.join(",")).as_bytes()).unwrap();
        if random.one_in(3) {
            by_values.flush();
            by_text.flush();
        }
    }
    by_values.finish();
    by_text.finish();
    let all = reports(&mut by_text);
    assert!(all.len() > 300, "{}", all.len());
    assert_eq!(reports(&mut by_values), all);
    assert_eq!(by_values.events(), by_text.events());
}

#[test]
fn values_that_decoders_count_are_not_added() {
    let fields = session(SPEC, rows()).value_fields(TopicId(0)).unwrap();
    let refused = [
        ("x", FieldValue::Float(f64::NAN)),
        ("x", FieldValue::Float(f64::INFINITY)),
        ("x", FieldValue::Int((1 << 53) + 1)),
        ("x", FieldValue::Bool(true)),
        ("n", FieldValue::Float(1.0)),
        ("flag", FieldValue::Int(1)),
    ];
    for (name, value) in refused {
        assert!(!MessageValues::default().add(field(&fields, name), value), "{name}: {value:?}");
    }
    for (name, value) in [("x", FieldValue::Int(-(1 << 53))), ("n", FieldValue::Int(i64::MIN))] {
        assert!(MessageValues::default().add(field(&fields, name), value), "{name}: {value:?}");
    }
}

#[test]
fn other_topics_need_their_text() {
    let fields = |text: &str, input: Input| session(text, input).value_fields(TopicId(0)).is_some();
    assert!(fields("topic s property p = s.x < 1", rows()));
    for text in [
        "topic s property p = s.pose.x < 1",
        "topic s property p = s.name == \"a\"",
        "topic s property p = s.values[0] < 1",
        "topic s \"fleet/{robot}\" property p = s.x < 1 and s.robot == \"a\"",
    ] {
        assert!(!fields(text, rows()), "{text}");
    }
    assert!(!fields("topic s property p = s.x < 1", Input::default()), "another encoding");
    let texts = Input { number_texts: true, ..rows() };
    assert!(!fields("topic s property p = s.x < 1", texts), "numbers in texts");
    let defaults = Input { absent_is_default: true, ..rows() };
    assert!(!fields("topic s property p = s.x < 1", defaults), "defaults");
}
