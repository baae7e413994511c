//! The instructions of a section run over rows that follow each other.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use rondel_event::{Block, Rows, Slot, TopicId, Verdict};

use crate::chain::{ChainColumn, ChainRows};
use crate::columns;
use crate::delay::Delay;
use crate::future::{Delayed, Levels, Pending};
use crate::graph::Wire;
use crate::instruction::Instruction;
use crate::linear::LineRows;
use crate::machine::{MachineRows, MachineState, Moment};
use crate::ranges::Ranges;
use crate::relation::source::Reading as Registered;
use crate::relation::state::RelationState;
use crate::robust;
use crate::scalar::Reading;
use crate::section::{Deadline, Lasting, Margin, Section};
use crate::settled::{Settled, can_settle, settle};
use crate::slice::by_value::Divided;
use crate::slice::saved::SavedInstances;
use crate::state::{Columns, Registers, State, ValueState};
use crate::timed::{self, Moments, Sides, TimedRecently, TimedSince};
use crate::translate::{Rails, Truth};
use crate::values;
use crate::window::{Stamps, Window};
use crate::words::{self, Recently};

/// What a section remembers of the moments so far, and the registers that it computes with.
#[derive(Clone, Debug)]
pub(crate) struct Serial {
    pub(crate) state: State,
    /// What is evaluated ahead of the rest; its ranges are here.
    scout: Option<Box<Serial>>,
    registers: Registers,
    /// The number of moments so far.
    position: u64,
    /// The time of the last moment; the first follows on nothing.
    pub(crate) time: i64,
    last_row: u32,
    /// For every property the last verdict: satisfied and violated as 0 or 1, both 1 before the
    /// first, which is like no verdict.
    last: Vec<[u64; 2]>,
    /// The same on the span after the last moment, which may turn out to be empty.
    last_after: Vec<[u64; 2]>,
    /// What the properties that look ahead have pending.
    pub(crate) pending: Vec<Pending>,
    /// The same of those whose robustness is asked for.
    pub(crate) delayed: Vec<Delayed>,
    /// The instances of the quantified formulas that are evaluated by value.
    divided: Vec<Divided>,
    /// What is left of the section now that its fields are known; none where all of it is evaluated.
    pub(crate) settled: Option<Arc<Settled>>,
    /// After how many blocks it is settled next, and how many more after the time after that; 0 is never.
    settles: [u64; 2],
    /// The fields that were believed to be known, and then were not.
    doubted: Vec<Slot>,
}

/// Rows of a block that are moments.
#[derive(Clone, Copy)]
pub(crate) struct Rowed<'a> {
    pub(crate) block: &'a Block,
    /// The first row.
    pub(crate) start: u32,
    /// How many there are, at least 1.
    pub(crate) len: u32,
    /// Which of them are events: rows of the block, in order. The others are moments that time brings.
    pub(crate) events: Rows,
    /// Their times, never going back; empty where nobody asks for them.
    pub(crate) times: &'a [i64],
    /// What is measured of the chains, after each row of the block.
    pub(crate) chains: &'a [ChainRows],
    /// What the straight lines are in each row of the block.
    pub(crate) lines: &'a [LineRows],
}

/// The verdicts of one property at some rows.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Outcome {
    /// The rows where it is satisfied.
    pub(crate) satisfied: Rows,
    /// The rows where it is violated. Rows in neither set are inconclusive.
    pub(crate) violated: Rows,
    /// The rows where the verdict is another than at the moment before. At the very first it always
    /// counts as changed.
    pub(crate) changed: Rows,
}

impl Outcome {
    /// The verdict in `row`.
    #[inline(always)]
    pub(crate) fn verdict(&self, row: usize) -> Verdict {
        if self.satisfied >> row & 1 == 1 {
            Verdict::Satisfied
        } else if self.violated >> row & 1 == 1 {
            Verdict::Violated
        } else {
            Verdict::Inconclusive
        }
    }
}

/// What of a [`Serial`] goes into a snapshot.
#[derive(Serialize, Deserialize)]
pub(crate) struct SavedSerial {
    state: State,
    pending: Vec<Pending>,
    delayed: Vec<Delayed>,
    divided: Vec<SavedInstances>,
    scout: Option<Box<SavedSerial>>,
    position: u64,
    time: i64,
    last: Vec<[u64; 2]>,
    last_after: Vec<[u64; 2]>,
    /// The registers at the last row: what they say of the span after it may still be reported.
    words: Vec<u64>,
    ints: Vec<i64>,
    floats: Vec<f64>,
}

