//! Stamps of the first waiting item of each topic.

use super::earliest::Earliest;

/// The earliest and the latest stamp of the heads, the first waiting items of the topics.
///
/// Both are valid only while every topic has a head.
#[derive(Clone, Debug)]
pub(super) struct Heads {
    topics: usize,
    earliest: Earliest,
    /// Topic and stamp of the latest head, the last one of equal stamps. Needs no tree: only the earliest
    /// head is ever replaced, which is a different one unless there is a single topic.
    latest: (usize, i64),
    /// Number of topics with a head.
    filled: usize,
    /// Whether the tree and `latest` are out of date.
    stale: bool,
}

impl Heads {
    pub(super) fn new(topics: usize) -> Heads {
        Heads { topics, earliest: Earliest::new(topics), latest: (0, i64::MIN), filled: 0, stale: true }
    }

    /// Whether every topic has a head.
    #[inline]
    pub(super) fn full(&self) -> bool {
        self.filled == self.topics
    }

    /// Returns topic and stamp of the earliest head, the first one of equal stamps.
    #[inline]
    pub(super) fn earliest(&self) -> (usize, i64) {
        self.earliest.first()
    }

    /// Returns topic and stamp of the latest head, the last one of equal stamps.
    #[inline]
    pub(super) fn latest(&self) -> (usize, i64) {
        self.latest
    }

    /// Adds the head of a topic without one.
    pub(super) fn fill(&mut self, topic: usize, time: i64) {
        self.filled += 1;
        if self.stale {
            self.earliest.set(topic, time);
        } else {
            self.replace(topic, time);
        }
    }

    /// Replaces the earliest head, or adds one.
    #[inline]
    pub(super) fn replace(&mut self, topic: usize, time: i64) {
        self.earliest.update(topic, time);
        let (latest, last) = self.latest;
        if time > last || time == last && topic > latest || topic == latest {
            self.latest = (topic, time);
        }
    }

    /// Removes the earliest head; the next head of its topic has the stamp `time` at the earliest.
    #[inline]
    pub(super) fn empty(&mut self, topic: usize, time: i64) {
        self.filled -= 1;
        self.earliest.update(topic, time);
    }

    /// Replaces the earliest head, which may be a future one, in a search that is undone with
    /// [`Heads::restore`]; does not change `latest`.
    #[inline]
    pub(super) fn pretend(&mut self, topic: usize, time: i64) {
        self.earliest.update(topic, time);
    }

    /// Sets heads after a search; if a topic occurs several times, its last head counts.
    pub(super) fn restore(&mut self, count: usize, heads: impl Iterator<Item = (usize, i64)>) {
        // Updating many paths of the tree costs more than rebuilding it.
        if count > self.topics / 8 {
            heads.for_each(|(topic, time)| self.earliest.set(topic, time));
            self.earliest.rebuild();
        } else {
            heads.for_each(|(topic, time)| self.earliest.update(topic, time));
        }
    }

    /// Removes all heads.
    pub(super) fn clear(&mut self) {
        self.filled = 0;
        self.stale = true;
    }

    /// Sets the head of any topic; [`Heads::refresh`] must follow.
    pub(super) fn renew(&mut self, topic: usize, had: bool, time: Option<i64>) {
        self.stale = true;
        self.filled = self.filled - usize::from(had) + usize::from(time.is_some());
        self.earliest.set(topic, time.unwrap_or(i64::MAX));
    }

    /// Updates the earliest and latest head; all topics must have a head.
    #[inline]
    pub(super) fn refresh(&mut self) {
        if self.stale {
            self.stale = false;
            self.earliest.rebuild();
            let keys = (0..self.topics).map(|i| (i, self.earliest.key(i)));
            self.latest = keys.max_by_key(|&(i, key)| (key, i)).unwrap_or((0, i64::MIN));
        }
    }
}
