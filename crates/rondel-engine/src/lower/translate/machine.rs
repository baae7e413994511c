//! Translation of machines: parts of guards that do not read the machine's own data become wires and columns.

use std::collections::BTreeSet;

use rondel_event::{Value, ValueType};
use rondel_spec::{Expr, ExprId, Kernel, Machine, MachineId, TimeModel, pattern};

use super::values::kind;
use super::{Column, Meaning, Translator, Truth, TruthBounds, ValueColumns};
use crate::CompileError;
use crate::ir::node::{ComparisonKind, Constant, Node};
use crate::ir::wire::{NodeId, Wire};
use crate::lower::error;
use crate::machine::leap::{UNKNOWN, heartbeats, repeats};
use crate::machine::{MachinePlan, TransitionPlan};
use crate::ops::scalar::Scalar;

/// A machine before assembly: wires and columns are nodes of the graph.
#[derive(Clone, Debug)]
pub(crate) struct MachineSource {
    pub(crate) plan: MachinePlan,
    pub(crate) initial: u32,
    pub(crate) variables: Vec<Value>,
}

/// Limit of the nesting of expressions over the data of a machine.
const DEEPEST: usize = 500;

impl Translator<'_> {
    /// The truth that the machine is in one of these states.
    pub(super) fn in_state(
        &mut self,
        id: ExprId,
        machine: MachineId,
        states: &[u32],
    ) -> Result<Meaning, CompileError> {
        let node = self.machine(id, machine)?;
        let after = self.graph.add(Node::MachineAfter(node));
        let may_be_unknown = match self.graph.nodes()[node.index()] {
            Node::Machine { machine, .. } => self.sources.machine(machine).plan.repeats,
            _ => false,
        };
        let [at, after] = [node, after].map(|column| {
            let mut is = |state: i64| {
                let state = self.graph.add(Node::Constant(Constant::Int(state)));
                let (x, y) = (state.min(column), state.max(column));
                self.graph.wire(Node::Compare(ComparisonKind::IntEqual, x, y))
            };
            let all: Vec<Wire> = states.iter().map(|&state| is(state.into())).collect();
            let unknown = if may_be_unknown { is(UNKNOWN) } else { Wire::FALSE };
            let certain = all.into_iter().fold(Wire::FALSE, |any, is| self.graph.or(any, is));
            TruthBounds { certain, possible: self.graph.or(certain, unknown) }
        });
        Ok(Meaning::Truth(self.truth_of_halves(at, after)))
    }

    /// The truth that two transitions were enabled at once.
    pub(super) fn ambiguous(&mut self, id: ExprId, machine: MachineId) -> Result<Meaning, CompileError> {
        let node = self.machine(id, machine)?;
        let after = self.graph.wire(Node::MachineAfter(node));
        Ok(Meaning::Truth(self.truth_of_halves(TruthBounds::both(Wire::of(node)), TruthBounds::both(after))))
    }

    /// The value of a variable before the transition of the time point.
    pub(super) fn machine_variable(
        &mut self,
        id: ExprId,
        machine: MachineId,
        variable: u32,
        value_type: ValueType,
    ) -> Result<Meaning, CompileError> {
        let node = self.machine(id, machine)?;
        if value_type == ValueType::Bool {
            let [at, after] = [0, 1].map(|half| {
                let mut is =
                    |value| self.graph.wire(Node::MachineTruth { machine: node, variable, half, value });
                TruthBounds { certain: is(true), possible: !is(false) }
            });
            return Ok(Meaning::Truth(self.truth_of_halves(at, after)));
        }
        let kind = kind(value_type);
        let [at, after] = [0, 1].map(|half| {
            let node = self.graph.add(Node::MachineValue { machine: node, variable, half, kind });
            Column { node, known: Wire::of(node) }
        });
        let after = if self.model == TimeModel::Dense { after } else { at };
        Ok(Meaning::Values(ValueColumns { at, after, value_type }))
    }

    fn truth_of_halves(&self, at: TruthBounds, after: TruthBounds) -> Truth {
        if self.model == TimeModel::Dense { Truth { at, after } } else { Truth { at, after: at } }
    }

    /// The node of a machine, with everything that its guards refer to.
    fn machine(&mut self, id: ExprId, machine: MachineId) -> Result<NodeId, CompileError> {
        if let Some(known) = self.machines.get(&machine) {
            // None while it is being translated: the machine depends on itself by way of another one.
            return known.ok_or(CompileError::Unsupported { node: id, what: error::MACHINE_CYCLE });
        }
        let Some(declared) = self.spec.machines.get(machine.0 as usize) else {
            return Err(CompileError::Unsupported { node: id, what: "a machine that is not declared" });
        };
        if declared.time != self.model {
            let what = error::MACHINE_TIME;
            return Err(CompileError::Unsupported { node: id, what });
        }
        self.machines.insert(machine, None);
        let mut leaving = vec![Vec::new(); declared.states.len()];
        let mut kept = Vec::new();
        for (number, transition) in declared.transitions.iter().enumerate() {
            let guard = match transition.guard {
                Some(guard) => Some(self.scalar(id, machine, guard, 0)?),
                None => None,
            };
            let assignments = transition
                .assignments
                .iter()
                .map(|&(variable, value)| Ok((variable, self.scalar(id, machine, value, 0)?)));
            let assignments = assignments.collect::<Result<Vec<_>, CompileError>>()?;
            let mut plan = TransitionPlan {
                number: number as u32,
                to: transition.to,
                guard,
                within: transition.within,
                after: transition.after,
                assignments,
            };
            let is_state = |state: u32| (state as usize) < declared.states.len();
            let is_variable = |(variable, _): &(u32, Scalar)| (*variable as usize) < declared.variables.len();
            if !(is_state(plan.to) && is_state(transition.from) && plan.assignments.iter().all(is_variable)) {
                return Err(CompileError::Unsupported { node: id, what: "a state that is not declared" });
            }
            if self.model == TimeModel::Points && plan.runs_out() {
                // Events are the only time points: an expiry between them assigns the values of the event
                // before.
                let first = declared.variables.len() as u32;
                plan.assignments.iter_mut().for_each(|(_, value)| value.keep(first, &mut kept));
            }
            leaving[transition.from as usize].push(plan);
        }
        let has_final = declared.states.iter().any(|state| state.is_final);
        let finals = declared.states.iter().filter(|_| has_final).map(|state| state.is_final).collect();
        let property = self.spec.properties.iter().position(|property| property.name == declared.name);
        let plan = MachinePlan {
            name: declared.name.clone(),
            property: property.map(|property| property as u32),
            finals,
            texts: declared.transitions.iter().map(|transition| transition.text.clone()).collect(),
            steps: self.model == TimeModel::Steps,
            dense: self.model == TimeModel::Dense,
            heartbeats: heartbeats(&leaving),
            repeats: self.model != TimeModel::Steps && repeats(&leaving),
            leaving,
            kept,
        };
        let node = self.machine_node(declared, plan);
        self.machines.insert(machine, Some(node));
        Ok(node)
    }

    fn machine_node(&mut self, declared: &Machine, plan: MachinePlan) -> NodeId {
        let mut operands = BTreeSet::new();
        let parts = plan.leaving.iter().flatten();
        let parts = parts.flat_map(|t| t.guard.iter().chain(t.assignments.iter().map(|(_, value)| value)));
        for part in parts.chain(&plan.kept) {
            part.for_each_register(&mut |node| {
                operands.insert(node);
            });
        }
        let operands: Box<[NodeId]> = operands.into_iter().collect();
        let variables = declared.variables.iter().map(|variable| variable.initial.clone()).collect();
        let initial = if (declared.initial as usize) < declared.states.len() { declared.initial } else { 0 };
        self.sources.add_machine(&mut self.graph, MachineSource { plan, initial, variables }, operands)
    }

    /// An expression over the data of a machine. Subexpressions without that data become registers.
    fn scalar(
        &mut self,
        id: ExprId,
        machine: MachineId,
        expr: ExprId,
        depth: usize,
    ) -> Result<Scalar, CompileError> {
        let spec = self.spec;
        let Some(node) = spec.nodes.get(expr.index()) else {
            return Err(CompileError::ForwardReference { node: id, operand: expr });
        };
        if !self.mentions(machine, expr) {
            self.ensure(id, expr)?;
            let meaning = self.done.get(expr.index()).copied().flatten();
            return Ok(match meaning {
                Some((Meaning::Truth(Truth { at, after }), _)) => {
                    Scalar::Truth([[at.certain, at.possible], [after.certain, after.possible]])
                }
                Some((Meaning::Values(ValueColumns { at, after, value_type }), _)) => {
                    Scalar::Column(value_type, [(at.node.0, at.known), (after.node.0, after.known)])
                }
                None => return Err(CompileError::ForwardReference { node: id, operand: expr }),
            });
        }
        if depth > DEEPEST {
            return Err(CompileError::Unsupported { node: expr, what: error::MACHINE_DEPTH });
        }
        let mut part = |x: &ExprId| self.scalar(id, machine, *x, depth + 1);
        Ok(match node {
            Expr::MachineVariable(_, variable, _) => Scalar::Variable(*variable),
            Expr::Unary(op, x) => Scalar::Unary(*op, Box::new(part(x)?)),
            Expr::Binary(op, x, y) => Scalar::Binary(*op, Box::new([part(x)?, part(y)?])),
            Expr::ToFloat(x) => Scalar::ToFloat(Box::new(part(x)?)),
            Expr::Compare(op, x, y) => Scalar::Compare(*op, Box::new([part(x)?, part(y)?])),
            Expr::StartsWith(x, y) => Scalar::StartsWith(Box::new([part(x)?, part(y)?])),
            Expr::Call(function, x, y) => match (function.kernel(), y) {
                (Kernel::Matches, Some(y)) => {
                    let unsupported = CompileError::Unsupported { node: expr, what: error::PATTERN };
                    let Some(Expr::Literal(Value::String(text))) = spec.nodes.get(y.index()) else {
                        return Err(unsupported);
                    };
                    let pattern = pattern(text).map_err(|_| unsupported)?;
                    Scalar::Matches(pattern, Box::new(part(x)?))
                }
                (_, Some(y)) => Scalar::Call(*function, Box::new([part(x)?, part(y)?])),
                (_, None) => Scalar::Call(*function, Box::new([part(x)?])),
            },
            Expr::If(c, x, y) => Scalar::If(Box::new([part(c)?, part(x)?, part(y)?])),
            Expr::Not(x) => Scalar::Not(Box::new(part(x)?)),
            Expr::And(x, y) => Scalar::And(Box::new([part(x)?, part(y)?])),
            Expr::Or(x, y) => Scalar::Or(Box::new([part(x)?, part(y)?])),
            Expr::Definitely(x) => Scalar::Definitely(Box::new(part(x)?)),
            _ => {
                let what = error::MACHINE_OPERATOR;
                return Err(CompileError::Unsupported { node: expr, what });
            }
        })
    }

    /// Whether an expression refers to data or the state of this machine.
    fn mentions(&self, machine: MachineId, expr: ExprId) -> bool {
        self.spec.below(expr).any(|(_, node)| node.machine() == Some(machine))
    }

    /// Translates a node and its operands, unless that has been done.
    fn ensure(&mut self, id: ExprId, expr: ExprId) -> Result<(), CompileError> {
        let mut needed = BTreeSet::from([expr]);
        let mut open = vec![expr];
        while let Some(id) = open.pop() {
            let Some(node) = self.spec.nodes.get(id.index()) else { continue };
            let required_operands = self.required_operands(id, node)?;
            open.extend(
                required_operands.into_iter().filter(|operand| *operand < id && needed.insert(*operand)),
            );
        }
        for needed in needed {
            if self.done.get(needed.index()).is_some_and(Option::is_none) {
                let Some(node) = self.spec.nodes.get(needed.index()) else {
                    return Err(CompileError::ForwardReference { node: id, operand: needed });
                };
                let done = self.expr(needed, node)?;
                self.done[needed.index()] = Some(done);
            }
        }
        Ok(())
    }
}
