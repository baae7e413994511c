//! Owners of topics, and publishers that are not alive.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use rondel_event::{Timestamp, TopicId};
use rondel_net::adapter::{self, Publisher as _, Receiver, Sample, Subscription as _};
use rondel_net::dds::{
    DeclaredTopic, Liveliness, Ownership, Participant, PublisherSettings, StringType, TopicQos, TopicType,
};
use rondel_testkit::wait_until;

use crate::{BATCHING, LIMIT, TOPIC, publish_numbers, settings};

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
    let subscription = a.subscribe_as("test/owner", of, TOPIC, Arc::clone(&owners)).unwrap();
    let publisher = |strength| {
        let qos = TopicQos { strength: Some(strength), ..exclusive.clone() };
        let of = DeclaredTopic { topic_type: &text, qos: &qos, schema: None };
        let publisher = b.publisher_as("test/owner", of, PublisherSettings::default()).unwrap();
        assert!(publisher.wait_matched(LIMIT));
        publisher
    };
    let seen = || owners.0.lock().unwrap().clone();
    let known = |count| wait_until("the publishers are counted", || subscription.publishers() == Some(count));
    known(0);
    let weak = publisher(1);
    known(1);
    wait_until("the weaker one owns the topic", || {
        weak.publish(b"1").unwrap();
        seen().len() == 1
    });
    let strong = publisher(2);
    known(2);
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
    known(0);
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
