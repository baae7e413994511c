//! Limits on the number and memory of instances, and counts of refused events.

use rondel_event::{Rows, Value};

use super::Instances;

/// Default limit of the number of instances.
pub(crate) const DEFAULT_LIMIT: u64 = 10_000_000;

/// Least size of an instance that is assumed where instances are divided, in bytes, with what it allocates later.
const LEAST_SIZE: usize = 256;

/// Maximum number of instances: if all were in one shard, their records could still be numbered.
pub(super) const MAX_LIMIT: u64 = (1 << 28) - (1 << 13);

/// Counts of what a slice has refused.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Refusals {
    /// Events without a key, or with one of the wrong type.
    pub(super) unkeyed: u64,
    /// Events with a new key beyond the limit of instances.
    pub(super) beyond_limit: u64,
    /// Key of the first of them.
    pub(super) first: Option<Vec<Value>>,
    /// Whether the memory limit refused it.
    pub(super) by_bytes: bool,
    /// Events with a key beyond the maximum length, since the start of this run.
    pub(super) too_long: u64,
    /// Events without a key that cannot be attributed to an instance of their topic, since the start of this
    /// run.
    pub(super) unnamed: u64,
    /// Messages whose parallel arrays differ in length from the array of names, since the start of this run.
    pub(super) unequal: u64,
    /// Both lengths in the first of them.
    pub(super) first_unequal: Option<[u64; 2]>,
}

/// Limit on the memory of instances.
#[derive(Clone, Copy, Debug)]
pub(super) struct MemoryRoom {
    /// Limit in bytes.
    pub(super) limit: usize,
    /// Average number of bytes that an instance takes beside its record.
    beside: usize,
    /// Number of instances at which that average is measured again.
    pub(super) measure_at: u64,
}

impl Default for MemoryRoom {
    fn default() -> MemoryRoom {
        MemoryRoom { limit: usize::MAX, beside: 0, measure_at: 0 }
    }
}

impl Instances {
    /// Limits the memory of all instances. Existing ones stay.
    pub(crate) fn limit_bytes(&mut self, limit: usize) {
        // A formula that is evaluated by value needs every instance.
        self.room =
            MemoryRoom { limit: if self.plan.limit == u64::MAX { usize::MAX } else { limit }, ..self.room };
    }

    /// Returns the number of instances of their average size that fit into three quarters of the memory limit. The rest
    /// is for instances that grow.
    pub(super) fn left_in_memory(&self) -> u64 {
        if self.room.limit == usize::MAX {
            return u64::MAX;
        }
        let used = self.table.live_bytes().saturating_add(self.table.heap.bytes());
        // Of few instances, the memory of the table itself would count as theirs.
        let live = usize::try_from(self.live()).unwrap_or(usize::MAX).max(64);
        let left = (self.room.limit / 4 * 3).saturating_sub(used);
        (left / (used / live).max(LEAST_SIZE)) as u64
    }

    /// Whether there is no room for another instance. Called only when one is about to begin.
    pub(super) fn is_full(&mut self, limit: u64) -> bool {
        let live = self.live();
        if live >= limit {
            return true;
        }
        if self.room.limit == usize::MAX {
            return false;
        }
        if live >= self.room.measure_at {
            // Memory beside the records is measured each time instances have grown by an eighth: a constant
            // cost for each.
            let used = 1 + self.table.counts.iter().sum::<u32>();
            self.room.beside = self.table.heap.bytes() / used as usize;
            self.room.measure_at = live + live / 8 + 64;
        }
        self.table.live_bytes() + self.room.beside * live as usize >= self.room.limit
    }

    /// Counts and removes events whose keys exceed the maximum length, except where every value is needed.
    #[cold]
    pub(super) fn without_long(&mut self, keyed: Rows) -> Rows {
        let long = if self.plan.limit == u64::MAX { 0 } else { keyed & self.keys.too_long };
        self.refusals.too_long += u64::from(long.count_ones());
        keyed & !long
    }

    /// Counts an event whose instance exceeds a limit.
    pub(super) fn refuse(&mut self, row: usize) {
        self.refusals.beyond_limit += 1;
        if self.refusals.first.is_none() {
            let key = self.plan.keys.values(self.keys.key(row));
            self.refusals.first = Some(key);
            self.refusals.by_bytes = self.live() < self.plan.limit.min(MAX_LIMIT);
        }
    }
}

/// Returns the lowest `count` rows of a set.
pub(super) fn lowest(rows: Rows, count: u64) -> Rows {
    let mut rest = rows;
    if count >= rows.count_ones().into() {
        return rows;
    }
    (0..count).for_each(|_| rest &= rest.wrapping_sub(1));
    rows & !rest
}
