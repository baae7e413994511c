//! Timelines and bands of values, thinned to a width.

use serde_json::{Value, json};

use crate::answer::{NONE, rank, seconds};

/// A time range, in nanoseconds, cut into intervals of equal length.
#[derive(Clone, Copy, Debug)]
struct Cut {
    from: i64,
    until: i64,
    count: usize,
}

impl Cut {
    fn new(from: i64, until: i64, width: usize) -> Cut {
        let from = from.min(i64::MAX - 1);
        Cut { from, until: until.max(from + 1), count: width.max(1) }
    }

    fn span(self) -> i128 {
        i128::from(self.until) - i128::from(self.from)
    }

    /// The interval of a time.
    fn at(self, time: i64) -> usize {
        let time = time.clamp(self.from, self.until - 1);
        let offset = i128::from(time) - i128::from(self.from);
        (offset * self.count as i128 / self.span()) as usize
    }

    /// Where an interval begins.
    fn begin(self, at: usize) -> i64 {
        // Rounded up, so that the interval of the result is `at`.
        let offset = (self.span() * at as i128 + self.count as i128 - 1) / self.count as i128;
        (i128::from(self.from) + offset) as i64
    }
}

/// The worst verdict of each interval of a time range.
#[derive(Clone, Debug)]
pub(crate) struct Timeline {
    cut: Cut,
    verdicts: Vec<u8>,
}

impl Timeline {
    /// A timeline without verdicts.
    pub(crate) fn new(from: i64, until: i64, width: usize) -> Timeline {
        let cut = Cut::new(from, until, width);
        Timeline { cut, verdicts: vec![NONE; cut.count] }
    }

    /// Sets where the verdict is known at all.
    pub(crate) fn fill(&mut self, from: i64, until: i64, verdict: u8) {
        self.paint(from, until, verdict, |_| true);
    }

    /// Adds a verdict that holds from a time until another. Worse ones stay.
    pub(crate) fn add(&mut self, from: i64, until: i64, verdict: u8) {
        self.paint(from, until, verdict, |other| other == NONE || rank(verdict) < rank(other));
    }

    fn paint(&mut self, from: i64, until: i64, verdict: u8, replaces: impl Fn(u8) -> bool) {
        if until < self.cut.from || from >= self.cut.until {
            return;
        }
        let last = self.cut.at(until.saturating_sub(1).max(from));
        for own in self.verdicts.get_mut(self.cut.at(from)..=last).into_iter().flatten() {
            if replaces(*own) {
                *own = verdict;
            }
        }
    }

    /// The times at which the worst verdict changes, with the verdicts.
    pub(crate) fn json(&self) -> Value {
        let (mut times, mut verdicts) = (Vec::new(), Vec::<u8>::new());
        for (at, verdict) in self.verdicts.iter().enumerate() {
            if verdicts.last() != Some(verdict) {
                times.push(seconds(self.cut.begin(at)));
                verdicts.push(*verdict);
            }
        }
        json!({"times": times, "verdicts": verdicts})
    }
}

/// Values over time: the least and the greatest of each interval.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Band {
    pub(crate) times: Vec<f64>,
    pub(crate) least: Vec<Option<f64>>,
    pub(crate) greatest: Vec<Option<f64>>,
}

impl Band {
    /// Thins values that hold from their times on, in order of time; `None` is unknown. The value that holds when the
    /// range begins is the first.
    pub(crate) fn of(points: &[(i64, Option<f64>)], from: i64, until: i64, width: usize) -> Band {
        let mut band = Band::default();
        let first = points.partition_point(|(time, _)| *time <= from);
        let end = points.partition_point(|(time, _)| *time <= until);
        if let Some((_, value)) = first.checked_sub(1).and_then(|before| points.get(before)) {
            band.push(from, *value);
        }
        let inside = points.get(first..end).unwrap_or_default();
        if inside.len() < width {
            inside.iter().for_each(|(time, value)| band.push(*time, *value));
            return band;
        }
        let cut = Cut::new(from, until, width);
        let mut current = None;
        for (time, value) in inside {
            let at = cut.at(*time);
            if current == Some(at) {
                band.widen(*value);
            } else {
                band.push(*time, *value);
                current = Some(at);
            }
        }
        band
    }

    fn push(&mut self, time: i64, value: Option<f64>) {
        let value = value.filter(|value| value.is_finite());
        self.times.push(seconds(time));
        self.least.push(value);
        self.greatest.push(value);
    }

    /// Adds a value to the last interval.
    fn widen(&mut self, value: Option<f64>) {
        let Some(value) = value.filter(|value| value.is_finite()) else { return };
        if let Some(least) = self.least.last_mut() {
            *least = Some(least.map_or(value, |least| least.min(value)));
        }
        if let Some(greatest) = self.greatest.last_mut() {
            *greatest = Some(greatest.map_or(value, |greatest| greatest.max(value)));
        }
    }

    pub(crate) fn json(&self) -> Value {
        json!({"times": self.times, "least": self.least, "greatest": self.greatest})
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::answer::{INCONCLUSIVE, SATISFIED, VIOLATED};

    const S: i64 = 1_000_000_000;

    #[test]
    fn worst_verdict_of_an_interval_is_shown() {
        let mut timeline = Timeline::new(0, 100 * S, 10);
        timeline.fill(20 * S, 100 * S, SATISFIED);
        timeline.add(30 * S, 35 * S, INCONCLUSIVE);
        timeline.add(31 * S, 32 * S, VIOLATED);
        timeline.add(33 * S, 34 * S, SATISFIED);
        timeline.add(-50 * S, -1, VIOLATED);
        timeline.add(95 * S, i64::MAX, VIOLATED);
        assert_eq!(
            timeline.json(),
            json!({"times": [0.0, 20.0, 30.0, 40.0, 90.0], "verdicts": [3, 0, 1, 0, 1]})
        );
    }

    #[test]
    fn shortest_violation_has_an_entry() {
        let mut timeline = Timeline::new(i64::MIN, i64::MAX, 4096);
        timeline.add(5, 5, VIOLATED);
        timeline.add(i64::MIN, i64::MIN, VIOLATED);
        let json = timeline.json();
        assert_eq!(json["verdicts"], json!([1, 3, 1, 3]));
    }

    #[test]
    fn extremes_survive_thinning() {
        let points: Vec<(i64, Option<f64>)> = (0..10_000).map(|i| (i * S, Some((i % 100) as f64))).collect();
        let band = Band::of(&points, 0, 10_000 * S, 50);
        assert_eq!(band.times.len(), 51);
        assert!(band.least[1..].iter().all(|value| value.is_some_and(|value| value <= 1.0)));
        assert!(band.greatest[1..].iter().all(|value| *value == Some(99.0)));
        let few = Band::of(&points, 50 * S, 53 * S, 50);
        assert_eq!((few.times, few.least.len()), (vec![50.0, 51.0, 52.0, 53.0], 4));
    }

    #[test]
    fn unknown_and_infinite_values_are_null() {
        let points = [(0, None), (S, Some(f64::INFINITY)), (2 * S, Some(1.0))];
        let band = Band::of(&points, -S, 3 * S, 100);
        assert_eq!(
            band.json(),
            json!({"times": [0.0, 1.0, 2.0], "least": [null, null, 1.0], "greatest": [null, null, 1.0]})
        );
        assert_eq!(Band::of(&[], 0, S, 10), Band::default());
    }
}
