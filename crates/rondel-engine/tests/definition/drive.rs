//! Feeds a trace to the engine, and converts its reports to the form of the definitions.

use std::sync::Arc;

use proptest::prelude::*;
use proptest::test_runner::FileFailurePersistence;
use rondel_engine::{Monitor, Program, Report};
use rondel_event::{Block, Timestamp, Verdict};
use rondel_spec::Spec;

use super::outcome::{Spot, outcomes};
use super::timed::{Case, Delivery};
use super::{Timed, write_timed};

/// A report, and the input that caused it.
#[derive(Clone, Debug, PartialEq)]
pub struct Emitted {
    pub report: Report,
    /// The event at which it was emitted.
    pub event: Option<usize>,
    /// The time up to which the monitor had advanced.
    pub known: i64,
}

/// `RONDEL_CASES` multiplies the number of cases.
pub fn config(cases: u32) -> ProptestConfig {
    let times = std::env::var("RONDEL_CASES").ok().and_then(|times| times.parse().ok()).unwrap_or(1);
    let kept = FileFailurePersistence::Direct("proptest-regressions/definitions.txt");
    ProptestConfig {
        cases: cases.saturating_mul(times),
        failure_persistence: Some(Box::new(kept)),
        max_shrink_iters: 20_000,
        max_shrink_time: 15_000,
        ..ProptestConfig::default()
    }
}

/// Compares every property without parameters, at and between all time points.
pub fn agree(case: &Case) -> Result<(), TestCaseError> {
    let Case { spec, trace, now, delivery } = case;
    let emitted = drive(spec, trace, *now, delivery);
    for (p, spots) in outcomes(spec, trace, *now).iter().enumerate() {
        let found = signal(&emitted, p, trace, *now);
        prop_assert_eq!(found, expected(spots), "{:?}", spec.properties[p].formula);
    }
    Ok(())
}

/// Limit of the times that the engine computes with; later ones are clamped to it.
pub const FARTHEST: i64 = i64::MAX / 2 - 1;

/// As [`agree`], for times beyond the limit of the engine: it counts them, and agrees with the definitions
/// over the clamped trace.
pub fn agree_at_the_ends(case: &Case) -> Result<(), TestCaseError> {
    let Case { spec, trace, now, delivery } = case;
    let within = |time: i64| time.clamp(-FARTHEST, FARTHEST);
    // A latency is a difference, unaffected by clamping.
    let arrival = |timed: &Timed| {
        timed.arrival.map(|arrival| within(timed.time).saturating_add(arrival.saturating_sub(timed.time)))
    };
    let moved = |timed: &Timed| Timed { time: within(timed.time), arrival: arrival(timed), ..timed.clone() };
    let moved: Vec<Timed> = trace.iter().map(moved).collect();
    let mut emitted = drive(spec, trace, *now, delivery);
    for Emitted { report, .. } in &mut emitted {
        report.time = Timestamp::from_nanos(within(report.time.as_nanos()));
    }
    for (p, spots) in outcomes(spec, &moved, within(*now)).iter().enumerate() {
        let found = signal(&emitted, p, &moved, within(*now));
        prop_assert_eq!(found, expected(spots), "{:?}", spec.properties[p].formula);
    }
    Ok(())
}

/// All reports in order, with a verdict at every event.
pub fn drive(spec: &Spec, trace: &[Timed], now: i64, delivery: &Delivery) -> Vec<Emitted> {
    let program = Arc::new(Program::compile(spec).unwrap());
    let mut block = Block::new(program.layout());
    let mut monitor = Monitor::new(program.clone());
    monitor.report_every(true);
    let mut emitted = Vec::new();
    let mut done = 0;
    let mut take = |reports: &[Report], first: usize, known: i64| {
        let given_at = |report: &Report| Emitted {
            report: *report,
            event: report.row.map(|row| first + usize::from(row)),
            known,
        };
        emitted.extend(reports.iter().map(given_at));
    };
    for (&len, advance) in delivery.cuts.iter().cycle().zip(delivery.advances.iter().cycle()) {
        if done == trace.len() {
            break;
        }
        let events = &trace[done..trace.len().min(done + len)];
        if let Some(before) = done.checked_sub(1) {
            for to in between(trace[before].time, events[0].time, *advance) {
                take(monitor.advance(Timestamp::from_nanos(to)), done, to);
            }
        }
        block.clear();
        for timed in events {
            write_timed(&mut block, program.projections(), timed);
        }
        take(monitor.step(&block), done, events[events.len() - 1].time);
        done += events.len();
        if advance % 2 == 0 {
            // A snapshot in between makes no difference.
            monitor = Monitor::restore(program.clone(), &monitor.snapshot()).unwrap();
            monitor.report_every(true);
        }
    }
    if now > trace.last().map_or(i64::MIN, |last| last.time) {
        take(monitor.advance(Timestamp::from_nanos(now)), done, now);
    }
    take(monitor.end(), done, now);
    emitted
}

