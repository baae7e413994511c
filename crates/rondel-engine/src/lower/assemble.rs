//! From the nodes of a graph to the instructions, the state and the registers of a section.

use std::fmt::Debug;

use regex::bytes::Regex;
use rondel_event::{Block, Slot, TopicId};
use rondel_spec::{Kernel, Spec, TimeModel, pattern as compiled};

use crate::exec::inner::InnerPlan;
use crate::exec::section::{Deadline, Lasting, Margin, Moments, Section};
use crate::exec::state::{RegisterPlan, State};
use crate::future::RobustFuture;
use crate::ir::graph::Graph;
use crate::ir::instruction::Instruction;
use crate::ir::node::{Constant, FieldId, Kind, Node, Reach, Relation};
use crate::ir::premise::Premise;
use crate::ir::schedule::{Schedule, schedule};
use crate::ir::truth::{Rails, Truth};
use crate::ir::wire::{NodeId, Sides, Wire};
use crate::lower::identity::{Names, hash, identities};
use crate::lower::translate::{FieldRead, MachineSource, Robustness, Sources, Translation};
use crate::machine::{MachinePlan, MachineRows, MachineState};
use crate::ops::columns::{Held, Latched};
use crate::ops::delay::Delay;
use crate::ops::extreme::Greatest;
use crate::ops::once::{Recently, TimedRecently};
use crate::ops::ranges::Ranges;
use crate::ops::since::{TimedSince, robust};
use crate::ops::timed::{NEVER, distance};
use crate::ops::window::{LIMIT, Operands, Window};
use crate::relation::source::Relation as Quantified;
use crate::relation::state::RelationState;

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
        let outputs = outputs.chain(levels).chain(premises);
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
        let (plain, premises) = (formulas.len(), translation.premises);
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
            let outputs = (&[][..], &[][..], Vec::new());
            Box::new(section(
                (&graph, &sources, &identities),
                outputs,
                scout,
                moments,
                Vec::new(),
                slots,
                Ahead::Writes(&ahead),
            ))
        });
        let outputs = (&formulas[..], &robust[..], premises);
        let mut section = section(
            (&graph, &sources, &identities),
            outputs,
            schedule,
            moments,
            properties,
            slots,
            Ahead::Reads(&ahead),
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
        let number = |relation: &Quantified| relation.plan.ask.as_ref().map(|ask| ask.number);
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

/// What is done with the operators that are looked ahead of, by their places in the list.
#[derive(Clone, Copy)]
enum Ahead<'a> {
    Writes(&'a [NodeId]),
    Reads(&'a [NodeId]),
}

fn section(
    (graph, sources, identities): (&Graph, &Sources, &[u64]),
    (formulas, robust, mut premises): (&[Truth], &[Option<Robustness>], Vec<Premise>),
    Schedule { order, constant }: Schedule,
    moments: Moments,
    properties: Vec<u32>,
    slots: &[Option<Slot>],
    ahead: Ahead<'_>,
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
        Instruction::Greatest { timed, .. } | Instruction::RobustSince { timed, .. } => *timed,
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

/// Nodes on their way to instructions.
struct Assembly<'a> {
    graph: &'a Graph,
    sources: &'a Sources,
    slots: &'a [Option<Slot>],
    ahead: Ahead<'a>,
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
    windows: Vec<Operands>,
    robust_operands: Vec<[[u32; 2]; 2]>,
    relations: Vec<Quantified>,
    inner: Vec<Box<dyn InnerPlan>>,
    deadlines: Vec<Deadline>,
    shortest: u64,
    state: State,
    registers: RegisterPlan,
}

/// A timed operator as ranges, and its operands.
fn ranges_of(node: &Node) -> Option<(Ranges, [Sides; 2])> {
    match *node {
        Node::TimedRecently { q, span, open } => Some((Ranges::recently(span, open), [Sides::TRUE, q])),
        Node::TimedSince { p, q, lower, upper } => Some((Ranges::new(lower, upper), [p, q])),
        _ => None,
    }
}

/// Adds to a list and says where.
fn push<T>(list: &mut Vec<T>, value: T) -> u32 {
    list.push(value);
    list.len() as u32 - 1
}

/// Counts one more and says which it is.
fn add(count: &mut u32) -> u32 {
    *count += 1;
    *count - 1
}

impl Assembly<'_> {
    fn assemble(&mut self, id: NodeId) {
        let node = &self.graph.nodes()[id.index()];
        if let Some(kind) = node.kind() {
            self.column[id.index()] = match kind {
                Kind::Int => add(&mut self.registers.ints),
                Kind::Float => add(&mut self.registers.floats),
                Kind::Text => add(&mut self.registers.texts),
            };
        }
        let instruction = match self.look_ahead(id) {
            Some(instruction) => instruction,
            None => self.instruction(node, self.column[id.index()]),
        };
        self.place[id.index()] = push(&mut self.instructions, instruction);
        add(&mut self.registers.words);
    }

    /// The instruction of an operator that is looked ahead of.
    fn look_ahead(&mut self, id: NodeId) -> Option<Instruction> {
        let (Ahead::Writes(list) | Ahead::Reads(list)) = self.ahead;
        let state = list.binary_search(&id).ok()? as u32;
        if let Ahead::Reads(_) = self.ahead {
            // Both sides have the ranges in the order of the list.
            let ranges = &mut self.state.ranges;
            ranges.resize_with(list.len(), || Ranges::new(0, None));
            ranges[state as usize] = ranges_of(&self.graph.nodes()[id.index()])?.0;
            return Some(Instruction::LookedAhead { state, second: add(&mut self.registers.seconds) });
        }
        let (_, operands) = ranges_of(&self.graph.nodes()[id.index()])?;
        let place = &self.place;
        let wire = |wire: Wire| wire.moved_to(NodeId(place[wire.node().index()]));
        let operands = operands.map(|x| Sides { at: wire(x.at), after: wire(x.after) });
        Some(Instruction::LookAhead { operands: push(&mut self.operands, operands), state })
    }

    fn instruction(&mut self, node: &Node, out: u32) -> Instruction {
        use Instruction as I;
        let Assembly { place, column, state, registers, .. } = self;
        let wire = |wire: Wire| wire.moved_to(NodeId(place[wire.node().index()]));
        let column = |id: NodeId| column[id.index()];
        let slot = |field: FieldId| self.slots.get(field as usize).copied().flatten();
        let source = |field: FieldId| match slot(field) {
            Some(Slot::Bool(i) | Slot::Int(i) | Slot::Float(i) | Slot::String(i)) => i,
            // Every field that a node reads is bound.
            None => 0,
        };
        let instructions = &self.instructions;
        let machine = |of: NodeId| match instructions[place[of.index()] as usize] {
            I::Machine { machine, .. } => machine,
            // These nodes are made of machines only.
            _ => 0,
        };
        match *node {
            Node::False => I::False,
            Node::On(TopicId(topic)) => I::On { topic },
            Node::Carried(field) => I::Carried { slot: slot(field).unwrap_or(Slot::Bool(0)) },
            Node::HeldBool(field, value) => {
                I::HeldBool { column: source(field), value, state: push(&mut state.bits, 0) }
            }
            Node::Line { line, sign, side } => I::Line { line, sign, side, state: push(&mut state.bits, 0) },
            Node::And(a, b) => I::And { a: wire(a), b: wire(b) },
            Node::Since(p, q) => I::Since { p: wire(p), q: wire(q), state: push(&mut state.bits, 0) },
            Node::Shift(x, by) => I::Shift { x: wire(x), by: by as u8, state: push(&mut state.bits, 0) },
            Node::Recently(x, span) => {
                I::Recently { x: wire(x), state: push(&mut state.recently, Recently { span, left: 0 }) }
            }
            Node::Delay { of, forget, by } => {
                let state = push(&mut state.delays, Delay::new(by));
                I::Delay { x: wire(of), forget: wire(forget), state }
            }
            Node::Together => I::Together,
            Node::TimedRecently { q, span, open } => {
                let recently = if open { TimedRecently::less_than(span) } else { TimedRecently::new(span) };
                let state = push(&mut state.timed_recently, recently);
                I::TimedRecently {
                    q: wire(q.at),
                    q_after: wire(q.after),
                    state,
                    second: add(&mut registers.seconds),
                }
            }
            Node::TimedSince { p, q, lower, upper } => {
                let sides = |sides: Sides| Sides { at: wire(sides.at), after: wire(sides.after) };
                let operands = push(&mut self.operands, [sides(p), sides(q)]);
                let state = push(&mut state.timed_since, TimedSince::new(lower, upper));
                I::TimedSince { operands, state, second: add(&mut registers.seconds) }
            }
            Node::After(of) => {
                // That somebody asks for its truth between events is why its changes matter.
                let (second, deadline) = match self.instructions[place[of.index()] as usize] {
                    I::TimedRecently { state, second, .. } => (second, Deadline::Recently(state)),
                    I::TimedSince { state, second, .. } => (second, Deadline::Since(state)),
                    I::Lasting { state, second, .. } => (second, Deadline::Lasting(state)),
                    // Its deadlines are there in any case.
                    I::Quantified { second, .. } => return I::After { second },
                    // Its changes are known before.
                    I::LookedAhead { second, .. } => return I::After { second },
                    // No other node has two sides.
                    _ => return I::False,
                };
                let soonest = match self.graph.nodes()[of.index()] {
                    Node::TimedRecently { span, .. } => span,
                    Node::TimedSince { lower, .. } => lower,
                    _ => 0,
                };
                self.shortest = self.shortest.min(soonest);
                self.deadlines.push(deadline);
                I::After { second }
            }
            Node::Lasting { from, known, span, open } => {
                let span = distance(span).saturating_sub(open.into());
                push(&mut self.lasting, Lasting { known: wire(known), span });
                let state = push(&mut state.lasting, NEVER);
                I::Lasting { x: column(from), state, second: add(&mut registers.seconds) }
            }
            Node::Chain(chain, column) => {
                I::Chain { chain, column, state: push(&mut state.chains, None), out }
            }
            Node::Time => I::Time { out },
            Node::Machine { machine, .. } => {
                let MachineSource { mut plan, initial, variables } = self.sources.machine(machine).clone();
                for transition in plan.leaving.iter_mut().flatten() {
                    if let Some(guard) = &mut transition.guard {
                        guard.place(&wire, &column);
                    }
                    transition.assignments.iter_mut().for_each(|(_, value)| value.place(&wire, &column));
                    self.shortest =
                        self.shortest.min(transition.after.map_or(u64::MAX, |after| after.max(1)));
                }
                plan.kept.iter_mut().for_each(|value| value.place(&wire, &column));
                push(&mut registers.machines, MachineRows::new(variables.len()));
                let kept = plan.kept.iter().map(|_| None);
                let variables = variables.into_iter().map(Some).chain(kept).collect();
                push(&mut state.machines, MachineState::new(initial, variables));
                let machine = push(&mut self.machines, plan);
                self.deadlines.push(Deadline::Machine(machine));
                I::Machine { machine, out }
            }
            Node::MachineAfter(of) => I::MachineAfter { machine: machine(of), out },
            Node::MachineValue { machine: of, variable, side, kind } => {
                let machine = machine(of);
                match kind {
                    Kind::Float => I::MachineFloat { machine, variable, side, out },
                    Kind::Int => I::MachineInt { machine, variable, side, out },
                    Kind::Text => {
                        registers.machines[machine as usize].write_text(variable, side);
                        let buffers = &mut state.values.buffers;
                        let buffer = buffers.len() as u32;
                        buffers.resize(buffers.len() + Block::CAPACITY, Vec::new());
                        I::MachineText { machine, variable, side, buffer, out }
                    }
                }
            }
            Node::MachineTruth { machine: of, variable, side, value } => {
                I::MachineTruth { machine: machine(of), variable, side, value }
            }
            Node::Latency => I::Latency { out },
            Node::Sampled(x, clock) => {
                let state = push(&mut state.values.sampled, 0);
                I::SampledInt { x: column(x), clock: wire(clock), state, out }
            }
            Node::Window { measure, kind, x, samples, known, over, timed } => {
                let operands = Operands { x: column(x), samples: wire(samples), known: wire(known), timed };
                push(&mut self.windows, operands);
                let window = push(&mut state.values.windows, Window::new(measure, kind, over));
                if timed {
                    self.deadlines.push(Deadline::Window(window));
                    self.shortest = self.shortest.min(over);
                }
                I::Window { window, out }
            }
            Node::Margin(Kind::Float, a, b) => I::MarginFloat { a: column(a), b: column(b), out },
            Node::Margin(_, a, b) => I::MarginInt { a: column(a), b: column(b), out },
            Node::Greatest { x, bounds: Reach { lower, upper, timed, unknown } } => {
                let greatest = Greatest::new(lower, upper, LIMIT);
                let state = push(&mut state.values.greatest, (greatest, f64::from_bits(unknown)));
                I::Greatest { x: column(x), timed, state, out }
            }
            Node::RobustSince { p, q, bounds: Reach { lower, upper, timed, unknown } } => {
                let since = robust::Since::new(lower, upper, f64::from_bits(unknown), LIMIT);
                let state = push(&mut state.values.robust_since, since);
                I::RobustSince { p: column(p), q: column(q), timed, state, out }
            }
            Node::RobustDense { p, q, bounds: Reach { lower, upper, unknown, .. } } => {
                let operands = push(&mut self.robust_operands, [p.map(column), q.map(column)]);
                let since = robust::DenseSince::new(lower, upper, f64::from_bits(unknown), LIMIT);
                let state = push(&mut state.values.robust_dense, since);
                self.deadlines.push(Deadline::Robust(state));
                let soonest = if lower > 0 { lower } else { upper.unwrap_or(u64::MAX) };
                self.shortest = self.shortest.min(soonest);
                I::RobustDense { operands, state, second: add(&mut registers.column_seconds), out }
            }
            Node::AfterFloat(of) => match self.instructions[place[of.index()] as usize] {
                I::RobustDense { second, .. } => I::AfterFloat { second, out },
                // No other column has two sides.
                _ => I::False,
            },
            Node::Quantified { relation, ref fields, .. } => {
                let mut relation = self.sources.relation(relation).clone();
                relation.place(wire, column);
                relation.slots = fields.iter().map(|&field| slot(field)).collect();
                push(&mut state.relations, RelationState::new(&relation.plan));
                let (dense, soonest) = (relation.model == TimeModel::Dense, relation.plan.soonest());
                let relation = push(&mut self.relations, relation);
                if dense {
                    // What it keeps changes by itself, also where nobody asks for its truth between events.
                    self.deadlines.push(Deadline::Relation(relation));
                    self.shortest = self.shortest.min(soonest);
                }
                I::Quantified { relation, second: add(&mut registers.seconds) }
            }
            Node::ByValue { number, .. } => {
                let source = self.sources.by_value(number).clone();
                let number = push(&mut self.inner, Box::new(source.placed(wire, slot)));
                I::ByValue { number, second: add(&mut registers.seconds) }
            }
            Node::ByValuePossibly(of) => match self.instructions[place[of.index()] as usize] {
                I::ByValue { second, .. } => I::After { second },
                // No other node has this one.
                _ => I::False,
            },
            Node::Outer(input) => I::Outer { input },
            Node::KeyBool(key, value) => I::KeyBool { key, value },
            Node::Key(Kind::Text, key) => I::KeyText { key, out },
            Node::Key(_, key) => I::KeyInt { key, out },
            Node::Compare(relation, a, b) => {
                let (a, b) = (column(a), column(b));
                match relation {
                    Relation::IntEqual => I::IntEqual { a, b },
                    Relation::IntLess => I::IntLess { a, b },
                    Relation::FloatEqual => I::FloatEqual { a, b },
                    Relation::FloatLess => I::FloatLess { a, b },
                    Relation::FloatLessOrEqual => I::FloatLessOrEqual { a, b },
                    Relation::TextEqual => I::TextEqual { a, b },
                    Relation::TextStartsWith => I::TextStartsWith { a, b },
                }
            }
            Node::Constant(Constant::Int(value)) => {
                I::ConstantInt { constant: push(&mut self.ints, value), out }
            }
            Node::Constant(Constant::Float(bits)) => {
                I::ConstantFloat { constant: push(&mut self.floats, f64::from_bits(bits)), out }
            }
            Node::Constant(Constant::Text(ref text)) => {
                let buffer = push(&mut state.values.buffers, text.as_bytes().to_vec());
                I::ConstantText { buffer, out }
            }
            Node::ToFloat(x) => I::ToFloat { x: column(x), out },
            // Text has no arithmetic.
            Node::Unary(Kind::Float, op, x) => I::UnaryFloat { op, x: column(x), out },
            Node::Unary(_, op, x) => I::UnaryInt { op, x: column(x), out },
            Node::Binary(Kind::Float, op, a, b) => I::BinaryFloat { op, a: column(a), b: column(b), out },
            Node::Binary(_, op, a, b) => I::BinaryInt { op, a: column(a), b: column(b), out },
            Node::Call(function, x, y) => {
                let (a, b) = (column(x), column(y.unwrap_or(x)));
                match function.kernel() {
                    Kernel::Number(_) => I::CallNumber { function, x: a, out },
                    Kernel::Numbers(_) => I::CallNumbers { function, a, b, out },
                    Kernel::Test(_) => I::CallTest { function, a, b },
                    Kernel::Size(_) => I::CallSize { function, x: a, out },
                    Kernel::Text(_) => {
                        let buffer = state.values.buffers.len() as u32;
                        state.values.buffers.resize(buffer as usize + Block::CAPACITY, Vec::new());
                        I::CallText { function, x: a, buffer, out }
                    }
                    Kernel::Matches => {
                        let pattern = y.and_then(|y| match &self.graph.nodes()[y.index()] {
                            Node::Constant(Constant::Text(text)) => compiled(text).ok(),
                            _ => None,
                        });
                        match pattern {
                            Some(pattern) => I::Matches { x: a, pattern: push(&mut self.patterns, pattern) },
                            // Translation has compiled it before.
                            None => I::False,
                        }
                    }
                }
            }
            Node::Held(kind, field) => {
                let column = source(field);
                match kind {
                    Kind::Int => {
                        I::HeldInt { column, state: push(&mut state.values.held_ints, Held::default()), out }
                    }
                    Kind::Float => I::HeldFloat {
                        column,
                        state: push(&mut state.values.held_floats, Held::default()),
                        out,
                    },
                    Kind::Text => I::HeldText {
                        column,
                        state: push(&mut state.values.known_texts, 0),
                        buffer: push(&mut state.values.buffers, Vec::new()),
                        out,
                    },
                }
            }
            Node::Select(kind, condition, a, b) => {
                let (condition, a, b) = (wire(condition), column(a), column(b));
                match kind {
                    Kind::Int => I::SelectInt { condition, a, b, out },
                    Kind::Float => I::SelectFloat { condition, a, b, out },
                    Kind::Text => I::SelectText { condition, a, b, out },
                }
            }
            Node::Latch(kind, x, clock) => {
                let (x, clock) = (column(x), wire(clock));
                match kind {
                    Kind::Int => {
                        let state = push(&mut state.values.latched_ints, Latched::default());
                        I::LatchInt { x, clock, state, out }
                    }
                    Kind::Float => {
                        let state = push(&mut state.values.latched_floats, Latched::default());
                        I::LatchFloat { x, clock, state, out }
                    }
                    Kind::Text => {
                        let buffer = push(&mut state.values.buffers, Vec::new());
                        push(&mut state.values.buffers, Vec::new());
                        I::LatchText { x, clock, buffer, out }
                    }
                }
            }
        }
    }
}
