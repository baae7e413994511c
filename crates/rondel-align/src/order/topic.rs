use super::delays::Delays;
use super::frontier::ENDLESS;
use super::markers::Markers;
use super::notice::OrderStatistics;
use super::origins::Origins;
use super::queue::Queue;
use super::saved::SavedTopic;
use super::settings::{MaxWait, TopicOrder};
use super::tree::Place;

/// How many events there are from one estimate to the next.
const ESTIMATE_EVERY: u64 = 64;

/// What there is of one topic.
#[derive(Clone, Debug)]
pub(super) struct Topic<T> {
    pub(super) max_wait: MaxWait,
    pub(super) absent_after: Option<u64>,
    pub(super) in_play: bool,
    pub(super) queue: Queue<T>,
    /// The latest time that came.
    pub(super) latest: Option<i64>,
    /// Whether a later event says that nothing earlier comes.
    pub(super) believed: bool,
    /// Whether it was reported that its times step back.
    pub(super) stepped_back: bool,
    pub(super) markers: Markers,
    pub(super) origins: Origins,
    /// Up to what time the clock let others pass when the topic was waited for in another way.
    pub(super) passed: Option<i64>,
    pub(super) absent: bool,
    /// When something was heard of it last, and whether ever.
    pub(super) heard: i64,
    pub(super) ever: bool,
    pub(super) delays: Delays,
    excesses: Delays,
    sufficient_wait: Option<u64>,
    pub(super) counts: OrderStatistics,
}

impl<T> Topic<T> {
    pub(super) fn new(settings: &TopicOrder) -> Topic<T> {
        Topic {
            max_wait: settings.max_wait,
            // What was just heard is there.
            absent_after: settings.absent_after.map(|after| after.max(1)),
            in_play: settings.in_play,
            queue: Queue::new(),
            latest: None,
            believed: settings.fifo,
            stepped_back: false,
            markers: Markers::new(),
            origins: Origins::default(),
            passed: None,
            absent: false,
            heard: i64::MIN,
            ever: false,
            delays: Delays::default(),
            excesses: Delays::default(),
            sufficient_wait: None,
            counts: OrderStatistics::default(),
        }
    }

    /// How long it is waited for as long as nothing is known.
    pub(super) fn first_wait(&self) -> i64 {
        match self.max_wait {
            MaxWait::None => ENDLESS,
            MaxWait::Fixed(wait) | MaxWait::Estimated { at_most: wait, .. } => {
                wait.min(ENDLESS as u64 - 1) as i64
            }
        }
    }

    /// From time to time, how long it should be waited for, where that is estimated.
    #[inline]
    pub(super) fn estimate(&self) -> Option<i64> {
        let MaxWait::Estimated { quantile, at_most } = self.max_wait else { return None };
        if !self.delays.ever().is_multiple_of(ESTIMATE_EVERY) {
            return None;
        }
        let taken = self.delays.quantile(quantile);
        Some(taken.saturating_add(taken / 4 + 1).min(at_most).min(ENDLESS as u64 - 1) as i64)
    }

    /// The earliest place at which something can come on it, without the clock. `index`: its position.
    #[inline]
    pub(super) fn frontier(&self, index: usize) -> Place {
        let closed = self.markers.through.max(self.passed);
        if self.absent || !self.in_play || closed == Some(i64::MAX) {
            return Place::NEVER;
        }
        let closed = Place::before(closed.map_or(i64::MIN, |closed| closed + 1), index);
        match self.latest {
            // Another event of that time may come, but it will be after those that came.
            Some(latest) if self.believed => closed.max(Place::event(latest, index)),
            _ => closed,
        }
    }

    /// When it will be absent.
    pub(super) fn absent_at(&self) -> i64 {
        self.absent_after.map_or(i64::MAX, |after| self.heard.saturating_add_unsigned(after))
    }

    /// Whether it is waited for and, if nothing is heard of it, absent when the clock shows `now`.
    pub(super) fn is_absent_at(&self, now: i64) -> bool {
        self.in_play && (self.absent || self.absent_after.is_some() && self.absent_at() <= now)
    }

    /// Notes a tardy event. The wait that would have been enough for all of them.
    pub(super) fn see_tardy(&mut self, excess: u64, delay: u64) -> u64 {
        self.counts.tardy += 1;
        self.counts.max_excess = self.counts.max_excess.max(excess);
        self.excesses.add(excess);
        // What comes as the wait ends is too late.
        let needed = delay.saturating_add(1);
        let sufficient = self.sufficient_wait.map_or(needed, |so_far| so_far.max(needed));
        self.sufficient_wait = Some(sufficient);
        sufficient
    }

    /// By how much events were tardy, and the wait that would have been enough for all of them.
    pub(super) fn missed(&self) -> (&Delays, Option<u64>) {
        (&self.excesses, self.sufficient_wait)
    }

    /// Takes over what was saved.
    pub(super) fn take_over(&mut self, saved: SavedTopic, queue: Queue<T>) {
        let Topic { max_wait, absent_after, in_play, .. } = *self;
        *self = Topic {
            max_wait,
            absent_after,
            in_play,
            queue,
            latest: saved.latest,
            believed: saved.believed,
            stepped_back: saved.stepped_back,
            markers: saved.markers,
            origins: saved.origins,
            passed: saved.passed,
            absent: saved.absent,
            heard: saved.heard,
            ever: saved.ever,
            delays: saved.delays,
            excesses: saved.excesses,
            sufficient_wait: saved.sufficient_wait,
            counts: saved.counts,
        };
    }

    pub(super) fn statistics(&self, wait: i64) -> OrderStatistics {
        OrderStatistics {
            waiting: self.queue.len(),
            excess_p99: self.excesses.quantile(0.99),
            sufficient_wait: self.sufficient_wait,
            max_wait: (wait != ENDLESS).then_some(wait as u64),
            delay_p50: self.delays.quantile(0.5),
            delay_p99: self.delays.quantile(0.99),
            delay_max: self.delays.max(),
            absent: self.absent,
            fifo: self.believed,
            ..self.counts
        }
    }
}
