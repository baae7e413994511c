//! Receiver of messages that passes them on to the disk.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, mpsc};
use std::time::Duration;

use rondel_event::{AddressPattern, NameId, Origin, Timestamp, TopicId};
use rondel_net::adapter::{Outage, Receiver, Sample, now};
use rondel_net::dds;
use rondel_recording::{CutOff, CutOffs};
use rondel_runtime::{Accounts, Notice, SystemClock};

use super::summary::Ended;
use crate::deployment::Address;
use crate::live::listener::Closed;
use crate::live::pipeline::Stop;
use crate::recorder::{Channel, Disk, Job, Kept, Ring};
use crate::warn;

/// The topics that patterns may find.
const TOPICS: usize = 10_000;
/// Time limit for finishing files.
const FINISH: Duration = Duration::from_secs(30);

/// Stands for topics beyond them.
const MANY: NameId = NameId(u32::MAX);

/// The messages that are being recorded.
pub(super) struct Tape {
    state: Mutex<State>,
    patterns: Vec<Names>,
}

/// Topic names of a source.
pub(super) enum Names {
    /// A single topic.
    One,
    /// Topics that match wildcards.
    Wild,
    /// Topics that match an address with parameters.
    Parameters(AddressPattern),
}

impl Names {
    pub(super) fn of(address: &Address) -> Names {
        if let Some(pattern) = address.pattern() {
            return Names::Parameters(pattern.without_slash());
        }
        let is_wild = match address {
            Address::Zenoh(key, _) => key.contains('*'),
            Address::Mqtt(filter, ..) => filter.contains(['+', '#']),
            Address::Dds(name, ..) => dds::is_pattern(name),
            Address::Kafka(..) | Address::Ros2(..) | Address::Stdout => false,
        };
        if is_wild { Names::Wild } else { Names::One }
    }
}

struct State {
    ring: Ring,
    disk: Disk,
    accounts: Accounts,
    clock: SystemClock,
    channels: Vec<Channel>,
    /// For each source the topics that its pattern found, with their numbers.
    found: Vec<HashMap<String, NameId>>,
    /// The number of the next one.
    next: u32,
    received: u64,
    /// Number of messages dropped because memory was full or the limit of topics was reached.
    refused: u64,
    count: u64,
    /// Time at which the wanted number of messages was complete.
    until: Option<Timestamp>,
    /// Periods in which messages were missed.
    cut_offs: CutOffs,
    stop: mpsc::Sender<Stop>,
}

impl Tape {
    pub(super) fn new(
        channels: Vec<Channel>,
        patterns: Vec<Names>,
        disk: Disk,
        memory: usize,
        count: u64,
        stop: mpsc::Sender<Stop>,
    ) -> Tape {
        let state = Mutex::new(State {
            ring: Ring::new(memory),
            disk,
            accounts: Accounts::new(channels.len()),
            clock: SystemClock,
            found: channels.iter().map(|_| HashMap::new()).collect(),
            next: channels.len() as u32,
            channels,
            received: 0,
            refused: 0,
            count,
            until: None,
            cut_offs: CutOffs::default(),
            stop,
        });
        Tape { state, patterns }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        // A panic elsewhere does not make the counts wrong.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn take(&self, topic: TopicId, samples: &[Sample<'_>]) {
        let state = &mut *self.state();
        for sample in samples {
            if state.received >= state.count {
                return;
            }
            state.received += 1;
            state.accounts.receive(topic, sample.origin, &state.clock);
            match sample.name {
                Some(MANY) => state.refuse(1, "there are too many topics"),
                name => state.keep(name.map_or(topic.0, |NameId(number)| number), sample),
            }
            if state.received == state.count {
                state.until = Some(sample.arrival());
            }
        }
        state.accounts.pause(&state.clock);
        if state.received >= state.count {
            // The receiver is gone when the run is ending already.
            let _ = state.stop.send(Stop::Count);
        }
    }

