//! Sections with instances per parameter value.

use std::sync::Arc;

use rondel_event::{Block, Rows, Slot, TopicId, ValueType};

use super::keys::{KeptKey, KeyPlan};
use super::record::Layout;
use super::table::FOUND;
use crate::exec::memory::{Memory, of_machine};
use crate::exec::section::Section;

/// Division of a section into instances.
#[derive(Clone, Debug)]
pub(crate) struct SlicePlan {
    pub(crate) keys: KeyPlan,
    /// Topics that its properties read and whose messages concern all instances.
    pub(crate) shared: Vec<TopicId>,
    /// Topics of events with keys, and the slots that identify events of a single instance.
    pub(crate) events: Vec<(TopicId, Vec<Slot>)>,
    /// Maximum number of instances at a time.
    pub(crate) limit: u64,
    /// Topics of elements with keys.
    pub(crate) elements: Vec<TopicId>,
}

impl SlicePlan {
    /// Returns the rows with events of a topic as a whole, which have no key.
    pub(crate) fn whole(&self, block: &Block) -> Rows {
        let of_one = |slots: &[Slot]| slots.iter().fold(0, |rows, slot| rows | block.present(*slot));
        self.events.iter().fold(0, |rows, (topic, slots)| rows | block.topic_rows(*topic) & !of_one(slots))
    }

    /// Returns the rows that concern all instances; `whole` are those of [`SlicePlan::whole`].
    pub(crate) fn shared_rows(&self, block: &Block, whole: Rows) -> Rows {
        let is_of_events = |topic: &TopicId| self.events.iter().any(|(of, _)| of == topic);
        self.shared.iter().fold(0, |rows, topic| {
            let of_topic = block.topic_rows(*topic);
            rows | if is_of_events(topic) { of_topic & whole } else { of_topic }
        })
    }
}

/// Section with instances. If these end at a condition, it is the formula after those of the properties.
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

    /// Returns the memory per instance.
    pub(crate) fn memory(&self) -> Memory {
        let Sliced { section, plan } = self;
        let record = Layout::new(section).words * size_of::<u64>();
        // A key of several words is stored beside the record; whether texts will be short enough for one word
        // is unknown.
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
