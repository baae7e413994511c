//! The store of a run, and its other sinks beside networks.

use rondel_runtime::{Emit, SessionPlan};
use rondel_sinks::RunKind;

use super::{Run, refuse};
use crate::deployment::{Deployment, NEVER_END, lacks_ends};
use crate::sinks::driven::{self, Described, DestinationFeed, Destinations, RunDescription, StoreSettings};
use crate::sinks::origin::sha256_text;
use crate::{exit, warn};

impl Run {
    /// Sets the store of the options, and checks the file.
    pub(super) fn set_store(&self, deployment: &mut Deployment) -> Result<(), u8> {
        if deployment.page.is_some() && deployment.emit == Emit::Violations {
            let why =
                format!("--page: the page would show {NEVER_END}: use --emit change, or leave the page out");
            return Err(refuse(&why, exit::USAGE));
        }
        // The deployment is warned of when it is read.
        if deployment.emit == Emit::Violations && self.emit.is_some() {
            for lacks in deployment.driven.iter().filter_map(lacks_ends) {
                warn(&format!("{lacks}: for that, use --emit change"));
            }
        }
        if let Some(path) = &self.store {
            if !driven::IS_AVAILABLE {
                return Err(refuse(&format!("--store: {}", driven::UNAVAILABLE), exit::USAGE));
            }
            if deployment.synchronized.is_some() {
                return Err(refuse("--store: a synchronizer has no verdicts to store", exit::USAGE));
            }
            let settings = deployment.store.take().unwrap_or_else(|| StoreSettings::of(path.clone()));
            deployment.store = Some(StoreSettings { path: path.clone(), ..settings });
        }
        if deployment.store.is_none() {
            return self.set_page_store(deployment);
        }
        let Some(settings) = &deployment.store else { return Ok(()) };
        if deployment.emit == Emit::Violations && (self.store.is_some() || self.emit.is_some()) {
            warn(&format!("the store has {NEVER_END}: for that, use --emit change"));
        }
        let audited = self.audit.as_ref().or(deployment.audit.as_ref().map(|audit| &audit.file));
        let files = [
            ("the audit file", audited),
            ("the snapshot", self.snapshot_to.as_ref()),
            ("the snapshot to resume from", self.resume.as_ref()),
            ("the deployment or specification", self.file.as_ref()),
        ];
        for (what, file) in files {
            if file.is_some_and(|file| driven::is_same_file(file, &settings.path)) {
                let path = settings.path.display();
                let why = format!("{path} is {what}, too: choose another file for the store");
                return Err(refuse(&why, exit::USAGE));
            }
        }
        settings.check().map_err(|error| refuse(&error, exit::TRACE))
    }

    /// Opens the store of verdicts, and reserves its series, and the sinks beside networks.
    pub(super) fn open_destinations(&self, deployment: &Deployment) -> Result<Destinations, u8> {
        let named_by = self.named_by(deployment);
        Destinations::open(deployment.store.as_ref(), &deployment.driven, &named_by)
            .map_err(|error| refuse(&error, exit::TRACE))
    }
}

/// Begins the run in its destinations, if there are any.
pub(super) fn begin(
    destinations: &Destinations,
    deployment: &Deployment,
    plan: &SessionPlan,
    resumes: bool,
) -> Option<DestinationFeed> {
    if destinations.is_empty() {
        return None;
    }
    let (name, content) =
        deployment.text.as_ref().map_or(("", None), |(name, text)| (name.as_str(), Some(text)));
    destinations.begin(&RunDescription {
        kind: RunKind::Live,
        resumes,
        specification: &Described::of(&deployment.specification),
        configuration: name,
        configuration_hash: &content.map(|text| sha256_text(text.as_bytes())).unwrap_or_default(),
        properties: plan.properties(),
    })
}
