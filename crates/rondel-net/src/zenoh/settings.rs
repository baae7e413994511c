//! Settings of Zenoh sessions and publishers.

use std::path::PathBuf;
use std::time::Duration;

use ::zenoh::Config;
pub use ::zenoh::qos::Priority;

use super::OpenError;
use super::exposure::Exposure;
use crate::adapter::Listener;
use rondel_decode::json::quoted;

/// Default number of bytes in which publishers keep messages for subscribers that missed them: messages of 150 bytes at
/// 20,000 a second for 20 s.
pub const RESEND: usize = 64_000_000;

/// Role of a session in a Zenoh network.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Mode {
    /// Connects directly to other peers and accepts their connections.
    #[default]
    Peer,
    /// Has a single connection, to a router or peer that forwards all messages.
    Client,
    /// Forwards messages between all sessions that connect to it, like Zenoh's own router process.
    Router,
}

impl Mode {
    pub(super) fn as_str(self) -> &'static str {
        match self {
            Mode::Peer => "peer",
            Mode::Client => "client",
            Mode::Router => "router",
        }
    }
}

/// Settings of a session. They take precedence over the configuration file.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Settings {
    /// Role of the session; default: that of the configuration file, else [`Mode::Peer`].
    pub mode: Option<Mode>,
    /// Endpoints to connect to, such as `tcp/192.0.2.1:7447` or `tls/router:7447`.
    pub connect: Vec<String>,
    /// Endpoints to listen on. Default: TCP port 7447 for a router; a free port for a peer that has no endpoints to
    /// connect to, otherwise none; none for a client.
    pub listen: Vec<String>,
    /// Configuration file in Zenoh's own format (JSON5), for TLS, user names, access control and all
    /// other settings.
    pub config_file: Option<PathBuf>,
    /// Whether to discover other sessions by multicast. Default: as in the configuration file; if it is not set there,
    /// only without endpoints to connect to or to listen on, without TLS and without credentials.
    pub multicast_scouting: Option<bool>,
    /// Whether to use Zenoh's low-latency transport: about half the latency, but no priorities, and both
    /// sides must use it.
    pub low_latency: bool,
    /// Maximum time for which publishing waits for a neighbour that accepts nothing, before the connection with it is
    /// closed and its messages are lost. Default: 5 s.
    pub slow_consumer: Option<Duration>,
    /// Limit of the bytes in which the numbered publishers of the session together keep messages for subscribers that
    /// missed them; 0 keeps none. Default: [`RESEND`].
    pub resend: Option<usize>,
}

/// Settings of a publisher. Publishers are always reliable and block on congestion: messages are lost only
/// with a connection.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PublisherSettings {
    /// Whether each message is sent at once in a separate packet. Default: off. Zenoh then puts messages published
    /// during the transmission of one packet together into the next, which costs no latency on an idle link and is many
    /// times faster on a busy one.
    pub express: bool,
    /// Priority among messages that wait at the same time.
    pub priority: Priority,
    /// Media type of the payload, such as `application/json`, for other tools.
    pub encoding: Option<String>,
    /// Whether messages carry a sequence number, by which subscribers detect missing messages.
    pub numbered: bool,
}

impl Default for PublisherSettings {
    fn default() -> Self {
        PublisherSettings { express: false, priority: Priority::DEFAULT, encoding: None, numbered: false }
    }
}

/// Time to discover other sessions by multicast before a session is ready.
const SCOUTING_DELAY: Duration = Duration::from_millis(500);
/// Time to connect without multicast: long enough within a machine or rack, so that the first message is not published
/// before the connection exists.
const CONNECT_DELAY: Duration = Duration::from_millis(50);
/// Time for which a publisher may block on one message before Zenoh closes the connection and loses the queued
/// messages: the default of Zenoh, and so of routers and other neighbours. Until then the publisher's thread holds the
/// lock that closing the transport needs. The lease of 10 s must not expire meanwhile: Zenoh then closes the transport
/// twice, the second time by the id of the neighbour, which may have reconnected, and does not connect any more.
const BLOCK_LIMIT: Duration = Duration::from_secs(5);
/// Name of the limit in Zenoh's configuration, where it is in microseconds.
const BLOCK: &str = "transport/link/tx/queue/congestion_control/block/wait_before_close";

/// Name of the number of batches that wait for each connection, in Zenoh's configuration.
const BATCHES: &str = "transport/link/tx/queue/size/data";
/// Batches of 64 KiB that may wait for each connection: on a busy machine, a neighbour that does not run for some
/// milliseconds does not hold up the publisher. Zenoh's own default is 2.
const QUEUE: usize = 8;
/// Name of the size of a batch in Zenoh's configuration.
const BATCH: &str = "transport/link/tx/batch_size";

