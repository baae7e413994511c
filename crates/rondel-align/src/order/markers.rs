//! Progress markers of one topic.

use std::collections::VecDeque;

use serde::{Deserialize, Serialize};

use super::delays::IMPOSSIBLE;
use super::queue::Queue;
use super::settings::Marker;

/// Limit of events remembered before the first marker.
const BEFORE_MARKERS: usize = 256;
/// Limit of events remembered that no marker covers yet.
const BEYOND: usize = 65_536;
/// Limit of markers that wait for their events separately; further ones are merged.
const PENDING: usize = 1_024;

/// The markers of a topic and the events that they count.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct Markers {
    /// Time up to which all events have arrived or are no longer waited for.
    pub(super) through: Option<i64>,
    /// Latest time of a marker that took effect without all of its events.
    unmet: Option<i64>,
    /// Time from which markers apply, if the first one states it.
    began: Option<i64>,
    /// Time of the latest marker.
    announced: Option<i64>,
    /// Markers whose events have not all arrived, each from the end of the one before it.
    pending: VecDeque<PendingMarker>,
    /// Times of the events that no marker covers yet.
    beyond: Queue<()>,
    /// Whether these times are recorded.
    remembering: bool,
    /// Time up to which some of them may have been dropped.
    forgotten: Option<i64>,
    /// Number of events received.
    received: u64,
}

/// A marker that waits for its events.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
struct PendingMarker {
    complete: i64,
    /// Number of events still to arrive, if known.
    missing: Option<u64>,
    /// Whether a part of its interval was before the subscription: such a marker takes effect once the next one has all
    /// its events.
    partial: bool,
}

/// Result of adding a marker.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum MarkerOutcome {
    /// The marker was accepted.
    Taken,
    /// The marker is a duplicate.
    Again,
    /// The marker covers a time that earlier markers covered, up to the given one.
    Back(i64),
    /// The marker was accepted, but the one before it is missing, which began at the given time.
    Skipped(i64),
}

impl Markers {
    pub(super) fn new() -> Markers {
        Markers {
            through: None,
            unmet: None,
            began: None,
            announced: None,
            pending: VecDeque::new(),
            beyond: Queue::new(),
            remembering: true,
            forgotten: None,
            received: 0,
        }
    }

    /// Whether restored values are plausible: a snapshot may contain any numbers.
    pub(super) fn is_plausible(&self) -> bool {
        self.received < IMPOSSIBLE && self.beyond.len() as u64 <= self.received
    }

    /// Whether any marker was added.
    pub(super) fn any(&self) -> bool {
        self.announced.is_some()
    }

    /// Whether a marker waits for its events.
    #[inline]
    pub(super) fn waits(&self) -> bool {
        !self.pending.is_empty()
    }

    /// Counts an event. If markers had covered its time already, returns the time up to which they apply.
    #[inline]
    pub(super) fn receive(&mut self, time: i64) -> Option<i64> {
        self.received += 1;
        if !self.any() {
            self.remember(time, BEFORE_MARKERS);
            return None;
        }
        if let Some(through) = self.through.filter(|through| time <= *through) {
            return self.unmet.is_none_or(|unmet| time > unmet).then_some(through);
        }
        if self.began.is_some_and(|began| time <= began) {
            return None;
        }
        let at = self.pending.partition_point(|pending| pending.complete < time);
        let Some(pending) = self.pending.get_mut(at) else {
            self.remember(time, BEYOND);
            return None;
        };
        if let Some(missing) = &mut pending.missing {
            *missing = missing.saturating_sub(1);
        }
        self.settle();
        None
    }

    fn remember(&mut self, time: i64, most: usize) {
        if self.remembering {
            self.beyond.push(time, (0, 0), ());
            if self.beyond.len() <= most {
                return;
            }
            if !self.any() {
                // The topic probably has no markers at all.
                self.remembering = false;
                while let Some((time, ())) = self.beyond.pop() {
                    self.forget(time);
                }
                self.beyond = Queue::new();
            } else if let Some((time, ())) = self.beyond.pop() {
                self.forget(time);
            }
        } else {
            self.forget(time);
        }
    }

