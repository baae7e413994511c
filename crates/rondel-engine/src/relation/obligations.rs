//! Future obligations of relation tuples.
//!
//! Each tuple present at a time point gets an obligation for the formula with future operators. It then has
//! [pending](PendingTuple) state for its values, as a property without variables would; until everything is
//! decided it receives the time points that concern it. A time point satisfies the formula if any tuple's
//! obligation is met, and violates it if all of them have failed: a [resolution](Resolution), which the
//! property receives.
//!
//! A tuple visits only time points that can matter to it, where one of its pasts has an unusual value. In
//! points and steps, where the presence of a time point counts by itself, these are all at which it is not
//! idle (see [`is_idle`](crate::future::Plan::is_idle)); in dense time, where a truth lasts, those at which a
//! past changes.

mod probe;

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};

use rondel_spec::TimeModel;
use serde::{Deserialize, Serialize};

use super::plan::{Part, PartOp, RelationPlan, TupleObligation};
use super::state::{PartState, Tick};
use super::table::TupleTable;
use super::term::Source;
use super::witness::{Answer, AnsweredAt, Answers};
use crate::future::{BoundDecision, Decision, Pending, Range, Scratch};
use probe::{Probe, split};

/// Index of the lower truth.
const CERTAIN: usize = 0;

/// Decision about a time point.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Resolution {
    /// Row at which it was made.
    pub(crate) row: usize,
    /// Coordinate of that, in dense time.
    pub(crate) axis: i128,
    /// Number of the decided time point.
    pub(crate) point: i64,
    pub(crate) bound: usize,
    pub(crate) value: bool,
}

/// Pending obligations of a tuple.
#[derive(Clone, Debug, Serialize, Deserialize)]
struct PendingTuple {
    pending: Pending,
    /// Pasts at its last time point, and on the open interval after it.
    at: Vec<u8>,
    after: Vec<u8>,
    /// Whether it must visit every time point.
    is_hot: bool,
    /// Number of the last time point that it visited.
    seen: i64,
    /// Deadline after which time alone may decide something.
    due: Option<i64>,
}

/// Undecided time point.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize)]
struct OpenPoint {
    /// Number of the step, or time in the other models.
    place: i64,
    /// Number of the event, if it is one.
    event: Option<u64>,
    /// Number of open obligations, for the lower and the upper truth.
    obligations: [u32; 2],
    /// Whether the lower and the upper truth are decided.
    decided: [bool; 2],
}

/// See the [module](self).
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(crate) struct Obligations {
    /// Pending tuples, by the rows of the table.
    tuples: Vec<Option<Box<PendingTuple>>>,
    /// Number of the last time point, from 1.
    number: i64,
    /// Latest time points, from the first undecided one.
    open: VecDeque<OpenPoint>,
    /// Number of open obligations, counting both truth bounds.
    open_obligations: usize,
    lost: u64,
    hot: Vec<u32>,
    /// Rows visited at the last time point.
    visited: Vec<u32>,
    /// Rows of tuples without pending obligations.
    gone: Vec<u32>,
    #[serde(skip)]
    due: BinaryHeap<Reverse<(i64, u32)>>,
    #[serde(skip)]
    resolutions: Vec<Resolution>,
    /// Row of the last time point, from 1.
    #[serde(skip)]
    row: usize,
    /// Number of the event of the next time point, if it is one.
    #[serde(skip)]
    event: Option<u64>,
    /// Number of the first event of the block.
    #[serde(skip)]
    first: u64,
    /// Number of the latest event.
    latest: u64,
    /// Whether time passes after it.
    #[serde(skip)]
    is_passing: bool,
    /// Whether obligations of the last time point are still being added.
    #[serde(skip)]
    is_collecting: bool,
    #[serde(skip)]
    room: Scratch,
    #[serde(skip)]
    decisions: Vec<Decision>,
    /// Tuples whose obligations were met.
    answers: Answers,
    #[serde(skip)]
    truths: Vec<u8>,
    #[serde(skip)]
    ranges: (Vec<Range>, Vec<Range>),
    #[serde(skip)]
    #[allow(clippy::vec_box, reason = "they go back into boxes")]
    spare: Vec<Box<PendingTuple>>,
}

