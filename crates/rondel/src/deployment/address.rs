//! Places on networks, as they are written: `zenoh:KEY`, `dds:TOPIC`, `mqtt:TOPIC`, `stdout`.

use rondel_net::{dds, mqtt, zenoh};

use super::yaml::suggest;

/// A place on a network, or standard output.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Address {
    /// A key expression.
    Zenoh(String),
    /// A topic and its type.
    Dds(String, dds::StringType),
    /// A topic or a filter, and how it is subscribed to.
    Mqtt(String, mqtt::SubscriptionSettings),
    /// Standard output.
    Stdout,
}

/// The names of the networks, as they stand before the colon of an address.
const NETWORKS: [&str; 3] = ["zenoh", "dds", "mqtt"];

impl Address {
    /// Reads `zenoh:KEY`, `dds:TOPIC`, `mqtt:TOPIC` or `stdout`.
    ///
    /// # Errors
    /// What is wrong with it.
    pub fn parse(text: &str) -> Result<Address, String> {
        if text == "stdout" {
            return Ok(Address::Stdout);
        }
        let Some((network, name)) = text.split_once(':') else {
            return Err(format!(
                "'{text}' is no address; write NETWORK:NAME, such as zenoh:demo/state, dds:state or mqtt:demo/state"
            ));
        };
        match network {
            "zenoh" => {
                zenoh::check_key(name).map_err(|e| e.to_string())?;
                Ok(Address::Zenoh(name.to_owned()))
            }
            "dds" => {
                dds::check_topic(name).map_err(|e| e.to_string())?;
                Ok(Address::Dds(name.to_owned(), dds::StringType::default()))
            }
            "mqtt" => {
                mqtt::check_filter(name).map_err(|e| e.to_string())?;
                Ok(Address::Mqtt(name.to_owned(), mqtt::SubscriptionSettings::default()))
            }
            other => {
                let hint = suggest(other, NETWORKS.into_iter()).map_or_else(
                    || format!("known are: {}", NETWORKS.join(", ")),
                    |s| format!("did you mean '{s}'?"),
                );
                Err(format!("unknown network '{other}'; {hint}"))
            }
        }
    }

    /// Reads the address of something that messages come from.
    ///
    /// # Errors
    /// What is wrong with it.
    pub fn parse_source(text: &str) -> Result<Address, String> {
        match Address::parse(text)? {
            Address::Stdout => Err("stdout is a place for verdicts, not a source".to_owned()),
            address => Ok(address),
        }
    }

    /// Reads the address of something that messages are published on.
    ///
    /// # Errors
    /// What is wrong with it.
    pub fn parse_sink(text: &str) -> Result<Address, String> {
        match Address::parse(text)? {
            Address::Zenoh(key) if key.contains(['*', '$']) => {
                Err(format!("one key is needed to publish on, not '{key}' with wildcards"))
            }
            Address::Mqtt(topic, _) if !mqtt::is_single(&topic) => {
                Err(format!("one topic is needed to publish on, not '{topic}' with wildcards or $share"))
            }
            address => Ok(address),
        }
    }

    /// Whether a publisher there may hold verdicts back to fill a packet, so that it has to be told when
    /// nothing more comes.
    pub fn holds_back(&self) -> bool {
        matches!(self, Address::Dds(..) | Address::Mqtt(..))
    }

    /// The place below this one that is named after a property.
    ///
    /// # Errors
    /// When the name cannot stand there.
    fn below(&self, property: &str) -> Result<Address, String> {
        match self {
            Address::Zenoh(key) => {
                let key = format!("{key}/{property}");
                zenoh::check_key(&key).map_err(|e| e.to_string())?;
                Ok(Address::Zenoh(key))
            }
            Address::Dds(name, string_type) => {
                let name = format!("{name}/{property}");
                dds::check_topic(&name).map_err(|e| e.to_string())?;
                Ok(Address::Dds(name, string_type.clone()))
            }
            Address::Mqtt(topic, settings) => {
                let topic = format!("{topic}/{property}");
                mqtt::check_topic(&topic).map_err(|e| e.to_string())?;
                Ok(Address::Mqtt(topic, *settings))
            }
            Address::Stdout => Ok(Address::Stdout),
        }
    }
}

impl std::fmt::Display for Address {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Address::Zenoh(key) => write!(f, "zenoh:{key}"),
            Address::Dds(name, _) => write!(f, "dds:{name}"),
            Address::Mqtt(topic, _) => write!(f, "mqtt:{topic}"),
            Address::Stdout => f.write_str("stdout"),
        }
    }
}

/// The sinks of every property: the places themselves for a single property, else one below each
/// place for every property.
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

/// What is wrong where verdicts would come back as messages: a monitor that answers itself.
pub fn returns<'a>(
    sources: impl Iterator<Item = &'a Address> + Clone,
    sinks: &[Vec<Address>],
) -> Option<String> {
    let meet = |source: &Address, sink: &Address| match (source, sink) {
        (Address::Zenoh(a), Address::Zenoh(b)) => zenoh::keys_meet(a, b),
        (Address::Dds(a, _), Address::Dds(b, _)) => a == b,
        (Address::Mqtt(a, _), Address::Mqtt(b, _)) => mqtt::filters_meet(a, b),
        _ => false,
    };
    sinks.iter().flatten().find_map(|sink| {
        let source = sources.clone().find(|source| meet(source, sink))?;
        Some(format!("verdicts on {sink} would come back as messages of {source}; publish them elsewhere"))
    })
}
