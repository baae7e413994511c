//! What records refer to because it has no fixed size: texts and queues. A reference is a word, 0 for
//! an empty one, which is not kept.

use rondel_event::Block;
use serde::{Deserialize, Serialize};

use crate::exec::section::Section;
use crate::exec::state::ValueState;
use crate::future::{Delayed, Pending};
use crate::keyed::pools::Pools;
use crate::keyed::relations::{Relations, SavedRelations};
use crate::keyed::waiting::{SavedWaits, Waits};

/// Texts and queues of all instances of a slice.
#[derive(Clone, Debug)]
pub(crate) struct KeyedSides {
    /// Of its parts the buffers are used: those of the program in front, one that stays empty, then the
    /// texts of instances.
    pub(crate) values: ValueState,
    /// The number of the one that stays empty. After it come those for the keys of a batch.
    pub(crate) empty: u32,
    /// The number of the first text of instances.
    own: u32,
    free_texts: Vec<u32>,
    pub(crate) pools: Pools,
    /// What quantified formulas are made of.
    pub(crate) relations: Relations,
    /// What is pending, for every property that looks ahead.
    pub(crate) pending: Waits<Pending>,
    /// The same of those whose robustness is asked for.
    pub(crate) delayed: Waits<Delayed>,
}

impl KeyedSides {
    /// With the buffers of a section, room for so many texts among the keys, and what
    /// properties that look ahead begin with.
    pub(crate) fn new(
        mut buffers: Vec<Vec<u8>>,
        keys: usize,
        pending: Waits<Pending>,
        delayed: Waits<Delayed>,
        relations: Relations,
    ) -> KeyedSides {
        let empty = buffers.len() as u32;
        buffers.resize(KeyedSides::first_text(buffers.len(), keys) as usize, Vec::new());
        KeyedSides {
            empty,
            own: buffers.len() as u32,
            values: ValueState { buffers, ..ValueState::default() },
            free_texts: Vec::new(),
            pools: Pools::new(),
            relations,
            pending,
            delayed,
        }
    }

    /// The number of the first text of instances, of a section with so many buffers and keys.
    pub(super) fn first_text(buffers: usize, keys: usize) -> u32 {
        (buffers + 1 + Block::CAPACITY * keys) as u32
    }

    /// The number of the buffer with the text of a reference.
    #[inline(always)]
    pub(crate) fn buffer(&self, reference: u64) -> u32 {
        if reference == 0 { self.empty } else { reference as u32 }
    }

    /// The buffer for a text among the keys of a row.
    pub(crate) fn key_text(&self, key: u32, row: usize) -> u32 {
        self.empty + 1 + key * Block::CAPACITY as u32 + row as u32
    }

    /// The text of a reference.
    pub(crate) fn text(&self, reference: u64) -> &[u8] {
        &self.values.buffers[self.buffer(reference) as usize]
    }

    /// A reference to an own text; the one that is given, if it is one.
    pub(crate) fn own_text(&mut self, reference: u64) -> u64 {
        if reference != 0 {
            return reference;
        }
        let number = self.free_texts.pop().unwrap_or_else(|| {
            self.values.buffers.push(Vec::new());
            self.values.buffers.len() as u32 - 1
        });
        number.into()
    }

    /// Gives a text back.
    pub(crate) fn free_text(&mut self, reference: u64) {
        if reference != 0 {
            // Long texts are not kept for whoever comes next.
            let text = &mut self.values.buffers[reference as usize];
            text.clear();
            text.shrink_to(64);
            self.free_texts.push(reference as u32);
        }
    }

    /// A copy of a text.
    pub(crate) fn copy_text(&mut self, reference: u64) -> u64 {
        if reference == 0 {
            return 0;
        }
        let copy = self.own_text(0);
        let buffers = &mut self.values.buffers;
        let mut text = std::mem::take(&mut buffers[copy as usize]);
        text.extend_from_slice(&buffers[reference as usize]);
        buffers[copy as usize] = text;
        copy
    }

    /// How many obligations were given up because there were too many.
    pub(crate) fn lost(&self) -> u64 {
        [self.delayed.lost(), self.relations.lost()]
            .into_iter()
            .fold(self.pending.lost(), u64::saturating_add)
    }

    /// How many samples there was no room for.
    pub(crate) fn dropped_samples(&self) -> u64 {
        self.pools.dropped()
    }

    /// How many bytes they take.
    pub(crate) fn bytes(&self) -> usize {
        let buffers = &self.values.buffers;
        buffers.iter().map(Vec::capacity).sum::<usize>()
            + buffers.capacity() * size_of::<Vec<u8>>()
            + self.free_texts.capacity() * size_of::<u32>()
            + self.pools.bytes()
            + self.relations.bytes()
            + self.pending.bytes()
            + self.delayed.bytes()
    }
}

/// What of [`KeyedSides`] goes into a snapshot.
#[derive(Serialize, Deserialize)]
pub(crate) struct SavedSides {
    pub(super) texts: Vec<Vec<u8>>,
    pub(super) free_texts: Vec<u32>,
    pub(super) pools: Pools,
    pub(super) relations: SavedRelations,
    pub(super) pending: SavedWaits<Pending>,
    pub(super) delayed: SavedWaits<Delayed>,
}

impl KeyedSides {
    pub(crate) fn saved(&self) -> SavedSides {
        let KeyedSides { values, free_texts, pools, relations, pending, delayed, .. } = self;
        SavedSides {
            texts: values.buffers[self.own as usize..].to_vec(),
            free_texts: free_texts.clone(),
            pools: pools.clone(),
            relations: relations.saved(),
            pending: pending.saved(),
            delayed: delayed.saved(),
        }
    }

    /// Takes over what was saved; false if it cannot be what was saved of such sides.
    pub(crate) fn restore(&mut self, section: &Section, saved: SavedSides) -> bool {
        let SavedSides { texts, free_texts, pools, relations, pending, delayed } = saved;
        self.values.buffers.truncate(self.own as usize);
        self.values.buffers.extend(texts);
        let fits = free_texts.iter().all(|&text| self.is_text(text.into()))
            && self.relations.restore(section, relations)
            && self.pending.restore(pending)
            && self.delayed.restore(delayed);
        (self.free_texts, self.pools) = (free_texts, pools);
        fits
    }

    /// Whether a reference is one to a text of an instance.
    fn is_text(&self, reference: u64) -> bool {
        (u64::from(self.own)..self.values.buffers.len() as u64).contains(&reference)
    }

    /// Whether a reference is one to a text, or to none.
    pub(crate) fn may_be_text(&self, reference: u64) -> bool {
        reference == 0 || self.is_text(reference)
    }
}
