//! Bounded operators over time: what they keep, and what they say at a row.
//!
//! Time is measured on a doubled axis, on which an instant `t` is the place `2t` and the open span
//! right after it begins with the place `2t + 1`; a span that ends before `t` ends with the place
//! `2t - 1`. So the ends of an interval, open or closed, are whole numbers, and a truth that holds on
//! the places `x..=y` holds, seen from `a` to `b` later, on `x + 2a ..= y + 2b`.

use serde::{Deserialize, Serialize};
use std::collections::VecDeque;

use rondel_event::Rows;

/// The place of the instant `time`.
#[inline(always)]
pub(crate) fn instant(time: i64) -> i64 {
    time.saturating_mul(2)
}

/// A span of time as a distance between places.
#[inline(always)]
pub(crate) fn distance(span: u64) -> i64 {
    i64::try_from(span).unwrap_or(i64::MAX).saturating_mul(2)
}

/// No place: before all others.
pub(crate) const NEVER: i64 = i64::MIN;
/// After all others.
const ALWAYS: i64 = i64::MAX;

/// The place so far after another; a distance without end leads to no place.
#[inline(always)]
pub(crate) fn later(place: i64, distance: i64) -> i64 {
    if distance == ALWAYS { ALWAYS } else { place.saturating_add(distance) }
}

/// The time of the first moment at which something is different at `place`: the instant itself, or
/// the one that the open span begins with.
#[inline(always)]
pub(crate) fn moment_of(place: i64) -> i64 {
    place.div_euclid(2)
}

/// The two sides of a truth at some rows: at the instants, and on the spans that follow them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Sides {
    pub(crate) at: Rows,
    pub(crate) after: Rows,
}

/// Where the rows of an operator are in time.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Moments<'a> {
    /// The time of each row, never going back.
    pub(crate) times: &'a [i64],
    /// The time of the row before the first.
    pub(crate) before: i64,
}

/// `once[0, span] q`: all there is to know is how long the latest `q` still counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct TimedRecently {
    /// The distance.
    span: i64,
    /// The last place at which it holds for what `q` was up to now.
    until: i64,
    /// Whether `q` holds on the span that follows the last row.
    open: bool,
}

impl TimedRecently {
    pub(crate) fn new(span: u64) -> TimedRecently {
        TimedRecently { span: distance(span), until: NEVER, open: false }
    }

    /// `once[0, span) q`, with a span above 0.
    pub(crate) fn less_than(span: u64) -> TimedRecently {
        TimedRecently { span: distance(span).saturating_sub(1), until: NEVER, open: false }
    }

    /// The distance up to which a truth counts.
    pub(crate) fn span(&self) -> i64 {
        self.span
    }

    pub(crate) fn step(&mut self, q: Sides, moments: Moments<'_>) -> Sides {
        let Moments { times, mut before } = moments;
        let mut out = Sides::default();
        let rows = crate::ops::words::low(times.len() as u64);
        if (q.at | q.after) & rows == 0 && !self.open && self.until < instant(times[0]) {
            return out;
        }
        for (row, &time) in times.iter().enumerate() {
            let place = instant(time);
            if self.open && time > before {
                self.until = self.until.max(later(place - 1, self.span));
            }
            if q.at >> row & 1 == 1 {
                self.until = self.until.max(later(place, self.span));
            }
            self.open = q.after >> row & 1 == 1;
            out.at |= Rows::from(self.until >= place) << row;
            out.after |= Rows::from(self.open || self.until > place) << row;
            before = time;
        }
        out
    }

    /// When it changes by itself after the row at `now`, if it does.
    pub(crate) fn next_change(&self, now: i64) -> Option<i64> {
        next_change(self.until, self.open, now)
    }
}

/// When a truth that counts until a place changes by itself after the row at `now`.
pub(crate) fn next_change(until: i64, open: bool, now: i64) -> Option<i64> {
    let lasts = !open && until > instant(now) && until != ALWAYS;
    lasts.then(|| moment_of(until + 1))
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

    pub(crate) fn step(&mut self, p: Sides, q: Sides, moments: Moments<'_>) -> Sides {
        let Moments { times, mut before } = moments;
        let mut out = Sides::default();
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
        (change != ALWAYS).then(|| moment_of(change))
    }

    /// Forgets everything.
    pub(crate) fn clear(&mut self) {
        self.queue.clear();
        self.open = None;
        self.broken = false;
    }

    /// Whether there is nothing to remember.
    pub(crate) fn is_empty(&self) -> bool {
        self.queue.is_empty() && self.open.is_none()
    }

    /// What of it can still matter at the time `now` or later.
    pub(crate) fn left_at(&self, now: i64) -> ((Option<i64>, bool), impl Iterator<Item = &(i64, i64)>) {
        ((self.open, self.broken), self.queue.iter().skip_while(move |(_, last)| *last < instant(now)))
    }

    /// How many bytes are kept.
    pub(crate) fn bytes(&self) -> usize {
        self.queue.capacity() * size_of::<(i64, i64)>()
    }

    /// How many intervals are kept.
    pub(crate) fn kept(&self) -> usize {
        self.queue.len()
    }
}
