//! Steps of the engine: nanoseconds per event, blocks decoded beforehand, the best of several rounds over the same
//! random events.

use std::hint::black_box;
use std::sync::Arc;
use std::time::Instant;

use rondel_engine::{CompileError, Monitor, Program};
use rondel_event::{Block, Comparison, Path, Slot, Timestamp, TopicId, Value, ValueType};
use rondel_spec::{Bounds, Expr, ExprId, Property, Spec, Topic};

/// Formulas in one graph.
#[derive(Default)]
struct Formulas {
    nodes: Vec<Expr>,
    two_valued: bool,
    /// Atoms compare a number with a constant.
    numeric: bool,
}

impl Formulas {
    fn add(&mut self, expr: Expr) -> ExprId {
        self.nodes.push(expr);
        ExprId(self.nodes.len() as u32 - 1)
    }

    fn field(&mut self, name: &str, value_type: ValueType) -> ExprId {
        self.add(Expr::Field { topic: TopicId(0), path: Path::keys([name]), value_type })
    }

    fn atom(&mut self, name: &str) -> ExprId {
        let field = if self.numeric {
            let x = self.field(name, ValueType::Float);
            let limit = self.add(Expr::Literal(Value::Float(50.0)));
            self.add(Expr::Compare(Comparison::Less, x, limit))
        } else {
            self.field(name, ValueType::Bool)
        };
        if self.two_valued { self.add(Expr::Definitely(field)) } else { field }
    }

    fn implies(&mut self, x: ExprId, y: ExprId) -> ExprId {
        let not = self.add(Expr::Not(x));
        self.add(Expr::Or(not, y))
    }

    /// `historically((({s} -> once[l:u]{p}) and not((not{s}) since[u:]{p})) since {q})`
    fn respond(&mut self, [p, q, s]: [&str; 3], lower: u64, upper: u64) -> ExprId {
        let [p, q, s] = [p, q, s].map(|name| self.atom(name));
        let once = self.add(Expr::Once(Bounds { lower, upper: Some(upper) }, p));
        let answered = self.implies(s, once);
        let silent = self.add(Expr::Not(s));
        let late = self.add(Expr::Since(Bounds { lower: upper, upper: None }, silent, p));
        let in_time = self.add(Expr::Not(late));
        let both = self.add(Expr::And(answered, in_time));
        let since = self.add(Expr::Since(Bounds::ALL, both, q));
        self.add(Expr::Historically(Bounds::ALL, since))
    }

    /// `historically(({r} && !{q} && once{q}) -> ({p} since[l:u]{q}))`
    fn always(&mut self, [p, q, r]: [&str; 3], lower: u64, upper: u64) -> ExprId {
        let [p, q, r] = [p, q, r].map(|name| self.atom(name));
        let not_q = self.add(Expr::Not(q));
        let once = self.add(Expr::Once(Bounds::ALL, q));
        let end = self.add(Expr::And(r, not_q));
        let end = self.add(Expr::And(end, once));
        let since = self.add(Expr::Since(Bounds { lower, upper: Some(upper) }, p, q));
        let implies = self.implies(end, since);
        self.add(Expr::Historically(Bounds::ALL, implies))
    }

    /// `historically(once[:u]{p})`
    fn recur(&mut self, p: &str, upper: u64) -> ExprId {
        let p = self.atom(p);
        let once = self.add(Expr::Once(Bounds { lower: 0, upper: Some(upper) }, p));
        self.add(Expr::Historically(Bounds::ALL, once))
    }

    fn spec(self, formulas: &[ExprId]) -> Spec {
        let property = |&formula| Property::new("", formula);
        let topic =
            |name: &str| Topic { name: name.into(), address: name.into(), type_name: None, schema: None };
        Spec {
            topics: vec![topic("a")],
            properties: formulas.iter().map(property).collect(),
            nodes: self.nodes,
            ..Spec::default()
        }
    }
}

struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0.wrapping_mul(0x2545_F491_4F6C_DD1D) >> 8
    }
}

/// Returns blocks of random events: one event in `one_in` has a field; a boolean is true once in `true_in` times.
fn blocks(program: &Program, len: usize, count: usize, one_in: u64, true_in: u64) -> Vec<Block> {
    let mut random = Random(0x5EED_1234_5678_9ABC);
    let mut make = |_| {
        let mut block = Block::new(program.layout());
        for _ in 0..len {
            let row = block.push(TopicId(0), Timestamp::ZERO);
            for field in &program.projections()[0].fields {
                if !random.next().is_multiple_of(one_in) {
                    continue;
                }
                let r = random.next();
                match field.slot {
                    Slot::Bool(i) => block.set_bool(i, row, r.is_multiple_of(true_in)),
                    Slot::Int(i) => block.set_int(i, row, (r % 100) as i64),
                    Slot::Float(i) => block.set_float(i, row, (r % 100) as f64),
                    Slot::String(i) => block.set_string(i, row, ["idle", "busy"][r as usize % 2]),
                }
            }
        }
        block
    };
    (0..count).map(&mut make).collect()
}

