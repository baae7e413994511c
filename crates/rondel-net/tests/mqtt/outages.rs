//! Brokers that go away, freeze and come back.

use std::time::{Duration, Instant};

use rondel_net::adapter::{self, PublishError, Publisher as _, Subscription as _};
use rondel_net::mqtt::{PublisherSettings, Qos, Session, Settings, Version};

use super::{BATCHING, LIMIT, VERSIONS, publish, settings, subscribe};
use rondel_testkit::{Broker, Proxy, wait_until};

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
        // One that waited for the broker would take until its silence is noticed.
        assert!(longest < LIMIT / 10, "{longest:?}");
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
