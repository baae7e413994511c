//! What is asked of tuples that looks ahead, on its way over a trace.
//!
//! Of a tuple something is asked at a moment at which its part has it. It then [waits](TupleWait) with what is
//! pending of the formula for its values, as a property without variables would; until all that is decided it
//! sees what concerns it. A moment holds if of some tuple what was asked there turns out to be true, and does not
//! if of all it turns out to be false: that is [news](News), and the property takes it from there.
//!
//! A tuple is shown only what can matter to it: moments at which one of its pasts is otherwise than usual. In
//! points and steps, where a moment counts by being there at all, those are all at which it is not idle (see
//! [`is_idle`](crate::future::Plan::is_idle)); in dense time, where a truth lasts, those at which one changes.

mod look;

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};

use rondel_spec::TimeModel;
use serde::{Deserialize, Serialize};

use super::plan::{Ask, Part, PartOp, RelationPlan};
use super::state::{PartState, Tick};
use super::table::TupleTable;
use super::term::Source;
use super::witness::{Answer, AnsweredAt, Answers};
use crate::future::{Decision, Pending, RailDecision, Range, Scratch};
use look::{Look, split};

/// The rail of what is certain.
const CERTAIN: usize = 0;

/// Something that has become certain about a moment.
#[derive(Clone, Copy, Debug)]
pub(crate) struct News {
    /// The row at which it did.
    pub(crate) row: usize,
    /// The coordinate of that, in dense time.
    pub(crate) axis: i128,
    /// The number of the moment that it is about.
    pub(crate) moment: i64,
    pub(crate) rail: usize,
    pub(crate) value: bool,
}

/// What a tuple has pending.
#[derive(Clone, Debug, Serialize, Deserialize)]
struct TupleWait {
    pending: Pending,
    /// Its pasts at this moment, and in the time after it.
    at: Vec<u8>,
    after: Vec<u8>,
    /// Whether it must be shown every moment.
    is_hot: bool,
    /// The number of the last moment that it was looked at.
    seen: i64,
    /// When time alone may bring something.
    due: Option<i64>,
}

/// A moment that is not decided.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize)]
struct Open {
    /// In steps its number, otherwise its time.
    place: i64,
    /// The number of the event, if it is one.
    event: Option<u64>,
    /// So many tuples are still asked, on each rail.
    waits: [u32; 2],
    /// Which rails are decided.
    told: [bool; 2],
}

/// See the [module](self).
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(crate) struct Asking {
    /// By the rows of the table.
    waits: Vec<Option<Box<TupleWait>>>,
    /// The number of the last moment, from 1.
    number: i64,
    /// The last moments, up to that one, from the first that is not decided.
    open: VecDeque<Open>,
    /// How many tuples are asked at how many moments, on both rails.
    asked: usize,
    lost: u64,
    hot: Vec<u32>,
    /// The rows looked at in the last moment.
    looked_at: Vec<u32>,
    /// Rows whose tuple waits for nothing any more.
    gone: Vec<u32>,
    #[serde(skip)]
    due: BinaryHeap<Reverse<(i64, u32)>>,
    #[serde(skip)]
    news: Vec<News>,
    /// The row of the last moment, from 1.
    #[serde(skip)]
    row: usize,
    /// The number of the event that the next moment is, if it is one.
    #[serde(skip)]
    event: Option<u64>,
    /// The number of the first event of the block.
    #[serde(skip)]
    first: u64,
    /// The number of the latest event.
    latest: u64,
    /// Time passes after it.
    #[serde(skip)]
    is_passing: bool,
    /// Not all tuples have been asked at the last moment.
    #[serde(skip)]
    is_asking: bool,
    #[serde(skip)]
    room: Scratch,
    #[serde(skip)]
    decisions: Vec<Decision>,
    /// The tuples that made moments hold.
    answers: Answers,
    #[serde(skip)]
    truths: Vec<u8>,
    #[serde(skip)]
    ranges: (Vec<Range>, Vec<Range>),
    #[serde(skip)]
    #[allow(clippy::vec_box, reason = "they go back into boxes")]
    spare: Vec<Box<TupleWait>>,
}

