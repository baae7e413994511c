//! A monitor continues from the snapshot of an edited specification: unchanged properties behave as if they
//! had never stopped, new ones as in a new monitor. Specifications, edits and events are pseudo-random.

#![allow(clippy::panic, clippy::unwrap_used)]

use std::collections::HashMap;
use std::sync::Arc;

use rondel_engine::{
    Continued, EditOutcome, Monitor, Program, Report, RestartReason, SeenAgain, SnapshotError,
};
use rondel_event::{Block, Slot, Timestamp, TopicId, Value};
use rondel_spec::Spec;
use rondel_testkit::Random;

const TOPICS: [&str; 3] = [
    "topic t { b: bool, s: string, x: float, n: int }",
    "topic u { b: bool, s: string, x: float, n: int }",
    "topic w { b: bool, s: string, x: float, n: int }",
];

/// Declarations with every kind of state; some depend on others.
const ALL: [&str; 44] = [
    "property steps = on(t) -> once[70, 90] (t.b and prev(t.s) == 'a')",
    "property few = t.b since[2, 5] u.b",
    "property ever = once (t.b and u.b)",
    "property always_so = historically (t.x > 0 or u.b)",
    "property before = previously (t.n > u.n)",
    "@time(steps) property counted = count(t) over 5 > 2 and sum(t.x) over 4 > 3",
    "@time(steps) property next_one = on(t) -> eventually[0, 3] u.b",
    "@time(steps) property texts = prev(t.s) == t.s or prev(u.s) == 'a'",
    "property points = on(t) -> once[1 s, 10 s] (t.b and u.x > 2)",
    "property held = t.b since[1 s, 5 s] u.b",
    "property held_too = u.b and once[1 s, 5 s] u.b",
    "@time(dense) property dense = on(t) -> once[1 s, 10 s] (t.b and mean(t.x) over 3 s > 1 and min(t.x) over 2 s < 3)",
    "@time(dense) property dense_held = t.b since[1 s, 5 s] u.b",
    "@time(dense) property dense_recent = once[0, 2 s] (t.b and not u.b)",
    "@time(dense) property dense_same = on(u) and once[0, 2 s] (t.b and not u.b)",
    "@time(dense) property dense_ever = t.b since (u.b and previously t.b)",
    "@time(dense) property fresh_enough = age(t) < 2 s or age(u) < 1 s",
    "property ahead = on(t) -> eventually[0, 3 s] on(u)",
    "@time(dense) property ahead_dense = t.b -> always[1 s, 2 s] (once[0, 1 s] u.b)",
    "property meets = exists x. t{n: x} and once[1 s, 9 s] u{n: x}",
    "property lasts = forall x. t{s: x} -> (not u{s: x}) since[1 s, 4 s] t{s: x}",
    "@time(steps) property steps_of = exists x. t{s: x} and once[1, 5] u{s: x}",
    "property two = exists x. exists y. once[0, 4 s] t{n: x} and once[0, 4 s] u{n: y} and x != y",
    "property future = forall x. t{n: x} -> eventually[0, 3 s] u{n: x}",
    "property each for each id in (t.n) until on(t) and t.s == 'end' = t.b since[1 s, 5 s] u.b",
    "property each_too for each id in (t.n) = once[0, 2 s] (t.b and u.b)",
    "property each_steps for each id in (t.n, u.n) = t.b since[2, 7] u.b",
    "property each_same for each id in (t.n, u.n) = previously t.b or prev(t.s) == 'a'",
    "property of_text for each id in (t.s, u.s) = on(u) -> once[70, 90] t.b",
    "@limit(2) property of_both for each id in (t.n, u.n), s in (t.s, u.s) =
        on(t) -> (prev(t.s) == 'a' or count(u) over 4 s > 1 or sum(t.x) over 5 s > 9)",
    "property soon for each id in (t.n, u.n) = once[0, 3 s] t.b",
    "@time(dense) property dense_each for each id in (t.n, u.n) = t.b since[1 s, 3 s] u.b",
    "property ahead_each for each id in (t.n, u.n) = on(t) -> eventually[0, 2 s] u.b",
    "property meets_each for each id in (t.n, u.n) = exists x. t{s: x} and once[1 s, 9 s] u{s: x}",
    "machine m { initial a var k: int = 0 a -> b when on(t) do k := k + 1 b -> a within 3 s when u.b b -> c after 3 s
        error c for 1 s }",
    "machine own for each id in (t.n, u.n) { initial a a -> b when on(t) b -> a when on(u) error b for 2 s }",
    "@robust property level = t.x > 2 since[0, 3 s] u.x > 1",
    "@robust @time(steps) property level_steps = once[0, 3] t.x > 2",
    "@robust property rises = t.x < 2 until[0, 2 s] u.x > 1 and eventually[1 s, 1 s] t.x > 0",
    "@robust property levels for each id in (t.n, u.n) = once[1 s, 3 s] t.x > 2",
    "@linear property nearer = (once[1 s, 3 s] t.x < u.x + 1) and (t.s == 'a' or t.b) and eventually[0, 2 s] u.x > 2",
    "@linear property farther = historically[0, 1 s] t.x < u.x + 3 and u.b",
    "chain way = t -> u by n within 2 s age <= 3 s",
    "@time(dense) property not_old = age(way) < 3 s or t.b",
];

