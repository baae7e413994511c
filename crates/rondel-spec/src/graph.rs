//! Construction of the nodes of a [`Spec`]: shares equal nodes, folds constants, and puts operands first.

use std::collections::{BTreeSet, HashMap, HashSet};
use std::hash::{DefaultHasher, Hash, Hasher};

use rondel_event::{Comparison, TopicId, Value, ValueType};

use crate::diagnostic::Span;
use crate::functions::FunctionId;
use crate::places::Places;
use crate::spec::{BinaryOp, Bounds, Expr, ExprId, Spec, UnaryOp, VariableId};

#[derive(Debug, Default)]
pub(crate) struct Graph {
    spec: Spec,
    types: Vec<ValueType>,
    possible_values: Vec<PossibleValues>,
    /// The nodes by their hashes; of several with one hash the first, and the others are not shared.
    known: HashMap<u64, ExprId>,
    /// The topics that nodes mention, where they were asked for.
    topics: HashMap<ExprId, Vec<TopicId>>,
    /// The source location of the nodes added next.
    place: Span,
    /// For the disjunctions that were written as implications, their premises.
    implications: HashMap<ExprId, ExprId>,
}

/// The truth values that a node can have, as far as its form determines; both for a node that is not a formula.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct PossibleValues {
    pub(crate) can_be_true: bool,
    pub(crate) can_be_false: bool,
}

impl PossibleValues {
    const BOTH: PossibleValues = PossibleValues { can_be_true: true, can_be_false: true };
}

/// Returns whether the bounds are empty.
pub(crate) fn is_empty(bounds: Bounds) -> bool {
    bounds.upper.is_some_and(|upper| bounds.lower > upper)
}

/// Calls `f` with every node that is referenced from outside the graph.
fn roots(spec: &mut Spec, mut f: impl FnMut(&mut ExprId)) {
    for property in &mut spec.properties {
        f(&mut property.formula);
        property.premises.iter_mut().for_each(&mut f);
    }
    spec.slices.iter_mut().filter_map(|slice| slice.until.as_mut()).for_each(&mut f);
    for transition in spec.machines.iter_mut().flat_map(|machine| &mut machine.transitions) {
        transition.guard.iter_mut().for_each(&mut f);
        transition.assignments.iter_mut().for_each(|(_, value)| f(value));
    }
}

impl Graph {
    /// The specification under construction; the caller adds topics and properties.
    pub(crate) fn spec_mut(&mut self) -> &mut Spec {
        &mut self.spec
    }

    pub(crate) fn spec(&self) -> &Spec {
        &self.spec
    }

    /// Returns the finished specification, without unused nodes.
    pub(crate) fn finish(self) -> Spec {
        let mut spec = self.spec;
        let nodes = std::mem::take(&mut spec.nodes);
        let words = std::mem::take(&mut spec.places.nodes);
        let mut needed = vec![false; nodes.len()];
        roots(&mut spec, |root| needed[root.index()] = true);
        for (i, node) in nodes.iter().enumerate().rev() {
            if needed[i] {
                node.operands().for_each(|o| needed[o.index()] = true);
                let call = spec.places.call(ExprId(i as u32));
                call.into_iter().flat_map(|call| &call.operands).for_each(|o| needed[o.index()] = true);
            }
        }
        let mut places = vec![ExprId(0); nodes.len()];
        for (i, (mut node, place)) in nodes.into_iter().zip(words).enumerate() {
            if needed[i] {
                node.operands_mut().for_each(|o| *o = places[o.index()]);
                places[i] = ExprId(spec.nodes.len() as u32);
                spec.nodes.push(node);
                spec.places.nodes.push(place);
            }
        }
        roots(&mut spec, |root| *root = places[root.index()]);
        let place = |id: ExprId| needed[id.index()].then(|| places[id.index()]);
        spec.places.calls = spec.places.calls_with(place);
        spec.places.definitions = Places::moved(&spec.places.definitions, place);
        spec.places.elements = Places::moved(&spec.places.elements, place);
        spec
    }

