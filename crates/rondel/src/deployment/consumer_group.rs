//! Checks whether the properties of a deployment can be divided by the partitions of a topic of Kafka.

use std::sync::Arc;
use std::time::Duration;

use rondel_event::{AddressPattern, Path, TopicId};
use rondel_net::kafka::Place;
use rondel_spec::{Property, Spec};

use super::yaml::{Item, Mistakes};
use super::{Address, Binding, Deployment, Durability, NetworkSettings, durability};

/// Interval of states, if the deployment has none.
const EVERY: Duration = Duration::from_millis(100);

/// The reason against settings that need all partitions, after their names.
pub const UNDIVIDABLE: &str =
    "cannot be used with `kafka.group`: publish verdicts to a topic, and use them from there";

/// Returns the settings that a deployment has and that need all partitions. Reading a deployment
/// refuses them, and options of a command may still set some.
pub fn undividable(deployment: &Deployment) -> impl Iterator<Item = &'static str> {
    let settings = [
        (!deployment.gates.is_empty(), "gates"),
        (deployment.record.is_some(), "record"),
        (deployment.page.is_some(), "page"),
        (deployment.foxglove.is_some(), "foxglove"),
        (deployment.group.is_some(), "group"),
        (deployment.workers.is_some_and(|workers| workers > 1), "workers"),
        (deployment.store.is_some(), "store"),
        (!deployment.driven.is_empty(), "sinks"),
        (!deployment.actions.is_empty(), "actions"),
        (deployment.synchronized.is_some(), "synchronize"),
        (deployment.alignment.progress.is_some(), "progress"),
        (deployment.clock.is_some(), "use_sim_time"),
        (deployment.watch, "reload"),
    ];
    settings.into_iter().filter_map(|(is_set, name)| is_set.then_some(name))
}

/// Completes the deployment of a member of a group, and refuses settings and properties that need all partitions. `section` is
/// `kafka:`; nothing changes without a group.
pub(super) fn divide(
    section: Option<Item<'_>>,
    networks: &NetworkSettings,
    deployment: &mut Deployment,
    mistakes: &mut Mistakes,
) {
    let is_member = networks.kafka.as_ref().is_some_and(|kafka| kafka.group.is_some());
    let Some(item) = section.filter(|_| is_member) else { return };
    let (spec, sources) = (Arc::clone(&deployment.specification.spec), &deployment.sources);
    for name in undividable(deployment) {
        mistakes.at(item, format!("`{name}` {UNDIVIDABLE}"));
    }
    match deployment.durability {
        None => {
            durability::check(item, &spec, sources, networks, mistakes);
            deployment.durability = Some(Durability::Exactly(EVERY));
        }
        Some(Durability::Exactly(_)) => {}
        Some(_) => {
            let text = "with `group`, the state of a partition has the offset up to which it contains the records: leave \
                        `durability` out, or write `exactly`";
            mistakes.at(item, text);
        }
    }
    // A partition may be silent for as long as its keys are.
    deployment.missing_after = None;
    check(item, &spec, &deployment.sources, mistakes);
}

/// Refuses topics and properties that cannot be divided by partitions.
fn check(item: Item<'_>, spec: &Spec, sources: &[Binding], mistakes: &mut Mistakes) {
    let Some(places) = places(item, spec, sources, mistakes) else { return };
    for property in &spec.properties {
        if let Err(reason) = undivided(spec, &places, property) {
            mistakes.at(item, format!("`{}` cannot be divided by partition: {reason}", property.name));
        }
    }
}

/// Returns the addresses of all sources, which are on one topic of Kafka and name the key.
fn places(item: Item<'_>, spec: &Spec, sources: &[Binding], mistakes: &mut Mistakes) -> Option<Vec<Place>> {
    let before = mistakes.errors.len();
    let mut places: Vec<Place> = Vec::new();
    for (topic, Binding { address, .. }) in spec.topics.iter().zip(sources) {
        let place = match address {
            Address::Kafka(place, _) => Place::parse(place).ok(),
            _ => None,
        };
        let Some(place) = place else {
            mistakes.at(
                item,
                format!(
                    "topic '{}' is not on Kafka: messages of {address} would reach every member of the group",
                    topic.name
                ),
            );
            continue;
        };
        let name = place.topic.clone();
        match &place.key {
            Some(key) if key.contains('{') => {}
            Some(_) => mistakes.at(
                item,
                format!(
                    "topic '{}' reads one key, whose records are in one partition: leave `group` out",
                    topic.name
                ),
            ),
            None => mistakes.at(
                item,
                format!(
                    "the address of topic '{}' does not name the key: write kafka:{name}/{{key}}",
                    topic.name
                ),
            ),
        }
        if let Some(first) = places.first().filter(|first| first.topic != name) {
            mistakes.at(
                item,
                format!(
                    "topics '{}' and '{name}' of Kafka cannot be divided together, since partitions of two topics go to \
                     different members: publish the messages on one topic, and distinguish them by a header, such as \
                     kafka:{}/{{key}};type=a",
                    first.topic, first.topic
                ),
            );
        }
        places.push(place);
    }
    (mistakes.errors.len() == before).then_some(places)
}

