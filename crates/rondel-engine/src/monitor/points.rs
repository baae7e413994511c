//! Evaluation of properties without instances at their time points: the events of a block, and in dense time also times
//! between them.

use rondel_event::{Block, Rows, Timestamp};

use super::{Monitor, at, before};
use crate::exec::report::{Report, Withheld, in_order};
use crate::exec::section::Section;
use crate::exec::serial::{ByItself, RowInput, Serial};
use crate::exec::terms::RowValue;
use crate::monitor::term_values::TermValue;

/// Time points of a block: its events, and the times between them at which something changes.
#[derive(Clone, Debug, Default)]
pub(super) struct Grid {
    times: Vec<i64>,
    /// For each time point: row of the first event that is not before it; at the end the number of events.
    next_event: Vec<u8>,
    between: Vec<i64>,
}

impl Grid {
    /// Merges the events at `times`, from the row `first` on, with the changes computed ahead.
    fn fill(&mut self, serial: &Serial, first: usize, times: &[i64]) {
        self.times.clear();
        self.next_event.clear();
        self.between.clear();
        if let Some(&last) = times.last() {
            serial.change_times(last, &mut self.between);
        }
        self.between.sort_unstable();
        self.between.dedup();
        let mut between = self.between.iter().copied().peekable();
        for (row, &time) in (first..).zip(times) {
            while let Some(point) = between.next_if(|&point| point <= time) {
                // An event at the same time already is the time point.
                if point < time {
                    self.times.push(point);
                    self.next_event.push(row as u8);
                }
            }
            self.times.push(time);
            self.next_event.push(row as u8);
        }
        self.next_event.push((first + times.len()) as u8);
    }
}

impl Monitor {
    /// Evaluates a block whose rows are the time points.
    pub(super) fn events(&mut self, i: usize, section: &Section, block: &Block) {
        let (serial, len) = (&mut self.sections[i], block.len() as u32);
        let times = if section.reads_time { &self.times[..len as usize] } else { &[] };
        serial.run(
            section,
            RowInput {
                block,
                start: 0,
                len,
                events: block.rows(),
                times,
                chains: &self.chain_rows,
                lines: &[],
            },
        );
        self.outcomes.clear();
        serial.outcomes_of_events(section, len, self.every, &mut self.outcomes);
        let every = if self.every { block.rows() } else { 0 };
        let (serial, position) = (&self.sections[i], self.position);
        let outcomes = self.outcomes.iter().map(|(formula, outcome)| (*formula, outcome));
        in_order(
            outcomes,
            |_| every,
            block.rows(),
            &mut self.reports,
            |row, formula, outcome| {
                let formula = formula as usize;
                let verdict = outcome.verdict(row);
                Report {
                    property: section.properties[formula],
                    verdict,
                    changed: outcome.changed >> row & 1 == 1,
                    lapsed: false,
                    row: Some(row as u8),
                    step: position + row as u64,
                    at_event: true,
                    time: block.time(row),
                    about: None,
                    after: false,
                    back: 0,
                    robustness: serial.robustness(section, formula, row, 0, verdict),
                    withheld: Withheld::No,
                    key: None,
                    element: None,
                    order: at(row),
                }
            },
        );
        if section.has_levels {
            self.noted.levels(&self.sections[i], section, block.len());
        }
        if !section.terms.is_empty() {
            let values = self.sections[i].terms.drain(..);
            self.noted.terms.extend(values.map(|RowValue { property, row, after, value }| TermValue {
                property,
                step: Some(position + u64::from(row)),
                time: block.time(row.into()),
                after,
                value,
                element: None,
                key: None,
            }));
        }
        self.future_events(i, section, block);
    }

    /// Evaluates a block, and between its events the times at which something changes by time alone.
    pub(super) fn dense(&mut self, i: usize, section: &Section, block: &Block) {
        let len = block.len();
        let mut first = 0;
        while first < len {
            // Simultaneous events are evaluated one after the other: the second may end a truth that held at the first.
            let together = |row: &usize| section.eager.is_some() && self.times[*row] == self.times[*row - 1];
            let end = (first + 1..len).find(together).unwrap_or(len);
            self.dense_rows(i, section, block, first, end);
            first = end;
        }
    }

