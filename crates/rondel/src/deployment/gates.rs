//! The section `gates:`: messages that are passed on while properties hold.

mod substitute;
mod target;

use rondel_decode::schema::Schema;
use rondel_event::{Timestamp, TopicId};
use rondel_net::{dds, mqtt};
use rondel_runtime::alignment::Policy;
use rondel_runtime::looks_ahead;
use rondel_spec::{Property, Spec};

use super::alignment::duration;
use super::choice;
use super::places::{Place, Role};
use super::yaml::{Item, Mistakes, Synonyms, suggest};
use super::{Address, AlignmentSection, Binding, Deployment};
#[cfg(test)]
pub use substitute::Message;
pub use substitute::Substitute;
pub(super) use substitute::check_read;

/// Names that people write for settings of a gate.
const SYNONYMS: Synonyms = &[
    (&["source", "input", "in", "topic"], "write `from`: a topic of the specification, or its address"),
    (&["sink", "output", "out", "address", "publish"], "write `to`"),
    (&["property", "properties", "if", "when", "while", "until"], "write `unless: PROPERTY`"),
    (&["instead", "fallback", "replace", "default", "safe"], "write `substitute`: a message, hold or drop"),
    (&["after", "delay", "hold", "hold_off", "return"], "write `return_after`, such as `return_after: 2 s`"),
    (&["fail_open", "fail_closed", "inconclusive"], "write `blind: closed` or `blind: open`"),
    (&["end", "on_end", "on_stop"], "write `at_end: substitute` or `at_end: nothing`"),
];

/// Settings of a gate: messages of a topic are passed on to another address while properties hold.
#[derive(Clone, Debug)]
pub struct GateSettings {
    /// The topic whose messages are passed on.
    pub topic: TopicId,
    /// The address to pass them on to.
    pub to: Address,
    /// The type of the messages, if they are CDR and their type is known.
    pub schema: Option<Schema>,
    /// The properties that close it while they are violated, by their positions.
    pub unless: Vec<u32>,
    /// Treatment of inconclusive properties.
    pub blind: WhenBlind,
    /// The message that is published instead.
    pub substitute: Substitute,
    /// Time that the properties have to hold before it opens, in nanoseconds.
    pub return_after: i64,
    /// A further property that has to hold before it opens.
    pub return_when: Option<u32>,
    /// Whether the substitute is published when the run ends.
    pub ends_with_substitute: bool,
}

/// Treatment of inconclusive properties by a gate.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum WhenBlind {
    /// They close it.
    #[default]
    Closed,
    /// They count as satisfied.
    Open,
}

impl GateSettings {
    /// The properties that it follows.
    pub fn properties(&self) -> impl Iterator<Item = u32> + '_ {
        self.unless.iter().copied().chain(self.return_when)
    }

    /// The settings with the names of `spec` as a text, by which members of a group compare their gates.
    pub fn text(&self, spec: &Spec) -> String {
        let topic = spec.topics.get(self.topic.index()).map(|topic| &topic.name);
        let property = |at: u32| spec.properties.get(at as usize).map(|property| &property.name);
        let mut unless: Vec<_> = self.unless.iter().map(|at| property(*at)).collect();
        unless.sort_unstable();
        let return_when = self.return_when.and_then(property);
        let substitute = match &self.substitute {
            Substitute::Message(message) => format!("{:?}", message.clone().at(Timestamp::ZERO)),
            Substitute::Hold => "hold".to_owned(),
            Substitute::Drop => "drop".to_owned(),
        };
        let GateSettings { to, return_after, ends_with_substitute, .. } = self;
        let is_open = self.blind == WhenBlind::Open;
        format!(
            "{topic:?} {to} {unless:?} {is_open} {substitute} {return_after} {return_when:?} {ends_with_substitute}"
        )
    }
}

/// The parts of a deployment that gates refer to.
pub(super) struct Surroundings<'d> {
    pub(super) spec: &'d Spec,
    pub(super) sources: &'d [Binding],
    pub(super) alignment: &'d AlignmentSection,
    pub(super) is_synchronizer: bool,
}

/// A gate with the item that sets its substitute.
pub(super) type ReadGate<'y> = (GateSettings, Item<'y>);

