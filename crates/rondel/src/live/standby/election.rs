//! The election of the active member of a group. Pure: times and messages are arguments, so that tests simulate networks.
//!
//! An active member sends a sign of life every third of the lease, and may publish until nine tenths of the lease after the
//! last one that it sent. Another member claims no sooner than a whole lease after the last one that it received: while
//! signs arrive, at most one member publishes, also after a pause of either process.

mod change;
mod leases;
mod others;
mod sign;

use std::cmp::Reverse;
use std::collections::BTreeMap;

pub use change::{Change, Claim, Fence, Refusal};
use leases::Leases;
use others::{Numbers, Other};
pub use sign::{MemberId, Role, Sign};
use sign::{Rank, rank};

/// A time on the monotonic clock of a process, in nanoseconds.
pub type Nanos = i64;

/// Number of members that are remembered. Further ones are ignored.
const MEMBERS: usize = 64;
/// The longest lease of a member.
const LONGEST_LEASE: Nanos = 60_000_000_000;
/// The largest epoch: readers of JSON may round larger numbers.
pub const LARGEST_EPOCH: u64 = 1 << 53;
/// The largest distance of an epoch from the latest known one.
const EPOCH_LEAP: u64 = 1 << 32;
/// Number of leases after which a silent member is forgotten.
const FORGOTTEN: Nanos = 30;

/// The settings of a member.
#[derive(Clone, Copy, Debug)]
pub struct Member {
    /// Its number.
    pub id: MemberId,
    /// Its preference.
    pub prefer: i64,
    /// The lease, in nanoseconds.
    pub lease: Nanos,
}

/// The election as one member sees it.
#[derive(Debug)]
pub struct Election {
    own: Member,
    /// Whether this member lacks the state of earlier messages, which another one may have.
    is_late: bool,
    role: Role,
    /// The largest epoch of an active member so far; while active the own one.
    epoch: u64,
    /// The largest epoch in any sign so far: a claim is later.
    seen: u64,
    /// The active member, if it is another one.
    active: Option<Active>,
    /// Reason for a claim at the deadline.
    vacancy: Claim,
    /// Time from which this member may claim, if no better one does.
    deadline: Nanos,
    /// Time until which an active member may publish.
    until: Nanos,
    /// Time of the last look.
    looked: Nanos,
    /// Time before which a member that stood still claims nothing: signs of that time have still to be received.
    rests: Nanos,
    others: BTreeMap<MemberId, Other>,
    leases: Leases,
    /// Time of event up to which an active member has published.
    position: Option<i64>,
}

#[derive(Clone, Copy, Debug)]
struct Active {
    id: MemberId,
    rank: Rank,
}

impl Election {
    /// Begins: the member waits for one lease before it claims.
    pub fn new(own: Member, now: Nanos) -> Election {
        Election {
            own,
            is_late: false,
            role: Role::Starting,
            epoch: 0,
            seen: 0,
            active: None,
            vacancy: Claim::Vacant,
            deadline: now + own.lease,
            until: now,
            looked: now,
            rests: now,
            others: BTreeMap::new(),
            leases: Leases::default(),
            position: None,
        }
    }

    /// The state.
    pub fn role(&self) -> Role {
        self.role
    }

    /// The largest epoch of an active member so far; while active the own one.
    pub fn epoch(&self) -> u64 {
        self.epoch
    }

    /// The largest epoch in any sign so far.
    pub fn latest_epoch(&self) -> u64 {
        self.epoch.max(self.seen)
    }

    /// Whether the epoch of a sign can be that of a group: one far ahead of the latest known one is forged or damaged.
    pub fn is_plausible(&self, sign: &Sign) -> bool {
        let latest = self.latest_epoch();
        let is_near = latest == 0 || sign.epoch.saturating_sub(latest) <= EPOCH_LEAP;
        sign.epoch <= LARGEST_EPOCH && is_near
    }

    /// The active member.
    pub fn active(&self) -> Option<MemberId> {
        if self.role == Role::Active { Some(self.own.id) } else { self.active.map(|active| active.id) }
    }

