//! Collection of the verdicts of one recording into its results.

use std::collections::HashMap;

use rondel_event::{Value, Verdict};
use rondel_runtime::text::{parameters_text, value_text};
use rondel_runtime::{Explanation, Report};

use crate::results::{Change, EvidencePoint, Judged, Outcome, Signal, SignalKind, Violation};

/// Gathers the verdicts of one recording. It needs a report for every change of a verdict.
#[derive(Clone, Debug)]
pub struct Collector {
    properties: Vec<Gathered>,
}

/// The verdicts of one property so far.
#[derive(Clone, Debug, Default)]
struct Gathered {
    count: u64,
    violations: Vec<Violation>,
    /// The instances that are not satisfied.
    open: HashMap<String, Verdict>,
    /// Number of violated ones among them.
    violated: usize,
    /// The verdict of all instances together, in order of time.
    changes: Vec<VerdictChange>,
    /// Whether every verdict is kept, even an unchanged one: verdicts about earlier times may come later, and the
    /// verdict after those is known only this way.
    has_all: bool,
}

/// Beginning of a verdict: a time point, or the open interval after it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Edge {
    /// Time in nanoseconds.
    time: i64,
    is_after: bool,
}

/// Change of a verdict.
#[derive(Clone, Copy, Debug)]
struct VerdictChange {
    from: Edge,
    verdict: Outcome,
}

impl Collector {
    /// Creates a collector for this many properties.
    pub fn new(properties: usize) -> Collector {
        Collector { properties: vec![Gathered::default(); properties] }
    }

    /// Keeps every verdict of these properties, which have future operators, and not only changes.
    pub fn take_all_of(&mut self, looks_ahead: &[bool]) {
        for (gathered, looks_ahead) in self.properties.iter_mut().zip(looks_ahead) {
            gathered.has_all = *looks_ahead;
        }
    }

    /// Adds a verdict.
    pub fn take(&mut self, report: &Report<'_>) {
        let Some(gathered) = self.properties.get_mut(report.property().position as usize) else { return };
        if !report.changed() && !gathered.has_all {
            return;
        }
        let parameters = match report.parameters() {
            [] => String::new(),
            parameters => parameters_text(parameters),
        };
        gathered.take(report, parameters);
    }

    /// Returns the results. `outcome` gives the outcome of each property, by its position, with a remark and the
    /// reasons for which it is vacuous.
    pub fn finish(self, mut outcome: impl FnMut(usize) -> (Outcome, String, Vec<String>)) -> Vec<Judged> {
        let judged = |(i, gathered): (usize, Gathered)| {
            let (outcome, remark, vacuous) = outcome(i);
            gathered.finish(Judged { outcome, remark, vacuous, ..Judged::default() })
        };
        self.properties.into_iter().enumerate().map(judged).collect()
    }
}

impl Gathered {
    fn take(&mut self, report: &Report<'_>, parameters: String) {
        let about = report.about().unwrap_or(report.time()).as_nanos();
        if report.changed() && report.verdict() == Verdict::Violated {
            self.count += 1;
            if self.violations.len() < Judged::MOST_VIOLATIONS {
                self.violations.push(violation(report, about, parameters.clone()));
            }
        }
        let before = match report.verdict() {
            Verdict::Satisfied => self.open.remove(&parameters),
            verdict => self.open.insert(parameters, verdict),
        };
        self.violated -= usize::from(before == Some(Verdict::Violated));
        self.violated += usize::from(report.verdict() == Verdict::Violated);
        let verdict = match (self.violated, self.open.len()) {
            (1.., _) => Outcome::Violated,
            (_, 1..) => Outcome::Inconclusive,
            _ => Outcome::Satisfied,
        };
        self.change(Edge { time: about, is_after: report.is_after() }, verdict);
    }

