//! Elements of arrays and sequences: single ones, tests and measures of all, and their lengths.

use rondel_event::Slot;

use super::super::compile::advance;
use super::super::error::CdrErrorKind;
use super::super::plan::{Element, ElementTest, Place, Sequence};
use super::super::write::Scalar;
use super::{Stop, Walk, length_align};
use crate::elements::{Measurand, Measured, Tested, Witness};

impl Walk<'_, '_> {
    pub(super) fn sequence<const FORM: u8>(&mut self, sequence: &Sequence) -> Result<(), Stop> {
        let place = sequence.place;
        let count = self.count::<FORM>(sequence)?;
        for target in &sequence.present {
            // Cannot fail: nothing is read.
            let _ = self.out.write(*target, Scalar::Int(0));
        }
        for column in &sequence.lengths {
            let length = sequence.outer.unwrap_or(count);
            self.out.block.set_int(*column, self.out.row, length.into());
        }
        let may_end = std::mem::replace(&mut self.may_end, false);
        let start = self.at;
        let mut next = 0;
        for (index, steps) in &sequence.picks {
            if *index >= count {
                break;
            }
            if *index < next {
                // The same element by its position from the end.
                (self.at, next) = (start, 0);
            }
            self.advance::<FORM>(&sequence.element, *index - next, place)?;
            self.run::<FORM>(steps)?;
            next = index + 1;
        }
        for (from_end, steps) in &sequence.ends {
            let Some(index) = count.checked_sub(*from_end) else { continue };
            self.at = start;
            self.advance::<FORM>(&sequence.element, index, place)?;
            self.run::<FORM>(steps)?;
            next = index + 1;
        }
        let mut left_out = 0;
        for test in &sequence.tests {
            self.at = start;
            left_out = left_out.max(self.test::<FORM>(test, count)?);
            next = count;
        }
        if sequence.searches() {
            next = self.search::<FORM>(sequence, start, next, count)?;
        }
        self.out.left_out += left_out;
        if sequence.goes_on {
            self.advance::<FORM>(&sequence.element, count - next, place)?;
        }
        self.may_end = may_end;
        Ok(())
    }

    /// Reads the number of elements, and checks that this many can exist.
    #[inline(always)]
    fn count<const FORM: u8>(&mut self, sequence: &Sequence) -> Result<u32, Stop> {
        let place = sequence.place;
        let Some(count) = sequence.fixed else {
            let at = self.aligned(length_align(FORM));
            self.need(at, 4, place)?;
            let count = self.u32::<FORM>(at);
            self.at = at + 4;
            if count > sequence.bound {
                return Err(self.fault(CdrErrorKind::LengthAboveBound(count), at, place));
            }
            // Every element has at least one byte.
            if count as usize > self.end - self.at {
                return Err(self.fault(CdrErrorKind::LengthBeyondEnd(count), at, place));
            }
            return Ok(count);
        };
        self.need(self.at, 1, place)?;
        Ok(count)
    }

    /// Tests or measures all elements, and writes the result. Returns the number of omitted elements.
    #[inline(always)]
    fn test<const FORM: u8>(&mut self, test: &ElementTest, count: u32) -> Result<u64, Stop> {
        let (is_measure, mut measured) = (test.quantifier.is_measure(), Measured::NOTHING);
        let (single, mut tested) = (test.alternatives.single(), Tested::default());
        if let Some(Slot::String(column)) = test.slot {
            self.witness::<FORM>(test, column, count)?;
            return Ok(0);
        }
        for _ in 0..count {
            let outer = std::mem::replace(&mut self.out.met, 0);
            self.run::<FORM>(&test.steps)?;
            let met = std::mem::replace(&mut self.out.met, outer);
            if is_measure {
                measured.add(Measurand::Number(self.out.element));
                continue;
            }
            let unknown = std::mem::take(&mut self.out.unknown);
            tested.add(&test.alternatives, single, met, unknown);
        }
        let Some(slot) = test.slot else { return Ok(0) };
        let (block, row) = (&mut *self.out.block, self.out.row);
        if is_measure {
            self.out.not_numbers += measured.write(block, row, slot, test.quantifier).not_numbers;
            Ok(measured.left_out(test.quantifier))
        } else {
            self.out.not_numbers += tested.write(block, row, slot, test.quantifier);
            Ok(tested.left_out)
        }
    }

    /// Writes the element that decides a quantifier.
    #[cold]
    fn witness<const FORM: u8>(&mut self, test: &ElementTest, column: u32, count: u32) -> Result<(), Stop> {
        let (block, row) = (&mut *self.out.block, self.out.row);
        block.set_invalid(Slot::String(column), row);
        let mut witness = Witness::new(test.quantifier);
        for _ in 0..count {
            let outer = std::mem::replace(&mut self.out.met, 0);
            self.out.seen = Some(Box::default());
            self.run::<FORM>(&test.steps)?;
            let met = std::mem::replace(&mut self.out.met, outer);
            let unknown = std::mem::take(&mut self.out.unknown);
            let seen = self.out.seen.take().unwrap_or_default();
            let text = if test.quantifier.is_measure() {
                witness.measure(Measurand::Number(self.out.element))
            } else {
                let is_met = test.alternatives.hold(met);
                let may_meet = unknown != 0 && test.alternatives.hold(met | unknown);
                witness.test((is_met || !may_meet).then_some(is_met), &test.names, &seen)
            };
            if let Some(text) = text {
                self.out.block.set_string(column, self.out.row, &text);
            }
        }
        Ok(())
    }

    /// Skips elements.
    pub(super) fn advance<const FORM: u8>(
        &mut self,
        element: &Element,
        count: u32,
        place: Place,
    ) -> Result<(), Stop> {
        if count == 0 {
            return Ok(());
        }
        match element {
            Element::Number(align, size) => {
                let at = self.aligned(*align);
                let size = size.saturating_mul(count as usize);
                self.need(at, size, place)?;
                self.at = at + size;
            }
            Element::Fixed(reach) => {
                let phase = self.at.wrapping_sub(self.origin) & 7;
                let size = usize::try_from(advance(reach, phase, count.into())).unwrap_or(usize::MAX);
                self.need(self.at, size, place)?;
                self.at += size;
            }
            Element::Variable(steps) => {
                for _ in 0..count {
                    self.run::<FORM>(steps)?;
                }
            }
        }
        Ok(())
    }
}
