//! The partitions of a topic, and the offsets at which reading them begins.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use rdkafka::client::Client;
use rdkafka::error::{KafkaError, RDKafkaErrorCode};

use super::Start;
use super::client::{Watched, is_unknown_topic, unreachable};
use super::positions::Mark;
use crate::adapter::now;

/// Time limit of the requests about one topic.
pub(super) const LIMIT: Duration = Duration::from_secs(5);
/// Minimum time limit of one request.
const LEAST: Duration = Duration::from_millis(50);

/// Oldest and next offset of a partition.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Range {
    pub(super) low: i64,
    pub(super) high: i64,
}

/// Partitions of a topic with their offsets, by number.
pub(super) type Partitions = BTreeMap<i32, Range>;

/// Reason why the partitions of a topic are unknown.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Unknown {
    /// The cluster does not have the topic.
    Topic,
    /// The user may not read it.
    Refused(String),
    /// No broker answers, or a partition has no leader; a later attempt may succeed.
    Unreachable(String),
}

/// Returns the partitions of a topic except the `known` ones, with their offsets.
pub(super) fn find(
    client: &Client<Watched>,
    topic: &str,
    known: impl Fn(i32) -> bool,
    limit: Duration,
) -> Result<Partitions, Unknown> {
    let deadline = Instant::now() + limit;
    let left = || deadline.saturating_duration_since(Instant::now()).max(LEAST);
    let failed = |error: KafkaError| match error.rdkafka_error_code() {
        Some(code) => reason(client, topic, code),
        None => Unknown::Unreachable(error.to_string()),
    };
    let metadata = client.fetch_metadata(Some(topic), left()).map_err(failed)?;
    let found = metadata.topics().iter().find(|found| found.name() == topic).ok_or(Unknown::Topic)?;
    if let Some(error) = found.error() {
        return Err(reason(client, topic, RDKafkaErrorCode::from(error)));
    }
    let mut partitions = Partitions::new();
    for partition in found.partitions().iter().map(|partition| partition.id()).filter(|id| !known(*id)) {
        let (low, high) = client.fetch_watermarks(topic, partition, left()).map_err(failed)?;
        partitions.insert(partition, Range { low, high });
    }
    Ok(partitions)
}

/// Whether the cluster answers within `limit`, and all partitions of a topic have a leader.
pub(super) fn have_leaders(client: &Client<Watched>, topic: &str, limit: Duration) -> bool {
    let Ok(metadata) = client.fetch_metadata(Some(topic), limit) else { return false };
    metadata.topics().iter().all(|found| match found.error() {
        // A missing or refused topic says nothing about the connection.
        Some(error) => RDKafkaErrorCode::from(error) != RDKafkaErrorCode::LeaderNotAvailable,
        None => found.partitions().iter().all(|partition| partition.leader() >= 0),
    })
}

fn reason(client: &Client<Watched>, topic: &str, code: RDKafkaErrorCode) -> Unknown {
    match code {
        code if is_unknown_topic(code) => Unknown::Topic,
        RDKafkaErrorCode::TopicAuthorizationFailed => Unknown::Refused(format!(
            "the user may not read the topic `{topic}`; add an ACL for the operation Read"
        )),
        RDKafkaErrorCode::BrokerTransportFailure
        | RDKafkaErrorCode::OperationTimedOut
        | RDKafkaErrorCode::AllBrokersDown => {
            Unknown::Unreachable(unreachable(client.context().watch.last_error().as_ref()))
        }
        code => Unknown::Unreachable(code.to_string()),
    }
}

/// First record of the partitions of a topic without a mark.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum First {
    /// As the settings state: the topic exists since before the run.
    Set(Start),
    /// The oldest: the topic, or the partition, has appeared since.
    Oldest,
}

/// Begin of reading a partition.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Begin {
    pub(super) mark: Mark,
    /// Number of records that the previous run has not read, and that have expired since; in a compacted topic an upper
    /// bound.
    pub(super) lost: u64,
    /// Whether the topic was created again: the mark is behind its end.
    pub(super) is_new: bool,
}

/// Returns where reading a partition begins: at the mark of an earlier run, if there is one.
pub(super) fn begin(range: Range, mark: Option<Mark>, first: First) -> Begin {
    let Range { low, high } = range;
    let at = |next: i64| Mark { next, last: mark.map_or_else(now, |mark| mark.last) };
    match mark {
        Some(mark) if mark.next > high => Begin { mark: at(low), lost: 0, is_new: true },
        Some(mark) => {
            let next = mark.next.max(low);
            Begin { mark: at(next), lost: next.abs_diff(mark.next), is_new: false }
        }
        None => {
            let next = if first == First::Set(Start::Latest) { high } else { low };
            Begin { mark: at(next), lost: 0, is_new: false }
        }
    }
}

#[cfg(test)]
mod tests {
    use rondel_event::Timestamp;

    use super::*;

    #[test]
    fn a_run_goes_on_at_its_mark_and_counts_expired_records() {
        let range = Range { low: 100, high: 200 };
        let mark = |next: i64| Some(Mark { next, last: Timestamp::from_nanos(5) });
        for (mark, first, (next, lost, is_new)) in [
            (mark(150), First::Set(Start::Latest), (150, 0, false)),
            (mark(200), First::Oldest, (200, 0, false)),
            (mark(100), First::Oldest, (100, 0, false)),
            (mark(40), First::Set(Start::Latest), (100, 60, false)),
            (mark(201), First::Set(Start::Latest), (100, 0, true)),
            (None, First::Set(Start::Latest), (200, 0, false)),
            (None, First::Set(Start::Earliest), (100, 0, false)),
            (None, First::Oldest, (100, 0, false)),
        ] {
            let begin = begin(range, mark, first);
            assert_eq!(
                (begin.mark.next, begin.lost, begin.is_new),
                (next, lost, is_new),
                "{mark:?} {first:?}"
            );
            assert!(mark.is_none_or(|mark| begin.mark.last == mark.last));
        }
    }
}
