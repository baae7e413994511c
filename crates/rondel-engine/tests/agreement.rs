//! The engine agrees with the definitions, for all block sizes.

#![allow(clippy::panic, clippy::unwrap_used)]

use crate::definition;

use std::sync::Arc;

use definition::random::{any_spec, bounds, cuts, floats, ints, runs, trace};
use definition::{Content, Event, spec, verdicts, write};
use proptest::prelude::*;
use proptest::test_runner::FileFailurePersistence;
use rondel_engine::{Monitor, Program};
use rondel_event::{Block, Comparison, Path, TopicId, ValueType, Verdict};
use rondel_spec::{BinaryOp, Bounds, Expr, ExprId, Spec, UnaryOp};

/// Verdicts of every property at every position, by the engine.
fn run(spec: &Spec, trace: &[Event], cuts: &[usize]) -> Vec<Vec<Verdict>> {
    let program = Arc::new(Program::compile(spec).unwrap());
    let mut block = Block::new(program.layout());
    let mut monitor = Monitor::new(program.clone());
    let mut quiet = monitor.clone();
    monitor.report_every(true);
    let mut verdicts = vec![Vec::new(); spec.properties.len()];
    let mut rest = trace;
    for &len in cuts.iter().cycle() {
        let (now, later) = rest.split_at(len.min(rest.len()));
        block.clear();
        for event in now {
            write(&mut block, program.projections(), event, 0);
        }
        let position = monitor.position();
        // A clone produces the same reports.
        let mut copy = monitor.clone();
        let reports = monitor.step(&block);
        assert_eq!(copy.step(&block), reports);
        // A monitor that reports changes only produces the changes among them.
        let changes: Vec<_> = reports.iter().copied().filter(|report| report.changed).collect();
        assert_eq!(quiet.step(&block), changes);
        assert_eq!(reports.len(), now.len() * spec.properties.len());
        for (i, report) in reports.iter().enumerate() {
            let (row, property) = (i / spec.properties.len(), i % spec.properties.len());
            assert_eq!((report.row, report.step), (Some(row as u8), position + row as u64));
            assert_eq!((report.property as usize, report.about), (property, None));
            let verdicts: &mut Vec<Verdict> = &mut verdicts[property];
            assert_eq!(
                report.changed,
                verdicts.last() != Some(&report.verdict),
                "changed at {row} of {now:?}"
            );
            verdicts.push(report.verdict);
        }
        assert_eq!(monitor.position(), position + now.len() as u64);
        rest = later;
        if rest.is_empty() {
            break;
        }
    }
    verdicts
}

fn assert_agreement(spec: &Spec, trace: &[Event], cuts: &[usize]) {
    let (expected, found) = (verdicts(spec, trace), run(spec, trace, cuts));
    for (p, (expected, found)) in expected.iter().zip(&found).enumerate() {
        if let Some(i) = (0..trace.len()).find(|&i| expected[i] != found[i]) {
            let formula = spec.properties[p].formula;
            panic!("{formula:?} at {i}: {}, not {}", found[i], expected[i]);
        }
    }
}

fn config(cases: u32) -> ProptestConfig {
    let kept = FileFailurePersistence::Direct("proptest-regressions/agreement.txt");
    ProptestConfig { cases, failure_persistence: Some(Box::new(kept)), ..ProptestConfig::default() }
}

proptest! {
    #![proptest_config(config(300))]

    #[test]
    fn verdicts_agree_with_definition(spec in any_spec(1..30), trace in trace(1..90), cuts in cuts()) {
        assert_agreement(&spec, &trace, &cuts);
    }

    #[test]
    fn verdicts_are_independent_of_blocks_and_other_properties(
        spec in any_spec(1..30),
        trace in trace(100..200),
        cuts in cuts(),
        other_cuts in cuts(),
    ) {
        let together = run(&spec, &trace, &cuts);
        for (property, verdicts) in spec.properties.iter().zip(&together).rev().take(4) {
            let alone = Spec { properties: vec![property.clone()], ..spec.clone() };
            prop_assert_eq!(&run(&alone, &trace, &other_cuts)[0], verdicts);
        }
    }
}

