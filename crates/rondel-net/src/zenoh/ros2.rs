//! ROS 2 over Zenoh in the formats of rmw_zenoh: a node with its subscriptions and publishers.
//!
//! A subscription receives messages of a type with any hash. Messages with another definition of the type are read by
//! the definition from their node, if the receiver wants them, and refused otherwise. Messages kept for later
//! subscriptions are fetched when their publisher is discovered.

pub(super) mod described;
mod publishers;
mod service;
mod subscription;
pub(super) mod types;

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError, mpsc};
use std::time::{Duration, Instant};

use ::zenoh::Wait;
use ::zenoh::liveliness::LivelinessToken;
use rondel_event::TopicId;

use super::envelope::{PublisherId, Ros2Envelope};
use super::publisher::{PublishContext, Publisher, Ros2Metadata};
use super::recovery::{Numbers, Recoverer};
use super::{DeclareError, PublisherSettings, advanced, parse_key};
use crate::adapter::{self, Drops, PublishError, Receiver};
use crate::ros2::qos::Durability;
use crate::ros2::{Endpoint, Entity, Graph, NodeName, Settings, Token, TopicName, keys};

pub use described::DescribedType;
pub use publishers::Ros2Publishers;
pub use service::Ros2ServiceClient;
use subscription::AnnouncedSubscription;
pub use subscription::Ros2Subscription;
use types::{FurtherTypes, OtherPublisher};

/// A node of ROS 2 on a Zenoh session. Dropping it removes it from the graph; its subscriptions and publishers remain.
#[derive(Debug)]
pub struct Ros2Node {
    session: ::zenoh::Session,
    domain: u32,
    name: NodeName,
    recoverer: Arc<Recoverer>,
    publish_context: PublishContext,
    /// Number of the next endpoint.
    next: AtomicU64,
    _token: LivelinessToken,
}

impl Ros2Node {
    pub(super) fn join(
        session: &::zenoh::Session,
        settings: &Settings,
        recoverer: &Arc<Recoverer>,
        publish_context: PublishContext,
    ) -> Result<Ros2Node, DeclareError> {
        let (domain, name) = (settings.domain, settings.node.clone());
        let token = token(session, domain, &name, 0, Entity::Node);
        tracing::info!(node = %name, domain, "joined ROS 2 over Zenoh");
        Ok(Ros2Node {
            _token: declare_token(session, &token)?,
            session: session.clone(),
            domain,
            name,
            recoverer: Arc::clone(recoverer),
            publish_context,
            next: AtomicU64::new(1),
        })
    }

    /// Subscribes to a topic, or to all topics that match one with parameters. `receiver` gets the payloads in CDR with
    /// the id `topic`. If the endpoint has a hash, messages with another one are counted and not delivered, unless the
    /// receiver [wants them](Receiver::wants_types).
    ///
    /// # Errors
    /// [`DeclareError`]
    pub fn subscribe<R: Receiver + ?Sized>(
        &self,
        endpoint: &Endpoint,
        topic: TopicId,
        receiver: Arc<R>,
    ) -> Result<Ros2Subscription, DeclareError> {
        let endpoint = Endpoint { qos: endpoint.qos.on_zenoh(), ..endpoint.clone() };
        let Endpoint { topic: name, message_type, hash, qos } = &endpoint;
        let key = keys::subscription_key(self.domain, name, message_type);
        let types = receiver.wants_types(topic).then(Arc::<FurtherTypes>::default);
        let envelope =
            Ros2Envelope::new(name.as_str(), hash.as_ref().map(ToString::to_string), types.clone());
        let numbers = Numbers::new(&self.recoverer, name.to_string(), topic, Arc::clone(&receiver), types);
        let wants_history = qos.durability == Durability::TransientLocal;
        let token = self.token(Entity::Subscription(endpoint.clone()));
        Ros2Subscription::declare(
            &self.session,
            AnnouncedSubscription { domain: self.domain, key: parse_key(&key)?, token, wants_history },
            topic,
            receiver,
            numbers,
            Arc::new(envelope),
        )
    }

