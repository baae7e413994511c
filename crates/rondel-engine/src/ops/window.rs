//! Aggregates over the samples of a sliding window, one row at a time.
//!
//! A sample has a stamp: its time, or its position where a window counts steps. At a row with the stamp
//! `now`, a window of length `d` contains the samples less than `d` old. Stamps do not decrease; one that
//! does is clamped. Every operation takes O(1), amortised.
//!
//! Which samples have left depends on the rows with samples only: rows in between (of other topics, or of
//! time alone) make no difference.

mod deviation;
mod ends;
mod integral;
mod ordered;
mod sorted;
mod stacks;
mod sum;

use serde::{Deserialize, Serialize};
use std::collections::VecDeque;

use rondel_event::{Block, Rows};

use crate::ir::node::{Kind, Measure};
use crate::ir::wire::Wire;
use crate::ops::columns::Values;
use crate::ops::extreme::Greatest;
use crate::ops::stamps::{BlindSpot, Stamps, age};
use crate::ops::varying::Varying;

use deviation::Deviation;
use ends::Ends;
use integral::Integral;
use ordered::{HUNDRED, OrderedSamples};
use sum::{SumFloat, SumInt};

/// Limit of samples in a window. Beyond it the result is unknown until enough samples have left.
pub(crate) const LIMIT: usize = 1_000_000;

/// Time at which the oldest sample leaves a window, if there is one.
fn first_leaves(oldest: Option<i64>, blind: &BlindSpot, over: u64) -> Option<i64> {
    let leaves = oldest.and_then(|stamp| stamp.checked_add_unsigned(over));
    [leaves, blind.leaves(over)].into_iter().flatten().min()
}

/// Number of samples in a window.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Count {
    over: u64,
    limit: usize,
    stamps: VecDeque<i64>,
    blind: BlindSpot,
}

impl Count {
    pub(crate) fn new(over: u64, limit: usize) -> Count {
        Count { over, limit, stamps: VecDeque::new(), blind: BlindSpot::default() }
    }

    /// The count at a row, if it is known.
    #[inline(always)]
    pub(crate) fn row(&mut self, now: i64, sample: bool) -> Option<i64> {
        while self.stamps.front().is_some_and(|&stamp| age(now, stamp) >= self.over) {
            self.stamps.pop_front();
        }
        if sample {
            self.stamps.push_back(now);
            if self.stamps.len() > self.limit
                && let Some(oldest) = self.stamps.pop_front()
            {
                self.blind.drop(oldest);
            }
        }
        self.blind.is_over(now, self.over).then_some(self.stamps.len() as i64)
    }

    /// Earliest time, after that of the last row, at which it changes without a new sample.
    pub(crate) fn next_change(&self) -> Option<i64> {
        first_leaves(self.stamps.front().copied(), &self.blind, self.over)
    }
}

/// Operands of a window.
#[derive(Clone, Copy, Debug)]
pub(crate) struct WindowOperands {
    /// The column; unused by a count.
    pub(crate) x: u32,
    /// The rows with a sample.
    pub(crate) samples: Wire,
    /// The rows in which the column is known.
    pub(crate) known: Wire,
    /// Whether stamps are times instead of positions.
    pub(crate) timed: bool,
}

/// State of an aggregate.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) enum Window {
    Count(Count),
    SumInt(SumInt),
    SumFloat(SumFloat),
    ExtremeInt(Extreme),
    ExtremeFloat(Extreme),
    DistinctInt(OrderedSamples),
    DistinctFloat(OrderedSamples),
    Quantile(u32, OrderedSamples),
    Deviation(Deviation),
    /// The newest sample if true, else the oldest.
    EndInt(bool, Ends),
    EndFloat(bool, Ends),
    Derivative(Ends),
    Integral(Integral),
}

