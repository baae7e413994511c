//! Topics of any type on DDS, published by the Python package `cyclonedds`.

#![cfg(feature = "dds")]
#![allow(clippy::unwrap_used, clippy::panic)] // the helpers are tests as well

mod peer;

use std::path::PathBuf;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Condvar, Mutex};
use std::time::{Duration, Instant};

use peer::{Peer, python};
use rondel_decode::schema::{Library, Schema};
use rondel_event::{Timestamp, TopicId, TypeIndex};
use rondel_net::adapter::{
    Change, Instance, PublishError, Publisher as _, Receiver, Sample, Subscription as _,
};
use rondel_net::dds::{Participant, PublisherSettings, RawType, Settings, Subscription, TopicQos, TopicType};

const LIMIT: Duration = Duration::from_secs(30);
/// Time without a discovery after which everything was discovered, even on a busy machine.
const QUIET: Duration = Duration::from_secs(2);
const TOPIC: TopicId = TopicId(3);

/// Received items, in order.
#[derive(Debug, PartialEq)]
enum Item {
    Sample(Vec<u8>),
    Disposed(Option<i32>),
    Unregistered(Option<i32>),
    MissedDeadline(Option<i32>),
    Alive(bool),
}

#[derive(Default)]
struct Log {
    items: Mutex<Vec<Item>>,
    changed: Condvar,
}

impl Receiver for Log {
    fn receive(&self, topic: TopicId, samples: &[Sample<'_>]) {
        assert!(topic == TOPIC && (1..=64).contains(&samples.len()));
        self.push(samples.iter().map(|sample| Item::Sample(sample.payload.to_vec())));
    }

    fn changed(&self, topic: TopicId, change: Change<'_>, _: Timestamp) {
        assert_eq!(topic, TOPIC);
        // The id is first, after the length of the structure.
        let id = |instance| match instance {
            Instance::Unnamed => None,
            Instance::Key(bytes) => Some(i32::from_le_bytes(bytes[8..12].try_into().unwrap())),
            Instance::Sample(bytes) => Some(track(bytes).0),
        };
        self.push([match change {
            Change::Disposed(instance) => Item::Disposed(id(instance)),
            Change::Unregistered(instance) => Item::Unregistered(id(instance)),
            Change::MissedDeadline(instance) => Item::MissedDeadline(id(instance)),
            Change::Alive(alive) => Item::Alive(alive),
        }]);
    }
}

impl Log {
    fn push(&self, new: impl IntoIterator<Item = Item>) {
        self.items.lock().unwrap().extend(new);
        self.changed.notify_all();
    }

    /// Waits until the items satisfy a condition.
    #[track_caller]
    fn wait(&self, what: &str, done: impl Fn(&[Item]) -> bool) {
        let items = self.items.lock().unwrap();
        let waited = self.changed.wait_timeout_while(items, LIMIT, |items| !done(items)).unwrap();
        assert!(
            !waited.1.timed_out(),
            "timed out waiting until {what}: {:?}",
            &waited.0[waited.0.len().saturating_sub(5)..]
        );
    }

    fn samples(&self, count: usize) -> Vec<Vec<u8>> {
        let of = |items: &[Item]| items.iter().filter(|item| matches!(item, Item::Sample(_))).count();
        self.wait("all samples have come", |items| of(items) >= count);
        let items = self.items.lock().unwrap();
        let samples = items.iter().filter_map(|item| match item {
            Item::Sample(sample) => Some(sample.clone()),
            _ => None,
        });
        let samples: Vec<_> = samples.collect();
        assert_eq!(samples.len(), count);
        samples
    }
}

/// Returns the id and the number in a sample of a track, an appendable structure.
fn track(sample: &[u8]) -> (i32, u64) {
    let body = match sample[1] {
        1 => &sample[4..],
        9 => &sample[8..],
        other => panic!("encoding {other}"),
    };
    let aligned = if sample[1] == 1 { 8 } else { 4 };
    let number = u64::from_le_bytes(body[aligned..aligned + 8].try_into().unwrap());
    (i32::from_le_bytes(body[..4].try_into().unwrap()), number)
}

struct Bench {
    python: PathBuf,
    settings: Settings,
    participant: Participant,
}

impl Bench {
    fn new(test: &str) -> Option<Bench> {
        let python = python(test)?;
        let settings = Bench::settings();
        let participant = Participant::open(&settings).unwrap();
        Some(Bench { python, settings, participant })
    }

