//! Deployments: the networks, topics and sinks of a specification, from `rondel.yaml` or from arguments.

mod alignment;
mod dds_security;
mod durability;
mod events;
mod heartbeat;
mod limits;
mod mqtt;
mod networks;
mod overview;
mod places;
mod qos;
mod record;
mod reset;
mod schema;
mod simulated_time;
mod slow_consumer;
mod sources;
mod types;
mod verdicts;
mod yaml;

use std::path::{Path, PathBuf};
use std::time::Duration;

use clap::ValueEnum;
use rondel_event::{Path as FieldPath, TimeUnit};
pub use rondel_net::address::{Address, Encoding, returns, spread};
use rondel_runtime::{Alignment, Blind, Emit, Input, Options, Reset, SessionPlan, TimeSource};
use rondel_spec::Spec;

use crate::networks::NetworkSettings;
use crate::recorder::FlightSettings;
use crate::specification::{Reading, Specification, Syntax, TimeModel, read_text};
use crate::spool::SpoolSettings;
pub use alignment::{Section as AlignmentSection, nanoseconds};
use alignment::{TopicSettings, alignment, duration};
pub use durability::Durability;
use durability::durability;
pub use events::{Unheard, unheard};
pub use heartbeat::Heartbeat;
use heartbeat::heartbeat;
use limits::limits;
pub use limits::{Limits, bytes, resend};
use mqtt::mqtt_settings;
pub use networks::lease;
use networks::{dds_settings, ros2_settings, zenoh_settings};
use places::{Place, Role};
use record::record;
use reset::reset;
pub use schema::check_time_field;
pub use slow_consumer::{WAIT as SLOW_CONSUMER_WAIT, slow_consumer_wait};
use slow_consumer::{check_spool, slow_consumer};
use sources::{Source, sources};
pub use types::{Typing, dds_name, has_key};
pub use verdicts::check_emit;
use verdicts::sinks;
pub use yaml::Mistake;
use yaml::{Item, Mistakes, Synonyms};

/// Names that people write for sections of a deployment.
const SECTIONS: Synonyms = &[
    (&["sinks", "sink", "output", "outputs", "publish", "verdict"], "write `verdicts`"),
    (&["sources", "source", "inputs", "input", "subscribe", "topic"], "write `topics`"),
    (&["spec", "file"], "write `specification`"),
    (&["property", "properties"], "write `formula: FORMULA`, or name a file with `specification:`"),
    (&["broker"], "write `mqtt: { broker: HOST:PORT }`"),
    (&["domain", "domain_id"], "write `dds: { domain: N }`, or `ros2: { domain: N }`"),
    (&["ros", "rmw"], "write `ros2`"),
    (&["connect", "listen", "router"], "write it in the section `zenoh:`"),
    (&["align", "order"], "write `alignment`"),
];

/// Names that people write for settings of a synchronizer.
const SYNCHRONIZE: Synonyms = &[
    (&["publish", "sink", "address", "topic", "output"], "write `to`"),
    (&["policy", "max_wait", "max_interval", "epsilon", "slop"], "write it in the section `alignment:`"),
];

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
    /// Of a synchronizer: the sinks of ordered messages.
    pub synchronized: Option<Vec<Address>>,
    /// The verdicts to publish.
    pub emit: Emit,
    /// The sinks of the verdicts of each property, in the order of the properties.
    pub sinks: Vec<Vec<Address>>,
    /// How long a consumer that accepts nothing is waited for.
    pub slow_consumer: Duration,
    /// Where verdicts are kept that consumers did not accept in time; `None` where they are dropped.
    pub spool: Option<SpoolSettings>,
    /// How often the state of the run is published, and where.
    pub heartbeat: Option<Heartbeat>,
    /// What is recorded around violations.
    pub record: Option<FlightSettings>,
    /// Whether to exit when a network cannot be reached.
    pub exit_on_unreachable: bool,
    /// How long after the start missing topics and fields are reported, in nanoseconds; `None` for never.
    pub missing_after: Option<i64>,
    /// The section `limits:`.
    pub limits: Limits,
    /// What a crash may cost; by default what the options of the run say.
    pub durability: Option<Durability>,
    /// Whether verdicts carry ids.
    pub ids: bool,
    /// What becomes of verdicts that depend on messages that were not seen.
    pub blind: Blind,
    /// What is done when times begin anew.
    pub reset: Reset,
    /// The topic `/clock` of ROS 2, if its time is that of the run.
    pub clock: Option<Address>,
}

