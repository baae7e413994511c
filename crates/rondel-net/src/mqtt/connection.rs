//! A connection with a broker that reconnects automatically.

mod reading;
mod reconnecting;

use std::sync::atomic::{AtomicBool, AtomicI64, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, OnceLock, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use rondel_event::Timestamp;

use super::held::{self, Held, Holding};
use super::incoming::{RouteEntry, Routes};
use super::link::{Inbox, Link};
use super::outgoing::Outgoing;
use super::packet::{self, ConnAck};
use super::session::Breaks;
use super::{OpenError, Settings, Version};
use crate::adapter::now;
use crate::attempts::lock_until;

/// Purpose of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Role {
    Subscriptions,
    Publishers,
}

impl Role {
    /// Returns the name of the role in log lines.
    fn as_str(self) -> &'static str {
        match self {
            Role::Subscriptions => "subscriptions",
            Role::Publishers => "publishers",
        }
    }
}

/// A connection with a broker, shared by all its subscriptions or by all publishers.
pub(super) struct Connection {
    pub(super) settings: Arc<Settings>,
    role: Role,
    pub(super) client: String,
    /// Held while receivers are called. If both locks are needed, this one is taken before `out`.
    pub(super) routes: Mutex<Routes>,
    /// Taken shortly before `routes` by the reading thread, and by threads that need `routes` soon.
    pub(super) gate: Mutex<()>,
    pub(super) out: Mutex<Outgoing>,
    pub(super) changed: Condvar,
    pub(super) tick: Condvar,
    /// The same link as in `out`, so that it can be cut while a writer holds that lock.
    link: Mutex<Option<Arc<Link>>>,
    closing: AtomicBool,
    breaks: Arc<Breaks>,
    /// Whether the broker ended this link because another client took over the session.
    pub(super) taken_over: AtomicBool,
    /// Whether the broker had kept the session when the connection was first opened.
    pub(super) was_kept: bool,
    /// Reason why the connection was given up.
    failure: OnceLock<String>,
    /// Time of the last bytes from the broker, in nanoseconds since the Unix epoch.
    last_received: AtomicI64,
    /// Time since which the connection is needed, until it is opened for the first time.
    wanted_since: Mutex<Option<Timestamp>>,
}

/// The first link of a connection, with the bytes received on it.
type First = Option<(Arc<Link>, Inbox)>;

impl Connection {
    /// Connects and starts the threads of the connection.
    pub(super) fn open(
        settings: Arc<Settings>,
        client: String,
        role: Role,
        breaks: Arc<Breaks>,
        holding: Option<&Arc<Holding>>,
    ) -> Result<Arc<Connection>, OpenError> {
        let clean = settings.clean_start || role == Role::Publishers;
        let (link, inbox, allowed) = Link::open(&settings, &client, clean)?;
        // The session's first connection carries subscriptions, if there will be any.
        let carries = (role == Role::Publishers).then_some(role.as_str());
        tracing::info!(
            broker = %settings.broker, %client, role = carries, session_present = allowed.session_present,
            "connected to the MQTT broker"
        );
        tracing::debug!(
            broker = %settings.broker, %client, maximum_qos = allowed.maximum_qos as u8,
            receive_maximum = allowed.receive_maximum, keep_alive = ?allowed.keep_alive,
            "limits set by the MQTT broker"
        );
        let mut routes = Routes::default();
        if let Some((holding, window)) = holding.zip(held::window(&settings))
            && role == Role::Subscriptions
        {
            let (held, taken) = Held::new(holding, &client, window, allowed.session_present);
            taken.iter().for_each(|id| routes.taken[usize::from(id / 64)] |= 1 << (id % 64));
            routes.held = Some(held);
            routes.waits = true;
        }
        let first = Some((Arc::new(link), inbox));
        Connection::start(settings, client, role, breaks, routes, first, allowed)
    }

    /// Like [`Connection::open`], for a broker that cannot be reached yet: it is connected as soon as possible, and
    /// messages sent until then count as missed. No acknowledgement is held back.
    pub(super) fn open_later(
        settings: Arc<Settings>,
        client: String,
        role: Role,
        breaks: Arc<Breaks>,
    ) -> Result<Arc<Connection>, OpenError> {
        let allowed = ConnAck::unlimited();
        Connection::start(settings, client, role, breaks, Routes::default(), None, allowed)
    }

