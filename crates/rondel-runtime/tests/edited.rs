//! A session that resumes from the snapshot of an edited specification: with and without alignment, with explanations,
//! and live. Unchanged properties report as without the edit.

#![allow(clippy::unwrap_used, clippy::panic)]

mod numbers;

use std::sync::Arc;

use numbers::Numbers;
use rondel_event::{Path, TimeUnit, Timestamp, TopicId};
use rondel_runtime::alignment::{MaxWait, Policy, TopicAlignment};
use rondel_runtime::{
    Alignment, Edited, Emit, Input, ManualClock, Options, PropertyStatistics, Session, SessionPlan,
    Specification, Stamp, StartError, TimeSource,
};

const TOPICS: [&str; 3] = [
    "topic a { t: time, k: int, x: float, s: string, n: [string], v: [float], w: [float] }",
    "topic b { t: time, k: int, ok: bool }",
    "topic c { t: time, k: int, y: float }",
];

const PROPERTIES: [&str; 15] = [
    "@time(steps) property steps = once[0, 2] a.x > 1.0",
    "@severity(critical) @time(dense) property dense = on(a) -> eventually[0, 3 s] on(b)",
    "@time(dense) property dense_past = on(a) -> once[0, 3 s] b.ok",
    "@time(points) property points = b.ok -> once[0, 2 s] a.x > 0.5",
    "property each for each k in (a.k, b.k) = on(a) -> once[0, 3 s] b.ok",
    "property each_ahead for each k in (a.k, b.k) = on(a) -> eventually[0, 2 s] b.ok",
    "@time(dense) property quantified = forall i. a{k: i} -> once[0, 4 s] b{k: i}",
    "machine m { initial p p -> q when on(a) q -> p when on(b) within 2 s error q for 3 s }",
    "@time(dense) property ever = once (a.x > 2 and b.ok)",
    "@time(dense) property texts = prev(a.s) == a.s or a.s == 'v1'",
    "@time(dense) property of_a = a.x < 5 since[0, 4 s] a.x > 1",
    "property element for each j in a.n = once[0, 3 s] (a.v[n == j] > 1 or b.ok)",
    "property other_element for each j in a.n = once[0, 3 s] a.w[n == j] > 1 or b.ok and a.x > 2",
    "property element_ahead for each j in a.n = a.v[n == j] > 2 -> eventually[0, 2 s] (b.ok or a.v[n == j] < 1)",
    "machine of_element for each j in a.n { initial p p -> q when a.v[n == j] > 2 and not b.ok q -> p when a.v[n == j] < 1
        error q for 3 s }",
];

impl Numbers {
    fn below(&mut self, count: usize) -> usize {
        (self.next() % count.max(1) as u64) as usize
    }
}

