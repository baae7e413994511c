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
    let text = TEXT.replace("property whole = exists v. once[0, 3 s] t{n: v} and u{n: v}", "");
    let text: String =
        text.lines().filter(|line| !line.contains("s in") && !line.contains("t.s, u.s")).collect();
    let text = text.replace("on(t) -> (prev(t.x) > 1 or count(u) over 4 s > 1 or sum(t.x) over 5 s > 9)", "");
    let program = Arc::new(Program::compile(&rondel_spec::parse(&text).spec.unwrap()).unwrap());
    let mut compared = 0;
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
    assert_eq!(refused(&[&low, &later]), PartsError::OtherTime(1));
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
