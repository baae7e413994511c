//! Sorted numbers with access by rank, for quantiles and the number of distinct samples.
//!
//! Keys are in sorted chunks of at most [`CHUNK`]. Insertion and removal search the chunks, search within a
//! chunk, and move at most a chunk. Access by rank starts from a cursor near the last rank, so that a rank
//! that moves little from row to row costs a comparison.

/// Limit of keys in a chunk. A larger one is split.
const CHUNK: usize = 256;

/// Sorted keys, with duplicates.
#[derive(Clone, Debug, Default)]
pub(crate) struct Sorted {
    /// No chunk is empty.
    chunks: Vec<Vec<i64>>,
    /// The first key of each chunk.
    firsts: Vec<i64>,
    len: usize,
    /// Number of distinct keys.
    distinct: usize,
    /// A chunk, and the number of keys in the chunks before it.
    cursor: usize,
    before: usize,
}

impl Sorted {
    /// Sorts keys.
    pub(crate) fn of(mut keys: Vec<i64>) -> Sorted {
        keys.sort_unstable();
        let chunks: Vec<Vec<i64>> = keys.chunks(CHUNK / 2).map(<[i64]>::to_vec).collect();
        let firsts = keys.chunks(CHUNK / 2).filter_map(|chunk| chunk.first().copied()).collect();
        let len = keys.len();
        keys.dedup();
        Sorted { chunks, firsts, len, distinct: keys.len(), cursor: 0, before: 0 }
    }

    pub(crate) fn len(&self) -> usize {
        self.len
    }

    pub(crate) fn distinct(&self) -> usize {
        self.distinct
    }

    /// The last chunk that begins with at most this key, or the first one.
    #[inline(always)]
    fn chunk_of(&self, key: i64) -> usize {
        self.firsts.partition_point(|first| *first <= key).saturating_sub(1)
    }

    /// Adds a key.
    #[inline]
    pub(crate) fn insert(&mut self, key: i64) {
        self.len += 1;
        let at = self.chunk_of(key);
        let Some(chunk) = self.chunks.get_mut(at) else {
            self.chunks.push(vec![key]);
            self.firsts.push(key);
            (self.distinct, self.cursor, self.before) = (1, 0, 0);
            return;
        };
        let place = chunk.partition_point(|other| *other <= key);
        // This is the last chunk that begins with at most the key, so that it contains the last equal key. If
        // no key in it is smaller or equal, it is the first chunk, and no other contains an equal key.
        self.distinct += usize::from(place == 0 || chunk[place - 1] != key);
        chunk.insert(place, key);
        self.firsts[at] = chunk[0];
        if at < self.cursor {
            self.before += 1;
        }
        if chunk.len() > CHUNK {
            let later = chunk.split_off(CHUNK / 2);
            if at < self.cursor {
                self.cursor += 1;
            }
            self.firsts.insert(at + 1, later[0]);
            self.chunks.insert(at + 1, later);
        }
    }

    /// Removes one occurrence of a key, if there is one.
    #[inline]
    pub(crate) fn remove(&mut self, key: i64) {
        let at = self.chunk_of(key);
        let Some(chunk) = self.chunks.get_mut(at) else { return };
        let place = chunk.partition_point(|other| *other <= key);
        if place == 0 || chunk[place - 1] != key {
            return;
        }
        chunk.remove(place - 1);
        let same = match place.checked_sub(2) {
            Some(other) => chunk[other] == key,
            // Equal keys may begin in the chunk before.
            None => at > 0 && self.chunks[at - 1].last() == Some(&key),
        };
        self.len -= 1;
        self.distinct -= usize::from(!same);
        if at < self.cursor {
            self.before -= 1;
        }
        match self.chunks[at].first() {
            Some(first) => self.firsts[at] = *first,
            None => {
                self.chunks.remove(at);
                self.firsts.remove(at);
                if at < self.cursor {
                    self.cursor -= 1;
                }
            }
        }
        self.join(at);
        if let Some(earlier) = at.checked_sub(1) {
            self.join(earlier);
        }
    }

