//! `once[0,b] q`: true while `q` held within the last `b`. `historically` is `not once not`.
//!
//! | | state | kernel |
//! |---|---|---|
//! | in steps | number of further rows in which it holds: [`Recently`] | [`Recently::step`], 64 rows at a time, or [`recently_gathered`], one row per instance |
//! | in points and dense time | last place at which it holds: [`TimedRecently`] | [`TimedRecently::step`], or [`TimedRecently::step_gathered`], one row at a time |
//! | robustness, in steps and points | maximum within the bounds: [`Robust`] | [`Robust::row`], as a maximum over a window |
//!
//! The saved form of each is its state, of a fixed size. A lower bound is a
//! [`Delay`](crate::ops::delay::Delay) of the operand; robustness in dense time is that of
//! [`since`](crate::ops::since).

use serde::{Deserialize, Serialize};

use rondel_event::Rows;

use crate::ops::columns::{Values, rows_where};
use crate::ops::extreme::Greatest;
use crate::ops::stamps::Stamps;
use crate::ops::timed::{ALWAYS, NEVER, RowTimes, TruthHalves, distance, instant, later, time_of};
use crate::ops::varying::Varying;
use crate::ops::words::low;

/// State of `once[0, span] q` in steps.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub(crate) struct Recently {
    /// Number of rows that it holds after a row with `q`.
    pub(crate) span: u64,
    /// Number of further rows that it holds without another `q`.
    pub(crate) left: u64,
}

impl Recently {
    #[inline(always)]
    pub(crate) fn step(&mut self, q: Rows, len: u32, rows: Rows) -> Rows {
        let q = q & rows;
        let still = low(self.left);
        // Only the latest `q` matters: it lasts longest.
        let Some(latest) = q.checked_ilog2() else {
            self.left = self.left.saturating_sub(u64::from(len));
            return still;
        };
        self.left = self.span.saturating_sub(u64::from(len - 1 - latest));
        // A single row, as live messages are, needs no smear.
        still | if len == 1 { q } else { smear(q, self.span) }
    }
}

/// `once[0, span] q` over gathered rows, one per instance; `left` holds the number of further rows.
#[inline(always)]
pub(crate) fn recently_gathered(q: Rows, span: u64, left: &mut [u64]) -> Rows {
    let out = q | rows_where(left.len() as u32, |i| left[i] != 0);
    for (i, left) in left.iter_mut().enumerate() {
        *left = if q >> i & 1 == 1 { span } else { left.saturating_sub(1) };
    }
    out
}

/// Every set bit together with the `span` bits above it.
#[inline(always)]
fn smear(word: Rows, span: u64) -> Rows {
    if span >= 63 {
        // `-x` has the bits of `!x` above the lowest set bit of `x`, and that bit itself.
        return word | word.wrapping_neg();
    }
    // Each step doubles the run above every set bit; the last step overlaps.
    let wanted = span as u32 + 1;
    let (mut out, mut have) = (word, 1);
    while have * 2 <= wanted {
        out |= out << have;
        have *= 2;
    }
    out | out << (wanted - have)
}

/// State of `once[0, span] q` in points and dense time: the end of the latest `q`'s effect.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct TimedRecently {
    /// The span, as a distance.
    span: i64,
    /// Last place at which it holds without another `q`.
    until: i64,
    /// Whether `q` holds on the interval after the last row.
    open: bool,
}

impl TimedRecently {
    pub(crate) fn new(span: u64) -> TimedRecently {
        TimedRecently { span: distance(span), until: NEVER, open: false }
    }

    /// State of `once[0, span) q`, with a span above 0.
    pub(crate) fn less_than(span: u64) -> TimedRecently {
        TimedRecently { span: distance(span).saturating_sub(1), until: NEVER, open: false }
    }

    /// Last place at which it holds without another `q`, if any, and whether `q` holds on the interval after
    /// the last row.
    pub(crate) fn remembered(&self) -> (Option<i64>, bool) {
        (Some(self.until).filter(|until| *until != NEVER), self.open)
    }

