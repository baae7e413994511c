//! `integral(x)` over a window: the area below the linear interpolation of its samples, in seconds.
//!
//! | | |
//! |---|---|
//! | meaning | the sum of (a + b) / 2 · seconds over consecutive samples a and b; 0 for fewer than two |
//! | unknown | while a sample is unknown |
//! | rounding | means and areas are summed in twice the precision, and nothing is subtracted |
//! | state | the samples, in [two stacks](super::stacks) |

use serde::{Deserialize, Serialize};

use super::age;
use super::stacks::{Aggregate, Stacks};
use super::sum::CompensatedSum;

/// State of the integral.
pub(crate) type Integral = Stacks<Area>;

/// Area below consecutive samples; the unit is that of the value times nanoseconds.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize)]
pub(crate) struct Area(CompensatedSum);

impl Aggregate for Area {
    #[inline(always)]
    fn add_between(&mut self, earlier: (i64, f64), later: (i64, f64)) {
        let ((from, a), (to, b)) = (earlier, later);
        let nanos = age(to, from) as f64;
        // Samples of the same time have no area between them, even if they are infinite.
        if nanos == 0.0 {
            return;
        }
        let (a, b) = (a / 2.0, b / 2.0);
        let mean = a + b;
        self.0.add(mean * nanos);
        // Knuth's rounding error of the mean. It matters where large values cancel out.
        let of_b = mean - a;
        let rest = (a - (mean - of_b)) + (b - of_b);
        if rest.is_finite() && rest != 0.0 {
            self.0.add(rest * nanos);
        }
    }

    #[inline(always)]
    fn measured(self, newer: Area) -> Option<f64> {
        Some(self.0.plus(newer.0) / 1e9)
    }
}
