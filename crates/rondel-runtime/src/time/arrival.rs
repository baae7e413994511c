//! Times of arrival, and what `latency` can say: the arrival of a message minus the time that it carries. A message whose
//! time is that of its arrival has no latency.

use std::ops::Range;

use rondel_event::{Block, TopicId};
use rondel_spec::{Expr, Spec};

use crate::specification::input::{Input, TimeSource};

/// The topics whose `latency` some property reads and whose time has this source, by name.
pub(crate) fn latencies<'s>(spec: &'s Spec, inputs: &[Input], source: &TimeSource) -> Vec<&'s str> {
    let is_read = |id: TopicId| spec.nodes.iter().any(|node| matches!(node, Expr::Latency(of) if *of == id));
    let topics = (0..).map(TopicId).zip(&spec.topics).zip(inputs);
    let read = topics.filter(|((id, _), input)| input.time == *source && is_read(*id));
    read.map(|((_, topic), _)| topic.name.as_str()).collect()
}

/// A sentence for each `latency` that is unknown for every message.
pub(crate) fn sentences(spec: &Spec, inputs: &[Input]) -> Vec<String> {
    let sentence = |name: &str| {
        format!(
            "`latency({name})` is unknown: the time of messages on {name} is that of their arrival; choose the field with \
             their time, or `source`, as `time` of the topic in a deployment or with `--time-from`"
        )
    };
    latencies(spec, inputs, &TimeSource::Arrival).into_iter().map(sentence).collect()
}

/// Forgets the arrival of messages whose time, unless a field holds it, is that of their arrival: networks and recordings
/// that do not know when a message was sent name the arrival twice.
pub(crate) fn forget_own(block: &mut Block, rows: Range<usize>, inputs: &[Input]) {
    for row in rows {
        let is_own = block.arrival(row) == Some(block.time(row));
        let input = block.topic(row).and_then(|topic| inputs.get(topic.index()));
        if is_own && input.is_none_or(|input| input.time.field().is_none()) {
            block.forget_arrival(row);
        }
    }
}
