//! Sending messages from a file: publishers, a schedule, and what became of the messages.

use std::ops::ControlFlow;
use std::time::{Duration, Instant};

use rondel_decode::schema::Schema;
use rondel_net::adapter::{Outage, PublishError, Publisher};

use crate::deployment::Address;
use crate::losses::{Seen, Unconfirmed, Undelivered, outage_text};
use crate::networks::Networks;
use crate::pipeline::sentence;
use crate::signals::Asked;
use crate::time_text::TimeText;
use crate::warn;

/// The longest sleep, so that a signal ends it soon.
const NAP: Duration = Duration::from_millis(100);
/// Interval of looking for losses.
const LOOK: Duration = Duration::from_secs(1);
/// The time limits for delivering what was sent at the end, and once the command is asked to end.
const FLUSH: Duration = Duration::from_secs(10);
const FLUSH_ASKED: Duration = Duration::from_secs(2);
/// The addresses that one warning names.
const NAMED: usize = 5;

/// Publishers at addresses, and what became of their messages.
pub struct Outgoing {
    /// Dropped before the networks.
    outlets: Vec<Outlet>,
    undelivered: Undelivered,
    seen: Seen,
    looked: Instant,
    failed: u64,
    asked: Asked,
    /// Whether a message waits for a broker until it is taken or the command is asked to end.
    is_patient: bool,
    networks: Networks,
}

struct Outlet {
    address: String,
    publisher: Box<dyn Publisher>,
    published: u64,
    failed: u64,
    is_matched: bool,
}

/// What became of the messages of one address.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sent {
    /// The address.
    pub address: String,
    /// The number of messages that the network took.
    pub published: u64,
    /// The number of messages that it refused.
    pub failed: u64,
    /// Whether somebody has ever subscribed, as far as the network says so.
    pub is_matched: bool,
}

/// What became of all messages.
pub struct Ended {
    /// By address, in the order in which they were added.
    pub sent: Vec<Sent>,
    /// What consumers did not accept in time.
    pub undelivered: Undelivered,
    /// What nobody has confirmed.
    pub unconfirmed: Unconfirmed,
    /// The connections that were lost.
    pub outages: Vec<Outage>,
    /// Whether everything that the networks took was delivered.
    pub is_delivered: bool,
}

impl Outgoing {
    /// Without publishers yet. If it `is_patient`, a message waits for an MQTT broker until that takes it, or the command
    /// is asked to end.
    pub fn new(networks: Networks, asked: Asked, is_patient: bool) -> Outgoing {
        Outgoing {
            outlets: Vec::new(),
            undelivered: Undelivered::default(),
            seen: Seen::new(&Undelivered::default(), Vec::new()),
            looked: Instant::now(),
            failed: 0,
            asked,
            is_patient,
            networks,
        }
    }

