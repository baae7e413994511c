//! The thread of a member: sends and receives signs of life, and lets the pipeline publish or withhold.

mod ignored;
mod late;
mod missed;
mod others;
mod publishing;
mod returns;

use std::ops::ControlFlow;
use std::sync::Arc;
use std::sync::mpsc::{self, RecvTimeoutError};
use std::time::Duration;

use rondel_event::Timestamp;
use rondel_runtime::{Clock as _, SystemClock};

use super::QUEUE;
use super::election::{Change, Election, Fence, MemberId, Nanos, Role, Sign};
use super::message::{About, Message};
use super::state::GroupHandle;
use super::surroundings::Surroundings;
use crate::live::pipeline::Unresponsive;
use crate::sinks::withheld::Permit;
use ignored::Warned;
use late::Transfers;
use missed::Missed;
use others::{MOST, Noted, Others, differences};
use returns::Returns;

/// Longest wait for the evaluating thread, between two signs.
const LOOK: Duration = Duration::from_millis(20);
/// The least time after which an evaluating thread that does not move makes its member silent.
const STUCK: Nanos = 1_000_000_000;
/// The same in leases, if that is longer.
const STUCK_LEASES: Nanos = 10;
/// The least time after which a thread that does not run has stood still, as for pauses of a session.
const STILL: Nanos = 500_000_000;
/// The longest time by which verdicts may be ahead of the clock, or of the withheld ones.
const AHEAD: i64 = 86_400_000_000_000;
/// The least time after which an active member without a standby warns.
const ALONE: Nanos = 10_000_000_000;

/// An event for the thread.
pub(super) enum Event {
    /// A message of the group.
    Received(Box<Message>),
    /// The run ends.
    End,
}

/// The state that the thread of a member shares with its run.
pub(super) struct Shared {
    /// The permit to publish.
    pub permit: Arc<Permit>,
    /// The handle that others have.
    pub handle: GroupHandle,
    /// Whether the run continues from a snapshot.
    pub resumes: bool,
    /// The reason why it takes no state of another member, if it does not.
    pub takes_none: Option<&'static str>,
    /// Whether the network returns the signs of this member to it, and gates pass messages on only while it does.
    pub awaits_returns: bool,
}

/// The thread of a member.
pub(super) struct Worker<S> {
    lease: Nanos,
    prefer: i64,
    id: MemberId,
    about: About,
    pub(super) election: Election,
    shared: Shared,
    pub(super) outside: S,
    /// Time of the last claim.
    claimed: Nanos,
    /// Number of the next sign.
    number: u64,
    /// The time of the next sign.
    next_sign: Nanos,
    /// Whether the last sign was accepted.
    is_sending: bool,
    /// The signs that the network returns.
    returns: Returns,
    /// Position of the sign before: verdicts before it have left the process.
    reached: Option<i64>,
    /// The epoch in which to begin to publish, until the pipeline has begun.
    begins: Option<u64>,
    /// Whether withheld verdicts have still to be published.
    is_releasing: bool,
    /// Time of day of the first message that the active member had received before this one began, until the session knows
    /// that. It is marked after a message of this member: until then the session has no time of event.
    late: Option<i64>,
    /// Whether a warning has named a standby with the state that this active member lacks.
    has_named_better: bool,
    /// The transfers of states.
    transfers: Transfers,
    /// Messages that it may have missed since it began.
    missed: Missed,
    /// Time since which the evaluating thread has not moved.
    stuck: Option<Nanos>,
    /// The ignored messages that a warning has named.
    warned: Warned,
    /// The other members.
    others: Others,
    /// The standbys at the last look.
    standbys: Vec<MemberId>,
    /// Time since which an active member has no standby, until that is shown.
    alone: Option<Nanos>,
}

impl<S: Surroundings> Worker<S> {
    /// The thread of a member that has just begun.
    pub(super) fn new(
        prefer: i64,
        about: About,
        election: Election,
        shared: Shared,
        outside: S,
    ) -> Worker<S> {
        Worker {
            lease: about.lease,
            prefer,
            id: shared.handle.state().member,
            about,
            election,
            shared,
            outside,
            claimed: Nanos::MIN,
            number: 0,
            next_sign: Nanos::MIN,
            is_sending: true,
            returns: Returns::default(),
            reached: None,
            begins: None,
            is_releasing: false,
            late: None,
            has_named_better: false,
            transfers: Transfers::default(),
            missed: Missed::default(),
            stuck: None,
            warned: Warned::default(),
            others: Others::default(),
            standbys: Vec::new(),
            alone: None,
        }
    }

