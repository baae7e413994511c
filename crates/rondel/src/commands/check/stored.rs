//! The store of verdicts of a check: a run for each recording.

use std::path::Path;
use std::time::Duration;

use rondel_runtime::PropertyInfo;
use rondel_sinks::RunKind;

use crate::sinks::driven::{
    Described, Destination, DestinationFeed, DestinationSummary, RunDescription, StoreSettings,
};
use crate::specification::Specification;

/// Time without progress for which a check waits for the store.
const WAIT: Duration = Duration::from_secs(60);

/// A store and the specification that recordings are checked against.
pub(super) struct CheckStore {
    store: Destination,
    specification: Described,
}

impl CheckStore {
    /// Opens a store, which must be writable at present, except for locks.
    ///
    /// # Errors
    /// The reason why the file cannot be used.
    pub(super) fn open(path: &Path, specification: &Specification) -> Result<CheckStore, String> {
        // Nothing arrives meanwhile: a check can wait.
        let settings = StoreSettings { wait: Some(WAIT), ..StoreSettings::of(path.to_owned()) };
        settings.check()?;
        Ok(CheckStore { store: Destination::store(&settings)?, specification: Described::of(specification) })
    }

    /// Begins a run: the check of a recording.
    pub(super) fn begin(
        &self,
        recording: &str,
        resumes: bool,
        properties: &[PropertyInfo],
    ) -> Option<DestinationFeed> {
        self.store.begin(&RunDescription {
            kind: RunKind::Check,
            resumes,
            specification: &self.specification,
            configuration: recording,
            configuration_hash: "",
            properties,
        })
    }

    /// Waits until everything so far is stored. Returns whether it is.
    pub(super) fn is_stored(&self) -> bool {
        self.store.handle().is_written_within(WAIT)
    }

    /// Writes everything that waits, and closes the store.
    pub(super) fn close(&self) -> DestinationSummary {
        self.store.close(WAIT)
    }
}
