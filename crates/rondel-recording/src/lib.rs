//! Recordings: files of JSON lines, plain or compressed, read in pieces of whole lines.
//!
//! Decoding of the lines is the job of crate `rondel-decode`; this crate does the input, and writes
//! snapshots to files.

pub mod durable;
mod reader;

pub use reader::{MAX_LINE, Piece, ReadError, TraceReader};