    /// Records a change of the verdict. Verdicts about earlier times may come later.
    fn change(&mut self, from: Edge, verdict: Outcome) {
        if !self.has_all
            && self.changes.last().is_some_and(|last| last.verdict == verdict && last.from <= from)
        {
            return;
        }
        if self.changes.len() == Judged::MOST_CHANGES {
            self.thin();
        }
        let at = self.changes.partition_point(|change| change.from <= from);
        let before = self.changes[..at].iter().rev().take_while(|change| change.from == from);
        // Keep a worse verdict beside the one that followed at the same time.
        let is_kept = before.clone().count() == 1
            && before.clone().all(|change| worse(change.verdict) > worse(verdict));
        match at.checked_sub(1).and_then(|before| self.changes.get_mut(before)) {
            Some(same) if same.from == from && !is_kept => same.verdict = verdict,
            _ => self.changes.insert(at, VerdictChange { from, verdict }),
        }
    }

    /// Reduces the changes to at most half: each of equal intervals keeps its worst verdict and its last one. A verdict
    /// is prolonged by no more than an interval.
    fn thin(&mut self) {
        let [Some(first), Some(last)] = [self.changes.first(), self.changes.last()] else { return };
        let begin = i128::from(first.from.time);
        let span = i128::from(last.from.time) - begin + 1;
        let stretch = |change: &VerdictChange| (i128::from(change.from.time) - begin) * STRETCHES / span;
        let mut thinned = Vec::with_capacity(Judged::MOST_CHANGES);
        for together in self.changes.chunk_by(|a, b| stretch(a) == stretch(b)) {
            let worst = together.iter().map(|change| change.verdict).max_by_key(|verdict| worse(*verdict));
            let (Some(verdict), [first, .., last] | [last @ first]) = (worst, together) else { continue };
            thinned.push(VerdictChange { verdict, ..*first });
            thinned.extend((last.verdict != verdict).then_some(*last));
        }
        self.changes = thinned;
    }

    fn finish(self, mut judged: Judged) -> Judged {
        let change = |change: &VerdictChange| Change { time_ns: change.from.time, verdict: change.verdict };
        (judged.count, judged.violations) = (self.count, self.violations);
        judged.changes = self.changes.iter().map(change).collect();
        judged.changes.dedup_by_key(|change| change.verdict);
        judged
    }
}

/// Number of intervals that changes are reduced to when there are too many.
const STRETCHES: i128 = Judged::MOST_CHANGES as i128 / 4;

/// Rank of a verdict: the greater, the worse.
fn worse(verdict: Outcome) -> u8 {
    match verdict {
        Outcome::Violated => 2,
        Outcome::Satisfied => 0,
        _ => 1,
    }
}

fn violation(report: &Report<'_>, time_ns: i64, parameters: String) -> Violation {
    let values = report.values().map(|(name, value)| (name.to_owned(), value_text(value)));
    let explanation = report.explanation();
    Violation {
        time_ns,
        certain_ns: report.time().as_nanos(),
        step: report.step(),
        parameters,
        values: values.collect(),
        evidence: explanation.map(evidence).unwrap_or_default(),
        signals: explanation.map(signals).unwrap_or_default(),
    }
}

fn evidence(explanation: &Explanation) -> Vec<EvidencePoint> {
    let evidence = |point: &rondel_runtime::TimePoint| EvidencePoint {
        time_ns: point.time.as_nanos(),
        after: point.after,
        topic: point.topic.clone(),
        values: {
            let values = point.values.iter().map(|value| value.as_ref().map(value_text));
            explanation.names.iter().cloned().zip(values).collect()
        },
    };
    explanation.points.iter().map(evidence).collect()
}

fn signals(explanation: &Explanation) -> Vec<Signal> {
    explanation.signals.iter().map(Signal::from).collect()
}

impl From<&rondel_runtime::Signal> for Signal {
    fn from(signal: &rondel_runtime::Signal) -> Signal {
        type Values = [(rondel_event::Timestamp, Option<Value>)];
        let values = |values: &Values| {
            let value = |(time, value): &(rondel_event::Timestamp, Option<Value>)| {
                (time.as_nanos(), json(value.as_ref()))
            };
            values.iter().map(value).collect()
        };
        let known = signal.values.iter().find_map(|(_, value)| value.as_ref());
        Signal {
            name: signal.name.clone(),
            kind: match known {
                Some(Value::Time(_)) => SignalKind::Time,
                Some(Value::Duration(_)) => SignalKind::Duration,
                _ => SignalKind::Number,
            },
            thresholds: signal.thresholds.clone(),
            values: values(&signal.values),
            upper: values(&signal.upper),
        }
    }
}

