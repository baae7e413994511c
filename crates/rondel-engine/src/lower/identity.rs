//! Identities of nodes: stable hashes of the computation of a node, and thus of its state. They do not depend
//! on the numbers of nodes, fields and topics, so that equal nodes of two programs have equal identities.

use std::hash::{Hash, Hasher};

use rondel_event::{StableHasher, TopicId};
use rondel_spec::{BinaryOp, ChainId, MachineId, Spec};

use crate::ir::graph::Graph;
use crate::ir::node::{ComparisonKind, Node};
use crate::ir::wire::{Halves, NodeId, Wire};
use crate::linear::Form;
use crate::lower::translate::{FieldRead, Sources};
use crate::relation::plan::RelationPlan;

/// A stable hash: the same in every run, so that it can be saved.
pub(crate) fn hash(value: impl Hash) -> u64 {
    let mut hasher = StableHasher::default();
    value.hash(&mut hasher);
    hasher.finish()
}

/// The identity of a topic: its name.
pub(crate) fn of_topic(spec: &Spec, topic: TopicId) -> u64 {
    hash(spec.topics.get(topic.index()).map(|topic| &topic.name))
}

/// The identity of a field: its topic, path and kind of read.
pub(crate) fn of_field(spec: &Spec, FieldRead { topic, path, read }: &FieldRead) -> u64 {
    hash((of_topic(spec, *topic), path, read))
}

/// The identities of linear forms.
pub(crate) fn of_lines(lines: &[Form], fields: &[u64]) -> Vec<u64> {
    let of = |line: &Form| {
        let mut terms: Vec<(u64, u64)> = line
            .terms
            .iter()
            .map(|(field, x)| (fields.get(*field as usize).copied().unwrap_or(0), x.to_bits()))
            .collect();
        terms.sort_unstable();
        hash((line.constant.to_bits(), terms))
    };
    lines.iter().map(of).collect()
}

/// The tables that nodes of a graph refer to by number.
pub(crate) struct Names<'a> {
    pub(crate) spec: &'a Spec,
    /// The fields.
    pub(crate) fields: &'a [FieldRead],
    pub(crate) sources: &'a Sources,
    /// The identities of the linear forms.
    pub(crate) lines: &'a [u64],
}

/// The identity of each node of a graph.
pub(crate) fn identities(graph: &Graph, names: &Names<'_>) -> Vec<u64> {
    let fields: Vec<u64> = names.fields.iter().map(|field| of_field(names.spec, field)).collect();
    let mut all: Vec<u64> = Vec::with_capacity(graph.nodes().len());
    for node in graph.nodes() {
        let own = Identifier { names, fields: &fields, nodes: &all }.node(node);
        all.push(own);
    }
    all
}

struct Identifier<'a> {
    names: &'a Names<'a>,
    fields: &'a [u64],
    nodes: &'a [u64],
}

