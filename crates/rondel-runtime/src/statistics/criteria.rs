//! Acceptance criteria: measures the truth of the formulas of asserts over a run, and judges them at its end.

use rondel_engine::{Report, Withheld};
use rondel_event::{Comparison, Timestamp, Verdict};
use rondel_spec::{Criterion, Demand, Property, Spec, TimeModel};
use serde::{Deserialize, Serialize};

use crate::specification::looks_ahead;
use crate::text::{counted, grouped};

/// An assert during the run, and its judgement afterwards.
#[derive(Clone, Debug)]
pub(crate) struct Assertion {
    criterion: Criterion,
    axis: Axis,
    pub(crate) measured: Measured,
    pub(crate) judgement: Option<Judgement>,
}

/// Result of an assert.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Judgement {
    /// Verdict.
    pub verdict: Verdict,
    /// Measurement in words.
    pub text: String,
}

/// Circumstances that make the verdict on an assert uncertain.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Uncertainty {
    /// No verdict followed the missed messages.
    pub(crate) unjudged: bool,
    /// Messages were refused at a limit, or verdicts that are only counted were withheld.
    pub(crate) uncounted: bool,
    /// The recording was not read to its end.
    pub(crate) broke_off: bool,
}

/// Unit in which stretches of truth are measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Axis {
    /// Positions are the numbers of events.
    Events,
    /// Positions are `2t` for a time `t` in nanoseconds, and `2t + 1` for the open interval after it.
    Time,
    /// Verdicts are unordered, or of several instances: they are only counted.
    None,
}

impl Axis {
    fn of(spec: &Spec, property: &Property) -> Axis {
        match property.time {
            _ if property.slice.is_some() || looks_ahead(spec, property.formula) => Axis::None,
            TimeModel::Steps | TimeModel::Points => Axis::Events,
            TimeModel::Dense => Axis::Time,
        }
    }

    fn position(self, report: &Report) -> i64 {
        match self {
            Axis::Events | Axis::None => report.step.saturating_sub(report.back) as i64,
            Axis::Time if report.withheld == Withheld::FromNow => instant(report.time).saturating_sub(1),
            Axis::Time => instant(report.about.unwrap_or(report.time)) + i64::from(report.after),
        }
    }

    /// The number of events, or the nanoseconds, from a position to a later one.
    fn measure(self, begin: i64, end: i64) -> u64 {
        match self {
            Axis::Events | Axis::None => (end - begin) as u64,
            // An instant takes no time.
            Axis::Time => (end.div_euclid(2) - begin.div_euclid(2)) as u64,
        }
    }

    /// A part of a measure in words: `5 s of 9 s`, `4 of 7 events`.
    fn of_whole(self, part: u64, whole: u64) -> String {
        match self {
            Axis::Events | Axis::None => format!("{} of {}", grouped(part), self.text(whole)),
            Axis::Time => format!("{} of {}", self.text(part), self.text(whole)),
        }
    }

    /// A measure in words.
    fn text(self, measure: u64) -> String {
        match self {
            Axis::Events | Axis::None => counted(measure, "event", "events"),
            Axis::Time => format!("{} s", Timestamp::from_nanos(measure as i64)),
        }
    }
}

/// The position of an instant in dense time.
fn instant(time: Timestamp) -> i64 {
    time.as_nanos().saturating_mul(2)
}

/// The truth of the formula of an assert so far: stretches within the span of the assert.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct Measured {
    /// The position of the first event.
    origin: Option<i64>,
    /// The current stretch: its beginning, and the truth in it.
    current: Option<(i64, Truth)>,
    /// The last truth that was not withheld, and the position from which on verdicts were, if they are.
    before: Option<(Truth, i64)>,
    satisfied: Stretches,
    violated: Stretches,
    /// Unknown measure.
    unknown: u64,
    /// Number of times that the formula became true.
    begun: u64,
    /// Number of times that it certainly became true, whatever was missed.
    certainly_begun: u64,
    /// Whether relevant messages may have been missed.
    unseen: bool,
    /// Whether it is uncertain which messages or times the span of the assert covers.
    shifted: bool,
    /// Beginning of the last span of missed messages.
    missed: Option<i64>,
}

