//! What leaves: messages, acknowledgements, requests.

use std::sync::atomic::Ordering;
use std::sync::{Arc, PoisonError};
use std::time::{Duration, Instant};

use super::connection::{Connection, lock_until};
use super::flight::Flight;
use super::incoming::Seen;
use super::link::Link;
use super::packet::{self, ConnAck, Malformed, Packet};
use super::{Qos, Version};
use crate::adapter::PublishError;

/// How many messages may be unacknowledged; the broker may allow fewer.
const WINDOW: usize = 256;
/// How many at quality of service 2 with version 3.1.1, where the broker cannot say how many it takes:
/// what brokers and clients have agreed on by custom, and mosquitto insists on.
const CUSTOMARY: usize = 20;
/// When messages that are held back fill a packet.
const FULL: usize = 16 << 10;

/// What leaves.
pub(super) struct Out {
    pub(super) link: Option<Arc<Link>>,
    pub(super) allowed: ConnAck,
    pub(super) buffer: Vec<u8>,
    pub(super) flight: Flight,
    /// Subscriptions that are not answered yet, or whose answer was not fetched.
    pub(super) asked: Vec<(u16, Asked)>,
    pub(super) pings: u64,
    pub(super) answered: u64,
    /// Messages that the broker did not accept.
    pub(super) refused: u64,
    pub(super) written: Instant,
    pub(super) ended: bool,
}

pub(super) enum Asked {
    /// Somebody waits for the answer.
    Now(Option<Vec<u8>>),
    /// Subscribed again after a break.
    Again(Vec<(Arc<Seen>, String)>),
    Unsubscribe,
}

impl Connection {
    /// Takes what the broker says to what was sent.
    pub(super) fn answer(&self, out: &mut Out, packet: Packet<'_>) -> Result<Option<String>, Malformed> {
        match packet {
            Packet::PubAck(id, code) => {
                out.judge(id, code, self);
                out.flight.arrived(id);
            }
            // Refused: then it is done.
            Packet::PubRec(id, code) if code >= 0x80 => {
                out.judge(id, code, self);
                out.flight.arrived(id);
            }
            Packet::PubRec(id, _) => {
                out.flight.taken(id);
                packet::acknowledge(packet::PUBREL, id, &mut out.buffer);
                out.send();
            }
            Packet::PubComp(id) => _ = out.flight.arrived(id),
            Packet::SubAck(id, codes) => {
                out.flight.release(id);
                let asked = out.asked.iter_mut().position(|(asked, _)| *asked == id);
                match asked.map(|index| (index, &mut out.asked[index].1)) {
                    Some((_, Asked::Now(answer))) => *answer = Some(codes.to_vec()),
                    Some((index, Asked::Again(filters))) => {
                        for ((seen, filter), &code) in
                            filters.iter().zip(codes).filter(|(_, code)| **code >= 0x80)
                        {
                            seen.refused.fetch_add(1, Ordering::Relaxed);
                            let reason = packet::reason(self.version(), code, "");
                            tracing::warn!(topic = %filter, "after a break the broker refuses the subscription: {reason}");
                        }
                        out.asked.swap_remove(index);
                    }
                    _ => {}
                }
            }
            // There is one of these at a time, at the end.
            Packet::UnsubAck => {
                let flight = &mut out.flight;
                out.asked.retain(|(id, asked)| {
                    let done = matches!(asked, Asked::Unsubscribe);
                    if done {
                        flight.release(*id);
                    }
                    !done
                });
            }
            Packet::PingResp => out.answered += 1,
            Packet::Disconnect(code, said) => return Ok(Some(packet::reason(self.version(), code, &said))),
            // A client is never sent these after the beginning.
            Packet::ConnAck(_) => return Err(Malformed),
            Packet::Publish(_) | Packet::PubRel(_) => {}
        }
        Ok(None)
    }

