//! What to do with which part of a message.

use rondel_event::{Quantifier, Slot};

use crate::cdr::{PlanError, PlanErrorKind};
use crate::fields::{Fields, Want};
use crate::sink::Target;

/// A place in a message and the places below it.
#[derive(Debug, Default)]
pub(super) struct Node {
    pub(super) keys: Box<[Key]>,
    /// By index, in ascending order.
    pub(super) indices: Box<[(u64, Node)]>,
    pub(super) targets: Box<[Target]>,
    pub(super) tests: Box<[ElementTest]>,
}

/// A member of a map.
#[derive(Debug)]
pub(super) struct Key {
    pub(super) name: Box<str>,
    /// The integer that the name is in decimal digits.
    pub(super) number: Option<i64>,
    pub(super) node: Node,
}

/// Conditions on the elements of an array.
#[derive(Debug)]
pub(super) struct ElementTest {
    pub(super) quantifier: Quantifier,
    pub(super) column: u32,
    /// All conditions.
    pub(super) all: u64,
    pub(super) node: Node,
}

impl Node {
    pub(super) fn new(fields: &Fields<'_>, path: &mut String, errors: &mut Vec<PlanError>) -> Node {
        let mut below = |segment: &str, fields: &Fields<'_>, errors: &mut Vec<PlanError>| {
            let length = path.len();
            if length > 0 && !segment.starts_with('[') {
                path.push('.');
            }
            path.push_str(segment);
            let node = Node::new(fields, path, errors);
            path.truncate(length);
            node
        };
        let keys = fields.keys.iter().map(|(name, fields)| Key {
            name: (*name).into(),
            number: name.parse().ok().filter(|number: &i64| number.to_string() == *name),
            node: below(name, fields, errors),
        });
        let keys = keys.collect();
        let indices = fields
            .indices
            .iter()
            .map(|(index, fields)| (u64::from(*index), below(&format!("[{index}]"), fields, errors)));
        let mut indices: Vec<_> = indices.collect();
        indices.sort_by_key(|(index, _)| *index);
        let mut tests = Vec::new();
        for want in &fields.wants {
            let Want::Elements(quantifier, conditions, Slot::Bool(column)) = want else { continue };
            if conditions.len() > 64 {
                let kind = PlanErrorKind::Unsupported("an element with more than 64 conditions");
                errors.push(PlanError { path: path.as_str().into(), kind });
                continue;
            }
            tests.push(ElementTest {
                quantifier: *quantifier,
                column: *column,
                all: (0..conditions.len()).fold(0, |all, bit| all | 1 << bit),
                node: Node::new(&Fields::of_conditions(conditions), path, errors),
            });
        }
        let targets = fields.wants.iter().filter_map(Target::new).collect();
        Node { keys, indices: indices.into(), targets, tests: tests.into() }
    }
}
