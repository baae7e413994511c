//! Results of a check as an MCAP file, to be opened beside the recording: verdicts as a log, violations as events, and
//! explanations.

use std::fs;
use std::io;
use std::path::Path;

use rondel_recording::{McapWriter, MessageHead, RecordedSchema, WriterOptions};
use rondel_report::{Claim, Judged, Outcome, Recording, Results, Violation};
use rondel_runtime::Severity;
use serde_json::{Value, json};

use crate::recorder::{self, EVENTS, VERDICTS};

/// The name of the topic of explanations.
const EXPLANATIONS: &str = "rondel/explanations";

/// A message before it is written.
struct Message {
    /// The channel, by its position among the topics.
    topic: usize,
    time: i64,
    json: Value,
}

/// Writes the results of all recordings into one file, in the place of one with this name.
///
/// # Errors
/// The file cannot be written; one that was there before stays.
pub fn write(results: &Results, file: &Path) -> io::Result<()> {
    let mut name = file.file_name().unwrap_or_default().to_owned();
    name.push(".part");
    let part = file.with_file_name(name);
    // A killed run may have left it.
    let _ = fs::remove_file(&part);
    let written = write_new(results, &part).and_then(|()| fs::rename(&part, file));
    if written.is_err() {
        let _ = fs::remove_file(&part);
    }
    written
}

fn write_new(results: &Results, file: &Path) -> io::Result<()> {
    let options =
        WriterOptions { library: format!("rondel {}", results.version), ..WriterOptions::default() };
    let mut writer = McapWriter::create(file, &options)?;
    let topics = [
        (VERDICTS, recorder::verdict_schema()),
        (EVENTS, recorder::event_schema()),
        (EXPLANATIONS, explanation_schema()),
    ];
    let too_many = || io::Error::other("too many channels");
    let mut channels = Vec::new();
    for (name, schema) in topics {
        let schema = writer.schema(&schema).ok_or_else(too_many)?;
        channels.push(writer.channel(name, "json", schema, &[]).ok_or_else(too_many)?);
    }
    let mut messages: Vec<Message> = Vec::new();
    for recording in &results.recordings {
        for (claim, judged) in results.judged(recording) {
            verdicts(results, recording, claim, judged, &mut messages);
            let explain = |violation| explanation(recording, claim, judged, violation);
            messages.extend(judged.violations.iter().map(explain));
        }
    }
    messages.sort_by_key(|message| message.time);
    let mut sequences = vec![0_u32; channels.len()];
    for Message { topic, time, json } in messages {
        // Times before 1970 have no place in the format.
        let time = u64::try_from(time).unwrap_or(0);
        let sequence = sequences[topic];
        sequences[topic] = sequence.wrapping_add(1);
        let head = MessageHead { channel: channels[topic], sequence, log_time: time, publish_time: time };
        writer.message(&head, json.to_string().as_bytes())?;
    }
    for recording in &results.recordings {
        writer.metadata("rondel.recording", &facts(recording))?;
    }
    writer.finish()
}

/// Returns the metadata of a recording.
fn facts(recording: &Recording) -> Vec<(String, String)> {
    let mut facts = vec![
        ("name".to_owned(), recording.name.clone()),
        ("messages".to_owned(), recording.events.to_string()),
    ];
    facts.extend(recording.problem.iter().map(|problem| ("problem".to_owned(), problem.clone())));
    facts.extend(
        recording.remarks.iter().enumerate().map(|(i, remark)| (format!("remark {i}"), remark.clone())),
    );
    facts
}

