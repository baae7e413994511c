//! Measurements over the samples of a sliding window, one row at a time.
//!
//! A sample has a stamp: its time, or its position where a window counts steps. At a row with the
//! stamp `now` a window over `d` has the samples that are less than `d` old. Stamps do not decrease;
//! one that does counts as no older than what came before. Every operation is O(1), amortised.
//!
//! What samples have left and which have not depends on the rows with samples alone: rows in between
//! (of other topics, or where only time passes) may be there or not.

use std::collections::VecDeque;

use rondel_event::{Block, Rows};

use crate::columns::Values;
use crate::extreme::Greatest;

/// How many samples a window keeps. Of more it says nothing, until it is down to so many again.
pub(crate) const LIMIT: usize = 1_000_000;

/// How old something is.
#[inline(always)]
pub(crate) fn age(now: i64, stamp: i64) -> u64 {
    now.max(stamp).wrapping_sub(stamp) as u64
}

/// The stamps of the rows of a block.
#[derive(Clone, Copy)]
pub(crate) enum Stamps<'a> {
    /// The position of the first row.
    Positions(u64),
    /// Times, in order.
    Times(&'a Values<i64>),
}

impl Stamps<'_> {
    #[inline(always)]
    pub(crate) fn at(self, row: usize) -> i64 {
        match self {
            Stamps::Positions(first) => first.saturating_add(row as u64).min(i64::MAX as u64) as i64,
            Stamps::Times(times) => times[row],
        }
    }
}

/// The latest sample that a window cannot speak of, because its value is unknown or because there
/// was no room for it: while it is in the window, the measurement is unknown.
#[derive(Clone, Debug, Default)]
pub(crate) struct Blind {
    latest: Option<i64>,
    /// How many samples there was no room for.
    pub(crate) dropped: u64,
}

impl Blind {
    #[inline(always)]
    pub(crate) fn unknown(&mut self, stamp: i64) {
        self.latest = self.latest.max(Some(stamp));
    }

    /// A sample is left out that is older than all that are kept.
    pub(crate) fn drop(&mut self, stamp: i64) {
        self.unknown(stamp);
        self.dropped = self.dropped.saturating_add(1);
    }

    /// Forgets what is at least `over` old; says whether nothing is left.
    #[inline(always)]
    pub(crate) fn is_over(&mut self, now: i64, over: u64) -> bool {
        if self.latest.is_some_and(|stamp| age(now, stamp) >= over) {
            self.latest = None;
        }
        self.latest.is_none()
    }

    /// When it will be over, if ever.
    pub(crate) fn leaves(&self, over: u64) -> Option<i64> {
        self.latest?.checked_add_unsigned(over)
    }
}

/// When the first of the samples leaves a window, if ever.
fn first_leaves(oldest: Option<i64>, blind: &Blind, over: u64) -> Option<i64> {
    let leaves = oldest.and_then(|stamp| stamp.checked_add_unsigned(over));
    [leaves, blind.leaves(over)].into_iter().flatten().min()
}

/// How many samples there are.
#[derive(Clone, Debug)]
pub(crate) struct Count {
    over: u64,
    limit: usize,
    stamps: VecDeque<i64>,
    blind: Blind,
}

impl Count {
    pub(crate) fn new(over: u64, limit: usize) -> Count {
        Count { over, limit, stamps: VecDeque::new(), blind: Blind::default() }
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

    /// The rows of a block. Says where the count is known.
    pub(crate) fn step(
        &mut self,
        out: &mut Values<i64>,
        samples: Rows,
        stamps: Stamps<'_>,
        len: u32,
    ) -> Rows {
        rows(out, len, |i| self.row(stamps.at(i), samples >> i & 1 == 1))
    }

    /// The earliest time at which it changes by itself, after the time of the last row.
    pub(crate) fn next_change(&self) -> Option<i64> {
        first_leaves(self.stamps.front().copied(), &self.blind, self.over)
    }

    /// How many samples there was no room for.
    pub(crate) fn dropped(&self) -> u64 {
        self.blind.dropped
    }
}

/// The sum of integers. Unknown where it does not fit.
#[derive(Clone, Debug)]
pub(crate) struct SumInt {
    over: u64,
    limit: usize,
    samples: VecDeque<(i64, i64)>,
    /// A million times the greatest integer is far from its end.
    sum: i128,
    blind: Blind,
}

impl SumInt {
    pub(crate) fn new(over: u64, limit: usize) -> SumInt {
        SumInt { over, limit, samples: VecDeque::new(), sum: 0, blind: Blind::default() }
    }

