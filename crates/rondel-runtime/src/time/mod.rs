//! Time: clocks, and times of arrival.

pub(crate) mod arrival;
pub(crate) mod clock;

/// Maximum time that waiting messages take to arrive, in nanoseconds.
pub(crate) const GRACE: i64 = 1_000_000_000;
