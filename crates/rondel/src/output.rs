//! Verdicts as they are written, the same everywhere: on standard output and on the network.

use std::io::{self, Write};

use rondel_engine::{Monitor, Report};
use rondel_event::{Timestamp, TopicId, Value, Verdict};
use rondel_spec::{Property, Spec};

use crate::evidence::Evidence;
use crate::formula::value_text;

/// A verdict on its way out.
#[derive(Clone, Copy)]
pub struct Given<'a> {
    /// What the monitor says.
    pub report: &'a Report,
    /// The values of the keys, where the property has some.
    pub keys: &'a [Value],
    /// Why it is so, where that is asked for.
    pub evidence: Option<Evidence<'a>>,
    /// Of a chain, the first topic that a stamp had not reached in time.
    pub missing: Option<TopicId>,
}

impl<'a> Given<'a> {
    /// A report of the last call of a monitor. The values of its keys are written to `keys`.
    pub fn new(
        report: &'a Report,
        monitor: &'a Monitor,
        evidence: Option<Evidence<'a>>,
        keys: &'a mut Vec<Value>,
    ) -> Given<'a> {
        // A chain has a key, which is asked first: verdicts may be millions.
        let is_late = report.key.is_some() && report.verdict == Verdict::Violated;
        let missing = if is_late { monitor.missing(report) } else { None };
        keys.clear();
        monitor.write_key(report, keys);
        Given { report, keys, evidence, missing }
    }
}

/// Writes the verdicts of one property.
///
/// One JSON object, always in this form: `{"property":"p","time":1.5,"step":3,"verdict":"violated"}`,
/// `time` in seconds, `step` from 0. With several traces a member `trace` comes first. A property with keys
/// has `key` after its name. A verdict that time
/// brings has no `step`; one about another time than that at which it became certain has `about`. After
/// the verdict come robustness and evidence, where they are asked for, and of a chain how long the stamp took
/// or which topic it had not reached.
#[derive(Clone, Debug)]
pub struct VerdictWriter {
    name: String,
    /// The name as it stands in a line for people where there are no keys, with the blanks behind it.
    column: Vec<u8>,
    /// What stands before the values of the keys and the time: the same for every verdict.
    prefix: Vec<u8>,
    /// The names of the keys, in JSON.
    keys: Vec<String>,
    /// Of a chain the names of all topics.
    chain: Option<Vec<String>>,
}

impl VerdictWriter {
    /// For a property of this specification; `trace` names the trace where there are several.
    pub fn new(spec: &Spec, property: &Property, trace: Option<&str>) -> VerdictWriter {
        // A string always has a JSON form.
        let quoted = |text: &str| serde_json::to_string(text).unwrap_or_default();
        let mut prefix = b"{".to_vec();
        for (key, value) in [("trace", trace), ("property", Some(property.name.as_str()))] {
            if let Some(value) = value {
                prefix.extend_from_slice(format!("\"{key}\":{},", quoted(value)).as_bytes());
            }
        }
        let slice = property.slice.and_then(|slice| spec.slices.get(slice.0 as usize));
        let keys = slice.into_iter().flat_map(|slice| &slice.keys).map(|key| quoted(&key.name)).collect();
        let is_chain = spec.chains.iter().any(|chain| chain.name == property.name);
        let topics = || spec.topics.iter().map(|topic| topic.name.clone()).collect();
        let name = property.name.clone();
        let mut column = Vec::new();
        padded(&mut column, |out| out.extend_from_slice(name.as_bytes()));
        VerdictWriter { name, column, prefix, keys, chain: is_chain.then(topics) }
    }

    /// One for each property of this specification.
    pub fn all(spec: &Spec, trace: Option<&str>) -> Vec<VerdictWriter> {
        spec.properties.iter().map(|property| VerdictWriter::new(spec, property, trace)).collect()
    }

    /// Appends a line in this format.
    pub fn write(&self, format: Format, given: &Given<'_>, colour: bool, out: &mut Vec<u8>) {
        match format {
            Format::Json => {
                self.json(given, out);
                out.push(b'\n');
            }
            Format::Text => self.text(given, colour, out),
        }
    }

