//! Zenoh sessions against each other on loopback, without multicast.

#![cfg(feature = "zenoh")]
#![allow(clippy::unwrap_used, clippy::panic)] // the helpers are tests as well

use std::net::TcpListener;
use std::ops::ControlFlow;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex};
use std::time::{Duration, Instant};

use rondel_event::TopicId;
use rondel_net::adapter::{self, PublishError, Publisher as _, Receiver, Sample, Subscription as _};
use rondel_net::zenoh::{DeclareError, Mode, OpenError, PublisherSettings, Session, Settings};
use rondel_testkit::free_endpoint;

const LIMIT: Duration = Duration::from_secs(30);
const TOPIC: TopicId = TopicId(3);

fn listening(mode: Mode, endpoint: &str) -> Settings {
    Settings { mode: Some(mode), listen: vec![endpoint.to_owned()], ..Settings::default() }
}

fn connecting(mode: Mode, endpoint: &str) -> Settings {
    Settings { mode: Some(mode), connect: vec![endpoint.to_owned()], ..Settings::default() }
}

/// Receiver that counts numbers, checks their order, and lets a test wait for them.
#[derive(Default)]
struct Counter {
    seen: Mutex<u64>,
    changed: Condvar,
    out_of_order: AtomicU64,
    pause: Option<Duration>,
}

