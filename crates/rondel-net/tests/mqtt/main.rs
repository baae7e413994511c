//! MQTT client against mosquitto on loopback.

#![cfg(feature = "mqtt")]
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)] // the helpers are tests as well

mod delivery;
mod outages;
mod security;

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex};
use std::time::Duration;

use rondel_event::{Timestamp, TopicId};
use rondel_net::adapter::{self, Receiver, Sample};
use rondel_net::mqtt::{PublisherSettings, Qos, Session, Settings, SubscriptionSettings, Version};

const LIMIT: Duration = Duration::from_secs(30);
const TOPIC: TopicId = TopicId(4);
const VERSIONS: [Version; 2] = [Version::V3, Version::V5];
const EVERY_QOS: [Qos; 3] = [Qos::AtMostOnce, Qos::AtLeastOnce, Qos::ExactlyOnce];
const BATCHING: PublisherSettings = PublisherSettings { qos: None, retain: false, batching: true };

fn settings(port: u16) -> Settings {
    Settings { broker: format!("127.0.0.1:{port}").parse().unwrap(), ..Settings::default() }
}

/// Receiver that records the received numbers and lets a test wait for them.
#[derive(Default)]
struct Numbers {
    seen: Mutex<Vec<u64>>,
    changed: Condvar,
    idle: AtomicU64,
    /// Outages, each with the number of messages before the report.
    missed: Mutex<Vec<(usize, Timestamp, Option<Timestamp>)>>,
    /// Processing time of a message, to simulate a slow receiver.
    pause: Option<Duration>,
}

impl Receiver for Numbers {
    fn receive(&self, topic: TopicId, samples: &[Sample<'_>]) {
        assert_eq!(topic, TOPIC);
        for sample in samples {
            if let Some(pause) = self.pause {
                std::thread::sleep(pause);
            }
            let since = adapter::now().as_nanos() - sample.arrival().as_nanos();
            assert!((0..60_000_000_000).contains(&since) && sample.source_time.is_none(), "{since}");
            let number = std::str::from_utf8(sample.payload).unwrap().parse().unwrap();
            self.seen.lock().unwrap().push(number);
            self.changed.notify_all();
        }
    }

    fn idle(&self) {
        self.idle.fetch_add(1, Ordering::Relaxed);
    }

    fn missed(&self, topic: TopicId, from: Timestamp, until: Option<Timestamp>) {
        assert_eq!(topic, TOPIC);
        let count = self.seen.lock().unwrap().len();
        self.missed.lock().unwrap().push((count, from, until));
    }

    fn wants_idle(&self) -> bool {
        true
    }
}

impl Numbers {
    /// Waits for `count` numbers and returns all.
    fn wait_for(&self, count: usize) -> Vec<u64> {
        self.wait_until(LIMIT, |seen| seen.len() >= count)
    }

    /// Waits up to `limit` for a condition and returns all numbers.
    fn wait_until(&self, limit: Duration, done: impl Fn(&[u64]) -> bool) -> Vec<u64> {
        let seen = self.seen.lock().unwrap();
        self.changed.wait_timeout_while(seen, limit, |seen| !done(seen)).unwrap().0.clone()
    }

    #[track_caller]
    fn assert_all(&self, count: u64) {
        let seen = self.wait_for(count as usize);
        assert_eq!(seen.len() as u64, count);
        assert!(seen.iter().copied().eq(0..count), "out of order");
    }
}

fn publish(publisher: &dyn adapter::Publisher, numbers: std::ops::Range<u64>) {
    for i in numbers {
        publisher.publish(i.to_string().as_bytes()).unwrap();
    }
}

fn subscribe(session: &Session, filter: &str) -> (Arc<Numbers>, rondel_net::mqtt::Subscription) {
    let numbers = Arc::new(Numbers::default());
    let subscription =
        session.subscribe(filter, SubscriptionSettings::default(), TOPIC, Arc::clone(&numbers)).unwrap();
    (numbers, subscription)
}
