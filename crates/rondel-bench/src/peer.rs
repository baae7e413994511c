//! Plain participants, which the monitor is compared with: the same use of the network, on the same layer, without
//! checking. Each is a process of its own, as the monitor is.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use clap::{Args, Subcommand};
use rondel_event::TopicId;
use rondel_net::adapter::{Publisher, Receiver, Sample};
use rondel_net::address::Address;
use rondel_net::dds::{RawType, TopicType};
use rondel_net::ros2::MessageType;
use signal_hook::consts::{SIGINT, SIGTERM};
use signal_hook::flag;

use crate::chain::Stage;
use crate::failover::Owner;
use crate::failure::{Failure, Result, io_error, same};
use crate::join::Join;
use crate::latency::ping;
use crate::link::{Counter, PATIENCE, parse, wait_subscribed};
use crate::options::duration;
use crate::order::{Node, Sender};
use crate::table::quantile;
use crate::throughput::{Feed, Sink, Source};
use crate::traces::Trace;
use crate::{say, udp};

/// The time limit for delivering published messages.
const FLUSH: Duration = Duration::from_secs(10);
/// The time limit for a whole trace.
const LIMIT: Duration = Duration::from_secs(600);

/// Take part in a measurement
#[derive(Debug, Args)]
pub struct Peer {
    #[command(subcommand)]
    role: Role,
}

#[derive(Debug, Subcommand)]
enum Role {
    /// Count messages
    Count(Subscriber),
    /// Publish every message again as it is
    Echo(Subscriber),
    /// Publish the lines of a file, count what comes back, and print both as JSON
    Drive(Driver),
    /// Publish bursts on two topics
    Bursts(Sender),
    /// Publish a message on one topic at each instant
    Node(Node),
    /// Send every datagram back
    UdpEcho,
    /// Pass the messages of a chain on, or begin it
    Stage(Stage),
    /// Wait for a signal: the first process of a container, into which others are started
    Hold(Hold),
    /// Publish on a topic of DDS that the strongest publisher owns
    Owner(Owner),
    /// Publish the messages of a pattern
    Source(Source),
    /// Publish messages with their times
    Feed(Feed),
    /// Count the messages of a pattern
    Sink(Sink),
}

#[derive(Debug, Args)]
struct Subscriber {
    /// Subscribe to this address
    #[arg(long)]
    topic: String,
    /// Subscribe to binary messages of this type of ROS 2, on DDS
    #[arg(long = "type", value_name = "TYPE")]
    message_type: Option<String>,
    /// Publish echoes on this address
    #[arg(long)]
    publish: Option<String>,
    /// Stop after N messages
    #[arg(long)]
    count: Option<u64>,
    #[command(flatten)]
    network: Join,
}

#[derive(Debug, Args)]
struct Driver {
    /// Publish the messages on this address
    #[arg(long)]
    to: String,
    /// Expect as many messages on this address
    #[arg(long)]
    expect: String,
    /// Publish the lines of this file
    trace: PathBuf,
    /// Send only the first N messages, one at a time, and print half of the round trips after the first tenth of them
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(10..))]
    pings: Option<u64>,
    /// Wait for TIME before each message that is sent alone
    #[arg(long, value_name = "TIME", value_parser = duration, default_value = "0us")]
    pause: Duration,
    #[command(flatten)]
    network: Join,
}

#[derive(Debug, Args)]
struct Hold {
    /// Wait for at most N seconds
    #[arg(long, value_name = "N")]
    seconds: u64,
}

/// Counts messages, and publishes each of them again where there is a publisher.
pub struct Echo {
    /// The counter.
    pub counter: Counter,
    /// The publisher of the echo.
    pub publisher: Option<Box<dyn Publisher>>,
    /// Whether it needs [`Receiver::idle`] to release messages: DDS calls that anyway, and Zenoh holds nothing back.
    pub wants_idle: bool,
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
    /// Takes part until the measurement ends.
    ///
    /// # Errors
    /// When the network cannot be used, or a message is lost.
    pub fn run(&self) -> Result<()> {
        match &self.role {
            Role::Count(subscriber) => subscriber.run(false),
            Role::Echo(subscriber) => subscriber.run(true),
            Role::Drive(driver) => driver.run(),
            Role::Bursts(sender) => sender.run(),
            Role::Node(node) => node.run(),
            Role::Stage(stage) => stage.run(),
            Role::Hold(hold) => hold.run(),
            Role::UdpEcho => udp::echo(),
            Role::Owner(owner) => owner.run(),
            Role::Source(source) => source.run(),
            Role::Feed(feed) => feed.run(),
            Role::Sink(sink) => sink.run(),
        }
    }
}

