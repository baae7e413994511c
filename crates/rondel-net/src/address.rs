//! Addresses on networks, in their written form: `zenoh:KEY`, `dds:TOPIC`, `mqtt:TOPIC`, `stdout`; with an
//! encoding, `zenoh+cdr_string:KEY`.

use crate::{dds, mqtt, zenoh};

/// An address on a network, or standard output.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Address {
    /// A key expression, and the encoding of its payloads.
    Zenoh(String, Encoding),
    /// A topic and its type.
    Dds(String, dds::StringType),
    /// A topic or a filter, the settings to subscribe to it, and the encoding of its payloads.
    Mqtt(String, mqtt::SubscriptionSettings, Encoding),
    /// Standard output.
    Stdout,
}

/// The encoding of a payload.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Encoding {
    /// JSON.
    #[default]
    Json,
    /// JSON in a string of DDS, as a sample in CDR: the form in which bridges pass samples on.
    CdrString,
}

impl Encoding {
    /// Reads its name.
    ///
    /// # Errors
    /// The mistake, in words.
    pub fn parse(text: &str) -> Result<Encoding, String> {
        match text {
            "json" => Ok(Encoding::Json),
            "cdr_string" => Ok(Encoding::CdrString),
            other => Err(format!("unknown encoding '{other}'; the encodings are: json, cdr_string")),
        }
    }
}

/// The names of the networks, which stand before the colon of an address.
const NETWORKS: [&str; 3] = ["zenoh", "dds", "mqtt"];

impl Address {
    /// Returns whether messages of this address may have been missed in an outage, of which nothing else tells.
    pub fn is_missed(&self, outage: &crate::adapter::Outage) -> bool {
        outage.carried
            && match self {
                Address::Zenoh(..) => outage.network == "zenoh",
                Address::Dds(..) => outage.network == "dds",
                Address::Mqtt(..) => outage.network == "mqtt",
                Address::Stdout => false,
            }
    }

