//! Leases of other members.

use std::collections::BTreeMap;

use super::{LONGEST_LEASE, MEMBERS, MemberId, Nanos};

/// The longest time for which one sign with a longer lease is a reason to wait: that of a forged or damaged one.
const UNCONFIRMED: Nanos = 1_000_000_000;
/// The same in own leases, if that is longer.
const UNCONFIRMED_LEASES: Nanos = 10;

/// The leases of other members that are longer than the own one.
#[derive(Debug, Default)]
pub(super) struct Leases(BTreeMap<MemberId, Longer>);

/// A lease that is longer than the own one.
#[derive(Clone, Copy, Debug)]
struct Longer {
    lease: Nanos,
    /// Time of the first of the last signs in a row with it.
    since: Nanos,
    /// Whether they came for half of the lease: a member sends a sign every third.
    is_confirmed: bool,
}

impl Leases {
    /// Notes the lease in a sign of a member. `is_known` returns whether the sign of another one was received lately.
    pub(super) fn note(
        &mut self,
        now: Nanos,
        own: Nanos,
        (id, lease): (MemberId, Nanos),
        is_known: impl Fn(MemberId) -> bool,
    ) {
        let lease = lease.min(LONGEST_LEASE);
        if lease <= own {
            self.0.remove(&id);
            return;
        }
        if let Some(longer) = self.0.get_mut(&id)
            && longer.lease == lease
        {
            longer.is_confirmed |= now - longer.since >= lease / 2;
            return;
        }
        if self.0.len() >= MEMBERS {
            self.0.retain(|id, _| is_known(*id));
        }
        if self.0.len() < MEMBERS || self.0.contains_key(&id) {
            self.0.insert(id, Longer { lease, since: now, is_confirmed: false });
        }
    }

    /// Time without a sign after which a member counts as silent.
    pub(super) fn of(&self, own: Nanos, id: MemberId) -> Nanos {
        match self.0.get(&id) {
            Some(longer) if longer.is_confirmed => longer.lease,
            Some(longer) => longer.lease.min(UNCONFIRMED.max(UNCONFIRMED_LEASES.saturating_mul(own))),
            None => own,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const OWN: Nanos = 300_000_000;
    const SECOND: Nanos = 1_000_000_000;
    const ID: MemberId = MemberId(7);

    #[test]
    fn longer_lease_counts_once_signs_confirm_it() {
        let mut leases = Leases::default();
        let mut after = |now: Nanos, lease: Nanos| {
            leases.note(now, OWN, (ID, lease), |_| true);
            leases.of(OWN, ID)
        };
        assert_eq!(after(0, 60 * SECOND), 3 * SECOND, "one sign may be forged");
        assert_eq!(after(20 * SECOND, 60 * SECOND), 3 * SECOND);
        assert_eq!(after(40 * SECOND, 60 * SECOND), 60 * SECOND);
        assert_eq!(after(41 * SECOND, OWN), OWN);
        assert_eq!(after(42 * SECOND, i64::MAX), 3 * SECOND);
        assert_eq!(after(43 * SECOND, SECOND), SECOND, "one of usual length counts at once");
        assert_eq!(after(44 * SECOND, OWN / 2), OWN);
    }

    #[test]
    fn number_of_longer_leases_is_limited() {
        let mut leases = Leases::default();
        for id in 0..1_000 {
            leases.note(0, OWN, (MemberId(id), SECOND), |_| true);
        }
        assert_eq!(leases.0.len(), MEMBERS);
        leases.note(0, OWN, (MemberId(1_000), SECOND), |id| id == MemberId(1));
        assert_eq!(leases.0.len(), 2, "unknown ones are forgotten");
    }
}
