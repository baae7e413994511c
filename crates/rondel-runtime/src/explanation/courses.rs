//! Course of every field over a whole recording, at a coarser resolution where it has many values.

use std::collections::BTreeMap;

use rondel_event::{Timestamp, Value};

use super::Signal;

/// Maximum number of values of a field; a plot has no more columns.
const MOST: usize = 4096;

/// Maximum number of fields, counted separately for each `for each` instance.
const FIELDS: usize = 64;

/// The values of all fields over time.
#[derive(Clone, Debug, Default)]
pub(crate) struct Courses {
    /// By the number of the field and the parameters of the instance.
    courses: BTreeMap<(usize, String), Course>,
    /// The number of values of fields and instances beyond the limit.
    left_out: u64,
}

/// Values of one field or term over time, in bounded memory: if there are many, the least and the greatest of each
/// interval.
#[derive(Clone, Debug, Default)]
pub struct Course {
    /// In order of time. No two successive values are equal.
    values: Vec<(i64, Option<Value>)>,
    /// Width in nanoseconds of the intervals of which only the least and the greatest value are kept; 0 while all are.
    width: i64,
}

/// Presentation of a field or term in a plot.
#[derive(Clone, Copy, Debug)]
pub(super) struct Drawn<'d> {
    pub(super) name: &'d str,
    /// The constants that it is compared with.
    pub(super) thresholds: &'d [f64],
    /// The number of the field that is its upper end.
    pub(super) upper: Option<usize>,
}

impl Courses {
    /// Adds the value of a field of an instance from a time on.
    pub(super) fn add(&mut self, field: usize, instance: String, time: i64, value: Option<Value>) {
        let key = (field, instance);
        if self.courses.len() >= FIELDS && !self.courses.contains_key(&key) {
            self.left_out += 1;
            return;
        }
        self.courses.entry(key).or_default().add(time, value);
    }

    /// Returns the courses, named by fields and instances, and the number of values beyond the limit.
    pub(super) fn signals<'d>(&self, drawn: impl Fn(usize) -> Option<Drawn<'d>>) -> (Vec<Signal>, u64) {
        let signal = |((field, instance), course): (&(usize, String), &Course)| {
            let Drawn { name, thresholds, upper } = drawn(*field)?;
            let upper = upper.and_then(|upper| self.courses.get(&(upper, instance.clone())));
            Some(Signal {
                name: format!("{name}{instance}"),
                thresholds: thresholds.to_vec(),
                values: course.values().collect(),
                upper: upper.into_iter().flat_map(Course::values).collect(),
            })
        };
        (self.courses.iter().filter_map(signal).collect(), self.left_out)
    }
}

impl Course {
    /// Returns the times at which the value changes, with the new values.
    pub fn values(&self) -> impl Iterator<Item = (Timestamp, Option<Value>)> + '_ {
        self.values.iter().map(|(time, value)| (Timestamp::from_nanos(*time), value.clone()))
    }

    /// Adds the value from a time on, in nanoseconds.
    pub fn add(&mut self, time: i64, value: Option<Value>) {
        // Times in the messages may go backwards; a picture goes from left to right.
        let time = self.values.last().map_or(time, |(last, _)| time.max(*last));
        if self.values.last().is_some_and(|(_, last)| *last == value) {
            return;
        }
        self.values.push((time, value));
        if self.values.len() > 2 * MOST {
            self.thin();
        }
    }

    /// Reduces each interval to its least and greatest value.
    fn thin(&mut self) {
        let (Some(first), Some(last)) = (self.values.first(), self.values.last()) else { return };
        let (begin, span) = (first.0, last.0.saturating_sub(first.0));
        self.width = self.width.max(span / (MOST as i64 / 2)).max(1);
        let mut kept: Vec<(i64, Option<Value>)> = Vec::with_capacity(MOST);
        for stretch in self.values.chunk_by(|(a, _), (b, _)| {
            a.saturating_sub(begin) / self.width == b.saturating_sub(begin) / self.width
        }) {
            let number = |i: &usize| number(&stretch[*i].1);
            let numbers = || (0..stretch.len()).filter(|i| number(i).is_finite());
            let least = numbers().min_by(|a, b| number(a).total_cmp(&number(b)));
            let greatest = numbers().max_by(|a, b| number(a).total_cmp(&number(b)));
            // The last value holds on.
            let mut chosen: Vec<usize> =
                [least, greatest, Some(stretch.len() - 1)].into_iter().flatten().collect();
            chosen.sort_unstable();
            chosen.dedup();
            kept.extend(chosen.into_iter().map(|i| stretch[i].clone()));
        }
        // Many values at one time.
        let too_many = kept.len().saturating_sub(3 * MOST / 2);
        kept.drain(..too_many);
        self.values = kept;
    }
}

/// The number that a value is; NaN if it is none.
fn number(value: &Option<Value>) -> f64 {
    match value {
        Some(Value::Float(value)) => *value,
        Some(Value::Int(value) | Value::Time(value) | Value::Duration(value)) => *value as f64,
        Some(Value::Bool(value)) => f64::from(u8::from(*value)),
        Some(Value::String(_)) | None => f64::NAN,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn added(values: impl IntoIterator<Item = (i64, Option<Value>)>) -> Vec<(i64, Option<Value>)> {
        let mut course = Course::default();
        values.into_iter().for_each(|(time, value)| course.add(time, value));
        course.values
    }

    #[test]
    fn few_values_are_all_kept() {
        let float = |x| Some(Value::Float(x));
        let values = [(0, float(1.0)), (1, float(1.0)), (2, None), (2, float(3.0)), (1, float(0.0))];
        assert_eq!(added(values), [(0, float(1.0)), (2, None), (2, float(3.0)), (2, float(0.0))]);
    }

    #[test]
    fn many_values_keep_their_extremes() {
        let spike = 123_457;
        let value = |i: i64| if i == spike { 1e6 } else { (i % 7) as f64 };
        let values = added((0..1_000_000).map(|i| (i * 1000, Some(Value::Float(value(i))))));
        assert!(values.len() <= 2 * MOST && values.len() > MOST / 4, "{}", values.len());
        assert!(values.contains(&(spike * 1000, Some(Value::Float(1e6)))));
        assert_eq!(values.last(), Some(&(999_999_000, Some(Value::Float(value(999_999))))));
        assert!(values.is_sorted_by_key(|(time, _)| *time));
        let at_once = added((0..100_000).map(|i| (5, Some(Value::Int(i)))));
        assert!(at_once.len() <= 2 * MOST, "{}", at_once.len());
        let texts = added((0..100_000).map(|i| (i, Some(Value::String(format!("{i}").into())))));
        assert!(texts.len() <= 2 * MOST, "{}", texts.len());
    }

    #[test]
    fn more_fields_than_a_picture_shows_are_counted() {
        let mut courses = Courses::default();
        for i in 0..100 {
            courses.add(0, format!("[{i}]"), i, Some(Value::Int(i)));
        }
        let (signals, left_out) =
            courses.signals(|_| Some(Drawn { name: "f", thresholds: &[], upper: None }));
        assert_eq!((signals.len(), left_out), (FIELDS, 36));
        assert_eq!(signals[0].name, "f[0]");
    }
}
