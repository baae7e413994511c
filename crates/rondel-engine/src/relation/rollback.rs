//! Queues that can roll back a speculative step.

use std::collections::VecDeque;

use serde::{Deserialize, Serialize};

/// Queue whose additions and removals since [`begin_speculation`](RollbackQueue::begin_speculation) can be
/// undone.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct RollbackQueue<T> {
    items: VecDeque<T>,
    /// Items removed speculatively.
    taken: Vec<T>,
    /// Number of items added speculatively and not removed.
    put: usize,
    is_speculative: bool,
}

impl<T> Default for RollbackQueue<T> {
    fn default() -> RollbackQueue<T> {
        RollbackQueue { items: VecDeque::new(), taken: Vec::new(), put: 0, is_speculative: false }
    }
}

impl<T: Clone> RollbackQueue<T> {
    pub(crate) fn front(&self) -> Option<&T> {
        self.items.front()
    }

    pub(crate) fn push_back(&mut self, item: T) {
        self.items.push_back(item);
        self.put += 1;
    }

    pub(crate) fn pop_front(&mut self) -> Option<T> {
        let item = self.items.pop_front()?;
        if self.is_speculative {
            // A speculative item needs no restoring.
            if self.items.len() < self.put {
                self.put -= 1;
            } else {
                self.taken.push(item.clone());
            }
        }
        Some(item)
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = &T> {
        self.items.iter().chain(&self.taken)
    }

    /// Whether all items are valid, by a test of each.
    pub(crate) fn fits(&self, is_sound: impl Fn(&T) -> bool) -> bool {
        (!self.is_speculative || self.put <= self.items.len()) && self.iter().all(is_sound)
    }

    pub(crate) fn begin_speculation(&mut self) {
        self.taken.clear();
        (self.put, self.is_speculative) = (0, true);
    }

    pub(crate) fn confirm(&mut self) {
        self.taken.clear();
        self.is_speculative = false;
    }

    pub(crate) fn roll_back(&mut self) {
        if self.is_speculative {
            self.items.truncate(self.items.len() - self.put);
            while let Some(item) = self.taken.pop() {
                self.items.push_front(item);
            }
            self.is_speculative = false;
        }
    }
}
