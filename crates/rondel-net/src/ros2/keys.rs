//! Keys of rmw_zenoh on which messages are published: `DOMAIN/TOPIC/TYPE/HASH`.

use super::types::TypeHash;
use super::{MessageType, NodeName, TopicName};

/// Returns the key of a publisher. Without a hash it is that of publishers that have none.
pub fn data_key(
    domain: u32,
    topic: &TopicName,
    message_type: &MessageType,
    hash: Option<&TypeHash>,
) -> String {
    let topic = topic.as_str().trim_start_matches('/');
    format!("{domain}/{topic}/{}/{}", message_type.dds(), TypeHash::in_key(hash))
}

/// Returns the key expression of a topic for any hash of the type. It does not match keys with a further part, on which
/// publishers send in the format of a device: they also publish on the shorter key as long as a subscription without
/// such a format exists.
pub fn subscription_key(domain: u32, topic: &TopicName, message_type: &MessageType) -> String {
    let topic = match topic.pattern() {
        Some(pattern) => pattern.key_expression(),
        None => topic.as_str().trim_start_matches('/').to_owned(),
    };
    format!("{domain}/{topic}/{}/*", message_type.dds())
}

/// Returns the topic, without its first slash, of a key matched by a [subscription](subscription_key).
#[inline]
pub fn topic_of(key: &str) -> Option<&str> {
    let (_, rest) = key.split_once('/')?;
    let (rest, _hash) = rest.rsplit_once('/')?;
    Some(rest.rsplit_once('/')?.0)
}

/// Type of the service by which nodes describe types, in DDS.
const DESCRIPTION: &str = "type_description_interfaces::srv::dds_::GetTypeDescription_";

/// Returns the key expression of a node's descriptions of types, for any hash of the service.
pub fn description_key(domain: u32, node: &NodeName) -> String {
    service_key(domain, &format!("{node}/get_type_description"), DESCRIPTION)
}

/// Returns the key expression of a service of this name and type in DDS, for any hash of the type.
pub fn service_key(domain: u32, name: &str, type_name: &str) -> String {
    format!("{domain}/{}/{type_name}/*", name.trim_start_matches('/'))
}

/// The parts of a key of rmw_zenoh.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DataKey {
    /// The domain.
    pub domain: u32,
    /// The topic.
    pub topic: TopicName,
    /// The type.
    pub message_type: MessageType,
    /// The hash of the type, if the publisher has one.
    pub hash: Option<TypeHash>,
    /// Rest of the key: the name of a format, such as `_buf_cpu`, or of a subscription. Usually empty.
    pub suffix: String,
}

impl DataKey {
    /// Parses a key; `None` if it is not one of rmw_zenoh.
    pub fn parse(key: &str) -> Option<DataKey> {
        let (domain, rest) = key.split_once('/')?;
        // The type is the only part with colons.
        let colons = rest.find("::")?;
        let (topic, rest) = rest.split_at(rest[..colons].rfind('/')?);
        let (message_type, rest) = rest[1..].split_once('/')?;
        let (hash, suffix) = rest.split_once('/').unwrap_or((rest, ""));
        Some(DataKey {
            domain: domain.parse().ok()?,
            topic: TopicName::parse(&format!("/{topic}")).ok()?,
            message_type: MessageType::from_dds(message_type)?,
            hash: TypeHash::of_key(hash),
            suffix: suffix.to_owned(),
        })
    }
}

/// Whether the last part of a key states that the message has another type than the one with this hash. Publishers
/// without a hash (ROS 2 Humble) may have any type of that name.
#[inline]
pub fn contradicts(key: &str, hash: &str) -> bool {
    !key.ends_with(hash) && is_other_hash(key)
}

#[cold]
fn is_other_hash(key: &str) -> bool {
    hash_of(key).starts_with("RIHS")
}

