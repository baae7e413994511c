//! `rondel run`: a specification against a live network.

mod destinations;
mod foxglove;
mod measuring;
mod page;
mod reloading;
mod short_form;

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock, mpsc};
use std::time::{Duration, Instant};

use clap::Args;
use rondel_event::TopicId;
use rondel_net::durability::Schedule;
use rondel_recording::durable;
use rondel_runtime::{Session, SessionPlan};
use serde_json::json;

use super::from_deployment;
use crate::deployment::{
    self, Address, Binding, Deployment, Durability, FlightSettings, MetricsSettings, PREFER, listen_address,
    page_address,
};
use crate::live::audited;
use crate::live::discover;
use crate::live::foxglove::FoxgloveServer;
use crate::live::metrics::Pusher;
use crate::live::networks::{self, NetworkArguments, Networks};
use crate::live::page::PageServer;
use crate::live::page::temporary::TemporaryStore;
use crate::live::pipeline::{self, Simulated, Stop};
use crate::live::resume;
use crate::live::running::{END_WITHIN, Options, RunSummary, Running};
use crate::live::service::Manager;
use crate::live::signals::{End, StopFlag};
use crate::output::summary::status;
use crate::output::{Emit, Format};
use crate::sinks::actions::{ActionSettings, NOT_ALLOWED, PROGRAMS, PROGRAMS_TEXT};
use crate::sinks::audit::{Audit, AuditSettings, AuditSummary, OnError, Opened};
use crate::sinks::spool::Spools;
use crate::specification::{Reading, is_deployment};
use crate::{complain, exit, say, warn};
use measuring::run_state;
use reloading::{Active, Serving};

/// Time limit at the end for the last lines of the audit file.
const AUDIT_END: Duration = Duration::from_secs(2);

