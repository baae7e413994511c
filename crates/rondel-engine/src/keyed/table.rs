//! Table of the instances of a slice: a record for every live key.

mod divided;
mod saved;

use std::hint::black_box;

use crate::exec::section::Section;
use crate::keyed::heap::InstanceHeap;
use crate::keyed::index::Index;
use crate::keyed::keys::{self, KeptKey, Keys};
use crate::keyed::record::{BITS, FREE, KEY, Layout, POSITION, UNPLANNED};
use crate::keyed::shards::{self, SHARDS};
pub(crate) use crate::keyed::table::saved::SavedTable;
use crate::ops::delay::Delay;
use crate::ops::since::TimedSince;
use crate::ops::timed;

/// Record with the state of an instance whose key was never seen.
pub(crate) const TEMPLATE: u32 = 0;

/// Bytes per key in the index: a slot of eight bytes, plus between one and five thirds of an empty slot.
pub(crate) const FOUND: usize = 16;

/// Size of the index, or of the records, in bytes, from which on memory is prefetched; a smaller one stays in cache.
const FAR: usize = 256 << 10;

#[derive(Clone, Debug)]
pub(crate) struct Table {
    pub(crate) layout: Layout,
    /// Records, one after the other. A large vector grows by remapping its memory, not by copying it.
    records: Vec<u64>,
    /// Number of records, including free ones.
    used: u32,
    /// Number of records of each shard that were ever used.
    pub(in crate::keyed) counts: [u32; SHARDS],
    /// Numbers of records to reuse now, by shard.
    free: [Vec<u32>; SHARDS],
    /// Numbers of records to reuse after the next sweep.
    removed: Vec<u32>,
    live: u32,
    /// Number of instances of each shard begun since the last sweep.
    pub(in crate::keyed) begun: [u32; SHARDS],
    /// Position in each shard of the next record to check for eviction.
    pub(in crate::keyed) next_checks: [u32; SHARDS],
    index: Index,
    /// Whether every key is one word.
    word_keys: bool,
    /// Keys of several words, by record.
    pub(crate) keys: Vec<KeptKey>,
    /// Heap bytes of the keys of live instances.
    pub(crate) key_bytes: usize,
    pub(crate) heap: InstanceHeap,
}

impl Table {
    pub(crate) fn new(section: &Section, word_keys: bool, heap: InstanceHeap) -> Table {
        let layout = Layout::new(section);
        let mut table = Table {
            layout,
            records: Vec::new(),
            used: 0,
            counts: [0; SHARDS],
            free: [const { Vec::new() }; SHARDS],
            removed: Vec::new(),
            live: 0,
            begun: [0; SHARDS],
            next_checks: [0; SHARDS],
            index: Index::new(),
            word_keys,
            keys: Vec::new(),
            key_bytes: 0,
            heap,
        };
        table.make_room(TEMPLATE);
        let initial = table.layout.initial();
        table.record_mut(TEMPLATE).copy_from_slice(&initial);
        for (i, state) in section.initial.machines.iter().enumerate() {
            let word = table.layout.places.pools.machines[i] as usize;
            table.record_mut(TEMPLATE)[word] = table.heap.pools.machines.add(state.clone());
        }
        table
    }

    /// Number of instances.
    pub(crate) fn live(&self) -> u32 {
        self.live
    }

    /// Whether the records are too large to stay in cache.
    pub(crate) fn is_far(&self) -> bool {
        size_of_val(&self.records[..]) >= FAR
    }

    /// One more than the largest record number.
    pub(crate) fn used(&self) -> u32 {
        self.used
    }

    #[inline(always)]
    pub(crate) fn record(&self, number: u32) -> &[u64] {
        let start = self.start(number);
        &self.records[start..][..self.layout.words]
    }

    #[inline(always)]
    pub(crate) fn record_mut(&mut self, number: u32) -> &mut [u64] {
        let start = self.start(number);
        &mut self.records[start..][..self.layout.words]
    }

    /// Returns one word of a record, with a third of the bounds checks of the whole record.
    #[inline(always)]
    fn word(&self, number: u32, word: usize) -> u64 {
        self.records[self.start(number) + word]
    }

    #[inline(always)]
    fn start(&self, number: u32) -> usize {
        number as usize * self.layout.words
    }

    /// Whether a record is in use; the template's is.
    #[inline(always)]
    pub(crate) fn is_live(&self, number: u32) -> bool {
        self.record(number)[POSITION] != FREE
    }

    /// Returns the scheduled change of an instance by time alone, if such changes are tracked.
    #[inline(always)]
    pub(crate) fn planned(&self, number: u32) -> i64 {
        self.layout.places.planned.map_or(UNPLANNED, |word| self.word(number, word as usize) as i64)
    }

    /// Whether past operators of an instance change by time alone at `due`, where a change is scheduled for
    /// then.
    pub(crate) fn is_time_point(&self, number: u32, due: i64) -> bool {
        let past = self.layout.places.past.map(|word| self.record(number)[word as usize] as i64);
        past.is_none_or(|past| past <= due)
    }

