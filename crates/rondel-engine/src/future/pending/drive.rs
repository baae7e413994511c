//! Time goes on: events, moments, and time by itself, in each of the models.

use rondel_event::Rows;
use rondel_spec::TimeModel;

use super::{Chunk, Decision, LeafRail, PastTruth, Pending, Scratch, copy, post};
use crate::future::key::{self, Key};
use crate::future::leaf::Piece;
use crate::future::plan::{Plan, Range};

/// Events of a block, in steps or points.
#[derive(Clone, Copy, Debug)]
pub(crate) struct EventRows<'a> {
    /// The number of the first.
    pub(crate) position: u64,
    pub(crate) times: &'a [i64],
    /// The pasts, on both rails.
    pub(crate) pasts: &'a [[Rows; 2]],
}

/// Which rows of a block can be taken together.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Survey {
    /// All is decided at once, and what goes to the leaves may be taken together with what is around it.
    plain: Rows,
    /// All is as in the row before.
    same: Rows,
}

impl Survey {
    pub(crate) fn new(plan: &Plan, pasts: &[[Rows; 2]], scratch: &mut Scratch) -> Survey {
        let by_time = plan.time == TimeModel::Points;
        let mut survey = Survey { plain: Rows::MAX, same: Rows::MAX };
        if plan.leaves.iter().any(|leaf| leaf.given.is_some()) {
            survey.plain = 0;
        }
        if by_time && plan.leaves.iter().any(|leaf| leaf.reach.is_none()) {
            survey.plain = 0;
        }
        for skeleton in &plan.skeletons {
            let past = |i: usize| {
                let past = skeleton.pasts.get(i).and_then(|&i| pasts.get(i as usize));
                past.map_or(Range::PENDING, |past| Range::known(past[0], past[1]))
            };
            let range = skeleton.evaluate(past, |_| Range::PENDING, &mut scratch.ranges);
            let [certain, possible] = range.decided();
            survey.plain &= certain & possible;
            for rail in [range.certain[0], range.possible[0]] {
                survey.same &= !(rail ^ rail << 1);
                // Between the events of points there is nothing: no witness, and nothing that breaks.
                for &(_, is_left) in skeleton.feeds.iter().filter(|_| by_time) {
                    survey.plain &= if is_left { rail } else { !rail };
                }
            }
        }
        survey
    }
}

/// A span is cut into no more parts than this; what is decided in the rest of it counts as certain from its
/// beginning. It takes bounds that differ by almost nothing, and formulas that look ahead of what looks
/// ahead, to come near.
const PATIENCE: u32 = 100_000;

impl Pending {
    /// Takes one or more events, from `row` on, and says how many: more only where all of them have the
    /// same verdict about themselves, and there is no other.
    pub(crate) fn take(
        &mut self,
        plan: &Plan,
        events: EventRows<'_>,
        row: usize,
        survey: Survey,
        scratch: &mut Scratch,
        out: &mut Vec<Decision>,
    ) -> usize {
        let EventRows { position, times, pasts } = events;
        let mut truths = std::mem::take(&mut scratch.truths);
        truths.clear();
        let truth = |past: &[Rows; 2]| (past[0] >> row & 1 | (past[1] >> row & 1) << 1) as PastTruth;
        truths.extend(pasts.iter().map(truth));
        let mut count = 1;
        if survey.plain >> row & 1 == 1 && self.waiting() == 0 {
            let more = survey.plain & survey.same;
            count += (row + 1..times.len()).take_while(|&row| more >> row & 1 == 1).count();
        }
        let step = position.saturating_add(row as u64);
        let time = times.get(row).copied().unwrap_or_default();
        if plan.time == TimeModel::Steps {
            self.steps(plan, (step, count as u64), time, &truths, scratch, out);
        } else {
            self.points(plan, &times[row..row + count], time, &truths, scratch, out);
        }
        scratch.truths = truths;
        count
    }

    /// A step.
    pub(crate) fn step(
        &mut self,
        plan: &Plan,
        position: u64,
        tag: i64,
        pasts: &[PastTruth],
        scratch: &mut Scratch,
        out: &mut Vec<Decision>,
    ) {
        self.steps(plan, (position, 1), tag, pasts, scratch, out);
    }

