//! A session that resumes from the snapshot of an edited specification: with and without alignment, with explanations,
//! and live. Unchanged properties report as without the edit.

#![allow(clippy::unwrap_used, clippy::panic)]

use crate::edits;

use edits::{Message, PROPERTIES, TOPICS, edit, message, name_of, plan, push};
use rondel_event::{Timestamp, Verdict};
use rondel_runtime::{Edited, PropertyStatistics, Session, SessionPlan, StartError};
use rondel_testkit::Random;

/// Reports of some properties, as JSON without the parts that an edit may change: explanations of earlier time points.
/// One alignment group numbers the messages in their order, several number them as they arrive: an edit may change which.
fn take(session: &mut Session, names: &[String], [aligned, explain]: [bool; 2]) -> Vec<Vec<String>> {
    let mut all = vec![Vec::new(); names.len()];
    for report in session.reports() {
        let Some(at) = names.iter().position(|name| *name == report.property().name) else { continue };
        let mut json = Vec::new();
        report.json(&mut json);
        let mut json: serde_json::Value = serde_json::from_slice(&json).unwrap();
        if aligned {
            json.as_object_mut().unwrap().remove("step");
        }
        if explain {
            json.as_object_mut().unwrap().remove("evidence");
        }
        // A forgotten instance is reported again.
        if json.get("key").is_some() || json.get("parameters").is_some() {
            json.as_object_mut().unwrap().remove("changed");
        }
        all[at].push(json.to_string());
    }
    all
}

fn statistics(session: &Session, plan: &SessionPlan, name: &str) -> PropertyStatistics {
    let at = plan.properties().iter().position(|property| property.name == name).unwrap();
    session.summary().properties[at].clone()
}

/// Number of violations of a property, and its last verdict.
fn results(session: &Session, plan: &SessionPlan, name: &str) -> (u64, Option<Verdict>) {
    let own = statistics(session, plan, name);
    (own.violations, own.last)
}

fn case(seed: u64, compared: &mut [usize; 2]) {
    let mut random = Random::new(seed);
    let (aligned, explain) = (random.index(2) == 0, random.index(3) == 0);
    let mut properties: Vec<String> = PROPERTIES.iter().map(|text| (*text).to_owned()).collect();
    while properties.len() > 3 + random.index(6) {
        properties.remove(random.index(properties.len()));
    }
    let mut topics = TOPICS[..2].to_vec();
    let first = plan(&topics, &properties, aligned, explain, false);
    let (mut whole, mut session) = (first.start().unwrap(), first.start().unwrap());
    let mut time = 0;
    let mut all: Vec<Message> = (0..random.index(60)).map(|_| message(&mut random, &mut time)).collect();
    all.iter().for_each(|message| {
        push(&mut whole, &first, message);
        push(&mut session, &first, message);
    });
    let bytes = session.snapshot("note");
    whole.flush();
    let names: Vec<String> = properties.iter().map(|text| name_of(text)).collect();
    assert_eq!(
        take(&mut session, &names, [aligned, explain]),
        take(&mut whole, &names, [aligned, explain]),
        "seed {seed}"
    );
    edit(&mut random, &mut topics, &mut properties);
    let second = plan(&topics, &properties, aligned, explain, false);
    let mut session = match second.restore(&bytes, "note") {
        Ok(session) => session,
        // No property is left.
        Err(StartError::Unrelated) => return,
        Err(error) => panic!("seed {seed}: {error}"),
    };
    let continued = match session.edited() {
        None => names.clone(),
        Some(Edited { continued, restarted, removed }) => {
            let all: Vec<String> = properties.iter().map(|text| name_of(text)).collect();
            assert_eq!(continued.len() + restarted.len(), all.len(), "seed {seed}");
            assert!(removed.iter().all(|name| !all.contains(name)));
            continued.clone()
        }
    };
    // New properties begin with the messages after the snapshot, including those that still wait then.
    let fresh_names: Vec<String> =
        properties.iter().map(|text| name_of(text)).filter(|name| !continued.contains(name)).collect();
    let mut fresh = second.start().unwrap();
    all.clear();
    for i in 0..60 {
        all.push(message(&mut random, &mut time));
        push(&mut whole, &first, &all[i]);
        push(&mut session, &second, &all[i]);
        push(&mut fresh, &second, &all[i]);
        if random.index(20) == 0 {
            let bytes = session.snapshot("note");
            let found = take(&mut session, &continued, [aligned, explain]);
            whole.flush();
            let expected = take(&mut whole, &continued, [aligned, explain]);
            fresh.flush();
            assert_eq!(found, expected, "seed {seed}");
            drop(take(&mut fresh, &[], [aligned, explain]));
            // Restored once more, without an edit.
            session = second.restore(&bytes, "note").unwrap();
            assert!(session.edited().is_none(), "seed {seed}: {:?}", session.edited());
        }
    }
    session.finish();
    whole.finish();
    fresh.finish();
    compared[0] += continued.len();
    compared[1] += fresh_names.len();
    let (found, expected) = (
        take(&mut session, &continued, [aligned, explain]),
        take(&mut whole, &continued, [aligned, explain]),
    );
    for ((found, expected), name) in found.iter().zip(&expected).zip(&continued) {
        let differs = found.iter().zip(expected).find(|(found, expected)| found != expected);
        assert_eq!(differs, None, "seed {seed}, aligned {aligned}, explain {explain}: {name}");
        assert_eq!(found.len(), expected.len(), "seed {seed}: {name}");
    }
    for name in &continued {
        assert_eq!(results(&session, &second, name), results(&whole, &first, name), "seed {seed}: {name}");
    }
    for name in &fresh_names {
        assert_eq!(results(&session, &second, name), results(&fresh, &second, name), "seed {seed}: {name}");
    }
}

