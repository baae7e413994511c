//! `stddev(x)` over a window: the square root of the mean squared deviation from the mean.
//!
//! | | |
//! |---|---|
//! | meaning | the standard deviation of all samples in the window (of the population: divided by their number) |
//! | unknown | without samples, or while one is unknown; NaN while a sample is infinite or NaN |
//! | rounding | partial aggregates are merged, never subtracted: samples that have left the window leave no trace |
//! | state | the samples, in [two stacks](super::stacks) |

use serde::{Deserialize, Serialize};

use super::stacks::{Aggregate, Stacks};

/// Number of samples, their mean, and the sum of their squared deviations from it.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize)]
pub(crate) struct SampleStatistics {
    count: f64,
    mean: f64,
    squares: f64,
}

/// State of the standard deviation.
pub(crate) type Deviation = Stacks<SampleStatistics>;

impl Aggregate for SampleStatistics {
    /// Welford's update.
    #[inline(always)]
    fn add(&mut self, x: f64) {
        self.count += 1.0;
        let off = x - self.mean;
        self.mean += off / self.count;
        self.squares += off * (x - self.mean);
    }

    /// Chan's merge of two sets of samples.
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
