//! Checks of attributes: their values and combinations.

use super::Checker;
use crate::attributes::{AttributeValue, LANGUAGE_ATTRIBUTES, count};
use crate::diagnostic::{Code, Diagnostic};
use crate::spec::{Below, Class, ExprId};
use crate::suggest::{did_you_mean, nearest};
use crate::syntax::STEADY;
use crate::syntax::ast::{Attribute, Name};

/// The attributes that reports read.
const CUSTOMARY: [&str; 2] = ["severity", "requirement"];

/// Synonyms of attributes, and the correct form.
const SYNONYMS: [(&str, &str); 6] = [
    ("steps", "@time(steps)"),
    ("points", "@time(points)"),
    ("dense", "@time(dense)"),
    ("constant", "@interpolate(constant)"),
    ("relations", "@plan(relations)"),
    ("robustness", "@robust"),
];

/// Returns the last valid attribute with this name.
pub(super) fn find<'a>(attributes: &'a [Attribute], name: &str) -> Option<&'a Attribute> {
    let takes = AttributeValue::named(name)?;
    attributes.iter().rev().find(|attribute| attribute.name.text == name && takes.fits(attribute.written()))
}

/// Returns the limit on the number of instances, if there is one.
pub(super) fn limit(attributes: &[Attribute]) -> Option<u64> {
    find(attributes, "limit").and_then(|attribute| count(&attribute.value))
}

/// Returns the attribute that requests linear interpolation, if there is one.
pub(super) fn linear_interpolation(attributes: &[Attribute]) -> Option<&Attribute> {
    let long = find(attributes, "interpolate").filter(|attribute| attribute.value == "linear");
    find(attributes, "linear").or(long)
}

/// Returns whether an attribute chooses the time model or the interpolation.
pub(super) fn chooses_time(attributes: &[Attribute]) -> bool {
    attributes.iter().any(|a| matches!(a.name.text.as_str(), "time" | "linear" | "interpolate"))
}

impl Checker<'_> {
    /// Reports invalid attributes of a declaration; `@limit` unless it has instances or may have quantifiers.
    pub(super) fn check_attributes(&mut self, attributes: &[Attribute], limited: bool) {
        for (i, attribute) in attributes.iter().enumerate() {
            let name = attribute.name.text.as_str();
            let diagnostic = match AttributeValue::named(name) {
                None => unknown(attribute),
                Some(takes) if !takes.fits(attribute.written()) => Some(invalid_value(attribute, takes)),
                Some(_) => duplicate(attribute, &attributes[..i])
                    .or_else(|| (name == "limit" && !limited).then(|| unlimited(attribute))),
            };
            self.diagnostics.extend(diagnostic);
        }
    }

    /// Reports attributes that stand for a part of a formula on declarations without one.
    pub(super) fn refuse_steady(&mut self, attributes: &[Attribute]) {
        for attribute in attributes.iter().filter(|a| STEADY.iter().any(|(name, _)| *name == a.name.text)) {
            let message = format!("`@{}` applies only to properties", attribute.name.text);
            let diagnostic = Diagnostic::new(Code::InvalidAttribute, attribute.span, message);
            let help = "write a property about it, such as `property p = not in(machine, failed)`, with this attribute";
            self.diagnostics.push(diagnostic.help(help));
        }
    }

    /// Reports attributes that apply to quantifiers on declarations without quantifiers.
    pub(super) fn check_quantified(
        &mut self,
        name: &Name,
        attributes: &[Attribute],
        roots: Vec<ExprId>,
        divided: bool,
    ) {
        let about = |attribute: &&Attribute| {
            let name = attribute.name.text.as_str();
            (matches!(name, "unbounded" | "plan") || name == "limit" && !divided)
                && AttributeValue::named(name).is_some_and(|takes| takes.fits(attribute.written()))
        };
        let mut about = attributes.iter().filter(about).peekable();
        if about.peek().is_none() || self.is_quantified(roots) {
            return;
        }
        let is_machine = self.ast.machines.iter().any(|machine| machine.name.span == name.span);
        for attribute in about {
            if attribute.name.text == "limit" {
                self.diagnostics.push(unlimited(attribute));
                continue;
            }
            let written = attribute.span.of(self.text);
            let name = &name.text;
            let message = match is_machine {
                true => format!(
                    "`{written}` applies to `exists` and `forall` in the `error` conditions of a machine, and '{name}' has none there"
                ),
                false => format!("`{written}` applies to `exists` and `forall`, and '{name}' has none"),
            };
            let diagnostic = Diagnostic::new(Code::InvalidAttribute, attribute.span, message);
            self.diagnostics.push(diagnostic.help("remove the attribute"));
        }
    }

    /// Returns whether one of the nodes contains a quantifier.
    fn is_quantified(&self, roots: Vec<ExprId>) -> bool {
        let nodes = &self.graph.spec().nodes;
        Below::new(nodes, roots).any(|(_, node)| node.class() == Class::Quantifier)
    }
}

