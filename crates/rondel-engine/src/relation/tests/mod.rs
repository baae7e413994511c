//! Plans agree with the definitions.

mod ahead;
mod apart;
mod by_value;
mod definition;
mod limit;
mod random;
mod share;
mod witness;

use std::collections::HashMap;
use std::sync::Arc;

use definition::{Definition, Message};
use proptest::prelude::*;
use proptest::test_runner::{RngAlgorithm, TestRng, TestRunner};
use random::{spec, trace};
use rondel_event::{Block, Read, Slot, Timestamp, TopicId, Value, Verdict};
use rondel_spec::{Expr, ExprId, Property, Spec, TimeModel};

use super::literal::{Refusal, Scope};
use super::plan::{FieldColumn, Keep, RelationPlan, TruthBound};
use super::safe::Compiler;
use super::state::RelationState;
use super::term::{Cell, Source, float_cell};
use crate::{CompileError, Monitor, Program};

/// Inputs of a plan, taken from the definition.
struct DefinitionSource<'a> {
    definition: &'a Definition<'a>,
    plan: &'a RelationPlan,
    row: usize,
    /// Values, stored so that texts can be borrowed.
    fields: Vec<Option<Value>>,
    values: Vec<Option<Value>>,
}

impl<'a> DefinitionSource<'a> {
    fn new(definition: &'a Definition<'a>, plan: &'a RelationPlan, row: usize) -> DefinitionSource<'a> {
        let message = definition.positions[row].message.map(|i| &definition.trace[i]);
        let field = |f: &FieldColumn| message?.get(f.topic, &f.path, f.value_type);
        let fields = plan.fields.iter().map(field).collect();
        let values = plan.values.iter().map(|x| definition.value(*x, &HashMap::new(), row)).collect();
        DefinitionSource { definition, plan, row, fields, values }
    }
}

fn cell(value: &Value) -> Option<Cell<'_>> {
    Some(match value {
        Value::Bool(x) => Cell::Bits((*x).into()),
        Value::Int(x) | Value::Time(x) | Value::Duration(x) => Cell::Bits(*x as u64),
        Value::Float(x) => return float_cell(*x),
        Value::String(x) => Cell::Text(x.as_bytes()),
    })
}

impl Source for DefinitionSource<'_> {
    fn on(&self, topic: TopicId) -> bool {
        let message = self.definition.positions[self.row].message;
        message.is_some_and(|i| self.definition.trace[i].topic == topic.0)
    }

    fn field(&self, field: u32) -> Option<Cell<'_>> {
        self.fields[field as usize].as_ref().and_then(cell)
    }

    fn truth(&self, truth: u32) -> bool {
        let truth = self.plan.truths[truth as usize];
        let found = self.definition.truth(truth.node, &HashMap::new(), self.row);
        found.unwrap_or(truth.truth_bound == TruthBound::Possible) != truth.negated
    }

    fn value(&self, value: u32) -> Option<Cell<'_>> {
        self.values[value as usize].as_ref().and_then(cell)
    }
}

fn compile(
    spec: &Spec,
    truth_bound: TruthBound,
    model: TimeModel,
    keep: Keep,
) -> Result<RelationPlan, Refusal> {
    let scope = Scope::new(spec);
    let known = |node: ExprId| matches!(spec.nodes[node.index()], Expr::Literal(_) | Expr::On(_));
    Compiler::compile(&scope, ExprId(spec.nodes.len() as u32 - 1), truth_bound, model, keep, &known)
}

/// Returns the truth of the last node at every message.
fn run(plan: &RelationPlan, definition: &Definition<'_>) -> Vec<bool> {
    let mut state = RelationState::new(plan);
    let trace = definition.trace;
    let times: Vec<i64> = match definition.model {
        TimeModel::Steps => (0..trace.len() as i64).collect(),
        _ => trace.iter().map(|m| m.time - trace[0].time).collect(),
    };
    let mut found = Vec::new();
    for (row, &now) in times.iter().enumerate() {
        let before = if row == 0 { i64::MIN } else { times[row - 1] };
        found.push(state.tick(plan, now, before, false, &DefinitionSource::new(definition, plan, row)));
    }
    found
}

