//! Network location of a ROS 2 node: loopback by default.

use std::hash::{BuildHasher, RandomState};

use rondel_net::networks::NetworkSettings;
use rondel_net::ros2::{self, Middleware, NodeName};
use rondel_net::{dds, zenoh};

use crate::failure::{Failure, Result};
use crate::link::free_port;

/// Middleware of a ROS 2 node, and its location there.
#[derive(Clone, Debug)]
pub enum Place {
    /// Zenoh: the node listens on this endpoint, as the router of rmw_zenoh does.
    Zenoh(String),
    /// Zenoh: the node connects to the router at this endpoint.
    ZenohRouter(String),
    /// DDS, in this domain and on this network interface.
    Dds(u32, String),
}

impl Place {
    /// Returns a place that no other program uses.
    ///
    /// # Errors
    /// When there is none.
    pub fn free(middleware: Middleware) -> Result<Place> {
        Ok(match middleware {
            Middleware::Zenoh => Place::Zenoh(format!("tcp/127.0.0.1:{}", free_port()?)),
            Middleware::Dds => {
                // Up to 100, its ports are below those that the system gives away by itself.
                let domain = 1 + RandomState::new().hash_one(std::process::id()) as u32 % 100;
                Place::Dds(domain, "lo".to_owned())
            }
        })
    }

    /// Returns the settings of a node of this name.
    ///
    /// # Errors
    /// When it is no name.
    pub fn settings(&self, node: &str) -> Result<NetworkSettings> {
        let (middleware, domain) = match self {
            Place::Zenoh(_) | Place::ZenohRouter(_) => (Middleware::Zenoh, 0),
            Place::Dds(domain, _) => (Middleware::Dds, *domain),
        };
        let node = NodeName::new("/", node).map_err(network)?;
        let ros2 = ros2::Settings { node, ..ros2::Settings::new(middleware, domain).map_err(network)? };
        let mut settings = NetworkSettings { ros2: Some(Ok(ros2)), ..NetworkSettings::default() };
        match self {
            Place::Zenoh(endpoint) => {
                let (mode, listen) = (Some(zenoh::Mode::Router), vec![endpoint.clone()]);
                settings.zenoh = Some(zenoh::Settings { mode, listen, ..zenoh::Settings::default() });
            }
            Place::ZenohRouter(endpoint) => {
                let (mode, connect) = (Some(zenoh::Mode::Client), vec![endpoint.clone()]);
                settings.zenoh = Some(zenoh::Settings { mode, connect, ..zenoh::Settings::default() });
            }
            Place::Dds(domain, interface) => {
                let (domain, interface) = (*domain, Some(interface.clone()));
                settings.dds = Some(dds::Settings { domain, interface, ..dds::Settings::default() });
            }
        }
        Ok(settings)
    }
}

fn network(error: impl std::fmt::Display) -> Failure {
    Failure::Network(error.to_string())
}
