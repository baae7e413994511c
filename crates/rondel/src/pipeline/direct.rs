//! Messages that are evaluated as they come.

use std::sync::Arc;
use std::time::Instant;

use rondel_decode::json::JsonDecoder;
use rondel_engine::Monitor;
use rondel_event::{Block, Timestamp, TopicId};
use rondel_net::adapter::{Publisher, Sample};
use rondel_spec::Spec;

use super::{Counts, Parts, Summary};
use crate::chains::ChainReport;
use crate::clock::Clock;
use crate::deployment::{Binding, TimeOfEvent};
use crate::outlet::{Outlet, Part};
use crate::output::Emit;
use crate::resume::{self, Known};
use crate::specification::Specification;
use crate::tally::{Backwards, Tally, Unseen, left_out};
use crate::warn;

/// One monitor, and what decodes messages for it.
pub(super) struct Direct {
    spec: Spec,
    /// How many events were checked in the runs before.
    events: u64,
    /// Whether another run will go on from where this one ends.
    goes_on: bool,
    /// From where that will be, once this one has ended.
    last: Option<Vec<u8>>,
    decoders: Vec<JsonDecoder>,
    times: Vec<TimeOfEvent>,
    /// Whether a property asks when events arrived.
    reads_arrivals: bool,
    /// The time of the last event.
    time: Timestamp,
    block: Block,
    monitor: Monitor,
    part: Part,
    /// What time it is without a message, where properties ask for that.
    clock: Option<Clock>,
    backwards: Backwards,
    unseen: Unseen,
}

/// What decodes the messages of each topic for a program.
pub(super) fn decoders(specification: &Specification, bindings: &[Binding]) -> Vec<JsonDecoder> {
    let projections = specification.program.projections().iter();
    let decoders = projections.zip(bindings).enumerate().map(|(i, (projection, binding))| {
        let field = if let TimeOfEvent::Field(path) = &binding.time { Some(path) } else { None };
        JsonDecoder::new(TopicId(i as u32), projection, field, binding.time_unit)
    });
    decoders.collect()
}

impl Direct {
    pub(super) fn new(parts: &mut Parts<'_>, outlet: &mut Outlet) -> Result<Direct, String> {
        let specification = parts.specification;
        let program = Arc::clone(&specification.program);
        let mut unseen = Unseen::new(specification);
        let (mut monitor, known) = match parts.resumed.take() {
            None => (Monitor::new(Arc::clone(&program)), Known::default()),
            Some(resumed) => {
                let (monitor, mut known) = (resumed.monitor(specification)?, resumed.known);
                unseen.keep(&known.unseen);
                let tallies = std::mem::take(&mut known.tallies);
                outlet.tallies.iter_mut().zip(tallies).for_each(|(tally, saved)| tally.restore(saved));
                (monitor, known)
            }
        };
        monitor.report_every(parts.emit == Emit::Every);
        Ok(Direct {
            spec: specification.spec.clone(),
            events: known.events,
            goes_on: parts.goes_on,
            last: None,
            decoders: decoders(specification, parts.bindings),
            times: parts.bindings.iter().map(|b| b.time.clone()).collect(),
            reads_arrivals: program.reads_arrivals(),
            time: Timestamp::from_nanos(known.time),
            block: Block::new(program.layout()),
            monitor,
            part: Part::whole(&specification.spec, parts.witness.take()),
            clock: specification.is_timed().then(Clock::default),
            backwards: Backwards::restored(known.backwards),
            unseen,
        })
    }

    pub(super) fn summary(&self, mut counts: Counts, mut tallies: Vec<Tally>) -> Summary {
        counts.mistyped = self.decoders.iter().map(JsonDecoder::mistyped).sum();
        let steps = self.monitor.position();
        for (tally, waiting) in tallies.iter_mut().zip(self.monitor.waiting()) {
            tally.end(steps, waiting);
        }
        Summary {
            counts,
            tallies,
            backwards: self.backwards.count,
            unseen: self.unseen.clone(),
            left_out: left_out(&self.monitor, &self.spec),
            chains: ChainReport::all(&self.monitor, &self.spec),
            alignment: None,
        }
    }

