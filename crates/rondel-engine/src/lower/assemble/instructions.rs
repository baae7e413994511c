//! Instruction, state and registers of each kind of node.

use rondel_event::{Block, Slot, TopicId};
use rondel_spec::{Kernel, TimeModel, pattern as compiled};

use super::section::{AheadStep, Assembly};
use crate::exec::section::{Deadline, Lasting};
use crate::ir::instruction::Instruction;
use crate::ir::node::{ComparisonKind, Constant, FieldId, Kind, Node, RobustReach};
use crate::ir::wire::{Halves, NodeId, Wire};
use crate::lower::translate::MachineSource;
use crate::machine::{MachineRows, MachineState};
use crate::ops::delay::Delay;
use crate::ops::held::{Held, Latched};
use crate::ops::once::{self, Recently, TimedRecently};
use crate::ops::ranges::Ranges;
use crate::ops::since::{TimedSince, robust};
use crate::ops::timed::{NEVER, distance};
use crate::ops::window::{LIMIT, Window, WindowOperands};
use crate::relation::state::RelationState;

/// The ranges of a timed operator, and its operands.
fn ranges_of(node: &Node) -> Option<(Ranges, [Halves; 2])> {
    match *node {
        Node::TimedRecently { q, span, open } => Some((Ranges::recently(span, open), [Halves::TRUE, q])),
        Node::TimedSince { p, q, lower, upper } => Some((Ranges::new(lower, upper), [p, q])),
        _ => None,
    }
}

/// Appends to a list. Returns the index of the new element.
fn push<T>(list: &mut Vec<T>, value: T) -> u32 {
    list.push(value);
    list.len() as u32 - 1
}

/// Increments a counter. Returns the value before.
fn add(count: &mut u32) -> u32 {
    *count += 1;
    *count - 1
}

