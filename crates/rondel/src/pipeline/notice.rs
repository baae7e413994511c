//! What alignment has to report: on topics, on standard error, and in the summary.

use std::collections::HashSet;

use rondel_align::{Notice, OrderStatistics, Refusal, SetNotice, SetStatistics, Tardy, Unused};
use rondel_event::{Timestamp, TopicId};
use rondel_net::adapter::Publisher;
use serde_json::{Map, Value, json};

use crate::outlet::{Sink, publishers};
use crate::tally::counted;
use crate::warn;

/// Reports what was late, lost or refused: every time on topics, the first time on standard error.
pub(super) struct Reporter {
    topics: Vec<String>,
    sinks: Vec<Sink>,
    /// What was said already, of which topic.
    said: HashSet<(&'static str, u32)>,
    /// Reports that could not be published.
    unpublished: u64,
}

/// A report: what kind, of which topic, and the rest.
struct Report {
    kind: &'static str,
    topic: Option<TopicId>,
    members: Vec<(&'static str, Value)>,
    /// For people, without the topic's name before it.
    sentence: String,
}

impl Reporter {
    pub(super) fn new(topics: Vec<String>, sinks: Vec<Sink>) -> Reporter {
        Reporter { topics, sinks, said: HashSet::new(), unpublished: 0 }
    }

    /// Reports what happened to an order of single messages. `properties` are those that it matters to, where
    /// not all.
    pub(super) fn order(&mut self, notice: &Notice, properties: &[String]) {
        let mut report = order_report(notice);
        if !properties.is_empty() {
            report.members.push(("properties", json!(properties)));
        }
        self.report(&report);
    }

    /// Reports what happened to sets of messages.
    pub(super) fn set(&mut self, notice: &SetNotice) {
        self.report(&set_report(notice));
    }

    /// Reports a message without the time that it should have.
    pub(super) fn unstamped(&mut self, topic: TopicId, time: Timestamp) {
        self.report(&Report {
            kind: "unstamped",
            topic: Some(topic),
            members: vec![("time", seconds(time))],
            sentence: "a message has no time, or the time zero; it counts as of now".to_owned(),
        });
    }

    /// Reports word of progress that could not be used.
    pub(super) fn unread(&mut self, payload: &[u8]) {
        let shown: String = String::from_utf8_lossy(payload).chars().take(60).collect();
        self.report(&Report {
            kind: "progress_unread",
            topic: None,
            members: vec![("payload", json!(shown))],
            sentence: format!(
                "what was said of progress is no marker of a topic here, such as {{\"topic\":\"gear\",\"complete\":12.5}}: {shown}"
            ),
        });
    }

    /// Lets go what publishers hold back.
    pub(super) fn release(&self) {
        for sink in &self.sinks {
            if let Sink::Network(publisher) = sink {
                publisher.release();
            }
        }
    }

    /// Hands the publishers back, to be flushed.
    pub(super) fn close(&mut self) -> Vec<Box<dyn Publisher>> {
        publishers(std::mem::take(&mut self.sinks))
    }

