//! The sections `zenoh:`, `dds:` and `ros2:` of a deployment.

use std::path::Path;
use std::time::Duration;

use rondel_net::dds::Security;
use rondel_net::ros2::{self, Middleware, NodeName};
use rondel_net::{dds, zenoh};

use super::alignment::nanoseconds;
use super::dds_security::security;
use super::yaml::{Item, Mistakes, Synonyms};
use super::{Address, Encoding};

/// Names that people write for settings of Zenoh.
const ZENOH: Synonyms = &[
    (
        &[
            "endpoint",
            "endpoints",
            "router",
            "routers",
            "server",
            "host",
            "url",
            "address",
            "peers",
            "locator",
        ],
        "write `connect`, such as `connect: tcp/192.0.2.1:7447`",
    ),
    (&["port", "bind"], "write `listen`, such as `listen: tcp/0.0.0.0:7447`"),
    (&["config_file", "configuration"], "write `config`"),
    (&["scouting", "multicast_scouting"], "write `multicast`"),
];

/// Names that people write for settings of DDS.
const DDS: Synonyms = &[
    (&["domain_id", "domainid", "ros_domain_id"], "write `domain`"),
    (&["network_interface", "nic", "address"], "write `interface`"),
    (&["peer", "hosts", "host", "discovery"], "write `peers`"),
    (&["queue", "queue_size", "depth"], "write `reader_queue`"),
];

/// Names that people write for settings of ROS 2.
const ROS2: Synonyms = &[
    (&["domain_id", "ros_domain_id"], "write `domain`"),
    (
        &["rmw", "rmw_implementation", "implementation"],
        "write `middleware`, such as `middleware: rmw_cyclonedds_cpp` or `middleware: zenoh`",
    ),
    (&["sim_time", "clock", "simulated_time", "simulation"], "write `use_sim_time: true`"),
    (&["name", "namespace", "node_name"], "write `node`, such as `node: /robot1/rondel`"),
];

/// Reads the section `ros2:`; what it leaves out is that of the environment. Returns also the topic `/clock`, if its time
/// is that of the run.
pub(super) fn ros2_settings(
    item: Item<'_>,
    mistakes: &mut Mistakes,
) -> Option<(ros2::Settings, Option<Address>)> {
    let mut members = item.members("ros2", mistakes);
    let read = ros2::Settings::from_environment(|name| std::env::var(name).ok());
    let mut settings = read.map_err(|error| mistakes.at(item, error.to_string())).ok()?;
    if let Some(domain) = members.get("domain").and_then(|item| item.integer("domain", 0..=232, mistakes)) {
        settings.domain = domain as u32;
    }
    if let Some(item) = members.get("middleware") {
        let middleware = Middleware::parse(&item.text("middleware", mistakes)?);
        settings.middleware = middleware.map_err(|error| mistakes.at(item, error.to_string())).ok()?;
    }
    if let Some(item) = members.get("node") {
        let node = NodeName::parse(&item.text("node", mistakes)?);
        settings.node = node.map_err(|error| mistakes.at(item, error.to_string())).ok()?;
    }
    let is_simulated = members.get("use_sim_time").and_then(|item| item.boolean("use_sim_time", mistakes));
    members.finish(ROS2, mistakes);
    let clock = is_simulated.unwrap_or(false).then(ros2::clock::topic).transpose();
    let clock = clock.map_err(|error| mistakes.at(item, error.to_string())).ok()?;
    Some((settings, clock.map(|topic| Address::Ros2(Box::new(topic), Encoding::CDR))))
}

