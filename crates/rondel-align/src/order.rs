//! Event-time order of single events: see [`Order`].

mod arrivals;
mod delays;
mod frontier;
mod markers;
mod notice;
mod origins;
mod queue;
mod release;
mod saved;
mod settings;
mod topic;
mod tree;

use std::collections::VecDeque;

use rondel_event::Origin;
use rondel_event::{Timestamp, TopicId};

use self::frontier::{ENDLESS, Frontiers};
use self::markers::MarkerOutcome;
pub use self::notice::{Notice, OrderStatistics, Refusal};
pub use self::origins::{NumberOutcome, SequenceNumbers};
pub use self::settings::{
    LatePolicy, Lateness, Marker, MaxWait, OrderPolicy, OrderSettings, Released, TopicOrder,
};
use self::topic::OrderTopic;
use self::tree::{Position, PositionTree};
use crate::weight::Weight;

/// Limit of notices kept until they are taken; further ones are only counted.
const NOTICES: usize = 10_000;

/// Reorders the events of many topics: by time, at equal times by the index of their topic, and on one topic by their
/// sequence numbers ([`Origin`]), or else in the order of arrival. The resulting order depends on the events only, not on
/// their delays.
///
/// An event is released when no earlier event can arrive any more, or the wait for earlier events is over. For this, one
/// of the following must hold for every other topic in play: it is [`fifo`](TopicOrder::fifo) and a later event of it
/// arrived; a progress marker ([`Marker`]) covers the time; its [`max_wait`](TopicOrder::max_wait) has elapsed since the
/// time of the event; it is absent, that is, it sent nothing for its [`absent_after`](TopicOrder::absent_after). A
/// topic that is not `fifo` must meet one of the last three conditions itself before its own events are released.
///
/// An event that belongs before a released one is a *late event*: [`LatePolicy`] defines how it is handled. With
/// markers there are no late events. The result depends on the events and on the clock at their arrival, not on the
/// number of calls of [`Order::advance`] in between.
///
/// ```
/// use rondel_align::{LatePolicy, Order, OrderPolicy, OrderSettings, TopicOrder};
/// use rondel_event::{Timestamp, TopicId};
///
/// let mut order = Order::new(OrderSettings {
///     policy: OrderPolicy::EventTime,
///     topics: vec![TopicOrder::default(); 2],
///     queue: 1_000,
///     ahead: None,
///     behind: None,
///     late: LatePolicy::Drop,
/// });
/// let at = Timestamp::from_nanos;
/// order.push(TopicId(0), at(20), None, at(21), "drive");
/// assert_eq!(order.pop(), None); // an earlier event may arrive on the other topic
/// order.push(TopicId(1), at(10), None, at(22), "moves");
/// order.push(TopicId(1), at(30), None, at(31), "stands");
/// let released: Vec<_> = std::iter::from_fn(|| order.pop()).map(|event| event.item).collect();
/// assert_eq!(released, ["moves", "drive"]);
/// ```
#[derive(Clone, Debug)]
pub struct Order<T> {
    settings: OrderSettings,
    topics: Vec<OrderTopic<T>>,
    /// Position of the first waiting event of each topic.
    heads: PositionTree,
    frontiers: Frontiers,
    /// Time at which each topic becomes absent.
    absences: PositionTree,
    /// Highest reading of the clock.
    now: i64,
    /// Whether any event or marker arrived.
    started: bool,
    /// Number of waiting events.
    waiting: usize,
    /// Their bytes.
    weight: Weight<T>,
    /// Position of the last released event, or the time closed by the caller: earlier events are late.
    reached: Position,
    out: VecDeque<Released<T>>,
    /// Late events that were dropped, each with its topic, its time, the time that had been reached, and the number of
    /// events that were released before.
    dropped: VecDeque<(TopicId, Timestamp, Timestamp, u64)>,
    /// Number of events that were popped.
    popped: u64,
    notices: VecDeque<Notice>,
    /// Number of notices discarded because too many waited.
    discarded: u64,
    /// Number of absent topics in play.
    absent: usize,
    /// Largest step back of the clock.
    clock_back: u64,
}

