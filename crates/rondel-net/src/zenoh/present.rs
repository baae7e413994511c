//! The present state of a topic, which others can query.
//!
//! A `get` on the key of the topic is answered with one message. Subscribers of Rondel send a query when they
//! subscribe, with a parameter: they get each part of the state as a message of the topic, which is marked by its
//! attachment.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, mpsc};
use std::time::{Duration, Instant};

use ::zenoh::Wait;
use ::zenoh::bytes::{Encoding, ZBytes};
use ::zenoh::key_expr::KeyExpr;
use ::zenoh::query::{ConsolidationMode, Query, QueryTarget, Queryable};
use rondel_event::TopicId;

use super::DeclareError;
use super::publisher::PublishGate;
use crate::adapter::{self, Receiver, Sample};

/// Parameter that requests messages instead of one answer.
const PARTS: &str = "rondel_parts";
/// Attachment of these messages.
const MARK: &[u8] = b"rondel present";
/// Attachment of the message after the last one.
const END: &[u8] = b"rondel present end";
/// Pauses before a query is repeated if there was no answer.
const AGAIN: [Duration; 4] = [
    Duration::from_millis(100),
    Duration::from_millis(200),
    Duration::from_millis(400),
    Duration::from_millis(800),
];
/// Limit of the messages remembered during a query, by their hashes: they are not delivered twice.
const EARLY: usize = 1000;
/// Timeout of a pause that ends with the next request.
const FOREVER: Duration = Duration::from_secs(3600);
/// Limit of waiting queries; further ones get no answer.
const WAITING: usize = 64;
/// Time for which answers are accepted.
const LIMIT: Duration = Duration::from_secs(2);
/// Time for which a subscriber waits for the answers of its first query.
const WAIT: Duration = Duration::from_millis(500);

/// The present state of a topic.
pub trait State: Send + Sync {
    /// Appends the whole state as one message.
    fn whole(&self, out: &mut Vec<u8>);

    /// Calls a function with each part of the state, as a message of the topic.
    fn parts(&self, visit: &mut dyn FnMut(&[u8]));
}

/// Answers for a topic until it is dropped.
#[derive(Debug)]
pub struct Answering {
    _queryable: Queryable<()>,
}

impl Answering {
    pub(super) fn declare(
        session: &::zenoh::Session,
        key: KeyExpr<'static>,
        gate: Arc<PublishGate>,
        state: Arc<dyn State>,
    ) -> Result<Answering, DeclareError> {
        let failed =
            |reason: String| DeclareError::Network(format!("cannot answer on Zenoh key '{key}': {reason}"));
        let (queries, received) = mpsc::sync_channel::<Query>(WAITING);
        // Separate thread: the querying subscriber may accept nothing.
        let own = key.clone();
        let answer = move || {
            for query in received {
                // A query that cannot be answered ends without an answer.
                _ = gate.answer(|| reply(&query, &own, &*state));
            }
        };
        std::thread::Builder::new()
            .name("zenoh state".to_owned())
            .spawn(answer)
            .map_err(|error| failed(error.to_string()))?;
        let queryable = session
            .declare_queryable(key.clone())
            .complete(true)
            .callback(move |query| _ = queries.try_send(query))
            .wait()
            .map_err(|error| failed(super::reason(error)))?;
        Ok(Answering { _queryable: queryable })
    }
}

fn reply(query: &Query, key: &KeyExpr<'static>, state: &dyn State) {
    if query.parameters().get(PARTS).is_some() {
        let mut parts = Vec::new();
        state.parts(&mut |part| parts.push(part.to_vec()));
        for part in parts {
            // A subscriber that has left needs no answer.
            _ = query.reply(key, part).attachment(MARK).encoding(Encoding::APPLICATION_JSON).wait();
        }
        _ = query.reply(key, Vec::new()).attachment(END).wait();
        return;
    }
    let mut whole = Vec::new();
    state.whole(&mut whole);
    _ = query.reply(key, whole).encoding(Encoding::APPLICATION_JSON).wait();
}

/// Queries the present state of the topics that a session subscribes to, until there is an answer: a session takes some
/// time to discover the answering ones. The first query is sent at once, others by a separate thread.
#[derive(Debug)]
pub(super) struct StateQuerier(mpsc::Sender<Request>);

/// Query of a topic; returns whether no further one is needed.
type Request = Box<dyn Fn(Turn) -> bool + Send>;

/// Position of a query among its repetitions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Turn {
    First,
    Again,
    Last,
}

impl StateQuerier {
    pub(super) fn start() -> std::io::Result<StateQuerier> {
        let (sender, requests) = mpsc::channel::<Request>();
        let run = move || {
            let mut waiting: VecDeque<(Instant, usize, Request)> = VecDeque::new();
            loop {
                let due = waiting
                    .front()
                    .map_or(FOREVER, |(due, ..)| due.saturating_duration_since(Instant::now()));
                match requests.recv_timeout(due) {
                    Ok(request) => waiting.push_back((Instant::now() + AGAIN[0], 0, request)),
                    Err(mpsc::RecvTimeoutError::Disconnected) => return,
                    Err(mpsc::RecvTimeoutError::Timeout) => {
                        let Some((_, times, request)) = waiting.pop_front() else { continue };
                        let pause = AGAIN.get(times + 1);
                        let turn = if pause.is_some() { Turn::Again } else { Turn::Last };
                        if !request(turn)
                            && let Some(pause) = pause
                        {
                            waiting.push_back((Instant::now() + *pause, times + 1, request));
                            waiting.make_contiguous().sort_by_key(|(due, ..)| *due);
                        }
                    }
                }
            }
        };
        std::thread::Builder::new().name("zenoh ask".to_owned()).spawn(run)?;
        Ok(StateQuerier(sender))
    }

