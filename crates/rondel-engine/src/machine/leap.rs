//! Machines that repeat transitions without events: bounds the work while no message arrives.
//!
//! A self-loop without effects is not stepped at all: the time of the last entry is computed when it is read.
//! Any other cycle of transitions is stepped, up to [`LIMIT`] time points between two messages. Then the
//! machine *leaps*: its state is computed for a time shortly before the next message, and is unknown until
//! then.

use serde::{Deserialize, Serialize};

use super::{MachinePlan, MachineState, Place, Possible, TransitionPlan, span_of};
use crate::ops::scalar::ScalarReading;
use crate::ops::timed::instant;

/// Limit of time points that machines may cause between two messages.
pub(crate) const LIMIT: u32 = 10_000;

/// Number of an unknown state.
pub(crate) const UNKNOWN: i64 = -1;

/// A request to leap after the next time point.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Request {
    /// The time up to which nothing else happens.
    pub(crate) until: i64,
    /// Whether its cycle has long caused no report.
    pub(crate) is_quiet: bool,
    /// Whether an earlier request had no effect.
    pub(crate) is_last: bool,
}

/// A leap in progress.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Leap {
    /// The configuration after the leap, valid from its entry on.
    pub(super) place: Place,
    /// The states that it passes through.
    through: Vec<u32>,
    /// Truths of the guards of the transitions from these states. The configuration is valid while they stay
    /// the same.
    guards: Vec<bool>,
}

/// For every state the period of a self-loop by time alone, if nothing else can happen in it.
pub(crate) fn heartbeats(leaving: &[Vec<TransitionPlan>]) -> Vec<Option<i64>> {
    let of = |(state, leaving): (usize, &Vec<TransitionPlan>)| {
        let beats = |t: &TransitionPlan| t.runs_out() && t.to as usize == state && t.assignments.is_empty();
        let at = leaving.iter().position(beats)?;
        let period = leaving[at].after?.max(1);
        let others = leaving.iter().enumerate().filter(|(i, _)| *i != at).map(|(_, other)| other);
        // No other bound may expire before.
        let mut times = others.map(|other| other.after.is_none_or(|after| after > period));
        let mut within = leaving.iter().map(|t| t.within.is_none_or(|within| within >= period));
        (times.all(|is_later| is_later) && within.all(|is_later| is_later)).then(|| span_of(period))
    };
    leaving.iter().enumerate().map(of).collect()
}

/// Whether a machine has a cycle by time alone, other than a self-loop of [`heartbeats`].
pub(crate) fn repeats(leaving: &[Vec<TransitionPlan>]) -> bool {
    let heartbeats = heartbeats(leaving);
    // Removes states that are on no cycle, until none is left.
    let mut goes_on = vec![true; leaving.len()];
    for _ in 0..leaving.len() {
        let stays = |state: usize| {
            let is_heartbeat = |t: &TransitionPlan| heartbeats[state].is_some() && t.to as usize == state;
            let mut timed = leaving[state].iter().filter(|t| t.after.is_some() && !is_heartbeat(t));
            timed.any(|t| goes_on.get(t.to as usize) == Some(&true))
        };
        let next: Vec<bool> = (0..leaving.len()).map(|state| goes_on[state] && stays(state)).collect();
        if next == goes_on {
            break;
        }
        goes_on = next;
    }
    goes_on.contains(&true)
}

impl MachineState {
    /// Whether the state at or after the last time point is unknown.
    pub(crate) fn is_unknown(&self) -> bool {
        self.is_lost || self.leap.is_some()
    }

    /// Proceeds to the time point at `now` during a leap. Returns whether the state is known there and on the
    /// interval after it; none if the leap is over.
    pub(super) fn resume_leap(
        &mut self,
        plan: &MachinePlan,
        reading: &ScalarReading<'_>,
        row: usize,
        now: i64,
    ) -> Option<[bool; 2]> {
        if self.is_lost {
            return Some([false; 2]);
        }
        let leap = self.leap.as_ref()?;
        let place = &leap.place;
        if now < place.entered {
            let stays = |half| place.guards(plan, &leap.through, reading, row, half);
            self.is_lost = (0..2).any(|half| stays(half).as_ref() != Some(&leap.guards));
            return Some([false; 2]);
        }
        let is_now = now == place.entered;
        self.place = place.clone();
        self.leap = None;
        is_now.then_some([false, true])
    }

    /// Whether the next transition depends on a variable that a leap has lost. The machine is then lost as
    /// well.
    pub(super) fn misses(
        &mut self,
        plan: &MachinePlan,
        reading: &ScalarReading<'_>,
        row: usize,
        now: i64,
    ) -> bool {
        let own = self.place.variables.len().saturating_sub(plan.kept.len());
        self.forgot = self.place.variables.iter().take(own).any(Option::is_none);
        let place = instant(now);
        let halves = if plan.dense { 2 } else { 1 };
        let is_open = |half: i64| {
            let mut leaving = plan.leaving[self.place.state as usize].iter();
            leaving.any(|t| {
                let guard = t.guard.as_ref().filter(|_| self.place.is_in_time(t, place + half));
                guard.is_some_and(|guard| {
                    guard.truth(reading, row, half as usize, &self.place.variables).is_none()
                })
            })
        };
        self.is_lost = self.forgot && (0..halves).any(is_open);
        self.is_lost
    }

