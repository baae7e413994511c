//! Targets of the topics of a recording: address, type and quality of service.

use std::borrow::Cow;

use rondel_decode::lines::without_network;
use rondel_decode::schema::Schema;
use rondel_decode::{Encoding as PayloadEncoding, MessageType};
use rondel_event::AddressPattern;
use rondel_net::dds::{self, RawType, TopicType};
use rondel_net::mqtt;
use rondel_net::ros2::{self, QosOverrides, TypeHash};
use rondel_recording::RecordedTopic;
use rondel_runtime::SessionPlan;

use crate::commands::selecting::is_named;
use crate::deployment::{Address, Binding, Encoding, dds_name, has_key};
use crate::recorder::ADDRESS;
use crate::schemas::Schemas;
use crate::schemas::offered::{PROFILES, TYPE_HASH, offered};
use crate::schemas::recorded_types::{encoding, message_type, type_name};

/// The names of the networks.
const NETWORKS: [&str; 5] = ["zenoh", "dds", "mqtt", "kafka", "ros2"];

/// Target of a topic: the address to publish on.
#[derive(Clone, Debug)]
pub(super) struct Target {
    /// The address, with type and quality of service.
    pub(super) address: Address,
    /// The definition of the type, where the network uses it.
    pub(super) schema: Option<Schema>,
    /// Warnings to show.
    pub(super) warnings: Vec<String>,
}

/// A network, and the prefix of topic names there.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Place {
    network: &'static str,
    prefix: String,
}

impl Place {
    /// Reads `NETWORK` or `NETWORK:PREFIX`.
    ///
    /// # Errors
    /// The mistake, in words.
    pub(super) fn parse(text: &str) -> Result<Place, String> {
        let (network, prefix) = text.split_once(':').unwrap_or((text, ""));
        let known = NETWORKS.into_iter().find(|known| *known == network);
        let Some(network) = known else {
            // The same error as for an address.
            let reason = Address::parse(&format!("{network}:x")).err().filter(|_| !network.contains('+'));
            return Err(reason.unwrap_or_else(|| {
                format!("write NETWORK or NETWORK:PREFIX; the networks are: {}", NETWORKS.join(", "))
            }));
        };
        let prefix = prefix.trim_end_matches('/').to_owned();
        let place = Place { network, prefix };
        place.address("x", false)?;
        Ok(place)
    }

    /// The address of a topic of this name; one that `is_own` has it from this network.
    fn address(&self, name: &str, is_own: bool) -> Result<Address, String> {
        let bare = name.strip_prefix('/').unwrap_or(name);
        let Place { network, prefix } = self;
        let text = match (*network, prefix.as_str()) {
            ("ros2", "") => format!("ros2:/{bare}"),
            // A slash separates topic and key there.
            ("kafka", "") if is_own => format!("kafka:{name}"),
            ("kafka", "") => format!("kafka:{}", bare.replace('/', ".")),
            ("kafka", prefix) => format!("kafka:{prefix}.{}", bare.replace('/', ".")),
            (_, "") if is_own => format!("{network}:{name}"),
            (_, "") => format!("{network}:{bare}"),
            _ => format!("{network}:{prefix}/{bare}"),
        };
        Address::parse_single(&text)
    }
}

/// A topic of a recording with an address of its own, from `TOPIC=ADDRESS`.
#[derive(Clone, Debug)]
pub(super) struct Mapped {
    /// The name in the recording.
    pub(super) topic: String,
    address: Address,
    has_encoding: bool,
}

impl Mapped {
    /// Reads `TOPIC=ADDRESS`.
    ///
    /// # Errors
    /// The mistake, in words.
    pub(super) fn parse(text: &str) -> Result<Mapped, String> {
        let Some((topic, address)) = text.split_once('=').filter(|(topic, _)| !topic.is_empty()) else {
            return Err("write TOPIC=ADDRESS, such as /odom=zenoh:vehicle/odom".to_owned());
        };
        let has_encoding = address.split(':').next().is_some_and(|network| network.contains('+'));
        Ok(Mapped { topic: topic.to_owned(), address: Address::parse_single(address)?, has_encoding })
    }
}

