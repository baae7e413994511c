//! Reading a deployment from its sections, and the checks over several of them.

mod specification;
mod topics;

use std::path::{Path, PathBuf};

use rondel_net::kafka;
use rondel_net::networks::NetworkSettings;
use rondel_net::ros2;
use rondel_runtime::{Blind, Emit, Reset};
use rondel_spec::Spec;

use super::actions::{Selecting, actions};
use super::alignment::duration;
use super::audit::audit;
use super::consumer_group;
use super::durability::{self, durability};
use super::foxglove::{FoxgloveSettings, foxglove};
use super::gates;
use super::group::{self, Beside, GroupSettings, group};
use super::heartbeat::heartbeat;
use super::kafka::kafka_settings;
use super::limits::limits;
use super::metrics::metrics;
use super::mqtt::mqtt_settings;
use super::networks::{dds_settings, ros2_settings, zenoh_settings};
use super::page::{PageSettings, page};
use super::places::{self, Place, Role};
use super::record::{FlightSettings, record};
use super::reload::reload;
use super::reset::reset;
use super::sinks::{NEVER_END, check_emit, driven};
use super::slow_consumer::{check_spool, slow_consumer};
use super::store::store;
use super::verdicts::sinks;
use super::workers;
use super::yaml::{Item, Mistakes, Synonyms};
use super::{Address, Deployment, Durability, MISSING_AFTER, addresses};
use crate::sinks::actions::ActionSettings;
use crate::sinks::driven::{SinkSettings, StoreSettings};
use crate::sinks::spool::SpoolSettings;
use crate::specification::Specification;
use topics::ReadTopics;

/// Names that people write for sections of a deployment.
const SECTIONS: Synonyms = &[
    (&["output", "outputs", "publish", "verdict"], "write `verdicts`"),
    (&["sink"], "write `verdicts` for topics, or `sinks` for databases, brokers and web hooks"),
    (
        &["postgres", "postgresql", "nats", "webhook", "alertmanager", "otlp", "hooks"],
        "write `sinks`, a list such as `sinks: [{ webhook: { url: \"https://example/hook\" } }]`",
    ),
    (&["sources", "source", "inputs", "input", "subscribe", "topic"], "write `topics`"),
    (&["spec", "file"], "write `specification`"),
    (&["property", "properties"], "write `formula: FORMULA`, or name a file with `specification:`"),
    (&["broker"], "write `mqtt: { broker: HOST:PORT }`"),
    (&["brokers"], "write `kafka: { brokers: [HOST:PORT] }`"),
    (&["domain", "domain_id"], "write `dds: { domain: N }`, or `ros2: { domain: N }`"),
    (&["ros", "rmw"], "write `ros2`"),
    (&["connect", "listen", "router"], "write it in the section `zenoh:`"),
    (&["align", "order"], "write `alignment`"),
    (&["prometheus", "metric", "monitoring", "statistics", "telemetry"], "write `metrics: 127.0.0.1:9464`"),
    (&["ui", "web", "dashboard", "http"], "write `page: 127.0.0.1:8080`"),
    (&["foxglove_bridge", "websocket", "studio", "lichtblick"], "write `foxglove: 127.0.0.1:8765`"),
    (&["gate", "guard", "forward", "enforce"], "write `gates`, a list of gates"),
    (&["database", "sqlite", "db"], "write `store: verdicts.db`"),
    (&["action", "reactions", "do", "on", "alarms"], "write `actions`"),
    (&["standby", "redundancy", "failover", "replicas"], "write `group: NAME`"),
    (&["watch", "auto_reload", "hot_reload", "live_reload"], "write `reload: watch`"),
    (&["threads", "worker", "jobs", "cores", "parallelism"], "write `workers`, a number or auto"),
];

/// Names that people write for settings of a synchronizer.
const SYNCHRONIZE: Synonyms = &[
    (&["publish", "sink", "address", "topic", "output"], "write `to`"),
    (&["policy", "max_wait", "max_interval", "epsilon", "slop"], "write it in the section `alignment:`"),
];

