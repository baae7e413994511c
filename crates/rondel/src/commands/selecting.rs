//! Selection of messages of recordings by topic and time, and sentences about a recording as a whole.

use std::path::Path;

use rondel_decode::lines::{is_matched, is_pattern};
use rondel_event::{Timestamp, calendar};
use rondel_recording::{End, RecordedTopic};
use rondel_runtime::text::counted;

use crate::output::time_text::TimeText;

/// Hint for a pattern of `--topics` that matches no topic.
const PATTERNS: &str = "; patterns are `*` for one level between slashes and `**` for any number, `$*` for a part of a \
                        level (`/od$*`), or `+` and a last `#` as in MQTT";

/// Whether a recording can be opened several times.
pub(super) fn can_be_read_again(trace: &Path) -> bool {
    let is_stream = std::fs::metadata(trace).is_ok_and(|file| !file.is_file() && !file.is_dir());
    trace.as_os_str() != "-" && !is_stream
}

/// Whether a name or pattern of `--topics` means a recorded topic.
pub(super) fn is_named(name: &str, topic: &str) -> bool {
    let bare = |text: &str| text.strip_prefix('/').unwrap_or(text).to_owned();
    bare(name) == bare(topic) || is_pattern(name) && is_matched(name, topic)
}

/// Names of the topics of a recording, as text.
pub(super) fn names(recorded: &[RecordedTopic]) -> String {
    let mut all: Vec<&str> = recorded.iter().map(|topic| topic.name.as_str()).collect();
    all.sort_unstable();
    all.dedup();
    all.join(", ")
}

/// Error message for a name or pattern of `--topics` that matches no topic of a recording.
pub(super) fn no_such_topic(name: &str, recorded: &[RecordedTopic]) -> String {
    let patterns = if name.contains(['*', '?', '+', '#']) { PATTERNS } else { "" };
    let all = names(recorded);
    format!("--topics {name}: no topic of the recording has this name; it has {all}{patterns}")
}

/// The first and the last time of options, given with their names, in a recording that begins at this time.
///
/// # Errors
/// A sentence if one is no time, or they are in the wrong order.
pub(super) fn span(
    options: [(&str, Option<&str>); 2],
    first: Timestamp,
) -> Result<(Timestamp, Timestamp), String> {
    let time = |(option, text): (&str, Option<&str>), otherwise: i64| {
        match text {
        None => Ok(Timestamp::from_nanos(otherwise)),
        Some(text) => limit(text, first).ok_or_else(|| {
            format!("{option} {text}: write seconds, a date and time such as 2026-11-22T18:04:13Z, or +SECONDS from the beginning")
        }),
    }
    };
    for (option, text) in options {
        let Some(text) = text.filter(|text| is_offset(text, first)) else { continue };
        let begin = TimeText::default().text(first);
        return Err(format!(
            "{option} {text} lies in 1970, but the recording begins at {begin}: write {option} +{text} for so many seconds \
             after its beginning"
        ));
    }
    let span = (time(options[0], i64::MIN)?, time(options[1], i64::MAX)?);
    let is_after = |text: Option<&str>| text.is_some_and(|text| text.starts_with('+'));
    // One after the beginning and one absolute: their order depends on the recording.
    let is_known = first != Timestamp::default() || is_after(options[0].1) == is_after(options[1].1);
    if span.0 > span.1 && is_known {
        Err(format!("{} is after {}", options[0].0, options[1].0))
    } else {
        Ok(span)
    }
}

/// Whether a time that is written as seconds since 1970 can only be meant as seconds after the beginning of a recording.
fn is_offset(text: &str, first: Timestamp) -> bool {
    const MONTH: f64 = 31.0 * 86_400.0;
    /// The year 2001.
    const RECENT: Timestamp = Timestamp::from_nanos(1_000_000_000_000_000_000);
    let seconds = text.trim().trim_end_matches('s').trim_end().parse::<f64>();
    first > RECENT && !text.starts_with('+') && seconds.is_ok_and(|seconds| seconds.abs() < MONTH)
}

/// A limit of times: seconds, a date and time, or seconds after the beginning with `+` before them.
fn limit(text: &str, first: Timestamp) -> Option<Timestamp> {
    let nanos = |text: &str| {
        let seconds: f64 = text.trim().trim_end_matches('s').trim_end().parse().ok()?;
        (seconds.is_finite() && seconds.abs() < 9e9).then_some((seconds * 1e9).round() as i64)
    };
    if let Some(after) = text.strip_prefix('+') {
        return Some(Timestamp::from_nanos(first.as_nanos().checked_add(nanos(after)?)?));
    }
    if let Some(nanos) = nanos(text) {
        return Some(Timestamp::from_nanos(nanos));
    }
    // Times are shown in local time: without an offset, a copied one would be taken for UTC.
    calendar::parse(text.as_bytes()).filter(|date| date.has_offset)?.timestamp()
}

/// Sentence about the messages that a recording lacks according to its recorder.
pub(super) fn missing(end: &End) -> String {
    let &End { lost, refused, unwritten, unread, .. } = end;
    let reasons = [(lost, "lost before it"), (refused, "refused"), (unwritten, "not written")];
    let reasons: Vec<String> = reasons
        .iter()
        .filter(|(count, _)| *count > 0)
        .map(|(count, how)| counted(*count, how, how))
        .collect();
    let mut parts = Vec::new();
    if !reasons.is_empty() {
        let messages = counted(end.missing(), "message", "messages");
        parts.push(format!("missed {messages} ({})", reasons.join(", ")));
    }
    if unread > 0 {
        parts.push(format!(
            "could not read {}",
            counted(unread, "publisher or topic", "publishers or topics")
        ));
    }
    let cut_offs = end.cut_offs.all();
    if let Some(first) = cut_offs.first() {
        let (count, from) = (cut_offs.len() as u64, TimeText::default().text(first.from));
        parts.push(match end.dropped_out {
            true => format!("had {}, the first at {from}", counted(count, "dropout", "dropouts")),
            false => {
                format!("was cut off from a network {}, first at {from}", counted(count, "time", "times"))
            }
        });
    }
    format!("the recording is not complete: its recorder {}", parts.join(", "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn seconds_after_the_beginning_are_written_with_a_plus() {
        let second = |seconds: i64| Timestamp::from_nanos(seconds * 1_000_000_000);
        let from =
            |text, first| span([("--from", Some(text)), ("--to", None)], second(first)).map(|span| span.0);
        assert_eq!(from("20", 0), Ok(second(20)));
        assert_eq!(from("+20", 1_700_000_000), Ok(second(1_700_000_020)));
        assert_eq!(from("1700000020", 1_700_000_000), Ok(second(1_700_000_020)));
        assert_eq!(from("2023-11-14T23:13:40+01:00", 1_700_000_000), Ok(second(1_700_000_020)));
        assert!(from("2023-11-14 22:13:40", 1_700_000_000).is_err());
        // In the time zone of the machine.
        let begins = TimeText::default().text(second(1_700_000_000));
        assert_eq!(
            from("20", 1_700_000_000),
            Err(format!(
                "--from 20 lies in 1970, but the recording begins at {begins}: write --from +20 for so many seconds \
                 after its beginning"
            ))
        );
    }
}
