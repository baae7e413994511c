//! What can be asked of a tuple at a tick.

use crate::future::Range;
use crate::relation::batch::Delta;
use crate::relation::plan::{Ask, Left, Part, PartOp, RelationPlan};
use crate::relation::state::{Keyed, PartState, Tick};
use crate::relation::table::TupleTable;
use crate::relation::term::Source;

/// What can be asked of a tuple at a tick.
pub(super) struct Look<'a, 'b, S> {
    pub(super) ask: &'a Ask,
    pub(super) pasts: &'a [[Vec<Left>; 2]],
    pub(super) parts: &'a [Part],
    pub(super) earlier: &'a [PartState],
    pub(super) tick: &'a Tick<'b, S>,
}

impl<S: Source> Look<'_, '_, S> {
    pub(super) fn holds(&self, left: &Left, tuple: &[u64]) -> bool {
        match left {
            Left::Test(condition) => self.tick.context().holds(condition, tuple),
            Left::Member { lookup, wanted, .. } => {
                let (part, key) = (&self.earlier[lookup.part.index()], Keyed::new(tuple, &lookup.slots));
                let is_member = if self.parts[lookup.part.index()].lasts {
                    part.table.as_ref().is_some_and(|table| table.has(lookup.access, key.key()))
                } else {
                    key.is_in(&part.out)
                };
                is_member == *wanted
            }
        }
    }

    /// The pasts of a tuple.
    pub(super) fn truths(&self, tuple: &[u64], out: &mut Vec<u8>) {
        let rail = |lefts: &[Left]| u8::from(lefts.iter().all(|left| self.holds(left, tuple)));
        out.clear();
        out.extend(self.pasts.iter().map(|[certain, possible]| rail(certain) | rail(possible) << 1));
    }

    /// The same, as long as nothing happens to the tuple itself: what does not depend on it may be anything.
    pub(super) fn ranges(&self, tuple: &[u64], out: &mut Vec<Range>) {
        let one = |left: &Left| match left {
            Left::Test(condition) if !condition.is_fixed() => [0, u64::MAX],
            Left::Member { lookup, wanted, .. } if !self.parts[lookup.part.index()].lasts => {
                [u64::from(!wanted).wrapping_neg(); 2]
            }
            _ => [u64::from(self.holds(left, tuple)).wrapping_neg(); 2],
        };
        let rail = |lefts: &[Left]| {
            lefts.iter().map(one).fold([u64::MAX; 2], |all, one| [all[0] & one[0], all[1] & one[1]])
        };
        out.clear();
        out.extend(
            self.pasts
                .iter()
                .map(|[certain, possible]| Range { certain: rail(certain), possible: rail(possible) }),
        );
    }

    /// What is asked, if it is certain at once.
    pub(super) fn at_once(&self, truths: &[u8], scratch: &mut Vec<Range>) -> Option<[bool; 2]> {
        let root = self.ask.formula.skeletons.last()?;
        let past = |i: usize| {
            let truth =
                root.pasts.get(i).and_then(|&i| truths.get(i as usize)).map_or(0b10, |x| u64::from(*x));
            Range::known((truth & 1).wrapping_neg(), (truth >> 1 & 1).wrapping_neg())
        };
        let range = root.evaluate(past, |_| Range::PENDING, scratch);
        let [certain, possible] = range.decided();
        (certain & possible & 1 == 1).then(|| [range.certain[0], range.possible[0]].map(|rail| rail & 1 == 1))
    }

    /// Calls `f` with the rows to which something has happened.
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

/// What is asked, the parts before, its own part, and how to look at a tuple.
pub(super) type Split<'a, 'b, S> = (&'a Ask, &'a [PartState], &'a mut PartState, Look<'a, 'b, S>);

/// Takes the states of a plan apart; none if nothing is asked in it.
pub(super) fn split<'a, 'b, S>(
    plan: &'a RelationPlan,
    parts: &'a mut [PartState],
    tick: &'a Tick<'b, S>,
) -> Option<Split<'a, 'b, S>> {
    let (own, earlier) = parts.split_last_mut()?;
    let earlier: &[PartState] = earlier;
    let (Some(ask), Some(Part { op: PartOp::Ask { pasts, .. }, .. })) = (&plan.ask, plan.parts.last()) else {
        return None;
    };
    let look = Look { ask, pasts, parts: &plan.parts, earlier, tick };
    Some((ask, earlier, own, look))
}
