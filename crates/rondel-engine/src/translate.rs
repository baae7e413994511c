//! From the nodes of a specification to the graph: types become kinds of columns, Kleene's three
//! values two rails, and the operators of the language the few of the graph.

use std::collections::HashMap;

use rondel_event::{Comparison, Path, Read, TopicId, Value, ValueType};
use rondel_spec::{BinaryOp, Bounds, Expr, ExprId, Spec, UnaryOp};

use crate::CompileError;
use crate::graph::{Constant, FieldId, Graph, Kind, Node, NodeId, Relation, Wire};

/// A specification as a graph.
pub(crate) struct Translation {
    pub(crate) graph: Graph,
    /// What the graph reads from messages. Not all of it need be used.
    pub(crate) fields: Vec<FieldRead>,
    /// The formula of every property.
    pub(crate) formulas: Vec<Rails>,
}

/// Something read from the messages of a topic.
pub(crate) struct FieldRead {
    pub(crate) topic: TopicId,
    pub(crate) path: Path,
    pub(crate) read: Read,
}

/// A three-valued truth: where it is certainly true, and where possibly. The two are equal if it is
/// never unknown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Rails {
    pub(crate) certain: Wire,
    pub(crate) possible: Wire,
}

impl Rails {
    fn both(wire: Wire) -> Rails {
        Rails { certain: wire, possible: wire }
    }

    fn not(self) -> Rails {
        Rails { certain: !self.possible, possible: !self.certain }
    }
}

/// What a node of the specification has become.
#[derive(Clone, Copy)]
enum Meaning {
    Truth(Rails),
    /// A column, and where its values are known.
    Values {
        column: NodeId,
        known: Wire,
        value_type: ValueType,
    },
}

impl Meaning {
    fn value_type(self) -> ValueType {
        match self {
            Meaning::Truth(_) => ValueType::Bool,
            Meaning::Values { value_type, .. } => value_type,
        }
    }
}

/// A set of topics that a node mentions: an index into the table of sets. Set 0 is empty.
type SetId = usize;

struct Translator<'a> {
    spec: &'a Spec,
    graph: Graph,
    fields: Vec<FieldRead>,
    fields_at: HashMap<(TopicId, Path), Vec<FieldId>>,
    done: Vec<(Meaning, SetId)>,
    sets: Vec<Vec<TopicId>>,
    set_index: HashMap<Vec<TopicId>, SetId>,
    unions: HashMap<(SetId, SetId), SetId>,
}

pub(crate) fn translate(spec: &Spec) -> Result<Translation, CompileError> {
    let mut translator = Translator {
        spec,
        graph: Graph::new(),
        fields: Vec::new(),
        fields_at: HashMap::new(),
        done: Vec::with_capacity(spec.nodes.len()),
        sets: vec![Vec::new()],
        set_index: HashMap::from([(Vec::new(), 0)]),
        unions: HashMap::new(),
    };
    for (i, expr) in spec.nodes.iter().enumerate() {
        let done = translator.expr(ExprId(i as u32), expr)?;
        translator.done.push(done);
    }
    let mut formulas = Vec::with_capacity(spec.properties.len());
    for property in &spec.properties {
        let (name, formula) = (&property.name, property.formula);
        match translator.done.get(formula.index()) {
            Some((Meaning::Truth(rails), _)) => formulas.push(*rails),
            Some((Meaning::Values { value_type, .. }, _)) => {
                return Err(CompileError::NotAFormula { property: name.clone(), found: *value_type });
            }
            None => return Err(CompileError::UnknownFormula { property: name.clone(), formula }),
        }
    }
    if translator.graph.has_overflowed() {
        return Err(CompileError::TooLarge { limit: Graph::LIMIT });
    }
    Ok(Translation { graph: translator.graph, fields: translator.fields, formulas })
}

