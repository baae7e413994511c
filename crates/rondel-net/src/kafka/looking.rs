//! The reading thread: polls the consumer, and looks for topics, partitions and lost connections.

use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use rdkafka::consumer::Consumer as _;
use rdkafka::error::{KafkaError, KafkaResult, RDKafkaErrorCode};
use rdkafka::message::BorrowedMessage;

use super::client::{is_unknown_topic, unreadable};
use super::incoming::Incoming;
use super::partitions::{self, First, Unknown};
use super::routes::Routes;
use super::watch::PROBE;

/// Time of one wait for a record.
const WAIT: Duration = Duration::from_millis(100);
/// Time after which a restored connection fetches records again: the longest pause between two attempts, and a reserve.
const FETCHING: Duration = Duration::from_secs(2);
/// Time limit of looking whether any broker has answered.
const ONCE: Duration = Duration::from_millis(1);
/// Maximum number of records that are delivered before others may take the lock.
const BATCH: usize = 256;
/// Interval of looking for new partitions.
const PARTITIONS: Duration = Duration::from_secs(30);
/// Interval of looking for the ends of the partitions of a member of a group.
const ENDS: Duration = Duration::from_secs(10);
/// Interval of looking for topics whose partitions are unknown.
const TOPICS: Duration = Duration::from_secs(1);
/// Time limit of looking for one topic, while nothing is received.
const LIMIT: Duration = Duration::from_secs(1);

/// Time since which the client fetches records.
#[derive(Debug, Default)]
struct Fetches {
    /// The time at which the partitions of all subscriptions were found, or a later one at which the connection was
    /// restored.
    since: Option<Instant>,
}

impl Fetches {
    /// Records that the partitions of all subscriptions are found: only now are all fetched.
    fn begin(&mut self) {
        self.since = Some(Instant::now());
    }

    /// Records that the connection is restored.
    fn restore(&mut self) {
        if self.since.is_some() {
            self.begin();
        }
    }

    /// Whether records that waited at the brokers have been fetched by now.
    fn have_come(&self) -> bool {
        self.since.is_some_and(|since| since.elapsed() >= FETCHING)
    }
}

impl Incoming {
    /// The thread of the consumer.
    pub(super) fn run(&self) {
        let (mut looked, mut searched) = (Instant::now(), Instant::now());
        let watch = &self.consumer.context().watch;
        let mut fetches = Fetches::default();
        let is_member = self.settings.group.is_some();
        while !self.is_closing() {
            if fetches.since.is_none() && self.routes().are_found() {
                fetches.begin();
            }
            match self.consumer.poll(WAIT) {
                Some(first) => self.take(first),
                // Nothing waits any more.
                None if !watch.is_lost() && fetches.have_come() => {
                    self.is_behind.store(false, Ordering::Relaxed);
                }
                None => {}
            }
            if watch.is_suspected() && self.look_after_connection() {
                fetches.restore();
            }
            if is_member && self.rebalance(searched.elapsed() >= TOPICS) {
                fetches.begin();
            }
            if searched.elapsed() >= TOPICS {
                // A session that only publishes has no topics.
                let is_reached = self.is_reached.load(Ordering::Relaxed);
                if !is_reached && self.consumer.client().fetch_cluster_id(ONCE).is_some() {
                    self.is_reached.store(true, Ordering::Relaxed);
                }
                if !is_member {
                    self.look_for_topics();
                }
                searched = Instant::now();
            }
            if is_member && looked.elapsed() >= ENDS {
                self.look_for_ends();
                looked = Instant::now();
            }
            if !is_member && looked.elapsed() >= PARTITIONS {
                self.look_for_partitions();
                looked = Instant::now();
            }
        }
        self.end();
    }

    /// Delivers a polled record, and all that wait behind it.
    fn take(&self, first: KafkaResult<BorrowedMessage<'_>>) {
        let mut routes = self.routes_to_deliver();
        let (mut polled, mut left) = (Some(first), BATCH);
        while let Some(one) = polled.take() {
            match one {
                Ok(message) => self.deliver(&mut routes, &message),
                Err(error) => self.failed(&mut routes, &error),
            }
            left -= 1;
            if left > 0 {
                polled = self.consumer.poll(Duration::ZERO);
            }
        }
        Incoming::idle(&mut routes);
    }

