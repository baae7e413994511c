//! The pipeline of a live run: messages from the networks into a session, reports to their sinks, all on
//! the networks' own threads.

mod clock_account;
mod divided;
mod exchange;
mod gating;
mod notices;
mod receiving;
mod simulated;
mod slots;
mod withholding;
mod workers;

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::Sender;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError, TryLockError};
use std::time::{Duration, Instant};

use rondel_decode::schema::Schema;
use rondel_decode::{Encoding, MessageType};
use rondel_event::{Timestamp, TopicId, TypeIndex};
use rondel_net::adapter::{Publisher, now};
use rondel_runtime::{Clock, Notice, Present, PublisherType, Session, Summary, Ticks, WorkerStatistics};

use crate::live::foxglove::copies::Copies;
use crate::live::gate::{GateFigures, Gates};
use crate::live::metrics::Meter;
use crate::live::tap::Tap;
use crate::recorder::{Channel, FlightRecorder, FlightSummary};
use crate::sinks::place::Place;
use crate::sinks::{self, Sink, Sinks, publishers, release};
use crate::warn;

pub use clock_account::ClockAccount;
use divided::Divided;
pub use exchange::{Exchange, Exchanged};
use notices::Notices;
pub use notices::sentence;
pub use simulated::{ClockReceiver, Simulated, clock};
use slots::Slots;

/// The number of the subscription to progress markers: that of no topic.
const PROGRESS: TopicId = TopicId(u32::MAX - 1);

/// Reason for the end of a run, or for an interruption of its wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stop {
    /// A signal, or the end of the demo.
    Requested,
    /// The requested number of messages was received.
    Count,
    /// The audit file cannot be written.
    Unaudited,
    /// A network was given up.
    GivenUp,
    /// A worker has panicked.
    Failed,
    /// The run is to be reloaded, and goes on.
    Reload,
}

/// Interval of querying whether a network knows which messages are missing, in nanoseconds.
const UNSURE: Ticks = 50_000_000;
/// The shortest pause between two calls of [`Session::poll`].
const FINEST: Duration = Duration::from_millis(1);

/// The counts of received and published messages.
#[derive(Clone, Copy, Debug, Default)]
pub struct Traffic {
    /// Messages received.
    pub received: u64,
    /// Verdicts or sets published or printed, counted per sink.
    pub published: u64,
    /// Verdicts or sets that could not be published.
    pub unpublished: u64,
    /// Time at which the first message was received.
    pub first: Option<Timestamp>,
    /// Time of the end of the run: at the last requested message, or later.
    pub last: Option<Timestamp>,
    /// Number of messages received by then, if the run ended with the last requested message.
    pub until_last: u64,
}

/// A copy of everything that a pipeline counts and measures.
#[cfg_attr(not(feature = "metrics"), allow(dead_code))]
#[derive(Clone, Debug)]
pub struct Observation {
    /// The statistics of the session.
    pub summary: Summary,
    /// The counts of received and published messages.
    pub traffic: Traffic,
    /// Measurements.
    pub meter: Meter,
    /// The state that properties hold.
    pub present: Present,
    /// The state of each gate.
    pub gates: Vec<GateFigures>,
    /// The statistics of workers, if there are any.
    pub workers: Option<WorkerStatistics>,
}

/// The evaluating thread does not release the lock in time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Unresponsive;

/// Receives samples, evaluates them and publishes verdicts.
///
/// One lock guards everything: verdicts leave in the order of the events, and a slow sink holds the source
/// back. The pipeline has no queue: the networks on both sides have bounded ones. Another thread evaluates
/// the verdicts that time alone decides ([`Pipeline::keep_time`]), under the same lock.
pub struct Pipeline {
    state: Mutex<State>,
    /// Wakes [`Pipeline::keep_time`] for a deadline before the one that it waits for.
    sooner: Condvar,
    clock: Arc<dyn Clock>,
    /// Place of the evaluating thread.
    place: Arc<Place>,
    /// Set when the run ends: further messages are not accepted, or they would keep the lock busy.
    ending: AtomicBool,
    /// Whether a sink may hold verdicts back until they are released.
    batching: AtomicBool,
    stop_after: u64,
    stop: Sender<Stop>,
}

