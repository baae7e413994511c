//! Described types and endpoints, as others discover them.

use std::sync::Arc;
use std::time::Duration;

use rondel_decode::schema::{Library, Schema};
use rondel_net::adapter::{PublishError, Publisher as _, Subscription as _};
use rondel_net::dds::{DeclaredTopic, Participant, PublisherSettings, RawType, TopicQos, TopicType};

use super::peer::Peer;
use super::{Bench, Item, LIMIT, Log, QUIET, TOPIC};

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
fn a_discovered_type_equals_its_definition() {
    let Some(bench) = Bench::new("a_discovered_type_equals_its_definition") else { return };
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
    let mut reader = Peer::start(&bench.python, "dds_discover.py", &["test/topic", "--domain", &domain]);
    let schema = defined("demo::Pose");
    let raw = TopicType::Raw(RawType { name: Some("demo::Pose".to_owned()), keyed: None });
    let kept =
        TopicQos { durability: Some(rondel_net::dds::Durability::TransientLocal), ..TopicQos::default() };
    let of = DeclaredTopic { topic_type: &raw, qos: &kept, schema: Some(&schema) };
    let publisher = bench.participant.publisher_as("test/topic", of, PublisherSettings::default()).unwrap();
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
    let of = DeclaredTopic { topic_type: &raw, qos: &TopicQos::default(), schema: Some(&schema) };
    let publisher = a.publisher_as("test/topic", of, PublisherSettings::default()).unwrap();
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
    let of = DeclaredTopic { topic_type: &any, qos: &TopicQos::default(), schema: None };
    let subscription = a.subscribe_as("test/topic", of, TOPIC, Arc::clone(&log)).unwrap();
    let nameless = b.publisher_as("test/topic", of, PublisherSettings::default());
    assert!(nameless.is_err());
    let opaque =
        |keyed| TopicType::Raw(RawType { name: Some("demo::Opaque".to_owned()), keyed: Some(keyed) });
    let publisher = |topic: &str, keyed, schema: Option<&Schema>| {
        let settings = PublisherSettings { batching: true };
        let of = DeclaredTopic { topic_type: &opaque(keyed), qos: &TopicQos::default(), schema };
        b.publisher_as(topic, of, settings).unwrap()
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