impl Serial {
    pub(crate) fn saved(&self) -> SavedSerial {
        let row = self.last_row();
        let (mut state, words) = (self.state.clone(), &self.registers.words);
        // What has settled is nothing that the events say: it is not saved.
        let words = match &self.settled {
            None => words.iter().map(|word| word >> row & 1).collect(),
            Some(settled) => {
                settled.complete(&mut state);
                settled.words(words).map(|word| word >> row & 1).collect()
            }
        };
        SavedSerial {
            state,
            words,
            pending: self.pending.clone(),
            delayed: self.delayed.clone(),
            divided: self.divided.iter().map(Divided::saved).collect(),
            scout: self.scout.as_ref().map(|scout| Box::new(scout.saved())),
            position: self.position,
            time: self.time,
            last: self.last.clone(),
            last_after: self.last_after.clone(),
            ints: self.registers.columns.ints.iter().map(|column| column[row]).collect(),
            floats: self.registers.columns.floats.iter().map(|column| column[row]).collect(),
        }
    }

    /// Takes over what was saved; false if it does not belong to this section.
    pub(crate) fn restore(&mut self, section: &Section, saved: SavedSerial) -> bool {
        let SavedSerial { mut state, pending, delayed, scout, position, time, last, last_after, .. } = saved;
        let SavedSerial { words, ints, floats, divided, .. } = saved;
        let scouts = match (&mut self.scout, &section.scout, scout) {
            (None, None, None) => true,
            (Some(scout), Some(section), Some(saved)) => scout.restore(section, *saved),
            _ => false,
        };
        let Registers { words: own_words, columns, .. } = &mut self.registers;
        let fits = scouts
            && state.fits(&self.state)
            && (state.relations.iter_mut().zip(&self.state.relations).zip(&section.relations))
                .all(|((saved, own), relation)| saved.complete(own, &relation.plan))
            && pending.len() == self.pending.len()
            && pending.iter().zip(&self.pending).all(|(saved, own)| saved.fits(own))
            && delayed.len() == self.delayed.len()
            && delayed.iter().zip(&self.delayed).all(|(saved, own)| saved.fits(own))
            && (last.len(), last_after.len()) == (self.last.len(), self.last_after.len())
            && (words.len(), ints.len(), floats.len())
                == (own_words.len(), columns.ints.len(), columns.floats.len())
            && divided.len() == self.divided.len()
            && (self.divided.iter_mut().zip(&section.by_value).zip(divided))
                .all(|((own, by_value), saved)| own.restore(by_value, saved));
        if !fits {
            return false;
        }
        // What is the same for every block has been computed for all rows.
        for (own, word) in own_words.iter_mut().zip(words).skip(section.constant) {
            *own = word;
        }
        columns.ints.iter_mut().zip(ints).for_each(|(own, value)| own[0] = value);
        columns.floats.iter_mut().zip(floats).for_each(|(own, value)| own[0] = value);
        (self.state, self.pending, self.delayed) = (state, pending, delayed);
        (self.position, self.time) = (position, time);
        (self.last, self.last_after, self.last_row) = (last, last_after, 0);
        self.settled = None;
        true
    }

    /// Before the first moment.
    pub(crate) fn new(section: &Section, no_block: &Block) -> Serial {
        let mut serial = Serial {
            state: section.initial.clone(),
            scout: section.scout.as_ref().map(|scout| Box::new(Serial::new(scout, no_block))),
            registers: section.registers.clone(),
            position: 0,
            time: i64::MIN,
            last_row: 0,
            last: vec![[1, 1]; section.formulas.len()],
            last_after: vec![[1, 1]; section.formulas.len()],
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
            divided: section.by_value.iter().map(|by_value| Divided::new(by_value, no_block)).collect(),
            settled: None,
            settles: if can_settle(section) { [Serial::SETTLES; 2] } else { [0; 2] },
            doubted: Vec::new(),
        };
        // They read no block; all rows are computed, for every block to come.
        let step = Step {
            section,
            block: no_block,
            chains: &[],
            lines: &[],
            start: 0,
            events: Rows::MAX,
            len: Block::CAPACITY as u32,
            rows: Rows::MAX,
            position: 0,
            moments: Moments { times: &[], before: 0 },
        };
        let constant = &section.instructions[..section.constant];
        Frame::new(step, &mut serial.state, &mut serial.divided, &mut serial.registers).run(constant, 0);
        serial
    }

