//! Outgoing packets of a connection: messages, acknowledgements, requests.

use std::sync::atomic::Ordering;
use std::sync::{Arc, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use super::connection::Connection;
use super::flight::InFlight;
use super::incoming::SubscriptionCounts;
use super::link::Link;
use super::packet::{self, ConnAck, Malformed, Packet};
use super::{Qos, Version};
use crate::adapter::{Drops, PublishError, now, trace_message};
use crate::attempts::lock_until;

/// Limit of unacknowledged messages; the broker may set a lower one.
const WINDOW: usize = 256;
/// Limit of unacknowledged messages at QoS 2 with version 3.1.1, in which the broker cannot state it: the usual value,
/// which mosquitto enforces.
const WINDOW_V3_QOS_2: usize = 20;
/// Number of buffered bytes at which messages are sent despite batching.
const FULL: usize = 16 << 10;

/// Maximum wait for the lock to count messages.
const UNLOCK: Duration = Duration::from_millis(200);

/// Sending side of a connection.
pub(super) struct Outgoing {
    /// `None` while the connection is broken.
    pub(super) link: Option<Arc<Link>>,
    /// Limits set by the broker.
    pub(super) allowed: ConnAck,
    pub(super) buffer: Vec<u8>,
    pub(super) flight: InFlight,
    /// Requests by packet id that were not answered yet, or whose answer was not fetched.
    pub(super) requests: Vec<(u16, PendingRequest)>,
    /// Number of pings sent.
    pub(super) pings: u64,
    /// Number of pings answered.
    pub(super) answered: u64,
    /// Number of messages that the broker refused.
    pub(super) refused: u64,
    /// Time of the last write.
    pub(super) written: Instant,
    /// Whether the connection is closed.
    pub(super) ended: bool,
    /// Whether a wait for the broker has expired, and it has accepted nothing since.
    stalled: bool,
    /// Whether the link has bytes that the broker had no room for.
    pub(super) is_congested: bool,
}

/// A message to publish.
pub(super) struct Message<'a> {
    pub(super) topic: &'a str,
    pub(super) qos: Qos,
    pub(super) retained: bool,
    pub(super) payload: &'a [u8],
    /// Whether it may wait in the buffer for others.
    pub(super) hold: bool,
}

/// A request that waits for the broker's answer.
pub(super) enum PendingRequest {
    /// A subscription whose thread waits for the reason codes.
    Subscribe(Option<Vec<u8>>),
    /// Subscriptions without a thread that waits for their answer: those made again after reconnecting, and one that a
    /// busy broker did not answer in time.
    Late(Vec<(Arc<SubscriptionCounts>, String)>),
    /// An unsubscription.
    Unsubscribe,
}

impl Connection {
    /// Processes an answer of the broker. Returns a reason when it ends the connection.
    pub(super) fn answer(&self, out: &mut Outgoing, packet: Packet<'_>) -> Result<Option<String>, Malformed> {
        match packet {
            Packet::PubAck(id, code) => {
                out.count_refusal(id, code, self);
                self.acknowledged(out, id);
            }
            // A refusal ends the exchange: no PUBREL follows.
            Packet::PubRec(id, code) if code >= 0x80 => {
                out.count_refusal(id, code, self);
                self.acknowledged(out, id);
            }
            Packet::PubRec(id, _) => {
                out.flight.taken(id);
                packet::acknowledge(packet::PUBREL, id, &mut out.buffer);
                self.send(out);
            }
            Packet::PubComp(id) => self.acknowledged(out, id),
            Packet::SubAck(id, codes) => {
                out.flight.release(id);
                let index = out.requests.iter_mut().position(|(request, _)| *request == id);
                match index.map(|index| (index, &mut out.requests[index].1)) {
                    Some((_, PendingRequest::Subscribe(answer))) => *answer = Some(codes.to_vec()),
                    Some((index, PendingRequest::Late(filters))) => {
                        for ((counts, filter), &code) in filters.iter().zip(codes) {
                            if code < 0x80 {
                                tracing::info!(topic = %filter, qos = code, "subscribed");
                                continue;
                            }
                            counts.refused.fetch_add(1, Ordering::Relaxed);
                            let reason = packet::reason(self.version(), code, "");
                            tracing::warn!(
                                topic = %filter,
                                "the broker refuses the subscription: {reason}; no messages will \
                                 be received until the next reconnection"
                            );
                        }
                        out.requests.swap_remove(index);
                    }
                    _ => tracing::debug!(
                        broker = %self.settings.broker, id,
                        "the broker acknowledged an unknown subscription; ignored"
                    ),
                }
            }
            // Wakes all: subscriptions are closed one after the other, and no thread waits for the answer.
            Packet::UnsubAck => {
                let flight = &mut out.flight;
                out.requests.retain(|(id, request)| {
                    let done = matches!(request, PendingRequest::Unsubscribe);
                    if done {
                        flight.release(*id);
                    }
                    !done
                });
            }
            Packet::PingResp => out.answered += 1,
            Packet::Disconnect(code, reason) => {
                self.taken_over.store(code == packet::TAKEN_OVER, Ordering::Relaxed);
                return Ok(Some(packet::reason(self.version(), code, &reason)));
            }
            // Only allowed as the first packet.
            Packet::ConnAck(_) => return Err(Malformed),
            Packet::Publish(_) | Packet::PubRel(_) => {}
        }
        Ok(None)
    }