/// Destination of topics without an address of their own.
pub(super) enum Destination<'d> {
    /// A network or a part of it.
    Below(Place),
    /// The sources of a deployment.
    Deployment(&'d SessionPlan, &'d [Binding]),
    /// The recorded addresses.
    Recorded,
}

/// Search for the targets of topics.
pub(super) struct Targets<'d> {
    /// Destination of topics.
    pub(super) destination: Destination<'d>,
    /// Topics with an address of their own.
    pub(super) mapped: &'d [Mapped],
    /// The definitions of types that the user names.
    pub(super) schemas: &'d Schemas,
}

impl Targets<'_> {
    /// Returns where a topic is published; `None` if the deployment does not have it.
    ///
    /// # Errors
    /// The reason why it cannot be published.
    pub(super) fn target(&self, topic: &RecordedTopic) -> Result<Option<Target>, String> {
        let noted = topic.metadata.iter().find(|(name, _)| name == ADDRESS).map(|(_, text)| text.as_str());
        let name = without_network(&topic.name).unwrap_or(&topic.name);
        // The topic written by `rondel tap` may be its address.
        let own = noted.or((name.len() < topic.name.len()).then_some(topic.name.as_str()));
        let own_network = own.and_then(|own| own.split([':', '+']).next()).unwrap_or("");
        if let Some(mapped) = self.mapped.iter().find(|mapped| is_same(&mapped.topic, &topic.name)) {
            return self.typed(mapped.address.clone(), mapped.has_encoding, topic).map(Some);
        }
        match &self.destination {
            Destination::Below(place) => {
                let is_own = own_network == place.network;
                // A topic of ROS 2 on DDS was recorded by its name there.
                let on_dds = format!("rt{name}");
                let is_renamed = is_own && place.network == "dds" && name.starts_with('/');
                let address = place.address(if is_renamed { &on_dds } else { name }, is_own)?;
                self.typed(address, false, topic).map(Some)
            }
            Destination::Deployment(plan, sources) => {
                let found = plan.topic_in_recording(&topic.name);
                let Some(binding) = found.and_then(|found| sources.get(found.index())) else {
                    return Ok(None);
                };
                let declared = found.and_then(|found| plan.specification().spec.topics.get(found.index()));
                let recorded = declared.and_then(|topic| pattern(&topic.address));
                let address = of_topic(&binding.address, &renamed(&binding.address, recorded, name))?;
                self.fits(binding, topic)?;
                self.typed(address, true, topic).map(Some)
            }
            Destination::Recorded => {
                let own = own.ok_or(
                    "the recording does not say on which network it was: name one with --to, such as --to zenoh",
                )?;
                let address = Address::parse(own)
                    .or_else(|error| own.strip_prefix("dds:").map(of_dds).ok_or(error))
                    .map_err(|error| format!("its recorded address {own} cannot be used: {error}"))?;
                self.typed(of_topic(&address, name)?, own.contains('+'), topic).map(Some)
            }
        }
    }

    /// Returns the target of a topic at an address.
    ///
    /// # Errors
    /// The reason why it cannot be published.
    pub(super) fn at(&self, address: &Address, topic: &RecordedTopic) -> Result<Target, String> {
        self.typed(address.clone(), true, topic)
    }

    /// Checks that a deployment reads messages in the recorded encoding and type.
    fn fits(&self, binding: &Binding, topic: &RecordedTopic) -> Result<(), String> {
        let declared = binding.input.message_type.as_deref().map(|found| match found {
            MessageType::Cdr(schema) => schema.name().to_owned(),
            MessageType::Protobuf(of) => of.name().to_owned(),
            MessageType::Flatbuffers(of) => of.name().to_owned(),
            MessageType::Avro(of) => of.name().to_owned(),
            _ => String::new(),
        });
        match (declared, &topic.schema) {
            (Some(declared), Some(schema)) if type_name(&declared) != type_name(&schema.name) => {
                Err(format!("they are {}, and the deployment reads {declared}", schema.name))
            }
            _ => Ok(()),
        }
    }

    /// Completes an address with the type and the quality of service that were recorded.
    fn typed(&self, address: Address, has_encoding: bool, topic: &RecordedTopic) -> Result<Target, String> {
        let known = encoding(topic).ok_or_else(|| match topic.encoding.as_str() {
            "" => "the recording does not say how they are encoded".to_owned(),
            other => format!("the encoding '{other}' is not known"),
        })?;
        let is_wrapped = address.encoding() == Encoding::CdrString && known == PayloadEncoding::Json;
        // On DDS and ROS 2 messages in CDR have their type with them, whatever is read there.
        let is_typed = matches!(address, Address::Dds(..) | Address::Ros2(..));
        if is_typed && topic.schema.as_ref().is_some_and(|schema| schema.encoding == "ros1msg") {
            return Err("messages of ROS 1 are published as JSON, which nodes of ROS 2 do not read: replay them --to \
                        zenoh or mqtt, or convert the recording with `rosbags-convert`"
                .to_owned());
        }
        let is_other = address.encoding() != Encoding::Of(known) && !is_wrapped;
        if has_encoding && is_other && !(is_typed && known == PayloadEncoding::Cdr) {
            let (own, other) = (known.name(), address.encoding().name());
            return Err(format!("they are {own}, and {address} is for {other}"));
        }
        let (qos, mut warnings) = match profiles(topic) {
            Ok(qos) => (qos, Vec::new()),
            Err(warning) => (QosOverrides::default(), vec![warning]),
        };
        let mut schema = None;
        if is_typed && known == PayloadEncoding::Cdr {
            match self.schema(topic) {
                Ok(found) => schema = Some(found),
                Err(reason) => warnings.push(reason),
            }
        }
        let name = topic.schema.as_ref().map(|schema| schema.name.as_str()).filter(|name| !name.is_empty());
        let untyped = || {
            "the recording does not say their type, by which subscribers find them: add it with a recorder that \
             writes schemas, or replay them --to zenoh or mqtt"
                .to_owned()
        };
        let address = match address {
            Address::Zenoh(..) | Address::Mqtt(..) | Address::Kafka(..) if is_wrapped => address,
            Address::Zenoh(key, _) => Address::Zenoh(key, Encoding::Of(known)),
            Address::Mqtt(name, settings, _) => Address::Mqtt(name, settings, Encoding::Of(known)),
            Address::Kafka(place, _) => Address::Kafka(place, Encoding::Of(known)),
            Address::Dds(topic_name, topic_type, own) => {
                let qos = on_dds(qos, own);
                match known {
                    PayloadEncoding::Json => {
                        // A deployment may name another type of text.
                        let text = if topic_type.is_raw() { TopicType::default() } else { topic_type };
                        Address::Dds(topic_name, text, qos)
                    }
                    PayloadEncoding::Cdr => {
                        let name = name.ok_or_else(untyped)?;
                        let keyed = Some(schema.as_ref().is_some_and(has_key));
                        let name = Some(dds_name(name, schema.as_ref()));
                        Address::Dds(topic_name, TopicType::Raw(RawType { name, keyed }), qos)
                    }
                    other => return Err(not_carried(other, "DDS")),
                }
            }
            Address::Ros2(own, _) => {
                let qos = with(&own.qos, &qos);
                match known {
                    PayloadEncoding::Json => {
                        let own = own.of_text().map_err(|error| error.to_string())?;
                        Address::Ros2(Box::new(ros2::Topic { qos, ..own }), Encoding::CdrString)
                    }
                    PayloadEncoding::Cdr => {
                        let name = name.ok_or_else(untyped)?;
                        let ros_name = schema.as_ref().and_then(Schema::ros_name);
                        let parsed = ros2::MessageType::parse(ros_name.as_deref().unwrap_or(name));
                        let parsed = parsed.map_err(|error| error.to_string())?;
                        let hash = hash(topic, schema.as_ref());
                        let own = own.typed(parsed, hash);
                        Address::Ros2(Box::new(ros2::Topic { qos, ..own }), Encoding::CDR)
                    }
                    other => return Err(not_carried(other, "ROS 2")),
                }
            }
            Address::Stdout => return Err("stdout is no network".to_owned()),
        };
        Ok(Target { address, schema, warnings })
    }

    /// Definition of the type of messages in CDR: from the recording, otherwise a known one.
    fn schema(&self, topic: &RecordedTopic) -> Result<Schema, String> {
        let Some(recorded) = &topic.schema else {
            return Err("the recording has no definition of their type".to_owned());
        };
        let own = message_type(recorded, PayloadEncoding::Cdr);
        let found = own.or_else(|reason| {
            self.schemas.message_type(&recorded.name, PayloadEncoding::Cdr).map_err(|_| reason)
        });
        match found {
            Ok(MessageType::Cdr(schema)) => Ok(schema),
            Ok(_) => Err(format!("{} is no type of CDR", recorded.name)),
            Err(reason) => Err(format!("{reason}; they are published with the name of their type only")),
        }
    }
}

