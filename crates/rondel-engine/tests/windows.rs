//! Windows, ages, latencies and jitters agree with the definitions, in every time model.

#![allow(clippy::panic, clippy::unwrap_used)]

use crate::definition;

use std::sync::Arc;

use definition::quantity;
use definition::random::cuts;
use definition::{Content, Event, Timed, spec, write};
use proptest::prelude::*;
use proptest::test_runner::FileFailurePersistence;
use rondel_engine::{Monitor, Program};
use rondel_event::{Block, Comparison, Path, Timestamp, TopicId, Value, ValueType, Verdict};
use rondel_spec::{Aggregate, Expr, ExprId, Spec, TimeModel};

const MODELS: [TimeModel; 3] = [TimeModel::Steps, TimeModel::Points, TimeModel::Dense];
const OPERATORS: [Comparison; 6] = [
    Comparison::Less,
    Comparison::LessOrEqual,
    Comparison::Greater,
    Comparison::GreaterOrEqual,
    Comparison::Equal,
    Comparison::NotEqual,
];

fn trace() -> impl Strategy<Value = Vec<Timed>> {
    let number = prop_oneof![
        12 => (-4..4_i64).boxed(),
        1 => proptest::sample::select(vec![i64::MAX, i64::MIN]).boxed(),
    ];
    let float = prop_oneof![
        12 => (-9..9_i8).prop_map(|x| f64::from(x) / 8.0).boxed(),
        1 => proptest::sample::select(vec![f64::NAN, f64::INFINITY, -0.0]).boxed(),
    ];
    let field = |value: BoxedStrategy<Value>| {
        let content = prop_oneof![9 => value.prop_map(Content::Value), 1 => Just(Content::Null)];
        proptest::option::weighted(0.8, content)
    };
    let fields = (
        field(number.prop_map(Value::Int).boxed()),
        field(float.prop_map(Value::Float).boxed()),
        field(any::<bool>().prop_map(Value::Bool).boxed()),
    );
    let later = prop_oneof![3 => 0..3_i64, 1 => 0..12_i64];
    let event = (later, 0..2_u32, proptest::option::of(-3..6_i64), fields);
    proptest::collection::vec(event, 1..60).prop_map(|events| {
        let mut time = 5;
        let timed = |(later, topic, latency, (i, f, b)): (i64, u32, Option<i64>, _)| {
            time += later;
            let fields: [(&'static str, Option<Content>); 3] = [("i", i), ("f", f), ("b", b)];
            let fields = fields.into_iter().filter_map(|(name, content)| Some((name, content?))).collect();
            Timed { time, arrival: latency.map(|latency| time + latency), event: Event { topic, fields } }
        };
        events.into_iter().map(timed).collect()
    })
}

/// Fields of topic 0, measurements of them, and comparisons of these with constants.
fn measurements(model: TimeModel, over: u64, all_topics: bool) -> (Spec, Vec<Expr>) {
    let field = |name, value_type| Expr::Field { topic: TopicId(0), path: Path::keys([name]), value_type };
    let mut nodes =
        vec![field("i", ValueType::Int), field("f", ValueType::Float), field("b", ValueType::Bool)];
    let (i, f, b) = (ExprId(0), ExprId(1), ExprId(2));
    let topics = if all_topics { vec![TopicId(0), TopicId(1)] } else { vec![TopicId(0)] };
    let window = |aggregate, operand| Expr::Window { aggregate, over, operand, topics: topics.clone() };
    let mut measured = vec![window(Aggregate::Count, None), window(Aggregate::Count, Some(b))];
    for x in [i, f] {
        for aggregate in [Aggregate::Sum, Aggregate::Mean, Aggregate::Min, Aggregate::Max] {
            measured.push(window(aggregate, Some(x)));
        }
    }
    let wide = ExprId(nodes.len() as u32);
    nodes.push(Expr::ToFloat(i));
    for x in [i, f] {
        for aggregate in [Aggregate::Distinct, Aggregate::First, Aggregate::Last] {
            measured.push(window(aggregate, Some(x)));
        }
    }
    for x in [wide, f] {
        let percentiles = [0, 250_000, 957_001, 1_000_000].map(Aggregate::Percentile);
        for aggregate in percentiles.into_iter().chain([Aggregate::Median, Aggregate::Stddev]) {
            measured.push(window(aggregate, Some(x)));
        }
        if model != TimeModel::Steps {
            measured.push(window(Aggregate::Derivative, Some(x)));
            measured.push(window(Aggregate::Integral, Some(x)));
        }
    }
    if model != TimeModel::Steps {
        measured.push(window(Aggregate::Rate, None));
    }
    measured.extend([Expr::Age(TopicId(0)), Expr::Latency(TopicId(0)), Expr::Jitter(TopicId(0))]);
    let mut formulas = Vec::new();
    let mut expressions = Vec::new();
    for expr in measured {
        let id = ExprId(nodes.len() as u32);
        nodes.push(expr.clone());
        let mut probe = Spec { nodes: nodes.clone(), ..Spec::default() };
        let constants = match probe.value_type(id) {
            // No measurement is close to 0.3217, so that rounding does not matter.
            ValueType::Float => [-0.5, 0.0, 0.3217, 1e9, f64::INFINITY].map(Value::Float).to_vec(),
            ValueType::Int => [-1, 0, 2, i64::MAX, i64::MIN].map(Value::Int).to_vec(),
            _ => [-1, 0, 1, 2, 7].map(Value::Duration).to_vec(),
        };
        probe.nodes.clear();
        for (n, constant) in constants.into_iter().enumerate() {
            let literal = ExprId(nodes.len() as u32);
            nodes.push(Expr::Literal(constant));
            for (k, operator) in OPERATORS.into_iter().enumerate() {
                let (x, y) = if (n + k) % 2 == 0 { (id, literal) } else { (literal, id) };
                formulas.push(ExprId(nodes.len() as u32));
                nodes.push(Expr::Compare(operator, x, y));
                expressions.push(expr.clone());
            }
        }
    }
    let mut spec = spec(2, nodes, formulas);
    spec.properties.iter_mut().for_each(|property| property.time = model);
    (spec, expressions)
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

/// A measurement at a time, after `seen` events.
fn measure(
    expr: &Expr,
    model: TimeModel,
    trace: &[Timed],
    fields: &[Vec<Option<Value>>],
    seen: usize,
    now: i64,
) -> Option<Value> {
    let of_topic = |topic: TopicId| (0..seen).filter(move |&i| trace[i].event.topic == topic.0);
    match expr {
        Expr::Window { aggregate, over, operand, topics } => {
            let in_window = |i: usize| match model {
                TimeModel::Steps => seen - i <= *over as usize,
                _ => trace[i].time > now - *over as i64,
            };
            let samples =
                (0..seen).filter(|&i| topics.contains(&TopicId(trace[i].event.topic)) && in_window(i));
            let samples: Vec<usize> = samples.collect();
            let at = |i: usize, x: ExprId| match x.index() {
                3 => fields[0][i].clone().map(|value| match value {
                    Value::Int(x) => Value::Float(x as f64),
                    other => panic!("{other:?} is no integer"),
                }),
                x => fields[x][i].clone(),
            };
            let is_nan = |i: usize| {
                let value = operand.and_then(|x| at(i, x));
                aggregate.leaves_out_nan() && matches!(value, Some(Value::Float(value)) if value.is_nan())
            };
            let samples: Vec<usize> = samples.into_iter().filter(|i| !is_nan(*i)).collect();
            let values: Vec<Option<Value>> =
                samples.iter().map(|&i| operand.map_or(Some(Value::Bool(true)), |x| at(i, x))).collect();
            let known = || values.clone().into_iter().collect::<Option<Vec<Value>>>();
            let times = || samples.iter().map(|&i| i128::from(trace[i].time)).collect::<Vec<_>>();
            match quantity::of(*aggregate, &[], &[]) {
                quantity::Answer::Other => {
                    aggregated(*aggregate, *over, operand.is_some_and(|x| x == ExprId(0)), values)
                }
                quantity::Answer::Value(_) => match quantity::of(*aggregate, &known()?, &times()) {
                    quantity::Answer::Value(value) => value,
                    quantity::Answer::Other => panic!("{aggregate:?}"),
                },
            }
        }
        Expr::Age(topic) => Some(Value::Duration(now - trace[of_topic(*topic).next_back()?].time)),
        Expr::Latency(topic) => {
            let last = &trace[of_topic(*topic).next_back()?];
            Some(Value::Duration(last.arrival? - last.time))
        }
        Expr::Jitter(topic) => {
            let times: Vec<i64> = of_topic(*topic).map(|i| trace[i].time).collect();
            let [.., a, b, c] = times[..] else { return None };
            Some(Value::Duration(((c - b) - (b - a)).abs()))
        }
        other => panic!("{other:?} is no measurement"),
    }
}

fn aggregated(aggregate: Aggregate, over: u64, ints: bool, values: Vec<Option<Value>>) -> Option<Value> {
    let count = values.len();
    match aggregate {
        Aggregate::Count => {
            return Some(Value::Int(values.iter().filter(|x| **x == Some(Value::Bool(true))).count() as i64));
        }
        Aggregate::Rate => return Some(Value::Float(count as f64 / (over as f64 / 1e9))),
        _ => {}
    }
    let values = values.into_iter().collect::<Option<Vec<Value>>>()?;
    let floats = values.iter().map(|value| match value {
        Value::Int(x) => *x as f64,
        Value::Float(x) => *x,
        other => panic!("{other:?} is no number"),
    });
    let integers = || values.iter().map(|value| if let Value::Int(x) = value { *x } else { 0 });
    let pick = |least: bool| {
        move |a: f64, b: f64| {
            if a.is_nan() || b.is_nan() {
                f64::NAN
            } else if least {
                a.min(b)
            } else {
                a.max(b)
            }
        }
    };
    match aggregate {
        Aggregate::Sum if ints => {
            i64::try_from(integers().map(i128::from).sum::<i128>()).ok().map(Value::Int)
        }
        Aggregate::Sum => Some(Value::Float(floats.sum())),
        Aggregate::Mean if count == 0 => None,
        // In twice the precision the large terms cancel.
        Aggregate::Mean if ints => {
            let sum = integers().map(|x| (x as f64) as i128).sum::<i128>();
            Some(Value::Float(sum as f64 / count as f64))
        }
        Aggregate::Mean => Some(Value::Float(floats.sum::<f64>() / count as f64)),
        Aggregate::Min if ints => integers().min().map(Value::Int),
        Aggregate::Max if ints => integers().max().map(Value::Int),
        Aggregate::Min => floats.reduce(pick(true)).map(Value::Float),
        _ => floats.reduce(pick(false)).map(Value::Float),
    }
}

fn expected(spec: &Spec, property: usize, value: Option<Value>) -> Verdict {
    let Expr::Compare(operator, x, y) = spec.nodes[spec.properties[property].formula.index()] else {
        panic!("a comparison")
    };
    let (mut left, mut right) = (value.clone(), value);
    if let Expr::Literal(constant) = &spec.nodes[x.index()] {
        left = Some(constant.clone());
    }
    if let Expr::Literal(constant) = &spec.nodes[y.index()] {
        right = Some(constant.clone());
    }
    let holds = match (left, right) {
        (Some(Value::Float(x)), Some(Value::Float(y))) => operator.holds(x, y),
        (Some(Value::Int(x)), Some(Value::Int(y))) | (Some(Value::Duration(x)), Some(Value::Duration(y))) => {
            let (x, y) = (i128::from(x), i128::from(y));
            match operator {
                Comparison::Less => x < y,
                Comparison::LessOrEqual => x <= y,
                Comparison::Greater => x > y,
                Comparison::GreaterOrEqual => x >= y,
                Comparison::Equal => x == y,
                Comparison::NotEqual => x != y,
            }
        }
        (None, _) | (_, None) => return Verdict::Inconclusive,
        other => panic!("{other:?}"),
    };
    if holds { Verdict::Satisfied } else { Verdict::Violated }
}

fn config() -> ProptestConfig {
    let kept = FileFailurePersistence::Direct("proptest-regressions/windows.txt");
    ProptestConfig { cases: 40, failure_persistence: Some(Box::new(kept)), ..ProptestConfig::default() }
}

proptest! {
    #![proptest_config(config())]

    #[test]
    fn measurements_agree_with_definition(
        trace in trace(),
        cuts in cuts(),
        over in prop_oneof![1..12_u64, Just(100), Just(u64::MAX)],
        model in proptest::sample::select(MODELS.to_vec()),
        all_topics in any::<bool>(),
    ) {
        let over = if over == u64::MAX && model != TimeModel::Steps { i64::MAX as u64 } else { over };
        let (spec, expressions) = measurements(model, over, all_topics);
        let events: Vec<Event> = trace.iter().map(|timed| timed.event.clone()).collect();
        let fields = values(&spec.nodes[..3], &events);
        let program = Arc::new(Program::compile(&spec).unwrap());
        prop_assert!(program.reads_arrivals());
        let mut monitor = Monitor::new(program.clone());
        monitor.report_every(true);
        let mut block = Block::new(program.layout());
        // Reports, with the number of the event at which they were emitted, if any.
        let mut reports = Vec::new();
        let mut rest = &trace[..];
        for &len in cuts.iter().cycle() {
            let (now, later) = rest.split_at(len.min(rest.len()));
            block.clear();
            for timed in now {
                write(&mut block, program.projections(), &timed.event, timed.time);
                if let Some(arrival) = timed.arrival {
                    block.set_arrival(block.len() - 1, Timestamp::from_nanos(arrival));
                }
            }
            reports.extend_from_slice(monitor.step(&block));
            rest = later;
            if rest.is_empty() { break; }
        }
        let end = trace.last().unwrap().time + 30;
        reports.extend_from_slice(monitor.advance(Timestamp::from_nanos(end)));
        // No deadline remains except for changes by time alone after the end.
        let next = monitor.next_deadline().map(Timestamp::as_nanos);
        prop_assert!(next.is_none_or(|next| model == TimeModel::Dense && next > end), "{:?} at {}", next, end);

        // At every event.
        let mut at_events = vec![vec![None; trace.len()]; expressions.len()];
        for report in reports.iter().filter(|report| report.row.is_some()) {
            at_events[report.property as usize][report.step as usize].get_or_insert(report.verdict);
        }
        for (property, expr) in expressions.iter().enumerate() {
            for (i, found) in at_events[property].iter().enumerate() {
                let value = measure(expr, model, &trace, &fields, i + 1, trace[i].time);
                let expected = expected(&spec, property, value.clone());
                prop_assert_eq!(*found, Some(expected), "{:?}: {:?} is {:?} at event {}", model,
                    spec.nodes[spec.properties[property].formula.index()], value, i);
            }
        }
        if model != TimeModel::Dense {
            return Ok(());
        }
        // At every time.
        for (property, expr) in expressions.iter().enumerate() {
            let of_this: Vec<_> = reports.iter().filter(|report| report.property as usize == property).collect();
            let exact = !matches!(expr, Expr::Age(_));
            for now in trace[0].time..end {
                let seen = trace.iter().take_while(|timed| timed.time <= now).count();
                let found = of_this.iter().rev().find(|report| report.time.as_nanos() <= now).unwrap().verdict;
                let expected = if exact {
                    expected(&spec, property, measure(expr, model, &trace, &fields, seen, now))
                } else {
                    // Just after: an integer number of half nanoseconds.
                    let Some(Value::Duration(age)) = measure(expr, model, &trace, &fields, seen, now) else {
                        prop_assert_eq!(found, Verdict::Inconclusive);
                        continue;
                    };
                    let mut halves = spec.clone();
                    for node in &mut halves.nodes {
                        if let Expr::Literal(Value::Duration(constant)) = node { *constant *= 2; }
                    }
                    expected(&halves, property, Some(Value::Duration(2 * age + 1)))
                };
                prop_assert_eq!(found, expected, "{:?} at {}",
                    spec.nodes[spec.properties[property].formula.index()], now);
            }
        }
    }
}
