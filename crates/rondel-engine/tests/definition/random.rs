//! Random specifications and traces.

use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::select;
use rondel_event::{Comparison, Condition, Path, Quantifier, Test, TopicId, Value, ValueType};
use rondel_spec::{BinaryOp, Bounds, Expr, ExprId, FunctionId, Spec, UnaryOp};

use super::{Content, Event};

pub const TOPICS: u32 = 3;

/// Fields of messages. The first letter is the usual type of their values.
const PATHS: [&str; 8] = ["b", "b2", "i", "i2", "f", "s", "t", "array"];

const INTS: [i64; 9] = [0, 1, -1, 2, 3, 1000, i64::MAX, i64::MIN, i64::MIN + 1];
const FLOATS: [f64; 10] =
    [0.0, 1.0, -0.0, -1.5, 1e300, f64::NAN, f64::INFINITY, f64::NEG_INFINITY, f64::MIN_POSITIVE, 3.0];
const TEXTS: [&str; 10] =
    ["", "a", "ab", "abc", "b", "Seven..", "Äight..", "a text that is longer than the others", "-1.5", " 3 "];

pub const TYPES: [ValueType; 5] =
    [ValueType::Bool, ValueType::Int, ValueType::Float, ValueType::Time, ValueType::String];

/// Extreme integers; the second is 1.
pub fn ints() -> Vec<Value> {
    INTS.map(Value::Int).to_vec()
}

/// Extreme numbers; the second is 1.
pub fn floats() -> Vec<Value> {
    FLOATS.map(Value::Float).to_vec()
}

fn value_of(value_type: ValueType, r: usize) -> Value {
    match value_type {
        ValueType::Bool => Value::Bool(r & 1 == 1),
        ValueType::Int => Value::Int(INTS[r % INTS.len()]),
        ValueType::Float => Value::Float(FLOATS[r % FLOATS.len()]),
        ValueType::Time => Value::Time(INTS[r % INTS.len()]),
        ValueType::Duration => Value::Duration(INTS[r % INTS.len()]),
        ValueType::String => Value::String(TEXTS[r % TEXTS.len()].into()),
    }
}

fn content(path: &'static str) -> impl Strategy<Value = Content> {
    let usual = match path.as_bytes()[0] {
        b'b' => ValueType::Bool,
        b'i' => ValueType::Int,
        b'f' => ValueType::Float,
        b's' => ValueType::String,
        _ => ValueType::Time,
    };
    let array = vec((0..5_usize, 0..20_usize), 0..3)
        .prop_map(|v| Content::Array(v.into_iter().map(|(t, r)| value_of(TYPES[t], r)).collect()));
    let typed = (0..20_usize).prop_map(move |r| Content::Value(value_of(usual, r)));
    let other = (0..5_usize, 0..20_usize).prop_map(|(t, r)| Content::Value(value_of(TYPES[t], r)));
    let usually = if path == "array" { array.boxed() } else { typed.boxed() };
    prop_oneof![8 => usually, 1 => other, 1 => Just(Content::Null)]
}

