//! A deployment at work: networks, session, sinks.

use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError, Weak, mpsc};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use rondel_decode::MessageType;
use rondel_event::{TopicId, Verdict};
use rondel_net::adapter::{Outage, Problems, Publisher, Receiver, Subscription};
use rondel_net::durability::{Schedule, Snapshots};
use rondel_report::Claim;
use rondel_runtime::ros2::DIAGNOSTICS;
use rondel_runtime::text::grouped;
use rondel_runtime::{
    AlignmentStatistics, Cause, ChainStatistics, Clock, Omission, Pause, Session, SessionPlan, Summary,
};
use rondel_spec::Spec;
use serde_json::json;

use crate::console::Console;
use crate::deployment::{Address, Binding, Deployment};
use crate::discover::{self, Learning, Unread};
use crate::health::{Attendants, Health};
use crate::losses::{Unconfirmed, Undelivered, Watcher, outage_json, outage_text};
use crate::networks::Networks;
use crate::outlets::Outlets;
use crate::output::{Format, VerdictWriter, colour_of};
use crate::own::{Others, Own};
use crate::pipeline::{ClockAccount, ClockReceiver, Parts, Pipeline, Simulated, Stop, Traffic};
use crate::present::Present;
use crate::queue::Queue;
use crate::recorder::{Channel, FlightRecorder, FlightSummary, Origin, warn_of_doubles};
use crate::reports::claims;
use crate::resume::Kept;
use crate::sinks::{Sink, Sinks, publishers};
use crate::spool::Spools;
use crate::summary::{
    Reasons, least_robustness, not_evaluated, unstamped, violations, with_figures, withheld_verdicts,
};
use crate::time_text::TimeText;

/// How long ending may take. Containers are killed after ten seconds, and a service may have less.
const END: Duration = Duration::from_millis(4400);
/// How long to wait at the end for messages that are on their way.
const DRAIN: Duration = Duration::from_millis(1500);
/// How long no message must come for a subscription to be drained.
const QUIET: Duration = Duration::from_millis(20);
/// How long of [`END`] is kept for closing the networks, whatever takes longer before.
const LEAVE: Duration = Duration::from_millis(700);
/// How long a publisher that was woken may take to return, at least.
const WAKE: Duration = Duration::from_millis(300);

/// The options of a run beside its deployment.
pub struct Options {
    /// The format of verdicts on standard output.
    pub format: Format,
    /// Whether they are coloured.
    pub colour: bool,
    /// The snapshot file and when it is written.
    pub snapshots: Option<(PathBuf, Schedule)>,
    /// After how many messages to stop.
    pub count: Option<u64>,
    /// How long to wait for subscribers of the verdicts before receiving messages.
    pub wait_subscribers: Duration,
    /// Where to send the reason to stop.
    pub stop: mpsc::Sender<Stop>,
    /// Where messages are kept for slow consumers.
    pub spools: Spools,
    /// A further sink of messages that were put in order.
    pub screen: Option<Sink>,
    /// The simulation that sets the clock, if one does.
    pub simulated: Option<Simulated>,
}

/// The subscriptions of a run: those of topics whose types are learnt later follow.
type Subscriptions = Arc<Mutex<Vec<Box<dyn Subscription>>>>;

/// A deployment that is running.
pub struct Running {
    networks: Arc<Networks>,
    /// What consumers did not accept.
    undelivered: Undelivered,
    /// What is kept for them.
    spools: Spools,
    /// The publishers with their addresses.
    outlets: Vec<(String, Weak<dyn Publisher>)>,
    /// The queues of verdicts or sets.
    queues: Vec<Arc<Queue>>,
    losses: Watcher,
    attendants: Attendants,
    pipeline: Arc<Pipeline>,
    subscriptions: Subscriptions,
    /// The learning of types that were not known at the start.
    learning: Option<Learning>,
    /// The thread that keeps time, if time alone decides verdicts.
    keeper: Option<JoinHandle<()>>,
    /// The writing of snapshots.
    snapshots: Option<Snapshots<Kept>>,
    spec: Arc<Spec>,
    /// The name of what is published.
    published: &'static str,
}

