//! Deployments: networks, topics and sinks of a specification, from `rondel.yaml` or from arguments.

mod alignment;
mod mqtt;
mod networks;
mod yaml;

use std::path::{Path, PathBuf};

use clap::ValueEnum;
use rondel_event::{Path as FieldPath, TimeUnit};
pub use rondel_net::address::{Address, Encoding, returns, spread};
use rondel_net::dds;
use rondel_runtime::{Emit, Input, Options, SessionPlan, TimeSource};
use rondel_spec::Spec;

use crate::networks::NetworkSettings;
use crate::specification::{Reading, Specification, Syntax, TimeModel};
pub use alignment::Section as AlignmentSection;
use alignment::{TopicSettings, alignment};
use mqtt::{OfTopic, mqtt_settings};
use networks::{dds_settings, zenoh_settings};
pub use yaml::Mistake;
use yaml::{Item, Mistakes, suggest};

/// A checked deployment: everything that `rondel run` needs to start.
#[derive(Debug)]
pub struct Deployment {
    /// The specification.
    pub specification: Specification,
    /// The settings of the networks with a topic or sink.
    pub networks: NetworkSettings,
    /// The source of each topic, in the order of the specification.
    pub sources: Vec<Binding>,
    /// How messages are put in order.
    pub alignment: AlignmentSection,
    /// The sinks of aligned messages, if the deployment only synchronizes.
    pub synchronized: Option<Vec<Address>>,
    /// The verdicts to publish.
    pub emit: Emit,
    /// The sinks of each property, in the order of the properties.
    pub sinks: Vec<Vec<Address>>,
    /// Whether to exit if a network cannot be reached.
    pub exit_on_unreachable: bool,
}

/// The source of a topic and how its messages are read.
#[derive(Clone, Debug, PartialEq)]
pub struct Binding {
    /// The address on a network.
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
    /// All addresses of the deployment.
    pub fn addresses(&self) -> impl Iterator<Item = &Address> + Clone {
        let sources = self.sources.iter().map(|binding| &binding.address);
        let synchronized = self.synchronized.iter().flatten();
        let alignment = self.alignment.progress.iter().chain(&self.alignment.reports);
        sources.chain(self.sinks.iter().flatten()).chain(synchronized).chain(alignment)
    }

    /// How the messages of the topics are read.
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
        let (inputs, alignment) = (self.inputs(), self.alignment.alignment.clone());
        let options = Options { inputs, alignment, emit: self.emit, ..options };
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
        let name = path.display().to_string();
        let text = std::fs::read_to_string(path).map_err(|error| {
            crate::complain(&format!("cannot read the deployment {name}: {error}"));
            Refused
        })?;
        let folder = path.parent().unwrap_or(Path::new(""));
        let mut mistakes = Mistakes::default();
        let read =
            yaml::with_document(&text, &mut mistakes, |root, mistakes| deployment(root, folder, mistakes));
        mistakes.0.sort_by_key(|m| (m.line, m.column));
        for mistake in &mistakes.0 {
            let Mistake { line, column, message } = mistake;
            if *line > 0 {
                crate::complain(&format!("{name}:{line}:{column}: {message}"));
            } else {
                crate::complain(&format!("{name}: {message}"));
            }
        }
        match read.flatten() {
            Some(deployment) if mistakes.0.is_empty() => Ok(deployment),
            _ => Err(Refused),
        }
    }
}

