//! The interface between a listener and the command that reads its messages.

use std::sync::Arc;

use rondel_decode::MessageType;
use rondel_event::TopicId;
use rondel_net::adapter::{Receiver, Subscription};

use crate::deployment::{Binding, Deployment};
use crate::live::networks::Networks;

/// A subscription, or the topic that cannot be subscribed to and the reason.
pub type Subscribed = Result<Box<dyn Subscription>, String>;

/// Reads the messages of the topics of a deployment.
pub trait Reader: Send + 'static {
    /// Subscribes to a topic whose type is known or not needed.
    fn subscribe(&self, networks: &Networks, topic: TopicId, binding: &Binding) -> Subscribed;

    /// Takes the type of a topic that was not known at the start, before the topic is subscribed to.
    ///
    /// # Errors
    /// The reason why messages of this type cannot be read.
    fn resolve(&self, topic: TopicId, binding: &Binding) -> Result<(), String>;

    /// Returns the number of the subscription to a topic. By default it is that of the topic.
    fn number(&self, topic: TopicId) -> TopicId {
        topic
    }

    /// Subscribes to addresses that are no sources, such as `/clock`. By default to none.
    fn subscribe_further(&self, _networks: &Networks, _deployment: &Deployment) -> Vec<Subscribed> {
        Vec::new()
    }
}

/// Subscribes a receiver to a source. On DDS, publishers of another type than that of the source count as incompatible.
pub fn subscribe<R: Receiver>(
    networks: &Networks,
    topic: TopicId,
    binding: &Binding,
    receiver: Arc<R>,
) -> Subscribed {
    let schema = match binding.input.message_type.as_deref() {
        Some(MessageType::Cdr(schema)) => Some(schema),
        _ => None,
    };
    networks.subscribe_of(&binding.address, schema, topic, receiver)
}
