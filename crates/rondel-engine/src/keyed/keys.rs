//! Keys of events: the parameter values of `for each`. A key that is no text, or a text of up to seven bytes,
//! is one word, stored in its record. Any other key is several words, its parts one after the other: a text
//! as its length and its bytes, eight in a word. Its record stores a hash of it.

use std::cmp::Ordering;

use rondel_event::{Block, Rows, Slot, TopicId, Value, ValueType};

/// Locations of the keys of a slice.
#[derive(Clone, Debug)]
pub(crate) struct KeyPlan {
    pub(crate) types: Vec<ValueType>,
    /// For every topic with keys, their columns in the block, in the order of the types.
    pub(crate) topics: Vec<(TopicId, Vec<Slot>)>,
}

impl KeyPlan {
    /// Whether a key is one word.
    pub(crate) fn is_word(&self) -> bool {
        matches!(self.types[..], [of] if of != ValueType::String)
    }

    /// Returns the rows whose topic has a key.
    pub(crate) fn rows(&self, block: &Block) -> Rows {
        self.topics.iter().fold(0, |rows, (topic, _)| rows | block.topic_rows(*topic))
    }

    /// Appends the values of a key.
    pub(crate) fn write(&self, key: &[u64], values: &mut Vec<Value>) {
        values.extend((0..).zip(&self.types).map(|(i, &of)| {
            let (word, words) = self.part(key, i);
            value_of(of, word, words)
        }));
    }

    /// Returns the values of a key.
    pub(crate) fn values(&self, key: &[u64]) -> Vec<Value> {
        let mut values = Vec::new();
        self.write(key, &mut values);
        values
    }

    /// Compares two keys by their first differing value.
    pub(crate) fn compare(&self, a: &[u64], b: &[u64]) -> Ordering {
        if a == b {
            return Ordering::Equal;
        }
        let of_part = |(i, &of): (u32, &ValueType)| {
            let [(x, a), (y, b)] = [a, b].map(|key| self.part(key, i));
            match of {
                ValueType::String => bytes(x, a).cmp(bytes(y, b)),
                _ => (x as i64).cmp(&(y as i64)),
            }
        };
        (0..).zip(&self.types).map(of_part).find(|order| order.is_ne()).unwrap_or(Ordering::Equal)
    }

