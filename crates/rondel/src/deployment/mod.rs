//! Deployments: the networks, topics and sinks of a specification, from `rondel.yaml` or from arguments.

mod actions;
mod alignment;
mod audit;
mod choice;
mod consumer_group;
mod dds_security;
mod durability;
mod events;
mod foxglove;
mod gates;
mod group;
mod heartbeat;
mod kafka;
mod limits;
mod metrics;
mod mqtt;
mod networks;
mod overview;
mod page;
mod places;
mod qos;
mod reading;
mod record;
mod registry;
mod reload;
mod reset;
mod schema;
mod simulated_time;
mod sinks;
mod slow_consumer;
mod sources;
mod store;
mod types;
mod verdicts;
mod workers;
mod yaml;

use std::path::{Path, PathBuf};
use std::time::Duration;

use rondel_event::{Path as FieldPath, TimeUnit};
pub use rondel_net::address::{Address, Encoding, returns, spread};
use rondel_net::networks::NetworkSettings;
use rondel_runtime::{Alignment, Blind, Emit, Input, Options, Reset, SessionPlan, TimeSource};

use crate::schemas::text_files::read_text;
use crate::sinks::actions::ActionSettings;
use crate::sinks::audit::AuditSettings;
use crate::sinks::driven::{SinkSettings, StoreSettings};
use crate::sinks::spool::SpoolSettings;
use crate::specification::Specification;
pub use actions::check_actions;
pub use alignment::{AlignmentSection, nanoseconds};
pub use consumer_group::{UNDIVIDABLE, undividable};
pub use durability::Durability;
pub use events::{Unheard, unheard};
pub use foxglove::FoxgloveSettings;
#[cfg(test)]
pub use gates::Message;
pub use gates::{GateSettings, Substitute, WhenBlind};
pub use group::{GroupSettings, LEASES, PREFER, set_delivery};
pub use heartbeat::Heartbeat;
pub use limits::{Limits, bytes, bytes_up_to, resend};
pub use metrics::{MetricsSettings, PushSettings, listen_address};
pub use networks::lease;
pub use page::{PageSettings, ServerTlsFiles, Token, page_address};
use reading::deployment;
pub use record::FlightSettings;
pub use reload::{further_network, unchangeable};
pub use schema::check_time_field;
pub use sinks::{NEVER_END, lacks_ends};
pub use slow_consumer::{SLOW_CONSUMER_WAIT, slow_consumer_wait};
pub use types::{Typing, dds_name, has_key};
pub use verdicts::check_emit;
pub use workers::{divide, workers};
pub use yaml::Mistake;
use yaml::{Item, Mistakes};

/// A checked deployment: everything that `rondel run` needs to start.
#[derive(Debug)]
pub struct Deployment {
    /// The specification.
    pub specification: Specification,
    /// The settings of the networks that a topic or sink is on.
    pub networks: NetworkSettings,
    /// The source of each topic of the specification, in its order.
    pub sources: Vec<Binding>,
    /// The section `alignment:`.
    pub alignment: AlignmentSection,
    /// The sinks of ordered messages, of a synchronizer.
    pub synchronized: Option<Vec<Address>>,
    /// The verdicts to publish.
    pub emit: Emit,
    /// The sinks of the verdicts of each property, in the order of the properties.
    pub sinks: Vec<Vec<Address>>,
    /// Time limit for a consumer that accepts nothing.
    pub slow_consumer: Duration,
    /// Files for verdicts that consumers did not accept in time; `None` where these are dropped.
    pub spool: Option<SpoolSettings>,
    /// Publishing of the state of the run.
    pub heartbeat: Option<Heartbeat>,
    /// Gates, which pass messages on while properties hold.
    pub gates: Vec<GateSettings>,
    /// The group whose members stand by for each other.
    pub group: Option<GroupSettings>,
    /// Recording around violations.
    pub record: Option<FlightSettings>,
    /// The audit file.
    pub audit: Option<AuditSettings>,
    /// The name and the text of the file that it was read from, if it was.
    pub text: Option<(String, String)>,
    /// Serving and pushing of metrics.
    pub metrics: Option<MetricsSettings>,
    /// Serving of the page.
    pub page: Option<PageSettings>,
    /// Serving of Foxglove.
    pub foxglove: Option<FoxgloveSettings>,
    /// The store of verdicts.
    pub store: Option<StoreSettings>,
    /// Further sinks beside networks, of the section `sinks:`.
    pub driven: Vec<SinkSettings>,
    /// Actions on verdicts.
    pub actions: Vec<ActionSettings>,
    /// Whether to exit when a network cannot be reached.
    pub exit_on_unreachable: bool,
    /// Time after the start at which missing topics and fields are reported, in nanoseconds; `None` for never.
    pub missing_after: Option<i64>,
    /// The section `limits:`.
    pub limits: Limits,
    /// Messages that a crash may lose; `None` where the options of the run decide.
    pub durability: Option<Durability>,
    /// Whether verdicts carry ids.
    pub ids: bool,
    /// Treatment of verdicts that depend on missed messages.
    pub blind: Blind,
    /// Reaction to times that restart.
    pub reset: Reset,
    /// The topic `/clock` of ROS 2, if it sets the time of the run.
    pub clock: Option<Address>,
    /// Whether the run reloads when its files change.
    pub watch: bool,
    /// Number of threads that evaluate messages beside those that receive them; `None` where it is not set.
    pub workers: Option<usize>,
}

