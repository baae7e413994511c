//! Index of records by key: a hash table from tags, 32 bits of the key's hash, to record numbers. The keys
//! themselves are in the records.
//!
//! A slot is one word, the tag above the record number; record 0 has no key, so that a zero word is an empty
//! slot. The upper bits of the tag are its home slot: growing the table is one sequential pass over the old
//! and the new slots, and needs no key.

#[derive(Clone, Debug)]
pub(crate) struct Index {
    /// Slots: a power of two, at least 16.
    slots: Vec<u64>,
    len: usize,
    /// Number of tag bits below the home slot.
    shift: u32,
}

impl Index {
    pub(crate) fn new() -> Index {
        Index { slots: vec![0; 16], len: 0, shift: 28 }
    }

    /// Returns the home slot of a tag. Reading it early prefetches it.
    #[inline(always)]
    pub(crate) fn first(&self, tag: u32) -> u64 {
        self.slots[(tag >> self.shift) as usize]
    }

    /// Returns the position at which the search for a tag begins.
    #[inline(always)]
    pub(crate) fn begin(&self, tag: u32) -> usize {
        (tag >> self.shift) as usize & (self.slots.len() - 1)
    }

    /// Returns the next record with this tag; the search continues behind it. The caller compares keys, as a
    /// closure would not always be inlined.
    #[inline(always)]
    pub(crate) fn next(&self, tag: u32, at: &mut usize) -> Option<u32> {
        // There is always an empty slot.
        loop {
            let slot = self.slots[*at];
            if slot == 0 {
                return None;
            }
            *at = (*at + 1) & (self.slots.len() - 1);
            if (slot >> 32) as u32 == tag {
                return Some(slot as u32);
            }
        }
    }

    /// Adds a record that is not in the index.
    pub(crate) fn insert(&mut self, tag: u32, record: u32) {
        // A load of up to one half: nearly all searches end at their home slot, and branches are well
        // predicted.
        if (self.len + 1) * 2 > self.slots.len() && self.shift > 1 {
            self.grow();
        }
        self.len += 1;
        put(&mut self.slots, self.shift, u64::from(tag) << 32 | u64::from(record));
    }

    fn grow(&mut self) {
        self.shift -= 1;
        let old = std::mem::replace(&mut self.slots, vec![0; 1 << (32 - self.shift)]);
        for slot in old.into_iter().filter(|&slot| slot != 0) {
            put(&mut self.slots, self.shift, slot);
        }
    }

    /// Removes a record.
    pub(crate) fn remove(&mut self, tag: u32, record: u32) {
        let last = self.slots.len() - 1;
        let mut at = self.begin(tag);
        while let Some(other) = self.next(tag, &mut at)
            && other != record
        {}
        // Behind the record if it was found, otherwise at an empty slot.
        let mut hole = at.wrapping_sub(1) & last;
        if self.slots[hole] != (u64::from(tag) << 32 | u64::from(record)) {
            return;
        }
        self.len -= 1;
        at = hole;
        // Slots behind the hole whose home is at or before it move up.
        loop {
            at = (at + 1) & last;
            let slot = self.slots[at];
            if slot == 0 {
                break;
            }
            let home = (slot >> 32 >> self.shift) as usize & last;
            if at.wrapping_sub(home) & last >= at.wrapping_sub(hole) & last {
                self.slots[hole] = slot;
                hole = at;
            }
        }
        self.slots[hole] = 0;
    }

    /// Size in bytes.
    pub(crate) fn bytes(&self) -> usize {
        self.slots.capacity() * size_of::<u64>()
    }
}

/// Writes a slot into the first empty one from its home on.
#[inline(always)]
fn put(slots: &mut [u64], shift: u32, slot: u64) {
    let last = slots.len() - 1;
    let mut at = (slot >> 32 >> shift) as usize & last;
    while slots[at] != 0 {
        at = (at + 1) & last;
    }
    slots[at] = slot;
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;

    use super::*;

    #[test]
    fn index_equals_hash_map() {
        // Tags from few places, so that searches run into each other and around the end.
        let tag = |x: u64| match x % 3 {
            0 => u32::MAX - (x >> 8) as u32 % 5,
            1 => (x >> 8) as u32 % 3,
            _ => (x >> 20) as u32,
        };
        let (mut index, mut model) = (Index::new(), HashMap::new());
        let mut x = 0x9E37_79B9_7F4A_7C15_u64;
        for i in 0..20_000 {
            x = x.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            let record = (x >> 33) as u32 % 300 + 1;
            // It grows and shrinks.
            let adds = if i / 5000 % 2 == 0 { 3 } else { 1 };
            if x >> 60 & 3 < adds {
                model.entry(record).or_insert_with(|| {
                    index.insert(tag(x), record);
                    tag(x)
                });
            } else if let Some(tag) = model.remove(&record) {
                index.remove(tag, record);
            }
            if i % 50 == 0 {
                for record in 1..=300 {
                    let found = model.get(&record).and_then(|&tag| {
                        let mut at = index.begin(tag);
                        std::iter::from_fn(|| index.next(tag, &mut at)).find(|&found| found == record)
                    });
                    assert_eq!(found, model.get(&record).map(|_| record));
                }
                assert_eq!(index.len, model.len());
                assert_eq!(index.slots.iter().filter(|&&slot| slot != 0).count(), model.len());
            }
        }
    }
}
