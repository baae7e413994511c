//! MQTT against Debian's broker, on loopback.

#![cfg(feature = "mqtt")]
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)] // the helpers are tests as well

#[path = "broker/mod.rs"]
mod broker;

use std::process::Stdio;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex};
use std::time::{Duration, Instant};

use broker::{Broker, Folder, Way};
use rcgen::{BasicConstraints, CertificateParams, DnType, IsCa, Issuer, KeyPair};
use rondel_event::TopicId;
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

/// Keeps the numbers that come, and lets a test wait for them.
#[derive(Default)]
struct Numbers {
    seen: Mutex<Vec<u64>>,
    changed: Condvar,
    idle: AtomicU64,
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

    fn wants_idle(&self) -> bool {
        true
    }
}

impl Numbers {
    fn wait_for(&self, count: usize) -> Vec<u64> {
        self.wait_until(|seen| seen.len() >= count)
    }

    fn wait_until(&self, done: impl Fn(&[u64]) -> bool) -> Vec<u64> {
        let seen = self.seen.lock().unwrap();
        self.changed.wait_timeout_while(seen, LIMIT, |seen| !done(seen)).unwrap().0.clone()
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
            assert_eq!(Arc::strong_count(&numbers), 1, "the receiver is let go");
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
        // It is slower than keep-alives are due: they are sent all the same.
        let settings = Settings { version, qos, keep_alive: 1, ..settings(broker.port) };
        let session = Session::open(&settings).unwrap();
        let numbers = Arc::new(Numbers { pause: Some(Duration::from_millis(2)), ..Numbers::default() });
        let subscription = session
            .subscribe("test/slow", SubscriptionSettings::default(), TOPIC, Arc::clone(&numbers))
            .unwrap();
        let publisher = session.publisher("test/slow", &BATCHING).unwrap();
        let started = Instant::now();
        publish(&publisher, 0..2000);
        assert!(publisher.flush(LIMIT));
        assert!(
            started.elapsed() < Duration::from_secs(4),
            "publishing waits for the broker, not for the receiver"
        );
        numbers.assert_all(2000);
        assert_eq!(subscription.problems(), adapter::Problems::default());
    }
}

#[test]
fn a_receiver_may_block_for_longer_than_keep_alive() {
    let Some(broker) = Broker::start("a_receiver_may_block_for_longer_than_keep_alive") else { return };
    let session = Session::open(&Settings { keep_alive: 1, ..settings(broker.port) }).unwrap();
    let numbers = Arc::new(Numbers { pause: Some(Duration::from_millis(2500)), ..Numbers::default() });
    let subscription =
        session.subscribe("test/slow", SubscriptionSettings::default(), TOPIC, Arc::clone(&numbers)).unwrap();
    let publisher = session.publisher("test/slow", &PublisherSettings::default()).unwrap();
    publish(&publisher, 0..3);
    numbers.assert_all(3);
    assert_eq!(subscription.problems(), adapter::Problems::default());
    assert_eq!(session.breaks(), 0);
    // While nothing is published the connection stands as well.
    std::thread::sleep(Duration::from_secs(3));
    assert_eq!(session.breaks(), 0);
}

#[test]
fn wildcards_and_filters_that_meet() {
    let Some(broker) = Broker::start("wildcards_and_filters_that_meet") else { return };
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
    let deadline = Instant::now() + LIMIT;
    let seen =
        || parts.iter().flat_map(|(numbers, _)| numbers.seen.lock().unwrap().clone()).collect::<Vec<_>>();
    while seen().len() < 1000 && Instant::now() < deadline {
        std::thread::sleep(Duration::from_millis(5));
    }
    let mut all = seen();
    all.sort_unstable();
    assert!(all.into_iter().eq(0..1000), "each once");
    assert!(parts.iter().all(|(numbers, _)| !numbers.seen.lock().unwrap().is_empty()), "both have some");
}

#[test]
fn retained_messages_count_unless_told_otherwise() {
    let Some(broker) = Broker::start("retained_messages_count_unless_told_otherwise") else { return };
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
        // An empty one takes it back, and is none.
        publisher.publish(b"").unwrap();
        assert!(publisher.flush(LIMIT));
        let (late, late_subscription) = subscribe(&session, "test/kept");
        publish(&publisher, 4..5);
        assert_eq!(late.wait_for(1), [4]);
        assert_eq!(late_subscription.problems().empty, 0);
        // What came after the empty one has come, so the empty one has.
        assert_eq!(with.wait_for(3), [2, 3, 4]);
        assert_eq!(a.problems().empty, 1);
        publisher.publish(b"").unwrap();
        assert!(publisher.flush(LIMIT));
    }
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
        let deadline = Instant::now() + LIMIT;
        while session.breaks() < 2 && Instant::now() < deadline {
            std::thread::sleep(Duration::from_millis(5));
        }
        assert!(!publisher.is_matched());
        let publishing = std::thread::spawn(move || {
            // Waits, and goes on.
            publish(&publisher, 10..20);
            assert!(publisher.flush(LIMIT));
            publisher
        });
        std::thread::sleep(Duration::from_millis(300));
        broker.resume();
        // The broker has forgotten everything: what comes before this client has subscribed again is lost.
        let publisher = publishing.join().unwrap();
        let resumed = Instant::now();
        while !numbers.seen.lock().unwrap().contains(&99) && resumed.elapsed() < LIMIT {
            publish(&publisher, 99..100);
            std::thread::sleep(Duration::from_millis(50));
        }
        assert!(numbers.seen.lock().unwrap().contains(&99));
        assert_eq!(subscription.problems().breaks, 2, "one connection to receive, one to publish");
    }
}

