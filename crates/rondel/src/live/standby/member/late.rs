//! A member that starts late, or has missed messages, takes the state of the active one; the active one sends it.

use rondel_event::Timestamp;

use super::Worker;
use crate::live::pipeline::Joined;
use crate::live::standby::election::{MemberId, Nanos, Role, Sign};
use crate::live::standby::message::About;
use crate::live::standby::state::Taken;
use crate::live::standby::surroundings::{Outcome, Surroundings};
use crate::live::standby::transfer::giving::{Act, Giving};
use crate::live::standby::transfer::taking::{Step, Taking};
use crate::live::standby::transfer::{Answer, Request, Route};
use crate::output::time_text::TimeText;

/// Number of attempts to take the state of a member.
const ATTEMPTS: u32 = 3;
/// Longest wait for the next look at a transfer.
pub(super) const LOOK: Nanos = 20_000_000;
/// Reason for a wait.
const BUSY: &str = "the evaluating thread does not answer";

/// The transfers of a member.
#[derive(Default)]
pub(super) struct Transfers {
    /// To late members.
    giving: Giving,
    /// From the active member, if this one is late.
    taking: Option<Taking>,
    /// The transfer whose state is being joined, and the step of that state.
    joining: Option<(Route, u64)>,
    /// Time of day of the first message in the state on its way.
    coming: Option<i64>,
    /// Whether the member with the state on its way was late itself when the transfer began.
    is_of_late: bool,
    /// Time of day of the first message in the state that this member has taken.
    first: Option<i64>,
    /// Number of attempts so far.
    attempts: u32,
    /// Number of transfers to this member so far.
    number: u64,
}

impl Transfers {
    /// Whether the state of another member is on its way.
    pub(super) fn is_taking(&self) -> bool {
        self.taking.is_some() || self.joining.is_some()
    }

    /// Whether there is a transfer, in either direction.
    pub(super) fn is_any(&self) -> bool {
        self.is_taking() || self.giving.is_busy()
    }

    /// Whether a part waits to be sent.
    pub(super) fn has_parts(&self) -> bool {
        self.giving.has_parts()
    }

    /// Time of day of the first message in the state that this member has taken.
    pub(super) fn first(&self) -> Option<i64> {
        self.first
    }
}

impl<S: Surroundings> Worker<S> {
    /// Takes the state of the active member if that received messages before this one began.
    pub(super) fn begin_late(&mut self, active: &Sign, about: About) {
        let Some(first) = about.first.filter(|first| *first < self.about.since) else {
            if about.first.is_some() && !active.is_late && !self.missed.is_any() {
                // The active member has no earlier messages either. This one still lacks them, but ranks as any other.
                self.election.set_late(false);
            }
            return;
        };
        if !self.shared.resumes {
            // Verdicts after the mark depend on it already. One that is not set yet may begin earlier.
            let is_marked = self.lacks_earlier() && self.late.is_none() && !self.missed.is_any();
            if !is_marked {
                self.late = Some(self.late.map_or(first, |known| known.min(first)));
            }
            self.election.set_late(true);
            self.shared.handle.change(|state| state.is_late = true);
        }
        self.begin_attempts(active.from, about);
    }

    /// Begins the first attempt to take the state of a member.
    pub(super) fn begin_attempts(&mut self, id: MemberId, active: About) {
        self.transfers.attempts = 0;
        self.begin_taking(id, active);
    }

    /// Whether the session of this member lacks the effect of messages before its start, or may have missed some since.
    pub(super) fn lacks_earlier(&self) -> bool {
        self.shared.handle.state().is_late
    }

    fn begin_taking(&mut self, id: MemberId, active: About) {
        if let Some(why) = self.shared.takes_none {
            return self.go_on_late(&format!("the state of member {id} is not taken: {why}"));
        }
        if active.specification != self.about.specification {
            let why = format!("the state of member {id} is that of another specification");
            return self.go_on_late(&why);
        }
        self.missed.begin_transfer();
        self.transfers.attempts += 1;
        self.transfers.number += 1;
        // Other members have other ids, so that no two transfers have one number.
        let number = self.id.0.wrapping_add(self.transfers.number);
        let taking = Taking::new(self.now(), number, self.id, id);
        (self.transfers.taking, self.transfers.coming) = (Some(taking), active.first);
        self.transfers.is_of_late = self.election.is_other_late(id);
        let why = match self.missed.is_any() {
            true => "as this one may have missed messages",
            false => "which received earlier messages",
        };
        self.outside.say(&format!("takes the state of member {id}, {why}"));
    }

