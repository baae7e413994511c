//! Heap storage for the variable-size state of instances: texts, queues and relations. A reference is one
//! word; 0 is the empty value, which is not stored.

use rondel_event::Block;
use serde::{Deserialize, Serialize};

use crate::exec::section::Section;
use crate::exec::state::ValueState;
use crate::future::{Delayed, Pending};
use crate::keyed::pools::Pools;
use crate::keyed::record::Layout;
use crate::keyed::relations::{Relations, SavedRelations};
use crate::keyed::waiting::{SavedWaits, Waits};

/// Heap storage of all instances of a slice.
#[derive(Clone, Debug)]
pub(crate) struct InstanceHeap {
    /// Only its buffers are used: those of the program first, then one that stays empty, those for key texts,
    /// and the texts of instances.
    pub(crate) values: ValueState,
    /// Number of the buffer that stays empty. Those for the key texts of a batch follow it.
    pub(crate) empty: u32,
    /// Number of the first text of instances.
    own: u32,
    free_texts: Vec<u32>,
    pub(crate) pools: Pools,
    /// Relation states of quantified formulas.
    pub(crate) relations: Relations,
    /// Pending states, for every property with future operators.
    pub(crate) pending: Waits<Pending>,
    /// Delayed states, for every property with future operators and robustness.
    pub(crate) delayed: Waits<Delayed>,
}

