//! Verdicts as they are written, the same everywhere: on standard output and on the network.

use std::io::{self, Write};

use rondel_engine::Report;
use rondel_event::{Timestamp, Value, Verdict};

/// Writes the verdicts of one property.
///
/// One JSON object, always in this form: `{"property":"p","time":1.5,"step":3,"verdict":"violated"}`,
/// `time` in seconds, `step` from 0. With several traces a member `trace` comes first. A verdict that time
/// brings has no `step`; one about another time than that at which it became certain has `about`.
#[derive(Clone, Debug)]
pub struct VerdictWriter {
    name: String,
    /// What stands before the time: the same for every verdict.
    prefix: Vec<u8>,
}

impl VerdictWriter {
    /// For the property of this name; `trace` names the trace where there are several.
    pub fn new(property: &str, trace: Option<&str>) -> VerdictWriter {
        let mut prefix = b"{".to_vec();
        for (key, value) in [("trace", trace), ("property", Some(property))] {
            if let Some(value) = value {
                // A string always has a JSON form.
                let quoted = serde_json::to_string(value).unwrap_or_default();
                prefix.extend_from_slice(format!("\"{key}\":{quoted},").as_bytes());
            }
        }
        prefix.extend_from_slice(b"\"time\":");
        VerdictWriter { name: property.to_owned(), prefix }
    }

    /// Appends a line in this format.
    pub fn write(&self, format: Format, report: &Report, colour: bool, out: &mut Vec<u8>) {
        match format {
            Format::Json => {
                self.json(report, out);
                out.push(b'\n');
            }
            Format::Text => self.text(report, colour, out),
        }
    }

    /// Appends the JSON object, without a line break.
    pub fn json(&self, report: &Report, out: &mut Vec<u8>) {
        out.extend_from_slice(&self.prefix);
        write_seconds(report.time, out);
        if let Some(about) = report.about {
            out.extend_from_slice(b",\"about\":");
            write_seconds(about, out);
        }
        if report.row.is_some() {
            out.extend_from_slice(b",\"step\":");
            out.extend_from_slice(itoa::Buffer::new().format(report.step).as_bytes());
        }
        out.extend_from_slice(match report.verdict {
            Verdict::Satisfied => b",\"verdict\":\"satisfied\"}",
            Verdict::Violated => b",\"verdict\":\"violated\"}",
            Verdict::Inconclusive => b",\"verdict\":\"inconclusive\"}",
        });
    }

    /// Appends a line for people, with its line break.
    fn text(&self, report: &Report, colour: bool, out: &mut Vec<u8>) {
        let Report { verdict, time, .. } = *report;
        let (on, off) = if colour { (colour_of(verdict), "\x1b[0m") } else { ("", "") };
        // Writing to a vector does not fail.
        let _ = write!(out, "{on}{:<12}{off}  {:<32} ", verdict.as_str(), self.name);
        let _ = match report.row {
            Some(_) => write!(out, "step {:>9}   ", report.step),
            None => write!(out, "{:17}", ""),
        };
        let _ = write!(out, "time {}", Seconds(time));
        if let Some(about) = report.about {
            let _ = write!(out, ", about {}", Seconds(about));
        }
        out.push(b'\n');
    }
}

/// The values of the keys of a property in brackets, as they are written in a specification; nothing
/// without keys.
pub fn key_text(keys: &[Value]) -> String {
    if keys.is_empty() {
        return String::new();
    }
    let text = |value: &Value| match value {
        Value::Bool(b) => b.to_string(),
        Value::Int(i) => i.to_string(),
        Value::Float(x) => x.to_string(),
        Value::Time(ns) | Value::Duration(ns) => Seconds(Timestamp::from_nanos(*ns)).to_string(),
        // A string always has a JSON form.
        Value::String(text) => serde_json::to_string(text).unwrap_or_default(),
    };
    format!("[{}]", keys.iter().map(text).collect::<Vec<_>>().join(", "))
}

