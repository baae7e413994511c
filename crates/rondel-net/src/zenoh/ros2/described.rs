//! Types of topics described by the nodes of their publishers through the service `~/get_type_description`, which nodes
//! offer since ROS 2 Jazzy.

use std::collections::BTreeMap;
use std::sync::mpsc::{self, RecvTimeoutError};
use std::time::{Duration, Instant};

use ::zenoh::Wait;
use ::zenoh::query::{ConsolidationMode, QueryTarget};
use rondel_decode::schema::{Library, Schema};

use super::{Ros2Node, gid, graph, network};
use crate::adapter::now;
use crate::ros2::{Attachment, Endpoint, MessageType, NodeName, TopicName, TypeHash, keys};
use crate::zenoh::{DeclareError, parse_key};

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
        discovered_type((&self.session, self.domain), topic, message_type, limit, fits)
    }
}

/// Finds publishers of a topic, and requests its type from their nodes.
pub(in crate::zenoh) fn discovered_type(
    (session, domain): (&::zenoh::Session, u32),
    topic: &TopicName,
    message_type: Option<&MessageType>,
    limit: Duration,
    fits: impl Fn(&Schema) -> bool,
) -> Result<Option<DescribedType>, DeclareError> {
    let deadline = Instant::now() + limit;
    loop {
        let left = deadline.saturating_duration_since(Instant::now());
        let graph = graph(session, domain, left)?;
        let ends = graph.topics().into_iter().filter(|(name, _)| topic.is_met_by(name));
        let ends = ends.flat_map(|(_, ends)| ends.publishers);
        let ends = ends.filter(|(_, end)| message_type.is_none_or(|wanted| end.message_type == *wanted));
        // Each node is queried once.
        let nodes: BTreeMap<NodeName, Endpoint> = ends.collect();
        let mut found: Option<DescribedType> = None;
        for (node, end) in &nodes {
            let schema = described((session, domain), node, end, deadline)?;
            let is_fit = schema.as_ref().is_ok_and(&fits);
            let is_better = found.as_ref().is_none_or(|found| found.schema.is_err());
            if is_fit || is_better {
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

/// Requests the type of a publisher from its node; returns the reason if it cannot be used.
pub(super) fn described(
    (session, domain): (&::zenoh::Session, u32),
    node: &NodeName,
    end: &Endpoint,
    deadline: Instant,
) -> Result<Result<Schema, String>, DeclareError> {
    let Endpoint { message_type, hash, .. } = end;
    let Some(hash) = hash else {
        return Ok(Err(format!("the node {node} gives {message_type} without a hash, as before ROS 2 Iron")));
    };
    let (sender, answers) = mpsc::channel();
    let attachment = Attachment { sequence: 1, source_time: now(), gid: gid(session, 0) }.write();
    let left = deadline.saturating_duration_since(Instant::now());
    session
        .get(parse_key(&keys::description_key(domain, node))?)
        .payload(request(&message_type.to_string(), &hash.to_string()))
        .attachment(&attachment[..])
        .target(QueryTarget::All)
        .consolidation(ConsolidationMode::None)
        .timeout(left)
        .callback(move |reply| {
            if let Ok(sample) = reply.result() {
                // The receiver may have stopped waiting.
                _ = sender.send(sample.payload().to_bytes().into_owned());
            }
        })
        .wait()
        .map_err(network)?;
    let answer = match answers.recv_timeout(left) {
        Ok(answer) => answer,
        Err(error) => {
            let why = match error {
                RecvTimeoutError::Disconnected => "does not offer the service",
                RecvTimeoutError::Timeout => "does not answer on",
            };
            return Ok(Err(format!(
                "no definition of {message_type} is known, and its node {node} {why} ~/get_type_description"
            )));
        }
    };
    let schema = read(&answer, message_type, hash);
    Ok(schema
        .map_err(|why| format!("the description of {message_type} by the node {node} cannot be used: {why}")))
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
