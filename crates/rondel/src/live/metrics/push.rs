//! Pushing of metrics to a collector of OpenTelemetry, on a thread of its own.
//!
//! It reads what a scrape reads. A collector that is slow or down delays only this thread: readings that it does not
//! accept are counted and dropped, since the next ones contain their totals.

use std::sync::{Arc, mpsc};
use std::thread;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use rondel_net::adapter::now;
use rondel_sinks::Failure;
use rondel_sinks::otlp::{Metric, MetricsClient, Origin, Reading};

use super::exposition;
use super::families::{FamilyReading, ReadingValue};
use super::figures::Snapshot;
use super::pushes::PushFigures;
use super::state::RunState;
use crate::deployment::PushSettings;
use crate::sinks::driven::random_key;
use crate::sinks::origin::host;
use crate::{say, warn};

/// Time limit of a push.
const LIMIT: Duration = Duration::from_secs(5);
/// Time limit of the last one, which a run that ends waits for.
const LAST: Duration = Duration::from_millis(500);
/// Different causes of failures that are reported until a push is accepted.
const CAUSES: usize = 8;

/// The thread that pushes. When dropped, it pushes the figures at the end of the run, and ends.
pub struct Pusher {
    /// Sends the time at which the last push is to be done.
    end: mpsc::Sender<Instant>,
    /// Is disconnected once the thread has ended.
    ended: mpsc::Receiver<()>,
    interrupt: Box<dyn Fn() + Send + Sync>,
    state: Arc<RunState>,
}

impl Pusher {
    /// Starts to push.
    ///
    /// # Errors
    /// A setting is wrong, or the system starts no further thread.
    pub fn start(settings: &PushSettings, series: String, state: Arc<RunState>) -> Result<Pusher, String> {
        let PushSettings { target, place, interval } = settings;
        let origin = Origin {
            version: env!("CARGO_PKG_VERSION").to_owned(),
            instance: random_key().to_string(),
            host: host().unwrap_or_default(),
            series,
        };
        let client = target.metrics_client(origin)?;
        let (interrupt, interval) = (client.interrupter(), *interval);
        let (end, orders) = mpsc::channel();
        let (alive, ended) = mpsc::channel();
        let of_thread = Arc::clone(&state);
        let push = move || {
            Pushing { client, state: of_thread, failures: 0, causes: Vec::new() }.run(interval, &orders);
            drop(alive);
        };
        thread::Builder::new()
            .name("metrics push".into())
            .spawn(push)
            .map_err(|error| format!("cannot push metrics to {place}: {error}"))?;
        Ok(Pusher { end, ended, interrupt, state })
    }

    /// Pushes the figures at the end of the run, and returns the account of all pushes.
    pub fn end(self) -> Option<PushFigures> {
        let state = Arc::clone(&self.state);
        drop(self);
        state.push_figures()
    }
}

impl Drop for Pusher {
    fn drop(&mut self) {
        // The receiver is gone only after a panic, which has been reported.
        let _ = self.end.send(Instant::now() + LAST);
        // Nothing is sent: it ends by being disconnected.
        if self.ended.recv_timeout(LAST) == Err(mpsc::RecvTimeoutError::Timeout) {
            // The thread may be resolving a name, and ends with the process.
            (self.interrupt)();
        }
    }
}

/// State of the thread.
struct Pushing {
    client: MetricsClient,
    state: Arc<RunState>,
    /// Pushes that failed since the last one that was accepted.
    failures: u64,
    /// Causes of these failures, as reported.
    causes: Vec<String>,
}

impl Pushing {
    /// Pushes at once and then at each interval, until the end.
    fn run(mut self, interval: Duration, orders: &mpsc::Receiver<Instant>) {
        let mut next = Instant::now();
        loop {
            match orders.recv_timeout(next.saturating_duration_since(Instant::now())) {
                Err(mpsc::RecvTimeoutError::Timeout) => {
                    let snapshot = self.state.snapshot();
                    let pushed = self.push(&snapshot, LIMIT);
                    self.report(pushed);
                    // A slow push delays the next one, so that none follows at once.
                    next = (next + interval).max(Instant::now() + interval / 2);
                }
                Err(mpsc::RecvTimeoutError::Disconnected) => return,
                Ok(deadline) => {
                    let snapshot = self.state.last_snapshot();
                    let left = deadline.saturating_duration_since(Instant::now());
                    let pushed = self.push(&snapshot, left);
                    self.report(pushed);
                    return;
                }
            }
        }
    }

    /// Pushes the readings of a snapshot.
    fn push(&mut self, snapshot: &Snapshot, limit: Duration) -> Result<(), Failure> {
        let readings = exposition::readings(snapshot);
        let attributes: Vec<Vec<(&str, &str)>> = readings.iter().map(attributes).collect();
        let metrics: Vec<Metric<'_>> = readings
            .iter()
            .zip(&attributes)
            .map(|(reading, attributes)| metric(reading, attributes))
            .collect();
        self.client.push(&metrics, nanos(snapshot.began), now().as_nanos(), limit)
    }

    /// Counts a push. Reports each cause of a failure once until pushes are accepted again, and that they are.
    fn report(&mut self, pushed: Result<(), Failure>) {
        self.state.count_push(pushed.as_ref().map(|&()| ()).map_err(|failure| failure.message.as_str()));
        match pushed {
            Ok(()) if self.failures > 0 => {
                say(&format!("metrics are pushed again, after {} that failed", self.failures));
                self.failures = 0;
                self.causes.clear();
            }
            Ok(()) => {}
            Err(Failure { message, .. }) => {
                self.failures += 1;
                if self.causes.len() < CAUSES && !self.causes.contains(&message) {
                    warn(&format!("metrics are not pushed: {message}; the run continues"));
                    self.causes.push(message);
                }
            }
        }
    }
}

fn attributes(reading: &FamilyReading) -> Vec<(&str, &str)> {
    reading.labels.iter().map(|(name, value)| (*name, value.as_str())).collect()
}

fn metric<'a>(reading: &'a FamilyReading, attributes: &'a [(&'a str, &'a str)]) -> Metric<'a> {
    Metric {
        name: &reading.name,
        description: &reading.help,
        unit: reading.unit,
        attributes,
        reading: match &reading.value {
            ReadingValue::Sum(value) => Reading::Sum(*value),
            ReadingValue::Gauge(value) => Reading::Gauge(*value),
            ReadingValue::Histogram(bounds, counts, sum) => Reading::Histogram { bounds, counts, sum: *sum },
        },
    }
}

/// Returns a time of day in nanoseconds since the Unix epoch.
fn nanos(time: SystemTime) -> i64 {
    let since = time.duration_since(UNIX_EPOCH).unwrap_or_default();
    i64::try_from(since.as_nanos()).unwrap_or(i64::MAX)
}
