//! Gates of a member of a group: they follow the messages in every member, and publish in the active one alone.

use std::sync::Arc;

use rondel_runtime::{Clock, GateChange, Notice, Session};

use super::permission::Permission;
use super::switch::State;
use super::{Gate, Gates, Occasion};
use crate::live::standby::state::GroupHandle;
use crate::sinks::withheld::Permit;

/// The group that a run with gates is a member of.
#[derive(Clone, Debug)]
pub struct GateGroup {
    /// The permit to publish, which the thread of the group extends.
    pub permit: Arc<Permit>,
    /// The lease of the group, in nanoseconds.
    pub lease: i64,
    /// The state of the member.
    pub handle: GroupHandle,
}

impl Gates {
    /// Begins to publish in an epoch of the group. A gate that is not open publishes its substitute now: the member before
    /// may have ended between the violation and its own substitute. `has_received`: whether any message was received.
    pub fn take_over(&mut self, epoch: u64, has_received: bool) {
        if self.ended {
            return;
        }
        self.permission.begin();
        if !has_received && self.group.as_ref().is_some_and(|group| group.handle.state().is_late) {
            // The thread of the group marks earlier messages as missed after the first one: until then no property knows it.
            self.permission.await_first();
        }
        let Gates { gates, clock, changes, permission, .. } = self;
        for gate in gates {
            gate.take_over(epoch, permission, &**clock);
            changes.extend(gate.taken_over(epoch, &**clock));
        }
    }

    /// Continues with a session that has the state of another member. Its gates may have been closed for reasons that this
    /// state no longer shows: each one begins again, and opens once its properties have held for their time from now on.
    pub fn join(&mut self, session: &Session) {
        let Gates { gates, clock, .. } = self;
        gates.iter_mut().for_each(|gate| gate.join(session, &**clock));
    }

    /// Notes the first message of the run.
    pub fn note_first(&mut self) {
        self.permission.note_first();
    }

    /// Publishes nothing any more until the next take-over.
    pub fn stop_publishing(&mut self) {
        self.permission.stop();
        self.gates.iter_mut().for_each(|gate| gate.owes = false);
    }

    /// Whether another member of the group takes over when this one ends.
    pub(super) fn has_successor(&self) -> bool {
        self.group.as_ref().is_some_and(|group| !group.handle.state().standbys.is_empty())
    }
}

impl Gate {
    fn join(&mut self, session: &Session, clock: &dyn Clock) {
        self.switch.restart();
        self.since = clock.now();
        (self.cause, self.blind_on) = (None, None);
        (self.owes, self.refusal) = (false, None);
        for own in &mut self.unless {
            own.violations = session.standing(own.property).map_or(0, |standing| standing.violations);
        }
    }

    fn take_over(&mut self, epoch: u64, permission: &mut Permission, clock: &dyn Clock) {
        // Messages that other members have passed on are not known, and its own ones are old.
        self.last.clear();
        self.is_slow = false;
        self.counts.skipped += self.vacancy.take(permission.vacant_since(), permission.lease());
        // A first member begins as a run without a group does.
        let replaces = match self.switch.state() {
            State::Open => false,
            State::Closed => true,
            State::Waiting => epoch > 1,
        };
        (self.owes, self.refusal) = (replaces, None);
        if replaces {
            self.replace(Occasion::Closing, permission, clock);
        }
    }

    /// Returns the notice of a take-over; `None` for a first member, which has passed nothing on yet.
    fn taken_over(&self, epoch: u64, clock: &dyn Clock) -> Option<Notice> {
        let state = self.switch.state();
        if epoch <= 1 && state == State::Waiting {
            return None;
        }
        let cause = self.cause.filter(|_| state == State::Closed);
        let cause = cause.and_then(|(index, verdict)| Some((self.unless.get(index)?.name.as_str(), verdict)));
        let change = GateChange::TakenOver { state: state.as_str(), cause, epoch };
        Some(Notice::gate(self.topic, &self.topic_name, &self.to, clock.now(), change))
    }

    /// Counts a message that is neither passed on nor replaced, since the member is not active or has just taken over.
    pub(super) fn withhold(&mut self, permission: &Permission) {
        self.counts.withheld += 1;
        if permission.is_active() {
            self.counts.skipped += 1;
        } else {
            self.vacancy.note(permission.vacant_since());
        }
    }
}
