//! A plan on its way over a trace.
//!
//! At every tick each part is computed from those before it: one that does not last anew, which is at
//! most a few tuples; one that lasts only where it changes. So the cost of a tick follows what its
//! event touches, and not what the tables hold.

mod moments;
mod part;
mod saved;

use serde::{Deserialize, Serialize};

use super::apart::Counts;
use super::asking::Asking;
use super::batch::Delta;
use super::plan::{Condition, Part, PartOp, Rail, RelationPlan};
use super::reel::Reel;
use super::since::{Since, SinceState};
use super::table::{Meta, TupleTable};
use super::term::{Cell, Context, Source, Watch};
use super::text::Texts;
use super::witness::Witnesses;
use crate::ops::varying::Varying;

/// What is remembered of the events so far.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct RelationState {
    parts: Vec<PartState>,
    texts: Texts,
    /// The number of the last tick, from 1.
    number: u64,
    /// The time of the first moment.
    first: Option<i64>,
    /// The place of the last moment.
    last: i64,
    /// Whether the span after it is on trial.
    is_trial: bool,
    /// What is asked of the tuples of the last part, if the formula looks ahead.
    asking: Option<Box<Asking>>,
    #[serde(skip)]
    witnesses: Witnesses,
}

/// What a part is, and how it has changed.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct PartState {
    /// Of a part that lasts the changes of this tick, of another one its tuples.
    /// Nothing of it outlives the tick.
    #[serde(skip)]
    pub(crate) out: Delta,
    pub(crate) table: Option<TupleTable>,
    /// How many tuples it has.
    size: i64,
    own: Own,
    /// Whether it is [vague](Part::vague).
    is_vague: bool,
    /// The size, whether it was vague, and what was small of its own, before what is done on trial.
    before: Option<Box<(i64, bool, Own)>>,
}

/// What an operator keeps besides a table.
#[derive(Clone, Debug, Serialize, Deserialize)]
enum Own {
    Nothing,
    /// What is to come at the next tick.
    Next(Delta),
    /// Changes that wait: when they came, and their tuples.
    Delayed(Reel<(i64, i8, Box<[u64]>)>),
    Watch(Watch),
    Since(SinceState),
    Counts(Box<Counts>),
}

/// A moment at which a plan is asked.
pub(crate) struct Tick<'a, S> {
    pub(crate) now: i64,
    /// The time of the tick before; the least number at the first.
    pub(crate) before: i64,
    pub(crate) number: u64,
    pub(crate) is_first: bool,
    /// Whether it stands for the time after a moment, up to the next.
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

/// Some columns of a tuple, in place as long as they are few.
pub(crate) enum Keyed {
    Few([u64; 4], usize),
    Many(Vec<u64>),
}

impl Keyed {
    #[inline(always)]
    pub(crate) fn new(tuple: &[u64], columns: &[u32]) -> Keyed {
        if columns.len() <= 4 {
            let mut few = [0; 4];
            for (value, &column) in few.iter_mut().zip(columns) {
                *value = tuple[column as usize];
            }
            Keyed::Few(few, columns.len())
        } else {
            Keyed::Many(columns.iter().map(|&column| tuple[column as usize]).collect())
        }
    }

    #[inline(always)]
    pub(crate) fn key(&self) -> &[u64] {
        match self {
            Keyed::Few(few, len) => &few[..*len],
            Keyed::Many(many) => many,
        }
    }

    pub(crate) fn is_in(&self, batch: &Delta) -> bool {
        batch.contains(self.key())
    }
}