/// Reads the section.
pub(super) fn gates<'y>(
    item: Item<'y>,
    around: &Surroundings<'_>,
    places: &mut Vec<Place<'y>>,
    mistakes: &mut Mistakes,
) -> Vec<ReadGate<'y>> {
    if around.is_synchronizer {
        mistakes.at(item, "a synchronizer has no properties that could close a gate: leave `gates` out");
        return Vec::new();
    }
    let mut gates: Vec<ReadGate<'y>> = Vec::new();
    for item in item.items() {
        let Some(gate) = gate(item, around, places, mistakes) else { continue };
        gates.push(gate);
    }
    gates
}

fn gate<'y>(
    item: Item<'y>,
    around: &Surroundings<'_>,
    places: &mut Vec<Place<'y>>,
    mistakes: &mut Mistakes,
) -> Option<ReadGate<'y>> {
    let mut members = item.members("a gate", mistakes);
    let (from, to, unless) = (members.get("from"), members.get("to"), members.get("unless"));
    let (substitute, blind) = (members.get("substitute"), members.get("blind"));
    let (return_after, return_when) = (members.get("return_after"), members.get("return_when"));
    let at_end = members.get("at_end");
    members.finish(SYNONYMS, mistakes);
    for (setting, example) in [
        (from, "`from`, a topic of the specification or its address"),
        (to, "`to`, the address to pass messages on to"),
        (unless, "`unless`, the property that closes it while it is violated"),
        (
            substitute,
            "`substitute`, what is published instead: a message such as `{ speed: 0.0 }`, hold or drop",
        ),
    ] {
        if setting.is_none() {
            mistakes.at(item, format!("a gate needs {example}"));
        }
    }
    let topic = from.and_then(|item| topic(item, around, mistakes));
    let target = topic.zip(to).and_then(|(topic, to)| {
        let text = to.text("to", mistakes)?;
        let target = target::target(&text, &around.sources[topic.index()]);
        let target = target.map_err(|why| mistakes.at(to, why)).ok()?;
        places.push(Place::new(Role::Gate, "`to` of a gate", &target.address, to));
        Some(target)
    });
    let unless = unless.map_or_else(Vec::new, |item| properties("unless", item, around.spec, mistakes));
    let return_when = return_when.and_then(|item| {
        let text = item.text("return_when", mistakes)?;
        if text == "clear" { None } else { property(&text, "return_when", item, around.spec, mistakes) }
    });
    let return_after =
        return_after.and_then(|item| duration(item, "return_after", "2 s", "", mistakes)).unwrap_or(0);
    let blind = read_blind(blind, mistakes);
    let (topic, substitute) = (topic?, substitute?);
    let declared = around.spec.topics.get(topic.index()).and_then(|topic| topic.schema.as_ref());
    let read = substitute::substitute(substitute, &around.sources[topic.index()], declared, mistakes)?;
    let ends_with_substitute = read_end(at_end, &read, mistakes);
    let target::Target { address: to, schema } = target?;
    let settings = GateSettings {
        topic,
        to,
        schema,
        unless,
        blind,
        substitute: read,
        return_after,
        return_when,
        ends_with_substitute,
    };
    Some((settings, substitute))
}

/// Lets the sources of gates deliver messages of MQTT without a payload, which are ignored elsewhere: each gate decides
/// about them.
pub(super) fn deliver_empty(deployment: &mut Deployment) {
    let Deployment { gates, sources, .. } = deployment;
    for gate in gates.iter() {
        let address = sources.get_mut(gate.topic.index()).map(|source| &mut source.address);
        if let Some(Address::Mqtt(_, settings, _)) = address {
            settings.empty = true;
        }
    }
}

fn read_blind(item: Option<Item<'_>>, mistakes: &mut Mistakes) -> WhenBlind {
    let blind = item.and_then(|item| Some((item, item.text("blind", mistakes)?)));
    match blind.as_ref().map(|(item, text)| (*item, text.as_str())) {
        None | Some((_, "closed")) => WhenBlind::Closed,
        Some((_, "open")) => WhenBlind::Open,
        Some((item, _)) => {
            mistakes.at(item, "`blind` of a gate must be closed or open");
            WhenBlind::Closed
        }
    }
}

/// Reads whether the substitute is published at the end: by default if it is a message.
fn read_end(item: Option<Item<'_>>, substitute: &Substitute, mistakes: &mut Mistakes) -> bool {
    let is_message = matches!(substitute, Substitute::Message(_));
    let at_end = item.and_then(|item| Some((item, item.text("at_end", mistakes)?)));
    match at_end.as_ref().map(|(item, text)| (*item, text.as_str())) {
        None => is_message,
        Some((_, "nothing")) => false,
        Some((_, "substitute")) if is_message => true,
        Some((item, "substitute")) => {
            mistakes
                .at(item, "`at_end: substitute` needs a message as `substitute`; write `at_end: nothing`");
            false
        }
        Some((item, _)) => {
            mistakes.at(item, "`at_end` must be substitute or nothing");
            false
        }
    }
}

