//! Robustness by its definition: truth and robustness interval of every node on every piece of a trace.

use rondel_event::{Comparison, Value, ValueType, Verdict};
use rondel_spec::{Bounds, Expr, ExprId, Spec, TimeModel};

use super::{Content, Event};

/// A message with its time.
pub type Timed = (i64, Event);

/// A piece of a trace: an instant with or without an event, or the open interval after it.
#[derive(Clone, Copy, Debug)]
pub struct Piece {
    /// A position, a time, or in dense time a number of half nanoseconds.
    pub place: i64,
    pub event: usize,
    /// Whether the event is at this piece.
    pub happens: bool,
    pub is_span: bool,
}

/// Truth and robustness interval of a formula.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Value3 {
    pub truth: Option<bool>,
    pub least: f64,
    pub greatest: f64,
}

impl Value3 {
    pub fn of(truth: Option<bool>) -> Value3 {
        let level = |truth| if truth { f64::INFINITY } else { f64::NEG_INFINITY };
        Value3 { truth, least: level(truth.unwrap_or(false)), greatest: level(truth.unwrap_or(true)) }
    }

    pub fn not(self) -> Value3 {
        Value3 { truth: self.truth.map(|x| !x), least: -self.greatest, greatest: -self.least }
    }

    pub fn and(self, other: Value3) -> Value3 {
        let truth = match (self.truth, other.truth) {
            (Some(false), _) | (_, Some(false)) => Some(false),
            (Some(true), Some(true)) => Some(true),
            _ => None,
        };
        Value3 { truth, least: self.least.min(other.least), greatest: self.greatest.min(other.greatest) }
    }

    pub fn or(self, other: Value3) -> Value3 {
        self.not().and(other.not()).not()
    }

    pub fn verdict(self) -> Verdict {
        match self.truth {
            Some(true) => Verdict::Satisfied,
            Some(false) => Verdict::Violated,
            None => Verdict::Inconclusive,
        }
    }

    pub fn robustness(self) -> Option<f64> {
        (self.least == self.greatest).then_some(self.least)
    }
}

pub const TRUE: Value3 = Value3 { truth: Some(true), least: f64::INFINITY, greatest: f64::INFINITY };
pub const FALSE: Value3 =
    Value3 { truth: Some(false), least: f64::NEG_INFINITY, greatest: f64::NEG_INFINITY };

/// All pieces; in dense time up to the time `end`.
pub fn pieces(model: TimeModel, trace: &[Timed], end: i64) -> Vec<Piece> {
    let events = trace.iter().enumerate();
    let at_event = |place, event| Piece { place, event, happens: true, is_span: false };
    match model {
        TimeModel::Steps => events.map(|(i, _)| at_event(i as i64, i)).collect(),
        TimeModel::Points => events.map(|(i, (time, _))| at_event(*time, i)).collect(),
        TimeModel::Dense => {
            let mut pieces = Vec::new();
            for now in trace[0].0..end {
                let here = trace.iter().enumerate().filter(|(_, (time, _))| *time == now);
                pieces.extend(here.map(|(i, _)| at_event(2 * now, i)));
                let event = trace.iter().take_while(|(time, _)| *time <= now).count() - 1;
                if trace[event].0 != now {
                    pieces.push(Piece { place: 2 * now, event, happens: false, is_span: false });
                }
                pieces.push(Piece { place: 2 * now + 1, event, happens: false, is_span: true });
            }
            pieces
        }
    }
}

/// Every truth of a specification on every piece; other nodes have arbitrary values.
pub fn define(spec: &Spec, model: TimeModel, trace: &[Timed], pieces: &[Piece]) -> Vec<Vec<Value3>> {
    let events: Vec<Event> = trace.iter().map(|(_, event)| event.clone()).collect();
    let fields = values(&spec.nodes, &events);
    let mut defined: Vec<Vec<Value3>> = Vec::new();
    for node in &spec.nodes {
        let column =
            (0..pieces.len()).map(|now| on_piece(model, trace, pieces, &fields, &defined, node, now));
        let column = column.collect();
        defined.push(column);
    }
    defined
}

/// Values of the leading nodes, fields of topic 0 and constants, at every event.
fn values(nodes: &[Expr], events: &[Event]) -> Vec<Vec<Option<Value>>> {
    let column = |node: &Expr| {
        let mut held = match node {
            Expr::Literal(value) => Some(value.clone()),
            _ => None,
        };
        let name = match node {
            Expr::Field { path, .. } => path.to_string(),
            _ => String::new(),
        };
        let after = |event: &Event| {
            let carried = event.fields.iter().find(|(key, _)| event.topic == 0 && *key == name);
            if let Some((_, content)) = carried {
                held = match content {
                    Content::Value(value) => Some(value.clone()),
                    _ => None,
                };
            }
            held.clone()
        };
        events.iter().map(after).collect()
    };
    nodes.iter().map(column).collect()
}

