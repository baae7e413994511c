//! Messages that are evaluated as they come.

use std::sync::Arc;

use rondel_decode::DecodeError;
use rondel_decode::lines::{LineError, Lines, Source};
use rondel_engine::{Monitor, SeenAgain, UnseenFrom};
use rondel_event::{Block, Layout, Projection, Rows, TimeUnit, Timestamp, TopicId};
use rondel_spec::{Property, TimeModel};

use super::blind::Hole;
use super::decoders::TopicDecoder;
use super::defaults::LineDefaults;
use super::emitter::Evaluated;
use super::laps::{Came, Held, since};
use super::pause::{GRACE, Missed};
use super::restart::Absence;
use super::returning::Returning;
use super::{SessionPlan, Shared, Stamp};
use crate::alignment::Alignment;
use crate::arrival;
use crate::chains::ChainStatistics;
use crate::clock::{NO_TIME, SourceClock, Ticks};
use crate::explanation::{Explainer, Signal};
use crate::limits::{Clocks, Limits};
use crate::names::NamedTopics;
use crate::notice::Notice;
use crate::omission::Omissions;
use crate::options::{Emit, Input, TimeSource};
use crate::reached::Reached;
use crate::saved::{Known, Saved, StartError};
use crate::specification::{Specification, trace_topics};
use crate::statistics::{Backwards, EndOf, PropertyStatistics, Summary, omissions, unchecked};
use crate::text::counted;

/// One monitor, and the decoders that fill its block.
pub(super) struct Direct {
    specification: Specification,
    decoders: Vec<TopicDecoder>,
    line_defaults: LineDefaults,
    named: NamedTopics,
    inputs: Vec<Input>,
    /// Whether a property reads the time of arrival.
    reads_arrivals: bool,
    /// Whether the time of some message was that of its arrival.
    is_by_arrival: bool,
    /// Whether some topic carries its time in a field.
    reads_time_fields: bool,
    /// Whether a property measures time.
    measures_time: bool,
    /// The topics of lines that should carry a time and have not carried one yet.
    unstamped: Vec<TopicId>,
    /// Limits of message times.
    limits: Limits,
    /// Limits of message times in lines.
    line_limits: Limits,
    /// The time of the last event.
    time: Timestamp,
    block: Block,
    monitor: Monitor,
    /// The limits of instances that were not reached yet.
    reached: Reached,
    evaluated: Evaluated,
    /// The topics of which messages are missing before the next event.
    unseen: Vec<TopicId>,
    /// Number of messages up to the last one before them.
    unseen_before: u64,
    /// Messages and time missed before the first message after a restart.
    absence: Option<Box<Absence>>,
    /// The first messages after a pause.
    returning: Option<Box<Returning>>,
    /// The time at the source, where properties change with time alone.
    clock: Option<SourceClock>,
    backwards: Backwards,
    /// Values of another type in lines, by topic.
    mistyped: Vec<u64>,
    /// Payloads in lines that could not be decoded.
    undecodable: u64,
    /// Mistyped values and undecodable payloads of the earlier laps.
    lines_before: (Vec<u64>, u64),
    /// Whether messages come in lines.
    reads_lines: bool,
    /// Number of machine leaps reported so far.
    leaps: u64,
    /// Whether asserts are judged up to the time at which the run ends: messages come live.
    ends_now: bool,
    is_live: bool,
}

/// Maximum number of deadlines evaluated in one call.
const ROUNDS: u32 = 1000;

impl Direct {
    /// The decoder of each topic.
    pub(super) fn decoders(&self) -> &[TopicDecoder] {
        &self.decoders
    }

    /// The decoder of each topic.
    pub(super) fn decoders_mut(&mut self) -> &mut [TopicDecoder] {
        &mut self.decoders
    }

