//! Places in time, on which operators with bounds measure.
//!
//! Time is measured on a doubled axis, on which an instant `t` is the place `2t` and the open span
//! right after it begins with the place `2t + 1`; a span that ends before `t` ends with the place
//! `2t - 1`. So the ends of an interval, open or closed, are whole numbers, and a truth that holds on
//! the places `x..=y` holds, seen from `a` to `b` later, on `x + 2a ..= y + 2b`.

use rondel_event::Rows;

/// The place of the instant `time`.
#[inline(always)]
pub(crate) fn instant(time: i64) -> i64 {
    time.saturating_mul(2)
}

/// A span of time as a distance between places.
#[inline(always)]
pub(crate) fn distance(span: u64) -> i64 {
    i64::try_from(span).unwrap_or(i64::MAX).saturating_mul(2)
}

/// No place: before all others.
pub(crate) const NEVER: i64 = i64::MIN;
/// After all others.
pub(crate) const ALWAYS: i64 = i64::MAX;

/// The place so far after another; a distance without end leads to no place.
#[inline(always)]
pub(crate) fn later(place: i64, distance: i64) -> i64 {
    if distance == ALWAYS { ALWAYS } else { place.saturating_add(distance) }
}

/// The time of the first moment at which something is different at `place`: the instant itself, or
/// the one that the open span begins with.
#[inline(always)]
pub(crate) fn time_of(place: i64) -> i64 {
    place.div_euclid(2)
}

/// The two sides of a truth at some rows: at the instants, and on the spans that follow them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct TruthHalves {
    pub(crate) at: Rows,
    pub(crate) after: Rows,
}

/// Where the rows of an operator are in time.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RowTimes<'a> {
    /// The time of each row, never going back.
    pub(crate) times: &'a [i64],
    /// The time of the row before the first.
    pub(crate) before: i64,
}