    /// Returns settings with a domain that no other test uses.
    fn settings() -> Settings {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        // Up to 99: the ports of higher domains are also used as ephemeral ports.
        let domain = (std::process::id() * 16 + NEXT.fetch_add(1, Ordering::Relaxed)) % 90 + 10;
        Settings { domain, interface: Some("lo".into()), ..Settings::default() }
    }

    fn publisher(&self, arguments: &[&str]) -> Peer {
        let domain = self.settings.domain.to_string();
        let all = [&["test/topic", "--domain", &domain], arguments].concat();
        Peer::start(&self.python, "dds_typed.py", &all)
    }

    fn subscribe(&self, name: Option<&str>, qos: &TopicQos) -> (Subscription, Arc<Log>) {
        let log = Arc::new(Log::default());
        let raw = TopicType::Raw(RawType { name: name.map(str::to_owned), keyed: None });
        let made = self.participant.subscribe_as("test/topic", (&raw, qos), None, TOPIC, Arc::clone(&log));
        (made.unwrap(), log)
    }

    fn subscribe_of(&self, schema: &Schema) -> (Subscription, Arc<Log>) {
        let log = Arc::new(Log::default());
        let raw = TopicType::Raw(RawType { name: Some("demo::Other".to_owned()), keyed: None });
        let of = (&raw, &TopicQos::default());
        let made = self.participant.subscribe_as("test/topic", of, Some(schema), TOPIC, Arc::clone(&log));
        (made.unwrap(), log)
    }
}

fn wait_until(what: &str, mut condition: impl FnMut() -> bool) {
    let deadline = Instant::now() + LIMIT;
    while !condition() {
        assert!(Instant::now() < deadline, "timed out waiting until {what}");
        std::thread::yield_now();
    }
}

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
fn publishers_of_another_type_are_counted() {
    let Some(bench) = Bench::new("publishers_of_another_type_are_counted") else { return };
    let (named, named_log) = bench.subscribe(Some("demo::Pose"), &TopicQos::default());
    let other = bench.publisher(&["--kind", "other"]);
    wait_until("the other type is counted", || named.problems().incompatible == 1);
    let (first, first_log) = bench.subscribe(None, &TopicQos::default());
    let mut pose = bench.publisher(&["--kind", "pose"]);
    assert_eq!(pose.ask("wait"), "matched");
    pose.ask("write 1 10");
    named_log.samples(10);
    // The subscription has the type of the first publisher.
    wait_until("the second type is counted", || first.problems().incompatible == 1);
    // The same name with other members: a publisher whose type has changed.
    drop((pose, other));
    let _changed = bench.publisher(&["--kind", "wide"]);
    wait_until("the changed type is counted", || named.problems().incompatible == 2);
    assert_eq!((named_log.samples(10).len(), first_log.samples(0).len()), (10, 0));
}

/// Returns the declared type `demo::Other`: one kind of publisher has a type of the same name and size with another
/// field.
fn declared() -> Schema {
    let mut library = Library::new();
    library.add_idl("module demo { struct Other { uint64 number; }; };", &|_| None).unwrap();
    library.schema("demo::Other").unwrap()
}

#[test]
fn publishers_of_another_type_than_the_declared_one_are_refused() {
    let Some(bench) = Bench::new("publishers_of_another_type_than_the_declared_one_are_refused") else {
        return;
    };
    let (subscription, log) = bench.subscribe_of(&declared());
    // No publisher can be read yet.
    let mut wrong = bench.publisher(&["--kind", "same"]);
    wait_until("the wrong type is refused", || subscription.problems().incompatible == 1);
    let mut right = bench.publisher(&["--kind", "other"]);
    assert_eq!(right.ask("wait"), "matched");
    assert_eq!((right.ask("write 1 3"), wrong.ask("write 1 5")), ("wrote 3".into(), "wrote 5".into()));
    log.samples(3);
    // The publisher restarts, with another type and with the first one.
    drop(right);
    let changed = bench.publisher(&["--kind", "same"]);
    wait_until("the changed type is refused", || subscription.problems().incompatible == 2);
    drop((changed, wrong));
    let mut again = bench.publisher(&["--kind", "other"]);
    assert_eq!(again.ask("wait"), "matched");
    assert_eq!(again.ask("write 1 4"), "wrote 4");
    log.samples(7);
    let problems = subscription.problems();
    assert_eq!((problems.incompatible, problems.malformed, problems.lost), (2, 0, 0));
}

#[test]
fn the_hash_of_a_type_is_discovered() {
    let Some(bench) = Bench::new("the_hash_of_a_type_is_discovered") else { return };
    let hash = declared().rihs01().unwrap();
    let mut publisher = bench.publisher(&["--kind", "other", "--hash", &hash]);
    let _subscription = bench.subscribe_of(&declared());
    assert_eq!(publisher.ask("wait"), "matched");
    let all = bench.participant.endpoints(QUIET, LIMIT).unwrap();
    let found = all.iter().find(|endpoint| endpoint.topic == "test/topic" && endpoint.publishes).unwrap();
    assert_eq!(found.type_hash.as_ref(), Some(&hash));
}

/// The library matches publishers without a description of their type by its name alone.
#[test]
fn received_messages_of_another_type_are_counted() {
    let Some(bench) = Bench::new("received_messages_of_another_type_are_counted") else {
        return;
    };
    let (subscription, log) = bench.subscribe_of(&declared());
    let (other, raw) = (Participant::open(&bench.settings).unwrap(), Some("demo::Other".to_owned()));
    let raw = TopicType::Raw(RawType { name: raw, keyed: Some(false) });
    let of = (&raw, &TopicQos::default());
    let undescribed = other.publisher_as("test/topic", of, None, PublisherSettings::default()).unwrap();
    assert!(undescribed.wait_matched(LIMIT));
    let sample = [0, 1, 0, 0, 7, 0, 0, 0, 0, 0, 0, 0];
    undescribed.publish(&sample).unwrap();
    log.samples(1);
    // Now there is a reader that knows only the name.
    let mut wrong = bench.publisher(&["--kind", "same"]);
    assert_eq!(wrong.ask("wait"), "matched");
    assert_eq!(wrong.ask("write 1 5"), "wrote 5");
    wait_until("its messages are counted", || subscription.problems().malformed == 5);
    undescribed.publish(&sample).unwrap();
    log.samples(2);
    assert_eq!(subscription.problems().incompatible, 1);
    assert!(subscription.close(LIMIT));
}

/// Receiver that reads every type, and records the types.
#[derive(Default)]
struct Typed {
    log: Log,
    types: Mutex<Vec<Schema>>,
    of_samples: Mutex<Vec<u16>>,
}

impl Receiver for Typed {
    fn receive(&self, topic: TopicId, samples: &[Sample<'_>]) {
        self.of_samples.lock().unwrap().extend(samples.iter().map(|sample| sample.of_type.0));
        self.log.receive(topic, samples);
    }

    fn changed(&self, topic: TopicId, change: Change<'_>, time: Timestamp) {
        self.log.changed(topic, change, time);
    }

    fn wants_types(&self, _: TopicId) -> bool {
        true
    }

    fn further_type(&self, _: TopicId, _: &str, schema: &Schema) -> Option<TypeIndex> {
        let mut types = self.types.lock().unwrap();
        let known = types.iter().position(|known| known == schema);
        let at = known.unwrap_or(types.len());
        if known.is_none() {
            types.push(schema.clone());
        }
        Some(TypeIndex(at as u16 + 1))
    }
}

impl Typed {
    fn counts(&self) -> [usize; 3] {
        let of_samples = self.of_samples.lock().unwrap();
        assert!(of_samples.iter().all(|of| *of < 2), "{of_samples:?}");
        let of = |of_type| of_samples.iter().filter(|own| **own == of_type).count();
        [of_samples.len(), of(0), of(1)]
    }
}

#[test]
fn publishers_of_another_type_are_read_by_their_own_type() {
    let Some(bench) = Bench::new("publishers_of_another_type_are_read_by_their_own_type") else { return };
    for is_first_undescribed in [false, true] {
        let typed = Arc::new(Typed::default());
        let raw = TopicType::Raw(RawType { name: Some("demo::Other".to_owned()), keyed: None });
        let of = (&raw, &TopicQos::default());
        let schema = declared();
        let receiver = Arc::clone(&typed);
        let subscription =
            bench.participant.subscribe_as("test/topic", of, Some(&schema), TOPIC, receiver).unwrap();
        // A publisher without a description leaves the reader only the name, so that all publishers come to it.
        let other = Participant::open(&bench.settings).unwrap();
        let keyless = TopicType::Raw(RawType { name: Some("demo::Other".to_owned()), keyed: Some(false) });
        let of = (&keyless, &TopicQos::default());
        let make = || other.publisher_as("test/topic", of, None, PublisherSettings::default()).unwrap();
        let undescribed = is_first_undescribed.then(make);
        if let Some(undescribed) = &undescribed {
            assert!(undescribed.wait_matched(LIMIT));
            undescribed.publish(&[0, 1, 0, 0, 7, 0, 0, 0, 0, 0, 0, 0]).unwrap();
        }
        let mut publishers = ["same", "other", "same"].map(|kind| bench.publisher(&["--kind", kind]));
        publishers.iter_mut().for_each(|publisher| assert_eq!(publisher.ask("wait"), "matched"));
        for (publisher, count) in publishers.iter_mut().zip(["3", "4", "5"]) {
            publisher.ask(&format!("write 1 {count}"));
        }
        let first = usize::from(is_first_undescribed);
        typed.log.samples(12 + first);
        // A publisher that comes later and is the only one.
        drop(publishers);
        let mut last = bench.publisher(&["--kind", "same"]);
        assert_eq!(last.ask("wait"), "matched");
        last.ask("write 1 2");
        typed.log.samples(14 + first);
        drop((last, undescribed));
        typed.log.wait("no publisher is alive", |items| {
            let last = items.iter().rfind(|item| matches!(item, Item::Alive(_)));
            last == Some(&Item::Alive(false))
        });
        assert!(subscription.close(LIMIT));
        assert_eq!(typed.counts(), [14 + first, 4 + first, 10]);
        assert_eq!(typed.types.lock().unwrap().len(), 1);
        let problems = subscription.problems();
        assert_eq!((problems.incompatible, problems.malformed, problems.lost), (0, 0, 0));
    }
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
    let made = bench.participant.subscribe_as("test/topic", (&raw, &qos), None, TOPIC, Arc::clone(&log));
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

/// The types of `dds_typed.py`, as IDL. The library numbers the cases of unions from 0, not from 1 as the standard does.
const IDL: &str = "module demo {
    enum Mode { PARKED, DRIVING };
    @final struct Stamp { long sec; unsigned long nanosec; };
    @final struct Header { Stamp stamp; string frame_id; };
    @final struct Pose {
        Header header; unsigned long long number; Mode mode; double position[3]; sequence<double> covariance;
    };
    @bit_bound(12) bitmask Lamps { left, right, @position(7) brake };
    @final union Detail switch (Mode) { case PARKED: @id(0) long gear; default: @id(1) double speed; };
    typedef short Row[3];
    @mutable struct Part { @id(7) float weight; @id(9) string<20> label; };
    @appendable struct Base { @key uint8 id; };
    @appendable struct All : Base {
        boolean flag; char letter; int8 small; unsigned long long huge; Mode mode; Lamps lamps; Detail detail;
        Row rows[2]; sequence<Part, 300> parts; sequence<string> names; unsigned short matrix[2][300];
        @optional string note;
    };
};";

/// Returns the same type from IDL.
fn defined(name: &str) -> Schema {
    let mut library = Library::new();
    library.add_idl(IDL, &|_| None).unwrap();
    library.schema(name).unwrap()
}

#[test]
fn a_type_is_discovered_as_it_is_defined() {
    let Some(bench) = Bench::new("a_type_is_discovered_as_it_is_defined") else { return };
    let none = bench
        .participant
        .discovered_type(|name: &str| name == "test/topic", None, Duration::from_millis(50), |_| true)
        .unwrap();
    assert!(none.is_none());
    for (kind, name, keyed) in [("pose", "demo::Pose", false), ("all", "demo::All", true)] {
        let _publisher = bench.publisher(&["--kind", kind]);
        let found = bench
            .participant
            .discovered_type(|topic: &str| topic == "test/topic", Some(name), LIMIT, |_| true)
            .unwrap()
            .unwrap();
        assert_eq!((found.name.as_str(), found.keyed), (name, keyed));
        let (found, expected) = (found.schema.unwrap(), defined(name));
        assert_eq!(format!("{found:#?}"), format!("{expected:#?}"));
    }
}

#[test]
fn publishers_and_subscriptions_are_listed() {
    let Some(bench) = Bench::new("publishers_and_subscriptions_are_listed") else { return };
    let mut publisher = bench.publisher(&["--kind", "track", "--transient-local", "3", "--partition", "a"]);
    let (_subscription, _log) =
        bench.subscribe(None, &TopicQos { partitions: vec!["a".to_owned()], ..TopicQos::default() });
    assert_eq!(publisher.ask("wait"), "matched");
    let all = bench.participant.endpoints(QUIET, LIMIT).unwrap();
    let of_topic: Vec<_> = all.iter().filter(|endpoint| endpoint.topic == "test/topic").collect();
    assert_eq!(of_topic.len(), 2, "{all:#?}");
    assert_ne!(of_topic[0].participant, of_topic[1].participant);
    assert_ne!(of_topic[0].publishes, of_topic[1].publishes);
    for endpoint in of_topic {
        assert_eq!(
            (endpoint.type_name.as_str(), endpoint.keyed, endpoint.is_described),
            ("demo::Track", true, true)
        );
        assert_eq!(endpoint.qos.durability, rondel_net::dds::Durability::TransientLocal);
        assert_eq!(endpoint.qos.reliability, rondel_net::dds::Reliability::Reliable);
        assert_eq!(endpoint.qos.partitions, ["a"]);
    }
}

/// Returns a sample of a pose with these numbers.
fn pose(number: u32) -> Vec<u8> {
    let mut sample = vec![0, 1, 0, 0];
    sample.extend([7_u32, 500, 4].map(u32::to_le_bytes).concat());
    sample.extend(b"map\0");
    sample.extend(u64::from(number).to_le_bytes());
    sample.extend([1_u32, 0].map(u32::to_le_bytes).concat());
    sample.extend([1.5_f64, 2.5, -0.5].map(f64::to_le_bytes).concat());
    sample.extend(1_u32.to_le_bytes());
    sample.extend([0; 4]);
    sample.extend(0.25_f64.to_le_bytes());
    sample
}

#[test]
fn a_published_type_is_described() {
    let Some(bench) = Bench::new("a_published_type_is_described") else { return };
    let domain = bench.settings.domain.to_string();
    let reader = Peer::start(&bench.python, "dds_discover.py", &["test/topic", "--domain", &domain]);
    let schema = defined("demo::Pose");
    let raw = TopicType::Raw(RawType { name: Some("demo::Pose".to_owned()), keyed: None });
    let kept =
        TopicQos { durability: Some(rondel_net::dds::Durability::TransientLocal), ..TopicQos::default() };
    let (of, settings) = ((&raw, &kept), PublisherSettings::default());
    let publisher = bench.participant.publisher_as("test/topic", of, Some(&schema), settings).unwrap();
    assert_eq!(reader.line(), "demo::Pose");
    assert!(!publisher.needs_second_version() && publisher.wait_matched(LIMIT));
    for number in 0..3 {
        publisher.publish(&pose(number)).unwrap();
        let line = reader.line();
        assert!(
            line.contains("sec=7, nanosec=500")
                && line.contains(&format!("number={number}"))
                && line.contains("DRIVING"),
            "{line}"
        );
    }
    for bad in [&[0, 1, 0][..], &[0, 9, 0, 0, 1, 0, 0, 0], &[0, 1, 0, 0, 7, 0, 0, 0]] {
        assert!(matches!(publisher.publish(bad), Err(PublishError::Payload(_))), "{bad:?}");
    }
    // Its kept samples come back unchanged: the last one, and one that may be unacknowledged.
    let (_subscription, log) = bench.subscribe(None, &TopicQos::default());
    log.wait("the last one has come", |items| items.contains(&Item::Sample(pose(2))));
    let items = log.items.lock().unwrap();
    let samples: Vec<_> = items.iter().filter(|item| matches!(item, Item::Sample(_))).collect();
    let sent: Vec<_> = (0..3).map(|number| Item::Sample(pose(number))).collect();
    assert!(
        samples.len() <= 2
            && samples.iter().rev().eq(&sent.iter().rev().take(samples.len()).collect::<Vec<_>>())
    );
}

#[test]
fn a_described_type_is_the_one_that_was_defined() {
    let settings = Bench::settings();
    let (a, b) = (Participant::open(&settings).unwrap(), Participant::open(&settings).unwrap());
    let schema = defined("demo::All");
    let raw = TopicType::Raw(RawType { name: Some("demo::All".to_owned()), keyed: None });
    let of = (&raw, &TopicQos::default());
    let publisher = a.publisher_as("test/topic", of, Some(&schema), PublisherSettings::default()).unwrap();
    assert!(publisher.needs_second_version());
    let found =
        b.discovered_type(|topic: &str| topic == "test/topic", None, LIMIT, |_| true).unwrap().unwrap();
    assert!(found.keyed);
    assert_eq!(format!("{:#?}", found.schema.unwrap()), format!("{schema:#?}"));
}

#[test]
fn a_type_known_only_by_its_name_is_passed_on() {
    let settings = Bench::settings();
    let (a, b) = (Participant::open(&settings).unwrap(), Participant::open(&settings).unwrap());
    let log = Arc::new(Log::default());
    let any = TopicType::Raw(RawType::default());
    let subscription =
        a.subscribe_as("test/topic", (&any, &TopicQos::default()), None, TOPIC, Arc::clone(&log)).unwrap();
    let nameless =
        b.publisher_as("test/topic", (&any, &TopicQos::default()), None, PublisherSettings::default());
    assert!(nameless.is_err());
    let opaque =
        |keyed| TopicType::Raw(RawType { name: Some("demo::Opaque".to_owned()), keyed: Some(keyed) });
    let publisher = |topic: &str, keyed, schema: Option<&Schema>| {
        let settings = PublisherSettings { batching: true };
        b.publisher_as(topic, (&opaque(keyed), &TopicQos::default()), schema, settings).unwrap()
    };
    let plain = publisher("test/topic", false, None);
    assert!(plain.wait_matched(LIMIT));
    let expected: Vec<Vec<u8>> = (0..1000).map(pose).collect();
    expected.iter().for_each(|sample| plain.publish(sample).unwrap());
    plain.release();
    assert!(plain.flush(LIMIT));
    assert_eq!(log.samples(1000), expected);
    assert_eq!(subscription.problems().lost, 0);
    // With a key, and of a type that the library cannot describe.
    let mut library = Library::new();
    let negative = "module demo { enum E { @value(-1) A, @value(1) B }; struct Opaque { E e; }; };";
    library.add_idl(negative, &|_| None).unwrap();
    let schema = library.schema("demo::Opaque").unwrap();
    let _keyed = publisher("test/keyed", true, Some(&schema));
    let found =
        a.discovered_type(|topic: &str| topic == "test/keyed", None, LIMIT, |_| true).unwrap().unwrap();
    assert!(found.keyed && found.schema.is_err());
}
