//! Places on the axis of what verdicts are about.
//!
//! A place is a coordinate and, below it, a number that tells moments of one time apart. The
//! coordinate is the step, or the time in nanoseconds, or in the dense model twice that: `2t` is the
//! instant `t`, and `2t+1` the open span of one nanosecond after it, on which nothing can change. So
//! every set of times that occurs is one of whole numbers, and bounds are exact.

/// A place: 48 bits below the coordinate count the moments of one time.
pub(crate) type Key = i128;

const SHIFT: u32 = 48;
const LAST: Key = (1 << SHIFT) - 1;

/// Before every place; so far from the ends of the type that any sum of bounds stays within it.
pub(crate) const START: Key = -(1 << 124);

/// The coordinate.
#[inline(always)]
pub(crate) fn axis(key: Key) -> i128 {
    key >> SHIFT
}

/// The first place of a coordinate.
#[inline(always)]
pub(crate) fn first(axis: i128) -> Key {
    axis << SHIFT
}

/// The last place of a coordinate.
#[inline(always)]
pub(crate) fn last(axis: i128) -> Key {
    axis << SHIFT | LAST
}

/// The place of the moment of that number at a coordinate.
#[inline(always)]
pub(crate) fn nth(axis: i128, number: u64) -> Key {
    axis << SHIFT | Key::from(number).min(LAST - 1)
}

/// The place of a moment at a coordinate, or at the last one that was seen: time never goes back. `seen` is the last
/// place that was, and `number` the number of the last moment at its coordinate.
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

/// The first coordinate that lies wholly at or after a place.
#[inline(always)]
pub(crate) fn ceil(key: Key) -> i128 {
    axis(key + LAST)
}

/// The last coordinate that lies wholly at or before a place.
#[inline(always)]
pub(crate) fn floor(key: Key) -> i128 {
    axis(key + 1) - 1
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn coordinates_whole_and_cut() {
        for at in [-3, 0, 7] {
            assert_eq!((axis(first(at)), axis(last(at)), axis(nth(at, 5))), (at, at, at));
            assert_eq!((ceil(first(at)), floor(last(at))), (at, at));
            assert_eq!((ceil(nth(at, 1)), floor(nth(at, 1))), (at + 1, at - 1));
            assert_eq!(last(at) + 1, first(at + 1));
        }
    }
}
