//! Topics, fields and premises that properties need and that never occurred: without them, a verdict says nothing about
//! the system.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use rondel_event::{Block, PackedTable, Path, Projection, Read, Slot, Table, TopicEvent, TopicId};
use rondel_spec::{Bounds, Class, ExprId, NeededField, Needs, Property, Spec, TimeModel};
use serde_json::{Value, json};

use crate::report::notice::Notice;
use crate::specification::Specification;
use crate::specification::formula;
use crate::text::grouped;

/// Needs of the properties of a specification.
#[derive(Clone, Debug, Default)]
pub(crate) struct Needed {
    /// Names of the topics; `None` for the only topic of a bare formula.
    topics: Vec<Option<String>>,
    /// The number of declared topics; the topics of events follow them.
    declared: usize,
    /// The names of the properties.
    names: Vec<String>,
    /// Topics and fields of each property.
    properties: Vec<Needs>,
    /// Topics for which NaN matters, for each property.
    numbers: Vec<Vec<TopicId>>,
    /// Whether each property can be decided although a value that it reads is unknown.
    takes_unknown: Vec<bool>,
    /// Premises of each property.
    premises: Vec<Vec<Premise>>,
    /// Whether each property measures time.
    timed: Vec<bool>,
}

/// The premise of an implication in a property.
#[derive(Clone, Debug)]
struct Premise {
    text: String,
    needs: Needs,
}

impl Needed {
    /// Name of a topic; `None` for the only topic of a bare formula.
    pub(crate) fn name_of(&self, topic: TopicId) -> Option<&str> {
        self.topics.get(topic.index())?.as_deref()
    }

    /// The declared topics that a property, by its position, reads.
    pub(crate) fn topics_of(&self, property: usize) -> &[TopicId] {
        self.properties.get(property).map_or(&[], |needs| &needs.topics)
    }

    /// Declared topics for which NaN matters to a property, by its position.
    pub(crate) fn numbers_of(&self, property: usize) -> &[TopicId] {
        self.numbers.get(property).map_or(&[], Vec::as_slice)
    }

    /// Whether a property, by its position, can be decided although a value that it reads is unknown.
    pub(crate) fn takes_unknown_for_false(&self, property: usize) -> bool {
        self.takes_unknown.get(property).copied().unwrap_or_default()
    }

    /// The fields that a property, by its position, needs: topic, path, and whether a value is needed.
    pub(crate) fn fields_of(&self, property: usize) -> impl Iterator<Item = (u32, String, bool)> + '_ {
        let fields = self.properties.get(property).into_iter().flat_map(|needs| &needs.fields);
        fields.map(|field| (field.topic.0, field.path.to_string(), field.value))
    }

    pub(crate) fn new(specification: &Specification) -> Needed {
        let Specification { spec, is_formula, .. } = specification;
        let name = |topic: &rondel_spec::Topic| (!is_formula).then(|| topic.name.clone());
        // Parameters only assign an event to an instance; a property does not need such an event.
        let needs = |property: &Property| {
            let mut needs = spec.needs(property);
            let is_event = |topic: TopicId| spec.events_of(topic).is_some();
            needs.fields.retain(|f| !is_event(f.topic) || TopicEvent::named(&f.path.to_string()).is_some());
            let fields = &needs.fields;
            needs.topics.retain(|topic| !is_event(*topic) || fields.iter().any(|f| f.topic == *topic));
            needs
        };
        let premises = spec.properties.iter().map(|property| {
            let premise = |premise: &ExprId| Premise {
                text: formula::written_briefly(spec, *premise, property, LONGEST),
                needs: needs(&Property { formula: *premise, ..property.clone() }),
            };
            property.premises.iter().map(premise).collect()
        });
        Needed {
            topics: spec.topics.iter().map(name).collect(),
            declared: spec.declared().len(),
            names: spec.properties.iter().map(|property| property.name.clone()).collect(),
            properties: spec.properties.iter().map(needs).collect(),
            numbers: spec.properties.iter().map(|property| spec.needs_numbers(property)).collect(),
            takes_unknown: spec.properties.iter().map(|own| spec.takes_unknown_for_false(own)).collect(),
            premises: premises.collect(),
            timed: spec.properties.iter().map(|property| measures_time(spec, property)).collect(),
        }
    }

    /// Reasons why a property that measures time says nothing: the topics without any message that carried a time.
    pub(crate) fn without_time(
        &self,
        property: usize,
        never_stamped: impl Fn(TopicId) -> bool,
    ) -> Vec<Vacuous> {
        let needs = self.properties.get(property).filter(|_| self.timed.get(property) == Some(&true));
        let topics = needs.into_iter().flat_map(|needs| &needs.topics).filter(|topic| never_stamped(**topic));
        let reason = |id: &TopicId| {
            let topic = self.topics.get(id.index()).cloned().flatten();
            let on = topic.as_ref().map(|name| format!(" on `{name}`")).unwrap_or_default();
            let text = format!("no message{on} carried a time, so that no time passes");
            Vacuous { kind: VacuousKind::Time, topic, field: None, text }
        };
        topics.map(reason).collect()
    }

    /// Whether the messages of a topic are the events of another one.
    fn is_of_events(&self, topic: TopicId) -> bool {
        topic.index() >= self.declared
    }
}

