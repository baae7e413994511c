//! The verdicts of a property, counted.

use rondel_engine::{Blind, EndedInstance, Monitor, Report, UnseenFrom};
use rondel_event::{Timestamp, Verdict};
use rondel_spec::{Expr, Property, Spec, TimeModel, VariableId};
use serde::{Deserialize, Serialize};

use super::criteria::{Assertion, Judgement, Measured, Uncertainty};
use super::in_violation::{EndOf, InViolation, SavedViolations, Violations};
use super::omission::{Omission, Reason};
use super::unchecked;
use crate::report::{ReportSource, variables};
use crate::specification::{looks_ahead, may_look_ahead};
use crate::text::{parameters_text, value_text};

/// The verdicts of one property, counted.
///
/// Where a verdict holds at every step until the next, steps are counted. A property with parameters, one
/// with future operators, and one that changes between events too have no such steps: their verdicts are
/// counted.
// Fields that a change of the verdict uses come first, within one cache line: thousands of properties may change with
// one message.
#[derive(Clone, Debug, Default)]
#[repr(C, align(64))]
pub struct PropertyStatistics {
    /// The number of steps at which it was inconclusive, or of times it became inconclusive.
    pub inconclusive: u64,
    /// Number of times that it became violated.
    pub violations: u64,
    /// The time that the last verdict is about, and whether it was reported later. Verdicts may be
    /// reported in another order.
    about: Option<(Timestamp, bool)>,
    /// The step since which the last verdict holds. The steps from there on are not counted yet.
    since: u64,
    /// Its violations.
    violated: Violations,
    /// The last verdict.
    pub last: Option<Verdict>,
    /// Whether a recording ended with it inconclusive.
    pub open: bool,
    /// Whether steps are counted.
    pub by_steps: bool,
    /// Whether it was ever satisfied or violated.
    decided: bool,
    /// Whether the recording has ended, so that an inconclusive verdict stays.
    over: bool,
    /// Whether an assert has an assertion, below.
    is_assert: bool,
    /// The first violation.
    pub first: Option<FirstViolation>,
    /// Whether it has parameters.
    pub by_key: bool,
    /// The messages that did not count: their parameters were too many or too long, an event named no instance, or a deadline
    /// was missed while the session did not run.
    pub unchecked: u64,
    /// Inconclusive verdicts that missed messages caused.
    pub blind: Blind,
    /// Whether messages were not evaluated on which its verdicts depend.
    pub is_incomplete: bool,
    /// Reason in a sentence, if it is known.
    pub omitted: Option<String>,
    /// Whether it was inconclusive after it had been decided.
    pub lapsed: bool,
    /// Whether an assert judges it, which decides instead of it.
    pub is_asserted: bool,
    /// The least robustness that was evaluated: at messages, and where anything changed between them. `None` without
    /// robustness.
    pub least_robustness: Option<f64>,
    /// The variables that its quantifiers bind.
    variables: Vec<(VariableId, String)>,
    /// Measurement of an assert; `None` for a property.
    assertion: Option<Box<Assertion>>,
}

const _: () = assert!(std::mem::offset_of!(PropertyStatistics, first) <= 64);

/// The first violation of a property.
#[derive(Clone, Debug, PartialEq)]
pub struct FirstViolation {
    /// The parameters of the instance in brackets, or empty.
    pub parameters: String,
    /// The step, if there is one.
    pub step: Option<u64>,
    /// The time that the violation is about.
    pub time: Timestamp,
    /// The values of the quantified variables for which it was violated, as texts, with their names.
    pub values: Vec<(String, String)>,
}

/// The number of the message of a report among all, where the monitor saw only some of them.
fn numbered(report: &Report, from: Option<ReportSource<'_>>) -> Option<u64> {
    from?.block?.number(report.row?.into())
}

