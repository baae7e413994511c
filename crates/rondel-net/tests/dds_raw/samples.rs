//! Samples, instances and the quality of service.

use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use rondel_event::TopicId;
use rondel_net::adapter::{Receiver, Sample, Subscription as _};
use rondel_net::dds::{DeclaredTopic, RawType, TopicQos, TopicType};
use rondel_testkit::wait_until;

use super::{Bench, Item, LIMIT, Log, TOPIC, track};

#[test]
fn a_type_is_discovered_and_whole_samples_arrive() {
    let Some(bench) = Bench::new("a_type_is_discovered_and_whole_samples_arrive") else { return };
    let (subscription, log) = bench.subscribe(None, &TopicQos::default());
    let mut publisher = bench.publisher(&[]);
    assert_eq!(publisher.ask("wait"), "matched");
    let serialised = publisher.ask("hex");
    assert_eq!(publisher.ask("write 1 1000"), "wrote 1001");
    let samples = log.samples(1001);
    let hex: String = samples[0].iter().map(|byte| format!("{byte:02x}")).collect();
    // The bits of the options with the number of padding bytes may differ.
    assert_eq!((&hex[..6], &hex[8..]), (&serialised[..6], &serialised[8..]));
    assert!(samples.iter().enumerate().all(|(i, sample)| {
        // After the seconds, the nanoseconds, and the name of the frame with its length.
        u64::from_le_bytes(sample[4 + 16..4 + 24].try_into().unwrap()) == i as u64
    }));
    assert_eq!(subscription.problems(), rondel_net::adapter::Problems::default());
    assert!(subscription.close(LIMIT));
}

/// The library reads an extensible derived type in one version of the encoding, and others write it in the other.
#[test]
fn a_derived_type_is_received() {
    let Some(bench) = Bench::new("a_derived_type_is_received") else { return };
    let (subscription, log) = bench.subscribe(None, &TopicQos::default());
    let mut publisher = bench.publisher(&["--kind", "derived"]);
    assert_eq!(publisher.ask("wait"), "matched");
    assert_eq!(publisher.ask("write 7 2"), "wrote 2");
    assert_eq!(log.samples(2).len(), 2);
    assert_eq!(subscription.problems(), rondel_net::adapter::Problems::default());
}

#[test]
fn a_subscription_ends_while_it_waits_for_a_type() {
    let Some(bench) = Bench::new("a_subscription_ends_while_it_waits_for_a_type") else { return };
    let (subscription, log) = bench.subscribe(None, &TopicQos::default());
    assert!(subscription.close(LIMIT));
    assert!(Arc::into_inner(log).is_some(), "the receiver is released");
}

#[test]
fn instances_are_ordered_by_publication_and_their_ends_are_reported() {
    let Some(bench) = Bench::new("instances_are_ordered_by_publication_and_their_ends_are_reported") else {
        return;
    };
    let (subscription, log) = bench.subscribe(Some("demo::Track"), &TopicQos::default());
    let mut publisher = bench.publisher(&["--kind", "track"]);
    assert_eq!(publisher.ask("wait"), "matched");
    assert_eq!(publisher.ask("turns 7,1,4 700"), "wrote 2100");
    let expected: Vec<_> = (0..2100).map(|i| ([7, 1, 4][i as usize % 3], i)).collect();
    let seen: Vec<_> = log.samples(2100).iter().map(|sample| track(sample)).collect();
    assert_eq!(seen, expected);
    for id in [4, 7] {
        publisher.send(&format!("dispose {id}"));
        log.wait("the instance is gone", |items| items.contains(&Item::Disposed(Some(id))));
    }
    publisher.send("unregister 1");
    log.wait("the instance is gone", |items| items.contains(&Item::Unregistered(Some(1))));
    assert_eq!(publisher.ask("write 4 1"), "wrote 2101");
    log.samples(2101);
    publisher.send("close");
    log.wait("the publisher is gone", |items| items.contains(&Item::Alive(false)));
    log.wait("the instance is gone", |items| items.contains(&Item::Unregistered(Some(4))));
    let items = log.items.lock().unwrap();
    let disposed = items.iter().filter(|item| matches!(item, Item::Disposed(_))).count();
    assert_eq!((disposed, items.first()), (2, Some(&Item::Alive(true))));
    assert_eq!(subscription.problems().lost, 0);
}

