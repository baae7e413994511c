//! Assembly of a section: from the nodes of a graph to instructions, state and registers.

mod instructions;
mod section;

use std::fmt::Debug;

use rondel_event::{Slot, TopicId};
use rondel_spec::Spec;

use crate::exec::section::{Section, TimePoints};
use crate::future::RobustFuture;
use crate::ir::graph::Graph;
use crate::ir::node::Node;
use crate::ir::premise::Premise;
use crate::ir::schedule::{Schedule, schedule};
use crate::ir::truth::{Truth, TruthBounds};
use crate::ir::wire::{NodeId, Wire};
use crate::lower::assume::identities_assuming;
use crate::lower::identity::{Names, hash, identities};
use crate::lower::translate::{FieldRead, Robustness, TermSource, Translation};
use crate::relation::source::Relation;
use section::{AheadStep, IdentifiedGraph, SectionOutputs, section};

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
        spec: &Spec,
        lines: &[u64],
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
        let nodes = IdentifiedGraph { graph: &graph, sources: &sources, identities: &identities };
        let eager = (!ahead.is_empty()).then(|| {
            let (outputs, step) = (SectionOutputs::default(), AheadStep::Writes(&ahead));
            Box::new(section(nodes, outputs, eager, time_points, Vec::new(), slots, step))
        });
        let outputs = SectionOutputs { formulas: &formulas, robust: &robust, premises, terms: &terms };
        let step = AheadStep::Reads(&ahead);
        let mut section = section(nodes, outputs, schedule, time_points, properties, slots, step);
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
        let number =
            |relation: &Relation| relation.plan.obligation.as_ref().map(|obligation| obligation.number);
        for (external, relation) in futures.iter_mut().flat_map(|future| &mut future.externals) {
            let at = section.relations.iter().position(|relation| number(relation) == Some(*external));
            *relation = at.map_or(u32::MAX, |at| at as u32);
        }
        section.identities.ahead = ahead_identities;
        let section = Section { eager, futures, robust_futures, ..section };
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
