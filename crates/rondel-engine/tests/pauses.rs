//! Machines with transitions by time alone, over pauses of any length: work is bounded, and the state known
//! afterwards is right.

#![allow(clippy::panic, clippy::unwrap_used)]

use std::sync::Arc;

use rondel_engine::{Monitor, Program};
use rondel_event::{Block, Timestamp, TopicId, Verdict};
use rondel_spec::parse;

const MS: i64 = 1_000_000;
const HOUR: i64 = 3_600_000 * MS;

/// Verdicts of the first property, with their times in nanoseconds.
type Reports = Vec<(Verdict, i64)>;

fn monitor(text: &str) -> Monitor {
    let text = format!("topic go topic stop {text}");
    let outcome = parse(&text);
    let spec = outcome.spec.clone().unwrap_or_else(|| panic!("{}", outcome.render("", &text, false)));
    Monitor::new(Arc::new(Program::compile(&spec).unwrap()))
}

/// Reports for messages on `go` (0) and `stop` (1) and for time up to `until`, equal for all block sizes; and
/// the number of leaps.
fn run(text: &str, messages: &[(u32, i64)], until: i64) -> (Reports, u64) {
    let mut all = None;
    for cut in [1, 2, 64] {
        let mut monitor = monitor(text);
        let mut block = Block::new(monitor.program().layout());
        let mut reports = Vec::new();
        for messages in messages.chunks(cut) {
            block.clear();
            for &(topic, time) in messages {
                block.push(TopicId(topic), Timestamp::from_nanos(time));
            }
            reports.extend(monitor.step(&block).to_vec());
        }
        reports.extend(monitor.advance(Timestamp::from_nanos(until)).to_vec());
        let reports: Reports =
            reports.iter().filter(|r| r.property == 0).map(|r| (r.verdict, r.time.as_nanos())).collect();
        assert!(reports.len() < 100_000, "{}", reports.len());
        let found = (reports, monitor.leaps());
        assert!(all.as_ref().is_none_or(|all| *all == found), "cut {cut}");
        all = Some(found);
    }
    all.unwrap()
}

const BLINKER: &str = "machine m { initial a a -> b after 1 ms b -> a after 1 ms error b }";

#[test]
fn violating_cycle_leaps_to_right_state() {
    let (reports, leaps) = run(BLINKER, &[(0, 0), (0, 6 * HOUR)], 6 * HOUR + 10 * MS);
    assert_eq!(leaps, 1);
    assert!(reports.len() < 10_100, "{}", reports.len());
    let at = reports.iter().position(|(verdict, _)| *verdict == Verdict::Inconclusive).unwrap();
    // Before and after the leap the verdict alternates every millisecond.
    for reports in [&reports[..at], &reports[at + 1..]] {
        for pair in reports.windows(2) {
            assert_eq!(pair[1].1 - pair[0].1, MS);
            assert_ne!(pair[0].0, pair[1].0);
        }
        for &(verdict, time) in reports {
            assert_eq!(verdict == Verdict::Violated, time / MS % 2 == 1, "at {time}");
        }
    }
    assert!(reports[at + 1].1 > 6 * HOUR - 10 * MS);
    assert_eq!(reports.last().unwrap().1, 6 * HOUR + 9 * MS);
}

#[test]
fn pauses_are_counted_separately() {
    let short: Vec<(u32, i64)> = (0..20).map(|i| (0, i * 1_000 * MS)).collect();
    let (reports, leaps) = run(BLINKER, &short, 20_000 * MS);
    assert_eq!((reports.len(), leaps), (20_000, 0));
    assert!(reports.iter().all(|(verdict, _)| *verdict != Verdict::Inconclusive));
    assert_eq!(run(BLINKER, &[(0, 0), (0, HOUR), (0, 2 * HOUR)], 3 * HOUR).1, 3);
}

