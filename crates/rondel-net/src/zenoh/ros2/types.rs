//! Types of publishers with another definition than their subscription, by the hashes in their keys.

use std::collections::{BTreeMap, HashMap};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard, mpsc};
use std::time::{Duration, Instant};

use ::zenoh::session::ZenohId;
use rondel_event::{TopicId, TypeIndex};

use super::Others;
use super::described::described;
use crate::adapter::Receiver;
use crate::ros2::{Endpoint, NodeName};
use crate::zenoh::envelope::PublisherId;
use crate::zenoh::recovery::Numbers;

/// Limit of the types of a topic.
const TYPES: usize = 256;
/// Limit of publishers with a recorded type.
const PUBLISHERS: usize = 4096;
/// Time limit for a node to describe a type: it may have just started.
const DESCRIBE: Duration = Duration::from_secs(10);
/// Time limit of one answer.
const ANSWER: Duration = Duration::from_secs(2);
/// Pause before the next request.
const AGAIN: Duration = Duration::from_millis(100);

/// The further types of a subscription.
#[derive(Debug, Default)]
pub(in crate::zenoh) struct FurtherTypes {
    /// Whether some publisher has one.
    any: AtomicBool,
    state: RwLock<State>,
}

#[derive(Debug, Default)]
struct State {
    /// Index of each type, by its hash.
    types: BTreeMap<String, TypeIndex>,
    /// Hash of the type of each publisher.
    publishers: HashMap<u64, String>,
}

impl FurtherTypes {
    fn read(&self) -> RwLockReadGuard<'_, State> {
        self.state.read().unwrap_or_else(PoisonError::into_inner)
    }

    fn write(&self) -> RwLockWriteGuard<'_, State> {
        self.state.write().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the index of the type with this hash.
    pub(in crate::zenoh) fn of_hash(&self, hash: &str) -> TypeIndex {
        self.read().types.get(hash).copied().unwrap_or(TypeIndex::UNREAD)
    }

    /// Records the type of a publisher.
    pub(in crate::zenoh) fn note_publisher(&self, publisher: u64, hash: &str) {
        if self.any.load(Ordering::Relaxed) && self.read().publishers.contains_key(&publisher) {
            return;
        }
        let mut state = self.write();
        if state.publishers.len() < PUBLISHERS {
            state.publishers.insert(publisher, hash.to_owned());
            self.any.store(true, Ordering::Relaxed);
        }
    }

    /// Returns the index of the type of a publisher.
    pub(in crate::zenoh) fn of_publisher(&self, publisher: u64) -> TypeIndex {
        if !self.any.load(Ordering::Relaxed) {
            return TypeIndex::default();
        }
        let state = self.read();
        match state.publishers.get(&publisher) {
            None => TypeIndex::default(),
            Some(hash) => state.types.get(hash).copied().unwrap_or(TypeIndex::UNREAD),
        }
    }

    fn set(&self, hash: String, of_type: TypeIndex) {
        let mut state = self.write();
        if state.types.len() < TYPES {
            state.types.insert(hash, of_type);
        }
    }
}

/// A publisher that keeps messages: its key, session and entity.
type CachingPublisher = (String, ZenohId, u32);

/// A publisher with another definition of the type of its topic.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct OtherPublisher {
    /// Token in the graph.
    pub(super) token: String,
    pub(super) node: NodeName,
    pub(super) endpoint: Endpoint,
    /// Difference between the types.
    pub(super) difference: String,
}

/// Requests the definitions of further types from nodes, on a thread started by the first request.
#[derive(Debug, Default)]
pub(super) struct Resolver {
    sender: Mutex<Option<mpsc::Sender<OtherPublisher>>>,
    /// Publishers that keep messages, by the hash of their type: their messages are fetched once the type is known.
    keeping: Mutex<BTreeMap<String, Vec<CachingPublisher>>>,
    ended: AtomicBool,
}

/// The subscription for which types are resolved.
pub(super) struct Resolving<R: ?Sized> {
    pub(super) session: ::zenoh::Session,
    pub(super) domain: u32,
    pub(super) topic: TopicId,
    pub(super) receiver: Arc<R>,
    pub(super) numbers: Arc<Numbers<R>>,
    pub(super) types: Arc<FurtherTypes>,
    /// Counts the publishers whose types cannot be read.
    pub(super) others: Arc<Others>,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Resolver {
    /// Requests the type of a publisher from its node.
    pub(super) fn ask<R: Receiver + ?Sized>(
        self: &Arc<Self>,
        of: &Arc<Resolving<R>>,
        publisher: OtherPublisher,
    ) {
        let mut sender = lock(&self.sender);
        if sender.is_none() && !self.ended.load(Ordering::Acquire) {
            let (new, publishers) = mpsc::channel();
            let (resolver, of) = (Arc::clone(self), Arc::clone(of));
            let thread = std::thread::Builder::new().name("types".into());
            let run = move || {
                while let Ok(publisher) = publishers.recv() {
                    resolver.resolve(&of, &publisher);
                }
            };
            match thread.spawn(run) {
                Ok(_) => *sender = Some(new),
                Err(error) => tracing::error!("the types of further publishers cannot be requested: {error}"),
            }
        }
        if let Some(sender) = &*sender {
            // The thread may have ended.
            _ = sender.send(publisher);
        }
    }

    fn resolve<R: Receiver + ?Sized>(&self, of: &Resolving<R>, publisher: &OtherPublisher) {
        let OtherPublisher { node, endpoint, .. } = publisher;
        let Some(hash) = endpoint.hash.as_ref().map(ToString::to_string) else { return };
        if of.types.of_hash(&hash) != TypeIndex::UNREAD || self.ended.load(Ordering::Acquire) {
            return;
        }
        let began = Instant::now();
        let schema = loop {
            let found = described(&of.session, of.domain, node, endpoint, Instant::now() + ANSWER);
            let schema = found.map_err(|error| error.to_string());
            match schema.and_then(|schema| schema.map_err(|error| error.to_string())) {
                Ok(schema) => break Ok(schema),
                Err(why) if began.elapsed() >= DESCRIBE || self.ended.load(Ordering::Acquire) => {
                    break Err(why);
                }
                Err(_) => std::thread::sleep(AGAIN),
            }
        };
        let of_type = schema.and_then(|schema| {
            let found = of.receiver.further_type(of.topic, &format!("node {node}"), &schema);
            found.ok_or_else(|| "messages with its definition cannot be decoded".to_owned())
        });
        match of_type {
            Ok(of_type) => {
                of.types.set(hash.clone(), of_type);
                for (key, session, entity) in lock(&self.keeping).remove(&hash).unwrap_or_default() {
                    of.numbers.announce(&key, PublisherId { session: &session, entity });
                }
            }
            Err(_) if self.ended.load(Ordering::Acquire) => {}
            Err(why) => of.others.refuse(publisher, &why),
        }
    }

    /// Records a publisher of a further type that keeps messages. Returns whether its type is already known.
    pub(super) fn keeps(&self, types: &FurtherTypes, hash: &str, keeping: CachingPublisher) -> bool {
        // Held, so that the type does not become known meanwhile.
        let mut all = lock(&self.keeping);
        if types.of_hash(hash) != TypeIndex::UNREAD {
            return true;
        }
        if all.len() < TYPES {
            let of_hash = all.entry(hash.to_owned()).or_default();
            if of_hash.len() < PUBLISHERS {
                of_hash.push(keeping);
            }
        }
        false
    }

    /// Ends the thread, after the current answer.
    pub(super) fn end(&self) {
        self.ended.store(true, Ordering::Release);
        lock(&self.sender).take();
    }
}
