//! Reloads of a run: on SIGHUP, by `rondel reload`, and when a file has changed.

use std::path::PathBuf;
use std::sync::{Arc, mpsc};

use rondel_runtime::{Clock, SessionPlan};

use super::Run;
use super::destinations::begin;
use crate::deployment::{self, Deployment, Durability};
use crate::live::audited;
use crate::live::foxglove::FoxgloveServer;
use crate::live::page::PageServer;
use crate::live::pipeline::Stop;
use crate::live::reload::control::Control;
use crate::live::reload::outcome::{Changes, Outcome};
use crate::live::reload::requests::{Cause, Requester, Requests};
use crate::live::reload::watch::{Watch, WatchedFile};
use crate::live::running::{Renewal, Running};
use crate::live::service::Service;
use crate::output::VerdictWriter;
use crate::output::terminal::{colours_stdout, kept_lines};
use crate::schemas::text_files::of_regular_files;
use crate::sinks::audit::Audit;
use crate::{complain, say, warn};

/// A run with its present deployment.
pub(super) struct Active {
    pub(super) deployment: Deployment,
    pub(super) running: Running,
    pub(super) clock: Arc<dyn Clock>,
}

/// The channels of the main thread, the service manager, the audit file and the servers of a run.
pub(super) struct Serving<'s> {
    pub(super) stopped: &'s mpsc::Receiver<Stop>,
    pub(super) requests: &'s Requests,
    pub(super) requester: &'s Requester,
    pub(super) service: Option<&'s Service>,
    pub(super) audit: Option<&'s Audit>,
    pub(super) page: Option<&'s PageServer>,
    pub(super) foxglove: Option<&'s FoxgloveServer>,
}

/// The reasons have been shown.
struct Refused;

impl Run {
    /// The file that names the run for `rondel reload`; `None` for one formula, and for standard input.
    fn reloaded_file(&self) -> Option<PathBuf> {
        let file = self.deployment_file().or_else(|| self.file.clone());
        file.filter(|file| file.as_os_str() != "-")
    }

    /// Listens for `rondel reload`, unless the options forbid it. A socket that cannot be made is reported.
    pub(super) fn control(&self, requester: &Requester, deployment: &Deployment) -> Option<Control> {
        let file = self.reloaded_file().filter(|_| !self.no_control)?;
        let control = Control::listen(&file, requester.clone());
        // Members of a group may have one file, and refuse to be reloaded.
        let is_member = deployment.group.is_some() || deployment.consumer_group().is_some();
        let report = |error| {
            if !is_member {
                warn(&format!("`rondel reload` cannot reach this run: {error}"));
            }
        };
        control.map_err(report).ok()
    }

    /// Waits for the end of a run, and carries out reloads meanwhile. Returns the reason for the end.
    pub(super) fn serve(&self, active: &mut Active, serving: &Serving<'_>) -> Stop {
        let mut watch = Watch::new(self.watched(&active.deployment));
        loop {
            let why = active.running.wait(serving.stopped, || {
                if watch.has_changed() {
                    serving.requester.request(Cause::File);
                }
            });
            if why != Stop::Reload {
                return why;
            }
            serving.requests.carry_out(|cause| self.reload(active, cause, serving));
            watch.set_files(self.watched(&active.deployment));
        }
    }

    /// The files whose changes reload the run; none without `reload: watch`.
    fn watched(&self, deployment: &Deployment) -> Vec<WatchedFile> {
        if !deployment.watch {
            return Vec::new();
        }
        let text = deployment.text.as_ref().map_or("", |(_, text)| text);
        let own = self.deployment_file().map(|file| WatchedFile::new(file, text));
        let specification = &deployment.specification;
        let files = specification.sources.files().filter(|_| !specification.is_formula);
        own.into_iter().chain(files.map(|(path, text)| WatchedFile::new(path.to_owned(), text))).collect()
    }

    /// Reloads, and shows, reports and counts the outcome.
    fn reload(&self, active: &mut Active, cause: Cause, serving: &Serving<'_>) -> Outcome {
        if let Some(service) = serving.service {
            service.reloading(false);
        }
        let (renewed, lines) = kept_lines(|| self.renew(active));
        let outcome = match renewed {
            Ok(changes) => Outcome::done(changes, lines),
            Err(Refused) => Outcome::refused(lines),
        };
        active.running.reloads().add(outcome.is_done());
        outcome.lines().iter().for_each(|line| say(line));
        if outcome.is_done() {
            if let Some(page) = serving.page {
                page.watch(&active.running, &active.deployment);
            }
            if let Some(foxglove) = serving.foxglove {
                foxglove.watch(&active.running, &active.deployment);
            }
            say(&outcome.sentence());
        } else {
            complain(&outcome.sentence());
        }
        active.running.report(&outcome.notice(cause));
        if let Some(audit) = serving.audit {
            audit.record("reload", &audited::reload(&active.deployment, &outcome, cause));
        }
        if let Some(service) = serving.service {
            service.reloading(true);
        }
        outcome
    }

