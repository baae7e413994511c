//! Sessions with a broker.

use std::collections::hash_map::RandomState;
use std::hash::{BuildHasher as _, Hasher as _};
use std::ops::ControlFlow;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use rondel_event::{Timestamp, TopicId};

use super::connection::{Connection, Role};
use super::held::{self, Holding};
use super::{
    DeclareError, OpenError, Publisher, PublisherSettings, Qos, Settings, Subscription, SubscriptionSettings,
    check_filter, check_topic,
};
use crate::adapter::{Outage, Receiver};
use crate::attempts::{lock_until, open_reachable};

/// Time limit of reading the counters of a connection.
const POLL_LIMIT: Duration = Duration::from_millis(100);
/// Time limit of closing in `Drop`.
const CLOSE_LIMIT: Duration = Duration::from_secs(5);

/// A client session with a broker. Broken connections are restored automatically, with their
/// subscriptions and publishers.
///
/// All subscriptions share one connection, which preserves the broker's order of messages, except that
/// overlapping filters get a connection each. All publishers share another connection. Dropping the
/// session closes it.
pub struct Session {
    settings: Arc<Settings>,
    client: String,
    incoming: Mutex<Vec<Arc<Connection>>>,
    outgoing: Mutex<Option<Arc<Connection>>>,
    breaks: Arc<Breaks>,
    /// State of held-back acknowledgements, if they are held back.
    holding: Option<Arc<Holding>>,
    /// Number of subscriptions made so far.
    subscribed: AtomicU64,
    /// Whether the session waits in the background for a broker that cannot be reached.
    waits_later: bool,
}

/// Acknowledgements that are held back.
#[derive(Default)]
pub struct Acknowledgements(Vec<(Arc<Connection>, u64)>);

/// Broken connections of a session.
#[derive(Debug, Default)]
pub(super) struct Breaks {
    pub(super) count: AtomicU64,
    outages: Mutex<Vec<Outage>>,
}

impl Breaks {
    /// Adds a connection that broke, or that was restored.
    pub(super) fn add(&self, broker: &str, from: Timestamp, until: Option<Timestamp>) {
        let mut outages = lock(&self.outages);
        let is_it = |outage: &&mut Outage| {
            (outage.from, outage.until) == (from, None) && outage.neighbour.as_deref() == Some(broker)
        };
        if let Some(open) = outages.iter_mut().find(is_it) {
            open.until = until;
        } else if outages.len() < 1024 {
            let neighbour = Some(broker.to_owned());
            // The receivers are informed.
            outages.push(Outage { network: "mqtt", neighbour, from, until, carried: false });
        }
    }
}

impl std::fmt::Debug for Session {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Session").field("client", &self.client).finish_non_exhaustive()
    }
}

impl Session {
    /// Connects with the broker.
    ///
    /// # Errors
    /// [`OpenError`]
    pub fn open(settings: &Settings) -> Result<Session, OpenError> {
        Session::start(settings, false)
    }

    /// Opens a session with a broker that cannot be reached yet. It connects as soon as it can; until then subscriptions
    /// count everything as [missed](Receiver::missed), and publishers wait as in an outage.
    ///
    /// # Errors
    /// [`OpenError::Setting`], also if acknowledgements are to be held back: whether the broker kept messages for this
    /// session must be known first.
    pub fn open_later(settings: &Settings) -> Result<Session, OpenError> {
        if settings.hold.is_some() {
            let text = "acknowledgements are only held back with a broker that can be reached";
            return Err(OpenError::Setting(text.to_owned()));
        }
        Session::start(settings, true)
    }

    fn start(settings: &Settings, waits_later: bool) -> Result<Session, OpenError> {
        settings.check()?;
        let client = settings.client_id.clone().unwrap_or_else(|| {
            // `RandomState` is seeded by the operating system.
            let random = RandomState::new().build_hasher().finish() as u32;
            format!("rondel-{random:08x}")
        });
        let holding = settings.hold.as_deref().map(|marks| Arc::new(Holding::new(marks)));
        let session = Session {
            settings: Arc::new(settings.clone()),
            client,
            incoming: Mutex::default(),
            outgoing: Mutex::new(None),
            breaks: Arc::default(),
            holding,
            subscribed: AtomicU64::new(0),
            waits_later,
        };
        let first = session.connect(session.client.clone(), Role::Subscriptions)?;
        lock(&session.incoming).push(first);
        Ok(session)
    }

