//! Addresses on networks, in their written form: `zenoh:KEY`, `dds:TOPIC`, `mqtt:TOPIC`, `kafka:TOPIC`, `ros2:/TOPIC`,
//! `stdout`; with an encoding, `zenoh+cdr_string:KEY`.

use std::borrow::Cow;

use rondel_event::AddressPattern;

use crate::ros2::{self, Middleware};
use crate::{dds, kafka, mqtt, zenoh};

/// An address on a network, or standard output.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Address {
    /// A key expression with the encoding of its payloads.
    Zenoh(String, Encoding),
    /// A topic with its type and quality of service.
    Dds(String, dds::TopicType, dds::TopicQos),
    /// A topic or filter with the settings to subscribe to it and the encoding of its payloads.
    Mqtt(String, mqtt::SubscriptionSettings, Encoding),
    /// A topic, or `TOPIC/KEY`, with the encoding of its payloads.
    Kafka(String, Encoding),
    /// A topic of ROS 2 with the encoding of its payloads: CDR of its type, or JSON in the text of its type.
    Ros2(Box<ros2::Topic>, Encoding),
    /// Standard output.
    Stdout,
}

/// The encoding of a payload.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Encoding {
    /// An encoding of the decoder.
    Of(rondel_decode::Encoding),
    /// JSON in a string of DDS, as a sample in CDR: the form in which bridges forward samples.
    CdrString,
}

impl Encoding {
    /// JSON, the default.
    pub const JSON: Encoding = Encoding::Of(rondel_decode::Encoding::Json);

    /// CDR of the type of a topic.
    pub const CDR: Encoding = Encoding::Of(rondel_decode::Encoding::Cdr);

    /// Parses the name of an encoding.
    ///
    /// # Errors
    /// The mistake.
    pub fn parse(text: &str) -> Result<Encoding, String> {
        if text == "cdr_string" {
            return Ok(Encoding::CdrString);
        }
        rondel_decode::Encoding::from_name(text).map(Encoding::Of).ok_or_else(|| {
            let names = rondel_decode::Encoding::ALL.map(rondel_decode::Encoding::name).join(", ");
            format!("unknown encoding '{text}'; the encodings are: {names}, cdr_string")
        })
    }

    /// Returns its name.
    pub fn name(self) -> &'static str {
        match self {
            Encoding::Of(encoding) => encoding.name(),
            Encoding::CdrString => "cdr_string",
        }
    }
}

/// Names of the networks, before the colon of an address.
const NETWORKS: [&str; 5] = ["zenoh", "dds", "mqtt", "kafka", "ros2"];

impl Address {
    /// Whether messages of this address may have been missed unnoticed in an outage.
    pub fn is_missed(&self, outage: &crate::adapter::Outage) -> bool {
        outage.carried && self.is_concerned(outage)
    }

    /// Whether an outage is one of a network of this address.
    pub fn is_concerned(&self, outage: &crate::adapter::Outage) -> bool {
        match self {
            Address::Zenoh(..) => outage.network == "zenoh",
            Address::Dds(..) => outage.network == "dds",
            Address::Mqtt(..) => outage.network == "mqtt",
            Address::Kafka(..) => outage.network == "kafka",
            Address::Ros2(topic, _) => match outage.network {
                "zenoh" => topic.may_be_on(Middleware::Zenoh),
                "dds" => {
                    let lost = outage.neighbour.as_ref();
                    topic.may_be_on(Middleware::Dds)
                        && lost.is_none_or(|lost| dds::names_meet(lost, &topic.name.dds()))
                }
                _ => false,
            },
            Address::Stdout => false,
        }
    }

