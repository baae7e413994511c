//! Builder of a section: the nodes become instructions in evaluation order, then the outputs refer to these.

use rondel_event::Slot;

use crate::exec::inner::InnerPlan;
use crate::exec::section::{Constants, Identities, OperandLists, TimedChanges};
use crate::exec::section::{Margin, Section, TimePoints};
use crate::exec::state::{RegisterPlan, State};
use crate::exec::terms::NotedTerm;
use crate::ir::graph::Graph;
use crate::ir::instruction::Instruction;
use crate::ir::premise::Premise;
use crate::ir::schedule::Schedule;
use crate::ir::truth::{Truth, TruthBounds};
use crate::ir::wire::{Halves, NodeId, Wire};
use crate::lower::translate::{Robustness, Sources, TermSource};
use crate::machine::MachinePlan;
use crate::relation::source::Relation;

/// A graph, the sources that its nodes refer to by number, and the identity of every node.
#[derive(Clone, Copy)]
pub(super) struct IdentifiedGraph<'a> {
    pub(super) graph: &'a Graph,
    pub(super) sources: &'a Sources,
    pub(super) identities: &'a [u64],
}

/// Outputs of a section, with the numbers of nodes in the graph.
#[derive(Default)]
pub(super) struct SectionOutputs<'a> {
    pub(super) formulas: &'a [Truth],
    pub(super) robust: &'a [Option<Robustness>],
    pub(super) premises: Vec<Premise>,
    pub(super) terms: &'a [TermSource],
}

/// The role of a section for the operators that are evaluated ahead; their states have the order of the list.
#[derive(Clone, Copy)]
pub(super) enum AheadStep<'a> {
    Writes(&'a [NodeId]),
    Reads(&'a [NodeId]),
}

/// Builder of a section.
pub(super) struct Assembly<'a> {
    pub(super) graph: &'a Graph,
    pub(super) sources: &'a Sources,
    pub(super) slots: &'a [Option<Slot>],
    pub(super) ahead: AheadStep<'a>,
    /// Index of the instruction of every node, once it is assembled.
    pub(super) place: Vec<u32>,
    /// Index of the column of every node that has one.
    pub(super) column: Vec<u32>,
    pub(super) instructions: Vec<Instruction>,
    pub(super) constants: Constants,
    pub(super) operands: OperandLists,
    pub(super) machines: Vec<MachinePlan>,
    pub(super) relations: Vec<Relation>,
    pub(super) inner: Vec<Box<dyn InnerPlan>>,
    pub(super) changes: TimedChanges,
    pub(super) state: State,
    pub(super) registers: RegisterPlan,
}

