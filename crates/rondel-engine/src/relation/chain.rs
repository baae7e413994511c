//! Chains: tuples passed through stages one after the other, from an event to everything that matches it.

use super::batch::Delta;
use super::plan::{Lookup, Part, Stage, TruthBound};
use super::state::{KeyTuple, PartState, Tick};
use super::term::{Context, Source};

/// Stages of a chain, and the slots that it outputs.
pub(crate) struct TupleRoute<'a> {
    pub(crate) stages: &'a [Stage],
    pub(crate) output: &'a [u32],
    /// Whether the first output is enough.
    pub(crate) is_first: bool,
}

/// Passes the tuples of `of` through the stages. Returns whether the output is vague, since a stage reads a
/// vague part.
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
        if chain.run_stages(stages) && *is_first {
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
    /// Number of leading slots that determine the output; beyond them one match is enough.
    wanted: usize,
    earlier: &'a [PartState],
    parts: &'a [Part],
    context: Context<'a, S>,
    slots: Vec<u64>,
    out: &'a mut Delta,
    is_vague: bool,
}

impl<'a, S: Source> Chain<'a, S> {
    /// Passes the current slots through the stages. Returns whether there was output.
    fn run_stages(&mut self, stages: &[Stage]) -> bool {
        let Some((stage, stages)) = stages.split_first() else {
            self.out.push_columns(&self.slots, self.output, 1);
            return true;
        };
        let filled = self.slots.len();
        let has_arrived = match stage {
            Stage::Test(condition) => self.context.holds(condition, &self.slots) && self.run_stages(stages),
            Stage::Assign(term) => match self.context.bits(term, &self.slots) {
                Some(bits) => {
                    self.slots.push(bits);
                    self.run_stages(stages)
                }
                None => false,
            },
            Stage::With(lookup, binds) => {
                let key = KeyTuple::new(&self.slots, &lookup.slots);
                let part: &'a PartState = &self.earlier[lookup.part.index()];
                let lasts = self.parts[lookup.part.index()].lasts;
                match part.vague(&self.parts[lookup.part.index()]) {
                    Some(TruthBound::Certain) => return false,
                    Some(TruthBound::Possible) if binds.is_empty() => return self.run_stages(stages),
                    Some(TruthBound::Possible) => {
                        self.is_vague = true;
                        return true;
                    }
                    None => {}
                }
                let is_one_enough = filled >= self.wanted;
                let mut any = false;
                let mut with = |tuple: &[u64]| {
                    self.slots.extend(binds.iter().map(|&c| tuple[c as usize]));
                    any |= self.run_stages(stages);
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
                let key = KeyTuple::new(&self.slots, &lookup.slots);
                let part = &self.earlier[lookup.part.index()];
                match part.vague(&self.parts[lookup.part.index()]) {
                    Some(TruthBound::Possible) => return false,
                    Some(TruthBound::Certain) => return self.run_stages(stages),
                    None => {}
                }
                let found = if self.parts[lookup.part.index()].lasts {
                    part.table.as_ref().is_some_and(|table| table.has(lookup.access, key.key()))
                } else {
                    part.out.iter().any(|(tuple, _)| agrees(lookup, tuple, key.key()))
                };
                !found && self.run_stages(stages)
            }
        };
        self.slots.truncate(filled);
        has_arrived
    }
}

fn agrees(lookup: &Lookup, tuple: &[u64], key: &[u64]) -> bool {
    lookup.columns.iter().zip(key).all(|(&c, &value)| tuple[c as usize] == value)
}
