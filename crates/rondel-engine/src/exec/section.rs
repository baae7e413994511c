//! Sections: properties that are evaluated together as one list of instructions over the same time points.

use std::hash::{Hash, Hasher};

use regex::bytes::Regex;
use rondel_event::{Slot, StableHasher, TopicId, Verdict};
use rondel_spec::TimeModel;

use crate::exec::inner::InnerPlan;
use crate::exec::state::{RegisterPlan, State};
use crate::exec::terms::NotedTerm;
use crate::future::{Future, RobustFuture};
use crate::ir::instruction::Instruction;
use crate::ir::premise::Premise;
use crate::ir::truth::Truth;
use crate::ir::wire::{Halves, Wire};
use crate::linear::LinearPlan;
use crate::machine::MachinePlan;
use crate::ops::window::WindowOperands;
use crate::relation::source::Relation;

/// The time points of a section.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum TimePoints {
    /// The events of the blocks.
    Events,
    /// The events, and the times in between at which a truth or value changes.
    Dense,
}

/// Compiled properties with the same time points: a list of instructions, in which common subformulas are
/// computed once.
#[derive(Debug)]
pub(crate) struct Section {
    pub(crate) time_points: TimePoints,
    /// Set with linear interpolation.
    pub(crate) linear: Option<Box<LinearPlan>>,
    /// Indexes of the properties in the specification.
    pub(crate) properties: Vec<u32>,
    /// The formula of each of them.
    pub(crate) formulas: Vec<Truth>,
    /// The properties with future operators.
    pub(crate) futures: Vec<Future>,
    /// The properties with future operators and robustness.
    pub(crate) robust_futures: Vec<RobustFuture<Margin>>,
    /// The eager section: operators that are evaluated ahead of each block: see
    /// [`ranges`](crate::ops::ranges).
    pub(crate) eager: Option<Box<Section>>,
    pub(crate) instructions: Vec<Instruction>,
    pub(crate) identities: Identities,
    /// Number of leading instructions that compute the same words for every block.
    pub(crate) constant: usize,
    /// The instructions that keep texts for the next block, in descending order of their columns.
    pub(crate) keeps_text: Vec<Instruction>,
    pub(crate) constants: Constants,
    pub(crate) operands: OperandLists,
    pub(crate) machines: Vec<MachinePlan>,
    /// The robustness of each property, if requested.
    pub(crate) robust: Vec<Option<Margin>>,
    /// Whether the robustness of any property is a number.
    pub(crate) has_levels: bool,
    /// The terms whose values are recorded.
    pub(crate) terms: Vec<NotedTerm>,
    pub(crate) relations: Vec<Relation>,
    pub(crate) inner: Vec<Box<dyn InnerPlan>>,
    /// The premises of the properties.
    pub(crate) premises: Vec<Premise>,
    pub(crate) changes: TimedChanges,
    /// Whether any instruction reads the times of rows.
    pub(crate) reads_time: bool,
    /// The state before the first event.
    pub(crate) initial: State,
    /// Sizes of the registers.
    pub(crate) registers: RegisterPlan,
}

/// Identities of the nodes and properties of a section.
#[derive(Debug)]
pub(crate) struct Identities {
    /// The identity of the node of each instruction.
    pub(crate) nodes: Vec<u64>,
    /// Identities of the properties with future operators, without and with robustness.
    pub(crate) ahead: [Vec<u64>; 2],
}

/// Constants that instructions refer to by number.
#[derive(Debug, Default)]
pub(crate) struct Constants {
    pub(crate) ints: Vec<i64>,
    pub(crate) floats: Vec<f64>,
    /// The regular expressions of `matches`.
    pub(crate) patterns: Vec<Regex>,
}

/// Operands that instructions refer to by number.
#[derive(Debug, Default)]
pub(crate) struct OperandLists {
    /// Operands of timed `since` nodes.
    pub(crate) since: Vec<[Halves; 2]>,
    /// Operands of [`Instruction::Lasting`].
    pub(crate) lasting: Vec<Lasting>,
    pub(crate) windows: Vec<WindowOperands>,
    /// Columns of the operands of dense robustness, per half.
    pub(crate) robust: Vec<[[u32; 2]; 2]>,
}

/// Changes by time alone.
#[derive(Debug)]
pub(crate) struct TimedChanges {
    /// The operators whose changes between events are time points.
    pub(crate) deadlines: Vec<Deadline>,
    /// Shortest time from a time point to a change that it causes, in nanoseconds.
    pub(crate) shortest: u64,
    /// Whether a machine may repeat transitions without an event.
    pub(crate) repeats: bool,
}

