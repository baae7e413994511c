//! Properties with future operators, at the time points of their section.

use std::ops::Range;

use rondel_event::{Block, Rows, Timestamp};
use rondel_spec::TimeModel;

use super::{Monitor, at, before};
use crate::exec::report::Report;
use crate::exec::section::Section;
use crate::exec::serial::Serial;
use crate::exec::state::State;
use crate::future::{Decision, EventRows, Future, Levels, Room, Scratch, Survey};
use crate::relation::obligations::Obligations;
use crate::relation::resolve::{resolve, resolve_dense};

/// Tag of a time point that is an event.
const EVENT: i64 = 1;

/// Scratch space for properties with future operators; nothing in it outlives a call.
#[derive(Clone, Debug, Default)]
pub(super) struct FutureBuffers {
    /// Truth bounds of each past in the rows of a block.
    words: Vec<[Rows; 2]>,
    /// Pasts at a time point, and on the open interval after it.
    pasts: (Vec<u8>, Vec<u8>),
    room: Scratch,
    levels: [Vec<Levels>; 2],
    delayed_room: Room,
    decisions: Vec<Decision>,
}

impl Monitor {
    /// Passes the events of an evaluated block to the future operators.
    pub(super) fn future_events(&mut self, i: usize, section: &Section, block: &Block) {
        for (k, future) in section.futures.iter().enumerate() {
            let serial = &self.sections[i];
            self.ahead.words.clear();
            self.ahead.words.extend(future.pasts.iter().map(|past| serial.words(past.at)));
            let survey = Survey::new(&future.plan, &self.ahead.words, &mut self.ahead.room);
            let mut first = 0;
            while first < block.len() {
                resolve_at_row(section, &mut self.sections[i], k, future, first);
                let times = &self.times[..block.len()];
                let events = EventRows { position: self.position, times, pasts: &self.ahead.words };
                let pending = &mut self.sections[i].pending[k];
                let count = pending.take(
                    &future.plan,
                    events,
                    first,
                    survey,
                    &mut self.ahead.room,
                    &mut self.ahead.decisions,
                );
                self.report_at_rows(future.property, future.plan.time, block, first..first + count);
                first += count;
            }
        }
        self.robust_events(i, section, block);
    }

    /// Like [`Monitor::future_events`], for properties with robustness.
    fn robust_events(&mut self, i: usize, section: &Section, block: &Block) {
        for (k, future) in section.robust_futures.iter().enumerate() {
            for row in 0..block.len() {
                let serial = &mut self.sections[i];
                let at = &mut self.ahead.levels[0];
                at.clear();
                at.extend(future.pasts.iter().map(|(truth, margin)| serial.levels(truth, margin, row, 0)));
                let (position, time) = (self.position.saturating_add(row as u64), self.times[row]);
                let (room, decisions) = (&mut self.ahead.delayed_room, &mut self.ahead.decisions);
                serial.delayed[k].event(&future.plan, position, time, at, room, decisions);
                self.report_at_rows(future.property, future.plan.time, block, row..row + 1);
            }
        }
    }

    /// Reports decisions made at some rows. A decision about the present applies to all of them.
    fn report_at_rows(&mut self, property: u32, model: TimeModel, block: &Block, rows: Range<usize>) {
        for decision in self.ahead.decisions.drain(..) {
            self.noted.level(property, decision.robustness);
            let own = decision.from == decision.certain;
            for row in if own { rows.clone() } else { rows.start..rows.start + 1 } {
                let changed = decision.changed && row == rows.start;
                if changed || self.every {
                    self.reports.push(Report {
                        property,
                        verdict: decision.verdict,
                        changed,
                        lapsed: false,
                        row: Some(row as u8),
                        step: self.position + row as u64,
                        at_event: true,
                        time: block.time(row),
                        about: about(&decision, model),
                        after: false,
                        back: decision.steps_back(model),
                        robustness: decision.robustness,
                        withheld: crate::exec::report::Withheld::No,
                        key: None,
                        element: None,
                        order: at(row),
                    });
                }
            }
        }
    }

