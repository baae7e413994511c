//! `rondel gate-guard`: passes the messages of gates on while the monitor is gone.

use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, mpsc};
use std::time::Duration;

use clap::Args;
use rondel_event::TopicId;
use rondel_net::adapter::{PublishError, Publisher, Receiver, Sample, Subscription};
use rondel_runtime::SystemClock;
use rondel_runtime::text::counted;

use crate::deployment::{self, Deployment};
use crate::live::discover;
use crate::live::gate::Lease;
use crate::live::networks::{self, Networks};
use crate::live::pipeline::Stop;
use crate::live::reader::subscribe;
use crate::live::signals::End;
use crate::sinks::queue::FIRST;
use crate::{complain, exit, say, warn};

/// Interval of looking whether the monitor is gone or a network was given up.
const LOOK: Duration = Duration::from_millis(50);
/// Number of intervals of the heartbeat after which the monitor counts as gone, unless it is set.
const BEATS: u32 = 3;
/// Time limit for leaving the networks.
const LEAVE: Duration = Duration::from_secs(2);

/// Pass the messages of gates on while the monitor that has them is gone, so that they fail open
///
/// Follows the heartbeat of the monitor. While none comes, or after the last one, messages are passed on as they are,
/// without any check.
#[derive(Debug, Args)]
pub struct GateGuard {
    /// The deployment, with the gates and the heartbeat of the monitor
    #[arg(value_name = "FILE", default_value_os_t = deployment::default_file())]
    file: PathBuf,
    /// Take the monitor for gone after TIME without a heartbeat, such as 500ms (default: three of its intervals,
    /// in a group at least two of them and two leases)
    #[arg(long, value_name = "TIME", value_parser = time)]
    after: Option<Duration>,
}

fn time(text: &str) -> Result<Duration, &'static str> {
    let nanos = deployment::nanoseconds(text).and_then(|nanos| u64::try_from(nanos).ok());
    nanos
        .filter(|nanos| *nanos > 0)
        .map(Duration::from_nanos)
        .ok_or("must be a duration, such as 500ms or 2s")
}

/// The messages of one gate, which are passed on while the monitor is gone.
struct Passing {
    lease: Arc<Lease>,
    publisher: Box<dyn Publisher>,
    to: String,
    passed: AtomicU64,
    unpublished: AtomicU64,
    /// Whether no consumer accepted the last message.
    is_slow: AtomicBool,
}

impl Receiver for Passing {
    fn receive(&self, _: TopicId, samples: &[Sample<'_>]) {
        for sample in samples {
            if self.lease.is_gone() {
                self.pass(sample.payload);
            }
        }
    }
}

impl Passing {
    fn pass(&self, payload: &[u8]) {
        let limit = if self.is_slow.load(Ordering::Relaxed) { Duration::ZERO } else { FIRST };
        match self.publisher.offer(payload, limit) {
            Ok(()) => {
                self.is_slow.store(false, Ordering::Relaxed);
                self.passed.fetch_add(1, Ordering::Relaxed);
            }
            Err(error) => {
                self.is_slow.store(matches!(error, PublishError::Slow), Ordering::Relaxed);
                if self.unpublished.fetch_add(1, Ordering::Relaxed) == 0 {
                    warn(&format!(
                        "cannot publish a message on {}: {error}; further ones are only counted",
                        self.to
                    ));
                }
            }
        }
    }

    fn unpublished(&self) -> u64 {
        self.unpublished.load(Ordering::Relaxed)
    }

    /// One sentence.
    fn sentence(&self) -> String {
        let passed = counted(self.passed.load(Ordering::Relaxed), "message", "messages");
        let not = match self.unpublished() {
            0 => String::new(),
            count => format!(", {} not published", counted(count, "message", "messages")),
        };
        format!("gate to {}: {passed} passed on while the monitor was gone{not}", self.to)
    }
}

impl GateGuard {
    /// Passes messages on until a signal, and returns the exit status.
    pub fn run(self) -> u8 {
        self.guard().unwrap_or_else(|status| status)
    }

