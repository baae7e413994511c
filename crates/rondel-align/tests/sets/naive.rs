//! Naive implementations of the policies, as described and with plain vectors.

use std::collections::BTreeMap;

use rondel_align::Unused;

/// A stamp and an item.
pub(crate) type Item = (i64, u32);

/// The emitted sets and the unused items.
#[derive(Debug, Default, PartialEq)]
pub(crate) struct Outcome {
    pub(crate) sets: Vec<(i64, Vec<Item>)>,
    pub(crate) unused: Vec<(usize, i64, Unused)>,
}

impl Outcome {
    fn set(&mut self, items: Vec<Item>) {
        let time = items.iter().map(|&(time, _)| time).max().unwrap();
        self.sets.push((time, items));
    }

    fn unused(&mut self, topic: usize, item: Item, why: Unused) {
        self.unused.push((topic, item.0, why));
    }
}

pub(crate) trait Naive {
    fn push(&mut self, topic: usize, time: i64, now: i64, item: u32);
    fn flush(&mut self);
    fn outcome(&mut self) -> &mut Outcome;
}

#[derive(Default)]
pub(crate) struct Exact {
    pub(crate) topics: usize,
    pub(crate) queue: usize,
    pub(crate) map: BTreeMap<i64, BTreeMap<usize, Item>>,
    pub(crate) outcome: Outcome,
}

impl Exact {
    fn drop_first(&mut self, why: Unused) {
        for (topic, item) in self.map.pop_first().unwrap().1 {
            self.outcome.unused(topic, item, why);
        }
    }
}

impl Naive for Exact {
    fn push(&mut self, topic: usize, time: i64, _: i64, item: u32) {
        let set = self.map.entry(time).or_default();
        if let Some(before) = set.insert(topic, (time, item)) {
            self.outcome.unused(topic, before, Unused::Replaced);
        }
        if set.len() == self.topics {
            let set = self.map.remove(&time).unwrap();
            self.outcome.set(set.into_values().collect());
            while self.map.first_key_value().is_some_and(|(&t, _)| t < time) {
                self.drop_first(Unused::Older);
            }
        }
        while self.queue > 0 && self.map.len() > self.queue {
            self.drop_first(Unused::QueueFull);
        }
    }

    fn flush(&mut self) {
        while !self.map.is_empty() {
            self.drop_first(Unused::End);
        }
    }

    fn outcome(&mut self) -> &mut Outcome {
        &mut self.outcome
    }
}

/// State of the search.
struct Candidate {
    items: Vec<Item>,
    start: i64,
    end: i64,
    pivot: usize,
    pivot_time: i64,
}

pub(crate) struct Approximate {
    queue_size: usize,
    age_penalty: f64,
    max_interval: i64,
    lower_bounds: Vec<i64>,
    queues: Vec<Vec<Item>>,
    past: Vec<Vec<Item>>,
    dropped: Vec<bool>,
    candidate: Option<Candidate>,
    outcome: Outcome,
}

/// Returns topic and time of the earliest (ties: the first) and of the latest (ties: the last).
fn bounds(times: &[i64]) -> ((usize, i64), (usize, i64)) {
    let mut start = (0, times[0]);
    let mut end = (0, times[0]);
    for (topic, &time) in times.iter().enumerate() {
        if time < start.1 {
            start = (topic, time);
        }
        if time >= end.1 {
            end = (topic, time);
        }
    }
    (start, end)
}

impl Approximate {
    pub(crate) fn new(
        queue_size: usize,
        age_penalty: f64,
        max_interval: i64,
        lower_bounds: Vec<i64>,
    ) -> Self {
        let topics = lower_bounds.len();
        Approximate {
            queue_size,
            age_penalty,
            max_interval,
            lower_bounds,
            queues: vec![Vec::new(); topics],
            past: vec![Vec::new(); topics],
            dropped: vec![false; topics],
            candidate: None,
            outcome: Outcome::default(),
        }
    }

    fn older(&self, end: i64, candidate: &Candidate) -> f64 {
        (end - candidate.end) as f64 * (1.0 + self.age_penalty)
    }

    fn move_to_past(&mut self, topic: usize) {
        let item = self.queues[topic].remove(0);
        self.past[topic].push(item);
    }

    fn put_back(&mut self) {
        for (queue, past) in self.queues.iter_mut().zip(&mut self.past) {
            past.append(queue);
            std::mem::swap(queue, past);
        }
    }

