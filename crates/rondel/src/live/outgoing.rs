//! Sending messages from a file: publishers, a schedule, and delivery statistics.

use std::ops::ControlFlow;
use std::sync::Arc;
use std::sync::mpsc::{self, RecvTimeoutError};
use std::time::{Duration, Instant};

use rondel_decode::schema::Schema;
use rondel_net::adapter::{Outage, PublishError, Publisher};

use crate::deployment::Address;
use crate::live::losses::{Seen, Unconfirmed, Undelivered, outage_text};
use crate::live::networks::Networks;
use crate::live::signals::StopFlag;
use crate::output::time_text::TimeText;
use crate::warn;

/// The longest sleep, so that a signal ends it soon.
const NAP: Duration = Duration::from_millis(100);
/// Interval of looking for losses.
const LOOK: Duration = Duration::from_secs(1);
/// Time limit for delivering sent messages at the end.
const FLUSH: Duration = Duration::from_secs(10);
/// The same once a signal has requested the end.
const FLUSH_STOPPED: Duration = Duration::from_secs(2);
/// Time for a step that ends at its time limit.
const GRACE: Duration = Duration::from_millis(200);
/// Maximum number of addresses in one warning.
const NAMED: usize = 5;

/// Publishers at addresses, with statistics of their messages.
pub struct Outgoing {
    /// Dropped before the networks.
    routes: Vec<Route>,
    undelivered: Undelivered,
    seen: Seen,
    looked: Instant,
    failed: u64,
    stop: StopFlag,
    /// Whether a message waits until the broker accepts it or the command has to end.
    is_patient: bool,
    networks: Networks,
}

/// A publisher at one address, with its counts.
struct Route {
    address: String,
    publisher: Arc<dyn Publisher>,
    published: u64,
    failed: u64,
    is_matched: bool,
}

/// Statistics of the messages sent to one address.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sent {
    /// The address.
    pub address: String,
    /// Number of messages that the network accepted.
    pub published: u64,
    /// Number of messages that the network refused.
    pub failed: u64,
    /// Whether the network has ever reported a subscriber.
    pub is_matched: bool,
}

/// Statistics of all sent messages.
pub struct Ended {
    /// Statistics per address, in the order in which addresses were added.
    pub sent: Vec<Sent>,
    /// Messages that consumers did not accept in time.
    pub undelivered: Undelivered,
    /// Messages that no consumer has confirmed.
    pub unconfirmed: Unconfirmed,
    /// The connections that were lost.
    pub outages: Vec<Outage>,
    /// Whether every accepted message was delivered.
    pub is_delivered: bool,
}

impl Outgoing {
    /// Creates a sender without publishers. If `is_patient`, a message waits until the MQTT broker accepts it or `stop`
    /// is set.
    pub fn new(networks: Networks, stop: StopFlag, is_patient: bool) -> Outgoing {
        Outgoing {
            routes: Vec::new(),
            undelivered: Undelivered::default(),
            seen: Seen::new(Undelivered::default(), Vec::new()),
            looked: Instant::now(),
            failed: 0,
            stop,
            is_patient,
            networks,
        }
    }

    /// Adds a publisher of messages of this type at an address, and returns its index. A `batching` publisher must be
    /// [released](Outgoing::release).
    ///
    /// # Errors
    /// The reason, with the address.
    pub fn add(
        &mut self,
        address: &Address,
        schema: Option<&Schema>,
        batching: bool,
    ) -> Result<usize, String> {
        let publisher: Arc<dyn Publisher> = Arc::from(self.networks.publisher_of(address, schema, batching)?);
        if self.is_patient && matches!(address, Address::Mqtt(..) | Address::Kafka(..)) {
            publisher.hand_back();
        }
        let address = address.to_string();
        self.undelivered.add(address.clone(), publisher.drops());
        self.routes.push(Route { address, publisher, published: 0, failed: 0, is_matched: false });
        Ok(self.routes.len() - 1)
    }