    /// Connects with the broker and retries while it does not answer. `waiting` is called about once a
    /// second with the reason and returns whether to continue.
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

    /// Subscribes to a topic filter. `receiver` gets the messages with the id `topic` until the
    /// subscription is closed or dropped.
    ///
    /// # Errors
    /// [`DeclareError`]
    pub fn subscribe<R: Receiver + ?Sized>(
        &self,
        filter: &str,
        settings: SubscriptionSettings,
        topic: TopicId,
        receiver: Arc<R>,
    ) -> Result<Subscription, DeclareError> {
        check_filter(filter)?;
        let connection = self.connection_for(filter).map_err(|e| DeclareError::Network(e.to_string()))?;
        let breaks = (self.subscribed.fetch_add(1, Ordering::Relaxed) == 0).then(|| Arc::clone(&self.breaks));
        let qos = settings.qos.unwrap_or(self.settings.qos);
        Subscription::declare(connection, filter, qos, settings, topic, receiver, breaks)
    }

    /// Calls `observer` with every message on the topics that match a filter.
    #[cfg(all(feature = "dds", feature = "zenoh"))]
    pub(crate) fn observe(
        &self,
        filter: &str,
        observer: crate::observe::Observer,
    ) -> Result<Subscription, DeclareError> {
        check_filter(filter)?;
        let connection = self.connection_for(filter).map_err(|e| DeclareError::Network(e.to_string()))?;
        Subscription::observe(connection, filter, self.settings.qos, observer)
    }

    /// Returns a connection without a subscription that overlaps `filter`: brokers do not state the subscription of a
    /// message, and MQTT 3.1.1 allows them to send it only once.
    fn connection_for(&self, filter: &str) -> Result<Arc<Connection>, OpenError> {
        let mut incoming = lock(&self.incoming);
        if let Some(connection) = incoming.iter().find(|connection| !connection.overlaps(filter)) {
            return Ok(Arc::clone(connection));
        }
        let client = format!("{}-{}", self.client, incoming.len() + 1);
        tracing::debug!(
            topic = %filter, %client,
            "the filter overlaps another subscription; opening a further connection for it"
        );
        let connection = self.connect(client, Role::Subscriptions)?;
        incoming.push(Arc::clone(&connection));
        Ok(connection)
    }

    fn connect(&self, client: String, role: Role) -> Result<Arc<Connection>, OpenError> {
        let (settings, breaks) = (Arc::clone(&self.settings), Arc::clone(&self.breaks));
        let opened = Connection::open(
            Arc::clone(&settings),
            client.clone(),
            role,
            Arc::clone(&breaks),
            self.holding.as_ref(),
        );
        match opened {
            Err(OpenError::Unreachable { .. }) if self.waits_later => {
                Connection::open_later(settings, client, role, breaks)
            }
            opened => opened,
        }
    }

    /// Creates a publisher on a topic.
    ///
    /// # Errors
    /// [`DeclareError`]
    pub fn publisher(&self, topic: &str, settings: &PublisherSettings) -> Result<Publisher, DeclareError> {
        check_topic(topic)?;
        let mut outgoing = lock(&self.outgoing);
        let connection = match &*outgoing {
            Some(connection) => Arc::clone(connection),
            None => {
                let made = self.connect(format!("{}-out", self.client), Role::Publishers);
                let made = made.map_err(|e| DeclareError::Network(e.to_string()))?;
                Arc::clone(outgoing.insert(made))
            }
        };
        let (qos, PublisherSettings { retain, batching, .. }) =
            (settings.qos.unwrap_or(self.settings.qos), *settings);
        tracing::debug!(%topic, qos = qos as u8, retain, batching, client = %connection.client, "publisher created");
        let maximum_qos = connection.out().allowed.maximum_qos;
        if maximum_qos < qos {
            tracing::warn!(
                %topic,
                "the broker supports publishing up to QoS {} only, not QoS {}; continuing with QoS {}",
                maximum_qos as u8, qos as u8, maximum_qos as u8
            );
        }
        let topic = topic.to_owned();
        let (drops, hands_back) = Default::default();
        Ok(Publisher { connection, topic, qos, retain, batching, drops, hands_back })
    }

    /// Whether the broker kept messages published at this quality of service since the client last left.
    pub fn kept(&self, settings: SubscriptionSettings) -> bool {
        let qos = settings.qos.unwrap_or(self.settings.qos);
        qos > Qos::AtMostOnce && lock(&self.incoming).iter().all(|connection| connection.was_kept)
    }

