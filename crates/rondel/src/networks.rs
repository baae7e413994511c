//! The networks that a command takes part in.

use std::ops::ControlFlow;
use std::sync::Arc;
use std::time::{Duration, Instant};

use rondel_event::TopicId;
use rondel_net::adapter::{Publisher, Receiver, Subscription};
use rondel_net::{dds, zenoh};

use crate::deployment::Address;
use crate::{complain, exit, say};

/// How long publishers may take at the end to get rid of what they were given.
const FLUSH: Duration = Duration::from_secs(3);

/// How to join the networks, from the command line.
#[derive(Clone, Debug, Default, PartialEq, Eq, clap::Args)]
pub struct NetworkArguments {
    /// Connect to this Zenoh endpoint, such as tcp/192.0.2.1:7447 (may be repeated)
    #[arg(long, value_name = "ENDPOINT")]
    pub zenoh_connect: Vec<String>,
    /// Listen on this Zenoh endpoint, such as tcp/0.0.0.0:7447 (may be repeated)
    #[arg(long, value_name = "ENDPOINT")]
    pub zenoh_listen: Vec<String>,
    /// The part to play in the Zenoh network
    #[arg(long, value_name = "MODE", value_parser = ["peer", "client", "router"])]
    pub zenoh_mode: Option<String>,
    /// A configuration file in Zenoh's own format: TLS, users, access control
    #[arg(long, value_name = "FILE")]
    pub zenoh_config: Option<std::path::PathBuf>,
    /// The DDS domain
    #[arg(long, value_name = "N", default_value_t = 0, value_parser = clap::value_parser!(u32).range(0..=230))]
    pub dds_domain: u32,
    /// The network interface for DDS, by name or address
    #[arg(long, value_name = "NAME")]
    pub dds_interface: Option<String>,
    /// The address of another DDS participant's host, where multicast does not work (may be repeated)
    #[arg(long, value_name = "ADDRESS")]
    pub dds_peer: Vec<String>,
    /// Give up, with exit status 5, when a network cannot be reached within some seconds
    #[arg(long)]
    pub exit_on_unreachable: bool,
}

impl NetworkArguments {
    /// As settings of Zenoh.
    pub fn zenoh(&self) -> zenoh::Settings {
        zenoh::Settings {
            mode: self.zenoh_mode.as_deref().map(|mode| match mode {
                "client" => zenoh::Mode::Client,
                "router" => zenoh::Mode::Router,
                _ => zenoh::Mode::Peer,
            }),
            connect: self.zenoh_connect.clone(),
            listen: self.zenoh_listen.clone(),
            config_file: self.zenoh_config.clone(),
            ..zenoh::Settings::default()
        }
    }

    /// As settings of DDS.
    pub fn dds(&self) -> dds::Settings {
        dds::Settings {
            domain: self.dds_domain,
            interface: self.dds_interface.clone(),
            peers: self.dds_peer.clone(),
            ..dds::Settings::default()
        }
    }

    /// Joins the networks of these addresses.
    ///
    /// # Errors
    /// The exit status, after the reason was shown.
    pub fn open<'a>(
        &self,
        addresses: impl Iterator<Item = &'a Address> + Clone,
        stopped: impl Fn() -> bool,
    ) -> Result<Networks, u8> {
        let zenoh = addresses.clone().any(|a| matches!(a, Address::Zenoh(_))).then(|| self.zenoh());
        let dds = addresses.clone().any(|a| matches!(a, Address::Dds(..))).then(|| self.dds());
        Networks::open(zenoh.as_ref(), dds.as_ref(), self.exit_on_unreachable, stopped)
    }
}

/// Sessions and participants that are open.
pub struct Networks {
    zenoh: Option<zenoh::Session>,
    dds: Option<dds::Participant>,
}

/// After how long an unreachable network is given up, if it is to be given up at all.
const GIVE_UP: Duration = Duration::from_secs(5);
/// How often it is said that a network is not there yet.
const REMIND: Duration = Duration::from_secs(10);