fn deployment(root: Item<'_>, folder: &Path, mistakes: &mut Mistakes) -> Option<Deployment> {
    let mut members = root.members("the deployment", mistakes);
    let file = members.get("specification");
    let formula = members.get("formula");
    let (syntax, time) = (members.get("syntax"), members.get("time"));
    let zenoh_item = members.get("zenoh");
    let dds_item = members.get("dds");
    let mqtt_item = members.get("mqtt");
    let topics = members.get("topics");
    let verdicts = members.get("verdicts");
    let alignment_item = members.get("alignment");
    let synchronize_item = members.get("synchronize");
    let unreachable = members.get("exit_on_unreachable");
    members.finish(mistakes);

    let specification = match synchronize_item {
        None => specification(root, file, formula, (syntax, time), folder, mistakes),
        Some(item) => {
            if file.or(formula).is_some() {
                mistakes.at(item, "write either `synchronize:` or a specification, not both");
            }
            let names = topics.map_or_else(Vec::new, |item| item.entries("topics", &mut Mistakes::default()));
            if names.is_empty() {
                mistakes.at(item, "nothing to synchronize: name the sources under `topics:`");
            }
            Specification::of_topics(names.into_iter().map(|(name, ..)| name)).ok()
        }
    };
    let mut networks = NetworkSettings {
        zenoh: zenoh_item.map(|item| zenoh_settings(item, folder, mistakes)),
        dds: dds_item.map(|item| dds_settings(item, mistakes)),
        mqtt: mqtt_item.map(|item| mqtt_settings(item, folder, mistakes)),
    };
    let exit_on_unreachable =
        unreachable.and_then(|item| item.boolean("exit_on_unreachable", mistakes)).unwrap_or(false);
    // Without a specification the other sections are still checked as far as possible.
    let empty = Spec::default();
    let spec = specification.as_ref().map(|s| &s.spec);
    let bindings = sources(root, topics, spec, &networks, mistakes);
    let section = alignment_item.map(|item| alignment(item, mistakes));
    let (sources, topic_settings): (Vec<Binding>, Vec<TopicSettings>) = bindings.into_iter().unzip();
    let inputs: Vec<Input> = sources.iter().map(|binding| binding.input.clone()).collect();
    let alignment = AlignmentSection::complete(section, &topic_settings, &inputs);
    if let Some(topic) = alignment.never_certain() {
        let name = spec.and_then(|spec| spec.topics.get(topic.index())).map_or("", |topic| &topic.name);
        let place = alignment_item.or(topics).unwrap_or(root);
        mistakes.at(
            place,
            format!(
                "messages on '{name}' would wait for ever: with `in_order: false` and `max_wait: none`, only \
                 progress markers end the wait; add `progress:`"
            ),
        );
    }
    let synchronized = synchronize_item.map(|item| synchronize(item, mistakes));
    let properties: Vec<String> = spec.unwrap_or(&empty).properties.iter().map(|p| p.name.clone()).collect();
    let (emit, sinks) = sinks(verdicts, spec.is_some().then_some(&properties[..]), mistakes);
    for (sinks, item) in [
        (&sinks, verdicts),
        (&vec![alignment.reports.clone()], alignment_item),
        (&vec![synchronized.clone().unwrap_or_default()], synchronize_item),
    ] {
        if let Some(error) = returns(sources.iter().map(|b| &b.address), sinks) {
            mistakes.at(item.unwrap_or(root), error);
        }
    }
    let mut deployment = Deployment {
        specification: specification?,
        networks: NetworkSettings::default(),
        sources,
        alignment,
        synchronized,
        emit,
        sinks,
        exit_on_unreachable,
    };
    deployment.addresses().for_each(|address| networks.need(address));
    deployment.networks = networks;
    Some(deployment)
}

/// The sinks of aligned messages.
fn synchronize(item: Item<'_>, mistakes: &mut Mistakes) -> Vec<Address> {
    let mut members = item.members("synchronize", mistakes);
    let to = members.get("to");
    members.finish(mistakes);
    if to.is_none() {
        mistakes.at(item, "`synchronize` needs `to:`, such as zenoh:vehicle/synchronized");
    }
    to.map_or_else(Vec::new, |item| addresses(item, mistakes))
}

