//! Deployments: the networks, topics and sinks of a specification, from `rondel.yaml` or from arguments.

mod alignment;
mod dds_security;
mod durability;
mod events;
mod limits;
mod mqtt;
mod networks;
mod overview;
mod places;
mod qos;
mod record;
mod schema;
mod simulated_time;
mod slow_consumer;
mod types;
mod yaml;

use std::path::{Path, PathBuf};
use std::time::Duration;

use clap::ValueEnum;
use rondel_event::{Path as FieldPath, TimeUnit};
pub use rondel_net::address::{Address, Encoding, returns, spread};
use rondel_runtime::ros2::DIAGNOSTICS;
use rondel_runtime::{Alignment, Blind, Emit, Input, Options, SessionPlan, TimeSource};
use rondel_spec::{Spec, Topic};

use crate::networks::NetworkSettings;
use crate::recorder::FlightSettings;
use crate::schemas::Schemas;
use crate::specification::{Reading, Specification, Syntax, TimeModel, read_text};
use crate::spool::SpoolSettings;
pub use alignment::{Section as AlignmentSection, nanoseconds};
use alignment::{TopicSettings, alignment, duration};
pub use durability::Durability;
use durability::durability;
pub use events::{Unheard, unheard};
use limits::limits;
pub use limits::{Limits, bytes, resend};
use mqtt::mqtt_settings;
pub use networks::lease;
use networks::{dds_settings, ros2_settings, zenoh_settings};
use places::{Place, Role};
use qos::OfTopic;
use record::record;
pub use schema::check_time_field;
pub use slow_consumer::{WAIT as SLOW_CONSUMER_WAIT, slow_consumer_wait};
use slow_consumer::{check_spool, slow_consumer};
pub use types::{Typing, dds_name, has_key};
pub use yaml::Mistake;
use yaml::{Item, Mistakes, Synonyms, suggest};

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

/// Names that people write for settings of a topic.
const TOPIC: Synonyms = &[
    (&["address", "topic", "from", "key", "name", "url"], "write `source`"),
    (&["timestamp", "stamp", "time_field", "time_from"], "write `time`"),
    (&["unit"], "write `time_unit`"),
    (&["format"], "write `encoding`"),
    (&["message_type", "msg_type", "schema"], "write `type`"),
    (&["retain"], "write `retained`"),
];

/// Names that people write for settings of verdicts.
const VERDICTS: Synonyms = &[
    (&["publish", "sink", "sinks", "address", "topic", "output", "source"], "write `to`"),
    (&["when", "mode"], "write `emit`"),
    (&["property"], "write `properties`"),
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

    /// Returns the addresses of verdicts, sets and reports.
    pub fn outlets(&self) -> impl Iterator<Item = &Address> + Clone {
        let synchronized = self.synchronized.iter().flatten();
        self.sinks.iter().flatten().chain(synchronized).chain(&self.alignment.reports)
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
    let durability_item = members.get("durability");
    let ids_item = members.get("ids");
    let ids = ids_item.and_then(|item| item.boolean("ids", mistakes)).unwrap_or(false);
    let blind_item = members.get("blind");
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
        dds: dds_item.map(|item| dds_settings(item, folder, recordings.is_empty(), mistakes)),
        mqtt: mqtt_item.map(|item| mqtt_settings(item, folder, mistakes)),
        ros2: ros2.map(Ok),
    };
    let (slow_consumer, spool) =
        slow_consumer_item.map_or((SLOW_CONSUMER_WAIT, None), |item| slow_consumer(item, folder, mistakes));
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
        record,
        exit_on_unreachable,
        missing_after,
        limits: limits_item.map(|item| limits(item, mistakes)).unwrap_or_default(),
        durability,
        ids,
        blind,
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
            .chain(&mut deployment.clock)
            .for_each(|address| address.join_ros2(ros2));
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

/// A topic of the specification: where it comes from, and the item that says so.
struct Source<'y> {
    name: String,
    item: Item<'y>,
    binding: Binding,
    settings: TopicSettings,
}

/// The name of the network that addresses without one are on: where exactly one has a section.
fn only_network(networks: &NetworkSettings) -> Option<&'static str> {
    match (&networks.zenoh, &networks.dds, &networks.mqtt) {
        (Some(_), None, None) => Some("zenoh"),
        (None, Some(_), None) => Some("dds"),
        (None, None, Some(_)) => Some("mqtt"),
        (None, None, None) => networks.ros2.as_ref().map(|_| "ros2"),
        _ => None,
    }
}

/// The forms of an address, for messages: of one network, or of all.
fn forms(network: Option<&str>) -> &'static str {
    match network {
        Some("zenoh") => "`zenoh:KEY`",
        Some("dds") => "`dds:TOPIC`",
        Some("mqtt") => "`mqtt:TOPIC`",
        Some("ros2") => "`ros2:/TOPIC`",
        _ => "`zenoh:KEY`, `dds:TOPIC`, `mqtt:TOPIC` or `ros2:/TOPIC`",
    }
}

