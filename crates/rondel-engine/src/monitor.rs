use std::sync::Arc;

use rondel_event::{Block, Rows, Slot, Timestamp, Verdict};

use crate::columns::{self, Values, split};
use crate::delay::Delay;
use crate::graph::Wire;
use crate::instruction::Instruction;
use crate::program::Program;
use crate::state::{Held, Latched, Registers, State};
use crate::texts::{self, TextColumn, TextRef};
use crate::words::{self, Recently};

/// The verdicts of one property at the events of a block: see [`Outcome::verdict`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Outcome {
    /// The rows where it is satisfied.
    pub satisfied: Rows,
    /// The rows where it is violated. Rows of the block in neither set are inconclusive.
    pub violated: Rows,
    /// The rows where the verdict is another than at the event before, be that in this block or an
    /// earlier one. At the very first event it always counts as changed.
    pub changed: Rows,
}

impl Outcome {
    /// The verdict at the event in `row`.
    pub fn verdict(&self, row: usize) -> Verdict {
        if self.satisfied >> row & 1 == 1 {
            Verdict::Satisfied
        } else if self.violated >> row & 1 == 1 {
            Verdict::Violated
        } else {
            Verdict::Inconclusive
        }
    }
}

/// A program on its way over a trace: all that it remembers of the events so far.
///
/// The verdicts are a function of the events alone; how they are cut into blocks does not matter.
/// A step allocates nothing once queues and texts have reached the size they need.
#[derive(Clone, Debug)]
pub struct Monitor {
    program: Arc<Program>,
    position: u64,
    state: State,
    registers: Registers,
    outcomes: Vec<Outcome>,
    /// For every property the last verdict: satisfied and violated as 0 or 1, both 1 before the
    /// first, which is like no verdict.
    last: Vec<[u64; 2]>,
}

impl Monitor {
    /// A monitor before the first event.
    pub fn new(program: Arc<Program>) -> Monitor {
        let mut monitor = Monitor {
            position: 0,
            state: program.initial.clone(),
            registers: program.registers.clone(),
            outcomes: vec![Outcome::default(); program.formulas.len()],
            last: vec![[1, 1]; program.formulas.len()],
            program,
        };
        // They read no block; all rows are computed, for every block to come.
        let no_block = Block::new(monitor.program.layout());
        let constant = &monitor.program.instructions[..monitor.program.constant];
        let mut frame = Frame {
            len: Block::CAPACITY as u32,
            rows: Rows::MAX,
            ..Frame::new(&monitor.program, &no_block, 0, &mut monitor.state, &mut monitor.registers)
        };
        frame.run(constant, 0);
        monitor
    }

    /// The program it runs.
    pub fn program(&self) -> &Arc<Program> {
        &self.program
    }

    /// Takes the events of a block and gives the verdict of every property at each of them.
    ///
    /// # Panics
    /// When the block has not the [layout](Program::layout) of the program: a mistake of the caller,
    /// never of the input.
    pub fn step(&mut self, block: &Block) -> &[Outcome] {
        let (len, rows) = (block.len() as u32, block.rows());
        if len == 0 {
            self.outcomes.fill(Outcome::default());
            return &self.outcomes;
        }
        let program = &*self.program;
        let (state, registers) = (&mut self.state, &mut self.registers);
        let mut frame = Frame::new(program, block, self.position, state, registers);
        frame.run(&program.instructions[program.constant..], program.constant);
        // A column refers only to buffers of earlier columns: from the last to the first, nothing
        // is overwritten that is still to be copied.
        for &instruction in &program.keeps_text {
            keep_text(instruction, block, len, state, registers);
        }
        let formulas = program.formulas.iter().zip(&mut self.outcomes).zip(&mut self.last);
        for ((rails, outcome), last) in formulas {
            let satisfied = read(&registers.words, rails.certain) & rows;
            let violated = !read(&registers.words, rails.possible) & rows;
            let before = [satisfied << 1 | last[0], violated << 1 | last[1]];
            let changed = (satisfied ^ before[0] | violated ^ before[1]) & rows;
            *outcome = Outcome { satisfied, violated, changed };
            *last = [words::last(satisfied, len), words::last(violated, len)];
        }
        self.position = self.position.saturating_add(len.into());
        &self.outcomes
    }

    /// Lets time pass up to `now` without an event.
    ///
    /// In the model of steps time is the count of events, and nothing is ever pending: this does
    /// nothing. Call it all the same where no event comes, for the models in which it matters.
    pub fn advance(&mut self, now: Timestamp) {
        let _ = now;
    }

    /// Ends the trace. In the model of steps every verdict has been given by then.
    pub fn end(&mut self) {}

    /// The number of the step, from 0, that the first event of the next block will be.
    pub fn position(&self) -> u64 {
        self.position
    }

