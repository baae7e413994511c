//! Topics by name, for callers that name the topic of each message.

use std::collections::HashMap;
use std::fmt;

use rondel_event::{NameId, Timestamp, TopicId};

use super::{SessionPlan, Stamp};

/// The topic of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Target {
    /// Its number.
    pub topic: TopicId,
    /// The number of the name that the message came under, where the address of the topic has parameters.
    pub name: Option<NameId>,
}

impl Target {
    /// The stamp of a message that was sent at this time.
    #[inline]
    pub fn stamp(self, time: Timestamp) -> Stamp {
        Stamp { name: self.name, ..Stamp::at(time) }
    }
}

/// The topics of a plan by their names, and by their addresses where these name a single one.
#[derive(Clone, Debug)]
pub struct Targets {
    /// Those of addresses without parameters; the keys come from the specification.
    topics: HashMap<String, TopicId, foldhash::fast::FixedState>,
}

/// Error of a name that belongs to no topic.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnknownTopic {
    sentence: String,
}

impl fmt::Display for UnknownTopic {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.sentence)
    }
}

impl std::error::Error for UnknownTopic {}

impl Targets {
    /// The topics of a plan.
    pub fn new(plan: &SessionPlan) -> Targets {
        let all = plan.specification().spec.topics.iter().zip((0..).map(TopicId));
        let all: Vec<_> = all.filter(|(_, id)| plan.names(*id).is_none()).collect();
        let mut addresses: HashMap<String, Option<TopicId>> = HashMap::new();
        for (topic, id) in &all {
            addresses.entry(topic.address.clone()).and_modify(|entry| *entry = None).or_insert(Some(*id));
        }
        let addresses = addresses.into_iter().filter_map(|(address, id)| Some((address, id?)));
        // Names are stronger than addresses.
        Targets { topics: addresses.chain(all.iter().map(|(topic, id)| (topic.name.clone(), *id))).collect() }
    }

    /// Returns the topic of `plan` with this name or address, and the number of the name where the address has parameters.
    ///
    /// # Errors
    /// [`UnknownTopic`] lists the topics.
    #[inline]
    pub fn find(&self, plan: &SessionPlan, name: &str) -> Result<Target, UnknownTopic> {
        match self.topics.get(name) {
            Some(topic) => Ok(Target { topic: *topic, name: None }),
            None => find_named(plan, name),
        }
    }
}

/// Returns the topic whose address has parameters and matches this name.
fn find_named(plan: &SessionPlan, name: &str) -> Result<Target, UnknownTopic> {
    let topics = &plan.specification().spec.topics;
    for (topic, id) in topics.iter().zip((0..).map(TopicId)) {
        let Some(names) = plan.names(id) else { continue };
        if name == topic.name || name == topic.address {
            let sentence = format!(
                "the address of topic '{}' has parameters: push to a name that matches '{}'",
                topic.name, topic.address
            );
            return Err(UnknownTopic { sentence });
        }
        if let Some(number) = names.number(name) {
            return Ok(Target { topic: id, name: Some(number) });
        }
    }
    let known: Vec<&str> = topics.iter().map(|topic| topic.name.as_str()).collect();
    let sentence = format!("the specification has no topic '{name}'; it has {}", known.join(", "));
    Err(UnknownTopic { sentence })
}