    /// Adds a publisher at an address, of messages of this type, and returns its number. One that is `batching` must be
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
        let publisher = self.networks.publisher_of(address, schema, batching)?;
        if self.is_patient && matches!(address, Address::Mqtt(..)) {
            publisher.hand_back();
        }
        let address = address.to_string();
        self.undelivered.add(address.clone(), publisher.drops());
        self.outlets.push(Outlet { address, publisher, published: 0, failed: 0, is_matched: false });
        Ok(self.outlets.len() - 1)
    }

    /// Waits until every address has a subscriber, for a limited time, after which it warns of those without.
    pub fn wait_for_subscribers(&mut self, limit: Duration, asked: &Asked) {
        let deadline = Instant::now() + limit;
        while !asked.yet() {
            let left = deadline.saturating_duration_since(Instant::now());
            let Some(outlet) = self.outlets.iter_mut().find(|outlet| !outlet.is_matched) else { return };
            outlet.is_matched = outlet.publisher.wait_matched(left.min(NAP));
            self.look_for_subscribers();
            if left.is_zero() {
                break;
            }
        }
        let unmatched: Vec<&str> = self
            .outlets
            .iter()
            .filter(|outlet| !outlet.is_matched)
            .map(|outlet| outlet.address.as_str())
            .collect();
        if asked.yet() || unmatched.is_empty() {
            return;
        }
        let more = match unmatched.len().saturating_sub(NAMED) {
            0 => String::new(),
            more => format!(" and {more} more"),
        };
        let named = unmatched[..unmatched.len().min(NAMED)].join(", ");
        warn(&format!(
            "nobody has subscribed to {named}{more} after {} s; publishing anyway",
            limit.as_secs_f64()
        ));
    }

    fn look_for_subscribers(&mut self) {
        for outlet in self.outlets.iter_mut().filter(|outlet| !outlet.is_matched) {
            outlet.is_matched = outlet.publisher.is_matched();
        }
    }

    /// Publishes a message at the address with this number. The first one that the network refuses is shown, all are
    /// counted.
    pub fn publish(&mut self, outlet: usize, payload: &[u8]) {
        let Some(Outlet { address, publisher, published, failed, .. }) = self.outlets.get_mut(outlet) else {
            return;
        };
        let sent = loop {
            match publisher.publish(payload) {
                // A broker that is gone: the others wait in their networks.
                Err(PublishError::Slow) if self.is_patient && !self.asked.yet() => std::thread::sleep(NAP),
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

    /// The number of messages that the networks took.
    pub fn published(&self) -> u64 {
        self.outlets.iter().map(|outlet| outlet.published).sum()
    }

    /// The number of messages that the networks refused.
    pub fn failed(&self) -> u64 {
        self.failed
    }

    /// Sends what the publisher with this number holds back to fill a packet.
    pub fn release_of(&self, outlet: usize) {
        if let Some(outlet) = self.outlets.get(outlet) {
            outlet.publisher.release();
        }
    }

    /// Sends what publishers hold back to fill a packet.
    pub fn release(&self) {
        self.outlets.iter().for_each(|outlet| outlet.publisher.release());
    }

    /// Warns of connections that were lost, and notes who has subscribed; at most once a second.
    ///
    /// # Errors
    /// Why a network was given up.
    pub fn look(&mut self) -> Result<(), String> {
        if self.looked.elapsed() < LOOK {
            return Ok(());
        }
        self.looked = Instant::now();
        self.look_for_subscribers();
        // Messages are counted; the networks warn of the first that is dropped.
        let notices = self.seen.notices(&Undelivered::default(), Vec::new(), self.networks.outages());
        notices.iter().for_each(|notice| warn(&sentence(notice)));
        self.networks.failure().map_or(Ok(()), Err)
    }

    /// Waits for what is on its way, and leaves the networks.
    pub fn end(mut self) -> Ended {
        self.release();
        self.look_for_subscribers();
        let limit = if self.asked.yet() { FLUSH_ASKED } else { FLUSH };
        let deadline = Instant::now() + limit;
        let mut is_taken = true;
        for outlet in &self.outlets {
            is_taken &= outlet.publisher.flush(deadline.saturating_duration_since(Instant::now()));
        }
        let mut unconfirmed = Unconfirmed::default();
        for Outlet { address, publisher, .. } in &self.outlets {
            unconfirmed.add(address, &**publisher);
        }
        let Outgoing { outlets, undelivered, networks, .. } = self;
        let sent = outlets.into_iter().map(|Outlet { address, published, failed, is_matched, .. }| Sent {
            address,
            published,
            failed,
            is_matched,
        });
        let sent = sent.collect();
        let outages = networks.outages();
        let is_left = networks.close_within(limit);
        let is_delivered = is_taken && is_left && undelivered.count() + unconfirmed.count() == 0;
        Ended { sent, undelivered, unconfirmed, outages, is_delivered }
    }
}

impl Ended {
    /// A sentence for each address with messages that were not delivered or not confirmed, and for each lost connection.
    pub fn sentences(&self) -> Vec<String> {
        let mut times = TimeText::default();
        let outages: Vec<String> =
            self.outages.iter().map(|outage| outage_text(outage, &mut times)).collect();
        let lost = self.undelivered.sentences().into_iter().chain(self.unconfirmed.sentences());
        lost.chain(outages).collect()
    }
}

/// An absolute schedule: a message that is late does not delay those after it.
#[derive(Clone, Copy, Debug)]
pub struct Schedule(Instant);

impl Schedule {
    /// A schedule that begins now.
    pub fn begin() -> Schedule {
        Schedule(Instant::now())
    }

    /// How long ago it began.
    pub fn elapsed(&self) -> Duration {
        self.0.elapsed()
    }

    /// Waits until so long after the beginning; calls a function before every nap, which may end waiting. Returns how
    /// late it is, or `None` once the command is asked to end.
    pub fn wait(
        &self,
        after: Duration,
        asked: &Asked,
        mut meanwhile: impl FnMut() -> ControlFlow<()>,
    ) -> Option<Duration> {
        loop {
            if asked.yet() {
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
