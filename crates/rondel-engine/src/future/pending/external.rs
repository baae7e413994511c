//! External obligations: quantified formulas with future operators, decided per time point by another part of
//! the monitor.

use std::collections::VecDeque;

use serde::{Deserialize, Serialize};

use super::{Chunk, Decision, ObligationState, Pending, Scratch};
use crate::future::key::{self, Key};
use crate::future::plan::{BoolFrame, Plan, Range};
use crate::future::until::Piece;

/// State of one truth bound of an external obligation.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(super) struct External {
    /// Undecided time points: their numbers, first and last places.
    open: VecDeque<(i64, Key, Key)>,
    /// Number of the last time point, and its truth as far as known.
    last: (i64, Option<bool>),
    /// The same for the next time point.
    next: (i64, Option<bool>),
}

impl External {
    pub(super) fn kept(&self) -> usize {
        self.open.len()
    }
}

impl Pending {
    /// Announces the number of the next time point, and its lower and upper truth as far as known.
    pub(crate) fn expect(&mut self, plan: &Plan, external: u32, number: i64, known: [Option<bool>; 2]) {
        let Some(states) =
            plan.external(external).and_then(|obligation| self.obligations.get_mut(obligation))
        else {
            return;
        };
        for (state, known) in states.iter_mut().zip(known) {
            if let ObligationState::External(external) = state {
                external.next = (number, known);
            }
        }
    }

    /// Takes a decision about one truth bound of an earlier time point. The next feed processes it.
    pub(crate) fn resolve(&mut self, plan: &Plan, external: u32, number: i64, bound: usize, value: bool) {
        let Some(obligation) = plan.external(external) else { return };
        let Some(ObligationState::External(external)) =
            self.obligations.get_mut(obligation).and_then(|states| states.get_mut(bound))
        else {
            return;
        };
        if external.last.0 == number {
            external.last.1 = Some(value);
        }
        let at = external.open.partition_point(|(other, ..)| *other < number);
        if external.open.get(at).is_some_and(|(other, ..)| *other == number)
            && let Some((_, lo, hi)) = external.open.remove(at)
        {
            self.received.push((obligation as u32, bound as u8, Piece { lo, hi, value, moving: false }));
        }
    }

    /// Advances dense time to a coordinate, and [takes](Pending::resolve) the decisions that are certain from
    /// there on.
    pub(crate) fn resolve_at(
        &mut self,
        plan: &Plan,
        axis: i128,
        decisions: impl Iterator<Item = (u32, i64, usize, bool)>,
        scratch: &mut Scratch,
        out: &mut Vec<Decision>,
    ) {
        self.pass(plan, axis, scratch, out);
        for (external, number, bound, value) in decisions {
            self.resolve(plan, external, number, bound, value);
        }
        let certain = self.seen.map_or(key::START, |seen| (seen + 1).max(key::first(axis)));
        self.feed(plan, None, certain, scratch, out);
    }

    /// Records the place of a chunk for the external obligations.
    pub(super) fn place_external(&mut self, plan: &Plan, chunk: Chunk) {
        let Chunk { from, to, moving, is_echo, .. } = chunk;
        for (obligation, states) in self.obligations.iter_mut().enumerate() {
            if plan.obligations.get(obligation).is_none_or(|obligation| obligation.external.is_none()) {
                continue;
            }
            for (bound, state) in states.iter_mut().enumerate() {
                let ObligationState::External(external) = state else { continue };
                let value = if moving {
                    Some(false)
                } else if is_echo {
                    external.last.1
                } else {
                    external.last = external.next;
                    external.last.1
                };
                match value {
                    Some(value) => {
                        self.received.push((
                            obligation as u32,
                            bound as u8,
                            Piece { lo: from, hi: to, value, moving },
                        ));
                    }
                    None if is_echo => {
                        if let Some(last) = external.open.back_mut() {
                            last.2 = to;
                        }
                    }
                    None => external.open.push_back((external.last.0, from, to)),
                }
            }
        }
    }

    /// Truth of an obligation of a frame between time points, without knowledge of the future.
    pub(super) fn between(&self, plan: &Plan, frame: &BoolFrame, i: usize) -> Range {
        let obligation =
            frame.obligations.get(i).and_then(|&obligation| plan.obligations.get(obligation as usize));
        if obligation.is_some_and(|obligation| obligation.external.is_some()) {
            Range::FALSE
        } else {
            Range::PENDING
        }
    }
}
