//! Evaluation of a section over consecutive rows: state, registers and verdicts.

mod saved;
mod transfer;

use std::sync::Arc;

use rondel_event::{Block, Rows, Slot, Verdict};

use crate::chain::ChainRows;
use crate::exec::inner::Inner;
use crate::exec::report::Outcome;
use crate::exec::run::{Frame, Step};
use crate::exec::section::{self, Deadline, Margin, Section};
use crate::exec::specialised::{Specialised, can_specialise, specialise};
use crate::exec::state::{Registers, State, ValueState};
use crate::exec::terms::{self, EvaluatedRows, RowValue};
use crate::exec::values;
use crate::future::{Delayed, Levels, Pending};
use crate::ir::premise::Unexercised;
use crate::ir::truth::{Truth, TruthBounds};
use crate::linear::LineRows;
use crate::machine::leap::{self, Request};
use crate::machine::{MachinePlan, MachineState};
use crate::ops::delay::Delay;
use crate::ops::once;
use crate::ops::ranges::Ranges;
use crate::ops::rows::RowView;
use crate::ops::since::{TimedSince, robust};
use crate::ops::timed::RowTimes;
use crate::ops::varying::Varying;
use crate::ops::window::Window;
use crate::ops::words;
use crate::relation::state::RelationState;

pub(crate) use saved::SavedSerial;
pub(crate) use transfer::StateTransfer;

/// State of a section after the time points so far, and its registers.
#[derive(Clone, Debug)]
pub(crate) struct Serial {
    pub(crate) state: State,
    /// State of the eager section, with its ranges.
    eager: Option<Box<Serial>>,
    registers: Registers,
    /// Number of time points so far.
    position: u64,
    /// Time of the last time point; the minimum before the first.
    pub(crate) time: i64,
    last_row: u32,
    /// Last verdict of each property: satisfied and violated as 0 or 1. Both are 1 before the first, which
    /// equals no verdict.
    last: Vec<[u64; 2]>,
    /// The verdicts on the interval after the last time point, which may turn out to be empty.
    last_after: Vec<[u64; 2]>,
    /// Last emitted robustness of each property; used where every change is reported.
    levels: Vec<Option<f64>>,
    /// Pending obligations of the properties with future operators.
    pub(crate) pending: Vec<Pending>,
    /// The same for properties with robustness.
    pub(crate) delayed: Vec<Delayed>,
    /// Instances of the quantified formulas that are evaluated by value.
    inner: Vec<Box<dyn Inner>>,
    /// Specialised form of the section, while every field that it assumes known has a value.
    pub(crate) specialised: Option<Arc<Specialised>>,
    /// Number of blocks until the next specialisation, and the pause after it; 0 is never.
    pauses: [u64; 2],
    /// Fields that a specialisation assumed to be known and that lost their value.
    refuted: Vec<Slot>,
    pub(crate) unexercised: Unexercised,
    /// Time points that machines caused since the last event.
    pub(crate) by_itself: ByItself,
    /// Values of terms in the rows of the last evaluation.
    pub(crate) terms: Vec<RowValue>,
}

/// Consecutive time points caused by machines, without an event.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct ByItself {
    steps: u32,
    /// Number of the last of them without a report.
    pub(crate) quiet: u32,
}

/// Rows of a block to evaluate, each a time point.
#[derive(Clone, Copy)]
pub(crate) struct RowInput<'a> {
    pub(crate) block: &'a Block,
    /// First row.
    pub(crate) start: u32,
    /// Number of rows, at least 1.
    pub(crate) len: u32,
    /// Rows that are events, in the order of the block. The others are time points between events.
    pub(crate) events: Rows,
    /// Times, non-decreasing; empty if no instruction reads them.
    pub(crate) times: &'a [i64],
    /// Measurements of chains after each row of the block.
    pub(crate) chains: &'a [ChainRows],
    /// Signs of the linear forms in each row of the block.
    pub(crate) lines: &'a [LineRows],
}

impl Serial {
    /// Whether a time point has been evaluated.
    pub(crate) fn has_begun(&self) -> bool {
        self.position > 0
    }

