//! The robustness of `since` within bounds, one row or moment at a time.
//!
//! Robustness says by how much a formula holds, or with the other sign by how much it does not: a
//! number that is positive only where the formula is true, and negative only where it is false. Of
//! `p since[a,b] q` it is the greatest, over all witnesses for `q` within the bounds, of the least of
//! the robustness of `q` there and of `p` ever since. No robustness is NaN.

use serde::{Deserialize, Serialize};
use std::collections::VecDeque;

use crate::ops::columns::Values;
use crate::ops::stamps::{Blind, Stamps, age};

#[inline(always)]
fn min(a: f64, b: f64) -> f64 {
    if a < b { a } else { b }
}

#[inline(always)]
fn max(a: f64, b: f64) -> f64 {
    if a > b { a } else { b }
}

/// The best witnesses, oldest first, with the robustness that each still gives: decreasing, since a
/// witness that is older and not better will never be needed. What ends a witness is `E`.
#[derive(Clone, Debug, Serialize, Deserialize)]
struct Witnesses<E> {
    list: VecDeque<(E, f64)>,
}

impl<E: Copy> Witnesses<E> {
    fn new() -> Witnesses<E> {
        Witnesses { list: VecDeque::new() }
    }

    /// From here on none gives more than `p`. Those that would are now equal, and only the latest
    /// of them matters.
    #[inline(always)]
    fn cap(&mut self, p: f64) {
        let mut latest = None;
        while let Some(&(end, value)) = self.list.front() {
            if value < p {
                break;
            }
            latest = Some(end);
            self.list.pop_front();
        }
        if let Some(end) = latest {
            self.list.push_front((end, p));
        }
    }

    #[inline(always)]
    fn add(&mut self, end: E, q: f64) {
        while self.list.back().is_some_and(|&(_, other)| other <= q) {
            self.list.pop_back();
        }
        self.list.push_back((end, q));
    }

    #[inline(always)]
    fn best(&self) -> f64 {
        self.list.front().map_or(f64::NEG_INFINITY, |&(_, value)| value)
    }
}

/// A queue that knows its least entry.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
struct Least {
    /// Those that no later one is less than, in order: the first is the least of all.
    list: VecDeque<f64>,
}

impl Least {
    #[inline(always)]
    fn push(&mut self, p: f64) {
        while self.list.back().is_some_and(|&other| other > p) {
            self.list.pop_back();
        }
        self.list.push_back(p);
    }

    /// Removes the oldest entry, which was `p`.
    #[inline(always)]
    fn pop(&mut self, p: f64) {
        if self.list.front() == Some(&p) {
            self.list.pop_front();
        }
    }

    #[inline(always)]
    fn get(&self) -> f64 {
        self.list.front().copied().unwrap_or(f64::INFINITY)
    }
}

/// In steps and points: at rows only.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Since {
    lower: u64,
    upper: Option<u64>,
    limit: usize,
    /// What it gives where there is no room for what would have to be kept.
    unknown: f64,
    /// Rows that are not `lower` old yet: stamp, `p`, `q`.
    waiting: VecDeque<(i64, f64, f64)>,
    /// The least `p` of these.
    least: Least,
    witnesses: Witnesses<i64>,
    /// Where there are no bounds, nothing else is needed.
    running: f64,
    blind: Blind,
}

impl Since {
    pub(crate) fn new(lower: u64, upper: Option<u64>, unknown: f64, limit: usize) -> Since {
        Since {
            lower,
            upper,
            limit,
            unknown,
            waiting: VecDeque::new(),
            least: Least::default(),
            witnesses: Witnesses::new(),
            running: f64::NEG_INFINITY,
            blind: Blind::default(),
        }
    }

