//! Plan for the parts of a message.

use rondel_event::Named;

use crate::fields::{Alternatives, Fields, Want};
use crate::sink::{ElementTest, Target, elements_target};
use crate::typed::Report;

/// A value of a message and the values in it.
#[derive(Debug, Default)]
pub(super) struct Node {
    pub(super) keys: Box<[Key]>,
    /// By index, in ascending order.
    pub(super) indices: Box<[(u64, Node)]>,
    /// By position from the end, from 1.
    pub(super) ends: Box<[(u64, Node)]>,
    pub(super) targets: Box<[Target]>,
    pub(super) tests: Box<[ElementTest<Node>]>,
    /// Elements identified by a name that they contain.
    pub(super) named: Box<[NamedElement]>,
    /// Elements of a member array, identified by the names in another member array.
    pub(super) parallel: Box<[Parallel]>,
    /// Targets in it that have no value if it is a map, an array or neither.
    pub(super) not_in_map: Box<[Target]>,
    pub(super) not_in_array: Box<[Target]>,
    pub(super) not_in_scalar: Box<[Target]>,
}

/// A member of a map.
#[derive(Debug)]
pub(super) struct Key {
    pub(super) name: Box<str>,
    /// Hash that distinguishes names of equal length except by their bytes after the eighth.
    head: u64,
    /// The name as an integer, if it is one in decimal digits.
    pub(super) number: Option<i64>,
    pub(super) node: Node,
}

/// Element with a name.
#[derive(Debug)]
pub(super) struct NamedElement {
    /// Condition that an element has the name.
    pub(super) alternatives: Alternatives,
    pub(super) name: Node,
    pub(super) node: Node,
}

/// Element of an array at the position of its name in another array.
#[derive(Debug)]
pub(super) struct Parallel {
    pub(super) array: Box<str>,
    pub(super) names: Box<str>,
    pub(super) element: NamedElement,
}

impl Node {
    pub(super) fn new(fields: &Fields<'_>, report: &mut Report) -> Node {
        let below = |segment: &str, fields: &Fields<'_>, report: &mut Report| {
            let outer = report.enter(segment);
            let node = Node::new(fields, report);
            report.leave(outer);
            node
        };
        let keys = fields.keys.iter().map(|(name, fields)| Key {
            name: (*name).into(),
            head: head(name.as_bytes()),
            number: name.parse().ok().filter(|number: &i64| number.to_string() == *name),
            node: below(name, fields, report),
        });
        let keys: Box<[Key]> = keys.collect();
        let indices = fields
            .indices
            .iter()
            .map(|(index, fields)| (u64::from(*index), below(&format!("[{index}]"), fields, report)));
        let mut indices: Vec<_> = indices.collect();
        indices.sort_by_key(|(index, _)| *index);
        let ends = fields
            .ends
            .iter()
            .map(|(index, fields)| (u64::from(*index), below(&format!("[-{index}]"), fields, report)));
        let ends: Box<[_]> = ends.collect();
        let name = |named: &Named, fields: &Fields<'_>, report: &mut Report| {
            let (tested, alternatives) = Fields::of_name(named).unwrap_or_default();
            let node = below(&named.to_string(), fields, report);
            NamedElement { alternatives, name: Node::new(&tested, report), node }
        };
        let named: Box<[_]> =
            fields.named.iter().map(|(named, fields)| name(named, fields, report)).collect();
        let parallel = fields.parallel.iter().map(|((array, named), fields)| {
            let own = named.of_names();
            let (array, names) = ((*array).into(), named.key().to_string().into());
            Parallel { array, names, element: name(&own, fields, report) }
        });
        let parallel: Box<[_]> = parallel.collect();
        let mut tests = Vec::new();
        for want in &fields.reads {
            let Want::Elements(quantifier, conditions, slot) = want else { continue };
            let (fields, alternatives) = report.element(*quantifier, conditions);
            let element = Node::new(&fields, report);
            tests.push(ElementTest::new(*quantifier, conditions, alternatives, *slot, element));
        }
        let targets = fields.reads.iter().filter_map(Target::new).collect();
        let tests: Box<[_]> = tests.into();
        let tested = || tests.iter().filter_map(|test| elements_target(test.slot));
        let members = || keys.iter().flat_map(|key| key.node.all());
        let elements = || indices.iter().chain(&ends).flat_map(|(_, node)| node.all());
        let by_name = || named.iter().flat_map(|named| named.node.all());
        let by_parallel = || parallel.iter().flat_map(|parallel| parallel.element.node.all());
        Node {
            not_in_map: elements().chain(tested()).chain(by_name()).collect(),
            not_in_array: members().chain(by_parallel()).collect(),
            not_in_scalar: members()
                .chain(elements())
                .chain(tested())
                .chain(by_name())
                .chain(by_parallel())
                .collect(),
            named,
            parallel,
            keys,
            indices: indices.into(),
            ends,
            targets,
            tests,
        }
    }

    /// Returns all targets of the value and of the values in it.
    fn all(&self) -> impl Iterator<Item = Target> {
        self.targets.iter().chain(&self.not_in_scalar).cloned()
    }
}

impl Key {
    /// Whether the key is this text, which has this head.
    #[inline(always)]
    pub(super) fn is(&self, text: &[u8], head: u64) -> bool {
        self.head == head
            && self.name.len() == text.len()
            && (text.len() <= 8 || self.name.as_bytes() == text)
    }
}

/// Returns the first eight bytes of a text; of a shorter one all of them, some of which may be repeated.
#[inline(always)]
pub(super) fn head(text: &[u8]) -> u64 {
    let byte = |at: usize| u64::from(text[at]);
    match text.len() {
        0 => 0,
        1..4 => byte(0) | byte(text.len() / 2) << 8 | byte(text.len() - 1) << 16,
        4..8 => match (text.first_chunk(), text.last_chunk()) {
            (Some(first), Some(last)) => {
                u64::from(u32::from_le_bytes(*first)) | u64::from(u32::from_le_bytes(*last)) << 32
            }
            _ => 0,
        },
        _ => text.first_chunk().map_or(0, |first| u64::from_le_bytes(*first)),
    }
}
