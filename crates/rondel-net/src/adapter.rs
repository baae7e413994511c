//! What every network looks like from the inside of Rondel: samples come in on the network's own
//! thread, payloads go out, and everything blocks instead of losing a message.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use rondel_event::{Origin, Timestamp, TopicId};

/// One sample as a source received it: bytes, not yet decoded.
#[derive(Clone, Copy, Debug)]
pub struct Sample<'a> {
    /// The payload, borrowed from the network's own buffer.
    pub payload: &'a [u8],
    /// When the sender published it, in nanoseconds since the Unix epoch, where the network says so.
    pub source_time: Option<Timestamp>,
    /// Which message of which publisher it is, where the publisher says so: on Zenoh by its source
    /// information. DDS has such numbers, but CycloneDDS does not hand them on.
    pub origin: Option<Origin>,
    arrival: Option<Timestamp>,
}

impl<'a> Sample<'a> {
    /// A sample; without an arrival, it has arrived when it is asked.
    #[inline]
    pub fn new(payload: &'a [u8], source_time: Option<Timestamp>, arrival: Option<Timestamp>) -> Sample<'a> {
        Sample { payload, source_time, origin: None, arrival }
    }

    /// The same, of this origin.
    #[inline]
    pub fn with_origin(self, origin: Option<Origin>) -> Sample<'a> {
        Sample { origin, ..self }
    }

    /// The same, with this in the place of its payload.
    #[inline]
    pub(crate) fn with_payload<'b>(self, payload: &'b [u8]) -> Sample<'b> {
        Sample { payload, ..self }
    }

    /// When it was received here, where the network hands that over.
    #[inline]
    pub fn known_arrival(&self) -> Option<Timestamp> {
        self.arrival
    }

    /// When it was received here, in nanoseconds since the Unix epoch: the same for all samples that
    /// are handed over together. Where one is handed over by itself, as on Zenoh, the clock is read
    /// only here: that is a good part of what receiving a small message costs, and not everyone needs
    /// it. So ask once.
    #[inline]
    pub fn arrival(&self) -> Timestamp {
        self.arrival.unwrap_or_else(now)
    }
}

/// What a source hands its samples to.
///
/// Called on the network's own thread: nothing is handed from thread to thread on the way to a
/// verdict. To block in here is back-pressure, and the publisher feels it (on MQTT, the broker). On Zenoh
/// it may be called from several threads at once (one for each neighbour that sends); the samples of one
/// publisher come one after another, in the order in which they were published.
pub trait Receiver: Send + Sync + 'static {
    /// Takes samples of one topic, in order. Never empty; Zenoh hands over one at a time, DDS up to
    /// 64 that came together.
    fn receive(&self, topic: TopicId, samples: &[Sample<'_>]);

    /// Called after [`receive`](Receiver::receive) when nothing more is waiting, so that now is the
    /// time to finish what was put off for a whole batch, and to let go what publishers hold back
    /// ([`Publisher::release`]). Also called when a subscription is closed; maybe more often than
    /// needed, never less, for receivers that say so in [`wants_idle`](Receiver::wants_idle).
    fn idle(&self) {}

    /// Whether [`idle`](Receiver::idle) does anything. Asked once; on Zenoh, to find out when nothing
    /// is waiting costs something.
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
    /// Waits until nothing more has come in for `quiet`, so that what already lies in the buffers
    /// between publisher and subscriber is still received; at most `limit`. Whether it became quiet.
    fn drain(&self, quiet: Duration, limit: Duration) -> bool;

    /// Ends the subscription and waits, at most `limit`, until the receiver has returned from its
    /// last sample. Whether it has; from then on it is not called again. Repeating it is harmless.
    /// Not to be called from within the receiver.
    fn close(&self, limit: Duration) -> bool;

    /// What went wrong so far.
    fn problems(&self) -> Problems;
}

/// Where a sink puts its payloads.
pub trait Publisher: Send + Sync {
    /// Publishes one payload; blocks while the network or a subscriber cannot take more. A publisher
    /// that was set to do so holds payloads back until they fill a packet or are
    /// [released](Publisher::release).
    ///
    /// # Errors
    /// When the payload was not published and will not be.
    fn publish(&self, payload: &[u8]) -> Result<(), PublishError>;

    /// Sends what is held back, at once. Without more, nothing is.
    fn release(&self) {}

    /// Whether at least one subscriber is known. Without more, one always is.
    fn is_matched(&self) -> bool {
        true
    }

    /// Waits until a subscriber is known, at most `limit`. Whether one is. Without more, one always is.
    fn wait_matched(&self, _limit: Duration) -> bool {
        true
    }

    /// Waits, at most `limit`, until what was published has left: on DDS until every reliable reader
    /// has acknowledged it, on MQTT until the broker has; Zenoh has no acknowledgement and flushes when
    /// its session is closed.
    /// Whether it has. Without more, it has when it is published.
    fn flush(&self, _limit: Duration) -> bool {
        true
    }
}

/// Things that went wrong on a subscription without stopping it. The first of each kind is also
/// logged as a warning; after that they are only counted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Problems {
    /// Samples that are not what the topic's type says, so that no payload could be taken from them.
    pub malformed: u64,
    /// Samples without a payload (a deletion, a disposed instance): nothing to check in them.
    pub empty: u64,
    /// Samples that the network reports as lost or rejected.
    pub lost: u64,
    /// Publishers of this topic that cannot be received: another type or an incompatible quality of
    /// service; subscriptions that a broker refuses after a break.
    pub incompatible: u64,
    /// Samples that the network says it may have delivered before. They are handed over all the same.
    pub duplicates: u64,
    /// How often a connection broke and had to be made again, where the network tells.
    pub breaks: u64,
}

/// Why a payload was not published.
#[derive(Debug, thiserror::Error)]
pub enum PublishError {
    /// The session or participant was closed.
    #[error("closed")]
    Closed,
    /// The payload cannot be carried: on DDS a string that contains a zero byte or is longer than
    /// 4 GiB.
    #[error("payload cannot be carried by this network: {0}")]
    Payload(&'static str),
    /// The network says so.
    #[error("{0}")]
    Network(String),
}

/// The time now, in nanoseconds since the Unix epoch.
#[inline]
pub fn now() -> Timestamp {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    Timestamp::from_nanos(i64::try_from(since.as_nanos()).unwrap_or(i64::MAX))
}

/// Waits, at most `limit`, until `received` has not changed for `quiet`. Whether that happened.
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
