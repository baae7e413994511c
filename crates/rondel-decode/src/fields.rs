//! Fields of a projection as a tree: the reads of each value of a message.

use rondel_event::{Condition, Countable, Named, Path, Projection, Quantifier, Read, Slot, Test, ValueType};

use crate::cdr::PlanErrorKind;
use crate::tree::Tree;

/// The values of a message that are read, while a plan for them is compiled.
pub(crate) type Fields<'p> = Tree<&'p str, &'p Named, Want<'p>>;

/// Read of a value.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Want<'p> {
    /// Writes it to a slot.
    Value(ValueType, Slot),
    /// Writes it to a slot of floats, unless it is an integer that would be rounded.
    Exact(Slot),
    /// Writes the number that it is, or that its text contains, to a slot; for a float, whether it must not be rounded.
    Number(ValueType, Slot, bool),
    /// Writes its presence to a slot.
    Presence(Slot),
    /// Tests the elements of the array.
    Elements(Quantifier, &'p [Condition], Slot),
    /// Writes its length to a slot, if it has this kind.
    Length(Slot, Option<Countable>),
    /// Writes to a slot whether it is NaN.
    IsNan(Slot),
    /// Uses it as the event time.
    EventTime,
    /// Tests it, for this condition on an element.
    Test(u8, &'p Test),
    /// Measures it, as an element.
    Element,
}

impl Want<'_> {
    /// Returns the same read for a value that is itself a number.
    pub(crate) fn of_number(self) -> Self {
        match self {
            Want::Number(ValueType::Float, slot, true) => Want::Exact(slot),
            Want::Number(value_type, slot, _) => Want::Value(value_type, slot),
            other => other,
        }
    }
}

/// Conditions on an element, as bits: it must meet all of the first alternative, or all of another one. Walks check for
/// a single alternative before the first element: most have no other one.
#[derive(Clone, Debug, Default)]
pub(crate) struct Alternatives {
    first: u64,
    others: Box<[u64]>,
}

impl Alternatives {
    /// Returns all conditions, if there is only one alternative.
    #[inline(always)]
    pub(crate) fn single(&self) -> Option<u64> {
        self.others.is_empty().then_some(self.first)
    }

    /// Whether meeting these conditions suffices, for any number of alternatives.
    #[inline]
    pub(crate) fn hold(&self, met: u64) -> bool {
        self.single().map_or_else(|| self.are_met(met), |all| met == all)
    }

    /// Whether meeting these conditions suffices.
    #[inline(never)]
    pub(crate) fn are_met(&self, met: u64) -> bool {
        met & self.first == self.first || self.others.iter().any(|mask| met & mask == *mask)
    }
}

