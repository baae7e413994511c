use std::collections::VecDeque;

use serde::{Deserialize, Serialize};

use super::delays::IMPOSSIBLE;
use super::queue::Queue;
use super::settings::Marker;

/// How many events are remembered for markers of a topic that has had none yet.
const BEFORE_MARKERS: usize = 256;
/// How many events are remembered that no marker has spoken of.
const BEYOND: usize = 65_536;
/// How many markers may wait for their events one by one; more are made one.
const PENDING: usize = 1_024;

/// What markers have said of a topic.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct Markers {
    /// Everything up to here has come, or is not waited for.
    pub(super) through: Option<i64>,
    /// Up to here, at most, a marker went without all of its events.
    unmet: Option<i64>,
    /// From here on they speak, if the first says so.
    began: Option<i64>,
    /// Up to here markers have spoken.
    announced: Option<i64>,
    /// Markers whose events have not all come, each from the end of the one before it.
    pending: VecDeque<Pending>,
    /// The times of the events that no marker has spoken of.
    beyond: Queue<()>,
    /// Whether those are remembered.
    remembering: bool,
    /// Up to here some of them may have been forgotten.
    forgotten: Option<i64>,
    /// How many events came.
    received: u64,
}

#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
struct Pending {
    complete: i64,
    /// How many events are still to come, if that is known.
    missing: Option<u64>,
    /// Part of its time was before anybody listened: it is over once the next has all its events.
    partial: bool,
}

/// What became of a marker.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Marked {
    Taken,
    /// The same again.
    Again,
    /// It speaks of what one before it had spoken of: up to here.
    Back(i64),
    /// The one before it is missing, which would have spoken from here.
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

    /// Whether they can have come about.
    pub(super) fn may_be(&self) -> bool {
        self.received < IMPOSSIBLE && self.beyond.len() as u64 <= self.received
    }

    /// Whether there was any.
    pub(super) fn any(&self) -> bool {
        self.announced.is_some()
    }

    /// Whether any waits for its events.
    #[inline]
    pub(super) fn waits(&self) -> bool {
        !self.pending.is_empty()
    }

    /// An event came. If a marker had said that it could not: up to what time.
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
                // Perhaps there never will be one.
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

    /// A marker came.
    pub(super) fn mark(&mut self, marker: &Marker) -> Marked {
        let complete = marker.complete.as_nanos();
        let after = marker.after.map(|after| after.as_nanos());
        if let Some(announced) = self.announced {
            if complete < announced {
                return Marked::Back(announced);
            }
            if complete == announced && marker.count.is_some() {
                return Marked::Again;
            }
        }
        let Some(count) = marker.count else {
            self.count(complete);
            self.pending.clear();
            (self.announced, self.through) = (Some(complete), Some(complete));
            return Marked::Taken;
        };
        let first = self.announced.is_none();
        if let Some(after) = after
            && (after > complete || self.announced.is_some_and(|announced| after < announced))
        {
            return Marked::Back(self.announced.unwrap_or(complete));
        }
        let skipped = self.announced.filter(|announced| after.is_some_and(|after| after > *announced));
        if first {
            self.began = after;
        }
        if let Some(after) = after {
            // Not its own.
            self.count(after);
            if skipped.is_some() {
                self.pending.push_back(Pending { complete: after, missing: None, partial: false });
            }
        }
        let counted = self.count(complete);
        let known = match after {
            // The first of its publisher counts from the beginning.
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
        self.pending.push_back(Pending { complete, missing, partial });
        self.join();
        self.settle();
        skipped.map_or(Marked::Taken, Marked::Skipped)
    }

    /// Takes the events up to this time out of those that no marker has spoken of: how many there were.
    fn count(&mut self, through: i64) -> u64 {
        let mut count = 0;
        while self.beyond.first().is_some_and(|time| time <= through) {
            self.beyond.pop();
            count += 1;
        }
        count
    }

    /// Makes the last two that wait one, where too many do.
    fn join(&mut self) {
        if self.pending.len() > PENDING
            && let (Some(last), Some(before)) = (self.pending.pop_back(), self.pending.pop_back())
        {
            let missing = last.missing.zip(before.missing).map(|(last, before)| last.saturating_add(before));
            let partial = last.partial || before.partial;
            self.pending.push_back(Pending { complete: last.complete, missing, partial });
        }
    }

    /// Lets markers take effect, in their order, as far as all their events have come.
    fn settle(&mut self) {
        while let Some(first) = self.pending.front() {
            let met = |pending: &Pending| pending.missing == Some(0);
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

    /// Order has gone on past this time: the first of the markers that are not waited for any more, with how many events
    /// are missing.
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