    /// Names what a node computes as its definition does. Constants and fields, of which there may be many uses, keep
    /// their own text.
    pub(crate) fn name(&mut self, id: ExprId, name: &str) {
        let computes = !matches!(
            self.spec.nodes[id.index()],
            Expr::Literal(_)
                | Expr::Field { .. }
                | Expr::Length { .. }
                | Expr::Number { .. }
                | Expr::Key(..)
                | Expr::Variable(..)
                | Expr::MachineVariable(..)
                | Expr::On(_)
        );
        if computes {
            self.spec.places.definitions.entry(id).or_insert_with(|| name.to_owned());
        }
    }

    pub(crate) fn value_type(&self, id: ExprId) -> ValueType {
        self.types[id.index()]
    }

    /// As [`Spec::topics_of`]. What was asked for before is not gone through again: definitions that refer to each
    /// other in a chain are asked one after the other.
    pub(crate) fn topics_of(&mut self, id: ExprId) -> Vec<TopicId> {
        let mut seen = HashSet::from([id]);
        let mut open = vec![id];
        let mut topics = BTreeSet::new();
        while let Some(next) = open.pop() {
            if let Some(known) = self.topics.get(&next) {
                topics.extend(known);
                continue;
            }
            let Some(node) = self.spec.nodes.get(next.index()) else { continue };
            // What these mention may not be translated yet.
            if matches!(
                node,
                Expr::InState(..) | Expr::Ambiguous(_) | Expr::MachineVariable(..) | Expr::Chain(..)
            ) {
                return self.spec.topics_of(id);
            }
            topics.extend(node.topic());
            if let Expr::Window { topics: samples, .. } = node {
                topics.extend(samples);
            }
            open.extend(node.operands().filter(|operand| seen.insert(*operand)));
        }
        let topics: Vec<TopicId> = topics.into_iter().collect();
        self.topics.insert(id, topics.clone());
        topics
    }

    pub(crate) fn constant(&self, id: ExprId) -> Option<&Value> {
        match &self.spec.nodes[id.index()] {
            Expr::Literal(value) => Some(value),
            _ => None,
        }
    }

    fn truth(&self, id: ExprId) -> Option<bool> {
        match self.constant(id) {
            Some(Value::Bool(b)) => Some(*b),
            _ => None,
        }
    }

    /// Sets the source location of the nodes added next.
    pub(crate) fn at(&mut self, place: Span) {
        self.place = place;
    }

    /// Adds a node without folding constants.
    pub(crate) fn add(&mut self, expr: Expr) -> ExprId {
        let mut hasher = DefaultHasher::new();
        expr.hash(&mut hasher);
        let hash = hasher.finish();
        if let Some(id) = self.known.get(&hash)
            && self.spec.nodes[id.index()] == expr
        {
            return *id;
        }
        let id = ExprId(self.spec.nodes.len() as u32);
        self.types.push(expr.type_with(|operand| self.types[operand.index()]));
        self.possible_values.push(self.possible_values_of(&expr));
        self.spec.nodes.push(expr);
        self.spec.places.nodes.push(self.place);
        self.known.entry(hash).or_insert(id);
        id
    }

    /// Returns the truth values that a formula can have at any position of any trace.
    pub(crate) fn possible_values(&self, id: ExprId) -> PossibleValues {
        self.possible_values[id.index()]
    }

