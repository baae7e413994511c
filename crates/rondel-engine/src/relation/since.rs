//! `since`: the tuples of the right side, for as long as the left side holds and within the bounds.
//!
//! A tuple has one row. Its latest time alone is stored: a later time requires the left side for a shorter
//! while, and stays longer within the upper bound. The rows form a list ordered by these times, with expiring
//! rows at its front. With a lower bound a time first waits in a queue until it is old enough; for a lasting
//! right side, these are the times at which it began and ended.

use serde::{Deserialize, Serialize};

use super::plan::{Left, Lookup, Most, Part, PartId};
use super::rollback::RollbackQueue;
use super::state::{KeyTuple, PartState, Tick};
use super::table::{Access, NONE, TupleTable};
use super::term::{Source, Watch};

/// State of a `since` besides its table.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(crate) struct SinceState {
    /// Times below the lower bound: time, tick, row, and whether the right side began to hold or ceased to.
    waiting: RollbackQueue<(i64, u64, u32, bool)>,
    /// Rows with a time of the previous tick, for which the left side has not been checked yet.
    fresh: Vec<u32>,
    /// Times before this tick have ended.
    cut: u64,
    watch: Watch,
    doomed: Vec<u32>,
    /// Number of tuples evicted because of the limit.
    pub(crate) forgotten: u64,
}

/// Parameters of a `since`.
pub(crate) struct Since<'a> {
    pub(crate) lower: i64,
    pub(crate) upper: Option<i64>,
    pub(crate) left: &'a [Left],
    pub(crate) right: PartId,
    pub(crate) most: Option<Most>,
}

impl SinceState {
    pub(crate) fn new(left: &[Left]) -> SinceState {
        let tests = left.iter().filter_map(|left| match left {
            Left::Test(condition) if !condition.is_fixed() => Some(condition),
            _ => None,
        });
        SinceState { watch: Watch::new(tests), ..SinceState::default() }
    }

    /// Starts a speculative step. Returns the small state to restore on rollback.
    pub(crate) fn begin_speculation(&mut self) -> SinceState {
        self.waiting.begin_speculation();
        let SinceState { fresh, cut, watch, forgotten, .. } = self;
        let (fresh, watch) = (fresh.clone(), watch.clone());
        SinceState { fresh, cut: *cut, watch, forgotten: *forgotten, ..SinceState::default() }
    }

    pub(crate) fn confirm(&mut self) {
        self.waiting.confirm();
    }

    pub(crate) fn roll_back(&mut self, before: SinceState) {
        self.waiting.roll_back();
        (self.fresh, self.cut, self.watch) = (before.fresh, before.cut, before.watch);
        self.forgotten = before.forgotten;
    }

    /// Whether no time of a tuple is stored.
    pub(crate) fn is_bare(&self) -> bool {
        self.waiting.front().is_none() && self.fresh.is_empty()
    }

    /// Whether it fits a state like `own`, beside this table.
    pub(crate) fn fits(&self, own: &SinceState, table: &TupleTable) -> bool {
        let SinceState { waiting, fresh, watch, doomed, .. } = self;
        waiting.fits(|(_, _, row, _)| table.has_row(*row))
            && fresh.iter().chain(doomed).all(|row| table.has_row(*row))
            && watch.fits(&own.watch)
    }

    /// Returns the next tick at which time alone causes a change.
    pub(crate) fn deadline(&self, since: &Since<'_>, table: &TupleTable) -> Option<i64> {
        let waits = self.waiting.front().map(|(time, ..)| time.saturating_add(since.lower));
        let ends = table.first().zip(since.upper);
        let ends = ends.map(|((_, meta), upper)| meta.time.saturating_add(upper).saturating_add(1));
        waits.into_iter().chain(ends).min()
    }
}

