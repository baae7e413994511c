//! Records: the state of an instance as words. Bits are packed, numbers are stored as they are, and states of
//! variable size as references to the [heap](crate::keyed::heap).

use rondel_spec::TimeModel;
use serde::{Deserialize, Serialize};

use crate::exec::section::{Margin, Section, TimePoints};
use crate::exec::state::State;
use crate::ir::instruction::Instruction;
use crate::keyed::pools::PoolWords;
use crate::ops::timed;

/// Word with the key, or with bits of its hash.
pub(crate) const KEY: usize = 0;
/// Word with the number of events of the instance.
pub(crate) const POSITION: usize = 1;
/// First word with bits.
pub(crate) const BITS: usize = 2;

/// Value of the schedule word when no change is scheduled.
pub(crate) const UNPLANNED: i64 = i64::MAX;

/// Position that marks a free record.
pub(crate) const FREE: u64 = u64::MAX;

/// Maximum length of histories stored as bits; longer ones take a word.
const SHORT: u32 = 4;

/// Location of a single truth, or of its history.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Truths {
    /// Bits from this one on, the latest first.
    Bits(u32),
    /// Word with the latest truth in its lowest bit.
    Word(u32),
}

/// Location of the last value of a field: a word for the value, and a bit set while it is known.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct HeldAt {
    pub(crate) word: u32,
    pub(crate) known: u32,
}

/// Location of a truth that stays true for a while: the time until which it does, and whether its operand
/// still holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct RecentAt {
    pub(crate) until: u32,
    pub(crate) open: u32,
}

/// Locations of the state of a section in a record. Its lists are those of [`State`].
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct Places {
    pub(crate) truths: Vec<Truths>,
    pub(crate) recently: Vec<u32>,
    pub(crate) timed_recently: Vec<RecentAt>,
    /// States of variable size.
    pub(crate) pools: PoolWords,
    /// For every property, the first of four words with the least and greatest robustness on the open
    /// interval after the last time point, and the last emitted ones; only in dense time, and with
    /// robustness.
    pub(crate) margins: Vec<Option<u32>>,
    /// Relation states of quantified formulas.
    pub(crate) relations: Vec<u32>,
    /// Pending states of properties with future operators.
    pub(crate) pending: Vec<u32>,
    /// Delayed states of properties with future operators and robustness.
    pub(crate) delayed: Vec<u32>,
    pub(crate) sampled: Vec<u32>,
    pub(crate) held_ints: Vec<HeldAt>,
    pub(crate) held_floats: Vec<HeldAt>,
    pub(crate) known_texts: Vec<u32>,
    /// First of two words: the current value and the next one.
    pub(crate) latched_ints: Vec<u32>,
    pub(crate) latched_floats: Vec<u32>,
    /// For every stored text buffer, the word that refers to it; zero for constants.
    pub(crate) buffers: Vec<u32>,
    /// First bit of the last verdicts: two bits per property, those with future operators last. In dense time
    /// two more per property follow each, for the open interval after the last time point.
    pub(crate) verdicts: u32,
    /// Time of the last time point, if an operator reads it.
    pub(crate) time: Option<u32>,
    /// Next change by time of past operators, in dense time beside future operators: only such a change is a
    /// time point.
    pub(crate) past: Option<u32>,
    /// Scheduled time of the next change by time alone.
    pub(crate) planned: Option<u32>,
}

/// Layout of a record.
#[derive(Clone, Debug, Default)]
pub(crate) struct Layout {
    pub(crate) places: Places,
    /// Number of words of a record.
    pub(crate) words: usize,
    /// Number of bits in use.
    pub(crate) bits: usize,
    /// Number of words with bits.
    pub(crate) bit_words: usize,
    /// Words that refer to texts.
    pub(crate) texts: Vec<u32>,
    /// Masks of the bits of every word in which instances of equal state are equal.
    pub(crate) compared: Vec<u64>,
}

