//! The section `topics`: where the messages of each topic come from, and how they are read.

use std::sync::Arc;

use rondel_decode::plain::Words;
use rondel_net::networks::NetworkSettings;
use rondel_runtime::{Input, TimeSource};
use rondel_spec::{Spec, Topic};

use super::alignment::TopicSettings;
use super::qos::OfTopic;
use super::registry::registry;
use super::yaml::{Item, Members, Mistakes, Synonyms, suggest};
use super::{Address, Binding, Encoding, Typing, check_time_field, time_source, time_unit};
use crate::schemas::Schemas;
use crate::specification::Specification;

/// Names that people write for settings of a topic.
const TOPIC: Synonyms = &[
    (&["address", "topic", "from", "key", "name", "url"], "write `source`"),
    (&["timestamp", "stamp", "time_field", "time_from"], "write `time`"),
    (&["unit"], "write `time_unit`"),
    (&["format"], "write `encoding`"),
    (&["strings", "numbers"], "write `texts: numbers`"),
    (&["missing", "defaults", "default"], "write `absent: default`"),
    (&["message_type", "msg_type", "schema"], "write `type`"),
    (&["retain"], "write `retained`"),
    (&["schema_registry", "schema.registry.url"], "write `registry`"),
];

/// Source of a topic of the specification, and the item that sets it.
pub(super) struct Source<'y> {
    pub(super) name: String,
    pub(super) item: Item<'y>,
    pub(super) binding: Binding,
    pub(super) settings: TopicSettings,
}

/// The name of the network that addresses without one are on: where exactly one has a section.
fn only_network(networks: &NetworkSettings) -> Option<&'static str> {
    let NetworkSettings { zenoh, dds, mqtt, kafka, ros2 } = networks;
    match (zenoh, dds, mqtt, kafka) {
        (Some(_), None, None, None) => Some("zenoh"),
        (None, Some(_), None, None) => Some("dds"),
        (None, None, Some(_), None) => Some("mqtt"),
        (None, None, None, Some(_)) => Some("kafka"),
        (None, None, None, None) => ros2.as_ref().map(|_| "ros2"),
        _ => None,
    }
}

/// The forms of an address, for messages: of one network, or of all.
fn forms(network: Option<&str>) -> &'static str {
    match network {
        Some("zenoh") => "`zenoh:KEY`",
        Some("dds") => "`dds:TOPIC`",
        Some("mqtt") => "`mqtt:TOPIC`",
        Some("kafka") => "`kafka:TOPIC`",
        Some("ros2") => "`ros2:/TOPIC`",
        _ => "`zenoh:KEY`, `dds:TOPIC`, `mqtt:TOPIC` or `ros2:/TOPIC`",
    }
}

/// Reads the topics of a deployment: `root` is the whole of it.
pub(super) fn sources<'y>(
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
        let binding = binding(*item, topic, network, (schemas, specification.is_some()), mistakes);
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
                    Ok((address, uncertainty)) => {
                        uncertainty.into_iter().for_each(|why| mistakes.uncertain(item, why));
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

/// Reads the words for true and false of a topic.
fn words(members: &mut Members<'_>, mistakes: &mut Mistakes) -> Words {
    let mut words = Words::default();
    for (name, value) in [("true_words", true), ("false_words", false)] {
        let Some(item) = members.get(name) else { continue };
        for item in item.items() {
            let Some(word) = item.text(name, mistakes) else { continue };
            if let Err(word) = words.add(&word, value) {
                mistakes.at(
                    item,
                    format!("the word `{word}` is there twice; it can stand for true or for false"),
                );
            }
        }
    }
    words
}

/// Reads how the messages of a topic are decoded, except for encoding and type.
fn read_input(members: &mut Members<'_>, topic: Option<&Topic>, mistakes: &mut Mistakes) -> Input {
    let mut input = arrival();
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
    input.words = Arc::new(words(members, mistakes));
    if let Some(item) = members.get("texts") {
        match item.text("texts", mistakes).as_deref() {
            Some("numbers") => input.number_texts = true,
            Some(_) => mistakes.at(
                item,
                "`texts` must be numbers: texts that are numbers then count where the specification reads numbers",
            ),
            None => {}
        }
    }
    if let Some(item) = members.get("absent") {
        match item.text("absent", mistakes).as_deref() {
            Some("default") => input.absent_is_default = true,
            Some("keep") => input.absent_is_default = false,
            Some(_) => mistakes.at(
                item,
                "`absent` must be keep, so that a field that a message leaves out keeps its value, or default: it is \
                 zero, false or empty, as in the JSON mapping of Protobuf",
            ),
            None => {}
        }
    }
    input
}

/// Reads the settings of a topic: `topic` in the specification, if it has it. `are_read`: whether the schemas are known, and
/// not left out because of a mistake in them or in the specification.
fn binding(
    item: Item<'_>,
    topic: Option<&Topic>,
    network: Option<&str>,
    (schemas, are_read): (&Schemas, bool),
    mistakes: &mut Mistakes,
) -> Option<(Binding, TopicSettings)> {
    let mut settings = TopicSettings::default();
    let mut input = arrival();
    let mut own_type = None;
    let mut encoding = None;
    let mut own_registry = None;
    let mut of_topic = OfTopic::none();
    let address = if item.is_mapping() {
        let mut members = item.members("a topic", mistakes);
        let source = members.get("source");
        encoding = members.get("encoding").and_then(|item| {
            let text = item.text("encoding", mistakes)?;
            let known = Encoding::parse(&text).map_err(|error| mistakes.at(item, error));
            known.ok().map(|known| (item, known))
        });
        input = read_input(&mut members, topic, mistakes);
        own_registry = members.get("registry");
        input.message_type = own_registry.and_then(|item| registry(item, mistakes));
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
    if own_registry.is_some() && input.message_type.is_none() {
        // The mistake in it is known.
        return None;
    }
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
    let (address, uncertainty) = match typing.complete(parsed, &mut input) {
        Ok(completed) => completed,
        Err(why) => {
            if are_read {
                mistakes.at(place, why);
            }
            return None;
        }
    };
    uncertainty.into_iter().for_each(|why| mistakes.uncertain(place, why));
    if let Some(item) = own_registry
        && address.encoding() != Encoding::Of(rondel_decode::Encoding::Avro)
    {
        mistakes.at(item, "`registry` is for messages in Avro: add `encoding: avro`");
    }
    if *input.words != Words::default() && address.encoding() != Encoding::Of(rondel_decode::Encoding::Plain)
    {
        mistakes.at(item, "`true_words` and `false_words` are for plain payloads: add `encoding: plain`");
    }
    Some((Binding { address: of_topic.at(address, mistakes), input }, settings))
}