    /// Logs an error of the consumer, and counts it if records cannot be read. Errors of the connection are those of the
    /// watch.
    pub(super) fn failed(&self, routes: &mut Routes, error: &KafkaError) {
        let Some(code) = error.rdkafka_error_code() else { return };
        if is_unknown_topic(code) {
            // It does not name the topic.
            for topic in routes.topics.values_mut() {
                topic.is_known = false;
            }
        }
        let advice = unreadable(error);
        if advice.is_some() {
            routes.cut_off();
        }
        if !routes.logged.contains(&code) {
            routes.logged.push(code);
            let place = self.settings.place();
            match advice {
                Some(advice) => tracing::warn!(
                    "cannot read records of Kafka at {place}: {error}; {advice}; further such errors are only counted"
                ),
                None if self.settings.group.is_some() && is_unknown_topic(code) => tracing::warn!(
                    "Kafka at {place} does not have the topic of the group; it is read once it exists"
                ),
                None if code == RDKafkaErrorCode::GroupAuthorizationFailed => tracing::warn!(
                    "the user may not join the group of Kafka at {place}; add an ACL for the operation Read on the group"
                ),
                None if code == RDKafkaErrorCode::FencedInstanceId => tracing::warn!(
                    "another process has joined the group of Kafka at {place} as the same `member`: this one reads nothing"
                ),
                None => tracing::debug!("Kafka at {place}: {error}"),
            }
        }
    }

    /// Checks a suspected connection. Returns whether it was restored.
    fn look_after_connection(&self) -> bool {
        let watch = &self.consumer.context().watch;
        let topics: Vec<String> = self.routes().topics.keys().cloned().collect();
        if topics.is_empty() {
            return false;
        }
        // One of several brokers may answer while the records of others wait.
        let client = self.consumer.client();
        let is_restored =
            watch.look(|| topics.iter().all(|topic| partitions::have_leaders(client, topic, PROBE)));
        if watch.is_lost() || is_restored {
            self.is_behind.store(true, Ordering::Relaxed);
        }
        is_restored
    }

    /// Looks for the topics whose partitions are unknown.
    fn look_for_topics(&self) {
        let unknown: Vec<String> = {
            let mut routes = self.routes();
            self.assign_rest(&mut routes);
            let all = routes.topics.iter().filter(|(_, topic)| !topic.is_known);
            all.map(|(name, _)| name.clone()).collect()
        };
        for name in unknown.into_iter().take_while(|_| !self.is_closing()) {
            let found = partitions::find(self.consumer.client(), &name, |_| false, LIMIT);
            let mut routes = self.routes();
            // The subscription may have been closed meanwhile.
            let Some(topic) = routes.topics.get_mut(&name) else { continue };
            match found {
                Ok(found) => {
                    // After an error of another topic, the known partitions of this one go on.
                    let is_later = topic.is_missing || !topic.partitions.is_empty();
                    let first = if is_later { First::Oldest } else { First::Set(self.settings.start) };
                    self.read(&mut routes, &name, &found, first);
                }
                Err(Unknown::Topic) => {
                    self.is_reached.store(true, Ordering::Relaxed);
                    topic.unread_since = None;
                    if !std::mem::replace(&mut topic.is_missing, true) {
                        tracing::warn!(
                            "Kafka at {} has no topic `{name}` any more; once it exists, reading goes on where it ended, \
                             or at the first record if it has fewer",
                            self.settings.place()
                        );
                    }
                    let partitions = std::mem::take(&mut topic.partitions);
                    self.stop(&mut routes, &name, &partitions);
                }
                Err(Unknown::Refused(reason)) => {
                    for route in routes.all.iter().filter(|route| route.filter.place.topic == name) {
                        if route.counts.refused.swap(1, Ordering::Relaxed) == 0 {
                            tracing::warn!("Kafka at {}: {reason}", self.settings.place());
                        }
                    }
                }
                Err(Unknown::Unreachable(reason)) => {
                    tracing::debug!(topic = %name, "cannot read the topic of Kafka yet: {reason}");
                }
            }
        }
    }

    /// Looks for further partitions of known topics.
    fn look_for_partitions(&self) {
        let watch = &self.consumer.context().watch;
        let known: Vec<(String, Vec<i32>)> = {
            let routes = self.routes();
            let all = routes.topics.iter().filter(|(_, topic)| topic.is_known);
            all.map(|(name, topic)| (name.clone(), topic.partitions.keys().copied().collect())).collect()
        };
        for (name, known) in known {
            if self.is_closing() || watch.is_lost() {
                return;
            }
            let is_known = |number| known.contains(&number);
            match partitions::find(self.consumer.client(), &name, is_known, LIMIT) {
                Ok(found) if found.is_empty() => {}
                Ok(found) => {
                    let mut routes = self.routes();
                    if routes.topics.contains_key(&name) {
                        self.read(&mut routes, &name, &found, First::Oldest);
                    }
                }
                Err(Unknown::Topic) => {
                    let mut routes = self.routes();
                    routes.topics.get_mut(&name).into_iter().for_each(|topic| topic.is_known = false);
                }
                Err(_) => {}
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn records_have_come_two_seconds_after_partitions_are_found() {
        let ago = |time: Duration| Instant::now().checked_sub(time);
        let mut fetches = Fetches::default();
        fetches.restore();
        assert!(fetches.since.is_none(), "a restored connection has nothing to fetch yet");
        assert!(!fetches.have_come());
        fetches.begin();
        assert!(!fetches.have_come());
        fetches.since = ago(FETCHING);
        assert!(fetches.have_come());
        fetches.restore();
        assert!(!fetches.have_come());
    }
}
