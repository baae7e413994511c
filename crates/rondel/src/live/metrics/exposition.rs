//! Metric families of a snapshot: in the formats of OpenMetrics and Prometheus, and as readings.

use std::fmt;
use std::time::UNIX_EPOCH;

use nix::sys::resource::{UsageWho, getrusage};
use prometheus_client::collector::Collector;
use prometheus_client::encoding::{DescriptorEncoder, prometheus_text, text};
use prometheus_client::registry::{Registry, Unit};
use rondel_event::TopicId;
use rondel_net::adapter::{DeadLetterCounts, PartitionStatus, now};
use rondel_runtime::WorkerStatistics;

use super::families::{Families, Labels, alone, labelled};
use super::figures::{RunSnapshot, Snapshot};
use super::meter::VERDICTS;
use crate::live::gate::GateFigures;
use crate::live::pipeline::Observation;
use crate::live::standby::election::Role;
use crate::live::standby::state::{GroupState, Reason};
use crate::sinks::actions::ActionFigures;
use crate::sinks::audit::AuditCounts;
use crate::sinks::driven::DestinationState;

/// The content type of OpenMetrics.
pub const OPEN_METRICS: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";

/// Returns a snapshot as text, with its content type: in the format OpenMetrics, or in the text format of Prometheus.
pub fn write(snapshot: Snapshot, is_open_metrics: bool) -> Result<(String, &'static str), fmt::Error> {
    let mut registry = Registry::default();
    registry.register_collector(Box::new(snapshot));
    let mut out = String::new();
    if is_open_metrics {
        text::encode(&mut out, &registry)?;
        Ok((out, OPEN_METRICS))
    } else {
        prometheus_text::encode(&mut out, &registry)?;
        Ok((out, prometheus_text::CONTENT_TYPE))
    }
}

/// Returns a snapshot as readings.
#[cfg(feature = "otlp")]
pub fn readings(snapshot: &Snapshot) -> Vec<super::families::FamilyReading> {
    let mut families = Families::Readings(Vec::new());
    // Only text can fail to be written.
    let _ = snapshot.write(&mut families);
    match families {
        Families::Readings(readings) => readings,
        Families::Text(_) => Vec::new(),
    }
}

impl Collector for Snapshot {
    fn encode(&self, encoder: DescriptorEncoder<'_>) -> fmt::Result {
        self.write(&mut Families::Text(encoder))
    }
}

impl Snapshot {
    /// Writes all families.
    fn write(&self, families: &mut Families<'_>) -> fmt::Result {
        let build: Labels = vec![
            ("version", env!("CARGO_PKG_VERSION").to_owned()),
            ("commit", env!("RONDEL_COMMIT").to_owned()),
        ];
        families.info("rondel_build", "Version and commit of the program.", &build)?;
        self.encode_process(families)?;
        let ready = u64::from(self.is_ready);
        families.gauge("rondel_ready", None, "Whether /readyz answers 200.", alone(ready))?;
        families.gauge(
            "rondel_stalled",
            Some(Unit::Seconds),
            "Duration for which the evaluating thread has not moved, from 1 s on.",
            alone(self.stalled.as_secs_f64()),
        )?;
        let pushes = self.pushes.iter().flatten().map(|(result, count)| labelled("result", result, *count));
        let help = "Pushes of metrics to a collector, accepted and failed.";
        families.counter("rondel_metrics_pushes", None, help, pushes)?;
        let help = "Connections that the page refused before a request.";
        families.counter("rondel_page_refused_connections", None, help, alone(self.refused_connections))?;
        let Some(run) = &self.run else { return Ok(()) };
        run.encode_networks(families)?;
        let reloads = run.reloads.iter().map(|(result, count)| labelled("result", result, *count));
        let help = "Reloads of the specification and the deployment, done and refused.";
        families.counter("rondel_reloads", None, help, reloads)?;
        let pauses = run.pauses.iter().map(|(cause, count)| labelled("cause", cause, *count));
        families.counter("rondel_pauses", None, "Times that the monitor itself did not run.", pauses)?;
        run.encode_sinks(families)?;
        encode_actions(&run.actions, families)?;
        encode_standby(run.standby.as_ref(), families)?;
        let Some(observation) = &run.observation else { return Ok(()) };
        run.encode_messages(observation, families)?;
        run.encode_times(observation, families)?;
        run.encode_properties(observation, families)?;
        encode_gates(&observation.gates, families)?;
        encode_workers(observation.workers.as_ref(), families)
    }

