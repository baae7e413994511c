//! Constants, fields, arithmetic and comparisons. All are pointwise, so each half is computed on its own.

use rondel_event::{Comparison, Value, ValueType};
use rondel_spec::{BinaryOp, ExprId, FunctionId, UnaryOp, binary_type};

use super::{Column, Meaning, Translator, Truth, TruthBounds, ValueColumns};
use crate::CompileError;
use crate::ir::node::{ComparisonKind, Constant, FieldId, Kind, Node};
use crate::ir::wire::Wire;

/// The kind of column for values of this type.
pub(super) fn kind(value_type: ValueType) -> Kind {
    match value_type {
        ValueType::Float => Kind::Float,
        ValueType::String => Kind::Text,
        // Booleans have no column.
        ValueType::Int | ValueType::Time | ValueType::Duration | ValueType::Bool => Kind::Int,
    }
}

impl Translator<'_> {
    pub(super) fn literal(&mut self, value: &Value) -> Meaning {
        let constant = match value {
            Value::Bool(true) => return Meaning::Truth(Truth::lasting(TruthBounds::both(Wire::TRUE))),
            Value::Bool(false) => return Meaning::Truth(Truth::lasting(TruthBounds::both(Wire::FALSE))),
            Value::Int(x) | Value::Time(x) | Value::Duration(x) => Constant::Int(*x),
            Value::Float(x) => Constant::Float(x.to_bits()),
            Value::String(x) => Constant::Text(x.clone()),
        };
        let node = self.graph.add(Node::Constant(constant));
        Meaning::Values(ValueColumns::lasting(Column { node, known: Wire::TRUE }, value.value_type()))
    }

    pub(super) fn held(&mut self, field: FieldId, value_type: ValueType) -> Meaning {
        if value_type == ValueType::Bool {
            let certain = self.graph.wire(Node::HeldBool(field, true));
            let impossible = self.graph.wire(Node::HeldBool(field, false));
            return Meaning::Truth(Truth::lasting(TruthBounds { certain, possible: !impossible }));
        }
        let node = self.graph.add(Node::Held(kind(value_type), field));
        Meaning::Values(ValueColumns::lasting(Column { node, known: Wire::of(node) }, value_type))
    }

    pub(super) fn key(&mut self, key: u32, value_type: ValueType) -> Meaning {
        if value_type == ValueType::Bool {
            let certain = self.graph.wire(Node::KeyBool(key, true));
            let impossible = self.graph.wire(Node::KeyBool(key, false));
            return Meaning::Truth(Truth::lasting(TruthBounds { certain, possible: !impossible }));
        }
        let node = self.graph.add(Node::Key(kind(value_type), key));
        Meaning::Values(ValueColumns::lasting(Column { node, known: Wire::of(node) }, value_type))
    }

    /// Applies `f` to both halves.
    fn each(
        &mut self,
        x: ValueColumns,
        value_type: ValueType,
        f: impl Fn(&mut Self, Column) -> Column,
    ) -> ValueColumns {
        ValueColumns { at: f(self, x.at), after: f(self, x.after), value_type }
    }

    pub(super) fn widened(&mut self, x: ValueColumns) -> ValueColumns {
        self.each(x, ValueType::Float, |me, x| Column {
            node: me.graph.add(Node::ToFloat(x.node)),
            known: x.known,
        })
    }

    pub(super) fn unary(&mut self, op: UnaryOp, x: ValueColumns) -> ValueColumns {
        let kind = kind(x.value_type);
        self.each(x, x.value_type, |me, x| {
            let node = me.graph.add(Node::Unary(kind, op, x.node));
            Column { node, known: me.known_result(kind, node, x.known) }
        })
    }

    pub(super) fn binary(
        &mut self,
        node: ExprId,
        op: BinaryOp,
        left: Meaning,
        right: Meaning,
    ) -> Result<ValueColumns, CompileError> {
        let mixed = CompileError::MixedTypes { node, left: left.value_type(), right: right.value_type() };
        let (Meaning::Values(mut x), Meaning::Values(mut y)) = (left, right) else { return Err(mixed) };
        let value_type = binary_type(op, x.value_type, y.value_type).ok_or(mixed)?;
        if value_type == ValueType::Float {
            // The quotient of durations is a float.
            if x.value_type != ValueType::Float {
                (x, y) = (self.widened(x), self.widened(y));
            }
        }
        let of = |me: &mut Self, x, y| me.binary_column(op, kind(value_type), x, y);
        Ok(ValueColumns { at: of(self, x.at, y.at), after: of(self, x.after, y.after), value_type })
    }

    pub(super) fn binary_column(&mut self, op: BinaryOp, kind: Kind, x: Column, y: Column) -> Column {
        let commutes = matches!(op, BinaryOp::Add | BinaryOp::Multiply | BinaryOp::Min | BinaryOp::Max);
        let (x, y) = if commutes && y.node < x.node { (y, x) } else { (x, y) };
        let node = self.graph.add(Node::Binary(kind, op, x.node, y.node));
        let known = self.graph.and(x.known, y.known);
        Column { node, known: self.known_result(kind, node, known) }
    }

    /// A call of a built-in function.
    pub(super) fn function(
        &mut self,
        function: FunctionId,
        x: ValueColumns,
        y: Option<ValueColumns>,
    ) -> Meaning {
        let half = |me: &mut Self, x: Column, y: Option<Column>| {
            let node = me.graph.add(Node::Call(function, x.node, y.map(|y| y.node)));
            (node, y.map_or(x.known, |y| me.graph.and(x.known, y.known)))
        };
        let at = half(self, x.at, y.map(|y| y.at));
        let after = half(self, x.after, y.map(|y| y.after));
        let value_type = function.result();
        if value_type == ValueType::Bool {
            let [at, after] = [at, after].map(|(node, known)| self.truth_where_known(Wire::of(node), known));
            return Meaning::Truth(Truth { at, after });
        }
        let [at, after] = [at, after].map(|(node, known)| {
            let known = match value_type {
                ValueType::Float => self.graph.and(known, Wire::of(node)),
                _ => known,
            };
            Column { node, known }
        });
        Meaning::Values(ValueColumns { at, after, value_type })
    }

    /// The rows with a known result: integer arithmetic can fail, and the word of its node marks the rows in
    /// which it did not.
    fn known_result(&mut self, kind: Kind, node: crate::ir::wire::NodeId, operands: Wire) -> Wire {
        match kind {
            Kind::Int => self.graph.and(operands, Wire::of(node)),
            Kind::Float | Kind::Text => operands,
        }
    }

    pub(super) fn compare(&mut self, comparison: Comparison, left: Meaning, right: Meaning) -> Truth {
        match (left, right) {
            (Meaning::Values(x), Meaning::Values(y)) => Truth {
                at: self.compare_columns(comparison, x.value_type, x.at, y.at),
                after: self.compare_columns(comparison, x.value_type, x.after, y.after),
            },
            (Meaning::Truth(x), Meaning::Truth(y)) => Truth {
                at: self.compare_truths(comparison, x.at, y.at),
                after: self.compare_truths(comparison, x.after, y.after),
            },
            // Excluded by the type checker.
            _ => Truth::lasting(TruthBounds::both(Wire::FALSE)),
        }
    }

    fn compare_columns(
        &mut self,
        comparison: Comparison,
        of: ValueType,
        x: Column,
        y: Column,
    ) -> TruthBounds {
        let (equal, less) = match of {
            ValueType::Float => (ComparisonKind::FloatEqual, ComparisonKind::FloatLess),
            ValueType::String => (ComparisonKind::TextEqual, ComparisonKind::TextEqual),
            _ => (ComparisonKind::IntEqual, ComparisonKind::IntLess),
        };
        let (x, y) = match comparison {
            Comparison::Equal | Comparison::NotEqual if y.node < x.node => (y, x),
            Comparison::Greater | Comparison::GreaterOrEqual => (y, x),
            _ => (x, y),
        };
        match comparison {
            Comparison::Equal => self.relation(equal, false, x, y),
            Comparison::NotEqual => self.relation(equal, true, x, y),
            Comparison::Less | Comparison::Greater => self.relation(less, false, x, y),
            Comparison::LessOrEqual | Comparison::GreaterOrEqual if of == ValueType::Float => {
                self.relation(ComparisonKind::FloatLessOrEqual, false, x, y)
            }
            Comparison::LessOrEqual | Comparison::GreaterOrEqual => self.relation(less, true, y, x),
        }
    }

    /// A comparison or its complement, unknown where an operand is.
    pub(super) fn relation(
        &mut self,
        relation: ComparisonKind,
        complement: bool,
        x: Column,
        y: Column,
    ) -> TruthBounds {
        let holds = self.graph.wire(Node::Compare(relation, x.node, y.node));
        let holds = if complement { !holds } else { holds };
        let known = self.graph.and(x.known, y.known);
        self.truth_where_known(holds, known)
    }

    pub(super) fn truth_where_known(&mut self, holds: Wire, known: Wire) -> TruthBounds {
        let certain = self.graph.and(holds, known);
        let possible = self.graph.or(holds, !known);
        TruthBounds { certain, possible }
    }

    fn compare_truths(&mut self, comparison: Comparison, x: TruthBounds, y: TruthBounds) -> TruthBounds {
        let graph = &mut self.graph;
        let both_true = graph.and(x.certain, y.certain);
        let both_false = graph.and(!x.possible, !y.possible);
        let equal = graph.or(both_true, both_false);
        if x.certain == x.possible && y.certain == y.possible {
            let truth = TruthBounds::both(equal);
            return if comparison == Comparison::Equal { truth } else { truth.not() };
        }
        let only_x = graph.and(x.certain, !y.possible);
        let only_y = graph.and(!x.possible, y.certain);
        let unequal = graph.or(only_x, only_y);
        let truth = TruthBounds { certain: equal, possible: !unequal };
        if comparison == Comparison::Equal { truth } else { truth.not() }
    }

    /// `if condition then x else y`.
    pub(super) fn choose(&mut self, condition: Truth, x: Meaning, y: Meaning) -> Meaning {
        match (x, y) {
            (Meaning::Truth(x), Meaning::Truth(y)) => Meaning::Truth(Truth {
                at: self.choose_bounds(condition.at, x.at, y.at),
                after: self.choose_bounds(condition.after, x.after, y.after),
            }),
            (Meaning::Values(x), Meaning::Values(y)) => {
                let value_type = x.value_type;
                Meaning::Values(ValueColumns {
                    at: self.select(condition.at, x.at, y.at, value_type),
                    after: self.select(condition.after, x.after, y.after, value_type),
                    value_type,
                })
            }
            // Excluded by the type checker.
            (x, _) => x,
        }
    }

    fn choose_bounds(&mut self, condition: TruthBounds, x: TruthBounds, y: TruthBounds) -> TruthBounds {
        // Computed where certainly true and where certainly false; the rest is unknown.
        let certain = self.choose_wire(condition, x.certain, y.certain);
        let impossible = self.choose_wire(condition, !x.possible, !y.possible);
        let two_valued =
            condition.certain == condition.possible && x.certain == x.possible && y.certain == y.possible;
        if two_valued { TruthBounds::both(certain) } else { TruthBounds { certain, possible: !impossible } }
    }

    pub(super) fn select(
        &mut self,
        condition: TruthBounds,
        x: Column,
        y: Column,
        value_type: ValueType,
    ) -> Column {
        let known = self.choose_wire(condition, x.known, y.known);
        let node = match condition.certain {
            Wire::TRUE => x.node,
            _ if condition.possible == Wire::FALSE || x.node == y.node => y.node,
            certain => self.graph.add(Node::Select(kind(value_type), certain, x.node, y.node)),
        };
        Column { node, known }
    }

    /// `x` where the condition is certainly true, `y` where it is certainly false, else false.
    fn choose_wire(&mut self, condition: TruthBounds, x: Wire, y: Wire) -> Wire {
        let then = self.graph.and(condition.certain, x);
        let otherwise = self.graph.and(!condition.possible, y);
        self.graph.or(then, otherwise)
    }
}
