//! Outages: errors that the client reports, checked by a request before they count as a lost connection.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use rdkafka::error::{KafkaError, RDKafkaErrorCode};
use rondel_event::Timestamp;

use crate::adapter::{Outage, now};

/// Time limit of a request that checks a connection.
pub(super) const PROBE: Duration = Duration::from_secs(1);
/// Interval of such requests during an outage.
const AGAIN: Duration = Duration::from_millis(500);
/// Maximum number of outages that are kept.
const OUTAGES: usize = 1024;

/// Lost connections of a session.
#[derive(Debug, Default)]
pub(super) struct Breaks {
    pub(super) count: AtomicU64,
    outages: Mutex<Vec<Outage>>,
}

impl Breaks {
    /// Returns the lost connections.
    pub(super) fn outages(&self) -> Vec<Outage> {
        self.outages.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Adds a connection that was lost, or that was restored.
    fn add(&self, name: &str, from: Timestamp, until: Option<Timestamp>) {
        let mut outages = self.outages.lock().unwrap_or_else(PoisonError::into_inner);
        let is_it = |outage: &&mut Outage| {
            (outage.from, outage.until) == (from, None) && outage.neighbour.as_deref() == Some(name)
        };
        if let Some(open) = outages.iter_mut().find(is_it) {
            open.until = until;
        } else if outages.len() < OUTAGES {
            // Records stay with the brokers, and are received afterwards.
            let neighbour = Some(name.to_owned());
            outages.push(Outage { network: "kafka", neighbour, from, until, carried: false });
        }
    }
}

/// Error of the client, which may pass.
#[derive(Clone, Debug)]
pub(super) struct ClientError {
    pub(super) code: RDKafkaErrorCode,
    pub(super) reason: String,
}

/// State of the connection of one client.
#[derive(Debug)]
pub(super) struct Watch {
    /// Brokers and role, such as `127.0.0.1:9092 (subscriptions)`.
    name: String,
    breaks: Arc<Breaks>,
    /// Whether an error of the connection has to be checked.
    is_suspected: AtomicBool,
    is_lost: AtomicBool,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    /// Last error since the connection worked.
    error: Option<ClientError>,
    /// Time of the first error that has to be checked.
    suspected: Option<Timestamp>,
    /// Begin of the present outage.
    lost: Option<(Timestamp, Instant)>,
    /// Time of the last request.
    probed: Option<Instant>,
}

impl Watch {
    pub(super) fn new(name: String, breaks: Arc<Breaks>) -> Watch {
        Watch {
            name,
            breaks,
            is_suspected: AtomicBool::new(false),
            is_lost: AtomicBool::new(false),
            state: Mutex::default(),
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Records an error of the client.
    pub(super) fn error(&self, error: &KafkaError, reason: &str) {
        use RDKafkaErrorCode as Code;
        let code = error.rdkafka_error_code().unwrap_or(Code::Unknown);
        let mut state = self.state();
        // That all brokers are down follows from an error that says more.
        if code != Code::AllBrokersDown || state.error.is_none() {
            state.error = Some(ClientError { code, reason: reason.to_owned() });
        }
        let is_of_connection = matches!(
            code,
            Code::AllBrokersDown
                | Code::BrokerTransportFailure
                | Code::Resolve
                | Code::Authentication
                | Code::SaslAuthenticationFailed
                | Code::OperationTimedOut
        );
        if is_of_connection {
            state.suspected.get_or_insert_with(now);
            self.is_suspected.store(true, Ordering::Release);
        }
    }

    /// Returns the last error since the connection worked.
    pub(super) fn last_error(&self) -> Option<ClientError> {
        self.state().error.clone()
    }

    /// Whether the connection is lost.
    pub(super) fn is_lost(&self) -> bool {
        self.is_lost.load(Ordering::Acquire)
    }

    /// Whether the connection is lost, or an error of it has to be checked.
    pub(super) fn is_suspected(&self) -> bool {
        self.is_suspected.load(Ordering::Acquire)
    }

    /// Checks a suspected or lost connection by `probe`, a request that returns whether it works; it is called only then.
    /// Returns whether the connection was restored.
    pub(super) fn look(&self, probe: impl FnOnce() -> bool) -> bool {
        if !self.is_suspected() {
            return false;
        }
        if self.state().probed.is_some_and(|probed| probed.elapsed() < AGAIN) {
            return false;
        }
        let is_there = probe();
        let mut state = self.state();
        state.probed = Some(Instant::now());
        match (is_there, state.lost) {
            (true, None) => {
                // One of several brokers, or an idle connection.
                (state.suspected, state.error) = (None, None);
                self.is_suspected.store(false, Ordering::Release);
                false
            }
            (true, Some((from, since))) => {
                (state.suspected, state.error, state.lost) = (None, None, None);
                self.is_suspected.store(false, Ordering::Release);
                self.is_lost.store(false, Ordering::Release);
                self.breaks.add(&self.name, from, Some(now()));
                let seconds = since.elapsed().as_secs_f64();
                tracing::info!(brokers = %self.name, "connected with Kafka again after {seconds:.1} s");
                true
            }
            (false, None) => {
                let from = state.suspected.unwrap_or_else(now);
                state.lost = Some((from, Instant::now()));
                self.is_lost.store(true, Ordering::Release);
                self.breaks.count.fetch_add(1, Ordering::Relaxed);
                self.breaks.add(&self.name, from, None);
                let reason = state.error.as_ref().map_or("it does not answer", |error| error.reason.as_str());
                tracing::warn!(brokers = %self.name, "the connection with Kafka broke: {reason}; connecting again");
                false
            }
            (false, Some(_)) => false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_outage_lasts_until_a_probe_succeeds() {
        let breaks = Arc::<Breaks>::default();
        let watch = Watch::new("a:1".to_owned(), Arc::clone(&breaks));
        let again = || watch.state().probed = None;
        assert!(!watch.look(|| unreachable!("nothing is suspected")));
        let error = KafkaError::Global(RDKafkaErrorCode::BrokerTransportFailure);
        watch.error(&error, "connection refused");
        assert!(!watch.look(|| true) && !watch.is_suspected() && !watch.is_lost());
        watch.error(&error, "connection refused");
        again();
        assert!(!watch.look(|| false) && watch.is_lost());
        assert!(!watch.look(|| unreachable!("the last one was just now")));
        again();
        assert!(!watch.look(|| false) && watch.is_lost());
        assert_eq!(breaks.outages()[0].until, None);
        again();
        assert!(watch.look(|| true) && !watch.is_lost() && !watch.is_suspected());
        assert!(matches!(&breaks.outages()[..], [one] if one.until.is_some()));
        assert_eq!(breaks.count.load(Ordering::Relaxed), 1);
    }
}