/// The events, with values of the right type except in one of `one_in`.
fn mostly_known(mut trace: Vec<Event>, one_in: usize) -> Vec<Event> {
    let meant = |(path, content): &(&str, Content)| match (path.as_bytes()[0], content) {
        (b'b', Content::Value(value)) => value.value_type() == ValueType::Bool,
        (b'i', Content::Value(value)) => value.value_type() == ValueType::Int,
        (b'f', Content::Value(value)) => value.value_type() == ValueType::Float,
        (b's', Content::Value(value)) => value.value_type() == ValueType::String,
        (_, Content::Null) => false,
        _ => true,
    };
    for (_, event) in trace.iter_mut().enumerate().filter(|(i, _)| i % one_in != one_in - 1) {
        event.fields.retain(meant);
    }
    trace
}

proptest! {
    #![proptest_config(config(60))]

    /// Known fields stay known for long, so that lower and upper truth become equal; then one becomes
    /// unknown.
    #[test]
    fn mostly_known_fields_agree_with_definition(
        spec in any_spec(1..30),
        trace in trace(200..400),
        cuts in cuts(),
        one_in in 20..300_usize,
    ) {
        assert_agreement(&spec, &mostly_known(trace, one_in), &cuts);
    }
}

fn boolean(name: &str) -> Expr {
    Expr::Field { topic: TopicId(0), path: Path::keys([name]), value_type: ValueType::Bool }
}

/// Bounds around the sizes of words, and large ones.
fn edges() -> impl Strategy<Value = Bounds> {
    let near = || proptest::sample::select(vec![0_u64, 1, 3, 10, 62, 63, 64, 65, 100, 127, 128, 129, 300]);
    prop_oneof![
        2 => bounds(),
        2 => (near(), near()).prop_map(|(a, width)| Bounds { lower: a, upper: Some(a + width) }),
        1 => near().prop_map(|lower| Bounds { lower, upper: None }),
    ]
}

proptest! {
    #![proptest_config(config(16))]

    #[test]
    fn long_traces_agree_with_definition(
        bounds in proptest::collection::vec(edges(), 4),
        trace in runs(2500),
        cuts in cuts(),
        two_valued in any::<bool>(),
    ) {
        let mut nodes = vec![boolean("b"), boolean("b2")];
        if two_valued {
            nodes = [nodes, vec![Expr::Definitely(ExprId(0)), Expr::Definitely(ExprId(1))]].concat();
        }
        let (p, q) = (ExprId(nodes.len() as u32 - 2), ExprId(nodes.len() as u32 - 1));
        let first = nodes.len() as u32;
        nodes.extend([
            Expr::Since(bounds[0], p, q),
            Expr::Once(bounds[1], q),
            Expr::Historically(bounds[2], p),
            Expr::Since(bounds[3], ExprId(first + 1), q),
        ]);
        let spec = spec(1, nodes, (first..first + 4).map(ExprId));
        assert_agreement(&spec, &trace, &cuts);
    }
}

proptest! {
    #![proptest_config(config(4))]

    #[test]
    fn hundreds_of_properties_agree_with_definition(spec in any_spec(600), trace in trace(100..150), cuts in cuts()) {
        prop_assert!(spec.properties.len() > 300);
        assert_agreement(&spec, &trace, &cuts);
    }
}

proptest! {
    #![proptest_config(config(100))]

    /// Memory is limited by the bounds of the operator, whatever the operands are.
    #[test]
    fn memory_is_limited_by_bounds(
        lower in 64..3000_u64,
        width in prop_oneof![0..4_u64, 0..500_u64],
        seed in any::<u64>(),
        p_mostly in any::<bool>(),
    ) {
        let bounds = Bounds { lower, upper: Some(lower + width) };
        let nodes = vec![
            boolean("p"),
            boolean("q"),
            Expr::Definitely(ExprId(0)),
            Expr::Definitely(ExprId(1)),
            Expr::Since(bounds, ExprId(2), ExprId(3)),
        ];
        let program = Arc::new(Program::compile(&spec(1, nodes, [ExprId(4)])).unwrap());
        let mut monitor = Monitor::new(program.clone());
        let mut block = Block::new(program.layout());
        // A delayed truth stays true for `width` more positions and is false for at least one; the queue
        // covers `lower` positions and a block.
        let limit = (lower + 64) / (width + 2) + 2;
        let mut x = seed | 1;
        for _ in 0..200 {
            block.clear();
            for _ in 0..64 {
                x = x.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
                let row = block.push(TopicId(0), rondel_event::Timestamp::ZERO);
                for field in &program.projections()[0].fields {
                    let rondel_event::Slot::Bool(column) = field.slot else { panic!("a boolean") };
                    let value = match field.path.to_string().as_str() {
                        "p" => p_mostly || x >> 60 != 0,
                        _ => x >> 50 & 3 == 0,
                    };
                    block.set_bool(column, row, value);
                }
            }
            monitor.step(&block);
            prop_assert!(monitor.longest_queue() as u64 <= limit, "{} > {limit}", monitor.longest_queue());
        }
    }
}

