//! Tuples led through stages, one after the other: from what an event says to all that agrees with it.

use super::batch::Batch;
use super::plan::{Lookup, Part, Stage};
use super::state::{Keyed, PartState, Tick};
use super::term::{Context, Source};

/// Leads the tuples of `of` through the stages.
pub(crate) fn run<S: Source>(
    of: &Batch,
    stages: &[Stage],
    output: &[u32],
    earlier: &[PartState],
    parts: &[Part],
    tick: &Tick<'_, S>,
    out: &mut Batch,
) {
    if of.is_empty() {
        return;
    }
    let mut chain = Chain { output, earlier, parts, context: tick.context(), slots: Vec::new(), out };
    for (tuple, _) in of.iter() {
        chain.slots.clear();
        chain.slots.extend_from_slice(tuple);
        chain.lead(stages);
    }
}

struct Chain<'a, S> {
    output: &'a [u32],
    earlier: &'a [PartState],
    parts: &'a [Part],
    context: Context<'a, S>,
    slots: Vec<u64>,
    out: &'a mut Batch,
}

impl<'a, S: Source> Chain<'a, S> {
    fn lead(&mut self, stages: &[Stage]) {
        let Some((stage, stages)) = stages.split_first() else {
            self.out.push_columns(&self.slots, self.output, 1);
            return;
        };
        let filled = self.slots.len();
        match stage {
            Stage::Test(condition) => {
                if self.context.holds(condition, &self.slots) {
                    self.lead(stages);
                }
            }
            Stage::Assign(term) => {
                if let Some(bits) = self.context.bits(term, &self.slots) {
                    self.slots.push(bits);
                    self.lead(stages);
                }
            }
            Stage::With(lookup, binds) => {
                let key = Keyed::new(&self.slots, &lookup.slots);
                let part: &'a PartState = &self.earlier[lookup.part.index()];
                let lasts = self.parts[lookup.part.index()].lasts;
                let mut with = |tuple: &[u64]| {
                    self.slots.extend(binds.iter().map(|&c| tuple[c as usize]));
                    self.lead(stages);
                    self.slots.truncate(filled);
                };
                if lasts {
                    let table = part.table.iter();
                    table.flat_map(|table| table.tuples(lookup.access, key.key())).for_each(&mut with);
                } else {
                    let agreeing = part.out.iter().filter(|(tuple, _)| agrees(lookup, tuple, key.key()));
                    agreeing.for_each(|(tuple, _)| with(tuple));
                }
            }
            Stage::Without(lookup) => {
                let key = Keyed::new(&self.slots, &lookup.slots);
                let part = &self.earlier[lookup.part.index()];
                let found = if self.parts[lookup.part.index()].lasts {
                    part.table.as_ref().is_some_and(|table| table.has(lookup.access, key.key()))
                } else {
                    part.out.iter().any(|(tuple, _)| agrees(lookup, tuple, key.key()))
                };
                if !found {
                    self.lead(stages);
                }
            }
        }
        self.slots.truncate(filled);
    }
}

fn agrees(lookup: &Lookup, tuple: &[u64], key: &[u64]) -> bool {
    lookup.columns.iter().zip(key).all(|(&c, &value)| tuple[c as usize] == value)
}