impl PropertyStatistics {
    /// One for each property of a specification.
    pub(crate) fn all(spec: &Spec) -> Vec<PropertyStatistics> {
        let ahead = may_look_ahead(spec);
        let by_steps = |p: &Property| {
            p.time != TimeModel::Dense && p.slice.is_none() && !(ahead && looks_ahead(spec, p.formula))
        };
        let violated =
            |p: &Property| Violations::of(spec, p, by_steps(p), ahead && looks_ahead(spec, p.formula));
        let quantifies = spec.nodes.iter().any(|node| matches!(node, Expr::Exists(..) | Expr::ForAll(..)));
        let statistics = |p: &Property| PropertyStatistics {
            by_steps: by_steps(p),
            violated: violated(p),
            variables: if quantifies { variables(spec, p.formula) } else { Vec::new() },
            by_key: p.slice.is_some() && p.criterion.is_none(),
            is_assert: p.criterion.is_some(),
            assertion: Assertion::of(spec, p),
            ..PropertyStatistics::default()
        };
        let mut all: Vec<PropertyStatistics> = spec.properties.iter().map(statistics).collect();
        for judged in spec.properties.iter().filter_map(|p| p.criterion?.property) {
            all.get_mut(judged as usize).into_iter().for_each(|judged| judged.is_asserted = true);
        }
        all
    }

    /// Adds a verdict. Only changes count. `from` provides parameters and values where they are needed: the monitor,
    /// and the block that it has evaluated.
    #[inline]
    pub(crate) fn add(&mut self, report: &Report, from: Option<ReportSource<'_>>) {
        if !report.changed {
            return;
        }
        if self.is_assert {
            self.assertion.iter_mut().for_each(|assertion| assertion.add(report));
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
        // Each instance begins undecided.
        let was_decided = if self.by_key { report.lapsed } else { self.decided };
        self.lapsed |= was_decided && !self.over && report.verdict == Verdict::Inconclusive;
        self.decided |= report.verdict != Verdict::Inconclusive;
        if report.verdict != Verdict::Violated {
            return self.violated.add(report, about, from.map(|from| from.monitor));
        }
        // Durations in steps are differences of the monitor's own numbers.
        let number = if self.by_steps { None } else { numbered(report, from) };
        let mut shown = *report;
        shown.step = number.unwrap_or(report.step);
        self.violated.add(&shown, about, from.map(|from| from.monitor));
        self.violations += 1;
        if self.violations == 1 {
            self.see_first(report, from);
        }
    }

    /// Records the first violation.
    #[cold]
    fn see_first(&mut self, report: &Report, from: Option<ReportSource<'_>>) {
        let variables = &self.variables;
        self.first.get_or_insert_with(|| FirstViolation {
            values: from.map_or_else(Vec::new, |from| witness(report, from, variables)),
            parameters: from.map_or_else(String::new, |from| parameters_text(&from.monitor.key(report))),
            step: (report.at_event && report.about.is_none())
                .then(|| numbered(report, from).unwrap_or(report.step)),
            time: report.about.unwrap_or(report.time),
        });
    }

    /// Time that it was violated. `None` where that is not measured: verdicts of properties with future operators come
    /// later and do not show when they are satisfied again, those of a chain are about one stamp each, and an assert is
    /// about the whole run.
    pub fn in_violation(&self) -> Option<InViolation> {
        self.violated.found()
    }

    /// Number of instances that are violated now; 0 or 1 where instances are not measured.
    pub(crate) fn violated_now(&self) -> u64 {
        self.violated.violated_instances().unwrap_or_else(|| u64::from(self.last == Some(Verdict::Violated)))
    }

    /// Parameters, as words, of the instances that are violated now, where instances are measured.
    pub(crate) fn violated_keys(&self) -> impl Iterator<Item = &[u64]> {
        self.violated.violated_keys()
    }

    /// Ends the violation of an instance that ended.
    pub(crate) fn ended(&mut self, ended: &EndedInstance<'_>, monitor: &Monitor) {
        self.violated.close_instance(ended.key, ended.time.as_nanos(), monitor);
    }

    /// Records that messages on which its verdicts depend were not evaluated.
    pub(crate) fn see_omission(&mut self) {
        self.is_incomplete = true;
    }

    /// Adds the messages on its topics that were not evaluated. A missing value matters where the property was
    /// inconclusive, and everywhere if it `takes_unknown` values for false, as an assert does; a message that a queue
    /// dropped matters if the session `withholds` verdicts.
    pub(crate) fn see_omissions<'o>(
        &mut self,
        omissions: impl Iterator<Item = &'o Omission>,
        takes_unknown: bool,
        withholds: bool,
    ) {
        let takes_unknown = takes_unknown || self.assertion.is_some();
        for omission in omissions {
            self.is_incomplete |= match omission.reason {
                Reason::Dropped => withholds,
                Reason::OtherFieldType | Reason::NotANumber if takes_unknown => true,
                // No instance saw it.
                Reason::OverLimit if takes_unknown && omission.topic.is_some() => true,
                reason => reason.is_about_value() && self.inconclusive > 0,
            };
            if self.is_incomplete {
                self.omitted.get_or_insert_with(|| omission.brief());
            }
        }
    }

