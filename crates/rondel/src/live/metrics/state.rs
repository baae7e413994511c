//! The state of a run for scrapes, probes and the service manager.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::{Duration, SystemTime};

use rondel_event::TopicId;
use rondel_net::adapter::Publisher;
use rondel_runtime::Pause;
use rondel_runtime::text::counted;

use super::Meter;
use super::figures::{NetworkFigures, RunSnapshot, Snapshot, matched, queue_figures};
use super::pushes::{PushFigures, Pushes};
use crate::live::losses::Undelivered;
use crate::live::networks::Networks;
use crate::live::pipeline::{Observation, Pipeline, Unresponsive};
use crate::live::reload::Reloads;
use crate::live::standby::state::GroupHandle;
use crate::live::subscriptions::Subscriptions;
use crate::live::watchdog::Stall;
use crate::sinks::actions::ActionHandle;
use crate::sinks::audit::Audit;
use crate::sinks::driven::DestinationHandle;
use crate::sinks::queue::Queue;
use crate::sinks::spool::Spools;

/// Time limit for the evaluating thread to let a scrape or a probe read its counts.
const LIMIT: Duration = Duration::from_millis(500);
/// The same limit for a description, which does not delay what else its thread does.
const GLANCE: Duration = Duration::from_millis(20);
/// Causes of pauses.
const PAUSES: [&str; 4] = ["stopped", "restart", "clock", "simulation"];
/// Time for which messages may wait without a pause before a run counts as behind.
const BEHIND: Duration = Duration::from_secs(2);

/// The state of a run, from before its networks are joined until after they are left.
pub struct RunState {
    /// Number of instances whose violations are counted by their parameters; `None` where nothing is measured.
    measured: Option<usize>,
    began: SystemTime,
    /// Account of pushes, where metrics are pushed.
    pushes: Option<Pushes>,
    /// Connections that the page refused.
    refused_connections: Arc<AtomicU64>,
    /// Locked while a scrape reads, so that none outlasts the networks.
    phase: Mutex<Phase>,
}

/// The phase of a run.
enum Phase {
    Joining,
    Running(Box<Observed>),
    /// With the figures at the end, until they are pushed.
    #[cfg_attr(not(feature = "otlp"), allow(dead_code))]
    Ended(Option<Box<RunSnapshot>>),
}

/// The parts of a run that scrapes and probes read.
pub struct Observed {
    /// The pipeline.
    pub pipeline: Weak<Pipeline>,
    /// The networks.
    pub networks: Weak<Networks>,
    /// The names of the topics.
    pub topics: Vec<String>,
    /// The number of the subscription to each topic.
    pub slots: Vec<TopicId>,
    /// The labels of the properties.
    pub properties: Arc<[PropertyLabels]>,
    /// The numbers of reloads.
    pub reloads: Reloads,
    /// Messages that consumers did not accept.
    pub undelivered: Undelivered,
    /// Messages kept for them.
    pub spools: Spools,
    /// The queues of verdicts or sets.
    pub queues: Vec<Arc<Queue>>,
    /// The publishers with their addresses.
    pub publishers: Vec<(String, Weak<dyn Publisher>)>,
    /// The store and other sinks beside networks.
    pub driven: Vec<DestinationHandle>,
    /// The audit file.
    pub audit: Option<Arc<Audit>>,
    /// The actions, if there are any.
    pub actions: Option<ActionHandle>,
    /// The subscriptions. Those of topics whose types are resolved later are added when they are.
    pub subscriptions: Subscriptions,
    /// Number of subscriptions once all types are resolved.
    pub subscribed: usize,
    /// The stall of the evaluating thread.
    pub stall: Stall,
    /// The state of the member of a group, if the run is one.
    pub standby: Option<GroupHandle>,
    /// The largest value that was shown of each figure that may be corrected downwards.
    pub shown: Shown,
}

/// The labels of a property.
#[derive(Clone, Debug)]
pub struct PropertyLabels {
    /// Its name.
    pub name: String,
    /// The value of its attribute `@severity`, or empty.
    pub severity: String,
}

/// The largest values that were shown: a counter that falls would count as one that restarted.
#[derive(Clone, Debug, Default)]
pub struct Shown {
    in_violation: Vec<u64>,
    undelivered: Vec<u64>,
    pauses: [u64; PAUSES.len()],
}

impl RunState {
    /// Creates the state of a run whose networks are not joined yet. `measured` is the number of instances whose violations
    /// are counted by their parameters; `None` where nothing is measured.
    pub fn new(measured: Option<usize>) -> RunState {
        RunState {
            measured,
            began: SystemTime::now(),
            pushes: None,
            refused_connections: Arc::default(),
            phase: Mutex::new(Phase::Joining),
        }
    }

