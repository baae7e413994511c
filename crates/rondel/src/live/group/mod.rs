//! The member of a consumer group: its partitions, each with a state in a folder that all members share.

mod folder;

use std::collections::BTreeMap;
use std::io;
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;

use rondel_event::Timestamp;
use rondel_net::adapter::{PartitionMark, PartitionStates, Publisher};
use rondel_net::durability::State;
use rondel_net::kafka;
use rondel_runtime::Notice;

use crate::live::pipeline::Pipeline;
use crate::{say, warn};
use folder::StateFolder;

/// Time limit for verdicts to be accepted before a state is written that contains them.
const SETTLE: Duration = Duration::from_millis(1500);

/// The states of the partitions of a member.
pub struct GroupStates {
    pipeline: Arc<Pipeline>,
    folder: StateFolder,
    topic: String,
    /// Publishers of verdicts. They end before the client, which holds the states.
    publishers: Vec<Weak<dyn Publisher>>,
    owned: Mutex<BTreeMap<i32, Owned>>,
    /// Number of the last take-over, or of the last captured state.
    order: AtomicU64,
    /// Whether a greater number of partitions was reported.
    is_grown: AtomicBool,
}

/// A partition that the member has.
#[derive(Clone, Copy, Debug)]
struct Owned {
    /// Number of its state.
    number: u64,
    /// Offset in the state, once it is written.
    saved: Option<i64>,
    /// Number of the take-over or, later, of the state that was written: earlier ones are not written any more.
    order: u64,
}

/// A state that is not written yet.
struct Captured {
    mark: PartitionMark,
    state: Vec<u8>,
    order: u64,
}

impl GroupStates {
    /// Opens the folder of the states.
    ///
    /// # Errors
    /// The reason why it cannot be used.
    pub fn open(
        group: &kafka::Group,
        topic: &str,
        pipeline: Arc<Pipeline>,
        publishers: &[Arc<dyn Publisher>],
    ) -> Result<Arc<GroupStates>, String> {
        let folder = StateFolder::open(&group.state, &group.name, topic).map_err(|error| {
            format!("cannot write states of the group to {}: {error}", group.state.display())
        })?;
        let (owned, order, is_grown) = Default::default();
        let topic = topic.to_owned();
        let publishers = publishers.iter().map(Arc::downgrade).collect();
        Ok(Arc::new(GroupStates { pipeline, folder, topic, publishers, owned, order, is_grown }))
    }

    fn owned(&self) -> MutexGuard<'_, BTreeMap<i32, Owned>> {
        self.owned.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn next_order(&self) -> u64 {
        self.order.fetch_add(1, Ordering::Relaxed) + 1
    }

    /// Captures the state of a partition; `None` without a session.
    fn capture(&self, mark: &PartitionMark) -> Option<Captured> {
        let order = self.next_order();
        let state = self.pipeline.partition_snapshot(mark, write_mark(mark))?;
        Some(Captured { mark: *mark, state, order })
    }

    /// Writes states. Partitions that other members have taken over are forgotten.
    fn save(&self, states: Vec<Captured>) -> io::Result<Vec<i32>> {
        let (mut saved, mut lost) = (Vec::new(), Vec::new());
        let mut failure = None;
        {
            let mut owned = self.owned();
            for Captured { mark: PartitionMark { partition, next, .. }, state, order } in states {
                let Some(own) = owned.get_mut(&partition) else { continue };
                // A later one may have been written, or the partition given up and taken over again. Offsets do not show
                // it: those of a topic that was created again are smaller.
                if own.order > order {
                    continue;
                }
                match self.folder.save(partition, own.number, &state) {
                    Ok(true) => {
                        (own.saved, own.order) = (Some(next), order);
                        saved.push(partition);
                    }
                    Ok(false) => lost.push(partition),
                    Err(error) => failure = Some(error),
                }
            }
        }
        for partition in lost {
            self.forget(partition);
            warn(&format!(
                "the partition {partition} of the topic `{}` was taken over by another process; nothing of it is written here \
                 any more",
                self.topic
            ));
        }
        failure.map_or(Ok(saved), Err)
    }
}

impl PartitionStates for GroupStates {
    fn take_over(&self, partition: i32) -> Result<Option<PartitionMark>, String> {
        let failed =
            |error: io::Error| format!("cannot read its state in {}: {error}", self.folder.path().display());
        let newest = self.folder.newest(partition).map_err(failed)?;
        let number = newest.as_ref().map_or(0, |(number, _)| *number);
        let state = newest.as_ref().map(|(_, state)| state.as_slice());
        let added = self.pipeline.add_partition(partition, state);
        let attached = added.map_err(|error| {
            format!(
                "cannot continue from its state {}: {error}",
                self.folder.file(partition, number).display()
            )
        })?;
        let mark = attached.map(|attached| {
            read_mark(partition, &attached).ok_or_else(|| {
                format!("its state {} has no offset", self.folder.file(partition, number).display())
            })
        });
        let mark = mark.transpose().inspect_err(|_| self.pipeline.remove_partition(partition))?;
        let own = Owned { number: number.saturating_add(1), saved: None, order: self.next_order() };
        self.owned().insert(partition, own);
        Ok(mark)
    }

