//! Progress markers of publishers.

use std::collections::HashMap;

use rondel_align::Marker;
use rondel_decode::json::JsonDecoder;
use rondel_event::{
    Block, Field, Layout, Path, Projection, Read, Slot, TimeUnit, Timestamp, TopicId, ValueType,
};
use serde::{Deserialize, Serialize};

/// The state of an alignment beside its waiting messages.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct Waiting {
    /// The time that the alignment's clock showed, once a message has set it.
    pub(crate) clock: Option<i64>,
    /// The number of progress markers that could not be used.
    pub(crate) unread: u64,
    /// Progress of the publishers that name themselves: topic, name, time.
    pub(crate) publishers: Vec<(u32, Vec<u8>, i64)>,
    /// The number of messages of the lap, where several alignment groups see some of them each.
    pub(crate) numbered: u64,
}

/// Reads progress markers of publishers.
///
/// | member | meaning |
/// |---|---|
/// | `"topic":"gear","complete":12.5` | all messages of the topic with times up to 12.5 s were sent |
/// | `"after":12.0,"count":3` | optional: three messages have times after 12.0 s and up to `complete` |
/// | `"publisher":"a"` | optional: the marker is of one publisher among several |
///
/// Times are in the unit of the topic.
pub(crate) struct Progress {
    /// The names of the topics and the units of their times.
    topics: Vec<(String, TimeUnit)>,
    block: Block,
    /// The decoder of markers for each unit of time.
    decoders: Vec<(TimeUnit, JsonDecoder)>,
    /// For each topic the progress of the publishers that name themselves.
    publishers: HashMap<u32, HashMap<Vec<u8>, Timestamp>>,
    /// The number of markers that could not be read or are of an unknown topic.
    pub(crate) unread: u64,
}

const TOPIC: Slot = Slot::String(0);
const PUBLISHER: Slot = Slot::String(1);
const COMPLETE: Slot = Slot::Int(0);
const AFTER: Slot = Slot::Int(1);
const COUNT: Slot = Slot::Int(2);

impl Progress {
    pub(crate) fn new(topics: Vec<(String, TimeUnit)>) -> Progress {
        Progress {
            topics,
            block: Block::new(Layout { topics: 1, ints: 3, strings: 2, ..Layout::default() }),
            decoders: Vec::new(),
            publishers: HashMap::new(),
            unread: 0,
        }
    }

    /// The progress of publishers that name themselves: topic, name, time. Sorted, so that equal states have equal
    /// snapshots.
    pub(crate) fn saved(&self) -> Vec<(u32, Vec<u8>, i64)> {
        let all = self.publishers.iter().flat_map(|(topic, known)| {
            known.iter().map(|(who, time)| (*topic, who.clone(), time.as_nanos()))
        });
        let mut all: Vec<_> = all.collect();
        all.sort_unstable();
        all
    }

    /// Continues from the state of a snapshot.
    pub(crate) fn after(mut self, waiting: &Waiting) -> Progress {
        self.unread = waiting.unread;
        for (topic, who, time) in &waiting.publishers {
            let known = self.publishers.entry(*topic).or_default();
            known.insert(who.clone(), Timestamp::from_nanos(*time));
        }
        self
    }

    /// The marker that a payload holds, and its topic.
    pub(crate) fn read(&mut self, payload: &[u8]) -> Option<(TopicId, Marker)> {
        let read = self.marker(payload);
        self.unread += u64::from(read.is_none());
        read
    }

    fn marker(&mut self, payload: &[u8]) -> Option<(TopicId, Marker)> {
        self.decode(payload, TimeUnit::Seconds)?;
        let name = self.block.text(0, 0);
        let topic = self.topics.iter().position(|(topic, _)| topic.as_bytes() == name)?;
        let unit = self.topics[topic].1;
        if unit != TimeUnit::Seconds {
            self.decode(payload, unit)?;
        }
        let topic = TopicId(topic as u32);
        let publisher = self.block.text(1, 0).to_vec();
        let time = |slot| self.int(slot).map(Timestamp::from_nanos);
        let marker = Marker {
            complete: time(COMPLETE)?,
            after: time(AFTER),
            count: self.int(COUNT).and_then(|count| u64::try_from(count).ok()),
        };
        Some((topic, self.combine(topic, publisher, marker)))
    }