    /// Returns the number of connections that the page refused, to be counted up.
    #[cfg_attr(not(feature = "page"), allow(dead_code))]
    pub fn refused_connections(&self) -> Arc<AtomicU64> {
        Arc::clone(&self.refused_connections)
    }

    /// Counts pushes, and keeps the figures at the end for the last one.
    pub fn pushed(self) -> RunState {
        RunState { pushes: Some(Pushes::default()), ..self }
    }

    /// Counts a push that was accepted, or that failed for this reason.
    #[cfg_attr(not(feature = "otlp"), allow(dead_code))]
    pub fn count_push(&self, pushed: Result<(), &str>) {
        if let Some(pushes) = &self.pushes {
            pushes.count(pushed);
        }
    }

    /// Account of pushes, where metrics are pushed.
    pub fn push_figures(&self) -> Option<PushFigures> {
        self.pushes.as_ref().map(Pushes::figures)
    }

    /// Returns the meter of a run with these numbers of topics and properties; `None` where nothing is measured.
    pub fn meter(&self, topics: usize, properties: usize) -> Option<Box<Meter>> {
        self.measured.map(|parameters| Box::new(Meter::new(topics, properties, parameters)))
    }

    fn phase(&self) -> MutexGuard<'_, Phase> {
        self.phase.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Begins to show a run.
    pub fn begin(&self, observed: Observed) {
        *self.phase() = Phase::Running(Box::new(observed));
    }

    /// Shows nothing more of the run, whose networks are about to be left. Waits for a scrape that reads them.
    pub fn end(&self) {
        let mut phase = self.phase();
        let last = match &mut *phase {
            Phase::Running(observed) if self.pushes.is_some() => Some(Box::new(observed.snapshot())),
            _ => None,
        };
        *phase = Phase::Ended(last);
    }

    /// Calls a function while nothing reads the state of the run, with its parts if there are any.
    pub fn change<T>(&self, change: impl FnOnce(Option<&mut Observed>) -> T) -> T {
        match &mut *self.phase() {
            Phase::Running(observed) => change(Some(observed)),
            Phase::Joining | Phase::Ended(_) => change(None),
        }
    }

    /// Checks whether the evaluating thread moves.
    ///
    /// # Errors
    /// Its place, and since when it has been there.
    pub fn alive(&self) -> Result<(), String> {
        match &*self.phase() {
            Phase::Running(observed) => observed.stall.get().map_or(Ok(()), |stall| Err(stalled(&stall))),
            Phase::Joining | Phase::Ended(_) => Ok(()),
        }
    }

    /// Returns the reasons why the run is not ready; none if it is.
    pub fn unready(&self) -> Vec<String> {
        match &*self.phase() {
            Phase::Joining => vec!["the networks are not joined yet".to_owned()],
            Phase::Running(observed) => observed.unready(),
            Phase::Ended(_) => vec!["the run is ending".to_owned()],
        }
    }

    /// Whether every network is connected and every topic subscribed to. A run that is not caught up is, too.
    pub fn is_connected(&self) -> bool {
        match &*self.phase() {
            Phase::Running(observed) => observed.unconnected().is_empty(),
            Phase::Joining | Phase::Ended(_) => false,
        }
    }

    /// Describes the run in one line: the reasons why it is not connected, its stall, or its counts.
    pub fn describe(&self) -> String {
        match &*self.phase() {
            Phase::Joining => "joining the networks".to_owned(),
            Phase::Running(observed) => observed.describe(),
            Phase::Ended(_) => "leaving the networks".to_owned(),
        }
    }

    /// Copies everything that a scrape shows.
    pub fn snapshot(&self) -> Snapshot {
        let mut phase = self.phase();
        let (is_ready, stalled, run) = match &mut *phase {
            Phase::Running(observed) => {
                let stalled = observed.stall.get().map_or(Duration::ZERO, |(lasted, _)| lasted);
                (observed.unready().is_empty(), stalled, Some(observed.snapshot()))
            }
            Phase::Joining | Phase::Ended(_) => (false, Duration::ZERO, None),
        };
        drop(phase);
        let refused_connections = self.refused_connections.load(Ordering::Relaxed);
        Snapshot {
            began: self.began,
            is_ready,
            stalled,
            pushes: self.push_counts(),
            refused_connections,
            run,
        }
    }

    /// Copies everything that the last push shows: of a run that has ended, the figures at its end, once.
    #[cfg_attr(not(feature = "otlp"), allow(dead_code))]
    pub fn last_snapshot(&self) -> Snapshot {
        let last = match &mut *self.phase() {
            Phase::Ended(last) => last.take(),
            Phase::Joining | Phase::Running(_) => None,
        };
        let snapshot = self.snapshot();
        Snapshot { run: last.map(|last| *last).or(snapshot.run), ..snapshot }
    }

