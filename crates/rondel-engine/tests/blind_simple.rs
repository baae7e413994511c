//! Verdicts after missed messages, in simple cases: none is withheld without need.

#![allow(clippy::unwrap_used)]

use std::sync::Arc;

use rondel_engine::{Monitor, Program, SeenAgain, UnseenFrom};
use rondel_event::{Block, Slot, Timestamp, TopicId, Verdict};

const S: i64 = 1_000_000_000;

/// A monitor of a property `p` over topics `a` and `b` with a field `x`, and its latest verdict.
struct Case {
    monitor: Monitor,
    program: Arc<Program>,
    verdict: Verdict,
}

impl Case {
    fn new(model: &str, formula: &str) -> Case {
        let text =
            format!("topic a {{ x: int }} topic b {{ x: int }}\n@time({model}) property p = {formula}");
        Case::of(&text)
    }

    fn of(text: &str) -> Case {
        let program = Arc::new(Program::compile(&rondel_spec::parse(text).spec.unwrap()).unwrap());
        Case { monitor: Monitor::new(Arc::clone(&program)), program, verdict: Verdict::Inconclusive }
    }

    fn take(&mut self) {
        if let Some(report) = self.monitor.reports().last() {
            self.verdict = report.verdict;
        }
    }

    /// The verdict after a message at a second.
    fn message(&mut self, topic: u32, second: i64, x: i64) -> Verdict {
        let mut block = Block::new(self.program.layout());
        let row = block.push(TopicId(topic), Timestamp::from_nanos(second * S));
        for field in &self.program.projections()[topic as usize].fields {
            if let Slot::Int(column) = field.slot {
                block.set_int(column, row, x);
            }
        }
        self.monitor.step(&block);
        self.take();
        // Restored from a snapshot, to check that it makes no difference.
        self.monitor = Monitor::restore(Arc::clone(&self.program), &self.monitor.snapshot()).unwrap();
        self.verdict
    }

    /// The verdict after messages on `a` between two seconds were missed.
    fn miss(&mut self, from: i64, to: i64) -> Verdict {
        let at = |second: i64| Timestamp::from_nanos(second * S);
        self.monitor.advance(at(to));
        self.take();
        self.monitor.miss(&[TopicId(0)], at(from), SeenAgain::After(at(to)));
        self.take();
        self.verdict
    }
}

use Verdict::{Inconclusive, Satisfied, Violated};

#[test]
fn final_verdicts_stay() {
    for model in ["steps", "points", "dense"] {
        let formulas = [
            ("historically a.x < 5", Violated),
            ("once a.x >= 5", Satisfied),
            ("not once a.x >= 5 or historically a.x < 4", Violated),
        ];
        for (formula, verdict) in formulas {
            let mut case = Case::new(model, formula);
            case.message(0, 1, 3);
            assert_eq!(case.message(0, 2, 7), verdict, "{model} {formula}");
            assert_eq!(case.miss(3, 5), verdict, "{model} {formula}");
            assert_eq!(case.message(0, 6, 3), verdict, "{model} {formula}");
            assert_eq!(case.monitor.uncertain().count(), 0);
            // A missed message may have occurred before.
            case.miss(2, 6);
            assert_eq!(case.message(1, 8, 3), Inconclusive, "{model} {formula}");
        }
    }
}

/// An operator that remembers the last side is certain again once a message decides it.
#[test]
fn last_side_is_uncertain_until_next_message() {
    for model in ["steps", "points", "dense"] {
        let mut case = Case::new(model, "hysteresis(a.x, 3, 6)");
        assert_eq!(case.message(0, 1, 5), Inconclusive);
        assert_eq!(case.message(0, 2, 7), Satisfied);
        assert_eq!(case.message(0, 3, 4), Satisfied, "{model}");
        case.miss(4, 6);
        assert_eq!(case.message(0, 7, 4), Inconclusive, "{model}");
        assert_eq!(case.message(0, 8, 2), Violated, "{model}");
        assert_eq!(case.message(0, 9, 7), Satisfied, "{model}");
        let unit = if model == "steps" { "" } else { " s" };
        let mut case = Case::new(model, &format!("stable(a.x > 5) for 2{unit}"));
        for second in 1..4 {
            let verdict = if second < 3 { Inconclusive } else { Satisfied };
            assert_eq!(case.message(0, second, 7), verdict, "{model}");
        }
        case.miss(4, 9);
        for second in 10..13 {
            let verdict = if second < 12 { Inconclusive } else { Violated };
            assert_eq!(case.message(0, second, 1), verdict, "{model}");
        }
    }
}

