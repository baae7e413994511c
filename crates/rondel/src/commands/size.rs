//! `rondel size`: plans machines for a fleet from measurements on this one.

mod measure;
mod plan;
mod report;
mod synthetic;

use std::collections::BTreeSet;
use std::path::PathBuf;

use clap::Args;
use rondel_event::Path;
use rondel_recording::shown;
use rondel_runtime::text::{counted, duration, grouped, size};
use rondel_runtime::{INSTANCE_BYTES, Options, SessionPlan};
use rondel_spec::{Slice, Spec};

use crate::commands::check::{Check, Sample};
use crate::deployment::{bytes_up_to, nanoseconds};
use crate::specification::{Reading, Specification, is_specification};
use crate::{complain, exit, warn};
use measure::{Cost, Fill, Horizon, SMALLEST_STATE, Workload};
use plan::{Figures, Load, Plan, bytes_text};
use report::{Report, Source};

/// Messages below which no statement is made.
const FEWEST_MESSAGES: u64 = 1_000;
/// Keys below which no statement about the state of a key is made.
const FEWEST_KEYS: u64 = 10;
/// Keys that messages are made of, at most: the rest is extrapolated.
const MOST_KEYS: u64 = 20_000;
/// Synthetic messages of each key on a topic: more than one, so that values change.
const ROUNDS: u64 = 4;
/// Memory of a process without `--memory`, in bytes.
const PROCESS_BYTES: usize = 4 << 30;
/// Ratio of the planned rate of a key to the greatest measured one, above which the state is unreliable.
const FARTHEST: f64 = 10.0;
/// The numbers of vehicles in the table.
const FLEETS: [u64; 4] = [1, 100, 10_000, 1_000_000];

/// Plan machines for a fleet: measure a specification here, and compute cores, memory, snapshots and partitions
///
/// The messages are those of the recording; without one, they are made from the declarations of the specification, with
/// random values. Messages are evaluated here, without networks and sinks. It prints the plan for the given rate and
/// number of keys, and for 1, 100, 10,000 and 1,000,000 keys with the same rate each.
#[derive(Debug, Args)]
#[command(after_help = EXIT_STATUS)]
pub struct Size {
    /// The specification
    #[arg(value_name = "SPEC")]
    specification: PathBuf,
    /// The recording: an MCAP file, a bag, a log of PX4, a table or JSON lines
    #[arg(value_name = "RECORDING")]
    recording: Option<PathBuf>,
    /// Plan for N messages per second of the whole fleet (default: the rate of the recording)
    #[arg(long, value_name = "N", allow_negative_numbers = true, value_parser = rate)]
    rate: Option<f64>,
    /// Plan for N keys, such as vehicles: values of the parameters of `for each` (default: those in the recording)
    #[arg(long, value_name = "N", allow_negative_numbers = true, value_parser = keys)]
    keys: Option<u64>,
    /// The time for which windows are filled (default, and limit: the longest bound of the specification)
    #[arg(long, value_name = "TIME", value_parser = horizon)]
    horizon: Option<u64>,
    /// Memory of one process (default: 4 GiB)
    #[arg(long, value_name = "SIZE", value_parser = memory)]
    memory: Option<usize>,
    /// Measure with at most N messages
    #[arg(long, value_name = "N", default_value_t = 400_000, value_parser = clap::value_parser!(u64).range(1_000..=50_000_000))]
    messages: u64,
    /// Print one JSON object
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    reading: Reading,
}

const EXIT_STATUS: &str = "\
Exit status:
  0  the plan was printed
  2  wrong usage or specification, no message of the recording is on a topic of the specification, or too few are
  3  the recording could not be read, or the output not be written";

fn rate(text: &str) -> Result<f64, &'static str> {
    let rate: Option<f64> = text.parse().ok().filter(|rate| (1e-6..=1e12).contains(rate));
    rate.ok_or("must be a number of messages per second from 0.000001 to 1e12, such as 20000")
}

fn keys(text: &str) -> Result<u64, &'static str> {
    let keys: Option<u64> = text.parse().ok().filter(|keys| (1..=1_000_000_000_000).contains(keys));
    keys.ok_or("must be a whole number of keys from 1 to 1000000000000, such as 1000")
}

fn horizon(text: &str) -> Result<u64, &'static str> {
    let nanos = nanoseconds(text).and_then(|nanos| u64::try_from(nanos).ok());
    nanos.ok_or("must be a duration, such as 10 s")
}