/// Times to advance to between two events: none, the later one, or parts of the interval.
fn between(from: i64, to: i64, how: u8) -> Vec<i64> {
    let part = |n: i128| (i128::from(from) + (i128::from(to) - i128::from(from)) * n / 4) as i64;
    match how {
        0..=2 => vec![],
        3 => vec![to],
        4 => vec![part(2)],
        5 => vec![part(1), part(2), part(3), to],
        6 => vec![from, to.saturating_sub(1).max(from)],
        _ => vec![from.saturating_add(1).min(to)],
    }
}

/// The verdict at every event, and all changes.
type Signal = (Vec<Verdict>, Vec<(i64, Verdict)>);

/// Reports on past formulas: the verdict at every event, and each change in between. Verdicts on empty
/// intervals are ignored.
pub fn signal(emitted: &[Emitted], property: usize, trace: &[Timed], now: i64) -> Signal {
    let mut at_events = Vec::new();
    let mut changes: Vec<(i64, Verdict)> = Vec::new();
    let of_property =
        emitted.iter().filter(|g| g.report.property as usize == property && g.report.about.is_none());
    for Emitted { report, event, .. } in of_property {
        let after = match *event {
            None => false,
            Some(i) if i == at_events.len() => {
                at_events.push(report.verdict);
                false
            }
            Some(i) => {
                assert_eq!(i + 1, at_events.len(), "not in the order of the events: {report:?}");
                true
            }
        };
        let time = report.time.as_nanos();
        if after && trace.get(at_events.len()).map_or(now, |next| next.time) <= time {
            continue;
        }
        if changes.last().is_none_or(|(_, last)| *last != report.verdict) {
            changes.push((time, report.verdict));
        }
    }
    (at_events, changes)
}

/// Compares every property at every event, including verdicts that are decided later. Verdicts undecided at
/// the end are inconclusive.
pub fn agree_in_time(case: &Case) -> Result<(), TestCaseError> {
    let Case { spec, trace, now, delivery } = case;
    let emitted = drive(spec, trace, *now, delivery);
    // Verdicts on two events of the same time have no defined order.
    let sorted = |mut all: Vec<(i64, &'static str)>| {
        all.sort_unstable();
        all
    };
    for (p, spots) in outcomes(spec, trace, *now).iter().enumerate() {
        let of_property = emitted.iter().map(|emitted| &emitted.report).filter(|r| r.property as usize == p);
        let about = |r: &Report| (r.about.unwrap_or(r.time).as_nanos(), r.verdict.as_str());
        let at_events = spots.iter().filter(|spot| spot.event.is_some());
        let known = |spot: &Spot| (spot.time, spot.verdict.unwrap_or(Verdict::Inconclusive).as_str());
        let (found, expected) =
            (sorted(of_property.map(about).collect()), sorted(at_events.map(known).collect()));
        prop_assert_eq!(found, expected, "{:?}", spec.properties[p].formula);
    }
    Ok(())
}

/// The [`signal`] of the definitions; undecided verdicts end it.
pub fn expected(spots: &[Spot]) -> Signal {
    let known = |spot: &Spot| spot.verdict.unwrap_or(Verdict::Inconclusive);
    let at_events = spots.iter().filter(|spot| spot.event.is_some()).map(known).collect();
    let changes = super::outcome::changes(spots).iter().map(|spot| (spot.time, known(spot))).collect();
    (at_events, changes)
}
