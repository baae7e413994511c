//! Notices of alignment: of an order of messages, and of sets.

use rondel_align::{LatePolicy, Notice as OrderNotice, SetNotice, Unused};
use rondel_event::{Timestamp, TopicId};
use serde_json::{Value, json};

use super::{At, Notice, seconds, span};
use crate::text::{counted, duration as shown};

/// A notice of an order of messages.
pub(crate) fn of_order(notice: &OrderNotice) -> Notice {
    let new = |kind, topic: &TopicId, members, sentence| Notice::new(kind, Some(*topic), members, sentence);
    match notice {
        OrderNotice::Late { topic, time, excess, delay, policy } => {
            let done = match policy {
                LatePolicy::Drop => "it was dropped",
                LatePolicy::Late => "it counts from now on",
                LatePolicy::Inconclusive => "its values are unknown",
            };
            new(
                "late",
                topic,
                vec![
                    ("time", seconds(*time)),
                    ("excess", span(*excess)),
                    ("delay", span(*delay)),
                    ("policy", json!(word(*policy))),
                ],
                format!("a message was late by {}; {done}", shown(*excess)),
            )
        }
        OrderNotice::WaitTooShort { topic, late, received, max_wait, sufficient } => new(
            "wait_too_short",
            topic,
            vec![
                ("late", json!(late)),
                ("received", json!(received)),
                ("max_wait", max_wait.map_or(Value::Null, span)),
                ("sufficient", span(*sufficient)),
            ],
            format!(
                "{late} of {received} messages were late; a max_wait of {} would have sufficed",
                shown(*sufficient)
            ),
        ),
        OrderNotice::Refused { topic, time, reason, distance } => {
            Notice::refused(*topic, *time, *reason, *distance)
        }
        OrderNotice::UnknownTopic { topic } => {
            new("unknown_topic", topic, Vec::new(), "the topic does not exist".to_owned())
        }
        OrderNotice::Absent { topic, since, ever } => new(
            "absent",
            topic,
            vec![("since", if *ever { seconds(*since) } else { Value::Null })],
            if *ever {
                format!(
                    "no message since {since}; the topic is no longer waited for until one comes",
                    since = At(*since)
                )
            } else {
                "no message yet; the topic is no longer waited for until one comes".to_owned()
            },
        ),
        OrderNotice::Returned { topic, after } => new(
            "returned",
            topic,
            vec![("after", span(*after))],
            format!("messages come again after {}", shown(*after)),
        ),
        OrderNotice::SteppedBack { topic, time, latest, fifo } => new(
            "stepped_back",
            topic,
            vec![("time", seconds(*time)), ("latest", seconds(*latest)), ("believed", json!(fifo))],
            format!(
                "times step back from {latest} to {time}; if the messages of the topic do not come in order, set \
                 `in_order: false`",
                latest = At(*latest),
                time = At(*time)
            ),
        ),
        OrderNotice::StampsDisagree { topic, time, latest, publishers, fifo } => new(
            "clocks_disagree",
            topic,
            vec![
                ("time", seconds(*time)),
                ("latest", seconds(*latest)),
                ("publishers", json!(publishers.map(|publisher| format!("{publisher:016x}")))),
                ("believed", json!(fifo)),
            ],
            format!(
                "two publishers have different clocks or delays: {time} came after {latest}, but each publisher is in \
                 order by itself",
                latest = At(*latest),
                time = At(*time)
            ),
        ),
        OrderNotice::MarkerBack { topic, marker, complete } => new(
            "progress_back",
            topic,
            vec![("time", seconds(marker.complete)), ("complete", seconds(*complete))],
            format!(
                "a progress marker goes back from {complete} to {}",
                At(marker.complete),
                complete = At(*complete)
            ),
        ),
        OrderNotice::MarkerBroken { topic, time, complete } => new(
            "progress_broken",
            topic,
            vec![("time", seconds(*time)), ("complete", seconds(*complete))],
            format!(
                "a message of {time} came after the progress marker of {complete}",
                complete = At(*complete),
                time = At(*time)
            ),
        ),
        OrderNotice::MarkerMissed { topic, complete, after } => new(
            "progress_missed",
            topic,
            vec![("complete", seconds(*complete)), ("after", seconds(*after))],
            format!(
                "progress markers between {complete} and {after} are missing",
                after = At(*after),
                complete = At(*complete)
            ),
        ),
        OrderNotice::MarkerUnmet { topic, complete, missing } => new(
            "progress_unmet",
            topic,
            vec![("complete", seconds(*complete)), ("missing", json!(missing))],
            format!(
                "{missing} messages up to {complete} are missing, although the progress marker counts them",
                complete = At(*complete)
            ),
        ),
        OrderNotice::Early { topic, time } => new(
            "early",
            topic,
            vec![("time", seconds(*time))],
            "the queue is full; the oldest message was released early".to_owned(),
        ),
        OrderNotice::Duplicate { topic, publisher, number } => new(
            "duplicate",
            topic,
            vec![("publisher", json!(format!("{publisher:016x}"))), ("number", json!(number))],
            "a message came twice; the second was dropped".to_owned(),
        ),
        OrderNotice::Gap { topic, publisher, from, missing } => new(
            "gap",
            topic,
            vec![
                ("publisher", json!(format!("{publisher:016x}"))),
                ("from", json!(from)),
                ("missing", json!(missing)),
            ],
            format!(
                "{} by the sequence numbers of the publisher",
                counted(*missing, "message is missing", "messages are missing")
            ),
        ),
        OrderNotice::NumbersBack { topic, publisher, number, highest } => new(
            "numbers_back",
            topic,
            vec![
                ("publisher", json!(format!("{publisher:016x}"))),
                ("number", json!(number)),
                ("highest", json!(highest)),
            ],
            "a publisher restarted its sequence numbers".to_owned(),
        ),
        OrderNotice::ClockBack { now, highest } => Notice::new(
            "clock_back",
            None,
            vec![("now", seconds(*now)), ("highest", seconds(*highest))],
            format!(
                "the clock stepped back from {highest} to {now}; it counts as standing still",
                highest = At(*highest),
                now = At(*now)
            ),
        ),
        OrderNotice::Omitted { count } => Notice::dropped(*count),
    }
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
        SetNotice::Returned { topic, after } => new(
            "returned",
            topic,
            vec![("after", span(*after))],
            format!("messages come again after {}", shown(*after)),
        ),
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
        SetNotice::UnknownTopic { topic } => {
            new("unknown_topic", topic, Vec::new(), "the topic does not exist".to_owned())
        }
        SetNotice::Omitted { count } => Notice::dropped(*count),
        _ => Notice::new("other", None, Vec::new(), "an unknown notice".to_owned()),
    }
}
