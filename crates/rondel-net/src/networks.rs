//! Several networks behind one interface: joined together, subscribed to and published on by [`Address`].

mod calling;
mod discovery;
mod joining;
mod publishing;
mod settings;
mod subscribing;

use std::sync::Arc;
use std::time::{Duration, Instant};

use rondel_event::TopicId;

pub use self::joining::Joining;
pub use self::settings::{Mqtt, NetworkSettings};
use crate::adapter::{DeadLetterCounts, Listener, Outage, PartitionStates, PartitionStatus, Recovered};
use crate::address::Address;
use crate::{dds, kafka, mqtt, zenoh};

/// Time limit for delivering published messages at the end.
const FLUSH: Duration = Duration::from_secs(3);

/// The joined networks.
pub struct Networks {
    pub(crate) zenoh: Option<zenoh::Session>,
    pub(crate) dds: Option<dds::Participant>,
    pub(crate) mqtt: Option<(mqtt::Session, mqtt::PublisherSettings)>,
    pub(crate) kafka: Option<kafka::Session>,
    ros2: Option<Ros2>,
    listeners: Vec<Listener>,
}

/// ROS 2 over its middleware.
enum Ros2 {
    Zenoh(zenoh::Ros2Node),
    Dds,
}

/// A [pause](Networks::pause), which ends when it is dropped.
pub struct Paused<'n>(&'n Networks);

impl Drop for Paused<'_> {
    fn drop(&mut self) {
        if let Some(session) = &self.0.kafka {
            session.resume();
        }
    }
}

/// Reason why the networks were not joined.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum JoinError {
    /// A setting is invalid: another attempt does not help.
    #[error("{0}")]
    Setting(String),
    /// A network cannot be reached, or refuses the connection.
    #[error("{0}")]
    Unreachable(String),
    /// The caller stopped waiting.
    #[error("stopped before the networks were joined")]
    Stopped,
}

impl Networks {
    /// Returns all endpoints on which the networks listen.
    pub fn listeners(&self) -> &[Listener] {
        &self.listeners
    }

    /// Whether some network has not been reached so far.
    pub fn is_any_awaited(&self) -> bool {
        self.zenoh.as_ref().is_some_and(zenoh::Session::is_awaited)
            || self.mqtt.as_ref().is_some_and(|(session, _)| session.is_awaited())
            || self.kafka.as_ref().is_some_and(kafka::Session::is_awaited)
    }

    /// Returns the name of each joined network, and whether it can be used: it was reached, it was not given up, and
    /// the connection to the broker or to the endpoints of Zenoh is not lost. DDS has no connections.
    pub fn connected(&self) -> Vec<(&'static str, bool)> {
        let mut connected = Vec::new();
        if let Some(session) = &self.zenoh {
            connected.push(("zenoh", !session.is_awaited() && !session.is_cut_off()));
        }
        if self.dds.is_some() {
            connected.push(("dds", true));
        }
        if let Some((session, _)) = &self.mqtt {
            let is_reached = !session.is_awaited() && session.failure().is_none();
            let is_lost = session.outages().iter().any(|outage| outage.until.is_none());
            connected.push(("mqtt", is_reached && !is_lost));
        }
        if let Some(session) = &self.kafka {
            let is_lost = session.outages().iter().any(|outage| outage.until.is_none());
            connected.push(("kafka", !session.is_awaited() && !is_lost));
        }
        connected
    }

    /// Whether a connection was lost so recently that the missed messages are unknown yet: silence proves nothing
    /// meanwhile. Lasts at most two and a half seconds, and on Kafka until the records that waited at the brokers are
    /// received.
    pub fn is_unsure(&self) -> bool {
        self.zenoh.as_ref().is_some_and(zenoh::Session::is_unsure)
            || self.kafka.as_ref().is_some_and(kafka::Session::is_unsure)
    }

    /// Whether the network kept the messages published at an address since the previous process left.
    pub fn kept(&self, address: &Address) -> bool {
        match (address, &self.mqtt, &self.kafka) {
            (Address::Mqtt(_, settings, _), Some((session, _)), _) => session.kept(*settings),
            (Address::Kafka(place, _), _, Some(session)) => session.kept(place),
            _ => false,
        }
    }

    /// Whether the network itself reads and writes the string around JSON.
    fn has_text(&self, address: &Address) -> bool {
        matches!((address, &self.ros2), (Address::Ros2(..), Some(Ros2::Dds)))
    }

    /// Declares that all subscriptions exist. If acknowledgements are held back, messages wait until then.
    pub fn begin(&self) {
        if let Some((session, _)) = &self.mqtt {
            session.begin();
        }
        if let Some(session) = &self.kafka {
            session.begin();
        }
    }