fn spec(topics: &[&str], declarations: &[String]) -> Spec {
    let text = topics
        .iter()
        .map(|topic| (*topic).to_owned())
        .chain(declarations.to_vec())
        .collect::<Vec<_>>()
        .join("\n");
    let outcome = rondel_spec::parse(&text);
    outcome.spec.clone().unwrap_or_else(|| panic!("{}", outcome.render("", &text, false)))
}

/// An event, independent of the program.
struct Event {
    topic: &'static str,
    time: i64,
    chance: u64,
}

struct Feed {
    random: Random,
    time: i64,
    topics: usize,
}

impl Feed {
    fn event(&mut self) -> Event {
        let chance = self.random.next();
        self.time += [0, 100_000_000, 300_000_000, 1_000_000_000][(chance >> 60) as usize % 4];
        Event { topic: ["t", "u", "w"][chance as usize % self.topics], time: self.time, chance: chance >> 3 }
    }
}

/// The events as a block of a program.
fn block(program: &Program, events: &[Event]) -> Block {
    let mut block = Block::new(program.layout());
    for Event { topic, time, chance } in events {
        let at = program.topics().iter().position(|own| own.name == *topic).unwrap();
        let row = block.push(TopicId(at as u32), Timestamp::from_nanos(*time));
        for field in &program.projections()[at].fields {
            // A place has one value, however it is read.
            if chance >> 20 & 7 == 0 && field.path.to_string() != "n" {
                continue;
            }
            match field.slot {
                Slot::Bool(column) => block.set_bool(column, row, chance >> 1 & 1 == 1),
                Slot::Int(column) => block.set_int(column, row, (chance >> 2 & 3) as i64),
                Slot::Float(column) => block.set_float(column, row, (chance >> 4 & 7) as f64 - 1.0),
                Slot::String(column) => match (chance >> 7) % 6 {
                    which @ 0..=2 => block.set_string(column, row, ["a", "b", "end"][which as usize]),
                    which => {
                        block.set_string(column, row, &format!("a rather long text {}", chance >> 30 & which))
                    }
                },
            }
        }
    }
    block
}

/// The compared part of a report; the step only where both monitors count from the same event.
type Shown = (String, Vec<Value>, String);

fn shown(monitor: &Monitor, report: &Report, steps_before: u64) -> Shown {
    let Report {
        property,
        verdict,
        changed,
        row,
        step,
        at_event,
        time,
        about,
        after,
        back,
        robustness,
        withheld,
        ..
    } = *report;
    let name = monitor.program().properties()[property as usize].clone();
    let step = step.wrapping_sub(steps_before);
    let key = monitor.key(report);
    // A discarded instance reports its verdict as new again, and which instances are discarded depends on all
    // properties with their parameter.
    let changed = changed && key.is_empty();
    let text = format!(
        "{verdict:?} {changed} {row:?} {step} {at_event} {time:?} {about:?} {after} {back} {robustness:?} {withheld:?}"
    );
    (name, key, text)
}

/// Whether all instances receive the events of `u`, including those that may have been discarded.
fn shares(name: &str) -> bool {
    name == "each"
        || name
            .strip_prefix("each_")
            .is_some_and(|rest| rest.starts_with("too") || rest.parse::<u32>().is_ok())
}

/// The reports of a call by property, of the given properties.
fn by_property(
    monitor: &Monitor,
    before: u64,
    events: &[Event],
    is_meant: impl Fn(&str) -> bool,
) -> HashMap<String, Vec<Shown>> {
    let mut all: HashMap<String, Vec<Shown>> = HashMap::new();
    for report in monitor.reports() {
        let shown = shown(monitor, report, before);
        let is_shared =
            report.row.is_some_and(|row| events[usize::from(row)].topic != "t") && shares(&shown.0);
        if is_meant(&shown.0) && !is_shared {
            all.entry(shown.0.clone()).or_default().push(shown);
        }
    }
    all
}

