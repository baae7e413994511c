//! From the nodes of a graph to the instructions, the state and the registers of a section.

mod instructions;

use std::fmt::Debug;

use regex::bytes::Regex;
use rondel_event::{Slot, TopicId};
use rondel_spec::Spec;

use crate::exec::inner::InnerPlan;
use crate::exec::section::{Deadline, Lasting};
use crate::exec::section::{Margin, Moments, Section};
use crate::exec::state::{RegisterPlan, State};
use crate::exec::terms::NotedTerm;
use crate::future::RobustFuture;
use crate::ir::graph::Graph;
use crate::ir::instruction::Instruction;
use crate::ir::node::Node;
use crate::ir::premise::Premise;
use crate::ir::schedule::{Schedule, schedule};
use crate::ir::truth::{Rails, Truth};
use crate::ir::wire::{NodeId, Sides, Wire};
use crate::lower::assume::identities_assuming;
use crate::lower::identity::{Names, hash, identities};
use crate::lower::translate::{FieldRead, Robustness, Sources, TermSource, Translation};
use crate::machine::MachinePlan;
use crate::ops::window::WindowOperands;
use crate::relation::source::Relation;

/// The nodes that a section runs: its graph, and what of it is needed, in order.
pub(crate) struct Ordered {
    translation: Translation,
    moments: Moments,
    schedule: Schedule,
    /// The timed operators that are looked ahead of, and the order of what they need.
    ahead: Vec<NodeId>,
    scout: Schedule,
    /// For every node of the graph what it is known by in other programs.
    identities: Vec<u64>,
}

impl Ordered {
    /// The nodes of a section, of properties of a specification, which compares these straight lines. Where its rows
    /// follow each other, some operators can be looked ahead of.
    pub(crate) fn new(
        translation: Translation,
        moments: Moments,
        follow: bool,
        (spec, lines): (&Spec, &[u64]),
    ) -> Ordered {
        let names = Names { spec, fields: &translation.fields, sources: &translation.sources, lines };
        let identities = identities(&translation.graph, &names);
        Ordered::known(translation, moments, follow, identities)
    }

    /// The nodes of a section in dense time, with the identities that they have where the topics from this one on have no
    /// messages: see [`assume`](crate::lower::assume).
    pub(crate) fn assuming(translation: Translation, spec: &Spec, first: TopicId) -> Ordered {
        let names = Names { spec, fields: &translation.fields, sources: &translation.sources, lines: &[] };
        let identities = identities_assuming(&translation.graph, &names, first);
        Ordered::known(translation, Moments::Dense, true, identities)
    }

    fn known(translation: Translation, moments: Moments, follow: bool, identities: Vec<u64>) -> Ordered {
        let wires = |rails: Rails| [rails.certain.node(), rails.possible.node()];
        let pasts = translation.futures.iter().flat_map(|future| &future.pasts);
        let robust_pasts = || translation.robust_futures.iter().flat_map(|future| &future.pasts);
        let pasts = pasts.chain(robust_pasts().map(|(truth, _)| truth));
        let outputs = translation.formulas.iter().chain(pasts).flat_map(|truth| {
            // What is not asked for between events is not computed there.
            let after = if moments == Moments::Dense { truth.after } else { truth.at };
            wires(truth.at).into_iter().chain(wires(after))
        });
        let robust = translation.robust.iter().flatten().chain(robust_pasts().map(|(_, robust)| robust));
        let levels = robust.flat_map(|robustness| match robustness {
            Robustness::Truth(_) => Vec::new(),
            Robustness::Levels { at, after } => match moments {
                Moments::Events => at.to_vec(),
                Moments::Dense => [*at, *after].concat(),
            },
        });
        let premises = translation.premises.iter().flat_map(|Premise { certain, .. }| {
            let after = if moments == Moments::Dense { certain.after } else { certain.at };
            [certain.at.node(), after.node()]
        });
        let terms = translation.terms.iter().flat_map(|TermSource { sides: [at, after], .. }| {
            let after = if moments == Moments::Dense { after } else { at };
            [at.0, at.1.node(), after.0, after.1.node()]
        });
        let outputs = outputs.chain(levels).chain(premises).chain(terms);
        let graph = &translation.graph;
        let all = schedule(graph, outputs.clone(), &[]);
        let is_dense = moments == Moments::Dense;
        let ahead = if is_dense && follow { looked_ahead(graph, &all.order) } else { Vec::new() };
        let schedule_all = if ahead.is_empty() { all } else { schedule(graph, outputs, &ahead) };
        let scout = schedule(graph, ahead.iter().copied(), &[]);
        Ordered { schedule: schedule_all, scout, ahead, translation, moments, identities }
    }

    /// The fields that are read, and the nodes.
    pub(crate) fn fields(&self) -> &[FieldRead] {
        &self.translation.fields
    }

