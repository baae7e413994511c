//! The types and encodings of topics, as the address, the deployment and the specification set them together.

use std::collections::BTreeSet;
use std::sync::Arc;

use rondel_decode::Encoding as PayloadEncoding;
use rondel_decode::schema::{Schema, Type};
use rondel_decode::sparkplug::{self, Unmatched};
use rondel_event::AddressPattern;
use rondel_net::dds::{self, RawType, StringType, TopicType};
use rondel_net::ros2::keys::DataKey;
use rondel_net::ros2::{MessageType, TypeHash};
use rondel_runtime::Input;
use rondel_spec::{Definitions as _, NoDefinition, Topic, nearest};

use super::{Address, Encoding};
use crate::schemas::Schemas;

/// Statements about the messages of a topic beside its address.
pub struct Typing<'t> {
    /// The topic of the specification, whose type may be declared.
    pub topic: Option<&'t Topic>,
    /// The type in the deployment, which takes precedence.
    pub own: Option<&'t str>,
    /// Whether the encoding is stated, so that it is not chosen by the type.
    pub has_encoding: bool,
    /// The definitions of types.
    pub schemas: &'t Schemas,
}

/// A sentence on an address of Sparkplug that does not match all messages of its nodes.
fn lacks_messages(address: &Address) -> Option<String> {
    let (name, (any, rest)) = match address {
        Address::Mqtt(name, _, _) => (name, ("+", "#")),
        Address::Zenoh(name, _) => (name, ("*", "**")),
        _ => return None,
    };
    if address.encoding() != Encoding::Of(PayloadEncoding::SparkplugB) {
        return None;
    }
    let Unmatched { births, deaths, losses } = sparkplug::Address::unmatched(name);
    let parts = [
        (births, "the births, which give names to metrics with an alias"),
        (deaths, "the deaths of their nodes, which make metrics unknown"),
        (losses, "all messages that share sequence numbers, by which losses show"),
    ];
    let parts: Vec<&str> =
        parts.iter().filter(|(is_lacking, _)| *is_lacking).map(|(_, part)| *part).collect();
    let advice = match sparkplug::Address::of_nodes(name, any, rest) {
        Some(wider) => format!("write {wider}"),
        None => format!(
            "no address with parameters does; a topic with spBv1.0/GROUP/{any}/NODE/{rest} reads all of them"
        ),
    };
    (!parts.is_empty()).then(|| format!("{name} does not match {}: {advice}", parts.join(", and not ")))
}

impl Typing<'_> {
    /// Completes the address and the input; also returns an uncertainty that only the user can check.
    ///
    /// # Errors
    /// The reason why the type is refused, or that there is none.
    pub fn complete(&self, address: Address, input: &mut Input) -> Result<(Address, Option<String>), String> {
        if let Some(topic) = self.topic {
            check_parameters(topic, &address)?;
        }
        let declared = self.topic.and_then(|topic| topic.type_name.as_deref());
        let name = self.own.or(declared);
        if let Some(name) = name.filter(|name| !is_name(name)) {
            return Err(format!("'{name}' is not the name of a type, such as std_msgs/msg/String"));
        }
        let (address, uncertainty) = self.with_type(address, name, declared)?;
        if uncertainty.is_some() {
            return Ok((address, uncertainty));
        }
        let Encoding::Of(encoding) = address.encoding() else { return Ok((address, None)) };
        input.encoding = encoding;
        // On DDS publishers describe their types, in ROS 2 over Zenoh their nodes.
        let on_dds = matches!(address, Address::Dds(..));
        let is_described = match &address {
            Address::Dds(..) => true,
            Address::Ros2(..) => encoding.needs_schema(),
            Address::Zenoh(key, _) => encoding == PayloadEncoding::Cdr && DataKey::parse(key).is_some(),
            _ => false,
        };
        if let Some(meant) = declared.filter(|_| !on_dds).and_then(|name| self.meant(name)) {
            let name = declared.unwrap_or_default();
            return Err(format!("no definition of {name} is known; did you mean {meant}?"));
        }
        // Each message names its schema in the registry.
        if input.message_type.as_ref().is_some_and(|of| of.encoding() == encoding) {
            return match self.own {
                None => Ok((address, None)),
                Some(_) => {
                    Err("`type` and `registry` exclude each other: the registry has the types".to_owned())
                }
            };
        }
        if !encoding.needs_schema() {
            let uncertainty = lacks_messages(&address);
            return match (&address, self.own) {
                (Address::Dds(..), _) | (_, None) => Ok((address, uncertainty)),
                (_, Some(_)) => Err(
                    "`type` belongs to topics on DDS and to binary encodings, such as `encoding: cdr`; remove it here"
                        .to_owned(),
                ),
            };
        }
        let Some(name) = name else {
            if is_described {
                return Ok((address, None));
            }
            return Err(format!(
                "messages in {} can be read only with the definition of their type: name it with `type:`, or in the \
                 specification{}",
                encoding.name(),
                if encoding == PayloadEncoding::Avro {
                    "; or name a schema registry with `registry:` of the topic in a deployment"
                } else {
                    ""
                }
            ));
        };
        match self.schemas.message_type(name, encoding) {
            Ok(message_type) => {
                input.message_type = Some(Arc::new(message_type));
                Ok((address, None))
            }
            Err(_) if is_described && self.schemas.schema(name).is_err() => Ok((address, None)),
            Err(error) => Err(format!("the type of the messages cannot be used: {error}")),
        }
    }
}

