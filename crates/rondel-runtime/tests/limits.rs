//! Messages whose times are too far from the clock are refused on every route, and that is said.

#![allow(clippy::unwrap_used)]

use std::sync::Arc;

use rondel_decode::MessageType;
use rondel_decode::schema::Library;
use rondel_event::{Path, TimeUnit, Timestamp, TopicId};
use rondel_runtime::alignment::Policy;
use rondel_runtime::{
    Alignment, Emit, Encoding, Input, ManualClock, Options, Reason, Session, SessionPlan, Specification,
    Stamp, TimeSource,
};

const SECOND: i64 = 1_000_000_000;
/// A time of day, and one in the year 2100.
const TODAY: i64 = 1_800_000_000;
const FAR: i64 = 4_102_444_800;

const ANSWERED: &str = "topic door { t: time, request: bool, answer: bool }
    @time(dense) property answered = rising(door.request) -> eventually[0, 2 s] door.answer";
const STEPS: &str = "topic door { t: time, request: bool, answer: bool }
    property requested = once[0, 2] door.request";

fn at(seconds: i64) -> Timestamp {
    Timestamp::from_nanos(seconds * SECOND)
}

fn plan(text: &str, alignment: Alignment, live: bool, clock: &Arc<ManualClock>) -> SessionPlan {
    let input = Input {
        time: TimeSource::Field(Path::keys(["t"])),
        time_unit: TimeUnit::Seconds,
        ..Input::default()
    };
    let clock = Arc::clone(clock) as Arc<dyn rondel_runtime::Clock>;
    let options =
        Options { inputs: vec![input], alignment, emit: Emit::Change, clock, live, ..Options::default() };
    SessionPlan::of(Specification::new(rondel_spec::parse(text).spec.unwrap()).unwrap(), options)
}

fn direct() -> Alignment {
    Alignment::new(Policy::Arrival)
}

/// Output of a session: its verdicts with their times, and its notices.
fn said(session: &mut Session) -> Vec<String> {
    let reports = session.reports().map(|report| format!("{} {}", report.verdict().as_str(), report.time()));
    let mut said: Vec<String> = reports.collect();
    for notice in session.notices() {
        said.push(format!("{}: {}", notice.json(), notice.text(&mut |time| time.to_string())));
    }
    said
}

