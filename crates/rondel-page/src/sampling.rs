//! Rates of topics, and samples of the fields of properties while a viewer requests them.

use std::collections::{HashMap, VecDeque};

use rondel_runtime::Signal;
use rondel_runtime::text::beginning;
use serde_json::{Value as Json, json};

use crate::describe::{Field, PropertyText, value_at};
use crate::live::{Figures, Live};
use crate::thin::Band;

/// Time range over which rates are taken, in nanoseconds.
const RANGE: i64 = 3_000_000_000;
/// Minimum interval of figures for rates.
const STEP: i64 = 500_000_000;
/// Time for which a property is sampled after a viewer has requested for it.
const REQUESTED: i64 = 10_000_000_000;
/// Samples kept of a field: 10 minutes of 10 a second.
const SAMPLES: usize = 6_000;
/// Maximum number of properties that are sampled at once.
const PROPERTIES: usize = 50;
/// Maximum length of a text that is kept, in bytes.
const TEXT: usize = 64;

/// A field over time: of a checked recording, or sampled.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct StoredSignal {
    /// The name, with the parameters of its instance in brackets.
    pub name: String,
    /// The constants that it is compared with.
    pub thresholds: Vec<f64>,
    /// Values from their times on, in nanoseconds and in order; `None` while unknown.
    pub values: Vec<(i64, Option<rondel_event::Value>)>,
}

/// Counts of topics in the last seconds.
#[derive(Debug, Default)]
pub(crate) struct Rates {
    /// Times with messages, bytes and measured messages by topic.
    counts: VecDeque<(i64, HashMap<String, [u64; 3]>)>,
}

/// Rate of a topic.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Rate {
    pub(crate) messages: Option<f64>,
    pub(crate) bytes: Option<f64>,
}

impl Rates {
    /// Notes figures of a time of day, in nanoseconds.
    pub(crate) fn note(&mut self, figures: &Figures, now: i64) {
        let last = self.counts.back().map(|(time, _)| *time);
        if last.is_some_and(|last| now < last || now - last > 4 * RANGE) {
            // The clock was set, or no viewer watched meanwhile.
            self.counts.clear();
        } else if last.is_some_and(|last| now - last < STEP) {
            return;
        }
        let counts = figures
            .topics
            .iter()
            .map(|topic| (topic.name.clone(), [topic.messages, topic.bytes, topic.measured]));
        self.counts.push_back((now, counts.collect()));
        while self.counts.len() > 2 && self.counts.front().is_some_and(|(time, _)| now - time > RANGE) {
            self.counts.pop_front();
        }
    }

    /// The rate of a topic.
    pub(crate) fn of(&self, topic: &str) -> Rate {
        let ends = self.counts.front().zip(self.counts.back());
        let Some(((from, first), (until, last))) = ends.filter(|((from, _), (until, _))| from < until) else {
            return Rate::default();
        };
        let Some((first, last)) = first.get(topic).zip(last.get(topic)) else { return Rate::default() };
        let seconds = (until - from) as f64 / 1e9;
        let passed = |at: usize| last[at].saturating_sub(first[at]) as f64;
        let messages = passed(0) / seconds;
        // Bytes are counted while somebody watches, messages always.
        let bytes = (passed(2) > 0.0).then(|| messages * passed(1) / passed(2));
        Rate { messages: Some(messages), bytes: bytes.or((messages == 0.0).then_some(0.0)) }
    }
}

/// Value of a sample.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Sampled {
    Unknown,
    Number(f64),
    Truth(bool),
    Text(Box<str>),
}

impl Sampled {
    fn of(value: Option<&Json>) -> Sampled {
        match value {
            Some(Json::Number(number)) => number.as_f64().map_or(Sampled::Unknown, Sampled::Number),
            Some(Json::Bool(truth)) => Sampled::Truth(*truth),
            Some(Json::String(text)) => Sampled::Text(beginning(text, TEXT).into()),
            // The length of an array stands for it.
            Some(Json::Array(elements)) => Sampled::Number(elements.len() as f64),
            _ => Sampled::Unknown,
        }
    }

    fn stored(value: Option<&rondel_event::Value>) -> Sampled {
        use rondel_event::Value;
        match value {
            Some(Value::Bool(truth)) => Sampled::Truth(*truth),
            Some(Value::Int(i)) => Sampled::Number(*i as f64),
            Some(Value::Float(x)) => Sampled::Number(*x),
            Some(Value::Time(nanos) | Value::Duration(nanos)) => Sampled::Number(*nanos as f64 / 1e9),
            Some(Value::String(text)) => Sampled::Text(beginning(text, TEXT).into()),
            None => Sampled::Unknown,
        }
    }

