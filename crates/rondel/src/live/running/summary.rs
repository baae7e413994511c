//! The statistics of a run, as text and as JSON.

use std::sync::Arc;
use std::time::Duration;

use rondel_event::Verdict;
use rondel_net::adapter::{DeadLetterCounts, Outage, PartitionStatus, Problems};
use rondel_runtime::text::{counted, grouped};
use rondel_runtime::{
    AlignmentStatistics, Cause, ChainStatistics, Omission, Pause, Summary, WorkerStatistics,
};
use rondel_spec::Spec;
use serde_json::json;

use crate::live::discover::Unread;
use crate::live::gate::GateFigures;
use crate::live::losses::{Unconfirmed, Undelivered, outage_json, outage_text};
use crate::live::metrics::PushFigures;
use crate::live::pipeline::{ClockAccount, Traffic};
use crate::live::reload::Reloads;
use crate::live::reload::past::PastViolations;
use crate::live::standby::state::GroupState;
use crate::output::colour_of;
use crate::output::summary::{
    Reasons, least_robustness, not_evaluated, unstamped, violations, with_figures, withheld_verdicts,
};
use crate::output::time_text::TimeText;
use crate::recorder::FlightSummary;
use crate::sinks::actions::ActionSummary;
use crate::sinks::audit::AuditSummary;
use crate::sinks::driven::{DestinationSummary, Role};
use crate::sinks::spool::Spools;

/// The statistics of a run.
pub struct RunSummary {
    /// The statistics of the session.
    pub summary: Summary,
    /// The counts of received and published messages.
    pub traffic: Traffic,
    /// Whether the run ended with the last wanted message.
    pub(super) counted: bool,
    pub(super) problems: Problems,
    /// The noun for published messages: verdicts, sets or messages.
    pub(super) published: &'static str,
    pub(super) spec: Arc<Spec>,
    /// Result of writing the snapshot, if one was requested.
    pub kept: std::io::Result<()>,
    /// Whether every verdict was delivered.
    pub flushed: bool,
    /// Messages that consumers did not accept.
    pub(super) undelivered: Undelivered,
    /// Messages that brokers did not confirm.
    pub(super) unconfirmed: Unconfirmed,
    /// Messages kept for consumers.
    pub(super) spools: Spools,
    /// Recordings around violations.
    pub(super) recorded: Option<FlightSummary>,
    /// The partitions that a member of a consumer group has at the end.
    pub(super) partitions: Vec<PartitionStatus>,
    /// The records that cannot be decoded, where they are written to a topic.
    pub(super) dead_letters: Option<DeadLetterCounts>,
    /// The connections that were lost.
    pub(super) outages: Vec<Outage>,
    /// Whether every network was reached.
    pub(super) is_joined: bool,
    /// The participants that DDS Security refused.
    pub(super) refused_participants: u64,
    /// The topics that were not read since the types of their publishers cannot be used.
    pub(super) unread: Vec<Unread>,
    /// The state of each gate.
    pub(super) gates: Vec<GateFigures>,
    /// The statistics of workers, if there are any.
    pub(super) workers: Option<WorkerStatistics>,
    /// The panic of a worker, with which the state of the session was lost.
    pub failure: Option<String>,
    /// Statistics of `/clock`, if a simulation sets the time.
    pub(super) clock: Option<ClockAccount>,
    /// The numbers of reloads.
    pub(super) reloads: Reloads,
    /// The violations of properties that reloads have changed or removed.
    pub past: PastViolations,
    /// The account of the audit file, if there is one.
    pub audit: Option<AuditSummary>,
    /// The account of pushes of metrics, if they are pushed.
    pub pushes: Option<PushFigures>,
    /// The state of the member of a group, if the run was one.
    pub(super) standby: Option<GroupState>,
    /// The store and other destinations beside networks.
    pub(super) driven: Vec<DestinationSummary>,
    /// The account of actions, if there are any.
    pub acted: Option<ActionSummary>,
}

