//! The pipeline of a live run: messages from the networks into a session, reports to their sinks, all on
//! the networks' own threads.

mod clock_account;
mod divided;
mod exchange;
mod gating;
mod joining;
mod notices;
mod observing;
mod receiving;
mod sending;
mod simulated;
mod slots;
mod timing;
mod withholding;
mod workers;

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::Sender;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError, TryLockError};
use std::time::{Duration, Instant};

use rondel_decode::schema::Schema;
use rondel_decode::{Encoding, MessageType};
use rondel_event::{Timestamp, TopicId, TypeIndex};
use rondel_net::adapter::{Publisher, now};
use rondel_runtime::{Clock, Notice, PublisherType, Session, Ticks};

use crate::live::foxglove::copies::Copies;
use crate::live::gate::Gates;
use crate::live::metrics::Meter;
use crate::live::tap::Tap;
use crate::recorder::{Channel, FlightRecorder, FlightSummary};
use crate::sinks::place::Place;
use crate::sinks::{Sink, Sinks, publishers, release};
use crate::warn;

pub use clock_account::ClockAccount;
use divided::Divided;
pub use exchange::{Exchange, Exchanged};
pub use joining::{Joined, MemberState};
use joining::{Noting, Seam};
use notices::Notices;
pub use notices::sentence;
#[cfg_attr(not(feature = "metrics"), allow(unused_imports))]
pub use observing::Observation;
pub use observing::Unresponsive;
use receiving::Refusal;
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
    /// Whether a property reads the owner of a topic.
    reads_owner: AtomicBool,
    /// Whether a record of Kafka was refused: see [`Receiver::refusal`](rondel_net::adapter::Receiver::refusal).
    has_refusal: AtomicBool,
    /// Number of outages of the networks of its topics that have ended.
    outages: AtomicU64,
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
    /// The last record of Kafka that was not evaluated: its subscription and the reason.
    refusal: Option<(TopicId, Refusal)>,
    /// The identities of messages, for another member of the group.
    noting: Option<Box<Noting>>,
    /// The messages at the seam to the state of another member.
    seam: Option<Box<Seam>>,
    /// Whether the session continues from the state of another member.
    has_joined: bool,
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
        let reads_owner = AtomicBool::new(session.reads_owner());
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
            refusal: None,
            noting: None,
            seam: None,
            has_joined: false,
        };
        Pipeline {
            state: Mutex::new(state),
            sooner: Condvar::new(),
            clock,
            place,
            ending: AtomicBool::new(false),
            batching: AtomicBool::new(batching),
            reads_owner,
            has_refusal: AtomicBool::new(false),
            outages: AtomicU64::new(0),
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

    /// Ends recording around violations; `None` if nothing is recorded.
    pub fn end_recording(&self, limit: Duration) -> Option<FlightSummary> {
        // Without the lock: the writer may be slow.
        let recorder = self.state().recorder.take();
        recorder.map(|recorder| recorder.end(limit))
    }

    /// Marks messages of these subscriptions as missed: see [`Session::cut_off`].
    pub fn cut_off(&self, slots: &[TopicId], from: Timestamp, until: Option<Timestamp>) {
        let state = &mut *self.state();
        state.disturb_seam("a network was disconnected meanwhile");
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

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests;
