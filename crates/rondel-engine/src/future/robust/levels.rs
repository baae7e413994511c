//! Truth and robustness as numbers that go through the same operations.

use rondel_event::Verdict;
use serde::{Deserialize, Serialize};

/// Bounds of truth and robustness at a place: lower and upper truth as infinite numbers, and the least and
/// greatest possible robustness. None is NaN.
///
/// On each of the four numbers, minimum, maximum and negation are `and`, `or` and `not`; negation also swaps
/// lower and upper bounds.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Levels([f64; 4]);

const LOW: f64 = f64::NEG_INFINITY;
const HIGH: f64 = f64::INFINITY;

impl Levels {
    pub(crate) const FALSE: Levels = Levels([LOW; 4]);
    pub(crate) const TRUE: Levels = Levels([HIGH; 4]);
    pub(crate) const UNKNOWN: Levels = Levels([LOW, HIGH, LOW, HIGH]);

    pub(crate) fn new([certain, possible]: [bool; 2], [least, greatest]: [f64; 2]) -> Levels {
        let level = |truth| if truth { HIGH } else { LOW };
        Levels([level(certain), level(possible), least, greatest])
    }

    /// Levels of a truth without a robustness of its own.
    pub(crate) fn of_truth([certain, possible]: [bool; 2]) -> Levels {
        let level = |truth| if truth { HIGH } else { LOW };
        Levels::new([certain, possible], [level(certain), level(possible)])
    }

    #[inline(always)]
    pub(crate) fn and(self, other: Levels) -> Levels {
        let [a, b] = [self.0, other.0];
        Levels(std::array::from_fn(|i| if a[i] < b[i] { a[i] } else { b[i] }))
    }

    #[inline(always)]
    pub(crate) fn or(self, other: Levels) -> Levels {
        let [a, b] = [self.0, other.0];
        Levels(std::array::from_fn(|i| if a[i] > b[i] { a[i] } else { b[i] }))
    }

    pub(crate) fn not(self) -> Levels {
        let [certain, possible, least, greatest] = self.0;
        Levels([-possible, -certain, -greatest, -least])
    }

    /// True where certainly true, otherwise false.
    pub(crate) fn definitely(self) -> Levels {
        let [certain, _, least, _] = self.0;
        Levels([certain, certain, least, least])
    }

    /// Returns `then` or `otherwise`; unknown if the condition is.
    pub(crate) fn choose(self, then: Levels, otherwise: Levels) -> Levels {
        match self.verdict() {
            Verdict::Satisfied => then,
            Verdict::Violated => otherwise,
            Verdict::Inconclusive => Levels::UNKNOWN,
        }
    }

    /// Equality of two truths.
    pub(crate) fn same(self, other: Levels) -> Levels {
        self.not().or(other).and(self.or(other.not()))
    }

    pub(crate) fn verdict(self) -> Verdict {
        let [certain, possible, ..] = self.0;
        if certain > 0.0 {
            Verdict::Satisfied
        } else if possible < 0.0 {
            Verdict::Violated
        } else {
            Verdict::Inconclusive
        }
    }

    /// Returns the robustness, where it is known.
    pub(crate) fn robustness(self) -> Option<f64> {
        let [_, _, least, greatest] = self.0;
        // Adding zero turns a negative zero into a positive one.
        (least == greatest).then_some(least + 0.0)
    }
}