impl Obligations {
    /// Maximum number of open obligations.
    const LIMIT: usize = Pending::LIMIT;

    /// Begins the rows of a block.
    pub(crate) fn begin(&mut self) {
        self.resolutions.clear();
        self.row = 0;
    }

    /// Returns the latest tuples whose obligations were met.
    pub(crate) fn answers(&self) -> &Answers {
        &self.answers
    }

    /// Begins a call of the monitor with a block whose first event has this number.
    pub(crate) fn begin_call(&mut self, first: u64) {
        self.first = first;
    }

    /// Stores the tuples that meet their obligations from now on; the next time point is the event in this
    /// row of the block.
    #[inline(always)]
    pub(crate) fn keep_answers(&mut self, row: Option<usize>) {
        self.answers.keep();
        self.event = row.map(|row| self.first.saturating_add(row as u64));
    }

    /// Ends a call of the monitor.
    pub(crate) fn end_call(&mut self) {
        self.answers.end_call();
    }

    /// Returns the resolutions of the rows, in order.
    pub(crate) fn resolutions(&self) -> &[Resolution] {
        &self.resolutions
    }

    /// Returns the number of the time point in a row since [`Obligations::begin`].
    pub(crate) fn number(&self, row: usize) -> i64 {
        self.number - self.row as i64 + row as i64 + 1
    }

    /// Number of obligations dropped because of the limit.
    pub(crate) fn lost(&self) -> u64 {
        self.tuples.iter().flatten().map(|entry| entry.pending.lost()).fold(self.lost, u64::saturating_add)
    }

    /// Number of stored entries and time points.
    pub(crate) fn kept(&self) -> usize {
        self.open.len() + self.tuples.iter().flatten().map(|entry| entry.pending.kept()).sum::<usize>()
    }

    /// Returns the number of removable tuples, if nothing is pending.
    pub(crate) fn gone(&self) -> Option<usize> {
        let is_over = self.open.is_empty() && self.tuples.iter().all(Option::is_none);
        is_over.then_some(self.gone.len())
    }

    /// Returns a time after which time alone may decide something.
    pub(crate) fn deadline(&self) -> Option<i64> {
        self.due.peek().map(|Reverse((due, _))| *due)
    }

    /// Removes the tuples without pending obligations.
    pub(crate) fn clear_away(&mut self, part: &mut PartState) {
        let Some(table) = &mut part.table else { return };
        for row in self.gone.drain(..) {
            let is_pending = self.tuples.get(row as usize).is_none_or(Option::is_some);
            if !is_pending && table.has_row(row) && table.meta(row).live {
                table.remove(row);
            }
        }
    }

    /// Rebuilds what a snapshot omits. Returns false if the state does not fit the obligation.
    pub(crate) fn complete(&mut self, obligation: &TupleObligation, table: Option<&TupleTable>) -> bool {
        let Some(table) = table else { return false };
        let new = Pending::new(&obligation.formula, Obligations::LIMIT);
        for (row, entry) in (0..).zip(&self.tuples) {
            let Some(entry) = entry else { continue };
            if !entry.pending.fits(&new) || !table.has_row(row) {
                return false;
            }
            self.due.extend(entry.due.map(|due| Reverse((due, row))));
        }
        let is_row = |row: &u32| (*row as usize) < self.tuples.len();
        // Each row of the table is pending, or about to be removed.
        let all = table.rows().all(|row| {
            self.tuples.get(row as usize).is_some_and(|entry| entry.is_some() || self.gone.contains(&row))
        });
        all && self.answers.fits(table.arity())
            && self.number >= self.open.len() as i64
            && self.hot.iter().chain(&self.visited).chain(&self.gone).all(is_row)
    }

