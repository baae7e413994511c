//! Publishing at an address of any network.

use std::sync::Arc;

use rondel_decode::schema::Schema;

use super::{Networks, Ros2};
use crate::adapter::Publisher;
use crate::address::{Address, Encoding};
use crate::cdr_string::Wrapping;
use crate::{dds, mqtt, ros2, zenoh};

impl Networks {
    /// Creates a publisher at an address. A `batching` one must be released after every batch; on Zenoh it makes no
    /// difference.
    ///
    /// # Errors
    /// The reason, with the address.
    pub fn publisher(&self, address: &Address, batching: bool) -> Result<Box<dyn Publisher>, String> {
        self.publisher_of(address, None, batching)
    }

    /// Creates a publisher of messages of this type, which others on DDS can then discover. On other networks the type
    /// makes no difference.
    ///
    /// # Errors
    /// The reason, with the address.
    pub fn publisher_of(
        &self,
        address: &Address,
        schema: Option<&Schema>,
        batching: bool,
    ) -> Result<Box<dyn Publisher>, String> {
        let publisher = self.plain_publisher(address, schema, batching)?;
        Ok(match address.encoding() {
            Encoding::Of(_) => publisher,
            Encoding::CdrString if self.has_text(address) => publisher,
            Encoding::CdrString => Box::new(Wrapping::new(publisher)),
        })
    }

    /// Answers queries of the present state of a topic until the result is dropped; `None` on networks without queries.
    ///
    /// # Errors
    /// The reason, with the address.
    pub fn answer(
        &self,
        address: &Address,
        state: Arc<dyn zenoh::State>,
    ) -> Result<Option<zenoh::Answering>, String> {
        match (address, &self.zenoh) {
            (Address::Zenoh(key, _), Some(session)) => {
                let answering = session.answer(key, state);
                answering.map(Some).map_err(|e| format!("cannot answer on {address}: {e}"))
            }
            _ => Ok(None),
        }
    }

    fn plain_publisher(
        &self,
        address: &Address,
        schema: Option<&Schema>,
        batching: bool,
    ) -> Result<Box<dyn Publisher>, String> {
        let failed = |reason: String| format!("cannot publish on {address}: {reason}");
        if let (Address::Kafka(place, _), Some(session)) = (address, &self.kafka) {
            return session.publisher(place).map_err(|e| failed(e.to_string()));
        }
        match (address, &self.zenoh, &self.dds, &self.mqtt) {
            (Address::Zenoh(key, _), Some(session), ..) => {
                let settings = zenoh::PublisherSettings {
                    encoding: Some(on_zenoh(address.encoding()).to_owned()),
                    numbered: true,
                    ..zenoh::PublisherSettings::default()
                };
                let made = session.publisher(key, &settings).map_err(|e| failed(e.to_string()))?;
                Ok(Box::new(made))
            }
            (Address::Mqtt(topic, ..), .., Some((session, settings))) => {
                let made = session.publisher(topic, &mqtt::PublisherSettings { batching, ..*settings });
                Ok(Box::new(made.map_err(|e| failed(e.to_string()))?))
            }
            (Address::Dds(name, topic_type, qos), _, Some(participant), _) => {
                let settings = dds::PublisherSettings { batching };
                let of = dds::DeclaredTopic { topic_type, qos, schema };
                let made = participant.publisher_as(name, of, settings);
                Ok(Box::new(made.map_err(|e| failed(e.to_string()))?))
            }
            (Address::Ros2(of, encoding), _, dds, _) => match (&self.ros2, dds) {
                (Some(Ros2::Zenoh(node)), _) => {
                    let endpoint = of.endpoint(ros2::Qos::DEFAULT).map_err(failed)?;
                    Ok(Box::new(node.publisher(&endpoint).map_err(|e| failed(e.to_string()))?))
                }
                (Some(Ros2::Dds), Some(participant)) => {
                    let (topic_type, qos) = (of.dds_type(*encoding), of.dds_qos());
                    let settings = dds::PublisherSettings { batching };
                    let declared = dds::DeclaredTopic { topic_type: &topic_type, qos: &qos, schema };
                    let made = participant.publisher_as(&of.name.dds(), declared, settings);
                    Ok(Box::new(made.map_err(|e| failed(e.to_string()))?))
                }
                _ => Err(failed("ROS 2 was not joined".to_owned())),
            },
            _ => Err(failed("it is not on a network that was joined".to_owned())),
        }
    }
}

/// Returns the name of an encoding on Zenoh.
fn on_zenoh(encoding: Encoding) -> &'static str {
    use rondel_decode::Encoding as Payload;
    match encoding {
        Encoding::CdrString | Encoding::Of(Payload::Cdr) => "application/cdr",
        Encoding::Of(Payload::Json) => "application/json",
        Encoding::Of(Payload::Protobuf) => "application/protobuf",
        Encoding::Of(Payload::Cbor) => "application/cbor",
        // Zenoh has no name for the others.
        Encoding::Of(_) => "application/octet-stream",
    }
}