/// The colour of a verdict on a terminal: green, red, yellow.
pub fn colour_of(verdict: Verdict) -> &'static str {
    match verdict {
        Verdict::Satisfied => "\x1b[32m",
        Verdict::Violated => "\x1b[1;31m",
        Verdict::Inconclusive => "\x1b[33m",
    }
}

/// A time for people: seconds.
struct Seconds(Timestamp);

impl std::fmt::Display for Seconds {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} s", self.0)
    }
}

/// The time in seconds, exactly.
fn write_seconds(time: Timestamp, out: &mut Vec<u8>) {
    let ns = time.as_nanos();
    if ns % 1_000_000_000 == 0 {
        out.extend_from_slice(itoa::Buffer::new().format(ns / 1_000_000_000).as_bytes());
    } else {
        let _ = write!(out, "{time}");
    }
}

/// How verdicts are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum Format {
    /// A line for people, coloured on a terminal
    Text,
    /// A JSON object a line
    Json,
}

/// Which verdicts are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum Emit {
    /// When a property's verdict differs from the one before, and the first
    Change,
    /// One for every event and property
    Every,
    /// When a property becomes violated
    Violations,
}

impl Emit {
    /// Whether this report is written.
    #[inline]
    pub fn wants(self, report: &Report) -> bool {
        match self {
            Emit::Every => true,
            Emit::Change => report.changed,
            Emit::Violations => report.changed && report.verdict == Verdict::Violated,
        }
    }
}

/// Standard output, which stops complaining after the first failure.
pub struct Output<W: Write> {
    out: W,
    failed: Option<io::Error>,
}

impl<W: Write> Output<W> {
    /// Writes to `out`.
    pub fn new(out: W) -> Output<W> {
        Output { out, failed: None }
    }

    /// Writes, unless writing failed before.
    pub fn write(&mut self, bytes: &[u8]) {
        if self.failed.is_none()
            && let Err(error) = self.out.write_all(bytes)
        {
            self.failed = Some(error);
        }
    }

    /// Writes out what is buffered; the first failure there was.
    ///
    /// # Errors
    /// What made writing fail, the disk being full for example.
    pub fn finish(mut self) -> io::Result<()> {
        match self.failed.take() {
            Some(error) => Err(error),
            None => self.out.flush(),
        }
    }

    /// Writes out what is buffered.
    pub fn flush(&mut self) {
        if self.failed.is_none()
            && let Err(error) = self.out.flush()
        {
            self.failed = Some(error);
        }
    }

    /// The first failure, if there was one.
    pub fn failure(&self) -> Option<&io::Error> {
        self.failed.as_ref()
    }

    /// Whether the reader at the other end has gone away, so that there is no use in going on.
    pub fn is_closed(&self) -> bool {
        self.failed.as_ref().is_some_and(|e| e.kind() == io::ErrorKind::BrokenPipe)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_json_form_is_fixed() {
        let mut out = Vec::new();
        let writer = VerdictWriter::new("a \"b\"", Some("x.jsonl"));
        let report = |verdict, step, ns| Report::at_event(verdict, step, Timestamp::from_nanos(ns));
        writer.json(&report(Verdict::Violated, 3, -1_500_000_000), &mut out);
        let plain = VerdictWriter::new("p", None);
        plain.json(&report(Verdict::Satisfied, 0, 12_000_000_000), &mut out);
        let mut alone = report(Verdict::Violated, 7, 2_000_000_000);
        (alone.row, alone.about) = (None, Some(Timestamp::ZERO));
        plain.json(&alone, &mut out);
        assert_eq!(
            String::from_utf8(out).unwrap(),
            r#"{"trace":"x.jsonl","property":"a \"b\"","time":-1.5,"step":3,"verdict":"violated"}"#
                .to_owned()
                + r#"{"property":"p","time":12,"step":0,"verdict":"satisfied"}"#
                + r#"{"property":"p","time":2,"about":0,"verdict":"violated"}"#
        );
    }
}
