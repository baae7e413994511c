//! The figures that a scrape shows: a copy of those of a run.

use std::sync::{Arc, Weak};
use std::time::{Duration, Instant, SystemTime};

use rondel_net::adapter::{DeadLetterCounts, PartitionStatus, Problems, Publisher};

use super::state::PropertyLabels;
use crate::live::pipeline::Observation;
use crate::live::standby::state::GroupState;
use crate::sinks::actions::ActionFigures;
use crate::sinks::audit::AuditCounts;
use crate::sinks::driven::DestinationState;
use crate::sinks::queue::Queue;

/// A copy of everything that a scrape shows.
#[derive(Debug)]
pub struct Snapshot {
    /// Start of the run.
    pub began: SystemTime,
    /// Whether the run is ready.
    pub is_ready: bool,
    /// Duration of the stall of the evaluating thread.
    pub stalled: Duration,
    /// Numbers of pushes by their results, where metrics are pushed.
    pub pushes: Option<[(&'static str, u64); 2]>,
    /// Connections that the page refused.
    pub refused_connections: u64,
    /// Figures of the run, while it is running.
    pub run: Option<RunSnapshot>,
}

/// The figures of a run.
#[derive(Debug)]
pub struct RunSnapshot {
    /// The names of the topics.
    pub topics: Vec<String>,
    /// The labels of the properties.
    pub properties: Arc<[PropertyLabels]>,
    /// The numbers of reloads that were done and refused.
    pub reloads: [(&'static str, u64); 2],
    /// Counts and measurements; `None` while the evaluating thread is stalled.
    pub observation: Option<Observation>,
    /// Nanoseconds that each property was violated; `None` where that is not measured.
    pub in_violation: Vec<Option<u64>>,
    /// Problems of all subscriptions.
    pub problems: Problems,
    /// Publishers by topic, where they are known.
    pub publishers: Vec<Option<u64>>,
    /// Messages that were missed and fetched again, by topic.
    pub recovered: Vec<u64>,
    /// The networks.
    pub networks: Vec<NetworkFigures>,
    /// Messages that networks refused after they had accepted them.
    pub refused: u64,
    /// The partitions that a member of a consumer group has.
    pub partitions: Vec<PartitionStatus>,
    /// The records of Kafka that cannot be decoded, where they are written to a topic.
    pub dead_letters: Option<DeadLetterCounts>,
    /// The queues of sinks.
    pub queues: Vec<QueueFigures>,
    /// Whether each sink has a subscriber; on MQTT, whether it is connected.
    pub matched: Vec<(String, bool)>,
    /// Messages of each sink that its consumers did not accept.
    pub undelivered: Vec<(String, u64)>,
    /// Messages of each sink that wait in a file.
    pub spooled: Vec<(String, u64)>,
    /// The states of the store and other sinks beside networks.
    pub driven: Vec<DestinationState>,
    /// The counts of the audit file, if there is one.
    pub audit: Option<AuditCounts>,
    /// The numbers of actions.
    pub actions: Vec<ActionFigures>,
    /// The state of the member of a group, if the run is one.
    pub standby: Option<GroupState>,
    /// The numbers of pauses by cause.
    pub pauses: [(&'static str, u64); 4],
}

/// The figures of a network.
#[derive(Clone, Copy, Debug)]
pub struct NetworkFigures {
    /// Its name: `zenoh`, `dds` or `mqtt`.
    pub name: &'static str,
    /// Whether it is connected.
    pub is_connected: bool,
    /// Number of connections lost so far.
    pub outages: u64,
}

/// The figures of the queue of a sink.
#[derive(Clone, Debug)]
pub struct QueueFigures {
    /// The sink.
    pub sink: String,
    /// Number of messages that wait in memory.
    pub waiting: u64,
    /// Time that the first of them has waited.
    pub age: Duration,
}

/// The figures of each sink: one that a reload has removed and added again has several queues.
pub(super) fn queue_figures(queues: &[Arc<Queue>]) -> Vec<QueueFigures> {
    let now = Instant::now();
    let mut all: Vec<QueueFigures> = Vec::new();
    for queue in queues {
        let (waiting, since) = queue.waiting();
        let age = since.map_or(Duration::ZERO, |since| now.saturating_duration_since(since));
        let waiting = waiting as u64;
        match all.iter_mut().find(|known| known.sink == queue.sink()) {
            Some(known) => (known.waiting, known.age) = (known.waiting + waiting, known.age.max(age)),
            None => all.push(QueueFigures { sink: queue.sink().to_owned(), waiting, age }),
        }
    }
    all
}

/// Whether each sink has a subscriber. Verdicts and actions on one address have a publisher each.
pub(super) fn matched(publishers: &[(String, Weak<dyn Publisher>)]) -> Vec<(String, bool)> {
    let mut all: Vec<(String, bool)> = Vec::new();
    for (sink, publisher) in publishers {
        let Some(publisher) = publisher.upgrade() else { continue };
        let is_matched = publisher.is_matched();
        match all.iter_mut().find(|(known, _)| known == sink) {
            Some((_, known)) => *known |= is_matched,
            None => all.push((sink.clone(), is_matched)),
        }
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sinks::queue::NETWORK;

    #[test]
    fn queues_of_one_sink_have_one_sample() {
        let queue = |sink: &str| Queue::new(sink.to_owned(), NETWORK, Duration::from_secs(1), None);
        let all = queue_figures(&["mqtt:a", "mqtt:b", "mqtt:a"].map(queue));
        assert_eq!(all.iter().map(|queue| queue.sink.as_str()).collect::<Vec<_>>(), ["mqtt:a", "mqtt:b"]);
    }
}