    /// Makes the heads the candidate and drops the past items.
    fn take_candidate(&mut self, start: i64, end: i64, pivot: usize, pivot_time: i64) {
        for (topic, past) in self.past.iter_mut().enumerate() {
            for item in past.drain(..) {
                self.outcome.unused(topic, item, Unused::Worse);
            }
        }
        let items = self.queues.iter().map(|queue| queue[0]).collect();
        self.candidate = Some(Candidate { items, start, end, pivot, pivot_time });
    }

    fn emit(&mut self) {
        let candidate = self.candidate.take().unwrap();
        self.put_back();
        for (queue, &item) in self.queues.iter_mut().zip(&candidate.items) {
            assert_eq!(queue.remove(0), item);
        }
        self.outcome.set(candidate.items);
    }

    /// Whether no better set is possible, given the earliest possible next stamps of empty queues.
    fn virtual_search(&self) -> bool {
        let candidate = self.candidate.as_ref().unwrap();
        let mut next = vec![0; self.queues.len()];
        loop {
            let time = |topic: usize| match self.queues[topic].get(next[topic]) {
                Some(item) => item.0,
                None => {
                    let last = self.queues[topic].last().or(self.past[topic].last()).unwrap().0;
                    (last + self.lower_bounds[topic]).max(candidate.pivot_time)
                }
            };
            let times: Vec<i64> = (0..self.queues.len()).map(time).collect();
            let (start, end) = bounds(&times);
            if self.older(end.1, candidate) >= (candidate.pivot_time - candidate.start) as f64 {
                return true;
            }
            if self.older(end.1, candidate) < (start.1 - candidate.start) as f64 {
                return false;
            }
            assert!(start.0 != candidate.pivot && start.1 < candidate.pivot_time);
            next[start.0] += 1;
        }
    }

    fn process(&mut self) {
        while self.queues.iter().all(|queue| !queue.is_empty()) {
            let heads: Vec<i64> = self.queues.iter().map(|queue| queue[0].0).collect();
            let (start, end) = bounds(&heads);
            // A dropped item cannot have been better than the head, unless that is the latest.
            for topic in 0..self.dropped.len() {
                self.dropped[topic] &= topic == end.0;
            }
            match &self.candidate {
                None => {
                    let too_wide = end.1 - start.1 > self.max_interval;
                    if too_wide || self.dropped[end.0] {
                        let item = self.queues[start.0].remove(0);
                        let why = if too_wide { Unused::Interval } else { Unused::AfterLoss };
                        self.outcome.unused(start.0, item, why);
                        continue;
                    }
                    self.take_candidate(start.1, end.1, end.0, end.1);
                }
                Some(candidate) => {
                    let (pivot, pivot_time) = (candidate.pivot, candidate.pivot_time);
                    if self.older(end.1, candidate) < (start.1 - candidate.start) as f64 {
                        self.take_candidate(start.1, end.1, pivot, pivot_time);
                    }
                }
            }
            self.move_to_past(start.0);
            let candidate = self.candidate.as_ref().unwrap();
            if start.0 == candidate.pivot
                || self.older(end.1, candidate) >= (candidate.pivot_time - candidate.start) as f64
                || self.queues.iter().any(|queue| queue.is_empty()) && self.virtual_search()
            {
                self.emit();
            }
        }
    }
}

impl Naive for Approximate {
    fn push(&mut self, topic: usize, time: i64, _: i64, item: u32) {
        self.queues[topic].push((time, item));
        if self.queues[topic].len() == 1 {
            self.process();
        }
        if self.queue_size > 0 && self.queues[topic].len() + self.past[topic].len() > self.queue_size {
            self.put_back();
            let oldest = self.queues[topic].remove(0);
            self.outcome.unused(topic, oldest, Unused::QueueFull);
            self.dropped[topic] = true;
            if self.candidate.take().is_some() {
                self.process();
            }
        }
    }

    /// Emits the candidate, since no better set can follow.
    fn flush(&mut self) {
        while self.candidate.is_some() {
            self.emit();
            self.process();
        }
        for (topic, queue) in self.queues.iter_mut().enumerate() {
            for item in queue.drain(..) {
                self.outcome.unused(topic, item, Unused::End);
            }
        }
        self.dropped.fill(false);
    }

    fn outcome(&mut self) -> &mut Outcome {
        &mut self.outcome
    }
}

pub(crate) struct Epsilon {
    pub(crate) epsilon: i64,
    pub(crate) queue: usize,
    pub(crate) queues: Vec<Vec<Item>>,
    pub(crate) outcome: Outcome,
}

