//! Properties with parameters: every instance behaves as if it were alone.

#![allow(clippy::panic, clippy::unwrap_used)]

use crate::definition;
use crate::quantified;

use std::sync::Arc;

use definition::drive::config;
use definition::floor::Floor;
use definition::outcome::Spot;
use definition::random::{Generator, TOPICS, recipe_of};
use definition::slice::{Instance, instances, instances_until, refused};
use definition::timed::{Case, Palette, case_of, generate_all, sorts, timed_bounds};
use definition::{Content, spec, write_timed};
use proptest::collection::vec;
use proptest::prelude::*;
use rondel_engine::{Monitor, Program, Report};
use rondel_event::{Block, Comparison, Path, Timestamp, TopicId, Value, ValueType, Verdict};
use rondel_spec::{Expr, ExprId, Key, Slice, SliceId, Spec, TimeModel};

/// A change of a verdict: parameters, property, event, time, verdict.
type Change = (Vec<Value>, usize, Option<usize>, i64, Verdict);

/// A slice over topic 0, or topics 0 and 1; all boolean nodes are its properties.
fn keyed(model: TimeModel, future: bool) -> impl Strategy<Value = Case> {
    let palette = Palette { model, future, measures: !future, extreme: false };
    let recipes = vec(recipe_of(sorts(palette), timed_bounds()), 1..8);
    let made = (recipes, 0..1000_usize, vec(0..12_u8, 20));
    let case = case_of(palette, (made, Just(())), 0..20, move |((recipes, r, _), ()), unit| {
        let mut generator = Generator::default();
        let key = generator.add(Expr::Key(0, ValueType::Int), ValueType::Int);
        let two = generator.add(Expr::Literal(Value::Int(1)), ValueType::Int);
        generator.add(Expr::Compare(Comparison::LessOrEqual, key, two), ValueType::Bool);
        let until = match r % 4 {
            0 => None,
            1 => Some(Expr::On(TopicId(2))),
            2 => Some(Expr::On(TopicId(0))),
            _ => {
                Some(Expr::Field { topic: TopicId(1), path: Path::keys(["b"]), value_type: ValueType::Bool })
            }
        };
        let until = until.map(|until| generator.add(until, ValueType::Bool));
        generate_all(&mut generator, palette, recipes, unit);
        let formulas: Vec<ExprId> = generator.all_of(ValueType::Bool).collect();
        let mut spec = spec(TOPICS, generator.nodes, formulas);
        for property in &mut spec.properties {
            property.time = model;
            property.slice = Some(SliceId(0));
        }
        let topics = if r / 4 % 2 == 0 { 0..1 } else { 0..2 };
        let fields = |name: &str| topics.clone().map(|t| (TopicId(t), Path::keys([name]))).collect();
        let mut keys = vec![Key { name: "k".into(), value_type: ValueType::Int, fields: fields("i") }];
        if r / 8 % 3 == 0 {
            keys.push(Key { name: "l".into(), value_type: ValueType::Bool, fields: fields("b2") });
        }
        spec.slices.push(Slice { keys, until, limit: None });
        spec
    });
    // Few values, mostly present.
    (case, vec(0..12_u8, 20)).prop_map(|(mut case, keys)| {
        for (timed, key) in case.trace.iter_mut().zip(keys) {
            if key < 11 {
                timed.event.fields.retain(|(name, _)| *name != "i");
                timed.event.fields.push(("i", Content::Value(Value::Int(i64::from(key % 3)))));
            }
        }
        case
    })
}

fn found(case: &Case) -> (Vec<Change>, u64) {
    let Case { spec, trace, now, delivery } = case;
    let program = Arc::new(Program::compile(spec).unwrap());
    let mut block = Block::new(program.layout());
    let mut monitor = Monitor::new(program.clone());
    let mut all = Vec::new();
    let mut done = 0;
    for &len in delivery.cuts.iter().cycle() {
        if done == trace.len() {
            break;
        }
        block.clear();
        let events = &trace[done..trace.len().min(done + len)];
        events.iter().for_each(|timed| write_timed(&mut block, program.projections(), timed));
        monitor.step(&block);
        take(&monitor, done, &mut all);
        done += events.len();
        if len % 2 == 0 {
            // A snapshot in between makes no difference.
            monitor = Monitor::restore(program.clone(), &monitor.snapshot()).unwrap();
        }
    }
    if trace.last().is_some_and(|last| last.time < *now) {
        monitor.advance(Timestamp::from_nanos(*now));
        take(&monitor, done, &mut all);
    }
    let unkeyed = monitor.slices().map(|slice| slice.unkeyed).max().unwrap_or(0);
    (all, unkeyed)
}

