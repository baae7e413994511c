//! Batches: rows that are time points of different instances, evaluated on their gathered records.

use rondel_event::{Block, Rows};
use rondel_spec::TimeModel;

use crate::exec::report::Outcome;
use crate::exec::run::Step;
use crate::exec::section::{self, Deadline, Section};
use crate::exec::state::Registers;
use crate::exec::terms::{self, EvaluatedRows, RowValue};
use crate::ir::premise::Unexercised;
use crate::ir::truth::TruthBounds;
use crate::keyed::ahead::Ahead;
use crate::keyed::gather::{GatherBuffers, Words};
use crate::keyed::heap::InstanceHeap;
use crate::keyed::keys::{KeyPlan, Keys, for_each};
use crate::keyed::parallel::ParallelFrame;
use crate::keyed::record::{BITS, FREE, POSITION, UNPLANNED};
use crate::keyed::robust::Measured;
use crate::keyed::table::{TEMPLATE, Table};
use crate::ops::once;
use crate::ops::rows::RowView;
use crate::ops::timed::RowTimes;

/// Context of the evaluation of a batch.
pub(crate) struct Batch<'a> {
    pub(crate) section: &'a Section,
    pub(crate) block: &'a Block,
    /// Times of the rows of the block; empty if no operator reads them.
    pub(crate) times: &'a [i64],
    /// Inputs from outside the section.
    pub(crate) inputs: &'a [Rows],
    /// Rows of the batch; no two have the same instance.
    pub(crate) rows: Rows,
    /// Whether the rows are events.
    pub(crate) counts: bool,
    /// Keys of the rows if they are events; otherwise the table has them.
    pub(crate) keys: Option<&'a Keys>,
    pub(crate) plan: &'a KeyPlan,
    pub(crate) table: &'a mut Table,
    pub(crate) gathered: &'a mut GatherBuffers,
    pub(crate) registers: &'a mut Registers,
    /// Least and greatest possible robustness of every past property; empty if none has robustness.
    pub(crate) margins: &'a mut [Measured],
    pub(crate) ahead: &'a mut Ahead,
    pub(crate) unexercised: &'a mut Unexercised,
    /// Values of terms.
    pub(crate) terms: &'a mut Vec<RowValue>,
}

/// Maximum number of rows for which open intervals are processed one by one.
const FEW: u32 = 16;