/// Returns whether the verdict of a property depends on times.
fn measures_time(spec: &Spec, property: &Property) -> bool {
    if property.time == TimeModel::Steps {
        return false;
    }
    spec.below(property.formula).any(|(_, node)| {
        matches!(node.class(), Class::Measure | Class::Machine)
            || node.bounds().is_some_and(|bounds| bounds != Bounds::ALL)
    })
}

/// Reason why a property is vacuous: its verdict would be the same if the system did nothing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Vacuous {
    /// Kind of missing input.
    pub kind: VacuousKind,
    /// Topic; `None` for a premise, and for the only topic of a bare formula.
    pub topic: Option<String>,
    /// The field, without its topic.
    pub field: Option<String>,
    /// A sentence for people.
    pub text: String,
}

/// Missing input of a property.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum VacuousKind {
    /// A message on a topic.
    Topic,
    /// A message with a value for a field.
    Field,
    /// An event of a topic, such as a missed deadline.
    Event,
    /// A message on a topic with a time of its own, where the property measures time.
    Time,
    /// A time point at which the premise of an implication was certainly true.
    Premise,
}

impl VacuousKind {
    /// The kind in one word.
    pub fn as_str(self) -> &'static str {
        match self {
            VacuousKind::Topic => "topic",
            VacuousKind::Field => "field",
            VacuousKind::Event => "event",
            VacuousKind::Time => "time",
            VacuousKind::Premise => "premise",
        }
    }
}

impl Vacuous {
    /// Returns a JSON object with the members `kind`, `topic`, `field` and `text`.
    pub fn json(&self) -> Value {
        let mut object = json!({"kind": self.kind.as_str(), "text": self.text});
        for (member, value) in [("topic", &self.topic), ("field", &self.field)] {
            if let Some(value) = value {
                object[member] = json!(value);
            }
        }
        object
    }
}

/// Topics without a message and fields without a value so far: most often misspelt names.
#[derive(Clone, Debug, Default)]
pub struct Missing {
    topics: Vec<TopicId>,
    fields: Vec<MissingField>,
    /// Number of undecodable messages per topic.
    unread: BTreeMap<TopicId, u64>,
}

/// A field without a value so far.
#[derive(Clone, Debug)]
struct MissingField {
    needed: NeededField,
    /// The name with its topic, but without that of a bare formula.
    name: String,
    /// The slots of the field in a block.
    slots: Vec<Slot>,
    /// For a field of elements: the table that holds it, and the position among its fields.
    element: Option<(Slot, Arc<Table>, usize)>,
    /// Whether it was present, but without a readable value.
    has_come: bool,
}

impl MissingField {
    /// The topic, the path and whether a value is needed.
    fn key(&self) -> (u32, String, bool) {
        (self.needed.topic.0, self.needed.path.to_string(), self.needed.value)
    }

    /// Whether it is read at all.
    fn is_read(&self) -> bool {
        !self.slots.is_empty() || self.element.is_some()
    }

    /// Records whether the field was present.
    fn note(&mut self, block: &Block) {
        self.has_come |= self.slots.iter().any(|slot| block.present(*slot) != 0);
    }

    fn is_in(&self, block: &Block) -> bool {
        if let Some((Slot::String(column), table, at)) = &self.element {
            let tables = (0..block.len()).filter_map(|row| PackedTable::new(block.text(*column, row)));
            return tables.into_iter().any(|packed| packed.has_value(table, *at));
        }
        let rows = |slot: &Slot| match self.needed.value {
            true => block.present(*slot) & !block.invalid(*slot),
            false => block.present(*slot),
        };
        self.slots.iter().any(|slot| rows(slot) != 0)
    }
}

/// [`Missing`] in a snapshot: topics by their positions; fields by topic, path and whether a value is needed, with
/// whether they were present without a readable value.
pub(crate) type SavedMissing = (Vec<u32>, Vec<((u32, String, bool), bool)>);

/// Keeps the topics and fields that were missing in both of two sessions.
pub(crate) fn join(missing: &mut SavedMissing, other: &SavedMissing) {
    let (topics, fields) = missing;
    topics.retain(|topic| other.0.contains(topic));
    fields.retain_mut(|(key, has_come)| {
        let same = other.1.iter().find(|(of, _)| *of == *key);
        *has_come |= same.is_some_and(|(_, has_come)| *has_come);
        same.is_some()
    });
}