impl Window {
    pub(crate) fn new(measure: Measure, kind: Kind, over: u64) -> Window {
        let extreme = |least| Extreme::new(least, over, LIMIT);
        match (measure, kind) {
            (Measure::Count, _) => Window::Count(Count::new(over, LIMIT)),
            (Measure::Sum, Kind::Float) => Window::SumFloat(SumFloat::new(over, LIMIT)),
            (Measure::Sum, _) => Window::SumInt(SumInt::new(over, LIMIT)),
            (Measure::Distinct, _) => Window::DistinctInt(OrderedSamples::new(over, LIMIT)),
            (Measure::DistinctFloats, _) => Window::DistinctFloat(OrderedSamples::new(over, LIMIT)),
            (Measure::Percentile(part), _) => Window::Quantile(part, OrderedSamples::new(over, LIMIT)),
            (Measure::Median, _) => Window::Quantile(HUNDRED / 2, OrderedSamples::new(over, LIMIT)),
            (Measure::Deviation, _) => Window::Deviation(Deviation::new(over, LIMIT)),
            (Measure::Derivative, _) => Window::Derivative(Ends::new(over, LIMIT)),
            (Measure::Integral, _) => Window::Integral(Integral::new(over, LIMIT)),
            (Measure::First | Measure::Last, kind) => {
                let (last, ends) = (measure == Measure::Last, Ends::new(over, LIMIT));
                if kind == Kind::Float { Window::EndFloat(last, ends) } else { Window::EndInt(last, ends) }
            }
            (measure, Kind::Float) => Window::ExtremeFloat(extreme(measure == Measure::Least)),
            (measure, _) => Window::ExtremeInt(extreme(measure == Measure::Least)),
        }
    }

    /// The kind of column that it writes.
    pub(crate) fn kind(&self) -> Kind {
        match self {
            Window::SumFloat(_)
            | Window::ExtremeFloat(_)
            | Window::Quantile(..)
            | Window::Deviation(_)
            | Window::EndFloat(..)
            | Window::Derivative(_)
            | Window::Integral(_) => Kind::Float,
            Window::Count(_)
            | Window::SumInt(_)
            | Window::ExtremeInt(_)
            | Window::DistinctInt(_)
            | Window::DistinctFloat(_)
            | Window::EndInt(..) => Kind::Int,
        }
    }

    /// Whether the operand is a column of floats and the result one of integers.
    pub(crate) fn counts_floats(&self) -> bool {
        matches!(self, Window::DistinctFloat(_))
    }

    /// As [`Window::step_ints`], for a window that [counts floats](Window::counts_floats).
    pub(crate) fn step_counts(
        &mut self,
        out: &mut Values<i64>,
        x: Option<&Values<f64>>,
        [samples, known]: [Rows; 2],
        stamps: Stamps<'_>,
        len: u32,
    ) -> Rows {
        match (self, x) {
            (Window::DistinctFloat(distinct), Some(x)) => rows(out, len, |i| {
                let key = sample(x, samples, known, i).map(|value| value.map(ordered::key));
                distinct.distinct_row(stamps.at(i), key)
            }),
            _ => 0,
        }
    }

    /// Evaluates the rows of a block. Returns the rows in which the result is known.
    pub(crate) fn step_ints(
        &mut self,
        out: &mut Values<i64>,
        x: Option<&Values<i64>>,
        [samples, known]: [Rows; 2],
        stamps: Stamps<'_>,
        len: u32,
    ) -> Rows {
        match (self, x) {
            (Window::Count(count), _) => rows(out, len, |i| count.row(stamps.at(i), samples >> i & 1 == 1)),
            (Window::SumInt(sum), Some(x)) => {
                rows(out, len, |i| sum.row(stamps.at(i), sample(x, samples, known, i)))
            }
            (Window::ExtremeInt(extreme), Some(x)) => {
                rows(out, len, |i| extreme.int_row(stamps.at(i), sample(x, samples, known, i)))
            }
            (Window::DistinctInt(distinct), Some(x)) => {
                rows(out, len, |i| distinct.distinct_row(stamps.at(i), sample(x, samples, known, i)))
            }
            (Window::EndInt(last, ends), Some(x)) => {
                rows(out, len, |i| ends.int_row(*last, stamps.at(i), sample(x, samples, known, i)))
            }
            _ => 0,
        }
    }

