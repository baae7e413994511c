//! Specifications and traces written by hand: `b.once(0, 5, b.on(0))` over `"0:a 5:b{p x=3}"`.

use std::cell::RefCell;

use rondel_event::{Comparison, Path, TopicId, Value, ValueType, Verdict};
use rondel_spec::{Aggregate, Bounds, Expr, ExprId, Property, Spec, TimeModel};

use super::outcome::{Spot, at_events, changes};
use super::{Content, Event, Timed, spec};

/// Builder of the nodes of a specification.
#[derive(Default)]
pub struct Build {
    pub nodes: RefCell<Vec<Expr>>,
}

/// No upper bound.
pub const EVER: u64 = u64::MAX;

fn bounds(lower: u64, upper: u64) -> Bounds {
    Bounds { lower, upper: (upper != EVER).then_some(upper) }
}

impl Build {
    pub fn add(&self, expr: Expr) -> ExprId {
        let mut nodes = self.nodes.borrow_mut();
        nodes.push(expr);
        ExprId(nodes.len() as u32 - 1)
    }

    pub fn on(&self, topic: u32) -> ExprId {
        self.add(Expr::On(TopicId(topic)))
    }

    fn field(&self, topic: u32, name: &str, value_type: ValueType) -> ExprId {
        self.add(Expr::Field { topic: TopicId(topic), path: Path::keys([name]), value_type })
    }

    /// The boolean `p` of topic a.
    pub fn p(&self) -> ExprId {
        self.field(0, "p", ValueType::Bool)
    }

    /// The boolean `q` of topic a.
    pub fn q(&self) -> ExprId {
        self.field(0, "q", ValueType::Bool)
    }

    /// The integer `x` of a topic.
    pub fn x(&self, topic: u32) -> ExprId {
        self.field(topic, "x", ValueType::Int)
    }

    pub fn int(&self, x: i64) -> ExprId {
        self.add(Expr::Literal(Value::Int(x)))
    }

    pub fn ns(&self, x: i64) -> ExprId {
        self.add(Expr::Literal(Value::Duration(x)))
    }

    pub fn float(&self, x: f64) -> ExprId {
        self.add(Expr::Literal(Value::Float(x)))
    }

    pub fn compare(&self, op: Comparison, x: ExprId, y: ExprId) -> ExprId {
        self.add(Expr::Compare(op, x, y))
    }

    pub fn equals(&self, x: ExprId, y: ExprId) -> ExprId {
        self.compare(Comparison::Equal, x, y)
    }

    pub fn at_most(&self, x: ExprId, y: ExprId) -> ExprId {
        self.compare(Comparison::LessOrEqual, x, y)
    }

    pub fn not(&self, x: ExprId) -> ExprId {
        self.add(Expr::Not(x))
    }

    pub fn and(&self, x: ExprId, y: ExprId) -> ExprId {
        self.add(Expr::And(x, y))
    }

    pub fn or(&self, x: ExprId, y: ExprId) -> ExprId {
        self.add(Expr::Or(x, y))
    }

    pub fn prev(&self, x: ExprId) -> ExprId {
        self.add(Expr::Prev(x))
    }

    pub fn previously(&self, x: ExprId) -> ExprId {
        self.add(Expr::Previously(x))
    }

    pub fn once(&self, lower: u64, upper: u64, x: ExprId) -> ExprId {
        self.add(Expr::Once(bounds(lower, upper), x))
    }

    pub fn historically(&self, lower: u64, upper: u64, x: ExprId) -> ExprId {
        self.add(Expr::Historically(bounds(lower, upper), x))
    }

    pub fn since(&self, x: ExprId, lower: u64, upper: u64, y: ExprId) -> ExprId {
        self.add(Expr::Since(bounds(lower, upper), x, y))
    }

    pub fn next(&self, x: ExprId) -> ExprId {
        self.add(Expr::Next(x))
    }

    pub fn eventually(&self, lower: u64, upper: u64, x: ExprId) -> ExprId {
        self.add(Expr::Eventually(bounds(lower, upper), x))
    }

    pub fn always(&self, lower: u64, upper: u64, x: ExprId) -> ExprId {
        self.add(Expr::Always(bounds(lower, upper), x))
    }

    pub fn until(&self, x: ExprId, lower: u64, upper: u64, y: ExprId) -> ExprId {
        self.add(Expr::Until(bounds(lower, upper), x, y))
    }

