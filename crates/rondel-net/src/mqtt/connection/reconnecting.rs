//! New links of a connection: attempts, takeovers by another client, and signs of life.

use std::sync::atomic::Ordering;
use std::sync::{Arc, PoisonError};
use std::time::{Duration, Instant};

use super::Connection;
use crate::mqtt::OpenError;
use crate::mqtt::link::{Inbox, Link};
use crate::mqtt::outgoing::PendingRequest;
use crate::mqtt::packet::{self, ConnAck};

/// First and longest delay before a reconnection attempt; it doubles in between.
pub(super) const RETRY: (Duration, Duration) = (Duration::from_millis(100), Duration::from_secs(5));
/// Maximum delay while the broker cannot be reached, so that its return is noticed soon.
const RETRY_UNREACHABLE: Duration = Duration::from_secs(1);
/// Time after which a connection counts as stable, so that the delay starts at its first value again.
pub(super) const STEADY: Duration = Duration::from_secs(10);
/// Number of successive takeovers of the session by another client after which this one gives up.
const TAKEOVERS: u32 = 6;
/// Numbers of successive connections that the broker closes soon and without a reason: from the first, another client
/// with the same id is suspected; at the second, this one gives up. Version 3.1.1 has no reason code for it, and some
/// brokers do not send it in version 5.
const SUSPICION: (u32, u32) = (3, 12);
/// Maximum wait for a broker to read, after which the state of the connection is checked again.
const ROOM: Duration = Duration::from_millis(50);

impl Connection {
    /// Counts the successive connections that ended because another client has the same id, or may have it. Returns
    /// whether to give up.
    pub(super) fn is_contested(&self, since: Instant, closed_quietly: bool, row: &mut u32) -> bool {
        let taken_over = self.taken_over.swap(false, Ordering::Relaxed);
        // A generated id is unique.
        let suspicious = closed_quietly && self.settings.client_id.is_some();
        *row = if (taken_over || suspicious) && since.elapsed() < STEADY { *row + 1 } else { 0 };
        let (broker, role, client) = (&self.settings.broker, self.role.as_str(), &self.client);
        let guess = format!(
            "the MQTT broker {broker} closed {row} connections in a row soon after they were opened; another client may \
             use the client id '{client}', too: give each its own"
        );
        if !taken_over && *row == SUSPICION.0 {
            tracing::warn!(role, "{guess}");
        }
        if *row < if taken_over { TAKEOVERS } else { SUSPICION.1 } {
            return false;
        }
        let known = format!(
            "another client has taken over the session '{client}' at the MQTT broker {broker} {row} times in a row: two \
             clients use one client id; give each its own"
        );
        let reason = if taken_over { known } else { guess };
        tracing::warn!(role, "giving up the connection with the MQTT broker: {reason}");
        // Only this thread sets it, and only once.
        let _ = self.failure.set(reason);
        true
    }

    /// Tries to connect with growing delays until it succeeds; `None` once the connection is closed.
    pub(super) fn reconnect(&self, wait: &mut Duration, clean: bool) -> Option<(Arc<Link>, Inbox, bool)> {
        let mut warned = false;
        loop {
            let until = Instant::now() + *wait;
            *wait = (*wait * 2).min(RETRY.1);
            let mut out = self.out();
            while !self.is_closing() && Instant::now() < until {
                let left = until.saturating_duration_since(Instant::now());
                out = self.tick.wait_timeout(out, left).unwrap_or_else(PoisonError::into_inner).0;
            }
            drop(out);
            if self.is_closing() {
                return None;
            }
            match Link::open(&self.settings, &self.client, clean) {
                Ok((link, inbox, allowed)) => {
                    let resumed = allowed.session_present;
                    let link = self.resume(link, allowed)?;
                    return Some((link, inbox, resumed));
                }
                Err(error) => {
                    let (broker, role) = (&self.settings.broker, self.role.as_str());
                    if matches!(error, OpenError::Unreachable { .. }) {
                        *wait = RETRY_UNREACHABLE.min(*wait);
                    }
                    let retry_in = *wait;
                    if warned || matches!(error, OpenError::Unreachable { .. }) {
                        tracing::debug!(%broker, role, ?retry_in, "{error}; trying again");
                    } else {
                        warned = true;
                        tracing::warn!(%broker, role, "{error}; trying again until the broker accepts the connection");
                    }
                }
            }
        }
    }

    /// Continues over a new link: subscribes again unless the broker kept the session, and sends
    /// unacknowledged messages again.
    fn resume(&self, link: Link, allowed: ConnAck) -> Option<Arc<Link>> {
        let link = Arc::new(link);
        let mut routes = self.routes();
        let mut out = self.out();
        *self.link.lock().unwrap_or_else(PoisonError::into_inner) = Some(Arc::clone(&link));
        if self.is_closing() {
            return None;
        }
        let resumed = allowed.session_present;
        out.buffer.clear();
        out.is_congested = false;
        out.allowed = allowed;
        // The broker does not answer requests that were sent over the broken link.
        out.answered = out.pings;
        let out = &mut *out;
        for (id, request) in std::mem::take(&mut out.requests) {
            out.flight.release(id);
            // The waiting thread may continue: this function subscribes for it.
            if let PendingRequest::Subscribe(_) = request {
                out.requests.push((id, PendingRequest::Subscribe(Some(Vec::new()))));
            }
        }
        routes.restart(resumed);
        let due = || routes.all.iter().filter(|s| !(resumed && s.known)).map(|s| &s.route);
        if due().next().is_some() {
            let id = out.flight.number();
            packet::subscribe(
                self.version(),
                id,
                due().map(|route| (route.filter.as_str(), route.qos)),
                &mut out.buffer,
            );
            due().for_each(|route| {
                tracing::debug!(topic = %route.filter, qos = route.qos as u8, "subscribing again after reconnecting");
            });
            let filters = due().map(|route| (Arc::clone(&route.counts), route.filter.clone())).collect();
            out.requests.push((id, PendingRequest::Late(filters)));
        }
        routes.all.iter_mut().for_each(|entry| entry.known = true);
        out.flight.restart(resumed);
        out.link = Some(Arc::clone(&link));
        self.catch_up(out);
        self.changed.notify_all();
        Some(link)
    }

    /// Sends pings while nothing else is sent, also while a receiver blocks, so that the broker does not close the
    /// connection; sends the bytes that the broker had no room for.
    pub(super) fn keep_alive(&self) {
        let mut out = self.out();
        while !out.ended {
            if let Some(link) = out.link.clone().filter(|_| out.is_congested) {
                drop(out);
                let has_room = link.wait_for_room(ROOM);
                out = self.out();
                if has_room || link.is_stuck() {
                    self.send(&mut out);
                    // A publisher may be waiting for it.
                    self.changed.notify_all();
                }
                continue;
            }
            let own = self.settings.keep_alive;
            let every =
                out.allowed.keep_alive.filter(|theirs| *theirs > 0).map_or(own, |theirs| theirs.min(own));
            let every = Duration::from_millis(u64::from(every) * 250);
            out = self.tick.wait_timeout(out, every).unwrap_or_else(PoisonError::into_inner).0;
            if !self.is_closing() && out.link.is_some() && out.written.elapsed() >= every * 2 {
                out.ping();
                self.send(&mut out);
            }
        }
    }
}
