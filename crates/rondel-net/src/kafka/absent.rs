//! The session of a program that is built without Kafka: none can be opened.

use std::ops::ControlFlow;
use std::sync::Arc;
use std::time::Duration;

use rondel_event::TopicId;

use super::{DeclareError, OpenError, SelectedRecord, Selection, SelectionCounts, Settings, UNAVAILABLE};
use crate::adapter::{
    self, DeadLetterCounts, Outage, PartitionMark, PartitionStates, PartitionStatus, Receiver,
};

/// Returns the error that there is no Kafka.
///
/// # Errors
/// Always.
pub fn read_selection(
    _settings: &Settings,
    _place: &str,
    _selection: &Selection,
    _is_stopped: &dyn Fn() -> bool,
    _take: &mut dyn FnMut(SelectedRecord<'_>) -> Result<(), String>,
) -> Result<SelectionCounts, String> {
    Err(UNAVAILABLE.to_owned())
}

/// Returns no marks.
pub fn partition_marks(_marks: &[u8]) -> Vec<PartitionMark> {
    Vec::new()
}

/// A session with the brokers of a cluster; there is none without the feature `kafka`.
#[derive(Debug)]
pub enum Session {}

impl Session {
    /// Returns the error that there is no Kafka.
    ///
    /// # Errors
    /// [`OpenError::Setting`], always.
    pub fn open(_settings: &Settings) -> Result<Session, OpenError> {
        Err(OpenError::Setting(UNAVAILABLE.to_owned()))
    }

    /// The same as [`Session::open`].
    ///
    /// # Errors
    /// [`OpenError::Setting`], always.
    pub fn open_later(settings: &Settings) -> Result<Session, OpenError> {
        Session::open(settings)
    }

    /// The same as [`Session::open`].
    ///
    /// # Errors
    /// [`OpenError::Setting`], always.
    pub fn open_connected(
        settings: &Settings,
        _waiting: impl FnMut(&OpenError) -> ControlFlow<()>,
    ) -> Result<Session, OpenError> {
        Session::open(settings)
    }

    /// Subscribes to an address.
    ///
    /// # Errors
    /// Never returns.
    pub fn subscribe<R: Receiver + ?Sized>(
        &self,
        _place: &str,
        _topic: TopicId,
        _receiver: Arc<R>,
    ) -> Result<Box<dyn adapter::Subscription>, DeclareError> {
        match *self {}
    }

    /// Observes the topics that match a pattern.
    ///
    /// # Errors
    /// Never returns.
    #[cfg(all(feature = "dds", feature = "mqtt", feature = "zenoh"))]
    pub(crate) fn observe(
        &self,
        _pattern: &str,
        _observer: &crate::observe::Observer,
    ) -> Result<Vec<Box<dyn adapter::Subscription>>, DeclareError> {
        match *self {}
    }

    /// Creates a publisher.
    ///
    /// # Errors
    /// Never returns.
    pub fn publisher(&self, _place: &str) -> Result<Box<dyn adapter::Publisher>, DeclareError> {
        match *self {}
    }

    /// Begins to receive.
    pub fn begin(&self) {
        match *self {}
    }

    /// Delivers nothing.
    pub fn pause(&self) {
        match *self {}
    }

    /// Ends a pause.
    pub fn resume(&self) {
        match *self {}
    }

    /// Sets the states of partitions.
    pub fn divide(&self, _states: Arc<dyn PartitionStates>) {
        match *self {}
    }

    /// Returns the partitions of a member.
    pub fn partitions(&self) -> Vec<PartitionStatus> {
        match *self {}
    }

    /// Calls `capture` with marks.
    pub fn freeze<T>(&self, _capture: impl FnOnce(Vec<u8>) -> T) -> T {
        match *self {}
    }

    /// Whether marks may become durable.
    pub fn is_settled(&self) -> bool {
        match *self {}
    }

    /// Returns the numbers of records that cannot be decoded.
    pub fn dead_letters(&self, _limit: Duration) -> Option<DeadLetterCounts> {
        match *self {}
    }

    /// Records that marks are durable.
    pub fn release(&self) {
        match *self {}
    }

    /// Whether topics wait for marks.
    pub fn awaits_snapshot(&self) -> bool {
        match *self {}
    }

    /// Whether the next run continues at marks of this one on a topic.
    pub fn kept(&self, _place: &str) -> bool {
        match *self {}
    }

    /// Whether no broker was reached so far.
    pub fn is_awaited(&self) -> bool {
        match *self {}
    }

    /// Whether records may be waiting at brokers that cannot be reached.
    pub fn is_unsure(&self) -> bool {
        match *self {}
    }

    /// Returns the number of refused messages.
    pub fn refused(&self) -> u64 {
        match *self {}
    }

    /// Returns the lost connections.
    pub fn outages(&self) -> Vec<Outage> {
        match *self {}
    }

    /// Ends the waits of publishers.
    pub fn wake(&self) {
        match *self {}
    }

    /// Closes the session.
    pub fn close_within(&self, _limit: Duration) -> bool {
        match *self {}
    }
}
