//! Subscriptions to all topics of a pattern.

use std::collections::HashSet;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use cyclors::dds_attach_t;
use rondel_decode::schema::Schema;
use rondel_event::{NameId, TopicId, globs_meet};

use super::domain::Domain;
use super::entity::{Entity, check};
use super::further::Part;
use super::publishers::{AnnouncedPublisher, announced, publications};
use super::{DeclareError, DeclaredTopic, Subscription, TopicQos, TopicType};
use crate::adapter::{self, Problems, Receiver};

/// Limit of topics subscribed to: each has a thread and a cache.
const TOPICS: usize = 256;

/// Subscriptions to all topics whose names match a pattern, created as their publishers are discovered.
///
/// Samples sent before the publisher discovers the new subscription are not received, as with every subscription
/// created after its publisher.
#[derive(Debug)]
pub struct Matching {
    shared: Arc<MatchingState>,
    stop: Arc<Entity>,
    thread: Mutex<Option<JoinHandle<()>>>,
}

#[derive(Debug, Default)]
struct MatchingState {
    subscriptions: Mutex<Vec<Subscription>>,
    stopping: AtomicBool,
    /// Number of topics not received because of another type or the limit of topics.
    left_out: AtomicU64,
}

/// Receiver of the samples of a discovered topic, and the number of its name.
pub type Selected<R> = (Arc<R>, Option<NameId>);

impl MatchingState {
    fn subscriptions(&self) -> MutexGuard<'_, Vec<Subscription>> {
        self.subscriptions.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Matching {
    pub(super) fn create<R: Receiver + ?Sized>(
        domain: Arc<Domain>,
        pattern: &str,
        of: DeclaredTopic<'_>,
        queue: u32,
        topic: TopicId,
        select: impl Fn(&str) -> Option<Selected<R>> + Send + 'static,
    ) -> Result<Matching, DeclareError> {
        super::check_pattern(pattern)?;
        let shared = Arc::new(MatchingState::default());
        let participant = domain.participant();
        tracing::info!(topic = %pattern, type_name = of.topic_type.name().unwrap_or("any"), "subscribing to matching topics as they are discovered");
        // SAFETY: a live handle.
        let stop = unsafe { cyclors::dds_create_guardcondition(participant) };
        let stop = Arc::new(Entity::own(stop, "DDS condition")?);
        // SAFETY: a live handle.
        let waitset = Entity::own(unsafe { cyclors::dds_create_waitset(participant) }, "DDS wait set")?;
        let announcements = publications(&domain)?;
        // SAFETY: a live handle. The condition is deleted with its reader.
        let condition =
            unsafe { cyclors::dds_create_readcondition(announcements.handle(), cyclors::DDS_ANY_STATE) };
        for entity in [check(condition, "DDS condition")?, stop.handle()] {
            // SAFETY: live handles; the thread does not distinguish which of them woke it.
            check(unsafe { cyclors::dds_waitset_attach(waitset.handle(), entity, 0) }, "DDS wait set")?;
        }
        let discovery = TopicDiscovery {
            waitset,
            announcements,
            _stop: Arc::clone(&stop),
            shared: Arc::clone(&shared),
            domain,
            pattern: pattern.to_owned(),
            topic_type: of.topic_type.clone(),
            qos: of.qos.clone(),
            schema: of.schema.cloned(),
            queue,
            topic,
            select,
        };
        let thread = std::thread::Builder::new()
            .name("dds topics".into())
            .spawn(move || discovery.run::<R>())
            .map_err(|e| DeclareError::Network { what: "thread", reason: e.to_string() })?;
        Ok(Matching { shared, stop, thread: Mutex::new(Some(thread)) })
    }

    /// Ends the discovery of topics.
    fn stop(&self) {
        self.shared.stopping.store(true, Ordering::Release);
        // SAFETY: a live handle. Wakes the thread.
        unsafe { cyclors::dds_set_guardcondition(self.stop.handle(), true) };
        if let Some(thread) = self.thread.lock().unwrap_or_else(PoisonError::into_inner).take() {
            // A panic of the thread was reported when it happened.
            _ = thread.join();
        }
    }
}

/// The discovery of the topics of a pattern, on a thread of its own. The first fields are dropped in their order.
struct TopicDiscovery<F> {
    waitset: Entity,
    announcements: Entity,
    /// Attached to the wait set.
    _stop: Arc<Entity>,
    shared: Arc<MatchingState>,
    domain: Arc<Domain>,
    pattern: String,
    topic_type: TopicType,
    qos: TopicQos,
    schema: Option<Schema>,
    queue: u32,
    topic: TopicId,
    select: F,
}

impl<F> TopicDiscovery<F> {
    /// Subscribes to topics as they are discovered, until the subscription is closed.
    fn run<R: Receiver + ?Sized>(self)
    where
        F: Fn(&str) -> Option<Selected<R>>,
    {
        let mut known = HashSet::new();
        while !self.shared.stopping.load(Ordering::Acquire) {
            for (topic, type_name) in self.discovered(&mut known) {
                let Some((receiver, name)) = (self.select)(&topic) else {
                    tracing::debug!(%topic, "the topic fits {}, but is not meant", self.pattern);
                    continue;
                };
                self.subscribe(&topic, &type_name, receiver, name);
            }
            if !self.wait() {
                return;
            }
        }
    }