impl<'a> Assembly<'a> {
    fn new(
        nodes: IdentifiedGraph<'a>,
        count: usize,
        slots: &'a [Option<Slot>],
        ahead: AheadStep<'a>,
    ) -> Assembly<'a> {
        let IdentifiedGraph { graph, sources, .. } = nodes;
        Assembly {
            graph,
            sources,
            slots,
            ahead,
            place: vec![0; graph.nodes().len()],
            column: vec![0; graph.nodes().len()],
            instructions: Vec::with_capacity(count),
            constants: Constants::default(),
            operands: OperandLists::default(),
            machines: Vec::new(),
            relations: Vec::new(),
            inner: Vec::new(),
            changes: TimedChanges { deadlines: Vec::new(), shortest: u64::MAX, repeats: false },
            state: State::default(),
            registers: RegisterPlan::default(),
        }
    }

    /// The instruction of a wire of the graph.
    fn placed(&self, wire: Wire) -> Wire {
        wire.moved_to(NodeId(self.place[wire.node().index()]))
    }

    fn placed_formulas(&self, formulas: &[Truth]) -> Vec<Truth> {
        let bounds = |bounds: TruthBounds| TruthBounds {
            certain: self.placed(bounds.certain),
            possible: self.placed(bounds.possible),
        };
        formulas.iter().map(|truth| Truth { at: bounds(truth.at), after: bounds(truth.after) }).collect()
    }

    fn place_premises(&self, premises: &mut [Premise], time_points: TimePoints) {
        for Premise { certain, .. } in premises {
            let after = if time_points == TimePoints::Dense { certain.after } else { certain.at };
            *certain = Halves { at: self.placed(certain.at), after: self.placed(after) };
        }
    }

    fn margins(&self, robust: &[Option<Robustness>]) -> Vec<Option<Margin>> {
        let columns = |nodes: [NodeId; 2]| nodes.map(|node| self.column[node.index()]);
        let robust = robust.iter().map(|robustness| match (*robustness)? {
            Robustness::Truth(_) => Some(Margin::Truth),
            Robustness::Levels { at, after } => Some(Margin::Levels([at, after].map(columns))),
        });
        robust.collect()
    }

    fn noted_terms(&self, terms: &[TermSource], time_points: TimePoints) -> Vec<NotedTerm> {
        let term = |TermSource { property, value_type, halves: [at, after] }: &TermSource| {
            let after = if time_points == TimePoints::Dense { after } else { at };
            let halves = [at, after].map(|(node, known)| (self.column[node.index()], self.placed(*known)));
            NotedTerm { property: *property, value_type: *value_type, halves }
        };
        terms.iter().map(term).collect()
    }

    /// Whether any instruction reads the times of rows.
    fn reads_time(&self) -> bool {
        let reads_time = |i: &Instruction| match i {
            Instruction::Time { .. }
            | Instruction::SameTime
            | Instruction::TimedRecently { .. }
            | Instruction::TimedSince { .. }
            | Instruction::Lasting { .. }
            | Instruction::Machine { .. }
            | Instruction::Quantified { .. }
            | Instruction::ByValue { .. } => true,
            Instruction::Window { window, .. } => self.operands.windows[*window as usize].timed,
            Instruction::RobustOnce { timed, .. } | Instruction::RobustSince { timed, .. } => *timed,
            _ => false,
        };
        self.instructions.iter().any(reads_time)
    }
}

/// Builds a section. `slots` holds the column of each field.
pub(super) fn section(
    nodes: IdentifiedGraph<'_>,
    outputs: SectionOutputs<'_>,
    schedule: Schedule,
    time_points: TimePoints,
    properties: Vec<u32>,
    slots: &[Option<Slot>],
    ahead: AheadStep<'_>,
) -> Section {
    let Schedule { order, constant } = schedule;
    let SectionOutputs { formulas, robust, mut premises, terms } = outputs;
    let mut assembly = Assembly::new(nodes, order.len(), slots, ahead);
    for &id in &order {
        assembly.assemble(id);
    }
    assembly.changes.repeats = assembly.machines.iter().any(|machine| machine.repeats);
    assembly.place_premises(&mut premises, time_points);
    let identity = |id: &NodeId| nodes.identities.get(id.index()).copied().unwrap_or(0);
    let robust = assembly.margins(robust);
    let is_keeper =
        |i: &&Instruction| matches!(i, Instruction::HeldText { .. } | Instruction::LatchText { .. });
    Section {
        time_points,
        properties,
        formulas: assembly.placed_formulas(formulas),
        constant,
        keeps_text: assembly.instructions.iter().rev().filter(is_keeper).copied().collect(),
        reads_time: time_points == TimePoints::Dense || assembly.reads_time(),
        terms: assembly.noted_terms(terms, time_points),
        instructions: assembly.instructions,
        identities: Identities { nodes: order.iter().map(identity).collect(), ahead: Default::default() },
        constants: assembly.constants,
        operands: assembly.operands,
        machines: assembly.machines,
        has_levels: robust.iter().any(|margin| matches!(margin, Some(Margin::Levels(_)))),
        robust,
        relations: assembly.relations,
        inner: assembly.inner,
        premises,
        changes: assembly.changes,
        initial: assembly.state,
        registers: assembly.registers,
        eager: None,
        linear: None,
        futures: Vec::new(),
        robust_futures: Vec::new(),
    }
}