impl Asking {
    /// So many tuples may be asked at so many moments.
    const LIMIT: usize = Pending::LIMIT;

    /// The moments to come are those of rows.
    pub(crate) fn begin(&mut self) {
        self.news.clear();
        self.row = 0;
    }

    /// The tuples that made moments hold, the last ones.
    pub(crate) fn answers(&self) -> &Answers {
        &self.answers
    }

    /// Begins a call of the monitor with a block whose first event has this number.
    pub(crate) fn begin_call(&mut self, first: u64) {
        self.first = first;
    }

    /// Keeps the tuples that make the moments to come hold; the next one is the event in this row of the block.
    #[inline(always)]
    pub(crate) fn keep_answers(&mut self, row: Option<usize>) {
        self.answers.keep();
        self.event = row.map(|row| self.first.saturating_add(row as u64));
    }

    /// Ends a call of the monitor.
    pub(crate) fn end_call(&mut self) {
        self.answers.end_call();
    }

    /// The news of the rows, in order.
    pub(crate) fn news(&self) -> &[News] {
        &self.news
    }

    /// The number of the moment in a row of those since [`Asking::begin`].
    pub(crate) fn number(&self, row: usize) -> i64 {
        self.number - self.row as i64 + row as i64 + 1
    }

    /// How many tuples were not asked because too many were waited for.
    pub(crate) fn lost(&self) -> u64 {
        self.waits.iter().flatten().map(|wait| wait.pending.lost()).fold(self.lost, u64::saturating_add)
    }

    /// How many obligations and moments are kept.
    pub(crate) fn kept(&self) -> usize {
        self.open.len() + self.waits.iter().flatten().map(|wait| wait.pending.kept()).sum::<usize>()
    }

    /// If nothing waits, how many tuples are to be forgotten.
    pub(crate) fn gone(&self) -> Option<usize> {
        let is_over = self.open.is_empty() && self.waits.iter().all(Option::is_none);
        is_over.then_some(self.gone.len())
    }

    /// A time such that later than it time alone may bring something.
    pub(crate) fn deadline(&self) -> Option<i64> {
        self.due.peek().map(|Reverse((due, _))| *due)
    }

    /// Forgets the tuples that wait for nothing any more.
    pub(crate) fn clear_away(&mut self, part: &mut PartState) {
        let Some(table) = &mut part.table else { return };
        for row in self.gone.drain(..) {
            let waits = self.waits.get(row as usize).is_none_or(Option::is_some);
            if !waits && table.has_row(row) && table.meta(row).live {
                table.remove(row);
            }
        }
    }

    /// Adds what is not in a snapshot; false if it does not belong to what is asked.
    pub(crate) fn complete(&mut self, ask: &Ask, table: Option<&TupleTable>) -> bool {
        let Some(table) = table else { return false };
        let new = Pending::new(&ask.formula, Asking::LIMIT);
        for (row, wait) in (0..).zip(&self.waits) {
            let Some(wait) = wait else { continue };
            if !wait.pending.fits(&new) || !table.has_row(row) {
                return false;
            }
            self.due.extend(wait.due.map(|due| Reverse((due, row))));
        }
        let is_row = |row: &u32| (*row as usize) < self.waits.len();
        // Each row of the table has something that waits, or is about to be forgotten.
        let all = table.rows().all(|row| {
            self.waits.get(row as usize).is_some_and(|wait| wait.is_some() || self.gone.contains(&row))
        });
        all && self.answers.fits(table.arity())
            && self.number >= self.open.len() as i64
            && self.hot.iter().chain(&self.looked_at).chain(&self.gone).all(is_row)
    }

