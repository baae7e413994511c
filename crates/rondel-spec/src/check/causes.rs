//! Checks of `@because_of(other)`: the other property, and circles.

use std::collections::HashMap;
use std::collections::hash_map::Entry;

use super::Checker;
use super::attributes::find;
use crate::attributes::CAUSE;
use crate::diagnostic::{Code, Diagnostic};
use crate::spec::Class;
use crate::suggest::unknown;
use crate::syntax::ast::{Attribute, Name, PropertySource};

/// Limit of the properties that a diagnostic of a circle names.
const SHOWN: usize = 12;

/// The attributes by the names of their properties.
type Causes<'a> = HashMap<&'a str, &'a Attribute>;

impl Checker<'_> {
    /// Reports attributes that name no property that can mute another one, and circles of them.
    pub(super) fn check_causes(&mut self) {
        let ast = self.ast;
        let mut causes = Causes::new();
        let mut names = Vec::new();
        for source in &ast.property_sources {
            let attributes = match *source {
                PropertySource::Property(i) => &ast.properties[i].attributes,
                PropertySource::Machine(i) => &ast.machines[i].attributes,
                PropertySource::Chain(i) | PropertySource::ChainBound(i, _) => &ast.chains[i].attributes,
            };
            let Some(attribute) = find(attributes, CAUSE) else { continue };
            // Bounds of a chain have the attributes of the chain.
            if !matches!(source, PropertySource::ChainBound(..)) {
                self.check_cause(attribute);
            }
            let name = ast.source_name(*source).text.as_str();
            causes.entry(name).or_insert(attribute);
            names.push(name);
        }
        // The search that met each property first.
        let mut met: HashMap<&str, usize> = HashMap::new();
        for (search, start) in names.iter().enumerate() {
            let mut next = Some(*start);
            while let Some(name) = next {
                match met.entry(name) {
                    Entry::Vacant(vacant) => {
                        vacant.insert(search);
                    }
                    Entry::Occupied(first) => {
                        if *first.get() == search {
                            self.report_circle(name, &causes);
                        }
                        break;
                    }
                }
                next = causes.get(name).map(|attribute| attribute.value.as_str());
            }
        }
        for attribute in ast.asserts.iter().filter_map(|assert| find(&assert.attributes, CAUSE)) {
            let message = format!("`@{CAUSE}` applies only to properties, machines and chains");
            let diagnostic = Diagnostic::new(Code::InvalidAttribute, attribute.span, message);
            self.diagnostics.push(diagnostic.help("remove it: an assert is judged once, at the end"));
        }
    }

    /// Reports an attribute whose value is no property with a verdict that lasts.
    fn check_cause(&mut self, attribute: &Attribute) {
        let ast = self.ast;
        let span = attribute.argument.unwrap_or(attribute.span);
        let text = attribute.value.as_str();
        let source = ast.property_sources.iter().find(|source| ast.source_name(**source).text == text);
        let diagnostic = match source {
            Some(PropertySource::Chain(_)) => {
                let message =
                    format!("`@{CAUSE}` cannot name a chain: each of its verdicts is about one stamp");
                let help = "name a property about the chain, such as `property late = age(chain) < 100 ms`";
                Diagnostic::new(Code::InvalidAttribute, span, message).help(help)
            }
            Some(_) if self.looks_ahead(text) => {
                let message = format!(
                    "`@{CAUSE}` cannot name '{text}', which looks ahead: its return to satisfied may be known before its violation"
                );
                let help = "name a property that looks back, such as `property received = age(topic) < 2 s`";
                Diagnostic::new(Code::InvalidAttribute, span, message).help(help)
            }
            Some(_) => return,
            None if ast.asserts.iter().any(|assert| assert.is_named && assert.name.text == text) => {
                let message = format!("`@{CAUSE}` cannot name an assert, which is judged once, at the end");
                let help = "name a property, machine or bound of a chain";
                Diagnostic::new(Code::InvalidAttribute, span, message).help(help)
            }
            None => {
                let is_chain = |source: &&PropertySource| matches!(source, PropertySource::Chain(_));
                let sources = ast.property_sources.iter().filter(|source| !is_chain(source));
                let candidates: Vec<&str> =
                    sources.map(|source| ast.source_name(*source).text.as_str()).collect();
                let diagnostic =
                    Diagnostic::new(Code::UnknownProperty, span, format!("unknown property '{text}'"));
                let diagnostic = unknown(diagnostic, text, &candidates, "declared properties");
                self.with_import(diagnostic, &Name { text: text.to_owned(), span })
            }
        };
        self.diagnostics.push(diagnostic);
    }

    /// Whether the formula of a property has a future operator.
    fn looks_ahead(&self, name: &str) -> bool {
        let spec = self.graph.spec();
        // One with errors is not there.
        let property = spec.properties.iter().find(|property| property.name == name);
        property.is_some_and(|own| spec.below(own.formula).any(|(_, node)| node.class() == Class::Future))
    }

    /// Reports the circle of attributes that contains a property.
    fn report_circle(&mut self, name: &str, causes: &Causes<'_>) {
        let Some(attribute) = causes.get(name) else { return };
        let mut circle = vec![name];
        let mut next = attribute.value.as_str();
        while next != name && circle.len() < SHOWN {
            circle.push(next);
            next = causes.get(next).map_or(name, |attribute| attribute.value.as_str());
        }
        circle.push(if next == name { name } else { "…" });
        let message = match circle.len() {
            2 => format!("'{name}' cannot be violated because of itself"),
            _ => format!("these properties are violated because of each other: {}", circle.join(" -> ")),
        };
        let span = attribute.argument.unwrap_or(attribute.span);
        let diagnostic = Diagnostic::new(Code::InvalidAttribute, span, message);
        self.diagnostics.push(diagnostic.help("remove one of the attributes `@because_of`"));
    }
}
