//! Pseudorandom numbers.

/// A generator of pseudorandom numbers (splitmix64): the same numbers for the same seed, on every machine.
pub struct Random(u64);

impl Random {
    /// Returns a generator with this seed.
    pub fn new(seed: u64) -> Random {
        Random(seed)
    }

    /// Returns the next number. All values are equally likely.
    #[allow(clippy::should_implement_trait)] // It has no end, and is no iterator.
    pub fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut x = self.0;
        x = (x ^ (x >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        x ^ (x >> 31)
    }

    /// Returns a number from 0, less than `end`; 0 if `end` is 0.
    pub fn below(&mut self, end: u64) -> u64 {
        self.next() % end.max(1)
    }

    /// Returns a signed number from 0, less than `end`; 0 unless `end` is positive.
    pub fn int(&mut self, end: i64) -> i64 {
        self.below(end.max(1) as u64) as i64
    }

    /// Returns an index from 0, less than `len`; 0 if `len` is 0.
    pub fn index(&mut self, len: usize) -> usize {
        self.below(len as u64) as usize
    }

    /// Returns `true` once in `times` calls on average.
    pub fn one_in(&mut self, times: u64) -> bool {
        self.below(times) == 0
    }

    /// Returns one of these, which must not be empty.
    pub fn pick<T: Copy>(&mut self, from: &[T]) -> T {
        from[self.index(from.len())]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_those_of_splitmix64() {
        let mut random = Random::new(1_234_567);
        let expected: [u64; 4] = [
            6_457_827_717_110_365_317,
            3_203_168_211_198_807_973,
            9_817_491_932_198_370_423,
            4_593_380_528_125_082_431,
        ];
        assert_eq!(expected.map(|_| random.next()), expected);
    }

    #[test]
    fn draws_stay_below_their_end() {
        let mut random = Random::new(1);
        for _ in 0..1000 {
            assert!(random.below(7) < 7 && random.index(3) < 3 && (0..5).contains(&random.int(5)));
        }
        assert_eq!((random.below(0), random.int(-1), random.index(0)), (0, 0, 0));
    }
}
