//! A monitor behind an alignment.

use std::sync::Arc;

use rondel_event::{Block, Event, Slot, Timestamp, TopicId};

use rondel_align::{Marker, Order, Origin, Released, Sets};
use rondel_engine::{Monitor, Program, SeenAgain, UnseenFrom};

/// Alignment with the monitor behind it: receives events as they arrive and evaluates them in order.
///
/// It has no clock: the caller passes the time, so that a simulation can drive it.
/// [`AlignedMonitor::run`] evaluates the released events, up to 64 at a time.
#[derive(Debug)]
pub struct AlignedMonitor {
    rule: Rule,
    /// Slots of the fields of each topic.
    slots: Vec<Vec<Slot>>,
    /// Evaluated events, whose memory is reused.
    free: Vec<Arc<Event>>,
    /// Released events that are not yet evaluated.
    block: Block,
    monitor: Monitor,
    /// Rest of the set released last, the last topic first.
    set: Vec<(Timestamp, Arc<Event>)>,
    set_time: Timestamp,
    /// Whether verdicts that depend on late events are inconclusive.
    withholds: bool,
}

/// Rule by which events are aligned.
#[derive(Debug)]
pub enum Rule {
    /// One by one, by event time.
    Order(Order<Arc<Event>>),
    /// In sets.
    Sets {
        /// The sets.
        sets: Sets<Arc<Event>>,
        /// The topics that a set has messages of, in order.
        topics: Vec<TopicId>,
        /// Whether all messages of a set are one event. Such a program has no property with parameters: one event
        /// belongs to one instance.
        joined: bool,
    },
}

/// An event in a row of a block.
#[derive(Clone, Copy, Debug)]
pub struct EventRow<'a> {
    /// The block.
    pub block: &'a Block,
    /// The row of the event.
    pub row: usize,
    /// The slots of the topic's fields in the block, in the order of the program's projection.
    pub slots: &'a [Slot],
}

/// Callback for the reports of a monitor: about a block, with the step of its first event, or about the passing of
/// time.
pub type ReportCallback<'a> = &'a mut dyn FnMut(Option<(&Block, u64)>, &Monitor);

impl AlignedMonitor {
    /// A monitor of `program` behind this rule.
    pub fn new(program: Arc<Program>, rule: Rule) -> AlignedMonitor {
        AlignedMonitor {
            rule,
            slots: slots_of(&program),
            free: Vec::new(),
            block: Block::new(program.layout()),
            monitor: Monitor::new(program),
            set: Vec::new(),
            set_time: Timestamp::ZERO,
            withholds: true,
        }
    }

    /// Sets whether verdicts that depend on late events are inconclusive, which they are by default.
    pub fn withhold(&mut self, withholds: bool) {
        self.withholds = withholds;
    }

    /// The monitor.
    pub fn monitor(&self) -> &Monitor {
        &self.monitor
    }

    /// The monitor, to be set up.
    pub fn monitor_mut(&mut self) -> &mut Monitor {
        &mut self.monitor
    }

    /// The rule that puts the events in order.
    pub fn rule(&self) -> &Rule {
        &self.rule
    }

    /// The rule, to take its notices.
    pub fn rule_mut(&mut self) -> &mut Rule {
        &mut self.rule
    }

    /// Takes the event in `row` of a block of the program's layout, which arrived at `now`.
    pub fn push(
        &mut self,
        block: &Block,
        row: usize,
        topic: TopicId,
        origin: Option<Origin>,
        now: Timestamp,
    ) {
        let slots = self.slots.get(topic.index()).cloned().unwrap_or_default();
        self.push_from(EventRow { block, row, slots: &slots }, topic, origin, now, now);
    }

    /// Takes an event from a block of another layout. The clock showed `now` before the event, which sets it to `then`.
    pub fn push_from(
        &mut self,
        event: EventRow<'_>,
        topic: TopicId,
        origin: Option<Origin>,
        now: Timestamp,
        then: Timestamp,
    ) {
        let EventRow { block, row, slots } = event;
        let mut event = self.free.pop().unwrap_or_default();
        Arc::make_mut(&mut event).copy(block, row, topic, slots);
        let time = block.time(row);
        match &mut self.rule {
            Rule::Order(order) => order.push_until(topic, time, origin, now, then, event),
            Rule::Sets { sets, topics, .. } => {
                if let Ok(position) = topics.binary_search(&topic) {
                    sets.push_until(TopicId(position as u32), time, now, then, event);
                }
            }
        }
    }

    /// Records a message that was refused because of its time: its topic is alive.
    pub fn refuse(&mut self, topic: TopicId, time: Timestamp, now: Timestamp) {
        match &mut self.rule {
            Rule::Order(order) => order.refuse(topic, time, now),
            Rule::Sets { sets, topics, .. } => {
                if let Ok(position) = topics.binary_search(&topic) {
                    sets.refuse(TopicId(position as u32), now);
                }
            }
        }
    }

