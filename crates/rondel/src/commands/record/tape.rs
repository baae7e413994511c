//! What takes messages and passes them on to the disk.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, mpsc};
use std::time::Duration;

use rondel_event::{Origin, Timestamp, TopicId};
use rondel_net::adapter::{Problems, Receiver, Sample, now};
use rondel_runtime::{Accounts, Notice, SystemClock};

use super::summary::Ended;
use crate::pipeline::Stop;
use crate::recorder::{Channel, Disk, Job, Kept, Ring};
use crate::warn;

/// The topics that patterns may find.
const TOPICS: usize = 10_000;
/// How long files may take to be finished.
const FINISH: Duration = Duration::from_secs(30);

/// The messages that are being recorded.
pub(super) struct Tape(Mutex<State>);

struct State {
    ring: Ring,
    disk: Disk,
    accounts: Accounts,
    clock: SystemClock,
    channels: Vec<Channel>,
    /// The topics that patterns found, with their numbers.
    found: HashMap<String, u32>,
    received: u64,
    /// Messages that found no room in memory, or are on more topics than there may be.
    refused: u64,
    count: u64,
    /// When the wanted number of messages was complete.
    until: Option<Timestamp>,
    stop: mpsc::Sender<Stop>,
}

impl Tape {
    pub(super) fn new(
        channels: Vec<Channel>,
        disk: Disk,
        memory: usize,
        (count, stop): (u64, mpsc::Sender<Stop>),
    ) -> Tape {
        Tape(Mutex::new(State {
            ring: Ring::new(memory),
            disk,
            accounts: Accounts::new(channels.len()),
            clock: SystemClock,
            channels,
            found: HashMap::new(),
            received: 0,
            refused: 0,
            count,
            until: None,
            stop,
        }))
    }

    fn state(&self) -> MutexGuard<'_, State> {
        // A panic elsewhere does not make the counts wrong.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes messages of a source; of a pattern, `name` is their topic.
    pub(super) fn take(&self, topic: TopicId, name: Option<&str>, samples: &[Sample<'_>]) {
        let state = &mut *self.state();
        let Some(number) = name.map_or(Some(topic.0), |name| state.named(topic, name)) else {
            state.refuse(samples.len() as u64, "there are too many topics");
            return;
        };
        for sample in samples {
            if state.received >= state.count {
                return;
            }
            state.received += 1;
            state.accounts.receive(topic, sample.origin, &state.clock);
            state.keep(number, sample);
            if state.received == state.count {
                state.until = Some(sample.arrival());
            }
        }
        state.accounts.pause(&state.clock);
        if state.received >= state.count {
            // Nobody waits any more when the run is ending already.
            let _ = state.stop.send(Stop::Count);
        }
    }

    /// Passes on what was taken since.
    pub(super) fn seal(&self) {
        self.state().seal();
    }

    /// Notices of messages that were lost since the last call.
    pub(super) fn losses(&self, names: &[String]) -> Vec<Notice> {
        let mut losses = self.state().accounts.losses();
        for notice in &mut losses {
            notice.topic_name = notice.topic.and_then(|topic| names.get(topic.index()).cloned());
        }
        losses
    }

    /// Ends recording; messages were taken up to a time.
    pub(super) fn end(&self, problems: Problems, until: Timestamp) -> Ended {
        let state = &mut *self.state();
        state.seal();
        let accounts = state.accounts.all();
        let lost: u64 = accounts.iter().map(|account| account.lost).sum();
        let note = |name: &str, value: u64| (name.to_owned(), value.to_string());
        let notes = vec![
            note("received", state.received),
            note("lost", lost + problems.lost),
            note("refused", state.refused + problems.malformed),
            ("until".to_owned(), state.until.unwrap_or(until).as_nanos().to_string()),
        ];
        state.disk.send(Job::End(notes));
        let is_done = state.disk.end(FINISH);
        let status = Arc::clone(state.disk.status());
        let (received, refused, topics) = (state.received, state.refused, state.found.len());
        Ended { accounts, problems, status, received, refused, topics, is_done }
    }
}

impl State {
    /// The number of a topic that a pattern found.
    fn named(&mut self, of: TopicId, name: &str) -> Option<u32> {
        if let Some(number) = self.found.get(name) {
            return Some(*number);
        }
        if self.found.len() >= TOPICS {
            return None;
        }
        let number = (self.channels.len() + self.found.len()) as u32;
        let channel = self.channels.get(of.index())?.named(name);
        self.found.insert(name.to_owned(), number);
        self.disk.send(Job::Channel(number, channel));
        Some(number)
    }

    fn keep(&mut self, topic: u32, sample: &Sample<'_>) {
        let Sample { payload, source_time: source, origin, .. } = *sample;
        if !self.ring.fits(payload) {
            self.seal();
        }
        let origin: Option<Origin> = origin;
        if self.ring.push(Kept { topic, arrival: sample.arrival(), source, origin, payload }).is_err() {
            self.refuse(1, "the disk is too slow, or the message larger than the memory");
        }
    }

    fn seal(&mut self) {
        if let Some(segment) = self.ring.seal(now()) {
            self.disk.send(Job::Write(segment, Timestamp::from_nanos(i64::MAX)));
            // Only the writer holds it now.
            self.ring.forget();
        }
    }

    #[cold]
    fn refuse(&mut self, count: u64, why: &str) {
        if self.refused == 0 {
            warn(&format!("a message cannot be recorded: {why}; further ones are only counted"));
        }
        self.refused += count;
    }
}

impl Receiver for Tape {
    fn receive(&self, topic: TopicId, samples: &[Sample<'_>]) {
        self.take(topic, None, samples);
    }
}

/// Takes the messages of one topic of a pattern.
pub(super) struct Named {
    pub(super) tape: Arc<Tape>,
    pub(super) name: String,
}

impl Receiver for Named {
    fn receive(&self, topic: TopicId, samples: &[Sample<'_>]) {
        self.tape.take(topic, Some(&self.name), samples);
    }
}
