//! Messages in order or in sets: settings, monitors behind an alignment, progress of publishers, limits of times.

pub mod align;
pub mod alignment;
pub(crate) mod limits;
pub(crate) mod progress;