/// Whether two names are of one topic: a leading slash does not count.
pub(super) fn is_same(one: &str, other: &str) -> bool {
    is_named(one, other) && !one.contains(['*', '+', '#'])
}

fn of_dds(pattern: &str) -> Address {
    Address::Dds(pattern.to_owned(), TopicType::default(), dds::TopicQos::default())
}

/// Returns the pattern of an address in a specification, which may have its network; `None` if it has no parameters.
fn pattern(address: &str) -> Option<AddressPattern> {
    AddressPattern::parse(without_network(address).unwrap_or(address)).ok().flatten()
}

/// Returns the name on an address with parameters: that of `fleet/7`, which was recorded of `fleet/{robot}`, on
/// `line/{robot}` is `line/7`. A name that matches the address, or gives no parameters, stays.
fn renamed<'n>(address: &Address, recorded: Option<AddressPattern>, name: &'n str) -> Cow<'n, str> {
    let (Some(own), Some(recorded)) = (address.pattern(), recorded) else { return Cow::Borrowed(name) };
    let bare = name.strip_prefix('/').unwrap_or(name);
    let plain = own.clone().without_slash();
    // A topic of ROS 2 on DDS was recorded by its name in ROS 2.
    if plain.captures(bare).is_some() || plain.captures(&format!("rt/{bare}")).is_some() {
        return Cow::Borrowed(name);
    }
    let recorded = recorded.without_slash();
    let Some(texts) = recorded.captures(bare) else { return Cow::Borrowed(name) };
    let text = |parameter: &str| {
        let mut given = recorded.parameters().zip(&texts);
        given.find(|(given, _)| *given == parameter).map(|(_, text)| *text)
    };
    own.filled(text).map_or(Cow::Borrowed(name), Cow::Owned)
}

