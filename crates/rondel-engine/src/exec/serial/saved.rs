//! Saved form of a section.

use serde::{Deserialize, Serialize};

use super::Serial;
use crate::exec::inventory::{Origins, Outline, take_named};
use crate::exec::section::Section;
use crate::exec::state::{Registers, State};
use crate::future::{Delayed, Pending};
use crate::ir::found::take;
use crate::ir::premise::Unexercised;

/// The part of a [`Serial`] that a snapshot contains.
#[derive(Serialize, Deserialize)]
pub(crate) struct SavedSerial {
    state: State,
    pending: Vec<Pending>,
    delayed: Vec<Delayed>,
    /// Serialized instances of each formula that has them.
    inner: Vec<Vec<u8>>,
    eager: Option<Box<SavedSerial>>,
    position: u64,
    time: i64,
    last: Vec<[u64; 2]>,
    last_after: Vec<[u64; 2]>,
    levels: Vec<Option<f64>>,
    /// Registers of the last row: verdicts on the interval after it may still be emitted.
    words: Vec<u64>,
    ints: Vec<i64>,
    floats: Vec<f64>,
    unexercised: Unexercised,
}

impl SavedSerial {
    /// Copies the state of properties that both sections have. Other state stays.
    pub(crate) fn take(&mut self, own: &Outline, other: &SavedSerial, others: &Outline, from: &Origins) {
        self.state.take(&own.inventory, &other.state, &others.inventory);
        let Outline { inventory, properties, futures, robust_futures, premises, eager } = own;
        let names = &others.inventory;
        take_named(&mut self.words, &inventory.words, &other.words, &names.words);
        take_named(&mut self.floats, &inventory.floats, &other.floats, &names.floats);
        take(&mut self.inner, &inventory.inner, &other.inner, &names.inner);
        let own_properties = from.of(properties);
        take(&mut self.last, &own_properties, &other.last, &others.numbers(&others.properties));
        take(&mut self.last_after, &own_properties, &other.last_after, &others.numbers(&others.properties));
        take(&mut self.levels, &own_properties, &other.levels, &others.numbers(&others.properties));
        let (futures, of_others) = (from.of_ahead(futures), others.numbers_ahead(&others.futures));
        take(&mut self.pending, &futures, &other.pending, &of_others);
        let (robust, of_others) =
            (from.of_ahead(robust_futures), others.numbers_ahead(&others.robust_futures));
        take(&mut self.delayed, &robust, &other.delayed, &of_others);
        if let (Some(own), Some(other), Some(of), Some(names)) =
            (&mut self.eager, &other.eager, eager, &others.eager)
        {
            own.state.take(of, &other.state, names);
            (own.position, own.time) = (other.position, other.time);
        }
        self.unexercised = other.unexercised.moved(&from.of_premises(premises), &others.premises);
        (self.position, self.time) = (other.position, other.time);
    }
}

impl Serial {
    pub(crate) fn saved(&self) -> SavedSerial {
        let row = self.last_row();
        let (mut state, words) = (self.state.clone(), &self.registers.words);
        // The specialised form follows from the state: it is not saved.
        let words = match &self.specialised {
            None => words.iter().map(|word| word >> row & 1).collect(),
            Some(specialised) => {
                specialised.complete(&mut state);
                specialised.words(words).map(|word| word >> row & 1).collect()
            }
        };
        SavedSerial {
            state,
            words,
            pending: self.pending.clone(),
            delayed: self.delayed.clone(),
            inner: self.inner.iter().map(|inner| inner.saved()).collect(),
            eager: self.eager.as_ref().map(|eager| Box::new(eager.saved())),
            position: self.position,
            time: self.time,
            last: self.last.clone(),
            last_after: self.last_after.clone(),
            levels: self.levels.clone(),
            ints: self.registers.columns.ints.iter().map(|column| column[row]).collect(),
            floats: self.registers.columns.floats.iter().map(|column| column[row]).collect(),
            unexercised: self.unexercised.clone(),
        }
    }

    /// Restores saved state; false if it does not fit the section.
    pub(crate) fn restore(&mut self, section: &Section, saved: SavedSerial) -> bool {
        let SavedSerial { mut state, pending, delayed, eager, position, time, last, last_after, .. } = saved;
        let SavedSerial { levels, words, ints, floats, inner, unexercised, .. } = saved;
        let eager_fits = match (&mut self.eager, &section.eager, eager) {
            (None, None, None) => true,
            (Some(eager), Some(section), Some(saved)) => eager.restore(section, *saved),
            _ => false,
        };
        let Registers { words: own_words, columns, .. } = &mut self.registers;
        let fits = eager_fits
            && state.fits(&self.state)
            && (state.relations.iter_mut().zip(&self.state.relations).zip(&section.relations))
                .all(|((saved, own), relation)| saved.complete(own, &relation.plan))
            && pending.len() == self.pending.len()
            && pending.iter().zip(&self.pending).all(|(saved, own)| saved.fits(own))
            && delayed.len() == self.delayed.len()
            && delayed.iter().zip(&self.delayed).all(|(saved, own)| saved.fits(own))
            && (last.len(), last_after.len()) == (self.last.len(), self.last_after.len())
            && levels.len() == self.levels.len()
            && (words.len(), ints.len(), floats.len())
                == (own_words.len(), columns.ints.len(), columns.floats.len())
            && inner.len() == self.inner.len()
            && self.inner.iter_mut().zip(inner).all(|(own, saved)| own.restore(&saved))
            && self.unexercised.restore(unexercised, section.premises.len());
        if !fits {
            return false;
        }
        // Constants have been computed for all rows.
        for (own, word) in own_words.iter_mut().zip(words).skip(section.constant) {
            *own = word;
        }
        columns.ints.iter_mut().zip(ints).for_each(|(own, value)| own[0] = value);
        columns.floats.iter_mut().zip(floats).for_each(|(own, value)| own[0] = value);
        (self.state, self.pending, self.delayed) = (state, pending, delayed);
        (self.position, self.time) = (position, time);
        (self.last, self.last_after, self.last_row, self.levels) = (last, last_after, 0, levels);
        self.specialised = None;
        true
    }
}