fn sources<'y>(
    root: Item<'y>,
    topics: Option<Item<'y>>,
    specification: Option<&Specification>,
    networks: &NetworkSettings,
    mistakes: &mut Mistakes,
) -> Vec<Source<'y>> {
    let unread = Schemas::default();
    let schemas = specification.map_or(&unread, |specification| &*specification.schemas);
    let spec = specification.map(|specification| &*specification.spec);
    let entries = topics.map_or_else(Vec::new, |item| item.entries("topics", mistakes));
    let network = only_network(networks);
    let mut bindings = Vec::new();
    for (name, key, item) in &entries {
        let topic = spec.and_then(|spec| spec.topics.iter().find(|t| t.name == *name));
        let binding = binding(*item, topic, network, schemas, mistakes);
        if let (Some(spec), None) = (spec, topic) {
            let names = || spec.declared().iter().map(|t| t.name.as_str());
            let hint = suggest(name, names()).map_or_else(
                || format!("its topics are: {}", names().collect::<Vec<_>>().join(", ")),
                |s| format!("did you mean '{s}'?"),
            );
            mistakes.at(*key, format!("the specification has no topic '{name}'; {hint}"));
        }
        bindings.extend(binding.map(|(binding, settings)| Source {
            name: name.clone(),
            item: *item,
            binding,
            settings,
        }));
    }
    let mut sources = Vec::new();
    for topic in spec.map_or(&[][..], Spec::declared) {
        if let Some(index) = bindings.iter().position(|source| source.name == topic.name) {
            sources.push(bindings.swap_remove(index));
            continue;
        }
        if entries.iter().any(|(name, ..)| *name == topic.name) {
            continue;
        }
        let (name, item) = (topic.name.clone(), topics.unwrap_or(root));
        let Some(network) = network else {
            let forms = forms(None);
            mistakes.at(item, format!("topic '{name}' has no source; add `{name}: ADDRESS` under `topics:`, where ADDRESS is {forms}"));
            continue;
        };
        // With a single network, the address in the specification is the address on this network.
        match Address::parse(&format!("{network}:{}", topic.address.trim_start_matches('/'))) {
            Ok(address) => {
                let mut input = arrival();
                let typing = Typing { topic: Some(topic), own: None, has_encoding: false, schemas };
                let address = match typing.complete(address, &mut input) {
                    Ok((address, doubt)) => {
                        doubt.into_iter().for_each(|why| mistakes.doubt(item, why));
                        address
                    }
                    Err(why) => {
                        mistakes.at(item, format!("topic '{name}': {why}"));
                        continue;
                    }
                };
                let binding = Binding { address, input };
                sources.push(Source { name, item, binding, settings: TopicSettings::default() });
            }
            Err(error) => mistakes.at(
                item,
                format!(
                    "the address of topic '{name}' in the specification cannot be used: {error}; add \
                     `{name}: ADDRESS` under `topics:`, where ADDRESS is {}",
                    forms(Some(network))
                ),
            ),
        }
    }
    sources
}

/// The default: messages are read with their time of arrival.
fn arrival() -> Input {
    Input { time: TimeSource::Arrival, ..Input::default() }
}

/// Reads the settings of a topic: `topic` in the specification, if it has it.
fn binding(
    item: Item<'_>,
    topic: Option<&Topic>,
    network: Option<&str>,
    schemas: &Schemas,
    mistakes: &mut Mistakes,
) -> Option<(Binding, TopicSettings)> {
    let mut settings = TopicSettings::default();
    let mut input = arrival();
    let mut own_type = None;
    let mut encoding = None;
    let mut of_topic = OfTopic::none();
    let address = if item.is_mapping() {
        let mut members = item.members("a topic", mistakes);
        let source = members.get("source");
        encoding = members.get("encoding").and_then(|item| {
            let text = item.text("encoding", mistakes)?;
            let known = Encoding::parse(&text).map_err(|error| mistakes.at(item, error));
            known.ok().map(|known| (item, known))
        });
        if let Some(item) = members.get("time")
            && let Some(text) = item.text("time", mistakes)
        {
            if text.split('.').any(str::is_empty) {
                mistakes.at(item, "`time` must be arrival, source or a field such as header.stamp");
            } else if let Some(Err(error)) = topic.map(|topic| check_time_field(topic, &text)) {
                mistakes.at(item, error);
            }
            input.time = time_source(&text);
        }
        if let Some(item) = members.get("time_unit") {
            match item.text("time_unit", mistakes).as_deref().map(time_unit) {
                Some(Some(known)) => input.time_unit = known,
                Some(None) => mistakes.at(item, "`time_unit` must be s, ms, us or ns"),
                None => {}
            }
        }
        of_topic = OfTopic::read(&mut members);
        settings = TopicSettings::read(&mut members, mistakes);
        own_type = members.get("type").and_then(|item| Some((item, item.text("type", mistakes)?)));
        members.finish(TOPIC, mistakes);
        if source.is_none() {
            mistakes.at(item, format!("a topic needs `source:`, which is {}", forms(network)));
        }
        source?
    } else {
        item
    };
    let text = address.text("source", mistakes)?;
    let parsed = match (Address::parse_source(&text), encoding) {
        (Ok(parsed), Some((item, encoding))) => {
            let encoded = parsed.encoded(encoding);
            Ok(encoded.map_err(|error| mistakes.at(item, error)).ok()?)
        }
        (parsed, _) => parsed,
    };
    let typing = Typing {
        topic,
        own: own_type.as_ref().map(|(_, name)| name.as_str()),
        has_encoding: encoding.is_some(),
        schemas,
    };
    let place = own_type.as_ref().map_or(address, |(item, _)| *item);
    let parsed = parsed.map_err(|error| mistakes.at(address, error)).ok()?;
    let completed = typing.complete(parsed, &mut input).map_err(|why| mistakes.at(place, why));
    let (address, doubt) = completed.ok()?;
    doubt.into_iter().for_each(|why| mistakes.doubt(place, why));
    Some((Binding { address: of_topic.at(address, mistakes), input }, settings))
}

