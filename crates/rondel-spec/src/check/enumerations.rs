//! Advice for enumerations and constants, whose values are integers with names.

use std::fmt::Write;

use rondel_event::{Segment, Value};

use super::{Checker, Meaning};
use crate::definition::Definition;
use crate::suggest::{list, nearest};
use crate::syntax::ast::{NodeId, NodeKind};

impl Checker<'_> {
    /// Returns advice for a field that is an enumeration and is compared with a string: the constant that is meant.
    pub(super) fn enumeration_advice(&self, field: NodeId, text: NodeId) -> Option<String> {
        let NodeKind::Literal(Value::String(text)) = &self.ast.nodes[text].kind else { return None };
        let Meaning::Field { topic, path, .. } = &self.meanings[field] else { return None };
        let definition = self.ast.topics.get(topic.index())?.definition.as_ref()?;
        let mut place = String::new();
        for segment in &path.0 {
            match segment {
                Segment::Key(key) if place.is_empty() => place.push_str(key),
                Segment::Key(key) => write!(place, ".{key}").ok()?,
                Segment::Index(_) | Segment::FromEnd(_) | Segment::Named(_) => place.push_str("[]"),
            }
        }
        let Some(owner) = definition.enumerations.get(&place) else {
            return constant_advice(definition, text);
        };
        let constants = definition.constants.iter().filter(|constant| constant.owner == *owner);
        let names: Vec<&str> = constants.map(|constant| constant.name.as_str()).collect();
        let exact = names.iter().copied().find(|name| *name == &**text);
        match exact.or_else(|| nearest(text, names.iter().copied())) {
            Some(name) => Some(format!("the field is an enumeration: write `{owner}.{name}` without quotes")),
            None => {
                let names = list(names)?;
                Some(format!(
                    "the field is an enumeration: write one of its constants as `{owner}.NAME`: {names}"
                ))
            }
        }
    }
}

/// Returns advice for a number that is compared with the name of a constant of its message type.
fn constant_advice(definition: &Definition, text: &str) -> Option<String> {
    // Those of enumerations are for other fields.
    let is_of_message = |owner: &String| !definition.enumerations.values().any(|other| other == owner);
    let constants = definition
        .constants
        .iter()
        .filter(|constant| matches!(constant.value, Value::Int(_)) && is_of_message(&constant.owner));
    let names = constants.clone().map(|constant| constant.name.as_str());
    let name = names.clone().find(|name| *name == text).or_else(|| nearest(text, names))?;
    let owner = &constants.clone().find(|constant| constant.name == name)?.owner;
    Some(format!("the message type has a constant of this name: write `{owner}.{name}` without quotes"))
}
