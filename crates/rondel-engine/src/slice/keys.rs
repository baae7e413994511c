//! The keys of events. The key of a slice with one key that is no text is one word; any other is
//! several, in which its parts follow each other: a text as its length and its bytes, eight in a word.

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
    pub(crate) fn write(&self, word: u64, parts: &[u64], values: &mut Vec<Value>) {
        match self.types[..] {
            [of] if self.is_word() => values.push(value_of_word(of, word)),
            _ => values.extend((0..).zip(&self.types).map(|(i, &of)| value_of(of, self.part(parts, i)))),
        }
    }

    /// The values of a key.
    pub(crate) fn values(&self, word: u64, parts: &[u64]) -> Vec<Value> {
        let mut values = Vec::new();
        self.write(word, parts, &mut values);
        values
    }

    /// One part of a key of several words: its word, and if it is a text, that in words.
    pub(crate) fn part<'a>(&self, mut parts: &'a [u64], part: u32) -> (u64, &'a [u64]) {
        for (i, &of) in self.types.iter().enumerate() {
            let (&word, rest) = parts.split_first().unwrap_or((&0, &[]));
            let text = if of == ValueType::String { word.div_ceil(8) } else { 0 };
            let (text, rest) = rest.split_at(rest.len().min(text as usize));
            if i == part as usize {
                return (word, text);
            }
            parts = rest;
        }
        (0, &[])
    }
}

/// Makes `out` the text of a part of a key.
pub(crate) fn read_text((len, words): (u64, &[u64]), out: &mut Vec<u8>) {
    out.clear();
    out.extend(words.iter().flat_map(|word| word.to_le_bytes()));
    out.truncate(len as usize);
}

