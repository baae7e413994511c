//! The intake of messages that wait: decoding, times and the alignment's clock, the same whether they are
//! evaluated afterwards or handed back.

use std::sync::Arc;

use rondel_decode::DecodeError;
use rondel_decode::lines::{LineError, Lines, Source};
use rondel_event::{Block, Layout, Origin, Projection, Timestamp, TopicId};

use super::decoders::TopicDecoder;
use super::defaults::LineDefaults;
use super::laps::{Came, Held, since};
use super::pause::{GRACE, Missed};
use super::{SessionPlan, Shared, Stamp};
use crate::alignment::Alignment;
use crate::arrival;
use crate::clock::{Clock, NO_TIME, Ticks, WaitClock};
use crate::limits::{Clocks, Limits, Refused};
use crate::names::NamedTopics;
use crate::options::{Input, TimeSource};
use crate::progress::Progress;
use crate::saved::{StartError, Waiting};
use crate::text::counted;

/// The decoders and the clock of an alignment, also of a synchronizer.
pub(super) struct Intake {
    decoders: Vec<TopicDecoder>,
    line_defaults: LineDefaults,
    named: NamedTopics,
    inputs: Vec<Input>,
    pub(super) block: Block,
    pub(super) clock: WaitClock,
    limits: Limits,
    is_live: bool,
    pub(super) progress: Progress,
    /// Whether the session resumed from a snapshot or after a pause whose length no clock has shown yet.
    resumes: bool,
    /// Pause of the session that the alignment has not processed.
    pub(super) missed: Option<Missed>,
    /// Whether the time of some message was that of its arrival.
    pub(super) is_by_arrival: bool,
    /// The latest time of arrival in lines.
    arrived: Option<Timestamp>,
    /// Lines without a time of arrival although waiting is measured by these times.
    unclocked: u64,
    /// The latest time of a message.
    pub(super) latest: Option<Timestamp>,
    /// Values of another type in lines, by topic.
    mistyped: Vec<u64>,
    /// Payloads in lines that could not be decoded.
    undecodable: u64,
    /// Mistyped values and undecodable payloads of the earlier laps.
    lines_before: (Vec<u64>, u64),
}

/// A decoded message: its row in the block of the intake, its event time and the time of the clock.
pub(super) struct Taken {
    pub(super) row: usize,
    pub(super) time: Timestamp,
    pub(super) now: Timestamp,
    /// The time of the clock once the message has set it.
    pub(super) then: Timestamp,
    /// Reason for a refusal.
    pub(super) refused: Option<Refused>,
}

/// The beginning of the year 2001.
const THIS_CENTURY: Timestamp = Timestamp::from_nanos(978_307_200_000_000_000);

/// The clock at the time at which a recorded message arrived.
struct RecordedClock {
    arrival: Option<Timestamp>,
    /// The latest time of arrival up to this message.
    pub(super) latest: Option<Timestamp>,
}

impl Clock for RecordedClock {
    fn now(&self) -> Timestamp {
        self.arrival.unwrap_or(Timestamp::ZERO)
    }

    fn ticks(&self) -> Ticks {
        self.latest.unwrap_or(Timestamp::ZERO).as_nanos()
    }
}

impl Intake {
    pub(super) fn new(
        plan: &SessionPlan,
        projections: &[Projection],
        layout: Layout,
        waiting: &Waiting,
        resumes: bool,
    ) -> Result<Intake, StartError> {
        let inputs = plan.options.inputs.clone();
        let Alignment { clock, .. } = plan.options.alignment;
        let names = plan.specification.spec.topics.iter().map(|topic| topic.name.clone());
        let units = inputs.iter().map(|input| input.time_unit);
        Ok(Intake {
            decoders: plan.decoders(projections)?,
            line_defaults: plan.line_defaults(projections),
            named: plan.named_topics(projections),
            block: Block::new(layout),
            clock: WaitClock::new(clock).after(waiting.clock),
            limits: Limits::new(&plan.options.alignment, plan.options.live).after(waiting.clock),
            is_live: plan.options.live,
            progress: Progress::new(names.zip(units).collect()).after(waiting),
            resumes,
            missed: None,
            is_by_arrival: inputs.iter().any(|input| input.time == TimeSource::Arrival),
            arrived: None,
            unclocked: 0,
            latest: None,
            mistyped: Vec::new(),
            undecodable: 0,
            lines_before: (Vec::new(), 0),
            inputs,
        })
    }