    fn number(&self) -> Option<f64> {
        match self {
            Sampled::Number(number) => Some(*number),
            Sampled::Truth(truth) => Some(f64::from(u8::from(*truth))),
            Sampled::Unknown | Sampled::Text(_) => None,
        }
    }
}

/// Samples of a field, with the times of day of their messages.
type Kept = VecDeque<(i64, Sampled)>;

/// Samples of the fields of properties that viewers look at.
#[derive(Debug, Default)]
pub(crate) struct Samples {
    /// By property: the time of day at which a viewer requested last, and samples by field.
    requested: HashMap<String, (i64, HashMap<String, Kept>)>,
}

impl Samples {
    /// Notes that a viewer requests a property.
    pub(crate) fn ask(&mut self, property: &str, now: i64) {
        if let Some((requested, _)) = self.requested.get_mut(property) {
            *requested = now;
        } else if self.requested.len() < PROPERTIES {
            self.requested.insert(property.to_owned(), (now, HashMap::new()));
        }
    }

    /// Whether a viewer looks at a property.
    pub(crate) fn is_wanted(&self) -> bool {
        !self.requested.is_empty()
    }

    /// Samples the fields of all properties that viewers look at, and forgets the others.
    pub(crate) fn sample<'d>(
        &mut self,
        property: impl Fn(&str) -> Option<&'d PropertyText>,
        live: &dyn Live,
        now: i64,
    ) {
        // A clock that was set back leaves no property behind.
        self.requested.retain(|name, (requested, _)| {
            now.abs_diff(*requested) < REQUESTED as u64 && property(name).is_some()
        });
        let mut messages = HashMap::new();
        for (name, (_, samples)) in &mut self.requested {
            for field in property(name).into_iter().flat_map(|property| &property.fields) {
                let message =
                    messages.entry(field.topic.clone()).or_insert_with(|| live.message(&field.topic));
                let Some(message) = message else { continue };
                let value = Sampled::of(
                    message.value.as_ref().ok().and_then(|message| value_at(message, &field.path)),
                );
                let kept = samples.entry(field.name.clone()).or_default();
                // The message is the one of the sample before.
                if kept.back().is_some_and(|(time, _)| *time >= message.received) {
                    continue;
                }
                kept.push_back((message.received, value));
                if kept.len() > SAMPLES {
                    kept.pop_front();
                }
            }
        }
    }

    /// The signals of a property.
    pub(crate) fn signals(&self, property: &PropertyText, from: i64, until: i64, width: usize) -> Vec<Json> {
        let samples = self.requested.get(property.name()).map(|(_, samples)| samples);
        let signal = |field: &Field| {
            let kept = samples.and_then(|samples| samples.get(&field.name));
            let values: Vec<(i64, Sampled)> = kept.into_iter().flatten().cloned().collect();
            signal(&field.name, &field.thresholds, &values, from, until, width)
        };
        property.fields.iter().map(signal).collect()
    }
}

impl StoredSignal {
    /// The signal in a time range in nanoseconds as the API describes it, thinned to a width.
    pub fn json(&self, from: i64, until: i64, width: usize) -> Json {
        let values = self.values.iter().map(|(time, value)| (*time, Sampled::stored(value.as_ref())));
        signal(&self.name, &self.thresholds, &values.collect::<Vec<_>>(), from, until, width)
    }
}

impl From<Signal> for StoredSignal {
    fn from(signal: Signal) -> StoredSignal {
        let Signal { name, thresholds, values, .. } = signal;
        let values = values.into_iter().map(|(time, value)| (time.as_nanos(), value)).collect();
        StoredSignal { name, thresholds, values }
    }
}

/// A signal as the API describes it.
fn signal(
    name: &str,
    thresholds: &[f64],
    values: &[(i64, Sampled)],
    from: i64,
    until: i64,
    width: usize,
) -> Json {
    let known = values.iter().find(|(_, value)| *value != Sampled::Unknown).map(|(_, value)| value);
    if let Some(Sampled::Text(_)) = known {
        let (times, texts) = texts(values, from, until, width);
        return json!({
            "name": name, "kind": "text", "thresholds": thresholds, "times": times, "least": [], "greatest": [],
            "texts": texts,
        });
    }
    let kind = if let Some(Sampled::Truth(_)) = known { "boolean" } else { "number" };
    let points: Vec<(i64, Option<f64>)> =
        values.iter().map(|(time, value)| (*time, value.number())).collect();
    let Band { times, least, greatest } = Band::of(&points, from, until, width);
    json!({
        "name": name, "kind": kind, "thresholds": thresholds, "times": times, "least": least, "greatest": greatest,
        "texts": [],
    })
}

