//! Stamps of rows, which are times or positions, and what is not known about samples.

use serde::{Deserialize, Serialize};

/// How old something is.
#[inline(always)]
pub(crate) fn age(now: i64, stamp: i64) -> u64 {
    now.max(stamp).wrapping_sub(stamp) as u64
}

/// The stamps of the rows of a block.
#[derive(Clone, Copy)]
pub(crate) enum Stamps<'a> {
    /// The position of the first row.
    Positions(u64),
    /// The time of each.
    Times(&'a [i64]),
}

impl Stamps<'_> {
    #[inline(always)]
    pub(crate) fn at(self, row: usize) -> i64 {
        match self {
            Stamps::Positions(first) => first.saturating_add(row as u64).min(i64::MAX as u64) as i64,
            Stamps::Times(times) => times.get(row).copied().unwrap_or(i64::MAX),
        }
    }
}

/// The latest sample that a window cannot speak of, because its value is unknown or because there
/// was no room for it: while it is in the window, the measurement is unknown.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(crate) struct BlindSpot {
    latest: Option<i64>,
    /// How many samples there was no room for.
    pub(crate) dropped: u64,
}

impl BlindSpot {
    #[inline(always)]
    pub(crate) fn unknown(&mut self, stamp: i64) {
        self.latest = self.latest.max(Some(stamp));
    }

    /// A sample is left out that is older than all that are kept.
    pub(crate) fn drop(&mut self, stamp: i64) {
        self.unknown(stamp);
        self.dropped = self.dropped.saturating_add(1);
    }

    /// Forgets what is at least `over` old; says whether nothing is left.
    #[inline(always)]
    pub(crate) fn is_over(&mut self, now: i64, over: u64) -> bool {
        if self.latest.is_some_and(|stamp| age(now, stamp) >= over) {
            self.latest = None;
        }
        self.latest.is_none()
    }

    /// The stamp of the latest.
    pub(crate) fn latest(&self) -> Option<i64> {
        self.latest
    }

    /// When it will be over, if ever.
    pub(crate) fn leaves(&self, over: u64) -> Option<i64> {
        self.latest?.checked_add_unsigned(over)
    }
}