    /// After how many blocks a section is settled for the first time. From then on it is after four times as many:
    /// settling takes as long as ten blocks, and most of what a section remembers comes to be the same early on.
    const SETTLES: u64 = 2;

    /// Settles the section if it is time to, and takes it back if a block does not hold to it.
    #[inline]
    fn settle(&mut self, section: &Section, block: &Block) {
        if let Some(settled) = self.settled.take_if(|settled| !settled.holds_in(block)) {
            settled.complete(&mut self.state);
            settled.doubt(block, &mut self.doubted);
            self.settles = [Serial::SETTLES; 2];
        } else if self.settles[0] > 0 {
            self.settles[0] -= 1;
            if self.settles[0] == 0 {
                self.settle_now(section, block);
            }
        }
    }

    #[cold]
    fn settle_now(&mut self, section: &Section, block: &Block) {
        if let Some(settled) = self.settled.take() {
            settled.complete(&mut self.state);
        }
        let settled = settle(section, &mut self.state, &self.doubted);
        self.settles = [self.settles[1].saturating_mul(4); 2];
        if settled.holds_in(block) {
            if !settled.is_partial {
                self.settles = [0; 2];
            }
            self.settled = Some(Arc::new(settled));
        } else {
            settled.complete(&mut self.state);
            settled.doubt(block, &mut self.doubted);
        }
    }

    /// The registers, with the constants in them.
    pub(crate) fn into_registers(self) -> Registers {
        self.registers
    }

    /// Evaluates all instructions in these rows.
    pub(crate) fn run(&mut self, section: &Section, rowed: Rowed<'_>) {
        let Rowed { block, start, len, events, times, chains, lines } = rowed;
        self.settle(section, block);
        let instructions = match &self.settled {
            None => &section.instructions[section.constant..],
            Some(settled) => &settled.instructions,
        };
        let step = Step {
            section,
            block,
            start,
            events,
            len,
            chains,
            lines,
            rows: words::low(len.into()),
            position: self.position,
            moments: Moments { times, before: self.time },
        };
        Frame::new(step, &mut self.state, &mut self.divided, &mut self.registers)
            .run(instructions, section.constant);
        // A column refers only to buffers of earlier columns: from the last to the first, nothing
        // is overwritten that is still to be copied.
        for &instruction in &section.keeps_text {
            values::keep_text(instruction, step, &self.registers.columns, &mut self.state.values);
        }
        self.position = self.position.saturating_add(len.into());
        self.last_row = len.saturating_sub(1);
        if let Some(&last) = times.last() {
            self.time = last;
        }
    }

