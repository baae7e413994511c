//! The placeholders that the selected properties have.

use std::collections::BTreeMap;

use rondel_event::{Read, ValueType};
use rondel_runtime::formula;
use rondel_spec::{Expr, Property, Spec};

use crate::deployment::yaml::suggest;
use crate::sinks::actions::{On, Placeholder};

/// The type of the value of a placeholder.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Text,
    /// A date.
    Time,
    Number,
    Boolean,
    /// One of several types.
    Any,
}

impl Kind {
    fn of(value_type: ValueType) -> Kind {
        match value_type {
            ValueType::Bool => Kind::Boolean,
            ValueType::Int | ValueType::Float | ValueType::Time | ValueType::Duration => Kind::Number,
            ValueType::String => Kind::Text,
        }
    }

    /// Returns its name, with an article.
    pub(super) fn name(self) -> &'static str {
        match self {
            Kind::Text => "a text",
            Kind::Time => "a date",
            Kind::Number => "a number",
            Kind::Boolean => "a boolean",
            Kind::Any => "a value",
        }
    }
}

/// The placeholders of an action.
#[derive(Debug)]
pub(super) struct Known {
    parameters: BTreeMap<String, Kind>,
    /// Fields that the formulas read, and variables of quantifiers.
    values: BTreeMap<String, Kind>,
    has_severity: bool,
    has_robustness: bool,
    has_ids: bool,
    on: On,
}

impl Known {
    /// Returns the placeholders of properties for actions on these verdicts.
    pub(super) fn of<'s>(
        spec: &'s Spec,
        properties: impl Iterator<Item = &'s Property>,
        on: On,
        has_ids: bool,
    ) -> Known {
        let (parameters, values) = Default::default();
        let mut known = Known { parameters, values, has_severity: false, has_robustness: false, has_ids, on };
        for property in properties {
            known.add(spec, property);
        }
        known
    }

    fn add(&mut self, spec: &Spec, property: &Property) {
        let has_severity =
            property.attributes.iter().any(|(name, value)| name == "severity" && !value.is_empty());
        self.has_severity |= has_severity;
        self.has_robustness |= property.robust;
        let slice = property.slice.and_then(|slice| spec.slices.get(slice.0 as usize));
        for key in slice.into_iter().flat_map(|slice| &slice.keys) {
            insert(&mut self.parameters, &key.name, Kind::of(key.value_type));
        }
        for (_, node) in spec.below_with_machines([property.formula]) {
            if let Some((topic, path, Read::Value(value_type))) = node.field() {
                insert(&mut self.values, &formula::field(spec, topic, path), Kind::of(value_type));
            }
            if let Expr::Exists(variable, _) | Expr::ForAll(variable, _) = node
                && let Some(name) = spec.places.variable(*variable)
            {
                insert(&mut self.values, name, Kind::Any);
            }
        }
    }

    /// Returns the type of a placeholder.
    ///
    /// # Errors
    /// No selected property has it, or its verdicts do not.
    pub(super) fn kind(&self, of: &Placeholder) -> Result<Kind, String> {
        if let Some(kind) = self.parameters.get(of.name()) {
            return Ok(*kind);
        }
        match of {
            Placeholder::Property | Placeholder::Verdict => Ok(Kind::Text),
            Placeholder::Time => Ok(Kind::Time),
            Placeholder::Severity if self.has_severity => Ok(Kind::Text),
            Placeholder::Severity => {
                Err("no selected property has a severity: add `@severity(…)` to it".to_owned())
            }
            Placeholder::Robustness if self.has_robustness => Ok(Kind::Number),
            Placeholder::Robustness => {
                Err("no selected property has a robustness: add `@robust` to it".to_owned())
            }
            Placeholder::Id if self.has_ids => Ok(Kind::Text),
            Placeholder::Id => Err("verdicts have no ids: add `ids: true`".to_owned()),
            Placeholder::Named(name) => self.named(name),
        }
    }

    fn named(&self, name: &str) -> Result<Kind, String> {
        let Some(kind) = self.values.get(name) else {
            const FACTS: [&str; 6] = ["property", "verdict", "time", "severity", "robustness", "id"];
            let all = || {
                let named = self.parameters.keys().chain(self.values.keys()).map(String::as_str);
                FACTS.into_iter().chain(named)
            };
            let hint = suggest(name, all()).map_or_else(
                || format!("its placeholders are: {}", all().collect::<Vec<_>>().join(", ")),
                |nearest| format!("did you mean `{{{nearest}}}`?"),
            );
            return Err(format!("no selected property has `{{{name}}}`; {hint}"));
        };
        match self.on {
            On::Violated | On::Change => Ok(*kind),
            On::Satisfied | On::Inconclusive => {
                Err(format!("the value `{{{name}}}` is known of violations only: write `on: violated`"))
            }
        }
    }

    /// Whether a placeholder is a value of explanations.
    pub(super) fn is_explained(&self, of: &Placeholder) -> bool {
        matches!(of, Placeholder::Named(name) if !self.parameters.contains_key(name))
    }
}

/// Adds a placeholder. If properties disagree, it may have any type.
fn insert(all: &mut BTreeMap<String, Kind>, name: &str, kind: Kind) {
    let known = all.entry(name.to_owned()).or_insert(kind);
    if *known != kind {
        *known = Kind::Any;
    }
}