    fn possible_values_of(&self, expr: &Expr) -> PossibleValues {
        let of = |id: &ExprId| self.possible_values[id.index()];
        match expr {
            Expr::Literal(Value::Bool(value)) => PossibleValues { can_be_true: *value, can_be_false: !value },
            Expr::Not(a) => {
                PossibleValues { can_be_true: of(a).can_be_false, can_be_false: of(a).can_be_true }
            }
            Expr::And(a, b) => PossibleValues {
                can_be_true: of(a).can_be_true && of(b).can_be_true && !self.opposite(*a, *b),
                can_be_false: of(a).can_be_false || of(b).can_be_false,
            },
            Expr::Or(a, b) => PossibleValues {
                can_be_true: of(a).can_be_true || of(b).can_be_true,
                can_be_false: of(a).can_be_false && of(b).can_be_false && !self.opposite(*a, *b),
            },
            Expr::If(_, a, b) => PossibleValues {
                can_be_true: of(a).can_be_true || of(b).can_be_true,
                can_be_false: of(a).can_be_false || of(b).can_be_false,
            },
            // An unknown value, and the value before the first position, become false.
            Expr::Definitely(a) | Expr::Previously(a) => {
                PossibleValues { can_be_true: of(a).can_be_true, can_be_false: true }
            }
            Expr::Once(bounds, a) | Expr::Since(bounds, _, a) => PossibleValues {
                can_be_true: of(a).can_be_true,
                can_be_false: of(a).can_be_false || bounds.lower > 0,
            },
            Expr::Eventually(bounds, a) | Expr::Until(bounds, _, a) => PossibleValues {
                can_be_true: of(a).can_be_true,
                can_be_false: of(a).can_be_false || bounds.lower > 0,
            },
            Expr::Exists(_, a) | Expr::ForAll(_, a) | Expr::Next(a) => of(a),
            Expr::Historically(bounds, a) | Expr::Always(bounds, a) => PossibleValues {
                can_be_true: of(a).can_be_true || bounds.lower > 0,
                can_be_false: of(a).can_be_false,
            },
            Expr::Compare(comparison, a, b) if a == b => match comparison {
                Comparison::Less | Comparison::Greater => {
                    PossibleValues { can_be_true: false, can_be_false: true }
                }
                // NaN does not equal itself.
                _ if self.value_type(*a) == ValueType::Float => PossibleValues::BOTH,
                Comparison::NotEqual => PossibleValues { can_be_true: false, can_be_false: true },
                _ => PossibleValues { can_be_true: true, can_be_false: false },
            },
            _ => PossibleValues::BOTH,
        }
    }

    /// Returns whether one node is the negation of the other.
    fn opposite(&self, a: ExprId, b: ExprId) -> bool {
        self.spec.nodes[a.index()] == Expr::Not(b) || self.spec.nodes[b.index()] == Expr::Not(a)
    }

    pub(crate) fn literal(&mut self, value: Value) -> ExprId {
        self.add(Expr::Literal(value))
    }

    pub(crate) fn bool(&mut self, value: bool) -> ExprId {
        self.literal(Value::Bool(value))
    }

    pub(crate) fn float(&mut self, value: f64) -> ExprId {
        self.literal(Value::Float(value))
    }

    /// Returns the operand as a `Float`.
    pub(crate) fn widen(&mut self, id: ExprId) -> ExprId {
        match self.constant(id) {
            Some(Value::Int(i)) => {
                let value = *i as f64;
                self.float(value)
            }
            _ if self.value_type(id) == ValueType::Int => self.add(Expr::ToFloat(id)),
            _ => id,
        }
    }

    /// Returns both operands with the same type, where one is `Int` and the other `Float`.
    pub(crate) fn same_type(&mut self, a: ExprId, b: ExprId) -> (ExprId, ExprId) {
        let (of_a, of_b) = (self.value_type(a), self.value_type(b));
        if of_a == of_b || !(of_a.is_number() && of_b.is_number()) {
            return (a, b);
        }
        (self.widen(a), self.widen(b))
    }

    /// Returns none if the operand is a constant without a result.
    pub(crate) fn unary(&mut self, op: UnaryOp, a: ExprId) -> Option<ExprId> {
        let folded = match (self.constant(a), op) {
            (Some(Value::Int(i)), UnaryOp::Negate) => Value::Int(i.checked_neg()?),
            (Some(Value::Int(i)), UnaryOp::Abs) => Value::Int(i.checked_abs()?),
            (Some(Value::Float(x)), UnaryOp::Negate) => Value::Float(-x),
            (Some(Value::Float(x)), UnaryOp::Abs) => Value::Float(x.abs()),
            (Some(Value::Duration(d)), UnaryOp::Negate) => Value::Duration(d.checked_neg()?),
            (Some(Value::Duration(d)), UnaryOp::Abs) => Value::Duration(d.checked_abs()?),
            (None, _) if self.value_type(a) == ValueType::Duration => {
                let zero = self.literal(Value::Duration(0));
                let negated = self.add(Expr::Binary(BinaryOp::Subtract, zero, a));
                return Some(match op {
                    UnaryOp::Negate => negated,
                    UnaryOp::Abs => self.add(Expr::Binary(BinaryOp::Max, a, negated)),
                });
            }
            _ => return Some(self.add(Expr::Unary(op, a))),
        };
        Some(self.literal(folded))
    }

