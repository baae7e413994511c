//! A hash that is the same in every run and on every machine.

use std::hash::Hasher;

/// FNV-1a (Fowler, Noll, Vo) of 128 bits over little-endian numbers, folded to 64 bits: for hashes that are saved.
///
/// ```
/// use std::hash::Hasher;
/// let mut hasher = rondel_event::StableHasher::default();
/// hasher.write(b"r7");
/// assert_eq!(hasher.finish(), 0xb0e6_6c9c_7a37_2d47);
/// ```
#[derive(Clone, Debug)]
pub struct StableHasher(u128);

impl Default for StableHasher {
    fn default() -> StableHasher {
        StableHasher(0x6c62_272e_07bb_0142_62b8_2175_6295_c58d)
    }
}

impl Hasher for StableHasher {
    fn write(&mut self, bytes: &[u8]) {
        const PRIME: u128 = 0x0000_0000_0100_0000_0000_0000_0000_013b;
        self.0 = bytes.iter().fold(self.0, |hash, byte| (hash ^ u128::from(*byte)).wrapping_mul(PRIME));
    }

    fn write_u16(&mut self, x: u16) {
        self.write(&x.to_le_bytes());
    }

    fn write_u32(&mut self, x: u32) {
        self.write(&x.to_le_bytes());
    }

    fn write_u64(&mut self, x: u64) {
        self.write(&x.to_le_bytes());
    }

    fn write_u128(&mut self, x: u128) {
        self.write(&x.to_le_bytes());
    }

    fn write_usize(&mut self, x: usize) {
        self.write_u64(x as u64);
    }

    fn write_isize(&mut self, x: isize) {
        self.write_u64(x as i64 as u64);
    }

    /// The two halves as one, once more mixed: the last bytes must not show in the lowest bits only.
    fn finish(&self) -> u64 {
        let mixed = ((self.0 >> 64) as u64 ^ self.0 as u64).wrapping_mul(0x9E37_79B9_7F4A_7C15);
        mixed ^ mixed >> 32
    }
}
