//! Limits of the rate and the number of actions.

use rondel_runtime::Ticks;

/// A minute, in ticks.
const MINUTE: Ticks = 60_000_000_000;

/// Limits of one action.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Limit {
    /// Maximum number in a minute, if there is one. A quiet minute allows that many at once.
    pub per_minute: Option<u32>,
    /// Maximum number in a run, if there is one.
    pub total: Option<u64>,
}

/// The use of the limits of one action.
#[derive(Clone, Debug)]
pub(super) struct Allowance {
    limit: Limit,
    /// Time that the action has saved up: each costs the fraction of a minute that the rate leaves for one.
    saved: Ticks,
    /// Time of the last change of `saved`.
    at: Option<Ticks>,
    count: u64,
}

impl Allowance {
    pub(super) fn new(limit: Limit) -> Allowance {
        Allowance { limit, saved: MINUTE, at: None, count: 0 }
    }

    /// Whether another one is allowed now; counts it if so.
    pub(super) fn take(&mut self, now: Ticks) -> bool {
        if self.limit.total.is_some_and(|total| self.count >= total) {
            return false;
        }
        if let Some(rate) = self.limit.per_minute {
            let passed = self.at.map_or(0, |at| now.saturating_sub(at)).max(0);
            self.saved = self.saved.saturating_add(passed).min(MINUTE);
            self.at = self.at.max(Some(now));
            let cost = MINUTE / Ticks::from(rate.max(1));
            if self.saved < cost {
                return false;
            }
            self.saved -= cost;
        }
        self.count += 1;
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: Ticks = 1_000_000_000;

    fn taken(allowance: &mut Allowance, now: Ticks, tries: usize) -> usize {
        (0..tries).filter(|_| allowance.take(now)).count()
    }

    #[test]
    fn rate_refills_with_time() {
        let mut allowance = Allowance::new(Limit { per_minute: Some(6), total: None });
        assert_eq!(taken(&mut allowance, SECOND, 1000), 6);
        assert_eq!(taken(&mut allowance, 10 * SECOND, 9), 0);
        assert_eq!(taken(&mut allowance, 11 * SECOND, 9), 1);
        assert_eq!(taken(&mut allowance, 41 * SECOND, 9), 3);
        // A day saves up one minute.
        assert_eq!(taken(&mut allowance, 86_400 * SECOND, 1000), 6);
        // A clock that goes back gives nothing.
        assert_eq!(taken(&mut allowance, 0, 9), 0);
    }

    #[test]
    fn total_holds_for_the_run() {
        let mut allowance = Allowance::new(Limit { per_minute: None, total: Some(3) });
        assert_eq!(taken(&mut allowance, 0, 1000), 3);
        assert_eq!(taken(&mut allowance, Ticks::MAX, 1000), 0);
        assert_eq!(taken(&mut Allowance::new(Limit::default()), 0, 1000), 1000);
    }
}
