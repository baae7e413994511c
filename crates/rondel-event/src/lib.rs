//! Shared vocabulary of all crates: time, values, blocks of events, projections and verdicts.
//!
//! This crate has no I/O and no clock. A decoder (crate `rondel-decode`) follows a [`Projection`] and
//! writes events into a [`Block`]; the monitor (crate `rondel-engine`) reads the block and returns
//! [`Verdict`]s. Neither depends on the other.

mod address;
mod block;
pub mod calendar;
mod event;
pub mod kafka;
mod origin;
mod path;
mod projection;
pub mod snapshot;
mod stable_hash;
mod table;
pub mod terminal;
mod time;
mod topic_event;
mod value;
mod verdict;

pub use address::{AddressFault, AddressPattern, NameId, globs_meet};
pub use block::{Block, BoolColumn, Column, Layout, Rows, StringColumn};
pub use event::{Event, FieldOrigin};
pub use origin::{Origin, TypeIndex};
pub use path::{FROM_END, Named, Path, Segment};
pub use projection::{Condition, Countable, Field, Projection, Quantifier, Read, Slot, Test};
pub use snapshot::SnapshotError;
pub use stable_hash::StableHasher;
pub use table::{PackedTable, Table, TableCell, TableOrigin, TableWriter};
pub use time::{ParseTimeError, TimeUnit, Timestamp};
pub use topic_event::TopicEvent;
pub use value::{Comparison, Value, ValueType};
pub use verdict::Verdict;

/// Id of a topic: its position in the specification's order of declaration, from 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TopicId(pub u32);

impl TopicId {
    /// Returns the position as an index.
    pub fn index(self) -> usize {
        self.0 as usize
    }
}