    /// Like [`Monitor::dense`], for some of the rows.
    fn dense_rows(&mut self, i: usize, section: &Section, block: &Block, first: usize, end: usize) {
        let times = &self.times[first..end];
        let len = times.len() as u32;
        let events = crate::ops::words::low(len.into());
        let (chains, lines) = (&self.chain_rows[..], &self.lines[..]);
        self.sections[i]
            .look_ahead(section, RowInput { block, start: first as u32, len, events, times, chains, lines });
        let mut grid = std::mem::take(&mut self.grid);
        grid.fill(&self.sections[i], first, times);
        // Deadlines set by the rows to come are not known before these are evaluated, but they are at least `shortest`
        // after the first of them.
        let shortest = i64::try_from(section.changes.shortest).unwrap_or(i64::MAX);
        let mut start = 0;
        while start < grid.times.len() {
            let first = grid.times[start];
            let order = before(grid.next_event[start].into());
            let deadline = self.fire(i, section, first, order);
            let limit = first.saturating_add(shortest).min(deadline.unwrap_or(i64::MAX));
            let rest = grid.times[start..].iter().take(Block::CAPACITY);
            let len = rest.take_while(|&&time| time <= limit).count().max(1);
            self.points(
                i,
                section,
                Some(block),
                &grid.times[start..start + len],
                &grid.next_event[start..=start + len],
            );
            start += len;
        }
        self.grid = grid;
    }

    /// Evaluates the deadlines before `time` that were not computed ahead. Returns the next deadline.
    fn fire(&mut self, i: usize, section: &Section, time: i64, order: u32) -> Option<i64> {
        loop {
            let deadline = self.sections[i].next_deadline(section);
            match deadline {
                Some(due) if due < time => self.alone(i, section, due, time, order),
                _ => return deadline,
            }
        }
    }

    /// Evaluates a time point without an event, before the one at `until`.
    pub(super) fn alone(&mut self, i: usize, section: &Section, time: i64, until: i64, order: u32) {
        let (row, before) = ((order / 4) as u8, self.reports.len());
        if section.changes.repeats {
            self.sections[i].count_by_itself(section, time, until);
        }
        self.points(i, section, None, &[time], &[row, row]);
        let quiet = &mut self.sections[i].by_itself.quiet;
        *quiet = if self.reports.len() == before { quiet.saturating_add(1) } else { 0 };
    }

    /// Evaluates time points at these times: rows of a block, or changes by time alone. `next_event` has for each time
    /// point the row of the first event that is not before it, and one more entry; where it does not increase there is
    /// no event.
    fn points(
        &mut self,
        i: usize,
        section: &Section,
        block: Option<&Block>,
        times: &[i64],
        next_event: &[u8],
    ) {
        let len = times.len();
        self.span(i, section, times[0], before(next_event[0].into()));
        let crossing = |row: usize| !self.is_event(next_event, row);
        let crossings = match self.crossings {
            0 => 0,
            _ => crate::ops::columns::rows_where(len as u32, crossing),
        };
        let serial = &mut self.sections[i];
        let (together, events) = masks(serial.time, times, next_event);
        if events != 0 {
            serial.by_itself = ByItself::default();
        }
        let start = next_event[0].into();
        let block = block.unwrap_or(&self.no_event);
        let (chains, lines) = (&self.chain_rows[..], &self.lines[..]);
        serial.run(section, RowInput { block, start, len: len as u32, events, times, chains, lines });
        self.note_terms(i, section, events, times, next_event);
        let serial = &mut self.sections[i];
        for (formula, &property) in section.properties.iter().enumerate() {
            let [now, after] = serial.outcomes(section, formula, len as u32, together);
            let every = if self.every { events & !crossings } else { 0 };
            // Robustness may change at each time point, and on the interval after it.
            let levels = self.every_requested && section.robust[formula].is_some();
            let rows = if levels { crate::ops::words::low(len as u64) } else { 0 };
            let spans = !together >> 1 & rows >> 1;
            if section.has_levels {
                self.noted.dense_levels(serial, section, formula, len, together);
            }
            let mut reported = now.changed | after.changed | every | rows;
            while reported != 0 {
                let row = reported.trailing_zeros() as usize;
                reported &= reported - 1;
                let is_event = events >> row & 1 == 1;
                let next = usize::from(next_event[row]);
                let verdict = now.verdict(row);
                let report = Report {
                    property,
                    verdict,
                    changed: now.changed >> row & 1 == 1,
                    lapsed: false,
                    row: is_event.then_some(next as u8),
                    step: (self.position + next as u64).saturating_sub(u64::from(!is_event)),
                    at_event: is_event,
                    time: Timestamp::from_nanos(times[row]),
                    about: None,
                    after: false,
                    back: 0,
                    robustness: serial.robustness(section, formula, row, 0, verdict),
                    withheld: Withheld::No,
                    key: None,
                    element: None,
                    order: if is_event { at(next) } else { before(next) },
                };
                let moved = levels && serial.note_level(formula, report.robustness);
                if report.changed || every >> row & 1 == 1 || moved {
                    self.reports.push(report);
                }
                let changed = after.changed >> row & 1 == 1;
                if changed || spans >> row & 1 == 1 {
                    // The order that [`Monitor::span`] gives it if this is the last time point of a block.
                    let order = before(next_event[row + 1].into()) + 1;
                    let verdict = after.verdict(row);
                    let robustness = serial.robustness(section, formula, row, 1, verdict);
                    let moved = levels && serial.note_level(formula, robustness);
                    let (row, at_event, after) = (None, false, true);
                    if changed || moved {
                        self.reports.push(Report {
                            verdict,
                            changed,
                            row,
                            at_event,
                            after,
                            robustness,
                            order,
                            ..report
                        });
                    }
                }
            }
        }
        self.future_points(i, section, times, next_event);
    }