    fn pop(&mut self) -> Option<i64> {
        let (stamp, value) = self.samples.pop_front()?;
        self.sum -= i128::from(value);
        Some(stamp)
    }

    /// The sum at a row, if it is known. The sample may be one whose value is unknown.
    #[inline(always)]
    pub(crate) fn row(&mut self, now: i64, sample: Option<Option<i64>>) -> Option<i64> {
        while self.samples.front().is_some_and(|&(stamp, _)| age(now, stamp) >= self.over) {
            self.pop();
        }
        match sample {
            Some(Some(value)) => {
                self.samples.push_back((now, value));
                self.sum += i128::from(value);
                if self.samples.len() > self.limit
                    && let Some(oldest) = self.pop()
                {
                    self.blind.drop(oldest);
                }
            }
            Some(None) => self.blind.unknown(now),
            None => {}
        }
        let known = self.blind.is_over(now, self.over);
        i64::try_from(self.sum).ok().filter(|_| known)
    }

    /// As [`Count::step`], with the values of the samples and where they are known.
    pub(crate) fn step(
        &mut self,
        out: &mut Values<i64>,
        x: &Values<i64>,
        [samples, known]: [Rows; 2],
        stamps: Stamps<'_>,
        len: u32,
    ) -> Rows {
        rows(out, len, |i| self.row(stamps.at(i), sample(x, samples, known, i)))
    }

    /// As [`Count::next_change`].
    pub(crate) fn next_change(&self) -> Option<i64> {
        first_leaves(self.samples.front().map(|s| s.0), &self.blind, self.over)
    }

    /// As [`Count::dropped`].
    pub(crate) fn dropped(&self) -> u64 {
        self.blind.dropped
    }
}

/// The sum of floats.
///
/// It is added up anew from the samples that are there, in twice the precision: nothing is ever
/// subtracted. What has left the window leaves no trace, be it large, infinite or NaN, and the
/// result is off by no more than its own last digit, unless the terms cancel out to less than
/// 2⁻⁵⁰ of what they were. Infinite where the terms added so far exceed the range.
#[derive(Clone, Debug)]
pub(crate) struct SumFloat {
    over: u64,
    limit: usize,
    /// The older samples, the oldest at the end, each with the sum from it to the first here.
    older: Vec<(i64, Twofold)>,
    /// The others, in order.
    newer: Vec<(i64, f64)>,
    newer_sum: Twofold,
    blind: Blind,
}

impl SumFloat {
    pub(crate) fn new(over: u64, limit: usize) -> SumFloat {
        SumFloat {
            over,
            limit,
            older: Vec::new(),
            newer: Vec::new(),
            newer_sum: Twofold::default(),
            blind: Blind::default(),
        }
    }

    fn oldest(&self) -> Option<i64> {
        match self.older.last() {
            Some(&(stamp, _)) => Some(stamp),
            None => self.newer.first().map(|&(stamp, _)| stamp),
        }
    }

    fn pop(&mut self) {
        if self.older.is_empty() {
            let mut sum = Twofold::default();
            let SumFloat { older, newer, .. } = self;
            older.extend(newer.drain(..).rev().map(|(stamp, value)| {
                sum.add(value);
                (stamp, sum)
            }));
            self.newer_sum = Twofold::default();
        }
        self.older.pop();
    }