    /// The rows of a block.
    pub(crate) fn step(
        &mut self,
        out: &mut Values<f64>,
        [p, q]: [&Values<f64>; 2],
        stamps: Stamps<'_>,
        len: u32,
    ) {
        let rows = out.iter_mut().zip(p.iter().zip(q)).take(len as usize);
        if self.is_unbounded() {
            let mut running = self.running;
            for (out, (&p, &q)) in rows {
                running = max(q, min(p, running));
                *out = running;
            }
            self.running = running;
        } else {
            for (i, (out, (&p, &q))) in rows.enumerate() {
                *out = self.row(stamps.at(i), p, q);
            }
        }
    }

    #[inline(always)]
    fn is_unbounded(&self) -> bool {
        self.lower == 0 && self.upper.is_none()
    }

    /// One row.
    #[inline(always)]
    pub(crate) fn row(&mut self, now: i64, p: f64, q: f64) -> f64 {
        if self.is_unbounded() {
            self.running = max(q, min(p, self.running));
            self.running
        } else {
            self.bounded_row(now, p, q)
        }
    }

    #[inline(always)]
    fn bounded_row(&mut self, now: i64, p: f64, q: f64) -> f64 {
        if self.lower == 0 {
            self.admit(now, p, q);
        } else {
            self.waiting.push_back((now, p, q));
            self.least.push(p);
            while let Some(&(stamp, p, q)) = self.waiting.front() {
                if age(now, stamp) < self.lower {
                    break;
                }
                self.waiting.pop_front();
                self.least.pop(p);
                self.admit(stamp, p, q);
            }
            if self.waiting.len() > self.limit
                && let Some((stamp, p, _)) = self.waiting.pop_front()
            {
                self.least.pop(p);
                self.blind.drop(stamp);
            }
        }
        let clear = match self.upper {
            Some(upper) => {
                let list = &mut self.witnesses.list;
                while list.front().is_some_and(|&(stamp, _)| age(now, stamp) > upper) {
                    list.pop_front();
                }
                self.blind.is_over(now, upper.saturating_add(1))
            }
            None => self.blind.dropped == 0,
        };
        if clear { min(self.witnesses.best(), self.least.get()) } else { self.unknown }
    }

    #[inline(always)]
    fn admit(&mut self, stamp: i64, p: f64, q: f64) {
        self.witnesses.cap(p);
        // Where witnesses never leave, one is enough.
        if self.upper.is_none() && self.witnesses.best() >= q && !self.witnesses.list.is_empty() {
            return;
        }
        self.witnesses.add(stamp, q);
        if self.witnesses.list.len() > self.limit
            && let Some((stamp, _)) = self.witnesses.list.pop_front()
        {
            self.blind.drop(stamp);
        }
    }

    /// About how many bytes it takes beside itself.
    pub(crate) fn bytes(&self) -> usize {
        self.waiting.capacity() * size_of::<(i64, f64, f64)>()
            + self.least.list.capacity() * size_of::<f64>()
            + self.witnesses.list.capacity() * size_of::<(i64, f64)>()
    }

    /// How many rows there was no room for.
    pub(crate) fn dropped(&self) -> u64 {
        self.blind.dropped
    }
}

/// In dense time: at every real time, for signals that change only at moments.
///
/// Time is cut into pieces, the instants of the moments and the open spans between them. Counted in
/// half nanoseconds, the instant `t` is the place `2t`, and the span from `t` to `u` reaches from
/// `2t + 1` to `2u - 1`; bounds become closed at both ends, and what is true just after `t` is what is
/// true at `2t + 1`. Places are wider than times: nothing overflows.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct DenseSince {
    lower: i128,
    upper: Option<i128>,
    limit: usize,
    unknown: f64,
    /// The time of the last moment, and `p` and `q` after it.
    last: Option<(i64, f64, f64)>,
    /// Pieces of which no part is `lower` old yet.
    waiting: VecDeque<Piece>,
    least: Least,
    /// Each with its last place.
    witnesses: Witnesses<i128>,
    /// The last place of the latest piece among the witnesses that ends with a span, and its `q`.
    ended: Option<(i128, f64)>,
    /// The last place of the latest piece there was no room for.
    blind: Option<i128>,
    dropped: u64,
}