    pub(crate) fn step(&mut self, q: TruthHalves, row_times: RowTimes<'_>) -> TruthHalves {
        let RowTimes { times, mut before } = row_times;
        let mut out = TruthHalves::default();
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

    /// [`TimedRecently::step`] over gathered rows, one per instance: `until` and `open` hold the state,
    /// `before` the times of the rows before. Of `self`, only the span is used.
    #[inline(always)]
    pub(crate) fn step_gathered(
        &self,
        q: TruthHalves,
        until: &mut Values<u64>,
        open: &mut Rows,
        times: &[i64],
        before: &Values<u64>,
    ) -> TruthHalves {
        let span = self.span;
        let open = std::mem::replace(open, q.after);
        // Mostly no bit is set.
        if open != 0 {
            for (row, (until, (&time, &before))) in until.iter_mut().zip(times.iter().zip(before)).enumerate()
            {
                let end = later(instant(time) - 1, span);
                let closes = open >> row & 1 == 1 && time != before as i64;
                *until = if closes { (*until as i64).max(end) as u64 } else { *until };
            }
        }
        let mut out = TruthHalves { at: 0, after: q.after };
        for (row, (until, &time)) in until.iter_mut().zip(times).enumerate() {
            let place = instant(time);
            let last = *until as i64;
            let last = if q.at >> row & 1 == 1 { last.max(later(place, span)) } else { last };
            *until = last as u64;
            out.at |= Rows::from(last >= place) << row;
            out.after |= Rows::from(last > place) << row;
        }
        out
    }

    /// Time of the next change after the row at `now` without another row.
    pub(crate) fn next_change(&self, now: i64) -> Option<i64> {
        next_change(self.until, self.open, now)
    }
}

/// Time of the next change, after the row at `now`, of a truth that lasts up to a place.
pub(crate) fn next_change(until: i64, open: bool, now: i64) -> Option<i64> {
    let lasts = !open && until > instant(now) && until != ALWAYS;
    lasts.then(|| time_of(until + 1))
}

/// State of the robustness of `once[a,b] q`: the maximum within the bounds.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Robust {
    greatest: Greatest<f64>,
    /// Output while a value within the bounds was dropped.
    unknown: f64,
}

impl Robust {
    pub(crate) fn new(lower: u64, upper: Option<u64>, unknown: f64, limit: usize) -> Robust {
        Robust { greatest: Greatest::new(lower, upper, limit), unknown }
    }

    /// Evaluates the rows of a block.
    pub(crate) fn step(&mut self, out: &mut Values<f64>, x: &Values<f64>, stamps: Stamps<'_>, len: u32) {
        for (i, (out, &x)) in out.iter_mut().zip(x).take(len as usize).enumerate() {
            *out = self.row(stamps.at(i), x);
        }
    }

    /// Evaluates a row.
    #[inline(always)]
    pub(crate) fn row(&mut self, now: i64, x: f64) -> f64 {
        self.greatest.push(now, x);
        self.greatest.at_or(now, f64::NEG_INFINITY, self.unknown)
    }
}

impl Varying for Robust {
    fn bytes(&self) -> usize {
        self.greatest.bytes()
    }

    fn dropped(&self) -> u64 {
        self.greatest.dropped()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ops::words::tests::samples;

    #[test]
    fn smear_covers_the_span() {
        for word in samples() {
            for span in [0, 1, 2, 3, 6, 7, 8, 31, 32, 61, 62, 63, 64, 1000, u64::MAX] {
                let out = smear(word, span);
                for i in 0..64_u32 {
                    let expected = (0..=i).any(|j| word >> j & 1 == 1 && u64::from(i - j) <= span);
                    assert_eq!(out >> i & 1 == 1, expected, "{word:x} {span} {i}");
                }
            }
        }
    }
}