/// The sections of a deployment, as they are written.
struct Sections<'y> {
    root: Item<'y>,
    file: Option<Item<'y>>,
    formula: Option<Item<'y>>,
    syntax: Option<Item<'y>>,
    time: Option<Item<'y>>,
    schemas: Option<Item<'y>>,
    zenoh: Option<Item<'y>>,
    dds: Option<Item<'y>>,
    mqtt: Option<Item<'y>>,
    kafka: Option<Item<'y>>,
    ros2: Option<Item<'y>>,
    topics: Option<Item<'y>>,
    verdicts: Option<Item<'y>>,
    alignment: Option<Item<'y>>,
    synchronize: Option<Item<'y>>,
    exit_on_unreachable: Option<Item<'y>>,
    missing_after: Option<Item<'y>>,
    limits: Option<Item<'y>>,
    slow_consumer: Option<Item<'y>>,
    heartbeat: Option<Item<'y>>,
    gates: Option<Item<'y>>,
    group: Option<Item<'y>>,
    durability: Option<Item<'y>>,
    ids: Option<Item<'y>>,
    blind: Option<Item<'y>>,
    reset: Option<Item<'y>>,
    record: Option<Item<'y>>,
    audit: Option<Item<'y>>,
    metrics: Option<Item<'y>>,
    page: Option<Item<'y>>,
    foxglove: Option<Item<'y>>,
    store: Option<Item<'y>>,
    sinks: Option<Item<'y>>,
    actions: Option<Item<'y>>,
    reload: Option<Item<'y>>,
    workers: Option<Item<'y>>,
}

/// Reads a deployment; `root` is the whole of it, and `recordings` are those whose types are known, too.
pub(super) fn deployment(
    root: Item<'_>,
    folder: &Path,
    recordings: &[PathBuf],
    mistakes: &mut Mistakes,
) -> Option<Deployment> {
    let sections = Sections::read(root, mistakes);
    let specification = sections.read_specification(folder, recordings, mistakes);
    let ids = sections.read_ids(mistakes);
    let reset = sections.reset.map_or_else(Reset::default, |item| reset(item, mistakes));
    let ros2 = sections.ros2.and_then(|item| ros2_settings(item, mistakes));
    let (ros2, clock) = ros2.map_or((None, None), |(settings, clock)| (Some(settings), clock));
    let joins = recordings.is_empty();
    let mut networks = sections.read_networks(ros2, folder, joins, mistakes);
    let (slow_consumer, spool) = slow_consumer(sections.slow_consumer, folder, mistakes);
    let record = sections.read_record(folder, mistakes);
    let audit = sections.audit.and_then(|item| audit(item, folder, mistakes));
    let audited = audit.as_ref().map(|audit| audit.file.as_path());
    let store = sections.read_store(folder, specification.as_ref(), audited, mistakes);
    let driven = sections.read_sinks(folder, specification.as_ref(), joins, mistakes);
    let exit = sections.exit_on_unreachable.and_then(|item| item.boolean("exit_on_unreachable", mistakes));
    let missing_after = sections.read_missing_after(mistakes);
    let blind = sections.read_blind(mistakes);
    // Without a specification the other sections are still checked as far as possible.
    let spec = specification.as_ref().map(|s| &*s.spec);
    let clock_place = |address| Place::new(Role::Clock, "`use_sim_time`", address, root);
    let mut places: Vec<Place<'_>> = clock.iter().map(clock_place).collect();
    let topics = sections.read_topics(specification.as_ref(), &networks, &mut places, mistakes);
    let alignment = sections.read_alignment(spec, &topics, clock.is_some(), &mut places, mistakes);
    let synchronized = sections.synchronize.map(|item| synchronize(item, &mut places, mistakes));
    let (emit, sinks) = sinks(sections.verdicts, spec, &mut places, mistakes);
    sections.check_emit(&driven, emit, mistakes);
    let heartbeat = sections.heartbeat.and_then(|item| heartbeat(item, &sinks, &mut places, mistakes));
    let (gates, substitutes) = sections.read_gates(spec, &topics, &alignment, &mut places, mistakes);
    let durability = sections.read_durability(spec, &topics, &networks, mistakes);
    let group = sections.read_group(&sinks, durability, clock.is_some(), &mut places, mistakes);
    let keeps = store.is_some() || !driven.is_empty();
    let has_ids = ids || matches!(durability, Some(Durability::Exactly(_))) || keeps && clock.is_none();
    let selecting = Selecting { specification: specification.as_ref(), emit, has_ids };
    let actions = sections.read_actions(&selecting, &mut places, mistakes);
    places::check(&places, mistakes);
    let mut deployment = Deployment {
        specification: specification?,
        networks: NetworkSettings::default(),
        sources: topics.sources,
        alignment,
        synchronized,
        emit,
        sinks,
        slow_consumer,
        spool,
        heartbeat,
        gates,
        group,
        record,
        audit,
        text: None,
        metrics: sections.metrics.and_then(|item| metrics(item, folder, joins, mistakes)),
        page: sections.read_page(folder, emit, mistakes),
        foxglove: sections.read_foxglove(folder, emit, mistakes),
        store,
        driven,
        actions,
        exit_on_unreachable: exit.unwrap_or(false),
        missing_after,
        limits: sections.limits.map(|item| limits(item, mistakes)).unwrap_or_default(),
        durability,
        ids,
        blind,
        reset,
        clock,
        watch: sections.reload.is_some_and(|item| reload(item, sections.gates.is_some(), mistakes)),
        workers: sections.workers.and_then(|item| workers::setting(item, mistakes)),
    };
    gates::check_read(&deployment, &substitutes, mistakes);
    gates::deliver_empty(&mut deployment);
    sections.complete_networks(&mut networks, &mut deployment, mistakes);
    group::check_gates(sections.gates, &deployment, &networks, mistakes);
    sections.check_kafka(root, joins && networks.kafka.is_some(), mistakes);
    networks.limit_slow_consumers(slow_consumer);
    networks.resend(deployment.limits.resend);
    consumer_group::divide(sections.kafka, &networks, &mut deployment, mistakes);
    deployment.networks = networks;
    Some(deployment)
}

