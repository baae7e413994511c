//! A connection with a broker, made again whenever it breaks.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError, TryLockError};
use std::thread;
use std::time::{Duration, Instant};

use super::incoming::Routes;
use super::link::{self, Inbox, Link};
use super::outgoing::{Asked, Out};
use super::packet::{self, ConnAck, Malformed, Packet};
use super::{OpenError, Qos, Settings, Version};
use crate::adapter::{Sample, now};

/// How soon a broken connection is made again, at first and at most.
const RETRY: (Duration, Duration) = (Duration::from_millis(100), Duration::from_secs(5));
/// A connection that has stood for this long begins with the first of these again.
const STEADY: Duration = Duration::from_secs(10);
/// How often closing looks again.
const POLL: Duration = Duration::from_millis(1);

/// What a connection is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Role {
    Subscriptions,
    Publishers,
}

pub(super) struct Connection {
    pub(super) settings: Arc<Settings>,
    role: Role,
    client: String,
    /// Held while receivers are called. Before `out`, where both are needed.
    pub(super) routes: Mutex<Routes>,
    pub(super) out: Mutex<Out>,
    pub(super) changed: Condvar,
    tick: Condvar,
    /// The same as in `out`, to be cut while somebody blocks there.
    link: Mutex<Option<Arc<Link>>>,
    closing: AtomicBool,
    breaks: Arc<AtomicU64>,
}

impl Connection {
    /// Connects.
    pub(super) fn open(
        settings: Arc<Settings>,
        client: String,
        role: Role,
        breaks: Arc<AtomicU64>,
    ) -> Result<Arc<Connection>, OpenError> {
        let clean = settings.clean_start || role == Role::Publishers;
        let (link, inbox, allowed) = Link::open(&settings, &client, clean)?;
        let link = Arc::new(link);
        let out = Out::new(Arc::clone(&link), allowed);
        let connection = Arc::new(Connection {
            settings,
            role,
            client,
            routes: Mutex::new(Routes::default()),
            out: Mutex::new(out),
            changed: Condvar::new(),
            tick: Condvar::new(),
            link: Mutex::new(Some(Arc::clone(&link))),
            closing: AtomicBool::new(false),
            breaks,
        });
        let failed = |e: std::io::Error| OpenError::Setting(format!("cannot start a thread: {e}"));
        let reading = Arc::clone(&connection);
        let name = if role == Role::Subscriptions { "mqtt in" } else { "mqtt out" };
        let thread = thread::Builder::new().name(name.to_owned());
        thread.spawn(move || reading.run(link, inbox)).map_err(failed)?;
        let living = Arc::clone(&connection);
        let thread = thread::Builder::new().name("mqtt alive".to_owned());
        thread.spawn(move || living.keep_alive()).map_err(|e| {
            connection.cut();
            failed(e)
        })?;
        Ok(connection)
    }

    pub(super) fn out(&self) -> MutexGuard<'_, Out> {
        self.out.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn is_closing(&self) -> bool {
        self.closing.load(Ordering::SeqCst)
    }

    pub(super) fn version(&self) -> Version {
        self.settings.version
    }

    /// Whether the broker keeps subscriptions for the next run.
    pub(super) fn is_kept(&self) -> bool {
        !self.settings.clean_start && self.role == Role::Subscriptions
    }

    // ---- what comes

    /// Reads until the connection is closed, and makes it again when it breaks.
    fn run(&self, mut link: Arc<Link>, mut inbox: Inbox) {
        let mut wait = RETRY.0;
        loop {
            let since = Instant::now();
            let reason = self.read(&link, &mut inbox);
            link.cut();
            self.out().link = None;
            if self.is_closing() {
                break;
            }
            self.breaks.fetch_add(1, Ordering::Relaxed);
            let broker = &self.settings.broker;
            let what = match self.role {
                Role::Subscriptions => "for messages",
                Role::Publishers => "for publishing",
            };
            tracing::warn!(
                "the connection {what} with the MQTT broker {broker} broke: {reason}; trying again"
            );
            if since.elapsed() >= STEADY {
                wait = RETRY.0;
            }
            let broke = Instant::now();
            match self.again(&mut wait) {
                Some((new, rest, resumed)) => {
                    (link, inbox) = (new, rest);
                    let kept = match (self.role, resumed) {
                        (Role::Subscriptions, true) => "it has kept what came for this client at QoS 1 and 2",
                        (Role::Subscriptions, false) => {
                            "it has forgotten this client: what was published meanwhile is lost"
                        }
                        (Role::Publishers, _) => "what it had not acknowledged is sent again",
                    };
                    let seconds = broke.elapsed().as_secs_f64();
                    tracing::warn!(
                        "connected {what} with the MQTT broker {broker} again after {seconds:.1} s; {kept}"
                    );
                }
                None => break,
            }
        }
        let mut out = self.out();
        out.ended = true;
        drop(out);
        self.changed.notify_all();
        self.tick.notify_all();
        // Receivers are let go here at the latest.
        *self.routes() = Routes::default();
    }

    pub(super) fn routes(&self) -> MutexGuard<'_, Routes> {
        self.routes.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Reads and hands on until the connection breaks; why it did.
    fn read(&self, link: &Link, inbox: &mut Inbox) -> String {
        let mut answers = Vec::new();
        loop {
            match self.packets(inbox, &mut answers) {
                Ok(None) => {}
                Ok(Some(reason)) => return reason,
                Err(Malformed) => return "what it says is no MQTT".to_owned(),
            }
            match link.read(inbox) {
                Ok(0) => return "it closed the connection".to_owned(),
                Ok(_) => {}
                Err(error) => return link::said(&error),
            }
        }
    }

