//! The subscriptions of a run to its topics, to progress markers and to `/clock`.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use rondel_decode::MessageType;
use rondel_decode::avro::{SchemaSource, unframe};
use rondel_decode::schema::Schema;
use rondel_event::{NameId, Timestamp, TopicId, TypeIndex};
use rondel_net::adapter::{Change, ChangeTime, Receiver, Sample};
use rondel_runtime::TopicNames;
use rondel_runtime::ros2::DIAGNOSTICS;

use crate::deployment::{Address, Binding, Deployment};
use crate::live::networks::Networks;
use crate::live::pipeline::{ClockReceiver, Pipeline};
use crate::live::reader::{Reader, Subscribed, subscribe};
use crate::recorder::Channel;
use crate::sinks::own::{Others, Own};

/// Subscribes the pipeline of a run to topics.
#[derive(Clone)]
pub(super) struct Subscriber {
    pub(super) pipeline: Arc<Pipeline>,
    /// Messages that the run itself has published.
    pub(super) own: Arc<Own>,
    /// The topics.
    pub(super) topics: Vec<SubscribedTopic>,
}

/// A topic as it is subscribed to.
#[derive(Clone)]
pub(super) struct SubscribedTopic {
    /// The number of the subscription.
    pub(super) slot: TopicId,
    /// The names of the topic, if its address has parameters.
    pub(super) names: Option<Arc<TopicNames>>,
    /// Whether diagnostics that the run publishes come back on it.
    pub(super) returns: bool,
}

/// Receives the messages of one subscription.
struct Port {
    pipeline: Arc<Pipeline>,
    names: Option<Arc<TopicNames>>,
    schemas: Option<AwaitedSchemas>,
}

/// Number of ids that [`AwaitedSchemas`] remembers: publishers of a topic have few schemas at a time.
const REMEMBERED: usize = 64;
/// Number that is no id of a schema.
const NO_ID: u64 = u64::MAX;

/// Schemas that messages name by their ids.
struct AwaitedSchemas {
    source: Arc<dyn SchemaSource>,
    /// Ids with a schema, each at its remainder, or [`NO_ID`]. The source, which has a lock, is not called for these.
    known: [AtomicU64; REMEMBERED],
}

impl AwaitedSchemas {
    fn new(source: &Arc<dyn SchemaSource>) -> AwaitedSchemas {
        AwaitedSchemas { source: Arc::clone(source), known: [const { AtomicU64::new(NO_ID) }; REMEMBERED] }
    }

    /// Waits for the schemas of samples, before the pipeline is locked: only this subscription waits.
    fn await_all(&self, samples: &[Sample<'_>]) {
        for (id, _) in samples.iter().filter_map(|sample| unframe(sample.payload)) {
            let known = &self.known[id as usize % REMEMBERED];
            // A fault is reported when the message is decoded, which requests nothing.
            if known.load(Ordering::Relaxed) != u64::from(id) && self.source.request(id).is_ok() {
                known.store(id.into(), Ordering::Relaxed);
            }
        }
    }
}

impl Receiver for Port {
    fn receive(&self, slot: TopicId, samples: &[Sample<'_>]) {
        if let Some(schemas) = &self.schemas {
            schemas.await_all(samples);
        }
        self.pipeline.receive(slot, samples);
    }

    fn refusal(&self, slot: TopicId) -> Option<Box<str>> {
        self.pipeline.refusal(slot)
    }

    fn receive_unnamed(&self, slot: TopicId, sample: Sample<'_>, why: &str) -> bool {
        self.pipeline.receive_unnamed(slot, sample, why)
    }

    fn idle(&self) {
        self.pipeline.idle();
    }

    fn missed(&self, slot: TopicId, from: Timestamp, until: Option<Timestamp>) {
        self.pipeline.missed(slot, from, until);
    }

    fn changed(&self, slot: TopicId, change: Change<'_>, time: ChangeTime) {
        self.pipeline.changed(slot, change, time);
    }

    fn wants_owner(&self, slot: TopicId) -> bool {
        self.pipeline.wants_owner(slot)
    }

    fn wants_names(&self, _: TopicId) -> bool {
        self.names.is_some()
    }

    fn number(&self, _: TopicId, name: &str) -> Option<NameId> {
        self.names.as_ref()?.number(name)
    }

    fn wants_types(&self, slot: TopicId) -> bool {
        self.pipeline.wants_types(slot)
    }

    fn further_type(&self, slot: TopicId, publisher: &str, schema: &Schema) -> Option<TypeIndex> {
        self.pipeline.further_type(slot, publisher, schema)
    }

    fn wants_idle(&self) -> bool {
        self.pipeline.wants_idle()
    }
}

impl Reader for Subscriber {
    fn subscribe(&self, networks: &Networks, topic: TopicId, binding: &Binding) -> Subscribed {
        let SubscribedTopic { slot, names, returns } =
            self.topics.get(topic.index()).ok_or("the topic has no number")?;
        let schemas = match binding.input.message_type.as_deref() {
            Some(MessageType::Registered(source)) => Some(AwaitedSchemas::new(source)),
            _ => None,
        };
        let receiver = Arc::new(Port { pipeline: Arc::clone(&self.pipeline), names: names.clone(), schemas });
        if *returns {
            let others = Others { receiver, own: Arc::clone(&self.own) };
            return subscribe(networks, *slot, binding, Arc::new(others));
        }
        subscribe(networks, *slot, binding, receiver)
    }