impl Since<'_> {
    /// Processes a tick; changed rows are left touched in the table.
    pub(crate) fn step<S: Source>(
        &self,
        state: &mut SinceState,
        table: &mut TupleTable,
        earlier: &[PartState],
        parts: &[Part],
        tick: &Tick<'_, S>,
    ) {
        let lasts = parts[self.right.index()].lasts;
        let has_left = !self.left.is_empty();
        std::mem::swap(&mut state.doomed, &mut state.fresh);
        state.fresh.clear();
        for (tuple, weight) in earlier[self.right.index()].out.iter() {
            if weight < 0 {
                self.leave(state, table, tuple, tick);
                continue;
            }
            let row = table.insert(tuple);
            table.touch(row);
            if self.lower > 0 {
                table.meta(row).count += 1;
                state.waiting.push_back((tick.now, tick.number, row, true));
            } else {
                let meta = table.meta(row);
                (meta.present, meta.held, meta.time, meta.tick) = (true, lasts, tick.now, tick.number);
                if lasts {
                    table.unlink(row);
                } else {
                    table.link_last(row);
                }
            }
            if has_left && !lasts {
                state.fresh.push(row);
            }
        }
        if has_left {
            self.end(state, table, earlier, parts, tick);
        }
        self.release(state, table, lasts, tick.now);
        self.forget(state, table, tick.now);
    }

    /// Notes that a tuple of the right side no longer holds: the previous tick was the last one at which it did.
    fn leave<S: Source>(
        &self,
        state: &mut SinceState,
        table: &mut TupleTable,
        tuple: &[u64],
        tick: &Tick<'_, S>,
    ) {
        let Some(row) = table.find(tuple) else { return };
        table.touch(row);
        if self.lower > 0 {
            table.meta(row).count += 1;
            state.waiting.push_back((tick.before, tick.number - 1, row, false));
            return;
        }
        let meta = table.meta(row);
        (meta.held, meta.time, meta.tick) = (false, tick.before, tick.number - 1);
        table.link_last(row);
        state.doomed.push(row);
    }

    /// Takes the tuples that have waited for the lower bound at time `now`, in nanoseconds.
    fn release(&self, state: &mut SinceState, table: &mut TupleTable, lasts: bool, now: i64) {
        while let Some(&(time, number, row, begins)) = state.waiting.front() {
            if time > now.saturating_sub(self.lower) {
                break;
            }
            state.waiting.pop_front();
            table.touch(row);
            let meta = table.meta(row);
            meta.count -= 1;
            if lasts && begins {
                (meta.present, meta.held) = (true, true);
                table.unlink(row);
                continue;
            }
            if lasts {
                // It held until then, and stays for the upper bound.
                (meta.held, meta.time, meta.tick) = (false, time, number);
                table.link_last(row);
                continue;
            }
            if number >= meta.cut.max(state.cut) {
                (meta.present, meta.time, meta.tick) = (true, time, number);
                table.link_last(row);
            }
        }
    }

    /// Removes the oldest tuples above the limit, and those beyond the upper bound at time `now`, in nanoseconds.
    fn forget(&self, state: &mut SinceState, table: &mut TupleTable, now: i64) {
        if let Some(most) = self.most {
            let most = usize::try_from(most.tuples).unwrap_or(usize::MAX);
            for _ in most..table.len() {
                // Tuples that hold, or are not old enough, are not in the list.
                let Some((row, _)) = table.first() else { break };
                table.touch(row);
                table.meta(row).present = false;
                table.unlink(row);
                state.forgotten = state.forgotten.saturating_add(1);
            }
        }
        if let Some(upper) = self.upper {
            while let Some((row, meta)) = table.first() {
                if meta.time >= now.saturating_sub(upper) {
                    break;
                }
                table.touch(row);
                table.meta(row).present = false;
                table.unlink(row);
            }
        }
    }

    /// Ends the tuples for which the left side does not hold.
    fn end<S: Source>(
        &self,
        state: &mut SinceState,
        table: &mut TupleTable,
        earlier: &[PartState],
        parts: &[Part],
        tick: &Tick<'_, S>,
    ) {
        let context = tick.context();
        let check_all = state.watch.has_changed(tick.source, tick.is_first);
        let mut fresh = std::mem::take(&mut state.doomed);
        for left in self.left {
            match left {
                Left::Test(condition) if condition.is_closed() => {
                    if !context.holds(condition, &[]) {
                        state.cut = tick.number;
                        while let Some((row, meta)) = table.first().filter(|(_, m)| m.tick < tick.number) {
                            debug_assert!(!meta.held, "what is held is in no list");
                            end_row(table, row, tick.number);
                        }
                    }
                }
                Left::Test(condition) => {
                    if check_all {
                        let rows: Vec<u32> = table.rows().collect();
                        for row in rows {
                            if !context.holds(condition, table.tuple(row)) {
                                end_row(table, row, tick.number);
                            }
                        }
                    }
                    for &row in &fresh {
                        if !context.holds(condition, table.tuple(row)) {
                            end_row(table, row, tick.number);
                        }
                    }
                }
                Left::Member { lookup, wanted, back } => {
                    let part = &earlier[lookup.part.index()];
                    let lasts = parts[lookup.part.index()].lasts;
                    match (lasts, wanted) {
                        (false, false) => {
                            for (tuple, _) in part.out.iter() {
                                end_matching(table, *back, tuple, tick.number);
                            }
                        }
                        (false, true) => {
                            let rows: Vec<u32> = table.rows().collect();
                            for row in rows {
                                if !KeyTuple::new(table.tuple(row), &lookup.slots).is_in(&part.out) {
                                    end_row(table, row, tick.number);
                                }
                            }
                        }
                        (true, wanted) => {
                            // Weight of the changes with which the left side ceases to hold.
                            let ends = if *wanted { -1 } else { 1 };
                            for (tuple, _) in part.out.iter().filter(|(_, weight)| *weight == ends) {
                                end_matching(table, *back, tuple, tick.number);
                            }
                            for &row in &fresh {
                                if self.is_member(part, lookup, table.tuple(row)) != *wanted {
                                    end_row(table, row, tick.number);
                                }
                            }
                        }
                    }
                }
            }
        }
        fresh.clear();
        state.doomed = fresh;
    }

    fn is_member(&self, part: &PartState, lookup: &Lookup, tuple: &[u64]) -> bool {
        let table = part.table.as_ref();
        table.is_some_and(|table| table.has(lookup.access, KeyTuple::new(tuple, &lookup.slots).key()))
    }
}

/// Ends the times of a row before this tick.
fn end_row(table: &mut TupleTable, row: u32, number: u64) {
    let meta = table.meta(row);
    if !meta.live {
        return;
    }
    // Queued times are compared with the cut when they are old enough.
    meta.cut = number;
    if meta.present && !meta.held && meta.tick < number {
        table.touch(row);
        table.meta(row).present = false;
        table.unlink(row);
    }
}

fn end_matching(table: &mut TupleTable, back: Access, tuple: &[u64], number: u64) {
    if back == Access::Whole {
        if let Some(row) = table.find(tuple) {
            end_row(table, row, number);
        }
        return;
    }
    // Ending a row changes no chain of an index.
    let mut rows = table.matching(back, tuple).cursor();
    while rows != NONE {
        end_row(table, rows, number);
        rows = table.follow(back, rows);
    }
}