impl Missing {
    /// Everything that a specification needs, where messages are decoded into the slots of `projections`.
    pub(crate) fn new(specification: &Specification, needed: &Needed, projections: &[Projection]) -> Missing {
        let spec = &specification.spec;
        let mut all: Vec<NeededField> =
            needed.properties.iter().flat_map(|needs| &needs.fields).cloned().collect();
        all.sort_by(|a, b| (a.topic, &a.path, a.value).cmp(&(b.topic, &b.path, b.value)));
        all.dedup();
        let slots = |topic: TopicId, path: &Path| {
            let fields = projections.get(topic.index()).into_iter().flat_map(|projection| &projection.fields);
            fields.filter(|field| field.path == *path).map(|field| field.slot).collect::<Vec<Slot>>()
        };
        let element = |topic: TopicId, path: &Path| {
            let mut fields = projections.get(topic.index()).into_iter().flat_map(|all| &all.fields);
            path.of_each()?;
            fields.find_map(|field| match &field.read {
                Read::Table(table) => {
                    let at = table.of_element().position(|field| field.path == *path)?;
                    Some((field.slot, Arc::clone(table), at))
                }
                _ => None,
            })
        };
        let field = |needed: NeededField| MissingField {
            name: match specification.is_formula {
                true => needed.path.to_string(),
                false => {
                    format!("{}.{}", spec.topics[needed.topic.index()].name, needed.path.as_listed())
                }
            },
            element: element(needed.topic, &needed.path),
            slots: slots(needed.topic, &needed.path),
            has_come: false,
            needed,
        };
        Missing {
            topics: (0..spec.topics.len() as u32).map(TopicId).collect(),
            // Fields that no message is read for are folded away, and have no influence.
            fields: all.into_iter().map(field).filter(MissingField::is_read).collect(),
            unread: BTreeMap::new(),
        }
    }

    /// Counts an undecodable message.
    pub(crate) fn unread(&mut self, topic: TopicId) {
        *self.unread.entry(topic).or_default() += 1;
    }

    /// Whether every topic and field has occurred.
    #[inline]
    pub(crate) fn has_come(&self) -> bool {
        self.topics.is_empty() && self.fields.is_empty()
    }

    /// Records the topics and fields of the events of a block. Costs nothing once all have occurred.
    #[inline]
    pub(crate) fn see(&mut self, block: &Block) {
        if !self.has_come() {
            self.look(block);
        }
    }

    #[cold]
    fn look(&mut self, block: &Block) {
        self.topics.retain(|topic| block.topic_rows(*topic) == 0);
        self.fields.retain(|field| !field.is_in(block));
        self.fields.iter_mut().for_each(|field| field.note(block));
    }

    /// Keeps the topics and fields missing in both.
    pub(crate) fn keep(&mut self, other: &Missing) {
        self.topics.retain(|topic| other.topics.contains(topic));
        for (topic, count) in &other.unread {
            *self.unread.entry(*topic).or_default() += count;
        }
        self.fields.retain_mut(|field| {
            let same = other.fields.iter().find(|other| other.needed == field.needed);
            field.has_come |= same.is_some_and(|other| other.has_come);
            same.is_some()
        });
    }

    pub(crate) fn saved(&self) -> SavedMissing {
        let field = |field: &MissingField| (field.key(), field.has_come);
        (self.topics.iter().map(|topic| topic.0).collect(), self.fields.iter().map(field).collect())
    }

    /// Keeps the topics and fields that were missing when a snapshot was written.
    pub(crate) fn restore(&mut self, (topics, fields): &SavedMissing) {
        self.topics.retain(|topic| topics.contains(&topic.0));
        self.fields.retain_mut(|field| {
            let key = field.key();
            let saved = fields.iter().find(|(saved, _)| *saved == key);
            field.has_come |= saved.is_some_and(|(_, has_come)| *has_come);
            saved.is_some()
        });
    }

    /// Whether no message has come on a topic.
    pub fn topic(&self, topic: TopicId) -> bool {
        self.topics.contains(&topic)
    }

    /// The fields that some property needs and no message had a value for, in order, each once.
    pub fn fields(&self) -> Vec<&str> {
        let mut names: Vec<&str> = self.fields.iter().map(|field| field.name.as_str()).collect();
        names.sort_unstable();
        names.dedup();
        names
    }

    /// Missing topics and fields of these needs.
    fn inputs(&self, needs: &Needs, needed: &Needed) -> Vec<Vacuous> {
        self.lacking(needs, needed).into_iter().map(|(_, reason)| reason).collect()
    }

