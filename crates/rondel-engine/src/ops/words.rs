//! Operators on words of truth, over all rows of a block at once: bit `i` is row `i`.
//!
//! Bits beyond the length of the block are arbitrary. Every operator reads only bits at or below the one that
//! it computes, so they do not matter; state for the next block is taken from the last row in use.

use rondel_event::Rows;

/// The bit of the last row, 0 or 1.
#[inline(always)]
pub(crate) fn last(word: Rows, len: u32) -> u64 {
    word >> (len - 1) & 1
}

/// Moves the lowest bits of `word` to the ones of `rows`, in order.
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

/// Moves the bits of `word` at the ones of `rows` to the lowest bits, in order.
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

/// A word with the lowest `count` bits set.
#[inline(always)]
pub(crate) fn low(count: u64) -> Rows {
    if count >= 64 { Rows::MAX } else { (1 << count) - 1 }
}

#[cfg(test)]
pub(crate) mod tests {
    /// A fixed sequence of words with long and short runs.
    pub(crate) fn samples() -> impl Iterator<Item = u64> {
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
}
