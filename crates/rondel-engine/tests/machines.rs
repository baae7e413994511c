//! Machines: the mode manager, step by step.

#![allow(clippy::panic, clippy::unwrap_used)]

use std::sync::Arc;

use rondel_engine::{Monitor, Program, Report};
use rondel_event::{Block, Comparison, Path, Slot, Timestamp, TopicId, Value, ValueType, Verdict};
use rondel_spec::{
    BinaryOp, Expr, ExprId, Machine, MachineId, Property, Spec, State, TimeModel, Topic, Transition, Variable,
};

const S: u64 = 1_000_000_000;

/// `nominal -failure-> failover`; from there `-push, within 5 s-> driver`, or `-after 5 s-> stop`; every
/// failure is counted. One property: not in `stop`; another: less than two failures.
fn mode_manager(time: TimeModel) -> Spec {
    let topic = |name: &str| Topic { name: name.into(), address: name.into(), type_name: None, schema: None };
    let state = |name: &str| State { name: name.into(), is_final: false };
    let machine = MachineId(0);
    let count = |nodes: &mut Vec<Expr>| {
        nodes.push(Expr::MachineVariable(machine, 0, ValueType::Int));
        ExprId(nodes.len() as u32 - 1)
    };
    let mut nodes = vec![Expr::On(TopicId(0)), Expr::On(TopicId(1)), Expr::Literal(Value::Int(1))];
    let before = count(&mut nodes);
    nodes.push(Expr::Binary(BinaryOp::Add, before, ExprId(2)));
    let more = ExprId(4);
    nodes.push(Expr::InState(machine, vec![3]));
    nodes.push(Expr::Not(ExprId(5)));
    nodes.push(Expr::Literal(Value::Int(2)));
    nodes.push(Expr::Compare(Comparison::Less, before, ExprId(7)));
    let unit = if time == TimeModel::Steps { 1 } else { S };
    let transition = |from, to, guard, within, after, assignments| Transition {
        from,
        to,
        guard,
        within,
        after,
        assignments,
        text: String::new(),
    };
    let (failure, push) = (Some(ExprId(0)), Some(ExprId(1)));
    let limit = Some(5 * unit);
    let property = |name, formula| Property { time, ..Property::new(name, formula) };
    Spec {
        topics: vec![topic("failure"), topic("push")],
        properties: vec![property("no_stop", ExprId(6)), property("few", ExprId(8))],
        nodes,
        machines: vec![Machine {
            name: "takeover".into(),
            states: ["nominal", "failover", "driver", "stop"].map(state).to_vec(),
            initial: 0,
            variables: vec![Variable { name: "n".into(), initial: Value::Int(0) }],
            transitions: vec![
                transition(0, 1, failure, None, None, vec![(0, more)]),
                transition(1, 2, push, limit, None, vec![]),
                transition(1, 3, None, None, limit, vec![]),
                transition(2, 1, failure, None, None, vec![(0, more)]),
            ],
            time,
            slice: None,
        }],
        ..Spec::default()
    }
}

/// Reports on events on `failure` (0) and `push` (1) at these seconds, and on the passing of time.
fn run(time: TimeModel, events: &[(u32, i64)], until: i64, cut: usize) -> Vec<(u32, bool, i64)> {
    let program = Arc::new(Program::compile(&mode_manager(time)).unwrap());
    let mut monitor = Monitor::new(program.clone());
    let mut block = Block::new(program.layout());
    assert_eq!(program.projections().iter().map(|p| p.fields.len()).sum::<usize>(), 0);
    let mut all = Vec::new();
    let said = |report: &Report| {
        assert_ne!(report.verdict, Verdict::Inconclusive);
        (report.property, report.verdict == Verdict::Satisfied, report.time.as_nanos() / S as i64)
    };
    for events in events.chunks(cut) {
        block.clear();
        for &(topic, time) in events {
            block.push(TopicId(topic), Timestamp::from_nanos(time * S as i64));
        }
        all.extend(monitor.step(&block).iter().map(said));
    }
    all.extend(monitor.advance(Timestamp::from_nanos(until * S as i64)).iter().map(said));
    let _ = (Path::default(), Slot::Bool(0));
    all
}

#[test]
fn deadline_fires_without_message() {
    for cut in [1, 2, 64] {
        let run = |events: &[_], until| run(TimeModel::Dense, events, until, cut);
        let fine = [(0, true, 0), (1, true, 0)];
        assert_eq!(run(&[(0, 0), (1, 5)], 20), fine, "a push at five seconds is in time");
        assert_eq!(run(&[(0, 0), (0, 5), (1, 5)], 20), fine, "also as the second message of that time");
        assert_eq!(run(&[(0, 0)], 5), fine, "at five seconds a push may still come");
        assert_eq!(run(&[(0, 0)], 6), [fine[0], fine[1], (0, false, 5)]);
        assert_eq!(run(&[(0, 0), (1, 6)], 6), [fine[0], fine[1], (0, false, 5)]);
        let again = run(&[(0, 0), (1, 5), (0, 7)], 100);
        assert_eq!(again, [fine[0], fine[1], (1, false, 7), (0, false, 12)]);
    }
}

#[test]
fn discrete_time_changes_at_events_only() {
    for cut in [1, 2, 64] {
        let points = |events: &[_]| run(TimeModel::Points, events, 0, cut);
        let fine = [(0, true, 0), (1, true, 0)];
        assert_eq!(points(&[(0, 0), (1, 5)]), fine);
        assert_eq!(points(&[(0, 0), (1, 6)]), [fine[0], fine[1], (0, false, 6)]);
        let steps = |events: &[_]| run(TimeModel::Steps, events, 0, cut);
        assert_eq!(steps(&[(0, 0), (0, 1), (0, 2), (0, 3), (0, 4), (1, 5)]), fine);
        let late = steps(&[(0, 0), (0, 1), (0, 2), (0, 3), (0, 4), (0, 5), (1, 6)]);
        assert_eq!(late, [fine[0], fine[1], (0, false, 6)]);
    }
}
