//! The overview that `rondel validate` prints: what a deployment will do, as short tables.

use std::time::Duration;

use rondel_event::TimeUnit;
use rondel_net::networks::Mqtt;
use rondel_net::{dds, kafka, mqtt, zenoh};
use rondel_runtime::alignment::{Late, MaxWait, Policy, WaitFor};
use rondel_runtime::text::{grouped, size};
use rondel_runtime::{AlignmentClock, Blind, Emit, Input, TimeSource};

use super::durability::Durability;
use super::limits::Limits;
use super::{
    Address, Deployment, Encoding, FlightSettings, MetricsSettings, PageSettings, Substitute, WhenBlind,
};
use crate::sinks::actions::Limit;
use crate::sinks::audit::{AuditSettings, OnError};
use crate::sinks::driven::{SinkSettings, StoreSettings};
use crate::sinks::spool::SpoolSettings;

impl Deployment {
    /// Returns what a run of this deployment does: its topics, alignment, sinks and networks.
    pub fn overview(&self) -> String {
        let blocks = [
            self.topics(),
            self.order(),
            self.published(),
            self.gated(),
            self.grouped(),
            self.acted(),
            self.losses(),
            self.joined(),
        ];
        blocks.iter().map(|rows| table(rows)).filter(|table| !table.is_empty()).collect::<Vec<_>>().join("\n")
    }

    fn topics(&self) -> Vec<Vec<String>> {
        let alignment = &self.alignment.alignment;
        let waits = alignment.policy == Policy::EventTime;
        let mut rows = vec![row(["topic", "source", "time", "encoding"])];
        if waits {
            rows[0].push("max_wait".to_owned());
        }
        let settings = alignment.topics.iter().map(Some).chain(std::iter::repeat(None));
        for ((topic, source), settings) in
            self.specification.spec.topics.iter().zip(&self.sources).zip(settings)
        {
            let address = source.address.to_string();
            let name = source.address.encoding().name();
            let encoding = match (&source.address, &source.input.message_type) {
                (Address::Dds(_, dds::TopicType::Text(text), _), _) => format!("json in {}", text.name),
                (Address::Dds(_, dds::TopicType::Raw(raw), _), None) => {
                    format!("{name} of {}", raw.name.as_deref().unwrap_or("the discovered type"))
                }
                (Address::Ros2(topic, Encoding::CDR), None) => match &topic.message_type {
                    Some(message_type) => format!("{name} of {message_type}, as its publisher describes it"),
                    None => format!("{name} of the discovered type"),
                },
                (_, Some(message_type)) => format!("{name} of {}", message_type.name()),
                _ => name.to_owned(),
            };
            // The encoding has a column of its own.
            let address = address.replacen(&format!("+{name}:"), ":", 1);
            let mut row = row([&topic.name, &address, &time(&source.input), &encoding]);
            if let Some(settings) = settings.filter(|_| waits) {
                row.push(match settings.max_wait {
                    MaxWait::Unlimited => "none".to_owned(),
                    MaxWait::Fixed(nanos) => duration(nanos),
                    MaxWait::Estimated(quantile) => format!("estimate {quantile}"),
                });
            }
            rows.push(row);
        }
        rows
    }

    fn order(&self) -> Vec<Vec<String>> {
        let alignment = &self.alignment.alignment;
        let mut rows = vec![row(["alignment", policy(alignment.policy)])];
        if let Some(address) = &self.clock {
            rows.insert(0, row(["clock", &format!("the time on {address}")]));
        }
        if let Policy::Approximate { max_interval: Some(nanos), .. } = alignment.policy {
            rows.push(row(["", &format!("times of a set at most {} apart", duration(nanos))]));
        }
        if let Policy::Epsilon(nanos) = alignment.policy {
            rows.push(row(["", &format!("times of a set at most {} apart", duration(nanos))]));
        }
        if alignment.policy == Policy::EventTime {
            rows.push(row([
                "late messages",
                match alignment.late {
                    Late::Late => "checked at the time of the last checked message",
                    Late::Drop => "left out",
                    Late::Inconclusive => "make their fields unknown",
                },
            ]));
            if alignment.wait_for == WaitFor::Specification {
                rows.push(row(["wait_for", "specification: every property waits for all topics"]));
            }
            if alignment.clock == AlignmentClock::System {
                rows.push(row(["clock", "system"]));
            }
        }
        if let Some(address) = &self.alignment.progress {
            rows.push(row(["progress markers", &address.to_string()]));
        }
        if !self.alignment.reports.is_empty() {
            rows.push(row(["reports", &list(&self.alignment.reports)]));
        }
        if let Some(workers) = self.workers.filter(|workers| *workers > 1) {
            rows.push(row(["workers", &format!("{workers}, which evaluate bursts of messages")]));
        }
        rows
    }

