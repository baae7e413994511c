//! Quantified formulas in dense time near the limits of the times that the engine computes with.

#![allow(clippy::panic, clippy::unwrap_used)]

use std::sync::Arc;

use rondel_engine::{Monitor, Program};
use rondel_event::{Block, Slot, Timestamp, TopicId, Verdict};

const S: i64 = 1_000_000_000;

/// Reports on messages of `a` with these ids at these seconds, and number of times beyond the limit.
fn run(property: &str, messages: &[(i64, i64)]) -> (Vec<(Verdict, i64)>, u64) {
    let text = format!("topic a {{ id: int, p: bool }} {property}");
    let outcome = rondel_spec::parse(&text);
    let spec = outcome.spec.clone().unwrap_or_else(|| panic!("{}", outcome.render("", &text, false)));
    let program = Arc::new(Program::compile(&spec).unwrap());
    let mut monitor = Monitor::new(program.clone());
    let mut block = Block::new(program.layout());
    let mut reports = Vec::new();
    for messages in messages.chunks(Block::CAPACITY) {
        block.clear();
        for &(id, seconds) in messages {
            let row = block.push(TopicId(0), Timestamp::from_nanos(seconds.saturating_mul(S)));
            for field in &program.projections()[0].fields {
                match field.slot {
                    Slot::Int(column) => block.set_int(column, row, id),
                    Slot::Bool(column) => block.set_bool(column, row, true),
                    _ => {}
                }
            }
        }
        reports.extend(monitor.step(&block).iter().map(|r| (r.verdict, r.time.as_nanos() / S)));
    }
    (reports, monitor.beyond_range())
}

#[test]
fn times_beyond_limit_are_clamped() {
    let late: Vec<(i64, i64)> = (0..64).map(|i| (i % 3, 5_000_000_000 + i)).collect();
    let messages = [&[(1, 1)], &late[..]].concat();
    for plan in ["", "@plan(relations) "] {
        let text =
            format!("{plan}property p = forall x. a{{id: x}} -> previously once[0, 2 ms] a{{id: x, p}}");
        let (reports, beyond) = run(&text, &messages);
        assert_eq!(beyond, 64);
        assert!(reports.len() < 200, "{}", reports.len());
    }
}

#[test]
fn distances_of_centuries_are_measured() {
    let century = 3_155_760_000;
    for plan in ["", "@plan(relations) "] {
        let text =
            format!("{plan}property p = forall x. a{{id: x}} -> not once[1 s, 3155760000 s] a{{id: x}}");
        // From one end of the range to the other, and back by a second.
        let start = -4_600_000_000;
        let (reports, beyond) =
            run(&text, &[(1, start), (1, start + century), (1, start + 2 * century + 1), (2, 4_600_000_000)]);
        let at = |verdict| reports.iter().filter(|r| r.0 == verdict).map(|r| r.1).collect::<Vec<_>>();
        assert_eq!((at(Verdict::Violated), beyond), (vec![start + century], 0), "{plan}{reports:?}");
    }
}