    /// Missing topics and fields, each with its topic. A missing topic stands for its fields.
    fn lacking(&self, needs: &Needs, needed: &Needed) -> Vec<(TopicId, Vacuous)> {
        let name = |topic: TopicId| needed.topics.get(topic.index()).cloned().flatten();
        let on =
            |name: &Option<String>| name.as_ref().map(|name| format!(" on `{name}`")).unwrap_or_default();
        let topics = needs.topics.iter().filter(|topic| self.topic(**topic)).map(|id| {
            let topic = name(*id);
            let (kind, what) = match needed.is_of_events(*id) {
                true => (VacuousKind::Event, "event"),
                false => (VacuousKind::Topic, "message"),
            };
            let text = match self.unread.get(id) {
                None => format!("no {what} came{}", on(&topic)),
                Some(count) => {
                    format!("no message{} could be read, of {} that came", on(&topic), grouped(*count))
                }
            };
            (*id, Vacuous { kind, text, topic, field: None })
        });
        let is_missing = |field: &&NeededField| {
            // It is normal that a deadline is never missed.
            let must_come = field.value || !needed.is_of_events(field.topic);
            must_come
                && !self.topic(field.topic)
                && self.fields.iter().any(|missing| missing.needed == **field)
        };
        let fields = needs.fields.iter().filter(is_missing).map(|field| {
            let (topic, path) = (name(field.topic), field.path.as_listed().to_string());
            if needed.is_of_events(field.topic) {
                // Of the events, only the two states must come.
                let what = match field.path == TopicEvent::Owner.path() {
                    true => "said which publisher owns the topic",
                    false => "said whether a publisher is alive",
                };
                let text = format!("no event{} {what}", on(&topic));
                return (field.topic, Vacuous { kind: VacuousKind::Event, text, topic, field: None });
            }
            let has_come = self.fields.iter().any(|missing| missing.needed == *field && missing.has_come);
            let text = match (field.value, has_come) {
                (true, true) => format!(
                    "no message{} had a value for `{path}` that can be read: null, another type, or an integer beyond 64 bits \
                     with a sign",
                    on(&topic)
                ),
                (true, false) => format!("no message{} had a value for `{path}`", on(&topic)),
                (false, _) => format!("no message{} carried `{path}`", on(&topic)),
            };
            (field.topic, Vacuous { kind: VacuousKind::Field, text, topic, field: Some(path) })
        });
        topics.chain(fields).collect()
    }

    /// A notice for each topic that properties need and that is missing, or has missing fields, `after` this many
    /// nanoseconds.
    pub(crate) fn notices(&self, needed: &Needed, after: i64) -> Vec<Notice> {
        let mut found: BTreeMap<TopicId, (Vec<Vacuous>, Vec<&str>)> = BTreeMap::new();
        for (needs, name) in needed.properties.iter().zip(&needed.names) {
            for (topic, reason) in self.lacking(needs, needed) {
                let (reasons, names) = found.entry(topic).or_default();
                if !reasons.contains(&reason) {
                    reasons.push(reason);
                }
                if names.last() != Some(&name.as_str()) {
                    names.push(name);
                }
            }
        }
        found
            .into_iter()
            .map(|(topic, (reasons, names))| {
                let unread = self.unread.get(&topic).copied().unwrap_or(0);
                Notice::missing(topic, &reasons, unread, &names, after)
            })
            .collect()
    }

    /// Reasons why a property, by its position, is vacuous; empty if it is not. `unexercised`: premises that were not
    /// certainly true at any time point.
    pub(crate) fn vacuous(
        &self,
        property: usize,
        needed: &Needed,
        unexercised: &BTreeSet<(u32, u32)>,
    ) -> Vec<Vacuous> {
        let needs = needed.properties.get(property).filter(|_| !self.has_come());
        let mut reasons = needs.map_or_else(Vec::new, |needs| self.inputs(needs, needed));
        let Some(premises) = needed.premises.get(property).filter(|_| !unexercised.is_empty()) else {
            return reasons;
        };
        for (number, Premise { text, needs }) in (0..).zip(premises) {
            // A premise without its messages is not reported separately.
            if unexercised.contains(&(property as u32, number)) && self.inputs(needs, needed).is_empty() {
                let text = format!("the premise `{text}` was never true");
                reasons.push(Vacuous { kind: VacuousKind::Premise, topic: None, field: None, text });
            }
        }
        reasons
    }
}

/// The longest text of a premise, in characters.
const LONGEST: usize = 80;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn joined_sessions_miss_only_common_topics_and_fields() {
        let field = |topic: u32, has_come: bool| ((topic, "x".to_owned(), true), has_come);
        let mut missing = (vec![0, 1], vec![field(0, false), field(1, false), field(2, true)]);
        join(&mut missing, &(vec![1, 2], vec![field(1, true), field(2, false)]));
        assert_eq!(missing, (vec![1], vec![field(1, true), field(2, true)]));
    }
}