struct State {
    /// The session; that of one partition if the run is divided.
    session: Session,
    /// The sessions of other partitions, of a member of a consumer group.
    divided: Option<Box<Divided>>,
    /// The topic of the session for each subscription.
    slots: Slots,
    /// The name and the address of each topic.
    topics: Vec<String>,
    sinks: Sinks,
    /// The sinks of messages that were put in order, of a synchronizer.
    released: Vec<Sink>,
    notices: Notices,
    /// The gates, which pass messages on.
    gates: Option<Box<Gates>>,
    /// The recorder of messages around violations.
    recorder: Option<FlightRecorder>,
    /// Measurements for metrics, if there are any.
    meter: Option<Box<Meter>>,
    /// Copies of messages for viewers of the page, if there is one.
    tap: Option<Arc<Tap>>,
    /// Copies of verdicts and messages for Foxglove, if it is served.
    copies: Option<Arc<Copies>>,
    /// The deadline that [`Pipeline::keep_time`] waits for.
    armed: Option<Ticks>,
    /// The simulation that sets the time, if one does.
    simulated: Option<Simulated>,
    /// Types that were resolved after the run began.
    resolved: Vec<(TopicId, Arc<MessageType>)>,
    /// Further types of publishers.
    further: Vec<(TopicId, PublisherType)>,
    ended: bool,
    traffic: Traffic,
    undecodable: u64,
}

/// The parts of a [`Pipeline`].
pub struct Parts {
    /// The session.
    pub session: Session,
    /// The clock that it reads.
    pub clock: Arc<dyn Clock>,
    /// The simulation that sets the clock, if one does.
    pub simulated: Option<Simulated>,
    /// The name of each topic, with its address, for messages.
    pub topics: Vec<String>,
    /// The sinks of verdicts.
    pub sinks: Sinks,
    /// The sinks of messages that were put in order, of a synchronizer.
    pub released: Vec<Sink>,
    /// The sinks of notices about late, lost and refused messages.
    pub notices: Vec<Sink>,
    /// The gates, which pass messages on; `None` where there are none.
    pub gates: Option<Box<Gates>>,
    /// The recorder of messages around violations.
    pub recorder: Option<FlightRecorder>,
    /// Measurements for metrics; `None` where nothing is measured.
    pub meter: Option<Box<Meter>>,
    /// Copies of messages for viewers of the page; `None` without a page.
    pub tap: Option<Arc<Tap>>,
    /// Copies of verdicts and messages for Foxglove; `None` unless it is served.
    pub copies: Option<Arc<Copies>>,
    /// Whether a sink may hold verdicts back until they are released.
    pub batching: bool,
    /// The number of messages after which [`Stop::Count`] is sent.
    pub stop_after: Option<u64>,
    /// The channel for the reason to stop.
    pub stop: Sender<Stop>,
}

