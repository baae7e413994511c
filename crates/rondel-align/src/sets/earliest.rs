//! Minimum of changing numbers.

/// A number and its index, which decides between equal numbers.
type Key = (i64, u32);

/// Minimum of numbers that change, with its index; the first one of equal numbers.
///
/// A tournament tree: its leaves are the numbers, each node is the minimum of its two children. A change
/// costs the height of the tree.
#[derive(Clone, Debug)]
pub(super) struct Earliest {
    /// Node 1 is the root, the children of node `i` are `2i` and `2i + 1`; the second half are the leaves.
    nodes: Vec<Key>,
    leaves: usize,
}

impl Earliest {
    /// Creates `len` numbers, all `i64::MAX`.
    pub(super) fn new(len: usize) -> Earliest {
        let leaves = len.next_power_of_two();
        let mut nodes = vec![(i64::MAX, 0); 2 * leaves];
        (0..leaves).for_each(|i| nodes[leaves + i].1 = i as u32);
        let mut earliest = Earliest { nodes, leaves };
        earliest.rebuild();
        earliest
    }

    /// Returns the index and value of the minimum.
    #[inline]
    pub(super) fn first(&self) -> (usize, i64) {
        let (key, first) = self.nodes[1];
        (first as usize, key)
    }

    #[inline]
    pub(super) fn key(&self, i: usize) -> i64 {
        self.nodes[self.leaves + i].0
    }

    #[inline]
    pub(super) fn update(&mut self, i: usize, key: i64) {
        let mut node = self.leaves + i;
        let mut least = (key, i as u32);
        self.nodes[node] = least;
        while node > 1 {
            least = least.min(self.nodes[node ^ 1]);
            node /= 2;
            self.nodes[node] = least;
        }
    }

    /// Sets a number without updating the minimum; [`Earliest::rebuild`] must follow.
    #[inline]
    pub(super) fn set(&mut self, i: usize, key: i64) {
        self.nodes[self.leaves + i].0 = key;
    }

    pub(super) fn rebuild(&mut self) {
        for node in (1..self.leaves).rev() {
            self.nodes[node] = self.nodes[2 * node].min(self.nodes[2 * node + 1]);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn first_is_the_first_minimum() {
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