impl Layout {
    /// The layout for the state of a section.
    pub(crate) fn new(section: &Section) -> Layout {
        let Section { instructions, initial: state, .. } = section;
        let mut layout = Layout::default();
        // The words with bits follow the position; their number is known once all bits are allocated.
        layout.truths(instructions, state);
        layout.places.held_ints = layout.known(state.values.held_ints.len());
        layout.places.held_floats = layout.known(state.values.held_floats.len());
        layout.places.known_texts = state.values.known_texts.iter().map(|_| layout.bit(1)).collect();
        layout.places.timed_recently =
            state.timed_recently.iter().map(|_| RecentAt { until: 0, open: layout.bit(1) }).collect();
        let remembered = layout.bits;
        let dense = section.time_points == TimePoints::Dense;
        let halves = if dense { 2 } else { 1 };
        layout.places.verdicts = layout.bit(2 * halves * section.all_properties().count() as u32);
        layout.bit_words = layout.bits.div_ceil(64);
        layout.words = BITS + layout.bit_words;
        layout.compared = vec![0; layout.words];
        for bit in 0..remembered {
            layout.compared[BITS + bit / 64] |= 1 << (bit % 64);
        }

        for i in 0..layout.places.truths.len() {
            if let Truths::Word(_) = layout.places.truths[i] {
                layout.places.truths[i] = Truths::Word(layout.word());
            }
        }
        for i in 0..layout.places.held_ints.len() {
            layout.places.held_ints[i].word = layout.word();
        }
        for i in 0..layout.places.held_floats.len() {
            layout.places.held_floats[i].word = layout.word();
        }
        layout.places.recently = state.recently.iter().map(|_| layout.word()).collect();
        layout.places.latched_ints = layout.pairs(state.values.latched_ints.len());
        layout.places.latched_floats = layout.pairs(state.values.latched_floats.len());
        for i in 0..layout.places.timed_recently.len() {
            layout.places.timed_recently[i].until = layout.word_beside();
        }
        layout.places.pools = PoolWords::new(state, || layout.word_beside());
        layout.places.time = section.reads_time.then(|| layout.word_beside());
        layout.places.sampled = state.values.sampled.iter().map(|_| layout.word()).collect();
        let mut span = || [0; 4].map(|_: u8| layout.word_beside())[0];
        let robust = section.robust.iter().map(|margin| match margin {
            Some(Margin::Levels(_)) if dense => Some(span()),
            _ => None,
        });
        layout.places.margins = robust.collect();
        layout.places.relations = state.relations.iter().map(|_| layout.word_beside()).collect();
        // The template has no pending state.
        layout.places.pending = section.futures.iter().map(|_| layout.word()).collect();
        layout.places.delayed = section.robust_futures.iter().map(|_| layout.word()).collect();
        let by_time = section.properties_ahead().any(|(_, time)| time == TimeModel::Points);
        layout.places.past = (dense && section.looks_ahead()).then(|| layout.word_beside());
        layout.places.planned = (dense || by_time).then(|| layout.word_beside());
        layout.places.buffers = vec![0; state.values.buffers.len()];
        for instruction in instructions {
            match *instruction {
                Instruction::HeldText { buffer, .. } => layout.buffer(buffer),
                Instruction::LatchText { buffer, .. } => {
                    layout.buffer(buffer);
                    layout.buffer(buffer + 1);
                }
                _ => {}
            }
        }
        layout
    }

    fn truths(&mut self, instructions: &[Instruction], state: &State) {
        self.places.truths = vec![Truths::Bits(0); state.bits.len()];
        for instruction in instructions {
            let (state, truths) = match *instruction {
                Instruction::HeldBool { state, .. } | Instruction::Since { state, .. } => {
                    (state, Truths::Bits(self.bit(1)))
                }
                Instruction::Shift { by, state, .. } if u32::from(by) <= SHORT => {
                    (state, Truths::Bits(self.bit(by.into())))
                }
                Instruction::Shift { state, .. } => (state, Truths::Word(0)),
                _ => continue,
            };
            self.places.truths[state as usize] = truths;
        }
    }

    /// Allocates bits and returns the first.
    fn bit(&mut self, count: u32) -> u32 {
        self.bits += count as usize;
        self.bits as u32 - count
    }

    fn known(&mut self, count: usize) -> Vec<HeldAt> {
        (0..count).map(|_| HeldAt { word: 0, known: self.bit(1) }).collect()
    }

    fn word(&mut self) -> u32 {
        self.words += 1;
        self.compared.push(u64::MAX);
        self.words as u32 - 1
    }

    fn pairs(&mut self, count: usize) -> Vec<u32> {
        let mut pair = || (self.word(), self.word()).0;
        (0..count).map(|_| pair()).collect()
    }

    /// Allocates a word that is not compared bitwise for equality of state.
    fn word_beside(&mut self) -> u32 {
        let word = self.word();
        self.compared[word as usize] = 0;
        word
    }

    fn buffer(&mut self, buffer: u32) {
        let word = self.word_beside();
        self.places.buffers[buffer as usize] = word;
        self.texts.push(word);
    }

    /// Returns the record before the first time point.
    pub(crate) fn initial(&self) -> Vec<u64> {
        let mut record = vec![0; self.words];
        // No verdict yet: both of its bits are set.
        for bit in self.places.verdicts as usize..self.bits {
            record[BITS + bit / 64] |= 1 << (bit % 64);
        }
        for at in &self.places.timed_recently {
            record[at.until as usize] = timed::NEVER as u64;
        }
        if let Some(time) = self.places.time {
            record[time as usize] = i64::MIN as u64;
        }
        for word in [self.places.past, self.places.planned].into_iter().flatten() {
            record[word as usize] = UNPLANNED as u64;
        }
        record
    }
}
