//! Permission of gates to publish: always, or in a group while its member is active.

use std::sync::Arc;

use crate::sinks::withheld::Permit;

/// Messages that gates may publish now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scope {
    /// None: the member is not active.
    Nothing,
    /// Substitutes only: the member has taken over less than a lease ago, or the network has not returned its signs since.
    /// Another member may pass on the messages that arrive now.
    Substitutes,
    /// All.
    Everything,
}

/// Permission of the gates of a run to publish.
///
/// It is looked at directly before a message is published, with one look at the clock. A permission that has ended, or was
/// revoked, comes back only by [`Permission::begin`].
#[derive(Debug, Default)]
pub struct Permission {
    /// The member of a group; without one everything may be published.
    member: Option<Member>,
}

/// The permission of a member of a group.
#[derive(Debug)]
struct Member {
    permit: Arc<Permit>,
    /// The lease of the group, in nanoseconds.
    lease: i64,
    /// The turn of the member to publish, while it is active.
    turn: Option<Turn>,
    /// Time at which the last turn ended; `i64::MIN` before the first.
    stopped: i64,
}

/// The turn of an active member, from its take-over on.
#[derive(Clone, Copy, Debug)]
struct Turn {
    /// Time from which messages are passed on.
    passes: i64,
    /// Number of revocations when it began.
    revocations: u64,
}

impl Permission {
    /// The permission of a member of a group with this lease in nanoseconds. It begins without a turn to publish.
    pub fn of_member(permit: Arc<Permit>, lease: i64) -> Permission {
        Permission { member: Some(Member { permit, lease, turn: None, stopped: i64::MIN }) }
    }

    /// Begins a turn of the member: substitutes are published at once, messages are passed on after one lease, from the time
    /// on at which the network has returned a sign of this turn, and while it returns further ones.
    pub fn begin(&mut self) {
        if let Some(member) = &mut self.member {
            let passes = member.permit.now().saturating_add(member.lease);
            member.turn = Some(Turn { passes, revocations: member.permit.revocations() });
        }
    }

    /// Passes nothing on until one lease after [`Permission::note_first`].
    pub fn await_first(&mut self) {
        if let Some(turn) = self.member.as_mut().and_then(|member| member.turn.as_mut()) {
            turn.passes = i64::MAX;
        }
    }

    /// Notes the first message of the run.
    pub fn note_first(&mut self) {
        if let Some(member) = &mut self.member
            && let Some(turn) = &mut member.turn
            && turn.passes == i64::MAX
        {
            turn.passes = member.permit.now().saturating_add(member.lease);
        }
    }

    /// Ends the turn of the member, if it has one.
    pub fn stop(&mut self) {
        if let Some(member) = &mut self.member
            && member.turn.take().is_some()
        {
            member.stopped = member.permit.now();
        }
    }

    /// Whether it is the turn of this run to publish, as of the last look.
    pub fn is_active(&self) -> bool {
        self.member.as_ref().is_none_or(|member| member.turn.is_some())
    }

    /// The messages that may be published now. In a group, looks at the clock while the member is active.
    #[inline]
    pub fn scope(&mut self) -> Scope {
        self.member.as_mut().map_or(Scope::Everything, Member::scope)
    }

    /// Time from which messages that are not passed on may be passed on by no member: that of the last sign of the active
    /// member, or of the end of the last turn.
    pub fn vacant_since(&self) -> i64 {
        self.member.as_ref().map_or(i64::MIN, |member| member.permit.signed().max(member.stopped))
    }

    /// The lease of the group, in nanoseconds; 0 without a group.
    pub fn lease(&self) -> i64 {
        self.member.as_ref().map_or(0, |member| member.lease)
    }
}

impl Member {
    fn scope(&mut self) -> Scope {
        let Some(turn) = self.turn else { return Scope::Nothing };
        let now = self.permit.now();
        let is_revoked = self.permit.revocations() != turn.revocations;
        if is_revoked || !self.permit.allows(now) {
            (self.turn, self.stopped) = (None, now);
            if !is_revoked {
                // The thread of the group does not know it yet.
                self.permit.lapse();
            }
            return Scope::Nothing;
        }
        let passes = now >= turn.passes && self.permit.is_proven(now, self.lease);
        if passes { Scope::Everything } else { Scope::Substitutes }
    }
}

/// Numbers of messages that a member has withheld since the last signs of the active one, by these signs: the messages that
/// possibly no member has passed on, if that was its last sign.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Vacancy {
    /// Times of the last two signs after which messages came, with the numbers of these messages.
    counts: [(i64, u64); 2],
}

impl Vacancy {
    /// Counts a withheld message. `since` is the time of the last sign.
    pub(super) fn note(&mut self, since: i64) {
        if self.counts[1].0 != since {
            self.counts = [self.counts[1], (since, 0)];
        }
        self.counts[1].1 += 1;
    }