/// Reads the section `zenoh:`.
pub(super) fn zenoh_settings(item: Item<'_>, folder: &Path, mistakes: &mut Mistakes) -> zenoh::Settings {
    let mut settings = zenoh::Settings::default();
    let mut members = item.members("zenoh", mistakes);
    if let Some(item) = members.get("mode") {
        settings.mode = match item.text("mode", mistakes).as_deref() {
            Some("peer") => Some(zenoh::Mode::Peer),
            Some("client") => Some(zenoh::Mode::Client),
            Some("router") => Some(zenoh::Mode::Router),
            Some(_) => {
                mistakes.at(item, "`mode` must be peer, client or router");
                None
            }
            None => None,
        };
    }
    for (name, endpoints) in [("connect", &mut settings.connect), ("listen", &mut settings.listen)] {
        for item in members.get(name).map_or_else(Vec::new, Item::items) {
            let Some(text) = item.text(name, mistakes) else { continue };
            match zenoh::check_endpoint(&text, name == "listen") {
                Ok(()) => endpoints.push(text),
                Err(error) => mistakes.at(item, error.to_string()),
            }
        }
    }
    if let Some(item) = members.get("config")
        && let Some(text) = item.text("config", mistakes)
    {
        let file = folder.join(text);
        if file.is_file() {
            settings.config_file = Some(file);
        } else {
            mistakes.at(item, format!("`config` names {}, which is not a file", file.display()));
        }
    }
    if let Some(item) = members.get("multicast") {
        settings.multicast_scouting = item.boolean("multicast", mistakes);
    }
    if let Some(item) = members.get("low_latency") {
        settings.low_latency = item.boolean("low_latency", mistakes).unwrap_or(false);
    }
    members.finish(ZENOH, mistakes);
    if let Err(error) = settings.check() {
        mistakes.at(item, error.to_string());
    }
    settings
}

/// Reads the lease of a DDS participant.
///
/// # Errors
/// The requirement on the value.
pub fn lease(text: &str) -> Result<Duration, &'static str> {
    let nanos = nanoseconds(text).and_then(|nanos| u64::try_from(nanos).ok()).map(Duration::from_nanos);
    nanos
        .filter(|lease| (Duration::from_secs(1)..=Duration::from_secs(600)).contains(lease))
        .ok_or("must be a duration from 1 s to 10 min, such as 30 s")
}

/// Reads the section `dds:`; `joins` says whether files of DDS Security are needed now. Without a domain it is that of ROS 2,
/// in the deployment or the environment.
pub(super) fn dds_settings(
    item: Item<'_>,
    folder: &Path,
    ros2: Option<&ros2::Settings>,
    joins: bool,
    mistakes: &mut Mistakes,
) -> dds::Settings {
    let mut settings = dds::Settings::default();
    let mut members = item.members("dds", mistakes);
    match (members.get("domain"), ros2) {
        (Some(item), _) => {
            settings.domain = item.integer("domain", 0..=230, mistakes).unwrap_or_default() as u32;
        }
        (None, Some(ros2)) => settings.domain = ros2.domain,
        (None, None) if joins => match ros2::domain_of(|name| std::env::var(name).ok()) {
            Ok(domain) => settings.domain = domain,
            Err(error) => {
                mistakes.at(item, format!("`domain` is missing, and ROS_DOMAIN_ID is wrong: {error}"))
            }
        },
        (None, None) => {}
    }
    if let Some(item) = members.get("interface") {
        settings.interface = item.text("interface", mistakes);
    }
    if let Some(item) = members.get("peers") {
        settings.peers = item.texts("peers", mistakes);
    }
    if let Some(queue) =
        members.get("reader_queue").and_then(|item| item.integer("reader_queue", 64..=1 << 24, mistakes))
    {
        settings.reader_queue = queue as u32;
    }
    if let Some(history) =
        members.get("history").and_then(|item| item.integer("history", 0..=10_000_000, mistakes))
    {
        settings.history = history as u32;
    }
    if let Some(item) = members.get("lease")
        && let Some(text) = item.text("lease", mistakes)
    {
        match lease(&text) {
            Ok(duration) => settings.lease = Some(duration),
            Err(error) => mistakes.at(item, format!("`lease` {error}")),
        }
    }
    if let Some(item) = members.get("security") {
        let missing = Security::missing().filter(|_| joins);
        if let Some(error) = missing {
            // No file could mend that.
            mistakes.at(item, error.to_string());
        } else if let Some(files) = security(item, folder, mistakes) {
            if joins {
                files.check(settings.domain, mistakes);
            }
            settings.security = Some(Box::new(files.security));
        }
    }
    members.finish(DDS, mistakes);
    settings
}