    /// Leaps after a time point, if requested.
    pub(super) fn leap(&mut self, plan: &MachinePlan, reading: &ScalarReading<'_>, row: usize) {
        let Some(Request { until, is_quiet, is_last }) = self.request.take() else { return };
        let place = self.span.as_mut().unwrap_or(&mut self.place);
        let is_open = |t: &TransitionPlan| match &t.guard {
            Some(guard) => guard.truth(reading, row, 1, &place.variables) == Some(true),
            None => true,
        };
        let leap = match place.fast_forward(plan, until, is_open) {
            None if !is_last => return,
            None => None,
            Some((place, through)) => {
                let guards = place.guards(plan, &through, reading, row, 1);
                guards.map(|guards| Leap { place, through, guards })
            }
        };
        if let Some(leap) = leap.as_ref().filter(|_| is_quiet)
            && (leap.place.state, &leap.place.variables) == (place.state, &place.variables)
        {
            place.entered = leap.place.entered;
            return;
        }
        let is_lost = |(before, after): (&Option<_>, &Option<_>)| before.is_some() && after.is_none();
        let variables = leap.as_ref().map_or(&[][..], |leap| &leap.place.variables);
        self.forgot |= place.variables.iter().zip(variables).any(is_lost);
        self.leaps = self.leaps.saturating_add(1);
        self.is_lost = leap.is_none();
        self.leap = leap.map(Box::new);
    }
}

impl Place {
    /// Updates the time of entry of a state with a heartbeat up to `now`.
    pub(super) fn beat(&mut self, plan: &MachinePlan, now: i64) {
        if let Some(&Some(period)) = plan.heartbeats.get(self.state as usize)
            && self.ambiguous.is_none()
        {
            let beats = (i128::from(now) - i128::from(self.entered) - 1).div_euclid(period.into());
            let later = i128::from(self.entered) + beats.max(0) * i128::from(period);
            self.entered = i64::try_from(later).unwrap_or(self.entered);
        }
    }

    /// The configuration that time alone leads to by then, up to one or two cycles before the end, and the
    /// states passed through. None if the distance is short.
    fn fast_forward(
        &self,
        plan: &MachinePlan,
        until: i64,
        is_open: impl Fn(&TransitionPlan) -> bool,
    ) -> Option<(Place, Vec<u32>)> {
        let mut place = self.clone();
        let mut seen = vec![None; plan.leaving.len()];
        loop {
            if let Some(before) = seen[place.state as usize].replace(place.entered) {
                let period = i128::from(place.entered) - i128::from(before);
                let left = i128::from(until) - 1 - i128::from(place.entered);
                let circles = left.div_euclid(period.max(1)) - 1;
                let later = i128::from(place.entered) + circles.max(0) * period;
                place.entered = i64::try_from(later).ok()?;
                let through = (0..).zip(&seen).filter(|(_, seen)| seen.is_some());
                return (circles > 0).then(|| (place, through.map(|(state, _)| state).collect()));
            }
            match place.next_by_time(plan, &is_open)? {
                (due, Possible::One(i)) if due < until => {
                    let transition = &plan.leaving[place.state as usize][i];
                    for (variable, _) in &transition.assignments {
                        place.variables[*variable as usize] = None;
                    }
                    (place.state, place.entered) = (transition.to, due);
                }
                _ => return None,
            }
        }
    }

    /// Skips whole cycles, up to one or two of them before `until`. Returns whether a variable was lost.
    pub(super) fn skip(&mut self, plan: &MachinePlan, until: i64) -> bool {
        let Some((place, _)) = self.fast_forward(plan, until, |t| t.guard.is_none()) else { return false };
        let loses = place.variables != self.variables;
        *self = place;
        loses
    }

    /// Truths of the guards of all transitions from these states; none if one is unknown, or if a guard
    /// without a bound is true.
    fn guards(
        &self,
        plan: &MachinePlan,
        through: &[u32],
        reading: &ScalarReading<'_>,
        row: usize,
        half: usize,
    ) -> Option<Vec<bool>> {
        let leaving = through.iter().filter_map(|state| plan.leaving.get(*state as usize)).flatten();
        let guards = leaving.filter_map(|transition| Some((transition, transition.guard.as_ref()?)));
        let truths = guards.map(|(transition, guard)| {
            let truth = guard.truth(reading, row, half, &self.variables)?;
            (!truth || transition.after.is_some()).then_some(truth)
        });
        truths.collect()
    }
}
