//! The seam between the state of another member of a group and the messages that this one receives itself.
//!
//! The active member notes the identities of messages until it takes a snapshot, and the late one keeps copies of messages
//! meanwhile. A copy that the snapshot contains is dropped, and the others are evaluated after it. A publisher's number
//! decides that exactly. Without numbers, a message is known by its topic, its time of publication and its payload: a topic
//! on which two messages are equal, or on which the two members do not overlap, is uncertain, and counts as not received
//! around the snapshot.

mod contained;

use std::collections::HashMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use rondel_event::{NameId, Origin, Timestamp, TopicId, TypeIndex};
use rondel_net::adapter::{Sample, now};
use rondel_runtime::{SessionPlan, Stamp, TopicNames};

use super::{Pipeline, State};
use contained::{Contained, Found, identity};

/// Maximum number of messages that are kept.
const MESSAGES: usize = 65_536;
/// Maximum size of their payloads in bytes.
const BYTES: usize = 64 << 20;
/// Maximum number of identities that are noted.
const IDENTITIES: usize = 262_144;
/// Time after the exchange in which messages that the snapshot contains may still arrive.
const AFTER: Duration = Duration::from_secs(2);
/// Number of messages after which reports are taken.
const PORTION: usize = 256;

/// The identities that an active member notes.
pub(super) struct Noting {
    names: Vec<Option<Arc<TopicNames>>>,
    identities: Vec<u64>,
    is_full: bool,
}

/// The messages at the seam, of a late member.
pub(super) enum Seam {
    /// Messages are kept for the state of another member.
    Keeping(Keeping),
    /// That state is there, and contains messages that may still arrive.
    Joined { contained: Contained, until: Instant },
}

/// The messages that a late member keeps.
#[derive(Default)]
pub(super) struct Keeping {
    names: Vec<Option<Arc<TopicNames>>>,
    /// Number of messages without numbers by their identities, those before the first copy included.
    seen: HashMap<u64, u32>,
    /// Whether copies are made.
    is_copying: bool,
    messages: Vec<KeptMessage>,
    bytes: usize,
    /// Number of the copies that the snapshot must contain.
    due: usize,
    /// Number of pauses of the session at the beginning.
    pauses: usize,
    /// The reason why the state cannot be joined.
    problem: Option<&'static str>,
}

/// A copy of a message.
struct KeptMessage {
    topic: TopicId,
    payload: Vec<u8>,
    source: Option<Timestamp>,
    arrival: Timestamp,
    origin: Option<Origin>,
    name: Option<NameId>,
    of_type: TypeIndex,
    /// Its identity, if its publisher does not number it.
    identity: Option<u64>,
}

/// The state of a member for another one.
pub struct MemberState {
    /// The identities of messages that it contains.
    pub identities: Vec<u64>,
    /// The snapshot.
    pub snapshot: Vec<u8>,
    /// Number of events that were checked.
    pub step: u64,
}

/// The outcome of joining the state of another member.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Joined {
    /// Messages that were kept.
    pub kept: u64,
    /// Those among them that the snapshot contains.
    pub dropped: u64,
    /// The names of the topics with messages of which that is uncertain.
    pub uncertain: Vec<String>,
}

/// The names of the topics of a plan.
fn names_of(plan: &SessionPlan) -> Vec<Option<Arc<TopicNames>>> {
    let topics = plan.specification().spec.declared().len() as u32;
    (0..topics).map(|topic| plan.names(TopicId(topic)).cloned()).collect()
}

impl Noting {
    fn note(&mut self, topic: TopicId, sample: &Sample<'_>) {
        if sample.origin.is_some() || self.is_full {
            return;
        }
        self.is_full = self.identities.len() >= IDENTITIES;
        if !self.is_full {
            self.identities.push(identity(&self.names, topic, sample));
        }
    }
}

impl Keeping {
    fn keep(&mut self, topic: TopicId, sample: &Sample<'_>, arrival: Timestamp) {
        if self.problem.is_some() {
            return;
        }
        let identity = sample.origin.is_none().then(|| identity(&self.names, topic, sample));
        if let Some(identity) = identity {
            *self.seen.entry(identity).or_default() += 1;
        }
        let has_room = self.seen.len() < IDENTITIES
            && self.messages.len() < MESSAGES
            && self.bytes.saturating_add(sample.payload.len()) <= BYTES;
        if !has_room {
            return self.fail("more messages came meanwhile than are kept");
        }
        if self.is_copying {
            self.bytes += sample.payload.len();
            self.messages.push(KeptMessage {
                topic,
                payload: sample.payload.to_vec(),
                source: sample.source_time,
                arrival,
                origin: sample.origin,
                name: sample.name,
                of_type: sample.of_type,
                identity,
            });
        }
    }

