//! Saved form of a table. The index is not saved, as it follows from the keys.

use serde::{Deserialize, Serialize};

use crate::exec::section::Section;
use crate::keyed::heap::SavedHeap;
use crate::keyed::keys::{self, KeptKey};
use crate::keyed::record::{FREE, KEY, POSITION};
use crate::keyed::shards::{self, SHARDS};
use crate::keyed::table::{TEMPLATE, Table};

/// Saved form of a [`Table`].
#[derive(Serialize, Deserialize)]
pub(crate) struct SavedTable {
    /// Records, one after the other.
    pub(in crate::keyed) words: Vec<u64>,
    pub(in crate::keyed) free: Vec<u32>,
    pub(in crate::keyed) removed: Vec<u32>,
    /// Number of instances of each shard begun since the last sweep.
    pub(in crate::keyed) begun: [u32; SHARDS],
    /// Position in each shard of the next record to check for eviction.
    pub(in crate::keyed) next_checks: [u32; SHARDS],
    /// Keys of several words, by record.
    pub(in crate::keyed) keys: Vec<Vec<u64>>,
    pub(in crate::keyed) heap: SavedHeap,
}

impl Table {
    /// Returns the saved form. States on the heap are in the order of the records: it does not matter where they were
    /// evaluated.
    pub(crate) fn saved(&self) -> SavedTable {
        let mut words = self.records.clone();
        let mut heap = self.heap.emptied();
        heap.add_lost(&self.heap);
        for record in words.chunks_exact_mut(self.layout.words) {
            if record[POSITION] == FREE {
                record.fill(0);
                record[POSITION] = FREE;
            } else {
                heap.adopt(&self.heap, record, &self.layout);
            }
        }
        let mut removed = self.removed.clone();
        removed.sort_unstable();
        let keys = self.keys.iter().rposition(|key| !key.parts().is_empty()).map_or(0, |last| last + 1);
        SavedTable {
            words,
            free: self.free.concat(),
            removed,
            begun: self.begun,
            next_checks: self.next_checks,
            keys: self.keys[..keys].iter().map(|key| key.parts().to_vec()).collect(),
            heap: heap.into_saved(),
        }
    }

    /// Takes over a saved state, in a table that has only the template. Returns false if it does not fit.
    pub(crate) fn restore(&mut self, section: &Section, saved: SavedTable) -> bool {
        let SavedTable { words, free, removed, begun, next_checks, keys, heap } = saved;
        let len = self.layout.words;
        let Ok(used) = u32::try_from(words.len() / len) else { return false };
        if used == 0 || words.len() % len != 0 || keys.len() > used as usize {
            return false;
        }
        if !self.heap.restore(section, heap) {
            return false;
        }
        (self.records, self.used, self.removed) = (words, used, removed);
        (self.begun, self.next_checks) = (begun, next_checks);
        self.keys = keys.iter().map(|key| KeptKey::new(key)).collect();
        self.key_bytes = self.keys.iter().map(KeptKey::bytes).sum();
        self.restore_numbers(free) && (0..used).all(|number| self.adopt(number))
    }

    /// Takes over the numbers of free records. Returns false unless these are exactly the unused records of each shard, up
    /// to its last one that was ever used.
    fn restore_numbers(&mut self, free: Vec<u32>) -> bool {
        let mut unused = [&free[..], &self.removed].concat();
        unused.sort_unstable();
        let is_free = |number: u32| number != TEMPLATE && number < self.used && !self.is_live(number);
        let are_free = unused.iter().all(|&number| is_free(number));
        if !self.is_live(TEMPLATE) || !are_free || unused.windows(2).any(|pair| pair[0] == pair[1]) {
            return false;
        }
        let mut counts = [0; SHARDS];
        for number in TEMPLATE + 1..self.used {
            if self.is_live(number) || unused.binary_search(&number).is_ok() {
                let (shard, position) = shards::place(number);
                if position != counts[shard] {
                    return false;
                }
                counts[shard] += 1;
            }
        }
        self.counts = counts;
        free.into_iter().for_each(|number| self.free[shards::place(number).0].push(number));
        self.next_checks.iter().zip(&self.counts).all(|(next, count)| *next < (*count).max(1))
    }

    /// Adds an instance's record to the index. Returns false if the record is damaged.
    fn adopt(&mut self, number: u32) -> bool {
        let (record, places) = (self.record(number), &self.layout.places);
        if record[POSITION] == FREE {
            return true;
        }
        let all =
            |words: &[u32], is: &dyn Fn(u64) -> bool| words.iter().all(|&word| is(record[word as usize]));
        let heap = &self.heap;
        let fits = all(&self.layout.texts, &|text| heap.is_text_or_empty(text))
            && heap.pools.is_valid(record, &places.pools)
            && (0..)
                .zip(&places.relations)
                .all(|(k, &word)| heap.relations.is_valid(k, record[word as usize]))
            && (0..).zip(&places.pending).all(|(k, &word)| heap.pending.is_valid(k, record[word as usize]))
            && (0..).zip(&places.delayed).all(|(k, &word)| heap.delayed.is_valid(k, record[word as usize]))
            && (number == TEMPLATE || shards::place(number).0 == shards::of_tag(keys::tag(record[KEY])))
            && (number == TEMPLATE
                || self.word_keys
                || keys::is_short_text(record[KEY])
                || self.keys.get(number as usize).is_some_and(|key| !key.parts().is_empty()));
        if fits && number != TEMPLATE {
            self.index.insert(keys::tag(record[KEY]), number);
            self.live += 1;
        }
        fits
    }
}
