//! The state of a run: answers to queries, and heartbeats at intervals.

use std::io;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak, mpsc};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use rondel_event::Verdict;
use rondel_net::adapter::{Publisher, Subscription, now};
use rondel_net::zenoh::{Answering, State};
use rondel_spec::Spec;
use serde_json::{Value, json};

use crate::deployment::Address;
use crate::live::gate::GateFigures;
use crate::live::losses::Undelivered;
use crate::live::networks::Networks;
use crate::live::pipeline::Pipeline;
use crate::live::reload::Reloads;
use crate::live::standby::state::GroupHandle;
use crate::live::watchdog::{Names, Stall, Watchdog};
use crate::sinks::Sink;
use crate::sinks::actions::ActionHandle;
use crate::sinks::driven::{DestinationHandle, Role};
use crate::sinks::present::Present;
use crate::sinks::spool::Spools;

/// Time limit for the evaluating thread to provide the state.
const LIMIT: Duration = Duration::from_millis(500);

/// Sources of the state of a run.
pub struct Health {
    /// The pipeline, which may be gone.
    pub pipeline: Weak<Pipeline>,
    /// The specification and its name. Locked while it is exchanged.
    pub described: Mutex<Described>,
    /// The numbers of reloads.
    pub reloads: Reloads,
    /// Messages that consumers did not accept.
    pub undelivered: Undelivered,
    /// Messages kept for them.
    pub spools: Spools,
    /// The store and other destinations beside networks.
    pub driven: Vec<DestinationHandle>,
    /// Actions on verdicts.
    pub actions: Option<ActionHandle>,
    /// The state of the member of a group, if the run is one.
    pub standby: Option<GroupHandle>,
    /// Random number of the run, if it has gates.
    pub run: Option<String>,
    /// Start of the run.
    pub began: Instant,
}

/// A specification with its name.
pub struct Described {
    /// The specification.
    pub spec: Arc<Spec>,
    /// Its name.
    pub name: String,
}

impl Health {
    /// Takes the lock of the specification.
    pub fn described(&self) -> MutexGuard<'_, Described> {
        self.described.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the state as JSON; without verdicts and message counts while the evaluating thread is stalled.
    fn json(&self) -> Value {
        let described = self.described();
        let mut state = json!({
            "time": now().as_nanos() as f64 / 1e9,
            "uptime": (self.began.elapsed().as_secs_f64() * 1e3).round() / 1e3,
            "specification": described.name,
            "reloads": self.reloads.json(),
            "process": std::process::id(),
            "undelivered": self.undelivered.count(),
            "waiting": self.spools.waiting(),
            "responsive": false,
        });
        if let Some(run) = &self.run {
            state["run"] = run.as_str().into();
        }
        let mut sinks = Vec::new();
        for driven in self.driven.iter().map(DestinationHandle::state) {
            match driven.role {
                Role::Store => state["store"] = driven.json(),
                Role::Sink => sinks.push(driven.json()),
            }
        }
        if !sinks.is_empty() {
            state["sinks"] = sinks.into();
        }
        if let Some(actions) = &self.actions {
            state["actions"] = actions.json();
        }
        if let Some(standby) = &self.standby {
            state["standby"] = standby.state().json();
        }
        let Some(pipeline) = self.pipeline.upgrade() else { return state };
        let Some((summary, traffic)) = pipeline.summary_within(LIMIT) else { return state };
        state["responsive"] = true.into();
        state["received"] = traffic.received.into();
        state["checked"] = summary.counts.checked.into();
        state["undecodable"] = summary.counts.undecodable.into();
        state["lost"] = summary.lost().into();
        state["published"] = traffic.published.into();
        let properties = described.spec.properties.iter().zip(&summary.properties);
        let properties = properties.map(|(property, statistics)| {
            json!({
                "property": property.name,
                "verdict": statistics.verdict().map(Verdict::as_str),
                "violations": statistics.violations,
            })
        });
        state["properties"] = properties.collect();
        // The gates of a group are those of its active member.
        let is_active = self.standby.as_ref().is_none_or(GroupHandle::is_active);
        if is_active && let Some(gates) = pipeline.gates_within(LIMIT).filter(|gates| !gates.is_empty()) {
            state["gates"] = gates.iter().map(GateFigures::json).collect();
        }
        state
    }
}

/// Answer to a query: the state of the run and the present verdicts of a topic.
struct QueriedState {
    health: Arc<Health>,
    present: Arc<Present>,
}

impl State for QueriedState {
    fn whole(&self, out: &mut Vec<u8>) {
        let mut state = self.health.json().to_string();
        // The verdicts are members of the same object.
        state.pop();
        out.extend_from_slice(state.as_bytes());
        out.push(b',');
        self.present.write(out);
        out.push(b'}');
    }

    fn parts(&self, visit: &mut dyn FnMut(&[u8])) {
        // A subscriber would take them for verdicts that were published.
        if self.health.standby.as_ref().is_some_and(|standby| !standby.is_active()) {
            return;
        }
        self.present.visit(visit);
    }
}