#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
struct Piece {
    first: i128,
    last: i128,
    p: f64,
    q: f64,
}

impl Piece {
    /// The most that a witness in it gives, as long as `p` goes on.
    fn gives(&self) -> f64 {
        // Within a span there is more of it after every witness.
        if self.first < self.last || self.last & 1 == 1 { min(self.p, self.q) } else { self.q }
    }
}

fn place(time: i64) -> i128 {
    2 * i128::from(time)
}

impl DenseSince {
    pub(crate) fn new(lower: u64, upper: Option<u64>, unknown: f64, limit: usize) -> DenseSince {
        DenseSince {
            lower: 2 * i128::from(lower),
            upper: upper.map(|upper| 2 * i128::from(upper)),
            limit,
            unknown,
            last: None,
            waiting: VecDeque::new(),
            least: Least::default(),
            witnesses: Witnesses::new(),
            ended: None,
            blind: None,
            dropped: 0,
        }
    }

    /// The robustness at a moment and just after it, from those of `p` and `q`.
    pub(crate) fn moment(&mut self, now: i64, p: [f64; 2], q: [f64; 2]) -> [f64; 2] {
        let mut now = now;
        if let Some((last, p, q)) = self.last {
            now = now.max(last);
            // A span between two moments of one time is empty.
            if now > last {
                self.add(Piece { first: place(last) + 1, last: place(now) - 1, p, q });
            }
        }
        self.last = Some((now, p[1], q[1]));
        let here = place(now);
        self.add(Piece { first: here, last: here, p: p[0], q: q[0] });
        [self.at(here), self.after(here + 1, p[1], q[1])]
    }

    fn add(&mut self, piece: Piece) {
        if self.lower == 0 {
            self.admit(piece);
            return;
        }
        // A witness at an instant needs `p` only after it. Within a longer piece that makes no
        // difference, unless the instant is its end.
        let same = |back: &Piece| back.p == piece.p && back.q == piece.q;
        let is_span = piece.last & 1 == 1;
        match self.waiting.back_mut() {
            Some(back) if same(back) && (is_span || piece.q <= piece.p) => {
                back.last = piece.last;
                // What was kept apart because it was the end is so no more.
                let before = self.waiting.len().checked_sub(2).and_then(|i| self.waiting.get_mut(i));
                if let Some(before) = before.filter(|before| same(before)) {
                    before.last = piece.last;
                    self.waiting.pop_back();
                    self.least.list.pop_back();
                }
            }
            _ => {
                self.waiting.push_back(piece);
                self.least.push(piece.p);
            }
        }
        if self.waiting.len() > self.limit
            && let Some(piece) = self.waiting.pop_front()
        {
            self.least.pop(piece.p);
            self.drop(piece.last);
        }
    }

    fn drop(&mut self, last: i128) {
        self.blind = self.blind.max(Some(last));
        self.dropped = self.dropped.saturating_add(1);
    }

    fn admit(&mut self, piece: Piece) {
        let Piece { first, last, p, q } = piece;
        self.witnesses.cap(p);
        // What `q` was just before needs `p` only from here on.
        if let Some((end, before)) = self.ended.take()
            && end + 1 == first
        {
            self.witness(end, min(before, p));
        }
        if last & 1 == 1 {
            self.ended = Some((last, q));
        }
        self.witness(last, piece.gives());
    }

    fn witness(&mut self, last: i128, q: f64) {
        if self.upper.is_none() && self.witnesses.best() >= q && !self.witnesses.list.is_empty() {
            return;
        }
        self.witnesses.add(last, q);
        if self.witnesses.list.len() > self.limit
            && let Some((last, _)) = self.witnesses.list.pop_front()
        {
            self.drop(last);
        }
    }

