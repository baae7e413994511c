//! The signs of a member that the network returns to it.
//!
//! A network that stands still accepts signs, and delivers them later: that a sign was sent proves nothing. One that came
//! back does. Signs arrive in the order in which the network took them: when an own sign has come back, every claim that the
//! network took before it has arrived, too.

use std::collections::VecDeque;

use super::{STUCK, STUCK_LEASES, Worker, in_ms};
use crate::live::standby::election::{Nanos, Role};
use crate::live::standby::surroundings::Surroundings;

/// Number of signs whose return is awaited.
const MOST: usize = 64;

/// The signs that the network has still to return, and the proof by those that it has returned.
#[derive(Debug)]
pub(super) struct Returns {
    /// The last signs, with the times before they were sent.
    sent: VecDeque<(u64, Nanos)>,
    /// Number of the last sign.
    last: u64,
    /// Time at which a sign came back last.
    seen: Nanos,
    /// Time at which one came back for the first time after half a lease without any.
    resumed: Nanos,
    /// Number of the first sign of the present turn as the active member.
    first: u64,
    /// Time since which signs of the turn have come back without a gap.
    since: Option<Nanos>,
    /// Time until which the last one that came back counts.
    until: Nanos,
    /// Whether a warning has named that none comes back.
    is_shown: bool,
}

impl Default for Returns {
    fn default() -> Returns {
        Returns {
            sent: VecDeque::new(),
            last: 0,
            seen: Nanos::MIN,
            resumed: Nanos::MIN,
            first: 0,
            since: None,
            until: Nanos::MIN,
            is_shown: false,
        }
    }
}

impl Returns {
    /// Notes a sign, with the time before it was sent.
    pub(super) fn sent(&mut self, number: u64, at: Nanos) {
        if self.sent.len() >= MOST {
            self.sent.pop_front();
        }
        self.sent.push_back((number, at));
        self.last = number;
    }

    /// Begins a turn as the active member, with the number of its first sign.
    fn begin(&mut self, first: u64) {
        (self.first, self.since, self.until, self.is_shown) = (first, None, Nanos::MIN, false);
    }

    /// Notes a sign that came back. Returns the time since which signs of the turn have done so without a gap, and the time
    /// until which that counts.
    fn returned(&mut self, now: Nanos, number: u64, lease: Nanos) -> Option<(Nanos, Nanos)> {
        if number > self.last {
            // It is forged.
            return None;
        }
        let gap = now.saturating_sub(std::mem::replace(&mut self.seen, now));
        self.is_shown = false;
        if gap > lease / 2 {
            self.resumed = now;
        }
        let mut sent = None;
        while let Some((of, at)) = self.sent.front().copied().filter(|(of, _)| *of <= number) {
            self.sent.pop_front();
            sent = (of == number).then_some(at);
        }
        if number < self.first {
            return None;
        }
        let since = match self.since {
            Some(since) if now < self.until.saturating_add(lease) => since,
            // Another member may have claimed meanwhile.
            Some(since) => since.max(now),
            // The network stood still at the claim: signs of the member before waited there, too, and those that it took
            // before the claim permit that member to pass messages on for almost a lease.
            None if now.saturating_sub(self.resumed) < lease / 2 => now.saturating_add(lease),
            None => now,
        };
        self.since = Some(since);
        if let Some(at) = sent {
            self.until = self.until.max(at + lease / 10 * 9);
        }
        Some((since, self.until))
    }

    /// Returns the time without a sign that came back, once it is long.
    fn lost(&mut self, now: Nanos, since: Nanos, lease: Nanos) -> Option<Nanos> {
        let silent = now.saturating_sub(self.seen.max(since));
        if self.is_shown || silent < STUCK.max(STUCK_LEASES * lease) {
            return None;
        }
        self.is_shown = true;
        Some(silent)
    }
}

impl<S: Surroundings> Worker<S> {
    /// Lets gates pass nothing on before signs of this turn come back.
    pub(super) fn await_returns(&mut self) {
        if self.shared.awaits_returns {
            self.returns.begin(self.number + 1);
            self.shared.permit.await_proof();
        }
    }