    /// Adds the verdicts of the properties at the `len` rows that were evaluated last, and their positions:
    /// of those that have changed anywhere, or of all.
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
        let formulas = self.settled.as_ref().map_or(&section.formulas, |settled| &settled.formulas);
        for (formula, (truth, last)) in formulas.iter().zip(&mut self.last).enumerate() {
            let Rails { certain, possible } = truth.at;
            let satisfied = read(words, certain) & rows;
            // Most are settled, and the other word is far away.
            let violated = rows & !if certain == possible { satisfied } else { read(words, possible) };
            let before = [satisfied << 1 | last[0], violated << 1 | last[1]];
            let changed = (satisfied ^ before[0] | violated ^ before[1]) & rows;
            if changed != 0 || all {
                *last = [words::last(satisfied, len), words::last(violated, len)];
                out.push((formula as u32, Outcome { satisfied, violated, changed }));
            }
        }
    }

    /// The verdicts of a property at the rows that were evaluated last, and on the spans that follow them,
    /// given the rows whose time is that of the row before. Of the span after the last row nothing is said
    /// yet: see [`Serial::span`].
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
        let now = self.sides(truth.at, rows);
        let after = self.sides(truth.after, rows);
        let (last, last_after) = (&mut self.last[property], &mut self.last_after[property]);
        let before = |now: Rows, after: Rows, last: u64, last_after: u64| {
            together & (now << 1 | last) | !together & (after << 1 | last_after)
        };
        let changed = now.0 ^ before(now.0, after.0, last[0], last_after[0])
            | now.1 ^ before(now.1, after.1, last[1], last_after[1]);
        // Where there is a span: before a later row.
        let spans = !together >> 1 & rows >> 1;
        *last = [words::last(now.0, len), words::last(now.1, len)];
        *last_after = [words::last(after.0, len), words::last(after.1, len)];
        [
            Outcome { satisfied: now.0, violated: now.1, changed: changed & rows },
            Outcome {
                satisfied: after.0,
                violated: after.1,
                changed: (now.0 ^ after.0 | now.1 ^ after.1) & spans,
            },
        ]
    }

    /// The verdict on the span after the last moment, if it is another there than at that moment, now that
    /// it has turned out that there is time in between. Says so once.
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

    /// The verdict of a property at the last moment.
    pub(crate) fn last_verdict(&self, property: usize) -> Verdict {
        match self.last.get(property) {
            Some([1, 0]) => Verdict::Satisfied,
            Some([0, 1]) => Verdict::Violated,
            _ => Verdict::Inconclusive,
        }
    }

    /// Whether any property is another on the span after the last moment.
    pub(crate) fn has_span(&self) -> bool {
        self.last != self.last_after
    }

    /// The rails of a truth at the rows that were evaluated last.
    pub(crate) fn words(&self, Rails { certain, possible }: Rails) -> [Rows; 2] {
        [read(&self.registers.words, certain), read(&self.registers.words, possible)]
    }

    #[inline(always)]
    fn sides(&self, Rails { certain, possible }: Rails, rows: Rows) -> (Rows, Rows) {
        let words = &self.registers.words;
        (read(words, certain) & rows, !read(words, possible) & rows)
    }

    /// The robustness of a property in a row that was evaluated last, at it (side 0) or on the span that
    /// follows (side 1), where it is asked for, and known.
    #[inline]
    pub(crate) fn robustness(
        &self,
        section: &Section,
        property: usize,
        row: usize,
        side: usize,
        verdict: Verdict,
    ) -> Option<f64> {
        section.robust[property]?.robustness(verdict, |sides| {
            let floats = &self.registers.columns.floats;
            sides[side].map(|column| floats[column as usize][row])
        })
    }

    /// Whether and by how much something holds in a row that was evaluated last, at it (side 0) or on the span that
    /// follows (side 1).
    pub(crate) fn levels(&self, past: &(Truth, Margin), row: usize, side: usize) -> Levels {
        levels(&self.registers, past, row, side)
    }

    /// The row that was evaluated last.
    pub(crate) fn last_row(&self) -> usize {
        self.last_row as usize
    }

    /// When something changes by itself that matters, if it does.
    pub(crate) fn next_deadline(&self, section: &Section) -> Option<i64> {
        let next = |deadline: &Deadline| match *deadline {
            Deadline::Recently(state) => self.state.timed_recently[state as usize].next_change(self.time),
            Deadline::Lasting(state) => {
                timed::next_change(self.state.lasting[state as usize], false, self.time)
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
        section.deadlines.iter().filter_map(next).min()
    }

    /// The same, with what has been looked ahead of.
    pub(crate) fn next_change(&self, section: &Section) -> Option<i64> {
        let looked_ahead = self.state.ranges.iter().filter_map(|ranges| ranges.next_change(self.time)).min();
        self.next_deadline(section).into_iter().chain(looked_ahead).min()
    }

    /// Looks ahead at events, which this one will see with [`Serial::run`] afterwards.
    pub(crate) fn look_ahead(&mut self, section: &Section, rowed: Rowed<'_>) {
        if let (Some(scout), Some(scouting)) = (&mut self.scout, &section.scout) {
            std::mem::swap(&mut self.state.ranges, &mut scout.state.ranges);
            scout.run(scouting, rowed);
            std::mem::swap(&mut self.state.ranges, &mut scout.state.ranges);
        }
    }

    /// Adds the moments after the last one, up to `until`, that looking ahead has shown.
    pub(crate) fn moments(&self, until: i64, out: &mut Vec<i64>) {
        self.state.ranges.iter().for_each(|ranges| ranges.moments(self.time, until, out));
    }

    /// How many samples there was no room for.
    pub(crate) fn dropped_samples(&self) -> u64 {
        let ValueState { windows, greatest, robust_since, robust_dense, .. } = &self.state.values;
        let windows: u64 = windows.iter().map(Window::dropped).sum();
        let greatest: u64 = greatest.iter().map(|(greatest, _)| greatest.dropped()).sum();
        let since: u64 = robust_since.iter().map(robust::Since::dropped).sum();
        windows + greatest + since + robust_dense.iter().map(robust::DenseSince::dropped).sum::<u64>()
    }

    /// The longest queue of any bounded operator.
    pub(crate) fn longest_queue(&self) -> usize {
        let State { delays, timed_since, ranges, relations, .. } = &self.state;
        let timed = timed_since.iter().map(TimedSince::kept).chain(ranges.iter().map(Ranges::kept));
        let ahead = self.pending.iter().map(Pending::kept).chain(self.delayed.iter().map(Delayed::kept));
        let relations = relations.iter().map(RelationState::kept);
        let relations = relations.chain(self.divided.iter().map(Divided::kept));
        delays.iter().map(Delay::kept).chain(timed).chain(ahead).chain(relations).max().unwrap_or(0)
    }
}

/// Whether and by how much something holds in a row of registers, at it (side 0) or on the span that follows (side 1).
pub(crate) fn levels(
    registers: &Registers,
    (truth, margin): &(Truth, Margin),
    row: usize,
    side: usize,
) -> Levels {
    let rails = if side == 0 { truth.at } else { truth.after };
    let truth = [rails.certain, rails.possible].map(|wire| read(&registers.words, wire) >> row & 1 == 1);
    match margin {
        Margin::Truth => Levels::of_truth(truth),
        Margin::Levels(sides) => {
            let floats = &registers.columns.floats;
            Levels::new(truth, sides[side].map(|column| floats[column as usize][row]))
        }
    }
}

#[inline(always)]
pub(crate) fn read(words: &[Rows], wire: Wire) -> Rows {
    words[wire.word()] ^ wire.flip()
}

/// What a block is evaluated with.
#[derive(Clone, Copy)]
pub(crate) struct Step<'a> {
    pub(crate) section: &'a Section,
    pub(crate) block: &'a Block,
    /// The first row of the block that is evaluated; what is computed of it stands in row 0.
    pub(crate) start: u32,
    /// The rows that are events.
    pub(crate) events: Rows,
    pub(crate) len: u32,
    pub(crate) rows: Rows,
    /// The number of the first row.
    pub(crate) position: u64,
    pub(crate) moments: Moments<'a>,
    pub(crate) chains: &'a [ChainRows],
    pub(crate) lines: &'a [LineRows],
}