#[test]
fn the_quality_of_service_is_that_of_the_publisher() {
    let Some(bench) = Bench::new("the_quality_of_service_is_that_of_the_publisher") else { return };
    let mut latched = bench.publisher(&["--transient-local", "5"]);
    assert_eq!(latched.ask("write 1 20"), "wrote 20");
    let (subscription, log) = bench.subscribe(None, &TopicQos::default());
    log.samples(5);
    assert_eq!(latched.ask("write 1 5"), "wrote 25");
    log.samples(10);
    // A subscription that requests less gets no history.
    let volatile =
        TopicQos { durability: Some(rondel_net::dds::Durability::Volatile), ..TopicQos::default() };
    let (_volatile, fresh) = bench.subscribe(None, &volatile);
    fresh.wait("it has a publisher", |items| items.contains(&Item::Alive(true)));
    assert_eq!(latched.ask("write 1 1"), "wrote 26");
    fresh.samples(1);
    assert_eq!(latched.ask("close"), "closed");
    drop((subscription, latched));

    let mut hasty = bench.publisher(&["--best-effort", "--partition", "front/left", "--exclusive", "3"]);
    let partitions = vec!["front/*".to_owned()];
    let (_there, log) = bench.subscribe(None, &TopicQos { partitions, ..TopicQos::default() });
    log.wait("it has a publisher", |items| items.contains(&Item::Alive(true)));
    assert_eq!(hasty.ask("wait"), "matched");
    hasty.ask("write 1 1");
    log.samples(1);
    let reliable =
        TopicQos { reliability: Some(rondel_net::dds::Reliability::Reliable), ..TopicQos::default() };
    let (refused, _log) = bench.subscribe(None, &TopicQos { partitions: vec!["*".to_owned()], ..reliable });
    wait_until("the publisher is counted", || refused.problems().incompatible == 1);
    assert!(refused.close(LIMIT));
}

/// Whether an instance had an owner, by its id, at each report.
fn owned(items: &[Item], of: i32) -> Vec<bool> {
    let of_instance = |item: &Item| match item {
        Item::Owner(Some(id), is_owned) if *id == of => Some(*is_owned),
        _ => None,
    };
    items.iter().filter_map(of_instance).collect()
}

/// Two publishers own one instance each; the stronger one takes the other's, and leaves.
#[test]
fn each_instance_has_an_owner() {
    let Some(bench) = Bench::new("each_instance_has_an_owner") else { return };
    let mut weak = bench.publisher(&["--kind", "track", "--exclusive", "1"]);
    let (_subscription, log) = bench.subscribe(Some("demo::Track"), &TopicQos::default());
    log.wait("it has a publisher", |items| items.contains(&Item::Alive(true)));
    assert_eq!(weak.ask("wait"), "matched");
    weak.ask("write 1,2 1");
    log.wait("both are owned", |items| [1, 2].iter().all(|id| owned(items, *id) == [true]));
    weak.ask("write 1,2 1");
    let mut strong = bench.publisher(&["--kind", "track", "--exclusive", "2"]);
    assert_eq!(strong.ask("wait"), "matched");
    wait_until("the stronger one owns an instance", || {
        strong.ask("write 1 1");
        owned(&log.items.lock().unwrap(), 1) == [true, true]
    });
    assert_eq!(strong.ask("close"), "closed");
    log.wait("its instance has no owner", |items| owned(items, 1) == [true, true, false]);
    assert_eq!(owned(&log.items.lock().unwrap(), 2), [true]);
    weak.ask("write 1 1");
    log.wait("the weaker one owns it again", |items| owned(items, 1) == [true, true, false, true]);
    weak.send("unregister 2");
    log.wait("the other one has no owner", |items| owned(items, 2) == [true, false]);
}

