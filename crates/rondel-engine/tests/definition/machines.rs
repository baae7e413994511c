//! Random machines, and properties on them.

use std::ops::Range;

use proptest::collection::vec;
use proptest::prelude::*;
use rondel_event::{Comparison, TopicId, Value, ValueType};
use rondel_spec::{
    BinaryOp, Expr, ExprId, Machine, MachineId, Property, State, TimeModel, Transition, Variable,
};

use super::random::{Generator, Recipe, TOPICS, recipe_of};
use super::spec;
use super::timed::{Case, Palette, case_of, generate_all, sorts, timed_bounds};

/// Random choices for a transition.
type Choice = [usize; 6];

const VARIABLES: u32 = 2;

/// Cases with one machine of up to four states.
pub fn case(palette: Palette, events: Range<usize>) -> impl Strategy<Value = Case> {
    let recipes = |n: Range<usize>| vec(recipe_of(sorts(palette), timed_bounds()), n);
    let choice = [0..1000_usize, 0..1000, 0..1000, 0..1000, 0..1000, 0..1000];
    let made = (recipes(1..6), vec(choice, 1..7), recipes(0..6), 2..5_u32, 0..1000_usize);
    case_of(palette, made, events, move |(guards, choices, above, states, r), unit| {
        let mut generator = Generator::default();
        generate_all(&mut generator, palette, guards, unit);
        let machine = machine(&mut generator, palette.model, choices, *states, unit);
        watch(&mut generator, *states, *r, above, palette, unit);
        let formulas: Vec<ExprId> = generator.all_of(ValueType::Bool).collect();
        let mut spec = spec(TOPICS, generator.nodes, formulas);
        spec.properties.iter_mut().for_each(|p: &mut Property| p.time = palette.model);
        spec.machines.push(machine);
        spec
    })
}

fn variable(generator: &mut Generator, v: u32) -> ExprId {
    generator.add(Expr::MachineVariable(MachineId(0), v, ValueType::Int), ValueType::Int)
}

/// The text variable of the machine.
fn text(generator: &mut Generator) -> ExprId {
    generator.add(Expr::MachineVariable(MachineId(0), VARIABLES, ValueType::String), ValueType::String)
}

fn literal(generator: &mut Generator, x: i64) -> ExprId {
    generator.add(Expr::Literal(Value::Int(x)), ValueType::Int)
}

fn machine(
    generator: &mut Generator,
    model: TimeModel,
    choices: &[Choice],
    states: u32,
    unit: u64,
) -> Machine {
    let plain: Vec<ExprId> = generator.all_of(ValueType::Bool).collect();
    let unit = if model == TimeModel::Steps { 1 } else { unit };
    let transitions: Vec<Transition> = choices
        .iter()
        .map(|&[from, to, guard, time, data, r]| {
            let usual = *(plain.get(guard / 7 % plain.len().max(1)).unwrap_or(&ExprId(0)));
            let on = generator.add(Expr::On(TopicId(r as u32 % TOPICS)), ValueType::Bool);
            let usual = if plain.is_empty() { on } else { usual };
            let guard = match guard % 7 {
                0 => None,
                1 | 2 => {
                    let (x, c) =
                        (variable(generator, r as u32 % VARIABLES), literal(generator, (r / 2 % 3) as i64));
                    Some(generator.add(Expr::Compare(Comparison::LessOrEqual, x, c), ValueType::Bool))
                }
                3 => {
                    let (x, c) =
                        (variable(generator, r as u32 % VARIABLES), literal(generator, (r / 2 % 3) as i64));
                    let data = generator.add(Expr::Compare(Comparison::Equal, x, c), ValueType::Bool);
                    Some(generator.add(Expr::And(usual, data), ValueType::Bool))
                }
                4 if r % 3 == 0 => {
                    let (x, y) = (text(generator), generator.leaf(ValueType::String, r / 3));
                    Some(generator.add(Expr::Compare(Comparison::Equal, x, y), ValueType::Bool))
                }
                4 => Some(on),
                5 => Some(generator.add(Expr::And(on, usual), ValueType::Bool)),
                _ => Some(usual),
            };
            let amount = |r: usize| (r as u64 % 5).saturating_mul(unit);
            // Without guard and bound, it would be taken at every time point.
            let after = match (time % 5, guard) {
                (0 | 1, _) | (_, None) => Some(amount(time / 5).max(unit)),
                _ => None,
            };
            let within = (time % 3 == 0).then(|| amount(time / 25));
            let assignments = match data % 5 {
                0 => {
                    let v = (data / 5) as u32 % VARIABLES;
                    let (x, one) = (variable(generator, v), literal(generator, 1));
                    vec![(v, generator.add(Expr::Binary(BinaryOp::Add, x, one), ValueType::Int))]
                }
                1 => vec![(0, variable(generator, 1)), (1, variable(generator, 0))],
                2 => vec![(1, generator.leaf(ValueType::Int, data / 5))],
                3 => vec![(VARIABLES, generator.leaf(ValueType::String, data / 5))],
                _ => vec![],
            };
            let (from, to) = (from as u32 % states, to as u32 % states);
            Transition { from, to, guard, within, after, assignments, text: String::new() }
        })
        .collect();
    let state = |i| State { name: format!("s{i}"), is_final: false };
    let initial = |v| Variable { name: format!("v{v}"), initial: Value::Int(i64::from(v)) };
    Machine {
        name: "m".into(),
        states: (0..states).map(state).collect(),
        initial: 0,
        variables: (0..VARIABLES)
            .map(initial)
            .chain([Variable { name: "text".into(), initial: Value::String("x".into()) }])
            .collect(),
        transitions,
        time: model,
        slice: None,
    }
}

/// Formulas on the machine, and formulas that contain them.
fn watch(generator: &mut Generator, states: u32, r: usize, above: &[Recipe], palette: Palette, unit: u64) {
    for state in 0..states {
        let some = if r.is_multiple_of(3) { vec![state, 0] } else { vec![state] };
        generator.add(Expr::InState(MachineId(0), some), ValueType::Bool);
    }
    generator.add(Expr::Ambiguous(MachineId(0)), ValueType::Bool);
    for v in 0..VARIABLES {
        let (x, c) = (variable(generator, v), literal(generator, (r / 3 % 4) as i64));
        generator.add(Expr::Compare(Comparison::Equal, x, c), ValueType::Bool);
    }
    let (x, y) = (text(generator), generator.leaf(ValueType::String, r / 7));
    generator.add(Expr::Compare(Comparison::Equal, x, y), ValueType::Bool);
    generate_all(generator, palette, above, unit);
}
