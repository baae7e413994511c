//! Evaluates every node at every sample by its definition.

use std::collections::{BTreeSet, HashMap};
use std::rc::Rc;

use rondel_event::{Path, Read, TopicId, Value, ValueType};
use rondel_spec::{Bounds, Expr, ExprId, MachineId, Spec, VariableId};

use super::arithmetic::{binary, compare, unary};
use super::functions;
use super::machine::{self, Run};
use super::timeline::{Clock, Timeline, age_and_constant};
use super::truth::{Datum, Seen, Truth, strict};
use super::{Content, Event, decode, linear, measure, operators};

pub type Column = Rc<Vec<Datum>>;

/// Nodes of a specification over a timeline.
#[derive(Clone)]
pub struct Evaluator<'a> {
    pub spec: &'a Spec,
    pub timeline: &'a Timeline<'a>,
    /// Parameters of the instance, and its first event. Before that event there is only the template, without
    /// parameters.
    pub keys: &'a [Value],
    pub begin: usize,
    /// Whether conditions on parameters alone are known before the first event: not in machines and
    /// quantified formulas.
    pub knows_keys: bool,
    /// Whether numbers are interpolated linearly.
    pub linear: bool,
    /// The data of a machine before the transition of each sample, during its evaluation.
    open: Option<(MachineId, &'a [Vec<Datum>])>,
    variables: HashMap<VariableId, Value>,
    columns: HashMap<ExprId, Column>,
    runs: HashMap<MachineId, Rc<Run>>,
}