    /// An event, in steps or points.
    pub(super) fn moment<S: Source>(
        &mut self,
        plan: &RelationPlan,
        parts: &mut [PartState],
        tick: &Tick<'_, S>,
        (model, time): (TimeModel, i64),
    ) {
        let Some((ask, earlier, own, look)) = split(plan, parts, tick) else { return };
        self.start(time);
        let Some(table) = &mut own.table else { return };
        if model == TimeModel::Points {
            self.pass(ask, table, time);
        }
        self.take(&look, earlier, table);
        let mut looked_at = std::mem::take(&mut self.looked_at);
        self.hot.clear();
        for &row in &looked_at {
            let Some(mut wait) = self.waits[row as usize].take() else { continue };
            look.truths(table.tuple(row), &mut self.truths);
            self.limit(&mut wait);
            let (room, out) = (&mut self.room, &mut self.decisions);
            wait.pending.noted_point(&ask.formula, (time, self.number), &self.truths, room, out);
            self.count();
            self.settle(table.tuple(row));
            self.put(&look, row, wait, table.tuple(row));
        }
        looked_at.clear();
        self.looked_at = looked_at;
        if model == TimeModel::Steps {
            // There is one step at each number: nothing more comes at this one.
            self.pass(ask, table, time.saturating_add(1));
        }
        self.finish();
    }

    /// A moment in dense time.
    pub(super) fn instant<S: Source>(
        &mut self,
        plan: &RelationPlan,
        parts: &mut [PartState],
        tick: &Tick<'_, S>,
        (time, taken_back): (i64, bool),
    ) {
        let Some((ask, earlier, own, look)) = split(plan, parts, tick) else { return };
        self.start(time);
        let Some(table) = &mut own.table else { return };
        self.pass(ask, table, time);
        // What was seen of the time after the last moment was no such time.
        let before = std::mem::take(&mut self.looked_at);
        if taken_back {
            before.into_iter().for_each(|row| self.look_at(row));
        }
        self.take(&look, earlier, table);
        for &row in &self.looked_at {
            if let Some(wait) = &mut self.waits[row as usize] {
                look.truths(table.tuple(row), &mut wait.at);
            }
        }
    }

    /// The time after it.
    pub(super) fn span<S: Source>(
        &mut self,
        plan: &RelationPlan,
        parts: &mut [PartState],
        tick: &Tick<'_, S>,
        time: i64,
    ) {
        let Some((ask, _, own, look)) = split(plan, parts, tick) else { return };
        let Some(table) = &own.table else { return };
        let first = self.looked_at.len();
        look.for_each_touched(table, |row| self.look_at(row));
        // At the moment itself these are as they were.
        for &row in &self.looked_at[first..] {
            if let Some(wait) = &mut self.waits[row as usize] {
                wait.at.clone_from(&wait.after);
            }
        }
        let looked_at = std::mem::take(&mut self.looked_at);
        self.hot.clear();
        for &row in &looked_at {
            let Some(mut wait) = self.waits[row as usize].take() else { continue };
            look.truths(table.tuple(row), &mut wait.after);
            self.limit(&mut wait);
            let TupleWait { pending, at, after, .. } = &mut *wait;
            pending.keep_apart(true);
            let (room, out) = (&mut self.room, &mut self.decisions);
            pending.moment(&ask.formula, (time, self.number), (at, after), room, out);
            self.count();
            self.settle(table.tuple(row));
            self.put(&look, row, wait, table.tuple(row));
        }
        self.looked_at = looked_at;
        self.finish();
    }

    /// Lets time pass without a moment. The part is that of the tuples.
    pub(super) fn advance(&mut self, ask: &Ask, part: &PartState, now: i64) {
        let Some(table) = &part.table else { return };
        self.room.rails.get_or_insert_default();
        self.is_passing = true;
        self.pass(ask, table, now);
        self.is_passing = false;
        self.close();
    }

    fn start(&mut self, place: i64) {
        self.number += 1;
        self.room.rails.get_or_insert_default();
        self.row += 1;
        self.is_asking = true;
        let event = self.event.take();
        self.latest = event.unwrap_or(self.latest);
        self.open.push_back(Open { place, event, ..Open::default() });
    }

    /// All is known of this moment that is.
    fn finish(&mut self) {
        self.is_asking = false;
        self.conclude(self.number, i128::MIN);
        self.close();
    }

