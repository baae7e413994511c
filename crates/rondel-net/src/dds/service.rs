//! Calls of services of ROS 2 over DDS, in the form of rmw_cyclonedds: requests and replies on a topic each, whose
//! samples begin with the client and the number of the request. Servers on other implementations of ROS 2 write these
//! facts elsewhere, and do not answer.

use std::collections::BTreeMap;
use std::hash::{BuildHasher as _, RandomState};
use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use rondel_event::TopicId;

use super::{
    DeclareError, DeclaredTopic, Durability, Participant, Publisher, PublisherSettings, RawType, Reliability,
    Subscription, TopicQos, TopicType,
};
use crate::adapter::{Publisher as _, Receiver, Sample};
use crate::calling::{CallError, ServiceClient};
use crate::ros2;

/// Samples that a subscription to replies keeps.
const DEPTH: u32 = 10;
/// Size of the client and the number before a request or a reply, in bytes.
const HEADER: usize = 16;

/// A client of a service on DDS.
#[derive(Debug)]
pub struct DdsServiceClient {
    requests: Publisher,
    _replies: Subscription,
    waiting: Arc<Waiting>,
    /// Number of the next request; the first one is 1.
    next: AtomicI64,
}

/// The calls that wait for a reply.
#[derive(Debug)]
struct Waiting {
    /// Number of the client, which replies repeat.
    client: u64,
    /// The replies of the requests with these numbers, once they have arrived.
    replies: Mutex<BTreeMap<i64, Option<Vec<u8>>>>,
    arrived: Condvar,
}

/// A request or a reply without its header.
#[derive(Debug, PartialEq, Eq)]
struct Numbered {
    client: u64,
    number: i64,
    payload: Vec<u8>,
}

impl Numbered {
    /// Returns the sample: after the four bytes of the encoding come client and number, then the rest.
    fn write(&self) -> Vec<u8> {
        let (encoding, body) = self.payload.split_at(self.payload.len().min(4));
        let (client, number) = match encoding {
            [_, last, ..] if last & 1 == 0 => (self.client.to_be_bytes(), self.number.to_be_bytes()),
            _ => (self.client.to_le_bytes(), self.number.to_le_bytes()),
        };
        [encoding, &client, &number, body].concat()
    }

    /// Parses a sample; `None` if it is too short.
    fn read(sample: &[u8]) -> Option<Numbered> {
        let (encoding, rest) = sample.split_first_chunk::<4>()?;
        let (client, after) = rest.split_first_chunk::<8>()?;
        let (number, _) = after.split_first_chunk::<8>()?;
        let (client, number) = match encoding[1] & 1 {
            0 => (u64::from_be_bytes(*client), i64::from_be_bytes(*number)),
            _ => (u64::from_le_bytes(*client), i64::from_le_bytes(*number)),
        };
        // The header is a multiple of eight bytes: the alignment of the rest stays.
        let payload = [&encoding[..], rest.get(HEADER..)?].concat();
        Some(Numbered { client, number, payload })
    }
}

