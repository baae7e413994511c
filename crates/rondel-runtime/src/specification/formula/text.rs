//! Values, fields and durations as they are written in a specification.

use rondel_event::terminal::is_obeyed;
use rondel_event::{Path, Segment, Timestamp, TopicId, Value};
use rondel_spec::{Spec, TimeModel};

/// The text of a field.
pub fn field(spec: &Spec, topic: TopicId, path: &Path) -> String {
    if let Some(event) = spec.event_text(topic, path) {
        return event;
    }
    format!("{}{}", topic_name(spec, topic), behind(path))
}

/// A path as it stands behind a name.
pub(super) fn behind(path: &Path) -> String {
    let dot = if matches!(path.0.first(), Some(Segment::Key(_))) { "." } else { "" };
    format!("{dot}{}", path_text(path))
}

/// The text of a path: keys that are no words stand in quotes.
pub(super) fn path_text(path: &Path) -> String {
    let segment = |(i, segment): (usize, &Segment)| match segment {
        Segment::Key(key) => {
            let dot = if i > 0 { "." } else { "" };
            let key = if is_word(key) { key.to_string() } else { quoted(key) };
            format!("{dot}{key}")
        }
        Segment::Index(index) => format!("[{index}]"),
        Segment::FromEnd(index) => format!("[-{index}]"),
        Segment::Named(named) => named.to_string(),
    };
    path.0.iter().enumerate().map(segment).collect()
}

pub(super) fn topic_name(spec: &Spec, topic: TopicId) -> &str {
    spec.topics.get(topic.index()).map_or("?", |topic| &topic.name)
}

/// A bound in the unit of a time model: a number of steps, or a duration.
pub fn bound(bound: u64, model: TimeModel) -> String {
    match model {
        TimeModel::Steps => bound.to_string(),
        TimeModel::Points | TimeModel::Dense if bound == 0 => "0".to_owned(),
        TimeModel::Points | TimeModel::Dense => duration(i64::try_from(bound).unwrap_or(i64::MAX)),
    }
}

/// A duration as a whole number of the largest possible unit, up to seconds.
fn duration(nanos: i64) -> String {
    let units = [(1_000_000_000, "s"), (1_000_000, "ms"), (1_000, "us"), (1, "ns")];
    let fitting = units.into_iter().find(|(unit, _)| nanos % unit == 0);
    fitting.map_or_else(|| format!("{nanos} ns"), |(unit, name)| format!("{} {name}", nanos / unit))
}

/// A value as it is written in a specification.
pub fn value_text(value: &Value) -> String {
    match value {
        Value::Bool(b) => b.to_string(),
        Value::Int(i) => i.to_string(),
        Value::Float(x) => x.to_string(),
        Value::Time(ns) => Timestamp::from_nanos(*ns).to_string() + " s",
        Value::Duration(ns) => duration(*ns),
        Value::String(text) => quoted(text),
    }
}

/// Whether a text is a word of the language, so that it stands without quotes behind a point.
pub(crate) fn is_word(text: &str) -> bool {
    let mut letters = text.chars();
    letters.next().is_some_and(|c| c.is_alphabetic() || c == '_')
        && letters.all(|c| c.is_alphanumeric() || c == '_')
}

/// A text of the language in its quotes. Its escapes are not those of JSON.
pub(crate) fn quoted(text: &str) -> String {
    let mut out = String::from('"');
    for c in text.chars() {
        match c {
            '"' | '\\' => out.extend(['\\', c]),
            '\n' => out.push_str("\\n"),
            c if is_obeyed(c) => out.push_str(&format!("\\u{{{:x}}}", u32::from(c))),
            c => out.push(c),
        }
    }
    out.push('"');
    out
}
