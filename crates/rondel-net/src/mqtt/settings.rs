use std::fmt;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::str::FromStr;

use super::{OpenError, link};

/// A version of MQTT.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Version {
    /// 3.1.1, which every broker speaks.
    V3,
    /// 5.
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

/// How sure it is that a message comes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Qos {
    /// 0: it may be lost.
    AtMostOnce = 0,
    /// 1: it comes, maybe twice when a connection breaks.
    #[default]
    AtLeastOnce = 1,
    /// 2: it comes, once.
    ExactlyOnce = 2,
}

impl Qos {
    /// 0, 1 or 2.
    pub fn from_number(number: u8) -> Option<Qos> {
        [Qos::AtMostOnce, Qos::AtLeastOnce, Qos::ExactlyOnce].get(usize::from(number)).copied()
    }
}

/// Where a broker is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Broker {
    /// A name or an address.
    pub host: String,
    /// The TCP port.
    pub port: u16,
    /// Whether the address itself says TLS or no TLS.
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
            // An IPv6 address stands in brackets.
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

/// Where a password stands. It is read whenever a connection is made, and kept nowhere.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Password {
    /// In this file; a line break at its end does not belong to it.
    File(PathBuf),
    /// In this environment variable.
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
                    what: format!("the environment variable {name}"),
                    reason: "it is not set".to_owned(),
                })?;
                Ok(value.into_encoded_bytes())
            }
        }
    }
}

/// The limit of a password or of a file with certificates, in bytes.
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

/// Whom to trust, and as whom to come. Names of files in the PEM format.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Tls {
    /// The certificates of those who may vouch for the broker; where left out, those that the system
    /// trusts.
    pub ca: Option<PathBuf>,
    /// The client's own certificate.
    pub certificate: Option<PathBuf>,
    /// Its private key.
    pub key: Option<PathBuf>,
}

/// How to join a broker.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Settings {
    /// Where it is.
    pub broker: Broker,
    /// Which MQTT to speak.
    pub version: Version,
    /// The quality of service of subscriptions and publishers that do not say so themselves.
    pub qos: Qos,
    /// The user, where the broker asks for one.
    pub user: Option<String>,
    /// The user's password.
    pub password: Option<Password>,
    /// With TLS.
    pub tls: Option<Tls>,
    /// Under which name the broker knows this client; made up where left out. Publishers have a
    /// connection of their own, whose name ends in `-out`.
    pub client_id: Option<String>,
    /// Whether what the broker has kept from an earlier run is forgotten. If not, the broker is left
    /// with the subscriptions, and keeps for the next run what comes in between.
    pub clean_start: bool,
    /// With version 5: for how many seconds the broker keeps what comes while the connection is broken.
    pub session_expiry: u32,
    /// After how many seconds without a sign of life a connection is taken for broken.
    pub keep_alive: u16,
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
            keep_alive: 30,
        }
    }
}

/// How a subscription receives.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct SubscriptionSettings {
    /// The quality of service; `None`: that of the [`Settings`].
    pub qos: Option<Qos>,
    /// Whether a message counts that the broker has kept for whoever subscribes later.
    pub retained: bool,
}

impl Default for SubscriptionSettings {
    fn default() -> SubscriptionSettings {
        SubscriptionSettings { qos: None, retained: true }
    }
}

/// How a publisher sends.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PublisherSettings {
    /// The quality of service; `None`: that of the [`Settings`].
    pub qos: Option<Qos>,
    /// Whether the broker keeps the last message for whoever subscribes later.
    pub retain: bool,
    /// Whether messages are held back until they fill a packet or are
    /// [released](crate::adapter::Publisher::release).
    pub batching: bool,
}

impl Settings {
    /// Checks these settings, and the files that they name, without connecting. Whether an environment
    /// variable is set is not asked: that is a matter of where this will run.
    ///
    /// # Errors
    /// What [`Session::open`](super::Session::open) would say.
    pub fn check(&self) -> Result<(), OpenError> {
        let wrong = |said: &str| Err(OpenError::Setting(said.to_owned()));
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

    /// Whether the connection is encrypted, and then how.
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
    fn brokers_are_read() {
        assert_eq!(broker("localhost"), Broker::default());
        assert_eq!(broker("a:1"), Broker { host: "a".into(), port: 1, tls: None });
        assert_eq!(broker("mqtts://a"), Broker { host: "a".into(), port: 8883, tls: Some(true) });
        assert_eq!(broker("mqtt://[::1]:7/"), Broker { host: "::1".into(), port: 7, tls: Some(false) });
        assert_eq!(broker("[fe80::1]:7").to_string(), "[fe80::1]:7");
        for bad in ["", ":1", "a:b", "a:", "http://a", "a/b", "[::1", "[::1]x", "a b"] {
            assert!(matches!(bad.parse::<Broker>(), Err(OpenError::Broker(_))), "{bad}");
        }
        for bad in ["a:70000", "mqtts://[::1]:99999", "a:0"] {
            let told = bad.parse::<Broker>().unwrap_err().to_string();
            assert!(told.contains("is not between 1 and 65535"), "{told}");
        }
        let told = "mqtt://me:secret@a".parse::<Broker>().unwrap_err().to_string();
        assert!(told.contains("password") && !told.contains("secret"), "{told}");
    }

    #[test]
    fn settings_that_cannot_be_are_refused() {
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
