//! A session that takes the place of another, with the state of a session of another process.

#![allow(clippy::unwrap_used, clippy::panic)]

use crate::edits;

use std::sync::Arc;

use edits::{PROPERTIES, TOPICS, json, message, plan, push, reports};
use rondel_event::{Origin, Timestamp, TopicId, Verdict};
use rondel_runtime::{Clock, KeptReport, ManualClock, Session, Stamp};
use rondel_testkit::Random;

fn texts(texts: &[&str]) -> Vec<String> {
    texts.iter().map(|text| (*text).to_owned()).collect()
}

fn joined(seed: u64) {
    let mut random = Random::new(seed);
    let (aligned, live) = (random.one_in(2), random.one_in(2));
    let mut properties = texts(&PROPERTIES);
    while properties.len() > 3 + random.index(6) {
        properties.remove(random.index(properties.len()));
    }
    let new = || plan(&TOPICS[..2], &properties, aligned, false, live);
    let (first, second) = (new(), new());
    let (mut active, mut late) = (first.start().unwrap(), second.start().unwrap());
    let begins = random.index(40);
    let saves = begins + random.index(20);
    let joins = saves + random.index(20);
    let (mut kept, mut state, mut time) = (Vec::new(), Vec::new(), 0);
    for i in 0..120 {
        if i == saves {
            state = active.snapshot("");
            reports(&mut active);
        }
        if i == joins {
            let mut next = second.join(&mut late, &state).unwrap();
            kept.drain(..).for_each(|message| push(&mut next, &second, &message));
            next.flush();
            next.follow_clock(&late);
            late = next;
        }
        let message = message(&mut random, &mut time);
        push(&mut active, &first, &message);
        if i >= begins {
            push(&mut late, &second, &message);
        }
        if (saves..joins).contains(&i) {
            kept.push(message);
        }
    }
    active.finish();
    late.finish();
    assert_eq!(late.events(), active.events(), "seed {seed}");
    // Those of one step are in the order in which their properties were evaluated.
    let by_property = |mut reports: Vec<String>| {
        reports.sort_by_key(|report| report.split(',').next().map(str::to_owned));
        reports
    };
    let (found, expected) = (by_property(reports(&mut late)), by_property(reports(&mut active)));
    let differs = found.iter().zip(&expected).find(|(found, expected)| found != expected);
    assert_eq!(differs, None, "seed {seed}, aligned {aligned}, live {live}");
    assert_eq!(found.len(), expected.len(), "seed {seed}");
}

#[test]
fn session_with_the_state_of_another_process_reports_the_same() {
    rondel_testkit::seeds("joined", 100).for_each(joined);
}

