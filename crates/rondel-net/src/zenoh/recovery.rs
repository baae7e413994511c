//! Fetches missed messages from their publishers.
//!
//! The number of every numbered message is compared with the one expected after the publisher's last message: one
//! comparison and exchange of a word, without a lock. After a gap, the messages of this publisher are held back; a
//! thread fetches the missing ones, piece by piece, and delivers them in order, followed by the held ones. Neither side
//! blocks the other. The number of held bytes is limited: the publisher still has the messages dropped here. A
//! publisher that does not answer costs a limited wait, and its gap remains.
//!
//! The last messages before a silence leave no gap. A silent publisher is queried once, and rarely again.

mod numbers;

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError, Weak, mpsc};
use std::time::{Duration, Instant};

use ::zenoh::Wait;
use ::zenoh::qos::CongestionControl;
use ::zenoh::query::{ConsolidationMode, ReplyKeyExpr};
use rondel_event::{Timestamp, TopicId};

use super::watch::Watch;
use super::{advanced, resend};
use crate::adapter::Recovered;
pub(super) use numbers::Numbers;

/// Interval of checking for silent publishers.
const TICK: Duration = Duration::from_millis(250);
/// Time limit of one answer.
const ANSWER: Duration = Duration::from_secs(2);
/// Pause before the next request if there was no answer.
const AGAIN: Duration = Duration::from_millis(200);

/// Fetches missed messages for the subscriptions of a session, on a thread of its own.
#[derive(Debug)]
pub(super) struct Recoverer {
    session: ::zenoh::Session,
    watch: Weak<Watch>,
    wake: mpsc::Sender<()>,
    all: Mutex<Vec<Weak<dyn RecoveredSubscription>>>,
    ended: AtomicBool,
    /// Number of subscriptions so far.
    names: AtomicU64,
    /// Messages fetched so far, for each topic.
    recovered: Mutex<BTreeMap<TopicId, Recovered>>,
}

/// The numbers of a subscription with any receiver.
pub(super) trait RecoveredSubscription: Send + Sync + std::fmt::Debug {
    /// Continues with every gap. Returns whether there is one.
    fn attend(&self, recoverer: &Recoverer) -> bool;

    /// Checks for silent publishers; checks all publishers if `reconnected`.
    fn look(&self, recoverer: &Recoverer, reconnected: bool);

    /// Waits until there is no gap. Returns whether that happened within `limit`.
    fn wait(&self, limit: Duration) -> bool;

    /// Delivers the held messages, and stops fetching. Returns whether that was done within `limit`.
    fn close(&self, limit: Duration) -> bool;

    /// Returns the number of messages known to be missing after the last one received.
    fn missing(&self) -> u64;
}

impl Recoverer {
    /// Starts the thread.
    pub(super) fn start(session: ::zenoh::Session, watch: Weak<Watch>) -> std::io::Result<Arc<Recoverer>> {
        let (wake, woken) = mpsc::channel();
        let recoverer = Arc::new(Recoverer {
            session,
            watch: Weak::clone(&watch),
            wake,
            all: Mutex::default(),
            ended: AtomicBool::new(false),
            names: AtomicU64::new(0),
            recovered: Mutex::default(),
        });
        let attending = Arc::downgrade(&recoverer);
        let attend = move || {
            let mut looked = Instant::now();
            let mut connections = None;
            let mut pause = TICK;
            loop {
                if woken.recv_timeout(pause) == Err(mpsc::RecvTimeoutError::Disconnected) {
                    break;
                }
                while woken.try_recv().is_ok() {}
                let Some(recoverer) = attending.upgrade() else { break };
                if recoverer.ended.load(Ordering::Acquire) {
                    break;
                }
                let mut all = recoverer.all.lock().unwrap_or_else(PoisonError::into_inner);
                all.retain(|one| one.strong_count() > 0);
                let all: Vec<_> = { all }.iter().filter_map(Weak::upgrade).collect();
                if looked.elapsed() >= TICK {
                    looked = Instant::now();
                    let opened = watch.upgrade().map(|watch| watch.opened());
                    let reconnected = connections.is_some() && opened != connections;
                    connections = opened;
                    all.iter().for_each(|one| one.look(&recoverer, reconnected));
                }
                let busy = all.iter().filter(|one| one.attend(&recoverer)).count() > 0;
                pause = if busy { AGAIN / 4 } else { TICK };
            }
        };
        std::thread::Builder::new().name("zenoh recovery".to_owned()).spawn(attend)?;
        Ok(recoverer)
    }

