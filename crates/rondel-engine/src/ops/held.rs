//! Held values: the last of a field, the one before, the one at the last tick of a clock.
//!
//! | | state | kernel over rows of one instance | kernel over gathered rows, one per instance |
//! |---|---|---|---|
//! | the last value of a field | [`Held`] | [`hold`] | [`hold_gathered`] |
//! | the value before | [`Latched`] | [`latch`] | [`latch_gathered`] |
//! | the value at the last tick | the value | [`sample`] | [`sample_gathered`] |
//!
//! The saved form of each is its state; texts are held in [`texts`](crate::ops::texts). Held values change at
//! events only.

use rondel_event::{Column, Rows};
use serde::{Deserialize, Serialize};

use crate::ops::columns::{FEW, Values};
use crate::ops::rows::RowView;
use crate::ops::since::{since, since_gathered};
use crate::ops::words;

/// A value that an instance stores as a word.
pub(crate) trait Word: Copy {
    fn to_word(self) -> u64;
    fn of_word(word: u64) -> Self;
}

impl Word for i64 {
    #[inline(always)]
    fn to_word(self) -> u64 {
        self as u64
    }

    #[inline(always)]
    fn of_word(word: u64) -> i64 {
        word as i64
    }
}

impl Word for f64 {
    #[inline(always)]
    fn to_word(self) -> u64 {
        self.to_bits()
    }

    #[inline(always)]
    fn of_word(word: u64) -> f64 {
        f64::from_bits(word)
    }
}

/// The last value of a field.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize)]
pub(crate) struct Held<T> {
    pub(crate) value: T,
    /// 1 if there is a value, else 0.
    pub(crate) known: u64,
}

/// Output of a latch, and its output after the next tick.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize)]
pub(crate) struct Latched<T> {
    pub(crate) now: T,
    pub(crate) next: T,
}

/// Writes values that persist between steps. `value` maps the value before a step to the value at it.
#[inline(always)]
fn fill<T: Copy>(
    out: &mut Values<T>,
    steps: Rows,
    first: T,
    len: usize,
    mut value: impl FnMut(usize) -> T,
) -> T {
    let (mut rest, mut start, mut last) = (steps, 0, first);
    while rest != 0 {
        let row = rest.trailing_zeros() as usize;
        rest &= rest - 1;
        out[start..row].fill(last);
        (start, last) = (row, value(row));
    }
    out[start..len].fill(last);
    last
}

/// Holds the last value of a field. Writes the rows in which it may change, and returns those in which it is
/// known.
#[inline(always)]
pub(crate) fn hold<T: Copy>(
    out: &mut Values<T>,
    steps: &mut Rows,
    column: &Column<T>,
    held: &mut Held<T>,
    view: &RowView<'_>,
) -> Rows {
    let RowView { len, rows, .. } = *view;
    let (present, valid) = (view.of_events(column.present), view.of_events(column.valid));
    let valid = valid & present & rows;
    let n = len as usize;
    if valid == rows {
        let start = view.start as usize;
        out[..n].copy_from_slice(&column.values[start..start + n]);
    } else if valid.count_ones() <= FEW {
        fill(out, valid, held.value, n, |i| column.values[view.event_row(i)]);
    } else {
        let mut value = held.value;
        for (i, out) in out[..n].iter_mut().enumerate() {
            if valid >> i & 1 == 1 {
                value = column.values[view.event_row(i)];
            }
            *out = value;
        }
    }
    held.value = out[n - 1];
    *steps = valid | 1;
    let known = since(!present, valid, held.known);
    held.known = words::last(known, len);
    known
}

/// [`hold`] over gathered rows, one per instance. `kept` and `known` hold the state; unknown values are kept
/// as zero, like those that never were.
#[inline(always)]
pub(crate) fn hold_gathered<T: Word>(
    out: &mut Values<T>,
    column: &Column<T>,
    kept: &mut Values<u64>,
    known: &mut Rows,
    rows: Rows,
    len: u32,
) -> Rows {
    let valid = column.valid & column.present & rows;
    let known = since_gathered(!column.present, valid, known);
    for i in 0..len as usize {
        out[i] = if valid >> i & 1 == 1 { column.values[i] } else { T::of_word(kept[i]) };
        kept[i] = if known >> i & 1 == 1 { out[i].to_word() } else { 0 };
    }
    known
}

/// In rows of the clock, the value of `x` one row before; held in the others.
#[inline(always)]
pub(crate) fn latch<T: Copy>(
    out: &mut Values<T>,
    steps: &mut Rows,
    x: &Values<T>,
    clock: Rows,
    latched: &mut Latched<T>,
    len: u32,
) {
    let Latched { mut now, mut next } = *latched;
    let clock = clock & words::low(len.into());
    *steps = clock | 1;
    if clock.count_ones() <= FEW {
        let n = len as usize;
        let now = fill(out, clock, now, n, |i| if i > 0 { x[i - 1] } else { next });
        *latched = Latched { now, next: x[n - 1] };
        return;
    }
    for (i, (out, &x)) in out.iter_mut().zip(x).take(len as usize).enumerate() {
        if clock >> i & 1 == 1 {
            now = next;
        }
        *out = now;
        next = x;
    }
    *latched = Latched { now, next };
}

/// [`latch`] over gathered rows, one per instance, with the state in `now` and `next`.
#[inline(always)]
pub(crate) fn latch_gathered<T: Word>(
    out: &mut Values<T>,
    x: &Values<T>,
    clock: Rows,
    now: &mut Values<u64>,
    next: &mut Values<u64>,
    len: u32,
) {
    for i in 0..len as usize {
        now[i] = if clock >> i & 1 == 1 { next[i] } else { now[i] };
        out[i] = T::of_word(now[i]);
        next[i] = x[i].to_word();
    }
}

/// In rows of the clock, the value of `x`; held in the others.
#[inline(always)]
pub(crate) fn sample<T: Copy>(out: &mut Values<T>, x: &Values<T>, clock: Rows, held: &mut T, len: u32) {
    for (i, (out, &x)) in out.iter_mut().zip(x).take(len as usize).enumerate() {
        if clock >> i & 1 == 1 {
            *held = x;
        }
        *out = *held;
    }
}

/// [`sample`] over gathered rows, one per instance, with the value in `kept`.
#[inline(always)]
pub(crate) fn sample_gathered<T: Word>(
    out: &mut Values<T>,
    x: &Values<T>,
    clock: Rows,
    kept: &mut Values<u64>,
    len: u32,
) {
    for i in 0..len as usize {
        kept[i] = if clock >> i & 1 == 1 { x[i].to_word() } else { kept[i] };
        out[i] = T::of_word(kept[i]);
    }
}
