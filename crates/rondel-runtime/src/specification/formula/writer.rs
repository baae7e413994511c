//! Writes the nodes of a formula as text.

use rondel_event::{Comparison, Path, TopicId};
use rondel_spec::{BinaryOp, Bounds, Call, Expr, ExprId, Property, Spec, UnaryOp, VariableId};

use super::text::{bound, field, path_text, topic_name, value_text};
use super::{Atom, Conjunct, DEEPEST, Pair, Word, conjuncts, elements, word};

/// The precedence of operators, from low to high.
mod level {
    pub(super) const IMPLIES: u8 = 1;
    pub(super) const OR: u8 = 2;
    pub(super) const AND: u8 = 3;
    pub(super) const SINCE: u8 = 4;
    pub(super) const PREFIX: u8 = 5;
    pub(super) const COMPARE: u8 = 6;
    pub(super) const ADD: u8 = 7;
    pub(super) const MULTIPLY: u8 = 8;
    pub(super) const NEGATE: u8 = 9;
}

/// An operator between two operands, its precedence and the least precedence of its operands.
struct Infix {
    op: &'static str,
    level: u8,
    left: u8,
    right: u8,
}

/// The operator between the operands of a node.
fn infix(node: &Expr) -> Option<Infix> {
    let infix = |op, level, left, right| Some(Infix { op, level, left, right });
    match node {
        Expr::Or(..) => infix("or", level::OR, level::OR, level::AND),
        Expr::And(..) => infix("and", level::AND, level::AND, level::SINCE),
        Expr::Compare(comparison, ..) => infix(comparison.as_str(), level::COMPARE, level::ADD, level::ADD),
        Expr::Binary(op, ..) => match op {
            BinaryOp::Add => infix("+", level::ADD, level::ADD, level::MULTIPLY),
            BinaryOp::Subtract => infix("-", level::ADD, level::ADD, level::MULTIPLY),
            BinaryOp::Multiply => infix("*", level::MULTIPLY, level::MULTIPLY, level::NEGATE),
            BinaryOp::Divide => infix("/", level::MULTIPLY, level::MULTIPLY, level::NEGATE),
            BinaryOp::Remainder => infix("%", level::MULTIPLY, level::MULTIPLY, level::NEGATE),
            BinaryOp::Min | BinaryOp::Max => None,
        },
        _ => None,
    }
}

/// Writes the text of the nodes of a property.
pub(super) struct Writer<'a> {
    spec: &'a Spec,
    property: &'a Property,
    /// The number of bytes after which nothing more is written.
    most: usize,
    /// Whether definitions below the first node are written as their names.
    named: bool,
    out: String,
}

impl<'a> Writer<'a> {
    /// A writer of a whole node, in which definitions are written out.
    pub(super) fn new(spec: &'a Spec, property: &'a Property) -> Writer<'a> {
        Writer { spec, property, most: usize::MAX, named: false, out: String::new() }
    }

    /// Writes definitions below the first node as their names.
    pub(super) fn with_names(self) -> Writer<'a> {
        Writer { named: true, ..self }
    }

    /// Writes nothing more after this number of bytes.
    pub(super) fn with_most(self, most: usize) -> Writer<'a> {
        Writer { most, ..self }
    }

    /// The written text.
    pub(super) fn into_text(self) -> String {
        self.out
    }
}