    /// Gives the state up for a reason, and frees the copies.
    fn fail(&mut self, problem: &'static str) {
        self.problem.get_or_insert(problem);
        (self.messages, self.seen) = (Vec::new(), HashMap::new());
    }
}

impl State {
    /// Whether messages are noted or compared at present.
    #[inline]
    pub(super) fn is_at_seam(&self) -> bool {
        self.noting.is_some() || self.seam.is_some()
    }

    /// Notes, keeps or compares a message. Returns whether the state that this member has taken contains it.
    #[cold]
    pub(super) fn is_contained(&mut self, topic: TopicId, sample: &Sample<'_>) -> bool {
        if let Some(noting) = &mut self.noting {
            noting.note(topic, sample);
        }
        if matches!(self.seam.as_deref(), Some(Seam::Joined { until, .. }) if Instant::now() >= *until) {
            self.seam = None;
        }
        let found = match self.seam.as_deref_mut() {
            None => Found::Not,
            Some(Seam::Keeping(keeping)) => {
                keeping.keep(topic, sample, sample.arrival());
                Found::Not
            }
            Some(Seam::Joined { contained, .. }) => contained.arrives(topic, sample),
        };
        match found {
            Found::Not => false,
            Found::Contained => true,
            Found::Uncertain => {
                self.omit_uncertain(&[topic]);
                true
            }
        }
    }

    /// Marks messages of topics since the snapshot as not received.
    fn omit_uncertain(&mut self, topics: &[TopicId]) {
        let time = now();
        let reason = "messages of the state that was taken are equal to others";
        self.session.not_received(topics, (time, Some(time)), reason);
    }

    /// Gives up to take a state of another member for a reason, if one is being taken.
    pub(super) fn disturb_seam(&mut self, problem: &'static str) {
        if let Some(Seam::Keeping(keeping)) = self.seam.as_deref_mut() {
            keeping.fail(problem);
        }
    }
}

impl Pipeline {
    /// Begins to note the identities of messages, for [`Pipeline::state_for_member`]. Returns false if the evaluating thread
    /// holds the lock for longer than `limit`.
    pub fn note_identities(&self, plan: &SessionPlan, limit: Duration) -> bool {
        let Some(mut state) = self.state_within(limit) else { return false };
        let noting = Noting { names: names_of(plan), identities: Vec::new(), is_full: false };
        state.noting = Some(Box::new(noting));
        true
    }

    /// Ends to note identities. Returns as [`Pipeline::note_identities`].
    pub fn end_noting(&self, limit: Duration) -> bool {
        let Some(mut state) = self.state_within(limit) else { return false };
        state.noting = None;
        true
    }

    /// Returns the state for another member, and ends to note identities.
    ///
    /// # Errors
    /// The reason why there is none.
    pub fn state_for_member(&self) -> Result<MemberState, String> {
        let mut state = self.state();
        let Some(noting) = state.noting.take() else { return Err("no messages were noted".to_owned()) };
        if state.ended || self.is_ending() {
            return Err("its run is ending".to_owned());
        }
        if state.session.failure().is_some() {
            return Err("a worker has panicked".to_owned());
        }
        if noting.is_full {
            return Err("more messages came than are noted".to_owned());
        }
        self.place.saving();
        let snapshot = state.session.snapshot("");
        let step = state.session.events();
        // Taking a snapshot evaluates all messages.
        state.emit();
        if self.batches() {
            state.release();
        }
        Ok(MemberState { identities: noting.identities, snapshot, step })
    }

    /// Begins to note the messages that the state of another member may contain. Returns as [`Pipeline::note_identities`].
    pub fn begin_keeping(&self, plan: &SessionPlan, limit: Duration) -> bool {
        let Some(mut state) = self.state_within(limit) else { return false };
        // A pause before, after which the state is taken, is none meanwhile.
        if state.session.alive() {
            self.sooner.notify_one();
        }
        self.flush(&mut state);
        if self.batches() {
            state.release();
        }
        let pauses = state.session.summary().pauses.len();
        let keeping = Keeping { names: names_of(plan), pauses, ..Keeping::default() };
        state.seam = Some(Box::new(Seam::Keeping(keeping)));
        true
    }

    /// Keeps copies of messages from here on. Returns as [`Pipeline::note_identities`].
    pub fn copy_messages(&self, limit: Duration) -> bool {
        self.with_kept(limit, |keeping| keeping.is_copying = true)
    }

