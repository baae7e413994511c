//! `since`: the tuples of the right side, for as long as the left side holds and no longer than the
//! bounds say.
//!
//! A tuple has one row. While only the latest of its times counts, that one is all that is kept: a
//! later time needs the left side for less long, and stays longer within the upper bound. The rows are
//! in a list in order of these times, so that those that grow too old are at its front. With a lower
//! bound a time first waits in a queue until it is old enough; of what lasts, when it began and when it
//! ended.

use serde::{Deserialize, Serialize};

use super::plan::{Left, Lookup, Most, Part, PartId};
use super::reel::Reel;
use super::state::{Keyed, PartState, Tick};
use super::table::{Access, NONE, TupleTable};
use super::term::{Source, Watch};

/// What a `since` keeps besides its table.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(crate) struct SinceState {
    /// Times, their ticks and rows that are not old enough; and whether from then on it held, or no longer.
    waiting: Reel<(i64, u64, u32, bool)>,
    /// The rows with a time of the tick before: the left side has not been asked about them.
    fresh: Vec<u32>,
    /// What came before this tick is over.
    cut: u64,
    watch: Watch,
    doomed: Vec<u32>,
    /// How many tuples were forgotten because there were too many.
    pub(crate) forgotten: u64,
}

/// A `since` as it is planned.
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

    /// From here on all is done on trial; what is small is given away to be put back.
    pub(crate) fn try_out(&mut self) -> SinceState {
        self.waiting.try_out();
        let SinceState { fresh, cut, watch, forgotten, .. } = self;
        let (fresh, watch) = (fresh.clone(), watch.clone());
        SinceState { fresh, cut: *cut, watch, forgotten: *forgotten, ..SinceState::default() }
    }

    pub(crate) fn confirm(&mut self) {
        self.waiting.confirm();
    }

    pub(crate) fn take_back(&mut self, before: SinceState) {
        self.waiting.take_back();
        (self.fresh, self.cut, self.watch) = (before.fresh, before.cut, before.watch);
        self.forgotten = before.forgotten;
    }

    /// Whether no time of a tuple is kept.
    pub(crate) fn is_bare(&self) -> bool {
        self.waiting.front().is_none() && self.fresh.is_empty()
    }

    /// Whether it can have been one like `own`, beside this table.
    pub(crate) fn fits(&self, own: &SinceState, table: &TupleTable) -> bool {
        let SinceState { waiting, fresh, watch, doomed, .. } = self;
        waiting.fits(|(_, _, row, _)| table.has_row(*row))
            && fresh.iter().chain(doomed).all(|row| table.has_row(*row))
            && watch.fits(&own.watch)
    }

    /// The time at which something changes by itself, if nothing else happens.
    pub(crate) fn deadline(&self, since: &Since<'_>, table: &TupleTable) -> Option<i64> {
        let waits = self.waiting.front().map(|(time, ..)| time.saturating_add(since.lower));
        let ends = table.first().zip(since.upper);
        let ends = ends.map(|((_, meta), upper)| meta.time.saturating_add(upper).saturating_add(1));
        waits.into_iter().chain(ends).min()
    }
}

impl Since<'_> {
    /// The changes of this tick are left touched in the table.
    pub(crate) fn step<S: Source>(
        &self,
        state: &mut SinceState,
        table: &mut TupleTable,
        earlier: &[PartState],
        parts: &[Part],
        tick: &Tick<'_, S>,
    ) {
        let right = &earlier[self.right.index()].out;
        let lasts = parts[self.right.index()].lasts;
        let asks = !self.left.is_empty();
        std::mem::swap(&mut state.doomed, &mut state.fresh);
        state.fresh.clear();
        for (tuple, weight) in right.iter() {
            if weight < 0 {
                // It held at the tick before for the last time.
                if let Some(row) = table.find(tuple) {
                    table.touch(row);
                    if self.lower > 0 {
                        table.meta(row).count += 1;
                        state.waiting.push_back((tick.before, tick.number - 1, row, false));
                        continue;
                    }
                    let meta = table.meta(row);
                    (meta.held, meta.time, meta.tick) = (false, tick.before, tick.number - 1);
                    table.link_last(row);
                    state.doomed.push(row);
                }
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
            if asks && !lasts {
                state.fresh.push(row);
            }
        }
        if asks {
            self.end(state, table, earlier, parts, tick);
        }
        while let Some(&(time, number, row, begins)) = state.waiting.front() {
            if time > tick.now.saturating_sub(self.lower) {
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
                // It has been there until then, and stays as long as the upper bound says.
                (meta.held, meta.time, meta.tick) = (false, time, number);
                table.link_last(row);
                continue;
            }
            if number >= meta.cut.max(state.cut) {
                (meta.present, meta.time, meta.tick) = (true, time, number);
                table.link_last(row);
            }
        }
        if let Some(most) = self.most {
            let most = usize::try_from(most.tuples).unwrap_or(usize::MAX);
            for _ in most..table.len() {
                // Those that hold, or are not old enough, are not in the list.
                let Some((row, _)) = table.first() else { break };
                table.touch(row);
                table.meta(row).present = false;
                table.unlink(row);
                state.forgotten = state.forgotten.saturating_add(1);
            }
        }
        if let Some(upper) = self.upper {
            while let Some((row, meta)) = table.first() {
                if meta.time >= tick.now.saturating_sub(upper) {
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
        let ask_all = state.watch.has_changed(tick.source, tick.is_first);
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
                    if ask_all {
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
                                if !Keyed::new(table.tuple(row), &lookup.slots).is_in(&part.out) {
                                    end_row(table, row, tick.number);
                                }
                            }
                        }
                        (true, wanted) => {
                            // Where it comes to be that the left side does not hold.
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
        table.is_some_and(|table| table.has(lookup.access, Keyed::new(tuple, &lookup.slots).key()))
    }
}

/// Ends what the row has from before this tick.
fn end_row(table: &mut TupleTable, row: u32, number: u64) {
    let meta = table.meta(row);
    if !meta.live {
        return;
    }
    // Times that wait are told from later ones when they are old enough.
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
    // Ending changes no chain of an index.
    let mut rows = table.matching(back, tuple).cursor();
    while rows != NONE {
        end_row(table, rows, number);
        rows = table.follow(back, rows);
    }
}