    /// Writes the metrics that every program has, by their usual names.
    fn encode_process(&self, families: &mut Families<'_>) -> fmt::Result {
        let began = self.began.duration_since(UNIX_EPOCH).unwrap_or_default().as_secs_f64();
        let (help, seconds) = ("Start of the run since 1970.", Some(Unit::Seconds));
        families.gauge("process_start_time", seconds, help, alone(began))?;
        if let Ok(usage) = getrusage(UsageWho::RUSAGE_SELF) {
            let times = [usage.user_time(), usage.system_time()];
            let cpu: f64 = times.iter().map(|time| time.tv_sec() as f64 + time.tv_usec() as f64 / 1e6).sum();
            let help = "Time of the processors, of all threads.";
            families.counter("process_cpu", Some(Unit::Seconds), help, alone(cpu))?;
        }
        let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
        let figure = |name: &str| -> Option<u64> {
            let line = status.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':'))?;
            line.split_whitespace().next()?.parse().ok()
        };
        for (name, line, help) in [
            ("process_resident_memory", "VmRSS", "Resident memory."),
            ("process_virtual_memory", "VmSize", "Virtual memory."),
        ] {
            if let Some(kib) = figure(line) {
                families.gauge(name, Some(Unit::Bytes), help, alone(kib.saturating_mul(1024)))?;
            }
        }
        if let Some(threads) = figure("Threads") {
            families.gauge("process_threads", None, "Threads.", alone(threads))?;
        }
        if let Ok(open) = std::fs::read_dir("/proc/self/fd") {
            let open = open.count() as u64;
            families.gauge("process_open_fds", None, "Open files and sockets.", alone(open))?;
        }
        Ok(())
    }
}

impl RunSnapshot {
    fn encode_networks(&self, families: &mut Families<'_>) -> fmt::Result {
        let connected = self
            .networks
            .iter()
            .map(|network| labelled("network", network.name, u64::from(network.is_connected)));
        families.gauge("rondel_network_connected", None, "Whether a network is connected.", connected)?;
        let outages = self.networks.iter().map(|network| labelled("network", network.name, network.outages));
        families.counter("rondel_network_outages", None, "Connections lost.", outages)?;
        let labels = |status: &PartitionStatus| -> Labels {
            vec![("topic", status.topic.clone()), ("partition", status.partition.to_string())]
        };
        let offset = |status: &PartitionStatus| (labels(status), u64::try_from(status.next).unwrap_or(0));
        let help = "Offset up to which a partition is read, of a member of a consumer group.";
        families.gauge("rondel_partition_offset", None, help, self.partitions.iter().map(offset))?;
        let lag = |status: &PartitionStatus| Some((labels(status), status.lag?));
        let help = "Records of a partition that wait at the broker.";
        families.gauge("rondel_partition_lag", None, help, self.partitions.iter().filter_map(lag))?;
        self.encode_dead_letters(families)?;
        let problems = &self.problems;
        let help = "Samples that a network reported as lost or rejected.";
        families.counter("rondel_network_lost_samples", None, help, alone(problems.lost))?;
        let help = "Samples without the type of their topic, from which no payload could be taken.";
        families.counter("rondel_network_malformed_samples", None, help, alone(problems.malformed))?;
        let help = "Publishers of another type or with a quality of service that does not match.";
        families.gauge("rondel_incompatible_publishers", None, help, alone(problems.incompatible))
    }