    pub(super) fn new(plan: &SessionPlan, saved: Option<&Saved>) -> Result<Direct, StartError> {
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
        let inputs = plan.options.inputs.clone();
        let decoders = plan.decoders(program.projections())?;
        let named = plan.named_topics(program.projections());
        let leaps = monitor.leaps();
        let properties = (0..specification.spec.properties.len() as u32).collect();
        let measures_time = specification.spec.properties.iter().any(|p| p.time != TimeModel::Steps);
        let needs_time = |topic: &TopicId| measures_time || inputs[topic.index()].time.field().is_some();
        let Alignment { limited, .. } = plan.options.alignment;
        let limits = |is_live| Limits::new(&plan.options.alignment, is_live);
        Ok(Direct {
            unstamped: (0..specification.spec.topics.len() as u32).map(TopicId).filter(needs_time).collect(),
            decoders,
            line_defaults: plan.line_defaults(program.projections()),
            named,
            // Without properties that measure time, no time matters.
            limits: limits(true).only_if(plan.options.live && measures_time || limited),
            line_limits: limits(false).only_if(limited),
            reads_arrivals: program.reads_arrivals(),
            is_by_arrival: inputs.iter().any(|input| input.time == TimeSource::Arrival),
            reads_time_fields: inputs.iter().any(|input| input.time.field().is_some()),
            measures_time,
            inputs,
            time: Timestamp::from_nanos(known.time),
            block: Block::new(program.layout()),
            reached: Reached::new(&monitor),
            monitor,
            evaluated: Evaluated {
                properties,
                explainer: plan.explainer.clone(),
                latest: Timestamp::from_nanos(known.time),
            },
            is_live: plan.options.live,
            clock: specification.is_timed().then(SourceClock::default),
            unseen: known.unseen.0.iter().map(|topic| TopicId(*topic)).collect(),
            unseen_before: known.unseen.1,
            absence: None,
            returning: None,
            backwards: Backwards::restored(known.backwards),
            mistyped: Vec::new(),
            undecodable: 0,
            lines_before: (Vec::new(), 0),
            reads_lines: false,
            leaps,
            ends_now: plan.options.live && specification.has_asserts(),
            specification,
        })
    }

