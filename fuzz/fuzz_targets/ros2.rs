//! Names, types, keys, tokens and attachments of ROS 2: no bytes panic, and what is understood is written again.
#![no_main]

use libfuzzer_sys::fuzz_target;
use rondel_net::ros2::keys::{DataKey, data_key};
use rondel_net::ros2::{Attachment, Graph, MessageType, NodeName, Qos, Settings, Token, TopicName, TypeHash};

fuzz_target!(|data: &[u8]| {
    if let Some(attachment) = Attachment::read(data) {
        assert_eq!(Attachment::read(&attachment.write()), Some(attachment));
    }
    let Ok(text) = std::str::from_utf8(data) else { return };
    if let Some(token) = Token::parse(text) {
        assert_eq!(Token::parse(&token.key()), Some(token));
    }
    if let Some(key) = DataKey::parse(text) {
        let DataKey { domain, topic, message_type, hash, .. } = &key;
        let again = DataKey::parse(&data_key(*domain, topic, message_type, hash.as_ref()));
        assert_eq!(again, Some(DataKey { suffix: String::new(), ..key.clone() }));
    }
    if let Ok(node) = NodeName::parse(text) {
        assert_eq!(NodeName::parse(&node.to_string()), Ok(node));
    }
    if let Ok(message_type) = MessageType::parse(text) {
        assert_eq!(MessageType::from_dds(&message_type.dds()), Some(message_type));
    }
    if let Ok(hash) = TypeHash::parse(text) {
        assert_eq!(hash.to_string(), text.to_ascii_lowercase().replacen("rihs", "RIHS", 1));
    }
    if let Ok(topic) = TopicName::parse(text) {
        assert_eq!(TopicName::from_dds(&topic.dds()), Some(topic));
    }
    if let Ok(node) = NodeName::new("/robot1", "camera") {
        _ = TopicName::resolve(text, &node);
    }
    let mut graph = Graph::default();
    text.lines().for_each(|line| _ = graph.add(line));
    _ = (graph.topics(), graph.services(), graph.nodes());
    _ = (Qos::profile(text), Settings::from_environment(|_| Some(text.to_owned())));
});
