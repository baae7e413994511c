//! Instances that are saved by ranges of their parameters, and restored together or apart, continue
//! unchanged.

#![allow(clippy::panic, clippy::unwrap_used)]

use std::collections::HashMap;
use std::ops::Range;
use std::sync::Arc;

use rondel_engine::{KEY_HASHES, Monitor, PartsError, Program, SeenAgain, SnapshotError, key_hash};
use rondel_event::{Block, Slot, Timestamp, TopicId, Value};
use rondel_testkit::Random;

const TEXT: &str = "
    topic t { b: bool, s: string, x: float, n: int }
    topic u { b: bool, s: string, x: float, n: int }
    property whole = exists v. once[0, 3 s] t{n: v} and u{n: v}
    property held for each id in (t.n, u.n) = t.b since[1 s, 5 s] u.b
    property steps for each id in (t.n, u.n) = t.b since[2, 7] u.b
    property of_text for each id in (t.s, u.s) = on(u) -> once[3, 90] t.b
    @limit(50) property of_both for each id in (t.n, u.n), s in (t.s, u.s) =
        on(t) -> (prev(t.x) > 1 or count(u) over 4 s > 1 or sum(t.x) over 5 s > 9)
    @time(dense) property dense for each id in (t.n, u.n) = t.b since[1 s, 3 s] u.b
    property ahead for each id in (t.n, u.n) = on(t) -> eventually[0, 2 s] u.b
    property meets for each id in (t.n, u.n) = exists x. t{s: x} and once[1 s, 9 s] u{s: x}
    machine own for each id in (t.n, u.n) { initial a a -> b when on(t) b -> a when on(u) error b for 2 s }
    @robust property levels for each id in (t.n, u.n) = once[1 s, 3 s] t.x > 2
";

fn program() -> Arc<Program> {
    let outcome = rondel_spec::parse(TEXT);
    let spec = outcome.spec.clone().unwrap_or_else(|| panic!("{}", outcome.render("", TEXT, false)));
    Arc::new(Program::compile(&spec).unwrap())
}

#[derive(Clone, Copy)]
struct Event {
    time: i64,
    chance: u64,
}

impl Event {
    fn next(random: &mut Random, time: &mut i64) -> Event {
        let chance = random.next();
        *time += [0, 100_000_000, 300_000_000, 1_000_000_000][(chance >> 60) as usize % 4];
        Event { time: *time, chance }
    }

    fn number(self) -> i64 {
        (self.chance >> 8 & 15) as i64
    }

    fn text(self) -> String {
        let which = self.chance >> 16 & 7;
        if which < 4 { format!("r{which}") } else { format!("a rather long name {which}") }
    }
}

fn block(program: &Program, events: &[Event]) -> Block {
    let mut block = Block::new(program.layout());
    for event in events {
        let chance = event.chance;
        let topic = TopicId(chance as u32 & 1);
        let row = block.push(topic, Timestamp::from_nanos(event.time));
        for field in &program.projections()[topic.index()].fields {
            match field.slot {
                Slot::Bool(column) => block.set_bool(column, row, chance >> 1 & 1 == 1),
                Slot::Int(column) => block.set_int(column, row, event.number()),
                Slot::Float(column) => block.set_float(column, row, (chance >> 4 & 7) as f64),
                Slot::String(column) => block.set_string(column, row, &event.text()),
            }
        }
    }
    block
}

/// The reports of the last call: parameters, and the rest as text. Not compared are `changed`, as discarded
/// instances report their verdict as new again and the order of discarding varies, and steps of a single
/// part.
fn shown(monitor: &Monitor, with_steps: bool) -> Vec<(u32, Vec<Value>, String)> {
    let report = |report: &rondel_engine::Report| {
        let rondel_engine::Report {
            property,
            verdict,
            time,
            about,
            after,
            back,
            robustness,
            withheld,
            step,
            ..
        } = *report;
        let step = if with_steps { step } else { 0 };
        let text =
            format!("{verdict:?} {step} {time:?} {about:?} {after} {back} {robustness:?} {withheld:?}");
        (property, monitor.key(report), text)
    };
    monitor.reports().iter().map(report).collect()
}

/// Divides all hashes into ranges.
fn ranges(random: &mut Random) -> Vec<Range<u64>> {
    let mut cuts: Vec<u64> = (0..random.next() % 5).map(|_| random.next() % KEY_HASHES).collect();
    cuts.extend([0, KEY_HASHES]);
    cuts.sort_unstable();
    let mut ranges: Vec<Range<u64>> = cuts.windows(2).map(|pair| pair[0]..pair[1]).collect();
    let count = ranges.len();
    ranges.swap(0, random.next() as usize % count);
    ranges
}

