//! The node of a participant in the graph of ROS 2, published for the tools and nodes there.
//!
//! A participant publishes its nodes with the ids of their readers and writers, again after each change. The last
//! message is kept for later participants. The two participants of a run (see [`Participant`](super::Participant)) have
//! a node each, since duplicate names are an error in ROS 2.

use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::time::Duration;

use super::domain::Domain;
use super::entity::{Entity, check};
use super::{
    DeclareError, DeclaredTopic, Durability, Publisher, PublisherSettings, RawType, TopicQos, TopicType,
};
use crate::adapter::Publisher as _;
use crate::ros2::discovery::{Gid, NodeEntities, ParticipantNodes, TOPIC, TYPE};
use crate::ros2::{NodeName, TopicName};

/// Time limit for a reader that accepts nothing.
const SLOW: Duration = Duration::from_millis(200);

/// Published description of the node of a participant.
#[derive(Debug)]
pub(super) struct AnnouncedNode {
    nodes: Mutex<ParticipantNodes>,
    publisher: Publisher,
}

impl AnnouncedNode {
    /// Publishes a node without readers and writers, and lets the domain add them.
    pub(super) fn create(domain: &Arc<Domain>, node: NodeName) -> Result<Arc<AnnouncedNode>, DeclareError> {
        let raw = TopicType::Raw(RawType { name: Some(TYPE.to_owned()), keyed: Some(false) });
        let durability = Some(Durability::TransientLocal);
        let qos = TopicQos { durability, depth: Some(1), ..TopicQos::default() };
        let settings = PublisherSettings { batching: false };
        // The type has only a name: others with a type of this name match, however they describe it.
        let declared = DeclaredTopic { topic_type: &raw, qos: &qos, schema: None };
        let publisher = Publisher::create(Arc::clone(domain), TOPIC, declared, settings, Some(SLOW), 0)?;
        let gid = gid(domain.participant())?;
        tracing::debug!(%node, "a node in the graph of ROS 2");
        let nodes = vec![NodeEntities { node, readers: Vec::new(), writers: Vec::new() }];
        let announced =
            Arc::new(AnnouncedNode { nodes: Mutex::new(ParticipantNodes { gid, nodes }), publisher });
        announced.change(|_| {});
        domain.set_node(&announced);
        Ok(announced)
    }

    /// Adds a reader or writer until the result is dropped; `None` if its topic is not one of ROS 2.
    pub(super) fn add(self: Arc<Self>, topic: &str, entity: &Entity, publishes: bool) -> Option<Member> {
        TopicName::from_dds(topic)?;
        let gid = gid(entity.handle()).ok()?;
        self.change(|node| node.entities(publishes).push(gid));
        Some(Member { node: Arc::downgrade(&self), gid, publishes })
    }

    fn change(&self, change: impl FnOnce(&mut NodeEntities)) {
        // Published under the lock, so that the last message is the newest.
        let mut nodes = self.nodes.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(node) = nodes.nodes.first_mut() {
            change(node);
        }
        if let Err(error) = self.publisher.publish(&nodes.write()) {
            tracing::debug!("a change of the node is not published in the graph of ROS 2: {error}");
        }
    }
}

impl NodeEntities {
    fn entities(&mut self, publishes: bool) -> &mut Vec<Gid> {
        if publishes { &mut self.writers } else { &mut self.readers }
    }
}

/// A reader or writer of a node. Dropping it removes it from the graph.
#[derive(Debug)]
pub(super) struct Member {
    node: Weak<AnnouncedNode>,
    gid: Gid,
    publishes: bool,
}

impl Drop for Member {
    fn drop(&mut self) {
        if let Some(node) = self.node.upgrade() {
            node.change(|node| node.entities(self.publishes).retain(|gid| *gid != self.gid));
        }
    }
}

/// Returns the id of a participant, reader or writer.
fn gid(entity: i32) -> Result<Gid, DeclareError> {
    let mut guid = cyclors::dds_guid_t { v: [0; 16] };
    // SAFETY: a live handle and a place for the id.
    check(unsafe { cyclors::dds_get_guid(entity, &mut guid) }, "id of a DDS entity")?;
    Ok(guid.v)
}
