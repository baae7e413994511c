//! Elements of sequences identified by their names.

use rondel_event::Slot;

use super::super::plan::{ElementTest, Sequence};
use super::{Stop, Walk};

impl Walk<'_, '_> {
    /// Reads elements with names, and records the positions of names. Returns the number of skipped elements.
    #[inline(never)]
    pub(super) fn search<const FORM: u8>(
        &mut self,
        sequence: &Sequence,
        start: usize,
        mut next: u32,
        count: u32,
    ) -> Result<u32, Stop> {
        for (test, element) in &sequence.named {
            self.at = start;
            for _ in 0..count {
                let begin = self.at;
                if self.is_met::<FORM>(test)? {
                    let end = std::mem::replace(&mut self.at, begin);
                    self.lack(&element.slots);
                    self.run::<FORM>(&element.steps)?;
                    self.at = end;
                }
            }
            next = count;
        }
        for (test, position) in &sequence.finds {
            self.at = start;
            let mut found = u32::MAX;
            for index in 0..count {
                if self.is_met::<FORM>(test)? {
                    found = index;
                }
            }
            if let Some(place) = self.positions.get_mut(*position) {
                *place = found;
            }
            next = count;
        }
        for (position, element) in &sequence.found {
            let index = self.positions.get(*position).copied().unwrap_or(u32::MAX);
            if index == u32::MAX {
                continue;
            }
            self.lack(&element.slots);
            if index < count {
                self.at = start;
                self.advance::<FORM>(&sequence.element, index, sequence.place)?;
                self.run::<FORM>(&element.steps)?;
                next = index + 1;
            }
        }
        Ok(next)
    }

    /// Skips an element, and returns whether it meets a test.
    fn is_met<const FORM: u8>(&mut self, test: &ElementTest) -> Result<bool, Stop> {
        let outer = (std::mem::take(&mut self.out.met), self.out.unknown);
        self.run::<FORM>(&test.steps)?;
        let met = std::mem::replace(&mut self.out.met, outer.0);
        self.out.unknown = outer.1;
        Ok(test.alternatives.hold(met))
    }

    /// Marks values as unknown.
    fn lack(&mut self, slots: &[Slot]) {
        slots.iter().for_each(|slot| self.out.block.set_invalid(*slot, self.out.row));
    }
}
