//! Checks that the networks can report the topic events that properties read.

use rondel_event::{TopicEvent, TopicId};
use rondel_net::dds::{Ownership, TopicType};
use rondel_net::ros2::Middleware;
use rondel_spec::Spec;

use super::{Address, Binding};

/// A topic event that a network cannot report.
pub struct Unheard {
    /// The topic.
    pub topic: TopicId,
    /// A sentence about it.
    pub text: String,
    /// Whether the verdict would wrongly be satisfied; otherwise it stays unknown, or is reported as vacuous.
    pub misleads: bool,
}

/// Returns the events that properties read and that the networks of these sources cannot report.
pub fn unheard(spec: &Spec, sources: &[Binding]) -> Vec<Unheard> {
    let mut all = Vec::new();
    for property in &spec.properties {
        let until = property.slice.and_then(|slice| spec.slices.get(slice.0 as usize)?.until);
        let roots = [Some(property.formula), until].into_iter().flatten();
        let events = roots.flat_map(|root| spec.events_read(root));
        for (topic, event) in events {
            if !all.contains(&(topic, event)) {
                all.push((topic, event));
            }
        }
    }
    all.sort_unstable();
    let unheard = |(topic, event): (TopicId, TopicEvent)| {
        let (address, name) = (&sources.get(topic.index())?.address, &spec.topics[topic.index()].name);
        let event_name = event.name();
        let (network, deadline) = match address {
            Address::Dds(_, _, qos) => (None, qos.deadline),
            Address::Ros2(topic, _) if topic.may_be_on(Middleware::Dds) => (None, topic.qos.deadline),
            Address::Ros2(..) => (Some("ROS 2 on Zenoh"), None),
            Address::Zenoh(..) => (Some("Zenoh"), None),
            Address::Mqtt(..) => (Some("MQTT"), None),
            Address::Kafka(..) => (Some("Kafka"), None),
            Address::Stdout => return None,
        };
        let (text, misleads) = match network {
            Some(network) => {
                let text = format!(
                    "`{event_name}({name})` never comes: {network} does not report events of topics, only DDS does"
                );
                (text, false)
            }
            None if address.pattern().is_some() => {
                let text = format!(
                    "`{event_name}({name})` cannot be reported: {address} stands for several topics, whose events have no \
                     parameters; name one topic"
                );
                (text, true)
            }
            None if event == TopicEvent::MissedDeadline && deadline.is_none() => {
                let text = format!(
                    "`{event_name}({name})` can never be true, because topic '{name}' has no deadline: set one with \
                     `qos: {{deadline: 100 ms}}` in a deployment"
                );
                (text, true)
            }
            None if event == TopicEvent::Owner => {
                let why = shared(address)?;
                let text =
                    format!("`{event_name}({name})` never comes: no publisher owns topic '{name}', {why}");
                (text, false)
            }
            None => return None,
        };
        Some(Unheard { topic, text, misleads })
    };
    all.into_iter().filter_map(unheard).collect()
}

/// Returns why publishers on an address share its instances; `None` if one may own them. A subscription without a set
/// ownership takes over that of the first publisher if it takes over the type.
fn shared(address: &Address) -> Option<&'static str> {
    match address {
        Address::Dds(_, topic_type, qos) => match (qos.ownership, topic_type) {
            (Some(Ownership::Exclusive), _) | (None, TopicType::Raw(_)) => None,
            _ => Some(
                "because its ownership is shared; if its publishers offer exclusive ownership, set \
                 `qos: {ownership: exclusive}` in a deployment",
            ),
        },
        _ => Some("because publishers of ROS 2 offer shared ownership only"),
    }
}