    /// Returns the topics of the pattern that were not known, with the names of their types.
    fn discovered(&self, known: &mut HashSet<(String, String)>) -> Vec<(String, String)> {
        let mut new = Vec::new();
        announced(&self.announcements, |_, endpoint| {
            let Some(AnnouncedPublisher { topic, type_name, .. }) = endpoint else { return };
            let (Ok(topic), type_name) = (topic.to_str(), type_name.to_string_lossy()) else {
                return;
            };
            let found = (topic.to_owned(), type_name.into_owned());
            if fits(&self.pattern, topic) && !known.contains(&found) {
                known.insert(found.clone());
                new.push(found);
            }
        });
        new
    }

    /// Subscribes to a discovered topic, unless it has another type or the limit of topics is reached.
    fn subscribe<R: Receiver + ?Sized>(
        &self,
        topic: &str,
        type_name: &str,
        receiver: Arc<R>,
        name: Option<NameId>,
    ) {
        let pattern = &self.pattern;
        if let Some(ours) = self.topic_type.name().filter(|ours| *ours != type_name) {
            self.shared.left_out.fetch_add(1, Ordering::Relaxed);
            tracing::warn!(
                %topic,
                "the topic is ignored: its type is {type_name}, the subscription to {pattern} has {ours}"
            );
            return;
        }
        if self.shared.subscriptions().len() >= TOPICS {
            self.shared.left_out.fetch_add(1, Ordering::Relaxed);
            tracing::warn!(
                %topic,
                "the topic is ignored: the subscription to {pattern} has reached its limit of {TOPICS} topics"
            );
            return;
        }
        let of = DeclaredTopic { topic_type: &self.topic_type, qos: &self.qos, schema: self.schema.as_ref() };
        let part = Part::first(self.topic, name);
        match Subscription::create(Arc::clone(&self.domain), topic, of, self.queue, part, receiver) {
            Ok(subscription) => self.shared.subscriptions().push(subscription),
            Err(error) => {
                self.shared.left_out.fetch_add(1, Ordering::Relaxed);
                tracing::warn!(%topic, "the topic is ignored: {error}");
            }
        }
    }

    /// Waits for the next announcement. Returns `false` if waiting failed.
    fn wait(&self) -> bool {
        let mut woken: [dds_attach_t; 2] = [0; 2];
        // SAFETY: a live handle, and room for the stated number of handles.
        let count = unsafe {
            let forever = cyclors::dds_duration_t::MAX;
            cyclors::dds_waitset_wait(self.waitset.handle(), woken.as_mut_ptr(), woken.len(), forever)
        };
        if count < 0 {
            let reason = super::entity::message(count);
            tracing::error!(
                topic = %self.pattern,
                "waiting for DDS publishers failed: {reason}; no further topics will be subscribed to"
            );
        }
        count >= 0
    }
}

impl adapter::Subscription for Matching {
    fn drain(&self, quiet: Duration, limit: Duration) -> bool {
        let received = || self.shared.subscriptions().iter().map(Subscription::received).sum();
        adapter::wait_quiet(received, quiet, limit)
    }

