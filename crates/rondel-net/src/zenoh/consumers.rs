//! Subscriptions that fetch missed messages from a publisher, and the position of each.
//!
//! A subscription of Rondel declares the liveliness token `KEY/@rondel/by/NAME`, and `KEY/@rondel/by/NAME/bye` before
//! it closes. Its queries to a publisher carry its name and the number of the message that it expects next. A publisher
//! that ends sends a heartbeat, in the format of zenoh-ext: the number of its last message, on the key of its token. A
//! subscription with every message confirms it; another one fetches the missing messages first. So the publisher knows
//! whether it may leave, and how many messages are unconfirmed if it leaves anyway.

use std::collections::BTreeMap;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use ::zenoh::Wait;
use ::zenoh::key_expr::KeyExpr;
use ::zenoh::liveliness::LivelinessToken;
use ::zenoh::pubsub::Subscriber;
use ::zenoh::qos::{CongestionControl, Priority};
use ::zenoh::sample::SampleKind;

use super::advanced;
use super::envelope::PublisherId;

/// Part of the keys of tokens between the key of the subscription and its name.
const BY: &str = "/@rondel/by/";
/// Last part of the key of a token whose subscription is closing.
const BYE: &str = "/bye";
/// Attachment of a heartbeat that requests a confirmation. Heartbeats of zenoh-ext have none.
const CONFIRM: &[u8] = b"confirm";
/// Time in which a subscription with a lost connection may return.
const RETURNS: Duration = Duration::from_secs(10);
/// Limit of remembered subscriptions of a publisher.
const LIMIT: usize = 1024;

/// Positions of the subscriptions of a publisher.
#[derive(Debug, Default)]
pub(super) struct Positions {
    all: Mutex<BTreeMap<String, Position>>,
    changed: Condvar,
}

#[derive(Debug)]
struct Position {
    /// Number of the message that the subscription expects next, as far as known.
    next: u64,
    /// Time at which its token disappeared.
    lost: Option<Instant>,
}

impl Position {
    /// Whether the subscription exists or may return; `alone` is the time for which the publisher has had no
    /// connection.
    fn counts(&self, alone: Duration) -> bool {
        self.lost.is_none_or(|lost| lost.elapsed() < RETURNS + alone)
    }
}

impl Positions {
    fn all(&self) -> MutexGuard<'_, BTreeMap<String, Position>> {
        self.all.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Records that the token with this key has appeared or disappeared after `published` messages.
    fn token(&self, key: &str, is_there: bool, published: u64) {
        let Some((_, name)) = key.rsplit_once(BY) else { return };
        let all = &mut *self.all();
        if let Some(name) = name.strip_suffix(BYE) {
            all.remove(name);
        } else if !is_there {
            if let Some(position) = all.get_mut(name) {
                position.lost = Some(Instant::now());
            }
        } else if let Some(position) = all.get_mut(name) {
            position.lost = None;
        } else {
            if all.len() >= LIMIT {
                all.retain(|_, position| position.counts(Duration::ZERO));
            }
            if all.len() < LIMIT {
                all.insert(name.to_owned(), Position { next: published, lost: None });
            }
        }
        self.changed.notify_all();
    }

    /// Records the message that the subscription of this name expects next.
    pub(super) fn expects(&self, name: &str, next: u64) {
        if let Some(position) = self.all().get_mut(name) {
            position.next = position.next.max(next);
        }
        self.changed.notify_all();
    }

    /// Returns the maximum number of the first `count` messages that a subscription has not confirmed. `alone` is the
    /// time for which the publisher has had no connection.
    pub(super) fn behind(&self, count: u64, alone: Duration) -> u64 {
        let all = self.all();
        let counted = all.values().filter(|position| position.counts(alone));
        counted.map(|position| count.saturating_sub(position.next)).max().unwrap_or(0)
    }

    /// Waits up to `limit` for a change.
    pub(super) fn wait(&self, limit: Duration) {
        drop(self.changed.wait_timeout(self.all(), limit));
    }
}

/// The subscriptions of a publisher. Dropping it ends the observation.
#[derive(Debug)]
pub(super) struct Consumers {
    pub(super) positions: Arc<Positions>,
    heartbeat: ::zenoh::pubsub::Publisher<'static>,
    _tokens: Subscriber<()>,
}

impl Consumers {
    /// Starts to observe the subscriptions that match a key; `published` counts the messages of the publisher.
    pub(super) fn observe(
        session: &::zenoh::Session,
        key: &KeyExpr<'static>,
        publisher: PublisherId<'_>,
        priority: Priority,
        published: impl Fn() -> u64 + Send + Sync + 'static,
    ) -> Result<Consumers, ::zenoh::Error> {
        let positions = Arc::<Positions>::default();
        let noted = Arc::clone(&positions);
        let tokens = session
            .liveliness()
            .declare_subscriber(format!("{key}{BY}**"))
            .history(true)
            .callback(move |sample| {
                noted.token(sample.key_expr().as_str(), sample.kind() == SampleKind::Put, published());
            })
            .wait()?;
        // Sent after the messages, and never blocked by a subscription that accepts nothing, since it is repeated.
        let heartbeat = session
            .declare_publisher(advanced::token(key.as_str(), publisher))
            .congestion_control(CongestionControl::Drop)
            .priority(priority)
            .wait()?;
        Ok(Consumers { positions, heartbeat, _tokens: tokens })
    }