/// Returns a flag that the first SIGINT or SIGTERM sets; the second ends the process.
///
/// # Errors
/// When the system refuses.
pub fn stop_signal() -> Result<Arc<AtomicBool>> {
    let stop = Arc::new(AtomicBool::new(false));
    for signal in [SIGINT, SIGTERM] {
        // In this order: the first signal finds the flag unset, and sets it.
        flag::register_conditional_shutdown(signal, 128 + signal, Arc::clone(&stop))
            .and_then(|_| flag::register(signal, Arc::clone(&stop)))
            .map_err(io_error("signals"))?;
    }
    Ok(stop)
}

impl Subscriber {
    fn run(&self, echo: bool) -> Result<()> {
        let from = match (parse(&self.topic)?, &self.message_type) {
            (Address::Dds(name, _, qos), Some(message_type)) => {
                let name_of_type =
                    MessageType::parse(message_type).map_err(|e| Failure::Usage(e.to_string()))?;
                // Types of ROS 2 have no keys.
                let raw = RawType { name: Some(name_of_type.dds()), keyed: Some(false) };
                Address::Dds(name, TopicType::Raw(raw), qos)
            }
            (address, _) => address,
        };
        let to = self.publish.as_deref().filter(|_| echo).map(parse).transpose()?;
        let stop = stop_signal()?;
        let addresses: Vec<_> = std::iter::once(&from).chain(&to).collect();
        let networks = self.network.open(&addresses, || stop.load(Ordering::Relaxed))?;
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
        while !stop.load(Ordering::Relaxed)
            && receiver.counter.wait("peer", Duration::from_millis(100)).is_err()
        {}
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
        Ok(())
    }
}

impl Driver {
    fn run(&self) -> Result<()> {
        let (to, from) = (parse(&self.to)?, parse(&self.expect)?);
        let text = std::fs::read(&self.trace).map_err(io_error(self.trace.display().to_string()))?;
        let trace = Trace::new(text);
        let all = self.pings.unwrap_or(trace.len());
        same(|| format!("{}: messages", self.trace.display()), all, trace.len().min(all))?;
        let stop = stop_signal()?;
        let networks = self.network.open(&[&to, &from], || stop.load(Ordering::Relaxed))?;
        let counter = Arc::new(Counter::new(all));
        let subscription =
            networks.subscribe(&from, TopicId(0), Arc::clone(&counter)).map_err(Failure::Network)?;
        // A message that is sent alone waits for no batch.
        let publisher = networks.publisher(&to, self.pings.is_none()).map_err(Failure::Network)?;
        wait_subscribed(&*publisher)?;
        let started = Instant::now();
        let half_us = match self.pings {
            Some(_) => self.ping_all(&*publisher, &counter, &trace, all)?,
            None => publish(&*publisher, &trace).map(|()| Vec::new())?,
        };
        let ended = counter.wait("came back", LIMIT)?;
        let seconds = ended.duration_since(started).as_secs_f64();
        subscription.drain(Duration::from_millis(100), FLUSH);
        let received = counter.received();
        drop((subscription, publisher));
        networks.close();
        let half = match half_us.as_slice() {
            [] => String::new(),
            us => {
                format!(",\"half_p50_us\":{:.1},\"half_p99_us\":{:.1}", quantile(us, 0.5), quantile(us, 0.99))
            }
        };
        say(&format!("{{\"sent\":{all},\"received\":{received},\"seconds\":{seconds:.3}{half}}}"));
        same(|| "came back".to_owned(), all, received)?;
        Ok(())
    }

    /// Sends messages one at a time; returns half of the round trips, in microseconds, without the first tenth.
    fn ping_all(
        &self,
        publisher: &dyn Publisher,
        answers: &Counter,
        trace: &Trace,
        number: u64,
    ) -> Result<Vec<f64>> {
        let mut half_us = Vec::new();
        for (sent, line) in (1..=number).zip(trace.lines()) {
            std::thread::sleep(self.pause);
            let us = ping(publisher, answers, sent, line)?;
            if sent > number / 10 {
                half_us.push(us / 2.0);
            }
        }
        Ok(half_us)
    }
}

impl Hold {
    fn run(&self) -> Result<()> {
        let stop = stop_signal()?;
        say("ready");
        let deadline = Instant::now() + Duration::from_secs(self.seconds);
        while !stop.load(Ordering::Relaxed) && Instant::now() < deadline {
            // The signal interrupts no sleep.
            std::thread::sleep(Duration::from_millis(100));
        }
        Ok(())
    }
}

/// Publishes a trace as fast as the network takes it.
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
