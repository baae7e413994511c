//! Sequence numbers that messages have in their payloads: those of Sparkplug, from 0 to 255, which the messages of a node
//! and of all its devices share.

use std::collections::HashMap;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::Arc;

use rondel_decode::lines::{is_matched, without_network};
use rondel_decode::sparkplug::{Address, Kind, sequence};
use rondel_event::{NameId, Origin, TopicId};

use crate::session::{SessionPlan, Stamp};
use crate::specification::names::TopicNames;
use crate::specification::recorded_names;

/// The number of the first message of a node, so that none is below zero.
const FIRST: u64 = 8;

/// The numbers of all topics.
pub(in crate::session) struct PayloadNumbers {
    topics: Vec<Option<TopicNumbers>>,
}

struct TopicNumbers {
    names: Arc<TopicNames>,
    /// The addresses, without their networks.
    addresses: Vec<String>,
    /// Node of each topic name, if its messages have numbers that count.
    places: Vec<Option<Option<Place>>>,
    nodes: Vec<Node>,
    known: HashMap<String, Option<usize>>,
    /// Number of messages before the snapshot from which the session continues: part of the publishers' hashes.
    since: u64,
}

/// The node whose messages have a name, and whether they are its births.
type Place = (usize, bool);

struct Node {
    publisher: u64,
    /// The number of the last message, and what it is with all rounds before.
    last: Option<(u8, u64)>,
}

impl PayloadNumbers {
    /// Those of the topics of a plan, if some have any; `since` is the number of messages before a snapshot.
    pub(in crate::session) fn new(plan: &SessionPlan, since: u64) -> Option<Box<PayloadNumbers>> {
        let topics = (0..).map(TopicId).zip(&plan.specification.spec.topics).zip(&plan.options.inputs);
        let numbers = topics.map(|((id, topic), input)| {
            let names = plan.names(id).filter(|_| input.encoding.reads_name())?;
            let addresses = recorded_names(topic, input);
            let addresses = addresses.iter().map(|name| without_network(name).unwrap_or(name).to_owned());
            Some(TopicNumbers {
                names: Arc::clone(names),
                addresses: addresses.collect(),
                places: Vec::new(),
                nodes: Vec::new(),
                known: HashMap::new(),
                since,
            })
        });
        let topics: Vec<_> = numbers.collect();
        topics.iter().any(Option::is_some).then(|| Box::new(PayloadNumbers { topics }))
    }

    /// Number of nodes of each topic whose messages also belong to another topic, so that their losses do not show.
    pub(in crate::session) fn unwatched(&self) -> impl Iterator<Item = usize> + '_ {
        let count = |numbers: &TopicNumbers| numbers.known.values().filter(|node| node.is_none()).count();
        self.topics.iter().map(move |numbers| numbers.as_ref().map_or(0, count))
    }

    /// The publisher and the number of a message: those that its payload states, where the topic has such.
    pub(in crate::session) fn origin(
        &mut self,
        topic: TopicId,
        stamp: &Stamp,
        payload: &[u8],
    ) -> Option<Origin> {
        match self.topics.get_mut(topic.index()) {
            Some(Some(numbers)) => numbers.origin(stamp.name?, payload),
            _ => stamp.origin,
        }
    }
}

impl TopicNumbers {
    fn origin(&mut self, name: NameId, payload: &[u8]) -> Option<Origin> {
        let known = self.places.get(name.0 as usize).copied().flatten();
        let (node, is_birth) = known.unwrap_or_else(|| self.place(name))?;
        let number = sequence(payload)?;
        Some(self.nodes[node].origin(number, is_birth))
    }

    #[cold]
    fn place(&mut self, id: NameId) -> Option<Place> {
        let name = self.names.name(id)?;
        let address = Address::parse(&name);
        let is_birth = |address: &Address<'_>| address.kind == Kind::Birth && address.device.is_none();
        let place = address.and_then(|address| Some((self.node(&address)?, is_birth(&address))));
        let at = id.0 as usize;
        if at >= self.places.len() {
            self.places.resize(at + 1, None);
        }
        self.places[at] = Some(place);
        place
    }

    /// The node, if all its messages belong to this topic: otherwise those of other topics would be missing.
    fn node(&mut self, address: &Address<'_>) -> Option<usize> {
        let Address { group, node, .. } = address;
        let key = format!("{group}/{node}");
        if let Some(known) = self.known.get(&key) {
            return *known;
        }
        let whole = ["NBIRTH", "NDATA", "DBIRTH", "DDATA", "DDEATH"].iter().all(|kind| {
            // A device name that no node can have.
            let device = if kind.starts_with('D') { "/\u{1}" } else { "" };
            let name = format!("spBv1.0/{group}/{kind}/{node}{device}");
            self.addresses.iter().any(|own| is_matched(own, &name))
        });
        let number = whole.then(|| {
            let mut hasher = DefaultHasher::new();
            (&key, self.since).hash(&mut hasher);
            self.nodes.push(Node { publisher: hasher.finish(), last: None });
            self.nodes.len() - 1
        });
        self.known.insert(key, number);
        number
    }
}

impl Node {
    fn origin(&mut self, number: u8, is_birth: bool) -> Origin {
        let Some((last, whole)) = self.last else {
            self.last = Some((number, FIRST));
            return Origin { publisher: self.publisher, number: FIRST };
        };
        let whole = match (is_birth, number.wrapping_sub(last)) {
            // The number of messages lost before a birth is unknown.
            (true, _) => whole + 1,
            // MQTT keeps the order of a node's messages, and may repeat one. A number below the last one is of a later
            // round, or follows a birth that was missed.
            (false, forward) => whole + u64::from(forward),
        };
        self.last = Some((number, whole));
        Origin { publisher: self.publisher, number: whole }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The numbers that a node has given to messages of these ones.
    fn wholes(numbers: impl IntoIterator<Item = (u8, bool)>) -> Vec<u64> {
        let mut node = Node { publisher: 7, last: None };
        numbers.into_iter().map(|(number, is_birth)| node.origin(number, is_birth).number).collect()
    }

    #[test]
    fn rounds_follow_each_other() {
        let data = |number| (number, false);
        assert_eq!(wholes([254, 255, 0, 1].map(data)), [8, 9, 10, 11]);
        assert_eq!(wholes([254, 1].map(data)), [8, 11]);
        assert_eq!(wholes([10, 12, 12, 13].map(data)), [8, 10, 10, 11]);
        // A birth was missed.
        assert_eq!(wholes([2, 3, 1, 2].map(data)), [8, 9, 263, 264]);
        assert_eq!(wholes([10, 2].map(data)), [8, 256]);
        assert_eq!(wholes([data(10), (0, true), data(1), data(3)]), [8, 9, 10, 12]);
    }
}
