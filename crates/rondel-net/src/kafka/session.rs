//! Sessions with the brokers of a cluster.

use std::ops::ControlFlow;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use rdkafka::consumer::Consumer as _;
use rondel_event::TopicId;

use super::client::{self, unreachable};
use super::dead_letters::DeadLetters;
use super::incoming::Incoming;
use super::outgoing::{Outgoing, Publisher};
use super::positions::{self, Marks};
use super::routes::Route;
use super::subscription::{Counts, Deliver, DeliverTo, Subscription};
use super::watch::Breaks;
use super::{DeclareError, OpenError, Place, Settings};
use crate::adapter::{self, DeadLetterCounts, Outage, PartitionStates, PartitionStatus, Receiver};
use crate::attempts::open_reachable;

/// Time limit of one attempt to reach a broker.
const OPEN: Duration = Duration::from_secs(3);
/// Time of one wait for an answer.
const POLL: Duration = Duration::from_millis(50);
/// Time after which an error of the connection ends an attempt.
const ERROR: Duration = Duration::from_secs(1);
/// Time limit of closing in `Drop`.
const CLOSE_LIMIT: Duration = Duration::from_secs(5);

/// A session with the brokers of a cluster. Lost connections are restored by the client.
///
/// All subscriptions share one client, and all publishers another. Dropping the session closes it.
pub struct Session {
    settings: Settings,
    incoming: Arc<Incoming>,
    outgoing: Mutex<Option<Arc<Outgoing>>>,
    breaks: Arc<Breaks>,
    /// Number of subscriptions made so far.
    subscribed: AtomicU64,
}

impl std::fmt::Debug for Session {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Session").field("settings", &self.settings).finish_non_exhaustive()
    }
}

impl Session {
    /// Connects with a broker.
    ///
    /// # Errors
    /// [`OpenError`]
    pub fn open(settings: &Settings) -> Result<Session, OpenError> {
        Session::start(settings, true)
    }

    /// Opens a session with brokers that cannot be reached yet. Topics are read once they can; records published until
    /// then count as [missed](Receiver::missed), unless a mark of an earlier run states where to go on.
    ///
    /// # Errors
    /// [`OpenError::Setting`]
    pub fn open_later(settings: &Settings) -> Result<Session, OpenError> {
        Session::start(settings, false)
    }

    fn start(settings: &Settings, connects: bool) -> Result<Session, OpenError> {
        settings.check()?;
        let breaks = Arc::<Breaks>::default();
        let consumer = client::create_consumer(settings, &breaks)?;
        if connects {
            let deadline = Instant::now() + OPEN;
            let began = Instant::now();
            // Polling receives the errors of the connection. Nothing is subscribed to, so that no record is polled.
            while consumer.client().fetch_cluster_id(Duration::from_millis(1)).is_none() {
                drop(consumer.poll(POLL));
                let error = consumer.context().watch.last_error();
                if Instant::now() >= deadline || error.is_some() && began.elapsed() >= ERROR {
                    let (brokers, reason) = (settings.place(), unreachable(error.as_ref()));
                    return Err(OpenError::Unreachable { brokers, reason });
                }
            }
            tracing::info!(brokers = %settings.place(), "connected to Kafka");
        }
        let marks = match positions::read(&settings.marks) {
            Some(marks) => marks,
            None => {
                tracing::warn!("the snapshot does not state where to go on in Kafka");
                Marks::default()
            }
        };
        let letters = settings.dead_letters.as_deref();
        let producer = letters.map(|_| Outgoing::open(settings, &breaks)).transpose()?;
        let dead_letters = letters.zip(producer.as_ref());
        let dead_letters =
            dead_letters.map(|(topic, producer)| DeadLetters::new(Arc::clone(producer), topic));
        let incoming = Arc::new(Incoming::new(settings.clone(), consumer, marks, dead_letters));
        incoming.is_reached.store(connects, Ordering::Relaxed);
        let running = Arc::clone(&incoming);
        let thread = std::thread::Builder::new().name("kafka in".to_owned());
        let failed = |error: std::io::Error| OpenError::Setting(format!("cannot start a thread: {error}"));
        thread.spawn(move || running.run()).map_err(failed)?;
        let (outgoing, subscribed) = (Mutex::new(producer), AtomicU64::new(0));
        Ok(Session { settings: settings.clone(), incoming, outgoing, breaks, subscribed })
    }