fn take(monitor: &Monitor, first: usize, all: &mut Vec<Change>) {
    let change = |report: &Report| {
        let event = report.row.map(|row| first + usize::from(row));
        let keys = monitor.key(report);
        (keys, report.property as usize, event, report.time.as_nanos(), report.verdict)
    };
    all.extend(monitor.reports().iter().map(change));
}

/// The changes of one instance and property.
fn of<'a>(all: &'a [Change], keys: &'a [Value], property: usize) -> Vec<(Option<usize>, i64, Verdict)> {
    let mut changes: Vec<(Option<usize>, i64, Verdict)> = Vec::new();
    for (_, _, event, time, verdict) in all.iter().filter(|c| c.0 == keys && c.1 == property) {
        if changes.last().is_none_or(|(.., last)| last != verdict) {
            changes.push((*event, *time, *verdict));
        }
    }
    changes
}

fn agree(case: &Case) -> Result<(), TestCaseError> {
    let Case { spec, trace, now, .. } = case;
    let (found, unkeyed) = found(case);
    let mut expected: Vec<Change> = Vec::new();
    for p in 0..spec.properties.len() {
        for instance in instances(spec, p, trace, *now) {
            let changes = instance.spots.iter().map(|spot| {
                let verdict = spot.verdict.unwrap_or(Verdict::Inconclusive);
                (instance.keys.clone(), p, spot.event, spot.time, verdict)
            });
            expected.extend(changes);
        }
    }
    let mut keys: Vec<&Vec<Value>> = Vec::new();
    for (key, ..) in expected.iter().chain(&found) {
        if !keys.contains(&key) {
            keys.push(key);
        }
    }
    for keys in keys {
        for p in 0..spec.properties.len() {
            let (found, expected) = (of(&found, keys, p), of(&expected, keys, p));
            prop_assert_eq!(found, expected, "{:?} of {:?}", spec.properties[p].formula, keys);
        }
    }
    prop_assert_eq!(unkeyed, refused(spec, SliceId(0), trace) as u64);
    Ok(())
}

proptest! {
    #![proptest_config(config(500))]

    #[test]
    fn in_steps(case in keyed(TimeModel::Steps, false)) {
        agree(&case)?;
    }

    #[test]
    fn in_points(case in keyed(TimeModel::Points, false)) {
        agree(&case)?;
    }

    #[test]
    fn in_dense_time(case in keyed(TimeModel::Dense, false)) {
        agree(&case)?;
    }
}

/// The same for past properties that can be monitored.
fn agree_if_monitored(mut case: Case, floor: &Floor) -> Result<(), TestCaseError> {
    let ahead = looks_ahead(&case.spec);
    let whole = case.spec.clone();
    case.spec.properties.retain(|property| {
        let alone = Spec { properties: vec![property.clone()], ..whole.clone() };
        !ahead[property.formula.index()].0 && Program::compile(&alone).is_ok()
    });
    floor.note(case.spec.properties.len())?;
    agree(&case)
}

proptest! {
    #![proptest_config(config(500))]

    #[test]
    fn quantified_in_steps(case in quantified::keyed(TimeModel::Steps, false)) {
        static FLOOR: Floor = Floor::new(2, 200);
        agree_if_monitored(case, &FLOOR)?;
    }

    #[test]
    fn quantified_in_points(case in quantified::keyed(TimeModel::Points, false)) {
        static FLOOR: Floor = Floor::new(2, 200);
        agree_if_monitored(case, &FLOOR)?;
    }

    #[test]
    fn quantified_in_dense_time(case in quantified::keyed(TimeModel::Dense, false)) {
        static FLOOR: Floor = Floor::new(2, 200);
        agree_if_monitored(case, &FLOOR)?;
    }

    #[test]
    fn quantified_ahead_in_steps(case in quantified::keyed(TimeModel::Steps, true)) {
        static FLOOR: Floor = Floor::new(2, 200);
        agree_ahead(&case, &FLOOR)?;
    }

    #[test]
    fn quantified_ahead_in_points(case in quantified::keyed(TimeModel::Points, true)) {
        static FLOOR: Floor = Floor::new(2, 200);
        agree_ahead(&case, &FLOOR)?;
    }

    #[test]
    fn quantified_ahead_in_dense_time(case in quantified::keyed(TimeModel::Dense, true)) {
        static FLOOR: Floor = Floor::new(2, 200);
        agree_ahead(&case, &FLOOR)?;
    }
}

