//! Sessions with workers report the same as with one thread, in the same order.

#![allow(clippy::unwrap_used, clippy::panic)]

mod live;

use std::sync::Arc;

use rondel_event::{Path, TimeUnit, Timestamp, TopicId};
use rondel_runtime::{
    Emit, Input, ManualClock, Options, PropertyStatistics, Reset, ResetPolicy, Session, SessionPlan,
    Specification, Stamp, Summary, TimeSource,
};
use rondel_testkit::Random;

const TEXT: &str = "
    topic a { t: time, k: int, x: float, s: string } topic b { t: time, k: int, ok: bool }
    property steps = once[0, 2] a.x > 1.0
    property more = a.x > 2 -> once[0, 5] b.ok
    property soon = on(a) -> eventually[0, 4] b.ok
    @robust property levels = once[0, 3] a.x > 2
    @severity(critical) property dense = on(a) -> eventually[0, 3 s] on(b)
    property held = b.ok since[0, 5 s] a.x > 1
    property count_one = count(a) over 3 s > 2
    property count_two = count(a) over 3 s > 2 or b.ok
    property alive = age(b) <= 2 s
    property other = a.x > 0.5
    property each for each k in (a.k, b.k) = on(a) -> once[0, 3 s] b.ok
    property each_step for each k in (a.k, b.k) = b.ok since[1, 3] a.x > 1
    @limit(40) property few for each k in (a.k), s in (a.s) = once a.x > 1
    property ahead for each k in (a.k, b.k) = on(a) -> eventually[0, 3 s] b.ok
    property by_text for each s in a.s = once[0, 2 s] b.ok -> a.x > 1
    property until_b for each k in (a.k, b.k) until b.ok = a.x > 2 or count(a) over 3 s > 2
    machine of_key for each k in (a.k, b.k) { initial p p -> q when on(a) q -> p when on(b) error q for 3 s }
    property quantified = forall i. a{k: i} -> once[0, 4 s] b{k: i}
    machine m { initial p p -> q when on(a) q -> p when on(b) within 2 s error q for 3 s }
    assert mostly = share(held) >= 0.5
";

/// A message: topic, seconds, payload.
type Message = (u32, i64, String);

