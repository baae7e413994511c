//! Reference implementation of the order: recomputes everything from all received events.

use rondel_align::{
    LatePolicy, Lateness, Marker, MaxWait, Notice, OrderPolicy, OrderSettings, Origin, Refusal, Released,
    TopicOrder,
};
use rondel_event::{Timestamp, TopicId};

fn at(ns: i64) -> Timestamp {
    Timestamp::from_nanos(ns)
}

/// A waiting event: time, topic, sequence number, publisher, item.
type Waiting = (i64, usize, u64, u64, u64);

#[derive(Clone)]
struct Interval {
    after: Option<i64>,
    complete: i64,
    /// `None` for a marker without a count.
    count: Option<u64>,
    at_once: bool,
    partial: bool,
    given_up: bool,
}

#[derive(Clone, Default)]
struct Topic {
    /// The times of all received events except duplicates, and of those that were counted.
    received_times: Vec<i64>,
    times: Vec<(i64, Option<u64>)>,
    delays: Vec<u64>,
    numbers: Vec<(u64, u64)>,
    intervals: Vec<Interval>,
    /// Number of markers that have taken effect or are no longer waited for.
    settled: usize,
    /// The last marker that took effect without all its events.
    unmet: Option<i64>,
    stepped_back: bool,
    distrusted: bool,
    broken: bool,
    last_seen: Option<i64>,
    absent: bool,
    /// The times passed by the clock whenever the wait changed.
    passed: Option<i64>,
    late: u64,
    received: u64,
    sufficient: u64,
}

#[derive(Clone)]
pub(crate) struct Naive {
    settings: OrderSettings,
    topics: Vec<Topic>,
    waiting: Vec<Waiting>,
    reached: (i64, usize),
    now: i64,
    first: Option<i64>,
    clock_back: i64,
    pub(crate) released: Vec<Released<u64>>,
    pub(crate) notices: Vec<Notice>,
}

impl Naive {
    pub(crate) fn new(settings: OrderSettings) -> Naive {
        Naive {
            topics: vec![Topic::default(); settings.topics.len()],
            settings,
            waiting: Vec::new(),
            reached: (i64::MIN, 0),
            now: i64::MIN,
            first: None,
            clock_back: 0,
            released: Vec::new(),
            notices: Vec::new(),
        }
    }

    fn topic(&self, j: usize) -> &TopicOrder {
        &self.settings.topics[j]
    }

    /// Returns the wait for a topic; an estimated one is the quantile plus a quarter after every 64th delay.
    fn wait(&self, j: usize) -> Option<i64> {
        match self.topic(j).max_wait {
            MaxWait::None => None,
            MaxWait::Fixed(wait) => Some(wait as i64),
            MaxWait::Estimated { quantile, at_most } => {
                let seen = self.topics[j].delays.len() / 64 * 64;
                let mut delays = self.topics[j].delays[..seen].to_vec();
                delays.sort_unstable();
                let rank = (seen as f64 * quantile).ceil().max(1.0) as usize;
                let Some(&delay) = delays.get(rank.min(seen).wrapping_sub(1)) else {
                    return Some(at_most as i64);
                };
                // The end of its bucket.
                let exponent = delay.max(16).ilog2() - 4;
                let taken = ((((delay >> exponent) + 1) << exponent) - 1).min(*delays.last().unwrap());
                Some((taken + taken / 4 + 1).min(at_most) as i64)
            }
        }
    }

    fn absent_at(&self, j: usize) -> Option<i64> {
        if self.topics[j].absent {
            return None;
        }
        Some(self.topics[j].last_seen.or(self.first)? + self.topic(j).absent_after?.max(1) as i64)
    }

    /// Returns the number of the topic's events received with times in `(after, complete]`.
    fn count_received(&self, j: usize, interval: &Interval) -> u64 {
        let inside =
            |time: &&i64| interval.after.is_none_or(|after| **time > after) && **time <= interval.complete;
        self.topics[j].received_times.iter().filter(inside).count() as u64
    }

    /// Applies the markers of a topic in order. A marker with a part before the subscription takes effect once the next
    /// one has all its events.
    fn progress(&mut self, j: usize) {
        loop {
            let (here, next) = (&self.topics[j], self.topics[j].settled);
            let met = |i: usize| {
                let interval = here.intervals.get(i);
                interval.is_some_and(|interval| {
                    interval.count.is_some_and(|count| self.count_received(j, interval) >= count)
                })
            };
            let Some(interval) = here.intervals.get(next) else { return };
            if let Some(at_once) = here.intervals.iter().rposition(|i| i.at_once).filter(|i| *i >= next) {
                self.topics[j].settled = at_once + 1;
                continue;
            }
            if !met(next) {
                if !(interval.given_up || interval.partial && met(next + 1)) {
                    return;
                }
                self.topics[j].unmet = Some(interval.complete);
            }
            self.topics[j].settled += 1;
        }
    }