    /// Reads and checks the files as at the start, and exchanges the deployment.
    fn renew(&self, active: &mut Active) -> Result<Changes, Refused> {
        if self.file.as_ref().is_some_and(|file| file.as_os_str() == "-") {
            complain("the specification came from standard input, which cannot be read again");
            return Err(Refused);
        }
        let after = of_regular_files(|| self.deployment()).map(|deployment| self.measured(deployment));
        let mut after = after.map_err(|_| Refused)?;
        self.check_actions(&after).map_err(|_| Refused)?;
        self.set_store(&mut after).map_err(|_| Refused)?;
        let reasons = unchangeable(&active.deployment, &after);
        if !reasons.is_empty() {
            reasons.iter().for_each(|reason| complain(reason));
            return Err(Refused);
        }
        if active.running.has_same_files(&active.deployment, &after) {
            let properties = after.specification.spec.properties.iter();
            let kept = properties.map(|property| property.name.clone()).collect();
            return Ok(Changes { kept, ..Changes::default() });
        }
        let read = after.sources.clone();
        active.running.adopt_types(&mut active.deployment, &mut after);
        let plan = self.plan(&after, &active.clock);
        let renewal = Renewal {
            before: &active.deployment,
            after: &after,
            read,
            plan: &plan,
            writer: VerdictWriter::new(plan.properties(), self.format, colours_stdout()),
        };
        let renewed = active.running.renew(renewal, |all| begin(all, &after, &plan, true));
        if renewed.is_ok() {
            active.deployment = after;
        }
        active.running.find_types(&active.deployment);
        renewed.map_err(|why| {
            complain(&why);
            Refused
        })
    }

    /// The plan of the sessions of a deployment. Warns of properties that its messages cannot decide.
    pub(super) fn plan(&self, deployment: &Deployment, clock: &Arc<dyn Clock>) -> Arc<SessionPlan> {
        let mut plan = deployment.plan(rondel_runtime::Options {
            // Values in actions are those of explanations.
            explain: self.explain || deployment.actions.iter().any(|action| action.explains),
            missing_after: deployment.missing_after,
            clock: Arc::clone(clock),
            live: true,
            ..rondel_runtime::Options::default()
        });
        if let Some(workers) = deployment.workers {
            let set = match self.workers {
                Some(_) => format!("--workers {workers}"),
                None => format!("`workers: {workers}`"),
            };
            if let Err(error) = deployment::divide(&mut plan, workers, &set) {
                warn(&format!("{set}: one thread evaluates all messages, as {error}"));
            }
        }
        plan.mixtures().iter().chain(&plan.undecidable()).for_each(|sentence| warn(sentence));
        Arc::new(plan)
    }
}

/// Returns the reasons why a deployment cannot replace another while it runs, with their places.
fn unchangeable(before: &Deployment, after: &Deployment) -> Vec<String> {
    if before.clock.is_some() {
        return vec!["a run with `use_sim_time` cannot be reloaded: restart it".to_owned()];
    }
    if !before.gates.is_empty() {
        return vec!["a run with `gates` cannot be reloaded, as they must not stop: restart it".to_owned()];
    }
    if before.group.is_some() {
        let why =
            "a member of a group cannot be reloaded: hand over by `rondel standby promote`, and restart it";
        return vec![why.to_owned()];
    }
    if before.consumer_group().is_some() || after.consumer_group().is_some() {
        return vec![
            "the member of a group cannot be reloaded, as its partitions have states each: restart it"
                .to_owned(),
        ];
    }
    if before.synchronized.is_some() || after.synchronized.is_some() {
        return vec!["a synchronizer cannot be reloaded: restart it".to_owned()];
    }
    let texts = before.text.as_ref().zip(after.text.as_ref());
    let mut reasons: Vec<String> = texts.map_or_else(Vec::new, |((_, before), (name, after))| {
        let mut mistakes = deployment::unchangeable(before, after);
        mistakes.sort_by_key(|mistake| (mistake.line, mistake.column));
        let place = |mistake: &deployment::Mistake| {
            format!("{name}:{}:{}: {}", mistake.line, mistake.column, mistake.message)
        };
        mistakes.iter().map(place).collect()
    });
    if let Some(network) = deployment::further_network(&before.networks, &after.networks) {
        reasons
            .push(format!("an address is on {network}, which the run has not joined: restart to apply it"));
    }
    if matches!(before.durability, Some(Durability::Exactly(_))) {
        let known: Vec<_> = before.sinks.iter().flatten().collect();
        let further = after.sinks.iter().flatten().find(|address| !known.contains(address));
        reasons.extend(further.map(|address| {
            format!("with `durability: exactly`, no verdicts can be added on {address}: restart to apply it")
        }));
    }
    reasons
}