impl Translator<'_> {
    fn expr(&mut self, id: ExprId, expr: &Expr) -> Result<(Meaning, SetId), CompileError> {
        let operand = Operands { id, done: &self.done };
        let both = |translator: &mut Self, x: ExprId, y: ExprId| {
            translator.union(translator.done[x.index()].1, translator.done[y.index()].1)
        };
        Ok(match expr {
            Expr::Literal(value) => (self.literal(value), 0),
            Expr::Field { topic, path, value_type } => {
                let set = self.topic_set(id, *topic)?;
                let field = self.field(*topic, path, Read::Value(*value_type));
                (self.held(field, *value_type), set)
            }
            Expr::Elements { topic, path, quantifier, conditions } => {
                let set = self.topic_set(id, *topic)?;
                let field = self.field(*topic, path, Read::Elements(*quantifier, conditions.clone()));
                (self.held(field, ValueType::Bool), set)
            }
            Expr::Carried { topic, path } => {
                let set = self.topic_set(id, *topic)?;
                let field = self.field(*topic, path, Read::Presence);
                (Meaning::Truth(Rails::both(self.graph.wire(Node::Carried(field)))), set)
            }
            Expr::On(topic) => {
                let set = self.topic_set(id, *topic)?;
                (Meaning::Truth(Rails::both(self.clock(set))), set)
            }
            Expr::ToFloat(x) => {
                let (column, known) = operand.values(*x, &[ValueType::Int], "int")?;
                let column = self.graph.add(Node::ToFloat(column));
                (Meaning::Values { column, known, value_type: ValueType::Float }, self.done[x.index()].1)
            }
            Expr::Unary(op, x) => {
                let (column, known) = operand.number(*x)?;
                let value_type = operand.value_type(*x)?;
                (self.unary(*op, value_type, column, known), self.done[x.index()].1)
            }
            Expr::Binary(op, x, y) => {
                let (left, right) = (operand.number(*x)?, operand.number(*y)?);
                let value_type = operand.same_type(*x, *y)?;
                (self.binary(*op, value_type, left, right), both(self, *x, *y))
            }
            Expr::Compare(comparison, x, y) => {
                let value_type = operand.same_type(*x, *y)?;
                let equality = matches!(comparison, Comparison::Equal | Comparison::NotEqual);
                if !equality && matches!(value_type, ValueType::Bool | ValueType::String) {
                    let expected = "a number or time";
                    return Err(CompileError::WrongType { node: id, expected, found: value_type });
                }
                let (left, right) = (operand.meaning(*x)?, operand.meaning(*y)?);
                (Meaning::Truth(self.compare(*comparison, left, right)), both(self, *x, *y))
            }
            Expr::StartsWith(x, y) => {
                let text = &[ValueType::String];
                let (left, right) =
                    (operand.values(*x, text, "string")?, operand.values(*y, text, "string")?);
                let truth = self.relation(Relation::TextStartsWith, false, left, right);
                (Meaning::Truth(truth), both(self, *x, *y))
            }
            Expr::If(condition, x, y) => {
                let rails = operand.truth(*condition)?;
                operand.same_type(*x, *y)?;
                let (left, right) = (operand.meaning(*x)?, operand.meaning(*y)?);
                let branches = both(self, *x, *y);
                let set = self.union(self.done[condition.index()].1, branches);
                (self.choose(rails, left, right), set)
            }
            Expr::Prev(x) => {
                let meaning = operand.meaning(*x)?;
                let set = self.done[x.index()].1;
                (self.prev(meaning, set), set)
            }
            Expr::Not(x) => (Meaning::Truth(operand.truth(*x)?.not()), self.done[x.index()].1),
            Expr::And(x, y) => {
                let (left, right) = (operand.truth(*x)?, operand.truth(*y)?);
                let truth = self.by_rail([left, right], |graph, [a, b]| graph.and(a, b));
                (Meaning::Truth(truth), both(self, *x, *y))
            }
            Expr::Or(x, y) => {
                let (left, right) = (operand.truth(*x)?, operand.truth(*y)?);
                let truth = self.by_rail([left, right], |graph, [a, b]| graph.or(a, b));
                (Meaning::Truth(truth), both(self, *x, *y))
            }
            Expr::Definitely(x) => {
                (Meaning::Truth(Rails::both(operand.truth(*x)?.certain)), self.done[x.index()].1)
            }
            Expr::Previously(x) => {
                let rails = operand.truth(*x)?;
                let truth = self.by_rail([rails], |graph, [a]| graph.previously(a));
                (Meaning::Truth(truth), self.done[x.index()].1)
            }
            Expr::Once(bounds, x) => {
                let rails = operand.truth(*x)?;
                (Meaning::Truth(self.once(*bounds, rails)), self.done[x.index()].1)
            }
            Expr::Historically(bounds, x) => {
                let rails = operand.truth(*x)?.not();
                (Meaning::Truth(self.once(*bounds, rails).not()), self.done[x.index()].1)
            }
            Expr::Since(Bounds { lower, upper }, x, y) => {
                let (left, right) = (operand.truth(*x)?, operand.truth(*y)?);
                let truth =
                    self.by_rail([left, right], |graph, [p, q]| graph.bounded_since(p, q, *lower, *upper));
                (Meaning::Truth(truth), both(self, *x, *y))
            }
            _ => return Err(CompileError::Unsupported { node: id, what: "this operator" }),
        })
    }

    /// A monotone operator: on each rail alone, and only once if there is but one.
    fn by_rail<const N: usize>(
        &mut self,
        operands: [Rails; N],
        mut operator: impl FnMut(&mut Graph, [Wire; N]) -> Wire,
    ) -> Rails {
        let certain = operator(&mut self.graph, operands.map(|rails| rails.certain));
        let possible = operator(&mut self.graph, operands.map(|rails| rails.possible));
        Rails { certain, possible }
    }

    fn once(&mut self, Bounds { lower, upper }: Bounds, x: Rails) -> Rails {
        self.by_rail([x], |graph, [q]| graph.bounded_since(Wire::TRUE, q, lower, upper))
    }

    fn literal(&mut self, value: &Value) -> Meaning {
        let constant = match value {
            Value::Bool(true) => return Meaning::Truth(Rails::both(Wire::TRUE)),
            Value::Bool(false) => return Meaning::Truth(Rails::both(Wire::FALSE)),
            Value::Int(x) | Value::Time(x) | Value::Duration(x) => Constant::Int(*x),
            Value::Float(x) => Constant::Float(x.to_bits()),
            Value::String(x) => Constant::Text(x.clone()),
        };
        let column = self.graph.add(Node::Constant(constant));
        Meaning::Values { column, known: Wire::TRUE, value_type: value.value_type() }
    }

    fn held(&mut self, field: FieldId, value_type: ValueType) -> Meaning {
        let kind = match value_type {
            ValueType::Bool => {
                let certain = self.graph.wire(Node::HeldBool(field, true));
                let impossible = self.graph.wire(Node::HeldBool(field, false));
                return Meaning::Truth(Rails { certain, possible: !impossible });
            }
            ValueType::Int | ValueType::Time | ValueType::Duration => Kind::Int,
            ValueType::Float => Kind::Float,
            ValueType::String => Kind::Text,
        };
        let column = self.graph.add(Node::Held(kind, field));
        Meaning::Values { column, known: Wire::of(column), value_type }
    }

    fn unary(&mut self, op: UnaryOp, value_type: ValueType, x: NodeId, known: Wire) -> Meaning {
        let kind = if value_type == ValueType::Float { Kind::Float } else { Kind::Int };
        let column = self.graph.add(Node::Unary(kind, op, x));
        let known = self.known_result(kind, column, known);
        Meaning::Values { column, known, value_type }
    }

    fn binary(
        &mut self,
        op: BinaryOp,
        value_type: ValueType,
        (x, known_x): (NodeId, Wire),
        (y, known_y): (NodeId, Wire),
    ) -> Meaning {
        let kind = if value_type == ValueType::Float { Kind::Float } else { Kind::Int };
        let commutes = matches!(op, BinaryOp::Add | BinaryOp::Multiply | BinaryOp::Min | BinaryOp::Max);
        let (x, y) = if commutes && y < x { (y, x) } else { (x, y) };
        let column = self.graph.add(Node::Binary(kind, op, x, y));
        let known = self.graph.and(known_x, known_y);
        let known = self.known_result(kind, column, known);
        Meaning::Values { column, known, value_type }
    }

    /// Arithmetic on integers can fail; its word says where it did not.
    fn known_result(&mut self, kind: Kind, column: NodeId, operands: Wire) -> Wire {
        match kind {
            Kind::Int => self.graph.and(operands, Wire::of(column)),
            Kind::Float | Kind::Text => operands,
        }
    }

    fn compare(&mut self, comparison: Comparison, left: Meaning, right: Meaning) -> Rails {
        let (x, y, value_type) = match (left, right) {
            (
                Meaning::Values { column: x, known: known_x, value_type },
                Meaning::Values { column: y, known: known_y, .. },
            ) => ((x, known_x), (y, known_y), value_type),
            (Meaning::Truth(x), Meaning::Truth(y)) => return self.compare_truths(comparison, x, y),
            // Excluded by the check of types.
            _ => return Rails::both(Wire::FALSE),
        };
        let (equal, less) = match value_type {
            ValueType::Float => (Relation::FloatEqual, Relation::FloatLess),
            ValueType::String => (Relation::TextEqual, Relation::TextEqual),
            _ => (Relation::IntEqual, Relation::IntLess),
        };
        let (x, y) = match comparison {
            Comparison::Equal | Comparison::NotEqual if y.0 < x.0 => (y, x),
            Comparison::Greater | Comparison::GreaterOrEqual => (y, x),
            _ => (x, y),
        };
        match comparison {
            Comparison::Equal => self.relation(equal, false, x, y),
            Comparison::NotEqual => self.relation(equal, true, x, y),
            Comparison::Less | Comparison::Greater => self.relation(less, false, x, y),
            Comparison::LessOrEqual | Comparison::GreaterOrEqual if value_type == ValueType::Float => {
                self.relation(Relation::FloatLessOrEqual, false, x, y)
            }
            Comparison::LessOrEqual | Comparison::GreaterOrEqual => self.relation(less, true, y, x),
        }
    }

    /// A relation or its complement, unknown where an operand is.
    fn relation(
        &mut self,
        relation: Relation,
        complement: bool,
        (x, known_x): (NodeId, Wire),
        (y, known_y): (NodeId, Wire),
    ) -> Rails {
        let holds = self.graph.wire(Node::Compare(relation, x, y));
        let holds = if complement { !holds } else { holds };
        let known = self.graph.and(known_x, known_y);
        self.truth_where_known(holds, known)
    }

    fn truth_where_known(&mut self, holds: Wire, known: Wire) -> Rails {
        let certain = self.graph.and(holds, known);
        let possible = self.graph.or(holds, !known);
        Rails { certain, possible }
    }

    fn compare_truths(&mut self, comparison: Comparison, x: Rails, y: Rails) -> Rails {
        let graph = &mut self.graph;
        let both_true = graph.and(x.certain, y.certain);
        let both_false = graph.and(!x.possible, !y.possible);
        let equal = graph.or(both_true, both_false);
        if x.certain == x.possible && y.certain == y.possible {
            let truth = Rails::both(equal);
            return if comparison == Comparison::Equal { truth } else { truth.not() };
        }
        let only_x = graph.and(x.certain, !y.possible);
        let only_y = graph.and(!x.possible, y.certain);
        let unequal = graph.or(only_x, only_y);
        let truth = Rails { certain: equal, possible: !unequal };
        if comparison == Comparison::Equal { truth } else { truth.not() }
    }

    /// `if condition then x else y`.
    fn choose(&mut self, condition: Rails, x: Meaning, y: Meaning) -> Meaning {
        match (x, y) {
            (Meaning::Truth(x), Meaning::Truth(y)) => {
                // Certainly true and certainly false are found alike; the rest is unknown.
                let certain = self.choose_wire(condition, x.certain, y.certain);
                let impossible = self.choose_wire(condition, !x.possible, !y.possible);
                let two_valued = condition.certain == condition.possible
                    && x.certain == x.possible
                    && y.certain == y.possible;
                Meaning::Truth(if two_valued {
                    Rails::both(certain)
                } else {
                    Rails { certain, possible: !impossible }
                })
            }
            (
                Meaning::Values { column: x, known: known_x, value_type },
                Meaning::Values { column: y, known: known_y, .. },
            ) => {
                let known = self.choose_wire(condition, known_x, known_y);
                let column = match condition.certain {
                    Wire::TRUE => x,
                    _ if condition.possible == Wire::FALSE => y,
                    certain => self.graph.add(Node::Select(kind(value_type), certain, x, y)),
                };
                Meaning::Values { column, known, value_type }
            }
            // Excluded by the check of types.
            (x, _) => x,
        }
    }

    /// `x` where the condition is certainly true, `y` where it is certainly false, else false.
    fn choose_wire(&mut self, condition: Rails, x: Wire, y: Wire) -> Wire {
        let then = self.graph.and(condition.certain, x);
        let otherwise = self.graph.and(!condition.possible, y);
        self.graph.or(then, otherwise)
    }

    /// The value just before the most recent message of a set of topics.
    fn prev(&mut self, meaning: Meaning, set: SetId) -> Meaning {
        if set == 0 {
            return meaning;
        }
        let clock = self.clock(set);
        // From the second message on there is a value before the most recent one.
        let any = self.graph.ever(clock);
        let not_first = self.graph.previously(any);
        let tick = self.graph.and(clock, not_first);
        // What is taken at a tick lasts until the next message, which takes anew.
        let mut latch = |x: Wire| {
            let before = self.graph.previously(x);
            let taken = self.graph.and(tick, before);
            self.graph.since(!clock, taken)
        };
        match meaning {
            Meaning::Truth(rails) => {
                let certain = latch(rails.certain);
                let impossible = latch(!rails.possible);
                Meaning::Truth(Rails { certain, possible: !impossible })
            }
            Meaning::Values { column, known, value_type } => {
                let known = latch(known);
                let column = self.graph.add(Node::Latch(kind(value_type), column, clock));
                Meaning::Values { column, known, value_type }
            }
        }
    }

    /// The rows of a set of topics. Every event comes on some topic of the specification.
    fn clock(&mut self, set: SetId) -> Wire {
        let topics = &self.sets[set];
        if topics.len() == self.spec.topics.len() {
            return Wire::TRUE;
        }
        topics.iter().fold(Wire::FALSE, |clock, &topic| {
            let on = self.graph.wire(Node::On(topic));
            self.graph.or(clock, on)
        })
    }

    fn field(&mut self, topic: TopicId, path: &Path, read: Read) -> FieldId {
        let here = self.fields_at.entry((topic, path.clone())).or_default();
        if let Some(&known) = here.iter().find(|&&f| self.fields[f as usize].read == read) {
            return known;
        }
        let id = self.fields.len() as FieldId;
        here.push(id);
        self.fields.push(FieldRead { topic, path: path.clone(), read });
        id
    }

    fn topic_set(&mut self, node: ExprId, topic: TopicId) -> Result<SetId, CompileError> {
        let topics = self.spec.topics.len();
        if topic.index() >= topics {
            return Err(CompileError::UnknownTopic { node, topic, topics });
        }
        Ok(self.set(vec![topic]))
    }

    fn set(&mut self, topics: Vec<TopicId>) -> SetId {
        let (sets, index) = (&mut self.sets, &mut self.set_index);
        *index.entry(topics).or_insert_with_key(|topics| {
            sets.push(topics.clone());
            sets.len() - 1
        })
    }

    fn union(&mut self, a: SetId, b: SetId) -> SetId {
        let pair = (a.min(b), a.max(b));
        if pair.0 == 0 || a == b {
            return pair.1;
        }
        if let Some(&known) = self.unions.get(&pair) {
            return known;
        }
        let mut topics = [&self.sets[a][..], &self.sets[b][..]].concat();
        topics.sort_unstable();
        topics.dedup();
        let set = self.set(topics);
        self.unions.insert(pair, set);
        set
    }
}

