//! From the verdicts of one recording to its results.

use std::collections::HashMap;

use rondel_event::{Timestamp, Value, Verdict};
use rondel_runtime::text::{parameters_text, value_text};
use rondel_runtime::{Explanation, Report};

use crate::results::{Change, Judged, Moment, Outcome, Signal, Violation};

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
    /// How many of them are violated.
    violated: usize,
    /// The verdict of all instances together, in order of time.
    changes: Vec<Change>,
    /// Whether more changes came than are kept: durations end there.
    full: bool,
}

impl Collector {
    /// For this many properties.
    pub fn new(properties: usize) -> Collector {
        Collector { properties: vec![Gathered::default(); properties] }
    }

    /// Takes a verdict.
    pub fn take(&mut self, report: &Report<'_>) {
        if !report.changed() {
            return;
        }
        let Some(gathered) = self.properties.get_mut(report.property().position as usize) else { return };
        let parameters = match report.parameters() {
            [] => String::new(),
            parameters => parameters_text(parameters),
        };
        gathered.take(report, parameters);
    }

    /// The results, at the time of the last message: how each property turned out, by its position, comes from
    /// `outcome`, with a remark and the reasons for which it is vacuous.
    pub fn finish(
        self,
        end: Option<Timestamp>,
        mut outcome: impl FnMut(usize) -> (Outcome, String, Vec<String>),
    ) -> Vec<Judged> {
        let judged = |(i, gathered): (usize, Gathered)| {
            let (outcome, remark, vacuous) = outcome(i);
            gathered.finish(
                end.map(Timestamp::as_nanos),
                Judged { outcome, remark, vacuous, ..Judged::default() },
            )
        };
        self.properties.into_iter().enumerate().map(judged).collect()
    }
}

impl Gathered {
    fn take(&mut self, report: &Report<'_>, parameters: String) {
        let about = report.about().unwrap_or(report.time()).as_nanos();
        if report.verdict() == Verdict::Violated {
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
        self.change(about, verdict);
    }

    /// Notes that the verdict is another from a time on. Verdicts about earlier times may come later.
    fn change(&mut self, time_ns: i64, verdict: Outcome) {
        if self.changes.last().is_some_and(|last| last.verdict == verdict && last.time_ns <= time_ns) {
            return;
        }
        if self.changes.len() == Judged::MOST_CHANGES {
            self.full = true;
            return;
        }
        let at = self.changes.partition_point(|change| change.time_ns <= time_ns);
        match at.checked_sub(1).and_then(|before| self.changes.get_mut(before)) {
            Some(same) if same.time_ns == time_ns => same.verdict = verdict,
            _ => self.changes.insert(at, Change { time_ns, verdict }),
        }
    }

    fn finish(self, end: Option<i64>, mut judged: Judged) -> Judged {
        let ends = self.changes.iter().skip(1).map(|change| change.time_ns);
        let ends = ends.chain(end.filter(|_| !self.full));
        let mut run = 0;
        for (change, end) in self.changes.iter().zip(ends) {
            if change.verdict != Outcome::Violated {
                run = 0;
                continue;
            }
            let span = end.saturating_sub(change.time_ns).max(0);
            run += span;
            judged.violated_ns += span;
            judged.longest_ns = judged.longest_ns.max(run);
        }
        (judged.count, judged.violations, judged.changes) = (self.count, self.violations, self.changes);
        judged
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

fn evidence(explanation: &Explanation) -> Vec<Moment> {
    let moment = |point: &rondel_runtime::TimePoint| Moment {
        time_ns: point.time.as_nanos(),
        after: point.after,
        topic: point.topic.clone(),
        values: {
            let values = point.values.iter().map(|value| value.as_ref().map(value_text));
            explanation.names.iter().cloned().zip(values).collect()
        },
    };
    explanation.points.iter().map(moment).collect()
}

fn signals(explanation: &Explanation) -> Vec<Signal> {
    let signal = |signal: &rondel_runtime::Signal| Signal {
        name: signal.name.clone(),
        values: signal.values.iter().map(|(time, value)| (time.as_nanos(), json(value.as_ref()))).collect(),
    };
    explanation.signals.iter().map(signal).collect()
}

/// Numbers and truths as such, other values as text.
fn json(value: Option<&Value>) -> serde_json::Value {
    match value {
        None => serde_json::Value::Null,
        Some(Value::Bool(value)) => (*value).into(),
        Some(Value::Int(value)) => (*value).into(),
        Some(Value::Float(value)) => (*value).into(),
        Some(other) => value_text(other).into(),
    }
}
