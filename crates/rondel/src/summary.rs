//! Parts of the closing summaries that live runs and checks of recordings share.

use rondel_event::Verdict;
use rondel_runtime::text::{counted, grouped};
use rondel_runtime::{FirstViolation, PropertyStatistics, Summary};

use crate::exit;
use crate::time_text::TimeText;

/// The place of a first violation: `of [7] at step 168 (time 7.5 s)`.
pub fn first_violation(first: &FirstViolation) -> String {
    let of = if first.parameters.is_empty() { String::new() } else { format!("of {} ", first.parameters) };
    let time = TimeText::default().text(first.time);
    match first.step {
        Some(step) => format!("{of}at step {} (time {time})", step),
        None => format!("{of}at time {time}"),
    }
}

/// The verdict of a property over all recordings, and a remark.
pub fn standing(statistics: &PropertyStatistics) -> (Verdict, String) {
    if let Some(first) = &statistics.first {
        let times = counted(statistics.violations, "time", "times");
        (Verdict::Violated, format!("violated {times}, first {}", first_violation(first)))
    } else if statistics.undecided() {
        (Verdict::Inconclusive, "never decided".to_owned())
    } else if statistics.open {
        (Verdict::Inconclusive, "pending at the end".to_owned())
    } else if statistics.inconclusive > 0 {
        let (at, one, many) =
            if statistics.by_steps { ("at ", "step", "steps") } else { ("", "time", "times") };
        let times = counted(statistics.inconclusive, one, many);
        (Verdict::Satisfied, format!("but inconclusive {at}{times}"))
    } else {
        (Verdict::Satisfied, String::new())
    }
}

/// Sentences about topics and fields that never came, and topics whose messages carried no time.
pub fn missing(summary: &Summary, received: bool) -> Vec<String> {
    let mut sentences = Vec::new();
    let topics: Vec<&str> =
        summary.topics.iter().filter(|topic| topic.missing).map(|topic| topic.name.as_str()).collect();
    // The one topic of a bare formula has no name.
    if topics.iter().any(|name| !name.is_empty()) {
        let noun = if topics.len() == 1 { "topic" } else { "topics" };
        sentences.push(format!("no message came on {noun} {}", topics.join(", ")));
    }
    let fields = summary.missing_fields.names();
    // A topic without messages is named once, without its fields.
    let of_missing = |field: &&&str| topics.iter().any(|topic| field.starts_with(&format!("{topic}.")));
    let (_, fields): (Vec<&str>, Vec<&str>) = fields.iter().partition(|field| of_missing(field));
    if received && !fields.is_empty() {
        let noun = if fields.len() == 1 { "field" } else { "fields" };
        sentences.push(format!("no message carries the {noun} {}", fields.join(", ")));
    }
    for topic in summary.topics.iter().filter(|topic| topic.unstamped > 0) {
        let name = if topic.name.is_empty() { String::new() } else { format!(" on {}", topic.name) };
        let all = if topic.never_stamped() { "every message" } else { "some messages" };
        sentences.push(format!("{all}{name} ({}) came without a time", grouped(topic.unstamped)));
    }
    // An alignment says it itself, among its own figures.
    for topic in summary.topics.iter().filter(|topic| topic.refused > 0 && summary.alignment.is_none()) {
        let name = if topic.name.is_empty() { String::new() } else { format!(" on {}", topic.name) };
        let messages = counted(topic.refused, "message", "messages");
        sentences.push(format!("{messages}{name} refused: the times are too far from the clock"));
    }
    for topic in summary.topics.iter().filter(|topic| topic.oversized > 0) {
        let name = if topic.name.is_empty() { String::new() } else { format!(" on {}", topic.name) };
        sentences
            .push(format!("{}{name} refused: too large", counted(topic.oversized, "message", "messages")));
    }
    sentences
}

/// The exit status of a summary.
pub fn status(summary: &Summary) -> u8 {
    if summary.is_violated() {
        exit::VIOLATED
    } else if summary.is_inconclusive() {
        exit::INCONCLUSIVE
    } else {
        exit::SATISFIED
    }
}
