//! The networks that a command takes part in.

use std::ops::ControlFlow;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use rondel_event::TopicId;
use rondel_net::adapter::{Publisher, Receiver, Subscription};
use rondel_net::cdr_string::{Unwrapping, Wrapping};
use rondel_net::{dds, mqtt, zenoh};

use crate::deployment::{Address, Encoding};
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
    pub zenoh_config: Option<PathBuf>,
    /// The DDS domain
    #[arg(long, value_name = "N", default_value_t = 0, value_parser = clap::value_parser!(u32).range(0..=230))]
    pub dds_domain: u32,
    /// The network interface for DDS, by name or address
    #[arg(long, value_name = "NAME")]
    pub dds_interface: Option<String>,
    /// The address of another DDS participant's host, where multicast does not work (may be repeated)
    #[arg(long, value_name = "ADDRESS")]
    pub dds_peer: Vec<String>,
    /// The MQTT broker: HOST:PORT, mqtt://HOST:PORT or, with TLS, mqtts://HOST:PORT
    /// (default: localhost:1883)
    #[arg(long, value_name = "BROKER", value_parser = broker)]
    pub mqtt_broker: Option<mqtt::Broker>,
    /// The version of MQTT (default: 5)
    #[arg(long, value_name = "VERSION", value_parser = version)]
    pub mqtt_version: Option<mqtt::Version>,
    /// The quality of service on MQTT, to receive and to publish: 0, 1 or 2 (default: 1)
    #[arg(long, value_name = "N", value_parser = qos)]
    pub mqtt_qos: Option<mqtt::Qos>,
    /// The user whom the MQTT broker knows
    #[arg(long, value_name = "NAME")]
    pub mqtt_user: Option<String>,
    /// A file with the user's password
    #[arg(long, value_name = "FILE", conflicts_with = "mqtt_password_env")]
    pub mqtt_password_file: Option<PathBuf>,
    /// The environment variable with the user's password
    #[arg(long, value_name = "NAME")]
    pub mqtt_password_env: Option<String>,
    /// The certificates of those who may vouch for the MQTT broker, with TLS (default: those that the
    /// system trusts)
    #[arg(long, value_name = "FILE")]
    pub mqtt_ca: Option<PathBuf>,
    /// This client's own certificate, where the MQTT broker asks for one
    #[arg(long, value_name = "FILE", requires = "mqtt_key")]
    pub mqtt_certificate: Option<PathBuf>,
    /// The private key of that certificate
    #[arg(long, value_name = "FILE", requires = "mqtt_certificate")]
    pub mqtt_key: Option<PathBuf>,
    /// Under which name the MQTT broker knows this client (default: one made up)
    #[arg(long, value_name = "NAME")]
    pub mqtt_client_id: Option<String>,
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

    /// As settings of MQTT.
    fn mqtt(&self) -> Mqtt {
        let file = self.mqtt_password_file.clone().map(mqtt::Password::File);
        let variable = self.mqtt_password_env.clone().map(mqtt::Password::Environment);
        let tls = mqtt::Tls {
            ca: self.mqtt_ca.clone(),
            certificate: self.mqtt_certificate.clone(),
            key: self.mqtt_key.clone(),
        };
        let settings = mqtt::Settings {
            broker: self.mqtt_broker.clone().unwrap_or_default(),
            version: self.mqtt_version.unwrap_or_default(),
            qos: self.mqtt_qos.unwrap_or_default(),
            user: self.mqtt_user.clone(),
            password: file.or(variable),
            tls: (tls != mqtt::Tls::default()).then_some(tls),
            client_id: self.mqtt_client_id.clone(),
            ..mqtt::Settings::default()
        };
        Mqtt { settings, verdicts: mqtt::PublisherSettings::default() }
    }

    /// How to join the networks of these addresses.
    ///
    /// # Errors
    /// Which settings cannot be.
    pub fn settings<'a>(
        &self,
        addresses: impl Iterator<Item = &'a Address> + Clone,
    ) -> Result<NetworkSettings, String> {
        let on = |which: fn(&Address) -> bool| addresses.clone().any(which);
        let settings = NetworkSettings {
            zenoh: on(|a| matches!(a, Address::Zenoh(..))).then(|| self.zenoh()),
            dds: on(|a| matches!(a, Address::Dds(..))).then(|| self.dds()),
            mqtt: on(|a| matches!(a, Address::Mqtt(..))).then(|| self.mqtt()),
        };
        settings.zenoh.as_ref().map_or(Ok(()), |s| s.check().map_err(|e| e.to_string()))?;
        settings.mqtt.as_ref().map_or(Ok(()), |m| m.settings.check().map_err(|e| e.to_string()))?;
        Ok(settings)
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
        let settings = self.settings(addresses).map_err(|error| {
            complain(&error);
            exit::USAGE
        })?;
        Networks::open(&settings, self.exit_on_unreachable, stopped)
    }
}

