//! Single events in order: see [`Order`].

mod delays;
mod frontier;
mod markers;
mod notice;
mod origins;
mod queue;
mod saved;
mod settings;
mod topic;
mod tree;

use std::collections::VecDeque;

use rondel_event::Origin;
use rondel_event::{Timestamp, TopicId};

use self::frontier::{ENDLESS, Frontiers};
use self::markers::Marked;
pub use self::notice::{Notice, OrderStatistics, Refusal};
use self::origins::Numbered;
pub use self::settings::{
    Lateness, Marker, MaxWait, OrderPolicy, OrderSettings, Released, Tardy, TopicOrder,
};
use self::topic::Topic;
use self::tree::{Place, Tree};

/// How many notices are kept for whoever asks.
const NOTICES: usize = 10_000;

/// Puts the events of many topics in one order: by time, those of equal time by the position of their topic, and on one
/// topic by the numbers that their publishers gave them, or else as they came. So the order is a function of the
/// events, not of the ways that they took.
///
/// An event leaves when nothing that belongs before it can come any more, or nobody waits for it any longer. Of every
/// other topic in play one of these must hold: a later event of it was seen, and it is [`fifo`](TopicOrder::fifo); a
/// [`Marker`] says so; its [`max_wait`](TopicOrder::max_wait) has run out since the time of the event; nothing was heard of
/// it for its [`absent_after`](TopicOrder::absent_after). A topic that is not `fifo` must be waited for in the same way
/// before its own events.
///
/// An event that belongs before something that has left is *tardy*: [`Tardy`] says what becomes of it. With markers
/// there is none. What an event finds is decided by the events before it and by the clock as it comes; it makes no difference
/// how often [`Order::advance`] is called between.
///
/// ```
/// use rondel_align::{Order, OrderPolicy, OrderSettings, Tardy, TopicOrder};
/// use rondel_event::{Timestamp, TopicId};
///
/// let mut order = Order::new(OrderSettings {
///     policy: OrderPolicy::EventTime,
///     topics: vec![TopicOrder::default(); 2],
///     queue: 1_000,
///     ahead: None,
///     behind: None,
///     tardy: Tardy::Drop,
/// });
/// let at = Timestamp::from_nanos;
/// order.push(TopicId(0), at(20), None, at(21), "drive");
/// assert_eq!(order.pop(), None); // something earlier may come on the other topic
/// order.push(TopicId(1), at(10), None, at(22), "moves");
/// order.push(TopicId(1), at(30), None, at(31), "stands");
/// let released: Vec<_> = std::iter::from_fn(|| order.pop()).map(|event| event.item).collect();
/// assert_eq!(released, ["moves", "drive"]);
/// ```
#[derive(Clone, Debug)]
pub struct Order<T> {
    settings: OrderSettings,
    topics: Vec<Topic<T>>,
    /// Of every topic, the first that waits.
    heads: Tree,
    frontiers: Frontiers,
    /// Of every topic, when it will be absent.
    absences: Tree,
    /// The highest that the clock has shown.
    now: i64,
    /// Whether there was any sign of any topic.
    started: bool,
    waiting: usize,
    /// What order has reached: the place of the last that left, or where the driver has gone to. Nothing goes before it.
    reached: Place,
    out: VecDeque<Released<T>>,
    notices: VecDeque<Notice>,
    unsaid: u64,
    /// How many topics in play are absent.
    absent: usize,
    /// How far back the clock has stepped at most.
    clock_back: u64,
}