impl Running {
    /// Starts a run: creates publishers before subscriptions, so that the first message already has a sink.
    ///
    /// # Errors
    /// The publisher, subscription or thread that could not be created, and the reason.
    pub fn start(
        deployment: &Deployment,
        (plan, session): (&SessionPlan, Session),
        clock: Arc<dyn Clock>,
        networks: Networks,
        options: Options,
        asked: impl Fn() -> bool,
    ) -> Result<Running, String> {
        let spools = options.spools;
        let outlets = Outlets::open(deployment, &networks, &spools)?;
        outlets.wait_for_subscribers(deployment, options.wait_subscribers, asked);
        let Outlets {
            verdicts: sinks,
            mut released,
            notices,
            beats,
            mut undelivered,
            queues,
            publishers: outlets,
        } = outlets;
        if let Some(Sink::Network(screen)) = &options.screen {
            undelivered.add(Address::Stdout.to_string(), screen.drops());
        }
        released.extend(options.screen);
        let writer = VerdictWriter::new(plan.properties(), options.format, options.colour);
        let topics = deployment.specification.spec.topics.iter().zip(&deployment.sources);
        let topics = topics.map(|(topic, binding)| format!("'{}' ({})", topic.name, binding.address));
        let stdout = Console::new(deployment.slow_consumer, spools.of(&Address::Stdout.to_string()));
        undelivered.add(Address::Stdout.to_string(), Some(stdout.drops()));
        let mut all_sinks = Sinks::new(sinks.clone(), writer, stdout);
        all_sinks.diagnose(plan.properties());
        let own = Arc::new(Own::default());
        if deployment.sources.iter().any(|binding| comes_back(deployment, &binding.address)) {
            all_sinks.remember(Arc::clone(&own));
        }
        let answers = attended(deployment, &sinks, &mut all_sinks);
        let reporting = notices.clone();
        let senders = publishers(sinks.iter().flatten().chain(&released).cloned());
        let names: Vec<_> =
            (0..deployment.sources.len() as u32).map(|i| plan.names(TopicId(i)).cloned()).collect();
        let recorder = deployment.record.clone().map(|settings| {
            warn_of_doubles(&deployment.sources);
            let (channels, folder) = (deployment.sources.iter().map(Channel::of), settings.folder.clone());
            let offers = networks.offers(deployment.sources.iter().map(|binding| &binding.address))?;
            let topics = (channels.collect(), names.clone(), offers);
            FlightRecorder::start(settings, topics, defined(deployment))
                .map_err(|error| format!("cannot record in {}: {error}", folder.display()))
        });
        let pipeline = Arc::new(Pipeline::new(Parts {
            session,
            clock,
            simulated: options.simulated,
            topics: topics.collect(),
            names,
            sinks: all_sinks,
            released,
            notices,
            recorder: recorder.transpose()?,
            batching: deployment.addresses().any(Address::holds_back),
            stop_after: options.count,
            stop: options.stop,
        }));
        let health = Arc::new(Health {
            pipeline: Arc::downgrade(&pipeline),
            spec: Arc::clone(&plan.specification().spec),
            name: deployment.specification.source.clone(),
            undelivered: undelivered.clone(),
            spools: spools.clone(),
            began: Instant::now(),
        });
        let every = deployment.heartbeat.as_ref().map(|heartbeat| heartbeat.every);
        let attendants = Attendants::start(health, &networks, answers, (every, beats), reporting)?;
        let known = (0..).zip(&deployment.sources).filter(|(_, binding)| !discover::is_open(binding));
        let mut subscriptions: Vec<_> = known
            .map(|(topic, binding)| match comes_back(deployment, &binding.address) {
                true => {
                    let (receiver, own) = (Arc::clone(&pipeline), Arc::clone(&own));
                    subscribe(&networks, topic, binding, &Arc::new(Others { receiver, own }))
                }
                false => subscribe(&networks, topic, binding, &pipeline),
            })
            .collect::<Result<_, _>>()?;
        if let Some(address) = &deployment.alignment.progress {
            subscriptions.push(networks.subscribe(address, pipeline.progress(), Arc::clone(&pipeline))?);
        }
        if let Some(address) = &deployment.clock {
            // No topic of the session has this number.
            let topic = TopicId(pipeline.progress().0 + 1);
            subscriptions.push(networks.subscribe(
                address,
                topic,
                Arc::new(ClockReceiver(Arc::clone(&pipeline))),
            )?);
        }
        networks.begin();
        let networks = Arc::new(networks);
        let subscriptions: Subscriptions = Arc::new(Mutex::new(subscriptions));
        let begin = {
            let (networks, pipeline) = (Arc::downgrade(&networks), Arc::clone(&pipeline));
            let subscriptions = Arc::clone(&subscriptions);
            let returning = (0..).zip(&deployment.sources);
            let returning = returning.filter(|(_, binding)| comes_back(deployment, &binding.address));
            let returning: Vec<u32> = returning.map(|(topic, _)| topic).collect();
            move |topic: usize, binding: &Binding| {
                let Some(networks) = networks.upgrade() else { return Ok(()) };
                let topic = topic as u32;
                if let Some(message_type) = &binding.input.message_type {
                    pipeline.learn(TopicId(topic), message_type, Channel::of(binding))?;
                }
                let subscription = match returning.contains(&topic) {
                    true => {
                        let (receiver, own) = (Arc::clone(&pipeline), Arc::clone(&own));
                        subscribe(&networks, topic, binding, &Arc::new(Others { receiver, own }))?
                    }
                    false => subscribe(&networks, topic, binding, &pipeline)?,
                };
                subscriptions.lock().unwrap_or_else(PoisonError::into_inner).push(subscription);
                Ok(())
            }
        };
        let learning = Learning::start(deployment, Arc::clone(&networks), begin)
            .map_err(|error| format!("cannot start a thread: {error}"))?;
        let keep_time = {
            let (pipeline, networks) = (Arc::clone(&pipeline), Arc::downgrade(&networks));
            let is_unsure = move || networks.upgrade().is_some_and(|networks| networks.is_unsure());
            move || pipeline.keep_time(is_unsure)
        };
        let keeper = pipeline.is_timed().then(|| {
            let thread = thread::Builder::new().name("time".into());
            thread.spawn(keep_time).map_err(|error| format!("cannot start a thread: {error}"))
        });
        let snapshots = options.snapshots.map(|(file, schedule)| {
            let kept = Kept { file, exactly: schedule.exactly, pipeline: Arc::clone(&pipeline) };
            Snapshots::start(schedule, kept, Arc::clone(&networks), senders)
                .map_err(|error| format!("cannot start a thread: {error}"))
        });
        let topics = deployment.specification.spec.topics.iter().map(|topic| topic.name.clone());
        let sources = topics.zip(deployment.sources.iter().map(|binding| binding.address.clone())).collect();
        let losses =
            Watcher::start(Arc::clone(&pipeline), Arc::clone(&networks), undelivered.clone(), sources)
                .map_err(|error| format!("cannot start a thread: {error}"))?;
        Ok(Running {
            losses,
            attendants,
            undelivered,
            spools,
            outlets,
            queues,
            snapshots: snapshots.transpose()?,
            subscriptions,
            learning,
            keeper: keeper.transpose()?,
            networks,
            pipeline,
            spec: Arc::clone(&plan.specification().spec),
            published: match (&deployment.synchronized, plan.alignment().policy.makes_sets()) {
                (None, _) => "verdicts",
                (Some(_), true) => "sets",
                (Some(_), false) => "messages",
            },
        })
    }

