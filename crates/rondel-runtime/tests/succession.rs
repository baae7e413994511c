//! A session that succeeds another while messages come: an exchange for the same specification changes nothing, and one
//! for an edited specification nothing for the properties that stay.

#![allow(clippy::unwrap_used, clippy::panic)]

use crate::edits;

use std::sync::Arc;

use edits::{PROPERTIES, TOPICS, edit, message, plan, push, reports};
use rondel_event::{Origin, Timestamp, TopicId, Verdict};
use rondel_runtime::{Clock, ManualClock, Session, SessionPlan, Stamp, Succession, Summary};
use rondel_testkit::Random;

/// For each topic of a plan the number of the topic of this name in another.
fn origins(plan: &SessionPlan, before: &SessionPlan) -> Vec<Option<TopicId>> {
    let known = &before.specification().spec.topics;
    let origin = |name: &String| known.iter().position(|topic| topic.name == *name);
    let topics = plan.specification().spec.declared().iter();
    topics.map(|topic| origin(&topic.name).map(|at| TopicId(at as u32))).collect()
}

/// Exchanges a session for one of another plan. Returns the reports of the former session, and the properties that keep
/// their states.
fn exchange(session: &mut Session, before: &SessionPlan, plan: &SessionPlan) -> (Vec<String>, Vec<String>) {
    let Succession { session: next, kept, .. } = plan.succeed(session, &origins(plan, before)).unwrap();
    let reports = reports(session);
    *session = next;
    let names = plan.properties().iter().zip(kept).filter(|(_, kept)| kept.is_some());
    (reports, names.map(|(property, _)| property.name.clone()).collect())
}

fn counts(summary: &Summary) -> String {
    let accounts: Vec<_> = summary.accounts.iter().map(|account| account.json("")).collect();
    format!(
        "{:?} {accounts:?} {:?} {} {:?} {:?}",
        summary.counts,
        summary.span,
        summary.backwards,
        summary.missing_topics(),
        summary.omitted()
    )
}

fn some_properties(random: &mut Random) -> Vec<String> {
    let mut properties: Vec<String> = PROPERTIES.iter().map(|text| (*text).to_owned()).collect();
    while properties.len() > 3 + random.index(6) {
        properties.remove(random.index(properties.len()));
    }
    properties
}

fn unchanged(seed: u64) {
    let mut random = Random::new(seed);
    let (aligned, explain, live) = (random.index(2) == 0, random.index(3) == 0, random.index(2) == 0);
    let properties = some_properties(&mut random);
    let new = || plan(&TOPICS[..2], &properties, aligned, explain, live);
    let first = new();
    let (mut whole, mut session) = (first.start().unwrap(), first.start().unwrap());
    let (mut found, mut expected, mut time) = (Vec::new(), Vec::new(), 0);
    for i in 0..120 {
        let message = message(&mut random, &mut time);
        push(&mut whole, &first, &message);
        push(&mut session, &first, &message);
        if random.index(15) == 0 {
            let (reports_before, kept) = exchange(&mut session, &first, &new());
            assert_eq!(kept.len(), properties.len(), "seed {seed}");
            found.extend(reports_before);
            // Explanations may depend on the cut into blocks.
            whole.flush();
            expected.extend(reports(&mut whole));
            assert_eq!(counts(&session.summary()), counts(&whole.summary()), "seed {seed}, message {i}");
        }
    }
    session.finish();
    whole.finish();
    found.extend(reports(&mut session));
    expected.extend(reports(&mut whole));
    let differs = found.iter().zip(&expected).find(|(found, expected)| found != expected);
    assert_eq!(differs, None, "seed {seed}, aligned {aligned}, explain {explain}, live {live}");
    assert_eq!(found.len(), expected.len(), "seed {seed}");
    assert_eq!(counts(&session.summary()), counts(&whole.summary()), "seed {seed}");
}

#[test]
fn exchange_for_the_same_specification_changes_no_byte() {
    rondel_testkit::seeds("unchanged", 100).for_each(unchanged);
}

/// Property, parameters, time and verdict of the reports of some properties: without alignment, each at its step.
fn verdicts_of(reports: &[String], names: &[String]) -> Vec<String> {
    let all = reports.iter().map(|text| serde_json::from_str::<serde_json::Value>(text).unwrap());
    let own = all.filter(|json| names.iter().any(|name| json["property"] == name.as_str()));
    own.map(|json| format!("{} {} {} {}", json["property"], json["key"], json["time"], json["verdict"]))
        .collect()
}

