//! Neighbours that stop accepting messages or lose their connection.
//!
//! A publisher blocks while a neighbour accepts nothing. After the session's wait, Zenoh closes the connection with
//! this neighbour, and publishing continues. Zenoh reports neither: a thread checks every 100 ms for a call that does
//! not return, and follows the events of connections. A call that returned after the wait, together with a connection
//! closed then, is a consumer that was cut off. Messages published until it connects again are counted as dropped.
//! Publishing itself only counts.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError, Weak, mpsc};
use std::time::{Duration, Instant};

use ::zenoh::Wait;
use ::zenoh::sample::SampleKind;
use ::zenoh::session::ZenohId;
use rondel_event::Timestamp;

use super::publisher::{MatchedState, PublishGate};
use super::resend::ResendCache;
use super::unsure::{LONG, LastBreak};
use crate::adapter::{Drops, Outage, now};

/// Interval of the checks.
const TICK: Duration = Duration::from_millis(100);
/// Maximum time that Zenoh takes to close a connection that it has given up: the lease of 10 s, and some more.
const CLOSING: Duration = Duration::from_secs(15);
/// A consumer that does not connect again within this time has left; nothing more is counted for it.
const LEFT: Duration = Duration::from_secs(60);
/// Time without a request after which an advanced subscriber has all messages that it missed.
const CATCHING_UP: Duration = Duration::from_millis(500);
/// Limits of remembered neighbours and outages.
const NEIGHBOURS: usize = 1024;

/// Message counts of a publisher.
#[derive(Debug)]
pub(super) struct Sent {
    /// Number of messages published so far: the sequence number of the next one.
    pub(super) count: AtomicU64,
    pub(super) matched: Arc<MatchedState>,
    pub(super) drops: Arc<Drops>,
}

/// Counts messages missed by neighbours, for one session.
#[derive(Debug)]
pub(super) struct Watch {
    gate: Arc<PublishGate>,
    wait: Duration,
    /// Whether the session connects to others, so that having no connection is a loss.
    connects: bool,
    state: Mutex<WatchState>,
    /// Kept messages, which need an approximate time.
    cache: OnceLock<Weak<ResendCache>>,
    /// Number of connections opened so far, as of the last look.
    opened: AtomicU64,
    /// Like `opened`, updated at once.
    connections: Arc<AtomicU64>,
    /// The last break of all connections.
    last_break: Arc<LastBreak>,
    /// Time of the last request of an advanced subscriber of zenoh-ext for missed messages.
    answered: Mutex<Option<Instant>>,
}

#[derive(Debug)]
struct WatchState {
    publishers: Vec<Weak<Sent>>,
    events: mpsc::Receiver<(SampleKind, ZenohId)>,
    /// The call that did not return between the last two looks.
    blocked: Option<Blocked>,
    /// The last call that blocked for the whole wait, until the closed connection is known.
    gave_up: Option<(Instant, Blocked)>,
    cut: Vec<CutOff>,
    /// Time at which the connection with each neighbour was lost.
    lost: BTreeMap<ZenohId, Timestamp>,
    /// Current number of connections.
    connected: usize,
    /// Time at which the last connection was lost, while there is none.
    alone_since: Option<Timestamp>,
    outages: Vec<Outage>,
    /// Whether all received messages had numbers.
    numbered: bool,
    closing: bool,
}

/// A call that does not return.
#[derive(Debug)]
struct Blocked {
    since: Instant,
    at: Timestamp,
    /// Number of calls that had returned before.
    returned: u64,
    /// Every publisher with a subscriber, and the number of messages that it had published before.
    marks: Vec<(Arc<Sent>, u64)>,
    logged: bool,
}

/// A consumer that was cut off.
#[derive(Debug)]
struct CutOff {
    /// Unknown while Zenoh is closing the connection.
    neighbour: Option<ZenohId>,
    at: Timestamp,
    since: Instant,
    marks: Vec<(Arc<Sent>, u64)>,
}

