//! A connection with a broker that reconnects automatically.

use std::sync::atomic::{AtomicBool, AtomicI64, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, OnceLock, PoisonError, TryLockError};
use std::thread;
use std::time::{Duration, Instant};

use super::held::{self, Held, Holding};
use rondel_event::Timestamp;

use super::incoming::{RouteEntry, Routes};
use super::link::{self, Inbox, Link};
use super::outgoing::{Outgoing, PendingRequest};
use super::packet::{self, ConnAck, Malformed, Packet};
use super::session::Breaks;
use super::{OpenError, Settings, Version};
use crate::adapter::{Sample, now};

/// First and longest delay before a reconnection attempt; it doubles in between.
const RETRY: (Duration, Duration) = (Duration::from_millis(100), Duration::from_secs(5));
/// Maximum delay while the broker cannot be reached, so that its return is noticed soon.
const RETRY_UNREACHABLE: Duration = Duration::from_secs(1);
/// Time after which a connection counts as stable, so that the delay starts at its first value again.
const STEADY: Duration = Duration::from_secs(10);
/// Number of successive takeovers of the session by another client after which this one gives up.
const TAKEOVERS: u32 = 6;
/// Numbers of successive connections that the broker closes soon and without a reason: from the first, another client
/// with the same id is suspected; at the second, this one gives up. Version 3.1.1 has no reason code for it, and some
/// brokers do not send it in version 5.
const SUSPICION: (u32, u32) = (3, 12);
/// Maximum wait for a broker to read, after which the state of the connection is checked again.
const ROOM: Duration = Duration::from_millis(50);
/// Interval of attempts to take a lock before a deadline.
const POLL: Duration = Duration::from_millis(1);