/// The truth of the formula of an assert.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
enum Truth {
    True,
    False,
    Unknown,
    /// It depends on missed messages.
    Withheld,
}

/// Stretches with one truth.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
struct Stretches {
    count: u64,
    total: u64,
    longest: u64,
    /// The position of the first.
    first: Option<i64>,
    /// Measure of the longest stretch that is certain, whatever was missed; `None` if none is certain.
    certain: Option<u64>,
}

impl Stretches {
    fn add(&mut self, begin: i64, measure: u64, is_certain: bool) {
        self.count += 1;
        self.total += measure;
        self.longest = self.longest.max(measure);
        self.first.get_or_insert(begin);
        if is_certain {
            self.certain = self.certain.max(Some(measure));
        }
    }
}

impl Assertion {
    /// The assert at a property, if it is one.
    pub(crate) fn of(spec: &Spec, property: &Property) -> Option<Box<Assertion>> {
        let criterion = property.criterion?;
        let axis = Axis::of(spec, property);
        Some(Box::new(Assertion { criterion, axis, measured: Measured::default(), judgement: None }))
    }

    /// Adds a verdict that differs from the previous one.
    pub(crate) fn add(&mut self, report: &Report) {
        let truth = match report.verdict {
            Verdict::Satisfied => Truth::True,
            Verdict::Violated => Truth::False,
            Verdict::Inconclusive if report.withheld != Withheld::No => Truth::Withheld,
            Verdict::Inconclusive => Truth::Unknown,
        };
        let position = self.axis.position(report);
        if self.axis == Axis::None {
            return self.count(position, truth);
        }
        self.measured.origin.get_or_insert(position);
        self.turn(position, truth);
    }

    /// Adds a verdict where verdicts are only counted.
    fn count(&mut self, position: i64, truth: Truth) {
        let measured = &mut self.measured;
        match truth {
            Truth::True => {
                measured.satisfied.add(position, 0, true);
                measured.begun += 1;
                // The uncertain instance is not recorded.
                if !measured.unseen || measured.certainly_begun == 0 {
                    measured.certainly_begun += 1;
                }
            }
            Truth::False => measured.violated.add(position, 0, true),
            Truth::Unknown => {}
            Truth::Withheld => measured.unseen = true,
        }
    }

    /// Begins a stretch if the truth differs from the previous one.
    fn turn(&mut self, position: i64, truth: Truth) {
        let last = self.measured.current.map(|(_, last)| last);
        if last == Some(truth) {
            return;
        }
        self.close(position);
        let (from, until) = self.span();
        let measured = &mut self.measured;
        measured.current = Some((position, truth));
        let (before, since) = match last {
            Some(Truth::Withheld) => {
                measured.before.map_or((None, i64::MIN), |(truth, at)| (Some(truth), at))
            }
            last => (last, position),
        };
        match truth {
            Truth::True => {
                let is_inside = |position: i64| (from..until).contains(&position);
                // The truth changed somewhere since then.
                let is_certain = before != Some(Truth::True) && from <= since && !measured.shifted;
                if is_inside(position) {
                    measured.begun += 1;
                    measured.certainly_begun += u64::from(is_certain);
                    measured.unseen |= !is_certain && matches!(self.criterion.demand, Demand::Count(..));
                }
            }
            Truth::Withheld => measured.before = last.map(|last| (last, position)),
            Truth::False | Truth::Unknown => {}
        }
    }