    fn steps(
        &mut self,
        plan: &Plan,
        (position, count): (u64, u64),
        tag: i64,
        pasts: &[PastTruth],
        scratch: &mut Scratch,
        out: &mut Vec<Decision>,
    ) {
        let from = key::first(position.into());
        let to = key::last(i128::from(position) + i128::from(count) - 1);
        self.begin(from);
        self.next_moment();
        let chunk = Chunk { from, to, moving: false, is_echo: false, is_fresh: true, tag };
        self.feed(plan, Some((chunk, pasts)), from, scratch, out);
        self.seen = Some(to);
    }

    /// An event in the model of points.
    pub(crate) fn point(
        &mut self,
        plan: &Plan,
        time: i64,
        pasts: &[PastTruth],
        scratch: &mut Scratch,
        out: &mut Vec<Decision>,
    ) {
        self.points(plan, &[time], time, pasts, scratch, out);
    }

    /// The same, with something else noted of it than its time.
    pub(crate) fn noted_point(
        &mut self,
        plan: &Plan,
        (time, tag): (i64, i64),
        pasts: &[PastTruth],
        scratch: &mut Scratch,
        out: &mut Vec<Decision>,
    ) {
        self.points(plan, &[time], tag, pasts, scratch, out);
    }

    /// Events in the model of points. Time never goes back: an event of an earlier time than was
    /// already seen comes at that one.
    fn points(
        &mut self,
        plan: &Plan,
        times: &[i64],
        tag: i64,
        pasts: &[PastTruth],
        scratch: &mut Scratch,
        out: &mut Vec<Decision>,
    ) {
        let Some((&time, later)) = times.split_first() else { return };
        let from = key::next(self.seen, &mut self.number, time.into());
        self.begin(from);
        self.fill(plan, from - 1, scratch);
        self.next_moment();
        for rail in self.rails.iter_mut().flatten() {
            if let LeafRail::Next(next) = rail {
                next.events.push_back((from, false));
            }
        }
        self.seen = Some(from);
        for &time in later {
            let place = key::next(self.seen, &mut self.number, time.into());
            self.seen = Some(place);
        }
        let to = self.seen.unwrap_or(from);
        let chunk = Chunk { from, to, moving: false, is_echo: false, is_fresh: true, tag };
        self.feed(plan, Some((chunk, pasts)), from, scratch, out);
    }

    /// Keeps the moments of the dense model apart, each with verdicts of its own, even where those are the
    /// same.
    pub(crate) fn keep_apart(&mut self, apart: bool) {
        self.apart = apart;
    }

    /// A moment in the dense model: the pasts at the instant, and after it until the next one. Time
    /// never goes back, as in points.
    pub(crate) fn moment(
        &mut self,
        plan: &Plan,
        (time, tag): (i64, i64),
        (at, after): (&[PastTruth], &[PastTruth]),
        scratch: &mut Scratch,
        out: &mut Vec<Decision>,
    ) {
        let place = key::next(self.seen, &mut self.number, 2 * i128::from(time));
        self.begin(place);
        self.pass(plan, key::axis(place), scratch, out);
        self.next_moment();
        let chunk = Chunk { from: place, to: place, moving: false, is_echo: false, is_fresh: true, tag };
        self.feed(plan, Some((chunk, at)), place, scratch, out);
        self.seen = Some(place);
        copy(&mut self.at, at);
        copy(&mut self.after, after);
        self.quiet = self.is_settled(plan, after, scratch)
            && self
                .queues
                .last()
                .is_none_or(|queue| queue.last_given() == scratch.ranges.last().map(Range::verdict));
    }

    /// Nothing comes before `now`.
    pub(crate) fn advance(&mut self, plan: &Plan, now: i64, scratch: &mut Scratch, out: &mut Vec<Decision>) {
        let Some(seen) = self.seen else { return };
        match plan.time {
            TimeModel::Steps => {}
            TimeModel::Points => {
                let now = key::first(now.into());
                if now > seen + 1 {
                    self.fill(plan, now - 1, scratch);
                    self.feed(plan, None, now, scratch, out);
                    self.seen = Some(now - 1);
                }
            }
            TimeModel::Dense => self.pass(plan, 2 * i128::from(now), scratch, out),
        }
    }