    /// Ends the exchange of the published message with this packet id.
    fn acknowledged(&self, out: &mut Outgoing, id: u16) {
        if !out.flight.complete(id) {
            tracing::debug!(broker = %self.settings.broker, id, "the broker acknowledged an unknown message; ignored");
        }
    }

    /// Publishes a message; waits while the connection is broken or congested, or the window is full. After a wait for
    /// as long as the settings allow, messages are refused until the broker accepts one again, and counted as dropped
    /// if there is a counter.
    pub(super) fn publish(&self, message: &Message<'_>, drops: Option<&Drops>) -> Result<(), PublishError> {
        trace_message("published", message.topic, message.payload);
        let out = self.out();
        let wait = if out.stalled { Some(Duration::ZERO) } else { self.settings.slow_consumer };
        let (mut out, qos) = self.wait_for_room(out, message.qos, wait)?;
        let Some(qos) = qos else { return Err(self.refuse(&mut out, drops)) };
        if out.stalled {
            out.stalled = false;
            tracing::warn!(broker = %self.settings.broker, "the MQTT broker accepts messages again");
        }
        self.append(&mut out, message, qos)
    }

    /// Publishes a message like [`publish`](Connection::publish), but waits at most `limit`.
    pub(super) fn offer(&self, message: &Message<'_>, limit: Duration) -> Result<(), PublishError> {
        trace_message("published", message.topic, message.payload);
        let (mut out, qos) = self.wait_for_room(self.out(), message.qos, Some(limit))?;
        self.append(&mut out, message, qos.ok_or(PublishError::Slow)?)
    }