impl Identifier<'_> {
    fn id(&self, node: NodeId) -> u64 {
        self.nodes.get(node.index()).copied().unwrap_or(0)
    }

    fn wire(&self, wire: Wire) -> (u64, bool) {
        (self.id(wire.node()), wire.flip() != 0)
    }

    fn halves(&self, halves: Halves) -> [(u64, bool); 2] {
        [self.wire(halves.at), self.wire(halves.after)]
    }

    fn field(&self, field: u32) -> u64 {
        self.fields.get(field as usize).copied().unwrap_or(0)
    }

    /// The identities of operands in canonical order; for nodes that number their operands arbitrarily.
    fn unordered(&self, operands: &[NodeId]) -> Vec<u64> {
        let mut all: Vec<u64> = operands.iter().map(|operand| self.id(*operand)).collect();
        all.sort_unstable();
        all
    }

    #[expect(clippy::too_many_lines, reason = "one arm for each node")]
    fn node(&self, node: &Node) -> u64 {
        let sort = node.sort();
        let Names { spec, sources, lines, .. } = self.names;
        match *node {
            Node::False | Node::SameTime | Node::Time | Node::Latency => hash(sort),
            Node::On(topic) => hash((sort, of_topic(spec, topic))),
            Node::Carried(field) => hash((sort, self.field(field))),
            Node::HeldBool(field, value) => hash((sort, self.field(field), value)),
            Node::Held(kind, field) => hash((sort, kind, self.field(field))),
            Node::Line { line, sign, half } => hash((sort, lines.get(line as usize), sign, half)),
            Node::And(a, b) => {
                let mut both = [self.wire(a), self.wire(b)];
                both.sort_unstable();
                hash((sort, both))
            }
            Node::Since(p, q) => hash((sort, self.wire(p), self.wire(q))),
            Node::Shift(x, by) => hash((sort, self.wire(x), by)),
            Node::Recently(x, span) => hash((sort, self.wire(x), span)),
            Node::Delay { of, forget, by } => hash((sort, self.wire(of), self.wire(forget), by)),
            Node::TimedRecently { q, span, open } => hash((sort, self.halves(q), span, open)),
            Node::TimedSince { p, q, lower, upper } => {
                hash((sort, self.halves(p), self.halves(q), lower, upper))
            }
            Node::Lasting { from, known, span, open } => {
                hash((sort, self.id(from), self.wire(known), span, open))
            }
            Node::Chain(chain, column) => hash((sort, spec.chain_identity(ChainId(chain)), column)),
            Node::After(of) | Node::AfterFloat(of) | Node::ByValuePossibly(of) | Node::MachineAfter(of) => {
                hash((sort, self.id(of)))
            }
            Node::Compare(relation, a, b) => {
                let mut both = [self.id(a), self.id(b)];
                if matches!(
                    relation,
                    ComparisonKind::IntEqual | ComparisonKind::FloatEqual | ComparisonKind::TextEqual
                ) {
                    both.sort_unstable();
                }
                hash((sort, relation, both))
            }
            Node::Constant(ref constant) => hash((sort, constant)),
            Node::Key(kind, key) => hash((sort, kind, key)),
            Node::KeyBool(key, value) => hash((sort, key, value)),
            Node::Outer(number) => hash((sort, number)),
            Node::ToFloat(x) => hash((sort, self.id(x))),
            Node::Unary(kind, op, x) => hash((sort, kind, op, self.id(x))),
            Node::Binary(kind, op, a, b) => {
                let mut both = [self.id(a), self.id(b)];
                if matches!(op, BinaryOp::Add | BinaryOp::Multiply | BinaryOp::Min | BinaryOp::Max) {
                    both.sort_unstable();
                }
                hash((sort, kind, op, both))
            }
            Node::Call(function, x, y) => hash((sort, function, self.id(x), y.map(|y| self.id(y)))),
            Node::Select(kind, condition, x, y) => {
                hash((sort, kind, self.wire(condition), self.id(x), self.id(y)))
            }
            Node::Machine { machine, ref operands } => {
                let name = &sources.machine(machine).plan.name;
                let at = spec.machines.iter().position(|machine| machine.name == *name);
                let own = at.map(|at| spec.machine_identity(MachineId(at as u32)));
                hash((sort, own, self.unordered(operands)))
            }
            Node::MachineValue { machine, variable, half, kind } => {
                hash((sort, self.id(machine), variable, half, kind))
            }
            Node::MachineTruth { machine, variable, half, value } => {
                hash((sort, self.id(machine), variable, half, value))
            }
            Node::Quantified { relation, ref operands, ref fields } => {
                let relation = sources.relation(relation);
                let fields: Vec<u64> = fields.iter().map(|field| self.field(*field)).collect();
                let own = (spec.formula_identity(relation.node), relation.model, shape(&relation.plan));
                hash((sort, own, self.unordered(operands), fields))
            }
            Node::ByValue { number, ref fields, .. } => {
                let source = sources.by_value(number);
                let fields: Vec<u64> = fields.iter().map(|field| self.field(*field)).collect();
                let topics: Vec<u64> = source.topics.iter().map(|topic| of_topic(spec, *topic)).collect();
                // In their own order: instances refer to inputs by number.
                let inputs: Vec<_> = source.inputs.iter().map(|wire| self.wire(*wire)).collect();
                let own = (source.section.layout(), &source.types, topics, source.positive, source.model);
                hash((sort, own, inputs, fields))
            }
            Node::Latch(kind, x, clock) => hash((sort, kind, self.id(x), self.wire(clock))),
            Node::Sampled(x, clock) => hash((sort, self.id(x), self.wire(clock))),
            Node::Window { measure, kind, x, samples, known, over, timed } => {
                let wires = [samples, known].map(|wire| self.wire(wire));
                hash((sort, measure, kind, self.id(x), wires, over, timed))
            }
            Node::Margin(kind, x, y) => hash((sort, kind, self.id(x), self.id(y))),
            Node::RobustOnce { x, bounds } => hash((sort, self.id(x), bounds)),
            Node::RobustSince { p, q, bounds } => hash((sort, self.id(p), self.id(q), bounds)),
            Node::RobustDense { p, q, bounds } => {
                hash((sort, p.map(|p| self.id(p)), q.map(|q| self.id(q)), bounds))
            }
        }
    }
}

/// A hash of the layout of a plan's state: its division into parts. The numbers of variables, topics and
/// nodes are left out, as they differ between specifications.
fn shape(plan: &RelationPlan) -> u64 {
    let mut hasher = StableHasher::default();
    for part in &plan.parts {
        let own = (&part.op, &part.is_text, part.lasts, part.is_kept, &part.indexes, part.vague);
        without_addresses(&format!("{own:?}")).hash(&mut hasher);
    }
    (format!("{:?}", plan.roots), plan.negated, plan.truths.len(), plan.values.len()).hash(&mut hasher);
    let obligation = plan.obligation.as_ref().map(|obligation| format!("{:?}", obligation.formula));
    obligation.map(|formula| without_addresses(&formula)).hash(&mut hasher);
    hasher.finish()
}

/// A debug text without addresses of functions, which change with every run.
fn without_addresses(text: &str) -> String {
    let mut parts = text.split("0x");
    let first = parts.next().unwrap_or_default().to_owned();
    parts.fold(first, |out, part| out + part.trim_start_matches(|c: char| c.is_ascii_hexdigit()))
}