    /// The state before the first time point.
    pub(crate) fn new(section: &Section, no_block: &Block) -> Serial {
        let mut serial = Serial {
            state: section.initial.clone(),
            eager: section.eager.as_ref().map(|eager| Box::new(Serial::new(eager, no_block))),
            registers: section.registers.registers(),
            position: 0,
            time: i64::MIN,
            last_row: 0,
            last: vec![[1, 1]; section.formulas.len()],
            last_after: vec![[1, 1]; section.formulas.len()],
            levels: vec![None; section.robust.len()],
            pending: section
                .futures
                .iter()
                .map(|future| Pending::new(&future.plan, Pending::LIMIT))
                .collect(),
            delayed: section
                .robust_futures
                .iter()
                .map(|future| Delayed::new(&future.plan, Pending::LIMIT))
                .collect(),
            inner: section.inner.iter().map(|plan| plan.start(no_block)).collect(),
            specialised: None,
            pauses: if can_specialise(section) { [Serial::FIRST_PAUSE; 2] } else { [0; 2] },
            refuted: Vec::new(),
            unexercised: Unexercised::all(section.premises.len()),
            by_itself: ByItself::default(),
            terms: Vec::new(),
        };
        // Constants read no block and are computed for all rows, once for all blocks.
        let step = Step {
            section,
            view: RowView {
                block: no_block,
                start: 0,
                events: Rows::MAX,
                len: Block::CAPACITY as u32,
                rows: Rows::MAX,
                position: 0,
                row_times: RowTimes { times: &[], before: 0 },
            },
            chains: &[],
            lines: &[],
        };
        let constant = &section.instructions[..section.constant];
        Frame::new(step, &mut serial.state, &mut serial.inner, &mut serial.registers).run(constant, 0);
        serial
    }

    /// Number of blocks before the first specialisation; later pauses grow by a factor of four. Specialising
    /// takes as long as ten blocks, and lower and upper truths mostly become equal early.
    const FIRST_PAUSE: u64 = 2;

    /// Specialises the section when it is due, and reverts to the whole section if a block lacks a value that
    /// was assumed.
    #[inline]
    fn specialise(&mut self, section: &Section, block: &Block) {
        if let Some(specialised) = self.specialised.take_if(|specialised| !specialised.holds_in(block)) {
            specialised.complete(&mut self.state);
            specialised.note_refuted(block, &mut self.refuted);
            self.pauses = [Serial::FIRST_PAUSE; 2];
        } else if self.pauses[0] > 0 {
            self.pauses[0] -= 1;
            if self.pauses[0] == 0 {
                self.specialise_now(section, block);
            }
        }
    }

    #[cold]
    fn specialise_now(&mut self, section: &Section, block: &Block) {
        if let Some(specialised) = self.specialised.take() {
            specialised.complete(&mut self.state);
        }
        let specialised = specialise(section, &mut self.state, &self.refuted);
        self.pauses = [self.pauses[1].saturating_mul(4); 2];
        if specialised.holds_in(block) {
            if !specialised.is_partial {
                self.pauses = [0; 2];
            }
            self.specialised = Some(Arc::new(specialised));
        } else {
            specialised.complete(&mut self.state);
            specialised.note_refuted(block, &mut self.refuted);
        }
    }

    /// The registers, with their constants.
    pub(crate) fn into_registers(self) -> Registers {
        self.registers
    }

    /// Evaluates all instructions in these rows.
    pub(crate) fn run(&mut self, section: &Section, input: RowInput<'_>) {
        let RowInput { block, start, len, events, times, chains, lines } = input;
        self.specialise(section, block);
        let instructions = match &self.specialised {
            None => &section.instructions[section.constant..],
            Some(specialised) => &specialised.instructions,
        };
        let view = RowView {
            block,
            start,
            events,
            len,
            rows: words::low(len.into()),
            position: self.position,
            row_times: RowTimes { times, before: self.time },
        };
        let step = Step { section, view, chains, lines };
        Frame::new(step, &mut self.state, &mut self.inner, &mut self.registers)
            .run(instructions, section.constant);
        if !section.terms.is_empty() {
            let evaluated = EvaluatedRows {
                words: &self.registers.words,
                columns: &self.registers.columns,
                block,
                buffers: &self.state.values.buffers,
            };
            let has_spans = section.time_points == section::TimePoints::Dense;
            self.terms.clear();
            terms::note(&section.terms, has_spans, evaluated, view.rows, &mut self.terms);
        }
        // A column refers to buffers of earlier columns only. In descending order, no buffer is overwritten
        // before it is copied.
        for &instruction in &section.keeps_text {
            values::keep_text(instruction, view, &self.registers.columns, &mut self.state.values);
        }
        if !self.unexercised.is_empty() {
            self.look_for_premises(section, len, times);
        }
        self.position = self.position.saturating_add(len.into());
        self.last_row = len.saturating_sub(1);
        if let Some(&last) = times.last() {
            self.time = last;
        }
    }

