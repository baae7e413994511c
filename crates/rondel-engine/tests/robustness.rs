//! Truth and robustness are what the definitions say, at every row and at every time in between.

#![allow(clippy::panic, clippy::unwrap_used)]

mod definition;

use std::sync::Arc;

use definition::drive::config;
use definition::random::{bounds, cuts};
use definition::{Content, Event, spec, write};
use proptest::prelude::*;
use rondel_engine::{Monitor, Program, Report};
use rondel_event::{Block, Comparison, Path, Timestamp, TopicId, Value, ValueType, Verdict};
use rondel_spec::{Bounds, Expr, ExprId, Spec, TimeModel};

/// A message, and when it comes.
type Timed = (i64, Event);

/// An instant with an event or without, or the open span that follows: where it is, and the event before.
#[derive(Clone, Copy, Debug)]
struct Piece {
    /// A position, a time, or, if time is dense, a number of half nanoseconds.
    place: i64,
    event: usize,
    /// Whether the event is now.
    happens: bool,
    is_span: bool,
}

/// What a formula is: its truth, and the least and the greatest that its robustness can be.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Value3 {
    truth: Option<bool>,
    least: f64,
    greatest: f64,
}

impl Value3 {
    fn of(truth: Option<bool>) -> Value3 {
        let level = |truth| if truth { f64::INFINITY } else { f64::NEG_INFINITY };
        Value3 { truth, least: level(truth.unwrap_or(false)), greatest: level(truth.unwrap_or(true)) }
    }

    fn not(self) -> Value3 {
        Value3 { truth: self.truth.map(|x| !x), least: -self.greatest, greatest: -self.least }
    }

    fn and(self, other: Value3) -> Value3 {
        let truth = match (self.truth, other.truth) {
            (Some(false), _) | (_, Some(false)) => Some(false),
            (Some(true), Some(true)) => Some(true),
            _ => None,
        };
        Value3 { truth, least: self.least.min(other.least), greatest: self.greatest.min(other.greatest) }
    }

    fn or(self, other: Value3) -> Value3 {
        self.not().and(other.not()).not()
    }

    fn verdict(self) -> Verdict {
        match self.truth {
            Some(true) => Verdict::Satisfied,
            Some(false) => Verdict::Violated,
            None => Verdict::Inconclusive,
        }
    }

    fn robustness(self) -> Option<f64> {
        (self.least == self.greatest).then_some(self.least)
    }
}

const TRUE: Value3 = Value3 { truth: Some(true), least: f64::INFINITY, greatest: f64::INFINITY };
const FALSE: Value3 = Value3 { truth: Some(false), least: f64::NEG_INFINITY, greatest: f64::NEG_INFINITY };

