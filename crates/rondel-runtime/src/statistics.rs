//! Statistics of a session: counts of messages, and the verdicts of each property.

mod in_violation;
mod pause;
mod property;

use std::collections::BTreeSet;
use std::sync::Arc;

use rondel_engine::{Ambiguity, Monitor};
use rondel_event::{Block, Rows, Timestamp, TopicId};
use rondel_spec::Spec;

use crate::account::Account;
use crate::alignment_statistics::AlignmentStatistics;
use crate::chains::ChainStatistics;
use crate::missing::{Missing, Needed, Vacuous, VacuousKind};
use crate::notice::limit_text;
use crate::omission::{Omission, Omissions, Reason};
use crate::text::{counted, grouped, parameters_text};

pub(crate) use in_violation::EndOf;
pub use in_violation::{Extent, InViolation, LongestViolation};
pub use pause::{Cause, Pause};
pub(crate) use property::SavedStatistics;
pub use property::{FirstViolation, PropertyStatistics};

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
            seam,
            ..
        } = further;
        let earlier = self.span.zip(span).map(|(own, further)| (own.0.min(further.0), own.1.max(further.1)));
        self.span = earlier.or(self.span).or(span);
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

    /// Adds messages that were not evaluated, also to the properties that read them.
    pub(crate) fn add_omissions(&mut self, omissions: &Omissions, withholds: bool) {
        self.not_evaluated.merge(omissions);
        let all = self.omitted();
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
        self.not_evaluated.all(|topic| self.needed.name_of(topic))
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

/// For the properties with parameters of a monitor: number of messages that did not count because of a limit, and of
/// events that named no instance. The latter count for properties that read events, or for all without a specification.
pub(crate) fn unchecked<'m>(
    monitor: &'m Monitor,
    spec: Option<&'m Spec>,
) -> impl Iterator<Item = (u32, u64)> {
    let slices = monitor.slices();
    slices.flat_map(move |slice| {
        let beyond = slice.refused + slice.too_long;
        slice.properties.iter().map(move |property| {
            let reads_events = |spec: &Spec| {
                let found = spec.properties.get(*property as usize);
                found.is_some_and(|property| !spec.events_read(property.formula).is_empty())
            };
            let is_meant = slice.unnamed > 0 && spec.is_none_or(reads_events);
            (*property, beyond + if is_meant { slice.unnamed } else { 0 })
        })
    })
}

/// The limits that a monitor reached, as sentences.
pub(crate) fn omissions(monitor: &Monitor, spec: &Spec) -> Vec<String> {
    let mut sentences = Vec::new();
    for slice in monitor.slices() {
        let names: Vec<&str> = slice
            .properties
            .iter()
            .filter_map(|property| spec.properties.get(*property as usize))
            .map(|property| property.name.as_str())
            .collect();
        // Skips the parts watched for explanations: their property reaches the same limits.
        if names.is_empty() {
            continue;
        }
        let names = names.join(", ");
        if slice.unnamed > 0 {
            let events = counted(slice.unnamed, "event names", "events name");
            sentences.push(format!("{names}: {events} no instance by its parameters, and did not count"));
        }
        let unkeyed = slice.unkeyed.saturating_sub(slice.unnamed);
        if unkeyed > 0 {
            let messages = match slice.of_elements {
                true => counted(unkeyed, "element or message has", "elements or messages have"),
                false => counted(unkeyed, "message has", "messages have"),
            };
            sentences
                .push(format!("{names}: {messages} no parameter, or one of another type, and did not count"));
        }
        if let (Some([names_of, other]), 1..) = (slice.first_unequal, slice.unequal) {
            let messages = counted(slice.unequal, "message has", "messages have");
            sentences.push(format!(
                "{names}: {messages} arrays of other lengths than that of the parameter, so that values are missing or left \
                 over; the first has {} and {} elements",
                grouped(names_of),
                grouped(other)
            ));
        }
        if slice.too_long > 0 {
            let messages = counted(slice.too_long, "message has", "messages have");
            sentences.push(format!("{names}: {messages} a parameter of more than 64 KiB, and did not count"));
        }
        if slice.refused > 0 {
            let messages = match slice.of_elements {
                true => counted(slice.refused, "element", "elements"),
                false => counted(slice.refused, "message", "messages"),
            };
            let instances = limit_text(slice.instances, slice.full);
            let first = parameters_text(slice.first_refused.unwrap_or_default());
            sentences.push(format!(
                "{names}: {messages} with a new parameter did not count, as the limit of {instances} was reached; \
                 the first parameter was {first}"
            ));
        }
    }
    for Ambiguity { machine, transitions: [first, second] } in monitor.ambiguities() {
        sentences.push(format!(
            "{machine}: the machine could take two transitions at once, `{first}` and `{second}`, and has taken none \
             since"
        ));
    }
    if monitor.dropped_samples() > 0 {
        let samples = counted(monitor.dropped_samples(), "sample", "samples");
        sentences.push(format!("windows had no room for {samples}, and were unknown meanwhile"));
    }
    if monitor.given_up() > 0 {
        let verdicts = counted(monitor.given_up(), "verdict is", "verdicts are");
        sentences.push(format!("{verdicts} inconclusive because too many obligations were pending"));
    }
    if monitor.forgotten() > 0 {
        let values = counted(monitor.forgotten(), "value", "values");
        sentences.push(format!(
            "{values} of quantified formulas forgotten at their @limit: verdicts that depend on them are inconclusive"
        ));
    }
    if monitor.hurried() > 0 {
        let messages = counted(monitor.hurried(), "message was", "messages were");
        sentences.push(format!(
            "linear interpolation: {messages} evaluated with unknown numbers, as too many waited for the next sample"
        ));
    }
    if monitor.leaps() > 0 {
        let times = counted(monitor.leaps(), "time", "times");
        sentences.push(format!(
            "{times} a machine that moves by itself was not followed through a pause, and was unknown in it"
        ));
    }
    if monitor.beyond_range() > 0 {
        let events = counted(monitor.beyond_range(), "event is", "events are");
        sentences.push(format!("{events} more than 146 years from time zero, and were moved to that limit"));
    }
    sentences
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
    pub(crate) fn restored((last, count): (Option<i64>, u64)) -> Backwards {
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