/// Check a live network and publish verdicts
///
/// Reads a deployment file (rondel.yaml), or in short form --topic and --publish. SIGINT and SIGTERM end
/// the run gracefully: it checks everything that was received and prints a summary. The exit status is
/// then 0, whatever the verdicts, which were published, unless --strict is given.
#[derive(Debug, Args)]
pub struct Run {
    /// The deployment (.yaml), or in short form a specification
    #[arg(value_name = "FILE")]
    file: Option<PathBuf>,
    /// One formula instead of a specification file
    #[arg(short, long, value_name = "FORMULA", conflicts_with = "file", allow_hyphen_values = true)]
    formula: Option<String>,
    #[command(flatten)]
    reading: Reading,
    /// The source of a topic: zenoh:KEY, dds:TOPIC or mqtt:TOPIC; with several topics NAME=zenoh:KEY
    #[arg(short, long, value_name = "ADDRESS")]
    topic: Vec<String>,
    /// The sink of verdicts: zenoh:KEY, dds:TOPIC, mqtt:TOPIC or stdout; with several properties each has
    /// its own topic below it. With a deployment only stdout, which prints verdicts beside its sinks
    #[arg(short, long, value_name = "ADDRESS")]
    publish: Vec<String>,
    /// The verdicts to publish (default: change)
    #[arg(short, long, value_enum)]
    emit: Option<Emit>,
    /// The time of an event: arrival, source, or a field of the message
    #[arg(long, value_name = "WHICH", default_value = "arrival")]
    time_from: String,
    /// The unit of times in messages that are plain numbers
    #[arg(long, value_name = "UNIT", default_value = "s", value_parser = ["s", "ms", "us", "ns"])]
    time_unit: String,
    /// The format of verdicts on standard output
    #[arg(long, value_enum, default_value = "text")]
    format: Format,
    /// Explain each violation: show the values that caused it
    #[arg(long)]
    explain: bool,
    /// Evaluate bursts of messages with N threads besides those that receive them, or with as many as there are cores
    /// (auto), with the same verdicts (default: the deployment's, else 1, the thread that receives them)
    #[arg(long, value_name = "N|auto", value_parser = deployment::workers)]
    workers: Option<usize>,
    /// Stop after N messages
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    count: Option<u64>,
    /// Resume from a snapshot; start from the beginning if there is none yet
    #[arg(long, value_name = "FILE")]
    resume: Option<PathBuf>,
    /// Write a snapshot to this file from time to time and at the end, and leave pending obligations open
    /// for the next run
    #[arg(long, value_name = "FILE")]
    snapshot_to: Option<PathBuf>,
    /// The time between snapshots in seconds
    #[arg(long, value_name = "SECONDS", default_value_t = 60, requires = "snapshot_to", value_parser = clap::value_parser!(u64).range(1..=86_400))]
    snapshot_every: u64,
    /// Record start, verdicts, signals and end in this file, in lines that `rondel audit verify` checks; replaces the
    /// file of the deployment
    #[arg(long, value_name = "FILE")]
    audit: Option<PathBuf>,
    /// Reaction to an audit file that cannot be written (default: the deployment's, else stop)
    #[arg(long, value_enum, value_name = "REACTION")]
    audit_on_error: Option<OnError>,
    /// Keep verdicts in this file, a store of SQLite that `rondel query` reads; replaces the file of the deployment
    #[arg(long, value_name = "FILE")]
    store: Option<PathBuf>,
    /// Run the programs of `actions`, up to N at once; without it, a deployment with programs does not start
    #[arg(long, value_name = "N", num_args = 0..=1, require_equals = true, default_missing_value = PROGRAMS_TEXT, value_parser = clap::value_parser!(u16).range(1..=64))]
    allow_run: Option<u16>,
    /// In a `group`, take over before members with a smaller number (default: `prefer` of the group)
    #[arg(long, value_name = "N", allow_negative_numbers = true, value_parser = clap::value_parser!(i64).range(-PREFER..=PREFER))]
    prefer: Option<i64>,
    /// Wait up to SECONDS for subscribers on every verdict topic before processing messages
    #[arg(long, value_name = "SECONDS", default_value_t = 0, value_parser = clap::value_parser!(u64).range(..=86_400))]
    wait_subscribers: u64,
    /// Serve metrics for Prometheus and probes of the health of the run over HTTP on this address, such as
    /// 127.0.0.1:9464
    #[arg(long, value_name = "ADDRESS", value_parser = listen_address)]
    metrics: Option<SocketAddr>,
    /// Serve the page of the run over HTTP on this address, such as 127.0.0.1:8080
    #[arg(long, value_name = "ADDRESS", value_parser = page_address)]
    page: Option<SocketAddr>,
    /// A file with the token that requests for the page carry; needed unless the address is one of this machine alone
    #[arg(long, value_name = "FILE", requires = "page")]
    page_token_file: Option<PathBuf>,
    /// Serve verdicts, states and signals for the Foxglove application over WebSocket on this address, such as
    /// 127.0.0.1:8765
    #[arg(long, value_name = "ADDRESS", value_parser = page_address)]
    foxglove: Option<SocketAddr>,
    /// A file with the token that clients of Foxglove send; needed unless the address is one of this machine alone
    #[arg(long, value_name = "FILE", requires = "foxglove")]
    foxglove_token_file: Option<PathBuf>,
    /// The store of a run with a page that keeps none.
    #[arg(skip)]
    page_store: OnceLock<TemporaryStore>,
    /// Do not listen for `rondel reload`; SIGHUP still reloads the deployment
    #[arg(long)]
    no_control: bool,
    /// End within SECONDS after SIGINT or SIGTERM: check the received messages, and deliver their verdicts
    #[arg(long, value_name = "SECONDS", default_value_t = END_WITHIN.as_secs(), value_parser = clap::value_parser!(u64).range(2..=600))]
    stop_timeout: u64,
    /// Exit with the status that `rondel check --strict` has: 1 after a violation, 4 if a property was not
    /// decided or is vacuous
    #[arg(long)]
    strict: bool,
    /// The format of the closing summary on standard error
    #[arg(long, value_enum, default_value = "text")]
    summary: Format,
    #[command(flatten)]
    network: NetworkArguments,
}

impl Run {
    /// Runs until a signal or the wanted number of messages, and returns the exit status.
    pub fn run(self) -> u8 {
        let started = Instant::now();
        let deployment = self.deployment().map(|deployment| self.measured(deployment));
        let ended = deployment.and_then(|deployment| self.run_deployment(deployment, started));
        ended.unwrap_or_else(|status| status)
    }

