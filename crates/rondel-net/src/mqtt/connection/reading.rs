//! The thread of a connection: reads packets until the link breaks, and reports outages.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Instant;

use rondel_event::Timestamp;

use super::reconnecting::{RETRY, STEADY};
use super::{Connection, First, Role};
use crate::adapter::{Sample, now};
use crate::mqtt::Version;
use crate::mqtt::held::Held;
use crate::mqtt::incoming::Routes;
use crate::mqtt::link::{self, Inbox, Link};
use crate::mqtt::packet::{self, Malformed, Packet};

/// Reason reported for a connection that the broker has closed without one.
const CLOSED: &str = "the broker closed the connection";

impl Connection {
    /// The thread of the connection.
    pub(super) fn run(&self, first: First) {
        if let Some((link, inbox)) = first.or_else(|| self.first_link()) {
            self.read_until_closed(link, inbox);
        }
        let (broker, role) = (&self.settings.broker, self.is_used().then_some(self.role.as_str()));
        tracing::info!(%broker, role, "closed the connection with the MQTT broker");
        let mut out = self.out();
        out.ended = true;
        drop(out);
        self.changed.notify_all();
        self.tick.notify_all();
        // Releases the receivers of open subscriptions.
        *self.routes() = Routes::default();
    }

    /// Connects for the first time, once the broker can be reached.
    fn first_link(&self) -> First {
        if self.role == Role::Publishers {
            self.note_wanted();
        }
        let clean = self.settings.clean_start || self.role == Role::Publishers;
        let (link, inbox, _) = self.reconnect(&mut RETRY.0.clone(), clean)?;
        let since = self.wanted().take();
        if let Some(since) = since.filter(|_| self.is_used()) {
            self.missed(since, Some(now()));
        }
        tracing::info!(broker = %self.settings.broker, role = self.role.as_str(), "connected to the MQTT broker");
        Some((link, inbox))
    }

    /// Reads until the connection is closed, and reconnects when it breaks.
    fn read_until_closed(&self, mut link: Arc<Link>, mut inbox: Inbox) {
        let mut wait = RETRY.0;
        let mut contested = 0;
        loop {
            let since = Instant::now();
            let reason = self.read(&link, &mut inbox);
            link.cut();
            // A broker that has left a request unanswered was gone before the connection broke.
            let is_silent = {
                let out = &mut *self.out();
                out.link = None;
                !out.flight.is_empty() || out.pings > out.answered
            };
            if self.is_closing() {
                break;
            }
            let is_used = self.is_used();
            if is_used {
                self.breaks.count.fetch_add(1, Ordering::Relaxed);
            }
            if self.is_contested(since, reason == CLOSED, &mut contested) {
                break;
            }
            let (broker, role) = (&self.settings.broker, self.role.as_str());
            if is_used {
                tracing::warn!(%broker, role, "the connection with the MQTT broker broke: {reason}; reconnecting");
            }
            if since.elapsed() >= STEADY {
                wait = RETRY.0;
            }
            let last_received = Timestamp::from_nanos(self.last_received.load(Ordering::Relaxed));
            let (broke, broke_at) = (Instant::now(), if is_silent { last_received } else { now() });
            if is_used {
                self.missed(broke_at, None);
            }
            // Version 3.1.1 has no session expiry: a session would be kept for ever.
            let clean = self.version() == Version::V3 && !self.is_persistent();
            match self.reconnect(&mut wait, clean) {
                Some((new, rest, resumed)) => {
                    (link, inbox) = (new, rest);
                    let seconds = broke.elapsed().as_secs_f64();
                    if !is_used {
                        continue;
                    }
                    self.missed(broke_at, Some(now()));
                    match (self.role, resumed) {
                        (Role::Subscriptions, true) => tracing::info!(
                            %broker, role,
                            "reconnected to the MQTT broker after {seconds:.1} s; it delivers the messages at QoS 1 \
                             and 2 that it queued meanwhile"
                        ),
                        (Role::Subscriptions, false) => tracing::warn!(
                            %broker, role,
                            "reconnected to the MQTT broker after {seconds:.1} s, but it did not keep the session: \
                             messages published meanwhile are lost; subscribing again"
                        ),
                        (Role::Publishers, _) => tracing::info!(
                            %broker, role,
                            "reconnected to the MQTT broker after {seconds:.1} s; unacknowledged messages are sent again"
                        ),
                    }
                }
                None => break,
            }
        }
    }

    /// Reads and delivers until the connection breaks; returns the reason.
    fn read(&self, link: &Link, inbox: &mut Inbox) -> String {
        let mut answers = Vec::new();
        loop {
            match self.packets(inbox, &mut answers) {
                Ok(None) => {}
                Ok(Some(reason)) => return reason,
                Err(Malformed) => return "the broker sent a malformed packet".to_owned(),
            }
            match link.read(inbox) {
                Ok(0) => return CLOSED.to_owned(),
                Ok(_) => {}
                Err(error) => return link::describe(&error),
            }
        }
    }

    /// Processes all complete packets of the inbox. Returns a reason when the broker ends the connection.
    fn packets(&self, inbox: &mut Inbox, answers: &mut Vec<u8>) -> Result<Option<String>, Malformed> {
        let arrival = now();
        self.last_received.store(arrival.as_nanos(), Ordering::Relaxed);
        let mut used = 0;
        let mut end = None;
        let mut routes = None;
        let mut out = None;
        let mut answered = false;
        while let Some((first, start, length)) = packet::frame(&inbox.bytes()[used..])? {
            let packet = packet::decode(self.version(), first, &inbox.bytes()[used + start..used + length])?;
            used += length;
            if let Packet::Publish(message) = packet {
                // A receiver may block: publishers must not wait for it.
                out = None;
                let routes = routes.get_or_insert_with(|| self.routes_in_turn());
                let sample = Sample::new(message.payload, None, Some(arrival));
                self.deliver(routes, &message, sample, answers);
            } else if let Packet::PubRel(id) = packet {
                out = None;
                let routes = routes.get_or_insert_with(|| self.routes_in_turn());
                routes.taken[usize::from(id / 64)] &= !(1 << (id % 64));
                match &mut routes.held {
                    Some(held) => held.push(packet::PUBCOMP, id),
                    None => packet::acknowledge(packet::PUBCOMP, id, answers),
                }
            } else {
                answered = true;
                let out = out.get_or_insert_with(|| self.out());
                end = end.or(self.answer(out, packet)?);
            }
        }
        if let Some(out) = &mut out
            && out.flight.is_behind()
        {
            self.catch_up(out);
        }
        drop(out);
        if answered {
            self.changed.notify_all();
        }
        for entry in routes.iter_mut().flat_map(|routes| &mut routes.all) {
            if std::mem::take(&mut entry.touched) {
                entry.route.deliver.idle();
            }
        }
        routes.iter().filter_map(|routes| routes.held.as_ref()).for_each(Held::signal);
        drop(routes);
        if !answers.is_empty() {
            let mut out = self.out();
            out.buffer.append(answers);
            self.send(&mut out);
        }
        inbox.used(used);
        Ok(end)
    }
}