fn memory(text: &str) -> Result<usize, &'static str> {
    let bytes = bytes_up_to(text, 16 << 40).filter(|bytes| *bytes >= 64 << 20);
    bytes.ok_or("must be a whole number with a unit, from 64 MiB to 16384 GiB, such as 8 GiB")
}

impl Size {
    /// Measures, prints the plan, and returns the exit status.
    pub fn run(self) -> u8 {
        match self.report() {
            Ok(report) => report.print(self.json),
            Err((sentence, status)) => {
                if !sentence.is_empty() {
                    complain(&sentence);
                }
                status
            }
        }
    }

    fn report(&self) -> Result<Report, (String, u8)> {
        if let Some(recording) = self.recording.as_deref().filter(|file| is_specification(file)) {
            let recording = shown(recording);
            let sentence = format!("{recording} is a specification, and a recording should stand here");
            return Err((sentence, exit::USAGE));
        }
        let mut reading = self.reading.clone();
        reading.recordings.extend(self.recording.clone());
        // Its mistakes are shown where they are found.
        let specification = Specification::from_file(&self.specification, &reading)
            .map_err(|_| (String::new(), exit::USAGE))?;
        let spec = &specification.spec;
        if spec.properties.is_empty() {
            return Err((
                "the specification has no property: there is nothing to measure".to_owned(),
                exit::USAGE,
            ));
        }
        let is_keyed = spec.properties.iter().any(|property| property.slice.is_some());
        self.check_options(is_keyed).map_err(|sentence| (sentence, exit::USAGE))?;
        let base_bytes = resident_bytes();
        let options = Options { largest_message: usize::MAX, ..Options::immediate() };
        let plan = SessionPlan::of(specification.checked(), options);
        let (sample, source) = self.sample(&specification, plan, is_keyed)?;
        self.measured(&sample, source, spec, base_bytes)
    }

    /// Refuses options that do not fit the specification.
    fn check_options(&self, is_keyed: bool) -> Result<(), String> {
        if let Some(keys) = self.keys.filter(|_| !is_keyed) {
            return Err(format!(
                "--keys {keys}: no property of the specification has `for each`, so that there are no keys: leave --keys out"
            ));
        }
        if self.recording.is_some() {
            return Ok(());
        }
        if self.rate.is_none() {
            return Err(
                "without a recording, whose rate would be taken, --rate N is needed: messages per second"
                    .to_owned(),
            );
        }
        if is_keyed && self.keys.is_none() {
            return Err(
                "the specification has `for each`: without a recording, whose keys would be counted, --keys N is needed"
                    .to_owned(),
            );
        }
        Ok(())
    }

    /// The messages to measure with, and their origin.
    fn sample(
        &self,
        specification: &Specification,
        plan: SessionPlan,
        is_keyed: bool,
    ) -> Result<(Sample, Source), (String, u8)> {
        let Some(recording) = &self.recording else {
            let keys = self.keys.unwrap_or(1).clamp(FEWEST_KEYS, MOST_KEYS).min(self.messages / ROUNDS);
            let keys = if is_keyed { keys } else { 1 };
            let (sample, missing) = synthetic::sample(plan, keys, ROUNDS.max(2 * FEWEST_MESSAGES / keys));
            report_missing(&missing);
            if sample.messages.is_empty() {
                return Err((
                    "the properties read no topic: there is nothing to measure".to_owned(),
                    exit::USAGE,
                ));
            }
            return Ok((sample, Source { recording: None, keys, is_timed: false, misordered: 0 }));
        };
        let check = Check::of_recording(&self.specification, recording);
        let most = usize::try_from(self.messages).unwrap_or(usize::MAX);
        let sample = check.sample(specification, plan, most)?;
        let name = shown(recording);
        let count = sample.messages.len() as u64;
        if count < FEWEST_MESSAGES {
            let messages = counted(count, "message", "messages");
            let sentence = format!(
                "{name} has {messages} on topics of the specification; a statement needs at least {}: name a longer \
                 recording, or none, to measure with synthetic messages",
                grouped(FEWEST_MESSAGES)
            );
            return Err((sentence, exit::USAGE));
        }
        if sample.is_part {
            warn(&format!("{name}: measured with its first {} messages", grouped(count)));
        }
        let (keys, is_timed) = {
            let workload = Workload::new(&sample);
            (if is_keyed { workload.keys() } else { 1 }, workload.is_timed)
        };
        if keys == 0 {
            let sentence =
                format!("{name}: no message has the parameters of `for each`, so that no key can be counted");
            return Err((sentence, exit::USAGE));
        }
        if !is_timed && self.rate.is_none() {
            let sentence = format!(
                "{name}: its messages have no times, or all the same, and so no rate: add --rate N, messages per second"
            );
            return Err((sentence, exit::USAGE));
        }
        let misordered = sample.misordered;
        Ok((sample, Source { recording: Some(name), keys, is_timed, misordered }))
    }

