//! Events of topics in sessions: liveness, deadlines and disposals reported by a network, across snapshots and in
//! alignment.

#![allow(clippy::unwrap_used)]

use std::sync::Arc;

use rondel_decode::schema::Library;
use rondel_decode::{Encoding, MessageType};
use rondel_event::{Path, Timestamp, TopicEvent, TopicId, Value, Verdict};
use rondel_runtime::alignment::Policy;
use rondel_runtime::{Alignment, Input, ManualClock, Options, Session, SessionPlan, Stamp, TimeSource};

const GEAR: TopicId = TopicId(0);
const TEXT: &str = "topic gear { report: int } topic speed { v: float }
    property lives = alive(gear)
    property kept = not missed_deadline(gear)";

fn plan(alignment: Alignment) -> SessionPlan {
    let spec = rondel_spec::parse(TEXT).spec.unwrap();
    let clock = Arc::new(ManualClock::default());
    SessionPlan::new(&spec, Options { live: true, clock, alignment, ..Options::default() }).unwrap()
}

fn at(seconds: i64) -> Timestamp {
    Timestamp::from_nanos(seconds * 1_000_000_000)
}

/// The changes of the verdicts of the first property since the last call.
fn lives(session: &mut Session) -> Vec<Verdict> {
    session.flush();
    session.reports().filter(|r| r.property().position == 0 && r.changed()).map(|r| r.verdict()).collect()
}

fn gear(session: &mut Session, seconds: i64) {
    session.push(GEAR, Stamp::at(at(seconds)), b"{\"report\": 1}").unwrap();
}

#[test]
fn events_before_a_restart_are_forgotten() {
    use Verdict::{Inconclusive, Satisfied, Violated};
    let plan = plan(Alignment::new(Policy::Arrival));
    let mut session = plan.start().unwrap();
    gear(&mut session, 0);
    assert!(session.event(GEAR, TopicEvent::Alive, true, at(1)));
    assert_eq!(lives(&mut session), [Inconclusive, Satisfied]);
    let bytes = session.snapshot("");
    let mut session = plan.restore(&bytes, "").unwrap();
    gear(&mut session, 9);
    assert_eq!(lives(&mut session), [Inconclusive]);
    assert!(session.event(GEAR, TopicEvent::Alive, false, at(10)));
    assert_eq!(lives(&mut session), [Violated]);
}

#[test]
fn events_of_topics_that_nothing_reads_change_nothing() {
    let mut session = plan(Alignment::new(Policy::Arrival)).start().unwrap();
    assert!(!session.event(TopicId(1), TopicEvent::Alive, true, at(1)));
    assert_eq!((lives(&mut session).len(), session.summary().topics.len()), (0, 2));
}

#[test]
fn an_event_waits_for_earlier_messages_and_nothing_waits_for_it() {
    use Verdict::{Inconclusive, Satisfied};
    let mut session = plan(Alignment::new(Policy::EventTime)).start().unwrap();
    assert!(session.event(GEAR, TopicEvent::Alive, true, at(2)));
    gear(&mut session, 1);
    // The message comes first, whatever else may come of the event's topic.
    assert_eq!(lives(&mut session), [Inconclusive]);
    session.finish();
    assert_eq!(lives(&mut session), [Satisfied]);
}

#[test]
fn the_owner_is_a_state_of_its_topic() {
    use Verdict::{Inconclusive, Satisfied, Violated};
    let text = "topic gear { report: int } property owned = owner(gear) == \"a\"";
    let spec = rondel_spec::parse(text).spec.unwrap();
    let mut session = Session::new(&spec, Options::default()).unwrap();
    assert!(session.reads_owner());
    gear(&mut session, 0);
    assert!(session.owner(GEAR, "a", None, at(1)));
    gear(&mut session, 2);
    assert!(session.owner(GEAR, "", None, at(3)));
    assert!(session.owner(GEAR, "a", None, at(4)));
    assert!(!session.owner(TopicId(1), "a", None, at(5)));
    assert_eq!(lives(&mut session), [Inconclusive, Satisfied, Violated, Satisfied]);
    let other = plan(Alignment::new(Policy::Arrival)).start().unwrap();
    assert!(!other.reads_owner());
}