    fn report(&mut self, report: &Report) {
        let Report { kind, topic, members, sentence } = report;
        let name = topic.and_then(|topic| self.topics.get(topic.index()));
        if !self.sinks.is_empty() {
            let mut object = Map::new();
            object.insert("report".to_owned(), json!(kind));
            if let Some(name) = name {
                object.insert("topic".to_owned(), json!(name));
            }
            object.extend(members.iter().map(|(key, value)| ((*key).to_owned(), value.clone())));
            let mut text = Value::Object(object).to_string().into_bytes();
            for sink in &self.sinks {
                match sink {
                    Sink::Network(publisher) => {
                        self.unpublished += u64::from(publisher.publish(&text).is_err());
                    }
                    Sink::Stdout => {
                        text.push(b'\n');
                        // Standard output that is closed is noticed where verdicts are written.
                        let _ = std::io::Write::write_all(&mut std::io::stdout(), &text);
                        text.pop();
                    }
                }
            }
        }
        if self.said.insert((kind, topic.map_or(u32::MAX, |topic| topic.0))) {
            let name = name.map(|name| format!("{name}: ")).unwrap_or_default();
            warn(&format!("{name}{sentence}; more of this is only counted and reported"));
        }
    }
}

/// A time in seconds, for programs: exact to the microsecond where it is that of a calendar.
fn seconds(time: Timestamp) -> Value {
    json!(time.as_nanos() as f64 / 1e9)
}

/// A duration in seconds, for programs.
fn span(nanos: u64) -> Value {
    json!(nanos as f64 / 1e9)
}

/// A duration for people.
fn shown(nanos: u64) -> String {
    match nanos {
        0..10_000 => format!("{nanos} ns"),
        10_000..10_000_000 => format!("{:.1} us", nanos as f64 / 1e3),
        10_000_000..10_000_000_000 => format!("{:.1} ms", nanos as f64 / 1e6),
        _ => format!("{:.1} s", nanos as f64 / 1e9),
    }
}

fn order_report(notice: &Notice) -> Report {
    let new =
        |kind, topic: &TopicId, members, sentence| Report { kind, topic: Some(*topic), members, sentence };
    match notice {
        Notice::Tardy { topic, time, excess, delay, policy } => {
            let done = match policy {
                Tardy::Drop => "it was left out",
                Tardy::Late => "it was checked as of then",
                Tardy::Inconclusive => "what it says is unknown",
            };
            new(
                "tardy",
                topic,
                vec![
                    ("time", seconds(*time)),
                    ("excess", span(*excess)),
                    ("delay", span(*delay)),
                    ("policy", json!(word(*policy))),
                ],
                format!("a message came {} after its place; {done}", shown(*excess)),
            )
        }
        Notice::WaitTooShort { topic, tardy, received, max_wait, sufficient } => new(
            "wait_too_short",
            topic,
            vec![
                ("tardy", json!(tardy)),
                ("received", json!(received)),
                ("max_wait", max_wait.map_or(Value::Null, span)),
                ("sufficient", span(*sufficient)),
            ],
            format!(
                "{tardy} of {received} were tardy; a max_wait of {} would have sufficed",
                shown(*sufficient)
            ),
        ),
        Notice::Refused { topic, time, reason, distance } => {
            let (kind, side) = match reason {
                Refusal::Ahead => ("ahead", "after"),
                Refusal::Behind => ("behind", "before"),
            };
            new(
                kind,
                topic,
                vec![("time", seconds(*time)), ("distance", span(*distance))],
                format!(
                    "the time {time} s is {} {side} the clock; the message was refused",
                    shown(*distance)
                ),
            )
        }
        Notice::UnknownTopic { topic } => {
            new("unknown_topic", topic, Vec::new(), "there is no such topic".to_owned())
        }
        Notice::Absent { topic, since, ever } => new(
            "absent",
            topic,
            vec![("since", if *ever { seconds(*since) } else { Value::Null })],
            if *ever {
                format!("nothing has come since {since} s; it is not waited for until something comes")
            } else {
                "nothing has come yet; it is not waited for until something comes".to_owned()
            },
        ),
        Notice::Returned { topic, after } => new(
            "returned",
            topic,
            vec![("after", span(*after))],
            format!("messages come again, after {}", shown(*after)),
        ),
        Notice::SteppedBack { topic, time, latest, believed } => new(
            "stepped_back",
            topic,
            vec![("time", seconds(*time)), ("latest", seconds(*latest)), ("believed", json!(believed))],
            format!(
                "times step back, from {latest} s to {time} s; if messages of the topic do not come in order, say \
                 `in_order: false`"
            ),
        ),
        Notice::StampsDisagree { topic, time, latest, publishers, believed } => new(
            "clocks_disagree",
            topic,
            vec![
                ("time", seconds(*time)),
                ("latest", seconds(*latest)),
                ("publishers", json!(publishers.map(|publisher| format!("{publisher:016x}")))),
                ("believed", json!(believed)),
            ],
            format!(
                "two publishers have different clocks or ways: {time} s came after {latest} s, but each by itself is \
                 in order"
            ),
        ),
        Notice::MarkerBack { topic, marker, complete } => new(
            "progress_back",
            topic,
            vec![("time", seconds(marker.complete)), ("complete", seconds(*complete))],
            format!("a publisher says that it is at {} s, and was at {complete} s", marker.complete),
        ),
        Notice::MarkerBroken { topic, time, complete } => new(
            "progress_broken",
            topic,
            vec![("time", seconds(*time)), ("complete", seconds(*complete))],
            format!(
                "a message of {time} s came after its publisher had said that all up to {complete} s were sent"
            ),
        ),
        Notice::MarkerMissed { topic, complete, after } => new(
            "progress_missed",
            topic,
            vec![("complete", seconds(*complete)), ("after", seconds(*after))],
            format!("what was said of progress between {complete} s and {after} s did not come"),
        ),
        Notice::MarkerUnmet { topic, complete, missing } => new(
            "progress_unmet",
            topic,
            vec![("complete", seconds(*complete)), ("missing", json!(missing))],
            format!("{missing} messages up to {complete} s did not come, though they were said to be sent"),
        ),
        Notice::Early { topic, time } => new(
            "early",
            topic,
            vec![("time", seconds(*time))],
            "more messages wait than `queue` allows; the oldest was let go early".to_owned(),
        ),
        Notice::Duplicate { topic, publisher, number } => new(
            "duplicate",
            topic,
            vec![("publisher", json!(format!("{publisher:016x}"))), ("number", json!(number))],
            "a message came twice, and was left out the second time".to_owned(),
        ),
        Notice::Gap { topic, publisher, from, missing } => new(
            "gap",
            topic,
            vec![
                ("publisher", json!(format!("{publisher:016x}"))),
                ("from", json!(from)),
                ("missing", json!(missing)),
            ],
            format!(
                "{} by the numbers of the publisher",
                counted(*missing, "message is missing", "messages are missing")
            ),
        ),
        Notice::NumbersBack { topic, publisher, number, highest } => new(
            "numbers_back",
            topic,
            vec![
                ("publisher", json!(format!("{publisher:016x}"))),
                ("number", json!(number)),
                ("highest", json!(highest)),
            ],
            "a publisher counts its messages anew".to_owned(),
        ),
        Notice::ClockBack { now, highest } => Report {
            kind: "clock_back",
            topic: None,
            members: vec![("now", seconds(*now)), ("highest", seconds(*highest))],
            sentence: format!(
                "the clock stepped back, from {highest} s to {now} s; it counts as standing still"
            ),
        },
        Notice::Unsaid { count } => Report {
            kind: "unsaid",
            topic: None,
            members: vec![("count", json!(count))],
            sentence: format!("{} left away", counted(*count, "report was", "reports were")),
        },
    }
}

fn clock_back(now: Timestamp, highest: Timestamp) -> Report {
    Report {
        kind: "clock_back",
        topic: None,
        members: vec![("now", seconds(now)), ("highest", seconds(highest))],
        sentence: format!("the clock stepped back, from {highest} s to {now} s; it counts as standing still"),
    }
}

fn word(policy: Tardy) -> &'static str {
    match policy {
        Tardy::Drop => "drop",
        Tardy::Late => "late",
        Tardy::Inconclusive => "inconclusive",
    }
}

fn set_report(notice: &SetNotice) -> Report {
    let new =
        |kind, topic: &TopicId, members, sentence| Report { kind, topic: Some(*topic), members, sentence };
    match notice {
        SetNotice::Unused { topic, time, why } => {
            let reason = match why {
                Unused::Older => "a later set was complete first",
                Unused::Replaced => "another one has the same time",
                Unused::QueueFull => "too many waited",
                Unused::Interval => "it was too far from the others",
                Unused::AfterLoss => "what would have matched it may have been lost",
                Unused::Worse => "a better set was found without it",
                Unused::NoMatch => "the others had nothing close enough",
                Unused::Superseded => "a later one came first",
                Unused::End => "nothing more came",
                Unused::Ahead => "its time is too far after the clock",
                Unused::Behind => "its time is too far before the clock",
                _ => "of a rule of the policy",
            };
            new(
                "unused",
                topic,
                vec![("time", seconds(*time)), ("reason", json!(why.name()))],
                format!("a message of {time} s is in no set, as {reason}"),
            )
        }
        SetNotice::Absent { topic, since, ever } => new(
            "absent",
            topic,
            vec![("since", if *ever { seconds(*since) } else { Value::Null })],
            "nothing comes, so that there are no sets".to_owned(),
        ),
        SetNotice::Returned { topic, after } => new(
            "returned",
            topic,
            vec![("after", span(*after))],
            format!("messages come again, after {}", shown(*after)),
        ),
        SetNotice::TooClose { topic, time, last } => new(
            "too_close",
            topic,
            vec![("time", seconds(*time)), ("latest", seconds(*last))],
            format!(
                "{last} s and {time} s are closer than `lower_bound`, so that sets may have been made too early"
            ),
        ),
        SetNotice::ClockBack { now, highest } => clock_back(*now, *highest),
        SetNotice::SteppedBack { topic, time, last } => new(
            "stepped_back",
            topic,
            vec![("time", seconds(*time)), ("latest", seconds(*last))],
            format!("times step back, from {last} s to {time} s"),
        ),
        SetNotice::UnknownTopic { topic } => {
            new("unknown_topic", topic, Vec::new(), "there is no such topic".to_owned())
        }
        SetNotice::Unsaid { count } => Report {
            kind: "unsaid",
            topic: None,
            members: vec![("count", json!(count))],
            sentence: format!("{} left away", counted(*count, "report was", "reports were")),
        },
        _ => Report {
            kind: "other",
            topic: None,
            members: Vec::new(),
            sentence: "something was noticed that has no word here".to_owned(),
        },
    }
}

/// What alignment came to.
#[derive(Clone, Debug, Default)]
pub struct AlignmentReport {
    /// How many sets were made, where sets are.
    sets: Option<u64>,
    topics: Vec<TopicReport>,
    /// Messages without a time.
    unstamped: u64,
    /// Word of progress that could not be used.
    unread: u64,
}

#[derive(Clone, Debug, Default)]
struct TopicReport {
    name: String,
    order: OrderStatistics,
    /// Why messages were in no set, and how many.
    unused: Vec<(&'static str, u64)>,
}

impl AlignmentReport {
    pub(super) fn new(topics: &[String], unstamped: u64, unread: u64) -> AlignmentReport {
        let topics = topics.iter().map(|name| TopicReport { name: name.clone(), ..TopicReport::default() });
        AlignmentReport { sets: None, topics: topics.collect(), unstamped, unread }
    }

