//! The graph of ROS 2 as data: nodes, topics, publishers and subscriptions.

use std::collections::{BTreeMap, BTreeSet};

use super::token::{Endpoint, Entity, Token};
use super::{MessageType, NodeName, TopicName};

/// Limit of tokens in a graph; further ones are counted.
const TOKENS: usize = 65_536;

/// The existing nodes, topics and services, from the tokens that announce them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Graph {
    tokens: BTreeMap<String, Token>,
    unknown: u64,
}

/// A topic, with its publishers and subscriptions.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Topic {
    /// The types, sorted by name. More than one is a mistake in the system.
    pub types: BTreeSet<MessageType>,
    /// The publishers, each with its node.
    pub publishers: Vec<(NodeName, Endpoint)>,
    /// The subscriptions, each with its node.
    pub subscriptions: Vec<(NodeName, Endpoint)>,
}

impl Graph {
    /// Adds the token of this key. Returns whether the graph has changed.
    pub fn add(&mut self, key: &str) -> bool {
        match Token::parse(key) {
            Some(token) if self.tokens.len() < TOKENS || self.tokens.contains_key(key) => {
                self.tokens.insert(key.to_owned(), token).is_none()
            }
            _ => {
                self.unknown += 1;
                false
            }
        }
    }

    /// Removes the token of this key. Returns whether the graph has changed.
    pub fn remove(&mut self, key: &str) -> bool {
        self.tokens.remove(key).is_some()
    }

    /// Returns the nodes.
    pub fn nodes(&self) -> BTreeSet<&NodeName> {
        self.tokens.values().map(|token| &token.node).collect()
    }

    /// Returns the topics.
    pub fn topics(&self) -> BTreeMap<&TopicName, Topic> {
        let mut topics: BTreeMap<&TopicName, Topic> = BTreeMap::new();
        for token in self.tokens.values() {
            let (Entity::Publisher(endpoint) | Entity::Subscription(endpoint)) = &token.entity else {
                continue;
            };
            let topic = topics.entry(&endpoint.topic).or_default();
            topic.types.insert(endpoint.message_type.clone());
            let ends = match token.entity {
                Entity::Publisher(_) => &mut topic.publishers,
                _ => &mut topic.subscriptions,
            };
            ends.push((token.node.clone(), endpoint.clone()));
        }
        topics
    }

    /// Returns the services, each with its type.
    pub fn services(&self) -> BTreeSet<(&TopicName, &MessageType)> {
        let service = |token: &'_ Token| matches!(token.entity, Entity::Service(_));
        let endpoints = self.tokens.values().filter(|token| service(token));
        endpoints
            .filter_map(|token| token.entity.endpoint())
            .map(|end| (&end.topic, &end.message_type))
            .collect()
    }

    /// Returns the tokens.
    pub fn tokens(&self) -> impl Iterator<Item = &Token> {
        self.tokens.values()
    }

    /// Returns the number of keys that are no tokens of this version, or beyond the limit.
    pub fn unknown(&self) -> u64 {
        self.unknown
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HASH: &str = "RIHS01_df668c740482bbd48fb39d76a70dfd4bd59db1288021743503259e948f6b1a18";

    #[test]
    fn topics_have_their_publishers_and_subscriptions() {
        let string = format!("std_msgs::msg::dds_::String_/{HASH}/::,7:,:,:,,");
        let other = format!("std_msgs::msg::dds_::Bool_/{HASH}/2::,5:,:,:,,");
        let mut graph = Graph::default();
        for key in [
            "@ros2_lv/0/ab/0/0/NN/%/%/talker".to_owned(),
            format!("@ros2_lv/0/ab/0/1/MP/%/%/talker/%chatter/{string}"),
            "@ros2_lv/0/cd/0/0/NN/%/%robot/listener".to_owned(),
            format!("@ros2_lv/0/cd/0/1/MS/%/%robot/listener/%chatter/{other}"),
            format!("@ros2_lv/0/cd/0/2/SS/%/%robot/listener/%add/{other}"),
        ] {
            assert!(graph.add(&key));
            assert!(!graph.add(&key), "known already");
        }
        assert!(!graph.add("@ros2_lv/0/ab/0/0/XX/%/%/talker"));
        assert_eq!((graph.unknown(), graph.tokens().count()), (1, 5));
        let nodes: Vec<String> = graph.nodes().iter().map(ToString::to_string).collect();
        assert_eq!(nodes, ["/talker", "/robot/listener"]);
        let topics = graph.topics();
        let (name, topic) = topics.iter().next().unwrap();
        let types: Vec<String> = topic.types.iter().map(ToString::to_string).collect();
        assert_eq!((name.as_str(), topics.len()), ("/chatter", 1));
        assert_eq!(types, ["std_msgs/msg/Bool", "std_msgs/msg/String"]);
        assert_eq!(topic.publishers[0].1.qos.to_string(), "reliable, volatile, keep_last 7");
        assert_eq!(topic.subscriptions[0].0.to_string(), "/robot/listener");
        assert_eq!(graph.services().len(), 1);
        drop(topics);
        assert!(graph.remove("@ros2_lv/0/ab/0/0/NN/%/%/talker"));
        assert!(!graph.remove("@ros2_lv/0/ab/0/0/NN/%/%/talker"));
        assert_eq!(graph.nodes().len(), 2, "the publisher has a node, too");
    }
}
