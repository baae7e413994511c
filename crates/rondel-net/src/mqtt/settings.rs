//! Settings of broker connections, subscriptions and publishers.

use std::fmt;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::str::FromStr;
use std::time::Duration;

use super::{OpenError, link};

/// MQTT protocol version.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Version {
    /// Version 3.1.1, supported by every broker.
    V3,
    /// Version 5.
    #[default]
    V5,
}

impl FromStr for Version {
    type Err = ();

    fn from_str(text: &str) -> Result<Version, ()> {
        match text {
            "3.1.1" => Ok(Version::V3),
            "5" => Ok(Version::V5),
            _ => Err(()),
        }
    }
}

/// Quality of service (QoS): the delivery guarantee of a message.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Qos {
    /// QoS 0: the message may be lost.
    AtMostOnce = 0,
    /// QoS 1: the message is delivered, possibly more than once after a broken connection.
    #[default]
    AtLeastOnce = 1,
    /// QoS 2: the message is delivered exactly once.
    ExactlyOnce = 2,
}

impl Qos {
    /// Returns the quality of service with this number, 0, 1 or 2.
    pub fn from_number(number: u8) -> Option<Qos> {
        [Qos::AtMostOnce, Qos::AtLeastOnce, Qos::ExactlyOnce].get(usize::from(number)).copied()
    }
}

/// Network address of a broker.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Broker {
    /// Host name or IP address.
    pub host: String,
    /// TCP port.
    pub port: u16,
    /// `true` for `mqtts://`, `false` for `mqtt://`, `None` without a scheme.
    pub tls: Option<bool>,
}

impl Default for Broker {
    fn default() -> Broker {
        Broker { host: "localhost".to_owned(), port: 1883, tls: None }
    }
}

impl FromStr for Broker {
    type Err = OpenError;

    fn from_str(text: &str) -> Result<Broker, OpenError> {
        let wrong = || OpenError::Broker(text.to_owned());
        let (tls, rest) = match text.split_once("://") {
            None => (None, text),
            Some(("mqtt", rest)) => (Some(false), rest),
            Some(("mqtts", rest)) => (Some(true), rest),
            Some(_) => return Err(wrong()),
        };
        let rest = rest.strip_suffix('/').unwrap_or(rest);
        if rest.contains('@') {
            let said = "name the user in a setting of its own, and the password in a file or an environment \
                        variable, not in the broker's address";
            return Err(OpenError::Setting(said.to_owned()));
        }
        let port = if tls == Some(true) { 8883 } else { 1883 };
        let number = |given: &str| match given.parse::<u16>() {
            Ok(port) if port > 0 => Ok(port),
            _ if given.is_empty() || !given.bytes().all(|b| b.is_ascii_digit()) => Err(wrong()),
            _ => Err(OpenError::Port { broker: text.to_owned(), port: given.to_owned() }),
        };
        let (host, port) = match rest.strip_prefix('[').map(|rest| rest.split_once(']').ok_or_else(wrong)) {
            // An IPv6 address is written in brackets.
            Some(split) => {
                let (host, rest) = split?;
                match rest.strip_prefix(':') {
                    Some(given) => (host, number(given)?),
                    None if rest.is_empty() => (host, port),
                    None => return Err(wrong()),
                }
            }
            None => match rest.split_once(':') {
                Some((host, given)) => (host, number(given)?),
                None => (rest, port),
            },
        };
        if host.is_empty() || host.contains(|c: char| c == '/' || c.is_whitespace()) {
            return Err(wrong());
        }
        Ok(Broker { host: host.to_owned(), port, tls })
    }
}

impl fmt::Display for Broker {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.host.contains(':') {
            write!(f, "[{}]:{}", self.host, self.port)
        } else {
            write!(f, "{}:{}", self.host, self.port)
        }
    }
}

/// Source of a password. It is read for each connection and never stored.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Password {
    /// A file; line breaks at its end are ignored.
    File(PathBuf),
    /// An environment variable.
    Environment(String),
}

