//! The memory that a program announces is the memory that a monitor uses.

#![allow(clippy::panic, clippy::unwrap_used)]

use crate::definition;

use std::sync::Arc;

use definition::{Content, Event, Timed, write_timed};
use rondel_engine::{Memory, Monitor, Program};
use rondel_event::{Block, Value};

fn memory(text: &str) -> (Memory, Arc<Program>) {
    let outcome = rondel_spec::parse(text);
    let spec = outcome.spec.clone().unwrap_or_else(|| panic!("{}", outcome.render("", text, false)));
    let program = Arc::new(Program::compile(&spec).unwrap());
    let [memory] = &program.memory()[..] else { panic!("{:?}", program.memory()) };
    (memory.clone(), program)
}

/// Memory of an instance in bytes, measured over 100,000 instances with empty queues.
fn measured(program: &Arc<Program>) -> usize {
    const KEYS: i64 = 100_000;
    let mut monitor = Monitor::new(program.clone());
    let mut block = Block::new(program.layout());
    for key in 0..KEYS {
        let event = Event { topic: 0, fields: vec![("id", Content::Value(Value::Int(key)))] };
        write_timed(&mut block, program.projections(), &Timed { time: key, arrival: None, event });
        if block.is_full() {
            monitor.step(&block);
            block.clear();
        }
    }
    monitor.step(&block);
    let status = monitor.slices().next().unwrap();
    assert_eq!(status.instances, KEYS as u64);
    status.bytes / KEYS as usize
}

#[test]
fn instance_memory_matches_announcement() {
    for formula in [
        "property p for each id in (ask.id, answer.id) = on(answer) -> once on(ask)",
        "property p for each id in (ask.id, answer.id) = ask.x > prev(ask.x) and once[0, 10] on(ask)",
        "property p for each id in (ask.id, answer.id) = once[0, 1 h] on(ask)",
        "machine m for each id in (ask.id, answer.id) \
         { initial a var n = 0 a -> b when on(ask) b -> a when on(answer) do n := n + 1 error b while n > 3 }",
    ] {
        let (memory, program) =
            memory(&format!("topic ask {{ id: int, x: int }} topic answer {{ id: int }} {formula}"));
        let measured = measured(&program);
        assert!(memory.by_key && memory.properties == [0], "{memory:?}");
        let within = memory.bytes * 3 / 4..memory.bytes * 3 / 2;
        assert!(within.contains(&measured), "{formula}: {memory:?}, measured {measured}");
    }
}

#[test]
fn variable_size_state_is_counted() {
    let of = |formula: &str| {
        let text = format!("topic ask {{ id: string, x: int, s: string }} topic answer {formula}");
        let Memory { texts, queues, quantified, changes_alone, .. } = memory(&text).0;
        (texts, queues, quantified, changes_alone)
    };
    assert_eq!(of("property p = ask.x > 3"), (0, 0, 0, false));
    assert_eq!(of("property p = ask.s == \"x\""), (1, 0, 0, false));
    // One for the lower and one for the upper truth.
    assert_eq!(of("property p = once[3 s, 5 s] ask.x > 3"), (0, 2, 0, true));
    assert_eq!(of("property p for each id in ask.id = once[0, 5 s] ask.x > 3"), (1, 0, 0, true));
    assert_eq!(of("property p = on(ask) -> eventually[0, 5 s] on(answer)"), (0, 1, 0, true));
    let quantified = "property p = exists x. ask{id: x} and once[1, 5] ask{id: x}";
    assert_eq!(of(&format!("@plan(relations) {quantified}")), (0, 0, 1, false));
    assert_eq!(of(quantified), (0, 0, 0, false));
    let by_value = memory(&format!("topic ask {{ id: string }} {quantified}")).0.by_value;
    assert!((64..=128).contains(&by_value), "{by_value}");
}
