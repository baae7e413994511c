use std::collections::VecDeque;

use rondel_event::Timestamp;
use serde::{Deserialize, Serialize};

use super::book::{Book, Unused};
use super::heads::Heads;
use super::saved::{SavedApproximate, item, plain};

/// The sets that lie closest together.
///
/// A search for the best set begins with the heads of all topics as the candidate; its latest item
/// is the pivot, which every set of this search has to contain or to follow. From then on the
/// earliest head is passed over, one after the other, and the heads that are left are compared
/// with the candidate, until none can be better. What was passed over since the candidate was made
/// is still needed after it has left.
#[derive(Clone, Debug)]
pub(super) struct Approximate<T> {
    settings: Settings,
    lines: Vec<Line<T>>,
    heads: Heads,
    candidate: Option<Candidate>,
    /// The topics with items that are passed over, in the order of their first one.
    passed: Vec<u32>,
    /// The topics that lost an item to their queue which might have matched.
    lost: Vec<u32>,
    /// What a search for something better has passed over, to undo it.
    trail: Vec<u32>,
}

#[derive(Clone, Debug)]
pub(super) struct Settings {
    pub(super) queue: usize,
    /// One more than the age penalty.
    pub(super) penalty: f64,
    pub(super) max_interval: i64,
    /// By topic.
    pub(super) lower_bounds: Vec<i64>,
}

#[derive(Clone, Debug)]
struct Line<T> {
    /// Those passed over, then those waiting. The first is the one of the candidate, if there is
    /// one.
    items: VecDeque<(Timestamp, T)>,
    /// How many are passed over.
    passed: usize,
    lost: bool,
}

impl<T> Line<T> {
    fn head(&self) -> Option<i64> {
        self.items.get(self.passed).map(|&(time, _)| time.as_nanos())
    }
}

#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub(super) struct Candidate {
    start: i64,
    end: i64,
    pivot: usize,
    pivot_time: i64,
}

impl<T> Approximate<T> {
    pub(super) fn new(topics: usize, settings: Settings) -> Approximate<T> {
        let line = || Line { items: VecDeque::new(), passed: 0, lost: false };
        Approximate {
            settings,
            lines: (0..topics).map(|_| line()).collect(),
            heads: Heads::new(topics),
            candidate: None,
            passed: Vec::new(),
            lost: Vec::new(),
            trail: Vec::new(),
        }
    }

    /// For a snapshot: what waits on each topic, and how far the search for the best set has come.
    pub(super) fn saved(&self, write: &mut dyn FnMut(&T) -> Vec<u8>) -> SavedApproximate {
        let mut line = |line: &Line<T>| {
            (line.items.iter().map(|one| plain(one, write)).collect(), line.passed, line.lost)
        };
        SavedApproximate {
            lines: self.lines.iter().map(&mut line).collect(),
            candidate: self.candidate,
            passed: self.passed.clone(),
            lost: self.lost.clone(),
        }
    }

    /// Takes over what was saved, if it can be that.
    pub(super) fn restore(
        &mut self,
        saved: SavedApproximate,
        read: &mut dyn FnMut(&[u8]) -> Option<T>,
    ) -> Option<()> {
        let SavedApproximate { lines, candidate, passed: passed_over, lost } = saved;
        let are_topics = |which: &[u32]| which.iter().all(|&topic| (topic as usize) < self.lines.len());
        if lines.len() != self.lines.len() || !are_topics(&passed_over) || !are_topics(&lost) {
            return None;
        }
        for (topic, (line, (items, passed, lost))) in self.lines.iter_mut().zip(lines).enumerate() {
            // What is passed over belongs to a search, which has a candidate in every topic.
            let searches = candidate.is_some();
            if passed > items.len()
                || (passed > 0) != passed_over.contains(&(topic as u32))
                || searches && items.is_empty()
                || !searches && passed > 0
            {
                return None;
            }
            let items = items.iter().map(|one| item(one, read)).collect::<Option<_>>()?;
            *line = Line { items, passed, lost };
            if let Some(first) = line.head() {
                self.heads.fill(topic, first);
            }
        }
        (self.candidate, self.passed, self.lost) = (candidate, passed_over, lost);
        // If every topic had something, the search would have gone on.
        (!self.heads.full() || self.lines.is_empty()).then_some(())
    }