    /// Returns the time of the last time point of an instance, if operators read it.
    pub(crate) fn time(&self, number: u32) -> i64 {
        self.layout.places.time.map_or(i64::MIN, |word| self.record(number)[word as usize] as i64)
    }

    /// Schedules a change by time alone.
    pub(crate) fn set_planned(&mut self, number: u32, time: i64) {
        if let Some(word) = self.layout.places.planned {
            self.record_mut(number)[word as usize] = time as u64;
        }
    }

    /// Returns the key of an instance.
    pub(crate) fn key(&self, number: u32) -> &[u64] {
        keys::key(&self.record(number)[KEY], self.keys.get(number as usize).map_or(&[], KeptKey::parts))
    }

    /// Prefetches the memory that [`Table::find`] will read for these rows, so that the latencies overlap.
    pub(crate) fn prefetch(&self, rows: u64, keys: &Keys) {
        if self.index.bytes() < FAR {
            return;
        }
        let mut sum = 0_u64;
        keys::for_each(rows, |row| sum ^= self.index.first(keys.tags[row]));
        keys::for_each(rows, |row| {
            // Found by tag only, as records of other keys may precede it. A new key reads the template.
            let tag = keys.tags[row];
            let number = self.index.next(tag, &mut self.index.begin(tag)).unwrap_or(TEMPLATE);
            let words = self.record(number);
            sum ^= words[0] ^ words[words.len() - 1];
            sum ^= self.keys.get(number as usize).map_or(0, |key| key.parts().len() as u64);
        });
        black_box(sum);
    }

    /// Returns the instance of the key in a row.
    #[inline(always)]
    pub(crate) fn find(&self, keys: &Keys, row: usize) -> Option<u32> {
        let (word, parts) = (keys.words[row], keys.parts(row));
        let tag = keys.tags[row];
        let mut at = self.index.begin(tag);
        while let Some(number) = self.index.next(tag, &mut at) {
            // With parts, words are hashes, and every record with such a word has parts.
            if self.word(number, KEY) == word && (parts.is_empty() || self.keys[number as usize].is(parts)) {
                return Some(number);
            }
        }
        None
    }

    /// Creates an instance for the key in a row, as a copy of the template.
    pub(crate) fn create(&mut self, keys: &Keys, row: usize) -> u32 {
        let shard = shards::of_tag(keys.tags[row]);
        let number = self.number(shard);
        let (start, words) = (self.start(number), self.layout.words);
        self.records.copy_within(..words, start);
        let record = &mut self.records[start..start + words];
        // A new instance has no verdicts yet: all their bits are set.
        for (word, compared) in
            record.iter_mut().zip(&self.layout.compared).skip(BITS).take(self.layout.bit_words)
        {
            *word |= !compared;
        }
        for &word in &self.layout.texts {
            record[word as usize] = self.heap.copy_text(record[word as usize]);
        }
        self.heap.pools.copy(record, &self.layout.places.pools);
        self.heap.relations.copy(record, &self.layout.places.relations);
        self.records[start + KEY] = keys.words[row];
        self.keep_key(number, keys.parts(row));
        self.index.insert(keys.tags[row], number);
        self.live += 1;
        self.begun[shard] = self.begun[shard].saturating_add(1);
        number
    }

    /// Keeps a key of several words.
    fn keep_key(&mut self, number: u32, parts: &[u64]) {
        if !parts.is_empty() {
            self.keys.resize(self.keys.len().max(number as usize + 1), KeptKey::EMPTY);
            let key = KeptKey::new(parts);
            self.key_bytes += key.bytes();
            self.keys[number as usize] = key;
        }
    }

    /// Returns a record number of a shard, with room for the record.
    fn number(&mut self, shard: usize) -> u32 {
        self.free[shard].pop().unwrap_or_else(|| {
            let number = shards::number(shard, self.counts[shard]);
            self.counts[shard] += 1;
            self.make_room(number);
            number
        })
    }

    /// Adds free records up to this one.
    fn make_room(&mut self, number: u32) {
        if number >= self.used {
            let before = std::mem::replace(&mut self.used, number + 1);
            self.records.resize(self.used as usize * self.layout.words, 0);
            (before..self.used).for_each(|number| self.record_mut(number)[POSITION] = FREE);
        }
    }

