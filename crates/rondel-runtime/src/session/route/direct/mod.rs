//! Messages that are evaluated as they come.

mod gaps;
mod lent;
mod lines;
mod spread;
mod succession;
mod summary;
mod timing;
mod workers;

use std::sync::Arc;

use rondel_decode::DecodeError;
use rondel_engine::{Monitor, SeenAgain};
use rondel_event::{Block, Projection, Timestamp, TopicId};

use crate::report::notice::Notice;
use crate::session::options::Emit;
use crate::session::reading::decoders::TopicDecoder;
use crate::session::reading::line_counts::LineCounts;
use crate::session::reading::reader::MessageReader;
use crate::session::results::emitter::Evaluated;
use crate::session::results::reached::Reached;
use crate::session::snapshot::saved::{Known, Saved, StartError};
use crate::session::time::laps::{Came, Held};
use crate::session::{SessionPlan, Shared, Stamp};
use crate::specification::Specification;
use crate::specification::input::TimeSource;
use crate::statistics::Backwards;
use crate::time::clock::{NO_TIME, SourceClock};
use gaps::Gaps;
use spread::{Spread, Turn};
use timing::Timing;
use workers::Outputs;

/// One monitor, and the decoders that fill its block.
pub(in crate::session) struct Direct {
    specification: Specification,
    reader: MessageReader,
    timing: Timing,
    /// The time of the last event.
    time: Timestamp,
    block: Block,
    monitor: Monitor,
    /// Workers, if the session has any.
    spread: Option<Box<Spread>>,
    /// The limits of instances that were not reached yet.
    reached: Reached,
    evaluated: Evaluated,
    gaps: Gaps,
    /// The time at the source, where properties change with time alone.
    clock: Option<SourceClock>,
    backwards: Backwards,
    line_counts: LineCounts,
    /// Whether messages come in lines.
    reads_lines: bool,
    /// Number of machine leaps reported so far.
    leaps: u64,
    /// Whether asserts are judged up to the time at which the run ends: messages come live.
    ends_now: bool,
    is_live: bool,
}

impl Direct {
    /// The decoder of each topic.
    pub(in crate::session) fn decoders(&self) -> &[TopicDecoder] {
        &self.reader.decoders
    }

    /// The decoder of each topic.
    pub(in crate::session) fn decoders_mut(&mut self) -> &mut [TopicDecoder] {
        &mut self.reader.decoders
    }

    pub(in crate::session) fn new(plan: &SessionPlan, saved: Option<&Saved>) -> Result<Direct, StartError> {
        let specification = plan.specification.clone();
        let program = &specification.program;
        let unknown = Known::default();
        let (mut monitor, known) = match saved {
            None => (Monitor::new(Arc::clone(program)), &unknown),
            Some(saved) => {
                if saved.known.waiting.is_some() {
                    return Err(
                        "it belongs to a session whose messages wait to be put in order, and here they do not".into()
                    );
                }
                saved.fits(specification.spec.properties.len())?;
                let [state] = &saved.states[..] else {
                    return Err(rondel_event::SnapshotError::Altered.into());
                };
                (Monitor::restore(Arc::clone(program), state)?, &saved.known)
            }
        };
        monitor.report_every(plan.options.emit == Emit::Every);
        monitor.limit_instances(plan.options.instance_bytes);
        let reader = MessageReader::new(plan, program.projections())?;
        let leaps = monitor.leaps();
        let properties = (0..specification.spec.properties.len() as u32).collect();
        Ok(Direct {
            timing: Timing::new(plan, &reader),
            reader,
            time: Timestamp::from_nanos(known.time),
            block: Block::new(program.layout()),
            spread: Spread::new(plan, &monitor),
            reached: Reached::new(&monitor),
            monitor,
            evaluated: Evaluated {
                properties,
                explainer: plan.explainer.clone(),
                latest: Timestamp::from_nanos(known.time),
            },
            is_live: plan.options.live,
            clock: specification.is_timed().then(SourceClock::default),
            gaps: Gaps::new(known),
            backwards: Backwards::restored(known.backwards.0, known.backwards.1),
            line_counts: LineCounts::default(),
            reads_lines: false,
            leaps,
            ends_now: plan.options.live && specification.has_asserts(),
            specification,
        })
    }

    /// Decodes a message into the block, and evaluates the block when it is full: 64 events at a time cost
    /// little more than one.
    #[inline]
    pub(in crate::session) fn push(
        &mut self,
        topic: TopicId,
        stamp: &Stamp,
        payload: &[u8],
        shared: &mut Shared,
    ) -> Result<(), DecodeError> {
        self.push_by(topic, stamp, payload.len(), shared, |decoder, time, block| {
            decoder.decode(stamp, payload, time, block)
        })
    }

