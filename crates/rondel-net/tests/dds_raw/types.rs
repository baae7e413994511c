//! Publishers of another type than the subscription.

use std::sync::{Arc, Mutex};

use rondel_decode::schema::{Library, Schema};
use rondel_event::{TopicId, TypeIndex};
use rondel_net::adapter::{Change, ChangeTime, Publisher as _, Receiver, Sample, Subscription as _};
use rondel_net::dds::{DeclaredTopic, Participant, PublisherSettings, RawType, TopicQos, TopicType};
use rondel_testkit::wait_until;

use super::{Bench, Item, LIMIT, Log, QUIET, TOPIC};

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
    let of = DeclaredTopic { topic_type: &raw, qos: &TopicQos::default(), schema: None };
    let undescribed = other.publisher_as("test/topic", of, PublisherSettings::default()).unwrap();
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

    fn changed(&self, topic: TopicId, change: Change<'_>, time: ChangeTime) {
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
        let schema = declared();
        let of = DeclaredTopic { topic_type: &raw, qos: &TopicQos::default(), schema: Some(&schema) };
        let receiver = Arc::clone(&typed);
        let subscription = bench.participant.subscribe_as("test/topic", of, TOPIC, receiver).unwrap();
        // A publisher without a description leaves the reader only the name, so that all publishers come to it.
        let other = Participant::open(&bench.settings).unwrap();
        let keyless = TopicType::Raw(RawType { name: Some("demo::Other".to_owned()), keyed: Some(false) });
        let of = DeclaredTopic { topic_type: &keyless, qos: &TopicQos::default(), schema: None };
        let make = || other.publisher_as("test/topic", of, PublisherSettings::default()).unwrap();
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