/// Messages whose times step back now and then, some of them by as much as a lap. With `odd`, some cannot be decoded, so
/// that verdicts are uncertain.
fn messages(random: &mut Random, count: u64, odd: bool) -> Vec<Message> {
    let mut now = 1000;
    let message = |_| {
        now += random.below(2) as i64;
        if random.below(1500) == 0 {
            now = 1000;
        }
        let time = if random.below(40) == 0 { now - 1 } else { now };
        // One key has most of the messages.
        let key = if random.below(10) < 9 { 7 } else { random.below(300) };
        let topic = random.below(2) as u32;
        let payload = match (if odd { random.below(2000) } else { 9 }, topic) {
            (0, _) => "no".to_owned(),
            (1, _) => format!(r#"{{"t":{time}}}"#),
            (_, 0) => {
                format!(r#"{{"t":{time},"k":{key},"x":{},"s":"v{key}"}}"#, random.below(9) as f64 / 2.0)
            }
            _ => format!(r#"{{"t":{time},"k":{key},"ok":{}}}"#, random.below(2) == 0),
        };
        (topic, time, payload)
    };
    (0..count).map(message).collect()
}

fn plan(text: &str, options: Options, workers: usize) -> SessionPlan {
    let input = Input {
        time: TimeSource::Field(Path::keys(["t"])),
        time_unit: TimeUnit::Seconds,
        ..Input::default()
    };
    let outcome = rondel_spec::parse(text);
    let spec = outcome.spec.clone().unwrap_or_else(|| panic!("{}", outcome.render("", text, false)));
    let clock = Arc::new(ManualClock::default());
    let options = Options { inputs: vec![input.clone(), input], clock, ..options };
    let mut plan = SessionPlan::of(Specification::new(spec).unwrap(), options);
    assert_eq!(plan.set_workers(workers), Ok(None));
    plan
}

/// Everything that a session has to say.
#[derive(Debug, Default, PartialEq)]
struct Said {
    reports: Vec<String>,
    /// In the order of their texts: what is noticed in evaluation may be said later.
    notices: Vec<String>,
    summary: String,
}

impl Said {
    fn take(&mut self, session: &mut Session) {
        for report in session.reports() {
            let mut json = Vec::new();
            report.json(&mut json);
            self.reports.push(format!("{} {}", report.lap(), String::from_utf8(json).unwrap()));
        }
        self.notices.extend(session.notices().map(|notice| notice.json().to_string()));
    }

    fn end(mut self, mut session: Session) -> Said {
        session.finish();
        self.take(&mut session);
        self.notices.sort_unstable();
        self.summary = summary(&session.summary());
        self
    }
}

/// The counts and the statistics of the properties.
fn summary(summary: &Summary) -> String {
    let Summary { counts, properties, backwards, span, omissions, .. } = summary;
    let property = |of: &PropertyStatistics| {
        let counts = (of.inconclusive, of.violations, of.unchecked, of.blind);
        let flags = (of.last, of.open, of.is_incomplete, of.lapsed);
        format!("{counts:?} {flags:?} {:?} {:?}", of.first, of.least_robustness)
    };
    let properties: Vec<String> = properties.iter().map(property).collect();
    format!("{counts:?} {backwards} {span:?} {omissions:?} {properties:#?}")
}

/// Pushes messages one by one; `flushes` decides where to flush.
fn pushed(plan: &SessionPlan, messages: &[Message], flushes: &[bool]) -> Said {
    let (mut session, mut said) = (plan.start().unwrap(), Said::default());
    for (i, (topic, time, payload)) in messages.iter().enumerate() {
        let stamp = Stamp { arrival: Some(Timestamp::from_nanos(time * 1_000_000_000)), ..Stamp::default() };
        let _ = session.push(TopicId(*topic), stamp, payload.as_bytes());
        if flushes[i % flushes.len()] {
            session.flush();
        }
        said.take(&mut session);
    }
    said.end(session)
}

fn in_lines(plan: &SessionPlan, messages: &[Message]) -> Said {
    let (mut session, mut said) = (plan.start().unwrap(), Said::default());
    let mut lines = session.lines(TimeUnit::Seconds).skip_errors(true);
    let line = |(topic, time, payload): &Message| {
        let name = ["a", "b"][*topic as usize];
        format!("{{\"topic\":\"{name}\",\"time\":{time},\"data\":{payload}}}\n")
    };
    let text: String = messages.iter().map(line).collect();
    let mut at = 0;
    while at < text.len() {
        at = session.push_lines(&mut lines, text.as_bytes(), at, text.len()).unwrap();
        said.take(&mut session);
    }
    said.end(session)
}

fn compare(text: &str, seed: u64, options: &Options) {
    let mut random = Random::new(seed);
    let messages = messages(&mut random, 9000, seed.is_multiple_of(3));
    let seldom = [50, 3000, 1_000_000][random.below(3) as usize];
    let flushes: Vec<bool> = (0..5000).map(|_| random.below(seldom) == 0).collect();
    let all = |workers| {
        let plan = plan(text, options.clone(), workers);
        [pushed(&plan, &messages, &flushes), in_lines(&plan, &messages)]
    };
    let one = all(1);
    assert!(one[0].reports.len() > 300, "{} reports", one[0].reports.len());
    for workers in [2, 3, 8] {
        for (several, one) in all(workers).iter().zip(&one) {
            let place = format!("seed {seed}, {workers} workers, emit {:?}", options.emit);
            let differs = several.reports.iter().zip(&one.reports).find(|(several, one)| several != one);
            assert_eq!(differs, None, "{place}");
            assert_eq!(several.reports.len(), one.reports.len(), "{place}");
            assert_eq!(several.notices, one.notices, "{place}");
            assert_eq!(several.summary, one.summary, "{place}");
        }
    }
}

#[test]
fn reports_do_not_depend_on_the_number_of_workers() {
    for seed in rondel_testkit::seeds("workers", 3) {
        let emit = [Emit::Change, Emit::Every][seed as usize % 2];
        let policy =
            [ResetPolicy::Restart, ResetPolicy::Inconclusive, ResetPolicy::Ignore][seed as usize % 3];
        let reset = Reset { policy, after: None };
        compare(TEXT, seed, &Options { emit, reset, ids: true, ..Options::default() });
    }
}

#[test]
fn one_for_each_is_divided_among_workers() {
    let text = "topic a { t: time, k: int, x: float, s: string } topic b { t: time, k: int, ok: bool }
        property each for each k in (a.k, b.k) = on(a) -> once[0, 3 s] b.ok";
    compare(text, 5, &Options::default());
}

/// Pushes messages, and continues from a snapshot before each of the cuts, with the next number of workers.
fn resumed(options: &Options, messages: &[Message], cuts: &[usize], workers: &[usize]) -> Said {
    let plan = |part: usize| plan(TEXT, options.clone(), workers[part]);
    let (mut session, mut said, mut part) = (plan(0).start().unwrap(), Said::default(), 0);
    for (i, (topic, time, payload)) in messages.iter().enumerate() {
        while cuts.get(part) == Some(&i) {
            let bytes = session.snapshot("note");
            said.take(&mut session);
            part += 1;
            session = plan(part).restore(&bytes, "note").unwrap();
        }
        let stamp = Stamp { arrival: Some(Timestamp::from_nanos(time * 1_000_000_000)), ..Stamp::default() };
        let _ = session.push(TopicId(*topic), stamp, payload.as_bytes());
        said.take(&mut session);
    }
    said.end(session)
}

#[test]
fn snapshots_continue_with_other_numbers_of_workers() {
    for seed in rondel_testkit::seeds("resumed-workers", 3) {
        let mut random = Random::new(seed);
        let messages = messages(&mut random, 6000, seed % 3 == 1);
        let policy =
            [ResetPolicy::Ignore, ResetPolicy::Restart, ResetPolicy::Inconclusive][seed as usize % 3];
        let emit = [Emit::Change, Emit::Every][seed as usize % 2];
        let options = Options { reset: Reset { policy, after: None }, emit, ids: true, ..Options::default() };
        // Also before the first message, and twice at one place.
        let mut cuts: Vec<usize> = (0..=random.below(3)).map(|_| random.below(6000) as usize).collect();
        if random.below(3) == 0 {
            cuts.extend([0, cuts[0]]);
        }
        cuts.sort_unstable();
        let one = resumed(&options, &messages, &cuts, &vec![1; cuts.len() + 1]);
        for _ in 0..3 {
            let workers: Vec<usize> = (0..=cuts.len()).map(|_| 1 + random.below(8) as usize).collect();
            let several = resumed(&options, &messages, &cuts, &workers);
            let place = format!("seed {seed}, cuts {cuts:?}, workers {workers:?}");
            let differs = several.reports.iter().zip(&one.reports).find(|(several, one)| several != one);
            assert_eq!(differs, None, "{place}");
            assert_eq!(several.reports.len(), one.reports.len(), "{place}");
            assert_eq!(several.notices, one.notices, "{place}");
            assert_eq!(several.summary, one.summary, "{place}");
        }
    }
}

#[test]
fn snapshots_of_instances_are_the_same_bytes() {
    let text = "topic a { t: time, k: int, x: float, s: string } topic b { t: time, k: int, ok: bool }
        property each for each k in (a.k, b.k) = on(a) -> once[1 s, 3 s] b.ok
        property by_text for each s in a.s = once[0, 2 s] b.ok -> a.x > 1
        property ahead for each k in (a.k, b.k) = on(a) -> eventually[0, 3 s] b.ok
        machine of_key for each k in (a.k, b.k) { initial p p -> q when on(a) q -> p when on(b) }";
    let messages = messages(&mut Random::new(5), 7000, false);
    let reset = Reset { policy: ResetPolicy::Ignore, after: None };
    let snapshot = |workers| {
        let mut session = plan(text, Options { reset, ..Options::default() }, workers).start().unwrap();
        for (topic, time, payload) in &messages {
            let stamp =
                Stamp { arrival: Some(Timestamp::from_nanos(time * 1_000_000_000)), ..Stamp::default() };
            let _ = session.push(TopicId(*topic), stamp, payload.as_bytes());
        }
        session.snapshot("note")
    };
    let one = snapshot(1);
    for workers in [2, 3, 4] {
        assert!(snapshot(workers) == one, "{workers} workers");
    }
}

#[test]
fn one_thread_evaluates_where_it_must() {
    let spec = rondel_spec::parse(TEXT).spec.unwrap();
    let reason = |options: Options| SessionPlan::new(&spec, options).unwrap().set_workers(2).unwrap();
    assert_eq!(reason(Options::default()), None);
    let explained = reason(Options { explain: true, ..Options::default() });
    assert_eq!(explained, Some("explanations follow all values in their order"));
    assert_eq!(reason(Options { live: true, paused_after: Some(1), ..Options::default() }), None);
    let muted = "topic t { x: int } property p = t.x > 1 @because_of(p) property q = t.x > 2";
    let muted = SessionPlan::new(&rondel_spec::parse(muted).spec.unwrap(), Options::default());
    assert!(muted.unwrap().set_workers(2).unwrap().is_some());
    let machine = "topic t {} machine m { initial p p -> q when on(t) }";
    let spec = rondel_spec::parse(machine).spec.unwrap();
    let mut plan = SessionPlan::new(&spec, Options::default()).unwrap();
    assert_eq!(plan.set_workers(2), Ok(Some("no property can be evaluated by another thread")));
}
