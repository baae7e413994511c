//! Properties divided by key: every instance evaluated alone, over what it sees.

use std::collections::{BTreeMap, BTreeSet};

use rondel_event::{Read, TopicId, Value};
use rondel_spec::{ExprId, Slice, SliceId, Spec, TimeModel};

use super::evaluate::Evaluator;
use super::outcome::{Spot, of_properties};
use super::timeline::{Timeline, critical};
use super::{Timed, decode};

/// An instance, from an event of its key until it ends.
#[derive(Clone, Debug)]
pub struct Instance {
    pub keys: Vec<Value>,
    /// Its first event, in the whole trace.
    pub first: usize,
    /// The event at which it ended, if it did.
    pub ended: Option<usize>,
    /// For each property of the slice what it says; events count in the whole trace.
    pub spots: BTreeMap<usize, Vec<Spot>>,
}

/// The keys of an event on a topic that has them: none where one is missing or of another type.
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

/// The topics that instances see: those with keys, and those that the properties of the slice read.
fn seen(spec: &Spec, id: SliceId) -> BTreeSet<TopicId> {
    let slice = &spec.slices[id.0 as usize];
    let formulas = spec.properties.iter().filter(|p| p.slice == Some(id)).map(|p| p.formula);
    let read = formulas.chain(slice.until).flat_map(|formula| spec.topics_of(formula));
    read.chain(slice.keys[0].fields.iter().map(|(topic, _)| *topic)).collect()
}

/// How many events the slice refuses.
pub fn refused(spec: &Spec, id: SliceId, trace: &[Timed]) -> usize {
    let slice = &spec.slices[id.0 as usize];
    trace.iter().filter(|timed| keyed(slice, timed) && keys_of(slice, timed).is_none()).count()
}

/// All instances, in order of their first events.
pub fn instances(spec: &Spec, id: SliceId, trace: &[Timed], now: i64) -> Vec<Instance> {
    let slice = &spec.slices[id.0 as usize];
    let now = trace.last().map_or(now, |last| last.time.max(now));
    let topics = seen(spec, id);
    let mut all: Vec<Vec<Value>> = Vec::new();
    for timed in trace.iter().filter(|timed| keyed(slice, timed)) {
        all.extend(keys_of(slice, timed).filter(|keys| !all.contains(keys)));
    }
    let mut result = Vec::new();
    for keys in all {
        let mut from = 0;
        while let Some(instance) = instance(spec, id, &topics, &keys, trace, from, now) {
            from = instance.ended.map_or(trace.len(), |ended| ended + 1);
            result.push(instance);
        }
    }
    result.sort_by_key(|instance| instance.first);
    result
}

/// The next instance of these keys, of whose events it sees those at and after `from`.
fn instance(
    spec: &Spec,
    id: SliceId,
    topics: &BTreeSet<TopicId>,
    keys: &[Value],
    trace: &[Timed],
    from: usize,
    now: i64,
) -> Option<Instance> {
    let slice = &spec.slices[id.0 as usize];
    let own = |i: usize| keyed(slice, &trace[i]) && keys_of(slice, &trace[i]).is_some_and(|k| k == keys);
    let sees = |i: usize| match keyed(slice, &trace[i]) {
        true => i >= from && own(i),
        false => topics.contains(&TopicId(trace[i].event.topic)),
    };
    let first = (from..trace.len()).find(|&i| own(i))?;
    let mut origins: Vec<usize> = (0..trace.len()).filter(|&i| sees(i)).collect();
    let mut ended = None;
    if let Some(until) = slice.until {
        let part: Vec<Timed> = origins.iter().map(|&i| trace[i].clone()).collect();
        let over = over(spec, id, until, &part, now, keys);
        ended = (0..origins.len()).find(|&i| origins[i] >= first && over[i]).map(|i| origins[i]);
        origins.retain(|&i| ended.is_none_or(|ended| i <= ended));
    }
    let part: Vec<Timed> = origins.iter().map(|&i| trace[i].clone()).collect();
    let chosen: Vec<usize> =
        (0..spec.properties.len()).filter(|&p| spec.properties[p].slice == Some(id)).collect();
    let now = ended.map_or(now, |ended| trace[ended].time);
    let mut spots = of_properties(spec, &part, now, keys, &chosen);
    for spots in spots.values_mut() {
        // What was before its first event, it knows, but it did not exist.
        let begin = spots.iter().position(|spot| spot.event.is_some_and(|i| origins[i] == first)).unwrap();
        spots.drain(..begin);
        spots.iter_mut().for_each(|spot| spot.event = spot.event.map(|i| origins[i]));
    }
    Some(Instance { keys: keys.to_vec(), first, ended, spots })
}

/// Whether `until` is true, at every event.
fn over(spec: &Spec, id: SliceId, until: ExprId, part: &[Timed], now: i64, keys: &[Value]) -> Vec<bool> {
    let model = spec.properties.iter().find(|p| p.slice == Some(id)).map_or(TimeModel::Steps, |p| p.time);
    let timeline = Timeline::new(model, part, now, &critical(spec, part, now));
    let mut evaluator = Evaluator::new(spec, &timeline, keys);
    let column = evaluator.column(until);
    timeline.events().map(|k| column[k].truth() == super::truth::Truth::TRUE).collect()
}
