//! No text makes a front end panic, and every accepted specification satisfies its invariants.

#![allow(clippy::unwrap_used, clippy::print_stdout)]

use proptest::prelude::*;
use proptest::test_runner::{Config, RngAlgorithm, RngSeed, TestRng, TestRunner};
use rondel_event::Comparison;
use rondel_spec::{
    Aggregate, Expr, Outcome, ParseOptions, Sources, TimeModel, ValueType, binary_type, format, parse,
    parse_formula, parse_rye, parse_rye_with, parse_sources, parse_with,
};

const VALID: &str = include_str!("diagnostics/correct.rondel");
const DECLARATIONS: &str = include_str!("diagnostics/declarations.rondel");
const WRONG: &str = include_str!("diagnostics/grammar.rondel");
const TIME: &str = include_str!("diagnostics/time.rondel");
const FUTURE: &str = include_str!("diagnostics/future.rondel");
const RELATIONS: &str = include_str!("diagnostics/relations_warnings.rondel");

const WORDS: &[&str] = &[
    "topic",
    "use",
    "const",
    "let",
    "property",
    "machine",
    "test",
    "chain",
    "initial",
    "when",
    "after",
    "within",
    "do",
    "n := n + 1",
    "var n = 0",
    "error",
    "final",
    "a -> b",
    "in(m, b)",
    "machine m { initial a; a -> b after 3",
    "test 't' {",
    "at 0 s gear {",
    "expect p",
    "violated",
    "in",
    "by",
    "@limit(3)",
    "@robust",
    "for",
    "each",
    "a",
    "b",
    "gear",
    "x",
    "=",
    "==",
    "!=",
    "<",
    "<=",
    ">",
    ">=",
    "+",
    "-",
    "*",
    "/",
    "%",
    "(",
    ")",
    "[",
    "]",
    "{",
    "}",
    ",",
    ".",
    ":",
    ";",
    "@",
    "not",
    "and",
    "or",
    "->",
    "<->",
    "since",
    "until",
    "!",
    "&&",
    "||",
    "once",
    "historically",
    "previously",
    "prev",
    "changed",
    "rising",
    "hysteresis(",
    "stable(",
    "debounce(",
    "known(",
    "is_nan(",
    "for",
    "falling",
    "on",
    "abs",
    "min",
    "max",
    "starts_with",
    "if",
    "then",
    "else",
    "true",
    "false",
    "0",
    "1",
    "2.5",
    "9223372036854775808",
    "3s",
    "\"text\"",
    "'t'",
    "\n",
    "// c\n",
    "# c\n",
    "rye\"{a: 1}\"",
    "rye gear\"once{x}\"",
    "[0,5]",
    "[3,]",
    "[,2]",
    "[5,1]",
    "a.b[0]",
    "int",
    "float",
    "string",
    "time",
    "bool",
    "eventually",
    "always",
    "next",
    "exists",
    "forall",
    "x.",
    "gear{",
    "a{x: x,",
    "count",
    "sum",
    "mean",
    "rate",
    "age",
    "latency",
    "jitter",
    "over",
    "2 s",
    "0.5 ms",
    "[0,2 s]",
    "[1 h,]",
    "@time(dense)",
    "@time(steps)",
    "duration",
    "exists[x].",
    "*x",
    "over",
    "within",
    "::",
    "any",
    "all",
    "$",
    "$0",
    "pre",
    "S",
    "P",
    "H",
    "Y",
    "E",
    "A",
    "implies",
    "inf",
    "ä",
    "\u{0}",
    "\"",
    "'",
    "rye#\"",
    "any r in a.b: r",
    "all r in a.b: (not r or r.c -> r == 1)",
    "all s in gear.l: s.x",
    "count r in",
    "r < 3",
    "s.x",
    "std.patterns",
    "response(",
    "absence_between(",
    "recurrence(",
    "in_scope(",
    "within: 2",
    "p:",
    "bound",
    "let f(p: bool, d: bound) = once[0,d] p",
    "f(x, 3)",
    "contains(",
    "ends_with(",
    "matches(",
    "len(",
    "lower(",
    "sqrt(",
    "atan2(",
    "clamp(",
    "sign(",
    "angle_difference(",
    "percentile(",
    "median(",
    "stddev(",
    "distinct(",
    "first(",
    "last(",
    "derivative(",
    "integral(",
    "over full 3",
    "in (1, 2)",
    "not in",
    "in [0, 1)",
    "@warmup(3)",
    "@while(x)",
    "@hold(2)",
    "@latch",
    "@because_of(p)",
    "as",
];

/// A failing case prints its seed; set it in the environment to repeat the case.
fn runner(cases: u32) -> TestRunner {
    let seed = std::env::var("RONDEL_SEED").ok().and_then(|s| s.parse().ok()).unwrap_or_else(rand_seed);
    println!("RONDEL_SEED={seed}");
    let config =
        Config { cases, rng_seed: RngSeed::Fixed(seed), failure_persistence: None, ..Config::default() };
    let mut bytes = [0; 32];
    bytes[..8].copy_from_slice(&seed.to_le_bytes());
    TestRunner::new_with_rng(config, TestRng::from_seed(RngAlgorithm::ChaCha, &bytes))
}

fn rand_seed() -> u64 {
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
    now.map_or(0, |t| t.as_nanos() as u64)
}

