//! Evaluation of a plan at time points: one tick each, and in dense time another one for the open interval
//! after it.

use rondel_event::Value;
use rondel_spec::{TimeModel, VariableId};

use super::{PartState, RelationPlan, RelationState, Tick};
use crate::relation::obligations::Obligations;
use crate::relation::plan::TupleObligation;
use crate::relation::term::Source;
use crate::relation::witness::{WantedAnswer, Witness, named_values};

/// Ticks are doubled times, plus one.
const FARTHEST: i64 = i64::MAX / 2 - 1;

impl RelationState {
    /// Returns the obligations of tuples, if the formula has future operators.
    pub(crate) fn obligations(&self) -> Option<&Obligations> {
        self.obligations.as_deref()
    }

    pub(crate) fn obligations_mut(&mut self) -> Option<&mut Obligations> {
        self.obligations.as_deref_mut()
    }

    /// Sets whether tuples have obligations, starting with none.
    pub(crate) fn track_obligations(&mut self, tracks: bool) {
        self.obligations = tracks.then(Box::default);
    }

    /// Updates the obligations at a tick whose parts have been evaluated.
    fn update_obligations<S: Source>(
        &mut self,
        plan: &RelationPlan,
        now: i64,
        before: i64,
        is_span: bool,
        source: &S,
        update: impl FnOnce(&mut Obligations, &mut [PartState], &Tick<'_, S>),
    ) {
        let RelationState { parts, texts, number, obligations, .. } = self;
        let (number, is_first) = (*number, *number == 1);
        let tick = Tick { now, before, number, is_first, is_span, source, texts, constants: &plan.texts };
        if let Some(obligations) = obligations {
            update(obligations, parts, &tick);
        }
    }

    /// Evaluates the next time point, at a time or in a step. Returns whether the formula holds.
    #[inline(always)]
    pub(crate) fn time_point<S: Source>(
        &mut self,
        plan: &RelationPlan,
        model: TimeModel,
        time: i64,
        source: &S,
    ) -> bool {
        let now = time;
        let first = *self.first.get_or_insert(now);
        // Ticks are counted from the first one, to stay near zero.
        let now = now.saturating_sub(first).max(0);
        let before = match (self.number, model) {
            (0, _) => i64::MIN,
            (_, TimeModel::Steps) => now - 1,
            _ => self.last,
        };
        self.last = now;
        if let (Some(obligations), Some(part)) = (&mut self.obligations, self.parts.last_mut()) {
            obligations.clear_away(part);
        }
        let holds = self.tick(plan, now, before, false, source);
        self.update_obligations(plan, now, before, false, source, |obligations, parts, tick| {
            obligations.time_point(plan, parts, tick, model, time);
        });
        holds
    }

    /// Evaluates the next time point in dense time, and the open interval after it. The interval is known to
    /// exist only when the next time point comes later; until then its tick is speculative.
    pub(crate) fn dense_point<S: Source>(
        &mut self,
        plan: &RelationPlan,
        time: i64,
        at: &S,
        after: &S,
    ) -> (bool, bool) {
        // Times span half of the number range: only differences from zero can all be doubled.
        let first = *self.first.get_or_insert(0);
        let now = time.saturating_sub(first).clamp(-FARTHEST, FARTHEST) * 2;
        let mut rolled_back = false;
        if self.is_speculative {
            if now > self.last {
                self.parts.iter_mut().for_each(PartState::confirm);
            } else {
                self.parts.iter_mut().for_each(PartState::roll_back);
                self.witnesses.roll_back();
                self.number -= 1;
                rolled_back = true;
            }
        }
        if let (Some(obligations), Some(part)) = (&mut self.obligations, self.parts.last_mut()) {
            obligations.clear_away(part);
        }
        let before = match self.number {
            0 => i64::MIN,
            _ if now == self.last => now,
            _ => now - 1,
        };
        let holds = self.tick(plan, now, before, false, at);
        self.update_obligations(plan, now, before, false, at, |obligations, parts, tick| {
            obligations.instant(plan, parts, tick, time, rolled_back);
        });
        (self.last, self.is_speculative) = (now, true);
        self.parts.iter_mut().for_each(PartState::begin_speculation);
        self.witnesses.begin_speculation();
        let holds_after = self.tick(plan, now + 1, now, true, after);
        self.update_obligations(plan, now + 1, now, true, after, |obligations, parts, tick| {
            obligations.span(plan, parts, tick, time);
        });
        (holds, holds_after)
    }

    /// Announces that values are reported, and that the next time point is the event in this row of the
    /// block.
    #[inline(always)]
    pub(crate) fn witnesses_at(&mut self, row: Option<usize>) {
        match &mut self.obligations {
            Some(obligations) => obligations.keep_answers(row),
            None => self.witnesses.at(row),
        }
    }

    /// Returns the values that make the formula, with future operators, false at the time point of a verdict.
    pub(crate) fn answer(
        &self,
        plan: &RelationPlan,
        wanted: &WantedAnswer,
    ) -> Option<Vec<(VariableId, Value)>> {
        let tuple = self.obligations()?.answers().of(wanted)?;
        Some(named_values(plan, &plan.parts.last()?.variables, &tuple, &self.texts))
    }

    /// Advances time for the obligations, without a time point.
    pub(crate) fn pass(&mut self, obligation: &TupleObligation, now: i64) {
        if let (Some(obligations), Some(part)) = (&mut self.obligations, self.parts.last()) {
            obligations.begin();
            obligations.advance(obligation, part, now);
        }
    }

    /// Takes the values that made the formula false, each with its step or time, whether that is the open
    /// interval after the time, and the row in the block.
    #[inline]
    pub(crate) fn take_witnesses(
        &mut self,
        model: TimeModel,
        mut take: impl FnMut((i64, bool, Option<u8>), Vec<(VariableId, Value)>),
    ) {
        if self.witnesses.is_empty() {
            return;
        }
        let (first, dense) = (self.first.unwrap_or(0), model == TimeModel::Dense);
        for Witness { place, row, values } in self.witnesses.take() {
            let since = if dense { place.div_euclid(2) } else { place };
            take((first.saturating_add(since), dense && place % 2 != 0, row), values);
        }
    }

    /// Returns the next time at which time alone causes a change, in dense time.
    pub(crate) fn next_change(&self, plan: &RelationPlan) -> Option<i64> {
        let place = self.deadline(plan)?.max(self.last.saturating_add(2));
        Some(self.first?.saturating_add(place.div_euclid(2)))
    }
}
