//! Share of random formulas that can be monitored, and the reasons for which others are refused.
//!
//! `RONDEL_CASES=3000 cargo test -p rondel-engine --lib share -- --nocapture` prints the shares of that many
//! formulas.

use std::collections::BTreeMap;

use proptest::strategy::{Strategy, ValueTree};
use proptest::test_runner::TestRunner;

use super::random::{ahead_spec, by_value_spec, spec};
use super::*;

/// Returns the reason for which the last node of a specification cannot be monitored, if it cannot.
fn refusal(spec: &Spec, model: TimeModel, unbounded: bool) -> Option<&'static str> {
    let mut property = Property::new("p", ExprId(spec.nodes.len() as u32 - 1));
    property.time = model;
    property.attributes.extend(unbounded.then(|| ("unbounded".into(), String::new())));
    match Program::compile(&Spec { properties: vec![property], ..spec.clone() }) {
        Ok(_) => None,
        Err(CompileError::NotMonitorable { why, .. }) => Some(why),
        Err(error) => panic!("{error}"),
    }
}

#[test]
fn most_formulas_can_be_monitored() {
    let cases = std::env::var("RONDEL_CASES").ok().and_then(|n| n.parse().ok()).unwrap_or(300);
    let mut runner = TestRunner::deterministic();
    // In a quarter of the past formulas nothing binds the variable.
    let kinds = [
        ("past", spec().boxed(), 25),
        ("by value", by_value_spec().boxed(), 25),
        ("future", ahead_spec().boxed(), 30),
    ];
    for (kind, strategy, most) in kinds {
        let specs: Vec<Spec> =
            (0..cases).map(|_| strategy.new_tree(&mut runner).unwrap().current()).collect();
        for model in [TimeModel::Steps, TimeModel::Points, TimeModel::Dense] {
            // `next` is not defined in dense time.
            let is_next = |spec: &&Spec| spec.nodes.iter().any(|node| matches!(node, Expr::Next(_)));
            let specs: Vec<&Spec> =
                specs.iter().filter(|spec| model != TimeModel::Dense || !is_next(spec)).collect();
            for unbounded in [false, true] {
                let mut refused: BTreeMap<&str, usize> = BTreeMap::new();
                for why in specs.iter().filter_map(|spec| refusal(spec, model, unbounded)) {
                    *refused.entry(why).or_default() += 1;
                }
                let (all, sum) = (specs.len(), refused.values().sum::<usize>());
                let keeps = if unbounded { ", unbounded" } else { "" };
                println!(
                    "{kind}, {model:?}{keeps}: {sum} of {all} refused, {:.1} %",
                    100.0 * sum as f64 / all as f64
                );
                refused.iter().for_each(|(why, count)| println!("    {count:6} {why}"));
                assert!(100 * sum <= most * all, "{sum} of {all} are refused");
            }
        }
    }
}
