//! Functions of values, over columns: [`rondel_spec::FUNCTIONS`] says what each computes.
//!
//! Rows with the same arguments as the row before are not computed again.

use rondel_event::{Block, Rows};
use rondel_spec::{FunctionId, Kernel};

use crate::ops::columns::Values;
use crate::ops::texts::{TextColumn, TextRef, compare};

/// A function of one number; the rows where it has a result. `steps` are the rows where the argument may change.
pub(crate) fn number(
    function: FunctionId,
    out: &mut Values<f64>,
    x: &Values<f64>,
    steps: Rows,
    len: u32,
) -> Rows {
    match function.kernel() {
        Kernel::Number(f) => computed(out, steps, len, |i| f(x[i])),
        _ => 0,
    }
}

/// As [`number`], of two.
pub(crate) fn numbers(
    function: FunctionId,
    out: &mut Values<f64>,
    [a, b]: [&Values<f64>; 2],
    steps: Rows,
    len: u32,
) -> Rows {
    match function.kernel() {
        Kernel::Numbers(f) => computed(out, steps, len, |i| f(a[i], b[i])),
        _ => 0,
    }
}

/// Writes numbers that may change at the steps; the rows where they are finite.
#[inline(always)]
fn computed(out: &mut Values<f64>, steps: Rows, len: u32, f: impl Fn(usize) -> f64) -> Rows {
    let (mut value, mut known) = (0.0, 0);
    for (i, out) in out.iter_mut().enumerate().take(len as usize) {
        if i == 0 || steps >> i & 1 == 1 {
            value = f(i);
        }
        *out = value;
        known |= Rows::from(value.is_finite()) << i;
    }
    known
}

/// The rows where a test of two texts holds.
pub(crate) fn test(
    function: FunctionId,
    operands: (&TextColumn, &TextColumn),
    block: &Block,
    buffers: &[Vec<u8>],
    len: u32,
) -> Rows {
    match function.kernel() {
        Kernel::Test(f) => compare(operands, block, buffers, len, f),
        _ => 0,
    }
}

/// Writes a number for each text.
pub(crate) fn size(
    function: FunctionId,
    out: &mut Values<i64>,
    x: &TextColumn,
    block: &Block,
    buffers: &[Vec<u8>],
    len: u32,
) {
    let Kernel::Size(f) = function.kernel() else { return };
    for i in 0..len as usize {
        let is_new = i == 0 || x[i] != x[i - 1];
        out[i] = if is_new { f(x[i].bytes(block, buffers)) } else { out[i - 1] };
    }
}

/// Writes a text for each text, into buffers of its own from `first` on, one for each row.
pub(crate) fn text(
    function: FunctionId,
    out: &mut TextColumn,
    x: &TextColumn,
    (block, buffers): (&Block, &mut [Vec<u8>]),
    first: u32,
    len: u32,
) {
    let Kernel::Text(f) = function.kernel() else { return };
    for i in 0..len as usize {
        if i > 0 && x[i] == x[i - 1] {
            out[i] = out[i - 1];
            continue;
        }
        let buffer = first + i as u32;
        let mut target = std::mem::take(&mut buffers[buffer as usize]);
        target.clear();
        f(x[i].bytes(block, buffers), &mut target);
        buffers[buffer as usize] = target;
        out[i] = TextRef::Kept { buffer };
    }
}