#[test]
fn vacuous_states_of_a_topic_have_their_own_reasons() {
    let text = "topic gear { report: int }
        property owned = owner(gear) != \"\"
        property lives = alive(gear)";
    let spec = rondel_spec::parse(text).spec.unwrap();
    let mut session = Session::new(&spec, Options::default()).unwrap();
    let reasons = |session: &Session| {
        let summary = session.summary();
        [0, 1].map(|property| {
            summary.vacuous(property).into_iter().map(|reason| reason.text).collect::<Vec<_>>().join("; ")
        })
    };
    gear(&mut session, 0);
    session.flush();
    assert_eq!(reasons(&session), ["no event came on `gear`"; 2]);
    // An event about neither.
    assert!(session.event(GEAR, TopicEvent::Disposed, true, at(1)));
    session.flush();
    assert_eq!(
        reasons(&session),
        [
            "no event on `gear` said which publisher owns the topic",
            "no event on `gear` said whether a publisher is alive"
        ]
    );
    assert!(session.owner(GEAR, "a", None, at(2)));
    session.flush();
    assert_eq!(reasons(&session), ["", "no event on `gear` said whether a publisher is alive"]);
}

#[test]
fn an_owner_has_the_time_of_its_first_message() {
    let field = TimeSource::Field(Path::keys(["report"]));
    for (time, is_source) in [(TimeSource::Source, true), (TimeSource::Arrival, false), (field, false)] {
        let spec = rondel_spec::parse(TEXT).spec.unwrap();
        let inputs = vec![Input { time, ..Input::default() }];
        let session = Session::new(&spec, Options { inputs, ..Options::default() }).unwrap();
        assert_eq!(session.has_source_times(GEAR), is_source);
    }
    let text = "topic gear { report: int } property owned = owner(gear) == \"a\"";
    let spec = rondel_spec::parse(text).spec.unwrap();
    let mut session = Session::new(&spec, Options { live: true, ..Options::default() }).unwrap();
    for seconds in [2, 4] {
        assert!(session.owner(GEAR, "a", None, at(seconds)));
        gear(&mut session, seconds);
    }
    session.flush();
    assert_eq!(session.summary().backwards, 0);
}

#[test]
fn each_instance_has_an_owner() {
    use Verdict::{Inconclusive, Satisfied, Violated};
    let text = "topic track { id: int, x: float }
        property mine for each id in track.id = owner(track) == \"a\"";
    let parsed = rondel_spec::parse(text);
    let inputs =
        vec![Input { encoding: Encoding::Cdr, message_type: Some(of_type("Track")), ..Input::default() }];
    let clock = Arc::new(ManualClock::default());
    let options = Options { inputs, live: true, clock, ..Options::default() };
    let mut session = SessionPlan::new(&parsed.spec.unwrap(), options).unwrap().start().unwrap();
    session.push(GEAR, Stamp::at(at(0)), &serialised(1)).unwrap();
    // By a whole message, and by the key alone, in the second version.
    assert!(session.owner(GEAR, "a", Some((&serialised(1), true)), at(1)));
    assert!(session.owner(GEAR, "b", Some((&[0, 7, 0, 0, 2, 0, 0, 0], false)), at(2)));
    assert!(session.owner(GEAR, "", Some((&serialised(1), true)), at(3)));
    // No instance is named.
    assert!(session.owner(GEAR, "a", Some((&[0, 7, 0, 0, 2], false)), at(4)));
    session.finish();
    let verdicts: Vec<_> = of_each(&mut session).into_iter().map(|(_, id, verdict)| (id, verdict)).collect();
    let expected = [("1", Inconclusive), ("1", Satisfied), ("2", Violated), ("1", Violated)];
    assert_eq!(verdicts, expected.map(|(id, verdict)| (id.to_owned(), verdict)));
}

#[test]
fn sets_of_messages_have_no_events() {
    let error = plan(Alignment::new(Policy::Latest)).start().err().unwrap();
    assert!(error.to_string().starts_with("events of topics, such as `missed_deadline(topic)`"), "{error}");
}