    fn through(&self, j: usize) -> Option<i64> {
        self.topics[j].settled.checked_sub(1).map(|last| self.topics[j].intervals[last].complete)
    }

    fn fifo(&self, j: usize) -> bool {
        self.topic(j).fifo && !self.topics[j].distrusted
    }

    fn latest(&self, j: usize) -> Option<i64> {
        self.topics[j].times.iter().map(|(time, _)| *time).max()
    }

    /// Whether it is known, without the clock, that no event can arrive on topic `j` before this tag.
    fn known(&self, j: usize, tag: (i64, usize)) -> bool {
        // After an event of a fifo topic no earlier one arrives, but others of the same time may.
        let seen = |latest: i64| (latest, j) >= tag;
        let confirms = |through: i64| (through + 1, j) > tag;
        !self.topic(j).in_play
            || self.topics[j].absent
            || self.fifo(j) && self.latest(j).is_some_and(seen)
            || self.through(j).max(self.topics[j].passed).is_some_and(confirms)
    }

    /// Returns the time at which the first waiting event is released; `None` if the clock does not release it.
    fn due(&self, tag: (i64, usize)) -> Option<i64> {
        let mut due = i64::MIN;
        for j in (0..self.topics.len()).filter(|&j| !self.known(j, tag)) {
            due = due.max(tag.0 + self.wait(j)?);
        }
        Some(due)
    }

    fn first_waiting(&self) -> Option<Waiting> {
        self.waiting.iter().min().copied()
    }

    fn release(&mut self, event: Waiting) {
        self.waiting.retain(|other| *other != event);
        self.reached = self.reached.max((event.0, event.1));
        let (topic, time) = (TopicId(event.1 as u32), at(event.0));
        self.released.push(Released { topic, time, lateness: None, item: event.4 });
    }

    /// Returns the next change by time alone: its time, and the absent topic, `None` if an event is released.
    fn next(&self) -> Option<(i64, Option<usize>)> {
        let absent = (0..self.topics.len()).filter_map(|j| Some((self.absent_at(j)?, j))).min();
        let head = self.first_waiting().and_then(|head| self.due((head.0, head.1)));
        match (absent, head) {
            (Some((absent, j)), Some(due)) if absent <= due => Some((absent, Some(j))),
            (_, Some(due)) => Some((due, None)),
            (Some((absent, j)), None) => Some((absent, Some(j))),
            (None, None) => None,
        }
    }

    pub(crate) fn deadline(&self) -> Option<Timestamp> {
        self.next().map(|(time, _)| at(time))
    }

    pub(crate) fn complete_up_to(&self) -> Option<Timestamp> {
        if self.now == i64::MIN {
            return None;
        }
        if self.settings.policy == OrderPolicy::Arrival {
            return Some(at(self.now));
        }
        let mut complete = i64::MAX;
        for j in (0..self.topics.len()).filter(|&j| self.topic(j).in_play) {
            let here = &self.topics[j];
            let seen = self.latest(j).filter(|_| self.fifo(j)).map(|latest| latest - 1);
            let clock = self.wait(j).map(|wait| self.now - wait);
            let here = match here.absent {
                true => self.now,
                false => seen.max(clock).max(self.through(j)).max(here.passed).unwrap_or(i64::MIN),
            };
            complete = complete.min(here);
        }
        if complete == i64::MAX {
            complete = self.now;
        }
        if let Some((time, ..)) = self.first_waiting() {
            complete = complete.min(time - 1);
        }
        Some(at(complete.max(self.reached.0.saturating_sub(1)))).filter(|complete| *complete > at(i64::MIN))
    }

    pub(crate) fn close(&mut self, time: Timestamp) {
        if let Some(complete) = self.complete_up_to() {
            self.reached = self.reached.max((time.min(complete).as_nanos() + 1, 0));
        }
    }

    pub(crate) fn advance(&mut self, now: Timestamp) {
        let now = now.as_nanos();
        if now < self.now {
            if self.now - now > self.clock_back {
                self.clock_back = self.now - now;
                self.notices.push(Notice::ClockBack { now: at(now), highest: at(self.now) });
            }
            return;
        }
        self.now = now;
        self.settle();
    }