    fn now(&self) -> Nanos {
        self.shared.permit.now()
    }

    /// Runs until the end of the run.
    pub(super) fn run(mut self, incoming: &mpsc::Receiver<Event>) {
        let (now, process) = (self.now(), self.about.process);
        let wait = in_ms(self.election.next(now) - now);
        self.outside.say(&format!("member {} (process {process}) waits {wait} for an active one", self.id));
        // Time at the last look, so that a standstill is noticed wherever it begins. This clock goes on while the machine
        // sleeps.
        let mut looked = SystemClock.ticks();
        loop {
            let pause = self.pause();
            let due = looked.saturating_add(i64::try_from(pause.as_nanos()).unwrap_or(i64::MAX));
            let first = match incoming.recv_timeout(pause) {
                Ok(event) => Some(event),
                Err(RecvTimeoutError::Timeout) => None,
                Err(RecvTimeoutError::Disconnected) => return self.finish(),
            };
            looked = SystemClock.ticks();
            if looked.saturating_sub(due) >= STILL {
                self.note_standstill();
            }
            // Limited, as a sign may be due.
            let further = std::iter::from_fn(|| incoming.try_recv().ok()).take(QUEUE);
            if self.step(first.into_iter().chain(further)).is_break() {
                return self.finish();
            }
        }
    }

    /// Handles events, and does everything that is due. Breaks at the end of the run.
    pub(super) fn step(&mut self, events: impl Iterator<Item = Event>) -> ControlFlow<()> {
        // After a pause of the process, an active member stops first, and another one first receives what has come.
        if self.election.role() == Role::Active {
            self.look();
        }
        self.note_outages();
        for event in events {
            match event {
                Event::Received(message) => self.receive(*message),
                Event::End => return ControlFlow::Break(()),
            }
        }
        self.look();
        self.look_at_transfers();
        self.look_at_missed();
        self.publish_withheld();
        if self.now() >= self.next_sign {
            self.sign();
        }
        self.look_at_standbys();
        self.look_at_ignored();
        self.show();
        ControlFlow::Continue(())
    }

    /// Time until the next sign or look.
    pub(super) fn pause(&self) -> Duration {
        if self.begins.is_some() || self.is_releasing || self.transfers.has_parts() {
            return Duration::ZERO;
        }
        let now = self.now();
        let mut next = self.next_sign.min(self.election.next(now));
        if self.transfers.is_any() {
            next = next.min(now + late::LOOK);
        }
        Duration::from_nanos(u64::try_from(next.saturating_sub(now)).unwrap_or(0))
    }

    fn look(&mut self) {
        let now = self.now();
        if self.shared.permit.take_lapsed()
            && let Some(change) = self.election.lapse(now)
        {
            self.apply(change);
        }
        if let Some(change) = self.election.look(now) {
            self.apply(change);
        }
    }

    fn receive(&mut self, message: Message) {
        let (sign, about) = match message {
            Message::Promote { to, epoch } => return self.hand_over(to, epoch),
            Message::Sign(sign, _) if sign.from == self.id => return self.receive_own(sign.number),
            Message::Sign(sign, _) if !self.election.is_plausible(&sign) => return self.ignore_sign(&sign),
            // Its position is not that of the present.
            Message::Sign(sign, _) if self.election.is_repeated(self.now(), &sign) => return,
            Message::Sign(sign, about) => {
                let now = rondel_net::adapter::now().as_nanos();
                (Sign { position: self.plausible(sign.position, now), ..sign }, about.received(now))
            }
            Message::Request(route, request) if route.to == self.id => {
                return self.receive_request(route, request);
            }
            Message::Answer(route, answer) if route.to == self.id => {
                return self.receive_answer(route, answer);
            }
            Message::Request(..) | Message::Answer(..) => return,
        };
        self.compare(sign.from, about);
        let was_starting = self.election.role() == Role::Starting;
        let was_active = self.election.active() == Some(sign.from);
        let change = self.election.receive(self.now(), &sign);
        if was_active || sign.successor.is_some() || self.election.active() == Some(sign.from) {
            self.shared.permit.set_published(self.election.position());
        }
        if let Some(change) = change {
            let is_behind = was_starting || self.lacks_earlier() && !self.transfers.is_taking();
            self.apply(change);
            match change {
                Change::Claimed(_) | Change::Fenced(Fence::StoodStill(_) | Fence::Unsent) => {}
                // A member that another one has replaced follows it from then on.
                Change::Follows(_) | Change::Fenced(Fence::Superseded(..)) if is_behind => {
                    self.begin_late(&sign, about);
                }
                Change::Follows(_) | Change::Fenced(Fence::Superseded(..)) => self.change_giver(&sign, about),
            }
        }
        if self.election.role() == Role::Active && sign.role == Role::Active && !sign.ends {
            // It stops once it receives a sign of this one.
            self.sign();
        }
    }

