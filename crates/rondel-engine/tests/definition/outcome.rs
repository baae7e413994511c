//! Expected verdicts of a property at all time points and on the intervals after them.

use std::collections::{BTreeMap, BTreeSet};

use rondel_event::{Value, Verdict};
use rondel_spec::{Spec, TimeModel};

use super::Timed;
use super::evaluate::Evaluator;
use super::timeline::{Clock, Timeline, critical};

/// The verdict at a time point, or on the interval after it.
#[derive(Clone, Debug, PartialEq)]
pub struct Spot {
    pub time: i64,
    /// Whether it holds just after this time and until the next time point, instead of at this time.
    pub after: bool,
    /// The event of the time point.
    pub event: Option<usize>,
    /// None while it depends on events after the end of the trace.
    pub verdict: Option<Verdict>,
}

/// Verdicts of the properties without parameters, in order; none for the others.
pub fn outcomes(spec: &Spec, trace: &[Timed], now: i64) -> Vec<Vec<Spot>> {
    let chosen: Vec<usize> =
        (0..spec.properties.len()).filter(|&p| spec.properties[p].slice.is_none()).collect();
    let mut all = of_properties(spec, trace, now, &[], 0, &chosen, false);
    (0..spec.properties.len()).map(|p| all.remove(&p).unwrap_or_default()).collect()
}

/// Verdicts of properties over a trace that all of them receive, for an instance with these parameters from
/// its first event on.
pub fn of_properties(
    spec: &Spec,
    trace: &[Timed],
    now: i64,
    keys: &[Value],
    begin: usize,
    chosen: &[usize],
    has_end: bool,
) -> BTreeMap<usize, Vec<Spot>> {
    let mut result = BTreeMap::new();
    let mut critical_times: Option<BTreeSet<Clock>> = None;
    for model in [TimeModel::Steps, TimeModel::Points, TimeModel::Dense] {
        let chosen: Vec<usize> =
            chosen.iter().copied().filter(|&p| spec.properties[p].time == model).collect();
        if chosen.is_empty() {
            continue;
        }
        if model == TimeModel::Dense && critical_times.is_none() {
            critical_times = Some(critical(spec, trace, now));
        }
        let none = BTreeSet::new();
        let timeline = Timeline::new(model, trace, now, critical_times.as_ref().unwrap_or(&none));
        let timeline = if has_end && model == TimeModel::Dense { timeline.with_end() } else { timeline };
        let mut evaluator = Evaluator::new(spec, &timeline, keys);
        evaluator.begin = begin;
        for p in chosen {
            if spec.properties[p].linear != evaluator.linear {
                evaluator = Evaluator::new(spec, &timeline, keys);
                evaluator.linear = spec.properties[p].linear;
            }
            if begin > 0 {
                let linear = evaluator.linear;
                evaluator = Evaluator::new(spec, &timeline, keys);
                (evaluator.begin, evaluator.linear) = (begin, linear);
                evaluator.know_keys(spec.properties[p].formula);
            }
            let column = evaluator.column(spec.properties[p].formula);
            let spots = timeline.samples.iter().zip(column.iter()).map(|(sample, datum)| Spot {
                time: match sample.event {
                    Some(i) => trace[i].time,
                    None => i64::try_from(sample.from / 2).unwrap(),
                },
                after: sample.is_span(),
                event: sample.event,
                verdict: datum.truth().verdict(),
            });
            result.insert(p, spots.collect());
        }
    }
    result
}

/// The first verdict, and all changes.
pub fn changes(spots: &[Spot]) -> Vec<Spot> {
    let mut changes: Vec<Spot> = Vec::new();
    for spot in spots {
        if changes.last().is_none_or(|last| last.verdict != spot.verdict) {
            changes.push(spot.clone());
        }
    }
    changes
}

/// The verdicts at the events.
pub fn at_events(spots: &[Spot]) -> Vec<Option<Verdict>> {
    spots.iter().filter(|spot| spot.event.is_some()).map(|spot| spot.verdict).collect()
}
