//! Built-in functions over columns; [`rondel_spec::FUNCTIONS`] defines them.
//!
//! Rows with the arguments of the row before reuse its result.

use rondel_event::{Block, Rows};
use rondel_spec::{FunctionId, Kernel};

use crate::ops::columns::Values;
use crate::ops::texts::{TextColumn, TextRef, compare};

/// A function of one number. `steps`: rows in which the argument may change. Returns the rows with a result.
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

/// A function of two numbers, as [`number`].
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

/// Writes numbers that may change at `steps`. Returns the rows in which they are finite.
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

/// The rows in which a test of two texts holds.
pub(crate) fn test(
    function: FunctionId,
    operands: [&TextColumn; 2],
    block: &Block,
    buffers: &[Vec<u8>],
    len: u32,
) -> Rows {
    match function.kernel() {
        Kernel::Test(f) => compare(operands, block, buffers, len, f),
        _ => 0,
    }
}

/// Writes a number per text.
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

/// Writes a text per text, each row into its own buffer, from `first` on.
pub(crate) fn text(
    function: FunctionId,
    out: &mut TextColumn,
    x: &TextColumn,
    block: &Block,
    buffers: &mut [Vec<u8>],
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
