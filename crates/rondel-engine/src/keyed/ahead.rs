//! Properties with future operators. Where their verdict is certain at once, they are evaluated like any
//! other property. Otherwise the instance has [pending](crate::future) state until all its time points are
//! decided.

use rondel_event::{Rows, Verdict};
use rondel_spec::TimeModel;

use crate::exec::report::Outcome;
use crate::exec::section::{Section, TimePoints};
use crate::future::Future;
use crate::future::{Decision, Levels, Range, Room, Scratch};
use crate::ir::truth::{Truth, TruthBounds};
use crate::ir::wire::Wire;
use crate::keyed::batch::{Batch, write};
use crate::keyed::gather::GatherBuffers;
use crate::keyed::keys::for_each;
use crate::keyed::record::POSITION;
use crate::keyed::table::{TEMPLATE, Table};
use crate::ops::columns::rows_where;
use crate::relation::resolve::{resolve, resolve_dense};

/// Tag of a time point that is an event.
pub(crate) const EVENT: i64 = 1;

/// Verdict that earlier time points awaited.
#[derive(Clone, Copy, Debug)]
pub(crate) struct AwaitedVerdict {
    /// Row of the instance.
    pub(crate) row: usize,
    /// Index of the property among those with future operators; those with robustness come last.
    pub(crate) future: usize,
    pub(crate) decision: Decision,
    /// Whether the end of the instance decided it, as inconclusive.
    pub(crate) is_end: bool,
}

/// Decisions, and working memory.
#[derive(Clone, Debug, Default)]
pub(crate) struct Ahead {
    /// Whether the verdict at every event is requested.
    pub(crate) every: bool,
    /// For every property with future operators, the rows whose verdicts come from pending state.
    pub(crate) driven: Vec<Rows>,
    pub(crate) awaited: Vec<AwaitedVerdict>,
    room: Scratch,
    pub(super) delayed_room: Room,
    ranges: Vec<Range>,
    at: Vec<u8>,
    after: Vec<u8>,
    /// Levels of the pasts at a time point, and on the open interval after it.
    pub(super) levels: [Vec<Levels>; 2],
    pub(super) decisions: Vec<Decision>,
}

impl Ahead {
    pub(crate) fn new(futures: usize) -> Ahead {
        Ahead { driven: vec![0; futures], ..Ahead::default() }
    }

    /// Evaluates the formula without knowledge of the future; returns its range, and the rows where it is
    /// decided.
    fn at_once(
        &mut self,
        future: &Future,
        words: &[Rows],
        half: impl Fn(&Truth) -> TruthBounds,
    ) -> (Range, Rows) {
        let Some(root) = future.plan.frames.last() else { return (Range::PENDING, 0) };
        let past = |i: usize| {
            let past = root.pasts.get(i).and_then(|&i| future.pasts.get(i as usize));
            past.map_or(Range::PENDING, |past| {
                let bounds = half(past);
                Range::known(bounds.certain.read(words), bounds.possible.read(words))
            })
        };
        let range = root.evaluate(past, |_| Range::PENDING, &mut self.ranges);
        let [certain, possible] = range.decided();
        (range, certain & possible)
    }

    pub(super) fn emit(&mut self, row: usize, future: usize, is_end: bool) {
        self.awaited.extend(self.decisions.drain(..).map(|decision| AwaitedVerdict {
            row,
            future,
            decision,
            is_end,
        }));
    }

