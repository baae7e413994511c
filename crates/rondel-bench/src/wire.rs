//! A network alone, with nothing but counting behind it.
//!
//! ```text
//! rondel-bench wire zenoh count 1000000 &   rondel-bench wire zenoh publish 1000000 32
//! rondel-bench wire zenoh echo 1000000 &    rondel-bench wire zenoh ping 10000 32
//! ```
//! `count` and `echo` listen, the others connect. DDS uses domain 77 on the interface `lo`. All times are from the
//! first message to the last, as the process sees it that prints them.

#![allow(clippy::print_stdout)] // prints what it measures

use std::fmt::Display;
use std::sync::Arc;
use std::time::{Duration, Instant};

use ::zenoh::Wait;
use clap::{Args, Subcommand, ValueEnum};
use rondel_event::TopicId;
use rondel_net::adapter::{Publisher, Receiver, Sample, Subscription};
use rondel_net::{dds, zenoh};

use crate::failure::{Failure, Result};
use crate::latency::ping;
use crate::link::Counter;
use crate::peer::Echo;
use crate::table::quantile;

const LIMIT: Duration = Duration::from_secs(60);
const IN: &str = "wire/in";
const OUT: &str = "wire/out";

/// Measure a network alone
#[derive(Debug, Args)]
pub struct Wire {
    /// Measure this network
    #[arg(value_enum)]
    network: Kind,
    #[command(subcommand)]
    role: Role,
    /// Listen on this Zenoh endpoint, or connect to it
    #[arg(long, value_name = "ENDPOINT", global = true, default_value = "tcp/127.0.0.1:17447")]
    endpoint: String,
    /// Use Zenoh's low-latency transport
    #[arg(long, global = true)]
    low_latency: bool,
    /// Publish on Zenoh without batching
    #[arg(long, global = true)]
    express: bool,
    /// Publish on DDS without batching
    #[arg(long, global = true)]
    no_batching: bool,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum Kind {
    Zenoh,
    Dds,
}

#[derive(Debug, Subcommand)]
enum Role {
    /// Count messages
    Count {
        /// Stop after N messages
        count: u64,
        /// Count in Zenoh's own callback, without Rondel
        #[arg(long)]
        raw: bool,
    },
    /// Publish every message again as it is
    Echo {
        /// Stop after N messages
        count: u64,
    },
    /// Publish messages
    Publish {
        /// Publish N messages
        count: u64,
        /// Publish messages of N bytes
        size: usize,
    },
    /// Publish messages to an echo, and count what comes back
    Both {
        /// Publish N messages
        count: u64,
        /// Publish messages of N bytes
        size: usize,
    },
    /// Publish messages to an echo, each once the one before is back
    Ping {
        /// Publish N messages
        count: u64,
        /// Publish messages of N bytes
        size: usize,
        /// Publish at most N messages a second
        #[arg(long, value_name = "N")]
        rate: Option<f64>,
    },
}

/// A network that was joined, and how to publish there.
enum Joined {
    Zenoh(zenoh::Session, zenoh::PublisherSettings),
    Dds(dds::Participant, dds::PublisherSettings),
}

fn failed(error: impl Display) -> Failure {
    Failure::Network(error.to_string())
}

impl Joined {
    fn subscribe<R: Receiver>(&self, name: &str, receiver: Arc<R>) -> Result<Box<dyn Subscription>> {
        Ok(match self {
            Joined::Zenoh(session, _) => {
                Box::new(session.subscribe(name, TopicId(0), receiver).map_err(failed)?)
            }
            Joined::Dds(participant, _) => {
                let string_type = dds::StringType::default();
                Box::new(participant.subscribe(name, &string_type, TopicId(0), receiver).map_err(failed)?)
            }
        })
    }

    fn publisher(&self, name: &str) -> Result<Box<dyn Publisher>> {
        Ok(match self {
            Joined::Zenoh(session, settings) => Box::new(session.publisher(name, settings).map_err(failed)?),
            Joined::Dds(participant, settings) => {
                let string_type = dds::StringType::default();
                Box::new(participant.publisher(name, &string_type, *settings).map_err(failed)?)
            }
        })
    }

