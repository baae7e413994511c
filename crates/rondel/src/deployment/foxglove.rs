//! The section `foxglove:` of a deployment.

// Without the server nothing reads the settings.
#![cfg_attr(not(feature = "foxglove"), allow(dead_code))]

use std::net::SocketAddr;
use std::path::Path;

use super::page::{Token, host, page_address, token};
use super::yaml::{Item, Mistakes, Synonyms};

/// Names that people write for settings of the server.
const SYNONYMS: Synonyms = &[
    (&["address", "port", "bind", "endpoint", "on"], "write `listen`, such as `listen: 127.0.0.1:8765`"),
    (
        &["token", "password", "secret", "auth"],
        "write `token_file` or `token_env`: a token does not belong in this file",
    ),
    (&["host", "names", "name"], "write `hosts`, the names under which the server is reached"),
    (&["origin", "sites", "cors"], "write `origins`, such as `origins: [\"https://viewer.example\"]`"),
];

/// Serving of Foxglove.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FoxgloveSettings {
    /// The address of the WebSocket server.
    pub listen: SocketAddr,
    /// Source of the token that clients send, if they need one.
    pub token: Option<Token>,
    /// Names of the machine that clients may use, beside `localhost` and IP addresses.
    pub hosts: Vec<String>,
    /// Origins of pages that may connect without a token, beside the Foxglove application and pages of this machine.
    pub origins: Vec<String>,
}

impl FoxgloveSettings {
    /// Settings of an address, with the defaults of the others.
    pub fn of(listen: SocketAddr) -> FoxgloveSettings {
        FoxgloveSettings { listen, token: None, hosts: Vec::new(), origins: Vec::new() }
    }

    /// Checks whether others may connect without a token.
    ///
    /// # Errors
    /// The requirement on the settings.
    pub fn check(&self) -> Result<(), String> {
        match self.token.is_some() || self.listen.ip().is_loopback() {
            true => Ok(()),
            false => Err(format!(
                "others can connect to {}: add a token, such as `token_file: foxglove.token`, or listen on 127.0.0.1",
                self.listen
            )),
        }
    }
}

/// Reads the section; `folder` is that of the deployment.
pub(super) fn foxglove(item: Item<'_>, folder: &Path, mistakes: &mut Mistakes) -> Option<FoxgloveSettings> {
    let (mut listen_item, mut own_token) = (Some(item), None);
    let (mut hosts, mut origins) = (Vec::new(), Vec::new());
    if item.is_mapping() {
        let mut members = item.members("foxglove", mistakes);
        listen_item = members.get("listen");
        if listen_item.is_none() {
            mistakes.at(item, "`foxglove` needs `listen`, such as `listen: 127.0.0.1:8765`");
        }
        own_token = token(members.get("token_file"), members.get("token_env"), folder, mistakes);
        if let Some(item) = members.get("hosts") {
            hosts = item.items().into_iter().filter_map(|item| host(item, mistakes)).collect();
        }
        if let Some(item) = members.get("origins") {
            origins = item.items().into_iter().filter_map(|item| origin(item, mistakes)).collect();
        }
        members.finish(SYNONYMS, mistakes);
    }
    let listen_item = listen_item?;
    let name = if item.is_mapping() { "listen" } else { "foxglove" };
    let text = listen_item.text(name, mistakes)?;
    let listen =
        page_address(&text).map_err(|why| mistakes.at(listen_item, format!("`{name}` {why}"))).ok()?;
    let settings = FoxgloveSettings { listen, token: own_token, hosts, origins };
    settings.check().map_err(|why| mistakes.at(listen_item, why)).ok()?;
    Some(settings)
}

/// Reads the origin of a page, as in `https://viewer.example:8443`.
fn origin(item: Item<'_>, mistakes: &mut Mistakes) -> Option<String> {
    let text = item.text("origins", mistakes)?;
    let is_origin = ["http://", "https://"].iter().any(|scheme| {
        let host = text.strip_prefix(scheme);
        host.is_some_and(|host| !host.is_empty() && !host.contains(['/', '*', ' ']))
    });
    if !is_origin {
        mistakes.at(
            item,
            "`origins` has a scheme and a host without a path, such as https://viewer.example; `*` is not one",
        );
        return None;
    }
    Some(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn other_addresses_need_a_token() {
        let settings = |listen: &str, token: Option<&str>| {
            let token = token.map(|name| Token::Environment(name.to_owned()));
            page_address(listen)
                .map(|listen| FoxgloveSettings { token, ..FoxgloveSettings::of(listen) }.check().is_ok())
        };
        for (listen, token, expected) in [
            ("127.0.0.1:8765", None, true),
            ("[::1]:8765", None, true),
            ("0.0.0.0:8765", None, false),
            ("10.0.0.7:8765", None, false),
            ("10.0.0.7:8765", Some("TOKEN"), true),
        ] {
            assert_eq!(settings(listen, token), Ok(expected), "{listen}");
        }
    }
}