/// Minimum length of a reported pause of the monitor, in nanoseconds. Scheduling delays on a busy machine are shorter;
/// a shorter pause counts as transport delay of messages.
const PAUSED_AFTER: i64 = 500_000_000;

/// The usual [`Deployment::missing_after`].
pub const MISSING_AFTER: i64 = 10_000_000_000;

/// The source of a topic, and how its messages are read.
#[derive(Clone, Debug)]
pub struct Binding {
    /// The address.
    pub address: Address,
    /// Decoding of its messages.
    pub input: Input,
}

/// Reads the source of times: `arrival`, `source` or a field.
pub fn time_source(text: &str) -> TimeSource {
    match text {
        "arrival" => TimeSource::Arrival,
        "source" => TimeSource::Source,
        field => TimeSource::Field(FieldPath::keys(field.split('.'))),
    }
}

/// Reads a unit of time.
pub fn time_unit(text: &str) -> Option<TimeUnit> {
    match text {
        "s" => Some(TimeUnit::Seconds),
        "ms" => Some(TimeUnit::Milliseconds),
        "us" => Some(TimeUnit::Microseconds),
        "ns" => Some(TimeUnit::Nanoseconds),
        _ => None,
    }
}

/// The deployment cannot be used; the reasons have been shown.
#[derive(Debug)]
pub struct Refused;

impl Deployment {
    /// A deployment with these sources, aligned by default, and nothing else: nothing is published.
    pub fn of(specification: Specification, networks: NetworkSettings, sources: Vec<Binding>) -> Deployment {
        let inputs: Vec<Input> = sources.iter().map(|binding| binding.input.clone()).collect();
        Deployment {
            networks,
            sources,
            alignment: AlignmentSection::by_default(&inputs),
            synchronized: None,
            emit: Emit::Change,
            sinks: vec![Vec::new(); specification.program.properties().len()],
            slow_consumer: SLOW_CONSUMER_WAIT,
            spool: None,
            heartbeat: None,
            gates: Vec::new(),
            group: None,
            record: None,
            audit: None,
            text: None,
            metrics: None,
            page: None,
            foxglove: None,
            store: None,
            driven: Vec::new(),
            actions: Vec::new(),
            exit_on_unreachable: true,
            missing_after: None,
            limits: Limits::default(),
            durability: None,
            ids: false,
            blind: Blind::default(),
            reset: Reset::default(),
            clock: None,
            watch: false,
            workers: None,
            specification,
        }
    }

    /// Returns the consumer group of Kafka that it joins, if there is one.
    pub fn consumer_group(&self) -> Option<&rondel_net::kafka::Group> {
        self.networks.kafka.as_ref()?.group.as_ref()
    }

    /// Returns all addresses that it reads or publishes on.
    pub fn addresses(&self) -> impl Iterator<Item = &Address> + Clone {
        let sources = self.sources.iter().map(|binding| &binding.address);
        let gates = self.gates.iter().map(|gate| &gate.to);
        let actions = self.actions.iter().filter_map(ActionSettings::address);
        let read = sources.chain(&self.alignment.progress).chain(&self.clock);
        let group = self.group.iter().map(|group| &group.address);
        read.chain(self.sink_addresses()).chain(gates).chain(actions).chain(group)
    }

    /// Returns the addresses of all sinks: of verdicts, sets, reports and the state of the run.
    pub fn sink_addresses(&self) -> impl Iterator<Item = &Address> + Clone {
        let synchronized = self.synchronized.iter().flatten();
        let state = self.heartbeat.iter().flat_map(|heartbeat| &heartbeat.to);
        self.sinks.iter().flatten().chain(synchronized).chain(&self.alignment.reports).chain(state)
    }

    /// Returns the settings of files for the store and other sinks beside networks.
    pub fn driven_spools(&self) -> impl Iterator<Item = &SpoolSettings> {
        let store = self.store.iter().filter_map(|store| store.spool.as_ref());
        store.chain(self.driven.iter().filter_map(|sink| sink.spool.as_ref()))
    }

    /// Whether verdicts go to the store or other sinks beside networks, which recognise repeated ones by their ids. A
    /// simulation may restart, and has no ids.
    fn identifies(&self) -> bool {
        (self.store.is_some() || !self.driven.is_empty()) && self.clock.is_none()
    }