impl Waiting {
    fn replies(&self) -> MutexGuard<'_, BTreeMap<i64, Option<Vec<u8>>>> {
        self.replies.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Receiver for Waiting {
    fn receive(&self, _topic: TopicId, samples: &[Sample<'_>]) {
        for sample in samples {
            // Other clients have replies on the same topic.
            let Some(reply) = Numbered::read(sample.payload).filter(|reply| reply.client == self.client)
            else {
                continue;
            };
            // A late reply, or a second one, has no call that waits for it.
            if let Some(place) = self.replies().get_mut(&reply.number)
                && place.is_none()
            {
                *place = Some(reply.payload);
                self.arrived.notify_all();
            }
        }
    }
}

impl Participant {
    /// Returns a client of a service of ROS 2.
    ///
    /// # Errors
    /// [`DeclareError`]
    pub fn service_client(&self, service: &ros2::Service) -> Result<DdsServiceClient, DeclareError> {
        let [requests, replies] = service.name.dds_service();
        let raw =
            |ending: &str| TopicType::Raw(RawType { name: Some(service.of.dds(ending)), keyed: Some(false) });
        let qos = TopicQos {
            reliability: Some(Reliability::Reliable),
            durability: Some(Durability::Volatile),
            ..TopicQos::default()
        };
        // Random, and different for each client.
        let client = RandomState::new().hash_one(&requests);
        let waiting = Arc::new(Waiting { client, replies: Mutex::default(), arrived: Condvar::new() });
        let of_replies = DeclaredTopic {
            topic_type: &raw("_Response"),
            qos: &TopicQos { depth: Some(DEPTH), ..qos.clone() },
            schema: None,
        };
        // First: a server that has discovered the requests may answer at once.
        let replies = self.subscribe_as(&replies, of_replies, TopicId(0), Arc::clone(&waiting))?;
        let of_requests = DeclaredTopic { topic_type: &raw("_Request"), qos: &qos, schema: None };
        let requests = self.publisher_as(&requests, of_requests, PublisherSettings { batching: false })?;
        Ok(DdsServiceClient { requests, _replies: replies, waiting, next: AtomicI64::new(1) })
    }
}

impl ServiceClient for DdsServiceClient {
    fn call(&self, request: &[u8], limit: Duration) -> Result<Vec<u8>, CallError> {
        let deadline = Instant::now() + limit;
        if !self.requests.wait_matched(limit) {
            return Err(CallError::NoServer);
        }
        let number = self.next.fetch_add(1, Ordering::Relaxed);
        let sample = Numbered { client: self.waiting.client, number, payload: request.to_owned() }.write();
        self.waiting.replies().insert(number, None);
        let left = deadline.saturating_duration_since(Instant::now());
        let sent = self.requests.offer(&sample, left);
        let replies = self.waiting.replies();
        let waits =
            |replies: &mut BTreeMap<i64, Option<Vec<u8>>>| replies.get(&number).is_some_and(Option::is_none);
        let left = match &sent {
            Ok(()) => deadline.saturating_duration_since(Instant::now()),
            Err(_) => Duration::ZERO,
        };
        let waited = self.waiting.arrived.wait_timeout_while(replies, left, waits);
        let reply = waited.unwrap_or_else(PoisonError::into_inner).0.remove(&number).flatten();
        sent.map_err(|error| CallError::Network(error.to_string()))?;
        reply.ok_or(CallError::NoAnswer(limit))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn header_is_between_encoding_and_body() {
        let request = Numbered { client: 0x0102, number: 3, payload: vec![0, 1, 0, 0, 1] };
        let sample = request.write();
        assert_eq!(sample, [0, 1, 0, 0, 2, 1, 0, 0, 0, 0, 0, 0, 3, 0, 0, 0, 0, 0, 0, 0, 1]);
        assert_eq!(Numbered::read(&sample), Some(request));
        let big = Numbered { client: 1, number: -2, payload: vec![0, 0, 0, 0, 9, 8] };
        assert_eq!(Numbered::read(&big.write()), Some(big));
        for length in 0..20 {
            assert_eq!(Numbered::read(&sample[..length]), None, "{length}");
        }
    }

    #[test]
    fn replies_to_others_and_late_ones_are_ignored() {
        let waiting = Waiting { client: 7, replies: Mutex::default(), arrived: Condvar::new() };
        waiting.replies().insert(1, None);
        let payload = |last| vec![0, 1, 0, 0, last];
        for (client, number, last) in [(8, 1, 1), (7, 2, 2), (7, 1, 3), (7, 1, 4)] {
            let sample = Numbered { client, number, payload: payload(last) }.write();
            waiting.receive(TopicId(0), &[Sample::new(&sample, None, None)]);
        }
        assert_eq!(*waiting.replies(), BTreeMap::from([(1, Some(payload(3)))]));
    }
}
