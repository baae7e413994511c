//! Statistics of an alignment, as JSON and in sentences.

use rondel_align::{OrderStatistics, SetStatistics, Unused};
use rondel_event::TopicId;
use serde_json::{Map, Value, json};

use super::TopicStatistics;
use crate::report::notice::span;
use crate::text::{counted, duration as shown};

/// Statistics of an alignment.
#[derive(Clone, Debug, Default)]
pub struct AlignmentStatistics {
    /// Number of sets, if the policy makes sets.
    sets: Option<u64>,
    topics: Vec<AlignedTopic>,
    /// Messages without a time.
    unstamped: u64,
    /// Progress markers that could not be used.
    unread: u64,
}

#[derive(Clone, Debug, Default)]
struct AlignedTopic {
    name: String,
    order: OrderStatistics,
    /// Number of messages in no set, by reason.
    unused: Vec<(&'static str, u64)>,
}

impl AlignmentStatistics {
    pub(crate) fn new(topics: &[String], unstamped: u64, unread: u64) -> AlignmentStatistics {
        let topics = topics.iter().map(|name| AlignedTopic { name: name.clone(), ..AlignedTopic::default() });
        AlignmentStatistics { sets: None, topics: topics.collect(), unstamped, unread }
    }

    /// Adds the statistics of an order. Where several groups wait for the same topic, the worst counts.
    pub(crate) fn order(&mut self, statistics: &[OrderStatistics], of: &[TopicId]) {
        for topic in of {
            let Some(own) = statistics.get(topic.index()) else { continue };
            let Some(report) = self.topics.get_mut(topic.index()) else { continue };
            if report.order.received == 0 || own.late > report.order.late {
                report.order = *own;
            }
        }
    }

    /// Adds the statistics of sets.
    pub(crate) fn sets(&mut self, statistics: &SetStatistics, of: &[TopicId]) {
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

    /// Adds the number of messages of each topic refused because of their times.
    pub(crate) fn refused(&mut self, topics: &[TopicStatistics]) {
        for (own, topic) in self.topics.iter_mut().zip(topics) {
            own.order.refused = topic.refused;
        }
    }

    /// Number of late events.
    pub fn late(&self) -> u64 {
        self.topics.iter().map(|topic| topic.order.late).sum()
    }

    /// Number of late events of a topic.
    pub fn late_of(&self, topic: TopicId) -> u64 {
        self.topics.get(topic.index()).map_or(0, |topic| topic.order.late)
    }

    /// Number of messages of a topic that wait to be put in order.
    pub fn waiting_of(&self, topic: TopicId) -> usize {
        self.topics.get(topic.index()).map_or(0, |topic| topic.order.waiting)
    }

    /// Adds the statistics of a further recording.
    pub(crate) fn merge(&mut self, further: &AlignmentStatistics) {
        self.sets = self.sets.zip(further.sets).map(|(own, further)| own + further).or(self.sets);
        self.unstamped += further.unstamped;
        self.unread += further.unread;
        for (own, further) in self.topics.iter_mut().zip(&further.topics) {
            let (order, more) = (&mut own.order, &further.order);
            for (own, more) in [
                (&mut order.received, more.received),
                (&mut order.released, more.released),
                (&mut order.guessed, more.guessed),
                (&mut order.late, more.late),
                (&mut order.dropped, more.dropped),
                (&mut order.duplicates, more.duplicates),
                (&mut order.missing, more.missing),
                (&mut order.refused, more.refused),
                (&mut order.early, more.early),
                (&mut order.stepped_back, more.stepped_back),
                (&mut order.markers, more.markers),
            ] {
                *own += more;
            }
            order.max_excess = order.max_excess.max(more.max_excess);
            order.sufficient_wait = order.sufficient_wait.max(more.sufficient_wait);
            order.absent |= more.absent;
            for (why, count) in &further.unused {
                match own.unused.iter_mut().find(|(known, _)| known == why) {
                    Some((_, own)) => *own += count,
                    None => own.unused.push((why, *count)),
                }
            }
        }
    }

    /// Returns the statistics as a JSON object.
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
                "late": order.late,
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
            "late": self.late(),
            "unstamped": self.unstamped,
            "progress_unread": self.unread,
            "topics": topics.collect::<Map<String, Value>>(),
        })
    }

    /// Returns every irregularity as a sentence.
    pub fn sentences(&self) -> Vec<String> {
        let mut said = Vec::new();
        said.extend(self.sets.map(|sets| counted(sets, "set", "sets")));
        for AlignedTopic { name, order, unused } in &self.topics {
            let mut parts = Vec::new();
            if order.late > 0 {
                let sufficient = order
                    .sufficient_wait
                    .map(|wait| format!("; a max_wait of {} would have sufficed", shown(wait)))
                    .unwrap_or_default();
                let excess = shown(order.max_excess);
                parts.push(format!("{} late, by {excess} at most{sufficient}", order.late));
            }
            for (count, what) in [
                (order.dropped, "of them dropped"),
                (order.duplicates, "came twice"),
                (order.missing, "missing by their sequence numbers"),
                (order.refused, "refused because of their times"),
                (order.early, "released early because the queue was full"),
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