/// A reader that requests no latency budget receives from no publisher with one: by default, that of the publisher is
/// requested.
#[test]
fn the_latency_budget_is_that_of_the_publisher() {
    let Some(bench) = Bench::new("the_latency_budget_is_that_of_the_publisher") else { return };
    let mut slow = bench.publisher(&["--latency-budget", "0.05"]);
    let (_subscription, log) = bench.subscribe(None, &TopicQos::default());
    log.wait("it has a publisher", |items| items.contains(&Item::Alive(true)));
    assert_eq!(slow.ask("wait"), "matched");
    assert_eq!(slow.ask("write 1 3"), "wrote 3");
    log.samples(3);
    // A greater budget matches too, a smaller one does not.
    let of = |ms| TopicQos { latency_budget: Some(Duration::from_millis(ms)), ..TopicQos::default() };
    let (_patient, there) = bench.subscribe(None, &of(60));
    there.wait("it has a publisher", |items| items.contains(&Item::Alive(true)));
    let (strict, _log) = bench.subscribe(None, &of(40));
    wait_until("the publisher is counted", || strict.problems().incompatible == 1);
    assert!(strict.close(LIMIT));
}

/// A publisher that is silent for longer than its lease returns, and sends its kept samples again.
#[test]
fn samples_of_a_returning_publisher_are_delivered_once() {
    let Some(bench) = Bench::new("samples_of_a_returning_publisher_are_delivered_once") else { return };
    let mut publisher = bench.publisher(&["--transient-local", "50", "--silence", "1"]);
    let volatile =
        TopicQos { durability: Some(rondel_net::dds::Durability::Volatile), ..TopicQos::default() };
    let both = [bench.subscribe(None, &TopicQos::default()), bench.subscribe(None, &volatile)];
    for (_, log) in &both {
        log.wait("it has a publisher", |items| items.contains(&Item::Alive(true)));
    }
    assert_eq!(publisher.ask("wait"), "matched");
    // Both have matched on the other side, too, once both have a sample.
    let mut written = 0;
    wait_until("both receive", || {
        publisher.ask("write 1 1");
        written += 1;
        both.iter()
            .all(|(_, log)| log.items.lock().unwrap().iter().any(|item| matches!(item, Item::Sample(_))))
    });
    publisher.ask("write 1 20");
    let last = |items: &[Item]| {
        let sample = items.iter().rev().find_map(|item| match item {
            Item::Sample(sample) => Some(sample),
            _ => None,
        });
        sample.map(|sample| u64::from_le_bytes(sample[20..28].try_into().unwrap()))
    };
    both.iter().for_each(|(_, log)| log.wait("all have come", |items| last(items) == Some(written + 19)));
    publisher.pause(true);
    both.iter().for_each(|(_, log)| log.wait("it is lost", |items| items.contains(&Item::Alive(false))));
    publisher.pause(false);
    let alive = |items: &[Item]| items.iter().filter(|item| **item == Item::Alive(true)).count();
    both.iter().for_each(|(_, log)| log.wait("it is back", |items| alive(items) == 2));
    publisher.ask("write 1 10");
    for (_, log) in &both {
        log.wait("all have come", |items| last(items) == Some(written + 29));
        let items = log.items.lock().unwrap();
        let numbers = items.iter().filter_map(|item| match item {
            Item::Sample(sample) => Some(u64::from_le_bytes(sample[20..28].try_into().unwrap())),
            _ => None,
        });
        let numbers: Vec<u64> = numbers.collect();
        assert!(numbers.windows(2).all(|pair| pair[0] + 1 == pair[1]), "{numbers:?}");
    }
    wait_until("the outage is noted", || bench.participant.outages().len() == 2);
}

