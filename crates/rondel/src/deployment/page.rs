//! The section `page:` of a deployment.

// Without the page nothing reads the settings.
#![cfg_attr(not(feature = "page"), allow(dead_code))]

use std::env;
use std::fs::File;
use std::io::Read as _;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};

use super::sinks::file;
use super::yaml::{Item, Mistakes, Synonyms};

/// Names that people write for settings of the page.
const SYNONYMS: Synonyms = &[
    (&["address", "port", "bind", "endpoint", "on"], "write `listen`, such as `listen: 127.0.0.1:8080`"),
    (
        &["token", "password", "secret", "auth"],
        "write `token_file` or `token_env`: a token does not belong in this file",
    ),
    (&["host", "names", "name"], "write `hosts`, the names under which the page is opened"),
    (&["read_only", "write", "ack", "acknowledge"], "write `actions: true` to acknowledge and silence"),
    (
        &["ssl", "https", "certificate", "cert", "key", "client_ca", "ca"],
        "write `tls: { certificate: FILE, key: FILE }`, with `client_ca: FILE` to require certificates of clients",
    ),
];
/// The same of TLS.
const TLS: Synonyms = &[
    (&["cert", "certfile", "cert_file", "server_cert"], "write `certificate`"),
    (&["keyfile", "key_file", "server_key", "private_key"], "write `key`"),
    (
        &[
            "ca",
            "ca_file",
            "cafile",
            "ca_cert",
            "ca_certs",
            "clients",
            "client_cert",
            "require_certificate",
            "mtls",
        ],
        "write `client_ca`, the authorities whose clients are served",
    ),
];

/// Least number of characters of a token: guesses are limited to a few per second.
const LEAST: usize = 16;
/// Largest file with a token, in bytes.
const LARGEST: u64 = 4 << 10;

/// Serving of the page.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PageSettings {
    /// The address of the HTTP server.
    pub listen: SocketAddr,
    /// Source of the token that requests carry, if they need one.
    pub token: Option<Token>,
    /// Names of the machine that requests may use, beside `localhost` and IP addresses.
    pub hosts: Vec<String>,
    /// Whether operators may acknowledge violations and silence properties.
    pub actions: bool,
    /// Files of TLS; `None` for a server without encryption.
    pub tls: Option<ServerTlsFiles>,
}

/// Files of TLS of a server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ServerTlsFiles {
    /// Certificate of the server.
    pub certificate: PathBuf,
    /// Its key.
    pub key: PathBuf,
    /// Certificates of the authorities whose clients are served; `None` to serve clients without a certificate.
    pub client_ca: Option<PathBuf>,
}

/// Source of a token.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Token {
    /// A file; white space around the token is ignored.
    File(PathBuf),
    /// An environment variable.
    Environment(String),
}

impl PageSettings {
    /// Settings of an address, with the defaults of the others.
    pub fn of(listen: SocketAddr) -> PageSettings {
        PageSettings { listen, token: None, hosts: Vec::new(), actions: false, tls: None }
    }

    /// Checks whether others may connect without a token or a certificate.
    ///
    /// # Errors
    /// The requirement on the settings.
    pub fn check(&self) -> Result<(), String> {
        match self.token.is_some() || self.verifies_clients() || self.listen.ip().is_loopback() {
            true => Ok(()),
            false => Err(format!(
                "others can connect to {}: add a token, such as `token_file: page.token`, require certificates of \
                 clients by `client_ca` of `tls`, or listen on 127.0.0.1",
                self.listen
            )),
        }
    }

    /// Whether only clients with a certificate are served.
    pub fn verifies_clients(&self) -> bool {
        self.tls.as_ref().is_some_and(|files| files.client_ca.is_some())
    }

    /// The scheme of its addresses.
    pub fn scheme(&self) -> &'static str {
        if self.tls.is_some() { "https" } else { "http" }
    }
}

impl Token {
    /// Reads the token of a server: the page, or Foxglove.
    ///
    /// # Errors
    /// The reason why there is none that can be used.
    pub fn read(&self, of: &str) -> Result<String, String> {
        let (text, place) = match self {
            Token::File(path) => {
                let mut text = String::new();
                let read = File::open(path).and_then(|file| file.take(LARGEST).read_to_string(&mut text));
                read.map_err(|error| format!("cannot read the token of {of} {}: {error}", path.display()))?;
                (text, path.display().to_string())
            }
            Token::Environment(name) => match env::var(name) {
                Ok(text) => (text, format!("environment variable {name}")),
                Err(_) => {
                    return Err(format!(
                        "the environment variable {name} with the token of {of} is not set; export it before starting"
                    ));
                }
            },
        };
        let token = text.trim();
        if token.chars().count() < LEAST || token.chars().any(|c| !c.is_ascii_graphic()) {
            return Err(format!(
                "the token of {of} ({place}) must have at least {LEAST} letters, digits or signs, without spaces: \
                 `openssl rand -hex 16` makes one"
            ));
        }
        Ok(token.to_owned())
    }
}

/// Reads an address to listen on, as in `127.0.0.1:8080`.
///
/// # Errors
/// The requirement on the value.
pub fn page_address(text: &str) -> Result<SocketAddr, String> {
    text.parse().map_err(|_| {
        "must be an IP address and a port, such as 127.0.0.1:8080, or 0.0.0.0:8080 for every interface"
            .to_owned()
    })
}

