//! A table as it goes into a snapshot. The index is not in it: it follows from the keys.

use serde::{Deserialize, Serialize};

use crate::exec::section::Section;
use crate::keyed::keys::{self, KeptKey};
use crate::keyed::record::{FREE, KEY, POSITION};
use crate::keyed::sides::SavedSides;
use crate::keyed::table::{TEMPLATE, Table};

/// What of a [`Table`] goes into a snapshot.
#[derive(Serialize, Deserialize)]
pub(crate) struct SavedTable {
    /// The records, one after the other.
    pub(in crate::keyed) words: Vec<u64>,
    pub(in crate::keyed) free: Vec<u32>,
    pub(in crate::keyed) removed: Vec<u32>,
    /// The keys, where they are several words.
    pub(in crate::keyed) keys: Vec<Vec<u64>>,
    pub(in crate::keyed) sides: SavedSides,
}

impl Table {
    pub(crate) fn saved(&self) -> SavedTable {
        SavedTable {
            words: self.records.clone(),
            free: self.free.clone(),
            removed: self.removed.clone(),
            keys: self.keys.iter().map(|key| key.parts().to_vec()).collect(),
            sides: self.sides.saved(),
        }
    }

    /// Takes over what was saved, in a table with nothing but the template; false if it cannot be what was
    /// saved of such a table.
    pub(crate) fn restore(&mut self, section: &Section, saved: SavedTable) -> bool {
        let SavedTable { words, free, removed, keys, sides } = saved;
        let len = self.layout.words;
        let Ok(used) = u32::try_from(words.len() / len) else { return false };
        if used == 0 || words.len() % len != 0 || keys.len() > used as usize {
            return false;
        }
        if !self.sides.restore(section, sides) {
            return false;
        }
        (self.records, self.used, self.free, self.removed) = (words, used, free, removed);
        self.keys = keys.iter().map(|key| KeptKey::new(key)).collect();
        self.key_bytes = self.keys.iter().map(KeptKey::bytes).sum();
        self.has_sound_numbers() && (0..used).all(|number| self.adopt(number))
    }

    /// Whether just the records that are nobody's will be used again.
    fn has_sound_numbers(&self) -> bool {
        let mut nobodys = [&self.free[..], &self.removed].concat();
        nobodys.sort_unstable();
        self.is_live(TEMPLATE) && nobodys.into_iter().eq((0..self.used).filter(|&n| !self.is_live(n)))
    }

    /// Makes a record that is an instance's known by its key; false if it cannot be a record.
    fn adopt(&mut self, number: u32) -> bool {
        let (record, places) = (self.record(number), &self.layout.places);
        if record[POSITION] == FREE {
            return true;
        }
        let all =
            |words: &[u32], is: &dyn Fn(u64) -> bool| words.iter().all(|&word| is(record[word as usize]));
        let sides = &self.sides;
        let fits = all(&self.layout.texts, &|text| sides.may_be_text(text))
            && sides.pools.may_be(record, &places.pools)
            && (0..)
                .zip(&places.relations)
                .all(|(k, &word)| sides.relations.may_be(k, record[word as usize]))
            && (0..).zip(&places.pending).all(|(k, &word)| sides.pending.may_be(k, record[word as usize]))
            && (0..).zip(&places.delayed).all(|(k, &word)| sides.delayed.may_be(k, record[word as usize]))
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