    /// Processes an event, in steps or points.
    pub(super) fn time_point<S: Source>(
        &mut self,
        plan: &RelationPlan,
        parts: &mut [PartState],
        tick: &Tick<'_, S>,
        model: TimeModel,
        time: i64,
    ) {
        let Some((obligation, earlier, own, probe)) = split(plan, parts, tick) else { return };
        self.start(time);
        let Some(table) = &mut own.table else { return };
        if model == TimeModel::Points {
            self.pass(obligation, table, time);
        }
        self.take(&probe, earlier, table);
        let mut visited = std::mem::take(&mut self.visited);
        self.hot.clear();
        for &row in &visited {
            let Some(mut entry) = self.tuples[row as usize].take() else { continue };
            probe.truths(table.tuple(row), &mut self.truths);
            self.limit(&mut entry);
            let (room, out) = (&mut self.room, &mut self.decisions);
            entry.pending.noted_point(&obligation.formula, time, self.number, &self.truths, room, out);
            self.count();
            self.take_decisions(table.tuple(row));
            self.put(&probe, row, entry, table.tuple(row));
        }
        visited.clear();
        self.visited = visited;
        if model == TimeModel::Steps {
            // Each step has its own number: no other time point has this one.
            self.pass(obligation, table, time.saturating_add(1));
        }
        self.finish();
    }

    /// Processes a time point in dense time.
    pub(super) fn instant<S: Source>(
        &mut self,
        plan: &RelationPlan,
        parts: &mut [PartState],
        tick: &Tick<'_, S>,
        time: i64,
        rolled_back: bool,
    ) {
        let Some((obligation, earlier, own, probe)) = split(plan, parts, tick) else { return };
        self.start(time);
        let Some(table) = &mut own.table else { return };
        self.pass(obligation, table, time);
        // The open interval after the last time point turned out to be empty.
        let before = std::mem::take(&mut self.visited);
        if rolled_back {
            before.into_iter().for_each(|row| self.visit(row));
        }
        self.take(&probe, earlier, table);
        for &row in &self.visited {
            if let Some(entry) = &mut self.tuples[row as usize] {
                probe.truths(table.tuple(row), &mut entry.at);
            }
        }
    }

    /// Processes the open interval after a time point.
    pub(super) fn span<S: Source>(
        &mut self,
        plan: &RelationPlan,
        parts: &mut [PartState],
        tick: &Tick<'_, S>,
        time: i64,
    ) {
        let Some((obligation, _, own, probe)) = split(plan, parts, tick) else { return };
        let Some(table) = &own.table else { return };
        let first = self.visited.len();
        probe.for_each_touched(table, |row| self.visit(row));
        // At the time point itself these tuples have their previous pasts.
        for &row in &self.visited[first..] {
            if let Some(entry) = &mut self.tuples[row as usize] {
                entry.at.clone_from(&entry.after);
            }
        }
        let visited = std::mem::take(&mut self.visited);
        self.hot.clear();
        for &row in &visited {
            let Some(mut entry) = self.tuples[row as usize].take() else { continue };
            probe.truths(table.tuple(row), &mut entry.after);
            self.limit(&mut entry);
            let PendingTuple { pending, at, after, .. } = &mut *entry;
            pending.keep_apart(true);
            let (room, out) = (&mut self.room, &mut self.decisions);
            pending.dense_point(&obligation.formula, time, self.number, [at, after], room, out);
            self.count();
            self.take_decisions(table.tuple(row));
            self.put(&probe, row, entry, table.tuple(row));
        }
        self.visited = visited;
        self.finish();
    }

    /// Advances time without a time point. `part` is that of the tuples.
    pub(super) fn advance(&mut self, obligation: &TupleObligation, part: &PartState, now: i64) {
        let Some(table) = &part.table else { return };
        self.room.bounds.get_or_insert_default();
        self.is_passing = true;
        self.pass(obligation, table, now);
        self.is_passing = false;
        self.close();
    }

    fn start(&mut self, place: i64) {
        self.number += 1;
        self.room.bounds.get_or_insert_default();
        self.row += 1;
        self.is_collecting = true;
        let event = self.event.take();
        self.latest = event.unwrap_or(self.latest);
        self.open.push_back(OpenPoint { place, event, ..OpenPoint::default() });
    }

    /// Closes the time point: all its obligations have been added.
    fn finish(&mut self) {
        self.is_collecting = false;
        self.conclude(self.number, i128::MIN);
        self.close();
    }

