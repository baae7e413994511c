//! The present state of a topic, which can be asked for.
//!
//! A `get` on the key of the topic is answered with one message. Subscribers of Rondel ask when they subscribe, with a
//! parameter: they get each part of the state as a message of the topic, which they tell from others by its attachment.

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

/// The parameter by which a subscriber asks for messages instead of one answer.
const PARTS: &str = "rondel_parts";
/// The attachment of these messages, and of the one that follows the last.
const MARK: &[u8] = b"rondel present";
const END: &[u8] = b"rondel present end";
/// Pauses after which a subscriber asks again, if nobody has answered.
const AGAIN: [Duration; 4] = [
    Duration::from_millis(100),
    Duration::from_millis(200),
    Duration::from_millis(400),
    Duration::from_millis(800),
];
/// The latest messages that are remembered while a subscriber asks, by their hashes: they do not come twice.
const EARLY: usize = 1000;
/// A pause that is ended by something to do.
const FOREVER: Duration = Duration::from_secs(3600);
/// Queries that may wait; further ones are answered with nothing.
const WAITING: usize = 64;
/// How long answers are taken, and how long a subscriber waits for them before it goes on.
const LIMIT: Duration = Duration::from_secs(2);
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
        let (queries, asked) = mpsc::sync_channel::<Query>(WAITING);
        // A thread of its own: who asks may accept nothing.
        let own = key.clone();
        let answer = move || {
            for query in asked {
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
            // Who has left needs no answer.
            _ = query.reply(key, part).attachment(MARK).encoding(Encoding::APPLICATION_JSON).wait();
        }
        _ = query.reply(key, Vec::new()).attachment(END).wait();
        return;
    }
    let mut whole = Vec::new();
    state.whole(&mut whole);
    _ = query.reply(key, whole).encoding(Encoding::APPLICATION_JSON).wait();
}

/// Asks for the present state of the topics that a session subscribes to, until somebody has answered: it takes a moment
/// until a session knows who answers. The first time it asks at once, then on a thread of its own.
#[derive(Debug)]
pub(super) struct Asker(mpsc::Sender<Asked>);

/// A topic about which is asked.
type Asked = Box<dyn Fn(Turn) -> bool + Send>;

/// Which of the times it is that is asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Turn {
    First,
    Again,
    Last,
}

impl Asker {
    pub(super) fn start() -> std::io::Result<Asker> {
        let (sender, asked) = mpsc::channel::<Asked>();
        let ask = move || {
            let mut waiting: VecDeque<(Instant, usize, Asked)> = VecDeque::new();
            loop {
                let due = waiting
                    .front()
                    .map_or(FOREVER, |(due, ..)| due.saturating_duration_since(Instant::now()));
                match asked.recv_timeout(due) {
                    Ok(asked) => waiting.push_back((Instant::now() + AGAIN[0], 0, asked)),
                    Err(mpsc::RecvTimeoutError::Disconnected) => return,
                    Err(mpsc::RecvTimeoutError::Timeout) => {
                        let Some((_, times, asked)) = waiting.pop_front() else { continue };
                        let pause = AGAIN.get(times + 1);
                        let turn = if pause.is_some() { Turn::Again } else { Turn::Last };
                        if !asked(turn)
                            && let Some(pause) = pause
                        {
                            waiting.push_back((Instant::now() + *pause, times + 1, asked));
                            waiting.make_contiguous().sort_by_key(|(due, ..)| *due);
                        }
                    }
                }
            }
        };
        std::thread::Builder::new().name("zenoh ask".to_owned()).spawn(ask)?;
        Ok(Asker(sender))
    }

    /// Asks for the state of a topic and gives its parts to a receiver, as messages, without those that came as messages
    /// of the topic meanwhile. Waits for answers for a limited time: what is published afterwards comes after them.
    pub(super) fn ask<R: Receiver + ?Sized>(
        &self,
        session: &::zenoh::Session,
        key: &KeyExpr<'static>,
        topic: TopicId,
        (receiver, early): (&Arc<R>, Arc<Early>),
    ) {
        let (session, key, receiver) = (session.clone(), key.clone(), Arc::downgrade(receiver));
        let asked = move |turn: Turn| {
            let Some(receiver) = receiver.upgrade() else { return true };
            let wait = if turn == Turn::First { WAIT } else { Duration::ZERO };
            early.is_claimed() || ask(&session, &key, topic, (receiver, Arc::clone(&early)), (turn, wait))
        };
        if !asked(Turn::First) {
            // Without the thread nobody asks again.
            _ = self.0.send(Box::new(asked));
        }
    }
}

