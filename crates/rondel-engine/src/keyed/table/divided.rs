//! Tables of some shards: copies of records, with their numbers.

use crate::exec::section::Section;
use crate::keyed::keys::{self, KeptKey};
use crate::keyed::record::KEY;
use crate::keyed::shards::{self, SHARDS, Shards};
use crate::keyed::table::{TEMPLATE, Table};

impl Table {
    /// Copies the template of another table of the section into one that has not begun.
    pub(in crate::keyed) fn copy_template(&mut self, other: &Table, section: &Section) {
        let Table { heap, records, layout, .. } = self;
        heap.pools.free(&mut records[..layout.words], &layout.places.pools, &section.initial);
        self.copy_record(other, TEMPLATE);
    }

    /// Copies the instances of some shards of another table of the section, with their numbers, into one that has none
    /// of them.
    pub(in crate::keyed) fn copy_shards(&mut self, other: &Table, shards: Shards) {
        for shard in (0..SHARDS).filter(|&shard| shards.has(shard)) {
            self.counts[shard] = other.counts[shard];
            self.begun[shard] = other.begun[shard];
            self.next_checks[shard] = other.next_checks[shard];
            self.free[shard].clone_from(&other.free[shard]);
            if let Some(last) = other.counts[shard].checked_sub(1) {
                self.make_room(shards::number(shard, last));
            }
        }
        let is_meant = |number: u32| shards.has(shards::place(number).0);
        self.removed.extend(other.removed.iter().filter(|&&number| is_meant(number)));
        let live = (TEMPLATE + 1..other.used).filter(|&number| is_meant(number) && other.is_live(number));
        for number in live {
            self.copy_record(other, number);
            self.keep_key(number, other.keys.get(number as usize).map_or(&[], KeptKey::parts));
            self.index.insert(keys::tag(other.record(number)[KEY]), number);
            self.live += 1;
        }
    }

    /// Copies a record of another table, with its states on the heap.
    fn copy_record(&mut self, other: &Table, number: u32) {
        let (start, words) = (self.start(number), self.layout.words);
        let record = &mut self.records[start..start + words];
        record.copy_from_slice(other.record(number));
        self.heap.adopt(&other.heap, record, &self.layout);
    }
}
