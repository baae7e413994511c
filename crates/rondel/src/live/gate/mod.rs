//! Gates: messages of a topic are passed on to another address while properties hold.
//!
//! A gate decides on the thread that evaluates, under the lock of the pipeline: after the session has evaluated a message,
//! and before it is passed on. While it is closed, a substitute is published instead. The gate owes the first substitute
//! until its publisher accepts one while it has a subscriber. In a group, gates decide in every member, and publish in the
//! active one.

mod account;
mod lease;
mod others;
mod permission;
mod sending;
mod succession;
mod switch;

use std::sync::Arc;
use std::time::Instant;

use rondel_event::{Timestamp, TopicId, Verdict};
use rondel_net::adapter::Publisher;
use rondel_net::networks::NetworkSettings;
use rondel_runtime::{Clock, GateChange, Notice, Session, Ticks};
use rondel_spec::Spec;

use crate::deployment::{Deployment, GateSettings, Substitute, WhenBlind};
use crate::live::losses::Undelivered;
use crate::live::networks::Networks;
use crate::sinks::driven::random_key;
use account::Counts;
pub use account::GateFigures;
pub use lease::Lease;
use others::Output;
pub use others::{Others, watch};
use permission::Vacancy;
pub use permission::{Permission, Scope};
pub use succession::GateGroup;
use switch::{Reading, State, Switch};

/// Time after the start at which a gate that has never opened reports why, in nanoseconds.
const WAITING: Ticks = 10_000_000_000;

/// The gates of a run.
pub struct Gates {
    gates: Vec<Gate>,
    /// Whether messages of a topic are passed on, by topic.
    is_gated: Vec<bool>,
    clock: Arc<dyn Clock>,
    /// Other monitors with these gates.
    others: Arc<Others>,
    /// Permission to publish.
    permission: Permission,
    /// The group of the run, if it is a member of one.
    group: Option<GateGroup>,
    /// Gates that have opened or closed since the changes were last taken.
    changes: Vec<Notice>,
    ended: bool,
}

/// A gate with its publisher and its state.
struct Gate {
    topic: TopicId,
    /// The name of the topic.
    topic_name: String,
    to: String,
    /// The publisher, until the run ends.
    publisher: Option<Arc<dyn Publisher>>,
    /// Whether it had a subscriber at the end of the run.
    was_subscribed: bool,
    /// The properties that close it.
    unless: Vec<Followed>,
    blind: WhenBlind,
    return_when: Option<u32>,
    substitute: Substitute,
    ends_with_substitute: bool,
    /// The last message that was passed on, where it is repeated.
    last: Vec<u8>,
    switch: Switch,
    /// Time of the last change of the state.
    since: Timestamp,
    /// The property that closed it last, and how.
    cause: Option<(usize, Verdict)>,
    /// The property that is inconclusive at present, if that keeps the gate closed.
    blind_on: Option<usize>,
    /// Time at which it reports that it has never opened; `None` once it has.
    explains_at: Option<Ticks>,
    counts: Counts,
    /// Messages that were withheld since the last signs of the active member of a group.
    vacancy: Vacancy,
    /// Whether no substitute was accepted since it closed.
    owes: bool,
    /// The reason why the first substitute was refused, while it owes one.
    refusal: Option<String>,
    /// Whether no consumer accepted the last message, so that the next one is not waited for.
    is_slow: bool,
}

/// A property that a gate follows.
struct Followed {
    property: u32,
    name: String,
    /// Number of its violations when it was last looked at.
    violations: u64,
}

/// Occasion on which a closed gate publishes its substitute.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Occasion {
    /// It closes, and no message of its own is the cause.
    Closing,
    /// A message is not passed on.
    Message,
    /// No substitute was accepted since it closed.
    Again,
    /// The run ends.
    End,
}

