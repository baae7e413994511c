//! Tests of the consumer without a broker.

#![allow(clippy::unwrap_used)]

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use rdkafka::error::{KafkaError, RDKafkaErrorCode};
use rondel_event::{Timestamp, TopicId};

use super::client::create_consumer;
use super::incoming::Incoming;
use super::partitions::{First, Partitions, Range};
use super::positions::{self, Mark, Marks};
use super::routes::{NO_NAME, Partition, Route};
use super::subscription::{Counts, Deliver};
use super::{Place, Settings};
use crate::adapter::Sample;

/// Intervals in which records may have been missed.
type Missed = Arc<Mutex<Vec<(Timestamp, Option<Timestamp>)>>>;

struct Notes(Missed);

impl Deliver for Notes {
    fn receive(&self, _topic: TopicId, _name: &str, _sample: Sample<'_>) -> bool {
        true
    }

    fn idle(&self) {}

    fn missed(&self, _topic: TopicId, from: Timestamp, until: Option<Timestamp>) {
        self.0.lock().unwrap().push((from, until));
    }
}

/// A consumer that passes no partition to the client, and whose broker does not exist.
fn incoming(marks: Marks) -> Incoming {
    let settings = Settings { brokers: vec!["127.0.0.1:1".to_owned()], waits: true, ..Settings::default() };
    let consumer = create_consumer(&settings, &Arc::default()).unwrap();
    Incoming::new(settings, consumer, marks, None)
}

/// Adds a subscription to a topic.
fn subscribe(incoming: &Incoming, topic: &str) -> (Missed, Arc<Counts>) {
    let (missed, counts) = (Missed::default(), Arc::<Counts>::default());
    let deliver = Box::new(Notes(Arc::clone(&missed)));
    let route = Route::new(Place::parse(topic).unwrap(), TopicId(0), deliver, Arc::clone(&counts));
    incoming.routes().all.push(route);
    (missed, counts)
}

/// Reads a topic whose only partition has these offsets.
fn read(incoming: &Incoming, topic: &str, low: i64, high: i64) {
    let found = Partitions::from([(0, Range { low, high })]);
    incoming.read(&mut incoming.routes(), topic, &found, First::Oldest);
}

/// Returns the mark of the only partition of a topic in a snapshot.
fn marked(incoming: &Incoming, topic: &str) -> Option<Mark> {
    let marks = incoming.freeze(|bytes| positions::read(&bytes)).unwrap();
    marks.get(topic).and_then(|marks| marks.get(&0).copied())
}

/// Stops to read a topic, as when the cluster does not have it any more.
fn lose(incoming: &Incoming, topic: &str) {
    let mut routes = incoming.routes();
    let partitions = std::mem::take(&mut routes.topics.get_mut(topic).unwrap().partitions);
    incoming.stop(&mut routes, topic, &partitions);
}

#[test]
fn a_topic_that_is_missing_for_a_short_time_is_not_read_twice() {
    let incoming = incoming(Marks::new());
    let (missed, _) = subscribe(&incoming, "state");
    read(&incoming, "state", 0, 10);
    let reached = Mark { next: 7, last: Timestamp::from_nanos(5) };
    incoming.routes().partition("state", 0).unwrap().mark = reached;
    lose(&incoming, "state");
    assert_eq!(marked(&incoming, "state"), Some(reached), "a snapshot in between has its offsets");
    // Missing again.
    lose(&incoming, "state");
    assert_eq!(marked(&incoming, "state"), Some(reached));
    read(&incoming, "state", 0, 10);
    assert_eq!(marked(&incoming, "state"), Some(reached));
    assert!(missed.lock().unwrap().is_empty());
    // Created again with fewer records: unread ones of the old topic are gone.
    lose(&incoming, "state");
    read(&incoming, "state", 0, 3);
    assert_eq!(marked(&incoming, "state").map(|mark| mark.next), Some(0));
    let is_since = |(from, until): &(Timestamp, Option<Timestamp>)| *from == reached.last && until.is_some();
    assert!(matches!(&missed.lock().unwrap()[..], [one] if is_since(one)));
}

#[test]
fn a_partition_that_is_cut_off_makes_the_time_since_its_last_record_uncertain() {
    let incoming = incoming(Marks::new());
    let ((missed, counts), (other, _)) = (subscribe(&incoming, "state"), subscribe(&incoming, "other"));
    let since = Timestamp::from_nanos(5);
    incoming.routes().was_reset("state", 0, since);
    assert_eq!(counts.duplicates.load(Ordering::Relaxed), 1);
    let all = missed.lock().unwrap();
    assert_eq!((all.len(), all[0].0, all[0].1.is_some()), (1, since, true));
    assert!(other.lock().unwrap().is_empty());
}

#[test]
fn a_gap_greater_than_harmless_ones_is_queried_for_at_once() {
    let mark = Mark { next: 0, last: Timestamp::from_nanos(0) };
    let mut partition = Partition::new(mark, true);
    assert_eq!([-1, 0, 1].map(|gap| partition.may_have_lost(gap)), [false, false, true]);
    // The end of a transaction was queried for, just before records expire.
    (partition.queried, partition.harmless) = (Some(Instant::now()), 1);
    assert_eq!([0, 1, 2, 1000].map(|gap| partition.may_have_lost(gap)), [false, false, true, true]);
}

#[test]
fn a_gap_is_uncertain_if_no_broker_answers() {
    let incoming = incoming(Marks::new());
    let (missed, counts) = subscribe(&incoming, "state");
    read(&incoming, "state", 0, 10);
    let since = Timestamp::from_nanos(5);
    incoming.examine_gap(&mut incoming.routes(), ("state", 0), (3, 8), since);
    let all = missed.lock().unwrap();
    assert_eq!((all.len(), all[0].0, all[0].1.is_some()), (1, since, true));
    assert_eq!(counts.lost.load(Ordering::Relaxed), 0);
    let harmless = incoming.routes().partition("state", 0).map(|partition| partition.harmless);
    assert_eq!(harmless, Some(0));
}

