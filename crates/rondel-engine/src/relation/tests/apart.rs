//! Pairs that must differ are counted, not listed.

use super::super::plan::PartOp;
use super::random::apart_spec;
use super::witness::assert_witnesses;
use super::*;

#[test]
fn pairs_that_differ_agree_with_definition() {
    let mut runner = runner(2000);
    let cuts = proptest::collection::vec(1..5_usize, 1..4);
    let counts = std::cell::Cell::new([0; 3]);
    let result = runner.run(&(apart_spec(), trace(), 0..3_usize, cuts), |(spec, trace, model, cuts)| {
        let model = [TimeModel::Steps, TimeModel::Points, TimeModel::Dense][model];
        let [monitored, counted, named] = counts.get();
        let is_monitored = assert_agreement(&spec, &trace, model, &cuts);
        let plan = compile(&spec, TruthBound::Certain, model, Keep::All);
        let is_counted =
            plan.is_ok_and(|plan| plan.parts.iter().any(|part| matches!(part.op, PartOp::Apart { .. })));
        let [is_named, _] = assert_witnesses(&spec, &trace, model, "relations", &cuts);
        counts.set([monitored + u32::from(is_monitored), counted + u32::from(is_counted), named + is_named]);
        Ok(())
    });
    if let Err(error) = result {
        panic!("{error}");
    }
    let [monitored, counted, named] = counts.get();
    assert!(monitored > 1000 && counted > 500 && named > 50, "{monitored} {counted} {named}");
}

/// Returns the maximum number of tuples handled for a message, over a thousand messages with different
/// values.
fn cost(formula: &str) -> usize {
    let text = format!("topic t0 {{ a: int }} topic t1 {{ a: int }} property p = {formula}");
    let spec = rondel_spec::parse(&text).spec.unwrap();
    let spec = Spec { properties: Vec::new(), ..spec };
    let trace: Vec<Message> = (0..1000)
        .map(|i| Message {
            topic: i % 2,
            time: 1000 + i64::from(i),
            fields: vec![("a", Value::Int(i.into()))],
        })
        .collect();
    let plan = compile(&spec, TruthBound::Certain, TimeModel::Points, Keep::All).unwrap();
    let mut state = RelationState::new(&plan);
    let one = |message: &Message| {
        let definition = Definition::new(&spec, std::slice::from_ref(message), TimeModel::Points);
        let source = DefinitionSource::new(&definition, &plan, 0);
        state.tick(&plan, message.time, message.time - 1, false, &source);
        state.handled()
    };
    trace.iter().map(one).max().unwrap()
}

#[test]
fn cost_of_message_is_independent_of_stored_values() {
    for formula in [
        "exists x. exists y. once[0, 1 h] t0{a: x} and once[0, 1 h] t1{a: y} and x != y",
        "forall x. forall y. once[0, 1 h] t0{a: x} and once[0, 1 h] t0{a: y} -> x == y",
        "forall x. forall y. t0{a: x} and once[0, 1 h] t1{a: y} -> x == y",
        "forall x. t0{a: x} -> not (exists y. t0{a: x} and once[0, 1 h] t1{a: y} and x != y)",
    ] {
        let cost = cost(formula);
        assert!(cost < 10, "{cost} tuples for {formula}");
    }
}
