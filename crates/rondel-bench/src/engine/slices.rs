//! Steps of properties for each key: nanoseconds per event and bytes per instance, blocks written beforehand and not
//! counted.

use std::hint::black_box;
use std::sync::Arc;
use std::time::Instant;

use rondel_engine::{CompileError, Monitor, Program};
use rondel_event::{Block, Path, Slot, Timestamp, TopicId, ValueType};
use rondel_spec::{Bounds, Expr, ExprId, Key, Property, Slice, SliceId, Spec, TimeModel, Topic};

/// Returns `on(request) -> once[0, upper] on(grant)` for each `id`.
fn granted(time: TimeModel, upper: u64) -> Spec {
    let topic = |name: &str| Topic { name: name.into(), address: name.into(), type_name: None, schema: None };
    let (request, grant) = (TopicId(0), TopicId(1));
    let path = || Path::keys(["id"]);
    let key = Key {
        name: "id".into(),
        value_type: ValueType::Int,
        fields: vec![(request, path()), (grant, path())],
    };
    Spec {
        topics: vec![topic("request"), topic("grant")],
        properties: vec![Property { time, slice: Some(SliceId(0)), ..Property::new("granted", ExprId(4)) }],
        nodes: vec![
            Expr::On(request),
            Expr::On(grant),
            Expr::Once(Bounds { lower: 0, upper: Some(upper) }, ExprId(1)),
            Expr::Not(ExprId(0)),
            Expr::Or(ExprId(3), ExprId(2)),
        ],
        slices: vec![Slice { keys: vec![key], until: None, limit: None }],
        ..Spec::default()
    }
}

/// Random events.
struct Events {
    random: u64,
    time: i64,
    gap: i64,
    keys: u64,
}

impl Events {
    /// Fills a block: one message in four is a request.
    fn fill(&mut self, program: &Program, block: &mut Block, len: usize) {
        block.clear();
        for _ in 0..len {
            let x =
                self.random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            self.random = x;
            let topic = TopicId(u32::from(x >> 62 != 0));
            self.time += self.gap;
            let row = block.push(topic, Timestamp::from_nanos(self.time));
            for field in &program.projections()[topic.index()].fields {
                if let Slot::Int(column) = field.slot {
                    block.set_int(column, row, ((x >> 20) % self.keys) as i64);
                }
            }
        }
    }
}

/// Measures and prints.
///
/// # Errors
/// When a specification does not compile.
pub fn run() -> Result<(), CompileError> {
    for (name, time, upper, gap) in [
        ("steps, once[0, 10]", TimeModel::Steps, 10, 1000),
        ("points, once[0, 10 s]", TimeModel::Points, 10_000_000_000, 1000),
        ("dense, once[0, 10 s]", TimeModel::Dense, 10_000_000_000, 1000),
        ("dense, once[0, 1 ms]", TimeModel::Dense, 1_000_000, 1000),
    ] {
        let program = Arc::new(Program::compile(&granted(time, upper))?);
        for keys in [3000, 1_000_000] {
            for len in [64, 1] {
                let count = (keys as usize * 3).max(1 << 20) / len;
                let mut best = f64::MAX;
                let mut memory = String::new();
                for _ in 0..3 {
                    let mut monitor = Monitor::new(program.clone());
                    let mut block = Block::new(program.layout());
                    let mut events = Events { random: 0x9E37_79B9_7F4A_7C15, time: 0, gap, keys };
                    let mut reports = 0;
                    let mut run = |count, monitor: Option<&mut Monitor>| {
                        let start = Instant::now();
                        if let Some(monitor) = monitor {
                            for _ in 0..count {
                                events.fill(&program, &mut block, len);
                                reports += monitor.step(black_box(&block)).len();
                            }
                        } else {
                            for _ in 0..count {
                                events.fill(&program, &mut block, len);
                                black_box(&block);
                            }
                        }
                        start.elapsed().as_secs_f64() * 1e9 / (count * len) as f64
                    };
                    // Most keys are there after a while.
                    run(count, Some(&mut monitor));
                    let all = run(count / 2, Some(&mut monitor));
                    best = best.min(all - run(count / 2, None));
                    for slice in monitor.slices() {
                        let each = slice.bytes as f64 / slice.instances as f64;
                        let changes = reports as f64 / (count * 3 / 2 * len) as f64;
                        memory = format!(
                            "{changes:4.2} reports, {:7} instances, {each:5.1} bytes each",
                            slice.instances
                        );
                    }
                }
                println!("{name:24} {keys:7} keys, blocks of {len:2}: {best:6.1} ns/event, {memory}");
            }
        }
    }
    Ok(())
}
