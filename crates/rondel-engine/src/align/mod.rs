//! Alignment: what arrives on many topics in any order, put in order or into sets before a monitor
//! sees it.
//!
//! Everything here is plain computation over what it is told: no clock, no thread, no input or
//! output. The driver says when it is; two runs over the same calls give the same results.

mod divide;
mod monitor;
mod order;
mod saved;
mod sets;

pub use divide::{Division, divide, together};
pub use monitor::{AlignedMonitor, Rule, Told};
pub use order::{
    Lateness, Marker, MaxWait, Notice, Order, OrderPolicy, OrderSettings, OrderStatistics, Origin, Refusal,
    Released, Tardy, TopicOrder,
};
pub use sets::{SetNotice, SetPolicy, SetSettings, SetStatistics, SetTime, SetTopicStatistics, Sets, Unused};