    /// Decodes a message into the block, which is emptied when it is full. `None` if the message has to wait until it is
    /// known whether a new lap has begun.
    pub(super) fn take(
        &mut self,
        topic: TopicId,
        stamp: &Stamp,
        payload: &[u8],
        reads_arrivals: bool,
        shared: &mut Shared,
    ) -> Result<Option<Taken>, DecodeError> {
        if self.block.is_full() {
            shared.see(&self.block);
            self.block.clear();
        }
        let needs_arrival = self.decoders[topic.index()].begin(stamp);
        let given = match self.inputs[topic.index()].time {
            TimeSource::Source => stamp.source.unwrap_or_else(|| {
                self.is_by_arrival = true;
                stamp.arrival(&*shared.clock)
            }),
            TimeSource::Arrival => stamp.arrival(&*shared.clock),
            TimeSource::Field(_) if needs_arrival => stamp.arrival(&*shared.clock),
            TimeSource::Field(_) => NO_TIME,
        };
        self.decoders[topic.index()].decode(stamp, payload, given, &mut self.block)?;
        let row = self.block.len() - 1;
        self.named.write(topic.index(), stamp.name, &mut self.block, row);
        if reads_arrivals {
            let is_arrival = self.inputs[topic.index()].time == TimeSource::Arrival;
            let arrival = if is_arrival { given } else { stamp.arrival(&*shared.clock) };
            self.block.set_arrival(row, arrival);
        }
        if self.is_own(topic, stamp.source) && shared.laps.must_wait(topic, self.block.time(row)) {
            self.hold(row, (topic, stamp), false, shared);
            return Ok(None);
        }
        let clock = Arc::clone(&shared.clock);
        Ok(Some(self.stamp(topic, row, stamp, (&*clock, true, self.is_live), shared)))
    }

    /// Whether a message carries a time of its own, given the time at which it was sent. Arrival times do not start
    /// over with the messages.
    fn is_own(&self, topic: TopicId, sent: Option<Timestamp>) -> bool {
        match self.inputs[topic.index()].time {
            TimeSource::Arrival => false,
            TimeSource::Source => sent.is_some(),
            TimeSource::Field(_) => true,
        }
    }

    /// Lets the message in a row wait, until it is known whether a new lap has begun. The last row is removed.
    #[cold]
    fn hold(&mut self, row: usize, (topic, stamp): (TopicId, &Stamp), is_line: bool, shared: &mut Shared) {
        let mut block = self.block.clone();
        block.keep(1 << row);
        if !is_line {
            self.block.pop();
        }
        let came = Came::at(&*shared.clock);
        shared.laps.hold(Held { topic, block, stamp: *stamp, is_line, came });
    }

    /// Takes a message that has waited, alone in the block.
    pub(super) fn resume(&mut self, held: &Held, shared: &mut Shared) -> Taken {
        let Held { topic, block, stamp, is_line, came } = held;
        shared.see(&self.block);
        self.block.clone_from(block);
        if *is_line {
            return self.line_stamp(*topic, 0, shared);
        }
        self.stamp(*topic, 0, stamp, (came, true, self.is_live), shared)
    }

    /// Continues the line counts of another intake.
    pub(super) fn continue_lines(&mut self, before: &Intake) {
        self.lines_before = (before.mistyped.clone(), before.undecodable);
        (self.mistyped, self.undecodable) = self.lines_before.clone();
    }

    /// Stops the clock after a pause of the session, so that waiting messages come before time advances; also after a
    /// step of the day's clock that messages wait by.
    #[cold]
    pub(super) fn pause(&mut self, missed: &Missed, clock: &dyn Clock) {
        if missed.ticks.is_none() && !self.is_by_arrival && !self.clock.shows_day() {
            return;
        }
        let now = clock.ticks();
        self.wait(clock, missed.ticks.unwrap_or((now, now)), missed.from);
        if self.is_by_arrival
            && let Some(repeats) = missed.repeats()
        {
            self.clock.stand(clock, (now, now), (missed.from, repeats));
        } else if self.is_by_arrival && missed.ticks.is_none() {
            // The next message sets the clock to this time, and no topic was silent until then.
            self.clock.see(missed.until, clock, now);
        }
        self.resumes = true;
        self.missed = Some(*missed);
    }

