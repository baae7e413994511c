use serde::{Deserialize, Serialize};
use std::collections::VecDeque;

use rondel_event::Rows;

use crate::ops::varying::Varying;
use crate::ops::words;

/// A truth delayed by 64 rows or more.
///
/// State is a queue of intervals of positions at which the output will be true. Memory thus follows the
/// number of changes, not the length of the delay. The operand of a bounded `since[a,b]` stays true for `b-a`
/// rows once it is, which limits the queue to about `a/(b-a)` intervals.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Delay {
    by: u64,
    /// First and last positions, ascending, disjoint and not adjacent.
    queue: VecDeque<(u64, u64)>,
}

impl Delay {
    pub(crate) fn new(by: u64) -> Delay {
        debug_assert!(by >= Rows::BITS.into(), "shorter delays are shifts");
        Delay { by, queue: VecDeque::new() }
    }

    /// Evaluates the block of `len` rows (`rows`) that begins at `position`.
    ///
    /// Truths before a row in `forget` are dropped after this block: the users of the output mask them.
    #[inline(always)]
    pub(crate) fn step(&mut self, x: Rows, forget: Rows, position: u64, len: u32, rows: Rows) -> Rows {
        // The delay is at least a block, so the output does not depend on this block.
        let out = self.take(position, len);
        let (mut x, forget) = (x & rows, forget & rows);
        if forget != 0 {
            self.queue.clear();
            x &= Rows::MAX << (63 - forget.leading_zeros());
        }
        while x != 0 {
            let first = x.trailing_zeros();
            let count = (x >> first).trailing_ones();
            let start = position.saturating_add(first.into()).saturating_add(self.by);
            self.add(start, start.saturating_add(u64::from(count) - 1));
            x &= !(words::low(count.into()) << first);
        }
        out
    }

    /// Removes the intervals up to the end of the block. Returns their rows in it.
    #[inline(always)]
    fn take(&mut self, position: u64, len: u32) -> Rows {
        let mut out = 0;
        let end = position.saturating_add(u64::from(len) - 1);
        while let Some(&(first, last)) = self.queue.front() {
            if first > end {
                break;
            }
            let from = first.saturating_sub(position);
            let to = last.min(end) - position;
            out |= words::low(to + 1 - from) << from;
            if last > end {
                break;
            }
            self.queue.pop_front();
        }
        out
    }

    #[inline(always)]
    fn add(&mut self, first: u64, last: u64) {
        match self.queue.back_mut() {
            Some(back) if first <= back.1.saturating_add(1) => back.1 = last,
            _ => self.queue.push_back((first, last)),
        }
    }

    /// The delay, in rows.
    pub(crate) fn by(&self) -> u64 {
        self.by
    }

    /// Whether two delays have the same output from these positions on, where there is one.
    pub(crate) fn goes_on_as(delays: [Option<&Delay>; 2], positions: [u64; 2]) -> bool {
        let [a, b] = [0, 1].map(|i| delays[i].into_iter().flat_map(move |delay| delay.after(positions[i])));
        a.eq(b)
    }

    /// Drops all intervals.
    pub(crate) fn clear(&mut self) {
        self.queue.clear();
    }

    /// The remaining intervals, relative to a position.
    fn after(&self, position: u64) -> impl Iterator<Item = (u64, u64)> + '_ {
        self.queue
            .iter()
            .map(move |(first, last)| (first.saturating_sub(position), last.saturating_sub(position)))
    }

    /// Number of intervals.
    pub(crate) fn kept(&self) -> usize {
        self.queue.len()
    }
}

impl Varying for Delay {
    fn bytes(&self) -> usize {
        self.queue.capacity() * size_of::<(u64, u64)>()
    }

    fn is_empty(&self) -> bool {
        self.queue.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn delay_is_independent_of_block_size() {
        let truth = |i: u64| i.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 61 < 3;
        for by in [64, 65, 100, 128, 300] {
            for lens in [&[64][..], &[1], &[63, 2, 17], &[64, 1, 64, 33]] {
                let mut delay = Delay::new(by);
                let mut position = 0;
                for &len in lens.iter().cycle().take(200) {
                    let rows = words::low(len.into());
                    // Bits beyond the rows in use must not matter.
                    let x = (0..64).fold(0, |x, i| x | u64::from(truth(position + i)) << i);
                    let out = delay.step(x, 0, position, len, rows);
                    for i in 0..u64::from(len) {
                        let expected = (position + i).checked_sub(by).is_some_and(truth);
                        assert_eq!(out >> i & 1 == 1, expected, "{by} {lens:?} {position} {i}");
                    }
                    position += u64::from(len);
                }
            }
        }
    }

    #[test]
    fn extreme_positions_do_not_panic() {
        let mut delay = Delay::new(u64::MAX);
        for position in [0, 64, u64::MAX - 64] {
            assert_eq!(delay.step(u64::MAX, 0, position, 64, u64::MAX), 0);
        }
        assert_eq!(delay.kept(), 1);
    }
}