    /// Returns one part of a key: its word, and for a text its length and its bytes in words.
    pub(crate) fn part<'a>(&self, key: &'a [u64], part: u32) -> (u64, &'a [u64]) {
        if let ([ValueType::String], [word]) = (&self.types[..], key) {
            return (short_len(*word), key);
        }
        let mut parts = key;
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

/// Maximum length of a text stored in one word: its bytes, and above them its length plus one.
const SHORT_TEXT: usize = 7;

fn short_text(len: usize, bytes: u64) -> u64 {
    bytes | (len as u64 + 1) << (8 * SHORT_TEXT)
}

fn short_len(word: u64) -> u64 {
    (word >> (8 * SHORT_TEXT)).saturating_sub(1).min(SHORT_TEXT as u64)
}

/// Returns the word of a key of several words: bits of its hash that no short text has.
fn hash_word(hash: u64) -> u64 {
    hash >> (u64::BITS as usize - 8 * SHORT_TEXT)
}

/// Whether the word of a key with a single text part is the whole key.
pub(crate) fn is_short_text(word: u64) -> bool {
    word >> (8 * SHORT_TEXT) != 0
}

/// Returns the bytes of a text with that length.
fn bytes(len: u64, words: &[u64]) -> impl Iterator<Item = u8> {
    words.iter().flat_map(|word| word.to_le_bytes()).take(len as usize)
}

/// Copies the text of a part of a key to `out`.
pub(crate) fn read_text(len: u64, words: &[u64], out: &mut Vec<u8>) {
    out.clear();
    out.extend(words.iter().flat_map(|word| word.to_le_bytes()));
    out.truncate(len as usize);
}

fn value_of(of: ValueType, word: u64, words: &[u64]) -> Value {
    match of {
        ValueType::String => {
            let mut text = Vec::new();
            read_text(word, words, &mut text);
            Value::String(match String::from_utf8(text) {
                Ok(text) => text.into(),
                Err(other) => String::from_utf8_lossy(other.as_bytes()).into(),
            })
        }
        _ => value_of_word(of, word),
    }
}

/// Returns the value of a key that is one word.
fn value_of_word(of: ValueType, word: u64) -> Value {
    match of {
        ValueType::Bool => Value::Bool(word != 0),
        ValueType::Time => Value::Time(word as i64),
        ValueType::Duration => Value::Duration(word as i64),
        _ => Value::Int(word as i64),
    }
}

/// Keys of the rows of a block.
#[derive(Clone, Debug)]
pub(crate) struct Keys {
    /// The key if it is one word, otherwise bits of its hash.
    pub(crate) words: [u64; Block::CAPACITY],
    /// Tags of the words, for the index.
    pub(crate) tags: [u32; Block::CAPACITY],
    ranges: [(u32, u32); Block::CAPACITY],
    parts: Vec<u64>,
    /// Rows whose key exceeds the maximum length.
    pub(crate) too_long: Rows,
}

/// Maximum length of a key in words: 64 KiB.
const LONGEST: usize = 8 << 10;

/// Stored key of several words; short ones are stored inline.
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

    /// Whether it equals these parts. Comparing slices would be a call, which is slower for a few words.
    #[inline(always)]
    pub(crate) fn is(&self, parts: &[u64]) -> bool {
        let own = self.parts();
        own.len() == parts.len() && own.iter().zip(parts).all(|(a, b)| a == b)
    }

    /// Size in bytes on the heap.
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
            too_long: 0,
        }
    }

    /// Returns the key of a row if it is several words.
    #[inline(always)]
    pub(crate) fn parts(&self, row: usize) -> &[u64] {
        let (start, end) = self.ranges[row];
        &self.parts[start as usize..end as usize]
    }

    /// Returns the key of a row.
    pub(crate) fn key(&self, row: usize) -> &[u64] {
        key(&self.words[row], self.parts(row))
    }

    /// Reads the keys of these rows of a block. Returns the rows that have one.
    pub(crate) fn read(&mut self, plan: &KeyPlan, block: &Block, of: Rows) -> Rows {
        if self.parts.capacity() > Block::CAPACITY * LONGEST {
            self.parts = Vec::new();
        }
        self.parts.clear();
        self.too_long = 0;
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
                [Slot::String(column)] => for_each(rows, |row| match block.text_begin(column, row) {
                    (len @ ..=SHORT_TEXT, bytes) => {
                        self.ranges[row] = (0, 0);
                        self.set_word(row, short_text(len, bytes));
                    }
                    _ => self.set_parts(row, |key| key.add_text(block, column, row)),
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
        self.tags[row] = tag(word);
    }

    #[inline(never)]
    fn set_parts(&mut self, row: usize, add: impl FnOnce(&mut Parts<'_>)) {
        // A block has at most 4 GiB of text and few rows: word indexes fit.
        let start = self.parts.len() as u32;
        let mut key = Parts { parts: &mut self.parts, hash: SEEDS[2] };
        add(&mut key);
        let hash = mix(key.hash ^ SEEDS[0], SEEDS[1]);
        self.ranges[row] = (start, self.parts.len() as u32);
        self.too_long |= Rows::from(self.parts.len() - start as usize > LONGEST) << row;
        self.set_word(row, hash_word(hash));
    }
}

/// Returns a key: its parts, or if it has none its single word.
#[inline(always)]
pub(crate) fn key<'a>(word: &'a u64, parts: &'a [u64]) -> &'a [u64] {
    if parts.is_empty() { std::slice::from_ref(word) } else { parts }
}

/// Parts of a key being read, and their hash.
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

/// Digits of pi: without pattern, and the same on every machine.
const SEEDS: [u64; 3] = [0x243F_6A88_85A3_08D3, 0x1319_8A2E_0370_7345, 0xA409_3822_299F_31D1];

/// Xor of both halves of the product: every bit of either factor reaches the middle.
#[inline(always)]
fn mix(a: u64, b: u64) -> u64 {
    let product = u128::from(a) * u128::from(b);
    product as u64 ^ (product >> 64) as u64
}

/// Returns the tag of a key's word: bits of its hash.
#[inline(always)]
pub(crate) fn tag(word: u64) -> u32 {
    (mix(word ^ SEEDS[0], SEEDS[1]) >> 32) as u32
}

#[cfg(test)]
mod tests {
    use rondel_event::{Layout, Timestamp};

    use super::*;

    #[test]
    fn different_keys_have_different_words() {
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
        assert_eq!(plan.values(keys.key(1)), values);
        let order = |a, b| plan.compare(keys.key(a), keys.key(b));
        assert_eq!(
            [order(0, 4), order(0, 1), order(3, 0)],
            [Ordering::Equal, Ordering::Less, Ordering::Greater]
        );
        assert_eq!(order(2, 0), Ordering::Less, "the empty text comes first");
        let kept = KeptKey::new(keys.parts(1));
        assert!(kept.is(keys.parts(1)) && !kept.is(keys.parts(0)) && !KeptKey::EMPTY.is(keys.parts(1)));
    }

    #[test]
    fn short_texts_are_words() {
        let texts = ["", "\0", "a", "DLH1234", "DLH1234\0", "DLH12345", "DLH12345678901234", "\u{ff}abcde"];
        let mut block = Block::new(Layout { topics: 1, strings: 1, ..Layout::default() });
        for text in texts {
            let row = block.push(TopicId(0), Timestamp::ZERO);
            block.set_string(0, row, text);
        }
        let plan =
            KeyPlan { types: vec![ValueType::String], topics: vec![(TopicId(0), vec![Slot::String(0)])] };
        let mut keys = Keys::new();
        keys.read(&plan, &block, Rows::MAX);
        for (row, text) in texts.into_iter().enumerate() {
            assert_eq!(keys.key(row).len() == 1, text.len() <= 7);
            assert_eq!(is_short_text(keys.words[row]), text.len() <= 7);
            assert_eq!(plan.values(keys.key(row)), [Value::String(text.into())]);
            (0..row).for_each(|other| {
                assert_eq!(
                    plan.compare(keys.key(row), keys.key(other)),
                    text.as_bytes().cmp(texts[other].as_bytes())
                );
            });
            assert!((0..row).all(|other| keys.key(row) != keys.key(other)));
            assert!((0..row).all(|other| keys.words[row] != keys.words[other]));
        }
    }

    #[test]
    fn missing_or_invalid_key_is_no_key() {
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
