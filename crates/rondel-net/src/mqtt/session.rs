use std::collections::hash_map::RandomState;
use std::hash::{BuildHasher as _, Hasher as _};
use std::ops::ControlFlow;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use rondel_event::TopicId;

use super::connection::{Connection, Role};
use super::{
    DeclareError, OpenError, Publisher, PublisherSettings, Settings, Subscription, SubscriptionSettings,
    check_filter, check_topic,
};
use crate::adapter::Receiver;

/// How often a broker that does not answer is tried again.
const RETRY: Duration = Duration::from_secs(1);
/// How long closing may take.
const CLOSE_LIMIT: Duration = Duration::from_secs(5);

/// A client of a broker. Connections that break are made again by themselves, and subscriptions and
/// publishers go on.
///
/// All subscriptions share a connection, so that the order of their messages is the broker's; only
/// those whose filters meet have one each. All publishers share another one. Dropping the session
/// closes it.
pub struct Session {
    settings: Arc<Settings>,
    client: String,
    incoming: Mutex<Vec<Arc<Connection>>>,
    outgoing: Mutex<Option<Arc<Connection>>>,
    breaks: Arc<AtomicU64>,
    /// How many subscriptions there were.
    subscribed: AtomicU64,
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
    /// As [`OpenError`] says.
    pub fn open(settings: &Settings) -> Result<Session, OpenError> {
        settings.check()?;
        let client = settings.client_id.clone().unwrap_or_else(|| {
            // As random as the seed that the standard library asks the system for.
            let random = RandomState::new().build_hasher().finish() as u32;
            format!("rondel-{random:08x}")
        });
        let (settings, breaks) = (Arc::new(settings.clone()), Arc::new(AtomicU64::new(0)));
        let first = Connection::open(
            Arc::clone(&settings),
            client.clone(),
            Role::Subscriptions,
            Arc::clone(&breaks),
        )?;
        Ok(Session {
            settings,
            client,
            incoming: Mutex::new(vec![first]),
            outgoing: Mutex::new(None),
            breaks,
            subscribed: AtomicU64::new(0),
        })
    }

    /// Connects with the broker as soon as it answers. About once a second without success `waiting`
    /// is told why and says whether to go on.
    ///
    /// # Errors
    /// As [`OpenError`] says; [`OpenError::Unreachable`] when `waiting` has given up.
    pub fn open_connected(
        settings: &Settings,
        mut waiting: impl FnMut(&OpenError) -> ControlFlow<()>,
    ) -> Result<Session, OpenError> {
        loop {
            let started = Instant::now();
            match Session::open(settings) {
                Err(e @ OpenError::Unreachable { .. }) => {
                    if waiting(&e).is_break() {
                        return Err(e);
                    }
                    // A refused connection fails at once; do not turn that into a busy loop.
                    std::thread::sleep(RETRY.saturating_sub(started.elapsed()));
                }
                opened => return opened,
            }
        }
    }

    /// Subscribes to a filter. Messages go to `receiver`, under the name `topic`, until the subscription
    /// is closed or dropped.
    ///
    /// # Errors
    /// As [`DeclareError`] says.
    pub fn subscribe<R: Receiver + ?Sized>(
        &self,
        filter: &str,
        settings: SubscriptionSettings,
        topic: TopicId,
        receiver: Arc<R>,
    ) -> Result<Subscription, DeclareError> {
        check_filter(filter)?;
        let connection = self.apart(filter).map_err(|e| DeclareError::Network(e.to_string()))?;
        let breaks = (self.subscribed.fetch_add(1, Ordering::Relaxed) == 0).then(|| Arc::clone(&self.breaks));
        let qos = settings.qos.unwrap_or(self.settings.qos);
        Subscription::declare(connection, (filter, qos), settings, topic, receiver, breaks)
    }

    /// A connection without a subscription that this one could be mistaken for.
    fn apart(&self, filter: &str) -> Result<Arc<Connection>, OpenError> {
        let mut incoming = lock(&self.incoming);
        if let Some(connection) = incoming.iter().find(|connection| !connection.meets(filter)) {
            return Ok(Arc::clone(connection));
        }
        let client = format!("{}-{}", self.client, incoming.len() + 1);
        let connection = self.connect(client, Role::Subscriptions)?;
        incoming.push(Arc::clone(&connection));
        Ok(connection)
    }

    fn connect(&self, client: String, role: Role) -> Result<Arc<Connection>, OpenError> {
        Connection::open(Arc::clone(&self.settings), client, role, Arc::clone(&self.breaks))
    }

    /// Makes a publisher on a topic.
    ///
    /// # Errors
    /// As [`DeclareError`] says.
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
        Ok(Publisher {
            connection,
            topic: topic.to_owned(),
            qos: settings.qos.unwrap_or(self.settings.qos),
            retain: settings.retain,
            batching: settings.batching,
        })
    }

    /// How often a connection broke so far.
    pub fn breaks(&self) -> u64 {
        self.breaks.load(Ordering::Relaxed)
    }

    /// Lets nothing more be published, sends what is held back, waits until the broker has it, and takes
    /// leave. Takes at most `limit`; whether that was enough. Close subscriptions first. Repeating it is
    /// harmless.
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

    /// Wakes publishers that wait for the broker; they publish nothing more.
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
