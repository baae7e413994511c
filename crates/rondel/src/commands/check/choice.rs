//! Checks that the selected messages and options fit the recordings, before and when they are opened.

use std::path::{Path, PathBuf};

use rondel_event::Timestamp;
use rondel_recording::{OpenError, RecordingError, Selection, TableOptions, is_table, is_xml, shown};
use rondel_runtime::SessionPlan;

use super::Check;
use crate::commands::selecting::span;
use crate::commands::table_arguments::need_table;
use crate::deployment::divide;
use crate::{complain, exit};

impl Check {
    /// The times of `--from` and `--to` in a recording that begins at this time.
    ///
    /// # Errors
    /// A sentence if one is no time, or they are in the wrong order.
    pub(super) fn span(&self, first: Timestamp) -> Result<(Timestamp, Timestamp), String> {
        span([("--from", self.from.as_deref()), ("--to", self.to.as_deref())], first)
    }

    /// Checks the options that select messages before any recording is opened.
    ///
    /// # Errors
    /// A sentence about the first invalid option.
    pub(super) fn check_choice(&self) -> Result<(), String> {
        self.span(Timestamp::default())?;
        let given = [
            (self.merge, "--merge"),
            (self.from.is_some(), "--from"),
            (self.to.is_some(), "--to"),
            (!self.topics.is_empty(), "--topics"),
        ];
        let has_xml = self.traces.iter().any(|trace| is_xml(trace));
        let of_tables = [
            (self.topic.is_some() && !has_xml, "--topic"),
            (!self.table.columns.is_empty(), "--columns"),
            (self.table.time_format.is_some(), "--time-format"),
        ];
        if !self.traces.is_empty() {
            need_table(&of_tables, &self.traces)?;
        }
        let Some((_, option)) = given.into_iter().find(|(is_given, _)| *is_given) else { return Ok(()) };
        let lines: Vec<&PathBuf> =
            self.traces.iter().filter(|trace| rondel_recording::has_lines(trace)).collect();
        let Some(first) = lines.first() else { return Ok(()) };
        let more =
            if lines.len() > 1 { format!(", as {} more have", lines.len() - 1) } else { String::new() };
        Err(format!("{option} is for MCAP files, bags and tables, but {} has JSON lines{more}", shown(first)))
    }

    /// Divides the evaluation among workers, or warns of the reason why one thread does it.
    pub(super) fn set_workers(&self, plan: &mut SessionPlan) -> Result<(), u8> {
        let workers = self.workers.unwrap_or(1);
        divide(plan, workers, &format!("--workers {workers}")).map_err(|error| {
            complain(&error.to_string());
            exit::USAGE
        })
    }

    /// Reports the recordings that cannot be opened, and returns the status: without their types, a valid specification may
    /// seem to have errors.
    pub(super) fn unopened(&self) -> Option<u8> {
        let options = TableOptions {
            topic: self.topic.as_deref(),
            time: self.time_field.as_deref(),
            columns: &self.table.columns,
            ..TableOptions::default()
        };
        let named = self.traces.iter().filter(|trace| trace.as_os_str() != "-");
        let errors: Vec<OpenError> = named
            .filter_map(|trace| rondel_recording::open_messages_with(trace, &options).err())
            .map(OpenError::from)
            .collect();
        errors.iter().for_each(|error| complain(&error.to_string()));
        let is_binary = |trace: &&PathBuf| trace.as_os_str() != "-" && !is_table(trace);
        let cut: Vec<RecordingError> =
            self.traces.iter().filter(is_binary).filter_map(|trace| cut_off(trace)).collect();
        for error in &cut {
            complain(&behind(error));
        }
        (!errors.is_empty() || !cut.is_empty()).then_some(exit::TRACE)
    }
}

/// Returns the place at which a recording is cut off, without reading messages; `None` if it is complete.
pub(super) fn cut_off(path: &Path) -> Option<RecordingError> {
    let mut recording = rondel_recording::open_messages(path).ok()??;
    recording.select(Selection::of_topics(Vec::new()));
    loop {
        match recording.advance() {
            Ok(Some(_)) | Err(RecordingError::Damage { .. }) => {}
            Err(cut @ RecordingError::Cut { .. }) => return Some(cut),
            Ok(None) | Err(_) => return None,
        }
    }
}

/// Sentence: topics and types that are defined behind a cut are unknown.
pub(super) fn behind(cut: &RecordingError) -> String {
    format!("{cut}; topics and types that are defined behind that are not known")
}