/// Returns the bytes that Zenoh's queue of a connection can take.
pub(super) fn queue(config: &Config) -> usize {
    let number = |key: &str| config.get_json(key).ok()?.trim().parse::<usize>().ok();
    number(BATCHES).zip(number(BATCH)).map_or(0, |(batches, size)| batches.saturating_mul(size))
}

/// Returns the time for which a publisher may block on one message.
pub(super) fn block_limit(config: &Config) -> Duration {
    let micros = config.get_json(BLOCK).ok().and_then(|text| text.trim().parse().ok());
    micros.map_or(BLOCK_LIMIT, Duration::from_micros)
}

impl Settings {
    /// Checks these settings and the configuration file without connecting.
    ///
    /// # Errors
    /// The error that [`Session::open`](super::Session::open) would return.
    pub fn check(&self) -> Result<(), OpenError> {
        self.config().map(drop)
    }

    /// Returns the endpoints on which a session with these settings listens; none if they are invalid.
    pub fn listeners(&self) -> Vec<Listener> {
        self.configured().map_or_else(|_| Vec::new(), |(config, exposure)| exposure.listeners(&config))
    }

    /// Returns the time for which a publisher may block on one message, unless the configuration file sets another.
    fn block_limit(&self) -> Duration {
        let limit = self.slow_consumer.unwrap_or(BLOCK_LIMIT);
        // Behind a router, the router waits for its consumers: its limit must expire first, or the connection with the
        // router is closed because of one of them.
        if self.listen.is_empty() && !self.connect.is_empty() { limit.max(BLOCK_LIMIT) } else { limit }
    }

    /// Whether the session is a client, by its settings or its configuration file.
    pub(crate) fn is_client(&self) -> bool {
        let of_file =
            |config: Config| config.get_json("mode").is_ok_and(|mode| mode.contains(Mode::Client.as_str()));
        self.mode == Some(Mode::Client) || self.config().is_ok_and(of_file)
    }

    /// Returns the settings as Zenoh's own configuration.
    pub(super) fn config(&self) -> Result<Config, OpenError> {
        self.configured().map(|(config, _)| config)
    }

    fn configured(&self) -> Result<(Config, Exposure), OpenError> {
        for (endpoints, listen) in [(&self.connect, false), (&self.listen, true)] {
            endpoints.iter().try_for_each(|endpoint| check_endpoint(endpoint, listen))?;
        }
        let mut config = match &self.config_file {
            Some(path) => Config::from_file(path)
                .map_err(|e| OpenError::ConfigFile { path: path.clone(), reason: super::reason(e) })?,
            None => Config::default(),
        };
        let mut set = |key: &'static str, value: &str| {
            config.insert_json5(key, value).map_err(|e| OpenError::Setting { key, reason: super::reason(e) })
        };
        if let Some(mode) = self.mode {
            set("mode", &quoted(mode.as_str()))?;
        } else if self.config_file.is_none() {
            set("mode", &quoted(Mode::default().as_str()))?;
        }
        if !self.connect.is_empty() {
            set("connect/endpoints", &json_strings(&self.connect))?;
        }
        if !self.listen.is_empty() {
            set("listen/endpoints", &json_strings(&self.listen))?;
        }
        let mut exposure = Exposure::of(&config, self);
        let mut set = |key: &'static str, value: &str| {
            config.insert_json5(key, value).map_err(|e| OpenError::Setting { key, reason: super::reason(e) })
        };
        if exposure.listens_unasked() {
            set("listen/endpoints", "[]")?;
            exposure.close();
        }
        exposure.check()?;
        let scouting =
            self.multicast_scouting.or((!exposure.sets_scouting()).then(|| exposure.scouts_by_default()));
        if let Some(on) = scouting {
            set("scouting/multicast/enabled", if on { "true" } else { "false" })?;
        }
        if exposure.restricts_protocols() {
            // A discovered session may offer others.
            set("transport/link/protocols", &Exposure::protocols())?;
        }
        if self.low_latency {
            set("transport/unicast/qos/enabled", "false")?;
            set("transport/unicast/lowlatency", "true")?;
        }
        if self.config_file.is_none() {
            let delay = if scouting == Some(true) { SCOUTING_DELAY } else { CONNECT_DELAY };
            set("scouting/delay", &delay.as_millis().to_string())?;
            // Shorter than Zenoh's own delays of 1 s to 4 s.
            set("connect/retry", "{ period_init_ms: 100, period_max_ms: 1000, period_increase_factor: 2 }")?;
        }
        let block = self.block_limit().as_micros().to_string();
        for (key, value) in [(BLOCK, block), (BATCHES, QUEUE.to_string())] {
            // A value in the file that differs from Zenoh's default is intended.
            if config.get_json(key).ok() == Config::default().get_json(key).ok() {
                config
                    .insert_json5(key, &value)
                    .map_err(|e| OpenError::Setting { key, reason: super::reason(e) })?;
            }
        }
        Ok((config, exposure))
    }
}