/// Returns the error for a limit where there is nothing to limit.
fn unlimited(attribute: &Attribute) -> Diagnostic {
    let message = "`@limit` counts instances, and this declaration has no `for each`";
    let help = "remove `@limit`, or add a parameter: `property p for each id in topic.id = …`";
    Diagnostic::new(Code::InvalidAttribute, attribute.span, message).help(help)
}

/// Returns a warning for an unknown attribute that resembles a known one.
fn unknown(attribute: &Attribute) -> Option<Diagnostic> {
    let name = attribute.name.text.as_str();
    // Custom attributes are allowed, so the value must fit the suggested attribute too.
    let fitting = LANGUAGE_ATTRIBUTES
        .iter()
        .filter(|(_, takes)| takes.fits(attribute.written()))
        .map(|(name, _)| *name);
    let meant = SYNONYMS.iter().find(|(word, _)| *word == name).map(|(_, meant)| (*meant).to_owned());
    let fitting = fitting.chain(CUSTOMARY.into_iter().filter(|_| attribute.argument.is_some()));
    let meant = meant.or_else(|| {
        nearest(name, fitting.filter(|_| !CUSTOMARY.contains(&name))).map(|meant| format!("@{meant}"))
    })?;
    let message = format!("unknown attribute '{name}'; did you mean `{meant}`?");
    let help = "Rondel ignores unknown attributes and passes them on with the verdicts";
    Some(Diagnostic::new(Code::UnknownAttribute, attribute.name.span, message).help(help))
}

/// Returns the error for an attribute with an invalid value.
fn invalid_value(attribute: &Attribute, takes: &AttributeValue) -> Diagnostic {
    let (name, value) = (&attribute.name.text, &attribute.value);
    let message = match (takes, attribute.argument) {
        (AttributeValue::Nothing, _) => format!("`@{name}` takes no value"),
        (_, None) => format!("`@{name}` needs a value"),
        (AttributeValue::Length | AttributeValue::Condition | AttributeValue::Property, _) => {
            format!("`@{name}` needs another value")
        }
        (AttributeValue::Count, _) => format!("`@{name}` takes a positive whole number of instances"),
        (AttributeValue::Word(words), _) => {
            let suggestion = did_you_mean(value, words.iter().copied());
            format!("`@{name}` does not accept '{value}'{suggestion}")
        }
    };
    let help = match (name.as_str(), value.as_str()) {
        ("time", "linear") => "write `@linear` to interpolate numbers linearly".to_owned(),
        ("linear", "") => takes.advice(name),
        ("linear", "constant" | "false" | "off" | "none") => "write `@interpolate(constant)`".to_owned(),
        ("plan", "values" | "value") => {
            "remove the attribute, as evaluation by value is the default, or write `@plan(relations)`"
                .to_owned()
        }
        _ => takes.advice(name),
    };
    let place = attribute.argument.unwrap_or(attribute.span);
    Diagnostic::new(Code::InvalidAttribute, place, message).help(help)
}

/// Returns the error for an attribute that repeats or contradicts an earlier one.
fn duplicate(attribute: &Attribute, earlier: &[Attribute]) -> Option<Diagnostic> {
    let says = |attribute: &Attribute| match (attribute.name.text.as_str(), attribute.value.as_str()) {
        ("linear", _) => ("interpolate".to_owned(), "linear".to_owned()),
        (name, value) => (name.to_owned(), value.to_owned()),
    };
    let (subject, value) = says(attribute);
    let is_sound = |other: &&Attribute| {
        says(other).0 == subject
            && AttributeValue::named(&other.name.text).is_some_and(|takes| takes.fits(other.written()))
    };
    let other = earlier.iter().find(is_sound)?;
    let message = match says(other).1 == value {
        true => "duplicate attribute",
        false => "this attribute contradicts an earlier one",
    };
    let diagnostic = Diagnostic::new(Code::InvalidAttribute, attribute.span, message);
    Some(diagnostic.label(other.span, "earlier attribute").help("remove one of them"))
}
