//! The report of `rondel size`: a table for people, or JSON.

use std::fmt::Write as _;
use std::io;

use rondel_runtime::text::{duration, grouped};
use serde_json::{Value as Json, json};

use super::measure::{Cost, Fill, Horizon, REPETITIONS, SMALLEST_STATE};
use super::plan::{Figures, Plan, StatePlan, Timing, Way, bytes_text};
use crate::output::Output;
use crate::{complain, exit};

/// Origin of the measured messages.
pub struct Source {
    /// The recording; `None` for synthetic messages.
    pub recording: Option<String>,
    /// Number of keys in the messages; 1 without `for each`.
    pub keys: u64,
    /// Whether the messages have times of their own.
    pub is_timed: bool,
    /// Number of messages that are older than one before them in the recording.
    pub misordered: u64,
}

/// Measurements and plans.
pub struct Report {
    /// Origin of the messages.
    pub source: Source,
    /// Number of messages.
    pub messages: u64,
    /// Their rate, per second.
    pub sample_rate: f64,
    /// Whether a property has `for each`.
    pub is_keyed: bool,
    /// The past and future that properties remember.
    pub horizon: Horizon,
    /// Cost of a message.
    pub cost: Cost,
    /// The state at several rates.
    pub fills: Vec<Fill>,
    /// Figures for plans.
    pub figures: Figures,
    /// The plan for the wanted load.
    pub plan: Plan,
    /// Plans for fleets of other sizes, with the same rate of a key.
    pub fleets: Vec<Plan>,
    /// Limits of the measurement.
    pub notes: Vec<String>,
}

impl Report {
    /// Prints the report, and returns the exit status.
    pub fn print(&self, as_json: bool) -> u8 {
        let text = if as_json { format!("{}\n", self.json(&cpu())) } else { self.text(&cpu()) };
        let mut out = Output::new(io::stdout().lock());
        out.write(text.as_bytes());
        let closed = out.is_closed();
        match out.finish() {
            Err(error) if !closed => {
                complain(&format!("cannot write the plan: {error}"));
                exit::TRACE
            }
            _ => exit::SATISFIED,
        }
    }

    fn text(&self, cpu: &str) -> String {
        let mut rows = vec![("processor", cpu.to_owned()), ("messages", self.origin())];
        let Cost { decode_ns, evaluate_ns, messages, .. } = self.cost;
        rows.push((
            "message",
            format!(
                "decoding {}, evaluation {}; medians of {REPETITIONS} x {} messages",
                duration(decode_ns as u64),
                duration(evaluate_ns as u64),
                grouped(messages)
            ),
        ));
        let key = if self.is_keyed { "key" } else { "state" };
        if let Some(state) = self.figures.state {
            let rate = self.plan.load.rate_of_key();
            let growth = match state.memory.by_rate {
                grown if grown < 0.5 => String::new(),
                grown => format!(
                    ", of which {} for each message/s (line through {} rates)",
                    bytes_text(grown),
                    self.fills.len()
                ),
            };
            let (memory, snapshot) = (bytes_text(state.memory.at(rate)), bytes_text(state.snapshot.at(rate)));
            rows.push((key, format!("{memory} in memory{growth}, {snapshot} in a snapshot")));
            // Without enough state, the time for each MB would be noise.
            let is_large = self.fills.last().is_some_and(|fill| fill.snapshot_bytes >= SMALLEST_STATE);
            let timing = |Timing { fixed_ns, byte_ns }: Timing| {
                let fixed = duration(fixed_ns as u64);
                match is_large {
                    true => format!("{fixed} and {} for each MB", duration((byte_ns * 1e6) as u64)),
                    false => format!("{fixed} without state"),
                }
            };
            let times = format!("{}, recovery {}", timing(state.making), timing(state.recovery));
            rows.push(("snapshot", times));
        }
        rows.push(("process", format!("{} without state", bytes_text(self.figures.base_bytes))));
        if self.horizon.ns > 0 {
            rows.push(("horizon", duration(self.horizon.ns)));
        }
        let mut text = String::from("Measured\n");
        for (what, value) in &rows {
            let _ = writeln!(text, "  {what:<10}  {value}");
        }
        text += &self.planned();
        if !self.fleets.is_empty() {
            text += &self.table();
        }
        text += "\nNotes\n";
        for note in &self.notes {
            let _ = writeln!(text, "  - {note}");
        }
        text
    }

