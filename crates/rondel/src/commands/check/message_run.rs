//! The course of a check of recorded messages: its session, sequence numbers, and when the recorder was cut off.

use std::collections::BTreeSet;
use std::sync::Arc;

use indicatif::ProgressBar;
use rondel_event::{NameId, Origin, Timestamp, TopicId, TypeIndex};
use rondel_recording::{CutOff, End, RecordedMessage, RecordedTopic, RecordingError};
use rondel_runtime::{ManualClock, Reason, Session, SessionPlan, Stamp};

use super::checking::{Notices, Stopped};
use super::kept::Kept;
use super::reading::Reading;
use crate::output::VerdictWriter;
use crate::output::time_text::TimeText;

/// State of a check of one recording of messages.
pub(super) struct MessageRun {
    pub(super) session: Session,
    /// The clock that the session reads: the time of recording.
    pub(super) clock: Arc<ManualClock>,
    /// For each recorded topic its route, if it is read.
    pub(super) routes: Vec<Option<Route>>,
    pub(super) cut_offs: CutOffTimes,
    /// Whether event times are those of publishing.
    pub(super) publish: bool,
    pub(super) is_aligned: bool,
    pub(super) writer: VerdictWriter,
    pub(super) reported: Notices,
    /// Text to print, whose memory is reused.
    pub(super) text: Vec<u8>,
    pub(super) bar: Option<ProgressBar>,
    /// Number of messages pushed.
    pub(super) count: u64,
    /// Topic of the last message and the offset in it, if it has the first value of another type on this topic.
    pub(super) mistyped: Option<(TopicId, Option<usize>)>,
    pub(super) outcome: Result<(), Stopped>,
}

impl MessageRun {
    /// Pushes a recorded message. Returns whether it is on a topic that is read.
    #[inline]
    pub(super) fn push(&mut self, message: RecordedMessage<'_>) -> bool {
        let RecordedMessage { topic, log_time, publish_time, is_timed, sequence, payload } = message;
        let Some(route) = &mut self.routes[topic] else { return false };
        if route.may_lack_times {
            self.session.note_own_time(route.target, log_time, is_timed);
        }
        let counts = route.numbers.see(sequence);
        let origin = Origin { publisher: topic as u64, number: sequence.into() };
        let stamp = Stamp {
            source: Some(if self.publish { publish_time } else { log_time }),
            arrival: Some(log_time),
            origin: counts.then_some(origin),
            ..Stamp::default()
        };
        self.cut_offs.pass(log_time, &self.clock, &mut self.session);
        self.clock.set(log_time);
        let (target, session) = (route.target, &mut self.session);
        let may_be_first = route.is_text && session.first_mistyped(target).is_none();
        route.push(session, stamp, payload);
        if may_be_first {
            self.mistyped = session.first_mistyped(target).map(|first| (target, first.offset));
        }
        self.count += 1;
        true
    }

    /// Pushes the messages before the first one that publishers keep for later subscribers.
    pub(super) fn push_kept(&mut self, first: Timestamp, kept: &Result<Vec<Kept>, RecordingError>) {
        self.clock.set(first);
        self.session.begins_at(first);
        let stamp = Stamp { source: Some(first), arrival: Some(first), ..Stamp::default() };
        for Kept { topic, payload } in kept.as_deref().unwrap_or_default() {
            if let Some(route) = &self.routes[*topic] {
                route.push(&mut self.session, stamp, payload);
            }
        }
        if let Err(error) = kept {
            let detail = format!("before {}: {error}", TimeText::default().text(first));
            self.session.missing(Reason::Skipped, 1, &detail);
        }
    }

    /// Applies the periods without a connection that begin or end before this time.
    pub(super) fn pass_cut_offs(&mut self, time: Timestamp) {
        self.cut_offs.pass(time, &self.clock, &mut self.session);
    }

    /// Notes the messages that are missing according to the recorder.
    pub(super) fn note_missing(&mut self, recorded: &End) {
        let &End { lost, refused, unwritten, unread, .. } = recorded;
        self.session.missing(Reason::Lost, lost, "on the way to the recorder");
        self.session.missing(Reason::Dropped, refused.saturating_add(unwritten), "by the recorder");
        let unreadable = "topics or publishers that the recorder could not read";
        self.session.missing(Reason::OtherType, unread, unreadable);
    }

    /// The topics of the specification that these recorded topics belong to.
    pub(super) fn targets(&self, recorded: &[usize]) -> Vec<TopicId> {
        let routes = recorded.iter().filter_map(|topic| self.routes[*topic].as_ref());
        let targets: BTreeSet<TopicId> = routes.map(|route| route.target).collect();
        targets.into_iter().collect()
    }
}

