//! Queues on trial.

use std::collections::VecDeque;

use serde::{Deserialize, Serialize};

/// A queue of which what was put in and taken out last can be taken back.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Reel<T> {
    items: VecDeque<T>,
    /// What was taken out on trial.
    taken: Vec<T>,
    /// How many were put in on trial, and not taken out.
    put: usize,
    is_trial: bool,
}

impl<T> Default for Reel<T> {
    fn default() -> Reel<T> {
        Reel { items: VecDeque::new(), taken: Vec::new(), put: 0, is_trial: false }
    }
}

impl<T: Clone> Reel<T> {
    pub(crate) fn front(&self) -> Option<&T> {
        self.items.front()
    }

    pub(crate) fn push_back(&mut self, item: T) {
        self.items.push_back(item);
        self.put += 1;
    }

    pub(crate) fn pop_front(&mut self) -> Option<T> {
        let item = self.items.pop_front()?;
        if self.is_trial {
            // What was put in on trial is gone for good.
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

    /// Whether all of it is sound, given what is of an item.
    pub(crate) fn fits(&self, is_sound: impl Fn(&T) -> bool) -> bool {
        (!self.is_trial || self.put <= self.items.len()) && self.iter().all(is_sound)
    }

    pub(crate) fn try_out(&mut self) {
        self.taken.clear();
        (self.put, self.is_trial) = (0, true);
    }

    pub(crate) fn confirm(&mut self) {
        self.taken.clear();
        self.is_trial = false;
    }

    pub(crate) fn take_back(&mut self) {
        if self.is_trial {
            self.items.truncate(self.items.len() - self.put);
            while let Some(item) = self.taken.pop() {
                self.items.push_front(item);
            }
            self.is_trial = false;
        }
    }
}