    /// Stops the clock after a span, between these ticks, in which no message was taken. `began` is the time of day at
    /// its beginning.
    pub(super) fn wait(&mut self, clock: &dyn Clock, ticks: (Ticks, Ticks), began: Timestamp) {
        // Messages that waited have later times where these are of their arrival.
        if !self.is_by_arrival {
            self.clock.stand(clock, ticks, (began, GRACE));
        }
    }

    /// Restarts a stopped clock: it advances to the messages that came meanwhile, and no topic counts as silent for
    /// that span.
    #[inline]
    fn release(&mut self, ticks: Ticks) {
        if self.clock.release(ticks) {
            self.resumes = true;
        }
    }

    /// Time of the clock; after a pause of the session, the clock is stopped first.
    pub(super) fn shown(&mut self, shared: &mut Shared) -> Timestamp {
        let ticks = shared.clock.ticks();
        if let Some(missed) = self.beat(ticks, NO_TIME, shared) {
            self.pause(&missed, &*shared.clock);
        }
        self.release(ticks);
        self.clock.at(&*shared.clock, ticks)
    }

    /// Heartbeat of the session, with the time of a message.
    #[inline]
    fn beat(&self, ticks: Ticks, given: Timestamp, shared: &mut Shared) -> Option<Missed> {
        if shared.heartbeat.is_on() && self.clock.shows_day() {
            return shared.look(ticks);
        }
        shared.beat(ticks, Some(given).filter(|given| self.is_by_arrival && *given != NO_TIME))
    }

    /// Time of the message in a row, and of the clock.
    fn stamp(
        &mut self,
        topic: TopicId,
        row: usize,
        stamp: &Stamp,
        (clock, knows_arrival, shows_day): (&dyn Clock, bool, bool),
        shared: &mut Shared,
    ) -> Taken {
        let ticks = clock.ticks();
        let given = self.block.time(row);
        if let Some(missed) = self.beat(ticks, given, shared) {
            self.pause(&missed, clock);
        }
        self.release(ticks);
        let shown = self.clock.at(clock, ticks);
        let (mut time, mut is_known) = (given, true);
        if self.inputs[topic.index()].time.field().is_some() {
            // A stamp of zero was never set, unless the time of the system begins at zero.
            let begins_at_zero = shown.as_nanos() <= 86_400_000_000_000;
            if given == NO_TIME || given == Timestamp::ZERO && !begins_at_zero {
                time = if shown == NO_TIME { stamp.arrival(clock) } else { shown };
                is_known = shown != NO_TIME || knows_arrival;
                self.block.set_time(row, time);
                shared.unstamped(topic, time);
            } else {
                shared.topics[topic.index()].stamped = true;
            }
        }
        let mut refused = None;
        if is_known && !self.limits.admit(time) {
            let day = shows_day.then(|| clock.latest()).flatten();
            refused = self.limits.check(time, Clocks { shown, day, accepted: shared.counts.checked });
        }
        if let Some(refused) = refused {
            shared.refuse(topic, time, refused);
            if shown != NO_TIME {
                // The unknown time must not be used as a message time elsewhere.
                self.block.set_time(row, shown);
            }
            return Taken { row, time, now: shown, then: shown, refused: Some(refused) };
        }
        // The clock is set by the first message with a time.
        let now = self.clock.shown_or(shown, time);
        let mut then = now;
        if is_known {
            if self.clock.see(time, clock, ticks) {
                then = now.max(time);
            }
            self.latest = self.latest.max(Some(time));
            if self.is_own(topic, stamp.source) {
                shared.laps.see(topic, time);
            }
        }
        Taken { row, time, now, then, refused }
    }

    /// Reads the clock again for the limits of times.
    pub(super) fn renew(&mut self) {
        self.limits.renew();
    }

    /// Whether the clock shows a time for the first time since the session continues from a snapshot or after a pause.
    pub(super) fn resumes(&mut self, now: Timestamp) -> bool {
        self.resumes && now != NO_TIME && !self.clock.stands_at(now) && std::mem::take(&mut self.resumes)
    }