/// A request, a message from the year 2100, and four seconds without an answer; then another request without one.
fn unanswered(alignment: Alignment, first_is_far: bool) -> (Vec<String>, Session) {
    let clock = Arc::new(ManualClock::default());
    clock.set(at(TODAY));
    let mut session = plan(ANSWERED, alignment, true, &clock).start().unwrap();
    let far = format!(r#"{{"t":{FAR},"request":false,"answer":false}}"#);
    if first_is_far {
        session.push(TopicId(0), Stamp::default(), far.as_bytes()).unwrap();
    }
    for (t, request) in [(TODAY, false), (TODAY + 1, true)] {
        let message = format!(r#"{{"t":{t},"request":{request},"answer":false}}"#);
        session.push(TopicId(0), Stamp::default(), message.as_bytes()).unwrap();
    }
    session.push(TopicId(0), Stamp::default(), far.as_bytes()).unwrap();
    session.flush();
    let mut all = said(&mut session);
    clock.set(at(TODAY + 5));
    session.poll();
    all.extend(said(&mut session));
    for (t, request) in [(TODAY + 10, false), (TODAY + 11, true)] {
        clock.set(at(t));
        let message = format!(r#"{{"t":{t},"request":{request},"answer":false}}"#);
        session.push(TopicId(0), Stamp::default(), message.as_bytes()).unwrap();
        session.flush();
    }
    clock.set(at(TODAY + 20));
    session.poll();
    all.extend(said(&mut session));
    (all, session)
}

#[test]
fn message_from_the_future_is_not_evaluated_and_does_not_stop_deadlines() {
    for alignment in [
        direct(),
        Alignment { notices: true, ..direct() },
        Alignment::new(Policy::EventTime),
        Alignment { clock: rondel_runtime::AlignmentClock::System, ..Alignment::new(Policy::EventTime) },
    ] {
        for first_is_far in [false, true] {
            let (all, session) = unanswered(alignment.clone(), first_is_far);
            // The refused message may have been the answer to the first request.
            let found = |text: &str| all.iter().position(|line| line.starts_with(text));
            let (unknown, violated) = (found("inconclusive"), found("violated"));
            assert!(unknown.is_some() && unknown < violated, "{alignment:?}: {all:?}");
            let last = all.iter().rfind(|line| line.starts_with("violated")).unwrap();
            assert!(last.contains(&(TODAY + 13).to_string()[..6]), "{last}");
            let notices = all.iter().filter(|line| line.contains(r#""report":"ahead""#));
            let count = 1 + usize::from(first_is_far);
            assert_eq!(notices.clone().count(), count, "{all:?}");
            for notice in notices {
                assert!(notice.contains("after the clock; the message was refused"), "{notice}");
                assert!(notice.contains(r#""topic":"door""#), "{notice}");
            }
            let summary = session.summary();
            assert_eq!((summary.counts.refused, summary.topics[0].refused), (count as u64, count as u64));
            assert_eq!((summary.counts.received, summary.counts.checked), (4 + count as u64, 4));
            if let Some(alignment) = summary.alignment {
                assert_eq!(alignment.json()["topics"]["door"]["refused"], count);
            }
        }
    }
}

#[test]
fn limits_can_be_turned_off() {
    for policy in [Policy::Arrival, Policy::EventTime] {
        let never = Alignment { ahead: None, behind: None, ..Alignment::new(policy) };
        let (all, session) = unanswered(never, false);
        assert!(!all.iter().any(|line| line.contains("refused")), "{all:?}");
        assert_eq!(session.summary().counts.refused, 0);
    }
}

#[test]
fn a_time_of_zero_in_between_was_never_set() {
    let clock = Arc::new(ManualClock::default());
    clock.set(at(TODAY));
    let mut session = plan(ANSWERED, direct(), true, &clock).start().unwrap();
    for t in [0, TODAY, 0, TODAY + 1, 5] {
        let message = format!(r#"{{"t":{t},"request":false,"answer":false}}"#);
        session.push(TopicId(0), Stamp::default(), message.as_bytes()).unwrap();
        session.flush();
    }
    // The last message waits: another one would show whether time starts over.
    session.finish();
    let all = said(&mut session);
    let of = |kind: &str| all.iter().filter(|line| line.contains(&format!(r#""report":"{kind}""#))).count();
    assert_eq!((of("unstamped"), of("behind"), of("backwards")), (1, 1, 0), "{all:?}");
}

#[test]
fn times_are_not_limited_without_properties_that_measure_time() {
    let clock = Arc::new(ManualClock::default());
    clock.set(at(TODAY));
    let mut session = plan(STEPS, direct(), true, &clock).start().unwrap();
    for t in [TODAY, FAR, 12, TODAY] {
        let message = format!(r#"{{"t":{t},"request":true}}"#);
        session.push(TopicId(0), Stamp::default(), message.as_bytes()).unwrap();
    }
    session.flush();
    assert_eq!(session.summary().counts.checked, 4);
}

#[test]
fn a_recording_is_held_to_limits_only_where_they_are_set() {
    let times = [TODAY, FAR, TODAY + 1, 7, TODAY + 2, TODAY + 3, FAR];
    for (limited, checked) in [(false, 7), (true, 4)] {
        let clock = Arc::new(ManualClock::default());
        let mut session = plan(ANSWERED, Alignment { limited, ..direct() }, false, &clock).start().unwrap();
        let mut lines = session.lines(TimeUnit::Seconds);
        let text: String = times
            .iter()
            .map(|t| format!("{{\"t\":{t},\"request\":{},\"answer\":false}}\n", *t == TODAY + 1))
            .collect();
        let text = text.replace("{\"t\"", "{\"topic\":\"door\",\"data\":{\"t\"").replace("}\n", "}}\n");
        let mut read = 0;
        while read < text.len() {
            read = session.push_lines(&mut lines, text.as_bytes(), read, text.len()).unwrap();
        }
        session.finish();
        let all = said(&mut session);
        let summary = session.summary();
        assert_eq!((summary.counts.checked, summary.counts.refused), (checked, 7 - checked), "{all:?}");
        assert_eq!(summary.backwards > 0, !limited, "{all:?}");
    }
}

/// A topic's last sign of life is its message, and that is at least as late as the message's own time.
#[test]
fn a_message_that_sets_the_clock_arrives_at_its_own_time() {
    let text = "topic a { t: time, x: int } topic b { t: time, x: int }
        @time(dense) property p = on(a) -> once[0, 20 s] on(b)";
    for policy in [Policy::EventTime, Policy::Epsilon(SECOND)] {
        let clock = Arc::new(ManualClock::default());
        let input = Input {
            time: TimeSource::Field(Path::keys(["t"])),
            time_unit: TimeUnit::Seconds,
            ..Input::default()
        };
        let topic = rondel_runtime::alignment::TopicAlignment {
            absent_after: Some(10 * SECOND),
            ..rondel_runtime::alignment::TopicAlignment::new(&input)
        };
        let options = Options {
            inputs: vec![input; 2],
            alignment: Alignment { topics: vec![topic; 2], ..Alignment::new(policy) },
            clock: Arc::clone(&clock) as Arc<dyn rondel_runtime::Clock>,
            ..Options::default()
        };
        let specification = Specification::new(rondel_spec::parse(text).spec.unwrap()).unwrap();
        let mut session = SessionPlan::of(specification, options).start().unwrap();
        // The messages come much faster than their times go on.
        let mut absent = Vec::new();
        for (i, (topic, t)) in
            [(0, "1000"), (1, "1004"), (0, "1013.5"), (0, "1014.5")].into_iter().enumerate()
        {
            clock.set(Timestamp::from_nanos(300_000 * i as i64));
            let message = format!(r#"{{"t":{t},"x":1}}"#);
            session.push(TopicId(topic), Stamp::default(), message.as_bytes()).unwrap();
            session.flush();
            session.poll();
            let said = said(&mut session);
            absent.push(said.iter().filter(|line| line.contains(r#""report":"absent""#)).count());
        }
        // Topic b is silent for 9.5 s, and then for 10.5 s.
        assert_eq!(absent, [0, 0, 0, 1], "{policy:?}");
    }
}

#[test]
fn a_message_that_is_too_large_is_refused_and_counted() {
    for notices in [false, true] {
        let clock = Arc::new(ManualClock::default());
        let alignment = Alignment { notices, ..direct() };
        let input = Input::default();
        let options = Options {
            inputs: vec![input],
            alignment,
            clock: Arc::clone(&clock) as Arc<dyn rondel_runtime::Clock>,
            largest_message: 64,
            ..Options::default()
        };
        let specification = Specification::new(rondel_spec::parse(STEPS).spec.unwrap()).unwrap();
        let mut session = SessionPlan::of(specification, options).start().unwrap();
        let large = format!(r#"{{"request":true,"text":"{}"}}"#, "x".repeat(64));
        session.push(TopicId(0), Stamp::at(at(1)), large.as_bytes()).unwrap();
        session.push(TopicId(0), Stamp::at(at(1)), br#"{"request":true}"#).unwrap();
        session.flush();
        let all = said(&mut session).join("\n");
        assert!(
            all.contains("a message of 90 bytes is larger than the limit of 64 B; it was refused"),
            "{all}"
        );
        let summary = session.summary();
        assert_eq!((summary.counts.received, summary.counts.checked, summary.counts.refused), (2, 1, 1));
        assert_eq!(summary.topics[0].oversized, 1);
    }
}

/// The limit is said when it is reached, once for each property, and not only at the end.
#[test]
fn reaching_the_limit_of_instances_is_reported() {
    let text = "topic s { t: time, id: int, v: bool }
        @limit(2) property p for each id in s.id = once[0, 2] s.v
        @limit(3) property q for each id in s.id = once[0, 2] s.v
        property r = once[0, 2] s.v";
    for policy in [Policy::Arrival, Policy::EventTime] {
        let clock = Arc::new(ManualClock::default());
        let mut session = plan(text, Alignment::new(policy), false, &clock).start().unwrap();
        let mut limits = Vec::new();
        for id in 1..=6 {
            let message = format!(r#"{{"t":{id},"id":{id},"v":true}}"#);
            session.push(TopicId(0), Stamp::default(), message.as_bytes()).unwrap();
            session.flush();
            let now = said(&mut session);
            limits.extend(now.into_iter().filter(|line| line.contains("limit")).map(|line| (id, line)));
        }
        let found: Vec<(i32, bool)> = limits
            .iter()
            .map(|(id, line)| (*id, line.contains("p: the limit of 2 instances is reached")))
            .collect();
        assert_eq!(found, [(3, true), (4, false)], "{limits:?}");
        assert!(
            limits[1].1.contains(r#""property":"q""#) && limits[1].1.contains("the first was [4]"),
            "{limits:?}"
        );
    }
}

/// Long parameters would fill the memory with a few instances.
#[test]
fn a_parameter_that_is_too_long_does_not_count() {
    let text = "topic s { t: time, id: string, v: bool } property p for each id in s.id = s.v";
    let clock = Arc::new(ManualClock::default());
    let mut session = plan(text, direct(), false, &clock).start().unwrap();
    for length in [65_000, 70_000, 70_001] {
        let message = format!(r#"{{"t":1,"id":"{}","v":true}}"#, "x".repeat(length));
        session.push(TopicId(0), Stamp::default(), message.as_bytes()).unwrap();
        session.flush();
    }
    let said = said(&mut session);
    let said: Vec<&String> = said.iter().filter(|line| line.contains("64 KiB")).collect();
    assert_eq!(said.len(), 1, "{said:?}");
    assert!(
        said[0].contains("p: a message has a parameter of more than 64 KiB, and does not count"),
        "{said:?}"
    );
    let omissions = session.summary().omissions;
    assert_eq!(omissions, ["p: 2 messages have a parameter of more than 64 KiB, and did not count"]);
}

/// Long parameters fill the memory long before there are many instances.
#[test]
fn instances_have_a_limit_in_bytes() {
    let texts = "topic s { t: time, id: string, v: bool } property p for each id in s.id = once[0, 9] s.v";
    for (text, length, expected) in [(texts, 10_000, 95..=110), (texts, 10, 4_000..=14_000)] {
        for policy in [Policy::Arrival, Policy::EventTime] {
            let mut options = Options {
                inputs: vec![Input {
                    time: TimeSource::Field(Path::keys(["t"])),
                    time_unit: TimeUnit::Seconds,
                    ..Input::default()
                }],
                alignment: Alignment::new(policy),
                clock: Arc::new(ManualClock::default()) as Arc<dyn rondel_runtime::Clock>,
                instance_bytes: 1 << 20,
                ..Options::default()
            };
            options.alignment.notices = true;
            let specification = Specification::new(rondel_spec::parse(text).spec.unwrap()).unwrap();
            let mut session = SessionPlan::of(specification, options).start().unwrap();
            let mut limits = Vec::new();
            for id in 0..15_000 {
                let id_text = format!("{id:0>length$}");
                let message = format!(r#"{{"t":{id},"id":"{id_text}","v":true}}"#);
                session.push(TopicId(0), Stamp::default(), message.as_bytes()).unwrap();
                session.flush();
                let now = said(&mut session).into_iter().filter(|line| line.contains("\"report\":\"limit\""));
                limits.extend(now.map(|line| (id, line)));
                if limits.len() == 1 && id > 1_000 {
                    break;
                }
            }
            assert_eq!(limits.len(), 1, "{text} {length}");
            let (at, line) = &limits[0];
            assert!(expected.contains(at), "{at} {line}");
            assert!(line.contains("p: the limit of 1 MiB for instances, with "), "{line}");
            assert!(line.contains("\"bytes\":1048576"), "{line}");
            let omissions = session.summary().omissions;
            assert!(omissions[0].contains("as the limit of 1 MiB for instances, with "), "{omissions:?}");
        }
    }
}

/// Messages that wait for others are limited by their bytes; what is released early is reported at once.
#[test]
fn the_bytes_of_waiting_messages_are_limited() {
    let spec =
        rondel_spec::parse("topic a { s: string } topic b { x: int } property p = a.s == \"\" or b.x > 0");
    let alignment = Alignment { waiting: 100_000, ..Alignment::new(Policy::EventTime) };
    let topics = vec![rondel_runtime::alignment::TopicAlignment::new(&Input::default()); 2];
    let options = Options {
        alignment: Alignment { topics, ..alignment },
        clock: Arc::new(ManualClock::default()),
        ..Options::default()
    };
    let mut session = Session::new(&spec.spec.unwrap(), options).unwrap();
    let text = "x".repeat(30_000);
    let mut early = Vec::new();
    for i in 0..6 {
        let stamp = Stamp::at(Timestamp::from_nanos(i));
        session.push(TopicId(0), stamp, format!("{{\"s\": \"{text}\"}}").as_bytes()).unwrap();
        session.flush();
        early.push(session.notices().filter(|notice| notice.kind == "early").count());
    }
    assert_eq!(early, [0, 0, 0, 1, 1, 1]);
}

/// A message in ROS 2's CDR of `int64 t`.
fn cdr(t: i64) -> Vec<u8> {
    [&[0, 1, 0, 0][..], &t.to_le_bytes()].concat()
}

/// An encoding, the type that it needs, and a message.
type Case<'p> = (Encoding, Option<Arc<MessageType>>, &'p [u8]);

#[test]
fn time_that_cannot_be_held_is_undecodable_in_every_encoding() {
    let mut library = Library::new();
    library.add_msg("p/msg/A", "int64 t").unwrap();
    let message_type = Some(Arc::new(MessageType::Cdr(library.schema("p/msg/A").unwrap())));
    let far = 1_i64 << 40;
    let cases: [Case<'_>; 12] = [
        (Encoding::Json, None, br#"{"t":1099511627776}"#),
        (Encoding::Json, None, br#"{"t":"2400-01-01T00:00:00Z"}"#),
        (Encoding::Json, None, br#"{"t":{"sec":1099511627776,"nanosec":0}}"#),
        (Encoding::Json, None, br#"{"t":"soon"}"#),
        (Encoding::Row, None, br#"{"t":1099511627776}"#),
        (Encoding::Row, None, br#"{"t":"1500-01-01T00:00:00Z"}"#),
        (Encoding::Cbor, None, b"\xa1\x61t\x1b\0\0\x01\0\0\0\0\0"),
        (Encoding::Cbor, None, b"\xa1\x61t\xc1\x1b\0\0\x01\0\0\0\0\0"),
        (Encoding::Msgpack, None, b"\x81\xa1t\xd3\0\0\x01\0\0\0\0\0"),
        (Encoding::Xml, None, b"<m t='1099511627776'/>"),
        (Encoding::Xml, None, b"<m><t>2400-01-01T00:00:00Z</t></m>"),
        (Encoding::Cdr, message_type, &cdr(far)),
    ];
    for (encoding, message_type, payload) in cases {
        for alignment in [direct(), Alignment::new(Policy::EventTime)] {
            let clock = Arc::new(ManualClock::default());
            clock.set(at(TODAY));
            let input = Input {
                encoding,
                message_type: message_type.clone(),
                time: TimeSource::Field(Path::keys(["t"])),
                time_unit: TimeUnit::Seconds,
                ..Input::default()
            };
            let options = Options {
                inputs: vec![input],
                alignment,
                clock: clock as Arc<dyn rondel_runtime::Clock>,
                live: true,
                ..Options::default()
            };
            let spec = rondel_spec::parse("topic a { t: time }\nproperty p = on(a)").spec.unwrap();
            let mut session = Session::new(&spec, options).unwrap();
            let error = session.push(TopicId(0), Stamp::default(), payload).unwrap_err();
            assert!(error.is_about_time(), "{encoding}: {error}");
            let kinds: Vec<String> =
                session.notices().map(|notice| notice.json()["report"].to_string()).collect();
            session.finish();
            let summary = session.summary();
            let context = format!("{encoding}: {error}");
            let reasons: Vec<_> = summary.omitted().iter().map(|own| (own.reason, own.count)).collect();
            assert_eq!(reasons, [(Reason::Undecodable, 1)], "{context}");
            assert_eq!((summary.counts.undecodable, summary.counts.refused), (1, 0), "{context}");
            assert_eq!((summary.accounts[0].undecodable, summary.topics[0].refused), (1, 0), "{context}");
            let is_of_time = |kind: &String| matches!(&**kind, "\"ahead\"" | "\"behind\"");
            assert!(kinds.contains(&"\"undecodable\"".to_owned()), "{context} {kinds:?}");
            assert!(!kinds.iter().any(is_of_time), "{context} {kinds:?}");
        }
    }
}
