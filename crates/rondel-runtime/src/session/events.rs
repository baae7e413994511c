//! Events of topics that a network reports.

use std::sync::Arc;

use rondel_decode::json::quoted;
use rondel_decode::{MessageType, MessageWriter};
use rondel_event::{Timestamp, TopicEvent, TopicId};
use rondel_spec::{Property, Spec};

use super::reading::types::key_writer;
use super::{Session, SessionPlan, Stamp};
use crate::statistics::{Cause, Pause};
use crate::text::counted;
use crate::{Summary, TimeSource};

/// The limit of the key of an instance as JSON, in bytes.
const LARGEST_KEY: usize = 64 << 10;

/// Time after a pause of the session in which a deadline counts as missed because of it, in nanoseconds.
const AFTER_PAUSE: i64 = 1_000_000_000;

/// Topics of events, which follow the declared topics.
pub(super) struct TopicEvents {
    /// Number of declared topics.
    declared: usize,
    /// For each topic of events the declared topic.
    of: Vec<TopicId>,
    /// Missed deadlines of each topic of events.
    deadlines: Vec<Deadlines>,
    /// For each topic of events: writer of the parameters of the declared topic's instances, if its type is known.
    keys: Vec<Option<MessageWriter>>,
    /// Whether the owner of some topic is read.
    reads_owner: bool,
}

impl TopicEvents {
    pub(super) fn new(plan: &SessionPlan) -> TopicEvents {
        let spec = &plan.specification.spec;
        let key = |of: &TopicId| key_writer(plan.input(*of)?.message_type.as_ref()?);
        TopicEvents {
            declared: spec.declared().len(),
            of: spec.events.clone(),
            deadlines: Deadlines::of(spec),
            keys: spec.events.iter().map(key).collect(),
            reads_owner: spec.reads_owner(),
        }
    }

    /// Takes over the missed deadlines of another session. `origins` has for each declared topic its number there.
    pub(super) fn inherit(&mut self, before: &TopicEvents, origins: &[Option<TopicId>]) {
        for (of, deadlines) in self.of.iter().zip(&mut self.deadlines) {
            let origin = origins.get(of.index()).copied().flatten();
            let at = origin.and_then(|origin| before.position(origin));
            if let Some(known) = at.and_then(|at| before.deadlines.get(at)) {
                deadlines.uncertain = known.uncertain;
            }
        }
    }

    /// Number of declared topics.
    pub(super) fn declared(&self) -> usize {
        self.declared
    }

    /// The declared topics.
    pub(super) fn declared_topics(&self) -> Vec<TopicId> {
        (0..self.declared as u32).map(TopicId).collect()
    }

    /// The topics of events.
    pub(super) fn topics(&self) -> Vec<TopicId> {
        (self.declared as u32..(self.declared + self.of.len()) as u32).map(TopicId).collect()
    }

    /// For each topic of events the declared topic.
    pub(super) fn of(&self) -> &[TopicId] {
        &self.of
    }

    /// The declared topic of a topic of events; other topics are returned as they are.
    pub(super) fn declared_of(&self, topic: TopicId) -> TopicId {
        topic.index().checked_sub(self.declared).map_or(topic, |event| self.of[event])
    }

    /// Sets the type of a declared topic.
    pub(super) fn set_type(&mut self, topic: TopicId, message_type: &Arc<MessageType>) {
        for (of, key) in self.of.iter().zip(&mut self.keys) {
            if *of == topic {
                *key = key_writer(message_type);
            }
        }
    }

    /// Begins a lap without missed deadlines.
    pub(super) fn begin_lap(&mut self) {
        self.deadlines.iter_mut().for_each(|deadlines| deadlines.uncertain = 0);
    }

    /// Position of the events of a declared topic among the topics of events.
    fn position(&self, topic: TopicId) -> Option<usize> {
        self.of.iter().position(|of| *of == topic)
    }
}

/// The missed deadlines of a topic.
#[derive(Debug)]
struct Deadlines {
    topic: String,
    /// The properties that read them, by their positions.
    readers: Vec<usize>,
    /// Number of deadlines missed during pauses of the session.
    uncertain: u64,
}

impl Deadlines {
    /// Missed deadlines of each topic whose events are read.
    fn of(spec: &Spec) -> Vec<Deadlines> {
        let of_topic = |of: &TopicId| {
            let reads = |property: &Property| {
                spec.events_read(property.formula).contains(&(*of, TopicEvent::MissedDeadline))
            };
            let properties = spec.properties.iter().enumerate();
            let readers = properties.filter(|(_, property)| reads(property)).map(|(at, _)| at).collect();
            Deadlines { topic: spec.topics[of.index()].name.clone(), readers, uncertain: 0 }
        };
        spec.events.iter().map(of_topic).collect()
    }
}

