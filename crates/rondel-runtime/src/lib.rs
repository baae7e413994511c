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

mod account;
pub mod align;
pub mod alignment;
mod alignment_statistics;
mod arrival;
mod chains;
mod clock;
mod criteria;
mod explanation;
pub mod formula;
mod identity;
mod limits;
mod missing;
mod mixtures;
mod names;
mod notice;
mod omission;
mod options;
mod pack_lines;
mod progress;
mod reached;
mod report;
pub mod ros2;
mod saved;
mod session;
mod sharing;
mod simulation;
mod specification;
mod statistics;
pub mod survey;
pub mod testing;
pub mod text;
mod types;

pub use account::{Account, Accounts};
pub use alignment::Alignment;
pub use alignment_statistics::AlignmentStatistics;
pub use chains::ChainStatistics;
pub use clock::{AlignmentClock, Clock, ManualClock, SystemClock, Ticks};
pub use criteria::Judgement;
pub use explanation::{Course, Explanation, ShownTime, Signal, TimePoint};
pub use missing::{Missing, Vacuous, VacuousKind};
pub use names::TopicNames;
pub use notice::Notice;
pub use omission::{FirstOmission, Omission, Omissions, Reason};
pub use options::{
    Blind, Emit, INSTANCE_BYTES, Input, LARGEST_MESSAGE, Options, PublisherType, Reset, ResetPolicy,
    TimeSource,
};
pub use pack_lines::PackLines;
pub use report::{PropertyInfo, Report};
pub use rondel_decode::{DecodeError, Encoding};
pub use saved::StartError;
pub use session::{Edited, Session, SessionPlan, Stamp};
pub use simulation::{SimulatedClock, Simulation, Step};
pub use specification::{Specification, looks_ahead};
pub use statistics::{
    Cause, Counts, Extent, FirstViolation, InViolation, LongestViolation, Pause, PropertyStatistics, Summary,
    TopicStatistics,
};
pub use types::{Types, definition};
