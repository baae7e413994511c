//! The bytes of waiting items, and their limit.

/// Number of waiting bytes, and its limit.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Weight<T> {
    limit: usize,
    /// The bytes of an item, which do not change while it waits.
    size: fn(&T) -> usize,
    bytes: usize,
}

impl<T> Weight<T> {
    /// No limit.
    pub(crate) fn unlimited() -> Weight<T> {
        Weight::new(usize::MAX, |_| 0)
    }

    pub(crate) fn new(limit: usize, size: fn(&T) -> usize) -> Weight<T> {
        Weight { limit, size, bytes: 0 }
    }

    #[inline]
    pub(crate) fn add(&mut self, item: &T) {
        self.bytes = self.bytes.saturating_add((self.size)(item));
    }

    #[inline]
    pub(crate) fn remove(&mut self, item: &T) {
        self.bytes = self.bytes.saturating_sub((self.size)(item));
    }

    /// Nothing waits any more.
    pub(crate) fn clear(&mut self) {
        self.bytes = 0;
    }

    #[inline]
    pub(crate) fn is_over(&self) -> bool {
        self.bytes > self.limit
    }
}

/// The topic with the oldest item, given the time of the oldest of each.
pub(crate) fn oldest(topics: impl Iterator<Item = Option<i64>>) -> Option<usize> {
    topics.enumerate().filter_map(|(topic, time)| Some((time?, topic))).min().map(|(_, topic)| topic)
}
