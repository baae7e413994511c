//! Notices about sinks, connections and the process: messages lost or not delivered.

use rondel_event::{Timestamp, TopicId};
use serde_json::{Value, json};

use super::{At, Notice, UndeliveredMessages, seconds};
use crate::text::counted;

/// State of a sink beside networks, for a [notice](Notice::sink).
#[derive(Clone, Copy, Debug)]
pub struct SinkState<'a> {
    /// Its role: `store`, or `sink`.
    pub role: &'static str,
    /// Name.
    pub name: &'a str,
    /// State: `failing`, `broken`, or another.
    pub state: &'a str,
    /// Last error.
    pub error: Option<&'a str>,
    /// Number of entries that wait.
    pub waiting: u64,
    /// File for entries that wait for long, if there is one.
    pub waits_in: Option<&'a str>,
    /// Number of entries lost so far.
    pub lost: u64,
}

impl Notice {
    /// Messages that consumers of a sink did not accept: the count since the last such notice and of all, and the
    /// times of the first and the last.
    pub fn undelivered(
        sink: &str,
        (count, all): (u64, u64),
        (first, last): (Timestamp, Timestamp),
    ) -> Notice {
        let sentence = format!(
            "{} dropped, as a consumer did not accept them in time",
            counted(count, "message on ", "messages on ") + sink
        );
        let members = vec![
            ("sink", json!(sink)),
            ("count", json!(count)),
            ("all", json!(all)),
            ("first", seconds(first)),
            ("last", seconds(last)),
        ];
        let undelivered = Some(UndeliveredMessages { sink: sink.to_owned(), count, first, last });
        Notice { undelivered, ..Notice::new("undelivered", None, members, sentence) }
    }

    /// Messages that were missed and fetched again: the count since the last such notice and of all, and when they were
    /// first missed and last received.
    pub fn recovered(
        topic: TopicId,
        name: &str,
        (count, all): (u64, u64),
        (from, until): (Timestamp, Timestamp),
    ) -> Notice {
        let messages = counted(count, "message", "messages");
        let sentence =
            format!("{messages} missed from {} on and received again until {}", At(from), At(until));
        let members = vec![
            ("count", json!(count)),
            ("all", json!(all)),
            ("from", seconds(from)),
            ("until", seconds(until)),
        ];
        let topic_name = Some(name.to_owned());
        Notice { topic_name, ..Notice::new("recovered", Some(topic), members, sentence) }
    }

    /// A connection that was lost, and is restored unless there is no time `until`.
    pub fn outage(
        network: &str,
        neighbour: Option<&str>,
        from: Timestamp,
        until: Option<Timestamp>,
    ) -> Notice {
        let with = neighbour.map(|neighbour| format!(" with {neighbour}")).unwrap_or_default();
        let end =
            until.map_or_else(|| " and is not restored".to_owned(), |until| format!(" to {}", At(until)));
        let sentence = format!("{network}: the connection{with} was lost from {}{end}", At(from));
        let members = vec![
            ("network", json!(network)),
            ("neighbour", json!(neighbour)),
            ("from", seconds(from)),
            ("until", until.map_or(Value::Null, seconds)),
        ];
        Notice::new("outage", None, members, sentence)
    }

    /// The thread that evaluates has not moved for so many seconds, and what it was doing; `is_over`: it moves again.
    pub fn stalled(seconds: f64, place: &str, is_over: bool) -> Notice {
        let sentence = match is_over {
            true => format!("checking goes on after {seconds:.1} s of {place}"),
            false => format!("checking has not moved for {seconds:.1} s: it is {place}"),
        };
        let members = vec![("seconds", json!(seconds)), ("place", json!(place)), ("over", json!(is_over))];
        Notice::new("stalled", None, members, sentence)
    }

    /// A sink beside networks, such as a store, that does not accept entries, or does again, or has lost some.
    pub fn sink(state: &SinkState<'_>) -> Notice {
        let SinkState { role, name, state, error, waiting, waits_in, lost } = *state;
        let error_text = error.map_or_else(|| format!("the {role} accepts nothing"), str::to_owned);
        let waiting_text = counted(waiting, "entry waits", "entries wait");
        let written = if role == "store" { "stored" } else { "written" };
        let mut sentence = match (state, waits_in) {
            ("failing", None) => {
                format!("{error_text}; {waiting_text} in memory, and writing is tried again")
            }
            ("failing", Some(file)) => {
                format!("{error_text}; {waiting_text}, in {file} once it lasts, and writing is tried again")
            }
            ("broken", None) => format!("{error_text}; nothing further is {written}"),
            ("broken", Some(file)) => format!("{error_text}; further entries are kept in {file}"),
            _ => format!("the {role} {name} accepts verdicts again"),
        };
        if lost > 0 {
            sentence += &format!("; {} lost so far", counted(lost, "entry was", "entries were"));
        }
        let members = vec![
            (role, json!(name)),
            ("state", json!(state)),
            ("error", json!(error)),
            ("waiting", json!(waiting)),
            ("lost", json!(lost)),
        ];
        Notice::new(role, None, members, sentence)
    }

    /// Actions on verdicts that were not done since the last such notice: those beyond their limits, those dropped, and
    /// those that failed.
    pub fn actions(limited: u64, dropped: u64, failed: u64) -> Notice {
        let parts =
            [(limited, "beyond their limits"), (dropped, "dropped, as too many waited"), (failed, "failed")];
        let parts: Vec<String> = parts
            .into_iter()
            .filter(|(count, _)| *count > 0)
            .map(|(count, what)| format!("{} {what}", counted(count, "action", "actions")))
            .collect();
        let members =
            vec![("limited", json!(limited)), ("dropped", json!(dropped)), ("failed", json!(failed))];
        Notice::new("actions", None, members, format!("not done: {}", parts.join(", ")))
    }

    /// A reload that was done or refused: its members, and the sentence about it.
    pub fn reload(members: Vec<(&'static str, Value)>, sentence: String) -> Notice {
        Notice::new("reload", None, members, sentence)
    }

    /// A snapshot that could not be written. `holds`: messages are not acknowledged before it is.
    pub fn unsaved(file: &std::path::Path, error: &std::io::Error, holds: bool) -> Notice {
        let then = if holds { "; messages are not acknowledged before it is written" } else { "" };
        let sentence = format!("cannot write the snapshot {}: {error}{then}", file.display());
        let members = vec![
            ("file", json!(file.display().to_string())),
            ("error", json!(error.to_string())),
            ("acknowledged", json!(!holds)),
        ];
        Notice::new("unsaved", None, members, sentence)
    }

    /// Notices that were dropped because too many waited to be taken.
    pub(crate) fn dropped(count: u64) -> Notice {
        let sentence =
            format!("{} dropped because too many waited", counted(count, "notice was", "notices were"));
        Notice::new("unsaid", None, vec![("count", json!(count))], sentence)
    }

    /// Messages that are missing by the numbers of a publisher, or of several.
    pub(crate) fn lost(
        topic: TopicId,
        count: u64,
        publisher: Option<u64>,
        from: Timestamp,
        until: Timestamp,
    ) -> Notice {
        let messages = counted(count, "message was", "messages were");
        let sentence = format!(
            "{messages} lost between {} and {}, by the sequence numbers of {}",
            At(from),
            At(until),
            if publisher.is_some() { "a publisher" } else { "several publishers" }
        );
        let members = vec![
            ("count", json!(count)),
            ("publisher", json!(publisher.map(|publisher| format!("{publisher:016x}")))),
            ("from", seconds(from)),
            ("until", seconds(until)),
        ];
        Notice::new("lost", Some(topic), members, sentence)
    }
}