fn sinks<'y>(
    verdicts: Option<Item<'y>>,
    spec: Option<&Spec>,
    used: &mut Vec<Place<'y>>,
    mistakes: &mut Mistakes,
) -> (Emit, Vec<Vec<Address>>) {
    let names = &spec.map(Spec::address_names).unwrap_or_default()[..];
    // An assert may be named by its text too.
    let is_text =
        |i: usize, name: &str| spec.and_then(|spec| spec.properties.get(i)).is_some_and(|p| p.name == name);
    let Some(item) = verdicts else {
        return (Emit::Change, vec![vec![Address::Stdout]; names.len()]);
    };
    let mut members = item.members("verdicts", mistakes);
    let mut emit = Emit::Change;
    if let Some(item) = members.get("emit") {
        match item.text("emit", mistakes).as_deref() {
            Some("change") => {}
            Some("every") => emit = Emit::Every,
            Some("violations") => emit = Emit::Violations,
            Some(_) => mistakes.at(item, "`emit` must be change, every or violations"),
            None => {}
        }
    }
    let to = members.get("to");
    let own = members.get("properties");
    members.finish(VERDICTS, mistakes);
    let (places, items): (Vec<Address>, Vec<Item<'_>>) = to
        .map_or_else(Vec::new, |item| addresses("to", item, Address::parse_verdicts, mistakes))
        .into_iter()
        .unzip();
    let mut sinks = match spread(&places, names) {
        Ok(sinks) => sinks,
        Err(error) => {
            mistakes.at(to.unwrap_or(item), error);
            vec![Vec::new(); names.len()]
        }
    };
    // Every property has the addresses of `to` in their order.
    let mut items = vec![items; names.len()];
    let mut settings = vec!["`to` of `verdicts`".to_owned(); names.len()];
    for (name, key, item) in own.map_or_else(Vec::new, |item| item.entries("properties", mistakes)) {
        let own = addresses(&name, item, Address::parse_verdicts, mistakes);
        match (0..names.len()).find(|&i| names[i] == name || is_text(i, &name)) {
            Some(index) => {
                (sinks[index], items[index]) = own.into_iter().unzip();
                settings[index] = format!("property '{name}' of `verdicts`");
            }
            None if spec.is_some() => {
                let hint = suggest(&name, names.iter().map(String::as_str)).map_or_else(
                    || format!("its properties are: {}", names.join(", ")),
                    |s| format!("did you mean '{s}'?"),
                );
                mistakes.at(key, format!("the specification has no property '{name}'; {hint}"));
            }
            None => {}
        }
    }
    if to.is_none() && own.is_none() {
        sinks = vec![vec![Address::Stdout]; names.len()];
    }
    if let Err(why) = check_emit(emit, &sinks) {
        mistakes.at(item, why);
    }
    for ((setting, items), sinks) in settings.iter().zip(&items).zip(&sinks) {
        let sinks = sinks.iter().zip(items);
        used.extend(sinks.map(|(address, item)| Place::new(Role::Verdicts, setting, address, *item)));
    }
    (emit, sinks)
}

/// Checks that sinks can show what is emitted.
///
/// # Errors
/// What cannot be.
pub fn check_emit(emit: Emit, sinks: &[Vec<Address>]) -> Result<(), &'static str> {
    let diagnoses = |address: &Address| address.ros2_type().as_deref() == Some(DIAGNOSTICS);
    if emit == Emit::Violations && sinks.iter().flatten().any(diagnoses) {
        return Err("diagnostics would never show that a violation is over: with them, write `emit: change`");
    }
    Ok(())
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