    /// Looks for premises that are certainly true in the evaluated rows, and in the intervals before the last
    /// of them.
    #[cold]
    fn look_for_premises(&mut self, section: &Section, len: u32, times: &[i64]) {
        let after = match section.time_points {
            section::TimePoints::Events => 0,
            section::TimePoints::Dense => times
                .windows(2)
                .enumerate()
                .fold(0, |rows, (row, pair)| rows | Rows::from(pair[0] < pair[1]) << row),
        };
        self.look_at(section, [words::low(len.into()), after]);
    }

    /// Looks for premises in the interval after the last time point, now that it is known not to be empty.
    #[cold]
    fn look_in_span(&mut self, section: &Section) {
        if self.position > 0 {
            self.look_at(section, [0, 1 << self.last_row]);
        }
    }

    fn look_at(&mut self, section: &Section, rows: [Rows; 2]) {
        let (words, specialised) = (&self.registers.words, &self.specialised);
        let found = |wire| specialised.as_ref().map_or(wire, |specialised| specialised.wire(wire));
        self.unexercised.look(&section.premises, rows, |wire| found(wire).read(words));
    }

    /// Notes that time has passed since the last time point.
    #[inline(always)]
    pub(crate) fn time_passes(&mut self, section: &Section) {
        if !self.unexercised.is_empty() {
            self.look_in_span(section);
        }
    }

    /// Appends verdicts in the last `len` evaluated rows, with indexes of the properties: those that have
    /// changed, or `all`.
    #[inline]
    pub(crate) fn outcomes_of_events(
        &mut self,
        section: &Section,
        len: u32,
        all: bool,
        out: &mut Vec<(u32, Outcome)>,
    ) {
        let rows = words::low(len.into());
        let words = &self.registers.words[..];
        let formulas =
            self.specialised.as_ref().map_or(&section.formulas, |specialised| &specialised.formulas);
        for (formula, (truth, last)) in formulas.iter().zip(&mut self.last).enumerate() {
            let TruthBounds { certain, possible } = truth.at;
            let satisfied = certain.read(words) & rows;
            let moved = satisfied ^ (satisfied << 1 | last[0]);
            // Most truths are two-valued. Reading their other word would cost a cache miss, and violated is
            // the complement of satisfied.
            let (violated, changed) = if certain == possible {
                let violated = rows & !satisfied;
                (violated, (moved | violated & 1 ^ last[1]) & rows)
            } else {
                let violated = rows & !possible.read(words);
                (violated, (moved | violated ^ (violated << 1 | last[1])) & rows)
            };
            if changed != 0 || all {
                *last = [words::last(satisfied, len), words::last(violated, len)];
                out.push((formula as u32, Outcome { satisfied, violated, changed, lapsed: 0 }));
            }
        }
    }

    /// The verdicts of a property in the evaluated rows and the intervals after them. `together`: rows with
    /// the time of the row before. The interval after the last row is left to [`Serial::span`].
    #[inline(always)]
    pub(crate) fn outcomes(
        &mut self,
        section: &Section,
        property: usize,
        len: u32,
        together: Rows,
    ) -> [Outcome; 2] {
        let rows = words::low(len.into());
        let truth = section.formulas[property];
        let now = self.halves(truth.at, rows);
        let after = self.halves(truth.after, rows);
        let (last, last_after) = (&mut self.last[property], &mut self.last_after[property]);
        let before = |now: Rows, after: Rows, last: u64, last_after: u64| {
            together & (now << 1 | last) | !together & (after << 1 | last_after)
        };
        let changed = now.0 ^ before(now.0, after.0, last[0], last_after[0])
            | now.1 ^ before(now.1, after.1, last[1], last_after[1]);
        // An interval ends at a later row with a greater time.
        let spans = !together >> 1 & rows >> 1;
        *last = [words::last(now.0, len), words::last(now.1, len)];
        *last_after = [words::last(after.0, len), words::last(after.1, len)];
        [
            Outcome { satisfied: now.0, violated: now.1, changed: changed & rows, lapsed: 0 },
            Outcome {
                satisfied: after.0,
                violated: after.1,
                changed: (now.0 ^ after.0 | now.1 ^ after.1) & spans,
                lapsed: 0,
            },
        ]
    }

    /// The verdict on the interval after the last time point, if it differs from the one at that point.
    /// Called once the interval is known not to be empty; returned once.
    #[inline(always)]
    pub(crate) fn span(&mut self, property: usize) -> Option<Verdict> {
        let (last, [satisfied, violated]) = (&mut self.last[property], self.last_after[property]);
        if *last == [satisfied, violated] {
            return None;
        }
        *last = [satisfied, violated];
        Some(match (satisfied, violated) {
            (1, _) => Verdict::Satisfied,
            (_, 1) => Verdict::Violated,
            _ => Verdict::Inconclusive,
        })
    }