    fn resolve(&self, topic: TopicId, binding: &Binding) -> Result<(), String> {
        match &binding.input.message_type {
            Some(of) => self.pipeline.resolve_type(self.number(topic), of, Channel::of(binding)),
            None => Ok(()),
        }
    }

    fn number(&self, topic: TopicId) -> TopicId {
        self.topics.get(topic.index()).map_or(topic, |of| of.slot)
    }

    /// Subscribes to progress markers and to `/clock`.
    fn subscribe_further(&self, networks: &Networks, deployment: &Deployment) -> Vec<Subscribed> {
        let (pipeline, topic) = (|| Arc::clone(&self.pipeline), self.pipeline.progress());
        let progress = deployment.alignment.progress.iter();
        let progress = progress.map(|address| networks.subscribe(address, topic, pipeline()));
        // No topic of the session has this number.
        let after = TopicId(topic.0 + 1);
        let clock = deployment.clock.iter();
        let clock =
            clock.map(|address| networks.subscribe(address, after, Arc::new(ClockReceiver(pipeline()))));
        progress.chain(clock).collect()
    }
}

/// Whether diagnostics that the run publishes come back on this address.
pub(super) fn comes_back(deployment: &Deployment, address: &Address) -> bool {
    let mut sinks = deployment.sinks.iter().flatten();
    sinks.any(|sink| sink.ros2_type().as_deref() == Some(DIAGNOSTICS) && sink.meets(address))
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use std::sync::atomic::AtomicU32;

    use rondel_decode::avro::{AvroSchema, AvroType, SchemaFault};

    use super::*;

    /// A source that has the schema 1, and counts requests.
    #[derive(Debug, Default)]
    struct Source(AtomicU32);

    impl SchemaSource for Source {
        fn place(&self) -> &str {
            "http://registry"
        }

        fn schema(&self, _id: u32) -> Result<AvroType, SchemaFault> {
            Err(SchemaFault::Paused)
        }

        fn request(&self, id: u32) -> Result<AvroType, SchemaFault> {
            self.0.fetch_add(1, Ordering::Relaxed);
            let schema = br#"{"type": "record", "name": "A", "fields": []}"#;
            if id == 1 {
                Ok(AvroSchema::from_json(schema).unwrap().root())
            } else {
                Err(SchemaFault::Unknown)
            }
        }
    }

    #[test]
    fn known_schemas_are_requested_once_and_others_for_each_message() {
        let source = Arc::new(Source::default());
        let schemas = AwaitedSchemas::new(&(Arc::clone(&source) as Arc<dyn SchemaSource>));
        let requests = |payload: &[u8]| {
            schemas.await_all(&[Sample::new(payload, None, None)]);
            source.0.load(Ordering::Relaxed)
        };
        assert_eq!([requests(&[0, 0, 0, 0, 1]), requests(&[0, 0, 0, 0, 1, 5])], [1, 1]);
        assert_eq!([requests(&[0, 0, 0, 0, 9]), requests(&[0, 0, 0, 0, 9])], [2, 3]);
        assert_eq!(requests(b"{}"), 3, "it names no schema");
    }
}