#[test]
fn unchanged_properties_continue() {
    let mut compared = [0; 2];
    rondel_testkit::seeds("edited", 100).for_each(|seed| case(seed, &mut compared));
    if rondel_testkit::is_replay() {
        return;
    }
    let [continued, restarted] = compared;
    println!("{continued} continued, {restarted} began restarted");
    assert!(continued > 250 && restarted > 40, "{continued} {restarted}");
}

#[test]
fn edit_outcomes_of_properties_are_reported() {
    let texts = |texts: &[&str]| texts.iter().map(|text| (*text).to_owned()).collect::<Vec<String>>();
    let before = texts(&[
        "@time(dense) property kept = once a.x > 2",
        "@time(dense) property changed = once[0, 1 s] b.ok",
        "@time(dense) property gone = b.ok",
        "property element for each j in a.n = b.ok or a.v[n == j] > 1",
    ]);
    let after = texts(&[
        "@time(dense) property new = a.x > 0",
        "@time(dense) property changed = once[0, 2 s] b.ok",
        "@time(dense) property kept = once a.x > 2",
        "property other_element for each j in a.n = b.ok or a.w[n == j] > 1",
        "property element for each j in a.n = b.ok or a.v[n == j] > 1",
    ]);
    for aligned in [false, true] {
        let first = plan(&TOPICS[..2], &before, aligned, false, false);
        let mut session = first.start().unwrap();
        push(&mut session, &first, &("a", r#"{"t":1,"k":1,"x":3,"s":""}"#.into()));
        push(&mut session, &first, &("b", r#"{"t":2,"k":1,"ok":true}"#.into()));
        let bytes = session.snapshot("");
        let second = plan(&TOPICS[..2], &after, aligned, false, false);
        let mut session = second.restore(&bytes, "").unwrap();
        let edited = session.edited().unwrap().clone();
        assert_eq!(edited.continued, ["kept", "element"]);
        let restarted: Vec<&str> = edited.restarted.iter().map(|(name, _)| name.as_str()).collect();
        assert_eq!(restarted, ["new", "changed", "other_element"]);
        assert_eq!(edited.removed, ["gone"]);
        let notices: Vec<_> = session.notices().collect();
        let notice = notices.iter().find(|notice| notice.kind == "edited").unwrap();
        assert_eq!(
            notice.text(&mut |time: Timestamp| time.to_string()),
            "the specification was edited since the snapshot: 2 properties continue with their state; `new` restarts: it is \
             new; `changed` restarts: its formula, or what that refers to, has changed; `other_element` restarts: it is \
             new; removed: gone"
        );
        session.finish();
        let last = |name: &str| statistics(&session, &second, name).last;
        assert_eq!(last("kept"), Some(rondel_event::Verdict::Satisfied));
        assert_eq!(last("new"), None);
        // Nothing in common.
        let other = plan(&TOPICS[..2], &after[..2], aligned, false, false);
        let why = other.restore(&bytes, "").map(drop).unwrap_err().to_string();
        assert!(why.contains("another specification"), "{why}");
    }
}

/// Messages sent while the monitor did not run concern the continuing properties; restarted ones have missed nothing.
#[test]
fn restarted_properties_have_missed_nothing() {
    let texts = |text: &str| vec!["@time(dense) property kept = once a.x > 2".to_owned(), text.to_owned()];
    for aligned in [false, true] {
        let first =
            plan(&TOPICS[..2], &texts("@time(dense) property p = once a.x > 3"), aligned, false, true);
        let mut session = first.start().unwrap();
        push(&mut session, &first, &("a", r#"{"t":1,"k":1,"x":0,"s":""}"#.into()));
        let bytes = session.snapshot("");
        let second =
            plan(&TOPICS[..2], &texts("@time(dense) property p = once a.x > 4"), aligned, false, true);
        let mut session = second.restore(&bytes, "").unwrap();
        session.resumed(&[]);
        for t in 10..20 {
            push(&mut session, &second, &("a", format!(r#"{{"t":{t},"k":1,"x":0,"s":""}}"#)));
            push(&mut session, &second, &("b", format!(r#"{{"t":{t},"k":1,"ok":true}}"#)));
        }
        session.advance(Timestamp::from_nanos(30_000_000_000));
        session.finish();
        let last = |name: &str| statistics(&session, &second, name).last;
        use rondel_event::Verdict::{Inconclusive, Violated};
        assert_eq!((last("kept"), last("p")), (Some(Inconclusive), Some(Violated)), "{aligned}");
    }
}
