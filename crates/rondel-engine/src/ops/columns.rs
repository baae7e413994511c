//! Operators on columns: the values in all rows of a block.
//!
//! Rows beyond the length of the block, and rows with an unknown value, have arbitrary contents.

use rondel_event::{Block, Rows};

use crate::ops::since;
use crate::ops::texts::TextColumn;

/// A value for every row of a block.
pub(crate) type Values<T> = [T; Block::CAPACITY];

/// The computed columns of a block.
#[derive(Clone, Debug, Default)]
pub(crate) struct Columns {
    pub(crate) ints: Vec<Values<i64>>,
    pub(crate) floats: Vec<Values<f64>>,
    /// For each integer column, the rows that may differ from the row before; all rows if that is not
    /// tracked. The first row in use always may.
    pub(crate) int_steps: Vec<Rows>,
    pub(crate) float_steps: Vec<Rows>,
    pub(crate) texts: Vec<TextColumn>,
    /// Halves after the row, of columns in dense time.
    pub(crate) seconds: Vec<Values<f64>>,
}

/// Splits the columns into those before `out`, which hold the operands, and the output.
#[inline(always)]
pub(crate) fn split<T>(columns: &mut [T], out: u32) -> (&[T], &mut T) {
    let (before, rest) = columns.split_at_mut(out as usize);
    (before, &mut rest[0])
}

/// The rows in which `holds` is true.
#[inline(always)]
pub(crate) fn rows_where(len: u32, holds: impl Fn(usize) -> bool) -> Rows {
    let mut out = 0;
    let mut start = 0;
    // Eight rows at a time: the shifts are constant, and there is no test in between.
    while start + 8 <= len as usize {
        let byte = (0..8).fold(0, |byte, i| byte | u64::from(holds(start + i)) << i);
        out |= byte << start;
        start += 8;
    }
    for i in start..len as usize {
        out |= u64::from(holds(i)) << i;
    }
    out
}

/// Limit of steps up to which a comparison visits the steps one by one.
pub(crate) const FEW: u32 = 12;

/// The rows in which a relation holds between two columns; `steps` are the rows in which one of them may
/// change.
#[inline(always)]
pub(crate) fn compare<T: Copy>(
    columns: &[Values<T>],
    steps: &[Rows],
    [a, b]: [u32; 2],
    rows: Rows,
    relation: impl Fn(T, T) -> bool,
) -> Rows {
    let steps = (steps[a as usize] | steps[b as usize] | 1) & rows;
    let (a, b) = (&columns[a as usize], &columns[b as usize]);
    let (mut rest, mut holds) = (steps, 0);
    for _ in 0..FEW {
        let row = rest.trailing_zeros() as usize % Block::CAPACITY;
        holds |= Rows::from(relation(a[row], b[row])) << row;
        rest &= rest - 1;
        if rest == 0 {
            break;
        }
    }
    if rest != 0 {
        return rows_where(Rows::BITS - rows.leading_zeros(), |i| relation(a[i], b[i]));
    }
    // The result at a step persists up to the next one.
    since::since(!steps, holds, 0)
}

#[inline(always)]
pub(crate) fn select<T: Copy>(out: &mut Values<T>, condition: Rows, a: &Values<T>, b: &Values<T>, len: u32) {
    let values = a.iter().zip(b).take(len as usize);
    for (i, (out, (&a, &b))) in out.iter_mut().zip(values).enumerate() {
        *out = if condition >> i & 1 == 1 { a } else { b };
    }
}

#[inline(always)]
pub(crate) fn map<T: Copy, U>(out: &mut Values<U>, x: &Values<T>, len: u32, f: impl Fn(T) -> U) {
    for i in 0..len as usize {
        out[i] = f(x[i]);
    }
}

#[inline(always)]
pub(crate) fn zip<T: Copy>(
    out: &mut Values<T>,
    a: &Values<T>,
    b: &Values<T>,
    len: u32,
    f: impl Fn(T, T) -> T,
) {
    for i in 0..len as usize {
        out[i] = f(a[i], b[i]);
    }
}

/// As [`map`] or [`zip`] with a function that can fail. Returns the rows in which it succeeded.
#[inline(always)]
pub(crate) fn check(out: &mut Values<i64>, len: u32, f: impl Fn(usize) -> (i64, bool)) -> Rows {
    let mut failed = 0;
    for (i, out) in out.iter_mut().enumerate().take(len as usize) {
        let (value, fails) = f(i);
        *out = value;
        failed |= u64::from(fails) << i;
    }
    !failed
}

pub(crate) fn margin_int(out: &mut Values<f64>, a: &Values<i64>, b: &Values<i64>, len: u32) {
    for i in 0..len as usize {
        out[i] = match b[i].checked_sub(a[i]) {
            Some(margin) => margin as f64,
            None => (i128::from(b[i]) - i128::from(a[i])) as f64,
        };
    }
}

pub(crate) fn margin_float(out: &mut Values<f64>, a: &Values<f64>, b: &Values<f64>, len: u32) {
    zip(out, a, b, len, |a, b| {
        if a == b {
            0.0
        } else if a.is_nan() || b.is_nan() {
            f64::NEG_INFINITY
        } else {
            b - a
        }
    });
}

pub(crate) fn to_float(out: &mut Values<f64>, x: &Values<i64>, len: u32) {
    map(out, x, len, |x| x as f64);
}
