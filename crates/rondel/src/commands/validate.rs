//! `rondel validate`: errors of a deployment, or a description of its effects, without connecting to a network.

use std::io::Write;
use std::path::PathBuf;

use clap::Args;

use rondel_runtime::Options;
use rondel_runtime::text::counted;

use crate::deployment::{self, Deployment, FlightSettings};
use crate::live::discover;
use crate::output::summary::declared_claims;
use crate::sinks::audit::AuditSettings;
use crate::sinks::driven::StoreSettings;
use crate::sinks::spool::SpoolSettings;
use crate::specification::is_specification;
use crate::{complain, exit, warn};

/// Find every mistake in a deployment file and its specification, without connecting
///
/// If there is none, print what the deployment does: its topics, alignment, sinks and networks.
#[derive(Debug, Args)]
pub struct Validate {
    /// The deployment
    #[arg(value_name = "FILE", default_value_os_t = deployment::default_file())]
    file: PathBuf,
}

impl Validate {
    /// Checks, and returns the exit status.
    pub fn run(self) -> u8 {
        if is_specification(&self.file) {
            complain(&format!(
                "{0} is a specification, and `validate` takes a deployment that names it: write `specification: {0}` \
                 into a file such as `{1}`",
                self.file.display(),
                deployment::default_file().display()
            ));
            return exit::USAGE;
        }
        let Ok(deployment) = Deployment::validate(&self.file) else { return exit::USAGE };
        let plan = deployment.plan(Options::default());
        let is_open = deployment.sources.iter().any(discover::is_open);
        if let Some(error) = (!is_open).then(|| plan.start().err()).flatten() {
            complain(&format!("{}: {error}", self.file.display()));
            return exit::USAGE;
        }
        let kept = deployment.spool.as_ref().map(SpoolSettings::check);
        let recorded = deployment.record.as_ref().map(FlightSettings::check);
        let audited = deployment.audit.as_ref().map(AuditSettings::check);
        let stored = deployment.store.as_ref().map(StoreSettings::check);
        let spooled = deployment.driven_spools().map(SpoolSettings::check);
        for place in [kept, recorded, audited, stored].into_iter().flatten().chain(spooled) {
            if let Err(error) = place {
                complain(&error);
                return exit::TRACE;
            }
        }
        if let Some(workers) = deployment.workers {
            let explain = deployment.actions.iter().any(|action| action.explains);
            let mut live = deployment.plan(Options { live: true, explain, ..Options::default() });
            if let Err(error) = deployment::divide(&mut live, workers, &format!("`workers: {workers}`")) {
                complain(&format!("{}: {error}", self.file.display()));
                return exit::USAGE;
            }
        }
        plan.mixtures().iter().chain(&plan.undecidable()).for_each(|sentence| warn(sentence));
        let topics = counted(deployment.sources.len() as u64, "topic", "topics");
        let purpose = match deployment.synchronized {
            Some(_) => format!("synchronizes {topics}"),
            None => {
                format!("{} over {topics}", declared_claims(&deployment.specification.spec))
            }
        };
        let text = format!("{} is fine: {purpose}\n\n{}", self.file.display(), deployment.overview());
        // With standard output closed, the exit status still carries the result.
        let _ = std::io::stdout().lock().write_all(text.as_bytes());
        exit::SATISFIED
    }
}