fn measure(name: &str, spec: &Spec, true_in: u64) -> Result<(), CompileError> {
    let program = Arc::new(Program::compile(spec)?);
    let properties = program.properties().len();
    print!("{name:44} {properties:4} properties {:5} instructions ", program.node_count());
    for len in [64, 1] {
        let blocks = blocks(&program, len, 256, 1, true_in);
        let events = (len * blocks.len()) as f64;
        let mut best = f64::MAX;
        for _ in 0..20 {
            let mut monitor = Monitor::new(program.clone());
            let rounds = (2_000_000 / (blocks.len() * (properties + 5))).max(4);
            let start = Instant::now();
            for _ in 0..rounds {
                for block in &blocks {
                    black_box(monitor.step(black_box(block)));
                }
            }
            best = best.min(start.elapsed().as_secs_f64() * 1e9 / (events * rounds as f64));
        }
        print!(" block {len:2}: {best:8.2} ns/event, {:6.3} per property", best / properties as f64);
    }
    println!();
    Ok(())
}

/// Measures and prints.
///
/// # Errors
/// When a specification does not compile.
pub fn run() -> Result<(), CompileError> {
    for two_valued in [true, false] {
        println!("{}", if two_valued { "# two-valued (Definitely)" } else { "# three-valued" });
        let start = || Formulas { two_valued, ..Formulas::default() };
        for (lower, upper) in [(3, 10), (30, 100), (300, 1000)] {
            for true_in in [2, 20] {
                let mut f = start();
                let formula = f.respond(["p", "q", "s"], lower, upper);
                measure(
                    &format!("respond [{lower},{upper}], true 1 in {true_in}"),
                    &f.spec(&[formula]),
                    true_in,
                )?;
            }
            let mut f = start();
            let formula = f.always(["p", "q", "r"], lower, upper);
            measure(&format!("always [{lower},{upper}]"), &f.spec(&[formula]), 2)?;
        }
        let mut f = start();
        let formula = f.recur("p", 100);
        measure("recur [0,100]", &f.spec(&[formula]), 20)?;

        let mut f = start();
        let names: Vec<String> = (0..12).map(|i| format!("f{i}")).collect();
        let mut formulas = Vec::new();
        for i in 0..300_usize {
            let pick = [i % 12, (i / 3 + 1) % 12, (i / 7 + 5) % 12].map(|n| names[n].as_str());
            let (lower, upper) = [(3, 10), (5, 20), (30, 100), (300, 1000)][i / 12 % 4];
            formulas.push(match i % 3 {
                0 => f.respond(pick, lower, upper),
                1 => f.always(pick, lower, upper),
                _ => f.recur(pick[0], upper + i as u64),
            });
        }
        measure("300 properties over 12 fields", &f.spec(&formulas), 5)?;
    }

    println!("# robustness");
    for (name, two_valued, numeric) in
        [("truths", true, false), ("numbers, two-valued", true, true), ("numbers, three-valued", false, true)]
    {
        for (lower, upper) in [(3, 10), (30, 100), (300, 1000)] {
            let mut f = Formulas { two_valued, numeric, ..Formulas::default() };
            let formula = f.always(["p", "q", "r"], lower, upper);
            let mut spec = f.spec(&[formula]);
            spec.properties[0].robust = true;
            measure(&format!("always [{lower},{upper}] over {name}"), &spec, 2)?;
        }
    }

    println!("# values");
    let mut f = Formulas::default();
    let x = f.field("x", ValueType::Float);
    let prev = f.add(Expr::Prev(x));
    let greater = f.add(Expr::Compare(Comparison::Greater, x, prev));
    let limit = f.add(Expr::Literal(Value::Float(50.0)));
    let below = f.add(Expr::Compare(Comparison::Less, x, limit));
    let either = f.add(Expr::Or(greater, below));
    measure("x > prev(x) or x < 50", &f.spec(&[either]), 2)?;
    let mut f = Formulas::default();
    let x = f.field("x", ValueType::Int);
    let limit = f.add(Expr::Literal(Value::Int(50)));
    let below = f.add(Expr::Compare(Comparison::Less, x, limit));
    measure("x < 50", &f.spec(&[below]), 2)?;
    let mut f = Formulas::default();
    let mode = f.field("mode", ValueType::String);
    let idle = f.add(Expr::Literal(Value::String("idle".into())));
    let is_idle = f.add(Expr::Compare(Comparison::Equal, mode, idle));
    measure("mode == \"idle\"", &f.spec(&[is_idle]), 2)?;
    Ok(())
}
