//! How to join the networks, as a deployment says it.

use std::path::Path;

use rondel_net::{dds, zenoh};

use super::yaml::{Item, Mistakes};

/// The section `zenoh:`.
pub(super) fn zenoh_settings(item: Item<'_>, folder: &Path, mistakes: &mut Mistakes) -> zenoh::Settings {
    let mut settings = zenoh::Settings::default();
    let mut members = item.members("zenoh", mistakes);
    if let Some(item) = members.get("mode") {
        settings.mode = match item.text("mode", mistakes).as_deref() {
            Some("peer") => Some(zenoh::Mode::Peer),
            Some("client") => Some(zenoh::Mode::Client),
            Some("router") => Some(zenoh::Mode::Router),
            Some(_) => {
                mistakes.at(item, "mode must be peer, client or router");
                None
            }
            None => None,
        };
    }
    for (name, endpoints) in [("connect", &mut settings.connect), ("listen", &mut settings.listen)] {
        for item in members.get(name).map_or_else(Vec::new, Item::items) {
            let Some(text) = item.text("an endpoint", mistakes) else { continue };
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
            mistakes.at(item, format!("there is no file {}", file.display()));
        }
    }
    if let Some(item) = members.get("multicast") {
        settings.multicast_scouting = item.boolean("multicast", mistakes);
    }
    if let Some(item) = members.get("low_latency") {
        settings.low_latency = item.boolean("low_latency", mistakes).unwrap_or(false);
    }
    members.finish(mistakes);
    if let Err(error) = settings.check() {
        mistakes.at(item, error.to_string());
    }
    settings
}

/// The section `dds:`.
pub(super) fn dds_settings(item: Item<'_>, mistakes: &mut Mistakes) -> dds::Settings {
    let mut settings = dds::Settings::default();
    let mut members = item.members("dds", mistakes);
    if let Some(domain) = members.get("domain").and_then(|item| item.integer("domain", 0..=230, mistakes)) {
        settings.domain = domain as u32;
    }
    if let Some(item) = members.get("interface") {
        settings.interface = item.text("interface", mistakes);
    }
    if let Some(item) = members.get("peers") {
        settings.peers = item.texts("a peer", mistakes);
    }
    if let Some(queue) =
        members.get("reader_queue").and_then(|item| item.integer("reader_queue", 64..=1 << 24, mistakes))
    {
        settings.reader_queue = queue as u32;
    }
    members.finish(mistakes);
    settings
}
