//! Which properties are divided by key together.

use std::sync::Arc;

use rondel_event::{Read, Slot, TopicEvent, TopicId, ValueType};
use rondel_spec::{Property, Slice, Spec, TimeModel};

use crate::CompileError;
use crate::exec::section::Moments;
use crate::keyed::key_tests::decided;
use crate::keyed::keys::KeyPlan;
use crate::keyed::plan::{SlicePlan, Sliced};
use crate::keyed::room::DEFAULT_LIMIT;
use crate::lower::assemble::Ordered;
use crate::lower::binding::Binding;
use crate::lower::error;
use crate::lower::quantifier::Quantifier;
use crate::lower::translate::{FieldRead, Translator};

/// Properties with the same keys, that see the same events, and have the same moments. What else there is
/// does not change what a property sees, and so not what it says.
pub(crate) struct Division<'a> {
    slice: &'a Slice,
    moments: Moments,
    /// When they began.
    generation: u32,
    /// The topics without keys that they read.
    shared: Vec<TopicId>,
    properties: Vec<u32>,
}

/// Puts the properties that are divided by key together.
///
/// # Errors
/// [`CompileError`] when a slice is none.
pub(crate) fn divide(spec: &Spec) -> Result<Vec<Division<'_>>, CompileError> {
    let mut divisions: Vec<Division<'_>> = Vec::new();
    // Nodes that refer to what does not stand before them are reported when they are translated.
    let is_sound = spec.nodes.iter().all(|node| node.operands().all(|o| o.index() < spec.nodes.len()));
    let whole_events = |root| if is_sound { spec.whole_events(root) } else { Vec::new() };
    for (i, property) in (0..).zip(&spec.properties) {
        let Some(id) = property.slice else { continue };
        let formula = property.formula;
        let invalid = CompileError::Unsupported { node: formula, what: "this `for each`" };
        let slice = match spec.slices.get(id.0 as usize) {
            Some(slice) if is_valid(slice, spec) => slice,
            _ => return Err(invalid),
        };
        let roots = [Some(formula), slice.until];
        if roots.into_iter().flatten().any(|root| root.index() >= spec.nodes.len()) {
            return Err(CompileError::UnknownFormula { property: property.name.clone(), formula });
        }
        let mut shared = if is_sound { spec.topics_of_property(property) } else { Vec::new() };
        let is_keyed = |topic: &TopicId| slice.keys[0].fields.iter().any(|(keyed, _)| keyed == topic);
        let whole: Vec<TopicId> = roots.into_iter().flatten().flat_map(whole_events).collect();
        shared.retain(|topic| !is_keyed(topic) || whole.contains(topic));
        let moments = match property.time {
            TimeModel::Steps | TimeModel::Points => Moments::Events,
            TimeModel::Dense => Moments::Dense,
        };
        let generation = property.generation;
        let is_same = |other: &&mut Division<'_>| {
            (other.slice, other.moments, other.generation) == (slice, moments, generation)
                && other.shared == shared
        };
        match divisions.iter_mut().find(is_same) {
            Some(division) => division.properties.push(i),
            None => divisions.push(Division { slice, moments, generation, shared, properties: vec![i] }),
        }
    }
    Ok(divisions)
}

/// Whether all keys have the same topics of the specification, each once, and a type that is counted by.
fn is_valid(slice: &Slice, spec: &Spec) -> bool {
    let Some(first) = slice.keys.first() else { return false };
    let mut topics: Vec<TopicId> = first.fields.iter().map(|(topic, _)| *topic).collect();
    topics.sort_unstable();
    topics.windows(2).all(|pair| pair[0] != pair[1])
        && topics.iter().all(|topic| topic.index() < spec.topics.len())
        && slice.keys.iter().all(|key| {
            key.value_type != ValueType::Float
                && key.fields.len() == topics.len()
                && topics.iter().all(|topic| key.fields.iter().any(|(keyed, _)| keyed == topic))
        })
}

