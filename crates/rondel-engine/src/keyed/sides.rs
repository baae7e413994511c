//! What records refer to because it has no fixed size: texts and queues. A reference is a word, 0 for
//! an empty one, which is not kept.

use rondel_event::Block;
use serde::{Deserialize, Serialize};

use crate::exec::section::Section;
use crate::exec::state::ValueState;
use crate::future::{Delayed, Pending};
use crate::keyed::relations::{Relations, SavedRelations};
use crate::keyed::robust::Robust;
use crate::keyed::waiting::{SavedWaits, Waits};
use crate::machine::MachineState;
use crate::ops::delay::Delay;
use crate::ops::since::TimedSince;
use crate::ops::window::Window;

/// Texts and queues of all instances of a slice.
#[derive(Clone, Debug)]
pub(crate) struct Sides {
    /// Of its parts the buffers are used: those of the program in front, one that stays empty, then the
    /// texts of instances.
    pub(crate) values: ValueState,
    /// The number of the one that stays empty. After it come those for the keys of a batch.
    pub(crate) empty: u32,
    /// The number of the first text of instances.
    own: u32,
    free_texts: Vec<u32>,
    pub(crate) delays: Pool<Delay>,
    pub(crate) sinces: Pool<TimedSince>,
    pub(crate) machines: Pool<MachineState>,
    pub(crate) windows: Pool<Window>,
    pub(crate) robust: Robust,
    /// What quantified formulas are made of.
    pub(crate) relations: Relations,
    /// What is pending, for every property that looks ahead.
    pub(crate) pending: Waits<Pending>,
    /// The same of those whose robustness is asked for.
    pub(crate) delayed: Waits<Delayed>,
    /// How many samples there was no room for in windows that are gone.
    pub(crate) dropped: u64,
}

