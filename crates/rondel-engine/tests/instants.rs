//! Dense time, with operands that hold at instants or at all times except instants: verdicts are equal with
//! and without robustness.

#![allow(clippy::panic, clippy::unwrap_used)]

use std::sync::Arc;

use rondel_engine::{Monitor, Program};
use rondel_event::{Block, Timestamp, TopicId, Verdict};
use rondel_spec::parse;

/// Changes of a formula over messages on topics `a` and `b` at these seconds, until a last time: the verdict,
/// and the time that it refers to. With robustness they may be emitted later.
fn changes(formula: &str, events: &[(u32, i64)], until: i64) -> Vec<(char, i64)> {
    let emitted = |robust: &str| {
        let text = format!("topic a topic b @time(dense) {robust} property p = {formula}");
        let outcome = parse(&text);
        let spec = outcome.spec.clone().unwrap_or_else(|| panic!("{}", outcome.render("", &text, false)));
        let program = Arc::new(Program::compile(&spec).unwrap());
        let mut monitor = Monitor::new(program.clone());
        let mut block = Block::new(program.layout());
        let seconds = |n: i64| Timestamp::from_nanos(n * 1_000_000_000);
        for (topic, time) in events {
            block.push(TopicId(*topic), seconds(*time));
        }
        let mut reports = monitor.step(&block).to_vec();
        reports.extend(monitor.advance(seconds(until)));
        let changes = reports.into_iter().filter(|report| report.changed).map(|report| {
            let letter = match report.verdict {
                Verdict::Satisfied => 'T',
                Verdict::Violated => 'F',
                Verdict::Inconclusive => '?',
            };
            (letter, report.about.unwrap_or(report.time).as_nanos() / 1_000_000_000)
        });
        changes.collect::<Vec<_>>()
    };
    let (plain, robust) = (emitted(""), emitted("@robust"));
    assert_eq!(plain, robust, "{formula}");
    plain
}

#[test]
fn interval_precedes_its_witnesses() {
    let events = [(0, 0), (1, 1), (1, 10)];
    let expected = [
        ("on(a) until[0, 5 s] not on(a)", "F0 T0"),
        ("on(a) until[1 s, 5 s] not on(a)", "F0"),
        ("not on(b) until[0, 5 s] on(b)", "T0 F1 T5 F10"),
        // Exactly one second before a message, but not just after that.
        ("not on(b) until[1 s, 5 s] on(b)", "T0 F0 T5 F9"),
        // Just before a message, and then at it.
        ("on(b) since[0, 5 s] not on(b)", "T0"),
        ("on(b) since[1 s, 5 s] not on(b)", "F0"),
        ("not on(b) since[0, 5 s] on(b)", "F0 T1 F6 T10 F15"),
        ("not on(b) since[1 s, 5 s] on(b)", "F0 T2 F6 T11 F15"),
    ];
    for (formula, expected) in expected {
        let found: Vec<String> =
            changes(formula, &events, 20).iter().map(|(v, about)| format!("{v}{about}")).collect();
        assert_eq!(found.join(" "), expected, "{formula}");
    }
}