    /// Publishes; waits while the broker is not there, or cannot take more.
    pub(super) fn publish(
        &self,
        topic: &str,
        qos: Qos,
        retained: bool,
        payload: &[u8],
        hold: bool,
    ) -> Result<(), PublishError> {
        let mut out = self.out();
        let qos = loop {
            if self.is_closing() {
                return Err(PublishError::Closed);
            }
            let allowed = qos.min(out.allowed.maximum_qos);
            if out.link.is_some() {
                let full = out.flight.is_behind() || out.flight.len() >= self.window(&out, allowed);
                if allowed == Qos::AtMostOnce || !full {
                    break allowed;
                }
                // What is held back here may be what the broker would acknowledge.
                out.send();
            }
            out = self.changed.wait(out).unwrap_or_else(PoisonError::into_inner);
        };
        let mut message = packet::Publish { duplicate: false, retained, qos, topic, id: 0, payload };
        let length = packet::publish_length(self.version(), &message);
        if length > packet::LONGEST || length + 5 > out.allowed.maximum_packet {
            return Err(PublishError::Payload("it is larger than the broker takes"));
        }
        let out = &mut *out;
        if qos == Qos::AtMostOnce {
            packet::publish(self.version(), &message, &mut out.buffer);
        } else {
            message.id = out.flight.number();
            let write = |packet: &mut Vec<u8>| packet::publish(self.version(), &message, packet);
            out.buffer.extend_from_slice(out.flight.keep(message.id, write));
        }
        if !hold || out.buffer.len() >= FULL {
            out.send();
        }
        Ok(())
    }

    /// How many messages may be unacknowledged when one of this quality of service is sent.
    pub(super) fn window(&self, out: &Out, qos: Qos) -> usize {
        let customary = self.version() == Version::V3 && qos == Qos::ExactlyOnce;
        usize::from(out.allowed.receive_maximum).min(if customary { CUSTOMARY } else { WINDOW })
    }

    /// Sends what is held back.
    pub(super) fn release(&self) {
        self.out().send();
    }

    pub(super) fn wait_connected(&self, limit: Duration) -> bool {
        let waiting = |out: &mut Out| out.link.is_none() && !self.is_closing();
        let waited = self.changed.wait_timeout_while(self.out(), limit, waiting);
        waited.unwrap_or_else(PoisonError::into_inner).0.link.is_some()
    }

    /// Waits until the broker has everything, and has acknowledged what it acknowledges. Whether it has,
    /// and has accepted all of it.
    pub(super) fn flush(&self, limit: Duration) -> bool {
        let deadline = Instant::now() + limit;
        let Some(mut out) = lock_until(&self.out, deadline) else { return false };
        // It answers in turn: with this, it has read everything before.
        let mut pinged = None;
        loop {
            out.send();
            if out.link.is_some() && pinged.is_none() {
                out.ping();
                out.send();
                pinged = Some(out.pings);
            }
            if out.flight.is_empty() && pinged.is_some_and(|ping| out.answered >= ping) {
                return out.refused == 0;
            }
            let left = deadline.saturating_duration_since(Instant::now());
            if left.is_zero() || self.is_closing() {
                return false;
            }
            out = self.changed.wait_timeout(out, left).unwrap_or_else(PoisonError::into_inner).0;
        }
    }
}

impl Out {
    /// Over a connection that has just been made.
    pub(super) fn new(link: Arc<Link>, allowed: ConnAck) -> Out {
        Out {
            link: Some(link),
            allowed,
            buffer: Vec::new(),
            flight: Flight::default(),
            asked: Vec::new(),
            pings: 0,
            answered: 0,
            refused: 0,
            written: Instant::now(),
            ended: false,
        }
    }

    /// Writes what is in the buffer. Where that fails the reading thread finds out why.
    pub(super) fn send(&mut self) {
        if self.buffer.is_empty() {
            return;
        }
        if let Some(link) = &self.link
            && link.write(&self.buffer).is_err()
        {
            link.cut();
            self.link = None;
        }
        self.buffer.clear();
        self.written = Instant::now();
    }

    /// Sends again what the last connection left, as far as is allowed.
    pub(super) fn catch_up(&mut self, window: usize) {
        self.flight.catch_up(window, &mut self.buffer);
        self.send();
    }

    pub(super) fn ping(&mut self) {
        packet::ping(&mut self.buffer);
        self.pings += 1;
    }

    /// Looks whether the broker accepted a message.
    fn judge(&mut self, id: u16, code: u8, connection: &Connection) {
        if code >= 0x80 {
            self.refused += 1;
            if self.refused == 1 {
                let reason = packet::reason(connection.version(), code, "");
                tracing::warn!(
                    "the MQTT broker did not accept message {id}: {reason}; further ones are only counted"
                );
            }
        }
    }
}
