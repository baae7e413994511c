//! Steps of quantified formulas: nanoseconds per event, blocks decoded beforehand, the best of several rounds, each by
//! a new monitor that has seen the events once before.

use std::hint::black_box;
use std::sync::Arc;
use std::time::Instant;

use rondel_engine::{CompileError, Monitor, Program};
use rondel_event::{Block, Path, Slot, Timestamp, TopicId, ValueType};
use rondel_spec::{Bounds, Expr, ExprId, Key, Property, Slice, SliceId, Spec, TimeModel, Topic, VariableId};

const SECOND: u64 = 1_000_000_000;

fn spec(model: TimeModel, text: bool, make: impl Fn(&mut Vec<Expr>) -> Expr) -> Spec {
    let value_type = if text { ValueType::String } else { ValueType::Int };
    let bind = |topic| Expr::Bind {
        topic: TopicId(topic),
        fields: vec![(Path::keys(["id"]), VariableId(0), value_type)],
    };
    let mut nodes = vec![bind(0), bind(1)];
    let body = make(&mut nodes);
    nodes.push(body);
    nodes.push(Expr::Exists(VariableId(0), ExprId(nodes.len() as u32 - 1)));
    let topic = |name: &str| Topic { name: name.into(), address: name.into(), type_name: None, schema: None };
    let mut property = Property::new("p", ExprId(nodes.len() as u32 - 1));
    property.time = model;
    Spec {
        topics: vec![topic("request"), topic("grant")],
        properties: vec![property],
        nodes,
        ..Spec::default()
    }
}

/// Returns `on(request) -> eventually[0, 10 s] on(grant)` for each id.
fn divided(model: TimeModel) -> Spec {
    let bounds = Bounds { lower: 0, upper: Some(10 * SECOND) };
    let whole = spec(model, false, |nodes| nodes[0].clone());
    let [request, grant] = [TopicId(0), TopicId(1)];
    let nodes = vec![
        Expr::On(request),
        Expr::On(grant),
        Expr::Eventually(bounds, ExprId(1)),
        Expr::Not(ExprId(0)),
        Expr::Or(ExprId(3), ExprId(2)),
    ];
    let fields = vec![(request, Path::keys(["id"])), (grant, Path::keys(["id"]))];
    let keys = vec![Key { name: "id".into(), value_type: ValueType::Int, fields }];
    let property = Property { time: model, slice: Some(SliceId(0)), ..Property::new("p", ExprId(4)) };
    let slices = vec![Slice { keys, until: None, limit: None }];
    Spec { nodes, slices, properties: vec![property], ..whole }
}

/// Returns blocks of requests and grants of random ids; every id about once in `period` nanoseconds.
fn blocks(program: &Program, len: usize, ids: u64, period: u64) -> Vec<Block> {
    let mut x = 0x5EED_1234_5678_9ABC_u64;
    let mut time = 0;
    let mut make = |_| {
        let mut block = Block::new(program.layout());
        for _ in 0..len {
            x ^= x << 13;
            x ^= x >> 7;
            x ^= x << 17;
            let r = x.wrapping_mul(0x2545_F491_4F6C_DD1D) >> 8;
            time += period / ids / 2;
            let topic = TopicId((r >> 40 & 1) as u32);
            let row = block.push(topic, Timestamp::from_nanos(time as i64));
            let id = r % ids;
            for field in &program.projections()[topic.index()].fields {
                match field.slot {
                    Slot::Int(column) => block.set_int(column, row, id as i64),
                    Slot::String(column) => block.set_string(column, row, &format!("user-{id:08}")),
                    _ => {}
                }
            }
        }
        block
    };
    let count = (4 * ids as usize).max(200_000) / len;
    (0..count).map(&mut make).collect()
}

fn measure(name: &str, spec: &Spec, ids: u64) -> Result<(), CompileError> {
    let program = Arc::new(Program::compile(spec)?);
    print!("{name:52} {ids:7} ids ");
    for len in [64, 1] {
        let blocks = blocks(&program, len, ids, 10 * SECOND);
        let events = (len * blocks.len()) as f64;
        let mut best = f64::MAX;
        for _ in 0..5 {
            let mut monitor = Monitor::new(program.clone());
            let half = blocks.len() / 2;
            for block in &blocks[..half] {
                black_box(monitor.step(block));
            }
            let start = Instant::now();
            for block in &blocks[half..] {
                black_box(monitor.step(black_box(block)));
            }
            best = best.min(start.elapsed().as_secs_f64() * 1e9 / (events / 2.0));
        }
        print!(" block {len:2}: {best:7.1} ns/event");
    }
    println!();
    Ok(())
}

/// Measures and prints.
///
/// # Errors
/// When a specification does not compile.
pub fn run() -> Result<(), CompileError> {
    let push = |nodes: &mut Vec<Expr>, expr| {
        nodes.push(expr);
        ExprId(nodes.len() as u32 - 1)
    };
    let (request, grant) = (ExprId(0), ExprId(1));
    let unanswered = move |nodes: &mut Vec<Expr>| {
        let once = push(nodes, Expr::Once(Bounds { lower: 0, upper: Some(10 * SECOND) }, grant));
        let not = push(nodes, Expr::Not(once));
        Expr::And(request, not)
    };
    let pending = move |nodes: &mut Vec<Expr>| {
        let not = push(nodes, Expr::Not(grant));
        let bounds = Bounds { lower: SECOND, upper: None };
        Expr::Since(bounds, not, request)
    };
    let both = move |nodes: &mut Vec<Expr>| {
        let bounds = Bounds { lower: 0, upper: Some(10 * SECOND) };
        let (left, right) =
            (push(nodes, Expr::Once(bounds, request)), push(nodes, Expr::Once(bounds, grant)));
        Expr::And(left, right)
    };
    let ahead = move |nodes: &mut Vec<Expr>| {
        let bounds = Bounds { lower: 0, upper: Some(10 * SECOND) };
        let later = push(nodes, Expr::Eventually(bounds, grant));
        let not = push(nodes, Expr::Not(later));
        Expr::And(request, not)
    };
    for ids in [100, 3_000, 100_000] {
        let model = TimeModel::Points;
        measure("request and not once[0, 10 s] grant", &spec(model, false, unanswered), ids)?;
        measure("the same on texts", &spec(model, true, unanswered), ids)?;
        measure("(not grant) since[1 s,] request", &spec(model, false, pending), ids)?;
        measure("once[0, 10 s] request and once[0, 10 s] grant", &spec(model, false, both), ids)?;
        for (name, model) in [("in points", TimeModel::Points), ("in dense time", TimeModel::Dense)] {
            let name = format!("request -> eventually[0, 10 s] grant, {name}");
            measure(&name, &spec(model, false, ahead), ids)?;
            measure(&format!("{name}, for each"), &divided(model), ids)?;
        }
    }
    Ok(())
}