    fn first_count(&self, count: i32) -> Result<i32, String> {
        let first = self.folder.first_count(count);
        let first = first
            .map_err(|error| format!("cannot use its states in {}: {error}", self.folder.path().display()))?;
        if first < count && !self.is_grown.swap(true, Ordering::Relaxed) {
            warn(&format!(
                "the topic `{}` has {count} partitions, and had {first} when the states of the group began: instances whose \
                 keys have moved to another partition begin again there",
                self.topic
            ));
        }
        Ok(first)
    }

    fn begin(&self, mark: PartitionMark) -> Result<(), String> {
        let PartitionMark { partition, next, .. } = mark;
        let own = self.owned().get(&partition).copied().ok_or("it was not taken over")?;
        let Captured { state, order, .. } = self.capture(&mark).ok_or("it has no session")?;
        let claimed = self.folder.claim(partition, own.number, &state);
        let outcome = match claimed {
            Ok(true) => Ok(()),
            Ok(false) => Err("another process has taken it over".to_owned()),
            Err(error) => Err(format!(
                "cannot write its state {}: {error}",
                self.folder.file(partition, own.number).display()
            )),
        };
        match &outcome {
            Ok(()) => {
                self.owned().insert(partition, Owned { saved: Some(next), order, ..own });
                say(&format!("partition {partition} of {} is assigned: from offset {next}", self.topic));
            }
            Err(_) => self.forget(partition),
        }
        outcome
    }

    fn forget(&self, partition: i32) {
        self.owned().remove(&partition);
        self.pipeline.remove_partition(partition);
    }

    fn give_up(&self, marks: &[PartitionMark]) -> Vec<i32> {
        let states: Vec<Captured> = marks.iter().filter_map(|mark| self.capture(mark)).collect();
        // An undelivered verdict would be lost once the state is written.
        let mut publishers = self.publishers.iter().filter_map(Weak::upgrade);
        let is_settled = publishers.all(|publisher| publisher.settle(SETTLE));
        let saved = match self.save(if is_settled { states } else { Vec::new() }) {
            Ok(saved) => saved,
            Err(error) => {
                warn(&format!("cannot write states to {}: {error}", self.folder.path().display()));
                Vec::new()
            }
        };
        for PartitionMark { partition, next, .. } in marks {
            self.forget(*partition);
            let unsaved = if saved.contains(partition) {
                ""
            } else {
                "; its state is not up to date: the next process repeats verdicts, with the same ids"
            };
            say(&format!("partition {partition} of {} is revoked at offset {next}{unsaved}", self.topic));
        }
        saved
    }
}

/// Writes the states of a member at intervals.
pub struct KeptStates {
    states: Arc<GroupStates>,
    /// States of the last snapshot, which are not written yet.
    pending: Mutex<Vec<Captured>>,
}

impl KeptStates {
    /// Writes these states.
    pub fn new(states: Arc<GroupStates>) -> KeptStates {
        KeptStates { states, pending: Mutex::default() }
    }

    fn pending(&self) -> MutexGuard<'_, Vec<Captured>> {
        self.pending.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The folder of the states.
    fn path(&self) -> &Path {
        self.states.folder.path()
    }
}

impl State for KeptStates {
    /// Captures the states of the partitions whose records have been received since they were written. They wait for
    /// [`save`](State::save), and the snapshot is empty.
    fn snapshot(&self, marks: Vec<u8>) -> Vec<u8> {
        let saved: BTreeMap<i32, Option<i64>> =
            self.states.owned().iter().map(|(partition, own)| (*partition, own.saved)).collect();
        let marks = kafka::partition_marks(kafka::split(&marks).0);
        let is_new =
            |mark: &&PartitionMark| saved.get(&mark.partition).is_some_and(|saved| *saved != Some(mark.next));
        let states = marks.iter().filter(is_new).filter_map(|mark| self.states.capture(mark)).collect();
        *self.pending() = states;
        Vec::new()
    }

    fn received(&self) -> u64 {
        self.states.pipeline.received()
    }

    fn save(&self, _snapshot: &[u8]) -> io::Result<()> {
        let pending = std::mem::take(&mut *self.pending());
        self.states.save(pending).map(drop)
    }

    fn report(&self, failure: Option<&io::Error>) {
        match failure {
            Some(error) => {
                self.states.pipeline.report_losses(vec![Notice::unsaved(self.path(), error, true)]);
            }
            None => say(&format!("states are written to {} again", self.path().display())),
        }
    }
}

/// Returns a mark as bytes that are attached to a state.
fn write_mark(mark: &PartitionMark) -> Vec<u8> {
    [mark.next.to_le_bytes(), mark.last.as_nanos().to_le_bytes()].concat()
}

/// Reads the mark of a state.
fn read_mark(partition: i32, bytes: &[u8]) -> Option<PartitionMark> {
    let (next, last) = bytes.split_first_chunk()?;
    let next = i64::from_le_bytes(*next);
    let last = Timestamp::from_nanos(i64::from_le_bytes(last.try_into().ok()?));
    Some(PartitionMark { partition, next, last })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn marks_are_written_and_read() {
        let mark = PartitionMark { partition: 3, next: i64::MAX - 1, last: Timestamp::from_nanos(-7) };
        let bytes = write_mark(&mark);
        assert_eq!(read_mark(3, &bytes), Some(mark));
        (0..bytes.len()).for_each(|end| assert_eq!(read_mark(3, &bytes[..end]), None));
    }
}
