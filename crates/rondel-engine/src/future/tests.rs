//! Verdicts are those of the definitions, and are emitted as soon as they are certain.

#![allow(clippy::unwrap_used, clippy::panic)]

use proptest::collection::vec;
use proptest::prelude::*;
use proptest::test_runner::FileFailurePersistence;
use rondel_event::Verdict;
use rondel_spec::{Bounds, TimeModel};

use super::key::{self, Key};
use super::lookahead::{Known, Lookahead};
use super::pending::{Decision, PastTruth, Pending, Scratch};
use super::plan::{Formula, Plan};

const PASTS: usize = 3;

/// Truths as numbers: 0 false, 1 unknown, 2 true. A pair is the truth in the worst and in the best future.
type Pair = [u8; 2];

/// Place of the trace: its coordinate, the step at which it becomes known, and the pasts there. In points a
/// place without pasts has no event.
#[derive(Clone, Debug)]
struct Spot {
    axis: i128,
    pasts: Option<[u8; PASTS]>,
    /// Repeats the place before, and shows that no other one has its time.
    is_close: bool,
    /// Another place may have the same time.
    is_event: bool,
}

/// Evaluates the definitions at every spot, with only the first `seen` of them known.
fn evaluate(nodes: &[Formula], time: TimeModel, spots: &[Spot], seen: usize) -> Vec<Vec<Pair>> {
    let unit = if time == TimeModel::Dense { 2 } else { 1 };
    let mut all: Vec<Vec<Pair>> = Vec::new();
    // No further place is at or before this coordinate.
    let closed = match (time, spots[..seen].last()) {
        (_, None) => i128::MIN,
        (TimeModel::Steps, Some(spot)) => spot.axis,
        (_, Some(spot)) => spot.axis - i128::from(spot.is_event),
    };
    let real = |i: usize| spots[i].pasts.is_some();
    for node in nodes {
        let at = |x: u32, i: usize| all[x as usize][i];
        let not = |[a, b]: Pair| [2 - b, 2 - a];
        let and = |a: Pair, b: Pair| [a[0].min(b[0]), a[1].min(b[1])];
        let or = |a: Pair, b: Pair| [a[0].max(b[0]), a[1].max(b[1])];
        let until = |i: usize, lower: u64, upper: u64, left: Option<u32>, right: u32| -> Pair {
            let (from, to) =
                (spots[i].axis + unit * i128::from(lower), spots[i].axis + unit * i128::from(upper));
            let (mut result, mut held): (Pair, Pair) = ([0, 0], [2, 2]);
            if lower > upper {
                return result;
            }
            for j in (i..seen).filter(|&j| real(j)) {
                if from <= spots[j].axis && spots[j].axis <= to {
                    // In an open interval part of it lies before the witness.
                    let is_within =
                        time == TimeModel::Dense && spots[j].axis & 1 == 1 && !(i == j && lower == 0);
                    let part = left.filter(|_| is_within).map_or([2, 2], |left| at(left, j));
                    result = or(result, and(at(right, j), and(held, part)));
                }
                held = left.map_or(held, |left| and(held, at(left, j)));
            }
            if to > closed { or(result, [0, held[1]]) } else { result }
        };
        let column = (0..seen).map(|i| {
            if !real(i) {
                return [0, 0];
            }
            match *node {
                Formula::Past(p) => [spots[i].pasts.unwrap()[p as usize]; 2],
                Formula::Not(x) => not(at(x, i)),
                Formula::And(x, y) => and(at(x, i), at(y, i)),
                Formula::Or(x, y) => or(at(x, i), at(y, i)),
                Formula::Definitely(x) => at(x, i).map(|v| if v == 2 { 2 } else { 0 }),
                Formula::If(c, x, y) => choose(at(c, i), at(x, i), at(y, i)),
                Formula::Same(x, y) => choose(at(x, i), at(y, i), not(at(y, i))),
                Formula::Next(x) if time == TimeModel::Points => {
                    (i + 1..seen).find(|&j| real(j)).map_or([0, 2], |j| at(x, j))
                }
                Formula::Next(x) => until(i, 1, 1, None, x),
                Formula::Until { lower, upper, left, right } => until(i, lower, upper, left, right),
                Formula::External(_) => unreachable!("random formulas have none"),
            }
        });
        let column = column.collect();
        all.push(column);
    }
    all
}

