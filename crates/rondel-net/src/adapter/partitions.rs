//! Partitions of a topic that a member of a consumer group receives, and their states.

use rondel_event::Timestamp;

/// Position in a partition of a topic.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PartitionMark {
    /// The partition.
    pub partition: i32,
    /// Offset of the first record that was not received.
    pub next: i64,
    /// Time of arrival of the last record, or at which the partition was found.
    pub last: Timestamp,
}

/// State of a receiver that is divided by the partitions of a topic, of which the members of a consumer group have some
/// each. Its methods are called while no record is received.
pub trait PartitionStates: Send + Sync {
    /// Takes over the state of a partition. Returns the mark up to which it contains the records; `None` without a state.
    ///
    /// # Errors
    /// The reason why the state cannot be used. The partition is not read; it is taken over again later.
    fn take_over(&self, partition: i32) -> Result<Option<PartitionMark>, String>;

    /// Returns the number of partitions that the topic had when the first of its states was made; `count` if this is the
    /// first. A partition beyond it has appeared since.
    ///
    /// # Errors
    /// The reason why it cannot be read or written.
    fn first_count(&self, count: i32) -> Result<i32, String>;

    /// Makes the state of a partition durable that was taken over, before its first record is received: from here on no
    /// other process changes it.
    ///
    /// # Errors
    /// The reason why it cannot be written, or that another process has taken it over. As after an error of
    /// [`take_over`](PartitionStates::take_over).
    fn begin(&self, mark: PartitionMark) -> Result<(), String>;

    /// Forgets a partition that was taken over and is not read; its state stays as it is.
    fn forget(&self, partition: i32);

    /// Makes the states of partitions durable that another process takes over, and forgets them. Returns the partitions
    /// whose states contain all records up to the marks.
    fn give_up(&self, marks: &[PartitionMark]) -> Vec<i32>;
}

/// Partition of a topic that a member of a consumer group has.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PartitionStatus {
    /// The topic.
    pub topic: String,
    /// The partition.
    pub partition: i32,
    /// Offset of the first record that was not received.
    pub next: i64,
    /// Number of records that wait at the broker, as far as known.
    pub lag: Option<u64>,
}