/// Adds the verdicts of a property over time, and the spans in which it is violated.
fn verdicts(
    results: &Results,
    recording: &Recording,
    claim: &Claim,
    judged: &Judged,
    messages: &mut Vec<Message>,
) {
    let file = claim.file.as_deref().unwrap_or(&results.specification);
    let line = claim.place.map_or(0, |place| place.line);
    let end = recording.end.unwrap_or(0);
    let ends = judged.changes.iter().skip(1).map(|change| Some(change.time_ns)).chain([None]);
    for (change, until) in judged.changes.iter().zip(ends) {
        let (level, outcome) = match change.verdict {
            Outcome::Violated if is_warning(claim) => (3, "violated"),
            Outcome::Violated => (4, "violated"),
            Outcome::Inconclusive | Outcome::Vacuous => (3, change.verdict.as_str()),
            Outcome::Satisfied => (2, "satisfied"),
        };
        let json = json!({
            "timestamp": stamp(change.time_ns),
            "level": level,
            "message": format!("{}: {outcome}", claim.name),
            "name": claim.name,
            "file": file,
            "line": line,
            "metadata": metadata(recording, claim),
            "verdict": {"property": claim.name, "verdict": outcome, "time": change.time_ns as f64 / 1e9},
        });
        messages.push(Message { topic: 0, time: change.time_ns, json });
        if change.verdict == Outcome::Violated {
            let mut metadata = metadata(recording, claim);
            metadata.push(entry("verdict", outcome));
            metadata.push(entry("ended", &until.is_some().to_string()));
            let json = json!({
                "start_time": stamp(change.time_ns),
                "end_time": stamp(until.unwrap_or(end).max(change.time_ns)),
                "metadata": metadata,
            });
            messages.push(Message { topic: 1, time: change.time_ns, json });
        }
    }
}

fn is_warning(claim: &Claim) -> bool {
    Severity::of(claim.severity.as_deref()) < Severity::Error
}

fn metadata(recording: &Recording, claim: &Claim) -> Vec<Value> {
    let mut metadata = vec![entry("property", &claim.name), entry("recording", &recording.name)];
    metadata.extend(claim.severity.iter().map(|severity| entry("severity", severity)));
    metadata.extend(claim.requirements.iter().map(|requirement| entry("requirement", requirement)));
    metadata
}

fn entry(key: &str, value: &str) -> Value {
    json!({"key": key, "value": value})
}

fn stamp(nanos: i64) -> Value {
    json!({"sec": nanos.div_euclid(1_000_000_000), "nsec": nanos.rem_euclid(1_000_000_000)})
}

/// Returns the message with the cause of a violation.
fn explanation(recording: &Recording, claim: &Claim, judged: &Judged, violation: &Violation) -> Message {
    let points = violation.evidence.iter().map(|point| {
        let value = |(name, value): &(String, Option<String>)| json!({"name": name, "value": value});
        json!({
            "time": stamp(point.time_ns),
            "after": point.after,
            "topic": point.topic,
            "values": point.values.iter().map(value).collect::<Vec<_>>(),
        })
    });
    let value = |(name, value): &(String, String)| json!({"name": name, "value": value});
    let json = json!({
        "timestamp": stamp(violation.time_ns),
        "certain": stamp(violation.certain_ns),
        "property": claim.name,
        "parameters": violation.parameters,
        "message": violation.sentence(&claim.name, recording),
        "recording": recording.name,
        "step": violation.step,
        "violations": judged.count,
        "variables": violation.values.iter().map(value).collect::<Vec<_>>(),
        "points": points.collect::<Vec<_>>(),
    });
    Message { topic: 2, time: violation.time_ns, json }
}

/// The type of explanations.
fn explanation_schema() -> RecordedSchema {
    let time = json!({
        "type": "object",
        "title": "time",
        "properties": {"sec": {"type": "integer"}, "nsec": {"type": "integer", "minimum": 0}},
        "required": ["sec", "nsec"],
    });
    let text = json!({"type": "string"});
    let known = json!({"type": ["string", "null"]});
    let list = |items: Value| json!({"type": "array", "items": items});
    let named = |value: &Value| json!({"type": "object", "properties": {"name": text, "value": value}, "required": ["name", "value"]});
    let point = json!({
        "type": "object",
        "properties": {
            "time": time, "after": {"type": "boolean"}, "topic": known, "values": list(named(&known)),
        },
        "required": ["time", "after", "topic", "values"],
    });
    let schema = json!({
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "rondel.Explanation",
        "description": "The time points that caused a violation, with the values of fields, terms and parts",
        "type": "object",
        "properties": {
            "timestamp": time,
            "certain": time,
            "property": text,
            "parameters": text,
            "message": text,
            "recording": text,
            "step": {"type": ["integer", "null"]},
            "violations": {"type": "integer"},
            "variables": list(named(&text)),
            "points": list(point),
        },
        "required": [
            "timestamp", "certain", "property", "parameters", "message", "recording", "step", "violations",
            "variables", "points",
        ],
    });
    RecordedSchema {
        name: "rondel.Explanation".to_owned(),
        encoding: "jsonschema".to_owned(),
        data: schema.to_string().into_bytes(),
    }
}
