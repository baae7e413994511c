//! Signals of violations, put together to one over the whole recording that is unknown between them.

use serde::Serialize;
use serde_json::Value;

use super::data::since;
use crate::results::{Signal, SignalKind};

/// A signal up to a violation, or over a whole recording.
pub(super) struct Window<'r> {
    pub(super) signal: &'r Signal,
    /// Time after which it is not known.
    pub(super) end: Option<i64>,
}

/// A field or term over time: the least and the greatest value from each time on, or texts.
#[derive(Serialize)]
pub(super) struct Track<'r> {
    name: &'r str,
    /// The parameters of its instance.
    #[serde(skip_serializing_if = "Option::is_none")]
    parameters: Option<&'r str>,
    kind: &'static str,
    /// `time` or `duration` of numbers that are seconds.
    #[serde(skip_serializing_if = "Option::is_none")]
    unit: Option<SignalKind>,
    thresholds: &'r [f64],
    times: Vec<f64>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    least: Vec<Option<f64>>,
    /// Missing if it equals `least`.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    greatest: Vec<Option<f64>>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    texts: Vec<Option<&'r str>>,
}

/// Puts windows of one signal together, with at most `most` values of each; `None` if there are none.
pub(super) fn track<'r>(
    mut windows: Vec<Window<'r>>,
    parameters: &'r str,
    begin: i64,
    most: usize,
) -> Option<Track<'r>> {
    windows.retain(|window| !window.signal.values.is_empty());
    // Violations may become certain in another order than that of their times.
    windows.sort_by_key(|window| window.signal.values.first().map(|(time, _)| *time));
    let signal = windows.first()?.signal;
    if most == 0 {
        return None;
    }
    let all = || windows.iter().flat_map(|window| window.signal.values.iter().map(|(_, value)| value));
    let kind = if all().all(|value| matches!(value, Value::Bool(_) | Value::Null)) {
        "boolean"
    } else if all().any(|value| number(value).is_some()) {
        "number"
    } else {
        "text"
    };
    let mut track = Track {
        name: &signal.name,
        parameters: Some(parameters).filter(|parameters| !parameters.is_empty()),
        kind,
        unit: Some(signal.kind).filter(|kind| *kind != SignalKind::Number),
        thresholds: &signal.thresholds,
        times: Vec::new(),
        least: Vec::new(),
        greatest: Vec::new(),
        texts: Vec::new(),
    };
    let (mut last, mut known_until): (Option<i64>, Option<i64>) = (None, None);
    for window in &windows {
        let values = &window.signal.values;
        // Those that an earlier window has are the same.
        let fresh = values.partition_point(|(time, _)| last.is_some_and(|last| *time <= last));
        let fresh = values.get(fresh..).unwrap_or_default();
        let first = values.first().map(|(time, _)| *time);
        if let Some(end) = known_until.filter(|end| first > Some(*end)) {
            track.forget(since(begin, end));
        }
        for values in fresh.chunks(fresh.len().div_ceil(most).max(1)) {
            track.add(values, &window.signal.upper, begin);
        }
        last = fresh.last().map(|(time, _)| *time).or(last);
        known_until = window.end.max(known_until);
    }
    if let Some(end) = known_until {
        track.forget(since(begin, end));
    }
    if track.greatest == track.least {
        track.greatest.clear();
    }
    Some(track)
}

impl<'r> Track<'r> {
    /// Adds successive values as one.
    fn add(&mut self, values: &'r [(i64, Value)], upper: &[(i64, Value)], begin: i64) {
        let Some((time, first)) = values.first() else { return };
        self.times.push(since(begin, *time));
        if self.kind == "text" {
            self.texts.push(first.as_str());
            return;
        }
        let greatest_at = |time: i64| {
            let after = upper.partition_point(|(own, _)| *own <= time);
            after.checked_sub(1).and_then(|at| upper.get(at)).and_then(|(_, value)| number(value))
        };
        let numbers = || values.iter().filter_map(|(_, value)| number(value));
        let highest = values.iter().filter_map(|(time, _)| greatest_at(*time)).chain(numbers());
        self.least.push(numbers().reduce(f64::min));
        self.greatest.push(numbers().next().and(highest.reduce(f64::max)));
    }

    /// The value is unknown after a time, in seconds, up to which the last one holds.
    fn forget(&mut self, time: f64) {
        if self.kind == "text" {
            self.times.push(time);
            self.texts.push(None);
            return;
        }
        // A line ends at the last point with a value.
        if self.times.last().is_some_and(|last| *last < time) {
            self.times.push(time);
            self.least.extend(self.least.last().copied());
            self.greatest.extend(self.greatest.last().copied());
        }
        self.times.push(time + 1e-9);
        self.least.push(None);
        self.greatest.push(None);
    }
}

/// Number of a value; 0 or 1 for a boolean.
fn number(value: &Value) -> Option<f64> {
    match value {
        Value::Bool(value) => Some(f64::from(u8::from(*value))),
        value => value.as_f64().filter(|number| number.is_finite()),
    }
}