const EACH: &str = "topic track { id: int, x: float }
    property kept for each id in track.id = not disposed(track)
    property lives for each id in track.id = alive(track) and not disposed(track)
    property all = not disposed(track)";

/// The verdicts of a property since the last call, each with its instance.
fn of_each(session: &mut Session) -> Vec<(u32, String, Verdict)> {
    session.flush();
    let reports = session.reports();
    let of = |r: rondel_runtime::Report<'_>| {
        let parameters = match r.parameters() {
            [Value::Int(id)] => id.to_string(),
            _ => String::new(),
        };
        (r.property().position, parameters, r.verdict())
    };
    reports.map(of).collect()
}

fn track(session: &mut Session, id: i64, seconds: i64) {
    let message = format!("{{\"id\": {id}, \"x\": 1.0}}");
    session.push(GEAR, Stamp::at(at(seconds)), message.as_bytes()).unwrap();
}

/// The key of a type in CDR, and a message of it.
fn of_type(name: &str) -> Arc<MessageType> {
    let mut library = Library::new();
    library
        .add_idl(
            "@final struct Track { double x; @key long id; string text; }; struct Other { long id; };",
            &|_| None,
        )
        .unwrap();
    Arc::new(MessageType::Cdr(library.schema(name).unwrap()))
}

fn each_plan(policy: Policy, message_type: Option<Arc<MessageType>>) -> SessionPlan {
    let parsed = rondel_spec::parse(EACH);
    let clock = Arc::new(ManualClock::default());
    let alignment = Alignment::new(policy);
    let inputs = vec![Input { encoding: Encoding::Cdr, message_type, ..Input::default() }];
    let options = Options { inputs, live: true, types_later: true, clock, alignment, ..Options::default() };
    SessionPlan::new(&parsed.spec.unwrap(), options).unwrap()
}

/// A message of `Track` in the first version of CDR.
fn serialised(id: u8) -> Vec<u8> {
    let mut message = vec![0, 1, 0, 0];
    message.extend(1.0_f64.to_le_bytes());
    message.extend([id, 0, 0, 0, 2, 0, 0, 0, b'a', 0]);
    message
}

#[test]
fn a_disposal_belongs_to_the_instance_of_its_key() {
    use Verdict::{Inconclusive, Satisfied, Violated};
    let policies = [Policy::Arrival, Policy::EventTime].into_iter();
    for (policy, is_resolved_later) in policies.flat_map(|policy| [(policy, false), (policy, true)]) {
        let track = of_type("Track");
        let mut session =
            each_plan(policy, (!is_resolved_later).then(|| Arc::clone(&track))).start().unwrap();
        if is_resolved_later {
            assert!(session.push(GEAR, Stamp::at(at(0)), &serialised(1)).is_err());
            session.resolve_type(GEAR, &track).unwrap();
        }
        for (id, seconds) in [(1, 0), (2, 1)] {
            session.push(GEAR, Stamp::at(at(seconds)), &serialised(id)).unwrap();
        }
        assert!(session.event(GEAR, TopicEvent::Alive, true, at(2)));
        // By the key alone, in the second version, and by a whole message.
        assert!(session.instance_event(
            GEAR,
            TopicEvent::Disposed,
            (&[0, 7, 0, 0, 2, 0, 0, 0], false),
            at(3)
        ));
        assert!(session.instance_event(GEAR, TopicEvent::Unregistered, (&serialised(1), true), at(4)));
        // No instance is named.
        assert!(session.instance_event(GEAR, TopicEvent::Disposed, (&[0, 7, 0, 0, 2], false), at(5)));
        assert!(session.event(GEAR, TopicEvent::Disposed, true, at(6)));
        session.finish();
        let (one, two, none) = ("1".to_owned(), "2".to_owned(), String::new());
        let verdicts = of_each(&mut session);
        let of = |property| -> Vec<(&str, Verdict)> {
            let own = verdicts.iter().filter(|(of, ..)| *of == property);
            own.map(|(_, key, verdict)| (key.as_str(), *verdict)).collect()
        };
        let (one, two, none) = (one.as_str(), two.as_str(), none.as_str());
        assert_eq!(of(0), [(one, Satisfied), (two, Satisfied), (two, Violated)], "{policy:?}");
        // Every instance receives the liveness of publishers.
        assert_eq!(
            of(1),
            [(one, Inconclusive), (two, Inconclusive), (one, Satisfied), (two, Satisfied), (two, Violated),],
            "{policy:?}"
        );
        let all = [Satisfied, Violated, Satisfied, Violated];
        assert_eq!(of(2), all.map(|verdict| (none, verdict)), "{policy:?}");
        let omitted = format!("{:?}", session.summary());
        assert!(omitted.contains("2 events name no instance by its parameters"), "{omitted}");
    }
}

