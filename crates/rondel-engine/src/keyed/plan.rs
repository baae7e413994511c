//! Sections that are divided by key.

use std::sync::Arc;

use rondel_event::{Block, Rows, Slot, TopicId, ValueType};

use super::keys::{KeptKey, KeyPlan};
use super::record::Layout;
use super::table::FOUND;
use crate::exec::memory::{Memory, of_machine};
use crate::exec::section::Section;

/// How a section is divided by key.
#[derive(Clone, Debug)]
pub(crate) struct SlicePlan {
    pub(crate) keys: KeyPlan,
    /// The topics that its properties read and whose messages concern all instances.
    pub(crate) shared: Vec<TopicId>,
    /// The topics of events with keys, and the slots that tell an event of one instance.
    pub(crate) events: Vec<(TopicId, Vec<Slot>)>,
    /// How many instances there may be at a time.
    pub(crate) limit: u64,
    /// The topics of elements with keys.
    pub(crate) elements: Vec<TopicId>,
}

impl SlicePlan {
    /// The rows with events of a topic as a whole, which have no key.
    pub(crate) fn whole(&self, block: &Block) -> Rows {
        let of_one = |slots: &[Slot]| slots.iter().fold(0, |rows, slot| rows | block.present(*slot));
        self.events.iter().fold(0, |rows, (topic, slots)| rows | block.topic_rows(*topic) & !of_one(slots))
    }

    /// The rows that concern all instances; `whole` are those of [`SlicePlan::whole`].
    pub(crate) fn shared_rows(&self, block: &Block, whole: Rows) -> Rows {
        let is_of_events = |topic: &TopicId| self.events.iter().any(|(of, _)| of == topic);
        self.shared.iter().fold(0, |rows, topic| {
            let of_topic = block.topic_rows(*topic);
            rows | if is_of_events(topic) { of_topic & whole } else { of_topic }
        })
    }
}

/// A section that is divided by key. If its instances end at a condition, that is the formula after those
/// of the properties.
#[derive(Clone, Debug)]
pub(crate) struct Sliced {
    pub(crate) section: Arc<Section>,
    pub(crate) plan: Arc<SlicePlan>,
}

impl Sliced {
    /// Whether instances end at a condition.
    pub(super) fn ends(&self) -> bool {
        self.section.formulas.len() > self.section.properties.len()
    }

    /// What an instance keeps.
    pub(crate) fn memory(&self) -> Memory {
        let Sliced { section, plan } = self;
        let record = Layout::new(section).words * size_of::<u64>();
        // A key of several words is beside the record. A text may be short enough to be one; nobody knows yet.
        let beside = if plan.keys.is_word() { 0 } else { size_of::<KeptKey>() };
        let machines: usize = section.initial.machines.iter().map(of_machine).sum();
        let memory = section.memory_beside();
        Memory {
            by_key: true,
            bytes: record + FOUND + beside + machines,
            texts: memory.texts + usize::from(plan.keys.types.contains(&ValueType::String)),
            ..memory
        }
    }
}