/// A verdict that a message makes certain can become uncertain right after it, and again later by time alone.
#[test]
fn certainty_ends_by_time_alone() {
    let later = |case: &mut Case, second: i64| {
        case.monitor.advance(Timestamp::from_nanos(second * S));
        case.take();
        case.verdict
    };
    let mut case = Case::new("dense", "(a.x < 3) since on(b)");
    case.message(0, 1, 1);
    case.message(1, 2, 0);
    case.miss(4, 6);
    assert_eq!(case.message(1, 7, 0), Satisfied);
    assert_eq!(later(&mut case, 8), Inconclusive);
    assert_eq!(case.message(0, 9, 1), Inconclusive);
    assert_eq!(case.message(1, 10, 0), Satisfied);
    assert_eq!(later(&mut case, 11), Satisfied);
    let mut case = Case::new("dense", "a.x < 3 or once[0, 2 s] on(b)");
    case.message(0, 1, 1);
    case.miss(4, 6);
    assert_eq!(case.message(1, 7, 0), Satisfied);
    assert_eq!(later(&mut case, 9), Satisfied);
    assert_eq!(later(&mut case, 10), Inconclusive);
    assert_eq!(case.message(0, 11, 1), Satisfied);
}

#[test]
fn absorbing_error_state_stays_certain() {
    let machine = |rest: &str| {
        let text = format!(
            "topic a {{ x: int }} topic b {{ x: int }}
             machine p {{ initial u u -> v when a.x > 5 {rest} error v }}"
        );
        let mut case = Case::of(&text);
        case.message(0, 1, 3);
        assert_eq!(case.message(0, 2, 7), Violated);
        case.miss(3, 5);
        case.message(0, 6, 3)
    };
    assert_eq!(machine(""), Violated);
    assert_eq!(machine("v -> u when on(b)"), Inconclusive);
}

/// Where times are unknown, the number of messages determines their order.
#[test]
fn final_verdicts_by_message_count() {
    for (count, verdict) in [(2, Violated), (1, Inconclusive)] {
        let mut case = Case::new("steps", "historically a.x < 5");
        case.monitor.count(1);
        case.message(0, 1, 3);
        case.monitor.count(2);
        case.message(0, 2, 7);
        let now = SeenAgain::Now(Timestamp::from_nanos(3 * S));
        case.monitor.miss_from(&[TopicId(0)], UnseenFrom::Count(count), now);
        assert_eq!(case.message(0, 3, 1), verdict);
    }
}

/// Formulas without reset are certain again once the messages after the span decide them.
#[test]
fn later_messages_restore_certainty() {
    // Values of `a.x` after the span, with their verdicts.
    let cases = [
        ("a.x < 9 since a.x > 5", vec![(3, Inconclusive), (7, Satisfied), (3, Satisfied)]),
        ("a.x < 9 since a.x > 5", vec![(3, Inconclusive), (9, Satisfied), (10, Satisfied), (3, Satisfied)]),
        ("a.x > 8 since a.x == 5", vec![(3, Violated), (9, Violated), (5, Satisfied), (3, Violated)]),
        ("once a.x > 5", vec![(3, Inconclusive), (7, Satisfied), (3, Satisfied)]),
        ("historically a.x < 5", vec![(3, Inconclusive), (7, Violated), (3, Violated)]),
        ("prev(a.x) < 5", vec![(3, Inconclusive), (7, Satisfied), (3, Violated)]),
        ("a.x > 5 or a.x < 9 since a.x > 5", vec![(3, Inconclusive), (7, Satisfied)]),
    ];
    for model in ["steps", "points", "dense"] {
        for (formula, expected) in &cases {
            let mut case = Case::new(model, formula);
            case.message(0, 1, 3);
            case.message(0, 2, 4);
            case.miss(3, 5);
            let found: Vec<Verdict> =
                (0..).zip(expected).map(|(i, (x, _))| case.message(0, 6 + i, *x)).collect();
            let expected: Vec<Verdict> = expected.iter().map(|(_, verdict)| *verdict).collect();
            assert_eq!(found, expected, "{model} {formula}");
        }
    }
}

/// A property whose last verdict is certain is not inconclusive at the end, even if it depends on an
/// unbounded past.
#[test]
fn certain_verdict_after_span_is_final() {
    for model in ["steps", "points"] {
        let mut case = Case::new(model, "once on(a) or on(b)");
        case.message(1, 1, 3);
        case.miss(2, 5);
        assert!(case.monitor.is_unjudged(0), "{model}");
        assert_eq!(case.message(1, 6, 3), Satisfied, "{model}");
        assert!(!case.monitor.is_unjudged(0), "{model}");
        // The same for another span.
        case.miss(7, 8);
        assert!(case.monitor.is_unjudged(0), "{model}");
    }
}

