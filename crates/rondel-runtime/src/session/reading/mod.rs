//! Reading messages: decoders, types, values from outside of payloads, and the intake of messages that wait.

pub(super) mod decoders;
pub(super) mod defaults;
pub(super) mod intake;
pub(super) mod line_counts;
pub(super) mod numbers;
pub(crate) mod pack_lines;
pub(super) mod reader;
pub(super) mod sharing;
pub(super) mod types;