    /// Parses `zenoh:KEY`, `dds:TOPIC`, `mqtt:TOPIC`, `kafka:TOPIC`, `ros2:/TOPIC` or `stdout`; on Zenoh, MQTT and Kafka
    /// with an encoding unless it is JSON.
    ///
    /// # Errors
    /// The mistake.
    pub fn parse(text: &str) -> Result<Address, String> {
        if text == "stdout" {
            return Ok(Address::Stdout);
        }
        let Some((network, name)) = text.split_once(':') else {
            return Err(format!(
                "'{text}' is not an address; write NETWORK:NAME, such as zenoh:demo/state, dds:state, mqtt:demo/state or ros2:/state"
            ));
        };
        if name.trim() != name {
            return Err(format!(
                "'{text}' has blanks around the name; write {}:{}",
                network.trim(),
                name.trim()
            ));
        }
        let (network, encoding) = match network.split_once('+') {
            Some((network, encoding)) => (network, Some(Encoding::parse(encoding)?)),
            None => (network, None),
        };
        let address = match network {
            "zenoh" => {
                zenoh::check_key(name).map_err(|e| e.to_string())?;
                Ok(Address::Zenoh(name.to_owned(), Encoding::JSON))
            }
            "dds" => {
                match AddressPattern::parse(name) {
                    Ok(None) => dds::check_topic(name),
                    Ok(Some(pattern)) => dds::check_pattern(&pattern.glob())
                        .map_err(|_| dds::DeclareError::Name(name.to_owned())),
                    Err(fault) => return Err(format!("'{name}': {}: {}", fault.message, fault.advice)),
                }
                .map_err(|e| e.to_string())?;
                Ok(Address::Dds(name.to_owned(), dds::TopicType::default(), dds::TopicQos::default()))
            }
            "mqtt" => {
                mqtt::check_filter(name).map_err(|e| e.to_string())?;
                Ok(Address::Mqtt(name.to_owned(), mqtt::SubscriptionSettings::default(), Encoding::JSON))
            }
            "kafka" => {
                kafka::Place::parse(name).map_err(|e| e.to_string())?;
                Ok(Address::Kafka(name.to_owned(), Encoding::JSON))
            }
            "ros2" => {
                let topic = ros2::Topic::parse(name).map_err(|e| e.to_string())?;
                Ok(Address::Ros2(Box::new(topic), Encoding::CDR))
            }
            other => {
                let likeness = |name: &&str| strsim::jaro_winkler(other, name);
                let nearest = NETWORKS.into_iter().max_by(|a, b| likeness(a).total_cmp(&likeness(b)));
                let hint = nearest.filter(|name| likeness(name) > 0.8).map_or_else(
                    || format!("the networks are: {}", NETWORKS.join(", ")),
                    |name| format!("did you mean '{name}'?"),
                );
                Err(format!("unknown network '{other}'; {hint}"))
            }
        };
        match encoding {
            Some(encoding) => address?.encoded(encoding),
            None => address,
        }
    }

    /// Returns the same address with this encoding.
    ///
    /// # Errors
    /// The network does not allow the encoding.
    pub fn encoded(self, encoding: Encoding) -> Result<Address, String> {
        match self {
            Address::Zenoh(key, _) => Ok(Address::Zenoh(key, encoding)),
            Address::Mqtt(topic, settings, _) => Ok(Address::Mqtt(topic, settings, encoding)),
            Address::Kafka(place, _) => Ok(Address::Kafka(place, encoding)),
            Address::Ros2(topic, _) if encoding == Encoding::CDR => Ok(Address::Ros2(topic, encoding)),
            Address::Ros2(topic, _) if matches!(encoding, Encoding::JSON | Encoding::CdrString) => {
                let topic = topic.of_text().map_err(|e| e.to_string())?;
                Ok(Address::Ros2(Box::new(topic), Encoding::CdrString))
            }
            Address::Ros2(..) => Err(format!(
                "messages of ROS 2 are not {}: they are cdr of the type of the topic, or json in a string",
                encoding.name()
            )),
            Address::Dds(name, dds::TopicType::Text(_), qos) if encoding == Encoding::CDR => {
                Ok(Address::Dds(name, dds::TopicType::Raw(dds::RawType::default()), qos))
            }
            address if encoding == Encoding::JSON => Ok(address),
            _ => Err(format!(
                "the encoding {} is for Zenoh, MQTT and Kafka; on DDS, payloads are cdr of the type of the topic, or json in \
                 a string",
                encoding.name()
            )),
        }
    }

    /// Returns the encoding of its payloads.
    pub fn encoding(&self) -> Encoding {
        match self {
            Address::Zenoh(_, encoding)
            | Address::Mqtt(.., encoding)
            | Address::Kafka(_, encoding)
            | Address::Ros2(_, encoding) => *encoding,
            Address::Dds(_, dds::TopicType::Raw(_), _) => Encoding::CDR,
            // On DDS, the network itself reads and writes the string with the JSON.
            Address::Dds(..) | Address::Stdout => Encoding::JSON,
        }
    }

    /// Parses an address to subscribe to.
    ///
    /// # Errors
    /// The mistake.
    pub fn parse_source(text: &str) -> Result<Address, String> {
        match Address::parse(text)? {
            Address::Stdout => {
                Err("stdout cannot be a source; write zenoh:KEY, dds:TOPIC, mqtt:TOPIC, kafka:TOPIC or ros2:/TOPIC"
                    .to_owned())
            }
            address => Ok(address),
        }
    }