/// Text of a value: numbers and booleans as such, times and durations in seconds, texts in quotes.
fn json(value: Option<&Value>) -> serde_json::Value {
    match value {
        None => serde_json::Value::Null,
        Some(Value::Bool(value)) => (*value).into(),
        Some(Value::Int(value)) => (*value).into(),
        Some(Value::Float(value)) => (*value).into(),
        Some(Value::Time(nanos) | Value::Duration(nanos)) => (*nanos as f64 / 1e9).into(),
        Some(other) => value_text(other).into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn edge((time, is_after): (i64, bool)) -> Edge {
        Edge { time, is_after }
    }

    #[test]
    fn a_violation_of_no_length_is_seen() {
        let changes = |changes: &[((i64, bool), Outcome)]| {
            let mut gathered = Gathered::default();
            changes.iter().for_each(|&(from, verdict)| gathered.change(edge(from), verdict));
            let changes = gathered.finish(Judged::default()).changes;
            changes.iter().map(|change| (change.time_ns, change.verdict)).collect::<Vec<_>>()
        };
        use Outcome::{Inconclusive, Satisfied, Violated};
        let seen = [(0, Satisfied), (3, Violated), (3, Satisfied)];
        assert_eq!(changes(&[((0, false), Satisfied), ((3, false), Violated), ((3, true), Satisfied)]), seen);
        // The worst and the last of several simultaneous messages are kept.
        let same = [((3, false), Violated), ((3, false), Inconclusive), ((3, false), Satisfied)];
        assert_eq!(changes(&[&[((0, false), Satisfied)][..], &same].concat()), seen);
        // A verdict about the time itself may become certain last.
        assert_eq!(changes(&[((3, true), Satisfied), ((3, false), Violated)]), seen[1..]);
    }

    #[test]
    fn verdict_after_a_late_one_is_known() {
        let mut gathered = Gathered { has_all: true, ..Gathered::default() };
        let times = [-1, 1, 2, 3].map(|time| ((time, false), Outcome::Satisfied));
        times.iter().for_each(|&(from, verdict)| gathered.change(edge(from), verdict));
        gathered.change(edge((0, false)), Outcome::Violated);
        let changes = gathered.finish(Judged::default()).changes;
        let times: Vec<i64> = changes.iter().map(|change| change.time_ns).collect();
        assert_eq!(times, [-1, 0, 1]);
    }

    #[test]
    fn a_violation_is_not_drawn_longer_for_being_long_ago() {
        const MESSAGES: i64 = 100_000;
        let mut gathered = Gathered { has_all: true, ..Gathered::default() };
        for time in 0..MESSAGES {
            let verdict = if time == 10 { Outcome::Violated } else { Outcome::Satisfied };
            gathered.change(edge((time, false)), verdict);
        }
        let changes = gathered.finish(Judged::default()).changes;
        let violated =
            changes.iter().zip(&changes[1..]).filter(|(change, _)| change.verdict == Outcome::Violated);
        let lasted: i64 = violated.map(|(change, next)| next.time_ns - change.time_ns).sum();
        assert!(0 < lasted && lasted < MESSAGES / 200, "{lasted}");
        assert_eq!(changes.last().unwrap().verdict, Outcome::Satisfied);
    }

    /// Every violation is in the picture.
    #[test]
    fn many_changes_are_thinned() {
        for (count, violated_every) in
            [(10, 3), (1_999, 2), (2_000, 2), (2_001, 2), (50_000, 7), (50_000, 40_000)]
        {
            let mut gathered = Gathered::default();
            let mut time = 0;
            for at in 0..count {
                let is_violated = at % violated_every == violated_every - 1;
                let verdict = if is_violated { Outcome::Violated } else { Outcome::Satisfied };
                gathered.change(edge((time, false)), verdict);
                time += 1 + at % 13;
                assert!(gathered.changes.len() <= Judged::MOST_CHANGES);
            }
            let judged = gathered.finish(Judged::default());
            assert!(judged.changes.iter().any(|change| change.verdict == Outcome::Violated));
            assert!(judged.changes.is_sorted_by_key(|change| change.time_ns));
        }
    }
}