    /// Writes the numbers of records of Kafka that cannot be decoded, where they are written to a topic.
    fn encode_dead_letters(&self, families: &mut Families<'_>) -> fmt::Result {
        let sink = |counts: &DeadLetterCounts| ("sink", format!("kafka:{}", counts.topic));
        let results = self.dead_letters.iter().flat_map(|counts| {
            let sample = |(result, count): (&str, u64)| -> (Labels, u64) {
                (vec![sink(counts), ("result", result.to_owned())], count)
            };
            [("written", counts.written), ("refused", counts.refused)].map(sample)
        });
        let help = "Records that cannot be decoded, and that the topic for them has accepted or refused.";
        families.counter("rondel_dead_letters", None, help, results)?;
        let waiting = self.dead_letters.iter().map(|counts| (vec![sink(counts)], counts.waiting));
        let help = "Records that cannot be decoded, and wait for the acknowledgement of the topic for them.";
        families.gauge("rondel_waiting_dead_letters", None, help, waiting)
    }

    fn encode_sinks(&self, families: &mut Families<'_>) -> fmt::Result {
        let matched = self.matched.iter().map(|(sink, is)| labelled("sink", sink, u64::from(*is)));
        let help = "Whether a sink has a subscriber; on MQTT, whether it is connected.";
        families.gauge("rondel_sink_subscribed", None, help, matched)?;
        let waiting = self.queues.iter().map(|queue| labelled("sink", &queue.sink, queue.waiting));
        let help = "Messages in the queue of a sink that accepts nothing at present.";
        families.gauge("rondel_sink_queue_messages", None, help, waiting)?;
        let ages = self.queues.iter().map(|queue| labelled("sink", &queue.sink, queue.age.as_secs_f64()));
        let help = "Time that the first message in the queue of a sink has waited.";
        families.gauge("rondel_sink_queue_age", Some(Unit::Seconds), help, ages)?;
        let spooled = self.spooled.iter().map(|(sink, count)| labelled("sink", sink, *count));
        let help = "Messages that wait in the file of a sink.";
        families.gauge("rondel_sink_spooled_messages", None, help, spooled)?;
        let undelivered = self.undelivered.iter().map(|(sink, count)| labelled("sink", sink, *count));
        let help = "Messages dropped because a consumer did not accept them in time.";
        families.counter("rondel_undelivered_messages", None, help, undelivered)?;
        self.encode_driven(families)?;
        self.encode_audit(families)
    }

    /// Writes the metrics of the store and other sinks beside networks.
    fn encode_driven(&self, families: &mut Families<'_>) -> fmt::Result {
        let by_sink = |value: fn(&DestinationState) -> u64| {
            self.driven.iter().map(move |sink| labelled("sink", &sink.status.name, value(sink)))
        };
        let help = "Whether the store or another sink beside networks accepts entries.";
        families.gauge("rondel_sink_up", None, help, by_sink(|sink| u64::from(!sink.is_down())))?;
        let help = "Verdicts that are new to the store or to another sink beside networks.";
        families.counter("rondel_sink_stored_verdicts", None, help, by_sink(|sink| sink.status.stored))?;
        let help = "Verdicts that the store or another sink beside networks had already.";
        families.counter(
            "rondel_sink_repeated_verdicts",
            None,
            help,
            by_sink(|sink| sink.status.repeated),
        )?;
        let help =
            "Entries that wait for the store or another sink beside networks, in memory and in its file.";
        families.gauge("rondel_sink_waiting_entries", None, help, by_sink(|sink| sink.waiting))?;
        let help = "Entries of these that are in its file.";
        families.gauge("rondel_sink_file_entries", None, help, by_sink(|sink| sink.in_file))?;
        let time = now().as_nanos();
        let behind = self.driven.iter().map(|sink| {
            let nanos = sink.behind_since(time, None).map_or(0, |since| time.saturating_sub(since).max(0));
            labelled("sink", &sink.status.name, nanos as f64 / 1e9)
        });
        let help = "Time for which the store or another sink beside networks has been down, or entries have waited \
                    in memory for it.";
        families.gauge("rondel_sink_behind", Some(Unit::Seconds), help, behind)?;
        let help = "Entries that the store or another sink beside networks did not get.";
        families.counter("rondel_sink_lost_entries", None, help, by_sink(DestinationState::lost))?;
        let help = "Calls of the store or another sink beside networks that failed.";
        families.counter("rondel_sink_failures", None, help, by_sink(|sink| sink.status.failures))
    }