    /// Ends the thread.
    pub(super) fn end(&self) {
        self.ended.store(true, Ordering::Release);
        self.wake();
    }

    /// Returns the messages fetched so far.
    pub(super) fn recovered(&self) -> Vec<(TopicId, Recovered)> {
        let recovered = self.recovered.lock().unwrap_or_else(PoisonError::into_inner);
        recovered.iter().map(|(topic, recovered)| (*topic, *recovered)).collect()
    }

    fn count(&self, topic: TopicId, count: u64, from: Timestamp) {
        let mut all = self.recovered.lock().unwrap_or_else(PoisonError::into_inner);
        all.entry(topic).or_default().add(count, from);
    }

    fn wake(&self) {
        // The thread may have ended.
        _ = self.wake.send(());
    }

    /// Requests the messages of a publisher from a number on, for the subscription `by`, which expects the number `at`
    /// next.
    fn request(&self, keys: &QueryKeys, by: &str, at: u32, from: u32) -> PendingRequest {
        let (sender, answers) = mpsc::channel();
        let waking = WakeOnDrop(self.wake.clone());
        let replies = advanced::Replies::new(sender.clone());
        let is_advanced = keys.advanced;
        let callback = move |reply: ::zenoh::query::Reply| {
            let Ok(sample) = reply.result() else { return };
            if is_advanced {
                return replies.add(sample);
            }
            // The receiver may have stopped waiting.
            _ = sender.send(sample.payload().to_bytes().into_owned());
            _ = waking.0.send(());
        };
        let selector = if is_advanced {
            advanced::selector(&keys.of_advanced, from)
        } else {
            resend::selector(&keys.own, by, at, from)
        };
        let place = selector.clone();
        let query = self
            .session
            .get(selector)
            .accept_replies(ReplyKeyExpr::Any)
            .consolidation(ConsolidationMode::None)
            .congestion_control(CongestionControl::Block)
            .timeout(ANSWER)
            .callback(callback)
            .wait();
        if let Err(e) = query {
            tracing::debug!(%place, "cannot ask for missed messages: {}", super::reason(e));
        }
        PendingRequest { answers, at: Instant::now() }
    }
}

impl Recoverer {
    /// Returns a name for a subscription, used in queries to publishers.
    fn name(&self) -> String {
        format!("{}.{}", self.session.zid(), self.names.fetch_add(1, Ordering::Relaxed))
    }

    /// Reports to a publisher that the subscription `by` expects the number `at` next.
    fn confirm(&self, keys: &QueryKeys, by: &str, at: u32) {
        let place = resend::confirmation(&keys.own, by, at);
        let query = self
            .session
            .get(place.clone())
            .congestion_control(CongestionControl::Block)
            .timeout(ANSWER)
            .callback(|_| ())
            .wait();
        if let Err(e) = query {
            tracing::debug!(%place, "cannot confirm messages: {}", super::reason(e));
        }
    }
}

/// Wakes the thread after the last answer.
struct WakeOnDrop(mpsc::Sender<()>);

impl Drop for WakeOnDrop {
    fn drop(&mut self) {
        _ = self.0.send(());
    }
}

/// A request that was sent.
#[derive(Debug)]
struct PendingRequest {
    answers: mpsc::Receiver<Vec<u8>>,
    at: Instant,
}

impl PendingRequest {
    /// Returns the answer; an error if there will be none, `None` if it may still arrive.
    fn answer(&self) -> Option<Result<Vec<u8>, ()>> {
        match self.answers.try_recv() {
            Ok(answer) => Some(Ok(answer)),
            Err(mpsc::TryRecvError::Disconnected) => Some(Err(())),
            Err(mpsc::TryRecvError::Empty) if self.at.elapsed() > ANSWER * 2 => Some(Err(())),
            Err(mpsc::TryRecvError::Empty) => None,
        }
    }
}

/// Keys of the queries to a publisher.
#[derive(Clone, Debug)]
struct QueryKeys {
    own: String,
    of_advanced: String,
    /// Whether to query it as an advanced publisher of zenoh-ext. Alternates until it has answered.
    advanced: bool,
}
