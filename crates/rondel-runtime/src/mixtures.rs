//! Topics that are patterns, such as `fleet/+/pose`: the messages of all topics that match are one stream.

use rondel_decode::lines::is_pattern;
use rondel_event::TopicId;
use rondel_spec::{Property, Spec, Topic};

use crate::options::Input;

/// A sentence for each pattern of whose latest values some property reads: those of one robot replace those of
/// another there.
pub(crate) fn sentences(spec: &Spec, inputs: &[Input]) -> Vec<String> {
    let topics = (0..).map(TopicId).zip(&spec.topics).zip(inputs);
    topics.filter_map(|((id, topic), input)| sentence(spec, (id, topic), input)).collect()
}

fn sentence(spec: &Spec, (id, topic): (TopicId, &Topic), input: &Input) -> Option<String> {
    let pattern =
        [input.address.as_ref(), Some(&topic.address)].into_iter().flatten().find(|name| is_pattern(name))?;
    let reads = |property: &&Property| spec.undivided(property).contains(&id);
    let names: Vec<&str> = spec.properties.iter().filter(reads).map(|property| &*property.name).collect();
    let (first, others) = names.split_first()?;
    let others = match others.len() {
        0 => String::new(),
        1 => " and 1 other property".to_owned(),
        more => format!(" and {more} other properties"),
    };
    Some(format!(
        "{} is the pattern {pattern}: where several topics match, a message of one replaces the values of another in \
         {first}{others}; `for each` over a field keeps them apart",
        topic.name
    ))
}
