//! Verdicts as CloudEvents, one request each.
//!
//! docs/reference/webhooks.md describes headers, bodies and the signature.

pub(crate) mod date;
mod event;
mod pairs;
mod signature;

use std::time::{Duration, Instant};

use event::{Event, Source};
use pairs::Pairs;
use signature::Key;

use crate::entry::{Entry, VerdictEntry};
use crate::http::{Call, Client};
use crate::sink::{Failure, FailureKind, Progress, Sink, Written};
use crate::tls::TlsOptions;

/// Verdicts that are sent.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Emit {
    /// All.
    #[default]
    All,
    /// Violated verdicts that no other violation mutes, and the satisfied verdict that ends each violation.
    Violations,
}

/// Options of a webhook.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct WebhookOptions {
    /// Address, with http or https.
    pub url: String,
    /// Secret of the signature: `whsec_` and the key in base64, or any text, whose bytes are the key. `None`: no signature.
    pub secret: Option<String>,
    /// Further headers, such as `Authorization`.
    pub headers: Vec<(String, String)>,
    /// TLS; `None`: the system's trust store, for addresses with https.
    pub tls: Option<TlsOptions>,
    /// Verdicts that are sent.
    pub emit: Emit,
}

impl std::fmt::Debug for WebhookOptions {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        // Address, secret and headers may contain what only the receiver may know.
        f.debug_struct("WebhookOptions")
            .field("tls", &self.tls)
            .field("emit", &self.emit)
            .finish_non_exhaustive()
    }
}

/// Sink that sends CloudEvents.
pub struct WebhookSink {
    client: Client,
    key: Option<Key>,
    emit: Emit,
    source: Source,
    pairs: Pairs,
}

impl WebhookSink {
    /// Creates a sink. Does not connect.
    ///
    /// # Errors
    /// A sentence with the option and the way out.
    pub fn new(options: WebhookOptions) -> Result<WebhookSink, String> {
        let WebhookOptions { url, secret, headers, tls, emit } = options;
        let client = Client::new(&url, "", &headers, tls.as_ref())?;
        let key = secret.as_deref().map(Key::parse).transpose()?;
        let pairs = Pairs::new(emit == Emit::Violations);
        Ok(WebhookSink { client, key, emit, source: Source::default(), pairs })
    }

    /// Sends a verdict, if it is one of those to be sent. Returns whether it is.
    fn send(&mut self, verdict: &VerdictEntry<'_>, limit: Duration) -> Result<bool, Failure> {
        let id = event::id(verdict);
        let link = self.pairs.link(verdict, &id);
        if self.emit == Emit::Violations && !link.is_part {
            self.pairs.settle(verdict, link);
            return Ok(false);
        }
        let event = Event::new(&self.source, verdict, &id, link.begin.as_deref());
        let mut headers = event.headers();
        let signed;
        if let Some(key) = &self.key {
            let seconds = self.client.now().div_euclid(1_000_000_000).to_string();
            let signature = key.sign(&id, &seconds, verdict.json.as_bytes());
            signed = (seconds, signature);
            headers.push(("webhook-id", &id));
            headers.push(("webhook-timestamp", &signed.0));
            headers.push(("webhook-signature", &signed.1));
        }
        let body = verdict.json.as_bytes();
        let call = Call { content_type: "application/json", headers: &headers, body };
        let answer = self.client.post(&call, limit)?;
        if !answer.is_accepted() {
            let failure = answer.failure(self.client.place());
            if failure.kind == FailureKind::Rejected {
                // The receiver has had its chance: what follows is paired as if it had accepted this.
                self.pairs.settle(verdict, link);
            }
            return Err(failure);
        }
        self.pairs.settle(verdict, link);
        Ok(true)
    }
}

impl Sink for WebhookSink {
    fn write(&mut self, entries: &[Entry<'_>], limit: Duration) -> Result<Written, Failure> {
        self.write_some(entries, limit).of_all(entries.len())
    }

    fn write_some(&mut self, entries: &[Entry<'_>], limit: Duration) -> Progress {
        let began = Instant::now();
        let mut progress = Progress::default();
        for entry in entries {
            match entry {
                Entry::Verdict(verdict) => {
                    let left = limit.saturating_sub(began.elapsed());
                    if left.is_zero() && progress.done > 0 {
                        return progress;
                    }
                    match self.send(verdict, left) {
                        Ok(is_sent) => progress.written.stored += u64::from(is_sent),
                        Err(failure) if failure.kind == FailureKind::Rejected => {
                            progress.rejected += 1;
                            progress.failure = Some(failure);
                        }
                        // A slow receiver that had too little of the limit left is no failure yet.
                        Err(_) if progress.done > 0 && left < limit / 2 => return progress,
                        Err(failure) => {
                            progress.failure = Some(failure);
                            return progress;
                        }
                    }
                }
                Entry::Begin(begin) => {
                    self.source = Source::of(begin);
                    self.pairs.begin(begin.run, begin.resumes);
                }
                Entry::Loss(_) | Entry::End(_) | Entry::Reached(_) => {}
            }
            progress.done += 1;
        }
        progress
    }

    fn wants_json(&self) -> bool {
        true
    }

    fn notifies(&self) -> bool {
        self.emit == Emit::Violations
    }

    fn interrupter(&mut self) -> Option<Box<dyn Fn() + Send + Sync>> {
        Some(self.client.interrupter())
    }
}
