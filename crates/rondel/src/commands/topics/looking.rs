//! A look at networks: messages, publishers and types, until its time is over.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, PoisonError, mpsc};
use std::time::{Duration, Instant};

use rondel_decode::MessageType;
use rondel_net::adapter::now;
use rondel_net::observe::{Observation, Observed, Observer, matches_dds, ros2_on_dds};
use rondel_net::ros2::keys::{DataKey, subscription_key};
use rondel_net::{dds, ros2};
use rondel_runtime::survey::{self, Survey};

use crate::deployment::Address;
use crate::live::networks::Networks;
use crate::live::pipeline::Stop;
use crate::schemas::Schemas;
use crate::warn;

/// Time without a discovery on DDS after which its topics are subscribed to.
const QUIET: Duration = Duration::from_millis(200);
/// Interval of discovering publishers on DDS.
const AGAIN: Duration = Duration::from_millis(200);
/// Time limit for the description of a type.
const DESCRIBED: Duration = Duration::from_secs(1);
/// Time limit for the graph of ROS 2.
const GRAPH: Duration = Duration::from_secs(1);

/// A look at networks.
pub(super) struct Looking<'n> {
    networks: &'n Networks,
    survey: Arc<Mutex<Survey>>,
    /// Definitions of message types, if the fields of messages are surveyed.
    schemas: Option<Arc<Mutex<Schemas>>>,
    kept: Vec<Observation>,
    /// The patterns of DDS.
    dds: Vec<String>,
    /// The publishers on DDS that were there at some time.
    discovered: BTreeMap<[u8; 16], dds::DiscoveredEndpoint>,
    /// The topics of DDS that were subscribed to, or cannot be.
    subscribed: BTreeSet<String>,
    /// Whether nodes of ROS 2 over Zenoh are queried for types.
    queries_types: bool,
    /// Addresses whose types were queried.
    queried: BTreeSet<String>,
}

