//! Operators over the values in all rows of a block.
//!
//! Rows from the length of the block on, and rows where a value is unknown, hold anything.

use rondel_event::{Block, Rows};
use rondel_spec::{BinaryOp, UnaryOp};

use crate::ops::since;
use crate::ops::texts::TextColumn;

/// One value for every row of a block.
pub(crate) type Values<T> = [T; Block::CAPACITY];

/// The columns that are computed for a block.
#[derive(Clone, Debug, Default)]
pub(crate) struct Columns {
    pub(crate) ints: Vec<Values<i64>>,
    pub(crate) floats: Vec<Values<f64>>,
    /// For each of the integers the rows that may have another value than the row before, or where nobody
    /// says, all. The first row in use always may.
    pub(crate) int_steps: Vec<Rows>,
    pub(crate) float_steps: Vec<Rows>,
    pub(crate) texts: Vec<TextColumn>,
    /// The other sides of columns.
    pub(crate) seconds: Vec<Values<f64>>,
}

/// The operands of an instruction, which stand before its output.
#[inline(always)]
pub(crate) fn split<T>(columns: &mut [T], out: u32) -> (&[T], &mut T) {
    let (before, rest) = columns.split_at_mut(out as usize);
    (before, &mut rest[0])
}

/// The rows where `holds`.
#[inline(always)]
pub(crate) fn rows_where(len: u32, holds: impl Fn(usize) -> bool) -> Rows {
    let mut out = 0;
    let mut start = 0;
    // Eight at a time: constant shifts, and no test in between.
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

/// So few steps of a column are gone through one by one.
pub(crate) const FEW: u32 = 12;

/// The rows where a relation holds between two columns, given the rows where they may change.
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
    // What held at a step holds up to the next.
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
fn map<T: Copy, U>(out: &mut Values<U>, x: &Values<T>, len: u32, f: impl Fn(T) -> U) {
    for i in 0..len as usize {
        out[i] = f(x[i]);
    }
}

#[inline(always)]
fn zip<T: Copy>(out: &mut Values<T>, a: &Values<T>, b: &Values<T>, len: u32, f: impl Fn(T, T) -> T) {
    for i in 0..len as usize {
        out[i] = f(a[i], b[i]);
    }
}

/// As [`map`] or [`zip`] with a function that may fail; the rows where it did not.
#[inline(always)]
fn check(out: &mut Values<i64>, len: u32, f: impl Fn(usize) -> (i64, bool)) -> Rows {
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

pub(crate) fn unary_int(op: UnaryOp, out: &mut Values<i64>, x: &Values<i64>, len: u32) -> Rows {
    match op {
        UnaryOp::Negate => check(out, len, |i| x[i].overflowing_neg()),
        UnaryOp::Abs => check(out, len, |i| x[i].overflowing_abs()),
    }
}

pub(crate) fn unary_float(op: UnaryOp, out: &mut Values<f64>, x: &Values<f64>, len: u32) {
    match op {
        UnaryOp::Negate => map(out, x, len, |x| -x),
        UnaryOp::Abs => map(out, x, len, f64::abs),
    }
}

pub(crate) fn binary_int(
    op: BinaryOp,
    out: &mut Values<i64>,
    a: &Values<i64>,
    b: &Values<i64>,
    len: u32,
) -> Rows {
    match op {
        BinaryOp::Add => check(out, len, |i| a[i].overflowing_add(b[i])),
        BinaryOp::Subtract => check(out, len, |i| a[i].overflowing_sub(b[i])),
        BinaryOp::Multiply => check(out, len, |i| a[i].overflowing_mul(b[i])),
        BinaryOp::Divide => check(out, len, |i| match a[i].checked_div(b[i]) {
            Some(value) => (value, false),
            None => (0, true),
        }),
        // The remainder of the least integer by -1 is 0: only the quotient, which nobody asked
        // for, overflows.
        BinaryOp::Remainder => {
            check(out, len, |i| if b[i] == 0 { (0, true) } else { (a[i].wrapping_rem(b[i]), false) })
        }
        BinaryOp::Min => check(out, len, |i| (a[i].min(b[i]), false)),
        BinaryOp::Max => check(out, len, |i| (a[i].max(b[i]), false)),
    }
}

pub(crate) fn binary_float(op: BinaryOp, out: &mut Values<f64>, a: &Values<f64>, b: &Values<f64>, len: u32) {
    match op {
        BinaryOp::Add => zip(out, a, b, len, |a, b| a + b),
        BinaryOp::Subtract => zip(out, a, b, len, |a, b| a - b),
        BinaryOp::Multiply => zip(out, a, b, len, |a, b| a * b),
        BinaryOp::Divide => zip(out, a, b, len, |a, b| a / b),
        BinaryOp::Remainder => zip(out, a, b, len, |a, b| a % b),
        BinaryOp::Min => zip(out, a, b, len, minimum),
        BinaryOp::Max => zip(out, a, b, len, maximum),
    }
}

/// The same for one row.
pub(crate) fn float(op: BinaryOp, a: f64, b: f64) -> f64 {
    match op {
        BinaryOp::Add => a + b,
        BinaryOp::Subtract => a - b,
        BinaryOp::Multiply => a * b,
        BinaryOp::Divide => a / b,
        BinaryOp::Remainder => a % b,
        BinaryOp::Min => minimum(a, b),
        BinaryOp::Max => maximum(a, b),
    }
}

/// The lesser; NaN if either is. Of two zeros the negative one, as IEEE 754 says of `minimum`.
#[inline(always)]
fn minimum(a: f64, b: f64) -> f64 {
    if a.is_nan() || b.is_nan() {
        f64::NAN
    } else if a < b || a == b && a.is_sign_negative() {
        a
    } else {
        b
    }
}

/// The greater, likewise.
#[inline(always)]
fn maximum(a: f64, b: f64) -> f64 {
    -minimum(-a, -b)
}