    pub fn age(&self, topic: u32) -> ExprId {
        self.add(Expr::Age(TopicId(topic)))
    }

    pub fn latency(&self, topic: u32) -> ExprId {
        self.add(Expr::Latency(TopicId(topic)))
    }

    pub fn jitter(&self, topic: u32) -> ExprId {
        self.add(Expr::Jitter(TopicId(topic)))
    }

    /// An aggregate over the messages of topic a.
    pub fn window(&self, aggregate: Aggregate, over: u64, operand: Option<ExprId>) -> ExprId {
        self.add(Expr::Window { aggregate, over, operand, topics: vec![TopicId(0)] })
    }

    /// A specification of topics a, b, c with this one property.
    pub fn spec(self, model: TimeModel, formula: ExprId) -> Spec {
        let property = Property { time: model, ..Property::new("p", formula) };
        Spec { properties: vec![property], ..spec(3, self.nodes.into_inner(), []) }
    }
}

/// Parses messages: `time:topic{fields}` or `time<arrival:topic{fields}`, separated by spaces. A field is
/// `p`, `!p`, `x=3`, `x=word` or `x=null`; fields are separated by commas. Times may have a unit: `3y`, `2s`.
pub fn trace(text: &str) -> Vec<Timed> {
    text.split_whitespace().map(message).collect()
}

fn message(text: &str) -> Timed {
    let (times, rest) = text.split_once(':').unwrap();
    let (time_text, arrival) = times.split_once('<').map_or((times, None), |(t, a)| (t, Some(time(a))));
    let (topic, fields) = rest.split_once('{').unwrap_or((rest, "}"));
    let fields = fields.trim_end_matches('}').split(',').filter(|field| !field.is_empty());
    let topic = u32::from(topic.as_bytes()[0] - b'a');
    Timed { time: time(time_text), arrival, event: Event { topic, fields: fields.map(field).collect() } }
}

fn field(text: &str) -> (&'static str, Content) {
    let names = ["p", "q", "x", "k", "l"];
    let name = |name: &str| *names.iter().find(|n| **n == name).unwrap();
    let bool = |x| Content::Value(Value::Bool(x));
    match (text.split_once('='), text.strip_prefix('!')) {
        (Some((n, "null")), _) => (name(n), Content::Null),
        (Some((n, value)), _) => {
            let value = value.parse().map_or_else(|_| Value::String(value.into()), Value::Int);
            (name(n), Content::Value(value))
        }
        (None, Some(n)) => (name(n), bool(false)),
        (None, None) => (name(text), bool(true)),
    }
}

pub const SECOND: i64 = 1_000_000_000;
pub const YEAR: i64 = 365 * 86_400 * SECOND;

pub fn time(text: &str) -> i64 {
    let (digits, unit) = match text.as_bytes()[text.len() - 1] {
        b's' => (&text[..text.len() - 1], SECOND),
        b'y' => (&text[..text.len() - 1], YEAR),
        _ => (text, 1),
    };
    digits.parse::<i64>().unwrap() * unit
}

pub fn letter(verdict: Option<Verdict>) -> char {
    match verdict {
        Some(Verdict::Satisfied) => 'T',
        Some(Verdict::Violated) => 'F',
        Some(Verdict::Inconclusive) => '?',
        None => '.',
    }
}

/// `"T F ?"`: the verdicts at the events.
pub fn show_events(spots: &[Spot]) -> String {
    let letters: Vec<String> = at_events(spots).into_iter().map(|v| letter(v).to_string()).collect();
    letters.join(" ")
}

/// `"0 T, 5+ F"`: true from 0 to 5, both included, then false.
pub fn show_changes(spots: &[Spot]) -> String {
    let show = |spot: &Spot| {
        let (plus, letter) = (if spot.after { "+" } else { "" }, letter(spot.verdict));
        match (spot.time % YEAR, spot.time % SECOND) {
            (0, _) if spot.time != 0 => format!("{}y{plus} {letter}", spot.time / YEAR),
            (_, 0) if spot.time != 0 => format!("{}s{plus} {letter}", spot.time / SECOND),
            _ => format!("{}{plus} {letter}", spot.time),
        }
    };
    changes(spots).iter().map(show).collect::<Vec<String>>().join(", ")
}
