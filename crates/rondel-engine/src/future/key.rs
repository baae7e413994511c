//! Places: positions on the time axis of verdicts.
//!
//! A place is a coordinate and, below it, a number that distinguishes time points of the same time. The
//! coordinate is the step, the time in nanoseconds, or in dense time twice the time in nanoseconds: `2t` is
//! the instant `t`, and `2t+1` the open interval of one nanosecond after it, on which nothing can change.
//! Every set of times that occurs is thus a set of integers, and bounds are exact.

/// Place: the 48 bits below the coordinate number the time points of one time.
pub(crate) type Key = i128;

const SHIFT: u32 = 48;
const LAST: Key = (1 << SHIFT) - 1;

/// Before every place, and so far from the limits of the type that no sum of bounds overflows.
pub(crate) const START: Key = -(1 << 124);

/// Returns the coordinate.
#[inline(always)]
pub(crate) fn axis(key: Key) -> i128 {
    key >> SHIFT
}

/// Returns the first place of a coordinate.
#[inline(always)]
pub(crate) fn first(axis: i128) -> Key {
    axis << SHIFT
}

/// Returns the last place of a coordinate.
#[inline(always)]
pub(crate) fn last(axis: i128) -> Key {
    axis << SHIFT | LAST
}

/// Returns the place of the time point with that number at a coordinate.
#[inline(always)]
pub(crate) fn nth(axis: i128, number: u64) -> Key {
    axis << SHIFT | Key::from(number).min(LAST - 1)
}

/// Returns the place of a time point at a coordinate, or at the latest coordinate seen, since time never goes
/// back. `seen` is the last place so far, `number` the number of the last time point at its coordinate.
#[inline(always)]
pub(crate) fn next(seen: Option<Key>, number: &mut u64, at: i128) -> Key {
    let Some(seen) = seen else { return first(at) };
    let open = axis(seen + 1);
    if at > open || first(open) == seen + 1 {
        *number = 0;
        first(at.max(open))
    } else {
        *number = number.saturating_add(1);
        nth(open, *number).max(seen + 1)
    }
}

/// Returns the first coordinate that lies wholly at or after a place.
#[inline(always)]
pub(crate) fn ceil(key: Key) -> i128 {
    axis(key + LAST)
}

/// Returns the last coordinate that lies wholly at or before a place.
#[inline(always)]
pub(crate) fn floor(key: Key) -> i128 {
    axis(key + 1) - 1
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ceil_and_floor_of_partial_coordinates() {
        for at in [-3, 0, 7] {
            assert_eq!((axis(first(at)), axis(last(at)), axis(nth(at, 5))), (at, at, at));
            assert_eq!((ceil(first(at)), floor(last(at))), (at, at));
            assert_eq!((ceil(nth(at, 1)), floor(nth(at, 1))), (at + 1, at - 1));
            assert_eq!(last(at) + 1, first(at + 1));
        }
    }
}