/// Threads and services that report the state of a run while it lasts.
pub struct Attendants {
    health: Arc<Health>,
    watchdog: Watchdog,
    /// The names of the verdict sinks, for the watchdog.
    names: Names,
    /// The publisher of heartbeats, if there are any.
    heart: Option<Heart>,
    /// Services that answer queries for present verdicts, by address.
    answering: Vec<(Address, Answering)>,
    /// Subscriptions to the heartbeats of other monitors.
    watching: Vec<Box<dyn Subscription>>,
}

impl Attendants {
    /// Starts to watch a run, to answer queries for topics with present verdicts, and to publish its state at intervals
    /// if it has publishers for that. `topics` are the verdict sinks by number, `notices` the sinks of reports.
    ///
    /// # Errors
    /// The topic for which nothing can be answered, or the thread that cannot be started, and the reason.
    pub fn start(
        health: Arc<Health>,
        networks: &Networks,
        topics: Vec<(&Address, Option<Arc<Present>>)>,
        every: Option<Duration>,
        publishers: Vec<Arc<dyn Publisher>>,
        notices: Vec<Sink>,
    ) -> Result<Attendants, String> {
        let thread = |error: io::Error| format!("cannot start a thread: {error}");
        let names = Names::of(topics.iter().map(|(address, _)| address.to_string()).collect());
        let pipeline = Weak::clone(&health.pipeline);
        let watchdog = Watchdog::start(pipeline, names.clone(), notices).map_err(thread)?;
        let every = every.filter(|_| !publishers.is_empty());
        let beating = Arc::clone(&health);
        let heart =
            every.map(|every| Heart::start(beating, every, publishers)).transpose().map_err(thread)?;
        let mut attendants =
            Attendants { health, watchdog, names, heart, answering: Vec::new(), watching: Vec::new() };
        for (address, present) in topics {
            if let Some(present) = present {
                attendants.answer(networks, address, present)?;
            }
        }
        Ok(attendants)
    }

    /// Keeps these subscriptions to the heartbeats of other monitors until the end.
    pub fn watch(&mut self, subscriptions: Vec<Box<dyn Subscription>>) {
        self.watching = subscriptions;
    }

    /// Starts to answer queries for the present verdicts of a topic.
    ///
    /// # Errors
    /// Nothing can be answered, and the reason.
    pub fn answer(
        &mut self,
        networks: &Networks,
        address: &Address,
        present: Arc<Present>,
    ) -> Result<(), String> {
        let state = Arc::new(QueriedState { health: Arc::clone(&self.health), present });
        let answering = networks.answer(address, state)?;
        self.answering.extend(answering.into_iter().map(|answering| (address.clone(), answering)));
        Ok(())
    }

    /// Whether queries on an address are answered.
    pub fn answers(&self, address: &Address) -> bool {
        self.answering.iter().any(|(known, _)| known == address)
    }

    /// The sources of the state of the run.
    pub fn health(&self) -> &Arc<Health> {
        &self.health
    }

    /// Takes the verdict sinks of a reload, in the order of their numbers: others are not answered for any more.
    pub fn set_sinks(&mut self, addresses: &[&Address]) {
        self.names.set(addresses.iter().map(ToString::to_string).collect());
        self.answering.retain(|(address, _)| addresses.contains(&address));
    }

    /// The stall of the evaluating thread that lasts at present.
    pub fn stall(&self) -> Stall {
        self.watchdog.stall()
    }

    /// Publishes the state a last time, and ends.
    pub fn end(self) {
        self.watchdog.end();
        // Before its own last one.
        self.watching.iter().for_each(|subscription| _ = subscription.close(LIMIT));
        if let Some(heart) = self.heart {
            heart.end();
        }
        drop(self.answering);
    }
}

/// Publishes the state of a run at intervals.
struct Heart {
    /// Ends the thread, by being dropped.
    end: mpsc::Sender<()>,
    thread: JoinHandle<()>,
}

impl Heart {
    /// Starts to publish.
    ///
    /// # Errors
    /// The thread cannot be started.
    fn start(health: Arc<Health>, every: Duration, publishers: Vec<Arc<dyn Publisher>>) -> io::Result<Heart> {
        let (end, ended) = mpsc::channel::<()>();
        let beat = move || {
            let mut next = Instant::now();
            for number in 0u64.. {
                let mut state = health.json();
                next += every;
                let is_end = ended.recv_timeout(Duration::ZERO) == Err(mpsc::RecvTimeoutError::Disconnected);
                state["heartbeat"] = number.into();
                state["every"] = every.as_secs_f64().into();
                state["ends"] = is_end.into();
                let text = state.to_string();
                for publisher in &publishers {
                    // A sink that does not accept the state counts it.
                    _ = publisher.publish(text.as_bytes());
                    publisher.release();
                }
                if is_end {
                    break;
                }
                // A missed heartbeat is not repeated.
                next = next.max(Instant::now());
                _ = ended.recv_timeout(next.saturating_duration_since(Instant::now()));
            }
            for publisher in &publishers {
                publisher.flush(LIMIT);
            }
        };
        let thread = thread::Builder::new().name("heartbeat".into()).spawn(beat)?;
        Ok(Heart { end, thread })
    }

    /// Publishes the state a last time, and ends the thread.
    fn end(self) {
        drop(self.end);
        // A panic of the thread has been reported.
        let _ = self.thread.join();
    }
}
