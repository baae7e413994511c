//! Changes of the partitions that a member of a consumer group has.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};

use rdkafka::TopicPartitionList;
use rdkafka::consumer::{BaseConsumer, Consumer as _};
use rdkafka::types::RDKafkaRespErr;

use super::client::Watched;

/// Change of an assignment, with topics and partitions. The group waits until it is answered.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Change {
    Assigned(Vec<(String, i32)>),
    Revoked(Vec<(String, i32)>),
}

/// Changes that are not answered.
#[derive(Debug, Default)]
pub(super) struct Changes {
    waiting: Mutex<VecDeque<Change>>,
    /// Whether the reading thread has ended.
    are_unanswered: AtomicBool,
}

impl Changes {
    /// Takes a change from the client.
    pub(super) fn take(
        &self,
        consumer: &BaseConsumer<Watched>,
        kind: RDKafkaRespErr,
        list: &TopicPartitionList,
    ) {
        let elements = list.elements();
        let all = elements.iter().map(|element| (element.topic().to_owned(), element.partition())).collect();
        let is_assigned = kind == RDKafkaRespErr::RD_KAFKA_RESP_ERR__ASSIGN_PARTITIONS;
        if !self.are_unanswered.load(Ordering::SeqCst) {
            let change = if is_assigned { Change::Assigned(all) } else { Change::Revoked(all) };
            self.waiting.lock().unwrap_or_else(PoisonError::into_inner).push_back(change);
        } else if !is_assigned && let Err(error) = consumer.incremental_unassign(list) {
            // The member leaves the group without it, later.
            tracing::debug!("cannot give up partitions of Kafka: {error}");
        }
    }

    /// Returns the next change.
    pub(super) fn next(&self) -> Option<Change> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner).pop_front()
    }

    /// Records that [`next`](Changes::next) is not called any more.
    pub(super) fn end(&self) {
        self.are_unanswered.store(true, Ordering::SeqCst);
    }
}