    /// Passes evaluated time points of dense time to the future operators.
    pub(super) fn future_points(&mut self, i: usize, section: &Section, times: &[i64], next_event: &[u8]) {
        for (k, future) in section.futures.iter().enumerate() {
            for (n, &time) in times.iter().enumerate() {
                let is_event = self.is_event(next_event, n);
                let point = Some((time, is_event, next_event[n].into()));
                let earlier = self.resolve_dense(i, section, k, future, n);
                if earlier {
                    self.report_decisions(future.property, TimeModel::Dense, point);
                }
                let serial = &mut self.sections[i];
                let (mut at, mut after) = std::mem::take(&mut self.ahead.pasts);
                at.clear();
                after.clear();
                let bits = |words: [u64; 2]| (words[0] >> n & 1 | (words[1] >> n & 1) << 1) as u8;
                at.extend(future.pasts.iter().map(|past| bits(serial.words(past.at))));
                after.extend(future.pasts.iter().map(|past| bits(serial.words(past.after))));
                let tag = if is_event { EVENT } else { 0 };
                let (scratch, decisions) = (&mut self.ahead.room, &mut self.ahead.decisions);
                serial.pending[k].dense_point(&future.plan, time, tag, [&at, &after], scratch, decisions);
                self.ahead.pasts = (at, after);
                self.report_decisions(future.property, TimeModel::Dense, point);
            }
        }
        for (k, future) in section.robust_futures.iter().enumerate() {
            for (n, &time) in times.iter().enumerate() {
                let is_event = self.is_event(next_event, n);
                let serial = &mut self.sections[i];
                for (half, levels) in self.ahead.levels.iter_mut().enumerate() {
                    levels.clear();
                    levels.extend(
                        future.pasts.iter().map(|(truth, margin)| serial.levels(truth, margin, n, half)),
                    );
                }
                let tag = if is_event { EVENT } else { 0 };
                let (room, decisions) = (&mut self.ahead.delayed_room, &mut self.ahead.decisions);
                let halves = self.ahead.levels.each_ref().map(|levels| &levels[..]);
                serial.delayed[k].dense_point(&future.plan, time, tag, halves, room, decisions);
                let point = Some((time, is_event, next_event[n].into()));
                self.report_decisions(future.property, TimeModel::Dense, point);
            }
        }
    }

    /// Whether a time point is an event, as opposed to a deadline or a crossing of interpolated numbers.
    pub(super) fn is_event(&self, next_event: &[u8], n: usize) -> bool {
        let row = u32::from(next_event[n]);
        next_event[n] != next_event[n + 1] && self.crossings.checked_shr(row).unwrap_or(0) & 1 == 0
    }

    /// Advances the future operators to just before `now`.
    pub(super) fn future_until(&mut self, i: usize, section: &Section, now: i64) {
        for (k, future) in section.futures.iter().enumerate() {
            if future.plan.time == TimeModel::Steps {
                continue;
            }
            let serial = &mut self.sections[i];
            for &(_, relation) in &future.externals {
                let plan =
                    section.relations.get(relation as usize).and_then(|r| r.plan.obligation.as_deref());
                let state = serial.state.relations.get_mut(relation as usize);
                if let Some((ask, state)) = plan.zip(state) {
                    state.pass(ask, now);
                }
            }
            if future.plan.time == TimeModel::Dense {
                self.resolve_dense(i, section, k, future, 0);
            } else {
                resolve_at_row(section, serial, k, future, 0);
            }
            let pending = &mut self.sections[i].pending[k];
            pending.advance(&future.plan, now, &mut self.ahead.room, &mut self.ahead.decisions);
            self.report_decisions(future.property, future.plan.time, None);
        }
        for (k, future) in section.robust_futures.iter().enumerate() {
            let delayed = &mut self.sections[i].delayed[k];
            delayed.advance(&future.plan, now, &mut self.ahead.delayed_room, &mut self.ahead.decisions);
            self.report_decisions(future.property, future.plan.time, None);
        }
    }