    /// Returns none if the result is undefined for constants, or for every left operand.
    pub(crate) fn binary(&mut self, op: BinaryOp, a: ExprId, b: ExprId) -> Option<ExprId> {
        let (a, b) = self.same_type(a, b);
        let folded = match (self.constant(a), self.constant(b)) {
            (Some(Value::Int(a)), Some(Value::Int(b))) => int_arithmetic(op, *a, *b)?,
            (Some(Value::Float(a)), Some(Value::Float(b))) => Value::Float(float_arithmetic(op, *a, *b)),
            (Some(a), Some(b)) if time_arithmetic(op, a, b).is_some() => time_arithmetic(op, a, b)??,
            (_, Some(Value::Int(0) | Value::Duration(0))) if op == BinaryOp::Remainder => return None,
            (_, Some(Value::Int(0))) if matches!(op, BinaryOp::Divide | BinaryOp::Remainder) => return None,
            _ => return Some(self.add(Expr::Binary(op, a, b))),
        };
        Some(self.literal(folded))
    }

    pub(crate) fn compare(&mut self, op: Comparison, a: ExprId, b: ExprId) -> ExprId {
        let (a, b) = self.same_type(a, b);
        let holds = match (self.constant(a), self.constant(b)) {
            (Some(Value::Bool(a)), Some(Value::Bool(b))) => op.holds(a, b),
            (Some(Value::Int(a)), Some(Value::Int(b))) => op.holds(a, b),
            (Some(Value::Float(a)), Some(Value::Float(b))) => op.holds(a, b),
            (Some(Value::String(a)), Some(Value::String(b))) => op.holds(a, b),
            (Some(Value::Duration(a)), Some(Value::Duration(b))) => op.holds(a, b),
            _ => return self.add(Expr::Compare(op, a, b)),
        };
        self.bool(holds)
    }

    pub(crate) fn starts_with(&mut self, a: ExprId, b: ExprId) -> ExprId {
        match (self.constant(a), self.constant(b)) {
            (Some(Value::String(a)), Some(Value::String(b))) => {
                let holds = a.starts_with(&**b);
                self.bool(holds)
            }
            _ => self.add(Expr::StartsWith(a, b)),
        }
    }

    /// Returns none if the function has no result for these constants.
    pub(crate) fn call(&mut self, function: FunctionId, a: ExprId, b: Option<ExprId>) -> Option<ExprId> {
        let second = b.map(|b| self.constant(b).cloned());
        if let Some(x) = self.constant(a)
            && second != Some(None)
        {
            let folded = function.apply(x, second.flatten().as_ref())?;
            return Some(self.literal(folded));
        }
        Some(self.add(Expr::Call(function, a, b)))
    }

    pub(crate) fn choice(&mut self, condition: ExprId, yes: ExprId, no: ExprId) -> ExprId {
        let (yes, no) = self.same_type(yes, no);
        match self.truth(condition) {
            Some(true) => yes,
            Some(false) => no,
            None => self.add(Expr::If(condition, yes, no)),
        }
    }

    pub(crate) fn prev(&mut self, a: ExprId) -> ExprId {
        if self.constant(a).is_some() { a } else { self.add(Expr::Prev(a)) }
    }

    pub(crate) fn not(&mut self, a: ExprId) -> ExprId {
        match (self.truth(a), &self.spec.nodes[a.index()]) {
            (Some(value), _) => self.bool(!value),
            (None, Expr::Not(inner)) => *inner,
            _ => self.add(Expr::Not(a)),
        }
    }

    pub(crate) fn and(&mut self, a: ExprId, b: ExprId) -> ExprId {
        match (self.truth(a), self.truth(b)) {
            (Some(true), _) => b,
            (_, Some(true)) => a,
            (Some(false), _) | (_, Some(false)) => self.bool(false),
            _ if a == b => a,
            _ => self.add(Expr::And(a, b)),
        }
    }