    fn published(&self) -> Vec<Vec<String>> {
        if let Some(sinks) = &self.synchronized {
            return vec![row(["published", "sink"]), row(["synchronized messages", &list(sinks)])];
        }
        let which = match self.emit {
            Emit::Change => "verdicts that change",
            Emit::Every => "every verdict",
            Emit::Violations => "violations",
        };
        let mut rows = vec![row(["property", &format!("sinks of {which}")])];
        let properties = &self.specification.spec.properties;
        for (property, sinks) in properties.iter().zip(&self.sinks) {
            let sinks = if sinks.is_empty() { "not published".to_owned() } else { list(sinks) };
            rows.push(row([&property.name, &sinks]));
        }
        rows
    }

    fn grouped(&self) -> Vec<Vec<String>> {
        let Some(group) = &self.group else { return Vec::new() };
        let lease = duration(i64::try_from(group.lease.as_nanos()).unwrap_or(i64::MAX));
        vec![
            row(["group", "topic", "lease", "prefer"]),
            row([&group.name, &group.address.to_string(), &lease, &group.prefer.to_string()]),
        ]
    }

    fn gated(&self) -> Vec<Vec<String>> {
        if self.gates.is_empty() {
            return Vec::new();
        }
        let spec = &self.specification.spec;
        let name = |property: u32| spec.properties[property as usize].name.as_str();
        let mut rows = vec![row(["gate", "to", "closed while violated", "instead", "opens"])];
        for gate in &self.gates {
            let unless: Vec<&str> = gate.unless.iter().map(|property| name(*property)).collect();
            let or = if gate.blind == WhenBlind::Closed { " or inconclusive" } else { "" };
            let instead = match gate.substitute {
                Substitute::Message(_) => "the substitute",
                Substitute::Hold => "the last message",
                Substitute::Drop => "nothing",
            };
            let also =
                gate.return_when.map_or_else(String::new, |property| format!(" with {}", name(property)));
            rows.push(row([
                &spec.topics[gate.topic.index()].name,
                &gate.to.to_string(),
                &format!("{}{or}", unless.join(", ")),
                instead,
                &format!("{} after they hold{also}", duration(gate.return_after)),
            ]));
        }
        rows
    }

    /// Returns the rows about actions.
    fn acted(&self) -> Vec<Vec<String>> {
        if self.actions.is_empty() {
            return Vec::new();
        }
        let mut rows = vec![row(["action", "on", "properties", "limit"])];
        let properties = &self.specification.spec.properties;
        for action in &self.actions {
            let selected = properties.iter().zip(&action.properties).filter(|(_, is_selected)| **is_selected);
            let names: Vec<&str> = selected.map(|(property, _)| property.name.as_str()).collect();
            let names = if names.len() == properties.len() { "all".to_owned() } else { names.join(", ") };
            rows.push(row([&action.name(), action.on.as_str(), &names, &limit_text(action.limit)]));
        }
        rows
    }