    /// Parses an address to publish on.
    ///
    /// # Errors
    /// The mistake.
    pub fn parse_sink(text: &str) -> Result<Address, String> {
        match Address::parse(text)? {
            address if address.pattern().is_some() => Err(format!(
                "cannot publish on '{address}': an address to publish on has no parameters, which stand in braces"
            )),
            Address::Zenoh(key, _) if key.contains(['*', '$']) => {
                Err(format!("cannot publish on '{key}': a key to publish on has no wildcards (*, $*)"))
            }
            Address::Mqtt(topic, ..) if !mqtt::is_single(&topic) => Err(format!(
                "cannot publish on '{topic}': a topic to publish on has no wildcards (+, #) and no $share"
            )),
            address @ Address::Ros2(..) if !text.starts_with("ros2+") => address.encoded(Encoding::CdrString),
            address if !matches!(address.encoding(), Encoding::JSON | Encoding::CdrString) => {
                Err(format!("cannot publish on {address}: what Rondel publishes is JSON"))
            }
            address => Ok(address),
        }
    }

    /// Parses the address of a single topic, on which messages in any encoding are passed on.
    ///
    /// # Errors
    /// The mistake.
    pub fn parse_single(text: &str) -> Result<Address, String> {
        match Address::parse(text)? {
            Address::Stdout => Err("stdout is no network".to_owned()),
            Address::Zenoh(key, _) if key.contains(['*', '$']) => {
                Err(format!("cannot publish on '{key}': a key to publish on has no wildcards (*, $*)"))
            }
            Address::Mqtt(topic, ..) if !mqtt::is_single(&topic) => Err(format!(
                "cannot publish on '{topic}': a topic to publish on has no wildcards (+, #) and no $share"
            )),
            address => Ok(address),
        }
    }

    /// Parses an address to publish verdicts on: like [`Address::parse_sink`], but messages on ROS 2 have a type of
    /// their own, unless the address begins with `ros2+json:`.
    ///
    /// # Errors
    /// The mistake.
    pub fn parse_verdicts(text: &str) -> Result<Address, String> {
        match Address::parse(text)? {
            Address::Ros2(topic, Encoding::CDR) => {
                let topic = topic.of_verdicts().map_err(|e| e.to_string())?;
                Ok(Address::Ros2(Box::new(topic), Encoding::CDR))
            }
            _ => Address::parse_sink(text),
        }
    }

    /// Returns the type of messages of ROS 2 that are not text, if known.
    pub fn ros2_type(&self) -> Option<String> {
        match self {
            Address::Ros2(topic, Encoding::CDR) => topic.message_type.as_ref().map(ToString::to_string),
            _ => None,
        }
    }

    /// Whether a message published on one of the addresses may be received from the other.
    pub fn meets(&self, other: &Address) -> bool {
        match (&*self.subscribed(), &*other.subscribed()) {
            (Address::Zenoh(a, _), Address::Zenoh(b, _)) => zenoh::keys_meet(a, b),
            (Address::Dds(a, ..), Address::Dds(b, ..)) => dds::names_meet(a, b),
            (Address::Mqtt(a, ..), Address::Mqtt(b, ..)) => mqtt::filters_meet(a, b),
            (Address::Kafka(a, _), Address::Kafka(b, _)) => kafka::places_meet(a, b),
            (Address::Ros2(a, _), Address::Ros2(b, _)) => dds::names_meet(&a.name.dds(), &b.name.dds()),
            (Address::Ros2(a, _), Address::Dds(b, ..)) | (Address::Dds(b, ..), Address::Ros2(a, _)) => {
                a.may_be_on(Middleware::Dds) && dds::names_meet(&a.name.dds(), b)
            }
            (Address::Ros2(a, _), Address::Zenoh(b, _)) | (Address::Zenoh(b, _), Address::Ros2(a, _)) => {
                let key = a.name.pattern().map(|pattern| format!("/{}", pattern.key_expression()));
                let key = key.as_deref().unwrap_or(a.name.as_str());
                a.may_be_on(Middleware::Zenoh) && zenoh::keys_meet(b, &format!("*{key}/*/*"))
            }
            _ => false,
        }
    }

    /// Returns the pattern of an address with parameters, such as `fleet/{robot}/pose`.
    pub fn pattern(&self) -> Option<AddressPattern> {
        match self {
            Address::Zenoh(name, _)
            | Address::Mqtt(name, ..)
            | Address::Kafka(name, _)
            | Address::Dds(name, ..) => AddressPattern::parse(name).ok().flatten(),
            Address::Ros2(topic, _) => topic.name.pattern(),
            Address::Stdout => None,
        }
    }

