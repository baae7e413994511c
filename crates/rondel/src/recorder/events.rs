//! Violations as events: spans of time with the members of `foxglove.Event`.

use std::collections::HashMap;

use rondel_event::{Timestamp, Verdict};
use rondel_recording::RecordedSchema;
use rondel_runtime::Report;
use rondel_runtime::text::value_text;
use serde_json::{Value, json};

use super::channels::Channel;

/// The name of the topic of events.
pub const EVENTS: &str = "rondel/events";

/// Violations that last at the same time; the event of a further one ends with its first verdict.
const LASTING: usize = 10_000;

/// The violations that have not ended, by property and parameters.
#[derive(Debug, Default)]
pub struct Violations(HashMap<(u32, String), Violation>);

#[derive(Debug)]
struct Violation {
    start: Timestamp,
    /// Time of its last verdict.
    last: Timestamp,
    /// The event without its end.
    metadata: Vec<(&'static str, String)>,
}

impl Violations {
    /// Takes a verdict that came at this time. Returns the event of a violation that ends with it.
    pub fn take(&mut self, report: &Report<'_>, now: Timestamp) -> Option<Value> {
        let is_violated = report.verdict() == Verdict::Violated;
        if !is_violated && self.0.is_empty() {
            return None;
        }
        let (property, key) = (report.property(), key(report));
        if !is_violated {
            return self.0.remove(&key).map(|own| own.event(now, true));
        }
        if !report.changed() {
            // A violation that is not listed already has its event, in an ended file.
            if let Some(own) = self.0.get_mut(&key) {
                own.last = now;
            }
            return None;
        }
        let mut metadata = vec![("property", property.name.clone())];
        let others = [("severity", &property.severity), ("requirement", &property.requirement)];
        metadata.extend(others.iter().filter_map(|(key, value)| Some((*key, (*value).clone()?))));
        if !key.1.is_empty() {
            metadata.push(("parameters", key.1.clone()));
        }
        metadata.push(("verdict", report.verdict().as_str().to_owned()));
        let new = Violation { start: now, last: now, metadata };
        if self.0.len() >= LASTING && !self.0.contains_key(&key) {
            return Some(new.event(now, false));
        }
        // A violation without an emitted end lasts until its last verdict.
        self.0.insert(key, new).map(|before| before.event(before.last, false))
    }

    /// The event of a violation that has begun with a verdict, as far as it is known then: it ends where it begins.
    pub fn begun(&self, report: &Report<'_>) -> Option<Value> {
        let begins = report.verdict() == Verdict::Violated && report.changed();
        let own = self.0.get(&key(report)).filter(|_| begins)?;
        Some(own.event(own.start, false))
    }

    /// Gives properties other positions: `kept` has for each property its position before, if it keeps its state. Returns
    /// the events of violations of other properties, which end at a time.
    pub(super) fn rearrange(&mut self, kept: &[Option<u32>], now: Timestamp) -> Vec<Value> {
        let mut ended = Vec::new();
        for ((position, parameters), violation) in std::mem::take(&mut self.0) {
            match kept.iter().position(|origin| *origin == Some(position)) {
                Some(at) => _ = self.0.insert((at as u32, parameters), violation),
                None => ended.push(violation),
            }
        }
        ended.sort_by_key(|violation| violation.start);
        ended.iter().map(|violation| violation.event(now.max(violation.start), false)).collect()
    }

    /// Ends all events at a time. Returns them in the order in which they began.
    pub(super) fn end(&mut self, now: Timestamp) -> Vec<Value> {
        let mut all: Vec<Violation> = self.0.drain().map(|(_, violation)| violation).collect();
        all.sort_by_key(|violation| violation.start);
        all.iter().map(|violation| violation.event(now.max(violation.start), false)).collect()
    }
}

impl Violation {
    /// The event; `is_over` if a verdict has ended the violation.
    fn event(&self, end: Timestamp, is_over: bool) -> Value {
        let time = |time: Timestamp| {
            let nanos = time.as_nanos();
            json!({"sec": nanos.div_euclid(1_000_000_000), "nsec": nanos.rem_euclid(1_000_000_000)})
        };
        let entry = |(key, value): &(&str, String)| json!({"key": key, "value": value});
        let ended = ("ended", is_over.to_string());
        let metadata: Vec<Value> = self.metadata.iter().chain([&ended]).map(entry).collect();
        json!({"start_time": time(self.start), "end_time": time(end), "metadata": metadata})
    }
}

/// The position of the property of a verdict, and its parameters.
fn key(report: &Report<'_>) -> (u32, String) {
    (report.property().position, parameters(report))
}

/// The parameters of a verdict, such as `id=7`; empty without parameters.
pub fn parameters(report: &Report<'_>) -> String {
    let values = report.property().parameters.iter().zip(report.parameters());
    let parameters = values.map(|(name, value)| format!("{name}={}", value_text(value)));
    parameters.collect::<Vec<_>>().join(", ")
}

/// The topic of events.
pub(super) fn channel() -> Channel {
    Channel::own(EVENTS, event_schema())
}

/// The type of events.
pub fn event_schema() -> RecordedSchema {
    let time = json!({
        "type": "object",
        "title": "time",
        "properties": {"sec": {"type": "integer", "minimum": 0}, "nsec": {"type": "integer", "minimum": 0}},
    });
    let text = json!({"type": "string"});
    let entry = json!({"type": "object", "properties": {"key": text, "value": text}});
    let schema = json!({
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "foxglove.Event",
        "description": "A violation of a property, from the verdict that reports it to the one that ends it",
        "type": "object",
        "properties": {
            "start_time": time,
            "end_time": time,
            "metadata": {"type": "array", "items": entry},
        },
        "required": ["start_time", "end_time", "metadata"],
    });
    let (name, data) = ("foxglove.Event".to_owned(), schema.to_string().into_bytes());
    RecordedSchema { name, encoding: "jsonschema".to_owned(), data }
}
