//! Sending entries to a sink from the evaluating thread.

use std::sync::Arc;

use rondel_event::Timestamp;
use rondel_runtime::text::write_value;
use rondel_runtime::{PropertyInfo, Report};

use crate::entry::{Begin, End, Entry, Loss, Reached, RunKey, VerdictEntry, nanos};
use crate::queue::Batch;
use crate::shared::Shared;

/// Entries after which a batch is sent by itself.
const BATCH: usize = 1 << 12;
/// Bytes after which a batch is sent by itself.
const BATCH_BYTES: usize = 1 << 18;

/// Sender of entries, of one thread. It gathers entries in a batch of its own, without a lock, until
/// [`send`](Feed::send). Its memory is reused: a verdict allocates nothing once buffers have reached their size.
pub struct Feed {
    shared: Arc<Shared>,
    batch: Batch,
    run: RunKey,
    wants_json: bool,
    texts: Texts,
}

/// Encoder of entries for the feeds of several sinks: a report is encoded once. Its memory is reused.
pub struct Encoder {
    run: RunKey,
    wants_json: bool,
    texts: Texts,
    bytes: Vec<u8>,
}

/// Buffers for the texts of one verdict.
#[derive(Default)]
struct Texts {
    parameters: Vec<u8>,
    values: Vec<u8>,
    explanation: Vec<u8>,
    json: Vec<u8>,
    id: Vec<u8>,
}

impl Feed {
    pub(crate) fn new(shared: Arc<Shared>, wants_json: bool) -> Feed {
        Feed { shared, batch: Batch::default(), run: RunKey::default(), wants_json, texts: Texts::default() }
    }

    /// Begins a run, to which further entries belong.
    pub fn begin(&mut self, begin: Begin<'_>) {
        self.run = begin.run;
        self.shared.state().run = begin.run;
        self.entry(&Entry::Begin(Box::new(begin)));
    }

    /// Adds a verdict, with the time of its report in nanoseconds since the Unix epoch.
    pub fn verdict(&mut self, report: &Report<'_>, reported: Timestamp) {
        self.texts.fill(report, self.wants_json);
        let Feed { batch, texts, run, .. } = self;
        batch.push(|out| Entry::Verdict(texts.entry(report, *run, reported)).encode(out));
        self.send_if_large();
    }

    /// Adds an entry.
    pub fn entry(&mut self, entry: &Entry<'_>) {
        self.batch.push(|out| entry.encode(out));
        self.send_if_large();
    }

    /// Adds an entry of the same run that an [`Encoder`] has encoded.
    pub fn encoded(&mut self, entry: &[u8]) {
        self.batch.push(|out| out.extend_from_slice(entry));
        self.send_if_large();
    }

    /// Adds messages that the run lost.
    pub fn loss(&mut self, reason: &str, subject: &str, count: u64, from: Timestamp, until: Timestamp) {
        let (from, until) = (nanos(from), nanos(until));
        self.entry(&Entry::Loss(Loss { run: self.run, reason, subject, count, from, until }));
    }

    /// Adds the event time that the run has reached, so that open violations last until then.
    pub fn reached(&mut self, time: Timestamp, reported: Timestamp) {
        let (time, reported) = (nanos(time), nanos(reported));
        self.entry(&Entry::Reached(Reached { run: self.run, time, reported }));
    }

    /// Ends the run, at this time of day.
    pub fn end(&mut self, end: Timestamp, status: &str) {
        self.entry(&Entry::End(End { run: self.run, end: nanos(end), status }));
        self.send();
    }

    /// Sends a large batch. Entries of a sink that hands them back are [taken](Feed::take) instead.
    fn send_if_large(&mut self) {
        if self.shared.options.hands_back {
            return;
        }
        if self.batch.len() >= BATCH || self.batch.bytes() >= BATCH_BYTES {
            self.send();
        }
    }

