//! Omissions: messages that properties read and that were not evaluated, or not completely, by reason, with their
//! number and the first one.
//!
//! Verdicts that depend on such messages are inconclusive. [`Reason`] lists every reason, so that all front ends and all
//! forms of output report them alike.

use std::collections::BTreeMap;

use rondel_engine::Monitor;
use rondel_event::{Timestamp, TopicId};
use rondel_spec::Spec;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::omissions;
use crate::text::counted;

/// Reason why a message, or a value in it, was not evaluated.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum Reason {
    /// It is missing according to the sequence numbers of its publisher.
    Lost,
    /// Its payload cannot be decoded, or the time in it.
    Undecodable,
    /// Its type or its encoding is not the one that the topic is read with.
    OtherType,
    /// A field has another type than the specification reads, or is beyond its range.
    OtherFieldType,
    /// A number that is read is NaN.
    NotANumber,
    /// Its time is too far from the clock.
    RefusedTime,
    /// It is larger than the limit.
    TooLarge,
    /// A part of the recording could not be read and was passed over.
    Skipped,
    /// It is before the first time to read, or after the last.
    OutsideSpan,
    /// A limit was reached: of instances, of values that are kept, or of pending obligations.
    OverLimit,
    /// A full queue dropped it.
    Dropped,
    /// It came after its time had been evaluated.
    Late,
    /// It may have been sent while the monitor was stopped, or cut off from the network.
    NotReceived,
}

impl Reason {
    /// All reasons.
    pub const ALL: [Reason; 13] = [
        Reason::Lost,
        Reason::Undecodable,
        Reason::OtherType,
        Reason::OtherFieldType,
        Reason::NotANumber,
        Reason::RefusedTime,
        Reason::TooLarge,
        Reason::Skipped,
        Reason::OutsideSpan,
        Reason::OverLimit,
        Reason::Dropped,
        Reason::Late,
        Reason::NotReceived,
    ];

    /// The name in JSON.
    pub fn as_str(self) -> &'static str {
        match self {
            Reason::Lost => "lost",
            Reason::Undecodable => "undecodable",
            Reason::OtherType => "other_type",
            Reason::OtherFieldType => "other_field_type",
            Reason::NotANumber => "not_a_number",
            Reason::RefusedTime => "refused_time",
            Reason::TooLarge => "too_large",
            Reason::Skipped => "skipped",
            Reason::OutsideSpan => "outside_span",
            Reason::OverLimit => "over_limit",
            Reason::Dropped => "dropped",
            Reason::Late => "late",
            Reason::NotReceived => "not_received",
        }
    }

    /// Whether a message was evaluated without one of its values, so that only verdicts that need this value are
    /// affected. They are inconclusive where they are evaluated.
    pub(crate) fn is_about_value(self) -> bool {
        matches!(self, Reason::OtherFieldType | Reason::NotANumber | Reason::OverLimit)
    }

    /// Returns the count in words, with `on` between the counted things and the verb.
    fn sentence(self, count: u64, on: &str) -> String {
        let of = |one: &str, many: &str, rest: &str| format!("{}{on} {rest}", counted(count, one, many));
        let is = if count == 1 { "is" } else { "are" };
        let was = if count == 1 { "was" } else { "were" };
        let has = if count == 1 { "has" } else { "have" };
        let messages = |rest: &str| of("message", "messages", rest);
        let values = |rest: &str| of("value", "values", rest);
        match self {
            Reason::Lost => messages(&format!("{was} lost, by the numbers of publishers")),
            Reason::Undecodable => messages("cannot be decoded"),
            Reason::OtherType => messages(&format!("{has} another type than the topic is read with")),
            Reason::OtherFieldType => values(&format!("{has} another type than the specification reads")),
            Reason::NotANumber => values(&format!("{is} NaN")),
            Reason::RefusedTime => messages(&format!("{was} refused: the times are too far from the clock")),
            Reason::TooLarge => messages(&format!("{was} refused: too large")),
            Reason::Skipped => {
                format!("{} of the recording{on} {was} skipped", counted(count, "part", "parts"))
            }
            Reason::OutsideSpan => messages(&format!("{is} outside the time span to read")),
            Reason::OverLimit => of("message or value", "messages or values", &format!("{is} over a limit")),
            Reason::Dropped => messages(&format!("{was} dropped by a full queue")),
            Reason::Late => messages("came too late"),
            Reason::NotReceived => of("time span", "time spans", "without reception"),
        }
    }
}

