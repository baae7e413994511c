//! Declarations of topics: other types, patterns of names, mistakes.

use std::sync::{Arc, Mutex};

use rondel_net::adapter::{Publisher as _, Subscription as _};
use rondel_net::dds::{
    DeclareError, DeclaredTopic, Extensibility, OpenError, Participant, Settings, StringType, TopicQos,
    TopicType,
};
use rondel_testkit::wait_until;

use crate::{BATCHING, Counter, LIMIT, TOPIC, publish_numbers, settings};

/// CycloneDDS itself reports neither of them.
#[test]
fn a_publisher_that_cannot_be_received_is_reported() {
    let settings = settings();
    let (a, b) = (Participant::open(&settings).unwrap(), Participant::open(&settings).unwrap());
    let counter = Arc::new(Counter::default());
    let subscription = a.subscribe("test/x", &StringType::default(), TOPIC, Arc::clone(&counter)).unwrap();
    let same = b.publisher("test/x", &StringType::default(), BATCHING).unwrap();
    let other_name = StringType { member: "text".into(), name: "Other".into(), ..StringType::default() };
    let other = b.publisher("test/x", &other_name, BATCHING).unwrap();
    wait_until("the publisher is reported as incompatible", || subscription.problems().incompatible == 1);
    let other_kind = StringType { extensibility: Extensibility::Appendable, ..StringType::default() };
    let _other = Participant::open(&settings).unwrap().publisher("test/x", &other_kind, BATCHING).unwrap();
    wait_until("the publisher is reported as incompatible", || subscription.problems().incompatible == 2);
    assert!(same.is_matched() && !other.is_matched());
    publish_numbers(&same, 0..10);
    counter.assert_all(10);
}

/// Topics published before and after the subscription, one with another type, one with another name.
#[test]
fn topics_matching_a_pattern_are_discovered() {
    let settings = settings();
    let (a, b) = (Participant::open(&settings).unwrap(), Participant::open(&settings).unwrap());
    let publisher = |name: &str, t: &StringType| b.publisher(name, t, BATCHING).unwrap();
    let plain = StringType::default();
    let before = publisher("test/a", &plain);
    let (topic_type, qos) = (TopicType::Text(plain.clone()), TopicQos::default());
    let of = DeclaredTopic { topic_type: &topic_type, qos: &qos, schema: None };
    let (received_names, counter) = (Arc::new(Mutex::new(Vec::new())), Arc::new(Counter::default()));
    let (names, to) = (Arc::clone(&received_names), Arc::clone(&counter));
    let receiver = move |name: &str| {
        names.lock().unwrap().push(name.to_owned());
        (name != "test/not_meant").then(|| (Arc::clone(&to), None))
    };
    let subscription = a.subscribe_matching("test/*", of, TOPIC, receiver).unwrap();
    let not_meant = publisher("test/not_meant", &plain);
    let other = publisher("other", &plain);
    let typed = publisher("test/typed", &StringType { name: "Other".into(), ..StringType::default() });
    assert!(before.wait_matched(LIMIT));
    publish_numbers(&before, 0..10);
    // Waits here, since each topic has a thread: the order between topics is arbitrary.
    counter.assert_all(10);
    let after = publisher("test/b", &plain);
    assert!(after.wait_matched(LIMIT));
    wait_until("the topic of another type is found", || subscription.problems().incompatible == 1);
    publish_numbers(&after, 10..20);
    assert!(!other.is_matched() && !typed.is_matched() && !not_meant.is_matched());
    counter.assert_all(20);
    assert!(subscription.close(LIMIT));
    let mut received_names = received_names.lock().unwrap().clone();
    received_names.sort();
    assert_eq!(received_names, ["test/a", "test/b", "test/not_meant", "test/typed"]);
    let bad = |name: &str| {
        let select = |_: &str| Some((Arc::new(Counter::default()), None));
        a.subscribe_matching(name, of, TOPIC, select).map(drop)
    };
    assert!(matches!(bad("a b*"), Err(DeclareError::Name(_))));
}

#[test]
fn invalid_settings_and_names_are_errors() {
    let open = |s: Settings| Participant::open(&s).map(drop);
    assert!(matches!(open(Settings { domain: 231, ..settings() }), Err(OpenError::Domain(231))));
    let nowhere = Settings { interface: Some("nowhere0".into()), ..settings() };
    let refused = open(nowhere).unwrap_err().to_string();
    assert!(refused.contains("on interface nowhere0: "), "{refused}");
    let odd = Settings { interface: Some("l\0o".into()), ..settings() };
    assert!(matches!(open(odd), Err(OpenError::Network { .. })));

    let a = Participant::open(&settings()).unwrap();
    let publisher = |name: &str, t: StringType| a.publisher(name, &t, BATCHING).map(drop);
    for bad in ["", "a\0b"] {
        assert!(matches!(publisher(bad, StringType::default()), Err(DeclareError::Name(_))), "{bad:?}");
    }
    let named = |name: &str| StringType { name: name.into(), ..StringType::default() };
    assert!(matches!(publisher("a", named("")), Err(DeclareError::Name(_))));
    let member = |member: &str| StringType { member: member.into(), ..StringType::default() };
    assert!(matches!(publisher("a", member("")), Err(DeclareError::Name(_))));
}
