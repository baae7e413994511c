//! Shards: a fixed division of instances by the hash of their keys.
//!
//! A record number consists of a shard and a position within it. Records are checked for eviction, and their numbers
//! reused, shard by shard: when an instance is evicted depends on its own events, on those of its shard, and on the
//! number of all events. So [portions](crate::Portion) may evaluate some shards each.

use std::hint::black_box;

use crate::exec::section::Section;
use crate::keyed::record::POSITION;
use crate::keyed::table::Table;

/// Number of shards.
pub(crate) const SHARDS: usize = 16;

/// Number of records of a shard that follow each other. A sweep checks several of them, which are in memory together.
const RUN: u32 = 16;

/// Number of records checked in a sweep per instance begun since the last one. With two, evictable instances
/// never outnumber the others, however fast keys arrive: before all `n` records of a shard have been checked, at most
/// `n / 2` of its instances begin.
const CHECKS_PER_INSTANCE: u32 = 2;

/// Minimum number of records of a shard checked in a sweep, so that everything evictable is evicted eventually.
const MIN_CHECKS: u32 = 4;

/// A set of shards.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Shards(u16);

impl Shards {
    pub(crate) const NONE: Shards = Shards(0);
    pub(crate) const ALL: Shards = Shards(u16::MAX);

    /// Returns each shard as a set of its own.
    pub(crate) fn each() -> impl Iterator<Item = Shards> {
        (0..SHARDS).map(|shard| Shards(1 << shard))
    }

    #[inline(always)]
    pub(crate) fn has(self, shard: usize) -> bool {
        self.0 >> shard & 1 == 1
    }

    pub(crate) fn add(&mut self, other: Shards) {
        self.0 |= other.0;
    }

    pub(crate) fn remove(&mut self, other: Shards) {
        self.0 &= !other.0;
    }
}

/// Returns the shard of a key with this tag.
#[inline(always)]
pub(crate) fn of_tag(tag: u32) -> usize {
    // The index uses the upper bits.
    tag as usize % SHARDS
}

/// Returns the shard of a record and its position there. The template is in none.
pub(crate) fn place(number: u32) -> (usize, u32) {
    let place = number.saturating_sub(1);
    let run = place / RUN;
    (run as usize % SHARDS, run / SHARDS as u32 * RUN + place % RUN)
}

/// Returns the number of the record at a position of a shard.
pub(crate) fn number(shard: usize, position: u32) -> u32 {
    1 + (position / RUN * SHARDS as u32 + shard as u32) * RUN + position % RUN
}

impl Table {
    /// Checks some records of each shard, evicts those that equal the template, and makes the numbers of removed
    /// instances reusable.
    pub(super) fn sweep(&mut self, section: &Section, now: i64) {
        self.prefetch_checks();
        for shard in 0..SHARDS {
            let count = self.counts[shard];
            let begun = std::mem::take(&mut self.begun[shard]);
            for _ in 0..begun.saturating_mul(CHECKS_PER_INSTANCE).max(MIN_CHECKS).min(count) {
                let position = self.next_checks[shard];
                self.check(number(shard, position), section, now);
                self.next_checks[shard] = if position + 1 < count { position + 1 } else { 0 };
            }
        }
        self.recycle();
    }

    /// Prefetches the records that every sweep checks, so that the latencies overlap: those of a shard are apart.
    fn prefetch_checks(&self) {
        if !self.is_far() {
            return;
        }
        let mut sum = 0_u64;
        for (shard, (&next, &count)) in self.next_checks.iter().zip(&self.counts).enumerate() {
            for position in next..count.min(next + MIN_CHECKS) {
                sum ^= self.record(number(shard, position))[POSITION];
            }
        }
        black_box(sum);
    }

    /// Evicts an instance that equals the template at the time `now`.
    #[inline(always)]
    pub(super) fn check(&mut self, number: u32, section: &Section, now: i64) {
        if number < self.used() && self.is_live(number) && self.equals_template(number, now, section) {
            self.remove(section, number);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_and_places_agree() {
        let mut all: Vec<u32> = Vec::new();
        for shard in 0..SHARDS {
            for position in 0..3 * RUN {
                assert_eq!(place(number(shard, position)), (shard, position));
                all.push(number(shard, position));
            }
        }
        all.sort_unstable();
        assert!(all.into_iter().eq(1..=3 * RUN * SHARDS as u32), "every number but that of the template");
    }

    #[test]
    fn sets_are_joined_and_parted() {
        let mut all = Shards::NONE;
        Shards::each().for_each(|shard| all.add(shard));
        assert_eq!(all, Shards::ALL);
        Shards::each().skip(1).for_each(|shard| all.remove(shard));
        assert!(all.has(0) && (1..SHARDS).all(|shard| !all.has(shard)));
    }
}
