//! Execution of a plan over a trace.
//!
//! At every tick each part is computed from those before it: a momentary part entirely, which is at most a
//! few tuples, a lasting part only where it changes. The cost of a tick thus follows the tuples that its
//! event affects, and not the size of the tables.

mod part;
mod points;
mod saved;

use serde::{Deserialize, Serialize};

use super::apart::Counts;
use super::batch::Delta;
use super::obligations::Obligations;
use super::plan::{Condition, Part, PartOp, RelationPlan, TruthBound};
use super::rollback::RollbackQueue;
use super::since::{Since, SinceState};
use super::table::{Meta, TupleTable};
use super::term::{Cell, Context, Source, Watch};
use super::text::Texts;
use super::witness::Witnesses;
use crate::ops::varying::Varying;

/// State after the events so far.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct RelationState {
    parts: Vec<PartState>,
    texts: Texts,
    /// Number of the last tick, from 1.
    number: u64,
    /// Time of the first time point.
    first: Option<i64>,
    /// Tick of the last time point.
    last: i64,
    /// Whether the open interval after it is speculative.
    is_speculative: bool,
    /// Obligations of the tuples of the last part, if the formula has future operators.
    obligations: Option<Box<Obligations>>,
    #[serde(skip)]
    witnesses: Witnesses,
}

/// State of a part, and its changes.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct PartState {
    /// Changes of a lasting part in this tick, or tuples of a momentary one. Valid within the tick.
    #[serde(skip)]
    pub(crate) out: Delta,
    pub(crate) table: Option<TupleTable>,
    /// Number of tuples.
    size: i64,
    own: Own,
    /// Whether it is [vague](Part::vague).
    is_vague: bool,
    /// Size, vagueness and small state before the speculative step.
    before: Option<Box<(i64, bool, Own)>>,
}

/// State of an operator besides its table.
#[derive(Clone, Debug, Serialize, Deserialize)]
enum Own {
    Nothing,
    /// Output of the next tick.
    Next(Delta),
    /// Delayed changes: their ticks, weights and tuples.
    Delayed(RollbackQueue<(i64, i8, Box<[u64]>)>),
    Watch(Watch),
    Since(SinceState),
    Counts(Box<Counts>),
}

/// Tick at which a plan is evaluated.
pub(crate) struct Tick<'a, S> {
    pub(crate) now: i64,
    /// Previous tick; the least number at the first one.
    pub(crate) before: i64,
    pub(crate) number: u64,
    pub(crate) is_first: bool,
    /// Whether it is the open interval after a time point.
    pub(crate) is_span: bool,
    pub(crate) source: &'a S,
    pub(crate) texts: &'a Texts,
    pub(crate) constants: &'a [Box<str>],
}

impl<S> Tick<'_, S> {
    pub(crate) fn context(&self) -> Context<'_, S> {
        let Tick { source, texts, constants, is_first, .. } = *self;
        Context { source, texts, constants, is_first }
    }
}

/// Some columns of a tuple, stored inline if they are few.
pub(crate) enum KeyTuple {
    Few([u64; 4], usize),
    Many(Vec<u64>),
}

impl KeyTuple {
    #[inline(always)]
    pub(crate) fn new(tuple: &[u64], columns: &[u32]) -> KeyTuple {
        if columns.len() <= 4 {
            let mut few = [0; 4];
            for (value, &column) in few.iter_mut().zip(columns) {
                *value = tuple[column as usize];
            }
            KeyTuple::Few(few, columns.len())
        } else {
            KeyTuple::Many(columns.iter().map(|&column| tuple[column as usize]).collect())
        }
    }

    #[inline(always)]
    pub(crate) fn key(&self) -> &[u64] {
        match self {
            KeyTuple::Few(few, len) => &few[..*len],
            KeyTuple::Many(many) => many,
        }
    }

    pub(crate) fn is_in(&self, batch: &Delta) -> bool {
        batch.contains(self.key())
    }
}