    /// Why a network was given up, if one was.
    pub fn failure(&self) -> Option<String> {
        self.networks.failure()
    }

    /// Ends gracefully: checks everything received and publishes its verdicts. `None` when a subscriber of
    /// the verdicts blocks.
    pub fn end(self, why: Stop) -> Option<RunSummary> {
        let end = Instant::now() + END;
        let unread = self.learning.map_or_else(Vec::new, Learning::end);
        let subscriptions =
            std::mem::take(&mut *self.subscriptions.lock().unwrap_or_else(PoisonError::into_inner));
        if why == Stop::Asked {
            let drained = Instant::now() + DRAIN;
            for subscription in &subscriptions {
                subscription.drain(QUIET, drained.saturating_duration_since(Instant::now()));
            }
        }
        let mut problems = Problems::default();
        let mut closed = true;
        let deadline = end - LEAVE;
        // On DDS a subscription ends when nothing more waits. Messages may come faster than they are checked.
        let closing = deadline - WAKE;
        for subscription in &subscriptions {
            closed &= subscription.close(closing.saturating_duration_since(Instant::now()));
            let seen = subscription.problems();
            problems.malformed += seen.malformed;
            problems.empty += seen.empty;
            problems.instance_events += seen.instance_events;
            problems.lost += seen.lost;
            problems.incompatible += seen.incompatible;
            problems.duplicates += seen.duplicates;
            problems.breaks += seen.breaks;
            problems.unmarked += seen.unmarked;
        }
        if !closed {
            self.networks.wake();
        }
        let left = deadline.saturating_duration_since(Instant::now()).max(WAKE);
        let resumable = self.snapshots.is_some();
        let publishers = self.pipeline.end(resumable.then_some(closed), left)?;
        self.losses.end();
        self.attendants.end();
        let recorded =
            self.pipeline.end_recording(deadline.saturating_duration_since(Instant::now()).max(WAKE));
        if let Some(keeper) = self.keeper {
            // A panic of the thread has been reported.
            let _ = keeper.join();
        }
        let mut flushed = closed;
        let deadline = end - LEAVE;
        for publisher in &publishers {
            flushed &= publisher.flush(deadline.saturating_duration_since(Instant::now()));
        }
        let mut unconfirmed = Unconfirmed::default();
        for (sink, publisher) in &self.outlets {
            if let Some(publisher) = publisher.upgrade() {
                unconfirmed.add(sink, &*publisher);
            }
        }
        // Afterwards: verdicts that were not delivered are not forgotten.
        let kept = self.snapshots.map_or(Ok(()), Snapshots::end);
        drop(subscriptions);
        drop(publishers);
        let (outages, refused) = (self.networks.outages(), self.networks.refused());
        let is_joined = !self.networks.is_any_awaited();
        let recovered = self.networks.recovered();
        let refused_participants = self.networks.refused_participants();
        let left = end.saturating_duration_since(Instant::now());
        flushed &= Arc::into_inner(self.networks).is_some_and(|networks| networks.close_within(left));
        // After closing: until then a consumer may be cut off.
        let (mut summary, mut traffic) = self.pipeline.summary();
        for (topic, recovered) in recovered {
            if let Some(account) = summary.accounts.get_mut(topic.index()) {
                account.recovered = recovered.count;
            }
        }
        traffic.unpublished += refused;
        let withdrawn: u64 = self.queues.iter().map(|queue| queue.withdrawn()).sum();
        traffic.published = traffic.published.saturating_sub(withdrawn);
        Some(RunSummary {
            summary,
            traffic,
            counted: why == Stop::Count,
            problems,
            published: self.published,
            spec: self.spec,
            kept,
            flushed,
            undelivered: self.undelivered,
            unconfirmed,
            spools: self.spools,
            recorded,
            outages,
            is_joined,
            refused_participants,
            unread,
            clock: self.pipeline.clock_account(),
        })
    }
}