    /// Whether this member lacks the state of earlier messages, which another one may have: it ranks behind every member that
    /// has it.
    pub fn is_late(&self) -> bool {
        self.is_late
    }

    /// The same of another member, by its last sign.
    pub fn is_other_late(&self, id: MemberId) -> bool {
        self.others.get(&id).is_some_and(|other| !other.is_complete())
    }

    /// Whether a member lives that is not late, apart from one.
    pub fn lives_complete(&self, now: Nanos, except: MemberId) -> bool {
        self.living(now).any(|(id, other)| id != except && other.is_complete())
    }

    /// The same of the active member, if that is another one.
    pub fn is_active_late(&self) -> bool {
        self.active.is_some_and(|active| {
            let (is_complete, ..) = active.rank;
            !is_complete
        })
    }

    /// Sets [`Election::is_late`].
    pub fn set_late(&mut self, is_late: bool) {
        self.is_late = is_late;
    }

    /// Time of event up to which another active member has published, as far as it is known.
    pub fn position(&self) -> Option<i64> {
        self.position
    }

    /// The other members that live, with their states.
    pub fn others(&self, now: Nanos) -> impl Iterator<Item = (MemberId, Role)> {
        self.living(now).map(|(id, other)| (id, other.role))
    }

    /// Whether another member lives.
    pub fn lives(&self, now: Nanos, id: MemberId) -> bool {
        self.living(now).any(|(other, _)| other == id)
    }

    /// Whether the process of another member has ended in order, by its last sign.
    pub fn has_ended(&self, id: MemberId) -> bool {
        self.others.get(&id).is_some_and(|other| other.has_ended)
    }

    /// The best standby that lives, is not late and fulfils a condition.
    pub fn best_standby(&self, now: Nanos, is_wanted: impl Fn(MemberId) -> bool) -> Option<MemberId> {
        self.best(now, is_wanted).filter(|(_, is_late)| !is_late).map(|(id, _)| id)
    }

    /// The best standby that lives and fulfils a condition, and whether it is late.
    fn best(&self, now: Nanos, is_wanted: impl Fn(MemberId) -> bool) -> Option<(MemberId, bool)> {
        let is_standby = |(id, other): &(MemberId, &Other)| other.role == Role::Standby && is_wanted(*id);
        let best = self.living(now).filter(is_standby).map(|(_, other)| other.rank).max();
        best.map(|(is_complete, _, Reverse(id))| (id, !is_complete))
    }

    fn own_rank(&self) -> Rank {
        rank(self.is_late, self.own.prefer, self.own.id)
    }

    fn living(&self, now: Nanos) -> impl Iterator<Item = (MemberId, &Other)> {
        let lives = move |(id, other): &(&MemberId, &Other)| {
            !other.has_ended && other.received >= now - self.lease_of(**id)
        };
        self.others.iter().filter(lives).map(|(id, other)| (*id, other))
    }

    /// Notes the lease in a sign of another member. It sends its signs by its own lease, and may publish for almost as long.
    pub fn set_lease(&mut self, now: Nanos, id: MemberId, lease: Nanos) {
        self.leases.note(now, self.own.lease, (id, lease), |id| self.others.contains_key(&id));
    }

    /// Time without a sign after which another member counts as silent: the longer one of both leases, once signs have
    /// confirmed it.
    pub fn lease_of(&self, id: MemberId) -> Nanos {
        self.leases.of(self.own.lease, id)
    }

    /// Time until which the member may publish.
    pub fn until(&self) -> Nanos {
        self.until
    }

    /// The time of the next look that can change something.
    pub fn next(&self, now: Nanos) -> Nanos {
        if self.role == Role::Active { self.until } else { self.claims_at(now) }
    }

    /// Looks at the clock: claims if no member is active, and stops to publish if no sign was sent in time.
    pub fn look(&mut self, now: Nanos) -> Option<Change> {
        if self.role == Role::Active {
            if now >= self.until {
                return self.lapse(now);
            }
            self.looked = now;
            return None;
        }
        self.note_pause(now);
        self.looked = now;
        (now >= self.claims_at(now)).then(|| self.claim(now, self.vacancy))
    }