fn specification(
    root: Item<'_>,
    file: Option<Item<'_>>,
    formula: Option<Item<'_>>,
    (syntax, time): (Option<Item<'_>>, Option<Item<'_>>),
    folder: &Path,
    mistakes: &mut Mistakes,
) -> Option<Specification> {
    let syntax = match syntax.map(|item| (item, item.text("syntax", mistakes))) {
        None => Syntax::Rondel,
        Some((_, Some(text))) if text == "rondel" => Syntax::Rondel,
        Some((_, Some(text))) if text == "rye" => Syntax::Rye,
        Some((item, text)) => {
            if text.is_some() {
                mistakes.at(item, "syntax must be rondel or rye");
            }
            Syntax::Rondel
        }
    };
    let time = time.and_then(|item| {
        let text = item.text("time", mistakes)?;
        let model = TimeModel::from_str(&text, false);
        model.map_err(|_| mistakes.at(item, "time must be steps, points, dense or linear")).ok()
    });
    let reading = Reading { syntax: Some(syntax), time };
    match (file, formula) {
        (Some(item), Some(_)) => {
            mistakes.at(item, "either a specification or a formula, not both");
            None
        }
        (None, None) => {
            mistakes.at(root, "nothing to check: name a file with `specification:` or write a `formula:`");
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

fn sources(
    root: Item<'_>,
    topics: Option<Item<'_>>,
    spec: Option<&Spec>,
    networks: &NetworkSettings,
    mistakes: &mut Mistakes,
) -> Vec<(Binding, TopicSettings)> {
    let entries = topics.map_or_else(Vec::new, |item| item.entries("topics", mistakes));
    let mut bindings = Vec::new();
    for (name, key, item) in &entries {
        let binding = binding(*item, mistakes);
        if let Some(spec) = spec
            && !spec.topics.iter().any(|t| t.name == *name)
        {
            let names = || spec.topics.iter().map(|t| t.name.as_str());
            let hint = suggest(name, names()).map_or_else(
                || format!("it has: {}", names().collect::<Vec<_>>().join(", ")),
                |s| format!("did you mean '{s}'?"),
            );
            mistakes.at(*key, format!("the specification has no topic '{name}'; {hint}"));
        }
        bindings.extend(binding.map(|b| (name.clone(), b)));
    }
    let mut sources = Vec::new();
    for topic in spec.map_or(&[][..], |s| &s.topics) {
        if let Some((_, binding)) = bindings.iter().find(|(name, _)| *name == topic.name) {
            sources.push(binding.clone());
            continue;
        }
        if entries.iter().any(|(name, ..)| *name == topic.name) {
            continue;
        }
        let network = match (&networks.zenoh, &networks.dds, &networks.mqtt) {
            (Some(_), None, None) => "zenoh",
            (None, Some(_), None) => "dds",
            (None, None, Some(_)) => "mqtt",
            _ => {
                let place = topics.unwrap_or(root);
                mistakes.at(
                    place,
                    format!(
                        "topic '{}' has no source; add `{}: zenoh:KEY` or `{}: dds:TOPIC` under `topics:`",
                        topic.name, topic.name, topic.name
                    ),
                );
                continue;
            }
        };
        // With a single network, the address in the specification is the address on this network.
        match Address::parse(&format!("{network}:{}", topic.address.trim_start_matches('/'))) {
            Ok(address) => {
                let binding = Binding { address, input: arrival() };
                sources.push((binding, TopicSettings::default()));
            }
            Err(error) => mistakes.at(topics.unwrap_or(root), format!("topic '{}': {error}", topic.name)),
        }
    }
    sources
}

/// The default input of a deployment: the time of arrival.
fn arrival() -> Input {
    Input { time: TimeSource::Arrival, ..Input::default() }
}

fn binding(item: Item<'_>, mistakes: &mut Mistakes) -> Option<(Binding, TopicSettings)> {
    let mut settings = TopicSettings::default();
    let mut input = arrival();
    let mut string_type = None;
    let mut encoding = None;
    let mut of_mqtt = OfTopic::none();
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
                mistakes.at(item, "time must be arrival, source or a field such as header.stamp");
            }
            input.time = time_source(&text);
        }
        if let Some(item) = members.get("time_unit") {
            match item.text("time_unit", mistakes).as_deref().map(time_unit) {
                Some(Some(known)) => input.time_unit = known,
                Some(None) => mistakes.at(item, "time_unit must be s, ms, us or ns"),
                None => {}
            }
        }
        of_mqtt = OfTopic::read(&mut members, mistakes);
        settings = TopicSettings::read(&mut members, mistakes);
        string_type = members.get("type").and_then(|item| Some((item, item.text("type", mistakes)?)));
        members.finish(mistakes);
        if source.is_none() {
            mistakes.at(item, "a topic needs a `source:`, such as zenoh:KEY, dds:TOPIC or mqtt:TOPIC");
        }
        source?
    } else {
        item
    };
    let text = address.text("a source", mistakes)?;
    let parsed = match (Address::parse_source(&text), encoding) {
        (Ok(parsed), Some((item, encoding))) => {
            let encoded = parsed.encoded(encoding);
            Ok(encoded.map_err(|error| mistakes.at(item, error)).ok()?)
        }
        (parsed, _) => parsed,
    };
    match (parsed, string_type) {
        (Ok(Address::Dds(..)), Some((item, type_name))) if dds::check_topic(&type_name).is_err() => {
            mistakes.at(
                item,
                format!("'{type_name}' is not a type name; an example is std_msgs::msg::dds_::String_"),
            );
            None
        }
        (Ok(Address::Dds(name, mut known)), Some((_, type_name))) => {
            known.name = type_name;
            Some((Binding { address: Address::Dds(name, known), input }, settings))
        }
        (Ok(_), Some((item, _))) => {
            mistakes.at(item, "only a topic on DDS has a type");
            None
        }
        (Ok(address), None) => {
            let binding = Binding { address: of_mqtt.at(address, mistakes), input };
            Some((binding, settings))
        }
        (Err(error), _) => {
            mistakes.at(address, error);
            None
        }
    }
}

