//! Compiling arbitrary nodes results in an error or a program, never in a panic.

#![allow(clippy::unwrap_used)]

use crate::definition;

use std::sync::Arc;

use definition::floor::Floor;
use definition::spec;
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::select;
use proptest::test_runner::FileFailurePersistence;
use rondel_engine::{CompileError, Monitor, Program};
use rondel_event::{Block, Comparison, Path, Timestamp, TopicId, Value, ValueType};
use rondel_spec::{BinaryOp, Bounds, Expr, ExprId, UnaryOp};

fn any_expr() -> impl Strategy<Value = Expr> {
    let literals =
        vec![Value::Bool(true), Value::Int(1), Value::Float(0.5), Value::Time(7), Value::String("a".into())];
    let operand = || (0..12_u32).prop_map(ExprId);
    let topic = || (0..4_u32).prop_map(TopicId);
    let types = vec![ValueType::Bool, ValueType::Int, ValueType::Float, ValueType::Time, ValueType::String];
    let path = || Path::keys(["x"]);
    let comparison = select(vec![Comparison::Equal, Comparison::Less, Comparison::GreaterOrEqual]);
    prop_oneof![
        3 => select(literals).prop_map(Expr::Literal),
        3 => (topic(), select(types))
            .prop_map(move |(topic, value_type)| Expr::Field { topic, path: path(), value_type }),
        1 => topic().prop_map(Expr::On),
        1 => topic().prop_map(move |topic| Expr::Carried { topic, path: path() }),
        1 => topic().prop_map(move |topic| Expr::Length { topic, path: path(), of: None }),
        1 => topic().prop_map(move |topic| Expr::Number { topic, path: path() }),
        1 => operand().prop_map(Expr::ToFloat),
        1 => operand().prop_map(|x| Expr::Unary(UnaryOp::Abs, x)),
        1 => (operand(), operand()).prop_map(|(x, y)| Expr::Binary(BinaryOp::Remainder, x, y)),
        2 => (comparison, operand(), operand()).prop_map(|(op, x, y)| Expr::Compare(op, x, y)),
        1 => (operand(), operand()).prop_map(|(x, y)| Expr::StartsWith(x, y)),
        1 => (operand(), operand(), operand()).prop_map(|(c, x, y)| Expr::If(c, x, y)),
        1 => operand().prop_map(Expr::Prev),
        1 => operand().prop_map(Expr::Not),
        1 => (operand(), operand()).prop_map(|(x, y)| Expr::Or(x, y)),
        1 => (operand(), operand()).prop_map(|(x, y)| Expr::Since(Bounds::ALL, x, y)),
    ]
}

/// Number of topics.
const TOPICS: u32 = 3;

/// A needed node that does not exist, does not precede its user, or has no topic.
fn fault(nodes: &[Expr], formula: ExprId) -> Option<ExprId> {
    let mut needed = vec![formula];
    let mut seen = vec![false; nodes.len()];
    while let Some(id) = needed.pop() {
        let Some(node) = nodes.get(id.index()) else { return Some(id) };
        if std::mem::replace(&mut seen[id.index()], true) {
            continue;
        }
        let topic = match node {
            Expr::Field { topic, .. } | Expr::Carried { topic, .. } => topic.0,
            Expr::Length { topic, .. } | Expr::Number { topic, .. } => topic.0,
            Expr::On(topic) => topic.0,
            _ => 0,
        };
        if topic >= TOPICS || node.operands().any(|operand| operand >= id) {
            return Some(id);
        }
        needed.extend(node.operands());
    }
    None
}

#[test]
fn faults_are_found() {
    let not = |operand| Expr::Not(ExprId(operand));
    let on = |topic| Expr::On(TopicId(topic));
    assert_eq!(fault(&[on(0), not(0)], ExprId(1)), None);
    assert_eq!(fault(&[on(0), not(0)], ExprId(2)), Some(ExprId(2)));
    assert_eq!(fault(&[on(0), not(1)], ExprId(1)), Some(ExprId(1)));
    assert_eq!(fault(&[on(3), not(0)], ExprId(1)), Some(ExprId(0)));
}

fn config() -> ProptestConfig {
    let kept = FileFailurePersistence::Direct("proptest-regressions/malformed.txt");
    ProptestConfig { cases: 1000, failure_persistence: Some(Box::new(kept)), ..ProptestConfig::default() }
}

proptest! {
    #![proptest_config(config())]

    #[test]
    fn arbitrary_nodes_do_not_panic(nodes in vec(any_expr(), 0..12), formula in 0..12_u32) {
        let fault = fault(&nodes, ExprId(formula));
        let compiled = Program::compile(&spec(TOPICS, nodes, [ExprId(formula)]));
        prop_assert!(fault.is_none() || compiled.is_err(), "{fault:?}");
        // Most random nodes are invalid.
        static FLOOR: Floor = Floor::new(1, 400);
        FLOOR.note(usize::from(compiled.is_ok()))?;
        match compiled {
            Ok(program) => {
                let mut block = Block::new(program.layout());
                block.push(TopicId(1), Timestamp::ZERO);
                let mut monitor = Monitor::new(Arc::new(program));
                // Every property has a verdict at the first event.
                prop_assert_eq!(monitor.step(&block).len(), 1);
            }
            Err(error) => prop_assert!(!error.to_string().is_empty()),
        }
    }
}

#[test]
fn error_names_invalid_node() {
    let literal = || Expr::Literal(Value::Int(1));
    let error = |nodes, formula| Program::compile(&spec(1, nodes, [ExprId(formula)])).unwrap_err();
    let forward = error(vec![Expr::Not(ExprId(0))], 0);
    assert_eq!(forward, CompileError::ForwardReference { node: ExprId(0), operand: ExprId(0) });
    assert_eq!(
        error(vec![literal(), Expr::Not(ExprId(0))], 1).to_string(),
        "node 1: expected an operand of type bool, found int"
    );
    assert_eq!(
        error(vec![Expr::On(TopicId(1))], 0).to_string(),
        "node 0 mentions topic 1, but there are only 1"
    );
    assert!(matches!(error(vec![literal()], 0), CompileError::NotAFormula { found: ValueType::Int, .. }));
    assert!(matches!(error(vec![], 0), CompileError::UnknownFormula { .. }));
    let mixed = vec![literal(), Expr::On(TopicId(0)), Expr::Compare(Comparison::Equal, ExprId(0), ExprId(1))];
    assert!(matches!(error(mixed, 2), CompileError::MixedTypes { .. }));
}