    /// Waits until a message can be sent to the broker, at most for `limit`. Returns the allowed quality of service;
    /// `None` after the limit.
    fn wait_for_room<'a>(
        &self,
        mut out: MutexGuard<'a, Outgoing>,
        qos: Qos,
        limit: Option<Duration>,
    ) -> Result<(MutexGuard<'a, Outgoing>, Option<Qos>), PublishError> {
        let mut deadline = None;
        loop {
            if self.is_closing() || out.ended {
                return Err(PublishError::Closed);
            }
            let allowed = qos.min(out.allowed.maximum_qos);
            if out.link.is_some() {
                let is_full = out.flight.is_behind() || out.flight.len() >= self.window(&out, allowed);
                if !out.is_congested && (allowed == Qos::AtMostOnce || !is_full) {
                    return Ok((out, Some(allowed)));
                }
                // The messages that fill the window may still be in the buffer.
                self.send(&mut out);
            }
            let Some(limit) = limit else {
                out = self.changed.wait(out).unwrap_or_else(PoisonError::into_inner);
                continue;
            };
            let deadline = *deadline.get_or_insert_with(|| Instant::now() + limit);
            let left = deadline.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return Ok((out, None));
            }
            out = self.changed.wait_timeout(out, left).unwrap_or_else(PoisonError::into_inner).0;
        }
    }

    /// Appends a message to the buffer, and sends the buffer unless the message may wait.
    fn append(&self, out: &mut Outgoing, message: &Message<'_>, qos: Qos) -> Result<(), PublishError> {
        let &Message { topic, retained, payload, hold, .. } = message;
        let mut message = packet::Publish { duplicate: false, retained, qos, topic, id: 0, payload };
        let length = packet::publish_length(self.version(), &message);
        if length > packet::LONGEST || length + 5 > out.allowed.maximum_packet {
            return Err(PublishError::Payload("it is larger than the MQTT broker's maximum packet size"));
        }
        if qos == Qos::AtMostOnce {
            packet::publish(self.version(), &message, &mut out.buffer);
        } else {
            message.id = out.flight.number();
            let write = |packet: &mut Vec<u8>| packet::publish(self.version(), &message, packet);
            out.buffer.extend_from_slice(out.flight.keep(message.id, write));
        }
        if !hold || out.buffer.len() >= FULL {
            self.send(out);
        }
        Ok(())
    }

    /// Sends the buffer. Bytes that the broker does not read are sent later, by the thread that keeps the connection
    /// alive.
    pub(super) fn send(&self, out: &mut Outgoing) {
        let was_congested = out.is_congested;
        out.send();
        if out.is_congested && !was_congested {
            self.tick.notify_all();
        }
    }

    /// Refuses a message because the broker was not ready in time.
    #[cold]
    fn refuse(&self, out: &mut Outgoing, drops: Option<&Drops>) -> PublishError {
        if !std::mem::replace(&mut out.stalled, true) {
            tracing::warn!(
                broker = %self.settings.broker,
                "the MQTT broker does not accept messages{}",
                if drops.is_some() { "; they are dropped until it does" } else { "" }
            );
        }
        if let Some(drops) = drops {
            drops.add(1, now());
        }
        PublishError::Slow
    }

    /// Returns the limit of unacknowledged messages for sending a message of this quality of service.
    pub(super) fn window(&self, out: &Outgoing, qos: Qos) -> usize {
        let is_unstated = self.version() == Version::V3 && qos == Qos::ExactlyOnce;
        usize::from(out.allowed.receive_maximum).min(if is_unstated { WINDOW_V3_QOS_2 } else { WINDOW })
    }

    /// Sends unacknowledged messages of the broken connection again, as far as the window allows.
    pub(super) fn catch_up(&self, out: &mut Outgoing) {
        let window = self.window(out, Qos::ExactlyOnce);
        let Outgoing { flight, buffer, .. } = &mut *out;
        flight.catch_up(window, buffer);
        self.send(out);
    }

    /// Sends the buffered messages.
    pub(super) fn release(&self) {
        self.send(&mut self.out());
    }

    /// Waits up to `limit` for the connection. Returns whether it is open.
    pub(super) fn wait_connected(&self, limit: Duration) -> bool {
        let waiting = |out: &mut Outgoing| out.link.is_none() && !self.is_closing() && !out.ended;
        let waited = self.changed.wait_timeout_while(self.out(), limit, waiting);
        waited.unwrap_or_else(PoisonError::into_inner).0.link.is_some()
    }

    /// Waits until the broker has read everything that was sent so far. Returns whether it did within `limit`.
    pub(super) fn wait_read(&self, limit: Duration) -> bool {
        let mut out = self.out();
        out.ping();
        self.send(&mut out);
        let ping = out.pings;
        let waiting = |out: &mut Outgoing| out.answered < ping && out.link.is_some() && !out.ended;
        let out = self.changed.wait_timeout_while(out, limit, waiting);
        out.unwrap_or_else(PoisonError::into_inner).0.answered >= ping
    }

    /// Waits until the broker has answered every message at QoS 1 and 2 that was published before the call. Returns
    /// whether it did within `limit`.
    pub(super) fn settle(&self, limit: Duration) -> bool {
        let Some(mut out) = lock_until(&self.out, Instant::now() + limit) else { return false };
        self.send(&mut out);
        let mark = out.flight.kept();
        let waiting = |out: &mut Outgoing| !out.flight.is_through(mark) && !self.is_closing() && !out.ended;
        let out = self.changed.wait_timeout_while(out, limit, waiting);
        out.unwrap_or_else(PoisonError::into_inner).0.flight.is_through(mark)
    }

    /// Returns the number of messages on a topic that the broker has not acknowledged.
    pub(super) fn unconfirmed(&self, topic: &str) -> Option<u64> {
        // A thread that writes to a broker that reads nothing holds the lock, for a limited time.
        lock_until(&self.out, Instant::now() + UNLOCK).map(|out| out.flight.count(topic))
    }

    /// Visits the payload of each of these messages.
    pub(super) fn unconfirmed_payloads(&self, topic: &str, visit: &mut dyn FnMut(&[u8])) {
        if let Some(out) = lock_until(&self.out, Instant::now() + UNLOCK) {
            out.flight.payloads(self.version(), topic, visit);
        }
    }

    /// Waits until the broker has read everything and acknowledged all messages at QoS 1 and 2 that were published before
    /// the call: others of the connection may go on. Returns whether it did within `limit` and refused none so far.
    pub(super) fn flush(&self, limit: Duration) -> bool {
        let deadline = Instant::now() + limit;
        let Some(mut out) = lock_until(&self.out, deadline) else { return false };
        let mark = out.flight.kept();
        // The broker answers in order: when it answers this ping, it has read everything before it.
        let mut pinged = None;
        loop {
            self.send(&mut out);
            if out.link.is_some() && pinged.is_none() {
                out.ping();
                self.send(&mut out);
                pinged = Some(out.pings);
            }
            if out.flight.is_through(mark) && pinged.is_some_and(|ping| out.answered >= ping) {
                return out.refused == 0;
            }
            let left = deadline.saturating_duration_since(Instant::now());
            if left.is_zero() || self.is_closing() {
                tracing::debug!(
                    broker = %self.settings.broker, unacknowledged = out.flight.len(),
                    "the broker did not acknowledge all published messages in time"
                );
                return false;
            }
            out = self.changed.wait_timeout(out, left).unwrap_or_else(PoisonError::into_inner).0;
        }
    }
}

