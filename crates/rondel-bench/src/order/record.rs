//! Arrivals, recorded once for all settings.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use rondel_align::Marker;
use rondel_event::{Timestamp, TopicId};
use rondel_net::adapter::{Receiver, Sample, Subscription, now};
use serde::Deserialize;

use super::{ARRIVE, PROGRESS, TOPICS};
use crate::failure::Result;
use crate::link::Link;

/// A message that arrived.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Arrival {
    /// The arrival time.
    pub at: Timestamp,
    /// The topic of the event, or the one that the marker is about.
    pub topic: TopicId,
    /// The content.
    pub what: What,
}

/// The content of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum What {
    /// An event, sent at this time; its stamp differs where the clock of its publisher has an error.
    Event {
        /// The stamp.
        stamp: Timestamp,
        /// The time.
        sent: Timestamp,
    },
    /// A progress marker.
    Marker(Marker),
}

/// Records arrivals as bytes, which are decoded afterwards.
#[derive(Debug, Default)]
pub struct Recorder {
    arrived: Mutex<Vec<(Timestamp, TopicId, Vec<u8>)>>,
}

#[derive(Deserialize)]
struct Event {
    stamp: i64,
}

#[derive(Deserialize)]
struct Progress {
    topic: String,
    complete: i64,
    after: Option<i64>,
    count: Option<u64>,
}

impl Receiver for Recorder {
    fn receive(&self, topic: TopicId, samples: &[Sample<'_>]) {
        let mut arrived = self.arrived.lock().unwrap_or_else(PoisonError::into_inner);
        for sample in samples {
            // Warm-up messages are empty. The clock is read under the lock, so that the first has the earlier time.
            if sample.payload != b"{}" {
                arrived.push((now(), topic, sample.payload.to_vec()));
            }
        }
    }
}

impl Recorder {
    /// Waits until `count` messages have arrived, at most `limit`; returns whether they have.
    pub fn wait(&self, count: usize, limit: Duration) -> bool {
        let deadline = Instant::now() + limit;
        loop {
            let arrived = self.arrived.lock().unwrap_or_else(PoisonError::into_inner).len();
            if arrived >= count || Instant::now() >= deadline {
                return arrived >= count;
            }
            std::thread::sleep(Duration::from_millis(5));
        }
    }

    /// Returns all arrivals, in order.
    pub fn arrivals(&self) -> Vec<Arrival> {
        let arrived = self.arrived.lock().unwrap_or_else(PoisonError::into_inner);
        arrived.iter().filter_map(|(at, topic, payload)| read(*at, *topic, payload)).collect()
    }
}

/// The subscriptions to the topics and to their markers.
pub struct Recording {
    recorder: Arc<Recorder>,
    subscriptions: Vec<Box<dyn Subscription>>,
}

impl Recording {
    /// Subscribes.
    ///
    /// # Errors
    /// When the network refuses.
    pub fn start(link: &Link) -> Result<Recording> {
        let recorder = Arc::new(Recorder::default());
        let subscriptions = (0_u32..)
            .zip(TOPICS.into_iter().chain([PROGRESS]))
            .map(|(topic, name)| link.subscribe(name, topic, Arc::clone(&recorder)))
            .collect::<Result<Vec<_>>>()?;
        Ok(Recording { recorder, subscriptions })
    }

    /// Returns all arrivals, in order, once `count` messages have arrived or the time limit has passed.
    pub fn end(self, count: usize) -> Vec<Arrival> {
        self.recorder.wait(count, ARRIVE);
        for subscription in &self.subscriptions {
            subscription.close(ARRIVE);
        }
        drop(self.subscriptions);
        self.recorder.arrivals()
    }
}

/// Returns the number of events among arrivals.
pub fn events(arrivals: &[Arrival]) -> u64 {
    arrivals.iter().filter(|arrival| matches!(arrival.what, What::Event { .. })).count() as u64
}

fn read(at: Timestamp, topic: TopicId, payload: &[u8]) -> Option<Arrival> {
    if topic.index() < TOPICS.len() {
        let event: Event = serde_json::from_slice(payload).ok()?;
        let stamp = Timestamp::from_nanos(event.stamp);
        return Some(Arrival { at, topic, what: What::Event { stamp, sent: stamp } });
    }
    let progress: Progress = serde_json::from_slice(payload).ok()?;
    let topic = TopicId(TOPICS.iter().position(|name| *name == progress.topic)? as u32);
    let marker = Marker {
        complete: Timestamp::from_nanos(progress.complete),
        after: progress.after.map(Timestamp::from_nanos),
        count: progress.count,
    };
    Some(Arrival { at, topic, what: What::Marker(marker) })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arrivals_are_decoded_afterwards() {
        let recorder = Recorder::default();
        let receive =
            |topic, payload: &[u8]| recorder.receive(TopicId(topic), &[Sample::new(payload, None, None)]);
        receive(0, b"{}");
        receive(1, b"{\"n\":0,\"stamp\":12}");
        receive(2, b"{\"topic\":\"order/b\",\"complete\":12,\"after\":3,\"count\":1}");
        receive(2, b"{\"topic\":\"order/c\",\"complete\":12}");
        assert!(recorder.wait(3, Duration::ZERO) && !recorder.wait(4, Duration::ZERO));
        let at = Timestamp::from_nanos;
        let marker = Marker { complete: at(12), after: Some(at(3)), count: Some(1) };
        let read: Vec<_> = recorder.arrivals().iter().map(|a| (a.topic, a.what)).collect();
        assert_eq!(
            read,
            [(TopicId(1), What::Event { stamp: at(12), sent: at(12) }), (TopicId(1), What::Marker(marker))]
        );
    }
}
