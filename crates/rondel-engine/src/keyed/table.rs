//! The instances of a slice: for every live key a record.

mod saved;

use std::hint::black_box;

use crate::exec::section::Section;
use crate::keyed::index::Index;
use crate::keyed::keys::{self, KeptKey, Keys};
use crate::keyed::record::{BITS, FREE, KEY, Layout, POSITION, UNPLANNED};
use crate::keyed::sides::KeyedSides;
pub(crate) use crate::keyed::table::saved::SavedTable;
use crate::ops::delay::Delay;
use crate::ops::since::TimedSince;
use crate::ops::timed;

/// The record of what an instance would be whose key was never seen.
pub(crate) const TEMPLATE: u32 = 0;

/// What a key costs in the table that finds its instance: a slot of eight bytes, and between a third and
/// five thirds of one that is empty.
pub(crate) const FOUND: usize = 16;

/// From so many bytes of index on memory is read ahead: what is smaller is near anyway.
const FAR: usize = 256 << 10;

#[derive(Clone, Debug)]
pub(crate) struct Table {
    pub(crate) layout: Layout,
    /// The records, one after the other. Where there are many, a vector that grows is moved by mapping its
    /// memory elsewhere, and not by copying it.
    records: Vec<u64>,
    /// How many records there have been at a time.
    used: u32,
    /// Records to use again, and those that will be.
    free: Vec<u32>,
    removed: Vec<u32>,
    live: u32,
    /// How many instances have begun since records were last looked through.
    pub(crate) begun: u32,
    index: Index,
    /// Whether every key is one word.
    word_keys: bool,
    /// By record the keys that are several.
    pub(crate) keys: Vec<KeptKey>,
    /// The bytes of the keys of live instances that are beside `keys`.
    pub(crate) key_bytes: usize,
    pub(crate) sides: KeyedSides,
}

impl Table {
    pub(crate) fn new(section: &Section, word_keys: bool, sides: KeyedSides) -> Table {
        let layout = Layout::new(section);
        let mut table = Table {
            layout,
            records: Vec::new(),
            used: 0,
            free: Vec::new(),
            removed: Vec::new(),
            live: 0,
            begun: 0,
            index: Index::new(),
            word_keys,
            keys: Vec::new(),
            key_bytes: 0,
            sides,
        };
        let template = table.number();
        let initial = table.layout.initial();
        table.record_mut(template).copy_from_slice(&initial);
        for (i, state) in section.initial.machines.iter().enumerate() {
            let word = table.layout.places.pools.machines[i] as usize;
            table.record_mut(template)[word] = table.sides.pools.machines.add(state.clone());
        }
        table
    }

    /// How many instances there are.
    pub(crate) fn live(&self) -> u32 {
        self.live
    }

    /// One more than the largest number of a record.
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

    /// One word of a record: a third of the checks that the whole record takes.
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

    /// When a change of an instance by itself is planned, where such changes matter.
    #[inline(always)]
    pub(crate) fn planned(&self, number: u32) -> i64 {
        self.layout.places.planned.map_or(UNPLANNED, |word| self.word(number, word as usize) as i64)
    }

    /// Whether something of the past changes by itself at this time, of an instance that is planned to change.
    pub(crate) fn is_moment(&self, number: u32, due: i64) -> bool {
        let past = self.layout.places.past.map(|word| self.record(number)[word as usize] as i64);
        past.is_none_or(|past| past <= due)
    }

    /// The time of the last moment of an instance, where that is asked for.
    pub(crate) fn time(&self, number: u32) -> i64 {
        self.layout.places.time.map_or(i64::MIN, |word| self.record(number)[word as usize] as i64)
    }

    /// Plans one.
    pub(crate) fn set_planned(&mut self, number: u32, time: i64) {
        if let Some(word) = self.layout.places.planned {
            self.record_mut(number)[word as usize] = time as u64;
        }
    }

    /// The key of an instance.
    pub(crate) fn key(&self, number: u32) -> &[u64] {
        keys::key(&self.record(number)[KEY], self.keys.get(number as usize).map_or(&[], KeptKey::parts))
    }

    /// Reads what [`Table::find`] will read for these rows, all at once: the waiting for memory
    /// overlaps.
    pub(crate) fn reach(&self, rows: u64, keys: &Keys) {
        if self.index.bytes() < FAR {
            return;
        }
        let mut sum = 0_u64;
        keys::for_each(rows, |row| sum ^= self.index.first(keys.tags[row]));
        keys::for_each(rows, |row| {
            // By its tag, as it may stand behind others. Of a key that is new it is the template.
            let tag = keys.tags[row];
            let number = self.index.next(tag, &mut self.index.begin(tag)).unwrap_or(TEMPLATE);
            let words = self.record(number);
            sum ^= words[0] ^ words[words.len() - 1];
            sum ^= self.keys.get(number as usize).map_or(0, |key| key.parts().len() as u64);
        });
        black_box(sum);
    }

    /// The instance of the key in a row.
    #[inline(always)]
    pub(crate) fn find(&self, keys: &Keys, row: usize) -> Option<u32> {
        let (word, parts) = (keys.words[row], keys.parts(row));
        let tag = keys.tags[row];
        let mut at = self.index.begin(tag);
        while let Some(number) = self.index.next(tag, &mut at) {
            // Where there are parts, words are hashes, and whoever has one has parts.
            if self.word(number, KEY) == word && (parts.is_empty() || self.keys[number as usize].is(parts)) {
                return Some(number);
            }
        }
        None
    }

