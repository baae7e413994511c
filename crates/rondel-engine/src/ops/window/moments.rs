//! `stddev(x)` over a window: the root of the mean square of the differences from the mean.
//!
//! | | |
//! |---|---|
//! | meaning | the standard deviation of all samples in the window (of the population: divided by their number) |
//! | unknown | of no sample, or while one is unknown; NaN while a sample is infinite or NaN |
//! | rounding | parts are joined, and none is subtracted: nothing that has left the window leaves a trace |
//! | state | the samples, in [two stacks](super::stacks) |

use serde::{Deserialize, Serialize};

use super::stacks::{Stacks, Together};

/// The number of some samples, their mean, and the sum of the squares of their differences from it.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize)]
pub(crate) struct SampleStatistics {
    count: f64,
    mean: f64,
    squares: f64,
}

/// The standard deviation.
pub(crate) type Deviation = Stacks<SampleStatistics>;

impl Together for SampleStatistics {
    /// Welford: with one more.
    #[inline(always)]
    fn add(&mut self, x: f64) {
        self.count += 1.0;
        let off = x - self.mean;
        self.mean += off / self.count;
        self.squares += off * (x - self.mean);
    }

    /// Chan: of both together.
    #[inline(always)]
    fn measured(self, other: SampleStatistics) -> Option<f64> {
        let count = self.count + other.count;
        if count == 0.0 {
            return None;
        }
        let off = other.mean - self.mean;
        let between = match self.count == 0.0 || other.count == 0.0 {
            true => 0.0,
            false => off * off * (self.count / count) * other.count,
        };
        Some(((self.squares + other.squares + between) / count).sqrt())
    }
}
