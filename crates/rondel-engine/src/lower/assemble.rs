//! Assembly of a section: from the nodes of a graph to instructions, state and registers.

mod instructions;

use std::fmt::Debug;

use regex::bytes::Regex;
use rondel_event::{Slot, TopicId};
use rondel_spec::Spec;

use crate::exec::inner::InnerPlan;
use crate::exec::section::{Deadline, Lasting};
use crate::exec::section::{Margin, Section, TimePoints};
use crate::exec::state::{RegisterPlan, State};
use crate::exec::terms::NotedTerm;
use crate::future::RobustFuture;
use crate::ir::graph::Graph;
use crate::ir::instruction::Instruction;
use crate::ir::node::Node;
use crate::ir::premise::Premise;
use crate::ir::schedule::{Schedule, schedule};
use crate::ir::truth::{Truth, TruthBounds};
use crate::ir::wire::{Halves, NodeId, Wire};
use crate::lower::assume::identities_assuming;
use crate::lower::identity::{Names, hash, identities};
use crate::lower::translate::{FieldRead, Robustness, Sources, TermSource, Translation};
use crate::machine::MachinePlan;
use crate::ops::window::WindowOperands;
use crate::relation::source::Relation;

/// The nodes of a section in evaluation order.
pub(crate) struct Ordered {
    translation: Translation,
    time_points: TimePoints,
    schedule: Schedule,
    /// Timed operators that are evaluated ahead of the block ([`ranges`](crate::ops::ranges)), and the
    /// schedule of their operands.
    ahead: Vec<NodeId>,
    eager: Schedule,
    /// The identity of every node of the graph.
    identities: Vec<u64>,
}

impl Ordered {
    /// Schedules the nodes of a section. `follow`: the rows of the section belong to one instance and follow
    /// each other, so that some timed operators can be evaluated ahead. `lines` are the identities of its
    /// linear forms.
    pub(crate) fn new(
        translation: Translation,
        time_points: TimePoints,
        follow: bool,
        (spec, lines): (&Spec, &[u64]),
    ) -> Ordered {
        let names = Names { spec, fields: &translation.fields, sources: &translation.sources, lines };
        let identities = identities(&translation.graph, &names);
        Ordered::known(translation, time_points, follow, identities)
    }

    /// Schedules the nodes of a section in dense time. Identities are computed as if topics from `first` on
    /// had no messages: see [`assume`](crate::lower::assume).
    pub(crate) fn assuming(translation: Translation, spec: &Spec, first: TopicId) -> Ordered {
        let names = Names { spec, fields: &translation.fields, sources: &translation.sources, lines: &[] };
        let identities = identities_assuming(&translation.graph, &names, first);
        Ordered::known(translation, TimePoints::Dense, true, identities)
    }

    fn known(
        translation: Translation,
        time_points: TimePoints,
        follow: bool,
        identities: Vec<u64>,
    ) -> Ordered {
        let wires = |bounds: TruthBounds| [bounds.certain.node(), bounds.possible.node()];
        let pasts = translation.futures.iter().flat_map(|future| &future.pasts);
        let robust_pasts = || translation.robust_futures.iter().flat_map(|future| &future.pasts);
        let pasts = pasts.chain(robust_pasts().map(|(truth, _)| truth));
        let outputs = translation.formulas.iter().chain(pasts).flat_map(|truth| {
            // The half after an event is computed only in dense time.
            let after = if time_points == TimePoints::Dense { truth.after } else { truth.at };
            wires(truth.at).into_iter().chain(wires(after))
        });
        let robust = translation.robust.iter().flatten().chain(robust_pasts().map(|(_, robust)| robust));
        let levels = robust.flat_map(|robustness| match robustness {
            Robustness::Truth(_) => Vec::new(),
            Robustness::Levels { at, after } => match time_points {
                TimePoints::Events => at.to_vec(),
                TimePoints::Dense => [*at, *after].concat(),
            },
        });
        let premises = translation.premises.iter().flat_map(|Premise { certain, .. }| {
            let after = if time_points == TimePoints::Dense { certain.after } else { certain.at };
            [certain.at.node(), after.node()]
        });
        let terms = translation.terms.iter().flat_map(|TermSource { halves: [at, after], .. }| {
            let after = if time_points == TimePoints::Dense { after } else { at };
            [at.0, at.1.node(), after.0, after.1.node()]
        });
        let outputs = outputs.chain(levels).chain(premises).chain(terms);
        let graph = &translation.graph;
        let all = schedule(graph, outputs.clone(), &[]);
        let is_dense = time_points == TimePoints::Dense;
        let ahead = if is_dense && follow { looked_ahead(graph, &all.order) } else { Vec::new() };
        let schedule_all = if ahead.is_empty() { all } else { schedule(graph, outputs, &ahead) };
        let eager = schedule(graph, ahead.iter().copied(), &[]);
        Ordered { schedule: schedule_all, eager, ahead, translation, time_points, identities }
    }

