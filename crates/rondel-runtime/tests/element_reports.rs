//! Reports about the elements of arrays: mistyped elements, messages with too many, and elements that explain a
//! violation.

#![allow(clippy::unwrap_used, clippy::panic)] // a test

use std::sync::Arc;

use rondel_decode::MessageType;
use rondel_decode::schema::Library;
use rondel_event::{Timestamp, TopicId, Verdict};
use rondel_runtime::{Encoding, Input, Options, Session, Stamp};

const STATES: &str = "topic m { s: [{ id: string, v: int, on: bool, of: [int], t: time }] }\n";

fn session(text: &str, input: Input) -> Session {
    let outcome = rondel_spec::parse(text);
    let spec = outcome.spec.clone().unwrap_or_else(|| panic!("{}", outcome.render("", text, false)));
    Session::new(&spec, Options { inputs: vec![input], explain: true, ..Options::default() }).unwrap()
}

fn push(session: &mut Session, second: i64, payload: &[u8]) {
    session.push(TopicId(0), Stamp::at(Timestamp::from_nanos(second * 1_000_000_000)), payload).unwrap();
}

/// The messages that were not evaluated, as sentences.
fn omitted(session: &Session) -> Vec<String> {
    session
        .summary()
        .omitted()
        .iter()
        .map(|omission| omission.sentence(&mut |time| format!("{time} s")))
        .collect()
}

/// MessagePack of `{"s": [{"id": ID, "v": V}, …]}`; a text for a value is one of another type.
fn msgpack(elements: &[(&str, Result<u8, &str>)]) -> Vec<u8> {
    let text = |out: &mut Vec<u8>, text: &str| {
        out.push(0xa0 | text.len() as u8);
        out.extend(text.as_bytes());
    };
    let mut out = vec![0x81];
    text(&mut out, "s");
    out.push(0xdc);
    out.extend((elements.len() as u16).to_be_bytes());
    for (id, value) in elements {
        out.push(0x82);
        text(&mut out, "id");
        text(&mut out, id);
        text(&mut out, "v");
        match value {
            Ok(number) => out.push(*number),
            Err(other) => text(&mut out, other),
        }
    }
    out
}

