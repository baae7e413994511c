//! Topics that are patterns, such as `fleet/+/pose`: the messages of all topics that match are one stream.

use rondel_decode::lines::{is_matched, is_pattern};
use rondel_decode::sparkplug::Address;
use rondel_event::{AddressPattern, TopicId, globs_meet};
use rondel_spec::{Property, Spec, Topic, is_name};

use super::formula;
use super::input::Input;

/// A sentence for each pattern of whose latest values some property reads: those of one robot replace those of
/// another there.
pub(crate) fn sentences(spec: &Spec, inputs: &[Input]) -> Vec<String> {
    let topics = (0..).map(TopicId).zip(&spec.topics).zip(inputs);
    topics.filter_map(|((id, topic), input)| sentence(spec, id, topic, input)).collect()
}

fn sentence(spec: &Spec, id: TopicId, topic: &Topic, input: &Input) -> Option<String> {
    let pattern =
        [input.address.as_ref(), Some(&topic.address)].into_iter().flatten().find(|name| is_pattern(name))?;
    // All these are about the same things.
    if Address::names_node(pattern) {
        return None;
    }
    let reads = |property: &&Property| spec.undivided(property).contains(&id);
    let reading: Vec<&Property> = spec.properties.iter().filter(reads).collect();
    let (first, others) = reading.split_first()?;
    let others = match others.len() {
        0 => String::new(),
        1 => " and 1 other property".to_owned(),
        more => format!(" and {more} other properties"),
    };
    Some(format!(
        "{} is the pattern {pattern}: where several topics match, a message of one replaces the values of another in \
         {}{others}; {} them apart",
        topic.name,
        first.name,
        remedy(spec, first, topic)
    ))
}

/// Remedy that separates the messages on a pattern in a property, beginning with a verb.
fn remedy(spec: &Spec, property: &Property, topic: &Topic) -> String {
    if property.linear || property.criterion.is_some() {
        return "topics with addresses of their own keep".to_owned();
    }
    let pattern = topic.pattern();
    let parameters: Vec<&str> = pattern.iter().flat_map(|pattern| pattern.parameters()).collect();
    let slice = property.slice.and_then(|slice| spec.slices.get(slice.0 as usize));
    if let Some(slice) = slice {
        // A topic has a field for every parameter, or for none.
        let keys = slice.keys.iter().enumerate().map(|(i, key)| {
            let fields =
                key.fields.iter().map(|(topic, path)| formula::field(spec, *topic, &path.as_listed()));
            let own = match parameters.get(i) {
                Some(parameter) => format!("{}.{parameter}", topic.name),
                None => format!("{}.…", topic.name),
            };
            let fields: Vec<String> = fields.chain([own]).collect();
            format!("{} in ({})", key.name, fields.join(", "))
        });
        return format!("`for each {}` keeps", keys.collect::<Vec<_>>().join(", "));
    }
    if parameters.is_empty() {
        return "`for each` over a field, or over a parameter of the address, as in \"fleet/{robot}/pose\", keeps".to_owned();
    }
    let is_free = |name: &str| is_name(name) && spec.declared().iter().all(|topic| topic.name != name);
    let keys = parameters.iter().map(|parameter| {
        let end = if is_free(parameter) { "" } else { "_id" };
        format!("{parameter}{end} in {}.{parameter}", topic.name)
    });
    format!("`for each {}` keeps", keys.collect::<Vec<_>>().join(", "))
}

/// A sentence for each topic that a pattern of another topic matches: a line of a recording belongs to one of them, a
/// message of a network to both.
pub(crate) fn overlaps(spec: &Spec, inputs: &[Input]) -> Vec<String> {
    let names = |(topic, input): (&Topic, &Input)| -> Vec<String> {
        [Some(&topic.address), input.address.as_ref()].into_iter().flatten().cloned().collect()
    };
    let all: Vec<(&Topic, Vec<String>)> =
        spec.declared().iter().zip(inputs).map(|pair| (pair.0, names(pair))).collect();
    let mut sentences = Vec::new();
    for (i, (topic, names)) in all.iter().enumerate() {
        for (other, others) in all.iter().skip(i + 1) {
            let meet =
                |one: &&String| is_pattern(one) && others.iter().any(|other| patterns_meet(one, other));
            if let Some(pattern) = names.iter().find(meet) {
                sentences.push(format!(
                    "{pattern} of {} and the pattern of {} match the same names: in a recording their messages count for \
                     {} only, in a run for both",
                    topic.name, other.name, topic.name
                ));
            }
        }
    }
    for (topic, names) in all.iter().filter(|(_, names)| !names.iter().any(|name| is_pattern(name))) {
        for (other, patterns) in &all {
            let matches = |pattern: &&String| names.iter().any(|name| is_matched(pattern, name));
            if let Some(pattern) = patterns.iter().find(matches) {
                sentences.push(format!(
                    "{} matches {pattern}, the pattern of {}: in a recording its messages count for {} only, in a run for \
                     both",
                    topic.name, other.name, topic.name
                ));
            }
        }
    }
    sentences
}