/// The first message that was not evaluated for a reason.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FirstOmission {
    /// Its time, or that of the message before it, if it is known.
    pub time: Option<Timestamp>,
    /// Description of the defect; may be empty.
    pub detail: String,
}

/// Number of messages of a topic not evaluated for one reason.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Omission {
    /// The reason.
    pub reason: Reason,
    /// The topic, by its position; `None` if it is not known, or all are meant.
    pub topic: Option<TopicId>,
    /// The name of the topic; empty for the one topic of a bare formula.
    pub topic_name: Option<String>,
    /// The number of messages, values, parts or time spans: see [`Reason`].
    pub count: u64,
    /// The first of them, if it is known.
    pub first: Option<FirstOmission>,
}

impl Omission {
    /// A sentence with the count and the first of them; `time` writes a time.
    pub fn sentence(&self, time: &mut dyn FnMut(Timestamp) -> String) -> String {
        let first = self.first.as_ref().map_or_else(String::new, |first| {
            let at = first.time.map(|at| format!(" at {}", time(at))).unwrap_or_default();
            match (&*first.detail, &*at) {
                ("", "") => String::new(),
                ("", at) => format!("; the first{at}"),
                (detail, at) => format!("; the first{at}: {detail}"),
            }
        });
        format!("{}{first}", self.brief())
    }

    /// The count and the reason as a sentence, without the first of them.
    pub fn brief(&self) -> String {
        let on = self.topic_name.as_deref().filter(|name| !name.is_empty());
        self.reason.sentence(self.count, &on.map(|name| format!(" on {name}")).unwrap_or_default())
    }

    /// Returns a JSON object with the members `reason`, `topic`, `count` and, if it is known, `first` with `time` in
    /// seconds and `detail`.
    pub fn json(&self) -> Value {
        let mut object =
            json!({"reason": self.reason.as_str(), "topic": self.topic_name, "count": self.count});
        if let Some(FirstOmission { time, detail }) = &self.first {
            object["first"] =
                json!({"time": time.map(|time| time.as_nanos() as f64 / 1e9), "detail": detail});
        }
        object
    }
}

/// An omission in a snapshot: the reason, the name of the topic, the count, and the time in nanoseconds and the detail of
/// the first one.
pub(crate) type SavedOmission = (Reason, Option<String>, u64, Option<(Option<i64>, String)>);

/// A reason and a topic.
type Place = (Reason, Option<TopicId>);

/// Number of messages not evaluated, and the first one.
type OmissionCount = (u64, Option<FirstOmission>);

/// All messages that were not evaluated, by reason and topic.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Omissions {
    entries: BTreeMap<Place, OmissionCount>,
}

impl Omissions {
    /// Adds `count` omissions; `first` describes the first one, and is called only for that.
    pub(crate) fn add(
        &mut self,
        reason: Reason,
        topic: Option<TopicId>,
        count: u64,
        first: impl FnOnce() -> Option<FirstOmission>,
    ) {
        if count == 0 {
            return;
        }
        let entry = self.entries.entry((reason, topic)).or_insert_with(|| (0, first()));
        entry.0 = entry.0.saturating_add(count);
    }

    /// Raises the count on a topic to at least `count`; several callers may count the same omissions.
    pub(crate) fn at_least(&mut self, reason: Reason, topic: TopicId, count: u64) {
        if count > 0 {
            let entry = self.entries.entry((reason, Some(topic))).or_default();
            entry.0 = entry.0.max(count);
        }
    }

    /// Describes the first omitted message, unless it is described already.
    pub(crate) fn describe(&mut self, reason: Reason, topic: TopicId, first: &FirstOmission) {
        if let Some((_, known)) = self.entries.get_mut(&(reason, Some(topic))) {
            known.get_or_insert_with(|| first.clone());
        }
    }

    /// Adds mistyped values in lines, by topic.
    pub(crate) fn add_mistyped(&mut self, counts: impl Iterator<Item = u64>) {
        for (topic, count) in (0..).map(TopicId).zip(counts) {
            self.add(Reason::OtherFieldType, Some(topic), count, || None);
        }
    }

