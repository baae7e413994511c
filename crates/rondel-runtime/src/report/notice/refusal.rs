//! Notices about messages that cannot be decoded, were refused, or are over a limit.

use rondel_align::Refusal;
use rondel_event::{Timestamp, TopicId, terminal};
use serde_json::json;

use super::{At, Notice, seconds, span};
use crate::text::{counted, duration as shown, grouped, parameters_text, size};

/// Limit of instances in words: their number, or their bytes.
pub(crate) fn limit_text(instances: u64, full: Option<usize>) -> String {
    let instances = counted(instances, "instance", "instances");
    full.map_or_else(
        || instances.clone(),
        |bytes| format!("{} for instances, with {instances},", size(bytes)),
    )
}

impl Notice {
    /// A message that cannot be decoded.
    pub(crate) fn undecodable(topic: TopicId, bytes: usize, why: &str) -> Notice {
        let sentence = format!("a message of {} bytes cannot be decoded: {why}", grouped(bytes as u64));
        let members = vec![("bytes", json!(bytes)), ("error", json!(why))];
        Notice::new("undecodable", Some(topic), members, sentence)
    }

    /// A message that was refused because its time is too far from the clock.
    pub(crate) fn refused(topic: TopicId, time: Timestamp, reason: Refusal, distance: u64) -> Notice {
        let (kind, side) = match reason {
            Refusal::Ahead => ("ahead", "after"),
            Refusal::Behind => ("behind", "before"),
        };
        let sentence = format!(
            "the time {time} is {} {side} the clock; the message was refused",
            shown(distance),
            time = At(time)
        );
        Notice::new(kind, Some(topic), vec![("time", seconds(time)), ("distance", span(distance))], sentence)
    }

    /// A limit of instances that a property has reached.
    pub(crate) fn limit(
        property: &str,
        instances: u64,
        full: Option<usize>,
        first: &[rondel_event::Value],
    ) -> Notice {
        let mut first = parameters_text(first);
        if let Some((end, _)) = first.char_indices().nth(60) {
            first.truncate(end);
            first.push('…');
        }
        let sentence = format!(
            "{property}: the limit of {} is reached; messages with a new parameter do not count, the first was {first}",
            limit_text(instances, full)
        );
        let members =
            vec![("property", json!(property)), ("instances", json!(instances)), ("first", json!(first))];
        let bytes = full.map(|bytes| ("bytes", json!(bytes)));
        let members = members.into_iter().chain(bytes).collect();
        Notice::new("limit", None, members, sentence)
    }

    /// A message whose parameter is too long.
    pub(crate) fn long_parameter(property: &str) -> Notice {
        let sentence =
            format!("{property}: a message has a parameter of more than 64 KiB, and does not count");
        Notice::new("long_parameter", None, vec![("property", json!(property))], sentence)
    }

    /// A message that was refused because it is too large.
    pub(crate) fn oversized(topic: TopicId, bytes: usize, limit: usize) -> Notice {
        let sentence = format!(
            "a message of {} bytes is larger than the limit of {}; it was refused",
            grouped(bytes as u64),
            size(limit)
        );
        Notice::new(
            "oversized",
            Some(topic),
            vec![("bytes", json!(bytes)), ("limit", json!(limit))],
            sentence,
        )
    }

    /// A progress marker that could not be used.
    pub(crate) fn unread(payload: &[u8]) -> Notice {
        let shown = terminal::escaped_beginning(&String::from_utf8_lossy(payload), 60);
        let sentence = format!(
            "a progress marker could not be used: {shown}; expected the form {{\"topic\":\"gear\",\"complete\":12.5}} \
             with a topic of this deployment"
        );
        Notice::new("progress_unread", None, vec![("payload", json!(shown))], sentence)
    }
}
