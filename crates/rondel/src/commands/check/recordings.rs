//! The recordings of a check: their names, the recordings of folders, and opening them.

use std::path::{Path, PathBuf};

use rondel_recording::{Library, OpenError, Opened, RecordingError, TableOptions, TraceReader, shown};
use rondel_runtime::SessionPlan;
use rondel_runtime::text::counted;

use super::Check;
use crate::specification::{is_recording, is_specification};
use crate::{complain, warn};

/// The number of files that name recordings which are checked as one.
const MERGED_NAMES: usize = 3;

impl Check {
    /// Describes a file that is out of order, judged by the names of the files.
    pub(super) fn misplaced_file(&self) -> Option<String> {
        let first = self.first.as_deref()?;
        let specification = self.traces.iter().map(PathBuf::as_path).find(|file| is_specification(file));
        if self.formula.is_some() {
            let file = Some(first).filter(|file| is_specification(file)).or(specification)?;
            return Some(format!(
                "{} is a specification, and --formula stands for one: leave one of them out",
                shown(file)
            ));
        }
        match (is_recording(first), specification) {
            (true, Some(file)) => Some(format!(
                "{0} is a recording and {1} a specification: name the specification first, \
                 `rondel check {1} {0}`",
                shown(first),
                shown(file)
            )),
            (true, None) => Some(format!(
                "{0} is a recording: name the specification before it, `rondel check SPECIFICATION {0}`",
                shown(first)
            )),
            (false, Some(file)) => Some(format!(
                "{} is a specification, and a recording should stand here: a check has one specification",
                shown(file)
            )),
            (false, None) => None,
        }
    }

    /// The recordings to check, each from its own beginning.
    pub(super) fn recordings(&self) -> &[PathBuf] {
        if self.merge { &self.traces[..1] } else { &self.traces }
    }

    /// Finds all recordings: those on the command line, of Kafka and of folders.
    ///
    /// # Errors
    /// The exit status, after the reason was shown.
    pub(super) fn gather(&mut self) -> Result<(), u8> {
        if self.formula.is_some() {
            // The first argument is then the first recording.
            self.traces.splice(0..0, self.first.take());
        }
        self.find_kafka()?;
        self.expand();
        Ok(())
    }

    /// Puts the recordings of folders in the place of these.
    pub(super) fn expand(&mut self) {
        let mut traces = Vec::new();
        for trace in std::mem::take(&mut self.traces) {
            let tables = TableOptions {
                time: self.time_field.as_deref(),
                columns: &self.table.columns,
                ..TableOptions::default()
            };
            let library = match Library::find(&trace, &tables) {
                Ok(Some(library)) => library,
                Ok(None) => {
                    traces.push(trace);
                    continue;
                }
                Err(error) => {
                    self.pass_over(&trace, &error);
                    continue;
                }
            };
            for (files, what) in [
                (&library.others, "no recording, by the names"),
                (&library.hidden, "hidden, and not checked"),
            ] {
                if let Some(first) = files.first() {
                    let files = counted(files.len() as u64, "file is", "files are");
                    let first = shown(first.strip_prefix(&trace).unwrap_or(first));
                    warn(&format!("{}: {files} {what}; the first is {first}", shown(&trace)));
                }
            }
            for (folder, part) in &library.incomplete {
                let folder = shown(folder);
                warn(&format!(
                    "{folder}: if its files are parts of one recording, {part} is missing: each is checked by itself; \
                     --merge checks them as one"
                ));
            }
            library.unreadable.iter().for_each(|error| self.pass_over(&trace, error));
            traces.extend(library.recordings);
        }
        self.traces = traces;
    }

    /// Notes that something named, or a folder below it, cannot be read. The others are checked.
    fn pass_over(&mut self, named: &Path, error: &RecordingError) {
        complain(&error.to_string());
        let path = if let RecordingError::Open { path, .. } = error { path } else { named };
        self.unreadable.push((shown(path), error.to_string()));
    }

    /// The name of a recording; with --merge of all of them.
    pub(super) fn name(&self, path: &Path) -> String {
        let name = |path: &Path| {
            let mut fetched = self.kafka_recordings.iter().flat_map(|recordings| &recordings.all);
            let fetched = fetched.find(|fetched| fetched.path == path);
            fetched.map_or_else(|| shown(path), |fetched| fetched.name.clone())
        };
        if !self.merge {
            return name(path);
        }
        let named: Vec<String> = self.traces.iter().take(MERGED_NAMES).map(|path| name(path)).collect();
        let more = self.traces.len() - named.len();
        let more = if more > 0 { format!(" and {more} more") } else { String::new() };
        named.join(" + ") + &more
    }

    /// Opens a recording; with --merge all of them.
    pub(super) fn open(&self, path: &Path, plan: &SessionPlan) -> Result<Opened, OpenError> {
        if let Some(lines) = &self.lines {
            return Ok(Opened::Lines(TraceReader::of_lines(path, lines.clone())));
        }
        let declared = plan.specification().spec.declared();
        let is_topic = |name: &str| plan.topic_in_recording(name).is_some();
        let options = TableOptions {
            topic: self.topic.as_deref(),
            only_topic: if let [one] = declared { Some(&one.name) } else { None },
            time: self.time_field.as_deref(),
            unit: self.time_unit.as_ref().map(|_| self.unit()),
            time_format: self.table.time_format.as_deref(),
            columns: &self.table.columns,
            is_topic: Some(&is_topic),
        };
        match self.merge {
            false => rondel_recording::open_with(path, &options),
            true => rondel_recording::merge_with(&self.traces, &options),
        }
    }
}
