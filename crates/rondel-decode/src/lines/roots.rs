//! Plans for the parts of a line on a topic, by the form of the line.

use std::sync::Arc;

use rondel_event::{Path, Projection, Segment, TimeUnit, TopicId};

use super::{LineTime, TraceTopic};
use crate::Parameters;
use crate::json::{Action, Node};
use crate::plain::{PlainPlan, VALUE};

/// Plans for the parts of a line on a topic.
#[derive(Clone, Debug)]
pub(super) struct Roots {
    pub(super) names: Vec<String>,
    /// Parameters of its address.
    pub(super) parameters: Option<Arc<Parameters>>,
    /// Plan for a payload that is written in a string.
    pub(super) payload: Node,
    pub(super) flat: Node,
    pub(super) data: Node,
    pub(super) message: Node,
    pub(super) broker: Node,
    /// Plan for a line of a broker without its payload, which is written in a string.
    pub(super) broker_frame: Node,
    pub(super) time_unit: TimeUnit,
    pub(super) events: Option<TopicId>,
    /// Whether its payloads are plain, in any of these parts.
    pub(super) is_plain: bool,
    /// Whether a field `event` is read, so that a flat line with one is a message.
    pub(super) reads_event: bool,
    /// Whether events are read, and no message has a field `event`.
    pub(super) expects_events: bool,
}

impl Roots {
    pub(super) fn new(topic: &TraceTopic, time_unit: TimeUnit) -> Roots {
        let plain = topic.plain.as_ref().map(|words| {
            let time = if let LineTime::Field(path) = &topic.time { Some(path) } else { None };
            Node::leaf(Action::Plain(PlainPlan::new(&topic.projection, time, Arc::clone(words)).0))
        });
        let mut payload = match &plain {
            None => Node::new(&topic.projection),
            Some(value) => {
                let mut payload = Node::default();
                payload.replace(VALUE, value.clone());
                payload
            }
        };
        let mut flat = payload.clone(); // `data` in it is a field, as it is no object there
        let recorded = || Node::leaf(Action::Recorded(time_unit));
        // The reserved names are not fields of the payload, even if a formula uses them.
        let is_field = matches!(topic.time, LineTime::Field(_));
        flat.replace("time", if is_field { Node::default() } else { recorded() });
        flat.replace("topic", Node::leaf(Action::Topic));
        if let LineTime::Field(path) = &topic.time
            && plain.is_none()
        {
            for root in [&mut payload, &mut flat] {
                root.at(path).reads.push(Action::Time(topic.time_unit));
            }
        }
        let frame = |times: &[&str]| {
            let mut root = Node::default();
            root.replace("topic", Node::leaf(Action::Topic));
            times.iter().filter(|_| !is_field).for_each(|time| root.replace(time, recorded()));
            root
        };
        let below = |name: &str, times: &[&str]| {
            let mut root = frame(times);
            root.replace(name, payload.clone());
            root
        };
        let is_arrival = topic.time == LineTime::Arrival;
        let times: &[&str] = if is_arrival { &["time", "arrival"] } else { &["time"] };
        Roots {
            parameters: Parameters::of(&topic.names, &topic.projection).map(Arc::new),
            names: topic.names.clone(),
            data: below("data", times),
            message: below("message", times),
            broker: {
                let mut broker = below("payload", &["tst"]);
                plain.iter().for_each(|value| broker.replace("payload", value.clone()));
                broker
            },
            is_plain: plain.is_some(),
            broker_frame: frame(&["tst"]),
            payload,
            flat,
            time_unit: topic.time_unit,
            events: topic.events,
            reads_event: reads_event(&topic.projection),
            expects_events: topic.events.is_some() && !topic.has_event && !reads_event(&topic.projection),
        }
    }

    pub(super) fn read_arrivals(&mut self, unit: TimeUnit) {
        for (root, name) in [
            (&mut self.data, "arrival"),
            (&mut self.message, "arrival"),
            (&mut self.broker, "tst"),
            (&mut self.broker_frame, "tst"),
        ] {
            root.at(&Path::keys([name])).reads.push(Action::Arrival(unit));
        }
    }
}

/// Whether a field `event` is read, so that a flat line with this member is a message.
fn reads_event(projection: &Projection) -> bool {
    let is_event = |segment: &Segment| matches!(segment, Segment::Key(key) if **key == *"event");
    projection.fields.iter().any(|field| field.path.0.first().is_some_and(is_event))
}
