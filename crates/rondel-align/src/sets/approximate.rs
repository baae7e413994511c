//! The policy [`SetPolicy::Approximate`](super::SetPolicy::Approximate).

use std::collections::VecDeque;

use rondel_event::Timestamp;
use serde::{Deserialize, Serialize};

use super::buffer::{SetBuffer, Unused};
use super::heads::Heads;
use super::saved::{SavedApproximate, restore_item, save_item};
use crate::weight::oldest;

/// Search for the sets with the closest stamps.
///
/// A search begins with the heads of all topics as the candidate. The latest item of the candidate is the
/// pivot: every set of this search contains it or a later item of its topic. The search then skips the
/// earliest head, one after another, and compares the remaining heads with the candidate until no better
/// set is possible. Items skipped since the candidate was found stay in their queues for later sets.
#[derive(Clone, Debug)]
pub(super) struct Approximate<T> {
    settings: ApproximateSettings,
    queues: Vec<TopicQueue<T>>,
    heads: Heads,
    candidate: Option<Candidate>,
    /// The topics with skipped items, in the order of their first one.
    passed: Vec<u32>,
    /// The topics that dropped an item from a full queue which might have matched.
    lost: Vec<u32>,
    /// The topics skipped by `will_be_best`, for undoing.
    trail: Vec<u32>,
}

#[derive(Clone, Debug)]
pub(super) struct ApproximateSettings {
    pub(super) queue: usize,
    /// 1 + age penalty.
    pub(super) penalty: f64,
    pub(super) max_interval: i64,
    /// By topic.
    pub(super) lower_bounds: Vec<i64>,
}

#[derive(Clone, Debug)]
struct TopicQueue<T> {
    /// Skipped items, then waiting ones. The first item belongs to the candidate, if there is one.
    items: VecDeque<(Timestamp, T)>,
    /// Number of skipped items.
    passed: usize,
    /// Whether the topic is in `Approximate::lost`.
    lost: bool,
}

impl<T> TopicQueue<T> {
    fn head(&self) -> Option<i64> {
        self.items.get(self.passed).map(|&(time, _)| time.as_nanos())
    }
}

#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub(super) struct Candidate {
    start: i64,
    end: i64,
    pivot: usize,
    pivot_time: i64,
}

impl<T> Approximate<T> {
    pub(super) fn new(topics: usize, settings: ApproximateSettings) -> Approximate<T> {
        let queue = || TopicQueue { items: VecDeque::new(), passed: 0, lost: false };
        Approximate {
            settings,
            queues: (0..topics).map(|_| queue()).collect(),
            heads: Heads::new(topics),
            candidate: None,
            passed: Vec::new(),
            lost: Vec::new(),
            trail: Vec::new(),
        }
    }

    /// Returns the state for a snapshot: the queues and the progress of the search.
    pub(super) fn saved(&self, write: &mut dyn FnMut(&T) -> Vec<u8>) -> SavedApproximate {
        let mut queue = |queue: &TopicQueue<T>| {
            (queue.items.iter().map(|one| save_item(one, write)).collect(), queue.passed, queue.lost)
        };
        SavedApproximate {
            queues: self.queues.iter().map(&mut queue).collect(),
            candidate: self.candidate,
            passed: self.passed.clone(),
            lost: self.lost.clone(),
        }
    }

    /// Restores a saved state; `None` if it is inconsistent.
    pub(super) fn restore(
        &mut self,
        saved: SavedApproximate,
        read: &mut dyn FnMut(&[u8]) -> Option<T>,
    ) -> Option<()> {
        let SavedApproximate { queues, candidate, passed: passed_over, lost } = saved;
        let are_topics = |which: &[u32]| which.iter().all(|&topic| (topic as usize) < self.queues.len());
        if queues.len() != self.queues.len() || !are_topics(&passed_over) || !are_topics(&lost) {
            return None;
        }
        for (topic, (queue, (items, passed, lost))) in self.queues.iter_mut().zip(queues).enumerate() {
            // Only a search skips items, and it has a candidate with an item of every topic.
            let searches = candidate.is_some();
            if passed > items.len()
                || (passed > 0) != passed_over.contains(&(topic as u32))
                || searches && items.is_empty()
                || !searches && passed > 0
            {
                return None;
            }
            let items = items.iter().map(|one| restore_item(one, read)).collect::<Option<_>>()?;
            *queue = TopicQueue { items, passed, lost };
            if let Some(first) = queue.head() {
                self.heads.fill(topic, first);
            }
        }
        (self.candidate, self.passed, self.lost) = (candidate, passed_over, lost);
        // If every topic had a head, the search would have continued.
        (!self.heads.full() || self.queues.is_empty()).then_some(())
    }