    /// Sends the gathered entries to the sink: after the reports of one call of a session. Returns whether the queue
    /// accepted them; otherwise they were dropped and counted.
    pub fn send(&mut self) -> bool {
        self.batch.len() == 0 || self.shared.push(&mut self.batch)
    }

    /// Passes the gathered entries to `visit` instead, encoded, for a queue or file of the caller.
    pub fn take(&mut self, mut visit: impl FnMut(&[u8])) {
        self.batch.entries(0).for_each(&mut visit);
        self.batch.reset();
    }
}

impl Drop for Feed {
    fn drop(&mut self) {
        self.send();
    }
}

impl Encoder {
    /// Creates the encoder of a run. `wants_json`: whether any of its sinks [reads](crate::Sink::wants_json) the JSON of
    /// verdicts.
    pub fn new(run: RunKey, wants_json: bool) -> Encoder {
        Encoder { run, wants_json, texts: Texts::default(), bytes: Vec::new() }
    }

    /// Returns a verdict as an encoded entry, with the time of its report in nanoseconds since the Unix epoch.
    pub fn verdict(&mut self, report: &Report<'_>, reported: Timestamp) -> &[u8] {
        let Encoder { run, wants_json, texts, bytes } = self;
        texts.fill(report, *wants_json);
        bytes.clear();
        Entry::Verdict(texts.entry(report, *run, reported)).encode(bytes);
        bytes
    }

    /// Returns an entry encoded.
    pub fn entry(&mut self, entry: &Entry<'_>) -> &[u8] {
        self.bytes.clear();
        entry.encode(&mut self.bytes);
        &self.bytes
    }
}

impl Texts {
    /// Writes the texts of a report.
    fn fill(&mut self, report: &Report<'_>, wants_json: bool) {
        let Texts { parameters, values, explanation, json, id } = self;
        for text in [&mut *parameters, &mut *values, &mut *explanation, &mut *json, &mut *id] {
            text.clear();
        }
        let property: &PropertyInfo = report.property();
        write_object(property.parameters.iter().map(String::as_str).zip(report.parameters()), parameters);
        write_object(report.values(), values);
        if let Some(found) = report.explanation() {
            found.json(explanation);
        }
        if wants_json {
            report.json(json);
        }
        report.write_id(id);
    }

    fn entry<'a>(&'a self, report: &Report<'a>, run: RunKey, reported: Timestamp) -> VerdictEntry<'a> {
        VerdictEntry {
            run,
            id: u128::from_str_radix(text(&self.id), 16).ok(),
            property: &report.property().name,
            parameters: text(&self.parameters),
            verdict: report.verdict().into(),
            time: nanos(report.time()),
            about: report.about().map(nanos),
            is_after: report.is_after(),
            reported: nanos(reported),
            step: report.step(),
            lap: report.lap(),
            robustness: report.robustness(),
            values: text(&self.values),
            explanation: text(&self.explanation),
            latency: report.latency(),
            missing: report.missing().unwrap_or_default(),
            because_of: report.because_of().unwrap_or_default(),
            json: text(&self.json),
        }
    }
}

/// Returns values by their names as a JSON object, as entries have them; empty without any.
pub fn object<'v>(members: impl Iterator<Item = (&'v str, &'v rondel_event::Value)>) -> String {
    let mut out = Vec::new();
    write_object(members, &mut out);
    text(&out).to_owned()
}

/// Writes a JSON object; nothing if it has no members.
fn write_object<'v>(members: impl Iterator<Item = (&'v str, &'v rondel_event::Value)>, out: &mut Vec<u8>) {
    for (name, value) in members {
        out.push(if out.is_empty() { b'{' } else { b',' });
        // Writing to a vector does not fail.
        let _ = serde_json::to_writer(&mut *out, name);
        out.push(b':');
        write_value(value, out);
    }
    if !out.is_empty() {
        out.push(b'}');
    }
}

/// Everything that the runtime writes is text.
fn text(bytes: &[u8]) -> &str {
    std::str::from_utf8(bytes).unwrap_or_default()
}
