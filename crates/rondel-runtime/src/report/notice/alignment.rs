//! Notices of alignment: of an order of messages, and of sets.

use rondel_align::{LatePolicy, Notice as OrderNotice, SetNotice, Unused};
use rondel_event::{Timestamp, TopicId};
use serde_json::{Value, json};

use super::{At, Notice, seconds, span};
use crate::text::{counted, duration as shown};

/// A notice of an order of messages.
pub(crate) fn of_order(notice: &OrderNotice) -> Notice {
    match *notice {
        OrderNotice::Late { topic, time, excess, delay, policy } => late(topic, time, excess, delay, policy),
        OrderNotice::WaitTooShort { topic, late, received, max_wait, sufficient } => {
            wait_too_short(topic, late, received, max_wait, sufficient)
        }
        OrderNotice::Refused { topic, time, reason, distance } => {
            Notice::refused(topic, time, reason, distance)
        }
        OrderNotice::UnknownTopic { topic } => unknown_topic(topic),
        OrderNotice::Absent { topic, since, ever } => absent(topic, ever.then_some(since)),
        OrderNotice::Returned { topic, after } => returned(topic, after),
        OrderNotice::SteppedBack { topic, time, latest, fifo } => stepped_back(topic, time, latest, fifo),
        OrderNotice::StampsDisagree { topic, time, latest, publishers, fifo } => {
            clocks_disagree(topic, time, latest, publishers, fifo)
        }
        OrderNotice::MarkerBack { topic, marker, complete } => marker_back(topic, marker.complete, complete),
        OrderNotice::MarkerBroken { topic, time, complete } => marker_broken(topic, time, complete),
        OrderNotice::MarkerMissed { topic, complete, after } => marker_missed(topic, complete, after),
        OrderNotice::MarkerUnmet { topic, complete, missing } => marker_unmet(topic, complete, missing),
        OrderNotice::Early { topic, time } => early(topic, time),
        OrderNotice::Duplicate { topic, publisher, number } => duplicate(topic, publisher, number),
        OrderNotice::Gap { topic, publisher, from, missing } => gap(topic, publisher, from, missing),
        OrderNotice::NumbersBack { topic, publisher, number, highest } => {
            numbers_back(topic, publisher, number, highest)
        }
        OrderNotice::ClockBack { now, highest } => clock_back(now, highest),
        OrderNotice::Omitted { count } => Notice::dropped(count),
    }
}

fn late(topic: TopicId, time: Timestamp, excess: u64, delay: u64, policy: LatePolicy) -> Notice {
    let done = match policy {
        LatePolicy::Drop => "it was dropped",
        LatePolicy::Late => "it counts from now on",
        LatePolicy::Inconclusive => "its values are unknown",
    };
    let members = vec![
        ("time", seconds(time)),
        ("excess", span(excess)),
        ("delay", span(delay)),
        ("policy", json!(word(policy))),
    ];
    let sentence = format!("a message was late by {}; {done}", shown(excess));
    Notice::new("late", Some(topic), members, sentence)
}

fn wait_too_short(
    topic: TopicId,
    late: u64,
    received: u64,
    max_wait: Option<u64>,
    sufficient: u64,
) -> Notice {
    let members = vec![
        ("late", json!(late)),
        ("received", json!(received)),
        ("max_wait", max_wait.map_or(Value::Null, span)),
        ("sufficient", span(sufficient)),
    ];
    let sentence = format!(
        "{late} of {received} messages were late; a max_wait of {} would have sufficed",
        shown(sufficient)
    );
    Notice::new("wait_too_short", Some(topic), members, sentence)
}

fn unknown_topic(topic: TopicId) -> Notice {
    Notice::new("unknown_topic", Some(topic), Vec::new(), "the topic does not exist".to_owned())
}

fn absent(topic: TopicId, since: Option<Timestamp>) -> Notice {
    let sentence = match since {
        Some(since) => format!(
            "no message since {since}; the topic is no longer waited for until one comes",
            since = At(since)
        ),
        None => "no message yet; the topic is no longer waited for until one comes".to_owned(),
    };
    Notice::new("absent", Some(topic), vec![("since", since.map_or(Value::Null, seconds))], sentence)
}

fn returned(topic: TopicId, after: u64) -> Notice {
    let sentence = format!("messages come again after {}", shown(after));
    Notice::new("returned", Some(topic), vec![("after", span(after))], sentence)
}

fn stepped_back(topic: TopicId, time: Timestamp, latest: Timestamp, fifo: bool) -> Notice {
    let members = vec![("time", seconds(time)), ("latest", seconds(latest)), ("believed", json!(fifo))];
    let sentence = format!(
        "times step back from {latest} to {time}; if the messages of the topic do not come in order, set \
         `in_order: false`",
        latest = At(latest),
        time = At(time)
    );
    Notice::new("stepped_back", Some(topic), members, sentence)
}

fn clocks_disagree(
    topic: TopicId,
    time: Timestamp,
    latest: Timestamp,
    publishers: [u64; 2],
    fifo: bool,
) -> Notice {
    let members = vec![
        ("time", seconds(time)),
        ("latest", seconds(latest)),
        ("publishers", json!(publishers.map(|publisher| format!("{publisher:016x}")))),
        ("believed", json!(fifo)),
    ];
    let sentence = format!(
        "two publishers have different clocks or delays: {time} came after {latest}, but each publisher is in \
         order by itself",
        latest = At(latest),
        time = At(time)
    );
    Notice::new("clocks_disagree", Some(topic), members, sentence)
}

