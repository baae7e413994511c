//! The setting `durability:` of a deployment.

use std::time::Duration;

use rondel_net::mqtt::Qos;
use rondel_runtime::TimeSource;
use rondel_spec::{Spec, TimeModel};

use super::alignment::duration;
use super::yaml::{Item, Mistakes, Synonyms};
use super::{Address, Binding, NetworkSettings};

/// Names that people write for the settings.
const SYNONYMS: Synonyms =
    &[(&["mode", "value", "guarantee"], "write `level`"), (&["interval", "snapshot_every"], "write `every`")];

/// Messages that a crash may lose.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Durability {
    /// All messages.
    None,
    /// Messages that arrived after the last snapshot.
    Snapshot,
    /// None: messages are acknowledged once they are in a snapshot, at most this long after they arrived.
    Exactly(Duration),
}

/// Reads the setting: a level, or a section with the level and the time between snapshots.
pub(super) fn durability(item: Item<'_>, mistakes: &mut Mistakes) -> Option<Durability> {
    let (mut level, mut every) = (Some(item), None);
    if item.is_mapping() {
        let mut members = item.members("durability", mistakes);
        (level, every) = (members.get("level"), members.get("every"));
        members.finish(SYNONYMS, mistakes);
    }
    let nanos =
        every.map(|item| duration(item, "every", "100 ms", "", mistakes)).unwrap_or(Some(100_000_000));
    let pause = Duration::from_nanos(nanos.and_then(|nanos| u64::try_from(nanos).ok())?);
    match level.and_then(|item| item.text("durability", mistakes)).as_deref() {
        Some("exactly") if pause.is_zero() => mistakes.at(item, "`every` must be more than 0 s"),
        Some("exactly") => return Some(Durability::Exactly(pause)),
        Some("none") if every.is_none() => return Some(Durability::None),
        Some("snapshot") if every.is_none() => return Some(Durability::Snapshot),
        Some("none" | "snapshot") => {
            mistakes.at(item, "`every` belongs to `level: exactly`; for others there is --snapshot-every")
        }
        None if item.is_mapping() => {
            mistakes.at(item, "`durability` needs `level`: none, snapshot or exactly")
        }
        _ => mistakes.at(item, "`durability` must be none, snapshot or exactly"),
    }
    None
}

/// Refuses sources that repeat nothing, and warns of times that differ when a message is repeated.
pub(super) fn check(
    item: Item<'_>,
    spec: &Spec,
    sources: &[Binding],
    networks: &NetworkSettings,
    mistakes: &mut Mistakes,
) {
    for (topic, Binding { address, input }) in spec.topics.iter().zip(sources) {
        let name = &topic.name;
        if let (Address::Mqtt(_, own, _), Some(mqtt)) = (address, &networks.mqtt) {
            if mqtt.settings.clean_start {
                mistakes.at(item, "`durability: exactly` needs `clean_start: false` and a `client_id` under `mqtt:`: the broker then repeats messages that were not acknowledged");
                return;
            }
            if own.qos.unwrap_or(mqtt.settings.qos) == Qos::AtMostOnce {
                mistakes.at(item, format!("`durability: exactly` needs `qos: 1` or `qos: 2` for topic '{name}': the broker does not repeat messages at 0"));
            }
        }
        // The time of a record of Kafka is stored with it.
        let is_stored = matches!(address, Address::Kafka(..)) && matches!(input.time, TimeSource::Source);
        let measures = spec.properties.iter().any(|property| property.time != TimeModel::Steps);
        if measures && !is_stored && !matches!(input.time, TimeSource::Field(_)) {
            mistakes.warn(item, format!("the times of topic '{name}' are not fields of its messages: messages that are repeated after a crash get other times, and their verdicts other ids; set `time`"));
        }
    }
}