    /// Like [`Direct::push`], for a message of this size that `write` writes to a new row of the block, with the time that
    /// it has beside its fields. The block is unchanged after an error.
    #[inline(always)]
    pub(in crate::session) fn push_by<E>(
        &mut self,
        topic: TopicId,
        stamp: &Stamp,
        size: usize,
        shared: &mut Shared,
        write: impl FnOnce(&mut TopicDecoder, Timestamp, &mut Block) -> Result<(), E>,
    ) -> Result<(), E> {
        let needs_arrival = self.reader.decoders[topic.index()].begin(stamp);
        // The clock is read at most once for a message.
        let mut arrival = self.timing.reads_arrivals.then(|| stamp.arrival(&*shared.clock));
        let (time, is_own) = match self.reader.inputs[topic.index()].time {
            TimeSource::Source => match stamp.source {
                Some(time) => (time, true),
                None => {
                    self.timing.is_by_arrival = true;
                    (stamp.arrival(&*shared.clock), true)
                }
            },
            TimeSource::Arrival => (*arrival.get_or_insert_with(|| stamp.arrival(&*shared.clock)), false),
            TimeSource::Field(_) if needs_arrival => (stamp.arrival(&*shared.clock), true),
            TimeSource::Field(_) => (NO_TIME, true),
        };
        write(&mut self.reader.decoders[topic.index()], time, &mut self.block)?;
        shared.counts.checked += 1;
        if let Some(returning) = &mut self.gaps.returning {
            returning.count(size);
        }
        let row = self.block.len() - 1;
        self.reader.named.write(topic.index(), stamp.name, &mut self.block, row);
        let time = self.block.time(row);
        // Arrival times do not start over with the messages.
        let has_own_time = is_own && (stamp.source.is_some() || self.reader.has_time_field(topic));
        if has_own_time && shared.laps.must_wait(topic, time) {
            shared.counts.checked -= 1;
            self.hold(row, topic, stamp, shared);
            return Ok(());
        }
        if time == NO_TIME {
            self.unstamped(row, topic, shared);
        } else if !is_own || self.timing.limits.admit(time) {
            self.stamped(time, topic, shared);
        } else if !self.is_accepted(row, time, topic, shared) {
            shared.counts.checked -= 1;
            self.block.pop();
            self.refused(topic, shared);
            return Ok(());
        }
        if has_own_time {
            shared.laps.see(topic, time);
        }
        if let Some(arrival) = arrival.filter(|_| self.timing.reads_arrivals) {
            self.block.set_arrival(row, arrival);
        }
        if self.block.is_full() {
            self.step(shared);
        }
        Ok(())
    }

    /// Lets the message in the last row wait until it is known whether a new lap has begun.
    #[cold]
    fn hold(&mut self, row: usize, topic: TopicId, stamp: &Stamp, shared: &mut Shared) {
        let mut block = self.block.clone();
        block.keep(1 << row);
        self.block.pop();
        self.step(shared);
        let came = Came::at(&*shared.clock);
        shared.laps.hold(Held { topic, block, stamp: *stamp, is_line: false, came });
    }

    /// Evaluates a message that has waited.
    pub(in crate::session) fn resume_held(&mut self, held: &Held, shared: &mut Shared) {
        let Held { topic, block, stamp, is_line, .. } = held;
        self.evaluate(shared);
        self.block.clone_from(block);
        let time = self.block.time(0);
        shared.counts.checked += 1;
        let is_accepted =
            *is_line || self.timing.limits.admit(time) || self.is_accepted(0, time, *topic, shared);
        if !is_accepted {
            shared.counts.checked -= 1;
            self.block.pop();
            return self.refused(*topic, shared);
        }
        self.stamped(time, *topic, shared);
        shared.laps.see(*topic, time);
        if self.timing.reads_arrivals && !is_line {
            self.block.set_arrival(0, stamp.arrival(&*shared.clock));
        }
        self.evaluate(shared);
        self.settle(shared);
    }

    /// Continues the line counts of another route.
    pub(in crate::session) fn continue_lines(&mut self, before: &Direct) {
        self.line_counts.continue_after(&before.line_counts);
        self.reads_lines = before.reads_lines;
    }

    pub(in crate::session) fn projections(&self) -> &[Projection] {
        self.specification.program.projections()
    }

    /// Evaluates all events so far that need not wait for a later message.
    pub(in crate::session) fn flush(&mut self, shared: &mut Shared) {
        self.set_flushing(true);
        self.step(shared);
        self.set_flushing(false);
        self.drain(shared);
    }

    /// Evaluates the events of the block, or hands them to workers, and empties it.
    fn step(&mut self, shared: &mut Shared) {
        if self.reads_lines && shared.laps.is_on() {
            if !shared.laps.is_holding() && !self.steps_back() {
                self.see_times(shared);
            } else if self.hold_lines(shared) {
                return;
            }
        }
        self.evaluate(shared);
    }

