//! Random specifications and traces with times.
//!
//! Times and bounds are mostly multiples of one unit, so that they coincide: errors are most likely at the
//! ends of intervals.

use std::fmt;
use std::ops::Range;

use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::select;
use rondel_event::{Comparison, TopicId, Value, ValueType};
use rondel_spec::{Aggregate, BinaryOp, Bounds, Expr, ExprId, Property, Spec, TimeModel};

use super::build::{SECOND, YEAR};
use super::random::{Generator, Recipe, TOPICS, event, recipe_of};
use super::{Event, Timed, spec};

/// The kinds of nodes in random formulas.
#[derive(Clone, Copy, Debug)]
pub struct Palette {
    pub model: TimeModel,
    pub future: bool,
    pub measures: bool,
    /// Whether times are near the limits of their range.
    pub extreme: bool,
}

/// A specification in which every boolean node is a property, a trace, and the way to feed it.
#[derive(Clone)]
pub struct Case {
    pub spec: Spec,
    pub trace: Vec<Timed>,
    /// The time at the end.
    pub now: i64,
    pub delivery: Delivery,
}

/// Block sizes, and times to advance to between blocks.
#[derive(Clone, Debug)]
pub struct Delivery {
    pub cuts: Vec<usize>,
    pub advances: Vec<u8>,
}

/// One line per node, and one per event.
impl fmt::Debug for Case {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f)?;
        for (i, node) in self.spec.nodes.iter().enumerate() {
            writeln!(f, "  {i}: {node:?}")?;
        }
        for slice in &self.spec.slices {
            writeln!(f, "  {slice:?}")?;
        }
        for machine in &self.spec.machines {
            writeln!(f, "  {machine:?}")?;
        }
        for Timed { time, arrival, event } in &self.trace {
            writeln!(f, "  at {time} (arrival {arrival:?}): t{} {:?}", event.topic, event.fields)?;
        }
        writeln!(f, "  until {}, {:?}", self.now, self.delivery)
    }
}

/// Recipes below this number are those of discrete time.
const TIMED: usize = 40;
/// A `since` with operands that hold at instants; relative to [`TIMED`].
const SINCE: usize = 10;

/// Mostly temporal operators; arithmetic has its own tests.
pub fn sorts(palette: Palette) -> Vec<usize> {
    let mut sorts = vec![0, 0, 0, 1, 2, 8, 9, 10, 11, 14, 16, 17, 19, 20, 20, 24, 25, 26];
    sorts.extend([21, 21, 22, 23, 27, 28, 29].repeat(2));
    sorts.push(TIMED + SINCE);
    sorts.extend([30, 31]);
    if palette.future {
        sorts.extend([TIMED + 1, TIMED + 1, TIMED + 2, TIMED + 3, TIMED + 3, TIMED + 3]);
        if palette.model != TimeModel::Dense {
            sorts.push(TIMED);
        }
    }
    if palette.measures {
        sorts.extend((TIMED + 4..TIMED + 10).collect::<Vec<_>>().repeat(2));
    }
    sorts
}

/// In units; some exceed all times.
fn amount() -> impl Strategy<Value = u64> {
    prop_oneof![6 => 0..5_u64, 2 => 0..12_u64, 1 => select(vec![200, 1 << 40, u64::MAX])]
}

pub fn timed_bounds() -> impl Strategy<Value = Bounds> {
    let width = prop_oneof![2 => Just(Some(0)), 5 => amount().prop_map(Some), 2 => Just(None)];
    (prop_oneof![2 => Just(0), 3 => amount()], width, 0..12).prop_map(|(lower, width, odd)| match odd {
        0 => Bounds { lower, upper: lower.checked_sub(1) },
        _ => Bounds { lower, upper: width.map(|w| w.saturating_add(lower)) },
    })
}

/// A multiple of the unit, sometimes off by one.
fn scaled(x: u64, unit: u64, r: usize) -> u64 {
    let exact = x.saturating_mul(unit);
    match r % 17 {
        0 => exact.saturating_add(1),
        1 => exact.saturating_sub(1),
        _ => exact,
    }
}

/// Adds nodes for all recipes, with bounds in units.
pub fn generate_all(generator: &mut Generator, palette: Palette, recipes: &[Recipe], unit: u64) {
    for recipe in recipes {
        let mut recipe = recipe.clone();
        if palette.model != TimeModel::Steps {
            let [_, _, t, u] = recipe.choices;
            recipe.bounds.lower = scaled(recipe.bounds.lower, unit, t);
            recipe.bounds.upper = recipe.bounds.upper.map(|upper| scaled(upper, unit, u));
        }
        if recipe.sort < TIMED {
            generator.generate(&recipe)
        } else {
            generate(generator, palette.model, &recipe, unit)
        }
    }
}

