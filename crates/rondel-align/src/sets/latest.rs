//! The policy [`SetPolicy::Latest`](super::SetPolicy::Latest).

use rondel_event::Timestamp;
use serde::{Deserialize, Serialize};

use super::buffer::{SetBuffer, Unused};
use super::saved::{SavedLatest, restore_item, save_item};

/// Sets of the last item of each topic, emitted at each item of the fastest topic that is not late.
#[derive(Clone, Debug)]
pub(super) struct Latest<T> {
    weights: Weights,
    states: Vec<LatestTopic<T>>,
    /// Number of topics with an item.
    filled: usize,
    /// The topic found to be faster at the last search: the first one to check.
    pacemaker: usize,
}

/// Weights of the policy; see [`SetPolicy::Latest`](super::SetPolicy::Latest).
#[derive(Clone, Copy, Debug)]
pub(super) struct Weights {
    pub(super) rate: f64,
    pub(super) error: f64,
    pub(super) margin: f64,
}

/// Last item and pace of a topic.
#[derive(Clone, Debug)]
struct LatestTopic<T> {
    held: Option<(Timestamp, T)>,
    /// Whether `held` was in a set.
    used: bool,
    pace: Pace,
}

/// Rate of the items of a topic by their stamps; their arrivals depend on the network or the speed of a replay.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize)]
pub(super) struct Pace {
    /// Stamp of the last item that was later than the one before.
    last: i64,
    /// Moving average of the rate, in items per second.
    rate: Option<f64>,
    /// Moving average of the difference of single periods from the rate, from the second period on.
    error: Option<f64>,
}

impl Pace {
    /// Returns a pace without averages that starts at an item.
    fn from(time: i64) -> Pace {
        Pace { last: time, rate: None, error: None }
    }

    /// Returns the rate of the period from the last item to a stamp; `None` if that is not later.
    fn momentary(&self, time: i64) -> Option<f64> {
        let period = time.saturating_sub(self.last);
        (period > 0).then(|| 1e9 / period as f64)
    }

    /// Updates the averages with an item. Returns `false` if its stamp is not later than that of the last.
    fn item(&mut self, time: i64, weights: &Weights) -> bool {
        let Some(momentary) = self.momentary(time) else {
            if time < self.last {
                *self = Pace::from(time);
            }
            return false;
        };
        self.last = time;
        let Some(rate) = self.rate else {
            self.rate = Some(momentary);
            return true;
        };
        let distance = (rate - momentary).abs();
        match self.error {
            None => self.error = Some(distance),
            Some(error) if distance > weights.margin * error => {
                // The rate has changed: start new averages.
                (self.rate, self.error) = (Some(momentary), None);
                return true;
            }
            Some(error) => self.error = Some(weights.error * distance + (1.0 - weights.error) * error),
        }
        self.rate = Some(weights.rate * momentary + (1.0 - weights.rate) * rate);
        true
    }

    /// Whether the next item is overdue at this stamp.
    fn is_late(&self, time: i64, weights: &Weights) -> bool {
        match (self.rate, self.error, self.momentary(time)) {
            (Some(rate), Some(error), Some(at_best)) => rate - at_best > weights.margin * error,
            _ => false,
        }
    }
}

impl<T: Clone> Latest<T> {
    pub(super) fn new(topics: usize, weights: Weights) -> Latest<T> {
        let state = || LatestTopic { held: None, used: false, pace: Pace::default() };
        Latest { weights, states: (0..topics).map(|_| state()).collect(), filled: 0, pacemaker: 0 }
    }

    /// Returns the state for a snapshot.
    pub(super) fn saved(&self, write: &mut dyn FnMut(&T) -> Vec<u8>) -> SavedLatest {
        let mut state = |state: &LatestTopic<T>| {
            (state.held.as_ref().map(|held| save_item(held, write)), state.used, state.pace)
        };
        SavedLatest { states: self.states.iter().map(&mut state).collect(), pacemaker: self.pacemaker }
    }

    /// Restores a saved state; `None` if it is inconsistent.
    pub(super) fn restore(
        &mut self,
        saved: SavedLatest,
        read: &mut dyn FnMut(&[u8]) -> Option<T>,
    ) -> Option<()> {
        if saved.states.len() != self.states.len() {
            return None;
        }
        for (state, (held, used, pace)) in self.states.iter_mut().zip(saved.states) {
            let held = match &held {
                Some(held) => Some(restore_item(held, read)?),
                None => None,
            };
            self.filled += usize::from(held.is_some());
            *state = LatestTopic { held, used, pace };
        }
        self.pacemaker = saved.pacemaker;
        Some(())
    }

    /// Adds an item.
    pub(super) fn push(&mut self, topic: usize, time: Timestamp, item: T, buffer: &mut SetBuffer<T>) {
        let stamp = time.as_nanos();
        let state = &mut self.states[topic];
        let first = match state.held.replace((time, item)) {
            Some((before, _)) => {
                if !state.used {
                    buffer.unused(topic, before, Unused::Superseded);
                }
                false
            }
            None => true,
        };
        state.used = false;
        if first {
            self.filled += 1;
            state.pace = Pace::from(stamp);
            return;
        }
        let paced = state.pace.item(stamp, &self.weights);
        if paced && self.filled == self.states.len() && self.is_fastest(topic, stamp) {
            self.emit(time, buffer);
        }
    }

    /// Whether every faster topic is late; of equally fast topics the first counts as faster.
    fn is_fastest(&mut self, topic: usize, time: i64) -> bool {
        let Some(rate) = self.states[topic].pace.rate else { return false };
        let is_before = |i: usize, state: &LatestTopic<T>| {
            let faster = state.pace.rate.is_some_and(|r| r > rate || r == rate && i < topic);
            faster && !state.pace.is_late(time, &self.weights)
        };
        // Usually the same topic is faster.
        if self.states.get(self.pacemaker).is_some_and(|state| is_before(self.pacemaker, state)) {
            return false;
        }
        let faster = self.states.iter().enumerate().position(|(i, state)| is_before(i, state));
        self.pacemaker = faster.unwrap_or(topic);
        faster.is_none()
    }

    fn emit(&mut self, time: Timestamp, buffer: &mut SetBuffer<T>) {
        for (topic, state) in self.states.iter_mut().enumerate() {
            if let Some((time, item)) = &state.held {
                buffer.item_again(topic, *time, item.clone(), state.used);
                state.used = true;
            }
        }
        buffer.set(time);
    }

    pub(super) fn flush(&mut self, buffer: &mut SetBuffer<T>) {
        for (topic, state) in self.states.iter_mut().enumerate() {
            if let Some((time, _)) = state.held.take().filter(|_| !state.used) {
                buffer.unused(topic, time, Unused::End);
            }
            state.used = false;
        }
        self.filled = 0;
    }
}