impl<T> Order<T> {
    /// Creates an order without events.
    pub fn new(settings: OrderSettings) -> Order<T> {
        let topics: Vec<OrderTopic<T>> = settings.topics.iter().map(OrderTopic::new).collect();
        let mut new = Order {
            heads: PositionTree::new(topics.len()),
            frontiers: Frontiers::new(topics.iter().map(OrderTopic::first_wait)),
            absences: PositionTree::new(topics.len()),
            now: i64::MIN,
            started: false,
            waiting: 0,
            weight: Weight::unlimited(),
            reached: Position::start(i64::MIN),
            out: VecDeque::new(),
            dropped: VecDeque::new(),
            popped: 0,
            notices: VecDeque::new(),
            discarded: 0,
            absent: 0,
            clock_back: 0,
            settings,
            topics,
        };
        for topic in 0..new.topics.len() {
            new.set_frontier(topic);
        }
        new
    }

    /// Sets the limit of the bytes of waiting events; above it, the oldest are released early and reported, as above that
    /// of their number. `size` returns the bytes of an item, which must not change while it waits.
    #[must_use]
    pub fn with_bytes(self, limit: usize, size: fn(&T) -> usize) -> Order<T> {
        Order { weight: Weight::new(limit, size), ..self }
    }

    /// Adds an event of a topic with its time and origin, which arrived when the clock showed `now`.
    pub fn push(&mut self, topic: TopicId, time: Timestamp, origin: Option<Origin>, now: Timestamp, item: T) {
        self.push_until(topic, time, origin, now, now, item);
    }

    /// Like [`Order::push`] with a clock that the event itself sets forward: it showed `now` before the event and shows
    /// `then` after it, and the topic is alive at `then`.
    pub fn push_until(
        &mut self,
        topic: TopicId,
        time: Timestamp,
        origin: Option<Origin>,
        now: Timestamp,
        then: Timestamp,
        item: T,
    ) {
        self.advance(now);
        let Some(index) = self.sign_of_life(topic, then.as_nanos()) else { return };
        self.topics[index].counts.received += 1;
        if origin.is_some_and(|origin| self.is_duplicate(index, origin)) {
            return;
        }
        let time = time.as_nanos();
        if let Some(refused) = self.refusal(topic, time) {
            self.refused(index, time);
            self.notice(refused);
            return;
        }
        let delay = self.now.saturating_sub(time).max(0) as u64;
        let here = &mut self.topics[index];
        here.delays.add(delay);
        if self.settings.policy == OrderPolicy::Arrival {
            here.counts.released += 1;
            here.counts.late += u64::from(time < self.reached.time);
            self.reached = self.reached.max(Position::start(time));
            self.out.push_back(Released { topic, time: Timestamp::from_nanos(time), lateness: None, item });
            return;
        }
        self.estimate(index);
        self.receive(index, time);
        self.see_time(index, time, origin.map(|origin| origin.publisher));
        let position = Position::event(time, index);
        if position < self.reached {
            self.late(index, time, delay, item);
        } else {
            let here = &mut self.topics[index];
            let sequence = match origin {
                Some(Origin { publisher, number }) => (number, publisher),
                None => (here.counts.received, u64::MAX),
            };
            self.weight.add(&item);
            here.queue.push(time, sequence, item);
            self.waiting += 1;
            if position < self.heads.get(index) {
                self.heads.set(index, position);
            }
            if self.settings.queue > 0 && self.waiting > self.settings.queue {
                self.release_early();
            }
            while self.weight.is_over() && self.waiting > 0 {
                self.release_early();
            }
        }
        self.release_due();
    }

    /// Records that an event of a topic arrived which the caller has refused because of its time: a sign of life, and
    /// an event that markers may count.
    pub fn refuse(&mut self, topic: TopicId, time: Timestamp, now: Timestamp) {
        self.advance(now);
        let Some(index) = self.sign_of_life(topic, self.now) else { return };
        self.topics[index].counts.received += 1;
        self.refused(index, time.as_nanos());
    }

