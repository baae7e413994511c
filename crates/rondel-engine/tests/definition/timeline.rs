//! Timelines: the samples of a trace in each time model.
//!
//! In discrete time and points, samples are the events. In dense time there is truth at every real time, but
//! it changes only at *critical* times: those of events, and sums and differences of these and bounds.
//! Samples are thus each critical time, and one time in the middle between neighbours. Operators are defined
//! by the samples in an interval, in all models alike.

use std::collections::BTreeSet;
use std::ops::RangeInclusive;

use rondel_spec::{Expr, ExprId, Machine, Spec, TimeModel};

use super::Timed;

/// Twice the time or step, so that the middle of an interval is an integer; wide enough for any sum.
pub type Clock = i128;

/// A time point, or the open interval between two.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sample {
    pub from: Clock,
    pub to: Clock,
    /// The event at this time point.
    pub event: Option<usize>,
    /// The last event at or before it.
    pub latest: usize,
}

impl Sample {
    pub fn is_span(&self) -> bool {
        self.from < self.to
    }

    /// The time that represents the sample.
    pub fn at(&self) -> Clock {
        (self.from + self.to) / 2
    }

    /// Whether the sample intersects the closed interval.
    pub fn meets(&self, low: Clock, high: Clock) -> bool {
        let within = if self.is_span() {
            self.from < high && low < self.to
        } else {
            self.from <= high && low <= self.to
        };
        low <= high && within
    }
}

/// The samples of a trace, in order. Nothing exists before the first event.
#[derive(Clone, Debug)]
pub struct Timeline<'a> {
    pub model: TimeModel,
    pub trace: &'a [Timed],
    pub samples: Vec<Sample>,
    /// Samples at this time or later are not decided, except for those in the list.
    pub now: Clock,
}

/// Limit of critical times; larger cases take too long to check naively.
const MOST: usize = 2000;

impl<'a> Timeline<'a> {
    /// The trace until `now`: further events may occur at that time, or at that of the last event if it is
    /// later. In dense time, truth may change at the critical times.
    pub fn new(model: TimeModel, trace: &'a [Timed], now: i64, critical: &BTreeSet<Clock>) -> Timeline<'a> {
        let now = trace.last().map_or(now, |last| last.time.max(now));
        let clock = |(i, event): (usize, &Timed)| match model {
            TimeModel::Steps => 2 * i as Clock,
            TimeModel::Points | TimeModel::Dense => 2 * Clock::from(event.time),
        };
        let event = |(i, event)| {
            let at = clock((i, event));
            Sample { from: at, to: at, event: Some(i), latest: i }
        };
        let mut samples: Vec<Sample> = trace.iter().enumerate().map(event).collect();
        let now = match model {
            TimeModel::Steps => 2 * trace.len() as Clock,
            TimeModel::Points | TimeModel::Dense => 2 * Clock::from(now),
        };
        if model == TimeModel::Dense {
            samples = between(&samples, critical, now);
        }
        Timeline { model, trace, samples, now }
    }

    /// Adds a sample at the end without an event of the trace: another event had that time, and none before it follows.
    pub fn with_end(mut self) -> Timeline<'a> {
        if let Some(Sample { latest, .. }) = self.samples.last().copied().filter(Sample::is_span) {
            self.samples.push(Sample { from: self.now, to: self.now, event: None, latest });
        }
        self
    }

    /// The samples of the events.
    pub fn events(&self) -> impl Iterator<Item = usize> + '_ {
        (0..self.samples.len()).filter(|&k| self.samples[k].event.is_some())
    }

    /// The prefix up to this sample.
    pub fn until(&self, sample: usize) -> Timeline<'a> {
        Timeline { samples: self.samples[..=sample].to_vec(), ..self.clone() }
    }
}

/// Adds critical instants without events, and the intervals between all of them.
fn between(events: &[Sample], critical: &BTreeSet<Clock>, now: Clock) -> Vec<Sample> {
    let Some(first) = events.first() else { return Vec::new() };
    let of_events = events.iter().map(|event| event.from);
    let inner = critical.iter().copied().filter(|&c| first.from < c && c < now);
    let times: BTreeSet<Clock> = of_events.chain(inner).chain([now]).collect();
    let mut samples: Vec<Sample> = Vec::new();
    let mut latest = 0;
    for &time in &times {
        if let Some(before) = samples.last().map(|s| s.to) {
            samples.push(Sample { from: before, to: time, event: None, latest });
        }
        let here: Vec<&Sample> = events.iter().filter(|event| event.from == time).collect();
        if here.is_empty() && time < now {
            samples.push(Sample { from: time, to: time, event: None, latest });
        }
        for event in here {
            latest = event.latest;
            samples.push(*event);
        }
    }
    samples
}

