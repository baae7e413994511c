//! The sender of the ordering experiment: two topics, a connection for each.

use std::sync::mpsc::{self, Receiver};
use std::time::{Duration, Instant};

use clap::Args;
use rondel_event::{TimeUnit, Timestamp};
use rondel_net::adapter::{Publisher, now};
use rondel_net::networks::Networks;
use rondel_net::progress::Progress;

use super::{BURST, PROGRESS, TOPICS};
use crate::failure::{Failure, Result};
use crate::join::Join;
use crate::link::{Network, parse, wait_subscribed};

/// The time limit for delivering published messages.
const FLUSH: Duration = Duration::from_secs(10);
/// The number of warm-up messages on each topic, so that connections and buffers have their size.
const WARM_UP: usize = 100;
/// The longest wait without sleeping: sleeping would take longer.
const SPIN: Duration = Duration::from_micros(80);

/// Publish bursts on two topics
#[derive(Debug, Args)]
pub struct Sender {
    /// Join this network
    #[arg(long, value_enum)]
    on: Network,
    /// Send a burst every N nanoseconds
    #[arg(long)]
    period: u64,
    /// Hold back the messages of the second topic for N nanoseconds
    #[arg(long)]
    delay: u64,
    /// Send N bursts
    #[arg(long)]
    bursts: u64,
    #[command(flatten)]
    network: Join,
}

/// A topic and its connection.
pub(super) struct Topic {
    events: Box<dyn Publisher>,
    markers: Box<dyn Publisher>,
    progress: Progress,
    /// Dropped last, after the publishers.
    networks: Networks,
}

/// An event or a marker to publish.
#[derive(Clone, Copy, Debug)]
pub(super) enum Send {
    Event {
        number: u64,
        stamp: Timestamp,
    },
    /// A marker: everything up to this time is published.
    Complete(Timestamp),
}

impl Topic {
    /// Joins the network for a topic.
    pub(super) fn open(on: Network, network: &Join, name: &str) -> Result<Topic> {
        let events = parse(&on.address(name))?;
        let markers = parse(&on.address(PROGRESS))?;
        let networks = network.open(&[&events, &markers], || false)?;
        let publisher = |address| networks.publisher(address, false).map_err(Failure::Network);
        Ok(Topic {
            events: publisher(&events)?,
            markers: publisher(&markers)?,
            progress: Progress::new(name).in_unit(TimeUnit::Nanoseconds),
            networks,
        })
    }

    /// Publishes messages that are not measured, once there are subscribers.
    pub(super) fn warm_up(&self) -> Result<()> {
        for publisher in [&self.events, &self.markers] {
            wait_subscribed(&**publisher)?;
            for _ in 0..WARM_UP {
                publish(&**publisher, b"{}")?;
            }
            publisher.flush(FLUSH);
        }
        Ok(())
    }

    /// Publishes an event or a marker.
    pub(super) fn send(&mut self, what: Send) -> Result<()> {
        match what {
            Send::Event { number, stamp } => {
                let payload = format!("{{\"n\":{number},\"stamp\":{}}}", stamp.as_nanos());
                publish(&*self.events, payload.as_bytes())?;
                self.progress.sent(stamp);
                Ok(())
            }
            Send::Complete(time) => publish(&*self.markers, self.progress.complete(time).as_bytes()),
        }
    }

    /// Leaves the network once everything is delivered.
    pub(super) fn close(self) {
        self.events.flush(FLUSH);
        self.markers.flush(FLUSH);
        drop((self.events, self.markers));
        self.networks.close();
    }
}

fn publish(publisher: &dyn Publisher, payload: &[u8]) -> Result<()> {
    publisher.publish(payload).map_err(|e| Failure::Network(e.to_string()))
}

/// Waits until this time.
pub(super) fn wait_until(due: Instant) {
    loop {
        let left = due.saturating_duration_since(Instant::now());
        match () {
            () if left.is_zero() => return,
            () if left > SPIN => std::thread::sleep(left - SPIN / 2),
            () => std::hint::spin_loop(),
        }
    }
}

/// Publishes each message when it is due.
fn late(mut topic: Topic, waiting: &Receiver<(Instant, Send)>) -> Result<Topic> {
    for (due, what) in waiting {
        wait_until(due);
        topic.send(what)?;
    }
    Ok(topic)
}

impl Sender {
    fn open(&self, name: &str) -> Result<Topic> {
        Topic::open(self.on, &self.network, name)
    }

    /// Publishes all bursts.
    ///
    /// # Errors
    /// When the network cannot be used.
    pub fn run(&self) -> Result<()> {
        let [a, b] = TOPICS;
        let (mut first, mut second) = (self.open(a)?, self.open(b)?);
        first.warm_up()?;
        second.warm_up()?;
        std::thread::sleep(Duration::from_millis(50));
        // No measured event is earlier.
        let started = now();
        first.send(Send::Complete(started))?;
        second.send(Send::Complete(started))?;
        if self.delay == 0 {
            self.bursts(
                started,
                |topic, what| if topic == 0 { first.send(what) } else { second.send(what) },
            )?;
        } else {
            let (hand_over, waiting) = mpsc::channel();
            let thread = std::thread::spawn(move || late(second, &waiting));
            let delay = Duration::from_nanos(self.delay);
            let sent = self.bursts(started, |topic, what| {
                if topic == 0 {
                    return first.send(what);
                }
                let failed = |_| Failure::Network("the second topic is closed".to_owned());
                hand_over.send((Instant::now() + delay, what)).map_err(failed)
            });
            drop(hand_over);
            let failed = |_| Failure::Network("the thread of the second topic failed".to_owned());
            second = thread.join().map_err(failed)??;
            sent?;
        }
        first.close();
        second.close();
        Ok(())
    }

    /// Sends all bursts: messages on the two topics in turn, then a marker for each.
    fn bursts(&self, started: Timestamp, mut send: impl FnMut(usize, Send) -> Result<()>) -> Result<()> {
        let start = Instant::now();
        let mut stamp = started;
        for burst in 0..self.bursts {
            wait_until(start + Duration::from_nanos(self.period.saturating_mul(burst)));
            for place in 0..BURST {
                // No two events have the same time, so that there is one order.
                stamp = now().max(Timestamp::from_nanos(stamp.as_nanos() + 1));
                let number = burst * BURST + place;
                send((place % 2) as usize, Send::Event { number, stamp })?;
            }
            for topic in 0..TOPICS.len() {
                send(topic, Send::Complete(stamp))?;
            }
        }
        Ok(())
    }
}
