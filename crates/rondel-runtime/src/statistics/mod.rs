//! Statistics of a session: counts of messages, and the verdicts of each property.

pub(crate) mod account;
pub(crate) mod alignment;
pub(crate) mod chains;
pub(crate) mod criteria;
mod in_violation;
mod limits;
pub(crate) mod missing;
pub(crate) mod omission;
mod pause;
mod property;
mod workers;

use std::collections::BTreeSet;
use std::sync::Arc;

use rondel_engine::Monitor;
use rondel_event::{Block, Rows, Timestamp, TopicId, Verdict};

use account::Account;
use alignment::AlignmentStatistics;
use chains::ChainStatistics;
use missing::{Missing, Needed, Vacuous, VacuousKind};
use omission::{Omission, Omissions, Reason};

pub(crate) use in_violation::EndOf;
pub use in_violation::{Extent, InViolation, LongestViolation};
pub(crate) use limits::{omissions, unchecked};
pub use pause::{Cause, Pause};
pub(crate) use property::SavedStatistics;
pub use property::{FirstViolation, PropertyStatistics};
pub use workers::WorkerStatistics;

/// Statistics of a session from its beginning.
#[derive(Clone, Debug, Default)]
pub struct Summary {
    /// The counts of messages.
    pub counts: Counts,
    /// The verdicts of each property, in the order of the specification.
    pub properties: Vec<PropertyStatistics>,
    /// The messages of each topic, in the order of the specification.
    pub topics: Vec<TopicStatistics>,
    /// Accounts of the messages of each topic; lines of recordings are not included.
    pub accounts: Vec<Account>,
    /// The number of events with an earlier time than the previous event.
    pub backwards: u64,
    /// The times of the first and the last message; of several recordings the earliest and the latest.
    pub span: Option<(Timestamp, Timestamp)>,
    /// End of the evaluated time span of the latest lap or recording: the time of the last message, or later as far as
    /// time alone decides verdicts.
    pub reached: Option<Timestamp>,
    /// The topics and fields that never came.
    pub missing: Missing,
    /// Needs of the properties.
    pub(crate) needed: Arc<Needed>,
    /// Premises that were not certainly true at any time point: the property, and the position among its premises.
    pub(crate) unexercised: BTreeSet<(u32, u32)>,
    /// The messages that were not evaluated, by reason and topic.
    pub not_evaluated: Omissions,
    /// The limits that were reached, as sentences.
    pub omissions: Vec<String>,
    /// The statistics of the chains.
    pub chains: Vec<ChainStatistics>,
    /// The statistics of alignment, if there is one.
    pub alignment: Option<AlignmentStatistics>,
    /// When the session did not run; at most 1,024 pauses.
    pub pauses: Vec<Pause>,
    /// In a recording that continues another: the time of the last event there, and of the first one here.
    pub seam: Option<(Timestamp, Timestamp)>,
}

impl Summary {
    /// Adds the summary of a further recording.
    pub fn merge(&mut self, further: Summary) {
        let Summary {
            counts,
            properties,
            topics,
            accounts,
            backwards,
            missing,
            needed,
            unexercised,
            not_evaluated,
            omissions,
            chains,
            alignment,
            span,
            reached,
            seam,
            ..
        } = further;
        let earlier = self.span.zip(span).map(|(own, further)| (own.0.min(further.0), own.1.max(further.1)));
        self.span = earlier.or(self.span).or(span);
        // A lap may begin at an earlier time.
        self.reached = reached.or(self.reached);
        self.seam = self.seam.or(seam);
        self.counts.received += counts.received;
        self.counts.checked += counts.checked;
        self.counts.undecodable += counts.undecodable;
        self.counts.refused += counts.refused;
        self.counts.mistyped += counts.mistyped;
        self.backwards += backwards;
        self.omissions.extend(omissions);
        self.not_evaluated.merge(&not_evaluated);
        if self.properties.is_empty() {
            (self.properties, self.topics, self.accounts) = (properties, topics, accounts);
            (self.missing, self.needed, self.unexercised) = (missing, needed, unexercised);
        } else {
            self.properties.iter_mut().zip(properties).for_each(|(own, further)| own.merge(further));
            for (own, further) in self.topics.iter_mut().zip(topics) {
                own.add(&further);
            }
            self.accounts.iter_mut().zip(&accounts).for_each(|(own, further)| own.add(further));
            self.missing.keep(&missing);
            self.unexercised.retain(|premise| unexercised.contains(premise));
        }
        ChainStatistics::merge(&mut self.chains, chains);
        match (&mut self.alignment, alignment) {
            (Some(own), Some(further)) => own.merge(&further),
            (own @ None, further) => *own = further,
            (Some(_), None) => {}
        }
    }

