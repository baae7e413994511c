//! Violations as a function of the verdicts on one instance of a property.

use std::collections::HashMap;

use crate::entry::{Truth, VerdictEntry};

/// Nanoseconds of a day.
pub(crate) const DAY: i64 = 86_400_000_000_000;

/// A violation: from a violated verdict to the next satisfied one. While verdicts are inconclusive it is stale.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Violation {
    /// Row, once it is stored.
    pub(crate) id: Option<i64>,
    pub(crate) run: i64,
    pub(crate) lap: u32,
    pub(crate) begin: i64,
    /// Last violated verdict.
    pub(crate) last: i64,
    /// Number of violated verdicts.
    pub(crate) count: i64,
    /// Begin of the present violated interval; `None` if stale or ended.
    pub(crate) since: Option<i64>,
    /// Begin of the present inconclusive interval.
    pub(crate) stale: Option<i64>,
    /// Total of inconclusive intervals.
    pub(crate) unknown: i64,
    /// End and its reason.
    pub(crate) end: Option<(i64, &'static str)>,
    /// Least robustness.
    pub(crate) worst: Option<f64>,
    /// Row of the first verdict.
    pub(crate) verdict: i64,
    /// Time of day of the first verdict.
    pub(crate) recorded: i64,
}

/// Present verdict of an instance.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Present {
    pub(crate) verdict: Truth,
    pub(crate) since: i64,
    pub(crate) time: i64,
}

/// Changes of the figures of one property and day.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Day {
    pub(crate) verdicts: i64,
    pub(crate) violations: i64,
    pub(crate) recoveries: i64,
    pub(crate) violated: i64,
    pub(crate) recovery: i64,
    pub(crate) longest: i64,
}

/// Changes of figures, by property and day.
pub(crate) type Days = HashMap<(i64, i64), Day>;

/// Number and time of a verdict in the store.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Stored {
    pub(crate) property: i64,
    pub(crate) run: i64,
    pub(crate) seq: i64,
}

/// Returns the day of an event time.
pub(crate) fn day(time: i64) -> i64 {
    time.div_euclid(DAY)
}

/// Returns the duration of an interval, 0 if it ends before it begins: verdicts on the future need not be in order.
fn between(begin: i64, end: i64) -> i64 {
    end.saturating_sub(begin).max(0)
}

impl Present {
    /// Returns the state after a verdict.
    pub(crate) fn after(before: Option<Present>, verdict: &VerdictEntry<'_>) -> Present {
        let time = verdict.at();
        match before {
            Some(before) if before.verdict == verdict.verdict => Present { time, ..before },
            _ => Present { verdict: verdict.verdict, since: time, time },
        }
    }
}

impl Violation {
    fn begin(stored: Stored, verdict: &VerdictEntry<'_>) -> Violation {
        let time = verdict.at();
        Violation {
            id: None,
            run: stored.run,
            lap: verdict.lap,
            begin: time,
            last: time,
            count: 0,
            since: Some(time),
            stale: None,
            unknown: 0,
            end: None,
            worst: None,
            verdict: stored.seq,
            recorded: verdict.reported,
        }
    }

    /// Continues with a further violated verdict.
    fn violate(&mut self, verdict: &VerdictEntry<'_>) {
        let time = verdict.at();
        self.count += 1;
        self.last = self.last.max(time);
        self.worst = match (self.worst, verdict.robustness) {
            (Some(worst), Some(robustness)) => Some(worst.min(robustness)),
            (worst, robustness) => worst.or(robustness),
        };
        if let Some(stale) = self.stale.take() {
            self.see_unknown(stale, time, self.last);
            self.since = Some(time);
        }
    }

    /// Adds an inconclusive interval. The total is no longer than the violation up to `last`, also where clocks step back.
    fn see_unknown(&mut self, stale: i64, time: i64, last: i64) {
        let unknown = self.unknown.saturating_add(between(stale, time));
        self.unknown = unknown.min(between(self.begin, last));
    }

    /// Becomes stale. Returns the length of the violated interval that ends.
    fn become_stale(&mut self, time: i64) -> i64 {
        let Some(since) = self.since.take() else { return 0 };
        // Clocks step back.
        self.stale = Some(time.max(self.begin.saturating_add(self.unknown)));
        between(since, time)
    }

    /// Ends. Returns the length of the violated interval that ends.
    fn end(&mut self, time: i64, reason: &'static str) -> i64 {
        let end = time.max(self.begin);
        if let Some(stale) = self.stale.take() {
            self.see_unknown(stale, time, end);
        }
        self.unknown = self.unknown.min(between(self.begin, end));
        self.end = Some((end, reason));
        self.since.take().map_or(0, |since| between(since, time))
    }
}

/// Applies a verdict to the open violation of its instance and to the figures. Returns the violation if it ends.
pub(crate) fn apply(
    open: &mut Option<Violation>,
    verdict: &VerdictEntry<'_>,
    stored: Stored,
    days: &mut Days,
) -> Option<Violation> {
    let time = verdict.at();
    let of = |time: i64| (stored.property, day(time));
    days.entry(of(time)).or_default().verdicts += 1;
    match verdict.verdict {
        Truth::Violated => {
            if open.is_none() {
                days.entry(of(time)).or_default().violations += 1;
            }
            let violation = open.get_or_insert_with(|| Violation::begin(stored, verdict));
            violation.violate(verdict);
            if verdict.missing.is_empty() {
                return None;
            }
            // A stamp of a chain is judged once: nothing can end its violation later.
            violation.end(time, "once");
            open.take()
        }
        Truth::Inconclusive => {
            if let Some(violation) = open {
                let violated = violation.become_stale(time);
                let figures = days.entry(of(violation.begin)).or_default();
                figures.violated = figures.violated.saturating_add(violated);
            }
            None
        }
        Truth::Satisfied => {
            let mut violation = open.take()?;
            let violated = violation.end(time, "satisfied");
            let recovery = between(violation.begin, time).saturating_sub(violation.unknown).max(0);
            let figures = days.entry(of(violation.begin)).or_default();
            figures.violated = figures.violated.saturating_add(violated);
            figures.recoveries += 1;
            figures.recovery = figures.recovery.saturating_add(recovery);
            figures.longest = figures.longest.max(recovery);
            Some(violation)
        }
    }
}
