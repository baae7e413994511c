//! Commands that only listen: to the topics of a deployment, or to addresses.

use std::path::{Path, PathBuf};

use rondel_net::{dds, kafka};
use rondel_runtime::Input;

use super::from_deployment;
use crate::deployment::{Address, Binding, Deployment, Typing, set_delivery};
use crate::live::networks::{NetworkArguments, NetworkSettings};
use crate::schemas::Schemas;
use crate::specification::{Specification, is_deployment};
use crate::{complain, exit};

/// The first of these that is a deployment file.
pub(super) fn named_deployment(sources: &[String]) -> Option<&String> {
    // The name of a topic may end in .yaml too.
    sources.iter().find(|text| is_deployment(Path::new(text)) && Address::parse(text).is_err())
}

/// The deployment that is named among sources, which must be the only one; `None` if they are addresses. `given` are options
/// of the command that a deployment replaces: the name of each, and whether it was given. The error is empty if it has been
/// shown.
pub(super) fn read_named(
    command: &str,
    sources: &[String],
    given: &[(bool, &'static str)],
    network: &NetworkArguments,
) -> Result<Option<Deployment>, String> {
    let Some(file) = named_deployment(sources) else { return Ok(None) };
    if sources.len() > 1 {
        return Err(format!("either addresses or one deployment, not {file} and others"));
    }
    from_deployment(command, given.iter().copied().chain(network.given()))?;
    Deployment::from_file(Path::new(file)).map(Some).map_err(|_| String::new())
}

/// Shows an error of arguments unless it is empty, and returns the exit status.
pub(super) fn misused(error: String) -> u8 {
    if !error.is_empty() {
        complain(&error);
    }
    exit::USAGE
}

/// The deployment without its sinks, and without networks that only sinks need. Progress markers and the clock of a
/// simulation stay if it is `aligned`.
pub(super) fn only_listens(
    mut deployment: Deployment,
    exit_on_unreachable: bool,
    aligned: bool,
) -> Deployment {
    deployment.exit_on_unreachable |= exit_on_unreachable;
    (deployment.record, deployment.store, deployment.driven) = (None, None, Vec::new());
    deployment.metrics = None;
    deployment.actions.clear();
    deployment.sinks.iter_mut().for_each(Vec::clear);
    deployment.alignment.reports.clear();
    if !aligned {
        deployment.alignment.progress = None;
        deployment.clock = None;
    }
    deployment.synchronized = Some(Vec::new());
    let NetworkSettings { zenoh, dds, mqtt, kafka, ros2 } = std::mem::take(&mut deployment.networks);
    let mut needed = NetworkSettings { ros2, ..NetworkSettings::default() };
    deployment.addresses().for_each(|address| needed.need(address));
    deployment.networks = NetworkSettings {
        zenoh: zenoh.filter(|_| needed.zenoh.is_some()),
        dds: dds.filter(|_| needed.dds.is_some()),
        // The session at the broker belongs to the monitor: another reader would take its messages away.
        mqtt: mqtt.filter(|_| needed.mqtt.is_some()).map(|mut mqtt| {
            (mqtt.settings.client_id, mqtt.settings.clean_start) = (None, true);
            mqtt
        }),
        // A member of the group would take partitions away.
        kafka: kafka.filter(|_| needed.kafka.is_some()).map(|kafka| kafka::Settings { group: None, ..kafka }),
        ros2: needed.ros2,
    };
    deployment
}

/// Addresses to listen to, and how their messages are read.
pub(super) struct Listening<'a> {
    /// The addresses.
    pub(super) sources: &'a [String],
    /// The times of messages.
    pub(super) input: Input,
    /// The type of messages.
    pub(super) message_type: Option<&'a str>,
    /// Files and folders of definitions.
    pub(super) schemas: &'a [PathBuf],
    /// Settings of the networks.
    pub(super) network: &'a NetworkArguments,
    /// Why patterns of topics on DDS cannot be used.
    pub(super) patterns: Result<(), &'static str>,
}

impl Listening<'_> {
    /// The deployment that has these topics and nothing else.
    ///
    /// # Errors
    /// Which address or setting cannot be; empty if it has been shown.
    pub(super) fn deployment(&self) -> Result<Deployment, String> {
        let schemas = Schemas::read(self.schemas)?;
        let mut sources: Vec<Binding> = Vec::new();
        for text in self.sources {
            let pattern = text.strip_prefix("dds:").filter(|name| dds::is_pattern(name));
            let address = match pattern {
                Some(pattern) => {
                    self.patterns.map_err(|why| format!("{text}: {why}"))?;
                    dds::check_pattern(pattern).map_err(|error| error.to_string())?;
                    Address::Dds(pattern.to_owned(), dds::TopicType::default(), dds::TopicQos::default())
                }
                None => Address::parse(text)?,
            };
            let mut address = match address {
                Address::Stdout => {
                    return Err(
                        "stdout is not a topic; write zenoh:KEY, dds:TOPIC, mqtt:TOPIC or ros2:/TOPIC"
                            .to_owned(),
                    );
                }
                address => address,
            };
            set_delivery(&mut address);
            let mut input = self.input.clone();
            let own = self.message_type;
            let typing = Typing { topic: None, own, has_encoding: false, schemas: &schemas };
            let (address, warning) = typing.complete(address, &mut input).map_err(|error| {
                // The keys `type:` and `schemas:` of a deployment are options here.
                format!("{text}: {}", error.replace("`type:`", "--type").replace("`schemas:`", "--schemas"))
            })?;
            warning.iter().for_each(|warning| crate::warn(&format!("{text}: {warning}")));
            if sources.iter().any(|binding| binding.address == address) {
                return Err(format!("{address} is listed twice"));
            }
            sources.push(Binding { address, input });
        }
        let network = self.network.with_wait();
        let networks = network.settings(sources.iter().map(|binding| &binding.address))?;
        let names = self.sources.iter().cloned();
        let specification = Specification::of_topics(names).map_err(|_| String::new())?;
        Ok(Deployment {
            synchronized: Some(Vec::new()),
            slow_consumer: network.slow_consumer.unwrap_or_default(),
            exit_on_unreachable: self.network.exit_on_unreachable,
            ..Deployment::of(specification, networks, sources)
        })
    }
}