impl Gates {
    /// Creates the gates of a deployment with their publishers, and lets the session follow their properties. `None` if
    /// there are no gates. Those of a member of a group publish nothing before they take over.
    ///
    /// # Errors
    /// The address on which nothing can be published, and the reason.
    pub fn open(
        deployment: &Deployment,
        networks: &Networks,
        session: &mut Session,
        clock: &Arc<dyn Clock>,
        group: Option<GateGroup>,
    ) -> Result<Option<Box<Gates>>, String> {
        let publisher = |gate: &GateSettings| networks.publisher_of(&gate.to, gate.schema.as_ref(), false);
        let publishers = deployment.gates.iter().map(|gate| publisher(gate).map(Arc::from));
        let publishers: Vec<Arc<dyn Publisher>> = publishers.collect::<Result<_, _>>()?;
        let (spec, joined) = (&deployment.specification.spec, &deployment.networks);
        Ok(Gates::with(&deployment.gates, spec, joined, publishers, session, clock, group))
    }

    /// Creates the gates of a specification with these publishers.
    pub(in crate::live) fn with(
        all: &[GateSettings],
        spec: &Spec,
        networks: &NetworkSettings,
        publishers: Vec<Arc<dyn Publisher>>,
        session: &mut Session,
        clock: &Arc<dyn Clock>,
        group: Option<GateGroup>,
    ) -> Option<Box<Gates>> {
        if all.is_empty() {
            return None;
        }
        let followed: Vec<u32> = all.iter().flat_map(GateSettings::properties).collect();
        session.watch_properties(&followed);
        let mut is_gated = vec![false; spec.topics.len()];
        let now = clock.now();
        let mut gates = Vec::new();
        for (settings, publisher) in all.iter().zip(publishers) {
            let GateSettings { topic, unless, blind, substitute, return_after, .. } = settings;
            if let Some(is_gated) = is_gated.get_mut(topic.index()) {
                *is_gated = true;
            }
            let name = |property: u32| spec.properties.get(property as usize).map(|own| own.name.clone());
            let follow = |property: &u32| Followed {
                property: *property,
                name: name(*property).unwrap_or_default(),
                violations: 0,
            };
            gates.push(Gate {
                topic: *topic,
                topic_name: spec
                    .topics
                    .get(topic.index())
                    .map_or_else(String::new, |topic| topic.name.clone()),
                to: settings.to.to_string(),
                publisher: Some(publisher),
                was_subscribed: false,
                unless: unless.iter().map(follow).collect(),
                blind: *blind,
                return_when: settings.return_when,
                substitute: substitute.clone(),
                ends_with_substitute: settings.ends_with_substitute,
                last: Vec::new(),
                switch: Switch::new(*return_after),
                since: now,
                cause: None,
                blind_on: None,
                explains_at: Some(clock.ticks().saturating_add(WAITING)),
                counts: Counts::default(),
                vacancy: Vacancy::default(),
                owes: false,
                refusal: None,
                is_slow: false,
            });
        }
        let (clock, changes) = (Arc::clone(clock), Vec::new());
        let outputs = all.iter().map(|gate| Output::of(&gate.to, networks)).collect();
        let permission = group.as_ref().map_or_else(Permission::default, |group| {
            Permission::of_member(Arc::clone(&group.permit), group.lease)
        });
        let others = Arc::new(Others::new(random_key(), outputs, group.clone()));
        Some(Box::new(Gates { gates, is_gated, clock, others, permission, group, changes, ended: false }))
    }

    /// Adds the messages that the networks drop after they have accepted them.
    pub fn add_drops(&self, undelivered: &Undelivered) {
        self.publishers().for_each(|(to, publisher)| undelivered.add(to.to_owned(), publisher.drops()));
    }

    /// The publishers with their addresses.
    pub fn publishers(&self) -> impl Iterator<Item = (&str, &Arc<dyn Publisher>)> {
        self.gates.iter().filter_map(|gate| Some((gate.to.as_str(), gate.publisher.as_ref()?)))
    }

    /// Other monitors with these gates.
    pub fn others(&self) -> &Arc<Others> {
        &self.others
    }

    /// Whether messages of a topic are passed on.
    #[inline]
    pub fn reads(&self, topic: TopicId) -> bool {
        self.is_gated.get(topic.index()).copied().unwrap_or(false)
    }

