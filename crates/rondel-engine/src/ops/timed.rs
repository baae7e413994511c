//! Places in time, on which bounded operators compute.
//!
//! The axis is doubled: instant `t` is the place `2t`; the open interval after it begins at the place `2t +
//! 1`, and an interval before `t` ends at the place `2t - 1`. The ends of intervals, open or closed, are thus
//! integers. A truth that holds on the places `x..=y` holds from `a` to `b` later on `x + 2a ..= y + 2b`.

use rondel_event::Rows;

/// Place of the instant `time`.
#[inline(always)]
pub(crate) fn instant(time: i64) -> i64 {
    time.saturating_mul(2)
}

/// Distance of a span of time.
#[inline(always)]
pub(crate) fn distance(span: u64) -> i64 {
    i64::try_from(span).unwrap_or(i64::MAX).saturating_mul(2)
}

/// Before all places.
pub(crate) const NEVER: i64 = i64::MIN;
/// After all places.
pub(crate) const ALWAYS: i64 = i64::MAX;

/// The place at a distance after another; saturates at [`ALWAYS`].
#[inline(always)]
pub(crate) fn later(place: i64, distance: i64) -> i64 {
    if distance == ALWAYS { ALWAYS } else { place.saturating_add(distance) }
}

/// Time of the first time point that differs at `place`: the instant itself, or the one at which the open
/// interval begins.
#[inline(always)]
pub(crate) fn time_of(place: i64) -> i64 {
    place.div_euclid(2)
}

/// A truth at some rows: at the instants, and on the intervals after them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct TruthHalves {
    pub(crate) at: Rows,
    pub(crate) after: Rows,
}

/// Times of the rows of an operator.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RowTimes<'a> {
    /// Time of each row, non-decreasing.
    pub(crate) times: &'a [i64],
    /// Time of the row before the first.
    pub(crate) before: i64,
}
