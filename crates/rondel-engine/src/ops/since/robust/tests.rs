//! Robustness of `since` compared with its definition.

use super::*;
use proptest::prelude::*;

use crate::ops::extreme::Greatest;

fn level() -> impl Strategy<Value = f64> {
    prop_oneof![
        6 => (-5..5_i8).prop_map(f64::from),
        1 => Just(f64::INFINITY),
        1 => Just(f64::NEG_INFINITY),
    ]
}

fn bounds() -> impl Strategy<Value = (u64, Option<u64>)> {
    (0..6_u64, proptest::option::weighted(0.8, 0..8_u64))
        .prop_map(|(lower, width)| (lower, width.map(|width| lower + width)))
}

fn contains(bounds: (u64, Option<u64>), age: i64) -> bool {
    let (lower, upper) = bounds;
    age >= lower as i64 && upper.is_none_or(|upper| age <= upper as i64)
}

/// The robustness at place `g` by definition, on a grid of instants (even) and open intervals between (odd),
/// each with `p` and `q`.
fn on_grid(pieces: &[(i64, f64, f64)], now: usize, bounds: (u64, Option<u64>)) -> f64 {
    let twice = (2 * bounds.0, bounds.1.map(|upper| 2 * upper));
    let mut best = f64::NEG_INFINITY;
    for k in 0..=now {
        let (place, p, q) = pieces[k];
        if contains(twice, pieces[now].0 - place) {
            let since = pieces[k + 1..=now].iter().map(|piece| piece.1).fold(f64::INFINITY, f64::min);
            let inside = if place & 1 == 1 && k < now { p } else { f64::INFINITY };
            best = best.max(q.min(since).min(inside));
        }
        if place & 1 == 1 && k < now {
            // Up to the end of the interval, with `p` from there on.
            let (lower, upper) = twice;
            let distance = pieces[now].0 - pieces[k + 1].0;
            if distance >= lower as i64 && upper.is_none_or(|upper| distance < upper as i64) {
                let since = pieces[k + 1..=now].iter().map(|piece| piece.1).fold(f64::INFINITY, f64::min);
                best = best.max(q.min(since));
            }
        }
    }
    best
}

proptest! {
    #[test]
    fn rows_agree_with_definition(
        trace in proptest::collection::vec((0..4_i64, level(), level()), 1..80),
        bounds in bounds(),
    ) {
        let mut since = SinceRows::new(bounds.0, bounds.1, f64::NAN, 1000);
        let mut once = Greatest::new(bounds.0, bounds.1, 1000);
        let mut now = 0;
        let mut rows = Vec::new();
        for (later, p, q) in trace {
            now += later;
            rows.push((now, p, q));
            let (mut expected, mut since_then, mut greatest) = (f64::NEG_INFINITY, f64::INFINITY, f64::NEG_INFINITY);
            for &(stamp, p, q) in rows.iter().rev() {
                if contains(bounds, now - stamp) {
                    expected = expected.max(q.min(since_then));
                    greatest = greatest.max(q);
                }
                since_then = since_then.min(p);
            }
            prop_assert_eq!(since.row(now, p, q), expected);
            once.push(now, q);
            prop_assert_eq!(once.at_or(now, f64::NEG_INFINITY, f64::NAN), greatest);
        }
    }

    #[test]
    fn dense_time_agrees_with_definition(
        trace in proptest::collection::vec((0..7_i64, [level(), level()], [level(), level()]), 1..30),
        bounds in bounds(),
        hold in any::<bool>(),
    ) {
        let mut since = DenseSince::new(bounds.0, bounds.1, f64::NAN, 1000);
        // All instants and intervals up to some time after the last event.
        let (mut pieces, mut events, mut now) = (Vec::new(), trace.into_iter().peekable(), 0);
        let (mut time, mut levels) = (0, None);
        let mut held = f64::NAN;
        for _ in 0..400 {
            let mut here = false;
            while let Some((later, p, q)) = events.next_if(|event| now + event.0 == time) {
                // Most signals hold their values: the instant equals the interval after it.
                let (p, q) = if hold { ([p[1]; 2], [q[1]; 2]) } else { (p, q) };
                now += later;
                here = true;
                pieces.push((2 * time, p[0], q[0]));
                let [at, after] = since.step(time, p, q);
                prop_assert_eq!(at, on_grid(&pieces, pieces.len() - 1, bounds), "at {}", time);
                levels = Some((p[1], q[1]));
                held = after;
            }
            let Some((p, q)) = levels else { time += 1; continue };
            if !here {
                pieces.push((2 * time, p, q));
                let expected = on_grid(&pieces, pieces.len() - 1, bounds);
                if since.next_change() == Some(time) {
                    let [at, after] = since.step(time, [p; 2], [q; 2]);
                    prop_assert_eq!(at, expected, "deadline at {}", time);
                    held = after;
                } else {
                    prop_assert_eq!(held, expected, "between time points, at {}", time);
                }
            }
            pieces.push((2 * time + 1, p, q));
            prop_assert_eq!(held, on_grid(&pieces, pieces.len() - 1, bounds), "after {}", time);
            time += 1;
            if events.peek().is_none() && time > now + 20 { break; }
        }
    }
}