fn choose(c: Pair, x: Pair, y: Pair) -> Pair {
    // Certainly true and certainly false, in the worst and in the best case.
    let yes = |v: Pair, side: usize| v[side] == 2;
    let no = |v: Pair, side: usize| v[1 - side] == 0;
    let is = |side| yes(c, side) && yes(x, side) || no(c, side) && yes(y, side);
    let isnt = |side| yes(c, side) && no(x, side) || no(c, side) && no(y, side);
    let side = |side: usize| {
        if is(side) {
            2
        } else if isnt(1 - side) {
            0
        } else {
            1
        }
    };
    [side(0), side(1)]
}

fn verdict(v: u8) -> Verdict {
    [Verdict::Violated, Verdict::Inconclusive, Verdict::Satisfied][v as usize]
}

/// Returns the verdict of every spot, and the spot at which it becomes certain.
fn expected(nodes: &[Formula], time: TimeModel, spots: &[Spot]) -> Vec<Option<(Verdict, usize)>> {
    let mut found = vec![None; spots.len()];
    for seen in 1..=spots.len() {
        let all = evaluate(nodes, time, spots, seen);
        for (i, [worst, best]) in all.last().unwrap().iter().enumerate() {
            match &mut found[i] {
                Some((given, _)) => assert!(worst == best && verdict(*worst) == *given),
                none if worst == best => *none = Some((verdict(*worst), seen - 1)),
                _ => {}
            }
        }
    }
    found
}

fn truth(v: u8) -> PastTruth {
    [0b00, 0b10, 0b11][v as usize]
}

fn formula() -> impl Strategy<Value = Vec<Formula>> {
    let node = (0..16_u8, any::<[u16; 3]>(), 0..4_u64, 0..4_u64);
    vec(node, 1..9).prop_map(|choices| {
        let mut nodes: Vec<Formula> = (0..PASTS as u32).map(Formula::Past).collect();
        for (kind, picks, lower, width) in choices {
            let pick = |i: usize| {
                // Operands are mostly the latest nodes, so that formulas are deep.
                let n = nodes.len() as u32;
                let r = u32::from(picks[i]);
                if r % 3 == 0 { n - 1 } else { r % n }
            };
            let (x, y, z) = (pick(0), pick(1), pick(2));
            let upper = (lower + width).saturating_sub(u64::from(picks[2] % 9 == 0));
            nodes.push(match kind {
                0 => Formula::Not(x),
                1 | 2 => Formula::And(x, y),
                3 | 4 => Formula::Or(x, y),
                5 => Formula::Definitely(x),
                6 => Formula::If(x, y, z),
                7 => Formula::Same(x, y),
                8 => Formula::Next(x),
                9..12 => Formula::Until { lower, upper, left: None, right: x },
                _ => Formula::Until { lower, upper, left: Some(x), right: y },
            });
        }
        nodes
    })
}

type TimePoint = (u8, [u8; PASTS], [u8; PASTS]);

fn points() -> impl Strategy<Value = Vec<TimePoint>> {
    // Unknown is rare, and most gaps are short.
    let value = || prop_oneof![4 => Just(0_u8), 1 => Just(1), 3 => Just(2)];
    let values = move || [value(), value(), value()];
    let gap = prop_oneof![2 => Just(0_u8), 4 => Just(1), 2 => Just(2), 1 => 3..9_u8];
    vec((gap, values(), values()), 1..10)
}