impl Assembly<'_> {
    /// Assembles a node.
    pub(super) fn assemble(&mut self, id: NodeId) {
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

    /// The instruction of an operator that is evaluated ahead; none for other nodes.
    fn look_ahead(&mut self, id: NodeId) -> Option<Instruction> {
        let (AheadStep::Writes(list) | AheadStep::Reads(list)) = self.ahead;
        let state = list.binary_search(&id).ok()? as u32;
        if let AheadStep::Reads(_) = self.ahead {
            // The eager section and this one number the ranges in the order of the list.
            let ranges = &mut self.state.ranges;
            ranges.resize_with(list.len(), || Ranges::new(0, None));
            ranges[state as usize] = ranges_of(&self.graph.nodes()[id.index()])?.0;
            return Some(Instruction::LookedAhead { state, second: add(&mut self.registers.seconds) });
        }
        let (_, operands) = ranges_of(&self.graph.nodes()[id.index()])?;
        let place = &self.place;
        let wire = |wire: Wire| wire.moved_to(NodeId(place[wire.node().index()]));
        let operands = operands.map(|x| Halves { at: wire(x.at), after: wire(x.after) });
        Some(Instruction::LookAhead { operands: push(&mut self.operands.since, operands), state })
    }

    #[expect(clippy::too_many_lines, reason = "one arm for each node")]
    fn instruction(&mut self, node: &Node, out: u32) -> Instruction {
        use Instruction as I;
        let Assembly { place, column, state, registers, .. } = self;
        let wire = |wire: Wire| wire.moved_to(NodeId(place[wire.node().index()]));
        let column = |id: NodeId| column[id.index()];
        let slot = |field: FieldId| self.slots.get(field as usize).copied().flatten();
        let source = |field: FieldId| match slot(field) {
            Some(Slot::Bool(i) | Slot::Int(i) | Slot::Float(i) | Slot::String(i)) => i,
            // Cannot happen: every field that a node reads is bound.
            None => 0,
        };
        let instructions = &self.instructions;
        let machine = |of: NodeId| match instructions[place[of.index()] as usize] {
            I::Machine { machine, .. } => machine,
            // Cannot happen: these nodes have machines as operands.
            _ => 0,
        };
        match *node {
            Node::False => I::False,
            Node::On(TopicId(topic)) => I::On { topic },
            Node::Carried(field) => I::Carried { slot: slot(field).unwrap_or(Slot::Bool(0)) },
            Node::HeldBool(field, value) => {
                I::HeldBool { column: source(field), value, state: push(&mut state.bits, 0) }
            }
            Node::Line { line, sign, half } => I::Line { line, sign, half, state: push(&mut state.bits, 0) },
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
            Node::SameTime => I::SameTime,
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
                let halves = |halves: Halves| Halves { at: wire(halves.at), after: wire(halves.after) };
                let operands = push(&mut self.operands.since, [halves(p), halves(q)]);
                let state = push(&mut state.timed_since, TimedSince::new(lower, upper));
                I::TimedSince { operands, state, second: add(&mut registers.seconds) }
            }
            Node::After(of) => {
                // A node `After` exists if the truth between events is read; only then a change between
                // events is a time point.
                let (second, deadline) = match self.instructions[place[of.index()] as usize] {
                    I::TimedRecently { state, second, .. } => (second, Deadline::Recently(state)),
                    I::TimedSince { state, second, .. } => (second, Deadline::Since(state)),
                    I::Lasting { state, second, .. } => (second, Deadline::Lasting(state)),
                    // Its deadlines have been added with the node.
                    I::Quantified { second, .. } => return I::After { second },
                    // Its changes are known before the block is evaluated.
                    I::LookedAhead { second, .. } => return I::After { second },
                    // No other node has two halves.
                    _ => return I::False,
                };
                let soonest = match self.graph.nodes()[of.index()] {
                    Node::TimedRecently { span, .. } => span,
                    Node::TimedSince { lower, .. } => lower,
                    _ => 0,
                };
                self.changes.shortest = self.changes.shortest.min(soonest);
                self.changes.deadlines.push(deadline);
                I::After { second }
            }
            Node::Lasting { from, known, span, open } => {
                let span = distance(span).saturating_sub(open.into());
                push(&mut self.operands.lasting, Lasting { known: wire(known), span });
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
                    self.changes.shortest =
                        self.changes.shortest.min(transition.after.map_or(u64::MAX, |after| after.max(1)));
                }
                plan.kept.iter_mut().for_each(|value| value.place(&wire, &column));
                push(&mut registers.machines, MachineRows::new(variables.len()));
                let kept = plan.kept.iter().map(|_| None);
                let variables = variables.into_iter().map(Some).chain(kept).collect();
                push(&mut state.machines, MachineState::new(initial, variables));
                let machine = push(&mut self.machines, plan);
                self.changes.deadlines.push(Deadline::Machine(machine));
                I::Machine { machine, out }
            }
            Node::MachineAfter(of) => I::MachineAfter { machine: machine(of), out },
            Node::MachineValue { machine: of, variable, half, kind } => {
                let machine = machine(of);
                match kind {
                    Kind::Float => I::MachineFloat { machine, variable, half, out },
                    Kind::Int => I::MachineInt { machine, variable, half, out },
                    Kind::Text => {
                        registers.machines[machine as usize].write_text(variable, half);
                        let buffers = &mut state.values.buffers;
                        let buffer = buffers.len() as u32;
                        buffers.resize(buffers.len() + Block::CAPACITY, Vec::new());
                        I::MachineText { machine, variable, half, buffer, out }
                    }
                }
            }
            Node::MachineTruth { machine: of, variable, half, value } => {
                I::MachineTruth { machine: machine(of), variable, half, value }
            }
            Node::Latency => I::Latency { out },
            Node::Sampled(x, clock) => {
                let state = push(&mut state.values.sampled, 0);
                I::SampledInt { x: column(x), clock: wire(clock), state, out }
            }
            Node::Window { measure, kind, x, samples, known, over, timed } => {
                let operands =
                    WindowOperands { x: column(x), samples: wire(samples), known: wire(known), timed };
                push(&mut self.operands.windows, operands);
                let window = push(&mut state.values.windows, Window::new(measure, kind, over));
                if timed {
                    self.changes.deadlines.push(Deadline::Window(window));
                    self.changes.shortest = self.changes.shortest.min(over);
                }
                I::Window { window, out }
            }
            Node::Margin(Kind::Float, a, b) => I::MarginFloat { a: column(a), b: column(b), out },
            Node::Margin(_, a, b) => I::MarginInt { a: column(a), b: column(b), out },
            Node::RobustOnce { x, bounds: RobustReach { lower, upper, timed, unknown } } => {
                let once = once::Robust::new(lower, upper, f64::from_bits(unknown), LIMIT);
                let state = push(&mut state.values.robust_once, once);
                I::RobustOnce { x: column(x), timed, state, out }
            }
            Node::RobustSince { p, q, bounds: RobustReach { lower, upper, timed, unknown } } => {
                let since = robust::SinceRows::new(lower, upper, f64::from_bits(unknown), LIMIT);
                let state = push(&mut state.values.robust_since, since);
                I::RobustSince { p: column(p), q: column(q), timed, state, out }
            }
            Node::RobustDense { p, q, bounds: RobustReach { lower, upper, unknown, .. } } => {
                let operands = push(&mut self.operands.robust, [p.map(column), q.map(column)]);
                let since = robust::DenseSince::new(lower, upper, f64::from_bits(unknown), LIMIT);
                let state = push(&mut state.values.robust_dense, since);
                self.changes.deadlines.push(Deadline::Robust(state));
                let soonest = if lower > 0 { lower } else { upper.unwrap_or(u64::MAX) };
                self.changes.shortest = self.changes.shortest.min(soonest);
                I::RobustDense { operands, state, second: add(&mut registers.column_seconds), out }
            }
            Node::AfterFloat(of) => match self.instructions[place[of.index()] as usize] {
                I::RobustDense { second, .. } => I::AfterFloat { second, out },
                // No other column has two halves.
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
                    // Its tables expire with time, also if its truth between events is never read.
                    self.changes.deadlines.push(Deadline::Relation(relation));
                    self.changes.shortest = self.changes.shortest.min(soonest);
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
                // No other node has this half.
                _ => I::False,
            },
            Node::Outer(input) => I::Outer { input },
            Node::KeyBool(key, value) => I::KeyBool { key, value },
            Node::Key(Kind::Text, key) => I::KeyText { key, out },
            Node::Key(_, key) => I::KeyInt { key, out },
            Node::Compare(relation, a, b) => {
                let (a, b) = (column(a), column(b));
                match relation {
                    ComparisonKind::IntEqual => I::IntEqual { a, b },
                    ComparisonKind::IntLess => I::IntLess { a, b },
                    ComparisonKind::FloatEqual => I::FloatEqual { a, b },
                    ComparisonKind::FloatLess => I::FloatLess { a, b },
                    ComparisonKind::FloatLessOrEqual => I::FloatLessOrEqual { a, b },
                    ComparisonKind::TextEqual => I::TextEqual { a, b },
                    ComparisonKind::TextStartsWith => I::TextStartsWith { a, b },
                }
            }
            Node::Constant(Constant::Int(value)) => {
                I::ConstantInt { constant: push(&mut self.constants.ints, value), out }
            }
            Node::Constant(Constant::Float(bits)) => {
                I::ConstantFloat { constant: push(&mut self.constants.floats, f64::from_bits(bits)), out }
            }
            Node::Constant(Constant::Text(ref text)) => {
                let buffer = push(&mut state.values.buffers, text.as_bytes().to_vec());
                I::ConstantText { buffer, out }
            }
            Node::ToFloat(x) => I::ToFloat { x: column(x), out },
            // There is no arithmetic on texts.
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
                            Some(pattern) => {
                                I::Matches { x: a, pattern: push(&mut self.constants.patterns, pattern) }
                            }
                            // Cannot happen: the translator has compiled it before.
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