    /// Records the number of an undecodable or refused message. Sets ignore it.
    pub fn unread(&mut self, topic: TopicId, origin: Origin) {
        if let Rule::Order(order) = &mut self.rule {
            order.unread(topic, origin);
        }
    }

    /// Takes a progress marker: a publisher has sent all messages of a topic up to some time. Sets ignore it.
    pub fn mark(&mut self, topic: TopicId, marker: &Marker, now: Timestamp) {
        if let Rule::Order(order) = &mut self.rule {
            order.mark(topic, marker, now);
        }
    }

    /// Sets the time of the alignment's clock.
    pub fn advance(&mut self, now: Timestamp) {
        match &mut self.rule {
            Rule::Order(order) => order.advance(now),
            Rule::Sets { sets, .. } => sets.advance(now),
        }
    }

    /// Evaluates the released events, and the verdicts that time alone decides.
    pub fn run(&mut self, emit: ReportCallback<'_>) {
        self.released(emit);
        let Rule::Order(order) = &mut self.rule else { return };
        let Some(complete) = order.complete_up_to() else { return };
        // A verdict that becomes certain before `after` depends only on events up to `complete`.
        let after = Timestamp::from_nanos(complete.as_nanos().saturating_add(1));
        let mut rounds = 0;
        while let Some(due) = self.monitor.next_deadline().filter(|due| *due <= after) {
            // Repeating deadlines are not followed without end: the monitor knows where to stop.
            rounds += 1;
            let due = if rounds > ROUNDS { after } else { due };
            // Closes no further than needed, so that the result does not depend on the number of calls.
            order.close(Timestamp::from_nanos(due.as_nanos().saturating_sub(1)));
            self.monitor.advance(due);
            emit(None, &self.monitor);
            if self.monitor.next_deadline().is_some_and(|next| next <= due) {
                break;
            }
        }
    }

    /// Runs what [`AlignedMonitor::run`] would if that decides whether an event of this topic and time is late. Call it
    /// before the event is pushed, if time alone causes reports.
    pub fn run_before(&mut self, topic: TopicId, time: Timestamp, now: Timestamp, emit: ReportCallback<'_>) {
        if let Rule::Order(order) = &mut self.rule
            && order.may_be_late(topic, time, now)
        {
            self.run(emit);
        }
    }

    /// Ends the trace: evaluates all waiting events in order, and reports pending obligations.
    pub fn end(&mut self, emit: ReportCallback<'_>) {
        self.end_at(None, emit);
    }

    /// Ends the trace at a time, up to which time passes after the last event.
    pub fn end_at(&mut self, time: Option<Timestamp>, emit: ReportCallback<'_>) {
        match &mut self.rule {
            Rule::Order(order) => order.flush(),
            Rule::Sets { sets, .. } => sets.flush(),
        }
        self.released(emit);
        let mut rounds = 0;
        while let Some(time) = time
            && let Some(due) = self.monitor.next_deadline().filter(|due| *due <= time)
        {
            rounds += 1;
            let due = if rounds > ROUNDS { time } else { due };
            self.monitor.advance(due);
            emit(None, &self.monitor);
            if self.monitor.next_deadline().is_some_and(|next| next <= due) {
                break;
            }
        }
        self.monitor.end();
        emit(None, &self.monitor);
    }

    /// The time at which [`AlignedMonitor::advance`] and [`AlignedMonitor::run`] have something to do, if no message
    /// arrives earlier.
    pub fn deadline(&self) -> Option<Timestamp> {
        match &self.rule {
            Rule::Order(order) => {
                let due = self.monitor.next_deadline();
                let before = due.map(|due| Timestamp::from_nanos(due.as_nanos().saturating_sub(1)));
                order.deadline().into_iter().chain(before.and_then(|due| order.complete_at(due))).min()
            }
            Rule::Sets { sets, .. } => sets.deadline(),
        }
    }

    /// Evaluates the released events.
    fn released(&mut self, emit: ReportCallback<'_>) {
        loop {
            self.miss_dropped(emit);
            if !self.release(emit) {
                break;
            }
            if self.block.is_full() {
                self.step(emit);
            }
        }
        self.step(emit);
    }

    /// Reports late events that were dropped to the monitor as missed.
    fn miss_dropped(&mut self, emit: ReportCallback<'_>) {
        while let Rule::Order(order) = &mut self.rule
            && let Some((topic, time, reached)) = order.pop_dropped()
        {
            self.miss(&[topic], time, SeenAgain::Now(time), Some(reached), emit);
        }
    }

    /// Records that messages of these topics were missed from a time on: see [`Monitor::miss`]. All messages earlier
    /// than `reached`, if known, have been released.
    pub fn miss(
        &mut self,
        topics: &[TopicId],
        from: Timestamp,
        until: SeenAgain,
        reached: Option<Timestamp>,
        emit: ReportCallback<'_>,
    ) {
        self.miss_for(topics, from, until, reached, &|_| true, emit);
    }

