//! Monitors behind an alignment: events come in as they arrive and are evaluated in event-time order or
//! in sets.

mod divide;
mod monitor;
mod saved;

pub use divide::{Division, divide, together};
pub use monitor::{AlignedMonitor, EventRow, ReportCallback, Rule};