impl RunSummary {
    /// Returns the reasons why properties are vacuous.
    fn reasons(&self) -> Reasons<'_> {
        Reasons { summary: &self.summary, spec: &self.spec, unused: None }
    }

    /// Whether a connection was lost meanwhile.
    pub fn was_cut_off(&self) -> bool {
        !self.outages.is_empty()
    }

    /// Whether the time of a simulation stood, so that nothing was decided by time alone.
    pub fn stood(&self) -> bool {
        self.clock.as_ref().is_some_and(ClockAccount::stood)
    }

    /// Whether nothing is known to be lost, neither on the way to the session nor on the way to consumers.
    pub fn is_complete(&self) -> bool {
        self.flushed
            && self.is_joined
            && self.unread.is_empty()
            && self.traffic.unpublished == 0
            && self.undelivered.count() + self.unconfirmed.count() + self.spools.waiting() == 0
            && self.summary.lost() + self.problems.lost + self.problems.incompatible == 0
            && self.recorded.as_ref().is_none_or(FlightSummary::is_complete)
            && self.driven.iter().all(DestinationSummary::is_complete)
            && self.gates.iter().all(GateFigures::is_complete)
            // DDS drops unacknowledged messages when a participant is lost; its messages have no numbers.
            && self.outages.iter().all(|outage| outage.network != "dds")
    }

    /// Leaves the store out, which belongs to the page alone: what it dropped is no loss of the run.
    pub fn leave_store_out(&mut self) {
        self.driven.retain(|summary| summary.role() != Role::Store);
    }

    /// The destinations with a role as JSON.
    fn driven_json(&self, role: Role) -> impl Iterator<Item = serde_json::Value> {
        self.driven.iter().filter(move |summary| summary.role() == role).map(DestinationSummary::json)
    }

    fn seconds(&self) -> Option<f64> {
        let (first, last) = self.traffic.first.zip(self.traffic.last)?;
        Some((last.as_nanos() - first.as_nanos()) as f64 / 1e9)
    }

    /// One JSON object, with `seconds` from the first message received to the last.
    pub fn json(&self) -> String {
        let Summary { counts, topics, accounts, backwards, missing, chains, alignment, pauses, .. } =
            &self.summary;
        let Problems { malformed, lost, incompatible, .. } = self.problems;
        let reasons = self.reasons();
        let properties = self.spec.properties.iter().zip(&self.summary.properties).enumerate();
        let properties = properties.map(|(i, (property, statistics))| {
            with_figures(
                json!({
                    "property": property.name,
                    "verdict": statistics.verdict().map(Verdict::as_str),
                    "violations": statistics.violations,
                    "vacuous": reasons.json(i),
                }),
                statistics,
            )
        });
        let unstamped: u64 = topics.iter().map(|topic| topic.unstamped).sum();
        let mut whole = json!({
            "received": self.traffic.received,
            "checked": counts.checked,
            "undecodable": counts.undecodable + malformed,
            "refused": counts.refused,
            "mistyped": counts.mistyped,
            "backwards": backwards,
            "unstamped": unstamped,
            "missing_topics": self.summary.missing_topics(),
            "missing_fields": missing.fields(),
            "empty": self.problems.empty,
            "instance_events": self.problems.instance_events,
            "incompatible": incompatible,
            "duplicates": self.problems.duplicates,
            "refused_participants": self.refused_participants,
            "breaks": self.problems.breaks,
            "unread": self.unread.iter().map(Unread::json).collect::<Vec<_>>(),
            "unmarked": self.problems.unmarked,
            "dropped": lost + self.traffic.unpublished + self.undelivered.count(),
            "lost": self.summary.lost(),
            "recovered": self.summary.accounts.iter().map(|account| account.recovered).sum::<u64>(),
            "topics": topics.iter().zip(accounts).map(|(topic, account)| account.json(&topic.name)).collect::<Vec<_>>(),
            "undelivered": self.undelivered.json(),
            "unconfirmed": self.unconfirmed.json(),
            "spooled": self.spools.json(),
            "audit": self.audit.as_ref().map(AuditSummary::json),
            "recorded": self.recorded.as_ref().map(FlightSummary::json),
            "stored": self.driven_json(Role::Store).next(),
            "sinks": self.driven_json(Role::Sink).collect::<Vec<_>>(),
            "outages": self.outages.iter().map(outage_json).collect::<Vec<_>>(),
            "pauses": pauses.iter().map(Pause::json).collect::<Vec<_>>(),
            "reloads": self.reloads.json(),
            "clock": self.clock.as_ref().map(ClockAccount::json),
            self.published: self.traffic.published,
            "seconds": self.seconds().unwrap_or(0.0),
            "flushed": self.flushed,
            "not_evaluated": self.summary.omitted().iter().map(Omission::json).collect::<Vec<_>>(),
            "left_out": self.summary.left_out(),
            "properties": properties.collect::<Vec<_>>(),
            "chains": chains.iter().map(ChainStatistics::json).collect::<Vec<_>>(),
            "alignment": alignment.as_ref().map(AlignmentStatistics::json),
        });
        // Outside of the macro, which nests some levels for each member, and has many.
        whole["gates"] = self.gates.iter().map(GateFigures::json).collect();
        whole["metrics_pushes"] = json!(self.pushes.as_ref().map(PushFigures::json));
        whole["workers"] = json!(self.workers.as_ref().map(workers_json));
        whole["actions"] = json!(self.acted.as_ref().map(ActionSummary::json));
        whole["violated_before_reload"] = self.past.json();
        if let Some(standby) = &self.standby {
            whole["standby"] = standby.json();
        }
        let partition = |status: &PartitionStatus| {
            let PartitionStatus { topic, partition, next, lag } = status;
            json!({"topic": topic, "partition": partition, "next": next, "lag": lag})
        };
        whole["partitions"] = self.partitions.iter().map(partition).collect();
        whole["dead_letters"] = json!(self.dead_letters.as_ref().map(dead_letters_json));
        whole.to_string()
    }

    /// Lines of text.
    pub fn text(&self, colour: bool) -> String {
        let Summary { chains, alignment, .. } = &self.summary;
        let mut text = self.counts_text();
        for unread in &self.unread {
            text += &format!("\n  {}", unread.sentence());
        }
        for sentence in self.transport_sentences() {
            text += &format!("\n  {sentence}");
        }
        let reasons = self.reasons();
        for i in 0..self.spec.properties.len().min(self.summary.properties.len()) {
            text += &self.property_text(i, colour);
            for line in reasons.lines(i) {
                text += &format!("\n{line}");
            }
        }
        for chain in chains {
            text += &format!("\n{}", chain.text());
        }
        let alignment = alignment.as_ref().map_or_else(Vec::new, AlignmentStatistics::sentences);
        for sentence in self.summary.left_out().iter().chain(&alignment) {
            text += &format!("\n  {sentence}");
        }
        for sentence in not_evaluated(&self.summary).into_iter().chain(unstamped(&self.summary)) {
            text += &format!("\n  {sentence}");
        }
        text
    }

    /// The first line of the text: counts, duration and rate.
    fn counts_text(&self) -> String {
        let Summary { counts, backwards, .. } = &self.summary;
        let Problems { malformed, lost, incompatible, .. } = self.problems;
        let Traffic { received, published, unpublished, until_last, .. } = self.traffic;
        let mut text = format!(
            "received {}, checked {}, undecodable {}, dropped {}, {} {}",
            grouped(received),
            grouped(counts.checked),
            grouped(counts.undecodable + malformed),
            grouped(lost + unpublished + self.undelivered.count()),
            self.published,
            grouped(published),
        );
        for (count, what) in [
            (counts.refused, "refused"),
            (self.summary.lost(), "lost"),
            (counts.mistyped, "values of another type"),
            (*backwards, "times going backwards"),
            (incompatible, "publishers that do not match"),
            (self.problems.duplicates, "possible duplicates"),
            (self.refused_participants, "participants refused by DDS Security"),
            (self.problems.breaks, "broken connections"),
            (self.problems.unmarked, "messages of ROS 2 without a number"),
        ] {
            if count > 0 {
                text += &format!(", {what} {}", grouped(count));
            }
        }
        if let Some(seconds) = self.seconds() {
            text += &format!("; {seconds:.3} s since the first message");
            // Otherwise the run ended at an unknown time after the last message: no rate.
            if self.counted && seconds > 0.0 {
                let rate = ((until_last.max(1) - 1) as f64 / seconds).round() as u64;
                text += &format!(", {} messages/s", grouped(rate));
            }
        }
        if !self.flushed {
            text += "; NOT everything could be handed over in time";
        }
        text
    }

    /// Sentences about lost messages and connections, `/clock`, pauses and recordings.
    fn transport_sentences(&self) -> Vec<String> {
        let mut sentences = Vec::new();
        let mut times = TimeText::default();
        for (topic, account) in self.summary.topics.iter().zip(&self.summary.accounts) {
            if let Some(sentence) = account.sentence(&topic.name, &mut |time| times.text(time)) {
                sentences.push(sentence);
            }
        }
        let outages = self.outages.iter().map(|outage| outage_text(outage, &mut times));
        let mut at = TimeText::default();
        let clock = self.clock.as_ref().map_or_else(Vec::new, |clock| clock.sentences(&mut at));
        // Many leaps are summed up in one of these.
        let is_listed = |pause: &&Pause| {
            pause.cause != Cause::Simulation || !self.clock.as_ref().is_some_and(ClockAccount::has_many_leaps)
        };
        let pauses = self.summary.pauses.iter().filter(is_listed);
        let pauses = pauses.map(|pause| pause.sentence(&mut |time| at.text(time)));
        let verdicts = [self.undelivered.sentences(), self.unconfirmed.sentences(), self.spools.sentences()];
        sentences.extend(verdicts.into_iter().flatten().chain(outages).chain(clock).chain(pauses));
        sentences.extend(self.workers.as_ref().map(workers_sentence));
        sentences.extend(self.partitions.iter().map(|PartitionStatus { topic, partition, next, lag }| {
            let lag =
                lag.map_or_else(String::new, |lag| format!(", {} waited", counted(lag, "record", "records")));
            format!("partition {partition} of {topic} up to offset {next}{lag}")
        }));
        sentences.extend(self.dead_letters.as_ref().and_then(dead_letters_sentence));
        sentences.extend(self.reloads.sentence());
        sentences.extend(self.past.sentences());
        sentences.extend(self.standby.as_ref().map(GroupState::sentence));
        sentences.extend(self.recorded.iter().flat_map(FlightSummary::sentences));
        sentences.extend(self.audit.iter().flat_map(AuditSummary::sentences));
        sentences.extend(self.driven.iter().map(DestinationSummary::sentence));
        sentences.extend(self.pushes.iter().filter_map(PushFigures::sentence));
        sentences.extend(self.acted.iter().flat_map(ActionSummary::sentences));
        let mut since = TimeText::default();
        sentences.extend(self.gates.iter().map(|gate| gate.sentence(&mut |time| since.text(time))));
        sentences
    }

    /// The line about a property: its last verdict, and remarks.
    fn property_text(&self, i: usize, colour: bool) -> String {
        let (property, statistics) = (&self.spec.properties[i], &self.summary.properties[i]);
        let (on, off) = match statistics.verdict() {
            Some(verdict) if colour => (colour_of(verdict), "\x1b[0m"),
            _ => ("", ""),
        };
        let verdict = statistics.verdict().map_or("no event", Verdict::as_str);
        let mut text = format!("\n  {on}{verdict:<12}{off}  {}", property.name);
        let judged = statistics.judgement().map(|judgement| judgement.text.clone());
        let violated = violations(statistics).map(|violated| {
            // The word at the beginning of the line is the last verdict.
            let is_last = statistics.verdict() == Some(Verdict::Violated);
            format!("{}{violated}", if is_last { "" } else { "so at the end, but " })
        });
        let remarks: Vec<String> = judged
            .filter(|text| !text.is_empty())
            .into_iter()
            .chain(violated)
            .chain(withheld_verdicts(statistics))
            .chain(least_robustness(statistics))
            .collect();
        if !remarks.is_empty() {
            text += &format!(": {}", remarks.join("; "));
        }
        text
    }
}

