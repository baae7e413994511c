//! The pipeline of a live run: messages from the networks into a session, reports to their sinks, all on
//! the networks' own threads.

mod clock_account;
mod simulated;

use std::collections::{HashMap, VecDeque};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::Sender;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError, TryLockError};
use std::time::{Duration, Instant};

use rondel_decode::schema::Schema;
use rondel_decode::{Encoding, MessageType, cdr};
use rondel_event::{NameId, Timestamp, TopicId, TypeIndex};
use rondel_net::adapter::{Change, Publisher, Receiver, Sample, now};
use rondel_runtime::text::counted;
use rondel_runtime::{Clock, DecodeError, Notice, PublisherType, Session, Stamp, Summary, Ticks, TopicNames};

use crate::console::Console;
use crate::recorder::{Channel, FlightRecorder, FlightSummary};
use crate::sinks::{self, Sink, Sinks, publishers, release};
use crate::time_text::TimeText;
use crate::warn;
use crate::watchdog::Place;

pub use clock_account::ClockAccount;
pub use simulated::{ClockReceiver, Simulated, clock};

/// Why a run ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stop {
    /// By a signal, or because the demo is over.
    Asked,
    /// The wanted number of messages was received.
    Count,
}

/// How often to ask whether a network knows what is missing, in nanoseconds.
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
    /// When the first message was received.
    pub first: Option<Timestamp>,
    /// When the run ended: with the last wanted message, or later.
    pub last: Option<Timestamp>,
    /// The number of messages received by then, if the run ended with the last wanted message.
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
    /// Where the thread that evaluates is.
    place: Arc<Place>,
    /// Set when the run ends: messages that still come are not taken, or they would keep the lock busy.
    ending: AtomicBool,
    batching: bool,
    stop_after: u64,
    stop: Sender<Stop>,
    /// The number of progress markers among the topics: the one after the last topic.
    progress: TopicId,
    /// The names of each topic whose address has parameters.
    names: Vec<Option<Arc<TopicNames>>>,
}

struct State {
    session: Session,
    /// The name and the address of each topic.
    topics: Vec<String>,
    sinks: Sinks,
    /// The sinks of messages that were put in order, of a synchronizer.
    released: Vec<Sink>,
    notices: Notices,
    /// What is recorded around violations.
    recorder: Option<FlightRecorder>,
    /// The deadline that [`Pipeline::keep_time`] waits for.
    armed: Option<Ticks>,
    /// The simulation whose time it is, if it is one's.
    simulated: Option<Simulated>,
    /// The types that were not known when the run began.
    learnt: Vec<(TopicId, Arc<MessageType>)>,
    /// The further types of publishers.
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
    /// The names of each topic whose address has parameters.
    pub names: Vec<Option<Arc<TopicNames>>>,
    /// The sinks of verdicts.
    pub sinks: Sinks,
    /// The sinks of messages that were put in order, of a synchronizer.
    pub released: Vec<Sink>,
    /// The sinks of notices about late, lost and refused messages.
    pub notices: Vec<Sink>,
    /// What records messages around violations.
    pub recorder: Option<FlightRecorder>,
    /// Whether a sink may hold verdicts back until they are released.
    pub batching: bool,
    /// The number of messages after which [`Stop::Count`] is sent.
    pub stop_after: Option<u64>,
    /// The channel for the reason to stop.
    pub stop: Sender<Stop>,
}