/// Missed messages of an unrelated topic do not delay certainty.
#[test]
fn unrelated_topics_do_not_delay_certainty() {
    let verdicts = |missed: &[TopicId]| {
        let mut case = Case::of(
            "topic a { x: int } topic b { x: int } topic c { x: int } property p = once[0, 2 s] on(a)",
        );
        case.message(0, 1, 3);
        let at = |time: i64| Timestamp::from_nanos(time);
        case.monitor.advance(at(2 * S));
        case.monitor.miss(missed, at(S), SeenAgain::Open);
        case.monitor.see(&[TopicId(0)], SeenAgain::After(at(2 * S)));
        case.monitor.report_every(true);
        let mut block = Block::new(case.program.layout());
        for time in [2 * S + 1, 4 * S, 4 * S + 1] {
            block.push(TopicId(2), at(time));
        }
        let reports = case.monitor.step(&block).iter().filter(|report| report.at_event);
        reports.map(|report| report.verdict).collect::<Vec<_>>()
    };
    let certain = [Inconclusive, Inconclusive, Violated];
    assert_eq!(verdicts(&[TopicId(0)]), certain);
    assert_eq!(verdicts(&[TopicId(0), TopicId(1)]), certain);
}

/// A change between two messages after a span has its own time, even if both are in one block.
#[test]
fn change_between_messages_has_its_time() {
    let verdicts = |size: usize| {
        let text = "topic a { x: int }
            property p = historically[0, 5 s] historically[0, 5 s] once[0, 15 s] on(a)";
        let mut case = Case::of(text);
        let at = |second: i64| Timestamp::from_nanos(second * S);
        for second in [100, 150] {
            case.message(0, second, 3);
        }
        case.monitor.advance(at(325));
        case.monitor.miss(&[TopicId(0)], at(325), SeenAgain::Now(at(325)));
        let mut found = Vec::new();
        for seconds in [325, 361, 374].chunks(size) {
            let mut block = Block::new(case.program.layout());
            for second in seconds {
                block.push(TopicId(0), at(*second));
            }
            let reports = case.monitor.step(&block).iter();
            found.extend(reports.map(|report| (report.time, report.after, report.verdict)));
        }
        found
    };
    let (one, all) = (verdicts(1), verdicts(3));
    assert_eq!(one, all);
    assert!(one.contains(&(Timestamp::from_nanos(340 * S), true, Violated)), "{one:?}");
}

/// Nothing is tracked any longer.
#[test]
fn certain_property_is_not_tracked() {
    for (model, formula) in [
        ("steps", "a.x > 8 since a.x == 5"),
        ("points", "a.x > 8 since a.x == 5"),
        ("dense", "a.x > 8 since a.x == 5"),
        ("steps", "once[0, 3] a.x > 8 and (a.x < 9 since a.x == 5)"),
        ("dense", "once[0, 3 s] a.x > 8 and (a.x < 9 since a.x == 5)"),
    ] {
        let mut case = Case::new(model, formula);
        case.message(0, 1, 3);
        case.miss(2, 5);
        assert_eq!(case.monitor.uncertain().count(), 1, "{model} {formula}");
        for second in 6..16 {
            case.message(0, second, 5);
        }
        assert_eq!(case.monitor.uncertain().count(), 0, "{model} {formula}");
    }
}

/// A machine is certain again with a message that leads from every state into one.
#[test]
fn message_determines_machine_state() {
    let machine = |model: &str, body: &str| {
        let text = format!(
            "topic a {{ x: int }} topic b {{ x: int }}
             @time({model}) machine p {{ initial u {body} error v }}"
        );
        let mut case = Case::of(&text);
        case.message(0, 1, 3);
        case.miss(3, 5);
        case
    };
    for model in ["steps", "points", "dense"] {
        let mut case = machine(model, "u -> v when on(a) v -> u when on(b)");
        // Whatever the state was, it is `u` now, and `v` with the next message.
        let found = [(1, 6), (1, 7), (0, 8), (0, 9), (1, 10)].map(|(topic, at)| case.message(topic, at, 3));
        assert_eq!(found, [Satisfied, Satisfied, Violated, Violated, Satisfied], "{model}");
        assert_eq!(case.monitor.uncertain().count(), 0, "{model}");
        // It may have stopped within the span, as two transitions were enabled.
        let mut case = machine(model, "u -> v when on(a) u -> u when a.x > 3 v -> u when on(b)");
        assert_eq!([1, 1, 0].map(|topic| case.message(topic, 6, 3)), [Inconclusive; 3], "{model}");
    }
    // The time of entry matters: it is known once a message leads into the state from all others.
    let timed = "u -> w when on(a) v -> w when on(a) w -> w when on(a) w -> v after 5 s";
    let mut case = machine("dense", timed);
    assert_eq!(case.message(1, 6, 3), Inconclusive);
    assert_eq!(case.message(0, 7, 3), Satisfied);
    assert_eq!(case.message(1, 11, 3), Satisfied);
    assert_eq!(case.message(1, 13, 3), Violated);
    // A field without a message since then is unknown.
    let mut case = machine("dense", "u -> v when on(b) and a.x > 2 v -> u when on(b) and a.x <= 2");
    assert_eq!([1, 1].map(|topic| case.message(topic, 6, 3)), [Inconclusive; 2]);
    assert_eq!([0, 1].map(|topic| case.message(topic, 7, 3)), [Inconclusive, Violated]);
}
