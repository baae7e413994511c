//! Alignment of messages that arrive on many topics in any order: event-time order ([`Order`]) and sets
//! of matching messages ([`Sets`]).
//!
//! This crate has no clock, no threads and no I/O. The caller passes the time, so two runs with the same
//! calls have the same results.

mod order;
mod saved;
mod sets;
mod weight;

pub use order::{
    LatePolicy, Lateness, Marker, MaxWait, Notice, NumberOutcome, Order, OrderPolicy, OrderSettings,
    OrderStatistics, Refusal, Released, SequenceNumbers, TopicOrder,
};
pub use rondel_event::{Origin, SnapshotError};
pub use sets::{SetNotice, SetPolicy, SetSettings, SetStatistics, SetTime, SetTopicStatistics, Sets, Unused};
