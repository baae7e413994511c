//! The networks that a command takes part in: their options, and messages while it joins them.

use std::fmt::Display;
use std::path::PathBuf;
use std::time::Duration;

use rondel_net::networks::{JoinError, Joining};
pub use rondel_net::networks::{Mqtt, NetworkSettings, Networks};
use rondel_net::{dds, kafka, mqtt, ros2, zenoh};

use crate::deployment::{Address, SLOW_CONSUMER_WAIT, lease, resend, slow_consumer_wait};
use crate::live::signals::StopFlag;
use crate::{complain, exit, say, warn};

/// Default time that a message waits for a broker of MQTT or Kafka before the next attempt.
const TRY: Duration = Duration::from_secs(1);

/// Time limit for reaching a network with `--exit-on-unreachable`.
const PATIENCE: Duration = Duration::from_secs(5);

/// Options for joining the networks, from the command line.
#[derive(Clone, Debug, Default, PartialEq, Eq, clap::Args)]
pub struct NetworkArguments {
    /// Connect to this Zenoh endpoint, such as tcp/192.0.2.1:7447 (may be repeated)
    #[arg(long, value_name = "ENDPOINT")]
    pub zenoh_connect: Vec<String>,
    /// Listen on this Zenoh endpoint, such as tcp/0.0.0.0:7447 (may be repeated)
    #[arg(long, value_name = "ENDPOINT")]
    pub zenoh_listen: Vec<String>,
    /// The role in the Zenoh network (default: peer)
    #[arg(long, value_name = "MODE", value_parser = ["peer", "client", "router"])]
    pub zenoh_mode: Option<String>,
    /// A configuration file in Zenoh's own format: TLS, users, access control
    #[arg(long, value_name = "FILE")]
    pub zenoh_config: Option<PathBuf>,
    /// The DDS domain (default: ROS_DOMAIN_ID, otherwise 0)
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(0..=230))]
    pub dds_domain: Option<u32>,
    /// The network interface for DDS, by name or address
    #[arg(long, value_name = "NAME")]
    pub dds_interface: Option<String>,
    /// The address of another DDS participant's host, where multicast does not work (may be repeated)
    #[arg(long, value_name = "ADDRESS")]
    pub dds_peer: Vec<String>,
    /// Messages that each DDS publisher keeps for subscribers that were silent for longer than their
    /// lease
    #[arg(long, value_name = "N", default_value_t = 0, value_parser = clap::value_parser!(u32).range(0..=10_000_000))]
    pub dds_history: u32,
    /// Silence of this DDS participant after which others consider it lost (default: 10 s)
    #[arg(long, value_name = "DURATION", value_parser = lease)]
    pub dds_lease: Option<Duration>,
    /// A folder with the files of DDS Security, named as SROS 2 names them: cert.pem, key.pem,
    /// identity_ca.cert.pem, permissions_ca.cert.pem, governance.p7s, permissions.p7s
    #[arg(long, value_name = "FOLDER")]
    pub dds_security: Option<PathBuf>,
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
    /// The user name for the MQTT broker
    #[arg(long, value_name = "NAME")]
    pub mqtt_user: Option<String>,
    /// A file with the user's password
    #[arg(long, value_name = "FILE", conflicts_with = "mqtt_password_env")]
    pub mqtt_password_file: Option<PathBuf>,
    /// The environment variable with the user's password
    #[arg(long, value_name = "NAME")]
    pub mqtt_password_env: Option<String>,
    /// The certificate authorities trusted to sign the MQTT broker's certificate (default: the system's
    /// trust store)
    #[arg(long, value_name = "FILE")]
    pub mqtt_ca: Option<PathBuf>,
    /// The client certificate, for brokers that require one
    #[arg(long, value_name = "FILE", requires = "mqtt_key")]
    pub mqtt_certificate: Option<PathBuf>,
    /// The private key of that certificate
    #[arg(long, value_name = "FILE", requires = "mqtt_certificate")]
    pub mqtt_key: Option<PathBuf>,
    /// The MQTT client identifier (default: a random one)
    #[arg(long, value_name = "NAME")]
    pub mqtt_client_id: Option<String>,
    /// A broker of Kafka: HOST:PORT (may be repeated; default: localhost:9092)
    #[arg(long, value_name = "BROKER")]
    pub kafka_broker: Vec<String>,
    /// The first record of a topic on Kafka: latest or earliest (default: latest)
    #[arg(long, value_name = "START", value_parser = start)]
    pub kafka_start: Option<kafka::Start>,
    /// A file with further settings of the client of Kafka: NAME=VALUE in each line
    #[arg(long, value_name = "FILE")]
    pub kafka_config: Option<PathBuf>,
    /// Time to wait for a consumer that does not accept messages, before it is cut off or they are
    /// dropped (default: 3 s; publish: 10 s)
    #[arg(long, value_name = "DURATION", value_parser = slow_consumer_wait)]
    pub slow_consumer: Option<Duration>,
    /// Size of the published messages to keep for subscribers that missed them; 0 keeps nothing
    /// (default: 64 MB)
    #[arg(long, value_name = "SIZE", value_parser = resend)]
    pub resend: Option<usize>,
    /// Exit with status 5 if a network cannot be reached within 5 seconds
    #[arg(long)]
    pub exit_on_unreachable: bool,
}

