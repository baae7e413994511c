//! Clients of services of ROS 2.

use super::{Networks, Ros2};
use crate::calling::ServiceClient;
use crate::ros2::Service;

impl Networks {
    /// Returns a client of a service of ROS 2.
    ///
    /// # Errors
    /// The reason, with the service.
    pub fn service_client(&self, service: &Service) -> Result<Box<dyn ServiceClient>, String> {
        let failed = |reason: String| format!("cannot call ros2:{}: {reason}", service.name);
        match (&self.ros2, &self.dds) {
            (Some(Ros2::Zenoh(node)), _) => {
                Ok(Box::new(node.service_client(service).map_err(|error| failed(error.to_string()))?))
            }
            (Some(Ros2::Dds), Some(participant)) => {
                let client = participant.service_client(service);
                Ok(Box::new(client.map_err(|error| failed(error.to_string()))?))
            }
            _ => Err(failed("ROS 2 was not joined".to_owned())),
        }
    }
}
