//! Detection of the format of a recording.

use std::collections::BTreeSet;
use std::fs::{self, File};
use std::io::Read as _;
use std::path::{Path, PathBuf};

use crate::mcap;
use crate::merge::Merged;
use crate::packed::{self, Form};
use crate::reader::{ReadError, TraceReader};
use crate::recording::{Recording, RecordingError};
use crate::rosbag2;
use crate::table::{self, TableOptions, TableRecording};
use crate::xml::{self, XmlRecording};

/// An opened recording.
pub enum Opened {
    /// Lines of JSON.
    Lines(TraceReader),
    /// Messages as they were on a network.
    Messages(Box<dyn Recording>),
}

/// Reason why a recording cannot be opened.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// Error of lines.
    #[error(transparent)]
    Lines(#[from] ReadError),
    /// Error of messages.
    #[error(transparent)]
    Messages(#[from] RecordingError),
}

/// Opens a recording by the first bytes of the file; `-` is standard input, which has lines.
///
/// # Errors
/// [`OpenError`].
pub fn open(path: &Path) -> Result<Opened, OpenError> {
    open_with(path, &TableOptions::default())
}

/// Like [`open`], with options for tables.
///
/// # Errors
/// [`OpenError`].
pub fn open_with(path: &Path, options: &TableOptions<'_>) -> Result<Opened, OpenError> {
    if let Some(recording) = open_messages_with(path, options)? {
        return Ok(Opened::Messages(recording));
    }
    if let Some(found) = foreign(&beginning(path)) {
        let reason = format!("this is {found}; recordings are {FORMS}");
        return Err(RecordingError::Form { path: path.to_owned(), reason }.into());
    }
    Ok(Opened::Lines(TraceReader::open(path)?))
}

/// The forms of recordings, for errors.
const FORMS: &str = "MCAP files, folders of rosbag2, their databases (.db3), bags of ROS 1 (.bag), logs of PX4 (.ulg), tables (.csv, \
                     .parquet), messages in XML (.xml), and JSON lines, also as .gz and .zst";

/// Opens several recordings of messages as one, merged by the times of recording. A path given twice is read once; a
/// recording that cannot be opened is reported when reading begins, and the others are read.
///
/// # Errors
/// [`OpenError`] of the first one if none can be opened; also if one has lines.
pub fn merge(paths: &[PathBuf]) -> Result<Opened, OpenError> {
    merge_with(paths, &TableOptions::default())
}

/// Like [`merge`], with options for tables.
///
/// # Errors
/// Those of [`merge`].
pub fn merge_with(paths: &[PathBuf], options: &TableOptions<'_>) -> Result<Opened, OpenError> {
    let (mut recordings, mut faults) = (Vec::new(), Vec::new());
    let mut unopened = None;
    let mut seen = BTreeSet::new();
    let damage = |path: &Path, reason| RecordingError::Damage {
        path: path.to_owned(),
        offset: 0,
        reason,
        topics: Vec::new(),
    };
    for path in paths {
        if !seen.insert(fs::canonicalize(path).unwrap_or_else(|_| path.clone())) {
            faults.push(damage(path, "it is named twice, and read once".to_owned()));
            continue;
        }
        match open_messages_with(path, options) {
            Ok(Some(recording)) => recordings.push(recording),
            Ok(None) => {
                let reason = format!(
                    "it has no messages that can be merged with others; these are {FORMS}, without JSON lines"
                );
                return Err(RecordingError::Form { path: path.clone(), reason }.into());
            }
            Err(error) => {
                faults.push(damage(path, format!("it is not read: {}", error.without(path))));
                unopened.get_or_insert(error);
            }
        }
    }
    match unopened {
        Some(error) if recordings.is_empty() => Err(error.into()),
        _ => Ok(Opened::Messages(Box::new(Merged::new(recordings, faults)))),
    }
}

/// Opens a recording of messages: an MCAP file, a bag, a log, a database, a table, an XML file or a folder of rosbag2;
/// `None` for lines and other files.
///
/// # Errors
/// [`RecordingError`].
pub fn open_messages(path: &Path) -> Result<Option<Box<dyn Recording>>, RecordingError> {
    open_messages_with(path, &TableOptions::default())
}

/// Like [`open_messages`], with options for tables.
///
/// # Errors
/// [`RecordingError`].
pub fn open_messages_with(
    path: &Path,
    options: &TableOptions<'_>,
) -> Result<Option<Box<dyn Recording>>, RecordingError> {
    if path.is_dir() {
        return Ok(Some(Box::new(rosbag2::open(path)?)));
    }
    if let Some((form, is_packed)) = form(path) {
        let opened = packed::open(path, form, is_packed, false)?;
        return Ok(Some(match opened.fault {
            None => opened.recording,
            Some(fault) => Box::new(Merged::new(vec![opened.recording], vec![fault])),
        }));
    }
    if table::is_table(path) {
        return Ok(Some(Box::new(TableRecording::open(path, options)?)));
    }
    if xml::is_xml(path) {
        return Ok(Some(Box::new(XmlRecording::open(path, options)?)));
    }
    Ok(None)
}

/// Whether a path is read as lines of JSON, by its first bytes and its name; `-` is.
pub fn has_lines(path: &Path) -> bool {
    path.as_os_str() == "-"
        || path.is_file()
            && form(path).is_none()
            && !table::is_table(path)
            && !xml::is_xml(path)
            && foreign(&beginning(path)).is_none()
}

/// Returns the format of a file of messages by its first bytes or, if these are damaged or compressed, by its name; and
/// whether it is compressed.
fn form(path: &Path) -> Option<(Form, bool)> {
    let named = packed::form(path);
    let bytes = beginning(path);
    match named {
        Some((_, true)) => named,
        _ if bytes.starts_with(mcap::MAGIC) => Some((Form::Mcap, false)),
        _ if bytes.starts_with(b"SQLite format 3\0") => Some((Form::Sqlite, false)),
        _ if bytes.starts_with(mcap::ROS1_MAGIC) => Some((Form::Ros1, false)),
        _ if bytes.starts_with(mcap::ULOG_MAGIC) => Some((Form::Ulog, false)),
        _ => named,
    }
}

/// Returns the first bytes of a regular file.
fn beginning(path: &Path) -> Vec<u8> {
    let mut bytes = Vec::new();
    if path.metadata().is_ok_and(|metadata| metadata.is_file())
        && let Ok(file) = File::open(path)
    {
        // A file that cannot be read is taken for lines; reading reports the reason.
        let _ = file.take(16).read_to_end(&mut bytes);
    }
    bytes
}

/// Returns the kind of a file that is no recording, by its first bytes.
pub(crate) fn foreign(bytes: &[u8]) -> Option<&'static str> {
    let forms: [(&[u8], &str); 3] =
        [(b"PK\x03\x04", "a ZIP archive"), (b"#ROSBAG", "a bag of ROS 1"), (b"\x7fELF", "a program")];
    forms.into_iter().find(|(start, _)| bytes.starts_with(start)).map(|(_, name)| name)
}
