//! The place of the socket of a run.

use std::fs::{self, DirBuilder};
use std::io;
use std::os::unix::fs::{DirBuilderExt as _, MetadataExt as _};
use std::path::{Path, PathBuf};

use crate::sinks::origin::sha256_text;

/// Number of digits of the hash in the name of a socket.
const DIGITS: usize = 16;

/// Returns the path of the socket of a run of this file, in a folder that only the user can enter. `makes`: the folder is
/// made if it does not exist.
///
/// # Errors
/// The folder belongs to somebody else or others may enter it, or it cannot be made.
pub fn socket_of(file: &Path, makes: bool) -> io::Result<PathBuf> {
    let folder = folder(makes)?;
    let whole = fs::canonicalize(file)?;
    let hash = sha256_text(whole.as_os_str().as_encoded_bytes());
    Ok(folder.join(format!("{}.sock", hash.get(..DIGITS).unwrap_or(&hash))))
}

/// The folder of sockets: `$XDG_RUNTIME_DIR/rondel`, or one in the temporary folder that is named after the user.
fn folder(makes: bool) -> io::Result<PathBuf> {
    let user = fs::metadata("/proc/self")?.uid();
    let runtime = std::env::var_os("XDG_RUNTIME_DIR").map(PathBuf::from);
    let folder = match runtime.filter(|runtime| runtime.is_absolute()) {
        Some(runtime) => runtime.join("rondel"),
        None => std::env::temp_dir().join(format!("rondel-{user}")),
    };
    if makes {
        match DirBuilder::new().mode(0o700).create(&folder) {
            Err(error) if error.kind() != io::ErrorKind::AlreadyExists => return Err(error),
            _ => {}
        }
    }
    // A link would lead into a folder of somebody else.
    let found = fs::symlink_metadata(&folder)?;
    if !found.is_dir() || found.uid() != user || found.mode() & 0o077 != 0 {
        let why = format!("{} must be a folder of this user that no other user can enter", folder.display());
        return Err(io::Error::new(io::ErrorKind::PermissionDenied, why));
    }
    Ok(folder)
}