    fn start(
        settings: Arc<Settings>,
        client: String,
        role: Role,
        breaks: Arc<Breaks>,
        routes: Routes,
        first: First,
        allowed: ConnAck,
    ) -> Result<Arc<Connection>, OpenError> {
        let was_kept = allowed.session_present;
        let link = first.as_ref().map(|(link, _)| Arc::clone(link));
        let wanted_since = link.is_none().then(now);
        let connection = Arc::new(Connection {
            settings,
            role,
            client,
            routes: Mutex::new(routes),
            gate: Mutex::new(()),
            out: Mutex::new(Outgoing::new(link.clone(), allowed)),
            changed: Condvar::new(),
            tick: Condvar::new(),
            link: Mutex::new(link),
            closing: AtomicBool::new(false),
            breaks,
            taken_over: AtomicBool::new(false),
            was_kept,
            failure: OnceLock::new(),
            last_received: AtomicI64::new(now().as_nanos()),
            wanted_since: Mutex::new(wanted_since),
        });
        let failed = |e: std::io::Error| OpenError::Setting(format!("cannot start a thread: {e}"));
        let reading = Arc::clone(&connection);
        let name = if role == Role::Subscriptions { "mqtt in" } else { "mqtt out" };
        let thread = thread::Builder::new().name(name.to_owned());
        thread.spawn(move || reading.run(first)).map_err(failed)?;
        let living = Arc::clone(&connection);
        let thread = thread::Builder::new().name("mqtt alive".to_owned());
        thread.spawn(move || living.keep_alive()).map_err(|e| {
            connection.cut();
            failed(e)
        })?;
        Ok(connection)
    }

    pub(super) fn out(&self) -> MutexGuard<'_, Outgoing> {
        self.out.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn is_closing(&self) -> bool {
        self.closing.load(Ordering::SeqCst)
    }

    /// Whether the broker has sent anything within this time.
    pub(super) fn has_received_within(&self, time: Duration) -> bool {
        let silent = now().as_nanos().saturating_sub(self.last_received.load(Ordering::Relaxed));
        u128::try_from(silent).is_ok_and(|silent| silent < time.as_nanos())
    }

    pub(super) fn version(&self) -> Version {
        self.settings.version
    }

    /// Whether the broker keeps the session for the next run.
    pub(super) fn is_persistent(&self) -> bool {
        !self.settings.clean_start && self.role == Role::Subscriptions
    }

    /// Returns the reason why the connection was given up, if it was.
    pub(super) fn failure(&self) -> Option<&str> {
        self.failure.get().map(String::as_str)
    }

    fn wanted(&self) -> MutexGuard<'_, Option<Timestamp>> {
        self.wanted_since.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether the connection was never opened.
    pub(super) fn is_awaited(&self) -> bool {
        self.wanted().is_some()
    }

    /// Records that the connection is needed before it is opened.
    pub(super) fn note_wanted(&self) {
        if let Some(since) = *self.wanted() {
            self.missed(since, None);
        }
    }

    /// Records that the connection broke, or was restored, and informs the receivers of its messages.
    fn missed(&self, from: Timestamp, until: Option<Timestamp>) {
        self.breaks.add(&format!("{} ({})", self.settings.broker, self.role.as_str()), from, until);
        for RouteEntry { route, .. } in &self.routes().all {
            route.deliver.missed(route.topic, from, until);
        }
    }

    /// Whether the connection is needed. A session opens the one of subscriptions first, even if it only publishes.
    fn is_used(&self) -> bool {
        self.role == Role::Publishers || !self.routes().all.is_empty()
    }

    pub(super) fn routes(&self) -> MutexGuard<'_, Routes> {
        self.routes.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes the lock of the routes after the threads that wait for it.
    fn routes_in_turn(&self) -> MutexGuard<'_, Routes> {
        drop(self.gate.lock().unwrap_or_else(PoisonError::into_inner));
        self.routes()
    }

    /// Disconnects from the broker. Returns whether it received everything within `limit`.
    pub(super) fn close(&self, limit: Duration) -> bool {
        let deadline = Instant::now() + limit;
        let flushed = match self.role {
            Role::Publishers if !limit.is_zero() && !self.is_closing() => self.flush(limit),
            _ => true,
        };
        self.closing.store(true, Ordering::SeqCst);
        self.tick.notify_all();
        self.changed.notify_all();
        let Some(mut out) = lock_until(&self.out, deadline) else {
            self.cut();
            return false;
        };
        if let Some(link) = out.link.take() {
            let mut last = std::mem::take(&mut out.buffer);
            packet::disconnect(self.version(), !self.is_persistent(), &mut last);
            // If writing fails, the connection is broken already.
            if link.write_until(&last, deadline).unwrap_or(false) {
                link.finish();
            }
        }
        // The broker closes its side after it has read everything.
        let waited =
            self.changed.wait_timeout_while(out, deadline.saturating_duration_since(Instant::now()), |out| {
                !out.ended
            });
        let ended = waited.unwrap_or_else(PoisonError::into_inner).0.ended;
        self.cut();
        flushed && ended
    }

    fn cut(&self) {
        self.closing.store(true, Ordering::SeqCst);
        if let Some(link) = &*self.link.lock().unwrap_or_else(PoisonError::into_inner) {
            link.cut();
        }
        self.changed.notify_all();
        self.tick.notify_all();
    }
}
