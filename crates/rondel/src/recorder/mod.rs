//! Recording raw messages into MCAP files: all of them (`rondel record`), or those around violations
//! ([`FlightRecorder`]).
//!
//! Messages are copied once into a [`Ring`](ring::Ring) on the thread of the network. A thread of its own
//! ([`disk`]) writes its segments to files. It never holds up the network: what it cannot follow is counted.

mod channels;
mod disk;
mod flight;
mod ring;

pub use channels::{ADDRESS, Channel};
pub use disk::{Disk, Job, Place, Status};
pub use flight::{FlightRecorder, FlightSettings, FlightSummary, Origin, VERDICTS};
pub use ring::{Kept, Ring};