/// For every node whether it contains a future operator, and whether it contains a choice by one, which the
/// engine may decide earlier than the definitions.
fn looks_ahead(spec: &Spec) -> Vec<(bool, bool)> {
    let mut all: Vec<(bool, bool)> = Vec::new();
    for expr in &spec.nodes {
        let own = matches!(expr, Expr::Next(_) | Expr::Eventually(..) | Expr::Always(..) | Expr::Until(..));
        let ahead = |x: ExprId| all[x.index()].0;
        let chooses = match expr {
            Expr::If(condition, ..) => ahead(*condition),
            Expr::Compare(_, x, y) => ahead(*x) || ahead(*y),
            _ => false,
        };
        let operands: Vec<ExprId> = expr.operands().collect();
        let inherits = |f: fn(&(bool, bool)) -> bool| operands.iter().any(|x| f(&all[x.index()]));
        let node = (own || inherits(|x| x.0), chooses || inherits(|x| x.1));
        all.push(node);
    }
    all
}

/// A verdict: instance, property, time that it refers to, whether at an event or the end.
#[derive(Clone, Debug)]
struct Judged {
    keys: Vec<Value>,
    property: usize,
    about: i64,
    time: i64,
    verdict: Verdict,
}

/// All verdicts of properties with future operators.
fn judged(case: &Case) -> Vec<Judged> {
    let Case { spec, trace, now, delivery } = case;
    let program = Arc::new(Program::compile(spec).unwrap());
    let mut block = Block::new(program.layout());
    let mut monitor = Monitor::new(program.clone());
    monitor.report_every(true);
    let mut all = Vec::new();
    let mut done = 0;
    let mut take = |monitor: &Monitor| {
        all.extend(monitor.reports().iter().map(|report| Judged {
            keys: monitor.key(report),
            property: report.property as usize,
            about: report.about.unwrap_or(report.time).as_nanos(),
            time: report.time.as_nanos(),
            verdict: report.verdict,
        }));
    };
    for (&len, advance) in delivery.cuts.iter().cycle().zip(delivery.advances.iter().cycle()) {
        if done == trace.len() {
            break;
        }
        let events = &trace[done..trace.len().min(done + len)];
        if done > 0 && advance % 2 == 1 {
            let (before, next) = (trace[done - 1].time, events[0].time);
            monitor.advance(Timestamp::from_nanos(before + (next - before) / i64::from(1 + advance % 3)));
            take(&monitor);
        }
        block.clear();
        events.iter().for_each(|timed| write_timed(&mut block, program.projections(), timed));
        monitor.step(&block);
        take(&monitor);
        done += events.len();
        if advance / 2 % 2 == 1 {
            // A snapshot in between makes no difference.
            monitor = Monitor::restore(program.clone(), &monitor.snapshot()).unwrap();
            monitor.report_every(true);
        }
    }
    if trace.last().is_some_and(|last| last.time < *now) {
        monitor.advance(Timestamp::from_nanos(*now));
        take(&monitor);
    }
    monitor.end();
    take(&monitor);
    all
}

fn sorted<T: Ord>(all: impl Iterator<Item = T>) -> Vec<T> {
    let mut all: Vec<T> = all.collect();
    all.sort_unstable();
    all
}

/// The verdicts of the definition by parameters, of instances one after the other.
fn spots_by_keys(all: Vec<Instance>) -> Vec<(Vec<Value>, Vec<Spot>)> {
    let mut expected: Vec<(Vec<Value>, Vec<Spot>)> = Vec::new();
    for instance in all {
        match expected.iter_mut().find(|(keys, _)| *keys == instance.keys) {
            Some((_, spots)) => spots.extend(instance.spots),
            None => expected.push((instance.keys, instance.spots)),
        }
    }
    expected
}