    /// Merges a chunk with the next one if both are small, which limits the number of small chunks.
    fn join(&mut self, at: usize) {
        let small = |chunk: Option<&Vec<i64>>| chunk.is_some_and(|chunk| chunk.len() < CHUNK / 4);
        if !small(self.chunks.get(at)) || !small(self.chunks.get(at + 1)) {
            return;
        }
        let later = self.chunks.remove(at + 1);
        self.firsts.remove(at + 1);
        let earlier = &mut self.chunks[at];
        if self.cursor == at + 1 {
            self.before -= earlier.len();
            self.cursor = at;
        } else if self.cursor > at + 1 {
            self.cursor -= 1;
        }
        earlier.extend(later);
    }

    /// The key at a rank, and the next one, if there is one.
    #[inline]
    pub(crate) fn at(&mut self, rank: usize) -> Option<(i64, Option<i64>)> {
        if rank >= self.len {
            return None;
        }
        if self.cursor >= self.chunks.len() {
            (self.cursor, self.before) = (0, 0);
        }
        while rank < self.before {
            self.cursor -= 1;
            self.before -= self.chunks[self.cursor].len();
        }
        while rank - self.before >= self.chunks[self.cursor].len() {
            self.before += self.chunks[self.cursor].len();
            self.cursor += 1;
        }
        let chunk = &self.chunks[self.cursor];
        let place = rank - self.before;
        let next = chunk.get(place + 1).or_else(|| self.firsts.get(self.cursor + 1));
        Some((chunk[place], next.copied()))
    }

    #[inline(always)]
    pub(crate) fn greatest(&self) -> Option<i64> {
        self.chunks.last().and_then(|chunk| chunk.last().copied())
    }

    pub(crate) fn bytes(&self) -> usize {
        let chunks: usize = self.chunks.iter().map(|chunk| chunk.capacity() * size_of::<i64>()).sum();
        chunks + self.chunks.capacity() * size_of::<Vec<i64>>() + self.firsts.capacity() * size_of::<i64>()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use proptest::test_runner::FileFailurePersistence;

    fn check(sorted: &mut Sorted, keys: &[i64], ranks: &[usize]) {
        let mut naive = keys.to_vec();
        naive.sort_unstable();
        assert_eq!(sorted.len(), naive.len());
        assert_eq!(sorted.greatest(), naive.last().copied());
        for rank in ranks {
            let rank = rank % (naive.len() + 1);
            let expected = naive.get(rank).map(|key| (*key, naive.get(rank + 1).copied()));
            assert_eq!(sorted.at(rank), expected, "{rank} of {}", naive.len());
        }
        naive.dedup();
        assert_eq!(sorted.distinct(), naive.len());
    }

    fn config() -> ProptestConfig {
        let kept = FileFailurePersistence::Direct("proptest-regressions/sorted.txt");
        ProptestConfig { cases: 60, failure_persistence: Some(Box::new(kept)), ..ProptestConfig::default() }
    }

    proptest! {
        #![proptest_config(config())]

        #[test]
        fn agrees_with_sorting(
            keys in prop_oneof![
                proptest::collection::vec(-3..3_i64, 1..3000),
                proptest::collection::vec(-2000..2000_i64, 1..3000),
                proptest::collection::vec(any::<i64>(), 1..3000),
            ],
            width in prop_oneof![1..20_usize, 200..2500_usize],
            ranks in proptest::collection::vec(any::<usize>(), 1..5),
        ) {
            let mut sorted = Sorted::default();
            for (i, key) in keys.iter().enumerate() {
                sorted.insert(*key);
                if let Some(oldest) = i.checked_sub(width) {
                    sorted.remove(keys[oldest]);
                    // A missing key.
                    if !keys.contains(&7_777_777) {
                        sorted.remove(7_777_777);
                    }
                }
                if i % 41 == 0 || i < 10 {
                    check(&mut sorted, &keys[(i + 1).saturating_sub(width)..=i], &ranks);
                }
            }
            let rest = &keys[keys.len().saturating_sub(width)..];
            check(&mut Sorted::of(rest.to_vec()), rest, &ranks);
            for (i, key) in rest.iter().enumerate() {
                sorted.remove(*key);
                if i % 41 == 0 {
                    check(&mut sorted, &rest[i + 1..], &ranks);
                }
            }
            check(&mut sorted, &[], &ranks);
        }
    }
}