    /// Sentence about a horizon beyond the bounds of the specification.
    fn horizon_note(&self, horizon: Horizon) -> Option<String> {
        let wanted = self.horizon.filter(|wanted| *wanted > horizon.ns)?;
        let longest = match horizon.ns {
            0 => "a time: there are no windows to fill".to_owned(),
            ns => format!("more than {}, for which windows are filled", duration(ns)),
        };
        Some(format!("--horizon {}: no property remembers {longest}", duration(wanted)))
    }

    /// Measures the messages, and plans.
    fn measured(
        &self,
        sample: &Sample,
        source: Source,
        spec: &Spec,
        base_bytes: f64,
    ) -> Result<Report, (String, u8)> {
        let failed = |sentence: String| (sentence, exit::USAGE);
        let workload = Workload::new(sample);
        let rate = self.rate.unwrap_or_else(|| workload.rate());
        let load = Load {
            rate,
            keys: self.keys.unwrap_or(source.keys),
            process_bytes: self.memory.unwrap_or(PROCESS_BYTES) as f64,
        };
        let bounds = Horizon::of(spec);
        let horizon = self.horizon.map_or(bounds, |ns| bounds.with_time(ns));
        let cost = workload.cost(source.keys, load.rate_of_key()).map_err(failed)?;
        let is_keyed = spec.properties.iter().any(|property| property.slice.is_some());
        let has_enough_keys = !is_keyed || source.keys >= FEWEST_KEYS;
        let empty = workload.empty().map_err(failed)?;
        let fills = match has_enough_keys {
            true => workload
                .fills(source.keys, load.rate_of_key(), horizon, self.messages, &empty)
                .map_err(failed)?,
            false => Vec::new(),
        };
        let figures = Figures {
            decode_ns: cost.decode_ns,
            evaluate_ns: cost.evaluate_ns,
            base_bytes,
            state: has_enough_keys.then(|| measure::state_figures(&fills, &empty, source.keys)),
            is_divisible: spec.properties.iter().all(|property| property.slice.is_some()),
            has_named_keys: has_named_keys(spec),
        };
        let plan = Plan::new(&figures, load);
        let mut notes = notes(spec, &source, load, horizon, &cost, &fills, is_keyed);
        notes.extend(limit_note(&plan).filter(|_| is_keyed));
        notes.extend(self.horizon_note(horizon));
        let fleets: &[u64] = if is_keyed { &FLEETS } else { &[] };
        let fleets = fleets.iter().map(|keys| Plan::new(&figures, load.of_keys(*keys))).collect();
        Ok(Report {
            source,
            messages: workload.count(),
            sample_rate: workload.rate(),
            is_keyed,
            horizon,
            cost,
            fills,
            figures,
            plan,
            fleets,
            notes,
        })
    }
}

/// Warns of fields that synthetic messages lack.
fn report_missing(missing: &BTreeSet<String>) {
    if !missing.is_empty() {
        let names = missing.iter().take(10).cloned().collect::<Vec<_>>().join(", ");
        warn(&format!(
            "synthetic messages lack elements of arrays that have a name ({names}): name a recording to measure these"
        ));
    }
}

/// Whether a parameter of `for each` is a part of an address.
fn has_named_keys(spec: &Spec) -> bool {
    let keys = spec.slices.iter().flat_map(|slice| &slice.keys);
    keys.flat_map(|key| &key.fields).any(|(topic, path)| measure::is_named(spec, *topic, path))
}

/// Topics whose messages concern every instance, since they do not have the key.
fn shared_topics(spec: &Spec) -> BTreeSet<&str> {
    let mut names = BTreeSet::new();
    for property in &spec.properties {
        let Some(slice) = property.slice.and_then(|slice| spec.slices.get(slice.0 as usize)) else {
            continue;
        };
        for topic in spec.topics_of_property(property) {
            let has_key = slice.keys.iter().any(|key| key.fields.iter().any(|(of, _)| *of == topic));
            let declared = spec.declared().get(topic.index());
            if let Some(declared) = declared.filter(|_| !has_key) {
                names.insert(declared.name.as_str());
            }
        }
    }
    names
}