/// Every verdict is right, and every event of an instance has one.
fn agree_ahead(case: &Case, floor: &Floor) -> Result<(), TestCaseError> {
    let mut case = case.clone();
    let ahead = looks_ahead(&case.spec);
    let whole = case.spec.clone();
    case.spec.properties.retain(|property| {
        let alone = Spec { properties: vec![property.clone()], ..whole.clone() };
        ahead[property.formula.index()] == (true, false) && Program::compile(&alone).is_ok()
    });
    let Case { spec, trace, now, .. } = &case;
    floor.note(spec.properties.len())?;
    if spec.properties.is_empty() {
        return Ok(());
    }
    let all = judged(&case);
    for p in 0..spec.properties.len() {
        let expected = spots_by_keys(instances(spec, p, trace, *now));
        // Decisions at the last event of the trace, if that is of another instance, may be used or not.
        let with_end = spots_by_keys(instances_until(spec, p, trace, *now, true));
        let formula = spec.properties[p].formula;
        let of_keys = |judged: &&Judged| expected.iter().any(|(keys, _)| *keys == judged.keys);
        prop_assert!(all.iter().filter(|judged| judged.property == p).all(|judged| of_keys(&judged)));
        for ((keys, spots), (_, with_end)) in expected.iter().zip(&with_end) {
            let found = all.iter().filter(|judged| judged.property == p && judged.keys == *keys);
            let known = |spot: &Spot| spot.verdict.unwrap_or(Verdict::Inconclusive).as_str();
            let at_events = spots.iter().filter(|spot| spot.event.is_some());
            let events = sorted(at_events.map(|spot| (spot.time, known(spot))));
            let pairs = sorted(found.clone().map(|judged| (judged.about, judged.verdict.as_str())));
            prop_assert!(found.clone().all(|judged| judged.time >= judged.about));
            if spec.properties[p].time != TimeModel::Dense {
                prop_assert_eq!(pairs, events, "{:?} of {:?}", formula, keys);
                continue;
            }
            for judged in found {
                let is_right = |spots: &[Spot]| {
                    let last = spots.iter().rev().find(|spot| spot.time <= judged.about);
                    let mut here = spots.iter().filter(|spot| spot.time == judged.about).chain(last);
                    here.any(|spot| known(spot) == judged.verdict.as_str())
                };
                let right = is_right(spots) || is_right(with_end);
                prop_assert!(right, "{:?} of {:?}: {:?} in {:?}", formula, keys, judged, spots);
            }
            let mut rest = pairs.clone();
            let at_events = |spots: &[Spot]| {
                let spots = spots.iter().filter(|spot| spot.event.is_some());
                spots.map(|spot| (spot.time, known(spot))).collect::<Vec<_>>()
            };
            for (event, other) in at_events(spots).into_iter().zip(at_events(with_end)) {
                let at = rest.iter().position(|pair| *pair == event);
                let at = at.or_else(|| rest.iter().position(|pair| *pair == other));
                prop_assert!(at.is_some(), "{:?} of {:?}: no {:?} in {:?}", formula, keys, event, pairs);
                rest.swap_remove(at.unwrap());
            }
        }
    }
    Ok(())
}

proptest! {
    #![proptest_config(config(500))]

    #[test]
    fn ahead_in_steps(case in keyed(TimeModel::Steps, true)) {
        static FLOOR: Floor = Floor::new(2, 200);
        agree_ahead(&case, &FLOOR)?;
    }

    #[test]
    fn ahead_in_points(case in keyed(TimeModel::Points, true)) {
        static FLOOR: Floor = Floor::new(2, 200);
        agree_ahead(&case, &FLOOR)?;
    }

    #[test]
    fn ahead_in_dense_time(case in keyed(TimeModel::Dense, true)) {
        static FLOOR: Floor = Floor::new(2, 200);
        agree_ahead(&case, &FLOOR)?;
    }
}

/// An instance with a single event is discarded once its state no longer matters.
#[test]
fn instance_without_tuples_is_discarded() {
    let topics = "topic request { user: int, id: int } topic grant { user: int, id: int }";
    let each = "for each user in (request.user, grant.user)";
    for formula in [
        "forall x. grant{id: x} -> once[0, 2 s] request{id: x}",
        "forall x. request{id: x} -> eventually[0, 2 s] grant{id: x}",
        "not exists x. request{id: x} and ((not grant{id: x}) since[1 ms, 2 s] request{id: x})",
    ] {
        let outcome = rondel_spec::parse(&format!("{topics} property p {each} = {formula}"));
        let spec = outcome.spec.unwrap_or_else(|| panic!("{:?}", outcome.diagnostics));
        let program = Arc::new(Program::compile(&spec).unwrap());
        let mut block = Block::new(program.layout());
        let mut monitor = Monitor::new(program.clone());
        for user in 0..5000 {
            block.clear();
            for (topic, after) in [(0, 0), (1, 500_000_000)] {
                let fields = vec![
                    ("user", Content::Value(Value::Int(user))),
                    ("id", Content::Value(Value::Int(user % 7))),
                ];
                definition::write(
                    &mut block,
                    program.projections(),
                    &definition::Event { topic, fields },
                    user * 1_000_000_000 + after,
                );
            }
            monitor.step(&block);
        }
        let status = monitor.slices().next().unwrap();
        assert!(status.instances < 600, "{formula}: {}", status.instances);
        assert!(status.bytes < 4_000_000, "{formula}: {} bytes", status.bytes);
    }
}