    /// Decodes a message into the block, and evaluates the block when it is full: 64 events at a time cost
    /// little more than one.
    #[inline]
    pub(super) fn push(
        &mut self,
        topic: TopicId,
        stamp: &Stamp,
        payload: &[u8],
        shared: &mut Shared,
    ) -> Result<(), DecodeError> {
        let needs_arrival = self.decoders[topic.index()].begin(stamp);
        // The clock is read at most once for a message.
        let mut arrival = self.reads_arrivals.then(|| stamp.arrival(&*shared.clock));
        let (time, is_own) = match self.inputs[topic.index()].time {
            TimeSource::Source => match stamp.source {
                Some(time) => (time, true),
                None => {
                    self.is_by_arrival = true;
                    (stamp.arrival(&*shared.clock), true)
                }
            },
            TimeSource::Arrival => (*arrival.get_or_insert_with(|| stamp.arrival(&*shared.clock)), false),
            TimeSource::Field(_) if needs_arrival => (stamp.arrival(&*shared.clock), true),
            TimeSource::Field(_) => (NO_TIME, true),
        };
        self.decoders[topic.index()].decode(stamp, payload, time, &mut self.block)?;
        shared.counts.checked += 1;
        if let Some(returning) = &mut self.returning {
            returning.count(payload.len());
        }
        let row = self.block.len() - 1;
        self.named.write(topic.index(), stamp.name, &mut self.block, row);
        let time = self.block.time(row);
        // Arrival times do not start over with the messages.
        let has_own_time =
            is_own && (stamp.source.is_some() || self.inputs[topic.index()].time.field().is_some());
        if has_own_time && shared.laps.must_wait(topic, time) {
            shared.counts.checked -= 1;
            self.hold(row, (topic, stamp), shared);
            return Ok(());
        }
        if time == NO_TIME {
            self.unstamped(row, topic, shared);
        } else if !is_own || self.limits.admit(time) {
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
        if let Some(arrival) = arrival.filter(|_| self.reads_arrivals) {
            self.block.set_arrival(row, arrival);
        }
        if self.block.is_full() {
            self.step(shared);
        }
        Ok(())
    }

    /// Lets the message in the last row wait until it is known whether a new lap has begun.
    #[cold]
    fn hold(&mut self, row: usize, (topic, stamp): (TopicId, &Stamp), shared: &mut Shared) {
        let mut block = self.block.clone();
        block.keep(1 << row);
        self.block.pop();
        self.step(shared);
        let came = Came::at(&*shared.clock);
        shared.laps.hold(Held { topic, block, stamp: *stamp, is_line: false, came });
    }

    /// Lets messages of lines wait, from the first one on whose time steps back. Returns whether there is one; those before
    /// it are evaluated.
    #[cold]
    fn hold_lines(&mut self, shared: &mut Shared) -> bool {
        let is_own = |topic: TopicId| self.inputs[topic.index()].time != TimeSource::Arrival;
        let mut first = None;
        for row in 0..self.block.len() {
            let Some(topic) = self.block.topic(row).filter(|topic| is_own(*topic)) else { continue };
            if shared.laps.must_wait(topic, self.block.time(row)) {
                first = Some(row);
                break;
            }
            shared.laps.see(topic, self.block.time(row));
        }
        let Some(first) = first else { return false };
        let mut rest = self.block.clone();
        rest.keep(rows_from(first));
        self.block.keep(!rows_from(first));
        let came = Came::at(&*shared.clock);
        shared.counts.checked -= rest.len() as u64;
        self.evaluate(shared);
        for row in 0..rest.len() {
            let Some(topic) = rest.topic(row) else { continue };
            let mut block = rest.clone();
            block.keep(1 << row);
            shared.laps.hold(Held { topic, block, stamp: Stamp::default(), is_line: true, came });
        }
        true
    }

    /// Evaluates a message that has waited.
    pub(super) fn resume_held(&mut self, held: &Held, shared: &mut Shared) {
        let Held { topic, block, stamp, is_line, .. } = held;
        self.evaluate(shared);
        self.block.clone_from(block);
        let time = self.block.time(0);
        shared.counts.checked += 1;
        let is_accepted = *is_line || self.limits.admit(time) || self.is_accepted(0, time, *topic, shared);
        if !is_accepted {
            shared.counts.checked -= 1;
            self.block.pop();
            return self.refused(*topic, shared);
        }
        self.stamped(time, *topic, shared);
        shared.laps.see(*topic, time);
        if self.reads_arrivals && !is_line {
            self.block.set_arrival(0, stamp.arrival(&*shared.clock));
        }
        self.evaluate(shared);
    }

    /// Continues the line counts of another route.
    pub(super) fn continue_lines(&mut self, before: &Direct) {
        self.lines_before = (before.mistyped.clone(), before.undecodable);
        (self.mistyped, self.undecodable) = self.lines_before.clone();
        self.reads_lines = before.reads_lines;
    }

    #[inline(always)]
    fn stamped(&mut self, time: Timestamp, topic: TopicId, shared: &mut Shared) {
        self.time = time;
        if self.reads_time_fields {
            shared.topics[topic.index()].stamped = true;
        }
    }

    /// Reads the clock, and decides whether a message of this time is accepted: once for each block, and for
    /// every time that may be too far away.
    #[cold]
    fn is_accepted(&mut self, row: usize, time: Timestamp, topic: TopicId, shared: &mut Shared) -> bool {
        // A time of zero was never set, unless the time of the system begins at zero.
        let is_unset = time == Timestamp::ZERO;
        if !is_unset || self.limits.have_time() {
            let day = shared.clock.latest();
            let accepted = shared.counts.checked - 1;
            let shown = self.limits.shown_at(day.unwrap_or(NO_TIME));
            let clocks = Clocks { shown, day, accepted };
            match self.limits.check(time, clocks) {
                None => {}
                Some(_) if is_unset => {
                    self.unstamped(row, topic, shared);
                    return true;
                }
                Some(refused) => {
                    shared.refuse(topic, time, refused);
                    return false;
                }
            }
        }
        self.stamped(time, topic, shared);
        true
    }

    /// Withholds the verdicts that depend on a message that was refused.
    #[cold]
    fn refused(&mut self, topic: TopicId, shared: &mut Shared) {
        if shared.heartbeat.withholds {
            self.step(shared);
            let (latest, shown) = self.times(shared);
            self.unseen(&[topic], latest.max(shown), shared);
        }
    }

    /// Sets the time of an event without one to that of the previous event.
    #[cold]
    fn unstamped(&mut self, row: usize, topic: TopicId, shared: &mut Shared) {
        self.block.set_time(row, self.time);
        shared.unstamped(topic, self.time);
    }

    pub(super) fn projections(&self) -> &[Projection] {
        self.specification.program.projections()
    }

    pub(super) fn lines(&self, unit: TimeUnit) -> Lines {
        let Direct { specification, inputs, .. } = self;
        let projections = specification.program.projections();
        let topics = trace_topics(&specification.spec, projections, inputs);
        Lines::new(&topics, specification.is_formula, unit)
            .with_arrivals(self.reads_arrivals)
            .from_time(self.time)
    }

    /// The columns of the blocks that are filled with lines.
    pub(super) fn layout(&self) -> Layout {
        self.block.layout()
    }

    pub(super) fn push_lines(
        &mut self,
        lines: &mut Lines,
        source: Source<'_>,
        shared: &mut Shared,
    ) -> Result<usize, LineError> {
        if matches!(source, Source::Part(_)) {
            // The part replaces the block.
            self.step(shared);
        }
        let before = self.block.len();
        self.reads_lines = true;
        let decoded = lines.take(source, &mut self.block);
        self.line_defaults.fill(&mut self.block, before);
        let mut holes = shared.holes(lines, &self.block, before);
        shared.join(|| (self.block.len() > before).then(|| self.block.time(before)));
        let came = (self.block.len() - before) as u64;
        shared.counts.received += came;
        let mut untimed = lines.take_untimed();
        if self.line_limits.are_active() {
            untimed = self.refuse_lines(before, untimed, &mut holes, shared);
        } else {
            self.time = lines.time();
        }
        shared.counts.checked += (self.block.len() - before) as u64;
        if self.mistyped != lines.mistyped() {
            self.mistyped = lines.mistyped().to_vec();
        }
        self.undecodable = lines.undecodable();
        if self.reads_time_fields || self.measures_time {
            self.look_for_times(before, untimed, shared);
        }
        if !holes.is_empty() {
            self.step_to(holes, shared);
        }
        if self.block.is_full() || decoded.is_err() {
            self.step(shared);
        }
        decoded
    }

    /// Records the latest time of each topic in the block, whose rows are in order.
    fn see_times(&self, shared: &mut Shared) {
        for topic in (0..self.inputs.len() as u32).map(TopicId) {
            let rows = self.block.topic_rows(topic);
            if rows != 0 && self.inputs[topic.index()].time != TimeSource::Arrival {
                shared.laps.see(topic, self.block.time(rows.ilog2() as usize));
            }
        }
    }

    /// Evaluates the events before each hole, and records the missed messages there.
    #[cold]
    fn step_to(&mut self, holes: Vec<Hole>, shared: &mut Shared) {
        let mut done = 0;
        for Hole { row, topics, gap, .. } in holes {
            if row > done {
                let after = rows_from(row - done);
                let mut rest = self.block.clone();
                rest.keep(after);
                self.block.keep(!after);
                self.step(shared);
                self.block = rest;
                done = row;
            }
            match gap {
                Some(before) => self.note_unseen(&topics, before),
                None => self.unseen(&topics, self.monitor.time(), shared),
            }
        }
    }

    /// Records that messages of these topics were missed between the last event and the next, whose time is not known
    /// yet.
    pub(super) fn unseen(&mut self, topics: &[TopicId], now: Timestamp, shared: &mut Shared) {
        if topics.iter().all(|topic| self.unseen.contains(topic)) {
            return;
        }
        let before = self.monitor.counted();
        self.miss(topics, before, SeenAgain::Now(now), shared);
        self.note_unseen(topics, before);
    }

    /// Reports the properties that depend on a message that cannot be read, and are evaluated at events only.
    #[cold]
    pub(super) fn withhold_until_event(&mut self, shared: &mut Shared) {
        if !self.monitor.withhold_until_event(self.time).is_empty() {
            self.take(None, shared);
        }
    }

    fn note_unseen(&mut self, topics: &[TopicId], before: u64) {
        self.unseen_before = if self.unseen.is_empty() { before } else { self.unseen_before.min(before) };
        self.unseen.extend(topics);
    }

    /// Removes the events from this row on whose times are too far from those before them, and adds each to the holes,
    /// whose rows are moved. Returns which of the other events have no time of their own.
    fn refuse_lines(
        &mut self,
        from: usize,
        untimed: Rows,
        holes: &mut Vec<Hole>,
        shared: &mut Shared,
    ) -> Rows {
        let (mut keep, mut kept_untimed) = (self.block.rows(), 0);
        for row in from..self.block.len() {
            let Some(topic) = self.block.topic(row) else { continue };
            let time = self.block.time(row);
            if untimed >> row & 1 == 1 {
                // The decoder took the time of a line before it, which may have been refused.
                self.block.set_time(row, self.time);
                kept_untimed |= 1 << (keep & ((1 << row) - 1)).count_ones();
                continue;
            }
            let clocks = Clocks { shown: NO_TIME, day: None, accepted: 0 };
            let is_own = self.inputs[topic.index()].time != TimeSource::Arrival;
            match is_own.then(|| self.line_limits.check(time, clocks)).flatten() {
                Some(refused) => {
                    keep &= !(1 << row);
                    shared.refuse(topic, time, refused);
                    if shared.heartbeat.withholds {
                        holes.push(Hole { row, topics: vec![topic], origin: None, gap: None });
                    }
                }
                None => self.time = time,
            }
        }
        if keep != self.block.rows() {
            self.block.keep(keep);
            holes.sort_by_key(|hole| hole.row);
            for hole in holes {
                hole.row = (keep & !rows_from(hole.row)).count_ones() as usize;
            }
        }
        kept_untimed
    }

    /// Counts the events from this row on that have no time of their own where they should.
    fn look_for_times(&mut self, from: usize, untimed: Rows, shared: &mut Shared) {
        if !self.unstamped.is_empty() {
            let timed = rows_from(from) & !untimed;
            self.unstamped.retain(|topic| {
                let stamped = self.block.topic_rows(*topic) & timed != 0;
                shared.topics[topic.index()].stamped |= stamped;
                !stamped
            });
        }
        let mut untimed = untimed & rows_from(from);
        while untimed != 0 {
            let row = untimed.trailing_zeros() as usize;
            untimed &= untimed - 1;
            let Some(topic) = self.block.topic(row) else { continue };
            if self.measures_time || self.inputs[topic.index()].time.field().is_some() {
                shared.unstamped(topic, self.block.time(row));
            }
        }
    }

    /// Evaluates the events of the block and empties it.
    pub(super) fn step(&mut self, shared: &mut Shared) {
        if self.reads_lines && shared.laps.is_on() {
            if !shared.laps.is_holding() && !self.backwards.is_back(&self.block) {
                self.see_times(shared);
            } else if self.hold_lines(shared) {
                return;
            }
        }
        self.evaluate(shared);
    }

    /// Evaluates the events of the block, none of which waits, and empties it.
    fn evaluate(&mut self, shared: &mut Shared) {
        if self.block.is_empty() {
            return;
        }
        if let Some(absence) = self.absence.take() {
            self.return_from(&absence);
        }
        if self.reads_arrivals {
            let rows = 0..self.block.len();
            arrival::forget_own(&mut self.block, rows, &self.inputs);
        }
        // The messages have just arrived: one reading of the clock serves the whole block.
        let ticks = self.needs_time().then(|| shared.clock.ticks());
        if !self.unseen.is_empty() {
            let topics = std::mem::take(&mut self.unseen);
            self.miss(&topics, self.unseen_before, SeenAgain::Now(self.block.time(0)), shared);
        }
        if let Some(missed) =
            ticks.and_then(|ticks| shared.beat(ticks, self.is_by_arrival.then(|| self.last())))
        {
            self.pause(&missed, shared);
        }
        if let Some(ticks) = ticks.filter(|_| self.returning.is_some()) {
            self.return_by(ticks, shared);
        }
        let first = self.monitor.position();
        let before = self.backwards.count;
        // Live messages of several publishers overtake each other unless they carry the time at which they were sent.
        let is_reported = !self.is_live || self.reads_time_fields;
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
        self.limits.renew();
        self.monitor.count(shared.counted());
        self.monitor.step(&self.block);
        self.reached.look(&self.monitor, &self.specification.spec, |notice| shared.notice(notice));
        self.take(Some(first), shared);
        self.block.clear();
    }

    /// The values of all fields.
    pub(super) fn courses(&self) -> (Vec<Signal>, u64) {
        self.evaluated.explainer.as_ref().map_or_else(Default::default, Explainer::courses)
    }

    /// The number of messages that were evaluated, those before a snapshot included.
    pub(super) fn counted(&self) -> u64 {
        self.monitor.counted()
    }

    /// The time of the last message, evaluated or not.
    pub(super) fn last(&self) -> Timestamp {
        self.block.len().checked_sub(1).map_or(self.time, |row| self.block.time(row))
    }

    /// The time of the last message, and what the clock shows.
    pub(super) fn times(&self, shared: &Shared) -> (Timestamp, Timestamp) {
        let own = self.clock.as_ref().and_then(|clock| clock.at(shared.clock.ticks()));
        (self.time, own.unwrap_or(self.time))
    }

    pub(super) fn monitors(&mut self) -> impl Iterator<Item = &mut Monitor> {
        std::iter::once(&mut self.monitor)
    }

    /// Records that messages of these topics were missed; `before` is the number of messages up to the last one before
    /// the span.
    pub(super) fn miss(&mut self, topics: &[TopicId], before: u64, until: SeenAgain, shared: &mut Shared) {
        let has_seen = |property: u32| !shared.joins(property);
        self.monitor.miss_for(topics, (UnseenFrom::Count(before), until), has_seen);
        self.take(None, shared);
    }

    /// Records a pause of the session or a step of the day's clock, before any later message is evaluated.
    #[cold]
    pub(super) fn pause(&mut self, missed: &Missed, shared: &mut Shared) {
        let span = if self.is_by_arrival || missed.is_empty {
            if let Some(clock) = self.clock.as_mut().filter(|_| missed.is_empty) {
                clock.stand(missed.lasted().saturating_add(GRACE));
            }
            let again = self.wait_for_return(missed).unwrap_or_else(|| missed.again(&self.block));
            (missed.from, again)
        } else {
            // Without times of arrival, the day's clock decides nothing.
            let Some((last, now)) = missed.ticks else { return };
            let shown = |ticks| self.clock.and_then(|clock| clock.at(ticks));
            let (from, until) = (shown(last), shown(now));
            if let Some(clock) = &mut self.clock {
                clock.stand(missed.lasted().saturating_add(GRACE));
            }
            if !self.reads_arrivals {
                return;
            }
            // The transport delay of waiting messages is unknown.
            let after = Timestamp::from_nanos(self.time.as_nanos().saturating_add(missed.lasted()));
            (from.unwrap_or(self.time), SeenAgain::After(until.unwrap_or(after)))
        };
        if !shared.heartbeat.withholds {
            return;
        }
        let topics = self.topics();
        self.miss_time(&topics, (UnseenFrom::Time(span.0), span.1), shared);
    }

    /// Records that the day's clock has caught up with the time it had shown before it was set back.
    #[cold]
    pub(super) fn catch_up(&mut self, shared: &Shared) {
        let (last, shown) = self.times(shared);
        let again = [last, shown, shared.clock.now()].into_iter().max();
        self.monitor.see(&self.topics(), SeenAgain::At(again.unwrap_or(last)));
    }

    /// After a pause in which messages waited: defers the decision from when on messages are received again, if time
    /// matters.
    fn wait_for_return(&mut self, missed: &Missed) -> Option<SeenAgain> {
        self.clock.as_ref()?;
        let (until, now) = missed.return_of(&self.block)?;
        let topics = self.specification.spec.topics.len();
        self.returning = Returning::after(missed.lasted(), until, now, topics).map(Box::new);
        self.returning.as_ref().map(|_| SeenAgain::Open)
    }

    /// Records the messages of the block, and decides from when on messages are received again once that is due.
    #[cold]
    fn return_by(&mut self, now: Ticks, shared: &mut Shared) {
        if let Some(returning) = &mut self.returning {
            returning.see(&self.block);
        }
        if let Some(returning) = self.returning.take_if(|returning| returning.due <= now) {
            returning.end(&mut self.monitor, false);
            self.take(None, shared);
        }
    }

    /// Decides now from when on messages are received again, since no later call would.
    pub(super) fn return_now(&mut self) {
        if let Some(returning) = self.returning.take() {
            returning.end(&mut self.monitor, true);
        }
    }

    fn topics(&self) -> Vec<TopicId> {
        (0..self.specification.spec.topics.len() as u32).map(TopicId).collect()
    }

    /// Records that messages of these topics come late, which matters to properties that measure time.
    fn miss_time(&mut self, topics: &[TopicId], span: (UnseenFrom, SeenAgain), shared: &mut Shared) {
        let properties = &self.specification.spec.properties;
        let is_meant = |property: u32| {
            let measures = |property: &Property| self.reads_arrivals || property.time != TimeModel::Steps;
            !shared.joins(property) && properties.get(property as usize).is_none_or(measures)
        };
        self.monitor.miss_for(topics, span, is_meant);
        shared.omit_span(&self.monitor, span.0);
        self.take(None, shared);
    }

    /// Records the messages and time missed before the first message that follows.
    pub(super) fn absent(&mut self, absence: Absence, is_by_arrival: bool, shared: &mut Shared) {
        self.is_by_arrival |= is_by_arrival;
        let from = UnseenFrom::Count(self.monitor.counted());
        self.miss(&absence.lost, self.monitor.counted(), SeenAgain::Open, shared);
        if self.is_by_arrival || self.reads_arrivals {
            self.miss_time(&absence.late, (from, SeenAgain::Open), shared);
        }
        self.absence = Some(Box::new(absence));
    }

    /// Ends an absence with the first message after it.
    #[cold]
    fn return_from(&mut self, absence: &Absence) {
        let first = self.block.time(0);
        let again = if self.measures_time || self.reads_arrivals {
            absence.again(first, self.reads_arrivals && !self.is_by_arrival)
        } else {
            SeenAgain::Now(first)
        };
        self.monitor.see(&self.topics(), again);
    }

    pub(super) fn is_timed(&self) -> bool {
        self.clock.is_some()
    }

    /// Whether the arrival times of messages matter.
    pub(super) fn needs_time(&self) -> bool {
        self.clock.is_some() || self.reads_arrivals
    }

    pub(super) fn deadline(&self) -> Option<Timestamp> {
        self.monitor.next_deadline()
    }

    pub(super) fn due(&self) -> Option<Ticks> {
        let clock = self.clock.as_ref()?;
        let deadline = self.monitor.next_deadline().and_then(|deadline| clock.ticks(deadline));
        deadline.into_iter().chain(self.returning.as_ref().map(|returning| returning.due)).min()
    }

    pub(super) fn poll(&mut self, shared: &mut Shared) -> Option<Ticks> {
        self.step(shared);
        let now = shared.clock.ticks();
        if let Some(missed) = shared.beat(now, None) {
            self.pause(&missed, shared);
        }
        if self.returning.is_some() {
            self.return_by(now, shared);
        }
        for _ in 0..ROUNDS {
            let due = self.due()?;
            if due > now {
                return Some(due);
            }
            let deadline = self.monitor.next_deadline()?;
            // Only to the deadline, so that an event on its way is not before the monitor's time.
            self.monitor.advance(deadline);
            self.take(None, shared);
            if self.monitor.next_deadline().is_some_and(|next| next <= deadline) {
                return Some(now);
            }
        }
        // The rest is for the next call: in between, reports are taken, and the run may end.
        Some(now)
    }

    /// Takes the reports of the monitor's last call.
    fn take(&mut self, first: Option<u64>, shared: &mut Shared) {
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

    pub(super) fn advance(&mut self, time: Timestamp, shared: &mut Shared) {
        self.step(shared);
        self.monitor.advance(time);
        self.take(None, shared);
    }

    pub(super) fn end_now(&mut self) {
        self.ends_now = true;
    }

    pub(super) fn finish(&mut self, shared: &mut Shared) {
        if self.ends_now {
            let (last, shown) = self.times(shared);
            self.advance(shown.max(last), shared);
        }
        self.monitor.end();
        self.take(None, shared);
        let latest = (self.monitor.position() > 0).then_some(self.time);
        shared.emitter.judge(&self.monitor, &self.evaluated, latest);
    }

    /// The state for a snapshot, after [`Direct::step`].
    pub(super) fn saved(&self) -> Saved {
        let known =
            Known { time: self.time.as_nanos(), backwards: self.backwards.saved(), ..Known::default() };
        let recorded_until = (self.monitor.position() > 0).then(|| self.time.as_nanos());
        let unseen = (self.unseen.iter().map(|topic| topic.0).collect(), self.unseen_before);
        let known = Known { is_by_arrival: self.is_by_arrival, recorded_until, unseen, ..known };
        Saved { known, states: vec![self.monitor.snapshot()] }
    }

    /// Adds the least robustness of each property.
    pub(super) fn see_robustness(&self, statistics: &mut [PropertyStatistics]) {
        for (property, statistics) in (0..).zip(statistics) {
            statistics.see_robustness(&self.monitor, property);
        }
    }

    /// Ends all violations for the statistics, since nothing is received from here on.
    pub(super) fn stop_measuring(&self, shared: &mut Shared) {
        shared.emitter.stop_measuring(&self.monitor, &self.evaluated);
    }

    /// End of the evaluated time span: live, up to the next time after the last message at which a verdict could
    /// change.
    fn end(&self, shared: &Shared) -> EndOf {
        let mut end = self.evaluated.end(&self.monitor);
        if self.is_live
            && let Some(shown) = self.clock.as_ref().and_then(|clock| clock.at(shared.clock.ticks()))
        {
            let due = self.monitor.next_deadline().unwrap_or(shown);
            end.time = end.time.max(shown.min(due));
        }
        end
    }

    /// Adds the messages and values that the monitor left out at a limit.
    pub(super) fn add_omissions(&self, omissions: &mut Omissions) {
        omissions.add_mistyped(since(&self.mistyped, &self.lines_before.0));
        omissions.add_limits(&self.monitor, &self.specification.spec);
    }

    pub(super) fn summarize(&self, summary: &mut Summary, shared: &Shared) {
        let decoded: u64 = self.decoders.iter().map(TopicDecoder::mistyped).sum();
        let undecodable = self.lines_before.1;
        summary.counts.mistyped = decoded + since(&self.mistyped, &self.lines_before.0).sum::<u64>();
        summary.counts.undecodable += self.undecodable - undecodable;
        summary.counts.received += self.undecodable - undecodable;
        let end = self.end(shared);
        self.see_robustness(&mut summary.properties);
        for (property, statistics) in (0..).zip(&mut summary.properties) {
            statistics.see_blind(&self.monitor, property);
        }
        for (statistics, waiting) in summary.properties.iter_mut().zip(self.monitor.waiting()) {
            statistics.end(end, waiting, &self.monitor);
        }
        for (property, messages) in unchecked(&self.monitor, Some(&self.specification.spec)) {
            // The parts watched for explanations are not among them.
            if let Some(statistics) = summary.properties.get_mut(property as usize) {
                statistics.unchecked += messages;
            }
        }
        summary.backwards = self.backwards.count;
        summary.unexercised = self.monitor.unexercised().collect();
        summary.omissions = omissions(&self.monitor, &self.specification.spec);
        for topic in summary.topics.iter().filter(|topic| topic.gaps > 0) {
            let messages = counted(topic.gaps, "message is", "messages are");
            let sentence = format!("{}: {messages} missing, by the numbers of publishers", topic.name);
            summary.omissions.push(sentence);
        }
        for topic in summary.topics.iter().filter(|topic| topic.repeats > 0) {
            let messages = counted(topic.repeats, "message came", "messages came");
            let sentence =
                format!("{}: {messages} twice, by the numbers of publishers; both are checked", topic.name);
            summary.omissions.push(sentence);
        }
        summary.chains =
            ChainStatistics::all(&self.monitor, &self.specification.spec, &self.evaluated.properties);
    }
}

/// The rows from this one on.
fn rows_from(row: usize) -> Rows {
    Rows::MAX.checked_shl(row as u32).unwrap_or(0)
}