impl Naive for Epsilon {
    fn push(&mut self, topic: usize, time: i64, _: i64, item: u32) {
        self.queues[topic].push((time, item));
        let all = |queues: &[Vec<Item>]| queues.iter().all(|queue| !queue.is_empty());
        if !all(&self.queues) && self.queue > 0 && self.queues[topic].len() > self.queue {
            let item = self.queues[topic].remove(0);
            self.outcome.unused(topic, item, Unused::QueueFull);
        }
        while all(&self.queues) {
            let limit = self.queues.iter().map(|queue| queue[0].0).min().unwrap() + self.epsilon;
            if self.queues.iter().all(|queue| queue[0].0 <= limit) {
                let set = self.queues.iter_mut().map(|queue| queue.remove(0)).collect();
                self.outcome.set(set);
                continue;
            }
            for (topic, queue) in self.queues.iter_mut().enumerate() {
                if queue[0].0 <= limit {
                    self.outcome.unused(topic, queue.remove(0), Unused::NoMatch);
                }
            }
        }
    }

    fn flush(&mut self) {
        for (topic, queue) in self.queues.iter_mut().enumerate() {
            for item in queue.drain(..) {
                self.outcome.unused(topic, item, Unused::End);
            }
        }
    }

    fn outcome(&mut self) -> &mut Outcome {
        &mut self.outcome
    }
}

/// Rate of a topic.
#[derive(Clone, Default)]
struct Rate {
    held: Option<Item>,
    used: bool,
    last: i64,
    hz: f64,
    error: f64,
    has_error: bool,
}

pub(crate) struct Latest {
    rates: Vec<Rate>,
    outcome: Outcome,
}

/// Stamps are the clock.
impl Latest {
    pub(crate) fn new(topics: usize) -> Self {
        Latest { rates: vec![Rate::default(); topics], outcome: Outcome::default() }
    }

    /// Returns the fastest topic that is not late.
    fn pivot(&self, now: i64) -> Option<usize> {
        let mut order: Vec<usize> = (0..self.rates.len()).filter(|&i| self.rates[i].hz > 0.0).collect();
        order.sort_by(|&i, &j| self.rates[j].hz.partial_cmp(&self.rates[i].hz).unwrap());
        order.into_iter().find(|&i| {
            let rate = &self.rates[i];
            let possible = 1e9 / (now - rate.last) as f64;
            now <= rate.last || !rate.has_error || rate.hz - possible <= 10.0 * rate.error
        })
    }
}

impl Naive for Latest {
    fn push(&mut self, topic: usize, now: i64, _: i64, item: u32) {
        let rate = &mut self.rates[topic];
        let held = rate.held.replace((now, item));
        let used = std::mem::replace(&mut rate.used, false);
        // The first item begins the first period.
        let Some(held) = held else {
            rate.last = now;
            return;
        };
        if !used {
            self.outcome.unused(topic, held, Unused::Superseded);
        }
        if now == rate.last {
            return;
        }
        if now < rate.last {
            *rate = Rate { held: rate.held, last: now, ..Rate::default() };
            return;
        }
        let hz = 1e9 / (now - rate.last) as f64;
        let error = (rate.hz - hz).abs();
        rate.last = now;
        if rate.hz == 0.0 || rate.has_error && error > 10.0 * rate.error {
            // The first period, or the first one after a change of the rate.
            rate.hz = hz;
            rate.has_error = false;
        } else {
            rate.error = if rate.has_error { 0.3 * error + (1.0 - 0.3) * rate.error } else { error };
            rate.has_error = true;
            rate.hz = 0.9 * hz + (1.0 - 0.9) * rate.hz;
        }
        if self.pivot(now) == Some(topic) && self.rates.iter().all(|rate| rate.held.is_some()) {
            self.rates.iter_mut().for_each(|rate| rate.used = true);
            let set = self.rates.iter().map(|rate| rate.held.unwrap()).collect();
            self.outcome.sets.push((now, set));
        }
    }

    fn flush(&mut self) {
        for (topic, rate) in self.rates.iter_mut().enumerate() {
            if let Some(item) = rate.held.take().filter(|_| !rate.used) {
                self.outcome.unused(topic, item, Unused::End);
            }
            *rate = Rate::default();
        }
    }

    fn outcome(&mut self) -> &mut Outcome {
        &mut self.outcome
    }
}
