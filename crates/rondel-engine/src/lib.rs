//! The engine: compiles a checked specification into a [`Program`], which a [`Monitor`] evaluates over
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
//! A monitor evaluates blocks of up to 64 events. The truth of a formula at all events of a block is
//! one word of 64 bits, so an operator costs a few machine instructions for the whole block.
//!
//! Fields may be unknown, so a formula has three truth values. Two words represent them (`TruthBounds`):
//! the *lower truth* marks the events at which the formula must be true, the *upper truth* those at which
//! it may be true. All operators but negation are monotone: each word of the result depends only on the
//! same word of the operands. Negation swaps the two and complements them. So a program consists of
//! instructions on plain words, and a formula that is never unknown needs only one of the two.
//!
//! | folder | purpose |
//! |---|---|
//! | `monitor` | runs a program over events and time: reports, missed messages, snapshots |
//! | `lower` | compiles the nodes of a specification into sections |
//! | `keyed` | one instance per parameter value, as `for each` declares them |
//! | `exec` | the interpreter of sections |
//! | `relation`, `future` | quantifiers over the values of messages; obligations of future operators |
//! | `chain`, `machine`, `linear` | chains, state machines and linear interpolation |
//! | `ops` | operators over the rows of a block |
//! | `ir` | nodes, wires and instructions |
//!
//! A folder imports only from those below it, which a test enforces.

mod chain;
mod exec;
mod future;
mod ir;
mod keyed;
mod linear;
mod lower;
mod machine;
mod monitor;
mod ops;
mod relation;

pub use chain::{ChainFigures, ChainStatus, Distribution};
pub use exec::memory::Memory;
pub use exec::report::{Report, ReportKey, SliceStatus, Withheld};
pub use future::{Known, Lookahead};
pub use keyed::divided::WholeReason;
pub use lower::error::CompileError;
pub use lower::quantifier::{Evaluation, Quantifier};
pub use lower::spread::{StayReason, spread};
pub use monitor::program::Program;
pub use monitor::uncertainty::{Blind, Missed, SeenAgain, UnseenFrom};
pub use monitor::{
    Ambiguity, Continued, EditOutcome, EndedInstance, FieldPlaces, KEY_HASHES, Monitor, PartsError, Portion,
    PortionOutput, RestartReason, Snapshot, TermValue, key_hash,
};
pub use rondel_event::SnapshotError;