/// Route of the messages of a recorded topic to a topic of the specification.
pub(super) struct Route {
    target: TopicId,
    /// The type among those of the target.
    of_type: TypeIndex,
    /// The number of the name, if the address has parameters.
    name: Option<NameId>,
    /// Whether the messages may lack a time, which no field of theirs has.
    may_lack_times: bool,
    /// Whether the messages are in a file of text.
    is_text: bool,
    numbers: Numbers,
    /// The reason why the messages cannot be decoded, if they cannot.
    undecodable: Option<String>,
}

impl Route {
    /// The routes of all recorded topics; `None` for those that are not read.
    pub(super) fn all(
        plan: &SessionPlan,
        recorded: &[RecordedTopic],
        reading: Reading,
    ) -> Vec<Option<Route>> {
        let Reading { topics, of_types, mut undecodable } = reading;
        let route = |(i, topic): (usize, &RecordedTopic)| {
            let target = topics[i]?;
            let lacks_field = plan.input(target).is_some_and(|input| input.time.field().is_none());
            Some(Route {
                target,
                of_type: of_types[i],
                name: plan.names(target).and_then(|names| names.number(&topic.name)),
                may_lack_times: topic.may_lack_times && lacks_field,
                is_text: topic.may_lack_times,
                numbers: Numbers::default(),
                undecodable: undecodable.remove(&i),
            })
        };
        recorded.iter().enumerate().map(route).collect()
    }

    /// Pushes a message into the session, which counts undecodable ones.
    #[inline]
    fn push(&self, session: &mut Session, stamp: Stamp, payload: &[u8]) {
        let stamp = Stamp { name: self.name, of_type: self.of_type, ..stamp };
        match &self.undecodable {
            Some(reason) => session.push_undecodable(self.target, stamp, reason),
            None => drop(session.push(self.target, stamp, payload)),
        }
    }
}

/// The sequence numbers of a recorded topic: they count if the second follows the first, until one goes back.
#[derive(Clone, Copy, Debug, Default)]
enum Numbers {
    #[default]
    None,
    First(u32),
    After(u32),
    Unused,
}

impl Numbers {
    /// The number of the message, if it counts.
    #[inline]
    fn see(&mut self, number: u32) -> bool {
        let (next, counts) = match *self {
            Numbers::None => (Numbers::First(number), true),
            Numbers::First(before) if before.checked_add(1) == Some(number) => (Numbers::After(number), true),
            Numbers::After(before) if number > before => (Numbers::After(number), true),
            _ => (Numbers::Unused, false),
        };
        *self = next;
        counts
    }
}

/// Periods in which the recorder was cut off from a network, in the order of reading.
pub(super) struct CutOffTimes {
    /// Begin and end of each period, by the clock of the recorder: time of this change, begin, end (known only at the
    /// end), and topics.
    changes: Vec<(Timestamp, Timestamp, Option<Timestamp>, Vec<TopicId>)>,
    next: usize,
    /// Reason why nothing was received.
    reason: &'static str,
}

impl CutOffTimes {
    pub(super) fn new(recorded: &End, all: &[RecordedTopic], targets: &[Option<TopicId>]) -> CutOffTimes {
        let mut changes = Vec::new();
        for CutOff { from, until, topics } in recorded.cut_offs.all() {
            let is_meant = |topic: &RecordedTopic| topics.is_empty() || topics.contains(&topic.name);
            let meant = all.iter().zip(targets).filter(|(topic, _)| is_meant(topic));
            let mut missed: Vec<TopicId> = meant.filter_map(|(_, target)| *target).collect();
            missed.sort_unstable();
            missed.dedup();
            if !missed.is_empty() {
                changes.push((*from, *from, None, missed.clone()));
                changes.extend(until.map(|until| (until, *from, Some(until), missed)));
            }
        }
        changes.sort_by_key(|(at, ..)| *at);
        let reason = match recorded.dropped_out {
            true => "dropout: the logger could not write",
            false => "cut off from the network",
        };
        CutOffTimes { changes, next: 0, reason }
    }

    /// Applies the periods that begin or end before a message of this time, as a live run does.
    #[inline]
    fn pass(&mut self, time: Timestamp, clock: &ManualClock, session: &mut Session) {
        while let Some((at, from, until, topics)) = self.changes.get(self.next)
            && *at <= time
        {
            clock.set(*at);
            // Earlier messages precede the gap.
            session.note_count();
            session.not_received(topics, (*from, *until), self.reason);
            self.next += 1;
        }
    }
}