#[test]
fn member_of_another_type_is_named() {
    let rule = |value: &str| format!("{STATES}property p for each i in m.s.id = {value}");
    for (value, member, wanted) in [
        ("m.s[id == i].v < 3", r#""v": "x""#, "`s[id == i].v` has another type than `int`"),
        ("m.s[id == i].on", r#""on": 1"#, "`s[id == i].on` has another type than `bool`"),
        ("len(m.s[id == i].of) < 3", r#""of": "x""#, "`s[id == i].of` is no array"),
        ("m.s[id == i].v < 3", r#""id": 5"#, "`s.id` has another type than `string`"),
        (
            "number(m.s[id == i].v) < 3",
            r#""v": "x""#,
            "`s[id == i].v` is the text \"x\", which is not a number",
        ),
    ] {
        let text = match value.starts_with("number") {
            true => rule(value).replace("v: int", "v: float"),
            false => rule(value),
        };
        let mut session = session(&text, Input::default());
        push(&mut session, 0, br#"{"s": [{"id": "a", "v": 1, "on": true, "of": []}]}"#);
        let payload = format!(r#"{{"s": [{{"id": "b", "v": 1, "on": true, "of": []}}, {{{member}}}]}}"#);
        push(&mut session, 1, payload.as_bytes());
        session.finish();
        let sentence =
            format!("1 value on m has another type than the specification reads; the first at 1 s: {wanted}");
        assert_eq!(omitted(&session), [sentence], "{value} {member}");
        let notices: Vec<String> =
            session.losses().iter().map(|notice| notice.text(&mut |time| time.to_string())).collect();
        assert!(notices.iter().any(|notice| notice.contains(wanted)), "{notices:?}");
    }
}

#[test]
fn member_of_another_type_is_named_in_other_encodings() {
    let text = format!("{STATES}property p for each i in m.s.id = m.s[id == i].v < 3");
    let mut session = session(&text, Input { encoding: Encoding::Msgpack, ..Input::default() });
    push(&mut session, 0, &msgpack(&[("a", Ok(1)), ("b", Err("x")), ("c", Ok(2))]));
    // More elements than there is room for at first: those counted before stay counted, and none is counted twice.
    let many: Vec<(&str, Result<u8, &str>)> =
        (0..40).map(|at| ("d", if at % 20 == 5 { Err("y") } else { Ok(0) })).collect();
    push(&mut session, 1, &msgpack(&many));
    push(&mut session, 2, &msgpack(&[("a", Err("z"))]));
    session.finish();
    assert_eq!(
        omitted(&session),
        [
            "4 values on m have another type than the specification reads; the first: `s[id == i].v` has another type than `int`"
        ]
    );
}

/// CDR of an array of names and one of values.
fn cdr(count: usize) -> Vec<u8> {
    let mut out = vec![0, 1, 0, 0];
    out.extend((count as u32).to_le_bytes());
    for at in 0..count {
        let name = format!("{at:03}");
        out.extend(4_u32.to_le_bytes());
        out.extend(&name.as_bytes()[name.len() - 3..]);
        out.push(0);
    }
    out.extend((count as u32).to_le_bytes());
    (0..count).for_each(|_| out.extend(2_i32.to_le_bytes()));
    out
}

#[test]
fn message_with_too_many_elements_is_counted() {
    let mut library = Library::new();
    library.add_msg("p/msg/M", "string[] name\nint32[] v").unwrap();
    let message_type = Some(Arc::new(MessageType::Cdr(library.schema("p/msg/M").unwrap())));
    let text = "topic m { name: [string], v: [int] }
        property p for each n in m.name = m.v[name == n] < 3
        property q = on(m) -> len(m.name) < 9000";
    let mut session = session(text, Input { encoding: Encoding::Cdr, message_type, ..Input::default() });
    push(&mut session, 0, &cdr(3));
    push(&mut session, 1, &cdr(4096));
    assert!(omitted(&session).is_empty());
    push(&mut session, 2, &cdr(5000));
    push(&mut session, 3, &cdr(4097));
    session.finish();
    assert_eq!(
        omitted(&session),
        [
            "2 messages or values on m are over a limit; the first: `name` has 5,000 elements, and at most 4,096 are read"
        ]
    );
    let summary = session.summary();
    assert_eq!(summary.omissions, [""; 0]);
    assert_eq!(summary.counts.mistyped, 0);
    // The rule over elements did not see them.
    let incomplete = |at: usize| summary.properties[at].is_incomplete;
    assert_eq!([incomplete(0), incomplete(1)], [true, false]);
}

/// The values at each time point of the explanations of violations, with the names.
fn explained(text: &str, messages: &[&str]) -> Vec<Vec<String>> {
    let mut session = session(text, Input::default());
    for (second, message) in (0..).zip(messages) {
        push(&mut session, second, message.as_bytes());
    }
    session.finish();
    let violated: Vec<_> = session
        .reports()
        .filter(|report| report.verdict() == Verdict::Violated && report.changed())
        .map(|report| {
            let mut text = Vec::new();
            let explanation = report.explanation().unwrap();
            explanation.text(200, &mut |time| (format!("{time} s"), None), &mut text);
            String::from_utf8(text)
                .unwrap()
                .lines()
                .map(|line| {
                    line.split("  ")
                        .map(str::trim)
                        .filter(|cell| !cell.is_empty())
                        .collect::<Vec<_>>()
                        .join(" | ")
                })
                .collect()
        })
        .collect();
    violated
}

#[test]
fn explanation_names_the_element() {
    let text = "topic m { name: [string], v: [float] }
        property p for each n in m.name = m.v[name == n] <= 3";
    let messages = [
        r#"{"name": ["elbow", "wrist"], "v": [1, 2]}"#,
        r#"{"name": ["neck", "elbow", "wrist"], "v": [0, 2, 5]}"#,
        // The first one of two elements with one name.
        r#"{"name": ["elbow", "neck", "elbow"], "v": [7, 0, 1]}"#,
    ];
    assert_eq!(
        explained(text, &messages),
        [
            vec![
                "time | 1 s",
                "step | 1",
                "message | m",
                "m.name | [2] \"wrist\"",
                "m.v[name == n] | 5",
                "m.v[name == n] <= 3 | false"
            ],
            vec![
                "time | 2 s",
                "step | 2",
                "message | m",
                "m.name | [0] \"elbow\"",
                "m.v[name == n] | 7",
                "m.v[name == n] <= 3 | false"
            ],
        ]
    );
}

#[test]
fn explanation_names_elements_of_several_time_points() {
    let text = format!(
        "{STATES}@time(dense) property p for each i in m.s.id = m.s[id == i].on -> once[0, 2 s] m.s[id == i].v > 3"
    );
    let messages = [
        r#"{"s": [{"id": "a", "v": 5, "on": false}, {"id": "b", "v": 1, "on": false}]}"#,
        r#"{"s": [{"id": "b", "v": 1}, {"id": "a", "v": 0}]}"#,
        r#"{"s": []}"#,
        r#"{"s": []}"#,
        r#"{"s": [{"id": "b", "v": 1}, {"id": "b", "v": 2}, {"id": "a", "on": true}]}"#,
    ];
    let explained = explained(&text, &messages);
    assert_eq!(explained.len(), 1);
    let row =
        explained[0].iter().find(|row| row.starts_with("m.s.id")).unwrap_or_else(|| panic!("{explained:?}"));
    assert!(row.ends_with("[2] \"a\""), "{explained:?}");
}