    /// Decides about a message that the session has received; `is_evaluated` if it was evaluated, and not refused,
    /// undecodable or waiting.
    pub fn message(&mut self, topic: TopicId, payload: &[u8], is_evaluated: bool, session: &Session) {
        if self.ended {
            return;
        }
        let Gates { gates, clock, changes, permission, .. } = self;
        for gate in gates {
            let closes = gate.look(session, &**clock);
            if gate.topic != topic {
                gate.act(closes, permission, &**clock, changes);
                continue;
            }
            // The message may open it again at once.
            let (before, since) = (changes.len(), gate.since);
            gate.pass(payload, is_evaluated, permission, &**clock, changes);
            if closes
                && permission.is_active()
                && let Some(notice) = gate.closed(since)
            {
                changes.insert(before, notice);
            }
        }
    }

    /// Closes the gates whose properties do not hold any more after an evaluation, and tries again to publish the
    /// substitutes that closed gates owe.
    pub fn look(&mut self, session: &Session) {
        if self.ended {
            return;
        }
        let Gates { gates, clock, changes, permission, .. } = self;
        for gate in gates {
            let closes = gate.look(session, &**clock);
            gate.act(closes, permission, &**clock, changes);
        }
    }

    /// Whether a gate has opened or closed since the changes were last taken.
    #[inline]
    pub fn has_changes(&self) -> bool {
        !self.changes.is_empty()
    }

    /// Takes the changes.
    pub fn changes(&mut self) -> impl Iterator<Item = Notice> + '_ {
        self.changes.drain(..)
    }

    /// Passes nothing on any more, and publishes the substitutes for the end of the run, unless another member of the group
    /// goes on.
    pub fn end(&mut self) {
        if std::mem::replace(&mut self.ended, true) || self.has_successor() {
            return;
        }
        let Gates { gates, clock, permission, .. } = self;
        for gate in gates.iter_mut().filter(|gate| gate.ends_with_substitute) {
            gate.replace(Occasion::End, permission, &**clock);
        }
    }

    /// Returns the publishers after the end, to be flushed.
    pub fn close(&mut self) -> Vec<Arc<dyn Publisher>> {
        let closed = self.gates.iter_mut().filter_map(|gate| {
            gate.was_subscribed = gate.publisher.as_ref().is_some_and(|publisher| publisher.is_matched());
            gate.publisher.take()
        });
        closed.collect()
    }

    /// The state of each gate.
    pub fn figures(&self) -> Vec<GateFigures> {
        let (now, is_active) = (Instant::now(), self.permission.is_active());
        let figures = |(at, gate): (usize, &Gate)| GateFigures::of(gate, is_active, self.others.of(at, now));
        self.gates.iter().enumerate().map(figures).collect()
    }
}

impl Gate {
    /// Closes the gate if its properties do not hold any more. Returns whether it closes now.
    fn look(&mut self, session: &Session, clock: &dyn Clock) -> bool {
        let (mut reading, mut cause, mut was_violated) = (Reading::Clear, None, None);
        for (index, own) in self.unless.iter_mut().enumerate() {
            let Some(standing) = session.standing(own.property) else { continue };
            let is_new = std::mem::replace(&mut own.violations, standing.violations) != standing.violations;
            let found = match standing.verdict {
                Verdict::Violated => Reading::Violated,
                Verdict::Inconclusive if self.blind == WhenBlind::Closed => Reading::Blind,
                Verdict::Satisfied | Verdict::Inconclusive => Reading::Clear,
            };
            if is_new && found != Reading::Violated {
                was_violated = was_violated.or(Some(index));
            }
            let is_worse = matches!((reading, found), (Reading::Clear | Reading::Blind, Reading::Violated))
                || matches!((reading, found), (Reading::Clear, Reading::Blind));
            if is_worse {
                (reading, cause) = (found, Some((index, standing.verdict)));
            }
        }
        if reading == Reading::Clear
            && let Some(property) = self.return_when
            && session.standing(property).is_none_or(|standing| standing.verdict != Verdict::Satisfied)
        {
            reading = Reading::Unsafe;
        }
        self.blind_on = cause.filter(|_| reading == Reading::Blind).map(|(index, _)| index);
        let mut closes = false;
        // Of several messages that are evaluated together, an earlier one may be the cause.
        if let Some(index) = was_violated.filter(|_| reading != Reading::Violated)
            && self.switch.look(Reading::Violated, || clock.ticks())
        {
            (self.cause, closes) = (Some((index, Verdict::Violated)), true);
        }
        if self.switch.look(reading, || clock.ticks()) {
            (self.cause, closes) = (cause, true);
        }
        if closes {
            self.since = clock.now();
            self.counts.switches += 1;
            (self.owes, self.refusal) = (true, None);
        }
        closes
    }

