//! Linear interpolation between messages, with exact fractions.

use std::cmp::Ordering;
use std::collections::BTreeSet;

use rondel_event::{Comparison, Path, Read, TopicId, Value, ValueType};
use rondel_spec::{BinaryOp, Expr, ExprId, Spec, UnaryOp};

use super::timeline::{Clock, Sample};
use super::truth::Truth;
use super::{Timed, decode};

/// A fraction with a positive denominator.
#[derive(Clone, Copy, Debug)]
struct Ratio(i128, i128);

impl Ratio {
    fn new(n: i128, d: i128) -> Ratio {
        let (mut a, mut b) = (n.abs(), d.abs());
        while b != 0 {
            (a, b) = (b, a % b);
        }
        Ratio(n / a.max(1) * d.signum(), d / a.max(1) * d.signum())
    }

    fn plus(self, y: Ratio) -> Ratio {
        Ratio::new(self.0 * y.1 + y.0 * self.1, self.1 * y.1)
    }

    fn times(self, y: Ratio) -> Ratio {
        Ratio::new(self.0 * y.0, self.1 * y.1)
    }

    fn minus(self, y: Ratio) -> Ratio {
        self.plus(Ratio(-y.0, y.1))
    }

    fn over(self, y: Ratio) -> Ratio {
        self.times(Ratio::new(y.1 * y.0.signum(), y.0.abs()))
    }

    fn ceil(self) -> i128 {
        -(-self.0).div_euclid(self.1)
    }

    fn order(self) -> Ordering {
        self.0.cmp(&0)
    }
}

/// Value of a field at a time not before the event `latest`.
fn field(
    trace: &[Timed],
    topic: TopicId,
    path: &Path,
    of: ValueType,
    latest: usize,
    at: Ratio,
) -> Option<Ratio> {
    let read = |timed: &Timed| {
        let content = timed.event.get(topic, path)?;
        Some((
            timed.time,
            match decode(content, &Read::Value(of)) {
                Some(Value::Int(x)) => Some(Ratio(x.into(), 1)),
                Some(Value::Float(x)) if (x * 1024.0).fract() == 0.0 => {
                    Some(Ratio::new((x * 1024.0) as i128, 1024))
                }
                Some(other) => panic!("{other:?} is no simple number"),
                None => None,
            },
        ))
    };
    let (time, value) = trace[..=latest].iter().rev().find_map(read)?;
    let value = value?;
    let since = at.minus(Ratio(time.into(), 1));
    if since.order().is_eq() {
        return Some(value);
    }
    let (next, end) = trace[latest + 1..].iter().find_map(read)?;
    let part = since.over(Ratio(i128::from(next) - i128::from(time), 1));
    Some(value.plus(end?.minus(value).times(part)))
}

fn number(spec: &Spec, id: ExprId, trace: &[Timed], latest: usize, at: Ratio) -> Option<Ratio> {
    let of = |id: &ExprId| number(spec, *id, trace, latest, at);
    Some(match &spec.nodes[id.index()] {
        Expr::Literal(Value::Int(x)) => Ratio(i128::from(*x), 1),
        Expr::Literal(Value::Float(x)) if (x * 1024.0).fract() == 0.0 => {
            Ratio::new((x * 1024.0) as i128, 1024)
        }
        Expr::Field { topic, path, value_type } => field(trace, *topic, path, *value_type, latest, at)?,
        Expr::ToFloat(x) => of(x)?,
        Expr::Unary(UnaryOp::Negate, x) => Ratio(0, 1).minus(of(x)?),
        Expr::Binary(op, x, y) => {
            let (x, y) = (of(x)?, of(y)?);
            match op {
                BinaryOp::Add => x.plus(y),
                BinaryOp::Subtract => x.minus(y),
                BinaryOp::Multiply => x.times(y),
                BinaryOp::Divide => x.over(y),
                other => panic!("{other:?} is not straight"),
            }
        }
        other => panic!("{other:?} is not straight"),
    })
}

/// Int and float fields in a node.
pub fn fields(spec: &Spec, id: ExprId, out: &mut BTreeSet<(TopicId, Path)>) {
    let expr = &spec.nodes[id.index()];
    if let Expr::Field { topic, path, value_type: ValueType::Int | ValueType::Float } = expr {
        out.insert((*topic, path.clone()));
    }
    // Functions of messages, such as `changed`, do not depend on values between them.
    if !matches!(expr, Expr::Prev(_)) && !is_change(spec, expr) {
        expr.operands().for_each(|operand| fields(spec, operand, out));
    }
}