/// Address of one topic that matches an address, which may be a pattern or have parameters.
fn of_topic(address: &Address, name: &str) -> Result<Address, String> {
    Ok(match &*address.subscribed() {
        Address::Zenoh(key, encoding) if key.contains(['*', '$']) => {
            let Address::Zenoh(key, _) =
                Address::parse_single(&format!("zenoh:{}", name.trim_start_matches('/')))?
            else {
                return Err(format!("'{name}' is no key"));
            };
            Address::Zenoh(key, *encoding)
        }
        Address::Mqtt(filter, settings, encoding) if !mqtt::is_single(filter) => {
            // A shared subscription reads the topic itself.
            let shared = name.strip_prefix("$share/").and_then(|rest| rest.split_once('/'));
            let name = shared.map_or(name, |(_, topic)| topic);
            let Address::Mqtt(topic, ..) = Address::parse_single(&format!("mqtt:{name}"))? else {
                return Err(format!("'{name}' is no topic of MQTT"));
            };
            Address::Mqtt(topic, *settings, *encoding)
        }
        Address::Kafka(place, encoding) if place.contains('{') => {
            let Address::Kafka(place, _) = Address::parse_single(&format!("kafka:{name}"))? else {
                return Err(format!("'{name}' is no topic of Kafka"));
            };
            Address::Kafka(place, *encoding)
        }
        Address::Dds(pattern, topic_type, qos) if dds::is_pattern(pattern) => {
            // A topic of ROS 2 was recorded by its name there.
            let name = if name.starts_with('/') { format!("rt{name}") } else { name.to_owned() };
            dds::check_topic(&name).map_err(|error| error.to_string())?;
            Address::Dds(name, topic_type.clone(), qos.clone())
        }
        Address::Ros2(topic, encoding) if topic.name.pattern().is_some() => {
            let name = format!("/{}", name.trim_start_matches('/'));
            let name = ros2::TopicName::parse(&name).map_err(|error| error.to_string())?;
            Address::Ros2(Box::new(ros2::Topic { name, ..(**topic).clone() }), *encoding)
        }
        other => other.clone(),
    })
}

