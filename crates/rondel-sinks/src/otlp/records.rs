//! Log records of verdicts.

use std::collections::HashMap;

use rondel_runtime::Severity;
use serde::Serialize;

use super::Origin;
use super::json::{AnyValue, KeyValue, Resource, SCOPE, Scope, attribute, check_resource, resource, text};
use crate::entry::{Begin, Truth, VerdictEntry, id_text};

/// Attributes that the records of a run have in common.
pub(super) struct Records {
    resource: Vec<(String, String)>,
    origin: Origin,
    /// Severity of each property that has one.
    severities: HashMap<String, String>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Request<'a> {
    resource_logs: [ResourceLogs<'a>; 1],
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct ResourceLogs<'a> {
    resource: Resource<'a>,
    scope_logs: [ScopeLogs<'a>; 1],
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct ScopeLogs<'a> {
    scope: Scope,
    log_records: Vec<LogRecord<'a>>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct LogRecord<'a> {
    #[serde(serialize_with = "text")]
    time_unix_nano: u64,
    #[serde(serialize_with = "text")]
    observed_time_unix_nano: u64,
    severity_number: u32,
    severity_text: &'a str,
    body: Body,
    attributes: Vec<KeyValue<'a>>,
    event_name: &'static str,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Body {
    string_value: String,
}

impl Records {
    pub(super) fn new(resource: Vec<(String, String)>) -> Result<Records, String> {
        check_resource(&resource)?;
        let (origin, severities) = Default::default();
        Ok(Records { resource, origin, severities })
    }

    /// Begins a run.
    pub(super) fn begin(&mut self, begin: &Begin<'_>) {
        self.origin = Origin {
            version: begin.version.to_owned(),
            instance: begin.run.to_string(),
            host: begin.host.to_owned(),
            series: begin.series.to_owned(),
        };
        let with_severity = begin.properties.iter().filter(|property| !property.severity.is_empty());
        self.severities =
            with_severity.map(|property| (property.name.to_owned(), property.severity.to_owned())).collect();
    }

    /// Returns the body of a request with these verdicts.
    pub(super) fn json(&self, verdicts: &[&VerdictEntry<'_>]) -> Vec<u8> {
        let ids: Vec<String> =
            verdicts.iter().map(|verdict| verdict.id.map(id_text).unwrap_or_default()).collect();
        let log_records = verdicts.iter().zip(&ids).map(|(verdict, id)| self.record(verdict, id)).collect();
        let scope_logs = [ScopeLogs { scope: SCOPE, log_records }];
        let resource = resource(&self.origin, &self.resource);
        let request = Request { resource_logs: [ResourceLogs { resource, scope_logs }] };
        // Texts and numbers have an encoding.
        serde_json::to_vec(&request).unwrap_or_default()
    }

    fn record<'a>(&'a self, verdict: &'a VerdictEntry<'_>, id: &'a str) -> LogRecord<'a> {
        let severity = self.severities.get(verdict.property).map_or("", String::as_str);
        let name = verdict.verdict.as_str();
        let (severity_number, severity_text) = level(verdict.verdict, severity);
        let nanos = |time: i64| u64::try_from(time).unwrap_or(0);
        LogRecord {
            // The protocol has no times before 1970: 0 means that the time is unknown.
            time_unix_nano: nanos(verdict.at()),
            observed_time_unix_nano: nanos(verdict.reported),
            severity_number,
            severity_text,
            body: Body { string_value: format!("{}{} is {name}", verdict.property, verdict.parameters) },
            attributes: attributes(
                verdict,
                &[("rondel.verdict", name), ("rondel.id", id), ("rondel.severity", severity)],
            ),
            event_name: "rondel.verdict",
        }
    }
}

fn attributes<'a>(verdict: &'a VerdictEntry<'_>, known: &[(&'a str, &'a str); 3]) -> Vec<KeyValue<'a>> {
    let VerdictEntry { property, parameters, values, explanation, missing, because_of, .. } = verdict;
    let texts = [
        ("rondel.property", *property),
        ("rondel.parameters", *parameters),
        ("rondel.values", *values),
        ("rondel.explanation", *explanation),
        ("rondel.missing", *missing),
        ("rondel.because_of", *because_of),
    ];
    let texts = known.iter().copied().chain(texts).filter(|(_, value)| !value.is_empty());
    let mut attributes: Vec<KeyValue<'_>> = texts.map(|(name, value)| attribute(name, value)).collect();
    let mut push = |key, value| attributes.push(KeyValue { key, value });
    push("rondel.time", AnyValue::Int(verdict.time));
    push("rondel.lap", AnyValue::Int(verdict.lap.into()));
    if let Some(about) = verdict.about {
        push("rondel.about", AnyValue::Int(about));
    }
    if verdict.is_after {
        push("rondel.is_after", AnyValue::Bool(true));
    }
    if let Some(step) = verdict.step {
        push("rondel.step", AnyValue::Int(i64::try_from(step).unwrap_or(i64::MAX)));
    }
    if let Some(robustness) = verdict.robustness {
        push("rondel.robustness", AnyValue::Double(robustness));
    }
    if let Some(latency) = verdict.latency {
        push("rondel.latency", AnyValue::Int(latency));
    }
    attributes
}

/// Number and name of the severity of a record.
fn level(verdict: Truth, severity: &str) -> (u32, &'static str) {
    match verdict {
        Truth::Satisfied => (9, "INFO"),
        Truth::Inconclusive => (13, "WARN"),
        Truth::Violated => match Severity::of(Some(severity)) {
            Severity::Critical => (21, "FATAL"),
            Severity::Error => (17, "ERROR"),
            Severity::Warning => (13, "WARN"),
            Severity::Info => (9, "INFO"),
        },
    }
}