fn before(program: &Arc<Program>, random: &mut Random, time: &mut i64) -> Monitor {
    let mut monitor = Monitor::new(program.clone());
    monitor.report_every(true);
    for _ in 0..random.next() % 12 {
        let events: Vec<Event> = (0..1 + random.next() % 60).map(|_| Event::next(random, time)).collect();
        monitor.step(&block(program, &events));
        if random.next().is_multiple_of(8) {
            let from = Timestamp::from_nanos(*time);
            monitor.miss(&[TopicId(random.next() as u32 & 1)], from, SeenAgain::At(from));
        }
    }
    monitor
}

#[test]
fn joined_parts_continue_unchanged() {
    let (program, mut compared, mut instances) = (program(), 0, 0);
    for seed in rondel_testkit::seeds("parts", 60) {
        let (mut random, mut time) = (Random::new(seed), 0);
        let mut whole = before(&program, &mut random, &mut time);
        let ranges = ranges(&mut random);
        let parts: Vec<Vec<u8>> = ranges.iter().map(|range| whole.snapshot_part(range.clone())).collect();
        let parts: Vec<&[u8]> = parts.iter().map(Vec::as_slice).collect();
        let (mut merged, covered) = Monitor::restore_parts(program.clone(), &parts).unwrap();
        assert_eq!(
            covered.iter().map(|range| range.end - range.start).sum::<u64>(),
            KEY_HASHES,
            "seed {seed}"
        );
        merged.report_every(true);
        for (own, other) in merged.slices().zip(whole.slices()) {
            assert_eq!(
                (own.instances, own.unkeyed, own.refused),
                (other.instances, other.unkeyed, other.refused)
            );
            instances += own.instances;
        }
        assert_eq!(merged.next_deadline().is_some(), whole.next_deadline().is_some(), "seed {seed}");
        for _ in 0..8 {
            let events: Vec<Event> =
                (0..1 + random.next() % 60).map(|_| Event::next(&mut random, &mut time)).collect();
            let block = block(&program, &events);
            merged.step(&block);
            whole.step(&block);
            assert_eq!(shown(&merged, true), shown(&whole, true), "seed {seed}");
            compared += merged.reports().len();
        }
        let until = Timestamp::from_nanos(time + 100_000_000_000);
        merged.advance(until);
        whole.advance(until);
        assert_eq!(shown(&merged, true), shown(&whole, true), "seed {seed}");
    }
    let is_enough = compared > 50_000 && instances > 2_000;
    assert!(rondel_testkit::is_replay() || is_enough, "{compared} {instances}");
}

/// Each part in a monitor of its own, which receives the messages with its parameters.
#[test]
fn separate_parts_continue_unchanged() {
    let (program, mut compared) = (divisible(), 0);
    for seed in 0..20 {
        let (mut random, mut time) = (Random::new(seed), 0);
        let mut whole = Monitor::new(program.clone());
        whole.report_every(true);
        for _ in 0..6 {
            let events: Vec<Event> = (0..40).map(|_| Event::next(&mut random, &mut time)).collect();
            whole.step(&block(&program, &events));
        }
        let ranges = ranges(&mut random);
        let mut parts: Vec<(Range<u64>, Monitor)> = Vec::new();
        for range in ranges {
            let bytes = whole.snapshot_part(range.clone());
            let (mut monitor, covered) = Monitor::restore_parts(program.clone(), &[&bytes]).unwrap();
            assert!(covered.is_empty() && range.is_empty() || covered == [range.clone()]);
            monitor.report_every(true);
            parts.push((range, monitor));
        }
        for _ in 0..6 {
            let events: Vec<Event> = (0..40).map(|_| Event::next(&mut random, &mut time)).collect();
            whole.step(&block(&program, &events));
            let by_key = |monitor: &Monitor, all: &mut HashMap<String, Vec<String>>| {
                for (property, key, text) in shown(monitor, false) {
                    all.entry(format!("{property} {key:?}")).or_default().push(text);
                }
            };
            let (mut expected, mut found) = (HashMap::new(), HashMap::new());
            by_key(&whole, &mut expected);
            for (range, monitor) in &mut parts {
                let is_its = |event: &&Event| range.contains(&key_hash(&[Value::Int(event.number())]));
                let own: Vec<Event> = events.iter().filter(is_its).copied().collect();
                monitor.step(&block(&program, &own));
                by_key(monitor, &mut found);
                monitor.advance(Timestamp::from_nanos(time));
                by_key(monitor, &mut found);
            }
            whole.advance(Timestamp::from_nanos(time));
            by_key(&whole, &mut expected);
            assert_eq!(found, expected, "seed {seed}");
            compared += found.len();
        }
    }
    assert!(compared > 5_000, "{compared}");
}

