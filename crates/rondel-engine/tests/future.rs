//! Future operators: every event gets a verdict as soon as the definitions decide it under all continuations,
//! and not before.

#![allow(clippy::panic, clippy::unwrap_used)]

use crate::definition;

use std::collections::BTreeMap;

use definition::drive::{Emitted, agree_in_time, config, drive};
use definition::floor::Floor;
use definition::outcome::{Spot, outcomes};
use definition::timed::{Case, Delivery, Palette, case};
use definition::{Content, Event, Timed, spec};
use proptest::prelude::*;
use rondel_engine::Program;
use rondel_event::{Path, TopicId, Value, ValueType, Verdict};
use rondel_spec::{Bounds, Expr, ExprId, Spec, TimeModel};

fn palette(model: TimeModel) -> Palette {
    Palette { model, future: true, measures: false, extreme: false }
}

/// For every node whether it contains a future operator.
fn looks_ahead(spec: &Spec) -> Vec<bool> {
    let mut ahead: Vec<bool> = Vec::new();
    for expr in &spec.nodes {
        let own = matches!(expr, Expr::Next(_) | Expr::Eventually(..) | Expr::Always(..) | Expr::Until(..));
        ahead.push(own || expr.operands().any(|operand| ahead[operand.index()]));
    }
    ahead
}

/// For every node whether it contains a choice with a future operator: the engine may decide it earlier than
/// the oracle.
fn has_choice(spec: &Spec, ahead: &[bool]) -> Vec<bool> {
    let mut choice: Vec<bool> = Vec::new();
    for expr in &spec.nodes {
        let own = match expr {
            Expr::If(condition, ..) => ahead[condition.index()],
            Expr::Compare(_, x, y) => ahead[x.index()] || ahead[y.index()],
            _ => false,
        };
        choice.push(own || expr.operands().any(|operand| choice[operand.index()]));
    }
    choice
}

/// The specification, reduced to properties with future operators that can be monitored.
fn chosen(case: &Case) -> Spec {
    let ahead = looks_ahead(&case.spec);
    let choice = has_choice(&case.spec, &ahead);
    let mut spec = case.spec.clone();
    spec.properties.retain(|property| {
        let alone = Spec { properties: vec![property.clone()], ..case.spec.clone() };
        let formula = property.formula.index();
        ahead[formula] && !choice[formula] && Program::compile(&alone).is_ok()
    });
    spec
}

fn about(emitted: &Emitted) -> i64 {
    emitted.report.about.unwrap_or(emitted.report.time).as_nanos()
}

/// Number of occurrences of each verdict, by time.
fn by_time(verdicts: impl Iterator<Item = (i64, Verdict)>) -> BTreeMap<(i64, &'static str), usize> {
    let mut found = BTreeMap::new();
    for (time, verdict) in verdicts {
        *found.entry((time, verdict.as_str())).or_default() += 1;
    }
    found
}

fn agree(case: &Case, floor: &Floor) -> Result<(), TestCaseError> {
    let case = Case { spec: chosen(case), ..case.clone() };
    floor.note(case.spec.properties.len())?;
    if palette_of(&case) != Some(TimeModel::Dense) {
        if palette_of(&case) == Some(TimeModel::Steps) {
            // In discrete time a verdict refers to the event `back` steps before the one at which it is
            // emitted.
            for emitted in drive(&case.spec, &case.trace, case.now, &case.delivery) {
                let Some(event) = emitted.event else { continue };
                prop_assert_eq!(case.trace[event - emitted.report.back as usize].time, about(&emitted));
            }
        }
        return agree_in_time(&case);
    }
    let emitted = drive(&case.spec, &case.trace, case.now, &case.delivery);
    for (p, spots) in outcomes(&case.spec, &case.trace, case.now).iter().enumerate() {
        let found: Vec<&Emitted> = emitted.iter().filter(|g| g.report.property as usize == p).collect();
        let formula = case.spec.properties[p].formula;
        dense(spots, &found, &case).map_err(|why| TestCaseError::fail(format!("{formula:?}: {why}")))?;
    }
    Ok(())
}

fn palette_of(case: &Case) -> Option<TimeModel> {
    case.spec.properties.first().map(|property| property.time)
}

