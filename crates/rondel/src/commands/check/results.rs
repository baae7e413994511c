//! The results of a check, for a command that shows them itself.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use rondel_report::Results;

use super::Check;
use super::checking::Checking;
use crate::commands::reports::Reports;
use crate::output::{Emit, Format};
use crate::specification::Specification;

impl Check {
    /// Creates a check of recordings, and of those in folders; it ends early once `interrupted` is true. Folders without
    /// recordings, and unreadable files in them, are reported.
    pub fn of_recordings(traces: Vec<PathBuf>, interrupted: Arc<AtomicBool>) -> Check {
        // Nothing is printed but warnings: no verdicts, and no names of recordings before them.
        let mut check = Check { traces, interrupted, draws: true, format: Format::Json, ..Check::default() };
        check.expand();
        check
    }

    /// The recordings.
    pub fn traces(&self) -> &[PathBuf] {
        &self.traces
    }

    /// Checks a specification. With `robustness`, that of its first property is a signal of the results, as
    /// [`Reports::kept`] describes.
    ///
    /// # Errors
    /// The exit status, after the reason was shown.
    pub fn results(&mut self, specification: &Specification, robustness: bool) -> Result<Results, u8> {
        self.emit = robustness.then_some(Emit::Every);
        let (plan, printed) = self.plan_of(specification)?;
        let reports = Reports::kept(specification, robustness);
        let schemas = Arc::clone(&specification.schemas);
        Ok(Checking::new(self, plan, printed, schemas, Some(reports)).results())
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