/// Returns the truth at every position in dense time, with time points at messages and deadlines.
fn run_dense(plan: &RelationPlan, definition: &Definition<'_>) -> Vec<Option<bool>> {
    let mut state = RelationState::new(plan);
    let mut found = vec![None; definition.positions.len()];
    let (mut span, mut spans_since) = (None, 0);
    for (i, position) in definition.positions.iter().enumerate() {
        if definition.is_span(i) {
            continue;
        }
        let time = position.place.div_euclid(2);
        // Truths that are constant between events are still evaluated at deadlines.
        let inputs_change = |i: usize| {
            let source = |i| DefinitionSource::new(definition, plan, i);
            let (now, before) = (source(i), source(i - 1));
            (0..plan.truths.len() as u32).any(|truth| now.truth(truth) != before.truth(truth))
                || now.values != before.values
        };
        let is_due = position.message.is_some()
            || state.next_change(plan) == Some(time)
            || inputs_change(i)
            || inputs_change(i + 1);
        assert!(state.next_change(plan).is_none_or(|due| due >= time), "a deadline was missed");
        if !is_due {
            continue;
        }
        for between in found.iter_mut().take(i).skip(spans_since) {
            *between = span;
        }
        let (at, after) =
            (DefinitionSource::new(definition, plan, i), DefinitionSource::new(definition, plan, i + 1));
        let (holds, holds_after) = state.dense_point(plan, time, &at, &after);
        found[i] = Some(holds);
        (span, spans_since) = (Some(holds_after), i + 1);
    }
    for between in found.iter_mut().skip(spans_since) {
        *between = span;
    }
    found
}

/// Returns the same truths from a property of a program.
fn by_program(spec: &Spec, trace: &[Message], model: TimeModel, cuts: &[usize]) -> Option<Vec<Option<bool>>> {
    Some(run_program(&program_of(spec, model, "")?, trace, cuts))
}

/// Compiles a program with the given evaluation; it stores every value only if it must.
fn program_of(spec: &Spec, model: TimeModel, plan: &str) -> Option<Arc<Program>> {
    let compiled = |unbounded: &[(String, String)]| {
        let mut property = Property::new("p", ExprId(spec.nodes.len() as u32 - 1));
        property.time = model;
        property.attributes = unbounded.to_vec();
        property.attributes.push(("plan".into(), plan.to_owned()));
        let spec = Spec { properties: vec![property], ..spec.clone() };
        match Program::compile(&spec) {
            Ok(program) => Some(Arc::new(program)),
            // A closed subformula may be one that cannot be monitored.
            Err(CompileError::NotMonitorable { .. }) => None,
            Err(error) => panic!("{error}"),
        }
    };
    compiled(&[]).or_else(|| compiled(&[("unbounded".into(), String::new())]))
}

/// Returns the verdict of the program at every message.
fn run_program(program: &Arc<Program>, trace: &[Message], cuts: &[usize]) -> Vec<Option<bool>> {
    let mut monitor = Monitor::new(Arc::clone(program));
    monitor.report_every(true);
    let mut block = Block::new(program.layout());
    let (mut found, mut rest) = (Vec::new(), trace);
    for &cut in cuts.iter().cycle() {
        let (now, later) = rest.split_at(cut.min(rest.len()));
        block.clear();
        for message in now {
            write(program, &mut block, message);
        }
        found.extend(monitor.step(&block).iter().filter(|report| report.row.is_some()).map(|report| {
            match report.verdict {
                Verdict::Satisfied => Some(true),
                Verdict::Violated => Some(false),
                Verdict::Inconclusive => None,
            }
        }));
        rest = later;
        if rest.is_empty() {
            break;
        }
        if cut % 2 == 0 {
            // A snapshot in between changes nothing.
            monitor = Monitor::restore(Arc::clone(program), &monitor.snapshot()).unwrap();
            monitor.report_every(true);
        }
    }
    found
}

fn write(program: &Program, block: &mut Block, message: &Message) {
    let topic = TopicId(message.topic);
    let row = block.push(topic, Timestamp::from_nanos(message.time));
    for field in &program.projections()[topic.index()].fields {
        let name = field.path.to_string();
        let Some((_, value)) = message.fields.iter().find(|(key, _)| *key == name) else { continue };
        match (value, field.slot) {
            (_, Slot::Bool(column)) if field.read == Read::Presence => block.set_bool(column, row, true),
            (Value::Int(x), Slot::Int(column)) => block.set_int(column, row, *x),
            (Value::String(x), Slot::String(column)) => block.set_string(column, row, x),
            (_, slot) => block.set_invalid(slot, row),
        }
    }
}

