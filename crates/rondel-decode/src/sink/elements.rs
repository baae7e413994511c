//! Conditions on the elements of an array, and measures of them.

use rondel_event::{Condition, Quantifier, Slot};

use super::Sink;
use crate::elements::{Measurand, Measured, Tested, Witness};
use crate::fields::{Alternatives, Fields};

/// Conditions on the elements of an array, or a measure of them; `E` is the plan of an element.
#[derive(Debug)]
pub(crate) struct ElementTest<E> {
    pub(crate) quantifier: Quantifier,
    pub(crate) slot: Slot,
    pub(crate) alternatives: Alternatives,
    /// Paths of the tested values, if the deciding element is read.
    names: Box<[Box<str>]>,
    pub(crate) element: E,
}

impl<E> ElementTest<E> {
    pub(crate) fn new(
        quantifier: Quantifier,
        conditions: &[Condition],
        alternatives: Alternatives,
        slot: Slot,
        element: E,
    ) -> ElementTest<E> {
        ElementTest { quantifier, slot, alternatives, names: Fields::names(conditions, slot), element }
    }
}

/// Elements of an array that were tested so far.
pub(crate) struct TestedElements {
    measured: Measured,
    tested: Tested,
    witness: Option<Witness>,
    /// Whether an element does not meet the conditions because a compared value has another type.
    pub(crate) has_other: bool,
}

impl Sink<'_> {
    /// Begins a test of the elements of an array.
    #[inline(always)]
    pub(crate) fn begin_elements<E>(&mut self, test: &ElementTest<E>) -> TestedElements {
        self.has_other = false;
        let is_wanted = matches!(test.slot, Slot::String(_));
        if is_wanted {
            self.block.set_invalid(test.slot, self.row);
            self.seen = Some(Box::default());
        }
        TestedElements {
            measured: Measured::NOTHING,
            tested: Tested::default(),
            witness: is_wanted.then(|| Witness::new(test.quantifier)),
            has_other: false,
        }
    }

    /// Begins an element, which its plan then reads.
    #[inline(always)]
    pub(crate) fn begin_element(&mut self) {
        (self.met, self.unknown, self.element) = (0, 0, Measurand::Other);
    }

    /// Adds the current element.
    #[inline(always)]
    pub(crate) fn end_element<E>(&mut self, test: &ElementTest<E>, all: &mut TestedElements) {
        if let Some(witness) = &mut all.witness {
            self.witness(witness, test);
        } else if test.quantifier.is_measure() {
            all.measured.add(self.element);
        } else {
            let single = test.alternatives.single();
            let is_met = all.tested.add(&test.alternatives, single, self.met, self.unknown);
            all.has_other |= self.has_other && !is_met;
        }
        self.has_other = false;
    }

    /// Writes the value of the measure or the quantifier. Returns the number of omitted elements.
    pub(crate) fn end_elements<E>(&mut self, test: &ElementTest<E>, all: &TestedElements) -> u64 {
        if all.witness.is_some() {
            self.seen = None;
            return 0;
        }
        if !test.quantifier.is_measure() {
            self.not_numbers += all.tested.write(self.block, self.row, test.slot, test.quantifier);
            return all.tested.left_out;
        }
        let lacking = all.measured.write(self.block, self.row, test.slot, test.quantifier);
        self.count_mistyped(test.slot, lacking.mistyped);
        self.not_numbers += lacking.not_numbers;
        all.measured.left_out(test.quantifier)
    }

    /// Adds the current element to the search for the deciding one, and writes it if it decides.
    pub(crate) fn witness<E>(&mut self, witness: &mut Witness, test: &ElementTest<E>) {
        let seen = self.seen.as_mut().map_or_else(Vec::new, |seen| std::mem::take(&mut **seen));
        let text = if test.quantifier.is_measure() {
            witness.measure(self.element)
        } else {
            let is_met = test.alternatives.hold(self.met);
            let may_meet = self.unknown != 0 && test.alternatives.hold(self.met | self.unknown);
            witness.test((is_met || !may_meet).then_some(is_met), &test.names, &seen)
        };
        if let (Some(text), Slot::String(column)) = (text, test.slot) {
            self.block.set_string(column, self.row, &text);
        }
    }
}
