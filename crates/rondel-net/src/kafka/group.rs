//! The member of a consumer group: partitions come and go, each with its state.

use std::collections::BTreeMap;
use std::sync::atomic::Ordering;
use std::sync::{Arc, PoisonError};
use std::time::Duration;

use rdkafka::consumer::{CommitMode, Consumer as _};
use rdkafka::{Offset, TopicPartitionList};

use super::changes::Change;
use super::incoming::Incoming;
use super::partitions::{self, Begin, First, LIMIT, Range};
use super::positions::{self, Mark};
use super::routes::{Partition, Routes, Topic};
use crate::adapter::{PartitionMark, PartitionStates, PartitionStatus, now};

/// Time limit of a query for the end of a partition.
const END: Duration = Duration::from_millis(500);

/// Returns the marks in bytes of a [snapshot](super::Session::freeze).
pub fn partition_marks(marks: &[u8]) -> Vec<PartitionMark> {
    let topics = positions::read(marks).unwrap_or_default();
    let all = topics.into_values().flatten();
    all.map(|(partition, Mark { next, last })| PartitionMark { partition, next, last }).collect()
}

impl Incoming {
    /// Sets the states of partitions, before the group is joined.
    pub(super) fn divide(&self, states: Arc<dyn PartitionStates>) {
        *self.states.lock().unwrap_or_else(PoisonError::into_inner) = Some(states);
    }

