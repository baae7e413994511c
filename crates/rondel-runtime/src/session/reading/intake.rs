//! The intake of messages that wait: decoding, times and the alignment's clock, the same whether they are
//! evaluated afterwards or handed back.

use std::sync::Arc;

use rondel_decode::DecodeError;
use rondel_decode::lines::{LineError, Lines, Source};
use rondel_event::{Block, Layout, Origin, Projection, Timestamp, TopicId};

use super::decoders::TopicDecoder;
use super::line_counts::LineCounts;
use super::reader::MessageReader;
use crate::ordering::alignment::Alignment;
use crate::ordering::limits::{Clocks, Limits, Refused};
use crate::ordering::progress::Progress;
use crate::ordering::progress::Waiting;
use crate::session::gaps::pause::Missed;
use crate::session::snapshot::saved::StartError;
use crate::session::time::laps::{Came, Held};
use crate::session::{SessionPlan, Shared, Stamp};
use crate::specification::input::{Input, TimeSource};
use crate::text::counted;
use crate::time::GRACE;
use crate::time::arrival;
use crate::time::clock::{Clock, NO_TIME, Ticks, WaitClock};

/// The decoders and the clock of an alignment, also of a synchronizer.
pub(in crate::session) struct Intake {
    reader: MessageReader,
    pub(in crate::session) block: Block,
    pub(in crate::session) clock: WaitClock,
    limits: Limits,
    is_live: bool,
    pub(in crate::session) progress: Progress,
    /// Whether the session resumed from a snapshot or after a pause whose length no clock has shown yet.
    resumes: bool,
    /// Pause of the session that the alignment has not processed.
    pub(in crate::session) missed: Option<Missed>,
    /// Whether the time of some message was that of its arrival.
    pub(in crate::session) is_by_arrival: bool,
    /// The latest time of arrival in lines.
    arrived: Option<Timestamp>,
    /// Lines without a time of arrival although waiting is measured by these times.
    unclocked: u64,
    /// The latest time of a message.
    pub(in crate::session) latest: Option<Timestamp>,
    line_counts: LineCounts,
}

/// A decoded message: its row in the block of the intake, its event time and the time of the clock.
pub(in crate::session) struct Taken {
    pub(in crate::session) row: usize,
    pub(in crate::session) time: Timestamp,
    pub(in crate::session) now: Timestamp,
    /// The time of the clock once the message has set it.
    pub(in crate::session) then: Timestamp,
    /// Reason for a refusal.
    pub(in crate::session) refused: Option<Refused>,
}

/// The clock when a message arrived.
#[derive(Clone, Copy)]
struct ArrivalClock<'c> {
    clock: &'c dyn Clock,
    /// Whether the time of arrival is known.
    knows_arrival: bool,
    /// Whether the clock shows times of day.
    shows_day: bool,
}

/// The beginning of the year 2001.
const THIS_CENTURY: Timestamp = Timestamp::from_nanos(978_307_200_000_000_000);

/// The clock at the time at which a recorded message arrived.
struct RecordedClock {
    arrival: Option<Timestamp>,
    /// The latest time of arrival up to this message.
    pub(in crate::session) latest: Option<Timestamp>,
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
    pub(in crate::session) fn new(
        plan: &SessionPlan,
        projections: &[Projection],
        layout: Layout,
        waiting: &Waiting,
        resumes: bool,
    ) -> Result<Intake, StartError> {
        let reader = MessageReader::new(plan, projections)?;
        let Alignment { clock, .. } = plan.options.alignment;
        let names = plan.specification.spec.topics.iter().map(|topic| topic.name.clone());
        let units = reader.inputs.iter().map(|input| input.time_unit);
        Ok(Intake {
            block: Block::new(layout),
            clock: WaitClock::new(clock).after(waiting.clock),
            limits: Limits::new(&plan.options.alignment, plan.options.live).after(waiting.clock),
            is_live: plan.options.live,
            progress: Progress::new(names.zip(units).collect()).after(waiting),
            resumes,
            missed: None,
            is_by_arrival: reader.is_any_by_arrival(),
            arrived: None,
            unclocked: 0,
            latest: None,
            line_counts: LineCounts::default(),
            reader,
        })
    }