    /// Times of day between which messages came before the start of a late member, until they are marked.
    pub(super) fn unmarked(&self) -> Option<(Timestamp, Timestamp)> {
        let first = self.late?;
        Some((Timestamp::from_nanos(first), Timestamp::from_nanos(self.about.since)))
    }

    /// Ends to take the state of a member that another one has replaced, and takes the state of that one.
    pub(super) fn change_giver(&mut self, active: &Sign, about: About) {
        let taking = self.transfers.taking.take_if(|taking| taking.route().to != active.from);
        let Some(taking) = taking else { return };
        self.end_transfer(taking.route());
        let why = format!("the state of member {} is not taken: it is no longer active", taking.route().to);
        if self.missed.is_any() || about.first.is_some_and(|first| first < self.about.since) {
            self.outside.say(&why);
        } else {
            self.go_on_late(&why);
        }
        self.begin_late(active, about);
    }

    /// Marks the messages before the start of a late member as not received. Returns false if the evaluating thread does not
    /// answer.
    pub(super) fn mark_late(&mut self) -> bool {
        let Some((from, until)) = self.unmarked() else { return true };
        let limit = self.patience();
        let is_marked = self.outside.began_late(from, until, limit);
        // Before its first message, the session has no time of event: the mark is set again after that.
        if is_marked && self.about.first.is_some() {
            self.late = None;
        }
        is_marked
    }

    /// Handles a request for the state of this member.
    pub(super) fn receive_request(&mut self, route: Route, request: Request) {
        let (now, is_active) = (self.now(), self.election.role() == Role::Active);
        // A late member that was killed, and started again, has another id.
        let taker = self.transfers.giving.taker().filter(|taker| *taker != route.from);
        if request == Request::Record && taker.is_some_and(|taker| !self.election.lives(now, taker)) {
            self.transfers.giving.cancel();
            self.act(vec![Act::Forget]);
        }
        let acts = self.transfers.giving.receive(now, route, request, is_active);
        self.act(acts);
    }

    /// Handles an answer of the active member.
    pub(super) fn receive_answer(&mut self, route: Route, answer: Answer) {
        let now = self.now();
        let taking = self.transfers.taking.as_mut();
        if let Some(step) = taking.and_then(|taking| taking.receive(now, route, answer)) {
            self.take_step(step);
        }
    }

    /// Does everything of transfers that is due, and sends one part unless a sign is.
    pub(super) fn look_at_transfers(&mut self) {
        while let Some(outcome) = self.outside.outcome() {
            match outcome {
                Outcome::Saved(transfer, saved) => {
                    let acts = self.transfers.giving.saved(transfer, saved);
                    self.act(acts);
                }
                Outcome::Joined(transfer, joined) => self.end_joining(transfer, joined),
            }
        }
        let now = self.now();
        let ended = self.transfers.giving.look(now);
        self.act(ended.into_iter().collect());
        let taking = self.transfers.taking.as_mut();
        if let Some(step) = taking.and_then(|taking| taking.look(now)) {
            self.take_step(step);
        }
        if now < self.next_sign
            && let Some((route, part)) = self.transfers.giving.part()
        {
            // One that is lost is requested again.
            self.outside.answer(route, &part);
        }
    }

    fn act(&mut self, acts: Vec<Act>) {
        let limit = self.patience();
        for act in acts {
            match act {
                Act::Record => {
                    if !self.outside.note_identities(limit) {
                        // The late member repeats its request.
                        self.transfers.giving.cancel();
                        return;
                    }
                }
                Act::Save(route) => {
                    self.outside.say(&format!("sends its state to member {}", route.to));
                    self.outside.save(route.transfer);
                }
                Act::Send(route, answer) => self.outside.answer(route, &answer),
                Act::Forget => self.outside.end_noting(limit),
            }
        }
    }

    fn take_step(&mut self, step: Step) {
        let Some(route) = self.transfers.taking.as_ref().map(Taking::route) else { return };
        let limit = self.patience();
        match step {
            Step::Send(request) => self.outside.request(route, &request),
            Step::Keep => {
                let is_done = self.outside.begin_keeping(limit);
                self.go_on_taking(is_done);
            }
            Step::Copy => {
                let is_done = self.outside.copy_messages(limit);
                self.go_on_taking(is_done);
            }
            Step::Mark => {
                let is_done = self.outside.mark_copies(limit);
                self.go_on_taking(is_done);
            }
            Step::Join(state, head) => {
                self.outside.request(route, &Request::End);
                self.transfers.taking = None;
                self.transfers.joining = Some((route, head.step));
                self.outside.join(route.transfer, state);
            }
            Step::Fail(why, may_succeed) => self.fail_taking(&why, may_succeed),
        }
    }