    /// Returns the deployment with the metrics, the page, the server for Foxglove and the workers of the options.
    fn measured(&self, mut deployment: Deployment) -> Deployment {
        self.add_page(&mut deployment);
        self.add_foxglove(&mut deployment);
        deployment.workers = self.workers.or(deployment.workers);
        if let Some(listen) = self.metrics {
            let settings = deployment.metrics.take().unwrap_or_default();
            deployment.metrics = Some(MetricsSettings { listen: Some(listen), ..settings });
        }
        deployment
    }

    /// The session: a new one, or one that continues from a snapshot.
    fn session(&self, plan: &SessionPlan, exactly: bool) -> Result<Session, String> {
        // Without the state, messages that are repeated would count as new.
        match self.resume.as_ref().or(self.snapshot_to.as_ref().filter(|_| exactly)) {
            Some(file) if matches!(file.try_exists(), Ok(false)) => {
                let other = self.snapshot_to.as_ref().filter(|to| *to != file && to.exists());
                if let Some(other) = other {
                    return Err(format!(
                        "the snapshot {} does not exist, and {} would be replaced: name it in --resume, or remove it",
                        file.display(),
                        other.display()
                    ));
                }
                warn(&format!(
                    "the snapshot {} does not exist yet: starting from the beginning",
                    file.display()
                ));
            }
            Some(file) => return resume::restore(file, plan, ""),
            None => {}
        }
        plan.start().map_err(|error| error.to_string())
    }

