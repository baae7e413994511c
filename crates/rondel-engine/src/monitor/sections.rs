//! Compilation of the sections of a program: properties with the same time points, and those with the same
//! interpolated fields.

use std::collections::{BTreeSet, HashSet};

use rondel_event::{Path, TopicId};
use rondel_spec::{Property, Spec, TimeModel};

use crate::CompileError;
use crate::exec::section::{Section, TimePoints};
use crate::linear::LinearPlan;
use crate::lower::assemble::Ordered;
use crate::lower::binding::Binding;
use crate::lower::identity::{of_field, of_lines};
use crate::lower::quantifier::Quantifier;
use crate::lower::translate::{Lines, Translator, groups};

/// Compiler of the sections of a specification.
pub(super) struct SectionCompiler<'a> {
    spec: &'a Spec,
    /// The first topic that is assumed to have no messages: see [`assume`](crate::lower::assume).
    first: Option<TopicId>,
    /// Whether terms are accepted as properties.
    terms: bool,
    pub(super) sections: Vec<Section>,
    pub(super) binding: Binding,
    pub(super) quantifiers: Vec<Quantifier>,
}

impl<'a> SectionCompiler<'a> {
    pub(super) fn new(spec: &'a Spec, first: Option<TopicId>, terms: bool) -> SectionCompiler<'a> {
        let binding = Binding::new(spec.topics.len());
        SectionCompiler { spec, first, terms, sections: Vec::new(), binding, quantifiers: Vec::new() }
    }

    /// Compiles all properties without parameters.
    pub(super) fn compile(&mut self) -> Result<(), CompileError> {
        let spec = self.spec;
        let interpolated = groups(spec)?;
        let lagging: HashSet<u32> = interpolated.values().flatten().copied().collect();
        let generations: BTreeSet<u32> = spec.properties.iter().map(|property| property.generation).collect();
        let models = [
            (TimePoints::Events, &[TimeModel::Steps, TimeModel::Points][..]),
            (TimePoints::Dense, &[TimeModel::Dense]),
        ];
        for (time_points, models) in models {
            for &generation in &generations {
                self.add(time_points, models, generation, &lagging)?;
            }
        }
        for ((_, names), group) in &interpolated {
            self.add_interpolated(names, group)?;
        }
        Ok(())
    }

    /// Adds the section of a generation with these time models, except properties in `lagging`.
    fn add(
        &mut self,
        time_points: TimePoints,
        models: &[TimeModel],
        generation: u32,
        lagging: &HashSet<u32>,
    ) -> Result<(), CompileError> {
        let spec = self.spec;
        let mut translator = Translator::new(spec).with_terms(self.terms);
        let mut properties = Vec::new();
        for &model in models {
            let is_meant = |property: &Property| {
                property.slice.is_none() && (property.time, property.generation) == (model, generation)
            };
            let mut these = positions(spec, is_meant);
            these.retain(|position| !lagging.contains(position));
            properties.extend(translator.add(model, &these)?);
        }
        let mut translation = translator.finish();
        self.quantifiers.append(&mut translation.quantifiers);
        let ahead = !translation.futures.is_empty() || !translation.robust_futures.is_empty();
        if !properties.is_empty() || ahead || !translation.terms.is_empty() {
            let ordered = match self.first {
                Some(first) => Ordered::assuming(translation, spec, first),
                None => Ordered::new(translation, time_points, true, spec, &[]),
            };
            let slots = self.binding.bind(ordered.fields(), ordered.nodes());
            self.sections.push(ordered.assemble(properties, &slots));
        }
        Ok(())
    }

    /// Adds the section of properties that interpolate the fields `names`.
    fn add_interpolated(&mut self, names: &[(TopicId, Path)], group: &[u32]) -> Result<(), CompileError> {
        let (spec, binding) = (self.spec, &mut self.binding);
        let mut translator = Translator::linear(spec);
        let properties = translator.add(TimeModel::Dense, group)?;
        let mut translation = translator.finish();
        let (fields, lines) = translation.linear.take().map(Lines::used).unwrap_or_default();
        let reads = fields.iter().map(|&field| &translation.fields[field as usize]);
        let field_identities: Vec<u64> = reads.clone().map(|read| of_field(spec, read)).collect();
        let line_identities = of_lines(&lines, &field_identities);
        let fields = reads.map(|read| binding.slot(read)).collect();
        let ordered = Ordered::new(translation, TimePoints::Dense, true, spec, &line_identities);
        let slots = binding.bind(ordered.fields(), ordered.nodes());
        let mut section = ordered.assemble(properties, &slots);
        let (slots, topics) = section.reads();
        section.linear = Some(Box::new(LinearPlan {
            fields,
            field_identities,
            line_identities,
            names: names.to_vec(),
            lines,
            slots,
            topics,
        }));
        self.sections.push(section);
        Ok(())
    }
}

/// Positions of the properties for which `is_meant` is true.
fn positions(spec: &Spec, is_meant: impl Fn(&Property) -> bool) -> Vec<u32> {
    let meant = spec.properties.iter().enumerate().filter(|(_, property)| is_meant(property));
    meant.map(|(i, _)| i as u32).collect()
}
