//! What a section keeps, each part of it by the identity of the node that keeps it. With this a state is found again in
//! another program, in which the same nodes have other places.

use std::collections::{BTreeSet, HashMap, HashSet};

use serde::{Deserialize, Serialize};

use crate::exec::section::{Margin, Section, TimePoints};
use crate::exec::state::{LISTS, List};
use crate::ir::found::UNIDENTIFIED;
use crate::ir::instruction::Instruction as I;
use crate::ir::wire::Wire;

/// The identities of what a section keeps.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub(crate) struct Inventory {
    lists: [Vec<u64>; LISTS],
    /// Of the registers that are read after their block, with their places: words, and columns of floats.
    pub(crate) words: Vec<(u32, u64)>,
    pub(crate) floats: Vec<(u32, u64)>,
    /// Of the formulas with instances of their own.
    pub(crate) inner: Vec<u64>,
}

impl Inventory {
    pub(crate) fn new(section: &Section) -> Inventory {
        let mut own = Inventory::blank(section);
        for (instruction, &identity) in section.instructions.iter().zip(&section.identities) {
            own.add(instruction, identity);
        }
        // An instruction may have two places in a list, and nodes that say the same are distinguished by their order.
        own.lists.iter_mut().chain([&mut own.inner]).for_each(|list| distinguish(list));
        if section.time_points == TimePoints::Dense {
            own.add_registers(section);
        }
        own
    }

    /// Names nothing that a section keeps.
    pub(crate) fn blank(section: &Section) -> Inventory {
        Inventory {
            inner: vec![UNIDENTIFIED; section.inner.len()],
            lists: section.initial.sizes().map(|size| vec![UNIDENTIFIED; size]),
            ..Inventory::default()
        }
    }

    /// Adds what is still read of the last row of a block: of the span after it.
    fn add_registers(&mut self, section: &Section) {
        let formulas = section.formulas.iter().map(|truth| truth.after);
        let formulas = formulas.flat_map(|bounds| [bounds.certain, bounds.possible]);
        let premises = section.premises.iter().map(|premise| premise.certain.after);
        let words: BTreeSet<usize> = formulas.chain(premises).map(Wire::word).collect();
        let identity = |word: usize| Some((word as u32, *section.identities.get(word)?));
        self.words = words.into_iter().filter_map(identity).collect();
        let columns = section.robust.iter().flatten().filter_map(|margin| match margin {
            Margin::Levels([_, after]) => Some(*after),
            Margin::Truth => None,
        });
        let columns: BTreeSet<u32> = columns.flatten().collect();
        for (instruction, identity) in section.instructions.iter().zip(&section.identities) {
            self.floats.extend(
                instruction.float_column().filter(|out| columns.contains(out)).map(|out| (out, *identity)),
            );
        }
    }

    /// The identities of a list.
    pub(crate) fn list(&self, list: List) -> &[u64] {
        &self.lists[list as usize]
    }

    /// Whether another section keeps all that this one does.
    pub(crate) fn is_within(&self, other: &Inventory) -> bool {
        let lists = self.lists.iter().zip(&other.lists).chain([(&self.inner, &other.inner)]);
        lists.into_iter().all(|(own, other)| {
            let other: HashSet<&u64> = other.iter().collect();
            own.iter().all(|identity| *identity == UNIDENTIFIED || other.contains(identity))
        })
    }

    fn add(&mut self, instruction: &I, identity: u64) {
        if let I::ByValue { number, .. } = *instruction
            && let Some(place) = self.inner.get_mut(number as usize)
        {
            *place = identity;
        }
        instruction.for_each_state(|list, at| self.put(list, at, identity));
    }

    /// Names a place of a list.
    pub(crate) fn put(&mut self, list: List, at: u32, identity: u64) {
        if let Some(place) = self.lists[list as usize].get_mut(at as usize) {
            *place = identity;
        }
    }
}

impl I {
    /// Calls `put` with each place in a list of states that it keeps.
    pub(crate) fn for_each_state(&self, mut put: impl FnMut(List, u32)) {
        match *self {
            I::HeldBool { state, .. }
            | I::Line { state, .. }
            | I::Since { state, .. }
            | I::Shift { state, .. } => {
                put(List::Bits, state);
            }
            I::Recently { state, .. } => put(List::Recently, state),
            I::Delay { state, .. } => put(List::Delays, state),
            I::TimedRecently { state, .. } => put(List::TimedRecently, state),
            I::TimedSince { state, .. } => put(List::TimedSince, state),
            I::LookedAhead { state, .. } => put(List::Ranges, state),
            I::Lasting { state, .. } => put(List::Lasting, state),
            I::Chain { state, .. } => put(List::Chains, state),
            I::Machine { machine, .. } => put(List::Machines, machine),
            I::Quantified { relation, .. } => put(List::Relations, relation),
            I::HeldInt { state, .. } => put(List::HeldInts, state),
            I::HeldFloat { state, .. } => put(List::HeldFloats, state),
            I::HeldText { state, buffer, .. } => {
                put(List::KnownTexts, state);
                put(List::Buffers, buffer);
            }
            I::LatchInt { state, .. } => put(List::LatchedInts, state),
            I::LatchFloat { state, .. } => put(List::LatchedFloats, state),
            I::LatchText { buffer, .. } => {
                put(List::Buffers, buffer);
                put(List::Buffers, buffer + 1);
            }
            I::SampledInt { state, .. } => put(List::Sampled, state),
            I::Window { window, .. } => put(List::Windows, window),
            I::RobustOnce { state, .. } => put(List::RobustOnce, state),
            I::RobustSince { state, .. } => put(List::RobustSince, state),
            I::RobustDense { state, .. } => put(List::RobustDense, state),
            _ => {}
        }
    }

