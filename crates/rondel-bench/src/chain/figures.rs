//! Latency, data age and reaction time of a chain, from the outputs of its last participant.

use serde::Deserialize;

/// The outputs of an actuator: number, stamp and time of each message, in nanoseconds since the Unix epoch.
#[derive(Debug, Deserialize)]
pub struct Outputs {
    outputs: Vec<[i64; 3]>,
}

/// The measured times of a chain, in microseconds.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Times {
    /// From each stamp until it came out.
    pub latency_us: Vec<f64>,
    /// From the stamp of each output until the next output.
    pub age_us: Vec<f64>,
    /// From each stamp until an output with this stamp or a later one.
    pub reaction_us: Vec<f64>,
}

impl Outputs {
    /// Parses the line of an actuator.
    pub fn parse(line: &str) -> Option<Outputs> {
        serde_json::from_str(line).ok()
    }

    /// Returns the number of outputs.
    pub fn len(&self) -> usize {
        self.outputs.len()
    }

    /// Returns the number of stamps that took longer than this.
    pub fn later_than(&self, bound_ns: i64) -> usize {
        self.outputs.iter().filter(|[_, stamp, at]| at - stamp > bound_ns).count()
    }

    /// Returns the times of all messages from this number on.
    pub fn times(mut self, from: u64) -> Times {
        self.outputs.retain(|[number, ..]| number.cast_unsigned() >= from);
        let us = |ns: i64| ns as f64 / 1e3;
        let pairs = self.outputs.windows(2);
        let age_us = pairs.map(|pair| us(pair[1][2] - pair[0][1])).collect();
        self.outputs.sort_unstable_by_key(|[number, ..]| *number);
        let latency_us = self.outputs.iter().map(|[_, stamp, at]| us(at - stamp)).collect();
        let mut first = i64::MAX;
        let mut reaction_us: Vec<f64> = Vec::with_capacity(self.outputs.len());
        for [_, stamp, at] in self.outputs.iter().rev() {
            first = first.min(*at);
            reaction_us.push(us(first - stamp));
        }
        reaction_us.reverse();
        Times { latency_us, age_us, reaction_us }
    }
}

impl Times {
    /// Adds those of another chain.
    pub fn add(&mut self, other: Times) {
        self.latency_us.extend(other.latency_us);
        self.age_us.extend(other.age_us);
        self.reaction_us.extend(other.reaction_us);
    }
}

/// Returns the mean of the differences of successive values. NaN with less than two.
pub fn jitter(values: &[f64]) -> f64 {
    let differences: Vec<f64> = values.windows(2).map(|pair| (pair[1] - pair[0]).abs()).collect();
    crate::table::mean(&differences)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message_that_is_overtaken_reacts_early_and_ages() {
        // The second message comes out after the third.
        let line = r#"{"outputs":[[0,0,9000],[1,10000,15000],[3,30000,36000],[2,20000,40000]]}"#;
        let outputs = Outputs::parse(line).unwrap();
        assert_eq!((outputs.len(), outputs.later_than(6000)), (4, 2));
        let times = outputs.times(1);
        assert_eq!(times.latency_us, [5.0, 20.0, 6.0]);
        assert_eq!(times.reaction_us, [5.0, 16.0, 6.0]);
        assert_eq!(times.age_us, [26.0, 10.0]);
        assert!(Outputs::parse("ready").is_none());
    }

    #[test]
    fn jitter_is_the_mean_difference() {
        assert_eq!(jitter(&[1.0, 3.0, 2.0]), 1.5);
        assert!(jitter(&[1.0]).is_nan());
    }
}
