//! Alignment: messages that arrive on many topics in any order, put into event-time order ([`Order`])
//! or into sets of matching messages ([`Sets`]).
//!
//! Everything here is pure computation over its inputs: no clock, no thread, no I/O. The caller passes
//! the time; two runs over the same calls give the same results.

mod order;
mod saved;
mod sets;

pub use order::{
    Lateness, Marker, MaxWait, Notice, Order, OrderPolicy, OrderSettings, OrderStatistics, Refusal, Released,
    Tardy, TopicOrder,
};
pub use rondel_event::{Origin, SnapshotError};
pub use sets::{SetNotice, SetPolicy, SetSettings, SetStatistics, SetTime, SetTopicStatistics, Sets, Unused};