    /// The fields that the graph can read.
    pub(crate) fn fields(&self) -> &[FieldRead] {
        &self.translation.fields
    }

    pub(crate) fn nodes(&self) -> impl Iterator<Item = &Node> + Clone {
        let order = self.schedule.order.iter().chain(&self.eager.order);
        order.map(|id| &self.translation.graph.nodes()[id.index()])
    }

    /// The section. `slots` holds the column of each field.
    pub(crate) fn assemble(self, properties: Vec<u32>, slots: &[Option<Slot>]) -> Section {
        let Ordered { translation, time_points, schedule, ahead, eager, identities } = self;
        let Translation { graph, sources, mut formulas, mut robust, mut futures, robust_futures, .. } =
            translation;
        let (plain, premises, terms) = (formulas.len(), translation.premises, translation.terms);
        let ahead_identities = [
            futures.iter().map(|future| identity_ahead(&future.plan, &future.pasts, &identities)).collect(),
            robust_futures.iter().map(|future| robust_identity(future, &identities)).collect(),
        ];
        formulas.extend(futures.iter().flat_map(|future| &future.pasts));
        for (truth, levels) in robust_futures.iter().flat_map(|future| &future.pasts) {
            formulas.push(*truth);
            robust.push(Some(*levels));
        }
        let eager = (!ahead.is_empty()).then(|| {
            let outputs = (&[][..], &[][..], Vec::new(), &[][..]);
            Box::new(section(
                (&graph, &sources, &identities),
                outputs,
                eager,
                time_points,
                Vec::new(),
                slots,
                AheadStep::Writes(&ahead),
            ))
        });
        let outputs = (&formulas[..], &robust[..], premises, &terms[..]);
        let mut section = section(
            (&graph, &sources, &identities),
            outputs,
            schedule,
            time_points,
            properties,
            slots,
            AheadStep::Reads(&ahead),
        );
        let mut pasts = section.formulas.drain(plain..);
        for future in &mut futures {
            future.pasts.iter_mut().zip(&mut pasts).for_each(|(past, placed)| *past = placed);
        }
        let mut levels = section.robust.drain(plain..).flatten();
        let robust_futures = robust_futures.into_iter().map(|RobustFuture { property, plan, pasts: all }| {
            let all = (&mut pasts).zip(&mut levels).take(all.len()).collect();
            RobustFuture { property, plan, pasts: all }
        });
        let robust_futures: Vec<_> = robust_futures.collect();
        drop((pasts, levels));
        let number = |relation: &Relation| relation.plan.ask.as_ref().map(|ask| ask.number);
        for (given, relation) in futures.iter_mut().flat_map(|future| &mut future.givens) {
            let at = section.relations.iter().position(|relation| number(relation) == Some(*given));
            *relation = at.map_or(u32::MAX, |at| at as u32);
        }
        let section = Section { eager, futures, robust_futures, ahead_identities, ..section };
        Section { reads_time: section.reads_time || section.looks_ahead(), ..section }
    }
}

