//! The metrics of a run.

use std::sync::Arc;

use super::{Run, refuse};
use crate::deployment::{Deployment, MetricsSettings, PushSettings};
use crate::exit;
use crate::live::metrics::{self, Pusher, RunState, Server};
use crate::sinks::driven::default_series;

/// Returns the state of a run with these metrics, before its networks are joined.
pub(super) fn run_state(settings: Option<&MetricsSettings>) -> RunState {
    let state = RunState::new(settings.map(|settings| settings.parameters));
    match settings.and_then(|settings| settings.push.as_ref()) {
        Some(_) => state.pushed(),
        None => state,
    }
}

impl Run {
    /// Starts to serve metrics and to push them, as the deployment says.
    pub(super) fn publish_metrics(
        &self,
        deployment: &Deployment,
        state: Option<&Arc<RunState>>,
    ) -> Result<(Option<Server>, Option<Pusher>), u8> {
        let Some((settings, state)) = deployment.metrics.as_ref().zip(state) else { return Ok((None, None)) };
        let serve = |listen| metrics::serve(listen, Arc::clone(state));
        let push =
            |settings: &PushSettings| metrics::push(settings, self.series(deployment), Arc::clone(state));
        let server = settings.listen.map(serve).transpose().map_err(|why| refuse(&why, exit::USAGE))?;
        let pusher = settings.push.as_ref().map(push).transpose().map_err(|why| refuse(&why, exit::USAGE))?;
        Ok((server, pusher))
    }

    /// Returns the name of the series of this run.
    pub(super) fn series(&self, deployment: &Deployment) -> String {
        let configured = deployment.store.as_ref().and_then(|store| store.series.clone());
        configured.unwrap_or_else(|| default_series(&self.named_by(deployment)))
    }
}
