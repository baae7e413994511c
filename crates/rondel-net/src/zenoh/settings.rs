use std::path::PathBuf;
use std::time::Duration;

use ::zenoh::Config;
pub use ::zenoh::qos::Priority;

use super::OpenError;
use rondel_decode::json::quoted;

/// The part that a session plays in a Zenoh network.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Mode {
    /// Connects to others and is connected to, without anyone in between.
    #[default]
    Peer,
    /// Has one connection, to a router (or peer) that passes everything on.
    Client,
    /// Passes messages on between all that connect to it: a network then needs no further service.
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

/// How to join a Zenoh network.
///
/// Whatever is set here stands above the configuration file.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Settings {
    /// The part to play; `None` leaves it to the configuration file, else [`Mode::Peer`].
    pub mode: Option<Mode>,
    /// Endpoints to connect to, such as `tcp/192.0.2.1:7447` or `tls/router:7447`.
    pub connect: Vec<String>,
    /// Endpoints to listen on. When empty, Zenoh's own: a router on TCP port 7447, a peer on a free
    /// port, a client on none.
    pub listen: Vec<String>,
    /// A configuration file in Zenoh's own format (JSON5): TLS, user names, access control and all
    /// the rest.
    pub config_file: Option<PathBuf>,
    /// Whether to look for others by multicast. `None`: only where there is no other way to find
    /// anyone, that is with no endpoint to connect to, none to listen on and no configuration file
    /// (with a file: as the file says).
    pub multicast_scouting: Option<bool>,
    /// Zenoh's low-latency transport: about half the latency, but no priorities, and both sides must
    /// have it.
    pub low_latency: bool,
}

/// How a publisher sends. It is always reliable and blocks on congestion: nothing is dropped.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PublisherSettings {
    /// Sends every message by itself at once. Off by default: Zenoh then puts into one packet what
    /// was published while the previous packet was on its way, which costs no latency on an idle
    /// link and is many times faster on a busy one.
    pub express: bool,
    /// The priority among messages that wait at the same time.
    pub priority: Priority,
    /// What the payload is, as a media type (`application/json`), for other tools to see.
    pub encoding: Option<String>,
    /// Whether messages are numbered, so that who receives them can tell that one is missing.
    pub numbered: bool,
}

impl Default for PublisherSettings {
    fn default() -> Self {
        PublisherSettings { express: false, priority: Priority::DEFAULT, encoding: None, numbered: false }
    }
}

/// How long a session that has nobody to wait for still looks around before it is ready.
const SCOUTING_DELAY: Duration = Duration::from_millis(500);
/// The same where there is nothing to scout: long enough for a connection on the same machine or in
/// the same rack, so that the first message already has its way.
const CONNECT_DELAY: Duration = Duration::from_millis(50);
/// How long a publisher may block on one message before Zenoh takes the neighbour for dead and
/// closes the connection, losing what was queued. Zenoh's own value is 5 s, which a subscriber under
/// back-pressure easily exceeds. A neighbour that is really gone is found by its missing keep-alives.
const BLOCK_AT_MOST: Duration = Duration::from_secs(24 * 3600);

impl Settings {
    /// Checks these settings, and the configuration file where there is one, without connecting.
    ///
    /// # Errors
    /// What Zenoh would say at [`Session::open`](super::Session::open).
    pub fn check(&self) -> Result<(), OpenError> {
        self.config().map(drop)
    }

    /// As Zenoh's own configuration.
    pub(super) fn config(&self) -> Result<Config, OpenError> {
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
        let alone = self.connect.is_empty() && self.listen.is_empty() && self.config_file.is_none();
        let scouting = self.multicast_scouting.or(self.config_file.is_none().then_some(alone));
        if let Some(on) = scouting {
            set("scouting/multicast/enabled", if on { "true" } else { "false" })?;
        }
        if self.low_latency {
            set("transport/unicast/qos/enabled", "false")?;
            set("transport/unicast/lowlatency", "true")?;
        }
        if self.config_file.is_none() {
            let delay = if scouting == Some(true) { SCOUTING_DELAY } else { CONNECT_DELAY };
            set("scouting/delay", &delay.as_millis().to_string())?;
            // Zenoh's own start at 1 s and go up to 4 s.
            set("connect/retry", "{ period_init_ms: 100, period_max_ms: 1000, period_increase_factor: 2 }")?;
        }
        // A file that says something else than Zenoh's default means it.
        let block = "transport/link/tx/queue/congestion_control/block/wait_before_close";
        if config.get_json(block).ok() == Config::default().get_json(block).ok() {
            let micros = BLOCK_AT_MOST.as_micros().to_string();
            config
                .insert_json5(block, &micros)
                .map_err(|e| OpenError::Setting { key: block, reason: super::reason(e) })?;
        }
        Ok(config)
    }
}

/// Checks that Zenoh, as it is built here, can use the endpoint. Zenoh itself finds that out only when it
/// connects, and takes a missing port for somebody who does not answer.
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
    fn multicast_only_where_nothing_else_helps() {
        let alone = Settings::default();
        assert_eq!(get(&alone, "scouting/multicast/enabled"), "true");
        let connecting = Settings { connect: vec!["tcp/127.0.0.1:1".into()], ..Settings::default() };
        assert_eq!(get(&connecting, "scouting/multicast/enabled"), "false");
        let both = Settings { multicast_scouting: Some(true), ..connecting };
        assert_eq!(get(&both, "scouting/multicast/enabled"), "true");
    }

    #[test]
    fn what_is_set_stands_above_the_file() {
        let path = std::env::temp_dir().join(format!("rondel-zenoh-{}.json5", std::process::id()));
        std::fs::write(&path, "{ mode: 'router', listen: { endpoints: ['tcp/127.0.0.1:1'] } }").unwrap();
        let mut settings = Settings { config_file: Some(path.clone()), ..Settings::default() };
        assert_eq!(get(&settings, "mode"), "\"router\"");
        assert_eq!(get(&settings, "listen/endpoints"), "[\"tcp/127.0.0.1:1\"]");
        settings.mode = Some(Mode::Client);
        settings.listen = vec!["tcp/127.0.0.1:2".into()];
        assert_eq!(get(&settings, "mode"), "\"client\"");
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
