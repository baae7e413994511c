//! Recordings: messages as they were on a network ([`Recording`]), or lines of JSON ([`TraceReader`]).
//!
//! [`open`] determines the format of a file. Each format has a module; crate `rondel-decode` decodes lines and
//! payloads. [`McapWriter`] writes MCAP files, [`durable`] writes snapshots to files.

mod compressed;
mod cut_off;
pub mod durable;
mod library;
mod mcap;
mod merge;
mod open;
mod packed;
mod part;
mod pieces;
mod reader;
mod recording;
mod rosbag2;
#[cfg(feature = "sqlite")]
mod sqlite;
mod table;
mod temporary;
mod xml;

pub use compressed::damage;
pub use cut_off::{CutOff, CutOffs};
pub use library::Library;
pub use mcap::{Compression, McapRecording, McapWriter, MessageHead, WriterOptions};
pub use merge::Merged;
pub use open::{
    OpenError, Opened, has_lines, merge, merge_with, open, open_messages, open_messages_with, open_with,
};
pub use part::SplitPart;
pub use reader::{MAX_LINE, Piece, ReadError, TraceReader};
pub use recording::{
    End, Progress, RecordedMessage, RecordedSchema, RecordedTopic, Recording, RecordingError, Selection,
    WantedField, shown,
};
pub use table::{TableOptions, TableRecording, check_time_format, is_table};
pub use temporary::Temporary;
pub use xml::{XmlRecording, is_xml};
