//! DDS participants against each other on loopback. Each has its own instance of the library, so that all
//! samples go over the network.

#![cfg(feature = "dds")]
#![allow(clippy::unwrap_used, clippy::panic)] // the helpers are tests as well

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex};
use std::time::{Duration, Instant};

use rondel_event::{Timestamp, TopicId};
use rondel_net::adapter::{self, PublishError, Publisher as _, Receiver, Sample, Subscription as _};
use rondel_net::dds::{
    DeclareError, DeclaredTopic, Extensibility, Liveliness, OpenError, Ownership, Participant,
    PublisherSettings, Settings, StringType, TopicQos, TopicType,
};
use rondel_testkit::wait_until;

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

/// The receiver publishes on a topic whose subscriber is slow, with caches far too small for the samples sent. With a
/// common receive thread for subscriptions and publishers, this is a deadlock.
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

/// CycloneDDS itself reports neither of them.
#[test]
fn a_publisher_that_cannot_be_received_is_reported() {
    let settings = settings();
    let (a, b) = (Participant::open(&settings).unwrap(), Participant::open(&settings).unwrap());
    let counter = Arc::new(Counter::default());
    let subscription = a.subscribe("test/x", &StringType::default(), TOPIC, Arc::clone(&counter)).unwrap();
    let same = b.publisher("test/x", &StringType::default(), BATCHING).unwrap();
    let other_name = StringType { member: "text".into(), name: "Other".into(), ..StringType::default() };
    let other = b.publisher("test/x", &other_name, BATCHING).unwrap();
    wait_until("the publisher is reported as incompatible", || subscription.problems().incompatible == 1);
    let other_kind = StringType { extensibility: Extensibility::Appendable, ..StringType::default() };
    let _other = Participant::open(&settings).unwrap().publisher("test/x", &other_kind, BATCHING).unwrap();
    wait_until("the publisher is reported as incompatible", || subscription.problems().incompatible == 2);
    assert!(same.is_matched() && !other.is_matched());
    publish_numbers(&same, 0..10);
    counter.assert_all(10);
}

/// With exclusive ownership the strongest publisher is received until it leaves.
#[test]
fn the_strongest_publisher_owns_an_instance() {
    let settings = settings();
    let (a, b) = (Participant::open(&settings).unwrap(), Participant::open(&settings).unwrap());
    let payloads = Arc::new(Mutex::new(Vec::new()));
    let log = Arc::clone(&payloads);
    let receiver = Arc::new(move |_: TopicId, samples: &[Sample<'_>]| {
        log.lock().unwrap().extend(samples.iter().map(|sample| sample.payload.to_vec()));
    });
    let exclusive = TopicQos { ownership: Some(Ownership::Exclusive), ..TopicQos::default() };
    let text = TopicType::default();
    let of = DeclaredTopic { topic_type: &text, qos: &exclusive, schema: None };
    let subscription = a.subscribe_as("test/owned", of, TOPIC, receiver).unwrap();
    let publisher = |strength| {
        let qos = TopicQos { strength: Some(strength), ..exclusive.clone() };
        let of = DeclaredTopic { topic_type: &text, qos: &qos, schema: None };
        let publisher = b.publisher_as("test/owned", of, PublisherSettings::default()).unwrap();
        assert!(publisher.wait_matched(LIMIT));
        publisher
    };
    let (weak, strong) = (publisher(1), publisher(2));
    let received = |expected: &[u8]| payloads.lock().unwrap().last().is_some_and(|last| last == expected);
    wait_until("the stronger one is received", || {
        strong.publish(b"strong").unwrap();
        received(b"strong")
    });
    let before = payloads.lock().unwrap().len();
    for _ in 0..10 {
        weak.publish(b"weak").unwrap();
        strong.publish(b"strong").unwrap();
    }
    wait_until("ten more are received", || payloads.lock().unwrap().len() >= before + 10);
    assert!(payloads.lock().unwrap()[before..].iter().all(|payload| payload == b"strong"));
    drop(strong);
    wait_until("the weaker one takes over from the one that left", || {
        weak.publish(b"last").unwrap();
        received(b"last")
    });
    // Those of the weaker one that were withheld are none.
    assert_eq!(subscription.problems().lost, 0);
}

/// The source time of an event, and of the first sample that follows.
type Begin = (Option<Timestamp>, Option<Timestamp>);

