//! The endpoints on which a session listens, and their protection: it listens only if requested.

use ::zenoh::Config;

use super::{Mode, OpenError, Settings};
use crate::adapter::Listener;

/// Settings of TLS; any of them means that the network is encrypted.
const TLS: [&str; 11] = [
    "root_ca_certificate",
    "root_ca_certificate_base64",
    "listen_private_key",
    "listen_private_key_base64",
    "listen_certificate",
    "listen_certificate_base64",
    "connect_private_key",
    "connect_private_key_base64",
    "connect_certificate",
    "connect_certificate_base64",
    "enable_mtls",
];
/// Settings of credentials.
const CREDENTIALS: [&str; 7] = [
    "usrpwd/user",
    "usrpwd/password",
    "usrpwd/dictionary_file",
    "pubkey/public_key_pem",
    "pubkey/private_key_pem",
    "pubkey/public_key_file",
    "pubkey/private_key_file",
];
/// Protocols that other machines cannot read or join without a key.
const PROTECTED: [&str; 3] = ["tls", "quic", "unixsock-stream"];

/// The part of a configuration that determines which machines can reach a session.
pub(super) struct Exposure {
    mode: Mode,
    connect: Vec<String>,
    listen: Vec<String>,
    /// Whether `listen` is Zenoh's default and not a setting.
    by_default: bool,
    tls: bool,
    credentials: bool,
    /// Whether the configuration sets multicast scouting and the protocols.
    sets_scouting: bool,
    sets_protocols: bool,
}

impl Exposure {
    /// Reads a configuration that includes the endpoints of the settings.
    pub(super) fn of(config: &Config, settings: &Settings) -> Exposure {
        let mode = match config.get_json("mode").unwrap_or_default().trim_matches('"') {
            "client" => Mode::Client,
            "router" => Mode::Router,
            _ => Mode::Peer,
        };
        let listen = endpoints(config, "listen/endpoints", mode);
        let has = |section: &str, names: &[&str]| {
            names.iter().any(|name| {
                let value = config.get_json(&format!("{section}/{name}")).unwrap_or_default();
                !["", "null", "false"].contains(&value.trim())
            })
        };
        let sets = |key: &str| config.get_json(key).is_ok_and(|value| value.trim() != "null");
        Exposure {
            sets_scouting: sets("scouting/multicast/enabled"),
            sets_protocols: sets("transport/link/protocols"),
            by_default: settings.listen.is_empty()
                && listen == endpoints(&Config::default(), "listen/endpoints", mode),
            connect: endpoints(config, "connect/endpoints", mode),
            tls: has("transport/link/tls", &TLS),
            credentials: has("transport/auth", &CREDENTIALS),
            mode,
            listen,
        }
    }

    /// Whether multicast is used by default: only by a session without any endpoint, which could not find others
    /// otherwise.
    pub(super) fn scouts_by_default(&self) -> bool {
        self.connect.is_empty() && self.by_default && !self.is_protected()
    }

    /// Whether the session listens although it was only configured to connect.
    pub(super) fn listens_unasked(&self) -> bool {
        self.mode == Mode::Peer && self.by_default && !self.connect.is_empty()
    }

    /// Records that the session does not listen.
    pub(super) fn close(&mut self) {
        self.listen.clear();
    }

    /// Whether TLS or credentials are configured.
    pub(super) fn is_protected(&self) -> bool {
        self.tls || self.credentials
    }

    /// Whether the configuration sets multicast scouting.
    pub(super) fn sets_scouting(&self) -> bool {
        self.sets_scouting
    }

    /// Whether only encrypted protocols may be used.
    pub(super) fn restricts_protocols(&self) -> bool {
        self.is_protected() && !self.sets_protocols
    }

    /// Returns the protocols of a protected session, also with discovered sessions, as JSON.
    pub(super) fn protocols() -> String {
        format!("{PROTECTED:?}")
    }

    /// Refuses clients that only listen, and unencrypted endpoints if TLS or credentials are configured.
    pub(super) fn check(&self) -> Result<(), OpenError> {
        if self.mode == Mode::Client
            && !self.by_default
            && self.connect.is_empty()
            && let Some(endpoint) = self.listen.first()
        {
            return Err(OpenError::ClientListens { endpoint: endpoint.clone() });
        }
        if !self.is_protected() {
            return Ok(());
        }
        let what = if self.tls { "TLS" } else { "authentication" };
        let is_plain =
            |endpoint: &&String| !PROTECTED.contains(&endpoint.split('/').next().unwrap_or_default());
        if let Some(endpoint) = self.connect.iter().find(is_plain) {
            return Err(OpenError::Plaintext { what, verb: "connects to", endpoint: endpoint.clone() });
        }
        match self.listen.iter().find(is_plain) {
            Some(endpoint) if self.by_default => Err(OpenError::PlaintextByDefault {
                what,
                mode: self.mode.as_str(),
                endpoint: endpoint.clone(),
            }),
            Some(endpoint) => {
                Err(OpenError::Plaintext { what, verb: "listens on", endpoint: endpoint.clone() })
            }
            None => Ok(()),
        }
    }

    /// Returns the endpoints on which the session listens. With mutual TLS or credentials, connections are
    /// authenticated.
    pub(super) fn listeners(&self, config: &Config) -> Vec<Listener> {
        let on = |key: &str| config.get_json(key).is_ok_and(|value| value.trim() == "true");
        let mutual = on("transport/link/tls/enable_mtls");
        let mut all: Vec<Listener> = self
            .listen
            .iter()
            .map(|endpoint| {
                let protocol = endpoint.split('/').next().unwrap_or_default();
                let encrypted = ["tls", "quic"].contains(&protocol);
                Listener {
                    place: format!("zenoh {endpoint}"),
                    encrypted,
                    authenticated: encrypted && mutual || self.credentials,
                }
            })
            .collect();
        if on("scouting/multicast/enabled") {
            let place = "zenoh udp/224.0.0.224:7446 (multicast, to be discovered)".to_owned();
            all.push(Listener { place, encrypted: false, authenticated: false });
        }
        all
    }
}

/// Returns the endpoints of a mode in a list, or in an object with a list for each mode.
fn endpoints(config: &Config, key: &str, mode: Mode) -> Vec<String> {
    let text = config.get_json(key).unwrap_or_default();
    let value: serde_json::Value = serde_json::from_str(&text).unwrap_or_default();
    let mut all = Vec::new();
    collect(value.get(mode.as_str()).unwrap_or(&value), &mut all);
    all
}

fn collect(value: &serde_json::Value, all: &mut Vec<String>) {
    match value {
        serde_json::Value::String(text) => all.push(text.clone()),
        serde_json::Value::Array(items) => items.iter().for_each(|item| collect(item, all)),
        _ => {}
    }
}
