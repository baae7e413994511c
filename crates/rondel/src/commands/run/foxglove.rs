//! The server for Foxglove of a run.

use rondel_runtime::Emit;

use super::{Run, refuse};
use crate::deployment::{Deployment, FoxgloveSettings, NEVER_END, Token};
use crate::exit;
use crate::live::foxglove::{FoxgloveServer, IS_AVAILABLE, UNAVAILABLE};

impl Run {
    /// Adds the server for Foxglove of the options to a deployment.
    pub(super) fn add_foxglove(&self, deployment: &mut Deployment) {
        let Some(listen) = self.foxglove else { return };
        let settings = deployment.foxglove.take().unwrap_or_else(|| FoxgloveSettings::of(listen));
        let token = self.foxglove_token_file.clone().map(Token::File).or_else(|| settings.token.clone());
        deployment.foxglove = Some(FoxgloveSettings { listen, token, ..settings });
    }

    /// Serves Foxglove, if the deployment says so, before the networks are joined.
    pub(super) fn serve_foxglove(&self, deployment: &Deployment) -> Result<Option<FoxgloveServer>, u8> {
        let Some(settings) = &deployment.foxglove else { return Ok(None) };
        let refused = |why: &str| refuse(&format!("--foxglove: {why}"), exit::USAGE);
        if !IS_AVAILABLE {
            return Err(refuse(UNAVAILABLE, exit::USAGE));
        }
        if deployment.synchronized.is_some() {
            return Err(refused("a synchronizer has no verdicts to show"));
        }
        if deployment.emit == Emit::Violations {
            return Err(refused(&format!(
                "Foxglove would show {NEVER_END}: use --emit change, or leave it out"
            )));
        }
        settings.check().map_err(|why| refused(&why))?;
        start(settings)
    }
}

#[cfg(feature = "foxglove")]
fn start(settings: &FoxgloveSettings) -> Result<Option<FoxgloveServer>, u8> {
    FoxgloveServer::start(settings).map(Some).map_err(|why| refuse(&why, exit::USAGE))
}

/// Does nothing: a build without the server has refused it.
#[cfg(not(feature = "foxglove"))]
fn start(_: &FoxgloveSettings) -> Result<Option<FoxgloveServer>, u8> {
    Ok(None)
}
