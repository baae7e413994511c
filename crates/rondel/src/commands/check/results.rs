//! The results of a check, for a command that shows them itself.

use std::path::PathBuf;
use std::sync::Arc;
#[cfg(feature = "repl")]
use std::sync::atomic::AtomicBool;

use rondel_report::Results;

use super::checking::Checking;
use super::{Check, OnError};
use crate::commands::reports::Reports;
use crate::commands::table_arguments::TableReading;
use crate::output::{Emit, Format};
use crate::specification::{Specification, is_deployment};

impl Check {
    /// Creates a check of recordings, and of those in folders; it ends early once `interrupted` is true. Folders without
    /// recordings, and unreadable files in them, are reported.
    #[cfg(feature = "repl")]
    pub fn of_recordings(traces: Vec<PathBuf>, interrupted: Arc<AtomicBool>) -> Check {
        let mut check = Check { traces, interrupted, ..Check::default() };
        check.expand();
        check
    }

    /// Creates a check of JSON lines in memory, which explains violations; `name` stands for a file of them.
    pub fn of_lines(name: &str, lines: Vec<u8>) -> Check {
        Check { traces: vec![PathBuf::from(name)], lines: Some(lines), explain: true, ..Check::default() }
    }

    /// Creates a check of a specification or a deployment with recordings, of which the times from `span.0` to `span.1` are
    /// read. What cannot be read is skipped.
    pub fn of_files(
        first: PathBuf,
        schemas: &[PathBuf],
        traces: &[PathBuf],
        tables: &TableReading,
        span: (Option<&str>, Option<&str>),
    ) -> Check {
        let mut check = Check {
            traces: traces.to_vec(),
            from: span.0.map(str::to_owned),
            to: span.1.map(str::to_owned),
            table: tables.table.clone(),
            on_error: OnError::Skip,
            ..Check::default()
        };
        check.reading.recordings.clone_from(&check.traces);
        // A deployment names the definitions and the times itself.
        if !is_deployment(&first) {
            check.reading.schemas = schemas.to_vec();
            check.time_field.clone_from(&tables.time_field);
        }
        check.first = Some(first);
        check
    }

    /// The recordings.
    #[cfg(feature = "repl")]
    pub fn traces(&self) -> &[PathBuf] {
        &self.traces
    }

    /// Checks a specification, prints verdicts and the summary, and returns the exit status.
    ///
    /// # Errors
    /// The exit status, after the reason was shown.
    pub fn print(&self, specification: &Specification) -> Result<u8, u8> {
        let (plan, printed) = self.plan_of(specification)?;
        let schemas = Arc::clone(&specification.schemas);
        Ok(Checking::new(self, plan, printed, schemas, None).run(None))
    }

    /// Checks a specification, with the fields that it reads over the whole recordings. With `robustness`, that of its first
    /// property is a signal of the results, as [`Reports::kept`] describes.
    ///
    /// # Errors
    /// The exit status, after the reason was shown.
    pub fn results(&mut self, specification: &Specification, robustness: bool) -> Result<Results, u8> {
        self.draws = true;
        self.be_silent();
        self.emit = robustness.then_some(Emit::Every);
        let (mut plan, printed) = self.plan_of(specification)?;
        if let Some(reset) = self.reset {
            plan.set_reset(reset.into());
        }
        let reports = Reports::kept(specification, robustness);
        let schemas = Arc::clone(&specification.schemas);
        Ok(Checking::new(self, plan, printed, schemas, Some(reports)).results())
    }

    /// Checks its specification or deployment, and returns the verdicts without fields.
    ///
    /// # Errors
    /// The exit status, after the reason was shown.
    pub fn judged(mut self) -> Result<Results, u8> {
        self.be_silent();
        let (plan, printed, specification, in_simulated_time) = self.plan()?;
        self.in_simulated_time = in_simulated_time;
        let reports = Reports::kept(&specification, false);
        Ok(Checking::new(&self, plan, printed, specification.schemas, Some(reports)).results())
    }

    /// Prints nothing but warnings: no verdicts, and no names of recordings before them.
    fn be_silent(&mut self) {
        (self.is_silent, self.format) = (true, Format::Json);
    }
}

impl Checking<'_> {
    /// Checks all recordings, and returns the results.
    fn results(mut self) -> Results {
        let recordings = self.options.recordings();
        match self.options.threads() {
            1 => self.one_by_one(recordings),
            threads => self.all_at_once(recordings, threads),
        }
        self.reports.take().map_or_else(|| Results::new("", Vec::new()), Reports::into_results)
    }
}