/// Returns the last part of a key, which is the hash of the type.
#[inline]
pub fn hash_of(key: &str) -> &str {
    key.rsplit_once('/').map_or(key, |(_, last)| last)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const HASH: &str = "RIHS01_df668c740482bbd48fb39d76a70dfd4bd59db1288021743503259e948f6b1a18";

    fn chatter() -> (TopicName, MessageType, TypeHash) {
        let topic = TopicName::parse("/robot1/chatter").unwrap();
        (topic, MessageType::parse("std_msgs/msg/String").unwrap(), TypeHash::parse(HASH).unwrap())
    }

    #[test]
    fn keys_are_those_of_rmw_zenoh() {
        let (topic, message_type, hash) = chatter();
        let key = data_key(2, &topic, &message_type, Some(&hash));
        assert_eq!(key, format!("2/robot1/chatter/std_msgs::msg::dds_::String_/{HASH}"));
        let expression = subscription_key(2, &topic, &message_type);
        assert_eq!(expression, "2/robot1/chatter/std_msgs::msg::dds_::String_/*");
        let node = NodeName::parse("/robot1/talker").unwrap();
        let fleet = TopicName::resolve_pattern("/fleet/{robot}/arm_{side}", &node).unwrap();
        let expression = subscription_key(2, &fleet, &message_type);
        assert_eq!(expression, "2/fleet/*/arm_$*/std_msgs::msg::dds_::String_/*");
        assert_eq!([topic_of(&key), topic_of("2/a/b")], [Some("robot1/chatter"), None]);
        let service = "type_description_interfaces::srv::dds_::GetTypeDescription_/*";
        assert_eq!(description_key(2, &node), format!("2/robot1/talker/get_type_description/{service}"));
        let stop = service_key(2, "/emergency_stop", "std_srvs::srv::dds_::SetBool_");
        assert_eq!(stop, "2/emergency_stop/std_srvs::srv::dds_::SetBool_/*");
        let old = data_key(0, &topic, &message_type, None);
        assert_eq!(old, "0/robot1/chatter/std_msgs::msg::dds_::String_/TypeHashNotSupported");

        let parsed = DataKey::parse(&key).unwrap();
        assert_eq!((parsed.domain, &parsed.topic, &parsed.hash), (2, &topic, &Some(hash)));
        assert_eq!((&parsed.message_type, &*parsed.suffix), (&message_type, ""));
        assert_eq!(DataKey::parse(&format!("{key}/_buf_cpu")).unwrap().suffix, "_buf_cpu");
        assert_eq!(DataKey::parse(&format!("{key}/0a1b/2c3d")).unwrap().suffix, "0a1b/2c3d");
        assert_eq!(DataKey::parse(&old).unwrap().hash, None);
        for other in [
            "",
            "0",
            "0/a",
            "0/a::b/c",
            "x/a/a::msg::dds_::A_/b",
            "0/1/a::msg::dds_::A_/b",
            "::",
            "/::",
            "a/::/b",
        ] {
            assert_eq!(DataKey::parse(other), None, "{other}");
        }
    }

    #[test]
    fn other_hashes_contradict() {
        let (topic, message_type, hash) = chatter();
        let other = TypeHash::parse(&HASH.replace("df66", "0000")).unwrap();
        assert!(!contradicts(&data_key(2, &topic, &message_type, Some(&hash)), HASH));
        assert!(contradicts(&data_key(2, &topic, &message_type, Some(&other)), HASH));
        assert!(contradicts("2/a/b/RIHS02_00", HASH));
        assert!(!contradicts(&data_key(2, &topic, &message_type, None), HASH));
    }

    proptest! {
        #[test]
        fn written_keys_are_parsed_back(domain in any::<u32>(), topic in "(/[a-z_][a-z0-9_]{0,8}){1,5}", bytes in any::<[u8; 32]>()) {
            let (_, message_type, _) = chatter();
            let topic = TopicName::parse(&topic).unwrap();
            let hex: String = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
            let hash = TypeHash::parse(&format!("RIHS01_{hex}")).unwrap();
            let key = DataKey::parse(&data_key(domain, &topic, &message_type, Some(&hash))).unwrap();
            prop_assert_eq!(key, DataKey { domain, topic, message_type, hash: Some(hash), suffix: String::new() });
        }

        #[test]
        fn no_text_panics(text in any::<String>(), likely in "[a-z0-9/:_A-Zä]{0,60}") {
            _ = (DataKey::parse(&text), DataKey::parse(&likely));
            _ = (contradicts(&text, HASH), contradicts(&likely, &text));
        }
    }
}