/// Whether some name matches both patterns.
fn patterns_meet(one: &str, other: &str) -> bool {
    if !is_pattern(other) {
        return false;
    }
    let globs = |text: &str| -> Vec<String> {
        let text = match AddressPattern::parse(text) {
            Ok(Some(pattern)) => pattern.glob(),
            _ => text.to_owned(),
        };
        let segments = text.strip_prefix('/').unwrap_or(&text).split('/');
        segments
            .map(|segment| if segment == "+" { "*".to_owned() } else { segment.replace("$*", "*") })
            .collect()
    };
    let (one, other) = (globs(one), globs(other));
    let takes_all =
        |segment: Option<&String>| segment.is_some_and(|segment| segment == "#" || segment == "**");
    for i in 0.. {
        match (one.get(i), other.get(i)) {
            (None, None) => return true,
            (a, b) if takes_all(a) || takes_all(b) => return true,
            (Some(a), Some(b)) if globs_meet(a, b) => {}
            _ => return false,
        }
    }
    false
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn patterns_that_match_the_same_names_are_named() {
        for (one, other, count) in [
            ("fleet/{robot}/pose", "fleet/{id}/{kind}", 1),
            ("fleet/{robot}/pose", "/fleet/r{n}/pose", 1),
            ("fleet/{robot}/pose", "fleet/{robot}/speed", 0),
            ("fleet/{robot}/pose", "fleet/#", 1),
            ("fleet/{robot}/pose", "fleet/{robot}/arm/pose", 0),
            ("fleet/+/pose", "fleet/+/pose", 1),
        ] {
            let text = format!("topic a \"{one}\" topic b \"{other}\"");
            let spec = rondel_spec::parse(&text).spec.unwrap();
            assert_eq!(overlaps(&spec, &vec![Input::default(); 2]).len(), count, "{text}");
        }
    }

    #[test]
    fn remedy_fits_the_property() {
        let topics = "topic pose \"{site}/{robot}/pose\" { x: float } topic speed \"fleet/{r}/speed\" { v: float } \
                      topic mover \"{mover}/{if}/x\" { x: float }";
        for (property, expected) in [
            ("property p = pose.x > 3", "`for each site in pose.site, robot in pose.robot` keeps"),
            (
                "property p for each robot in pose.robot = pose.x > speed.v",
                "`for each robot in (pose.robot, speed.r)` keeps",
            ),
            ("property p = mover.x > 3", "`for each mover_id in mover.mover, if_id in mover.if` keeps"),
            ("@linear property p = speed.v > 3", "topics with addresses of their own keep"),
            ("property p for each r in (pose.robot, speed.r) = pose.x > speed.v", ""),
        ] {
            let spec = rondel_spec::parse(&format!("{topics} {property}")).spec.unwrap();
            let sentences = sentences(&spec, &vec![Input::default(); 3]);
            let end = format!("in p; {expected} them apart");
            assert_eq!(sentences.len(), usize::from(!expected.is_empty()), "{sentences:?}");
            assert!(sentences.iter().all(|sentence| sentence.ends_with(&end)), "{sentences:?}");
        }
    }

    #[test]
    fn a_topic_that_another_ones_pattern_matches_is_named() {
        let text = "topic all \"fleet/+/pose\" topic one \"fleet/r1/pose\" topic other \"fleet/r1/speed\"";
        let spec = rondel_spec::parse(text).spec.unwrap();
        let sentences = overlaps(&spec, &vec![Input::default(); 3]);
        let [sentence] = &sentences[..] else { unreachable!("{sentences:?}") };
        assert!(sentence.starts_with("one matches fleet/+/pose, the pattern of all: "), "{sentence}");
    }
}