    /// The verdict of a property at the last time point.
    pub(crate) fn last_verdict(&self, property: usize) -> Verdict {
        match self.last.get(property) {
            Some([1, 0]) => Verdict::Satisfied,
            Some([0, 1]) => Verdict::Violated,
            _ => Verdict::Inconclusive,
        }
    }

    /// Whether the last verdict of a property is inconclusive.
    pub(crate) fn was_inconclusive(&self, property: usize) -> bool {
        self.last.get(property).is_some_and(|last| *last == [0, 0])
    }

    /// Whether the verdict of any property differs on the interval after the last time point.
    pub(crate) fn has_span(&self) -> bool {
        self.last != self.last_after
    }

    /// The lower and upper truth in the evaluated rows.
    pub(crate) fn words(&self, TruthBounds { certain, possible }: TruthBounds) -> [Rows; 2] {
        [certain.read(&self.registers.words), possible.read(&self.registers.words)]
    }

    #[inline(always)]
    fn halves(&self, TruthBounds { certain, possible }: TruthBounds, rows: Rows) -> (Rows, Rows) {
        let words = &self.registers.words;
        (certain.read(words) & rows, !possible.read(words) & rows)
    }

    /// The robustness of a property in an evaluated row, at it (half 0) or on the interval after it (half 1),
    /// if requested and known.
    #[inline]
    pub(crate) fn robustness(
        &self,
        section: &Section,
        property: usize,
        row: usize,
        half: usize,
        verdict: Verdict,
    ) -> Option<f64> {
        section.robust[property]?.robustness(verdict, |halves| {
            let floats = &self.registers.columns.floats;
            halves[half].map(|column| floats[column as usize][row])
        })
    }

    /// The least known robustness of a property in the first `rows` evaluated rows.
    pub(crate) fn least_level(&self, section: &Section, property: usize, rows: usize) -> Option<f64> {
        let Margin::Levels([halves, _]) = section.robust[property]? else { return None };
        let columns = halves.map(|column| &self.registers.columns.floats[column as usize]);
        let (mut lowest, mut is_known) = (f64::INFINITY, false);
        for (least, greatest) in columns[0].iter().zip(columns[1]).take(rows) {
            let knows = least == greatest;
            is_known |= knows;
            lowest = if knows && *least < lowest { *least } else { lowest };
        }
        // Adding zero turns a negative zero into a positive one.
        is_known.then_some(lowest + 0.0)
    }

    /// Records an emitted robustness. Returns whether it differs from the last one.
    #[inline]
    pub(crate) fn note_level(&mut self, property: usize, level: Option<f64>) -> bool {
        std::mem::replace(&mut self.levels[property], level) != level
    }

    /// Whether the robustness on the interval after the last time point differs from the last emitted one.
    pub(crate) fn moves(&self, section: &Section, property: usize) -> bool {
        let Some(Margin::Levels(_)) = section.robust[property].filter(|_| self.time != i64::MIN) else {
            return false;
        };
        let level = self.robustness(section, property, self.last_row(), 1, Verdict::Inconclusive);
        level != self.levels[property]
    }

    /// Truth and robustness in an evaluated row, at it (half 0) or on the interval after it (half 1).
    pub(crate) fn levels(&self, truth: &Truth, margin: &Margin, row: usize, half: usize) -> Levels {
        levels(&self.registers, truth, margin, row, half)
    }

    /// The last evaluated row.
    pub(crate) fn last_row(&self) -> usize {
        self.last_row as usize
    }

    /// Time of the next change between events that matters, if any.
    pub(crate) fn next_deadline(&self, section: &Section) -> Option<i64> {
        let next = |deadline: &Deadline| match *deadline {
            Deadline::Recently(state) => self.state.timed_recently[state as usize].next_change(self.time),
            Deadline::Lasting(state) => {
                once::next_change(self.state.lasting[state as usize], false, self.time)
            }
            Deadline::Machine(machine) => {
                let plan = &section.machines[machine as usize];
                self.state.machines[machine as usize].next_change(plan, self.time)
            }
            Deadline::Relation(relation) => {
                let plan = &section.relations[relation as usize].plan;
                self.state.relations[relation as usize].next_change(plan)
            }
            Deadline::Since(state) => self.state.timed_since[state as usize].next_change(self.time),
            Deadline::Window(state) => self.state.values.windows[state as usize].next_change(),
            Deadline::Robust(state) => self.state.values.robust_dense[state as usize].next_change(),
        };
        section.changes.deadlines.iter().filter_map(next).min()
    }