    /// A time such that, at the first moment or [`advance`](Pending::advance) later than it, something
    /// may become certain by that alone; none while there is no such time.
    pub(crate) fn deadline(&self, plan: &Plan) -> Option<i64> {
        let seen = self.seen?;
        let axis = match plan.time {
            TimeModel::Steps => None,
            _ if self.waiting() == 0 && plan.time == TimeModel::Points => None,
            TimeModel::Points => self.next_change(plan, key::axis(seen + 1) - 1),
            _ if self.waiting() == 0 && self.quiet => None,
            // What comes after an instant is only looked at when it comes.
            TimeModel::Dense if key::axis(seen + 1) == key::axis(seen) => Some(key::axis(seen) >> 1),
            TimeModel::Dense => self.next_change(plan, key::axis(seen)).map(|axis| axis >> 1),
        };
        // What is later than any time never comes.
        axis.and_then(|axis| i64::try_from(axis).ok())
    }

    fn begin(&mut self, first: Key) {
        if self.seen.is_none() {
            self.seen = Some(first - 1);
            for rail in self.rails.iter_mut().flatten() {
                if let LeafRail::Until(until) = rail {
                    until.begin(first);
                }
            }
        }
    }

    fn next_moment(&mut self) {
        self.epoch = self.epoch.wrapping_add(1).max(1);
    }

    /// In points there is nothing from the last event to `to`: no witness, and nothing that breaks.
    fn fill(&mut self, plan: &Plan, to: Key, scratch: &mut Scratch) {
        let Some(lo) = self.seen.map(|seen| seen + 1).filter(|lo| *lo <= to) else { return };
        scratch.make_room(plan);
        for (i, leaf) in plan.leaves.iter().enumerate() {
            for rail in 0..2 {
                let LeafRail::Until(until) = &mut self.rails[i][rail] else { continue };
                let Some(reach) = leaf.reach else { continue };
                let piece = Piece { lo, hi: to, value: false, moving: false };
                until.right(reach, piece, &mut scratch.pieces);
                until.left(reach, Piece { value: true, ..piece }, &mut scratch.pieces);
                post(&leaf.owners, rail, &mut scratch.pieces, &mut scratch.inbox);
            }
        }
    }

    /// Lets time pass to just before the instant at a coordinate, in the dense model.
    pub(super) fn pass(&mut self, plan: &Plan, until: i128, scratch: &mut Scratch, out: &mut Vec<Decision>) {
        let Some(seen) = self.seen else { return };
        let mut from = seen + 1;
        if from >= key::first(until) {
            return;
        }
        let (at, after) = (std::mem::take(&mut self.at), std::mem::take(&mut self.after));
        let chunk = Chunk { from, to: from, moving: false, is_echo: true, is_fresh: false, tag: 0 };
        let mut is_fresh = false;
        let mut chunks = 0_u32;
        if key::axis(seen) == key::axis(from) {
            // No other moment has the time of the last one. What remains of its places repeats it, which
            // changes nothing, and keeps the axis without holes.
            let chunk = Chunk { to: key::last(key::axis(seen)), ..chunk };
            self.feed(plan, Some((chunk, &at)), from, scratch, out);
            (from, is_fresh) = (chunk.to + 1, true);
        }
        self.seen = Some(from - 1);
        while from < key::first(until) {
            let here = key::axis(from);
            chunks += 1;
            let end = if chunks > PATIENCE || self.is_settled(plan, &after, scratch) {
                until
            } else if is_fresh {
                here + 1
            } else {
                // All that is decided is decided as time goes on, until one of these places is come to; what
                // then makes places differ, and where, is seen from the first coordinate.
                match self.next_change(plan, here - 1) {
                    Some(next) => next.max(here + 1).min(until),
                    None => until,
                }
            };
            let to = key::first(end) - 1;
            let chunk = Chunk { from, to, moving: true, is_echo: false, is_fresh, ..chunk };
            self.feed(plan, Some((chunk, &after)), from, scratch, out);
            self.seen = Some(to);
            (from, is_fresh) = (to + 1, false);
        }
        (self.at, self.after) = (at, after);
    }
}
