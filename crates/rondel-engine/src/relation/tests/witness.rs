//! The values of a violation violate the formula.

use super::random::by_value_spec;
use super::*;
use crate::monitor::witness::parts;

/// Checks the values of every violation. Returns the numbers of violations with and without values.
pub(super) fn assert_witnesses(
    spec: &Spec,
    trace: &[Message],
    model: TimeModel,
    plan: &str,
    cuts: &[usize],
) -> [u32; 2] {
    let Some(program) = program_of(spec, model, plan) else { return [0; 2] };
    let definition = Definition::new(spec, trace, model);
    let root = ExprId(spec.nodes.len() as u32 - 1);
    let mut monitor = Monitor::new(Arc::clone(&program));
    let mut block = Block::new(program.layout());
    let (mut at, mut counts) = (0, [0; 2]);
    for &cut in cuts.iter().cycle() {
        let now = &trace[at..(at + cut).min(trace.len())];
        block.clear();
        now.iter().for_each(|message| write(&program, &mut block, message));
        monitor.step(&block);
        for report in monitor.reports() {
            let mut values = Vec::new();
            monitor.write_witness(report, Some(&block), &mut values);
            if report.verdict != Verdict::Violated {
                continue;
            }
            counts[usize::from(values.is_empty())] += 1;
            if values.is_empty() {
                continue;
            }
            let message = report.row.map(|row| at + usize::from(row));
            let place = 2 * report.time.as_nanos() + i64::from(report.after);
            let position = definition.positions.iter().rposition(|position| match message {
                Some(_) => position.message == message,
                None => position.place == place,
            });
            let valuation: HashMap<_, _> = values.iter().cloned().collect();
            let violates = parts(spec, root).into_iter().any(|(mut node, positive)| {
                // Body of the quantifiers whose values are reported.
                while let Expr::Exists(variable, body) | Expr::ForAll(variable, body) =
                    &spec.nodes[node.index()]
                    && valuation.contains_key(variable)
                {
                    node = *body;
                }
                definition.truth(node, &valuation, position.unwrap()) == Some(!positive)
            });
            assert!(violates, "{values:?} at {report:?}");
        }
        at += now.len();
        if at == trace.len() {
            return counts;
        }
    }
    counts
}

#[test]
fn reported_values_violate_by_definition() {
    let mut runner = runner(3000);
    let cuts = proptest::collection::vec(1..5_usize, 1..4);
    let counts = std::cell::Cell::new([0; 2]);
    let strategy = (prop_oneof![by_value_spec(), spec()], trace(), 0..3_usize, cuts);
    let result = runner.run(&strategy, |(spec, trace, model, cuts)| {
        let model = [TimeModel::Steps, TimeModel::Points, TimeModel::Dense][model];
        for plan in ["", "relations"] {
            let [named, unnamed] = assert_witnesses(&spec, &trace, model, plan, &cuts);
            let [all_named, all_unnamed] = counts.get();
            counts.set([all_named + named, all_unnamed + unnamed]);
        }
        Ok(())
    });
    if let Err(error) = result {
        panic!("{error}");
    }
    let [named, unnamed] = counts.get();
    assert!(named > 1000, "only {named} violations named their values, {unnamed} did not");
    println!("{named} named, {unnamed} not");
}
