//! A plan at moments: one tick for each, and in dense time another one for the span after it.

use rondel_event::Value;
use rondel_spec::{TimeModel, VariableId};

use super::{PartState, RelationPlan, RelationState, Tick};
use crate::relation::asking::Asking;
use crate::relation::plan::Ask;
use crate::relation::term::Source;
use crate::relation::witness::{WantedAnswer, Witness, named_values};

/// Twice as far, and one more, is a place.
const FARTHEST: i64 = i64::MAX / 2 - 1;

impl RelationState {
    /// What is asked of tuples, if the formula looks ahead.
    pub(crate) fn asking(&self) -> Option<&Asking> {
        self.asking.as_deref()
    }

    pub(crate) fn asking_mut(&mut self) -> Option<&mut Asking> {
        self.asking.as_deref_mut()
    }

    /// Whether from here on, as from the beginning, something that looks ahead is asked of tuples.
    pub(crate) fn set_asking(&mut self, asks: bool) {
        self.asking = asks.then(Box::default);
    }

    /// The same at a tick that has been evaluated, with its parts.
    fn ask<S: Source>(
        &mut self,
        plan: &RelationPlan,
        (now, before, is_span): (i64, i64, bool),
        source: &S,
        ask: impl FnOnce(&mut Asking, &mut [PartState], &Tick<'_, S>),
    ) {
        let RelationState { parts, texts, number, asking, .. } = self;
        let (number, is_first) = (*number, *number == 1);
        let tick = Tick { now, before, number, is_first, is_span, source, texts, constants: &plan.texts };
        if let Some(asking) = asking {
            ask(asking, parts, &tick);
        }
    }

    /// Whether the formula holds at the next moment, at a time or in a step.
    #[inline(always)]
    pub(crate) fn moment<S: Source>(
        &mut self,
        plan: &RelationPlan,
        model: TimeModel,
        time: i64,
        source: &S,
    ) -> bool {
        let now = time;
        let first = *self.first.get_or_insert(now);
        // Places are counted from the first, so that none is far from zero.
        let now = now.saturating_sub(first).max(0);
        let before = match (self.number, model) {
            (0, _) => i64::MIN,
            (_, TimeModel::Steps) => now - 1,
            _ => self.last,
        };
        self.last = now;
        if let (Some(asking), Some(part)) = (&mut self.asking, self.parts.last_mut()) {
            asking.clear_away(part);
        }
        let holds = self.tick(plan, (now, before), false, source);
        self.ask(plan, (now, before, false), source, |asking, parts, tick| {
            asking.moment(plan, parts, tick, (model, time));
        });
        holds
    }

    /// Whether it holds at the next moment in dense time, and on the span after it. That there is such a
    /// span shows only when the moment after it comes; until then what it brings is on trial.
    pub(crate) fn dense_moment<S: Source>(
        &mut self,
        plan: &RelationPlan,
        time: i64,
        at: &S,
        after: &S,
    ) -> (bool, bool) {
        // Times reach over half of the numbers there are: only from zero can all of them be doubled.
        let first = *self.first.get_or_insert(0);
        let now = time.saturating_sub(first).clamp(-FARTHEST, FARTHEST) * 2;
        let mut taken_back = false;
        if self.is_trial {
            if now > self.last {
                self.parts.iter_mut().for_each(PartState::confirm);
            } else {
                self.parts.iter_mut().for_each(PartState::take_back);
                self.witnesses.take_back();
                self.number -= 1;
                taken_back = true;
            }
        }
        if let (Some(asking), Some(part)) = (&mut self.asking, self.parts.last_mut()) {
            asking.clear_away(part);
        }
        let before = match self.number {
            0 => i64::MIN,
            _ if now == self.last => now,
            _ => now - 1,
        };
        let holds = self.tick(plan, (now, before), false, at);
        self.ask(plan, (now, before, false), at, |asking, parts, tick| {
            asking.instant(plan, parts, tick, (time, taken_back));
        });
        (self.last, self.is_trial) = (now, true);
        self.parts.iter_mut().for_each(PartState::try_out);
        self.witnesses.try_out();
        let holds_after = self.tick(plan, (now + 1, now), true, after);
        self.ask(plan, (now + 1, now, true), after, |asking, parts, tick| {
            asking.span(plan, parts, tick, time);
        });
        (holds, holds_after)
    }

    /// Where the values are to be named: the next moment is the event in this row of the block.
    #[inline(always)]
    pub(crate) fn witnesses_at(&mut self, row: Option<usize>) {
        match &mut self.asking {
            Some(asking) => asking.keep_answers(row),
            None => self.witnesses.at(row),
        }
    }

    /// The values because of which the formula, which looks ahead, is false at the moment that a verdict is about.
    pub(crate) fn answer(
        &self,
        plan: &RelationPlan,
        wanted: &WantedAnswer,
    ) -> Option<Vec<(VariableId, Value)>> {
        let tuple = self.asking()?.answers().of(wanted)?;
        Some(named_values(plan, &plan.parts.last()?.variables, &tuple, &self.texts))
    }

    /// Lets time pass for what is asked of tuples, without a moment.
    pub(crate) fn pass(&mut self, ask: &Ask, now: i64) {
        if let (Some(asking), Some(part)) = (&mut self.asking, self.parts.last()) {
            asking.begin();
            asking.advance(ask, part, now);
        }
    }

    /// Takes the values because of which the formula came to be false: when (the number of an event in steps,
    /// otherwise a time), whether after that time, in which row of the block, and which.
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

    /// The time at which something changes by itself in dense time, if nothing else happens.
    pub(crate) fn next_change(&self, plan: &RelationPlan) -> Option<i64> {
        let place = self.deadline(plan)?.max(self.last.saturating_add(2));
        Some(self.first?.saturating_add(place.div_euclid(2)))
    }
}
