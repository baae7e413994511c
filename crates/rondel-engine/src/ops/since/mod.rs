//! `p since[a,b] q`: whether `q` held within the bounds, and `p` ever since.
//!
//! | | state | kernel |
//! |---|---|---|
//! | without bounds, all models of time | the truth at the last row: one bit | [`since`], 64 rows at a time, or [`since_gathered`], 64 instances |
//! | with bounds, in points and dense time | the places at which it will hold if `p` goes on: [`TimedSince`] | [`TimedSince::step`], a row at a time |
//! | its robustness | the best witnesses: [`robust`] | [`robust::SinceRows`] at rows, [`robust::DenseSince`] at every real time |
//!
//! The saved form of each is the state itself. `bytes` says what it takes, `next_change` the next deadline. With bounds
//! in steps, and with a lower bound of 0, it is lowered to [`once`](crate::ops::once) and to `since` without bounds.

pub(crate) mod robust;

use serde::{Deserialize, Serialize};
use std::collections::VecDeque;

use rondel_event::Rows;

use crate::ops::timed::{ALWAYS, RowTimes, TruthHalves, distance, instant, later, time_of};
use crate::ops::varying::Varying;

/// `p since q`, where `carry` (0 or 1) is its truth before the first row.
///
/// At every row `out = q | p & before`. That is how a carry runs through an addition: adding the
/// bits `p|q` and `q`, a carry comes out of a position when `q` is set there (both bits are), or
/// when `p` is (one bit is) and a carry came in. So one addition computes it for all 64 rows; the
/// carries that came in are where the sum differs from the sum without carries.
#[inline(always)]
pub(crate) fn since(p: Rows, q: Rows, carry: u64) -> Rows {
    let a = p | q;
    let sum = a.wrapping_add(q).wrapping_add(carry);
    let carried_in = sum ^ a ^ q;
    q | (p & carried_in)
}

/// [`since`], where every row is of another instance, of which `carry` has its truth at the row before and then at this.
#[inline(always)]
pub(crate) fn since_gathered(p: Rows, q: Rows, carry: &mut Rows) -> Rows {
    *carry = q | p & *carry;
    *carry
}

/// `p since[lower, upper] q` with a lower bound above 0: the places at which it will hold if `p` goes on.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct TimedSince {
    lower: i64,
    /// [`ALWAYS`] where there is none.
    upper: i64,
    /// First and last places, in order, neither overlapping nor touching.
    queue: VecDeque<(i64, i64)>,
    /// From which place on it will hold because `q` holds on the span that follows the last row; from the end of the
    /// span on if `p` fails there.
    open: Option<i64>,
    /// Whether `p` fails on that span.
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
            // Only now it is known that there was a span.
            if time > before {
                if self.broken {
                    self.queue.clear();
                }
                if let Some(first) = open {
                    // If `p` fails on the span, only its end is a witness.
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
            // A witness within the span is at least `lower` away.
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

    /// Whether it holds at a place. What lies before that place is forgotten.
    fn holds(&mut self, place: i64) -> bool {
        while self.queue.front().is_some_and(|&(_, last)| last < place) {
            self.queue.pop_front();
        }
        self.queue.front().is_some_and(|&(first, _)| first <= place)
    }

    /// Whether it holds at the place after the last one that was asked for, if that turns out to be there.
    fn will_hold(&self, place: i64) -> bool {
        // Intervals do not touch: if the first ends just before, no other begins here.
        self.queue.front().is_some_and(|&(first, last)| first <= place && place <= last)
            || self.open.is_some_and(|open| open <= place)
    }

    /// When it changes by itself after the row at `now`, if it does.
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

    /// Whether two give the same at the time `now` and later if their operands do, where there is one.
    pub(crate) fn goes_on_as(sinces: [Option<&TimedSince>; 2], now: i64) -> bool {
        let open = |since: &TimedSince| since.left_at(now).0;
        let [a, b] = sinces.map(|since| since.into_iter().flat_map(|since| since.left_at(now).1));
        let [is_open, is_other] = sinces.map(|since| since.map_or((None, false), open));
        is_open == is_other && a.eq(b)
    }

    /// What of it can still matter at the time `now` or later.
    fn left_at(&self, now: i64) -> ((Option<i64>, bool), impl Iterator<Item = &(i64, i64)>) {
        ((self.open, self.broken), self.queue.iter().skip_while(move |(_, last)| *last < instant(now)))
    }

    /// How many intervals are kept.
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
    fn since_is_its_recursion() {
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
