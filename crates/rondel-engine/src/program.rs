use std::collections::HashMap;

use rondel_event::{Field, Layout, Projection, Read, Rows, Slot, TopicId, ValueType};
use rondel_spec::{Spec, Topic};

use crate::CompileError;
use crate::delay::Delay;
use crate::graph::{Constant, FieldId, Graph, Kind, Node, NodeId, Relation};
use crate::instruction::Instruction;
use crate::schedule::{Schedule, schedule};
use crate::state::{Held, Latched, Registers, State};
use crate::texts;
use crate::translate::{FieldRead, Rails, Translation, translate};
use crate::words::Recently;

/// A specification compiled: all its properties as one list of instructions, in which equal parts
/// are computed once. Immutable; any number of [`Monitor`](crate::Monitor)s share it.
#[derive(Debug)]
pub struct Program {
    topics: Vec<Topic>,
    properties: Vec<String>,
    layout: Layout,
    projections: Vec<Projection>,
    pub(crate) instructions: Vec<Instruction>,
    /// How many instructions, at the front, compute the same for every block.
    pub(crate) constant: usize,
    pub(crate) formulas: Vec<Rails>,
    /// The instructions that keep texts for the next block, those with later columns first.
    pub(crate) keeps_text: Vec<Instruction>,
    pub(crate) ints: Vec<i64>,
    pub(crate) floats: Vec<f64>,
    /// The state before the first event.
    pub(crate) initial: State,
    /// Registers of the right size.
    pub(crate) registers: Registers,
}

impl Program {
    /// Compiles a specification.
    ///
    /// # Errors
    /// [`CompileError`] when the nodes are no specification, e.g. refer forwards or have operands of
    /// wrong types.
    pub fn compile(spec: &Spec) -> Result<Program, CompileError> {
        let Translation { graph, fields, formulas } = translate(spec)?;
        let outputs = formulas.iter().flat_map(|rails| [rails.certain.node(), rails.possible.node()]);
        let Schedule { order, constant } = schedule(&graph, outputs);
        let mut binding = Binding::new(spec.topics.len());
        binding.bind(&fields, order.iter().map(|id| &graph.nodes()[id.index()]));

        let mut assembly = Assembly {
            graph: &graph,
            slots: &binding.slots,
            place: vec![0; graph.nodes().len()],
            column: vec![0; graph.nodes().len()],
            instructions: Vec::with_capacity(order.len()),
            ints: Vec::new(),
            floats: Vec::new(),
            state: State::default(),
            registers: Registers::default(),
        };
        for &id in &order {
            assembly.assemble(id);
        }
        let place = |wire: crate::graph::Wire| wire.moved_to(NodeId(assembly.place[wire.node().index()]));
        let formulas = formulas
            .iter()
            .map(|rails| Rails { certain: place(rails.certain), possible: place(rails.possible) })
            .collect();
        let is_keeper =
            |i: &&Instruction| matches!(i, Instruction::HeldText { .. } | Instruction::LatchText { .. });
        Ok(Program {
            topics: spec.topics.clone(),
            properties: spec.properties.iter().map(|p| p.name.clone()).collect(),
            layout: binding.layout,
            projections: binding.projections,
            constant,
            formulas,
            keeps_text: assembly.instructions.iter().rev().filter(is_keeper).copied().collect(),
            instructions: assembly.instructions,
            ints: assembly.ints,
            floats: assembly.floats,
            initial: assembly.state,
            registers: assembly.registers,
        })
    }

    /// The columns that its blocks must have.
    pub fn layout(&self) -> Layout {
        self.layout
    }

    /// What a decoder must read from the messages of each topic, in the order of the topics.
    pub fn projections(&self) -> &[Projection] {
        &self.projections
    }

    /// The names of the properties, in order of declaration.
    pub fn properties(&self) -> &[String] {
        &self.properties
    }

    /// The topics, in order of declaration.
    pub fn topics(&self) -> &[Topic] {
        &self.topics
    }

    /// How many instructions are run for every block: the size of the program after sharing.
    pub fn node_count(&self) -> usize {
        self.instructions.len() - self.constant
    }
}

/// Which columns of a block the fields have.
struct Binding {
    layout: Layout,
    projections: Vec<Projection>,
    slots: HashMap<FieldId, Slot>,
}

