//! Properties with parameters: every instance is evaluated alone, over the events that it receives.

use std::collections::BTreeSet;

use rondel_event::{Read, TopicId, Value};
use rondel_spec::{ExprId, Property, Slice, SliceId, Spec, TimeModel};

use super::evaluate::Evaluator;
use super::outcome::{Spot, of_properties};
use super::timeline::{Timeline, critical};
use super::truth::Truth;
use super::{Timed, decode};

/// An instance, from its first event until it ends.
#[derive(Clone, Debug)]
pub struct Instance {
    pub keys: Vec<Value>,
    /// Index of its first event in the trace.
    pub first: usize,
    /// Index of the event at which it ended, if it did.
    pub ended: Option<usize>,
    /// Verdicts of the property; events have their indexes in the whole trace.
    pub spots: Vec<Spot>,
}

/// The parameters of an event on a topic that has them: none if one is missing or of another type.
fn keys_of(slice: &Slice, timed: &Timed) -> Option<Vec<Value>> {
    let topic = TopicId(timed.event.topic);
    let key = |key: &rondel_spec::Key| {
        let (_, path) = key.fields.iter().find(|(t, _)| *t == topic)?;
        decode(timed.event.get(topic, path)?, &Read::Value(key.value_type))
    };
    slice.keys.iter().map(key).collect()
}

fn keyed(slice: &Slice, timed: &Timed) -> bool {
    slice.keys[0].fields.iter().any(|(topic, _)| topic.0 == timed.event.topic)
}

/// Topics that instances of a property receive: those with parameters, and those that the property or `until`
/// reads.
fn seen(spec: &Spec, property: &Property, slice: &Slice) -> BTreeSet<TopicId> {
    let read = [Some(property.formula), slice.until].into_iter().flatten().flat_map(|x| spec.topics_of(x));
    read.chain(slice.keys[0].fields.iter().map(|(topic, _)| *topic)).collect()
}

/// Number of events that the slice refuses.
pub fn refused(spec: &Spec, id: SliceId, trace: &[Timed]) -> usize {
    let slice = &spec.slices[id.0 as usize];
    trace.iter().filter(|timed| keyed(slice, timed) && keys_of(slice, timed).is_none()).count()
}

/// All instances of a property, in order of their first events.
pub fn instances(spec: &Spec, p: usize, trace: &[Timed], now: i64) -> Vec<Instance> {
    instances_until(spec, p, trace, now, false)
}

/// The same; with `has_end` in dense time also with verdicts at the time of the last event of the trace, where that is
/// of another instance.
pub fn instances_until(spec: &Spec, p: usize, trace: &[Timed], now: i64, has_end: bool) -> Vec<Instance> {
    let slice = &spec.slices[spec.properties[p].slice.unwrap().0 as usize];
    let now = trace.last().map_or(now, |last| last.time.max(now));
    let mut all: Vec<Vec<Value>> = Vec::new();
    for timed in trace.iter().filter(|timed| keyed(slice, timed)) {
        all.extend(keys_of(slice, timed).filter(|keys| !all.contains(keys)));
    }
    let mut result = Vec::new();
    for keys in all {
        let mut from = 0;
        while let Some(instance) = instance(spec, p, &keys, trace, from, now, has_end) {
            from = instance.ended.map_or(trace.len(), |ended| ended + 1);
            result.push(instance);
        }
    }
    result.sort_by_key(|instance| instance.first);
    result
}

/// The next instance with these parameters, which receives its events from `from` on.
fn instance(
    spec: &Spec,
    p: usize,
    keys: &[Value],
    trace: &[Timed],
    from: usize,
    now: i64,
    has_end: bool,
) -> Option<Instance> {
    let property = &spec.properties[p];
    let slice = &spec.slices[property.slice?.0 as usize];
    let topics = seen(spec, property, slice);
    let own = |i: usize| keyed(slice, &trace[i]) && keys_of(slice, &trace[i]).is_some_and(|k| k == keys);
    let sees = |i: usize| match keyed(slice, &trace[i]) {
        true => i >= from && own(i),
        false => topics.contains(&TopicId(trace[i].event.topic)),
    };
    let first = (from..trace.len()).find(|&i| own(i))?;
    let mut origins: Vec<usize> = (0..trace.len()).filter(|&i| sees(i)).collect();
    let part = |origins: &[usize]| origins.iter().map(|&i| trace[i].clone()).collect::<Vec<Timed>>();
    let begin = origins.iter().position(|&i| i == first)?;
    let mut ended = None;
    if let Some(until) = slice.until {
        let over = over(spec, property.time, until, &part(&origins), now, keys, begin);
        ended = (0..origins.len()).find(|&i| origins[i] >= first && over[i]).map(|i| origins[i]);
        origins.retain(|&i| ended.is_none_or(|ended| i <= ended));
    }
    let has_end = has_end && ended.is_none() && trace.last().is_some_and(|last| last.time == now);
    let now = ended.map_or(now, |ended| trace[ended].time);
    let mut spots = of_properties(spec, &part(&origins), now, keys, begin, &[p], has_end).remove(&p)?;
    // It knows the events of shared topics before its first event, but has no verdicts there.
    let before = spots.iter().position(|spot| spot.event == Some(begin))?;
    spots.drain(..before);
    spots.iter_mut().for_each(|spot| spot.event = spot.event.map(|i| origins[i]));
    Some(Instance { keys: keys.to_vec(), first, ended, spots })
}

/// The truth of `until` at every event.
fn over(
    spec: &Spec,
    model: TimeModel,
    until: ExprId,
    part: &[Timed],
    now: i64,
    keys: &[Value],
    begin: usize,
) -> Vec<bool> {
    let timeline = Timeline::new(model, part, now, &critical(spec, part, now));
    let mut evaluator = Evaluator::new(spec, &timeline, keys);
    evaluator.begin = begin;
    evaluator.know_keys(until);
    let column = evaluator.column(until);
    timeline.events().map(|k| column[k].truth() == Truth::TRUE).collect()
}
