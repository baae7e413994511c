//! The times of messages, and the passing of time.

use rondel_event::{Timestamp, TopicId};
use rondel_spec::TimeModel;

use super::Direct;
use crate::ordering::limits::{Clocks, Limits};
use crate::session::reading::reader::MessageReader;
use crate::session::{SessionPlan, Shared};
use crate::specification::input::TimeSource;
use crate::time::clock::{NO_TIME, Ticks};

/// The use that properties make of the times of messages, and the limits of these times.
pub(super) struct Timing {
    /// Whether a property reads the time of arrival.
    pub(super) reads_arrivals: bool,
    /// Whether the time of some message was that of its arrival.
    pub(super) is_by_arrival: bool,
    /// Whether some topic carries its time in a field.
    pub(super) reads_fields: bool,
    /// Whether the time of some topic is not that of its arrival, so that several messages may have one time.
    pub(super) has_own_times: bool,
    /// Whether a property measures time.
    pub(super) is_measured: bool,
    /// The topics of lines that should carry a time and have not carried one yet.
    pub(super) unstamped: Vec<TopicId>,
    /// Limits of message times.
    pub(super) limits: Limits,
    /// Limits of message times in lines.
    pub(super) line_limits: Limits,
}

impl Timing {
    pub(super) fn new(plan: &SessionPlan, reader: &MessageReader) -> Timing {
        let SessionPlan { specification, options, .. } = plan;
        let spec = &specification.spec;
        let is_measured = spec.properties.iter().any(|property| property.time != TimeModel::Steps);
        let needs_time = |topic: &TopicId| is_measured || reader.has_time_field(*topic);
        let limited = options.alignment.limited;
        let limits = |is_live| Limits::new(&options.alignment, is_live);
        Timing {
            reads_arrivals: specification.program.reads_arrivals(),
            is_by_arrival: reader.is_any_by_arrival(),
            reads_fields: reader.has_any_time_field(),
            has_own_times: reader.inputs.iter().any(|input| input.time != TimeSource::Arrival),
            is_measured,
            unstamped: (0..spec.topics.len() as u32).map(TopicId).filter(needs_time).collect(),
            // Without properties that measure time, no time matters.
            limits: limits(true).only_if(options.live && is_measured || limited),
            line_limits: limits(false).only_if(limited),
        }
    }
}

/// Time after a message for which no time is between it and a further one of the same time, in nanoseconds.
const TOGETHER: Ticks = 1_000_000;

/// Maximum number of deadlines evaluated in one call.
const ROUNDS: u32 = 1000;

impl Direct {
    #[inline(always)]
    pub(super) fn stamped(&mut self, time: Timestamp, topic: TopicId, shared: &mut Shared) {
        self.time = time;
        if self.timing.reads_fields {
            shared.topics[topic.index()].stamped = true;
        }
    }

    /// Reads the clock, and decides whether a message of this time is accepted: once for each block, and for
    /// every time that may be too far away.
    #[cold]
    pub(super) fn is_accepted(
        &mut self,
        row: usize,
        time: Timestamp,
        topic: TopicId,
        shared: &mut Shared,
    ) -> bool {
        // A time of zero was never set, unless the time of the system begins at zero.
        let is_unset = time == Timestamp::ZERO;
        if !is_unset || self.timing.limits.have_time() {
            let day = shared.clock.latest();
            let accepted = shared.counts.checked - 1;
            let shown = self.timing.limits.shown_at(day.unwrap_or(NO_TIME));
            let clocks = Clocks { shown, day, accepted };
            match self.timing.limits.check(time, clocks) {
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
    pub(super) fn refused(&mut self, topic: TopicId, shared: &mut Shared) {
        if shared.heartbeat.withholds {
            self.flush(shared);
            let (latest, shown) = self.times(shared);
            self.unseen(&[topic], latest.max(shown), shared);
        }
    }

    /// Sets the time of an event without one to that of the previous event.
    #[cold]
    pub(super) fn unstamped(&mut self, row: usize, topic: TopicId, shared: &mut Shared) {
        self.block.set_time(row, self.time);
        shared.unstamped(topic, self.time);
    }

    /// The time of the last message, and what the clock shows.
    pub(in crate::session) fn times(&self, shared: &Shared) -> (Timestamp, Timestamp) {
        let own = self.clock.as_ref().and_then(|clock| clock.at(shared.clock.ticks()));
        (self.time, own.unwrap_or(self.time))
    }

    pub(in crate::session) fn is_timed(&self) -> bool {
        self.clock.is_some()
    }

    /// Whether the arrival times of messages matter.
    pub(in crate::session) fn needs_time(&self) -> bool {
        self.clock.is_some() || self.timing.reads_arrivals
    }

    pub(in crate::session) fn due(&self) -> Option<Ticks> {
        let clock = self.clock.as_ref()?;
        let deadline = self
            .deadline()
            .and_then(|deadline| Some(clock.ticks(deadline)?.saturating_add(self.grace(deadline))));
        deadline.into_iter().chain(self.gaps.returning.as_ref().map(|returning| returning.due)).min()
    }

    /// Ticks for which a deadline waits: a change just after the last message waits for further ones of its time, which
    /// would otherwise count a nanosecond later if this thread ran between them.
    fn grace(&self, deadline: Timestamp) -> Ticks {
        let is_just_after = deadline.as_nanos() <= self.time.as_nanos().saturating_add(1);
        if is_just_after && self.timing.has_own_times { TOGETHER } else { 0 }
    }

    pub(in crate::session) fn poll(&mut self, shared: &mut Shared) -> Option<Ticks> {
        self.flush(shared);
        if self.has_failed() {
            return None;
        }
        let now = shared.clock.ticks();
        if let Some(missed) = shared.beat(now, None)
            && shared.heartbeat.is_measured
        {
            self.pause(&missed, shared);
        }
        if self.gaps.returning.is_some() {
            self.return_by(now);
        }
        for _ in 0..ROUNDS {
            let due = self.due()?;
            if due > now {
                return Some(due);
            }
            let deadline = self.deadline()?;
            // Only to the deadline, so that an event on its way is not before the monitor's time.
            self.pass(deadline, shared);
            if self.deadline().is_some_and(|next| next <= deadline) {
                return Some(now);
            }
        }
        // The rest is for the next call: in between, reports are taken, and the run may end.
        Some(now)
    }

    pub(in crate::session) fn advance(&mut self, time: Timestamp, shared: &mut Shared) {
        self.flush(shared);
        self.pass(time, shared);
    }
}