impl Networks {
    /// Joins the networks for which there are settings. Waits for one that cannot be reached, and
    /// says so, unless it is to be given up or the command was `stopped`.
    ///
    /// # Errors
    /// The exit status, after the reason was shown.
    pub fn open(
        zenoh: Option<&zenoh::Settings>,
        dds: Option<&dds::Settings>,
        exit_on_unreachable: bool,
        stopped: impl Fn() -> bool,
    ) -> Result<Networks, u8> {
        let started = Instant::now();
        let mut said: Option<Instant> = None;
        let open_zenoh = |settings: &zenoh::Settings| {
            zenoh::Session::open_connected(settings, |reason| {
                if stopped() || exit_on_unreachable && started.elapsed() >= GIVE_UP {
                    return ControlFlow::Break(());
                }
                if said.is_none_or(|at| at.elapsed() >= REMIND) {
                    said = Some(Instant::now());
                    crate::warn(&format!("{reason}; trying again"));
                }
                ControlFlow::Continue(())
            })
        };
        let failed = |error: String, unreachable: bool| {
            if stopped() {
                return exit::SATISFIED;
            }
            complain(&error);
            if unreachable { exit::NETWORK } else { exit::USAGE }
        };
        let zenoh = zenoh.map(open_zenoh).transpose().map_err(|error| {
            failed(
                error.to_string(),
                matches!(error, zenoh::OpenError::Unreachable { .. } | zenoh::OpenError::Network(_)),
            )
        })?;
        if said.is_some() {
            say("Zenoh is connected");
        }
        let dds =
            dds.map(dds::Participant::open).transpose().map_err(|error| failed(error.to_string(), true))?;
        Ok(Networks { zenoh, dds })
    }

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
        let failed = |reason: String| format!("cannot subscribe to {address}: {reason}");
        match (address, &self.zenoh, &self.dds) {
            (Address::Zenoh(key), Some(session), _) => {
                let made = session.subscribe(key, topic, receiver).map_err(|e| failed(e.to_string()))?;
                Ok(Box::new(made))
            }
            (Address::Dds(name, string_type), _, Some(participant)) => {
                let made = participant.subscribe(name, string_type, topic, receiver);
                Ok(Box::new(made.map_err(|e| failed(e.to_string()))?))
            }
            _ => Err(failed("it is not on a network that was joined".to_owned())),
        }
    }

    /// Makes a publisher at an address. One that is `batching` (only DDS makes a difference) has to
    /// be released after every batch.
    ///
    /// # Errors
    /// The reason, with the address.
    pub fn publisher(&self, address: &Address, batching: bool) -> Result<Box<dyn Publisher>, String> {
        let failed = |reason: String| format!("cannot publish on {address}: {reason}");
        match (address, &self.zenoh, &self.dds) {
            (Address::Zenoh(key), Some(session), _) => {
                let settings = zenoh::PublisherSettings {
                    encoding: Some("application/json".to_owned()),
                    ..zenoh::PublisherSettings::default()
                };
                let made = session.publisher(key, &settings).map_err(|e| failed(e.to_string()))?;
                Ok(Box::new(made))
            }
            (Address::Dds(name, string_type), _, Some(participant)) => {
                let made = participant.publisher(name, string_type, dds::PublisherSettings { batching });
                Ok(Box::new(made.map_err(|e| failed(e.to_string()))?))
            }
            _ => Err(failed("it is not on a network that was joined".to_owned())),
        }
    }

    /// Leaves the networks, after what was published is on its way. Whether all of it was.
    pub fn close(self) -> bool {
        let dds = self.dds.as_ref().is_none_or(|participant| participant.close(FLUSH));
        let zenoh = self.zenoh.as_ref().is_none_or(|session| session.close_within(FLUSH).is_ok());
        if !(dds && zenoh) {
            // To drop it would be to try once more, and the process is about to end.
            std::mem::forget(self);
        }
        dds && zenoh
    }

    /// Wakes publishers that wait for a subscriber which takes nothing, where the network allows it:
    /// DDS does.
    pub fn wake(&self) {
        if let Some(participant) = &self.dds {
            participant.close(Duration::ZERO);
        }
    }
}
