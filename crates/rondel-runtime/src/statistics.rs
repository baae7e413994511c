//! The statistics of a session: what happened to the messages, and the verdicts of each property.

use std::collections::BTreeSet;
use std::sync::Arc;

use rondel_engine::{Ambiguity, Blind, Monitor, Report};
use rondel_event::{Block, Rows, Timestamp, TopicId, Value, Verdict};
use rondel_spec::{Property, Spec, TimeModel};
use serde::{Deserialize, Serialize};

use crate::account::Account;
use crate::alignment_statistics::AlignmentStatistics;
use crate::chains::ChainStatistics;
use crate::criteria::{Assertion, Doubt, Judgement, Measured};
use crate::missing::{Missing, Needed, Vacuous, VacuousKind};
use crate::notice::{Notice, limit_text};
use crate::specification::{looks_ahead, may_look_ahead};
use crate::text::{counted, parameters_text};

/// The state of a session in numbers, from its beginning.
#[derive(Clone, Debug, Default)]
pub struct Summary {
    /// The counts of messages.
    pub counts: Counts,
    /// The verdicts of each property, in the order of the specification.
    pub properties: Vec<PropertyStatistics>,
    /// The messages of each topic, in the order of the specification.
    pub topics: Vec<TopicStatistics>,
    /// What became of the messages of each topic; lines of recordings are not among them.
    pub accounts: Vec<Account>,
    /// The number of events with an earlier time than the previous event.
    pub backwards: u64,
    /// The times of the first and the last message; of several recordings the earliest and the latest.
    pub span: Option<(Timestamp, Timestamp)>,
    /// The topics and fields that never came.
    pub missing: Missing,
    /// What the properties need.
    pub(crate) needed: Arc<Needed>,
    /// The premises that were not certainly true at any time point: the property, and the place among its premises.
    pub(crate) untried: BTreeSet<(u32, u32)>,
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

/// A time that a session did not see pass.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pause {
    /// The time of day at which it is last known to have run.
    pub from: Timestamp,
    /// The time of day at which it ran again: an earlier one if the clock was set back.
    pub until: Timestamp,
    /// Why it did not see it pass.
    pub cause: Cause,
}

/// Why a session did not see time pass.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cause {
    /// The process was stopped or starved, or waited for a consumer.
    Stopped,
    /// The session continues from a snapshot: it began when that was taken.
    Restart,
    /// It ran, but the clock of the machine was set.
    Clock {
        /// How far forward, in nanoseconds; back if it is negative.
        by: i64,
    },
    /// The clock of a simulation leapt.
    Simulation,
    /// The clock of a simulation showed its first time, after messages had come.
    Begun,
}

impl Cause {
    /// As a word: `stopped`, `restart`, `clock` or `simulation`.
    pub fn as_str(self) -> &'static str {
        match self {
            Cause::Stopped => "stopped",
            Cause::Restart => "restart",
            Cause::Clock { .. } => "clock",
            Cause::Simulation | Cause::Begun => "simulation",
        }
    }
}

impl Pause {
    /// As JSON, with times in seconds.
    pub fn json(&self) -> serde_json::Value {
        Notice::paused(self).members.into_iter().map(|(name, value)| (name.to_owned(), value)).collect()
    }