    /// Notes that messages of these topics were missed since a time, and up to another if that has come; those of a pattern
    /// stand for all.
    pub(super) fn cut_off(&self, topics: &[TopicId], from: Timestamp, until: Option<Timestamp>) {
        let state = &mut *self.state();
        let channels = topics.iter().filter_map(|topic| state.channels.get(topic.index()));
        let is_pattern = channels.clone().any(Channel::is_pattern);
        let topics = channels.filter(|_| !is_pattern).map(|channel| channel.name.clone()).collect();
        state.cut_offs.note(CutOff { from, until, topics });
    }

    /// Sets the description of a topic once its type is known.
    pub(super) fn resolve(&self, topic: TopicId, channel: Channel) {
        let state = &mut *self.state();
        state.disk.send(Job::Channel(topic.0, Box::new(channel.clone())));
        if let Some(place) = state.channels.get_mut(topic.index()) {
            *place = channel;
        }
    }

    /// Passes the messages received since the last call on to the disk.
    pub(super) fn seal(&self) {
        self.state().seal();
    }

    /// Notices of messages that were lost since the last call.
    pub(super) fn losses(&self) -> Vec<Notice> {
        self.state().accounts.losses()
    }

    /// Ends recording after the subscriptions; `outages` are the connections that were lost.
    pub(super) fn end(&self, closed: &Closed, outages: Vec<Outage>) -> Ended {
        let Closed { why, problems, unread, until, .. } = closed;
        let state = &mut *self.state();
        state.seal();
        let accounts = state.accounts.all();
        let lost: u64 = accounts.iter().map(|account| account.lost).sum();
        let note = |name: &str, value: u64| (name.to_owned(), value.to_string());
        let mut notes = vec![
            note("received", state.received),
            note("lost", lost + problems.lost),
            note("refused", state.refused + problems.malformed),
            ("until".to_owned(), state.until.unwrap_or(*until).as_nanos().to_string()),
        ];
        let not_read = unread.len() as u64 + problems.incompatible;
        notes.extend((not_read > 0).then(|| note("unread", not_read)));
        let missed = std::mem::take(&mut state.cut_offs);
        let was_cut_off = !missed.is_empty();
        notes.extend(was_cut_off.then(|| ("cut_offs".to_owned(), missed.text())));
        state.disk.send(Job::End(notes));
        let is_done = state.disk.end(FINISH);
        let status = Arc::clone(state.disk.status());
        let (received, refused, topics) = (state.received, state.refused, state.topics());
        Ended {
            accounts,
            problems: *problems,
            status,
            received,
            refused,
            topics,
            unread: unread.clone(),
            outages,
            was_cut_off,
            is_given_up: *why == Stop::GivenUp,
            is_done,
        }
    }
}

impl State {
    /// The number of a topic that a pattern found.
    fn named(&mut self, of: TopicId, name: &str) -> Option<NameId> {
        if let Some(number) = self.found.get(of.index())?.get(name) {
            return Some(*number);
        }
        if self.topics() >= TOPICS {
            return Some(MANY);
        }
        let channel = self.channels.get(of.index())?.named(name);
        let number = self.next;
        self.next += 1;
        self.found.get_mut(of.index())?.insert(name.to_owned(), NameId(number));
        self.disk.send(Job::Channel(number, Box::new(channel)));
        Some(NameId(number))
    }

    /// Number of topics found by patterns.
    fn topics(&self) -> usize {
        self.next as usize - self.channels.len()
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
        self.take(topic, samples);
    }

    fn missed(&self, topic: TopicId, from: Timestamp, until: Option<Timestamp>) {
        self.cut_off(&[topic], from, until);
    }

    fn wants_names(&self, topic: TopicId) -> bool {
        self.patterns.get(topic.index()).is_some_and(|names| !matches!(names, Names::One))
    }

    fn number(&self, topic: TopicId, name: &str) -> Option<NameId> {
        match self.patterns.get(topic.index())? {
            Names::Parameters(pattern)
                if pattern.captures(name.strip_prefix('/').unwrap_or(name)).is_none() =>
            {
                None
            }
            _ => self.state().named(topic, name),
        }
    }
}