proptest! {
    #![proptest_config(config(60))]

    /// Texts are copied from block to block, and no copy may overwrite another before it is read.
    #[test]
    fn texts_agree_with_definition(trace in trace(60..100), cuts in cuts()) {
        let mut nodes = vec![Expr::Field {
            topic: TopicId(0),
            path: Path::keys(["s"]),
            value_type: ValueType::String,
        }];
        let mut add = |expr| {
            nodes.push(expr);
            ExprId(nodes.len() as u32 - 1)
        };
        let now = ExprId(0);
        let before = add(Expr::Prev(now));
        let first = add(Expr::Prev(before));
        let carried = add(Expr::On(TopicId(1)));
        let either = add(Expr::If(carried, before, now));
        let prev_either = add(Expr::Prev(either));
        let texts = [now, before, first, either, prev_either];
        let pairs = texts.iter().flat_map(|&a| texts.map(|b| (a, b)));
        let formulas: Vec<ExprId> = pairs.map(|(a, b)| add(Expr::StartsWith(a, b))).collect();
        assert_agreement(&spec(3, nodes, formulas), &trace, &cuts);
    }
}

/// All arithmetic on all pairs of extreme numbers. Signs of zeros are visible in divisions.
#[test]
fn extreme_numbers_agree_with_definition() {
    use BinaryOp::{Add, Divide, Max, Min, Multiply, Remainder, Subtract};
    for (value_type, values) in [(ValueType::Int, ints()), (ValueType::Float, floats())] {
        let field = |name| Expr::Field { topic: TopicId(0), path: Path::keys([name]), value_type };
        let mut nodes = vec![field("x"), field("y")];
        let constants = values.iter().map(|value| Expr::Literal(value.clone()));
        nodes.extend(constants);
        let one = ExprId(3);
        let mut results = vec![ExprId(0)];
        for expr in [Add, Subtract, Multiply, Divide, Remainder, Min, Max]
            .map(|op| Expr::Binary(op, ExprId(0), ExprId(1)))
            .into_iter()
            .chain([UnaryOp::Negate, UnaryOp::Abs].map(|op| Expr::Unary(op, ExprId(0))))
        {
            results.push(ExprId(nodes.len() as u32));
            nodes.push(expr);
            results.push(ExprId(nodes.len() as u32));
            nodes.push(Expr::Binary(Divide, one, ExprId(nodes.len() as u32 - 1)));
        }
        let mut formulas = Vec::new();
        for &result in &results {
            for constant in 2..2 + values.len() as u32 {
                for op in [Comparison::Equal, Comparison::LessOrEqual, Comparison::Greater] {
                    formulas.push(ExprId(nodes.len() as u32));
                    nodes.push(Expr::Compare(op, result, ExprId(constant)));
                }
            }
        }
        let pairs = values.iter().flat_map(|x| values.iter().map(move |y| (x.clone(), y.clone())));
        let event = |(x, y)| {
            let fields = vec![("x", Content::Value(x)), ("y", Content::Value(y))];
            Event { topic: 0, fields }
        };
        let trace: Vec<Event> = pairs.map(event).collect();
        assert_agreement(&spec(1, nodes, formulas), &trace, &[64, 3]);
    }
}

#[test]
fn empty_block_changes_nothing() {
    let nodes = vec![boolean("b"), Expr::Previously(ExprId(0))];
    let program = Arc::new(Program::compile(&spec(1, nodes, [ExprId(1)])).unwrap());
    let mut monitor = Monitor::new(program.clone());
    let empty = Block::new(program.layout());
    let mut block = empty.clone();
    write(&mut block, program.projections(), &Event { topic: 0, fields: vec![] }, 0);
    assert_eq!(monitor.step(&empty), []);
    assert_eq!(monitor.position(), 0);
    assert_eq!(monitor.step(&block)[0].verdict, Verdict::Violated);
    monitor.step(&empty);
    assert_eq!(monitor.step(&block)[0].verdict, Verdict::Inconclusive);
}
