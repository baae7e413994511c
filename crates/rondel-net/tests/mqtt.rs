//! MQTT client against mosquitto on loopback.

#![cfg(feature = "mqtt")]
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)] // the helpers are tests as well

#[path = "broker/mod.rs"]
mod broker;

use std::process::Stdio;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex};
use std::time::{Duration, Instant};

use broker::{Broker, Folder, Proxy};
use rcgen::{BasicConstraints, CertificateParams, DnType, IsCa, Issuer, KeyPair};
use rondel_event::{Timestamp, TopicId};
use rondel_net::adapter::{self, PublishError, Publisher as _, Receiver, Sample, Subscription as _};
use rondel_net::mqtt::{
    DeclareError, OpenError, Password, PublisherSettings, Qos, Session, Settings, SubscriptionSettings, Tls,
    Version,
};

const LIMIT: Duration = Duration::from_secs(30);
const TOPIC: TopicId = TopicId(4);
const VERSIONS: [Version; 2] = [Version::V3, Version::V5];
const EVERY_QOS: [Qos; 3] = [Qos::AtMostOnce, Qos::AtLeastOnce, Qos::ExactlyOnce];
const BATCHING: PublisherSettings = PublisherSettings { qos: None, retain: false, batching: true };

fn settings(port: u16) -> Settings {
    Settings { broker: format!("127.0.0.1:{port}").parse().unwrap(), ..Settings::default() }
}