    /// Adds the obligations of the present tuples, and visits the tuples whose pasts have changed.
    fn take<S: Source>(&mut self, probe: &Probe<'_, '_, S>, earlier: &[PartState], table: &mut TupleTable) {
        let Some(Part { op: PartOp::Obligation { of, .. }, .. }) = probe.parts.last() else { return };
        let of = &earlier[of.index()];
        let mut take = |tuple: &[u64]| self.admit(probe, table, tuple);
        if probe.parts[part_of(probe.parts)].lasts {
            of.table.iter().flat_map(TupleTable::present).for_each(&mut take);
        } else {
            of.out.iter().for_each(|(tuple, _)| take(tuple));
        }
        if table.len() > 0 {
            probe.for_each_touched(table, |row| self.visit(row));
            for row in std::mem::take(&mut self.hot) {
                self.visit(row);
            }
        }
    }

    /// Adds the obligation of a tuple.
    fn admit<S: Source>(&mut self, probe: &Probe<'_, '_, S>, table: &mut TupleTable, tuple: &[u64]) {
        let known = table.find(tuple);
        if let Some(row) = known
            && self.tuples.get(row as usize).is_some_and(Option::is_some)
        {
            return self.visit(row);
        }
        probe.truths(tuple, &mut self.truths);
        if let Some(bounds) = probe.at_once(&self.truths, &mut self.ranges.0) {
            return self.decide_at_once(bounds, tuple);
        }
        if self.open_obligations >= 2 * Obligations::LIMIT {
            self.lost = self.lost.saturating_add(1);
            return self.decide_at_once([false, true], tuple);
        }
        let row = known.unwrap_or_else(|| table.insert(tuple)) as usize;
        if self.tuples.len() <= row {
            self.tuples.resize_with(row + 1, || None);
        }
        let mut entry = self.spare.pop().unwrap_or_else(|| {
            let pending = Pending::new(&probe.obligation.formula, Obligations::LIMIT);
            Box::new(PendingTuple {
                pending,
                at: Vec::new(),
                after: Vec::new(),
                is_hot: false,
                seen: 0,
                due: None,
            })
        });
        (entry.is_hot, entry.seen, entry.due) = (false, 0, None);
        self.tuples[row] = Some(entry);
        self.visit(row as u32);
    }

    fn visit(&mut self, row: u32) {
        let number = self.number;
        if let Some(Some(entry)) = self.tuples.get_mut(row as usize)
            && entry.seen != number
        {
            entry.seen = number;
            self.visited.push(row);
        }
    }

    /// Counts an obligation of the current time point, for both truth bounds.
    fn count(&mut self) {
        self.open_obligations += 2;
        if let Some(open) = self.open.back_mut() {
            open.obligations = open.obligations.map(|count| count + 1);
        }
    }

    /// Resolves an obligation that is certain at once.
    fn decide_at_once(&mut self, bounds: [bool; 2], tuple: &[u64]) {
        self.count();
        for (bound, value) in bounds.into_iter().enumerate() {
            self.resolve(BoundDecision { tag: self.number, bound, value, axis: i128::MIN }, tuple);
        }
    }

    /// Above the limit, a tuple may only keep the obligations that it has.
    fn limit(&self, entry: &mut PendingTuple) {
        let is_full = self.open_obligations >= 2 * Obligations::LIMIT;
        entry.pending.set_limit(if is_full { entry.pending.waiting() } else { Obligations::LIMIT });
    }

    /// Stores the pending state of a tuple, or frees it if nothing is pending.
    fn put<S: Source>(
        &mut self,
        probe: &Probe<'_, '_, S>,
        row: u32,
        mut entry: Box<PendingTuple>,
        tuple: &[u64],
    ) {
        if entry.pending.quiescent_verdicts(&probe.obligation.formula, &mut self.room).is_some() {
            return self.free(row, entry);
        }
        probe.ranges(tuple, &mut self.ranges.1);
        let (scratch, ranges) = (&mut self.ranges.0, &self.ranges.1);
        let past = |i: usize| ranges.get(i).copied().unwrap_or(Range::PENDING);
        entry.is_hot = !probe.obligation.formula.is_idle(past, scratch);
        if entry.is_hot {
            self.hot.push(row);
        }
        self.plan(probe.obligation, row, &mut entry);
        self.tuples[row as usize] = Some(entry);
    }