fn marker_back(topic: TopicId, marker: Timestamp, complete: Timestamp) -> Notice {
    let members = vec![("time", seconds(marker)), ("complete", seconds(complete))];
    let sentence =
        format!("a progress marker goes back from {complete} to {}", At(marker), complete = At(complete));
    Notice::new("progress_back", Some(topic), members, sentence)
}

fn marker_broken(topic: TopicId, time: Timestamp, complete: Timestamp) -> Notice {
    let members = vec![("time", seconds(time)), ("complete", seconds(complete))];
    let sentence = format!(
        "a message of {time} came after the progress marker of {complete}",
        complete = At(complete),
        time = At(time)
    );
    Notice::new("progress_broken", Some(topic), members, sentence)
}

fn marker_missed(topic: TopicId, complete: Timestamp, after: Timestamp) -> Notice {
    let members = vec![("complete", seconds(complete)), ("after", seconds(after))];
    let sentence = format!(
        "progress markers between {complete} and {after} are missing",
        after = At(after),
        complete = At(complete)
    );
    Notice::new("progress_missed", Some(topic), members, sentence)
}

fn marker_unmet(topic: TopicId, complete: Timestamp, missing: u64) -> Notice {
    let members = vec![("complete", seconds(complete)), ("missing", json!(missing))];
    let sentence = format!(
        "{missing} messages up to {complete} are missing, although the progress marker counts them",
        complete = At(complete)
    );
    Notice::new("progress_unmet", Some(topic), members, sentence)
}

fn early(topic: TopicId, time: Timestamp) -> Notice {
    let sentence = "the queue is full; the oldest message was released early".to_owned();
    Notice::new("early", Some(topic), vec![("time", seconds(time))], sentence)
}

fn duplicate(topic: TopicId, publisher: u64, number: u64) -> Notice {
    let members = vec![("publisher", json!(format!("{publisher:016x}"))), ("number", json!(number))];
    let sentence = "a message came twice; the second was dropped".to_owned();
    Notice::new("duplicate", Some(topic), members, sentence)
}

fn gap(topic: TopicId, publisher: u64, from: u64, missing: u64) -> Notice {
    let members = vec![
        ("publisher", json!(format!("{publisher:016x}"))),
        ("from", json!(from)),
        ("missing", json!(missing)),
    ];
    let sentence = format!(
        "{} by the sequence numbers of the publisher",
        counted(missing, "message is missing", "messages are missing")
    );
    Notice::new("gap", Some(topic), members, sentence)
}

fn numbers_back(topic: TopicId, publisher: u64, number: u64, highest: u64) -> Notice {
    let members = vec![
        ("publisher", json!(format!("{publisher:016x}"))),
        ("number", json!(number)),
        ("highest", json!(highest)),
    ];
    let sentence = "a publisher restarted its sequence numbers".to_owned();
    Notice::new("numbers_back", Some(topic), members, sentence)
}

fn clock_back(now: Timestamp, highest: Timestamp) -> Notice {
    Notice::new(
        "clock_back",
        None,
        vec![("now", seconds(now)), ("highest", seconds(highest))],
        format!(
            "the clock stepped back from {highest} to {now}; it counts as standing still",
            highest = At(highest),
            now = At(now)
        ),
    )
}

fn word(policy: LatePolicy) -> &'static str {
    match policy {
        LatePolicy::Drop => "drop",
        LatePolicy::Late => "late",
        LatePolicy::Inconclusive => "inconclusive",
    }
}

/// A notice of sets of messages.
pub(crate) fn of_sets(notice: &SetNotice) -> Notice {
    let new = |kind, topic: &TopicId, members, sentence| Notice::new(kind, Some(*topic), members, sentence);
    match notice {
        SetNotice::Unused { topic, time, why } => {
            let reason = match why {
                Unused::Older => "a later set was complete first",
                Unused::Replaced => "another message has the same time",
                Unused::QueueFull => "the queue was full",
                Unused::Interval => "it was too far from the others",
                Unused::AfterLoss => "its match may have been lost",
                Unused::Worse => "a better set was found without it",
                Unused::NoMatch => "the other topics had nothing close enough",
                Unused::Superseded => "a later message came first",
                Unused::End => "nothing more came",
                Unused::Ahead => "its time is too far after the clock",
                Unused::Behind => "its time is too far before the clock",
                _ => "of a rule of the policy",
            };
            new(
                "unused",
                topic,
                vec![("time", seconds(*time)), ("reason", json!(why.name()))],
                format!("a message of {time} is in no set: {reason}", time = At(*time)),
            )
        }
        SetNotice::Absent { topic, since, ever } => new(
            "absent",
            topic,
            vec![("since", if *ever { seconds(*since) } else { Value::Null })],
            "no message comes, so no sets are made".to_owned(),
        ),
        SetNotice::Returned { topic, after } => returned(*topic, *after),
        SetNotice::TooClose { topic, time, last } => new(
            "too_close",
            topic,
            vec![("time", seconds(*time)), ("latest", seconds(*last))],
            format!(
                "{last} and {time} are closer than `lower_bound`; sets may have been made too early",
                last = At(*last),
                time = At(*time)
            ),
        ),
        SetNotice::ClockBack { now, highest } => clock_back(*now, *highest),
        SetNotice::SteppedBack { topic, time, last } => new(
            "stepped_back",
            topic,
            vec![("time", seconds(*time)), ("latest", seconds(*last))],
            format!("times step back from {last} to {time}", last = At(*last), time = At(*time)),
        ),
        SetNotice::UnknownTopic { topic } => unknown_topic(*topic),
        SetNotice::Omitted { count } => Notice::dropped(*count),
        _ => Notice::new("other", None, Vec::new(), "an unknown notice".to_owned()),
    }
}