/// The numbers of dead letters as JSON.
fn dead_letters_json(counts: &DeadLetterCounts) -> serde_json::Value {
    let DeadLetterCounts { topic, written, waiting, refused } = counts;
    json!({"sink": format!("kafka:{topic}"), "written": written, "waiting": waiting, "refused": refused})
}

/// A sentence about dead letters, if there were any.
fn dead_letters_sentence(counts: &DeadLetterCounts) -> Option<String> {
    let DeadLetterCounts { topic, written, waiting, refused } = counts;
    let further = [(waiting, "waited"), (refused, "refused")].into_iter().filter(|(count, _)| **count > 0);
    let further: String = further.map(|(count, what)| format!(", {} {what}", grouped(*count))).collect();
    (written + waiting + refused > 0).then(|| {
        let records = counted(*written, "undecodable record", "undecodable records");
        format!("kafka:{topic}: {records} written{further}")
    })
}

/// The statistics of workers as JSON, with times in seconds.
fn workers_json(workers: &WorkerStatistics) -> serde_json::Value {
    let WorkerStatistics { requested, busy, batches, messages, .. } = workers;
    let busy: Vec<f64> = busy.iter().map(Duration::as_secs_f64).collect();
    json!({"requested": requested, "messages": messages, "batches": batches, "busy": busy})
}

/// A sentence about workers.
fn workers_sentence(workers: &WorkerStatistics) -> String {
    let WorkerStatistics { requested, busy, batches, messages, .. } = workers;
    let fewer = match busy.len() < *requested {
        true => format!(" of {requested}, as the properties have no more parts,"),
        false => String::new(),
    };
    match busy.iter().max() {
        None => "no burst of messages was long enough for workers".to_owned(),
        Some(most) => format!(
            "{}{fewer} evaluated {} in {}, each for at most {:.3} s",
            counted(busy.len() as u64, "worker", "workers"),
            counted(*messages, "message", "messages"),
            counted(*batches, "batch", "batches"),
            most.as_secs_f64()
        ),
    }
}