#[expect(clippy::too_many_lines, reason = "one arm for each operator")]
fn on_piece(
    model: TimeModel,
    trace: &[Timed],
    pieces: &[Piece],
    fields: &[Vec<Option<Value>>],
    defined: &[Vec<Value3>],
    node: &Expr,
    now: usize,
) -> Value3 {
    let piece = pieces[now];
    let at = |x: ExprId| defined[x.index()][now];
    let field = |x: ExprId| fields[x.index()][piece.event].clone();
    let scale = if model == TimeModel::Dense { 2 } else { 1 };
    let within = |Bounds { lower, upper }: Bounds, k: usize| {
        let distance = i128::from(piece.place - pieces[k].place);
        distance >= scale * i128::from(lower)
            && upper.is_none_or(|upper| distance <= scale * i128::from(upper))
    };
    let since = |bounds: Bounds, p: &dyn Fn(usize) -> Value3, q: &dyn Fn(usize) -> Value3| {
        let mut any = FALSE;
        let mut after = TRUE;
        for k in (0..=now).rev() {
            // Within an interval, part of it follows every witness except the current piece.
            let inside = if pieces[k].is_span && k < now { p(k) } else { TRUE };
            if within(bounds, k) {
                any = any.or(q(k).and(after).and(inside));
            }
            if pieces[k].is_span && k < now {
                // Up to the end of the interval, with `p` from there on.
                let distance = i128::from(piece.place - pieces[k + 1].place);
                let Bounds { lower, upper } = bounds;
                let is_far = distance >= 2 * i128::from(lower);
                if is_far && upper.is_none_or(|upper| distance < 2 * i128::from(upper)) {
                    any = any.or(q(k).and(after));
                }
            }
            after = after.and(p(k));
        }
        any
    };
    let until =
        |Bounds { lower, upper }: Bounds, p: &dyn Fn(usize) -> Value3, q: &dyn Fn(usize) -> Value3| {
            let mut any = FALSE;
            let mut before = TRUE;
            for (k, other) in pieces.iter().enumerate().skip(now) {
                // Within an interval, part of it precedes every witness except the current piece.
                let inside = if other.is_span && k > now { p(k) } else { TRUE };
                let distance = i128::from(other.place - piece.place);
                if distance >= scale * i128::from(lower) && distance <= scale * i128::from(upper.unwrap()) {
                    any = any.or(q(k).and(before).and(inside));
                }
                before = before.and(p(k));
            }
            any
        };
    match node {
        Expr::Literal(Value::Bool(x)) => Value3::of(Some(*x)),
        Expr::Field { value_type: ValueType::Bool, .. } => {
            let position = defined.len();
            match field(ExprId(position as u32)) {
                Some(Value::Bool(x)) => Value3::of(Some(x)),
                _ => Value3::of(None),
            }
        }
        Expr::Field { .. } | Expr::Literal(_) => FALSE,
        Expr::On(topic) => Value3::of(Some(piece.happens && trace[piece.event].1.topic == topic.0)),
        Expr::Compare(_, x, y) if x.index() >= TRUTHS => {
            let (x, y) = (at(*x), at(*y));
            x.not().or(y).and(x.or(y.not()))
        }
        Expr::Compare(comparison, x, y) => match (field(*x), field(*y)) {
            (Some(x), Some(y)) => compared(*comparison, &x, &y),
            _ => Value3::of(None),
        },
        Expr::Not(x) => at(*x).not(),
        Expr::And(x, y) => at(*x).and(at(*y)),
        Expr::Or(x, y) => at(*x).or(at(*y)),
        Expr::Definitely(x) => {
            let x = at(*x);
            Value3 { truth: Some(x.truth == Some(true)), least: x.least, greatest: x.least }
        }
        Expr::If(condition, x, y) => match at(*condition).truth {
            Some(true) => at(*x),
            Some(false) => at(*y),
            None => Value3::of(None),
        },
        Expr::Previously(x) => match now {
            _ if piece.is_span => at(*x),
            0 => FALSE,
            _ => defined[x.index()][now - 1],
        },
        Expr::Once(bounds, x) => since(*bounds, &|_| TRUE, &|k| defined[x.index()][k]),
        Expr::Historically(bounds, x) => since(*bounds, &|_| TRUE, &|k| defined[x.index()][k].not()).not(),
        Expr::Since(bounds, p, q) => since(*bounds, &|k| defined[p.index()][k], &|k| defined[q.index()][k]),
        Expr::Next(x) if model == TimeModel::Steps => {
            let one = Bounds { lower: 1, upper: Some(1) };
            until(one, &|_| TRUE, &|k| defined[x.index()][k])
        }
        Expr::Next(x) => defined[x.index()].get(now + 1).copied().unwrap_or(FALSE),
        Expr::Eventually(bounds, x) => until(*bounds, &|_| TRUE, &|k| defined[x.index()][k]),
        Expr::Always(bounds, x) => until(*bounds, &|_| TRUE, &|k| defined[x.index()][k].not()).not(),
        Expr::Until(bounds, p, q) => until(*bounds, &|k| defined[p.index()][k], &|k| defined[q.index()][k]),
        other => panic!("no definition here of {other:?}"),
    }
}