impl Password {
    pub(super) fn read(&self) -> Result<Vec<u8>, OpenError> {
        match self {
            Password::File(path) => {
                let mut password = read(path)?;
                while password.last().is_some_and(|&b| b == b'\n' || b == b'\r') {
                    password.pop();
                }
                Ok(password)
            }
            Password::Environment(name) => {
                let value = std::env::var_os(name).ok_or_else(|| OpenError::Secret {
                    what: format!("environment variable {name} for the MQTT password"),
                    reason: "it is not set; export it before starting".to_owned(),
                })?;
                Ok(value.into_encoded_bytes())
            }
        }
    }
}

/// Maximum size of a password or of a file with certificates, in bytes.
const LARGEST: u64 = 16 << 20;

/// Reads a file with a password, certificates or a key.
pub(super) fn read(path: &Path) -> Result<Vec<u8>, OpenError> {
    let failed =
        |e: std::io::Error| OpenError::Secret { what: path.display().to_string(), reason: e.to_string() };
    let mut bytes = Vec::new();
    std::fs::File::open(path)
        .and_then(|file| file.take(LARGEST + 1).read_to_end(&mut bytes))
        .map_err(failed)?;
    if bytes.len() as u64 > LARGEST {
        let reason = "it has more than 16 MiB".to_owned();
        return Err(OpenError::Secret { what: path.display().to_string(), reason });
    }
    Ok(bytes)
}

/// TLS settings: paths of PEM files.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Tls {
    /// Certificates of the authorities that may sign the broker's certificate; default: the system's
    /// trust store.
    pub ca: Option<PathBuf>,
    /// Client certificate.
    pub certificate: Option<PathBuf>,
    /// Private key of the client certificate.
    pub key: Option<PathBuf>,
}

/// Settings of the connection with a broker.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Settings {
    /// Address of the broker.
    pub broker: Broker,
    /// Protocol version.
    pub version: Version,
    /// Quality of service of subscriptions and publishers without their own.
    pub qos: Qos,
    /// User name; default: anonymous.
    pub user: Option<String>,
    /// Password of the user.
    pub password: Option<Password>,
    /// TLS settings; default: TLS only for an `mqtts://` address.
    pub tls: Option<Tls>,
    /// Client id; default: a random one. Publishers use a second connection, whose client id ends in
    /// `-out`.
    pub client_id: Option<String>,
    /// `true`: the broker discards the session of an earlier run. `false`: the broker keeps the
    /// subscriptions when this client leaves, and queues messages for its next run.
    pub clean_start: bool,
    /// Time for which the broker keeps the session while the connection is broken, in seconds; only with version 5.
    pub session_expiry: u32,
    /// Number of messages at QoS 1 and 2 that the broker may send before the first is acknowledged; with version 3.1.1
    /// the broker's setting counts. Default: no limit; while acknowledgements are held back 4,096, with version 3.1.1
    /// the 20 that are usual for brokers.
    pub receive_maximum: Option<u16>,
    /// Holds acknowledgements back until [`Session::release`](super::Session::release). The bytes are the marks of the
    /// previous run, from [`Session::freeze`](super::Session::freeze); empty without one.
    pub hold: Option<Vec<u8>>,
    /// Keep-alive interval in seconds; a connection that is silent for 1.5 intervals counts as broken.
    pub keep_alive: u16,
    /// Maximum time for which publishing waits for a broker that accepts nothing or cannot be reached, before messages
    /// are dropped. Default: without limit.
    pub slow_consumer: Option<Duration>,
}

impl Default for Settings {
    fn default() -> Settings {
        Settings {
            broker: Broker::default(),
            version: Version::default(),
            qos: Qos::default(),
            user: None,
            password: None,
            tls: None,
            client_id: None,
            clean_start: true,
            session_expiry: 300,
            receive_maximum: None,
            hold: None,
            keep_alive: 30,
            slow_consumer: None,
        }
    }
}

/// Settings of a subscription.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct SubscriptionSettings {
    /// Quality of service; default: that of the [`Settings`].
    pub qos: Option<Qos>,
    /// Whether retained messages are received.
    pub retained: bool,
    /// Whether messages without a payload are received. Most encodings have no such messages, and a broker uses them to
    /// delete a retained message.
    pub empty: bool,
}

impl Default for SubscriptionSettings {
    fn default() -> SubscriptionSettings {
        SubscriptionSettings { qos: None, retained: true, empty: false }
    }
}

