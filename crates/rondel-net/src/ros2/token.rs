//! Liveliness tokens of rmw_zenoh: the nodes, publishers, subscriptions and services that exist.
//!
//! `@ros2_lv/DOMAIN/SESSION/NODE/ENTITY/KIND/ENCLAVE/NAMESPACE/NAME`, followed by `/TOPIC/TYPE/HASH/QOS` for an
//! endpoint. In names, `%` is used for `/`.

use super::types::TypeHash;
use super::{MessageType, NodeName, Qos, TopicName};

/// First part of every token, which no wildcard matches.
const SPACE: &str = "@ros2_lv";

/// An entity in the graph of ROS 2.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Token {
    /// The domain.
    pub domain: u32,
    /// The id of the Zenoh session, in hexadecimal digits.
    pub session: String,
    /// Number of the node in the session.
    pub node_id: u64,
    /// Number of the entity in the session; for a node, that of the node.
    pub entity_id: u64,
    /// The security enclave: `/` without one.
    pub enclave: String,
    /// The node.
    pub node: NodeName,
    /// The entity.
    pub entity: Entity,
}

/// Entity announced by a token.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Entity {
    /// A node.
    Node,
    /// A publisher.
    Publisher(Endpoint),
    /// A subscription.
    Subscription(Endpoint),
    /// A server of a service.
    Service(Endpoint),
    /// A client of a service.
    Client(Endpoint),
}

/// A publisher, subscription, server or client.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Endpoint {
    /// The topic or service.
    pub topic: TopicName,
    /// The type.
    pub message_type: MessageType,
    /// The hash of the type, if there is one.
    pub hash: Option<TypeHash>,
    /// The quality of service.
    pub qos: Qos,
}

impl Entity {
    fn kind(&self) -> &'static str {
        match self {
            Entity::Node => "NN",
            Entity::Publisher(_) => "MP",
            Entity::Subscription(_) => "MS",
            Entity::Service(_) => "SS",
            Entity::Client(_) => "SC",
        }
    }

    /// Returns the endpoint; `None` for a node.
    pub fn endpoint(&self) -> Option<&Endpoint> {
        match self {
            Entity::Node => None,
            Entity::Publisher(endpoint)
            | Entity::Subscription(endpoint)
            | Entity::Service(endpoint)
            | Entity::Client(endpoint) => Some(endpoint),
        }
    }
}

impl Token {
    /// Returns the key of the token.
    pub fn key(&self) -> String {
        let Token { domain, session, node_id, entity_id, enclave, node, entity } = self;
        let kind = entity.kind();
        let enclave = mangled(enclave);
        let namespace = mangled(node.namespace());
        let name = mangled(node.name());
        let start =
            format!("{SPACE}/{domain}/{session}/{node_id}/{entity_id}/{kind}/{enclave}/{namespace}/{name}");
        match entity.endpoint() {
            None => start,
            Some(Endpoint { topic, message_type, hash, qos }) => {
                let topic = mangled(topic.as_str());
                let hash = TypeHash::in_key(hash.as_ref());
                format!("{start}/{topic}/{}/{hash}/{}", message_type.dds(), qos.token())
            }
        }
    }

    /// Returns the key expression of all tokens of a domain.
    pub fn all(domain: u32) -> String {
        format!("{SPACE}/{domain}/**")
    }

    /// Returns the key expression of the tokens of all publishers of a domain.
    pub fn all_publishers(domain: u32) -> String {
        format!("{SPACE}/{domain}/*/*/*/MP/**")
    }

    /// Returns the key expression of the tokens of the publishers of a topic; if it has parameters, it may match
    /// others.
    pub fn publishers(domain: u32, topic: &TopicName) -> String {
        let topic = match topic.pattern() {
            Some(pattern) => mangled(&pattern.glob()).replace('*', "$*"),
            None => mangled(topic.as_str()),
        };
        format!("{SPACE}/{domain}/*/*/*/MP/*/*/*/{topic}/**")
    }

    /// Parses the key of a token; `None` if this version does not know it.
    pub fn parse(key: &str) -> Option<Token> {
        let mut parts = key.split('/');
        let mut part = || parts.next().filter(|part| !part.is_empty());
        if part()? != SPACE {
            return None;
        }
        let domain = part()?.parse().ok()?;
        let session = part()?.to_owned();
        let node_id = part()?.parse().ok()?;
        let entity_id = part()?.parse().ok()?;
        let kind = part()?;
        let enclave = demangled(part()?);
        let namespace = demangled(part()?);
        let node = NodeName::new(&namespace, &demangled(part()?)).ok()?;
        let endpoint = match kind {
            "NN" => None,
            _ => Some(Endpoint {
                topic: TopicName::parse(&demangled(part()?)).ok()?,
                message_type: MessageType::from_dds(&demangled(part()?))?,
                hash: TypeHash::of_key(part()?),
                qos: Qos::of_token(part()?)?,
            }),
        };
        let entity = match (kind, endpoint) {
            ("NN", None) => Entity::Node,
            ("MP", Some(endpoint)) => Entity::Publisher(endpoint),
            ("MS", Some(endpoint)) => Entity::Subscription(endpoint),
            ("SS", Some(endpoint)) => Entity::Service(endpoint),
            ("SC", Some(endpoint)) => Entity::Client(endpoint),
            _ => return None,
        };
        Some(Token { domain, session, node_id, entity_id, enclave, node, entity })
    }
}

/// Returns a name as one part of a key.
fn mangled(name: &str) -> String {
    if name.is_empty() { "%".to_owned() } else { name.replace('/', "%") }
}

