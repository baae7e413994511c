//! This process's end of a network: on loopback, and found only by its children.

use std::hash::{BuildHasher, RandomState};
use std::net::TcpListener;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::time::{Duration, Instant};

use rondel_event::{Timestamp, TopicId};
use rondel_net::adapter::{Publisher, Receiver, Sample, Subscription, now};
use rondel_net::address::Address;
use rondel_net::networks::Networks;
use rondel_net::zenoh::Mode;
use serde::Serialize;

use crate::broker::Broker;
use crate::failure::{Failure, Result, io_error};
use crate::join::Join;

/// Time limit for every operation that should be immediate.
pub const PATIENCE: Duration = Duration::from_secs(20);
/// The time until both sides have discovered each other, once one of them has.
pub const SETTLE: Duration = Duration::from_millis(150);

/// A kind of network.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, clap::ValueEnum)]
#[serde(rename_all = "lowercase")]
pub enum Network {
    /// Zenoh, peer to peer over TCP.
    Zenoh,
    /// DDS, over UDP.
    Dds,
    /// MQTT, over TCP through a broker that is started for it.
    Mqtt,
}

impl Network {
    /// Returns the scheme of addresses.
    pub fn scheme(self) -> &'static str {
        match self {
            Network::Zenoh => "zenoh",
            Network::Dds => "dds",
            Network::Mqtt => "mqtt",
        }
    }

    /// Returns the name for people.
    pub fn name(self) -> &'static str {
        match self {
            Network::Zenoh => "Zenoh",
            Network::Dds => "DDS",
            Network::Mqtt => "MQTT",
        }
    }

    /// Returns the address of a topic.
    pub fn address(self, topic: &str) -> String {
        format!("{}:{topic}", self.scheme())
    }
}

/// A network that was joined.
pub struct Link {
    network: Network,
    networks: Networks,
    join: Vec<String>,
    /// Dropped last: it must outlive the connections to it.
    broker: Option<Broker>,
}

impl Link {
    /// Joins a network: listens on a free port of 127.0.0.1 on Zenoh, joins a random domain on the interface `lo` on
    /// DDS, starts a broker on MQTT.
    ///
    /// # Errors
    /// When the network cannot be joined.
    pub fn open(network: Network) -> Result<Link> {
        Link::open_as(network, None)
    }

    /// Joins a network as [`Link::open`] does, but on Zenoh as the router of its children, which are clients: they reach
    /// each other, too.
    ///
    /// # Errors
    /// When the network cannot be joined.
    pub fn open_for_all(network: Network) -> Result<Link> {
        Link::open_as(network, Some(Mode::Router))
    }

    fn open_as(network: Network, zenoh_mode: Option<Mode>) -> Result<Link> {
        let mut broker = None;
        let (arguments, join) = match network {
            Network::Zenoh => {
                let endpoint = format!("tcp/127.0.0.1:{}", free_port()?);
                let mut join = vec![format!("--zenoh-connect={endpoint}")];
                if zenoh_mode == Some(Mode::Router) {
                    join.push("--zenoh-mode=client".to_owned());
                }
                (Join { zenoh_listen: vec![endpoint], zenoh_mode, ..Join::default() }, join)
            }
            Network::Dds => {
                // Up to 100, its ports are below those that the system gives away by itself.
                let domain = 1 + RandomState::new().hash_one(std::process::id()) as u32 % 100;
                let join = vec![format!("--dds-domain={domain}"), "--dds-interface=lo".to_owned()];
                let interface = Some("lo".to_owned());
                (Join { dds_domain: domain, dds_interface: interface, ..Join::default() }, join)
            }
            Network::Mqtt => {
                let port = broker.insert(Broker::start()?).port;
                let at = rondel_net::mqtt::Broker { host: "127.0.0.1".to_owned(), port, tls: None };
                let join = vec![format!("--mqtt-broker={at}")];
                (Join { mqtt_broker: Some(at), ..Join::default() }, join)
            }
        };
        let address = parse(&network.address("bench"))?;
        let networks = arguments.open(&[&address], || false)?;
        Ok(Link { network, networks, join, broker })
    }

    /// Returns the port of the broker on 127.0.0.1, if there is one.
    pub fn broker_port(&self) -> Option<u16> {
        self.broker.as_ref().map(|broker| broker.port)
    }

    /// Returns the arguments with which a child joins.
    pub fn join(&self) -> impl Iterator<Item = String> + '_ {
        self.join.iter().cloned()
    }

    /// Returns the section of a deployment with which a child joins.
    pub fn section(&self) -> String {
        // `--zenoh-connect=ENDPOINT` is `connect: ENDPOINT` in the section `zenoh`.
        let setting = |option: &String| {
            let (name, value) = option.split_once('=')?;
            Some(format!("{}: {value}", name.rsplit('-').next()?))
        };
        let settings: Vec<String> = self.join.iter().filter_map(setting).collect();
        format!("{}: {{ {} }}\n", self.network.scheme(), settings.join(", "))
    }

    /// Makes a publisher.
    ///
    /// # Errors
    /// When the network refuses.
    pub fn publisher(&self, topic: &str, batching: bool) -> Result<Box<dyn Publisher>> {
        let address = parse(&self.network.address(topic))?;
        self.networks.publisher(&address, batching).map_err(Failure::Network)
    }

    /// Subscribes to a topic and counts its messages.
    ///
    /// # Errors
    /// When the network refuses.
    pub fn count(&self, topic: &str, goal: u64) -> Result<Counted> {
        let counter = Arc::new(Counter::new(goal));
        let subscription = self.subscribe(topic, 0, Arc::clone(&counter))?;
        Ok(Counted { counter, subscription })
    }

    /// Subscribes to a topic.
    ///
    /// # Errors
    /// When the network refuses.
    pub fn subscribe<R: Receiver>(
        &self,
        name: &str,
        topic: u32,
        receiver: Arc<R>,
    ) -> Result<Box<dyn Subscription>> {
        self.subscribe_to(&parse(&self.network.address(name))?, topic, receiver)
    }

    /// Subscribes to an address.
    ///
    /// # Errors
    /// When the network refuses.
    pub fn subscribe_to<R: Receiver>(
        &self,
        address: &Address,
        topic: u32,
        receiver: Arc<R>,
    ) -> Result<Box<dyn Subscription>> {
        self.networks.subscribe(address, TopicId(topic), receiver).map_err(Failure::Network)
    }

    /// Leaves the network.
    pub fn close(self) {
        // Messages that are still under way have been counted already.
        self.networks.close();
    }
}

