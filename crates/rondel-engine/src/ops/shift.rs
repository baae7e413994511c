//! A truth 1 to 63 rows before: `prev`, and bounds in steps of other operators.
//!
//! | | state | kernel |
//! |---|---|---|
//! | rows of one instance | the last 64 rows, latest in the highest bit | [`shift`] and [`remember`], 64 rows at a time |
//! | one row per instance, a few rows before | a word of instances per row before | [`shift_gathered`] |
//! | one row per instance, more rows before | a word of rows per instance, latest in the lowest bit | [`shift_words`] |
//!
//! The saved form of each is its state. Longer delays use [`Delay`](crate::ops::delay::Delay).

use rondel_event::Rows;

use crate::ops::columns::rows_where;

/// `x` shifted by `by` rows (1 to 63); `history` holds the 64 rows before the block, latest in the highest
/// bit.
#[inline(always)]
pub(crate) fn shift(x: Rows, by: u32, history: u64) -> Rows {
    x << by | history >> (64 - by)
}

/// The history after a block of `len` rows (1 to 64) with `x`.
#[inline(always)]
pub(crate) fn remember(history: u64, x: Rows, len: u32) -> u64 {
    // Shifting up by 64 - len also drops the bits beyond the rows in use. The shift of the old history can be
    // by 64, so it is split in two: shifts of the machine are modulo 64.
    history >> (len - 1) >> 1 | x << (64 - len)
}

/// `x` delayed by the length of `history`, over gathered rows, one per instance. Each word holds a row
/// before, the latest first.
#[inline(always)]
pub(crate) fn shift_gathered(x: Rows, history: &mut [Rows]) -> Rows {
    let Some(last) = history.len().checked_sub(1) else { return x };
    let out = history[last];
    history.copy_within(..last, 1);
    history[0] = x;
    out
}

/// `x` delayed by `by` rows (1 to 63), over gathered rows, one per instance; each word of `history` holds an
/// instance's rows.
#[inline(always)]
pub(crate) fn shift_words(x: Rows, by: u32, history: &mut [u64]) -> Rows {
    let out = rows_where(history.len() as u32, |i| history[i] >> (by - 1) & 1 == 1);
    let mask = !(u64::MAX << by);
    for (i, history) in history.iter_mut().enumerate() {
        *history = (*history << 1 | x >> i & 1) & mask;
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ops::words::tests::samples;

    #[test]
    fn history_holds_last_64_rows() {
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

    #[test]
    fn gathered_rows_agree_with_single_instance() {
        for by in [1, 2, 3, 4, 31, 63] {
            let (mut few, mut words, mut alone) = (vec![0; by as usize], [0; 64], [0; 64]);
            for x in samples() {
                let out = shift_words(x, by, &mut words);
                assert_eq!(shift_gathered(x, &mut few), out, "{by}");
                for (i, history) in alone.iter_mut().enumerate() {
                    let own = x >> i & 1;
                    assert_eq!(out >> i & 1, shift(own, by, *history) & 1, "{by} {i}");
                    *history = remember(*history, own, 1);
                }
            }
        }
    }
}