    /// Returns the address to subscribe to, with wildcards for its parameters. Names of ROS 2 keep their parameters:
    /// the wildcards depend on the middleware. So do those of Kafka, whose parameters are parts of a key.
    pub fn subscribed(&self) -> Cow<'_, Address> {
        let Some(pattern) = self.pattern() else { return Cow::Borrowed(self) };
        match self {
            Address::Zenoh(_, encoding) => Cow::Owned(Address::Zenoh(pattern.key_expression(), *encoding)),
            Address::Mqtt(_, settings, encoding) => {
                Cow::Owned(Address::Mqtt(pattern.filter(), *settings, *encoding))
            }
            Address::Dds(_, topic_type, qos) => {
                Cow::Owned(Address::Dds(pattern.glob(), topic_type.clone(), qos.clone()))
            }
            _ => Cow::Borrowed(self),
        }
    }

    /// Whether a publisher there may hold verdicts back to fill a packet, and must be released after the last one.
    pub fn holds_back(&self) -> bool {
        match self {
            Address::Dds(..) | Address::Mqtt(..) | Address::Kafka(..) => true,
            Address::Ros2(topic, _) => topic.may_be_on(Middleware::Dds),
            Address::Zenoh(..) | Address::Stdout => false,
        }
    }

    /// Returns the address of a property below this one.
    ///
    /// # Errors
    /// The name of the property cannot be part of an address.
    fn below(&self, property: &str) -> Result<Address, String> {
        match self {
            Address::Zenoh(key, encoding) => {
                let key = format!("{key}/{property}");
                zenoh::check_key(&key).map_err(|e| e.to_string())?;
                Ok(Address::Zenoh(key, *encoding))
            }
            Address::Dds(name, topic_type, qos) => {
                let name = format!("{name}/{property}");
                dds::check_topic(&name).map_err(|e| e.to_string())?;
                Ok(Address::Dds(name, topic_type.clone(), qos.clone()))
            }
            Address::Mqtt(topic, settings, encoding) => {
                let topic = format!("{topic}/{property}");
                mqtt::check_topic(&topic).map_err(|e| e.to_string())?;
                Ok(Address::Mqtt(topic, *settings, *encoding))
            }
            // These messages name the property. A topic of Kafka must exist, and has partitions for many properties.
            Address::Ros2(_, Encoding::CDR) | Address::Kafka(..) => Ok(self.clone()),
            Address::Ros2(topic, encoding) => {
                let name = ros2::TopicName::parse(&format!("{}/{property}", topic.name));
                let name = name.map_err(|e| e.to_string())?;
                let topic = ros2::Topic { name, ..(**topic).clone() };
                Ok(Address::Ros2(Box::new(topic), *encoding))
            }
            Address::Stdout => Ok(Address::Stdout),
        }
    }

    /// Sets the middleware of a topic of ROS 2.
    pub fn join_ros2(&mut self, settings: &ros2::Settings) {
        if let Address::Ros2(topic, _) = self {
            topic.middleware = Some(settings.middleware);
        }
    }
}

impl std::fmt::Display for Address {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let encoding = match self.encoding() {
            Encoding::JSON => String::new(),
            encoding => format!("+{}", encoding.name()),
        };
        match self {
            Address::Zenoh(key, _) => write!(f, "zenoh{encoding}:{key}"),
            Address::Dds(name, ..) => write!(f, "dds:{name}"),
            Address::Mqtt(topic, ..) => write!(f, "mqtt{encoding}:{topic}"),
            Address::Kafka(place, _) => write!(f, "kafka{encoding}:{place}"),
            // The encoding is determined by the use: text for publishing, CDR for subscribing.
            Address::Ros2(topic, _) => write!(f, "ros2:{}", topic.name),
            Address::Stdout => f.write_str("stdout"),
        }
    }
}

/// Returns the sinks of every property: the addresses themselves for a single property, else an address for each
/// property below each of them. Messages of ROS 2 that are not text name their property.
///
/// # Errors
/// The name of a property cannot be part of an address.
pub fn spread(to: &[Address], properties: &[String]) -> Result<Vec<Vec<Address>>, String> {
    properties
        .iter()
        .map(|property| {
            to.iter()
                .map(
                    |address| {
                        if properties.len() == 1 { Ok(address.clone()) } else { address.below(property) }
                    },
                )
                .collect()
        })
        .collect()
}