/// Waits for a condition; fails the test after [`LIMIT`].
#[track_caller]
fn wait_until(what: &str, condition: impl Fn() -> bool) {
    let deadline = Instant::now() + LIMIT;
    while !condition() {
        assert!(Instant::now() < deadline, "timed out waiting until {what}");
        std::thread::sleep(Duration::from_millis(2));
    }
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

#[test]
fn both_versions_and_every_quality_of_service() {
    let Some(broker) = Broker::start("both_versions_and_every_quality_of_service") else { return };
    for version in VERSIONS {
        for qos in EVERY_QOS {
            let session = Session::open(&Settings { version, qos, ..settings(broker.port) }).unwrap();
            let (numbers, subscription) = subscribe(&session, "test/numbers");
            let publisher = session.publisher("test/numbers", &PublisherSettings::default()).unwrap();
            assert!(publisher.is_matched() && publisher.wait_matched(LIMIT));
            publish(&publisher, 0..2000);
            assert!(publisher.flush(LIMIT));
            numbers.assert_all(2000);
            assert_eq!(subscription.received(), 2000);
            assert!(numbers.idle.load(Ordering::Relaxed) > 0);
            assert!(subscription.drain(Duration::from_millis(20), LIMIT));
            assert!(subscription.close(LIMIT) && subscription.close(LIMIT), "closing twice is harmless");
            assert_eq!(Arc::strong_count(&numbers), 1, "the receiver is released");
            assert_eq!(subscription.problems(), adapter::Problems::default());
            assert!(session.close_within(LIMIT) && session.close_within(LIMIT));
            assert!(matches!(publisher.publish(b"0"), Err(PublishError::Closed)));
        }
    }
}

#[test]
fn nothing_is_lost_at_qos_1() {
    let Some(broker) = Broker::start("nothing_is_lost_at_qos_1") else { return };
    let session = Session::open(&settings(broker.port)).unwrap();
    let (numbers, _subscription) = subscribe(&session, "test/numbers");
    let publisher = session.publisher("test/numbers", &BATCHING).unwrap();
    publish(&publisher, 0..100_000);
    publisher.release();
    numbers.assert_all(100_000);
}

#[test]
fn a_slow_receiver_holds_the_broker_back() {
    let Some(broker) = Broker::start("a_slow_receiver_holds_the_broker_back") else { return };
    for (version, qos) in [(Version::V3, Qos::AtLeastOnce), (Version::V5, Qos::ExactlyOnce)] {
        // In total the receiver blocks for longer than the keep-alive interval: pings are sent meanwhile.
        let settings = Settings { version, qos, keep_alive: 1, ..settings(broker.port) };
        let session = Session::open(&settings).unwrap();
        let numbers = Arc::new(Numbers { pause: Some(Duration::from_millis(2)), ..Numbers::default() });
        let subscription = session
            .subscribe("test/slow", SubscriptionSettings::default(), TOPIC, Arc::clone(&numbers))
            .unwrap();
        let publisher = session.publisher("test/slow", &BATCHING).unwrap();
        publish(&publisher, 0..2000);
        assert!(publisher.flush(LIMIT));
        numbers.assert_all(2000);
        assert_eq!(subscription.problems(), adapter::Problems::default());
    }
}

#[test]
fn a_receiver_may_block_for_longer_than_keep_alive() {
    let Some(broker) = Broker::start("a_receiver_may_block_for_longer_than_keep_alive") else { return };
    let proxy = Proxy::to(broker.port);
    let session = Session::open(&Settings { keep_alive: 1, ..settings(proxy.port) }).unwrap();
    let numbers = Arc::new(Numbers { pause: Some(Duration::from_millis(2500)), ..Numbers::default() });
    let subscription =
        session.subscribe("test/slow", SubscriptionSettings::default(), TOPIC, Arc::clone(&numbers)).unwrap();
    let publisher = session.publisher("test/slow", &PublisherSettings::default()).unwrap();
    publish(&publisher, 0..3);
    numbers.assert_all(3);
    assert_eq!(subscription.problems(), adapter::Problems::default());
    assert_eq!(session.breaks(), 0);
    // Pings keep idle connections open: the broker would close them after 1.5 s.
    let (before, since) = (proxy.sent(), Instant::now());
    let pings = |count: u64| before + 2 * 2 * count;
    wait_until("both connections have sent six pings", || proxy.sent() >= pings(6) || session.breaks() > 0);
    assert_eq!(session.breaks(), 0);
    assert!(since.elapsed() > Duration::from_millis(1500), "pings are sent far more often than needed");
}

#[test]
fn wildcards_and_overlapping_filters() {
    let Some(broker) = Broker::start("wildcards_and_overlapping_filters") else { return };
    for version in VERSIONS {
        let session = Session::open(&Settings { version, ..settings(broker.port) }).unwrap();
        let (one, _a) = subscribe(&session, "car/+/speed");
        let (all, _b) = subscribe(&session, "car/#");
        let (exact, _c) = subscribe(&session, "car/7/speed");
        let (again, _d) = subscribe(&session, "car/7/speed");
        let (other, _e) = subscribe(&session, "bus/#");
        let speed = session.publisher("car/7/speed", &PublisherSettings::default()).unwrap();
        let gear = session.publisher("car/7/gear", &PublisherSettings::default()).unwrap();
        publish(&speed, 0..10);
        publish(&gear, 10..20);
        all.assert_all(20);
        for numbers in [&one, &exact, &again] {
            numbers.assert_all(10);
        }
        assert!(other.seen.lock().unwrap().is_empty());
    }
}

#[test]
fn a_shared_subscription_divides_messages() {
    let Some(broker) = Broker::start("a_shared_subscription_divides_messages") else { return };
    let sessions: Vec<Session> = (0..2).map(|_| Session::open(&settings(broker.port)).unwrap()).collect();
    let parts: Vec<_> = sessions.iter().map(|s| subscribe(s, "$share/group/test/+")).collect();
    let publisher = sessions[0].publisher("test/a", &PublisherSettings::default()).unwrap();
    publish(&publisher, 0..1000);
    assert!(publisher.flush(LIMIT));
    let count = |numbers: &Numbers| numbers.seen.lock().unwrap().len();
    wait_until("all messages are received", || parts.iter().map(|(n, _)| count(n)).sum::<usize>() >= 1000);
    let mut all: Vec<u64> =
        parts.iter().flat_map(|(numbers, _)| numbers.seen.lock().unwrap().clone()).collect();
    all.sort_unstable();
    assert!(all.into_iter().eq(0..1000), "each message once");
    assert!(parts.iter().all(|(numbers, _)| count(numbers) > 0), "both subscriptions have a share");
}

#[test]
fn retained_messages_are_received_unless_excluded() {
    let Some(broker) = Broker::start("retained_messages_are_received_unless_excluded") else { return };
    for version in VERSIONS {
        let session = Session::open(&Settings { version, ..settings(broker.port) }).unwrap();
        let retain = PublisherSettings { retain: true, ..PublisherSettings::default() };
        let publisher = session.publisher("test/kept", &retain).unwrap();
        publish(&publisher, 0..3);
        assert!(publisher.flush(LIMIT));
        let (with, a) = subscribe(&session, "test/kept");
        let without = Arc::new(Numbers::default());
        let only_new = SubscriptionSettings { retained: false, ..SubscriptionSettings::default() };
        let _b = session.subscribe("test/kept", only_new, TOPIC, Arc::clone(&without)).unwrap();
        assert_eq!(with.wait_for(1), [2]);
        publish(&publisher, 3..4);
        assert_eq!(with.wait_for(2), [2, 3]);
        assert_eq!(without.wait_for(1), [3]);
        // An empty message deletes the retained one and is not retained itself.
        publisher.publish(b"").unwrap();
        assert!(publisher.flush(LIMIT));
        let (late, late_subscription) = subscribe(&session, "test/kept");
        publish(&publisher, 4..5);
        assert_eq!(late.wait_for(1), [4]);
        assert_eq!(late_subscription.problems().empty, 0);
        // A later message was received, so the empty one was too.
        assert_eq!(with.wait_for(3), [2, 3, 4]);
        assert_eq!(a.problems().empty, 1);
        publisher.publish(b"").unwrap();
        assert!(publisher.flush(LIMIT));
    }
}

#[test]
fn messages_without_a_payload_are_received_where_they_have_a_meaning() {
    let Some(broker) = Broker::start("messages_without_a_payload_are_received_where_they_have_a_meaning")
    else {
        return;
    };
    let session = Session::open(&settings(broker.port)).unwrap();
    let lengths = Arc::new(Mutex::new(Vec::new()));
    let seen = Arc::clone(&lengths);
    let receiver = move |_: TopicId, samples: &[Sample<'_>]| {
        seen.lock().unwrap().extend(samples.iter().map(|sample| sample.payload.len()));
    };
    let with = SubscriptionSettings { empty: true, ..SubscriptionSettings::default() };
    let subscription = session.subscribe("test/empty", with, TOPIC, Arc::new(receiver)).unwrap();
    let publisher = session.publisher("test/empty", &PublisherSettings::default()).unwrap();
    publisher.publish(b"").unwrap();
    publisher.publish(b"a").unwrap();
    wait_until("both are received", || lengths.lock().unwrap().len() == 2);
    assert_eq!((&lengths.lock().unwrap()[..], subscription.problems().empty), (&[0, 1][..], 0));
}

#[test]
fn a_broker_that_goes_away_and_comes_back() {
    let Some(mut broker) = Broker::start("a_broker_that_goes_away_and_comes_back") else { return };
    for version in VERSIONS {
        let session = Session::open(&Settings { version, ..settings(broker.port) }).unwrap();
        let (numbers, subscription) = subscribe(&session, "test/numbers");
        let publisher = session.publisher("test/numbers", &PublisherSettings::default()).unwrap();
        publish(&publisher, 0..10);
        numbers.assert_all(10);
        broker.kill();
        wait_until("both connections are broken", || session.breaks() >= 2);
        assert!(!publisher.is_matched());
        // It is known at once.
        wait_until("the receiver knows", || !numbers.missed.lock().unwrap().is_empty());
        let (started, publishing_started) = std::sync::mpsc::channel();
        let publishing = std::thread::spawn(move || {
            started.send(()).unwrap();
            // Blocks until the broker is back.
            publish(&publisher, 10..20);
            assert!(publisher.flush(LIMIT));
            publisher
        });
        publishing_started.recv_timeout(LIMIT).unwrap();
        assert!(!publishing.is_finished());
        broker.resume();
        // The broker lost the session: messages are lost until the client has subscribed again.
        let publisher = publishing.join().unwrap();
        let deadline = Instant::now() + LIMIT;
        let is_back = |seen: &[u64]| seen.contains(&99);
        while Instant::now() < deadline {
            publish(&publisher, 99..100);
            if is_back(&numbers.wait_until(Duration::from_millis(50), is_back)) {
                break;
            }
        }
        assert!(is_back(&numbers.seen.lock().unwrap()), "no message is received after the broker is back");
        let missed = numbers.missed.lock().unwrap().clone();
        let [(10, from, None), (10, also_from, Some(until))] = missed[..] else { panic!("{missed:?}") };
        assert!(from == also_from && from < until);
        assert_eq!(subscription.problems().breaks, 2, "one connection of subscriptions, one of publishers");
    }
}

/// A broker that is frozen refuses messages at once, and receives all that it accepted once it runs again.
#[test]
fn a_frozen_broker_blocks_no_offer() {
    let Some(broker) = Broker::start("a_frozen_broker_blocks_no_offer") else { return };
    for qos in [Qos::AtMostOnce, Qos::AtLeastOnce] {
        let session = Session::open(&settings(broker.port)).unwrap();
        let topic = format!("frozen/{}", qos as u8);
        let (numbers, _subscription) = subscribe(&session, &topic);
        let publisher = session.publisher(&topic, &PublisherSettings { qos: Some(qos), ..BATCHING }).unwrap();
        broker.freeze();
        // Longer than the buffers of both sides.
        let (mut accepted, mut longest) = (0, Duration::ZERO);
        let refused = loop {
            let began = Instant::now();
            let offered = publisher.offer(format!("{accepted:04000}").as_bytes(), Duration::from_millis(1));
            longest = longest.max(began.elapsed());
            match offered {
                Ok(()) => accepted += 1,
                Err(error) => break error,
            }
        };
        assert!(matches!(refused, PublishError::Slow), "{refused}");
        assert!((20..20_000).contains(&accepted), "{accepted}");
        assert!(longest < Duration::from_millis(100), "{longest:?}");
        assert_eq!(publisher.drops().unwrap().count(), 0, "it is the caller's");
        broker.unfreeze();
        while accepted < 20_000 {
            match publisher.offer(format!("{accepted:04000}").as_bytes(), LIMIT) {
                Ok(()) => accepted += 1,
                Err(error) => panic!("{error}"),
            }
        }
        publisher.release();
        assert!(publisher.flush(LIMIT));
        numbers.assert_all(accepted);
    }
}

#[test]
fn an_outage_begins_when_the_broker_falls_silent() {
    let Some(mut broker) = Broker::start("an_outage_begins_when_the_broker_falls_silent") else { return };
    let wait = Duration::from_millis(500);
    let session = Session::open(&Settings { slow_consumer: Some(wait), ..settings(broker.port) }).unwrap();
    let publisher = session.publisher("test/numbers", &PublisherSettings::default()).unwrap();
    publish(&publisher, 0..10);
    assert!(publisher.flush(LIMIT));
    broker.freeze();
    let frozen = adapter::now();
    // The messages that wait for an acknowledgement, and one that is waited for in vain.
    while publisher.publish(b"0").is_ok() {}
    let given_up = adapter::now();
    assert!(given_up.as_nanos() - frozen.as_nanos() >= wait.as_nanos() as i64);
    broker.kill();
    broker.resume();
    wait_until("the loss is known", || !session.outages().is_empty());
    wait_until("the connection is restored", || session.outages()[0].until.is_some());
    let outages = session.outages();
    // The session has no subscriptions: their connection is not spoken of.
    assert_eq!(outages.len(), 1, "{outages:?}");
    assert!(outages[0].neighbour.as_ref().unwrap().contains("publishers"), "{outages:?}");
    assert!(outages[0].from < given_up && outages[0].until.unwrap() >= given_up, "{outages:?}");
    assert_eq!(session.breaks(), 1);
}

/// Publishes while the connections are cut repeatedly; returns the received numbers and the number of breaks.
fn cut_while_publishing(broker: &Broker, own: Settings, count: u64) -> (Vec<u64>, u64) {
    let proxy = Proxy::to(broker.port);
    let session = Session::open(&Settings { broker: settings(proxy.port).broker, ..own }).unwrap();
    let (numbers, subscription) = subscribe(&session, "test/cut");
    let publisher = session.publisher("test/cut", &BATCHING).unwrap();
    for round in 0..5 {
        publish(&publisher, round * count..(round + 1) * count);
        publisher.release();
        // The publisher's connection is open now, as more was published than may be unacknowledged.
        let before = session.breaks();
        proxy.cut();
        wait_until("the cut is noticed", || session.breaks() > before);
    }
    assert!(publisher.flush(LIMIT));
    let all = |seen: &[u64]| seen.iter().collect::<std::collections::HashSet<_>>().len() as u64 == 5 * count;
    let seen = numbers.wait_until(LIMIT, all);
    let breaks = subscription.problems().breaks;
    assert!(subscription.close(LIMIT) && session.close_within(LIMIT));
    (seen, breaks)
}

#[test]
fn broken_connections_lose_nothing_at_qos_1_and_repeat_nothing_at_qos_2() {
    let name = "broken_connections_lose_nothing_at_qos_1_and_repeat_nothing_at_qos_2";
    let Some(broker) = Broker::start(name) else { return };
    // With version 3.1.1 the broker keeps a session only without a clean start.
    let kept =
        Settings { version: Version::V3, clean_start: false, client_id: Some("me".into()), ..settings(1) };
    for own in [settings(1), kept] {
        let (mut seen, breaks) = cut_while_publishing(&broker, own, 2000);
        assert!(breaks >= 2, "{breaks}");
        seen.sort_unstable();
        seen.dedup();
        assert!(seen.into_iter().eq(0..10_000), "a message is missing");
    }
    let (seen, breaks) =
        cut_while_publishing(&broker, Settings { qos: Qos::ExactlyOnce, ..settings(1) }, 2000);
    assert!(breaks >= 2, "{breaks}");
    assert!(seen.into_iter().eq(0..10_000), "a message is missing, repeated or out of order");
}

#[test]
fn messages_queued_for_an_earlier_run_are_received() {
    let Some(broker) = Broker::start("messages_queued_for_an_earlier_run_are_received") else { return };
    for version in VERSIONS {
        // Messages that a session has not acknowledged are sent again to the next one of its name.
        let client_id = Some(format!("me {version:?}"));
        let own = Settings { version, clean_start: false, client_id, ..settings(broker.port) };
        let session = Session::open(&own).unwrap();
        let (_numbers, subscription) = subscribe(&session, "test/kept");
        assert!(subscription.close(LIMIT) && session.close_within(LIMIT));
        let other = Session::open(&settings(broker.port)).unwrap();
        let publisher = other.publisher("test/kept", &PublisherSettings::default()).unwrap();
        publish(&publisher, 0..500);
        assert!(publisher.flush(LIMIT));
        let proxy = Proxy::to(broker.port);
        let session = Session::open(&Settings { broker: settings(proxy.port).broker, ..own }).unwrap();
        // The broker sends the first messages before the subscription: each has more than 10 bytes.
        wait_until("queued messages are sent", || proxy.received() >= 200);
        let (numbers, _subscription) = subscribe(&session, "test/kept");
        numbers.assert_all(500);
    }
}

#[test]
fn wrong_passwords_and_unreachable_brokers_are_errors() {
    let name = "wrong_passwords_and_unreachable_brokers_are_errors";
    let guarded = Broker::with(name, |port, folder| {
        let file = folder.0.join("passwords");
        let mut making = std::process::Command::new("mosquitto_passwd");
        let made = making.args(["-b", "-c"]).arg(&file).args(["me", "right"]).output().unwrap();
        assert!(made.status.success(), "{made:?}");
        format!("listener {port} 127.0.0.1\nallow_anonymous false\npassword_file {}\n", file.display())
    });
    let Some(mut broker) = guarded else { return };
    let as_me = |version, file: &str| Settings {
        version,
        user: Some("me".into()),
        password: Some(Password::File(broker.folder.write("password", file))),
        ..settings(broker.port)
    };
    for version in VERSIONS {
        let refused = Session::open(&as_me(version, "wrong\n")).unwrap_err();
        assert!(matches!(refused, OpenError::Refused { .. }), "{refused}");
        assert!(refused.to_string().contains("not authorized"), "{refused}");
        assert!(!refused.to_string().contains("wrong\n"));
        let refused = Session::open(&Settings { version, ..settings(broker.port) }).unwrap_err();
        assert!(matches!(refused, OpenError::Refused { .. }), "{refused}");
        Session::open(&as_me(version, "right\n")).unwrap();
    }
    let unset = Settings {
        user: Some("me".into()),
        password: Some(Password::Environment("RONDEL_NO_SUCH_VARIABLE".into())),
        ..settings(broker.port)
    };
    assert!(unset.check().is_ok(), "the variable may be set where the deployment runs");
    assert!(Session::open(&unset).unwrap_err().to_string().contains("RONDEL_NO_SUCH_VARIABLE"));
    broker.kill();
    let gone = Session::open(&settings(broker.port)).unwrap_err();
    assert!(matches!(gone, OpenError::Unreachable { .. }), "{gone}");
}

#[test]
fn invalid_topics_are_refused() {
    let Some(broker) = Broker::start("invalid_topics_are_refused") else { return };
    let session = Session::open(&settings(broker.port)).unwrap();
    let unused = Arc::new(Numbers::default());
    let filter = session.subscribe("a/#/b", SubscriptionSettings::default(), TOPIC, unused);
    assert!(matches!(filter, Err(DeclareError::Topic { .. })));
    assert!(matches!(
        session.publisher("a/+", &PublisherSettings::default()),
        Err(DeclareError::Topic { .. })
    ));
}

#[test]
fn tls_with_certificates_of_both_sides() {
    let name = "tls_with_certificates_of_both_sides";
    let (authority, stranger) = (Authority::new(), Authority::new());
    let guarded = Broker::with(name, |port, folder| {
        authority.write(folder, "ca", "broker");
        format!(
            "listener {port} 127.0.0.1\ncafile {0}/ca.pem\ncertfile {0}/broker.pem\nkeyfile {0}/broker.key\n\
             require_certificate true\nuse_identity_as_username true\n",
            folder.0.display()
        )
    });
    let Some(broker) = guarded else { return };
    let folder = &broker.folder;
    authority.write(folder, "ca", "me");
    stranger.write(folder, "other-ca", "other");
    let file = |name: &str| Some(folder.0.join(name));
    let good = Tls { ca: file("ca.pem"), certificate: file("me.pem"), key: file("me.key") };
    let with = |version, tls| Settings {
        version,
        tls: Some(tls),
        broker: format!("mqtts://localhost:{}", broker.port).parse().unwrap(),
        ..settings(broker.port)
    };
    for version in VERSIONS {
        let session = Session::open(&with(version, good.clone())).unwrap();
        let (numbers, subscription) = subscribe(&session, "test/numbers");
        let publisher = session.publisher("test/numbers", &BATCHING).unwrap();
        publish(&publisher, 0..20_000);
        assert!(publisher.flush(LIMIT));
        numbers.assert_all(20_000);
        // Larger than a TLS record.
        publisher.publish(format!("{:0>60000}", 20_000).as_bytes()).unwrap();
        assert!(publisher.flush(LIMIT));
        numbers.assert_all(20_001);
        assert!(subscription.close(LIMIT) && session.close_within(LIMIT));
    }
    for bad in [
        // An authority that did not sign the broker's certificate, an untrusted client, an anonymous one.
        Tls { ca: file("other-ca.pem"), ..good.clone() },
        Tls { certificate: file("other.pem"), key: file("other.key"), ..good.clone() },
        Tls { certificate: None, key: None, ..good.clone() },
    ] {
        let refused = Session::open(&with(Version::V5, bad)).unwrap_err();
        assert!(matches!(refused, OpenError::Refused { .. }), "{refused}");
    }
    let mixed = Tls { key: file("other.key"), ..good };
    assert!(with(Version::V5, mixed).check().is_err(), "the key belongs to another certificate");
}

/// A certificate authority.
struct Authority {
    issuer: Issuer<'static, KeyPair>,
    pem: String,
}

impl Authority {
    fn new() -> Authority {
        let key = KeyPair::generate().unwrap();
        let mut parameters = CertificateParams::new(Vec::new()).unwrap();
        parameters.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        parameters.distinguished_name.push(DnType::CommonName, "an authority");
        let pem = parameters.self_signed(&key).unwrap().pem();
        Authority { issuer: Issuer::new(parameters, key), pem }
    }

    /// Writes the authority's certificate, and a certificate for `localhost` with its key.
    fn write(&self, folder: &Folder, own: &str, name: &str) {
        let key = KeyPair::generate().unwrap();
        let mut parameters = CertificateParams::new(vec!["localhost".to_owned()]).unwrap();
        parameters.distinguished_name.push(DnType::CommonName, name);
        let certificate = parameters.signed_by(&key, &self.issuer).unwrap();
        folder.write(&format!("{own}.pem"), &self.pem);
        folder.write(&format!("{name}.pem"), &certificate.pem());
        folder.write(&format!("{name}.key"), &key.serialize_pem());
    }
}

#[test]
fn messages_of_and_for_an_independent_client() {
    let Some(broker) = Broker::start("messages_of_and_for_an_independent_client") else { return };
    for (version, name) in [(Version::V3, "311"), (Version::V5, "5")] {
        let session = Session::open(&Settings { version, ..settings(broker.port) }).unwrap();
        let (numbers, _subscription) = subscribe(&session, "from/others");
        let text: String = (0..2000).map(|i| format!("{i}\n")).collect();
        let mut publishing = broker
            .client("mosquitto_pub", &["-V", name, "-q", "1", "-t", "from/others", "-l"])
            .stdin(Stdio::piped())
            .spawn()
            .unwrap();
        std::io::Write::write_all(&mut publishing.stdin.take().unwrap(), text.as_bytes()).unwrap();
        assert!(publishing.wait().unwrap().success());
        numbers.assert_all(2000);

        // A client with a persistent session leaves and later receives the messages queued meanwhile. Not at
        // QoS 2: Debian's mosquitto and its own client fail there with version 5.
        let other = ["-V", name, "-i", "other", "-c", "-q", "1", "-t", "to/others"];
        let subscribed = broker.client("mosquitto_sub", &[&other[..], &["-E"]].concat()).output().unwrap();
        assert!(subscribed.status.success(), "{subscribed:?}");
        let exactly = PublisherSettings { qos: Some(Qos::ExactlyOnce), ..BATCHING };
        let publisher = session.publisher("to/others", &exactly).unwrap();
        publish(&publisher, 0..2000);
        assert!(publisher.flush(LIMIT));
        let fetch = [&other[..], &["-C", "2000", "-W", "30"]].concat();
        let fetched = broker.client("mosquitto_sub", &fetch).output().unwrap();
        let lines = String::from_utf8(fetched.stdout).unwrap();
        assert!(lines.lines().map(|line| line.parse::<u64>().unwrap()).eq(0..2000), "{}", lines.len());
    }
}