    pub(super) fn push(&mut self, topic: usize, time: Timestamp, item: T, buffer: &mut SetBuffer<T>) {
        let queue = &mut self.queues[topic];
        queue.items.push_back((time, item));
        if queue.items.len() == queue.passed + 1 {
            self.heads.fill(topic, time.as_nanos());
            self.search(buffer);
        }
        let limit = self.settings.queue;
        if limit > 0 && self.queues[topic].items.len() > limit {
            self.overflow(topic, buffer);
        }
        let first = |queue: &TopicQueue<T>| queue.items.front().map(|(time, _)| time.as_nanos());
        while buffer.weight.is_over()
            && let Some(oldest) = oldest(self.queues.iter().map(first))
        {
            self.overflow(oldest, buffer);
        }
    }

    /// Searches for sets while every topic has a head.
    fn search(&mut self, buffer: &mut SetBuffer<T>) {
        while self.heads.full() {
            self.heads.refresh();
            let (first, start) = self.heads.earliest();
            let (last, end) = self.heads.latest();
            self.forgive(last);
            let candidate = match self.candidate {
                Some(candidate) if self.is_better(&candidate, start, end) => {
                    self.drop_passed(buffer);
                    Candidate { start, end, ..candidate }
                }
                Some(candidate) => candidate,
                None if end.saturating_sub(start) > self.settings.max_interval => {
                    self.drop_head(first, Unused::Interval, buffer);
                    continue;
                }
                None if self.queues[last].lost => {
                    self.drop_head(first, Unused::AfterLoss, buffer);
                    continue;
                }
                None => Candidate { start, end, pivot: last, pivot_time: end },
            };
            self.candidate = Some(candidate);
            let next = self.pass(first, &candidate);
            if first == candidate.pivot
                || self.is_best(&candidate, end)
                || !self.heads.full() && self.will_be_best(&candidate, next)
            {
                self.emit(&candidate, buffer);
            }
        }
    }

    /// Returns the penalty of a set that ends at `end`: its weighted distance from the candidate's end.
    fn age(&self, candidate: &Candidate, end: i64) -> f64 {
        end.saturating_sub(candidate.end) as f64 * self.settings.penalty
    }

    /// Whether a set from `start` to `end` is better than the candidate.
    fn is_better(&self, candidate: &Candidate, start: i64, end: i64) -> bool {
        self.age(candidate, end) < start.saturating_sub(candidate.start) as f64
    }

    /// Whether no later set of this search is better, given that none ends before `end`: such a set starts
    /// at the pivot at the latest.
    fn is_best(&self, candidate: &Candidate, end: i64) -> bool {
        !self.is_better(candidate, candidate.pivot_time, end)
    }

    /// Whether no later set of this search is better whatever items arrive, given that the one topic
    /// without a head continues at `next`.
    fn will_be_best(&mut self, candidate: &Candidate, next: i64) -> bool {
        let mut end = next.max(self.heads.latest().1);
        self.trail.clear();
        let best = loop {
            let (first, start) = self.heads.earliest();
            if self.is_best(candidate, end) {
                break true;
            }
            // A future head is not before the pivot, so one of the two conditions holds eventually.
            if self.is_better(candidate, start, end) || self.queues[first].head().is_none() {
                break false;
            }
            let next = self.pass_over(first, candidate);
            self.heads.pretend(first, next);
            self.trail.push(first as u32);
            end = end.max(next);
        };
        if !best {
            self.undo();
        }
        best
    }

    /// Undoes the skips of `will_be_best`.
    fn undo(&mut self) {
        let count = self.trail.len();
        let heads = self.trail.drain(..).rev().filter_map(|topic| {
            let queue = &mut self.queues[topic as usize];
            queue.passed -= 1;
            if queue.passed == 0 {
                self.passed.pop();
            }
            Some((topic as usize, queue.head()?))
        });
        self.heads.restore(count, heads);
    }