fn check(
    nodes: &[Formula],
    spots: &[Spot],
    decisions: &[Decision],
    place: impl Fn(&Spot, usize) -> (Key, Key),
    certain: impl Fn(&Spot) -> i128,
    time: TimeModel,
    left: Option<Key>,
) {
    let expected = expected(nodes, time, spots);
    let places: Vec<(Key, Key)> = spots.iter().enumerate().map(|(i, spot)| place(spot, i)).collect();
    let mut given: Vec<Option<Verdict>> = vec![None; spots.len()];
    for (i, spot) in spots.iter().enumerate() {
        if spot.pasts.is_none() || spot.is_close {
            continue;
        }
        let about: Vec<&Decision> =
            decisions.iter().filter(|d| d.from <= places[i].0 && places[i].1 <= d.to).collect();
        match (expected[i], &about[..]) {
            (None, []) => {}
            (Some((verdict, at)), [decision]) => {
                assert_eq!(verdict, decision.verdict, "about {i}");
                let (should, is) = (certain(&spots[at]), decision.certain);
                if decision.from == places[i].0 {
                    // In continuous time, a verdict that becomes certain within an open interval may count as
                    // certain from the instant before it.
                    let is = key::axis(is);
                    let is_begun = time == TimeModel::Dense && should & 1 == 1 && is == should - 1;
                    assert!(should == is || is_begun, "about {i}: certain at {should}, not {is}");
                } else {
                    assert!(should >= key::axis(is));
                }
            }
            (expected, found) => panic!("about {i}: {expected:?}, not {found:?}"),
        }
    }
    // Changes follow their definition.
    let mut order: Vec<(Key, Key)> = Vec::new();
    for d in decisions {
        order.push((d.certain, d.from));
        let here = places.iter().position(|p| p.0 == d.from).unwrap();
        let earlier = given[..here].iter().rev().find_map(|v| *v);
        assert_eq!(d.changed, earlier != Some(d.verdict), "changed about {here}");
        for (place, given) in places.iter().zip(&mut given) {
            if d.from <= place.0 && place.1 <= d.to {
                *given = Some(d.verdict);
            }
        }
    }
    assert!(order.is_sorted(), "not in order: {decisions:?}");
    let oldest =
        (0..spots.len()).find(|&i| spots[i].pasts.is_some() && !spots[i].is_close && expected[i].is_none());
    assert_eq!(oldest.map(|i| places[i].0), left);
}

fn config(cases: u32) -> ProptestConfig {
    let kept = FileFailurePersistence::Direct("proptest-regressions/future.txt");
    ProptestConfig {
        cases,
        failure_persistence: Some(Box::new(kept)),
        max_shrink_iters: 20_000,
        ..ProptestConfig::default()
    }
}

