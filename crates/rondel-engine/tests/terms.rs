//! Recorded values of terms agree with the definitions, in every time model.

#![allow(clippy::panic, clippy::unwrap_used)]

use crate::definition;

use std::collections::BTreeMap;
use std::sync::Arc;

use definition::drive::config;
use definition::evaluate::Evaluator;
use definition::timed::{Case, Palette, case};
use definition::timeline::{Timeline, critical};
use definition::truth::{Datum, Seen};
use definition::{Content, Timed, write_timed};
use proptest::prelude::*;
use rondel_engine::{Monitor, Program};
use rondel_event::{Block, Path, Timestamp, TopicId, Value, ValueType};
use rondel_spec::{Expr, ExprId, Key, Property, Slice, SliceId, Spec, TimeModel};

/// A value of a term: the step, twice the time plus one on the interval after it, and the parameters of its
/// instance.
type Found = BTreeMap<u32, Vec<(Option<u64>, i128, Vec<Value>, Option<Value>)>>;

/// Whether a term applies a function to an aggregate, which the definitions round differently: the sine of
/// 10^9 differs entirely from that of its neighbour, and a difference can be all rounding.
fn magnifies(spec: &Spec, id: ExprId) -> bool {
    let is_measure = |id: ExprId| {
        matches!(spec.nodes[id.index()], Expr::Window { .. }) && spec.value_type(id) == ValueType::Float
    };
    spec.nodes[id.index()].operands().any(|operand| is_measure(operand) || magnifies(spec, operand))
}

/// A specification with a property for each node that is not boolean.
fn with_terms(spec: &Spec, model: TimeModel, slice: Option<SliceId>) -> (Spec, Vec<(u32, ExprId)>) {
    let mut spec = spec.clone();
    let ids = (0..spec.nodes.len() as u32).map(ExprId);
    let is_term = |id: &ExprId| spec.value_type(*id) != ValueType::Bool && !magnifies(&spec, *id);
    let terms: Vec<ExprId> = ids.filter(is_term).collect();
    spec.properties.iter_mut().for_each(|property| property.slice = slice);
    let first = spec.properties.len() as u32;
    let term = |id: &ExprId| Property { time: model, slice, ..Property::new(format!("{id:?}"), *id) };
    spec.properties.extend(terms.iter().map(term));
    let numbered = (first..).zip(terms).collect();
    (spec, numbered)
}

/// The values of all terms.
fn values(spec: &Spec, case: &Case) -> Found {
    let program = Arc::new(Program::compile_with_terms(spec, &[]).unwrap());
    let mut block = Block::new(program.layout());
    let mut monitor = Monitor::new(program.clone());
    let mut found = Found::new();
    let mut take = |monitor: &Monitor| {
        for term in monitor.term_values() {
            let clock = 2 * i128::from(term.time.as_nanos()) + i128::from(term.after);
            let value = (term.step, clock, monitor.key_of_term(term), term.value.clone());
            found.entry(term.property).or_default().push(value);
        }
    };
    let mut done = 0;
    for &len in case.delivery.cuts.iter().cycle() {
        if done == case.trace.len() {
            break;
        }
        let events = &case.trace[done..case.trace.len().min(done + len)];
        block.clear();
        events.iter().for_each(|timed| write_timed(&mut block, program.projections(), timed));
        monitor.step(&block);
        take(&monitor);
        done += events.len();
    }
    monitor.advance(Timestamp::from_nanos(case.now));
    take(&monitor);
    found
}

/// The value by the definitions; none while unknown.
fn known(datum: &Datum) -> Option<Value> {
    match datum.see() {
        Seen::Value(value) => Some(value),
        Seen::Unknown | Seen::Pending => None,
    }
}

/// Whether a term changes with time, so that its value is valid only where it was recorded.
fn moves(spec: &Spec, id: ExprId) -> bool {
    match &spec.nodes[id.index()] {
        Expr::Age(_) => true,
        Expr::Window { .. } | Expr::Prev(_) => false,
        node => node.operands().any(|operand| moves(spec, operand)),
    }
}

fn same(found: &Option<Value>, expected: &Option<Value>) -> bool {
    match (found, expected) {
        // The definitions add and divide in another order.
        (Some(Value::Float(x)), Some(Value::Float(y))) => {
            x == y || x.is_nan() && y.is_nan() || (x - y).abs() <= 1e-12 * x.abs().max(1.0)
        }
        _ => found == expected,
    }
}