    /// Ends the instance of a row at a time: open verdicts become inconclusive.
    pub(crate) fn end(&mut self, section: &Section, table: &mut Table, row: usize, number: u32, time: i64) {
        for (k, future) in section.futures.iter().enumerate() {
            let word = table.layout.places.pending[k] as usize;
            let reference = table.record(number)[word];
            if let Some(pending) = table.heap.pending.get_mut(k, reference) {
                // Decisions that were already certain are emitted as usual.
                pending.advance(&future.plan, time, &mut self.room, &mut self.decisions);
                self.emit(row, k, false);
                pending.end(&mut self.decisions);
                self.emit(row, k, true);
            }
        }
        for (k, future) in section.robust_futures.iter().enumerate() {
            let word = table.layout.places.delayed[k] as usize;
            let reference = table.record(number)[word];
            if let Some(delayed) = table.heap.delayed.get_mut(k, reference) {
                delayed.advance(&future.plan, time, &mut self.delayed_room, &mut self.decisions);
                self.emit(row, section.futures.len() + k, false);
                delayed.end(&mut self.decisions);
                self.emit(row, section.futures.len() + k, true);
            }
        }
    }
}

impl Batch<'_> {
    /// Writes the verdicts that are certain at once, and advances pending state to the time points.
    pub(super) fn step_futures(&mut self, outcomes: &mut [Outcome], times: &[i64]) {
        let Batch { section, rows, counts, .. } = *self;
        let Table { layout, heap, .. } = &mut *self.table;
        let GatherBuffers { records, bits, instances, .. } = &mut *self.gathered;
        let (words, ahead) = (&self.registers.words, &mut *self.ahead);
        let dense = section.time_points == TimePoints::Dense;
        let width = if dense { 4 } else { 2 };
        let first = layout.places.verdicts as usize + width * section.properties.len();
        let outcomes = outcomes.iter_mut().skip(section.properties.len());
        let all = section.futures.iter().zip(bits[first..].chunks_exact_mut(width)).zip(outcomes);
        for (k, ((future, last), outcome)) in all.enumerate() {
            let (plan, word) = (&future.plan, layout.places.pending[k] as usize);
            let waits = rows_where(times.len() as u32, |row| records[word][row] != 0);
            let (range, certain) = ahead.at_once(future, words, |truth| truth.at);
            let mut at_once = rows & certain & !waits;
            let now = [range.certain[0], !range.possible[0]];
            let mut after = now;
            if dense {
                let (range, certain) = ahead.at_once(future, words, |truth| truth.after);
                at_once &= certain;
                after = [range.certain[0], !range.possible[0]];
            }
            let driven = rows & !at_once;
            ahead.driven[k] = ahead.driven[k] & !rows | driven;
            write(outcome, at_once, now, [last[0], last[1]]);
            outcome.changed &= !driven;
            for (last, now) in last.iter_mut().zip(now.into_iter().chain(after)) {
                *last = *last & !at_once | now & at_once;
            }
            for_each(driven, |row| {
                if instances[row] == TEMPLATE {
                    // The template has no pending state: that of a copy begins with its first event.
                    return put(last, row, None);
                }
                let reference = &mut records[word][row];
                let pending = heap.pending.get_or_begin(k, reference, || verdict(last, row));
                let Some(pending) = pending else { return };
                let relations = &heap.relations;
                let obligations = future.externals.iter().filter_map(|&(external, relation)| {
                    let word = layout.places.relations[relation as usize] as usize;
                    Some((external, relations.obligations(relation as usize, records[word][row])?))
                });
                let bit = |bounds: TruthBounds| {
                    let bound = |wire: Wire| (wire.read(words) >> row & 1) as u8;
                    bound(bounds.certain) | bound(bounds.possible) << 1
                };
                ahead.at.clear();
                ahead.at.extend(future.pasts.iter().map(|past| bit(past.at)));
                let (room, out) = (&mut ahead.room, &mut ahead.decisions);
                let (time, position) = (times[row], records[POSITION][row]);
                match plan.time {
                    TimeModel::Steps | TimeModel::Points => resolve(pending, plan, obligations, 0),
                    TimeModel::Dense => resolve_dense(pending, plan, obligations, 0, room, out),
                }
                match plan.time {
                    TimeModel::Steps => pending.step(plan, position, time, &ahead.at, room, out),
                    TimeModel::Points => pending.point(plan, time, &ahead.at, room, out),
                    TimeModel::Dense => {
                        ahead.after.clear();
                        ahead.after.extend(future.pasts.iter().map(|past| bit(past.after)));
                        pending.keep_apart(ahead.every);
                        let tag = if counts { EVENT } else { 0 };
                        pending.dense_point(plan, time, tag, [&ahead.at, &ahead.after], room, out);
                    }
                }
                let quiescent = pending.quiescent_verdicts(plan, room);
                ahead.emit(row, k, false);
                put(last, row, quiescent);
                if quiescent.is_some() {
                    heap.pending.free(k, std::mem::take(&mut records[word][row]));
                }
            });
        }
    }

    /// Advances time: in dense time beyond these times, in points up to them.
    pub(super) fn advance_futures(&mut self, times: &[i64]) {
        let (section, rows) = (self.section, self.rows);
        let Table { layout, heap, .. } = &mut *self.table;
        let GatherBuffers { records, bits, .. } = &mut *self.gathered;
        let ahead = &mut *self.ahead;
        let dense = section.time_points == TimePoints::Dense;
        let width = if dense { 4 } else { 2 };
        let first = layout.places.verdicts as usize + width * section.properties.len();
        let all = section.futures.iter().zip(bits[first..].chunks_exact_mut(width));
        for (k, (future, last)) in all.enumerate() {
            if future.plan.time == TimeModel::Steps {
                continue;
            }
            let word = layout.places.pending[k] as usize;
            for_each(rows, |row| {
                let now = times[row].saturating_add(i64::from(dense));
                let of = |relation: u32| {
                    let word = layout.places.relations.get(relation as usize)?;
                    Some((relation as usize, records[*word as usize][row]))
                };
                for &(_, relation) in &future.externals {
                    let plan =
                        section.relations.get(relation as usize).and_then(|r| r.plan.obligation.as_deref());
                    let state = of(relation).and_then(|(k, reference)| heap.relations.get_mut(k, reference));
                    if let Some((obligation, state)) = plan.zip(state) {
                        state.pass(obligation, now);
                    }
                }
                let Some(pending) = heap.pending.get_mut(k, records[word][row]) else { return };
                let obligations = future.externals.iter().filter_map(|&(external, relation)| {
                    let (k, reference) = of(relation)?;
                    Some((external, heap.relations.obligations(k, reference)?))
                });
                if dense {
                    resolve_dense(
                        pending,
                        &future.plan,
                        obligations,
                        0,
                        &mut ahead.room,
                        &mut ahead.decisions,
                    );
                } else {
                    resolve(pending, &future.plan, obligations, 0);
                }
                pending.advance(&future.plan, now, &mut ahead.room, &mut ahead.decisions);
                let quiescent = pending.quiescent_verdicts(&future.plan, &mut ahead.room);
                ahead.emit(row, k, false);
                put(last, row, quiescent);
                if quiescent.is_some() {
                    heap.pending.free(k, std::mem::take(&mut records[word][row]));
                }
            });
        }
    }
}

/// Returns the verdict in a row, if there was one.
pub(super) fn verdict(last: &[Rows], row: usize) -> Option<Verdict> {
    match (last[0] >> row & 1, last[1] >> row & 1) {
        (1, 1) => None,
        (1, _) => Some(Verdict::Satisfied),
        (_, 1) => Some(Verdict::Violated),
        _ => Some(Verdict::Inconclusive),
    }
}

/// Writes the verdicts in a row, or that there is none.
pub(super) fn put(last: &mut [Rows], row: usize, verdicts: Option<[Verdict; 2]>) {
    for (half, last) in last.chunks_exact_mut(2).enumerate() {
        let [satisfied, violated] = match verdicts.and_then(|verdicts| verdicts.get(half).copied()) {
            None => [1, 1],
            Some(Verdict::Satisfied) => [1, 0],
            Some(Verdict::Violated) => [0, 1],
            Some(Verdict::Inconclusive) => [0, 0],
        };
        last[0] = last[0] & !(1 << row) | satisfied << row;
        last[1] = last[1] & !(1 << row) | violated << row;
    }
}
