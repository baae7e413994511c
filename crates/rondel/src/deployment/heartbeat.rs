//! The section `heartbeat:` of a deployment.

use std::time::Duration;

use super::Address;
use super::alignment::duration;
use super::places::{Place, Role};
use super::yaml::{Item, Mistakes, Synonyms};

/// The topic, unless it is set.
const TOPIC: &str = "rondel/heartbeat";
/// The limits of the interval.
const LIMITS: (Duration, Duration) = (Duration::from_millis(100), Duration::from_secs(3600));

/// Names that people write for settings of the heartbeat.
const SYNONYMS: Synonyms = &[
    (&["interval", "period", "seconds"], "write `every`, such as `every: 1 s`"),
    (&["to", "address", "name"], "write `topic`: it is a topic of every network that carries verdicts"),
];

/// Publishing of the state of a run: interval and topics.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Heartbeat {
    /// The interval.
    pub every: Duration,
    /// A topic of each network that carries verdicts.
    pub to: Vec<Address>,
}

/// Reads the section, for the sinks of verdicts.
pub(super) fn heartbeat<'y>(
    item: Item<'y>,
    sinks: &[Vec<Address>],
    places: &mut Vec<Place<'y>>,
    mistakes: &mut Mistakes,
) -> Option<Heartbeat> {
    let (mut every_item, mut topic) = (Some(item), TOPIC.to_owned());
    if item.is_mapping() {
        let mut members = item.members("heartbeat", mistakes);
        every_item = members.get("every");
        if every_item.is_none() {
            mistakes.at(item, "`heartbeat` needs `every`, such as `every: 1 s`");
        }
        if let Some(text) = members.get("topic").and_then(|item| item.text("topic", mistakes)) {
            topic = text;
        }
        members.finish(SYNONYMS, mistakes);
    }
    let name = if item.is_mapping() { "every" } else { "heartbeat" };
    let every = duration(every_item?, name, "1 s", "", mistakes)?;
    let every = Duration::from_nanos(u64::try_from(every).unwrap_or(0));
    if !(LIMITS.0..=LIMITS.1).contains(&every) {
        mistakes.at(item, "the interval of `heartbeat` must be from 100 ms to 1 h");
        return None;
    }
    let mut to: Vec<Address> = Vec::new();
    for sink in sinks.iter().flatten() {
        let address = match sink {
            Address::Stdout => continue,
            Address::Zenoh(..) => format!("zenoh:{topic}"),
            Address::Dds(..) => format!("dds:{topic}"),
            Address::Mqtt(..) => format!("mqtt:{topic}"),
            // Names of topics have no slashes there.
            Address::Kafka(..) => format!("kafka:{}", topic.replace('/', ".")),
            Address::Ros2(..) => format!("ros2:/{topic}"),
        };
        match Address::parse_sink(&address) {
            Ok(address) if to.contains(&address) => {}
            Ok(address) => {
                places.push(Place::new(Role::Heartbeat, "`heartbeat`", &address, item));
                to.push(address);
            }
            Err(error) => {
                mistakes.at(item, error);
                return None;
            }
        }
    }
    if to.is_empty() {
        mistakes.warn(item, "`heartbeat` is published nowhere: no network carries verdicts".to_owned());
    }
    Some(Heartbeat { every, to })
}