impl NetworkArguments {
    /// The options, and whether they were given: a deployment file has these settings itself. Not those that also go
    /// beside a deployment.
    pub fn given(&self) -> [(bool, &'static str); 25] {
        let NetworkArguments {
            zenoh_connect,
            zenoh_listen,
            zenoh_mode,
            zenoh_config,
            dds_domain,
            dds_interface,
            dds_peer,
            dds_history,
            dds_lease,
            dds_security,
            mqtt_broker,
            mqtt_version,
            mqtt_qos,
            mqtt_user,
            mqtt_password_file,
            mqtt_password_env,
            mqtt_ca,
            mqtt_certificate,
            mqtt_key,
            mqtt_client_id,
            kafka_broker,
            kafka_start,
            kafka_config,
            slow_consumer,
            resend,
            exit_on_unreachable: _,
        } = self;
        [
            (!zenoh_connect.is_empty(), "--zenoh-connect"),
            (!zenoh_listen.is_empty(), "--zenoh-listen"),
            (zenoh_mode.is_some(), "--zenoh-mode"),
            (zenoh_config.is_some(), "--zenoh-config"),
            (dds_domain.is_some(), "--dds-domain"),
            (dds_interface.is_some(), "--dds-interface"),
            (!dds_peer.is_empty(), "--dds-peer"),
            (*dds_history != 0, "--dds-history"),
            (dds_lease.is_some(), "--dds-lease"),
            (dds_security.is_some(), "--dds-security"),
            (mqtt_broker.is_some(), "--mqtt-broker"),
            (mqtt_version.is_some(), "--mqtt-version"),
            (mqtt_qos.is_some(), "--mqtt-qos"),
            (mqtt_user.is_some(), "--mqtt-user"),
            (mqtt_password_file.is_some(), "--mqtt-password-file"),
            (mqtt_password_env.is_some(), "--mqtt-password-env"),
            (mqtt_ca.is_some(), "--mqtt-ca"),
            (mqtt_certificate.is_some(), "--mqtt-certificate"),
            (mqtt_key.is_some(), "--mqtt-key"),
            (mqtt_client_id.is_some(), "--mqtt-client-id"),
            (!kafka_broker.is_empty(), "--kafka-broker"),
            (kafka_start.is_some(), "--kafka-start"),
            (kafka_config.is_some(), "--kafka-config"),
            (slow_consumer.is_some(), "--slow-consumer"),
            (resend.is_some(), "--resend"),
        ]
    }

    /// Returns the settings of Zenoh.
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

    /// These arguments with the usual wait for slow consumers, unless they have one.
    pub fn with_wait(&self) -> NetworkArguments {
        NetworkArguments {
            slow_consumer: Some(self.slow_consumer.unwrap_or(SLOW_CONSUMER_WAIT)),
            ..self.clone()
        }
    }

    /// Returns the DDS domain: that of the options, otherwise that of ROS 2 in the environment.
    ///
    /// # Errors
    /// The reason why the environment names none.
    pub fn domain(&self) -> Result<u32, String> {
        let of_environment = || ros2::domain_of(|name| std::env::var(name).ok());
        self.dds_domain.map_or_else(of_environment, Ok).map_err(|error| format!("ROS_DOMAIN_ID: {error}"))
    }

    /// Returns the settings of DDS.
    fn dds(&self, domain: u32) -> dds::Settings {
        dds::Settings {
            domain,
            interface: self.dds_interface.clone(),
            peers: self.dds_peer.clone(),
            history: self.dds_history,
            lease: self.dds_lease,
            security: self.dds_security.as_deref().map(dds::Security::in_folder).map(Box::new),
            ..dds::Settings::default()
        }
    }

    /// Returns the settings of MQTT.
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

    /// Returns the settings of Kafka.
    fn kafka(&self) -> Result<kafka::Settings, String> {
        let mut settings = kafka::Settings::default();
        if !self.kafka_broker.is_empty() {
            settings.brokers = self.kafka_broker.clone();
        }
        settings.start = self.kafka_start.unwrap_or_default();
        if let Some(path) = &self.kafka_config {
            settings.settings = kafka::read_settings(path)?;
        }
        Ok(settings)
    }

    /// Returns the settings for joining the networks of these addresses.
    ///
    /// # Errors
    /// The settings that cannot be used, and the reason.
    pub fn settings<'a>(
        &self,
        addresses: impl Iterator<Item = &'a Address> + Clone,
    ) -> Result<NetworkSettings, String> {
        let on = |which: fn(&Address) -> bool| addresses.clone().any(which);
        let ros2 = on(|a| matches!(a, Address::Ros2(..)));
        let domain = if ros2 || on(|a| matches!(a, Address::Dds(..))) { self.domain()? } else { 0 };
        let (zenoh, dds) = (self.zenoh(), self.dds(domain));
        let has_dds = self.dds_domain.is_some() || self.dds(0) != Default::default();
        // Without options, ROS 2 joins its middleware in its own way.
        let on_zenoh = on(|a| matches!(a, Address::Zenoh(..))) || ros2 && zenoh != Default::default();
        let on_dds = on(|a| matches!(a, Address::Dds(..))) || ros2 && has_dds;
        let mut settings = NetworkSettings {
            zenoh: on_zenoh.then_some(zenoh),
            dds: on_dds.then_some(dds),
            mqtt: on(|a| matches!(a, Address::Mqtt(..))).then(|| self.mqtt()),
            kafka: on(|a| matches!(a, Address::Kafka(..))).then(|| self.kafka()).transpose()?,
            ros2: None,
        };
        addresses.clone().for_each(|address| settings.need(address));
        if let Some(wait) = self.slow_consumer {
            settings.limit_slow_consumers(wait);
        } else {
            // Publishers retry until the command is stopped.
            if let Some(Mqtt { settings, .. }) = &mut settings.mqtt {
                settings.slow_consumer = Some(TRY);
            }
            if let Some(kafka) = &mut settings.kafka {
                kafka.slow_consumer = Some(TRY);
            }
        }
        if let Some(bytes) = self.resend {
            settings.resend(bytes);
        }
        settings.check().map_err(|error| error.to_string())?;
        Ok(settings)
    }