    /// A new instance for the key in a row, which has none: a copy of the template.
    pub(crate) fn create(&mut self, keys: &Keys, row: usize) -> u32 {
        let number = self.number();
        let (start, words) = (self.start(number), self.layout.words);
        self.records.copy_within(..words, start);
        let record = &mut self.records[start..start + words];
        // All but the verdicts, of which there is none yet.
        for (word, compared) in
            record.iter_mut().zip(&self.layout.compared).skip(BITS).take(self.layout.bit_words)
        {
            *word |= !compared;
        }
        for &word in &self.layout.texts {
            record[word as usize] = self.sides.copy_text(record[word as usize]);
        }
        self.sides.pools.copy(record, &self.layout.places.pools);
        self.sides.relations.copy(record, &self.layout.places.relations);
        self.records[start + KEY] = keys.words[row];
        let parts = keys.parts(row);
        if !parts.is_empty() {
            self.keys.resize(self.keys.len().max(number as usize + 1), KeptKey::EMPTY);
            let key = KeptKey::new(parts);
            self.key_bytes += key.bytes();
            self.keys[number as usize] = key;
        }
        self.index.insert(keys.tags[row], number);
        self.live += 1;
        self.begun = self.begun.saturating_add(1);
        number
    }

    /// A number for a record, with room for it.
    fn number(&mut self) -> u32 {
        self.free.pop().unwrap_or_else(|| {
            self.used += 1;
            self.records.resize(self.used as usize * self.layout.words, 0);
            self.used - 1
        })
    }

    /// Forgets an instance. Its number is not used again before [`Table::recycle`].
    pub(crate) fn remove(&mut self, section: &Section, number: u32) {
        let start = self.start(number);
        let record = &mut self.records[start..start + self.layout.words];
        for &word in &self.layout.texts {
            self.sides.free_text(std::mem::take(&mut record[word as usize]));
        }
        self.sides.pools.free(record, &self.layout.places.pools, &section.initial);
        self.sides.relations.free(record, &self.layout.places.relations, &section.initial.relations);
        for (future, &word) in self.layout.places.pending.iter().enumerate() {
            self.sides.pending.free(future, std::mem::take(&mut record[word as usize]));
        }
        for (future, &word) in self.layout.places.delayed.iter().enumerate() {
            self.sides.delayed.free(future, std::mem::take(&mut record[word as usize]));
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

    /// Lets the numbers of removed instances be used again.
    pub(crate) fn recycle(&mut self) {
        self.free.append(&mut self.removed);
    }

    /// Whether an instance remembers nothing at the time `now` that the template does not.
    #[inline(always)]
    pub(crate) fn is_as_template(&self, number: u32, now: i64, section: &Section) -> bool {
        let (record, template) = (self.record(number), self.record(TEMPLATE));
        let words = record.iter().zip(template).zip(&self.layout.compared);
        words.fold(0, |differs, ((a, b), mask)| differs | (a ^ b) & mask) == 0
            && self.is_as_template_beside(record, template, now, section)
    }

    /// What is not seen from words alone.
    #[inline(always)]
    fn is_as_template_beside(&self, record: &[u64], template: &[u64], now: i64, section: &Section) -> bool {
        let Layout { places, texts, .. } = &self.layout;
        let pools = &self.sides.pools;
        let both = |word: &u32| [record[*word as usize], template[*word as usize]];
        // A moment at the time `now` may still come: then it matters whether there was one before.
        let same_time = places.time.iter().map(both).all(|[a, b]| a == b || (a as i64) < now);
        let lasts =
            |until: u64| if (until as i64) < timed::instant(now) { timed::NEVER as u64 } else { until };
        same_time
            && places.timed_recently.iter().all(|at| {
                let [a, b] = both(&at.until).map(lasts);
                a == b
            })
            // What robustness is made of is never compared: where there is some, it differs.
            && [&places.pools.robust_once, &places.pools.robust_since, &places.pools.robust_dense]
                .into_iter()
                .all(|words| words.iter().map(both).all(|references| references == [0, 0]))
            && self.sides.relations.are_same([record, template], &places.relations, section)
            && texts.iter().map(both).all(|[a, b]| self.sides.text(a) == self.sides.text(b))
            && places.pools.delays.iter().map(both).all(|references| {
                let positions = [record, template].map(|record| record[POSITION]);
                references == [0, 0]
                    || Delay::goes_on_as(references.map(|delay| pools.delays.get(delay)), positions)
            })
            && places.pools.machines.iter().map(both).zip(&section.machines).all(|(references, plan)| {
                match references.map(|reference| pools.machines.get(reference)) {
                    // What must come to an end is not forgotten before.
                    [Some(a), Some(b)] => !plan.is_open(a) && a.goes_on_as(b, plan),
                    _ => true,
                }
            })
            && places.pools.windows.iter().map(both).zip(&section.windows).all(|(references, window)| {
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

    /// How many bytes the records and keys of the live instances take.
    pub(crate) fn live_bytes(&self) -> usize {
        let beside = if self.word_keys { 0 } else { size_of::<KeptKey>() };
        let each = self.layout.words * size_of::<u64>() + FOUND + beside;
        self.live as usize * each + self.key_bytes
    }

    /// How many bytes all of it takes.
    pub(crate) fn bytes(&self) -> usize {
        let keys: usize = self.keys.iter().map(KeptKey::bytes).sum();
        size_of_val(&self.records[..])
            + self.index.bytes()
            + keys
            + self.keys.capacity() * size_of::<KeptKey>()
            + (self.free.capacity() + self.removed.capacity()) * size_of::<u32>()
            + self.sides.bytes()
    }
}