    /// Skips the earliest head and returns the stamp of its successor, as [`Approximate::pass_over`] does.
    fn pass(&mut self, first: usize, candidate: &Candidate) -> i64 {
        let next = self.pass_over(first, candidate);
        match self.queues[first].head() {
            Some(_) => self.heads.replace(first, next),
            None => self.heads.empty(first, next),
        }
        next
    }

    /// Skips the head of a topic. Returns the stamp of the next one, or the earliest possible stamp of a future
    /// one: by the lower bound, but not before the pivot, since that would only lengthen the search.
    fn pass_over(&mut self, topic: usize, candidate: &Candidate) -> i64 {
        let queue = &mut self.queues[topic];
        if queue.passed == 0 {
            self.passed.push(topic as u32);
        }
        queue.passed += 1;
        queue.head().unwrap_or_else(|| {
            let last = queue.items.back().map_or(i64::MIN, |(time, _)| time.as_nanos());
            last.saturating_add(self.settings.lower_bounds[topic]).max(candidate.pivot_time)
        })
    }

    /// Drops the skipped items: a better candidate was found after them.
    fn drop_passed(&mut self, buffer: &mut SetBuffer<T>) {
        for topic in self.passed.drain(..) {
            let queue = &mut self.queues[topic as usize];
            for (time, item) in queue.items.drain(..queue.passed) {
                buffer.weight.remove(&item);
                buffer.unused(topic as usize, time, Unused::Worse);
            }
            queue.passed = 0;
        }
    }

    /// Drops the earliest head; no item is skipped.
    fn drop_head(&mut self, first: usize, why: Unused, buffer: &mut SetBuffer<T>) {
        let queue = &mut self.queues[first];
        if let Some((time, item)) = queue.items.pop_front() {
            buffer.weight.remove(&item);
            buffer.unused(first, time, why);
        }
        match queue.head() {
            Some(next) => self.heads.replace(first, next),
            None => self.heads.empty(first, i64::MAX),
        }
    }

    /// Emits the candidate; items skipped since wait again.
    fn emit(&mut self, candidate: &Candidate, buffer: &mut SetBuffer<T>) {
        self.candidate = None;
        self.passed.clear();
        self.heads.clear();
        for (topic, queue) in self.queues.iter_mut().enumerate() {
            queue.passed = 0;
            if let Some((time, item)) = queue.items.pop_front() {
                buffer.item(topic, time, item);
            }
            if let Some(next) = queue.head() {
                self.heads.fill(topic, next);
            }
        }
        buffer.set(Timestamp::from_nanos(candidate.end));
    }

    /// Drops the oldest item of a queue over its limit, and the candidate that contains it.
    fn overflow(&mut self, topic: usize, buffer: &mut SetBuffer<T>) {
        for i in self.passed.drain(..) {
            let queue = &mut self.queues[i as usize];
            let had = queue.head().is_some();
            queue.passed = 0;
            self.heads.renew(i as usize, had, queue.head());
        }
        let queue = &mut self.queues[topic];
        let had = queue.head().is_some();
        if let Some((time, item)) = queue.items.pop_front() {
            buffer.weight.remove(&item);
            buffer.unused(topic, time, Unused::QueueFull);
        }
        self.heads.renew(topic, had, queue.head());
        if !queue.lost {
            queue.lost = true;
            self.lost.push(topic as u32);
        }
        if self.candidate.take().is_some() {
            self.search(buffer);
        }
    }

    /// Forgets that topics dropped items, except `last`: an item before a head that is not the latest would
    /// not have made a better set.
    fn forgive(&mut self, last: usize) {
        if !self.lost.is_empty() {
            let queues = &mut self.queues;
            self.lost.retain(|&topic| {
                queues[topic as usize].lost = topic as usize == last;
                topic as usize == last
            });
        }
    }

    /// Emits the candidate, which is the best set as no more items arrive; reports the rest as unused.
    pub(super) fn flush(&mut self, buffer: &mut SetBuffer<T>) {
        while let Some(candidate) = self.candidate {
            self.emit(&candidate, buffer);
            self.search(buffer);
        }
        self.forgive(usize::MAX);
        self.heads.clear();
        for (topic, queue) in self.queues.iter_mut().enumerate() {
            for (time, _) in queue.items.drain(..) {
                buffer.unused(topic, time, Unused::End);
            }
        }
    }
}