    /// Appends the JSON object, without a line break.
    pub fn json(&self, given: &Given<'_>, out: &mut Vec<u8>) {
        let Given { report, keys, evidence, .. } = given;
        out.extend_from_slice(&self.prefix);
        if !keys.is_empty() {
            out.extend_from_slice(b"\"key\":{");
            for (i, (name, value)) in self.keys.iter().zip(*keys).enumerate() {
                out.extend_from_slice(if i > 0 { b"," } else { b"" });
                out.extend_from_slice(name.as_bytes());
                out.push(b':');
                write_value(value, out);
            }
            out.extend_from_slice(b"},");
        }
        out.extend_from_slice(b"\"time\":");
        write_seconds(report.time, out);
        if let Some(about) = report.about {
            out.extend_from_slice(b",\"about\":");
            write_seconds(about, out);
        }
        if report.at_event {
            out.extend_from_slice(b",\"step\":");
            out.extend_from_slice(itoa::Buffer::new().format(report.step).as_bytes());
        }
        out.extend_from_slice(match report.verdict {
            Verdict::Satisfied => b",\"verdict\":\"satisfied\"",
            Verdict::Violated => b",\"verdict\":\"violated\"",
            Verdict::Inconclusive => b",\"verdict\":\"inconclusive\"",
        });
        if let Some(robustness) = report.robustness {
            out.extend_from_slice(b",\"robustness\":");
            write_value(&Value::Float(robustness), out);
        }
        if let Some(evidence) = evidence {
            out.extend_from_slice(b",\"evidence\":");
            evidence.json(out);
        }
        if let Some(latency) = self.latency(report) {
            out.extend_from_slice(b",\"latency\":");
            write_value(&latency, out);
        }
        if let Some(topic) = self.missing(given) {
            out.extend_from_slice(b",\"missing\":");
            write_value(&Value::String(topic.into()), out);
        }
        out.push(b'}');
    }

    /// Of a chain, how long the stamp took that came out.
    fn latency(&self, report: &Report) -> Option<Value> {
        let about = report.about.filter(|_| self.chain.is_some() && report.verdict == Verdict::Satisfied)?;
        Some(Value::Duration(report.time.as_nanos().saturating_sub(about.as_nanos())))
    }

    /// Of a chain, the first topic that the stamp had not reached in time.
    fn missing(&self, given: &Given<'_>) -> Option<&str> {
        self.chain.as_ref()?.get(given.missing?.index()).map(String::as_str)
    }

    /// Appends a line for people, with its line break, and the evidence below it.
    fn text(&self, given: &Given<'_>, colour: bool, out: &mut Vec<u8>) {
        let Given { report, keys, evidence, .. } = given;
        let Report { verdict, time, .. } = **report;
        // By hand and not by `write!`, and in few pieces: where one event in ten is a violation, this took a fifth of
        // the time.
        let word = match verdict {
            Verdict::Satisfied => b"satisfied     ",
            Verdict::Violated => b"violated      ",
            Verdict::Inconclusive => b"inconclusive  ",
        };
        if colour {
            let (word, blanks) = word.split_at(12);
            for part in [colour_of(verdict).as_bytes(), word, b"\x1b[0m", blanks] {
                out.extend_from_slice(part);
            }
        } else {
            out.extend_from_slice(word);
        }
        if keys.is_empty() {
            out.extend_from_slice(&self.column);
        } else {
            padded(out, |out| {
                out.extend_from_slice(self.name.as_bytes());
                write_keys(keys, out);
            });
        }
        if !report.at_event {
            out.extend_from_slice(b"                 time ");
        } else if report.step < 1_000_000_000 {
            let mut column = *b"step         0   time ";
            let (mut place, mut rest) = (13, report.step as u32);
            while rest > 0 {
                column[place] = b'0' + (rest % 10) as u8;
                (place, rest) = (place - 1, rest / 10);
            }
            out.extend_from_slice(&column);
        } else {
            out.extend_from_slice(b"step ");
            out.extend_from_slice(itoa::Buffer::new().format(report.step).as_bytes());
            out.extend_from_slice(b"   time ");
        }
        write_seconds(time, out);
        out.extend_from_slice(b" s");
        if let Some(about) = report.about {
            out.extend_from_slice(b", about ");
            write_seconds(about, out);
            out.extend_from_slice(b" s");
        }
        if let Some(robustness) = report.robustness {
            // Writing to a vector does not fail.
            let _ = write!(out, ", robustness {robustness}");
        }
        if let Some(latency) = self.latency(report) {
            out.extend_from_slice(b", latency ");
            out.extend_from_slice(value_text(&latency).as_bytes());
        }
        if let Some(topic) = self.missing(given) {
            out.extend_from_slice(b", missing on ");
            out.extend_from_slice(topic.as_bytes());
        }
        out.push(b'\n');
        if let Some(evidence) = evidence {
            evidence.text(out);
        }
    }
}

/// The values of the keys of a property in brackets, as they are written in a specification; nothing
/// without keys.
pub fn key_text(keys: &[Value]) -> String {
    let mut text = Vec::new();
    write_keys(keys, &mut text);
    // All of it was text.
    String::from_utf8(text).unwrap_or_default()
}

/// Appends what `key_text` returns.
fn write_keys(keys: &[Value], out: &mut Vec<u8>) {
    for (i, value) in keys.iter().enumerate() {
        out.extend_from_slice(if i == 0 { b"[" } else { b", " });
        match value {
            Value::Int(i) => out.extend_from_slice(itoa::Buffer::new().format(*i).as_bytes()),
            Value::String(_) => write_value(value, out),
            other => out.extend_from_slice(value_text(other).as_bytes()),
        }
    }
    if !keys.is_empty() {
        out.push(b']');
    }
}

