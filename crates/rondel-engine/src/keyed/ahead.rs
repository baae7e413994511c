//! Properties that look ahead. Where what they say is certain at once, they are as any other. Otherwise an
//! instance has something [pending](crate::future), until all that it has seen is decided.

use rondel_event::{Rows, Verdict};
use rondel_spec::TimeModel;

use crate::exec::report::Outcome;
use crate::exec::section::{Section, TimePoints};
use crate::future::Future;
use crate::future::{Decision, Levels, Range, Room, Scratch};
use crate::ir::truth::{Truth, TruthBounds};
use crate::ir::wire::Wire;
use crate::keyed::batch::{Batch, write};
use crate::keyed::keys::for_each;
use crate::keyed::lanes::Lanes;
use crate::keyed::record::POSITION;
use crate::keyed::table::{TEMPLATE, Table};
use crate::ops::columns::rows_where;
use crate::relation::told::{hear, learn};

/// What was noted of a moment that is an event.
pub(crate) const EVENT: i64 = 1;

/// A verdict that was waited for.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Told {
    /// The row of the instance.
    pub(crate) row: usize,
    /// The property, by its place among those that look ahead; those whose robustness is asked for come last.
    pub(crate) future: usize,
    pub(crate) decision: Decision,
    /// The instance is over: of what is still open nothing will be known.
    pub(crate) is_end: bool,
}

/// What has been decided, and room to decide.
#[derive(Clone, Debug, Default)]
pub(crate) struct Ahead {
    /// Whether the verdicts at all events are asked for.
    pub(crate) every: bool,
    /// For every property that looks ahead the rows where what it says comes from what is pending.
    pub(crate) driven: Vec<Rows>,
    pub(crate) told: Vec<Told>,
    room: Scratch,
    pub(super) delayed_room: Room,
    ranges: Vec<Range>,
    at: Vec<u8>,
    after: Vec<u8>,
    /// What the pasts are, and by how much, at a moment and on the span after it.
    pub(super) levels: [Vec<Levels>; 2],
    pub(super) decisions: Vec<Decision>,
}

impl Ahead {
    pub(crate) fn new(futures: usize) -> Ahead {
        Ahead { driven: vec![0; futures], ..Ahead::default() }
    }

    /// What the formula says if nothing is known of the future, and where that is certain.
    fn at_once(
        &mut self,
        future: &Future,
        words: &[Rows],
        side: impl Fn(&Truth) -> TruthBounds,
    ) -> (Range, Rows) {
        let Some(root) = future.plan.skeletons.last() else { return (Range::PENDING, 0) };
        let past = |i: usize| {
            let past = root.pasts.get(i).and_then(|&i| future.pasts.get(i as usize));
            past.map_or(Range::PENDING, |past| {
                let rails = side(past);
                Range::known(rails.certain.read(words), rails.possible.read(words))
            })
        };
        let range = root.evaluate(past, |_| Range::PENDING, &mut self.ranges);
        let [certain, possible] = range.decided();
        (range, certain & possible)
    }

    pub(super) fn tell(&mut self, row: usize, future: usize, is_end: bool) {
        self.told.extend(self.decisions.drain(..).map(|decision| Told { row, future, decision, is_end }));
    }

    /// The instance of a row is over at this time: of what is open nothing will be known.
    pub(crate) fn end(
        &mut self,
        section: &Section,
        table: &mut Table,
        (row, number): (usize, u32),
        time: i64,
    ) {
        for (k, future) in section.futures.iter().enumerate() {
            let word = table.layout.places.pending[k] as usize;
            let reference = table.record(number)[word];
            if let Some(pending) = table.sides.pending.get_mut(k, reference) {
                // What has become certain since something last changed goes on as before.
                pending.advance(&future.plan, time, &mut self.room, &mut self.decisions);
                self.tell(row, k, false);
                pending.end(&mut self.decisions);
                self.tell(row, k, true);
            }
        }
        for (k, future) in section.robust_futures.iter().enumerate() {
            let word = table.layout.places.delayed[k] as usize;
            let reference = table.record(number)[word];
            if let Some(delayed) = table.sides.delayed.get_mut(k, reference) {
                delayed.advance(&future.plan, time, &mut self.delayed_room, &mut self.decisions);
                self.tell(row, section.futures.len() + k, false);
                delayed.end(&mut self.decisions);
                self.tell(row, section.futures.len() + k, true);
            }
        }
    }
}

