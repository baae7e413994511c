//! Machines and chains as text: verdicts of their properties.

#![allow(clippy::panic, clippy::unwrap_used)]

use crate::definition;

use std::collections::BTreeMap;
use std::sync::Arc;

use rondel_engine::{Monitor, Program};
use rondel_event::{Block, Timestamp, TopicId, Value, ValueType, Verdict};
use rondel_spec::parse;

use self::definition::slice::instances;
use self::definition::{Content, Event, Timed, write_timed};

const TOPICS: &str = "topic go topic back topic up topic down let high = not on(down) since on(up)";

/// Reports of the first property for messages on `g`o, `b`ack, `u`p and `d`own at these tenths of a second,
/// with time advancing to the last number.
fn run(machine: &str, events: &[(char, i64)], until: i64) -> Vec<(bool, i64)> {
    let text = format!("{TOPICS} {machine}");
    let outcome = parse(&text);
    let spec = outcome.spec.clone().unwrap_or_else(|| panic!("{}", outcome.render("", &text, false)));
    let program = Arc::new(Program::compile(&spec).unwrap());
    let mut reported: Option<Vec<(bool, i64)>> = None;
    for cut in [1, 2, 64] {
        let mut monitor = Monitor::new(program.clone());
        let mut block = Block::new(program.layout());
        let mut all = Vec::new();
        let tenths = |n: i64| Timestamp::from_nanos(n * 100_000_000);
        for events in events.chunks(cut) {
            block.clear();
            for (topic, time) in events {
                let topic = "gbud".find(*topic).unwrap();
                block.push(TopicId(topic as u32), tenths(*time));
            }
            all.extend(monitor.step(&block).iter().map(|r| (r.property, r.verdict, r.time)));
        }
        all.extend(monitor.advance(tenths(until)).iter().map(|r| (r.property, r.verdict, r.time)));
        let all: Vec<_> = all
            .into_iter()
            .filter(|(property, ..)| *property == 0)
            .map(|(_, verdict, time)| (verdict == Verdict::Satisfied, time.as_nanos() / 100_000_000))
            .collect();
        assert!(reported.as_ref().is_none_or(|r| *r == all), "{machine}: {reported:?}, cut {cut}: {all:?}");
        reported = Some(all);
    }
    let mut changes = reported.unwrap();
    changes.dedup_by_key(|(satisfied, _)| *satisfied);
    changes
}

#[test]
fn error_counts_after_its_duration() {
    let machine =
        "machine m { initial a a -> b when on(go) b -> a when on(back) error b while high for 3 s }";
    let fine = (true, 0);
    assert_eq!(run(machine, &[('g', 0), ('u', 0)], 100), [fine, (false, 30)]);
    // Before the trace there was no error: at two seconds it has not lasted for three.
    assert_eq!(run(machine, &[('g', 0), ('u', 0)], 20), [fine]);
    assert_eq!(run(machine, &[('g', 0), ('u', 20)], 100), [fine, (false, 50)]);
    assert_eq!(run(machine, &[('u', 0), ('g', 10)], 100), [fine, (false, 40)]);
    // An interrupted duration starts from zero.
    assert_eq!(run(machine, &[('g', 0), ('u', 0), ('b', 20), ('g', 25)], 100), [fine, (false, 55)]);
    assert_eq!(run(machine, &[('g', 0), ('u', 0), ('d', 29), ('u', 31)], 60), [fine]);
    // It is no error any longer once it is over.
    let over = run(machine, &[('g', 0), ('u', 0), ('b', 40)], 100);
    assert_eq!(over, [fine, (false, 30), (true, 40)]);
}

#[test]
fn error_without_condition_and_duration() {
    let fine = (true, 0);
    let machine =
        "machine m { initial a a -> b when on(go) b -> a when on(back) error a for 1 s error b while high }";
    assert_eq!(run(machine, &[('d', 0)], 100), [fine, (false, 10)]);
    assert_eq!(run(machine, &[('g', 0), ('u', 5)], 100), [fine, (false, 5)]);
    let machine =
        "@time(steps) machine m { initial a a -> b when on(go) b -> a when on(back) error b for 2 }";
    assert_eq!(run(machine, &[('g', 0), ('u', 5)], 100), [fine]);
    assert_eq!(run(machine, &[('g', 0), ('u', 5), ('u', 5)], 100), [fine, (false, 5)]);
    let machine = "machine m { initial a a -> b when on(go) error b }";
    assert_eq!(run(machine, &[('u', 0), ('g', 7)], 100), [fine, (false, 7)]);
}

