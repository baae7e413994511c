//! Topics of any type on DDS, published by the Python package `cyclonedds`.

#![cfg(feature = "dds")]
#![allow(clippy::unwrap_used, clippy::panic)] // the helpers are tests as well

mod described;
#[path = "../peer/mod.rs"]
mod peer;
mod samples;
mod types;

use std::path::PathBuf;
use std::sync::{Arc, Condvar, Mutex};
use std::time::Duration;

use peer::{Peer, python};
use rondel_decode::schema::Schema;
use rondel_event::TopicId;
use rondel_net::adapter::{Change, ChangeTime, Instance, Receiver, Sample};
use rondel_net::dds::{DeclaredTopic, Participant, RawType, Settings, Subscription, TopicQos, TopicType};

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
    Owner(Option<i32>, bool),
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

    fn wants_owner(&self, _: TopicId) -> bool {
        true
    }

    fn changed(&self, topic: TopicId, change: Change<'_>, _: ChangeTime) {
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
            Change::Owner(instance, publisher) => Item::Owner(id(instance), publisher.is_some()),
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
        let domain = rondel_testkit::dds_domain();
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
        let of = DeclaredTopic { topic_type: &raw, qos, schema: None };
        let made = self.participant.subscribe_as("test/topic", of, TOPIC, Arc::clone(&log));
        (made.unwrap(), log)
    }

    fn subscribe_of(&self, schema: &Schema) -> (Subscription, Arc<Log>) {
        let log = Arc::new(Log::default());
        let raw = TopicType::Raw(RawType { name: Some("demo::Other".to_owned()), keyed: None });
        let of = DeclaredTopic { topic_type: &raw, qos: &TopicQos::default(), schema: Some(schema) };
        let made = self.participant.subscribe_as("test/topic", of, TOPIC, Arc::clone(&log));
        (made.unwrap(), log)
    }
}
