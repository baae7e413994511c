//! The subscriptions of a command: those of topics whose types are resolved later are added by another thread.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use rondel_event::TopicId;
use rondel_net::adapter::{Problems, Subscription};

/// The subscriptions of a command, shared by the threads that add to them, observe them and close them.
#[derive(Clone, Default)]
pub struct Subscriptions(Arc<Mutex<State>>);

#[derive(Default)]
struct State {
    /// The open subscriptions, each with its number; those that are no topics have none.
    open: Vec<(Option<TopicId>, Box<dyn Subscription>)>,
    /// The problems of removed subscriptions.
    removed: Problems,
}

impl Subscriptions {
    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds a subscription, which has a number if it is that of a topic.
    pub fn add(&self, number: Option<TopicId>, subscription: Box<dyn Subscription>) {
        self.state().open.push((number, subscription));
    }

    /// Removes the subscription with this number, to be closed.
    pub fn remove(&self, number: TopicId) -> Option<Box<dyn Subscription>> {
        let mut state = self.state();
        let at = state.open.iter().position(|(known, _)| *known == Some(number))?;
        Some(state.open.swap_remove(at).1)
    }

    /// Adds the problems of a subscription that was removed and closed.
    pub fn add_removed(&self, problems: Problems) {
        self.state().removed += problems;
    }

    /// Returns the number of open subscriptions.
    pub fn count(&self) -> usize {
        self.state().open.len()
    }

    /// Returns the problems of all subscriptions so far, removed ones included.
    pub fn problems(&self) -> Problems {
        let state = self.state();
        let mut problems = state.removed;
        state.open.iter().for_each(|(_, subscription)| problems += subscription.problems());
        problems
    }

    /// Returns the number of present publishers of a topic; `None` where its network does not show it.
    pub fn publishers(&self, number: TopicId) -> Option<u64> {
        let state = self.state();
        let mut own = state.open.iter().filter(|(known, _)| *known == Some(number));
        own.find_map(|(_, subscription)| subscription.publishers())
    }

    /// Returns the problems of removed subscriptions.
    pub fn removed_problems(&self) -> Problems {
        self.state().removed
    }

    /// Takes the open subscriptions, to close them.
    pub fn take(&self) -> Vec<Box<dyn Subscription>> {
        let open = std::mem::take(&mut self.state().open);
        open.into_iter().map(|(_, subscription)| subscription).collect()
    }
}