/// The topics of verdicts for whose present ones others may ask, by the numbers of their sinks.
fn attended<'d>(
    deployment: &'d Deployment,
    sinks: &[Vec<Sink>],
    all: &mut Sinks,
) -> Vec<(&'d Address, Option<Arc<Present>>)> {
    let mut attended: Vec<(&Address, Option<Arc<Present>>)> = Vec::new();
    for (sink, address) in sinks.iter().flatten().zip(deployment.sinks.iter().flatten()) {
        let Some(publisher) = sink.publisher() else { continue };
        if attended.iter().all(|(known, _)| *known != address) {
            let is_asked = matches!((sink, address), (Sink::Network(_), Address::Zenoh(..)));
            attended.push((address, if is_asked { all.keep_present(publisher) } else { None }));
        }
    }
    attended
}

/// Whether diagnostics that the run publishes come back on this address.
fn comes_back(deployment: &Deployment, address: &Address) -> bool {
    let mut sinks = deployment.sinks.iter().flatten();
    sinks.any(|sink| sink.ros2_type().as_deref() == Some(DIAGNOSTICS) && sink.meets(address))
}

/// Subscribes to the topic of a source whose type is known, or need not be.
fn subscribe<R: Receiver>(
    networks: &Networks,
    topic: u32,
    binding: &Binding,
    receiver: &Arc<R>,
) -> Result<Box<dyn Subscription>, String> {
    let schema = match binding.input.message_type.as_deref() {
        Some(MessageType::Cdr(schema)) => Some(schema),
        _ => None,
    };
    networks.subscribe_of(&binding.address, schema, TopicId(topic), Arc::clone(receiver))
}