/// Returns a warning if verdicts would be received as messages: a monitor that answers itself.
pub fn returns<'a>(
    sources: impl Iterator<Item = &'a Address> + Clone,
    sinks: &[Vec<Address>],
) -> Option<String> {
    sinks.iter().flatten().find_map(|sink| {
        let source = sources.clone().find(|source| source.meets(sink))?;
        Some(format!("verdicts on {sink} would come back as messages of {source}; publish them elsewhere"))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn on(middleware: Middleware, text: &str) -> Address {
        let mut address = Address::parse(text).unwrap();
        address.join_ros2(&ros2::Settings::new(middleware, 0).unwrap());
        address
    }

    #[test]
    fn topics_of_ros_2_are_addresses() {
        let source = Address::parse_source("ros2:vehicle/status").unwrap();
        assert_eq!(
            (source.to_string(), source.encoding()),
            ("ros2:/vehicle/status".to_owned(), Encoding::CDR)
        );
        let typed = |text: &str| Address::parse_verdicts(text).unwrap();
        for (text, message_type) in [
            ("ros2:/rondel/verdicts", Some("rondel_msgs/msg/Verdict")),
            ("ros2:/diagnostics", Some("diagnostic_msgs/msg/DiagnosticArray")),
            ("ros2:/fleet/a/diagnostics", Some("diagnostic_msgs/msg/DiagnosticArray")),
            ("ros2+json:/diagnostics", None),
            ("zenoh:diagnostics", None),
        ] {
            assert_eq!(typed(text).ros2_type().as_deref(), message_type, "{text}");
        }
        let names = ["a".to_owned(), "b".to_owned()];
        let below = spread(&[typed("ros2:/verdicts"), typed("ros2+json:/verdicts")], &names).unwrap();
        assert_eq!(below[1][0], typed("ros2:/verdicts"));
        assert_eq!(below[1][1].to_string(), "ros2:/verdicts/b");
        let sink = Address::parse_sink("ros2:/verdict").unwrap();
        assert_eq!(sink.encoding(), Encoding::CdrString);
        let Address::Ros2(topic, _) = &sink else { unreachable!() };
        assert_eq!(topic.message_type.as_ref().unwrap().to_string(), "std_msgs/msg/String");
        let below = spread(&[sink], &["a".to_owned(), "b".to_owned()]).unwrap();
        assert_eq!(below[1][0].to_string(), "ros2:/verdict/b");
        for (text, expected) in [
            ("zenoh: demo", "'zenoh: demo' has blanks around the name; write zenoh:demo"),
            ("mqtt:demo ", "'mqtt:demo ' has blanks around the name; write mqtt:demo"),
            (
                "ros2:/a-b",
                "'/a-b' is not a ROS 2 topic name: it contains '-'; letters, digits, _ and / are allowed; did you mean '/a_b'?",
            ),
            (
                "ros2+cbor:/a",
                "messages of ROS 2 are not cbor: they are cdr of the type of the topic, or json in a string",
            ),
            ("ros:/a", "unknown network 'ros'; did you mean 'ros2'?"),
        ] {
            // An encoding may not be compiled in.
            if let Err(error) = Address::parse(text)
                && !error.starts_with("unknown encoding")
            {
                assert_eq!(error, expected);
            }
        }
    }

    #[test]
    fn received_verdicts_are_detected_on_either_middleware() {
        let dds = on(Middleware::Dds, "ros2:/a/b");
        let zenoh = on(Middleware::Zenoh, "ros2:/a/b");
        for (one, other, meets) in [
            (&dds, "dds:rt/a/b", true),
            (&dds, "dds:a/b", false),
            (&dds, "zenoh:**", false),
            (&zenoh, "zenoh:**", true),
            (&zenoh, "zenoh:0/a/b/*/*", true),
            (&zenoh, "zenoh:0/a/c/**", false),
            (&zenoh, "dds:rt/a/b", false),
            (&zenoh, "ros2:/a/b", true),
        ] {
            let other = Address::parse(other).unwrap();
            assert_eq!((one.meets(&other), other.meets(one)), (meets, meets), "{other}");
        }
        assert!(dds.holds_back() && !zenoh.holds_back());
        let mut outage = crate::adapter::Outage {
            network: "dds",
            neighbour: Some("rt/a/b".to_owned()),
            from: rondel_event::Timestamp::from_nanos(0),
            until: None,
            carried: true,
        };
        assert!(dds.is_missed(&outage) && !zenoh.is_missed(&outage));
        outage.neighbour = Some("rt/a".to_owned());
        assert!(!dds.is_missed(&outage));
        outage.network = "zenoh";
        assert!(!dds.is_missed(&outage) && zenoh.is_missed(&outage));
        outage.carried = false;
        assert!(!zenoh.is_missed(&outage) && zenoh.is_concerned(&outage) && !dds.is_concerned(&outage));
    }
}