    /// Waits up to `limit` until every address has a subscriber; then warns of addresses without one.
    pub fn wait_for_subscribers(&mut self, limit: Duration, stop: &StopFlag) {
        let deadline = Instant::now() + limit;
        while !stop.is_set() {
            let left = deadline.saturating_duration_since(Instant::now());
            let Some(route) = self.routes.iter_mut().find(|route| !route.is_matched) else { return };
            route.is_matched = route.publisher.wait_matched(left.min(NAP));
            self.look_for_subscribers();
            if left.is_zero() {
                break;
            }
        }
        let unmatched: Vec<&str> = self
            .routes
            .iter()
            .filter(|route| !route.is_matched)
            .map(|route| route.address.as_str())
            .collect();
        if stop.is_set() || unmatched.is_empty() {
            return;
        }
        let more = match unmatched.len().saturating_sub(NAMED) {
            0 => String::new(),
            more => format!(" and {more} more"),
        };
        let named = unmatched[..unmatched.len().min(NAMED)].join(", ");
        warn(&format!("no subscriber on {named}{more} after {} s; publishing anyway", limit.as_secs_f64()));
    }

    fn look_for_subscribers(&mut self) {
        for route in self.routes.iter_mut().filter(|route| !route.is_matched) {
            route.is_matched = route.publisher.is_matched();
        }
    }

    /// Publishes a message on the route with this index. Messages that the network refuses are counted; the first one
    /// causes a warning.
    pub fn publish(&mut self, route: usize, payload: &[u8]) {
        let Some(Route { address, publisher, published, failed, .. }) = self.routes.get_mut(route) else {
            return;
        };
        let sent = loop {
            match publisher.publish(payload) {
                // The broker is not reachable. Other networks wait by themselves.
                Err(PublishError::Slow) if self.is_patient && !self.stop.is_set() => std::thread::sleep(NAP),
                sent => break sent,
            }
        };
        match sent {
            Ok(()) => *published += 1,
            Err(error) => {
                *failed += 1;
                self.failed += 1;
                if self.failed == 1 {
                    warn(&format!(
                        "cannot publish a message on {address}: {error}; further ones are only counted"
                    ));
                }
            }
        }
    }

    /// Number of messages that the networks accepted.
    pub fn published(&self) -> u64 {
        self.routes.iter().map(|route| route.published).sum()
    }

    /// Number of messages that the networks refused.
    pub fn failed(&self) -> u64 {
        self.failed
    }

    /// Sends messages that the route with this index holds back to fill a packet.
    pub fn release_of(&self, route: usize) {
        if let Some(route) = self.routes.get(route) {
            route.publisher.release();
        }
    }

    /// Sends messages that publishers hold back to fill a packet.
    pub fn release(&self) {
        self.routes.iter().for_each(|route| route.publisher.release());
    }

    /// Warns of lost connections and looks for new subscribers; at most once a second.
    ///
    /// # Errors
    /// The reason why a network was given up.
    pub fn look(&mut self) -> Result<(), String> {
        if self.looked.elapsed() < LOOK {
            return Ok(());
        }
        self.looked = Instant::now();
        self.look_for_subscribers();
        // Messages are counted; the networks warn of the first that is dropped.
        self.seen.warn(Vec::new(), &self.networks);
        self.networks.failure().map_or(Ok(()), Err)
    }