    /// Returns the rows about losses, silence, crashes, and the limits in bytes.
    fn losses(&self) -> Vec<Vec<String>> {
        let wait = duration(i64::try_from(self.slow_consumer.as_nanos()).unwrap_or(i64::MAX));
        let then = match &self.spool {
            None => "dropped".to_owned(),
            Some(SpoolSettings { directory, limit, .. }) => {
                format!(
                    "kept in {}, up to {} for each sink",
                    directory.display(),
                    size(usize::try_from(*limit).unwrap_or(usize::MAX))
                )
            }
        };
        let Limits { message, resend, instances, waiting } = self.limits;
        let resend = if resend == 0 { "nothing".to_owned() } else { size(resend) };
        let mut rows = vec![
            row(["slow consumers", &format!("messages wait for {wait}, then they are {then}")]),
            row([
                "limits",
                &format!(
                    "message {}, resend {resend}, instances {}, waiting {}",
                    size(message),
                    size(instances),
                    size(waiting)
                ),
            ]),
        ];
        rows.extend(self.audit.as_ref().map(audited));
        if self.synchronized.is_some() {
            return rows;
        }
        let blind = match self.blind {
            Blind::Inconclusive => "inconclusive where messages were not seen",
            Blind::Report => "unchanged where messages were not seen; losses are reported",
        };
        rows.push(row(["verdicts", blind]));
        rows.push(row([
            "missing after",
            &self.missing_after.map_or_else(
                || "never".to_owned(),
                |nanos| format!("{} without a topic or field", duration(nanos)),
            ),
        ]));
        let durability = match self.durability {
            None => "none, or snapshot with --snapshot-to".to_owned(),
            Some(Durability::None) => "none".to_owned(),
            Some(Durability::Snapshot) => "snapshot".to_owned(),
            Some(Durability::Exactly(every)) => {
                let every = duration(i64::try_from(every.as_nanos()).unwrap_or(i64::MAX));
                match self.consumer_group() {
                    None => format!("exactly, a snapshot every {every}"),
                    Some(group) => format!(
                        "exactly, the states of partitions every {every}, in {}",
                        group.state.display()
                    ),
                }
            }
        };
        rows.push(row(["durability", &durability]));
        rows.extend(self.record.as_ref().map(recorded));
        rows.extend(self.metrics.iter().flat_map(measured));
        let page = |page: &PageSettings| row(["page", &format!("{}://{}/", page.scheme(), page.listen)]);
        rows.extend(self.page.as_ref().map(page));
        rows.extend(self.foxglove.as_ref().map(|own| row(["foxglove", &format!("ws://{}/", own.listen)])));
        rows.extend(self.store.as_ref().map(stored));
        rows.extend(self.driven.iter().map(driven));
        let has_ids = self.ids || self.identifies();
        rows.push(row(["ids", if has_ids { "every verdict has an id" } else { "none" }]));
        rows
    }

    fn joined(&self) -> Vec<Vec<String>> {
        let mut rows = vec![row(["network", "connects to", "listens on"])];
        rows.extend(self.networks.zenoh.as_ref().map(zenoh_row));
        rows.extend(self.networks.dds.as_ref().map(dds_row));
        rows.extend(self.networks.mqtt.as_ref().map(mqtt_row));
        rows.extend(self.networks.kafka.as_ref().map(kafka_row));
        if rows.len() == 1 { Vec::new() } else { rows }
    }
}

/// Returns the places of metrics.
fn measured(metrics: &MetricsSettings) -> Vec<Vec<String>> {
    let served = metrics.listen.map(|listen| format!("http://{listen}/metrics"));
    let pushed = metrics.push.as_ref().map(|push| {
        let every = i64::try_from(push.interval.as_nanos()).unwrap_or(i64::MAX);
        format!("pushed to {} every {}", push.place, duration(every))
    });
    served.into_iter().chain(pushed).map(|place| row(["metrics", &place])).collect()
}

/// Returns the limits of an action.
fn limit_text(limit: Limit) -> String {
    let rate = limit.per_minute.map(|rate| format!("{rate} a minute"));
    let total = limit.total.map(|total| format!("{} in all", grouped(total)));
    let both: Vec<String> = rate.into_iter().chain(total).collect();
    if both.is_empty() { "none".to_owned() } else { both.join(", ") }
}

/// Returns the row about recording around violations.
fn recorded(settings: &FlightSettings) -> Vec<String> {
    let FlightSettings { before, after, keep, folder, memory } = settings;
    row([
        "record",
        &format!(
            "{} before a violation and {} after it, in {}, the last {} files; memory {}",
            duration(*before),
            duration(*after),
            folder.display(),
            grouped(*keep as u64),
            size(*memory)
        ),
    ])
}

