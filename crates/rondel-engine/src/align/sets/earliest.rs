/// The least of many numbers while they change; of equal ones the first.
///
/// A tree whose leaves are the numbers; each node names the lesser of its two sides. So a change
/// costs the height of the tree, not the number of leaves.
#[derive(Clone, Debug)]
pub(super) struct Earliest {
    /// Filled up to a power of two.
    keys: Vec<i64>,
    /// The node 1 is the root, the sides of node `i` are `2i` and `2i + 1`; the second half are
    /// the leaves.
    winners: Vec<u32>,
}

impl Earliest {
    /// All are `i64::MAX`.
    pub(super) fn new(len: usize) -> Earliest {
        let leaves = len.next_power_of_two().max(2);
        let mut winners = vec![0; 2 * leaves];
        (0..leaves).for_each(|i| winners[leaves + i] = i as u32);
        let mut earliest = Earliest { keys: vec![i64::MAX; leaves], winners };
        earliest.rebuild();
        earliest
    }

    /// Which is the least, and what it is.
    #[inline]
    pub(super) fn first(&self) -> (usize, i64) {
        let first = self.winners[1] as usize;
        (first, self.keys[first])
    }

    #[inline]
    pub(super) fn key(&self, i: usize) -> i64 {
        self.keys[i]
    }

    #[inline]
    pub(super) fn update(&mut self, i: usize, key: i64) {
        self.keys[i] = key;
        let mut node = (self.keys.len() + i) / 2;
        while node > 0 {
            let winner = self.winner(node);
            // If another wins as before, then nothing changes further up either.
            if self.winners[node] == winner && winner as usize != i {
                break;
            }
            self.winners[node] = winner;
            node /= 2;
        }
    }

    /// Sets a number; until [`Earliest::rebuild`] nothing else may be asked.
    pub(super) fn set(&mut self, i: usize, key: i64) {
        self.keys[i] = key;
    }

    pub(super) fn rebuild(&mut self) {
        for node in (1..self.keys.len()).rev() {
            self.winners[node] = self.winner(node);
        }
    }

    #[inline]
    fn winner(&self, node: usize) -> u32 {
        let (left, right) = (self.winners[2 * node], self.winners[2 * node + 1]);
        if self.keys[right as usize] < self.keys[left as usize] { right } else { left }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn is_the_first_of_the_least() {
        let mut random = 1u64;
        for len in (0..20).chain([50, 64, 65]) {
            let mut earliest = Earliest::new(len);
            assert_eq!(earliest.first(), (0, i64::MAX));
            let mut keys = vec![i64::MAX; len];
            for round in 0..300 {
                random = random.wrapping_mul(0x5851_F42D_4C95_7F2D).wrapping_add(1);
                let Some(i) = (random >> 40).checked_rem(len as u64) else { break };
                let key = (random >> 33) as i64 % 10;
                keys[i as usize] = key;
                if round % 50 == 0 {
                    earliest.set(i as usize, key);
                    earliest.rebuild();
                } else {
                    earliest.update(i as usize, key);
                }
                let least = keys.iter().copied().enumerate().min_by_key(|&(i, key)| (key, i));
                assert_eq!(Some(earliest.first()), least);
            }
        }
    }
}
