//! The quality of service of a topic, which each network has its own form of.

use std::time::Duration;

use rondel_net::dds::{Durability, Ownership, Reliability, TopicQos};
use rondel_net::mqtt::SubscriptionSettings;
use rondel_net::ros2::{self, QosOverrides};

use super::Address;
use super::alignment::duration;
use super::mqtt;
use super::yaml::{Item, Members, Mistakes, Synonyms};

/// Names that people write for settings of quality of service.
const QOS: Synonyms = &[
    (&["history", "keep_last", "queue"], "write `depth: N`, or leave it out to keep all"),
    (&["partition"], "write `partitions`"),
    (&["liveliness", "lease_duration", "liveliness_lease"], "write `lease`"),
    (&["latency", "budget"], "write `latency_budget`"),
    (&["time_based_filter", "minimum_separation"], "write `min_separation`"),
];

/// The items `qos` and `retained` of a topic.
pub(super) struct OfTopic<'y> {
    qos: Option<Item<'y>>,
    retained: Option<Item<'y>>,
}

impl<'y> OfTopic<'y> {
    /// Returns the defaults.
    pub(super) fn none() -> OfTopic<'y> {
        OfTopic { qos: None, retained: None }
    }

    /// Returns the quality of service of a publisher.
    pub(super) fn of_publisher(qos: Option<Item<'y>>) -> OfTopic<'y> {
        OfTopic { qos, retained: None }
    }

    /// Takes `qos` and `retained`, whose meaning depends on the network.
    pub(super) fn read(members: &mut Members<'y>) -> OfTopic<'y> {
        OfTopic { qos: members.get("qos"), retained: members.get("retained") }
    }

    /// Returns the address with these settings; refuses those that its network does not have.
    pub(super) fn at(&self, address: Address, mistakes: &mut Mistakes) -> Address {
        if let (Some(item), false) = (self.retained, matches!(address, Address::Mqtt(..))) {
            mistakes.at(item, "`retained` belongs to topics on MQTT; remove it here");
        }
        match (address, self.qos) {
            (Address::Mqtt(filter, _, encoding), item) => {
                let retained = self.retained.and_then(|item| item.boolean("retained", mistakes));
                let settings = SubscriptionSettings {
                    qos: mqtt::qos("qos", item, mistakes),
                    retained: retained.unwrap_or(true),
                    ..SubscriptionSettings::default()
                };
                Address::Mqtt(filter, settings, encoding)
            }
            (Address::Dds(topic, topic_type, _), Some(item)) => {
                let qos = dds(item, mistakes);
                if let Err(error) = qos.check() {
                    mistakes.at(item, format!("`qos`: {error}"));
                }
                Address::Dds(topic, topic_type, qos)
            }
            (Address::Ros2(mut topic, encoding), Some(item)) => {
                topic.qos = ros2(item, mistakes);
                Address::Ros2(topic, encoding)
            }
            (address, Some(item)) => {
                mistakes.at(item, "`qos` belongs to topics on MQTT, DDS and ROS 2; remove it here");
                address
            }
            (address, None) => address,
        }
    }
}

/// One of several words.
fn word<T: Copy>(item: Item<'_>, name: &str, words: &[(&str, T)], mistakes: &mut Mistakes) -> Option<T> {
    let text = item.text(name, mistakes)?;
    let found = words.iter().find(|(word, _)| *word == text).map(|(_, value)| *value);
    if found.is_none() {
        let words: Vec<&str> = words.iter().map(|(word, _)| *word).collect();
        mistakes.at(item, format!("`{name}` must be one of: {}", words.join(", ")));
    }
    found
}

fn time(item: Option<Item<'_>>, name: &str, mistakes: &mut Mistakes) -> Option<Duration> {
    let nanos = duration(item?, name, "100 ms", "", mistakes)?;
    u64::try_from(nanos).ok().map(Duration::from_nanos)
}

fn dds(item: Item<'_>, mistakes: &mut Mistakes) -> TopicQos {
    let mut members = item.members("`qos` of a topic on DDS", mistakes);
    let reliability = [("reliable", Reliability::Reliable), ("best_effort", Reliability::BestEffort)];
    let durability = [
        ("volatile", Durability::Volatile),
        ("transient_local", Durability::TransientLocal),
        ("transient", Durability::Transient),
        ("persistent", Durability::Persistent),
    ];
    let ownership = [("shared", Ownership::Shared), ("exclusive", Ownership::Exclusive)];
    let qos = TopicQos {
        reliability: members.get("reliability").and_then(|i| word(i, "reliability", &reliability, mistakes)),
        durability: members.get("durability").and_then(|i| word(i, "durability", &durability, mistakes)),
        ownership: members.get("ownership").and_then(|i| word(i, "ownership", &ownership, mistakes)),
        depth: members
            .get("depth")
            .and_then(|i| i.integer("depth", 1..=1_000_000, mistakes))
            .map(|n| n as u32),
        deadline: time(members.get("deadline"), "deadline", mistakes),
        lease: time(members.get("lease"), "lease", mistakes),
        latency_budget: time(members.get("latency_budget"), "latency_budget", mistakes),
        partitions: members.get("partitions").map_or_else(Vec::new, |i| i.texts("partitions", mistakes)),
        min_separation: time(members.get("min_separation"), "min_separation", mistakes),
        poll: time(members.get("poll"), "poll", mistakes),
        // Of publishers that compete, which a deployment has none of.
        ..TopicQos::default()
    };
    members.finish(QOS, mistakes);
    qos
}

/// Reads the name of a profile of ROS 2, or single settings.
fn ros2(item: Item<'_>, mistakes: &mut Mistakes) -> QosOverrides {
    if !item.is_mapping() {
        let profile = item.text("qos", mistakes).map(|name| ros2::Qos::profile(&name));
        return match profile {
            None => QosOverrides::default(),
            Some(Ok(qos)) => qos.into(),
            Some(Err(error)) => {
                mistakes.at(item, format!("`qos`: {error}"));
                QosOverrides::default()
            }
        };
    }
    let mut members = item.members("`qos` of a topic of ROS 2", mistakes);
    let mut parsed = |name: &'static str, mistakes: &mut Mistakes| {
        let item = members.get(name)?;
        Some((item, item.text(name, mistakes)?))
    };
    let reliability = parsed("reliability", mistakes);
    let durability = parsed("durability", mistakes);
    let mut qos = QosOverrides {
        depth: members
            .get("depth")
            .and_then(|i| i.integer("depth", 1..=1_000_000, mistakes))
            .map(|n| n as u64),
        deadline: time(members.get("deadline"), "deadline", mistakes),
        lease: time(members.get("lease"), "lease", mistakes),
        ..QosOverrides::default()
    };
    members.finish(QOS, mistakes);
    if let Some((item, text)) = reliability {
        let read = ros2::qos::Reliability::parse(&text);
        qos.reliability = read.map_err(|error| mistakes.at(item, error.to_string())).ok();
    }
    if let Some((item, text)) = durability {
        let read = ros2::qos::Durability::parse(&text);
        qos.durability = read.map_err(|error| mistakes.at(item, error.to_string())).ok();
    }
    qos
}