impl Division<'_> {
    /// Compiles it, with properties that may be terms if `terms`, and adds how the formulas with quantifiers in it are evaluated.
    ///
    /// # Errors
    /// As [`Program::compile`](crate::Program::compile).
    pub(crate) fn compile(
        self,
        (spec, terms): (&Spec, bool),
        binding: &mut Binding,
        quantifiers: &mut Vec<Quantifier>,
    ) -> Result<Sliced, CompileError> {
        let Division { slice, moments, shared, properties, .. } = self;
        let node = spec.properties[properties[0] as usize].formula;
        let unsupported = |what| CompileError::Unsupported { node, what };
        let types: Vec<ValueType> = slice.keys.iter().map(|key| key.value_type).collect();
        let fields = &slice.keys[0].fields;
        // The condition that ends an instance is translated as one more property.
        let mut spec = spec.clone();
        let first = spec.properties[properties[0] as usize].time;
        let until = spec.properties.len() as u32;
        spec.properties
            .extend(slice.until.map(|formula| Property { time: first, ..Property::new("until", formula) }));
        for p in properties.iter().copied().chain(slice.until.map(|_| until)) {
            let formula = spec.properties[p as usize].formula;
            spec.properties[p as usize].formula = decided(&mut spec, formula);
        }
        let mut translator =
            Translator::divided(&spec, &types, fields.len() + shared.len()).with_terms(terms);
        // Formulas are in the order in which they are added.
        let mut ordered = Vec::new();
        for time in [TimeModel::Steps, TimeModel::Points, TimeModel::Dense] {
            let is_of = |p: &u32| spec.properties[*p as usize].time == time;
            let these: Vec<u32> = properties.iter().copied().filter(is_of).collect();
            ordered.extend(translator.add(time, &these)?);
        }
        if slice.until.is_some() {
            translator.add(first, &[until])?;
        }
        let mut translation = translator.finish();
        quantifiers.append(&mut translation.quantifiers);
        if translation.futures.iter().any(|future| future.property == until) {
            return Err(unsupported(error::KEYED_FUTURE_END));
        }
        let nodes = Ordered::new(translation, moments, false, (&spec, &[]));
        let slots = binding.bind(nodes.fields(), nodes.nodes());
        let section = nodes.assemble(ordered, &slots);
        let topics = fields.iter().map(|(topic, _)| (*topic, slots_of(slice, *topic, binding))).collect();
        let limit = slice.limit.unwrap_or(DEFAULT_LIMIT);
        let of_one = fields.iter().map(|(topic, _)| *topic).filter(|topic| spec.events_of(*topic).is_some());
        let events = of_one.map(|topic| (topic, told_by(topic, binding))).collect();
        let elements = fields.iter().map(|(topic, _)| *topic).filter(|topic| spec.is_of_elements(*topic));
        let elements = elements.collect();
        let plan = SlicePlan { keys: KeyPlan { types, topics }, shared, events, limit, elements };
        Ok(Sliced { section: Arc::new(section), plan: Arc::new(plan) })
    }
}

/// Where a block says that an event of a topic is one of an instance.
fn told_by(topic: TopicId, binding: &mut Binding) -> Vec<Slot> {
    let of_one = TopicEvent::ALL.into_iter().filter(|event| event.has_key());
    of_one.map(|event| binding.slot(&FieldRead { topic, path: event.path(), read: Read::Presence })).collect()
}

/// Where the keys of a topic are in a block.
fn slots_of(slice: &Slice, topic: TopicId, binding: &mut Binding) -> Vec<Slot> {
    let here = slice.keys.iter().filter_map(|key| {
        let (topic, path) = key.fields.iter().find(|(keyed, _)| *keyed == topic)?;
        let read = Read::Value(key.value_type);
        Some(FieldRead { topic: *topic, path: path.clone(), read })
    });
    here.map(|read| binding.slot(&read)).collect()
}
