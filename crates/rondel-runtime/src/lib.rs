//! Sessions: decode, align, evaluate, report. The library that other programs embed.
//!
//! A [`Session`] checks messages against a specification. It does no I/O and depends on no network: its
//! caller pushes messages and takes reports.
//!
//! ```
//! use rondel_event::{Timestamp, TopicId, Verdict};
//! use rondel_runtime::{Options, Session, Stamp};
//!
//! let text = "topic gear { report: int } topic velocity { longitudinal: float }
//!             property standstill = changed(gear.report) -> abs(velocity.longitudinal) < 0.1";
//! let spec = rondel_spec::parse(text).spec.ok_or("the specification has errors")?;
//! let mut session = Session::new(&spec, Options::default())?;
//! let at = |seconds: i64| Stamp::at(Timestamp::from_nanos(seconds * 1_000_000_000));
//! session.push(TopicId(1), at(1), br#"{"longitudinal": 8.5}"#)?;
//! session.push(TopicId(0), at(2), br#"{"report": 22}"#)?;
//! session.push(TopicId(0), at(3), br#"{"report": 20}"#)?;
//! session.flush();
//! let last = session.reports().last().ok_or("no verdict")?;
//! assert_eq!((last.property().name.as_str(), last.verdict()), ("standstill", Verdict::Violated));
//! let mut json = Vec::new();
//! last.json(&mut json);
//! assert_eq!(json, br#"{"property":"standstill","time":3,"step":2,"verdict":"violated"}"#);
//! session.finish();
//! assert!(session.summary().is_violated());
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

/// The examples of docs/embed.md, which `cargo test --doc` compiles and runs.
#[cfg(doctest)]
#[doc = include_str!("../../../docs/embed.md")]
struct Embed;

mod explanation;
mod ordering;
mod report;
mod session;
mod specification;
mod statistics;
pub mod survey;
pub mod text;
mod time;

pub use explanation::{Course, Explanation, ShownTime, Signal, TimePoint};
pub use ordering::alignment::Alignment;
pub use ordering::{align, alignment};
pub use report::notice::{GateChange, Notice, SinkState, UndeliveredMessages};
pub use report::ros2;
pub use report::severity::Severity;
pub use report::{KeptReport, PropertyInfo, Report};
pub use rondel_decode::{DecodeError, Encoding};
pub use rondel_engine::{KEY_HASHES, key_hash};
pub use session::options::{Blind, Emit, INSTANCE_BYTES, LARGEST_MESSAGE, Options, Reset, ResetPolicy};
pub use session::reading::pack_lines::PackLines;
pub use session::snapshot::saved::StartError;
pub use session::targets::{Target, Targets, UnknownTopic};
pub use session::testing;
pub use session::time::simulation::{SimulatedClock, Simulation, Step};
pub use session::values::{FieldValue, MessageValues, ValueField};
pub use session::{Edited, Session, SessionPlan, Stamp, Succession};
pub use specification::formula;
pub use specification::input::{Input, PublisherType, TimeSource};
pub use specification::names::TopicNames;
pub use specification::types::{Types, definition};
pub use specification::{Specification, looks_ahead};
pub use statistics::account::{Account, Accounts};
pub use statistics::alignment::AlignmentStatistics;
pub use statistics::chains::ChainStatistics;
pub use statistics::criteria::Judgement;
pub use statistics::missing::{Missing, Vacuous, VacuousKind};
pub use statistics::omission::{FirstOmission, Omission, Omissions, Reason};
pub use statistics::{
    Cause, Counts, Extent, FirstViolation, InViolation, LongestViolation, Pause, Present, PropertyStatistics,
    Standing, Summary, TopicStatistics, WorkerStatistics,
};
pub use time::clock::{AlignmentClock, Clock, ManualClock, SystemClock, Ticks};
