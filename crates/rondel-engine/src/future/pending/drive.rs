//! Progress of time: events, time points, and time passing by itself, in each time model.

use rondel_event::Rows;
use rondel_spec::TimeModel;

use super::{Chunk, Decision, ObligationState, PastTruth, Pending, Scratch, copy, post};
use crate::future::key::{self, Key};
use crate::future::plan::{Plan, Range};
use crate::future::until::Piece;

/// Events of a block, in steps or points.
#[derive(Clone, Copy, Debug)]
pub(crate) struct EventRows<'a> {
    /// Number of the first event.
    pub(crate) position: u64,
    pub(crate) times: &'a [i64],
    /// Lower and upper truth of each past.
    pub(crate) pasts: &'a [[Rows; 2]],
}

/// Rows of a block that can be processed together.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Survey {
    /// Everything is decided at once, and operands of obligations may be merged with their neighbours.
    plain: Rows,
    /// All pasts are as in the row before.
    same: Rows,
}

impl Survey {
    pub(crate) fn new(plan: &Plan, pasts: &[[Rows; 2]], scratch: &mut Scratch) -> Survey {
        let by_time = plan.time == TimeModel::Points;
        let mut survey = Survey { plain: Rows::MAX, same: Rows::MAX };
        if plan.obligations.iter().any(|obligation| obligation.external.is_some()) {
            survey.plain = 0;
        }
        if by_time && plan.obligations.iter().any(|obligation| obligation.reach.is_none()) {
            survey.plain = 0;
        }
        for frame in &plan.frames {
            let past = |i: usize| {
                let past = frame.pasts.get(i).and_then(|&i| pasts.get(i as usize));
                past.map_or(Range::PENDING, |past| Range::known(past[0], past[1]))
            };
            let range = frame.evaluate(past, |_| Range::PENDING, &mut scratch.ranges);
            let [certain, possible] = range.decided();
            survey.plain &= certain & possible;
            for bound in [range.certain[0], range.possible[0]] {
                survey.same &= !(bound ^ bound << 1);
                // Between events, points have no witness, and nothing that breaks a left operand.
                for &(_, is_left) in frame.feeds.iter().filter(|_| by_time) {
                    survey.plain &= if is_left { bound } else { !bound };
                }
            }
        }
        survey
    }
}

/// Maximum number of chunks of one open interval; decisions in the rest count as certain from its beginning.
/// Only bounds that differ by almost nothing, in nested future operators, come near it.
const PATIENCE: u32 = 100_000;