/// Properties of one parameter, so that every event belongs to one monitor.
fn divisible() -> Arc<Program> {
    let text: String = TEXT
        .lines()
        .filter(|line| !["property whole", "s in (", "t.s, u.s"].iter().any(|other| line.contains(other)))
        .collect();
    let text = text.replace("on(t) -> (prev(t.x) > 1 or count(u) over 4 s > 1 or sum(t.x) over 5 s > 9)", "");
    Arc::new(Program::compile(&rondel_spec::parse(&text).spec.unwrap()).unwrap())
}

/// Monitors of ranges of hashes, each of which receives the events with its parameters.
struct Fleet {
    program: Arc<Program>,
    monitors: Vec<(Range<u64>, Monitor)>,
}

impl Fleet {
    /// Continues from parts with monitors of other ranges. A part is in the range that contains its first hash.
    fn new(program: &Arc<Program>, cuts: &[u64], parts: &[(Range<u64>, Vec<u8>)]) -> Fleet {
        let monitor = |cut: &[u64]| {
            let range = cut[0]..cut[1];
            let own = parts.iter().filter(|(part, _)| range.contains(&part.start));
            let own: Vec<&[u8]> = own.map(|(_, bytes)| bytes.as_slice()).collect();
            let mut monitor = match own.is_empty() {
                true => Monitor::new(program.clone()),
                false => Monitor::restore_parts(program.clone(), &own).unwrap().0,
            };
            monitor.report_every(true);
            (range, monitor)
        };
        Fleet { program: program.clone(), monitors: cuts.windows(2).map(monitor).collect() }
    }

    /// Sixteen parts.
    fn parts(&self) -> Vec<(Range<u64>, Vec<u8>)> {
        let mut parts = Vec::new();
        for (range, monitor) in &self.monitors {
            let width = KEY_HASHES / 16;
            let cuts: Vec<u64> = (range.start..=range.end).step_by(width as usize).collect();
            let ranges = cuts.windows(2).map(|cut| cut[0]..cut[1]);
            parts.extend(ranges.zip(monitor.snapshot_parts(&cuts)));
        }
        parts
    }

    /// Evaluates events, and advances all monitors to the same time.
    fn step(&mut self, events: &[Event], time: i64, found: &mut HashMap<String, Vec<String>>) {
        for (range, monitor) in &mut self.monitors {
            let is_its = |event: &&Event| range.contains(&key_hash(&[Value::Int(event.number())]));
            let own: Vec<Event> = events.iter().filter(is_its).copied().collect();
            monitor.step(&block(&self.program, &own));
            add_by_key(monitor, found);
            monitor.advance(Timestamp::from_nanos(time));
            add_by_key(monitor, found);
        }
    }
}

fn add_by_key(monitor: &Monitor, all: &mut HashMap<String, Vec<String>>) {
    for (property, key, text) in shown(monitor, false) {
        all.entry(format!("{property} {key:?}")).or_default().push(text);
    }
}

/// One monitor becomes two, three and one again, and decides what a single monitor decides.
#[test]
fn parts_of_several_monitors_continue_unchanged() {
    let (program, mut compared) = (divisible(), 0);
    let width = KEY_HASHES / 16;
    let all_cuts: [&[u64]; 4] = [&[0, 16], &[0, 8, 16], &[0, 5, 11, 16], &[0, 16]];
    for seed in 0..20 {
        let (mut random, mut time) = (Random::new(seed), 0);
        let mut whole = Monitor::new(program.clone());
        whole.report_every(true);
        let mut parts = Vec::new();
        for cuts in all_cuts {
            let cuts: Vec<u64> = cuts.iter().map(|cut| cut * width).collect();
            let mut fleet = Fleet::new(&program, &cuts, &parts);
            for _ in 0..4 {
                let events: Vec<Event> = (0..40).map(|_| Event::next(&mut random, &mut time)).collect();
                let (mut expected, mut found) = (HashMap::new(), HashMap::new());
                whole.step(&block(&program, &events));
                add_by_key(&whole, &mut expected);
                whole.advance(Timestamp::from_nanos(time));
                add_by_key(&whole, &mut expected);
                fleet.step(&events, time, &mut found);
                assert_eq!(found, expected, "seed {seed}");
                compared += found.len();
            }
            parts = fleet.parts();
        }
    }
    assert!(compared > 5_000, "{compared}");
}