fn agree(case: &Case, model: TimeModel) -> Result<(), TestCaseError> {
    let (spec, terms) = with_terms(&case.spec, model, None);
    let found = values(&spec, case);
    let timeline = Timeline::new(model, &case.trace, case.now, &critical(&case.spec, &case.trace, case.now));
    let mut evaluator = Evaluator::new(&case.spec, &timeline, &[]);
    for (number, id) in terms {
        let column = evaluator.column(id);
        let its = found.get(&number).map_or(&[][..], Vec::as_slice);
        for (sample, datum) in timeline.samples.iter().zip(column.iter()) {
            let here = match sample.event {
                Some(event) => its.iter().rfind(|value| value.0 == Some(event as u64)),
                // On an interval the last recorded value counts.
                None if moves(&case.spec, id) => continue,
                None => its.iter().rfind(|value| value.1 <= sample.from + i128::from(sample.is_span())),
            };
            let here = here.map(|(.., value)| value.clone());
            let expected = known(datum);
            let is_same = here.as_ref().is_some_and(|here| same(here, &expected));
            prop_assert!(is_same, "{id:?} at {sample:?}: {here:?} and not {expected:?}");
        }
    }
    Ok(())
}

/// The same for terms with the integer `i2` of messages on the first two topics as parameter.
fn agree_by_key(case: &Case, model: TimeModel) -> Result<(), TestCaseError> {
    let path = Path::keys(["i2"]);
    let fields = [0, 1].map(|topic| (TopicId(topic), path.clone())).to_vec();
    let keys = vec![Key { name: "k".into(), value_type: ValueType::Int, fields }];
    let mut whole = case.spec.clone();
    whole.slices = vec![Slice { keys, until: None, limit: None }];
    let (spec, terms) = with_terms(&whole, model, Some(SliceId(0)));
    let found = values(&spec, case);
    let key_of = |timed: &Timed| match timed.event.fields.iter().find(|(name, _)| *name == "i2") {
        Some((_, Content::Value(Value::Int(key)))) if timed.event.topic < 2 => Some(*key),
        _ => None,
    };
    let mut all: Vec<i64> = case.trace.iter().filter_map(key_of).collect();
    all.sort_unstable();
    all.dedup();
    for (number, id) in terms {
        let topics = spec.topics_of(id);
        for &key in &all {
            let sees = |timed: &Timed| match timed.event.topic {
                0 | 1 => key_of(timed) == Some(key),
                topic => topics.contains(&TopicId(topic)),
            };
            let seen: Vec<usize> = (0..case.trace.len()).filter(|i| sees(&case.trace[*i])).collect();
            let part: Vec<Timed> = seen.iter().map(|i| case.trace[*i].clone()).collect();
            let Some(begin) = part.iter().position(|timed| key_of(timed) == Some(key)) else { continue };
            let timeline = Timeline::new(model, &part, case.now, &critical(&spec, &part, case.now));
            let keys = [Value::Int(key)];
            let mut evaluator = Evaluator::new(&spec, &timeline, &keys);
            evaluator.begin = begin;
            let column = evaluator.column(id);
            let its = found.get(&number).map_or(&[][..], Vec::as_slice);
            for (sample, datum) in timeline.samples.iter().zip(column.iter()) {
                let Some(event) = sample.event.filter(|event| *event >= begin) else { continue };
                let step = Some(seen[event] as u64);
                let here = its.iter().rfind(|value| value.0 == step && value.2 == keys);
                let here = here.map(|(.., value)| value.clone());
                let expected = known(datum);
                let is_same = here.as_ref().is_some_and(|here| same(here, &expected));
                prop_assert!(is_same, "{id:?} of {key} at {sample:?}: {here:?} and not {expected:?}");
            }
        }
    }
    Ok(())
}

const MODELS: [TimeModel; 3] = [TimeModel::Steps, TimeModel::Points, TimeModel::Dense];

fn cases(model: TimeModel) -> impl Strategy<Value = Case> {
    case(Palette { model, future: false, measures: true, extreme: false }, 6..24, 1..40)
}

proptest! {
    #![proptest_config(config(150))]

    #[test]
    fn terms_have_their_values_in_steps(case in cases(MODELS[0])) {
        agree(&case, MODELS[0])?;
    }

    #[test]
    fn terms_have_their_values_in_points(case in cases(MODELS[1])) {
        agree(&case, MODELS[1])?;
    }

    #[test]
    fn terms_have_their_values_in_dense_time(case in cases(MODELS[2])) {
        agree(&case, MODELS[2])?;
    }

    #[test]
    fn terms_have_their_values_in_each_instance(case in cases(MODELS[1]), dense in any::<bool>()) {
        let model = if dense { TimeModel::Dense } else { TimeModel::Points };
        agree_by_key(&case, model)?;
    }
}
