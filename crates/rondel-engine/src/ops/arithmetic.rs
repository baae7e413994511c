//! Arithmetic on single values and on all rows of a block. An integer operation that overflows or divides by
//! zero has no result. Floats follow IEEE 754.

use rondel_event::Rows;
use rondel_spec::{BinaryOp, UnaryOp};

use crate::ops::columns::{Values, check, map, zip};

/// An integer result, and whether it is invalid.
type Whole = (i64, bool);

#[inline(always)]
fn of_int(op: UnaryOp, x: i64) -> Whole {
    match op {
        UnaryOp::Negate => x.overflowing_neg(),
        UnaryOp::Abs => x.overflowing_abs(),
    }
}

#[inline(always)]
fn of_ints(op: BinaryOp, x: i64, y: i64) -> Whole {
    match op {
        BinaryOp::Add => x.overflowing_add(y),
        BinaryOp::Subtract => x.overflowing_sub(y),
        BinaryOp::Multiply => x.overflowing_mul(y),
        BinaryOp::Divide => x.checked_div(y).map_or((0, true), |quotient| (quotient, false)),
        // The remainder of the least integer by -1 is 0; only the quotient overflows.
        BinaryOp::Remainder if y == 0 => (0, true),
        BinaryOp::Remainder => (x.wrapping_rem(y), false),
        BinaryOp::Min => (x.min(y), false),
        BinaryOp::Max => (x.max(y), false),
    }
}

/// The result for an integer.
#[inline]
pub(crate) fn int(op: UnaryOp, x: i64) -> Option<i64> {
    let (result, is_none) = of_int(op, x);
    (!is_none).then_some(result)
}

/// The result for two integers.
#[inline]
pub(crate) fn ints(op: BinaryOp, x: i64, y: i64) -> Option<i64> {
    let (result, is_none) = of_ints(op, x, y);
    (!is_none).then_some(result)
}

/// The result for a float.
#[inline(always)]
pub(crate) fn float(op: UnaryOp, x: f64) -> f64 {
    match op {
        UnaryOp::Negate => -x,
        UnaryOp::Abs => x.abs(),
    }
}

/// The result for two floats.
#[inline(always)]
pub(crate) fn floats(op: BinaryOp, x: f64, y: f64) -> f64 {
    match op {
        BinaryOp::Add => x + y,
        BinaryOp::Subtract => x - y,
        BinaryOp::Multiply => x * y,
        BinaryOp::Divide => x / y,
        BinaryOp::Remainder => x % y,
        BinaryOp::Min => minimum(x, y),
        BinaryOp::Max => maximum(x, y),
    }
}

/// The minimum as defined by IEEE 754: NaN if an operand is NaN, and -0 is less than 0.
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

/// The maximum as defined by IEEE 754.
#[inline(always)]
fn maximum(a: f64, b: f64) -> f64 {
    -minimum(-a, -b)
}

/// Expands to one loop per operator, with the operator as the constant `OP`, so that no row branches on it.
macro_rules! by_operator {
    ($op:expr, $all:ident { $($one:ident)* }, $rows:expr) => {
        match $op {
            $($all::$one => {
                const OP: $all = $all::$one;
                $rows
            })*
        }
    };
}

/// Results for all rows of integers. Returns the rows with a result.
pub(crate) fn unary_int(op: UnaryOp, out: &mut Values<i64>, x: &Values<i64>, len: u32) -> Rows {
    by_operator!(op, UnaryOp { Negate Abs }, check(out, len, |i| of_int(OP, x[i])))
}

/// Results for all rows of floats.
pub(crate) fn unary_float(op: UnaryOp, out: &mut Values<f64>, x: &Values<f64>, len: u32) {
    by_operator!(op, UnaryOp { Negate Abs }, map(out, x, len, |x| float(OP, x)));
}

/// Results for all rows of two integers. Returns the rows with a result.
pub(crate) fn binary_int(op: BinaryOp, out: &mut Values<i64>, [a, b]: [&Values<i64>; 2], len: u32) -> Rows {
    by_operator!(
        op,
        BinaryOp { Add Subtract Multiply Divide Remainder Min Max },
        check(out, len, |i| of_ints(OP, a[i], b[i]))
    )
}

/// Results for all rows of two floats.
pub(crate) fn binary_float(op: BinaryOp, out: &mut Values<f64>, [a, b]: [&Values<f64>; 2], len: u32) {
    by_operator!(
        op,
        BinaryOp { Add Subtract Multiply Divide Remainder Min Max },
        zip(out, a, b, len, |x, y| floats(OP, x, y))
    );
}
