//! Open violations as alerts of Alertmanager.
//!
//! docs/reference/webhooks.md describes labels, annotations and the rules by which alerts end.

mod alerts;
mod labels;
mod restore;

use std::time::{Duration, Instant};

use alerts::{Alerts, Posted};
pub(crate) use labels::Labels;
use labels::check_labels;

use crate::entry::{Begin, Entry, RunKey, RunKind};
use crate::http::{Call, Client};
use crate::shared::ticks;
use crate::sink::{Failure, FailureKind, Progress, Sink, Written};
use crate::tls::TlsOptions;

/// Alerts of one request.
const TOGETHER: usize = 500;
/// Longest duration of sending alerts again.
const RESEND: Duration = Duration::from_secs(3);

/// Options of alerts.
#[derive(Clone, PartialEq, Eq)]
pub struct AlertmanagerOptions {
    /// Address, with http or https, without `/api`.
    pub url: String,
    /// Labels of every alert.
    pub labels: Vec<(String, String)>,
    /// Further headers, such as `Authorization`.
    pub headers: Vec<(String, String)>,
    /// TLS; `None`: the system's trust store, for addresses with https.
    pub tls: Option<TlsOptions>,
    /// Interval at which open alerts are sent again, rounded up to 10 seconds.
    pub resend: Duration,
    /// Time after the last sending at which Alertmanager ends an alert: a source that is gone resolves nothing before.
    pub hold: Duration,
}

impl Default for AlertmanagerOptions {
    /// Sends alerts again every minute; they last for a day after that.
    fn default() -> AlertmanagerOptions {
        AlertmanagerOptions {
            url: String::new(),
            labels: Vec::new(),
            headers: Vec::new(),
            tls: None,
            resend: Duration::from_secs(60),
            hold: Duration::from_secs(86_400),
        }
    }
}

impl std::fmt::Debug for AlertmanagerOptions {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        // Address and headers may contain secrets.
        let AlertmanagerOptions { labels, tls, resend, hold, .. } = self;
        let mut out = f.debug_struct("AlertmanagerOptions");
        out.field("labels", labels).field("tls", tls).field("resend", resend).field("hold", hold);
        out.finish_non_exhaustive()
    }
}

/// Sink that keeps an alert for each open violation.
pub struct AlertmanagerSink {
    client: Client,
    alerts: Alerts,
    /// Run whose earlier alerts were read back.
    restored: Option<RunKey>,
    resend: i64,
}

impl AlertmanagerSink {
    /// Creates a sink. Does not connect.
    ///
    /// # Errors
    /// A sentence with the option and the way out.
    pub fn new(options: AlertmanagerOptions) -> Result<AlertmanagerSink, String> {
        let AlertmanagerOptions { url, labels, headers, tls, resend, hold } = options;
        if hold < resend.saturating_mul(2) {
            return Err(format!(
                "alerts last for {} s after they were sent, and are sent again every {} s; let them last at least twice as \
                 long as that interval",
                hold.as_secs(),
                resend.as_secs()
            ));
        }
        let alerts = Alerts::new(check_labels(labels)?, hold);
        let client = Client::new(&url, "/api/v2/alerts", &headers, tls.as_ref())?;
        Ok(AlertmanagerSink { client, alerts, restored: None, resend: ticks(resend) })
    }

