//! Division of properties into alignment groups.

use std::collections::BTreeSet;

use rondel_event::TopicId;
use rondel_spec::{Property, Spec, TimeModel};

/// An alignment group: properties that read the same topics, as a specification of their own. They wait for
/// the messages of these topics only.
#[derive(Clone, Debug, PartialEq)]
pub struct Division {
    /// The topics, in the order of the specification.
    pub topics: Vec<TopicId>,
    /// The positions of the properties in the whole specification, in order.
    pub properties: Vec<u32>,
    /// Whether the properties have parameters.
    pub keyed: bool,
    /// The [generation](Property::generation) of the properties.
    pub generation: u32,
    /// The specification with these properties only. It keeps all topics, so that their positions stay the same.
    pub spec: Spec,
}

/// Divides a specification into alignment groups.
///
/// A property in dense time, or with parameters, waits for the topics that it mentions and those of its
/// parameters. In steps and points every message is an event, so a property without parameters waits for all
/// topics. A property that mentions no topic waits for all topics too.
pub fn divide(spec: &Spec) -> Vec<Division> {
    let mut divisions: Vec<Division> = Vec::new();
    for (i, property) in (0..).zip(&spec.properties) {
        let (topics, keyed) = (topics(spec, property), property.slice.is_some());
        let generation = property.generation;
        let is_same = |d: &&mut Division| (&d.topics, d.keyed, d.generation) == (&topics, keyed, generation);
        match divisions.iter_mut().find(is_same) {
            Some(division) => division.properties.push(i),
            None => {
                let (properties, spec) = (vec![i], Spec::default());
                divisions.push(Division { topics, properties, keyed, generation, spec });
            }
        }
    }
    for division in &mut divisions {
        division.spec = only(spec, &division.properties);
    }
    divisions
}

/// All properties of a specification in one alignment group. If sets are `joined` into one event, properties with
/// parameters form a second group, which sees messages one by one.
pub fn together(spec: &Spec, joined: bool) -> Vec<Division> {
    let all: Vec<TopicId> = all(spec).collect();
    let generations: BTreeSet<u32> = spec.properties.iter().map(|property| property.generation).collect();
    let of = |keyed: bool, generation: u32| {
        let is_meant =
            |(_, p): &(u32, &Property)| p.generation == generation && (!joined || p.slice.is_some() == keyed);
        (0..).zip(&spec.properties).filter(is_meant).map(|(i, _)| i).collect::<Vec<u32>>()
    };
    let kinds = if joined { &[false, true][..] } else { &[false] };
    let parts =
        generations.iter().flat_map(|&generation| kinds.iter().map(move |&keyed| (keyed, generation)));
    let division = |(keyed, generation): (bool, u32)| {
        let properties = of(keyed, generation);
        let spec = only(spec, &properties);
        Division { topics: all.clone(), spec, properties, keyed, generation }
    };
    parts.map(division).filter(|division| !division.properties.is_empty()).collect()
}

fn all(spec: &Spec) -> impl Iterator<Item = TopicId> {
    (0..spec.topics.len() as u32).map(TopicId)
}

/// The topics that a property sees.
fn topics(spec: &Spec, property: &Property) -> Vec<TopicId> {
    let slice = property.slice.and_then(|slice| spec.slices.get(slice.0 as usize));
    if slice.is_none() && property.time != TimeModel::Dense {
        return all(spec).collect();
    }
    let mut topics = spec.topics_of_property(property);
    let keys = slice.into_iter().flat_map(|slice| &slice.keys).flat_map(|key| &key.fields);
    topics.extend(keys.map(|(topic, _)| *topic));
    topics.sort_unstable();
    topics.dedup();
    if topics.is_empty() { all(spec).collect() } else { topics }
}

fn only(spec: &Spec, properties: &[u32]) -> Spec {
    let mut part = spec.clone();
    part.properties = properties.iter().map(|&i| spec.properties[i as usize].clone()).collect();
    part.tests.clear();
    part
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    const TEXT: &str = "
        topic a { x: float, k: int } topic b { y: float, k: int } topic c { z: bool }
        property of_steps = a.x < 1
        property also_of_steps = c.z
        property of_two = a.x < 1 -> once[0, 1 s] b.y < 1
        property of_two_more = historically[0, 2 s] (b.y < a.x)
        property of_one = once[0, 1 s] on(c)
        property keyed for each k in (a.k, b.k) = on(a) -> once[0, 1 s] on(b)
        property keyed_and_more for each k in a.k = on(a) -> once[0, 1 s] c.z
        @time(dense) property of_none = 1 < 2
    ";

    #[test]
    fn a_property_waits_for_the_topics_it_reads() {
        let spec = rondel_spec::parse(TEXT).spec.unwrap();
        let name = |d: &Division| {
            let topics = d.topics.iter().map(|t| spec.topics[t.index()].name.as_str());
            let names: Vec<&str> = d.spec.properties.iter().map(|p| p.name.as_str()).collect();
            let here = d.properties.iter().map(|&p| spec.properties[p as usize].name.as_str());
            assert!(here.eq(names.iter().copied()));
            format!(
                "{}{}: {}",
                topics.collect::<String>(),
                if d.keyed { " keyed" } else { "" },
                names.join(" ")
            )
        };
        let divided: Vec<String> = divide(&spec).iter().map(name).collect();
        assert_eq!(
            divided,
            [
                "abc: of_steps also_of_steps of_none",
                "ab: of_two of_two_more",
                "c: of_one",
                "ab keyed: keyed",
                "ac keyed: keyed_and_more",
            ]
        );
        let joined: Vec<String> = together(&spec, true).iter().map(name).collect();
        assert_eq!(joined.len(), 2);
        assert!(joined[1].starts_with("abc keyed: keyed keyed_and_more"), "{joined:?}");
        assert_eq!(together(&spec, false).len(), 1);
    }
}