/// The changes of a text, the latest ones if there are more than the width.
fn texts(values: &[(i64, Sampled)], from: i64, until: i64, width: usize) -> (Vec<f64>, Vec<Option<String>>) {
    let first = values.partition_point(|(time, _)| *time <= from).saturating_sub(1);
    let end = values.partition_point(|(time, _)| *time <= until);
    let mut changes: Vec<(i64, Option<&str>)> = Vec::new();
    for (time, value) in values.get(first..end).unwrap_or_default() {
        let text = if let Sampled::Text(text) = value { Some(&**text) } else { None };
        if changes.last().is_none_or(|(_, last)| *last != text) {
            changes.push(((*time).max(from), text));
        }
    }
    let shown = changes.split_off(changes.len().saturating_sub(width));
    shown.into_iter().map(|(time, text)| (time as f64 / 1e9, text.map(str::to_owned))).unzip()
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use crate::describe::Place;
    use crate::live::{Message, TopicFigures};

    const S: i64 = 1_000_000_000;

    #[test]
    fn rates_are_those_of_the_last_seconds() {
        let figures = |messages: u64, bytes: u64| Figures {
            topics: vec![TopicFigures {
                name: "t".into(),
                messages,
                bytes,
                measured: bytes / 10,
                ..Default::default()
            }],
            ..Figures::default()
        };
        let mut rates = Rates::default();
        assert_eq!(rates.of("t"), Rate::default());
        for second in 0..10 {
            rates.note(&figures(100 * second, 1000 * second), second as i64 * S);
        }
        assert_eq!(rates.of("t"), Rate { messages: Some(100.0), bytes: Some(1000.0) });
        assert_eq!(rates.of("other"), Rate::default());
        // The clock is set back by a day.
        rates.note(&figures(1000, 10_000), -86_400 * S);
        assert_eq!(rates.of("t"), Rate::default());
        rates.note(&figures(1000, 10_000), -86_399 * S);
        assert_eq!(rates.of("t"), Rate { messages: Some(0.0), bytes: Some(0.0) });
    }

    struct Counting(std::sync::atomic::AtomicI64);

    impl Live for Counting {
        fn figures(&self) -> Option<Figures> {
            None
        }

        fn message(&self, topic: &str) -> Option<Message> {
            let time = self.0.load(std::sync::atomic::Ordering::Relaxed);
            let value = Ok(json!({"x": time / S, "s": "ä".repeat(1000)}));
            (topic == "t").then_some(Message { received: time, bytes: 1, value })
        }

        fn watch(&self, _: bool) {}
    }

    #[test]
    fn fields_are_sampled_while_a_viewer_requests_them() {
        let field = |name: &str| Field {
            name: format!("t.{name}"),
            topic: "t".into(),
            path: rondel_event::Path::keys([name]),
            thresholds: vec![3.0],
        };
        let place = Place { name: "p".into(), ..Place::default() };
        let property =
            PropertyText { place, fields: vec![field("x"), field("s")], ..PropertyText::default() };
        let (mut samples, live) = (Samples::default(), Counting(0.into()));
        let find = |name: &str| (name == "p").then_some(&property);
        samples.sample(find, &live, 0);
        assert!(!samples.is_wanted());
        samples.ask("p", 0);
        samples.ask("removed", 0);
        for second in 0..5 {
            live.0.store(second * S, std::sync::atomic::Ordering::Relaxed);
            samples.sample(find, &live, second * S);
            samples.sample(find, &live, second * S);
        }
        let signals = samples.signals(&property, 0, 10 * S, 100);
        assert_eq!(signals[0]["times"], json!([0.0, 1.0, 2.0, 3.0, 4.0]), "no message is sampled twice");
        assert_eq!(signals[0]["kind"], "number");
        assert_eq!(signals[1]["texts"], json!(["ä".repeat(TEXT / 2)]));
        samples.sample(find, &live, 20 * S);
        assert!(!samples.is_wanted(), "no viewer has requested it for 10 seconds");
    }

    #[test]
    fn memory_is_bounded() {
        let mut samples = Samples::default();
        for i in 0..1000 {
            samples.ask(&format!("p{i}"), 0);
        }
        assert_eq!(samples.requested.len(), PROPERTIES);
    }
}