impl RelationState {
    /// Before the first event.
    pub(crate) fn new(plan: &RelationPlan) -> RelationState {
        let part = |part: &Part| {
            let arity = part.variables.len();
            let fixed = |conditions: &[Condition]| conditions.iter().all(Condition::is_fixed);
            let own_table = match &part.op {
                PartOp::Since { .. } | PartOp::Lasting(..) | PartOp::Ask { .. } => true,
                PartOp::Union(_) | PartOp::Project(..) => part.lasts,
                PartOp::Select(_, conditions) => !fixed(conditions),
                _ => false,
            };
            let own = match &part.op {
                PartOp::Previously(_) | PartOp::Changes(_) => Own::Next(Delta::new(arity)),
                PartOp::Delay(..) => Own::Delayed(Reel::default()),
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
            is_trial: false,
            asking: plan.ask.is_some().then(Box::default),
            witnesses: Witnesses::default(),
        }
    }

    /// Whether the formula holds at the next tick. Times never go back.
    pub(crate) fn tick<S: Source>(
        &mut self,
        plan: &RelationPlan,
        (now, before): (i64, i64),
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
                Some(rail) => rail == Rail::Possible,
            };
            has_tuple && root.conditions.iter().all(|c| context.holds(c, &[]))
        });
        let holds = root.is_some();
        witnesses.note(plan, (now, holds), texts, || {
            let part = root?.part.index();
            // Of what lasts these are the changes, and the first that came is among them.
            let (tuple, _) = parts[part].out.iter().find(|(_, weight)| *weight > 0)?;
            Some((&plan.parts[part].variables[..], tuple))
        });
        holds != plan.negated
    }

    /// The tuple of an atom.
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
            // One variable in two places: both must have one value.
            let again = atom.columns[..i].iter().any(|&(_, other)| other == column);
            if again && tuple[column as usize] != value {
                return out.clear();
            }
            tuple[column as usize] = value;
        }
    }

    /// Forgets the texts that nothing has any more.
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
                // What is counted is in the tables of both sides, and what is asked of tuples in that of them.
                Own::Nothing | Own::Watch(_) | Own::Since(_) | Own::Counts(_) => {}
            }
        }
        if let (Some(asking), Some(part)) = (&self.asking, plan.parts.last()) {
            let is_text = |column: usize| part.is_text.get(column) == Some(&true);
            let texts_of = asking.answers().values().filter(|(column, _)| is_text(*column));
            texts_of.for_each(|(_, value)| texts.mark(value));
        }
        texts.sweep();
    }

    /// The first tick at which something changes by itself.
    fn deadline(&self, plan: &RelationPlan) -> Option<i64> {
        let of_part = |(state, part): (&PartState, &Part)| match (&part.op, &state.own) {
            // It is not evaluated any more.
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

    /// Whether nothing of the moments so far is kept that can matter.
    pub(crate) fn is_bare(&self, plan: &RelationPlan) -> bool {
        let gone = self.asking.as_ref().map_or(Some(0), |asking| asking.gone());
        let is_bare = |(state, part): (&PartState, &Part)| {
            let len = state.table.as_ref().map_or(0, TupleTable::len);
            let own = match &state.own {
                Own::Nothing | Own::Watch(_) => true,
                Own::Next(next) => next.is_empty(),
                Own::Delayed(waiting) => waiting.front().is_none(),
                Own::Since(since) => since.is_bare(),
                Own::Counts(counts) => counts.is_empty(),
            };
            let is_asked = matches!(part.op, PartOp::Ask { .. });
            let is_empty = if is_asked { gone == Some(len) } else { len == 0 };
            own && is_empty && (is_asked || !part.lasts || state.size == 0)
        };
        gone.is_some() && self.parts.iter().zip(&plan.parts).all(is_bare)
    }

    /// How many values were forgotten because there were too many: of the relations of what is certain, as those of
    /// what is possible forget the same.
    pub(crate) fn forgotten(&self, plan: &RelationPlan) -> u64 {
        let of_part = |(state, part): (&PartState, &Part)| match (&part.op, &state.own) {
            (PartOp::Since { most: Some(most), .. }, Own::Since(own)) if most.rail == Rail::Certain => {
                own.forgotten
            }
            _ => 0,
        };
        self.parts.iter().zip(&plan.parts).map(of_part).fold(0, u64::saturating_add)
    }

    /// Whether there was no moment so far.
    pub(crate) fn is_first(&self) -> bool {
        self.number == 0
    }

    /// How many tuples were handled at the last tick.
    #[cfg(test)]
    pub(crate) fn handled(&self) -> usize {
        self.parts.iter().map(|part| part.out.len()).sum()
    }

    /// How many tuples and texts are kept: what the memory grows with.
    pub(crate) fn kept(&self) -> usize {
        let tables = self.parts.iter().filter_map(|part| part.table.as_ref());
        let asked = self.asking.as_ref().map_or(0, |asking| asking.kept());
        let counts = self.parts.iter().map(|part| match &part.own {
            Own::Counts(counts) => counts.len(),
            _ => 0,
        });
        tables.map(TupleTable::len).sum::<usize>() + counts.sum::<usize>() + self.texts.len() + asked
    }
}

impl Varying for RelationState {
    fn bytes(&self) -> usize {
        self.parts.len() * size_of::<PartState>() + self.kept() * size_of::<Meta>()
    }

    fn dropped(&self) -> u64 {
        self.asking().map_or(0, Asking::lost)
    }
}