    /// Decodes lines into the block, which is emptied first.
    pub(super) fn take_lines(&mut self, lines: &mut Lines, source: Source<'_>) -> Result<usize, LineError> {
        self.block.clear();
        let decoded = lines.take(source, &mut self.block);
        self.line_defaults.fill(&mut self.block, 0);
        if self.mistyped != lines.mistyped() {
            self.mistyped = lines.mistyped().to_vec();
        }
        self.undecodable = lines.undecodable();
        let mut rows = lines.take_untimed();
        while rows != 0 {
            let row = rows.trailing_zeros() as usize;
            rows &= rows - 1;
            let topic = self.block.topic(row);
            if topic.is_some_and(|topic| self.inputs[topic.index()].time.field().is_some()) {
                self.block.set_time(row, NO_TIME);
            }
        }
        decoded
    }

    /// The topic and the times of a decoded line; `None` if it has to wait.
    pub(super) fn line(
        &mut self,
        row: usize,
        origin: Option<Origin>,
        shared: &mut Shared,
    ) -> Option<(TopicId, Taken)> {
        let topic = self.block.topic(row)?;
        // A line always has one.
        let sent = Some(self.block.time(row));
        if self.is_own(topic, sent) && shared.laps.must_wait(topic, self.block.time(row)) {
            let stamp = Stamp { origin, ..Stamp::default() };
            self.hold(row, (topic, &stamp), true, shared);
            return None;
        }
        Some((topic, self.line_stamp(topic, row, shared)))
    }

    /// The times of the line in a row.
    fn line_stamp(&mut self, topic: TopicId, row: usize, shared: &mut Shared) -> Taken {
        let arrival = self.block.arrival(row);
        // Without times of arrival, the event times drive the clock.
        match (arrival, self.arrived) {
            (None, _) => self.unclocked += u64::from(self.clock.follow_messages()),
            (Some(first), None) => self.clock.start_ticks(first.as_nanos()),
            (Some(_), Some(_)) => {}
        }
        self.arrived = self.arrived.max(arrival);
        let clock = RecordedClock { arrival, latest: self.arrived };
        let stamp = Stamp { source: Some(self.block.time(row)), arrival, ..Stamp::default() };
        // Times of arrival may count from anything; those of this century are times of day.
        let shows_day = arrival.is_some_and(|arrival| arrival > THIS_CENTURY);
        self.stamp(topic, row, &stamp, (&clock, arrival.is_some(), shows_day), shared)
    }

    /// Makes the arrival of a message unknown to properties if its time says no more.
    pub(super) fn forget_own_arrival(&mut self, row: usize) {
        arrival::forget_own(&mut self.block, row..row + 1, &self.inputs);
    }

    /// Sentence about what the recording lacks for the settings of the alignment.
    pub(super) fn omission(&self) -> Option<String> {
        let messages = counted(self.unclocked, "message has", "messages have");
        (self.unclocked > 0).then(|| {
            format!(
                "{messages} no time of arrival, which `clock: system` needs: waiting is measured by the times of the \
                 messages instead"
            )
        })
    }

    /// The decoder of each topic.
    pub(super) fn decoders(&self) -> &[TopicDecoder] {
        &self.decoders
    }

    /// The decoder of each topic.
    pub(super) fn decoders_mut(&mut self) -> &mut [TopicDecoder] {
        &mut self.decoders
    }

    /// Values of another type in lines of this lap, by topic.
    pub(super) fn mistyped_lines(&self) -> impl Iterator<Item = u64> + '_ {
        since(&self.mistyped, &self.lines_before.0)
    }

    /// Payloads in lines of this lap that could not be decoded.
    pub(super) fn undecodable(&self) -> u64 {
        self.undecodable - self.lines_before.1
    }

    pub(super) fn mistyped(&self) -> u64 {
        self.mistyped_lines().sum::<u64>() + self.decoders.iter().map(TopicDecoder::mistyped).sum::<u64>()
    }

    pub(super) fn inputs(&self) -> &[Input] {
        &self.inputs
    }

    /// The state of the intake for a snapshot.
    pub(super) fn saved(&self, clock: &dyn Clock) -> Waiting {
        Waiting {
            clock: self.clock.saved(clock),
            unread: self.progress.unread,
            publishers: self.progress.saved(),
            numbered: 0,
        }
    }
}