    /// The progress of all publishers of a topic together.
    fn combine(&mut self, topic: TopicId, publisher: Vec<u8>, marker: Marker) -> Marker {
        let known = self.publishers.entry(topic.0).or_default();
        let last = known.entry(publisher).or_insert(marker.complete);
        *last = marker.complete.max(*last);
        if known.len() < 2 {
            return marker;
        }
        // One publisher's count does not cover the messages of the others.
        let complete = known.values().min().copied().unwrap_or(marker.complete);
        Marker { complete, after: None, count: None }
    }

    fn decode(&mut self, payload: &[u8], unit: TimeUnit) -> Option<()> {
        self.block.clear();
        let decoder = match self.decoders.iter().position(|(of, _)| *of == unit) {
            Some(at) => &mut self.decoders[at].1,
            None => {
                let field = |name: &str, value_type, slot| Field {
                    path: Path::keys([name]),
                    read: Read::Value(value_type),
                    slot,
                    exact: false,
                };
                let fields = vec![
                    field("topic", ValueType::String, TOPIC),
                    field("publisher", ValueType::String, PUBLISHER),
                    field("complete", ValueType::Time, COMPLETE),
                    field("after", ValueType::Time, AFTER),
                    field("count", ValueType::Int, COUNT),
                ];
                let decoder = JsonDecoder::new(TopicId(0), &Projection { fields }, None, unit);
                self.decoders.push((unit, decoder));
                let last = self.decoders.len() - 1;
                &mut self.decoders[last].1
            }
        };
        decoder.decode(payload, Timestamp::ZERO, &mut self.block).ok()
    }

    fn int(&self, slot: Slot) -> Option<i64> {
        let Slot::Int(column) = slot else { return None };
        let column = self.block.ints(column);
        (column.valid & 1 == 1).then(|| column.values[0])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn markers_are_read_in_the_unit_of_their_topic() {
        let topics = vec![("a".to_owned(), TimeUnit::Seconds), ("b".to_owned(), TimeUnit::Nanoseconds)];
        let mut progress = Progress::new(topics);
        let at = Timestamp::from_nanos;
        let mut read = |text: &str| progress.read(text.as_bytes());
        let plain = Marker { complete: at(1_500_000_000), after: None, count: None };
        assert_eq!(read(r#"{"topic":"a","complete":1.5}"#), Some((TopicId(0), plain)));
        let counted = Marker { complete: at(1_700_000_000_123_456_789), after: Some(at(7)), count: Some(3) };
        let text = r#"{"topic":"b","complete":1700000000123456789,"after":7,"count":3}"#;
        assert_eq!(read(text), Some((TopicId(1), counted)));
        for wrong in ["", "{}", r#"{"topic":"c","complete":1}"#, r#"{"topic":"a"}"#, r#"{"complete":1}"#] {
            assert_eq!(read(wrong), None, "{wrong}");
        }
        assert_eq!(progress.unread, 5);
    }

    #[test]
    fn the_slowest_of_several_publishers_counts() {
        let mut progress = Progress::new(vec![("a".to_owned(), TimeUnit::Seconds)]);
        let mut complete = |publisher: &str, time: i64| {
            let text = format!(r#"{{"topic":"a","publisher":"{publisher}","complete":{time}}}"#);
            progress.read(text.as_bytes()).map(|(_, marker)| marker.complete.as_nanos() / 1_000_000_000)
        };
        assert_eq!(complete("x", 5), Some(5));
        assert_eq!(complete("y", 2), Some(2));
        assert_eq!(complete("x", 9), Some(2));
        assert_eq!(complete("y", 7), Some(7));
    }
}
