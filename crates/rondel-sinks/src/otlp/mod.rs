//! Verdicts as log records by the protocol of OpenTelemetry, over HTTP in JSON; and metrics.
//!
//! docs/reference/otlp.md describes records, attributes and faults.

mod json;
mod metrics;
mod records;

use std::time::{Duration, Instant};

use json::PartialSuccess;
pub use metrics::{Metric, MetricsClient, Reading};
use records::Records;

use crate::entry::{Entry, VerdictEntry};
use crate::http::{Answer, Call, Client};
use crate::sink::{Failure, Progress, Sink, Written};
use crate::tls::TlsOptions;

/// Log records of one request.
const TOGETHER: usize = 512;
/// Bytes of texts in one request.
const BYTES: usize = 1 << 20;

/// Options of a receiver of OpenTelemetry.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct OtlpOptions {
    /// Address, with http or https, to which `/v1/logs` or `/v1/metrics` is added.
    pub url: String,
    /// Further headers, such as `Authorization`.
    pub headers: Vec<(String, String)>,
    /// Attributes of the resource, beside those of Rondel or instead of them.
    pub resource: Vec<(String, String)>,
    /// TLS; `None`: the system's trust store, for addresses with https.
    pub tls: Option<TlsOptions>,
}

/// Program and run that log records and metrics come from, as attributes of the resource. Empty ones are left out.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Origin {
    /// Version of the program.
    pub version: String,
    /// Id of the run or of the process.
    pub instance: String,
    /// Name of the machine.
    pub host: String,
    /// Name of the series of runs.
    pub series: String,
}

impl std::fmt::Debug for OtlpOptions {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        // Address and headers may contain secrets.
        let mut out = f.debug_struct("OtlpOptions");
        out.field("resource", &self.resource).field("tls", &self.tls).finish_non_exhaustive()
    }
}

/// Sink that sends log records.
pub struct OtlpSink {
    client: Client,
    records: Records,
}

impl OtlpSink {
    /// Creates a sink. Does not connect.
    ///
    /// # Errors
    /// A sentence with the option and the way out.
    pub fn new(options: OtlpOptions) -> Result<OtlpSink, String> {
        let OtlpOptions { url, headers, resource, tls } = options;
        let client = Client::new(&url, "/v1/logs", &headers, tls.as_ref())?;
        Ok(OtlpSink { client, records: Records::new(resource)? })
    }

    /// Sends verdicts in one request, and enters the outcome. Returns whether the receiver has decided about them.
    fn send(&mut self, verdicts: &[&VerdictEntry<'_>], limit: Duration, progress: &mut Progress) -> bool {
        if verdicts.is_empty() {
            return true;
        }
        let count = verdicts.len() as u64;
        let body = self.records.json(verdicts);
        let (refused, failure) = match post(&mut self.client, &body, limit) {
            Err(failure) => {
                progress.failure = Some(failure);
                return false;
            }
            Ok(Decided::Accepted) => (0, None),
            Ok(Decided::Partly { refused, message }) => {
                let refused = refused.min(count);
                let message =
                    format!("{} rejects {refused} of {count} log records: {message}", self.client.place());
                (refused, (refused > 0).then(|| Failure::rejected(message)))
            }
            Ok(Decided::Refused(failure)) => (count, Some(failure)),
        };
        progress.written.stored += count - refused;
        progress.rejected += refused;
        if failure.is_some() {
            progress.failure = failure;
        }
        true
    }
}

impl Sink for OtlpSink {
    fn write(&mut self, entries: &[Entry<'_>], limit: Duration) -> Result<Written, Failure> {
        self.write_some(entries, limit).of_all(entries.len())
    }

    fn write_some(&mut self, entries: &[Entry<'_>], limit: Duration) -> Progress {
        let deadline = Instant::now() + limit;
        let mut progress = Progress::default();
        while progress.done < entries.len() {
            let left = deadline.saturating_duration_since(Instant::now());
            if left.is_zero() && progress.done > 0 {
                return progress;
            }
            let (count, verdicts) = together(&entries[progress.done..]);
            if !self.send(&verdicts, left, &mut progress) {
                return progress;
            }
            progress.done += count;
            // A run begins after the verdicts of the one before.
            if let Some(Entry::Begin(begin)) = entries.get(progress.done) {
                self.records.begin(begin);
                progress.done += 1;
            }
        }
        progress
    }

    fn interrupter(&mut self) -> Option<Box<dyn Fn() + Send + Sync>> {
        Some(self.client.interrupter())
    }
}

/// Returns the number of entries that one request takes, and the verdicts among them. A run begins a new request.
fn together<'a, 'e>(entries: &'a [Entry<'e>]) -> (usize, Vec<&'a VerdictEntry<'e>>) {
    let (mut verdicts, mut bytes) = (Vec::new(), 0);
    for (i, entry) in entries.iter().enumerate() {
        match entry {
            Entry::Begin(_) => return (i, verdicts),
            Entry::Verdict(_) if verdicts.len() == TOGETHER || bytes > BYTES => return (i, verdicts),
            Entry::Verdict(verdict) => {
                bytes += verdict.explanation.len() + verdict.parameters.len() + verdict.values.len();
                verdicts.push(verdict);
            }
            Entry::Loss(_) | Entry::End(_) | Entry::Reached(_) => {}
        }
    }
    (entries.len(), verdicts)
}

/// Decision of a receiver about a request.
enum Decided {
    Accepted,
    /// It rejects some records or points, and says why.
    Partly {
        refused: u64,
        message: String,
    },
    /// It rejects all.
    Refused(Failure),
}

/// Sends a request.
///
/// # Errors
/// It may be sent again.
fn post(client: &mut Client, body: &[u8], limit: Duration) -> Result<Decided, Failure> {
    let answer = client.post(&Call { content_type: "application/json", headers: &[], body }, limit)?;
    if answer.is_accepted() {
        return Ok(partly(&answer));
    }
    match answer.status() {
        300..400 => Err(answer.redirect(client.place())),
        // The only ones that the specification lets be sent again.
        429 | 502 | 503 | 504 => Err(Failure::unavailable(answer.described(client.place()))),
        _ => Ok(Decided::Refused(Failure::rejected(answer.described(client.place())))),
    }
}

/// Reads an answer to an accepted request. One that cannot be read is an acceptance.
fn partly(answer: &Answer) -> Decided {
    let found = answer.body().and_then(PartialSuccess::parse);
    match found {
        Some(PartialSuccess { refused, message }) if refused > 0 => Decided::Partly { refused, message },
        _ => Decided::Accepted,
    }
}