    /// Delivers no further record of Kafka until the result is dropped: they stay with the brokers. Other networks go on.
    #[must_use]
    pub fn pause(&self) -> Paused<'_> {
        if let Some(session) = &self.kafka {
            session.pause();
        }
        Paused(self)
    }

    /// Sets the states of the partitions that a member of a consumer group of Kafka receives, before
    /// [`begin`](Networks::begin).
    pub fn divide(&self, states: Arc<dyn PartitionStates>) {
        if let Some(session) = &self.kafka {
            session.divide(states);
        }
    }

    /// Returns the partitions that a member of a consumer group of Kafka has.
    pub fn partitions(&self) -> Vec<PartitionStatus> {
        self.kafka.as_ref().map(kafka::Session::partitions).unwrap_or_default()
    }

    /// Waits up to `limit`, or until a network may stop sending because too many acknowledgements are held back.
    /// Returns whether any is, or whether topics of Kafka wait for a snapshot with their first mark.
    pub fn wait_held(&self, limit: Duration) -> bool {
        let is_held = match &self.mqtt {
            Some((session, _)) if session.holds() => session.wait_held(limit),
            _ => {
                std::thread::sleep(limit);
                false
            }
        };
        is_held || self.kafka.as_ref().is_some_and(kafka::Session::awaits_snapshot)
    }

    /// Ends a [wait](Networks::wait_held) of another thread, now or when it begins to wait.
    pub fn wake_held(&self) {
        if let Some((session, _)) = &self.mqtt {
            session.wake_held();
        }
    }

    /// Calls `capture` with marks by which the next run recognises the messages received so far, while no message is
    /// received from a network that holds acknowledgements back, or from Kafka. Returns its result and these
    /// acknowledgements.
    pub fn freeze<T>(&self, capture: impl FnOnce(Vec<u8>) -> T) -> (T, mqtt::Acknowledgements) {
        let capture = |of_mqtt: Vec<u8>| match &self.kafka {
            Some(session) => session.freeze(|of_kafka| capture(kafka::join(&of_kafka, &of_mqtt))),
            None => capture(of_mqtt),
        };
        match &self.mqtt {
            Some((session, _)) => session.freeze(capture),
            None => (capture(Vec::new()), mqtt::Acknowledgements::default()),
        }
    }

    /// Whether the result of the last [`freeze`](Networks::freeze) may become durable: records of Kafka before it that cannot
    /// be decoded are written to their topic.
    pub fn is_settled(&self) -> bool {
        self.kafka.as_ref().is_none_or(kafka::Session::is_settled)
    }

    /// Waits up to `limit` until records of Kafka that cannot be decoded are written to their topic. Returns their numbers;
    /// `None` if they are not kept.
    pub fn dead_letters(&self, limit: Duration) -> Option<DeadLetterCounts> {
        self.kafka.as_ref()?.dead_letters(limit)
    }

    /// Sends acknowledgements that were held back, and waits up to `limit` until they are read.
    pub fn release(&self, acknowledgements: &mqtt::Acknowledgements, limit: Duration) {
        if let Some((session, _)) = &self.mqtt {
            session.release(acknowledgements, limit);
        }
        if let Some(session) = &self.kafka {
            session.release();
        }
    }

    /// Returns the number of published messages refused so far, on networks that report it afterwards: on MQTT and Kafka.
    pub fn refused(&self) -> u64 {
        let by_kafka = self.kafka.as_ref().map_or(0, kafka::Session::refused);
        self.mqtt.as_ref().map_or(0, |(session, _)| session.refused()) + by_kafka
    }

    /// Returns the number of participants that DDS Security refused so far.
    pub fn refused_participants(&self) -> u64 {
        self.dds.as_ref().map_or(0, dds::Participant::refused)
    }

    /// Returns the reason why a network was given up, if one was: no more messages are received from it.
    pub fn failure(&self) -> Option<String> {
        self.mqtt.as_ref().and_then(|(session, _)| session.failure())
    }

    /// Returns the messages missed and fetched again so far, for each topic of subscriptions.
    pub fn recovered(&self) -> Vec<(TopicId, Recovered)> {
        let mut recovered = self.zenoh.as_ref().map(zenoh::Session::recovered).unwrap_or_default();
        recovered.extend(self.dds.iter().flat_map(dds::Participant::recovered));
        recovered
    }

    /// Returns the connections lost and restored so far.
    pub fn outages(&self) -> Vec<Outage> {
        let mut outages = self.zenoh.as_ref().map(zenoh::Session::outages).unwrap_or_default();
        outages.extend(self.dds.iter().flat_map(dds::Participant::outages));
        outages.extend(self.mqtt.iter().flat_map(|(session, _)| session.outages()));
        outages.extend(self.kafka.iter().flat_map(kafka::Session::outages));
        outages
    }

    /// Leaves the networks after the published messages are delivered. Returns whether all were.
    pub fn close(self) -> bool {
        self.close_within(FLUSH)
    }

    /// Leaves the networks like [`Networks::close`], within a time limit for all of them.
    pub fn close_within(self, limit: Duration) -> bool {
        let deadline = Instant::now() + limit;
        let left = || deadline.saturating_duration_since(Instant::now());
        let dds = self.dds.as_ref().is_none_or(|participant| participant.close(left()));
        let zenoh = self.zenoh.as_ref().is_none_or(|session| session.close_within(left()).is_ok());
        let mqtt = self.mqtt.as_ref().is_none_or(|(session, _)| session.close_within(left()));
        let kafka = self.kafka.as_ref().is_none_or(|session| session.close_within(left()));
        let is_closed = dds && zenoh && mqtt && kafka;
        if !is_closed {
            // Dropping it would wait again, and the process is about to end.
            std::mem::forget(self);
        }
        is_closed
    }

    /// Wakes publishers that wait for a slow subscriber, on networks that support it: DDS, MQTT and Kafka.
    pub fn wake(&self) {
        if let Some(participant) = &self.dds {
            participant.close(Duration::ZERO);
        }
        if let Some((session, _)) = &self.mqtt {
            session.wake();
        }
        if let Some(session) = &self.kafka {
            session.wake();
        }
    }
}