    /// The position in a sign, unless it is later than everything that the active member can have published: all withheld
    /// verdicts would count as published.
    fn plausible(&self, position: Option<i64>, now: i64) -> Option<i64> {
        let latest = now.max(self.shared.permit.latest());
        position.filter(|position| *position <= latest.saturating_add(AHEAD))
    }

    /// Warns of a member with other settings, once.
    fn compare(&mut self, id: MemberId, about: About) {
        self.election.set_lease(self.now(), id, about.lease);
        match self.others.note(self.now(), id, about) {
            Noted::New => {
                let ahead = about.ahead(rondel_net::adapter::now().as_nanos());
                for warning in differences(&self.about, id, &about, ahead) {
                    self.outside.warn(&warning);
                }
            }
            Noted::Refused => self.outside.warn(&format!(
                "there are signs of more than {MOST} other members: no lines are written about further ones, from member \
                 {id} on"
            )),
            Noted::Known | Noted::RefusedAgain => {}
        }
    }

    fn apply(&mut self, change: Change) {
        match change {
            Change::Claimed(why) => self.take_over(why),
            Change::Follows(id) => {
                let process = self.others.process(id);
                let epoch = self.election.epoch();
                self.outside.say(&format!(
                    "standby: member {id} (process {process}) is active in epoch {epoch}; verdicts are withheld"
                ));
            }
            Change::Fenced(why) => {
                self.shared.permit.revoke();
                self.shared.permit.set_published(self.election.position());
                self.stop();
                self.shared.handle.change(|state| state.fenced += 1);
                let why = match why {
                    Fence::StoodStill(lasted) => format!("this process stood still for {}", in_ms(lasted)),
                    Fence::Unsent => "no sign of life could be sent in time".to_owned(),
                    Fence::Superseded(id, epoch) => format!("member {id} is active in epoch {epoch}"),
                };
                self.outside.warn(&format!("fenced: {why}; verdicts are withheld"));
            }
        }
        self.next_sign = Nanos::MIN;
        self.show();
    }

    /// Sends a sign of life, which permits an active member to publish for almost a lease.
    fn sign(&mut self) {
        // The permission begins before the sign leaves, and only if the one before has not ended.
        let at = self.now();
        self.next_sign = at + self.lease / 3;
        if !self.is_moving(at) {
            return self.election.postpone(at);
        }
        if let Some(change) = self.election.look(at) {
            return self.apply(change);
        }
        let position = if self.election.role() == Role::Active { self.delivered_position() } else { None };
        let was_sending = self.is_sending;
        if !self.send(position, false, None) {
            return self.election.postpone(at);
        }
        if !was_sending {
            self.rest();
        }
        self.election.sent(at);
        if self.election.role() == Role::Active {
            self.shared.permit.extend(self.election.until());
        }
    }

    /// Whether the evaluating thread moves. Reads the time of the first message from it.
    fn is_moving(&mut self, now: Nanos) -> bool {
        let limit = self.patience();
        let Some(first) = self.outside.first_received(limit) else { return true };
        match first {
            Ok(first) => {
                let first = first.map(Timestamp::as_nanos);
                self.about.first = first.into_iter().chain(self.transfers.first()).min();
                self.stuck = None;
                // Also while a state is on its way: this member may take over before it has it.
                if first.is_some() {
                    self.mark_late();
                }
                true
            }
            Err(Unresponsive) => {
                let since = *self.stuck.get_or_insert(now);
                now - since < STUCK.max(STUCK_LEASES * self.lease)
            }
        }
    }

