//! Histograms of delays.

use serde::{Deserialize, Serialize};

/// Histogram of delays with a relative bucket width of at most 1/16. Older delays weigh less.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(super) struct Delays {
    /// Counts up to the largest bucket in use.
    buckets: Vec<u32>,
    count: u64,
    /// Number of all delays, without weights.
    total: u64,
    max: u64,
}

/// Counts from here on are refused in a snapshot, so that adding to them cannot overflow.
pub(super) const IMPOSSIBLE: u64 = 1 << 62;

/// Number of delays at which all counts are halved.
const FORGET_AT: u64 = 1 << 15;

/// Number of buckets for each power of two.
const STEPS: u32 = 16;

impl Delays {
    #[inline]
    pub(super) fn add(&mut self, delay: u64) {
        let bucket = bucket(delay);
        if bucket >= self.buckets.len() {
            self.buckets.resize(bucket + 1, 0);
        }
        let count = &mut self.buckets[bucket];
        *count = count.saturating_add(1);
        self.count += 1;
        self.total += 1;
        self.max = self.max.max(delay);
        if self.count == FORGET_AT {
            self.buckets.iter_mut().for_each(|count| *count /= 2);
            self.count = self.buckets.iter().map(|count| u64::from(*count)).sum();
        }
    }

    /// Whether restored values are plausible: a snapshot may contain any numbers.
    pub(super) fn is_plausible(&self) -> bool {
        self.buckets.len() <= bucket(u64::MAX) + 1 && self.count < FORGET_AT && self.total < IMPOSSIBLE
    }

    /// Returns the number of all delays.
    pub(super) fn total(&self) -> u64 {
        self.total
    }

    pub(super) fn max(&self) -> u64 {
        self.max
    }

    /// Returns a quantile of the delays: at most 1/16 too large, never too small; 0 without delays.
    pub(super) fn quantile(&self, part: f64) -> u64 {
        let wanted = (self.count as f64 * part).ceil().max(1.0) as u64;
        let mut so_far = 0_u64;
        for (bucket, &count) in self.buckets.iter().enumerate() {
            so_far += u64::from(count);
            if so_far >= wanted {
                return end(bucket).min(self.max);
            }
        }
        self.max
    }
}

/// Returns the bucket of a delay: its highest bit and the four bits after it.
fn bucket(delay: u64) -> usize {
    if delay < u64::from(STEPS) {
        return delay as usize;
    }
    let exponent = delay.ilog2() - STEPS.ilog2();
    ((exponent * STEPS) as u64 + (delay >> exponent)) as usize
}

/// Returns the longest delay of a bucket.
fn end(bucket: usize) -> u64 {
    let steps = STEPS as usize;
    if bucket < steps {
        return bucket as u64;
    }
    let exponent = bucket / steps - 1;
    let first = ((bucket % steps + steps) as u64) << exponent;
    first + ((1_u64 << exponent) - 1)
}
