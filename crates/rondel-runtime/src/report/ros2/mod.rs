//! Verdicts as messages of ROS 2, in CDR: `rondel_msgs/msg/Verdict`, and `diagnostic_msgs/msg/DiagnosticArray`.
//!
//! Nothing here does I/O: messages are written to buffers.

mod cdr;
mod diagnostics;

use rondel_event::{Timestamp, Value, Verdict};

use crate::report::Report;
use crate::text::value_text;
use cdr::CdrWriter;
pub use diagnostics::{Diagnostics, MOST_STATUSES, PERIOD, Part};

/// The type of a message with a verdict.
pub const VERDICT: &str = "rondel_msgs/msg/Verdict";
/// The type of a message with diagnostics.
pub const DIAGNOSTICS: &str = "diagnostic_msgs/msg/DiagnosticArray";

/// Writes a report as a message of the type [`VERDICT`]; `out` is cleared first.
pub fn write_verdict(report: &Report<'_>, out: &mut Vec<u8>) {
    let mut message = CdrWriter::new(out);
    let property = report.property();
    message.time(report.time());
    message.time(report.about().unwrap_or(report.time()));
    message.string(&property.name);
    message.u32(report.parameters().len() as u32);
    for (name, value) in property.parameters.iter().zip(report.parameters()) {
        message.string(name);
        message.string(&plain(value));
    }
    message.u8(match report.verdict() {
        Verdict::Satisfied => 0,
        Verdict::Violated => 1,
        Verdict::Inconclusive => 2,
    });
    message.i64(report.step().and_then(|step| i64::try_from(step).ok()).unwrap_or(-1));
    message.string(property.severity.as_deref().unwrap_or_default());
    message.string(property.requirement.as_deref().unwrap_or_default());
    message.u32(report.values().count() as u32);
    for (name, value) in report.values() {
        message.string(name);
        message.string(&plain(value));
    }
    message.f64(report.robustness().unwrap_or(f64::NAN));
    message.f64(report.latency().map_or(f64::NAN, |nanos| nanos as f64 / 1e9));
    message.string(report.missing().unwrap_or_default());
    message.string(&evidence(report));
    let mut id = Vec::new();
    report.write_id(&mut id);
    message.string(&String::from_utf8_lossy(&id));
}

/// Returns the explanation in JSON; empty without one.
fn evidence(report: &Report<'_>) -> String {
    let mut json = Vec::new();
    if let Some(explanation) = report.explanation() {
        explanation.json(&mut json);
    }
    String::from_utf8(json).unwrap_or_default()
}

/// Returns a value as text, strings without quotes.
fn plain(value: &Value) -> String {
    match value {
        Value::String(text) => text.to_string(),
        other => value_text(other),
    }
}

/// Returns seconds and nanoseconds of a time, the nearest that a message can carry.
fn parts(time: Timestamp) -> (i32, u32) {
    let (seconds, nanos) =
        (time.as_nanos().div_euclid(1_000_000_000), time.as_nanos().rem_euclid(1_000_000_000));
    match i32::try_from(seconds) {
        Ok(seconds) => (seconds, nanos as u32),
        Err(_) if seconds < 0 => (i32::MIN, 0),
        Err(_) => (i32::MAX, 999_999_999),
    }
}
