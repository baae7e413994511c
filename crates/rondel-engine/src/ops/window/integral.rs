//! `integral(x)` over a window: the area below the lines from each of its samples to the next, in seconds.
//!
//! | | |
//! |---|---|
//! | meaning | the sum of (a + b) / 2 · seconds over samples a and b that follow each other; 0 of one or none |
//! | unknown | while a sample is unknown |
//! | rounding | as that of a sum: means and areas are added up anew in twice the precision, nothing is subtracted |
//! | state | the samples, in [two stacks](super::stacks) |

use serde::{Deserialize, Serialize};

use super::age;
use super::stacks::{Stacks, Together};
use super::sum::CompensatedSum;

/// The integral.
pub(crate) type Integral = Stacks<Area>;

/// The area below some samples, the unit being that of the value by a nanosecond.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize)]
pub(crate) struct Area(CompensatedSum);

impl Together for Area {
    #[inline(always)]
    fn add_between(&mut self, (from, a): (i64, f64), (to, b): (i64, f64)) {
        let nanos = age(to, from) as f64;
        // At one time there is no area, not even below what is infinite.
        if nanos == 0.0 {
            return;
        }
        let (a, b) = (a / 2.0, b / 2.0);
        let mean = a + b;
        self.0.add(mean * nanos);
        // Knuth: what rounding took from the mean. It matters where large values cancel out.
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