impl<'a> Step<'a> {
    /// What a word of the block says of these rows.
    #[inline(always)]
    pub(crate) fn of_events(&self, word: Rows) -> Rows {
        let word = word >> self.start;
        if self.events == self.rows { word } else { words::spread(word, self.events) }
    }

    /// The row of the block that an event of these rows is.
    #[inline(always)]
    pub(crate) fn event_row(&self, row: usize) -> usize {
        let before = (self.events & words::low(row as u64)).count_ones();
        (self.start + before) as usize
    }

    /// Where its rows are in time, or in steps.
    #[inline(always)]
    pub(crate) fn stamps(&self, timed: bool) -> Stamps<'a> {
        if timed { Stamps::Times(self.moments.times) } else { Stamps::Positions(self.position) }
    }
}

/// What the loop works on, as slices: were they reached through vectors, each would have to be
/// looked up again after every word that is written.
struct Frame<'a> {
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
    divided: &'a mut [Divided],
    columns: &'a mut Columns,
    values: &'a mut ValueState,
}

impl<'a> Frame<'a> {
    #[inline(always)]
    fn new(
        step: Step<'a>,
        state: &'a mut State,
        divided: &'a mut [Divided],
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
            divided,
            columns: &mut registers.columns,
            values: &mut state.values,
        }
    }

    /// Runs instructions, the first of which computes the word `first`.
    #[inline(always)]
    fn run(&mut self, instructions: &[Instruction], first: usize) {
        let len = self.step.len;
        let mut next = 0;
        while let Some(instruction) = instructions.get(next) {
            // Sorts that are many and take no longer than a jump have loops of their own: nearly all of their
            // instructions follow each other, and what such a loop needs stays in registers.
            match instruction {
                Instruction::And { .. } => {
                    let words = &mut *self.words;
                    while let Some(&Instruction::And { a, b }) = instructions.get(next) {
                        words[first + next] = read(words, a) & read(words, b);
                        next += 1;
                    }
                }
                Instruction::Shift { .. } => {
                    let (words, bits) = (&mut *self.words, &mut *self.bits);
                    while let Some(&Instruction::Shift { x, by, state }) = instructions.get(next) {
                        let history = &mut bits[state as usize];
                        let x = read(words, x);
                        words[first + next] = words::shift(x, by.into(), *history);
                        *history = words::remember(*history, x, len);
                        next += 1;
                    }
                }
                Instruction::Recently { .. } => {
                    let (words, recently, rows) = (&mut *self.words, &mut *self.recently, self.step.rows);
                    while let Some(&Instruction::Recently { x, state }) = instructions.get(next) {
                        words[first + next] = recently[state as usize].step(read(words, x), len, rows);
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

    /// The word of an instruction that has no loop of its own; its column, if it has one, is written.
    #[inline(always)]
    fn evaluate(&mut self, instruction: &Instruction) -> Rows {
        let Step { block, len, rows, position, .. } = self.step;
        match *instruction {
            Instruction::False => 0,
            Instruction::On { topic } => self.step.of_events(block.topic_rows(TopicId(topic))),
            Instruction::Carried { slot } => {
                let present = match slot {
                    Slot::Bool(column) => block.bools(column).present,
                    Slot::Int(column) => block.ints(column).present,
                    Slot::Float(column) => block.floats(column).present,
                    Slot::String(column) => block.strings(column).present,
                };
                self.step.of_events(present)
            }
            Instruction::HeldBool { column, value, state: i } => {
                let column = block.bools(column);
                let is = if value { column.values } else { !column.values };
                let bit = &mut self.bits[i as usize];
                let present = self.step.of_events(column.present);
                let set = self.step.of_events(column.present & column.valid & is);
                let out = words::since(!present, set, *bit);
                *bit = words::last(out, len);
                out
            }
            Instruction::Since { p, q, state: i } => {
                let bit = &mut self.bits[i as usize];
                let out = words::since(read(self.words, p), read(self.words, q), *bit);
                *bit = words::last(out, len);
                out
            }
            Instruction::Delay { x, forget, state: i } => self.delays[i as usize].step(
                read(self.words, x),
                read(self.words, forget),
                position,
                len,
                rows,
            ),
            Instruction::Together
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
            // What works on columns costs more than a call, and stays out of this loop.
            _ => values::evaluate(instruction, self.step, self.words, self.columns, self.values),
        }
    }

    /// The instructions that take longer than a call.
    #[inline(never)]
    fn longer(&mut self, instruction: &Instruction) -> Rows {
        let moments = self.step.moments;
        match *instruction {
            Instruction::Together => {
                let Moments { times, before } = moments;
                let mut before = before;
                let mut out = 0;
                for (row, &time) in times.iter().enumerate() {
                    out |= Rows::from(time == before) << row;
                    before = time;
                }
                out
            }
            Instruction::TimedRecently { q, q_after, state, second } => {
                let q = Sides { at: read(self.words, q), after: read(self.words, q_after) };
                let out = self.timed_recently[state as usize].step(q, moments);
                self.seconds[second as usize] = out.after;
                out.at
            }
            Instruction::TimedSince { operands, state, second } => {
                let [p, q] = self.step.section.operands[operands as usize]
                    .map(|x| Sides { at: read(self.words, x.at), after: read(self.words, x.after) });
                let out = self.timed_since[state as usize].step(p, q, moments);
                self.seconds[second as usize] = out.after;
                out.at
            }
            Instruction::LookAhead { operands, state } => {
                let [p, q] = self.step.section.operands[operands as usize]
                    .map(|x| Sides { at: read(self.words, x.at), after: read(self.words, x.after) });
                self.ranges[state as usize].extend(p, q, moments);
                0
            }
            Instruction::LookedAhead { state, second } => {
                let out = self.ranges[state as usize].read(moments.times);
                self.seconds[second as usize] = out.after;
                out.at
            }
            Instruction::Lasting { x, state, second } => self.lasting(x, state, second),
            Instruction::Chain { chain, column, state, out } => self.chain(chain, column, state, out),
            Instruction::Line { line, sign, side, state } => self.line(line, sign, side, state),
            Instruction::After { second } => self.seconds[second as usize],
            Instruction::Machine { machine, out } => self.machine(machine, out),
            Instruction::MachineAfter { machine, out } => {
                self.machine_rows[machine as usize].after(self.columns, out)
            }
            Instruction::MachineInt { machine, variable, side, out } => {
                self.machine_rows[machine as usize].int(variable, side, self.columns, out)
            }
            Instruction::MachineFloat { machine, variable, side, out } => {
                self.machine_rows[machine as usize].float(variable, side, self.columns, out)
            }
            Instruction::MachineText { machine, variable, side, buffer, out } => {
                let texts = &mut self.columns.texts[out as usize];
                let buffers = &mut self.values.buffers;
                self.machine_rows[machine as usize].text(variable, side, buffer, buffers, texts)
            }
            Instruction::MachineTruth { machine, variable, side, value } => {
                self.machine_rows[machine as usize].truth(variable, side, value)
            }
            Instruction::Quantified { relation, second } => self.quantified(relation, second),
            Instruction::ByValue { number, second } => {
                let by_value = &self.step.section.by_value[number as usize];
                let [certain, possible] = self.divided[number as usize].step(by_value, self.step, self.words);
                self.seconds[second as usize] = possible;
                certain
            }
            // The loop computes the others.
            _ => 0,
        }
    }

    /// The truth of a quantified formula.
    fn quantified(&mut self, relation: u32, second: u32) -> Rows {
        let Step { section, block, start, events, len, position, moments, .. } = self.step;
        let (words, columns, buffers) = (&*self.words, &*self.columns, &*self.values.buffers);
        let reading = Registered { words, columns, block, start, events, buffers };
        let state = &mut self.relations[relation as usize];
        let out = section.relations[relation as usize].step(state, &reading, len, position, moments);
        self.seconds[second as usize] = out.after;
        out.at
    }

    /// The truth that a time is so long ago at most.
    fn lasting(&mut self, x: u32, state: u32, second: u32) -> Rows {
        let Lasting { known, span } = self.step.section.lasting[state as usize];
        let known = read(self.words, known);
        let until = &mut self.lasting[state as usize];
        let mut out = Sides::default();
        for (row, &time) in self.step.moments.times.iter().enumerate() {
            let (from, place) = (self.columns.ints[x as usize][row], timed::instant(time));
            let is_known = known >> row & 1 == 1;
            *until = if is_known { timed::later(timed::instant(from), span) } else { timed::NEVER };
            out.at |= Rows::from(*until >= place) << row;
            out.after |= Rows::from(*until > place) << row;
        }
        self.seconds[second as usize] = out.after;
        out.at
    }

    /// Where a line has a sign. Between the rows of the block it goes on as after the one before.
    fn line(&mut self, line: u32, sign: u8, side: u8, state: u32) -> Rows {
        let Step { lines, events, len, .. } = self.step;
        // Moments that time alone brings have none.
        let LineRows { at, after } = lines.get(line as usize).copied().unwrap_or_default();
        let bit = &mut self.bits[state as usize];
        let sign = usize::from(sign);
        let out = words::since(!events, self.step.of_events(after[sign]) & events, *bit);
        *bit = words::last(out, len);
        if side == 1 { out } else { self.step.of_events(at[sign]) & events | out & !events }
    }

    /// A column of a chain.
    fn chain(&mut self, chain: u32, column: ChainColumn, state: u32, out: u32) -> Rows {
        let Step { chains, events, len, .. } = self.step;
        let rows = chains.get(chain as usize);
        let last = &mut self.chains[state as usize];
        let mut known = 0;
        for (row, out) in self.columns.ints[out as usize].iter_mut().enumerate().take(len as usize) {
            if let Some(rows) = rows
                && events >> row & 1 == 1
            {
                *last = rows.get(column, self.step.event_row(row));
            }
            *out = last.unwrap_or(0);
            known |= Rows::from(last.is_some()) << row;
        }
        known
    }

    /// Takes a machine through the rows.
    #[inline(never)]
    fn machine(&mut self, machine: u32, out: u32) -> Rows {
        let Step { section, block, position, moments: Moments { times, mut before }, .. } = self.step;
        let reading =
            Reading { words: self.words, columns: self.columns, block, buffers: &self.values.buffers };
        let rows = &mut self.machine_rows[machine as usize];
        for (row, &time) in times.iter().enumerate() {
            let is_event = self.step.events >> row & 1 == 1;
            let position = position.saturating_add(row as u64);
            let moment = Moment { row, is_event, time, before, position };
            self.machines[machine as usize].step(&section.machines[machine as usize], &reading, moment, rows);
            before = time;
        }
        self.columns.ints[out as usize] = *rows.states[0];
        rows.ambiguous[0]
    }
}