impl<'p> Fields<'p> {
    /// Returns the fields of a projection, and that of the event time.
    pub(crate) fn new(projection: &'p Projection, time: Option<&'p Path>) -> Fields<'p> {
        let mut root = Fields::default();
        for field in &projection.fields {
            // Tables have separate decoders.
            if matches!(field.read, Read::Table(_)) {
                continue;
            }
            root.at(&field.path).reads.push(match &field.read {
                Read::Value(ValueType::Float) if field.exact => Want::Exact(field.slot),
                Read::Value(value_type) => Want::Value(*value_type, field.slot),
                Read::Number(value_type) => Want::Number(*value_type, field.slot, field.exact),
                Read::Presence => Want::Presence(field.slot),
                Read::Elements(quantifier, conditions) => Want::Elements(*quantifier, conditions, field.slot),
                // Like conditions with a text as result.
                Read::Witness(quantifier, conditions) => Want::Elements(*quantifier, conditions, field.slot),
                Read::Length => Want::Length(field.slot, None),
                Read::LengthOf(of) => Want::Length(field.slot, Some(*of)),
                Read::IsNan | Read::Table(_) => Want::IsNan(field.slot),
            });
        }
        if let Some(time) = time {
            root.at(time).reads.push(Want::EventTime);
        }
        root
    }

    /// Returns the reads of an element for a quantifier or a measure, and the conditions that it must meet.
    pub(crate) fn of_element(
        quantifier: Quantifier,
        conditions: &'p [Condition],
    ) -> Result<(Fields<'p>, Alternatives), PlanErrorKind> {
        match quantifier.is_measure() {
            true => Ok((Fields { reads: vec![Want::Element], ..Fields::default() }, Alternatives::default())),
            false => Fields::of_conditions(conditions),
        }
    }

    /// Returns the test that finds an element with a name.
    pub(crate) fn of_name(named: &'p Named) -> Result<(Fields<'p>, Alternatives), PlanErrorKind> {
        Fields::of_conditions(std::slice::from_ref(&named.condition))
    }

    /// Returns the fields of an element that conditions test. Conditions in several alternatives are tested once.
    fn of_conditions(conditions: &'p [Condition]) -> Result<(Fields<'p>, Alternatives), PlanErrorKind> {
        let mut root = Fields::default();
        let mut tested: Vec<&Condition> = Vec::new();
        let mut masks: Vec<u64> = Vec::new();
        for alternative in conditions.chunk_by(|one, next| one.alternative == next.alternative) {
            let mut mask = 0;
            for condition in alternative {
                let is_same =
                    |known: &&Condition| known.path == condition.path && known.test == condition.test;
                let bit = tested.iter().position(is_same).unwrap_or(tested.len());
                if bit >= 64 {
                    return Err(PlanErrorKind::Unsupported("an element with more than 64 conditions"));
                }
                if bit == tested.len() {
                    tested.push(condition);
                    root.at(&condition.path).reads.push(Want::Test(bit as u8, &condition.test));
                }
                mask |= 1 << bit;
            }
            masks.push(mask);
        }
        let mut masks = masks.into_iter();
        let first = masks.next().unwrap_or(0);
        Ok((root, Alternatives { first, others: masks.collect() }))
    }

    /// Returns the paths that conditions test, by their bits, if the deciding element is read: into a slot of texts.
    pub(crate) fn names(conditions: &[Condition], slot: Slot) -> Box<[Box<str>]> {
        let mut tested: Vec<&Condition> = Vec::new();
        for condition in conditions.iter().filter(|_| matches!(slot, Slot::String(_))) {
            let is_same = |known: &&Condition| known.path == condition.path && known.test == condition.test;
            if !tested.iter().any(is_same) {
                tested.push(condition);
            }
        }
        tested.iter().map(|condition| condition.path.to_string().into()).collect()
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.keys.is_empty()
            && self.indices.is_empty()
            && self.ends.is_empty()
            && self.named.is_empty()
            && self.parallel.is_empty()
            && self.reads.is_empty()
    }

    /// Returns the single elements that are read, each with its index as text.
    pub(crate) fn elements(&self) -> impl Iterator<Item = (String, &Fields<'p>)> {
        let indices = self.indices.iter().map(|(index, fields)| (format!("[{index}]"), fields));
        let ends = self.ends.iter().map(|(index, fields)| (format!("[-{index}]"), fields));
        let named = self.named.iter().map(|(named, fields)| (named.to_string(), fields));
        indices.chain(ends).chain(named)
    }

    /// Appends the slots of the values that are read here and below, except for presence and named elements: a message
    /// without such an element does not have them.
    pub(crate) fn slots(&self, into: &mut Vec<Slot>) {
        into.extend(self.reads.iter().filter_map(|want| match want {
            Want::Value(_, slot) | Want::Exact(slot) | Want::Elements(_, _, slot) => Some(*slot),
            Want::Length(slot, _) | Want::IsNan(slot) | Want::Number(_, slot, _) => Some(*slot),
            Want::Presence(_) | Want::EventTime | Want::Test(..) | Want::Element => None,
        }));
        let keys = self.keys.iter().map(|(_, fields)| fields);
        let elements = self.indices.iter().chain(&self.ends).map(|(_, fields)| fields);
        keys.chain(elements).for_each(|fields| fields.slots(into));
    }

    pub(crate) fn key(&self, name: &str) -> Option<&Fields<'p>> {
        self.keys.iter().find(|(key, _)| *key == name).map(|(_, fields)| fields)
    }

    /// Returns the number of values that are read here and below.
    pub(crate) fn count(&self) -> usize {
        let below = |sum: usize, fields: &Fields<'_>| sum + fields.count();
        let keys = self.keys.iter().map(|(_, fields)| fields).fold(0, below);
        let elements = self.indices.iter().chain(&self.ends).map(|(_, fields)| fields);
        let named = self.named.iter().map(|(_, fields)| fields);
        let parallel = self.parallel.iter().map(|(_, fields)| fields);
        self.reads.len() + elements.chain(named).chain(parallel).fold(keys, below)
    }
}
