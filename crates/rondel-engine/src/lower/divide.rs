//! Groups of properties that share the instances of a `for each`.

use std::sync::Arc;

use rondel_event::{Read, Slot, TopicEvent, TopicId, ValueType};
use rondel_spec::{Property, Slice, Spec, TimeModel};

use crate::CompileError;
use crate::exec::section::TimePoints;
use crate::keyed::key_tests::decided;
use crate::keyed::keys::KeyPlan;
use crate::keyed::plan::{SlicePlan, Sliced};
use crate::keyed::room::DEFAULT_LIMIT;
use crate::lower::assemble::Ordered;
use crate::lower::binding::Binding;
use crate::lower::error;
use crate::lower::quantifier::Quantifier;
use crate::lower::translate::{FieldRead, Translator};

/// Properties with the same parameters, time points and visible events. What a property sees must not depend
/// on other properties, so that those with different topics get different sections.
pub(crate) struct Division<'a> {
    slice: &'a Slice,
    time_points: TimePoints,
    /// Generation of the properties: later ones started with an edit of the specification.
    generation: u32,
    /// Topics without parameters that the properties read.
    shared: Vec<TopicId>,
    properties: Vec<u32>,
}

/// Groups the properties that have parameters.
///
/// # Errors
/// [`CompileError`] if the parameters of a slice are invalid.
pub(crate) fn divide(spec: &Spec) -> Result<Vec<Division<'_>>, CompileError> {
    let mut divisions: Vec<Division<'_>> = Vec::new();
    // Invalid operands are reported by the translator.
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
        let time_points = match property.time {
            TimeModel::Steps | TimeModel::Points => TimePoints::Events,
            TimeModel::Dense => TimePoints::Dense,
        };
        let generation = property.generation;
        let is_same = |other: &&mut Division<'_>| {
            (other.slice, other.time_points, other.generation) == (slice, time_points, generation)
                && other.shared == shared
        };
        match divisions.iter_mut().find(is_same) {
            Some(division) => division.properties.push(i),
            None => divisions.push(Division { slice, time_points, generation, shared, properties: vec![i] }),
        }
    }
    Ok(divisions)
}

/// Whether all parameters have the same topics of the specification, each once, and a type with equality.
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
    /// Compiles the section of the instances and appends the evaluation of its quantified formulas to
    /// `quantifiers`. With `terms`, properties may be terms.
    ///
    /// # Errors
    /// As [`Program::compile`](crate::Program::compile).
    pub(crate) fn compile(
        self,
        spec: &Spec,
        terms: bool,
        binding: &mut Binding,
        quantifiers: &mut Vec<Quantifier>,
    ) -> Result<Sliced, CompileError> {
        let Division { slice, time_points, shared, properties, .. } = self;
        let node = spec.properties[properties[0] as usize].formula;
        let unsupported = |what| CompileError::Unsupported { node, what };
        let types: Vec<ValueType> = slice.keys.iter().map(|key| key.value_type).collect();
        let fields = &slice.keys[0].fields;
        // The condition that ends an instance is translated as an additional property.
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
        // `ordered` lists the properties in the order of their formulas in the section.
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
        let nodes = Ordered::new(translation, time_points, false, &spec, &[]);
        let slots = binding.bind(nodes.fields(), nodes.nodes());
        let section = nodes.assemble(ordered, &slots);
        let topics = fields.iter().map(|(topic, _)| (*topic, slots_of(slice, *topic, binding))).collect();
        let limit = slice.limit.unwrap_or(DEFAULT_LIMIT);
        let with_instances =
            fields.iter().map(|(topic, _)| *topic).filter(|topic| spec.events_of(*topic).is_some());
        let events = with_instances.map(|topic| (topic, instance_event_slots(topic, binding))).collect();
        let elements = fields.iter().map(|(topic, _)| *topic).filter(|topic| spec.is_of_elements(*topic));
        let elements = elements.collect();
        let plan = SlicePlan { keys: KeyPlan { types, topics }, shared, events, limit, elements };
        Ok(Sliced { section: Arc::new(section), plan: Arc::new(plan) })
    }
}

/// Boolean columns that are present when a topic event (such as a missed deadline) concerns a single instance.
fn instance_event_slots(topic: TopicId, binding: &mut Binding) -> Vec<Slot> {
    let of_instances = TopicEvent::ALL.into_iter().filter(|event| event.has_key());
    of_instances
        .map(|event| binding.slot(&FieldRead { topic, path: event.path(), read: Read::Presence }))
        .collect()
}

/// Columns of the parameters in messages of a topic.
fn slots_of(slice: &Slice, topic: TopicId, binding: &mut Binding) -> Vec<Slot> {
    let here = slice.keys.iter().filter_map(|key| {
        let (topic, path) = key.fields.iter().find(|(keyed, _)| *keyed == topic)?;
        let read = Read::Value(key.value_type);
        Some(FieldRead { topic: *topic, path: path.clone(), read })
    });
    here.map(|read| binding.slot(&read)).collect()
}
