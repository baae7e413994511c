//! Subscribing to an address of any network.

use std::sync::Arc;

use rondel_decode::schema::Schema;
use rondel_event::TopicId;

use super::{Networks, Ros2};
use crate::adapter::{Receiver, Subscription};
use crate::address::{Address, Encoding};
use crate::cdr_string::Unwrapping;
use crate::{dds, mqtt, ros2};

impl Networks {
    /// Subscribes to an address.
    ///
    /// # Errors
    /// The reason, with the address.
    pub fn subscribe<R: Receiver + ?Sized>(
        &self,
        address: &Address,
        topic: TopicId,
        receiver: Arc<R>,
    ) -> Result<Box<dyn Subscription>, String> {
        self.subscribe_of(address, None, topic, receiver)
    }

    /// Subscribes to messages of this type. On DDS, publishers of another type are refused as by
    /// [`dds::Participant::subscribe_as`]; on other networks the type makes no difference.
    ///
    /// # Errors
    /// The reason, with the address.
    pub fn subscribe_of<R: Receiver + ?Sized>(
        &self,
        address: &Address,
        schema: Option<&Schema>,
        topic: TopicId,
        receiver: Arc<R>,
    ) -> Result<Box<dyn Subscription>, String> {
        let address = &*address.subscribed();
        match address.encoding() {
            Encoding::Of(_) => self.subscribe_plainly(address, schema, topic, receiver),
            Encoding::CdrString if self.has_text(address) => {
                self.subscribe_plainly(address, None, topic, receiver)
            }
            Encoding::CdrString => {
                let unwrapping = Unwrapping::new(receiver, address.to_string());
                let counting = unwrapping.counting();
                let subscription = self.subscribe_plainly(address, None, topic, Arc::new(unwrapping))?;
                Ok(Box::new(counting(subscription)))
            }
        }
    }

    /// Subscribes to every topic of DDS whose name matches a pattern, as publishers are discovered: see
    /// [`dds::Participant::subscribe_matching`].
    ///
    /// # Errors
    /// The reason, with the pattern.
    pub fn subscribe_matching<R: Receiver + ?Sized>(
        &self,
        (pattern, topic_type, qos): (&str, &dds::TopicType, &dds::TopicQos),
        schema: Option<&Schema>,
        topic: TopicId,
        select: impl Fn(&str) -> Option<dds::Selected<R>> + Send + 'static,
    ) -> Result<Box<dyn Subscription>, String> {
        let failed = |reason: String| format!("cannot subscribe to dds:{pattern}: {reason}");
        let participant = self.dds.as_ref().ok_or_else(|| failed("DDS was not joined".to_owned()))?;
        let of = dds::DeclaredTopic { topic_type, qos, schema };
        let made = participant.subscribe_matching(pattern, of, topic, select);
        Ok(Box::new(made.map_err(|e| failed(e.to_string()))?))
    }

    fn subscribe_plainly<R: Receiver + ?Sized>(
        &self,
        address: &Address,
        schema: Option<&Schema>,
        topic: TopicId,
        receiver: Arc<R>,
    ) -> Result<Box<dyn Subscription>, String> {
        let failed = |reason: String| format!("cannot subscribe to {address}: {reason}");
        if let (Address::Kafka(place, _), Some(session)) = (address, &self.kafka) {
            return session.subscribe(place, topic, receiver).map_err(|e| failed(e.to_string()));
        }
        match (address, &self.zenoh, &self.dds, &self.mqtt) {
            (Address::Zenoh(key, _), Some(session), ..) => {
                let made = session.subscribe(key, topic, receiver).map_err(|e| failed(e.to_string()))?;
                Ok(Box::new(made))
            }
            (Address::Dds(name, topic_type, qos), ..) if dds::is_pattern(name) => {
                let select = numbered(receiver, topic, |name| name);
                self.subscribe_matching((name.as_str(), topic_type, qos), schema, topic, select)
            }
            (Address::Dds(name, topic_type, qos), _, Some(participant), _) => {
                let of = dds::DeclaredTopic { topic_type, qos, schema };
                let made = participant.subscribe_as(name, of, topic, receiver);
                Ok(Box::new(made.map_err(|e| failed(e.to_string()))?))
            }
            (Address::Mqtt(filter, settings, encoding), .., Some((session, _))) => {
                // In Protobuf, an empty payload is a message of default values.
                let empty = *encoding == Encoding::Of(rondel_decode::Encoding::Protobuf);
                let settings = mqtt::SubscriptionSettings { empty: settings.empty || empty, ..*settings };
                let made = session.subscribe(filter, settings, topic, receiver);
                Ok(Box::new(made.map_err(|e| failed(e.to_string()))?))
            }
            (Address::Ros2(of, encoding), _, dds, _) => match (&self.ros2, dds) {
                (Some(Ros2::Zenoh(node)), _) => {
                    let endpoint = of.endpoint(ros2::Qos::BEST_AVAILABLE).map_err(failed)?;
                    let made =
                        node.subscribe(&endpoint, topic, receiver).map_err(|e| failed(e.to_string()))?;
                    Ok(Box::new(made))
                }
                (Some(Ros2::Dds), Some(participant)) => {
                    let (name, topic_type, qos) = (of.name.dds(), of.dds_type(*encoding), of.dds_qos());
                    if of.name.pattern().is_some() {
                        let select = numbered(receiver, topic, ros2::names::without_prefix);
                        return self.subscribe_matching((&name, &topic_type, &qos), schema, topic, select);
                    }
                    let of = dds::DeclaredTopic { topic_type: &topic_type, qos: &qos, schema };
                    let made = participant.subscribe_as(&name, of, topic, receiver);
                    Ok(Box::new(made.map_err(|e| failed(e.to_string()))?))
                }
                _ => Err(failed("ROS 2 was not joined".to_owned())),
            },
            _ => Err(failed("it is not on a network that was joined".to_owned())),
        }
    }
}

/// Selects the topics of a pattern for a receiver: those that it numbers, if it [wants names](Receiver::wants_names),
/// otherwise all. `called` returns the name of a topic as the receiver sees it.
fn numbered<R: Receiver + ?Sized>(
    receiver: Arc<R>,
    topic: TopicId,
    called: fn(&str) -> &str,
) -> impl Fn(&str) -> Option<dds::Selected<R>> + Send + 'static {
    let wants_names = receiver.wants_names(topic);
    move |name| {
        let number = wants_names.then(|| receiver.number(topic, called(name)));
        (number != Some(None)).then(|| (Arc::clone(&receiver), number.flatten()))
    }
}