    /// Waits until sent messages are delivered, and leaves the networks. A signal shortens both.
    pub fn end(mut self) -> Ended {
        self.release();
        self.look_for_subscribers();
        let publishers: Vec<_> = self.routes.iter().map(|route| Arc::clone(&route.publisher)).collect();
        let is_taken = within(EndLimit::new(FLUSH, self.stop.clone()), move |limit| {
            let deadline = Instant::now() + limit;
            let left = || deadline.saturating_duration_since(Instant::now());
            // Each of them, also after one whose messages were not taken.
            publishers.iter().filter(|publisher| !publisher.flush(left())).count() == 0
        });
        let mut unconfirmed = Unconfirmed::default();
        for Route { address, publisher, .. } in &self.routes {
            unconfirmed.add(address, &**publisher);
        }
        let Outgoing { routes, undelivered, networks, stop, .. } = self;
        let sent = routes.into_iter().map(|Route { address, published, failed, is_matched, .. }| Sent {
            address,
            published,
            failed,
            is_matched,
        });
        let sent = sent.collect();
        let outages = networks.outages();
        let is_left = within(EndLimit::new(FLUSH, stop), move |limit| networks.close_within(limit));
        let is_delivered = is_taken && is_left && undelivered.count() + unconfirmed.count() == 0;
        Ended { sent, undelivered, unconfirmed, outages, is_delivered }
    }
}

/// The time limit of a step at the end, which a signal shortens to [`FLUSH_STOPPED`] from then on.
struct EndLimit {
    deadline: Instant,
    stop: StopFlag,
    is_stopped: bool,
}

impl EndLimit {
    fn new(limit: Duration, stop: StopFlag) -> EndLimit {
        EndLimit { deadline: Instant::now() + limit, stop, is_stopped: false }
    }

    /// Time that is left.
    fn left(&mut self) -> Duration {
        let now = Instant::now();
        if !self.is_stopped && self.stop.is_set() {
            self.is_stopped = true;
            self.deadline = self.deadline.min(now + FLUSH_STOPPED);
        }
        self.deadline.saturating_duration_since(now)
    }
}

/// Calls a function with its time limit on another thread. Returns whether that returned true in time.
fn within(mut limit: EndLimit, work: impl FnOnce(Duration) -> bool + Send + 'static) -> bool {
    let (ended, outcome) = mpsc::channel();
    let most = limit.left();
    let work = move || {
        // The receiver may have stopped waiting.
        _ = ended.send(work(most));
    };
    if std::thread::Builder::new().name("end".into()).spawn(work).is_err() {
        return false;
    }
    loop {
        let left = limit.left();
        match outcome.recv_timeout(if left.is_zero() { GRACE } else { left.min(NAP) }) {
            Ok(outcome) => return outcome,
            Err(RecvTimeoutError::Timeout) if !left.is_zero() => {}
            // The process is about to end.
            Err(_) => return false,
        }
    }
}

impl Ended {
    /// Returns a sentence for each address with undelivered or unconfirmed messages, and for each lost connection.
    pub fn sentences(&self) -> Vec<String> {
        let mut times = TimeText::default();
        let outages: Vec<String> =
            self.outages.iter().map(|outage| outage_text(outage, &mut times)).collect();
        let lost = self.undelivered.sentences().into_iter().chain(self.unconfirmed.sentences());
        lost.chain(outages).collect()
    }
}

/// An absolute schedule: a late message does not delay later ones.
#[derive(Clone, Copy, Debug)]
pub struct Schedule(Instant);

impl Schedule {
    /// Creates a schedule that begins now.
    pub fn begin() -> Schedule {
        Schedule(Instant::now())
    }

    /// Time since the beginning.
    pub fn elapsed(&self) -> Duration {
        self.0.elapsed()
    }

    /// Waits until `after` has passed since the beginning. `meanwhile` is called before every sleep and may end the
    /// wait. Returns the delay behind the schedule, or `None` if the wait was ended.
    pub fn wait(
        &self,
        after: Duration,
        stop: &StopFlag,
        mut meanwhile: impl FnMut() -> ControlFlow<()>,
    ) -> Option<Duration> {
        loop {
            if stop.is_set() {
                return None;
            }
            let elapsed = self.elapsed();
            let Some(left) = after.checked_sub(elapsed).filter(|left| !left.is_zero()) else {
                return Some(elapsed.saturating_sub(after));
            };
            if meanwhile().is_break() {
                return None;
            }
            std::thread::sleep(left.min(NAP));
        }
    }
}