#[test]
fn ambiguity_is_permanent_error() {
    let machine =
        "machine m { initial a a -> b when on(go) a -> a when on(back) a -> b when high b -> a when on(go) }";
    let fine = (true, 0);
    assert_eq!(run(machine, &[('b', 0), ('g', 1), ('g', 2)], 100), [fine]);
    assert_eq!(
        run(machine, &[('b', 0), ('g', 1), ('u', 2), ('g', 3), ('b', 4), ('u', 5)], 100),
        [fine, (false, 4)]
    );
}

/// Verdicts by definition for every message on `go`. Messages are topic, tenths of a second and stamp.
fn chained(chain: &str, events: &[(char, i64, i64)]) -> Vec<Verdict> {
    let spec = parse(&format!("{TOPICS} property _used = high {chain}")).spec.unwrap();
    let trace: Vec<_> = events
        .iter()
        .map(|(topic, time, stamp)| Timed {
            time: time * 100_000_000,
            arrival: None,
            event: Event {
                topic: "gbud".find(*topic).unwrap() as u32,
                fields: vec![("t", Content::Value(Value::Time(*stamp)))],
            },
        })
        .collect();
    let mut verdicts = BTreeMap::new();
    for instance in instances(&spec, 1, &trace, 100_000_000_000) {
        for spot in instance.spots {
            let Some(event) = spot.event.filter(|event| events[*event].0 == 'g') else { continue };
            verdicts.insert(event, spot.verdict.unwrap_or(Verdict::Inconclusive));
        }
    }
    verdicts.into_values().collect()
}

#[test]
fn chain_requires_order_and_deadline() {
    use Verdict::{Satisfied, Violated};
    let all = |events: &[_]| chained("chain go -> back -> up by t within 1 s", events);
    assert_eq!(all(&[('g', 0, 1), ('b', 5, 1), ('u', 10, 1)]), [Satisfied]);
    assert_eq!(all(&[('g', 0, 1), ('b', 0, 1), ('u', 0, 1)]), [Satisfied]);
    assert_eq!(all(&[('g', 0, 1), ('b', 5, 1), ('u', 11, 1)]), [Violated]);
    assert_eq!(all(&[('g', 0, 1), ('u', 5, 1)]), [Violated], "not through all");
    assert_eq!(all(&[('g', 0, 1), ('u', 4, 1), ('b', 5, 1)]), [Violated], "not in order");
    assert_eq!(all(&[('g', 0, 1), ('u', 4, 1), ('b', 5, 1), ('u', 9, 1)]), [Satisfied]);
    assert_eq!(all(&[('b', 0, 1), ('g', 1, 1), ('u', 5, 1)]), [Violated], "what came before does not count");
    let stamps = [('g', 0, 1), ('g', 1, 2), ('b', 2, 2), ('b', 3, 1), ('u', 4, 2), ('u', 12, 1)];
    assert_eq!(all(&stamps), [Violated, Satisfied]);
    let again = [('g', 0, 1), ('b', 1, 1), ('u', 2, 1), ('g', 50, 1), ('u', 51, 1)];
    assert_eq!(all(&again), [Satisfied, Violated], "what an ended instance knew is gone");
    let two = |events: &[_]| chained("chain go -> up by t within 1 s", events);
    assert_eq!(two(&[('g', 0, 1), ('g', 5, 1), ('u', 10, 1), ('u', 30, 1)]), [Satisfied, Satisfied]);
    assert_eq!(two(&[('u', 0, 1), ('g', 5, 1), ('u', 10, 2)]), [Violated]);
}