/// Extent to which a formula is known: last place, and number of pieces.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Known {
    pub place: i128,
    pub pieces: usize,
    /// Horizon of the future operators.
    pub horizon: i128,
}

pub fn known(spec: &Spec, model: TimeModel, pieces: &[Piece], end: i64) -> Vec<Known> {
    let unit = if model == TimeModel::Dense { 2 } else { 1 };
    let last = match model {
        TimeModel::Steps => pieces.len() as i128 - 1,
        TimeModel::Points => i128::from(end) - 1,
        TimeModel::Dense => 2 * i128::from(end) - 1,
    };
    let mut all: Vec<Known> = Vec::new();
    for node in &spec.nodes {
        let mut known = Known { place: last, pieces: pieces.len(), horizon: 0 };
        for operand in node.operands() {
            let of = match node {
                // It is false whatever the left operand is; the engine still waits for the right operand,
                // which may be the same node.
                Expr::Until(bounds, left, right)
                    if bounds.upper.unwrap() < bounds.lower && operand == *left && left != right =>
                {
                    continue;
                }
                _ => all[operand.index()],
            };
            known.place = known.place.min(of.place);
            known.pieces = known.pieces.min(of.pieces);
            known.horizon = known.horizon.max(of.horizon);
        }
        match node {
            Expr::Next(_) if model == TimeModel::Points => {
                let seen = &pieces[..known.pieces];
                known.place = seen.last().map_or(i128::MIN / 2, |piece| i128::from(piece.place) - 1);
                known.pieces = known.pieces.saturating_sub(1);
            }
            Expr::Next(_) => known = known.later(1, pieces),
            Expr::Eventually(bounds, _) | Expr::Always(bounds, _) | Expr::Until(bounds, ..) => {
                let upper = bounds.upper.unwrap();
                if upper >= bounds.lower {
                    known = known.later(unit * i128::from(upper), pieces);
                }
            }
            _ => {}
        }
        all.push(known);
    }
    all
}

impl Known {
    fn later(self, by: i128, pieces: &[Piece]) -> Known {
        let place = self.place - by;
        let within = pieces.iter().take_while(|piece| i128::from(piece.place) <= place).count();
        Known { place, horizon: self.horizon + by, pieces: within }
    }
}

pub fn is_ahead(nodes: &[Expr]) -> Vec<bool> {
    let mut ahead: Vec<bool> = Vec::new();
    for node in nodes {
        let own = matches!(node, Expr::Next(_) | Expr::Eventually(..) | Expr::Always(..) | Expr::Until(..));
        ahead.push(own || node.operands().any(|operand| ahead[operand.index()]));
    }
    ahead
}

/// Nodes from this number on are truths.
pub const TRUTHS: usize = 7;

fn compared(comparison: Comparison, x: &Value, y: &Value) -> Value3 {
    let (truth, margin) = match (x, y) {
        (Value::Int(x), Value::Int(y)) => {
            let margin = (i128::from(*y) - i128::from(*x)) as f64;
            (comparison.holds(-margin, 0.0), margin)
        }
        (Value::Time(x), Value::Time(y)) => {
            let margin = (i128::from(*y) - i128::from(*x)) as f64;
            (comparison.holds(-margin, 0.0), margin * 1e-9)
        }
        (Value::Float(x), Value::Float(y)) => (comparison.holds(*x, *y), if x == y { 0.0 } else { y - x }),
        other => panic!("{other:?}"),
    };
    let level = match comparison {
        Comparison::Less | Comparison::LessOrEqual if margin.is_nan() => f64::NEG_INFINITY,
        Comparison::Less | Comparison::LessOrEqual => margin,
        _ if margin.is_nan() => {
            if comparison == Comparison::NotEqual {
                f64::INFINITY
            } else {
                f64::NEG_INFINITY
            }
        }
        Comparison::Greater | Comparison::GreaterOrEqual => -margin,
        Comparison::Equal => -margin.abs(),
        Comparison::NotEqual => margin.abs(),
    };
    Value3 { truth: Some(truth), least: level, greatest: level }
}
