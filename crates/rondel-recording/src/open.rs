//! Finding out what a recording is.

use std::collections::BTreeSet;
use std::fs::{self, File};
use std::io::Read as _;
use std::path::{Path, PathBuf};

use crate::mcap::{self, McapRecording};
use crate::merge::Merged;
use crate::reader::{ReadError, TraceReader};
use crate::recording::{Recording, RecordingError};
use crate::rosbag2;

/// A recording that was opened.
pub enum Opened {
    /// Lines of JSON.
    Lines(TraceReader),
    /// Messages as they were on a network.
    Messages(Box<dyn Recording>),
}

/// Why a recording cannot be opened.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// Of lines.
    #[error(transparent)]
    Lines(#[from] ReadError),
    /// Of messages.
    #[error(transparent)]
    Messages(#[from] RecordingError),
}

/// Opens a recording by what the file begins with; `-` is standard input, which has lines.
///
/// # Errors
/// [`OpenError`].
pub fn open(path: &Path) -> Result<Opened, OpenError> {
    if let Some(recording) = open_messages(path)? {
        return Ok(Opened::Messages(recording));
    }
    if let Some(found) = foreign(&beginning(path)) {
        let reason = format!(
            "this is {found}; recordings are MCAP files, folders of rosbag2, and JSON lines, also as .gz and .zst"
        );
        return Err(RecordingError::Form { path: path.to_owned(), reason }.into());
    }
    Ok(Opened::Lines(TraceReader::open(path)?))
}

/// Opens several recordings of messages as one, merged by the times of recording. One that is named twice is read once.
///
/// # Errors
/// [`OpenError`] of the first that cannot be opened, or has lines.
pub fn merge(paths: &[PathBuf]) -> Result<Opened, OpenError> {
    let (mut recordings, mut faults) = (Vec::new(), Vec::new());
    let mut seen = BTreeSet::new();
    for path in paths {
        if !seen.insert(fs::canonicalize(path).unwrap_or_else(|_| path.clone())) {
            let reason = "it is named twice, and read once".to_owned();
            faults.push(RecordingError::Damage { path: path.clone(), offset: 0, reason, topics: Vec::new() });
            continue;
        }
        recordings.push(open_messages(path)?.ok_or_else(|| RecordingError::Form {
            path: path.clone(),
            reason: "only MCAP files and folders of rosbag2 can be merged".to_owned(),
        })?);
    }
    Ok(Opened::Messages(Box::new(Merged::new(recordings, faults))))
}

/// Opens a recording of messages: an MCAP file or a folder of rosbag2; `None` if it has lines or is anything else.
///
/// # Errors
/// [`RecordingError`].
pub fn open_messages(path: &Path) -> Result<Option<Box<dyn Recording>>, RecordingError> {
    if path.is_dir() {
        return Ok(Some(Box::new(rosbag2::open(path)?)));
    }
    if is_mcap(path) {
        return Ok(Some(Box::new(McapRecording::open(path)?)));
    }
    Ok(None)
}

/// Whether it would be read as lines of JSON, by its beginning and name; `-` is.
pub fn has_lines(path: &Path) -> bool {
    path.as_os_str() == "-" || path.is_file() && !is_mcap(path) && foreign(&beginning(path)).is_none()
}

/// Whether it is an MCAP file, by its beginning or, where that is damaged, its name.
fn is_mcap(path: &Path) -> bool {
    let is_named = path.extension().is_some_and(|extension| extension.eq_ignore_ascii_case("mcap"));
    is_named || beginning(path).starts_with(mcap::MAGIC)
}

/// The first bytes of a regular file.
fn beginning(path: &Path) -> Vec<u8> {
    let mut bytes = Vec::new();
    if path.metadata().is_ok_and(|metadata| metadata.is_file())
        && let Ok(file) = File::open(path)
    {
        // Without a beginning it is taken for lines, and reading says why it cannot be read.
        let _ = file.take(16).read_to_end(&mut bytes);
    }
    bytes
}

/// What a file is that is no recording, by its first bytes.
pub(crate) fn foreign(bytes: &[u8]) -> Option<&'static str> {
    let forms: [(&[u8], &str); 5] = [
        (b"PK\x03\x04", "a ZIP archive"),
        (b"#ROSBAG", "a bag of ROS 1"),
        (b"SQLite format 3\0", "an SQLite database"),
        (b"\x7fELF", "a program"),
        (b"PAR1", "a Parquet table"),
    ];
    forms.into_iter().find(|(start, _)| bytes.starts_with(start)).map(|(_, name)| name)
}