    /// The snapshots to write.
    fn schedule(&self, deployment: &Deployment) -> Result<Option<(PathBuf, Schedule)>, &'static str> {
        if deployment.consumer_group().is_some() {
            return match (&self.resume, &self.snapshot_to) {
                (None, None) => Ok(None),
                _ => Err(
                    "the member of a group has its states in the folder `state`: leave --resume and --snapshot-to out",
                ),
            };
        }
        let (every, exactly) = match (deployment.durability, &self.snapshot_to) {
            (Some(Durability::None), Some(_)) => {
                return Err("`durability: none` writes no snapshots: leave --snapshot-to out");
            }
            (Some(Durability::Snapshot | Durability::Exactly(_)), None) => {
                return Err(
                    "`durability` of the deployment needs a file for snapshots: add --snapshot-to FILE",
                );
            }
            (Some(Durability::Exactly(every)), _) => (every, true),
            _ => (Duration::from_secs(self.snapshot_every), false),
        };
        Ok(self.snapshot_to.clone().map(|file| (file, Schedule { every, exactly })))
    }

    /// The file of the deployment; `None` in short form.
    fn deployment_file(&self) -> Option<PathBuf> {
        let short = self.formula.is_some() || !self.topic.is_empty() || !self.publish.is_empty();
        match &self.file {
            Some(file) if is_deployment(file) => Some(file.clone()),
            None if !short => Some(deployment::default_file()),
            _ => None,
        }
    }

    fn deployment(&self) -> Result<Deployment, u8> {
        match self.deployment_file() {
            Some(file) => {
                let given = [
                    (self.formula.is_some(), "--formula"),
                    (!self.topic.is_empty(), "--topic"),
                    (self.publish.iter().any(|sink| sink != "stdout"), "--publish"),
                    (self.time_from != "arrival", "--time-from"),
                    (self.time_unit != "s", "--time-unit"),
                ];
                let given = given.into_iter().chain(self.reading.given()).chain(self.network.given());
                from_deployment("run", given).map_err(|why| {
                    complain(&why);
                    exit::USAGE
                })?;
                let mut deployment = Deployment::from_file(&file).map_err(|_| exit::USAGE)?;
                deployment.exit_on_unreachable |= self.network.exit_on_unreachable;
                deployment.emit = self.emit.map_or(deployment.emit, Into::into);
                if !self.publish.is_empty() {
                    deployment.print_verdicts();
                }
                self.emitting(deployment)
            }
            None => self.short_form().and_then(|deployment| self.emitting(deployment)),
        }
        .and_then(|deployment| self.preferring(deployment))
    }

    /// Returns the deployment with the preference of the options.
    fn preferring(&self, mut deployment: Deployment) -> Result<Deployment, u8> {
        match (&mut deployment.group, self.prefer) {
            (_, None) => {}
            (Some(group), Some(prefer)) => group.prefer = prefer,
            (None, Some(_)) => {
                return Err(refuse("--prefer is that of a member of a group: add `group`", exit::USAGE));
            }
        }
        Ok(deployment)
    }

    /// Refuses sinks that cannot show what the options emit.
    fn emitting(&self, deployment: Deployment) -> Result<Deployment, u8> {
        match deployment::check_emit(deployment.emit, &deployment.sinks) {
            Ok(()) => Ok(deployment),
            Err(why) => {
                complain(&format!(
                    "--emit violations: {}",
                    why.replace("write `emit: change`", "use --emit change")
                ));
                Err(exit::USAGE)
            }
        }
    }

    /// Resolves the types of topics, and runs until the end.
    #[expect(clippy::too_many_lines, reason = "each part of a run is checked or opened once, in this order")]
    fn run_deployment(&self, mut current: Deployment, started: Instant) -> Result<u8, u8> {
        let (End { stop, stopped, interrupted }, requester, requests) =
            End::or_reload().map_err(|error| refuse(&error, exit::USAGE))?;
        self.check_actions(&current)?;
        self.set_store(&mut current)?;
        check_divided(&current)?;
        // Before the networks are joined, which may take long.
        let manager = Manager::from_environment();
        let state = (current.metrics.is_some() || current.page.is_some() || manager.is_some())
            .then(|| Arc::new(run_state(current.metrics.as_ref())));
        let (_server, pusher) = self.publish_metrics(&current, state.as_ref())?;
        let page = self.serve_page(&current, state.as_ref())?;
        let foxglove = self.serve_foxglove(&current)?;
        let service = manager.zip(state.clone()).and_then(|(manager, state)| manager.inform(state));
        let read = current.sources.clone();
        discover::types(&mut current, &interrupted)?;
        let deployment = &current;
        self.check_simulated(deployment)?;
        let (clock, simulation) = pipeline::clock(deployment.clock.is_some());
        let plan = self.plan(deployment, &clock);
        let schedule = self.schedule(deployment).map_err(|error| refuse(error, exit::USAGE))?;
        if schedule.is_none() && takes_what_was_kept(deployment) {
            warn(
                "`clean_start: false` without --snapshot-to: what the broker kept is taken by this run, and is missing in a \
                 later run that resumes from an earlier snapshot, without a warning there",
            );
        }
        let exact = schedule.as_ref().filter(|(_, schedule)| schedule.exactly);
        let exact = exact.map(|(file, _)| file.as_path());
        let mut session =
            self.session(&plan, exact.is_some()).map_err(|error| refuse(&error, exit::USAGE))?;
        if let Some(Err(error)) = deployment.record.as_ref().map(FlightSettings::check) {
            return Err(refuse(&error, exit::TRACE));
        }
        let spools = Spools::open(deployment.spool.as_ref(), deployment.sink_addresses())
            .map_err(|error| refuse(&error, exit::TRACE))?;
        let audit = self.open_audit(deployment)?;
        let destinations = self.open_destinations(deployment)?;
        // Without a snapshot, steps and ids begin at the beginning.
        let resumes = self.resume.as_deref().or(exact).is_some_and(Path::exists);
        let networks = join(deployment, &mut session, exact, &interrupted)?;
        let audit = audit.map(|opened| self.start_audit(opened, deployment, exact, &stop)).transpose()?;
        audit.iter().for_each(|audit| destinations.record_actions(audit));
        let feed = destinations::begin(&destinations, deployment, &plan, resumes);
        let options = Options {
            format: self.format,
            colour: crate::output::terminal::colours_stdout(),
            snapshots: schedule,
            count: self.count,
            wait_subscribers: Duration::from_secs(self.wait_subscribers),
            stop,
            spools,
            audit: audit.clone(),
            destinations,
            feed,
            screen: None,
            simulated: simulation.map(|simulation| Simulated::new(simulation, Arc::clone(&plan))),
            metrics: state,
            tap: page.as_ref().map(PageServer::tap),
            copies: foxglove.as_ref().map(FoxgloveServer::copies),
            read,
            end_within: Duration::from_secs(self.stop_timeout),
            programs: self.allow_run.map_or(PROGRAMS, usize::from),
            resumes,
        };
        let running =
            Running::start(deployment, &plan, session, Arc::clone(&clock), networks, options, &interrupted)
                .map_err(|error| {
                end_audit(audit.as_deref(), "not started", None);
                networks::failed(error)
            })?;
        if let Some(page) = &page {
            page.watch(&running, deployment);
        }
        if let Some(foxglove) = &foxglove {
            foxglove.watch(&running, deployment);
        }
        let control = self.control(&requester, deployment);
        say(&format!("ready after {} ms{}", started.elapsed().as_millis(), discover::read_now(deployment)));
        let mut active = Active { deployment: current, running, clock };
        let serving = Serving {
            stopped: &stopped,
            requests: &requests,
            requester: &requester,
            service: service.as_ref(),
            audit: audit.as_deref(),
            page: page.as_ref(),
            foxglove: foxglove.as_ref(),
        };
        let why = self.serve(&mut active, &serving);
        drop((control, page, foxglove));
        let running = active.running;
        if let Some(service) = &service {
            service.stopping();
        }
        Ok(self.end(running, why, audit.as_deref(), pusher, &interrupted))
    }

    /// Ends a run, prints its summary, and returns the exit status.
    fn end(
        &self,
        running: Running,
        why: Stop,
        audit: Option<&Audit>,
        pusher: Option<Pusher>,
        interrupted: &StopFlag,
    ) -> u8 {
        let reason = match why {
            Stop::Requested | Stop::Reload => "signal",
            Stop::Count => "count",
            Stop::Unaudited => "audit",
            Stop::GivenUp => "network",
            Stop::Failed => "worker",
        };
        if let Some((audit, signal)) = audit.zip(interrupted.signal()) {
            audit.record("operator", &json!({"action": "stop", "signal": signal}));
        }
        let Some(mut summary) = running.end(why) else {
            end_audit(audit, "blocked", None);
            complain("a subscriber of the verdicts does not accept them: the last verdicts are lost");
            // Dropping the publishers would wait for this subscriber again.
            std::process::exit(i32::from(exit::NETWORK));
        };
        if self.page_store.get().is_some() {
            summary.leave_store_out();
        }
        summary.audit = end_audit(audit, reason, Some(&summary));
        summary.pushes = pusher.and_then(Pusher::end);
        say(&match self.summary {
            Format::Json => summary.json(),
            Format::Text => summary.text(crate::output::terminal::colours_stderr()),
        });
        self.exit_status(&summary, why)
    }

    /// Refuses programs that are not allowed, and actions on verdicts that are not emitted.
    fn check_actions(&self, deployment: &Deployment) -> Result<(), u8> {
        if self.allow_run.is_none() && deployment.actions.iter().any(ActionSettings::runs) {
            return Err(refuse(NOT_ALLOWED, exit::USAGE));
        }
        deployment::check_actions(deployment.emit, &deployment.actions)
            .map_err(|why| refuse(&format!("--emit violations: {why}"), exit::USAGE))
    }

    /// Refuses snapshots in simulation time, and warns of what a recording does there.
    fn check_simulated(&self, deployment: &Deployment) -> Result<(), u8> {
        if deployment.clock.is_none() {
            return Ok(());
        }
        if self.resume.is_some() || self.snapshot_to.is_some() {
            return Err(refuse(
                "with `use_sim_time`, a run cannot continue from a snapshot: leave --resume and --snapshot-to out",
                exit::USAGE,
            ));
        }
        if deployment.record.is_some() {
            warn(
                "with `use_sim_time`, `before` and `after` of `record` are times of this machine, as are log times",
            );
        }
        Ok(())
    }

    /// Opens the audit file, if there is one.
    fn open_audit(&self, deployment: &Deployment) -> Result<Option<Opened>, u8> {
        let own = self.audit.as_ref().map(|file| match &deployment.audit {
            Some(settings) => AuditSettings { file: file.clone(), ..settings.clone() },
            None => AuditSettings::of(file.clone()),
        });
        let Some(mut settings) = own.or_else(|| deployment.audit.clone()) else {
            return match self.audit_on_error {
                Some(_) => Err(refuse("--audit-on-error needs a file: add --audit FILE", exit::USAGE)),
                None => Ok(None),
            };
        };
        settings.on_error = self.audit_on_error.unwrap_or(settings.on_error);
        Opened::open(settings).map(Some).map_err(|error| refuse(&error, exit::TRACE))
    }

    /// Writes the first line of the run into the audit file.
    fn start_audit(
        &self,
        opened: Opened,
        deployment: &Deployment,
        exact: Option<&Path>,
        stop: &mpsc::Sender<Stop>,
    ) -> Result<Arc<Audit>, u8> {
        let resumed = self.resume.as_deref().or(exact);
        let stop = stop.clone();
        // The receiver is gone when the run is ending already.
        let on_failure = move || _ = stop.send(Stop::Unaudited);
        opened
            .start(&audited::start(deployment, resumed), on_failure)
            .map_err(|error| refuse(&error, exit::TRACE))
    }

    /// The path that names a run: of its deployment, or of its specification.
    fn named_by(&self, deployment: &Deployment) -> PathBuf {
        let specification = || PathBuf::from(&deployment.specification.source);
        self.deployment_file().or_else(|| self.file.clone()).unwrap_or_else(specification)
    }

    /// The exit status of a run that ended for this reason.
    fn exit_status(&self, summary: &RunSummary, why: Stop) -> u8 {
        if let Some(cause) = &summary.failure {
            complain(&format!("a worker has panicked, and the run has ended without its state: {cause}"));
        }
        if let Err(error) = &summary.kept {
            complain(&format!("cannot write the last snapshot: {error}"));
            exit::TRACE
        } else if summary.failure.is_some()
            || why == Stop::Unaudited
            || summary.audit.as_ref().is_some_and(|audit| !audit.is_complete())
        {
            exit::TRACE
        } else if !summary.is_complete() || why == Stop::GivenUp {
            exit::NETWORK
        } else if self.strict {
            match status(&summary.summary, true) {
                _ if summary.past.is_violated() => exit::VIOLATED,
                // Messages sent during an interruption are unknown.
                exit::SATISFIED if summary.was_cut_off() || summary.stood() => exit::INCONCLUSIVE,
                status => status,
            }
        } else {
            exit::SATISFIED
        }
    }
}

