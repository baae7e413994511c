//! Subscriptions, and what comes for them.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, PoisonError};
use std::time::{Duration, Instant};

use rondel_event::{Timestamp, TopicId};

use super::connection::{Connection, lock_until};
use super::outgoing::Asked;
use super::{Qos, SubscriptionSettings, packet, topic};
use crate::adapter::Sample;

/// How long the broker may take to answer a subscription.
const ANSWER: Duration = Duration::from_secs(10);

/// What a subscription is told.
pub(super) trait Deliver: Send {
    fn receive(&self, topic: TopicId, samples: &[Sample<'_>]);
    fn idle(&self);
}

/// What a subscription has seen.
#[derive(Debug, Default)]
pub(super) struct Seen {
    pub(super) received: AtomicU64,
    pub(super) empty: AtomicU64,
    pub(super) duplicates: AtomicU64,
    pub(super) refused: AtomicU64,
    retained: AtomicU64,
}

/// Where messages go.
pub(super) struct Route {
    pub(super) filter: String,
    pub(super) qos: Qos,
    pub(super) settings: SubscriptionSettings,
    pub(super) topic: TopicId,
    pub(super) deliver: Box<dyn Deliver>,
    pub(super) seen: Arc<Seen>,
}

pub(super) struct Standing {
    pub(super) key: u64,
    pub(super) route: Route,
    /// Whether the broker was told.
    pub(super) known: bool,
    /// Whether the receiver has got something since it was told that nothing waits.
    pub(super) touched: bool,
}

pub(super) struct Routes {
    pub(super) all: Vec<Standing>,
    next: u64,
    /// Filters of a single topic.
    exact: HashMap<String, usize>,
    /// Messages at quality of service 2 that have come and may come again, a bit for each.
    pub(super) taken: Vec<u64>,
    /// What the broker had kept from an earlier run, and sends before anybody has subscribed.
    early: Vec<Early>,
}

/// A message for whoever will subscribe.
pub(super) struct Early {
    topic: String,
    payload: Vec<u8>,
    arrival: Timestamp,
    message: packet::Publish<'static>,
}

impl Connection {
    /// Hands a message on, and notes how it is to be acknowledged.
    pub(super) fn deliver(
        &self,
        routes: &mut Routes,
        message: &packet::Publish<'_>,
        sample: Sample<'_>,
        answers: &mut Vec<u8>,
    ) {
        let id = message.id;
        let (word, bit) = (usize::from(id / 64), 1 << (id % 64));
        let kind = if message.qos == Qos::ExactlyOnce { packet::PUBREC } else { packet::PUBACK };
        let mut acknowledge = || {
            if message.qos != Qos::AtMostOnce {
                packet::acknowledge(kind, id, answers);
            }
        };
        if message.qos == Qos::ExactlyOnce && routes.taken[word] & bit != 0 {
            return acknowledge();
        }
        let Some(standing) = routes.find(message.topic) else {
            // Of a subscription that was closed; or that is still to come, where the broker has kept messages
            // from an earlier run: they wait here, not acknowledged, so that there are never many.
            if !self.is_kept() {
                acknowledge();
            } else if message.qos != Qos::AtMostOnce {
                let (topic, payload) = (message.topic.to_owned(), message.payload.to_vec());
                routes.early.push(Early {
                    topic,
                    payload,
                    arrival: sample.arrival(),
                    message: packet::Publish { topic: "", payload: &[], ..*message },
                });
            }
            return;
        };
        let seen = &standing.route.seen;
        let filter = &standing.route.filter;
        // Only the first of each kind is spoken of.
        let first = |count: &AtomicU64| count.fetch_add(1, Ordering::Relaxed) == 0;
        if message.duplicate && first(&seen.duplicates) {
            tracing::warn!(topic = %filter, "the broker sends a message once more, which may have come before");
        }
        let counts = standing.route.settings.retained || !message.retained;
        if message.retained && counts && first(&seen.retained) {
            tracing::warn!(
                topic = %filter,
                "a message that the broker had kept (retained) is checked like any other; it may be old"
            );
        }
        if counts && message.payload.is_empty() {
            if first(&seen.empty) {
                tracing::warn!(topic = %filter, "an empty message was published here; there is nothing to check in it");
            }
        } else if counts {
            seen.received.fetch_add(1, Ordering::Relaxed);
            standing.touched = true;
            standing.route.deliver.receive(standing.route.topic, &[sample]);
        }
        if message.qos == Qos::ExactlyOnce {
            routes.taken[word] |= bit;
        }
        acknowledge();
    }

    /// Whether a subscription to this filter could not be told from another one here.
    pub(super) fn meets(&self, filter: &str) -> bool {
        self.routes().all.iter().any(|s| topic::filters_meet(&s.route.filter, filter))
    }

    /// Subscribes; the key of the subscription.
    pub(super) fn subscribe(&self, route: Route) -> Result<u64, String> {
        let (filter, qos) = (route.filter.clone(), route.qos);
        let key = {
            let mut routes = self.routes();
            routes.next += 1;
            let key = routes.next;
            routes.all.push(Standing { key, route, known: false, touched: false });
            routes.index();
            key
        };
        let told = self.ask(&filter, qos);
        let mut routes = self.routes();
        if told.is_err() {
            routes.remove(key);
        } else if let Some(standing) = routes.all.iter_mut().find(|s| s.key == key) {
            standing.known = true;
        }
        if told.is_ok() && !routes.early.is_empty() {
            self.deliver_early(&mut routes, &filter);
        }
        told.map(|()| key)
    }

    /// Hands on what came before there was this subscription.
    fn deliver_early(&self, routes: &mut Routes, filter: &str) {
        let (due, rest) = std::mem::take(&mut routes.early)
            .into_iter()
            .partition(|early| topic::filters_meet(filter, &early.topic));
        routes.early = rest;
        let mut answers = Vec::new();
        for Early { topic, payload, arrival, message } in &due {
            let message = packet::Publish { topic, payload, ..*message };
            self.deliver(routes, &message, Sample::new(payload, None, Some(*arrival)), &mut answers);
        }
        let touched = routes.all.iter_mut().filter_map(|s| std::mem::take(&mut s.touched).then_some(s));
        touched.for_each(|standing| standing.route.deliver.idle());
        let mut out = self.out();
        out.buffer.append(&mut answers);
        out.send();
    }

    fn ask(&self, filter: &str, qos: Qos) -> Result<(), String> {
        let deadline = Instant::now() + ANSWER;
        let mut out = self.out();
        if out.link.is_none() {
            // It is subscribed to as soon as the connection stands again.
            return if self.is_closing() { Err("closed".to_owned()) } else { Ok(()) };
        }
        let id = out.flight.number();
        let one = std::iter::once((filter, qos));
        packet::subscribe(self.version(), id, one, &mut out.buffer);
        out.asked.push((id, Asked::Now(None)));
        out.send();
        let codes = loop {
            let index = out.asked.iter().position(|(asked, _)| *asked == id);
            if let Some(index) = index
                && let Asked::Now(Some(_)) = &out.asked[index].1
            {
                break out.asked.swap_remove(index).1;
            }
            let left = deadline.saturating_duration_since(Instant::now());
            if left.is_zero() || self.is_closing() {
                return Err("the broker does not answer".to_owned());
            }
            out = self.changed.wait_timeout(out, left).unwrap_or_else(PoisonError::into_inner).0;
        };
        let Asked::Now(Some(codes)) = codes else { return Ok(()) };
        match codes.first() {
            Some(&code) if code >= 0x80 => {
                let reason = packet::reason(self.version(), code, "");
                Err(format!("the broker refuses: {reason}"))
            }
            Some(&code) if code < qos as u8 => {
                tracing::warn!(topic = %filter, "the broker grants QoS {code} only, not {}", qos as u8);
                Ok(())
            }
            _ => Ok(()),
        }
    }

    /// Ends a subscription, at most `limit` after the receiver was called. Whether that was possible.
    pub(super) fn unsubscribe(&self, key: u64, limit: Duration) -> bool {
        let Some(mut routes) = lock_until(&self.routes, Instant::now() + limit) else { return false };
        let Some(standing) = routes.remove(key) else { return true };
        drop(routes);
        standing.route.deliver.idle();
        if !self.is_kept()
            && let Some(mut out) = lock_until(&self.out, Instant::now() + limit)
            && out.link.is_some()
        {
            let id = out.flight.number();
            packet::unsubscribe(self.version(), id, &standing.route.filter, &mut out.buffer);
            out.asked.push((id, Asked::Unsubscribe));
            out.send();
        }
        true
    }
}

impl Default for Routes {
    fn default() -> Routes {
        Routes { all: Vec::new(), next: 0, exact: HashMap::new(), taken: vec![0; 1024], early: Vec::new() }
    }
}

impl Routes {
    fn find(&mut self, name: &str) -> Option<&mut Standing> {
        let index = match self.exact.get(name) {
            Some(&index) => index,
            None => self.all.iter().position(|s| topic::filters_meet(&s.route.filter, name))?,
        };
        self.all.get_mut(index)
    }

    fn index(&mut self) {
        let topics = self.all.iter().enumerate().map(|(i, s)| (topic::topics_of(&s.route.filter), i));
        self.exact =
            topics.filter(|(name, _)| topic::is_single(name)).map(|(n, i)| (n.to_owned(), i)).collect();
    }

    fn remove(&mut self, key: u64) -> Option<Standing> {
        let index = self.all.iter().position(|s| s.key == key)?;
        let standing = self.all.remove(index);
        self.index();
        Some(standing)
    }
}
