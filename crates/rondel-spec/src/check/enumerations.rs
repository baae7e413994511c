//! Advice for enumerations, whose values are integers with names.

use std::fmt::Write;

use rondel_event::{Segment, Value};

use super::{Checker, Meaning};
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
                Segment::Index(_) => place.push_str("[]"),
            }
        }
        let owner = definition.enumerations.get(&place)?;
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
