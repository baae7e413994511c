//! Timed operators that are evaluated ahead of a block.
//!
//! If the operands of a timed operator change at events only, its truth between events follows from the
//! events. Such an operator is evaluated first, over the events of a block, and the result kept as ranges of
//! places at which it holds. The ends of the ranges are time points between the events. The rest of the
//! program is then evaluated at events and those time points together, and reads the ranges.

use serde::{Deserialize, Serialize};
use std::collections::VecDeque;

use rondel_event::Rows;

use crate::ops::once::TimedRecently;
use crate::ops::timed::{RowTimes, TruthHalves, distance, instant, later, time_of};
use crate::ops::words::low;

/// After all places.
const ALWAYS: i64 = i64::MAX;

/// Ranges of places at which `p since[lower, upper] q` holds.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Ranges {
    lower: i64,
    upper: i64,
    /// First and last places, ascending, disjoint and not adjacent.
    queue: VecDeque<(i64, i64)>,
    /// Place from which it holds because `q` holds on the interval after the last event. If `p` fails there,
    /// it holds from the end of the interval on.
    open: Option<i64>,
    /// Place from which nothing holds because `p` fails on that interval.
    broken: Option<i64>,
}

impl Ranges {
    pub(crate) fn new(lower: u64, upper: Option<u64>) -> Ranges {
        let upper = upper.map_or(ALWAYS, distance);
        Ranges { lower: distance(lower), upper, queue: VecDeque::new(), open: None, broken: None }
    }

    /// State of `once[0, span] q`; if `open`, of `once[0, span) q`.
    pub(crate) fn recently(span: u64, open: bool) -> Ranges {
        Ranges { upper: distance(span) - i64::from(open), ..Ranges::new(0, None) }
    }

    /// The state that continues `once[0, span]` after a row at this time.
    pub(crate) fn continued(&self, recently: &TimedRecently, time: i64) -> Ranges {
        let (until, is_open) = recently.remembered();
        let queue = until.map(|until| (instant(time).min(until), until));
        let open = is_open.then(|| (instant(time) + 1).saturating_add(self.lower));
        Ranges { queue: queue.into_iter().collect(), open, broken: None, ..*self }
    }

    /// Evaluates the operands at some events. [`Ranges::read`] removes ranges that have been read.
    pub(crate) fn extend(
        &mut self,
        p: TruthHalves,
        q: TruthHalves,
        RowTimes { times, before }: RowTimes<'_>,
    ) {
        let rows = low(times.len() as u64);
        // Rows at which `p` holds and `q` does not change nothing.
        let mut matters = (q.at | q.after | !p.at | !p.after) & rows;
        let mut next = 0;
        loop {
            let pending = self.open.is_some() || self.broken.is_some();
            let row = if pending && next < times.len() { next } else { matters.trailing_zeros() as usize };
            if row >= times.len() {
                return;
            }
            matters &= !(1 << row);
            let place = instant(times[row]);
            let last = if row == 0 { before } else { times[row - 1] };
            let (open, broken) = (self.open.take(), self.broken.take());
            // Only now is it known whether the interval before this row is empty.
            if times[row] > last {
                if let Some(place) = broken {
                    self.cut(place);
                }
                if let Some(first) = open {
                    // If `p` fails on the interval, only its end is a witness.
                    let first = if broken.is_some() { place.saturating_add(self.lower) } else { first };
                    self.add(first, later(place - 1, self.upper));
                }
            }
            if p.at >> row & 1 == 0 {
                self.cut(place);
            }
            if q.at >> row & 1 == 1 {
                self.add(place.saturating_add(self.lower), later(place, self.upper));
            }
            if p.after >> row & 1 == 0 {
                self.broken = Some(place + 1);
            }
            if q.after >> row & 1 == 1 {
                self.open = Some((place + 1).saturating_add(self.lower));
            }
            next = row + 1;
        }
    }

    fn add(&mut self, first: i64, last: i64) {
        match self.queue.back_mut() {
            _ if last < first => {}
            Some(back) if first <= back.1.saturating_add(1) => back.1 = back.1.max(last),
            _ => self.queue.push_back((first, last)),
        }
    }

    /// Ends all ranges before this place.
    fn cut(&mut self, place: i64) {
        while let Some(back) = self.queue.back_mut() {
            if back.0 < place {
                back.1 = back.1.min(place - 1);
                return;
            }
            self.queue.pop_back();
        }
    }

    /// The truth at some time points and on the intervals after them. Removes the ranges before them.
    pub(crate) fn read(&mut self, times: &[i64]) -> TruthHalves {
        let mut out = TruthHalves::default();
        for (row, &time) in times.iter().enumerate() {
            let place = instant(time);
            // A range that ends at this instant is kept: the next time point can have the same time.
            while self.queue.front().is_some_and(|&(_, last)| last < place) {
                self.queue.pop_front();
            }
            out.at |= Rows::from(self.holds(place)) << row;
            out.after |= Rows::from(self.holds(place + 1)) << row;
        }
        out
    }

    /// Whether it holds at a place. Ranges that end before the instant of the place must be gone.
    #[inline(always)]
    fn holds(&self, place: i64) -> bool {
        let covers = |&(first, last): &(i64, i64)| first <= place && place <= last;
        if self.broken.is_some_and(|broken| broken <= place) {
            return false;
        }
        self.queue.front().is_some_and(covers)
            || self.open.is_some_and(|open| open <= place)
            || self.queue.get(1).is_some_and(covers)
    }

    /// Appends the times after `last`, up to `until`, at which it changes.
    pub(crate) fn change_times(&self, last: i64, until: i64, out: &mut Vec<i64>) {
        let mut add = |place: i64| {
            let time = time_of(place);
            if place != ALWAYS && last < time && time <= until {
                out.push(time);
            }
        };
        for &(first, last) in &self.queue {
            if time_of(first) > until {
                break;
            }
            add(first);
            add(last.saturating_add(1));
        }
        if let Some(open) = self.opens() {
            add(open);
        }
    }

    /// Time of the first change after `last` without another event.
    pub(crate) fn next_change(&self, last: i64) -> Option<i64> {
        if self.broken.is_some() {
            return None;
        }
        let open = self.opens().unwrap_or(ALWAYS);
        let ends = self.queue.iter().flat_map(|&(first, last)| {
            // If `q` keeps holding, so does the range.
            let end = if self.open.is_some_and(|open| open <= last.saturating_add(1)) {
                ALWAYS
            } else {
                last.saturating_add(1)
            };
            [first, end]
        });
        let mut places = ends.chain([open]).filter(|&place| place != ALWAYS);
        places.find(|&place| time_of(place) > last).map(time_of)
    }

    /// Place from which it begins to hold because `q` keeps holding; none if it has held up to there.
    fn opens(&self) -> Option<i64> {
        if self.broken.is_some() {
            return None;
        }
        let held = self.queue.back().map(|&(_, last)| last.saturating_add(1));
        self.open.filter(|&open| held.is_none_or(|held| open > held))
    }

    /// Number of ranges.
    pub(crate) fn kept(&self) -> usize {
        self.queue.len()
    }
}