    /// Notes the values of terms at these time points; `events` are the rows at which there is an event.
    fn note_terms(&mut self, i: usize, section: &Section, events: Rows, times: &[i64], next_event: &[u8]) {
        if section.terms.is_empty() {
            return;
        }
        let position = self.position;
        let values = self.sections[i].terms.drain(..);
        self.noted.terms.extend(values.map(|RowValue { property, row, after, value }| {
            let row = usize::from(row);
            let is_event = events >> row & 1 == 1 && !after;
            TermValue {
                property,
                step: is_event.then(|| position + u64::from(next_event[row])),
                time: Timestamp::from_nanos(times[row]),
                after,
                value,
                element: None,
                key: None,
            }
        }));
    }

    /// Reports changes on the interval after the last time point, if there is time before the next one at `time`.
    pub(super) fn span(&mut self, i: usize, section: &Section, time: i64, order: u32) {
        let step = self.step_before(order);
        let serial = &mut self.sections[i];
        if time <= serial.time {
            return;
        }
        serial.time_passes(section);
        for (formula, &property) in section.properties.iter().enumerate() {
            let changed = serial.span(formula);
            if section.has_levels {
                self.noted.span_level(serial, section, formula);
            }
            let levels = self.every_requested && section.robust[formula].is_some();
            if changed.is_some() || levels && serial.moves(section, formula) {
                let verdict = changed.unwrap_or_else(|| serial.last_verdict(formula));
                let robustness = serial.robustness(section, formula, serial.last_row(), 1, verdict);
                if levels {
                    serial.note_level(formula, robustness);
                }
                self.reports.push(Report {
                    property,
                    verdict,
                    changed: changed.is_some(),
                    lapsed: false,
                    row: None,
                    step,
                    at_event: false,
                    time: Timestamp::from_nanos(serial.time),
                    about: None,
                    after: true,
                    back: 0,
                    robustness,
                    withheld: Withheld::No,
                    key: None,
                    element: None,
                    order: order + 1,
                });
            }
        }
    }
}

/// Returns the rows whose time point is at the same time as the one before, which was at `before` for the first row, and
/// the rows at which there is an event.
#[inline]
fn masks(before: i64, times: &[i64], next_event: &[u8]) -> (Rows, Rows) {
    let mut together = Rows::from(times[0] == before);
    let mut events = 0;
    for row in 0..times.len() {
        events |= Rows::from(next_event[row] != next_event[row + 1]) << row;
        if row > 0 {
            together |= Rows::from(times[row - 1] == times[row]) << row;
        }
    }
    (together, events)
}
