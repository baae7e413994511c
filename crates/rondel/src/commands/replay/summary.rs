//! Closing summary of a replay.

use rondel_recording::End;
use rondel_runtime::text::{counted, duration, grouped};
use serde_json::{Value, json};

use super::player::{LATE, Played};
use crate::commands::selecting::missing;
use crate::exit;
use crate::live::losses::outage_json;
use crate::live::outgoing::{Ended, Sent};

/// Summary of a replay.
pub(super) struct Summary {
    /// Counts of the replay, and its duration in seconds.
    pub(super) played: Played,
    pub(super) seconds: f64,
    /// Names of the topics, each with the index of its sink.
    pub(super) topics: Vec<(String, usize)>,
    /// Index of the sink of `/clock`.
    pub(super) clock: Option<usize>,
    /// Topics that are not published.
    pub(super) left_out: Vec<LeftOut>,
    /// Losses noted by the recorder.
    pub(super) recorded: End,
    /// Lines that are events of topics.
    pub(super) events: u64,
    /// Delivery of the messages.
    pub(super) ended: Ended,
}

/// A topic that is not published.
#[derive(Clone, Debug)]
pub(super) struct LeftOut {
    pub(super) topic: String,
    pub(super) reason: String,
    /// Whether it should be published and cannot be.
    pub(super) is_failure: bool,
}

impl Summary {
    fn sent(&self, sink: usize) -> Option<&Sent> {
        self.ended.sent.get(sink)
    }

    /// Number of messages that the networks accepted and refused, without accepted ones of the clock.
    fn counts(&self) -> (u64, u64) {
        let own = |(i, sent): (usize, &Sent)| {
            let is_clock = self.clock == Some(i);
            if is_clock { (0, sent.failed) } else { (sent.published, sent.failed) }
        };
        let all = self.ended.sent.iter().enumerate().map(own);
        all.fold((0, 0), |(taken, failed), sent| (taken + sent.0, failed + sent.1))
    }

    fn recorded_seconds(&self) -> f64 {
        let nanos = self
            .played
            .span
            .map_or(0, |(first, latest)| i128::from(latest.as_nanos()) - i128::from(first.as_nanos()));
        nanos as f64 / 1e9
    }

    fn is_failed(&self) -> bool {
        let is_left = self.left_out.iter().any(|left| left.is_failure);
        self.counts().1 > 0 || !self.ended.is_delivered || self.played.failure.is_some() || is_left
    }

    /// The exit status.
    pub(super) fn status(&self) -> u8 {
        if self.played.unreadable.is_some() || self.played.damaged > 0 {
            exit::TRACE
        } else if self.is_failed() {
            exit::NETWORK
        } else {
            exit::SATISFIED
        }
    }

    /// Returns the summary as text.
    pub(super) fn text(&self) -> String {
        let Played { passes, late, worst, unordered, damaged, is_stopped, .. } = &self.played;
        let (taken, failed) = self.counts();
        let failures = if failed > 0 { format!(", {} failed", grouped(failed)) } else { String::new() };
        let times =
            if *passes > 1 { format!(", {} times", grouped((*passes).into())) } else { String::new() };
        let ended = if *is_stopped { "; stopped before the end" } else { "" };
        let mut text = format!(
            "replayed {} of {:.3} s{times} in {:.3} s{failures}{ended}",
            counted(taken, "message", "messages"),
            self.recorded_seconds(),
            self.seconds
        );
        let mut add = |line: String| {
            text.push_str("\n  ");
            text.push_str(&line);
        };
        let mut seen = Vec::new();
        for (topic, sink) in &self.topics {
            let Some(Sent { address, published, is_matched, .. }) = self.sent(*sink) else { continue };
            if seen.contains(sink) {
                add(format!("{topic} -> {address}: among those before"));
                continue;
            }
            seen.push(*sink);
            let unmatched = if *is_matched { "" } else { ", NO SUBSCRIBERS" };
            add(format!("{topic} -> {address}: {}{unmatched}", counted(*published, "message", "messages")));
        }
        if let Some(Sent { address, published, .. }) = self.clock.and_then(|clock| self.sent(clock)) {
            add(format!("{address}: {} of the recording's time", counted(*published, "message", "messages")));
        }
        if *late > 0 {
            let worst = duration(u64::try_from(worst.as_nanos()).unwrap_or(u64::MAX));
            let limit = LATE.as_millis();
            let messages = counted(*late, "message was", "messages were");
            add(format!("{messages} sent more than {limit} ms late, at worst {worst}"));
        }
        if *unordered > 0 {
            let messages = counted(*unordered, "message has", "messages have");
            add(format!(
                "{messages} an earlier time than one before: they were sent in the order of the recording"
            ));
        }
        if !self.recorded.is_complete() {
            add(missing(&self.recorded));
        }
        if *damaged > 0 {
            add(format!(
                "{} could not be read",
                counted(*damaged, "part of the recording", "parts of the recording")
            ));
        }
        if self.events > 0 {
            add(format!(
                "{} of topics, which cannot be published",
                counted(self.events, "line is an event", "lines are events")
            ));
        }
        for LeftOut { topic, reason, .. } in &self.left_out {
            add(format!("left out {topic}: {reason}"));
        }
        self.ended.sentences().into_iter().for_each(add);
        text
    }

    /// Returns the summary as one JSON object.
    pub(super) fn json(&self) -> String {
        let Played {
            messages, passes, late, worst, unordered, damaged, is_stopped, failure, unreadable, ..
        } = &self.played;
        let (taken, failed) = self.counts();
        let topic = |(topic, sink): &(String, usize)| -> Value {
            let sent = self.sent(*sink);
            json!({
                "topic": topic,
                "to": sent.map(|sent| &sent.address),
                "published": sent.map(|sent| sent.published),
                "failed": sent.map(|sent| sent.failed),
                // Brokers do not say who has subscribed.
                "subscribed": sent
                    .filter(|sent| !sent.address.starts_with("mqtt") && !sent.address.starts_with("kafka"))
                    .map(|sent| sent.is_matched),
            })
        };
        let left_out = |left: &LeftOut| json!({"topic": left.topic, "reason": left.reason});
        let &End { lost, refused, unwritten, unread, .. } = &self.recorded;
        let seconds = |nanos: i64| nanos as f64 / 1e9;
        json!({
            "messages": messages,
            "published": taken,
            "failed": failed,
            "passes": passes,
            "stopped": is_stopped,
            "seconds": self.seconds,
            "from": self.played.span.map(|(first, _)| seconds(first.as_nanos())),
            "until": self.played.span.map(|(_, latest)| seconds(latest.as_nanos())),
            "late": late,
            "worst_lateness": worst.as_secs_f64(),
            "unordered": unordered,
            "unreadable_parts": damaged,
            "events": self.events,
            "missing": {"lost": lost, "refused": refused, "unwritten": unwritten, "unread": unread, "cut_offs": self.recorded.cut_offs.all().len()},
            "topics": self.topics.iter().map(topic).collect::<Vec<_>>(),
            "clock": self.clock.and_then(|clock| self.sent(clock)).map(|sent| sent.published),
            "left_out": self.left_out.iter().map(left_out).collect::<Vec<_>>(),
            "undelivered": self.ended.undelivered.json(),
            "unconfirmed": self.ended.unconfirmed.json(),
            "outages": self.ended.outages.iter().map(outage_json).collect::<Vec<_>>(),
            "delivered": self.ended.is_delivered,
            "failure": failure.as_ref().or(unreadable.as_ref()),
        })
        .to_string()
    }
}