impl Typing<'_> {
    /// Puts the named type into the address; also returns an uncertainty if its definition is not known.
    fn with_type(
        &self,
        address: Address,
        name: Option<&str>,
        declared: Option<&str>,
    ) -> Result<(Address, Option<String>), String> {
        let address = match (address, name) {
            (Address::Dds(topic, TopicType::Text(_), qos), Some(name)) => {
                let schema = self.schemas.schema(name);
                let text = schema.as_ref().ok().and_then(text_member);
                let dds_name = dds_name(name, schema.as_ref().ok());
                match (schema, text) {
                    // A field of a declared type is meant, not JSON in its text.
                    (_, Some(member)) if declared.is_none() || self.has_encoding => {
                        let text = StringType { name: dds_name, member, ..StringType::default() };
                        Address::Dds(topic, TopicType::Text(text), qos)
                    }
                    (Ok(_), None) if self.has_encoding => {
                        let why =
                            format!("{name} has other fields than one string, in which JSON could stand");
                        return Err(why);
                    }
                    (Ok(schema), _) => {
                        let raw = RawType { name: Some(dds_name), keyed: Some(has_key(&schema)) };
                        Address::Dds(topic, TopicType::Raw(raw), qos)
                    }
                    (Err(_), _) if declared.is_some() && !self.has_encoding => {
                        let raw = RawType { name: Some(dds_name), keyed: None };
                        Address::Dds(topic, TopicType::Raw(raw), qos)
                    }
                    (Err(_), _) => {
                        let text = StringType { name: dds_name, ..StringType::default() };
                        let why = format!(
                            "no definition of {name} is known, so it is taken for a type with one string, JSON; \
                             otherwise name its definition with `schemas:`"
                        );
                        let address = Address::Dds(topic, TopicType::Text(text), qos);
                        return Ok((address, Some(why)));
                    }
                }
            }
            (Address::Dds(topic, TopicType::Raw(_), qos), Some(name)) => {
                let schema = self.schemas.schema(name).ok();
                let keyed = schema.as_ref().map(has_key);
                let name = dds_name(name, schema.as_ref());
                Address::Dds(topic, TopicType::Raw(RawType { name: Some(name), keyed }), qos)
            }
            (Address::Ros2(topic, encoding), Some(name)) => {
                let named = MessageType::parse(name).map_err(|error| error.to_string())?;
                let hash = self.schemas.schema(name).ok().and_then(|schema| schema.rihs01());
                let hash = hash.and_then(|hash| TypeHash::parse(&hash).ok());
                Address::Ros2(Box::new(topic.typed(named, hash)), encoding)
            }
            (address, _) => address,
        };
        Ok((address, None))
    }

    /// The type that is probably meant by a name of an unknown package.
    fn meant(&self, name: &str) -> Option<String> {
        match self.schemas.definition(name) {
            Err(NoDefinition::UnknownPackage { alike }) => {
                nearest(&name.replace('.', "/"), alike.iter().map(String::as_str)).map(str::to_owned)
            }
            _ => None,
        }
    }
}

/// Whether a text can be the name of a type.
fn is_name(name: &str) -> bool {
    let is_part =
        |part: &str| !part.is_empty() && part.chars().all(|c| c.is_ascii_alphanumeric() || c == '_');
    let parts = name.replace("::", "/").replace('.', "/");
    dds::check_topic(name).is_ok() && parts.split('/').all(is_part) && name.split('/').count() <= 3
}