proptest! {
    #![proptest_config(config(1500))]

    #[test]
    fn steps_agree_with_definitions(nodes in formula(), points in points()) {
        let plan = Plan::new(TimeModel::Steps, &nodes).unwrap();
        let mut pending = Pending::new(&plan, Pending::LIMIT);
        let (mut scratch, mut out, mut spots) = (Scratch::default(), Vec::new(), Vec::new());
        for (i, (_, pasts, _)) in points.iter().enumerate() {
            pending.step(&plan, i as u64, i as i64, &pasts.map(truth), &mut scratch, &mut out);
            spots.push(Spot { axis: i as i128, pasts: Some(*pasts), is_close: false, is_event: true });
        }
        let place = |spot: &Spot, _| (key::first(spot.axis), key::last(spot.axis));
        let left = pending.oldest().map(|x| x.0);
        check(&nodes, &spots, &out, place, |spot| spot.axis, TimeModel::Steps, left);
        prop_assert_eq!(pending.lost(), 0);
    }

    #[test]
    fn points_agree_with_definitions(nodes in formula(), points in points(), advance in any::<u16>()) {
        let plan = Plan::new(TimeModel::Points, &nodes).unwrap();
        let mut pending = Pending::new(&plan, Pending::LIMIT);
        let (mut scratch, mut out, mut spots) = (Scratch::default(), Vec::new(), Vec::new());
        let (mut keys, mut time, mut number) = (Vec::new(), 0_i128, 0);
        for (i, (gap, pasts, _)) in points.iter().enumerate() {
            number = if *gap == 0 && i > 0 { number + 1 } else { 0 };
            // An explicit advance makes verdicts certain at its own time.
            if advance >> i & 1 == 1 && *gap > 1 && i > 0 {
                let now = time + i128::from(*gap) - 1;
                pending.advance(&plan, now as i64, &mut scratch, &mut out);
                spots.push(Spot { axis: now - 1, pasts: None, is_close: true, is_event: false });
                keys.push((key::last(now - 1), key::last(now - 1)));
            } else if *gap > 0 && i > 0 {
                spots.push(Spot { axis: time + i128::from(*gap) - 1, pasts: None, is_close: true, is_event: false });
                keys.push((key::last(spots.last().unwrap().axis), Key::MAX));
            }
            time += i128::from(*gap);
            pending.point(&plan, time as i64, &pasts.map(truth), &mut scratch, &mut out);
            spots.push(Spot { axis: time, pasts: Some(*pasts), is_close: false, is_event: true });
            keys.push((key::nth(time, number), key::nth(time, number)));
        }
        // Verdicts certain by time alone are certain at the event that reveals them.
        let certain = |spot: &Spot| spot.axis + i128::from(spot.is_close);
        let left = pending.oldest().map(|x| x.0);
        check(&nodes, &spots, &out, |_, i| keys[i], certain, TimeModel::Points, left);
    }

    #[test]
    fn dense_time_agrees_with_definitions(nodes in formula(), points in points(), rest in 0..10_i64, advance in any::<u16>()) {
        check_dense(nodes, &points, rest, advance);
    }
}

/// Returns the known truth between these bounds.
fn known([worst, best]: Pair) -> Known {
    [2, 1].map(|least| ((worst >= least) == (best >= least)).then_some(best >= least))
}

proptest! {
    #![proptest_config(config(3000))]

    /// The value of an operator at one place, computed from its operands alone, equals the definitions.
    #[test]
    fn lookahead_agrees_with_definitions(nodes in formula(), points in points(), model in 0..3_usize, rest in 0..5_i128, start in any::<u16>()) {
        let time = [TimeModel::Steps, TimeModel::Points, TimeModel::Dense][model];
        let is_dense = time == TimeModel::Dense;
        let nodes: Vec<Formula> = nodes
            .into_iter()
            .map(|node| if let Formula::Next(x) = node { Formula::Not(x) } else { node })
            .collect();
        let mut spots: Vec<Spot> = Vec::new();
        let mut at = 0_i128;
        let pass = |spots: &mut Vec<Spot>, to: i128, after: [u8; PASTS]| {
            let from = spots.last().map_or(to, |spot| spot.axis + 1);
            spots.extend((from..to).map(|axis| Spot { axis, pasts: Some(after), is_close: false, is_event: false }));
        };
        for (i, (gap, pasts, _)) in points.iter().enumerate() {
            at += match time {
                _ if i == 0 => 0,
                TimeModel::Steps => 1,
                TimeModel::Points => i128::from(*gap),
                TimeModel::Dense => 2 * i128::from(*gap),
            };
            if is_dense && i > 0 {
                pass(&mut spots, at, points[i - 1].2);
            }
            spots.push(Spot { axis: at, pasts: Some(*pasts), is_close: false, is_event: time != TimeModel::Steps });
        }
        let seen = spots.len();
        match time {
            TimeModel::Dense => pass(&mut spots, at + rest, points.last().unwrap().2),
            TimeModel::Points if rest > 0 => {
                spots.push(Spot { axis: at + rest, pasts: None, is_close: true, is_event: false });
            }
            _ => {}
        }
        let all = evaluate(&nodes, time, &spots, spots.len());
        let start = usize::from(start) % seen;
        for (i, node) in nodes.iter().enumerate() {
            let Formula::Until { lower, upper, left, right } = *node else { continue };
            if lower > upper {
                continue;
            }
            let bounds = Bounds { lower, upper: Some(upper) };
            let mut whole = Lookahead::new(time, bounds, left.is_some());
            // Updated only where an operand changes, and where the bounds begin.
            let mut sparse = whole.clone();
            let (mut before, mut is_within) = (None, false);
            let from = spots[start].axis + if is_dense { 2 } else { 1 } * i128::from(lower);
            for (j, spot) in spots.iter().enumerate().skip(start).filter(|(_, spot)| spot.pasts.is_some()) {
                let stays = left.map_or([Some(true); 2], |left| known(all[left as usize][j]));
                let ends = known(all[right as usize][j]);
                whole.time_point(spot.axis, stays, ends);
                if before != Some((stays, ends)) || spot.axis >= from && !is_within {
                    sparse.time_point(spot.axis, stays, ends);
                }
                (before, is_within) = (Some((stays, ends)), spot.axis >= from);
            }
            let last = spots.last().unwrap();
            let expected = known(all[i][start]);
            whole.end(last.axis, !last.is_event);
            prop_assert_eq!(whole.known(), expected, "{:?} at {}: {:?}", node, start, spots);
            sparse.end(last.axis, !last.is_event);
            prop_assert_eq!(sparse.known(), expected, "{:?} at {}, sparse: {:?}", node, start, spots);
        }
    }
}

