//! A participant of the chain.

use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use clap::Args;
use rondel_decode::schema::Library;
use rondel_event::TopicId;
use rondel_net::adapter::{Publisher, Receiver, Sample, now};
use rondel_net::address::{Address, Encoding};
use rondel_net::networks::Networks;
use rondel_net::ros2::{self, MessageType, TypeHash};
use rondel_net::zenoh;

use super::message::{self, TYPE};
use crate::failure::{Failure, Result};
use crate::link::{Counter, PATIENCE, wait_subscribed};
use crate::peer::stop_signal;
use crate::place::Place;
use crate::say;

/// Pass the messages of a chain on, or begin it
#[derive(Debug, Args)]
pub struct Stage {
    /// Be a node of this name
    #[arg(long)]
    node: String,
    /// Pass on the messages of this topic of ROS 2; without it, be the sensor
    #[arg(long)]
    input: Option<String>,
    /// Publish on this topic of ROS 2
    #[arg(long)]
    output: String,
    /// Stop after N messages
    #[arg(long)]
    count: u64,
    /// As the sensor, publish a message every N microseconds
    #[arg(long, default_value_t = 10_000)]
    period: u64,
    /// Compute for N microseconds before a message is passed on
    #[arg(long, default_value_t = 0)]
    work: u64,
    /// As the actuator, print number, stamp and time of every message at the end
    #[arg(long)]
    actuator: bool,
    /// Join this domain of DDS
    #[arg(long)]
    dds: Option<u32>,
    /// Use this network interface for DDS
    #[arg(long, default_value = "lo")]
    interface: String,
    /// Join the router of Zenoh at this endpoint
    #[arg(long)]
    zenoh: Option<String>,
    /// Listen for other nodes on a free port of this address
    #[arg(long, default_value = "127.0.0.1")]
    listen: String,
}

/// Passes messages on.
struct Relay {
    publisher: Box<dyn Publisher>,
    counter: Counter,
    work: Duration,
    /// Number, stamp and time of the messages, if they are recorded.
    outputs: Option<Mutex<Vec<[i64; 3]>>>,
}

impl Receiver for Relay {
    fn receive(&self, _: TopicId, samples: &[Sample<'_>]) {
        for sample in samples {
            spin(self.work);
            if let (Some(outputs), Some((number, stamp))) = (&self.outputs, message::read(sample.payload)) {
                let output = [number.cast_signed(), stamp, now().as_nanos()];
                outputs.lock().unwrap_or_else(PoisonError::into_inner).push(output);
            }
            if let Err(error) = self.publisher.publish(sample.payload) {
                say(&format!("a message could not be passed on: {error}"));
            }
        }
        self.counter.add(samples);
    }
}

/// Computes for some time.
fn spin(time: Duration) {
    let begin = Instant::now();
    while begin.elapsed() < time {
        std::hint::spin_loop();
    }
}

fn network(error: impl std::fmt::Display) -> Failure {
    Failure::Network(error.to_string())
}

impl Stage {
    /// Passes messages on until all have come, or a signal.
    ///
    /// # Errors
    /// When the network cannot be used.
    pub fn run(&self) -> Result<()> {
        let networks = self.join()?;
        let of = self.address(&self.output)?;
        let schema = Library::ros().and_then(|library| library.schema(TYPE)).map_err(network)?;
        let publisher = networks.publisher_of(&of, Some(&schema), false).map_err(network)?;
        let stopped = match &self.input {
            None => self.sense(&*publisher).map(|()| drop(publisher)),
            Some(input) => self.relay(&networks, input, publisher),
        };
        networks.close();
        stopped
    }

    fn join(&self) -> Result<Networks> {
        let place = match (&self.dds, &self.zenoh) {
            (Some(domain), None) => Place::Dds(*domain, self.interface.clone()),
            (None, Some(endpoint)) => Place::ZenohRouter(endpoint.clone()),
            _ => return Err(Failure::Usage("write --dds or --zenoh".to_owned())),
        };
        let mut settings = place.settings(&self.node)?;
        if let Some(of_zenoh) = &mut settings.zenoh {
            // Nodes of rmw_zenoh are peers: they find each other through the router, and connect directly.
            of_zenoh.mode = Some(zenoh::Mode::Peer);
            of_zenoh.listen = vec![format!("tcp/{}:0", self.listen)];
        }
        Networks::open(&settings, Some(PATIENCE), || false, |_| {}).map_err(network)
    }

    fn address(&self, topic: &str) -> Result<Address> {
        let schema = Library::ros().and_then(|library| library.schema(TYPE)).map_err(network)?;
        let hash = schema.rihs01().map(|hash| TypeHash::parse(&hash)).transpose().map_err(network)?;
        let message_type = MessageType::parse(TYPE).map_err(network)?;
        let topic = ros2::Topic::parse(topic).map_err(network)?.typed(message_type, hash);
        Ok(Address::Ros2(Box::new(topic), Encoding::CDR))
    }

    /// Publishes all messages.
    fn sense(&self, publisher: &dyn Publisher) -> Result<()> {
        let stop = stop_signal()?;
        publisher.wait_matched(PATIENCE);
        say("ready");
        wait_subscribed(publisher)?;
        let (begin, period) = (Instant::now(), Duration::from_micros(self.period));
        for number in 0..self.count {
            let due = begin + period * u32::try_from(number).unwrap_or(u32::MAX);
            std::thread::sleep(due.saturating_duration_since(Instant::now()));
            if stop.load(Ordering::Relaxed) {
                break;
            }
            publisher.publish(&message::write(number, now().as_nanos())).map_err(network)?;
        }
        publisher.flush(PATIENCE);
        Ok(())
    }

    /// Passes all messages on.
    fn relay(&self, networks: &Networks, input: &str, publisher: Box<dyn Publisher>) -> Result<()> {
        let stop = stop_signal()?;
        if !self.actuator {
            // The next participant is there already.
            wait_subscribed(&*publisher)?;
        }
        let relay = Arc::new(Relay {
            publisher,
            counter: Counter::new(self.count),
            work: Duration::from_micros(self.work),
            outputs: self.actuator.then(Mutex::default),
        });
        let from = self.address(input)?;
        let subscription = networks.subscribe(&from, TopicId(0), Arc::clone(&relay)).map_err(network)?;
        say("ready");
        while !stop.load(Ordering::Relaxed)
            && relay.counter.wait("stage", Duration::from_millis(100)).is_err()
        {}
        subscription.close(PATIENCE);
        relay.publisher.flush(PATIENCE);
        if let Some(outputs) = &relay.outputs {
            let outputs = outputs.lock().unwrap_or_else(PoisonError::into_inner);
            say(&serde_json::json!({ "outputs": *outputs }).to_string());
        }
        Ok(())
    }
}