    /// Records that the state must contain the messages so far, or the other member lags behind: it is requested after a
    /// pause. Returns as [`Pipeline::note_identities`].
    pub fn mark_copies(&self, limit: Duration) -> bool {
        self.with_kept(limit, |keeping| keeping.due = keeping.messages.len())
    }

    fn with_kept(&self, limit: Duration, act: impl FnOnce(&mut Keeping)) -> bool {
        let Some(mut state) = self.state_within(limit) else { return false };
        if let Some(Seam::Keeping(keeping)) = state.seam.as_deref_mut() {
            act(keeping);
        }
        true
    }

    /// Forgets the copies. Returns as [`Pipeline::note_identities`].
    pub fn end_keeping(&self, limit: Duration) -> bool {
        let Some(mut state) = self.state_within(limit) else { return false };
        if matches!(state.seam.as_deref(), Some(Seam::Keeping(_))) {
            state.seam = None;
        }
        true
    }

    /// Continues from the snapshot of another member, with the messages that it does not contain; `identities` are those of
    /// messages in it. Verdicts withheld so far are forgotten.
    ///
    /// # Errors
    /// The reason why this member goes on with its own state.
    pub fn join_state(
        &self,
        plan: &SessionPlan,
        identities: &[u64],
        snapshot: &[u8],
    ) -> Result<Joined, String> {
        let state = &mut *self.state();
        let Some(Seam::Keeping(keeping)) = state.seam.take().map(|seam| *seam) else {
            return Err("no messages were kept".to_owned());
        };
        if state.ended || self.is_ending() {
            return Err("the run is ending".to_owned());
        }
        if !state.sinks.stands_by() {
            return Err("this member took over meanwhile".to_owned());
        }
        if let Some(problem) = keeping.problem {
            return Err(problem.to_owned());
        }
        self.place.saving();
        // A pause that no message has shown yet.
        state.session.alive();
        self.flush(state);
        if state.session.summary().pauses.len() != keeping.pauses {
            return Err("this process stood still meanwhile".to_owned());
        }
        let session = plan.join(&mut state.session, snapshot).map_err(|error| error.to_string())?;
        // Events, also before the first message.
        state.emit();
        let before = std::mem::replace(&mut state.session, session);
        state.sinks.continue_from(&state.session, plan.properties());
        state.join_gates();
        let joined = state.evaluate_kept(keeping, identities);
        state.session.follow_clock(&before);
        self.flush(state);
        if self.batches() {
            state.release();
        }
        // Deadlines are those of the new session.
        state.armed = None;
        self.sooner.notify_all();
        Ok(joined)
    }
}

impl State {
    /// Evaluates the kept messages that the session does not contain.
    fn evaluate_kept(&mut self, keeping: Keeping, identities: &[u64]) -> Joined {
        let Keeping { names, seen, messages, due, .. } = keeping;
        let topics = names.len();
        let mut contained = Contained::new(&self.session, names, identities);
        let mut uncertain = vec![false; topics];
        let mut joined = Joined { kept: messages.len() as u64, ..Joined::default() };
        for (at, message) in messages.iter().enumerate() {
            let is_single = message.identity.is_none_or(|own| seen.get(&own).is_none_or(|count| *count < 2));
            let found = match message.identity {
                Some(identity) => contained.has_identity(identity, is_single),
                None => contained.has_number(message.topic, message.origin),
            };
            // A message from long before the snapshot that is not contained shows that one member lags behind the other.
            let is_behind =
                found == Found::Not && at < due && contained.should_have(message.topic, message.origin);
            if found == Found::Uncertain || is_behind {
                uncertain[message.topic.index()] = true;
            }
            if found == Found::Not {
                let stamp = Stamp {
                    source: message.source,
                    arrival: Some(message.arrival),
                    origin: message.origin,
                    name: message.name,
                    of_type: message.of_type,
                };
                // It was reported when it arrived, and the session counts it.
                let _ = self.session.push(message.topic, stamp, &message.payload);
            } else {
                joined.dropped += 1;
            }
            if at % PORTION == PORTION - 1 {
                self.emit();
            }
        }
        let all = (0..).map(TopicId).zip(&uncertain);
        let uncertain: Vec<TopicId> = all.filter(|(_, is)| **is).map(|(topic, _)| topic).collect();
        if !uncertain.is_empty() {
            self.omit_uncertain(&uncertain);
            let text = |topic: &TopicId| self.topics.get(topic.index()).cloned().unwrap_or_default();
            joined.uncertain = uncertain.iter().map(text).collect();
        }
        contained.forget_seen(&seen);
        self.seam = Some(Box::new(Seam::Joined { contained, until: Instant::now() + AFTER }));
        self.has_joined = true;
        joined
    }
}