    fn encode_audit(&self, families: &mut Families<'_>) -> fmt::Result {
        let of_audit = |value: fn(&AuditCounts) -> u64| {
            self.audit.iter().map(move |audit| (Labels::new(), value(audit)))
        };
        let lines = of_audit(|audit| audit.lines);
        families.counter("rondel_audit_lines", None, "Lines written into the audit file.", lines)?;
        let help = "Lines that are missing in the audit file.";
        families.counter("rondel_audit_lost_lines", None, help, of_audit(|audit| audit.lost))?;
        let help = "Times that the audit file could not be written.";
        families.counter("rondel_audit_failures", None, help, of_audit(|audit| audit.failures))
    }

    /// A sample for each topic.
    fn by_topic<V, F: Fn(usize) -> V>(&self, value: F) -> impl Iterator<Item = (Labels, V)> {
        self.topics.iter().enumerate().map(move |(i, topic)| labelled("topic", topic, value(i)))
    }

    fn encode_messages(&self, observation: &Observation, families: &mut Families<'_>) -> fmt::Result {
        let Observation { summary, traffic, meter, present, .. } = observation;
        let account = |i: usize| summary.accounts.get(i);
        let topic = |i: usize| summary.topics.get(i);
        let received = self.by_topic(|i| account(i).map_or(0, |account| account.received));
        families.counter("rondel_messages", None, "Messages received.", received)?;
        let bytes = self.by_topic(|i| meter.bytes.get(i).copied().unwrap_or(0));
        let help = "Payload bytes of messages received.";
        families.counter("rondel_message", Some(Unit::Bytes), help, bytes)?;
        let undecodable = self.by_topic(|i| account(i).map_or(0, |account| account.undecodable));
        let help = "Messages that could not be decoded.";
        families.counter("rondel_decode_errors", None, help, undecodable)?;
        let lost = self.by_topic(|i| {
            account(i).map_or(0, |account| account.lost) + topic(i).map_or(0, |topic| topic.gaps)
        });
        let help = "Messages that are missing by the numbers of their publishers.";
        families.counter("rondel_lost_messages", None, help, lost)?;
        let publishers = self.topics.iter().zip(&self.publishers);
        let publishers = publishers.filter_map(|(topic, count)| Some(labelled("topic", topic, (*count)?)));
        let help = "Publishers of a topic, as far as they are known.";
        families.gauge("rondel_publishers", None, help, publishers)?;
        let recovered = self.by_topic(|i| self.recovered.get(i).copied().unwrap_or(0));
        let help = "Messages that were missed and fetched again from their publishers.";
        families.counter("rondel_recovered_messages", None, help, recovered)?;
        let repeated = self.by_topic(|i| account(i).map_or(0, |account| account.duplicated));
        let help = "Messages received again, by the numbers of their publishers.";
        families.counter("rondel_repeated_messages", None, help, repeated)?;
        let late = |i: usize| summary.alignment.as_ref().map_or(0, |all| all.late_of(TopicId(i as u32)));
        let help = "Messages that arrived after a later one was evaluated.";
        families.counter("rondel_late_messages", None, help, self.by_topic(late))?;
        let unstamped = self.by_topic(|i| topic(i).map_or(0, |topic| topic.unstamped));
        let help = "Messages without the time that they should carry.";
        families.counter("rondel_unstamped_messages", None, help, unstamped)?;
        let refused = self.topics.iter().enumerate().flat_map(|(i, name)| {
            let counts = topic(i).map_or([0, 0], |topic| [topic.refused, topic.oversized]);
            let sample = |(reason, count): (&str, u64)| {
                (vec![("topic", name.clone()), ("reason", reason.to_owned())], count)
            };
            ["time", "size"].into_iter().zip(counts).map(sample).collect::<Vec<_>>()
        });
        let help = "Messages refused because their time is too far from the clock, or because of their size.";
        families.counter("rondel_refused_messages", None, help, refused)?;
        let waiting =
            |i: usize| summary.alignment.as_ref().map_or(0, |all| all.waiting_of(TopicId(i as u32)) as u64);
        let help = "Messages that wait for earlier ones or for the rest of their set.";
        families.gauge("rondel_waiting_messages", None, help, self.by_topic(waiting))?;
        let help = "Messages evaluated.";
        families.counter("rondel_checked_messages", None, help, alone(summary.counts.checked))?;
        let help = "Messages evaluated on arrival whose time is before that of the message before them.";
        families.counter("rondel_backwards_messages", None, help, alone(summary.backwards))?;
        let help = "Values of another type than the specification reads.";
        families.counter("rondel_mistyped_values", None, help, alone(summary.counts.mistyped))?;
        let help = "Verdicts, sets or messages published or printed, of all sinks.";
        families.counter("rondel_published_messages", None, help, alone(traffic.published))?;
        let help = "Verdicts, sets or messages that could not be published.";
        let unpublished = alone(traffic.unpublished + self.refused);
        families.counter("rondel_unpublished_messages", None, help, unpublished)?;
        let help = "Instances of properties with parameters.";
        families.gauge("rondel_instances", None, help, alone(present.instances))?;
        let help = "Memory of the instances.";
        families.gauge("rondel_instance_memory", Some(Unit::Bytes), help, alone(present.bytes))
    }