/// Publishes while the connections are cut again and again, and returns what came and how often it broke.
fn cut_while_publishing(broker: &Broker, own: Settings, count: u64) -> (Vec<u64>, u64) {
    let way = Way::to(broker.port);
    let session = Session::open(&Settings { broker: settings(way.port).broker, ..own }).unwrap();
    let (numbers, subscription) = subscribe(&session, "test/cut");
    let publisher = session.publisher("test/cut", &BATCHING).unwrap();
    for round in 0..5 {
        publish(&publisher, round * count..(round + 1) * count);
        publisher.release();
        way.cut();
        std::thread::sleep(Duration::from_millis(50));
    }
    assert!(publisher.flush(LIMIT));
    let all = |seen: &[u64]| seen.iter().collect::<std::collections::HashSet<_>>().len() as u64 == 5 * count;
    let seen = numbers.wait_until(all);
    let breaks = subscription.problems().breaks;
    assert!(subscription.close(LIMIT) && session.close_within(LIMIT));
    (seen, breaks)
}

#[test]
fn what_a_break_interrupts_comes_at_qos_1_and_once_at_qos_2() {
    let Some(broker) = Broker::start("what_a_break_interrupts_comes_at_qos_1_and_once_at_qos_2") else {
        return;
    };
    // Version 3.1.1 keeps subscriptions only for a client that is to be known for ever.
    let kept =
        Settings { version: Version::V3, clean_start: false, client_id: Some("me".into()), ..settings(0) };
    for own in [settings(0), kept] {
        let (mut seen, breaks) = cut_while_publishing(&broker, own, 2000);
        assert!(breaks >= 2, "{breaks}");
        seen.sort_unstable();
        seen.dedup();
        assert!(seen.into_iter().eq(0..10_000), "everything came");
    }
    let (seen, breaks) =
        cut_while_publishing(&broker, Settings { qos: Qos::ExactlyOnce, ..settings(0) }, 2000);
    assert!(breaks >= 2, "{breaks}");
    assert!(seen.into_iter().eq(0..10_000), "everything came, once and in order");
}

#[test]
fn what_the_broker_kept_from_an_earlier_run_is_received() {
    let Some(broker) = Broker::start("what_the_broker_kept_from_an_earlier_run_is_received") else { return };
    for version in VERSIONS {
        let own =
            Settings { version, clean_start: false, client_id: Some("me".into()), ..settings(broker.port) };
        let session = Session::open(&own).unwrap();
        let (_numbers, subscription) = subscribe(&session, "test/kept");
        assert!(subscription.close(LIMIT) && session.close_within(LIMIT));
        let other = Session::open(&settings(broker.port)).unwrap();
        let publisher = other.publisher("test/kept", &PublisherSettings::default()).unwrap();
        publish(&publisher, 0..500);
        assert!(publisher.flush(LIMIT));
        let session = Session::open(&own).unwrap();
        std::thread::sleep(Duration::from_millis(100));
        let (numbers, _subscription) = subscribe(&session, "test/kept");
        numbers.assert_all(500);
    }
}

#[test]
fn wrong_passwords_and_brokers_that_are_not_there() {
    let name = "wrong_passwords_and_brokers_that_are_not_there";
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
        let nobody = Session::open(&Settings { version, ..settings(broker.port) }).unwrap_err();
        assert!(matches!(nobody, OpenError::Refused { .. }), "{nobody}");
        Session::open(&as_me(version, "right\n")).unwrap();
    }
    let unset = Settings {
        user: Some("me".into()),
        password: Some(Password::Environment("RONDEL_NO_SUCH_VARIABLE".into())),
        ..settings(broker.port)
    };
    assert!(unset.check().is_ok(), "it may be set where this runs");
    assert!(Session::open(&unset).unwrap_err().to_string().contains("RONDEL_NO_SUCH_VARIABLE"));
    broker.kill();
    let gone = Session::open(&settings(broker.port)).unwrap_err();
    assert!(matches!(gone, OpenError::Unreachable { .. }), "{gone}");
}

#[test]
fn what_cannot_be_is_refused() {
    let Some(broker) = Broker::start("what_cannot_be_is_refused") else { return };
    let session = Session::open(&settings(broker.port)).unwrap();
    let nobody = Arc::new(Numbers::default());
    let filter = session.subscribe("a/#/b", SubscriptionSettings::default(), TOPIC, nobody);
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
        // More than a record of TLS holds.
        publisher.publish(format!("{:0>60000}", 20_000).as_bytes()).unwrap();
        assert!(publisher.flush(LIMIT));
        numbers.assert_all(20_001);
        assert!(subscription.close(LIMIT) && session.close_within(LIMIT));
    }
    for bad in [
        // Nobody trusts that one's broker, or that client; and one client shows nothing.
        Tls { ca: file("other-ca.pem"), ..good.clone() },
        Tls { certificate: file("other.pem"), key: file("other.key"), ..good.clone() },
        Tls { certificate: None, key: None, ..good.clone() },
    ] {
        let refused = Session::open(&with(Version::V5, bad)).unwrap_err();
        assert!(matches!(refused, OpenError::Refused { .. }), "{refused}");
    }
    let mixed = Tls { key: file("other.key"), ..good };
    assert!(with(Version::V5, mixed).check().is_err(), "the key of another certificate");
}

/// One that certificates are signed by.
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

    /// Writes its own certificate, and one for `localhost` with its key.
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
fn with_an_independent_client() {
    let Some(broker) = Broker::start("with_an_independent_client") else { return };
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

        // It leaves, with the broker keeping what comes, and fetches all of it.
        // At QoS 2 with version 5 Debian's mosquitto and its own client do not get along.
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