    /// Notes that a member that is not active stood still, if it did.
    fn note_pause(&mut self, now: Nanos) {
        if now - self.looked > self.own.lease / 2 {
            self.looked = now;
            self.postpone(now);
        }
    }

    /// Marks a sign as sent. `at` is the time before it was handed to the network.
    pub fn sent(&mut self, at: Nanos) {
        if self.role == Role::Active {
            self.until = at + self.own.lease / 10 * 9;
        }
    }

    /// Stops to publish, since the evaluating thread found that no sign was sent in time.
    pub fn lapse(&mut self, now: Nanos) -> Option<Change> {
        if self.role != Role::Active {
            // A pause is not over before the next look.
            return None;
        }
        let gap = now - std::mem::replace(&mut self.looked, now);
        let why = if gap > self.own.lease { Fence::StoodStill(gap) } else { Fence::Unsent };
        Some(self.fence(now, why))
    }

    /// Claims nothing before a time, until which signs of others may not arrive.
    pub fn rest_until(&mut self, time: Nanos) {
        self.rests = self.rests.max(time);
    }

    /// Postpones a claim: the member can neither evaluate messages nor send signs at present.
    pub fn postpone(&mut self, now: Nanos) {
        self.rest_until(now + self.own.lease);
    }

    /// Receives a sign of life.
    pub fn receive(&mut self, now: Nanos, sign: &Sign) -> Option<Change> {
        if self.role != Role::Active {
            self.note_pause(now);
        }
        if sign.from == self.own.id || !self.is_plausible(sign) || !self.note(now, sign) {
            return None;
        }
        let known = self.epoch;
        self.seen = self.seen.max(sign.epoch);
        if self.role != Role::Active && (sign.role == Role::Active || sign.successor.is_some()) {
            self.epoch = known.max(sign.epoch);
        }
        if let Some(successor) = sign.successor {
            return self.receive_handover(now, sign, successor, known);
        }
        if sign.ends {
            return self.receive_end(now, sign);
        }
        if sign.role != Role::Active {
            return None;
        }
        let order = (sign.epoch, sign.rank());
        match (self.role, self.active) {
            (Role::Active, _) if order > (known, self.own_rank()) => {
                let change = self.fence(now, Fence::Superseded(sign.from, sign.epoch));
                self.epoch = sign.epoch;
                self.follow(now, sign);
                Some(change)
            }
            (Role::Active, _) => None,
            _ if sign.epoch < known => None,
            // Of two active members with one epoch, the other one is about to stop.
            (_, Some(active))
                if active.id != sign.from
                    && sign.epoch == known
                    && order < (known, active.rank)
                    && now < self.deadline =>
            {
                None
            }
            (_, active) => {
                let is_known = active.is_some_and(|active| active.id == sign.from);
                self.follow(now, sign);
                (!is_known).then_some(Change::Follows(sign.from))
            }
        }
    }

    /// Hands over to a standby, if it is active in this epoch: to the given one, or to the best. It stops to publish now.
    ///
    /// # Errors
    /// The reason why it does not.
    pub fn hand_over(&mut self, now: Nanos, to: Option<MemberId>, epoch: u64) -> Result<MemberId, Refusal> {
        if self.role != Role::Active {
            return Err(Refusal::NotActive);
        }
        if self.epoch != epoch {
            return Err(Refusal::Outdated);
        }
        let to = match to {
            Some(to) => {
                let is_standby = |(id, role): (MemberId, Role)| id == to && role == Role::Standby;
                if !self.others(now).any(is_standby) {
                    return Err(Refusal::Unknown(to));
                }
                to
            }
            None => match self.best(now, |_| true).ok_or(Refusal::NoStandby)? {
                (id, true) => return Err(Refusal::Late(id)),
                (id, false) => id,
            },
        };
        (self.role, self.position) = (Role::Standby, None);
        self.vacate(Claim::Untaken(to), now + self.own.lease);
        Ok(to)
    }