    /// Goes on after a step, or repeats it at the next look if the evaluating thread does not answer.
    fn go_on_taking(&mut self, is_done: bool) {
        let now = self.now();
        let Some(taking) = &mut self.transfers.taking else { return };
        if is_done {
            taking.go_on(now);
        } else {
            taking.wait(BUSY);
        }
    }

    /// The state of another member was joined, or could not be.
    fn end_joining(&mut self, transfer: u64, joined: Result<Joined, String>) {
        let Some((route, step)) = self.transfers.joining.take_if(|(route, _)| route.transfer == transfer)
        else {
            return;
        };
        let from = route.to;
        let Joined { kept, dropped, uncertain } = match joined {
            Ok(joined) => joined,
            Err(why) => return self.retry(from, &why, true),
        };
        self.late = None;
        // With the state of a late member, this one lacks as much as that one.
        let is_of_late = self.transfers.is_of_late || self.election.is_other_late(from);
        let is_late = is_of_late && self.election.lives_complete(self.now(), from);
        self.election.set_late(is_late);
        if self.missed.end_transfer() {
            self.about.stood_still = None;
        }
        // Others rank this member by its next sign.
        self.next_sign = Nanos::MIN;
        self.transfers.first = self.transfers.coming;
        self.about.taken = Some((from, step));
        let taken = Taken { from, step, kept, dropped, uncertain };
        self.outside.say(&taken.sentence());
        if is_late {
            self.outside.warn(&format!(
                "member {from} is late itself, and another one is not: this member remains late, and takes the state of that \
                 one once it is active"
            ));
        }
        if !taken.uncertain.is_empty() {
            self.outside.warn(&format!(
                "messages on {} are equal, or reach the members at very different times: verdicts that depend on them are \
                 inconclusive",
                taken.uncertain.join(", ")
            ));
        }
        self.shared.handle.change(|state| {
            state.is_late = is_late;
            state.taken = Some(taken);
        });
    }

    /// Ends to take the state of another member, since this one takes over.
    pub(super) fn end_taking(&mut self) {
        let Some(taking) = self.transfers.taking.take() else { return };
        self.end_transfer(taking.route());
        let why = format!("this member takes over before it has the state of member {}", taking.route().to);
        self.go_on_late(&why);
    }

    fn end_transfer(&mut self, route: Route) {
        self.outside.request(route, &Request::End);
        let limit = self.patience();
        self.outside.end_keeping(limit);
    }

    fn fail_taking(&mut self, why: &str, may_succeed: bool) {
        let Some(taking) = self.transfers.taking.take() else { return };
        self.end_transfer(taking.route());
        self.retry(taking.route().to, why, may_succeed);
    }

    /// Takes the state of the member that is active now, unless that cannot succeed either.
    fn retry(&mut self, from: MemberId, why: &str, may_succeed: bool) {
        let active = self.election.active().filter(|id| *id != self.id);
        let active = active.filter(|id| may_succeed || *id != from);
        let known = active.and_then(|id| Some((id, self.others.get(id)?)));
        let why = format!("the state of member {from} cannot be taken: {why}");
        match known {
            Some((id, about)) if self.transfers.attempts < ATTEMPTS => {
                self.outside.warn(&format!("{why}; another attempt follows"));
                self.begin_taking(id, about);
            }
            _ => self.go_on_late(&why),
        }
    }

    /// Goes on without missed messages or those before the start, or with the snapshot that the run continues from.
    fn go_on_late(&mut self, why: &str) {
        if let Some(until) = self.missed.until() {
            let until = TimeText::default().text(until);
            return self.outside.warn(&format!(
                "{why}; this member may lack messages until {until}: verdicts that depend on missed ones are inconclusive"
            ));
        }
        if self.shared.resumes {
            self.outside.warn(&format!(
                "{why}; this member goes on from its snapshot: verdicts that depend on messages since then are inconclusive"
            ));
            return;
        }
        let since = TimeText::default().text(Timestamp::from_nanos(self.about.since));
        self.outside.warn(&format!(
            "{why}; this member receives messages since {since} only: verdicts that depend on earlier ones are inconclusive"
        ));
    }
}

#[cfg(test)]
mod tests;
