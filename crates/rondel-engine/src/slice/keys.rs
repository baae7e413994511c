//! The keys of events. The key of a slice with one key that is no text is one word; any other is
//! bytes, in which its parts follow each other.

use rondel_event::{Block, Rows, Slot, TopicId, Value, ValueType};

/// Where the keys of a slice are.
#[derive(Clone, Debug)]
pub(crate) struct KeyPlan {
    pub(crate) types: Vec<ValueType>,
    /// For every topic with keys where the block has them, in the order of the types.
    pub(crate) topics: Vec<(TopicId, Vec<Slot>)>,
}

impl KeyPlan {
    /// Whether a key is one word.
    pub(crate) fn is_word(&self) -> bool {
        matches!(self.types[..], [of] if of != ValueType::String)
    }

    /// The rows whose topic has a key.
    pub(crate) fn rows(&self, block: &Block) -> Rows {
        self.topics.iter().fold(0, |rows, (topic, _)| rows | block.topic_rows(*topic))
    }

    /// Adds the values of a key.
    pub(crate) fn write(&self, word: u64, bytes: &[u8], values: &mut Vec<Value>) {
        match self.types[..] {
            [of] if self.is_word() => values.push(value_of_word(of, word)),
            _ => values.extend((0..).zip(&self.types).map(|(i, &of)| value_of(of, self.part(bytes, i)))),
        }
    }

    /// The values of a key.
    pub(crate) fn values(&self, word: u64, bytes: &[u8]) -> Vec<Value> {
        let mut values = Vec::new();
        self.write(word, bytes, &mut values);
        values
    }

    /// One part of a key that is bytes: the word or the text.
    pub(crate) fn part<'a>(&self, mut bytes: &'a [u8], part: u32) -> (u64, &'a [u8]) {
        for (i, &of) in self.types.iter().enumerate() {
            let (word, rest) = bytes.split_first_chunk().unwrap_or((&[0; 8], &[]));
            let word = u64::from_le_bytes(*word);
            let text = if of == ValueType::String { rest.len().min(word as usize) } else { 0 };
            let (text, rest) = rest.split_at(text);
            if i == part as usize {
                return (word, text);
            }
            bytes = rest;
        }
        (0, &[])
    }
}

fn value_of(of: ValueType, (word, text): (u64, &[u8])) -> Value {
    match of {
        ValueType::String => Value::String(String::from_utf8_lossy(text).into()),
        _ => value_of_word(of, word),
    }
}

/// The value of a key that is a word.
fn value_of_word(of: ValueType, word: u64) -> Value {
    match of {
        ValueType::Bool => Value::Bool(word != 0),
        ValueType::Time => Value::Time(word as i64),
        ValueType::Duration => Value::Duration(word as i64),
        _ => Value::Int(word as i64),
    }
}

/// The keys of the rows of a block.
#[derive(Clone, Debug)]
pub(crate) struct Keys {
    /// The key, if it is a word, else 64 bits of its hash.
    pub(crate) words: [u64; Block::CAPACITY],
    /// 32 other bits of the hash, for the index.
    pub(crate) tags: [u32; Block::CAPACITY],
    ranges: [(u32, u32); Block::CAPACITY],
    bytes: Vec<u8>,
}

impl Keys {
    pub(crate) fn new() -> Keys {
        Keys {
            words: [0; Block::CAPACITY],
            tags: [0; Block::CAPACITY],
            ranges: [(0, 0); Block::CAPACITY],
            bytes: Vec::new(),
        }
    }

    /// The key of a row, if it is bytes.
    pub(crate) fn bytes(&self, row: usize) -> &[u8] {
        let (start, end) = self.ranges[row];
        &self.bytes[start as usize..end as usize]
    }

    /// Reads the keys of a block, and says which rows have one.
    pub(crate) fn read(&mut self, plan: &KeyPlan, block: &Block) -> Rows {
        self.bytes.clear();
        let mut keyed = 0;
        for (topic, slots) in &plan.topics {
            let rows = slots.iter().fold(block.topic_rows(*topic), |rows, &slot| rows & valid(block, slot));
            keyed |= rows;
            match slots[..] {
                [Slot::Int(column)] => {
                    let column = block.ints(column);
                    for_each(rows, |row| self.set_word(row, column.values[row] as u64));
                }
                [Slot::Bool(column)] => {
                    let column = block.bools(column);
                    for_each(rows, |row| self.set_word(row, column.values >> row & 1));
                }
                _ => for_each(rows, |row| self.set_bytes(row, slots, block)),
            }
        }
        keyed
    }

    #[inline(always)]
    fn set_word(&mut self, row: usize, word: u64) {
        self.words[row] = word;
        self.tags[row] = tag_of_word(word);
    }