impl Section {
    /// A hash of the instructions in order. State of sections with equal layouts is interchangeable.
    pub(crate) fn layout(&self) -> u64 {
        let mut hasher = StableHasher::default();
        self.identities.nodes.hash(&mut hasher);
        hasher.finish()
    }

    /// Whether a property has future operators.
    pub(crate) fn looks_ahead(&self) -> bool {
        !self.futures.is_empty() || !self.robust_futures.is_empty()
    }

    /// The columns of a block and the topics that instructions read.
    pub(crate) fn reads(&self) -> (Vec<Slot>, Vec<TopicId>) {
        let (mut slots, mut topics) = (Vec::new(), Vec::new());
        let eager = self.eager.iter().flat_map(|eager| &eager.instructions);
        for instruction in self.instructions.iter().chain(eager) {
            match *instruction {
                Instruction::HeldBool { column, .. } => slots.push(Slot::Bool(column)),
                Instruction::HeldInt { column, .. } => slots.push(Slot::Int(column)),
                Instruction::HeldFloat { column, .. } => slots.push(Slot::Float(column)),
                Instruction::HeldText { column, .. } => slots.push(Slot::String(column)),
                Instruction::Carried { slot } => slots.push(slot),
                Instruction::On { topic } => topics.push(TopicId(topic)),
                _ => {}
            }
        }
        slots.sort_unstable();
        slots.dedup();
        topics.sort_unstable();
        topics.dedup();
        (slots, topics)
    }

    /// All properties: those about the past, then those with future operators, without and then with
    /// robustness.
    pub(crate) fn all_properties(&self) -> impl Iterator<Item = u32> + '_ {
        self.properties.iter().copied().chain(self.properties_ahead().map(|(property, _)| property))
    }

    /// The properties with future operators, and their time models.
    pub(crate) fn properties_ahead(&self) -> impl Iterator<Item = (u32, TimeModel)> + '_ {
        let robust = self.robust_futures.iter().map(|future| (future.property, future.plan.time));
        self.futures.iter().map(|future| (future.property, future.plan.time)).chain(robust)
    }

    /// Whether the only deadline is that of a single machine.
    pub(crate) fn is_one_machine(&self) -> bool {
        let is_machine = |deadline: &Deadline| matches!(deadline, Deadline::Machine(_));
        self.machines.len() == 1
            && self.changes.deadlines.iter().all(is_machine)
            && self.eager.is_none()
            && self.linear.is_none()
            && self.inner.is_empty()
            && self.relations.is_empty()
            && self.operands.windows.is_empty()
            && !self.looks_ahead()
    }

    /// Whether a machine has final states, so that the trace may end in a violation.
    pub(crate) fn has_obligations(&self) -> bool {
        self.machines.iter().any(|machine| !machine.finals.is_empty())
    }
}

/// A truth that lasts for a distance from the times in a column on.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Lasting {
    /// The rows in which the column has a value.
    pub(crate) known: Wire,
    /// The distance, on the doubled axis of [`timed`](crate::ops::timed).
    pub(crate) span: i64,
}

/// An operator that can change between events; the number is the index of its state.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Deadline {
    Recently(u32),
    Lasting(u32),
    Since(u32),
    Machine(u32),
    Relation(u32),
    Window(u32),
    Robust(u32),
}

/// The source of a property's robustness.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Margin {
    /// Infinite, with the sign of the verdict.
    Truth,
    /// Columns of the least and the greatest robustness, per half.
    Levels([[u32; 2]; 2]),
}

impl Margin {
    /// The robustness for this verdict, if it is known; `levels` reads the columns in a row.
    pub(crate) fn robustness(
        self,
        verdict: Verdict,
        levels: impl FnOnce([[u32; 2]; 2]) -> [f64; 2],
    ) -> Option<f64> {
        match self {
            Margin::Truth => match verdict {
                Verdict::Satisfied => Some(f64::INFINITY),
                Verdict::Violated => Some(f64::NEG_INFINITY),
                Verdict::Inconclusive => None,
            },
            Margin::Levels(halves) => {
                let [least, greatest] = levels(halves);
                // Adding zero turns a negative zero into a positive one.
                (least == greatest).then_some(least + 0.0)
            }
        }
    }
}