impl Receiver for Counter {
    fn receive(&self, topic: TopicId, samples: &[Sample<'_>]) {
        assert_eq!(topic, TOPIC);
        for sample in samples {
            if let Some(pause) = self.pause {
                std::thread::sleep(pause);
            }
            let number: u64 = std::str::from_utf8(sample.payload).unwrap().trim().parse().unwrap();
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
    fn wait_for(&self, count: u64) -> u64 {
        let seen = self.seen.lock().unwrap();
        *self.changed.wait_timeout_while(seen, LIMIT, |seen| *seen < count).unwrap().0
    }

    fn assert_all(&self, count: u64) {
        assert_eq!(self.wait_for(count), count);
        assert_eq!(self.out_of_order.load(Ordering::Relaxed), 0);
    }
}

fn publish_numbers(publisher: &dyn adapter::Publisher, numbers: std::ops::Range<u64>) {
    for i in numbers {
        publisher.publish(i.to_string().as_bytes()).unwrap();
    }
}

#[test]
fn peers_lose_nothing_and_close() {
    let endpoint = free_endpoint();
    let a = Session::open(&listening(Mode::Peer, &endpoint)).unwrap();
    let b = Session::open(&connecting(Mode::Peer, &endpoint)).unwrap();
    assert!(b.wait_connected(LIMIT) && a.wait_connected(LIMIT));
    assert_eq!(b.connections().peers, 1);

    let counter = Arc::new(Counter::default());
    let subscription = a.subscribe("test/numbers", TOPIC, Arc::clone(&counter)).unwrap();
    let publisher = b.publisher("test/numbers", &PublisherSettings::default()).unwrap();
    assert!(publisher.wait_matched(LIMIT));
    publish_numbers(&publisher, 0..20_000);
    counter.assert_all(20_000);
    assert_eq!(subscription.received(), 20_000);

    assert!(subscription.drain(Duration::from_millis(20), LIMIT));
    assert!(subscription.close(LIMIT) && subscription.close(LIMIT), "closing twice is harmless");
    assert_eq!(Arc::strong_count(&counter), 1, "the receiver is released");
    a.close().unwrap();
    a.close().unwrap();
    assert!(matches!(
        a.publisher("test/numbers", &PublisherSettings::default()),
        Err(DeclareError::Network(_))
    ));
}

#[test]
fn closing_sends_queued_messages() {
    let endpoint = free_endpoint();
    let a = Session::open(&listening(Mode::Router, &endpoint)).unwrap();
    let counter = Arc::new(Counter::default());
    let _subscription = a.subscribe("test/*", TOPIC, Arc::clone(&counter)).unwrap();
    for round in 0..5 {
        let b = Session::open(&connecting(Mode::Client, &endpoint)).unwrap();
        let publisher = b.publisher("test/numbers", &PublisherSettings::default()).unwrap();
        assert!(publisher.wait_matched(LIMIT));
        publish_numbers(&publisher, round * 5000..(round + 1) * 5000);
        b.close().unwrap();
        counter.assert_all((round + 1) * 5000);
    }
}

#[test]
fn two_clients_through_a_router_in_process() {
    let endpoint = free_endpoint();
    let _router = Session::open(&listening(Mode::Router, &endpoint)).unwrap();
    let a = Session::open(&connecting(Mode::Client, &endpoint)).unwrap();
    let b = Session::open(&connecting(Mode::Client, &endpoint)).unwrap();
    assert_eq!(a.connections().routers, 1);
    let stamped = Arc::new(AtomicBool::new(false));
    let counter = Arc::new(Counter::default());
    let (flag, inner) = (Arc::clone(&stamped), Arc::clone(&counter));
    let _subscription = a
        .subscribe(
            "test/numbers",
            TOPIC,
            Arc::new(move |topic: TopicId, samples: &[Sample<'_>]| {
                // A router adds timestamps to forwarded messages; both sides use the clock of this machine.
                if let Some(source) = samples[0].source_time {
                    let age = samples[0].arrival().as_nanos() - source.as_nanos();
                    flag.store(age.abs() < 60_000_000_000, Ordering::Relaxed);
                }
                inner.receive(topic, samples);
            }),
        )
        .unwrap();
    let publisher = b.publisher("test/numbers", &PublisherSettings::default()).unwrap();
    assert!(publisher.wait_matched(LIMIT));
    publish_numbers(&publisher, 0..20_000);
    counter.assert_all(20_000);
    assert!(stamped.load(Ordering::Relaxed));
}

#[test]
fn sessions_reconnect_to_a_restarted_router() {
    let endpoint = free_endpoint();
    let router = Session::open(&listening(Mode::Router, &endpoint)).unwrap();
    let a = Session::open(&connecting(Mode::Client, &endpoint)).unwrap();
    let b = Session::open(&connecting(Mode::Peer, &endpoint)).unwrap();
    let counter = Arc::new(Counter::default());
    let _subscription = a.subscribe("test/numbers", TOPIC, Arc::clone(&counter)).unwrap();
    let publisher = b.publisher("test/numbers", &PublisherSettings::default()).unwrap();
    assert!(publisher.wait_matched(LIMIT));
    publish_numbers(&publisher, 0..10);
    counter.assert_all(10);

    router.close().unwrap();
    drop(router);
    let deadline = Instant::now() + LIMIT;
    while a.connections().any() || publisher.is_matched() {
        assert!(Instant::now() < deadline);
        std::thread::yield_now();
    }
    let _router = Session::open(&listening(Mode::Router, &endpoint)).unwrap();
    assert!(a.wait_connected(LIMIT) && b.wait_connected(LIMIT));
    assert!(publisher.wait_matched(LIMIT));
    publish_numbers(&publisher, 10..20);
    counter.assert_all(20);
}

#[test]
fn an_unreachable_endpoint_is_reported_and_waited_for() {
    let endpoint = free_endpoint();
    for mode in [Mode::Client, Mode::Peer] {
        let mut reports = 0;
        let result = Session::open_connected(&connecting(mode, &endpoint), |e| {
            assert!(matches!(e, OpenError::Unreachable { .. }));
            assert!(e.to_string().contains(&endpoint), "{e}");
            reports += 1;
            if reports < 2 { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
        });
        assert!(matches!(result, Err(OpenError::Unreachable { .. })));

        let mut router = None;
        let session = Session::open_connected(&connecting(mode, &endpoint), |_| {
            router = Some(Session::open(&listening(Mode::Router, &endpoint)).unwrap());
            ControlFlow::Continue(())
        });
        assert!(session.unwrap().connections().any());
    }
}

#[test]
fn a_port_in_use_and_an_invalid_key_are_errors() {
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let endpoint = format!("tcp/{}", taken.local_addr().unwrap());
    assert!(matches!(Session::open(&listening(Mode::Router, &endpoint)), Err(OpenError::Network(_))));

    let session = Session::open(&listening(Mode::Peer, &free_endpoint())).unwrap();
    for key in ["", "/a", "a//b", "a/**b"] {
        let result = session.publisher(key, &PublisherSettings::default());
        assert!(matches!(result, Err(DeclareError::Key { .. })), "{key}");
    }
}

#[test]
fn ten_megabytes_in_one_payload() {
    let endpoint = free_endpoint();
    let a = Session::open(&listening(Mode::Peer, &endpoint)).unwrap();
    let b = Session::open(&connecting(Mode::Peer, &endpoint)).unwrap();
    let sent: Arc<Vec<u8>> = Arc::new((0..10_000_000_u32).map(|i| (i / 7) as u8).collect());
    let (sender, is_equal) = std::sync::mpsc::channel();
    let expected = Arc::clone(&sent);
    let _subscription = a
        .subscribe(
            "test/large",
            TOPIC,
            Arc::new(move |_: TopicId, samples: &[Sample<'_>]| {
                sender.send(samples[0].payload == expected.as_slice()).unwrap();
            }),
        )
        .unwrap();
    let publisher = b.publisher("test/large", &PublisherSettings::default()).unwrap();
    assert!(publisher.wait_matched(LIMIT));
    publisher.publish(&sent).unwrap();
    assert!(is_equal.recv_timeout(LIMIT).unwrap());
}

/// Sends more than all buffers between publisher and receiver can hold, to a slow receiver.
#[test]
fn a_slow_receiver_holds_the_publisher_back_and_loses_nothing() {
    let endpoint = free_endpoint();
    let a = Session::open(&listening(Mode::Peer, &endpoint)).unwrap();
    let b = Session::open(&connecting(Mode::Peer, &endpoint)).unwrap();
    let counter = Arc::new(Counter { pause: Some(Duration::from_millis(2)), ..Counter::default() });
    let _subscription = a.subscribe("test/numbers", TOPIC, Arc::clone(&counter)).unwrap();
    let publisher = b.publisher("test/numbers", &PublisherSettings::default()).unwrap();
    assert!(publisher.wait_matched(LIMIT));
    let mut held_back = 0;
    for i in 0..600_u64 {
        // 60 kB each: 36 MB in total, while the sockets buffer a few.
        publisher.publish(format!("{i:60000}").as_bytes()).unwrap();
        // The last message may have been counted before it is here.
        held_back = held_back.max(i.saturating_sub(*counter.seen.lock().unwrap()));
    }
    assert!(held_back < 500, "{held_back} messages in flight: no back-pressure");
    counter.assert_all(600);
}

#[test]
fn closing_is_bounded_while_a_subscriber_blocks() {
    let endpoint = free_endpoint();
    let a = Session::open(&listening(Mode::Peer, &endpoint)).unwrap();
    let b = Session::open(&connecting(Mode::Peer, &endpoint)).unwrap();
    let gate = Arc::new((Mutex::new(false), Condvar::new()));
    let inner = Arc::clone(&gate);
    let receiver = Arc::new(move |_: TopicId, _: &[Sample<'_>]| {
        let open = inner.0.lock().unwrap();
        drop(inner.1.wait_timeout_while(open, LIMIT, |open| !*open).unwrap());
    });
    let subscription = a.subscribe("test/gate", TOPIC, receiver).unwrap();
    let publisher = b.publisher("test/gate", &PublisherSettings::default()).unwrap();
    assert!(publisher.wait_matched(LIMIT));
    let published = AtomicU64::new(0);
    std::thread::scope(|scope| {
        let blocked = scope.spawn(|| {
            let payload = vec![0; 60_000];
            loop {
                if let Err(e) = publisher.publish(&payload) {
                    return e;
                }
                published.fetch_add(1, Ordering::Relaxed);
            }
        });
        let mut last = (0, Instant::now());
        while last.0 == 0 || last.1.elapsed() < Duration::from_millis(300) {
            let now = published.load(Ordering::Relaxed);
            if now != last.0 {
                last = (now, Instant::now());
            }
            assert!(now < 100_000, "no back-pressure");
            std::thread::yield_now();
        }
        assert!(b.close_within(Duration::from_millis(100)).is_err());
        assert!(!subscription.close(Duration::ZERO), "the receiver is still blocked");
        *gate.0.lock().unwrap() = true;
        gate.1.notify_all();
        assert!(matches!(blocked.join().unwrap(), PublishError::Closed));
    });
    assert!(subscription.close(LIMIT));
    assert!(b.close().is_ok());
}

#[test]
fn a_publisher_may_number_its_messages() {
    let endpoint = free_endpoint();
    let a = Session::open(&listening(Mode::Peer, &endpoint)).unwrap();
    let b = Session::open(&connecting(Mode::Peer, &endpoint)).unwrap();
    assert!(b.wait_connected(LIMIT) && a.wait_connected(LIMIT));
    let (send, received) = std::sync::mpsc::channel();
    let receiver = move |_: TopicId, samples: &[Sample<'_>]| {
        samples.iter().for_each(|sample| send.send(sample.origin).unwrap());
    };
    let _subscription = a.subscribe("test/numbered", TOPIC, Arc::new(receiver)).unwrap();
    let numbered = PublisherSettings { numbered: true, ..PublisherSettings::default() };
    let publishers = [&numbered, &numbered, &PublisherSettings::default()]
        .map(|settings| b.publisher("test/numbered", settings).unwrap());
    let mut origins = Vec::new();
    for publisher in &publishers {
        assert!(publisher.wait_matched(LIMIT));
        publish_numbers(publisher, 0..3);
        let next = || received.recv_timeout(LIMIT).unwrap();
        origins.push([next(), next(), next()]);
    }
    let publisher = |i: usize| origins[i][0].map(|origin| origin.publisher);
    for same in &origins[..2] {
        assert_eq!(same.map(|origin| origin.unwrap().number), [0, 1, 2]);
        assert!(same.iter().all(|origin| origin.unwrap().publisher == same[0].unwrap().publisher));
    }
    assert_ne!(publisher(0), publisher(1));
    assert_eq!(origins[2], [None; 3], "only publishers with numbering number their messages");
}

#[test]
fn closing_does_not_wait_for_a_connection_that_is_being_opened() {
    let endpoint = free_endpoint();
    let router = Session::open(&listening(Mode::Router, &endpoint)).unwrap();
    let client = Session::open(&connecting(Mode::Client, &endpoint)).unwrap();
    let publisher = client.publisher("test/gone", &PublisherSettings::default()).unwrap();
    publisher.publish(b"0").unwrap();
    router.close().unwrap();
    drop(router);
    // The endpoint accepts the connection and then is silent, like a name server that cannot reach the network any
    // more.
    let mute = TcpListener::bind(endpoint.trim_start_matches("tcp/")).unwrap();
    let connection = mute.accept().unwrap();
    let begin = Instant::now();
    assert!(client.close_within(LIMIT).is_ok());
    assert!(begin.elapsed() < LIMIT / 2, "{:?}", begin.elapsed());
    drop((connection, publisher));
}