    fn is_blind(&self, here: i128) -> bool {
        match (self.blind, self.upper) {
            (Some(last), Some(upper)) => last + upper >= here,
            (blind, _) => blind.is_some(),
        }
    }

    fn at(&mut self, here: i128) -> f64 {
        while let Some(&piece) = self.waiting.front() {
            if piece.first + self.lower > here {
                break;
            }
            self.waiting.pop_front();
            self.least.pop(piece.p);
            self.admit(piece);
        }
        if let Some(upper) = self.upper {
            let list = &mut self.witnesses.list;
            while list.front().is_some_and(|&(last, _)| last + upper < here) {
                list.pop_front();
            }
            self.blind = self.blind.filter(|&last| last + upper >= here);
        }
        if self.is_blind(here) { self.unknown } else { min(self.witnesses.best(), self.least.get()) }
    }

    /// Just after a moment. The next may be at the same time: so nothing is changed here.
    fn after(&self, here: i128, p: f64, q: f64) -> f64 {
        if self.is_blind(here) {
            return self.unknown;
        }
        let best = self.best(here);
        if self.lower == 0 {
            return max(q, min(p, best));
        }
        // A span that begins here, seen from so far away; its `p` is among the least.
        let begins = self.waiting.front().filter(|piece| piece.first + self.lower == here);
        let best = begins.map_or(best, |piece| max(best, piece.q));
        min(min(best, self.least.get()), p)
    }

    /// The best witness that still counts at a place.
    fn best(&self, here: i128) -> f64 {
        let stays = |last: i128| self.upper.is_none_or(|upper| last + upper >= here);
        let best = self.witnesses.list.iter().find(|(last, _)| stays(*last));
        best.map_or(f64::NEG_INFINITY, |&(_, value)| value)
    }

    /// The earliest time after the last moment at which the robustness may change by itself. What the span that has
    /// begun gives anyway changes nothing: else there would be a change for every bound that passes, for ever.
    pub(crate) fn next_change(&self) -> Option<i64> {
        let (now, p, q) = self.last?;
        let of_span = min(p, q);
        // The times of an even place and of the odd one after it are the same, as are those at which
        // a point and the span before it leave.
        let enters = self.next_entry(now, p, q);
        let leaves = self.upper.and_then(|upper| {
            let leaves = |last: i128| (last + upper + 1) >> 1;
            // From there on everything gives as much as the span does.
            let lasting = self.waiting.iter().rev().take(DenseSince::LOOKS);
            let lasting = lasting.take_while(|piece| min(piece.gives(), p) >= of_span);
            let since = lasting.last().map_or(place(now) + 1, |piece| piece.first);
            let is_replaced =
                |last: i128, value: f64| min(value, p) <= of_span && last + 1 + upper >= since + self.lower;
            // A piece that has begun to count just now is not among the witnesses yet.
            let begun = self.waiting.iter().take_while(|piece| piece.first + self.lower <= place(now) + 1);
            let begun = begun.map(|piece| (piece.last, piece.gives()));
            let before = self.waiting.iter().enumerate();
            let before = before.take_while(|(_, piece)| piece.first + self.lower <= place(now) + 1);
            let before = before.map(|(i, piece)| (piece.first - 1, self.gave_before(i)));
            // Each in the order of places, so that the first that counts is the earliest.
            let next = |ends: &mut dyn Iterator<Item = (i128, f64)>| {
                let ends = ends.filter(|&(last, value)| !is_replaced(last, value));
                ends.map(|(last, _)| leaves(last)).find(|&time| time > now.into())
            };
            let firsts =
                [next(&mut self.witnesses.list.iter().copied()), next(&mut { begun }), next(&mut { before })];
            [firsts.into_iter().flatten().min(), self.blind.map(leaves).filter(|&time| time > now.into())]
                .into_iter()
                .flatten()
                .min()
        });
        [enters, leaves].into_iter().flatten().min().and_then(|time| i64::try_from(time).ok())
    }

