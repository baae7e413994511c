//! The present state of a topic, which can be asked for.
//!
//! A `get` on the key of the topic is answered with one message. Subscribers of Rondel ask when they subscribe, with a
//! parameter: they get each part of the state as a message of the topic, which they tell from others by its attachment.

use std::sync::{Arc, Mutex, PoisonError, mpsc};
use std::time::Duration;

use ::zenoh::Wait;
use ::zenoh::bytes::Encoding;
use ::zenoh::key_expr::KeyExpr;
use ::zenoh::query::{ConsolidationMode, Query, QueryTarget, Queryable};
use rondel_event::TopicId;

use super::DeclareError;
use super::publisher::PublishGate;
use crate::adapter::{self, Receiver, Sample};

/// The parameter by which a subscriber asks for messages instead of one answer.
const PARTS: &str = "rondel_parts";
/// The attachment of these messages.
const MARK: &[u8] = b"rondel present";
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
        return;
    }
    let mut whole = Vec::new();
    state.whole(&mut whole);
    _ = query.reply(key, whole).encoding(Encoding::APPLICATION_JSON).wait();
}

/// Asks for the present state of a topic, and gives it to a receiver as messages. Waits for it for a limited time: what is
/// published afterwards comes after it.
pub(super) fn ask<R: Receiver + ?Sized>(
    session: &::zenoh::Session,
    key: &KeyExpr<'static>,
    topic: TopicId,
    receiver: &Arc<R>,
) {
    let (receiver, wants_names) = (Arc::clone(receiver), receiver.wants_names(topic));
    // Zenoh may call from several threads.
    let turn = Mutex::new(());
    // Dropped with the callback, once everybody has answered.
    let (answering, answered) = mpsc::channel::<()>();
    let asked = session
        .get(format!("{key}?{PARTS}"))
        .target(QueryTarget::All)
        .consolidation(ConsolidationMode::None)
        .timeout(LIMIT)
        .callback(move |reply| {
            let _ = &answering;
            let Ok(sample) = reply.result() else { return };
            // A storage that holds the topic is not meant.
            if sample.attachment().is_none_or(|mark| mark.to_bytes() != MARK) {
                return;
            }
            let name = match wants_names {
                true => match receiver.number(topic, sample.key_expr().as_str()) {
                    None => return,
                    number => number,
                },
                false => None,
            };
            let _turn = turn.lock().unwrap_or_else(PoisonError::into_inner);
            let payload = sample.payload().to_bytes();
            adapter::trace_message("received", sample.key_expr().as_str(), &payload);
            receiver.receive(topic, &[Sample::new(&payload, None, None).with_name(name)]);
            if receiver.wants_idle() {
                receiver.idle();
            }
        })
        .wait();
    match asked {
        Ok(()) => _ = answered.recv_timeout(WAIT),
        Err(error) => {
            tracing::debug!(topic = %key, "cannot ask for the present state: {}", super::reason(error));
        }
    }
}