/// All pieces, up to the time `end` if time is dense.
fn pieces(model: TimeModel, trace: &[Timed], end: i64) -> Vec<Piece> {
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

/// Every truth of a specification on every piece; of other nodes anything.
fn define(spec: &Spec, model: TimeModel, trace: &[Timed], pieces: &[Piece]) -> Vec<Vec<Value3>> {
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

/// What the fields of topic 0 that come first are at every event, and constants likewise.
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
            // Within a span there is more of it after every witness but the present.
            let inside = if pieces[k].is_span && k < now { p(k) } else { TRUE };
            if within(bounds, k) {
                any = any.or(q(k).and(after).and(inside));
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
                // Within a span there is more of it before every witness but the present.
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

/// Up to where a formula is known: to this place, and so many pieces.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Known {
    place: i128,
    pieces: usize,
    /// How far it looks ahead.
    horizon: i128,
}

fn known(spec: &Spec, model: TimeModel, pieces: &[Piece], end: i64) -> Vec<Known> {
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
                // It is false, whatever its left operand is.
                Expr::Until(bounds, left, _) if bounds.upper.unwrap() < bounds.lower && operand == *left => {
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

fn is_ahead(nodes: &[Expr]) -> Vec<bool> {
    let mut ahead: Vec<bool> = Vec::new();
    for node in nodes {
        let own = matches!(node, Expr::Next(_) | Expr::Eventually(..) | Expr::Always(..) | Expr::Until(..));
        ahead.push(own || node.operands().any(|operand| ahead[operand.index()]));
    }
    ahead
}

/// From here on nodes are truths.
const TRUTHS: usize = 7;

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

/// Nodes that are values come first, so that their numbers are those of the definitions.
fn formulas() -> impl Strategy<Value = Vec<Expr>> {
    let field = |name: &'static str, value_type| Expr::Field {
        topic: TopicId(0),
        path: Path::keys([name]),
        value_type,
    };
    let mut nodes = vec![
        field("f", ValueType::Float),
        field("f2", ValueType::Float),
        field("i", ValueType::Int),
        field("t", ValueType::Time),
        Expr::Literal(Value::Float(0.5)),
        Expr::Literal(Value::Int(1)),
        Expr::Literal(Value::Time(3)),
        field("b", ValueType::Bool),
        field("b2", ValueType::Bool),
    ];
    nodes.extend([Expr::On(TopicId(0)), Expr::On(TopicId(1))]);
    let id = ExprId;
    for comparison in [Comparison::Less, Comparison::GreaterOrEqual, Comparison::Equal, Comparison::NotEqual]
    {
        nodes.push(Expr::Compare(comparison, id(0), id(4)));
        nodes.push(Expr::Compare(comparison, id(0), id(1)));
        nodes.push(Expr::Compare(comparison, id(2), id(5)));
        nodes.push(Expr::Compare(comparison, id(3), id(6)));
    }
    let numbers = nodes.len() as u32;
    let operation = (0..24_u8, [any::<u32>(), any::<u32>(), any::<u32>()], bounds(), any::<bool>());
    proptest::collection::vec(operation, 1..12).prop_map(move |operations| {
        let mut nodes = nodes.clone();
        for (kind, picks, bounds, recent) in operations {
            let len = nodes.len() as u32;
            // From truths (number 7 on), and mostly from the numeric or the latest.
            let pick = |r: u32| match (recent, r % 4) {
                (true, 0..=2) => ExprId(len - 1 - r / 4 % 4),
                (false, 0..=1) => ExprId(11 + r / 4 % (numbers - 11)),
                _ => ExprId(7 + r / 4 % (len - 7)),
            };
            let [x, y, z] = picks.map(pick);
            let ahead = is_ahead(&nodes);
            let looks_ahead = ahead[x.index()] || ahead[y.index()];
            // Mostly so short that the end is seen.
            let lower = bounds.lower % 6;
            let upper = lower + bounds.upper.unwrap_or(3) % 7;
            let later = match picks[2] % 12 {
                0 => Bounds { lower, upper: Some(bounds.upper.unwrap_or(u64::MAX)) },
                _ => Bounds { lower, upper: Some(upper) },
            };
            // The past remembers nothing that is still open.
            let kind = if looks_ahead && (5..12).contains(&kind) { kind + 9 } else { kind };
            nodes.push(match kind {
                0 => Expr::Not(x),
                1 => Expr::And(x, y),
                2 => Expr::Or(x, y),
                3 => Expr::Definitely(x),
                4 => Expr::If(x, y, z),
                12 => Expr::Compare(Comparison::Equal, x, y),
                13 => Expr::Next(x),
                14..=16 => Expr::Eventually(later, x),
                17 => Expr::Always(later, x),
                18.. => Expr::Until(later, x, y),
                5 => Expr::Previously(x),
                6 | 7 => Expr::Once(bounds, x),
                8 => Expr::Historically(bounds, x),
                _ => Expr::Since(bounds, x, y),
            });
        }
        nodes
    })
}

fn trace() -> impl Strategy<Value = Vec<Timed>> {
    let float = prop_oneof![
        9 => (-9..9_i8).prop_map(|x| f64::from(x) / 8.0).boxed(),
        1 => proptest::sample::select(vec![f64::NAN, f64::INFINITY, f64::NEG_INFINITY, f64::MAX]).boxed(),
    ];
    let int = prop_oneof![9 => (-3..4_i64).boxed(), 1 => Just(i64::MIN).boxed(), 1 => Just(i64::MAX).boxed()];
    let field = |value: BoxedStrategy<Value>| {
        let content = prop_oneof![12 => value.prop_map(Content::Value), 1 => Just(Content::Null)];
        proptest::option::weighted(0.7, content)
    };
    let float = field(float.prop_map(Value::Float).boxed());
    let int = field(int.prop_map(Value::Int).boxed());
    let time = field((0..6_i64).prop_map(Value::Time).boxed());
    let bool = || field(any::<bool>().prop_map(Value::Bool).boxed());
    let later = prop_oneof![2 => 0..3_i64, 1 => 0..9_i64];
    let event = (later, 0..2_u32, (float.clone(), float, int, time, bool(), bool()));
    proptest::collection::vec(event, 1..25).prop_map(|events| {
        let mut now = 5;
        let timed = |(later, topic, (f, f2, i, t, b, b2))| {
            now += later;
            let fields = [("f", f), ("f2", f2), ("i", i), ("t", t), ("b", b), ("b2", b2)];
            let fields = fields.into_iter().filter_map(|(name, content)| Some((name, content?))).collect();
            (now, Event { topic, fields })
        };
        events.into_iter().map(timed).collect()
    })
}

/// All reports of a run, up to a time.
fn run(spec: &Spec, trace: &[Timed], cuts: &[usize], end: i64) -> Vec<Report> {
    let program = Arc::new(Program::compile(spec).unwrap());
    let mut monitor = Monitor::new(program.clone());
    monitor.report_every(true);
    let mut block = Block::new(program.layout());
    let mut reports = Vec::new();
    let mut rest = trace;
    for (round, &len) in cuts.iter().cycle().enumerate() {
        let (now, later) = rest.split_at(len.min(rest.len()));
        if round % 3 == 1 {
            // Nothing depends on a snapshot in between, or on time that passes in parts.
            monitor = Monitor::restore(program.clone(), &monitor.snapshot()).unwrap();
            monitor.report_every(true);
            for to in now[0].0 - 2..=now[0].0 {
                advance(&mut monitor, to, &mut reports);
            }
        }
        block.clear();
        for (time, event) in now {
            write(&mut block, program.projections(), event, *time);
        }
        reports.extend_from_slice(monitor.step(&block));
        rest = later;
        if rest.is_empty() {
            break;
        }
    }
    advance(&mut monitor, end, &mut reports);
    reports.extend_from_slice(monitor.end());
    reports
}

/// Lets time pass, which brings nothing before it was said to.
fn advance(monitor: &mut Monitor, to: i64, reports: &mut Vec<Report>) {
    let to = Timestamp::from_nanos(to);
    let due = monitor.next_deadline();
    let brought = monitor.advance(to);
    assert!(brought.iter().all(|report| !report.changed || due.is_some_and(|due| due <= to)), "{due:?}");
    reports.extend_from_slice(brought);
    assert!(monitor.next_deadline().is_none_or(|next| next > to || brought_nothing_yet(monitor)));
}

/// Time passes only after the first event.
fn brought_nothing_yet(monitor: &Monitor) -> bool {
    monitor.position() == 0
}

/// What is said of a property that looks ahead: of every event, and of what is other in between, in this order; and
/// when.
fn agree_later(
    model: TimeModel,
    trace: &[Timed],
    pieces: &[Piece],
    (expected, known): (&[Value3], Known),
    found: &[&Report],
) -> Result<(), TestCaseError> {
    let mut found = found.iter();
    let mut last = None;
    for (i, (piece, expected)) in pieces.iter().zip(expected).enumerate() {
        let at = match model {
            TimeModel::Dense => piece.place >> 1,
            _ => trace[piece.event].0,
        };
        let is_known = i < known.pieces;
        let expected = if is_known { *expected } else { Value3::of(None) };
        let expected = (expected.verdict(), expected.robustness());
        if !piece.happens && last == Some(expected.0) {
            continue;
        }
        last = Some(expected.0);
        let Some(report) = found.next() else { panic!("{expected:?} is not reported of {piece:?}") };
        let about = report.about.unwrap_or(report.time).as_nanos();
        prop_assert_eq!(
            ((report.verdict, report.robustness), about),
            (expected, at),
            "{:?} {:?}",
            piece,
            report
        );
        if is_known {
            let time = match model {
                TimeModel::Dense => Some(((i128::from(piece.place) + known.horizon) >> 1) as i64),
                TimeModel::Steps => Some(trace[i + known.horizon as usize].0),
                TimeModel::Points => None,
            };
            prop_assert!(time.is_none_or(|time| report.time.as_nanos() == time), "{:?} {:?}", piece, report);
        }
    }
    prop_assert_eq!(found.next(), None);
    Ok(())
}

proptest! {
    #![proptest_config(config(2000))]

    #[test]
    fn is_what_the_definitions_say(
        nodes in formulas(),
        trace in trace(),
        cuts in cuts(),
        model in proptest::sample::select(vec![TimeModel::Steps, TimeModel::Points, TimeModel::Dense]),
    ) {
        let count = nodes.len() as u32;
        let no_next = |node| match node {
            Expr::Next(x) if model == TimeModel::Dense => Expr::Not(x),
            node => node,
        };
        let nodes = nodes.into_iter().map(no_next).collect();
        let mut spec = spec(2, nodes, (count - 3..count).map(ExprId));
        for property in &mut spec.properties {
            property.time = model;
            property.robust = true;
        }
        let end = trace.last().unwrap().0 + 25;
        let pieces = pieces(model, &trace, end);
        let defined = define(&spec, model, &trace, &pieces);
        let reports = run(&spec, &trace, &cuts, end);
        for report in &reports {
            let verdict = report.robustness.map(|level| {
                if level > 0.0 { Verdict::Satisfied } else if level < 0.0 { Verdict::Violated } else { report.verdict }
            });
            prop_assert!(verdict.is_none_or(|verdict| verdict == report.verdict), "{:?}", report);
        }
        let (ahead, known) = (is_ahead(&spec.nodes), known(&spec, model, &pieces, end));
        for (i, property) in spec.properties.iter().enumerate() {
            let expected = &defined[property.formula.index()];
            if ahead[property.formula.index()] {
                let found: Vec<&Report> = reports.iter().filter(|r| r.property as usize == i).collect();
                agree_later(model, &trace, &pieces, (expected, known[property.formula.index()]), &found)?;
                continue;
            }
            let mut of_this = reports.iter().filter(|report| report.property as usize == i).peekable();
            let mut last = None;
            for (piece, expected) in pieces.iter().zip(expected) {
                let time = match model { TimeModel::Dense => piece.place >> 1, _ => trace[piece.event].0 };
                let expected = (expected.verdict(), expected.robustness());
                if piece.happens {
                    let report = of_this.next().unwrap();
                    prop_assert_eq!((report.row.is_some(), report.step), (true, piece.event as u64));
                    prop_assert_eq!((report.verdict, report.robustness), expected, "{:?} at {:?}", model, piece);
                    last = Some(expected.0);
                } else {
                    let here = |report: &&&Report| report.row.is_none() && report.time.as_nanos() == time;
                    if Some(expected.0) != last {
                        let Some(report) = of_this.next_if(|report| here(&report)) else {
                            panic!("{expected:?} is not reported of {piece:?}, but {:?}", of_this.peek());
                        };
                        prop_assert_eq!((report.verdict, report.robustness), expected, "{:?}", piece);
                        last = Some(expected.0);
                    }
                }
            }
            prop_assert_eq!(of_this.next(), None);
        }
    }
}