    fn push_counts(&self) -> Option<[(&'static str, u64); 2]> {
        let PushFigures { accepted, failed, .. } = self.push_figures()?;
        Some([("accepted", accepted), ("failed", failed)])
    }
}

/// The sentence about a stall.
fn stalled((lasted, place): &(Duration, String)) -> String {
    format!("the evaluating thread has been {place} for {:.1} s", lasted.as_secs_f64())
}

impl Observed {
    /// The reasons why the run does not receive all messages.
    fn unconnected(&self) -> Vec<String> {
        let Some((pipeline, networks)) = self.pipeline.upgrade().zip(self.networks.upgrade()) else {
            return vec!["the run is ending".to_owned()];
        };
        let mut reasons = Vec::new();
        if pipeline.is_ending() {
            reasons.push("the run is ending".to_owned());
        }
        for (name, is_connected) in networks.connected() {
            if !is_connected {
                reasons.push(format!("{name} is not connected"));
            }
        }
        let open = self.subscribed.saturating_sub(self.subscriptions.count()) as u64;
        if open > 0 {
            let topics = counted(open, "topic is", "topics are");
            reasons.push(format!("{topics} not subscribed to, as the types are not known yet"));
        }
        reasons
    }

    /// The reasons why the run is not ready: those of [`Observed::unconnected`], and those of the evaluating thread.
    fn unready(&self) -> Vec<String> {
        let mut reasons = self.unconnected();
        let Some(pipeline) = self.pipeline.upgrade() else { return reasons };
        match (self.stall.get(), pipeline.behind_within(LIMIT)) {
            (Some(stall), _) => reasons.push(stalled(&stall)),
            (None, Err(Unresponsive)) => {
                reasons.push(format!("the evaluating thread did not answer within {} ms", LIMIT.as_millis()));
            }
            (None, Ok(Some(since))) if since.elapsed() >= BEHIND => {
                let seconds = since.elapsed().as_secs_f64();
                reasons.push(format!("not caught up: messages have been waiting for {seconds:.1} s"));
            }
            (None, Ok(_)) => {}
        }
        reasons
    }

    fn describe(&self) -> String {
        let reasons = self.unconnected();
        if !reasons.is_empty() {
            return reasons.join("; ");
        }
        if let Some(stall) = self.stall.get() {
            return stalled(&stall);
        }
        let counts = self.pipeline.upgrade().and_then(|pipeline| pipeline.summary_within(GLANCE));
        let Some((summary, traffic)) = counts else { return "checking".to_owned() };
        let violations: u64 = summary.properties.iter().map(|property| property.violations).sum();
        let messages = counted(traffic.received, "message", "messages");
        let counts = format!("received {messages}, {}", counted(violations, "violation", "violations"));
        match &self.standby {
            Some(standby) => format!("{}: {counts}", standby.state().role.as_str()),
            None => counts,
        }
    }

    /// The publishers of each topic: those that the network shows, or that have numbered their messages.
    fn topic_publishers(&self, observation: Option<&Observation>) -> Vec<Option<u64>> {
        let numbered = |i: usize| observation?.summary.accounts.get(i).map(|account| account.publishers);
        let of = |(i, slot): (usize, &TopicId)| {
            self.subscriptions.publishers(*slot).or_else(|| numbered(i).filter(|count| *count > 0))
        };
        self.slots.iter().enumerate().map(of).collect()
    }