    /// Adds what an order came to. Where several wait for the same topic, that one counts which fared worst.
    pub(super) fn order(&mut self, statistics: &[OrderStatistics], of: &[TopicId]) {
        for topic in of {
            let Some(own) = statistics.get(topic.index()) else { continue };
            let Some(report) = self.topics.get_mut(topic.index()) else { continue };
            if report.order.received == 0 || own.tardy > report.order.tardy {
                report.order = *own;
            }
        }
    }

    /// Adds what sets came to.
    pub(super) fn sets(&mut self, statistics: &SetStatistics, of: &[TopicId]) {
        self.sets = Some(self.sets.unwrap_or(0).max(statistics.sets));
        for (topic, own) in of.iter().zip(&statistics.topics) {
            let Some(report) = self.topics.get_mut(topic.index()) else { continue };
            report.order.received = own.received;
            report.order.waiting = usize::try_from(own.waiting()).unwrap_or(usize::MAX);
            report.order.released = own.used;
            report.order.stepped_back = own.stepped_back;
            report.order.absent = own.absent;
            let unused = Unused::ALL.iter().zip(own.unused).filter(|(_, count)| *count > 0);
            report.unused = unused.map(|(why, count)| (why.name(), count)).collect();
        }
    }

    /// How many messages were tardy.
    pub fn tardy(&self) -> u64 {
        self.topics.iter().map(|topic| topic.order.tardy).sum()
    }