impl Watch {
    /// Starts to watch a session, whose connections Zenoh closes after `wait`.
    pub(super) fn start(
        session: &::zenoh::Session,
        gate: Arc<PublishGate>,
        wait: Duration,
        connects: bool,
    ) -> Result<Arc<Watch>, ::zenoh::Error> {
        let (sender, events) = mpsc::channel();
        let connections = Arc::<AtomicU64>::default();
        let (counted, last_break) = (Arc::clone(&connections), Arc::<LastBreak>::default());
        let broken = Arc::clone(&last_break);
        session
            .info()
            .transport_events_listener()
            .history(true)
            .callback(move |event| {
                _ = sender.send((event.kind(), *event.transport().zid()));
                broken.connection(event.kind() == SampleKind::Put, Instant::now());
                if event.kind() == SampleKind::Put {
                    counted.fetch_add(1, Ordering::Release);
                }
            })
            .background()
            .wait()?;
        let state = WatchState {
            publishers: Vec::new(),
            events,
            blocked: None,
            gave_up: None,
            cut: Vec::new(),
            lost: BTreeMap::new(),
            connected: 0,
            alone_since: None,
            outages: Vec::new(),
            numbered: true,
            closing: false,
        };
        let watch = Arc::new(Watch {
            gate,
            wait,
            connects,
            state: Mutex::new(state),
            cache: OnceLock::new(),
            opened: AtomicU64::new(0),
            connections,
            last_break,
            answered: Mutex::default(),
        });
        let watched = Arc::downgrade(&watch);
        let look = move || {
            loop {
                std::thread::sleep(TICK);
                let Some(watch) = watched.upgrade() else { break };
                watch.look();
                if let Some(cache) = watch.cache.get().and_then(Weak::upgrade) {
                    cache.tick();
                }
            }
        };
        std::thread::Builder::new().name("zenoh watch".to_owned()).spawn(look)?;
        Ok(watch)
    }

    fn state(&self) -> MutexGuard<'_, WatchState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Records that the session starts without a connection.
    pub(super) fn begin_alone(&self) {
        self.look();
        let mut state = self.state();
        if state.connected == 0 {
            state.alone_since = Some(now());
        }
    }

    /// Whether there was no connection so far.
    pub(super) fn never_connected(&self) -> bool {
        self.look();
        self.opened() == 0
    }

    /// Updates the time of kept messages at every look.
    pub(super) fn tick(&self, cache: &Arc<ResendCache>) {
        // A session has one.
        _ = self.cache.set(Arc::downgrade(cache));
    }

    /// Records a message without a number. Returns the outages that have ended, without the first `reported` ones.
    #[cold]
    pub(super) fn unnumbered(&self, reported: usize) -> Vec<Outage> {
        self.state().numbered = false;
        self.look();
        self.state().outages.iter().skip(reported).cloned().collect()
    }

    /// Returns the number of connections opened so far: after another one, a message without a number may be the first
    /// one after an outage.
    pub(super) fn connections(&self) -> Arc<AtomicU64> {
        Arc::clone(&self.connections)
    }

    /// Adds a publisher.
    pub(super) fn add(&self, sent: &Arc<Sent>) {
        self.state().publishers.push(Arc::downgrade(sent));
    }

    /// Returns the connections lost so far; at most 1,024 are remembered.
    pub(super) fn outages(&self) -> Vec<Outage> {
        self.look();
        let state = self.state();
        let open = state.alone_since.filter(|from| state.carried(Some(*from))).map(|from| Outage {
            network: "zenoh",
            neighbour: None,
            from,
            until: None,
            carried: true,
        });
        state.outages.iter().cloned().chain(open).collect()
    }

    /// Whether the last connection was lost so recently that the missed messages are unknown yet.
    pub(super) fn is_unsure(&self) -> bool {
        self.connects && self.last_break.is_unsure(Instant::now())
    }

    /// Counts up to now; connections closed from here on are intended.
    pub(super) fn end(&self) {
        self.look();
        let mut state = self.state();
        state.closing = true;
        state.count_given_up();
    }

    /// Counts the messages missed by a consumer whose connection Zenoh has given up and is still closing.
    pub(super) fn count_given_up(&self) {
        self.state().count_given_up();
    }

    /// Whether there is no connection now.
    pub(super) fn is_alone(&self) -> bool {
        self.look();
        self.state().connected == 0
    }

    /// Returns the time for which a session that connects to others has had no connection, as of the last look.
    pub(super) fn alone_for(&self) -> Duration {
        let since = self.state().alone_since;
        let nanos = since.map_or(0, |since| now().as_nanos().saturating_sub(since.as_nanos()));
        Duration::from_nanos(u64::try_from(nanos).unwrap_or(0))
    }

    /// Returns the number of connections opened so far.
    pub(super) fn opened(&self) -> u64 {
        self.opened.load(Ordering::Relaxed)
    }

    /// Records a request of an advanced subscriber of zenoh-ext for missed messages.
    pub(super) fn answered(&self) {
        *self.answered.lock().unwrap_or_else(PoisonError::into_inner) = Some(Instant::now());
    }

    /// Whether a consumer misses messages that it may still request, as of the last look.
    pub(super) fn has_consumers_to_wait_for(&self) -> bool {
        let answered = *self.answered.lock().unwrap_or_else(PoisonError::into_inner);
        !self.state().cut.is_empty() || answered.is_some_and(|at| at.elapsed() < CATCHING_UP)
    }

    /// Checks calls and connections, and counts lost messages.
    pub(super) fn look(&self) {
        let state = &mut *self.state();
        state.watch_calls(&self.gate, self.wait);
        while let Ok((kind, neighbour)) = state.events.try_recv() {
            match kind {
                SampleKind::Put => {
                    self.opened.fetch_add(1, Ordering::Relaxed);
                    state.opened(neighbour);
                }
                SampleKind::Delete => state.closed(neighbour, self.wait, self.connects),
            }
        }
        state.count();
    }
}