    /// Records that messages that the property reads were missed from a time on: the duration of a violation is unknown
    /// from there on, until it becomes violated again.
    pub(crate) fn gap(&mut self, from: UnseenFrom, end: EndOf, monitor: &Monitor) {
        self.violated.miss(from, end, monitor);
    }

    /// Adds the least robustness that a monitor has evaluated for the property at this position.
    pub(crate) fn see_robustness(&mut self, monitor: &Monitor, property: u32) {
        self.lower(monitor.least_robustness(property));
    }

    fn lower(&mut self, robustness: Option<f64>) {
        self.least_robustness = self.least_robustness.into_iter().chain(robustness).reduce(f64::min);
    }

    /// Adds the inconclusive verdicts that missed messages caused for the property at this position. Messages missed
    /// after its last verdict make that inconclusive, too.
    pub(crate) fn see_blind(&mut self, monitor: &Monitor, property: u32) {
        self.blind = monitor.blind(property);
        self.is_incomplete |= self.blind.verdicts > 0;
        if self.assertion.is_none() && monitor.is_unjudged(property) {
            self.open = true;
            self.blind.verdicts += 1;
        }
    }

    /// Records the end of the recording: only verdicts about pending obligations follow.
    pub(crate) fn over(&mut self) {
        self.over = true;
    }

    /// Records for an assert that messages were missed before the next event; unless `is_read`, its formula does not
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
        let uncounted = unchecked(monitor, None).any(is_meant);
        let uncertainty = Uncertainty { unjudged: monitor.is_unjudged(property), uncounted, broke_off };
        let verdict = assertion.judge(monitor.position(), time, uncertainty);
        self.last = Some(verdict);
        self.violations = u64::from(verdict == Verdict::Violated);
        self.open = verdict == Verdict::Inconclusive;
        self.decided = !self.open;
        Some(verdict)
    }

    /// Result of an assert; `None` for a property, and before the end of the run.
    pub fn judgement(&self) -> Option<&Judgement> {
        self.assertion.as_ref()?.judgement.as_ref()
    }

    /// Whether it is an assert.
    pub fn is_assert(&self) -> bool {
        self.is_assert
    }

    /// Closes the statistics of a recording that ended there, in which this many instances are inconclusive.
    pub(crate) fn end(&mut self, end: EndOf, waiting: u64, monitor: &Monitor) {
        if self.assertion.is_some() {
            return;
        }
        if self.by_steps {
            self.count(end.steps);
        }
        self.violated.end(end, monitor);
        self.open |= match self.by_key {
            true => waiting > 0,
            false => self.last == Some(Verdict::Inconclusive),
        };
        (self.since, self.about, self.over) = (0, None, false);
    }

    /// Adds the statistics of a further recording.
    pub(super) fn merge(&mut self, further: PropertyStatistics) {
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
        self.lower(further.least_robustness);
        self.violated.merge(further.violated);
        self.is_incomplete |= further.is_incomplete;
        self.omitted = self.omitted.take().or(further.omitted);
        self.lapsed |= further.lapsed;
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

    /// The verdict on the whole so far: violated if it was once; inconclusive if it was never decided, is inconclusive at
    /// the end, or depends on messages that were not evaluated.
    pub fn outcome(&self) -> Verdict {
        let is_open = self.undecided() || self.open || self.is_incomplete || self.unchecked > 0;
        match self.judgement() {
            Some(judgement) => judgement.verdict,
            // An assert is judged at the end.
            None if self.is_assert => Verdict::Inconclusive,
            None if self.violations > 0 => Verdict::Violated,
            None if is_open => Verdict::Inconclusive,
            None => Verdict::Satisfied,
        }
    }

    /// Whether it was neither satisfied nor violated at any time.
    pub fn undecided(&self) -> bool {
        // An assert is judged when the run is over.
        !self.decided && (self.assertion.is_none() || self.judgement().is_some())
    }
}