    /// Records missed messages before the next event, after this many events and at this time. Unless `is_read`,
    /// verdicts do not depend on them.
    pub(crate) fn miss(&mut self, events: u64, time: Timestamp, is_read: bool) {
        let (_, until) = self.span();
        let is_numbered = self.criterion.span.is_some();
        let position = match self.axis {
            Axis::Events => events as i64,
            Axis::Time => instant(time).saturating_add(1),
            Axis::None => {
                self.measured.unseen |= is_read;
                return;
            }
        };
        let measured = &mut self.measured;
        let counts = is_numbered || matches!(self.criterion.demand, Demand::Share(..) | Demand::Longest(..));
        if events == 0 && is_numbered && self.axis == Axis::Time {
            // The span begins with the first message.
            (measured.unseen, measured.shifted) = (true, true);
        }
        if position >= until || !is_read && !counts {
            return;
        }
        if is_read {
            measured.missed = Some(position);
        }
        if self.axis == Axis::Events {
            measured.unseen = true;
            let current = measured.current;
            if is_read && let Some((_, truth)) = current {
                // The stretch certainly continues only up to here.
                self.close(position);
                self.measured.current = Some((position, truth));
            }
            // It is uncertain which of the following messages the span covers.
            self.measured.shifted |= is_numbered && until != i64::MAX;
        } else if let Some((begin, Truth::Unknown)) = measured.current {
            self.turn(position.max(begin), Truth::Withheld);
        }
    }

    /// Ends the current stretch before a position.
    fn close(&mut self, end: i64) {
        let Some((begin, truth)) = self.measured.current else { return };
        let (from, until) = self.span();
        // Simultaneous messages have a verdict each on that instant.
        let is_instant = self.axis == Axis::Time && begin == end && (from..until).contains(&begin);
        let (begin, end) = (begin.max(from), end.min(until));
        if begin >= end && !is_instant {
            return;
        }
        let measure = self.axis.measure(begin, end);
        let is_certain = !self.measured.shifted;
        match truth {
            Truth::True => self.measured.satisfied.add(begin, measure, is_certain),
            Truth::False => self.measured.violated.add(begin, measure, is_certain),
            Truth::Unknown => self.measured.unknown += measure,
            Truth::Withheld => {
                self.measured.unknown += measure;
                self.measured.unseen = true;
            }
        }
    }

    /// Positions within the span of the assert: the first, and the one after the last.
    fn span(&self) -> (i64, i64) {
        let Some((from, until)) = self.criterion.span else { return (i64::MIN, i64::MAX) };
        let [from, until] = [from, until].map(|bound| i64::try_from(bound).unwrap_or(i64::MAX));
        match self.axis {
            Axis::Events | Axis::None => (from, until.saturating_add(1)),
            Axis::Time => {
                let origin = self.measured.origin.unwrap_or_default();
                let at = |bound: i64| origin.saturating_add(bound.saturating_mul(2));
                (at(from), at(until).saturating_add(1))
            }
        }
    }

    /// Judges the assert at the end of the run, after this many events and at this time.
    pub(crate) fn judge(&mut self, events: u64, time: Timestamp, uncertainty: Uncertainty) -> Verdict {
        let end = match self.axis {
            Axis::Events => events as i64,
            Axis::Time => instant(time).saturating_add(1),
            Axis::None => 0,
        };
        if self.axis != Axis::None {
            self.close(end);
        }
        let is_part = end < self.span().1;
        let missed = self.measured.missed.take();
        let measured = &mut self.measured;
        measured.current = None;
        measured.unseen |= uncertainty.unjudged && missed.is_some() || uncertainty.uncounted;
        let broke_off = uncertainty.broke_off && is_part;
        let is_open = measured.unseen || broke_off;
        let (verdict, mut parts) = self.result(is_open);
        if verdict == Verdict::Inconclusive && is_open {
            parts.extend(self.measured.unseen.then(|| "messages were not seen".to_owned()));
            parts.extend(broke_off.then(|| "the recording broke off".to_owned()));
        }
        self.judgement = Some(Judgement { verdict, text: parts.join("; ") });
        verdict
    }