    /// Returns the position of the sign before, once no verdict waits in a queue: the last ones may still be lost.
    fn delivered_position(&mut self) -> Option<i64> {
        let delivered = self.reached;
        if !self.outside.is_behind() {
            self.reached = self.shared.permit.position();
        }
        delivered
    }

    /// Sends a sign. Returns whether the network has accepted it.
    fn send(&mut self, position: Option<i64>, ends: bool, successor: Option<MemberId>) -> bool {
        self.number += 1;
        self.about.sent = Some(rondel_net::adapter::now().as_nanos());
        let is_active = self.election.role() == Role::Active;
        self.about.active_for = is_active.then(|| self.now().saturating_sub(self.claimed));
        let is_own = is_active || successor.is_some();
        let epoch = if is_own { self.election.epoch() } else { self.election.latest_epoch() };
        let sign = Sign {
            from: self.id,
            number: self.number,
            epoch,
            prefer: self.prefer,
            is_late: self.election.is_late(),
            role: self.election.role(),
            position,
            ends,
            successor,
        };
        let at = self.now();
        let sent = self.outside.send(&sign, &self.about);
        self.returns.sent(self.number, at);
        if let Err(error) = &sent
            && self.is_sending
        {
            self.outside.warn(&format!("cannot send a sign of life: {error}"));
        }
        self.is_sending = sent.is_ok();
        self.is_sending
    }

    /// Shows standbys that come and go, and that none is there.
    fn look_at_standbys(&mut self) {
        if self.election.role() != Role::Active {
            return;
        }
        let now = self.now();
        let standby = |(id, role): (MemberId, Role)| (role != Role::Active).then_some(id);
        let standbys: Vec<MemberId> = self.election.others(now).filter_map(standby).collect();
        let Worker { others, election, outside, .. } = self;
        for line in others.lines(now, &standbys, |id| election.has_ended(id)) {
            match line.is_warning {
                true => outside.warn(&line.text),
                false => outside.say(&line.text),
            }
        }
        if !standbys.is_empty() {
            self.alone = None;
        } else if !self.standbys.is_empty() {
            self.alone = Some(now);
        }
        if self.alone.is_some_and(|since| now - since >= ALONE.max(STUCK_LEASES * self.lease)) {
            self.alone = None;
            self.outside.warn("no member stands by: no other one takes over if this process ends");
        }
        self.standbys = standbys;
        self.name_better(now);
        self.look_at_returns(now);
    }

    fn show(&self) {
        let now = self.now();
        let (role, epoch, active) = (self.election.role(), self.election.epoch(), self.election.active());
        let others = self.election.others(now).filter(|(_, role)| *role != Role::Active);
        let (withheld, dropped) = (self.shared.permit.withheld(), self.shared.permit.dropped());
        let is_late = self.election.is_late();
        self.shared.handle.change(|state| {
            (state.role, state.epoch, state.active) = (role, epoch, active);
            (state.withheld, state.dropped) = (withheld, dropped);
            state.is_ranked_late = is_late;
            state.standbys.clear();
            state.standbys.extend(others.map(|(id, _)| id));
        });
    }

    /// Sends the last sign: the verdicts of the run have been published.
    fn finish(mut self) {
        self.show();
        let unmarked = self.unmarked();
        self.shared.handle.change(|state| state.unmarked = unmarked);
        let position =
            if self.election.role() == Role::Active { self.shared.permit.position() } else { None };
        self.shared.permit.revoke();
        self.send(position, true, None);
        self.outside.flush();
    }

    /// Time limit for the evaluating thread.
    fn patience(&self) -> Duration {
        Duration::from_nanos(u64::try_from(self.lease / 6).unwrap_or(0)).min(LOOK)
    }
}

/// A time in milliseconds, for messages.
fn in_ms(nanos: Nanos) -> String {
    format!("{} ms", nanos.saturating_add(500_000) / 1_000_000)
}
