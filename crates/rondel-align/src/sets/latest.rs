use rondel_event::Timestamp;
use serde::{Deserialize, Serialize};

use super::book::{Book, Unused};
use super::saved::{SavedLatest, item, plain};

/// The last item of each topic, whenever the fastest topic that is not late has one.
#[derive(Clone, Debug)]
pub(super) struct Latest<T> {
    weights: Weights,
    lines: Vec<Line<T>>,
    /// How many topics have an item.
    filled: usize,
    /// A topic that was faster than another and not late when it was asked for last.
    pacemaker: usize,
}

#[derive(Clone, Copy, Debug)]
pub(super) struct Weights {
    pub(super) rate: f64,
    pub(super) error: f64,
    pub(super) margin: f64,
}

#[derive(Clone, Debug)]
struct Line<T> {
    held: Option<(Timestamp, T)>,
    /// What is held has been in a set.
    used: bool,
    pace: Pace,
}

/// How fast the items of a topic come, by the clock.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize)]
pub(super) struct Pace {
    /// The clock at the last item that counted.
    last: i64,
    /// Items per second: an average that follows quickly.
    rate: Option<f64>,
    /// The average distance of a single period from the rate, from the second period on.
    error: Option<f64>,
}

impl Pace {
    /// Items per second if one comes now, which is later than the last.
    fn momentary(&self, now: i64) -> Option<f64> {
        let period = now.saturating_sub(self.last);
        (period > 0).then(|| 1e9 / period as f64)
    }

    /// An item comes; whether this tells anything about the rate.
    fn item(&mut self, now: i64, weights: &Weights) -> bool {
        let Some(momentary) = self.momentary(now) else { return false };
        self.last = now;
        let Some(rate) = self.rate else {
            self.rate = Some(momentary);
            return true;
        };
        let distance = (rate - momentary).abs();
        match self.error {
            None => self.error = Some(distance),
            Some(error) if distance > weights.margin * error => {
                // It is another pace now.
                (self.rate, self.error) = (Some(momentary), None);
                return true;
            }
            Some(error) => self.error = Some(weights.error * distance + (1.0 - weights.error) * error),
        }
        self.rate = Some(weights.rate * momentary + (1.0 - weights.rate) * rate);
        true
    }

    /// Whether its next item should have been here.
    fn is_late(&self, now: i64, weights: &Weights) -> bool {
        match (self.rate, self.error, self.momentary(now)) {
            (Some(rate), Some(error), Some(at_best)) => rate - at_best > weights.margin * error,
            _ => false,
        }
    }
}

impl<T: Clone> Latest<T> {
    pub(super) fn new(topics: usize, weights: Weights) -> Latest<T> {
        let line = || Line { held: None, used: false, pace: Pace::default() };
        Latest { weights, lines: (0..topics).map(|_| line()).collect(), filled: 0, pacemaker: 0 }
    }

    /// For a snapshot.
    pub(super) fn saved(&self, write: &mut dyn FnMut(&T) -> Vec<u8>) -> SavedLatest {
        let mut line =
            |line: &Line<T>| (line.held.as_ref().map(|held| plain(held, write)), line.used, line.pace);
        SavedLatest { lines: self.lines.iter().map(&mut line).collect(), pacemaker: self.pacemaker }
    }

    /// Takes over what was saved, if it can be that.
    pub(super) fn restore(
        &mut self,
        saved: SavedLatest,
        read: &mut dyn FnMut(&[u8]) -> Option<T>,
    ) -> Option<()> {
        if saved.lines.len() != self.lines.len() {
            return None;
        }
        for (line, (held, used, pace)) in self.lines.iter_mut().zip(saved.lines) {
            let held = match &held {
                Some(held) => Some(item(held, read)?),
                None => None,
            };
            self.filled += usize::from(held.is_some());
            *line = Line { held, used, pace };
        }
        self.pacemaker = saved.pacemaker;
        Some(())
    }

    /// `now` never goes back.
    pub(super) fn push(
        &mut self,
        topic: usize,
        time: Timestamp,
        now: Timestamp,
        item: T,
        book: &mut Book<T>,
    ) {
        let now = now.as_nanos();
        let line = &mut self.lines[topic];
        let first = match line.held.replace((time, item)) {
            Some((before, _)) => {
                if !line.used {
                    book.unused(topic, before, Unused::Superseded);
                }
                false
            }
            None => true,
        };
        line.used = false;
        if first {
            self.filled += 1;
            line.pace = Pace { last: now, rate: None, error: None };
            return;
        }
        let paced = line.pace.item(now, &self.weights);
        if paced && self.filled == self.lines.len() && self.is_fastest(topic, now) {
            self.emit(time, book);
        }
    }

    /// Whether no faster topic is in time; of equally fast ones the first counts as faster.
    fn is_fastest(&mut self, topic: usize, now: i64) -> bool {
        let Some(rate) = self.lines[topic].pace.rate else { return false };
        let is_before = |i: usize, line: &Line<T>| {
            let faster = line.pace.rate.is_some_and(|r| r > rate || r == rate && i < topic);
            faster && !line.pace.is_late(now, &self.weights)
        };
        // Mostly it is the same one that is faster.
        if self.lines.get(self.pacemaker).is_some_and(|line| is_before(self.pacemaker, line)) {
            return false;
        }
        let faster = self.lines.iter().enumerate().position(|(i, line)| is_before(i, line));
        self.pacemaker = faster.unwrap_or(topic);
        faster.is_none()
    }

    fn emit(&mut self, time: Timestamp, book: &mut Book<T>) {
        for (topic, line) in self.lines.iter_mut().enumerate() {
            if let Some((time, item)) = &line.held {
                book.item_again(topic, *time, item.clone(), line.used);
                line.used = true;
            }
        }
        book.set(time);
    }

    pub(super) fn flush(&mut self, book: &mut Book<T>) {
        for (topic, line) in self.lines.iter_mut().enumerate() {
            if let Some((time, _)) = line.held.take().filter(|_| !line.used) {
                book.unused(topic, time, Unused::End);
            }
            line.used = false;
        }
        self.filled = 0;
    }
}