fn broker(text: &str) -> Result<mqtt::Broker, String> {
    text.parse().map_err(|error: mqtt::OpenError| error.to_string())
}

fn version(text: &str) -> Result<mqtt::Version, &'static str> {
    text.parse().map_err(|()| "5 or 3.1.1")
}

fn qos(text: &str) -> Result<mqtt::Qos, &'static str> {
    text.parse().ok().and_then(mqtt::Qos::from_number).ok_or("0, 1 or 2")
}

/// How to join the networks that are needed.
#[derive(Clone, Debug, Default)]
pub struct NetworkSettings {
    /// How to join Zenoh.
    pub zenoh: Option<zenoh::Settings>,
    /// How to join DDS.
    pub dds: Option<dds::Settings>,
    /// How to join MQTT.
    pub mqtt: Option<Mqtt>,
}

impl NetworkSettings {
    /// Sees to it that the network of this address is joined.
    pub fn need(&mut self, address: &Address) {
        match address {
            Address::Zenoh(..) => _ = self.zenoh.get_or_insert_default(),
            Address::Dds(..) => _ = self.dds.get_or_insert_default(),
            Address::Mqtt(..) => _ = self.mqtt.get_or_insert_default(),
            Address::Stdout => {}
        }
    }
}

/// How to join MQTT.
#[derive(Clone, Debug, Default)]
pub struct Mqtt {
    /// How to join the broker.
    pub settings: mqtt::Settings,
    /// How to publish there.
    pub verdicts: mqtt::PublisherSettings,
}

