//! Runs the instructions of a section over consecutive rows.

use rondel_event::{Rows, Slot, TopicId};

use crate::chain::ChainRows;
use crate::exec::inner::Inner;
use crate::exec::section::{Lasting, Section};
use crate::exec::state::{Registers, State, ValueState};
use crate::exec::values;
use crate::ir::instruction::Instruction;
use crate::ir::node::ChainColumn;
use crate::linear::LineRows;
use crate::machine::{MachineRows, MachineState, MachineStep};
use crate::ops::columns;
use crate::ops::columns::Columns;
use crate::ops::delay::Delay;
use crate::ops::once::{Recently, TimedRecently};
use crate::ops::ranges::Ranges;
use crate::ops::rows::RowView;
use crate::ops::scalar::ScalarReading;
use crate::ops::shift;
use crate::ops::since::{self, TimedSince};
use crate::ops::timed::{self, RowTimes, TruthHalves};
use crate::ops::words;
use crate::relation::source::Reading;
use crate::relation::state::RelationState;

/// The inputs of the evaluation of a block.
#[derive(Clone, Copy)]
pub(crate) struct Step<'a> {
    pub(crate) section: &'a Section,
    pub(crate) view: RowView<'a>,
    pub(crate) chains: &'a [ChainRows],
    pub(crate) lines: &'a [LineRows],
}

/// State and registers as slices: through vectors, each access would load the pointer again after every write
/// of a word.
pub(crate) struct Frame<'a> {
    step: Step<'a>,
    words: &'a mut [Rows],
    bits: &'a mut [u64],
    recently: &'a mut [Recently],
    delays: &'a mut [Delay],
    timed_recently: &'a mut [TimedRecently],
    timed_since: &'a mut [TimedSince],
    ranges: &'a mut [Ranges],
    lasting: &'a mut [i64],
    chains: &'a mut [Option<i64>],
    seconds: &'a mut [Rows],
    machines: &'a mut [MachineState],
    machine_rows: &'a mut [MachineRows],
    relations: &'a mut [RelationState],
    inner: &'a mut [Box<dyn Inner>],
    columns: &'a mut Columns,
    values: &'a mut ValueState,
}

