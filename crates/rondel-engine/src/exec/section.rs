//! Properties that are evaluated together: one list of instructions, one kind of moments.

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

/// What the moments of a section are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum TimePoints {
    /// The events, as they are in the blocks.
    Events,
    /// The events, and the times in between at which something changes by itself.
    Dense,
}

/// Properties with the same moments, compiled: a list of instructions in which equal parts are computed
/// once.
#[derive(Debug)]
pub(crate) struct Section {
    pub(crate) time_points: TimePoints,
    /// Where it compares numbers that run straight between messages.
    pub(crate) linear: Option<Box<LinearPlan>>,
    /// The properties, by their positions in the specification.
    pub(crate) properties: Vec<u32>,
    /// Their formulas, in the same order.
    pub(crate) formulas: Vec<Truth>,
    /// The properties with operators of the future.
    pub(crate) futures: Vec<Future>,
    /// Those whose robustness is asked for.
    pub(crate) robust_futures: Vec<RobustFuture<Margin>>,
    /// What is evaluated ahead of the rest, if anything is: see [`ranges`](crate::ops::ranges).
    pub(crate) scout: Option<Box<Section>>,
    pub(crate) instructions: Vec<Instruction>,
    /// For each of them what its node is known by in other programs.
    pub(crate) identities: Vec<u64>,
    /// The same of what each property that looks ahead waits for, without and with its robustness.
    pub(crate) ahead_identities: [Vec<u64>; 2],
    /// How many instructions, at the front, compute the same for every block.
    pub(crate) constant: usize,
    /// The instructions that keep texts for the next block, those with later columns first.
    pub(crate) keeps_text: Vec<Instruction>,
    pub(crate) ints: Vec<i64>,
    pub(crate) floats: Vec<f64>,
    /// The regular expressions.
    pub(crate) patterns: Vec<Regex>,
    /// The operands of the timed `since`.
    pub(crate) operands: Vec<[Halves; 2]>,
    /// What the operators that last are known by.
    pub(crate) lasting: Vec<Lasting>,
    pub(crate) machines: Vec<MachinePlan>,
    /// The operands of the windows.
    pub(crate) windows: Vec<WindowOperands>,
    /// For every property its robustness, where it is asked for.
    pub(crate) robust: Vec<Option<Margin>>,
    /// Whether that is a number for any of them.
    pub(crate) has_levels: bool,
    /// The terms whose values are noted.
    pub(crate) terms: Vec<NotedTerm>,
    /// The columns of dense robustness, each for both sides.
    pub(crate) robust_operands: Vec<[[u32; 2]; 2]>,
    pub(crate) relations: Vec<Relation>,
    pub(crate) inner: Vec<Box<dyn InnerPlan>>,
    /// The premises of its properties.
    pub(crate) premises: Vec<Premise>,
    /// The operators whose changes between events matter.
    pub(crate) deadlines: Vec<Deadline>,
    /// No sooner than so long after a moment something changes by itself because of it.
    pub(crate) shortest: u64,
    /// Whether some of its machines may go round by themselves.
    pub(crate) repeats: bool,
    /// Whether it asks for the times of events.
    pub(crate) reads_time: bool,
    /// The state before the first event.
    pub(crate) initial: State,
    /// The registers that it needs.
    pub(crate) registers: RegisterPlan,
}

impl Section {
    /// A hash of the instructions, in their order: with the same one, all that is kept has the same place.
    pub(crate) fn layout(&self) -> u64 {
        let mut hasher = StableHasher::default();
        self.identities.hash(&mut hasher);
        hasher.finish()
    }

    /// Whether some of its properties look ahead.
    pub(crate) fn looks_ahead(&self) -> bool {
        !self.futures.is_empty() || !self.robust_futures.is_empty()
    }

    /// The columns of a block that it reads, and the topics.
    pub(crate) fn reads(&self) -> (Vec<Slot>, Vec<TopicId>) {
        let (mut slots, mut topics) = (Vec::new(), Vec::new());
        let scout = self.scout.iter().flat_map(|scout| &scout.instructions);
        for instruction in self.instructions.iter().chain(scout) {
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

    /// Its properties: those of the past, then those that look ahead, first without and then with their robustness.
    pub(crate) fn all_properties(&self) -> impl Iterator<Item = u32> + '_ {
        self.properties.iter().copied().chain(self.properties_ahead().map(|(property, _)| property))
    }

    /// Those that look ahead, and how they measure time.
    pub(crate) fn properties_ahead(&self) -> impl Iterator<Item = (u32, TimeModel)> + '_ {
        let robust = self.robust_futures.iter().map(|future| (future.property, future.plan.time));
        self.futures.iter().map(|future| (future.property, future.plan.time)).chain(robust)
    }

    /// Whether one machine is all that time brings anything to.
    pub(crate) fn is_one_machine(&self) -> bool {
        let is_machine = |deadline: &Deadline| matches!(deadline, Deadline::Machine(_));
        self.machines.len() == 1
            && self.deadlines.iter().all(is_machine)
            && self.scout.is_none()
            && self.linear.is_none()
            && self.inner.is_empty()
            && self.relations.is_empty()
            && self.windows.is_empty()
            && !self.looks_ahead()
    }

    /// Whether there are machines with which the trace must not end in any state.
    pub(crate) fn has_obligations(&self) -> bool {
        self.machines.iter().any(|machine| !machine.finals.is_empty())
    }
}

/// A truth that lasts so long from the times in a column on.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Lasting {
    /// Where the column is known.
    pub(crate) known: Wire,
    /// The distance.
    pub(crate) span: i64,
}

/// An operator that changes by itself, by the place of its state.
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

/// Where the robustness of a property is found.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Margin {
    /// It is infinite, as the verdict says.
    Truth,
    /// For both sides the columns of the least and of the greatest that it can be.
    Levels([[u32; 2]; 2]),
}

impl Margin {
    /// The robustness of what has this verdict, if it is known, given the columns in a row.
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
                // Adding zero makes a negative zero a positive one.
                (least == greatest).then_some(least + 0.0)
            }
        }
    }
}
