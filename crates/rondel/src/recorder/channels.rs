//! Topics as recordings describe them: name, encoding, and the definition of the type.

use std::sync::Arc;

use rondel_decode::{Encoding, MessageType};
use rondel_recording::RecordedSchema;

use crate::deployment::Binding;

/// What a recording of Rondel notes about a topic: its address.
pub const ADDRESS: &str = "rondel.address";

/// A topic as a recording describes it.
#[derive(Clone, Debug)]
pub struct Channel {
    /// The name of the topic.
    pub name: String,
    /// The encoding of its messages, as recordings call it.
    pub encoding: &'static str,
    /// The definition of their type, if it is known and can be written.
    pub schema: Option<Arc<RecordedSchema>>,
    /// What else is noted about it.
    pub metadata: Vec<(String, String)>,
}

impl Channel {
    /// The topic of a source.
    pub fn of(binding: &Binding) -> Channel {
        let text = binding.address.to_string();
        let name = text.split_once(':').map_or(text.as_str(), |(_, name)| name);
        let encoding = match binding.input.encoding {
            Encoding::Flatbuffers => "flatbuffer",
            other => other.name(),
        };
        let schema = binding.input.message_type.as_deref().and_then(schema);
        let metadata = vec![(ADDRESS.to_owned(), text.clone())];
        Channel { name: name.to_owned(), encoding, schema: schema.map(Arc::new), metadata }
    }

    /// The same for another topic.
    pub fn named(&self, name: &str) -> Channel {
        Channel { name: name.to_owned(), ..self.clone() }
    }

    /// Whether its messages are those of ROS 2.
    pub fn is_ros2(&self) -> bool {
        self.schema.as_ref().is_some_and(|schema| schema.encoding.starts_with("ros2"))
    }
}

/// The definition of a type as recordings have it, if a language of theirs can say it.
fn schema(of: &MessageType) -> Option<RecordedSchema> {
    let (name, encoding, data) = match of {
        MessageType::Cdr(schema) => match (schema.ros_name(), schema.to_msg()) {
            (Some(name), Some(text)) => (name, "ros2msg", text.into_bytes()),
            _ => (schema.name().to_owned(), "omgidl", schema.to_idl()?.into_bytes()),
        },
        MessageType::Protobuf(of) => (of.name().to_owned(), "protobuf", of.source().to_vec()),
        MessageType::Flatbuffers(of) => (of.name().to_owned(), "flatbuffer", of.source().to_vec()),
        _ => return None,
    };
    Some(RecordedSchema { name, encoding: encoding.to_owned(), data })
}