fn value_of(of: ValueType, part: (u64, &[u64])) -> Value {
    match of {
        ValueType::String => {
            let mut text = Vec::new();
            read_text(part, &mut text);
            Value::String(match String::from_utf8(text) {
                Ok(text) => text.into(),
                Err(other) => String::from_utf8_lossy(other.as_bytes()).into(),
            })
        }
        _ => value_of_word(of, part.0),
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
    parts: Vec<u64>,
}

/// A key of several words that is kept: a short one in place.
#[derive(Clone, Debug)]
pub(crate) enum KeptKey {
    Short { len: u8, words: [u64; KeptKey::SHORT] },
    Long(Box<[u64]>),
}

impl KeptKey {
    /// A text of up to 16 bytes, or three numbers.
    const SHORT: usize = 3;
    pub(crate) const EMPTY: KeptKey = KeptKey::Short { len: 0, words: [0; _] };

    pub(crate) fn new(parts: &[u64]) -> KeptKey {
        if parts.len() > KeptKey::SHORT {
            return KeptKey::Long(parts.into());
        }
        let mut words = [0; _];
        words[..parts.len()].copy_from_slice(parts);
        KeptKey::Short { len: parts.len() as u8, words }
    }

    #[inline(always)]
    pub(crate) fn parts(&self) -> &[u64] {
        match self {
            KeptKey::Short { len, words } => &words[..usize::from(*len).min(KeptKey::SHORT)],
            KeptKey::Long(words) => words,
        }
    }

    /// Whether it is this key. Not by comparing slices: for a few words that is a call that takes longer.
    #[inline(always)]
    pub(crate) fn is(&self, parts: &[u64]) -> bool {
        let own = self.parts();
        own.len() == parts.len() && own.iter().zip(parts).all(|(a, b)| a == b)
    }

    /// How many bytes it takes beside itself.
    pub(crate) fn bytes(&self) -> usize {
        match self {
            KeptKey::Short { .. } => 0,
            KeptKey::Long(words) => size_of_val(&words[..]),
        }
    }
}

impl Keys {
    pub(crate) fn new() -> Keys {
        Keys {
            words: [0; Block::CAPACITY],
            tags: [0; Block::CAPACITY],
            ranges: [(0, 0); Block::CAPACITY],
            parts: Vec::new(),
        }
    }

    /// The key of a row, if it is several words.
    #[inline(always)]
    pub(crate) fn parts(&self, row: usize) -> &[u64] {
        let (start, end) = self.ranges[row];
        &self.parts[start as usize..end as usize]
    }

    /// Reads the keys of these rows of a block, and says which have one.
    pub(crate) fn read(&mut self, plan: &KeyPlan, block: &Block, of: Rows) -> Rows {
        self.parts.clear();
        let mut keyed = 0;
        for (topic, slots) in &plan.topics {
            let rows = block.topic_rows(*topic) & of;
            let rows = slots.iter().fold(rows, |rows, &slot| rows & valid(block, slot));
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
                [Slot::String(column)] => for_each(rows, |row| {
                    self.set_parts(row, |key| key.add_text(block, column, row));
                }),
                _ => for_each(rows, |row| {
                    self.set_parts(row, |key| {
                        for &slot in slots {
                            match slot {
                                Slot::Bool(column) => key.add(block.bools(column).values >> row & 1),
                                Slot::Int(column) => key.add(block.ints(column).values[row] as u64),
                                Slot::Float(column) => key.add(block.floats(column).values[row].to_bits()),
                                Slot::String(column) => key.add_text(block, column, row),
                            }
                        }
                    });
                }),
            }
        }
        keyed
    }

    #[inline(always)]
    fn set_word(&mut self, row: usize, word: u64) {
        self.words[row] = word;
        self.tags[row] = tag_of_word(word);
    }

    #[inline(always)]
    fn set_parts(&mut self, row: usize, add: impl FnOnce(&mut Parts<'_>)) {
        // The text of a block is at most 4 GiB, and there are few rows: numbers of words fit.
        let start = self.parts.len() as u32;
        let mut key = Parts { parts: &mut self.parts, hash: SEEDS[2] };
        add(&mut key);
        let hash = mix(key.hash ^ SEEDS[0], SEEDS[1]);
        self.ranges[row] = (start, self.parts.len() as u32);
        self.words[row] = hash;
        self.tags[row] = tag_of_hash(hash);
    }
}

/// The parts of a key that is being read, and their hash.
struct Parts<'a> {
    parts: &'a mut Vec<u64>,
    hash: u64,
}

impl Parts<'_> {
    #[inline(always)]
    fn add(&mut self, word: u64) {
        self.parts.push(word);
        self.hash = mix(self.hash ^ word, SEEDS[1]);
    }

    #[inline(always)]
    fn add_text(&mut self, block: &Block, column: u32, row: usize) {
        let len = block.text(column, row).len();
        self.add(len as u64);
        let mut at = 0;
        while at < len {
            self.add(block.text_word(column, row, at));
            at += 8;
        }
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

#[cfg(test)]
mod tests {
    use rondel_event::{Layout, Timestamp};

    use super::*;

    #[test]
    fn different_keys_are_different_words() {
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
        assert_eq!(keys.read(&plan, &block, Rows::MAX), 0b11111);
        for row in 0..4 {
            for other in 0..row {
                assert_ne!(keys.parts(row), keys.parts(other));
                assert_ne!(keys.words[row], keys.words[other]);
            }
        }
        assert_eq!(keys.parts(0), keys.parts(4));
        let values = [Value::String("ab".into()), Value::Int(1), Value::String("c".into())];
        assert_eq!(plan.values(0, keys.parts(1)), values);
        let kept = KeptKey::new(keys.parts(1));
        assert!(kept.is(keys.parts(1)) && !kept.is(keys.parts(0)) && !KeptKey::EMPTY.is(keys.parts(1)));
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
        assert_eq!(Keys::new().read(&plan, &block, Rows::MAX), 1);
        assert_eq!(Keys::new().read(&plan, &block, !1), 0);
        assert_eq!(plan.rows(&block), 0b111);
    }
}
