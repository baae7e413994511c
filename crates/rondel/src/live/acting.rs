//! The start of the actions of a run: a client or a publisher for each.

use std::sync::Arc;

use rondel_net::adapter::Publisher;
use rondel_runtime::{SessionPlan, SystemClock};

use crate::deployment::Deployment;
use crate::live::networks::Networks;
use crate::sinks::actions::{Act, ActionFeed, ActionSettings, Actions, Start, Target};
use crate::sinks::audit::Audit;
use crate::sinks::silenced::Silenced;

/// The actions of a run, with the publishers of their messages.
pub struct Acting {
    /// The actions.
    pub actions: Actions,
    /// The publishers, to be flushed at the end.
    pub publishers: Vec<Arc<dyn Publisher>>,
}

/// Starts the actions of a deployment, if it has any; up to `programs` programs run at once.
///
/// # Errors
/// The service that cannot be called, or the thread that cannot be started, and the reason.
pub fn start(
    deployment: &Deployment,
    plan: &SessionPlan,
    networks: &Networks,
    publishers: Vec<Option<Arc<dyn Publisher>>>,
    silenced: Silenced,
    audit: Option<Arc<Audit>>,
    programs: usize,
) -> Result<Option<(Acting, ActionFeed)>, String> {
    if deployment.actions.is_empty() {
        return Ok(None);
    }
    let target = |(action, publisher): (&ActionSettings, &Option<Arc<dyn Publisher>>)| match &action.act {
        Act::Publish(_) => Ok(publisher.clone().map_or(Target::Program, Target::Publisher)),
        Act::Run(_) => Ok(Target::Program),
        Act::Call(act) => networks.service_client(&act.service).map(Target::Service),
    };
    let targets = deployment.actions.iter().zip(&publishers).map(target).collect::<Result<_, String>>()?;
    let start = Start {
        settings: &deployment.actions,
        targets,
        properties: plan.properties(),
        emit: deployment.emit,
        // The limits hold for the time of this machine, also in a simulation.
        clock: Arc::new(SystemClock),
        silenced,
        audit,
        programs,
    };
    let (actions, feed) = Actions::start(start).map_err(|error| format!("cannot start a thread: {error}"))?;
    let publishers = publishers.into_iter().flatten().collect();
    Ok(Some((Acting { actions, publishers }, feed)))
}
