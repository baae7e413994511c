//! `for each` over the elements of an array, compared with one property for each name that is written out, over a recording
//! in which each element is a message of its own: random recordings in several encodings, cut into blocks at random.

#![allow(clippy::unwrap_used, clippy::panic)] // a test

use std::collections::BTreeMap;
use std::fmt::Write;
use std::sync::Arc;

use rondel_decode::MessageType;
use rondel_decode::schema::{Library, Schema};
use rondel_event::{Timestamp, TopicId, Value, Verdict};
use rondel_runtime::{Encoding, Options, PublisherType, Session, SessionPlan, Stamp};
use rondel_testkit::Random;
use serde_json::json;

const NAMES: [&str; 5] = ["elbow", "a rather long name of a joint", "é", "", "w\"rist"];

/// Formulas over the value of an element that do not depend on the time of the first message with its name.
const FORMULAS: [&str; 7] = [
    "X <= 3",
    "X <= 3 or stop.on",
    "once[0, 2 s] (known(X) and X > 3)",
    "historically[0, 3 s] (not known(X) or X <= 3)",
    "(not known(X) or X <= 3) since[0, 4 s] (known(X) and X < 1)",
    "known(X) and X > 3 -> eventually[0, 2 s] (known(X) and X < 2)",
    "stop.on -> always[0, 1 s] (known(X) and X < 4)",
];
/// Paths of the values of elements, and of their names.
const PLACES: [(&str, &str); 3] = [
    ("joints.position[name == N]", "joints.name"),
    ("joints.effort[name == N]", "joints.name"),
    ("joints.states[id == N].level", "joints.states.id"),
];
const TOPICS: &str = "topic joints { name: [string], position: [float], effort: [float],
    states: [{ id: string, level: int, tags: [int] }], number: int }
topic stop { on: bool }\n";
const MSG: &str = "string[] name\nfloat64[] position\nfloat64[] effort\np/State[] states\nint32 number";
const STATE: &str = "string id\nint32 level\nint32[] tags";

