//! Statistics of chains.

use serde::{Deserialize, Serialize};

/// Number of buckets per octave: quantiles are too high by less than 1/128.
const PARTS: u32 = 128;
const BITS: u32 = PARTS.ilog2();

/// Distribution of durations: exact except for quantiles, which are too high by less than one percent.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Distribution {
    count: u64,
    sum: u128,
    least: u64,
    greatest: u64,
    /// Number of durations per bucket, up to the bucket of the greatest.
    buckets: Vec<u64>,
}

impl Distribution {
    /// Adds a duration, in nanoseconds.
    pub(super) fn add(&mut self, nanos: u64) {
        self.least = if self.count == 0 { nanos } else { self.least.min(nanos) };
        self.greatest = self.greatest.max(nanos);
        self.count = self.count.saturating_add(1);
        self.sum = self.sum.saturating_add(nanos.into());
        let bucket = bucket_of(nanos);
        if bucket >= self.buckets.len() {
            self.buckets.resize(bucket + 1, 0);
        }
        self.buckets[bucket] = self.buckets[bucket].saturating_add(1);
    }

    /// Adds another distribution.
    pub fn merge(&mut self, other: &Distribution) {
        if other.count == 0 {
            return;
        }
        self.least = if self.count == 0 { other.least } else { self.least.min(other.least) };
        self.greatest = self.greatest.max(other.greatest);
        self.count = self.count.saturating_add(other.count);
        self.sum = self.sum.saturating_add(other.sum);
        if self.buckets.len() < other.buckets.len() {
            self.buckets.resize(other.buckets.len(), 0);
        }
        for (own, more) in self.buckets.iter_mut().zip(&other.buckets) {
            *own = own.saturating_add(*more);
        }
    }

    /// Number of durations.
    pub fn count(&self) -> u64 {
        self.count
    }

    /// The minimum, in nanoseconds.
    pub fn min(&self) -> Option<u64> {
        (self.count > 0).then_some(self.least)
    }

    /// The maximum, in nanoseconds.
    pub fn max(&self) -> Option<u64> {
        (self.count > 0).then_some(self.greatest)
    }

    /// The mean, rounded down to nanoseconds.
    pub fn mean(&self) -> Option<u64> {
        let mean = self.sum.checked_div(self.count.into())?;
        Some(u64::try_from(mean).unwrap_or(u64::MAX))
    }

    /// The quantile, in thousandths, rounded up by less than one percent.
    pub fn quantile(&self, thousandths: u64) -> Option<u64> {
        let rank = (u128::from(self.count) * u128::from(thousandths.min(1000))).div_ceil(1000).max(1);
        let mut seen = 0_u128;
        let bucket = self.buckets.iter().position(|&count| {
            seen += u128::from(count);
            seen >= rank
        });
        Some(last_of(bucket?).clamp(self.least, self.greatest))
    }
}

/// The first durations have a bucket each; every later octave has [`PARTS`].
fn bucket_of(nanos: u64) -> usize {
    let shift = (u64::BITS - nanos.leading_zeros()).saturating_sub(BITS + 1);
    (shift << BITS) as usize + (nanos >> shift) as usize
}

/// The longest duration in a bucket.
fn last_of(bucket: usize) -> u64 {
    let bucket = bucket as u64;
    let shift = (bucket >> BITS).saturating_sub(1);
    let first = (bucket - (shift << BITS)) << shift;
    first + ((1 << shift) - 1)
}

/// Statistics of a chain's stamps.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ChainFigures {
    /// Time from the input to the output of a stamp, including late ones.
    pub latency: Distribution,
    /// Time from a message of the first topic to the first output that stems from it or from a later one.
    pub reaction: Distribution,
    /// Age of each output's data just before the next output.
    pub age: Distribution,
    /// Number of stamps of the first topic.
    pub started: u64,
    /// Number of stamps that reached the last topic in time.
    pub in_time: u64,
    /// Number of stamps that reached it later.
    pub late: u64,
    /// Per topic, number of stamps that were dropped before they reached it, but after they reached those
    /// before.
    pub lost: Vec<u64>,
    /// Number of stamps dropped because of the limit.
    pub crowded_out: u64,
    /// Number of messages of later topics out of order: with a stamp that has not reached the topic before,
    /// or was dropped.
    pub strays: u64,
    /// Number of messages without a stamp.
    pub unstamped: u64,
}

impl ChainFigures {
    /// Adds statistics of the same chain.
    pub fn merge(&mut self, other: &ChainFigures) {
        let ChainFigures {
            latency,
            reaction,
            age,
            started,
            in_time,
            late,
            lost,
            crowded_out,
            strays,
            unstamped,
        } = other;
        self.latency.merge(latency);
        self.reaction.merge(reaction);
        self.age.merge(age);
        self.started += started;
        self.in_time += in_time;
        self.late += late;
        self.crowded_out += crowded_out;
        self.strays += strays;
        self.unstamped += unstamped;
        self.lost.resize(self.lost.len().max(lost.len()), 0);
        self.lost.iter_mut().zip(lost).for_each(|(own, more)| *own += more);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn buckets_are_contiguous_and_narrow() {
        let mut next = 0_u64;
        for bucket in 0.. {
            assert_eq!(bucket_of(next), bucket);
            let last = last_of(bucket);
            assert_eq!(bucket_of(last), bucket);
            assert!((last - next).saturating_mul(128) <= next.max(1) || last == next);
            let Some(first) = last.checked_add(1) else { break };
            next = first;
        }
    }

    #[test]
    fn quantiles_use_nearest_rank() {
        let mut all = Distribution::default();
        assert_eq!((all.min(), all.mean(), all.quantile(500)), (None, None, None));
        (1..=100).for_each(|nanos| all.add(nanos));
        assert_eq!(
            (all.quantile(500), all.quantile(990), all.quantile(1000)),
            (Some(50), Some(99), Some(100))
        );
        assert_eq!((all.min(), all.mean(), all.max(), all.count()), (Some(1), Some(50), Some(100), 100));
        let mut far = Distribution::default();
        [1_000_000, 1_000_003, u64::MAX].into_iter().for_each(|nanos| far.add(nanos));
        let half = far.quantile(500).unwrap();
        assert!((1_000_003..1_010_000).contains(&half), "{half}");
        all.merge(&far);
        assert_eq!((all.count(), all.quantile(0), all.max()), (103, Some(1), Some(u64::MAX)));
    }
}