/// Some of all declarations, in a random order, machines and chains before their readers.
fn some(random: &mut Random, count: usize) -> Vec<String> {
    let mut chosen: Vec<usize> = Vec::new();
    while chosen.len() < count {
        let one = random.index(ALL.len());
        if !chosen.contains(&one) {
            chosen.push(one);
            if ALL[one].contains("not_old") && !chosen.iter().any(|at| ALL[*at].starts_with("chain")) {
                chosen.push(ALL.iter().position(|text| text.starts_with("chain")).unwrap());
            }
        }
    }
    chosen.into_iter().map(|at| ALL[at].to_owned()).collect()
}

/// The word after `property`, `machine` or `chain`.
fn name_of(declaration: &str) -> String {
    let mut words = declaration.split_whitespace();
    words.find(|word| ["property", "machine", "chain"].contains(word));
    words.next().unwrap().to_owned()
}

/// Edits declarations: renames, replaces, removes, adds and reorders them.
fn edit(random: &mut Random, declarations: &mut Vec<String>, every: bool) {
    for _ in 0..1 + random.index(3) {
        let at = random.index(declarations.len());
        let is_read = |name: &str| ["m", "way"].contains(&name);
        match random.index(5) {
            0 if !is_read(&name_of(&declarations[at])) => {
                let name = name_of(&declarations[at]);
                let other = format!("{name}_{}", random.index(100));
                declarations[at] = declarations[at].replacen(&format!(" {name} "), &format!(" {other} "), 1);
            }
            1 => {
                let edited =
                    declarations[at].replace(", 2 s]", ", 2500 ms]").replace("t.b", "(t.b or u.n == 3)");
                declarations[at] = edited;
            }
            2 if declarations.len() > 2 && !is_read(&name_of(&declarations[at])) => {
                declarations.remove(at);
            }
            3 => {
                let more = some(random, 1);
                for one in more {
                    let name = name_of(&one);
                    if !declarations.iter().any(|own| name_of(own) == name)
                        && (every || !one.contains("for each"))
                    {
                        declarations.insert(random.index(declarations.len() + 1), one);
                    }
                }
            }
            _ => {
                let other = random.index(declarations.len());
                declarations.swap(at, other);
            }
        }
    }
}

struct Run {
    monitor: Monitor,
    /// Number of steps before its start.
    before: u64,
    /// The properties that are compared with it.
    properties: Vec<String>,
}

#[derive(Default)]
struct Compared {
    continued: usize,
    restarted: usize,
    reports: usize,
    /// Unchanged properties that were restarted.
    lost: usize,
}