    fn forget(&mut self, time: i64) {
        self.forgotten = Some(self.forgotten.map_or(time, |forgotten| forgotten.max(time)));
    }

    /// Adds a marker.
    pub(super) fn mark(&mut self, marker: &Marker) -> MarkerOutcome {
        let complete = marker.complete.as_nanos();
        let after = marker.after.map(|after| after.as_nanos());
        if let Some(announced) = self.announced {
            if complete < announced {
                return MarkerOutcome::Back(announced);
            }
            if complete == announced && marker.count.is_some() {
                return MarkerOutcome::Again;
            }
        }
        let Some(count) = marker.count else {
            self.count(complete);
            self.pending.clear();
            (self.announced, self.through) = (Some(complete), Some(complete));
            return MarkerOutcome::Taken;
        };
        let first = self.announced.is_none();
        if let Some(after) = after
            && (after > complete || self.announced.is_some_and(|announced| after < announced))
        {
            return MarkerOutcome::Back(self.announced.unwrap_or(complete));
        }
        let skipped = self.announced.filter(|announced| after.is_some_and(|after| after > *announced));
        if first {
            self.began = after;
        }
        if let Some(after) = after {
            // Events before the marker's own interval.
            self.count(after);
            if skipped.is_some() {
                self.pending.push_back(PendingMarker { complete: after, missing: None, partial: false });
            }
        }
        let counted = self.count(complete);
        let known = match after {
            // The first marker of a publisher counts from the beginning.
            None if first => {
                let beyond = self.beyond.len() as u64;
                self.forgotten.is_none_or(|forgotten| forgotten <= complete).then(|| self.received - beyond)
            }
            _ => {
                let from = after.or(self.announced);
                self.forgotten
                    .is_none_or(|forgotten| from.is_some_and(|from| forgotten <= from))
                    .then_some(counted)
            }
        };
        let partial = known.is_none() || first && after.is_some();
        let missing = known.map(|known| count.saturating_sub(known));
        self.announced = Some(complete);
        self.remembering = true;
        self.pending.push_back(PendingMarker { complete, missing, partial });
        self.join();
        self.settle();
        skipped.map_or(MarkerOutcome::Taken, MarkerOutcome::Skipped)
    }

    /// Removes the events up to this time from `beyond` and returns their number.
    fn count(&mut self, through: i64) -> u64 {
        let mut count = 0;
        while self.beyond.first().is_some_and(|time| time <= through) {
            self.beyond.pop();
            count += 1;
        }
        count
    }

    /// Merges the last two pending markers if there are too many.
    fn join(&mut self) {
        if self.pending.len() > PENDING
            && let (Some(last), Some(before)) = (self.pending.pop_back(), self.pending.pop_back())
        {
            let missing = last.missing.zip(before.missing).map(|(last, before)| last.saturating_add(before));
            let partial = last.partial || before.partial;
            self.pending.push_back(PendingMarker { complete: last.complete, missing, partial });
        }
    }

    /// Applies pending markers in order while all their events have arrived.
    fn settle(&mut self) {
        while let Some(first) = self.pending.front() {
            let met = |pending: &PendingMarker| pending.missing == Some(0);
            if !met(first) {
                if !first.partial || !self.pending.get(1).is_some_and(met) {
                    return;
                }
                self.unmet = Some(first.complete);
            }
            self.through = Some(first.complete);
            self.pending.pop_front();
        }
    }

    /// Applies pending markers up to this time without their missing events. Returns the time of the first one that has
    /// missing events, with their number.
    #[inline]
    pub(super) fn give_up(&mut self, past: i64) -> Option<(i64, u64)> {
        while let Some(first) = self.pending.front().copied().filter(|first| first.complete <= past) {
            self.pending.pop_front();
            self.unmet = Some(first.complete);
            self.through = Some(first.complete);
            self.settle();
            if let Some(missing) = first.missing.filter(|_| !first.partial) {
                return Some((first.complete, missing));
            }
        }
        None
    }
}