    pub(super) fn push(&mut self, topic: usize, time: Timestamp, item: T, book: &mut Book<T>) {
        let line = &mut self.lines[topic];
        line.items.push_back((time, item));
        if line.items.len() == line.passed + 1 {
            self.heads.fill(topic, time.as_nanos());
            self.search(book);
        }
        let queue = self.settings.queue;
        if queue > 0 && self.lines[topic].items.len() > queue {
            self.overflow(topic, book);
        }
    }

    /// Looks for sets as long as every topic has a head.
    fn search(&mut self, book: &mut Book<T>) {
        while self.heads.full() {
            self.heads.refresh();
            let (first, start) = self.heads.earliest();
            let (last, end) = self.heads.latest();
            self.forgive(last);
            let candidate = match self.candidate {
                Some(candidate) if self.is_better(&candidate, start, end) => {
                    self.drop_passed(book);
                    Candidate { start, end, ..candidate }
                }
                Some(candidate) => candidate,
                None if end.saturating_sub(start) > self.settings.max_interval => {
                    self.drop_head(first, Unused::Interval, book);
                    continue;
                }
                None if self.lines[last].lost => {
                    self.drop_head(first, Unused::AfterLoss, book);
                    continue;
                }
                None => Candidate { start, end, pivot: last, pivot_time: end },
            };
            self.candidate = Some(candidate);
            let next = self.pass(first, &candidate);
            if first == candidate.pivot
                || self.is_best(&candidate, end)
                || !self.heads.full() && self.will_be_best(&candidate, next)
            {
                self.emit(&candidate, book);
            }
        }
    }

    /// How much later than the candidate a set with this end is, as a weight.
    fn age(&self, candidate: &Candidate, end: i64) -> f64 {
        end.saturating_sub(candidate.end) as f64 * self.settings.penalty
    }

    /// Whether a set from `start` to `end` is better than the candidate.
    fn is_better(&self, candidate: &Candidate, start: i64, end: i64) -> bool {
        self.age(candidate, end) < start.saturating_sub(candidate.start) as f64
    }

    /// Whether no later set of this search is better, when none ends before `end`: the start of
    /// such a set is the pivot at the latest.
    fn is_best(&self, candidate: &Candidate, end: i64) -> bool {
        !self.is_better(candidate, candidate.pivot_time, end)
    }

    /// Whether no later set of this search is better, whatever comes, when the one topic that has
    /// no head goes on at `next`.
    fn will_be_best(&mut self, candidate: &Candidate, next: i64) -> bool {
        let mut end = next.max(self.heads.latest().1);
        self.trail.clear();
        let best = loop {
            let (first, start) = self.heads.earliest();
            if self.is_best(candidate, end) {
                break true;
            }
            // A head to come is not before the pivot, so that one of the two holds.
            if self.is_better(candidate, start, end) || self.lines[first].head().is_none() {
                break false;
            }
            let next = self.pass_over(first, candidate);
            self.heads.pretend(first, next);
            self.trail.push(first as u32);
            end = end.max(next);
        };
        if !best {
            self.undo();
        }
        best
    }

    /// Takes back what the search for something better has passed over.
    fn undo(&mut self) {
        let count = self.trail.len();
        let heads = self.trail.drain(..).rev().filter_map(|topic| {
            let line = &mut self.lines[topic as usize];
            line.passed -= 1;
            if line.passed == 0 {
                self.passed.pop();
            }
            Some((topic as usize, line.head()?))
        });
        self.heads.restore(count, heads);
    }