    /// As [`SumInt::row`].
    #[inline(always)]
    pub(crate) fn row(&mut self, now: i64, sample: Option<Option<f64>>) -> Option<f64> {
        while self.oldest().is_some_and(|stamp| age(now, stamp) >= self.over) {
            self.pop();
        }
        match sample {
            Some(Some(value)) => {
                self.newer.push((now, value));
                self.newer_sum.add(value);
                if self.older.len() + self.newer.len() > self.limit
                    && let Some(oldest) = self.oldest()
                {
                    self.pop();
                    self.blind.drop(oldest);
                }
            }
            Some(None) => self.blind.unknown(now),
            None => {}
        }
        let older = self.older.last().map_or(Twofold::default(), |&(_, sum)| sum);
        self.blind.is_over(now, self.over).then(|| older.plus(self.newer_sum))
    }

    /// As [`SumInt::step`].
    pub(crate) fn step(
        &mut self,
        out: &mut Values<f64>,
        x: &Values<f64>,
        [samples, known]: [Rows; 2],
        stamps: Stamps<'_>,
        len: u32,
    ) -> Rows {
        rows(out, len, |i| self.row(stamps.at(i), sample(x, samples, known, i)))
    }

    /// As [`Count::next_change`].
    pub(crate) fn next_change(&self) -> Option<i64> {
        first_leaves(self.oldest(), &self.blind, self.over)
    }

    /// As [`Count::dropped`].
    pub(crate) fn dropped(&self) -> u64 {
        self.blind.dropped
    }
}

/// A sum, and what rounding took from it.
#[derive(Clone, Copy, Debug, Default)]
struct Twofold {
    sum: f64,
    rest: f64,
}

impl Twofold {
    #[inline(always)]
    fn add(&mut self, x: f64) {
        let sum = self.sum + x;
        if sum.is_finite() {
            // Knuth: what the sum has of each, and what that leaves of it, exactly.
            let of_x = sum - self.sum;
            let of_old = sum - of_x;
            self.rest += (self.sum - of_old) + (x - of_x);
        } else {
            self.rest = 0.0;
        }
        self.sum = sum;
    }

    #[inline(always)]
    fn plus(mut self, other: Twofold) -> f64 {
        self.add(other.sum);
        if self.sum.is_finite() { self.sum + (self.rest + other.rest) } else { self.sum }
    }
}

/// The least or the greatest sample; unknown of none.
///
/// The samples are kept as integers in the order of their values: of the least the complement, which
/// turns the order round.
#[derive(Clone, Debug)]
pub(crate) struct Extreme {
    least: bool,
    over: u64,
    greatest: Greatest<i64>,
    blind: Blind,
}

impl Extreme {
    pub(crate) fn new(least: bool, over: u64, limit: usize) -> Extreme {
        // A window over nothing does not occur; it would be empty.
        let greatest = Greatest::new(0, Some(over.saturating_sub(1)), limit);
        Extreme { least, over, greatest, blind: Blind::default() }
    }

    #[inline(always)]
    fn turned(&self, key: i64) -> i64 {
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
        let key = sample.map(|value| value.map(|x| self.turned(x)));
        self.row(now, key).map(|key| self.turned(key))
    }

    /// As [`SumInt::row`]. NaN, which is both less and greater than all others, while there is one
    /// in the window.
    #[inline(always)]
    pub(crate) fn float_row(&mut self, now: i64, sample: Option<Option<f64>>) -> Option<f64> {
        let key = sample.map(|value| {
            value.map(|x| if x.is_nan() { i64::MAX } else { self.turned(ordered(x.to_bits() as i64)) })
        });
        self.row(now, key).map(|key| f64::from_bits(ordered(self.turned(key)) as u64))
    }

    /// As [`SumInt::step`].
    pub(crate) fn step_ints(
        &mut self,
        out: &mut Values<i64>,
        x: &Values<i64>,
        [samples, known]: [Rows; 2],
        stamps: Stamps<'_>,
        len: u32,
    ) -> Rows {
        rows(out, len, |i| self.int_row(stamps.at(i), sample(x, samples, known, i)))
    }

    /// As [`SumInt::step`].
    pub(crate) fn step_floats(
        &mut self,
        out: &mut Values<f64>,
        x: &Values<f64>,
        [samples, known]: [Rows; 2],
        stamps: Stamps<'_>,
        len: u32,
    ) -> Rows {
        rows(out, len, |i| self.float_row(stamps.at(i), sample(x, samples, known, i)))
    }