/// Appends the name of a property with its keys, blanks behind it up to the next column, and at least one.
fn padded(out: &mut Vec<u8>, name: impl FnOnce(&mut Vec<u8>)) {
    let begin = out.len();
    name(out);
    // What is no first byte of a character continues one.
    let characters = out[begin..].iter().filter(|&&byte| byte & 0xc0 != 0x80).count();
    out.resize(out.len() + 33_usize.saturating_sub(characters).max(1), b' ');
}

/// The colour of a verdict on a terminal: green, red, yellow.
pub fn colour_of(verdict: Verdict) -> &'static str {
    match verdict {
        Verdict::Satisfied => "\x1b[32m",
        Verdict::Violated => "\x1b[1;31m",
        Verdict::Inconclusive => "\x1b[33m",
    }
}

/// A value in JSON: what is no number, or not known, is null.
pub fn write_value(value: &Value, out: &mut Vec<u8>) {
    match value {
        Value::Bool(b) => out.extend_from_slice(if *b { b"true" } else { b"false" }),
        Value::Int(i) => out.extend_from_slice(itoa::Buffer::new().format(*i).as_bytes()),
        Value::Float(x) => out.extend_from_slice(serde_json::json!(x).to_string().as_bytes()),
        Value::Time(ns) | Value::Duration(ns) => write_seconds(Timestamp::from_nanos(*ns), out),
        // Writing to a vector does not fail.
        Value::String(text) => {
            let _ = serde_json::to_writer(&mut *out, text);
        }
    }
}

/// The time in seconds, exactly.
pub fn write_seconds(time: Timestamp, out: &mut Vec<u8>) {
    let ns = time.as_nanos();
    let (seconds, mut rest) = (ns / 1_000_000_000, (ns % 1_000_000_000).unsigned_abs());
    if ns < 0 && seconds == 0 {
        out.push(b'-');
    }
    out.extend_from_slice(itoa::Buffer::new().format(seconds).as_bytes());
    if rest == 0 {
        return;
    }
    // Nine digits without the zeros at their end; by hand, as verdicts may be millions.
    let mut digits = *b".000000000";
    for digit in digits[1..].iter_mut().rev() {
        *digit = b'0' + (rest % 10) as u8;
        rest /= 10;
    }
    let len = digits.iter().rposition(|digit| *digit != b'0').map_or(0, |last| last + 1);
    out.extend_from_slice(&digits[..len]);
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
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn the_json_form_is_fixed() {
        let mut out = Vec::new();
        let spec = rondel_spec::parse(
            "topic t { id: int, s: string, v: bool } property p for each i in t.id, s in t.s = t.v",
        );
        let spec = spec.spec.unwrap();
        let plain = Property::new("p", spec.properties[0].formula);
        let named = Property { name: "a \"b\"".into(), ..plain.clone() };
        let report = |verdict, step, ns| Report::at_event(verdict, step, Timestamp::from_nanos(ns));
        let mut write = |property: &Property, trace, report: Report, keys: &[Value]| {
            VerdictWriter::new(&spec, property, trace)
                .json(&Given { report: &report, keys, evidence: None, missing: None }, &mut out);
        };
        write(&named, Some("x.jsonl"), report(Verdict::Violated, 3, -1_500_000_000), &[]);
        write(&plain, None, report(Verdict::Satisfied, 0, 12_000_000_000), &[]);
        let mut alone = report(Verdict::Violated, 7, 2_000_000_000);
        (alone.row, alone.at_event, alone.about) = (None, false, Some(Timestamp::ZERO));
        write(&plain, None, alone, &[]);
        let keys = [Value::Int(7), Value::String("x\"".into())];
        write(&spec.properties[0], None, report(Verdict::Violated, 1, 0), &keys);
        assert_eq!(key_text(&keys), r#"[7, "x\""]"#);
        for ns in [0, 1, -1, 10, 5_000_000, -1_500_000_000, 12_000_000_001, i64::MAX, i64::MIN] {
            let (time, mut text) = (Timestamp::from_nanos(ns), Vec::new());
            write_seconds(time, &mut text);
            assert_eq!(String::from_utf8(text).unwrap(), time.to_string());
        }
        assert_eq!(
            String::from_utf8(out).unwrap(),
            r#"{"trace":"x.jsonl","property":"a \"b\"","time":-1.5,"step":3,"verdict":"violated"}"#
                .to_owned()
                + r#"{"property":"p","time":12,"step":0,"verdict":"satisfied"}"#
                + r#"{"property":"p","time":2,"about":0,"verdict":"violated"}"#
                + r#"{"property":"p","key":{"i":7,"s":"x\""},"time":0,"step":1,"verdict":"violated"}"#
        );
    }
}