    /// Declares a publisher on a topic, of payloads in CDR. With the durability `transient_local`, it keeps `depth`
    /// messages for later subscriptions.
    ///
    /// # Errors
    /// [`DeclareError`]
    pub fn publisher(&self, endpoint: &Endpoint) -> Result<Ros2Publisher, DeclareError> {
        let endpoint = Endpoint { qos: endpoint.qos.on_zenoh(), ..endpoint.clone() };
        let Endpoint { topic, message_type, hash, qos } = &endpoint;
        let key = keys::data_key(self.domain, topic, message_type, hash.as_ref());
        let token = self.token(Entity::Publisher(endpoint.clone()));
        let keeps = qos.durability == Durability::TransientLocal;
        let metadata = Ros2Metadata { gid: gid(&self.session, token.entity_id), depth: qos.depth };
        let settings = PublisherSettings { numbered: keeps, ..PublisherSettings::default() };
        let context = &self.publish_context;
        let inner = Publisher::declare(&self.session, parse_key(&key)?, &settings, context, Some(metadata))?;
        let mut tokens = Vec::new();
        if keeps {
            let id = inner.id();
            let detection = advanced::token(&key, PublisherId { session: &id.zid(), entity: id.eid() });
            tokens.push(declare_key(&self.session, &detection)?);
        }
        tokens.push(declare_token(&self.session, &token)?);
        Ok(Ros2Publisher { inner, _tokens: tokens })
    }

    /// Returns the publishers in the domain, and keeps watching them.
    ///
    /// # Errors
    /// [`DeclareError`]
    pub fn publishers(&self) -> Result<Ros2Publishers, DeclareError> {
        Ros2Publishers::watch(&self.session, self.domain)
    }

    fn token(&self, entity: Entity) -> Token {
        let number = self.next.fetch_add(1, Ordering::Relaxed);
        token(&self.session, self.domain, &self.name, number, entity)
    }
}

/// A publisher of ROS 2 on Zenoh. Dropping it undeclares it.
#[derive(Debug)]
pub struct Ros2Publisher {
    inner: Publisher,
    _tokens: Vec<LivelinessToken>,
}

impl adapter::Publisher for Ros2Publisher {
    fn publish(&self, payload: &[u8]) -> Result<(), PublishError> {
        self.inner.publish(payload)
    }

    fn offer(&self, payload: &[u8], limit: Duration) -> Result<(), PublishError> {
        self.inner.offer(payload, limit)
    }

    fn is_matched(&self) -> bool {
        self.inner.is_matched()
    }

    fn wait_matched(&self, limit: Duration) -> bool {
        self.inner.wait_matched(limit)
    }

    fn flush(&self, limit: Duration) -> bool {
        self.inner.flush(limit)
    }

    fn unconfirmed(&self) -> Option<u64> {
        self.inner.unconfirmed()
    }

    fn drops(&self) -> Option<Arc<Drops>> {
        self.inner.drops()
    }
}

/// Returns the graph of a domain, as far as tokens arrive within `limit`.
pub(super) fn graph(session: &::zenoh::Session, domain: u32, limit: Duration) -> Result<Graph, DeclareError> {
    let (sender, tokens) = mpsc::channel();
    session
        .liveliness()
        .get(parse_key(&Token::all(domain))?)
        .timeout(limit)
        .callback(move |reply| {
            if let Ok(sample) = reply.result() {
                // The receiver may have stopped waiting.
                _ = sender.send(sample.key_expr().to_string());
            }
        })
        .wait()
        .map_err(network)?;
    let (mut graph, deadline) = (Graph::default(), Instant::now() + limit);
    // Ends when every neighbour has answered.
    while let Ok(key) = tokens.recv_timeout(deadline.saturating_duration_since(Instant::now())) {
        _ = graph.add(&key);
    }
    Ok(graph)
}

fn token(session: &::zenoh::Session, domain: u32, node: &NodeName, entity_id: u64, entity: Entity) -> Token {
    let (session, node) = (session.zid().to_string(), node.clone());
    Token { domain, session, node_id: 0, entity_id, enclave: "/".to_owned(), node, entity }
}

fn declare_token(session: &::zenoh::Session, token: &Token) -> Result<LivelinessToken, DeclareError> {
    declare_key(session, &token.key())
}

fn declare_key(session: &::zenoh::Session, key: &str) -> Result<LivelinessToken, DeclareError> {
    session.liveliness().declare_token(parse_key(key)?).wait().map_err(network)
}