    /// Notes that a monitor has evaluated a time span up to there, if any message came.
    pub(crate) fn reach(&mut self, end: EndOf) {
        self.reached = self.reached.map(|reached| reached.max(end.event).max(end.time));
    }

    /// Adds messages that were not evaluated, also to the properties that read them.
    pub(crate) fn add_omissions(&mut self, omissions: &Omissions, withholds: bool) {
        self.not_evaluated.merge(omissions);
        let all = self.not_evaluated.all(|topic| self.needed.name_of(topic));
        for (property, statistics) in self.properties.iter_mut().enumerate() {
            let (topics, numbers) = (self.needed.topics_of(property), self.needed.numbers_of(property));
            let is_read = |omission: &&Omission| {
                let topics = if omission.reason == Reason::NotANumber { numbers } else { topics };
                omission.topic.is_none_or(|topic| topics.contains(&topic))
            };
            let takes_unknown = self.needed.takes_unknown_for_false(property);
            statistics.see_omissions(all.iter().filter(is_read), takes_unknown, withholds);
        }
    }

    /// The messages that were not evaluated, by reason and topic, each with the first one.
    pub fn omitted(&self) -> Vec<Omission> {
        let mut all = self.not_evaluated.all(|topic| self.needed.name_of(topic));
        all.retain(|omission| !self.is_only_left_out(omission));
        all
    }

    /// Sentences on values that windows leave out, and on other parts of messages that were not read. They make no
    /// verdict inconclusive.
    pub fn left_out(&self) -> Vec<String> {
        let all = self.not_evaluated.all(|topic| self.needed.name_of(topic));
        let without_effect = all.iter().filter(|omission| self.is_only_left_out(omission));
        let sentence =
            |omission: &Omission| format!("{}: left out, without an effect on verdicts", omission.brief());
        self.omissions.iter().cloned().chain(without_effect.map(sentence)).collect()
    }

    /// Whether the values are NaN and changed no verdict: windows leave them out by their definition.
    fn is_only_left_out(&self, omission: &Omission) -> bool {
        let changes = |(property, statistics): (usize, &PropertyStatistics)| {
            statistics.is_incomplete
                && omission.topic.is_none_or(|topic| self.needed.numbers_of(property).contains(&topic))
        };
        omission.reason == Reason::NotANumber && !self.properties.iter().enumerate().any(changes)
    }

    /// Adds the summary of the same run after a restart.
    pub fn continue_with(&mut self, further: Summary) {
        self.pauses.extend_from_slice(&further.pauses);
        self.merge(further);
    }

    /// Returns the reasons why a property, by its position, is vacuous: topics and fields that it needs and that came
    /// in no recording, premises that were never true, and topics without times if it measures time. Empty if it is not
    /// vacuous.
    pub fn vacuous(&self, property: usize) -> Vec<Vacuous> {
        let mut reasons = self.missing.vacuous(property, &self.needed, &self.unexercised);
        let never_stamped =
            |topic: TopicId| self.topics.get(topic.index()).is_some_and(TopicStatistics::never_stamped);
        reasons.extend(self.needed.without_time(property, never_stamped));
        reasons
    }

    /// The names of the topics on which no message came.
    pub fn missing_topics(&self) -> Vec<&str> {
        let topics = (0..).map(TopicId).zip(&self.topics);
        topics.filter(|(id, _)| self.missing.topic(*id)).map(|(_, topic)| topic.name.as_str()).collect()
    }

    /// Whether a property is inconclusive at the end, was never decided, ignored parameters, depends on messages that were
    /// not evaluated, or needs a topic or field that never came; or a topic never carried the time that it should. If
    /// `strict`, also whether a premise was never true, or a property was inconclusive in between.
    pub fn is_inconclusive(&self, strict: bool) -> bool {
        let counts = |reason: &Vacuous, is_asserted: bool| match reason.kind {
            VacuousKind::Premise => strict,
            _ => !is_asserted,
        };
        let open = |(i, p): (usize, &PropertyStatistics)| {
            let own = p.undecided() || p.open || p.unchecked > 0 || p.is_incomplete || strict && p.lapsed;
            // An assert has no premises of its own: those of the property that it judges count.
            !p.is_asserted && own || self.vacuous(i).iter().any(|reason| counts(reason, p.is_asserted))
        };
        self.properties.iter().enumerate().any(open) || self.topics.iter().any(TopicStatistics::never_stamped)
    }