    /// Enters entries. Entries that are entered again after a failure change nothing.
    fn enter(&mut self, entries: &[Entry<'_>], limit: Duration) -> Result<Progress, Failure> {
        let mut progress = Progress { done: entries.len(), ..Progress::default() };
        let reject = |progress: &mut Progress, failure| {
            progress.rejected += 1;
            progress.failure = Some(failure);
        };
        for entry in entries {
            match entry {
                Entry::Begin(begin) => match self.begin(begin, limit) {
                    Err(failure) if failure.kind == FailureKind::Rejected => reject(&mut progress, failure),
                    begun => begun?,
                },
                Entry::Verdict(verdict) => match self.alerts.enter(verdict, self.client.now()) {
                    Err(failure) => reject(&mut progress, failure),
                    Ok(()) => progress.written.stored += 1,
                },
                Entry::End(end) => self.alerts.end(end),
                Entry::Loss(_) | Entry::Reached(_) => {}
            }
        }
        Ok(progress)
    }

    /// Begins a run, which takes over the alerts that earlier runs of its series left open.
    fn begin(&mut self, begin: &Begin<'_>, limit: Duration) -> Result<(), Failure> {
        self.alerts.begin(begin);
        if self.restored == Some(begin.run) || begin.series.is_empty() || begin.kind != RunKind::Live {
            return Ok(());
        }
        let path = restore::path(self.client.path(), begin.series);
        let answer = self.client.get(&path, limit, restore::LARGEST)?;
        if !answer.is_accepted() {
            let place = self.client.place();
            // A receiver that only accepts alerts: they are sent all the same.
            return Err(match answer.is_denied() {
                true => Failure::rejected(answer.described(place)),
                false => answer.failure(place),
            });
        }
        // An answer that cannot be used is reported once.
        self.restored = Some(begin.run);
        let found = answer.body().ok_or_else(|| restore::too_long(self.client.place()))?;
        let found = restore::alerts(found).map_err(|error| restore::unusable(self.client.place(), &error))?;
        self.alerts.restore(begin, found)
    }

    /// Sends alerts. Returns the number of those that Alertmanager refuses.
    fn send(&mut self, due: &[Labels], deadline: Instant) -> Result<Option<(u64, Failure)>, Failure> {
        let mut refused: Option<(u64, Failure)> = None;
        // Later chunks are at the front.
        let mut chunks: Vec<&[Labels]> = due.chunks(TOGETHER).rev().collect();
        while let Some(chunk) = chunks.pop() {
            let left = deadline.saturating_duration_since(Instant::now());
            let body = self.alerts.json(chunk, self.client.now());
            let call = Call { content_type: "application/json", headers: &[], body: &body };
            let answer = self.client.post(&call, left)?;
            let mut posted = Posted::Accepted;
            if !answer.is_accepted() {
                let failure = answer.failure(self.client.place());
                if failure.kind != FailureKind::Rejected {
                    return Err(failure);
                }
                if chunk.len() > 1 {
                    // Alertmanager has kept the valid ones; sending them again changes nothing.
                    let (first, second) = chunk.split_at(chunk.len() / 2);
                    chunks.extend([second, first]);
                    continue;
                }
                posted = Posted::Refused;
                refused = Some((refused.map_or(0, |(count, _)| count) + 1, failure));
            }
            self.alerts.posted(chunk, posted, self.client.ticks());
        }
        Ok(refused)
    }
}

impl Sink for AlertmanagerSink {
    fn write(&mut self, entries: &[Entry<'_>], limit: Duration) -> Result<Written, Failure> {
        self.write_some(entries, limit).of_all(entries.len())
    }

    fn write_some(&mut self, entries: &[Entry<'_>], limit: Duration) -> Progress {
        let deadline = Instant::now() + limit;
        let sent = self.enter(entries, limit).and_then(|mut progress| {
            if let Some((count, failure)) = self.send(&self.alerts.changed(), deadline)? {
                // Alerts stand for verdicts of this batch.
                progress.rejected = (progress.rejected + count).min(progress.done as u64);
                progress.failure = Some(failure);
            }
            Ok(progress)
        });
        sent.unwrap_or_else(|failure| Progress { failure: Some(failure), ..Progress::default() })
    }

    fn maintain(&mut self, _now: i64, _limit: Duration) -> Result<bool, Failure> {
        let due = self.alerts.due(self.client.ticks(), self.resend);
        match self.send(&due, Instant::now() + RESEND)? {
            Some((_, failure)) => Err(failure),
            None => Ok(false),
        }
    }

    fn notifies(&self) -> bool {
        true
    }

    fn interrupter(&mut self) -> Option<Box<dyn Fn() + Send + Sync>> {
        Some(self.client.interrupter())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options_are_checked() {
        let url = "http://127.0.0.1:9093".to_owned();
        let options = AlertmanagerOptions { url, ..AlertmanagerOptions::default() };
        assert!(AlertmanagerSink::new(options.clone()).is_ok());
        let short = AlertmanagerOptions { hold: Duration::from_secs(90), ..options.clone() };
        let labels = vec![("a-b".to_owned(), "x".to_owned())];
        let strange = AlertmanagerOptions { labels, ..options };
        for (options, reason) in [(short, "twice as long"), (strange, "a-b")] {
            let error = AlertmanagerSink::new(options).err().unwrap_or_default();
            assert!(error.contains(reason), "{error}");
        }
    }
}