    pub(crate) fn or(&mut self, a: ExprId, b: ExprId) -> ExprId {
        match (self.truth(a), self.truth(b)) {
            (Some(false), _) => b,
            (_, Some(false)) => a,
            (Some(true), _) | (_, Some(true)) => self.bool(true),
            _ if a == b => a,
            _ => self.add(Expr::Or(a, b)),
        }
    }

    pub(crate) fn implies(&mut self, a: ExprId, b: ExprId) -> ExprId {
        let not = self.not(a);
        let or = self.or(not, b);
        if matches!(self.spec.nodes[or.index()], Expr::Or(..)) && or != b && or != not {
            self.implications.insert(or, a);
        }
        or
    }

    /// Returns the premises of the implications that a formula is made of, through `and`, `historically` and
    /// `always`, but for those with future operators, which are not evaluated by themselves.
    pub(crate) fn premises(&self, formula: ExprId) -> Vec<ExprId> {
        let mut premises = Vec::new();
        let mut open = vec![formula];
        while let Some(id) = open.pop() {
            match (self.implications.get(&id), &self.spec.nodes[id.index()]) {
                (Some(premise), _) if !self.looks_ahead(*premise) => premises.push(*premise),
                (Some(_), _) => {}
                (None, Expr::And(a, b)) => open.extend([*b, *a]),
                (None, Expr::Historically(_, a) | Expr::Always(_, a) | Expr::Definitely(a)) => open.push(*a),
                (None, _) => {}
            }
        }
        let mut seen = HashSet::new();
        premises.retain(|premise| seen.insert(*premise));
        premises
    }

    fn looks_ahead(&self, id: ExprId) -> bool {
        let (mut open, mut seen) = (vec![id], HashSet::from([id]));
        while let Some(id) = open.pop() {
            let node = &self.spec.nodes[id.index()];
            if matches!(node, Expr::Next(_) | Expr::Eventually(..) | Expr::Always(..) | Expr::Until(..)) {
                return true;
            }
            open.extend(node.operands().filter(|operand| seen.insert(*operand)));
        }
        false
    }

    pub(crate) fn iff(&mut self, a: ExprId, b: ExprId) -> ExprId {
        let both = self.and(a, b);
        let (not_a, not_b) = (self.not(a), self.not(b));
        let neither = self.and(not_a, not_b);
        self.or(both, neither)
    }

    /// Returns a truth that is unknown everywhere: a comparison with a quotient that has no value.
    pub(crate) fn unknown(&mut self) -> ExprId {
        let zero = self.literal(Value::Int(0));
        let quotient = self.add(Expr::Binary(BinaryOp::Divide, zero, zero));
        self.add(Expr::Compare(Comparison::Equal, quotient, zero))
    }

    pub(crate) fn definitely(&mut self, a: ExprId) -> ExprId {
        match self.spec.nodes[a.index()] {
            Expr::Literal(_)
            | Expr::Carried { .. }
            | Expr::On(_)
            | Expr::Bind { .. }
            | Expr::Definitely(_) => a,
            _ => self.add(Expr::Definitely(a)),
        }
    }

    pub(crate) fn previously(&mut self, a: ExprId) -> ExprId {
        if self.truth(a) == Some(false) { a } else { self.add(Expr::Previously(a)) }
    }

    pub(crate) fn once(&mut self, bounds: Bounds, a: ExprId) -> ExprId {
        match self.truth(a) {
            _ if is_empty(bounds) => self.bool(false),
            Some(false) => a,
            Some(true) if bounds.lower == 0 => a,
            _ => self.add(Expr::Once(bounds, a)),
        }
    }

    pub(crate) fn historically(&mut self, bounds: Bounds, a: ExprId) -> ExprId {
        match self.truth(a) {
            _ if is_empty(bounds) => self.bool(true),
            Some(true) => a,
            Some(false) if bounds.lower == 0 => a,
            _ => self.add(Expr::Historically(bounds, a)),
        }
    }

    pub(crate) fn since(&mut self, bounds: Bounds, a: ExprId, b: ExprId) -> ExprId {
        match (self.truth(a), self.truth(b)) {
            _ if is_empty(bounds) => self.bool(false),
            (_, Some(false)) => b,
            (_, Some(true)) if bounds.lower == 0 => b,
            // Only the present is left as the witness.
            (Some(false), _) => {
                if bounds.lower == 0 {
                    b
                } else {
                    a
                }
            }
            _ => self.add(Expr::Since(bounds, a, b)),
        }
    }