    /// Connects with a broker and retries while none answers. `waiting` is called about once a second with the reason
    /// and returns whether to continue.
    ///
    /// # Errors
    /// [`OpenError`]; [`OpenError::Unreachable`] when `waiting` returned `Break`.
    pub fn open_connected(
        settings: &Settings,
        waiting: impl FnMut(&OpenError) -> ControlFlow<()>,
    ) -> Result<Session, OpenError> {
        let is_unreachable = |error: &OpenError| matches!(error, OpenError::Unreachable { .. });
        open_reachable(|| Session::open(settings), is_unreachable, waiting)
    }

    /// Subscribes to `TOPIC`, or to the records of `TOPIC/KEY`. `receiver` gets them with the id `topic` until the
    /// subscription is closed or dropped. If the key has parameters, the receiver numbers `TOPIC/KEY` of each record.
    ///
    /// # Errors
    /// [`DeclareError`]
    pub fn subscribe<R: Receiver + ?Sized>(
        &self,
        place: &str,
        topic: TopicId,
        receiver: Arc<R>,
    ) -> Result<Box<dyn adapter::Subscription>, DeclareError> {
        let place = Place::parse(place)?;
        self.declare(place, topic, Box::new(DeliverTo::new(topic, receiver)))
    }

    fn declare(
        &self,
        place: Place,
        topic: TopicId,
        deliver: Box<dyn Deliver>,
    ) -> Result<Box<dyn adapter::Subscription>, DeclareError> {
        let counts = Arc::<Counts>::default();
        let route = Route::new(place, topic, deliver, Arc::clone(&counts));
        let key = self.incoming.subscribe(route).map_err(DeclareError::Network)?;
        let is_first = self.subscribed.fetch_add(1, Ordering::Relaxed) == 0;
        let breaks = is_first.then(|| Arc::clone(&self.breaks));
        let incoming = Arc::clone(&self.incoming);
        Ok(Box::new(Subscription { incoming, key: Mutex::new(Some(key)), counts, breaks }))
    }

    /// Calls `observer` with every record of the topics that match a pattern with `*` and `?`. Topics that begin with two
    /// underscores are those of the brokers: only a pattern that begins so matches them.
    #[cfg(all(feature = "dds", feature = "mqtt", feature = "zenoh"))]
    pub(crate) fn observe(
        &self,
        pattern: &str,
        observer: &crate::observe::Observer,
    ) -> Result<Vec<Box<dyn adapter::Subscription>>, DeclareError> {
        let topics = if pattern.contains(['*', '?']) {
            let metadata = self.incoming.consumer.client().fetch_metadata(None, OPEN);
            let metadata = metadata.map_err(|error| {
                DeclareError::Network(format!("cannot list the topics of Kafka: {error}"))
            })?;
            let mut names: Vec<String> =
                metadata.topics().iter().map(|topic| topic.name().to_owned()).collect();
            names.sort_unstable();
            names.retain(|name| {
                let is_own = name.starts_with("__") && !pattern.starts_with("__");
                !is_own && crate::dds::fits(pattern, name)
            });
            if names.len() > OBSERVED {
                tracing::warn!("only {OBSERVED} of {} topics of Kafka are observed", names.len());
                names.truncate(OBSERVED);
            }
            names
        } else {
            vec![pattern.to_owned()]
        };
        let one = |topic: String| {
            let deliver = super::subscription::DeliverObserved(Arc::clone(observer));
            self.declare(Place::parse(&topic)?, TopicId(0), Box::new(deliver))
        };
        topics.into_iter().map(one).collect()
    }

    /// Creates a publisher on `TOPIC`, with the key of `TOPIC/KEY`. Without a key, a verdict has its id as its key, and
    /// other messages have none.
    ///
    /// # Errors
    /// [`DeclareError`]
    pub fn publisher(&self, place: &str) -> Result<Box<dyn adapter::Publisher>, DeclareError> {
        let place = Place::parse(place)?;
        let mut outgoing = lock(&self.outgoing);
        let producer = match &*outgoing {
            Some(producer) => Arc::clone(producer),
            None => {
                let made = Outgoing::open(&self.settings, &self.breaks);
                Arc::clone(outgoing.insert(made.map_err(|error| DeclareError::Network(error.to_string()))?))
            }
        };
        Ok(Box::new(Publisher::new(producer, place)))
    }

