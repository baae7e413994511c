//! What is decided elsewhere: about every moment, at some time, whether a quantified formula that looks ahead
//! holds there.

use std::collections::VecDeque;

use serde::{Deserialize, Serialize};

use super::{Chunk, Decision, LeafRail, Pending, Scratch};
use crate::future::key::{self, Key};
use crate::future::leaf::Piece;
use crate::future::plan::{Plan, Range, Skeleton};

/// One rail of a leaf that is decided elsewhere.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(super) struct Given {
    /// The moments about which it is not decided: their numbers and places.
    open: VecDeque<(i64, Key, Key)>,
    /// The number of the last moment, and what is known of it.
    last: (i64, Option<bool>),
    /// The same of the moment that comes next.
    next: (i64, Option<bool>),
}

impl Given {
    pub(super) fn kept(&self) -> usize {
        self.open.len()
    }
}

impl Pending {
    /// The next moment has this number, and this is known of it on both rails.
    pub(crate) fn expect(&mut self, plan: &Plan, given: u32, number: i64, known: [Option<bool>; 2]) {
        let Some(rails) = plan.given(given).and_then(|leaf| self.rails.get_mut(leaf)) else { return };
        for (rail, known) in rails.iter_mut().zip(known) {
            if let LeafRail::Given(given) = rail {
                given.next = (number, known);
            }
        }
    }

    /// It has been decided about an earlier moment, on a rail. This is told with what comes next.
    pub(crate) fn hear(&mut self, plan: &Plan, given: u32, number: i64, rail: usize, value: bool) {
        let Some(leaf) = plan.given(given) else { return };
        let Some(LeafRail::Given(given)) = self.rails.get_mut(leaf).and_then(|rails| rails.get_mut(rail))
        else {
            return;
        };
        if given.last.0 == number {
            given.last.1 = Some(value);
        }
        let at = given.open.partition_point(|(other, ..)| *other < number);
        if given.open.get(at).is_some_and(|(other, ..)| *other == number)
            && let Some((_, lo, hi)) = given.open.remove(at)
        {
            self.heard.push((leaf as u32, rail as u8, Piece { lo, hi, value, moving: false }));
        }
    }

    /// In dense time: lets time pass up to a coordinate, and [hears](Pending::hear) what is certain from there on.
    pub(crate) fn learn(
        &mut self,
        plan: &Plan,
        axis: i128,
        news: impl Iterator<Item = (u32, i64, usize, bool)>,
        scratch: &mut Scratch,
        out: &mut Vec<Decision>,
    ) {
        self.pass(plan, axis, scratch, out);
        for (given, number, rail, value) in news {
            self.hear(plan, given, number, rail, value);
        }
        let certain = self.seen.map_or(key::START, |seen| (seen + 1).max(key::first(axis)));
        self.feed(plan, None, certain, scratch, out);
    }

    /// Notes the place of a chunk for what is decided elsewhere.
    pub(super) fn place_given(&mut self, plan: &Plan, chunk: Chunk) {
        let Chunk { from, to, moving, is_echo, .. } = chunk;
        for (leaf, rails) in self.rails.iter_mut().enumerate() {
            if plan.leaves.get(leaf).is_none_or(|leaf| leaf.given.is_none()) {
                continue;
            }
            for (rail, of) in rails.iter_mut().enumerate() {
                let LeafRail::Given(given) = of else { continue };
                let value = if moving {
                    Some(false)
                } else if is_echo {
                    given.last.1
                } else {
                    given.last = given.next;
                    given.last.1
                };
                match value {
                    Some(value) => {
                        self.heard.push((leaf as u32, rail as u8, Piece { lo: from, hi: to, value, moving }));
                    }
                    None if is_echo => {
                        if let Some(last) = given.open.back_mut() {
                            last.2 = to;
                        }
                    }
                    None => given.open.push_back((given.last.0, from, to)),
                }
            }
        }
    }

    /// What a leaf of a skeleton is between moments, without looking ahead.
    pub(super) fn between(&self, plan: &Plan, skeleton: &Skeleton, i: usize) -> Range {
        let leaf = skeleton.leaves.get(i).and_then(|&leaf| plan.leaves.get(leaf as usize));
        if leaf.is_some_and(|leaf| leaf.given.is_some()) { Range::FALSE } else { Range::PENDING }
    }
}