    fn refused(&mut self, index: usize, time: i64) {
        self.topics[index].counts.refused += 1;
        if self.settings.policy == OrderPolicy::EventTime {
            self.receive(index, time);
        }
        self.release_due();
    }

    /// Adds a progress marker of a topic.
    pub fn mark(&mut self, topic: TopicId, marker: &Marker, now: Timestamp) {
        self.advance(now);
        let Some(index) = self.sign_of_life(topic, self.now) else { return };
        self.topics[index].counts.markers += 1;
        if self.settings.policy == OrderPolicy::Arrival {
            return;
        }
        self.give_up(index);
        let here = &mut self.topics[index];
        match here.markers.mark(marker) {
            MarkerOutcome::Taken | MarkerOutcome::Again => {}
            MarkerOutcome::Back(complete) => {
                let complete = Timestamp::from_nanos(complete);
                self.notice(Notice::MarkerBack { topic, marker: *marker, complete });
            }
            MarkerOutcome::Skipped(complete) => {
                let complete = Timestamp::from_nanos(complete);
                let after = marker.after.unwrap_or(complete);
                self.notice(Notice::MarkerMissed { topic, complete, after });
            }
        }
        // From here on markers, not the order of its events, determine the topic's progress.
        let here = &mut self.topics[index];
        here.fifo &= !here.stepped_back;
        self.set_frontier(index);
        self.release_due();
    }

    /// Advances the clock to `now` and releases the events whose wait is over. If the clock steps back, its highest
    /// reading counts.
    pub fn advance(&mut self, now: Timestamp) {
        let now = now.as_nanos();
        if now < self.now {
            let by = self.now.saturating_sub(now) as u64;
            if by > self.clock_back {
                self.clock_back = by;
                let highest = Timestamp::from_nanos(self.now);
                self.notice(Notice::ClockBack { now: Timestamp::from_nanos(now), highest });
            }
            return;
        }
        self.now = now;
        self.release_due();
    }

    /// Releases all waiting events in order, at the end of a recording or a run.
    pub fn flush(&mut self) {
        while self.release_head() {}
        for index in 0..self.topics.len() {
            self.give_up_to(index, i64::MAX);
            self.set_frontier(index);
        }
    }

    /// Takes the next released event.
    #[inline]
    pub fn pop(&mut self) -> Option<Released<T>> {
        let next = self.out.pop_front();
        self.popped += u64::from(next.is_some());
        next
    }

    /// Returns the topic, the new time and the lateness of the next released event, if it is late and inconclusive.
    #[inline]
    pub fn peek_late(&self) -> Option<(TopicId, Timestamp, Lateness)> {
        let next = self.out.front()?;
        let late = next.lateness.filter(|late| late.inconclusive)?;
        Some((next.topic, next.time, late))
    }

    /// Takes the next late event that was dropped before the next released event: its topic, its time, and the time that
    /// had been reached. Above a limit of events not taken, the oldest is forgotten.
    #[inline]
    pub fn pop_dropped(&mut self) -> Option<(TopicId, Timestamp, Timestamp)> {
        let (topic, time, reached, before) = *self.dropped.front()?;
        if before > self.popped {
            return None;
        }
        self.dropped.pop_front();
        Some((topic, time, reached))
    }

    /// Takes the notices since the last call.
    pub fn notices(&mut self) -> impl Iterator<Item = Notice> {
        let discarded = std::mem::take(&mut self.discarded);
        let last = (discarded > 0).then_some(Notice::Omitted { count: discarded });
        self.notices.drain(..).chain(last)
    }

    /// Returns the time at which [`Order::advance`] releases or reports something, if no event arrives before.
    pub fn deadline(&self) -> Option<Timestamp> {
        let absent = Some(self.absences.earliest())
            .filter(|position| *position != Position::NEVER)
            .map(|position| position.time);
        let head = self.head().and_then(|(_, wait)| wait);
        [absent, head].into_iter().flatten().min().map(Timestamp::from_nanos)
    }