/// Checks that every instance of a property gets messages of one partition only.
///
/// # Errors
/// The reason why not, with the way out.
fn undivided(spec: &Spec, places: &[Place], property: &Property) -> Result<(), String> {
    if property.criterion.is_some() {
        return Err("`assert` is about the whole run, and a member sees a part of it".to_owned());
    }
    let slice = property.slice.and_then(|slice| spec.slices.get(slice.0 as usize));
    let slice = slice.ok_or_else(|| {
        "it has no `for each` over the key of the records, so that it compares messages of all partitions; write `for each \
         vehicle in car.vehicle`"
            .to_owned()
    })?;
    let mut read = spec.needs(property).topics;
    read.extend(&property.mentions);
    let mut first: Option<(TopicId, String)> = None;
    for topic in read {
        let name = spec.topics.get(topic.index()).map_or("", |topic| topic.name.as_str());
        let Some(key) = places.get(topic.index()).and_then(|place| place.key.as_deref()) else {
            return Err(format!("it reads events of the topic `{name}`, which Kafka does not report"));
        };
        let key = keyed(key, |parameter| {
            let path = Path::keys([parameter]);
            let is_it = |(of, field): &(TopicId, Path)| (*of, field) == (topic, &path);
            let at = slice.keys.iter().position(|key| key.fields.iter().any(is_it));
            at.ok_or_else(|| {
                format!(
                    "`{name}.{parameter}` is a part of the key and no parameter of its `for each`: messages of one instance \
                     may be in several partitions"
                )
            })
        })?;
        match &first {
            None => first = Some((topic, key)),
            Some((other, known)) if *known != key => {
                let other = spec.topics.get(other.index()).map_or("", |topic| topic.name.as_str());
                return Err(format!(
                    "it joins `{other}` and `{name}`, whose keys have its parameters in another order: their messages may be \
                     in different partitions"
                ));
            }
            Some(_) => {}
        }
    }
    Ok(())
}

/// Returns a key with the numbers of parameters in the place of their names.
fn keyed(key: &str, number: impl Fn(&str) -> Result<usize, String>) -> Result<String, String> {
    let pattern = AddressPattern::parse(key).ok().flatten();
    let mut text = key.to_owned();
    for parameter in pattern.iter().flat_map(AddressPattern::parameters) {
        text = text.replace(&format!("{{{parameter}}}"), &format!("{{{}}}", number(parameter)?));
    }
    Ok(text)
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    /// The reason why the first property of a specification cannot be divided.
    fn reason(text: &str, addresses: &[&str]) -> Option<String> {
        let spec = rondel_spec::parse(text).spec.unwrap();
        let places: Vec<Place> = addresses.iter().map(|address| Place::parse(address).unwrap()).collect();
        undivided(&spec, &places, &spec.properties[0]).err()
    }

    #[test]
    fn properties_are_divided_by_the_key_of_records() {
        let car = "topic car \"telemetry/{site}/{vehicle}\" { v: float }\n";
        let key = &["telemetry/{site}/{vehicle}"];
        let both = "property p for each vehicle in car.vehicle, site in car.site = car.v < 3";
        assert_eq!(reason(&format!("{car}{both}"), key), None);
        for (property, part) in [
            ("property p = car.v < 3", "no `for each`"),
            ("property p for each vehicle in car.vehicle = car.v < 3", "`car.site` is a part of the key"),
            ("assert p = always car.v < 3", "about the whole run"),
        ] {
            let reason = reason(&format!("{car}{property}"), key).unwrap();
            assert!(reason.contains(part), "{reason}");
        }
        // A header beside the key divides instances further.
        let headed = "topic car \"t/{vehicle}/{tenant}\" { v: float }\n\
             property p for each vehicle in car.vehicle, tenant in car.tenant = car.v < 3";
        assert_eq!(reason(headed, &["t/{vehicle};tenant={tenant}"]), None);
    }

    #[test]
    fn joined_topics_have_the_same_key() {
        let topics = "topic a \"t/{x}/{y}\" { v: float }\ntopic b \"u/{x}/{y}\" { v: float }\n\
             property p for each x in (a.x, b.x), y in (a.y, b.y) = a.v < b.v";
        let same = ["t/{x}/{y};type=a", "t/{x}/{y};type=b"];
        let other = ["t/{x}/{y};type=a", "t/{y}/{x};type=b"];
        assert_eq!(reason(topics, &same), None);
        assert!(reason(topics, &other).unwrap().contains("another order"));
    }
}