/// Checks the invariants of an outcome.
fn examine(outcome: &Outcome, text: &str) {
    outcome.render("x", text, true);
    assert_eq!(outcome.spec.is_none(), outcome.diagnostics.iter().any(|d| d.is_error()), "{text:?}");
    for diagnostic in &outcome.diagnostics {
        assert!(diagnostic.span.start <= diagnostic.span.end && diagnostic.span.end <= text.len());
        assert!(text.get(diagnostic.span.start..diagnostic.span.end).is_some(), "{diagnostic:?}");
    }
    let Some(spec) = &outcome.spec else { return };
    for (i, node) in spec.nodes.iter().enumerate() {
        assert!(node.operands().all(|o| o.index() < i));
        assert!(node.topic().is_none_or(|t| t.index() < spec.topics.len()));
    }
    let t = |id| spec.value_type(id);
    for node in &spec.nodes {
        let settled = match node {
            Expr::Compare(comparison, a, b) => {
                let equality = matches!(comparison, Comparison::Equal | Comparison::NotEqual);
                t(*a) == t(*b) && (equality || !matches!(t(*a), ValueType::Bool | ValueType::String))
            }
            Expr::Binary(op, a, b) => binary_type(*op, t(*a), t(*b)).is_some(),
            Expr::Window { aggregate: Aggregate::Count, operand: Some(a), .. } => t(*a) == ValueType::Bool,
            Expr::Window { operand: Some(a), .. } => t(*a).is_number(),
            Expr::Unary(_, a) => t(*a).is_number(),
            Expr::ToFloat(a) => t(*a) == ValueType::Int,
            Expr::StartsWith(a, b) => t(*a) == ValueType::String && t(*b) == ValueType::String,
            Expr::Call(function, a, b) => {
                let arguments: Vec<ValueType> = [Some(*a), *b].into_iter().flatten().map(t).collect();
                arguments == function.parameters()
            }
            Expr::If(c, a, b) => t(*c) == ValueType::Bool && t(*a) == t(*b),
            Expr::Prev(_) => true,
            other => other.operands().all(|o| t(o) == ValueType::Bool),
        };
        assert!(settled, "{node:?} in {text:?}");
    }
    for property in &spec.properties {
        assert_eq!(spec.value_type(property.formula), ValueType::Bool, "{text:?}");
        assert!(!spec.print(property.formula).to_string().is_empty());
        spec.topics_of(property.formula);
    }
}

/// Checks that formatting keeps the specification and is idempotent.
fn examine_layout(outcome: &Outcome, text: &str) {
    let Ok(formatted) = format(text) else { return };
    assert_eq!(format(&formatted).as_ref(), Ok(&formatted), "{text:?}");
    let again = parse(&formatted);
    let codes = |outcome: &Outcome| {
        let mut codes: Vec<_> = outcome.diagnostics.iter().map(|d| d.code).collect();
        codes.sort();
        codes
    };
    assert_eq!(codes(&again), codes(outcome), "{text:?} {formatted:?}");
    let nodes = |outcome: &Outcome| outcome.spec.as_ref().map(|spec| spec.nodes.clone());
    assert_eq!(nodes(&again), nodes(outcome), "{text:?}");
}

fn examine_all(text: &str) {
    let outcome = parse(text);
    examine(&outcome, text);
    examine_layout(&outcome, text);
    examine(&parse_formula(text), text);
    examine(&parse_rye(text, None, "p"), text);
    let dense = ParseOptions { time: Some(TimeModel::Dense), ..ParseOptions::default() };
    examine(&parse_with(text, &dense), text);
    examine(&parse_rye_with(text, None, "p", &dense), text);
    let embedded = format!("topic gear {{ x: int, b: bool }} property p = rye#\"{text}\"#");
    examine(&parse(&embedded), &embedded);
}

fn words() -> impl Strategy<Value = String> {
    prop::collection::vec(prop::sample::select(WORDS), 0..60).prop_map(|words| words.join(" "))
}

#[test]
fn random_text() {
    runner(2000)
        .run(&any::<Vec<char>>().prop_map(String::from_iter), |text| {
            examine_all(&text);
            Ok(())
        })
        .unwrap();
}

#[test]
fn random_words() {
    runner(4000)
        .run(&words(), |text| {
            examine_all(&text);
            examine_all(&text.replace(' ', ""));
            Ok(())
        })
        .unwrap();
}

#[test]
fn random_formulas() {
    let header = "topic a { b: [int], x: float, gear: bool, y: duration, z: time } topic gear property p = ";
    runner(4000)
        .run(&words(), |text| {
            let text = format!("{header}{text}");
            let sources = Sources::alone("x", &format!("use std.patterns {text}"));
            let outcome = parse_sources(&sources, &ParseOptions::default(), None);
            outcome.render_in(&sources, true);
            examine(&outcome, sources.text());
            let outcome = parse(&text);
            examine(&outcome, &text);
            examine_layout(&outcome, &text);
            Ok(())
        })
        .unwrap();
}

#[test]
fn mutated_specifications() {
    let change = (any::<prop::sample::Index>(), 0..40_usize, prop::sample::select(WORDS));
    let changes = prop::collection::vec(change, 1..6);
    for original in [VALID, DECLARATIONS, WRONG, TIME, FUTURE, RELATIONS] {
        runner(600)
            .run(&changes, |changes| {
                let mut chars: Vec<char> = original.chars().collect();
                for (place, removed, word) in changes {
                    let from = place.index(chars.len() + 1);
                    let to = (from + removed).min(chars.len());
                    chars.splice(from..to, word.chars());
                }
                examine_all(&String::from_iter(chars));
                Ok(())
            })
            .unwrap();
    }
}
