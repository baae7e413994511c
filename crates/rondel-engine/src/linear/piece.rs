//! Where a straight line is below zero, zero, or above it.

use std::cmp::Ordering;

use serde::{Deserialize, Serialize};

/// A sign as the place in a row of four: below zero, zero, above it, and [`OPEN`].
pub(super) type Sign = u8;

/// It has a sign, but nobody knows it: the next sample did not come, or was not waited for.
pub(super) const OPEN: Sign = 3;

/// What is known of a number.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum KnownNumber<T> {
    Is(T),
    /// It is something, but nobody knows what.
    Open,
    /// It is nothing: there was no number.
    Nothing,
}

impl<T> KnownNumber<T> {
    /// Both, if both are something.
    pub(super) fn and<U>(self, other: KnownNumber<U>) -> KnownNumber<(T, U)> {
        match (self, other) {
            (KnownNumber::Is(x), KnownNumber::Is(y)) => KnownNumber::Is((x, y)),
            (KnownNumber::Nothing, _) | (_, KnownNumber::Nothing) => KnownNumber::Nothing,
            _ => KnownNumber::Open,
        }
    }

    fn sign(self, sign: impl FnOnce(T) -> Option<Sign>) -> Option<Sign> {
        match self {
            KnownNumber::Is(x) => sign(x),
            KnownNumber::Open => Some(OPEN),
            KnownNumber::Nothing => None,
        }
    }
}

/// What a line is at a sample of one of its fields, and up to the next one.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub(crate) struct LinePiece {
    /// The time of the sample.
    from: i64,
    /// The sign there; none where that is unknown.
    at: Option<Sign>,
    /// What follows, if that is known.
    after: Option<Slope>,
    /// The sign where that is not.
    otherwise: Option<Sign>,
}

/// What follows a sample, up to the next one.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
struct Slope {
    to: i64,
    /// The signs right after the sample, and when the other end is reached.
    first: Sign,
    last: Sign,
    /// Where the first gives way to the last, if that is in between, and whether the line is zero just then.
    crossing: Option<(i64, bool)>,
}

fn sign(x: f64) -> Option<Sign> {
    match x.partial_cmp(&0.0)? {
        _ if x.is_infinite() => None,
        Ordering::Less => Some(0),
        Ordering::Equal => Some(1),
        Ordering::Greater => Some(2),
    }
}

impl LinePiece {
    /// Before the first sample.
    pub(super) const UNKNOWN: LinePiece =
        LinePiece { from: i64::MIN, at: None, after: None, otherwise: None };

    /// A line that is so at a sample, and so when the next one comes, if both are known.
    pub(super) fn new(from: i64, start: KnownNumber<f64>, end: KnownNumber<(i64, f64)>) -> LinePiece {
        let at = start.sign(sign);
        let line = start.and(end);
        let otherwise = if matches!(line, KnownNumber::Open) { Some(OPEN) } else { None };
        let slope = |(start, (to, end)): (f64, (i64, f64))| {
            let (begins, last) = (sign(start)?, sign(end)?);
            let length = to.checked_sub(from).filter(|length| *length > 0)?;
            let crosses = begins != last && begins != 1 && last != 1;
            let crossing = crosses.then(|| crossing(start.abs(), end.abs(), length as u64));
            Some(Slope {
                to,
                first: if begins == 1 { last } else { begins },
                last,
                crossing: crossing.map(|(after, exact)| (from.saturating_add_unsigned(after), exact)),
            })
        };
        let after = if let KnownNumber::Is(line) = line { slope(line) } else { None };
        LinePiece { from, at, after, otherwise }
    }

    /// The sign at a time from the sample on, up to the next one.
    pub(super) fn at(&self, time: i64) -> Option<Sign> {
        if time <= self.from {
            return self.at;
        }
        let Some(Slope { to, first, last, crossing }) = self.after else { return self.otherwise };
        Some(match crossing {
            _ if time >= to => last,
            Some((crossing, _)) if time > crossing => last,
            Some((crossing, exact)) if time == crossing => {
                if exact {
                    1
                } else {
                    last
                }
            }
            _ => first,
        })
    }

    /// The sign just after a time.
    pub(super) fn after(&self, time: i64) -> Option<Sign> {
        let Some(Slope { first, last, crossing, .. }) = self.after else { return self.otherwise };
        Some(if crossing.is_some_and(|(crossing, _)| time >= crossing) { last } else { first })
    }

    /// The time of the crossing, if it is later than this, and before the next sample.
    pub(super) fn crossing_after(&self, time: i64) -> Option<i64> {
        let Slope { to, crossing, .. } = self.after?;
        crossing.map(|(crossing, _)| crossing).filter(|&crossing| time < crossing && crossing < to)
    }
}