impl Session {
    /// Takes an event of a declared topic that a network reports at this time of the day. `holds` is whether a publisher is
    /// alive; other events hold. Returns whether a property reads events of the topic; otherwise nothing happens.
    pub fn event(&mut self, topic: TopicId, event: TopicEvent, holds: bool, time: Timestamp) -> bool {
        self.take_event(topic, event, &event.message(holds), time)
    }

    /// Takes an event of one instance of a declared topic, as [`Session::event`] does. `payload` names the instance: a
    /// message of it if `is_message`, or the serialised members of the key alone. Where it cannot be read, nothing says to
    /// which instance the event belongs.
    pub fn instance_event(
        &mut self,
        topic: TopicId,
        event: TopicEvent,
        instance: (&[u8], bool),
        time: Timestamp,
    ) -> bool {
        match self.key_of(topic, instance) {
            Some(key) => self.take_event(topic, event, &event.message_of(&key), time),
            None => self.event(topic, event, true, time),
        }
    }

    /// Takes the owner of a declared topic, or of one instance of it given as in [`Session::instance_event`], as
    /// [`Session::event`] does. `publisher` is empty if there is no owner.
    pub fn owner(
        &mut self,
        topic: TopicId,
        publisher: &str,
        instance: Option<(&[u8], bool)>,
        time: Timestamp,
    ) -> bool {
        let key = instance.and_then(|instance| self.key_of(topic, instance));
        let message = TopicEvent::owner_message(&quoted(publisher), key.as_deref());
        self.take_event(topic, TopicEvent::Owner, &message, time)
    }

    /// Whether the messages of a declared topic have the times at which they were sent.
    pub fn has_source_times(&self, topic: TopicId) -> bool {
        self.plan.input(topic).is_some_and(|input| input.time == TimeSource::Source)
    }

    /// Whether a property reads the owner of some topic.
    pub fn reads_owner(&self) -> bool {
        self.events.reads_owner
    }

    /// Returns the key of an instance as JSON; `None` if it cannot be read.
    fn key_of(&self, topic: TopicId, (payload, is_message): (&[u8], bool)) -> Option<String> {
        let at = self.events.position(topic)?;
        let writer = self.events.keys.get(at)?.as_ref()?;
        let mut key = Vec::new();
        let has_key = writer.write_key(payload, is_message, LARGEST_KEY, &mut key).ok()?;
        String::from_utf8(key).ok().filter(|_| has_key)
    }

    fn take_event(&mut self, topic: TopicId, event: TopicEvent, message: &str, time: Timestamp) -> bool {
        let Some(at) = self.events.position(topic) else { return false };
        if event == TopicEvent::MissedDeadline && self.has_just_paused(time) {
            // Messages that came in time may wait to be taken.
            self.events.deadlines[at].uncertain += 1;
            return true;
        }
        let arrival = Some(self.shared.clock.now());
        let stamp = Stamp { source: Some(time), arrival, ..Stamp::default() };
        // Messages about events can always be decoded.
        self.push(TopicId((self.events.declared + at) as u32), stamp, message.as_bytes()).is_ok()
    }

    /// Adds the deadlines that did not count to the properties that read them.
    pub(super) fn add_uncertain(&self, summary: &mut Summary) {
        for Deadlines { topic, readers, uncertain } in &self.events.deadlines {
            if *uncertain == 0 {
                continue;
            }
            for reader in readers {
                if let Some(statistics) = summary.properties.get_mut(*reader) {
                    statistics.unchecked += uncertain;
                }
            }
            let missed = counted(*uncertain, "deadline was missed", "deadlines were missed");
            summary.omissions.push(format!(
                "{topic}: {missed} while the monitor did not run, and did not count: messages may have come in time"
            ));
        }
    }

    /// Whether the session did not run just before a time of the day.
    fn has_just_paused(&mut self, time: Timestamp) -> bool {
        self.alive();
        let is_near = |pause: &&Pause| {
            let until = Timestamp::from_nanos(pause.until.as_nanos().saturating_add(AFTER_PAUSE));
            pause.cause == Cause::Stopped && pause.from <= time && time <= until
        };
        self.withholds() && self.shared.heartbeat.pauses.iter().rev().take(8).any(|pause| is_near(&pause))
    }
}