impl RelationState {
    /// Creates the state before the first event.
    pub(crate) fn new(plan: &RelationPlan) -> RelationState {
        let part = |part: &Part| {
            let arity = part.variables.len();
            let fixed = |conditions: &[Condition]| conditions.iter().all(Condition::is_fixed);
            let own_table = match &part.op {
                PartOp::Since { .. } | PartOp::Lasting(..) | PartOp::Obligation { .. } => true,
                PartOp::Union(_) | PartOp::Project(..) => part.lasts,
                PartOp::Select(_, conditions) => !fixed(conditions),
                _ => false,
            };
            let own = match &part.op {
                PartOp::Previously(_) | PartOp::Changes(_) => Own::Next(Delta::new(arity)),
                PartOp::Delay(..) => Own::Delayed(RollbackQueue::default()),
                PartOp::Select(_, conditions) if !fixed(conditions) => {
                    Own::Watch(Watch::new(conditions.iter()))
                }
                PartOp::Since { left, .. } => Own::Since(SinceState::new(left)),
                PartOp::Apart { sides, .. } => Own::Counts(Box::new(Counts::new(sides[0].columns.len()))),
                _ => Own::Nothing,
            };
            let table = (own_table || part.is_kept).then(|| TupleTable::new(arity, &part.indexes));
            PartState { out: Delta::new(arity), table, size: 0, own, is_vague: false, before: None }
        };
        RelationState {
            parts: plan.parts.iter().map(part).collect(),
            texts: Texts::new(&plan.texts),
            number: 0,
            first: None,
            last: i64::MIN,
            is_speculative: false,
            obligations: plan.obligation.is_some().then(Box::default),
            witnesses: Witnesses::default(),
        }
    }

    /// Evaluates the next tick. Returns whether the formula holds. Ticks never decrease.
    pub(crate) fn tick<S: Source>(
        &mut self,
        plan: &RelationPlan,
        now: i64,
        before: i64,
        is_span: bool,
        source: &S,
    ) -> bool {
        self.number += 1;
        if self.texts.is_due() {
            self.sweep(plan);
        }
        for (i, part) in plan.parts.iter().enumerate() {
            if let PartOp::Bind(atom) = part.op {
                self.bind(plan, i, atom, is_span, source);
            }
        }
        let RelationState { parts, texts, number, witnesses, .. } = self;
        let (number, is_first) = (*number, *number == 1);
        let tick = Tick { now, before, number, is_first, is_span, source, texts, constants: &plan.texts };
        for (i, part) in plan.parts.iter().enumerate() {
            let (earlier, rest) = parts.split_at_mut(i);
            if let Some(state) = rest.first_mut() {
                state.step(part, &plan.parts, earlier, &tick);
            }
        }
        let context = tick.context();
        let root = plan.roots.iter().find(|root| {
            let state = &parts[root.part.index()];
            let has_tuple = match state.vague(&plan.parts[root.part.index()]) {
                None => state.size > 0,
                Some(truth_bound) => truth_bound == TruthBound::Possible,
            };
            has_tuple && root.conditions.iter().all(|c| context.holds(c, &[]))
        });
        let holds = root.is_some();
        witnesses.note(plan, now, holds, texts, || {
            let part = root?.part.index();
            // The output of a lasting part is its changes; the first added tuple is among them.
            let (tuple, _) = parts[part].out.iter().find(|(_, weight)| *weight > 0)?;
            Some((&plan.parts[part].variables[..], tuple))
        });
        holds != plan.negated
    }

    /// Computes the tuple of an atom.
    fn bind<S: Source>(&mut self, plan: &RelationPlan, part: usize, atom: u32, is_span: bool, source: &S) {
        let atom = &plan.atoms[atom as usize];
        let out = &mut self.parts[part].out;
        out.clear();
        if is_span || !source.on(atom.topic) {
            return;
        }
        let tuple = out.push_blank();
        for (i, &(field, column)) in atom.columns.iter().enumerate() {
            let value = match source.field(field) {
                Some(Cell::Bits(bits)) => bits,
                Some(Cell::Text(text)) => self.texts.intern(text),
                None => return out.clear(),
            };
            // A variable bound twice requires equal values.
            let again = atom.columns[..i].iter().any(|&(_, other)| other == column);
            if again && tuple[column as usize] != value {
                return out.clear();
            }
            tuple[column as usize] = value;
        }
    }