/// Messages that one of the monitors missed make the verdicts of all instances inconclusive for the time that they reach
/// back, and no longer.
#[test]
fn messages_missed_by_one_of_several_monitors_are_missed_by_all() {
    let text =
        "topic t { n: int, x: float } property low for each id in (t.n) = historically[0, 3 s] t.x < 9";
    let program = Arc::new(Program::compile(&rondel_spec::parse(text).spec.unwrap()).unwrap());
    let half = KEY_HASHES / 2;
    let event = |time: i64, number: u64| Event { time, chance: number << 8 };
    let is_low = |number: &u64| key_hash(&[Value::Int(*number as i64)]) < half;
    let (first, second) = ((0..16).find(is_low).unwrap(), (0..16).find(|number| !is_low(number)).unwrap());
    for has_event in [true, false] {
        let [mut low, mut high] = [0, 1].map(|_| Monitor::new(program.clone()));
        low.step(&block(&program, &[event(1_000_000_000, first)]));
        if has_event {
            high.step(&block(&program, &[event(1_000_000_000, second)]));
        }
        let at = Timestamp::from_nanos(2_000_000_000);
        high.miss(&[TopicId(0)], at, SeenAgain::Now(at));
        low.advance(at);
        high.advance(at);
        let parts = [low.snapshot_part(0..half), high.snapshot_part(half..KEY_HASHES)];
        let (mut joined, _) = Monitor::restore_parts(program.clone(), &[&parts[0], &parts[1]]).unwrap();
        joined.report_every(true);
        let mut verdicts = |time: i64| -> Vec<rondel_event::Verdict> {
            joined.step(&block(&program, &[event(time, first), event(time, second)]));
            joined
                .reports()
                .iter()
                .filter(|report| report.time.as_nanos() == time)
                .map(|report| report.verdict)
                .collect()
        };
        let soon = verdicts(3_000_000_000);
        assert!(!soon.is_empty());
        assert!(soon.iter().all(|verdict| *verdict == rondel_event::Verdict::Inconclusive));
        verdicts(6_000_000_000);
        let later = verdicts(7_000_000_000);
        assert!(!later.is_empty());
        assert!(later.iter().all(|verdict| *verdict == rondel_event::Verdict::Satisfied));
    }
}

/// A message without parameters changes the state in which instances begin. Monitors with that message in common are
/// joined again, whichever instances have begun in each since then.
#[test]
fn parts_are_joined_again_after_a_message_without_parameters() {
    let text = "topic t { n: int, b: bool } topic u { b: bool }
                property p for each id in (t.n) = t.b -> once[0, 3 s] u.b";
    let program = Arc::new(Program::compile(&rondel_spec::parse(text).spec.unwrap()).unwrap());
    let half = KEY_HASHES / 2;
    let mut whole = Monitor::new(program.clone());
    // On `u`, with `b`.
    whole.step(&block(&program, &[Event { time: 1_000_000_000, chance: 3 }]));
    let parts = whole.snapshot_parts(&[0, half, KEY_HASHES]);
    let [mut low, mut high] =
        [0, 1].map(|at| Monitor::restore_parts(program.clone(), &[parts[at].as_slice()]).unwrap().0);
    // On `t`, with `b`.
    let event = |number: u64| Event { time: 2_000_000_000, chance: 2 | number << 8 };
    let events: Vec<Event> = (0..16).map(event).collect();
    let (low_events, high_events): (Vec<Event>, Vec<Event>) =
        events.into_iter().partition(|event| key_hash(&[Value::Int(event.number())]) < half);
    assert!(!high_events.is_empty());
    low.step(&block(&program, &low_events));
    high.step(&block(&program, &high_events[..1]));
    let at = Timestamp::from_nanos(3_000_000_000);
    low.advance(at);
    high.advance(at);
    let parts = [low.snapshot_part(0..half), high.snapshot_part(half..KEY_HASHES)];
    let (joined, _) = Monitor::restore_parts(program, &[&parts[0], &parts[1]]).unwrap();
    let instances = |monitor: &Monitor| monitor.slices().map(|slice| slice.instances).sum::<u64>();
    assert_eq!(instances(&joined), instances(&low) + instances(&high));
}