    fn encode_times(&self, observation: &Observation, families: &mut Families<'_>) -> fmt::Result {
        let meter = &observation.meter;
        let help = "Time per message from its reception until its verdicts were handed to their sinks. Messages \
                    that are evaluated together have equal shares.";
        families.histogram("rondel_service", help, alone(&meter.service))?;
        let since = [("publication", &meter.since_publication), ("arrival", &meter.since_arrival)];
        let latencies = since.map(|(since, histogram)| labelled("since", since, histogram));
        let help = "Time from the publication or the arrival of a message until its verdicts were handed to their \
                    sinks; of messages that are evaluated together, that of the first.";
        families.histogram("rondel_latency", help, latencies)
    }

    /// The labels of the property at this position.
    fn labels(&self, property: usize) -> Labels {
        let labels = self.properties.get(property);
        let (name, severity) =
            labels.map_or(("", ""), |labels| (labels.name.as_str(), labels.severity.as_str()));
        vec![("property", name.to_owned()), ("severity", severity.to_owned())]
    }

    fn encode_properties(&self, observation: &Observation, families: &mut Families<'_>) -> fmt::Result {
        let Observation { summary, meter, present, .. } = observation;
        let verdicts = meter.verdicts.iter().enumerate().flat_map(|(i, counts)| {
            let sample = |(verdict, count): (rondel_event::Verdict, u64)| {
                let mut labels = self.labels(i);
                labels.push(("verdict", verdict.as_str().to_owned()));
                (labels, count)
            };
            VERDICTS.into_iter().zip(*counts).map(sample).collect::<Vec<_>>()
        });
        families.counter("rondel_verdicts", None, "Verdicts emitted.", verdicts)?;
        let properties = || summary.properties.iter().enumerate();
        let violations = properties().map(|(i, property)| (self.labels(i), property.violations));
        let help = "Times that a property or one of its instances became violated.";
        families.counter("rondel_violations", None, help, violations)?;
        let violated = present.violated.iter().enumerate().map(|(i, count)| (self.labels(i), *count));
        let help = "Instances that are violated at present; 0 or 1 of a property without parameters.";
        families.gauge("rondel_violated_instances", None, help, violated)?;
        let in_violation = self.in_violation.iter().enumerate();
        let in_violation =
            in_violation.filter_map(|(i, nanos)| Some((self.labels(i), (*nanos)? as f64 / 1e9)));
        let help = "Time that a property was violated, by the times of messages; the sum over its instances.";
        families.counter("rondel_in_violation", Some(Unit::Seconds), help, in_violation)?;
        let mut instances: Vec<(Labels, u64)> = Vec::new();
        for ((property, parameters), count) in &meter.instances {
            let mut labels = self.labels(*property as usize);
            labels.push(("parameters", parameters.clone()));
            instances.push((labels, *count));
        }
        for (i, count) in meter.further_instances.iter().enumerate().filter(|(_, count)| **count > 0) {
            let mut labels = self.labels(i);
            labels.push(("parameters", "further".to_owned()));
            instances.push((labels, *count));
        }
        instances.sort();
        let help =
            "Times that an instance became violated, of as many instances as `parameters` of `metrics` sets.";
        families.counter("rondel_instance_violations", None, help, instances)
    }
}

