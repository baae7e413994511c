//! Timed operators that are looked ahead of.
//!
//! What a timed operator says between events is known from the events alone, if its operands change at
//! events only. Such an operator is evaluated first, over the events of a block, and the result kept as
//! ranges of places at which it holds; their ends are the moments that have to stand between the events. The rest of
//! the program is then evaluated for events and moments together, and reads the ranges.

use serde::{Deserialize, Serialize};
use std::collections::VecDeque;

use rondel_event::Rows;

use crate::ops::once::TimedRecently;
use crate::ops::timed::{RowTimes, TruthHalves, distance, instant, later, time_of};
use crate::ops::words::low;

/// After all places.
const ALWAYS: i64 = i64::MAX;

/// `p since[lower, upper] q`, as the ranges of places at which it holds.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Ranges {
    lower: i64,
    upper: i64,
    /// First and last places, in order, neither overlapping nor touching.
    queue: VecDeque<(i64, i64)>,
    /// From which place on it holds because `q` holds on the span that follows the last event; from the end of the
    /// span on if `p` fails there.
    open: Option<i64>,
    /// From which place on nothing holds because `p` fails on that span.
    broken: Option<i64>,
}

impl Ranges {
    pub(crate) fn new(lower: u64, upper: Option<u64>) -> Ranges {
        let upper = upper.map_or(ALWAYS, distance);
        Ranges { lower: distance(lower), upper, queue: VecDeque::new(), open: None, broken: None }
    }

    /// `once[0, span]`, or without the far end if it is `open`.
    pub(crate) fn recently(span: u64, open: bool) -> Ranges {
        Ranges { upper: distance(span) - i64::from(open), ..Ranges::new(0, None) }
    }

    /// The same as what `once[0, span]` remembers after a row at this time.
    pub(crate) fn continued(&self, recently: &TimedRecently, time: i64) -> Ranges {
        let (until, is_open) = recently.remembered();
        let queue = until.map(|until| (instant(time).min(until), until));
        let open = is_open.then(|| (instant(time) + 1).saturating_add(self.lower));
        Ranges { queue: queue.into_iter().collect(), open, broken: None, ..*self }
    }

    /// Takes in the operands at some events. What has been read is let go by [`Ranges::read`].
    pub(crate) fn extend(
        &mut self,
        p: TruthHalves,
        q: TruthHalves,
        RowTimes { times, before }: RowTimes<'_>,
    ) {
        let rows = low(times.len() as u64);
        // Nothing happens where `p` holds and `q` does not.
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
            // Now it turns out whether there was a span.
            if times[row] > last {
                if let Some(place) = broken {
                    self.cut(place);
                }
                if let Some(first) = open {
                    // If `p` fails on the span, only its end is a witness.
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

    /// From this place on nothing holds of what was before.
    fn cut(&mut self, place: i64) {
        while let Some(back) = self.queue.back_mut() {
            if back.0 < place {
                back.1 = back.1.min(place - 1);
                return;
            }
            self.queue.pop_back();
        }
    }

    /// The truth at some moments, and after them. What lies before them is let go.
    pub(crate) fn read(&mut self, times: &[i64]) -> TruthHalves {
        let mut out = TruthHalves::default();
        for (row, &time) in times.iter().enumerate() {
            let place = instant(time);
            // What holds at this instant may be asked for again: the next moment can be of the same time.
            while self.queue.front().is_some_and(|&(_, last)| last < place) {
                self.queue.pop_front();
            }
            out.at |= Rows::from(self.holds(place)) << row;
            out.after |= Rows::from(self.holds(place + 1)) << row;
        }
        out
    }

    /// Whether it holds at a place, where all ranges that end before the instant of the place are gone.
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

    /// Adds the moments after `last` and up to `until` at which it changes.
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

    /// The first moment after `last` at which it changes, if no event comes before.
    pub(crate) fn next_change(&self, last: i64) -> Option<i64> {
        if self.broken.is_some() {
            return None;
        }
        let open = self.opens().unwrap_or(ALWAYS);
        let ends = self.queue.iter().flat_map(|&(first, last)| {
            // Where `q` goes on to hold, so does what it brings about.
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

    /// From which place on it holds anew because `q` goes on to hold: not if it has held up to there.
    fn opens(&self) -> Option<i64> {
        if self.broken.is_some() {
            return None;
        }
        let held = self.queue.back().map(|&(_, last)| last.saturating_add(1));
        self.open.filter(|&open| held.is_none_or(|held| open > held))
    }

    /// How many ranges are kept.
    pub(crate) fn kept(&self) -> usize {
        self.queue.len()
    }
}
