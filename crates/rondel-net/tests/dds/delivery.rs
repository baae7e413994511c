//! Samples between participants: batches, back-pressure, and the end of either side.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex};
use std::time::{Duration, Instant};

use rondel_event::TopicId;
use rondel_net::adapter::{PublishError, Publisher as _, Receiver, Sample, Subscription as _};
use rondel_net::dds::{DeclareError, Extensibility, Participant, PublisherSettings, Settings, StringType};
use rondel_testkit::wait_until;

use crate::{BATCHING, Counter, LIMIT, TOPIC, publish_numbers, settings};

#[test]
fn nothing_is_lost_with_and_without_batching() {
    for publishing in [PublisherSettings::default(), BATCHING] {
        let settings = settings();
        let (a, b) = (Participant::open(&settings).unwrap(), Participant::open(&settings).unwrap());
        let counter = Arc::new(Counter::default());
        let string = StringType::default();
        let subscription = a.subscribe("test/numbers", &string, TOPIC, Arc::clone(&counter)).unwrap();
        let publisher = b.publisher("test/numbers", &string, publishing).unwrap();
        assert!(publisher.wait_matched(LIMIT));
        publish_numbers(&publisher, 0..20_000);
        counter.assert_all(20_000);
        assert!(counter.largest_batch.load(Ordering::Relaxed) <= 64);
        assert_eq!(subscription.received(), 20_000);
        assert!(publisher.flush(LIMIT));

        assert!(subscription.drain(Duration::from_millis(20), LIMIT));
        assert!(subscription.close(LIMIT) && subscription.close(LIMIT), "closing twice is harmless");
        assert_eq!(Arc::strong_count(&counter), 1, "the receiver is released");
        assert_eq!(subscription.problems().lost, 0);
        assert!(b.close(LIMIT) && b.close(LIMIT));
        assert!(matches!(publisher.publish(b"1"), Err(PublishError::Closed)));
        assert!(matches!(b.publisher("test/numbers", &string, publishing), Err(DeclareError::Closed)));
    }
}

#[test]
fn closing_delivers_published_samples() {
    let settings = settings();
    let a = Participant::open(&settings).unwrap();
    let counter = Arc::new(Counter::default());
    let string = StringType { name: "Text".into(), member: "value".into(), ..StringType::default() };
    let _subscription = a.subscribe("test_numbers", &string, TOPIC, Arc::clone(&counter)).unwrap();
    for round in 0..5 {
        let b = Participant::open(&settings).unwrap();
        let publisher = b.publisher("test_numbers", &string, BATCHING).unwrap();
        assert!(publisher.wait_matched(LIMIT));
        for i in round * 5000..(round + 1) * 5000 {
            publisher.publish(i.to_string().as_bytes()).unwrap();
        }
        // Not released: closing does that.
        assert!(b.close(LIMIT));
        counter.assert_all((round + 1) * 5000);
    }
}

#[test]
fn peers_by_address_instead_of_multicast() {
    let settings = Settings { peers: vec!["127.0.0.1".into()], ..settings() };
    let (a, b) = (Participant::open(&settings).unwrap(), Participant::open(&settings).unwrap());
    let counter = Arc::new(Counter::default());
    let string = StringType { extensibility: Extensibility::Appendable, ..StringType::default() };
    let _subscription = a.subscribe("test/numbers", &string, TOPIC, Arc::clone(&counter)).unwrap();
    let publisher = b.publisher("test/numbers", &string, BATCHING).unwrap();
    assert!(publisher.wait_matched(LIMIT));
    publish_numbers(&publisher, 0..1000);
    counter.assert_all(1000);
}

#[test]
fn ten_megabytes_in_one_payload() {
    let settings = settings();
    let (a, b) = (Participant::open(&settings).unwrap(), Participant::open(&settings).unwrap());
    let sent: Arc<Vec<u8>> = Arc::new((0..10_000_000_u32).map(|i| (i / 7 % 90) as u8 + b' ').collect());
    let (sender, results) = std::sync::mpsc::channel();
    let expected = Arc::clone(&sent);
    let string = StringType::default();
    let receiver = Arc::new(move |_: TopicId, samples: &[Sample<'_>]| {
        sender.send(samples[0].payload == expected.as_slice()).unwrap();
    });
    let _subscription = a.subscribe("test/large", &string, TOPIC, receiver).unwrap();
    let publisher = b.publisher("test/large", &string, PublisherSettings::default()).unwrap();
    assert!(publisher.wait_matched(LIMIT));
    publisher.publish(&sent).unwrap();
    assert!(results.recv_timeout(LIMIT).unwrap());
    for odd in ["", "a", "ab", "abc"] {
        publisher.publish(odd.as_bytes()).unwrap();
        assert!(!results.recv_timeout(LIMIT).unwrap());
    }
    assert!(matches!(publisher.publish(b"a\0b"), Err(PublishError::Payload(_))));
}