    /// Takes the number of messages since the last sign but one, at a take-over. `since` is the time of the last sign: signs
    /// are a third of the lease apart.
    pub(super) fn take(&mut self, since: i64, lease: i64) -> u64 {
        let first = since.saturating_sub(lease / 2);
        let counts = std::mem::take(&mut self.counts);
        counts.iter().filter(|(sign, _)| *sign >= first).map(|(_, count)| count).sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn run_outside_of_groups_publishes_everything() {
        let mut permission = Permission::default();
        permission.stop();
        assert!(permission.scope() == Scope::Everything && permission.is_active());
    }

    #[test]
    fn member_passes_messages_on_one_lease_after_its_take_over() {
        let permit = Arc::new(Permit::simulated(0));
        let mut permission = Permission::of_member(Arc::clone(&permit), 90);
        permit.extend(1_000);
        assert!(permission.scope() == Scope::Nothing && !permission.is_active(), "it has not taken over");
        permit.set_now(10);
        permission.begin();
        assert!(permission.scope() == Scope::Substitutes && permission.is_active());
        permit.set_now(99);
        assert_eq!(permission.scope(), Scope::Substitutes);
        permit.set_now(100);
        assert_eq!(permission.scope(), Scope::Everything);
        permission.stop();
        assert_eq!((permission.scope(), permission.vacant_since()), (Scope::Nothing, 100));
        assert!(!permit.take_lapsed(), "it was stopped in time");
    }

    #[test]
    fn member_that_awaits_its_first_message_passes_nothing_on_for_one_lease_more() {
        let permit = Arc::new(Permit::simulated(0));
        let mut permission = Permission::of_member(Arc::clone(&permit), 90);
        permit.extend(1_000);
        permission.begin();
        permission.await_first();
        permit.set_now(500);
        assert_eq!(permission.scope(), Scope::Substitutes);
        permission.note_first();
        permit.set_now(589);
        assert_eq!(permission.scope(), Scope::Substitutes);
        permission.note_first();
        permit.set_now(590);
        assert_eq!(permission.scope(), Scope::Everything);
    }

    #[test]
    fn member_passes_messages_on_only_while_the_network_returns_its_signs() {
        let permit = Arc::new(Permit::simulated(0));
        let mut permission = Permission::of_member(Arc::clone(&permit), 90);
        permit.extend(10_000);
        permit.await_proof();
        permission.begin();
        let mut scope_at = |now: i64| {
            permit.set_now(now);
            permission.scope()
        };
        assert_eq!(scope_at(500), Scope::Substitutes, "the network stands still");
        permit.prove(500, 570);
        assert_eq!(scope_at(560), Scope::Substitutes);
        permit.prove(500, 600);
        assert_eq!(scope_at(589), Scope::Substitutes, "its lease begins with the sign that came back");
        assert_eq!(scope_at(590), Scope::Everything);
        assert_eq!(scope_at(600), Scope::Substitutes, "no further one has come back");
        permit.prove(500, 650);
        assert_eq!(scope_at(601), Scope::Everything);
        permit.await_proof();
        assert_eq!(scope_at(602), Scope::Substitutes, "it has taken over again");
    }

    #[test]
    fn permission_that_has_ended_does_not_come_back_by_itself() {
        let permit = Arc::new(Permit::simulated(0));
        let mut permission = Permission::of_member(Arc::clone(&permit), 10);
        permit.extend(50);
        permission.begin();
        permit.set_now(50);
        assert!(permission.scope() == Scope::Nothing && permit.take_lapsed());
        permit.extend(100);
        assert_eq!(permission.scope(), Scope::Nothing, "the thread of the group has to begin again");
        permission.begin();
        assert_eq!(permission.scope(), Scope::Substitutes);
        // The evaluating thread did not move while the member was replaced, and took over again.
        permit.set_now(60);
        permit.revoke();
        permit.extend(200);
        assert!(permission.scope() == Scope::Nothing && !permission.is_active());
        assert!(!permit.take_lapsed(), "the thread of the group has revoked it");
    }

    #[test]
    fn messages_since_the_last_sign_but_one_are_counted() {
        let mut vacancy = Vacancy::default();
        for since in [i64::MIN, 1_000, 1_000, 1_030, 1_030, 1_030] {
            vacancy.note(since);
        }
        assert_eq!(vacancy.take(1_030, 90), 5);
        assert_eq!(vacancy.take(1_030, 90), 0, "they are taken once");
        vacancy.note(1_000);
        assert_eq!(vacancy.take(5_000, 90), 0, "signs have come since");
        vacancy.note(i64::MIN);
        assert_eq!(vacancy.take(i64::MIN, 90), 1, "no member was ever active");
    }
}