    fn settle(&mut self) {
        while let Some((_, absent)) = self.next().filter(|(time, _)| *time <= self.now) {
            match (absent, self.first_waiting()) {
                (Some(j), _) => {
                    self.topics[j].absent = true;
                    let last_seen = self.topics[j].last_seen;
                    let since = at(last_seen.or(self.first).unwrap());
                    self.notices.push(Notice::Absent {
                        topic: TopicId(j as u32),
                        since,
                        ever: last_seen.is_some(),
                    });
                }
                (None, Some(head)) => self.release(head),
                (None, None) => unreachable!(),
            }
        }
    }

    fn sign_of_life(&mut self, j: usize) {
        self.first.get_or_insert(self.now);
        if std::mem::take(&mut self.topics[j].absent) {
            let after = (self.now - self.topics[j].last_seen.or(self.first).unwrap()) as u64;
            self.notices.push(Notice::Returned { topic: TopicId(j as u32), after });
        }
        self.topics[j].last_seen = Some(self.now);
    }

    /// Times before the reached one are not waited for.
    fn give_up(&mut self, j: usize, past: i64) {
        let topic = TopicId(j as u32);
        loop {
            let settled = self.topics[j].settled;
            let Some(next) = self.topics[j].intervals.get(settled).cloned() else { return };
            if next.complete > past {
                return;
            }
            let received = self.count_received(j, &next);
            self.topics[j].intervals[settled].given_up = true;
            self.progress(j);
            if let Some(count) = next.count.filter(|_| !next.partial) {
                let missing = count - received;
                self.notices.push(Notice::MarkerUnmet { topic, complete: at(next.complete), missing });
            }
        }
    }

    fn past(&self, j: usize) -> i64 {
        let clock = self.wait(j).map_or(i64::MIN, |wait| self.now - wait);
        clock.max(self.reached.0.saturating_sub(1))
    }

    fn number(&mut self, j: usize, origin: Origin) -> bool {
        let (topic, Origin { publisher, number }) = (TopicId(j as u32), origin);
        let here = &mut self.topics[j];
        if here.numbers.contains(&(publisher, number)) {
            self.notices.push(Notice::Duplicate { topic, publisher, number });
            return false;
        }
        let highest = here.numbers.iter().filter(|other| other.0 == publisher).map(|other| other.1).max();
        here.numbers.push((publisher, number));
        if let Some(highest) = highest.filter(|highest| number > highest + 1) {
            let missing = number - highest - 1;
            self.notices.push(Notice::Gap { topic, publisher, from: highest + 1, missing });
        }
        true
    }

    pub(crate) fn push(
        &mut self,
        topic: TopicId,
        time: Timestamp,
        origin: Option<Origin>,
        now: Timestamp,
        item: u64,
    ) {
        self.advance(now);
        let j = topic.index();
        self.sign_of_life(j);
        self.topics[j].received += 1;
        if origin.is_some_and(|origin| !self.number(j, origin)) {
            return;
        }
        let (time, now) = (time.as_nanos(), self.now);
        let too_far = |distance: i64, limit: Option<u64>| limit.is_some_and(|limit| distance > limit as i64);
        let refused = match () {
            () if too_far(time - now, self.settings.ahead) => Some((Refusal::Ahead, time - now)),
            () if too_far(now - time, self.settings.behind) => Some((Refusal::Behind, now - time)),
            () => None,
        };
        if let Some((reason, distance)) = refused {
            if self.settings.policy == OrderPolicy::EventTime {
                self.came_at(j, time);
            }
            self.notices.push(Notice::Refused { topic, time: at(time), reason, distance: distance as u64 });
            self.settle();
            return;
        }
        let delay = (now - time).max(0) as u64;
        if self.settings.policy == OrderPolicy::Arrival {
            self.released.push(Released { topic, time: at(time), lateness: None, item });
            return;
        }
        let old = self.wait(j);
        self.topics[j].delays.push(delay);
        if self.wait(j) != old {
            let passed = &mut self.topics[j].passed;
            *passed = (*passed).max(old.map(|old| now - old));
        }
        self.came_at(j, time);
        self.look_at(j, time, origin.map(|origin| origin.publisher));
        if (time, j) < self.reached {
            self.late(j, time, delay, item);
        } else {
            let (number, publisher) = origin
                .map_or((self.topics[j].received, u64::MAX), |origin| (origin.number, origin.publisher));
            self.waiting.push((time, j, number, publisher, item));
            if self.settings.queue > 0 && self.waiting.len() > self.settings.queue {
                let head = self.first_waiting().unwrap();
                self.release(head);
                self.notices.push(Notice::Early { topic: TopicId(head.1 as u32), time: at(head.0) });
            }
        }
        self.settle();
    }