    /// Counts a time point at `due` if a machine causes it. Beyond the limit, makes the machine leap to
    /// `until` at most.
    pub(crate) fn count_by_itself(&mut self, section: &Section, due: i64, until: i64) {
        let (time, is_one) = (self.time, section.is_one_machine());
        let machines = section.machines.iter().zip(&mut self.state.machines);
        let is_due = |(plan, state): &(&MachinePlan, &mut MachineState)| {
            plan.may_leap() && !state.is_unknown() && state.next_change(plan, time) == Some(due)
        };
        let mut due = machines.filter(is_due).peekable();
        if due.peek().is_none() {
            return;
        }
        let ByItself { steps, quiet } = &mut self.by_itself;
        *steps = steps.saturating_add(1);
        if *steps >= leap::LIMIT {
            let is_quiet = is_one && *quiet >= leap::LIMIT / 2;
            let is_last = *steps / leap::LIMIT > section.machines.len() as u32;
            due.for_each(|(_, state)| state.request = Some(Request { until, is_quiet, is_last }));
        }
    }

    /// Number of leaps: spans over which machines were not stepped.
    pub(crate) fn leaps(&self) -> u64 {
        self.state.machines.iter().map(|machine| machine.leaps).fold(0, u64::saturating_add)
    }

    /// Time of the next change, including those of operators that are evaluated ahead.
    pub(crate) fn next_change(&self, section: &Section) -> Option<i64> {
        let looked_ahead = self.state.ranges.iter().filter_map(|ranges| ranges.next_change(self.time)).min();
        self.next_deadline(section).into_iter().chain(looked_ahead).min()
    }

    /// Evaluates operators ahead of events that [`Serial::run`] receives afterwards.
    pub(crate) fn look_ahead(&mut self, section: &Section, input: RowInput<'_>) {
        if let (Some(eager), Some(eager_section)) = (&mut self.eager, &section.eager) {
            std::mem::swap(&mut self.state.ranges, &mut eager.state.ranges);
            eager.run(eager_section, input);
            std::mem::swap(&mut self.state.ranges, &mut eager.state.ranges);
        }
    }

    /// Appends the times after the last time point, up to `until`, at which an operator evaluated ahead
    /// changes.
    pub(crate) fn change_times(&self, until: i64, out: &mut Vec<i64>) {
        self.state.ranges.iter().for_each(|ranges| ranges.change_times(self.time, until, out));
    }

    /// Number of samples dropped for lack of room.
    pub(crate) fn dropped_samples(&self) -> u64 {
        let ValueState { windows, robust_once, robust_since, robust_dense, .. } = &self.state.values;
        let samples = windows.iter().map(Window::dropped);
        let robust = robust_once.iter().map(once::Robust::dropped);
        let robust = robust.chain(robust_since.iter().map(robust::SinceRows::dropped));
        samples.chain(robust).chain(robust_dense.iter().map(robust::DenseSince::dropped)).sum()
    }

    /// Length of the longest queue of a bounded operator.
    pub(crate) fn longest_queue(&self) -> usize {
        let State { delays, timed_since, ranges, relations, .. } = &self.state;
        let timed = timed_since.iter().map(TimedSince::kept).chain(ranges.iter().map(Ranges::kept));
        let ahead = self.pending.iter().map(Pending::kept).chain(self.delayed.iter().map(Delayed::kept));
        let relations = relations.iter().map(RelationState::kept);
        let relations = relations.chain(self.inner.iter().map(|inner| inner.kept()));
        delays.iter().map(Delay::kept).chain(timed).chain(ahead).chain(relations).max().unwrap_or(0)
    }
}

/// Truth and robustness in a row of registers, at it (half 0) or on the interval after it (half 1).
pub(crate) fn levels(
    registers: &Registers,
    truth: &Truth,
    margin: &Margin,
    row: usize,
    half: usize,
) -> Levels {
    let bounds = if half == 0 { truth.at } else { truth.after };
    let truth = [bounds.certain, bounds.possible].map(|wire| wire.read(&registers.words) >> row & 1 == 1);
    match margin {
        Margin::Truth => Levels::of_truth(truth),
        Margin::Levels(halves) => {
            let floats = &registers.columns.floats;
            Levels::new(truth, halves[half].map(|column| floats[column as usize][row]))
        }
    }
}