    fn guard(&self) -> Result<u8, u8> {
        let deployment = Deployment::from_file(&self.file).map_err(|_| exit::USAGE)?;
        let after = self.after(&deployment).map_err(|why| {
            complain(&format!("{}: {why}", self.file.display()));
            exit::USAGE
        })?;
        let end = End::on_signal().map_err(networks::failed)?;
        let networks =
            networks::open(&deployment.networks, deployment.exit_on_unreachable, &end.interrupted)?;
        let clock = Arc::new(SystemClock);
        let nanos = i64::try_from(after.as_nanos()).unwrap_or(i64::MAX);
        let lease = Arc::new(Lease::new(clock, nanos));
        let Guarded { gates, subscriptions } =
            start(&deployment, &networks, &lease).map_err(networks::failed)?;
        say(&format!(
            "ready: messages are passed on after {} ms without a heartbeat of the monitor",
            after.as_millis()
        ));
        wait(&lease, &networks, &end.stopped);
        for subscription in &subscriptions {
            subscription.close(LEAVE);
        }
        drop(subscriptions);
        for gate in &gates {
            gate.publisher.flush(LEAVE);
            say(&gate.sentence());
        }
        let is_complete = gates.iter().all(|gate| gate.unpublished() == 0);
        drop(gates);
        let is_left = networks.close_within(LEAVE);
        Ok(if is_complete && is_left { exit::SATISFIED } else { exit::NETWORK })
    }

    /// Checks the deployment, and returns the time without a heartbeat after which the monitor is gone.
    ///
    /// # Errors
    /// The missing setting of the deployment, or the wrong option.
    fn after(&self, deployment: &Deployment) -> Result<Duration, String> {
        if deployment.gates.is_empty() {
            return Err("there are no gates to guard: add `gates`".to_owned());
        }
        let heartbeat = deployment.heartbeat.as_ref().filter(|heartbeat| !heartbeat.to.is_empty());
        let Some(heartbeat) = heartbeat else {
            return Err(
                "the heartbeat shows that the monitor is there: add `heartbeat: 200 ms`, and `verdicts` \
                        on a network, which the heartbeat is published on, too"
                    .to_owned(),
            );
        };
        let open = |gate: &&deployment::GateSettings| {
            deployment.sources.get(gate.topic.index()).is_some_and(discover::is_open)
        };
        if let Some(gate) = deployment.gates.iter().find(open) {
            return Err(format!("the type of the messages to {} must be known at the start", gate.to));
        }
        let (least, parts, why) = match &deployment.group {
            None => (heartbeat.every * 2, "", "one may come late"),
            // A standby takes over after a lease, or somewhat later.
            Some(group) => (
                heartbeat.every * 2 + group.lease * 2,
                " and two leases of the group",
                "a standby takes over meanwhile",
            ),
        };
        match self.after {
            Some(after) if after < least => Err(format!(
                "--after must be at least two intervals of the heartbeat{parts}, {} ms: {why}",
                least.as_millis(),
            )),
            after => Ok(after.unwrap_or((heartbeat.every * BEATS).max(least))),
        }
    }
}

/// The gates, and the subscriptions that drive them.
struct Guarded {
    gates: Vec<Arc<Passing>>,
    subscriptions: Vec<Box<dyn Subscription>>,
}

/// Creates the publishers, and subscribes to the messages and the heartbeats.
fn start(deployment: &Deployment, networks: &Networks, lease: &Arc<Lease>) -> Result<Guarded, String> {
    let (mut gates, mut subscriptions) = (Vec::new(), Vec::new());
    for gate in &deployment.gates {
        let Some(binding) = deployment.sources.get(gate.topic.index()) else { continue };
        let publisher = networks.publisher_of(&gate.to, gate.schema.as_ref(), false)?;
        let passing = Arc::new(Passing {
            lease: Arc::clone(lease),
            publisher,
            to: gate.to.to_string(),
            passed: AtomicU64::new(0),
            unpublished: AtomicU64::new(0),
            is_slow: AtomicBool::new(false),
        });
        subscriptions.push(subscribe(networks, gate.topic, binding, Arc::clone(&passing))?);
        gates.push(passing);
    }
    for address in deployment.heartbeat.iter().flat_map(|heartbeat| &heartbeat.to) {
        let lease = Arc::clone(lease);
        let beats = move |_: TopicId, samples: &[Sample<'_>]| {
            samples.iter().for_each(|sample| lease.beat(sample.payload));
        };
        subscriptions.push(networks.subscribe(address, TopicId(u32::MAX), Arc::new(beats))?);
    }
    networks.begin();
    Ok(Guarded { gates, subscriptions })
}

/// Waits for a signal, and reports when the monitor is gone and when it is there again.
fn wait(lease: &Lease, networks: &Networks, stopped: &mpsc::Receiver<Stop>) {
    let mut was_gone = false;
    while let Err(mpsc::RecvTimeoutError::Timeout) = stopped.recv_timeout(LOOK) {
        let is_gone = lease.is_gone();
        if std::mem::replace(&mut was_gone, is_gone) != is_gone {
            warn(match is_gone {
                true => "the monitor is gone: messages are passed on unchecked",
                false => "the monitor is there: its gates decide",
            });
        }
        if let Some(reason) = networks.failure() {
            complain(&reason);
            return;
        }
    }
}