fn nodes(palette: Palette, recipes: &[Recipe], unit: u64) -> Spec {
    let mut generator = Generator::default();
    generate_all(&mut generator, palette, recipes, unit);
    let formulas: Vec<ExprId> = generator.all_of(ValueType::Bool).collect();
    let mut spec = spec(TOPICS, generator.nodes, formulas);
    spec.properties.iter_mut().for_each(|p: &mut Property| p.time = palette.model);
    spec
}

#[expect(clippy::too_many_lines, reason = "one arm for each operator")]
fn generate(generator: &mut Generator, model: TimeModel, recipe: &Recipe, unit: u64) {
    let Recipe { sort, choices: [r, s, t, u], bounds } = *recipe;
    let ahead = Bounds { upper: bounds.upper.or(Some(bounds.lower.saturating_add(unit))), ..bounds };
    let compare = [Comparison::LessOrEqual, Comparison::Equal, Comparison::Greater, Comparison::Less][t % 4];
    let topic = TopicId(s as u32 % TOPICS);
    let grid = (r % 8) as i64;
    let truth = match sort - TIMED {
        0 => Expr::Next(generator.pick(ValueType::Bool, r)),
        1 => Expr::Eventually(ahead, generator.pick(ValueType::Bool, r)),
        2 => Expr::Always(ahead, generator.pick(ValueType::Bool, r)),
        3 => {
            let (x, y) = sides(generator, recipe);
            Expr::Until(ahead, x, y)
        }
        SINCE => {
            let (x, y) = sides(generator, recipe);
            Expr::Since(bounds, x, y)
        }
        4 | 5 => {
            // A comparison with a constant, on either side.
            let quantity = match u % 5 {
                0 => Expr::Latency(topic),
                1 => Expr::Jitter(topic),
                _ => Expr::Age(topic),
            };
            let quantity = generator.add(quantity, ValueType::Duration);
            let constant = Value::Duration(grid.saturating_mul(unit as i64));
            let constant = generator.add(Expr::Literal(constant), ValueType::Duration);
            if u % 2 == 0 {
                Expr::Compare(compare, quantity, constant)
            } else {
                Expr::Compare(compare, constant, quantity)
            }
        }
        _ => {
            let over = match model {
                TimeModel::Steps => bounds.lower.max(1),
                TimeModel::Points | TimeModel::Dense => scaled(bounds.lower, unit, t).max(1),
            };
            let whole = u % 3 != 0;
            let value_type = if whole { ValueType::Int } else { ValueType::Float };
            let (aggregate, of, result) = match r % 17 {
                0 | 1 => (Aggregate::Count, None, ValueType::Int),
                2 | 3 => (Aggregate::Count, Some(ValueType::Bool), ValueType::Int),
                4 => (Aggregate::Sum, Some(value_type), value_type),
                5 => (Aggregate::Mean, Some(value_type), ValueType::Float),
                6 => (Aggregate::Min, Some(value_type), value_type),
                7 => (Aggregate::Max, Some(value_type), value_type),
                8 => (Aggregate::Distinct, Some(value_type), ValueType::Int),
                9 => (Aggregate::First, Some(value_type), value_type),
                10 => (Aggregate::Last, Some(value_type), value_type),
                11 => (Aggregate::Median, Some(ValueType::Float), ValueType::Float),
                12 | 13 => {
                    let part = [0, 100_000, 750_000, 1_000_000][t % 4];
                    (Aggregate::Percentile(part), Some(ValueType::Float), ValueType::Float)
                }
                14 if model != TimeModel::Steps => {
                    (Aggregate::Derivative, Some(ValueType::Float), ValueType::Float)
                }
                15 if model != TimeModel::Steps => {
                    (Aggregate::Integral, Some(ValueType::Float), ValueType::Float)
                }
                _ if model == TimeModel::Steps => (Aggregate::Count, None, ValueType::Int),
                _ => (Aggregate::Rate, None, ValueType::Float),
            };
            let operand = of.map(|value_type| small(generator, value_type, s));
            let mut topics = match operand {
                Some(operand) => mentioned(generator, operand),
                None => vec![topic],
            };
            if topics.is_empty() {
                topics.push(topic);
            }
            let window = generator.add(Expr::Window { aggregate, over, operand, topics }, result);
            let constant = match result {
                ValueType::Float => Value::Float(grid as f64 / 2.0),
                _ => Value::Int(grid / 2),
            };
            let constant = generator.add(Expr::Literal(constant), result);
            Expr::Compare(compare, window, constant)
        }
    };
    generator.add(truth, ValueType::Bool);
}