#[test]
fn a_run_that_goes_on_is_behind_until_all_partitions_are_found() {
    let mark = Mark { next: 7, last: Timestamp::from_nanos(5) };
    let incoming = incoming(Marks::from([("state".to_owned(), BTreeMap::from([(0, mark)]))]));
    assert!(incoming.is_behind.load(Ordering::Relaxed));
    assert!(!incoming.routes().are_found(), "nothing is subscribed to so far");
    incoming.routes().topics.entry("state".to_owned()).or_default();
    incoming.begin();
    assert!(!incoming.routes().are_found());
    incoming.routes().topics.entry("state".to_owned()).or_default().is_known = true;
    assert!(incoming.routes().are_found());
}

#[test]
fn a_session_that_only_publishes_is_not_behind() {
    let incoming = incoming(Marks::new());
    incoming.begin();
    assert!(incoming.routes().are_found() && !incoming.is_behind.load(Ordering::Relaxed));
}

#[test]
fn unreadable_records_are_counted_and_cut_the_topics_off() {
    let incoming = incoming(Marks::new());
    let (missed, counts) = subscribe(&incoming, "state");
    let fail = |code: RDKafkaErrorCode| {
        incoming.failed(&mut incoming.routes(), &KafkaError::MessageConsumption(code));
        (counts.malformed.load(Ordering::Relaxed), missed.lock().unwrap().len())
    };
    // These pass.
    assert_eq!(fail(RDKafkaErrorCode::BrokerTransportFailure), (0, 0));
    assert_eq!(fail(RDKafkaErrorCode::UnknownTopicOrPartition), (0, 0));
    // Each attempt is counted, and the interval begins once.
    assert_eq!(fail(RDKafkaErrorCode::NotImplemented), (1, 1));
    assert_eq!(fail(RDKafkaErrorCode::NotImplemented), (2, 1));
    assert_eq!(fail(RDKafkaErrorCode::TopicAuthorizationFailed), (3, 1));
    assert_eq!(fail(RDKafkaErrorCode::BadCompression), (4, 1));
    assert_eq!(fail(RDKafkaErrorCode::MessageSizeTooLarge), (5, 1));
    assert_eq!(missed.lock().unwrap()[0].1, None, "it does not end");
    // A later subscription is cut off by the next error.
    let (later, _) = subscribe(&incoming, "late");
    assert_eq!(fail(RDKafkaErrorCode::BadMessage), (6, 1));
    assert_eq!(later.lock().unwrap().len(), 1);
}

/// Counts the samples without a name, if it takes them.
struct Unnamed {
    takes: bool,
    count: Arc<AtomicU64>,
}

impl Deliver for Unnamed {
    fn receive(&self, _topic: TopicId, _name: &str, _sample: Sample<'_>) -> bool {
        true
    }

    fn receive_unnamed(&self, _topic: TopicId, sample: Sample<'_>, why: &str) -> bool {
        assert_eq!((sample.payload, why), (&b"1"[..], NO_NAME));
        self.count.fetch_add(1, Ordering::Relaxed);
        self.takes
    }

    fn idle(&self) {}

    fn missed(&self, _topic: TopicId, _from: Timestamp, _until: Option<Timestamp>) {}
}

#[test]
fn a_record_without_a_name_is_counted_once() {
    for takes in [true, false] {
        let (counts, count) = (Arc::<Counts>::default(), Arc::<AtomicU64>::default());
        let deliver = Box::new(Unnamed { takes, count: Arc::clone(&count) });
        let place = Place::parse("cars/{car}").unwrap();
        let mut route = Route::new(place, TopicId(0), deliver, Arc::clone(&counts));
        let mut take = |key: Option<&[u8]>, payload: Option<&[u8]>| {
            let sample = payload.map(|payload| Sample::new(payload, None, None));
            route.take(sample, key, |_| None)
        };
        assert!(!take(None, Some(b"1")) && !take(Some(b"\xff"), Some(b"1")) && !take(Some(b""), Some(b"1")));
        assert!(take(Some(b"a"), Some(b"1")), "a record with a key");
        assert!(take(None, None), "a tombstone is no message");
        let number = |count: &AtomicU64| count.load(Ordering::Relaxed);
        assert_eq!((number(&count), number(&counts.empty)), (3, 1));
        let expected = if takes { (4, 0) } else { (1, 3) };
        assert_eq!((number(&counts.received), number(&counts.malformed)), expected);
        assert!(route.touched);
    }
}

#[test]
fn nothing_is_delivered_during_a_pause() {
    let incoming = incoming(Marks::new());
    let (begin, is_delivering) = (Instant::now(), AtomicBool::new(false));
    incoming.pause();
    std::thread::scope(|scope| {
        scope.spawn(|| {
            drop(incoming.routes_to_deliver());
            is_delivering.store(true, Ordering::SeqCst);
        });
        while !incoming.is_behind.load(Ordering::Relaxed) && begin.elapsed() < Duration::from_secs(30) {
            std::thread::sleep(Duration::from_millis(1));
        }
        // Subscriptions are made meanwhile.
        drop(incoming.routes_soon());
        assert!(incoming.is_behind.load(Ordering::Relaxed) && !is_delivering.load(Ordering::SeqCst));
        incoming.resume();
    });
    assert!(is_delivering.load(Ordering::SeqCst));
    // The end does not wait for the end of a pause.
    incoming.pause();
    incoming.close(Duration::ZERO);
    drop(incoming.routes_to_deliver());
}