pub fn event() -> impl Strategy<Value = Event> {
    let fields: Vec<_> = PATHS.iter().map(|path| proptest::option::weighted(0.4, content(path))).collect();
    (0..TOPICS, fields).prop_map(|(topic, contents)| {
        let carried = |(path, content): (&&'static str, Option<Content>)| Some((*path, content?));
        Event { topic, fields: PATHS.iter().zip(contents).filter_map(carried).collect() }
    })
}

pub fn trace(len: impl Into<proptest::collection::SizeRange>) -> impl Strategy<Value = Vec<Event>> {
    vec(event(), len)
}

/// A long trace of one topic with booleans in runs of random lengths.
pub fn runs(len: usize) -> impl Strategy<Value = Vec<Event>> {
    let run = || prop_oneof![3 => 1..4_usize, 2 => 1..40_usize, 1 => 50..200_usize];
    let column = move || {
        vec((run(), 0..12_u8), len / 2).prop_map(move |runs| {
            let all = runs.into_iter().flat_map(|(count, x)| std::iter::repeat_n(x, count));
            all.take(len).collect::<Vec<u8>>()
        })
    };
    (column(), column()).prop_map(|(p, q)| {
        // Mostly `p` holds and `q` does not.
        let known = |x: bool| Content::Value(Value::Bool(x));
        let field = |x: u8, yes: u8| match x {
            0 => Content::Null,
            _ => known(x > yes),
        };
        let fields = p.iter().zip(&q).map(|(&p, &q)| vec![("b", field(p, 3)), ("b2", field(q, 7))]);
        fields.map(|fields| Event { topic: 0, fields }).collect()
    })
}

/// Sizes of the blocks that a trace is cut into.
pub fn cuts() -> impl Strategy<Value = Vec<usize>> {
    prop_oneof![Just(vec![1]), Just(vec![64]), vec(1..=64_usize, 1..8), vec(select(vec![1, 2, 63, 64]), 1..8)]
}

pub fn bounds() -> impl Strategy<Value = Bounds> {
    let lower = prop_oneof![
        4 => Just(0),
        4 => 1..12_u64,
        2 => 60..70_u64,
        1 => 125..132_u64,
        1 => select(vec![u64::MAX, u64::MAX - 1, 1 << 40]),
    ];
    let width = prop_oneof![
        2 => Just(Some(0)),
        4 => (0..12_u64).prop_map(Some),
        2 => (60..70_u64).prop_map(Some),
        1 => select(vec![Some(200), Some(1 << 40), Some(u64::MAX)]),
        3 => Just(None)
    ];
    (lower, width, 0..12).prop_map(|(lower, width, odd)| match odd {
        0 => Bounds { lower, upper: lower.checked_sub(1) },
        _ => Bounds { lower, upper: width.map(|w| w.saturating_add(lower)) },
    })
}

/// Random choices for a node: sort, operands and bounds.
#[derive(Clone, Debug)]
pub struct Recipe {
    pub sort: usize,
    pub choices: [usize; 4],
    pub bounds: Bounds,
}

pub fn recipe() -> impl Strategy<Value = Recipe> {
    recipe_of((0..33).collect(), bounds())
}

pub fn recipe_of(sorts: Vec<usize>, bounds: impl Strategy<Value = Bounds>) -> impl Strategy<Value = Recipe> {
    (select(sorts), [0..10_000_usize, 0..10_000, 0..10_000, 0..10_000], bounds)
        .prop_map(|(sort, choices, bounds)| Recipe { sort, choices, bounds })
}

/// A specification in which every boolean node is a property.
pub fn any_spec(size: impl Into<proptest::collection::SizeRange>) -> impl Strategy<Value = Spec> {
    vec(recipe(), size).prop_map(|recipes| {
        let mut generator = Generator::default();
        recipes.iter().for_each(|recipe| generator.generate(recipe));
        let formulas: Vec<ExprId> = generator.all_of(ValueType::Bool).collect();
        super::spec(TOPICS, generator.nodes, formulas)
    })
}

#[derive(Default)]
pub struct Generator {
    pub nodes: Vec<Expr>,
    types: Vec<ValueType>,
}

impl Generator {
    pub fn add(&mut self, expr: Expr, value_type: ValueType) -> ExprId {
        self.nodes.push(expr);
        self.types.push(value_type);
        ExprId(self.nodes.len() as u32 - 1)
    }

    pub fn all_of(&self, value_type: ValueType) -> impl Iterator<Item = ExprId> {
        let of_type = move |&(_, &t): &(usize, &ValueType)| t == value_type;
        self.types.iter().enumerate().filter(of_type).map(|(i, _)| ExprId(i as u32))
    }

    /// A node of this type: an existing one, mostly a late one, or a new leaf.
    pub fn pick(&mut self, value_type: ValueType, r: usize) -> ExprId {
        let known: Vec<ExprId> = self.all_of(value_type).collect();
        if known.is_empty() || r.is_multiple_of(5) {
            return self.leaf(value_type, r / 5);
        }
        let back = if r.is_multiple_of(2) { r / 5 % 4 } else { r / 5 };
        known[known.len() - 1 - back % known.len()]
    }

    pub fn leaf(&mut self, value_type: ValueType, r: usize) -> ExprId {
        let topic = TopicId((r / 4) as u32 % TOPICS);
        if r.is_multiple_of(4) {
            return self.add(Expr::Literal(value_of(value_type, r / 4)), value_type);
        }
        let usual = match value_type {
            ValueType::Bool => ["b", "b2"],
            ValueType::Int => ["i", "i2"],
            ValueType::Float => ["f", "i"],
            ValueType::Time | ValueType::Duration => ["t", "t"],
            ValueType::String => ["s", "s"],
        };
        let name = if r % 40 == 1 { PATHS[r / 40 % PATHS.len()] } else { usual[r / 16 % 2] };
        self.add(Expr::Field { topic, path: Path::keys([name]), value_type }, value_type)
    }

    /// A call of a built-in function.
    fn function(&mut self, r: usize, s: usize, t: usize) {
        let all: Vec<FunctionId> = FunctionId::all().collect();
        let function = all[t % all.len()];
        let x = self.pick(function.parameters()[0], r);
        let y = match (function.name(), function.parameters()) {
            ("matches", _) => {
                let pattern = ["a", "^a", "b$", ".", "^", "ä"][s % 6];
                Some(self.add(Expr::Literal(Value::String(pattern.into())), ValueType::String))
            }
            (_, [_, second]) => Some(self.pick(*second, s)),
            _ => None,
        };
        self.add(Expr::Call(function, x, y), function.result());
    }

    #[expect(clippy::too_many_lines, reason = "one arm for each operator")]
    pub fn generate(&mut self, recipe: &Recipe) {
        use ValueType::{Bool, Float, Int, String};
        let Recipe { sort, choices: [r, s, t, u], bounds } = *recipe;
        let topic = TopicId(r as u32 % TOPICS);
        let path = Path::keys([PATHS[s % PATHS.len()]]);
        let mut two = |value_type| (self.pick(value_type, r), self.pick(value_type, s));
        let (expr, value_type) = match sort {
            0 => (Expr::On(topic), Bool),
            1 => (Expr::Carried { topic, path }, Bool),
            2 => {
                let path = Path::keys(["array"]);
                use Quantifier::{All, Any, Count, Max, Mean, Min};
                let quantifier = [Any, All, Count, Min, Max, Mean, Quantifier::Sum][t % 7];
                let tests = [
                    Test::Present,
                    Test::Equals(value_of(TYPES[s % 5], u)),
                    Test::Number(Comparison::Less, 2.0),
                    Test::Number(Comparison::NotEqual, 1.0),
                    Test::OtherText("a".into()),
                ];
                let condition = |alternative: usize, test: usize| Condition {
                    alternative: alternative as u32,
                    path: Path::default(),
                    test: tests[test % 5].clone(),
                };
                let conditions = match (quantifier.is_measure(), u / 5 % 3) {
                    (true, _) => Vec::new(),
                    (_, 0) => vec![condition(0, u)],
                    (_, 1) => vec![condition(0, u), condition(1, s)],
                    _ => vec![condition(0, u), condition(0, s), condition(1, t), condition(1, u + 1)],
                };
                let value_type = quantifier.value_type();
                (Expr::Elements { topic, path, quantifier, conditions }, value_type)
            }
            3 if t % 4 == 3 => {
                let path = Path::keys([["s", "i", "f", "array"][u % 4]]);
                (Expr::Number { topic, path }, Float)
            }
            3 if t % 2 == 1 => {
                let path = Path::keys([["array", "s", "i", "array"][u % 4]]);
                (Expr::Length { topic, path, of: None }, Int)
            }
            3 => (Expr::ToFloat(self.pick(Int, r)), Float),
            4 | 5 => {
                let value_type = [Int, Float][sort - 4];
                let op = [UnaryOp::Negate, UnaryOp::Abs][t & 1];
                (Expr::Unary(op, self.pick(value_type, r)), value_type)
            }
            6..=8 => {
                use BinaryOp::{Add, Divide, Max, Min, Multiply, Remainder, Subtract};
                let value_type = if sort == 6 { Float } else { Int };
                let op = [Add, Subtract, Multiply, Divide, Remainder, Min, Max][t % 7];
                let (x, y) = two(value_type);
                (Expr::Binary(op, x, y), value_type)
            }
            9..=12 => {
                use Comparison::{Equal, Greater, GreaterOrEqual, Less, LessOrEqual, NotEqual};
                let value_type = TYPES[u % 5];
                let ops = [Equal, NotEqual, Less, LessOrEqual, Greater, GreaterOrEqual];
                let op = if matches!(value_type, Bool | String) { ops[t % 2] } else { ops[t % 6] };
                let (x, y) = two(value_type);
                (Expr::Compare(op, x, y), Bool)
            }
            13 => {
                let (x, y) = two(String);
                (Expr::StartsWith(x, y), Bool)
            }
            14 | 15 => {
                let value_type = TYPES[u % 5];
                let (x, y) = two(value_type);
                (Expr::If(self.pick(Bool, t), x, y), value_type)
            }
            16..=18 => {
                let value_type = TYPES[u % 5];
                (Expr::Prev(self.pick(value_type, r)), value_type)
            }
            19 => (Expr::Definitely(self.pick(Bool, r)), Bool),
            20 => (Expr::Previously(self.pick(Bool, r)), Bool),
            21 | 22 => (Expr::Once(bounds, self.pick(Bool, r)), Bool),
            23 => (Expr::Historically(bounds, self.pick(Bool, r)), Bool),
            24 => (Expr::Not(self.pick(Bool, r)), Bool),
            30..=32 => return self.function(r, s, t),
            _ => {
                let (x, y) = two(Bool);
                let expr = match sort {
                    25 => Expr::And(x, y),
                    26 => Expr::Or(x, y),
                    _ => Expr::Since(bounds, x, y),
                };
                (expr, Bool)
            }
        };
        self.add(expr, value_type);
    }
}
