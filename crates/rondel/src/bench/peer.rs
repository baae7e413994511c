//! What the monitor is compared with: the plainest participants that do the same to the network, on
//! the same layer. Each is a process of its own, as the monitor is.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use clap::{Args, Subcommand};
use rondel_event::TopicId;
use rondel_net::adapter::{Publisher, Receiver, Sample};

use super::failure::{Failure, Result, io_error, same};
use super::link::{Counter, PATIENCE, parse, wait_subscribed};
use super::order::Sender;
use super::traces::Trace;
use crate::deployment::Address;
use crate::networks::{NetworkArguments, Networks};
use crate::signals::{self, Asked};
use crate::{exit, say};

/// How long what was published may take to arrive.
const FLUSH: Duration = Duration::from_secs(10);
/// How long a whole trace may take.
const LIMIT: Duration = Duration::from_secs(600);

/// Take part in a measurement
#[derive(Debug, Args)]
pub struct Peer {
    #[command(subcommand)]
    role: Role,
}

#[derive(Debug, Subcommand)]
enum Role {
    /// Count messages, nothing else
    Count(Subscriber),
    /// Publish every message again as it is
    Echo(Subscriber),
    /// Publish the lines of a file, count what comes back, and print both as JSON
    Drive(Driver),
    /// Publish bursts on two topics, from one cause
    Bursts(Sender),
}

#[derive(Debug, Args)]
struct Subscriber {
    /// Where messages come from
    #[arg(long)]
    topic: String,
    /// Where an echo goes
    #[arg(long)]
    publish: Option<String>,
    /// End after so many messages
    #[arg(long)]
    count: Option<u64>,
    #[command(flatten)]
    network: NetworkArguments,
}

#[derive(Debug, Args)]
struct Driver {
    /// Where messages go
    #[arg(long)]
    to: String,
    /// Where as many come back
    #[arg(long)]
    expect: String,
    /// The file: a message a line
    trace: PathBuf,
    #[command(flatten)]
    network: NetworkArguments,
}

/// Counts, and gives back what it has counted where there is a way back.
struct Echo {
    counter: Counter,
    publisher: Option<Box<dyn Publisher>>,
    /// Whether it must ask to be told that nothing more waits: on DDS it is told anyway, and on Zenoh nothing is held back.
    wants_idle: bool,
}

impl Receiver for Echo {
    fn receive(&self, _: TopicId, samples: &[Sample<'_>]) {
        if let Some(publisher) = &self.publisher {
            for sample in samples {
                if let Err(error) = publisher.publish(sample.payload) {
                    say(&format!("an echo could not be published: {error}"));
                }
            }
        }
        self.counter.add(samples);
    }

    fn idle(&self) {
        if let Some(publisher) = &self.publisher {
            publisher.release();
        }
    }

    fn wants_idle(&self) -> bool {
        self.wants_idle
    }
}

impl Peer {
    /// Takes part until it is over.
    ///
    /// # Errors
    /// When the network cannot be used, or something was lost.
    pub fn run(&self) -> Result<u8> {
        match &self.role {
            Role::Count(subscriber) => subscriber.run(false),
            Role::Echo(subscriber) => subscriber.run(true),
            Role::Drive(driver) => driver.run(),
            Role::Bursts(sender) => sender.run(),
        }
    }
}

fn open(
    arguments: &NetworkArguments,
    addresses: &[&crate::deployment::Address],
    asked: &Asked,
) -> Result<Networks> {
    arguments
        .open(addresses.iter().copied(), || asked.yet())
        .map_err(|_| Failure::Network("cannot be joined".to_owned()))
}

impl Subscriber {
    fn run(&self, echo: bool) -> Result<u8> {
        let from = parse(&self.topic)?;
        let to = self.publish.as_deref().filter(|_| echo).map(parse).transpose()?;
        let asked = signals::listen(|| ()).map_err(io_error("signals"))?;
        let addresses: Vec<_> = std::iter::once(&from).chain(&to).collect();
        let networks = open(&self.network, &addresses, &asked)?;
        let publisher =
            to.as_ref().map(|to| networks.publisher(to, true)).transpose().map_err(Failure::Network)?;
        if let Some(publisher) = &publisher {
            // As `rondel run --wait-subscribers`: the first echo must not be lost.
            publisher.wait_matched(PATIENCE);
        }
        let counter = Counter::new(self.count.unwrap_or(u64::MAX));
        let wants_idle = matches!(to, Some(Address::Mqtt(..)));
        let receiver = Arc::new(Echo { counter, publisher, wants_idle });
        let subscription =
            networks.subscribe(&from, TopicId(0), Arc::clone(&receiver)).map_err(Failure::Network)?;
        say(&format!("ready: {}", self.topic));
        while !asked.yet() && receiver.counter.wait("peer", Duration::from_millis(100)).is_err() {}
        subscription.close(FLUSH);
        let flushed = receiver.publisher.as_ref().is_none_or(|publisher| publisher.flush(FLUSH));
        drop(subscription);
        let received = receiver.counter.received();
        let verdicts = if receiver.publisher.is_some() { received } else { 0 };
        let seconds = receiver.counter.seconds();
        let lost = u64::from(!flushed);
        drop(receiver);
        networks.close();
        say(&format!(
            "{{\"received\":{received},\"checked\":{received},\"verdicts\":{verdicts},\"dropped\":{lost},\"seconds\":{seconds}}}"
        ));
        Ok(exit::SATISFIED)
    }
}

impl Driver {
    fn run(&self) -> Result<u8> {
        let (to, from) = (parse(&self.to)?, parse(&self.expect)?);
        let text = std::fs::read(&self.trace).map_err(io_error(self.trace.display().to_string()))?;
        let trace = Trace::new(text);
        let asked = signals::listen(|| ()).map_err(io_error("signals"))?;
        let networks = open(&self.network, &[&to, &from], &asked)?;
        let counter = Arc::new(Counter::new(trace.len()));
        let subscription =
            networks.subscribe(&from, TopicId(0), Arc::clone(&counter)).map_err(Failure::Network)?;
        let publisher = networks.publisher(&to, true).map_err(Failure::Network)?;
        wait_subscribed(&*publisher)?;
        let started = Instant::now();
        publish(&*publisher, &trace)?;
        let ended = counter.wait("came back", LIMIT)?;
        let seconds = ended.duration_since(started).as_secs_f64();
        subscription.drain(Duration::from_millis(100), FLUSH);
        let (sent, received) = (trace.len(), counter.received());
        drop((subscription, publisher));
        networks.close();
        say(&format!("{{\"sent\":{sent},\"received\":{received},\"seconds\":{seconds:.3}}}"));
        same(|| "came back".to_owned(), sent, received)?;
        Ok(exit::SATISFIED)
    }
}

/// Publishes a trace as fast as it is taken.
///
/// # Errors
/// When a message is refused.
pub fn publish(publisher: &dyn Publisher, trace: &Trace) -> Result<()> {
    for line in trace.lines() {
        publisher.publish(line).map_err(|e| Failure::Network(e.to_string()))?;
    }
    publisher.release();
    Ok(())
}
