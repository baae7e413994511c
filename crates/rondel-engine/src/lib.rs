//! The engine: a checked specification becomes a [`Program`], and a [`Monitor`] runs it over
//! events.
//!
//! ```
//! use std::sync::Arc;
//! use rondel_engine::{Monitor, Program};
//! use rondel_event::{Block, Path, Timestamp, TopicId, ValueType, Verdict};
//! use rondel_spec::{Bounds, Expr, ExprId, Property, Spec, Topic};
//!
//! // once[0,1] door.open
//! let open = Expr::Field { topic: TopicId(0), path: Path::keys(["open"]), value_type: ValueType::Bool };
//! let recently = Expr::Once(Bounds { lower: 0, upper: Some(1) }, ExprId(0));
//! let spec = Spec {
//!     topics: vec![Topic { name: "door".into(), address: "door".into(), type_name: None, schema: None }],
//!     properties: vec![Property::new("p", ExprId(1))],
//!     nodes: vec![open, recently],
//!     ..Spec::default()
//! };
//! let program = Arc::new(Program::compile(&spec)?);
//! let mut block = Block::new(program.layout());
//! for open in [true, false, false] {
//!     let row = block.push(TopicId(0), Timestamp::ZERO);
//!     block.set_bool(0, row, open);
//! }
//! let mut monitor = Monitor::new(program);
//! let reports = monitor.step(&block);
//! assert_eq!((reports[0].step, reports[0].verdict), (0, Verdict::Satisfied));
//! assert_eq!((reports[1].step, reports[1].verdict), (2, Verdict::Violated));
//! # Ok::<(), rondel_engine::CompileError>(())
//! ```
//!
//! # How it works
//!
//! A block of up to 64 events is evaluated at a time, and the truth of a formula at all of them is
//! one word of 64 bits. A three-valued formula is two such words, its *rails*: the rows where it is
//! certainly true, and those where it is possibly true. All operators but negation are monotone, so
//! each rail of the result depends on that rail of the operands alone; negation swaps the rails and
//! complements them. Thus Kleene's logic is compiled away: the program is a list of instructions on
//! plain words, and a formula that is never unknown has one rail and costs half.
//!
//! The way of a formula: `translate` writes it into the `graph`, where equal parts become one node;
//! `schedule` drops what no property needs and puts the rest in order; `program` numbers registers
//! and state; `monitor` is the loop, `words` and `values` what it does.

mod chain;
mod columns;
mod delay;
mod error;
mod extreme;
mod future;
mod graph;
mod instruction;
mod linear;
mod machine;
mod memory;
mod monitor;
mod program;
mod quantifier;
mod ranges;
mod relation;
mod report;
mod robust;
mod run;
mod scalar;
mod schedule;
mod section;
mod serial;
mod settled;
mod slice;
mod snapshot;
mod state;
mod texts;
mod timed;
mod translate;
mod values;
mod window;
mod words;

pub use chain::{ChainFigures, ChainStatus, Distribution};
pub use error::CompileError;
pub use memory::Memory;
pub use monitor::{Ambiguity, Monitor};
pub use program::Program;
pub use quantifier::{Evaluation, Quantifier};
pub use report::{Report, ReportKey, SliceStatus};
pub use rondel_event::SnapshotError;
