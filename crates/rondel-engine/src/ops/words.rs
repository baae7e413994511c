//! Operators over all rows of a block at once, on words: bit `i` is row `i`.
//!
//! Rows from the length of the block on hold anything. Every operator here looks only at rows at or
//! before the one it computes, so nothing leaks down; what is carried into the next block is taken
//! from the last row in use.

use rondel_event::Rows;
use serde::{Deserialize, Serialize};

/// `p since q`, where `carry` (0 or 1) is its truth before the first row.
///
/// At every row `out = q | p & before`. That is how a carry runs through an addition: adding the
/// bits `p|q` and `q`, a carry comes out of a position when `q` is set there (both bits are), or
/// when `p` is (one bit is) and a carry came in. So one addition computes it for all 64 rows; the
/// carries that came in are where the sum differs from the sum without carries.
#[inline(always)]
pub(crate) fn since(p: Rows, q: Rows, carry: u64) -> Rows {
    let a = p | q;
    let sum = a.wrapping_add(q).wrapping_add(carry);
    let carried_in = sum ^ a ^ q;
    q | (p & carried_in)
}

/// The bit of the last row, 0 or 1.
#[inline(always)]
pub(crate) fn last(word: Rows, len: u32) -> u64 {
    word >> (len - 1) & 1
}

/// `x` as it was `by` rows earlier (1 to 63), where `history` has the 64 rows before the block, the
/// latest in the highest bit.
#[inline(always)]
pub(crate) fn shift(x: Rows, by: u32, history: u64) -> Rows {
    x << by | history >> (64 - by)
}

/// The history after a block of `len` rows (1 to 64) with `x`.
#[inline(always)]
pub(crate) fn remember(history: u64, x: Rows, len: u32) -> u64 {
    // Shifting up by 64 - len also drops what is beyond the rows in use. A shift by 64 of the old
    // history is written as two, because the machine's shifts count modulo 64.
    history >> (len - 1) >> 1 | x << (64 - len)
}

/// The lowest bits of `word` put, in order, where `rows` has ones.
#[inline(never)]
pub(crate) fn spread(word: Rows, mut rows: Rows) -> Rows {
    let (mut word, mut out) = (word, 0);
    // A run of ones at a time.
    while rows != 0 && word != 0 {
        let first = rows.trailing_zeros();
        let count = (rows >> first).trailing_ones();
        out |= (word & low(count.into())) << first;
        word = word.checked_shr(count).unwrap_or(0);
        rows &= !(low(count.into()) << first);
    }
    out
}

/// The bits of `word` where `rows` has ones, in order, as the lowest.
pub(crate) fn gather(word: Rows, mut rows: Rows) -> Rows {
    let (mut out, mut at) = (0, 0);
    while rows != 0 {
        let first = rows.trailing_zeros();
        let count = (rows >> first).trailing_ones();
        out |= (word >> first & low(count.into())) << at;
        at += count;
        rows &= !(low(count.into()) << first);
    }
    out
}

/// Truth that lasts: `once[0, span] q`.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub(crate) struct Recently {
    /// How many rows after a row with `q` it still holds.
    pub(crate) span: u64,
    /// How many more rows it will hold from now on if `q` does not come again.
    pub(crate) left: u64,
}

impl Recently {
    #[inline(always)]
    pub(crate) fn step(&mut self, q: Rows, len: u32, rows: Rows) -> Rows {
        let q = q & rows;
        let still = low(self.left);
        // Only the latest q matters: it lasts longest.
        let Some(latest) = q.checked_ilog2() else {
            self.left = self.left.saturating_sub(u64::from(len));
            return still;
        };
        self.left = self.span.saturating_sub(u64::from(len - 1 - latest));
        // A single row has nothing above it; a message that comes by itself is one.
        still | if len == 1 { q } else { smear(q, self.span) }
    }
}

/// Every set bit together with the `span` bits above it.
#[inline(always)]
fn smear(word: Rows, span: u64) -> Rows {
    if span >= 63 {
        // Minus x has the bits of !x above the lowest set bit of x, and that bit itself.
        return word | word.wrapping_neg();
    }
    // Each step doubles how many bits every set bit has become; the last step overlaps.
    let wanted = span as u32 + 1;
    let (mut out, mut have) = (word, 1);
    while have * 2 <= wanted {
        out |= out << have;
        have *= 2;
    }
    out | out << (wanted - have)
}

/// The lowest `count` bits.
#[inline(always)]
pub(crate) fn low(count: u64) -> Rows {
    if count >= 64 { Rows::MAX } else { (1 << count) - 1 }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A fixed sequence of words with long and short runs.
    fn samples() -> impl Iterator<Item = u64> {
        let mut x = 0x9E37_79B9_7F4A_7C15_u64;
        (0..200).map(move |i| {
            x = x.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            let y = x ^ x >> 29;
            match i % 4 {
                0 => y,
                1 => y & y.rotate_left(7) & y.rotate_left(23),
                2 => y | y.rotate_left(9) | y.rotate_left(31),
                _ => [0, 1, u64::MAX, 1 << 63][i / 4 % 4],
            }
        })
    }

    #[test]
    fn since_is_its_recursion() {
        for (p, q) in samples().zip(samples().skip(1)) {
            for carry in [0, 1] {
                let mut before = carry;
                let out = since(p, q, carry);
                for i in 0..64 {
                    before = (q >> i & 1) | (p >> i & 1) & before;
                    assert_eq!(out >> i & 1, before, "{p:x} {q:x} {i}");
                }
            }
        }
    }

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

    #[test]
    fn history_is_the_last_64_rows() {
        let mut trace: Vec<u64> = vec![0; 64];
        let mut history = 0;
        for (word, len) in samples().zip([1, 64, 3, 63, 32, 2].into_iter().cycle()) {
            for by in [1, 2, 31, 63] {
                let out = shift(word, by, history);
                for i in 0..len.min(by) {
                    assert_eq!(out >> i & 1, trace[trace.len() - by as usize + i as usize]);
                }
            }
            trace.extend((0..len).map(|i| word >> i & 1));
            history = remember(history, word, len);
            for i in 0..64 {
                assert_eq!(history >> i & 1, trace[trace.len() - 64 + i]);
            }
        }
    }
}