    /// Handles a sign of this member that came back.
    pub(super) fn receive_own(&mut self, number: u64) {
        if !self.shared.awaits_returns {
            return;
        }
        let returned = self.returns.returned(self.now(), number, self.lease);
        if let Some((since, until)) = returned
            && self.election.role() == Role::Active
        {
            self.shared.permit.prove(since, until);
        }
    }

    /// Warns that the signs of this active member do not come back.
    pub(super) fn look_at_returns(&mut self, now: Nanos) {
        if !self.shared.awaits_returns {
            return;
        }
        if let Some(silent) = self.returns.lost(now, self.claimed, self.lease) {
            self.outside.warn(&format!(
                "the network has not returned the signs of life of this member for {}: its gates pass nothing on until it does",
                in_ms(silent)
            ));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LEASE: Nanos = 90;

    /// A member that has sent signs 1 to 3 every 30 ns, which came back at once, and takes over with sign 4 at 90.
    fn active() -> Returns {
        let mut returns = Returns::default();
        for number in 1..=3 {
            let at = 30 * (number as Nanos - 1);
            returns.sent(number, at);
            assert_eq!(returns.returned(at + 1, number, LEASE), Some((91, at + 81)));
        }
        returns.begin(4);
        returns.sent(4, 90);
        returns
    }

    #[test]
    fn sign_that_came_back_counts_from_its_time_on() {
        let mut returns = active();
        assert_eq!(returns.returned(95, 3, LEASE), None, "it is of the time before the claim");
        assert_eq!(returns.returned(100, 4, LEASE), Some((100, 171)));
        returns.sent(5, 120);
        returns.sent(6, 150);
        assert_eq!(returns.returned(160, 6, LEASE), Some((100, 231)));
        assert_eq!(returns.returned(161, 5, LEASE), Some((100, 231)), "it comes out of order");
        assert_eq!(returns.returned(162, 6, LEASE), Some((100, 231)), "it comes twice");
        assert_eq!(returns.returned(163, 7, LEASE), None, "it is forged");
    }

    #[test]
    fn signs_that_waited_in_the_network_prove_nothing() {
        let mut returns = active();
        returns.returned(91, 4, LEASE);
        for number in 5..=20 {
            returns.sent(number, 30 * (number as Nanos - 1));
        }
        // The network stands still from 100 to 600, and then returns all of them.
        for number in 5..=19 {
            returns.returned(600, number, LEASE);
        }
        assert_eq!(returns.returned(600, 20, LEASE), Some((600, 651)), "the lease begins again");
    }

    #[test]
    fn claim_while_the_network_stood_still_waits_for_one_lease_more() {
        let mut returns = active();
        returns.sent(5, 120);
        assert_eq!(returns.returned(700, 4, LEASE), Some((790, 171)));
        assert_eq!(returns.returned(701, 5, LEASE), Some((790, 201)));
        // Signs of the time before the claim come back first.
        let mut returns = active();
        returns.begin(5);
        returns.sent(5, 120);
        assert_eq!(returns.returned(700, 4, LEASE), None);
        assert_eq!(returns.returned(701, 5, LEASE), Some((791, 201)));
        // Signs before a long standstill are forgotten.
        let mut returns = active();
        (5..200).for_each(|number| returns.sent(number, 30 * number as Nanos));
        assert_eq!(returns.returned(6_000, 4, LEASE), Some((6_090, Nanos::MIN)));
    }

    #[test]
    fn signs_that_do_not_come_back_are_reported_once() {
        let mut returns = active();
        assert_eq!(returns.lost(STUCK, 90, LEASE), None);
        assert_eq!(returns.lost(90 + STUCK, 90, LEASE), Some(STUCK));
        assert_eq!(returns.lost(100 + STUCK, 90, LEASE), None);
        returns.returned(110 + STUCK, 4, LEASE);
        assert_eq!(returns.lost(110 + 2 * STUCK, 90, LEASE), Some(STUCK), "again after a return");
    }
}