    /// The longest queue that any bounded operator keeps at the moment, in entries: what its memory
    /// grows with.
    pub fn longest_queue(&self) -> usize {
        self.state.delays.iter().map(|delay| delay.kept()).max().unwrap_or(0)
    }
}

#[inline(always)]
fn read(words: &[Rows], wire: Wire) -> Rows {
    words[wire.word()] ^ wire.flip()
}

/// All that the loop works on, as slices: were they reached through vectors, each would have to be
/// looked up again after every word that is written.
struct Frame<'a> {
    program: &'a Program,
    block: &'a Block,
    len: u32,
    rows: Rows,
    position: u64,

    words: &'a mut [Rows],
    ints: &'a mut [Values<i64>],
    floats: &'a mut [Values<f64>],
    texts: &'a mut [TextColumn],

    bits: &'a mut [u64],
    recently: &'a mut [Recently],
    delays: &'a mut [Delay],
    held_ints: &'a mut [Held<i64>],
    held_floats: &'a mut [Held<f64>],
    latched_ints: &'a mut [Latched<i64>],
    latched_floats: &'a mut [Latched<f64>],
    buffers: &'a [Vec<u8>],
}

impl<'a> Frame<'a> {
    #[inline(always)]
    fn new(
        program: &'a Program,
        block: &'a Block,
        position: u64,
        state: &'a mut State,
        registers: &'a mut Registers,
    ) -> Frame<'a> {
        Frame {
            program,
            block,
            len: block.len() as u32,
            rows: block.rows(),
            position,
            words: &mut registers.words,
            ints: &mut registers.ints,
            floats: &mut registers.floats,
            texts: &mut registers.texts,
            bits: &mut state.bits,
            recently: &mut state.recently,
            delays: &mut state.delays,
            held_ints: &mut state.held_ints,
            held_floats: &mut state.held_floats,
            latched_ints: &mut state.latched_ints,
            latched_floats: &mut state.latched_floats,
            buffers: &state.buffers,
        }
    }

    /// Runs instructions, the first of which computes the word `first`.
    #[inline(always)]
    fn run(&mut self, instructions: &[Instruction], first: usize) {
        for (i, instruction) in (first..).zip(instructions) {
            self.words[i] = self.evaluate(instruction);
        }
    }

    /// The word of an instruction; its column, if it has one, is written.
    #[inline(always)]
    fn evaluate(&mut self, instruction: &Instruction) -> Rows {
        let Frame { program, block, len, rows, .. } = *self;
        match *instruction {
            Instruction::False => 0,
            Instruction::On { topic } => block.topic_rows(rondel_event::TopicId(topic)),
            Instruction::Carried { slot } => match slot {
                Slot::Bool(column) => block.bools(column).present,
                Slot::Int(column) => block.ints(column).present,
                Slot::Float(column) => block.floats(column).present,
                Slot::String(column) => block.strings(column).present,
            },
            Instruction::HeldBool { column, value, state: i } => {
                let column = block.bools(column);
                let is = if value { column.values } else { !column.values };
                let bit = &mut self.bits[i as usize];
                let out = words::since(!column.present, column.present & column.valid & is, *bit);
                *bit = words::last(out, len);
                out
            }
            Instruction::And { a, b } => read(self.words, a) & read(self.words, b),
            Instruction::Since { p, q, state: i } => {
                let bit = &mut self.bits[i as usize];
                let out = words::since(read(self.words, p), read(self.words, q), *bit);
                *bit = words::last(out, len);
                out
            }
            Instruction::Shift { x, by, state: i } => {
                let history = &mut self.bits[i as usize];
                let x = read(self.words, x);
                let out = words::shift(x, by.into(), *history);
                *history = words::remember(*history, x, len);
                out
            }
            Instruction::Recently { x, state: i } => {
                self.recently[i as usize].step(read(self.words, x), len, rows)
            }
            Instruction::Delay { x, forget, state: i } => self.delays[i as usize].step(
                read(self.words, x),
                read(self.words, forget),
                self.position,
                len,
                rows,
            ),

            Instruction::IntEqual { a, b } => columns::compare(self.ints, a, b, len, |a, b| a == b),
            Instruction::IntLess { a, b } => columns::compare(self.ints, a, b, len, |a, b| a < b),
            Instruction::FloatEqual { a, b } => columns::compare(self.floats, a, b, len, |a, b| a == b),
            Instruction::FloatLess { a, b } => columns::compare(self.floats, a, b, len, |a, b| a < b),
            Instruction::FloatLessOrEqual { a, b } => columns::compare(self.floats, a, b, len, |a, b| a <= b),
            Instruction::TextEqual { a, b } => {
                let operands = (&self.texts[a as usize], &self.texts[b as usize]);
                texts::compare(operands, block, self.buffers, len, |a, b| a == b)
            }
            Instruction::TextStartsWith { a, b } => {
                let operands = (&self.texts[a as usize], &self.texts[b as usize]);
                texts::compare(operands, block, self.buffers, len, |a, b| a.starts_with(b))
            }

            Instruction::ConstantInt { constant, out } => {
                self.ints[out as usize].fill(program.ints[constant as usize]);
                Rows::MAX
            }
            Instruction::ConstantFloat { constant, out } => {
                self.floats[out as usize].fill(program.floats[constant as usize]);
                Rows::MAX
            }
            Instruction::ConstantText { buffer, out } => {
                self.texts[out as usize].fill(TextRef::Kept { buffer });
                Rows::MAX
            }
            Instruction::ToFloat { x, out } => {
                columns::to_float(&mut self.floats[out as usize], &self.ints[x as usize], len);
                Rows::MAX
            }
            Instruction::UnaryInt { op, x, out } => {
                let (before, out) = split(self.ints, out);
                columns::unary_int(op, out, &before[x as usize], len)
            }
            Instruction::UnaryFloat { op, x, out } => {
                let (before, out) = split(self.floats, out);
                columns::unary_float(op, out, &before[x as usize], len);
                Rows::MAX
            }
            Instruction::BinaryInt { op, a, b, out } => {
                let (before, out) = split(self.ints, out);
                columns::binary_int(op, out, &before[a as usize], &before[b as usize], len)
            }
            Instruction::BinaryFloat { op, a, b, out } => {
                let (before, out) = split(self.floats, out);
                columns::binary_float(op, out, &before[a as usize], &before[b as usize], len);
                Rows::MAX
            }

            Instruction::HeldInt { column, state: i, out } => {
                let held = &mut self.held_ints[i as usize];
                columns::hold(&mut self.ints[out as usize], block.ints(column), held, len, rows)
            }
            Instruction::HeldFloat { column, state: i, out } => {
                let held = &mut self.held_floats[i as usize];
                columns::hold(&mut self.floats[out as usize], block.floats(column), held, len, rows)
            }
            Instruction::HeldText { column, state: i, buffer, out } => {
                let (present, valid) = texts::masks(block.strings(column), rows);
                texts::hold(&mut self.texts[out as usize], column, valid, buffer, len);
                let bit = &mut self.bits[i as usize];
                let known = words::since(!present, valid, *bit);
                *bit = words::last(known, len);
                known
            }
            Instruction::SelectInt { condition, a, b, out } => {
                let (before, out) = split(self.ints, out);
                columns::select(
                    out,
                    read(self.words, condition),
                    &before[a as usize],
                    &before[b as usize],
                    len,
                );
                Rows::MAX
            }
            Instruction::SelectFloat { condition, a, b, out } => {
                let (before, out) = split(self.floats, out);
                columns::select(
                    out,
                    read(self.words, condition),
                    &before[a as usize],
                    &before[b as usize],
                    len,
                );
                Rows::MAX
            }
            Instruction::SelectText { condition, a, b, out } => {
                let (before, out) = split(self.texts, out);
                columns::select(
                    out,
                    read(self.words, condition),
                    &before[a as usize],
                    &before[b as usize],
                    len,
                );
                Rows::MAX
            }
            Instruction::LatchInt { x, clock, state: i, out } => {
                let latched = &mut self.latched_ints[i as usize];
                let (before, out) = split(self.ints, out);
                columns::latch(out, &before[x as usize], read(self.words, clock), latched, len);
                Rows::MAX
            }
            Instruction::LatchFloat { x, clock, state: i, out } => {
                let latched = &mut self.latched_floats[i as usize];
                let (before, out) = split(self.floats, out);
                columns::latch(out, &before[x as usize], read(self.words, clock), latched, len);
                Rows::MAX
            }
            Instruction::LatchText { x, clock, buffer, out } => {
                let (before, out) = split(self.texts, out);
                texts::latch(out, &before[x as usize], read(self.words, clock), buffer, len);
                Rows::MAX
            }
        }
    }
}

/// Copies what a later block may ask for.
fn keep_text(instruction: Instruction, block: &Block, len: u32, state: &mut State, registers: &Registers) {
    let last = |column: u32| registers.texts[column as usize][len as usize - 1];
    match instruction {
        Instruction::HeldText { buffer, out, .. } => {
            texts::keep(last(out), buffer, block, &mut state.buffers);
        }
        Instruction::LatchText { x, buffer, out, .. } => {
            // What it gives now may be what it was to give next: copy that first.
            texts::keep(last(out), buffer, block, &mut state.buffers);
            texts::keep(last(x), buffer + 1, block, &mut state.buffers);
        }
        _ => {}
    }
}