    fn close(&self, limit: Duration) -> bool {
        let deadline = Instant::now() + limit;
        self.stop();
        let mut closed = true;
        for subscription in &*self.shared.subscriptions() {
            closed &= subscription.close(deadline.saturating_duration_since(Instant::now()));
        }
        closed
    }

    fn problems(&self) -> Problems {
        let mut all =
            Problems { incompatible: self.shared.left_out.load(Ordering::Relaxed), ..Problems::default() };
        for subscription in &*self.shared.subscriptions() {
            all += subscription.problems();
        }
        all
    }

    fn publishers(&self) -> Option<u64> {
        Some(self.shared.subscriptions().iter().filter_map(|subscription| subscription.publishers()).sum())
    }
}

impl Drop for Matching {
    fn drop(&mut self) {
        self.stop();
    }
}

/// Whether a topic may have both names, each of which may be a pattern.
pub fn names_meet(one: &str, other: &str) -> bool {
    match (super::is_pattern(one), super::is_pattern(other)) {
        (false, false) => one == other,
        (true, false) => fits(one, other),
        (false, true) => fits(other, one),
        (true, true) => globs_meet(one, other),
    }
}

/// Whether a name matches a pattern, in which `*` matches any number of characters and `?` matches one.
pub(crate) fn fits(pattern: &str, name: &str) -> bool {
    let (pattern, name) = (pattern.as_bytes(), name.as_bytes());
    let (mut p, mut n) = (0, 0);
    // For the last `*`: the position after it in the pattern, and the end of its match in the name.
    let mut star: Option<(usize, usize)> = None;
    while n < name.len() {
        match pattern.get(p) {
            Some(b'*') => {
                star = Some((p + 1, n));
                p += 1;
            }
            Some(&c) if c == b'?' || c == name[n] => (p, n) = (p + 1, n + 1),
            _ => {
                let Some((after, taken)) = star else { return false };
                star = Some((after, taken + 1));
                (p, n) = (after, taken + 1);
            }
        }
    }
    pattern[p..].iter().all(|&c| c == b'*')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns_meet_where_a_name_matches_both() {
        for (one, other, do_meet) in [
            ("fleet/*/pose", "fleet/r1/*", true),
            ("fleet/*/pose", "*/r1/pose", true),
            ("fleet/*/pose", "fleet/*/scan", false),
            ("*a*", "b*c", true),
            ("a?", "?b", true),
            ("a?", "b?", false),
            ("a*", "a", true),
            ("*", "*", true),
            ("a*b", "b*a", false),
            ("rt/fleet/*/pose", "rt/fleet/r2/pose", true),
            ("rt/fleet/r1/pose", "rt/fleet/r2/pose", false),
        ] {
            assert_eq!(names_meet(one, other), do_meet, "{one} {other}");
            assert_eq!(names_meet(other, one), do_meet, "{other} {one}");
        }
    }

    proptest::proptest! {
        #[test]
        fn patterns_meet_as_their_names_do(one in "[ab*?]{0,5}", other in "[ab*?]{0,5}") {
            // A shortest name in both is no longer than both patterns together.
            let mut names = vec![String::new()];
            let mut is_met = false;
            for _ in 0..=(one.len() + other.len()).min(8) {
                is_met |= names.iter().any(|name| fits(&one, name) && fits(&other, name));
                names = names.iter().flat_map(|name| ["a", "b"].map(|c| format!("{name}{c}"))).collect();
            }
            proptest::prop_assert_eq!(names_meet(&one, &other), is_met, "{} {}", one, other);
        }
    }

    #[test]
    fn names_match_patterns() {
        for (pattern, name, is) in [
            ("*", "", true),
            ("*", "rt/state", true),
            ("rt/*", "rt/state", true),
            ("rt/*", "rt/a/b", true),
            ("rt/*", "rq/state", false),
            ("*/state", "rt/state", true),
            ("*/state", "rt/states", false),
            ("rt/?", "rt/a", true),
            ("rt/?", "rt/", false),
            ("a*b*c", "aXbXbc", true),
            ("a*b*c", "aXbXbcd", false),
            ("state", "state", true),
            ("", "a", false),
        ] {
            assert_eq!(fits(pattern, name), is, "{pattern} {name}");
        }
    }
}