/// Reads the section; `folder` is that of the deployment.
pub(super) fn page(item: Item<'_>, folder: &Path, mistakes: &mut Mistakes) -> Option<PageSettings> {
    let (mut listen_item, mut own_token, mut hosts, mut actions) = (Some(item), None, Vec::new(), false);
    let mut files = None;
    let before = mistakes.errors.len();
    if item.is_mapping() {
        let mut members = item.members("page", mistakes);
        listen_item = members.get("listen");
        if listen_item.is_none() {
            mistakes.at(item, "`page` needs `listen`, such as `listen: 127.0.0.1:8080`");
        }
        own_token = token(members.get("token_file"), members.get("token_env"), folder, mistakes);
        if let Some(item) = members.get("hosts") {
            hosts = item.items().into_iter().filter_map(|item| host(item, mistakes)).collect();
        }
        let own = members.get("actions").and_then(|item| item.boolean("actions", mistakes));
        actions = own.unwrap_or(false);
        files = members.get("tls").and_then(|item| tls(item, folder, mistakes));
        members.finish(SYNONYMS, mistakes);
    }
    let listen_item = listen_item?;
    let name = if item.is_mapping() { "listen" } else { "page" };
    let text = listen_item.text(name, mistakes)?;
    let listen =
        page_address(&text).map_err(|why| mistakes.at(listen_item, format!("`{name}` {why}"))).ok()?;
    let settings = PageSettings { listen, token: own_token, hosts, actions, tls: files };
    if mistakes.errors.len() > before {
        // A token or an authority may be missing because it cannot be read.
        return None;
    }
    settings.check().map_err(|why| mistakes.at(listen_item, why)).ok()?;
    Some(settings)
}

/// Reads the files of TLS of a server.
fn tls(item: Item<'_>, folder: &Path, mistakes: &mut Mistakes) -> Option<ServerTlsFiles> {
    let mut members = item.members("tls", mistakes);
    let mut read = |name: &'static str, mistakes: &mut Mistakes| {
        let own = members.get(name)?;
        Some(file(name, own, folder, mistakes))
    };
    let (certificate, key, client_ca) =
        (read("certificate", mistakes), read("key", mistakes), read("client_ca", mistakes));
    members.finish(TLS, mistakes);
    if certificate.is_none() || key.is_none() {
        mistakes.at(
            item,
            "`tls` of `page` needs `certificate` and `key`, the files of the certificate of the server and of its key",
        );
    }
    // A file that does not exist is reported.
    if client_ca == Some(None) {
        return None;
    }
    Some(ServerTlsFiles { certificate: certificate??, key: key??, client_ca: client_ca.flatten() })
}

/// Reads the source of a token, from the items that name it.
pub(super) fn token(
    file: Option<Item<'_>>,
    variable: Option<Item<'_>>,
    folder: &Path,
    mistakes: &mut Mistakes,
) -> Option<Token> {
    match (file, variable) {
        (Some(_), Some(item)) => {
            mistakes.at(item, "use either token_file or token_env, not both");
            None
        }
        (Some(item), None) => item.text("token_file", mistakes).map(|file| Token::File(folder.join(file))),
        (None, Some(item)) => item.text("token_env", mistakes).map(Token::Environment),
        (None, None) => None,
    }
}

/// Reads the name of a host.
pub(super) fn host(item: Item<'_>, mistakes: &mut Mistakes) -> Option<String> {
    let name = item.text("hosts", mistakes)?;
    if name.is_empty() || name.contains(|c: char| !c.is_ascii_alphanumeric() && !matches!(c, '.' | '-')) {
        mistakes.at(item, "`hosts` has names without a port, such as monitor.example");
        return None;
    }
    Some(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn other_addresses_need_a_token() {
        let settings = |listen: &str, token: Option<&str>| {
            let token = token.map(|name| Token::Environment(name.to_owned()));
            page_address(listen)
                .map(|listen| PageSettings { token, ..PageSettings::of(listen) }.check().is_ok())
        };
        for (listen, token, expected) in [
            ("127.0.0.1:0", None, true),
            ("[::1]:80", None, true),
            ("127.1.2.3:80", None, true),
            ("0.0.0.0:80", None, false),
            ("[::]:80", None, false),
            ("10.0.0.7:80", None, false),
            ("10.0.0.7:80", Some("TOKEN"), true),
        ] {
            assert_eq!(settings(listen, token), Ok(expected), "{listen}");
        }
        let with = |client_ca: Option<&str>| ServerTlsFiles {
            certificate: "server.pem".into(),
            key: "server.key".into(),
            client_ca: client_ca.map(PathBuf::from),
        };
        let beyond = page_address("10.0.0.7:80").map(PageSettings::of);
        for (client_ca, expected) in [(None, false), (Some("clients.pem"), true)] {
            let settings = beyond.clone().map(|own| PageSettings { tls: Some(with(client_ca)), ..own });
            let is_permitted = settings.map(|settings| settings.check().is_ok());
            assert_eq!(is_permitted, Ok(expected), "{client_ca:?}");
        }
        for wrong in ["localhost:80", "127.0.0.1", ":80", "", "127.0.0.1:65536"] {
            assert!(page_address(wrong).is_err(), "{wrong}");
        }
    }
}