#[derive(Clone, Debug)]
enum Message {
    Joints {
        names: Vec<&'static str>,
        positions: Vec<f64>,
        efforts: Vec<f64>,
        /// Names and levels, which some messages leave out.
        states: Vec<(&'static str, Option<i64>)>,
    },
    Stop(bool),
}

fn recording(random: &mut Random, most: usize) -> Vec<(i64, Message)> {
    let mut time = 0;
    let mut message = |random: &mut Random| {
        // At different times: an instance does not receive earlier messages at its own time that do not name it.
        time += (1 + random.index(3)) as i64 * 250_000_000;
        if random.index(4) == 0 {
            return (time, Message::Stop(random.index(2) == 0));
        }
        let name = |random: &mut Random| NAMES[random.index(NAMES.len())];
        let names: Vec<_> = (0..random.index(most)).map(|_| name(random)).collect();
        let values = |random: &mut Random| {
            let count = if random.index(3) == 0 { random.index(most) } else { names.len() };
            (0..count).map(|_| random.index(20) as f64 / 4.0).collect()
        };
        let (positions, efforts) = (values(random), values(random));
        let level = |random: &mut Random| (random.index(4) > 0).then(|| random.index(6) as i64);
        let states = (0..random.index(most)).map(|_| (name(random), level(random))).collect();
        (time, Message::Joints { names, positions, efforts, states })
    };
    (0..random.index(24) + 1).map(|_| message(random)).collect()
}

fn text(message: &Message) -> (TopicId, serde_json::Value) {
    match message {
        Message::Stop(on) => (TopicId(1), json!({ "on": on })),
        Message::Joints { names, positions, efforts, states } => {
            let state = |(id, level): &(&str, Option<i64>)| match level {
                Some(level) => json!({ "id": id, "level": level, "tags": [1, 2] }),
                None => json!({ "id": id, "tags": [1, 2] }),
            };
            let states: Vec<_> = states.iter().map(state).collect();
            let all = json!({
                "name": names, "position": positions, "effort": efforts, "states": states, "number": 7
            });
            (TopicId(0), all)
        }
    }
}

/// Messages that the instance of a name receives: each of its elements as a message of its own, of the array of states
/// or of the others. Messages that do not name it are empty.
fn seen_by(name: &str, recording: &[(i64, Message)], of_states: bool) -> Vec<(i64, Message)> {
    let mut all = Vec::new();
    for (time, message) in recording {
        let Message::Joints { names, positions, efforts, states } = message else {
            all.push((*time, message.clone()));
            continue;
        };
        let before = all.len();
        let one = |values: &[f64], at: usize| values.get(at).copied().into_iter().collect::<Vec<f64>>();
        for at in (0..names.len()).filter(|at| !of_states && names[*at] == name) {
            let (names, states) = (vec![names[at]], Vec::new());
            let (positions, efforts) = (one(positions, at), one(efforts, at));
            all.push((*time, Message::Joints { names, positions, efforts, states }));
        }
        for state in states.iter().filter(|state| of_states && state.0 == name) {
            let (names, states) = (Vec::new(), vec![*state]);
            let (positions, efforts) = (Vec::new(), Vec::new());
            all.push((*time, Message::Joints { names, positions, efforts, states }));
        }
        if all.len() == before {
            all.push((*time, EMPTY));
        }
    }
    all
}

/// CDR, written as XTypes says: 8-byte alignment from behind the header, strings with their end.
fn cdr(message: &Message) -> Vec<u8> {
    let mut out: Vec<u8> = Vec::new();
    fn align(out: &mut Vec<u8>, to: usize) {
        out.resize(out.len().next_multiple_of(to), 0);
    }
    fn count(out: &mut Vec<u8>, count: usize) {
        align(out, 4);
        out.extend((count as u32).to_le_bytes());
    }
    fn string(out: &mut Vec<u8>, text: &str) {
        count(out, text.len() + 1);
        out.extend(text.as_bytes());
        out.push(0);
    }
    match message {
        Message::Stop(on) => out.push(u8::from(*on)),
        Message::Joints { names, positions, efforts, states } => {
            count(&mut out, names.len());
            names.iter().for_each(|name| string(&mut out, name));
            for values in [positions, efforts] {
                count(&mut out, values.len());
                for value in values {
                    align(&mut out, 8);
                    out.extend(value.to_le_bytes());
                }
            }
            count(&mut out, states.len());
            for (id, level) in states {
                string(&mut out, id);
                align(&mut out, 4);
                out.extend((level.unwrap_or(5) as i32).to_le_bytes());
                count(&mut out, 2);
                out.extend([1, 0, 0, 0, 2, 0, 0, 0]);
            }
            align(&mut out, 4);
            out.extend(7_i32.to_le_bytes());
        }
    }
    [&[0, 1, 0, 0], out.as_slice()].concat()
}

fn message_types() -> [Arc<MessageType>; 2] {
    let mut library = Library::new();
    library.add_msg("p/msg/State", STATE).unwrap();
    library.add_msg("p/msg/Joints", MSG).unwrap();
    library.add_msg("p/msg/Stop", "bool on").unwrap();
    let of = |name: &str| -> Schema { library.schema(name).unwrap() };
    ["p/msg/Joints", "p/msg/Stop"].map(|name| Arc::new(MessageType::Cdr(of(name))))
}

/// Change of a verdict: when it is emitted, whether after that time, the time that it is about, and the verdict.
type Change = (Timestamp, bool, Option<Timestamp>, Verdict);

fn plan(text_of: &str, encoding: Encoding) -> SessionPlan {
    let spec = rondel_spec::parse(text_of);
    let spec = spec.spec.unwrap_or_else(|| panic!("{text_of}\n{:?}", spec.diagnostics));
    let mut plan = SessionPlan::new(&spec, Options::default()).unwrap();
    if encoding == Encoding::Cdr {
        for (topic, of) in (0..).map(TopicId).zip(message_types()) {
            let of = PublisherType { encoding, message_type: Some(of), publisher: String::new() };
            plan.set_types(topic, vec![of]).into_iter().for_each(|found| _ = found.unwrap());
        }
    }
    plan
}

/// The verdicts of each property, by the values of its parameters.
fn verdicts(
    plan: &SessionPlan,
    recording: &[(i64, Message)],
    encoding: Encoding,
    random: &mut Random,
) -> BTreeMap<(String, String), Vec<Change>> {
    let mut session: Session = plan.start().unwrap();
    let mut found: BTreeMap<(String, String), Vec<Change>> = BTreeMap::new();
    let mut take = |session: &mut Session| {
        for report in session.reports().filter(|report| report.changed()) {
            let parameters = report.parameters().iter().map(|value| match value {
                Value::String(text) => text.to_string(),
                other => format!("{other:?}"),
            });
            let key = (report.property().name.clone(), parameters.collect::<String>());
            let change = (report.time(), report.is_after(), report.about(), report.verdict());
            found.entry(key).or_default().push(change);
        }
    };
    for (time, message) in recording {
        let (topic, json) = text(message);
        let payload = if encoding == Encoding::Cdr { cdr(message) } else { json.to_string().into_bytes() };
        session.push(topic, Stamp::at(Timestamp::from_nanos(*time)), &payload).unwrap();
        if random.index(3) == 0 {
            session.flush();
            take(&mut session);
        }
    }
    session.finish();
    take(&mut session);
    assert_eq!(session.summary().counts.checked, recording.len() as u64);
    found
}

/// Changes about times from one on, beginning with the verdict about that one, without repetitions: for a property with
/// future operators without the times at which they are certain.
fn since(changes: &[Change], from: Timestamp, looks_ahead: bool) -> Vec<Change> {
    let mut found: Vec<Change> = Vec::new();
    let about = |(time, after, about, _): &Change| (about.filter(|_| looks_ahead).unwrap_or(*time), *after);
    let mut changes = changes.to_vec();
    changes.sort_by_key(about);
    for change in changes {
        let ((about, after), (.., verdict)) = (about(&change), change);
        let is_before = about < from || about == from && !after;
        if is_before {
            found.clear();
        }
        found.push((about.max(from), after && !is_before, None, verdict));
    }
    found.dedup_by_key(|(.., verdict)| *verdict);
    // Whether a verdict is a change depends on whether the previous one was certain by then.
    if looks_ahead {
        found.retain(|(.., verdict)| *verdict == Verdict::Violated);
        found.truncate(1);
    }
    found
}

/// The rules with `for each`, or written out for these names.
fn specification(names_written: Option<&[&str]>) -> String {
    let mut spec = TOPICS.to_owned();
    for (at, (value, names)) in PLACES.iter().enumerate() {
        for (number, formula) in FORMULAS.iter().enumerate() {
            let Some(written) = names_written else {
                let formula = formula.replace('X', &value.replace('N', "n"));
                writeln!(spec, "@time(dense) property p{at}{number} for each n in {names} = {formula}")
                    .unwrap();
                continue;
            };
            for text in written {
                let name = NAMES.iter().position(|name| name == text).unwrap();
                let formula = formula.replace('X', &value.replace('N', &json!(text).to_string()));
                writeln!(spec, "@time(dense) property p{at}{number}_{name} = {formula}").unwrap();
            }
        }
    }
    // Other properties receive one message, however many elements it has.
    spec += "property step = joints.number > 0 and previously stop.on\n";
    spec
}

/// Time of the first message with a name.
fn first(recording: &[(i64, Message)], place: usize, name: &str) -> Option<Timestamp> {
    let has = |message: &Message| match message {
        Message::Joints { names, .. } if place < 2 => names.contains(&name),
        Message::Joints { states, .. } => states.iter().any(|(id, _)| *id == name),
        Message::Stop(_) => false,
    };
    let (time, _) = recording.iter().find(|(_, message)| has(message))?;
    Some(Timestamp::from_nanos(*time))
}

/// A message without elements.
const EMPTY: Message =
    Message::Joints { names: Vec::new(), positions: Vec::new(), efforts: Vec::new(), states: Vec::new() };

fn agree(encoding: Encoding, seed: u64, cases: u64, most: usize) {
    let each = plan(&specification(None), encoding);
    let written = plan(&specification(Some(&NAMES)), encoding);
    let of_names = NAMES.map(|name| plan(&specification(Some(&[name])), encoding));
    for case in rondel_testkit::seeds(&format!("each_element-{encoding}-{most}"), cases) {
        let random = &mut Random::new(seed ^ case << 20);
        let recording = recording(random, most);
        let found = verdicts(&each, &recording, encoding, random);
        let expected: Vec<_> = (NAMES.iter().zip(&of_names))
            .map(|(name, plan)| {
                let of = |of_states| verdicts(plan, &seen_by(name, &recording, of_states), encoding, random);
                [false, true].map(of)
            })
            .collect();
        let whole = verdicts(&written, &recording, encoding, random);
        let none = Vec::new();
        let of = |all: &BTreeMap<(String, String), Vec<Change>>, property: String, name: &str| {
            all.get(&(property, name.to_owned())).unwrap_or(&none).clone()
        };
        for (place, number) in (0..PLACES.len()).flat_map(|p| (0..FORMULAS.len()).map(move |n| (p, n))) {
            for (at, name) in NAMES.iter().enumerate() {
                let own = of(&found, format!("p{place}{number}"), name);
                let Some(from) = first(&recording, place, name) else {
                    assert_eq!(own, [], "an instance of a name that never came");
                    continue;
                };
                let looks_ahead =
                    FORMULAS[number].contains("eventually") || FORMULAS[number].contains("always");
                let expected = &expected[at][usize::from(place == 2)];
                let wanted = since(&of(expected, format!("p{place}{number}_{at}"), ""), from, looks_ahead);
                assert_eq!(
                    since(&own, from, looks_ahead),
                    wanted,
                    "{encoding}, seed {seed}, case {case}: {} for {name:?} at {}\n{recording:?}",
                    FORMULAS[number],
                    PLACES[place].0
                );
                if number == 0 {
                    // The value after a message is that which a constant name reads.
                    let wanted = of(&whole, format!("p{place}{number}_{at}"), "");
                    for (time, _) in recording.iter().filter(|(time, _)| *time >= from.as_nanos()) {
                        let after = |changes: &[Change]| {
                            changes.iter().rfind(|change| change.0.as_nanos() <= *time).map(|change| change.3)
                        };
                        assert_eq!(
                            after(&own),
                            after(&wanted),
                            "seed {seed}, case {case}: {name:?} at {time}"
                        );
                    }
                }
            }
        }
        let step = |all| of(all, "step".to_owned(), "");
        assert_eq!(step(&found), step(&whole), "seed {seed}, case {case}");
    }
}

#[test]
fn instances_agree_with_written_out_properties_in_json() {
    agree(Encoding::Json, 11, 40, 5);
}

#[test]
fn instances_agree_with_written_out_properties_in_cdr() {
    agree(Encoding::Cdr, 23, 40, 5);
}

/// More elements than a block has rows, or a decoder has room for at first.
#[test]
fn instances_agree_with_many_elements() {
    agree(Encoding::Cdr, 5, 4, 200);
    agree(Encoding::Json, 6, 4, 200);
}

/// Thousands of names, with the limit of instances and one message.
#[test]
fn limit_counts_elements() {
    let text =
        format!("{TOPICS}@limit(1000) property p for each n in joints.name = joints.position[name == n] < 3");
    for encoding in [Encoding::Json, Encoding::Cdr] {
        let mut session = plan(&text, encoding).start().unwrap();
        let names: Vec<&'static str> = (0..3000).map(|i| &*format!("joint {}", i % 2500).leak()).collect();
        let positions = (0..2999).map(|i| f64::from(i % 5)).collect();
        let message = Message::Joints { names, positions, efforts: Vec::new(), states: Vec::new() };
        let payload = if encoding == Encoding::Cdr {
            cdr(&message)
        } else {
            self::text(&message).1.to_string().into_bytes()
        };
        session.push(TopicId(0), Stamp::at(Timestamp::ZERO), &payload).unwrap();
        session.finish();
        // The last element but one of `joint 499` has a value, the last one none.
        assert_eq!(session.reports().count(), 1001);
        assert_eq!(
            session.summary().omissions,
            [
                "p: 1 message has arrays of other lengths than that of the parameter, so that values are missing or left over; \
                 the first has 3,000 and 2,999 elements",
                "p: 1,500 elements with a new parameter did not count, as the limit of 1,000 instances was reached; the \
                 first parameter was [\"joint 1000\"]",
            ]
        );
    }
}

/// Elements without a name, and messages without the array of names, have no instance, and are counted.
#[test]
fn elements_and_messages_without_names_are_counted() {
    let text = format!("{TOPICS}property p for each n in joints.name = joints.position[name == n] < 3");
    let mut session = plan(&text, Encoding::Json).start().unwrap();
    let payloads = [
        r#"{"name":["a",null],"position":[1,9]}"#,
        r#"{"name":null,"position":[9]}"#,
        r#"{"position":[9]}"#,
        r#"{"name":[],"position":[]}"#,
    ];
    for (second, payload) in (0..).zip(payloads) {
        let time = Timestamp::from_nanos(second * 1_000_000_000);
        session.push(TopicId(0), Stamp::at(time), payload.as_bytes()).unwrap();
    }
    session.finish();
    assert_eq!(
        session.summary().omissions,
        ["p: 3 elements or messages have no parameter, or one of another type, and did not count"]
    );
}

/// Time for a message with 12 joints: run alone, optimised, with `--ignored --nocapture`.
#[test]
#[ignore = "measures time"]
fn speed() {
    let names: Vec<&'static str> = (0..12).map(|i| &*format!("front_left_joint_{i}").leak()).collect();
    let message = Message::Joints {
        positions: (0..12).map(f64::from).collect(),
        efforts: Vec::new(),
        states: Vec::new(),
        names: names.clone(),
    };
    let each = "property p for each j in joints.name = joints.position[name == j] <= 3.1".to_owned();
    let written: String = (names.iter().enumerate())
        .map(|(i, name)| format!("property p{i} = joints.position[name == \"{name}\"] <= 3.1\n"))
        .collect();
    let one = "property p = joints.number > 3".to_owned();
    for encoding in [Encoding::Cdr, Encoding::Json] {
        let payload = match encoding {
            Encoding::Cdr => cdr(&message),
            _ => text(&message).1.to_string().into_bytes(),
        };
        for (what, text) in [("each", &each), ("12 written out", &written), ("a number", &one)] {
            let mut session = plan(&format!("{TOPICS}{text}"), encoding).start().unwrap();
            let mut best = f64::INFINITY;
            for round in 0..50 {
                let begin = std::time::Instant::now();
                for i in 0..2000 {
                    let stamp = Stamp::at(Timestamp::from_nanos(round * 2000 + i));
                    session.push(TopicId(0), stamp, &payload).unwrap();
                }
                best = best.min(begin.elapsed().as_secs_f64() / 2000.0 * 1e9);
                session.reports().for_each(drop);
            }
            println!("{encoding} {what}: {best:.0} ns");
        }
    }
}

/// A message that was lost may have had an element of any name.
#[test]
fn lost_message_makes_instances_uncertain() {
    let text = format!("{TOPICS}property p for each n in joints.name = joints.position[name == n] < 3");
    let message = Message::Joints {
        names: vec!["elbow"],
        positions: vec![1.0],
        efforts: Vec::new(),
        states: Vec::new(),
    };
    let payload = self::text(&message).1.to_string();
    let mut session = plan(&text, Encoding::Json).start().unwrap();
    for (second, number) in [(0, 0), (1, 1), (2, 3)] {
        let origin = Some(rondel_event::Origin { publisher: 1, number });
        let stamp = Stamp { origin, ..Stamp::at(Timestamp::from_nanos(second * 1_000_000_000)) };
        session.push(TopicId(0), stamp, payload.as_bytes()).unwrap();
    }
    session.finish();
    let verdicts: Vec<Verdict> = session.reports().map(|report| report.verdict()).collect();
    assert_eq!(verdicts.first(), Some(&Verdict::Satisfied));
    assert_eq!(verdicts.last(), Some(&Verdict::Inconclusive), "{verdicts:?}");
}
