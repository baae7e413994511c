//! Recording raw messages into MCAP files: all of them (`rondel record`), or those around violations
//! ([`FlightRecorder`]).
//!
//! Messages are copied once into a [`Ring`](ring::Ring) on the thread of the network. A thread of its own
//! ([`disk`]) writes its segments to files. It never holds up the network: messages that it cannot follow are counted.

mod channels;
mod disk;
mod events;
mod flight;
pub mod log;
mod ring;

use crate::deployment::Binding;
use crate::warn;

pub use channels::{ADDRESS, Channel};
pub use disk::{Disk, Job, Place, Status};
pub use events::{EVENTS, Violations, event_schema, parameters};
pub use flight::{FlightRecorder, FlightSummary};
pub use log::{Origin, VERDICTS, verdict_schema};
pub use ring::{Kept, Ring};

/// Warns of sources whose messages are recorded twice: a check would count them twice.
pub fn warn_of_doubles(sources: &[Binding]) {
    for (i, one) in sources.iter().enumerate() {
        let is_double = |other: &&Binding| other.address.meets(&one.address);
        if let Some(other) = sources.iter().skip(i + 1).find(is_double) {
            warn(&format!(
                "what is published on both {} and {} is recorded twice, and a check of the recording counts it twice",
                one.address, other.address
            ));
        }
    }
}