fn is_change(spec: &Spec, expr: &Expr) -> bool {
    matches!(expr, Expr::Compare(_, _, y) if matches!(spec.nodes[y.index()], Expr::Prev(_)))
}

/// Whether a comparison has interpolated operands.
pub fn is_interpolated(spec: &Spec, expr: &Expr) -> bool {
    let Expr::Compare(_, x, y) = expr else { return false };
    let mut found = BTreeSet::new();
    [x, y].into_iter().for_each(|id| fields(spec, *id, &mut found));
    let is_number = matches!(spec.value_type(*x), ValueType::Int | ValueType::Float);
    is_number && !is_change(spec, expr) && !found.is_empty()
}

fn difference(spec: &Spec, expr: &Expr, trace: &[Timed], latest: usize, at: Ratio) -> Option<Ordering> {
    let Expr::Compare(_, x, y) = expr else { panic!("no comparison") };
    let (x, y) = (number(spec, *x, trace, latest, at)?, number(spec, *y, trace, latest, at)?);
    Some(x.minus(y).order())
}

/// A comparison at a sample. Instants are whole nanoseconds; a crossing between two of them counts as the
/// later one. An interval has the truth of its beginning, or, if both operands are equal there, the truth
/// right after it.
pub fn compare(spec: &Spec, expr: &Expr, trace: &[Timed], sample: Sample) -> Truth {
    let Expr::Compare(op, ..) = expr else { panic!("no comparison") };
    let at = |clock: Clock| difference(spec, expr, trace, sample.latest, Ratio::new(clock, 2));
    let order = if sample.is_span() {
        let begins = at(sample.from).filter(|order| order.is_ne());
        at(sample.at()).map(|inside| begins.unwrap_or(inside))
    } else {
        at(sample.from)
    };
    order.map_or(Truth::UNKNOWN, |order| {
        Truth::known(match op {
            Comparison::Equal => order.is_eq(),
            Comparison::NotEqual => order.is_ne(),
            Comparison::Less => order.is_lt(),
            Comparison::LessOrEqual => order.is_le(),
            Comparison::Greater => order.is_gt(),
            Comparison::GreaterOrEqual => order.is_ge(),
        })
    })
}

/// Times between events at which comparisons change, if a property is interpolated.
pub fn crossings(spec: &Spec, trace: &[Timed]) -> BTreeSet<Clock> {
    let mut crossings = BTreeSet::new();
    if !spec.properties.iter().any(|property| property.linear) {
        return crossings;
    }
    for expr in spec.nodes.iter().filter(|expr| is_interpolated(spec, expr)) {
        let Expr::Compare(_, x, y) = expr else { continue };
        for latest in 0..trace.len().saturating_sub(1) {
            let (from, to) = (trace[latest].time.into(), trace[latest + 1].time.into());
            let at = |time: Clock| {
                let of = |id: &ExprId| number(spec, *id, trace, latest, Ratio(time, 1));
                Some(of(x)?.minus(of(y)?))
            };
            if let (true, Some(start), Some(end)) = (from < to, at(from), at(to))
                && start.order() == end.order().reverse()
                && start.order().is_ne()
            {
                let part = start.over(start.minus(end));
                let at = Ratio(from, 1).plus(Ratio(to - from, 1).times(part));
                crossings.insert(2 * at.ceil());
            }
        }
    }
    crossings
}

/// Time at which a past formula is certain at a time and just after it, if it waits for the next numbers in
/// these fields.
pub fn certain(fields: &BTreeSet<(TopicId, Path)>, trace: &[Timed], now: i64, about: i64) -> i64 {
    let is_number = |timed: &Timed, (topic, path): &(TopicId, Path)| {
        let content = timed.event.get(*topic, path)?;
        Some(decode(content, &Read::Value(ValueType::Float)).is_some())
    };
    // The earliest of the last numbers.
    let bound = |seen: &[Timed]| {
        let of_field = |field: &(TopicId, Path)| {
            let last = seen.iter().rev().find_map(|timed| Some((timed.time, is_number(timed, field)?)))?;
            last.1.then_some(last.0)
        };
        fields.iter().filter_map(of_field).min()
    };
    let here = trace.partition_point(|timed| timed.time <= about);
    if bound(&trace[..here]).is_none() {
        return about;
    }
    let known = |seen: &usize| bound(&trace[..*seen]).is_none_or(|bound| bound > about);
    let first = (here + 1..=trace.len()).find(known);
    first.map_or(now, |seen| trace[seen - 1].time).max(about)
}