    /// Whether the broker has not been reached so far.
    pub fn is_awaited(&self) -> bool {
        lock(&self.incoming).iter().chain(&*lock(&self.outgoing)).any(|connection| connection.is_awaited())
    }

    /// Returns the number of broken connections so far.
    pub fn breaks(&self) -> u64 {
        self.breaks.count.load(Ordering::Relaxed)
    }

    /// Returns the outages of connections; at most 1,024 are remembered.
    pub fn outages(&self) -> Vec<Outage> {
        lock(&self.breaks.outages).clone()
    }

    /// Returns the number of published messages refused by the broker so far, in its acknowledgements.
    pub fn refused(&self) -> u64 {
        // A publisher that blocks holds the lock.
        let counted = |connection: &Arc<Connection>| {
            lock_until(&connection.out, Instant::now() + POLL_LIMIT).map_or(0, |out| out.refused)
        };
        lock(&self.outgoing).as_ref().map_or(0, counted)
    }

    /// Returns the reason why a connection was given up, if one was: another client uses the same client id.
    pub fn failure(&self) -> Option<String> {
        let outgoing = lock(&self.outgoing);
        let incoming = lock(&self.incoming);
        incoming.iter().chain(&*outgoing).find_map(|connection| connection.failure()).map(str::to_owned)
    }

    /// Declares that all subscriptions exist: if acknowledgements are held back, messages wait until then, so that
    /// those of several topics keep their order.
    pub fn begin(&self) {
        let connections = lock(&self.incoming).clone();
        connections.iter().for_each(|connection| connection.begin());
    }

    /// Whether acknowledgements are held back.
    pub fn holds(&self) -> bool {
        self.holding.is_some()
    }

    /// Waits up to `limit`, or until the broker may stop sending because too many acknowledgements are held back.
    /// Returns whether any is.
    pub fn wait_held(&self, limit: Duration) -> bool {
        let Some(holding) = &self.holding else { return false };
        holding.wait(limit);
        let waits = |c: &Arc<Connection>| c.routes().held.as_ref().is_some_and(held::Held::is_waiting);
        lock(&self.incoming).clone().iter().any(waits)
    }

    /// Ends a [wait](Session::wait_held) of another thread, now or when it begins to wait.
    pub fn wake_held(&self) {
        if let Some(holding) = &self.holding {
            holding.wake();
        }
    }

    /// Calls `capture` with the marks of all messages received so far, while none is received. Returns its result, and
    /// the acknowledgements of these messages, to [release](Session::release) once it is durable.
    pub fn freeze<T>(&self, capture: impl FnOnce(Vec<u8>) -> T) -> (T, Acknowledgements) {
        let connections = lock(&self.incoming).clone();
        let Some(holding) = &self.holding else { return (capture(Vec::new()), Acknowledgements::default()) };
        let (captured, cut) = holding.freeze(&connections, capture);
        (captured, Acknowledgements(cut))
    }

    /// Sends acknowledgements that were held back, and waits up to `limit` until the broker has read them.
    pub fn release(&self, acknowledgements: &Acknowledgements, limit: Duration) {
        held::release(&acknowledgements.0);
        if !limit.is_zero() {
            held::settle(&acknowledgements.0, limit);
        }
    }

    /// Stops publishing, sends buffered messages, waits for their acknowledgement, and disconnects.
    /// Returns whether that was done within `limit`. Close subscriptions first. May be called repeatedly.
    pub fn close_within(&self, limit: Duration) -> bool {
        let deadline = Instant::now() + limit;
        let left = || deadline.saturating_duration_since(Instant::now());
        let outgoing = lock(&self.outgoing).clone();
        let mut closed = outgoing.is_none_or(|connection| connection.close(left()));
        for connection in lock(&self.incoming).iter() {
            closed &= connection.close(left());
        }
        closed
    }

    /// Wakes publishers that wait for the broker; they return [`PublishError::Closed`].
    ///
    /// [`PublishError::Closed`]: crate::adapter::PublishError::Closed
    pub fn wake(&self) {
        if let Some(connection) = &*lock(&self.outgoing) {
            connection.close(Duration::ZERO);
        }
    }
}

impl Drop for Session {
    fn drop(&mut self) {
        self.close_within(CLOSE_LIMIT);
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