#[expect(clippy::too_many_lines, reason = "a table of cases")]
fn case(seed: u64, compared: &mut Compared) {
    let mut random = Random::new(seed);
    let mut topics: Vec<&str> = TOPICS[..2 + random.index(2)].to_vec();
    let mut declarations = {
        let count = 2 + random.index(8);
        some(&mut random, count)
    };
    let first = spec(&topics, &declarations);
    // Of instances only those of each event are compared: see `shown`.
    let every = random.one_in(2) || declarations.iter().any(|text| text.contains("for each"));
    let mut feed = Feed { random: Random::new(random.next()), time: 0, topics: topics.len() };
    let mut edited = Monitor::new(Arc::new(Program::compile(&first).unwrap()));
    let names = first.properties.iter().map(|property| property.name.clone());
    // Monitors that never stop, one per start.
    let mut runs = vec![Run { monitor: edited.clone(), before: 0, properties: names.collect() }];
    edited.report_every(every);
    runs[0].monitor.report_every(every);
    for _ in 0..1 + random.index(3) {
        for _ in 0..random.index(6) {
            let events: Vec<Event> = (0..1 + random.index(40)).map(|_| feed.event()).collect();
            step(seed, &mut edited, &mut runs, &events, |monitor| {
                let block = block(monitor.program(), &events);
                monitor.step(&block);
            });
            if random.one_in(3) {
                feed.time += 700_000_000;
                let now = Timestamp::from_nanos(feed.time);
                step(seed, &mut edited, &mut runs, &[], |monitor| {
                    monitor.advance(now);
                });
            }
            if random.one_in(8) {
                let name = ["t", "u"][random.index(2)];
                let (from, until) =
                    (Timestamp::from_nanos(feed.time), Timestamp::from_nanos(feed.time + 1_000_000_000));
                step(seed, &mut edited, &mut runs, &[], |monitor| {
                    let at = monitor.program().topics().iter().position(|topic| topic.name == name).unwrap();
                    monitor.miss(&[TopicId(at as u32)], from, SeenAgain::At(until));
                });
            }
        }
        let bytes = edited.snapshot();
        edit(&mut random, &mut declarations, every);
        if random.one_in(3) {
            topics.reverse();
        }
        let spec = spec(&topics, &declarations);
        let Continued { monitor, outcomes, spec: marked } = Monitor::continue_edited(&spec, &bytes)
            .unwrap()
            .unwrap_or_else(|error| panic!("seed {seed}: {error}"));
        // Unchanged properties must continue.
        let old = edited;
        for (property, outcome) in spec.properties.iter().zip(&outcomes) {
            let own = old.program().properties().iter().position(|name| *name == property.name);
            compared.lost += usize::from(*outcome == EditOutcome::Restarts(RestartReason::Form));
            assert_eq!(
                own.is_none(),
                *outcome == EditOutcome::Restarts(RestartReason::New),
                "seed {seed}: {}",
                property.name
            );
        }
        edited = monitor;
        edited.report_every(every);
        // Restoring with the marked specification makes no difference.
        edited = Monitor::restore(Arc::new(Program::compile(&marked).unwrap()), &edited.snapshot()).unwrap();
        edited.report_every(every);
        let names = |is_new: bool| {
            let outcomes = spec.properties.iter().zip(&outcomes);
            let meant = outcomes.filter(move |(_, outcome)| (**outcome == EditOutcome::Continues) != is_new);
            meant.map(|(property, _)| property.name.clone()).collect::<Vec<String>>()
        };
        let continued = names(false);
        runs.iter_mut().for_each(|run| run.properties.retain(|name| continued.contains(name)));
        let restarted = names(true);
        if !restarted.is_empty() {
            let mut monitor = Monitor::new(Arc::new(Program::compile(&spec).unwrap()));
            monitor.report_every(every);
            runs.push(Run { monitor, before: edited.position(), properties: restarted.clone() });
        }
        compared.continued += continued.len();
        compared.restarted += restarted.len();
        for _ in 0..3 + random.index(6) {
            let events: Vec<Event> = (0..1 + random.index(40)).map(|_| feed.event()).collect();
            compared.reports += step(seed, &mut edited, &mut runs, &events, |monitor| {
                let block = block(monitor.program(), &events);
                monitor.step(&block);
            });
            if random.one_in(3) {
                feed.time += 700_000_000;
                let now = Timestamp::from_nanos(feed.time);
                compared.reports += step(seed, &mut edited, &mut runs, &[], |monitor| {
                    monitor.advance(now);
                });
            }
        }
    }
    compared.reports += step(seed, &mut edited, &mut runs, &[], |monitor| {
        monitor.end();
    });
}

/// Steps all monitors, and compares their reports. Returns the number of comparisons.
fn step(
    seed: u64,
    edited: &mut Monitor,
    runs: &mut [Run],
    events: &[Event],
    act: impl Fn(&mut Monitor),
) -> usize {
    act(edited);
    let mut count = 0;
    for Run { monitor, before, properties } in runs {
        act(monitor);
        for name in properties {
            let expected = by_property(monitor, 0, events, |own| own == name);
            let found = by_property(edited, *before, events, |own| own == name);
            assert_eq!(found, expected, "seed {seed}: {name} of {:?}", edited.program().properties());
            count += found.values().map(Vec::len).sum::<usize>();
        }
    }
    count
}

#[test]
fn unchanged_properties_continue_and_new_ones_start() {
    let seeds = rondel_testkit::seeds("edited", 160);
    let (cases, mut compared) = (seeds.left(), Compared::default());
    seeds.for_each(|seed| case(seed, &mut compared));
    if rondel_testkit::is_replay() {
        return;
    }
    let Compared { continued, restarted, reports, lost } = compared;
    println!(
        "{cases} cases: {continued} continued, {restarted} restarted, {reports} reports; {lost} in another form"
    );
    assert!(continued > 800 && restarted > 200 && reports > 50_000, "{continued} {restarted} {reports}");
    assert!(lost * 200 < continued, "{lost} of {continued}");
}

#[test]
fn other_release_and_damaged_bytes_are_refused() {
    let spec = spec(&TOPICS[..2], &["property p = once t.b".into()]);
    let bytes = Monitor::new(Arc::new(Program::compile(&spec).unwrap())).snapshot();
    let refused = |bytes: &[u8]| Monitor::continue_edited(&spec, bytes).unwrap().unwrap_err();
    assert_eq!(refused(b"something else entirely"), SnapshotError::NotASnapshot);
    assert!(matches!(refused(&bytes[..bytes.len() - 1]), SnapshotError::Length { .. }));
}