    /// Takes in the tuples of which something is asked, and those to which something has happened.
    fn take<S: Source>(&mut self, look: &Look<'_, '_, S>, earlier: &[PartState], table: &mut TupleTable) {
        let Some(Part { op: PartOp::Ask { of, .. }, .. }) = look.parts.last() else { return };
        let of = &earlier[of.index()];
        let mut take = |tuple: &[u64]| self.admit(look, table, tuple);
        if look.parts[part_of(look.parts)].lasts {
            of.table.iter().flat_map(TupleTable::present).for_each(&mut take);
        } else {
            of.out.iter().for_each(|(tuple, _)| take(tuple));
        }
        if table.len() > 0 {
            look.for_each_touched(table, |row| self.look_at(row));
            for row in std::mem::take(&mut self.hot) {
                self.look_at(row);
            }
        }
    }

    /// Asks something of a tuple.
    fn admit<S: Source>(&mut self, look: &Look<'_, '_, S>, table: &mut TupleTable, tuple: &[u64]) {
        let known = table.find(tuple);
        if let Some(row) = known
            && self.waits.get(row as usize).is_some_and(Option::is_some)
        {
            return self.look_at(row);
        }
        look.truths(tuple, &mut self.truths);
        if let Some(rails) = look.at_once(&self.truths, &mut self.ranges.0) {
            return self.answer(rails, tuple);
        }
        if self.asked >= 2 * Asking::LIMIT {
            self.lost = self.lost.saturating_add(1);
            return self.answer([false, true], tuple);
        }
        let row = known.unwrap_or_else(|| table.insert(tuple)) as usize;
        if self.waits.len() <= row {
            self.waits.resize_with(row + 1, || None);
        }
        let mut wait = self.spare.pop().unwrap_or_else(|| {
            let pending = Pending::new(&look.ask.formula, Asking::LIMIT);
            Box::new(TupleWait {
                pending,
                at: Vec::new(),
                after: Vec::new(),
                is_hot: false,
                seen: 0,
                due: None,
            })
        });
        (wait.is_hot, wait.seen, wait.due) = (false, 0, None);
        self.waits[row] = Some(wait);
        self.look_at(row as u32);
    }

    fn look_at(&mut self, row: u32) {
        let number = self.number;
        if let Some(Some(wait)) = self.waits.get_mut(row as usize)
            && wait.seen != number
        {
            wait.seen = number;
            self.looked_at.push(row);
        }
    }

    /// One tuple more is asked at this moment.
    fn count(&mut self) {
        self.asked += 2;
        if let Some(open) = self.open.back_mut() {
            open.waits = open.waits.map(|waits| waits + 1);
        }
    }

    /// What is asked of a tuple at this moment is certain at once.
    fn answer(&mut self, rails: [bool; 2], tuple: &[u64]) {
        self.count();
        for (rail, value) in rails.into_iter().enumerate() {
            self.told(RailDecision { tag: self.number, rail, value, axis: i128::MIN }, tuple);
        }
    }

    /// When there are too many, each keeps no more than it has.
    fn limit(&self, wait: &mut TupleWait) {
        let is_full = self.asked >= 2 * Asking::LIMIT;
        wait.pending.set_limit(if is_full { wait.pending.waiting() } else { Asking::LIMIT });
    }

    /// Puts back what a tuple has pending, if it has.
    fn put<S: Source>(&mut self, look: &Look<'_, '_, S>, row: u32, mut wait: Box<TupleWait>, tuple: &[u64]) {
        if wait.pending.rests(&look.ask.formula, &mut self.room).is_some() {
            return self.free(row, wait);
        }
        look.ranges(tuple, &mut self.ranges.1);
        let (scratch, ranges) = (&mut self.ranges.0, &self.ranges.1);
        let past = |i: usize| ranges.get(i).copied().unwrap_or(Range::PENDING);
        wait.is_hot = !look.ask.formula.is_idle(past, scratch);
        if wait.is_hot {
            self.hot.push(row);
        }
        self.plan(look.ask, row, &mut wait);
        self.waits[row as usize] = Some(wait);
    }