#[test]
fn a_property_with_parameters_needs_no_disposal() {
    let text = "topic track { id: int }
        property read for each id in track.id = track.id > 0
        property kept for each id in track.id = not disposed(track)";
    let spec = rondel_spec::parse(text).spec.unwrap();
    let mut session = Session::new(&spec, Options::default()).unwrap();
    track(&mut session, 1, 0);
    assert!(session.event(GEAR, TopicEvent::Alive, true, at(1)));
    // The instance is unknown: no property that reads it is satisfied.
    assert!(session.event(GEAR, TopicEvent::Disposed, true, at(2)));
    session.finish();
    let summary = session.summary();
    assert!(summary.vacuous(0).is_empty(), "{:?}", summary.vacuous(0));
    // It was about the publishers.
    assert!(summary.vacuous(1).is_empty(), "{:?}", summary.vacuous(1));
    let unchecked = summary.properties.iter().map(|own| own.unchecked).collect::<Vec<_>>();
    assert_eq!(unchecked, [0, 1]);
}

/// The monitor did not run, so that messages in time were not taken: whether a deadline was missed is unknown.
#[test]
fn a_deadline_missed_during_a_pause_is_inconclusive() {
    use Verdict::{Satisfied, Violated};
    let spec = rondel_spec::parse(TEXT).spec.unwrap();
    for policy in [Policy::Arrival, Policy::EventTime] {
        let clock = Arc::new(ManualClock::default());
        clock.set(at(1000));
        let options = Options {
            live: true,
            clock: clock.clone(),
            alignment: Alignment::new(policy),
            paused_after: Some(500_000_000),
            ..Options::default()
        };
        let mut session = Session::new(&spec, options).unwrap();
        let mut verdicts = Vec::new();
        let mut take = |session: &mut Session| {
            session.flush();
            session.poll();
            let own = session.reports().filter(|r| r.property().position == 1 && r.changed());
            verdicts.extend(own.map(|r| r.verdict()));
        };
        let run = |session: &mut Session, from: i64, until: i64| {
            (from * 10..until * 10).for_each(|tenth| {
                clock.set(Timestamp::from_nanos(tenth * 100_000_000));
                session.alive();
            });
        };
        run(&mut session, 1000, 1001);
        gear(&mut session, 1001);
        take(&mut session);
        // Two seconds without the monitor.
        clock.set(at(1003));
        assert!(session.event(GEAR, TopicEvent::MissedDeadline, true, at(1003)), "{policy:?}");
        take(&mut session);
        run(&mut session, 1003, 1006);
        gear(&mut session, 1006);
        take(&mut session);
        run(&mut session, 1006, 1008);
        assert!(session.event(GEAR, TopicEvent::MissedDeadline, true, at(1008)));
        take(&mut session);
        session.finish();
        take(&mut session);
        assert!(!verdicts.is_empty() && verdicts[0] == Satisfied, "{policy:?}: {verdicts:?}");
        let violated = verdicts.iter().filter(|verdict| **verdict == Violated).count();
        assert_eq!((violated, verdicts.last()), (1, Some(&Violated)), "{policy:?}: {verdicts:?}");
        let statistics = &session.summary().properties[1];
        assert!(statistics.unchecked == 1, "{policy:?}: {statistics:?}");
    }
}