    /// Removes an instance. Its number is reused only after [`Table::recycle`].
    pub(crate) fn remove(&mut self, section: &Section, number: u32) {
        let start = self.start(number);
        let record = &mut self.records[start..start + self.layout.words];
        for &word in &self.layout.texts {
            self.heap.free_text(std::mem::take(&mut record[word as usize]));
        }
        self.heap.pools.free(record, &self.layout.places.pools, &section.initial);
        self.heap.relations.free(record, &self.layout.places.relations, &section.initial.relations);
        for (future, &word) in self.layout.places.pending.iter().enumerate() {
            self.heap.pending.free(future, std::mem::take(&mut record[word as usize]));
        }
        for (future, &word) in self.layout.places.delayed.iter().enumerate() {
            self.heap.delayed.free(future, std::mem::take(&mut record[word as usize]));
        }
        record[POSITION] = FREE;
        self.index.remove(keys::tag(record[KEY]), number);
        if let Some(key) = self.keys.get_mut(number as usize) {
            self.key_bytes -= key.bytes();
            *key = KeptKey::EMPTY;
        }
        self.live -= 1;
        self.removed.push(number);
    }

    /// Makes the numbers of removed instances reusable, in an order that does not depend on how events were batched.
    pub(crate) fn recycle(&mut self) {
        let Table { free, removed, .. } = self;
        removed.sort_unstable();
        removed.drain(..).for_each(|number| free[shards::place(number).0].push(number));
    }

    /// Whether an instance has, at the time `now`, the same state as the template.
    #[inline(always)]
    pub(crate) fn equals_template(&self, number: u32, now: i64, section: &Section) -> bool {
        let (record, template) = (self.record(number), self.record(TEMPLATE));
        let words = record.iter().zip(template).zip(&self.layout.compared);
        words.fold(0, |differs, ((a, b), mask)| differs | (a ^ b) & mask) == 0
            && self.equals_template_on_heap(record, template, now, section)
    }

    /// Compares the state that the words alone do not determine.
    #[inline(always)]
    fn equals_template_on_heap(&self, record: &[u64], template: &[u64], now: i64, section: &Section) -> bool {
        let Layout { places, texts, .. } = &self.layout;
        let pools = &self.heap.pools;
        let both = |word: &u32| [record[*word as usize], template[*word as usize]];
        // Another time point at `now` may still come: then it matters whether there was one before.
        let same_time = places.time.iter().map(both).all(|[a, b]| a == b || (a as i64) < now);
        let lasts =
            |until: u64| if (until as i64) < timed::instant(now) { timed::NEVER as u64 } else { until };
        same_time
            && places.timed_recently.iter().all(|at| {
                let [a, b] = both(&at.until).map(lasts);
                a == b
            })
            // Robustness states are never compared: any state counts as different.
            && [&places.pools.robust_once, &places.pools.robust_since, &places.pools.robust_dense]
                .into_iter()
                .all(|words| words.iter().map(both).all(|references| references == [0, 0]))
            && self.heap.relations.are_same([record, template], &places.relations, section)
            && texts.iter().map(both).all(|[a, b]| self.heap.text(a) == self.heap.text(b))
            && places.pools.delays.iter().map(both).all(|references| {
                let positions = [record, template].map(|record| record[POSITION]);
                references == [0, 0]
                    || Delay::goes_on_as(references.map(|delay| pools.delays.get(delay)), positions)
            })
            && places.pools.machines.iter().map(both).zip(&section.machines).all(|(references, plan)| {
                match references.map(|reference| pools.machines.get(reference)) {
                    // An instance with an unfinished machine is kept.
                    [Some(a), Some(b)] => !plan.is_open(a) && a.goes_on_as(b, plan),
                    _ => true,
                }
            })
            && places.pools.windows.iter().map(both).zip(&section.operands.windows).all(|(references, window)| {
                let nows = [record, template].map(|record| record[POSITION].min(i64::MAX as u64) as i64);
                references.into_iter().zip(nows).all(|(reference, position)| {
                    let now = if window.timed { now } else { position };
                    pools.windows.get(reference).is_none_or(|window| window.is_over(now))
                })
            })
            && places.pools.timed_since.iter().map(both).all(|references| {
                references == [0, 0]
                    || TimedSince::goes_on_as(references.map(|since| pools.timed_since.get(since)), now)
            })
    }

    /// Size in bytes of the records and keys of live instances, with the records in between that no key has used: the other
    /// shards have as many as the largest one.
    pub(crate) fn live_bytes(&self) -> usize {
        let beside = if self.word_keys { 0 } else { size_of::<KeptKey>() };
        let used = self.counts.iter().zip(&self.free);
        let most = used.map(|(&count, free)| (count as usize).saturating_sub(free.len())).max().unwrap_or(0);
        let records = SHARDS * most * (self.layout.words * size_of::<u64>() + beside);
        records + self.live as usize * FOUND + self.key_bytes
    }

    /// Size in bytes of the whole table.
    pub(crate) fn bytes(&self) -> usize {
        let keys: usize = self.keys.iter().map(KeptKey::bytes).sum();
        let free: usize = self.free.iter().map(Vec::capacity).sum();
        size_of_val(&self.records[..])
            + self.index.bytes()
            + keys
            + self.keys.capacity() * size_of::<KeptKey>()
            + (free + self.removed.capacity()) * size_of::<u32>()
            + self.heap.bytes()
    }
}