/// Returns whether the formula could be monitored.
fn assert_agreement(spec: &Spec, trace: &[Message], model: TimeModel, cuts: &[usize]) -> bool {
    // With bounds the plan may differ from the one without.
    let bounded = [TruthBound::Certain, TruthBound::Possible]
        .map(|truth_bound| compile(spec, truth_bound, model, Keep::Bounded));
    let plans = match bounded {
        [Ok(certain), Ok(possible)] => [certain, possible],
        _ => match [TruthBound::Certain, TruthBound::Possible]
            .map(|truth_bound| compile(spec, truth_bound, model, Keep::All))
        {
            [Ok(certain), Ok(possible)] => [certain, possible],
            _ => return false,
        },
    };
    let [certain, possible] = plans;
    let definition = Definition::new(spec, trace, model);
    let root = ExprId(spec.nodes.len() as u32 - 1);
    let expected: Vec<_> =
        (0..definition.positions.len()).map(|i| definition.truth(root, &HashMap::new(), i)).collect();
    if model == TimeModel::Dense {
        let found: Vec<_> = run_dense(&certain, &definition)
            .into_iter()
            .zip(run_dense(&possible, &definition))
            .map(|(certain, possible)| if certain == possible { certain } else { None })
            .collect();
        assert_eq!(found, expected, "{certain:#?} {:?}", definition.positions);
        let at_messages = definition.positions.iter().zip(&expected).filter(|(p, _)| p.message.is_some());
        let expected: Vec<_> = at_messages.map(|(_, truth)| *truth).collect();
        let by_program = by_program(spec, trace, model, cuts);
        let is_monitored = by_program.is_some();
        assert_eq!(by_program.unwrap_or(expected.clone()), expected, "in a program: {certain:#?}");
        return is_monitored;
    }
    let found: Vec<_> = run(&certain, &definition)
        .into_iter()
        .zip(run(&possible, &definition))
        .map(|(certain, possible)| if certain == possible { Some(certain) } else { None })
        .collect();
    assert_eq!(found, expected, "{certain:#?}");
    let by_program = by_program(spec, trace, model, cuts);
    let is_monitored = by_program.is_some();
    assert_eq!(by_program.unwrap_or(expected.clone()), expected, "in a program: {certain:#?}");
    is_monitored
}

/// Creates a runner of `cases` random cases, or of `RONDEL_CASES`. A failing case prints the seed;
/// `RONDEL_SEED` repeats it.
fn runner(cases: u32) -> TestRunner {
    let number = |name: &str| std::env::var(name).ok().and_then(|text| text.parse::<u64>().ok());
    let now = || std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
    let seed = number("RONDEL_SEED").unwrap_or_else(|| now().map_or(1, |now| now.as_nanos() as u64));
    println!("RONDEL_SEED={seed}");
    let config = ProptestConfig {
        cases: number("RONDEL_CASES").map_or(cases, |cases| cases as u32),
        failure_persistence: None,
        max_shrink_iters: 20_000,
        ..ProptestConfig::default()
    };
    let mut bytes = [0; 32];
    bytes[..8].copy_from_slice(&seed.to_le_bytes());
    TestRunner::new_with_rng(config, TestRng::from_seed(RngAlgorithm::ChaCha, &bytes))
}

#[test]
fn monitorable_formulas_agree_with_definitions() {
    let mut runner = runner(3000);
    let cuts = proptest::collection::vec(1..5_usize, 1..4);
    let (tried, monitored) = (std::cell::Cell::new(0), std::cell::Cell::new(0));
    let result = runner.run(&(spec(), trace(), 0..3_usize, cuts), |(spec, trace, model, cuts)| {
        let model = [TimeModel::Steps, TimeModel::Points, TimeModel::Dense][model];
        tried.set(tried.get() + 1);
        monitored.set(monitored.get() + u32::from(assert_agreement(&spec, &trace, model, &cuts)));
        Ok(())
    });
    if let Err(error) = result {
        panic!("{error}");
    }
    assert!(2 * monitored.get() > tried.get(), "only {} of {}", monitored.get(), tried.get());
}