/// The identity of a property with future operators: hash of its plan and of the identities of its past
/// operands.
fn identity_ahead(plan: &impl Debug, pasts: &[Truth], identities: &[u64]) -> u64 {
    let of = |wire: Wire| (identities.get(wire.node().index()), wire.flip());
    let bounds = |bounds: TruthBounds| [of(bounds.certain), of(bounds.possible)];
    let pasts: Vec<_> = pasts.iter().map(|past| [bounds(past.at), bounds(past.after)]).collect();
    hash((format!("{plan:?}"), pasts))
}

/// The identity of a property with future operators and robustness.
fn robust_identity(future: &RobustFuture<Robustness>, identities: &[u64]) -> u64 {
    let pasts: Vec<Truth> = future.pasts.iter().map(|(truth, _)| *truth).collect();
    let columns = |nodes: [NodeId; 2]| nodes.map(|node| identities.get(node.index()));
    let levels: Vec<_> = (future.pasts.iter())
        .map(|(_, robustness)| match robustness {
            Robustness::Truth(_) => None,
            Robustness::Levels { at, after } => Some([columns(*at), columns(*after)]),
        })
        .collect();
    hash((identity_ahead(&future.plan, &pasts, identities), levels))
}

/// Timed operators whose half between events is read and whose operands change at events only, in order of
/// their numbers.
fn looked_ahead(graph: &Graph, order: &[NodeId]) -> Vec<NodeId> {
    let nodes = graph.nodes();
    let mut by_events = vec![false; nodes.len()];
    for (i, node) in nodes.iter().enumerate() {
        let mut only = node.changes_at_events();
        node.for_each_operand(|operand| only &= by_events[operand.index()]);
        by_events[i] = only;
    }
    let is_ahead = |of: &NodeId| {
        let mut only = matches!(nodes[of.index()], Node::TimedRecently { .. } | Node::TimedSince { .. });
        nodes[of.index()].for_each_operand(|operand| only &= by_events[operand.index()]);
        only
    };
    let read_between =
        order.iter().filter_map(|id| if let Node::After(of) = nodes[id.index()] { Some(of) } else { None });
    let mut ahead: Vec<NodeId> = read_between.filter(is_ahead).collect();
    ahead.sort_unstable();
    ahead
}

/// Builder of a section.
struct Assembly<'a> {
    graph: &'a Graph,
    sources: &'a Sources,
    slots: &'a [Option<Slot>],
    ahead: AheadStep<'a>,
    /// Index of the instruction of every node, once it is assembled.
    place: Vec<u32>,
    /// Index of the column of every node that has one.
    column: Vec<u32>,
    instructions: Vec<Instruction>,
    ints: Vec<i64>,
    floats: Vec<f64>,
    patterns: Vec<Regex>,
    operands: Vec<[Halves; 2]>,
    lasting: Vec<Lasting>,
    machines: Vec<MachinePlan>,
    windows: Vec<WindowOperands>,
    robust_operands: Vec<[[u32; 2]; 2]>,
    relations: Vec<Relation>,
    inner: Vec<Box<dyn InnerPlan>>,
    deadlines: Vec<Deadline>,
    shortest: u64,
    state: State,
    registers: RegisterPlan,
}

/// The role of a section for the operators that are evaluated ahead; their states have the order of the list.
#[derive(Clone, Copy)]
enum AheadStep<'a> {
    Writes(&'a [NodeId]),
    Reads(&'a [NodeId]),
}

/// Outputs of a section: formulas, their robustness, premises, and terms.
type Outputs<'a> = (&'a [Truth], &'a [Option<Robustness>], Vec<Premise>, &'a [TermSource]);