#[test]
fn other_state_is_refused_and_changes_nothing() {
    let plan_of = |text: &str| plan(&TOPICS[..2], &texts(&[text]), false, false, true);
    let own = plan_of("@time(dense) property p = once a.x > 2");
    let mut session = own.start().unwrap();
    let message = ("a", r#"{"t":1,"k":1,"x":3,"s":""}"#.to_owned());
    push(&mut session, &own, &message);
    let of_other = plan_of("@time(dense) property p = once a.x > 5").start().unwrap().snapshot("");
    assert!(own.join(&mut session, &of_other).is_err(), "another property");
    let both = ["@time(dense) property p = once a.x > 2", "@time(dense) property q = once a.x > 5"];
    let of_more = plan(&TOPICS[..2], &texts(&both), false, false, true).start().unwrap().snapshot("");
    assert!(own.join(&mut session, &of_more).is_err(), "a further property");
    let mut state = own.start().unwrap().snapshot("");
    state.pop();
    assert!(own.join(&mut session, &state).is_err(), "a part of a state");
    assert!(own.join(&mut session, b"").is_err());
    session.flush();
    assert_eq!(session.events(), 1);
}

#[test]
fn watched_property_has_its_state_of_the_other_process() {
    let own = texts(&["@time(steps) property p = historically a.x < 2", "@time(steps) property q = a.x < 2"]);
    let own = plan(&TOPICS[..2], &own, false, false, true);
    let send = |session: &mut Session, t: u64, x: u64| {
        push(session, &own, &("a", format!(r#"{{"t":{t},"k":1,"x":{x},"s":""}}"#)));
        session.flush();
    };
    let (mut active, mut late) = (own.start().unwrap(), own.start().unwrap());
    late.watch_properties(&[0]);
    send(&mut active, 1, 3);
    for session in [&mut active, &mut late] {
        send(session, 2, 1);
    }
    let verdict = |session: &Session, property: u32| session.standing(property).map(|own| own.verdict);
    assert_eq!(verdict(&late, 0), Some(Verdict::Satisfied));
    let joined = own.join(&mut late, &active.snapshot("")).unwrap();
    assert_eq!(verdict(&joined, 0), Some(Verdict::Violated));
    assert_eq!(verdict(&joined, 1), None, "it was not watched before");
}

#[test]
fn message_that_neither_state_nor_copies_contain_is_lost() {
    let own = plan(&TOPICS[..2], &texts(&["@time(dense) property p = once a.x > 2"]), false, false, true);
    let send = |session: &mut Session, number: u64| {
        let stamp = Stamp { origin: Some(Origin { publisher: 7, number }), ..Stamp::default() };
        let content = format!(r#"{{"t":{number},"k":1,"x":1,"s":"","n":[],"v":[],"w":[]}}"#);
        session.push(TopicId(0), stamp, content.as_bytes()).unwrap();
    };
    let mut active = own.start().unwrap();
    (1..6).for_each(|number| send(&mut active, number));
    let state = active.snapshot("");
    let mut before = own.start().unwrap();
    let mut late = own.join(&mut before, &state).unwrap();
    assert_eq!(late.expected(TopicId(0)), [Origin { publisher: 7, number: 6 }]);
    send(&mut late, 6);
    assert_eq!(late.summary().lost(), 0);
    send(&mut late, 8);
    assert_eq!(late.summary().lost(), 1);
}

#[test]
fn deadline_of_the_state_fires_without_a_message() {
    let own = texts(&["@time(dense) property answered = on(a) -> eventually[0, 3 s] on(b)"]);
    let clock = Arc::new(ManualClock::default());
    let mut plan = plan(&TOPICS[..2], &own, false, false, true);
    plan.set_clock(Arc::clone(&clock) as Arc<dyn Clock>);
    let set = |seconds: i64| clock.set(Timestamp::from_nanos(seconds * 1_000_000_000));
    set(10);
    let (mut active, mut late) = (plan.start().unwrap(), plan.start().unwrap());
    let message = ("a", r#"{"t":10,"k":1,"x":3,"s":""}"#.to_owned());
    for session in [&mut active, &mut late] {
        push(session, &plan, &message);
        session.flush();
    }
    let state = active.snapshot("");
    // One that has received nothing begins its clock with the state.
    for (begins, mut before) in [(10, late), (20, plan.start().unwrap())] {
        set(begins);
        let mut next = plan.join(&mut before, &state).unwrap();
        next.follow_clock(&before);
        set(begins + 4);
        for _ in 0..10 {
            next.poll();
        }
        let after = reports(&mut next);
        assert!(after.iter().any(|report| report.contains("\"violated\"")), "{after:?}");
    }
}

#[test]
fn report_that_is_made_inconclusive_has_no_evidence() {
    let own = plan(&TOPICS[..2], &texts(&["@time(steps) property p = a.x < 2"]), false, true, true);
    let mut session = own.start().unwrap();
    push(&mut session, &own, &("a", r#"{"t":1,"k":1,"x":3,"s":""}"#.to_owned()));
    session.flush();
    let mut kept: Vec<KeptReport> = session.kept_reports().collect();
    let before = json(&kept[0].report());
    assert!(before.contains("\"violated\"") && before.contains("\"evidence\""), "{before}");
    kept[0].set_inconclusive();
    let after = json(&kept[0].report());
    assert!(after.contains("\"inconclusive\"") && !after.contains("\"evidence\""), "{after}");
}