    /// As [`Window::step_ints`], for a column of floats.
    pub(crate) fn step_floats(
        &mut self,
        out: &mut Values<f64>,
        x: Option<&Values<f64>>,
        [samples, known]: [Rows; 2],
        stamps: Stamps<'_>,
        len: u32,
    ) -> Rows {
        match (self, x) {
            (Window::SumFloat(sum), Some(x)) => {
                rows(out, len, |i| sum.row(stamps.at(i), sample(x, samples, known, i)))
            }
            (Window::ExtremeFloat(extreme), Some(x)) => {
                rows(out, len, |i| extreme.float_row(stamps.at(i), sample(x, samples, known, i)))
            }
            (Window::Quantile(part, ordered), Some(x)) => {
                rows(out, len, |i| ordered.quantile_row(*part, stamps.at(i), sample(x, samples, known, i)))
            }
            (Window::Deviation(deviation), Some(x)) => {
                rows(out, len, |i| deviation.row(stamps.at(i), sample(x, samples, known, i)))
            }
            (Window::EndFloat(last, ends), Some(x)) => {
                rows(out, len, |i| ends.float_row(*last, stamps.at(i), sample(x, samples, known, i)))
            }
            (Window::Derivative(ends), Some(x)) => {
                rows(out, len, |i| ends.derivative_row(stamps.at(i), sample(x, samples, known, i)))
            }
            (Window::Integral(integral), Some(x)) => {
                rows(out, len, |i| integral.row(stamps.at(i), sample(x, samples, known, i)))
            }
            _ => 0,
        }
    }

    /// Earliest time, after that of the last row, at which it changes without a new sample.
    pub(crate) fn next_change(&self) -> Option<i64> {
        match self {
            Window::Count(count) => count.next_change(),
            Window::SumInt(sum) => sum.next_change(),
            Window::SumFloat(sum) => sum.next_change(),
            Window::ExtremeInt(extreme) | Window::ExtremeFloat(extreme) => extreme.next_change(),
            Window::DistinctInt(x) | Window::DistinctFloat(x) | Window::Quantile(_, x) => x.next_change(),
            Window::Deviation(x) => x.next_change(),
            Window::EndInt(_, x) | Window::EndFloat(_, x) | Window::Derivative(x) => x.next_change(),
            Window::Integral(x) => x.next_change(),
        }
    }

    /// Whether all samples have left at `now`.
    pub(crate) fn is_over(&self, now: i64) -> bool {
        let (newest, blind, over) = match self {
            Window::Count(count) => (count.stamps.back().copied(), &count.blind, count.over),
            Window::SumInt(sum) => (sum.samples.back().map(|sample| sample.0), &sum.blind, sum.over),
            Window::SumFloat(sum) => (sum.newest(), &sum.blind, sum.over),
            Window::ExtremeInt(extreme) | Window::ExtremeFloat(extreme) => {
                (extreme.greatest.newest(), &extreme.blind, extreme.over)
            }
            Window::DistinctInt(x) | Window::DistinctFloat(x) | Window::Quantile(_, x) => {
                (x.newest(), &x.blind, x.over)
            }
            Window::Deviation(x) => (x.newest(), &x.blind, x.over),
            Window::EndInt(_, x) | Window::EndFloat(_, x) | Window::Derivative(x) => {
                (x.newest(), &x.blind, x.over)
            }
            Window::Integral(x) => (x.newest(), &x.blind, x.over),
        };
        newest.into_iter().chain(blind.latest()).all(|stamp| age(now, stamp) >= over)
    }
}

impl Varying for Window {
    fn bytes(&self) -> usize {
        match self {
            Window::Count(count) => count.stamps.capacity() * size_of::<i64>(),
            Window::SumInt(sum) => sum.samples.capacity() * size_of::<(i64, i64)>(),
            Window::SumFloat(sum) => sum.bytes(),
            Window::ExtremeInt(extreme) | Window::ExtremeFloat(extreme) => extreme.greatest.bytes(),
            Window::DistinctInt(x) | Window::DistinctFloat(x) | Window::Quantile(_, x) => x.bytes(),
            Window::Deviation(x) => x.bytes(),
            Window::EndInt(_, x) | Window::EndFloat(_, x) | Window::Derivative(x) => x.bytes(),
            Window::Integral(x) => x.bytes(),
        }
    }

