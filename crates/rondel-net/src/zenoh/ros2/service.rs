//! Requests to services of ROS 2, as rmw_zenoh sends them: queries with an attachment.

use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::time::Duration;

use ::zenoh::Wait;
use ::zenoh::query::{ConsolidationMode, QueryTarget};

use super::{Ros2Node, gid, network};
use crate::adapter::now;
use crate::calling::{CallError, ServiceClient};
use crate::ros2::{Attachment, Service, keys};
use crate::zenoh::{DeclareError, check_key, parse_key};

/// Time by which Zenoh waits longer than the caller, so that a query that has ended without an answer says that there is
/// no server.
const LONGER: Duration = Duration::from_secs(1);

/// A request without an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum NoAnswer {
    /// A server may exist, and has not answered in time.
    Timeout,
    /// There is no server.
    NoServer,
}

/// Sends a request to the servers of a key expression, and waits up to `limit` for the first answer.
///
/// # Errors
/// The network refuses the request.
pub(super) fn request(
    session: &::zenoh::Session,
    key: &str,
    payload: Vec<u8>,
    attachment: &Attachment,
    limit: Duration,
) -> Result<Result<Vec<u8>, NoAnswer>, DeclareError> {
    let (sender, answers) = mpsc::channel();
    session
        .get(parse_key(key)?)
        .payload(payload)
        .attachment(&attachment.write()[..])
        .target(QueryTarget::All)
        .consolidation(ConsolidationMode::None)
        .timeout(limit + LONGER)
        .callback(move |reply| {
            if let Ok(sample) = reply.result() {
                // The receiver may have stopped waiting.
                _ = sender.send(sample.payload().to_bytes().into_owned());
            }
        })
        .wait()
        .map_err(network)?;
    Ok(answers.recv_timeout(limit).map_err(|error| match error {
        RecvTimeoutError::Timeout => NoAnswer::Timeout,
        RecvTimeoutError::Disconnected => NoAnswer::NoServer,
    }))
}

/// A client of a service on Zenoh.
#[derive(Debug)]
pub struct Ros2ServiceClient {
    session: ::zenoh::Session,
    key: String,
    gid: [u8; 16],
    /// Number of the next request; the first one is 1.
    next: AtomicI64,
}

impl Ros2Node {
    /// Returns a client of a service.
    ///
    /// # Errors
    /// [`DeclareError`]
    pub fn service_client(&self, service: &Service) -> Result<Ros2ServiceClient, DeclareError> {
        let key = keys::service_key(self.domain, service.name.as_str(), &service.of.dds(""));
        check_key(&key)?;
        let number = self.next.fetch_add(1, Ordering::Relaxed);
        let gid = gid(&self.session, number);
        Ok(Ros2ServiceClient { session: self.session.clone(), key, gid, next: AtomicI64::new(1) })
    }
}

impl ServiceClient for Ros2ServiceClient {
    fn call(&self, payload: &[u8], limit: Duration) -> Result<Vec<u8>, CallError> {
        let sequence = self.next.fetch_add(1, Ordering::Relaxed);
        let attachment = Attachment { sequence, source_time: now(), gid: self.gid };
        let answer = request(&self.session, &self.key, payload.to_owned(), &attachment, limit);
        match answer.map_err(|error| CallError::Network(error.to_string()))? {
            Ok(response) => Ok(response),
            Err(NoAnswer::NoServer) => Err(CallError::NoServer),
            Err(NoAnswer::Timeout) => Err(CallError::NoAnswer(limit)),
        }
    }
}