    /// Whether this sign, or a later one of its sender, was received before. After a lease without one, a smaller number may
    /// be that of a new sign, as `Numbers` describes.
    pub fn is_repeated(&self, now: Nanos, sign: &Sign) -> bool {
        let is_old = |known: &Other| {
            let is_silent = now - known.received >= self.own.lease;
            !known.numbers.is_new(sign.number, is_silent)
        };
        self.others.get(&sign.from).is_some_and(is_old)
    }

    /// Notes a member and the number of its sign. Returns whether the sign is a new one.
    fn note(&mut self, now: Nanos, sign: &Sign) -> bool {
        if self.is_repeated(now, sign) {
            return false;
        }
        if self.others.len() >= MEMBERS && !self.others.contains_key(&sign.from) {
            let oldest = now - FORGOTTEN * self.own.lease;
            self.others.retain(|_, other| other.received >= oldest);
            if self.others.len() >= MEMBERS {
                return false;
            }
        }
        let role = if sign.successor.is_some() { Role::Standby } else { sign.role };
        let known = self.others.get(&sign.from).map(|other| other.numbers);
        let mut numbers = known.unwrap_or_else(|| Numbers::new(sign.number));
        if known.is_some() {
            numbers.note(sign.number);
        }
        let other = Other { numbers, rank: sign.rank(), role, has_ended: sign.ends, received: now };
        self.others.insert(sign.from, other);
        true
    }

    /// The active member has handed over.
    fn receive_handover(
        &mut self,
        now: Nanos,
        sign: &Sign,
        successor: MemberId,
        known: u64,
    ) -> Option<Change> {
        if self.role == Role::Active || sign.epoch < known {
            return None;
        }
        self.position = sign.position.or(self.position);
        // The sender may have taken an old handover back.
        if successor == self.own.id && now >= self.rests {
            return Some(self.claim(now, Claim::HandedOver(sign.from)));
        }
        self.vacate(Claim::Untaken(successor), now + self.own.lease);
        None
    }

    /// A member has ended.
    fn receive_end(&mut self, now: Nanos, sign: &Sign) -> Option<Change> {
        let was_active = self.active.is_some_and(|active| active.id == sign.from);
        if self.role == Role::Active || !was_active {
            return None;
        }
        self.position = sign.position.or(self.position);
        self.vacate(Claim::Ended(sign.from), now);
        self.look(now)
    }

    fn follow(&mut self, now: Nanos, sign: &Sign) {
        self.role = Role::Standby;
        self.active = Some(Active { id: sign.from, rank: sign.rank() });
        self.vacancy = Claim::Silent(sign.from);
        self.deadline = now + self.lease_of(sign.from);
        self.position = sign.position.or(self.position);
    }

    fn vacate(&mut self, vacancy: Claim, deadline: Nanos) {
        (self.active, self.vacancy, self.deadline) = (None, vacancy, deadline);
        self.until = Nanos::MIN;
    }

    fn claim(&mut self, now: Nanos, why: Claim) -> Change {
        self.role = Role::Active;
        self.epoch = LARGEST_EPOCH.min(self.latest_epoch() + 1);
        self.active = None;
        self.until = now + self.own.lease / 10 * 9;
        Change::Claimed(why)
    }

    fn fence(&mut self, now: Nanos, why: Fence) -> Change {
        self.role = Role::Fenced;
        // Only what was withheld from here on has to be published.
        self.position = None;
        self.vacate(Claim::Vacant, now + self.own.lease);
        Change::Fenced(why)
    }

    /// The time at which this member claims: each better one has a third of the lease before it, and the last one that is not
    /// late has a whole lease before a late one. Under load, a member may be delayed by more than a third.
    fn claims_at(&self, now: Nanos) -> Nanos {
        let own = (self.role != Role::Starting, self.own_rank());
        let is_better = |(_, other): &(MemberId, &Other)| {
            other.role != Role::Active && (other.role != Role::Starting, other.rank) > own
        };
        let (turn, mut wait, mut is_behind) = (self.own.lease / 3, 0, false);
        for (_, other) in self.living(now).filter(is_better) {
            wait += turn;
            is_behind |= other.is_complete() && self.is_late;
        }
        if is_behind {
            wait += self.own.lease - turn;
        }
        self.rests.max(self.deadline) + wait
    }
}

#[cfg(test)]
mod tests;