    fn dropped(&self) -> u64 {
        match self {
            Window::Count(count) => count.blind.dropped,
            Window::SumInt(sum) => sum.blind.dropped,
            Window::SumFloat(sum) => sum.blind.dropped,
            Window::ExtremeInt(extreme) | Window::ExtremeFloat(extreme) => extreme.greatest.dropped(),
            Window::DistinctInt(x) | Window::DistinctFloat(x) | Window::Quantile(_, x) => x.blind.dropped,
            Window::Deviation(x) => x.blind.dropped,
            Window::EndInt(_, x) | Window::EndFloat(_, x) | Window::Derivative(x) => x.blind.dropped,
            Window::Integral(x) => x.blind.dropped,
        }
    }
}

/// Minimum or maximum of the samples; unknown without samples.
///
/// Samples are kept as order-preserving integers; the minimum uses their complement, which reverses the
/// order.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Extreme {
    least: bool,
    over: u64,
    greatest: Greatest<i64>,
    blind: BlindSpot,
}

impl Extreme {
    pub(crate) fn new(least: bool, over: u64, limit: usize) -> Extreme {
        // Windows of length zero do not occur; one would be empty.
        let greatest = Greatest::new(0, Some(over.saturating_sub(1)), limit);
        Extreme { least, over, greatest, blind: BlindSpot::default() }
    }

    #[inline(always)]
    fn oriented(&self, key: i64) -> i64 {
        if self.least { !key } else { key }
    }

    #[inline(always)]
    fn row(&mut self, now: i64, sample: Option<Option<i64>>) -> Option<i64> {
        match sample {
            Some(Some(key)) => self.greatest.push(now, key),
            Some(None) => self.blind.unknown(now),
            None => {}
        }
        let known = self.blind.is_over(now, self.over);
        self.greatest.at(now).filter(|_| known)
    }

    /// As [`SumInt::row`].
    #[inline(always)]
    pub(crate) fn int_row(&mut self, now: i64, sample: Option<Option<i64>>) -> Option<i64> {
        let key = sample.map(|value| value.map(|x| self.oriented(x)));
        self.row(now, key).map(|key| self.oriented(key))
    }

    /// As [`SumInt::row`]. NaN while a NaN is in the window.
    #[inline(always)]
    pub(crate) fn float_row(&mut self, now: i64, sample: Option<Option<f64>>) -> Option<f64> {
        let key = sample.map(|value| {
            value.map(|x| if x.is_nan() { i64::MAX } else { self.oriented(ordered(x.to_bits() as i64)) })
        });
        self.row(now, key).map(|key| f64::from_bits(ordered(self.oriented(key)) as u64))
    }

    /// As [`Count::next_change`].
    pub(crate) fn next_change(&self) -> Option<i64> {
        [self.greatest.next_change(), self.blind.leaves(self.over)].into_iter().flatten().min()
    }
}

/// Maps the bits of floats to integers in the same order, and back: bits of negative numbers are inverted.
#[inline(always)]
fn ordered(bits: i64) -> i64 {
    bits ^ (bits >> 63) & i64::MAX
}

/// The sample of a row, if it has one; none inside if its value is unknown.
#[inline(always)]
fn sample<T: Copy>(x: &Values<T>, samples: Rows, known: Rows, row: usize) -> Option<Option<T>> {
    (samples >> row & 1 == 1).then(|| (known >> row & 1 == 1).then_some(x[row]))
}

/// Writes the known values to a column. Returns their rows.
#[inline(always)]
fn rows<T>(out: &mut Values<T>, len: u32, mut row: impl FnMut(usize) -> Option<T>) -> Rows {
    let mut known = 0;
    for (i, out) in out.iter_mut().enumerate().take((len as usize).min(Block::CAPACITY)) {
        if let Some(value) = row(i) {
            *out = value;
            known |= 1 << i;
        }
    }
    known
}

#[cfg(test)]
mod tests;
