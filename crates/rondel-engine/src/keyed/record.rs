//! What an instance remembers, as words: bits together, numbers as they are, and what has no fixed
//! size as a reference to a [side](crate::keyed::sides).

use rondel_spec::TimeModel;
use serde::{Deserialize, Serialize};

use crate::exec::section::{Margin, Section, TimePoints};
use crate::exec::state::State;
use crate::ir::instruction::Instruction;
use crate::keyed::pools::PoolWords;
use crate::ops::timed;

/// The word with the key: itself, or 64 bits of its hash.
pub(crate) const KEY: usize = 0;
/// The word with the count of events that the instance has seen.
pub(crate) const POSITION: usize = 1;
/// The first word with bits.
pub(crate) const BITS: usize = 2;

/// Where no change is planned.
pub(crate) const UNPLANNED: i64 = i64::MAX;

/// The position of a record that is nobody's.
pub(crate) const FREE: u64 = u64::MAX;

/// Histories up to this long are bits, longer ones have a word.
const SHORT: u32 = 4;

/// Where a single truth, or the history of one, is kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Truths {
    /// So many bits from this one on, the latest first.
    Bits(u32),
    /// A word, the latest in its lowest bit.
    Word(u32),
}

/// The last value of a field: a word for the value, and a bit that says whether it is known.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct HeldAt {
    pub(crate) word: u32,
    pub(crate) known: u32,
}

/// The state of a truth that counts for a while: until when, and whether it holds on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct RecentAt {
    pub(crate) until: u32,
    pub(crate) open: u32,
}

/// The places of the state of a section in a record. Its lists are as those of [`State`].
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct Places {
    pub(crate) truths: Vec<Truths>,
    pub(crate) recently: Vec<u32>,
    pub(crate) timed_recently: Vec<RecentAt>,
    /// What has no fixed size.
    pub(crate) pools: PoolWords,
    /// For every property whose robustness is asked for, and if so of two words the first: in dense time, what it is
    /// on the span after the last moment.
    pub(crate) margins: Vec<Option<u32>>,
    /// What quantified formulas are made of.
    pub(crate) relations: Vec<u32>,
    /// What properties that look ahead have pending.
    pub(crate) pending: Vec<u32>,
    /// The same of those whose robustness is asked for.
    pub(crate) delayed: Vec<u32>,
    pub(crate) sampled: Vec<u32>,
    pub(crate) held_ints: Vec<HeldAt>,
    pub(crate) held_floats: Vec<HeldAt>,
    pub(crate) known_texts: Vec<u32>,
    /// Of two words the first: what is given, and what will be given next.
    pub(crate) latched_ints: Vec<u32>,
    pub(crate) latched_floats: Vec<u32>,
    /// For every buffer of a text that is kept the word that refers to it; zero for constants.
    pub(crate) buffers: Vec<u32>,
    /// The first of the bits with the last verdicts: two for each property, those that look ahead last. In dense time those on the span
    /// after the last moment follow.
    pub(crate) verdicts: u32,
    /// The time of the last moment, where that is asked for.
    pub(crate) time: Option<u32>,
    /// Where properties look ahead, when something of the past changes by itself: that is a moment.
    pub(crate) past: Option<u32>,
    /// When the instance was planned to change by itself, where that matters.
    pub(crate) planned: Option<u32>,
}

/// What a record is made of.
#[derive(Clone, Debug, Default)]
pub(crate) struct Layout {
    pub(crate) places: Places,
    /// How many words a record has.
    pub(crate) words: usize,
    /// How many bits are in use.
    pub(crate) bits: usize,
    /// How many words they take.
    pub(crate) bit_words: usize,
    /// The words that refer to texts.
    pub(crate) texts: Vec<u32>,
    /// The parts of every word in which two instances that remember the same are equal.
    pub(crate) compared: Vec<u64>,
}

impl Layout {
    /// The layout for the state of a section.
    pub(crate) fn new(section: &Section) -> Layout {
        let Section { instructions, initial: state, .. } = section;
        let mut layout = Layout::default();
        // Bits have the words after the position; how many is known only when all have a number.
        layout.truths(instructions, state);
        layout.places.held_ints = layout.known(state.values.held_ints.len());
        layout.places.held_floats = layout.known(state.values.held_floats.len());
        layout.places.known_texts = state.values.known_texts.iter().map(|_| layout.bit(1)).collect();
        layout.places.timed_recently =
            state.timed_recently.iter().map(|_| RecentAt { until: 0, open: layout.bit(1) }).collect();
        let remembered = layout.bits;
        let dense = section.time_points == TimePoints::Dense;
        let sides = if dense { 2 } else { 1 };
        layout.places.verdicts = layout.bit(2 * sides * section.all_properties().count() as u32);
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
        // Nothing is pending with the template.
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

    /// So many bits; the number of the first.
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

    /// A word from which it is not seen that two instances remember the same.
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

    /// The record before the first moment.
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
