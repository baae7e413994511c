//! State of one topic.

use super::delays::Delays;
use super::frontier::ENDLESS;
use super::markers::Markers;
use super::notice::OrderStatistics;
use super::origins::SequenceNumbers;
use super::queue::Queue;
use super::saved::SavedTopic;
use super::settings::{MaxWait, TopicOrder};
use super::tree::Position;

/// Number of events between two estimates of the wait.
const ESTIMATE_EVERY: u64 = 64;

/// State of one topic.
#[derive(Clone, Debug)]
pub(super) struct OrderTopic<T> {
    pub(super) max_wait: MaxWait,
    pub(super) absent_after: Option<u64>,
    pub(super) in_play: bool,
    pub(super) queue: Queue<T>,
    /// Latest time of an event.
    pub(super) latest: Option<i64>,
    /// Whether an event implies that no earlier one arrives (`fifo`).
    pub(super) fifo: bool,
    /// Whether a step back of its times was reported.
    pub(super) stepped_back: bool,
    pub(super) markers: Markers,
    pub(super) origins: SequenceNumbers,
    /// Time up to which other events were released under an earlier, shorter wait.
    pub(super) passed: Option<i64>,
    pub(super) absent: bool,
    /// Time of its last event or marker.
    pub(super) last_seen: i64,
    /// Whether it ever sent an event or a marker.
    pub(super) ever: bool,
    pub(super) delays: Delays,
    excesses: Delays,
    sufficient_wait: Option<u64>,
    pub(super) counts: OrderStatistics,
}

impl<T> OrderTopic<T> {
    pub(super) fn new(settings: &TopicOrder) -> OrderTopic<T> {
        OrderTopic {
            max_wait: settings.max_wait,
            // A topic is not absent at the time of its own event.
            absent_after: settings.absent_after.map(|after| after.max(1)),
            in_play: settings.in_play,
            queue: Queue::new(),
            latest: None,
            fifo: settings.fifo,
            stepped_back: false,
            markers: Markers::new(),
            origins: SequenceNumbers::default(),
            passed: None,
            absent: false,
            last_seen: i64::MIN,
            ever: false,
            delays: Delays::default(),
            excesses: Delays::default(),
            sufficient_wait: None,
            counts: OrderStatistics::default(),
        }
    }

    /// Returns the initial wait.
    pub(super) fn first_wait(&self) -> i64 {
        match self.max_wait {
            MaxWait::None => ENDLESS,
            MaxWait::Fixed(wait) | MaxWait::Estimated { at_most: wait, .. } => {
                wait.min(ENDLESS as u64 - 1) as i64
            }
        }
    }

    /// Returns a new estimate of the wait every [`ESTIMATE_EVERY`] events; `None` if it is not estimated.
    #[inline]
    pub(super) fn estimate(&self) -> Option<i64> {
        let MaxWait::Estimated { quantile, at_most } = self.max_wait else { return None };
        if !self.delays.total().is_multiple_of(ESTIMATE_EVERY) {
            return None;
        }
        let taken = self.delays.quantile(quantile);
        Some(taken.saturating_add(taken / 4 + 1).min(at_most).min(ENDLESS as u64 - 1) as i64)
    }

    /// Returns the earliest position at which an event can arrive, without the clock. `index` is that of the topic.
    #[inline]
    pub(super) fn frontier(&self, index: usize) -> Position {
        let closed = self.markers.through.max(self.passed);
        if self.absent || !self.in_play || closed == Some(i64::MAX) {
            return Position::NEVER;
        }
        let closed = Position::before(closed.map_or(i64::MIN, |closed| closed + 1), index);
        match self.latest {
            // Another event of that time may arrive, but is ordered after those already received.
            Some(latest) if self.fifo => closed.max(Position::event(latest, index)),
            _ => closed,
        }
    }

    /// Returns the time at which the topic becomes absent.
    pub(super) fn absent_at(&self) -> i64 {
        self.absent_after.map_or(i64::MAX, |after| self.last_seen.saturating_add_unsigned(after))
    }

    /// Whether the topic is in play and absent at the time `now`, if it sends nothing until then.
    pub(super) fn is_absent_at(&self, now: i64) -> bool {
        self.in_play && (self.absent || self.absent_after.is_some() && self.absent_at() <= now)
    }

    /// Records a late event. Returns the wait with which no event so far would have been late.
    pub(super) fn record_late(&mut self, excess: u64, delay: u64) -> u64 {
        self.counts.late += 1;
        self.counts.max_excess = self.counts.max_excess.max(excess);
        self.excesses.add(excess);
        // An event whose delay equals the wait is late.
        let needed = delay.saturating_add(1);
        let sufficient = self.sufficient_wait.map_or(needed, |so_far| so_far.max(needed));
        self.sufficient_wait = Some(sufficient);
        sufficient
    }

    /// Returns the lateness of late events, and the wait with which none would have been late.
    pub(super) fn missed(&self) -> (&Delays, Option<u64>) {
        (&self.excesses, self.sufficient_wait)
    }

    /// Restores a saved state.
    pub(super) fn take_over(&mut self, saved: SavedTopic, queue: Queue<T>) {
        let OrderTopic { max_wait, absent_after, in_play, .. } = *self;
        *self = OrderTopic {
            max_wait,
            absent_after,
            in_play,
            queue,
            latest: saved.latest,
            fifo: saved.fifo,
            stepped_back: saved.stepped_back,
            markers: saved.markers,
            origins: saved.origins,
            passed: saved.passed,
            absent: saved.absent,
            last_seen: saved.last_seen,
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
            fifo: self.fifo,
            ..self.counts
        }
    }
}
