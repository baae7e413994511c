//! A property with parameters behaves, for every value, like the property over the events with that value
//! alone, for all block sizes.

#![allow(clippy::panic, clippy::unwrap_used)]

use crate::definition;
use crate::quantified;

use std::collections::BTreeMap;
use std::sync::Arc;

use definition::floor::Floor;
use definition::random::{any_spec, cuts, trace};
use definition::{Content, Event, write};
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::test_runner::FileFailurePersistence;
use rondel_engine::{Monitor, Program, Report};
use rondel_event::{Block, Comparison, Path, Timestamp, TopicId, Value, ValueType, Verdict};
use rondel_spec::{Aggregate, Bounds, Expr, ExprId, Key, Property, Slice, SliceId, Spec, TimeModel};

/// Parameters in comparable form.
type Id = String;

fn id(values: &[Value]) -> Id {
    format!("{values:?}")
}

/// The parameters of an event; the inner option is none if one is missing or invalid.
fn key_of(slice: &Slice, event: &Event) -> Option<Option<Vec<Value>>> {
    let mut values = Vec::new();
    for key in &slice.keys {
        let (_, path) = key.fields.iter().find(|(topic, _)| topic.0 == event.topic)?;
        let name = path.to_string();
        let content = event.fields.iter().find(|(field, _)| *field == name).map(|(_, content)| content);
        match content {
            Some(Content::Value(value)) if value.value_type() == key.value_type => values.push(value.clone()),
            _ => return Some(None),
        }
    }
    Some(Some(values))
}

/// The compared part of a report.
#[derive(Clone, Debug, PartialEq)]
struct Judged {
    verdict: Verdict,
    changed: bool,
    /// The event at which it was emitted.
    step: Option<u64>,
    time: Timestamp,
}

fn judged(report: &Report) -> Judged {
    let Report { verdict, changed, step, at_event, time, .. } = *report;
    Judged { verdict, changed, step: at_event.then_some(step), time }
}

/// Runs a monitor in blocks, and passes its reports to `emit`.
fn run(
    spec: &Spec,
    trace: &[(i64, &Event)],
    cuts: &[usize],
    every: bool,
    mut emit: impl FnMut(&Report, &[Value], usize),
) -> Monitor {
    let program = Arc::new(Program::compile(spec).unwrap());
    let mut block = Block::new(program.layout());
    let mut monitor = Monitor::new(program.clone());
    monitor.report_every(every);
    let (mut rest, mut start) = (trace, 0);
    for &len in cuts.iter().cycle() {
        let (now, later) = rest.split_at(len.min(rest.len()));
        block.clear();
        for (time, event) in now {
            write(&mut block, program.projections(), event, *time);
        }
        // A snapshot in between makes no difference.
        let mut copy = Monitor::restore(program.clone(), &monitor.snapshot()).unwrap();
        copy.report_every(every);
        assert_eq!(copy.step(&block), monitor.step(&block));
        if len % 2 == 0 {
            monitor = copy;
        }
        monitor.reports().iter().for_each(|report| emit(report, &monitor.key(report), start));
        start += now.len();
        rest = later;
        if rest.is_empty() {
            break;
        }
    }
    let end = trace.last().map_or(0, |(time, _)| time + 1_000_000);
    monitor.advance(Timestamp::from_nanos(end));
    monitor.reports().iter().for_each(|report| emit(report, &monitor.key(report), start));
    monitor
}

/// Topics that a property receives without parameters.
fn shared(spec: &Spec, slice: &Slice, formula: ExprId) -> Vec<TopicId> {
    let mut topics = spec.topics_of(formula);
    topics.extend(slice.until.map(|until| spec.topics_of(until)).unwrap_or_default());
    topics.retain(|topic| slice.keys[0].fields.iter().all(|(keyed, _)| keyed != topic));
    topics
}