    /// Resolves obligations in dense time that relations have decided by the time point in a row. Returns whether any
    /// decision falls before that time point.
    fn resolve_dense(&mut self, i: usize, section: &Section, k: usize, future: &Future, row: usize) -> bool {
        if !future.externals.is_empty() {
            let Serial { state, pending, .. } = &mut self.sections[i];
            let obligations = obligations(section, state, future);
            resolve_dense(
                &mut pending[k],
                &future.plan,
                obligations,
                row,
                &mut self.ahead.room,
                &mut self.ahead.decisions,
            );
        }
        !self.ahead.decisions.is_empty()
    }

    /// Ends the trace: pending time points become inconclusive.
    pub(super) fn future_end(&mut self, i: usize, section: &Section) {
        let first = self.reports.len();
        for (k, future) in section.futures.iter().enumerate() {
            self.sections[i].pending[k].end(&mut self.ahead.decisions);
            self.report_decisions(future.property, future.plan.time, None);
        }
        for (k, future) in section.robust_futures.iter().enumerate() {
            self.sections[i].delayed[k].end(&mut self.ahead.decisions);
            self.report_decisions(future.property, future.plan.time, None);
        }
        for report in &mut self.reports[first..] {
            report.time = Timestamp::from_nanos(self.time);
        }
    }

    /// Reports decisions by time alone up to a time point, and those made at it. `point` is its time, whether it is an
    /// event, and the row of that or the next event.
    fn report_decisions(&mut self, property: u32, model: TimeModel, point: Option<(i64, bool, usize)>) {
        let mut decisions = std::mem::take(&mut self.ahead.decisions);
        for decision in decisions.drain(..) {
            self.noted.level(property, decision.robustness);
            let is_event = model != TimeModel::Dense
                || decision.is_instant() && decision.is_fresh && decision.tag == EVENT;
            let is_requested = self.every && (is_event || decision.moved);
            if !(decision.changed || is_requested) {
                continue;
            }
            let time = decision.certain_time(model);
            let (row, order) = match point {
                Some((now, true, row)) if time >= now => (Some(row), at(row)),
                Some((.., row)) => (None, before(row)),
                None => (None, 0),
            };
            self.reports.push(Report {
                property,
                verdict: decision.verdict,
                changed: decision.changed,
                lapsed: false,
                row: row.map(|row| row as u8),
                step: row.map_or(self.step_before(order), |row| self.position + row as u64),
                at_event: row.is_some(),
                time: Timestamp::from_nanos(time),
                about: about(&decision, model),
                after: decision.is_after(model),
                back: decision.steps_back(model),
                robustness: decision.robustness,
                withheld: crate::exec::report::Withheld::No,
                key: None,
                element: None,
                order,
            });
        }
        self.ahead.decisions = decisions;
    }
}

/// Obligations of relation tuples that a property refers to, with the numbers of its operands.
fn obligations<'a>(
    section: &'a Section,
    state: &'a State,
    future: &'a Future,
) -> impl Iterator<Item = (u32, &'a Obligations)> {
    let of = |relation: u32| {
        section.relations.get(relation as usize)?;
        state.relations.get(relation as usize)?.obligations()
    };
    future.externals.iter().filter_map(move |&(external, relation)| Some((external, of(relation)?)))
}

/// Resolves obligations that relations have decided by the event in a row, in discrete or point-based time.
fn resolve_at_row(section: &Section, serial: &mut Serial, k: usize, future: &Future, row: usize) {
    let Serial { state, pending, .. } = serial;
    resolve(&mut pending[k], &future.plan, obligations(section, state, future), row);
}

/// Time that a decision is about, if it differs from the time of the decision.
fn about(decision: &Decision, model: TimeModel) -> Option<Timestamp> {
    (decision.from != decision.certain).then(|| Timestamp::from_nanos(decision.about_time(model)))
}
