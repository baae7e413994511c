//! A monitor that gets its events in order.

use std::sync::Arc;

use rondel_event::{Block, Event, Slot, Timestamp, TopicId};

use rondel_align::{Marker, Order, Origin, Released, Sets};
use rondel_engine::{Monitor, Program};

/// An alignment and the monitor behind it: events come in as they arrive, and are evaluated in their order.
///
/// Driven by events and by what the clock shows, with none of its own, so that a simulation drives it as a
/// network does. [`AlignedMonitor::run`] evaluates what was released, up to 64 events at a time.
#[derive(Debug)]
pub struct AlignedMonitor {
    rule: Rule,
    /// For every topic where its fields are.
    slots: Vec<Vec<Slot>>,
    /// Events that no longer wait, for those that come.
    free: Vec<Arc<Event>>,
    /// What was released and is not yet evaluated.
    block: Block,
    monitor: Monitor,
    /// What is left of the set that was released last, the last topic first.
    set: Vec<(Timestamp, Arc<Event>)>,
    set_time: Timestamp,
}

/// How events are put in order.
#[derive(Debug)]
pub enum Rule {
    /// One by one.
    Order(Order<Arc<Event>>),
    /// In sets.
    Sets {
        /// What makes the sets.
        sets: Sets<Arc<Event>>,
        /// The topics that a set has messages of, in order.
        topics: Vec<TopicId>,
        /// Whether all messages of a set are one event. A property that is divided by key cannot be part of such a
        /// program: one event has one key.
        joined: bool,
    },
}

/// Who is told what a monitor reports: on the events of a block, the first of which is the step with this
/// number, or on time passing.
pub type Told<'a> = &'a mut dyn FnMut(Option<(&Block, u64)>, &Monitor);

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
        }
    }

    /// The monitor.
    pub fn monitor(&self) -> &Monitor {
        &self.monitor
    }

    /// The monitor, to be set up.
    pub fn monitor_mut(&mut self) -> &mut Monitor {
        &mut self.monitor
    }

    /// What puts the events in order.
    pub fn rule(&self) -> &Rule {
        &self.rule
    }

    /// The same, for its notices to be taken.
    pub fn rule_mut(&mut self) -> &mut Rule {
        &mut self.rule
    }

    /// Takes the event in `row` of a block of the program's layout, which came when the clock showed `now`.
    pub fn push(
        &mut self,
        block: &Block,
        row: usize,
        topic: TopicId,
        origin: Option<Origin>,
        now: Timestamp,
    ) {
        let slots = self.slots.get(topic.index()).cloned().unwrap_or_default();
        self.push_from((block, &slots), row, topic, origin, now);
    }

    /// Takes an event out of a block of another layout, in which the fields of the topic stand in these
    /// slots, in the order of the program's projection.
    pub fn push_from(
        &mut self,
        (block, slots): (&Block, &[Slot]),
        row: usize,
        topic: TopicId,
        origin: Option<Origin>,
        now: Timestamp,
    ) {
        let mut event = self.free.pop().unwrap_or_default();
        Arc::make_mut(&mut event).copy(block, row, topic, slots);
        let time = block.time(row);
        match &mut self.rule {
            Rule::Order(order) => order.push(topic, time, origin, now, event),
            Rule::Sets { sets, topics, .. } => {
                if let Ok(position) = topics.binary_search(&topic) {
                    sets.push(TopicId(position as u32), time, now, event);
                }
            }
        }
    }

    /// Takes the word of a publisher that all up to some time was sent on a topic. To sets it says nothing.
    pub fn mark(&mut self, topic: TopicId, marker: &Marker, now: Timestamp) {
        if let Rule::Order(order) = &mut self.rule {
            order.mark(topic, marker, now);
        }
    }

    /// The clock shows `now`.
    pub fn advance(&mut self, now: Timestamp) {
        match &mut self.rule {
            Rule::Order(order) => order.advance(now),
            Rule::Sets { sets, .. } => sets.advance(now),
        }
    }

    /// Evaluates the events that wait for nothing any more, and what time has brought since.
    pub fn run(&mut self, told: Told<'_>) {
        self.released(told);
        let Rule::Order(order) = &mut self.rule else { return };
        let Some(complete) = order.complete_up_to() else { return };
        // What becomes certain before `after` does so by what has happened up to `complete`.
        let after = Timestamp::from_nanos(complete.as_nanos().saturating_add(1));
        while let Some(due) = self.monitor.next_deadline().filter(|due| *due <= after) {
            // No further than needed: how often this is called makes no difference then.
            order.close(Timestamp::from_nanos(due.as_nanos().saturating_sub(1)));
            self.monitor.advance(due);
            told(None, &self.monitor);
            if self.monitor.next_deadline().is_some_and(|next| next <= due) {
                break;
            }
        }
    }

    /// To be called before an event of this topic and time is pushed, if time alone brings reports: does what
    /// [`AlignedMonitor::run`] does where that decides whether the event is late.
    pub fn run_before(&mut self, topic: TopicId, time: Timestamp, now: Timestamp, told: Told<'_>) {
        if let Rule::Order(order) = &mut self.rule
            && order.depends_on_closing(topic, time, now)
        {
            self.run(told);
        }
    }

    /// The end: evaluates all that waits, in order, and reports what is left open.
    pub fn end(&mut self, told: Told<'_>) {
        match &mut self.rule {
            Rule::Order(order) => order.flush(),
            Rule::Sets { sets, .. } => sets.flush(),
        }
        self.released(told);
        self.monitor.end();
        told(None, &self.monitor);
    }

    /// What the clock shows when [`AlignedMonitor::advance`] and [`AlignedMonitor::run`] have something to do, if
    /// no message comes before.
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

    /// Evaluates the events that wait for nothing any more.
    fn released(&mut self, told: Told<'_>) {
        while self.release() {
            if self.block.is_full() {
                self.step(told);
            }
        }
        self.step(told);
    }

    /// Moves one event, which may be a whole set, into the block, which is not full. Whether there was one.
    fn release(&mut self) -> bool {
        let AlignedMonitor { rule, slots, free, block, set, .. } = self;
        let slots = |event: &Event| {
            let topic = event.topic().and_then(|topic| slots.get(topic.index()));
            topic.map_or(&[][..], Vec::as_slice)
        };
        match rule {
            Rule::Order(order) => {
                let Some(Released { time, tardy, mut item, .. }) = order.pop() else { return false };
                if tardy.is_some_and(|tardy| tardy.inconclusive) {
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

    fn step(&mut self, told: Told<'_>) {
        if self.block.is_empty() {
            return;
        }
        let first = self.monitor.position();
        self.monitor.step(&self.block);
        told(Some((&self.block, first)), &self.monitor);
        self.block.clear();
    }
}

/// For every topic where its fields are.
pub(super) fn slots_of(program: &Program) -> Vec<Vec<Slot>> {
    program.projections().iter().map(|p| p.fields.iter().map(|f| f.slot).collect()).collect()
}

/// How many places are kept for events to come: more than a burst, less than what a queue may hold.
const FREE: usize = 4096;

/// Keeps the place of an event for the next one, unless a set may need it again.
fn leave(item: Arc<Event>, free: &mut Vec<Arc<Event>>) {
    if free.len() < FREE && Arc::strong_count(&item) == 1 {
        free.push(item);
    }
}