    /// As [`Count::next_change`].
    pub(crate) fn next_change(&self) -> Option<i64> {
        [self.greatest.next_change(), self.blind.leaves(self.over)].into_iter().flatten().min()
    }

    /// As [`Count::dropped`].
    pub(crate) fn dropped(&self) -> u64 {
        self.greatest.dropped()
    }
}

/// The bits of floats as integers in their order, and back: those of negative numbers count down.
#[inline(always)]
fn ordered(bits: i64) -> i64 {
    bits ^ (bits >> 63) & i64::MAX
}

/// The sample of a row, if it is one, and its value, if it is known.
#[inline(always)]
fn sample<T: Copy>(x: &Values<T>, samples: Rows, known: Rows, row: usize) -> Option<Option<T>> {
    (samples >> row & 1 == 1).then(|| (known >> row & 1 == 1).then_some(x[row]))
}

/// Fills a column with what is known; says where that is.
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
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// A row: how much later it is, and its sample.
    type Row = (u64, Option<Option<i64>>);

    fn trace() -> impl Strategy<Value = Vec<Row>> {
        let extreme = proptest::sample::select(vec![i64::MAX, i64::MIN, i64::MIN + 1]);
        let value = prop_oneof![20 => (-9..9_i64).boxed(), 1 => extreme.boxed()];
        let sample = proptest::option::weighted(0.7, proptest::option::weighted(0.95, value));
        let later = prop_oneof![2 => 0..3_u64, 1 => 0..9_u64];
        proptest::collection::vec((later, sample), 1..150)
    }

    /// For every row its stamp and the samples in the window. None where it is unknown.
    fn windows(trace: &[Row], over: u64, limit: usize, start: i64) -> Vec<(i64, Option<Vec<i64>>)> {
        let mut now = start;
        let mut seen: Vec<(i64, Option<i64>)> = Vec::new();
        let mut out = Vec::new();
        for (later, sample) in trace {
            now = now.saturating_add_unsigned(*later);
            seen.extend(sample.map(|value| (now, value)));
            let in_window = |stamp: i64| i128::from(stamp) > i128::from(now) - i128::from(over);
            let values: Vec<Option<i64>> =
                seen.iter().filter(|(stamp, _)| in_window(*stamp)).map(|s| s.1).collect();
            let known = values.iter().flatten().count();
            let values = values.into_iter().collect::<Option<Vec<i64>>>();
            out.push((now, values.filter(|_| known <= limit)));
        }
        out
    }

    fn float(x: i64) -> f64 {
        match x {
            i64::MAX => f64::INFINITY,
            i64::MIN => f64::NEG_INFINITY,
            -9223372036854775807 => f64::NAN,
            0 => -0.0,
            x => x as f64 / 8.0,
        }
    }

    fn fold(values: &[i64], f: impl Fn(f64, f64) -> f64) -> Option<f64> {
        let mut values = values.iter().map(|&x| float(x));
        let first = values.next()?;
        Some(values.fold(first, |a, b| if a.is_nan() || b.is_nan() { f64::NAN } else { f(a, b) }))
    }

    fn same(a: Option<f64>, b: Option<f64>) -> bool {
        match (a, b) {
            (Some(a), Some(b)) => a == b || a.is_nan() && b.is_nan(),
            (a, b) => a.is_none() && b.is_none(),
        }
    }