#[test]
fn trace_must_end_in_final_state() {
    let machine = "machine m { initial a a -> b when on(go) b -> a when on(back) final a }";
    let spec = parse(&format!("{TOPICS} {machine}")).spec.unwrap();
    let program = Arc::new(Program::compile(&spec).unwrap());
    let mut monitor = Monitor::new(program.clone());
    let mut block = Block::new(program.layout());
    for (topic, verdict) in [(0, Some(Verdict::Inconclusive)), (1, None)] {
        block.clear();
        block.push(TopicId(topic), Timestamp::from_nanos(topic.into()));
        monitor.step(&block);
        assert_eq!(monitor.clone().end().first().map(|report| report.verdict), verdict);
    }
}

/// Parameters of the instances that are open at the end, in random traces with many values.
fn left_open(until: &str, seed: u64) {
    use Verdict::Inconclusive;
    let text = format!(
        "topic go {{ id: int }} topic back {{ id: int }} topic up {{ id: int }} \
         machine m for each k in (go.id, back.id, up.id){until} {{ \
         initial a a -> b when on(go) b -> c when on(back) c -> d when on(up) d -> c when on(go) final c, d }}"
    );
    let spec = parse(&text).spec.unwrap();
    let program = Arc::new(Program::compile(&spec).unwrap());
    let (mut random, mut expected, mut found) = (seed, Vec::new(), Vec::new());
    let mut below = |n: u64| {
        random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (random >> 33) % n
    };
    let mut states: std::collections::BTreeMap<i64, char> = std::collections::BTreeMap::new();
    let mut monitor = Monitor::new(program.clone());
    let mut block = Block::new(program.layout());
    let mut take = |monitor: &Monitor| {
        let open = monitor.reports().iter().filter(|report| report.verdict == Inconclusive);
        found.extend(open.map(|report| (monitor.key(report)[0].clone(), report.time.as_nanos())));
    };
    let ends = !until.is_empty();
    for i in 0..4000_i64 {
        let (topic, key) = (below(3), below(300) as i64);
        let state = states.entry(key).or_insert('a');
        *state = match (*state, topic) {
            ('a', 0) => 'b',
            ('b', 1) | ('d', 0) => 'c',
            ('c', 2) => 'd',
            (same, _) => same,
        };
        if ends && topic == 2 {
            if matches!(state, 'a' | 'b') {
                expected.push((Value::Int(key), i));
            }
            states.remove(&key);
        }
        let event = Event { topic: topic as u32, fields: vec![("id", Content::Value(Value::Int(key)))] };
        write_timed(&mut block, program.projections(), &Timed { time: i, arrival: None, event });
        if block.is_full() || below(20) == 0 {
            monitor.step(&block);
            take(&monitor);
            block.clear();
        }
    }
    monitor.step(&block);
    take(&monitor);
    monitor = Monitor::restore(program, &monitor.snapshot()).unwrap();
    monitor.end();
    take(&monitor);
    let open = states.into_iter().filter(|(_, state)| matches!(state, 'a' | 'b'));
    expected.extend(open.map(|(key, _)| (Value::Int(key), 3999)));
    let key = |(key, time): &(Value, i64)| (*time, format!("{key:?}"));
    expected.sort_by_key(key);
    found.sort_by_key(key);
    assert_eq!(found, expected);
}

#[test]
fn every_instance_must_end_in_final_state() {
    for seed in 1..8 {
        left_open("", seed);
        left_open(" until on(up)", seed);
    }
}

#[test]
fn ambiguous_transitions_are_named() {
    let machine = "machine m { initial a a -> b when on(go) a -> c when on(go) and high final b, c }";
    let spec = parse(&format!("{TOPICS} {machine}")).spec.unwrap();
    let program = Arc::new(Program::compile(&spec).unwrap());
    let mut monitor = Monitor::new(program.clone());
    let mut block = Block::new(program.layout());
    for topic in [2, 0] {
        assert_eq!(monitor.ambiguities(), []);
        block.clear();
        block.push(TopicId(topic), Timestamp::ZERO);
        monitor.step(&block);
    }
    let [found] = monitor.ambiguities()[..] else { panic!("{:?}", monitor.ambiguities()) };
    assert_eq!(
        (found.machine, found.transitions),
        ("m", ["a -> b when on(go)", "a -> c when on(go) and high"])
    );
}

