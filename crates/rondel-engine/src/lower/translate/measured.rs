//! Measurements over windows and over the messages of a topic.

use std::collections::HashSet;

use rondel_event::{Comparison, Path, Read, TopicId, Value, ValueType};
use rondel_spec::{Aggregate, BinaryOp, Expr, ExprId, TimeModel, UnaryOp};

use super::{Column, Meaning, Operands, Translator, Truth, ValueColumns, values};
use crate::CompileError;
use crate::ir::node::{ComparisonKind, Constant, Kind, Measure, Node};
use crate::ir::wire::{Halves, NodeId, Wire};

impl Translator<'_> {
    #[expect(clippy::too_many_lines, reason = "one arm for each aggregate")]
    pub(super) fn window(
        &mut self,
        id: ExprId,
        aggregate: Aggregate,
        over: u64,
        operand: Option<ExprId>,
        topics: &[TopicId],
        operands: &Operands<'_>,
    ) -> Result<ValueColumns, CompileError> {
        let mut set = 0;
        for &topic in topics {
            let topic = self.topic_set(id, topic)?;
            set = self.sets.union(set, topic);
        }
        let mut samples = self.clock(set);
        if let (true, Some(x)) = (aggregate.leaves_out_nan(), operand) {
            samples = self.numbers(samples, x, operands)?;
        }
        let count = |me: &mut Self, samples| me.measured(Measure::Count, Kind::Int, None, samples, over);
        let column = match (aggregate, operand) {
            (Aggregate::Count, None) => count(self, samples),
            (Aggregate::Count, Some(x)) => {
                let x = operands.truth(x)?;
                let samples = self.graph.and(samples, x.at.certain);
                count(self, samples)
            }
            (Aggregate::Rate, None) if self.model == TimeModel::Steps => {
                return Err(CompileError::Unsupported { node: id, what: "a rate in steps" });
            }
            (Aggregate::Rate, None) => {
                let count = count(self, samples);
                let seconds = self.float(over as f64 / 1e9);
                self.quotient(count, seconds)
            }
            (Aggregate::Sum | Aggregate::Min | Aggregate::Max, Some(x)) => {
                let x = operands.measurable(x)?;
                let measure = match aggregate {
                    Aggregate::Sum => Measure::Sum,
                    Aggregate::Min => Measure::Least,
                    _ => Measure::Greatest,
                };
                let kind = values::kind(x.value_type);
                let column = self.measured(measure, kind, Some(x.at), samples, over);
                return Ok(ValueColumns::lasting(column, x.value_type));
            }
            (Aggregate::Mean, Some(x)) => {
                let mut x = operands.measurable(x)?;
                if x.value_type != ValueType::Float {
                    x = self.widened(x);
                }
                let sum = self.measured(Measure::Sum, Kind::Float, Some(x.at), samples, over);
                let count = count(self, samples);
                let zero = self.graph.add(Node::Constant(Constant::Int(0)));
                let none = self.graph.wire(Node::Compare(ComparisonKind::IntEqual, count.node, zero));
                let count = Column { known: self.graph.and(count.known, !none), ..count };
                let count = self.as_float(count);
                self.binary_column(BinaryOp::Divide, Kind::Float, sum, count)
            }
            (Aggregate::Distinct, Some(x)) => {
                let x = operands.measurable(x)?;
                let measure = match values::kind(x.value_type) {
                    Kind::Float => Measure::DistinctFloats,
                    _ => Measure::Distinct,
                };
                let column = self.measured(measure, Kind::Int, Some(x.at), samples, over);
                return Ok(ValueColumns::lasting(column, ValueType::Int));
            }
            (Aggregate::First | Aggregate::Last, Some(x)) => {
                let x = operands.measurable(x)?;
                let measure = if aggregate == Aggregate::First { Measure::First } else { Measure::Last };
                let column = self.measured(measure, values::kind(x.value_type), Some(x.at), samples, over);
                return Ok(ValueColumns::lasting(column, x.value_type));
            }
            (Aggregate::Derivative | Aggregate::Integral, Some(_)) if self.model == TimeModel::Steps => {
                return Err(CompileError::Unsupported { node: id, what: "a change per second in steps" });
            }
            (
                Aggregate::Percentile(_)
                | Aggregate::Median
                | Aggregate::Stddev
                | Aggregate::Derivative
                | Aggregate::Integral,
                Some(x),
            ) => {
                let mut x = operands.measurable(x)?;
                if x.value_type != ValueType::Float {
                    x = self.widened(x);
                }
                let measure = match aggregate {
                    Aggregate::Percentile(part) => Measure::Percentile(part),
                    Aggregate::Median => Measure::Median,
                    Aggregate::Stddev => Measure::Deviation,
                    Aggregate::Derivative => Measure::Derivative,
                    _ => Measure::Integral,
                };
                self.measured(measure, Kind::Float, Some(x.at), samples, over)
            }
            (Aggregate::Rate, Some(_)) => {
                return Err(CompileError::Unsupported { node: id, what: "the rate of a value" });
            }
            (_, None) => {
                return Err(CompileError::Unsupported { node: id, what: "a window that mentions no topic" });
            }
        };
        let value_type = if aggregate == Aggregate::Count { ValueType::Int } else { ValueType::Float };
        Ok(ValueColumns::lasting(column, value_type))
    }

    /// The samples at which an operand is a number. A float field that is NaN has no value, so that both
    /// cases are excluded.
    fn numbers(&mut self, samples: Wire, x: ExprId, operands: &Operands<'_>) -> Result<Wire, CompileError> {
        let mut numbers = samples;
        let column = operands.measurable(x)?;
        let is_field = matches!(self.spec.nodes.get(x.index()), Some(Expr::Field { .. }));
        if column.value_type == ValueType::Float && !is_field {
            let Column { node, known } = column.at;
            let equal = self.graph.wire(Node::Compare(ComparisonKind::FloatEqual, node, node));
            let is_nan = self.graph.and(known, !equal);
            numbers = self.graph.and(numbers, !is_nan);
        }
        for (topic, path) in self.floats_below(x) {
            let field = self.field(topic, &path, Read::IsNan);
            if let Meaning::Truth(is_nan) = self.held(field, ValueType::Bool) {
                numbers = self.graph.and(numbers, !is_nan.at.certain);
            }
        }
        Ok(numbers)
    }

    /// The float fields that an expression reads.
    fn floats_below(&self, x: ExprId) -> Vec<(TopicId, Path)> {
        let (mut fields, mut open, mut seen) = (Vec::new(), vec![x], HashSet::new());
        while let Some(id) = open.pop() {
            if !seen.insert(id) {
                continue;
            }
            match self.spec.nodes.get(id.index()) {
                Some(Expr::Field { topic, path, value_type: ValueType::Float }) => {
                    fields.push((*topic, path.clone()));
                }
                Some(node) => open.extend(node.operands()),
                None => {}
            }
        }
        fields
    }

    fn measured(
        &mut self,
        measure: Measure,
        kind: Kind,
        x: Option<Column>,
        samples: Wire,
        over: u64,
    ) -> Column {
        // A count has no operand: node 0 exists in every graph.
        let Column { node: x, known } = x.unwrap_or(Column { node: NodeId(0), known: Wire::TRUE });
        let timed = self.model != TimeModel::Steps;
        let node = self.graph.add(Node::Window { measure, kind, x, samples, known, over, timed });
        Column { node, known: Wire::of(node) }
    }

    fn float(&mut self, value: f64) -> Column {
        let node = self.graph.add(Node::Constant(Constant::Float(value.to_bits())));
        Column { node, known: Wire::TRUE }
    }

    fn as_float(&mut self, x: Column) -> Column {
        Column { node: self.graph.add(Node::ToFloat(x.node)), known: x.known }
    }

    fn quotient(&mut self, x: Column, y: Column) -> Column {
        let x = self.as_float(x);
        self.binary_column(BinaryOp::Divide, Kind::Float, x, y)
    }

    /// A value held from the last message of a topic; unknown if it was unknown at that message.
    fn sampled(&mut self, topic: TopicId, x: Column) -> Result<ValueColumns, CompileError> {
        let set = self.topic_set(ExprId(0), topic)?;
        let clock = self.clock(set);
        let node = self.graph.add(Node::Sampled(x.node, clock));
        let known = self.latch(clock, clock, x.known);
        Ok(ValueColumns::lasting(Column { node, known }, ValueType::Duration))
    }

    fn time(&mut self) -> Column {
        Column { node: self.graph.add(Node::Time), known: Wire::TRUE }
    }

    /// The time since the last message of a topic, as of the last row.
    pub(super) fn age(&mut self, topic: TopicId) -> Result<ValueColumns, CompileError> {
        let time = self.time();
        let last = self.sampled(topic, time)?;
        let age = self.binary_column(BinaryOp::Subtract, Kind::Int, time, last.at);
        Ok(ValueColumns::lasting(age, ValueType::Duration))
    }

    /// The comparison of an age with a constant, exact at every time; none for other operands.
    pub(super) fn compare_age(
        &mut self,
        comparison: Comparison,
        x: ExprId,
        y: ExprId,
    ) -> Result<Option<Truth>, CompileError> {
        let node = |x: ExprId| self.spec.nodes.get(x.index());
        let (comparison, topic, constant) = match (node(x), node(y)) {
            (Some(Expr::Age(topic)), Some(Expr::Literal(Value::Duration(constant)))) => {
                (comparison, *topic, *constant)
            }
            (Some(Expr::Literal(Value::Duration(constant))), Some(Expr::Age(topic))) => {
                (mirrored(comparison), *topic, *constant)
            }
            _ => return Ok(None),
        };
        let set = self.topic_set(x, topic)?;
        let clock = self.clock(set);
        let less = self.graph.fresh(clock, u64::try_from(constant).unwrap_or(0));
        let less_or_equal = match u64::try_from(constant) {
            Ok(constant) => self.within(clock, constant),
            Err(_) => Halves::FALSE,
        };
        let known = self.graph.ever(clock);
        Ok(Some(self.compared(comparison, less, less_or_equal, known)))
    }

    /// A comparison with a constant, from the truths of `<` and `<=`.
    pub(super) fn compared(
        &mut self,
        comparison: Comparison,
        less: Halves,
        less_or_equal: Halves,
        known: Wire,
    ) -> Truth {
        let mut half = |less: Wire, less_or_equal: Wire| {
            let equal = self.graph.and(less_or_equal, !less);
            let holds = match comparison {
                Comparison::Less => less,
                Comparison::LessOrEqual => less_or_equal,
                Comparison::Greater => !less_or_equal,
                Comparison::GreaterOrEqual => !less,
                Comparison::Equal => equal,
                Comparison::NotEqual => !equal,
            };
            self.truth_where_known(holds, known)
        };
        let at = half(less.at, less_or_equal.at);
        Truth { at, after: half(less.after, less_or_equal.after) }
    }

    /// The truth that the clock had a row at most `span` ago.
    fn within(&mut self, clock: Wire, span: u64) -> Halves {
        let Truth { at, after } = self.update(clock);
        let on = Halves { at: at.certain, after: after.certain };
        match self.model {
            TimeModel::Dense => self.graph.dense_since(Halves::TRUE, on, 0, Some(span)),
            // Ages are compared with durations, in discrete time too.
            TimeModel::Steps | TimeModel::Points => {
                super::lasting(self.graph.points_since(Wire::TRUE, clock, 0, Some(span)))
            }
        }
    }

    /// The latency of the last message of a topic: from its source time to its arrival.
    pub(super) fn latency(&mut self, topic: TopicId) -> Result<ValueColumns, CompileError> {
        let node = self.graph.add(Node::Latency);
        self.sampled(topic, Column { node, known: Wire::of(node) })
    }

    /// The jitter of a topic: the difference between its last two periods.
    pub(super) fn jitter(&mut self, topic: TopicId) -> Result<ValueColumns, CompileError> {
        let set = self.topic_set(ExprId(0), topic)?;
        let time = self.time();
        let last = self.sampled(topic, time)?;
        let period = self.step_of(last, set);
        let step = self.step_of(period, set);
        Ok(self.unary(UnaryOp::Abs, step))
    }

    /// The difference between a value and the one before.
    fn step_of(&mut self, x: ValueColumns, set: super::SetId) -> ValueColumns {
        let Meaning::Values(before) = self.prev(Meaning::Values(x), set) else { return x };
        let step = self.binary_column(BinaryOp::Subtract, Kind::Int, x.at, before.at);
        ValueColumns::lasting(step, x.value_type)
    }
}

pub(super) fn mirrored(comparison: Comparison) -> Comparison {
    match comparison {
        Comparison::Less => Comparison::Greater,
        Comparison::LessOrEqual => Comparison::GreaterOrEqual,
        Comparison::Greater => Comparison::Less,
        Comparison::GreaterOrEqual => Comparison::LessOrEqual,
        equality => equality,
    }
}