    /// Returns the time up to which all events were popped, except late ones. A monitor may advance to this time, not
    /// further, and must then call [`Order::close`].
    pub fn complete_up_to(&self) -> Option<Timestamp> {
        let mut complete = match self.settings.policy {
            OrderPolicy::Arrival => self.now,
            OrderPolicy::EventTime => self.known_complete(),
        };
        if let Some(first) = self.out.front() {
            complete = complete.min(first.time.as_nanos().saturating_sub(1));
        }
        // The minimum of `i64` represents no time.
        (complete > i64::MIN).then_some(Timestamp::from_nanos(complete))
    }

    /// Returns the latest reading of the clock at which [`Order::complete_up_to`] reaches `time` if no event arrives
    /// before; `None` if the clock alone does not suffice.
    pub fn complete_at(&self, time: Timestamp) -> Option<Timestamp> {
        if self.complete_up_to().is_some_and(|complete| complete >= time) {
            return Some(Timestamp::from_nanos(self.now));
        }
        let at_least = time.as_nanos();
        let by_clock = Some(time).filter(|_| self.now > i64::MIN);
        if self.settings.policy == OrderPolicy::Arrival {
            return by_clock;
        }
        let after = Position::end(at_least);
        let mut at = self.now;
        for (topic, wait) in self.frontiers.before(after) {
            let ends = if wait == ENDLESS { i64::MAX } else { at_least.saturating_add(wait) };
            if ends <= at {
                break;
            }
            at = at.max(ends.min(self.topics[topic].absent_at()));
        }
        // With an absent topic, or none that is waited for, completeness follows the clock.
        let unknown = || self.topics.iter().any(|topic| topic.is_absent_at(at));
        if at < at_least && (unknown() || self.frontiers.complete(at).is_none()) {
            return by_clock;
        }
        (at < i64::MAX).then_some(Timestamp::from_nanos(at))
    }

    /// Declares that the caller has advanced past this time, like a monitor that reports verdicts by time alone: events of
    /// this time or an earlier one are late from now on. Limited to [`Order::complete_up_to`].
    pub fn close(&mut self, time: Timestamp) {
        let Some(complete) = self.complete_up_to() else { return };
        let after = time.min(complete).as_nanos().checked_add(1);
        self.reached = self.reached.max(after.map_or(Position::end(i64::MAX), Position::start));
    }

    /// Returns whether an event may be late, or may lower the time up to which events are complete, if it is pushed
    /// when the clock shows `now`. A caller that [closes](Order::close) times does so before it pushes such an event:
    /// which events are late then does not depend on how often it closes.
    pub fn may_be_late(&mut self, topic: TopicId, time: Timestamp, now: Timestamp) -> bool {
        if self.settings.policy == OrderPolicy::Arrival {
            return false;
        }
        self.advance(now);
        let here = self.topics.get(topic.index());
        here.is_some_and(|here| here.absent || here.latest.is_some_and(|latest| time.as_nanos() < latest))
            || time.as_nanos() <= self.known_complete()
    }

    /// Returns the statistics of each topic.
    pub fn statistics(&self) -> Vec<OrderStatistics> {
        let waits = (0..self.topics.len()).map(|topic| self.frontiers.wait(topic));
        self.topics.iter().zip(waits).map(|(topic, wait)| topic.statistics(wait)).collect()
    }

    /// Returns the number of waiting events.
    pub fn waiting(&self) -> usize {
        self.waiting
    }

    /// Returns the time up to which all events were released, except late ones.
    fn known_complete(&self) -> i64 {
        // An absent topic may send an event at any time from now on.
        let known = self.frontiers.complete(self.now);
        let mut complete = known.filter(|known| self.absent == 0 || *known < self.now).unwrap_or(self.now);
        let head = self.heads.earliest();
        if head != Position::NEVER {
            complete = complete.min(head.time.saturating_sub(1));
        }
        // Events that arrive later are released with the reached time or a later one.
        complete.max(self.reached.time.saturating_sub(1))
    }

    fn notice(&mut self, notice: Notice) {
        if self.notices.len() < NOTICES {
            self.notices.push_back(notice);
        } else {
            self.discarded += 1;
        }
    }

    fn set_frontier(&mut self, index: usize) {
        let here = &self.topics[index];
        self.frontiers.set(index, here.frontier(index));
    }
}