/// Error message for an encoding that a network cannot carry.
fn not_carried(encoding: PayloadEncoding, network: &str) -> String {
    format!("{network} cannot carry {}: it has messages in cdr, and JSON as text", encoding.name())
}

/// The quality of service that the recorder noted.
fn profiles(topic: &RecordedTopic) -> Result<QosOverrides, String> {
    let Some((_, text)) = topic.metadata.iter().find(|(name, _)| name == PROFILES) else {
        return Ok(QosOverrides::default());
    };
    let qos = offered(text).map_err(|error| {
        format!("its recorded quality of service ({PROFILES}) cannot be used, and is the usual one: {error}")
    });
    Ok(qos?.unwrap_or_default())
}

/// Returns the settings, replaced by the recorded ones where there are some.
fn with(own: &QosOverrides, recorded: &QosOverrides) -> QosOverrides {
    QosOverrides {
        reliability: recorded.reliability.or(own.reliability),
        durability: recorded.durability.or(own.durability),
        history: recorded.history.or(own.history),
        depth: recorded.depth.or(own.depth),
        deadline: recorded.deadline.or(own.deadline),
        lifespan: recorded.lifespan.or(own.lifespan),
        liveliness: recorded.liveliness.or(own.liveliness),
        lease: recorded.lease.or(own.lease),
    }
}

/// The same on DDS, without what only subscriptions have.
fn on_dds(recorded: QosOverrides, own: dds::TopicQos) -> dds::TopicQos {
    let noted = recorded.on_dds();
    dds::TopicQos {
        reliability: noted.reliability.or(own.reliability),
        durability: noted.durability.or(own.durability),
        depth: noted.depth.or(own.depth),
        deadline: noted.deadline.or(own.deadline),
        lease: noted.lease.or(own.lease),
        min_separation: None,
        poll: None,
        ..own
    }
}

/// The hash of a type: as the recorder noted it, or by its definition.
fn hash(topic: &RecordedTopic, schema: Option<&Schema>) -> Option<TypeHash> {
    let noted = topic.metadata.iter().find(|(name, _)| name == TYPE_HASH);
    let noted = noted.and_then(|(_, text)| TypeHash::parse(text).ok());
    noted.or_else(|| TypeHash::parse(&schema?.rihs01()?).ok())
}
