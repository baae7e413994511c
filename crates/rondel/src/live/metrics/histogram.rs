//! Histograms of durations with fixed buckets.

use std::time::Duration;

/// Number of buckets with a bound.
const BUCKETS: usize = 25;

/// Upper bounds of the buckets in nanoseconds: 1, 2.5 and 5 of each power of ten from 100 ns to 10 s.
const BOUNDS: [u64; BUCKETS] = bounds();

const fn bounds() -> [u64; BUCKETS] {
    let (mut bounds, mut at, mut decade) = ([0; BUCKETS], 0, 100);
    while at < BUCKETS {
        bounds[at] = match at % 3 {
            0 => decade,
            1 => decade * 5 / 2,
            _ => decade * 5,
        };
        if at % 3 == 2 {
            decade *= 10;
        }
        at += 1;
    }
    bounds
}

/// Counts of durations by bucket.
#[derive(Clone, Debug, Default)]
pub struct Histogram {
    /// The last bucket has no bound.
    counts: [u64; BUCKETS + 1],
    /// Sum of all durations in nanoseconds.
    nanos: u64,
}

impl Histogram {
    /// Adds a duration, `weight` times.
    #[inline]
    pub fn record(&mut self, duration: Duration, weight: u64) {
        let nanos = u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX);
        let bucket = BOUNDS.partition_point(|bound| *bound < nanos);
        self.counts[bucket] += weight;
        self.nanos = self.nanos.saturating_add(nanos.saturating_mul(weight));
    }

    /// Number of durations.
    pub fn count(&self) -> u64 {
        self.counts.iter().sum()
    }

    /// Sum of all durations in seconds.
    pub fn seconds(&self) -> f64 {
        self.nanos as f64 / 1e9
    }

    /// The upper bound of each bucket in seconds, and the number of durations in it; the last bound is infinite.
    pub fn buckets(&self) -> Vec<(f64, u64)> {
        let bounds = BOUNDS.iter().map(|bound| *bound as f64 / 1e9).chain([f64::INFINITY]);
        bounds.zip(self.counts).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bounds_are_the_upper_ends_of_buckets() {
        assert_eq!((BOUNDS[0], BOUNDS[1], BOUNDS[2], BOUNDS[3]), (100, 250, 500, 1000));
        assert_eq!(BOUNDS[BUCKETS - 1], 10_000_000_000);
        let mut histogram = Histogram::default();
        for (nanos, weight) in [(0, 1), (100, 2), (101, 3), (10_000_000_000, 4), (10_000_000_001, 5)] {
            histogram.record(Duration::from_nanos(nanos), weight);
        }
        let buckets = histogram.buckets();
        assert_eq!((buckets[0], buckets[1]), ((1e-7, 3), (2.5e-7, 3)));
        assert_eq!((buckets[BUCKETS - 1], buckets[BUCKETS]), ((10.0, 4), (f64::INFINITY, 5)));
        assert_eq!((histogram.count(), buckets.len()), (15, BUCKETS + 1));
        assert!((histogram.seconds() - 90.0).abs() < 1e-3, "{}", histogram.seconds());
    }
}