    /// Queries the state of a topic and delivers its parts to a receiver as messages, except those received as messages
    /// of the topic meanwhile. Waits for answers for a limited time: messages published afterwards come after them.
    pub(super) fn query<R: Receiver + ?Sized>(
        &self,
        session: &::zenoh::Session,
        key: &KeyExpr<'static>,
        topic: TopicId,
        receiver: &Arc<R>,
        early: Arc<EarlyMessages>,
    ) {
        let (session, key, receiver) = (session.clone(), key.clone(), Arc::downgrade(receiver));
        let request = move |turn: Turn| {
            let Some(receiver) = receiver.upgrade() else { return true };
            let wait = if turn == Turn::First { WAIT } else { Duration::ZERO };
            early.is_claimed() || query(&session, &key, topic, receiver, Arc::clone(&early), turn, wait)
        };
        if !request(Turn::First) {
            // Without the thread, the query is not repeated.
            _ = self.0.send(Box::new(request));
        }
    }
}

/// Hashes of the messages of a topic received while its state is queried.
#[derive(Debug, Default)]
pub(super) struct EarlyMessages {
    /// Number of queries so far.
    queries: AtomicU64,
    /// Number of the query whose answers are used, from 1; 0 without one. Answers to a repeated query would have the
    /// same state, at a later time.
    claimed: AtomicU64,
    /// Whether messages are no longer recorded.
    is_over: AtomicBool,
    /// Hashes of the latest messages.
    seen: Mutex<VecDeque<u64>>,
}

impl EarlyMessages {
    fn is_claimed(&self) -> bool {
        self.claimed.load(Ordering::Relaxed) > 0
    }

    /// Whether the answers to this query are used.
    fn claims(&self, query: u64) -> bool {
        let claimed = self.claimed.compare_exchange(0, query, Ordering::Relaxed, Ordering::Relaxed);
        claimed.is_ok() || claimed == Err(query)
    }

    fn seen(&self) -> MutexGuard<'_, VecDeque<u64>> {
        self.seen.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Records a received message.
    #[inline]
    pub(super) fn note(&self, payload: &[u8]) {
        if !self.is_over.load(Ordering::Relaxed) {
            self.insert(payload);
        }
    }

    #[cold]
    fn insert(&self, payload: &[u8]) {
        let mut seen = self.seen();
        if seen.len() == EARLY {
            seen.pop_front();
        }
        seen.push_back(hash(payload));
    }

    fn end(&self) {
        self.is_over.store(true, Ordering::Relaxed);
    }
}

/// A query, until all answers are received or its time is over.
struct PendingQuery {
    early: Arc<EarlyMessages>,
    number: u64,
    turn: Turn,
    /// Wakes the waiting thread at the end.
    _answering: mpsc::Sender<()>,
}

impl Drop for PendingQuery {
    fn drop(&mut self) {
        let claimed = self.early.claimed.load(Ordering::Relaxed);
        if claimed == self.number || claimed == 0 && self.turn == Turn::Last {
            self.early.end();
        }
    }
}

/// Returns a hash of a payload, computed eight bytes at a time.
fn hash(payload: &[u8]) -> u64 {
    let add = |sum: u64, word: u64| (sum.rotate_left(23) ^ word).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    let (words, rest) = payload.as_chunks::<8>();
    let sum = words.iter().fold(payload.len() as u64, |sum, word| add(sum, u64::from_le_bytes(*word)));
    rest.iter().fold(sum, |sum, byte| add(sum, u64::from(*byte)))
}

/// Sends a query, and waits for answers up to a limit. Returns whether there was an answer by then.
fn query<R: Receiver + ?Sized>(
    session: &::zenoh::Session,
    key: &KeyExpr<'static>,
    topic: TopicId,
    receiver: Arc<R>,
    early: Arc<EarlyMessages>,
    turn: Turn,
    wait: Duration,
) -> bool {
    let (wants_names, known) = (receiver.wants_names(topic), Arc::clone(&early));
    let number = early.queries.fetch_add(1, Ordering::Relaxed) + 1;
    // Zenoh may call from several threads.
    let one_by_one = Mutex::new(());
    // Dropped with the callback, after all answers.
    let (_answering, answered) = mpsc::channel::<()>();
    let pending = PendingQuery { early, number, turn, _answering };
    let sent = session
        .get(format!("{key}?{PARTS}"))
        .target(QueryTarget::All)
        .consolidation(ConsolidationMode::None)
        .timeout(LIMIT)
        .callback(move |reply| {
            let Ok(sample) = reply.result() else { return };
            // Storages also answer; their answers have no mark.
            let mark = sample.attachment().map(ZBytes::to_bytes);
            let is_meant = matches!(mark.as_deref(), Some(MARK | END)) && pending.early.claims(number);
            if !is_meant || mark.as_deref() == Some(END) {
                return;
            }
            let name = match wants_names {
                true => match receiver.number(topic, sample.key_expr().as_str()) {
                    None => return,
                    number => number,
                },
                false => None,
            };
            let payload = sample.payload().to_bytes();
            let _turn = one_by_one.lock().unwrap_or_else(PoisonError::into_inner);
            if pending.early.seen().contains(&hash(&payload)) {
                return;
            }
            adapter::trace_message("received", sample.key_expr().as_str(), &payload);
            receiver.receive(topic, &[Sample::new(&payload, None, None).with_name(name)]);
            if receiver.wants_idle() {
                receiver.idle();
            }
        })
        .wait();
    match sent {
        Ok(()) => _ = answered.recv_timeout(wait),
        Err(error) => {
            tracing::debug!(topic = %key, "cannot query the present state: {}", super::reason(error));
        }
    }
    known.is_claimed()
}