    /// Evaluates the events of the block, none of which is held back, or hands them to workers, and empties it.
    fn evaluate(&mut self, shared: &mut Shared) {
        if self.block.is_empty() {
            return;
        }
        self.forget_own_arrivals();
        let turn = self.turn(shared);
        self.timing.limits.renew();
        if self.spread.is_some() && self.defer(turn, shared) {
            return;
        }
        self.begin_turn(turn, shared);
        self.evaluate_in_turn(turn, None, shared);
    }

    /// Records what was missed before the events of the block, when all before them were evaluated.
    #[inline]
    fn begin_turn(&mut self, Turn { ticks, .. }: Turn, shared: &mut Shared) {
        if let Some(absence) = self.gaps.absence.take() {
            self.return_from(&absence);
        }
        if !self.gaps.topics.is_empty() {
            let topics = std::mem::take(&mut self.gaps.topics);
            self.miss(&topics, self.gaps.before, SeenAgain::Now(self.block.time(0)), shared);
        }
        self.beat(ticks, shared);
        if let Some(ticks) = ticks.filter(|_| self.gaps.returning.is_some()) {
            self.return_by(ticks);
        }
    }

    /// Evaluates the events of the block and empties it. `outputs`: those of the workers, and the position of the block
    /// in the batch.
    #[inline]
    fn evaluate_in_turn(
        &mut self,
        Turn { counted, ticks }: Turn,
        outputs: Option<(&[Outputs], usize)>,
        shared: &mut Shared,
    ) {
        let first = self.monitor.position();
        let before = self.backwards.count;
        // Live messages of several publishers overtake each other unless they carry the time at which they were sent.
        let is_reported = !self.is_live || self.timing.reads_fields;
        if let Some(row) = self.backwards.add(&self.block).filter(|_| is_reported) {
            shared.notice(Notice::backwards(first + row as u64, self.block.time(row)));
        }
        shared.see(&self.block);
        if self.backwards.count > before {
            shared.widen(&self.block);
        }
        if let Some((clock, ticks)) = self.clock.as_mut().zip(ticks) {
            let latest = (0..self.block.len()).map(|row| self.block.time(row)).max();
            clock.set(latest.unwrap_or(self.time), ticks);
        }
        self.monitor.count(counted);
        match outputs {
            None => _ = self.monitor.step(&self.block),
            Some((outputs, at)) => {
                let outputs = outputs.iter().filter_map(|of_worker| of_worker.get(at));
                self.monitor.step_with(&self.block, outputs);
            }
        }
        self.look_at_limits(shared);
        self.take(Some(first), shared);
        self.block.clear();
    }

    /// Emits a notice for every limit of instances reached since the last call.
    #[inline]
    fn look_at_limits(&mut self, shared: &mut Shared) {
        self.reached.look(&self.monitor, &self.specification.spec, |notice| shared.notice(notice));
    }

    /// The number of messages that were evaluated, those before a snapshot included.
    pub(in crate::session) fn counted(&self) -> u64 {
        self.monitor.counted()
    }

    /// The time of the last message, evaluated or not.
    pub(in crate::session) fn last(&self) -> Timestamp {
        self.block.len().checked_sub(1).map_or(self.time, |row| self.block.time(row))
    }

    pub(in crate::session) fn monitors(&mut self) -> impl Iterator<Item = &mut Monitor> {
        std::iter::once(&mut self.monitor)
    }

    /// Takes the reports of the monitor's last call.
    fn take(&mut self, first: Option<u64>, shared: &mut Shared) {
        if self.has_failed() {
            // The state is lost.
            return;
        }
        let block = first.map(|first| (&self.block, first));
        shared.emitter.take(block, &self.monitor, &mut self.evaluated);
        if self.monitor.has_uncertain() {
            shared.blind([(&mut self.monitor, &*self.specification.spec)].into_iter());
        }
        let leaps = self.monitor.leaps();
        if leaps > self.leaps {
            shared.notice(Notice::leap(leaps - self.leaps, self.monitor.time()));
            self.leaps = leaps;
        }
    }

    pub(in crate::session) fn end_now(&mut self) {
        self.ends_now = true;
    }

    pub(in crate::session) fn finish(&mut self, shared: &mut Shared) {
        self.settle(shared);
        if self.has_failed() {
            return;
        }
        if self.ends_now {
            let (last, shown) = self.times(shared);
            self.advance(shown.max(last), shared);
        }
        self.monitor.end();
        self.take(None, shared);
        let latest = (self.monitor.position() > 0).then_some(self.time);
        shared.emitter.judge(&self.monitor, &self.evaluated, latest);
    }
}
