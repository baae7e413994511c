//! Signs of a linear form between samples: below zero, zero, above.

use std::cmp::Ordering;

use serde::{Deserialize, Serialize};

/// Index of a sign: below zero, zero, above, and [`OPEN`].
pub(super) type Sign = u8;

/// An unknown sign: the next sample is missing, or was given up.
pub(super) const OPEN: Sign = 3;

/// Knowledge of a number.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum KnownNumber<T> {
    Is(T),
    /// An unknown number.
    Open,
    /// No number.
    Nothing,
}

impl<T> KnownNumber<T> {
    /// Both numbers, if both are known; nothing if one is.
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

/// A linear form from a sample of one of its fields up to the next one.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub(crate) struct LinePiece {
    /// Time of the sample.
    from: i64,
    /// Sign at the sample; none if there is no number.
    at: Option<Sign>,
    /// The form after the sample, if known.
    after: Option<Slope>,
    /// Sign after the sample if `after` is none.
    otherwise: Option<Sign>,
}

/// The form between a sample and the next one.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
struct Slope {
    to: i64,
    /// Signs right after the sample, and at the next one.
    first: Sign,
    last: Sign,
    /// Time at which the first sign changes to the last, if that is in between, and whether the form is
    /// exactly zero there.
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
    /// The piece before the first sample.
    pub(super) const UNKNOWN: LinePiece =
        LinePiece { from: i64::MIN, at: None, after: None, otherwise: None };

    /// A piece with its values at the sample and at the next one, if known.
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

    /// The sign at a time between the sample and the next one.
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

    /// Time of the crossing, if it is after `time` and before the next sample.
    pub(super) fn crossing_after(&self, time: i64) -> Option<i64> {
        let Slope { to, crossing, .. } = self.after?;
        crossing.map(|(crossing, _)| crossing).filter(|&crossing| time < crossing && crossing < to)
    }
}

/// Relative difference below which doubles count as equal.
pub(super) const CLOSE: f64 = 1.0 / (1_u64 << 50) as f64;
/// Length of pieces, in nanoseconds, from which on doubles cannot represent every time.
const FINE: u64 = 1 << 40;

/// Crossing of zero by a form that is at distance `start` from zero and, `length` later, at distance `end` on
/// the other side: the nanosecond, rounded up, and whether the form is zero there. Times within rounding of
/// an integer are that integer: from 0 to 1 in a second, 0.1 is reached after a tenth, though 0.1 is no
/// double.
fn crossing(start: f64, end: f64, length: u64) -> (u64, bool) {
    let reached = length as f64 * (start / (start + end));
    let whole = reached.round();
    let is_near = (reached - whole).abs() <= length as f64 * CLOSE;
    if length < FINE && is_near && whole >= 1.0 && whole < length as f64 {
        return (whole as u64, true);
    }
    // The first time that is no longer on the side of the start: start * (length - k) <= end * k.
    let rest = |k: u64| compare_products(start, length - k, end, k);
    let guess = reached as u64;
    let (mut low, mut high) = (0, length);
    // The guess deviates by its rounding only.
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

/// Compares `a * m` with `b * n`, for positive `a` and `b`.
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
        // Both now have the same highest bit, and compare by exponent and digits.
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

    /// The computed double may be above or below the exact value.
    #[test]
    fn near_integers_are_integers() {
        assert_eq!(crossing(0.07, 0.01, 1_000_000_000), (875_000_000, true));
        assert_eq!(crossing(0.03, 0.29, 1_000_000_000), (93_750_000, true));
        assert_eq!(crossing(0.07, 0.03, 1_000_000_000), (700_000_000, true));
    }

    #[test]
    fn crossing_is_first_time_beyond_zero() {
        let mut x = 1_u64;
        for _ in 0..20_000 {
            let mut next = || {
                x = x.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
                x >> 20
            };
            let (start, end) = ((next() % 1000 + 1) as f64 / 8.0, (next() % 1000 + 1) as f64);
            let length = next() >> (10 + next() % 30) | 1;
            let (k, exact) = crossing(start, end, length);
            // In eighths, all values are integers.
            let (a, b) = ((start * 8.0) as u128, (end * 8.0) as u128);
            let side = |k: u64| (a * u128::from(length - k)).cmp(&(b * u128::from(k)));
            assert!(side(k).is_le() && side(k - 1).is_gt(), "{start} {end} {length}: {k}");
            assert_eq!(side(k).is_eq(), exact);
        }
    }
}