fn section(
    (graph, sources, identities): (&Graph, &Sources, &[u64]),
    (formulas, robust, mut premises, terms): Outputs<'_>,
    Schedule { order, constant }: Schedule,
    time_points: TimePoints,
    properties: Vec<u32>,
    slots: &[Option<Slot>],
    ahead: AheadStep<'_>,
) -> Section {
    let mut assembly = Assembly {
        graph,
        sources,
        slots,
        ahead,
        place: vec![0; graph.nodes().len()],
        column: vec![0; graph.nodes().len()],
        instructions: Vec::with_capacity(order.len()),
        ints: Vec::new(),
        floats: Vec::new(),
        patterns: Vec::new(),
        operands: Vec::new(),
        lasting: Vec::new(),
        machines: Vec::new(),
        windows: Vec::new(),
        robust_operands: Vec::new(),
        relations: Vec::new(),
        inner: Vec::new(),
        deadlines: Vec::new(),
        shortest: u64::MAX,
        state: State::default(),
        registers: RegisterPlan::default(),
    };
    for &id in &order {
        assembly.assemble(id);
    }
    let place = |wire: Wire| wire.moved_to(NodeId(assembly.place[wire.node().index()]));
    let bounds = |bounds: TruthBounds| TruthBounds {
        certain: place(bounds.certain),
        possible: place(bounds.possible),
    };
    let formulas =
        formulas.iter().map(|truth| Truth { at: bounds(truth.at), after: bounds(truth.after) }).collect();
    for Premise { certain, .. } in &mut premises {
        let after = if time_points == TimePoints::Dense { certain.after } else { certain.at };
        *certain = Halves { at: place(certain.at), after: place(after) };
    }
    let columns = |nodes: [NodeId; 2]| nodes.map(|node| assembly.column[node.index()]);
    let robust = robust.iter().map(|robustness| match (*robustness)? {
        Robustness::Truth(_) => Some(Margin::Truth),
        Robustness::Levels { at, after } => Some(Margin::Levels([at, after].map(columns))),
    });
    let robust: Vec<_> = robust.collect();
    let has_levels = robust.iter().any(|margin| matches!(margin, Some(Margin::Levels(_))));
    let term = |TermSource { property, value_type, halves: [at, after] }: &TermSource| {
        let after = if time_points == TimePoints::Dense { after } else { at };
        let halves = [at, after].map(|(node, known)| (assembly.column[node.index()], place(*known)));
        NotedTerm { property: *property, value_type: *value_type, halves }
    };
    let terms = terms.iter().map(term).collect();
    let is_keeper =
        |i: &&Instruction| matches!(i, Instruction::HeldText { .. } | Instruction::LatchText { .. });
    let reads_time = |i: &Instruction| match i {
        Instruction::Time { .. }
        | Instruction::SameTime
        | Instruction::TimedRecently { .. }
        | Instruction::TimedSince { .. }
        | Instruction::Lasting { .. }
        | Instruction::Machine { .. }
        | Instruction::Quantified { .. }
        | Instruction::ByValue { .. } => true,
        Instruction::Window { window, .. } => assembly.windows[*window as usize].timed,
        Instruction::RobustOnce { timed, .. } | Instruction::RobustSince { timed, .. } => *timed,
        _ => false,
    };
    Section {
        time_points,
        properties,
        formulas,
        constant,
        keeps_text: assembly.instructions.iter().rev().filter(is_keeper).copied().collect(),
        reads_time: time_points == TimePoints::Dense || assembly.instructions.iter().any(reads_time),
        instructions: assembly.instructions,
        identities: order.iter().map(|id| identities.get(id.index()).copied().unwrap_or(0)).collect(),
        ahead_identities: Default::default(),
        ints: assembly.ints,
        floats: assembly.floats,
        patterns: assembly.patterns,
        operands: assembly.operands,
        lasting: assembly.lasting,
        repeats: assembly.machines.iter().any(|machine| machine.repeats),
        machines: assembly.machines,
        windows: assembly.windows,
        robust,
        has_levels,
        terms,
        robust_operands: assembly.robust_operands,
        relations: assembly.relations,
        inner: assembly.inner,
        premises,
        deadlines: assembly.deadlines,
        shortest: assembly.shortest,
        initial: assembly.state,
        registers: assembly.registers,
        eager: None,
        linear: None,
        futures: Vec::new(),
        robust_futures: Vec::new(),
    }
}