#[test]
fn overflow_is_unknown() {
    let mut since = SinceRows::new(0, Some(5), f64::NAN, 3);
    let values: Vec<f64> = (0..5).map(|t| since.row(t, f64::INFINITY, -t as f64)).collect();
    assert_eq!(values[..3], [0.0, 0.0, 0.0]);
    assert!(values[3..].iter().all(|value| value.is_nan()));
    assert_eq!(since.dropped(), 2);
    assert!(since.row(6, f64::INFINITY, -9.0).is_nan());
    assert_eq!(since.row(8, f64::INFINITY, -9.0), -3.0);
}

#[test]
fn constant_signal_has_no_deadlines() {
    for (lower, upper) in [(0, Some(2)), (1, Some(3)), (3, Some(3)), (2, None)] {
        let mut since = DenseSince::new(lower, upper, f64::NAN, 10);
        since.step(0, [5.0; 2], [1.0; 2]);
        since.step(4, [3.0, 6.0], [2.0, 4.0]);
        let mut count = 0;
        while let Some(due) = since.next_change().filter(|_| count < 20) {
            since.step(due, [6.0; 2], [4.0; 2]);
            count += 1;
        }
        assert!(count < 5, "{count} with {lower} and {upper:?}");
    }
}

/// A constant signal, however long: it causes few time points of its own and few pieces.
#[test]
fn long_gap_causes_few_time_points() {
    let infinite = f64::INFINITY;
    for (lower, upper) in [(1, Some(100)), (1, None), (7, Some(7)), (40, Some(90))] {
        for (p, q) in [(1.0, infinite), (1.0, -infinite), (2.0, 1.0), (infinite, 1.0), (-1.0, 3.0)] {
            let mut since = DenseSince::new(lower, upper, f64::NAN, 1000);
            let mut points = 0;
            for (message, at) in [(0, [3.0, infinite]), (10, [p, q]), (1_000_000, [p, q])] {
                while let Some(due) = since.next_change().filter(|&due| due < message && points < 100) {
                    since.step(due, [p; 2], [q; 2]);
                    points += 1;
                }
                since.step(message, [at[0]; 2], [at[1]; 2]);
            }
            assert!(points < 12, "{points} with {lower}, {upper:?}, {p}, {q}");
        }
    }
}

#[test]
fn foreign_time_points_add_no_pieces() {
    let mut since = DenseSince::new(1_000_000, None, f64::NAN, 1000);
    for time in 0..100 {
        since.step(time, [1.0; 2], [f64::INFINITY; 2]);
        assert!(since.waiting.len() <= 2 && since.least.list.len() <= 2);
    }
}

#[test]
fn extreme_times_do_not_panic() {
    for (lower, upper) in [(0, Some(u64::MAX)), (u64::MAX, None), (1, Some(2))] {
        let mut dense = DenseSince::new(lower, upper, f64::NAN, 10);
        let mut rows = SinceRows::new(lower, upper, f64::NAN, 10);
        for time in [i64::MIN, -1, 5, 3, i64::MAX] {
            dense.step(time, [1.0; 2], [2.0; 2]);
            rows.row(time, 1.0, 2.0);
            dense.next_change();
        }
    }
}