    /// Hands on everything that has come. A reason, if that was that the connection ends.
    fn packets(&self, inbox: &mut Inbox, answers: &mut Vec<u8>) -> Result<Option<String>, Malformed> {
        let arrival = now();
        let mut used = 0;
        let mut end = None;
        let mut routes = None;
        let mut out = None;
        let mut told = false;
        while let Some((first, start, length)) = packet::frame(&inbox.bytes()[used..])? {
            let packet = packet::decode(self.version(), first, &inbox.bytes()[used + start..used + length])?;
            used += length;
            if let Packet::Publish(message) = packet {
                // Nobody who publishes waits for a receiver.
                out = None;
                let routes = routes.get_or_insert_with(|| self.routes());
                let sample = Sample::new(message.payload, None, Some(arrival));
                self.deliver(routes, &message, sample, answers);
            } else if let Packet::PubRel(id) = packet {
                out = None;
                let routes = routes.get_or_insert_with(|| self.routes());
                routes.taken[usize::from(id / 64)] &= !(1 << (id % 64));
                packet::acknowledge(packet::PUBCOMP, id, answers);
            } else {
                told = true;
                let out = out.get_or_insert_with(|| self.out());
                end = end.or(self.answer(out, packet)?);
            }
        }
        if let Some(out) = &mut out
            && out.flight.is_behind()
        {
            let window = self.window(out, Qos::ExactlyOnce);
            out.catch_up(window);
        }
        drop(out);
        if told {
            self.changed.notify_all();
        }
        for standing in routes.iter_mut().flat_map(|routes| &mut routes.all) {
            if std::mem::take(&mut standing.touched) {
                standing.route.deliver.idle();
            }
        }
        drop(routes);
        if !answers.is_empty() {
            let mut out = self.out();
            out.buffer.append(answers);
            out.send();
        }
        inbox.used(used);
        Ok(end)
    }

    // ---- after a break

    /// Tries to connect until it works, ever less often, or until the connection is closed.
    fn again(&self, wait: &mut Duration) -> Option<(Arc<Link>, Inbox, bool)> {
        let mut said = false;
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
            // With version 3.1.1 a session is kept for ever or not at all.
            let clean = self.version() == Version::V3 && !self.is_kept();
            match Link::open(&self.settings, &self.client, clean) {
                Ok((link, inbox, allowed)) => {
                    let resumed = allowed.session_present;
                    let link = self.stand(link, allowed)?;
                    return Some((link, inbox, resumed));
                }
                Err(OpenError::Unreachable { .. }) => {}
                Err(error) if said => tracing::debug!("{error}"),
                Err(error) => {
                    said = true;
                    tracing::warn!("{error}; trying again");
                }
            }
        }
    }

    /// Goes on over a new connection: subscribes again where the broker has forgotten, and sends again
    /// what was not acknowledged.
    fn stand(&self, link: Link, allowed: ConnAck) -> Option<Arc<Link>> {
        let link = Arc::new(link);
        let mut routes = self.routes();
        let mut out = self.out();
        *self.link.lock().unwrap_or_else(PoisonError::into_inner) = Some(Arc::clone(&link));
        if self.is_closing() {
            return None;
        }
        let resumed = allowed.session_present;
        out.buffer.clear();
        out.allowed = allowed;
        // What was asked over the connection that broke is not answered any more.
        out.answered = out.pings;
        let out = &mut *out;
        for (id, asked) in std::mem::take(&mut out.asked) {
            out.flight.release(id);
            // Whoever waits is told that it will be done from here.
            if let Asked::Now(_) = asked {
                out.asked.push((id, Asked::Now(Some(Vec::new()))));
            }
        }
        if !resumed {
            routes.taken.fill(0);
        }
        let due = || routes.all.iter().filter(|s| !(resumed && s.known)).map(|s| &s.route);
        if due().next().is_some() {
            let id = out.flight.number();
            packet::subscribe(
                self.version(),
                id,
                due().map(|route| (route.filter.as_str(), route.qos)),
                &mut out.buffer,
            );
            let filters = due().map(|route| (Arc::clone(&route.seen), route.filter.clone())).collect();
            out.asked.push((id, Asked::Again(filters)));
        }
        routes.all.iter_mut().for_each(|standing| standing.known = true);
        out.flight.restart(resumed);
        out.link = Some(Arc::clone(&link));
        let window = self.window(out, Qos::ExactlyOnce);
        out.catch_up(window);
        self.changed.notify_all();
        Some(link)
    }

    /// Says something when nothing else was said for a while, so that the broker does not take the
    /// client for dead; also while a receiver blocks.
    fn keep_alive(&self) {
        let mut out = self.out();
        while !out.ended {
            let own = self.settings.keep_alive;
            let every =
                out.allowed.keep_alive.filter(|theirs| *theirs > 0).map_or(own, |theirs| theirs.min(own));
            let every = Duration::from_millis(u64::from(every) * 250);
            out = self.tick.wait_timeout(out, every).unwrap_or_else(PoisonError::into_inner).0;
            if !self.is_closing() && out.link.is_some() && out.written.elapsed() >= every * 2 {
                out.ping();
                out.send();
            }
        }
    }

    /// Takes leave of the broker; whether it has taken everything by then.
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
            let mut farewell = std::mem::take(&mut out.buffer);
            packet::disconnect(self.version(), !self.is_kept(), &mut farewell);
            // A broker that is gone needs no farewell.
            if link.write(&farewell).is_ok() {
                link.finish();
            }
        }
        // It closes its side when it has read everything.
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

/// Locks, if that is possible until then.
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