impl Pipeline {
    /// Creates a pipeline of these parts.
    pub fn new(parts: Parts) -> Pipeline {
        let Parts {
            session,
            clock,
            simulated,
            topics,
            sinks,
            released,
            notices,
            gates,
            recorder,
            meter,
            tap,
            copies,
            batching,
            stop_after,
            stop,
        } = parts;
        let place = sinks.place();
        let state = State {
            session,
            divided: None,
            slots: Slots::new(topics.len()),
            topics,
            sinks,
            released,
            notices: Notices::new(notices),
            gates,
            recorder,
            meter,
            tap,
            copies,
            armed: None,
            simulated,
            resolved: Vec::new(),
            further: Vec::new(),
            ended: false,
            traffic: Traffic::default(),
            undecodable: 0,
        };
        Pipeline {
            state: Mutex::new(state),
            sooner: Condvar::new(),
            clock,
            place,
            ending: AtomicBool::new(false),
            batching: AtomicBool::new(batching),
            stop_after: stop_after.unwrap_or(u64::MAX),
            stop,
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        // A panic elsewhere does not make the counts wrong.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether a sink may hold verdicts back until they are released.
    fn batches(&self) -> bool {
        self.batching.load(Ordering::Relaxed)
    }

    /// Resolves the message type of the topic of a subscription, which was not known when the run began.
    ///
    /// # Errors
    /// The reason why the session cannot read the messages.
    pub fn resolve_type(&self, slot: TopicId, of: &Arc<MessageType>, channel: Channel) -> Result<(), String> {
        let state = &mut *self.state();
        let topic = state.slots.topic(slot).ok_or("the topic was removed")?;
        state.session.resolve_type(topic, of).map_err(|error| error.to_string())?;
        state.resolved.push((topic, Arc::clone(of)));
        if let Some(recorder) = &mut state.recorder {
            recorder.resolve_topic(slot, channel);
        }
        Ok(())
    }

    /// Adds a further type that publishers on a subscription have. Returns the index of the type; `None` if its messages
    /// cannot be decoded.
    fn add_type(&self, slot: TopicId, publisher: &str, schema: &Schema) -> Option<TypeIndex> {
        let message_type = Arc::new(MessageType::Cdr(schema.clone()));
        let of = PublisherType {
            encoding: Encoding::Cdr,
            message_type: Some(Arc::clone(&message_type)),
            publisher: publisher.to_owned(),
        };
        let state = &mut *self.known_slot(slot);
        let topic = state.slots.topic(slot)?;
        let added = state.session.add_type(topic, of.clone());
        let of_type = added.map_err(|error| {
            let name = state.topics.get(topic.index()).map_or("", |name| name);
            warn(&format!("messages of a publisher on {name} cannot be decoded: {error}"));
        });
        let of_type = of_type.ok()?;
        state.further.push((topic, of));
        if let Some(recorder) = &mut state.recorder {
            recorder.add_type(slot, of_type, &message_type);
        }
        state.emit();
        Some(of_type)
    }

    /// The number for the subscription to progress markers.
    pub fn progress(&self) -> TopicId {
        PROGRESS
    }

    /// The statistics so far.
    pub fn summary(&self) -> (Summary, Traffic) {
        self.state().summary()
    }

    /// Returns [`Pipeline::summary`]; `None` if the evaluating thread holds the lock for longer than `limit`.
    pub fn summary_within(&self, limit: Duration) -> Option<(Summary, Traffic)> {
        self.state_within(limit).map(|mut state| state.summary())
    }

    /// Calls a function with the statistics and the present state of the properties, between two messages; `None` if the
    /// evaluating thread holds the lock for longer than `limit`.
    #[cfg(feature = "foxglove")]
    pub fn look_within<T>(&self, limit: Duration, look: impl FnOnce(&Summary, &Present) -> T) -> Option<T> {
        let mut state = self.state_within(limit)?;
        let (summary, _) = state.summary();
        Some(look(&summary, &state.present()))
    }

    /// Returns a copy of everything that is counted and measured; `None` if the evaluating thread holds the lock for
    /// longer than `limit`, or nothing is measured.
    pub fn observed_within(&self, limit: Duration) -> Option<Observation> {
        let mut state = self.state_within(limit)?;
        let meter = Meter::clone(state.meter.as_ref()?);
        // Before the messages that wait are evaluated for the statistics.
        let workers = state.session.workers();
        let (summary, traffic) = state.summary();
        let (present, gates) = (state.present(), state.gate_figures());
        Some(Observation { summary, traffic, meter, present, gates, workers })
    }

    /// Returns the time of reception of the first message since the networks were last idle; `None` while they are.
    ///
    /// # Errors
    /// The evaluating thread holds the lock for longer than `limit`.
    pub fn behind_within(&self, limit: Duration) -> Result<Option<Instant>, Unresponsive> {
        let state = self.state_within(limit).ok_or(Unresponsive)?;
        Ok(state.meter.as_ref().and_then(|meter| meter.behind_since()))
    }

    /// Whether the run is ending.
    pub fn is_ending(&self) -> bool {
        self.ending.load(Ordering::Relaxed)
    }

    /// Takes the lock; `None` if the evaluating thread holds it for longer than `limit`.
    fn state_within(&self, limit: Duration) -> Option<MutexGuard<'_, State>> {
        let deadline = Instant::now() + limit;
        loop {
            match self.state.try_lock() {
                Ok(state) => return Some(state),
                Err(TryLockError::Poisoned(poisoned)) => return Some(poisoned.into_inner()),
                Err(TryLockError::WouldBlock) if Instant::now() >= deadline => return None,
                Err(TryLockError::WouldBlock) => std::thread::sleep(FINEST),
            }
        }
    }

    /// Whether a thread evaluates now.
    pub fn is_busy(&self) -> bool {
        matches!(self.state.try_lock(), Err(TryLockError::WouldBlock))
    }

    /// Place of the evaluating thread.
    pub fn place(&self) -> &Place {
        &self.place
    }

    /// Returns the statistics of `/clock` until the end of the run, if a simulation sets the time.
    pub fn clock_account(&self) -> Option<ClockAccount> {
        self.state().clock_account().cloned()
    }

    /// Ends the run and returns the publishers, to be flushed. Without `continues`, the trace ends too, with verdicts
    /// about waiting messages and open obligations; with it another run may continue, and its value is whether all
    /// received messages were processed. `None` when a sink blocks for longer than `limit`.
    pub fn end(&self, continues: Option<bool>, limit: Duration) -> Option<Vec<Arc<dyn Publisher>>> {
        self.ending.store(true, Ordering::Relaxed);
        let mut state = self.state_within(limit)?;
        state.each(|state| _ = state.session.poll());
        state.end_gates();
        let mut last = Vec::new();
        state.each(|state| {
            match continues {
                None => state.session.finish(),
                Some(is_whole) => {
                    state.session.flush();
                    if is_whole {
                        state.session.end_part();
                    }
                }
            }
            state.emit();
            last.extend(state.session.losses());
        });
        state.end_clock();
        let inner = &mut *state;
        let about_actions = inner.sinks.look_at_actions(true);
        inner.notices.take(last.into_iter().chain(about_actions), &mut inner.sinks.stdout);
        inner.notices.publish_held(&mut inner.sinks.stdout);
        state.traffic.last.get_or_insert_with(now);
        state.ended = true;
        self.sooner.notify_all();
        let inner = &mut *state;
        let mut all = inner.sinks.close(&inner.session);
        all.extend(inner.gates.iter_mut().flat_map(|gates| gates.close()));
        all.extend(publishers(std::mem::take(&mut state.notices.sinks)));
        all.extend(publishers(std::mem::take(&mut state.released)));
        Some(all)
    }

    /// Marks the process as running: see [`Session::alive`].
    pub fn alive(&self) {
        let state = &mut *self.state();
        state.look_for_clock();
        let mut slept = false;
        state.each(|state| {
            slept |= state.session.alive();
            state.emit();
        });
        if slept {
            // A thread that waits for a deadline does not notice that the machine slept.
            self.sooner.notify_one();
        }
        // Sinks read statistics.
        state.session.collect();
        self.end_if_failed(state);
        state.emit();
        state.show_gates();
        if state.sinks.tick(&state.session, false) && self.batches() {
            state.sinks.release();
        }
        if let Some(recorder) = &mut state.recorder {
            recorder.tick(now());
        }
        if state.notices.is_due(Instant::now()) {
            state.notices.publish_held(&mut state.sinks.stdout);
            state.notices.sinks.iter().for_each(release);
        }
    }

    /// Ends recording around violations; `None` if nothing is recorded.
    pub fn end_recording(&self, limit: Duration) -> Option<FlightSummary> {
        // Without the lock: the writer may be slow.
        let recorder = self.state().recorder.take();
        recorder.map(|recorder| recorder.end(limit))
    }

    /// Marks messages of these subscriptions as missed: see [`Session::cut_off`].
    pub fn cut_off(&self, slots: &[TopicId], from: Timestamp, until: Option<Timestamp>) {
        let state = &mut *self.state();
        let is_read = |slot: &TopicId| state.slots.topic(*slot).is_some();
        let known: Vec<TopicId> = slots.iter().copied().filter(is_read).collect();
        if known.is_empty() && !slots.is_empty() {
            return;
        }
        if let Some(recorder) = &mut state.recorder {
            recorder.cut_off(&known, from, until);
        }
        let topics: Vec<TopicId> = known.iter().filter_map(|slot| state.slots.topic(*slot)).collect();
        state.each(|state| {
            state.session.cut_off(&topics, from, until);
            state.emit();
        });
    }

    /// Takes notices from outside of the session, and those of lost messages.
    pub fn report_losses(&self, mut notices: Vec<Notice>) {
        let state = &mut *self.state();
        // Sinks read statistics.
        state.session.collect();
        let mut losses = Vec::new();
        state.each(|state| losses.extend(state.session.losses()));
        let about_sinks = state.sinks.look_at_driven(&state.session, &notices);
        notices.extend(about_sinks);
        notices.extend(state.sinks.look_at_actions(false));
        if losses.is_empty() && notices.is_empty() {
            return;
        }
        state.notices.take(losses.into_iter().chain(notices), &mut state.sinks.stdout);
        if self.batches() {
            state.notices.sinks.iter().for_each(release);
        }
    }

    /// Returns a snapshot of the session with these marks, from which another run can continue.
    pub fn snapshot(&self, marks: Vec<u8>) -> Vec<u8> {
        let mut state = self.state();
        self.place.saving();
        state.session.attach(marks);
        let bytes = state.session.snapshot("");
        // Taking a snapshot evaluates all messages.
        state.emit();
        if self.batches() {
            state.release();
        }
        bytes
    }

    /// The number of messages received so far.
    pub fn received(&self) -> u64 {
        self.state().traffic.received
    }

    /// Whether time alone decides verdicts, so that a thread must [keep time](Pipeline::keep_time).
    pub fn is_timed(&self) -> bool {
        self.state().session.is_timed()
    }

    /// Evaluates the verdicts that time alone decides, until the pipeline has ended. Runs on a thread of its own,
    /// which sleeps until the next deadline. While `is_unsure`, due verdicts wait: a network does not know yet whether
    /// messages are missing.
    pub fn keep_time(&self, is_unsure: impl Fn() -> bool) {
        let mut state = self.state();
        while !state.ended {
            let now = self.clock.ticks();
            // Deadlines within the shortest pause are evaluated, too.
            let soon = now.saturating_add(FINEST.as_nanos() as i64);
            let waits = state.due().is_some_and(|due| due <= soon) && is_unsure();
            let due = if waits { Some(now.saturating_add(UNSURE)) } else { state.poll() };
            let is_set = state.is_simulated() && !waits;
            if self.batches() {
                state.release();
            }
            state.armed = due;
            state = match due {
                // Setting the clock wakes this thread.
                Some(due) if is_set && due > self.clock.ticks() => {
                    self.sooner.wait(state).unwrap_or_else(PoisonError::into_inner)
                }
                None => self.sooner.wait(state).unwrap_or_else(PoisonError::into_inner),
                Some(due) => {
                    let left = due.saturating_sub(self.clock.ticks());
                    let left = Duration::from_nanos(u64::try_from(left).unwrap_or(0)).max(FINEST);
                    self.sooner.wait_timeout(state, left).unwrap_or_else(PoisonError::into_inner).0
                }
            };
        }
    }

    /// Evaluates all messages, and wakes [`Pipeline::keep_time`] for an earlier deadline.
    fn flush(&self, state: &mut State) {
        state.session.flush();
        self.end_if_failed(state);
        state.emit();
        if let Some(meter) = &mut state.meter {
            meter.evaluated();
        }
        if let Some(due) = state.session.due()
            && state.armed.is_none_or(|armed| due < armed)
        {
            // Once is enough.
            state.armed = Some(due);
            self.sooner.notify_one();
        }
    }
}

impl State {
    /// The statistics so far.
    fn summary(&mut self) -> (Summary, Traffic) {
        self.session.collect();
        let mut traffic = self.traffic;
        traffic.published += self.sinks.verdicts;
        traffic.published = traffic.published.saturating_sub(self.sinks.stdout.withdrawn());
        traffic.unpublished += self.sinks.unpublished;
        (self.all(), traffic)
    }