    /// Like [`AlignedMonitor::miss`], for some properties, by their positions.
    pub fn miss_for(
        &mut self,
        topics: &[TopicId],
        from: Timestamp,
        until: SeenAgain,
        reached: Option<Timestamp>,
        is_meant: &dyn Fn(u32) -> bool,
        emit: ReportCallback<'_>,
    ) {
        self.step(emit);
        if !self.withholds {
            return;
        }
        // The verdicts certain by then do not depend on the number of calls.
        if let Some(reached) = reached
            && !self.monitor.advance(reached).is_empty()
        {
            emit(None, &self.monitor);
        }
        self.monitor.miss_for(topics, (UnseenFrom::Time(from), until), is_meant);
        if !self.monitor.reports().is_empty() || !self.monitor.missed().is_empty() {
            emit(None, &self.monitor);
        }
    }

    /// Reports the properties that are evaluated at events and are uncertain now.
    pub fn withhold_until_event(&mut self, latest: Timestamp, emit: ReportCallback<'_>) {
        if !self.monitor.withhold_until_event(latest).is_empty() {
            emit(None, &self.monitor);
        }
    }

    /// Moves one event, or a joined set, into the block, which must not be full. Returns whether there was one.
    fn release(&mut self, emit: ReportCallback<'_>) -> bool {
        if let Rule::Order(order) = &self.rule
            && let Some((topic, time, late)) = order.peek_late()
        {
            // Verdicts that depend on its true position, up to its actual one, are inconclusive.
            self.miss(&[topic], late.stamp, SeenAgain::After(time), Some(time), emit);
        }
        let AlignedMonitor { rule, slots, free, block, set, .. } = self;
        let slots = |event: &Event| {
            let topic = event.topic().and_then(|topic| slots.get(topic.index()));
            topic.map_or(&[][..], Vec::as_slice)
        };
        match rule {
            Rule::Order(order) => {
                let Some(Released { time, lateness, mut item, .. }) = order.pop() else { return false };
                if lateness.is_some_and(|lateness| lateness.inconclusive) {
                    Arc::make_mut(&mut item).forget_values();
                }
                item.push(block, time, slots(&item));
                leave(item, free);
            }
            Rule::Sets { sets, joined, .. } => {
                if set.is_empty() {
                    let Some(of) = sets.pop(set) else { return false };
                    self.set_time = of.time;
                    set.reverse();
                }
                let Some((_, first)) = set.pop() else { return false };
                let row = first.push(block, self.set_time, slots(&first));
                leave(first, free);
                while *joined && let Some((_, item)) = set.pop() {
                    item.join(block, row, slots(&item));
                    leave(item, free);
                }
            }
        }
        true
    }

    fn step(&mut self, emit: ReportCallback<'_>) {
        if self.block.is_empty() {
            return;
        }
        let first = self.monitor.position();
        self.monitor.step(&self.block);
        emit(Some((&self.block, first)), &self.monitor);
        self.block.clear();
    }
}

/// The slots of each topic's fields.
pub(super) fn slots_of(program: &Program) -> Vec<Vec<Slot>> {
    program.projections().iter().map(|p| p.fields.iter().map(|f| f.slot).collect()).collect()
}

/// Maximum number of deadlines evaluated one by one.
const ROUNDS: u32 = 10_000;

/// The number of events kept for reuse: more than a burst, less than the limit of a queue.
const FREE: usize = 4096;

/// Maximum size of the texts of an event kept for reuse, in bytes: larger ones are rare, and would be kept for good.
const TEXT: usize = 4096;

/// Keeps an event for reuse, unless a set still refers to it or it is large.
fn leave(item: Arc<Event>, free: &mut Vec<Arc<Event>>) {
    if free.len() < FREE && Arc::strong_count(&item) == 1 && item.text_capacity() <= TEXT {
        free.push(item);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// An event with one text of this length.
    fn event(length: u32) -> Event {
        let mut bytes = [0; 4 + 8 + 1 + 8 + 8].to_vec();
        bytes.extend_from_slice(&1u32.to_le_bytes());
        bytes.push(5);
        bytes.extend_from_slice(&(u64::from(length) << 32).to_le_bytes());
        bytes.resize(bytes.len() + length as usize, b'x');
        Event::read(&bytes).unwrap_or_default()
    }

    #[test]
    fn the_memory_of_large_events_is_given_back() {
        let mut free = Vec::new();
        for length in [10, 1 << 20, 100] {
            let event = event(length);
            assert!(event.text_capacity() >= length as usize);
            leave(Arc::new(event), &mut free);
        }
        assert_eq!(free.len(), 2);
    }
}
