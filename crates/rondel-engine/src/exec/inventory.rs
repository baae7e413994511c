//! State of a section by identity of its node. State can thus be found in another program, in which the same
//! nodes have other indexes.

use std::collections::{BTreeSet, HashMap, HashSet};

use serde::{Deserialize, Serialize};

use crate::exec::section::{Margin, Section, TimePoints};
use crate::exec::state::{LISTS, List};
use crate::ir::found::UNIDENTIFIED;
use crate::ir::instruction::Instruction as I;
use crate::ir::wire::Wire;

/// Identities of the states of a section.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub(crate) struct Inventory {
    lists: [Vec<u64>; LISTS],
    /// Registers that are read after their block: indexes of words and of float columns, with identities.
    pub(crate) words: Vec<(u32, u64)>,
    pub(crate) floats: Vec<(u32, u64)>,
    /// Identities of the formulas with instances of their own.
    pub(crate) inner: Vec<u64>,
}

impl Inventory {
    pub(crate) fn new(section: &Section) -> Inventory {
        let mut own = Inventory::blank(section);
        for (instruction, &identity) in section.instructions.iter().zip(&section.identities.nodes) {
            own.add(instruction, identity);
        }
        // An instruction may have two places in a list, and equal nodes are distinguished by their order.
        own.lists.iter_mut().chain([&mut own.inner]).for_each(|list| distinguish(list));
        if section.time_points == TimePoints::Dense {
            own.add_registers(section);
        }
        own
    }

    /// An inventory in which no state has an identity.
    pub(crate) fn blank(section: &Section) -> Inventory {
        Inventory {
            inner: vec![UNIDENTIFIED; section.inner.len()],
            lists: section.initial.sizes().map(|size| vec![UNIDENTIFIED; size]),
            ..Inventory::default()
        }
    }

    /// Adds the registers of the last row that are still read afterwards: those of the interval after it.
    fn add_registers(&mut self, section: &Section) {
        let formulas = section.formulas.iter().map(|truth| truth.after);
        let formulas = formulas.flat_map(|bounds| [bounds.certain, bounds.possible]);
        let premises = section.premises.iter().map(|premise| premise.certain.after);
        let words: BTreeSet<usize> = formulas.chain(premises).map(Wire::word).collect();
        let identity = |word: usize| Some((word as u32, *section.identities.nodes.get(word)?));
        self.words = words.into_iter().filter_map(identity).collect();
        let columns = section.robust.iter().flatten().filter_map(|margin| match margin {
            Margin::Levels([_, after]) => Some(*after),
            Margin::Truth => None,
        });
        let columns: BTreeSet<u32> = columns.flatten().collect();
        for (instruction, identity) in section.instructions.iter().zip(&section.identities.nodes) {
            self.floats.extend(
                instruction.float_column().filter(|out| columns.contains(out)).map(|out| (out, *identity)),
            );
        }
    }

    /// The identities of a list.
    pub(crate) fn list(&self, list: List) -> &[u64] {
        &self.lists[list as usize]
    }

    /// Whether another section has all states of this one.
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

    /// Sets the identity of a place in a list.
    pub(crate) fn put(&mut self, list: List, at: u32, identity: u64) {
        if let Some(place) = self.lists[list as usize].get_mut(at as usize) {
            *place = identity;
        }
    }
}

impl I {
    /// Calls `put` with each list and index of a state that the instruction owns.
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

    /// The column of floats that the instruction writes.
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

/// Makes equal identities of a list distinct, by their order.
fn distinguish(list: &mut [u64]) {
    let mut seen: HashMap<u64, u64> = HashMap::new();
    for identity in list.iter_mut().filter(|identity| **identity != UNIDENTIFIED) {
        let count = seen.entry(*identity).or_default();
        *count += 1;
        *identity = identity.wrapping_add((*count - 1).wrapping_mul(0x9E37_79B9_7F4A_7C15));
    }
}

/// Copies the values whose identities occur in both lists of `(index, identity)`.
pub(crate) fn take_named<T: Clone>(own: &mut [T], names: &[(u32, u64)], other: &[T], others: &[(u32, u64)]) {
    let others: HashMap<u64, u32> = others.iter().map(|(place, identity)| (*identity, *place)).collect();
    for (place, identity) in names {
        let from = others.get(identity).and_then(|from| other.get(*from as usize));
        if let (Some(own), Some(other)) = (own.get_mut(*place as usize), from) {
            own.clone_from(other);
        }
    }
}

/// Identities of the states and properties of a section.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct Outline {
    pub(crate) inventory: Inventory,
    /// Indexes of the properties, in the order of the section.
    pub(crate) properties: Vec<u32>,
    /// The properties with future operators, and the identity of each plan.
    pub(crate) futures: Vec<(u32, u64)>,
    pub(crate) robust_futures: Vec<(u32, u64)>,
    /// The premises by property and number.
    pub(crate) premises: Vec<(u32, u32)>,
    pub(crate) eager: Option<Inventory>,
}

impl Outline {
    pub(crate) fn new(section: &Section) -> Outline {
        let [ahead, robust] = &section.identities.ahead;
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
            eager: section.eager.as_deref().map(Inventory::new),
        }
    }

    /// Indexes of all properties.
    pub(crate) fn all_properties(&self) -> impl Iterator<Item = u32> + '_ {
        let ahead = self.futures.iter().chain(&self.robust_futures).map(|(property, _)| *property);
        self.properties.iter().copied().chain(ahead)
    }

    /// Numbers that identify properties in another program; 0 is none.
    pub(crate) fn numbers(&self, properties: &[u32]) -> Vec<u64> {
        properties.iter().map(|property| u64::from(*property) + 1).collect()
    }

    /// The same for properties with future operators.
    pub(crate) fn numbers_ahead(&self, properties: &[(u32, u64)]) -> Vec<u64> {
        properties.iter().map(|(property, identity)| number(*property, *identity)).collect()
    }
}

fn number(property: u32, ahead: u64) -> u64 {
    ahead.rotate_left(17).wrapping_add(u64::from(property) + 1)
}

/// Index of each property in the program that it continues from, if it does.
#[derive(Clone, Debug, Default)]
pub(crate) struct Origins(pub(crate) Vec<Option<u32>>);

impl Origins {
    pub(crate) fn get(&self, property: u32) -> Option<u32> {
        self.0.get(property as usize).copied().flatten()
    }

    /// The numbers of properties in the other program: see [`Outline::numbers`].
    pub(crate) fn of(&self, properties: &[u32]) -> Vec<u64> {
        properties
            .iter()
            .map(|property| self.get(*property).map_or(UNIDENTIFIED, |of| u64::from(of) + 1))
            .collect()
    }

    /// The same for properties with future operators.
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
