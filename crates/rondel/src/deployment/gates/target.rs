//! The address that a gate publishes on, in the encoding and with the type of its messages.

use rondel_decode::schema::Schema;
use rondel_decode::{Encoding as PayloadEncoding, MessageType};
use rondel_net::dds::{RawType, TopicType};
use rondel_net::ros2::{self, TypeHash};

use crate::deployment::{Address, Binding, Encoding, dds_name, has_key};

/// Destination of the messages that a gate passes on.
pub(super) struct Target {
    pub(super) address: Address,
    /// Their type, if they are CDR and their type is known.
    pub(super) schema: Option<Schema>,
}

/// Returns the encoding in which the messages of an address are received: networks take text out of strings.
pub(super) fn received(address: &Address) -> PayloadEncoding {
    match address.encoding() {
        Encoding::Of(encoding) => encoding,
        Encoding::CdrString => PayloadEncoding::Json,
    }
}

/// Returns the target at an address, for the messages of a source.
///
/// # Errors
/// The reason why they cannot be passed on there.
pub(super) fn target(text: &str, source: &Binding) -> Result<Target, String> {
    let to = Address::parse_single(text)?;
    if super::reads_several(&to) {
        return Err(format!("cannot publish on '{to}': an address to publish on is that of one topic"));
    }
    let encoding = received(&source.address);
    let is_stated = text.split(':').next().is_some_and(|network| network.contains('+'));
    if is_stated && received(&to) != encoding {
        return Err(format!(
            "messages are passed on as they are: those of {} are {}, and {to} is for {}",
            source.address,
            encoding.name(),
            received(&to).name()
        ));
    }
    let schema = match source.input.message_type.as_deref() {
        Some(MessageType::Cdr(schema)) => Some(schema.clone()),
        _ => None,
    };
    let own = source.address.encoding();
    let address = match to {
        Address::Zenoh(..) | Address::Mqtt(..) | Address::Kafka(..) if is_stated => to,
        Address::Zenoh(..) | Address::Mqtt(..) | Address::Kafka(..) => {
            let is_same =
                matches!(source.address, Address::Zenoh(..) | Address::Mqtt(..) | Address::Kafka(..));
            to.encoded(if is_same { own } else { Encoding::Of(encoding) })?
        }
        Address::Dds(name, _, qos) => match encoding {
            PayloadEncoding::Json => {
                let text = match &source.address {
                    Address::Dds(_, of @ TopicType::Text(_), _) => of.clone(),
                    _ => TopicType::default(),
                };
                Address::Dds(name, text, qos)
            }
            PayloadEncoding::Cdr => {
                let type_name = dds_type(&source.address, schema.as_ref()).ok_or_else(|| untyped(source))?;
                let keyed = Some(schema.as_ref().is_some_and(has_key));
                Address::Dds(name, TopicType::Raw(RawType { name: Some(type_name), keyed }), qos)
            }
            other => return Err(not_carried(other, "DDS")),
        },
        Address::Ros2(topic, _) => match encoding {
            PayloadEncoding::Json => Address::Ros2(topic, Encoding::CDR).encoded(Encoding::CdrString)?,
            PayloadEncoding::Cdr => {
                let (named, hash) = ros2_type(source, schema.as_ref())?;
                Address::Ros2(Box::new(topic.typed(named, hash)), Encoding::CDR)
            }
            other => return Err(not_carried(other, "ROS 2")),
        },
        Address::Stdout => return Err("stdout is no network".to_owned()),
    };
    Ok(Target { address, schema })
}

/// Returns the name of the type on DDS, if it is known.
fn dds_type(source: &Address, schema: Option<&Schema>) -> Option<String> {
    match (schema, source) {
        (Some(schema), _) => Some(dds_name(schema.name(), Some(schema))),
        (None, Address::Dds(_, of, _)) => of.name().map(str::to_owned),
        (None, Address::Ros2(topic, _)) => topic.message_type.as_ref().map(ros2::MessageType::dds),
        (None, _) => None,
    }
}

/// Returns the type in ROS 2 with its hash, which is known for a known definition.
fn ros2_type(
    source: &Binding,
    schema: Option<&Schema>,
) -> Result<(ros2::MessageType, Option<TypeHash>), String> {
    if let Some(schema) = schema {
        let name = schema.ros_name().unwrap_or_else(|| schema.name().to_owned());
        let named = ros2::MessageType::parse(&name).map_err(|error| error.to_string())?;
        return Ok((named, schema.rihs01().and_then(|hash| TypeHash::parse(&hash).ok())));
    }
    let name = match &source.address {
        Address::Ros2(topic, _) => match &topic.message_type {
            Some(named) => return Ok((named.clone(), topic.hash)),
            None => None,
        },
        address => dds_type(address, None),
    };
    let name = name.ok_or_else(|| untyped(source))?;
    let named = ros2::MessageType::from_dds(&name).map_or_else(|| ros2::MessageType::parse(&name), Ok);
    Ok((named.map_err(|error| error.to_string())?, None))
}

/// The error message for messages whose type is not known before their publisher is found.
fn untyped(source: &Binding) -> String {
    format!(
        "the type of the messages on {} must be known before they are passed on: name it with `type:` of the topic",
        source.address
    )
}

/// The error message for an encoding that a network cannot carry.
fn not_carried(encoding: PayloadEncoding, network: &str) -> String {
    format!(
        "{network} cannot carry {}: it has messages in cdr, and JSON as text; pass them on to zenoh or mqtt",
        encoding.name()
    )
}