    fn free(&mut self, row: u32, mut entry: Box<PendingTuple>) {
        self.lost = self.lost.saturating_add(entry.pending.lost());
        entry.pending.restart(None);
        entry.due = None;
        if self.spare.len() < 64 {
            self.spare.push(entry);
        }
        self.gone.push(row);
    }

    fn plan(&mut self, obligation: &TupleObligation, row: u32, entry: &mut PendingTuple) {
        let due = entry.pending.deadline(&obligation.formula);
        if due != entry.due {
            entry.due = due;
            self.due.extend(due.map(|due| Reverse((due, row))));
        }
    }

    /// Advances time up to `now` for the tuples with an earlier deadline.
    fn pass(&mut self, obligation: &TupleObligation, table: &TupleTable, now: i64) {
        while let Some(&Reverse((due, row))) = self.due.peek() {
            let entry = self.tuples.get_mut(row as usize).and_then(Option::take);
            let Some(mut entry) = entry else {
                self.due.pop();
                continue;
            };
            let is_due = entry.due == Some(due);
            if is_due && due >= now {
                self.tuples[row as usize] = Some(entry);
                break;
            }
            self.due.pop();
            if !is_due {
                self.tuples[row as usize] = Some(entry);
                continue;
            }
            entry.due = None;
            entry.pending.advance(&obligation.formula, now, &mut self.room, &mut self.decisions);
            self.take_decisions(table.tuple(row));
            if entry.pending.quiescent_verdicts(&obligation.formula, &mut self.room).is_some() {
                self.free(row, entry);
                continue;
            }
            self.plan(obligation, row, &mut entry);
            self.tuples[row as usize] = Some(entry);
        }
    }

    /// Resolves the decisions made about a tuple.
    fn take_decisions(&mut self, tuple: &[u64]) {
        self.decisions.clear();
        let mut bounds = self.room.bounds.take().unwrap_or_default();
        // Time between time points has no obligations.
        bounds.iter().filter(|decision| decision.tag > 0).for_each(|decision| self.resolve(*decision, tuple));
        bounds.clear();
        self.room.bounds = Some(bounds);
    }

    fn resolve(&mut self, BoundDecision { tag: point, bound, value, axis }: BoundDecision, tuple: &[u64]) {
        self.open_obligations = self.open_obligations.saturating_sub(1);
        let is_now = point == self.number && self.is_collecting;
        let Some(open) = self.open_at(point) else { return };
        open.obligations[bound] = open.obligations[bound].saturating_sub(1);
        if value {
            if bound == CERTAIN && !open.decided[bound] {
                let (event, place) = (open.event, open.place);
                let at = (axis != i128::MIN).then(|| axis.clamp(i64::MIN.into(), i64::MAX.into()) as i64);
                let found = AnsweredAt { axis: at, event: self.latest, is_later: self.is_passing };
                self.answers.add(Answer { event, place, found }, tuple);
            }
            self.emit(point, axis, bound, true);
        }
        if !is_now {
            self.conclude(point, axis);
        }
    }

    fn open_at(&mut self, point: i64) -> Option<&mut OpenPoint> {
        let at = point - (self.number - self.open.len() as i64) - 1;
        usize::try_from(at).ok().and_then(|at| self.open.get_mut(at))
    }

    /// Fails the time point if its last obligation has failed.
    fn conclude(&mut self, point: i64, axis: i128) {
        for bound in 0..2 {
            if self.open_at(point).is_some_and(|open| open.obligations[bound] == 0) {
                self.emit(point, axis, bound, false);
            }
        }
    }

    fn emit(&mut self, point: i64, axis: i128, bound: usize, value: bool) {
        let row = self.row.saturating_sub(1);
        let Some(open) = self.open_at(point) else { return };
        if !std::mem::replace(&mut open.decided[bound], true) {
            self.resolutions.push(Resolution { row, axis, point, bound, value });
        }
    }

    /// Removes the decided time points at the front.
    fn close(&mut self) {
        while self.open.front().is_some_and(|open| open.decided == [true; 2]) {
            self.open.pop_front();
        }
    }
}

/// Returns the index of the part whose tuples have the obligations.
fn part_of(parts: &[Part]) -> usize {
    match parts.last() {
        Some(Part { op: PartOp::Obligation { of, .. }, .. }) => of.index(),
        _ => 0,
    }
}