impl<'n> Looking<'n> {
    /// Creates a look at these addresses; `schemas` are definitions of message types, if fields are surveyed.
    pub(super) fn new(
        networks: &'n Networks,
        survey: Arc<Mutex<Survey>>,
        schemas: Option<Arc<Mutex<Schemas>>>,
        addresses: &[Address],
    ) -> Looking<'n> {
        Looking {
            networks,
            survey,
            queries_types: schemas.is_some() && addresses.iter().any(|a| matches!(a, Address::Zenoh(..))),
            schemas,
            kept: Vec::new(),
            dds: Vec::new(),
            discovered: BTreeMap::new(),
            subscribed: BTreeSet::new(),
            queried: BTreeSet::new(),
        }
    }

    /// Discovers topics and types until then, or until `stopped`.
    pub(super) fn look_until(&mut self, until: Instant, stopped: &mpsc::Receiver<Stop>) {
        loop {
            self.discover(until);
            self.query_types(until);
            let left = until.saturating_duration_since(Instant::now());
            // Publishers on DDS and topics without a type are polled; otherwise only the end is awaited, by time or by a
            // signal.
            let wait = if self.dds.is_empty() && !self.queries_types { left } else { left.min(AGAIN) };
            if stopped.recv_timeout(wait) != Err(mpsc::RecvTimeoutError::Timeout) || Instant::now() >= until {
                break;
            }
        }
    }

    /// Counts messages; `address` returns the address of a topic.
    fn observer(&self, address: impl Fn(&str) -> String + Send + Sync + 'static) -> Observer {
        let (survey, schemas) = (Arc::clone(&self.survey), self.schemas.clone());
        Arc::new(move |observed: Observed<'_>| {
            let address = address(observed.topic);
            let mut survey = survey.lock().unwrap_or_else(PoisonError::into_inner);
            if let Some(schemas) = &schemas
                && let Some(topic) = survey.topic(&address)
                && topic.messages == 0
                && let Some(key) = DataKey::parse(observed.topic)
            {
                describe(topic, schemas, &key.message_type.to_string());
            }
            let publisher = observed.origin.map(|origin| origin.publisher);
            survey.message(&address, now(), observed.payload, publisher);
        })
    }

    /// Counts the messages of an address.
    ///
    /// # Errors
    /// The reason why it cannot be subscribed to.
    pub(super) fn observe(&mut self, address: &Address) -> Result<(), String> {
        match address {
            Address::Zenoh(key, _) => {
                self.kept.push(self.networks.observe_zenoh(key, &self.observer(zenoh_address))?)
            }
            Address::Mqtt(filter, ..) => {
                let observer = self.observer(|topic| format!("mqtt:{topic}"));
                self.kept.push(self.networks.observe_mqtt(filter, &observer)?);
            }
            Address::Kafka(pattern, _) => {
                let observer = self.observer(|topic| format!("kafka:{topic}"));
                self.kept.push(self.networks.observe_kafka(pattern, &observer)?);
            }
            Address::Dds(pattern, ..) => self.dds.push(pattern.clone()),
            Address::Ros2(..) | Address::Stdout => {}
        }
        Ok(())
    }

    /// Subscribes to newly discovered topics on DDS.
    fn discover(&mut self, until: Instant) {
        if self.dds.is_empty() {
            return;
        }
        let limit = until.saturating_duration_since(Instant::now()).min(QUIET);
        let listed = self.networks.dds_endpoints(QUIET, limit);
        let mut listed =
            listed.map_err(|error| warn(&format!("cannot list DDS: {error}"))).unwrap_or_default();
        listed.retain(|end| {
            let is_new = !self.discovered.contains_key(&end.id);
            is_new && end.publishes && self.dds.iter().any(|pattern| matches_dds(pattern, &end.topic))
        });
        for end in &listed {
            if !self.subscribed.contains(&end.topic) {
                self.describe_dds(end, until);
            }
        }
        let observer = self.observer(|topic| format!("dds:{topic}"));
        let (observation, failed) = self.networks.observe_dds(&listed, &mut self.subscribed, &observer);
        self.kept.push(observation);
        self.discovered.extend(listed.into_iter().map(|end| (end.id, end)));
        failed.iter().for_each(|(topic, reason)| warn(&format!("cannot read dds:{topic}: {reason}")));
    }

    /// Queries nodes of ROS 2 over Zenoh for the unknown types of their topics.
    fn query_types(&mut self, until: Instant) {
        if !self.queries_types {
            return;
        }
        let open: Vec<String> = {
            let mut survey = self.survey.lock().unwrap_or_else(PoisonError::into_inner);
            let all: Vec<String> = survey.topics().map(|(address, _)| address.to_owned()).collect();
            let is_open = |address: &String| survey.topic(address).is_some_and(|topic| !topic.is_described());
            all.into_iter().filter(is_open).collect()
        };
        for address in open {
            let Some(key) = address.strip_prefix("zenoh:").and_then(DataKey::parse) else { continue };
            let limit = until.saturating_duration_since(Instant::now()).min(DESCRIBED);
            if limit.is_zero() || !self.queried.insert(address.clone()) {
                continue;
            }
            let Ok(Some(schema)) = self.networks.ros2_type(&key, limit) else { continue };
            let mut survey = self.survey.lock().unwrap_or_else(PoisonError::into_inner);
            if let Some(topic) = survey.topic(&address) {
                topic.describe(Arc::new(MessageType::Cdr(schema)));
            }
        }
    }

    /// Sets the type of a topic on DDS: from a known definition, otherwise from the description of its publisher.
    fn describe_dds(&self, end: &dds::DiscoveredEndpoint, until: Instant) {
        let Some(schemas) = &self.schemas else { return };
        let name = ros2_on_dds(&end.topic, &end.type_name)
            .map_or_else(|| end.type_name.clone(), |(_, name)| name.to_string());
        let address = format!("dds:{}", end.topic);
        {
            let mut survey = self.survey.lock().unwrap_or_else(PoisonError::into_inner);
            let Some(topic) = survey.topic(&address) else { return };
            describe(topic, schemas, &name);
            if topic.is_described() || !end.is_described {
                return;
            }
        }
        let raw = dds::RawType { name: Some(end.type_name.clone()), keyed: Some(end.keyed) };
        let of = Address::Dds(end.topic.clone(), dds::TopicType::Raw(raw), dds::TopicQos::default());
        let limit = until.saturating_duration_since(Instant::now()).min(DESCRIBED);
        let Ok(Some(dds::DiscoveredType { schema: Ok(schema), .. })) =
            self.networks.discovered_type(&of, limit, |_| true)
        else {
            return;
        };
        let mut survey = self.survey.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(topic) = survey.topic(&address) {
            topic.describe(Arc::new(MessageType::Cdr(schema)));
        }
    }

    /// Adds publishers, types and quality of service announced by the networks.
    pub(super) fn describe(&self) {
        let endpoints: Vec<_> = self.discovered.values().collect();
        let settings = ros2::Settings::from_environment(|name| std::env::var(name).ok());
        let domain = settings.map_or(0, |settings| settings.domain);
        let graph = self.networks.ros2_graph(domain, GRAPH).unwrap_or_default();
        let mut survey = self.survey.lock().unwrap_or_else(PoisonError::into_inner);
        for end in &endpoints {
            let Some(topic) = survey.topic(&format!("dds:{}", end.topic)) else { continue };
            let of_topic = endpoints.iter().filter(|other| other.topic == end.topic);
            topic.publishers = Some(of_topic.count());
            let qos = format!("{:?}, {:?}", end.qos.reliability, end.qos.durability);
            topic.qos = Some(in_words(&qos));
            let ros2 = ros2_on_dds(&end.topic, &end.type_name);
            topic.name = ros2.as_ref().map(|(name, _)| name.to_string());
            topic.message_type = Some(ros2.map_or(end.type_name.clone(), |(_, name)| name.to_string()));
        }
        for (name, ends) in graph.topics() {
            for (_, end) in &ends.publishers {
                let address = format!("zenoh:{}", subscription_key(domain, name, &end.message_type));
                let Some(topic) = survey.topic(&address) else { continue };
                let alike =
                    ends.publishers.iter().filter(|(_, other)| other.message_type == end.message_type);
                topic.publishers = Some(alike.count());
                topic.qos = Some(end.qos.to_string());
            }
        }
        let addresses: Vec<String> = survey.topics().map(|(address, _)| address.to_owned()).collect();
        for address in addresses {
            if let Some(key) = address.strip_prefix("zenoh:").and_then(DataKey::parse)
                && let Some(topic) = survey.topic(&address)
            {
                topic.name = Some(key.topic.to_string());
                topic.message_type = Some(key.message_type.to_string());
            }
        }
    }
}

/// Sets the type of a topic if a definition of this name is known.
fn describe(topic: &mut survey::Topic, schemas: &Mutex<Schemas>, name: &str) {
    let schema = schemas.lock().unwrap_or_else(PoisonError::into_inner).schema(name);
    if let Ok(schema) = schema {
        topic.describe(Arc::new(MessageType::Cdr(schema)));
    }
}

/// Returns the address of a key; that of a topic of ROS 2 holds for any hash of its type.
fn zenoh_address(key: &str) -> String {
    match DataKey::parse(key) {
        Some(of) => format!("zenoh:{}", subscription_key(of.domain, &of.topic, &of.message_type)),
        None => format!("zenoh:{key}"),
    }
}

/// `BestEffort` as `best_effort`.
fn in_words(text: &str) -> String {
    let mut words = String::new();
    for letter in text.chars() {
        if letter.is_ascii_uppercase() && words.ends_with(|c: char| c.is_ascii_lowercase()) {
            words.push('_');
        }
        words.push(letter.to_ascii_lowercase());
    }
    words
}