/// In dense time every verdict is right, and every event has one.
fn dense(spots: &[Spot], found: &[&Emitted], case: &Case) -> Result<(), String> {
    for g in found {
        // The instant, or the time just after it: the last spot that begins by then.
        let (time, after) = (about(g), g.report.after);
        let is_it = |spot: &&Spot| spot.time == time && spot.after == after;
        let last =
            spots.iter().rev().find(|spot| spot.time <= time).filter(|_| !spots.iter().any(|s| is_it(&s)));
        let mut here = spots.iter().filter(is_it).chain(last);
        if !here.any(|spot| spot.verdict.unwrap_or(Verdict::Inconclusive) == g.report.verdict) {
            return Err(format!("at {time} there is no {}", g.report.verdict));
        }
    }
    let mut events = BTreeMap::new();
    for spot in spots.iter().filter(|spot| spot.event.is_some()) {
        let verdict = spot.verdict.unwrap_or(Verdict::Inconclusive);
        *events.entry((case.trace[spot.event.unwrap()].time, verdict.as_str())).or_insert(0) += 1;
    }
    let found = by_time(found.iter().map(|g| (about(g), g.report.verdict)));
    match events.into_iter().find(|(key, count)| found.get(key).is_none_or(|found| found < count)) {
        None => Ok(()),
        Some((event, count)) => Err(format!("not {count} of {event:?}: {found:?}")),
    }
}

proptest! {
    #![proptest_config(config(1500))]

    #[test]
    fn in_steps(case in case(palette(TimeModel::Steps), 1..10, 0..16)) {
        static FLOOR: Floor = Floor::new(15, 200);
        agree(&case, &FLOOR)?;
    }

    #[test]
    fn in_points(case in case(palette(TimeModel::Points), 1..10, 0..16)) {
        static FLOOR: Floor = Floor::new(15, 200);
        agree(&case, &FLOOR)?;
    }

    #[test]
    fn in_dense_time(case in case(palette(TimeModel::Dense), 1..10, 0..12)) {
        static FLOOR: Floor = Floor::new(15, 200);
        agree(&case, &FLOOR)?;
    }
}

proptest! {
    #![proptest_config(config(300))]

    /// Such times are clamped and not distinguished, but nothing fails.
    #[test]
    fn extreme_times(
        points in case(Palette { extreme: true, ..palette(TimeModel::Points) }, 1..8, 0..12),
        spans in case(Palette { extreme: true, ..palette(TimeModel::Dense) }, 1..8, 0..12),
    ) {
        static FLOORS: [Floor; 2] = [const { Floor::new(5, 200) }; 2];
        for (case, floor) in [points, spans].iter().zip(&FLOORS) {
            floor.note(chosen(case).properties.len())?;
            drive(&chosen(case), &case.trace, case.now, &case.delivery);
        }
    }
}

/// A witness on an interval is preceded by a part of it, on which the left operand must hold.
#[test]
fn interval_witness_is_not_its_beginning() {
    let event = |time, topic, fields| Timed { time, arrival: None, event: Event { topic, fields } };
    let bounds = |lower, upper| Bounds { lower, upper: Some(upper) };
    let check = |nodes: Vec<Expr>, trace: Vec<Timed>, now| {
        let root = ExprId(nodes.len() as u32 - 1);
        let mut spec = spec(3, nodes, [root]);
        spec.properties[0].time = TimeModel::Dense;
        let case = Case { spec, trace, now, delivery: Delivery { cuts: vec![1], advances: vec![0] } };
        agree(&case, &Floor::new(100, 1)).unwrap();
    };
    // There is a message at 0, and none just after.
    for (lower, upper) in [(0, 0), (0, 5), (1, 5), (2, 2)] {
        for second in [0, 1, 2, 3] {
            let until = Expr::Until(bounds(lower, upper), ExprId(0), ExprId(1));
            let nodes = vec![Expr::On(TopicId(0)), Expr::Not(ExprId(0)), until];
            let trace = [(0, 0), (second, 0), (6, 1)].map(|(time, topic)| event(time, topic, Vec::new()));
            check(nodes, trace.to_vec(), 20);
        }
    }
    // Just after 0, the left operand must hold until just after 7. It does not hold there, whatever it was
    // before.
    let field = |topic, name| {
        let path = Path::keys([name]);
        Expr::Field { topic: TopicId(topic), path, value_type: ValueType::Bool }
    };
    let until = Expr::Until(bounds(7, 7), ExprId(1), ExprId(2));
    let nodes = vec![field(2, "b2"), Expr::Previously(ExprId(0)), field(0, "b"), until];
    let mut trace = [0, 2, 4, 7].map(|time| event(time, 0, Vec::new())).to_vec();
    trace.push(event(7, 2, vec![("b2", Content::Value(Value::Bool(false)))]));
    check(nodes, trace, 8);
}