impl Outgoing {
    /// Creates the sending side of a new connection; without a link, that is opened later.
    pub(super) fn new(link: Option<Arc<Link>>, allowed: ConnAck) -> Outgoing {
        Outgoing {
            link,
            allowed,
            buffer: Vec::new(),
            flight: InFlight::default(),
            requests: Vec::new(),
            pings: 0,
            answered: 0,
            refused: 0,
            written: Instant::now(),
            ended: false,
            stalled: false,
            is_congested: false,
        }
    }

    /// Writes the buffer as far as possible without blocking: the link keeps the rest. If that fails, the link is cut
    /// and the reading thread reports the reason.
    fn send(&mut self) {
        if self.buffer.is_empty() && !self.is_congested {
            return;
        }
        self.is_congested = false;
        if let Some(link) = &self.link {
            match link.write(&self.buffer) {
                Ok(is_written) => self.is_congested = !is_written,
                Err(_) => {
                    link.cut();
                    self.link = None;
                }
            }
        }
        self.buffer.clear();
        self.written = Instant::now();
    }

    /// Appends a ping to the buffer.
    pub(super) fn ping(&mut self) {
        packet::ping(&mut self.buffer);
        self.pings += 1;
    }

    /// Counts a message that the broker refused; logs the first one.
    fn count_refusal(&mut self, id: u16, code: u8, connection: &Connection) {
        if code >= 0x80 {
            self.refused += 1;
            if self.refused == 1 {
                let reason = packet::reason(connection.version(), code, "");
                tracing::warn!(
                    broker = %connection.settings.broker, id,
                    "the broker refused a published message: {reason}; further ones are only counted"
                );
            }
        }
    }
}
