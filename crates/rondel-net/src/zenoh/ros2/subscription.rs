//! Subscriptions of ROS 2 on Zenoh.

use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::time::Duration;

use ::zenoh::Wait;
use ::zenoh::key_expr::KeyExpr;
use ::zenoh::liveliness::LivelinessToken;
use ::zenoh::pubsub::Subscriber;
use ::zenoh::sample::{Sample, SampleKind};
use rondel_event::TopicId;

use super::types::{Resolver, Resolving};
use super::{Others, declare_token, network};
use crate::adapter::{self, Problems, Receiver};
use crate::ros2::{Token, keys};
use crate::zenoh::envelope::{PublisherId, Ros2Envelope, publisher_of};
use crate::zenoh::recovery::Numbers;
use crate::zenoh::{DeclareError, Subscription, advanced, parse_key};

/// A subscription of ROS 2 on Zenoh. Dropping it closes it.
#[derive(Debug)]
pub struct Ros2Subscription {
    inner: Subscription,
    envelope: Arc<Ros2Envelope>,
    others: Arc<Others>,
    resolver: Arc<Resolver>,
    /// Until the subscription is closed.
    announced: Mutex<Option<Announced>>,
}

/// Declarations of a subscription in the graph.
#[derive(Debug)]
struct Announced {
    /// Token of a subscription to one topic.
    token: Option<LivelinessToken>,
    /// Subscribers to the tokens of publishers.
    watchers: Vec<Subscriber<()>>,
}

/// A subscription as the graph shows it.
pub(super) struct AnnouncedSubscription {
    pub(super) domain: u32,
    pub(super) key: KeyExpr<'static>,
    pub(super) token: Token,
    /// Whether messages kept for later subscriptions are fetched.
    pub(super) wants_history: bool,
}

impl Ros2Subscription {
    pub(super) fn declare<R: Receiver + ?Sized>(
        session: &::zenoh::Session,
        announced: AnnouncedSubscription,
        topic: TopicId,
        receiver: Arc<R>,
        numbers: Arc<Numbers<R>>,
        envelope: Arc<Ros2Envelope>,
    ) -> Result<Ros2Subscription, DeclareError> {
        let AnnouncedSubscription { domain, key, token, wants_history } = announced;
        let mut watchers = Vec::new();
        let mut watch = |expression: &str, callback: Box<dyn Fn(&str) + Send + Sync>| {
            let callback = move |sample: Sample| {
                if sample.kind() == SampleKind::Put {
                    callback(sample.key_expr().as_str());
                }
            };
            let liveliness = session.liveliness();
            let watcher = liveliness.declare_subscriber(parse_key(expression)?).history(true);
            watchers.push(watcher.callback(callback).wait().map_err(network)?);
            Ok::<(), DeclareError>(())
        };
        let (others, resolver) = (Arc::<Others>::default(), Arc::<Resolver>::default());
        let types = envelope.types();
        let resolving = types.as_ref().map(|types| {
            Arc::new(Resolving {
                session: session.clone(),
                domain,
                topic,
                receiver: Arc::clone(&receiver),
                numbers: Arc::clone(&numbers),
                types: Arc::clone(types),
                others: Arc::clone(&others),
            })
        });
        let expected = token.entity.endpoint().cloned();
        if let Some(expected) = &expected {
            let (others, compared, resolver) = (Arc::clone(&others), expected.clone(), Arc::clone(&resolver));
            let compare = move |token: &str| {
                let Some(publisher) = others.compare(token, &compared) else { return };
                match &resolving {
                    Some(resolving) => resolver.ask(resolving, publisher),
                    None => others.refuse(&publisher, ""),
                }
            };
            watch(&Token::publishers(domain, &expected.topic), Box::new(compare))?;
        }
        if wants_history {
            let hash = expected.and_then(|endpoint| endpoint.hash).map(|hash| hash.to_string());
            let announced: Weak<Numbers<R>> = Arc::downgrade(&numbers);
            let resolver = Arc::clone(&resolver);
            let announce = move |token: &str| {
                let (Some((key, session, entity)), Some(numbers)) =
                    (advanced::detected(token), announced.upgrade())
                else {
                    return;
                };
                if hash.as_ref().is_some_and(|hash| keys::contradicts(key, hash)) {
                    let Some(types) = &types else { return };
                    let other = keys::hash_of(key);
                    types.note_publisher(publisher_of(&session, entity), other);
                    if !resolver.keeps(types, other, (key.to_owned(), session, entity)) {
                        return;
                    }
                }
                numbers.announce(key, PublisherId { session: &session, entity });
            };
            watch(&advanced::detection(key.as_str()), Box::new(announce))?;
        }
        let (opened, begun) = (Arc::clone(&envelope), Arc::clone(&numbers));
        let inner = Subscription::declare(session, key, topic, receiver, numbers, opened)?;
        begun.begin();
        // The graph cannot show a name with parameters as a topic.
        let is_one = token.entity.endpoint().is_none_or(|endpoint| endpoint.topic.pattern().is_none());
        let token = is_one.then(|| declare_token(session, &token)).transpose()?;
        Ok(Ros2Subscription {
            inner,
            envelope,
            others,
            resolver,
            announced: Mutex::new(Some(Announced { token, watchers })),
        })
    }

    /// Returns the number of messages received so far.
    pub fn received(&self) -> u64 {
        self.inner.received()
    }
}

impl adapter::Subscription for Ros2Subscription {
    fn drain(&self, quiet: Duration, limit: Duration) -> bool {
        self.inner.drain(quiet, limit)
    }

    fn close(&self, limit: Duration) -> bool {
        let announced = self.announced.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(Announced { token, watchers }) = announced {
            // Undeclaring fails if the session is already closed, which ends all watchers anyway.
            watchers.into_iter().for_each(|watcher| _ = watcher.undeclare().wait());
            token.into_iter().for_each(|token| _ = token.undeclare().wait());
        }
        self.resolver.end();
        self.inner.close(limit)
    }

    fn problems(&self) -> Problems {
        let Problems { empty, lost, .. } = self.inner.problems();
        let incompatible = self.others.count.load(Ordering::Relaxed);
        Problems { empty, lost, incompatible, ..self.envelope.problems() }
    }
}
