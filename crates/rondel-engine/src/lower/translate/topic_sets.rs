//! Sets of topics that nodes refer to.

use std::collections::HashMap;

use rondel_event::TopicId;
use rondel_spec::ExprId;

use super::Translator;
use crate::CompileError;

/// Index of a set of topics that a node refers to. Set 0 is empty.
pub(super) type SetId = usize;

/// Sets of topics, each stored once.
pub(super) struct TopicSets {
    sets: Vec<Vec<TopicId>>,
    index: HashMap<Vec<TopicId>, SetId>,
    unions: HashMap<(SetId, SetId), SetId>,
}

impl TopicSets {
    /// The empty set alone.
    pub(super) fn new() -> TopicSets {
        TopicSets { sets: vec![Vec::new()], index: HashMap::from([(Vec::new(), 0)]), unions: HashMap::new() }
    }

    /// The topics of a set.
    pub(super) fn topics(&self, set: SetId) -> &[TopicId] {
        &self.sets[set]
    }

    /// Returns the set of these topics, which are sorted.
    pub(super) fn set(&mut self, topics: Vec<TopicId>) -> SetId {
        let (sets, index) = (&mut self.sets, &mut self.index);
        *index.entry(topics).or_insert_with_key(|topics| {
            sets.push(topics.clone());
            sets.len() - 1
        })
    }

    pub(super) fn union(&mut self, a: SetId, b: SetId) -> SetId {
        let pair = (a.min(b), a.max(b));
        if pair.0 == 0 || a == b {
            return pair.1;
        }
        if let Some(&known) = self.unions.get(&pair) {
            return known;
        }
        let mut topics = [&self.sets[a][..], &self.sets[b][..]].concat();
        topics.sort_unstable();
        topics.dedup();
        let set = self.set(topics);
        self.unions.insert(pair, set);
        set
    }
}

impl Translator<'_> {
    /// The set of one topic.
    pub(super) fn topic_set(&mut self, node: ExprId, topic: TopicId) -> Result<SetId, CompileError> {
        let topics = self.spec.topics.len();
        if topic.index() >= topics {
            return Err(CompileError::UnknownTopic { node, topic, topics });
        }
        Ok(self.sets.set(vec![topic]))
    }
}
