//! Transfer of state between two sections whose nodes compute the same as long as some topics have no
//! messages.

use std::collections::{BTreeSet, HashMap};
use std::mem::{Discriminant, discriminant};

use super::Serial;
use crate::exec::inventory::Inventory;
use crate::exec::section::Section;
use crate::exec::state::LISTS;
use crate::ir::found::{ALWAYS_FALSE, ALWAYS_TRUE};
use crate::ir::instruction::Instruction;

/// Correspondence of states: those of both sections, with equal identities where they match.
#[derive(Clone, Debug)]
pub(crate) struct StateTransfer {
    /// Inventories of the section and of its eager section.
    own: Vec<Inventory>,
    other: Vec<Inventory>,
    /// Operators that are evaluated ahead in the section only: index of the ranges here, and place of the
    /// state there.
    ranges: Vec<(u32, (usize, u32))>,
}

/// A section and its eager section.
fn parts(section: &Section) -> impl Iterator<Item = &Section> {
    std::iter::once(section).chain(section.eager.as_deref())
}

/// The instructions of a section with their identities, except constants.
fn instructions(section: &Section) -> impl Iterator<Item = (&Instruction, u64)> {
    section.instructions.iter().zip(section.identities.nodes.iter().copied())
}

impl StateTransfer {
    /// The correspondence, or none if the other section lacks a state whose identity `is_required`.
    pub(crate) fn new(
        own: &Section,
        other: &Section,
        is_required: impl Fn(u64) -> bool,
    ) -> Option<StateTransfer> {
        let mut names: HashMap<(u64, Discriminant<Instruction>), Vec<u64>> = HashMap::new();
        let mut recently: HashMap<u64, (usize, u32)> = HashMap::new();
        let mut transfer = StateTransfer { own: Vec::new(), other: Vec::new(), ranges: Vec::new() };
        for (place, part) in parts(other).enumerate() {
            let mut inventory = Inventory::blank(part);
            for (instruction, identity) in instructions(part) {
                if let Instruction::TimedRecently { state, .. } = *instruction {
                    recently.entry(identity).or_insert((place, state));
                }
                let mut its = Vec::new();
                instruction.for_each_state(|list, at| {
                    let list_number = (place * LISTS + list as usize) as u64;
                    let name = (list_number << 32 | u64::from(at)) + 1;
                    inventory.put(list, at, name);
                    its.push(name);
                });
                if !its.is_empty() {
                    names.entry((identity, discriminant(instruction))).or_insert(its);
                }
            }
            transfer.other.push(inventory);
        }
        for part in parts(own) {
            let mut inventory = Inventory::blank(part);
            for (instruction, identity) in instructions(part) {
                if [ALWAYS_FALSE, ALWAYS_TRUE].contains(&identity) {
                    continue;
                }
                let its = names.get(&(identity, discriminant(instruction)));
                if let (Instruction::LookedAhead { state, .. }, None) = (instruction, its)
                    && let Some(place) = recently.get(&identity)
                {
                    transfer.ranges.push((*state, *place));
                    continue;
                }
                let mut its = its.into_iter().flatten();
                let mut is_missing = false;
                instruction.for_each_state(|list, at| match its.next() {
                    Some(name) => inventory.put(list, at, *name),
                    None => is_missing = true,
                });
                if is_missing && is_required(identity) {
                    return None;
                }
            }
            transfer.own.push(inventory);
        }
        Some(transfer)
    }

    /// Identities of the nodes of a section that have state.
    pub(crate) fn required(section: &Section) -> BTreeSet<u64> {
        let all = parts(section).flat_map(instructions);
        let keeps = |instruction: &Instruction| {
            let mut keeps = false;
            instruction.for_each_state(|_, _| keeps = true);
            keeps
        };
        all.filter(|(instruction, _)| keeps(instruction)).map(|(_, identity)| identity).collect()
    }
}

impl Serial {
    /// Copies the states and the position of another section.
    pub(crate) fn transfer(&mut self, from: &Serial, transfer: &StateTransfer) {
        let others = || std::iter::once(from).chain(from.eager.as_deref()).zip(&transfer.other);
        let mut names = transfer.own.iter();
        let mut take = |own: &mut Serial| {
            if let Some(names) = names.next() {
                others().for_each(|(other, others)| own.state.take(names, &other.state, others));
            }
            (own.position, own.time) = (from.position, from.time);
        };
        take(self);
        self.eager.as_deref_mut().into_iter().for_each(take);
        for &(at, (place, state)) in &transfer.ranges {
            let other = std::iter::once(from).chain(from.eager.as_deref()).nth(place);
            let recently = other.and_then(|other| other.state.timed_recently.get(state as usize));
            if let (Some(own), Some(recently)) = (self.state.ranges.get_mut(at as usize), recently) {
                *own = own.continued(recently, from.time);
            }
        }
    }
}