/// A slow receiver with a cache of 100 samples: the publisher must be held back.
#[test]
fn a_slow_receiver_holds_the_publisher_back_and_loses_nothing() {
    let settings = Settings { reader_queue: 100, ..settings() };
    let (a, b) = (Participant::open(&settings).unwrap(), Participant::open(&settings).unwrap());
    let counter = Arc::new(Counter { pause: Some(Duration::from_micros(500)), ..Counter::default() });
    let string = StringType::default();
    let subscription = a.subscribe("test/numbers", &string, TOPIC, Arc::clone(&counter)).unwrap();
    let publisher = b.publisher("test/numbers", &string, BATCHING).unwrap();
    assert!(publisher.wait_matched(LIMIT));
    let mut held_back = 0;
    for i in 0..4000_u64 {
        publisher.publish(format!("{i:2000}").as_bytes()).unwrap();
        // The last message may have been counted before it is here.
        held_back = held_back.max(i.saturating_sub(*counter.seen.lock().unwrap()));
    }
    publisher.release();
    assert!(held_back < 3000, "{held_back} messages in flight: no back-pressure");
    counter.assert_all(4000);
    assert_eq!(subscription.problems().lost, 0);
}

#[test]
fn acknowledged_samples_are_not_handed_back() {
    let settings = settings();
    let (a, b) = (Participant::open(&settings).unwrap(), Participant::open(&settings).unwrap());
    let (string, counter) = (StringType::default(), Arc::new(Counter::default()));
    let _subscription = a.subscribe("test/acks", &string, TOPIC, Arc::clone(&counter)).unwrap();
    let publisher = b.publisher("test/acks", &string, BATCHING).unwrap();
    publisher.hand_back();
    assert!(publisher.wait_matched(LIMIT));
    for round in 0..60 {
        publish_numbers(&publisher, round * 30..(round + 1) * 30);
        assert!(publisher.flush(LIMIT));
        // The library may still have references to them.
        assert_eq!(publisher.unconfirmed(), Some(0), "round {round}");
    }
    publisher.take_abandoned(&mut |_| panic!("no reader has left"));
    counter.assert_all(60 * 30);
}

/// The receiver publishes on a topic whose subscriber is slow, with caches far too small for the samples sent. With a
/// common receive thread for subscriptions and publishers, this is a deadlock.
#[test]
fn an_echo_under_back_pressure_is_no_deadlock() {
    let settings = Settings { reader_queue: 100, ..settings() };
    let string = StringType::default();
    let echo = Participant::open(&settings).unwrap();
    let publisher = Arc::new(echo.publisher("test/echo", &string, BATCHING).unwrap());
    struct Echo(Arc<rondel_net::dds::Publisher>);
    impl Receiver for Echo {
        fn receive(&self, _: TopicId, samples: &[Sample<'_>]) {
            samples.iter().for_each(|s| self.0.publish(s.payload).unwrap());
        }
        fn idle(&self) {
            self.0.release();
        }
    }
    let _echo =
        echo.subscribe("test/numbers", &string, TOPIC, Arc::new(Echo(Arc::clone(&publisher)))).unwrap();

    let other = Participant::open(&settings).unwrap();
    let counter = Arc::new(Counter { pause: Some(Duration::from_micros(100)), ..Counter::default() });
    let _subscription = other.subscribe("test/echo", &string, TOPIC, Arc::clone(&counter)).unwrap();
    let numbers = other.publisher("test/numbers", &string, BATCHING).unwrap();
    assert!(numbers.wait_matched(LIMIT) && publisher.wait_matched(LIMIT));
    publish_numbers(&numbers, 0..10_000);
    counter.assert_all(10_000);
}

#[test]
fn a_blocked_publisher_is_woken_by_closing() {
    let settings = Settings { reader_queue: 10, ..settings() };
    let (a, b) = (Participant::open(&settings).unwrap(), Participant::open(&settings).unwrap());
    let string = StringType::default();
    let gate = Arc::new((Mutex::new(false), Condvar::new()));
    let inner = Arc::clone(&gate);
    let receiver = Arc::new(move |_: TopicId, _: &[Sample<'_>]| {
        let open = inner.0.lock().unwrap();
        drop(inner.1.wait_timeout_while(open, LIMIT, |open| !*open).unwrap());
    });
    let subscription = a.subscribe("test/gate", &string, TOPIC, receiver).unwrap();
    let publisher = b.publisher("test/gate", &string, PublisherSettings::default()).unwrap();
    assert!(publisher.wait_matched(LIMIT));
    let published = AtomicU64::new(0);
    std::thread::scope(|scope| {
        let blocked = scope.spawn(|| {
            let payload = "x".repeat(10_000);
            loop {
                if let Err(e) = publisher.publish(payload.as_bytes()) {
                    return e;
                }
                published.fetch_add(1, Ordering::Relaxed);
            }
        });
        // The publisher is blocked once the count is constant for longer than the library blocks at a time.
        let mut last = (0, Instant::now());
        wait_until("the publisher has begun", || published.load(Ordering::Relaxed) > 0);
        while last.1.elapsed() < Duration::from_millis(400) {
            let now = published.load(Ordering::Relaxed);
            if now != last.0 {
                last = (now, Instant::now());
            }
            assert!(now < 100_000, "no back-pressure");
            std::thread::yield_now();
        }
        let closing = Instant::now();
        assert!(!b.close(Duration::from_millis(10)), "not everything was acknowledged");
        assert!(matches!(blocked.join().unwrap(), PublishError::Closed));
        assert!(closing.elapsed() < LIMIT);
    });
    assert!(!subscription.close(Duration::ZERO), "the receiver is still blocked");
    *gate.0.lock().unwrap() = true;
    gate.1.notify_all();
    assert!(subscription.close(LIMIT));
}