impl Batch<'_> {
    /// Evaluates the rows and writes the verdicts in them, leaving other rows unchanged. Calls `plan` with
    /// the time and number of each instance that will change by time alone sooner than scheduled.
    pub(crate) fn run(mut self, outcomes: &mut [Outcome], plan: impl FnMut(i64, u32)) {
        let (section, rows) = (self.section, self.rows);
        let len = Rows::BITS - rows.leading_zeros();
        if len == 0 {
            return;
        }
        self.gathered.gather(self.table, rows);
        let times = if self.times.is_empty() { self.times } else { &self.times[..len as usize] };
        let row_times = RowTimes { times, before: 0 };
        // Stateless instructions are evaluated on the rows of the block.
        let all = Rows::MAX;
        let view =
            RowView { block: self.block, start: 0, events: all, len, rows: all, position: 0, row_times };
        let mut frame = ParallelFrame {
            step: Step { section, view, chains: &[], lines: &[] },
            rows,
            inputs: self.inputs,
            events: self.counts,
            layout: &self.table.layout,
            words: &mut self.registers.words,
            seconds: &mut self.registers.seconds,
            machine_rows: &mut self.registers.machines,
            columns: &mut self.registers.columns,
            records: &mut self.gathered.records,
            bits: &mut self.gathered.bits,
            heap: &mut self.table.heap,
            plan: self.plan,
            keys: self.keys,
            table_keys: &self.table.keys,
            instances: &self.gathered.instances,
        };
        let instructions = &section.instructions[section.constant..];
        for (i, instruction) in (section.constant..).zip(instructions) {
            frame.words[i] = frame.evaluate(instruction);
        }
        if !section.terms.is_empty() {
            let has_spans = section.time_points == section::TimePoints::Dense;
            let evaluated = EvaluatedRows {
                words: frame.words,
                columns: frame.columns,
                block: self.block,
                buffers: &frame.heap.values.buffers,
            };
            terms::note(&section.terms, has_spans, evaluated, rows, self.terms);
        }
        for instruction in &section.keeps_text {
            frame.keep_text(instruction);
        }
        self.write_verdicts(outcomes);
        if !self.unexercised.is_empty() {
            self.check_premises();
        }
        self.measure();
        if !section.futures.is_empty() {
            self.step_futures(outcomes, times);
        }
        if !section.robust_futures.is_empty() {
            self.step_robust_futures(times);
        }
        let records = &mut self.gathered.records;
        // Passing time is no event.
        if self.counts {
            for_each(rows, |row| {
                let position = &mut records[POSITION][row];
                // The maximum marks free records.
                *position = position.saturating_add(1).min(FREE - 1);
            });
        }
        if let Some(word) = self.table.layout.places.time {
            for (last, time) in records[word as usize].iter_mut().zip(times) {
                *last = *time as u64;
            }
        }
        self.schedule_changes(times, plan);
        self.gathered.scatter(self.table, rows);
    }

    /// Writes the verdicts.
    fn write_verdicts(&mut self, outcomes: &mut [Outcome]) {
        let rows = self.rows;
        let words = &self.registers.words;
        let bits_of = |bounds: TruthBounds| [bounds.certain.read(words), !bounds.possible.read(words)];
        let dense = self.section.time_points == section::TimePoints::Dense;
        let verdicts = self.table.layout.places.verdicts as usize;
        let last = self.gathered.bits[verdicts..].chunks_exact_mut(if dense { 4 } else { 2 });
        let formulas = &self.section.formulas[..self.section.properties.len()];
        for ((last, truth), outcome) in last.zip(formulas).zip(outcomes) {
            // In dense time the last verdict is that of the preceding open interval, which has been emitted.
            let now = bits_of(truth.at);
            write(outcome, rows, now, [last[0], last[1]]);
            last[..2].copy_from_slice(&now);
            if dense {
                last[2..].copy_from_slice(&bits_of(truth.after));
            }
        }
    }

    /// Looks for the premises in the rows of the batch except the template's, which is no instance. An open
    /// interval counts as soon as it begins.
    #[cold]
    fn check_premises(&mut self) {
        let mut rows = self.rows;
        for_each(self.rows, |row| rows &= !(Rows::from(self.gathered.instances[row] == TEMPLATE) << row));
        let words = &self.registers.words;
        self.unexercised.look(&self.section.premises, [rows; 2], |wire| wire.read(words));
    }

    /// Continues to the open intervals after the last time points of the instances, now that time has passed
    /// beyond these.
    pub(crate) fn run_spans(mut self, outcomes: &mut [Outcome], plan: impl FnMut(i64, u32)) {
        if self.rows == 0 {
            return;
        }
        if self.rows.count_ones() <= FEW && self.is_timeless() && self.margins.is_empty() {
            self.run_few_spans(outcomes);
            return;
        }
        self.gathered.gather(self.table, self.rows);
        if self.section.time_points == section::TimePoints::Dense {
            let verdicts = self.table.layout.places.verdicts as usize;
            let last = self.gathered.bits[verdicts..].chunks_exact_mut(4);
            for (last, outcome) in last.zip(outcomes) {
                write(outcome, self.rows, [last[2], last[3]], [last[0], last[1]]);
                last.copy_within(2.., 0);
            }
            self.measure_spans();
        } else {
            outcomes.iter_mut().for_each(|outcome| outcome.changed &= !self.rows);
            outcomes.iter_mut().for_each(|outcome| outcome.lapsed &= !self.rows);
        }
        self.advance_futures(self.times);
        self.advance_robust_futures(self.times);
        self.schedule_changes(self.times, plan);
        self.gathered.scatter(self.table, self.rows);
    }

    /// Continues to the open intervals where nothing but the verdicts can differ on them: the few bits
    /// concerned are read and written in place.
    fn run_few_spans(self, outcomes: &mut [Outcome]) {
        let Batch { rows, table, gathered, .. } = self;
        let first = 64 * BITS + table.layout.places.verdicts as usize;
        for outcome in &mut *outcomes {
            outcome.satisfied &= !rows;
            outcome.violated &= !rows;
            outcome.changed &= !rows;
            outcome.lapsed &= !rows;
        }
        for_each(rows, |row| {
            let record = table.record_mut(gathered.instances[row]);
            for (i, outcome) in outcomes.iter_mut().enumerate() {
                let places = [0, 1, 2, 3].map(|bit| first + 4 * i + bit);
                let [satisfied, violated, now_satisfied, now_violated] =
                    places.map(|bit| record[bit / 64] >> (bit % 64) & 1);
                let changed = [satisfied ^ now_satisfied, violated ^ now_violated];
                for (bit, changed) in places.into_iter().zip(changed) {
                    record[bit / 64] ^= changed << (bit % 64);
                }
                outcome.satisfied |= now_satisfied << row;
                outcome.violated |= now_violated << row;
                outcome.changed |= (changed[0] | changed[1]) << row;
                let lapsed = !(now_satisfied | now_violated) & (satisfied ^ violated) & 1;
                outcome.lapsed |= lapsed << row;
            }
        });
    }

    /// Whether nothing changes by time alone, except that an open interval follows a time point.
    fn is_timeless(&self) -> bool {
        let Section { time_points, changes, futures, robust_futures, .. } = self.section;
        *time_points == section::TimePoints::Dense
            && changes.deadlines.is_empty()
            && futures.is_empty()
            && robust_futures.is_empty()
    }

    fn schedule_changes(&mut self, times: &[i64], mut plan: impl FnMut(i64, u32)) {
        let places = &self.table.layout.places;
        let Some(planned) = places.planned else { return };
        let is_timeless = self.is_timeless();
        let moving = if self.ahead.every { self.moving() } else { 0 };
        let verdicts = places.verdicts as usize;
        let GatherBuffers { records, bits, instances, .. } = &mut *self.gathered;
        let InstanceHeap { pools, relations, pending, delayed, .. } = &self.table.heap;
        let dense = self.section.time_points == section::TimePoints::Dense;
        let count = if dense { 4 * self.section.all_properties().count() } else { 0 };
        let last = &bits[verdicts..verdicts + count];
        let spans =
            last.chunks_exact(4).fold(moving, |rows, last| rows | last[0] ^ last[2] | last[1] ^ last[3]);
        // In points nothing of the past changes between events.
        let deadlines = if dense { &self.section.changes.deadlines[..] } else { &[] };
        let rows = if is_timeless { self.rows & spans } else { self.rows };
        for_each(rows, |row| {
            let now = times[row];
            let of = |words: &[u32], k: usize, records: &[Words]| records[words[k] as usize][row];
            let next = |deadline: &Deadline| match *deadline {
                Deadline::Recently(state) => {
                    let at = places.timed_recently[state as usize];
                    let open = bits[at.open as usize] >> row & 1 == 1;
                    once::next_change(records[at.until as usize][row] as i64, open, now)
                }
                Deadline::Since(state) => {
                    let reference = records[places.pools.timed_since[state as usize] as usize][row];
                    pools.timed_since.get(reference).and_then(|since| since.next_change(now))
                }
                Deadline::Window(window) => {
                    let reference = records[places.pools.windows[window as usize] as usize][row];
                    pools.windows.get(reference).and_then(|window| window.next_change())
                }
                Deadline::Robust(state) => {
                    let reference = records[places.pools.robust_dense[state as usize] as usize][row];
                    pools.robust_dense.get(reference).and_then(|since| since.next_change())
                }
                Deadline::Relation(relation) => {
                    let k = relation as usize;
                    relations.next_change(k, of(&places.relations, k, records), &self.section.relations[k])
                }
                // Only properties without `for each` have these.
                Deadline::Lasting(_) => None,
                Deadline::Machine(machine) => {
                    let reference = records[places.pools.machines[machine as usize] as usize][row];
                    let plan = &self.section.machines[machine as usize];
                    pools.machines.get(reference).and_then(|machine| machine.next_change(plan, now))
                }
            };
            let past = deadlines.iter().filter_map(next).min();
            if let Some(word) = places.past {
                records[word as usize][row] = past.unwrap_or(UNPLANNED) as u64;
            }
            let pending = self.section.futures.iter().enumerate().filter_map(|(k, future)| {
                pending.get(k, of(&places.pending, k, records))?.deadline(&future.plan)
            });
            let delayed = self.section.robust_futures.iter().enumerate().filter_map(|(k, future)| {
                delayed.get(k, of(&places.delayed, k, records))?.deadline(&future.plan)
            });
            let due_obligations = self.section.relations.iter().enumerate().filter_map(|(k, relation)| {
                let obligations = relations.obligations(k, of(&places.relations, k, records));
                obligations.filter(|_| relation.model != TimeModel::Steps)?.deadline()
            });
            let next = past.into_iter().chain(pending).chain(delayed).chain(due_obligations).min();
            let next = if spans >> row & 1 == 1 { Some(now) } else { next };
            let planned = &mut records[planned as usize][row];
            if let Some(next) = next.filter(|next| *next < *planned as i64) {
                *planned = next as u64;
                plan(next, instances[row]);
            }
        });
    }
}

/// Writes the verdicts in some rows, given the previous ones.
pub(super) fn write(outcome: &mut Outcome, rows: Rows, [satisfied, violated]: [Rows; 2], last: [Rows; 2]) {
    let changed = satisfied ^ last[0] | violated ^ last[1];
    outcome.satisfied = outcome.satisfied & !rows | satisfied & rows;
    outcome.violated = outcome.violated & !rows | violated & rows;
    outcome.changed = outcome.changed & !rows | changed & rows;
    // Before the first verdict of an instance both bits are set.
    let lapsed = !(satisfied | violated) & (last[0] ^ last[1]);
    outcome.lapsed = outcome.lapsed & !rows | lapsed & rows;
}