    fn set_bytes(&mut self, row: usize, slots: &[Slot], block: &Block) {
        let start = self.bytes.len();
        for &slot in slots {
            let (word, text) = match slot {
                Slot::Bool(column) => (block.bools(column).values >> row & 1, &[][..]),
                Slot::Int(column) => (block.ints(column).values[row] as u64, &[][..]),
                Slot::Float(column) => (block.floats(column).values[row].to_bits(), &[][..]),
                Slot::String(column) => {
                    let text = block.text(column, row);
                    (text.len() as u64, text)
                }
            };
            self.bytes.extend_from_slice(&word.to_le_bytes());
            self.bytes.extend_from_slice(text);
        }
        // The text of a block is at most 4 GiB; numbers beside it might go beyond, and are cut off.
        let place = |at: usize| u32::try_from(at).unwrap_or(u32::MAX);
        self.ranges[row] = (place(start), place(self.bytes.len()));
        let hash = hash_bytes(self.bytes(row));
        self.words[row] = hash;
        self.tags[row] = tag_of_hash(hash);
    }
}

fn valid(block: &Block, slot: Slot) -> Rows {
    match slot {
        Slot::Bool(i) => block.bools(i).present & block.bools(i).valid,
        Slot::Int(i) => block.ints(i).present & block.ints(i).valid,
        Slot::Float(i) => block.floats(i).present & block.floats(i).valid,
        Slot::String(i) => block.strings(i).present & block.strings(i).valid,
    }
}

/// Calls `f` with every row of a set, in order.
#[inline(always)]
pub(crate) fn for_each(mut rows: Rows, mut f: impl FnMut(usize)) {
    if rows == Rows::MAX {
        (0..Block::CAPACITY).for_each(f);
        return;
    }
    while rows != 0 {
        f(rows.trailing_zeros() as usize % Block::CAPACITY);
        rows &= rows - 1;
    }
}

/// Digits of pi, as good as any: without pattern, and the same on every machine.
const SEEDS: [u64; 3] = [0x243F_6A88_85A3_08D3, 0x1319_8A2E_0370_7345, 0xA409_3822_299F_31D1];

/// Both halves of a product: every bit of either factor reaches the middle.
#[inline(always)]
fn mix(a: u64, b: u64) -> u64 {
    let product = u128::from(a) * u128::from(b);
    product as u64 ^ (product >> 64) as u64
}

#[inline(always)]
pub(crate) fn tag_of_word(word: u64) -> u32 {
    (mix(word ^ SEEDS[0], SEEDS[1]) >> 32) as u32
}

#[inline(always)]
pub(crate) fn tag_of_hash(hash: u64) -> u32 {
    (hash >> 32) as u32
}

fn hash_bytes(bytes: &[u8]) -> u64 {
    let mut hash = SEEDS[2] ^ bytes.len() as u64;
    let mut chunks = bytes.chunks_exact(8);
    for chunk in &mut chunks {
        let word = chunk.iter().rev().fold(0, |word, &byte| word << 8 | u64::from(byte));
        hash = mix(hash ^ word, SEEDS[1]);
    }
    let rest = chunks.remainder().iter().rev().fold(0, |word, &byte| word << 8 | u64::from(byte));
    mix(hash ^ rest ^ SEEDS[0], SEEDS[1])
}

#[cfg(test)]
mod tests {
    use rondel_event::{Layout, Timestamp};

    use super::*;

    #[test]
    fn different_keys_are_different_bytes() {
        let mut block = Block::new(Layout { topics: 1, ints: 1, strings: 2, ..Layout::default() });
        for (a, n, b) in [("a", 1, "bc"), ("ab", 1, "c"), ("", 1, "abc"), ("a", 2, "bc"), ("a", 1, "bc")] {
            let row = block.push(TopicId(0), Timestamp::ZERO);
            block.set_string(0, row, a);
            block.set_int(0, row, n);
            block.set_string(1, row, b);
        }
        let plan = KeyPlan {
            types: vec![ValueType::String, ValueType::Int, ValueType::String],
            topics: vec![(TopicId(0), vec![Slot::String(0), Slot::Int(0), Slot::String(1)])],
        };
        let mut keys = Keys::new();
        assert_eq!(keys.read(&plan, &block), 0b11111);
        for row in 0..4 {
            for other in 0..row {
                assert_ne!(keys.bytes(row), keys.bytes(other));
                assert_ne!(keys.words[row], keys.words[other]);
            }
        }
        assert_eq!(keys.bytes(0), keys.bytes(4));
        let values = [Value::String("ab".into()), Value::Int(1), Value::String("c".into())];
        assert_eq!(plan.values(0, keys.bytes(1)), values);
    }

    #[test]
    fn a_key_that_is_missing_or_no_key_is_none() {
        let mut block = Block::new(Layout { topics: 2, ints: 1, bools: 1, ..Layout::default() });
        let row = block.push(TopicId(0), Timestamp::ZERO);
        block.set_int(0, row, 5);
        let row = block.push(TopicId(0), Timestamp::ZERO);
        block.set_invalid(Slot::Int(0), row);
        block.push(TopicId(0), Timestamp::ZERO);
        let row = block.push(TopicId(1), Timestamp::ZERO);
        block.set_int(0, row, 5);
        let plan = KeyPlan { types: vec![ValueType::Int], topics: vec![(TopicId(0), vec![Slot::Int(0)])] };
        assert!(plan.is_word());
        assert_eq!(Keys::new().read(&plan, &block), 1);
        assert_eq!(plan.rows(&block), 0b111);
    }
}
