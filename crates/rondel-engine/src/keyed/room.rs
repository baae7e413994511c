//! For how many instances there is room, and what is refused where there is none.

use rondel_event::{Rows, Value};

use super::Instances;

/// So many instances are allowed where the specification says nothing.
pub(crate) const DEFAULT_LIMIT: u64 = 10_000_000;

/// More records than this cannot be numbered.
pub(super) const MAX_LIMIT: u64 = 1 << 30;

/// What a slice did not take.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Refusals {
    /// Events without a key, or with one of another type.
    pub(super) unkeyed: u64,
    /// Events with a new key when there were as many instances as allowed.
    pub(super) beyond_limit: u64,
    /// The key of the first of them.
    pub(super) first: Option<Vec<Value>>,
    /// Whether it was refused because of the bytes of all instances.
    pub(super) by_bytes: bool,
    /// Events with a key that is too long, since the start of this run.
    pub(super) too_long: u64,
    /// Of those without a key the events of instances of a topic that nobody could name, since the start of this run.
    pub(super) unnamed: u64,
    /// Messages with parallel arrays of other lengths than that of the names, since the start of this run, and of the
    /// first of them both lengths.
    pub(super) unequal: u64,
    pub(super) first_unequal: Option<[u64; 2]>,
}

/// How much memory instances may take.
#[derive(Clone, Copy, Debug)]
pub(super) struct MemoryRoom {
    /// The limit in bytes.
    pub(super) limit: usize,
    /// How many bytes an instance keeps beside its record, on average.
    beside: usize,
    /// How many instances there must be for that to be looked at again.
    pub(super) measure_at: u64,
}

impl Default for MemoryRoom {
    fn default() -> MemoryRoom {
        MemoryRoom { limit: usize::MAX, beside: 0, measure_at: 0 }
    }
}

impl Instances {
    /// Limits the bytes of all instances. Those that are there stay.
    pub(crate) fn limit_bytes(&mut self, limit: usize) {
        // Where every value counts, all are kept.
        self.room =
            MemoryRoom { limit: if self.plan.limit == u64::MAX { usize::MAX } else { limit }, ..self.room };
    }

    /// Whether there is no room for a further instance. Called only when one is about to begin.
    pub(super) fn is_full(&mut self, limit: u64) -> bool {
        let live = self.live();
        if live >= limit {
            return true;
        }
        if self.room.limit == usize::MAX {
            return false;
        }
        if live >= self.room.measure_at {
            // What instances keep beside their records is looked at when there are an eighth more, so that it
            // costs a constant for each.
            self.room.beside = self.table.sides.bytes() / (self.table.used().max(1) as usize);
            self.room.measure_at = live + live / 8 + 64;
        }
        self.table.live_bytes() + self.room.beside * live as usize >= self.room.limit
    }

    /// Leaves out events whose keys are too long to be kept. Where every value counts, all are kept.
    #[cold]
    pub(super) fn without_long(&mut self, keyed: Rows) -> Rows {
        let long = if self.plan.limit == u64::MAX { 0 } else { keyed & self.keys.too_long };
        self.refusals.too_long += u64::from(long.count_ones());
        keyed & !long
    }

    /// Counts an event for whose instance there is no room.
    pub(super) fn refuse(&mut self, row: usize) {
        self.refusals.beyond_limit += 1;
        if self.refusals.first.is_none() {
            let key = self.plan.keys.values(self.keys.key(row));
            self.refusals.first = Some(key);
            self.refusals.by_bytes = self.live() < self.plan.limit.min(MAX_LIMIT);
        }
    }
}

/// The lowest so many of a set of rows.
pub(super) fn lowest(rows: Rows, count: u64) -> Rows {
    let mut rest = rows;
    if count >= rows.count_ones().into() {
        return rows;
    }
    (0..count).for_each(|_| rest &= rest.wrapping_sub(1));
    rows & !rest
}