impl Pending {
    /// Processes one or more events from `row` on and returns their number: several only if all of them have
    /// the same verdict about themselves, and no other verdict is due.
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
            let first = i128::from(step);
            self.steps(plan, first..first + count as i128, time, &truths, scratch, out);
        } else {
            self.points(plan, &times[row..row + count], time, &truths, scratch, out);
        }
        scratch.truths = truths;
        count
    }

    /// Processes a step.
    pub(crate) fn step(
        &mut self,
        plan: &Plan,
        position: u64,
        tag: i64,
        pasts: &[PastTruth],
        scratch: &mut Scratch,
        out: &mut Vec<Decision>,
    ) {
        let position = i128::from(position);
        self.steps(plan, position..position + 1, tag, pasts, scratch, out);
    }

    /// Processes consecutive steps with the same pasts.
    fn steps(
        &mut self,
        plan: &Plan,
        positions: std::ops::Range<i128>,
        tag: i64,
        pasts: &[PastTruth],
        scratch: &mut Scratch,
        out: &mut Vec<Decision>,
    ) {
        let from = key::first(positions.start);
        let to = key::last(positions.end - 1);
        self.begin(from);
        self.next_epoch();
        let chunk = Chunk { from, to, moving: false, is_echo: false, is_fresh: true, tag };
        self.feed(plan, Some((chunk, pasts)), from, scratch, out);
        self.seen = Some(to);
    }

    /// Processes an event in the points model.
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

    /// Processes an event in the points model with a tag other than its time.
    pub(crate) fn noted_point(
        &mut self,
        plan: &Plan,
        time: i64,
        tag: i64,
        pasts: &[PastTruth],
        scratch: &mut Scratch,
        out: &mut Vec<Decision>,
    ) {
        self.points(plan, &[time], tag, pasts, scratch, out);
    }

    /// Processes events in the points model. Time never goes back: an event earlier than the latest time is
    /// moved to that time.
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
        self.next_epoch();
        for state in self.obligations.iter_mut().flatten() {
            if let ObligationState::Next(next) = state {
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

    /// Sets whether dense time points keep separate verdicts even where these are equal.
    pub(crate) fn keep_apart(&mut self, apart: bool) {
        self.apart = apart;
    }

    /// Processes a time point in dense time: the pasts at the instant, and on the open interval up to the
    /// next one. Time never goes back, as in points.
    pub(crate) fn dense_point(
        &mut self,
        plan: &Plan,
        time: i64,
        tag: i64,
        [at, after]: [&[PastTruth]; 2],
        scratch: &mut Scratch,
        out: &mut Vec<Decision>,
    ) {
        let place = key::next(self.seen, &mut self.number, 2 * i128::from(time));
        self.begin(place);
        self.pass(plan, key::axis(place), scratch, out);
        self.next_epoch();
        let chunk = Chunk { from: place, to: place, moving: false, is_echo: false, is_fresh: true, tag };
        self.feed(plan, Some((chunk, at)), place, scratch, out);
        self.seen = Some(place);
        copy(&mut self.at, at);
        copy(&mut self.after, after);
        self.quiet = self.is_decided(plan, after, scratch)
            && self
                .queues
                .last()
                .is_none_or(|queue| queue.last_verdict() == scratch.ranges.last().map(Range::verdict));
    }

    /// Advances time: no further event comes before `now`.
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

    /// Returns a time after which, at the first time point or [`advance`](Pending::advance), something may
    /// become certain by the passing of time alone.
    pub(crate) fn deadline(&self, plan: &Plan) -> Option<i64> {
        let seen = self.seen?;
        let axis = match plan.time {
            TimeModel::Steps => None,
            _ if self.waiting() == 0 && plan.time == TimeModel::Points => None,
            TimeModel::Points => self.next_change(plan, key::axis(seen + 1) - 1),
            _ if self.waiting() == 0 && self.quiet => None,
            // The interval after an instant is evaluated only when time has passed it.
            TimeModel::Dense if key::axis(seen + 1) == key::axis(seen) => Some(key::axis(seen) >> 1),
            TimeModel::Dense => self.next_change(plan, key::axis(seen)).map(|axis| axis >> 1),
        };
        // A deadline beyond the range of time never comes.
        axis.and_then(|axis| i64::try_from(axis).ok())
    }

    fn begin(&mut self, first: Key) {
        if self.seen.is_none() {
            self.seen = Some(first - 1);
            for state in self.obligations.iter_mut().flatten() {
                if let ObligationState::Until(until) = state {
                    until.begin(first);
                }
            }
        }
    }

    fn next_epoch(&mut self) {
        self.epoch = self.epoch.wrapping_add(1).max(1);
    }

    /// Adds the gap of the points model from the last event to `to`: no witness, and nothing that breaks a
    /// left operand.
    fn fill(&mut self, plan: &Plan, to: Key, scratch: &mut Scratch) {
        let Some(lo) = self.seen.map(|seen| seen + 1).filter(|lo| *lo <= to) else { return };
        scratch.make_room(plan);
        for (i, obligation) in plan.obligations.iter().enumerate() {
            for bound in 0..2 {
                let ObligationState::Until(until) = &mut self.obligations[i][bound] else { continue };
                let Some(reach) = obligation.reach else { continue };
                let piece = Piece { lo, hi: to, value: false, moving: false };
                until.right(reach, piece, &mut scratch.pieces);
                until.left(reach, Piece { value: true, ..piece }, &mut scratch.pieces);
                post(&obligation.owners, bound, &mut scratch.pieces, &mut scratch.inbox);
            }
        }
    }

    /// Advances dense time to just before the instant at a coordinate.
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
            // No other time point has the time of the last one. The remaining places of its coordinate repeat
            // it, which changes nothing and obligations no gap on the axis.
            let chunk = Chunk { to: key::last(key::axis(seen)), ..chunk };
            self.feed(plan, Some((chunk, &at)), from, scratch, out);
            (from, is_fresh) = (chunk.to + 1, true);
        }
        self.seen = Some(from - 1);
        while from < key::first(until) {
            let here = key::axis(from);
            chunks += 1;
            let end = if chunks > PATIENCE || self.is_decided(plan, &after, scratch) {
                until
            } else if is_fresh {
                here + 1
            } else {
                // Until one of these places is reached, decisions are made continuously; which places then
                // differ shows at the first coordinate.
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