    /// The earliest time after the last moment at which a piece that becomes `lower` old may give more than there is.
    /// What gives no more is passed over: else every moment would bring another one after `lower`, for ever.
    fn next_entry(&self, now: i64, p: f64, q: f64) -> Option<i128> {
        let here = place(now) + 1;
        if self.lower == 0 || self.is_blind(here) {
            return None;
        }
        let given = self.after(here, p, q);
        let time_of = |first: i128| (first + self.lower) >> 1;
        let waiting = self.waiting.iter().enumerate();
        let waiting = waiting.filter(|(_, piece)| time_of(piece.first) > now.into());
        for (looks, (i, piece)) in waiting.enumerate() {
            // To look at all of them at every moment would cost more than a moment for some of them.
            if looks == DenseSince::LOOKS || min(max(piece.gives(), self.gave_before(i)), p) > given {
                return Some(time_of(piece.first));
            }
        }
        // The span that has just begun.
        (min(p, q) > given).then(|| time_of(here))
    }

    /// What `q` gives that ended just before a waiting piece, as long as `p` goes on from there.
    fn gave_before(&self, i: usize) -> f64 {
        let piece = &self.waiting[i];
        let ended = match i.checked_sub(1) {
            Some(i) => Some((self.waiting[i].last, self.waiting[i].q)).filter(|(last, _)| last & 1 == 1),
            None => self.ended,
        };
        let before = ended.filter(|(end, _)| end + 1 == piece.first);
        before.map_or(f64::NEG_INFINITY, |(_, q)| min(q, piece.p))
    }

    /// How many pieces are looked at for the next that changes something.
    const LOOKS: usize = 16;

    /// About how many bytes it takes beside itself.
    pub(crate) fn bytes(&self) -> usize {
        self.waiting.capacity() * size_of::<Piece>()
            + self.least.list.capacity() * size_of::<f64>()
            + self.witnesses.list.capacity() * size_of::<(i128, f64)>()
    }

    /// How many pieces there was no room for.
    pub(crate) fn dropped(&self) -> u64 {
        self.dropped
    }
}

#[cfg(test)]
mod tests {
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

    fn contains((lower, upper): (u64, Option<u64>), age: i64) -> bool {
        age >= lower as i64 && upper.is_none_or(|upper| age <= upper as i64)
    }