/// Memory follows the undecided places, and these are bounded.
#[test]
fn memory_is_bounded_by_undecided_places() {
    // always[0, 100] p, and eventually[0, 1000] (q until[0, 50] r)
    let nodes = [
        Formula::Past(0),
        Formula::Not(0),
        Formula::Until { lower: 0, upper: 100, left: None, right: 1 },
        Formula::Not(2),
        Formula::Past(1),
        Formula::Past(2),
        Formula::Until { lower: 0, upper: 50, left: Some(4), right: 5 },
        Formula::Until { lower: 0, upper: 1000, left: None, right: 6 },
        Formula::And(3, 7),
    ];
    for time in [TimeModel::Steps, TimeModel::Points, TimeModel::Dense] {
        let plan = Plan::new(time, &nodes).unwrap();
        let (mut scratch, mut out) = (Scratch::default(), Vec::new());
        let mut limited = Pending::new(&plan, 20);
        let mut pending = Pending::new(&plan, Pending::LIMIT);
        let mut x = 1_u64;
        let (mut about, mut about_limited) = (0, 0);
        for i in 0..6000 {
            x = x.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            let pasts = [3, if x >> 60 < 3 { 0 } else { 3 }, if x >> 50 & 1023 == 0 { 3 } else { 0 }];
            for (pending, about) in [(&mut pending, &mut about), (&mut limited, &mut about_limited)] {
                match time {
                    TimeModel::Steps => pending.step(&plan, i, 0, &pasts, &mut scratch, &mut out),
                    TimeModel::Points => pending.point(&plan, i as i64, &pasts, &mut scratch, &mut out),
                    TimeModel::Dense => {
                        pending.dense_point(&plan, i as i64, 0, [&pasts, &pasts], &mut scratch, &mut out);
                    }
                }
                *about += out.drain(..).filter(|d| d.is_fresh).count();
            }
            assert!(pending.kept() < 3 * 1150, "{time:?}: {}", pending.kept());
            assert!(limited.kept() < 1500, "{time:?}: {}", limited.kept());
        }
        assert_eq!(pending.lost(), 0);
        assert!(time == TimeModel::Dense || limited.lost() > 1000);
        if time == TimeModel::Steps {
            // Every step has one verdict, except for undecided ones.
            assert_eq!(about_limited + limited.verdicts_waiting(), 6000);
            assert_eq!(about + pending.verdicts_waiting(), 6000);
        }
    }
}