impl InstanceHeap {
    /// Creates the storage with the buffers of a section, buffers for the key texts of a batch, and the
    /// initial states of properties with future operators.
    pub(crate) fn new(
        mut buffers: Vec<Vec<u8>>,
        keys: usize,
        pending: Waits<Pending>,
        delayed: Waits<Delayed>,
        relations: Relations,
    ) -> InstanceHeap {
        let empty = buffers.len() as u32;
        buffers.resize(InstanceHeap::first_text(buffers.len(), keys) as usize, Vec::new());
        InstanceHeap {
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

    /// Returns the number of the first text of instances, for that many buffers and key parts.
    pub(super) fn first_text(buffers: usize, keys: usize) -> u32 {
        (buffers + 1 + Block::CAPACITY * keys) as u32
    }

    /// Returns the buffer of a text reference.
    #[inline(always)]
    pub(crate) fn buffer(&self, reference: u64) -> u32 {
        if reference == 0 { self.empty } else { reference as u32 }
    }

    /// Returns the buffer for the text of a key part in a row.
    pub(crate) fn key_text(&self, key: u32, row: usize) -> u32 {
        self.empty + 1 + key * Block::CAPACITY as u32 + row as u32
    }

    /// Returns the text of a reference.
    pub(crate) fn text(&self, reference: u64) -> &[u8] {
        &self.values.buffers[self.buffer(reference) as usize]
    }

    /// Returns the reference, or one to a new text if it is empty.
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

    /// Frees a text.
    pub(crate) fn free_text(&mut self, reference: u64) {
        if reference != 0 {
            // Capacity of long texts is released.
            let text = &mut self.values.buffers[reference as usize];
            text.clear();
            text.shrink_to(64);
            self.free_texts.push(reference as u32);
        }
    }

    /// Copies a text and returns the reference of the copy.
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

    /// Replaces the references of a record, which are to another heap, by references to copies.
    pub(super) fn adopt(&mut self, other: &InstanceHeap, record: &mut [u64], layout: &Layout) {
        let places = &layout.places;
        for &word in &layout.texts {
            record[word as usize] = self.adopt_text(other, record[word as usize]);
        }
        self.pools.adopt(&other.pools, record, &places.pools);
        self.relations.adopt(&other.relations, record, &places.relations);
        for (future, &word) in places.pending.iter().enumerate() {
            record[word as usize] = self.pending.adopt(&other.pending, future, record[word as usize]);
        }
        for (future, &word) in places.delayed.iter().enumerate() {
            record[word as usize] = self.delayed.adopt(&other.delayed, future, record[word as usize]);
        }
    }

    /// Copies a text of another heap and returns the reference of the copy.
    fn adopt_text(&mut self, other: &InstanceHeap, reference: u64) -> u64 {
        if reference == 0 {
            return 0;
        }
        let copy = self.own_text(0);
        self.values.buffers[copy as usize].extend_from_slice(other.text(reference));
        copy
    }

    /// Adds the numbers of obligations and samples that freed states of another heap have dropped.
    pub(super) fn add_lost(&mut self, other: &InstanceHeap) {
        self.pools.dropped = self.pools.dropped.saturating_add(other.pools.dropped);
        self.relations.add_lost(&other.relations);
        self.pending.add_lost(&other.pending);
        self.delayed.add_lost(&other.delayed);
    }

    /// Number of obligations dropped because of limits.
    pub(crate) fn lost(&self) -> u64 {
        [self.delayed.lost(), self.relations.lost()]
            .into_iter()
            .fold(self.pending.lost(), u64::saturating_add)
    }

    /// Number of samples dropped because of limits.
    pub(crate) fn dropped_samples(&self) -> u64 {
        self.pools.dropped()
    }

    /// Size in bytes.
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

/// Saved form of [`InstanceHeap`].
#[derive(Serialize, Deserialize)]
pub(crate) struct SavedHeap {
    pub(super) texts: Vec<Vec<u8>>,
    pub(super) free_texts: Vec<u32>,
    pub(super) pools: Pools,
    pub(super) relations: SavedRelations,
    pub(super) pending: SavedWaits<Pending>,
    pub(super) delayed: SavedWaits<Delayed>,
}

impl SavedHeap {
    /// Joins the numbers of obligations and samples that freed states have dropped with those of another monitor. They may
    /// have a common past, so that the greater ones stay.
    pub(super) fn join_lost(&mut self, other: &SavedHeap) {
        self.pools.dropped = self.pools.dropped.max(other.pools.dropped);
        self.relations.lost = self.relations.lost.max(other.relations.lost);
        self.pending.lost = self.pending.lost.max(other.pending.lost);
        self.delayed.lost = self.delayed.lost.max(other.delayed.lost);
    }
}

impl InstanceHeap {
    /// Returns a heap of the same section without a state of instances.
    pub(super) fn emptied(&self) -> InstanceHeap {
        let buffers = self.values.buffers[..self.own as usize].to_vec();
        InstanceHeap {
            values: ValueState { buffers, ..ValueState::default() },
            empty: self.empty,
            own: self.own,
            free_texts: Vec::new(),
            pools: Pools::new(),
            relations: self.relations.emptied(),
            pending: self.pending.emptied(),
            delayed: self.delayed.emptied(),
        }
    }

    pub(super) fn into_saved(self) -> SavedHeap {
        let InstanceHeap { mut values, own, free_texts, pools, relations, pending, delayed, .. } = self;
        SavedHeap {
            texts: values.buffers.split_off(own as usize),
            free_texts,
            pools,
            relations: relations.into_saved(),
            pending: pending.into_saved(),
            delayed: delayed.into_saved(),
        }
    }

    /// Takes over a saved state. Returns false if it does not fit.
    pub(crate) fn restore(&mut self, section: &Section, saved: SavedHeap) -> bool {
        let SavedHeap { texts, free_texts, pools, relations, pending, delayed } = saved;
        self.values.buffers.truncate(self.own as usize);
        self.values.buffers.extend(texts);
        let fits = free_texts.iter().all(|&text| self.is_text(text.into()))
            && self.relations.restore(section, relations)
            && self.pending.restore(pending)
            && self.delayed.restore(delayed);
        (self.free_texts, self.pools) = (free_texts, pools);
        fits
    }

    /// Whether a reference is to a text of an instance.
    fn is_text(&self, reference: u64) -> bool {
        (u64::from(self.own)..self.values.buffers.len() as u64).contains(&reference)
    }

    /// Whether a reference is empty or to a text of an instance.
    pub(crate) fn is_text_or_empty(&self, reference: u64) -> bool {
        reference == 0 || self.is_text(reference)
    }
}
