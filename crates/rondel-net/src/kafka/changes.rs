//! Changes of the partitions that a member of a consumer group has.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};

use rdkafka::TopicPartitionList;
use rdkafka::consumer::{BaseConsumer, Consumer as _, RebalanceProtocol};
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
    /// Whether the reading thread answers them.
    are_awaited: AtomicBool,
}

impl Changes {
    /// Takes a change from the client.
    pub(super) fn take(
        &self,
        consumer: &BaseConsumer<Watched>,
        kind: RDKafkaRespErr,
        list: &TopicPartitionList,
    ) {
        let is_assigned = kind == RDKafkaRespErr::RD_KAFKA_RESP_ERR__ASSIGN_PARTITIONS;
        if self.are_awaited.load(Ordering::SeqCst) {
            let elements = list.elements();
            let all =
                elements.iter().map(|element| (element.topic().to_owned(), element.partition())).collect();
            let change = if is_assigned { Change::Assigned(all) } else { Change::Revoked(all) };
            self.waiting.lock().unwrap_or_else(PoisonError::into_inner).push_back(change);
            return;
        }
        // Nothing is received any more.
        let answered = match (is_assigned, consumer.rebalance_protocol()) {
            (true, RebalanceProtocol::Cooperative) => consumer.incremental_assign(list),
            (true, _) => consumer.assign(list),
            (false, RebalanceProtocol::Cooperative) => consumer.incremental_unassign(list),
            (false, _) => consumer.unassign(),
        };
        if let Err(error) = answered {
            tracing::debug!("cannot answer a change of partitions of Kafka: {error}");
        }
    }

    /// Returns the next change.
    pub(super) fn next(&self) -> Option<Change> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner).pop_front()
    }

    /// Sets whether changes wait for [`next`](Changes::next).
    pub(super) fn wait(&self, are_awaited: bool) {
        self.are_awaited.store(are_awaited, Ordering::SeqCst);
    }
}