#[test]
fn parts_of_one_pass_are_those_of_several() {
    let (program, mut random, mut time) = (program(), Random::new(3), 0);
    let monitor = before(&program, &mut random, &mut time);
    // One range is empty, and the hashes at both ends are in none.
    let cuts = [KEY_HASHES / 9, KEY_HASHES / 3, KEY_HASHES / 3, KEY_HASHES / 2, KEY_HASHES - 1];
    let parts = monitor.snapshot_parts(&cuts);
    assert_eq!(parts.len(), 4);
    for (part, cut) in parts.iter().zip(cuts.windows(2)) {
        assert_eq!(*part, monitor.snapshot_part(cut[0]..cut[1]));
    }
    assert!(monitor.snapshot_parts(&[]).is_empty());
    assert!(monitor.snapshot_parts(&[0]).is_empty());
}

#[test]
fn monitors_with_state_outside_of_instances_are_not_joined() {
    let (program, mut random, mut time) = (program(), Random::new(1), 0);
    let [mut low, mut high] = [0, 1].map(|_| Monitor::new(program.clone()));
    for monitor in [&mut low, &mut high] {
        let events: Vec<Event> = (0..40).map(|_| Event::next(&mut random, &mut time)).collect();
        monitor.step(&block(&program, &events));
    }
    let half = KEY_HASHES / 2;
    let parts = |low: &Monitor, high: &Monitor| {
        let parts = [low.snapshot_part(0..half), high.snapshot_part(half..KEY_HASHES)];
        Monitor::restore_parts(program.clone(), &[&parts[0], &parts[1]]).map(drop)
    };
    assert_eq!(parts(&low, &high), Err(PartsError::OtherTime(1)));
    for monitor in [&mut low, &mut high] {
        monitor.advance(Timestamp::from_nanos(time + 1));
    }
    assert_eq!(parts(&low, &high), Err(PartsError::OtherState(1)));
    // A monitor without an event has no state.
    assert_eq!(parts(&low, &Monitor::new(program.clone())), Ok(()));
}

#[test]
fn unrelated_parts_are_refused() {
    let (program, mut random, mut time) = (program(), Random::new(1), 0);
    let mut monitor = before(&program, &mut random, &mut time);
    let low = monitor.snapshot_part(0..KEY_HASHES / 2);
    let high = monitor.snapshot_part(KEY_HASHES / 2..KEY_HASHES);
    let middle = monitor.snapshot_part(KEY_HASHES / 4..KEY_HASHES / 4 * 3);
    let refused = |parts: &[&[u8]]| Monitor::restore_parts(program.clone(), parts).map(drop).unwrap_err();
    assert_eq!(refused(&[]), PartsError::Empty);
    assert_eq!(refused(&[&low, &high, &middle]), PartsError::Overlap(0, 2));
    assert_eq!(refused(&[&low, &low]).to_string(), "the ranges of parts 0 and 1 overlap");
    monitor.step(&block(&program, &[Event::next(&mut random, &mut time)]));
    let later = monitor.snapshot_part(KEY_HASHES / 2..KEY_HASHES);
    assert!(matches!(refused(&[&low, &later]), PartsError::OtherTime(1) | PartsError::OtherState(1)));
    assert_eq!(refused(&[&monitor.snapshot()]), PartsError::Part(0, SnapshotError::NotASnapshot));
    let other = rondel_spec::parse("topic t property p for each id in (t.n) = t.b").spec.unwrap();
    let other = Monitor::new(Arc::new(Program::compile(&other).unwrap())).snapshot_part(0..9);
    assert_eq!(refused(&[&low, &other]), PartsError::Part(1, SnapshotError::OtherProgram));
    // Valid checksums over invalid bytes are read without a panic.
    let end = low.len() - 8;
    let sum = |bytes: &[u8]| rondel_event::snapshot::sum(bytes).to_le_bytes();
    for i in (28..end).step_by(41) {
        for value in [low[i] ^ 1, 0, 0x7F, 0xFF] {
            let mut forged = low.clone();
            forged[i] = value;
            let sum = sum(&forged[..end]);
            forged[end..].copy_from_slice(&sum);
            let _ = Monitor::restore_parts(program.clone(), &[&forged]);
        }
    }
}