    /// Evaluates all messages and the verdicts that time has decided. Returns the next deadline.
    fn poll(&mut self) -> Option<Ticks> {
        let mut first = None;
        self.each(|state| {
            let due = state.session.poll();
            state.emit();
            first = first.into_iter().chain(due).min();
        });
        first
    }

    /// Lets gates look at the session, and sends reports, notices and released messages of it to their sinks.
    #[inline]
    fn emit(&mut self) {
        // Before verdicts are sent, which may take longer.
        if let Some(gates) = &mut self.gates {
            gates.look(&self.session);
        }
        self.send();
    }

    /// Sends reports, notices and released messages of the session to their sinks. Gates have looked at the session since
    /// its last evaluation.
    #[inline]
    fn send(&mut self) {
        if self.session.has_reports() {
            if self.sinks.withholds() {
                return self.withhold();
            }
            let copies = self.copies.as_deref().filter(|copies| copies.wants_verdicts());
            match (&mut self.recorder, &mut self.meter, copies) {
                (None, None, None) => self.sinks.take(self.session.reports()),
                (recorder, meter, copies) => {
                    self.sinks.take(self.session.reports().inspect(|report| {
                        if let Some(recorder) = recorder.as_mut() {
                            recorder.take(report);
                        }
                        if let Some(meter) = meter.as_mut() {
                            meter.see(report);
                        }
                        if let Some(copies) = copies {
                            copies.verdict(report);
                        }
                    }));
                }
            }
            self.sinks.take_unmuted(self.session.unmuted());
            // Sending may have waited for a consumer.
            self.session.alive();
        }
        self.send_others();
    }

    /// Sends everything but reports to its sinks.
    #[inline]
    fn send_others(&mut self) {
        if self.session.has_notices() {
            // Gaps in the numbers of publishers are reported as `lost`, whatever the route.
            let notices = self.session.notices().filter(|notice| notice.kind != "gap");
            self.notices.take(notices, &mut self.sinks.stdout);
        }
        if self.gates.as_ref().is_some_and(|gates| gates.has_changes()) {
            self.report_gates();
        }
        if !self.released.is_empty() {
            while let Some(line) = self.session.released() {
                let (taken, failure) = sinks::publish(&self.released, line, &mut self.sinks.stdout);
                self.traffic.published += taken;
                if let Some(error) = failure {
                    self.traffic.unpublished += 1;
                    if self.traffic.unpublished == 1 {
                        warn(&format!("cannot publish a set: {error}; further ones are only counted"));
                    }
                }
            }
        }
    }

    /// Releases payloads that publishers hold back to fill a packet.
    fn release(&self) {
        self.sinks.release();
        self.notices.sinks.iter().chain(&self.released).for_each(release);
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests;