/// Settings of a publisher.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PublisherSettings {
    /// Quality of service; default: that of the [`Settings`].
    pub qos: Option<Qos>,
    /// Whether the broker retains the last message for later subscribers.
    pub retain: bool,
    /// Whether messages are buffered until they fill a packet or are
    /// [released](crate::adapter::Publisher::release).
    pub batching: bool,
}

impl Settings {
    /// Checks these settings and the files that they name, without connecting. Environment variables are not checked:
    /// they may only be set where the deployment runs.
    ///
    /// # Errors
    /// The error that [`Session::open`](super::Session::open) would return.
    pub fn check(&self) -> Result<(), OpenError> {
        let wrong = |text: &str| Err(OpenError::Setting(text.to_owned()));
        if self.password.is_some() && self.user.is_none() {
            return wrong("an MQTT password needs a user: name the user as well");
        }
        if let Some(Password::File(path)) = &self.password {
            read(path)?;
        }
        if self.tls.is_some() && self.broker.tls == Some(false) {
            return wrong("mqtt:// is without TLS; write mqtts://, or leave the TLS settings out");
        }
        if !self.clean_start && self.client_id.is_none() {
            return wrong(
                "without a clean start, MQTT needs a client id, by which the broker recognises this client",
            );
        }
        if self.keep_alive == 0 {
            return wrong(
                "the keep-alive of MQTT must be at least 1 s, to notice that the connection is lost",
            );
        }
        let texts = [&self.user, &self.client_id].into_iter().flatten();
        if texts.clone().any(|text| text.is_empty() || text.len() > 60_000 || text.contains('\0')) {
            return wrong("an MQTT user or client id must have 1 to 60000 bytes, and no zero byte");
        }
        link::tls(self).map(drop)
    }

    /// Returns the TLS settings of an encrypted connection.
    pub(super) fn encrypted(&self) -> Option<Tls> {
        self.tls.clone().or_else(|| (self.broker.tls == Some(true)).then(Tls::default))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn broker(text: &str) -> Broker {
        text.parse().unwrap()
    }

    #[test]
    fn broker_addresses_are_parsed() {
        assert_eq!(broker("localhost"), Broker::default());
        assert_eq!(broker("a:1"), Broker { host: "a".into(), port: 1, tls: None });
        assert_eq!(broker("mqtts://a"), Broker { host: "a".into(), port: 8883, tls: Some(true) });
        assert_eq!(broker("mqtt://[::1]:7/"), Broker { host: "::1".into(), port: 7, tls: Some(false) });
        assert_eq!(broker("[fe80::1]:7").to_string(), "[fe80::1]:7");
        for bad in ["", ":1", "a:b", "a:", "http://a", "a/b", "[::1", "[::1]x", "a b"] {
            assert!(matches!(bad.parse::<Broker>(), Err(OpenError::Broker(_))), "{bad}");
        }
        for bad in ["a:70000", "mqtts://[::1]:99999", "a:0"] {
            let message = bad.parse::<Broker>().unwrap_err().to_string();
            assert!(message.contains("is not between 1 and 65535"), "{message}");
        }
        let message = "mqtt://me:secret@a".parse::<Broker>().unwrap_err().to_string();
        assert!(message.contains("password") && !message.contains("secret"), "{message}");
    }

    #[test]
    fn invalid_settings_are_refused() {
        let good = Settings::default();
        assert!(good.check().is_ok());
        let file = |name: &str| Some(PathBuf::from(name));
        for bad in [
            Settings { password: Some(Password::Environment("X".into())), ..good.clone() },
            Settings {
                user: Some("me".into()),
                password: Some(Password::File("/nowhere".into())),
                ..good.clone()
            },
            Settings { tls: Some(Tls::default()), broker: broker("mqtt://a"), ..good.clone() },
            Settings { clean_start: false, ..good.clone() },
            Settings { keep_alive: 0, ..good.clone() },
            Settings { client_id: Some(String::new()), ..good.clone() },
            Settings { tls: Some(Tls { ca: file("/nowhere"), ..Tls::default() }), ..good.clone() },
            Settings { tls: Some(Tls { certificate: file("/dev/null"), ..Tls::default() }), ..good.clone() },
        ] {
            assert!(bad.check().is_err(), "{bad:?}");
        }
    }
}