/// The operands of `since` or `until`: often an instant, or all times except an instant, so that one operand
/// begins to hold exactly where the other ends.
fn sides(generator: &mut Generator, recipe: &Recipe) -> (ExprId, ExprId) {
    let [r, s, t, u] = recipe.choices;
    let mut side = |r: usize, kind: usize| {
        if kind % 4 > 1 {
            return generator.pick(ValueType::Bool, r);
        }
        let instant = generator.add(Expr::On(TopicId(r as u32 % TOPICS)), ValueType::Bool);
        if kind.is_multiple_of(4) { instant } else { generator.add(Expr::Not(instant), ValueType::Bool) }
    };
    (side(r, t), side(s, u))
}

/// Numbers whose sums are exact, for samples of a window.
fn small(generator: &mut Generator, value_type: ValueType, r: usize) -> ExprId {
    let (low, high) = match value_type {
        ValueType::Bool => return generator.pick(ValueType::Bool, r),
        ValueType::Int => (Value::Int(-4), Value::Int(4)),
        ValueType::Float => (Value::Float(-4.0), Value::Float(4.0)),
        other => panic!("no small numbers in {other}"),
    };
    let x = generator.leaf(value_type, 4 * r + 1 + r % 3);
    let (low, high) =
        (generator.add(Expr::Literal(low), value_type), generator.add(Expr::Literal(high), value_type));
    let x = generator.add(Expr::Binary(BinaryOp::Max, x, low), value_type);
    generator.add(Expr::Binary(BinaryOp::Min, x, high), value_type)
}

fn mentioned(generator: &Generator, x: ExprId) -> Vec<TopicId> {
    spec(TOPICS, generator.nodes.clone(), []).topics_of(x)
}

fn times(events: Vec<(Event, u8, i8)>, start: i64, unit: i64) -> Vec<Timed> {
    let mut time = start;
    let timed = events.into_iter().map(|(event, gap, late)| {
        time = time.saturating_add(i64::from(gap).saturating_mul(unit));
        let arrival = (late >= 0).then_some(time.saturating_add(i64::from(late).saturating_mul(unit)));
        Timed { time, arrival, event }
    });
    timed.collect()
}

fn gap() -> impl Strategy<Value = u8> {
    select(vec![0_u8, 0, 0, 1, 1, 1, 1, 2, 2, 3, 4, 5, 9])
}

pub fn timed_trace(len: Range<usize>) -> impl Strategy<Value = (Vec<(Event, u8, i8)>, u8)> {
    (vec((event(), gap(), -1..6_i8), len), select(vec![0_u8, 0, 1, 2, 5, 20]))
}

pub fn delivery() -> impl Strategy<Value = Delivery> {
    let cuts = prop_oneof![2 => Just(vec![1]), 1 => Just(vec![64]), 3 => vec(1..5_usize, 1..6)];
    (cuts, vec(0..8_u8, 1..6)).prop_map(|(cuts, advances)| Delivery { cuts, advances })
}

fn units(extreme: bool) -> impl Strategy<Value = (i64, i64)> {
    let mut units = vec![1, 1, 2, 7, 1000, SECOND, YEAR / 4];
    let mut starts = vec![0, 0, 1, -1, -3, -YEAR * 100, 1_700_000_000_000_000_000];
    if extreme {
        units.push(YEAR);
        starts =
            vec![i64::MIN, i64::MIN + 1, i64::MIN / 2, -YEAR * 290, i64::MAX / 2, i64::MAX - 40, i64::MAX];
    }
    (select(units), select(starts))
}

/// Cases for one time model.
pub fn case(
    palette: Palette,
    nodes_in: Range<usize>,
    events_in: Range<usize>,
) -> impl Strategy<Value = Case> {
    let recipes = vec(recipe_of(sorts(palette), timed_bounds()), nodes_in);
    case_of(palette, recipes, events_in, move |recipes, unit| nodes(palette, recipes, unit))
}

/// Cases with a specification from a random input and the unit of time.
pub fn case_of<T: fmt::Debug>(
    palette: Palette,
    made_of: impl Strategy<Value = T>,
    events: Range<usize>,
    make: impl Fn(&T, u64) -> Spec,
) -> impl Strategy<Value = Case> {
    let parts = (made_of, timed_trace(events), units(palette.extreme), delivery());
    parts.prop_map(move |(made_of, (events, more), (unit, start), delivery)| {
        let trace = times(events, start, unit);
        let last = trace.last().map_or(start, |last| last.time);
        let now = last.saturating_add(i64::from(more).saturating_mul(unit));
        Case { spec: make(&made_of, unit as u64), trace, now, delivery }
    })
}