fn sinks(
    verdicts: Option<Item<'_>>,
    properties: Option<&[String]>,
    mistakes: &mut Mistakes,
) -> (Emit, Vec<Vec<Address>>) {
    let names = properties.unwrap_or_default();
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
            Some(_) => mistakes.at(item, "emit must be change, every or violations"),
            None => {}
        }
    }
    let to = members.get("to");
    let own = members.get("properties");
    members.finish(mistakes);
    let places = to.map_or_else(Vec::new, |item| addresses(item, mistakes));
    let mut sinks = match spread(&places, names) {
        Ok(sinks) => sinks,
        Err(error) => {
            mistakes.at(to.unwrap_or(item), error);
            vec![Vec::new(); names.len()]
        }
    };
    for (name, key, item) in own.map_or_else(Vec::new, |item| item.entries("properties", mistakes)) {
        let own = addresses(item, mistakes);
        match names.iter().position(|n| *n == name) {
            Some(index) => sinks[index] = own,
            None if properties.is_some() => {
                let hint = suggest(&name, names.iter().map(String::as_str)).map_or_else(
                    || format!("it has: {}", names.join(", ")),
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
    (emit, sinks)
}

fn addresses(item: Item<'_>, mistakes: &mut Mistakes) -> Vec<Address> {
    let mut addresses = Vec::new();
    for item in item.items() {
        let Some(text) = item.text("an address", mistakes) else { continue };
        match Address::parse_sink(&text) {
            Ok(address) => addresses.push(address),
            Err(error) => mistakes.at(item, error),
        }
    }
    addresses
}

/// The deployment file when none is named.
pub fn default_file() -> PathBuf {
    PathBuf::from("rondel.yaml")
}
