//! The common interface of all networks: samples arrive on the network's own thread, payloads leave
//! through publishers. Both directions block instead of losing a message; publishing blocks for a limited
//! time if a limit is set, and then counts dropped messages.

mod change;
mod dead_letters;
mod partitions;
mod publisher_id;

use std::ops::AddAssign;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use rondel_decode::schema::Schema;
use rondel_event::{NameId, Origin, Timestamp, TopicId, TypeIndex};

pub use change::{Change, ChangeTime, Instance};
pub use dead_letters::DeadLetterCounts;
pub use partitions::{PartitionMark, PartitionStates, PartitionStatus};
pub use publisher_id::PublisherId;

/// An endpoint that accepts connections or messages.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Listener {
    /// The network and the endpoint.
    pub place: String,
    /// Whether messages sent there are encrypted.
    pub encrypted: bool,
    /// Whether senders must authenticate.
    pub authenticated: bool,
}

impl std::fmt::Display for Listener {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let not = |is: bool| if is { "" } else { "not " };
        let Listener { place, encrypted, authenticated } = self;
        write!(f, "{place}: {}encrypted, {}authenticated", not(*encrypted), not(*authenticated))
    }
}

/// A received message, not yet decoded.
#[derive(Clone, Copy, Debug)]
pub struct Sample<'a> {
    /// Payload, borrowed from the network's own buffer.
    pub payload: &'a [u8],
    /// Time of publication in nanoseconds since the Unix epoch, where the network provides it.
    pub source_time: Option<Timestamp>,
    /// Publisher and sequence number, where the publisher provides them (on Zenoh by its source
    /// information). CycloneDDS does not pass on the sequence numbers of DDS.
    pub origin: Option<Origin>,
    /// Name of its topic, where the receiver [numbers](Receiver::number) them.
    pub name: Option<NameId>,
    /// Type of the message, where its publisher has [another](Receiver::further_type) than the subscription.
    pub of_type: TypeIndex,
    /// Partition of its topic, on Kafka.
    pub partition: Option<i32>,
    arrival: Option<Timestamp>,
}

impl<'a> Sample<'a> {
    /// Creates a sample; without `arrival`, [`Sample::arrival`] reads the clock.
    #[inline]
    pub fn new(payload: &'a [u8], source_time: Option<Timestamp>, arrival: Option<Timestamp>) -> Sample<'a> {
        let (origin, name, of_type, partition) = (None, None, TypeIndex::default(), None);
        Sample { payload, source_time, origin, name, of_type, partition, arrival }
    }

    /// Returns the sample with this origin.
    #[inline]
    pub fn with_origin(self, origin: Option<Origin>) -> Sample<'a> {
        Sample { origin, ..self }
    }

    /// Returns the sample with the name of its topic.
    #[inline]
    pub fn with_name(self, name: Option<NameId>) -> Sample<'a> {
        Sample { name, ..self }
    }

    /// Returns the sample with this type.
    #[inline]
    pub fn with_type(self, of_type: TypeIndex) -> Sample<'a> {
        Sample { of_type, ..self }
    }

    /// Returns the sample with the partition of its topic.
    #[inline]
    pub fn with_partition(self, partition: Option<i32>) -> Sample<'a> {
        Sample { partition, ..self }
    }

    /// Returns the sample with another payload.
    #[inline]
    pub(crate) fn with_payload<'b>(self, payload: &'b [u8]) -> Sample<'b> {
        Sample { payload, ..self }
    }

    /// Returns the time of arrival where the network reports it.
    #[inline]
    pub fn known_arrival(&self) -> Option<Timestamp> {
        self.arrival
    }

    /// Returns the time of arrival in nanoseconds since the Unix epoch; it is equal for all samples of
    /// one call of [`Receiver::receive`]. On Zenoh each call reads the clock, which is a good part of
    /// the cost of a small message: call it only if needed, and once.
    #[inline]
    pub fn arrival(&self) -> Timestamp {
        self.arrival.unwrap_or_else(now)
    }
}

