//! The policy [`SetPolicy::Epsilon`](super::SetPolicy::Epsilon).

use std::collections::VecDeque;

use rondel_event::Timestamp;

use super::buffer::{SetBuffer, Unused};
use super::heads::Heads;
use super::saved::{SavedItem, restore_item, save_item};
use crate::weight::oldest;

/// Sets of the first items of all topics if their stamps are within epsilon.
#[derive(Clone, Debug)]
pub(super) struct Epsilon<T> {
    epsilon: i64,
    queue: usize,
    queues: Vec<VecDeque<(Timestamp, T)>>,
    heads: Heads,
    /// The topics whose heads are popped together.
    popped: Vec<u32>,
}

fn head<T>(queue: &VecDeque<(Timestamp, T)>) -> Option<i64> {
    queue.front().map(|&(time, _)| time.as_nanos())
}

impl<T> Epsilon<T> {
    pub(super) fn new(topics: usize, epsilon: i64, queue: usize) -> Epsilon<T> {
        let queues = (0..topics).map(|_| VecDeque::new()).collect();
        Epsilon { epsilon, queue, queues, heads: Heads::new(topics), popped: Vec::new() }
    }

    /// Returns the state for a snapshot: the waiting items of each topic.
    pub(super) fn saved(&self, write: &mut dyn FnMut(&T) -> Vec<u8>) -> Vec<Vec<SavedItem>> {
        let mut queue = |queue: &VecDeque<_>| queue.iter().map(|one| save_item(one, write)).collect();
        self.queues.iter().map(&mut queue).collect()
    }

    /// Restores a saved state; `None` if it is inconsistent.
    pub(super) fn restore(
        &mut self,
        saved: Vec<Vec<SavedItem>>,
        read: &mut dyn FnMut(&[u8]) -> Option<T>,
    ) -> Option<()> {
        if saved.len() != self.queues.len() {
            return None;
        }
        for (topic, (queue, saved)) in self.queues.iter_mut().zip(saved).enumerate() {
            *queue = saved.iter().map(|one| restore_item(one, read)).collect::<Option<_>>()?;
            if let Some(first) = head(queue) {
                self.heads.fill(topic, first);
            }
        }
        // If every topic had an item, a set would have been searched for.
        (!self.heads.full() || self.queues.is_empty()).then_some(())
    }

    pub(super) fn push(&mut self, topic: usize, time: Timestamp, item: T, buffer: &mut SetBuffer<T>) {
        let queue = &mut self.queues[topic];
        queue.push_back((time, item));
        if queue.len() == 1 {
            self.heads.fill(topic, time.as_nanos());
        }
        if self.heads.full() {
            self.search(buffer);
        } else if self.queue > 0 && self.queues[topic].len() > self.queue {
            self.pop(topic, Unused::QueueFull, buffer);
            self.heads.renew(topic, true, head(&self.queues[topic]));
        }
        while buffer.weight.is_over()
            && let Some(oldest) = oldest(self.queues.iter().map(head))
        {
            self.pop(oldest, Unused::QueueFull, buffer);
            self.heads.renew(oldest, true, head(&self.queues[oldest]));
        }
    }

    fn search(&mut self, buffer: &mut SetBuffer<T>) {
        while self.heads.full() {
            self.heads.refresh();
            let limit = self.heads.earliest().1.saturating_add(self.epsilon);
            if self.heads.latest().1 <= limit {
                self.emit(buffer);
            } else {
                self.drop_until(limit, buffer);
            }
        }
    }

    fn emit(&mut self, buffer: &mut SetBuffer<T>) {
        let time = self.heads.latest().1;
        self.heads.clear();
        for (topic, queue) in self.queues.iter_mut().enumerate() {
            if let Some((time, item)) = queue.pop_front() {
                buffer.item(topic, time, item);
            }
            if let Some(next) = head(queue) {
                self.heads.fill(topic, next);
            }
        }
        buffer.set(Timestamp::from_nanos(time));
    }

    /// Drops every head up to the limit, at most one of each topic.
    fn drop_until(&mut self, limit: i64, buffer: &mut SetBuffer<T>) {
        self.popped.clear();
        loop {
            let (topic, time) = self.heads.earliest();
            if time > limit {
                break;
            }
            self.pop(topic, Unused::NoMatch, buffer);
            self.popped.push(topic as u32);
            self.heads.pretend(topic, i64::MAX);
        }
        for &topic in &self.popped {
            match head(&self.queues[topic as usize]) {
                Some(next) => self.heads.replace(topic as usize, next),
                None => self.heads.empty(topic as usize, i64::MAX),
            }
        }
    }

    fn pop(&mut self, topic: usize, why: Unused, buffer: &mut SetBuffer<T>) {
        if let Some((time, item)) = self.queues[topic].pop_front() {
            buffer.weight.remove(&item);
            buffer.unused(topic, time, why);
        }
    }

    pub(super) fn flush(&mut self, buffer: &mut SetBuffer<T>) {
        self.heads.clear();
        for (topic, queue) in self.queues.iter_mut().enumerate() {
            for (time, _) in queue.drain(..) {
                buffer.unused(topic, time, Unused::End);
            }
        }
    }
}