impl Pipeline {
    /// A pipeline of these parts.
    pub fn new(parts: Parts) -> Pipeline {
        let Parts {
            session,
            clock,
            simulated,
            topics,
            names,
            sinks,
            released,
            notices,
            recorder,
            batching,
            stop_after,
            stop,
        } = parts;
        let progress = TopicId(topics.len() as u32);
        let place = sinks.place();
        let state = State {
            session,
            topics,
            sinks,
            released,
            notices: Notices { sinks: notices, reported: HashMap::new(), held: VecDeque::new(), since: None },
            recorder,
            armed: None,
            simulated,
            learnt: Vec::new(),
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
            batching,
            stop_after: stop_after.unwrap_or(u64::MAX),
            stop,
            progress,
            names,
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        // A panic elsewhere does not make the counts wrong.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes over the type of the messages of a topic, which was not known when the run began.
    ///
    /// # Errors
    /// Why the session cannot read them.
    pub fn learn(&self, topic: TopicId, of: &Arc<MessageType>, channel: Channel) -> Result<(), String> {
        let state = &mut *self.state();
        state.session.resolve_type(topic, of).map_err(|error| error.to_string())?;
        state.learnt.push((topic, Arc::clone(of)));
        if let Some(recorder) = &mut state.recorder {
            recorder.learn(topic, channel);
        }
        Ok(())
    }

    /// Takes over a further type that publishers of a topic have. Returns the type of its messages; `None` if they cannot be
    /// decoded.
    fn add_type(&self, topic: TopicId, publisher: &str, schema: &Schema) -> Option<TypeIndex> {
        let message_type = Arc::new(MessageType::Cdr(schema.clone()));
        let of = PublisherType {
            encoding: Encoding::Cdr,
            message_type: Some(Arc::clone(&message_type)),
            publisher: publisher.to_owned(),
        };
        let state = &mut *self.state();
        let added = state.session.add_type(topic, of.clone());
        let of_type = added.map_err(|error| {
            let name = state.topics.get(topic.index()).map_or("", |name| name);
            warn(&format!("messages of a publisher on {name} cannot be decoded: {error}"));
        });
        let of_type = of_type.ok()?;
        state.further.push((topic, of));
        if let Some(recorder) = &mut state.recorder {
            recorder.add_type(topic, of_type, &message_type);
        }
        state.emit();
        Some(of_type)
    }

    /// The topic number for the subscription to progress markers.
    pub fn progress(&self) -> TopicId {
        self.progress
    }

    /// The statistics so far.
    pub fn summary(&self) -> (Summary, Traffic) {
        let state = self.state();
        let mut traffic = state.traffic;
        traffic.published += state.sinks.verdicts;
        traffic.published = traffic.published.saturating_sub(state.sinks.stdout.withdrawn());
        traffic.unpublished += state.sinks.unpublished;
        (state.all(), traffic)
    }

    /// As [`Pipeline::summary`], unless the thread that evaluates does not let it within `limit`.
    pub fn summary_within(&self, limit: Duration) -> Option<(Summary, Traffic)> {
        let deadline = Instant::now() + limit;
        while self.is_busy() {
            if Instant::now() >= deadline {
                return None;
            }
            std::thread::sleep(FINEST);
        }
        Some(self.summary())
    }

    /// Whether a thread evaluates now.
    pub fn is_busy(&self) -> bool {
        matches!(self.state.try_lock(), Err(TryLockError::WouldBlock))
    }

    /// Where the thread that evaluates is.
    pub fn place(&self) -> &Place {
        &self.place
    }

    /// What came on `/clock` until the run ended, if its time is that of a simulation.
    pub fn clock_account(&self) -> Option<ClockAccount> {
        self.state().clock_account().cloned()
    }

    /// Ends the run and returns the publishers, to be flushed. Without `continues`, the recording ends too, with
    /// verdicts about waiting messages and open obligations; with it another run may continue, and it says whether all
    /// messages that came are taken. `None` when a sink blocks for longer than `limit`.
    pub fn end(&self, continues: Option<bool>, limit: Duration) -> Option<Vec<Arc<dyn Publisher>>> {
        let deadline = Instant::now() + limit;
        self.ending.store(true, Ordering::Relaxed);
        let mut state = loop {
            match self.state.try_lock() {
                Ok(state) => break state,
                Err(TryLockError::Poisoned(poisoned)) => break poisoned.into_inner(),
                Err(TryLockError::WouldBlock) if Instant::now() >= deadline => return None,
                Err(TryLockError::WouldBlock) => std::thread::sleep(Duration::from_millis(2)),
            }
        };
        state.session.poll();
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
        state.end_clock();
        let inner = &mut *state;
        inner.notices.take(inner.session.losses().into_iter(), &mut inner.sinks.stdout);
        inner.notices.publish_held(&mut inner.sinks.stdout);
        state.traffic.last.get_or_insert_with(now);
        state.ended = true;
        self.sooner.notify_all();
        let inner = &mut *state;
        let mut all = inner.sinks.close(&inner.session);
        all.extend(publishers(std::mem::take(&mut state.notices.sinks)));
        all.extend(publishers(std::mem::take(&mut state.released)));
        Some(all)
    }

    /// Notes that the process runs: see [`Session::alive`].
    pub fn alive(&self) {
        let state = &mut *self.state();
        state.look_for_clock();
        if state.session.alive() {
            // Whoever waits for a deadline does not notice how long the machine slept.
            self.sooner.notify_one();
        }
        state.emit();
        if state.sinks.tick(&state.session, false) && self.batching {
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
        // Without the lock: the writer takes its time.
        let recorder = self.state().recorder.take();
        recorder.map(|recorder| recorder.end(limit))
    }

    /// Notes that messages of these topics were missed: see [`Session::cut_off`].
    pub fn cut_off(&self, topics: &[TopicId], from: Timestamp, until: Option<Timestamp>) {
        let state = &mut *self.state();
        if let Some(recorder) = &mut state.recorder {
            recorder.cut_off(topics, from, until);
        }
        state.session.cut_off(topics, from, until);
        state.emit();
    }

    /// Takes notices from outside of the session, and those of lost messages.
    pub fn report_losses(&self, notices: Vec<Notice>) {
        let state = &mut *self.state();
        let losses = state.session.losses();
        if losses.is_empty() && notices.is_empty() {
            return;
        }
        state.notices.take(losses.into_iter().chain(notices), &mut state.sinks.stdout);
        if self.batching {
            state.notices.sinks.iter().for_each(release);
        }
    }

    /// A snapshot of the session with these marks, from which another run can continue.
    pub fn snapshot(&self, marks: Vec<u8>) -> Vec<u8> {
        let mut state = self.state();
        self.place.saving();
        state.session.attach(marks);
        let bytes = state.session.snapshot("");
        // Taking a snapshot evaluates all messages.
        state.emit();
        if self.batching {
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
    /// which sleeps until the next deadline. While `is_unsure`, what is due waits: a network has not said yet whether
    /// messages are missing.
    pub fn keep_time(&self, is_unsure: impl Fn() -> bool) {
        let mut state = self.state();
        while !state.ended {
            let now = self.clock.ticks();
            // What becomes due in the next moment is evaluated, too.
            let soon = now.saturating_add(FINEST.as_nanos() as i64);
            let waits = state.session.due().is_some_and(|due| due <= soon) && is_unsure();
            let due = if waits { Some(now.saturating_add(UNSURE)) } else { state.poll() };
            let is_set = state.is_simulated() && !waits;
            if self.batching {
                state.release();
            }
            state.armed = due;
            state = match due {
                // Whoever sets the clock wakes this thread.
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
        state.emit();
        if let Some(due) = state.session.due()
            && state.armed.is_none_or(|armed| due < armed)
        {
            // Once is enough.
            state.armed = Some(due);
            self.sooner.notify_one();
        }
    }
}

impl Receiver for Pipeline {
    fn receive(&self, topic: TopicId, samples: &[Sample<'_>]) {
        if self.ending.load(Ordering::Relaxed) {
            return;
        }
        let mut state = self.state();
        if topic == self.progress {
            samples.iter().for_each(|sample| state.session.progress(sample.payload));
            return;
        }
        let before = state.traffic.received;
        self.place.evaluating(before);
        state.receive(topic, samples);
        if before < self.stop_after && state.traffic.received >= self.stop_after {
            self.flush(&mut state);
            state.traffic.last = Some(now());
            state.traffic.until_last = state.traffic.received;
            // Nobody waits any more when the run is ending already.
            let _ = self.stop.send(Stop::Count);
        }
    }

    fn wants_names(&self, topic: TopicId) -> bool {
        self.names.get(topic.index()).is_some_and(Option::is_some)
    }

    fn number(&self, topic: TopicId, name: &str) -> Option<NameId> {
        self.names.get(topic.index())?.as_ref()?.number(name)
    }

    fn idle(&self) {
        let mut state = self.state();
        self.flush(&mut state);
        if self.batching {
            state.release();
        }
    }

    fn missed(&self, topic: TopicId, from: Timestamp, until: Option<Timestamp>) {
        if topic != self.progress {
            self.cut_off(&[topic], from, until);
        }
    }

    fn changed(&self, topic: TopicId, change: Change<'_>, time: Timestamp) {
        let (event, holds) = change.event();
        if topic == self.progress || self.ending.load(Ordering::Relaxed) {
            return;
        }
        let mut state = self.state();
        let time = if state.is_simulated() { self.clock.now() } else { time };
        // No message need follow, so that it is evaluated at once.
        let is_read = match change.instance().and_then(|instance| instance.payload()) {
            Some(instance) => state.session.instance_event(topic, event, instance, time),
            None => state.session.event(topic, event, holds, time),
        };
        if is_read {
            self.flush(&mut state);
            if self.batching {
                state.release();
            }
        }
    }

    fn wants_types(&self, topic: TopicId) -> bool {
        topic < self.progress
    }

    fn further_type(&self, topic: TopicId, publisher: &str, schema: &Schema) -> Option<TypeIndex> {
        self.add_type(topic, publisher, schema)
    }

    fn wants_idle(&self) -> bool {
        true
    }
}

impl State {
    fn receive(&mut self, topic: TopicId, samples: &[Sample<'_>]) {
        self.traffic.received += samples.len() as u64;
        // Networks know the time of day.
        let is_simulated = self.is_simulated();
        for sample in samples {
            let mut arrival = sample.known_arrival();
            if let Some(recorder) = &mut self.recorder {
                // The session need not read the clock again.
                let time = sample.arrival();
                arrival = Some(time);
                recorder.keep(topic, sample, time);
            }
            if is_simulated {
                arrival = None;
            }
            let stamp = Stamp {
                source: sample.source_time,
                arrival,
                origin: sample.origin,
                name: sample.name,
                of_type: sample.of_type,
            };
            if let Err(error) = self.session.push(topic, stamp, sample.payload) {
                self.undecodable(topic, sample.payload, error);
            }
        }
        self.emit();
        if self.traffic.first.is_none() {
            // The clock is not read again before the end: that costs more than a step.
            self.traffic.first = samples.first().map(Sample::arrival);
        }
    }

    /// Evaluates all messages and what time has decided. Returns the next deadline.
    fn poll(&mut self) -> Option<Ticks> {
        let due = self.session.poll();
        self.emit();
        due
    }

    /// Sends reports, notices and released messages of the session to their sinks.
    #[inline]
    fn emit(&mut self) {
        if self.session.has_reports() {
            match &mut self.recorder {
                None => self.sinks.take(self.session.reports()),
                Some(recorder) => {
                    self.sinks.take(self.session.reports().inspect(|report| recorder.take(report)));
                }
            }
            // A consumer may have been waited for.
            self.session.alive();
        }
        if self.session.has_notices() {
            // Gaps in the numbers of publishers are reported as `lost`, whatever the route.
            let notices = self.session.notices().filter(|notice| notice.kind != "gap");
            self.notices.take(notices, &mut self.sinks.stdout);
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

    /// Warns of the first message that cannot be decoded.
    #[cold]
    fn undecodable(&mut self, topic: TopicId, payload: &[u8], error: DecodeError) {
        self.undecodable += 1;
        if self.undecodable > 1 {
            return;
        }
        let is_json = matches!(error, DecodeError::Json(_));
        let hint = if is_json && cdr::is_encapsulated(payload) {
            "; it begins like CDR: `encoding: cdr` reads messages by their type, `encoding: cdr_string` JSON that a bridge \
             passes on"
        } else {
            ""
        };
        let what = match error.is_about_time() {
            true => "its time cannot be used",
            false if is_json => "it is not JSON",
            false => "it is not a message of its type",
        };
        let shown = if is_json { format!(": {}", excerpt(payload, error.offset())) } else { String::new() };
        warn(&format!(
            "cannot decode a message of {} bytes on {}: {what} ({error}){shown}{hint}; further ones are only counted",
            payload.len(),
            self.topics[topic.index()],
        ));
    }

    /// Releases payloads that publishers hold back to fill a packet.
    fn release(&self) {
        self.sinks.release();
        self.notices.sinks.iter().chain(&self.released).for_each(release);
    }
}

/// Sends notices to their sinks, and the first of each kind and topic to standard error; of those that recur one every
/// ten seconds.
struct Notices {
    sinks: Vec<Sink>,
    /// When the last was shown, and how many were not since.
    reported: HashMap<(&'static str, u32), (Instant, u64)>,
    /// Notices that wait for their consumers.
    held: VecDeque<String>,
    /// The end of a stop of the monitor, while notices wait.
    since: Option<Instant>,
}

/// A stop of the monitor from which on its consumers may have taken it for gone, in seconds. Networks have leases of
/// 10 s, of which some may have passed before.
const FORGOTTEN: f64 = 5.0;
/// How long after such a stop the consumers may take to find the monitor again, at least and at most.
const FOUND: (Duration, Duration) = (Duration::from_secs(3), Duration::from_secs(10));
/// Notices that may wait.
const HELD: usize = 1_000;

/// How long after a notice that recurs the next is shown.
const AGAIN: Duration = Duration::from_secs(10);

impl Notices {
    fn take(&mut self, notices: impl Iterator<Item = Notice>, stdout: &mut Console) {
        for mut notice in notices {
            if !self.sinks.is_empty() {
                let json = notice.json();
                let lasted = |json: &serde_json::Value| json["until"].as_f64().zip(json["from"].as_f64());
                if notice.kind == "paused"
                    && !matches!(json["cause"].as_str(), Some("clock" | "simulation"))
                    && lasted(&json).is_some_and(|(until, from)| until - from >= FORGOTTEN)
                {
                    self.since = Some(Instant::now());
                }
                self.held.push_back(json.to_string());
                if self.since.is_none() || self.held.len() > HELD {
                    self.publish_held(stdout);
                }
            }
            if self.is_shown(&mut notice, Instant::now()) {
                warn(&sentence(&notice));
            }
        }
    }

    /// Whether the consumers have found the monitor again, or have had the time for it.
    fn is_due(&self, now: Instant) -> bool {
        let Some(since) = self.since else { return false };
        let passed = now.duration_since(since);
        let is_found = |sink: &Sink| sink.publisher().is_none_or(|publisher| publisher.is_matched());
        passed >= FOUND.1 || passed >= FOUND.0 && self.sinks.iter().all(is_found)
    }

    /// Publishes the notices that wait.
    fn publish_held(&mut self, stdout: &mut Console) {
        self.since = None;
        for notice in self.held.drain(..) {
            // A broken network shows when verdicts are published.
            let _ = sinks::publish(&self.sinks, notice.as_bytes(), stdout);
        }
    }

    /// Whether a notice is shown now; sets how many were not shown before it.
    fn is_shown(&mut self, notice: &mut Notice, now: Instant) -> bool {
        let key = (notice.kind, notice.topic.map_or(u32::MAX, |topic| topic.0));
        match self.reported.get_mut(&key) {
            Some((last, unsaid)) if notice.is_recurring() && now.duration_since(*last) >= AGAIN => {
                (*last, notice.before) = (now, std::mem::take(unsaid));
                true
            }
            Some((_, unsaid)) if !notice.is_single() => {
                *unsaid += 1;
                false
            }
            _ => {
                self.reported.insert(key, (now, 0));
                true
            }
        }
    }
}

/// A notice as a sentence.
pub fn sentence(notice: &Notice) -> String {
    let name = notice.topic_name.as_ref().map(|name| format!("{name}: ")).unwrap_or_default();
    let mut times = TimeText::default();
    let further = match notice.before {
        _ if notice.is_single() => String::new(),
        0 if notice.is_recurring() => String::new(),
        0 => "; further ones are only counted".to_owned(),
        before => format!("; {} before it", counted(before, "such report", "such reports")),
    };
    format!("{name}{}{further}", notice.text(&mut |time| times.text(time)))
}

/// A part of a payload around an offset.
fn excerpt(payload: &[u8], offset: usize) -> String {
    let start = offset.min(payload.len()).saturating_sub(20);
    let end = (start + 40).min(payload.len());
    let mut out = String::new();
    if start > 0 {
        out.push('…');
    }
    out.extend(
        String::from_utf8_lossy(&payload[start..end]).chars().map(|c| if c.is_control() { '·' } else { c }),
    );
    if end < payload.len() {
        out.push('…');
    }
    out
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests;