    proptest! {
        #[test]
        fn measure_what_is_in_the_window(
            trace in trace(),
            over in 1..20_u64,
            limit in proptest::sample::select(vec![1_000, 3]),
            start in proptest::sample::select(vec![0, i64::MIN, i64::MAX - 40]),
        ) {
            let mut count = Count::new(over, limit);
            let mut ints = SumInt::new(over, limit);
            let mut floats = SumFloat::new(over, limit);
            let mut extremes = [true, false].map(|least| Extreme::new(least, over, 1_000));
            let mut float_extremes = extremes.clone();
            let unlimited = windows(&trace, over, usize::MAX, start);
            for ((row, (now, values)), (_, all)) in trace.iter().zip(windows(&trace, over, limit, start)).zip(unlimited) {
                let known = count.row(now, row.1.is_some_and(|value| value.is_some()));
                if let Some(values) = &values {
                    prop_assert_eq!(known, Some(values.len() as i64));
                }
                let sum = values.as_ref().map(|v| v.iter().map(|&x| i128::from(x)).sum::<i128>());
                prop_assert_eq!(ints.row(now, row.1), sum.and_then(|sum| i64::try_from(sum).ok()));
                let sum = values.map(|v| v.iter().map(|&x| float(x)).sum::<f64>());
                let found = floats.row(now, row.1.map(|value| value.map(float)));
                prop_assert!(same(found, sum), "{:?} {:?}", found, sum);

                let expected = [all.as_ref().and_then(|v| v.iter().min()), all.as_ref().and_then(|v| v.iter().max())];
                for (extreme, expected) in extremes.iter_mut().zip(expected) {
                    prop_assert_eq!(extreme.int_row(now, row.1), expected.copied());
                }
                let all = all.unwrap_or_default();
                for (extreme, expected) in float_extremes.iter_mut().zip([fold(&all, f64::min), fold(&all, f64::max)]) {
                    let found = extreme.float_row(now, row.1.map(|value| value.map(float)));
                    prop_assert!(same(found, expected), "{:?} {:?}", found, expected);
                }
            }
        }

        /// Between one row and the next change nothing changes, and what the next change is does not
        /// depend on rows without samples.
        #[test]
        fn changes_are_foreseen(trace in trace(), over in 1..20_u64) {
            let mut sum = SumFloat::new(over, 5);
            let mut rows_between = sum.clone();
            let mut least = Extreme::new(true, over, 5);
            let mut now = 0;
            for (later, sample) in trace {
                let next = now + later as i64;
                let (held, held_least) = (sum.clone().row(now, None), least.clone().int_row(now, None));
                for t in now..next {
                    rows_between.row(t, None);
                    let before = |change: Option<i64>| change.is_none_or(|change| t < change);
                    if before(sum.next_change()) {
                        prop_assert_eq!(sum.clone().row(t, None), held);
                    }
                    if before(least.next_change()) {
                        prop_assert_eq!(least.clone().int_row(t, None), held_least);
                    }
                }
                now = next;
                let value = sample.map(|value| value.map(|x| x as f64 * 0.1));
                let found = sum.row(now, value);
                prop_assert_eq!(found.map(f64::to_bits), rows_between.row(now, value).map(f64::to_bits));
                least.int_row(now, sample);
                for change in [sum.next_change(), least.next_change()].into_iter().flatten() {
                    prop_assert!(change > now);
                }
            }
        }
    }

    #[test]
    fn a_sum_does_not_drift() {
        let mut sum = SumFloat::new(7, LIMIT);
        for i in 0..100_000_i64 {
            let x = |i: i64| if i % 5 == 0 { 1e17 } else { 0.1 * i as f64 };
            let found = sum.row(i, Some(Some(x(i)))).unwrap();
            let large = (i - 6..=i).filter(|i| *i >= 0 && i % 5 == 0).count() as f64 * 1e17;
            let small: f64 = (i - 6..=i).filter(|i| *i >= 0 && i % 5 != 0).map(x).sum();
            let error = (found - large) - small;
            assert!(error.abs() <= 16.0, "{i}: {found} is off by {error}");
        }
        // The large ones are gone.
        let found = sum.row(100_004, Some(Some(0.25))).unwrap();
        assert!((found - (0.1 * 99_998.0 + 0.1 * 99_999.0 + 0.25)).abs() < 1e-10);
    }

    #[test]
    fn what_there_is_no_room_for_is_counted() {
        let mut count = Count::new(10, 3);
        let known: Vec<_> = (0..6).map(|t| count.row(t, true)).collect();
        assert_eq!(known, [Some(1), Some(2), Some(3), None, None, None]);
        assert_eq!(count.dropped(), 3);
        assert_eq!((count.row(11, false), count.row(12, false)), (None, Some(3)));
        assert_eq!(count.row(13, false), Some(2));
    }
}