    /// A grid of instants (even) and open spans between (odd), each with `p` and `q`: the robustness
    /// at place `g`, from the definition.
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
                // Up to the end of the span, and `p` from there on.
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
        fn rows_are_their_definition(
            trace in proptest::collection::vec((0..4_i64, level(), level()), 1..80),
            bounds in bounds(),
        ) {
            let mut since = Since::new(bounds.0, bounds.1, f64::NAN, 1000);
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
        fn every_real_time_has_its_definition(
            trace in proptest::collection::vec((0..7_i64, [level(), level()], [level(), level()]), 1..30),
            bounds in bounds(),
            hold in any::<bool>(),
        ) {
            let mut since = DenseSince::new(bounds.0, bounds.1, f64::NAN, 1000);
            // All instants and spans up to some time after the last event.
            let (mut pieces, mut events, mut now) = (Vec::new(), trace.into_iter().peekable(), 0);
            let (mut time, mut levels) = (0, None);
            let mut held = f64::NAN;
            for _ in 0..400 {
                let mut here = false;
                while let Some((later, p, q)) = events.next_if(|event| now + event.0 == time) {
                    // Most signals hold their values: the instant is as the span after it.
                    let (p, q) = if hold { ([p[1]; 2], [q[1]; 2]) } else { (p, q) };
                    now += later;
                    here = true;
                    pieces.push((2 * time, p[0], q[0]));
                    let [at, after] = since.moment(time, p, q);
                    prop_assert_eq!(at, on_grid(&pieces, pieces.len() - 1, bounds), "at {}", time);
                    levels = Some((p[1], q[1]));
                    held = after;
                }
                let Some((p, q)) = levels else { time += 1; continue };
                if !here {
                    pieces.push((2 * time, p, q));
                    let expected = on_grid(&pieces, pieces.len() - 1, bounds);
                    if since.next_change() == Some(time) {
                        let [at, after] = since.moment(time, [p; 2], [q; 2]);
                        prop_assert_eq!(at, expected, "deadline at {}", time);
                        held = after;
                    } else {
                        prop_assert_eq!(held, expected, "between moments, at {}", time);
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
    fn what_there_is_no_room_for_is_unknown() {
        let mut since = Since::new(0, Some(5), f64::NAN, 3);
        let values: Vec<f64> = (0..5).map(|t| since.row(t, f64::INFINITY, -t as f64)).collect();
        assert_eq!(values[..3], [0.0, 0.0, 0.0]);
        assert!(values[3..].iter().all(|value| value.is_nan()));
        assert_eq!(since.dropped(), 2);
        assert!(since.row(6, f64::INFINITY, -9.0).is_nan());
        assert_eq!(since.row(8, f64::INFINITY, -9.0), -3.0);
    }

    #[test]
    fn what_lasts_has_no_deadlines() {
        for (lower, upper) in [(0, Some(2)), (1, Some(3)), (3, Some(3)), (2, None)] {
            let mut since = DenseSince::new(lower, upper, f64::NAN, 10);
            since.moment(0, [5.0; 2], [1.0; 2]);
            since.moment(4, [3.0, 6.0], [2.0, 4.0]);
            let mut count = 0;
            while let Some(due) = since.next_change().filter(|_| count < 20) {
                since.moment(due, [6.0; 2], [4.0; 2]);
                count += 1;
            }
            assert!(count < 5, "{count} with {lower} and {upper:?}");
        }
    }

    /// A signal that stays the same, however long: `self` brings few moments, and few pieces are kept.
    #[test]
    fn a_long_gap_costs_no_more_than_a_short_one() {
        let infinite = f64::INFINITY;
        for (lower, upper) in [(1, Some(100)), (1, None), (7, Some(7)), (40, Some(90))] {
            for (p, q) in [(1.0, infinite), (1.0, -infinite), (2.0, 1.0), (infinite, 1.0), (-1.0, 3.0)] {
                let mut since = DenseSince::new(lower, upper, f64::NAN, 1000);
                let mut moments = 0;
                for (message, at) in [(0, [3.0, infinite]), (10, [p, q]), (1_000_000, [p, q])] {
                    while let Some(due) = since.next_change().filter(|&due| due < message && moments < 100) {
                        since.moment(due, [p; 2], [q; 2]);
                        moments += 1;
                    }
                    since.moment(message, [at[0]; 2], [at[1]; 2]);
                }
                assert!(moments < 12, "{moments} with {lower}, {upper:?}, {p}, {q}");
            }
        }
    }

    #[test]
    fn moments_of_others_add_no_pieces() {
        let mut since = DenseSince::new(1_000_000, None, f64::NAN, 1000);
        for time in 0..100 {
            since.moment(time, [1.0; 2], [f64::INFINITY; 2]);
            assert!(since.waiting.len() <= 2 && since.least.list.len() <= 2);
        }
    }

    #[test]
    fn the_ends_of_time_are_no_panic() {
        for (lower, upper) in [(0, Some(u64::MAX)), (u64::MAX, None), (1, Some(2))] {
            let mut dense = DenseSince::new(lower, upper, f64::NAN, 10);
            let mut rows = Since::new(lower, upper, f64::NAN, 10);
            for time in [i64::MIN, -1, 5, 3, i64::MAX] {
                dense.moment(time, [1.0; 2], [2.0; 2]);
                rows.row(time, 1.0, 2.0);
                dense.next_change();
            }
        }
    }
}