impl Writer<'_> {
    /// Writes into the text.
    pub(super) fn text(&mut self, text: &str) {
        self.out.push_str(text);
    }

    fn topic(&self, topic: TopicId) -> &str {
        topic_name(self.spec, topic)
    }

    /// Writes a node, in parentheses where it binds looser than `least`.
    pub(super) fn node(&mut self, id: ExprId, least: u8, depth: u32) {
        if self.out.len() > self.most {
            return;
        }
        let Some(node) = self.spec.nodes.get(id.index()).filter(|_| depth < DEEPEST) else {
            return self.text("…");
        };
        if let Some(name) = self.spec.places.definition(id).filter(|_| self.named && depth > 0) {
            return self.text(name);
        }
        let below = depth + 1;
        if let Some(Word { word, operand }) = word(self.spec, id) {
            return self.call(word, &[operand], below);
        }
        if let Some(Call { word, operands, lasting }) = self.spec.places.call(id) {
            self.call(word, operands, below);
            if let Some(lasting) = lasting {
                let lasting = bound(*lasting, self.property.time);
                self.text(&format!(" for {lasting}"));
            }
            return;
        }
        if let Expr::And(..) = node
            && let Some(conjuncts) = conjuncts(self.spec, id)
        {
            return self.conjunction(&conjuncts, least, below);
        }
        if let Expr::Or(a, b) = node
            && let Expr::Not(a) = self.spec.nodes[a.index()]
        {
            return self.around(level::IMPLIES, least, |w| {
                w.node(a, level::OR, below);
                w.text(" -> ");
                w.node(*b, level::IMPLIES, below);
            });
        }
        let operands: Vec<ExprId> = node.operands().collect();
        if let (Some(Infix { op, level, left, right }), [a, b]) = (infix(node), &operands[..]) {
            return self.around(level, least, |w| {
                w.node(*a, left, below);
                w.text(&format!(" {op} "));
                w.node(*b, right, below);
            });
        }
        match (self.operator(node), &operands[..]) {
            (Some(operator), [a]) => self.around(level::PREFIX, least, |w| {
                w.text(&format!("{operator} "));
                w.node(*a, level::PREFIX, below);
            }),
            (Some(operator), [a, b]) => self.around(level::SINCE, least, |w| {
                w.node(*a, level::PREFIX, below);
                w.text(&format!(" {operator} "));
                w.node(*b, level::PREFIX, below);
            }),
            _ => self.other(node, id, least, below),
        }
    }

    /// Writes a conjunction with atoms.
    fn conjunction(&mut self, conjuncts: &[Conjunct<'_>], least: u8, depth: u32) {
        let (level, least) = if conjuncts.len() > 1 { (level::AND, least) } else { (0, 0) };
        self.around(level, least, |w| {
            for (i, conjunct) in conjuncts.iter().enumerate() {
                w.text(if i > 0 { " and " } else { "" });
                match conjunct {
                    Conjunct::Atom(atom) => w.atom(atom, depth),
                    Conjunct::Formula(id) => w.node(*id, level::SINCE, depth),
                }
            }
        });
    }

    /// The operator before the operand of a node, or between its two operands.
    fn operator(&self, node: &Expr) -> Option<String> {
        let name = node.name();
        Some(match node {
            Expr::Not(_) | Expr::Previously(_) | Expr::Next(_) => name.to_owned(),
            Expr::Exists(variable, _) | Expr::ForAll(variable, _) => {
                format!("{name} {}.", self.variable(*variable))
            }
            _ => format!("{name}{}", self.bounds(node.temporal()?.bounds)),
        })
    }

    /// Writes a node that is neither a word nor an operator between or before operands.
    fn other(&mut self, node: &Expr, id: ExprId, least: u8, below: u32) {
        let operands: Vec<ExprId> = node.operands().collect();
        match node {
            Expr::If(condition, a, b) if a == b && self.is_full(*condition) => self.window(*a, true, below),
            Expr::If(condition, a, b) => self.around(level::IMPLIES, least, |w| {
                for (word, id) in [("if ", condition), (" then ", a), (" else ", b)] {
                    w.text(word);
                    w.node(*id, level::IMPLIES, below);
                }
            }),
            Expr::Unary(UnaryOp::Negate, a) => self.around(level::NEGATE, least, |w| {
                w.text("-");
                w.node(*a, level::NEGATE, below);
            }),
            // Conversions of types and of logics have no text.
            Expr::ToFloat(a) | Expr::Definitely(a) => self.node(*a, least, below),
            Expr::Window { .. } => self.window(id, false, below),
            // An ambiguity has no text in the language.
            Expr::Ambiguous(_) => self.around(level::IMPLIES, least, |w| {
                let words = w.leaf(node, id);
                w.text(&words);
            }),
            leaf if operands.is_empty() => {
                let leaf = self.leaf(leaf, id);
                self.text(&leaf);
            }
            call => self.call(call.name(), &operands, below),
        }
    }

    /// Writes the pairs of an atom.
    fn atom(&mut self, atom: &Atom<'_>, depth: u32) {
        let topic = format!("{}{{", self.topic(atom.topic));
        self.text(&topic);
        for (i, pair) in atom.pairs.iter().enumerate() {
            self.text(if i > 0 { ", " } else { "" });
            let (path, condition) = match pair {
                Pair::Bind(path, variable) => {
                    let pair = format!("{}: {}", path_text(path), self.variable(*variable));
                    self.text(&pair);
                    continue;
                }
                Pair::Where(path, condition) => (path_text(path), &self.spec.nodes[condition.index()]),
            };
            match condition {
                Expr::Compare(comparison, _, value) => {
                    // Behind a colon a name would be bound.
                    let is_literal = matches!(self.spec.nodes[value.index()], Expr::Literal(_));
                    match comparison {
                        Comparison::Equal if is_literal => self.text(&format!("{path}: ")),
                        _ => self.text(&format!("{path} {} ", comparison.as_str())),
                    }
                    self.node(*value, level::ADD, depth);
                }
                Expr::Not(_) => self.text(&format!("not {path}")),
                _ => self.text(&path),
            }
        }
        self.text("}");
    }

    /// Whether a condition is that of `over full`: known once a window is full.
    fn is_full(&self, condition: ExprId) -> bool {
        match &self.spec.nodes[condition.index()] {
            Expr::Or(full, unknown) => {
                matches!(self.spec.nodes[full.index()], Expr::Once(..)) && self.spec.is_unknown(*unknown)
            }
            _ => false,
        }
    }

    /// Writes a measurement over a window.
    fn window(&mut self, id: ExprId, full: bool, depth: u32) {
        let node = &self.spec.nodes[id.index()];
        let Expr::Window { aggregate, over, operand, .. } = node else { return self.node(id, 0, depth) };
        let name = aggregate.name();
        match (operand, aggregate.percentage()) {
            (Some(operand), Some(percentage)) => {
                self.text("percentile(");
                self.node(*operand, 0, depth);
                self.text(&format!(", {percentage})"));
            }
            (Some(operand), None) => self.call(name, &[*operand], depth),
            (None, _) => self.samples(name, node),
        }
        let full = if full { "full " } else { "" };
        let over = bound(*over, self.property.time);
        self.text(&format!(" over {full}{over}"));
    }

    fn samples(&mut self, name: &str, window: &Expr) {
        if let Expr::Window { topics, .. } = window {
            let topics: Vec<&str> = topics.iter().map(|topic| self.topic(*topic)).collect();
            self.text(&format!("{name}({})", topics.join(", ")));
        }
    }

    fn leaf(&self, node: &Expr, id: ExprId) -> String {
        let field = |topic: &TopicId, path: &Path| field(self.spec, *topic, path);
        let name = node.name();
        match node {
            Expr::Literal(value) => value_text(value),
            Expr::Field { topic, path, .. } => field(topic, path),
            Expr::Carried { topic, path } if self.spec.events_of(*topic).is_some() => field(topic, path),
            Expr::Elements { topic, path, quantifier, conditions } => {
                let element = self.spec.places.element(id);
                elements(self.spec, *topic, path, *quantifier, element, conditions)
            }
            Expr::On(topic) if self.spec.events_of(*topic).is_some() => {
                format!("an event of {}", self.topic(*topic))
            }
            Expr::Chain(chain, _) => {
                let chain = self.spec.chains.get(chain.0 as usize).map_or("?", |chain| &chain.name);
                format!("{name}({chain})")
            }
            Expr::InState(machine, states) => match self.spec.machines.get(machine.0 as usize) {
                Some(machine) => {
                    let name = |i: &u32| machine.states.get(*i as usize).map_or("?", |s| &s.name);
                    let states: Vec<&str> = states.iter().map(name).collect();
                    format!("in({}, {})", machine.name, states.join(", "))
                }
                None => "?".to_owned(),
            },
            Expr::MachineVariable(machine, variable, _) => {
                let machine = self.spec.machines.get(machine.0 as usize);
                let variable = machine.and_then(|m| m.variables.get(*variable as usize));
                variable.map_or_else(|| "?".to_owned(), |variable| variable.name.clone())
            }
            Expr::Key(parameter, _) => {
                let slice = self.property.slice.and_then(|slice| self.spec.slices.get(slice.0 as usize));
                let key = slice.and_then(|slice| slice.keys.get(*parameter as usize));
                key.map_or_else(|| format!("key{parameter}"), |key| key.name.clone())
            }
            Expr::Variable(variable, _) => self.variable(*variable),
            Expr::Bind { topic, fields } => {
                let field = |(path, variable, _): &(Path, VariableId, _)| {
                    format!("{}: {}", path_text(path), self.variable(*variable))
                };
                let fields: Vec<String> = fields.iter().map(field).collect();
                format!("{}{{{}}}", self.topic(*topic), fields.join(", "))
            }
            Expr::Ambiguous(machine) => {
                let name = self.spec.machines.get(machine.0 as usize).map_or("?", |machine| &machine.name);
                format!("{name} is ambiguous")
            }
            _ => match (node.field(), node.topic()) {
                (Some((topic, path, _)), _) => format!("{name}({})", field(&topic, path)),
                (None, Some(topic)) => format!("{name}({})", self.topic(topic)),
                // A node without a text in the language.
                (None, None) => self.spec.print(id).to_string(),
            },
        }
    }

    fn call(&mut self, name: &str, operands: &[ExprId], depth: u32) {
        self.text(&format!("{name}("));
        for (i, operand) in operands.iter().enumerate() {
            self.text(if i > 0 { ", " } else { "" });
            self.node(*operand, 0, depth);
        }
        self.text(")");
    }

    fn around(&mut self, level: u8, least: u8, inner: impl FnOnce(&mut Self)) {
        let parentheses = level < least;
        self.text(if parentheses { "(" } else { "" });
        inner(self);
        self.text(if parentheses { ")" } else { "" });
    }

    /// The name of a variable as it was written, or one by its number.
    fn variable(&self, variable: VariableId) -> String {
        let written = self.spec.places.variable(variable);
        written.map_or_else(|| format!("x{}", variable.0), str::to_owned)
    }

    fn bounds(&self, bounds: Bounds) -> String {
        let text = |b| bound(b, self.property.time);
        match bounds {
            Bounds::ALL => String::new(),
            Bounds { lower, upper: None } => format!("[{},]", text(lower)),
            Bounds { lower, upper: Some(upper) } => format!("[{}, {}]", text(lower), text(upper)),
        }
    }
}
