//! Stamps of rows (times or positions), and samples that cannot be measured.

use serde::{Deserialize, Serialize};

/// Age of a stamp; zero for a stamp in the future.
#[inline(always)]
pub(crate) fn age(now: i64, stamp: i64) -> u64 {
    now.max(stamp).wrapping_sub(stamp) as u64
}

/// The stamps of the rows of a block.
#[derive(Clone, Copy)]
pub(crate) enum Stamps<'a> {
    /// Position of the first row.
    Positions(u64),
    /// Time of each row.
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

/// The latest sample without a usable value: unknown, or dropped for lack of room. While it is in the window,
/// the measurement is unknown.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(crate) struct BlindSpot {
    latest: Option<i64>,
    /// Number of samples dropped for lack of room.
    pub(crate) dropped: u64,
}

impl BlindSpot {
    #[inline(always)]
    pub(crate) fn unknown(&mut self, stamp: i64) {
        self.latest = self.latest.max(Some(stamp));
    }

    /// Records a dropped sample, older than all that are kept.
    pub(crate) fn drop(&mut self, stamp: i64) {
        self.unknown(stamp);
        self.dropped = self.dropped.saturating_add(1);
    }

    /// Removes the sample if it is at least `over` old. Returns whether there is none.
    #[inline(always)]
    pub(crate) fn is_over(&mut self, now: i64, over: u64) -> bool {
        if self.latest.is_some_and(|stamp| age(now, stamp) >= over) {
            self.latest = None;
        }
        self.latest.is_none()
    }

    /// Stamp of the sample, if there is one.
    pub(crate) fn latest(&self) -> Option<i64> {
        self.latest
    }

    /// Time at which the sample leaves the window, if there is one.
    pub(crate) fn leaves(&self, over: u64) -> Option<i64> {
        self.latest?.checked_add_unsigned(over)
    }
}