    /// Declares that all subscriptions exist. If records wait for that, they are read from now on.
    pub fn begin(&self) {
        self.incoming.begin();
    }

    /// Delivers no further record until [`resume`](Session::resume): they stay with the brokers.
    pub fn pause(&self) {
        self.incoming.pause();
    }

    /// Ends a pause.
    pub fn resume(&self) {
        self.incoming.resume();
    }

    /// Sets the states of the partitions that the member of a group receives, before [`begin`](Session::begin).
    pub fn divide(&self, states: Arc<dyn PartitionStates>) {
        self.incoming.divide(states);
    }

    /// Returns the partitions that the member of a group has.
    pub fn partitions(&self) -> Vec<PartitionStatus> {
        match &self.settings.group {
            Some(_) => self.incoming.partition_status(),
            None => Vec::new(),
        }
    }

    /// Calls `capture` with marks by which the next run goes on behind the records received so far, while none is
    /// received. Returns its result.
    pub fn freeze<T>(&self, capture: impl FnOnce(Vec<u8>) -> T) -> T {
        self.incoming.freeze(capture)
    }

    /// Whether the last [`freeze`](Session::freeze) may become durable: the brokers have acknowledged the records before it
    /// that cannot be decoded.
    pub fn is_settled(&self) -> bool {
        self.incoming.is_settled.load(Ordering::Relaxed)
    }

    /// Waits up to `limit` until the records that cannot be decoded are written to their topic. Returns their numbers; `None`
    /// if they are not kept.
    pub fn dead_letters(&self, limit: Duration) -> Option<DeadLetterCounts> {
        self.incoming.dead_letters.as_ref().map(|letters| letters.counts(limit))
    }

    /// Records that the result of the last [`freeze`](Session::freeze) is durable. If records wait for that, topics whose
    /// first mark is in it are read from now on: a crash before would lose what was received.
    pub fn release(&self) {
        self.incoming.release();
    }

    /// Whether topics wait for [`Session::release`].
    pub fn awaits_snapshot(&self) -> bool {
        self.incoming.awaits_snapshot()
    }

    /// Whether a mark of an earlier run states where reading a topic goes on. Known until the subscription.
    pub fn kept(&self, place: &str) -> bool {
        self.incoming.has_marks(super::without_key(place))
    }

    /// Whether no broker was reached so far.
    pub fn is_awaited(&self) -> bool {
        !self.incoming.is_reached.load(Ordering::Relaxed)
    }

    /// Whether records wait at brokers that cannot be reached, or were not received since: silence proves nothing then.
    pub fn is_unsure(&self) -> bool {
        self.incoming.is_behind.load(Ordering::Relaxed) || self.incoming.consumer.context().watch.is_lost()
    }

    /// Returns the number of published messages that the brokers refused.
    pub fn refused(&self) -> u64 {
        let outgoing = lock(&self.outgoing);
        outgoing.as_ref().map_or(0, |outgoing| outgoing.flights.refused.load(Ordering::Relaxed))
    }

    /// Returns the connections lost and restored so far.
    pub fn outages(&self) -> Vec<Outage> {
        self.breaks.outages()
    }

    /// Ends the waits of publishers; nothing more is published.
    pub fn wake(&self) {
        if let Some(outgoing) = &*lock(&self.outgoing) {
            outgoing.wake();
        }
    }

    /// Closes the session after the published messages are delivered. Returns whether all were, and whether all threads
    /// have ended, within `limit`.
    pub fn close_within(&self, limit: Duration) -> bool {
        let deadline = Instant::now() + limit;
        let outgoing = lock(&self.outgoing).take();
        let is_delivered = outgoing.is_none_or(|outgoing| outgoing.close(limit));
        let left = deadline.saturating_duration_since(Instant::now()).max(POLL * 10);
        self.incoming.close(left) && is_delivered
    }
}

/// Maximum number of topics that are observed.
#[cfg(all(feature = "dds", feature = "mqtt", feature = "zenoh"))]
const OBSERVED: usize = 256;

impl Drop for Session {
    fn drop(&mut self) {
        self.close_within(CLOSE_LIMIT);
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