/// Reports on a property with parameters up to the end of the trace: parameter, verdict, time, and the time
/// that it refers to, in tenths of a second. Messages are topic, tenths of a second and parameter.
fn divided(text: &str, events: &[(char, i64, i64)], until: i64) -> Vec<(Value, Verdict, i64, i64)> {
    let outcome = parse(text);
    let spec = outcome.spec.clone().unwrap_or_else(|| panic!("{}", outcome.render("", text, false)));
    let value = |key: i64| match spec.slices[0].keys[0].value_type {
        ValueType::Time => Value::Time(key),
        ValueType::String => Value::String(key.to_string().into()),
        _ => Value::Int(key),
    };
    let field = spec.slices[0].keys[0].fields[0].1.to_string();
    let field: &'static str = if field == "t" { "t" } else { "id" };
    let program = Arc::new(Program::compile(&spec).unwrap());
    let tenths = |n: i64| n * 100_000_000;
    let mut emitted: Option<Vec<_>> = None;
    for cut in [1, 2, 64] {
        let mut monitor = Monitor::new(program.clone());
        let mut block = Block::new(program.layout());
        let mut all = Vec::new();
        let take = |monitor: &Monitor, all: &mut Vec<_>| {
            all.extend(monitor.reports().iter().map(|report| {
                let key = monitor.key(report)[0].clone();
                let time = report.time.as_nanos();
                let about = report.about.map_or(time, Timestamp::as_nanos);
                (key, report.verdict, time / tenths(1), about / tenths(1))
            }));
        };
        for events in events.chunks(cut) {
            block.clear();
            for (topic, time, key) in events {
                let event = Event {
                    topic: "gbud".find(*topic).unwrap() as u32,
                    fields: vec![(field, Content::Value(value(*key)))],
                };
                let timed = Timed { time: tenths(*time), arrival: None, event };
                write_timed(&mut block, program.projections(), &timed);
            }
            monitor.step(&block);
            take(&monitor, &mut all);
        }
        monitor.advance(Timestamp::from_nanos(tenths(until)));
        take(&monitor, &mut all);
        monitor.end();
        take(&monitor, &mut all);
        assert!(
            emitted.as_ref().is_none_or(|emitted| *emitted == all),
            "cut {cut}: {all:?}, not {emitted:?}"
        );
        emitted = Some(all);
    }
    emitted.unwrap()
}

#[test]
fn every_request_is_answered_in_time() {
    use Verdict::{Inconclusive, Satisfied, Violated};
    let text = "topic request topic other topic reply \
        property answered for each id in (request.id, reply.id) = on(request) -> eventually[0, 5 s] on(reply)";
    let events = [('g', 0, 1), ('g', 10, 2), ('u', 50, 1), ('g', 100, 3)];
    let emitted = divided(text, &events, 120);
    let of = |k: &str| {
        let of_key = emitted.iter().filter(|judged| judged.0 == Value::String(k.into()));
        of_key.map(|(_, verdict, time, about)| (*verdict, *time, *about)).collect::<Vec<_>>()
    };
    // The time after the request is satisfied at once. An answer exactly at the end still counts.
    assert_eq!(of("1"), [(Satisfied, 0, 0), (Satisfied, 50, 0)]);
    assert!(of("2").contains(&(Violated, 60, 10)), "{:?}", of("2"));
    assert!(of("3").contains(&(Inconclusive, 120, 100)), "{:?}", of("3"));
}

#[test]
fn missing_output_is_known_just_after_deadline() {
    use Verdict::Violated;
    let text = format!("{TOPICS} chain go -> back -> up by t within 1 s");
    let stamps = [('g', 0, 1), ('g', 1, 2), ('b', 2, 2), ('b', 3, 1), ('u', 4, 2), ('u', 12, 1)];
    let emitted = divided(&text, &stamps, 100);
    let late: Vec<_> = emitted.iter().filter(|judged| judged.1 == Violated).collect();
    assert_eq!(late, [&(Value::Time(1), Violated, 10, 0)]);
}
