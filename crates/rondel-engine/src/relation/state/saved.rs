//! Restoring a state from a snapshot.

use super::{Own, PartState, RelationPlan, RelationState, TupleTable};

impl RelationState {
    /// Rebuilds what a snapshot omits, given the initial state of the same plan. Returns false if the state
    /// does not fit that plan.
    pub(crate) fn complete(&mut self, own: &RelationState, plan: &RelationPlan) -> bool {
        let fits = match (&mut self.obligations, &plan.obligation, self.parts.last()) {
            (Some(obligations), Some(obligation), Some(part)) => {
                obligations.complete(obligation, part.table.as_ref())
            }
            (None, ..) => own.obligations.is_none(),
            _ => false,
        };
        fits && self.parts.len() == own.parts.len()
            && self.texts.complete(&own.texts)
            && self.parts.iter_mut().zip(&own.parts).all(|(part, own)| part.complete(own))
    }
}

impl PartState {
    fn complete(&mut self, own: &PartState) -> bool {
        self.out.clone_from(&own.out);
        let has_table = match (&mut self.table, &own.table) {
            (Some(table), Some(own)) => table.complete(own),
            (table, own) => table.is_none() && own.is_none(),
        };
        let before = self.before.as_deref().map(|(.., own)| own);
        has_table
            && self.own.fits(own, self.table.as_ref())
            && match (&mut self.own, &own.own) {
                (Own::Counts(counts), Own::Counts(own)) => counts.complete(own),
                _ => true,
            }
            // Queues and counts roll back by themselves.
            && before.is_none_or(|before| match before {
                Own::Nothing => matches!(own.own, Own::Nothing | Own::Delayed(_) | Own::Counts(_)),
                before => before.fits(own, self.table.as_ref()),
            })
    }
}

impl Own {
    /// Whether it fits the state of such a part, beside this table.
    fn fits(&self, of: &PartState, table: Option<&TupleTable>) -> bool {
        match (self, &of.own) {
            (Own::Nothing, Own::Nothing) | (Own::Counts(_), Own::Counts(_)) => true,
            (Own::Next(next), Own::Next(own)) => next.fits(own),
            (Own::Delayed(waiting), Own::Delayed(_)) => {
                waiting.fits(|(_, _, tuple)| of.out.fits_tuple(tuple))
            }
            (Own::Watch(watch), Own::Watch(own)) => watch.fits(own),
            (Own::Since(since), Own::Since(own)) => table.is_some_and(|table| since.fits(own, table)),
            _ => false,
        }
    }
}