    /// The column of floats that it writes.
    fn float_column(&self) -> Option<u32> {
        match *self {
            I::MachineFloat { out, .. }
            | I::ConstantFloat { out, .. }
            | I::ToFloat { out, .. }
            | I::UnaryFloat { out, .. }
            | I::BinaryFloat { out, .. }
            | I::CallNumber { out, .. }
            | I::CallNumbers { out, .. }
            | I::HeldFloat { out, .. }
            | I::SelectFloat { out, .. }
            | I::LatchFloat { out, .. }
            | I::MarginInt { out, .. }
            | I::MarginFloat { out, .. }
            | I::RobustOnce { out, .. }
            | I::RobustSince { out, .. }
            | I::RobustDense { out, .. }
            | I::AfterFloat { out, .. } => Some(out),
            _ => None,
        }
    }
}

/// Makes equal identities of a list different, by their order.
fn distinguish(list: &mut [u64]) {
    let mut seen: HashMap<u64, u64> = HashMap::new();
    for identity in list.iter_mut().filter(|identity| **identity != UNIDENTIFIED) {
        let count = seen.entry(*identity).or_default();
        *count += 1;
        *identity = identity.wrapping_add((*count - 1).wrapping_mul(0x9E37_79B9_7F4A_7C15));
    }
}

/// Takes over what is named in both of two lists; names are places with identities.
pub(crate) fn take_named<T: Clone>(own: &mut [T], names: &[(u32, u64)], other: &[T], others: &[(u32, u64)]) {
    let others: HashMap<u64, u32> = others.iter().map(|(place, identity)| (*identity, *place)).collect();
    for (place, identity) in names {
        let from = others.get(identity).and_then(|from| other.get(*from as usize));
        if let (Some(own), Some(other)) = (own.get_mut(*place as usize), from) {
            own.clone_from(other);
        }
    }
}

/// What a section keeps of its nodes and of its properties.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct Outline {
    pub(crate) inventory: Inventory,
    /// The properties by their positions, in the order of the section.
    pub(crate) properties: Vec<u32>,
    /// Those that look ahead, each with what it waits for.
    pub(crate) futures: Vec<(u32, u64)>,
    pub(crate) robust_futures: Vec<(u32, u64)>,
    /// The premises by property and number.
    pub(crate) premises: Vec<(u32, u32)>,
    pub(crate) scout: Option<Inventory>,
}

impl Outline {
    pub(crate) fn new(section: &Section) -> Outline {
        let [ahead, robust] = &section.ahead_identities;
        let futures =
            section.futures.iter().zip(ahead).map(|(future, identity)| (future.property, *identity));
        let robust =
            section.robust_futures.iter().zip(robust).map(|(future, identity)| (future.property, *identity));
        Outline {
            inventory: Inventory::new(section),
            properties: section.properties.clone(),
            futures: futures.collect(),
            robust_futures: robust.collect(),
            premises: section.premises.iter().map(|premise| (premise.property, premise.number)).collect(),
            scout: section.scout.as_deref().map(Inventory::new),
        }
    }

    /// All properties, by their positions.
    pub(crate) fn all_properties(&self) -> impl Iterator<Item = u32> + '_ {
        let ahead = self.futures.iter().chain(&self.robust_futures).map(|(property, _)| *property);
        self.properties.iter().copied().chain(ahead)
    }

    /// Numbers of its properties under which they are found from another program; 0 is none.
    pub(crate) fn numbers(&self, properties: &[u32]) -> Vec<u64> {
        properties.iter().map(|property| u64::from(*property) + 1).collect()
    }

    /// The same of properties that look ahead.
    pub(crate) fn numbers_ahead(&self, properties: &[(u32, u64)]) -> Vec<u64> {
        properties.iter().map(|(property, identity)| number(*property, *identity)).collect()
    }
}

fn number(property: u32, ahead: u64) -> u64 {
    ahead.rotate_left(17).wrapping_add(u64::from(property) + 1)
}

/// For every property of a program its position in another one, if it continues from there.
#[derive(Clone, Debug, Default)]
pub(crate) struct Origins(pub(crate) Vec<Option<u32>>);

impl Origins {
    pub(crate) fn get(&self, property: u32) -> Option<u32> {
        self.0.get(property as usize).copied().flatten()
    }

    /// The numbers of properties in the other program; see [`Outline::numbers`].
    pub(crate) fn of(&self, properties: &[u32]) -> Vec<u64> {
        properties
            .iter()
            .map(|property| self.get(*property).map_or(UNIDENTIFIED, |of| u64::from(of) + 1))
            .collect()
    }

    /// The same of properties that look ahead.
    pub(crate) fn of_ahead(&self, properties: &[(u32, u64)]) -> Vec<u64> {
        let of = |(property, ahead): &(u32, u64)| {
            self.get(*property).map_or(UNIDENTIFIED, |of| number(of, *ahead))
        };
        properties.iter().map(of).collect()
    }

    /// The premises in the other program.
    pub(crate) fn of_premises(&self, premises: &[(u32, u32)]) -> Vec<(u32, u32)> {
        premises
            .iter()
            .map(|(property, premise)| (self.get(*property).unwrap_or(u32::MAX), *premise))
            .collect()
    }
}
