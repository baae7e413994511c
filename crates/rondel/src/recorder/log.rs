//! Verdicts as log messages: the members of `foxglove.Log` and of an event.

use std::fmt::Write as _;

use rondel_event::{Timestamp, Verdict};
use rondel_recording::RecordedSchema;
use rondel_runtime::{Report, Severity};
use serde_json::{Value, json};

use super::channels::Channel;

/// The name of the topic of verdicts.
pub const VERDICTS: &str = "rondel/verdicts";

/// Places where the properties are defined.
#[derive(Clone, Debug, Default)]
pub struct Origin {
    /// File and line of each property; 0 for an unknown line.
    pub places: Vec<(String, u32)>,
}

/// Appends a verdict with this time and message as JSON. `verdict` is the verdict itself, as JSON.
pub fn write(
    report: &Report<'_>,
    time: Timestamp,
    message: &str,
    origin: &Origin,
    verdict: &[u8],
    out: &mut Vec<u8>,
) {
    let (nanos, property) = (time.as_nanos(), report.property());
    let severity = Severity::of(property.severity.as_deref());
    let level = match report.verdict() {
        Verdict::Satisfied => 2,
        Verdict::Inconclusive => 3,
        Verdict::Violated if severity < Severity::Error => 3,
        Verdict::Violated if severity == Severity::Critical => 5,
        Verdict::Violated => 4,
    };
    let quoted = |text: &str| Value::from(text).to_string();
    let place = origin.places.get(property.position as usize);
    let (file, line) = place.map_or(("", 0), |(file, line)| (file.as_str(), *line));
    let (word, name) = (report.verdict().as_str(), &property.name);
    let mut entries = format!("{{\"key\":\"property\",\"value\":{}}}", quoted(name));
    // Writing to a text does not fail.
    let _ = write!(entries, ",{{\"key\":\"verdict\",\"value\":\"{word}\"}}");
    let others = [("severity", &property.severity), ("requirement", &property.requirement)];
    for (key, value) in others.iter().filter_map(|(key, value)| Some((key, value.as_ref()?))) {
        let _ = write!(entries, ",{{\"key\":\"{key}\",\"value\":{}}}", quoted(value));
    }
    let head = format!(
        "{{\"timestamp\":{{\"sec\":{},\"nsec\":{}}},\"level\":{level},\"message\":{},\"name\":{},\"file\":{},\
         \"line\":{line},\"duration\":{{\"sec\":0,\"nsec\":0}},\"metadata\":[{entries}],\"verdict\":",
        nanos.div_euclid(1_000_000_000),
        nanos.rem_euclid(1_000_000_000),
        quoted(message),
        quoted(name),
        quoted(file),
    );
    out.extend_from_slice(head.as_bytes());
    out.extend_from_slice(verdict);
    out.push(b'}');
}

/// The topic of verdicts.
pub(super) fn channel() -> Channel {
    Channel::own(VERDICTS, verdict_schema())
}

/// The type of verdicts.
pub fn verdict_schema() -> RecordedSchema {
    let time =
        json!({"type": "object", "properties": {"sec": {"type": "integer"}, "nsec": {"type": "integer"}}});
    let text = json!({"type": "string"});
    let entry = json!({"type": "object", "properties": {"key": text, "value": text}});
    let schema = json!({
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "foxglove.Log",
        "description": "A verdict, as a log message with the members of an event",
        "type": "object",
        "properties": {
            "timestamp": time,
            "level": {"type": "integer"},
            "message": text,
            "name": text,
            "file": text,
            "line": {"type": "integer"},
            "duration": time,
            "metadata": {"type": "array", "items": entry},
            "verdict": {"type": "object"},
        },
        "required": ["timestamp", "level", "message", "name", "file", "line"],
    });
    RecordedSchema {
        name: "foxglove.Log".to_owned(),
        encoding: "jsonschema".to_owned(),
        data: schema.to_string().into_bytes(),
    }
}