/// Reads the topic whose messages are passed on, by its name or its address.
fn topic(item: Item<'_>, around: &Surroundings<'_>, mistakes: &mut Mistakes) -> Option<TopicId> {
    let Surroundings { spec, sources, alignment, .. } = around;
    let text = item.text("from", mistakes)?;
    let declared = spec.declared();
    if declared.len() != sources.len() {
        // A source is missing, which has been reported.
        return None;
    }
    let named = declared.iter().position(|topic| topic.name == text);
    let by_address = || {
        let address = Address::parse_source(&text).ok()?;
        sources.iter().position(|binding| bare(&binding.address) == bare(&address))
    };
    let Some(index) = named.or_else(by_address) else {
        let names = || declared.iter().map(|topic| topic.name.as_str());
        let hint = suggest(&text, names())
            .map_or_else(|| names().collect::<Vec<_>>().join(", "), |name| format!("did you mean '{name}'?"));
        mistakes.at(
            item,
            format!(
                "'{text}' is neither a topic of the specification nor the source of one ({hint}); a gate passes on \
                 messages that are checked: declare a topic for them, such as `topic command {{ }}`"
            ),
        );
        return None;
    };
    let address = &sources[index].address;
    if reads_several(address) {
        mistakes.at(
            item,
            format!("{address} reads several topics, whose messages could not be distinguished at `to`; read them as topics of their own"),
        );
        return None;
    }
    if alignment.alignment.policy != Policy::Arrival {
        mistakes.at(
            item,
            "a gate decides when a message arrives, and with this alignment messages wait before they are checked: write \
             `alignment: { policy: arrival }`, or run the gate with a deployment of its own",
        );
        return None;
    }
    Some(TopicId(index as u32))
}

/// Returns an address without its encoding.
fn bare(address: &Address) -> String {
    let text = address.to_string();
    match text.split_once(':') {
        Some((network, name)) => format!("{}:{name}", network.split('+').next().unwrap_or(network)),
        None => text,
    }
}

/// Whether messages of several topics are received from an address.
fn reads_several(address: &Address) -> bool {
    address.pattern().is_some()
        || match address {
            Address::Zenoh(key, _) => key.contains(['*', '$']),
            Address::Mqtt(filter, ..) => !mqtt::is_single(filter),
            Address::Dds(name, ..) => dds::is_pattern(name),
            Address::Kafka(..) | Address::Ros2(..) | Address::Stdout => false,
        }
}

/// Reads the properties of a setting.
fn properties(setting: &str, item: Item<'_>, spec: &Spec, mistakes: &mut Mistakes) -> Vec<u32> {
    let (mut all, items) = (Vec::new(), item.items());
    if items.is_empty() {
        mistakes.at(item, format!("`{setting}` names no property"));
    }
    for item in items {
        let Some(text) = item.text(setting, mistakes) else { continue };
        all.extend(property(&text, setting, item, spec, mistakes));
    }
    all.sort_unstable();
    all.dedup();
    all
}

/// Returns the position of a property that is decided when a message arrives.
fn property(text: &str, setting: &str, item: Item<'_>, spec: &Spec, mistakes: &mut Mistakes) -> Option<u32> {
    if spec.properties.is_empty() {
        // The specification has mistakes of its own.
        return None;
    }
    let position = choice::named(spec, text, item, mistakes)?;
    if let Some(why) = undecided(spec, &spec.properties[position]) {
        mistakes.at(item, format!("`{setting}` cannot use '{text}': {why}"));
        return None;
    }
    Some(position as u32)
}

/// Returns the reason why a property is not decided when a message arrives, if it is not.
fn undecided(spec: &Spec, property: &Property) -> Option<&'static str> {
    if property.criterion.is_some() {
        return Some("an assert is decided at the end of the run; name the property that it is about");
    }
    if spec.chains.iter().any(|chain| chain.name == property.name) {
        return Some("a chain is decided for each stamp, and has no state");
    }
    if property.linear {
        return Some(
            "with linear interpolation it is decided only at the next message; leave `@interpolate(linear)` out",
        );
    }
    looks_ahead(spec, property.formula).then_some(
        "it has future operators, so that a message is decided only after it would have been passed on; write it with past \
         operators such as `once`, `since` or `historically`",
    )
}