/// What is so close, for what it is computed of, is the same in double precision.
pub(super) const CLOSE: f64 = 1.0 / (1_u64 << 50) as f64;
/// On pieces of at least so many nanoseconds doubles are not fine enough to tell them apart.
const FINE: u64 = 1 << 40;

/// When a line that is `start` above zero (or below), and `end` on the other side so much later, crosses it: the
/// nanosecond, rounded up, and whether it is zero just then. What is as good as whole in double precision is whole:
/// from 0 to 1 in a second, 0.1 is reached after a tenth, though it is no double.
fn crossing(start: f64, end: f64, length: u64) -> (u64, bool) {
    let reached = length as f64 * (start / (start + end));
    let whole = reached.round();
    let is_near = (reached - whole).abs() <= length as f64 * CLOSE;
    if length < FINE && is_near && whole >= 1.0 && whole < length as f64 {
        return (whole as u64, true);
    }
    // The first time at which it is not on the side of its start any more: start * (length - k) <= end * k.
    let rest = |k: u64| compare_products(start, length - k, end, k);
    let guess = reached as u64;
    let (mut low, mut high) = (0, length);
    // A guess is off by its rounding only.
    let near = 1 << (u64::BITS - length.leading_zeros()).saturating_sub(50);
    let (below, above) = (guess.saturating_sub(near).min(length), guess.saturating_add(near).min(length));
    if rest(below).is_gt() {
        low = below;
    }
    if rest(above).is_le() {
        high = above;
    }
    while high - low > 1 {
        let middle = low + (high - low) / 2;
        if rest(middle).is_gt() {
            low = middle;
        } else {
            high = middle;
        }
    }
    (high, rest(high).is_eq())
}

/// Compares `a * m` with `b * n`, for `a` and `b` above zero.
fn compare_products(a: f64, m: u64, b: f64, n: u64) -> Ordering {
    if m == 0 || n == 0 {
        return m.cmp(&n);
    }
    let product = |x: f64, k: u64| {
        let bits = x.to_bits();
        let (exponent, fraction) = ((bits >> 52) as i32 & 0x7FF, bits & ((1 << 52) - 1));
        let (exponent, mantissa) = match exponent {
            0 => (1, fraction),
            _ => (exponent, fraction | 1 << 52),
        };
        let product = u128::from(mantissa) * u128::from(k);
        let shift = product.leading_zeros();
        // Both have their highest bit in the same place now, and compare as exponent and digits.
        (exponent - shift as i32, product.checked_shl(shift).unwrap_or(0))
    };
    product(a, m).cmp(&product(b, n))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn crossings_are_rounded_up() {
        assert_eq!(crossing(1.0, 1.0, 10), (5, true));
        assert_eq!(crossing(1.0, 2.0, 10), (4, false));
        assert_eq!(crossing(1e300, 1e-300, 10), (10, false));
        assert_eq!(crossing(1e-300, 1e300, 10), (1, false));
        assert_eq!(crossing(f64::from_bits(1), f64::from_bits(3), 4), (1, true));
        assert_eq!(crossing(0.3, 1.0 - 0.3, 1_000_000_000), (300_000_000, true));
        assert_eq!(crossing(0.1, 1.0 - 0.1, 1_000_000_000), (100_000_000, true));
        assert_eq!(crossing(1.0, 3.0, u64::MAX / 4 * 4), (u64::MAX / 4, true));
    }

    /// The double that is computed may be above what it stands for as well as below.
    #[test]
    fn what_is_whole_but_for_its_rounding_is_whole() {
        assert_eq!(crossing(0.07, 0.01, 1_000_000_000), (875_000_000, true));
        assert_eq!(crossing(0.03, 0.29, 1_000_000_000), (93_750_000, true));
        assert_eq!(crossing(0.07, 0.03, 1_000_000_000), (700_000_000, true));
    }

    #[test]
    fn a_crossing_is_the_first_time_beyond() {
        let mut x = 1_u64;
        for _ in 0..20_000 {
            let mut next = || {
                x = x.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
                x >> 20
            };
            let (start, end) = ((next() % 1000 + 1) as f64 / 8.0, (next() % 1000 + 1) as f64);
            let length = next() >> (10 + next() % 30) | 1;
            let (k, exact) = crossing(start, end, length);
            // In eighths, all of it is whole.
            let (a, b) = ((start * 8.0) as u128, (end * 8.0) as u128);
            let side = |k: u64| (a * u128::from(length - k)).cmp(&(b * u128::from(k)));
            assert!(side(k).is_le() && side(k - 1).is_gt(), "{start} {end} {length}: {k}");
            assert_eq!(side(k).is_eq(), exact);
        }
    }
}