/// Writes the metrics of workers, if there are any.
fn encode_workers(workers: Option<&WorkerStatistics>, families: &mut Families<'_>) -> fmt::Result {
    let of_all = |value: fn(&WorkerStatistics) -> u64| workers.map(|workers| (Labels::new(), value(workers)));
    let busy = workers.iter().flat_map(|workers| (1..).zip(&workers.busy));
    let busy =
        busy.map(|(worker, busy): (u32, _)| labelled("worker", &worker.to_string(), busy.as_secs_f64()));
    let help = "Time that a worker has spent on evaluation.";
    families.counter("rondel_worker_busy", Some(Unit::Seconds), help, busy)?;
    let help = "Batches that were handed to the workers, each to all of them.";
    families.counter("rondel_worker_batches", None, help, of_all(|workers| workers.batches))?;
    let help = "Messages in these batches; the receiving thread has evaluated the others.";
    families.counter("rondel_worker_messages", None, help, of_all(|workers| workers.messages))?;
    let help = "Messages that wait for workers.";
    families.gauge("rondel_worker_waiting_messages", None, help, of_all(|workers| workers.waiting))
}

/// Writes the numbers of actions.
fn encode_actions(actions: &[ActionFigures], families: &mut Families<'_>) -> fmt::Result {
    let results = actions.iter().flat_map(|action| {
        action.results.iter().map(move |(result, count)| {
            (vec![("action", action.name.clone()), ("result", (*result).to_owned())], *count)
        })
    });
    families.counter("rondel_actions", None, "Actions that verdicts have caused, by result.", results)?;
    let pending = actions.iter().map(|action| labelled("action", &action.name, action.pending));
    families.gauge("rondel_pending_actions", None, "Actions that wait or last.", pending)
}

