//! Notices about messages that were late, lost or refused.

mod alignment;
mod types;

use rondel_align::Refusal;
use rondel_decode::NoNumber;
use rondel_engine::RestartReason;
use rondel_event::{Countable, Field, Path, Projection, Read, Slot, Timestamp, TopicId};
use serde_json::{Map, Value, json};

use crate::missing::{Vacuous, VacuousKind};
use crate::session::Edited;
use crate::statistics::{Cause, Pause};
use crate::text::{counted, duration as shown, grouped, parameters_text, size};
pub(crate) use alignment::{of_order, of_sets};

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
}

/// Option that leaves out the messages before a jump in time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum SkipBy {
    /// By the time from which on a recording is read.
    From,
    /// The same, where message times differ from the recording times.
    FromRecorded,
    /// By editing a recording of lines.
    Lines,
    /// By counting messages at their arrival.
    Arrival,
    /// Not at all: only some topics count at their arrival.
    OneClock,
}

/// The reason for which an integer of an undeclared field is unknown, behind the name of the field.
pub(crate) const INEXACT: &str = "has an integer beyond 2^53, which is not exact while the type of the field is not declared: declare it as `int`";

/// The first value that could not be read as what the specification reads, and its field.
pub(crate) enum Misread<'p> {
    /// An integer of an undeclared field that a double rounds.
    Inexact(&'p Path),
    /// An integer beyond 64 bits with a sign.
    TooLarge(&'p Path),
    /// A text that should be a number.
    Text(&'p Path, NoNumber),
    /// A value of another type in an element of an array.
    Element(&'p Field),
}

/// The field of a projection in a slot, or if a position in a table is given, the field of the table there.
pub(crate) fn field_in(projection: &Projection, slot: Slot, member: Option<u16>) -> Option<&Field> {
    let field = projection.fields.iter().find(|field| field.slot == slot)?;
    match (&field.read, member) {
        (Read::Table(table), Some(member)) => table.fields.get(usize::from(member)),
        _ => Some(field),
    }
}

/// The field of an element with a value of another type, and the type that is read.
pub(crate) fn no_value_of(field: &Field) -> String {
    let path = field.path.as_listed();
    match &field.read {
        Read::Value(value_type) | Read::Number(value_type) => {
            format!("`{path}` has another type than `{value_type}`")
        }
        Read::LengthOf(Countable::Text) => format!("`{path}` is no text"),
        _ => format!("`{path}` is no array"),
    }
}

/// The reason for which a text is unknown where it should be a number, behind the name of the field.
pub(crate) fn no_number(text: &NoNumber) -> String {
    format!("is the text {}, which is not a number", text.quoted())
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

/// Limit of instances in words: their number, or their bytes.
pub(crate) fn limit_text(instances: u64, full: Option<usize>) -> String {
    let instances = counted(instances, "instance", "instances");
    full.map_or_else(
        || instances.clone(),
        |bytes| format!("{} for instances, with {instances},", size(bytes)),
    )
}

impl Notice {
    pub(crate) fn new(
        kind: &'static str,
        topic: Option<TopicId>,
        members: Vec<(&'static str, Value)>,
        sentence: String,
    ) -> Notice {
        Notice { kind, topic, topic_name: None, members, before: 0, sentence }
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
        Notice::new("undelivered", None, members, sentence)
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

    /// A time that the monitor itself did not see pass.
    pub(crate) fn paused(pause: &Pause) -> Notice {
        let Pause { from, until, cause } = *pause;
        let lasted = until.as_nanos().saturating_sub(from.as_nanos()).max(0).unsigned_abs();
        let sentence = match cause {
            Cause::Stopped => format!("the monitor did not run for {} from {} on", shown(lasted), At(from)),
            Cause::Restart => {
                format!("the monitor goes on from a snapshot of {}, taken {} ago", At(from), shown(lasted))
            }
            Cause::Clock { by } if by < 0 => format!(
                "the clock of this machine was set back by {}, from {} to {}: where messages count at their arrival, \
                 nothing is known of times until it shows the first again",
                shown(by.unsigned_abs()),
                At(from),
                At(until)
            ),
            Cause::Clock { by } => {
                let by = shown(by.unsigned_abs());
                format!(
                    "the clock of this machine was set forward by {by}, from {} to {}",
                    At(from),
                    At(until)
                )
            }
            Cause::Begun => format!(
                "the first message on /clock, of {}, came after other messages: how old these are is not known",
                At(until)
            ),
            Cause::Simulation => {
                format!("the time on /clock went from {} to {} at once", At(from), At(until))
            }
        };
        let mut members =
            vec![("from", seconds(from)), ("until", seconds(until)), ("cause", json!(cause.as_str()))];
        if let Cause::Clock { by } = cause {
            members.push(("by", json!(by as f64 / 1e9)));
        }
        Notice::new("paused", None, members, sentence)
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

    /// No message on `/clock` for so many nanoseconds; `has_begun`: there was one before.
    pub fn no_clock(after: i64, has_begun: bool) -> Notice {
        let lasted = shown(after.max(0).unsigned_abs());
        let sentence = match has_begun {
            true => format!(
                "no message on /clock for {lasted}: time stands still, and nothing is decided by time alone"
            ),
            false => format!(
                "no message on /clock after {lasted}: until the first one, nothing is decided by time alone"
            ),
        };
        Notice::new("no_clock", None, vec![("after", span(after.max(0).unsigned_abs()))], sentence)
    }

    /// The time on `/clock` went back: the simulation was restarted, and checking with it.
    pub fn simulation_restarted(from: Timestamp, time: Timestamp) -> Notice {
        let sentence = format!(
            "the time on /clock went back from {} to {}: checking restarts; pending verdicts are inconclusive",
            At(from),
            At(time)
        );
        let members = vec![("from", seconds(from)), ("time", seconds(time))];
        Notice::new("simulation_restarted", None, members, sentence)
    }

    /// The times of all topics stepped back: from `from`, the latest time before, to `to`. The lap with this number begins,
    /// or goes on where all verdicts are inconclusive from here on.
    pub(crate) fn reset(lap: u32, from: Timestamp, to: Timestamp) -> Notice {
        let sentence = format!(
            "the times of all topics went back from {} to {}: lap {lap} begins; pending verdicts are inconclusive",
            At(from),
            At(to)
        );
        let members = vec![("lap", json!(lap)), ("from", seconds(from)), ("time", seconds(to))];
        Notice::new("reset", None, members, sentence)
    }

    /// The times of messages jumped forward by more than a year: from `from` to `to`, the time of a message on this topic.
    pub(crate) fn jump(topic: TopicId, from: Timestamp, to: Timestamp, skip_by: SkipBy) -> Notice {
        let (before, after) = (At(from), At(to));
        let advice = match skip_by {
            SkipBy::From => format!("`--from {}` leaves the messages before it out", exact_seconds(to)),
            SkipBy::FromRecorded => {
                "`--from` with the time at which it was recorded leaves the messages before it out".to_owned()
            }
            SkipBy::Lines => "delete the lines before it, if no clock was set then".to_owned(),
            SkipBy::Arrival => {
                "`time: arrival` in the deployment counts messages at their arrival until a clock is set"
                    .to_owned()
            }
            SkipBy::OneClock => {
                "the messages before it have times of another clock than that of arrival".to_owned()
            }
        };
        let sentence = format!("times jump from {before} to {after}; {advice}");
        Notice::new("jump", Some(topic), vec![("from", seconds(from)), ("time", seconds(to))], sentence)
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

    /// Properties that have become inconclusive, as messages were missed on which their verdicts depend. `stay` are
    /// those among them that look back without bound.
    pub(crate) fn blind(properties: &[&str], stay: &[&str], from: Option<Timestamp>) -> Notice {
        let list = |names: &[&str]| {
            let shown = names.iter().take(3).copied().collect::<Vec<_>>().join(", ");
            let more = names.len().saturating_sub(3);
            if more > 0 { format!("{shown} and {more} more") } else { shown }
        };
        let mut sentence = format!(
            "messages were not seen; {}verdicts that depend on them are inconclusive: {}",
            from.map(|time| format!("from {} on, ", At(time))).unwrap_or_default(),
            list(properties)
        );
        if !stay.is_empty() {
            sentence += &format!("; {} may stay so: nothing bounds how far back", list(stay));
        }
        let members = vec![
            ("properties", json!(properties)),
            ("unbounded", json!(stay)),
            ("from", from.map_or(Value::Null, seconds)),
        ];
        Notice::new("blind", None, members, sentence)
    }

    /// Outcome of an edit for the properties of a specification.
    pub(crate) fn edited(edited: &Edited) -> Notice {
        let Edited { continued, restarted, removed } = edited;
        let mut sentence = format!(
            "the specification was edited since the snapshot: {} with {} state",
            match &continued[..] {
                [one] => format!("`{one}` continues"),
                several => format!("{} continue", counted(several.len() as u64, "property", "properties")),
            },
            if continued.len() == 1 { "its" } else { "their" }
        );
        for (name, why) in restarted {
            sentence += &format!("; `{name}` restarts: {why}");
        }
        if !removed.is_empty() {
            sentence += &format!("; removed: {}", removed.join(", "));
        }
        let begun =
            |(name, why): &(String, RestartReason)| json!({"property": name, "reason": why.to_string()});
        let members = vec![
            ("continued", json!(continued)),
            ("anew", json!(restarted.iter().map(begun).collect::<Vec<_>>())),
            ("removed", json!(removed)),
        ];
        Notice::new("edited", None, members, sentence)
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
        (from, until): (Timestamp, Timestamp),
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

    /// A message without the time that it should carry.
    pub(crate) fn unstamped(topic: TopicId, time: Timestamp) -> Notice {
        let sentence = "a message carries no time, or the time zero".to_owned();
        Notice::new("unstamped", Some(topic), vec![("time", seconds(time))], sentence)
    }

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
        (instances, full): (u64, Option<usize>),
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
                | "shared"
                | "unsaved"
                | "wide_strings"
        )
    }

    /// Whether notices of this kind are about times that follow one another, so that later ones are worth a line too.
    pub fn is_recurring(&self) -> bool {
        matches!(
            self.kind,
            "blind"
                | "lost"
                | "no_clock"
                | "outage"
                | "paused"
                | "reset"
                | "simulation_restarted"
                | "stalled"
        )
    }

    /// The first event whose time is before that of the event before it.
    pub(crate) fn backwards(step: u64, time: Timestamp) -> Notice {
        let sentence = format!("time goes backwards at step {step} (time {time})", time = At(time));
        Notice::new("backwards", None, vec![("step", json!(step)), ("time", seconds(time))], sentence)
    }

    /// A topic that has not come, or not with a value for some fields, so long after the start.
    /// `unread` messages came that could not be read.
    pub(crate) fn missing(
        topic: TopicId,
        (reasons, unread): (&[Vacuous], u64),
        properties: &[&str],
        after: i64,
    ) -> Notice {
        let after = after.unsigned_abs();
        let fields: Vec<&String> = reasons.iter().filter_map(|reason| reason.field.as_ref()).collect();
        let mut members = vec![("after", span(after)), ("properties", json!(properties))];
        if unread > 0 {
            members.push(("unread", json!(unread)));
        }
        let is_event = reasons.iter().any(|reason| reason.kind == VacuousKind::Event);
        let what = if is_event {
            members.push(("event", json!(true)));
            "no event of the topic has come".to_owned()
        } else if fields.is_empty() && unread > 0 {
            format!("no message could be read, of {} that came", crate::text::grouped(unread))
        } else if fields.is_empty() {
            "no message has come".to_owned()
        } else {
            let quoted: Vec<String> = fields.iter().map(|field| format!("`{field}`")).collect();
            members.push(("fields", json!(fields)));
            format!("no message has had a value for {}", quoted.join(", "))
        };
        let names: Vec<&str> = properties.iter().take(3).copied().collect();
        let more = properties.len() - names.len();
        let more = if more > 0 { format!(" and {more} more") } else { String::new() };
        let verb = if properties.len() == 1 { "needs" } else { "need" };
        let sentence = format!("{what} within {}; {}{more} {verb} it", shown(after), names.join(", "));
        Notice::new("missing", Some(topic), members, sentence)
    }

    /// The first values of another type than the specification reads.
    pub(crate) fn mistyped(topic: TopicId, count: u64, first: Option<Misread<'_>>) -> Notice {
        let mut members = vec![("count", json!(count))];
        let sentence = match first {
            Some(Misread::Text(field, text)) => {
                members.push(("not_a_number", json!(field.to_string())));
                format!(
                    "`{field}` {}; it counts as unknown ({} of another type so far)",
                    no_number(&text),
                    counted(count, "value is", "values are")
                )
            }
            Some(Misread::Element(field)) => {
                members.push(("element", json!(field.path.as_listed().to_string())));
                format!(
                    "{}; it counts as unknown ({} of another type so far)",
                    no_value_of(field),
                    counted(count, "value is", "values are")
                )
            }
            Some(Misread::Inexact(field)) => {
                members.push(("inexact", json!(field.to_string())));
                format!(
                    "`{field}` {INEXACT}; it counts as unknown ({} or of another type so far)",
                    counted(count, "value is so", "values are so")
                )
            }
            Some(Misread::TooLarge(field)) => {
                members.push(("too_large", json!(field.to_string())));
                format!(
                    "`{field}` has an integer beyond 9223372036854775807, the greatest that a specification can read (64 bits with \
                     a sign); it counts as unknown ({} or of another type so far)",
                    counted(count, "value is so", "values are so")
                )
            }
            None => format!(
                "{} of another type than the specification reads, or integers beyond 64 bits with a sign; they count as unknown",
                counted(count, "value is", "values are")
            ),
        };
        Notice::new("mistyped", Some(topic), members, sentence)
    }

    /// A topic whose messages are about several things in turn, which properties mix up: the field that looks like their
    /// name, with how many values it had, and the clause that keeps them apart.
    pub(crate) fn shared(
        topic: TopicId,
        field: &str,
        values: usize,
        properties: &[String],
        each: &str,
    ) -> Notice {
        let others = match properties.len() {
            0 | 1 => String::new(),
            2 => " and 1 other property compare".to_owned(),
            more => format!(" and {} other properties compare", more - 1),
        };
        let compare = if others.is_empty() { " compares" } else { &others };
        let first = properties.first().map_or("", String::as_str);
        let sentence = format!(
            "messages alternate between {values} values of `{field}`, and {first}{compare} each message with earlier ones \
             of any value; `{each}` keeps them apart"
        );
        let members = vec![
            ("field", json!(field)),
            ("values", json!(values)),
            ("properties", json!(properties)),
            ("clause", json!(each)),
        ];
        Notice::new("shared", Some(topic), members, sentence)
    }

    /// Machines that were not followed through a time without messages.
    pub(crate) fn leap(count: u64, time: Timestamp) -> Notice {
        let sentence = format!(
            "{} not followed through all transitions that time alone brings before {time}",
            counted(count, "machine was", "machines were"),
            time = At(time)
        );
        Notice::new("leap", None, vec![("count", json!(count)), ("time", seconds(time))], sentence)
    }

    /// A progress marker that could not be used.
    pub(crate) fn unread(payload: &[u8]) -> Notice {
        let letters = String::from_utf8_lossy(payload);
        let shown: String = letters.chars().take(60).map(|c| if c.is_control() { '·' } else { c }).collect();
        let sentence = format!(
            "a progress marker could not be used: {shown}; expected the form {{\"topic\":\"gear\",\"complete\":12.5}} \
             with a topic of this deployment"
        );
        Notice::new("progress_unread", None, vec![("payload", json!(shown))], sentence)
    }
}

/// A time in seconds with all of its digits, as options take it.
fn exact_seconds(time: Timestamp) -> String {
    let nanos = time.as_nanos();
    let sign = if nanos < 0 { "-" } else { "" };
    let (whole, rest) = (nanos.unsigned_abs() / 1_000_000_000, nanos.unsigned_abs() % 1_000_000_000);
    let text = format!("{sign}{whole}.{rest:09}");
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
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
    fn a_jump_names_the_time_to_read_from() {
        let (zero, then) = (Timestamp::ZERO, Timestamp::from_nanos(1_649_138_879_500_000_001));
        let text =
            |skip_by| Notice::jump(TopicId(0), zero, then, skip_by).text(&mut |time| format!("<{time}>"));
        assert!(
            text(SkipBy::From).ends_with("; `--from 1649138879.500000001` leaves the messages before it out")
        );
        assert!(text(SkipBy::Arrival).contains("`time: arrival`"));
        let whole = Timestamp::from_nanos(10_000_000_000);
        assert_eq!((exact_seconds(whole), exact_seconds(zero)), ("10".to_owned(), "0".to_owned()));
    }

    #[test]
    fn times_in_sentences_are_written_by_the_reader() {
        let notice = Notice::backwards(7, Timestamp::from_nanos(1_500_000_000));
        assert_eq!(
            notice.text(&mut |time| format!("<{time}>")),
            "time goes backwards at step 7 (time <1.5>)"
        );
        let unread = Notice::unread("\u{2}5\u{3}".as_bytes());
        assert!(unread.text(&mut |_| "time".to_owned()).contains("·5·"));
    }
}
