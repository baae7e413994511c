//! Instructions over rows that are time points of different instances.
//!
//! Stateless instructions run as on a block. Stateful ones find their carry in the record of the row's
//! instance: for a batch the records are turned into columns, one per word, and the bit words into one word
//! of rows per bit. So `since` is two operations for up to 64 instances, and the records are read and written
//! in one place, where memory latencies overlap.

use rondel_event::{Rows, Slot, TopicId};

use crate::exec::run::Step;
use crate::exec::values;
use crate::ir::instruction::Instruction;
use crate::ir::node::Kind;
use crate::keyed::gather::Words;
use crate::keyed::heap::InstanceHeap;
use crate::keyed::keys::{self, KeptKey, KeyPlan, Keys, for_each, read_text};
use crate::keyed::record::{KEY, Layout, POSITION, Truths};
use crate::keyed::table::TEMPLATE;
use crate::machine::{self, MachineRows};
use crate::ops::columns::{Columns, Values, rows_where, split};
use crate::ops::held;
use crate::ops::once;
use crate::ops::rows::RowView;
use crate::ops::scalar::ScalarReading;
use crate::ops::shift;
use crate::ops::since;
use crate::ops::stamps::Stamps;
use crate::ops::texts::{self, TextRef};
use crate::ops::timed::{self, RowTimes};
use crate::ops::window::WindowOperands;

/// Working state of the instruction loop.
pub(super) struct ParallelFrame<'a> {
    pub(super) step: Step<'a>,
    /// Rows of the batch.
    pub(super) rows: Rows,
    pub(super) inputs: &'a [Rows],
    /// Whether the rows are events.
    pub(super) events: bool,
    pub(super) layout: &'a Layout,
    pub(super) plan: &'a KeyPlan,
    pub(super) keys: Option<&'a Keys>,
    pub(super) table_keys: &'a [KeptKey],
    pub(super) instances: &'a Values<u32>,
    pub(super) words: &'a mut [Rows],
    pub(super) seconds: &'a mut [Rows],
    pub(super) machine_rows: &'a mut [MachineRows],
    pub(super) columns: &'a mut Columns,
    pub(super) records: &'a mut [Words],
    pub(super) bits: &'a mut [Rows],
    pub(super) heap: &'a mut InstanceHeap,
}