fn network(error: ::zenoh::Error) -> DeclareError {
    DeclareError::Network(format!("cannot join ROS 2 over Zenoh: {}", super::reason(error)))
}

/// Returns the id of a publisher. rmw_zenoh hashes its token; ids are only compared with each other.
fn gid(session: &::zenoh::Session, entity: u64) -> [u8; 16] {
    let entity = u128::from(entity).wrapping_mul(0x9e37_79b9_7f4a_7c15_f39c_c060_5ced_c835);
    (u128::from_le_bytes(session.zid().to_le_bytes()) ^ entity).to_le_bytes()
}

/// Discovered publishers of another type, each counted once.
#[derive(Debug, Default)]
struct Others {
    tokens: Mutex<BTreeSet<String>>,
    count: AtomicU64,
}

/// Limit of remembered tokens of publishers of another type.
const OTHERS: usize = 1024;

impl Others {
    /// Compares a publisher, by its token, with the subscription. Returns it if it has another definition of the type;
    /// counts it if it has another type.
    fn compare(&self, token: &str, expected: &Endpoint) -> Option<OtherPublisher> {
        let Token { node, entity: Entity::Publisher(endpoint), .. } = Token::parse(token)? else {
            return None;
        };
        if !expected.topic.is_met_by(&endpoint.topic) {
            return None;
        }
        let difference = match (&endpoint.hash, &expected.hash) {
            _ if endpoint.message_type != expected.message_type => {
                format!("it has the type {} instead of {}", endpoint.message_type, expected.message_type)
            }
            (Some(hash), Some(wanted)) if hash != wanted => {
                format!("its {} has another definition: {hash} instead of {wanted}", endpoint.message_type)
            }
            _ => return None,
        };
        let is_other_type = endpoint.message_type != expected.message_type;
        let publisher = OtherPublisher { token: token.to_owned(), node, endpoint, difference };
        if is_other_type {
            self.refuse(&publisher, "");
            return None;
        }
        Some(publisher)
    }

    /// Counts a publisher that is not read, and logs the difference and the reason.
    fn refuse(&self, publisher: &OtherPublisher, why: &str) {
        let OtherPublisher { token, node, endpoint, difference } = publisher;
        let mut tokens = self.tokens.lock().unwrap_or_else(PoisonError::into_inner);
        if tokens.len() < OTHERS && tokens.insert(token.clone()) {
            self.count.fetch_add(1, Ordering::Relaxed);
            let topic: &TopicName = &endpoint.topic;
            let why = if why.is_empty() { String::new() } else { format!(", and {why}") };
            tracing::warn!(%topic, %node, "a publisher is not read: {difference}{why}");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ros2::{MessageType, Qos, TypeHash};

    fn endpoint(message_type: &str, digit: &str) -> Endpoint {
        let hash = TypeHash::parse(&format!("RIHS01_{}", digit.repeat(64))).ok();
        let topic = TopicName::parse("/a").unwrap();
        Endpoint { topic, message_type: MessageType::parse(message_type).unwrap(), hash, qos: Qos::DEFAULT }
    }

    #[test]
    fn publishers_of_another_type_are_counted_once() {
        let others = Others::default();
        let expected = endpoint("std_msgs/msg/String", "a");
        let key = |number, message_type: &str, digit: &str| {
            let entity = Entity::Publisher(endpoint(message_type, digit));
            let node = NodeName::parse("n").unwrap();
            let session = "ab".to_owned();
            Token { domain: 0, session, node_id: 0, entity_id: number, enclave: "/".to_owned(), node, entity }
                .key()
        };
        for (key, count) in [
            (key(1, "std_msgs/msg/String", "a"), 0),
            (key(2, "std_msgs/msg/String", ""), 0),
            (key(3, "std_msgs/msg/String", "b"), 1),
            (key(3, "std_msgs/msg/String", "b"), 1),
            (key(4, "std_msgs/msg/Bool", "a"), 2),
            ("@ros2_lv/0/x".to_owned(), 2),
        ] {
            if let Some(publisher) = others.compare(&key, &expected) {
                others.refuse(&publisher, "its node does not describe it");
            }
            assert_eq!(others.count.load(Ordering::Relaxed), count, "{key}");
        }
    }
}