/// Expected reports of a property for one value, from the first event with it on.
fn expected(spec: &Spec, property: usize, trace: &[(i64, &Event)], values: &[Value]) -> Vec<Judged> {
    let key = &id(values);
    let slice = &spec.slices[0];
    let topics = shared(spec, slice, spec.properties[property].formula);
    let sees = |event: &Event| match key_of(slice, event) {
        Some(of) => of.is_some_and(|of| id(&of) == *key),
        None => topics.contains(&TopicId(event.topic)),
    };
    let (places, alone): (Vec<u64>, Vec<_>) =
        (0..).zip(trace.iter().copied()).filter(|(_, (_, event))| sees(event)).unzip();
    let first = alone.iter().position(|(_, event)| key_of(slice, event).is_some()).unwrap();
    let mut property = spec.properties[property].clone();
    property.slice = None;
    let mut nodes = spec.nodes.clone();
    for node in &mut nodes {
        if let Expr::Key(i, _) = *node {
            *node = Expr::Literal(values[i as usize].clone());
        }
    }
    let undivided = Spec { nodes, properties: vec![property], slices: Vec::new(), ..spec.clone() };
    let mut out = Vec::new();
    run(&undivided, &alone, &[64], true, |report, _, _| {
        if report.step >= first as u64 {
            // Events have their numbers in the whole trace.
            let judged = judged(report);
            out.push(Judged { step: judged.step.map(|step| places[step as usize]), ..judged });
        }
    });
    out
}

type All = BTreeMap<(usize, Id), Vec<Judged>>;

fn found(spec: &Spec, trace: &[(i64, &Event)], cuts: &[usize], every: bool) -> (All, Monitor) {
    let mut all = All::new();
    let monitor = run(spec, trace, cuts, every, |report, key, _| {
        all.entry((report.property as usize, id(key))).or_default().push(judged(report));
    });
    (all, monitor)
}

fn timed<'a>(events: &'a [Event], gaps: &[i64]) -> Vec<(i64, &'a Event)> {
    let mut time = 1000;
    let timed = events.iter().zip(gaps.iter().cycle()).map(|(event, gap)| {
        time += gap;
        (time, event)
    });
    timed.collect()
}

