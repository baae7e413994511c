//! Evaluation of a tuple's pasts at a tick.

use crate::future::Range;
use crate::relation::batch::Delta;
use crate::relation::plan::{Left, Part, PartOp, RelationPlan, TupleObligation};
use crate::relation::state::{KeyTuple, PartState, Tick};
use crate::relation::table::TupleTable;
use crate::relation::term::Source;

/// Evaluates the pasts of tuples at a tick.
pub(super) struct Probe<'a, 'b, S> {
    pub(super) obligation: &'a TupleObligation,
    pub(super) pasts: &'a [[Vec<Left>; 2]],
    pub(super) parts: &'a [Part],
    pub(super) earlier: &'a [PartState],
    pub(super) tick: &'a Tick<'b, S>,
}

impl<S: Source> Probe<'_, '_, S> {
    pub(super) fn holds(&self, left: &Left, tuple: &[u64]) -> bool {
        match left {
            Left::Test(condition) => self.tick.context().holds(condition, tuple),
            Left::Member { lookup, wanted, .. } => {
                let (part, key) = (&self.earlier[lookup.part.index()], KeyTuple::new(tuple, &lookup.slots));
                let is_member = if self.parts[lookup.part.index()].lasts {
                    part.table.as_ref().is_some_and(|table| table.has(lookup.access, key.key()))
                } else {
                    key.is_in(&part.out)
                };
                is_member == *wanted
            }
        }
    }

    /// Writes the lower and upper truth of every past of a tuple.
    pub(super) fn truths(&self, tuple: &[u64], out: &mut Vec<u8>) {
        let bound = |lefts: &[Left]| u8::from(lefts.iter().all(|left| self.holds(left, tuple)));
        out.clear();
        out.extend(self.pasts.iter().map(|[certain, possible]| bound(certain) | bound(possible) << 1));
    }

    /// Writes the pasts as they remain until a tick concerns the tuple itself: those that do not depend on it
    /// are undecided.
    pub(super) fn ranges(&self, tuple: &[u64], out: &mut Vec<Range>) {
        let one = |left: &Left| match left {
            Left::Test(condition) if !condition.is_fixed() => [0, u64::MAX],
            Left::Member { lookup, wanted, .. } if !self.parts[lookup.part.index()].lasts => {
                [u64::from(!wanted).wrapping_neg(); 2]
            }
            _ => [u64::from(self.holds(left, tuple)).wrapping_neg(); 2],
        };
        let bound = |lefts: &[Left]| {
            lefts.iter().map(one).fold([u64::MAX; 2], |all, one| [all[0] & one[0], all[1] & one[1]])
        };
        out.clear();
        out.extend(
            self.pasts
                .iter()
                .map(|[certain, possible]| Range { certain: bound(certain), possible: bound(possible) }),
        );
    }

    /// Returns the lower and upper truth of the obligation, if it is certain at once.
    pub(super) fn at_once(&self, truths: &[u8], scratch: &mut Vec<Range>) -> Option<[bool; 2]> {
        let root = self.obligation.formula.frames.last()?;
        let past = |i: usize| {
            let truth =
                root.pasts.get(i).and_then(|&i| truths.get(i as usize)).map_or(0b10, |x| u64::from(*x));
            Range::known((truth & 1).wrapping_neg(), (truth >> 1 & 1).wrapping_neg())
        };
        let range = root.evaluate(past, |_| Range::PENDING, scratch);
        let [certain, possible] = range.decided();
        (certain & possible & 1 == 1)
            .then(|| [range.certain[0], range.possible[0]].map(|bound| bound & 1 == 1))
    }

    /// Calls `f` with the rows whose pasts may have changed.
    pub(super) fn for_each_touched(&self, table: &TupleTable, mut f: impl FnMut(u32)) {
        for left in self.pasts.iter().flatten().flatten() {
            if let Left::Member { lookup, back, .. } = left {
                let out: &Delta = &self.earlier[lookup.part.index()].out;
                for (tuple, _) in out.iter() {
                    table.matching(*back, tuple).for_each(&mut f);
                }
            }
        }
    }
}

/// Obligation, earlier parts, the obligation's own part, and the probe of a plan.
pub(super) type Split<'a, 'b, S> =
    (&'a TupleObligation, &'a [PartState], &'a mut PartState, Probe<'a, 'b, S>);

/// Splits the states of a plan; none if the plan has no obligation.
pub(super) fn split<'a, 'b, S>(
    plan: &'a RelationPlan,
    parts: &'a mut [PartState],
    tick: &'a Tick<'b, S>,
) -> Option<Split<'a, 'b, S>> {
    let (own, earlier) = parts.split_last_mut()?;
    let earlier: &[PartState] = earlier;
    let (Some(obligation), Some(Part { op: PartOp::Obligation { pasts, .. }, .. })) =
        (&plan.obligation, plan.parts.last())
    else {
        return None;
    };
    let probe = Probe { obligation, pasts, parts: &plan.parts, earlier, tick };
    Some((obligation, earlier, own, probe))
}
