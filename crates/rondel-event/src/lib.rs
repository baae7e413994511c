//! The words that all of Rondel shares: time, values, blocks of events, projections and verdicts.
//!
//! No I/O and no clock in here. A decoder (crate `rondel-decode`) follows a [`Projection`] and writes
//! events into a [`Block`]; the monitor (crate `rondel-engine`) reads the block and answers with
//! [`Verdict`]s. Neither knows the other.

mod block;
mod event;
mod origin;
mod path;
mod projection;
pub mod snapshot;
mod time;
mod value;
mod verdict;

pub use block::{Block, BoolColumn, Column, Layout, Rows, StringColumn};
pub use event::Event;
pub use origin::Origin;
pub use path::{Path, Segment};
pub use projection::{Condition, Field, Projection, Quantifier, Read, Slot, Test};
pub use snapshot::SnapshotError;
pub use time::{ParseTimeError, TimeUnit, Timestamp};
pub use value::{Comparison, Value, ValueType};
pub use verdict::Verdict;

/// A topic of a specification, by its position in the order of declaration.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TopicId(pub u32);

impl TopicId {
    /// The position as an index.
    pub fn index(self) -> usize {
        self.0 as usize
    }
}