/// Checks that this build of Zenoh can use the endpoint. Zenoh itself notices that only when it connects, and handles a
/// missing port like a host that does not answer.
fn check_endpoint(text: &str, listen: bool) -> Result<(), OpenError> {
    let wrong = || OpenError::Endpoint(text.to_owned());
    let endpoint = text.parse::<::zenoh::config::EndPoint>().map_err(|_| wrong())?;
    let (protocol, address) = (endpoint.protocol(), endpoint.address());
    match protocol.as_str() {
        "tcp" | "tls" | "udp" => match address.as_str().rsplit_once(':') {
            Some((host, port)) if !host.is_empty() => match port.parse::<u16>() {
                // A free port can only be listened on.
                Ok(port) if port > 0 || listen => Ok(()),
                Err(_) if port.is_empty() || !port.bytes().all(|b| b.is_ascii_digit()) => Err(wrong()),
                _ => Err(OpenError::Port { endpoint: text.to_owned(), port: port.to_owned() }),
            },
            _ => Err(wrong()),
        },
        "unixsock-stream" => Ok(()),
        _ => Err(wrong()),
    }
}

fn json_strings(texts: &[String]) -> String {
    let items: Vec<String> = texts.iter().map(|t| quoted(t)).collect();
    format!("[{}]", items.join(","))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn get(settings: &Settings, key: &str) -> String {
        settings.config().unwrap().get_json(key).unwrap()
    }

    #[test]
    fn multicast_is_the_default_only_without_endpoints() {
        let alone = Settings::default();
        assert_eq!(get(&alone, "scouting/multicast/enabled"), "true");
        let connecting = Settings { connect: vec!["tcp/127.0.0.1:1".into()], ..Settings::default() };
        assert_eq!(get(&connecting, "scouting/multicast/enabled"), "false");
        let both = Settings { multicast_scouting: Some(true), ..connecting };
        assert_eq!(get(&both, "scouting/multicast/enabled"), "true");
    }

    #[test]
    fn settings_override_the_configuration_file() {
        let path = std::env::temp_dir().join(format!("rondel-zenoh-{}.json5", std::process::id()));
        std::fs::write(&path, "{ mode: 'router', listen: { endpoints: ['tcp/127.0.0.1:1'] } }").unwrap();
        let mut settings = Settings { config_file: Some(path.clone()), ..Settings::default() };
        assert_eq!(get(&settings, "mode"), "\"router\"");
        assert_eq!(get(&settings, "listen/endpoints"), "[\"tcp/127.0.0.1:1\"]");
        settings.mode = Some(Mode::Peer);
        settings.listen = vec!["tcp/127.0.0.1:2".into()];
        assert_eq!(get(&settings, "mode"), "\"peer\"");
        assert_eq!(get(&settings, "listen/endpoints"), "[\"tcp/127.0.0.1:2\"]");
        std::fs::remove_file(&path).unwrap();
        assert!(matches!(settings.config(), Err(OpenError::ConfigFile { .. })));
    }

    #[test]
    fn a_bad_endpoint_is_refused_and_named() {
        for bad in ["127.0.0.1:1", "tcp", "\"\n\\", "tcp/a", "tcp/:1", "tcp/a:b", "carrier-pigeon/a:1"] {
            let settings = Settings { connect: vec![bad.into()], ..Settings::default() };
            assert!(matches!(settings.config(), Err(OpenError::Endpoint(named)) if named == bad));
        }
        for bad in ["tcp/a:70000", "udp/[::1]:99999999", "tcp/a:0"] {
            let settings = Settings { connect: vec![bad.into()], ..Settings::default() };
            assert!(matches!(settings.config(), Err(OpenError::Port { endpoint, .. }) if endpoint == bad));
        }
        let free = Settings { listen: vec!["tcp/127.0.0.1:0".into()], ..Settings::default() };
        assert!(free.config().is_ok());
    }
}