    /// Reads `zenoh:KEY`, `dds:TOPIC`, `mqtt:TOPIC` or `stdout`, on Zenoh and MQTT with an encoding if it
    /// is not JSON.
    ///
    /// # Errors
    /// The mistake, in words.
    pub fn parse(text: &str) -> Result<Address, String> {
        if text == "stdout" {
            return Ok(Address::Stdout);
        }
        let Some((network, name)) = text.split_once(':') else {
            return Err(format!(
                "'{text}' is not an address; write NETWORK:NAME, such as zenoh:demo/state, dds:state or mqtt:demo/state"
            ));
        };
        let (network, encoding) = match network.split_once('+') {
            Some((network, encoding)) => (network, Some(Encoding::parse(encoding)?)),
            None => (network, None),
        };
        let address = match network {
            "zenoh" => {
                zenoh::check_key(name).map_err(|e| e.to_string())?;
                Ok(Address::Zenoh(name.to_owned(), Encoding::Json))
            }
            "dds" => {
                dds::check_topic(name).map_err(|e| e.to_string())?;
                Ok(Address::Dds(name.to_owned(), dds::StringType::default()))
            }
            "mqtt" => {
                mqtt::check_filter(name).map_err(|e| e.to_string())?;
                Ok(Address::Mqtt(name.to_owned(), mqtt::SubscriptionSettings::default(), Encoding::Json))
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
    /// When the network does not allow it.
    pub fn encoded(self, encoding: Encoding) -> Result<Address, String> {
        match self {
            Address::Zenoh(key, _) => Ok(Address::Zenoh(key, encoding)),
            Address::Mqtt(topic, settings, _) => Ok(Address::Mqtt(topic, settings, encoding)),
            address if encoding == Encoding::Json => Ok(address),
            _ => Err("the encoding cdr_string is for Zenoh and MQTT; on DDS, payloads are always JSON in a string, so leave it out".to_owned()),
        }
    }

    /// Returns the encoding of its payloads.
    pub fn encoding(&self) -> Encoding {
        match self {
            Address::Zenoh(_, encoding) | Address::Mqtt(.., encoding) => *encoding,
            // The string around JSON on DDS is read and written by the network itself.
            Address::Dds(..) | Address::Stdout => Encoding::Json,
        }
    }

    /// Reads an address to subscribe to.
    ///
    /// # Errors
    /// The mistake, in words.
    pub fn parse_source(text: &str) -> Result<Address, String> {
        match Address::parse(text)? {
            Address::Stdout => {
                Err("stdout cannot be a source; write zenoh:KEY, dds:TOPIC or mqtt:TOPIC".to_owned())
            }
            address => Ok(address),
        }
    }

    /// Reads an address to publish on.
    ///
    /// # Errors
    /// The mistake, in words.
    pub fn parse_sink(text: &str) -> Result<Address, String> {
        match Address::parse(text)? {
            Address::Zenoh(key, _) if key.contains(['*', '$']) => {
                Err(format!("cannot publish on '{key}': a key to publish on has no wildcards (*, $*)"))
            }
            Address::Mqtt(topic, ..) if !mqtt::is_single(&topic) => Err(format!(
                "cannot publish on '{topic}': a topic to publish on has no wildcards (+, #) and no $share"
            )),
            address => Ok(address),
        }
    }

    /// Returns whether a message published on one of the two addresses could be received from the other.
    pub fn meets(&self, other: &Address) -> bool {
        match (self, other) {
            (Address::Zenoh(a, _), Address::Zenoh(b, _)) => zenoh::keys_meet(a, b),
            (Address::Dds(a, _), Address::Dds(b, _)) => a == b,
            (Address::Mqtt(a, ..), Address::Mqtt(b, ..)) => mqtt::filters_meet(a, b),
            _ => false,
        }
    }

    /// Returns whether a publisher there may hold verdicts back to fill a packet, and must be released when no more
    /// come.
    pub fn holds_back(&self) -> bool {
        matches!(self, Address::Dds(..) | Address::Mqtt(..))
    }

    /// Returns the address below this one that is named after a property.
    ///
    /// # Errors
    /// When the name cannot stand there.
    fn below(&self, property: &str) -> Result<Address, String> {
        match self {
            Address::Zenoh(key, encoding) => {
                let key = format!("{key}/{property}");
                zenoh::check_key(&key).map_err(|e| e.to_string())?;
                Ok(Address::Zenoh(key, *encoding))
            }
            Address::Dds(name, string_type) => {
                let name = format!("{name}/{property}");
                dds::check_topic(&name).map_err(|e| e.to_string())?;
                Ok(Address::Dds(name, string_type.clone()))
            }
            Address::Mqtt(topic, settings, encoding) => {
                let topic = format!("{topic}/{property}");
                mqtt::check_topic(&topic).map_err(|e| e.to_string())?;
                Ok(Address::Mqtt(topic, *settings, *encoding))
            }
            Address::Stdout => Ok(Address::Stdout),
        }
    }
}

impl std::fmt::Display for Address {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let encoding = match self.encoding() {
            Encoding::Json => "",
            Encoding::CdrString => "+cdr_string",
        };
        match self {
            Address::Zenoh(key, _) => write!(f, "zenoh{encoding}:{key}"),
            Address::Dds(name, _) => write!(f, "dds:{name}"),
            Address::Mqtt(topic, ..) => write!(f, "mqtt{encoding}:{topic}"),
            Address::Stdout => f.write_str("stdout"),
        }
    }
}

/// Returns the sinks of every property: the addresses themselves for a single property, else an address below each of
/// them, named after the property.
///
/// # Errors
/// When the name of a property cannot be part of an address.
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

/// Returns a message when verdicts would come back as messages: a monitor that answers itself.
pub fn returns<'a>(
    sources: impl Iterator<Item = &'a Address> + Clone,
    sinks: &[Vec<Address>],
) -> Option<String> {
    sinks.iter().flatten().find_map(|sink| {
        let source = sources.clone().find(|source| source.meets(sink))?;
        Some(format!("verdicts on {sink} would come back as messages of {source}; publish them elsewhere"))
    })
}
