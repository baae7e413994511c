//! Plan for the parts of a message: a projection converted once to a tree.

use rondel_event::{Condition, Countable, Named, Projection, Quantifier, Read, Slot, TimeUnit, ValueType};

use super::scan::{Key, Kind};
use super::table::TableNode;
use crate::fields::Want;
use crate::plain::PlainPlan;
use crate::sink::Target;
use crate::tree::Tree;

/// A value of a message and the values in it.
pub(crate) type Node = Tree<Box<str>, Named, Action>;

/// Read of a value.
#[derive(Clone, Debug)]
pub(crate) enum Action {
    /// Writes it to the slot.
    Value(ValueType, Slot),
    /// Writes it to the slot of floats, unless it is an integer that would be rounded.
    Exact(Slot),
    /// Writes the number that it is, or that its text contains.
    Decimal(Target),
    /// Writes its presence.
    Presence(Slot),
    /// Writes whether it is NaN, in rows of tables.
    IsNan(Slot),
    /// Tests the elements of the array.
    Elements(Quantifier, Vec<Condition>, Slot),
    /// Writes the element that decides such conditions.
    Witness(Quantifier, Vec<Condition>, Slot),
    /// Writes the length of the array or text, if it has this kind.
    Length(Slot, Option<Countable>),
    /// The message: writes the elements of an array in it as a table.
    Table(Box<TableNode>),
    /// A plain value, or a text that contains one.
    Plain(PlainPlan),
    /// The event time, in this unit if it is a plain number.
    Time(TimeUnit),
    /// The recorded time, or null; in this unit if it is a plain number.
    Recorded(TimeUnit),
    /// The time of arrival, in this unit if it is a plain number.
    Arrival(TimeUnit),
    /// The id of the publisher.
    Publisher,
    /// The sequence number of the message.
    Number,
    /// The name of the topic.
    Topic,
}

impl Node {
    pub(crate) fn new(projection: &Projection) -> Node {
        Node::of(projection, false)
    }

    /// Like [`Node::new`], for rows of tables.
    pub(super) fn of_rows(projection: &Projection) -> Node {
        Node::of(projection, true)
    }

    fn of(projection: &Projection, takes_nan: bool) -> Node {
        let mut root = Node::default();
        for field in &projection.fields {
            let action = match &field.read {
                Read::Value(ValueType::Float) if field.exact => Action::Exact(field.slot),
                Read::Value(value_type) => Action::Value(*value_type, field.slot),
                Read::Number(value_type) => {
                    let want = Want::Number(*value_type, field.slot, field.exact);
                    let Some(target) = Target::new(&want) else { continue };
                    Action::Decimal(target)
                }
                Read::Presence => Action::Presence(field.slot),
                Read::Elements(quantifier, conditions) => {
                    Action::Elements(*quantifier, conditions.clone(), field.slot)
                }
                Read::Witness(quantifier, conditions) => {
                    Action::Witness(*quantifier, conditions.clone(), field.slot)
                }
                Read::Length => Action::Length(field.slot, None),
                Read::LengthOf(of) => Action::Length(field.slot, Some(*of)),
                Read::IsNan if takes_nan => Action::IsNan(field.slot),
                // JSON has no NaN.
                Read::IsNan => continue,
                Read::Table(table) => {
                    root.reads.extend(TableNode::new(table, field.slot).map(Box::new).map(Action::Table));
                    continue;
                }
            };
            root.at(&field.path).reads.push(action);
        }
        root
    }

    /// Returns a node with one action and nothing below.
    pub(crate) fn leaf(action: Action) -> Node {
        Node { reads: vec![action], ..Node::default() }
    }

    /// Replaces the member `key` by `node`.
    pub(crate) fn replace(&mut self, key: &str, node: Node) {
        *self.member(key.into()) = node;
    }

    pub(super) fn key(&self, key: &Key<'_>) -> Option<&Node> {
        self.keys.iter().find(|(name, _)| key.is(name)).map(|(_, node)| node)
    }

    pub(super) fn index(&self, index: usize) -> Option<&Node> {
        self.indices.iter().find(|(i, _)| *i as usize == index).map(|(_, node)| node)
    }

    /// Calls `each` with every action on an element beyond an array of this length, or below one, except that of the
    /// event time.
    pub(super) fn short<E>(
        &self,
        length: usize,
        each: &mut impl FnMut(&Action) -> Result<(), E>,
    ) -> Result<(), E> {
        let indices = self.indices.iter().filter(|(index, _)| *index as usize >= length);
        let ends = self.ends.iter().filter(|(from_end, _)| *from_end as usize > length);
        let mut each = |action: &Action| match action {
            Action::Time(_) => Ok(()),
            action => each(action),
        };
        for (_, node) in indices.chain(ends) {
            node.reads.iter().try_for_each(&mut each)?;
            node.unreachable(Kind::Null, &mut each)?;
        }
        Ok(())
    }

    /// Whether elements are read here or below by their positions from the end, or by their names.
    pub(crate) fn searches_elements(&self) -> bool {
        let keys = self.keys.iter().map(|(_, node)| node);
        !self.ends.is_empty()
            || !self.named.is_empty()
            || !self.parallel.is_empty()
            || self.reads.iter().any(|action| matches!(action, Action::Table(_)))
            || keys.chain(self.indices.iter().map(|(_, node)| node)).any(Node::searches_elements)
    }

    /// Whether single elements are read.
    pub(super) fn reads_elements(&self) -> bool {
        !self.indices.is_empty() || !self.ends.is_empty() || !self.named.is_empty()
    }

    /// Calls `each` with every action below that a value of this kind cannot have: members of a value that is no
    /// object, elements of one that is no array.
    pub(super) fn unreachable<E>(
        &self,
        kind: Kind,
        each: &mut impl FnMut(&Action) -> Result<(), E>,
    ) -> Result<(), E> {
        let keys = if kind == Kind::Object { &[][..] } else { &self.keys };
        let (indices, ends) =
            if kind == Kind::Array { (&[][..], &[][..]) } else { (&self.indices[..], &self.ends[..]) };
        let elements = indices.iter().chain(ends).map(|(_, node)| node);
        let named = if kind == Kind::Array { &[][..] } else { &self.named };
        let parallel = if kind == Kind::Object { &[][..] } else { &self.parallel };
        let named = named.iter().map(|(_, node)| node).chain(parallel.iter().map(|(_, node)| node));
        let below = keys.iter().map(|(_, node)| node).chain(elements).chain(named);
        for node in below {
            node.reads.iter().try_for_each(&mut *each)?;
            // Values further below cannot exist either: null is neither object nor array.
            node.unreachable(Kind::Null, each)?;
        }
        Ok(())
    }
}
