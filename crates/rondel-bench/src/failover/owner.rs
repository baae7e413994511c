//! A publisher that competes for a topic of DDS.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use clap::{Args, ValueEnum};
use rondel_net::address::Address;
use rondel_net::dds::{self, Ownership, TopicQos, TopicType};
use serde::Serialize;

use crate::failure::{Failure, Result};
use crate::join::Join;
use crate::link::PATIENCE;
use crate::peer::stop_signal;
use crate::say;

/// The longest sleep: the delay of a shutdown.
const NAP: Duration = Duration::from_millis(1);

/// Source of a publisher's signs of life.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, ValueEnum)]
#[serde(rename_all = "kebab-case")]
pub enum Liveliness {
    /// Its participant
    Automatic,
    /// Its messages, for all publishers of the participant
    ManualByParticipant,
    /// Its messages
    ManualByTopic,
}

impl Liveliness {
    /// Returns the name in options.
    pub fn name(self) -> &'static str {
        match self {
            Liveliness::Automatic => "automatic",
            Liveliness::ManualByParticipant => "manual-by-participant",
            Liveliness::ManualByTopic => "manual-by-topic",
        }
    }

    fn on_dds(self) -> dds::Liveliness {
        match self {
            Liveliness::Automatic => dds::Liveliness::Automatic,
            Liveliness::ManualByParticipant => dds::Liveliness::ManualByParticipant,
            Liveliness::ManualByTopic => dds::Liveliness::ManualByTopic,
        }
    }
}

/// Publish on a topic of DDS that the strongest publisher owns
#[derive(Debug, Args)]
pub struct Owner {
    /// Publish on this topic
    #[arg(long)]
    topic: String,
    /// Publish with this strength, which is the payload as well
    #[arg(long)]
    strength: i32,
    /// Publish a message every N microseconds
    #[arg(long)]
    period: u64,
    /// Give a sign of life at least every N microseconds
    #[arg(long)]
    lease: Option<u64>,
    /// Give signs of life by this source
    #[arg(long, value_enum, default_value_t = Liveliness::Automatic)]
    liveliness: Liveliness,
    #[command(flatten)]
    network: Join,
}

/// Returns the address of a topic of text with exclusive ownership.
pub fn owned(topic: &str, qos: TopicQos) -> Address {
    let qos = TopicQos { ownership: Some(Ownership::Exclusive), ..qos };
    Address::Dds(topic.to_owned(), TopicType::default(), qos)
}

impl Owner {
    /// Publishes until a signal.
    ///
    /// # Errors
    /// When the network cannot be used.
    pub fn run(&self) -> Result<()> {
        let qos = TopicQos {
            strength: Some(self.strength),
            lease: self.lease.map(Duration::from_micros),
            liveliness: Some(self.liveliness.on_dds()),
            ..TopicQos::default()
        };
        let address = owned(&self.topic, qos);
        let stop = stop_signal()?;
        let networks = self.network.open(&[&address], || stop.load(Ordering::Relaxed))?;
        let publisher = networks.publisher(&address, false).map_err(Failure::Network)?;
        publisher.wait_matched(PATIENCE);
        say("ready");
        let (payload, period) = (self.strength.to_string(), Duration::from_micros(self.period));
        let mut due = Instant::now();
        while wait_until(due, &stop) {
            publisher.publish(payload.as_bytes()).map_err(|e| Failure::Network(e.to_string()))?;
            // After a pause of the process, no burst makes up for it.
            due = (due + period).max(Instant::now());
        }
        drop(publisher);
        networks.close();
        Ok(())
    }
}

/// Waits until `due`, and returns whether it was not stopped meanwhile.
fn wait_until(due: Instant, stop: &AtomicBool) -> bool {
    loop {
        if stop.load(Ordering::Relaxed) {
            return false;
        }
        let left = due.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return true;
        }
        std::thread::sleep(left.min(NAP));
    }
}
