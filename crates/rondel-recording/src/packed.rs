//! Files of messages by format: MCAP files, SQLite databases, bags and logs, compressed as a whole, by message, or not.

use std::io::Read as _;
use std::path::{Path, PathBuf};

use rondel_event::Timestamp;
use zstd::bulk::Decompressor;

use crate::mcap::McapRecording;
use crate::pieces::Pieces;
use crate::recording::{
    End, Progress, RecordedMessage, RecordedTopic, Recording, RecordingError, Selection, WantedField,
};
use crate::temporary::{self, Space};

/// The first bytes of a zstd frame, with which no message in CDR begins.
const FRAME: &[u8] = b"\x28\xb5\x2f\xfd";
/// Maximum size of a decompressed message, in bytes.
const LARGEST: usize = 1 << 30;

/// Format of a file of messages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Form {
    /// An MCAP file.
    Mcap,
    /// An SQLite database.
    Sqlite,
    /// A bag of ROS 1.
    Ros1,
    /// A log of PX4.
    Ulog,
}

/// Returns the format of a file by its name, and whether it is compressed as a whole; `None` for other files.
pub(crate) fn form(path: &Path) -> Option<(Form, bool)> {
    let ending = |path: &Path| path.extension().map(|ending| ending.to_string_lossy().to_lowercase());
    let is_packed = matches!(ending(path).as_deref(), Some("zstd" | "zst"));
    let own = if is_packed { ending(&path.with_extension("")) } else { ending(path) };
    match own.as_deref() {
        Some("mcap") => Some((Form::Mcap, is_packed)),
        Some("db3") => Some((Form::Sqlite, is_packed)),
        // Other files with this extension are recognised by their first bytes.
        Some("bag") if !is_packed => Some((Form::Ros1, false)),
        Some("ulg") if !is_packed => Some((Form::Ulog, false)),
        _ => None,
    }
}

/// An opened file of messages.
pub(crate) struct Opened {
    pub(crate) recording: Box<dyn Recording>,
    /// Whether Rondel wrote it.
    pub(crate) is_own: bool,
    /// Fault of its compression.
    pub(crate) fault: Option<RecordingError>,
}

/// Opens a file of this format, which may be compressed as a whole or by message.
///
/// # Errors
/// [`RecordingError`].
pub(crate) fn open(
    path: &Path,
    form: Form,
    is_packed: bool,
    is_by_message: bool,
) -> Result<Opened, RecordingError> {
    let mut opened = if is_packed {
        let (mut temporary, content, fault) = temporary::decompress(path)?;
        let space = std::mem::take(&mut temporary.space);
        match (open_as(form, path, Some((&content, space))), fault) {
            (Ok(opened), fault) => Opened { fault, ..opened },
            // If decompression failed, its error explains more than that of the incomplete content.
            (Err(_), Some(fault)) => return Err(fault),
            (Err(error), None) => return Err(error),
        }
    } else {
        open_as(form, path, None)?
    };
    // A database alone does not state that its messages are compressed.
    if is_by_message || form == Form::Sqlite {
        let topics = opened.recording.topics();
        let is_sure = topics.iter().map(|topic| is_by_message || topic.encoding == "cdr").collect();
        opened.recording = Box::new(Unpacking::new(path, opened.recording, is_sure));
    }
    Ok(opened)
}

fn open_as(form: Form, path: &Path, content: Option<(&Path, Space)>) -> Result<Opened, RecordingError> {
    match form {
        Form::Mcap => {
            let recording = McapRecording::of_pieces(Pieces::open(path, content)?)?;
            Ok(Opened { is_own: recording.is_own(), recording: Box::new(recording), fault: None })
        }
        Form::Ros1 => {
            let recording = McapRecording::open_ros1(path)?;
            Ok(Opened { is_own: false, recording: Box::new(recording), fault: None })
        }
        Form::Ulog => {
            let recording = McapRecording::open_ulog(path)?;
            Ok(Opened { is_own: false, recording: Box::new(recording), fault: None })
        }
        #[cfg(feature = "sqlite")]
        Form::Sqlite => {
            let recording = crate::sqlite::SqliteRecording::open(path, content)?;
            Ok(Opened { is_own: false, recording: Box::new(recording), fault: None })
        }
        #[cfg(not(feature = "sqlite"))]
        Form::Sqlite => Err(RecordingError::Form {
            path: path.to_owned(),
            reason: "this is an SQLite database, which this build of Rondel does not read; build it with its feature \
                     `sqlite`, or convert the bag to MCAP with `ros2 bag convert` or `rosbags-convert`"
                .to_owned(),
        }),
    }
}