    fn snapshot(&mut self) -> RunSnapshot {
        let observation = self.pipeline.upgrade().and_then(|pipeline| pipeline.observed_within(LIMIT));
        let in_violation = match &observation {
            Some(observation) => self.shown.in_violation(observation),
            None => Vec::new(),
        };
        let pauses =
            observation.as_ref().map_or(&[][..], |observation| observation.summary.pauses.as_slice());
        let pauses = self.shown.pauses(pauses);
        let problems = self.subscriptions.problems();
        let publishers = self.topic_publishers(observation.as_ref());
        let mut recovered = vec![0; self.topics.len()];
        let (mut networks, mut partitions, mut refused, mut dead_letters) = (Vec::new(), Vec::new(), 0, None);
        if let Some(joined) = self.networks.upgrade() {
            for (slot, of_topic) in joined.recovered() {
                let topic = self.slots.iter().position(|own| *own == slot);
                if let Some(count) = topic.and_then(|topic| recovered.get_mut(topic)) {
                    *count += of_topic.count;
                }
            }
            let outages = joined.outages();
            let figures = |(name, is_connected): (&'static str, bool)| NetworkFigures {
                name,
                is_connected,
                outages: outages.iter().filter(|outage| outage.network == name).count() as u64,
            };
            networks = joined.connected().into_iter().map(figures).collect();
            partitions = joined.partitions();
            refused = joined.refused();
            dead_letters = joined.dead_letters(Duration::ZERO);
        }
        RunSnapshot {
            topics: self.topics.clone(),
            properties: Arc::clone(&self.properties),
            reloads: [("done", self.reloads.done()), ("refused", self.reloads.refused())],
            observation,
            in_violation,
            problems,
            publishers,
            recovered,
            networks,
            refused,
            partitions,
            dead_letters,
            queues: queue_figures(&self.queues),
            matched: matched(&self.publishers),
            undelivered: self.shown.undelivered(self.undelivered.counts()),
            spooled: self.spools.sizes(),
            driven: self.driven.iter().map(DestinationHandle::state).collect(),
            audit: self.audit.as_deref().map(Audit::counts),
            actions: self.actions.as_ref().map(ActionHandle::figures).unwrap_or_default(),
            standby: self.standby.as_ref().map(GroupHandle::state),
            pauses,
        }
    }
}

impl Shown {
    /// Forgets the values of properties, which have other positions.
    pub fn forget_properties(&mut self) {
        self.in_violation.clear();
    }

    /// The time in violation of each property in nanoseconds, where it is measured.
    fn in_violation(&mut self, observation: &Observation) -> Vec<Option<u64>> {
        let properties = &observation.summary.properties;
        self.in_violation.resize(properties.len(), 0);
        let shown = properties.iter().zip(&mut self.in_violation).map(|(property, shown)| {
            let nanos = property.in_violation()?.total.nanos;
            *shown = nanos.max(*shown);
            Some(*shown)
        });
        shown.collect()
    }

    /// The numbers of pauses by cause: a session forgets them when the recording that it receives begins again.
    fn pauses(&mut self, pauses: &[Pause]) -> [(&'static str, u64); PAUSES.len()] {
        for (cause, shown) in PAUSES.iter().zip(&mut self.pauses) {
            let count = pauses.iter().filter(|pause| pause.cause.as_str() == *cause).count() as u64;
            *shown = count.max(*shown);
        }
        std::array::from_fn(|i| (PAUSES[i], self.pauses[i]))
    }

    fn undelivered(&mut self, mut counts: Vec<(String, u64)>) -> Vec<(String, u64)> {
        self.undelivered.resize(counts.len(), 0);
        for ((_, count), shown) in counts.iter_mut().zip(&mut self.undelivered) {
            *count = (*count).max(*shown);
            *shown = *count;
        }
        counts
    }
}

#[cfg(test)]
mod tests {
    use rondel_event::Timestamp;
    use rondel_runtime::Cause;

    use super::*;

    #[test]
    fn counters_do_not_fall() {
        let mut shown = Shown::default();
        let count = |count: u64| vec![("mqtt:a".to_owned(), count)];
        assert_eq!(shown.undelivered(count(5)), count(5));
        assert_eq!(shown.undelivered(count(3)), count(5), "messages were delivered after all");
        assert_eq!(shown.undelivered(count(6)), count(6));
        let pause = |cause: Cause| Pause {
            from: Timestamp::from_nanos(0),
            until: Timestamp::from_nanos(1),
            cause,
            may_miss: false,
        };
        let pauses = [Cause::Stopped, Cause::Clock { by: -1 }, Cause::Stopped].map(pause);
        let expected = [("stopped", 2), ("restart", 0), ("clock", 1), ("simulation", 0)];
        assert_eq!(shown.pauses(&pauses), expected);
        assert_eq!(shown.pauses(&[]), expected, "another lap has begun");
    }

    #[test]
    fn run_is_alive_and_unready_before_and_after_its_networks_are_joined() {
        let state = RunState::new(Some(0));
        assert_eq!(state.alive(), Ok(()));
        assert_eq!(state.unready(), ["the networks are not joined yet"]);
        assert!(!state.is_connected());
        assert_eq!(state.describe(), "joining the networks");
        assert!(!state.snapshot().is_ready && state.snapshot().run.is_none());
        state.end();
        assert_eq!(state.unready(), ["the run is ending"]);
    }

    #[test]
    fn pushes_are_counted_where_metrics_are_pushed() {
        let state = RunState::new(Some(0));
        state.count_push(Ok(()));
        assert_eq!(state.snapshot().pushes, None);
        let state = state.pushed();
        for pushed in [Ok(()), Err("full"), Ok(())] {
            state.count_push(pushed);
        }
        assert_eq!(state.snapshot().pushes, Some([("accepted", 2), ("failed", 1)]));
        state.end();
        assert!(state.last_snapshot().run.is_none(), "the run never began");
    }
}
