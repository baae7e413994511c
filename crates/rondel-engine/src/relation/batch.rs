//! Short lists of tuples: the contents of a momentary relation, or the changes of a lasting one.

use serde::{Deserialize, Serialize};

/// Tuples of one arity, each with a weight: 1 if it is in the relation or has entered it, -1 if it has left
/// it.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(crate) struct Delta {
    arity: usize,
    values: Vec<u64>,
    weights: Vec<i8>,
}

impl Delta {
    pub(crate) fn new(arity: usize) -> Delta {
        Delta { arity, ..Delta::default() }
    }

    /// Whether it fits a state like `own`.
    pub(crate) fn fits(&self, own: &Delta) -> bool {
        self.arity == own.arity && self.weights.len().checked_mul(self.arity) == Some(self.values.len())
    }

    /// Whether a tuple has this arity.
    pub(crate) fn fits_tuple(&self, tuple: &[u64]) -> bool {
        tuple.len() == self.arity
    }

    #[inline(always)]
    pub(crate) fn len(&self) -> usize {
        self.weights.len()
    }

    #[inline(always)]
    pub(crate) fn is_empty(&self) -> bool {
        self.weights.is_empty()
    }

    #[inline(always)]
    pub(crate) fn clear(&mut self) {
        self.values.clear();
        self.weights.clear();
    }

    #[inline(always)]
    pub(crate) fn push(&mut self, tuple: &[u64], weight: i8) {
        debug_assert_eq!(tuple.len(), self.arity, "one arity");
        self.values.extend_from_slice(tuple);
        self.weights.push(weight);
    }

    pub(crate) fn push_columns(&mut self, tuple: &[u64], columns: &[u32], weight: i8) {
        self.values.extend(columns.iter().map(|&c| tuple[c as usize]));
        self.weights.push(weight);
    }

    /// Adds a tuple, to be filled in.
    #[inline(always)]
    pub(crate) fn push_blank(&mut self) -> &mut [u64] {
        let start = self.values.len();
        self.values.resize(start + self.arity, 0);
        self.weights.push(1);
        &mut self.values[start..]
    }

    #[inline(always)]
    pub(crate) fn tuple(&self, i: usize) -> &[u64] {
        &self.values[i * self.arity..(i + 1) * self.arity]
    }

    #[inline(always)]
    pub(crate) fn iter(&self) -> impl Iterator<Item = (&[u64], i8)> {
        (0..self.len()).map(|i| (self.tuple(i), self.weights[i]))
    }

    pub(crate) fn contains(&self, tuple: &[u64]) -> bool {
        self.iter().any(|(other, _)| other == tuple)
    }

    pub(crate) fn extend(&mut self, other: &Delta) {
        self.values.extend_from_slice(&other.values);
        self.weights.extend_from_slice(&other.weights);
    }

    /// Sum of the weights.
    pub(crate) fn balance(&self) -> i64 {
        self.weights.iter().map(|&w| i64::from(w)).sum()
    }

    /// Returns all values with their columns.
    pub(crate) fn values(&self) -> impl Iterator<Item = (usize, u64)> {
        self.values.iter().enumerate().map(|(i, &value)| (i % self.arity.max(1), value))
    }

    /// Sums the weights of equal tuples, clamped to -1..=1, and removes tuples of weight zero.
    pub(crate) fn consolidate(&mut self) {
        match self.len() {
            0 => return,
            1 if self.weights[0] != 0 => return,
            _ => {}
        }
        // In a wider type: many copies of a tuple can meet.
        let mut sums: Vec<i32>;
        if self.len() <= 8 {
            sums = self.weights.iter().map(|&w| i32::from(w)).collect();
            for i in 1..self.len() {
                if let Some(first) = (0..i).find(|&j| self.tuple(j) == self.tuple(i)) {
                    sums[first] += sums[i];
                    sums[i] = 0;
                }
            }
        } else {
            let mut order: Vec<usize> = (0..self.len()).collect();
            order.sort_by(|&a, &b| self.tuple(a).cmp(self.tuple(b)));
            sums = vec![0; self.len()];
            let mut first = order[0];
            for &i in &order {
                if self.tuple(i) != self.tuple(first) {
                    first = i;
                }
                sums[first] += i32::from(self.weights[i]);
            }
        }
        let mut kept = 0;
        for (i, sum) in sums.into_iter().enumerate() {
            if sum != 0 {
                self.values.copy_within(i * self.arity..(i + 1) * self.arity, kept * self.arity);
                self.weights[kept] = sum.signum() as i8;
                kept += 1;
            }
        }
        self.values.truncate(kept * self.arity);
        self.weights.truncate(kept);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn consolidate_sums_weights() {
        for copies in [1, 20] {
            let mut batch = Delta::new(2);
            for _ in 0..copies {
                batch.push(&[1, 2], 1);
                batch.push(&[3, 4], -1);
                batch.push(&[5, 6], 1);
                batch.push(&[5, 6], -1);
            }
            batch.push(&[1, 3], -1);
            batch.consolidate();
            let mut found: Vec<_> = batch.iter().map(|(t, w)| (t.to_vec(), w)).collect();
            found.sort();
            assert_eq!(found, [(vec![1, 2], 1), (vec![1, 3], -1), (vec![3, 4], -1)]);
        }
    }
}