/// Sessions and participants that are open.
pub struct Networks {
    zenoh: Option<zenoh::Session>,
    dds: Option<dds::Participant>,
    mqtt: Option<(mqtt::Session, mqtt::PublisherSettings)>,
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
        settings: &NetworkSettings,
        exit_on_unreachable: bool,
        stopped: impl Fn() -> bool,
    ) -> Result<Networks, u8> {
        let started = Instant::now();
        let mut said: Option<Instant> = None;
        let mut waiting = |reason: String| {
            if stopped() || exit_on_unreachable && started.elapsed() >= GIVE_UP {
                return ControlFlow::Break(());
            }
            if said.is_none_or(|at| at.elapsed() >= REMIND) {
                said = Some(Instant::now());
                crate::warn(&format!("{reason}; trying again"));
            }
            ControlFlow::Continue(())
        };
        let failed = |error: String, unreachable: bool| {
            if stopped() {
                return exit::SATISFIED;
            }
            complain(&error);
            if unreachable { exit::NETWORK } else { exit::USAGE }
        };
        let NetworkSettings { zenoh, dds, mqtt } = settings;
        let zenoh = zenoh.as_ref().map(|s| zenoh::Session::open_connected(s, |e| waiting(e.to_string())));
        let zenoh = zenoh.transpose().map_err(|error| {
            failed(
                error.to_string(),
                matches!(error, zenoh::OpenError::Unreachable { .. } | zenoh::OpenError::Network(_)),
            )
        })?;
        let mqtt = mqtt.as_ref().map(|Mqtt { settings, verdicts }| {
            let opened = mqtt::Session::open_connected(settings, |e| waiting(e.to_string()));
            Ok((opened?, *verdicts))
        });
        let mqtt = mqtt.transpose().map_err(|error: mqtt::OpenError| {
            let setting = matches!(error, mqtt::OpenError::Setting(_) | mqtt::OpenError::Secret { .. });
            failed(error.to_string(), !setting)
        })?;
        if said.is_some() {
            say("connected");
        }
        let dds = dds.as_ref().map(dds::Participant::open).transpose();
        let dds = dds.map_err(|error| failed(error.to_string(), true))?;
        Ok(Networks { zenoh, dds, mqtt })
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
        match address.encoding() {
            Encoding::Json => self.subscribe_plainly(address, topic, receiver),
            Encoding::CdrString => {
                let unwrapping = Unwrapping::new(receiver, address.to_string());
                let counting = unwrapping.counting();
                let subscription = self.subscribe_plainly(address, topic, Arc::new(unwrapping))?;
                Ok(Box::new(counting(subscription)))
            }
        }
    }

    /// Subscribes to every topic of DDS whose name is one of a pattern, as publishers of them are discovered.
    ///
    /// # Errors
    /// The reason, with the pattern.
    pub fn subscribe_matching<R: Receiver + ?Sized>(
        &self,
        (pattern, string_type): (&str, &dds::StringType),
        topic: TopicId,
        receiver: impl Fn(&str) -> Arc<R> + Send + 'static,
    ) -> Result<Box<dyn Subscription>, String> {
        let failed = |reason: String| format!("cannot subscribe to dds:{pattern}: {reason}");
        let participant = self.dds.as_ref().ok_or_else(|| failed("DDS was not joined".to_owned()))?;
        let made = participant.subscribe_matching(pattern, string_type, topic, receiver);
        Ok(Box::new(made.map_err(|e| failed(e.to_string()))?))
    }

    fn subscribe_plainly<R: Receiver + ?Sized>(
        &self,
        address: &Address,
        topic: TopicId,
        receiver: Arc<R>,
    ) -> Result<Box<dyn Subscription>, String> {
        let failed = |reason: String| format!("cannot subscribe to {address}: {reason}");
        match (address, &self.zenoh, &self.dds, &self.mqtt) {
            (Address::Zenoh(key, _), Some(session), ..) => {
                let made = session.subscribe(key, topic, receiver).map_err(|e| failed(e.to_string()))?;
                Ok(Box::new(made))
            }
            (Address::Dds(name, string_type), _, Some(participant), _) => {
                let made = participant.subscribe(name, string_type, topic, receiver);
                Ok(Box::new(made.map_err(|e| failed(e.to_string()))?))
            }
            (Address::Mqtt(filter, settings, _), .., Some((session, _))) => {
                let made = session.subscribe(filter, *settings, topic, receiver);
                Ok(Box::new(made.map_err(|e| failed(e.to_string()))?))
            }
            _ => Err(failed("it is not on a network that was joined".to_owned())),
        }
    }

    /// Makes a publisher at an address. One that is `batching` (Zenoh makes no difference) has to
    /// be released after every batch.
    ///
    /// # Errors
    /// The reason, with the address.
    pub fn publisher(&self, address: &Address, batching: bool) -> Result<Box<dyn Publisher>, String> {
        let publisher = self.plain_publisher(address, batching)?;
        Ok(match address.encoding() {
            Encoding::Json => publisher,
            Encoding::CdrString => Box::new(Wrapping::new(publisher)),
        })
    }

    fn plain_publisher(&self, address: &Address, batching: bool) -> Result<Box<dyn Publisher>, String> {
        let failed = |reason: String| format!("cannot publish on {address}: {reason}");
        match (address, &self.zenoh, &self.dds, &self.mqtt) {
            (Address::Zenoh(key, _), Some(session), ..) => {
                let encoding = match address.encoding() {
                    Encoding::Json => "application/json",
                    Encoding::CdrString => "application/cdr",
                };
                let settings = zenoh::PublisherSettings {
                    encoding: Some(encoding.to_owned()),
                    ..zenoh::PublisherSettings::default()
                };
                let made = session.publisher(key, &settings).map_err(|e| failed(e.to_string()))?;
                Ok(Box::new(made))
            }
            (Address::Mqtt(topic, ..), .., Some((session, settings))) => {
                let made = session.publisher(topic, &mqtt::PublisherSettings { batching, ..*settings });
                Ok(Box::new(made.map_err(|e| failed(e.to_string()))?))
            }
            (Address::Dds(name, string_type), _, Some(participant), _) => {
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
        let mqtt = self.mqtt.as_ref().is_none_or(|(session, _)| session.close_within(FLUSH));
        if !(dds && zenoh && mqtt) {
            // To drop it would be to try once more, and the process is about to end.
            std::mem::forget(self);
        }
        dds && zenoh && mqtt
    }

    /// Wakes publishers that wait for a subscriber which takes nothing, where the network allows it:
    /// DDS and MQTT do.
    pub fn wake(&self) {
        if let Some(participant) = &self.dds {
            participant.close(Duration::ZERO);
        }
        if let Some((session, _)) = &self.mqtt {
            session.wake();
        }
    }
}
