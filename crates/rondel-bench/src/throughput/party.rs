//! The participants of the patterns: sources publish, sinks count.

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use clap::Args;
use rondel_event::{TimeUnit, Timestamp, TopicId};
use rondel_net::adapter::{Publisher, Receiver, Sample, now};
use rondel_net::networks::Networks;
use rondel_net::progress::Progress;
use serde_json::json;

use super::LIMIT;
use crate::begin::Begin;
use crate::failure::{Failure, Result};
use crate::join::Join;
use crate::link::{Counter, parse, wait_subscribed};
use crate::say;

/// The time from one greeting to the next.
const GREETING: Duration = Duration::from_millis(20);
/// The silence after which no more messages are expected.
const QUIET: Duration = Duration::from_millis(100);
/// The number of messages of a publisher from one marker to the next.
const BETWEEN: u64 = 100;
/// The first byte of a greeting, with which no message begins.
const MARK: u8 = b'?';

/// Greet until SIGUSR1 comes, then publish messages
#[derive(Debug, Args)]
pub struct Source {
    /// Publish on this address
    #[arg(long)]
    topic: String,
    /// Greet with this number, which no other source of the topic has
    #[arg(long)]
    number: usize,
    /// Publish N messages
    #[arg(long)]
    count: u64,
    /// Publish messages of N bytes
    #[arg(long)]
    bytes: usize,
    #[command(flatten)]
    network: Join,
}

/// Publish messages with their times from the signal SIGUSR1 on
#[derive(Debug, Args)]
pub struct Feed {
    /// Publish on this address
    #[arg(long)]
    topic: String,
    /// Publish N messages
    #[arg(long)]
    count: u64,
    /// Publish progress markers on this address
    #[arg(long, requires = "name")]
    progress: Option<String>,
    /// Name the topic in markers
    #[arg(long)]
    name: Option<String>,
    #[command(flatten)]
    network: Join,
}

/// The markers of a publisher.
struct Markers {
    publisher: Box<dyn Publisher>,
    progress: Progress,
}

impl Markers {
    fn complete(&mut self, time: Timestamp) -> Result<()> {
        publish(&*self.publisher, self.progress.complete(time).as_bytes())
    }
}

impl Feed {
    /// Publishes.
    ///
    /// # Errors
    /// When the network refuses a message, or does not deliver all in time, or the signal does not come.
    pub fn run(&self) -> Result<()> {
        let begin = Begin::register()?;
        let address = parse(&self.topic)?;
        let of_markers = self.progress.as_deref().map(parse).transpose()?;
        let addresses: Vec<_> = std::iter::once(&address).chain(&of_markers).collect();
        let networks = self.network.open(&addresses, || false)?;
        let publisher = networks.publisher(&address, true).map_err(Failure::Network)?;
        wait_subscribed(&*publisher)?;
        let mut markers = None;
        if let Some(of_markers) = &of_markers {
            // A marker waits for no batch.
            let publisher = networks.publisher(of_markers, false).map_err(Failure::Network)?;
            wait_subscribed(&*publisher)?;
            let name = self.name.as_deref().unwrap_or_default();
            markers =
                Some(Markers { publisher, progress: Progress::new(name).in_unit(TimeUnit::Microseconds) });
        }
        say("ready");
        begin.wait()?;
        self.feed(&*publisher, markers.as_mut())?;
        // The subscriber leaves once it has all messages, and may miss the last marker.
        leave(publisher, markers, networks)
    }

    fn feed(&self, publisher: &dyn Publisher, mut markers: Option<&mut Markers>) -> Result<()> {
        let mut us = now().as_nanos() / 1000;
        if let Some(markers) = &mut markers {
            markers.complete(in_us(us))?;
        }
        let mut payload = String::new();
        for number in 1..=self.count {
            // No two messages of a publisher have the same time.
            us = (now().as_nanos() / 1000).max(us + 1);
            payload.clear();
            // Writing to a string does not fail.
            let _ = write!(payload, "{{\"t\":{us}}}");
            publish(publisher, payload.as_bytes())?;
            if let Some(markers) = &mut markers {
                markers.progress.sent(in_us(us));
                if number.is_multiple_of(BETWEEN) || number == self.count {
                    markers.complete(in_us(us))?;
                }
            }
        }
        Ok(())
    }
}