    pub(crate) fn eventually(&mut self, bounds: Bounds, a: ExprId) -> ExprId {
        match self.truth(a) {
            _ if is_empty(bounds) => self.bool(false),
            Some(false) => a,
            Some(true) if bounds.lower == 0 => a,
            _ => self.add(Expr::Eventually(bounds, a)),
        }
    }

    pub(crate) fn always(&mut self, bounds: Bounds, a: ExprId) -> ExprId {
        match self.truth(a) {
            _ if is_empty(bounds) => self.bool(true),
            Some(true) => a,
            Some(false) if bounds.lower == 0 => a,
            _ => self.add(Expr::Always(bounds, a)),
        }
    }

    pub(crate) fn until(&mut self, bounds: Bounds, a: ExprId, b: ExprId) -> ExprId {
        match (self.truth(a), self.truth(b)) {
            _ if is_empty(bounds) => self.bool(false),
            (_, Some(false)) => b,
            (_, Some(true)) if bounds.lower == 0 => b,
            // Only the present is left as the witness.
            (Some(false), _) if bounds.lower == 0 => b,
            (Some(true), _) => self.eventually(bounds, b),
            _ => self.add(Expr::Until(bounds, a, b)),
        }
    }

    /// Returns a new variable.
    pub(crate) fn fresh_variable(&mut self, name: &str) -> VariableId {
        let names = &mut self.spec.places.variables;
        names.push(name.to_owned());
        VariableId(names.len() as u32 - 1)
    }

    pub(crate) fn quantified(&mut self, all: bool, variable: VariableId, a: ExprId) -> ExprId {
        match self.truth(a) {
            Some(_) => a,
            None if all => self.add(Expr::ForAll(variable, a)),
            None => self.add(Expr::Exists(variable, a)),
        }
    }

    /// Returns a node that is true at a message of one of `topics` that changes the value of `a`.
    pub(crate) fn changed(&mut self, topics: &[TopicId], a: ExprId) -> ExprId {
        let mut updated = self.bool(false);
        for topic in topics {
            let on = self.add(Expr::On(*topic));
            updated = self.or(updated, on);
        }
        let before = self.prev(a);
        let different = self.compare(Comparison::NotEqual, a, before);
        self.and(updated, different)
    }

    pub(crate) fn rising(&mut self, a: ExprId) -> ExprId {
        let before = self.previously(a);
        let not_before = self.not(before);
        self.and(a, not_before)
    }

    pub(crate) fn falling(&mut self, a: ExprId) -> ExprId {
        let before = self.previously(a);
        let not = self.not(a);
        self.and(not, before)
    }
}

fn int_arithmetic(op: BinaryOp, a: i64, b: i64) -> Option<Value> {
    let result = match op {
        BinaryOp::Add => a.checked_add(b),
        BinaryOp::Subtract => a.checked_sub(b),
        BinaryOp::Multiply => a.checked_mul(b),
        // As of the integers in messages: towards zero.
        BinaryOp::Divide => a.checked_div(b),
        BinaryOp::Remainder => a.checked_rem(b),
        BinaryOp::Min => Some(a.min(b)),
        BinaryOp::Max => Some(a.max(b)),
    };
    result.map(Value::Int)
}

/// Returns arithmetic with durations: none if it is not defined for these types, `Some(None)` if it has no result.
fn time_arithmetic(op: BinaryOp, a: &Value, b: &Value) -> Option<Option<Value>> {
    use Value::{Duration, Float, Int};
    let nanos = match (op, a, b) {
        (BinaryOp::Divide, Duration(a), Duration(b)) => return Some(Some(Float(*a as f64 / *b as f64))),
        (BinaryOp::Add, Duration(a), Duration(b)) => a.checked_add(*b),
        (BinaryOp::Subtract, Duration(a), Duration(b)) => a.checked_sub(*b),
        (BinaryOp::Remainder, Duration(a), Duration(b)) => a.checked_rem(*b),
        (BinaryOp::Min, Duration(a), Duration(b)) => Some(*a.min(b)),
        (BinaryOp::Max, Duration(a), Duration(b)) => Some(*a.max(b)),
        (BinaryOp::Multiply, Duration(a), Int(b)) | (BinaryOp::Multiply, Int(a), Duration(b)) => {
            a.checked_mul(*b)
        }
        (BinaryOp::Divide, Duration(a), Int(b)) => a.checked_div(*b),
        (BinaryOp::Multiply, Duration(d), Float(x)) | (BinaryOp::Multiply, Float(x), Duration(d)) => {
            rounded(*d as f64 * x)
        }
        (BinaryOp::Divide, Duration(d), Float(x)) => rounded(*d as f64 / x),
        _ => return None,
    };
    Some(nanos.map(Duration))
}

