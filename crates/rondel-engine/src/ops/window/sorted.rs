//! Numbers in their order, with the number at a rank: what quantiles and the number of distinct samples need.
//!
//! The keys are in chunks of at most [`CHUNK`], each sorted. To add or to remove one is a search among the
//! chunks, one within a chunk, and a move of at most a chunk. Ranks are found from a cursor, which stays near
//! where the last one was: a rank that moves little from row to row costs nothing but a comparison.

/// How many keys a chunk has at most. Beyond, it is divided.
const CHUNK: usize = 256;

/// Keys in order, of which equal ones are as many.
#[derive(Clone, Debug, Default)]
pub(crate) struct Sorted {
    /// None is empty.
    chunks: Vec<Vec<i64>>,
    /// The first key of each chunk.
    firsts: Vec<i64>,
    len: usize,
    /// How many different ones there are.
    distinct: usize,
    /// A chunk, and how many keys are in those before it.
    cursor: usize,
    before: usize,
}

impl Sorted {
    /// Of keys in any order.
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

    /// The last chunk that begins with at most this key, or the first.
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
        // Of chunks that begin with at most the key this is the last: it has the last of the equal ones.
        // If none of its keys is smaller or equal, it is the first chunk, and no other has an equal one.
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

    /// Removes a key, if it is there, of equal ones one.
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

    /// Joins a chunk with the next if both are small, so that there are never many small ones.
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

    /// The key with so many before it, and the one after that, if there is one.
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

    proptest! {
        #![proptest_config(ProptestConfig { cases: 60, failure_persistence: None, ..ProptestConfig::default() })]

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
                    // One that is not there.
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