    /// Decodes a message into the block, which is emptied when it is full. `None` if the message has to wait until it is
    /// known whether a new lap has begun.
    pub(in crate::session) fn take(
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
        let needs_arrival = self.reader.decoders[topic.index()].begin(stamp);
        let given = match self.reader.inputs[topic.index()].time {
            TimeSource::Source => stamp.source.unwrap_or_else(|| {
                self.is_by_arrival = true;
                stamp.arrival(&*shared.clock)
            }),
            TimeSource::Arrival => stamp.arrival(&*shared.clock),
            TimeSource::Field(_) if needs_arrival => stamp.arrival(&*shared.clock),
            TimeSource::Field(_) => NO_TIME,
        };
        self.reader.decoders[topic.index()].decode(stamp, payload, given, &mut self.block)?;
        let row = self.block.len() - 1;
        self.reader.named.write(topic.index(), stamp.name, &mut self.block, row);
        if reads_arrivals {
            let is_arrival = self.reader.inputs[topic.index()].time == TimeSource::Arrival;
            let arrival = if is_arrival { given } else { stamp.arrival(&*shared.clock) };
            self.block.set_arrival(row, arrival);
        }
        if self.is_own(topic, stamp.source) && shared.laps.must_wait(topic, self.block.time(row)) {
            self.hold(row, topic, stamp, false, shared);
            return Ok(None);
        }
        let clock = Arc::clone(&shared.clock);
        let at = ArrivalClock { clock: &*clock, knows_arrival: true, shows_day: self.is_live };
        Ok(Some(self.stamp(topic, row, stamp, at, shared)))
    }

    /// Whether a message carries a time of its own, given the time at which it was sent. Arrival times do not start
    /// over with the messages.
    fn is_own(&self, topic: TopicId, sent: Option<Timestamp>) -> bool {
        match self.reader.inputs[topic.index()].time {
            TimeSource::Arrival => false,
            TimeSource::Source => sent.is_some(),
            TimeSource::Field(_) => true,
        }
    }

    /// Lets the message in a row wait, until it is known whether a new lap has begun. The last row is removed.
    #[cold]
    fn hold(&mut self, row: usize, topic: TopicId, stamp: &Stamp, is_line: bool, shared: &mut Shared) {
        let mut block = self.block.clone();
        block.keep(1 << row);
        if !is_line {
            self.block.pop();
        }
        let came = Came::at(&*shared.clock);
        shared.laps.hold(Held { topic, block, stamp: *stamp, is_line, came });
    }

    /// Takes a message that has waited, alone in the block.
    pub(in crate::session) fn resume(&mut self, held: &Held, shared: &mut Shared) -> Taken {
        let Held { topic, block, stamp, is_line, came } = held;
        shared.see(&self.block);
        self.block.clone_from(block);
        if *is_line {
            return self.line_stamp(*topic, 0, shared);
        }
        let at = ArrivalClock { clock: came, knows_arrival: true, shows_day: self.is_live };
        self.stamp(*topic, 0, stamp, at, shared)
    }

    /// Continues the line counts of another intake.
    pub(in crate::session) fn continue_lines(&mut self, before: &Intake) {
        self.line_counts.continue_after(&before.line_counts);
    }

    /// Continues after another intake, without a pause in between.
    pub(in crate::session) fn inherit(&mut self, before: &mut Intake) {
        self.clock = before.clock;
        if self.limits.are_active() && before.limits.are_active() {
            self.limits = before.limits.clone();
        }
        self.resumes = before.resumes;
        self.missed = before.missed.take();
        self.is_by_arrival |= before.is_by_arrival;
        self.arrived = before.arrived;
        self.unclocked = before.unclocked;
        self.latest = before.latest;
    }

    /// Stops the clock after a pause of the session, so that waiting messages come before time advances; also after a
    /// step of the day's clock that messages wait by.
    #[cold]
    pub(in crate::session) fn pause(&mut self, missed: &Missed, clock: &dyn Clock) {
        if missed.ticks.is_none() && !self.is_by_arrival && !self.clock.shows_day() {
            return;
        }
        let now = clock.ticks();
        let (from, until) = missed.ticks.unwrap_or((now, now));
        self.wait(clock, from, until, missed.from);
        if self.is_by_arrival
            && let Some(repeats) = missed.repeats()
        {
            self.clock.stand(clock, now, now, missed.from, repeats);
        } else if self.is_by_arrival && missed.ticks.is_none() {
            // The next message sets the clock to this time, and no topic was silent until then.
            self.clock.see(missed.until, clock, now);
        }
        self.resumes = true;
        self.missed = Some(*missed);
    }