/// Shows why nothing runs, and returns the exit status.
fn refuse(why: &str, status: u8) -> u8 {
    complain(why);
    status
}

/// Refuses options that the member of a consumer group cannot have. Its deployment was checked when it was read.
fn check_divided(deployment: &Deployment) -> Result<(), u8> {
    let is_member = deployment.consumer_group().is_some();
    match deployment::undividable(deployment).next().filter(|_| is_member) {
        Some(name) => Err(refuse(&format!("--{name} {}", deployment::UNDIVIDABLE), exit::USAGE)),
        None => Ok(()),
    }
}

/// Joins the networks of a deployment. With `exact`, the file for snapshots, messages are acknowledged only once a
/// snapshot contains them.
fn join(
    deployment: &Deployment,
    session: &mut Session,
    exact: Option<&Path>,
    interrupted: &StopFlag,
) -> Result<Networks, u8> {
    let mut settings = deployment.networks.clone();
    if let Some(file) = exact {
        // Before a message is taken that could not be acknowledged.
        if let Err(error) = durable::replace(file, &session.snapshot("")) {
            let why = format!("cannot write the snapshot {}: {error}", file.display());
            return Err(refuse(&why, exit::TRACE));
        }
        settings.hold(session.attachment());
    } else {
        settings.go_on(session.attachment());
    }
    let networks = networks::open(&settings, deployment.exit_on_unreachable, interrupted)?;
    networks::show_listeners(&networks);
    // Without holding back, messages that were acknowledged after the snapshot are not repeated. The offsets of Kafka are
    // in the snapshot.
    let kept = |(_, binding): &(u32, &Binding)| {
        let is_repeated = matches!(binding.address, Address::Kafka(..));
        (exact.is_some() || session.continues_whole() || is_repeated) && networks.kept(&binding.address)
    };
    let kept: Vec<TopicId> =
        (0..).zip(&deployment.sources).filter(kept).map(|(topic, _)| TopicId(topic)).collect();
    session.resumed(&kept);
    Ok(networks)
}

/// Whether a run takes messages that an MQTT broker has kept for the next run.
fn takes_what_was_kept(deployment: &Deployment) -> bool {
    let keeps = deployment.networks.mqtt.as_ref().is_some_and(|mqtt| !mqtt.settings.clean_start);
    keeps && deployment.sources.iter().any(|binding| matches!(binding.address, Address::Mqtt(..)))
}

/// Writes the last line of a run into its audit file.
fn end_audit(audit: Option<&Audit>, reason: &str, summary: Option<&RunSummary>) -> Option<AuditSummary> {
    audit.map(|audit| audit.end(&audited::stop(reason, summary), AUDIT_END))
}