    /// For programs.
    pub fn json(&self) -> Value {
        let topics = self.topics.iter().map(|topic| {
            let order = &topic.order;
            let unused: Map<String, Value> =
                topic.unused.iter().map(|(why, count)| ((*why).to_owned(), json!(count))).collect();
            let value = json!({
                "received": order.received,
                "released": order.released,
                "waiting": order.waiting,
                "guessed": order.guessed,
                "tardy": order.tardy,
                "dropped": order.dropped,
                "duplicates": order.duplicates,
                "missing": order.missing,
                "refused": order.refused,
                "early": order.early,
                "stepped_back": order.stepped_back,
                "markers": order.markers,
                "max_excess": span(order.max_excess),
                "sufficient_wait": order.sufficient_wait.map(span),
                "max_wait": order.max_wait.map(span),
                "delay_p50": span(order.delay_p50),
                "delay_p99": span(order.delay_p99),
                "delay_max": span(order.delay_max),
                "absent": order.absent,
                "unused": unused,
            });
            (topic.name.clone(), value)
        });
        json!({
            "sets": self.sets,
            "tardy": self.tardy(),
            "unstamped": self.unstamped,
            "progress_unread": self.unread,
            "topics": topics.collect::<Map<String, Value>>(),
        })
    }

    /// For people: what was not as it should be.
    pub fn sentences(&self) -> Vec<String> {
        let mut said = Vec::new();
        said.extend(self.sets.map(|sets| counted(sets, "set", "sets")));
        for TopicReport { name, order, unused } in &self.topics {
            let mut parts = Vec::new();
            if order.tardy > 0 {
                let sufficient = order
                    .sufficient_wait
                    .map(|wait| format!("; a max_wait of {} would have sufficed", shown(wait)))
                    .unwrap_or_default();
                let excess = shown(order.max_excess);
                parts.push(format!("{} tardy, by {excess} at most{sufficient}", order.tardy));
            }
            for (count, what) in [
                (order.dropped, "left out for that"),
                (order.duplicates, "came twice"),
                (order.missing, "missing by their numbers"),
                (order.refused, "refused for their times"),
                (order.early, "let go early as the queue was full"),
                (order.stepped_back, "with times that step back"),
            ] {
                if count > 0 {
                    parts.push(format!("{count} {what}"));
                }
            }
            parts.extend(
                unused.iter().map(|(why, count)| format!("{count} in no set ({})", why.replace('_', " "))),
            );
            if order.waiting > 0 {
                parts.push(format!("{} waiting for the next run", order.waiting));
            }
            if order.absent {
                parts.push("absent at the end".to_owned());
            }
            if !parts.is_empty() {
                said.push(format!("{name}: {}", parts.join(", ")));
            }
        }
        if self.unstamped > 0 {
            said.push(counted(self.unstamped, "message without a time", "messages without a time"));
        }
        if self.unread > 0 {
            said.push(counted(
                self.unread,
                "marker that could not be used",
                "markers that could not be used",
            ));
        }
        said
    }
}