/// A message: the name of its topic, and its content.
type Message = (&'static str, String);

fn message(random: &mut Numbers, time: &mut u64) -> Message {
    *time += random.next() % 3 * 500;
    // Those of one topic are ahead of the others: messages wait to be put in order.
    let topic = random.below(2);
    let (t, k, value) = ((*time + 800 * topic as u64) as f64 / 1000.0, random.below(3), random.below(6));
    match topic {
        0 => {
            let count = random.below(4);
            let names: Vec<&str> =
                (0..count).map(|_| ["i", "j", "a long name of an element"][random.below(3)]).collect();
            let mut values = || (0..count).map(|_| random.below(4) as f64).collect::<Vec<f64>>();
            let (x, v, w) = (value as f64 / 2.0, values(), values());
            ("a", format!(r#"{{"t":{t},"k":{k},"x":{x},"s":"v{value}","n":{names:?},"v":{v:?},"w":{w:?}}}"#))
        }
        _ => ("b", format!(r#"{{"t":{t},"k":{k},"ok":{}}}"#, value % 2 == 0)),
    }
}

fn plan(topics: &[&str], properties: &[String], aligned: bool, explain: bool, live: bool) -> SessionPlan {
    let text = [topics.join("\n"), properties.join("\n")].join("\n");
    let outcome = rondel_spec::parse(&text);
    let spec = outcome.spec.clone().unwrap_or_else(|| panic!("{}", outcome.render("", &text, false)));
    let input = Input {
        time: TimeSource::Field(Path::keys(["t"])),
        time_unit: TimeUnit::Seconds,
        ..Input::default()
    };
    let topic =
        TopicAlignment { max_wait: MaxWait::Unlimited, absent_after: None, in_order: true, lower_bound: 0 };
    let ordered = Alignment {
        topics: vec![topic; topics.len()],
        ahead: None,
        behind: None,
        ..Alignment::new(Policy::EventTime)
    };
    let options = Options {
        inputs: vec![input; topics.len()],
        alignment: if aligned { ordered } else { Options::default().alignment },
        emit: Emit::Every,
        explain,
        live,
        clock: Arc::new(ManualClock::default()),
        ..Options::default()
    };
    SessionPlan::of(Specification::new(spec).unwrap(), options)
}

fn push(session: &mut Session, plan: &SessionPlan, (topic, content): &Message) {
    let spec = &plan.specification().spec;
    let at = spec.topics.iter().position(|own| own.name == *topic).unwrap();
    session.push(TopicId(at as u32), Stamp::default(), content.as_bytes()).unwrap();
}

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

fn name_of(declaration: &str) -> String {
    let mut words = declaration.split_whitespace();
    words.find(|word| ["property", "machine"].contains(word));
    words.next().unwrap().to_owned()
}

fn case(seed: u64, compared: &mut [usize; 2]) {
    let mut random = Numbers(seed);
    let (aligned, explain) = (random.below(2) == 0, random.below(3) == 0);
    let mut properties: Vec<String> = PROPERTIES.iter().map(|text| (*text).to_owned()).collect();
    while properties.len() > 3 + random.below(6) {
        properties.remove(random.below(properties.len()));
    }
    let mut topics = TOPICS[..2].to_vec();
    let first = plan(&topics, &properties, aligned, explain, false);
    let (mut whole, mut session) = (first.start().unwrap(), first.start().unwrap());
    let mut time = 0;
    let mut all: Vec<Message> = (0..random.below(60)).map(|_| message(&mut random, &mut time)).collect();
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
    // The edit.
    let at = random.below(properties.len());
    match random.below(3) {
        0 => drop(properties.remove(at)),
        1 => properties[at] = properties[at].replace("[0, ", "[0, 1").replace("for 3 s", "for 4 s"),
        _ => properties.push("@time(dense) property further = once[0, 1 s] (a.x > 1 or b.ok)".into()),
    }
    if random.below(3) == 0 {
        topics.insert(random.below(3), TOPICS[2]);
        properties.push("@time(dense) property of_c = on(c) -> once[0, 1 s] a.x > 1".into());
    }
    for _ in 0..random.below(4) {
        let (i, j) = (random.below(properties.len()), random.below(properties.len()));
        properties.swap(i, j);
    }
    let second = plan(&topics, &properties, aligned, explain, false);
    let mut session = match second.restore(&bytes, "note") {
        Ok(session) => session,
        // No property is left.
        Err(StartError::Mismatch(why)) if why.contains("another specification") => return,
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
        if random.below(20) == 0 {
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
    let of = |session: &Session, plan: &SessionPlan, name: &str| {
        let own = statistics(session, plan, name);
        (own.violations, own.last)
    };
    for name in &continued {
        assert_eq!(of(&session, &second, name), of(&whole, &first, name), "seed {seed}: {name}");
    }
    for name in &fresh_names {
        assert_eq!(of(&session, &second, name), of(&fresh, &second, name), "seed {seed}: {name}");
    }
}

#[test]
fn unchanged_properties_continue() {
    let number = |name: &str| std::env::var(name).ok().and_then(|value| value.parse::<u64>().ok());
    if let Some(seed) = number("RONDEL_SEED") {
        return case(seed, &mut [0; 2]);
    }
    let mut compared = [0; 2];
    (0..100 * number("RONDEL_CASES").unwrap_or(1)).for_each(|seed| case(seed, &mut compared));
    let [continued, restarted] = compared;
    println!("{continued} continued, {restarted} began restarted");
    assert!(continued > 250 && restarted > 40, "{continued} {restarted}");
}

#[test]
fn it_says_what_became_of_the_properties() {
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
