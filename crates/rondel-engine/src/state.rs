use rondel_event::Block;

use crate::delay::Delay;
use crate::texts::TextColumn;
use crate::words::Recently;

/// What a monitor carries from block to block: plain data.
#[derive(Clone, Debug, Default)]
pub(crate) struct State {
    /// Single truths (0 or 1), and for shifts the last 64.
    pub(crate) bits: Vec<u64>,
    pub(crate) recently: Vec<Recently>,
    pub(crate) delays: Vec<Delay>,
    pub(crate) held_ints: Vec<Held<i64>>,
    pub(crate) held_floats: Vec<Held<f64>>,
    pub(crate) latched_ints: Vec<Latched<i64>>,
    pub(crate) latched_floats: Vec<Latched<f64>>,
    /// Constants, and texts of earlier blocks.
    pub(crate) buffers: Vec<Vec<u8>>,
}

/// The last value of a field.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Held<T> {
    pub(crate) value: T,
    /// 0 or 1.
    pub(crate) known: u64,
}

/// What a latch gives, and what it will give at the next tick.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Latched<T> {
    pub(crate) now: T,
    pub(crate) next: T,
}

/// What is computed for one block. Nothing in it but the constants outlives the block.
#[derive(Clone, Debug, Default)]
pub(crate) struct Registers {
    pub(crate) words: Vec<u64>,
    pub(crate) ints: Vec<[i64; Block::CAPACITY]>,
    pub(crate) floats: Vec<[f64; Block::CAPACITY]>,
    pub(crate) texts: Vec<TextColumn>,
}