fn edited(seed: u64) -> usize {
    let mut random = Random::new(seed);
    let mut properties = some_properties(&mut random);
    let mut topics = TOPICS[..2].to_vec();
    let first = plan(&topics, &properties, false, false, true);
    let (mut whole, mut session) = (first.start().unwrap(), first.start().unwrap());
    let (mut found, mut expected, mut time) = (Vec::new(), Vec::new(), 0);
    for _ in 0..random.index(60) {
        let message = message(&mut random, &mut time);
        push(&mut whole, &first, &message);
        push(&mut session, &first, &message);
    }
    edit(&mut random, &mut topics, &mut properties);
    let second = plan(&topics, &properties, false, false, true);
    let (before, kept) = exchange(&mut session, &first, &second);
    found.extend(before);
    for _ in 0..60 {
        let message = message(&mut random, &mut time);
        push(&mut whole, &first, &message);
        push(&mut session, &second, &message);
    }
    let received = session.summary().counts.received;
    assert_eq!(received, whole.summary().counts.received, "seed {seed}");
    session.finish();
    whole.finish();
    found.extend(reports(&mut session));
    expected.extend(reports(&mut whole));
    for name in &kept {
        let own = [name.clone()];
        assert_eq!(verdicts_of(&found, &own), verdicts_of(&expected, &own), "seed {seed}: {name}");
    }
    kept.len()
}

#[test]
fn properties_that_stay_report_as_without_the_exchange() {
    let kept: usize = rondel_testkit::seeds("exchanged", 100).map(edited).sum();
    assert!(rondel_testkit::is_replay() || kept > 250, "{kept}");
}

fn texts(texts: &[&str]) -> Vec<String> {
    texts.iter().map(|text| (*text).to_owned()).collect()
}

#[test]
fn publishers_are_followed_across_the_exchange() {
    let own = texts(&["@time(dense) property kept = once a.x > 2"]);
    let first = plan(&TOPICS[..2], &own, false, false, true);
    let mut session = first.start().unwrap();
    let send = |session: &mut Session, topic: u32, number: u64| {
        let stamp = Stamp { origin: Some(Origin { publisher: 7, number }), ..Stamp::default() };
        let content = format!(r#"{{"t":{number},"k":1,"x":3,"s":"","n":[],"v":[],"w":[]}}"#);
        session.push(TopicId(topic), stamp, content.as_bytes()).unwrap();
    };
    (1..6).for_each(|number| send(&mut session, 0, number));
    // The topic has another number from here on.
    let second = plan(&[TOPICS[2], TOPICS[0]], &own, false, false, true);
    let (_, kept) = exchange(&mut session, &first, &second);
    assert_eq!(kept, ["kept"]);
    send(&mut session, 1, 6);
    assert_eq!(session.summary().lost(), 0);
    send(&mut session, 1, 9);
    let summary = session.summary();
    assert_eq!((summary.lost(), summary.counts.received), (2, 7));
    assert_eq!(summary.accounts.iter().map(|account| account.received).collect::<Vec<_>>(), [0, 7]);
}

#[test]
fn properties_without_anything_in_common_restart() {
    for aligned in [false, true] {
        let first =
            plan(&TOPICS[..2], &texts(&["@time(dense) property p = once a.x > 2"]), aligned, false, true);
        let mut session = first.start().unwrap();
        push(&mut session, &first, &("a", r#"{"t":1,"k":1,"x":3,"s":""}"#.into()));
        let second =
            plan(&TOPICS[..2], &texts(&["@time(dense) property p = once a.x > 5"]), aligned, false, true);
        let next = second.succeed(&mut session, &origins(&second, &first)).unwrap();
        assert_eq!(next.kept, [None]);
        assert_eq!(next.restarted.len(), 1);
        let mut session = next.session;
        push(&mut session, &second, &("a", r#"{"t":2,"k":1,"x":3,"s":""}"#.into()));
        push(&mut session, &second, &("b", r#"{"t":2,"k":1,"ok":true}"#.into()));
        session.finish();
        let summary = session.summary();
        assert_eq!(summary.counts.received, 3);
        assert_eq!(summary.properties[0].last, Some(Verdict::Violated));
    }
}

#[test]
fn deadline_before_the_exchange_fires_after_it() {
    let own = texts(&["@time(dense) property answered = on(a) -> eventually[0, 3 s] on(b)"]);
    let clock = Arc::new(ManualClock::default());
    let new = |topics: &[&str]| {
        let mut plan = plan(topics, &own, false, false, true);
        plan.set_clock(Arc::clone(&clock) as Arc<dyn Clock>);
        plan
    };
    let first = new(&TOPICS[..2]);
    let mut session = first.start().unwrap();
    let set = |seconds: i64| clock.set(Timestamp::from_nanos(seconds * 1_000_000_000));
    set(10);
    push(&mut session, &first, &("a", r#"{"t":10,"k":1,"x":3,"s":""}"#.into()));
    session.flush();
    let second = new(&[TOPICS[2], TOPICS[0], TOPICS[1]]);
    exchange(&mut session, &first, &second);
    // The interval after the message comes first.
    let mut due = session.poll().unwrap();
    while due < 12_900_000_000 {
        clock.set(Timestamp::from_nanos(due));
        let next = session.poll().unwrap();
        assert!(next > due, "{next}");
        due = next;
    }
    assert!((12_900_000_000..13_100_000_000).contains(&due), "{due}");
    set(14);
    session.poll();
    let after = reports(&mut session);
    assert!(after.iter().any(|report| report.contains("\"violated\"")), "{after:?}");
}