/// Sets the time of the first sample after an event.
fn begin(all: &Mutex<Vec<Begin>>, samples: &[Sample<'_>]) {
    if let Some((_, first @ None)) = all.lock().unwrap().last_mut() {
        *first = samples[0].source_time;
    }
}

/// Records whether its topic has a live publisher, and since when.
#[derive(Default)]
struct Lives(Mutex<Vec<bool>>, Mutex<Vec<Begin>>);

impl Receiver for Lives {
    fn receive(&self, _: TopicId, samples: &[Sample<'_>]) {
        begin(&self.1, samples);
    }

    fn changed(&self, _: TopicId, change: adapter::Change<'_>, time: adapter::ChangeTime) {
        if let adapter::Change::Alive(is_alive) = change {
            self.1.lock().unwrap().push((time.source, None));
            self.0.lock().unwrap().push(is_alive);
        }
    }
}

/// Records the owners of its topic: whether one owns it, who, and since when.
#[derive(Default)]
struct Owners(Mutex<Vec<Option<adapter::PublisherId>>>, Mutex<Vec<Begin>>);

impl Receiver for Owners {
    fn receive(&self, _: TopicId, samples: &[Sample<'_>]) {
        begin(&self.1, samples);
    }

    fn wants_owner(&self, topic: TopicId) -> bool {
        topic == TOPIC
    }

    fn changed(&self, _: TopicId, change: adapter::Change<'_>, time: adapter::ChangeTime) {
        if let adapter::Change::Owner(instance, publisher) = change {
            assert_eq!(instance, adapter::Instance::Unnamed);
            if publisher.is_some() {
                self.1.lock().unwrap().push((time.source, None));
            }
            self.0.lock().unwrap().push(publisher);
        }
    }
}

/// The owner is reported with its first sample and when it leaves, and one that returns owns its topic again.
#[test]
fn the_owner_of_a_topic_is_reported() {
    let settings = settings();
    let (a, b) = (Participant::open(&settings).unwrap(), Participant::open(&settings).unwrap());
    let owners = Arc::new(Owners::default());
    let exclusive = TopicQos { ownership: Some(Ownership::Exclusive), ..TopicQos::default() };
    let text = TopicType::default();
    let of = DeclaredTopic { topic_type: &text, qos: &exclusive, schema: None };
    let _subscription = a.subscribe_as("test/owner", of, TOPIC, Arc::clone(&owners)).unwrap();
    let publisher = |strength| {
        let qos = TopicQos { strength: Some(strength), ..exclusive.clone() };
        let of = DeclaredTopic { topic_type: &text, qos: &qos, schema: None };
        let publisher = b.publisher_as("test/owner", of, PublisherSettings::default()).unwrap();
        assert!(publisher.wait_matched(LIMIT));
        publisher
    };
    let seen = || owners.0.lock().unwrap().clone();
    let weak = publisher(1);
    wait_until("the weaker one owns the topic", || {
        weak.publish(b"1").unwrap();
        seen().len() == 1
    });
    let strong = publisher(2);
    wait_until("the stronger one takes the topic", || {
        strong.publish(b"2").unwrap();
        weak.publish(b"1").unwrap();
        seen().len() == 2
    });
    drop(strong);
    wait_until("the weaker one owns the topic again", || {
        weak.publish(b"1").unwrap();
        let seen = seen();
        seen.len() > 2 && seen.last() == seen.first()
    });
    drop(weak);
    wait_until("the topic has no owner", || seen().last() == Some(&None));
    let seen = seen();
    assert!(seen[0].is_some() && seen[1].is_some() && seen[0] != seen[1], "{seen:?}");
    let begins = owners.1.lock().unwrap().clone();
    assert!(begins.iter().all(|(event, first)| event.is_some() && event == first), "{begins:?}");
    // A message of the weaker one may come before the end of the stronger one is known.
    let weak = seen[0];
    assert!(seen[2..] == [None, weak, None] || seen[2..] == [weak, None], "{seen:?}");
}

/// Publishers share a topic by default, which has no owner then.
#[test]
fn a_shared_topic_has_no_owner() {
    let settings = settings();
    let (a, b) = (Participant::open(&settings).unwrap(), Participant::open(&settings).unwrap());
    let owners = Arc::new(Owners::default());
    let string = StringType::default();
    let subscription = a.subscribe("test/shared", &string, TOPIC, Arc::clone(&owners)).unwrap();
    let publisher = b.publisher("test/shared", &string, BATCHING).unwrap();
    assert!(publisher.wait_matched(LIMIT));
    publish_numbers(&publisher, 0..10);
    wait_until("all are received", || subscription.received() >= 10);
    assert_eq!(owners.0.lock().unwrap().len(), 0);
}

/// A publisher whose messages are its signs of life is not alive while it is silent for longer than its lease.
#[test]
fn a_silent_publisher_of_manual_liveliness_is_not_alive() {
    let settings = settings();
    let (a, b) = (Participant::open(&settings).unwrap(), Participant::open(&settings).unwrap());
    let lives = Arc::new(Lives::default());
    let string = StringType::default();
    let _subscription = a.subscribe("test/alive", &string, TOPIC, Arc::clone(&lives)).unwrap();
    let lease = Some(Duration::from_millis(500));
    let qos = TopicQos { lease, liveliness: Some(Liveliness::ManualByTopic), ..TopicQos::default() };
    let of = DeclaredTopic { topic_type: &TopicType::Text(string), qos: &qos, schema: None };
    let publisher = b.publisher_as("test/alive", of, PublisherSettings::default()).unwrap();
    let is_now = |expected| lives.0.lock().unwrap().last() == Some(&expected);
    wait_until("it is alive", || {
        publisher.publish(b"1").unwrap();
        is_now(true)
    });
    wait_until("its lease has expired", || is_now(false));
    wait_until("it is alive again", || {
        publisher.publish(b"2").unwrap();
        is_now(true)
    });
    // An event that comes with samples is not after these.
    let begins = lives.1.lock().unwrap().clone();
    let is_in_order = |(event, first): &Begin| event.is_none() || first.is_none() || event <= first;
    assert!(begins.iter().all(is_in_order), "{begins:?}");
}

/// Topics published before and after the subscription, one with another type, one with another name.
#[test]
fn topics_matching_a_pattern_are_discovered() {
    let settings = settings();
    let (a, b) = (Participant::open(&settings).unwrap(), Participant::open(&settings).unwrap());
    let publisher = |name: &str, t: &StringType| b.publisher(name, t, BATCHING).unwrap();
    let plain = StringType::default();
    let before = publisher("test/a", &plain);
    let (topic_type, qos) = (TopicType::Text(plain.clone()), TopicQos::default());
    let of = DeclaredTopic { topic_type: &topic_type, qos: &qos, schema: None };
    let (received_names, counter) = (Arc::new(Mutex::new(Vec::new())), Arc::new(Counter::default()));
    let (names, to) = (Arc::clone(&received_names), Arc::clone(&counter));
    let receiver = move |name: &str| {
        names.lock().unwrap().push(name.to_owned());
        (name != "test/not_meant").then(|| (Arc::clone(&to), None))
    };
    let subscription = a.subscribe_matching("test/*", of, TOPIC, receiver).unwrap();
    let not_meant = publisher("test/not_meant", &plain);
    let other = publisher("other", &plain);
    let typed = publisher("test/typed", &StringType { name: "Other".into(), ..StringType::default() });
    assert!(before.wait_matched(LIMIT));
    publish_numbers(&before, 0..10);
    // Waits here, since each topic has a thread: the order between topics is arbitrary.
    counter.assert_all(10);
    let after = publisher("test/b", &plain);
    assert!(after.wait_matched(LIMIT));
    wait_until("the topic of another type is found", || subscription.problems().incompatible == 1);
    publish_numbers(&after, 10..20);
    assert!(!other.is_matched() && !typed.is_matched() && !not_meant.is_matched());
    counter.assert_all(20);
    assert!(subscription.close(LIMIT));
    let mut received_names = received_names.lock().unwrap().clone();
    received_names.sort();
    assert_eq!(received_names, ["test/a", "test/b", "test/not_meant", "test/typed"]);
    let bad = |name: &str| {
        let select = |_: &str| Some((Arc::new(Counter::default()), None));
        a.subscribe_matching(name, of, TOPIC, select).map(drop)
    };
    assert!(matches!(bad("a b*"), Err(DeclareError::Name(_))));
}

#[test]
fn invalid_settings_and_names_are_errors() {
    let open = |s: Settings| Participant::open(&s).map(drop);
    assert!(matches!(open(Settings { domain: 231, ..settings() }), Err(OpenError::Domain(231))));
    let nowhere = Settings { interface: Some("nowhere0".into()), ..settings() };
    let refused = open(nowhere).unwrap_err().to_string();
    assert!(refused.contains("on interface nowhere0: "), "{refused}");
    let odd = Settings { interface: Some("l\0o".into()), ..settings() };
    assert!(matches!(open(odd), Err(OpenError::Network { .. })));

    let a = Participant::open(&settings()).unwrap();
    let publisher = |name: &str, t: StringType| a.publisher(name, &t, BATCHING).map(drop);
    for bad in ["", "a\0b"] {
        assert!(matches!(publisher(bad, StringType::default()), Err(DeclareError::Name(_))), "{bad:?}");
    }
    let named = |name: &str| StringType { name: name.into(), ..StringType::default() };
    assert!(matches!(publisher("a", named("")), Err(DeclareError::Name(_))));
    let member = |member: &str| StringType { member: member.into(), ..StringType::default() };
    assert!(matches!(publisher("a", member("")), Err(DeclareError::Name(_))));
}