impl Batch<'_> {
    /// Writes the verdicts that are certain at once, and takes what is pending on to the moments.
    pub(super) fn look_ahead(&mut self, outcomes: &mut [Outcome], times: &[i64]) {
        let Batch { section, rows, counts, .. } = *self;
        let Table { layout, sides, .. } = &mut *self.table;
        let Lanes { records, bits, instances, .. } = &mut *self.lanes;
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
                    // It waits for nothing: what it is copied to begins with what comes.
                    return put(last, row, None);
                }
                let reference = &mut records[word][row];
                let pending = sides.pending.get_or_begin(k, reference, || verdict(last, row));
                let Some(pending) = pending else { return };
                let relations = &sides.relations;
                let asked = future.givens.iter().filter_map(|&(given, relation)| {
                    let word = layout.places.relations[relation as usize] as usize;
                    Some((given, relations.asking(relation as usize, records[word][row])?))
                });
                let bit = |rails: TruthBounds| {
                    let rail = |wire: Wire| (wire.read(words) >> row & 1) as u8;
                    rail(rails.certain) | rail(rails.possible) << 1
                };
                ahead.at.clear();
                ahead.at.extend(future.pasts.iter().map(|past| bit(past.at)));
                let (room, out) = (&mut ahead.room, &mut ahead.decisions);
                let (time, position) = (times[row], records[POSITION][row]);
                match plan.time {
                    TimeModel::Steps | TimeModel::Points => hear(pending, plan, asked, 0),
                    TimeModel::Dense => learn(pending, plan, asked, 0, room, out),
                }
                match plan.time {
                    TimeModel::Steps => pending.step(plan, position, time, &ahead.at, room, out),
                    TimeModel::Points => pending.point(plan, time, &ahead.at, room, out),
                    TimeModel::Dense => {
                        ahead.after.clear();
                        ahead.after.extend(future.pasts.iter().map(|past| bit(past.after)));
                        pending.keep_apart(ahead.every);
                        let tag = if counts { EVENT } else { 0 };
                        pending.moment(plan, (time, tag), (&ahead.at, &ahead.after), room, out);
                    }
                }
                let rests = pending.rests(plan, room);
                ahead.tell(row, k, false);
                put(last, row, rests);
                if rests.is_some() {
                    sides.pending.free(k, std::mem::take(&mut records[word][row]));
                }
            });
        }
    }

    /// Lets time pass, in dense time beyond these times, in points up to them.
    pub(super) fn let_pass(&mut self, times: &[i64]) {
        let (section, rows) = (self.section, self.rows);
        let Table { layout, sides, .. } = &mut *self.table;
        let Lanes { records, bits, .. } = &mut *self.lanes;
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
                for &(_, relation) in &future.givens {
                    let plan = section.relations.get(relation as usize).and_then(|r| r.plan.ask.as_deref());
                    let state = of(relation).and_then(|(k, reference)| sides.relations.get_mut(k, reference));
                    if let Some((ask, state)) = plan.zip(state) {
                        state.pass(ask, now);
                    }
                }
                let Some(pending) = sides.pending.get_mut(k, records[word][row]) else { return };
                let asked = future.givens.iter().filter_map(|&(given, relation)| {
                    let (k, reference) = of(relation)?;
                    Some((given, sides.relations.asking(k, reference)?))
                });
                if dense {
                    learn(pending, &future.plan, asked, 0, &mut ahead.room, &mut ahead.decisions);
                } else {
                    hear(pending, &future.plan, asked, 0);
                }
                pending.advance(&future.plan, now, &mut ahead.room, &mut ahead.decisions);
                let rests = pending.rests(&future.plan, &mut ahead.room);
                ahead.tell(row, k, false);
                put(last, row, rests);
                if rests.is_some() {
                    sides.pending.free(k, std::mem::take(&mut records[word][row]));
                }
            });
        }
    }
}

/// The verdict in a row, if there was one.
pub(super) fn verdict(last: &[Rows], row: usize) -> Option<Verdict> {
    match (last[0] >> row & 1, last[1] >> row & 1) {
        (1, 1) => None,
        (1, _) => Some(Verdict::Satisfied),
        (_, 1) => Some(Verdict::Violated),
        _ => Some(Verdict::Inconclusive),
    }
}

/// Writes the verdicts in a row; there, none.
pub(super) fn put(last: &mut [Rows], row: usize, verdicts: Option<[Verdict; 2]>) {
    for (side, last) in last.chunks_exact_mut(2).enumerate() {
        let [satisfied, violated] = match verdicts.and_then(|verdicts| verdicts.get(side).copied()) {
            None => [1, 1],
            Some(Verdict::Satisfied) => [1, 0],
            Some(Verdict::Violated) => [0, 1],
            Some(Verdict::Inconclusive) => [0, 0],
        };
        last[0] = last[0] & !(1 << row) | satisfied << row;
        last[1] = last[1] & !(1 << row) | violated << row;
    }
}
