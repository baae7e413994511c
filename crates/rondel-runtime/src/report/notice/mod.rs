//! Notices about messages that were late, lost or refused.

mod alignment;
mod delivery;
mod gate;
mod misread;
mod refusal;
mod time;
mod types;
mod uncertainty;

use rondel_event::{Timestamp, TopicId};
use serde_json::{Map, Value, json};

pub(crate) use alignment::{of_order, of_sets};
pub use delivery::SinkState;
pub use gate::GateChange;
pub(crate) use misread::{INEXACT, Misread, field_in, no_number, no_value_of};
pub(crate) use refusal::limit_text;
pub(crate) use time::SkipBy;

/// A notice about messages that were late, lost or refused.
#[derive(Clone, Debug)]
pub struct Notice {
    /// The kind, in one word: `late`, `absent`, `gap`…
    pub kind: &'static str,
    /// The topic, by its position.
    pub topic: Option<TopicId>,
    /// The name of the topic.
    pub topic_name: Option<String>,
    /// Further facts, by their names: times and durations in seconds.
    pub members: Vec<(&'static str, Value)>,
    /// Number of similar notices suppressed since the last one shown.
    pub before: u64,
    /// A sentence for people, without the name of the topic; its times are [marked](Notice::text).
    sentence: String,
    undelivered: Option<UndeliveredMessages>,
}

/// Messages that consumers of a sink did not accept.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UndeliveredMessages {
    /// The sink.
    pub sink: String,
    /// Number of messages since the notice before.
    pub count: u64,
    /// Time of day of the first of all.
    pub first: Timestamp,
    /// Time of day of the last.
    pub last: Timestamp,
}

/// A time in a sentence: whoever shows the sentence decides how times are written.
struct At(Timestamp);

/// The characters around the nanoseconds of a time in a sentence.
const AT: (char, char) = ('\u{2}', '\u{3}');

impl std::fmt::Display for At {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}{}{}", AT.0, self.0.as_nanos(), AT.1)
    }
}

impl Notice {
    pub(crate) fn new(
        kind: &'static str,
        topic: Option<TopicId>,
        members: Vec<(&'static str, Value)>,
        sentence: String,
    ) -> Notice {
        Notice { kind, topic, topic_name: None, members, before: 0, sentence, undelivered: None }
    }

    /// The messages that consumers of a sink did not accept, if the notice is about such messages.
    pub fn undelivered_messages(&self) -> Option<&UndeliveredMessages> {
        self.undelivered.as_ref()
    }

    /// The sentence for people, without the name of the topic; `time` writes a time.
    pub fn text(&self, time: &mut dyn FnMut(Timestamp) -> String) -> String {
        let mut text = String::new();
        for (i, part) in self.sentence.split(AT.0).enumerate() {
            match part.split_once(AT.1).filter(|_| i > 0) {
                Some((nanos, rest)) => {
                    text +=
                        &nanos.parse().map(|nanos| time(Timestamp::from_nanos(nanos))).unwrap_or_default();
                    text += rest;
                }
                None => text += part,
            }
        }
        text
    }

    /// The notice as a JSON object: `{"report":"late","topic":"gear",…}`.
    pub fn json(&self) -> Value {
        let mut object = Map::new();
        object.insert("report".to_owned(), json!(self.kind));
        if let Some(name) = &self.topic_name {
            object.insert("topic".to_owned(), json!(name));
        }
        object.extend(self.members.iter().map(|(key, value)| ((*key).to_owned(), value.clone())));
        Value::Object(object)
    }

    /// Whether every notice of this kind is about something else, so that each is worth a line.
    pub fn is_single(&self) -> bool {
        matches!(
            self.kind,
            "edited"
                | "jump"
                | "limit"
                | "long_parameter"
                | "missing"
                | "other_type"
                | "reload"
                | "shared"
                | "sink"
                | "store"
                | "unsaved"
                | "wide_strings"
        )
    }

    /// Whether notices of this kind are about times that follow one another, so that later ones are worth a line too.
    pub fn is_recurring(&self) -> bool {
        matches!(
            self.kind,
            "actions"
                | "blind"
                | "gate"
                | "lost"
                | "no_clock"
                | "outage"
                | "paused"
                | "reset"
                | "simulation_restarted"
                | "stalled"
        )
    }
}

/// A time as JSON in seconds, exact to the microsecond for calendar times.
fn seconds(time: Timestamp) -> Value {
    json!(time.as_nanos() as f64 / 1e9)
}

/// A duration as JSON in seconds.
pub(crate) fn span(nanos: u64) -> Value {
    json!(nanos as f64 / 1e9)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_in_sentences_are_written_by_the_reader() {
        let notice = Notice::backwards(7, Timestamp::from_nanos(1_500_000_000));
        assert_eq!(
            notice.text(&mut |time| format!("<{time}>")),
            "time goes backwards at step 7 (time <1.5>)"
        );
        let unread = Notice::unread("\u{2}5\u{3}".as_bytes());
        assert!(unread.text(&mut |_| "time".to_owned()).contains("\\u{2}5\\u{3}"));
    }
}
