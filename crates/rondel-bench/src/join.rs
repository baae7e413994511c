//! The options with which a participant joins a network, and the joining.

use std::time::Duration;

use clap::Args;
use rondel_net::address::Address;
use rondel_net::networks::{Joining, NetworkSettings, Networks};
use rondel_net::{mqtt, zenoh};

use crate::failure::{Failure, Result};
use crate::options::duration;
use crate::say;

/// Options for joining a network: those of `rondel run` that measurements need.
#[derive(Clone, Debug, Default, Args)]
pub struct Join {
    /// Connect to this Zenoh endpoint, such as tcp/127.0.0.1:7447
    #[arg(long, value_name = "ENDPOINT")]
    pub zenoh_connect: Vec<String>,
    /// Listen on this Zenoh endpoint
    #[arg(long, value_name = "ENDPOINT")]
    pub zenoh_listen: Vec<String>,
    /// Join Zenoh as a peer, a client or a router
    #[arg(long, value_name = "MODE", value_parser = mode)]
    pub zenoh_mode: Option<zenoh::Mode>,
    /// Join this DDS domain
    #[arg(long, value_name = "N", default_value_t = 0, value_parser = clap::value_parser!(u32).range(0..=230))]
    pub dds_domain: u32,
    /// Use this network interface for DDS, by name or address
    #[arg(long, value_name = "NAME")]
    pub dds_interface: Option<String>,
    /// Let others take this participant of DDS for gone after TIME of silence
    #[arg(long, value_name = "TIME", value_parser = duration)]
    pub dds_lease: Option<Duration>,
    /// Connect to this MQTT broker: HOST:PORT
    #[arg(long, value_name = "BROKER", value_parser = broker)]
    pub mqtt_broker: Option<mqtt::Broker>,
}

fn mode(text: &str) -> std::result::Result<zenoh::Mode, &'static str> {
    match text {
        "peer" => Ok(zenoh::Mode::Peer),
        "client" => Ok(zenoh::Mode::Client),
        "router" => Ok(zenoh::Mode::Router),
        _ => Err("known are: peer, client, router"),
    }
}

fn broker(text: &str) -> std::result::Result<mqtt::Broker, String> {
    text.parse().map_err(|error: mqtt::OpenError| error.to_string())
}

impl Join {
    /// Joins the networks of these addresses, and waits until they can be reached or it is `stopped`.
    ///
    /// # Errors
    /// [`Failure::Network`].
    pub fn open(&self, addresses: &[&Address], stopped: impl Fn() -> bool + Sync) -> Result<Networks> {
        let mut settings = NetworkSettings::default();
        addresses.iter().for_each(|address| settings.need(address));
        if let Some(zenoh) = &mut settings.zenoh {
            zenoh.mode = self.zenoh_mode;
            zenoh.connect.clone_from(&self.zenoh_connect);
            zenoh.listen.clone_from(&self.zenoh_listen);
        }
        if let Some(dds) = &mut settings.dds {
            dds.domain = self.dds_domain;
            dds.interface.clone_from(&self.dds_interface);
            dds.lease = self.dds_lease;
        }
        if let (Some(mqtt), Some(broker)) = (&mut settings.mqtt, &self.mqtt_broker) {
            mqtt.settings.broker = broker.clone();
        }
        let report = |joining| {
            if let Joining::Retrying(reason) = joining {
                say(&format!("{reason}; trying again"));
            }
        };
        Networks::open(&settings, None, stopped, report).map_err(|error| Failure::Network(error.to_string()))
    }
}