    /// Publishes the substitute if the gate closes now, or still owes it.
    #[inline]
    fn act(
        &mut self,
        closes: bool,
        permission: &mut Permission,
        clock: &dyn Clock,
        changes: &mut Vec<Notice>,
    ) {
        if closes {
            self.replace(Occasion::Closing, permission, clock);
            if permission.is_active() {
                changes.extend(self.closed(self.since));
            }
        } else if self.owes && self.is_matched() {
            self.replace(Occasion::Again, permission, clock);
        }
    }

    /// Whether the publisher is known to have a subscriber; on MQTT, whether it is connected.
    fn is_matched(&self) -> bool {
        self.publisher.as_ref().is_some_and(|publisher| publisher.is_matched())
    }

    /// Passes a message on, or publishes a substitute instead. Neither happens in a member of a group that is not active, and
    /// a message is not passed on for one lease after a take-over.
    fn pass(
        &mut self,
        payload: &[u8],
        is_evaluated: bool,
        permission: &mut Permission,
        clock: &dyn Clock,
        changes: &mut Vec<Notice>,
    ) {
        if self.switch.open(|| clock.ticks()) {
            changes.extend(self.opened(clock).filter(|_| permission.is_active()));
        }
        let is_open = self.switch.state() == State::Open;
        if !is_open || !is_evaluated && self.blind == WhenBlind::Closed {
            if permission.is_active() {
                self.counts.unread += u64::from(is_open);
                if self.switch.state() == State::Waiting {
                    self.explain(clock, changes);
                }
            }
            return self.replace(Occasion::Message, permission, clock);
        }
        if permission.scope() != Scope::Everything {
            return self.withhold(permission);
        }
        if self.send(payload, Occasion::Message) {
            self.counts.forwarded += 1;
            if self.substitute == Substitute::Hold {
                self.last.clear();
                self.last.extend_from_slice(payload);
            }
        }
    }

    /// Reports once which property has kept the gate closed since the start.
    #[cold]
    fn explain(&mut self, clock: &dyn Clock, changes: &mut Vec<Notice>) {
        let Some(of) = self.blind_on.and_then(|index| self.unless.get(index)) else { return };
        if self.explains_at.take_if(|at| clock.ticks() >= *at).is_some() {
            let change = GateChange::Waiting { property: &of.name };
            changes.push(Notice::gate(self.topic, &self.topic_name, &self.to, clock.now(), change));
        }
    }

    /// Records that the gate has opened. Returns the notice of it.
    #[cold]
    fn opened(&mut self, clock: &dyn Clock) -> Option<Notice> {
        let now = clock.now();
        let after = now.as_nanos().saturating_sub(self.since.as_nanos()).max(0) as u64;
        self.since = now;
        (self.owes, self.refusal) = (false, None);
        // A run begins with a closed gate, and opens it without a report.
        self.cause?;
        self.counts.switches += 1;
        let change = GateChange::Open { after };
        Some(Notice::gate(self.topic, &self.topic_name, &self.to, now, change))
    }

    /// Returns the notice that the gate has closed at this time, after the substitute was offered.
    #[cold]
    fn closed(&self, since: Timestamp) -> Option<Notice> {
        let (index, verdict) = self.cause?;
        let property = &self.unless.get(index)?.name;
        let (name, done) = match self.substitute {
            Substitute::Message(_) => ("the substitute", "is published instead"),
            Substitute::Hold => ("the last message", "is repeated instead"),
            Substitute::Drop => ("messages", "are dropped"),
        };
        let instead = match &self.refusal {
            _ if self.switch.state() == State::Open => "that is over already".to_owned(),
            Some(why) => format!("{name} could not be published yet: {why}; it is tried again"),
            None if self.substitute == Substitute::Hold && self.last.is_empty() => {
                "there is no last message to repeat, so that messages are dropped".to_owned()
            }
            None => format!("{name} {done}"),
        };
        let change = GateChange::Closed { property, verdict, instead: &instead };
        Some(Notice::gate(self.topic, &self.topic_name, &self.to, since, change))
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests;