/// Returns the row about the audit file.
fn audited(settings: &AuditSettings) -> Vec<String> {
    let AuditSettings { file, on_error, sync } = settings;
    let reaction = match on_error {
        OnError::Stop => "stops",
        OnError::Continue => "continues",
    };
    let durable = match i64::try_from(sync.as_nanos()) {
        Ok(0) => "every batch".to_owned(),
        nanos => format!("at most {}", duration(nanos.unwrap_or(i64::MAX))),
    };
    row([
        "audit",
        &format!("{}, durable after {durable}; the run {reaction} if it cannot be written", file.display()),
    ])
}

/// Returns the row about the store.
fn stored(settings: &StoreSettings) -> Vec<String> {
    let StoreSettings { path, series, age, bytes, sync, wait, spool } = settings;
    let mut text = format!("verdicts in {}", path.display());
    text += &series.as_ref().map(|series| format!(", series {series}")).unwrap_or_default();
    if let Some(age) = age {
        text += &format!(", the last {} days", age.as_secs() / 86_400);
    }
    if let Some(bytes) = bytes {
        text += &format!(", up to {}", size(usize::try_from(*bytes).unwrap_or(usize::MAX)));
    }
    text += if *sync { "; each batch waits for the disk" } else { "" };
    text += &waiting(*wait, spool.as_ref());
    row(["store", &text])
}

/// Returns the row about a sink beside networks.
fn driven(settings: &SinkSettings) -> Vec<String> {
    let SinkSettings { name, kind, series, wait, spool, filter, .. } = settings;
    let mut text = match filter.properties.is_empty() {
        true => "verdicts on all properties".to_owned(),
        false => format!("verdicts on {}", filter.properties.join(", ")),
    };
    text += &filter.severity.map(|least| format!(" from severity {}", least.as_str())).unwrap_or_default();
    // The name has the kind, unless it is set.
    text += &if name.starts_with(kind.name) { String::new() } else { format!(" to {}", kind.name) };
    text += &series.as_ref().map(|series| format!(", series {series}")).unwrap_or_default();
    text += &waiting(*wait, spool.as_ref());
    row(["sink", &format!("{name}: {text}")])
}

/// Describes what happens to verdicts that a sink beside networks does not accept in time.
fn waiting(wait: Option<Duration>, spool: Option<&SpoolSettings>) -> String {
    match (spool, wait) {
        (Some(SpoolSettings { directory, limit, .. }), _) => format!(
            "; those that wait are kept in {}, up to {}",
            directory.display(),
            size(usize::try_from(*limit).unwrap_or(usize::MAX))
        ),
        (None, None) => "; a full queue drops them".to_owned(),
        (None, Some(_)) => String::new(),
    }
}

fn zenoh_row(settings: &zenoh::Settings) -> Vec<String> {
    let zenoh::Settings { mode, connect, listen, config_file, multicast_scouting, .. } = settings;
    let file = config_file.as_ref().map(|file| format!("as in {}", file.display()));
    let role = match (mode, &file) {
        (Some(zenoh::Mode::Client), _) => "zenoh client",
        (Some(zenoh::Mode::Router), _) => "zenoh router",
        (None, Some(_)) => "zenoh",
        (Some(zenoh::Mode::Peer) | None, _) => "zenoh peer",
    };
    let alone = connect.is_empty() && listen.is_empty() && file.is_none();
    let multicast = multicast_scouting.unwrap_or(alone).then(|| "others, found by multicast".to_owned());
    let mut connects = connect.clone();
    if connect.is_empty() {
        connects.extend(file.clone());
    }
    connects.extend(multicast);
    let listens = match (mode, &file) {
        _ if !listen.is_empty() => listen.join(", "),
        (_, Some(file)) => file.clone(),
        (Some(zenoh::Mode::Client), None) => "nothing".to_owned(),
        (Some(zenoh::Mode::Router), None) => "TCP port 7447".to_owned(),
        (Some(zenoh::Mode::Peer) | None, None) if !connect.is_empty() => "nothing".to_owned(),
        (Some(zenoh::Mode::Peer) | None, None) => "a free TCP port".to_owned(),
    };
    let connects = if connects.is_empty() { "nothing".to_owned() } else { connects.join(", ") };
    row([role, &connects, &listens])
}

