use std::collections::VecDeque;

use rondel_event::Timestamp;

use super::book::{Book, Unused};
use super::heads::Heads;
use super::saved::{SavedItem, item, plain};

/// The first items of all topics, if they lie close enough.
#[derive(Clone, Debug)]
pub(super) struct Epsilon<T> {
    epsilon: i64,
    queue: usize,
    lines: Vec<VecDeque<(Timestamp, T)>>,
    heads: Heads,
    /// The topics whose heads are popped together.
    popped: Vec<u32>,
}

fn head<T>(line: &VecDeque<(Timestamp, T)>) -> Option<i64> {
    line.front().map(|&(time, _)| time.as_nanos())
}

impl<T> Epsilon<T> {
    pub(super) fn new(topics: usize, epsilon: i64, queue: usize) -> Epsilon<T> {
        let lines = (0..topics).map(|_| VecDeque::new()).collect();
        Epsilon { epsilon, queue, lines, heads: Heads::new(topics), popped: Vec::new() }
    }

    /// For a snapshot: what waits on each topic.
    pub(super) fn saved(&self, write: &mut dyn FnMut(&T) -> Vec<u8>) -> Vec<Vec<SavedItem>> {
        let mut line = |line: &VecDeque<_>| line.iter().map(|one| plain(one, write)).collect();
        self.lines.iter().map(&mut line).collect()
    }

    /// Takes over what was saved, if it can be that.
    pub(super) fn restore(
        &mut self,
        saved: Vec<Vec<SavedItem>>,
        read: &mut dyn FnMut(&[u8]) -> Option<T>,
    ) -> Option<()> {
        if saved.len() != self.lines.len() {
            return None;
        }
        for (topic, (line, saved)) in self.lines.iter_mut().zip(saved).enumerate() {
            *line = saved.iter().map(|one| item(one, read)).collect::<Option<_>>()?;
            if let Some(first) = head(line) {
                self.heads.fill(topic, first);
            }
        }
        // If every topic had something, it would have been looked at.
        (!self.heads.full() || self.lines.is_empty()).then_some(())
    }

    pub(super) fn push(&mut self, topic: usize, time: Timestamp, item: T, book: &mut Book<T>) {
        let line = &mut self.lines[topic];
        line.push_back((time, item));
        if line.len() == 1 {
            self.heads.fill(topic, time.as_nanos());
        }
        if self.heads.full() {
            self.search(book);
        } else if self.queue > 0 && self.lines[topic].len() > self.queue {
            self.pop(topic, Unused::QueueFull, book);
            self.heads.renew(topic, true, head(&self.lines[topic]));
        }
    }

    fn search(&mut self, book: &mut Book<T>) {
        while self.heads.full() {
            self.heads.refresh();
            let limit = self.heads.earliest().1.saturating_add(self.epsilon);
            if self.heads.latest().1 <= limit {
                self.emit(book);
            } else {
                self.drop_until(limit, book);
            }
        }
    }

    fn emit(&mut self, book: &mut Book<T>) {
        let time = self.heads.latest().1;
        self.heads.clear();
        for (topic, line) in self.lines.iter_mut().enumerate() {
            if let Some((time, item)) = line.pop_front() {
                book.item(topic, time, item);
            }
            if let Some(next) = head(line) {
                self.heads.fill(topic, next);
            }
        }
        book.set(Timestamp::from_nanos(time));
    }

    /// Drops each head up to the limit: one of each topic.
    fn drop_until(&mut self, limit: i64, book: &mut Book<T>) {
        self.popped.clear();
        loop {
            let (topic, time) = self.heads.earliest();
            if time > limit {
                break;
            }
            self.pop(topic, Unused::NoMatch, book);
            self.popped.push(topic as u32);
            self.heads.pretend(topic, i64::MAX);
        }
        for &topic in &self.popped {
            match head(&self.lines[topic as usize]) {
                Some(next) => self.heads.replace(topic as usize, next),
                None => self.heads.empty(topic as usize, i64::MAX),
            }
        }
    }

    fn pop(&mut self, topic: usize, why: Unused, book: &mut Book<T>) {
        if let Some((time, _)) = self.lines[topic].pop_front() {
            book.unused(topic, time, why);
        }
    }

    pub(super) fn flush(&mut self, book: &mut Book<T>) {
        self.heads.clear();
        for (topic, line) in self.lines.iter_mut().enumerate() {
            for (time, _) in line.drain(..) {
                book.unused(topic, time, Unused::End);
            }
        }
    }
}