/// Where the properties of a deployment are defined.
fn defined(deployment: &Deployment) -> Origin {
    let specification = &deployment.specification;
    let place = |claim: Claim| {
        let file = claim.file.unwrap_or_else(|| specification.source.clone());
        (file, claim.place.map_or(0, |place| place.line as u32))
    };
    Origin { places: claims(specification).into_iter().map(place).collect() }
}

/// The statistics of a run.
pub struct RunSummary {
    /// The statistics of the session.
    pub summary: Summary,
    /// The counts of received and published messages.
    pub traffic: Traffic,
    /// Whether the run ended with the last wanted message.
    counted: bool,
    problems: Problems,
    /// The name of what is published.
    published: &'static str,
    spec: Arc<Spec>,
    /// Whether the snapshot was written, if one was wanted.
    pub kept: std::io::Result<()>,
    /// Whether every verdict was delivered.
    pub flushed: bool,
    /// What consumers did not accept.
    undelivered: Undelivered,
    /// What brokers did not confirm.
    unconfirmed: Unconfirmed,
    /// What is kept for consumers.
    spools: Spools,
    /// What was recorded around violations.
    recorded: Option<FlightSummary>,
    /// The connections that were lost.
    outages: Vec<Outage>,
    /// Whether every network was reached.
    is_joined: bool,
    /// The participants that DDS Security refused.
    refused_participants: u64,
    /// The topics that were not read since the types of their publishers cannot be used.
    unread: Vec<Unread>,
    /// What came on `/clock`, if time was that of a simulation.
    clock: Option<ClockAccount>,
}

