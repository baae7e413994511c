//! The recordings to replay, as messages in JSON where they are lines.

use std::path::{Path, PathBuf};

use rondel_event::TimeUnit;
use rondel_recording::{OpenError, Opened, Recording, RecordingError, TableOptions, shown};

use super::as_json::AsJson;
use super::lines::{LineRecording, Survey};
use crate::commands::table_arguments::TableReading;
use crate::exit;

/// The recordings to replay.
pub(super) struct Source {
    files: Vec<PathBuf>,
    /// The unit of times that are plain numbers, if it was given.
    unit: Option<TimeUnit>,
    tables: TableReading,
    /// Survey of a file of JSON lines.
    pub(super) survey: Option<Survey>,
}

impl Source {
    /// Opens the recordings, from the beginning.
    pub(super) fn open(&self) -> Result<Box<dyn Recording>, String> {
        let options = TableOptions { unit: self.unit, ..self.tables.options() };
        match (&self.survey, &self.files[..]) {
            (Some(survey), [file, ..]) => {
                let recording = LineRecording::open(file, self.unit.unwrap_or_default(), survey.clone());
                Ok(Box::new(recording.map_err(|error| error.to_string())?))
            }
            (None, [file]) => match rondel_recording::open_messages_with(file, &options) {
                Ok(Some(recording)) => Ok(AsJson::of(file.clone(), recording)),
                Ok(None) => Err(format!("{} is no recording any more", shown(file))),
                Err(error) => Err(error.to_string()),
            },
            (_, files) => match rondel_recording::merge_with(files, &options) {
                Ok(Opened::Messages(recording)) => {
                    Ok(AsJson::of(files.first().cloned().unwrap_or_default(), recording))
                }
                Ok(Opened::Lines(_)) => Err("lines cannot be merged".to_owned()),
                Err(error) => Err(error.to_string()),
            },
        }
    }

    /// Determines the kind of the recordings. With `keep_time`, messages of JSON lines keep their time as a field.
    ///
    /// # Errors
    /// Why they cannot be replayed, and the exit status.
    pub(super) fn find(
        files: Vec<PathBuf>,
        unit: Option<TimeUnit>,
        tables: TableReading,
        keep_time: bool,
    ) -> Result<Source, (String, u8)> {
        tables.check(&files).map_err(|error| (error, exit::USAGE))?;
        let lines = |file: &&PathBuf| file.as_os_str() == "-" || rondel_recording::has_lines(file);
        if files.len() > 1
            && let Some(file) = files.iter().find(lines)
        {
            let reason = "has JSON lines: only MCAP files and folders of rosbag2 can be replayed together";
            return Err((format!("{} {reason}", shown(file)), exit::USAGE));
        }
        let survey = match &files[..] {
            [file] if !is_lasting(file) => {
                let reason = "is no file: a recording is read twice, for its topics and for its messages; write it to a \
                              file, or send its lines to one topic with `rondel publish`";
                return Err((format!("{} {reason}", shown(file)), exit::USAGE));
            }
            [file] => {
                let unreadable = |error: String| (error, exit::TRACE);
                let options = TableOptions { unit, ..tables.options() };
                match rondel_recording::open_with(file, &options).map_err(|error| match error {
                    OpenError::Messages(RecordingError::Choice { .. }) => (error.to_string(), exit::USAGE),
                    _ => unreadable(error.to_string()),
                })? {
                    Opened::Lines(_) => {
                        Some(Survey::of(file, unit.unwrap_or_default(), keep_time).map_err(unreadable)?)
                    }
                    Opened::Messages(_) => None,
                }
            }
            _ => None,
        };
        Ok(Source { files, unit, tables, survey })
    }
}

/// Whether a path can be read twice or does not exist: it is neither a pipe nor standard input.
fn is_lasting(path: &Path) -> bool {
    // Opening a missing file reports it.
    let is_lasting = path.metadata().map_or(true, |metadata| metadata.is_file() || metadata.is_dir());
    is_lasting && path.as_os_str() != "-"
}