impl ParallelFrame<'_> {
    /// Evaluates an instruction: returns its word and writes its column, if it has one.
    #[inline(always)]
    pub(super) fn evaluate(&mut self, instruction: &Instruction) -> Rows {
        let block = self.step.view.block;
        match *instruction {
            Instruction::False => 0,
            Instruction::On { topic } => block.topic_rows(TopicId(topic)),
            Instruction::Carried { slot } => match slot {
                Slot::Bool(column) => block.bools(column).present,
                Slot::Int(column) => block.ints(column).present,
                Slot::Float(column) => block.floats(column).present,
                Slot::String(column) => block.strings(column).present,
            },
            Instruction::HeldBool { column, value, state } => {
                let column = block.bools(column);
                let is = if value { column.values } else { !column.values };
                self.since(state, !column.present, column.present & column.valid & is)
            }
            Instruction::And { a, b } => a.read(self.words) & b.read(self.words),
            Instruction::Since { p, q, state } => self.since(state, p.read(self.words), q.read(self.words)),
            Instruction::Shift { x, by, state } => self.shift(x.read(self.words), by.into(), state),
            Instruction::Outer { input } => self.inputs.get(input as usize).copied().unwrap_or(0),
            _ => self.evaluate_other(instruction),
        }
    }

    #[inline(never)]
    #[expect(clippy::too_many_lines, reason = "one arm for each instruction")]
    fn evaluate_other(&mut self, instruction: &Instruction) -> Rows {
        let RowView { block, len, .. } = self.step.view;
        let rows = self.rows;
        let n = len as usize;
        match *instruction {
            Instruction::Recently { x, state } => self.recently(x.read(self.words), state),
            Instruction::Delay { x, forget, state } => {
                self.delay(x.read(self.words), forget.read(self.words), state)
            }
            Instruction::HeldInt { column, state, out } => {
                let at = self.layout.places.held_ints[state as usize];
                let (kept, known) = (&mut self.records[at.word as usize], &mut self.bits[at.known as usize]);
                held::hold_gathered(
                    &mut self.columns.ints[out as usize],
                    block.ints(column),
                    kept,
                    known,
                    rows,
                    len,
                )
            }
            Instruction::HeldFloat { column, state, out } => {
                let at = self.layout.places.held_floats[state as usize];
                let (kept, known) = (&mut self.records[at.word as usize], &mut self.bits[at.known as usize]);
                held::hold_gathered(
                    &mut self.columns.floats[out as usize],
                    block.floats(column),
                    kept,
                    known,
                    rows,
                    len,
                )
            }
            Instruction::HeldText { column, state, buffer, out } => {
                let texts = block.strings(column);
                let (present, valid) = (texts.present, texts.valid & texts.present & rows);
                let kept = &self.records[self.layout.places.buffers[buffer as usize] as usize];
                let out = &mut self.columns.texts[out as usize];
                for (i, out) in out.iter_mut().enumerate().take(n) {
                    *out = if valid >> i & 1 == 1 {
                        TextRef::Fresh { column, row: i as u8 }
                    } else {
                        TextRef::Kept { buffer: self.heap.buffer(kept[i]) }
                    };
                }
                let known = self.layout.places.known_texts[state as usize] as usize;
                since::since_gathered(!present, valid, &mut self.bits[known])
            }
            Instruction::LatchInt { x, clock, state, out } => {
                let (now, next) = pair(self.records, self.layout.places.latched_ints[state as usize]);
                let (before, out) = split(&mut self.columns.ints, out);
                held::latch_gathered(out, &before[x as usize], clock.read(self.words), now, next, len);
                Rows::MAX
            }
            Instruction::LatchFloat { x, clock, state, out } => {
                let (now, next) = pair(self.records, self.layout.places.latched_floats[state as usize]);
                let (before, out) = split(&mut self.columns.floats, out);
                held::latch_gathered(out, &before[x as usize], clock.read(self.words), now, next, len);
                Rows::MAX
            }
            Instruction::LatchText { clock, buffer, out, .. } => {
                let clock = clock.read(self.words);
                let [now, next] = [buffer, buffer + 1]
                    .map(|buffer| &self.records[self.layout.places.buffers[buffer as usize] as usize]);
                let out = &mut self.columns.texts[out as usize];
                for (i, out) in out.iter_mut().enumerate().take(n) {
                    let reference = if clock >> i & 1 == 1 { next[i] } else { now[i] };
                    *out = TextRef::Kept { buffer: self.heap.buffer(reference) };
                }
                Rows::MAX
            }
            Instruction::SampledInt { x, clock, state, out } => {
                let kept = &mut self.records[self.layout.places.sampled[state as usize] as usize];
                let (before, out) = split(&mut self.columns.ints, out);
                held::sample_gathered(out, &before[x as usize], clock.read(self.words), kept, len);
                Rows::MAX
            }
            Instruction::Window { window, out } => self.window(window, out),
            Instruction::RobustOnce { .. }
            | Instruction::RobustSince { .. }
            | Instruction::RobustDense { .. } => self.robust(instruction),
            Instruction::Quantified { relation, second } => self.quantified(relation, second),
            Instruction::SameTime => self.together(),
            Instruction::TimedRecently { q, q_after, state, second } => {
                let q = timed::TruthHalves { at: q.read(self.words), after: q_after.read(self.words) };
                let out = self.timed_recently(q, state);
                self.seconds[second as usize] = out.after;
                out.at
            }
            Instruction::TimedSince { operands, state, second } => {
                let out = self.timed_since(operands, state);
                self.seconds[second as usize] = out.after;
                out.at
            }
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
                let buffers = &mut self.heap.values.buffers;
                self.machine_rows[machine as usize].text(variable, half, buffer, buffers, texts)
            }
            Instruction::MachineTruth { machine, variable, half, value } => {
                self.machine_rows[machine as usize].truth(variable, half, value)
            }
            Instruction::KeyBool { key, value } => {
                let mut out = 0;
                for_each(self.rows, |row| {
                    out |= Rows::from((self.key(key, row).0 != 0) == value) << row;
                });
                out & self.have_key()
            }
            Instruction::KeyInt { key, out } => {
                for_each(self.rows, |row| {
                    self.columns.ints[out as usize][row] = self.key(key, row).0 as i64;
                });
                self.have_key()
            }
            Instruction::KeyText { key, out } => {
                for_each(self.rows, |row| {
                    let buffer = self.heap.key_text(key, row);
                    let mut text = std::mem::take(&mut self.heap.values.buffers[buffer as usize]);
                    let (len, words) = self.key(key, row);
                    read_text(len, words, &mut text);
                    self.heap.values.buffers[buffer as usize] = text;
                    self.columns.texts[out as usize][row] = TextRef::Kept { buffer };
                });
                self.have_key()
            }
            // Stateless instructions.
            _ => values::evaluate(
                instruction,
                self.step.section,
                self.step.view,
                self.words,
                self.columns,
                &mut self.heap.values,
            ),
        }
    }

    /// Evaluates `p since q` with a bit of the record.
    #[inline(always)]
    fn since(&mut self, state: u32, p: Rows, q: Rows) -> Rows {
        match self.layout.places.truths[state as usize] {
            Truths::Bits(bit) => since::since_gathered(p, q, &mut self.bits[bit as usize]),
            // A `since` always has a bit.
            Truths::Word(_) => 0,
        }
    }

    #[inline(always)]
    fn shift(&mut self, x: Rows, by: u32, state: u32) -> Rows {
        match self.layout.places.truths[state as usize] {
            Truths::Bits(bit) => shift::shift_gathered(x, &mut self.bits[bit as usize..(bit + by) as usize]),
            Truths::Word(word) => {
                shift::shift_words(x, by, &mut self.records[word as usize][..self.step.view.len as usize])
            }
        }
    }

    /// Returns the rows whose instance has a key, which the template does not.
    fn have_key(&self) -> Rows {
        !rows_where(self.step.view.len, |row| self.instances[row] == TEMPLATE)
    }

    /// Returns a key part of the instance of a row, as a word or a text.
    #[inline(always)]
    fn key(&self, key: u32, row: usize) -> (u64, &[u64]) {
        let parts = match self.keys {
            Some(keys) => keys.parts(row),
            None => self.table_keys.get(self.instances[row] as usize).map_or(&[][..], KeptKey::parts),
        };
        self.plan.part(keys::key(&self.records[KEY][row], parts), key)
    }

    fn together(&self) -> Rows {
        let Some(word) = self.layout.places.time else { return 0 };
        let (before, times) = (&self.records[word as usize], self.step.view.row_times.times);
        rows_where(self.step.view.len, |i| times[i] == before[i] as i64)
    }

    fn timed_recently(&mut self, q: timed::TruthHalves, state: u32) -> timed::TruthHalves {
        let at = self.layout.places.timed_recently[state as usize];
        let recently = &self.step.section.initial.timed_recently[state as usize];
        let open = &mut self.bits[at.open as usize];
        let columns = [at.until, self.layout.places.time.unwrap_or_default()].map(|word| word as usize);
        // Every section with timed operators has a word for the last time.
        let Ok([until, before]) = self.records.get_disjoint_mut(columns) else {
            return timed::TruthHalves::default();
        };
        recently.step_gathered(q, until, open, self.step.view.row_times.times, before)
    }

    fn timed_since(&mut self, operands: u32, state: u32) -> timed::TruthHalves {
        let [p, q] = self.step.section.operands.since[operands as usize].map(|halves| timed::TruthHalves {
            at: halves.at.read(self.words),
            after: halves.after.read(self.words),
        });
        let word = self.layout.places.pools.timed_since[state as usize] as usize;
        let initial = &self.step.section.initial.timed_since[state as usize];
        let Some(time) = self.layout.places.time else { return timed::TruthHalves::default() };
        let mut out = timed::TruthHalves::default();
        for_each(self.rows, |row| {
            let of = |halves: timed::TruthHalves| timed::TruthHalves {
                at: halves.at >> row & 1,
                after: halves.after >> row & 1,
            };
            let (p, q) = (of(p), of(q));
            let before = self.records[time as usize][row] as i64;
            let row_times = RowTimes { times: &self.step.view.row_times.times[row..=row], before };
            let reference = &mut self.records[word][row];
            let begins = q != timed::TruthHalves::default();
            let pool = &mut self.heap.pools.timed_since;
            let holds = pool.step(reference, initial, begins, |since| since.step(p, q, row_times));
            out.at |= (holds.at & 1) << row;
            out.after |= (holds.after & 1) << row;
        });
        out
    }

    fn recently(&mut self, q: Rows, state: u32) -> Rows {
        let span = self.step.section.initial.recently[state as usize].span;
        let left = &mut self.records[self.layout.places.recently[state as usize] as usize];
        once::recently_gathered(q, span, &mut left[..self.step.view.len as usize])
    }

    fn delay(&mut self, x: Rows, forget: Rows, state: u32) -> Rows {
        let delay = &self.step.section.initial.delays[state as usize];
        let word = self.layout.places.pools.delays[state as usize] as usize;
        let mut out = 0;
        for_each(self.rows, |row| {
            let (x, forget) = (x >> row & 1, forget >> row & 1);
            let position = self.records[POSITION][row];
            let reference = &mut self.records[word][row];
            let pool = &mut self.heap.pools.delays;
            out |=
                pool.step(reference, delay, x == 1, |delay| delay.step(x, forget, position, 1, 1) & 1) << row;
        });
        out
    }

    /// Steps the windows of the instances.
    fn window(&mut self, window: u32, out: u32) -> Rows {
        let WindowOperands { x, samples, known, timed } = self.step.section.operands.windows[window as usize];
        let (samples, known) = (samples.read(self.words), known.read(self.words));
        let word = self.layout.places.pools.windows[window as usize] as usize;
        let initial = &self.step.section.initial.values.windows[window as usize];
        let pools = &mut self.heap.pools;
        let mut now_known = 0;
        let (mut int, mut float) = (([0; _], [0; _]), ([0.0; _], [0.0; _]));
        for_each(self.rows, |row| {
            let Some(window) = pools.windows.get_or_add(&mut self.records[word][row], initial) else {
                return;
            };
            let position = self.records[POSITION][row];
            let (stamps, now) = match timed {
                true => (
                    Stamps::Times(&self.step.view.row_times.times[row..=row]),
                    self.step.view.row_times.times[row],
                ),
                false => (Stamps::Positions(position), position.min(i64::MAX as u64) as i64),
            };
            let rows = [samples >> row & 1, known >> row & 1];
            let holds = match window.kind() {
                _ if window.counts_floats() => {
                    float.0[0] = self.columns.floats.get(x as usize).map_or(0.0, |x| x[row]);
                    let holds = window.step_counts(&mut int.1, Some(&float.0), rows, stamps, 1);
                    self.columns.ints[out as usize][row] = int.1[0];
                    holds
                }
                Kind::Float => {
                    let (before, out) = split(&mut self.columns.floats, out);
                    float.0[0] = before.get(x as usize).map_or(0.0, |x| x[row]);
                    let holds = window.step_floats(&mut float.1, Some(&float.0), rows, stamps, 1);
                    out[row] = float.1[0];
                    holds
                }
                _ => {
                    let (before, out) = split(&mut self.columns.ints, out);
                    int.0[0] = before.get(x as usize).map_or(0, |x| x[row]);
                    let holds = window.step_ints(&mut int.1, Some(&int.0), rows, stamps, 1);
                    out[row] = int.1[0];
                    holds
                }
            };
            now_known |= (holds & 1) << row;
            if window.is_over(now) {
                let dropped = pools.windows.renew(std::mem::take(&mut self.records[word][row]), initial);
                pools.dropped = pools.dropped.saturating_add(dropped);
            }
        });
        now_known
    }

    /// Steps the machines of the instances.
    fn machine(&mut self, machine: u32, out: u32) -> Rows {
        let Step { section, view: RowView { block, row_times, .. }, .. } = self.step;
        let rows = self.rows;
        let word = self.layout.places.pools.machines[machine as usize] as usize;
        let (plan, written) = (&section.machines[machine as usize], &mut self.machine_rows[machine as usize]);
        let InstanceHeap { pools, values, .. } = &mut *self.heap;
        let reading =
            ScalarReading { words: self.words, columns: self.columns, block, buffers: &values.buffers };
        let before = self.layout.places.time.map_or(POSITION, |time| time as usize);
        for_each(rows, |row| {
            if let Some(state) = pools.machines.get_mut(self.records[word][row]) {
                let (time, before) = (row_times.times[row], self.records[before][row] as i64);
                let (position, is_event) = (self.records[POSITION][row], self.events);
                let point = machine::MachineStep { row, time, before, position, is_event };
                state.step(plan, &reading, point, written);
            }
        });
        self.columns.ints[out as usize] = *written.states[0];
        written.ambiguous[0]
    }

    /// Copies the texts that later rows read into buffers of the instance, as in a block. Where a text refers
    /// to another one of the instance, the later column goes first.
    pub(super) fn keep_text(&mut self, instruction: &Instruction) {
        match *instruction {
            Instruction::HeldText { state, buffer, out, .. } => {
                let known = self.bits[self.layout.places.known_texts[state as usize] as usize];
                self.keep(out, buffer, known);
            }
            Instruction::LatchText { x, buffer, out, .. } => {
                self.keep(out, buffer, Rows::MAX);
                self.keep(x, buffer + 1, Rows::MAX);
            }
            _ => {}
        }
    }

    fn keep(&mut self, column: u32, buffer: u32, known: Rows) {
        let word = self.layout.places.buffers[buffer as usize] as usize;
        for_each(self.rows, |row| {
            let text = self.columns.texts[column as usize][row];
            let reference = &mut self.records[word][row];
            let is_own = *reference != 0 && text == (TextRef::Kept { buffer: *reference as u32 });
            if is_own && known >> row & 1 == 1 {
                return;
            }
            let own = self.heap.own_text(*reference);
            let buffers = &mut self.heap.values.buffers;
            texts::keep(text, own as u32, self.step.view.block, buffers);
            *reference = own;
            if known >> row & 1 == 0 || buffers[own as usize].is_empty() {
                self.heap.free_text(own);
                *reference = 0;
            }
        });
    }
}

/// Returns two successive columns.
fn pair(records: &mut [Words], first: u32) -> (&mut Words, &mut Words) {
    let (before, rest) = records.split_at_mut(first as usize + 1);
    (&mut before[first as usize], &mut rest[0])
}