/// Consumer of the samples of subscriptions.
///
/// Its methods are called on the network's own thread, so that no message changes threads on its way
/// to a verdict. Blocking here is back-pressure on the publisher (on MQTT, on the broker; on Kafka, fetching stops). Zenoh may
/// call from several threads at once, one for each sending neighbour; the samples of one publisher
/// arrive one after another in the order of publication.
pub trait Receiver: Send + Sync + 'static {
    /// Processes samples of one topic, in order. `samples` is never empty; Zenoh, MQTT and Kafka pass one
    /// sample, DDS up to 64.
    fn receive(&self, topic: TopicId, samples: &[Sample<'_>]);

    /// Called after [`receive`](Receiver::receive) when no further sample is waiting, and when a
    /// subscription is closed: the time to process a partial batch and to
    /// [release](Publisher::release) publishers. May be called more often than needed; never called
    /// unless [`wants_idle`](Receiver::wants_idle) returns `true`.
    fn idle(&self) {}

    /// Called when messages of a topic may have been missed since a time: as soon as this is known, and again with the
    /// end of the interval in `until`, before the first message after it. Zenoh calls it only for topics with
    /// unnumbered messages. Zenoh and DDS call it only at the end: before, it is unknown whether the neighbour has
    /// left.
    fn missed(&self, topic: TopicId, from: Timestamp, until: Option<Timestamp>) {
        let _ = (topic, from, until);
    }

    /// Called for a change of a topic other than a sample, in order with its samples. Only DDS calls it.
    fn changed(&self, _topic: TopicId, _change: Change<'_>, _time: ChangeTime) {}

    /// Whether to report the [owners](Change::Owner) of instances of a topic with exclusive ownership. Queried for each
    /// batch of its samples.
    fn wants_owner(&self, _topic: TopicId) -> bool {
        false
    }

    /// Whether to [number](Receiver::number) the names of the topics from which a subscription receives messages.
    /// Queried once for each subscription.
    fn wants_names(&self, _topic: TopicId) -> bool {
        false
    }

    /// Returns the number of such a name; `None` if its messages are to be dropped.
    fn number(&self, _topic: TopicId, _name: &str) -> Option<NameId> {
        None
    }

    /// Whether messages published by this process are wanted. Queried once for each subscription; only Zenoh can
    /// exclude them.
    fn wants_own(&self, _topic: TopicId) -> bool {
        true
    }

    /// Whether samples of publishers with another definition of the type than the subscription are delivered, each with
    /// [its type](Sample::of_type); otherwise they are only counted. Queried once for each subscription.
    fn wants_types(&self, _topic: TopicId) -> bool {
        false
    }

    /// Returns the type of samples of publishers with this definition; `None` if they cannot be decoded. `publisher`
    /// describes one of them. Until the definition is known, samples have the type [`TypeIndex::UNREAD`].
    fn further_type(&self, _topic: TopicId, _publisher: &str, _schema: &Schema) -> Option<TypeIndex> {
        None
    }

    /// Returns why the last sample of a topic could not be decoded or was too large, once. Only Kafka calls it, after each
    /// sample, where such records are written to a topic.
    fn refusal(&self, _topic: TopicId) -> Option<Box<str>> {
        None
    }

    /// Takes a sample whose topic has no [name](Receiver::number), for the reason in `why`. Returns whether it was counted as
    /// undecodable; otherwise the subscription counts it as [malformed](Problems::malformed), as by default. Only Kafka calls
    /// it, for records without a key or header that is a parameter.
    fn receive_unnamed(&self, _topic: TopicId, _sample: Sample<'_>, _why: &str) -> bool {
        false
    }

    /// Whether to call [`idle`](Receiver::idle). Queried once for each subscription, since detecting idleness has a
    /// cost on Zenoh.
    fn wants_idle(&self) -> bool {
        false
    }
}

impl<F> Receiver for F
where
    F: Fn(TopicId, &[Sample<'_>]) + Send + Sync + 'static,
{
    fn receive(&self, topic: TopicId, samples: &[Sample<'_>]) {
        self(topic, samples);
    }
}

/// An open subscription. Dropping it closes it.
pub trait Subscription: Send + Sync {
    /// Waits until no sample has arrived for `quiet`, so that samples already buffered between
    /// publisher and subscriber are still received. Returns whether that happened within `limit`.
    fn drain(&self, quiet: Duration, limit: Duration) -> bool;

    /// Ends the subscription and waits until the receiver has returned from its last call. Returns
    /// whether it has within `limit`; it is not called again then. May be called repeatedly, but not
    /// from within the receiver.
    fn close(&self, limit: Duration) -> bool;

    /// Returns the problems counted so far.
    fn problems(&self) -> Problems;

    /// Returns the number of present publishers; `None` where the network does not show it.
    fn publishers(&self) -> Option<u64> {
        None
    }
}

/// Sender of payloads on one topic.
pub trait Publisher: Send + Sync {
    /// Publishes one payload; blocks while the network or a subscriber cannot accept more. A
    /// publisher with batching buffers payloads until they fill a packet or are
    /// [released](Publisher::release).
    ///
    /// # Errors
    /// [`PublishError`]; the payload was not published and will not be.
    fn publish(&self, payload: &[u8]) -> Result<(), PublishError>;

    /// Publishes one payload. Waits at most about `limit`, where [`publish`](Publisher::publish) waits as long as the
    /// settings allow. By default it calls `publish`: on Zenoh a call cannot be interrupted.
    ///
    /// # Errors
    /// [`PublishError`]; a payload refused as [too slow](PublishError::Slow) still belongs to the caller, and is
    /// neither counted nor logged here.
    fn offer(&self, payload: &[u8], limit: Duration) -> Result<(), PublishError> {
        let _ = limit;
        self.publish(payload)
    }

    /// Sends buffered payloads at once. By default there are none.
    fn release(&self) {}

    /// Whether payloads that were accepted wait to be published; never by default.
    fn is_behind(&self) -> bool {
        false
    }

    /// Whether at least one subscriber is known; `true` by default.
    fn is_matched(&self) -> bool {
        true
    }

    /// Waits up to `limit` for a subscriber. Returns whether one is known; `true` by default.
    fn wait_matched(&self, _limit: Duration) -> bool {
        true
    }

    /// Waits until published payloads are delivered: on DDS acknowledged by every reliable reader, on
    /// MQTT and Kafka by the broker, on Zenoh by every subscription of Rondel if they are numbered; other subscriptions
    /// get them when the session is closed. Returns whether that happened within `limit`; `true` by
    /// default, and on Zenoh, where the rest is [unconfirmed](Publisher::unconfirmed).
    fn flush(&self, _limit: Duration) -> bool {
        true
    }

    /// Waits until the payloads published before the call are accepted: on MQTT by the broker. Refused payloads are
    /// counted and not waited for. Returns whether that happened within `limit`.
    ///
    /// By default it [flushes](Publisher::flush) and returns `true`: on DDS, a reader that does not read must not block
    /// the others, and Zenoh has no such acceptance.
    fn settle(&self, limit: Duration) -> bool {
        self.flush(limit);
        true
    }

    /// Returns the number of unconfirmed payloads: on Kafka, on MQTT at quality of service 1 and 2, on DDS if they are [handed
    /// back](Publisher::hand_back), on Zenoh once flushing has ended. After [`Publisher::flush`] they may be lost.
    /// `None` if the number is unknown at present; 0 by default.
    fn unconfirmed(&self) -> Option<u64> {
        Some(0)
    }

    /// Makes the caller the owner of undelivered payloads: [refused](PublishError::Slow) ones are no longer dropped,
    /// counted or logged here, and accepted ones can be visited until they are confirmed.
    fn hand_back(&self) {}

    /// Visits every [unconfirmed](Publisher::unconfirmed) payload, in the order of publication. By default, and while
    /// their number is unknown, there are none.
    fn unconfirmed_payloads(&self, _visit: &mut dyn FnMut(&[u8])) {}

    /// Visits and forgets the unconfirmed payloads that will never be confirmed, because every consumer was lost
    /// without closing: on DDS by an expired lease; elsewhere there are none.
    fn take_abandoned(&self, _visit: &mut dyn FnMut(&[u8])) {}

    /// Whether accepted payloads wait for a consumer that has failed for some time; never by default.
    fn is_stuck(&self) -> bool {
        false
    }

    /// Returns the counter of payloads that did not reach every consumer, which outlives the publisher; `None` if it
    /// drops none.
    fn drops(&self) -> Option<Arc<Drops>> {
        None
    }
}

/// Counter of payloads that a publisher dropped, with the times of the first and the last.
#[derive(Debug, Default)]
pub struct Drops {
    count: AtomicU64,
    /// Nanoseconds since the Unix epoch; 0 before the first.
    first: AtomicI64,
    last: AtomicI64,
}

impl Drops {
    /// Counts payloads that were dropped up to now, the first of them at `since`.
    pub fn add(&self, count: u64, since: Timestamp) {
        if count > 0 {
            // The earliest time stays.
            _ = self.first.compare_exchange(0, since.as_nanos(), Ordering::Relaxed, Ordering::Relaxed);
            self.last.store(now().as_nanos(), Ordering::Relaxed);
            self.count.fetch_add(count, Ordering::Relaxed);
        }
    }

    /// Subtracts payloads that reached their consumer after all.
    pub fn take_back(&self, count: u64) {
        let less = |now: u64| Some(now.saturating_sub(count));
        _ = self.count.fetch_update(Ordering::Relaxed, Ordering::Relaxed, less);
    }

    /// Returns the number of payloads dropped so far.
    pub fn count(&self) -> u64 {
        self.count.load(Ordering::Relaxed)
    }

    /// Returns the times of the first and the last payload dropped, if there was one.
    pub fn span(&self) -> Option<(Timestamp, Timestamp)> {
        let at = |time: &AtomicI64| Timestamp::from_nanos(time.load(Ordering::Relaxed));
        (self.count() > 0).then(|| (at(&self.first), at(&self.last)))
    }
}

/// Counters of problems that do not stop a subscription. The first one of each kind is logged, further
/// ones are only counted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Problems {
    /// Samples that do not have the topic's type, so that no payload could be extracted; on Kafka attempts to fetch records that
    /// cannot be read, and records without the key that the address reads, unless the receiver
    /// [counts](Receiver::receive_unnamed) them.
    pub malformed: u64,
    /// Samples without a payload: a deletion on Zenoh, a message without content on MQTT, a tombstone on Kafka.
    pub empty: u64,
    /// Events of instances on DDS: one was disposed of, or has no publishers any more. They are no messages.
    pub instance_events: u64,
    /// Samples that the network reports as lost or rejected; on Kafka records that expired before they were read.
    pub lost: u64,
    /// Publishers of this topic with another type or an incompatible quality of service, and
    /// subscriptions that a broker refused after a reconnection.
    pub incompatible: u64,
    /// Samples that the network marks as possible duplicates; they are delivered nevertheless.
    pub duplicates: u64,
    /// Broken connections that had to be restored, where the network reports them.
    pub breaks: u64,
    /// Samples of ROS 2 without a readable number and source time; they are delivered nevertheless.
    pub unmarked: u64,
}

impl AddAssign for Problems {
    fn add_assign(&mut self, other: Problems) {
        let Problems { malformed, empty, instance_events, lost, incompatible, duplicates, breaks, unmarked } =
            other;
        self.malformed += malformed;
        self.empty += empty;
        self.instance_events += instance_events;
        self.lost += lost;
        self.incompatible += incompatible;
        self.duplicates += duplicates;
        self.breaks += breaks;
        self.unmarked += unmarked;
    }
}

/// Messages that were missed and fetched again from their publishers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Recovered {
    /// Their number.
    pub count: u64,
    /// Time at which messages were first found missing.
    pub first: Option<Timestamp>,
    /// Time at which the last one was received.
    pub last: Option<Timestamp>,
}

impl Recovered {
    /// Adds messages received now and first missed at this time.
    pub fn add(&mut self, count: u64, from: Timestamp) {
        self.count += count;
        self.first.get_or_insert(from);
        self.last = Some(now());
    }
}

/// A lost connection.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Outage {
    /// The network: `zenoh`, `dds`, `mqtt` or `kafka`.
    pub network: &'static str,
    /// The neighbour or broker, if known.
    pub neighbour: Option<String>,
    /// Time of the loss.
    pub from: Timestamp,
    /// Time of the restoration; `None` while the connection is lost.
    pub until: Option<Timestamp>,
    /// Whether messages may have been missed unnoticed: neither by their numbers nor by [`Receiver::missed`].
    pub carried: bool,
}

/// Error of publishing a payload.
#[derive(Debug, thiserror::Error)]
pub enum PublishError {
    /// The session or participant was closed.
    #[error("the network session is closed")]
    Closed,
    /// No consumer accepted the payload within the wait for slow consumers.
    #[error("a consumer does not accept it in time")]
    Slow,
    /// The network cannot carry the payload, such as a string with a zero byte on DDS.
    #[error("the payload cannot be sent on this network: {0}")]
    Payload(&'static str),
    /// The network reports an error.
    #[error("{0}")]
    Network(String),
}

/// Logs one message at trace level. Costs one atomic load unless that level is on.
#[cfg(any(feature = "dds", feature = "kafka", feature = "mqtt", feature = "zenoh"))]
#[inline(always)]
pub(crate) fn trace_message(event: &'static str, topic: &str, payload: &[u8]) {
    #[cold]
    fn log(event: &'static str, topic: &str, bytes: usize) {
        tracing::trace!(%topic, bytes, "{event} a message");
    }
    if tracing::enabled!(tracing::Level::TRACE) {
        log(event, topic, payload.len());
    }
}

/// Returns the current time in nanoseconds since the Unix epoch.
#[inline]
pub fn now() -> Timestamp {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    Timestamp::from_nanos(i64::try_from(since.as_nanos()).unwrap_or(i64::MAX))
}

/// Waits until `received` has not changed for `quiet`. Returns whether that happened within `limit`.
#[cfg(any(feature = "dds", feature = "kafka", feature = "mqtt", feature = "zenoh"))]
pub(crate) fn wait_quiet(received: impl Fn() -> u64, quiet: Duration, limit: Duration) -> bool {
    use std::time::Instant;
    let deadline = Instant::now() + limit;
    let mut seen = received();
    let mut quiet_since = Instant::now();
    loop {
        let now = Instant::now();
        if now >= quiet_since + quiet {
            return true;
        }
        if now >= deadline {
            return false;
        }
        std::thread::sleep((quiet / 4).min(deadline - now));
        let received = received();
        if received != seen {
            (seen, quiet_since) = (received, Instant::now());
        }
    }
}
