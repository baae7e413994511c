//! Types of topics described by the nodes of their publishers through the service `~/get_type_description`, which nodes
//! offer since ROS 2 Jazzy.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use rondel_decode::schema::{Library, Schema};

use super::service::{self, NoAnswer};
use super::{Ros2Node, gid, graph};
use crate::adapter::now;
use crate::ros2::{Attachment, Endpoint, MessageType, NodeName, TopicName, TypeHash, keys};
use crate::zenoh::DeclareError;

/// Pause before another attempt if there was no answer.
const AGAIN: Duration = Duration::from_millis(100);

/// A type described by a node.
#[derive(Clone, Debug)]
pub struct DescribedType {
    /// The type.
    pub message_type: MessageType,
    /// Definition of the type, or the reason why there is none.
    pub schema: Result<Schema, String>,
}

impl Ros2Node {
    /// Like [`Session::ros2_type`](crate::zenoh::Session::ros2_type), in the domain of the node.
    ///
    /// # Errors
    /// [`DeclareError`]
    pub fn discovered_type(
        &self,
        topic: &TopicName,
        message_type: Option<&MessageType>,
        limit: Duration,
        fits: impl Fn(&Schema) -> bool,
    ) -> Result<Option<DescribedType>, DeclareError> {
        discovered_type(&self.session, self.domain, topic, message_type, limit, fits)
    }
}

/// Finds publishers of a topic, and requests its type from their nodes.
pub(in crate::zenoh) fn discovered_type(
    session: &::zenoh::Session,
    domain: u32,
    topic: &TopicName,
    message_type: Option<&MessageType>,
    limit: Duration,
    fits: impl Fn(&Schema) -> bool,
) -> Result<Option<DescribedType>, DeclareError> {
    let deadline = Instant::now() + limit;
    let mut found: Option<DescribedType> = None;
    loop {
        let left = deadline.saturating_duration_since(Instant::now());
        let graph = graph(session, domain, left)?;
        let ends = graph.topics().into_iter().filter(|(name, _)| topic.is_met_by(name));
        let ends = ends.flat_map(|(_, ends)| ends.publishers);
        let ends = ends.filter(|(_, end)| message_type.is_none_or(|wanted| end.message_type == *wanted));
        // Each node is queried once.
        let nodes: BTreeMap<NodeName, Endpoint> = ends.collect();
        for (node, end) in &nodes {
            let schema = described(session, domain, node, end, deadline)?;
            let is_fit = schema.as_ref().is_ok_and(&fits);
            // The last request has little time: that it has no answer says less than an earlier answer.
            let has_no_answer = matches!(schema, Err(Undescribed::NoAnswer { .. }));
            let is_better = found.as_ref().is_none_or(|found| found.schema.is_err() && !has_no_answer);
            if is_fit || is_better {
                let schema = schema.map_err(|error| error.to_string());
                found = Some(DescribedType { message_type: end.message_type.clone(), schema });
            }
            if is_fit {
                return Ok(found);
            }
        }
        let is_described = found.as_ref().is_some_and(|found| found.schema.is_ok());
        if is_described || Instant::now() + AGAIN >= deadline {
            return Ok(found);
        }
        std::thread::sleep(AGAIN);
    }
}

/// A node gives no definition of a type.
#[derive(Debug, thiserror::Error)]
pub(super) enum Undescribed {
    /// There was no answer before the deadline.
    #[error(
        "no definition of {message_type} is known, and its node {node} does not answer on ~/get_type_description"
    )]
    NoAnswer {
        /// Type of the publisher.
        message_type: MessageType,
        /// Node of the publisher.
        node: NodeName,
    },
    /// The service is not offered, or its answer cannot be used.
    #[error("{0}")]
    Refused(String),
}

/// Requests the type of a publisher from its node; returns the reason if it cannot be used.
pub(super) fn described(
    session: &::zenoh::Session,
    domain: u32,
    node: &NodeName,
    end: &Endpoint,
    deadline: Instant,
) -> Result<Result<Schema, Undescribed>, DeclareError> {
    let Endpoint { message_type, hash, .. } = end;
    let Some(hash) = hash else {
        let why = format!("the node {node} gives {message_type} without a hash, as before ROS 2 Iron");
        return Ok(Err(Undescribed::Refused(why)));
    };
    let attachment = Attachment { sequence: 1, source_time: now(), gid: gid(session, 0) };
    let left = deadline.saturating_duration_since(Instant::now());
    let key = keys::description_key(domain, node);
    let payload = request(&message_type.to_string(), &hash.to_string());
    let answer = match service::request(session, &key, payload, &attachment, left)? {
        Ok(answer) => answer,
        Err(NoAnswer::Timeout) => {
            let (message_type, node) = (message_type.clone(), node.clone());
            return Ok(Err(Undescribed::NoAnswer { message_type, node }));
        }
        Err(NoAnswer::NoServer) => {
            return Ok(Err(Undescribed::Refused(format!(
                "no definition of {message_type} is known, and its node {node} does not offer the service \
                 ~/get_type_description"
            ))));
        }
        Err(NoAnswer::Error(error)) => {
            return Ok(Err(Undescribed::Refused(format!(
                "no definition of {message_type} is known, and its node {node} answers with the error `{error}`"
            ))));
        }
    };
    let schema = read(&answer, message_type, hash);
    Ok(schema.map_err(|why| {
        Undescribed::Refused(format!(
            "the description of {message_type} by the node {node} cannot be used: {why}"
        ))
    }))
}

/// Parses an answer; only a type with the hash of the publisher is used.
fn read(answer: &[u8], message_type: &MessageType, hash: &TypeHash) -> Result<Schema, String> {
    let mut library = Library::new();
    let schema = library.add_description(answer).and_then(|_| library.schema(&message_type.to_string()));
    let schema = schema.map_err(|error| error.to_string())?;
    match schema.rihs01() {
        Some(own) if own == hash.to_string() => Ok(schema),
        Some(own) => Err(format!("it has the hash {own} instead of {hash}")),
        None => Err(format!("it has no hash, and should have {hash}")),
    }
}

/// Returns a request in CDR: the name of the type, its hash, and `false` for its sources.
fn request(name: &str, hash: &str) -> Vec<u8> {
    let mut bytes = vec![0, 1, 0, 0];
    for text in [name, hash] {
        bytes.resize(bytes.len().next_multiple_of(4), 0);
        // Names are limited.
        bytes.extend_from_slice(&(text.len() as u32 + 1).to_le_bytes());
        bytes.extend_from_slice(text.as_bytes());
        bytes.push(0);
    }
    bytes.push(0);
    bytes
}