/// Messages of a topic that came while its state was asked for, by their hashes.
#[derive(Debug, Default)]
pub(super) struct Early {
    /// The number of queries so far.
    queries: AtomicU64,
    /// The number of the query whose answers are taken, from 1; 0 without one. Answers to one that was repeated, as nobody
    /// answered in time, would say the same again, and of a later time.
    claimed: AtomicU64,
    /// Whether messages are not noted any more.
    is_over: AtomicBool,
    /// The latest ones.
    seen: Mutex<VecDeque<u64>>,
}

impl Early {
    fn is_claimed(&self) -> bool {
        self.claimed.load(Ordering::Relaxed) > 0
    }

    /// Whether the answers to this query are taken.
    fn claims(&self, query: u64) -> bool {
        let claimed = self.claimed.compare_exchange(0, query, Ordering::Relaxed, Ordering::Relaxed);
        claimed.is_ok() || claimed == Err(query)
    }

    fn seen(&self) -> MutexGuard<'_, VecDeque<u64>> {
        self.seen.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Notes a message that came.
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

/// A query that lasts until everybody has answered it, or its time is over.
struct Asking {
    early: Arc<Early>,
    number: u64,
    turn: Turn,
    /// Wakes who waits for the end.
    _answering: mpsc::Sender<()>,
}

impl Drop for Asking {
    fn drop(&mut self) {
        let claimed = self.early.claimed.load(Ordering::Relaxed);
        if claimed == self.number || claimed == 0 && self.turn == Turn::Last {
            self.early.end();
        }
    }
}

/// Hashes a payload, eight bytes at a time.
fn hash(payload: &[u8]) -> u64 {
    let add = |sum: u64, word: u64| (sum.rotate_left(23) ^ word).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    let (words, rest) = payload.as_chunks::<8>();
    let sum = words.iter().fold(payload.len() as u64, |sum, word| add(sum, u64::from_le_bytes(*word)));
    rest.iter().fold(sum, |sum, byte| add(sum, u64::from(*byte)))
}

/// Asks, and waits for answers up to a limit. Returns whether somebody has answered by then.
fn ask<R: Receiver + ?Sized>(
    session: &::zenoh::Session,
    key: &KeyExpr<'static>,
    topic: TopicId,
    (receiver, early): (Arc<R>, Arc<Early>),
    (turn, wait): (Turn, Duration),
) -> bool {
    let (wants_names, known) = (receiver.wants_names(topic), Arc::clone(&early));
    let number = early.queries.fetch_add(1, Ordering::Relaxed) + 1;
    // Zenoh may call from several threads.
    let one_by_one = Mutex::new(());
    // Dropped with the callback, once everybody has answered.
    let (_answering, answered) = mpsc::channel::<()>();
    let asking = Asking { early, number, turn, _answering };
    let asked = session
        .get(format!("{key}?{PARTS}"))
        .target(QueryTarget::All)
        .consolidation(ConsolidationMode::None)
        .timeout(LIMIT)
        .callback(move |reply| {
            let Ok(sample) = reply.result() else { return };
            // A storage that holds the topic is not meant.
            let mark = sample.attachment().map(ZBytes::to_bytes);
            let is_meant = matches!(mark.as_deref(), Some(MARK | END)) && asking.early.claims(number);
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
            if asking.early.seen().contains(&hash(&payload)) {
                return;
            }
            adapter::trace_message("received", sample.key_expr().as_str(), &payload);
            receiver.receive(topic, &[Sample::new(&payload, None, None).with_name(name)]);
            if receiver.wants_idle() {
                receiver.idle();
            }
        })
        .wait();
    match asked {
        Ok(()) => _ = answered.recv_timeout(wait),
        Err(error) => {
            tracing::debug!(topic = %key, "cannot ask for the present state: {}", super::reason(error));
        }
    }
    known.is_claimed()
}