/// Sentences about the limits of the measurement.
fn notes(
    spec: &Spec,
    source: &Source,
    load: Load,
    horizon: Horizon,
    cost: &Cost,
    fills: &[Fill],
    is_keyed: bool,
) -> Vec<String> {
    let mut notes = Vec::new();
    if cfg!(debug_assertions) {
        notes.push(
            "this program is built without optimisations: figures of a release build are far lower"
                .to_owned(),
        );
    }
    notes.push(
        "networks and sinks are not measured; a process should need at most half a core for messages"
            .to_owned(),
    );
    notes.extend(notes_of_source(source));
    if cost.undecodable > 0 {
        let messages = counted(cost.undecodable, "message", "messages");
        notes.push(format!("{messages} of {} could not be decoded", grouped(cost.messages)));
    }
    if is_keyed && fills.is_empty() {
        notes.push(format!(
            "there are {} in the messages, fewer than {FEWEST_KEYS}: memory, snapshots and recovery are not stated",
            counted(source.keys, "key", "keys")
        ));
    }
    if is_keyed && load.keys > source.keys {
        notes.push(format!(
            "{} keys were measured: the cost of a message with {} keys is higher where their state exceeds the caches",
            grouped(source.keys),
            grouped(load.keys)
        ));
    }
    if !is_keyed {
        notes.push("the state in memory is taken to be as large as that in a snapshot".to_owned());
    }
    if let Some(last) = fills.last() {
        let wanted = load.rate_of_key();
        if last.rate < wanted * 0.999 {
            let seconds = horizon.ns as f64 / 1e9;
            notes.push(format!(
                "the state is extrapolated linearly from {:.4} to {wanted:.4} messages/s of a key{}: windows of {seconds} s \
                 would need {} messages, more than --messages",
                last.rate,
                if last.rate * FARTHEST < wanted { ", and is unreliable" } else { "" },
                grouped((wanted * source.keys as f64 * seconds) as u64)
            ));
        }
        if is_keyed && last.snapshot_bytes < SMALLEST_STATE {
            notes.push(format!(
                "times of snapshots and recoveries are extrapolated from a state of {}, and are unreliable: measure more keys",
                bytes_text(last.snapshot_bytes)
            ));
        }
        if fills.iter().any(|fill| !fill.is_full) {
            notes.push(
                "the messages do not last as long as properties remember: windows were not full".to_owned(),
            );
        }
    }
    notes.extend(notes_of_specification(spec));
    notes
}

/// Sentences about the messages.
fn notes_of_source(source: &Source) -> Vec<String> {
    let mut notes = Vec::new();
    if source.recording.is_none() {
        notes.push(
            "the values are random: verdicts, and with them the state, may differ from those of the fleet"
                .to_owned(),
        );
    }
    if source.recording.is_some() && !source.is_timed {
        notes.push("the messages have no times, or all the same: they are spread evenly".to_owned());
    }
    if source.misordered > 0 {
        notes.push(format!(
            "{} older than one before in the recording: messages are measured in the order of their times",
            counted(source.misordered, "message is", "messages are")
        ));
    }
    notes
}

/// Sentences about properties that cannot be divided by the key alone.
fn notes_of_specification(spec: &Spec) -> Vec<String> {
    let mut notes = Vec::new();
    let shared = shared_topics(spec);
    if !shared.is_empty() {
        let names = shared.into_iter().collect::<Vec<_>>().join(", ");
        notes.push(format!(
            "messages on {names} have no key and concern every instance: their cost grows with the number of keys, and each \
             process needs them"
        ));
    }
    let parameters: BTreeSet<BTreeSet<&Path>> = spec.slices.iter().map(fields_of).collect();
    if parameters.len() > 1 {
        notes.push(
            "the properties have different parameters: to divide the load, put those of each parameter into a specification of \
             its own"
                .to_owned(),
        );
    }
    notes
}

/// Sentence about the limit of instances, if the plan exceeds the default.
fn limit_note(plan: &Plan) -> Option<String> {
    let of_process = plan.state?.state_bytes / plan.processes.max(1) as f64;
    (of_process > INSTANCE_BYTES as f64).then(|| {
        format!(
            "the state of a process needs {}: raise `limits.instances` of the deployment, which is {} by default",
            bytes_text(of_process),
            size(INSTANCE_BYTES)
        )
    })
}

/// The fields of the parameters, without their topics: topics name the same key alike.
fn fields_of(slice: &Slice) -> BTreeSet<&Path> {
    slice.keys.iter().flat_map(|key| key.fields.iter().map(|(_, path)| path)).collect()
}

/// Resident memory of this process in bytes; 0 where the system does not say.
fn resident_bytes() -> f64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    let kilobytes = line.and_then(|rest| rest.split_whitespace().next()?.parse::<f64>().ok());
    kilobytes.unwrap_or(0.0) * 1024.0
}