/// The only member of a type, if it is an unbounded text.
fn text_member(schema: &Schema) -> Option<String> {
    match &schema.root().members[..] {
        [member] if matches!(member.member_type, Type::String { wide: false, .. }) && !member.optional => {
            Some(member.name.to_string())
        }
        _ => None,
    }
}

/// Whether a type has a key.
pub fn has_key(schema: &Schema) -> bool {
    schema.root().members.iter().any(|member| member.key)
}

/// The name of a type on DDS, where ROS 2 has names of its own: `std_msgs::msg::dds_::String_`. Other types, of which
/// there is a definition, have the name that it gives them.
pub fn dds_name(name: &str, schema: Option<&Schema>) -> String {
    if let Some(schema) = schema.filter(|schema| !schema.name().contains('/')) {
        return schema.name().to_owned();
    }
    MessageType::parse(&name.replace('.', "/")).map_or_else(|_| name.to_owned(), |named| named.dds())
}

/// Checks the parameters of an address against those of the topic that it is the source of.
///
/// # Errors
/// The parameters differ.
fn check_parameters(topic: &Topic, address: &Address) -> Result<(), String> {
    let names = |pattern: Option<AddressPattern>| -> BTreeSet<String> {
        pattern.iter().flat_map(AddressPattern::parameters).map(str::to_owned).collect()
    };
    let (wanted, given) = (names(topic.pattern()), names(address.pattern()));
    if wanted.is_empty() && given.is_empty() {
        return Ok(());
    }
    let listed = |names: &BTreeSet<String>| {
        names.iter().map(|name| format!("{{{name}}}")).collect::<Vec<_>>().join(", ")
    };
    match (wanted.is_empty(), wanted == given) {
        (_, true) => Ok(()),
        (true, false) => Err(format!(
            "{address} has the parameters {}, and the topic has none: write them in the specification too, as in `topic \
             {} \"{}\"`",
            listed(&given),
            topic.name,
            topic.address
        )),
        (false, false) => Err(format!(
            "{address} has to have the parameters of the address \"{}\" in the specification: {}",
            topic.address,
            listed(&wanted)
        )),
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    /// The type on DDS and the encoding, for a type in the deployment and one in the specification.
    fn typed(own: Option<&str>, declared: Option<&str>, has_encoding: bool) -> (String, String) {
        let topic = Topic {
            name: "t".to_owned(),
            address: "t".to_owned(),
            type_name: declared.map(str::to_owned),
            schema: None,
        };
        let schemas = Schemas::read(&[]).unwrap();
        let typing = Typing { topic: Some(&topic), own, has_encoding, schemas: &schemas };
        let mut input = Input::default();
        let address = match typing.complete(Address::parse("dds:t").unwrap(), &mut input) {
            Ok((address, _)) => address,
            Err(why) => return (why, String::new()),
        };
        let Address::Dds(_, topic_type, _) = address else { unreachable!() };
        let form = if topic_type.is_raw() { "raw" } else { "text" };
        (topic_type.name().unwrap_or_default().to_owned(), format!("{form} {}", input.encoding.name()))
    }

    #[test]
    fn type_decides_the_decoding_of_a_dds_topic() {
        let is = |name: &str, how: &str| (name.to_owned(), how.to_owned());
        let string = "std_msgs::msg::dds_::String_";
        assert_eq!(typed(None, None, false), is(string, "text json"));
        for name in ["std_msgs/msg/String", "std_msgs/String", "std_msgs::msg::dds_::String_"] {
            assert_eq!(typed(Some(name), None, false), is(string, "text json"), "{name}");
            assert_eq!(typed(None, Some(name), false), is(string, "raw cdr"), "{name}");
            assert_eq!(typed(None, Some(name), true), is(string, "text json"), "{name}");
        }
        let pose = "geometry_msgs::msg::dds_::PoseStamped_";
        assert_eq!(typed(Some("geometry_msgs/msg/PoseStamped"), None, false), is(pose, "raw cdr"));
        assert_eq!(typed(None, Some("geometry_msgs.PoseStamped"), false), is(pose, "raw cdr"));
        assert_eq!(typed(Some("demo::Text"), None, false), is("demo::Text", "text json"));
        for name in ["", "a b", "a/b/c/d", "/", "a/"] {
            assert!(typed(Some(name), None, false).0.contains("is not the name of a type"), "{name}");
        }
        let other = typed(Some("geometry_msgs/msg/PoseStamped"), None, true).0;
        assert!(other.contains("has other fields than one string"), "{other}");
    }
}