impl WatchState {
    /// Checks whether the call that was blocked at the last look has returned.
    fn watch_calls(&mut self, gate: &PublishGate, wait: Duration) {
        let (entered, returned) = gate.calls();
        if let Some(blocked) = &mut self.blocked {
            if blocked.returned == returned {
                if !blocked.logged && blocked.since.elapsed() >= wait / 3 {
                    blocked.logged = true;
                    tracing::info!("publishing waits for a Zenoh neighbour that does not accept messages");
                }
                return;
            }
            // It may have begun and ended up to one look earlier or later than observed.
            if let Some(blocked) = self.blocked.take()
                && blocked.since.elapsed() + TICK * 2 >= wait
            {
                self.gave_up = Some((Instant::now(), blocked));
            }
        }
        if entered > returned {
            self.publishers.retain(|publisher| publisher.strong_count() > 0);
            let matched = self.publishers.iter().filter_map(Weak::upgrade).filter(|sent| sent.matched.get());
            let marks = matched.map(|sent| (Arc::clone(&sent), sent.count.load(Ordering::Relaxed))).collect();
            self.blocked = Some(Blocked { since: Instant::now(), at: now(), returned, marks, logged: false });
        }
    }

    /// Whether messages may have been missed unnoticed. For numbered messages it is known exactly which are missing;
    /// but during a long time without a connection, it was unknown that some were.
    fn carried(&self, alone: Option<Timestamp>) -> bool {
        let long =
            |from: Timestamp| now().as_nanos().saturating_sub(from.as_nanos()) >= LONG.as_nanos() as i64;
        !self.numbered || alone.is_some_and(long)
    }

    fn opened(&mut self, neighbour: ZenohId) {
        self.connected += 1;
        let (alone, lost) = (self.alone_since.take(), self.lost.remove(&neighbour));
        // A neighbour that was restarted has another id.
        if let Some(from) = lost.or(alone) {
            let carried = self.carried(alone);
            let (neighbour, until) = (lost.map(|_| neighbour.to_string()), Some(now()));
            self.outage(Outage { network: "zenoh", neighbour, from, until, carried });
        }
        self.count();
        self.cut.retain(|cut| {
            if cut.neighbour == Some(neighbour) {
                let seconds = cut.since.elapsed().as_secs_f64();
                tracing::warn!(%neighbour, "the Zenoh consumer that was cut off is connected again after {seconds:.1} s");
            }
            cut.neighbour != Some(neighbour)
        });
    }

    fn closed(&mut self, neighbour: ZenohId, wait: Duration, connects: bool) {
        self.connected = self.connected.saturating_sub(1);
        if self.closing {
            return;
        }
        let at = now();
        if self.lost.len() < NEIGHBOURS {
            self.lost.insert(neighbour, at);
        }
        if connects && self.connected == 0 {
            tracing::warn!(%neighbour, "the last Zenoh connection was lost; connecting again");
            self.alone_since = Some(at);
        }
        // A call that is still blocked holds the lock that closing needs.
        if let Some((since, blocked)) = self.gave_up.take_if(|(since, _)| since.elapsed() <= CLOSING) {
            tracing::warn!(
                %neighbour,
                "a Zenoh consumer accepted nothing for {:.1} s and was cut off; it misses messages until it connects \
                 again",
                wait.as_secs_f64()
            );
            self.cut_off(Some(neighbour), since, blocked);
        }
    }

    fn cut_off(&mut self, neighbour: Option<ZenohId>, since: Instant, blocked: Blocked) {
        self.cut.push(CutOff { neighbour, at: blocked.at, since, marks: blocked.marks });
    }

    /// Counts the messages missed by a consumer whose connection Zenoh has given up and is still closing.
    fn count_given_up(&mut self) {
        if let Some((since, blocked)) = self.gave_up.take_if(|(since, _)| since.elapsed() <= CLOSING) {
            self.cut_off(None, since, blocked);
            self.count();
        }
    }

    /// Counts the messages published while consumers were cut off.
    fn count(&mut self) {
        self.cut.retain_mut(|cut| {
            for (sent, mark) in &mut cut.marks {
                let count = sent.count.load(Ordering::Relaxed);
                sent.drops.add(count - *mark, cut.at);
                *mark = count;
            }
            let has_left = cut.since.elapsed() >= LEFT;
            if has_left {
                tracing::info!(neighbour = ?cut.neighbour, "the consumer that was cut off has left");
            }
            !has_left
        });
    }

    fn outage(&mut self, outage: Outage) {
        if self.outages.len() < NEIGHBOURS {
            self.outages.push(outage);
        }
    }
}
