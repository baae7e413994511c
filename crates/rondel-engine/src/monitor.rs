use std::sync::Arc;

use rondel_event::{Block, Rows, Slot, Timestamp, Verdict};

use crate::delay::Delay;
use crate::graph::Wire;
use crate::instruction::Instruction;
use crate::program::Program;
use crate::state::{Columns, Registers, State, ValueState};
use crate::values;
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
        let step = Step {
            program: &monitor.program,
            block: &no_block,
            len: Block::CAPACITY as u32,
            rows: Rows::MAX,
            position: 0,
        };
        Frame::new(step, &mut monitor.state, &mut monitor.registers).run(constant, 0);
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
        let step = Step { program, block, len, rows, position: self.position };
        Frame::new(step, &mut self.state, &mut self.registers)
            .run(&program.instructions[program.constant..], program.constant);
        // A column refers only to buffers of earlier columns: from the last to the first, nothing
        // is overwritten that is still to be copied.
        for &instruction in &program.keeps_text {
            values::keep_text(instruction, step, &self.registers.columns, &mut self.state.values);
        }
        let formulas = program.formulas.iter().zip(&mut self.outcomes).zip(&mut self.last);
        for ((rails, outcome), last) in formulas {
            let satisfied = read(&self.registers.words, rails.certain) & rows;
            let violated = !read(&self.registers.words, rails.possible) & rows;
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
pub(crate) fn read(words: &[Rows], wire: Wire) -> Rows {
    words[wire.word()] ^ wire.flip()
}

/// What a block is evaluated with.
#[derive(Clone, Copy)]
pub(crate) struct Step<'a> {
    pub(crate) program: &'a Program,
    pub(crate) block: &'a Block,
    pub(crate) len: u32,
    pub(crate) rows: Rows,
    /// The number of the first row of the block.
    pub(crate) position: u64,
}

/// What the loop works on, as slices: were they reached through vectors, each would have to be
/// looked up again after every word that is written.
struct Frame<'a> {
    step: Step<'a>,
    words: &'a mut [Rows],
    bits: &'a mut [u64],
    recently: &'a mut [Recently],
    delays: &'a mut [Delay],
    columns: &'a mut Columns,
    values: &'a mut ValueState,
}

impl<'a> Frame<'a> {
    #[inline(always)]
    fn new(step: Step<'a>, state: &'a mut State, registers: &'a mut Registers) -> Frame<'a> {
        Frame {
            step,
            words: &mut registers.words,
            bits: &mut state.bits,
            recently: &mut state.recently,
            delays: &mut state.delays,
            columns: &mut registers.columns,
            values: &mut state.values,
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
        let Step { block, len, rows, position, .. } = self.step;
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
                position,
                len,
                rows,
            ),
            // What works on columns costs more than a call, and stays out of this loop.
            _ => values::evaluate(instruction, self.step, self.words, self.columns, self.values),
        }
    }
}
