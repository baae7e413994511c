//! Subscriptions of a connection and delivery of their messages.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, PoisonError};
use std::time::{Duration, Instant};

use rondel_event::{Timestamp, TopicId};

use super::connection::Connection;
use super::held::Held;
use super::outgoing::PendingRequest;
use super::{Qos, SubscriptionSettings, packet, topic};
use crate::adapter::{Sample, trace_message};
use crate::attempts::lock_until;

/// Time limit for the broker's answer to a subscription.
const ANSWER: Duration = Duration::from_secs(10);
/// Time within which a broker that has sent something counts as busy: its answer may follow the messages of a kept
/// session.
const BUSY: Duration = Duration::from_secs(1);

/// Receiver of the messages of a subscription, without its type.
pub(super) trait Deliver: Send {
    /// Receives samples of a subscription, and the topic of their message.
    fn receive(&self, topic: TopicId, name: &str, samples: &[Sample<'_>]);
    fn idle(&self);
    fn missed(&self, topic: TopicId, from: Timestamp, until: Option<Timestamp>);
}

/// Counters of one subscription.
#[derive(Debug, Default)]
pub(super) struct SubscriptionCounts {
    pub(super) received: AtomicU64,
    pub(super) empty: AtomicU64,
    pub(super) duplicates: AtomicU64,
    pub(super) refused: AtomicU64,
    retained: AtomicU64,
}

/// A topic filter and the receiver of its messages.
pub(super) struct Route {
    pub(super) filter: String,
    pub(super) qos: Qos,
    pub(super) settings: SubscriptionSettings,
    pub(super) topic: TopicId,
    pub(super) deliver: Box<dyn Deliver>,
    pub(super) counts: Arc<SubscriptionCounts>,
}

/// A route with its state.
pub(super) struct RouteEntry {
    pub(super) key: u64,
    pub(super) route: Route,
    /// Whether the broker has the subscription.
    pub(super) known: bool,
    /// Whether the receiver got a message since its last `idle`.
    pub(super) touched: bool,
}

/// All routes of a connection.
pub(super) struct Routes {
    pub(super) all: Vec<RouteEntry>,
    next: u64,
    /// Index into `all` of filters without wildcards, by topic.
    exact: HashMap<String, usize>,
    /// Packet ids of QoS 2 messages that were delivered and not released yet, as a bit set.
    pub(super) taken: Vec<u64>,
    /// Messages that the broker queued for an earlier run and sends before the subscription exists.
    early: Vec<EarlyMessage>,
    /// Whether messages wait until all subscriptions exist, so that they keep their order.
    pub(super) waits: bool,
    /// Number of messages without a subscription.
    unrouted: u64,
    /// Answers held back until a snapshot, if they are.
    pub(super) held: Option<Held>,
}

/// A message that waits for its subscription.
pub(super) struct EarlyMessage {
    topic: String,
    payload: Vec<u8>,
    arrival: Timestamp,
    message: packet::Publish<'static>,
}

impl Connection {
    /// Delivers a message and appends its acknowledgement to `answers`.
    pub(super) fn deliver(
        &self,
        routes: &mut Routes,
        message: &packet::Publish<'_>,
        sample: Sample<'_>,
        answers: &mut Vec<u8>,
    ) {
        trace_message("received", message.topic, message.payload);
        let id = message.id;
        let (word, bit) = (usize::from(id / 64), 1 << (id % 64));
        let kind = if message.qos == Qos::ExactlyOnce { packet::PUBREC } else { packet::PUBACK };
        let mut acknowledge = |held: &mut Option<Held>| match held {
            _ if message.qos == Qos::AtMostOnce => {}
            Some(held) => held.push(kind, id),
            None => packet::acknowledge(kind, id, answers),
        };
        if message.qos == Qos::ExactlyOnce && routes.taken[word] & bit != 0
            || routes.held.as_mut().is_some_and(|held| held.is_repeat(message))
        {
            return acknowledge(&mut routes.held);
        }
        let is_held = routes.held.is_some();
        if routes.waits && message.qos != Qos::AtMostOnce {
            return routes.keep(message, &sample);
        }
        let Some(index) = routes.find(message.topic) else {
            // The subscription was closed, or it does not exist yet and the message is from the session of an earlier
            // run. Messages of the second kind wait here unacknowledged, which limits their number.
            if !self.is_persistent() {
                routes.unrouted += 1;
                if routes.unrouted == 1 {
                    tracing::debug!(
                        topic = %message.topic,
                        "a message matches no open subscription and is ignored; further ones are only counted"
                    );
                }
                acknowledge(&mut routes.held);
            } else if message.qos != Qos::AtMostOnce {
                routes.keep(message, &sample);
            }
            return;
        };
        let entry = &mut routes.all[index];
        let counts = &entry.route.counts;
        let filter = &entry.route.filter;
        // Only the first of each kind is logged.
        let first = |count: &AtomicU64| count.fetch_add(1, Ordering::Relaxed) == 0;
        // If answers are held back, repeated messages have been recognised.
        if message.duplicate && !is_held && first(&counts.duplicates) {
            tracing::warn!(
                topic = %filter,
                "the broker sent a message again (DUP flag) that may have been received before; it is processed \
                 again; further ones are only counted"
            );
        }
        let is_wanted = entry.route.settings.retained || !message.retained;
        if message.retained && first(&counts.retained) {
            if is_wanted {
                tracing::warn!(
                    topic = %filter,
                    "a retained message, which may be old, is processed like any other; further ones are only counted"
                );
            } else {
                tracing::debug!(
                    topic = %filter,
                    "a retained message is ignored, as the subscription excludes them; further ones are only counted"
                );
            }
        }
        if is_wanted && message.payload.is_empty() && !entry.route.settings.empty {
            if first(&counts.empty) {
                tracing::warn!(
                    topic = %filter,
                    "a message without a payload was received and is ignored; further ones are only counted"
                );
            }
        } else if is_wanted {
            counts.received.fetch_add(1, Ordering::Relaxed);
            entry.touched = true;
            entry.route.deliver.receive(entry.route.topic, message.topic, &[sample]);
        }
        if message.qos == Qos::ExactlyOnce {
            routes.taken[word] |= bit;
        }
        if let Some(held) = &mut routes.held {
            held.note(message);
        }
        acknowledge(&mut routes.held);
    }

    /// Whether a topic of this filter already belongs to a subscription of this connection.
    pub(super) fn overlaps(&self, filter: &str) -> bool {
        self.routes().all.iter().any(|s| topic::filters_meet(&s.route.filter, filter))
    }

    /// Subscribes and returns the key of the subscription.
    pub(super) fn subscribe(&self, route: Route) -> Result<u64, String> {
        let (filter, qos, counts) = (route.filter.clone(), route.qos, Arc::clone(&route.counts));
        let key = {
            let mut routes = self.routes();
            routes.next += 1;
            let key = routes.next;
            routes.all.push(RouteEntry { key, route, known: false, touched: false });
            routes.index();
            // Under the same lock, so that later messages come later.
            if !routes.waits && !routes.early.is_empty() {
                self.deliver_early(&mut routes, |topic| topic::filters_meet(&filter, topic));
            }
            key
        };
        let subscribed = self.request_subscription(&filter, qos, counts);
        let mut routes = self.routes();
        match subscribed {
            Err(_) => _ = routes.remove(key),
            // Otherwise the broker gets it with the next connection.
            Ok(true) => {
                let entry = routes.all.iter_mut().find(|entry| entry.key == key);
                entry.into_iter().for_each(|entry| entry.known = true);
            }
            Ok(false) => {}
        }
        drop(routes);
        self.note_wanted();
        subscribed.map(|_| key)
    }

    /// Delivers the messages that arrived before all subscriptions existed.
    pub(super) fn begin(&self) {
        let routes = &mut *self.routes();
        if std::mem::take(&mut routes.waits) {
            self.deliver_early(routes, |_| true);
        }
    }

    /// Delivers the messages that arrived before their subscription.
    fn deliver_early(&self, routes: &mut Routes, is_due: impl Fn(&str) -> bool) {
        let (due, rest) =
            std::mem::take(&mut routes.early).into_iter().partition(|early| is_due(&early.topic));
        routes.early = rest;
        let due: Vec<EarlyMessage> = due;
        tracing::debug!(count = due.len(), "delivering messages queued for an earlier run");
        let mut answers = Vec::new();
        for EarlyMessage { topic, payload, arrival, message } in &due {
            let message = packet::Publish { topic, payload, ..*message };
            self.deliver(routes, &message, Sample::new(payload, None, Some(*arrival)), &mut answers);
        }
        let touched = routes.all.iter_mut().filter_map(|s| std::mem::take(&mut s.touched).then_some(s));
        touched.for_each(|entry| entry.route.deliver.idle());
        routes.held.iter().for_each(Held::signal);
        let mut out = self.out();
        out.buffer.append(&mut answers);
        self.send(&mut out);
    }

    /// Sends a subscription and waits for the broker's answer. Returns whether there is a connection.
    fn request_subscription(
        &self,
        filter: &str,
        qos: Qos,
        counts: Arc<SubscriptionCounts>,
    ) -> Result<bool, String> {
        let deadline = Instant::now() + ANSWER;
        let mut out = self.out();
        if out.link.is_none() {
            // `Connection::resume` subscribes after reconnecting.
            if self.is_closing() {
                return Err("the MQTT session is closed".to_owned());
            }
            tracing::info!(topic = %filter, "there is no connection; subscribing once there is one");
            return Ok(false);
        }
        let id = out.flight.number();
        let one = std::iter::once((filter, qos));
        packet::subscribe(self.version(), id, one, &mut out.buffer);
        out.requests.push((id, PendingRequest::Subscribe(None)));
        self.send(&mut out);
        let codes = loop {
            let index = out.requests.iter().position(|(request, _)| *request == id);
            if let Some(index) = index
                && let PendingRequest::Subscribe(Some(_)) = &out.requests[index].1
            {
                break out.requests.swap_remove(index).1;
            }
            let left = deadline.saturating_duration_since(Instant::now());
            if left.is_zero() || self.is_closing() {
                let broker = &self.settings.broker;
                let is_busy = self.has_received_within(BUSY) && !self.is_closing();
                if let Some(index) = index.filter(|_| is_busy) {
                    tracing::warn!(
                        topic = %filter,
                        "the MQTT broker {broker} sends messages, and has not answered the subscription yet; going on"
                    );
                    // A late answer is handled too.
                    out.requests[index].1 = PendingRequest::Late(vec![(counts, filter.to_owned())]);
                    return Ok(true);
                }
                return Err(format!("MQTT broker {broker} does not answer the subscription to '{filter}'"));
            }
            out = self.changed.wait_timeout(out, left).unwrap_or_else(PoisonError::into_inner).0;
        };
        let PendingRequest::Subscribe(Some(codes)) = codes else { return Ok(true) };
        match codes.first() {
            Some(&code) if code >= 0x80 => {
                let reason = packet::reason(self.version(), code, "");
                let broker = &self.settings.broker;
                return Err(format!("MQTT broker {broker} refuses the subscription to '{filter}': {reason}"));
            }
            Some(&code) if code < qos as u8 => tracing::warn!(
                topic = %filter,
                "the broker grants QoS {code} instead of QoS {}; continuing with QoS {code}, at which {}",
                qos as u8,
                if code == 0 { "messages may be lost" } else { "messages may be repeated after a broken connection" },
            ),
            Some(_) => tracing::info!(topic = %filter, qos = qos as u8, client = %self.client, "subscribed"),
            None => {
                tracing::info!(topic = %filter, qos = qos as u8, client = %self.client, "subscribing after reconnecting")
            }
        }
        Ok(true)
    }

    /// Ends a subscription. Returns whether its receiver returned within `limit`.
    pub(super) fn unsubscribe(&self, key: u64, limit: Duration) -> bool {
        let Some(mut routes) = lock_until(&self.routes, Instant::now() + limit) else { return false };
        let Some(entry) = routes.remove(key) else { return true };
        drop(routes);
        entry.route.deliver.idle();
        tracing::info!(
            topic = %entry.route.filter, received = entry.route.counts.received.load(Ordering::Relaxed),
            "closed the subscription"
        );
        if !self.is_persistent()
            && let Some(mut out) = lock_until(&self.out, Instant::now() + limit)
            && out.link.is_some()
        {
            let id = out.flight.number();
            packet::unsubscribe(self.version(), id, &entry.route.filter, &mut out.buffer);
            out.requests.push((id, PendingRequest::Unsubscribe));
            self.send(&mut out);
        }
        true
    }
}

impl Default for Routes {
    fn default() -> Routes {
        Routes {
            all: Vec::new(),
            next: 0,
            exact: HashMap::new(),
            taken: vec![0; 1024],
            early: Vec::new(),
            waits: false,
            unrouted: 0,
            held: None,
        }
    }
}

impl Routes {
    /// Returns the position of the route of a topic.
    fn find(&self, name: &str) -> Option<usize> {
        match self.exact.get(name) {
            Some(&index) => Some(index),
            None => self.all.iter().position(|s| topic::filters_meet(&s.route.filter, name)),
        }
    }

    /// Keeps a message that arrived before its subscription.
    fn keep(&mut self, message: &packet::Publish<'_>, sample: &Sample<'_>) {
        self.early.push(EarlyMessage {
            topic: message.topic.to_owned(),
            payload: message.payload.to_vec(),
            arrival: sample.arrival(),
            message: packet::Publish { topic: "", payload: &[], ..*message },
        });
    }

    /// Prepares for a new link: in a session that the broker kept, messages that wait here are sent again. Otherwise
    /// the broker does not expect their acknowledgement.
    pub(super) fn restart(&mut self, resumed: bool) {
        if resumed {
            self.early.clear();
        } else {
            self.taken.fill(0);
            self.held.iter_mut().for_each(Held::forget);
            self.early.iter_mut().for_each(|early| early.message.qos = Qos::AtMostOnce);
        }
    }

    fn index(&mut self) {
        let topics = self.all.iter().enumerate().map(|(i, s)| (topic::topics_of(&s.route.filter), i));
        self.exact =
            topics.filter(|(name, _)| topic::is_single(name)).map(|(n, i)| (n.to_owned(), i)).collect();
    }

    fn remove(&mut self, key: u64) -> Option<RouteEntry> {
        let index = self.all.iter().position(|s| s.key == key)?;
        let entry = self.all.remove(index);
        self.index();
        Some(entry)
    }
}