    /// Verdict and its parts in words. If it `is_open`, messages that did not count could change the uncertain parts.
    fn result(&self, is_open: bool) -> (Verdict, Vec<String>) {
        let Measured { satisfied, violated, unknown, .. } = &self.measured;
        if satisfied.count == 0 && violated.count == 0 {
            return (Verdict::Inconclusive, vec!["nothing could be judged".to_owned()]);
        }
        let (verdict, is_final, text) = self.measure(is_open);
        // The verdict is final only if something was judged for certain.
        let is_final = is_final && (satisfied.certain.is_some() || violated.certain.is_some());
        let verdict = if is_open && !is_final { Verdict::Inconclusive } else { verdict };
        let judged = satisfied.total + violated.total;
        let judged = || format!("judged {}", self.axis.of_whole(judged, judged + unknown));
        let parts = [Some(text).filter(|text| !text.is_empty()), (*unknown > 0).then(judged)];
        (verdict, parts.into_iter().flatten().collect())
    }

    /// Verdict, whether it is certain whatever was missed, and the measurement in words.
    fn measure(&self, is_open: bool) -> (Verdict, bool, String) {
        let Assertion { criterion, axis, measured, .. } = self;
        let Measured { satisfied, violated, .. } = measured;
        let judged = satisfied.total + violated.total;
        let verdict = |holds: bool| if holds { Verdict::Satisfied } else { Verdict::Violated };
        let least = if is_open { "at least " } else { "" };
        match criterion.demand {
            Demand::Always => {
                let text = match violated.first {
                    None => String::new(),
                    Some(first) => format!("{}, first {}", self.extent(violated), self.place(first)),
                };
                (verdict(violated.count == 0), violated.certain.is_some(), text)
            }
            Demand::Ever => {
                let holds = satisfied.count > 0;
                let text = if holds { String::new() } else { "true at no time".to_owned() };
                (verdict(holds), satisfied.certain.is_some(), text)
            }
            Demand::Share(..) if judged == 0 => {
                (Verdict::Inconclusive, false, "no time could be judged".to_owned())
            }
            Demand::Share(comparison, share) => {
                let own = satisfied.total as f64 / judged as f64;
                // Never rounded up to what is demanded.
                let shown = (own * 1e4).floor() / 1e4;
                let text = format!("share {shown}, {}", axis.of_whole(satisfied.total, judged));
                (verdict(comparison.holds(own, share)), false, text)
            }
            Demand::Longest(comparison, limit) => {
                let certain = satisfied.certain.unwrap_or(0);
                let own = if is_open { certain } else { satisfied.longest };
                let text = format!("longest {least}{}", axis.text(own));
                (verdict(comparison.holds(own, limit)), is_final(comparison, certain, limit), text)
            }
            Demand::Count(comparison, limit) => {
                let certain = measured.certainly_begun;
                let own = if is_open { certain } else { measured.begun };
                let text = format!("{least}{}", counted(own, "time", "times"));
                (verdict(comparison.holds(own, limit)), is_final(comparison, certain, limit), text)
            }
        }
    }

    /// Number of times, or total time, that the formula was false.
    fn extent(&self, stretches: &Stretches) -> String {
        match self.axis {
            Axis::None => format!("violated {}", counted(stretches.count, "time", "times")),
            Axis::Events => format!("violated at {}", self.axis.text(stretches.total)),
            Axis::Time => format!("violated for {}", self.axis.text(stretches.total)),
        }
    }

    fn place(&self, position: i64) -> String {
        match self.axis {
            Axis::Events | Axis::None => format!("at step {position}"),
            Axis::Time => format!("at time {} s", Timestamp::from_nanos(position.div_euclid(2))),
        }
    }
}

/// Whether a comparison with a growing measure keeps its result.
fn is_final(comparison: Comparison, own: u64, limit: u64) -> bool {
    match comparison {
        Comparison::Less | Comparison::GreaterOrEqual => own >= limit,
        Comparison::LessOrEqual | Comparison::Greater | Comparison::Equal | Comparison::NotEqual => {
            own > limit
        }
    }
}

impl Judgement {
    /// The worse of two, of several recordings.
    pub(crate) fn worse(self, other: Judgement) -> Judgement {
        let rank = |judgement: &Judgement| match judgement.verdict {
            Verdict::Satisfied => 0,
            Verdict::Inconclusive => 1,
            Verdict::Violated => 2,
        };
        if rank(&other) > rank(&self) { other } else { self }
    }
}
