//! The common interface of all networks: samples arrive on the network's own thread, payloads leave
//! through publishers. Both directions block instead of losing a message; publishing blocks for a limited
//! time where a limit is set, and counts what it then drops.

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use rondel_decode::schema::Schema;
use rondel_event::{NameId, Origin, Timestamp, TopicEvent, TopicId, TypeIndex};

/// Something that others can connect or send to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Listener {
    /// The network and the endpoint.
    pub place: String,
    /// Whether what is sent there is encrypted.
    pub encrypted: bool,
    /// Whether those who send there must prove who they are.
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
    arrival: Option<Timestamp>,
}

impl<'a> Sample<'a> {
    /// Creates a sample; without `arrival`, [`Sample::arrival`] reads the clock.
    #[inline]
    pub fn new(payload: &'a [u8], source_time: Option<Timestamp>, arrival: Option<Timestamp>) -> Sample<'a> {
        Sample { payload, source_time, origin: None, name: None, of_type: TypeIndex::default(), arrival }
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

/// A change of a topic that is no sample.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Change<'a> {
    /// A publisher disposed of an instance.
    Disposed(Instance<'a>),
    /// An instance has no publishers any more.
    Unregistered(Instance<'a>),
    /// No sample of an instance came within the deadline of the subscription.
    MissedDeadline(Instance<'a>),
    /// The topic has a publisher that is alive, or none any more.
    Alive(bool),
}

impl Change<'_> {
    /// Returns the event of the topic that the change is, and whether it holds: that a publisher is alive may not.
    pub fn event(&self) -> (TopicEvent, bool) {
        match self {
            Change::Disposed(_) => (TopicEvent::Disposed, true),
            Change::Unregistered(_) => (TopicEvent::Unregistered, true),
            Change::MissedDeadline(_) => (TopicEvent::MissedDeadline, true),
            Change::Alive(is_alive) => (TopicEvent::Alive, *is_alive),
        }
    }
}

impl<'a> Change<'a> {
    /// Returns the instance that changed; none for a change of the topic.
    pub fn instance(&self) -> Option<Instance<'a>> {
        match self {
            Change::Disposed(instance)
            | Change::Unregistered(instance)
            | Change::MissedDeadline(instance) => Some(*instance),
            Change::Alive(_) => None,
        }
    }
}

impl<'a> Instance<'a> {
    /// Returns what names it, and whether that is a whole sample and not the key alone; `None` if nothing does.
    pub fn payload(&self) -> Option<(&'a [u8], bool)> {
        match self {
            Instance::Unnamed => None,
            Instance::Key(key) => Some((key, false)),
            Instance::Sample(sample) => Some((sample, true)),
        }
    }
}

/// An instance of a topic: the samples with one value of the key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Instance<'a> {
    /// The only one of a topic without a key, or one whose key is not known.
    Unnamed,
    /// By its key: the serialised members of it.
    Key(&'a [u8]),
    /// By its last sample.
    Sample(&'a [u8]),
}

/// Consumer of the samples of subscriptions.
///
/// Its methods are called on the network's own thread, so that no message changes threads on its way
/// to a verdict. Blocking here is back-pressure on the publisher (on MQTT, on the broker). Zenoh may
/// call from several threads at once, one for each sending neighbour; the samples of one publisher
/// arrive one after another in the order of publication.
pub trait Receiver: Send + Sync + 'static {
    /// Processes samples of one topic, in order. `samples` is never empty; Zenoh and MQTT pass one
    /// sample, DDS up to 64.
    fn receive(&self, topic: TopicId, samples: &[Sample<'_>]);

    /// Called after [`receive`](Receiver::receive) when no further sample is waiting, and when a
    /// subscription is closed: the time to process a partial batch and to
    /// [release](Publisher::release) publishers. May be called more often than needed; never called
    /// unless [`wants_idle`](Receiver::wants_idle) returns `true`.
    fn idle(&self) {}

    /// Called when messages of a topic may have been missed since a time: as soon as it is known, and once more, with
    /// the time `until` when it was over, before the first message after it. Zenoh calls it only for topics on which
    /// messages come without numbers, DDS and Zenoh only when it is over: before, nobody knows whether a neighbour has
    /// left.
    fn missed(&self, topic: TopicId, from: Timestamp, until: Option<Timestamp>) {
        let _ = (topic, from, until);
    }

    /// Called when something else than a sample came of a topic, in order with its samples. Only DDS calls it.
    fn changed(&self, _topic: TopicId, _change: Change<'_>, _time: Timestamp) {}

    /// Whether the names of the topics on which the messages of a subscription come are to be
    /// [numbered](Receiver::number). Queried once for each subscription.
    fn wants_names(&self, _topic: TopicId) -> bool {
        false
    }

    /// Returns the number of such a name; `None` if its messages are not meant, which are then left out.
    fn number(&self, _topic: TopicId, _name: &str) -> Option<NameId> {
        None
    }

    /// Whether messages are wanted that the process itself publishes. Queried once for each subscription; only Zenoh can leave
    /// them out.
    fn wants_own(&self, _topic: TopicId) -> bool {
        true
    }

    /// Whether samples of publishers that have another definition of the type than the subscription are delivered, each
    /// with [its type](Sample::of_type); otherwise they are only counted. Queried once for each subscription.
    fn wants_types(&self, _topic: TopicId) -> bool {
        false
    }

    /// Returns the type that samples of publishers with this definition have; `None` if they cannot be decoded. `publisher`
    /// names one of them in words. Until the definition is known, samples have the type [`TypeIndex::UNREAD`].
    fn further_type(&self, _topic: TopicId, _publisher: &str, _schema: &Schema) -> Option<TypeIndex> {
        None
    }

    /// Whether [`idle`](Receiver::idle) is to be called. Queried once for each subscription, since
    /// detecting idleness has a cost on Zenoh.
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

    /// Publishes one payload, and waits at most about `limit` where [`publish`](Publisher::publish) waits for as long as
    /// the settings allow. By default it publishes: on Zenoh a call cannot be ended.
    ///
    /// # Errors
    /// [`PublishError`]; a payload that is refused as [too slow](PublishError::Slow) stays the caller's, and is neither
    /// counted nor logged here.
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
    /// MQTT by the broker, on Zenoh by every subscription of Rondel if they are numbered; other subscriptions
    /// get them when the session is closed. Returns whether that happened within `limit`; `true` by
    /// default, and on Zenoh, where the rest is [unconfirmed](Publisher::unconfirmed).
    fn flush(&self, _limit: Duration) -> bool {
        true
    }

    /// Waits until whoever takes the payloads over has taken those that were published before the call: on MQTT the
    /// broker. Payloads that it refuses are counted and not waited for. Returns whether that happened within `limit`.
    ///
    /// By default it [flushes](Publisher::flush) and returns `true`: on DDS a reader that does not read must not hold
    /// up others, and on Zenoh nobody takes payloads over.
    fn settle(&self, limit: Duration) -> bool {
        self.flush(limit);
        true
    }

    /// Returns how many published payloads nobody has confirmed yet, where that is known: on MQTT at quality of service 1
    /// and 2, on DDS if they are [handed back](Publisher::hand_back), on Zenoh once flushing has ended. After [`Publisher::flush`] they may be lost. `None`
    /// where that cannot be said now; 0 by default.
    fn unconfirmed(&self) -> Option<u64> {
        Some(0)
    }

    /// From now on payloads that are not delivered are the caller's, who keeps them: those that are
    /// [refused](PublishError::Slow) are not dropped here, neither counted nor logged as such, and those that were
    /// accepted can be asked for until they are confirmed.
    fn hand_back(&self) {}

    /// Calls a function with every [unconfirmed](Publisher::unconfirmed) payload, in the order of publication. There are
    /// none by default, or where their number cannot be said now.
    fn unconfirmed_payloads(&self, _visit: &mut dyn FnMut(&[u8])) {}

    /// Calls a function with those unconfirmed payloads that nobody will confirm any more, as every consumer has left
    /// without a word, and forgets them. On DDS these are those of a lease that has expired; elsewhere there are none.
    fn take_abandoned(&self, _visit: &mut dyn FnMut(&[u8])) {}

    /// Returns the counter of payloads that did not reach every consumer, which outlives the publisher;
    /// `None` where nothing is dropped.
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
            // Unless an earlier one has set it.
            _ = self.first.compare_exchange(0, since.as_nanos(), Ordering::Relaxed, Ordering::Relaxed);
            self.last.store(now().as_nanos(), Ordering::Relaxed);
            self.count.fetch_add(count, Ordering::Relaxed);
        }
    }

    /// Takes back payloads that reached their consumer after all.
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
    /// Samples that do not have the topic's type, so that no payload could be extracted.
    pub malformed: u64,
    /// Samples without a payload: a deletion on Zenoh, a message without content on MQTT.
    pub empty: u64,
    /// Events of instances on DDS: one was disposed of, or has no publishers any more. They are no messages.
    pub instance_events: u64,
    /// Samples that the network reports as lost or rejected.
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

/// Messages that were missed and fetched again from their publishers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Recovered {
    /// Their number.
    pub count: u64,
    /// When messages were first found to be missing.
    pub first: Option<Timestamp>,
    /// When the last of them was received.
    pub last: Option<Timestamp>,
}

impl Recovered {
    /// Adds messages that were received now, and first missed at this time.
    pub fn add(&mut self, count: u64, from: Timestamp) {
        self.count += count;
        self.first.get_or_insert(from);
        self.last = Some(now());
    }
}

/// A connection that was lost.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Outage {
    /// The network: `zenoh`, `dds` or `mqtt`.
    pub network: &'static str,
    /// The neighbour or broker, if it is known.
    pub neighbour: Option<String>,
    /// When the connection was lost.
    pub from: Timestamp,
    /// When it was restored; `None` while it is not.
    pub until: Option<Timestamp>,
    /// Whether messages may have been missed of which nothing else tells: neither numbers nor
    /// [`Receiver::missed`].
    pub carried: bool,
}

/// Error of publishing a payload.
#[derive(Debug, thiserror::Error)]
pub enum PublishError {
    /// The session or participant was closed.
    #[error("the network session is closed")]
    Closed,
    /// No consumer accepted the payload within the time that a slow consumer is waited for.
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
#[cfg(any(feature = "dds", feature = "mqtt", feature = "zenoh"))]
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
#[cfg(any(feature = "dds", feature = "mqtt", feature = "zenoh"))]
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