impl Binding {
    fn new(topics: usize) -> Binding {
        Binding {
            layout: Layout { topics, ..Layout::default() },
            projections: vec![Projection::default(); topics],
            slots: HashMap::new(),
        }
    }

    /// Gives a column to every field that a node reads.
    fn bind<'a>(&mut self, fields: &[FieldRead], nodes: impl Iterator<Item = &'a Node> + Clone) {
        let mut by_place = HashMap::new();
        for node in nodes.clone() {
            if let Node::Held(_, field) | Node::HeldBool(field, _) = node {
                let read = &fields[*field as usize];
                let slot = self.slot(*field, read);
                by_place.insert((read.topic, &read.path), slot);
            }
        }
        // A field that is read has its presence beside its values.
        for node in nodes {
            if let Node::Carried(field) = node {
                let read = &fields[*field as usize];
                match by_place.get(&(read.topic, &read.path)) {
                    Some(&slot) => drop(self.slots.insert(*field, slot)),
                    None => drop(self.slot(*field, read)),
                }
            }
        }
    }

    fn slot(&mut self, id: FieldId, FieldRead { topic, path, read }: &FieldRead) -> Slot {
        if let Some(&slot) = self.slots.get(&id) {
            return slot;
        }
        let layout = &mut self.layout;
        let slot = match read {
            Read::Value(ValueType::Bool) | Read::Presence | Read::Elements(..) => {
                Slot::Bool(next(&mut layout.bools))
            }
            Read::Value(ValueType::Int | ValueType::Time | ValueType::Duration) => {
                Slot::Int(next(&mut layout.ints))
            }
            Read::Value(ValueType::Float) => Slot::Float(next(&mut layout.floats)),
            Read::Value(ValueType::String) => Slot::String(next(&mut layout.strings)),
        };
        self.projections[topic.index()].fields.push(Field { path: path.clone(), read: read.clone(), slot });
        self.slots.insert(id, slot);
        slot
    }
}

fn next(count: &mut usize) -> u32 {
    *count += 1;
    *count as u32 - 1
}

/// Nodes on their way to instructions.
struct Assembly<'a> {
    graph: &'a Graph,
    slots: &'a HashMap<FieldId, Slot>,
    /// For every node its instruction, once it has one.
    place: Vec<u32>,
    /// For every node with a column its number.
    column: Vec<u32>,
    instructions: Vec<Instruction>,
    ints: Vec<i64>,
    floats: Vec<f64>,
    state: State,
    registers: Registers,
}

/// Adds to a list and says where.
fn push<T>(list: &mut Vec<T>, value: T) -> u32 {
    list.push(value);
    list.len() as u32 - 1
}

impl Assembly<'_> {
    fn assemble(&mut self, id: NodeId) {
        let node = &self.graph.nodes()[id.index()];
        if let Some(kind) = node.kind() {
            self.column[id.index()] = match kind {
                Kind::Int => push(&mut self.registers.columns.ints, [0; _]),
                Kind::Float => push(&mut self.registers.columns.floats, [0.0; _]),
                Kind::Text => push(&mut self.registers.columns.texts, texts::UNSET),
            };
        }
        let instruction = self.instruction(node, self.column[id.index()]);
        self.place[id.index()] = push(&mut self.instructions, instruction);
        push(&mut self.registers.words, 0 as Rows);
    }

    fn instruction(&mut self, node: &Node, out: u32) -> Instruction {
        use Instruction as I;
        let Assembly { place, column, state, .. } = self;
        let wire = |wire: crate::graph::Wire| wire.moved_to(NodeId(place[wire.node().index()]));
        let column = |id: NodeId| column[id.index()];
        let source = |field: FieldId| match self.slots.get(&field) {
            Some(Slot::Bool(i) | Slot::Int(i) | Slot::Float(i) | Slot::String(i)) => *i,
            // Every field that a node reads is bound.
            None => 0,
        };
        match *node {
            Node::False => I::False,
            Node::On(TopicId(topic)) => I::On { topic },
            Node::Carried(field) => {
                I::Carried { slot: self.slots.get(&field).copied().unwrap_or(Slot::Bool(0)) }
            }
            Node::HeldBool(field, value) => {
                I::HeldBool { column: source(field), value, state: push(&mut state.bits, 0) }
            }
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
