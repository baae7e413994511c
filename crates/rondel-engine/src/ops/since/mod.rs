//! `p since[a,b] q`: `q` held within the bounds, and `p` ever since.
//!
//! | | state | kernel |
//! |---|---|---|
//! | unbounded, all time models | truth at the last row: one bit | [`since`], 64 rows at a time, or [`since_gathered`], one row per instance |
//! | bounded, points and dense time | places at which it holds if `p` persists: [`TimedSince`] | [`TimedSince::step`], a row at a time |
//! | robustness | best witnesses: [`robust`] | [`robust::SinceRows`] at rows, [`robust::DenseSince`] at every real time |
//!
//! The saved form of each is its state. `bytes` returns its memory, `next_change` its next deadline. Bounds
//! in steps, and upper bounds alone, are lowered to [`once`](crate::ops::once) and unbounded `since`.

pub(crate) mod robust;

use serde::{Deserialize, Serialize};
use std::collections::VecDeque;

use rondel_event::Rows;

use crate::ops::timed::{ALWAYS, RowTimes, TruthHalves, distance, instant, later, time_of};
use crate::ops::varying::Varying;

/// `p since q`; `carry` (0 or 1) is its truth before the first row.
///
/// At every row `out = q | p & before`, which is the carry of an addition of the bits `p|q` and `q`: a
/// position carries out if `q` is set (both bits are), or if `p` is (one bit is) and a carry comes in. One
/// addition thus computes all 64 rows. The carries that came in are the bits in which the sum differs from
/// the sum without carries.
#[inline(always)]
pub(crate) fn since(p: Rows, q: Rows, carry: u64) -> Rows {
    let a = p | q;
    let sum = a.wrapping_add(q).wrapping_add(carry);
    let carried_in = sum ^ a ^ q;
    q | (p & carried_in)
}

/// [`since`] over gathered rows, one per instance; `carry` holds the truth at the row before, and then at
/// this one.
#[inline(always)]
pub(crate) fn since_gathered(p: Rows, q: Rows, carry: &mut Rows) -> Rows {
    *carry = q | p & *carry;
    *carry
}

/// State of `p since[lower, upper] q` with a lower bound above 0: the places at which it holds if `p`
/// persists.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct TimedSince {
    lower: i64,
    /// [`ALWAYS`] if unbounded.
    upper: i64,
    /// First and last places, ascending, disjoint and not adjacent.
    queue: VecDeque<(i64, i64)>,
    /// Place from which it will hold because `q` holds on the interval after the last row. If `p` fails
    /// there, it holds from the end of the interval on.
    open: Option<i64>,
    /// Whether `p` fails on that interval.
    broken: bool,
}

impl TimedSince {
    pub(crate) fn new(lower: u64, upper: Option<u64>) -> TimedSince {
        TimedSince {
            lower: distance(lower),
            upper: upper.map_or(ALWAYS, distance),
            queue: VecDeque::new(),
            open: None,
            broken: false,
        }
    }

    pub(crate) fn step(&mut self, p: TruthHalves, q: TruthHalves, row_times: RowTimes<'_>) -> TruthHalves {
        let RowTimes { times, mut before } = row_times;
        let mut out = TruthHalves::default();
        let rows = crate::ops::words::low(times.len() as u64);
        if (q.at | q.after) & rows == 0 && self.open.is_none() && self.queue.is_empty() {
            self.broken = false;
            return out;
        }
        for (row, &time) in times.iter().enumerate() {
            let place = instant(time);
            let open = self.open.take();
            // Only now is it known whether the interval before this row is empty.
            if time > before {
                if self.broken {
                    self.queue.clear();
                }
                if let Some(first) = open {
                    // If `p` fails on the interval, only its end is a witness.
                    let first = if self.broken { place.saturating_add(self.lower) } else { first };
                    self.add(first, later(place - 1, self.upper));
                }
            }
            if p.at >> row & 1 == 0 {
                self.queue.clear();
            }
            if q.at >> row & 1 == 1 {
                self.add(place.saturating_add(self.lower), later(place, self.upper));
            }
            out.at |= Rows::from(self.holds(place)) << row;
            // A witness on the interval is at least `lower` away.
            self.broken = p.after >> row & 1 == 0;
            if q.after >> row & 1 == 1 {
                self.open = Some((place + 1).saturating_add(self.lower));
            }
            if !self.broken {
                out.after |= Rows::from(self.will_hold(place + 1)) << row;
            }
            before = time;
        }
        out
    }

    fn add(&mut self, first: i64, last: i64) {
        match self.queue.back_mut() {
            _ if last < first => {}
            Some(back) if first <= back.1.saturating_add(1) => back.1 = back.1.max(last),
            _ => self.queue.push_back((first, last)),
        }
    }

    /// Whether it holds at a place. Removes earlier places.
    fn holds(&mut self, place: i64) -> bool {
        while self.queue.front().is_some_and(|&(_, last)| last < place) {
            self.queue.pop_front();
        }
        self.queue.front().is_some_and(|&(first, _)| first <= place)
    }

    /// Whether it holds at the place after the last one that was read, if that interval is not empty.
    fn will_hold(&self, place: i64) -> bool {
        // Intervals are not adjacent: if the first one ends just before, no other begins here.
        self.queue.front().is_some_and(|&(first, last)| first <= place && place <= last)
            || self.open.is_some_and(|open| open <= place)
    }

    /// Time of the next change after the row at `now` without another row.
    pub(crate) fn next_change(&self, now: i64) -> Option<i64> {
        if self.broken {
            return None;
        }
        let place = instant(now) + 1;
        let open = self.open.unwrap_or(ALWAYS);
        let change =
            match self.queue.iter().find(|(_, last)| *last >= place) {
                _ if open <= place => ALWAYS,
                Some(&(first, last)) if first <= place => {
                    if open <= last.saturating_add(1) || last == ALWAYS { ALWAYS } else { last + 1 }
                }
                Some(&(first, _)) => first.min(open),
                None => open,
            };
        (change != ALWAYS).then(|| time_of(change))
    }

    /// Whether two states are equivalent from the time `now` on, given equal operands, where there is one.
    pub(crate) fn goes_on_as(sinces: [Option<&TimedSince>; 2], now: i64) -> bool {
        let open = |since: &TimedSince| since.left_at(now).0;
        let [a, b] = sinces.map(|since| since.into_iter().flat_map(|since| since.left_at(now).1));
        let [is_open, is_other] = sinces.map(|since| since.map_or((None, false), open));
        is_open == is_other && a.eq(b)
    }

    /// The state that still matters at the time `now` or later.
    fn left_at(&self, now: i64) -> ((Option<i64>, bool), impl Iterator<Item = &(i64, i64)>) {
        ((self.open, self.broken), self.queue.iter().skip_while(move |(_, last)| *last < instant(now)))
    }

    /// Number of intervals.
    pub(crate) fn kept(&self) -> usize {
        self.queue.len()
    }
}

impl Varying for TimedSince {
    fn bytes(&self) -> usize {
        self.queue.capacity() * size_of::<(i64, i64)>()
    }

    fn is_empty(&self) -> bool {
        self.queue.is_empty() && self.open.is_none()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ops::words::tests::samples;

    #[test]
    fn since_agrees_with_recursion() {
        for (p, q) in samples().zip(samples().skip(1)) {
            for carry in [0, 1] {
                let mut before = carry;
                let out = since(p, q, carry);
                for i in 0..64 {
                    before = (q >> i & 1) | (p >> i & 1) & before;
                    assert_eq!(out >> i & 1, before, "{p:x} {q:x} {i}");
                }
            }
        }
    }
}