/// The values for which a property turned violated, as texts.
fn witness(
    report: &Report,
    from: ReportSource<'_>,
    variables: &[(VariableId, String)],
) -> Vec<(String, String)> {
    let mut values = Vec::new();
    if !variables.is_empty() {
        from.monitor.write_witness(report, from.block, &mut values);
    }
    // In the order of the quantifiers.
    let text = |(id, name): &(VariableId, String)| {
        let (_, value) = values.iter().find(|(of, _)| of == id)?;
        Some((name.clone(), value_text(value)))
    };
    variables.iter().filter_map(text).collect()
}

/// A [`FirstViolation`] in a snapshot: the parameters, the step, the time in nanoseconds and the values.
type SavedFirst = (String, Option<u64>, i64, Vec<(String, String)>);

/// [`PropertyStatistics`] in a snapshot: times in nanoseconds, verdicts by their names.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct SavedStatistics {
    inconclusive: u64,
    violations: u64,
    first: Option<SavedFirst>,
    last: Option<String>,
    open: bool,
    decided: bool,
    about: Option<(i64, bool)>,
    since: u64,
    least_robustness: Option<f64>,
    violated: SavedViolations,
    #[serde(default)]
    measured: Option<Measured>,
    is_incomplete: bool,
    lapsed: bool,
}

impl PropertyStatistics {
    pub(crate) fn saved(&self) -> SavedStatistics {
        let first = |first: &FirstViolation| {
            (first.parameters.clone(), first.step, first.time.as_nanos(), first.values.clone())
        };
        SavedStatistics {
            inconclusive: self.inconclusive,
            violations: self.violations,
            first: self.first.as_ref().map(first),
            last: self.last.map(|verdict| verdict.as_str().to_owned()),
            open: self.open,
            decided: self.decided,
            about: self.about.map(|(time, is_later)| (time.as_nanos(), is_later)),
            since: self.since,
            least_robustness: self.least_robustness,
            violated: self.violated.saved(),
            measured: self.assertion.as_ref().map(|assertion| assertion.measured.clone()),
            is_incomplete: self.is_incomplete,
            lapsed: self.lapsed,
        }
    }

    pub(crate) fn restore(&mut self, saved: SavedStatistics) {
        let SavedStatistics { inconclusive, violations, first, last, open, decided, about, since, .. } =
            saved;
        let SavedStatistics { least_robustness, violated, measured, is_incomplete, lapsed, .. } = saved;
        (self.is_incomplete, self.lapsed) = (is_incomplete, lapsed);
        self.least_robustness = least_robustness.filter(|least| !least.is_nan());
        self.violated.restore(violated);
        if let Some((assertion, measured)) = self.assertion.as_mut().zip(measured) {
            assertion.measured = measured;
        }
        let time = Timestamp::from_nanos;
        (self.inconclusive, self.violations, self.open) = (inconclusive, violations, open);
        (self.decided, self.since) = (decided, since);
        self.first = first.map(|(parameters, step, at, values)| FirstViolation {
            parameters,
            step,
            time: time(at),
            values,
        });
        let all = [Verdict::Satisfied, Verdict::Violated, Verdict::Inconclusive];
        self.last = all.into_iter().find(|verdict| last.as_deref() == Some(verdict.as_str()));
        self.about = about.map(|(at, is_later)| (time(at), is_later));
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
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
        statistics.add(&report(0, None, Verdict::Satisfied), None);
        statistics.add(&report(2, Some(0), Verdict::Inconclusive), None);
        assert_eq!((statistics.last, statistics.inconclusive), (Some(Verdict::Satisfied), 1));
        statistics.add(&report(9, Some(5), Verdict::Violated), None);
        let first = statistics.first.as_ref().map(|first| (first.step, first.time));
        assert_eq!((statistics.last, first), (Some(Verdict::Violated), Some((None, at(5)))));
        let program = rondel_engine::Program::compile(&Spec::default()).unwrap();
        let monitor = Monitor::new(std::sync::Arc::new(program));
        let end = EndOf { event: at(9), time: at(9), steps: 3 };
        let mut closed = statistics.clone();
        closed.end(end, 0, &monitor);
        assert!(!closed.open);
        // A verdict that is open at the end stays open, although later times are known.
        statistics.over();
        statistics.add(&report(9, Some(4), Verdict::Inconclusive), None);
        statistics.end(end, 0, &monitor);
        assert!(statistics.open && statistics.last == Some(Verdict::Violated));
    }
}