    pub(super) fn end(&mut self, counts: Counts, outlet: &mut Outlet) -> Vec<Box<dyn Publisher>> {
        if self.goes_on {
            self.last = Some(self.known(counts, outlet));
        } else {
            self.monitor.end();
            outlet.take(None, &self.monitor, &mut self.part);
        }
        Vec::new()
    }

    /// From where another run can go on: from now, or from the end.
    pub(super) fn snapshot(&mut self, counts: Counts, outlet: &mut Outlet) -> Vec<u8> {
        match &self.last {
            Some(last) => last.clone(),
            None => {
                self.step(outlet);
                self.known(counts, outlet)
            }
        }
    }

    /// All that is known. What has come must have been evaluated.
    fn known(&self, counts: Counts, outlet: &Outlet) -> Vec<u8> {
        let known = Known {
            times: String::new(),
            explain: self.part.witness.is_some(),
            events: self.events + counts.checked,
            time: self.time.as_nanos(),
            backwards: self.backwards.saved(),
            tallies: outlet.tallies.iter().map(Tally::saved).collect(),
            unseen: self.unseen.all(),
            waits: None,
        };
        resume::bytes(&known, &[self.monitor.snapshot()])
    }

    pub(super) fn is_timed(&self) -> bool {
        self.clock.is_some()
    }

    /// Decodes samples into the block, and evaluates it when it is full. Otherwise that is for when
    /// nothing more is waiting: 64 events at a time cost little more than one.
    pub(super) fn receive(
        &mut self,
        topic: TopicId,
        samples: &[Sample<'_>],
        counts: &mut Counts,
        outlet: &mut Outlet,
    ) {
        for sample in samples {
            // The clock is read once for a sample, if at all.
            let mut arrival = self.reads_arrivals.then(|| sample.arrival());
            let time = match self.times[topic.index()] {
                TimeOfEvent::Source => sample.source_time.unwrap_or_else(|| sample.arrival()),
                TimeOfEvent::Arrival => *arrival.get_or_insert_with(|| sample.arrival()),
                // Where the field is missing, the event is as late as the one before it.
                TimeOfEvent::Field(_) => self.time,
            };
            match self.decoders[topic.index()].decode(sample.payload, time, &mut self.block) {
                Ok(()) => {
                    counts.checked += 1;
                    let row = self.block.len() - 1;
                    self.time = self.block.time(row);
                    if let Some(arrival) = arrival.filter(|_| self.reads_arrivals) {
                        self.block.set_arrival(row, arrival);
                    }
                }
                Err(error) => counts.undecodable(sample.payload, error.offset, &error.to_string()),
            }
            if self.block.is_full() {
                self.step(outlet);
            }
        }
    }

    /// Evaluates the events in the block, publishes what is to be published, and empties it.
    pub(super) fn step(&mut self, outlet: &mut Outlet) {
        if self.block.is_empty() {
            return;
        }
        let first = self.monitor.position();
        if let Some(row) = self.backwards.add(&self.block) {
            let time = self.block.time(row);
            warn(&format!(
                "time goes backwards at step {} (time {time} s); further ones are only counted",
                first + row as u64
            ));
        }
        self.unseen.look(&self.block);
        if let Some(clock) = &mut self.clock {
            // What is evaluated has just come: the clock is read once for all of it.
            let latest = (0..self.block.len()).map(|row| self.block.time(row)).max();
            clock.set(latest.unwrap_or(self.time), Instant::now());
        }
        self.monitor.step(&self.block);
        outlet.take(Some((&self.block, first)), &self.monitor, &mut self.part);
        self.block.clear();
    }

    /// When time will bring something by itself.
    pub(super) fn due(&self) -> Option<Instant> {
        self.clock.as_ref()?.instant(self.monitor.next_deadline()?)
    }

    /// Evaluates what has come and what time has brought until this instant; when it will bring more.
    pub(super) fn pass(&mut self, at: Instant, outlet: &mut Outlet) -> Option<Instant> {
        self.step(outlet);
        loop {
            let deadline = self.monitor.next_deadline()?;
            let due = self.clock.as_ref()?.instant(deadline)?;
            if due > at {
                return Some(due);
            }
            // No further than needed: an event that is still on its way keeps its time.
            self.monitor.advance(deadline);
            outlet.take(None, &self.monitor, &mut self.part);
            if self.monitor.next_deadline().is_some_and(|next| next <= deadline) {
                return Some(at);
            }
        }
    }
}