/// From which length on, in nanoseconds, a time in which the monitor did not run is reported. What the scheduler of a
/// busy machine delays is shorter; a shorter pause counts as time that messages were on their way.
const PAUSED_AFTER: i64 = 500_000_000;

/// The usual [`Deployment::missing_after`].
pub const MISSING_AFTER: i64 = 10_000_000_000;

/// The source of a topic, and how its messages are read.
#[derive(Clone, Debug)]
pub struct Binding {
    /// The address.
    pub address: Address,
    /// How its messages are read.
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
    /// Returns all addresses that it reads or publishes on.
    pub fn addresses(&self) -> impl Iterator<Item = &Address> + Clone {
        let sources = self.sources.iter().map(|binding| &binding.address);
        sources.chain(&self.alignment.progress).chain(&self.clock).chain(self.outlets())
    }

    /// Returns the addresses of verdicts, sets, reports and the state of the run.
    pub fn outlets(&self) -> impl Iterator<Item = &Address> + Clone {
        let synchronized = self.synchronized.iter().flatten();
        let state = self.heartbeat.iter().flat_map(|heartbeat| &heartbeat.to);
        self.sinks.iter().flatten().chain(synchronized).chain(&self.alignment.reports).chain(state)
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
        let options = Options {
            inputs,
            alignment,
            emit: self.emit,
            largest_message,
            instance_bytes,
            exactly,
            ids: self.ids || exactly,
            blind: self.blind,
            reset: self.reset,
            // Live they come from publishers, in recordings beside the messages; lines need none.
            types_later: true,
            // A recording has the pauses of whoever recorded it.
            // A simulation notices by itself that the process did not run.
            paused_after: (options.live && self.clock.is_none()).then_some(PAUSED_AFTER),
            ..options
        };
        match &self.synchronized {
            Some(_) => SessionPlan::synchronizer(self.specification.checked(), options),
            None => SessionPlan::of(self.specification.checked(), options),
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

    /// Reads as [`from_file`](Deployment::from_file), and also shows what only the user can check.
    ///
    /// # Errors
    /// The same.
    pub fn validate(path: &Path) -> Result<Deployment, Refused> {
        Deployment::read(path, true, &[])
    }

    fn read(path: &Path, doubts: bool, recordings: &[PathBuf]) -> Result<Deployment, Refused> {
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
        let Mistakes { mut errors, mut warnings, doubts: mut doubtful } = mistakes;
        if doubts {
            warnings.append(&mut doubtful);
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
            Some(deployment) if errors.is_empty() => Ok(deployment),
            _ => Err(Refused),
        }
    }
}

fn deployment(
    root: Item<'_>,
    folder: &Path,
    recordings: &[PathBuf],
    mistakes: &mut Mistakes,
) -> Option<Deployment> {
    let mut members = root.members("the deployment", mistakes);
    let file = members.get("specification");
    let formula = members.get("formula");
    let (syntax, time) = (members.get("syntax"), members.get("time"));
    let schemas = members.get("schemas").map_or_else(Vec::new, |item| item.items());
    let schemas =
        schemas.iter().filter_map(|item| Some(folder.join(item.text("schemas", mistakes)?))).collect();
    let zenoh_item = members.get("zenoh");
    let dds_item = members.get("dds");
    let mqtt_item = members.get("mqtt");
    let ros2_item = members.get("ros2");
    let topics = members.get("topics");
    let verdicts = members.get("verdicts");
    let alignment_item = members.get("alignment");
    let synchronize_item = members.get("synchronize");
    let unreachable = members.get("exit_on_unreachable");
    let missing_item = members.get("missing_after");
    let limits_item = members.get("limits");
    let slow_consumer_item = members.get("slow_consumer");
    let heartbeat_item = members.get("heartbeat");
    let durability_item = members.get("durability");
    let ids_item = members.get("ids");
    let ids = ids_item.and_then(|item| item.boolean("ids", mistakes)).unwrap_or(false);
    let blind_item = members.get("blind");
    let reset = members.get("reset").map_or_else(Reset::default, |item| reset(item, mistakes));
    let record_item = members.get("record");
    members.finish(SECTIONS, mistakes);

    let specification = match synchronize_item {
        None => {
            let types = (schemas, recordings);
            specification(root, file, formula, (syntax, time), types, folder, mistakes)
        }
        Some(item) => {
            if file.or(formula).is_some() {
                mistakes.at(item, "use either `synchronize:` or `specification:` (or `formula:`), not both: a synchronizer checks nothing");
            }
            let names = topics.map_or_else(Vec::new, |item| item.entries("topics", &mut Mistakes::default()));
            if names.is_empty() {
                mistakes.at(item, "nothing to synchronize: name the source of each topic under `topics:`");
            }
            Specification::of_topics(names.into_iter().map(|(name, ..)| name)).ok()
        }
    };
    let ros2 = ros2_item.and_then(|item| ros2_settings(item, mistakes));
    let (ros2, clock) = ros2.map_or((None, None), |(settings, clock)| (Some(settings), clock));
    let mut networks = NetworkSettings {
        zenoh: zenoh_item.map(|item| zenoh_settings(item, folder, mistakes)),
        dds: dds_item
            .map(|item| dds_settings(item, (folder, ros2.as_ref()), recordings.is_empty(), mistakes)),
        mqtt: mqtt_item.map(|item| mqtt_settings(item, folder, mistakes)),
        ros2: ros2.map(Ok),
    };
    let (slow_consumer, spool) = slow_consumer(slow_consumer_item, folder, mistakes);
    // Whoever checks a recording writes none.
    let record = record_item.and_then(|item| record(item, folder, mistakes));
    if let (Some(item), Some(_)) = (record_item, synchronize_item) {
        mistakes.at(item, "a synchronizer has no violations to record: leave `record` out");
    }
    let exit_on_unreachable =
        unreachable.and_then(|item| item.boolean("exit_on_unreachable", mistakes)).unwrap_or(false);
    let missing_after = match missing_item {
        None => Some(MISSING_AFTER),
        Some(item) => match item.text("missing_after", mistakes).as_deref() {
            Some("never") | None => None,
            Some(_) => duration(item, ("missing_after", "10 s", " or `never`"), mistakes),
        },
    };
    let blind = blind_item.and_then(|item| Some((item, item.text("blind", mistakes)?)));
    let blind = match blind.as_ref().map(|(item, text)| (*item, text.as_str())) {
        None | Some((_, "inconclusive")) => Blind::Inconclusive,
        Some((_, "report")) => Blind::Report,
        Some((item, _)) => {
            mistakes.at(item, "`blind` must be inconclusive or report");
            Blind::Report
        }
    };
    // Without a specification the other sections are still checked as far as possible.
    let empty = Spec::default();
    let spec = specification.as_ref().map(|s| &*s.spec);
    let bindings = sources(root, topics, specification.as_ref(), &networks, mistakes);
    let (section, alignment_places) = match alignment_item.map(|item| alignment(item, mistakes)) {
        Some((section, settings, places)) => (Some((section, settings)), places),
        None => (None, Vec::new()),
    };
    let clock_place = |address| Place::new(Role::Clock, "`use_sim_time`", address, root);
    let mut places: Vec<Place<'_>> = clock.iter().map(clock_place).collect();
    let (mut sources, mut items) = (Vec::new(), Vec::new());
    let mut topic_settings: Vec<TopicSettings> = Vec::new();
    for Source { name, item, binding, settings } in bindings {
        places.push(Place::new(Role::Source, &format!("topic '{name}'"), &binding.address, item));
        sources.push(binding);
        items.push(item);
        topic_settings.push(settings);
    }
    places.extend(alignment_places);
    if let Some(spec) = spec.filter(|spec| spec.declared().len() == sources.len()) {
        for Unheard { topic, text, misleads } in unheard(spec, &sources) {
            let place = items.get(topic.index()).copied().unwrap_or(root);
            if misleads { mistakes.at(place, text) } else { mistakes.warn(place, text) }
        }
    }
    let inputs: Vec<Input> = sources.iter().map(|binding| binding.input.clone()).collect();
    let mut alignment = AlignmentSection::complete(section, &topic_settings, &inputs);
    if clock.is_some() {
        simulated_time::check(&inputs, &items, (durability_item, ids_item), mistakes);
        simulated_time::limit(&mut alignment.alignment);
    }
    if let Some(topic) = alignment.never_certain() {
        let name = spec.and_then(|spec| spec.topics.get(topic.index())).map_or("", |topic| &topic.name);
        let place = alignment_item.or(topics).unwrap_or(root);
        mistakes.at(
            place,
            format!(
                "topic '{name}' could never be checked: with `in_order: false` and `max_wait: none`, only \
                 progress markers show that no earlier message follows; set `progress`, or a duration as `max_wait`"
            ),
        );
    }
    let synchronized = synchronize_item.map(|item| synchronize(item, &mut places, mistakes));
    let (emit, sinks) = sinks(verdicts, spec, &mut places, mistakes);
    let heartbeat = heartbeat_item.and_then(|item| heartbeat(item, &sinks, &mut places, mistakes));
    places::check(&places, mistakes);
    let durability = durability_item.and_then(|item| durability(item, mistakes));
    if let (Some(item), Some(Durability::Exactly(_))) = (durability_item, durability) {
        durability::check(item, (spec.unwrap_or(&empty), &sources), &networks, mistakes);
    }
    let mut deployment = Deployment {
        specification: specification?,
        networks: NetworkSettings::default(),
        sources,
        alignment,
        synchronized,
        emit,
        sinks,
        slow_consumer,
        spool,
        heartbeat,
        record,
        exit_on_unreachable,
        missing_after,
        limits: limits_item.map(|item| limits(item, mistakes)).unwrap_or_default(),
        durability,
        ids,
        blind,
        reset,
        clock,
    };
    deployment.addresses().for_each(|address| networks.need(address));
    if let (Some(Ok(_)), Err(error)) = (&networks.ros2, networks.check_ros2()) {
        mistakes.at(ros2_item.or(dds_item).unwrap_or(root), error.to_string());
    }
    if let Some(Ok(ros2)) = &networks.ros2 {
        let sources = deployment.sources.iter_mut().map(|binding| &mut binding.address);
        sources
            .chain(deployment.sinks.iter_mut().flatten())
            .chain(deployment.heartbeat.iter_mut().flat_map(|heartbeat| &mut heartbeat.to))
            .chain(&mut deployment.clock)
            .for_each(|address| address.join_ros2(ros2));
    }
    let keeps = |spool: &SpoolSettings| deployment.outlets().any(|sink| spool.keeps(sink));
    if deployment.spool.as_ref().is_some_and(|spool| spool.is_default && !keeps(spool)) {
        deployment.spool = None;
    }
    if let Some(item) = slow_consumer_item {
        check_spool(item, &deployment, mistakes);
    }
    networks.limit_slow_consumers(slow_consumer);
    networks.resend(deployment.limits.resend);
    deployment.networks = networks;
    Some(deployment)
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

fn specification(
    root: Item<'_>,
    file: Option<Item<'_>>,
    formula: Option<Item<'_>>,
    (syntax, time): (Option<Item<'_>>, Option<Item<'_>>),
    (schemas, recordings): (Vec<PathBuf>, &[PathBuf]),
    folder: &Path,
    mistakes: &mut Mistakes,
) -> Option<Specification> {
    let syntax = match syntax.map(|item| (item, item.text("syntax", mistakes))) {
        None => Syntax::Rondel,
        Some((_, Some(text))) if text == "rondel" => Syntax::Rondel,
        Some((_, Some(text))) if text == "rye" => Syntax::Rye,
        Some((item, text)) => {
            if text.is_some() {
                mistakes.at(item, "`syntax` must be rondel or rye");
            }
            Syntax::Rondel
        }
    };
    let time = time.and_then(|item| {
        let text = item.text("time", mistakes)?;
        let model = TimeModel::from_str(&text, false);
        model.map_err(|_| mistakes.at(item, "`time` must be steps, points, dense or linear")).ok()
    });
    let reading = &Reading { syntax, time, unbounded: false, schemas, recordings: recordings.to_owned() };
    match (file, formula) {
        (Some(item), Some(_)) => {
            mistakes.at(item, "use either `specification:` or `formula:`, not both");
            None
        }
        (None, None) => {
            mistakes.at(
                root,
                "nothing to check: name a file with `specification:`, or write a formula with `formula:`",
            );
            None
        }
        (Some(item), None) => {
            let path = folder.join(item.text("specification", mistakes)?);
            let loaded = Specification::from_file(&path, reading);
            loaded
                .map_err(|_| {
                    mistakes.at(item, format!("the specification {} cannot be used", path.display()))
                })
                .ok()
        }
        (None, Some(item)) => {
            let text = item.text("formula", mistakes)?;
            let loaded = Specification::from_formula(&text, reading);
            loaded.map_err(|_| mistakes.at(item, "the formula cannot be used")).ok()
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