/// A recording with messages compressed one by one.
struct Unpacking {
    name: PathBuf,
    inner: Box<dyn Recording>,
    /// For each topic, whether messages that look compressed are.
    topics: Vec<bool>,
    decompressor: Option<Decompressor<'static>>,
    /// The decompressed payload of the current message.
    payload: Vec<u8>,
    is_unpacked: bool,
}

impl Unpacking {
    fn new(path: &Path, inner: Box<dyn Recording>, topics: Vec<bool>) -> Unpacking {
        Unpacking {
            name: path.to_owned(),
            inner,
            topics,
            decompressor: None,
            payload: Vec::new(),
            is_unpacked: false,
        }
    }

    /// Decompresses the current message.
    fn unpack(&mut self) -> Result<(), (usize, String)> {
        self.is_unpacked = false;
        let Some(message) = self.inner.message() else { return Ok(()) };
        let topic = message.topic;
        if !message.payload.starts_with(FRAME) || !self.topics.get(topic).copied().unwrap_or(false) {
            return Ok(());
        }
        let wrong = |reason: String| (topic, reason);
        if self.decompressor.is_none() {
            self.decompressor = Some(Decompressor::new().map_err(|error| wrong(error.to_string()))?);
        }
        let Some(decompressor) = &mut self.decompressor else { return Ok(()) };
        let claimed = zstd::zstd_safe::get_frame_content_size(message.payload).ok().flatten();
        self.payload.clear();
        if let Some(size) = claimed {
            // No frame expands further than this.
            let possible = message.payload.len().saturating_mul(40_000).min(LARGEST) as u64;
            if size > possible {
                return Err(wrong(format!("decompressed it would have {size} bytes")));
            }
            self.payload.reserve(size as usize);
            let done = decompressor.decompress_to_buffer(message.payload, &mut self.payload);
            done.map_err(|error| wrong(error.to_string()))?;
        } else {
            let stream = zstd::Decoder::new(message.payload).map(|decoder| decoder.take(LARGEST as u64 + 1));
            let done = stream.and_then(|mut stream| stream.read_to_end(&mut self.payload));
            if done.map_err(|error| wrong(error.to_string()))? > LARGEST {
                return Err(wrong("decompressed it is larger than 1 GiB".to_owned()));
            }
        }
        self.is_unpacked = true;
        Ok(())
    }
}

impl Recording for Unpacking {
    fn topics(&self) -> &[RecordedTopic] {
        self.inner.topics()
    }

    fn select(&mut self, selection: Selection) {
        self.inner.select(selection);
    }

    fn want(&mut self, topic: usize, fields: &[WantedField]) {
        self.inner.want(topic, fields);
    }

    fn advance(&mut self) -> Result<Option<Timestamp>, RecordingError> {
        let time = self.inner.advance()?;
        if time.is_some() {
            self.unpack().map_err(|(topic, reason)| RecordingError::Damage {
                path: self.name.clone(),
                offset: 0,
                reason: format!(
                    "a message on {} cannot be decompressed: {reason}",
                    self.inner.topics().get(topic).map_or("", |topic| &topic.name)
                ),
                topics: vec![topic],
            })?;
        }
        Ok(time)
    }

    fn message(&self) -> Option<RecordedMessage<'_>> {
        let message = self.inner.message()?;
        Some(if self.is_unpacked { RecordedMessage { payload: &self.payload, ..message } } else { message })
    }

    fn span(&self) -> Option<(Timestamp, Timestamp)> {
        self.inner.span()
    }

    fn end(&self) -> End {
        self.inner.end()
    }

    fn progress(&self) -> Progress {
        self.inner.progress()
    }
}