#[test]
fn self_loop_causes_no_steps_and_is_exact() {
    let epoch = 1_732_250_000_000 * MS;
    let machine =
        "machine m { initial w w -> w after 100 ms w -> late when on(stop) after 40 ms error late }";
    for (after, is_late) in [(30, false), (40, false), (50, true), (100, true), (101, false), (151, true)] {
        let (reports, leaps) = run(machine, &[(0, 0), (1, epoch + after * MS)], epoch + 200 * MS);
        assert_eq!((reports.last().unwrap().0 == Verdict::Violated, leaps), (is_late, 0), "{after}");
    }
    let beat = "machine m { initial w w -> w after 100 ms } property p = in(m, w)";
    let (reports, leaps) = run(beat, &[(0, 0), (0, epoch)], epoch + HOUR);
    assert_eq!((reports, leaps), (vec![(Verdict::Satisfied, 0)], 0));
    // As without the self-loop: the last entry determines when the next bound expires.
    let machine =
        "machine m { initial w w -> w after 100 ms w -> x when on(stop) x -> late after 30 ms error late }";
    let (reports, _) = run(machine, &[(0, 0), (1, epoch)], epoch + HOUR);
    assert_eq!(reports[1..], [(Verdict::Violated, epoch + 30 * MS)]);
}

#[test]
fn unreported_cycle_is_exact() {
    let machine =
        "machine m { initial a a -> b after 3 ms b -> a after 4 ms b -> hit when on(stop) error hit }";
    for offset in 0..14 {
        let time = (1_000 * HOUR / (7 * MS) * 7 + offset) * MS;
        let (reports, leaps) = run(machine, &[(0, 0), (1, time)], time + MS);
        // In `b` from just after 3 ms of every seven on, until their end.
        let is_hit = time / MS % 7 > 3 || time / MS % 7 == 0;
        assert_eq!(reports.last().unwrap().0 == Verdict::Violated, is_hit, "{}", time / MS % 7);
        assert_eq!(leaps, 0);
    }
}

#[test]
fn assigned_variables_are_unknown_after_leap() {
    let machine = "machine m { initial a var n: int = 0 a -> a after 1 ms do n := n + 1
                   a -> b when on(stop) and n > 5 error b }";
    let (reports, leaps) = run(machine, &[(0, 0), (1, HOUR)], HOUR + MS);
    // The guard depends on the lost variable, so the state stays unknown.
    assert_eq!((reports.last().unwrap().0, leaps), (Verdict::Inconclusive, 1));
    let machine =
        "machine m { initial a var n: int = 0 a -> a after 1 ms do n := n + 1 error b a -> b when on(stop) }";
    let (reports, leaps) = run(machine, &[(0, 0), (1, HOUR)], HOUR + MS);
    assert_eq!((reports.last().unwrap(), leaps), (&(Verdict::Violated, HOUR), 1));
}

#[test]
fn guarded_cycle_leaps() {
    let machine = "machine m { initial a a -> b when once on(go) after 1 ms b -> a after 1 ms error b }";
    let (reports, leaps) = run(machine, &[(0, 0), (0, 6 * HOUR)], 6 * HOUR + MS);
    assert_eq!(leaps, 1);
    assert!(reports.len() < 10_100);
    assert_ne!(reports.last().unwrap().0, Verdict::Inconclusive);
}

#[test]
fn formulas_over_leap_are_uncertain() {
    let text = "property p = once[0, 1 h] not in(m, a)
                machine m { initial a a -> b after 1 ms b -> a after 1 ms }";
    let (reports, leaps) = run(text, &[(0, 0), (0, 6 * HOUR)], 6 * HOUR);
    assert_eq!(leaps, 1);
    // Known to have held within the last hour; during the leap this stays known for an hour.
    assert!(
        reports.iter().all(|(verdict, time)| *verdict != Verdict::Violated || *time <= MS),
        "{reports:?}"
    );
}

#[test]
fn instances_and_points_leap() {
    let text = "topic x { id: int } machine m for each id in x.id { initial a a -> b after 1 ms b -> a after 1 ms error b }";
    let mut monitor = monitor(text);
    let projections = monitor.program().projections().to_vec();
    let slot = projections[2].fields[0].slot;
    let mut block = Block::new(monitor.program().layout());
    for (id, time) in [(1, 0), (2, 0), (1, 6 * HOUR)] {
        let row = block.push(TopicId(2), Timestamp::from_nanos(time));
        let rondel_event::Slot::Int(column) = slot else { panic!() };
        block.set_int(column, row, id);
    }
    let reports = monitor.step(&block).len();
    assert!(reports < 50_000, "{reports}");
    assert_eq!(monitor.leaps(), 2);

    let points = format!("@time(points) {BLINKER}");
    for odd in 0..2 {
        let time = 1_000_000 * HOUR + odd * MS + MS / 2;
        let (reports, leaps) = run(&points, &[(0, 0), (0, time)], time);
        assert_eq!((reports.last().unwrap().0 == Verdict::Violated, leaps), (odd == 1, 0));
    }
}