    /// Returns how the messages of each topic are read.
    pub fn inputs(&self) -> Vec<Input> {
        let input = |binding: &Binding| {
            let address = binding.address.to_string();
            let name = address.split_once(':').map_or(address.as_str(), |(_, name)| name);
            Input { address: Some(name.to_owned()), ..binding.input.clone() }
        };
        self.sources.iter().map(input).collect()
    }

    /// A plan for sessions of this deployment: its topics, times and alignment, and these options for the
    /// rest.
    pub fn plan(&self, options: Options) -> SessionPlan {
        let Limits { message: largest_message, instances: instance_bytes, waiting, .. } = self.limits;
        let (inputs, alignment) = (self.inputs(), Alignment { waiting, ..self.alignment.alignment.clone() });
        let exactly = matches!(self.durability, Some(Durability::Exactly(_)));
        let stored = options.live && self.identifies();
        let options = Options {
            inputs,
            alignment,
            emit: self.emit,
            largest_message,
            instance_bytes,
            exactly,
            ids: options.ids || self.ids || exactly || stored,
            // Members of a group began at different messages.
            ids_by_time: self.group.is_some(),
            blind: self.blind,
            reset: self.reset,
            // Live they come from publishers, in recordings beside the messages; lines need none.
            types_later: true,
            // A recording has the pauses of its recorder.
            // A simulation notices by itself that the process did not run.
            paused_after: (options.live && self.clock.is_none()).then_some(PAUSED_AFTER),
            drops_when_stopped: options.live
                && self.sources.iter().any(|source| matches!(source.address, Address::Mqtt(..))),
            ..options
        };
        match &self.synchronized {
            Some(_) => SessionPlan::synchronizer(self.specification.checked(), options),
            None => SessionPlan::of(self.specification.checked(), options),
        }
    }

    /// Adds standard output to the sinks of the verdicts.
    pub fn print_verdicts(&mut self) {
        for sinks in &mut self.sinks {
            if !sinks.contains(&Address::Stdout) {
                sinks.push(Address::Stdout);
            }
        }
    }

    /// Reads a deployment file and the specification that it names.
    ///
    /// # Errors
    /// [`Refused`], after every mistake in both was shown on standard error.
    pub fn from_file(path: &Path) -> Result<Deployment, Refused> {
        Deployment::read(path, false, &[])
    }

    /// Reads as [`from_file`](Deployment::from_file); the types of messages in these recordings are known too.
    ///
    /// # Errors
    /// The same.
    pub fn for_recordings(path: &Path, recordings: &[PathBuf]) -> Result<Deployment, Refused> {
        Deployment::read(path, false, recordings)
    }

    /// Reads as [`from_file`](Deployment::from_file), and also shows settings that only the user can check.
    ///
    /// # Errors
    /// The same.
    pub fn validate(path: &Path) -> Result<Deployment, Refused> {
        Deployment::read(path, true, &[])
    }

    fn read(path: &Path, with_uncertainties: bool, recordings: &[PathBuf]) -> Result<Deployment, Refused> {
        let name = path.display().to_string();
        let text = read_text(path).map_err(|error| {
            crate::complain(&format!("cannot read the deployment {name}: {error}"));
            Refused
        })?;
        let folder = path.parent().unwrap_or(Path::new(""));
        let mut mistakes = Mistakes::default();
        let read = yaml::with_document(&text, &mut mistakes, |root, mistakes| {
            deployment(root, folder, recordings, mistakes)
        });
        let Mistakes { mut errors, mut warnings, uncertainties: mut uncertain } = mistakes;
        if with_uncertainties {
            warnings.append(&mut uncertain);
        }
        let show = |mistakes: &mut Vec<Mistake>, how: fn(&str)| {
            mistakes.sort_by_key(|m| (m.line, m.column));
            for Mistake { line, column, message } in mistakes.iter() {
                how(&format!("{name}:{line}:{column}: {message}"));
            }
        };
        show(&mut warnings, crate::warn);
        show(&mut errors, crate::complain);
        match read.flatten() {
            Some(deployment) if errors.is_empty() => {
                Ok(Deployment { text: Some((name.clone(), text)), ..deployment })
            }
            _ => Err(Refused),
        }
    }
}

/// Reads the addresses of a setting to publish on, each with its item.
fn addresses<'y>(
    setting: &str,
    item: Item<'y>,
    parse: fn(&str) -> Result<Address, String>,
    mistakes: &mut Mistakes,
) -> Vec<(Address, Item<'y>)> {
    let mut addresses = Vec::new();
    for item in item.items() {
        let Some(text) = item.text(setting, mistakes) else { continue };
        match parse(&text) {
            Ok(address) => addresses.push((address, item)),
            Err(error) => mistakes.at(item, error),
        }
    }
    addresses
}

/// Returns the file that is read when none is named.
pub fn default_file() -> PathBuf {
    PathBuf::from("rondel.yaml")
}