    fn free(&mut self, row: u32, mut wait: Box<TupleWait>) {
        self.lost = self.lost.saturating_add(wait.pending.lost());
        wait.pending.restart(None);
        wait.due = None;
        if self.spare.len() < 64 {
            self.spare.push(wait);
        }
        self.gone.push(row);
    }

    fn plan(&mut self, ask: &Ask, row: u32, wait: &mut TupleWait) {
        let due = wait.pending.deadline(&ask.formula);
        if due != wait.due {
            wait.due = due;
            self.due.extend(due.map(|due| Reverse((due, row))));
        }
    }

    /// Lets time pass up to a time for those to whom it brings something.
    fn pass(&mut self, ask: &Ask, table: &TupleTable, now: i64) {
        while let Some(&Reverse((due, row))) = self.due.peek() {
            let wait = self.waits.get_mut(row as usize).and_then(Option::take);
            let Some(mut wait) = wait else {
                self.due.pop();
                continue;
            };
            let is_due = wait.due == Some(due);
            if is_due && due >= now {
                self.waits[row as usize] = Some(wait);
                break;
            }
            self.due.pop();
            if !is_due {
                self.waits[row as usize] = Some(wait);
                continue;
            }
            wait.due = None;
            wait.pending.advance(&ask.formula, now, &mut self.room, &mut self.decisions);
            self.settle(table.tuple(row));
            if wait.pending.rests(&ask.formula, &mut self.room).is_some() {
                self.free(row, wait);
                continue;
            }
            self.plan(ask, row, &mut wait);
            self.waits[row as usize] = Some(wait);
        }
    }

    /// Takes in what has been decided of a tuple.
    fn settle(&mut self, tuple: &[u64]) {
        self.decisions.clear();
        let mut rails = self.room.rails.take().unwrap_or_default();
        // Of the time between moments nothing is asked.
        rails.iter().filter(|decision| decision.tag > 0).for_each(|decision| self.told(*decision, tuple));
        rails.clear();
        self.room.rails = Some(rails);
    }

    fn told(&mut self, RailDecision { tag: moment, rail, value, axis }: RailDecision, tuple: &[u64]) {
        self.asked = self.asked.saturating_sub(1);
        let is_now = moment == self.number && self.is_asking;
        let Some(open) = self.open_at(moment) else { return };
        open.waits[rail] = open.waits[rail].saturating_sub(1);
        if value {
            if rail == CERTAIN && !open.told[rail] {
                let (event, place) = (open.event, open.place);
                let at = (axis != i128::MIN).then(|| axis.clamp(i64::MIN.into(), i64::MAX.into()) as i64);
                let found = AnsweredAt { axis: at, event: self.latest, is_later: self.is_passing };
                self.answers.add(Answer { event, place, found }, tuple);
            }
            self.tell(moment, axis, rail, true);
        }
        if !is_now {
            self.conclude(moment, axis);
        }
    }

    fn open_at(&mut self, moment: i64) -> Option<&mut Open> {
        let at = moment - (self.number - self.open.len() as i64) - 1;
        usize::try_from(at).ok().and_then(|at| self.open.get_mut(at))
    }

    /// If nobody is asked any more at a moment, that is all.
    fn conclude(&mut self, moment: i64, axis: i128) {
        for rail in 0..2 {
            if self.open_at(moment).is_some_and(|open| open.waits[rail] == 0) {
                self.tell(moment, axis, rail, false);
            }
        }
    }

    fn tell(&mut self, moment: i64, axis: i128, rail: usize, value: bool) {
        let row = self.row.saturating_sub(1);
        let Some(open) = self.open_at(moment) else { return };
        if !std::mem::replace(&mut open.told[rail], true) {
            self.news.push(News { row, axis, moment, rail, value });
        }
    }

    /// Forgets the first moments that are decided.
    fn close(&mut self) {
        while self.open.front().is_some_and(|open| open.told == [true; 2]) {
            self.open.pop_front();
        }
    }
}

/// The part of which tuples are asked.
fn part_of(parts: &[Part]) -> usize {
    match parts.last() {
        Some(Part { op: PartOp::Ask { of, .. }, .. }) => of.index(),
        _ => 0,
    }
}
