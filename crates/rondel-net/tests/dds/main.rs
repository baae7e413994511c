//! DDS participants against each other on loopback. Each has its own instance of the library, so that all
//! samples go over the network.

#![cfg(feature = "dds")]
#![allow(clippy::unwrap_used, clippy::panic)] // the helpers are tests as well

mod declaring;
mod delivery;
mod ownership;

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Condvar, Mutex};
use std::time::Duration;

use rondel_event::TopicId;
use rondel_net::adapter::{self, Receiver, Sample};
use rondel_net::dds::{PublisherSettings, Settings};

const LIMIT: Duration = Duration::from_secs(30);
const TOPIC: TopicId = TopicId(5);
const BATCHING: PublisherSettings = PublisherSettings { batching: true };

/// Returns settings with a domain that no other test uses.
fn settings() -> Settings {
    let domain = rondel_testkit::dds_domain();
    Settings { domain, interface: Some("lo".into()), ..Settings::default() }
}

/// Receiver that counts numbers, checks their order, and lets a test wait for them.
#[derive(Default)]
struct Counter {
    seen: Mutex<u64>,
    changed: Condvar,
    out_of_order: AtomicU64,
    largest_batch: AtomicU64,
    pause: Option<Duration>,
}

impl Receiver for Counter {
    fn receive(&self, topic: TopicId, samples: &[Sample<'_>]) {
        assert_eq!(topic, TOPIC);
        assert!(!samples.is_empty());
        self.largest_batch.fetch_max(samples.len() as u64, Ordering::Relaxed);
        for sample in samples {
            if let Some(pause) = self.pause {
                std::thread::sleep(pause);
            }
            let number: u64 = std::str::from_utf8(sample.payload).unwrap().trim().parse().unwrap();
            let source = sample.source_time.unwrap().as_nanos();
            assert!((sample.arrival().as_nanos() - source).abs() < 60_000_000_000);
            let mut seen = self.seen.lock().unwrap();
            if number != *seen {
                self.out_of_order.fetch_add(1, Ordering::Relaxed);
            }
            *seen += 1;
            self.changed.notify_all();
        }
    }
}

impl Counter {
    fn assert_all(&self, count: u64) {
        let seen = self.seen.lock().unwrap();
        assert_eq!(*self.changed.wait_timeout_while(seen, LIMIT, |seen| *seen < count).unwrap().0, count);
        assert_eq!(self.out_of_order.load(Ordering::Relaxed), 0);
    }
}

fn publish_numbers(publisher: &dyn adapter::Publisher, numbers: std::ops::Range<u64>) {
    for i in numbers {
        publisher.publish(i.to_string().as_bytes()).unwrap();
    }
    publisher.release();
}