/// Times at which the truth of any node may change, at events or between.
pub fn critical(spec: &Spec, trace: &[Timed], now: i64) -> BTreeSet<Clock> {
    let now = trace.last().map_or(now, |last| last.time.max(now));
    let leaf: BTreeSet<Clock> =
        trace.iter().map(|e| e.time).chain([now]).map(|t| 2 * Clock::from(t)).collect();
    let leaf: BTreeSet<Clock> = leaf.into_iter().chain(super::linear::crossings(spec, trace)).collect();
    let within = trace.first().map_or(0, |e| 2 * Clock::from(e.time))..=2 * Clock::from(now);
    let mut machines = vec![leaf.clone(); spec.machines.len()];
    loop {
        let nodes = of_nodes(spec, &leaf, &within, &machines);
        let moves = of_machines(spec, &nodes, &within, &machines);
        if moves == machines {
            return nodes.into_iter().chain(machines).flatten().collect();
        }
        machines = moves;
    }
}

/// Times at which each machine may take a transition, given such times so far and those of its guards: then,
/// and when a bound expires from there.
fn of_machines(
    spec: &Spec,
    nodes: &[BTreeSet<Clock>],
    within: &RangeInclusive<Clock>,
    machines: &[BTreeSet<Clock>],
) -> Vec<BTreeSet<Clock>> {
    let of_machine = |(machine, times): (&Machine, &BTreeSet<Clock>)| {
        let bounds = machine.transitions.iter().flat_map(|t| t.after.into_iter().chain(t.within));
        let shifts: BTreeSet<Clock> = bounds.map(|bound| 2 * Clock::from(bound)).collect();
        let conditions = machine.conditions().flat_map(|condition| &nodes[condition.index()]);
        let mut times: BTreeSet<Clock> = times.iter().chain(conditions).copied().collect();
        let mut open: Vec<Clock> = times.iter().copied().collect();
        while let Some(time) = open.pop() {
            let later = shifts.iter().map(|shift| time + shift);
            open.extend(later.filter(|time| within.contains(time) && times.insert(*time)));
            assert!(times.len() < MOST, "too many critical times");
        }
        times
    };
    spec.machines.iter().zip(machines).map(of_machine).collect()
}

/// Times at which the truth of each node may change, if machines take transitions at these times only.
fn of_nodes(
    spec: &Spec,
    leaf: &BTreeSet<Clock>,
    within: &RangeInclusive<Clock>,
    machines: &[BTreeSet<Clock>],
) -> Vec<BTreeSet<Clock>> {
    let mut of_nodes: Vec<BTreeSet<Clock>> = Vec::new();
    for expr in &spec.nodes {
        let mut times = leaf.clone();
        for operand in expr.operands() {
            times.extend(&of_nodes[operand.index()]);
        }
        let shifts: Vec<Clock> = match expr {
            Expr::Once(b, _) | Expr::Historically(b, _) | Expr::Since(b, ..) => {
                [Some(b.lower), b.upper].into_iter().flatten().map(Clock::from).collect()
            }
            Expr::Eventually(b, _) | Expr::Always(b, _) | Expr::Until(b, ..) => {
                [Some(b.lower), b.upper].into_iter().flatten().map(|s| -Clock::from(s)).collect()
            }
            Expr::Window { over, .. } | Expr::Debounce(over, _) => vec![Clock::from(*over)],
            Expr::Compare(_, x, y) => {
                age_and_constant(spec, *x, *y).map(|(_, c)| Clock::from(c)).into_iter().collect()
            }
            Expr::InState(m, _) | Expr::Ambiguous(m) | Expr::MachineVariable(m, ..) => {
                times.extend(&machines[m.0 as usize]);
                Vec::new()
            }
            _ => Vec::new(),
        };
        let shifted: Vec<Clock> = shifts.iter().flat_map(|s| times.iter().map(move |t| t + 2 * s)).collect();
        times.extend(shifted.into_iter().filter(|t| within.contains(t)));
        assert!(times.len() < MOST, "too many critical times");
        of_nodes.push(times);
    }
    of_nodes
}

/// The topic of an age, and the constant that it is compared with.
pub fn age_and_constant(spec: &Spec, x: ExprId, y: ExprId) -> Option<(usize, i64)> {
    use rondel_event::Value::Duration;
    match (&spec.nodes[x.index()], &spec.nodes[y.index()]) {
        (Expr::Age(topic), Expr::Literal(Duration(c))) | (Expr::Literal(Duration(c)), Expr::Age(topic)) => {
            Some((topic.index(), *c))
        }
        _ => None,
    }
}