impl RunSummary {
    /// Why properties are vacuous.
    fn reasons(&self) -> Reasons<'_> {
        Reasons { summary: &self.summary, spec: &self.spec, unused: None }
    }

    /// Whether a connection was lost meanwhile.
    pub fn was_cut_off(&self) -> bool {
        !self.outages.is_empty()
    }

    /// Whether the time of a simulation stood, so that nothing was decided by time alone.
    pub fn stood(&self) -> bool {
        self.clock.as_ref().is_some_and(ClockAccount::stood)
    }

    /// Whether nothing is known to be lost, neither on the way to the session nor on the way to consumers.
    pub fn is_complete(&self) -> bool {
        self.flushed
            && self.is_joined
            && self.unread.is_empty()
            && self.traffic.unpublished == 0
            && self.undelivered.count() + self.unconfirmed.count() + self.spools.waiting() == 0
            && self.summary.lost() + self.problems.lost + self.problems.incompatible == 0
            && self.recorded.as_ref().is_none_or(FlightSummary::is_complete)
            // DDS drops what was not acknowledged when a participant is lost; its messages have no numbers.
            && self.outages.iter().all(|outage| outage.network != "dds")
    }

    fn seconds(&self) -> Option<f64> {
        let (first, last) = self.traffic.first.zip(self.traffic.last)?;
        Some((last.as_nanos() - first.as_nanos()) as f64 / 1e9)
    }

    /// One JSON object, with `seconds` from the first message received to the last.
    pub fn json(&self) -> String {
        let Summary {
            counts,
            topics,
            accounts,
            backwards,
            missing,
            omissions,
            chains,
            alignment,
            pauses,
            ..
        } = &self.summary;
        let Problems { malformed, lost, incompatible, .. } = self.problems;
        let reasons = self.reasons();
        let properties = self.spec.properties.iter().zip(&self.summary.properties).enumerate();
        let properties = properties.map(|(i, (property, statistics))| {
            with_figures(
                json!({
                    "property": property.name,
                    "verdict": statistics.verdict().map(Verdict::as_str),
                    "violations": statistics.violations,
                    "vacuous": reasons.json(i),
                }),
                statistics,
            )
        });
        let unstamped: u64 = topics.iter().map(|topic| topic.unstamped).sum();
        json!({
            "received": self.traffic.received,
            "checked": counts.checked,
            "undecodable": counts.undecodable + malformed,
            "refused": counts.refused,
            "mistyped": counts.mistyped,
            "backwards": backwards,
            "unstamped": unstamped,
            "missing_topics": self.summary.missing_topics(),
            "missing_fields": missing.fields(),
            "empty": self.problems.empty,
            "instance_events": self.problems.instance_events,
            "incompatible": incompatible,
            "duplicates": self.problems.duplicates,
            "refused_participants": self.refused_participants,
            "breaks": self.problems.breaks,
            "unread": self.unread.iter().map(Unread::json).collect::<Vec<_>>(),
            "unmarked": self.problems.unmarked,
            "dropped": lost + self.traffic.unpublished + self.undelivered.count(),
            "lost": self.summary.lost(),
            "recovered": self.summary.accounts.iter().map(|account| account.recovered).sum::<u64>(),
            "topics": topics.iter().zip(accounts).map(|(topic, account)| account.json(&topic.name)).collect::<Vec<_>>(),
            "undelivered": self.undelivered.json(),
            "unconfirmed": self.unconfirmed.json(),
            "spooled": self.spools.json(),
            "recorded": self.recorded.as_ref().map(FlightSummary::json),
            "outages": self.outages.iter().map(outage_json).collect::<Vec<_>>(),
            "pauses": pauses.iter().map(Pause::json).collect::<Vec<_>>(),
            "clock": self.clock.as_ref().map(ClockAccount::json),
            self.published: self.traffic.published,
            "seconds": self.seconds().unwrap_or(0.0),
            "flushed": self.flushed,
            "not_evaluated": self.summary.omitted().iter().map(Omission::json).collect::<Vec<_>>(),
            "left_out": omissions,
            "properties": properties.collect::<Vec<_>>(),
            "chains": chains.iter().map(ChainStatistics::json).collect::<Vec<_>>(),
            "alignment": alignment.as_ref().map(AlignmentStatistics::json),
        })
        .to_string()
    }

    /// Lines of text.
    pub fn text(&self, colour: bool) -> String {
        let Summary { counts, backwards, omissions, chains, alignment, .. } = &self.summary;
        let Problems { malformed, lost, incompatible, .. } = self.problems;
        let Traffic { received, published, unpublished, until_last, .. } = self.traffic;
        let mut text = format!(
            "received {}, checked {}, undecodable {}, dropped {}, {} {}",
            grouped(received),
            grouped(counts.checked),
            grouped(counts.undecodable + malformed),
            grouped(lost + unpublished + self.undelivered.count()),
            self.published,
            grouped(published),
        );
        for (count, what) in [
            (counts.refused, "refused"),
            (self.summary.lost(), "lost"),
            (counts.mistyped, "values of another type"),
            (*backwards, "times going backwards"),
            (incompatible, "publishers that do not match"),
            (self.problems.duplicates, "possible duplicates"),
            (self.refused_participants, "participants refused by DDS Security"),
            (self.problems.breaks, "broken connections"),
            (self.problems.unmarked, "messages of ROS 2 without a number"),
        ] {
            if count > 0 {
                text += &format!(", {what} {}", grouped(count));
            }
        }
        if let Some(seconds) = self.seconds() {
            text += &format!("; {seconds:.3} s since the first message");
            // Otherwise the run ended at an unknown time after the last message: no rate.
            if self.counted && seconds > 0.0 {
                let rate = ((until_last.max(1) - 1) as f64 / seconds).round() as u64;
                text += &format!(", {} messages/s", grouped(rate));
            }
        }
        if !self.flushed {
            text += "; NOT everything could be handed over in time";
        }
        for unread in &self.unread {
            text += &format!("\n  {}", unread.sentence());
        }
        let mut times = TimeText::default();
        for (topic, account) in self.summary.topics.iter().zip(&self.summary.accounts) {
            if let Some(sentence) = account.sentence(&topic.name, &mut |time| times.text(time)) {
                text += &format!("\n  {sentence}");
            }
        }
        let outages = self.outages.iter().map(|outage| outage_text(outage, &mut times));
        let mut at = TimeText::default();
        let clock = self.clock.as_ref().map_or_else(Vec::new, |clock| clock.sentences(&mut at));
        // Many leaps are summed up in one of these.
        let is_listed = |pause: &&Pause| {
            pause.cause != Cause::Simulation || !self.clock.as_ref().is_some_and(ClockAccount::has_many_leaps)
        };
        let pauses = self.summary.pauses.iter().filter(is_listed);
        let pauses = pauses.map(|pause| pause.sentence(&mut |time| at.text(time)));
        let verdicts = [self.undelivered.sentences(), self.unconfirmed.sentences(), self.spools.sentences()];
        for sentence in verdicts.into_iter().flatten().chain(outages).chain(clock).chain(pauses) {
            text += &format!("\n  {sentence}");
        }
        for sentence in self.recorded.iter().flat_map(FlightSummary::sentences) {
            text += &format!("\n  {sentence}");
        }
        let reasons = self.reasons();
        for (i, (property, statistics)) in
            self.spec.properties.iter().zip(&self.summary.properties).enumerate()
        {
            let (on, off) = match statistics.verdict() {
                Some(verdict) if colour => (colour_of(verdict), "\x1b[0m"),
                _ => ("", ""),
            };
            let verdict = statistics.verdict().map_or("no event", Verdict::as_str);
            text += &format!("\n  {on}{verdict:<12}{off}  {}", property.name);
            let judged = statistics.judgement().map(|judgement| judgement.text.clone());
            let violated = violations(statistics).map(|violated| {
                // The word at the beginning of the line is the last verdict.
                let is_last = statistics.verdict() == Some(Verdict::Violated);
                format!("{}{violated}", if is_last { "" } else { "so at the end, but " })
            });
            let remarks: Vec<String> = judged
                .filter(|text| !text.is_empty())
                .into_iter()
                .chain(violated)
                .chain(withheld_verdicts(statistics))
                .chain(least_robustness(statistics))
                .collect();
            if !remarks.is_empty() {
                text += &format!(": {}", remarks.join("; "));
            }
            for line in reasons.lines(i) {
                text += &format!("\n{line}");
            }
        }
        for chain in chains {
            text += &format!("\n{}", chain.text());
        }
        let alignment = alignment.as_ref().map_or_else(Vec::new, AlignmentStatistics::sentences);
        for sentence in omissions.iter().chain(&alignment) {
            text += &format!("\n  {sentence}");
        }
        for sentence in not_evaluated(&self.summary).into_iter().chain(unstamped(&self.summary)) {
            text += &format!("\n  {sentence}");
        }
        text
    }
}