#[test]
fn deadlines_and_signs_of_life_are_reported() {
    let Some(bench) = Bench::new("deadlines_and_signs_of_life_are_reported") else { return };
    let qos = TopicQos { deadline: Some(Duration::from_millis(300)), ..TopicQos::default() };
    let (_subscription, log) = bench.subscribe(None, &qos);
    let mut publisher = bench.publisher(&["--deadline", "0.1"]);
    assert_eq!(publisher.ask("wait"), "matched");
    publisher.ask("write 1 1");
    log.samples(1);
    log.wait("the deadline is missed", |items| items.contains(&Item::MissedDeadline(None)));
    assert!(!log.items.lock().unwrap().contains(&Item::Alive(false)));
    publisher.send("close");
    log.wait("the publisher is gone", |items| items.contains(&Item::Alive(false)));
}

/// The silent instance misses its deadline first and is named, while the other one continues.
#[test]
fn a_missed_deadline_is_that_of_an_instance() {
    let Some(bench) = Bench::new("a_missed_deadline_is_that_of_an_instance") else { return };
    let qos = TopicQos { deadline: Some(Duration::from_millis(300)), ..TopicQos::default() };
    let (_subscription, log) = bench.subscribe(Some("demo::Track"), &qos);
    let mut publisher = bench.publisher(&["--kind", "track", "--deadline", "0.1"]);
    assert_eq!(publisher.ask("wait"), "matched");
    assert_eq!(publisher.ask("turns 1,7 1"), "wrote 2");
    let is_missed = |item: &Item| matches!(item, Item::MissedDeadline(_));
    let mut written = 2;
    wait_until("a deadline is missed", || {
        written += 1;
        assert_eq!(publisher.ask("write 7 1"), format!("wrote {written}"));
        log.items.lock().unwrap().iter().any(is_missed)
    });
    {
        let items = log.items.lock().unwrap();
        assert_eq!(items.iter().find(|item| is_missed(item)), Some(&Item::MissedDeadline(Some(1))));
    }
    // The library does not report this instance any more: its end comes with that of the last publisher.
    publisher.send("close");
    for id in [1, 7] {
        log.wait("the instance is gone", |items| items.contains(&Item::Unregistered(Some(id))));
    }
}

#[test]
fn samples_are_taken_in_intervals() {
    let Some(bench) = Bench::new("samples_are_taken_in_intervals") else { return };
    struct Batches(Log, Mutex<Vec<Instant>>);
    impl Receiver for Batches {
        fn receive(&self, topic: TopicId, samples: &[Sample<'_>]) {
            self.0.receive(topic, samples);
        }
        fn idle(&self) {
            self.1.lock().unwrap().push(Instant::now());
        }
    }
    let poll = Duration::from_millis(100);
    let qos = TopicQos { poll: Some(poll), ..TopicQos::default() };
    let log = Arc::new(Batches(Log::default(), Mutex::default()));
    let raw = TopicType::Raw(RawType::default());
    let of = DeclaredTopic { topic_type: &raw, qos: &qos, schema: None };
    let made = bench.participant.subscribe_as("test/topic", of, TOPIC, Arc::clone(&log));
    let subscription = made.unwrap();
    let mut publisher = bench.publisher(&[]);
    assert_eq!(publisher.ask("wait"), "matched");
    for round in 1..=20 {
        publisher.ask("write 1 100");
        log.0.wait("they have come", |items| items.len() >= round * 100);
    }
    let batches = log.1.lock().unwrap();
    let close = batches.windows(2).filter(|pair| pair[1] - pair[0] < poll / 2).count();
    assert!(close <= 1, "{close} of {} batches came earlier than the interval", batches.len());
    drop(batches);
    assert!(subscription.close(LIMIT));
    assert_eq!(subscription.received(), 2000);
}