    /// Removes the texts that no relation refers to.
    fn sweep(&mut self, plan: &RelationPlan) {
        let texts = &mut self.texts;
        for (state, part) in self.parts.iter().zip(&plan.parts) {
            if !part.is_text.contains(&true) {
                continue;
            }
            let mut mark = |(column, value): (usize, u64)| {
                if part.is_text[column] {
                    texts.mark(value);
                }
            };
            state.out.values().for_each(&mut mark);
            if let Some(table) = &state.table {
                for row in table.rows() {
                    table.tuple(row).iter().copied().enumerate().for_each(&mut mark);
                }
            }
            match &state.own {
                Own::Next(next) => next.values().for_each(&mut mark),
                Own::Delayed(waiting) => {
                    let tuples = waiting.iter().flat_map(|(_, _, tuple)| tuple.iter().copied().enumerate());
                    tuples.for_each(&mut mark);
                }
                // Counted tuples are in the tables of both sides, those with obligations in their own.
                Own::Nothing | Own::Watch(_) | Own::Since(_) | Own::Counts(_) => {}
            }
        }
        if let (Some(obligations), Some(part)) = (&self.obligations, plan.parts.last()) {
            let is_text = |column: usize| part.is_text.get(column) == Some(&true);
            let texts_of = obligations.answers().values().filter(|(column, _)| is_text(*column));
            texts_of.for_each(|(_, value)| texts.mark(value));
        }
        texts.sweep();
    }

    /// Returns the next tick at which time alone causes a change.
    fn deadline(&self, plan: &RelationPlan) -> Option<i64> {
        let of_part = |(state, part): (&PartState, &Part)| match (&part.op, &state.own) {
            // A vague part is no longer evaluated.
            _ if state.is_vague && !part.forgets() => None,
            (PartOp::Since { lower, upper, left, right, most }, Own::Since(own)) => {
                let since = Since { lower: *lower, upper: *upper, left, right: *right, most: *most };
                own.deadline(&since, state.table.as_ref()?)
            }
            (PartOp::Lasting(_, Some(upper)), _) => {
                let (_, meta) = state.table.as_ref()?.first()?;
                Some(meta.time.saturating_add(*upper).saturating_add(1))
            }
            (PartOp::Delay(_, by), Own::Delayed(waiting)) => Some(waiting.front()?.0.saturating_add(*by)),
            _ => None,
        };
        self.parts.iter().zip(&plan.parts).filter_map(of_part).min()
    }

    /// Whether no stored state of earlier time points can matter.
    pub(crate) fn is_bare(&self, plan: &RelationPlan) -> bool {
        let gone = self.obligations.as_ref().map_or(Some(0), |obligations| obligations.gone());
        let is_bare = |(state, part): (&PartState, &Part)| {
            let len = state.table.as_ref().map_or(0, TupleTable::len);
            let own = match &state.own {
                Own::Nothing | Own::Watch(_) => true,
                Own::Next(next) => next.is_empty(),
                Own::Delayed(waiting) => waiting.front().is_none(),
                Own::Since(since) => since.is_bare(),
                Own::Counts(counts) => counts.is_empty(),
            };
            let is_obligation = matches!(part.op, PartOp::Obligation { .. });
            let is_empty = if is_obligation { gone == Some(len) } else { len == 0 };
            own && is_empty && (is_obligation || !part.lasts || state.size == 0)
        };
        gone.is_some() && self.parts.iter().zip(&plan.parts).all(is_bare)
    }

    /// Number of values evicted because of limits, counted for the lower truth: the upper one evicts the
    /// same.
    pub(crate) fn forgotten(&self, plan: &RelationPlan) -> u64 {
        let of_part = |(state, part): (&PartState, &Part)| match (&part.op, &state.own) {
            (PartOp::Since { most: Some(most), .. }, Own::Since(own))
                if most.truth_bound == TruthBound::Certain =>
            {
                own.forgotten
            }
            _ => 0,
        };
        self.parts.iter().zip(&plan.parts).map(of_part).fold(0, u64::saturating_add)
    }

    /// Whether there was no time point yet.
    pub(crate) fn is_first(&self) -> bool {
        self.number == 0
    }

    /// Number of tuples in the output of the last tick.
    #[cfg(test)]
    pub(crate) fn handled(&self) -> usize {
        self.parts.iter().map(|part| part.out.len()).sum()
    }

    /// Number of stored tuples and texts, to which memory is proportional.
    pub(crate) fn kept(&self) -> usize {
        let tables = self.parts.iter().filter_map(|part| part.table.as_ref());
        let waiting = self.obligations.as_ref().map_or(0, |obligations| obligations.kept());
        let counts = self.parts.iter().map(|part| match &part.own {
            Own::Counts(counts) => counts.len(),
            _ => 0,
        });
        tables.map(TupleTable::len).sum::<usize>() + counts.sum::<usize>() + self.texts.len() + waiting
    }
}

impl Varying for RelationState {
    fn bytes(&self) -> usize {
        self.parts.len() * size_of::<PartState>() + self.kept() * size_of::<Meta>()
    }

    fn dropped(&self) -> u64 {
        self.obligations().map_or(0, Obligations::lost)
    }
}
