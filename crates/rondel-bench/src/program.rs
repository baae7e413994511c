//! The programs that run as child processes.

use std::path::{Path, PathBuf};

use crate::failure::{Result, io_error};

/// Returns the measured program: the one that was named, else `rondel` beside this program, else `rondel` in PATH.
pub fn rondel(named: Option<&Path>) -> PathBuf {
    let beside = || {
        let own = std::env::current_exe().ok()?;
        Some(own.with_file_name("rondel")).filter(|path| path.is_file())
    };
    // A name without a folder is looked up in PATH when it is started.
    named.map(Path::to_owned).or_else(beside).unwrap_or_else(|| PathBuf::from("rondel"))
}

/// Returns this program, for plain participants.
///
/// # Errors
/// When the system does not say where it is.
pub fn own() -> Result<PathBuf> {
    // The link names the program that runs even when its file was replaced meanwhile.
    let link = Path::new("/proc/self/exe");
    if link.exists() {
        return Ok(link.to_owned());
    }
    std::env::current_exe().map_err(io_error("this program's own file"))
}