fn in_us(us: i64) -> Timestamp {
    Timestamp::from_nanos(us * 1000)
}

fn publish(publisher: &dyn Publisher, payload: &[u8]) -> Result<()> {
    publisher.publish(payload).map_err(|error| Failure::Network(error.to_string()))?;
    Ok(())
}

/// Leaves the network once all messages are delivered.
fn leave(publisher: Box<dyn Publisher>, markers: Option<Markers>, networks: Networks) -> Result<()> {
    publisher.release();
    let is_delivered = publisher.flush(LIMIT);
    drop((publisher, markers));
    networks.close();
    let late = || Failure::Late { what: "delivering messages".to_owned(), limit: LIMIT };
    is_delivered.then_some(()).ok_or_else(late)
}

impl Source {
    /// Publishes.
    ///
    /// # Errors
    /// When the network refuses a message, or does not deliver all in time, or the signal does not come.
    pub fn run(&self) -> Result<()> {
        let begin = Begin::register()?;
        let address = parse(&self.topic)?;
        let networks = self.network.open(&[&address], || false)?;
        let publisher = networks.publisher(&address, true).map_err(Failure::Network)?;
        let greeting = format!("{}{}", char::from(MARK), self.number);
        say("ready");
        begin.wait_with(GREETING, || {
            publish(&*publisher, greeting.as_bytes())?;
            publisher.release();
            Ok(())
        })?;
        let payload = vec![b'x'; self.bytes];
        for _ in 0..self.count {
            publish(&*publisher, &payload)?;
        }
        leave(publisher, None, networks)
    }
}

/// Count the messages of topics, and print the seconds from the first to the last
#[derive(Debug, Args)]
pub struct Sink {
    /// Subscribe to this address; repeat it for more of them
    #[arg(long, required = true)]
    topic: Vec<String>,
    /// Print "greeted" once this number of sources has greeted
    #[arg(long)]
    sources: usize,
    /// Expect N messages
    #[arg(long)]
    count: u64,
    #[command(flatten)]
    network: Join,
}

/// Counts messages, and notes greetings.
struct Listener {
    counter: Counter,
    sources: usize,
    known: Mutex<BTreeSet<Box<[u8]>>>,
}

impl Listener {
    #[cold]
    fn greeted(&self, greeting: &[u8]) {
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        if known.insert(greeting.into()) && known.len() == self.sources {
            say("greeted");
        }
    }
}

impl Receiver for Listener {
    fn receive(&self, _: TopicId, samples: &[Sample<'_>]) {
        let is_greeting = |sample: &Sample<'_>| sample.payload.first() == Some(&MARK);
        if !samples.iter().any(is_greeting) {
            return self.counter.add(samples);
        }
        for sample in samples {
            if is_greeting(sample) {
                self.greeted(sample.payload);
            } else {
                self.counter.add(std::slice::from_ref(sample));
            }
        }
    }
}

impl Sink {
    /// Counts.
    ///
    /// # Errors
    /// When the network cannot be used, or messages are missing.
    pub fn run(&self) -> Result<()> {
        let addresses = self.topic.iter().map(|topic| parse(topic)).collect::<Result<Vec<_>>>()?;
        let networks = self.network.open(&addresses.iter().collect::<Vec<_>>(), || false)?;
        let counter = Counter::new(self.count);
        let listener = Arc::new(Listener { counter, sources: self.sources, known: Mutex::default() });
        let subscriptions = (0_u32..)
            .zip(&addresses)
            .map(|(topic, address)| networks.subscribe(address, TopicId(topic), Arc::clone(&listener)))
            .collect::<std::result::Result<Vec<_>, _>>()
            .map_err(Failure::Network)?;
        say("ready");
        listener.counter.wait("messages", LIMIT)?;
        // Messages that come twice. Each subscription receives while the others are waited for.
        let quiet = QUIET / u32::try_from(subscriptions.len()).unwrap_or(u32::MAX).max(1);
        for subscription in &subscriptions {
            subscription.drain(quiet, LIMIT);
        }
        for subscription in &subscriptions {
            subscription.close(LIMIT);
        }
        drop(subscriptions);
        networks.close();
        let (received, seconds) = (listener.counter.received(), listener.counter.seconds());
        say(&json!({ "received": received, "seconds": seconds }).to_string());
        Ok(())
    }
}