    /// Stops the clock after a span, between these ticks, in which no message was taken. `began` is the time of day at
    /// its beginning.
    pub(in crate::session) fn wait(
        &mut self,
        clock: &dyn Clock,
        from: Ticks,
        until: Ticks,
        began: Timestamp,
    ) {
        // Messages that waited have later times where these are of their arrival.
        if !self.is_by_arrival {
            self.clock.stand(clock, from, until, began, GRACE);
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
    pub(in crate::session) fn shown(&mut self, shared: &mut Shared) -> Timestamp {
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
        at: ArrivalClock<'_>,
        shared: &mut Shared,
    ) -> Taken {
        let ArrivalClock { clock, knows_arrival, shows_day } = at;
        let ticks = clock.ticks();
        let given = self.block.time(row);
        if let Some(missed) = self.beat(ticks, given, shared) {
            self.pause(&missed, clock);
        }
        self.release(ticks);
        let shown = self.clock.at(clock, ticks);
        let (mut time, mut is_known) = (given, true);
        if self.reader.has_time_field(topic) {
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
    pub(in crate::session) fn renew(&mut self) {
        self.limits.renew();
    }

    /// Whether the clock shows a time for the first time since the session continues from a snapshot or after a pause.
    pub(in crate::session) fn resumes(&mut self, now: Timestamp) -> bool {
        self.resumes && now != NO_TIME && !self.clock.stands_at(now) && std::mem::take(&mut self.resumes)
    }

    /// Decodes lines into the block, which is emptied first.
    pub(in crate::session) fn take_lines(
        &mut self,
        lines: &mut Lines,
        source: Source<'_>,
    ) -> Result<usize, LineError> {
        self.block.clear();
        let decoded = lines.take(source, &mut self.block);
        self.reader.line_defaults.fill(&mut self.block, 0);
        self.line_counts.update(lines);
        let mut rows = lines.take_untimed();
        while rows != 0 {
            let row = rows.trailing_zeros() as usize;
            rows &= rows - 1;
            let topic = self.block.topic(row);
            if topic.is_some_and(|topic| self.reader.has_time_field(topic)) {
                self.block.set_time(row, NO_TIME);
            }
        }
        decoded
    }

    /// The topic and the times of a decoded line; `None` if it has to wait.
    pub(in crate::session) fn line(
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
            self.hold(row, topic, &stamp, true, shared);
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
        let at = ArrivalClock { clock: &clock, knows_arrival: arrival.is_some(), shows_day };
        self.stamp(topic, row, &stamp, at, shared)
    }

    /// Makes the arrival of a message unknown to properties if its time says no more.
    pub(in crate::session) fn forget_own_arrival(&mut self, row: usize) {
        arrival::forget_own(&mut self.block, row..row + 1, &self.reader.inputs);
    }

    /// Sentence about what the recording lacks for the settings of the alignment.
    pub(in crate::session) fn omission(&self) -> Option<String> {
        let messages = counted(self.unclocked, "message has", "messages have");
        (self.unclocked > 0).then(|| {
            format!(
                "{messages} no time of arrival, which `clock: system` needs: waiting is measured by the times of the \
                 messages instead"
            )
        })
    }

    /// The decoder of each topic.
    pub(in crate::session) fn decoders(&self) -> &[TopicDecoder] {
        &self.reader.decoders
    }

    /// The decoder of each topic.
    pub(in crate::session) fn decoders_mut(&mut self) -> &mut [TopicDecoder] {
        &mut self.reader.decoders
    }

    /// Values of another type in lines of this lap, by topic.
    pub(in crate::session) fn mistyped_lines(&self) -> impl Iterator<Item = u64> + '_ {
        self.line_counts.mistyped()
    }

    /// Payloads in lines of this lap that could not be decoded.
    pub(in crate::session) fn undecodable(&self) -> u64 {
        self.line_counts.undecodable()
    }

    pub(in crate::session) fn mistyped(&self) -> u64 {
        self.mistyped_lines().sum::<u64>() + self.reader.mistyped()
    }

    pub(in crate::session) fn inputs(&self) -> &[Input] {
        &self.reader.inputs
    }

    /// The state of the intake for a snapshot.
    pub(in crate::session) fn saved(&self, clock: &dyn Clock) -> Waiting {
        Waiting {
            clock: self.clock.saved(clock),
            unread: self.progress.unread,
            publishers: self.progress.saved(),
            numbered: 0,
        }
    }
}