impl<'y> Sections<'y> {
    fn read(root: Item<'y>, mistakes: &mut Mistakes) -> Sections<'y> {
        let mut members = root.members("the deployment", mistakes);
        let sections = Sections {
            root,
            file: members.get("specification"),
            formula: members.get("formula"),
            syntax: members.get("syntax"),
            time: members.get("time"),
            schemas: members.get("schemas"),
            zenoh: members.get("zenoh"),
            dds: members.get("dds"),
            mqtt: members.get("mqtt"),
            kafka: members.get("kafka"),
            ros2: members.get("ros2"),
            topics: members.get("topics"),
            verdicts: members.get("verdicts"),
            alignment: members.get("alignment"),
            synchronize: members.get("synchronize"),
            exit_on_unreachable: members.get("exit_on_unreachable"),
            missing_after: members.get("missing_after"),
            limits: members.get("limits"),
            slow_consumer: members.get("slow_consumer"),
            heartbeat: members.get("heartbeat"),
            gates: members.get("gates"),
            group: members.get("group"),
            durability: members.get("durability"),
            ids: members.get("ids"),
            blind: members.get("blind"),
            reset: members.get("reset"),
            record: members.get("record"),
            audit: members.get("audit"),
            metrics: members.get("metrics"),
            page: members.get("page"),
            foxglove: members.get("foxglove"),
            store: members.get("store"),
            sinks: members.get("sinks"),
            actions: members.get("actions"),
            reload: members.get("reload"),
            workers: members.get("workers"),
        };
        members.finish(SECTIONS, mistakes);
        sections
    }

    /// The networks. `joins`: whether the deployment is to be run.
    fn read_networks(
        &self,
        ros2: Option<ros2::Settings>,
        folder: &Path,
        joins: bool,
        mistakes: &mut Mistakes,
    ) -> NetworkSettings {
        NetworkSettings {
            zenoh: self.zenoh.map(|item| zenoh_settings(item, folder, mistakes)),
            dds: self.dds.map(|item| dds_settings(item, folder, ros2.as_ref(), joins, mistakes)),
            mqtt: self.mqtt.map(|item| mqtt_settings(item, folder, mistakes)),
            kafka: self.kafka.map(|item| kafka_settings(item, folder, joins, mistakes)),
            ros2: ros2.map(Ok),
        }
    }

    /// Whether verdicts have ids: those of a group are published by several processes.
    fn read_ids(&self, mistakes: &mut Mistakes) -> bool {
        let is_set = self.ids.and_then(|item| item.boolean("ids", mistakes)).unwrap_or(false);
        is_set || self.group.is_some()
    }

    /// Settings of recording around violations, which a synchronizer does not have.
    fn read_record(&self, folder: &Path, mistakes: &mut Mistakes) -> Option<FlightSettings> {
        // A check of a recording writes no recordings.
        let record = self.record.and_then(|item| record(item, folder, mistakes));
        if let (Some(item), Some(_)) = (self.record, self.synchronize) {
            mistakes.at(item, "a synchronizer has no violations to record: leave `record` out");
        }
        record
    }

    /// Settings of the store of verdicts, which a synchronizer does not have.
    fn read_store(
        &self,
        folder: &Path,
        specification: Option<&Specification>,
        audited: Option<&Path>,
        mistakes: &mut Mistakes,
    ) -> Option<StoreSettings> {
        let source = specification.filter(|specification| !specification.is_formula);
        let source = source.map(|specification| ("specification", Path::new(&specification.source)));
        let audited = audited.map(|file| ("audit", file));
        let others: Vec<(&str, &Path)> = source.into_iter().chain(audited).collect();
        let store = self.store.and_then(|item| store(item, folder, &others, mistakes));
        if let (Some(item), Some(_)) = (self.store, self.synchronize) {
            mistakes.at(item, "a synchronizer has no verdicts to store: leave `store` out");
        }
        store
    }

    /// Warns of a store and of sinks that need verdicts which are not emitted.
    fn check_emit(&self, driven: &[SinkSettings], emit: Emit, mistakes: &mut Mistakes) {
        if let Some(item) = self.sinks {
            check_emit(item, driven, emit, mistakes);
        }
        if let Some(item) = self.store.filter(|_| emit == Emit::Violations) {
            let message = format!("the store has {NEVER_END}: for that, write `emit: change` in `verdicts`");
            mistakes.warn(item, message);
        }
    }

    /// Settings of the page, which a synchronizer does not have, and which needs every change of a verdict.
    fn read_page(&self, folder: &Path, emit: Emit, mistakes: &mut Mistakes) -> Option<PageSettings> {
        let item = self.page?;
        if self.synchronize.is_some() {
            mistakes.at(item, "a synchronizer has no verdicts to show: leave `page` out");
        }
        if emit == Emit::Violations {
            let why = format!("the page would show {NEVER_END}: write `emit: change` in `verdicts`");
            mistakes.at(item, why);
        }
        page(item, folder, mistakes)
    }

    /// Settings of the server for Foxglove, which needs the same as the page.
    fn read_foxglove(&self, folder: &Path, emit: Emit, mistakes: &mut Mistakes) -> Option<FoxgloveSettings> {
        let item = self.foxglove?;
        if self.synchronize.is_some() {
            mistakes.at(item, "a synchronizer has no verdicts to show: leave `foxglove` out");
        }
        if emit == Emit::Violations {
            let why = format!("Foxglove would show {NEVER_END}: write `emit: change` in `verdicts`");
            mistakes.at(item, why);
        }
        foxglove(item, folder, mistakes)
    }

    /// Settings of sinks beside networks, which a synchronizer does not have. `joins`: whether the deployment is to be run.
    fn read_sinks(
        &self,
        folder: &Path,
        specification: Option<&Specification>,
        joins: bool,
        mistakes: &mut Mistakes,
    ) -> Vec<SinkSettings> {
        let Some(item) = self.sinks else { return Vec::new() };
        if self.synchronize.is_some() {
            mistakes.at(item, "a synchronizer has no verdicts for other sinks: leave `sinks` out");
            return Vec::new();
        }
        let spec = specification.map(|specification| &*specification.spec);
        driven(item, folder, spec, joins, mistakes)
    }

    /// Actions on verdicts, which a synchronizer does not have.
    fn read_actions(
        &self,
        selecting: &Selecting<'_>,
        places: &mut Vec<Place<'y>>,
        mistakes: &mut Mistakes,
    ) -> Vec<ActionSettings> {
        if let (Some(item), Some(_)) = (self.actions, self.synchronize) {
            mistakes.at(item, "a synchronizer has no verdicts to act on: leave `actions` out");
        }
        self.actions.map_or_else(Vec::new, |item| actions(item, selecting, places, mistakes))
    }

    fn read_durability(
        &self,
        spec: Option<&Spec>,
        topics: &ReadTopics<'_>,
        networks: &NetworkSettings,
        mistakes: &mut Mistakes,
    ) -> Option<Durability> {
        let item = self.durability?;
        let durability = durability(item, mistakes)?;
        if let Durability::Exactly(_) = durability {
            durability::check(item, spec.unwrap_or(&Spec::default()), &topics.sources, networks, mistakes);
        }
        Some(durability)
    }

    /// The section `group:`.
    fn read_group(
        &self,
        sinks: &[Vec<Address>],
        durability: Option<Durability>,
        is_simulated: bool,
        places: &mut Vec<Place<'y>>,
        mistakes: &mut Mistakes,
    ) -> Option<GroupSettings> {
        let beside = Beside {
            synchronize: self.synchronize,
            durability: self.durability.map(|item| (item, durability)),
            reload: self.reload,
            is_simulated,
        };
        group(self.group?, sinks, &beside, places, mistakes)
    }

    fn read_missing_after(&self, mistakes: &mut Mistakes) -> Option<i64> {
        let Some(item) = self.missing_after else { return Some(MISSING_AFTER) };
        match item.text("missing_after", mistakes).as_deref() {
            Some("never") | None => None,
            Some(_) => duration(item, "missing_after", "10 s", " or `never`", mistakes),
        }
    }

    fn read_blind(&self, mistakes: &mut Mistakes) -> Blind {
        let blind = self.blind.and_then(|item| Some((item, item.text("blind", mistakes)?)));
        match blind.as_ref().map(|(item, text)| (*item, text.as_str())) {
            None | Some((_, "inconclusive")) => Blind::Inconclusive,
            Some((_, "report")) => Blind::Report,
            Some((item, _)) => {
                mistakes.at(item, "`blind` must be inconclusive or report");
                Blind::Report
            }
        }
    }

    /// Refuses addresses of Kafka in a build without it. A section has been checked.
    fn check_kafka(&self, root: Item<'_>, is_joined: bool, mistakes: &mut Mistakes) {
        if is_joined && self.kafka.is_none() && !kafka::IS_AVAILABLE {
            mistakes.at(root, kafka::UNAVAILABLE);
        }
    }

    /// Adds the networks of all addresses, gives those of ROS 2 their middleware, and checks files for slow consumers.
    fn complete_networks(
        &self,
        networks: &mut NetworkSettings,
        deployment: &mut Deployment,
        mistakes: &mut Mistakes,
    ) {
        deployment.addresses().for_each(|address| networks.need(address));
        if let (Some(Ok(_)), Err(error)) = (&networks.ros2, networks.check_ros2()) {
            mistakes.at(self.ros2.or(self.dds).unwrap_or(self.root), error.to_string());
        }
        if let Some(Ok(ros2)) = &networks.ros2 {
            let sources = deployment.sources.iter_mut().map(|binding| &mut binding.address);
            sources
                .chain(deployment.sinks.iter_mut().flatten())
                .chain(deployment.heartbeat.iter_mut().flat_map(|heartbeat| &mut heartbeat.to))
                .chain(&mut deployment.clock)
                .chain(deployment.gates.iter_mut().map(|gate| &mut gate.to))
                .chain(deployment.actions.iter_mut().filter_map(ActionSettings::address_mut))
                .for_each(|address| address.join_ros2(ros2));
        }
        let keeps = |spool: &SpoolSettings| deployment.sink_addresses().any(|sink| spool.keeps(sink));
        if deployment.spool.as_ref().is_some_and(|spool| spool.is_default && !keeps(spool)) {
            deployment.spool = None;
        }
        if let Some(item) = self.slow_consumer {
            check_spool(item, deployment, mistakes);
        }
    }
}

/// Reads the section `synchronize:`.
fn synchronize<'y>(item: Item<'y>, places: &mut Vec<Place<'y>>, mistakes: &mut Mistakes) -> Vec<Address> {
    let mut members = item.members("synchronize", mistakes);
    let to = members.get("to");
    members.finish(SYNCHRONIZE, mistakes);
    if to.is_none() {
        mistakes.at(item, "`synchronize` needs `to:`, such as `to: zenoh:vehicle/synchronized`");
    }
    let mut all = Vec::new();
    for (address, item) in
        to.map_or_else(Vec::new, |item| addresses("to", item, Address::parse_sink, mistakes))
    {
        places.push(Place::new(Role::Synchronized, "`to` of `synchronize`", &address, item));
        all.push(address);
    }
    all
}