/// Reason reported for a connection that the broker has closed without one.
const CLOSED: &str = "the broker closed the connection";

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
        Connection::start((settings, client, role), breaks, routes, (first, allowed))
    }

    /// Like [`Connection::open`], for a broker that cannot be reached yet: it is connected as soon as possible, and
    /// messages sent until then count as missed. No acknowledgement is held back.
    pub(super) fn open_later(
        settings: Arc<Settings>,
        client: String,
        role: Role,
        breaks: Arc<Breaks>,
    ) -> Result<Arc<Connection>, OpenError> {
        let start = (None, ConnAck::unlimited());
        Connection::start((settings, client, role), breaks, Routes::default(), start)
    }

    fn start(
        (settings, client, role): (Arc<Settings>, String, Role),
        breaks: Arc<Breaks>,
        routes: Routes,
        (first, allowed): (First, ConnAck),
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

    /// Counts the successive connections that ended because another client has the same id, or may have it. Returns
    /// whether to give up.
    fn is_contested(&self, since: Instant, closed_quietly: bool, row: &mut u32) -> bool {
        let taken_over = self.taken_over.swap(false, Ordering::Relaxed);
        // A generated id is unique.
        let suspicious = closed_quietly && self.settings.client_id.is_some();
        *row = if (taken_over || suspicious) && since.elapsed() < STEADY { *row + 1 } else { 0 };
        let (broker, role, client) = (&self.settings.broker, self.role.as_str(), &self.client);
        let guess = format!(
            "the MQTT broker {broker} closed {row} connections in a row soon after they were opened; another client may \
             use the client id '{client}', too: give each its own"
        );
        if !taken_over && *row == SUSPICION.0 {
            tracing::warn!(role, "{guess}");
        }
        if *row < if taken_over { TAKEOVERS } else { SUSPICION.1 } {
            return false;
        }
        let known = format!(
            "another client has taken over the session '{client}' at the MQTT broker {broker} {row} times in a row: two \
             clients use one client id; give each its own"
        );
        let reason = if taken_over { known } else { guess };
        tracing::warn!(role, "giving up the connection with the MQTT broker: {reason}");
        // Only this thread sets it, and only once.
        let _ = self.failure.set(reason);
        true
    }

    // ---- receiving

    /// The thread of the connection.
    fn run(&self, first: First) {
        if let Some((link, inbox)) = first.or_else(|| self.first_link()) {
            self.read_until_closed(link, inbox);
        }
        let (broker, role) = (&self.settings.broker, self.is_used().then_some(self.role.as_str()));
        tracing::info!(%broker, role, "closed the connection with the MQTT broker");
        let mut out = self.out();
        out.ended = true;
        drop(out);
        self.changed.notify_all();
        self.tick.notify_all();
        // Releases the receivers of open subscriptions.
        *self.routes() = Routes::default();
    }

    /// Connects for the first time, once the broker can be reached.
    fn first_link(&self) -> First {
        if self.role == Role::Publishers {
            self.note_wanted();
        }
        let clean = self.settings.clean_start || self.role == Role::Publishers;
        let (link, inbox, _) = self.reconnect(&mut RETRY.0.clone(), clean)?;
        let since = self.wanted().take();
        if let Some(since) = since.filter(|_| self.is_used()) {
            self.missed(since, Some(now()));
        }
        tracing::info!(broker = %self.settings.broker, role = self.role.as_str(), "connected to the MQTT broker");
        Some((link, inbox))
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

    /// Reads until the connection is closed, and reconnects when it breaks.
    fn read_until_closed(&self, mut link: Arc<Link>, mut inbox: Inbox) {
        let mut wait = RETRY.0;
        let mut contested = 0;
        loop {
            let since = Instant::now();
            let reason = self.read(&link, &mut inbox);
            link.cut();
            // A broker that has left a request unanswered was gone before the connection broke.
            let is_silent = {
                let out = &mut *self.out();
                out.link = None;
                !out.flight.is_empty() || out.pings > out.answered
            };
            if self.is_closing() {
                break;
            }
            let is_used = self.is_used();
            if is_used {
                self.breaks.count.fetch_add(1, Ordering::Relaxed);
            }
            if self.is_contested(since, reason == CLOSED, &mut contested) {
                break;
            }
            let (broker, role) = (&self.settings.broker, self.role.as_str());
            if is_used {
                tracing::warn!(%broker, role, "the connection with the MQTT broker broke: {reason}; reconnecting");
            }
            if since.elapsed() >= STEADY {
                wait = RETRY.0;
            }
            let last_received = Timestamp::from_nanos(self.last_received.load(Ordering::Relaxed));
            let (broke, broke_at) = (Instant::now(), if is_silent { last_received } else { now() });
            if is_used {
                self.missed(broke_at, None);
            }
            // Version 3.1.1 has no session expiry: a session would be kept for ever.
            let clean = self.version() == Version::V3 && !self.is_persistent();
            match self.reconnect(&mut wait, clean) {
                Some((new, rest, resumed)) => {
                    (link, inbox) = (new, rest);
                    let seconds = broke.elapsed().as_secs_f64();
                    if !is_used {
                        continue;
                    }
                    self.missed(broke_at, Some(now()));
                    match (self.role, resumed) {
                        (Role::Subscriptions, true) => tracing::info!(
                            %broker, role,
                            "reconnected to the MQTT broker after {seconds:.1} s; it delivers the messages at QoS 1 \
                             and 2 that it queued meanwhile"
                        ),
                        (Role::Subscriptions, false) => tracing::warn!(
                            %broker, role,
                            "reconnected to the MQTT broker after {seconds:.1} s, but it did not keep the session: \
                             messages published meanwhile are lost; subscribing again"
                        ),
                        (Role::Publishers, _) => tracing::info!(
                            %broker, role,
                            "reconnected to the MQTT broker after {seconds:.1} s; unacknowledged messages are sent again"
                        ),
                    }
                }
                None => break,
            }
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

    /// Reads and delivers until the connection breaks; returns the reason.
    fn read(&self, link: &Link, inbox: &mut Inbox) -> String {
        let mut answers = Vec::new();
        loop {
            match self.packets(inbox, &mut answers) {
                Ok(None) => {}
                Ok(Some(reason)) => return reason,
                Err(Malformed) => return "the broker sent a malformed packet".to_owned(),
            }
            match link.read(inbox) {
                Ok(0) => return CLOSED.to_owned(),
                Ok(_) => {}
                Err(error) => return link::describe(&error),
            }
        }
    }

    /// Processes all complete packets of the inbox. Returns a reason when the broker ends the connection.
    fn packets(&self, inbox: &mut Inbox, answers: &mut Vec<u8>) -> Result<Option<String>, Malformed> {
        let arrival = now();
        self.last_received.store(arrival.as_nanos(), Ordering::Relaxed);
        let mut used = 0;
        let mut end = None;
        let mut routes = None;
        let mut out = None;
        let mut answered = false;
        while let Some((first, start, length)) = packet::frame(&inbox.bytes()[used..])? {
            let packet = packet::decode(self.version(), first, &inbox.bytes()[used + start..used + length])?;
            used += length;
            if let Packet::Publish(message) = packet {
                // A receiver may block: publishers must not wait for it.
                out = None;
                let routes = routes.get_or_insert_with(|| self.routes_in_turn());
                let sample = Sample::new(message.payload, None, Some(arrival));
                self.deliver(routes, &message, sample, answers);
            } else if let Packet::PubRel(id) = packet {
                out = None;
                let routes = routes.get_or_insert_with(|| self.routes_in_turn());
                routes.taken[usize::from(id / 64)] &= !(1 << (id % 64));
                match &mut routes.held {
                    Some(held) => held.push(packet::PUBCOMP, id),
                    None => packet::acknowledge(packet::PUBCOMP, id, answers),
                }
            } else {
                answered = true;
                let out = out.get_or_insert_with(|| self.out());
                end = end.or(self.answer(out, packet)?);
            }
        }
        if let Some(out) = &mut out
            && out.flight.is_behind()
        {
            self.catch_up(out);
        }
        drop(out);
        if answered {
            self.changed.notify_all();
        }
        for entry in routes.iter_mut().flat_map(|routes| &mut routes.all) {
            if std::mem::take(&mut entry.touched) {
                entry.route.deliver.idle();
            }
        }
        routes.iter().filter_map(|routes| routes.held.as_ref()).for_each(Held::signal);
        drop(routes);
        if !answers.is_empty() {
            let mut out = self.out();
            out.buffer.append(answers);
            self.send(&mut out);
        }
        inbox.used(used);
        Ok(end)
    }

    // ---- reconnecting

    /// Tries to connect with growing delays until it succeeds; `None` once the connection is closed.
    fn reconnect(&self, wait: &mut Duration, clean: bool) -> Option<(Arc<Link>, Inbox, bool)> {
        let mut warned = false;
        loop {
            let until = Instant::now() + *wait;
            *wait = (*wait * 2).min(RETRY.1);
            let mut out = self.out();
            while !self.is_closing() && Instant::now() < until {
                let left = until.saturating_duration_since(Instant::now());
                out = self.tick.wait_timeout(out, left).unwrap_or_else(PoisonError::into_inner).0;
            }
            drop(out);
            if self.is_closing() {
                return None;
            }
            match Link::open(&self.settings, &self.client, clean) {
                Ok((link, inbox, allowed)) => {
                    let resumed = allowed.session_present;
                    let link = self.resume(link, allowed)?;
                    return Some((link, inbox, resumed));
                }
                Err(error) => {
                    let (broker, role) = (&self.settings.broker, self.role.as_str());
                    if matches!(error, OpenError::Unreachable { .. }) {
                        *wait = RETRY_UNREACHABLE.min(*wait);
                    }
                    let retry_in = *wait;
                    if warned || matches!(error, OpenError::Unreachable { .. }) {
                        tracing::debug!(%broker, role, ?retry_in, "{error}; trying again");
                    } else {
                        warned = true;
                        tracing::warn!(%broker, role, "{error}; trying again until the broker accepts the connection");
                    }
                }
            }
        }
    }

    /// Continues over a new link: subscribes again unless the broker kept the session, and sends
    /// unacknowledged messages again.
    fn resume(&self, link: Link, allowed: ConnAck) -> Option<Arc<Link>> {
        let link = Arc::new(link);
        let mut routes = self.routes();
        let mut out = self.out();
        *self.link.lock().unwrap_or_else(PoisonError::into_inner) = Some(Arc::clone(&link));
        if self.is_closing() {
            return None;
        }
        let resumed = allowed.session_present;
        out.buffer.clear();
        out.is_congested = false;
        out.allowed = allowed;
        // The broker does not answer requests that were sent over the broken link.
        out.answered = out.pings;
        let out = &mut *out;
        for (id, request) in std::mem::take(&mut out.requests) {
            out.flight.release(id);
            // The waiting thread may continue: this function subscribes for it.
            if let PendingRequest::Subscribe(_) = request {
                out.requests.push((id, PendingRequest::Subscribe(Some(Vec::new()))));
            }
        }
        routes.restart(resumed);
        let due = || routes.all.iter().filter(|s| !(resumed && s.known)).map(|s| &s.route);
        if due().next().is_some() {
            let id = out.flight.number();
            packet::subscribe(
                self.version(),
                id,
                due().map(|route| (route.filter.as_str(), route.qos)),
                &mut out.buffer,
            );
            due().for_each(|route| {
                tracing::debug!(topic = %route.filter, qos = route.qos as u8, "subscribing again after reconnecting");
            });
            let filters = due().map(|route| (Arc::clone(&route.counts), route.filter.clone())).collect();
            out.requests.push((id, PendingRequest::Late(filters)));
        }
        routes.all.iter_mut().for_each(|entry| entry.known = true);
        out.flight.restart(resumed);
        out.link = Some(Arc::clone(&link));
        self.catch_up(out);
        self.changed.notify_all();
        Some(link)
    }

    /// Sends pings while nothing else is sent, also while a receiver blocks, so that the broker does not close the
    /// connection; sends the bytes that the broker had no room for.
    fn keep_alive(&self) {
        let mut out = self.out();
        while !out.ended {
            if let Some(link) = out.link.clone().filter(|_| out.is_congested) {
                drop(out);
                let has_room = link.wait_for_room(ROOM);
                out = self.out();
                if has_room || link.is_stuck() {
                    self.send(&mut out);
                    // A publisher may be waiting for it.
                    self.changed.notify_all();
                }
                continue;
            }
            let own = self.settings.keep_alive;
            let every =
                out.allowed.keep_alive.filter(|theirs| *theirs > 0).map_or(own, |theirs| theirs.min(own));
            let every = Duration::from_millis(u64::from(every) * 250);
            out = self.tick.wait_timeout(out, every).unwrap_or_else(PoisonError::into_inner).0;
            if !self.is_closing() && out.link.is_some() && out.written.elapsed() >= every * 2 {
                out.ping();
                self.send(&mut out);
            }
        }
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

/// Returns the guard of a mutex, `None` if it cannot be locked before the deadline.
pub(super) fn lock_until<T>(mutex: &Mutex<T>, deadline: Instant) -> Option<MutexGuard<'_, T>> {
    loop {
        match mutex.try_lock() {
            Ok(guard) => return Some(guard),
            Err(TryLockError::Poisoned(poisoned)) => return Some(poisoned.into_inner()),
            Err(TryLockError::WouldBlock) if Instant::now() >= deadline => return None,
            Err(TryLockError::WouldBlock) => thread::sleep(POLL),
        }
    }
}