    fn states(&self) -> Option<Arc<dyn PartitionStates>> {
        self.states.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Joins the group with the topics of all subscriptions.
    pub(super) fn join_group(&self, routes: &Routes) {
        let topics: Vec<&str> = routes.topics.keys().map(String::as_str).collect();
        if topics.is_empty() {
            return;
        }
        self.consumer.context().changes.wait(true);
        if let Err(error) = self.consumer.subscribe(&topics) {
            tracing::warn!("cannot join the group of Kafka at {}: {error}", self.settings.place());
        }
    }

    /// Answers the changes of the assignment, and takes over partitions again whose states could not be used. Returns whether
    /// partitions were added.
    pub(super) fn rebalance(&self, tries_again: bool) -> bool {
        let mut is_added = false;
        while let Some(change) = self.consumer.context().changes.next() {
            match change {
                Change::Assigned(partitions) => is_added |= self.take_over(partitions, true),
                Change::Revoked(partitions) => self.give_up(&partitions),
            }
        }
        let unread = if tries_again { std::mem::take(&mut self.routes().unread) } else { Vec::new() };
        if !unread.is_empty() {
            is_added |= self.take_over(unread, false);
        }
        is_added
    }

    /// Answers the last changes, when nothing is read any more.
    pub(super) fn leave_group(&self) {
        let changes = &self.consumer.context().changes;
        changes.wait(false);
        while let Some(change) = changes.next() {
            match change {
                Change::Revoked(partitions) => self.give_up(&partitions),
                // Their states stay as they are.
                Change::Assigned(_) => {
                    if let Err(error) = self.consumer.incremental_assign(&TopicPartitionList::new()) {
                        tracing::debug!("cannot refuse partitions of Kafka: {error}");
                    }
                }
            }
        }
    }

    /// Takes over the states of partitions, and reads these. Returns whether any is read.
    fn take_over(&self, partitions: Vec<(String, i32)>, is_answer: bool) -> bool {
        let mut list = TopicPartitionList::new();
        for (topic, number) in partitions {
            match self.begin_partition(&topic, number) {
                Ok(next) => {
                    tracing::info!(%topic, number, next, "reading the partition of Kafka");
                    // An offset is never negative.
                    let _ = list.add_partition_offset(&topic, number, Offset::Offset(next));
                }
                Err(reason) => {
                    let mut routes = self.routes();
                    let before = routes.unread_reasons.insert((topic.clone(), number), reason.clone());
                    if before.as_ref() != Some(&reason) {
                        tracing::warn!(
                            "the partition {number} of the topic `{topic}` of Kafka cannot be read: {reason}; trying again"
                        );
                    }
                    routes.unread.push((topic, number));
                }
            }
        }
        let is_any = list.count() > 0;
        // An answer may be empty: the group waits for it.
        if (is_any || is_answer)
            && let Err(error) = self.consumer.incremental_assign(&list)
        {
            tracing::warn!("cannot read partitions of Kafka at {}: {error}", self.settings.place());
        }
        if is_any {
            self.is_behind.store(true, Ordering::Relaxed);
            self.is_reached.store(true, Ordering::Relaxed);
        }
        is_any
    }

    /// Takes over the state of a partition. Returns the offset of the first record that it does not contain.
    fn begin_partition(&self, topic: &str, number: i32) -> Result<i64, String> {
        let states = self.states().ok_or("its state has no place")?;
        let client = self.consumer.client();
        let range = client.fetch_watermarks(topic, number, LIMIT).map_err(|error| error.to_string())?;
        let range = Range { low: range.0, high: range.1 };
        let begun = states.take_over(number).and_then(|known| {
            let known = known.map(|mark| Mark { next: mark.next, last: mark.last });
            self.begin_at(&*states, (topic, number), range, known)
        });
        // Its session would go on with time alone, also after the group has revoked the partition.
        let (Begin { mark, lost, is_new }, is_committed) = begun.inspect_err(|_| states.forget(number))?;
        let mut routes = self.routes();
        routes.unread_reasons.remove(&(topic.to_owned(), number));
        let partition = Partition { is_assigned: true, ..Partition::new(mark, true) };
        let read = routes.topics.entry(topic.to_owned()).or_default();
        read.partitions.insert(number, partition);
        if is_committed {
            tracing::warn!(
                "the partition {number} of the topic `{topic}` of Kafka has a committed offset and no state: its properties \
                 begin again at offset {}",
                mark.next
            );
        }
        if is_new {
            routes.was_reset(topic, number, mark.last);
        }
        if lost > 0 {
            routes.lost(topic, number, lost, mark.last);
        }
        Ok(mark.next)
    }

    /// Begins the state of a partition. Returns where reading begins, and whether at a committed offset.
    fn begin_at(
        &self,
        states: &dyn PartitionStates,
        (topic, number): (&str, i32),
        range: Range,
        known: Option<Mark>,
    ) -> Result<(Begin, bool), String> {
        let committed = if known.is_none() { self.committed(topic, number)? } else { None };
        let begin = match committed {
            Some(next) => Begin {
                mark: Mark { next: next.clamp(range.low, range.high), last: now() },
                lost: 0,
                is_new: false,
            },
            None => {
                let is_later = known.is_none() && number >= states.first_count(self.count(topic)?)?;
                let first = if is_later { First::Oldest } else { First::Set(self.settings.start) };
                partitions::begin(range, known, first)
            }
        };
        let Mark { next, last } = begin.mark;
        states.begin(PartitionMark { partition: number, next, last })?;
        Ok((begin, committed.is_some()))
    }

    /// The number of partitions of a topic.
    fn count(&self, topic: &str) -> Result<i32, String> {
        let metadata = self.consumer.client().fetch_metadata(Some(topic), LIMIT);
        let metadata = metadata.map_err(|error| error.to_string())?;
        let found = metadata.topics().iter().find(|found| found.name() == topic);
        let count = found.map_or(0, |found| found.partitions().len());
        i32::try_from(count).ok().filter(|count| *count > 0).ok_or_else(|| "it has no leader".to_owned())
    }

    /// The committed offset of a partition, if there is one.
    fn committed(&self, topic: &str, number: i32) -> Result<Option<i64>, String> {
        let mut list = TopicPartitionList::new();
        list.add_partition(topic, number);
        let found = self.consumer.committed_offsets(list, LIMIT).map_err(|error| error.to_string())?;
        let offset = found.elements().first().map(|element| element.offset());
        Ok(match offset {
            Some(Offset::Offset(offset)) => Some(offset),
            _ => None,
        })
    }

    /// Makes the states of partitions durable, and gives them up.
    fn give_up(&self, partitions: &[(String, i32)]) {
        let is_lost = self.consumer.assignment_lost();
        let mut list = TopicPartitionList::new();
        let mut marks: BTreeMap<i32, PartitionMark> = BTreeMap::new();
        let (_gate, mut routes) = self.routes_soon();
        routes.unread.retain(|unread| !partitions.contains(unread));
        for (topic, number) in partitions {
            let read = routes.topics.get_mut(topic);
            let Some(partition) = read.and_then(|read| read.partitions.remove(number)) else { continue };
            let Mark { next, last } = partition.mark;
            marks.insert(*number, PartitionMark { partition: *number, next, last });
            list.add_partition(topic, *number);
        }
        let all: Vec<PartitionMark> = marks.values().copied().collect();
        let saved = self.states().map(|states| states.give_up(&all)).unwrap_or_default();
        drop(routes);
        if is_lost {
            tracing::warn!(
                "the group has not received anything from this process in time: other members read its partitions"
            );
        } else {
            let offsets = saved.iter().filter_map(|number| Some((*number, marks.get(number)?.next)));
            self.commit(partitions, &offsets.collect(), CommitMode::Sync);
        }
        if let Err(error) = self.consumer.incremental_unassign(&list) {
            tracing::debug!("cannot give up partitions of Kafka: {error}");
        }
    }

    /// Commits offsets, for programs that show the lag of a group.
    fn commit(&self, partitions: &[(String, i32)], offsets: &BTreeMap<i32, i64>, mode: CommitMode) {
        let mut list = TopicPartitionList::new();
        for (topic, number) in partitions {
            if let Some(next) = offsets.get(number) {
                // An offset is never negative.
                let _ = list.add_partition_offset(topic, *number, Offset::Offset(*next));
            }
        }
        if list.count() > 0
            && let Err(error) = self.consumer.commit(&list, mode)
        {
            // The state has the offset, too.
            tracing::debug!("cannot commit offsets of Kafka at {}: {error}", self.settings.place());
        }
    }

    /// Commits the offsets of the last snapshot, which is durable.
    pub(super) fn commit_captured(&self, routes: &mut Routes) {
        let (mut partitions, mut offsets) = (Vec::new(), BTreeMap::new());
        for (topic, read) in &mut routes.topics {
            for (number, partition) in &mut read.partitions {
                // Offsets of a topic that was created again are smaller.
                if partition.captured != partition.committed {
                    partition.committed = partition.captured;
                    partitions.push((topic.clone(), *number));
                    offsets.insert(*number, partition.captured);
                }
            }
        }
        self.commit(&partitions, &offsets, CommitMode::Async);
    }

    /// Looks for the ends of the partitions.
    pub(super) fn look_for_ends(&self) {
        let all: Vec<(String, i32)> = {
            let routes = self.routes();
            let topics = routes.topics.iter();
            let of = |(topic, read): (&String, &Topic)| -> Vec<(String, i32)> {
                read.partitions.keys().map(|number| (topic.clone(), *number)).collect()
            };
            topics.flat_map(of).collect()
        };
        for (topic, number) in all {
            if self.is_closing() || self.consumer.context().watch.is_lost() {
                return;
            }
            if let Ok((_, high)) = self.consumer.client().fetch_watermarks(&topic, number, END)
                && let Some(partition) = self.routes().partition(&topic, number)
            {
                partition.end = Some(high);
            }
        }
    }

    /// Returns the partitions that are read by this member.
    pub(super) fn partition_status(&self) -> Vec<PartitionStatus> {
        let routes = self.routes();
        let mut all = Vec::new();
        for (topic, read) in &routes.topics {
            for (number, partition) in &read.partitions {
                let next = partition.mark.next;
                let lag = partition.end.map(|end| u64::try_from(end.saturating_sub(next)).unwrap_or(0));
                all.push(PartitionStatus { topic: topic.clone(), partition: *number, next, lag });
            }
        }
        all
    }
}
