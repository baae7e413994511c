use super::earliest::Earliest;

/// The stamps of the first waiting item of each topic: the earliest and the latest of them.
///
/// Only asked for while every topic has one.
#[derive(Clone, Debug)]
pub(super) struct Heads {
    topics: usize,
    earliest: Earliest,
    /// The last of the latest, with its topic. Whenever a head is replaced it is the earliest one,
    /// which is not this one unless there is one topic; so it follows without a tree.
    latest: (usize, i64),
    /// How many topics have one.
    filled: usize,
    /// The tree and `latest` are not up to date.
    stale: bool,
}

impl Heads {
    pub(super) fn new(topics: usize) -> Heads {
        Heads { topics, earliest: Earliest::new(topics), latest: (0, i64::MIN), filled: 0, stale: true }
    }

    /// Whether every topic has one.
    #[inline]
    pub(super) fn full(&self) -> bool {
        self.filled == self.topics
    }

    /// The topic and stamp of the first of the earliest.
    #[inline]
    pub(super) fn earliest(&self) -> (usize, i64) {
        self.earliest.first()
    }

    /// The topic and stamp of the last of the latest.
    #[inline]
    pub(super) fn latest(&self) -> (usize, i64) {
        self.latest
    }

    /// A topic that had none has one.
    pub(super) fn fill(&mut self, topic: usize, time: i64) {
        self.filled += 1;
        if self.stale {
            self.earliest.set(topic, time);
        } else {
            self.replace(topic, time);
        }
    }

    /// Another head comes after the earliest one, or after none.
    #[inline]
    pub(super) fn replace(&mut self, topic: usize, time: i64) {
        self.earliest.update(topic, time);
        let (latest, last) = self.latest;
        if time > last || time == last && topic > latest || topic == latest {
            self.latest = (topic, time);
        }
    }

    /// The earliest head is gone and its topic has no other. Its next one will come at `time` at
    /// the earliest.
    #[inline]
    pub(super) fn empty(&mut self, topic: usize, time: i64) {
        self.filled -= 1;
        self.earliest.update(topic, time);
    }

    /// For a search that is undone: the earliest head, which may be one to come, becomes another
    /// one; `latest` stays.
    #[inline]
    pub(super) fn pretend(&mut self, topic: usize, time: i64) {
        self.earliest.update(topic, time);
    }

    /// The end of such a search: what the heads of its topics are, the last word on a topic counts.
    pub(super) fn restore(&mut self, count: usize, heads: impl Iterator<Item = (usize, i64)>) {
        // Many paths of the tree cost more than the whole tree.
        if count > self.topics / 8 {
            heads.for_each(|(topic, time)| self.earliest.set(topic, time));
            self.earliest.rebuild();
        } else {
            heads.for_each(|(topic, time)| self.earliest.update(topic, time));
        }
    }

    /// No topic has one.
    pub(super) fn clear(&mut self) {
        self.filled = 0;
        self.stale = true;
    }

    /// The heads change in some other way: [`Heads::refresh`] is needed.
    pub(super) fn renew(&mut self, topic: usize, had: bool, time: Option<i64>) {
        self.stale = true;
        self.filled = self.filled - usize::from(had) + usize::from(time.is_some());
        self.earliest.set(topic, time.unwrap_or(i64::MAX));
    }

    /// Brings everything up to date; all topics have a head.
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