    /// Origin and number of the messages.
    fn origin(&self) -> String {
        let origin = match &self.source.recording {
            Some(name) => name.clone(),
            None => "synthetic, from the declarations of the specification".to_owned(),
        };
        let rate = match self.source.is_timed {
            true => format!(", {} messages/s", number(self.sample_rate)),
            false => String::new(),
        };
        let keys = match self.is_keyed {
            true => format!(" of {} keys", grouped(self.source.keys)),
            false => String::new(),
        };
        format!("{origin}: {} messages{keys}{rate}", grouped(self.messages))
    }

    /// The plan for the wanted load.
    fn planned(&self) -> String {
        let Plan { load, busy_cores, cores, state, processes, partitions, way, fits, reason } = &self.plan;
        let keys = match self.is_keyed {
            true => format!(" of {} keys", grouped(load.keys)),
            false => String::new(),
        };
        let mut text = format!("\nPlan for {} messages/s{keys}\n", number(load.rate));
        let mut row = |what: &str, value: String| {
            let _ = writeln!(text, "  {what:<10}  {value}");
        };
        row("way", format!("{way}{}: {reason}", if *fits { "" } else { ", which is not enough" }));
        row("processes", grouped(*processes));
        row("cores", format!("{} ({busy_cores:.2} busy with messages)", grouped(*cores)));
        match state {
            None => row("memory", "not stated: too few keys were measured".to_owned()),
            Some(StatePlan { state_bytes, snapshot_bytes, snapshot_s, recovery_s, process_bytes }) => {
                row(
                    "memory",
                    format!(
                        "{} for each process while it makes a snapshot; state {}",
                        bytes_text(*process_bytes),
                        bytes_text(*state_bytes)
                    ),
                );
                let times = [snapshot_s, recovery_s].map(|seconds| duration((seconds * 1e9) as u64));
                row(
                    "snapshot",
                    format!(
                        "{} in all; made in {}, restored in {}, each process its part",
                        bytes_text(*snapshot_bytes),
                        times[0],
                        times[1]
                    ),
                );
            }
        }
        row("partitions", format!("{} of each topic, if the messages come from Kafka", grouped(*partitions)));
        text
    }

    /// A line for each size of the fleet.
    fn table(&self) -> String {
        let rate = self.plan.load.rate_of_key();
        let mut text = format!("\nFleets with {} messages/s of each key\n", number(rate));
        let _ = writeln!(
            text,
            "  {:>9}  {:>11}  {:>5}  {:>12}  {:>10}  {:>10}  {:>10}  way",
            "keys", "messages/s", "cores", "total memory", "snapshot", "recovery", "partitions"
        );
        for plan in &self.fleets {
            let unknown = || ["?"; 3].map(str::to_owned);
            let state = plan.state.map_or_else(unknown, |state| {
                [
                    bytes_text(state.process_bytes * plan.processes as f64),
                    bytes_text(state.snapshot_bytes),
                    duration((state.recovery_s * 1e9) as u64),
                ]
            });
            let [memory, snapshot, recovery] = state;
            let way = match (plan.way, plan.processes) {
                (Way::OneProcess, _) => plan.way.to_string(),
                (Way::Kafka, count) => format!("{count} {}", plan.way),
                (Way::Flink, count) => format!("{}, {} subtasks", plan.way, grouped(count)),
            };
            let fits = if plan.fits { "" } else { ", not enough" };
            let _ = writeln!(
                text,
                "  {:>9}  {:>11}  {:>5}  {memory:>12}  {snapshot:>10}  {recovery:>10}  {:>10}  {way}{fits}",
                grouped(plan.load.keys),
                number(plan.load.rate),
                grouped(plan.cores),
                grouped(plan.partitions),
            );
        }
        text
    }