    fn close(&self) -> Result<()> {
        match self {
            Joined::Zenoh(session, _) => session.close().map_err(failed),
            Joined::Dds(participant, _) if participant.close(LIMIT) => Ok(()),
            Joined::Dds(..) => Err(failed("messages were not delivered")),
        }
    }
}

/// Waits until all messages have come, and prints how fast they came.
fn report(what: &str, counter: &Counter) -> Result<()> {
    counter.wait(what, LIMIT)?;
    let (count, seconds) = (counter.received(), counter.seconds());
    println!("{what}: {count} messages in {seconds:.3} s, {:.0} messages/s", count as f64 / seconds);
    Ok(())
}

fn publish(publisher: &dyn Publisher, count: u64, size: usize) -> Result<()> {
    let payload = vec![b'x'; size];
    for _ in 0..count {
        publisher.publish(&payload).map_err(failed)?;
    }
    publisher.release();
    Ok(())
}

fn wait_matched(publisher: &dyn Publisher) -> Result<()> {
    let late = || Failure::Late { what: "waiting for a subscriber".to_owned(), limit: LIMIT };
    publisher.wait_matched(LIMIT).then_some(()).ok_or_else(late)
}

impl Wire {
    /// Measures and prints.
    ///
    /// # Errors
    /// When the network cannot be used, or messages are missing.
    pub fn run(&self) -> Result<()> {
        match self.role {
            Role::Count { count, raw: true } => self.count_raw(count),
            Role::Count { count, .. } => {
                let network = self.join(true)?;
                let counter = Arc::new(Counter::new(count));
                let subscription = network.subscribe(IN, Arc::clone(&counter))?;
                report("count", &counter)?;
                subscription.close(LIMIT);
                Ok(())
            }
            Role::Echo { count } => {
                let network = self.join(true)?;
                let (counter, publisher) = (Counter::new(count), Some(network.publisher(OUT)?));
                let echo = Arc::new(Echo { counter, publisher, wants_idle: false });
                let subscription = network.subscribe(IN, Arc::clone(&echo))?;
                report("echo", &echo.counter)?;
                // The other side has sent a few more, to see whether the way is open.
                subscription.drain(Duration::from_millis(200), LIMIT);
                subscription.close(LIMIT);
                network.close()
            }
            Role::Publish { count, size } => {
                let network = self.join(false)?;
                let publisher = network.publisher(IN)?;
                wait_matched(&*publisher)?;
                let started = Instant::now();
                publish(&*publisher, count, size)?;
                network.close()?;
                println!("publish: {:.3} s", started.elapsed().as_secs_f64());
                Ok(())
            }
            Role::Both { count, size } => {
                let network = self.join(false)?;
                let counter = Arc::new(Counter::new(count));
                let (publisher, _subscription) = through_echo(&network, &counter)?;
                publish(&*publisher, count, size)?;
                report("both", &counter)
            }
            Role::Ping { count, size, rate } => self.ping(count, size, rate),
        }
    }

    fn join(&self, listen: bool) -> Result<Joined> {
        match self.network {
            Kind::Zenoh => {
                let mut settings =
                    zenoh::Settings { low_latency: self.low_latency, ..zenoh::Settings::default() };
                if listen { &mut settings.listen } else { &mut settings.connect }.push(self.endpoint.clone());
                let publishing =
                    zenoh::PublisherSettings { express: self.express, ..zenoh::PublisherSettings::default() };
                Ok(Joined::Zenoh(zenoh::Session::open(&settings).map_err(failed)?, publishing))
            }
            Kind::Dds => {
                let interface = Some("lo".to_owned());
                let settings = dds::Settings { domain: 77, interface, ..dds::Settings::default() };
                // A ping waits for its answer: there is nothing to batch.
                let batching = !self.no_batching && !matches!(self.role, Role::Ping { .. });
                let publishing = dds::PublisherSettings { batching };
                Ok(Joined::Dds(dds::Participant::open(&settings).map_err(failed)?, publishing))
            }
        }
    }

    fn ping(&self, count: u64, size: usize, rate: Option<f64>) -> Result<()> {
        let network = self.join(false)?;
        let counter = Arc::new(Counter::new(u64::MAX));
        let (publisher, _subscription) = through_echo(&network, &counter)?;
        let payload = vec![b'x'; size];
        let mut times = Vec::new();
        let started = Instant::now();
        for sent in 1..=count {
            if let Some(rate) = rate {
                let due = started + Duration::from_secs_f64((sent - 1) as f64 / rate);
                std::thread::sleep(due.saturating_duration_since(Instant::now()));
            }
            times.push(ping(&*publisher, &counter, sent, &payload)?);
        }
        let [p50, p99, most] = [0.5, 0.99, 1.0].map(|part| quantile(&times, part));
        println!("ping: round trip p50 {p50:.1} us, p99 {p99:.1} us, max {most:.1} us");
        Ok(())
    }

    /// Counts in a callback of Zenoh.
    fn count_raw(&self, count: u64) -> Result<()> {
        let mut config = ::zenoh::Config::default();
        let endpoints = format!("[\"{}\"]", self.endpoint);
        config.insert_json5("listen/endpoints", &endpoints).map_err(failed)?;
        config.insert_json5("scouting/multicast/enabled", "false").map_err(failed)?;
        let session = ::zenoh::open(config).wait().map_err(failed)?;
        let counter = Arc::new(Counter::new(count));
        let inner = Arc::clone(&counter);
        let one = move |_| inner.add(&[Sample::new(b"", None, None)]);
        let subscriber = session.declare_subscriber(IN).callback(one).wait().map_err(failed)?;
        report("count raw", &counter)?;
        drop(subscriber);
        Ok(())
    }
}

/// Returns a publisher to an echo and a subscription to what comes back, once something has come back. Then the
/// counter begins.
fn through_echo(
    network: &Joined,
    counter: &Arc<Counter>,
) -> Result<(Box<dyn Publisher>, Box<dyn Subscription>)> {
    let publisher = network.publisher(IN)?;
    let subscription = network.subscribe(OUT, Arc::clone(counter))?;
    wait_matched(&*publisher)?;
    let deadline = Instant::now() + LIMIT;
    while counter.received() == 0 {
        if Instant::now() >= deadline {
            return Err(Failure::Late { what: "waiting for the echo".to_owned(), limit: LIMIT });
        }
        publisher.publish(b"?").map_err(failed)?;
        publisher.release();
        std::thread::sleep(Duration::from_millis(20));
    }
    std::thread::sleep(Duration::from_millis(100));
    counter.restart();
    Ok((publisher, subscription))
}