/// Returns the nearest integer, if it fits.
fn rounded(nanos: f64) -> Option<i64> {
    let limit = -(i64::MIN as f64);
    (nanos >= -limit && nanos < limit).then(|| nanos.round() as i64)
}

fn float_arithmetic(op: BinaryOp, a: f64, b: f64) -> f64 {
    match op {
        BinaryOp::Add => a + b,
        BinaryOp::Subtract => a - b,
        BinaryOp::Multiply => a * b,
        BinaryOp::Divide => a / b,
        BinaryOp::Remainder => a % b,
        _ if a.is_nan() || b.is_nan() => f64::NAN,
        BinaryOp::Min => a.min(b),
        BinaryOp::Max => a.max(b),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_nodes_are_shared() {
        let mut g = Graph::default();
        let on = g.add(Expr::On(TopicId(0)));
        let a = g.rising(on);
        let b = g.rising(on);
        assert_eq!(a, b);
        assert_eq!(g.and(a, b), a);
        let (x, y) = (g.float(0.0), g.float(-0.0));
        assert_ne!(x, y, "the sign of zero is kept");
    }

    #[test]
    fn constants_are_folded() {
        let mut g = Graph::default();
        let on = g.add(Expr::On(TopicId(0)));
        let (yes, no) = (g.bool(true), g.bool(false));
        let past = |lower, upper| Bounds { lower, upper };
        assert_eq!(g.implies(no, on), yes);
        assert_eq!(g.iff(yes, on), on);
        assert_eq!(g.once(past(3, Some(2)), on), no);
        assert_eq!(g.historically(past(3, Some(2)), on), yes);
        assert_eq!(g.since(Bounds::ALL, no, on), on);
        assert_eq!(g.since(past(1, None), no, on), no);
        assert_ne!(g.once(past(1, None), yes), yes, "nothing is one step before the first");
        assert_ne!(g.previously(yes), yes);
        let (a, b) = (g.literal(Value::Int(7)), g.literal(Value::Int(2)));
        let quotient = g.binary(BinaryOp::Divide, a, b).unwrap();
        assert_eq!(g.constant(quotient), Some(&Value::Int(3)));
        let zero = g.literal(Value::Int(0));
        assert_eq!(g.binary(BinaryOp::Remainder, a, zero), None);
        let least = g.literal(Value::Int(i64::MIN));
        assert_eq!(g.unary(UnaryOp::Abs, least), None);
        let not = g.not(on);
        let vacuous = g.or(on, not);
        assert!(!g.possible_values(vacuous).can_be_false);
        let within = g.historically(past(1, None), vacuous);
        assert!(!g.possible_values(within).can_be_false);
        let within = g.and(on, not);
        let within = g.previously(within);
        assert!(!g.possible_values(within).can_be_true && g.possible_values(within).can_be_false);
        let minus = g.literal(Value::Int(-1));
        assert_eq!(g.binary(BinaryOp::Divide, least, minus), None);
    }

    /// Going through the whole chain for every definition would take minutes.
    #[test]
    fn a_long_chain_of_definitions_is_gone_through_once() {
        let definition = |i: usize| format!("let d{i} = changed(d{})\n", i - 1);
        let definitions: String = (1..10_000).map(definition).collect();
        let text = format!("topic a {{ x: int }}\nlet d0 = a.x > 0\n{definitions}property p = d9999");
        assert!(crate::parse(&text).spec.is_some());
    }
}