    /// Requests a confirmation of the first `count` messages from the subscriptions.
    pub(super) fn request_confirmation(&self, count: u64) {
        // Numbers have 32 bits and wrap around.
        let last = (count as u32).wrapping_sub(1);
        // Repeated until there is an answer.
        _ = self.heartbeat.put(last.to_le_bytes()).attachment(CONFIRM).wait();
    }
}

/// A heartbeat of a publisher.
#[derive(Clone, Copy, Debug)]
pub(super) struct Heartbeat {
    /// Number of the next message.
    pub(super) next: u32,
    /// Whether the publisher waits for a confirmation.
    pub(super) confirm: bool,
}

impl Heartbeat {
    fn read(sample: &::zenoh::sample::Sample) -> Option<Heartbeat> {
        let last = <[u8; 4]>::try_from(&*sample.payload().to_bytes()).ok()?;
        let confirm = sample.attachment().is_some_and(|bytes| *bytes.to_bytes() == *CONFIRM);
        Some(Heartbeat { next: u32::from_le_bytes(last).wrapping_add(1), confirm })
    }
}

/// Declaration of a subscription to publishers: its token, and its reception of their heartbeats.
#[derive(Debug)]
pub(super) struct Presence {
    session: ::zenoh::Session,
    place: String,
    token: LivelinessToken,
    heartbeats: Subscriber<()>,
}

impl Presence {
    /// Announces the subscription of this name to the publishers that match a key; calls `on_heartbeat` with the key
    /// and the ids of a publisher that sends a heartbeat.
    pub(super) fn announce(
        session: &::zenoh::Session,
        key: &KeyExpr<'static>,
        name: &str,
        on_heartbeat: impl Fn(&str, PublisherId<'_>, Heartbeat) + Send + Sync + 'static,
    ) -> Result<Presence, ::zenoh::Error> {
        let heartbeats = session
            .declare_subscriber(advanced::detection(key.as_str()))
            .callback(move |sample| {
                if let Some((key, session, entity)) = advanced::detected(sample.key_expr().as_str())
                    && let Some(heartbeat) = Heartbeat::read(&sample)
                {
                    on_heartbeat(key, PublisherId { session: &session, entity }, heartbeat);
                }
            })
            .wait()?;
        let place = format!("{key}{BY}{name}");
        let token = session.liveliness().declare_token(place.clone()).wait()?;
        Ok(Presence { session: session.clone(), place, token, heartbeats })
    }

    /// Announces to the publishers that the subscription is closing: they need not wait for it.
    pub(super) fn leave(self) {
        // Both fail if the session is already closed, which ends the subscription anyway.
        let bye = self.session.liveliness().declare_token(format!("{}{BYE}", self.place)).wait();
        _ = self.heartbeats.undeclare().wait();
        _ = self.token.undeclare().wait();
        drop(bye);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TOKEN: &str = "a/**/@rondel/by/8b.1";

    #[test]
    fn subscriptions_are_behind_until_they_confirm() {
        let positions = Positions::default();
        assert_eq!(positions.behind(10, Duration::ZERO), 0);
        positions.token(TOKEN, true, 4);
        positions.token("a/b/@rondel/by/8b.2", true, 0);
        assert_eq!(positions.behind(10, Duration::ZERO), 10);
        positions.expects("8b.2", 8);
        positions.expects("8b.2", 7);
        positions.expects("unknown", 1);
        assert_eq!(positions.behind(10, Duration::ZERO), 6);
        positions.expects("8b.1", 10);
        assert_eq!(positions.behind(10, Duration::ZERO), 2);
    }

    #[test]
    fn lost_subscriptions_count_while_they_may_come_back() {
        let positions = Positions::default();
        positions.token(TOKEN, true, 4);
        positions.token(TOKEN, false, 6);
        assert_eq!(positions.behind(10, Duration::ZERO), 6);
        positions.all().get_mut("8b.1").unwrap().lost = Instant::now().checked_sub(RETURNS);
        assert_eq!(positions.behind(10, Duration::ZERO), 0);
        // A publisher without a connection does not notice departures.
        assert_eq!(positions.behind(10, RETURNS), 6);
        positions.token(TOKEN, true, 9);
        assert_eq!(positions.behind(10, Duration::ZERO), 6, "its position is that of its first appearance");
    }

    #[test]
    fn closing_subscriptions_are_forgotten() {
        let positions = Positions::default();
        positions.token(TOKEN, true, 0);
        positions.token(&format!("{TOKEN}/bye"), true, 3);
        positions.token(TOKEN, false, 3);
        positions.token(&format!("{TOKEN}/bye"), false, 3);
        assert_eq!(positions.behind(10, Duration::ZERO), 0);
    }

    #[test]
    fn remembered_subscriptions_are_limited() {
        let positions = Positions::default();
        (0..5_000).for_each(|number| positions.token(&format!("a/@rondel/by/8b.{number}"), true, 0));
        assert_eq!(positions.all().len(), LIMIT);
    }
}