    /// The number of messages that are missing by the numbers of their publishers, live or in lines.
    pub fn lost(&self) -> u64 {
        let live: u64 = self.accounts.iter().map(|account| account.lost).sum();
        let in_lines: u64 = self.topics.iter().map(|topic| topic.gaps).sum();
        live + in_lines
    }

    /// Whether an assert was violated, or a property that no assert judges.
    pub fn is_violated(&self) -> bool {
        self.properties.iter().any(|property| property.violations > 0 && !property.is_asserted)
    }
}

/// The counts of messages of a session.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Messages received.
    pub received: u64,
    /// Messages decoded and evaluated.
    pub checked: u64,
    /// Messages that could not be decoded.
    pub undecodable: u64,
    /// Messages refused because of their times or their sizes.
    pub refused: u64,
    /// Values of another type than the specification reads.
    pub mistyped: u64,
}

/// The state that properties hold at present.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Present {
    /// Number of instances of properties with parameters.
    pub instances: u64,
    /// Memory of these instances, in bytes.
    pub bytes: u64,
    /// Number of violated instances of each property; 0 or 1 without parameters.
    pub violated: Vec<u64>,
}

/// The state of a property at present.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Standing {
    /// `Violated` if the property is, or any instance of it; `Inconclusive` while it has no verdict, or while messages that
    /// it depends on are missing.
    pub verdict: Verdict,
    /// Number of times that it or an instance became violated since it is watched.
    pub violations: u64,
}

impl Present {
    /// Adds the instances of a monitor.
    pub(crate) fn add(&mut self, monitor: &Monitor) {
        for slice in monitor.slices() {
            self.instances += slice.instances;
            self.bytes += slice.bytes as u64;
        }
    }
}

/// The messages of one topic.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TopicStatistics {
    /// The name of the topic.
    pub name: String,
    /// Messages without the time that they should carry.
    pub unstamped: u64,
    /// Messages that are missing in lines, by the numbers of publishers, where they are evaluated as they come.
    pub gaps: u64,
    /// Lines that came before, by the same numbers.
    pub repeats: u64,
    /// Messages refused because their times are too far from the clock.
    pub refused: u64,
    /// Messages refused because they are too large.
    pub oversized: u64,
    /// Whether some message carried its time, where it should.
    pub stamped: bool,
}

impl TopicStatistics {
    /// Adds the messages of a further recording, or of the events of the topic.
    pub(crate) fn add(&mut self, further: &TopicStatistics) {
        self.unstamped += further.unstamped;
        self.gaps += further.gaps;
        self.repeats += further.repeats;
        self.refused += further.refused;
        self.oversized += further.oversized;
        self.stamped |= further.stamped;
    }

    /// Whether messages came and none carried its time.
    pub fn never_stamped(&self) -> bool {
        self.unstamped > 0 && !self.stamped
    }
}

/// Counts events whose time is before that of the event before them.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Backwards {
    last: Option<Timestamp>,
    pub(crate) count: u64,
}

impl Backwards {
    /// For a snapshot: the time of the last event, in nanoseconds, and the count.
    pub(crate) fn saved(&self) -> (Option<i64>, u64) {
        (self.last.map(Timestamp::as_nanos), self.count)
    }

    /// Continues from a snapshot.
    pub(crate) fn restored(last: Option<i64>, count: u64) -> Backwards {
        Backwards { last: last.map(Timestamp::from_nanos), count }
    }

    /// Whether an event of a block that was not added yet goes back.
    #[inline]
    pub(crate) fn is_back(&self, block: &Block) -> bool {
        let mut last = self.last.unwrap_or(Timestamp::from_nanos(i64::MIN));
        let mut is_back = false;
        for row in 0..block.len() {
            let time = block.time(row);
            is_back |= time < last;
            last = time;
        }
        is_back
    }

    /// Adds the events of a block; returns the row of the very first one that goes back.
    #[inline]
    pub(crate) fn add(&mut self, block: &Block) -> Option<usize> {
        let mut back: Rows = 0;
        let mut last = self.last.unwrap_or(Timestamp::from_nanos(i64::MIN));
        for row in 0..block.len() {
            let time = block.time(row);
            back |= Rows::from(time < last) << row;
            last = time;
        }
        self.last = Some(last);
        let first_ever = (back != 0 && self.count == 0).then(|| back.trailing_zeros() as usize);
        self.count += u64::from(back.count_ones());
        first_ever
    }
}
