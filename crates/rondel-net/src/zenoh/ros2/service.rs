//! Requests to services of ROS 2, as rmw_zenoh sends them: queries with an attachment.

use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::time::{Duration, Instant};

use ::zenoh::Wait;
use ::zenoh::query::{ConsolidationMode, QueryTarget};
use rondel_event::terminal::escaped_beginning;

use super::{Ros2Node, gid, network};
use crate::adapter::now;
use crate::calling::{CallError, ServiceClient};
use crate::ros2::{Attachment, Service, keys};
use crate::zenoh::{DeclareError, check_key, parse_key};

/// Time by which Zenoh waits longer than the caller, so that a query that has ended without an answer says that there is
/// no server.
const LONGER: Duration = Duration::from_secs(1);

/// The largest number of characters of an error that are shown.
const SHOWN: usize = 200;

/// A request without an answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum NoAnswer {
    /// A server may exist, and has not answered in time.
    Timeout,
    /// There is no server.
    NoServer,
    /// A server has answered with this error.
    Error(String),
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
            let answer = match reply.result() {
                Ok(sample) => Ok(sample.payload().to_bytes().into_owned()),
                Err(error) => Err(shown(&error.payload().to_bytes())),
            };
            // The receiver may have stopped waiting.
            _ = sender.send(answer);
        })
        .wait()
        .map_err(network)?;
    Ok(first(&answers, limit))
}

/// Waits for the first answer that is no error.
fn first(answers: &mpsc::Receiver<Result<Vec<u8>, String>>, limit: Duration) -> Result<Vec<u8>, NoAnswer> {
    let (deadline, mut refused) = (Instant::now() + limit, None);
    loop {
        match answers.recv_timeout(deadline.saturating_duration_since(Instant::now())) {
            Ok(Ok(answer)) => return Ok(answer),
            // Another server may answer.
            Ok(Err(error)) => refused = Some(error),
            Err(ended) => {
                return Err(match (refused, ended) {
                    (Some(error), _) => NoAnswer::Error(error),
                    (None, RecvTimeoutError::Timeout) => NoAnswer::Timeout,
                    (None, RecvTimeoutError::Disconnected) => NoAnswer::NoServer,
                });
            }
        }
    }
}

/// The beginning of an error as one line.
fn shown(error: &[u8]) -> String {
    let text = String::from_utf8_lossy(error);
    escaped_beginning(text.trim(), SHOWN)
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
            Err(NoAnswer::Error(error)) => Err(CallError::Failed(error)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn error_of_a_server_is_no_missing_server() {
        let wait = |answers: Vec<Result<Vec<u8>, String>>, is_open: bool| {
            let (sender, receiver) = mpsc::channel();
            answers.into_iter().for_each(|answer| _ = sender.send(answer));
            let open = is_open.then_some(sender);
            let found = first(&receiver, Duration::from_millis(1));
            drop(open);
            found
        };
        let error = || Err("busy".to_owned());
        assert_eq!(wait(vec![], false), Err(NoAnswer::NoServer));
        assert_eq!(wait(vec![], true), Err(NoAnswer::Timeout));
        for is_open in [false, true] {
            assert_eq!(wait(vec![error()], is_open), Err(NoAnswer::Error("busy".to_owned())));
            assert_eq!(wait(vec![error(), Ok(vec![1]), error()], is_open), Ok(vec![1]));
        }
        assert_eq!(shown(b" no\nsuch \xff "), "no\\nsuch \u{fffd}");
    }
}