    /// Adds the omissions of a monitor at its limits.
    pub(crate) fn add_limits(&mut self, monitor: &Monitor, spec: &Spec) {
        let left_out: u64 = monitor.slices().map(|slice| slice.refused + slice.too_long).sum();
        let counts = [
            left_out,
            monitor.dropped_samples(),
            monitor.given_up(),
            monitor.forgotten(),
            monitor.hurried(),
            monitor.leaps(),
        ];
        self.add(Reason::OverLimit, None, counts.iter().sum(), || {
            Some(FirstOmission { time: None, detail: omissions(monitor, spec).into_iter().next()? })
        });
    }

    /// Adds the omissions of a further recording.
    pub(crate) fn merge(&mut self, further: &Omissions) {
        for ((reason, topic), (count, first)) in &further.entries {
            self.add(*reason, *topic, *count, || first.clone());
        }
    }

    /// Replaces topics by those whose messages they stand for.
    pub(crate) fn rename(&mut self, declared: impl Fn(TopicId) -> TopicId) {
        for ((reason, topic), (count, first)) in std::mem::take(&mut self.entries) {
            self.add(reason, topic.map(&declared), count, || first);
        }
    }

    /// For a snapshot, given the names of the topics.
    pub(crate) fn saved(&self, names: &[String]) -> Vec<SavedOmission> {
        let name = |topic: TopicId| names.get(topic.index()).cloned();
        let entry = |((reason, topic), (count, first)): (&Place, &OmissionCount)| {
            let first = first.as_ref();
            let first = first.map(|first| (first.time.map(Timestamp::as_nanos), first.detail.clone()));
            (*reason, topic.and_then(name), *count, first)
        };
        self.entries.iter().map(entry).collect()
    }

    /// From a snapshot, given the names of the topics of a session, which may be others.
    pub(crate) fn restored(saved: &[SavedOmission], names: &[String]) -> Omissions {
        let mut omissions = Omissions::default();
        for (reason, topic, count, first) in saved {
            let place = topic.as_ref().and_then(|topic| names.iter().position(|name| name == topic));
            let place = place.map(|place| TopicId(place as u32));
            omissions.add(*reason, place, *count, || {
                let (time, detail) = first.clone()?;
                Some(FirstOmission { time: time.map(Timestamp::from_nanos), detail })
            });
        }
        omissions
    }

    /// Whether every message was evaluated.
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// All of them, by reason and topic; `name` returns the name of a topic.
    pub(crate) fn all<'n>(&self, name: impl Fn(TopicId) -> Option<&'n str>) -> Vec<Omission> {
        let omission = |((reason, topic), (count, first)): (&Place, &OmissionCount)| Omission {
            reason: *reason,
            topic: *topic,
            topic_name: topic.and_then(&name).map(str::to_owned),
            count: *count,
            first: first.clone(),
        };
        self.entries.iter().map(omission).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sentence_names_count_topic_and_first_message() {
        let mut omissions = Omissions::default();
        let first = || {
            Some(FirstOmission { time: Some(Timestamp::from_nanos(4_000_000_000)), detail: "byte 9".into() })
        };
        omissions.add(Reason::Undecodable, Some(TopicId(0)), 1, first);
        omissions.add(Reason::Undecodable, Some(TopicId(0)), 6, || None);
        omissions.add(Reason::NotReceived, None, 1, || None);
        omissions.add(Reason::Lost, None, 0, || None);
        let all = omissions.all(|_| Some("v"));
        let sentences: Vec<String> =
            all.iter().map(|own| own.sentence(&mut |time| format!("{time} s"))).collect();
        assert_eq!(
            sentences,
            ["7 messages on v cannot be decoded; the first at 4 s: byte 9", "1 time span without reception"]
        );
        assert_eq!(all[0].json()["first"]["time"], 4.0);
    }

    #[test]
    fn names_of_reasons_differ() {
        let names: std::collections::BTreeSet<&str> =
            Reason::ALL.iter().map(|reason| reason.as_str()).collect();
        assert_eq!(names.len(), Reason::ALL.len());
    }
}