impl<T> Order<T> {
    /// Nothing waits yet.
    pub fn new(settings: OrderSettings) -> Order<T> {
        let topics: Vec<Topic<T>> = settings.topics.iter().map(Topic::new).collect();
        let mut new = Order {
            heads: Tree::new(topics.len()),
            frontiers: Frontiers::new(topics.iter().map(Topic::first_wait)),
            absences: Tree::new(topics.len()),
            now: i64::MIN,
            started: false,
            waiting: 0,
            reached: Place::start(i64::MIN),
            out: VecDeque::new(),
            notices: VecDeque::new(),
            unsaid: 0,
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

    /// An event came: its topic and time, who sent it, what the clock shows.
    pub fn push(&mut self, topic: TopicId, time: Timestamp, origin: Option<Origin>, now: Timestamp, item: T) {
        self.advance(now);
        let Some(index) = self.hear(topic) else { return };
        self.topics[index].counts.received += 1;
        if origin.is_some_and(|origin| self.is_duplicate(index, origin)) {
            return;
        }
        let time = time.as_nanos();
        if let Some(refused) = self.refusal(topic, time) {
            self.topics[index].counts.refused += 1;
            if self.settings.policy == OrderPolicy::EventTime {
                self.receive(index, time);
            }
            self.notice(refused);
            self.release_due();
            return;
        }
        let delay = self.now.saturating_sub(time).max(0) as u64;
        let here = &mut self.topics[index];
        here.delays.add(delay);
        if self.settings.policy == OrderPolicy::Arrival {
            here.counts.released += 1;
            here.counts.tardy += u64::from(time < self.reached.time);
            self.reached = self.reached.max(Place::start(time));
            self.out.push_back(Released { topic, time: Timestamp::from_nanos(time), tardy: None, item });
            return;
        }
        self.estimate(index);
        self.receive(index, time);
        self.see_time(index, time, origin.map(|origin| origin.publisher));
        let place = Place::event(time, index);
        if place < self.reached {
            self.tardy(index, time, delay, item);
        } else {
            let here = &mut self.topics[index];
            let sequence = match origin {
                Some(Origin { publisher, number }) => (number, publisher),
                None => (here.counts.received, u64::MAX),
            };
            here.queue.push(time, sequence, item);
            self.waiting += 1;
            if place < self.heads.get(index) {
                self.heads.set(index, place);
            }
            if self.settings.queue > 0 && self.waiting > self.settings.queue {
                self.release_early();
            }
        }
        self.release_due();
    }

    /// A marker came.
    pub fn mark(&mut self, topic: TopicId, marker: &Marker, now: Timestamp) {
        self.advance(now);
        let Some(index) = self.hear(topic) else { return };
        self.topics[index].counts.markers += 1;
        if self.settings.policy == OrderPolicy::Arrival {
            return;
        }
        self.give_up(index);
        let here = &mut self.topics[index];
        match here.markers.mark(marker) {
            Marked::Taken | Marked::Again => {}
            Marked::Back(complete) => {
                let complete = Timestamp::from_nanos(complete);
                self.notice(Notice::MarkerBack { topic, marker: *marker, complete });
            }
            Marked::Skipped(complete) => {
                let complete = Timestamp::from_nanos(complete);
                let after = marker.after.unwrap_or(complete);
                self.notice(Notice::MarkerMissed { topic, complete, after });
            }
        }
        // Now there is something else to go by.
        let here = &mut self.topics[index];
        here.believed &= !here.stepped_back;
        self.set_frontier(index);
        self.release_due();
    }

    /// The clock shows `now`: what nobody waits for any longer leaves. If the clock steps back, its highest reading
    /// counts.
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

    /// The end, of a recording or of a run: all that waits leaves, in order.
    pub fn flush(&mut self) {
        while self.release_head() {}
        for index in 0..self.topics.len() {
            self.give_up_to(index, i64::MAX);
            self.set_frontier(index);
        }
    }

    /// The next event, in order.
    #[inline]
    pub fn pop(&mut self) -> Option<Released<T>> {
        self.out.pop_front()
    }

    /// What there is to report since the last call.
    pub fn notices(&mut self) -> impl Iterator<Item = Notice> {
        let unsaid = std::mem::take(&mut self.unsaid);
        let last = (unsaid > 0).then_some(Notice::Unsaid { count: unsaid });
        self.notices.drain(..).chain(last)
    }

    /// When [`Order::advance`] will release or report something, if nothing else comes.
    pub fn deadline(&self) -> Option<Timestamp> {
        let absent =
            Some(self.absences.earliest()).filter(|place| *place != Place::NEVER).map(|place| place.time);
        let head = self.head().and_then(|(_, wait)| wait);
        [absent, head].into_iter().flatten().min().map(Timestamp::from_nanos)
    }

    /// Every event of this time or an earlier one was popped, or will never come at its time. So far a monitor may
    /// [advance], and no further; if it does, say so with [`Order::close`].
    pub fn complete_up_to(&self) -> Option<Timestamp> {
        let mut complete = match self.settings.policy {
            OrderPolicy::Arrival => self.now,
            OrderPolicy::EventTime => self.known_complete(),
        };
        if let Some(first) = self.out.front() {
            complete = complete.min(first.time.as_nanos().saturating_sub(1));
        }
        // The least of all times stands for nothing.
        (complete > i64::MIN).then_some(Timestamp::from_nanos(complete))
    }

    /// The reading of the clock at which, at the latest, [`Order::complete_up_to`] will have come to `time` if nothing else comes.
    /// None: not by the clock alone.
    pub fn complete_at(&self, time: Timestamp) -> Option<Timestamp> {
        if self.complete_up_to().is_some_and(|complete| complete >= time) {
            return Some(Timestamp::from_nanos(self.now));
        }
        let at_least = time.as_nanos();
        let by_clock = Some(time).filter(|_| self.now > i64::MIN);
        if self.settings.policy == OrderPolicy::Arrival {
            return by_clock;
        }
        let after = Place::end(at_least);
        let mut at = self.now;
        for (topic, wait) in self.frontiers.before(after) {
            let ends = if wait == ENDLESS { i64::MAX } else { at_least.saturating_add(wait) };
            if ends <= at {
                break;
            }
            at = at.max(ends.min(self.topics[topic].absent_at()));
        }
        // Where nothing is known of a topic, there is the clock.
        let unknown = || self.topics.iter().any(|topic| topic.is_absent_at(at));
        if at < at_least && (unknown() || self.frontiers.complete(at).is_none()) {
            return by_clock;
        }
        (at < i64::MAX).then_some(Timestamp::from_nanos(at))
    }

    /// The driver has let something go on past this time, as a monitor that reports what becomes certain by time alone: an
    /// event of this time or an earlier one that still comes is tardy. No further than [`Order::complete_up_to`].
    pub fn close(&mut self, time: Timestamp) {
        let Some(complete) = self.complete_up_to() else { return };
        let after = time.min(complete).as_nanos().checked_add(1);
        self.reached = self.reached.max(after.map_or(Place::end(i64::MAX), Place::start));
    }

    /// Whether an event of this topic and time, which comes when the clock shows `now`, is not later than what
    /// [`Order::complete_up_to`] says once all that has left is popped, or may take some of that back. Whoever lets
    /// something go on by time alone does so before [`Order::push`] then, so that it makes no difference how often.
    pub fn depends_on_closing(&mut self, topic: TopicId, time: Timestamp, now: Timestamp) -> bool {
        if self.settings.policy == OrderPolicy::Arrival {
            return false;
        }
        self.advance(now);
        let here = self.topics.get(topic.index());
        here.is_some_and(|here| here.absent || here.latest.is_some_and(|latest| time.as_nanos() < latest))
            || time.as_nanos() <= self.known_complete()
    }

    /// How it went so far, for each topic.
    pub fn statistics(&self) -> Vec<OrderStatistics> {
        let waits = (0..self.topics.len()).map(|topic| self.frontiers.wait(topic));
        self.topics.iter().zip(waits).map(|(topic, wait)| topic.statistics(wait)).collect()
    }

    /// How many events wait.
    pub fn waiting(&self) -> usize {
        self.waiting
    }

    /// Every event of this time or an earlier one has left, or will never come at its time.
    fn known_complete(&self) -> i64 {
        // Of a topic that is absent nothing is known but that it has said nothing so far.
        let known = self.frontiers.complete(self.now);
        let mut complete = known.filter(|known| self.absent == 0 || *known < self.now).unwrap_or(self.now);
        let head = self.heads.earliest();
        if head != Place::NEVER {
            complete = complete.min(head.time.saturating_sub(1));
        }
        // Whatever comes later leaves with this time or a later one.
        complete.max(self.reached.time.saturating_sub(1))
    }

    fn notice(&mut self, notice: Notice) {
        if self.notices.len() < NOTICES {
            self.notices.push_back(notice);
        } else {
            self.unsaid += 1;
        }
    }

    /// There is a sign of a topic.
    fn hear(&mut self, topic: TopicId) -> Option<usize> {
        let index = topic.index();
        if index >= self.topics.len() {
            self.notice(Notice::UnknownTopic { topic });
            return None;
        }
        if !self.started {
            self.started = true;
            for (i, topic) in self.topics.iter_mut().enumerate() {
                topic.heard = self.now;
                if topic.absent_after.is_some() {
                    self.absences.set(i, Place::event(topic.absent_at(), i));
                }
            }
        }
        let here = &mut self.topics[index];
        let after = self.now.saturating_sub(here.heard) as u64;
        (here.heard, here.ever) = (self.now, true);
        let was_absent = std::mem::take(&mut here.absent);
        if here.absent_after.is_some() {
            self.absences.set(index, Place::event(here.absent_at(), index));
        }
        if was_absent {
            self.absent -= usize::from(here.in_play);
            self.set_frontier(index);
            self.notice(Notice::Returned { topic, after });
        }
        Some(index)
    }

    fn refusal(&self, topic: TopicId, time: i64) -> Option<Notice> {
        let too_far = |distance: i64, limit: Option<u64>| {
            limit.is_some_and(|limit| distance > 0 && distance as u64 > limit)
        };
        let (ahead, behind) = (time.saturating_sub(self.now), self.now.saturating_sub(time));
        let (reason, distance) = match () {
            () if too_far(ahead, self.settings.ahead) => (Refusal::Ahead, ahead as u64),
            () if too_far(behind, self.settings.behind) => (Refusal::Behind, behind as u64),
            () => return None,
        };
        Some(Notice::Refused { topic, time: Timestamp::from_nanos(time), reason, distance })
    }

    /// Waits as long as events of the topic took so far, if that is asked for.
    fn estimate(&mut self, index: usize) {
        let Some(wait) = self.topics[index].estimate() else { return };
        let old = self.frontiers.wait(index);
        if wait != old {
            // What the clock has let pass stays so.
            let here = &mut self.topics[index];
            here.passed = here.passed.max(Some(self.now.saturating_sub(old)));
            self.frontiers.set_wait(index, wait);
            self.set_frontier(index);
        }
    }

    /// Whether this event came before. If numbers are left out, that is reported.
    fn is_duplicate(&mut self, index: usize, origin: Origin) -> bool {
        let here = &mut self.topics[index];
        let (topic, Origin { publisher, number }) = (TopicId(index as u32), origin);
        let numbered = here.origins.number(origin);
        match numbered {
            Numbered::Next | Numbered::Old => {}
            Numbered::Found => here.counts.missing = here.counts.missing.saturating_sub(1),
            Numbered::Again => {
                here.counts.duplicates += 1;
                self.notice(Notice::Duplicate { topic, publisher, number });
            }
            Numbered::Gap(missing) => {
                here.counts.missing = here.counts.missing.saturating_add(missing);
                self.notice(Notice::Gap { topic, publisher, from: number - missing, missing });
            }
            Numbered::Anew(highest) => self.notice(Notice::NumbersBack { topic, publisher, number, highest }),
        }
        numbered == Numbered::Again
    }

    /// Markers count this event.
    fn receive(&mut self, index: usize, time: i64) {
        self.give_up(index);
        let here = &mut self.topics[index];
        let through = here.markers.through;
        let broken = here.markers.receive(time);
        if here.markers.through != through {
            self.set_frontier(index);
        }
        if let Some(complete) = broken {
            let here = &mut self.topics[index];
            here.counts.broken += 1;
            if here.counts.broken == 1 {
                let (time, complete) = (Timestamp::from_nanos(time), Timestamp::from_nanos(complete));
                self.notice(Notice::MarkerBroken { topic: TopicId(index as u32), time, complete });
            }
        }
    }

    /// Order does not wait for the markers of the topic that it has gone past.
    fn give_up(&mut self, index: usize) {
        if !self.topics[index].markers.waits() {
            return;
        }
        let by_clock = match self.frontiers.wait(index) {
            ENDLESS => i64::MIN,
            wait => self.now.saturating_sub(wait),
        };
        self.give_up_to(index, by_clock.max(self.reached.time.saturating_sub(1)));
        self.set_frontier(index);
    }

    fn give_up_to(&mut self, index: usize, past: i64) {
        while let Some((complete, missing)) = self.topics[index].markers.give_up(past) {
            let (topic, complete) = (TopicId(index as u32), Timestamp::from_nanos(complete));
            self.notice(Notice::MarkerUnmet { topic, complete, missing });
        }
    }

    /// An event with this time has come on the topic.
    fn see_time(&mut self, index: usize, time: i64, publisher: Option<u64>) {
        let here = &mut self.topics[index];
        let in_order = publisher.is_some_and(|publisher| here.origins.in_order(publisher, time));
        match here.latest.filter(|latest| time < *latest) {
            Some(latest) => {
                here.counts.stepped_back += 1;
                if here.believed && !here.stepped_back {
                    here.stepped_back = true;
                    here.believed = here.max_wait == MaxWait::None && !here.markers.any();
                    let (topic, believed) = (TopicId(index as u32), here.believed);
                    let (time, latest) = (Timestamp::from_nanos(time), Timestamp::from_nanos(latest));
                    let notice = match (publisher, here.origins.latest_by) {
                        (Some(this), Some(other)) if this != other && in_order => {
                            let publishers = [this, other];
                            Notice::StampsDisagree { topic, time, latest, publishers, believed }
                        }
                        _ => Notice::SteppedBack { topic, time, latest, believed },
                    };
                    self.set_frontier(index);
                    self.notice(notice);
                }
            }
            None => {
                here.origins.latest_by = publisher;
                if here.latest != Some(time) {
                    here.latest = Some(time);
                    if here.believed {
                        self.set_frontier(index);
                    }
                }
            }
        }
    }

    fn set_frontier(&mut self, index: usize) {
        let here = &self.topics[index];
        self.frontiers.set(index, here.frontier(index));
    }

    /// An event that belongs before what has left.
    fn tardy(&mut self, index: usize, time: i64, delay: u64, item: T) {
        let (topic, policy) = (TopicId(index as u32), self.settings.tardy);
        let reached = Timestamp::from_nanos(self.reached.time);
        let excess = self.reached.time.saturating_sub(time) as u64;
        let max_wait =
            Some(self.frontiers.wait(index)).filter(|wait| *wait != ENDLESS).map(|wait| wait as u64);
        let here = &mut self.topics[index];
        let sufficient = here.see_tardy(excess, delay);
        let (tardy, received) = (here.counts.tardy, here.counts.received);
        let stamp = Timestamp::from_nanos(time);
        if policy == Tardy::Drop {
            here.counts.dropped += 1;
        } else {
            here.counts.released += 1;
            let lateness = Lateness { stamp, excess, inconclusive: policy == Tardy::Inconclusive };
            self.out.push_back(Released { topic, time: reached, tardy: Some(lateness), item });
        }
        self.notice(Notice::Tardy { topic, time: stamp, excess, delay, policy });
        // 1, 10, 100, …
        if 10_u64.checked_pow(tardy.ilog10()) == Some(tardy) {
            self.notice(Notice::WaitTooShort { topic, tardy, received, max_wait, sufficient });
        }
    }

    /// The first that waits, and when the clock lets it leave: `i64::MIN` if it may leave at once, None if it waits for
    /// knowledge only.
    fn head(&self) -> Option<(Place, Option<i64>)> {
        let head = self.heads.earliest();
        if head == Place::NEVER {
            return None;
        }
        Some(match self.frontiers.wait_before(head) {
            None => (head, Some(i64::MIN)),
            Some(ENDLESS) => (head, None),
            Some(wait) => (head, Some(head.time.saturating_add(wait))),
        })
    }

    /// Lets everything happen that is due, in the order of the times at which it was.
    fn release_due(&mut self) {
        loop {
            let absent = self.absences.earliest();
            match self.head() {
                Some((_, Some(due))) if due <= self.now && (due < absent.time || absent == Place::NEVER) => {
                    let topic = self.heads.earliest().topic();
                    self.topics[topic].counts.guessed += u64::from(due != i64::MIN);
                    self.release_head();
                }
                _ if absent.time <= self.now && absent != Place::NEVER => self.lose(absent.topic()),
                _ => return,
            }
        }
    }

    /// Nothing is heard of the topic.
    fn lose(&mut self, index: usize) {
        self.absences.set(index, Place::NEVER);
        let here = &mut self.topics[index];
        here.absent = true;
        self.absent += usize::from(here.in_play);
        let (since, ever) = (Timestamp::from_nanos(here.heard), here.ever);
        self.set_frontier(index);
        self.notice(Notice::Absent { topic: TopicId(index as u32), since, ever });
    }

    fn release_early(&mut self) {
        let head = self.heads.earliest();
        let counts = &mut self.topics[head.topic()].counts;
        counts.early += 1;
        counts.guessed += 1;
        self.release_head();
        self.notice(Notice::Early {
            topic: TopicId(head.topic() as u32),
            time: Timestamp::from_nanos(head.time),
        });
    }

    fn release_head(&mut self) -> bool {
        let head = self.heads.earliest();
        let Some(here) = self.topics.get_mut(head.topic()) else { return false };
        let Some((time, item)) = here.queue.pop() else { return false };
        here.counts.released += 1;
        self.waiting -= 1;
        self.reached = self.reached.max(head);
        let time = Timestamp::from_nanos(time);
        self.out.push_back(Released { topic: TopicId(head.topic() as u32), time, tardy: None, item });
        let index = head.topic();
        self.heads.set(index, here.queue.first().map_or(Place::NEVER, |time| Place::event(time, index)));
        true
    }
}