fn kind(value_type: ValueType) -> Kind {
    match value_type {
        ValueType::Float => Kind::Float,
        ValueType::String => Kind::Text,
        // Booleans have no column.
        ValueType::Int | ValueType::Time | ValueType::Duration | ValueType::Bool => Kind::Int,
    }
}

/// The operands of one node, with the checks that they are there and of the right type.
struct Operands<'a> {
    id: ExprId,
    done: &'a [(Meaning, SetId)],
}

impl Operands<'_> {
    fn meaning(&self, operand: ExprId) -> Result<Meaning, CompileError> {
        match self.done.get(operand.index()) {
            Some((meaning, _)) => Ok(*meaning),
            None => Err(CompileError::ForwardReference { node: self.id, operand }),
        }
    }

    fn value_type(&self, operand: ExprId) -> Result<ValueType, CompileError> {
        Ok(self.meaning(operand)?.value_type())
    }

    fn truth(&self, operand: ExprId) -> Result<Rails, CompileError> {
        match self.meaning(operand)? {
            Meaning::Truth(rails) => Ok(rails),
            Meaning::Values { value_type, .. } => {
                Err(CompileError::WrongType { node: self.id, expected: "bool", found: value_type })
            }
        }
    }

    fn number(&self, operand: ExprId) -> Result<(NodeId, Wire), CompileError> {
        self.values(operand, &[ValueType::Int, ValueType::Float], "a number")
    }

    fn values(
        &self,
        operand: ExprId,
        types: &[ValueType],
        expected: &'static str,
    ) -> Result<(NodeId, Wire), CompileError> {
        match self.meaning(operand)? {
            Meaning::Values { column, known, value_type } if types.contains(&value_type) => {
                Ok((column, known))
            }
            other => Err(CompileError::WrongType { node: self.id, expected, found: other.value_type() }),
        }
    }

    fn same_type(&self, x: ExprId, y: ExprId) -> Result<ValueType, CompileError> {
        let (left, right) = (self.value_type(x)?, self.value_type(y)?);
        if left == right { Ok(left) } else { Err(CompileError::MixedTypes { node: self.id, left, right }) }
    }
}