    fn came_at(&mut self, j: usize, time: i64) {
        self.give_up(j, self.past(j));
        let unmet = self.topics[j].unmet;
        let broken =
            self.through(j).filter(|through| time <= *through && unmet.is_none_or(|unmet| time > unmet));
        self.topics[j].received_times.push(time);
        self.progress(j);
        if let Some(complete) = broken
            && !std::mem::replace(&mut self.topics[j].broken, true)
        {
            let topic = TopicId(j as u32);
            self.notices.push(Notice::MarkerBroken { topic, time: at(time), complete: at(complete) });
        }
    }

    fn look_at(&mut self, j: usize, time: i64, publisher: Option<u64>) {
        let (topic, here) = (TopicId(j as u32), &self.topics[j]);
        let latest =
            here.times.iter().copied().enumerate().max_by_key(|(i, (time, _))| (*time, *i)).map(|x| x.1);
        let of_this = |other: &&(i64, Option<u64>)| publisher.is_some() && other.1 == publisher;
        let in_order = here.times.iter().filter(of_this).all(|other| other.0 <= time);
        if let Some((latest, latest_by)) = latest.filter(|latest| time < latest.0)
            && self.topic(j).fifo
            && !here.stepped_back
        {
            let fifo = self.topic(j).max_wait == MaxWait::None && here.intervals.is_empty();
            let (time, latest) = (at(time), at(latest));
            self.notices.push(match (publisher, latest_by) {
                (Some(this), Some(other)) if this != other && in_order => {
                    Notice::StampsDisagree { topic, time, latest, publishers: [this, other], fifo }
                }
                _ => Notice::SteppedBack { topic, time, latest, fifo },
            });
            (self.topics[j].stepped_back, self.topics[j].distrusted) = (true, !fifo);
        }
        self.topics[j].times.push((time, publisher));
    }

    fn late(&mut self, j: usize, time: i64, delay: u64, item: u64) {
        let (topic, policy, reached) = (TopicId(j as u32), self.settings.late, self.reached.0);
        let excess = (reached - time) as u64;
        if policy != LatePolicy::Drop {
            let inconclusive = policy == LatePolicy::Inconclusive;
            let lateness = Some(Lateness { stamp: at(time), excess, inconclusive });
            self.released.push(Released { topic, time: at(reached), lateness, item });
        }
        self.notices.push(Notice::Late { topic, time: at(time), excess, delay, policy });
        let max_wait = self.wait(j).map(|wait| wait as u64);
        let here = &mut self.topics[j];
        here.late += 1;
        here.sufficient = here.sufficient.max(delay + 1);
        let (late, received, sufficient) = (here.late, here.received, here.sufficient);
        if [1, 10, 100, 1_000].contains(&late) {
            self.notices.push(Notice::WaitTooShort { topic, late, received, max_wait, sufficient });
        }
    }

    pub(crate) fn mark(&mut self, topic: TopicId, marker: &Marker, now: Timestamp) {
        self.advance(now);
        let j = topic.index();
        self.sign_of_life(j);
        if self.settings.policy == OrderPolicy::Arrival {
            return;
        }
        self.give_up(j, self.past(j));
        let complete = marker.complete.as_nanos();
        let announced = self.topics[j].intervals.last().map(|last| last.complete);
        let after = marker.after.map(|after| after.as_nanos());
        let new = Interval {
            after,
            complete,
            count: marker.count,
            at_once: false,
            partial: false,
            given_up: false,
        };
        let overlaps =
            after.is_some_and(|after| after > complete || announced.is_some_and(|before| after < before));
        if announced.is_some_and(|announced| complete < announced) {
            let complete = at(announced.unwrap());
            self.notices.push(Notice::MarkerBack { topic, marker: *marker, complete });
        } else if marker.count.is_none() {
            self.topics[j].intervals.push(Interval { at_once: true, ..new });
        } else if announced == Some(complete) {
        } else if overlaps {
            let complete = at(announced.unwrap_or(complete));
            self.notices.push(Notice::MarkerBack { topic, marker: *marker, complete });
        } else {
            if let (Some(before), Some(after)) = (announced, after)
                && after > before
            {
                let hole = Interval { after: announced, complete: after, count: None, ..new };
                self.topics[j].intervals.push(hole);
                self.notices.push(Notice::MarkerMissed { topic, complete: at(before), after: at(after) });
            }
            let partial = announced.is_none() && after.is_some();
            self.topics[j].intervals.push(Interval { after: after.max(announced), partial, ..new });
        }
        self.progress(j);
        self.topics[j].distrusted |= self.topics[j].stepped_back && !self.topics[j].intervals.is_empty();
        self.settle();
    }

    pub(crate) fn flush(&mut self) {
        while let Some(head) = self.first_waiting() {
            self.release(head);
        }
        for j in 0..self.topics.len() {
            self.give_up(j, i64::MAX);
        }
    }
}