impl<'a> Evaluator<'a> {
    pub fn new(spec: &'a Spec, timeline: &'a Timeline<'a>, keys: &'a [Value]) -> Evaluator<'a> {
        Evaluator {
            spec,
            timeline,
            keys,
            begin: 0,
            knows_keys: false,
            linear: false,
            open: None,
            variables: HashMap::new(),
            columns: HashMap::new(),
            runs: HashMap::new(),
        }
    }

    /// The evaluator on a prefix of the trace, with these data of a machine.
    pub fn inside<'b>(
        &self,
        timeline: &'b Timeline<'b>,
        id: MachineId,
        data: &'b [Vec<Datum>],
    ) -> Evaluator<'b>
    where
        'a: 'b,
    {
        Evaluator { timeline, open: Some((id, data)), ..self.clone() }
    }

    /// The node at every sample.
    pub fn column(&mut self, id: ExprId) -> Column {
        let mut needed = BTreeSet::from([id]);
        let mut open = vec![id];
        while let Some(id) = open.pop() {
            // A quantifier evaluates its operand again for every value.
            let expr = &self.spec.nodes[id.index()];
            let operands: Vec<ExprId> = match self.spec.places.call(id) {
                Some(call) => call.operands.clone(),
                None => expr.operands().collect(),
            };
            let operands =
                operands.into_iter().filter(|_| !matches!(expr, Expr::Exists(..) | Expr::ForAll(..)));
            open.extend(operands.filter(|operand| needed.insert(*operand)));
        }
        for id in needed {
            if !self.columns.contains_key(&id) {
                let column = self.compute(id);
                self.columns.insert(id, Rc::new(column));
            }
        }
        self.columns[&id].clone()
    }

    /// The run of a machine.
    pub fn run(&mut self, id: MachineId) -> Rc<Run> {
        if !self.runs.contains_key(&id) {
            // A machine that started before its instance evaluated guards without the parameters.
            let mut before = Evaluator { columns: HashMap::new(), knows_keys: false, ..self.clone() };
            let run = machine::run(&mut before, id);
            self.runs.insert(id, Rc::new(run));
        }
        self.runs[&id].clone()
    }

    /// Whether a node is a condition on parameters and constants alone, which is known before the instance
    /// begins.
    fn is_key_test(&self, id: ExprId) -> bool {
        let spec = self.spec;
        let mut open = vec![id];
        let mut keyed = false;
        while let Some(id) = open.pop() {
            let node = &spec.nodes[id.index()];
            keyed |= matches!(node, Expr::Key(..));
            let is_pure = matches!(
                node,
                Expr::Literal(_)
                    | Expr::Key(..)
                    | Expr::ToFloat(_)
                    | Expr::Unary(..)
                    | Expr::Binary(..)
                    | Expr::Compare(..)
                    | Expr::StartsWith(..)
                    | Expr::Call(..)
                    | Expr::If(..)
                    | Expr::Not(_)
                    | Expr::And(..)
                    | Expr::Or(..)
                    | Expr::Definitely(_)
            );
            if !is_pure {
                return false;
            }
            open.extend(node.operands());
        }
        keyed && spec.value_type(id) == ValueType::Bool
    }

    fn compute(&mut self, id: ExprId) -> Vec<Datum> {
        if self.begin > 0 && self.knows_keys && self.is_key_test(id) {
            let mut begun = Evaluator { columns: HashMap::new(), begin: 0, ..self.clone() };
            return begun.column(id).to_vec();
        }
        let expr = &self.spec.nodes[id.index()];
        let samples = 0..self.timeline.samples.len();
        if let Some(call) = self.spec.places.call(id) {
            return operators::column(self, call);
        }
        match expr {
            Expr::Exists(variable, x) => self.quantified(*variable, *x, Truth::FALSE, Truth::or),
            Expr::ForAll(variable, x) => self.quantified(*variable, *x, Truth::TRUE, Truth::and),
            Expr::MachineVariable(m, v, _) => match self.open {
                Some((open, data)) if open == *m => {
                    data.iter().map(|data| data[*v as usize].clone()).collect()
                }
                _ => {
                    let run = self.run(*m);
                    samples.map(|k| run.data_before[k][*v as usize].clone()).collect()
                }
            },
            Expr::InState(m, states) => {
                let run = self.run(*m);
                samples.map(|k| Datum::Truth(Truth::known(states.contains(&run.state_after[k])))).collect()
            }
            Expr::Ambiguous(m) => {
                let run = self.run(*m);
                samples.map(|k| Datum::Truth(Truth::known(run.ambiguous[k]))).collect()
            }
            _ => samples.map(|k| self.at(expr, k)).collect(),
        }
    }

    /// The operand for every value that occurs, and for one that does not.
    fn quantified(
        &mut self,
        variable: VariableId,
        x: ExprId,
        none: Truth,
        join: fn(Truth, Truth) -> Truth,
    ) -> Vec<Datum> {
        let mut values: Vec<Value> = Vec::new();
        let mut value_type = None;
        for expr in &self.spec.nodes {
            if let Expr::Variable(other, t) = expr
                && *other == variable
            {
                value_type = Some(*t);
            }
            let Expr::Bind { topic, fields } = expr else { continue };
            for (path, _, t) in fields.iter().filter(|(_, v, _)| *v == variable) {
                value_type = Some(*t);
                let carried = self.timeline.trace.iter().filter_map(|e| e.event.get(*topic, path));
                values.extend(carried.filter_map(|content| decode(content, &Read::Value(*t))));
            }
        }
        let literals = self.spec.nodes.iter().filter_map(|expr| match expr {
            Expr::Literal(value) => Some(value),
            _ => None,
        });
        let carried = self.timeline.trace.iter().flat_map(|timed| &timed.event.fields);
        let carried = carried.filter_map(|(_, content)| match content {
            Content::Value(value) => Some(value),
            _ => None,
        });
        let others = literals.chain(carried).chain(self.keys);
        values.extend(others.filter(|value| Some(value.value_type()) == value_type).cloned());
        let mut seen: Vec<Value> = Vec::new();
        values.retain(|value| {
            let is_new = !seen.contains(value);
            seen.extend(is_new.then(|| value.clone()));
            is_new
        });
        let fresh = (0..).map(|i: i64| match value_type {
            Some(ValueType::Bool) => Value::Bool(i & 1 == 1),
            Some(ValueType::String) => Value::String(format!("fresh {i}").into()),
            Some(ValueType::Time) => Value::Time(i),
            Some(ValueType::Duration) => Value::Duration(i),
            Some(ValueType::Float) => Value::Float(i as f64 + 0.123),
            Some(ValueType::Int) | None => Value::Int(i),
        });
        values.extend(fresh.take(1000).find(|value| !values.contains(value)));
        let mut result = vec![none; self.timeline.samples.len()];
        for value in values {
            let mut inner = Evaluator { columns: HashMap::new(), ..self.clone() };
            inner.variables.insert(variable, value);
            for (result, datum) in result.iter_mut().zip(inner.column(x).iter()) {
                *result = join(*result, datum.truth());
            }
        }
        result.into_iter().map(Datum::Truth).collect()
    }

    /// Marks conditions on parameters in a formula as known before the instance begins.
    pub fn know_keys(&mut self, formula: ExprId) {
        let mut seen = BTreeSet::from([formula]);
        let mut open = vec![formula];
        while let Some(id) = open.pop() {
            open.extend(self.spec.nodes[id.index()].operands().filter(|operand| seen.insert(*operand)));
        }
        let quantified = |id: &ExprId| {
            matches!(self.spec.nodes[id.index()], Expr::Exists(..) | Expr::ForAll(..) | Expr::Bind { .. })
        };
        self.knows_keys = !seen.iter().any(quantified);
    }

    pub fn datum(&self, x: ExprId, sample: usize) -> &Datum {
        &self.columns[&x][sample]
    }

    pub fn truth(&self, x: ExprId, sample: usize) -> Truth {
        self.datum(x, sample).truth()
    }

    /// The events up to a sample.
    fn events(&self, sample: usize) -> &'a [super::Timed] {
        &self.timeline.trace[..=self.timeline.samples[sample].latest]
    }

    pub fn held(&self, topic: TopicId, path: &Path, read: &Read, k: usize) -> Datum {
        let latest = self.events(k).iter().rev().find_map(|timed| timed.event.get(topic, path));
        Datum::of(latest.and_then(|content| decode(content, read)))
    }

    pub fn at(&self, expr: &Expr, k: usize) -> Datum {
        let now = self.timeline.samples[k];
        let message: Option<&Event> = now.event.map(|i| &self.timeline.trace[i].event);
        let known = |x: bool| Datum::Truth(Truth::known(x));
        match expr {
            Expr::Literal(value) => Datum::of(Some(value.clone())),
            Expr::Key(..) if now.latest < self.begin => Datum::Unknown,
            Expr::Key(n, _) => Datum::of(Some(self.keys[*n as usize].clone())),
            Expr::Variable(id, _) => Datum::of(Some(self.variables[id].clone())),
            Expr::Field { topic, path, value_type } => self.held(*topic, path, &Read::Value(*value_type), k),
            Expr::Elements { topic, path, quantifier, conditions } => {
                self.held(*topic, path, &Read::Elements(*quantifier, conditions.clone()), k)
            }
            Expr::Length { topic, path, of } => self.held(*topic, path, &Read::length(*of), k),
            Expr::Number { topic, path } => self.held(*topic, path, &Read::Number(ValueType::Float), k),
            Expr::IsNan { topic, path } => self.held(*topic, path, &Read::IsNan, k),
            Expr::Carried { topic, path } => known(message.is_some_and(|m| m.get(*topic, path).is_some())),
            Expr::On(topic) => known(message.is_some_and(|m| m.topic == topic.0)),
            Expr::Bind { topic, fields } => known(message.is_some_and(|m| {
                m.topic == topic.0
                    && fields.iter().all(|(path, variable, value_type)| {
                        let value = m.get(*topic, path).and_then(|c| decode(c, &Read::Value(*value_type)));
                        value.is_some() && value.as_ref() == self.variables.get(variable)
                    })
            })),
            Expr::ToFloat(x) => self.map(*x, k, |x| match x {
                Value::Int(x) => Some(Value::Float(x as f64)),
                other => panic!("{other:?} is no int"),
            }),
            Expr::Unary(op, x) => self.map(*x, k, |x| unary(*op, x)),
            Expr::Binary(op, x, y) => strict(self.datum(*x, k), self.datum(*y, k), |x, y| binary(*op, x, y)),
            Expr::Compare(..) if self.linear && linear::is_interpolated(self.spec, expr) => {
                Datum::Truth(linear::compare(self.spec, expr, self.timeline.trace, now))
            }
            Expr::Compare(op, x, y) if age_and_constant(self.spec, *x, *y).is_some() => {
                measure::compare_age(self, *op, *x, *y, k)
            }
            Expr::Compare(op, x, y) => {
                strict(self.datum(*x, k), self.datum(*y, k), |x, y| Some(Value::Bool(compare(*op, x, y))))
            }
            Expr::StartsWith(x, y) => strict(self.datum(*x, k), self.datum(*y, k), |x, y| match (x, y) {
                (Value::String(x), Value::String(y)) => Some(Value::Bool(x.starts_with(&*y))),
                other => panic!("{other:?} are no texts"),
            }),
            Expr::Call(function, x, None) => self.map(*x, k, |x| functions::one(function.name(), x)),
            Expr::Call(function, x, Some(y)) => {
                strict(self.datum(*x, k), self.datum(*y, k), |x, y| functions::two(function.name(), x, y))
            }
            Expr::If(condition, x, y) => match self.datum(*condition, k).see() {
                Seen::Unknown => Datum::Unknown,
                Seen::Pending => Datum::Pending,
                Seen::Value(Value::Bool(true)) => self.datum(*x, k).clone(),
                Seen::Value(_) => self.datum(*y, k).clone(),
            },
            Expr::Prev(x) => self.prev(*x, k),
            Expr::Age(topic) => measure::age(self, *topic, k),
            Expr::Latency(topic) => measure::latency(self.events(k), *topic),
            Expr::Jitter(topic) => measure::jitter(self.events(k), *topic),
            Expr::Window { aggregate, over, operand, topics } => {
                measure::window(self, *aggregate, *over, *operand, topics, k)
            }
            Expr::Exists(..) | Expr::ForAll(..) | Expr::MachineVariable(..) => unreachable!("whole columns"),
            Expr::InState(..) | Expr::Ambiguous(_) => unreachable!("whole columns"),
            _ => Datum::Truth(self.temporal(expr, k)),
        }
    }

    fn map(&self, x: ExprId, k: usize, f: impl FnOnce(Value) -> Option<Value>) -> Datum {
        match self.datum(x, k).see() {
            Seen::Value(x) => Datum::of(f(x)),
            Seen::Unknown => Datum::Unknown,
            Seen::Pending => Datum::Pending,
        }
    }

    /// The value just before the most recent message.
    fn prev(&self, x: ExprId, k: usize) -> Datum {
        let topics = self.spec.topics_of(x);
        if topics.is_empty() {
            return self.datum(x, k).clone();
        }
        let of_topics = |j: &usize| {
            let message = self.timeline.samples[*j].event.map(|i| self.timeline.trace[i].event.topic);
            message.is_some_and(|topic| topics.contains(&TopicId(topic)))
        };
        let messages: Vec<usize> = (0..=k).rev().filter(of_topics).take(2).collect();
        match messages[..] {
            [last, _] => self.datum(x, last - 1).clone(),
            _ => Datum::Unknown,
        }
    }

    /// Whether the distance of two samples, backward or forward, is within the bounds.
    pub fn in_bounds(&self, bounds: Bounds, from: usize, to: usize, ahead: bool) -> bool {
        let (low, high) = self.interval(bounds, from, ahead);
        self.timeline.samples[to].meets(low, high)
    }

    fn interval(&self, bounds: Bounds, from: usize, ahead: bool) -> (Clock, Clock) {
        let at = self.timeline.samples[from].at();
        let lower = 2 * Clock::from(bounds.lower);
        let upper = bounds.upper.map_or(Clock::MAX / 4, |upper| 2 * Clock::from(upper));
        if ahead { (at + lower, at + upper) } else { (at - upper, at - lower) }
    }

    fn temporal(&self, expr: &Expr, k: usize) -> Truth {
        let last = self.timeline.samples.len() - 1;
        match expr {
            Expr::Not(x) => self.truth(*x, k).not(),
            Expr::And(x, y) => self.truth(*x, k).and(self.truth(*y, k)),
            Expr::Or(x, y) => self.truth(*x, k).or(self.truth(*y, k)),
            Expr::Definitely(x) => self.truth(*x, k).definitely(),
            // Just before a time on an interval is the same interval.
            Expr::Previously(x) if self.timeline.samples[k].is_span() => self.truth(*x, k),
            Expr::Previously(x) => k.checked_sub(1).map_or(Truth::FALSE, |before| self.truth(*x, before)),
            Expr::Once(bounds, q) => self.since(*bounds, |_| Truth::TRUE, |j| self.truth(*q, j), k),
            Expr::Historically(bounds, q) => {
                self.since(*bounds, |_| Truth::TRUE, |j| self.truth(*q, j).not(), k).not()
            }
            Expr::Since(bounds, p, q) => self.since(*bounds, |j| self.truth(*p, j), |j| self.truth(*q, j), k),
            Expr::Next(x) => {
                if k < last {
                    self.truth(*x, k + 1)
                } else {
                    Truth::PENDING
                }
            }
            Expr::Eventually(bounds, q) => self.until(*bounds, |_| Truth::TRUE, |j| self.truth(*q, j), k),
            Expr::Always(bounds, q) => {
                self.until(*bounds, |_| Truth::TRUE, |j| self.truth(*q, j).not(), k).not()
            }
            Expr::Until(bounds, p, q) => self.until(*bounds, |j| self.truth(*p, j), |j| self.truth(*q, j), k),
            other => panic!("no definition here of {other:?}"),
        }
    }

    /// `q` at a time in the bounds, and `p` at all times between it and the sample. Part of an interval lies
    /// between its times and the sample, unless the sample is the current one.
    fn between(&self, bounds: Bounds, p: &impl Fn(usize) -> Truth, k: usize, j: usize) -> Truth {
        let present = j == k && bounds.lower == 0;
        if self.timeline.samples[j].is_span() && !present { p(j) } else { Truth::TRUE }
    }

    /// Whether the end of an interval is within the bounds: strictly less than the upper one, as times just
    /// before the end are farther away.
    fn is_past_end(&self, bounds: Bounds, k: usize, span: usize) -> bool {
        let distance = self.timeline.samples[k].at() - self.timeline.samples[span].to;
        distance >= 2 * Clock::from(bounds.lower)
            && bounds.upper.is_none_or(|upper| distance < 2 * Clock::from(upper))
    }

    fn since(
        &self,
        bounds: Bounds,
        p: impl Fn(usize) -> Truth,
        q: impl Fn(usize) -> Truth,
        k: usize,
    ) -> Truth {
        let mut holds = Truth::FALSE;
        let mut after = Truth::TRUE;
        for j in (0..=k).rev() {
            if self.in_bounds(bounds, k, j, false) {
                holds = holds.or(q(j).and(after).and(self.between(bounds, &p, k, j)));
            }
            // Up to the end of an interval, with `p` from there on.
            if j < k && self.timeline.samples[j].is_span() && self.is_past_end(bounds, k, j) {
                holds = holds.or(q(j).and(after));
            }
            after = after.and(p(j));
            if holds == Truth::TRUE || after == Truth::FALSE {
                break;
            }
        }
        holds
    }

    fn until(
        &self,
        bounds: Bounds,
        p: impl Fn(usize) -> Truth,
        q: impl Fn(usize) -> Truth,
        k: usize,
    ) -> Truth {
        let mut holds = Truth::FALSE;
        let mut before = Truth::TRUE;
        for j in k..self.timeline.samples.len() {
            if self.in_bounds(bounds, k, j, true) {
                holds = holds.or(q(j).and(before).and(self.between(bounds, &p, k, j)));
            }
            before = before.and(p(j));
            if holds == Truth::TRUE || before == Truth::FALSE {
                return holds;
            }
        }
        let (low, high) = self.interval(bounds, k, true);
        if low <= high && self.timeline.now <= high {
            holds = holds.or(before.and(Truth::PENDING));
        }
        holds
    }
}