    fn json(&self, cpu: &str) -> Json {
        let fill = |fill: &Fill| {
            json!({
                "rate_of_key": fill.rate,
                "messages": fill.messages,
                "full": fill.is_full,
                "instances": fill.instances,
                "bytes": fill.bytes,
                "snapshot_bytes": fill.snapshot_bytes,
                "snapshot_ns": fill.snapshot_ns,
                "recovery_ns": fill.recovery_ns,
            })
        };
        let rate = self.plan.load.rate_of_key();
        let state = self.figures.state.map(|state| {
            json!({
                "bytes_of_key": state.memory.at(rate),
                "bytes_of_key_by_rate": state.memory.by_rate,
                "snapshot_bytes_of_key": state.snapshot.at(rate),
                "snapshot_bytes_of_key_by_rate": state.snapshot.by_rate,
                "snapshot_ns": state.making.fixed_ns,
                "snapshot_ns_by_byte": state.making.byte_ns,
                "recovery_ns": state.recovery.fixed_ns,
                "recovery_ns_by_byte": state.recovery.byte_ns,
            })
        });
        json!({
            "version": env!("CARGO_PKG_VERSION"),
            "optimised": !cfg!(debug_assertions),
            "cpu": cpu,
            "source": {
                "kind": if self.source.recording.is_some() { "recording" } else { "synthetic" },
                "recording": self.source.recording,
                "messages": self.messages,
                "keys": self.is_keyed.then_some(self.source.keys),
                "rate": self.source.is_timed.then_some(self.sample_rate),
            },
            "measured": {
                "repetitions": REPETITIONS,
                "messages": self.cost.messages,
                "undecodable": self.cost.undecodable,
                "decode_ns": self.cost.decode_ns,
                "evaluate_ns": self.cost.evaluate_ns,
                "process_bytes": self.figures.base_bytes,
                "horizon_s": self.horizon.ns as f64 / 1e9,
                "fills": self.fills.iter().map(fill).collect::<Vec<_>>(),
                "state": state,
            },
            "plan": self.plan_json(&self.plan),
            "fleets": self.fleets.iter().map(|plan| self.plan_json(plan)).collect::<Vec<_>>(),
            "notes": self.notes,
        })
    }

    fn plan_json(&self, plan: &Plan) -> Json {
        let state = plan.state;
        json!({
            "rate": plan.load.rate,
            "keys": self.is_keyed.then_some(plan.load.keys),
            "way": plan.way.name(),
            "fits": plan.fits,
            "reason": plan.reason,
            "processes": plan.processes,
            "cores": plan.cores,
            "busy_cores": plan.busy_cores,
            "partitions": plan.partitions,
            "state_bytes": state.map(|state| state.state_bytes),
            "snapshot_bytes": state.map(|state| state.snapshot_bytes),
            "snapshot_s": state.map(|state| state.snapshot_s),
            "recovery_s": state.map(|state| state.recovery_s),
            "process_bytes": state.map(|state| state.process_bytes),
        })
    }
}

/// A number of messages per second, with three digits or more.
fn number(rate: f64) -> String {
    match rate {
        _ if rate >= 100.0 => grouped(rate.round() as u64),
        _ if rate >= 1.0 => format!("{rate:.1}"),
        _ => format!("{rate:.4}"),
    }
}

/// The name of the processor; `unknown` where the system does not say.
fn cpu() -> String {
    let info = std::fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let line = info.lines().find(|line| line.starts_with("model name"));
    let name = line.and_then(|line| Some(line.split_once(':')?.1.trim().to_owned()));
    name.unwrap_or_else(|| "unknown".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rates_have_digits_by_size() {
        let texts = [0.05, 1.0, 99.94, 20_000.4].map(number);
        assert_eq!(texts, ["0.0500", "1.0", "99.9", "20,000"]);
    }
}