fn demangled(part: &str) -> String {
    part.replace('%', "/")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ros2::qos::any_qos;
    use proptest::prelude::*;

    const HASH: &str = "RIHS01_df668c740482bbd48fb39d76a70dfd4bd59db1288021743503259e948f6b1a18";

    fn talker(entity: Entity) -> Token {
        Token {
            domain: 2,
            session: "8b20917502ee955ac4476e0266340d5c".to_owned(),
            node_id: 0,
            entity_id: if entity == Entity::Node { 0 } else { 10 },
            enclave: "/".to_owned(),
            node: NodeName::parse("talker").unwrap(),
            entity,
        }
    }

    fn chatter() -> Endpoint {
        Endpoint {
            topic: TopicName::parse("/chatter").unwrap(),
            message_type: MessageType::parse("std_msgs/msg/String").unwrap(),
            hash: TypeHash::parse(HASH).ok(),
            qos: Qos { depth: 7, ..Qos::DEFAULT },
        }
    }

    #[test]
    fn tokens_are_those_of_rmw_zenoh() {
        let start = "@ros2_lv/2/8b20917502ee955ac4476e0266340d5c/0";
        let end = format!("%/%/talker/%chatter/std_msgs::msg::dds_::String_/{HASH}/::,7:,:,:,,");
        for (entity, key) in [
            (Entity::Node, format!("{start}/0/NN/%/%/talker")),
            (Entity::Publisher(chatter()), format!("{start}/10/MP/{end}")),
            (Entity::Subscription(chatter()), format!("{start}/10/MS/{end}")),
            (Entity::Service(chatter()), format!("{start}/10/SS/{end}")),
            (Entity::Client(chatter()), format!("{start}/10/SC/{end}")),
        ] {
            let token = talker(entity);
            assert_eq!(token.key(), key);
            assert_eq!(Token::parse(&key), Some(token));
        }
        // Later versions append the formats of devices.
        let more = format!("{start}/10/MP/{end}/cpu:");
        assert_eq!(Token::parse(&more), Some(talker(Entity::Publisher(chatter()))));
        let named = NodeName::parse("/robot1/front/camera").unwrap();
        let token = Token { node: named, enclave: "/a/b".to_owned(), ..talker(Entity::Node) };
        assert!(token.key().ends_with("/NN/%a%b/%robot1%front/camera"), "{}", token.key());
        assert_eq!(Token::parse(&token.key()), Some(token));
    }

    #[test]
    fn other_keys_are_no_tokens() {
        let key = talker(Entity::Publisher(chatter())).key();
        for (part, other) in [
            ("@ros2_lv", "@ros2"),
            ("/2/", "/x/"),
            ("/MP/", "/XX/"),
            ("/talker/", "//"),
            ("%chatter", "chatter"),
            ("::,7", ":,7"),
            ("dds_::", ""),
        ] {
            assert_eq!(Token::parse(&key.replacen(part, other, 1)), None, "{part}");
        }
        for length in 0..key.len() - 1 {
            // A shorter quality of service may be valid.
            _ = Token::parse(&key[..length]);
        }
        assert_eq!(Token::parse(&key[..key.len() / 2]), None);
    }

    #[cfg(feature = "zenoh")]
    #[test]
    fn expressions_match_tokens() {
        let token = talker(Entity::Publisher(chatter())).key();
        let topic = TopicName::parse("/chatter").unwrap();
        assert!(crate::zenoh::keys_meet(&token, &Token::all(2)));
        assert!(!crate::zenoh::keys_meet(&token, &Token::all(3)));
        assert!(crate::zenoh::keys_meet(&token, &Token::publishers(2, &topic)));
        assert!(crate::zenoh::keys_meet(&token, &Token::all_publishers(2)));
        assert!(!crate::zenoh::keys_meet(&token.replace("/MP/", "/MS/"), &Token::all_publishers(2)));
        assert!(!crate::zenoh::keys_meet(&token.replace("/MP/", "/MS/"), &Token::publishers(2, &topic)));
        assert!(!crate::zenoh::keys_meet(&token, &Token::publishers(2, &TopicName::parse("/chat").unwrap())));
    }

    proptest! {
        #[test]
        fn written_tokens_are_parsed_back(
            (domain, node_id, entity_id) in any::<(u32, u64, u64)>(),
            session in "[0-9a-f]{1,32}",
            (namespace, topic) in ("(/[a-z_][a-z0-9_]{0,8}){0,3}", "(/[a-z_][a-z0-9_]{0,8}){1,5}"),
            hash in proptest::option::of(Just(TypeHash::parse(HASH).unwrap())),
            qos in any_qos(),
            kind in 0..5,
        ) {
            let topic = TopicName::parse(&topic).unwrap();
            let endpoint = Endpoint { topic, message_type: chatter().message_type, hash, qos };
            let entity = match kind {
                0 => Entity::Node,
                1 => Entity::Publisher(endpoint),
                2 => Entity::Subscription(endpoint),
                3 => Entity::Service(endpoint),
                _ => Entity::Client(endpoint),
            };
            let node = NodeName::new(&namespace, "n").unwrap();
            let token = Token { domain, session, node_id, entity_id, enclave: "/".to_owned(), node, entity };
            prop_assert_eq!(Token::parse(&token.key()), Some(token));
        }

        #[test]
        fn no_text_panics(text in any::<String>(), likely in "(@ros2_lv/)?[NMPS0-9%/:,a-z]{0,80}") {
            _ = (Token::parse(&text), Token::parse(&likely));
        }
    }
}