/// Reads an address.
///
/// # Errors
/// [`Failure::Usage`].
pub fn parse(address: &str) -> Result<Address> {
    Address::parse(address).map_err(Failure::Usage)
}

/// Waits for a subscriber, and for [`SETTLE`] more, so that it has discovered the publisher as well.
///
/// # Errors
/// [`Failure::Late`].
pub fn wait_subscribed(publisher: &dyn Publisher) -> Result<()> {
    if !publisher.wait_matched(PATIENCE) {
        return Err(Failure::Late { what: "waiting for a subscriber".to_owned(), limit: PATIENCE });
    }
    std::thread::sleep(SETTLE);
    Ok(())
}

/// Returns a free port of 127.0.0.1.
///
/// # Errors
/// When there is none.
pub fn free_port() -> Result<u16> {
    let listener = TcpListener::bind("127.0.0.1:0").map_err(io_error("a free port"))?;
    Ok(listener.local_addr().map_err(io_error("a free port"))?.port())
}

/// A subscription and its counter.
pub struct Counted {
    /// The counter.
    pub counter: Arc<Counter>,
    /// The subscription. Dropping it ends it.
    pub subscription: Box<dyn Subscription>,
}

/// Counts messages, and notes the time when their number reaches a goal.
#[derive(Debug)]
pub struct Counter {
    received: AtomicU64,
    goal: u64,
    /// The arrival of the first message, in nanoseconds since the Unix epoch.
    first: AtomicU64,
    end: Mutex<Option<(Instant, Timestamp)>>,
    ended: Condvar,
}

impl Counter {
    /// Returns a counter with this goal.
    pub fn new(goal: u64) -> Counter {
        Counter {
            received: AtomicU64::new(0),
            goal,
            first: AtomicU64::new(0),
            end: Mutex::new(None),
            ended: Condvar::new(),
        }
    }

    /// Begins again at 0, before the goal is reached; returns the count so far.
    pub fn restart(&self) -> u64 {
        self.received.swap(0, Ordering::AcqRel)
    }

    /// Returns the number of messages so far.
    pub fn received(&self) -> u64 {
        self.received.load(Ordering::Acquire)
    }

    /// Waits until the goal is reached, and returns the time when it was.
    ///
    /// # Errors
    /// [`Failure::Count`] when the goal is not reached in time.
    pub fn wait(&self, what: &str, limit: Duration) -> Result<Instant> {
        let end = self.end.lock().unwrap_or_else(PoisonError::into_inner);
        let waited = self.ended.wait_timeout_while(end, limit, |end| end.is_none());
        let end = *waited.unwrap_or_else(PoisonError::into_inner).0;
        end.map(|(at, _)| at).ok_or_else(|| Failure::Count {
            what: format!("{what}, after {} s", limit.as_secs()),
            expected: self.goal,
            got: self.received(),
        })
    }

    /// Returns the seconds from the first message to the one that reached the goal.
    pub fn seconds(&self) -> f64 {
        let first = self.first.load(Ordering::Acquire) as i64;
        match *self.end.lock().unwrap_or_else(PoisonError::into_inner) {
            Some((_, last)) => (last.as_nanos() - first) as f64 / 1e9,
            None => 0.0,
        }
    }

    /// Counts samples.
    #[inline]
    pub fn add(&self, samples: &[Sample<'_>]) {
        let count = samples.len() as u64;
        let before = self.received.fetch_add(count, Ordering::AcqRel);
        if before == 0
            && let Some(first) = samples.first()
        {
            self.first.store(first.arrival().as_nanos().cast_unsigned(), Ordering::Release);
        }
        if before < self.goal && before + count >= self.goal {
            *self.end.lock().unwrap_or_else(PoisonError::into_inner) = Some((Instant::now(), now()));
            self.ended.notify_all();
        }
    }
}

impl Receiver for Counter {
    fn receive(&self, _: TopicId, samples: &[Sample<'_>]) {
        self.add(samples);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_counter_reaches_its_goal_once() {
        let counter = Counter::new(3);
        let samples = [Sample::new(b"x", None, None); 2];
        counter.add(&samples);
        assert!(counter.wait("test", Duration::from_millis(1)).is_err());
        counter.add(&samples);
        let at = counter.wait("test", Duration::ZERO).unwrap();
        counter.add(&samples);
        assert_eq!(counter.wait("test", Duration::ZERO).unwrap(), at);
        assert_eq!(counter.received(), 6);
        assert!(counter.seconds() >= 0.0);
    }

    #[test]
    fn addresses_name_their_network() {
        assert_eq!(Network::Dds.address("a/b"), "dds:a/b");
        assert!(parse(&Network::Zenoh.address("a/b")).is_ok());
        assert!(free_port().unwrap() > 0);
    }
}