    pub(crate) fn nodes(&self) -> impl Iterator<Item = &Node> + Clone {
        let order = self.schedule.order.iter().chain(&self.scout.order);
        order.map(|id| &self.translation.graph.nodes()[id.index()])
    }

    /// The section, given the columns of the fields.
    pub(crate) fn assemble(self, properties: Vec<u32>, slots: &[Option<Slot>]) -> Section {
        let Ordered { translation, moments, schedule, ahead, scout, identities } = self;
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
        let scout = (!ahead.is_empty()).then(|| {
            let outputs = (&[][..], &[][..], Vec::new(), &[][..]);
            Box::new(section(
                (&graph, &sources, &identities),
                outputs,
                scout,
                moments,
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
            moments,
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
        let section = Section { scout, futures, robust_futures, ahead_identities, ..section };
        Section { reads_time: section.reads_time || section.looks_ahead(), ..section }
    }
}

/// What a property that looks ahead is known by in other programs: its plan and what it reads.
fn identity_ahead(plan: &impl Debug, pasts: &[Truth], identities: &[u64]) -> u64 {
    let of = |wire: Wire| (identities.get(wire.node().index()), wire.flip());
    let rails = |rails: Rails| [of(rails.certain), of(rails.possible)];
    let pasts: Vec<_> = pasts.iter().map(|past| [rails(past.at), rails(past.after)]).collect();
    hash((format!("{plan:?}"), pasts))
}

/// The same of one whose robustness is asked for.
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

/// The timed operators whose truth between events is asked for, and whose operands change at events only; in order.
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
    let asked =
        order.iter().filter_map(|id| if let Node::After(of) = nodes[id.index()] { Some(of) } else { None });
    let mut ahead: Vec<NodeId> = asked.filter(is_ahead).collect();
    ahead.sort_unstable();
    ahead
}

/// Nodes on their way to instructions.
struct Assembly<'a> {
    graph: &'a Graph,
    sources: &'a Sources,
    slots: &'a [Option<Slot>],
    ahead: AheadStep<'a>,
    /// For every node its instruction, once it has one.
    place: Vec<u32>,
    /// For every node with a column its number.
    column: Vec<u32>,
    instructions: Vec<Instruction>,
    ints: Vec<i64>,
    floats: Vec<f64>,
    patterns: Vec<Regex>,
    operands: Vec<[Sides; 2]>,
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

/// What is done with the operators that are looked ahead of, by their places in the list.
#[derive(Clone, Copy)]
enum AheadStep<'a> {
    Writes(&'a [NodeId]),
    Reads(&'a [NodeId]),
}

/// The outputs of a section: formulas, their robustness, premises and terms.
type Outputs<'a> = (&'a [Truth], &'a [Option<Robustness>], Vec<Premise>, &'a [TermSource]);

fn section(
    (graph, sources, identities): (&Graph, &Sources, &[u64]),
    (formulas, robust, mut premises, terms): Outputs<'_>,
    Schedule { order, constant }: Schedule,
    moments: Moments,
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
    let rails = |rails: Rails| Rails { certain: place(rails.certain), possible: place(rails.possible) };
    let formulas =
        formulas.iter().map(|truth| Truth { at: rails(truth.at), after: rails(truth.after) }).collect();
    for Premise { certain, .. } in &mut premises {
        let after = if moments == Moments::Dense { certain.after } else { certain.at };
        *certain = Sides { at: place(certain.at), after: place(after) };
    }
    let columns = |nodes: [NodeId; 2]| nodes.map(|node| assembly.column[node.index()]);
    let robust = robust.iter().map(|robustness| match (*robustness)? {
        Robustness::Truth(_) => Some(Margin::Truth),
        Robustness::Levels { at, after } => Some(Margin::Levels([at, after].map(columns))),
    });
    let robust: Vec<_> = robust.collect();
    let has_levels = robust.iter().any(|margin| matches!(margin, Some(Margin::Levels(_))));
    let term = |TermSource { property, value_type, sides: [at, after] }: &TermSource| {
        let after = if moments == Moments::Dense { after } else { at };
        let sides = [at, after].map(|(node, known)| (assembly.column[node.index()], place(*known)));
        NotedTerm { property: *property, value_type: *value_type, sides }
    };
    let terms = terms.iter().map(term).collect();
    let is_keeper =
        |i: &&Instruction| matches!(i, Instruction::HeldText { .. } | Instruction::LatchText { .. });
    let reads_time = |i: &Instruction| match i {
        Instruction::Time { .. }
        | Instruction::Together
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
        moments,
        properties,
        formulas,
        constant,
        keeps_text: assembly.instructions.iter().rev().filter(is_keeper).copied().collect(),
        reads_time: moments == Moments::Dense || assembly.instructions.iter().any(reads_time),
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
        scout: None,
        linear: None,
        futures: Vec::new(),
        robust_futures: Vec::new(),
    }
}
