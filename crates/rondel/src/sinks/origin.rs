//! Names of a machine and of contents, for the audit file and the store, which outlast a run.

use crate::sinks::audit::line;

/// Returns the name of the machine, if it is known.
pub fn host() -> Option<String> {
    let name = std::fs::read_to_string("/proc/sys/kernel/hostname").ok()?;
    Some(name.trim().to_owned())
}

/// Returns the SHA-256 of bytes in hexadecimal digits.
pub fn sha256_text(bytes: &[u8]) -> String {
    line::text(&line::sha256(bytes)).to_owned()
}
