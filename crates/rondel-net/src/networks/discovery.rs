//! Discovery on the networks: types, endpoints and offers of publishers.

use std::time::Duration;

use rondel_decode::schema::Schema;

use super::{Networks, Ros2};
use crate::address::Address;
use crate::offers::Offers;
use crate::ros2::keys::DataKey;
use crate::{dds, ros2, zenoh};

impl Networks {
    /// Waits up to `limit` for a publisher of a topic on DDS or ROS 2, and returns the type that it announces; `None`
    /// if there is none in time, and on other networks. On ROS 2 over Zenoh it is the type described by its node. If
    /// publishers have several types, one that `fits` is preferred.
    ///
    /// # Errors
    /// The reason, with the address.
    pub fn discovered_type(
        &self,
        address: &Address,
        limit: Duration,
        fits: impl Fn(&Schema) -> bool,
    ) -> Result<Option<dds::DiscoveredType>, String> {
        let failed =
            |error: &dyn std::fmt::Display| format!("cannot discover the type of {address}: {error}");
        match (address, &self.dds, &self.ros2) {
            (Address::Dds(topic, topic_type, _), Some(participant), _) => {
                let pattern = address.pattern();
                let is_meant = |name: &str| match &pattern {
                    None => name == topic,
                    Some(pattern) => pattern.captures(name).is_some(),
                };
                participant
                    .discovered_type(is_meant, topic_type.name(), limit, fits)
                    .map_err(|error| failed(&error))
            }
            (Address::Ros2(of, _), Some(participant), Some(Ros2::Dds)) => {
                let name = of.message_type.as_ref().map(ros2::MessageType::dds);
                let is_meant =
                    |name: &str| ros2::TopicName::from_dds(name).is_some_and(|name| of.name.is_met_by(&name));
                participant
                    .discovered_type(is_meant, name.as_deref(), limit, fits)
                    .map_err(|error| failed(&error))
            }
            (Address::Ros2(of, _), _, Some(Ros2::Zenoh(node))) => {
                let found = node.discovered_type(&of.name, of.message_type.as_ref(), limit, fits);
                Ok(found.map_err(|error| failed(&error))?.map(described))
            }
            (Address::Zenoh(key, _), ..) => {
                let Some((key, session)) = DataKey::parse(key).zip(self.zenoh.as_ref()) else {
                    return Ok(None);
                };
                let found = session.ros2_type(key.domain, &key.topic, Some(&key.message_type), limit, fits);
                Ok(found.map_err(|error| failed(&error))?.map(described))
            }
            _ => Ok(None),
        }
    }

    /// Returns the publishers and subscriptions on DDS, once no others have been discovered for `quiet`, or after
    /// `limit`.
    ///
    /// # Errors
    /// The reason.
    pub fn dds_endpoints(
        &self,
        quiet: Duration,
        limit: Duration,
    ) -> Result<Vec<dds::DiscoveredEndpoint>, String> {
        let listed = self.dds.as_ref().map(|participant| participant.endpoints(quiet, limit));
        listed.transpose().map(Option::unwrap_or_default).map_err(|error| error.to_string())
    }

    /// Returns the publishers on the networks of addresses with their offers, and keeps watching them. On networks
    /// other than DDS and ROS 2 there are none.
    ///
    /// # Errors
    /// The reason.
    pub fn offers<'a>(&self, addresses: impl Iterator<Item = &'a Address>) -> Result<Offers, String> {
        let is_ros2_on_dds = matches!(self.ros2, Some(Ros2::Dds));
        let mut offers = Offers::default();
        offers.is_ros2_on_dds = is_ros2_on_dds;
        let failed = |error: &dyn std::fmt::Display| format!("cannot watch publishers: {error}");
        for address in addresses {
            let is_on_dds = matches!(address, Address::Dds(..))
                || (is_ros2_on_dds && matches!(address, Address::Ros2(..)));
            if let Some(participant) = self.dds.as_ref().filter(|_| is_on_dds && offers.dds.is_none()) {
                offers.dds = Some(participant.publishers().map_err(|error| failed(&error))?);
            }
            if let (Address::Ros2(..), Some(Ros2::Zenoh(node)), None) = (address, &self.ros2, &offers.zenoh) {
                offers.zenoh = Some(node.publishers().map_err(|error| failed(&error))?);
            }
        }
        Ok(offers)
    }
}

/// Returns a type described by a node of ROS 2 over Zenoh, in the form of DDS.
fn described(found: zenoh::DescribedType) -> dds::DiscoveredType {
    dds::DiscoveredType { name: found.message_type.dds(), keyed: false, schema: found.schema }
}