impl Sides {
    /// With the buffers of a section, room for so many texts among the keys, and what
    /// properties that look ahead begin with.
    pub(crate) fn new(
        mut buffers: Vec<Vec<u8>>,
        keys: usize,
        pending: Waits<Pending>,
        delayed: Waits<Delayed>,
        relations: Relations,
    ) -> Sides {
        let empty = buffers.len() as u32;
        buffers.resize(Sides::first_text(buffers.len(), keys) as usize, Vec::new());
        Sides {
            empty,
            own: buffers.len() as u32,
            values: ValueState { buffers, ..ValueState::default() },
            free_texts: Vec::new(),
            delays: Pool::new(),
            sinces: Pool::new(),
            machines: Pool::new(),
            windows: Pool::new(),
            robust: Robust::new(),
            relations,
            pending,
            delayed,
            dropped: 0,
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

    /// Gives a window back, and remembers what it dropped.
    pub(crate) fn free_window(&mut self, reference: u64, initial: &Window) {
        if let Some(window) = self.windows.get_mut(reference) {
            self.dropped = self.dropped.saturating_add(window.dropped());
            // What it had kept is let go.
            window.clone_from(initial);
            self.windows.free(reference);
        }
    }

    /// How many obligations were given up because there were too many.
    pub(crate) fn lost(&self) -> u64 {
        [self.delayed.lost(), self.relations.lost()]
            .into_iter()
            .fold(self.pending.lost(), u64::saturating_add)
    }

    /// How many samples there was no room for.
    pub(crate) fn dropped_samples(&self) -> u64 {
        let windows = self.windows.all.iter().map(Window::dropped);
        windows.chain([self.robust.dropped()]).fold(self.dropped, u64::saturating_add)
    }

    /// How many bytes they take.
    pub(crate) fn bytes(&self) -> usize {
        let buffers = &self.values.buffers;
        buffers.iter().map(Vec::capacity).sum::<usize>()
            + buffers.capacity() * size_of::<Vec<u8>>()
            + self.free_texts.capacity() * size_of::<u32>()
            + self.delays.bytes(Delay::bytes)
            + self.sinces.bytes(TimedSince::bytes)
            + self.machines.bytes(MachineState::bytes)
            + self.windows.bytes(Window::bytes)
            + self.robust.bytes()
            + self.relations.bytes()
            + self.pending.bytes()
            + self.delayed.bytes()
    }
}

/// What of [`Sides`] goes into a snapshot.
#[derive(Serialize, Deserialize)]
pub(crate) struct SavedSides {
    pub(super) texts: Vec<Vec<u8>>,
    pub(super) free_texts: Vec<u32>,
    pub(super) delays: Pool<Delay>,
    pub(super) sinces: Pool<TimedSince>,
    pub(super) machines: Pool<MachineState>,
    pub(super) windows: Pool<Window>,
    pub(super) robust: Robust,
    pub(super) relations: SavedRelations,
    pub(super) pending: SavedWaits<Pending>,
    pub(super) delayed: SavedWaits<Delayed>,
    pub(super) dropped: u64,
}

impl Sides {
    pub(crate) fn saved(&self) -> SavedSides {
        let Sides { values, free_texts, delays, sinces, machines, windows, pending, .. } = self;
        let Sides { robust, relations, delayed, dropped, .. } = self;
        SavedSides {
            texts: values.buffers[self.own as usize..].to_vec(),
            free_texts: free_texts.clone(),
            delays: delays.clone(),
            sinces: sinces.clone(),
            machines: machines.clone(),
            windows: windows.clone(),
            robust: robust.clone(),
            relations: relations.saved(),
            pending: pending.saved(),
            delayed: delayed.saved(),
            dropped: *dropped,
        }
    }

    /// Takes over what was saved; false if it cannot be what was saved of such sides.
    pub(crate) fn restore(&mut self, section: &Section, saved: SavedSides) -> bool {
        let SavedSides { texts, free_texts, delays, sinces, machines, windows, robust, .. } = saved;
        let SavedSides { relations, pending, delayed, dropped, .. } = saved;
        self.values.buffers.truncate(self.own as usize);
        self.values.buffers.extend(texts);
        let fits = free_texts.iter().all(|&text| self.is_text(text.into()))
            && delays.is_sound()
            && sinces.is_sound()
            && machines.is_sound()
            && windows.is_sound()
            && robust.is_sound()
            && self.relations.restore(section, relations)
            && self.pending.restore(pending)
            && self.delayed.restore(delayed);
        (self.free_texts, self.dropped, self.robust) = (free_texts, dropped, robust);
        (self.delays, self.sinces, self.machines, self.windows) = (delays, sinces, machines, windows);
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

/// Values that are used again; a reference is the number of one, plus one.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Pool<T> {
    pub(super) all: Vec<T>,
    free: Vec<u32>,
}

impl<T: Clone> Pool<T> {
    pub(super) fn new() -> Pool<T> {
        Pool { all: Vec::new(), free: Vec::new() }
    }

    /// What a reference refers to.
    pub(crate) fn get(&self, reference: u64) -> Option<&T> {
        self.all.get((reference as usize).checked_sub(1)?)
    }

    pub(crate) fn get_mut(&mut self, reference: u64) -> Option<&mut T> {
        self.all.get_mut((reference as usize).checked_sub(1)?)
    }

    /// Takes a value in.
    pub(crate) fn add(&mut self, value: T) -> u64 {
        match self.free.pop() {
            Some(number) => {
                self.all[number as usize] = value;
                u64::from(number) + 1
            }
            None => {
                self.all.push(value);
                self.all.len() as u64
            }
        }
    }

    /// One that was given back, as it is.
    pub(super) fn again(&mut self) -> Option<u64> {
        self.free.pop().map(|number| u64::from(number) + 1)
    }

    /// Gives one back, with nothing in it.
    pub(crate) fn free(&mut self, reference: u64) {
        if reference != 0 {
            self.free.push(reference as u32 - 1);
        }
    }

    /// What a reference refers to; what is not there yet is added.
    pub(crate) fn get_or_add(&mut self, reference: &mut u64, initial: &T) -> Option<&mut T> {
        if *reference == 0 {
            *reference = self.add(initial.clone());
        }
        self.get_mut(*reference)
    }

    /// Gives one back as it was at first, so that nothing of what it had kept is, and says what it had dropped.
    pub(super) fn renew(&mut self, reference: u64, initial: &T, dropped: impl Fn(&T) -> u64) -> u64 {
        let Some(value) = self.get_mut(reference) else { return 0 };
        let before = dropped(value);
        value.clone_from(initial);
        self.free(reference);
        before
    }

    /// Whether all numbers to be used again are there.
    pub(super) fn is_sound(&self) -> bool {
        self.free.iter().all(|&number| (number as usize) < self.all.len())
    }

    /// Whether a reference refers to something, or is empty.
    pub(crate) fn may_be(&self, reference: u64) -> bool {
        reference as usize <= self.all.len()
    }

    /// A copy.
    pub(crate) fn copy(&mut self, reference: u64) -> u64 {
        match self.get(reference).cloned() {
            Some(value) => self.add(value),
            None => 0,
        }
    }

    pub(super) fn bytes(&self, of: impl Fn(&T) -> usize) -> usize {
        self.all.iter().map(of).sum::<usize>()
            + self.all.capacity() * size_of::<T>()
            + self.free.capacity() * size_of::<u32>()
    }
}
