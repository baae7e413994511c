//! Tuples led through stages, one after the other: from what an event says to all that agrees with it.

use super::batch::Delta;
use super::plan::{Lookup, Part, Rail, Stage};
use super::state::{Keyed, PartState, Tick};
use super::term::{Context, Source};

/// How tuples are led, and what of them is wanted.
pub(crate) struct TupleRoute<'a> {
    pub(crate) stages: &'a [Stage],
    pub(crate) output: &'a [u32],
    /// Whether the first that arrives is enough.
    pub(crate) is_first: bool,
}

/// Leads the tuples of `of` through the stages. Returns whether any tuple may arrive, as it is not known which there are.
pub(crate) fn run<S: Source>(
    of: &Delta,
    TupleRoute { stages, output, is_first }: &TupleRoute<'_>,
    earlier: &[PartState],
    parts: &[Part],
    tick: &Tick<'_, S>,
    out: &mut Delta,
) -> bool {
    if of.is_empty() {
        return false;
    }
    let wanted = if *is_first { 0 } else { output.iter().map(|&slot| slot as usize + 1).max().unwrap_or(0) };
    let (context, slots) = (tick.context(), Vec::new());
    let mut chain = Chain { output, wanted, earlier, parts, context, slots, out, is_vague: false };
    for (tuple, _) in of.iter() {
        chain.slots.clear();
        chain.slots.extend_from_slice(tuple);
        if chain.lead(stages) && *is_first {
            return chain.is_vague;
        }
    }
    let is_vague = chain.is_vague;
    let filled = |stage: &Stage| match stage {
        Stage::Assign(_) => 1,
        Stage::With(_, binds) => binds.len(),
        Stage::Test(_) | Stage::Without(_) => 0,
    };
    let slots = stages.iter().map(filled).sum::<usize>() + of.tuple(0).len();
    if output.len() < slots {
        out.consolidate();
    }
    is_vague
}

struct Chain<'a, S> {
    output: &'a [u32],
    /// What fills slots beyond so many is not in the output: one way through is enough.
    wanted: usize,
    earlier: &'a [PartState],
    parts: &'a [Part],
    context: Context<'a, S>,
    slots: Vec<u64>,
    out: &'a mut Delta,
    is_vague: bool,
}

impl<'a, S: Source> Chain<'a, S> {
    /// Whether something arrived.
    fn lead(&mut self, stages: &[Stage]) -> bool {
        let Some((stage, stages)) = stages.split_first() else {
            self.out.push_columns(&self.slots, self.output, 1);
            return true;
        };
        let filled = self.slots.len();
        let has_arrived = match stage {
            Stage::Test(condition) => self.context.holds(condition, &self.slots) && self.lead(stages),
            Stage::Assign(term) => match self.context.bits(term, &self.slots) {
                Some(bits) => {
                    self.slots.push(bits);
                    self.lead(stages)
                }
                None => false,
            },
            Stage::With(lookup, binds) => {
                let key = Keyed::new(&self.slots, &lookup.slots);
                let part: &'a PartState = &self.earlier[lookup.part.index()];
                let lasts = self.parts[lookup.part.index()].lasts;
                match part.vague(&self.parts[lookup.part.index()]) {
                    Some(Rail::Certain) => return false,
                    Some(Rail::Possible) if binds.is_empty() => return self.lead(stages),
                    Some(Rail::Possible) => {
                        self.is_vague = true;
                        return true;
                    }
                    None => {}
                }
                let is_one_enough = filled >= self.wanted;
                let mut any = false;
                let mut with = |tuple: &[u64]| {
                    self.slots.extend(binds.iter().map(|&c| tuple[c as usize]));
                    any |= self.lead(stages);
                    self.slots.truncate(filled);
                    any && is_one_enough
                };
                if lasts {
                    let table = part.table.iter();
                    table.flat_map(|table| table.tuples(lookup.access, key.key())).any(&mut with);
                } else {
                    let mut agreeing = part.out.iter().filter(|(tuple, _)| agrees(lookup, tuple, key.key()));
                    agreeing.any(|(tuple, _)| with(tuple));
                }
                any
            }
            Stage::Without(lookup) => {
                let key = Keyed::new(&self.slots, &lookup.slots);
                let part = &self.earlier[lookup.part.index()];
                match part.vague(&self.parts[lookup.part.index()]) {
                    Some(Rail::Possible) => return false,
                    Some(Rail::Certain) => return self.lead(stages),
                    None => {}
                }
                let found = if self.parts[lookup.part.index()].lasts {
                    part.table.as_ref().is_some_and(|table| table.has(lookup.access, key.key()))
                } else {
                    part.out.iter().any(|(tuple, _)| agrees(lookup, tuple, key.key()))
                };
                !found && self.lead(stages)
            }
        };
        self.slots.truncate(filled);
        has_arrived
    }
}

fn agrees(lookup: &Lookup, tuple: &[u64], key: &[u64]) -> bool {
    lookup.columns.iter().zip(key).all(|(&c, &value)| tuple[c as usize] == value)
}
