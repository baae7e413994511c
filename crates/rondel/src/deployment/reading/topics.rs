//! The topics of a deployment, and the sections that need all of them: `alignment:` and `gates:`.

use rondel_net::dds::{Ownership, Reliability};
use rondel_net::networks::NetworkSettings;
use rondel_runtime::Input;
use rondel_spec::Spec;

use super::Sections;
use crate::deployment::alignment::{TopicSettings, alignment};
use crate::deployment::events::{Unheard, unheard};
use crate::deployment::gates::{self, GateSettings, Surroundings};
use crate::deployment::places::{Place, Role};
use crate::deployment::sources::{Source, sources};
use crate::deployment::yaml::{Item, Mistakes};
use crate::deployment::{Address, AlignmentSection, Binding, simulated_time};
use crate::specification::Specification;

/// The topics of a deployment, in the order of the specification.
pub(super) struct ReadTopics<'y> {
    pub(super) sources: Vec<Binding>,
    /// The items that set them.
    pub(super) items: Vec<Item<'y>>,
    pub(super) settings: Vec<TopicSettings>,
}

impl<'y> Sections<'y> {
    /// The topics, and a mistake or warning for each that receives no events.
    pub(super) fn read_topics(
        &self,
        specification: Option<&Specification>,
        networks: &NetworkSettings,
        places: &mut Vec<Place<'y>>,
        mistakes: &mut Mistakes,
    ) -> ReadTopics<'y> {
        let mut topics = ReadTopics { sources: Vec::new(), items: Vec::new(), settings: Vec::new() };
        for source in sources(self.root, self.topics, specification, networks, mistakes) {
            let Source { name, item, binding, settings } = source;
            places.push(Place::new(Role::Source, &format!("topic '{name}'"), &binding.address, item));
            if hides_losses(&binding.address) {
                mistakes.uncertain(
                    item,
                    format!(
                        "lost messages of topic '{name}' are not noticed: with exclusive ownership, CycloneDDS counts them \
                         together with those of weaker publishers; with `reliability: reliable` they are sent again, if \
                         its publishers offer that"
                    ),
                );
            }
            if is_shared(&binding.address) {
                mistakes.uncertain(
                    item,
                    format!(
                        "the broker chooses which of the runs that share topic '{name}' receives a message: properties that \
                         compare messages need a broker that chooses by topic"
                    ),
                );
            }
            topics.sources.push(binding);
            topics.items.push(item);
            topics.settings.push(settings);
        }
        let spec = specification.map(|specification| &*specification.spec);
        if let Some(spec) = spec.filter(|spec| spec.declared().len() == topics.sources.len()) {
            for Unheard { topic, text, misleads } in unheard(spec, &topics.sources) {
                let place = topics.items.get(topic.index()).copied().unwrap_or(self.root);
                if misleads { mistakes.at(place, text) } else { mistakes.warn(place, text) }
            }
        }
        topics
    }

    /// The section `alignment:`, completed with the settings of topics.
    pub(super) fn read_alignment(
        &self,
        spec: Option<&Spec>,
        topics: &ReadTopics<'y>,
        is_simulated: bool,
        places: &mut Vec<Place<'y>>,
        mistakes: &mut Mistakes,
    ) -> AlignmentSection {
        let section = self.alignment.map(|item| {
            let (section, settings, own) = alignment(item, mistakes);
            places.extend(own);
            (section, settings)
        });
        let inputs: Vec<Input> = topics.sources.iter().map(|binding| binding.input.clone()).collect();
        let mut alignment = AlignmentSection::complete(section, &topics.settings, &inputs);
        if is_simulated {
            simulated_time::check(&inputs, &topics.items, self.durability, self.ids, mistakes);
            simulated_time::limit(&mut alignment.alignment);
        }
        if let Some(topic) = alignment.never_certain() {
            let name = spec.and_then(|spec| spec.topics.get(topic.index())).map_or("", |topic| &topic.name);
            let place = self.alignment.or(self.topics).unwrap_or(self.root);
            mistakes.at(
                place,
                format!(
                    "topic '{name}' could never be checked: with `in_order: false` and `max_wait: none`, only \
                     progress markers show that no earlier message follows; set `progress`, or a duration as `max_wait`"
                ),
            );
        }
        alignment
    }

    /// The section `gates:`: each gate, and the item of its substitute.
    pub(super) fn read_gates(
        &self,
        spec: Option<&Spec>,
        topics: &ReadTopics<'y>,
        alignment: &AlignmentSection,
        places: &mut Vec<Place<'y>>,
        mistakes: &mut Mistakes,
    ) -> (Vec<GateSettings>, Vec<Item<'y>>) {
        let (empty, is_synchronizer) = (Spec::default(), self.synchronize.is_some());
        let spec = spec.unwrap_or(&empty);
        let around = Surroundings { spec, sources: &topics.sources, alignment, is_synchronizer };
        let gates = self.gates.map_or_else(Vec::new, |item| gates::gates(item, &around, places, mistakes));
        gates.into_iter().unzip()
    }
}

/// Whether a broker divides the messages of an address among several runs.
fn is_shared(address: &Address) -> bool {
    matches!(address, Address::Mqtt(filter, ..) if filter.starts_with("$share/"))
}

/// Whether messages that are lost on the way from an address are neither sent again nor counted.
fn hides_losses(address: &Address) -> bool {
    let Address::Dds(_, _, qos) = address else { return false };
    qos.ownership == Some(Ownership::Exclusive) && qos.reliability != Some(Reliability::Reliable)
}
