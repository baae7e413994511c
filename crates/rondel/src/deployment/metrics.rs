//! The section `metrics:` of a deployment.

use std::net::SocketAddr;

use super::yaml::{Item, Mistakes, Synonyms};

/// The most instances that are counted apart.
const MOST_INSTANCES: i64 = 10_000;

/// Names that people write for settings of metrics.
const SYNONYMS: Synonyms = &[
    (
        &["address", "port", "bind", "host", "endpoint", "on"],
        "write `listen`, such as `listen: 127.0.0.1:9464`",
    ),
    (
        &["instances", "labels", "keys", "key"],
        "write `parameters: N`, the number of instances with their own counter",
    ),
];

/// Serving of metrics: where, and with which labels.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MetricsSettings {
    /// The address of the HTTP server.
    pub listen: SocketAddr,
    /// Number of instances whose violations are counted with their parameters as a label.
    pub parameters: usize,
}

/// Reads an address to listen on, as in `127.0.0.1:9464`.
///
/// # Errors
/// The requirement on the value.
pub fn listen_address(text: &str) -> Result<SocketAddr, String> {
    text.parse().map_err(|_| {
        "must be an IP address and a port, such as 127.0.0.1:9464, or 0.0.0.0:9464 for every interface"
            .to_owned()
    })
}

/// Reads the section.
pub(super) fn metrics(item: Item<'_>, mistakes: &mut Mistakes) -> Option<MetricsSettings> {
    let (mut listen_item, mut parameters) = (Some(item), 0);
    if item.is_mapping() {
        let mut members = item.members("metrics", mistakes);
        listen_item = members.get("listen");
        if listen_item.is_none() {
            mistakes.at(item, "`metrics` needs `listen`, such as `listen: 127.0.0.1:9464`");
        }
        if let Some(item) = members.get("parameters") {
            let count = item.integer("parameters", 0..=MOST_INSTANCES, mistakes).unwrap_or(0);
            parameters = usize::try_from(count).unwrap_or(0);
        }
        members.finish(SYNONYMS, mistakes);
    }
    let listen_item = listen_item?;
    let name = if item.is_mapping() { "listen" } else { "metrics" };
    let text = listen_item.text(name, mistakes)?;
    match listen_address(&text) {
        Ok(listen) => Some(MetricsSettings { listen, parameters }),
        Err(why) => {
            mistakes.at(listen_item, format!("`{name}` {why}"));
            None
        }
    }
}
