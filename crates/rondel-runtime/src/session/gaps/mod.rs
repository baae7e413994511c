//! Missed messages and missed time: outages, pauses and restarts.

pub(super) mod blind;
pub(super) mod pause;
pub(super) mod restart;
pub(super) mod returning;
pub(super) mod watch;