    /// Joins the networks of these addresses.
    ///
    /// # Errors
    /// The exit status, after the reason was shown.
    pub fn open<'a>(
        &self,
        addresses: impl Iterator<Item = &'a Address> + Clone,
        interrupted: &StopFlag,
    ) -> Result<Networks, u8> {
        let settings = self.settings(addresses).map_err(|error| {
            complain(&error);
            exit::USAGE
        })?;
        open(&settings, self.exit_on_unreachable, interrupted)
    }
}

/// Joins networks, and shows on standard error which cannot be reached yet.
///
/// # Errors
/// The exit status, after the reason was shown.
pub fn open(
    settings: &NetworkSettings,
    exit_on_unreachable: bool,
    interrupted: &StopFlag,
) -> Result<Networks, u8> {
    let report = |state| match state {
        Joining::Retrying(reason) => warn(&format!("{reason}; trying again")),
        Joining::Connected => say("connected"),
    };
    let (patience, stopped) = (exit_on_unreachable.then_some(PATIENCE), || interrupted.is_set());
    Networks::open(settings, patience, stopped, report).map_err(|error| {
        let status = match error {
            JoinError::Stopped => {
                complain("stopped before the network was joined: nothing was received or published");
                return exit::NETWORK;
            }
            JoinError::Setting(_) => exit::USAGE,
            JoinError::Unreachable(_) => exit::NETWORK,
        };
        complain(&error.to_string());
        status
    })
}

/// Shows an error of a network, and returns the exit status.
pub fn failed(error: impl Display) -> u8 {
    complain(&error.to_string());
    exit::NETWORK
}

/// Shows everything that others can connect or send to.
pub fn show_listeners(networks: &Networks) {
    for listener in networks.listeners() {
        say(&format!("listening on {listener}"));
    }
}

fn broker(text: &str) -> Result<mqtt::Broker, String> {
    text.parse().map_err(|error: mqtt::OpenError| error.to_string())
}

fn version(text: &str) -> Result<mqtt::Version, &'static str> {
    text.parse().map_err(|()| "5 or 3.1.1")
}

fn start(text: &str) -> Result<kafka::Start, &'static str> {
    text.parse().map_err(|()| "latest or earliest")
}

fn qos(text: &str) -> Result<mqtt::Qos, &'static str> {
    text.parse().ok().and_then(mqtt::Qos::from_number).ok_or("0, 1 or 2")
}