impl<'a> Frame<'a> {
    #[inline(always)]
    pub(crate) fn new(
        step: Step<'a>,
        state: &'a mut State,
        inner: &'a mut [Box<dyn Inner>],
        registers: &'a mut Registers,
    ) -> Frame<'a> {
        Frame {
            step,
            words: &mut registers.words,
            bits: &mut state.bits,
            recently: &mut state.recently,
            delays: &mut state.delays,
            timed_recently: &mut state.timed_recently,
            timed_since: &mut state.timed_since,
            ranges: &mut state.ranges,
            lasting: &mut state.lasting,
            chains: &mut state.chains,
            seconds: &mut registers.seconds,
            machines: &mut state.machines,
            machine_rows: &mut registers.machines,
            relations: &mut state.relations,
            inner,
            columns: &mut registers.columns,
            values: &mut state.values,
        }
    }

    /// Runs instructions; the first one computes the word `first`.
    #[inline(always)]
    pub(crate) fn run(&mut self, instructions: &[Instruction], first: usize) {
        let len = self.step.view.len;
        let mut next = 0;
        while let Some(instruction) = instructions.get(next) {
            // Kinds that are frequent and as cheap as the jump itself have inner loops: their instructions
            // are mostly adjacent, and such a loop keeps its data in registers of the processor.
            match instruction {
                Instruction::And { .. } => {
                    let words = &mut *self.words;
                    while let Some(&Instruction::And { a, b }) = instructions.get(next) {
                        words[first + next] = a.read(words) & b.read(words);
                        next += 1;
                    }
                }
                Instruction::Shift { .. } => {
                    let (words, bits) = (&mut *self.words, &mut *self.bits);
                    while let Some(&Instruction::Shift { x, by, state }) = instructions.get(next) {
                        let history = &mut bits[state as usize];
                        let x = x.read(words);
                        words[first + next] = shift::shift(x, by.into(), *history);
                        *history = shift::remember(*history, x, len);
                        next += 1;
                    }
                }
                Instruction::Recently { .. } => {
                    let (words, recently, rows) =
                        (&mut *self.words, &mut *self.recently, self.step.view.rows);
                    while let Some(&Instruction::Recently { x, state }) = instructions.get(next) {
                        words[first + next] = recently[state as usize].step(x.read(words), len, rows);
                        next += 1;
                    }
                }
                Instruction::IntLess { .. } => {
                    let (words, Columns { ints, int_steps, .. }) = (&mut *self.words, &*self.columns);
                    let rows = words::low(len.into());
                    while let Some(&Instruction::IntLess { a, b }) = instructions.get(next) {
                        words[first + next] = columns::compare(ints, int_steps, [a, b], rows, |a, b| a < b);
                        next += 1;
                    }
                }
                _ => {
                    self.words[first + next] = self.evaluate(instruction);
                    next += 1;
                }
            }
        }
    }

    /// Evaluates an instruction without an inner loop: returns its word, and writes its column if it has one.
    #[inline(always)]
    fn evaluate(&mut self, instruction: &Instruction) -> Rows {
        let RowView { block, len, rows, position, .. } = self.step.view;
        match *instruction {
            Instruction::False => 0,
            Instruction::On { topic } => self.step.view.of_events(block.topic_rows(TopicId(topic))),
            Instruction::Carried { slot } => {
                let present = match slot {
                    Slot::Bool(column) => block.bools(column).present,
                    Slot::Int(column) => block.ints(column).present,
                    Slot::Float(column) => block.floats(column).present,
                    Slot::String(column) => block.strings(column).present,
                };
                self.step.view.of_events(present)
            }
            Instruction::HeldBool { column, value, state: i } => {
                let column = block.bools(column);
                let is = if value { column.values } else { !column.values };
                let bit = &mut self.bits[i as usize];
                let present = self.step.view.of_events(column.present);
                let set = self.step.view.of_events(column.present & column.valid & is);
                let out = since::since(!present, set, *bit);
                *bit = words::last(out, len);
                out
            }
            Instruction::Since { p, q, state: i } => {
                let bit = &mut self.bits[i as usize];
                let out = since::since(p.read(self.words), q.read(self.words), *bit);
                *bit = words::last(out, len);
                out
            }
            Instruction::Delay { x, forget, state: i } => {
                self.delays[i as usize].step(x.read(self.words), forget.read(self.words), position, len, rows)
            }
            Instruction::SameTime
            | Instruction::TimedRecently { .. }
            | Instruction::TimedSince { .. }
            | Instruction::LookAhead { .. }
            | Instruction::LookedAhead { .. }
            | Instruction::After { .. }
            | Instruction::Lasting { .. }
            | Instruction::Chain { .. }
            | Instruction::Line { .. }
            | Instruction::Machine { .. }
            | Instruction::MachineAfter { .. }
            | Instruction::MachineInt { .. }
            | Instruction::MachineFloat { .. }
            | Instruction::MachineText { .. }
            | Instruction::MachineTruth { .. }
            | Instruction::Quantified { .. }
            | Instruction::ByValue { .. } => self.longer(instruction),
            // Instructions on columns cost more than a call and would bloat this loop.
            _ => values::evaluate(
                instruction,
                self.step.section,
                self.step.view,
                self.words,
                self.columns,
                self.values,
            ),
        }
    }

    /// Evaluates the instructions that cost more than a call.
    #[inline(never)]
    fn longer(&mut self, instruction: &Instruction) -> Rows {
        let row_times = self.step.view.row_times;
        match *instruction {
            Instruction::SameTime => {
                let RowTimes { times, before } = row_times;
                let mut before = before;
                let mut out = 0;
                for (row, &time) in times.iter().enumerate() {
                    out |= Rows::from(time == before) << row;
                    before = time;
                }
                out
            }
            Instruction::TimedRecently { q, q_after, state, second } => {
                let q = TruthHalves { at: q.read(self.words), after: q_after.read(self.words) };
                let out = self.timed_recently[state as usize].step(q, row_times);
                self.seconds[second as usize] = out.after;
                out.at
            }
            Instruction::TimedSince { operands, state, second } => {
                let [p, q] = self.step.section.operands.since[operands as usize]
                    .map(|x| TruthHalves { at: x.at.read(self.words), after: x.after.read(self.words) });
                let out = self.timed_since[state as usize].step(p, q, row_times);
                self.seconds[second as usize] = out.after;
                out.at
            }
            Instruction::LookAhead { operands, state } => {
                let [p, q] = self.step.section.operands.since[operands as usize]
                    .map(|x| TruthHalves { at: x.at.read(self.words), after: x.after.read(self.words) });
                self.ranges[state as usize].extend(p, q, row_times);
                0
            }
            Instruction::LookedAhead { state, second } => {
                let out = self.ranges[state as usize].read(row_times.times);
                self.seconds[second as usize] = out.after;
                out.at
            }
            Instruction::Lasting { x, state, second } => self.lasting(x, state, second),
            Instruction::Chain { chain, column, state, out } => self.chain(chain, column, state, out),
            Instruction::Line { line, sign, half, state } => self.line(line, sign, half, state),
            Instruction::After { second } => self.seconds[second as usize],
            Instruction::Machine { machine, out } => self.machine(machine, out),
            Instruction::MachineAfter { machine, out } => {
                self.machine_rows[machine as usize].after(self.columns, out)
            }
            Instruction::MachineInt { machine, variable, half, out } => {
                self.machine_rows[machine as usize].int(variable, half, self.columns, out)
            }
            Instruction::MachineFloat { machine, variable, half, out } => {
                self.machine_rows[machine as usize].float(variable, half, self.columns, out)
            }
            Instruction::MachineText { machine, variable, half, buffer, out } => {
                let texts = &mut self.columns.texts[out as usize];
                let buffers = &mut self.values.buffers;
                self.machine_rows[machine as usize].text(variable, half, buffer, buffers, texts)
            }
            Instruction::MachineTruth { machine, variable, half, value } => {
                self.machine_rows[machine as usize].truth(variable, half, value)
            }
            Instruction::Quantified { relation, second } => self.quantified(relation, second),
            Instruction::ByValue { number, second } => {
                let [certain, possible] = self.inner[number as usize].step(self.step.view, self.words);
                self.seconds[second as usize] = possible;
                certain
            }
            // All other instructions are evaluated by the loop.
            _ => 0,
        }
    }

    /// The truth of a quantified formula.
    fn quantified(&mut self, relation: u32, second: u32) -> Rows {
        let Step { section, view, .. } = self.step;
        let RowView { block, start, events, len, position, row_times, .. } = view;
        let (words, columns, buffers) = (&*self.words, &*self.columns, &*self.values.buffers);
        let reading = Reading { words, columns, block, start, events, buffers };
        let state = &mut self.relations[relation as usize];
        let out = section.relations[relation as usize].step(state, &reading, len, position, row_times);
        self.seconds[second as usize] = out.after;
        out.at
    }

    /// The truth that a time is at most `span` ago.
    fn lasting(&mut self, x: u32, state: u32, second: u32) -> Rows {
        let Lasting { known, span } = self.step.section.operands.lasting[state as usize];
        let known = known.read(self.words);
        let until = &mut self.lasting[state as usize];
        let mut out = TruthHalves::default();
        for (row, &time) in self.step.view.row_times.times.iter().enumerate() {
            let (from, place) = (self.columns.ints[x as usize][row], timed::instant(time));
            let is_known = known >> row & 1 == 1;
            *until = if is_known { timed::later(timed::instant(from), span) } else { timed::NEVER };
            out.at |= Rows::from(*until >= place) << row;
            out.after |= Rows::from(*until > place) << row;
        }
        self.seconds[second as usize] = out.after;
        out.at
    }

    /// The truth that a linear form has a sign. Rows between the rows of the block have the sign after the
    /// one before.
    fn line(&mut self, line: u32, sign: u8, half: u8, state: u32) -> Rows {
        let Step { lines, view: RowView { events, len, .. }, .. } = self.step;
        // Time points between events have no sign of their own.
        let LineRows { at, after } = lines.get(line as usize).copied().unwrap_or_default();
        let bit = &mut self.bits[state as usize];
        let sign = usize::from(sign);
        let out = since::since(!events, self.step.view.of_events(after[sign]) & events, *bit);
        *bit = words::last(out, len);
        if half == 1 { out } else { self.step.view.of_events(at[sign]) & events | out & !events }
    }

    /// Writes a column of a chain. Returns the rows in which it is known.
    fn chain(&mut self, chain: u32, column: ChainColumn, state: u32, out: u32) -> Rows {
        let Step { chains, view: RowView { events, len, .. }, .. } = self.step;
        let rows = chains.get(chain as usize);
        let last = &mut self.chains[state as usize];
        let mut known = 0;
        for (row, out) in self.columns.ints[out as usize].iter_mut().enumerate().take(len as usize) {
            if let Some(rows) = rows
                && events >> row & 1 == 1
            {
                *last = rows.get(column, self.step.view.event_row(row));
            }
            *out = last.unwrap_or(0);
            known |= Rows::from(last.is_some()) << row;
        }
        known
    }

    /// Steps a machine through the rows.
    #[inline(never)]
    fn machine(&mut self, machine: u32, out: u32) -> Rows {
        let Step { section, view: RowView { block, position, row_times, .. }, .. } = self.step;
        let RowTimes { times, mut before } = row_times;
        let reading =
            ScalarReading { words: self.words, columns: self.columns, block, buffers: &self.values.buffers };
        let rows = &mut self.machine_rows[machine as usize];
        for (row, &time) in times.iter().enumerate() {
            let is_event = self.step.view.events >> row & 1 == 1;
            let position = position.saturating_add(row as u64);
            let step = MachineStep { row, is_event, time, before, position };
            self.machines[machine as usize].step(&section.machines[machine as usize], &reading, step, rows);
            before = time;
        }
        self.columns.ints[out as usize] = *rows.states[0];
        rows.ambiguous[0]
    }
}
