//! Recorded traces: JSON lines in files, plain or compressed.

mod lines;
mod reader;

pub use lines::{LineError, LineErrorKind, Lines, TraceTopic};
pub use reader::{MAX_LINE, Piece, ReadError, TraceReader};