fn dds_row(settings: &dds::Settings) -> Vec<String> {
    let connects = match &settings.peers[..] {
        [] => "participants, found by multicast".to_owned(),
        peers => peers.join(", "),
    };
    let interface = settings.interface.as_ref().map_or_else(
        || "the interface that CycloneDDS chooses".to_owned(),
        |interface| format!("interface {interface}"),
    );
    let security = if settings.security.is_some() { ", with DDS Security" } else { "" };
    row([&format!("dds domain {}{security}", settings.domain), &connects, &interface])
}

fn mqtt_row(mqtt: &Mqtt) -> Vec<String> {
    let settings = &mqtt.settings;
    let version = match settings.version {
        mqtt::Version::V3 => "mqtt 3.1.1",
        mqtt::Version::V5 => "mqtt 5",
    };
    let mut broker = format!("broker {}", settings.broker);
    if settings.tls.is_some() || settings.broker.tls == Some(true) {
        broker += " with TLS";
    }
    if let Some(user) = &settings.user {
        broker += &format!(" as user {user}");
    }
    row([version, &broker, "nothing"])
}

fn kafka_row(settings: &kafka::Settings) -> Vec<String> {
    let from = match settings.start {
        kafka::Start::Latest => "the end",
        kafka::Start::Earliest => "the oldest record",
    };
    let partitions = match &settings.group {
        None => format!("all partitions from {from}"),
        Some(group) => {
            format!("the partitions that the group {} assigns, without a state from {from}", group.name)
        }
    };
    let brokers = format!("brokers {}, {partitions}", settings.place());
    row(["kafka", &brokers, "nothing"])
}

fn policy(policy: Policy) -> &'static str {
    match policy {
        Policy::Arrival => "arrival: messages are checked as they arrive",
        Policy::EventTime => "event_time: messages are checked in the order of their times",
        Policy::Exact => "exact: a set is one message of every topic, with equal times",
        Policy::Approximate { .. } => "approximate: a set is the best match of one message of every topic",
        Policy::Epsilon(_) => "epsilon: a set is one message of every topic, with times close together",
        Policy::Latest => "latest: a set is the last message of every topic",
    }
}

fn time(input: &Input) -> String {
    let unit = match input.time_unit {
        TimeUnit::Seconds => "s",
        TimeUnit::Milliseconds => "ms",
        TimeUnit::Microseconds => "us",
        TimeUnit::Nanoseconds => "ns",
    };
    match &input.time {
        TimeSource::Arrival => "arrival".to_owned(),
        TimeSource::Source => "source".to_owned(),
        TimeSource::Field(path) => format!("field {path} in {unit}"),
    }
}

/// Writes a duration in the largest unit in which it is a whole number.
fn duration(nanos: i64) -> String {
    let units = [(1_000_000_000, "s"), (1_000_000, "ms"), (1_000, "us"), (1, "ns")];
    let (size, unit) = units.into_iter().find(|(size, _)| nanos % size == 0).unwrap_or((1, "ns"));
    format!("{} {unit}", nanos / size)
}

fn list(addresses: &[Address]) -> String {
    addresses.iter().map(Address::to_string).collect::<Vec<_>>().join(", ")
}

fn row<const N: usize>(cells: [&str; N]) -> Vec<String> {
    cells.into_iter().map(str::to_owned).collect()
}

/// Lays rows out in columns, two spaces apart; indented below the sentence before them.
fn table(rows: &[Vec<String>]) -> String {
    let columns = rows.iter().map(Vec::len).max().unwrap_or(0);
    let width = |column: usize| {
        rows.iter().filter_map(|row| row.get(column)).map(|cell| cell.chars().count()).max().unwrap_or(0)
    };
    let widths: Vec<usize> = (0..columns).map(width).collect();
    let line = |row: &Vec<String>| {
        let cells = row.iter().zip(&widths).map(|(cell, width)| format!("{cell:<width$}"));
        format!("  {}\n", cells.collect::<Vec<_>>().join("  ").trim_end())
    };
    rows.iter().map(line).collect()
}