    /// As a sentence; `time` writes a time.
    pub fn sentence(&self, time: &mut dyn FnMut(Timestamp) -> String) -> String {
        Notice::paused(self).text(time)
    }
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
            untried,
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
        if self.properties.is_empty() {
            (self.properties, self.topics, self.accounts) = (properties, topics, accounts);
            (self.missing, self.needed, self.untried) = (missing, needed, untried);
        } else {
            self.properties.iter_mut().zip(properties).for_each(|(own, further)| own.merge(further));
            for (own, further) in self.topics.iter_mut().zip(topics) {
                own.add(&further);
            }
            self.accounts.iter_mut().zip(&accounts).for_each(|(own, further)| own.add(further));
            self.missing.keep(&missing);
            self.untried.retain(|premise| untried.contains(premise));
        }
        ChainStatistics::merge(&mut self.chains, chains);
        match (&mut self.alignment, alignment) {
            (Some(own), Some(further)) => own.merge(&further),
            (own @ None, further) => *own = further,
            (Some(_), None) => {}
        }
    }

    /// Adds the summary of what the same run checked afterwards, when it had begun anew.
    pub fn continue_with(&mut self, further: Summary) {
        self.pauses.extend_from_slice(&further.pauses);
        self.merge(further);
    }

    /// Why a property, by its position, is vacuous: the topics and fields that it needs and that came in no
    /// recording, and its premises that were never true. Empty if it is not.
    pub fn vacuous(&self, property: usize) -> Vec<Vacuous> {
        self.missing.vacuous(property, &self.needed, &self.untried)
    }

    /// The names of the topics on which no message came.
    pub fn missing_topics(&self) -> Vec<&str> {
        let topics = (0..).map(TopicId).zip(&self.topics);
        topics.filter(|(id, _)| self.missing.topic(*id)).map(|(_, topic)| topic.name.as_str()).collect()
    }

    /// Whether a property is inconclusive at the end, was never decided, ignored parameters, or needs a topic or field that never came;
    /// or a topic never carried the time that it should. If `strict`, also whether a premise was never true.
    pub fn is_inconclusive(&self, strict: bool) -> bool {
        let counts = |reason: &Vacuous, is_asserted: bool| match reason.kind {
            VacuousKind::Premise => strict,
            _ => !is_asserted,
        };
        let open = |(i, p): (usize, &PropertyStatistics)| {
            let own = p.undecided() || p.open || p.unchecked > 0;
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

/// The verdicts of one property, counted.
///
/// Where a verdict holds at every step until the next, steps are counted. A property with parameters, one
/// with future operators, and one that changes between events too have no such steps: their verdicts are
/// counted.
#[derive(Clone, Debug, Default)]
pub struct PropertyStatistics {
    /// The number of steps at which it was inconclusive, or of times it became inconclusive.
    pub inconclusive: u64,
    /// How often it became violated.
    pub violations: u64,
    /// The first violation.
    pub first: Option<FirstViolation>,
    /// The last verdict.
    pub last: Option<Verdict>,
    /// Whether a recording ended with it inconclusive.
    pub open: bool,
    /// Whether steps are counted.
    pub by_steps: bool,
    /// Whether it has parameters.
    pub by_key: bool,
    /// The messages that did not count, as their parameters were too many or too long.
    pub unchecked: u64,
    /// How often it was inconclusive because messages were not seen.
    pub blind: Blind,
    /// Whether an assert judges it, which decides instead of it.
    pub is_asserted: bool,
    /// What an assert has measured; none for a property.
    assertion: Option<Box<Assertion>>,
    /// Whether it was ever satisfied or violated.
    decided: bool,
    /// The time that the last verdict is about, and whether it was reported later. Verdicts may be
    /// reported in another order.
    about: Option<(Timestamp, bool)>,
    /// Whether the recording has ended, so that an inconclusive verdict stays.
    over: bool,
    /// The step since which the last verdict holds. The steps from there on are not counted yet.
    since: u64,
}

/// The first violation of a property.
#[derive(Clone, Debug, PartialEq)]
pub struct FirstViolation {
    /// The parameters of the instance in brackets, or empty.
    pub parameters: String,
    /// The step, if there is one.
    pub step: Option<u64>,
    /// The time that the violation is about.
    pub time: Timestamp,
}

impl PropertyStatistics {
    /// One for each property of a specification.
    pub(crate) fn all(spec: &Spec) -> Vec<PropertyStatistics> {
        let ahead = may_look_ahead(spec);
        let by_steps = |p: &Property| {
            p.time != TimeModel::Dense && p.slice.is_none() && !(ahead && looks_ahead(spec, p.formula))
        };
        let statistics = |p: &Property| PropertyStatistics {
            by_steps: by_steps(p),
            by_key: p.slice.is_some() && p.criterion.is_none(),
            assertion: Assertion::of(spec, p),
            ..PropertyStatistics::default()
        };
        let mut all: Vec<PropertyStatistics> = spec.properties.iter().map(statistics).collect();
        for judged in spec.properties.iter().filter_map(|p| p.criterion?.property) {
            all.get_mut(judged as usize).into_iter().for_each(|judged| judged.is_asserted = true);
        }
        all
    }

    /// Adds a verdict. Only changes count. `parameters` is called only where they are needed.
    #[inline]
    pub(crate) fn add(&mut self, report: &Report, parameters: impl FnOnce() -> Vec<Value>) {
        if !report.changed {
            return;
        }
        if let Some(assertion) = &mut self.assertion {
            assertion.add(report);
            return;
        }
        if self.by_steps {
            self.count(report.step);
        } else {
            self.inconclusive += u64::from(report.verdict == Verdict::Inconclusive);
        }
        let about = report.about.unwrap_or(report.time);
        let is_later = report.about.is_some();
        let is_last = |(last, was_later)| about > last || about == last && (was_later || !is_later);
        if self.by_steps || self.about.is_none_or(is_last) {
            (self.last, self.about) = (Some(report.verdict), Some((about, is_later)));
        }
        self.open |= self.over && report.verdict == Verdict::Inconclusive;
        self.decided |= report.verdict != Verdict::Inconclusive;
        if report.verdict == Verdict::Violated {
            self.violations += 1;
            self.first.get_or_insert_with(|| FirstViolation {
                parameters: parameters_text(&parameters()),
                step: (report.at_event && report.about.is_none()).then_some(report.step),
                time: report.about.unwrap_or(report.time),
            });
        }
    }

    /// Takes how often the property of this position was inconclusive as messages were not seen. What was missed after its
    /// last verdict makes that inconclusive, too.
    pub(crate) fn see_blind(&mut self, monitor: &Monitor, property: u32) {
        self.blind = monitor.blind(property);
        if self.assertion.is_none() && monitor.is_unjudged(property) {
            self.open = true;
            self.blind.verdicts += 1;
        }
    }

    /// Notes that the recording has ended: only verdicts about open obligations follow.
    pub(crate) fn over(&mut self) {
        self.over = true;
    }

    /// Notes for an assert that messages were not seen before the next event; if not `is_read`, its formula does not
    /// depend on them.
    pub(crate) fn miss(&mut self, monitor: &Monitor, is_read: bool) {
        if let Some(assertion) = &mut self.assertion {
            assertion.miss(monitor.position(), monitor.time(), is_read);
        }
    }

    /// Judges an assert at the end of a run, at this time; none for a property. `property` is its position in the monitor;
    /// `broke_off` is whether the recording was not read to its end.
    pub(crate) fn judge(
        &mut self,
        monitor: &Monitor,
        property: u32,
        time: Timestamp,
        broke_off: bool,
    ) -> Option<Verdict> {
        let assertion = self.assertion.as_mut()?;
        let is_meant = |(own, ignored): (u32, u64)| own == property && ignored > 0;
        let uncounted = unchecked(monitor).any(is_meant);
        let doubt = Doubt { unjudged: monitor.is_unjudged(property), uncounted, broke_off };
        let verdict = assertion.judge(monitor.position(), time, doubt);
        self.last = Some(verdict);
        self.violations = u64::from(verdict == Verdict::Violated);
        self.open = verdict == Verdict::Inconclusive;
        self.decided = !self.open;
        Some(verdict)
    }

    /// How an assert turned out; none for a property, and before the end of the run.
    pub fn judgement(&self) -> Option<&Judgement> {
        self.assertion.as_ref()?.judgement.as_ref()
    }

    /// Whether it is an assert.
    pub fn is_assert(&self) -> bool {
        self.assertion.is_some()
    }

    /// Closes the statistics of a recording with this many steps, in which this many instances are
    /// inconclusive.
    pub(crate) fn end(&mut self, steps: u64, waiting: u64) {
        if self.assertion.is_some() {
            return;
        }
        if self.by_steps {
            self.count(steps);
        }
        self.open |= match self.by_key {
            true => waiting > 0,
            false => self.last == Some(Verdict::Inconclusive),
        };
        (self.since, self.about, self.over) = (0, None, false);
    }

    /// Adds the statistics of a further recording.
    fn merge(&mut self, further: PropertyStatistics) {
        self.inconclusive += further.inconclusive;
        self.violations += further.violations;
        self.first = self.first.take().or(further.first);
        self.last = further.last.or(self.last);
        if let Some((own, further)) = self.assertion.as_mut().zip(further.assertion) {
            let judgements = [own.judgement.take(), further.judgement].into_iter().flatten();
            own.judgement = judgements.reduce(Judgement::worse);
            self.last = own.judgement.as_ref().map(|judgement| judgement.verdict);
        }
        self.open |= further.open;
        self.decided |= further.decided;
        self.unchecked += further.unchecked;
        self.blind.times += further.blind.times;
        self.blind.verdicts += further.blind.verdicts;
    }

    /// Counts the steps before this one.
    fn count(&mut self, step: u64) {
        if self.last == Some(Verdict::Inconclusive) {
            self.inconclusive += step.saturating_sub(self.since);
        }
        self.since = step;
    }

    /// The verdict: the last one; of a property with parameters the worst of any instance.
    pub fn verdict(&self) -> Option<Verdict> {
        match self.last {
            Some(_) if self.by_key && self.violations > 0 => Some(Verdict::Violated),
            Some(_) if self.by_key && (self.open || self.unchecked > 0) => Some(Verdict::Inconclusive),
            last => last,
        }
    }

    /// Whether it was neither satisfied nor violated at any time.
    pub fn undecided(&self) -> bool {
        // An assert is judged when the run is over.
        !self.decided && (self.assertion.is_none() || self.judgement().is_some())
    }
}

/// [`PropertyStatistics`] in a snapshot: times in nanoseconds, verdicts by their names.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct SavedStatistics {
    inconclusive: u64,
    violations: u64,
    first: Option<(String, Option<u64>, i64)>,
    last: Option<String>,
    open: bool,
    decided: bool,
    about: Option<(i64, bool)>,
    since: u64,
    #[serde(default)]
    measured: Option<Measured>,
}

impl PropertyStatistics {
    pub(crate) fn saved(&self) -> SavedStatistics {
        let first = |first: &FirstViolation| (first.parameters.clone(), first.step, first.time.as_nanos());
        SavedStatistics {
            inconclusive: self.inconclusive,
            violations: self.violations,
            first: self.first.as_ref().map(first),
            last: self.last.map(|verdict| verdict.as_str().to_owned()),
            open: self.open,
            decided: self.decided,
            about: self.about.map(|(time, is_later)| (time.as_nanos(), is_later)),
            since: self.since,
            measured: self.assertion.as_ref().map(|assertion| assertion.measured.clone()),
        }
    }

    pub(crate) fn restore(&mut self, saved: SavedStatistics) {
        let SavedStatistics { inconclusive, violations, first, last, open, decided, about, since, measured } =
            saved;
        if let Some((assertion, measured)) = self.assertion.as_mut().zip(measured) {
            assertion.measured = measured;
        }
        let time = Timestamp::from_nanos;
        (self.inconclusive, self.violations, self.open) = (inconclusive, violations, open);
        (self.decided, self.since) = (decided, since);
        self.first = first.map(|(parameters, step, at)| FirstViolation { parameters, step, time: time(at) });
        let all = [Verdict::Satisfied, Verdict::Violated, Verdict::Inconclusive];
        self.last = all.into_iter().find(|verdict| last.as_deref() == Some(verdict.as_str()));
        self.about = about.map(|(at, is_later)| (time(at), is_later));
    }
}

/// For the properties with parameters of a monitor, how many messages did not count because of a limit.
pub(crate) fn unchecked(monitor: &Monitor) -> impl Iterator<Item = (u32, u64)> {
    let slices = monitor.slices();
    slices.flat_map(|slice| {
        let ignored = slice.refused + slice.too_long;
        slice.properties.iter().map(move |property| (*property, ignored))
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
        if slice.unkeyed > 0 {
            let messages = counted(slice.unkeyed, "message has", "messages have");
            sentences
                .push(format!("{names}: {messages} no parameter, or one of another type, and did not count"));
        }
        if slice.too_long > 0 {
            let messages = counted(slice.too_long, "message has", "messages have");
            sentences.push(format!("{names}: {messages} a parameter of more than 64 KiB, and did not count"));
        }
        if slice.refused > 0 {
            let messages = counted(slice.refused, "message", "messages");
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_verdict_is_the_one_about_the_latest_time() {
        let at = Timestamp::from_nanos;
        let report = |time, about: Option<i64>, verdict| {
            let mut report = Report::at_event(verdict, 0, at(time));
            (report.about, report.at_event) = (about.map(at), false);
            report
        };
        let mut statistics = PropertyStatistics::default();
        statistics.add(&report(0, None, Verdict::Satisfied), Vec::new);
        statistics.add(&report(2, Some(0), Verdict::Inconclusive), Vec::new);
        assert_eq!((statistics.last, statistics.inconclusive), (Some(Verdict::Satisfied), 1));
        statistics.add(&report(9, Some(5), Verdict::Violated), Vec::new);
        let first = statistics.first.as_ref().map(|first| (first.step, first.time));
        assert_eq!((statistics.last, first), (Some(Verdict::Violated), Some((None, at(5)))));
        let mut closed = statistics.clone();
        closed.end(3, 0);
        assert!(!closed.open);
        // A verdict that is open at the end stays open, although later times are known.
        statistics.over();
        statistics.add(&report(9, Some(4), Verdict::Inconclusive), Vec::new);
        statistics.end(3, 0);
        assert!(statistics.open && statistics.last == Some(Verdict::Violated));
    }
}