/// Adds measurements, and the parameter as a value, which random formulas do not contain. Events without
/// parameter that precede an instance do not know its value, so the two are compared only in addition to such
/// events.
fn enrich(spec: &mut Spec, keys: &[(&'static str, ValueType)], keyed: u32, over: u64) {
    let mut add = |expr| {
        spec.nodes.push(expr);
        ExprId(spec.nodes.len() as u32 - 1)
    };
    let mut formulas = Vec::new();
    let three = add(Expr::Literal(Value::Int(3)));
    let span = add(Expr::Literal(Value::Duration(over as i64)));
    let field =
        |topic, name, value_type| Expr::Field { topic: TopicId(topic), path: Path::keys([name]), value_type };
    let (int, float) = (add(field(0, "i", ValueType::Int)), add(field(1, "f", ValueType::Float)));
    let topics = vec![TopicId(0)];
    for (aggregate, operand, topics) in [
        (Aggregate::Count, None, vec![TopicId(1), TopicId(2)]),
        (Aggregate::Sum, Some(int), topics.clone()),
        (Aggregate::Min, Some(int), topics),
    ] {
        let window = add(Expr::Window { aggregate, over, operand, topics });
        formulas.push(add(Expr::Compare(Comparison::Less, window, three)));
    }
    for aggregate in [Aggregate::Distinct, Aggregate::First] {
        let window = add(Expr::Window { aggregate, over, operand: Some(int), topics: vec![TopicId(0)] });
        formulas.push(add(Expr::Compare(Comparison::Less, window, three)));
    }
    let percentile = Aggregate::Percentile(900_000);
    for aggregate in [Aggregate::Median, percentile, Aggregate::Last] {
        let window = add(Expr::Window { aggregate, over, operand: Some(float), topics: vec![TopicId(1)] });
        formulas.push(add(Expr::Compare(Comparison::LessOrEqual, window, float)));
    }
    let off_grid = add(Expr::Literal(Value::Float(0.123_456_7)));
    let deviation =
        Expr::Window { aggregate: Aggregate::Stddev, over, operand: Some(float), topics: vec![TopicId(1)] };
    let deviation = add(deviation);
    formulas.push(add(Expr::Compare(Comparison::Greater, deviation, off_grid)));
    let distinct =
        Expr::Window { aggregate: Aggregate::Distinct, over, operand: Some(float), topics: vec![TopicId(1)] };
    let distinct = add(distinct);
    formulas.push(add(Expr::Compare(Comparison::Less, distinct, three)));
    let max =
        Expr::Window { aggregate: Aggregate::Max, over, operand: Some(float), topics: vec![TopicId(1)] };
    let max = add(max);
    formulas.push(add(Expr::Compare(Comparison::Equal, max, float)));
    let age = add(Expr::Age(TopicId(0)));
    formulas.push(add(Expr::Compare(Comparison::LessOrEqual, age, span)));
    for (i, &(name, value_type)) in (0..).zip(keys) {
        let key = add(Expr::Key(i, value_type));
        let field = add(field(1, name, value_type));
        let is = add(Expr::Compare(Comparison::Equal, key, field));
        formulas.push(is);
        // Conditions on the parameter alone, also after events without it.
        let value = match value_type {
            ValueType::Bool => Value::Bool(true),
            ValueType::Int => Value::Int(1),
            ValueType::Time => Value::Time(1),
            _ => Value::String("a".into()),
        };
        let value = add(Expr::Literal(value));
        let comparison = match value_type {
            ValueType::Int | ValueType::Time => Comparison::LessOrEqual,
            _ => Comparison::Equal,
        };
        let test = add(Expr::Compare(comparison, key, value));
        let fact = Expr::Field { topic: TopicId(2), path: Path::keys(["b"]), value_type: ValueType::Bool };
        let fact = add(fact);
        let either = add(Expr::Or(test, fact));
        formulas.push(add(Expr::Once(Bounds { lower: 1, upper: Some(5) }, either)));
        let neither = add(Expr::Not(either));
        formulas.push(add(Expr::Since(Bounds::ALL, neither, test)));
        if keyed == 7 {
            formulas.push(add(Expr::Once(Bounds { lower: 1, upper: Some(5) }, is)));
            let prev = add(Expr::Prev(field));
            formulas.push(add(Expr::Compare(Comparison::NotEqual, prev, key)));
        }
    }
    spec.properties
        .extend(formulas.into_iter().map(|formula| Property::new(format!("{formula:?}"), formula)));
}

/// Adds parameters in fields of some of the three topics.
fn divide(
    mut spec: Spec,
    keys: &[(&'static str, ValueType)],
    keyed: u32,
    models: &[u8],
    over: Option<u64>,
) -> Spec {
    if let Some(over) = over {
        enrich(&mut spec, keys, keyed, over);
    }
    let topics: Vec<TopicId> = (0..3).filter(|i| keyed >> i & 1 == 1).map(TopicId).collect();
    let keys = keys.iter().map(|&(name, value_type)| Key {
        name: name.into(),
        value_type,
        fields: topics.iter().map(|&topic| (topic, Path::keys([name]))).collect(),
    });
    spec.slices = vec![Slice { keys: keys.collect(), until: None, limit: None }];
    for (property, model) in spec.properties.iter_mut().zip(models.iter().cycle()) {
        property.slice = Some(SliceId(0));
        property.time = [TimeModel::Steps, TimeModel::Points, TimeModel::Dense][usize::from(*model)];
    }
    spec
}

fn keys() -> impl Strategy<Value = Vec<(&'static str, ValueType)>> {
    proptest::sample::select(vec![
        vec![("i2", ValueType::Int)],
        vec![("s", ValueType::String)],
        vec![("b", ValueType::Bool)],
        vec![("t", ValueType::Time)],
        vec![("s", ValueType::String), ("b", ValueType::Bool)],
        vec![("b2", ValueType::Bool), ("i2", ValueType::Int)],
    ])
}

fn gaps() -> impl Strategy<Value = Vec<i64>> {
    vec(prop_oneof![2 => Just(0), 4 => 1..10_i64, 2 => 60..70_i64, 1 => 100..3000_i64], 1..20)
}

fn config(cases: u32) -> ProptestConfig {
    let times = std::env::var("RONDEL_CASES").ok().and_then(|times| times.parse().ok()).unwrap_or(1);
    let cases = cases.saturating_mul(times);
    let kept = FileFailurePersistence::Direct("proptest-regressions/keyed.txt");
    ProptestConfig { cases, failure_persistence: Some(Box::new(kept)), ..ProptestConfig::default() }
}

fn assert_agreement(spec: &Spec, trace: &[(i64, &Event)], cuts: &[usize]) {
    let (all, monitor) = found(spec, trace, cuts, true);
    let slice = &spec.slices[0];
    let keys = trace.iter().filter_map(|(_, event)| key_of(slice, event).flatten());
    let ids: BTreeMap<Id, Vec<Value>> = keys.map(|key| (id(&key), key)).collect();
    for property in 0..spec.properties.len() {
        for (id, values) in &ids {
            let mut expected = expected(spec, property, trace, values);
            // The first verdict of an instance counts as changed.
            if let Some(first) = expected.first_mut() {
                first.changed = true;
            }
            let nothing = Vec::new();
            let found = all.get(&(property, id.clone())).unwrap_or(&nothing);
            let differs = (0..expected.len().max(found.len())).find(|&i| expected.get(i) != found.get(i));
            if let Some(i) = differs {
                panic!(
                    "{:?} of {id}, report {i}: {:?}, not {:?}",
                    spec.properties[property],
                    found.get(i),
                    expected.get(i)
                );
            }
        }
    }
    let without = trace.iter().filter(|(_, event)| key_of(slice, event) == Some(None)).count();
    for status in monitor.slices() {
        assert_eq!((status.unkeyed, status.refused), (without as u64, 0));
    }
}

proptest! {
    #![proptest_config(config(100))]

    #[test]
    fn every_instance_behaves_as_if_alone(
        spec in any_spec(1..20),
        keys in keys(),
        keyed in 1..8_u32,
        models in vec(0..3_u8, 1..4),
        over in proptest::option::of(1..100_u64),
        trace in trace(1..120),
        gaps in gaps(),
        cuts in cuts(),
    ) {
        let spec = divide(spec, &keys, keyed, &models, over);
        assert_agreement(&spec, &timed(&trace, &gaps), &cuts);
    }

    /// Also with instances that are discarded and created again.
    #[test]
    fn quantified_instance_behaves_as_if_alone(
        case in proptest::sample::select(vec![TimeModel::Steps, TimeModel::Points, TimeModel::Dense])
            .prop_flat_map(|model| quantified::keyed(model, false)),
        gap in 0..30_i64,
        rounds in 40..120_usize,
        keys in 1..9_i64,
        cuts in cuts(),
    ) {
        let mut spec = case.spec;
        spec.slices[0].until = None;
        let whole = spec.clone();
        // Conditions on the parameter have another value before an instance begins.
        let all_keyed = spec.slices[0].keys[0].fields.len() == 4;
        spec.properties.truncate(if all_keyed { 2 } else { 1 });
        spec.properties.retain(|property| {
            Program::compile(&Spec { properties: vec![property.clone()], ..whole.clone() }).is_ok()
        });
        static FLOOR: Floor = Floor::new(50, 60);
        FLOOR.note(spec.properties.len())?;
        let mut time = 0;
        let mut events = Vec::new();
        for round in 0..rounds as i64 {
            for timed in &case.trace {
                let mut event = timed.event.clone();
                for (name, content) in &mut event.fields {
                    if let ("k", Content::Value(Value::Int(key))) = (*name, content) {
                        *key += round / 4 % keys;
                    }
                }
                events.push((time + timed.time, event));
            }
            time += case.trace.last().unwrap().time - 1000 + gap;
        }
        let trace: Vec<(i64, &Event)> = events.iter().map(|(time, event)| (*time, event)).collect();
        let (all, _) = found(&spec, &trace, &cuts, true);
        for ((property, _), found) in &all {
            prop_assert!(!found.is_empty() && *property < spec.properties.len());
        }
        let ids = trace.iter().filter_map(|(_, event)| key_of(&spec.slices[0], event).flatten());
        let ids: BTreeMap<Id, Vec<Value>> = ids.map(|key| (id(&key), key)).collect();
        for property in 0..spec.properties.len() {
            for (id, values) in &ids {
                // A discarded instance counts from zero again, and missed the events in between without its
                // parameter.
                let what = |judged: &Judged| (judged.verdict, judged.step.is_some(), judged.time);
                let expected: Vec<_> = expected(&spec, property, &trace, values).iter().map(what).collect();
                let found: Vec<_> = all[&(property, id.clone())].iter().map(what).collect();
                if all_keyed {
                    prop_assert_eq!(&found, &expected);
                }
                let mut rest = expected.iter();
                for judged in &found {
                    prop_assert!(rest.any(|expected| expected == judged), "{:?} of {}", judged, id);
                }
            }
        }
    }

    #[test]
    fn quantified_is_independent_of_block_size(
        case in (0..3_usize, any::<bool>()).prop_flat_map(|(model, future)| {
            quantified::keyed([TimeModel::Steps, TimeModel::Points, TimeModel::Dense][model], future)
        }),
        limit in proptest::option::of(1..4_u64),
        other_cuts in cuts(),
        every in any::<bool>(),
    ) {
        let mut spec = case.spec;
        spec.slices[0].limit = limit;
        let whole = spec.clone();
        spec.properties.retain(|property| {
            Program::compile(&Spec { properties: vec![property.clone()], ..whole.clone() }).is_ok()
        });
        let trace: Vec<(i64, &Event)> = case.trace.iter().map(|timed| (timed.time, &timed.event)).collect();
        let reports = |cuts: &[usize]| {
            let mut all = Vec::new();
            let monitor = run(&spec, &trace, cuts, every, |report, key, start| {
                let row = report.row.map(|row| row as usize + start);
                all.push((row, report.property, id(key), judged(report), report.about));
            });
            let status: Vec<_> = monitor.slices().map(|s| (s.instances, s.unkeyed, s.refused)).collect();
            (all, status)
        };
        prop_assert_eq!(reports(&case.delivery.cuts), reports(&other_cuts));
    }

    #[test]
    fn verdicts_are_independent_of_block_size(
        spec in any_spec(1..12),
        keys in keys(),
        keyed in 1..8_u32,
        models in vec(0..3_u8, 1..4),
        over in proptest::option::of(1..100_u64),
        limit in proptest::option::of(1..8_u64),
        until in any::<bool>(),
        trace in trace(1..700),
        gaps in gaps(),
        cuts in cuts(),
        other_cuts in cuts(),
        every in any::<bool>(),
    ) {
        let mut spec = divide(spec, &keys, keyed, &models, over);
        spec.slices[0].limit = limit;
        spec.slices[0].until = spec.properties.first().filter(|_| until).map(|property| property.formula);
        let trace = timed(&trace, &gaps);
        let reports = |cuts: &[usize]| {
            let mut all = Vec::new();
            let monitor = run(&spec, &trace, cuts, every, |report, key, start| {
                all.push((report.row.map(|row| row as usize + start), report.property, id(key), judged(report)));
            });
            let status: Vec<_> = monitor.slices().map(|s| (s.instances, s.unkeyed, s.refused)).collect();
            let live = status.iter().all(|(live, ..)| limit.is_none_or(|limit| *live <= limit));
            assert!(live, "more than allowed");
            (all, status)
        };
        prop_assert_eq!(reports(&cuts), reports(&other_cuts));
    }
}

/// A function of a constant, which the parser would have folded, next to a text that all instances share.
#[test]
fn constant_text_is_shared_by_instances() {
    let text = "topic t0 { i: int } topic t1 { s: string, u: string } \
                property p for each i in t0.i = starts_with(t1.s, lower(t1.u))";
    let mut spec = rondel_spec::parse(text).spec.unwrap();
    let is_u = |node: &Expr| matches!(node, Expr::Field { path, .. } if path.to_string() == "u");
    for node in spec.nodes.iter_mut().filter(|node| is_u(node)) {
        *node = Expr::Literal(Value::String("Ab".into()));
    }
    let event = |topic, name, value| Event { topic, fields: vec![(name, Content::Value(value))] };
    let trace = [
        event(1, "s", Value::String("".into())),
        event(0, "i", Value::Int(0)),
        event(1, "s", Value::String("abc".into())),
        event(0, "i", Value::Int(1)),
    ];
    assert_agreement(&spec, &timed(&trace, &[1]), &[1]);
}