    /// Passes over the earliest head, and returns where its topic goes on.
    fn pass(&mut self, first: usize, candidate: &Candidate) -> i64 {
        let next = self.pass_over(first, candidate);
        match self.lines[first].head() {
            Some(_) => self.heads.replace(first, next),
            None => self.heads.empty(first, next),
        }
        next
    }

    /// The next head of the topic, or the earliest that may come: as its lower bound allows, but
    /// not before the pivot, since that would only make the search longer.
    fn pass_over(&mut self, topic: usize, candidate: &Candidate) -> i64 {
        let line = &mut self.lines[topic];
        if line.passed == 0 {
            self.passed.push(topic as u32);
        }
        line.passed += 1;
        line.head().unwrap_or_else(|| {
            let last = line.items.back().map_or(i64::MIN, |(time, _)| time.as_nanos());
            last.saturating_add(self.settings.lower_bounds[topic]).max(candidate.pivot_time)
        })
    }

    /// A better candidate needs nothing of what was passed over before it.
    fn drop_passed(&mut self, book: &mut Book<T>) {
        for topic in self.passed.drain(..) {
            let line = &mut self.lines[topic as usize];
            for (time, _) in line.items.drain(..line.passed) {
                book.unused(topic as usize, time, Unused::Worse);
            }
            line.passed = 0;
        }
    }

    /// Drops the earliest head; nothing is passed over.
    fn drop_head(&mut self, first: usize, why: Unused, book: &mut Book<T>) {
        let line = &mut self.lines[first];
        if let Some((time, _)) = line.items.pop_front() {
            book.unused(first, time, why);
        }
        match line.head() {
            Some(next) => self.heads.replace(first, next),
            None => self.heads.empty(first, i64::MAX),
        }
    }

    /// Gives the candidate; what was passed over since is there again.
    fn emit(&mut self, candidate: &Candidate, book: &mut Book<T>) {
        self.candidate = None;
        self.passed.clear();
        self.heads.clear();
        for (topic, line) in self.lines.iter_mut().enumerate() {
            line.passed = 0;
            if let Some((time, item)) = line.items.pop_front() {
                book.item(topic, time, item);
            }
            if let Some(next) = line.head() {
                self.heads.fill(topic, next);
            }
        }
        book.set(Timestamp::from_nanos(candidate.end));
    }

    /// A queue is over its limit: its oldest item goes, and with it the candidate.
    fn overflow(&mut self, topic: usize, book: &mut Book<T>) {
        for i in self.passed.drain(..) {
            let line = &mut self.lines[i as usize];
            let had = line.head().is_some();
            line.passed = 0;
            self.heads.renew(i as usize, had, line.head());
        }
        let line = &mut self.lines[topic];
        let had = line.head().is_some();
        if let Some((time, _)) = line.items.pop_front() {
            book.unused(topic, time, Unused::QueueFull);
        }
        self.heads.renew(topic, had, line.head());
        if !line.lost {
            line.lost = true;
            self.lost.push(topic as u32);
        }
        if self.candidate.take().is_some() {
            self.search(book);
        }
    }

    /// What a topic has lost would not have been better than its head, unless the head is the
    /// latest.
    fn forgive(&mut self, last: usize) {
        if !self.lost.is_empty() {
            let lines = &mut self.lines;
            self.lost.retain(|&topic| {
                lines[topic as usize].lost = topic as usize == last;
                topic as usize == last
            });
        }
    }

    /// As nothing better will come, the candidate is the best.
    pub(super) fn flush(&mut self, book: &mut Book<T>) {
        while let Some(candidate) = self.candidate {
            self.emit(&candidate, book);
            self.search(book);
        }
        self.forgive(usize::MAX);
        self.heads.clear();
        for (topic, line) in self.lines.iter_mut().enumerate() {
            for (time, _) in line.items.drain(..) {
                book.unused(topic, time, Unused::End);
            }
        }
    }
}
