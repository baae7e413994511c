//! The C interface of Rondel: `rondel_…`, as `include/rondel.h` declares and describes them. `include/rondel.hpp` wraps
//! them for C++.
//!
//! Nothing is evaluated here: a [`Monitor`] is a session of `rondel-runtime` behind a lock. Every function catches panics
//! and turns errors into a [`Status`], whose message [`rondel_last_error`] returns. The header is written by hand, for
//! readers of C; a test compiles it, and compares its functions with those of the library, and its constants and the
//! layout of its structures with those here.
//!
//! # Pointers
//!
//! Functions that take pointers are unsafe: a pointer that is not null must be valid for the whole call, as the header
//! says of each argument, and a handle must come from a function of this library and not have been freed.

mod arguments;
mod arrow;
mod columns;
mod monitor;
mod options;
mod reports;
mod saving;
mod specification;
mod status;
mod text;

pub use arguments::RONDEL_NUL_TERMINATED;
pub use columns::{rondel_monitor_push_columns, rondel_monitor_take_reports};
pub use monitor::{
    Message, Monitor, RONDEL_NO_NAME, Topic, rondel_monitor_advance, rondel_monitor_deadline,
    rondel_monitor_finish, rondel_monitor_free, rondel_monitor_open, rondel_monitor_push,
    rondel_monitor_push_batch, rondel_monitor_summary, rondel_monitor_topic,
};
pub use options::{
    Input, Options, RONDEL_CBOR, RONDEL_CDR, RONDEL_EMIT_CHANGE, RONDEL_EMIT_EVERY, RONDEL_EMIT_VIOLATIONS,
    RONDEL_FLATBUFFERS, RONDEL_JSON, RONDEL_MSGPACK, RONDEL_PLAIN, RONDEL_PROTOBUF, RONDEL_SENML,
    RONDEL_SPARKPLUG_B, RONDEL_XML,
};
pub use reports::{
    Notice, RONDEL_INCONCLUSIVE, RONDEL_NO_STEP, RONDEL_SATISFIED, RONDEL_VIOLATED, Report,
    rondel_monitor_next_notice, rondel_monitor_next_report,
};
pub use saving::{
    Bytes, RONDEL_KEY_HASHES, rondel_bytes_free, rondel_key_hash, rondel_monitor_restore,
    rondel_monitor_restore_parts, rondel_monitor_snapshot, rondel_monitor_snapshot_part,
    rondel_monitor_snapshot_parts,
};
pub use specification::{
    Diagnostic, RONDEL_ERROR, RONDEL_WARNING, Specification, rondel_specification_compile,
    rondel_specification_diagnostic, rondel_specification_diagnostics, rondel_specification_free,
    rondel_specification_properties, rondel_specification_property, rondel_specification_rendered,
    rondel_specification_topic, rondel_specification_topics,
};
pub use status::{
    RONDEL_END, RONDEL_ERROR_ARGUMENT, RONDEL_ERROR_COLUMNS, RONDEL_ERROR_FINISHED, RONDEL_ERROR_MESSAGE,
    RONDEL_ERROR_PANIC, RONDEL_ERROR_SNAPSHOT, RONDEL_ERROR_SPECIFICATION, RONDEL_OK, Status,
    rondel_last_error,
};
pub use text::Text;

/// Version of the interface: incremented when a function, a constant or a structure of it changes or goes. Additions keep
/// it.
pub const RONDEL_ABI_VERSION: u32 = 1;

/// Returns [`RONDEL_ABI_VERSION`] of this library.
#[unsafe(no_mangle)]
pub extern "C" fn rondel_abi_version() -> u32 {
    RONDEL_ABI_VERSION
}

/// Returns the version of Rondel, such as `0.1.0`.
#[unsafe(no_mangle)]
pub extern "C" fn rondel_version() -> *const std::ffi::c_char {
    const VERSION: &str = concat!(env!("CARGO_PKG_VERSION"), "\0");
    VERSION.as_ptr().cast()
}
