//! The participants of the patterns: sources publish, sinks count.

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use clap::Args;
use rondel_event::TopicId;
use rondel_net::adapter::{Publisher, Receiver, Sample};
use serde_json::json;
use signal_hook::consts::SIGUSR1;
use signal_hook::flag;

use super::LIMIT;
use crate::failure::{Failure, Result, io_error};
use crate::join::Join;
use crate::link::{Counter, parse};
use crate::say;

/// The time from one greeting to the next.
const GREETING: Duration = Duration::from_millis(20);
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

fn publish(publisher: &dyn Publisher, payload: &[u8]) -> Result<()> {
    publisher.publish(payload).map_err(|error| Failure::Network(error.to_string()))?;
    Ok(())
}

impl Source {
    /// Publishes.
    ///
    /// # Errors
    /// When the network refuses a message, or does not deliver all in time.
    pub fn run(&self) -> Result<()> {
        let is_begun = Arc::new(AtomicBool::new(false));
        flag::register(SIGUSR1, Arc::clone(&is_begun)).map_err(io_error("signals"))?;
        let address = parse(&self.topic)?;
        let networks = self.network.open(&[&address], || false)?;
        let publisher = networks.publisher(&address, true).map_err(Failure::Network)?;
        let greeting = format!("{}{}", char::from(MARK), self.number);
        say("ready");
        while !is_begun.load(Ordering::Acquire) {
            publish(&*publisher, greeting.as_bytes())?;
            publisher.release();
            std::thread::sleep(GREETING);
        }
        let payload = vec![b'x'; self.bytes];
        for _ in 0..self.count {
            publish(&*publisher, &payload)?;
        }
        publisher.release();
        let is_delivered = publisher.flush(LIMIT);
        drop(publisher);
        networks.close();
        let late = || Failure::Late { what: "delivering messages".to_owned(), limit: LIMIT };
        is_delivered.then_some(()).ok_or_else(late)
    }
}

/// Count the messages of a topic, and print the seconds from the first to the last
#[derive(Debug, Args)]
pub struct Sink {
    /// Subscribe to this address
    #[arg(long)]
    topic: String,
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
        let address = parse(&self.topic)?;
        let networks = self.network.open(&[&address], || false)?;
        let counter = Counter::new(self.count);
        let listener = Arc::new(Listener { counter, sources: self.sources, known: Mutex::default() });
        let subscription =
            networks.subscribe(&address, TopicId(0), Arc::clone(&listener)).map_err(Failure::Network)?;
        say("ready");
        listener.counter.wait("messages", LIMIT)?;
        // Messages that come twice.
        subscription.drain(Duration::from_millis(100), LIMIT);
        subscription.close(LIMIT);
        drop(subscription);
        networks.close();
        let (received, seconds) = (listener.counter.received(), listener.counter.seconds());
        say(&json!({ "received": received, "seconds": seconds }).to_string());
        Ok(())
    }
}