/// Writes the state of a member of a group.
fn encode_standby(standby: Option<&GroupState>, families: &mut Families<'_>) -> fmt::Result {
    let states = standby.into_iter().flat_map(|standby| {
        Role::ALL.map(|role| labelled("state", role.as_str(), u64::from(role == standby.role)))
    });
    let help = "Whether a member of a group is in this state.";
    families.gauge("rondel_standby_state", None, help, states)?;
    let of = |value: fn(&GroupState) -> u64| standby.map(|standby| (Labels::new(), value(standby)));
    let help = "The largest epoch that a member of a group knows; while it is active, its own.";
    families.gauge("rondel_standby_epoch", None, help, of(|standby| standby.epoch))?;
    let help = "Other members of the group that stand by.";
    families.gauge("rondel_standby_members", None, help, of(|standby| standby.standbys.len() as u64))?;
    let help = "Verdicts that a member of a group withholds.";
    families.gauge("rondel_standby_withheld_verdicts", None, help, of(|standby| standby.withheld))?;
    let help = "Withheld verdicts that were dropped, since there were too many.";
    families.counter("rondel_standby_dropped_verdicts", None, help, of(|standby| standby.dropped))?;
    let help = "Whether a member of a group lacks messages that another one may have.";
    families.gauge("rondel_standby_late", None, help, of(|standby| u64::from(standby.is_ranked_late)))?;
    let help = "Topics of which messages around the state that a member has taken are uncertain.";
    let uncertain = of(|standby| standby.taken.as_ref().map_or(0, |taken| taken.uncertain.len() as u64));
    families.gauge("rondel_standby_uncertain_topics", None, help, uncertain)?;
    let help = "Times that a member of a group became active.";
    families.counter("rondel_standby_take_overs", None, help, of(|standby| standby.take_overs))?;
    let help = "Times that an active member stopped to publish, other than at a handover.";
    families.counter("rondel_standby_fenced", None, help, of(|standby| standby.fenced))?;
    let help = "Times that a member of a group may have missed messages while it stood by.";
    families.counter("rondel_standby_missed", None, help, of(|standby| standby.missed))?;
    let ignored = standby.into_iter().flat_map(|standby| {
        Reason::ALL.map(|reason| labelled("reason", reason.as_str(), standby.ignored.of(reason)))
    });
    let help = "Messages of the group that a member ignored, as they are forged or damaged, by reason.";
    families.counter("rondel_standby_ignored_signs", None, help, ignored)
}

/// Writes the figures of gates.
fn encode_gates(gates: &[GateFigures], families: &mut Families<'_>) -> fmt::Result {
    let of = |value: fn(&GateFigures) -> u64| {
        gates.iter().map(move |gate| labelled("gate", &gate.to, value(gate)))
    };
    let help = "Whether a gate passes messages on.";
    families.gauge("rondel_gate_open", None, help, of(|gate| u64::from(gate.is_open())))?;
    let help = "Messages that a gate has passed on.";
    families.counter("rondel_gate_forwarded", None, help, of(|gate| gate.counts.forwarded))?;
    let help = "Substitutes that a gate has published.";
    families.counter("rondel_gate_substituted", None, help, of(|gate| gate.counts.substituted))?;
    let help = "Times that the first substitute after a gate closed was refused, and a later one accepted.";
    families.counter("rondel_gate_late", None, help, of(|gate| gate.counts.late))?;
    let help = "Messages that a gate has not passed on, and for which it published nothing.";
    families.counter("rondel_gate_dropped", None, help, of(|gate| gate.counts.dropped))?;
    let help = "Messages that an open gate has not passed on, since they could not be evaluated.";
    families.counter("rondel_gate_unread", None, help, of(|gate| gate.counts.unread))?;
    let help = "Messages and substitutes of a gate that were not published.";
    families.counter("rondel_gate_unpublished", None, help, of(|gate| gate.counts.unpublished))?;
    let help =
        "Messages of a gate that were neither passed on nor replaced, since the member was not active.";
    families.counter("rondel_gate_withheld", None, help, of(|gate| gate.counts.withheld))?;
    let help = "Withheld messages of a gate that possibly no member has passed on.";
    families.counter("rondel_gate_skipped", None, help, of(|gate| gate.counts.skipped))?;
    let help = "Other monitors that have a gate, too, as far as their heartbeats show.";
    families.gauge("rondel_gate_others", None, help, of(|gate| gate.others))?;
    let help = "Times that a gate closed or opened again.";
    families.counter("rondel_gate_switches", None, help, of(|gate| gate.counts.switches))
}