/// Compares the decisions about `points` in dense time, with `rest` passing after the last one. The bits of
/// `advance` select between which of them time is advanced.
fn check_dense(nodes: Vec<Formula>, points: &[TimePoint], rest: i64, advance: u16) {
    let nodes: Vec<Formula> = nodes
        .into_iter()
        .map(|node| match node {
            Formula::Next(x) => Formula::Not(x),
            node => node,
        })
        .collect();
    let plan = Plan::new(TimeModel::Dense, &nodes).unwrap();
    let mut pending = Pending::new(&plan, Pending::LIMIT);
    let (mut scratch, mut out, mut spots) = (Scratch::default(), Vec::new(), Vec::new());
    let (mut time, mut number, mut keys) = (0_i64, 0, Vec::new());
    let mut last: Option<([u8; PASTS], [u8; PASTS])> = None;
    let pass = |spots: &mut Vec<Spot>,
                keys: &mut Vec<(Key, Key)>,
                from: i64,
                to: i64,
                last: Option<([u8; PASTS], [u8; PASTS])>| {
        let Some((at, after)) = last else { return };
        for axis in 2 * i128::from(from)..2 * i128::from(to) {
            let is_close = axis == 2 * i128::from(from);
            let spot =
                Spot { axis, pasts: Some(if is_close { at } else { after }), is_close, is_event: false };
            keys.push((key::first(axis) + i128::from(is_close), key::last(axis)));
            // Within an open interval an instant is decided together with the time after it.
            spots.push(spot);
        }
    };
    for (i, (gap, at, after)) in points.iter().enumerate() {
        let next = time + i64::from(*gap);
        number = if *gap == 0 && i > 0 { number + 1 } else { 0 };
        if i > 0 && *gap > 0 {
            pass(&mut spots, &mut keys, time, next, last);
            for now in time..next {
                if advance >> ((i as i64 + now) % 16) & 1 == 1 {
                    let deadline = pending.deadline(&plan);
                    let before = out.len();
                    pending.advance(&plan, now, &mut scratch, &mut out);
                    // Nothing is decided by time before its deadline.
                    assert!(
                        out[before..]
                            .iter()
                            .all(|d| !d.changed || deadline.is_some_and(|d| d < now) || d.is_fresh)
                    );
                }
            }
        }
        time = next;
        pending.dense_point(&plan, time, 0, [&at.map(truth), &after.map(truth)], &mut scratch, &mut out);
        spots.push(Spot { axis: 2 * i128::from(time), pasts: Some(*at), is_close: false, is_event: true });
        let place = key::nth(2 * i128::from(time), number);
        keys.push((place, place));
        last = Some((*at, *after));
    }
    if rest > 0 {
        pass(&mut spots, &mut keys, time, time + rest, last);
        pending.advance(&plan, time + rest, &mut scratch, &mut out);
    }
    let left = pending.oldest().map(|x| x.0);
    // Instants in an open interval become known together with the time around them.
    check(&nodes, &spots, &out, |_, i| keys[i], |spot| spot.axis, TimeModel::Dense, left);
}

// Found by random tests: a decision made within an open interval about the instant before it was one time
// point late.
#[test]
fn open_interval_decides_instant_before_it() {
    let mut nodes: Vec<Formula> = (0..PASTS as u32).map(Formula::Past).collect();
    nodes.extend([
        Formula::Until { lower: 1, upper: 3, left: None, right: 2 },
        Formula::Same(2, 2),
        Formula::Until { lower: 0, upper: 3, left: Some(4), right: 3 },
    ]);
    let points = [
        (0, [0; 3], [0; 3]),
        (1, [0, 0, 1], [0; 3]),
        (1, [0; 3], [0; 3]),
        (0, [0; 3], [0; 3]),
        (2, [0; 3], [0, 0, 1]),
    ];
    check_dense(nodes, &points, 4, 0);
}
