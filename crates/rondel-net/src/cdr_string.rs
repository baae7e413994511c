//! CDR-encoded DDS strings on other networks, as a bridge forwards them: [`Unwrapping`] extracts the text of received
//! samples, [`Wrapping`] encodes published text.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use rondel_event::{NameId, Timestamp, TopicId};

use crate::adapter::{Drops, Problems, PublishError, Publisher, Receiver, Sample, Subscription};

/// Number of samples delivered at a time.
const BATCH: usize = 64;

/// Receiver that extracts the string of each CDR-encoded sample and passes it to another receiver.
#[derive(Debug)]
pub struct Unwrapping<R: ?Sized> {
    malformed: Arc<AtomicU64>,
    name: String,
    receiver: Arc<R>,
}

impl<R: Receiver + ?Sized> Unwrapping<R> {
    /// Creates a receiver in front of `receiver`; `name` is the topic in log lines.
    pub fn new(receiver: Arc<R>, name: impl Into<String>) -> Unwrapping<R> {
        Unwrapping { malformed: Arc::default(), name: name.into(), receiver }
    }

    /// Returns a function that adds the malformed samples counted here to a subscription's problems.
    /// Call it before the receiver is passed to that subscription.
    pub fn counting(&self) -> impl FnOnce(Box<dyn Subscription>) -> Unwrapped + use<R> {
        let malformed = Arc::clone(&self.malformed);
        move |subscription| Unwrapped { subscription, malformed }
    }

    fn unwrap<'a>(&self, sample: &Sample<'a>) -> Option<Sample<'a>> {
        match rondel_decode::cdr::string(sample.payload) {
            Ok(payload) => Some(sample.with_payload(payload)),
            Err(why) => {
                if self.malformed.fetch_add(1, Ordering::Relaxed) == 0 {
                    tracing::warn!(
                        topic = %self.name,
                        "a message of {} bytes is not a CDR-encoded DDS string: {why}; it is ignored, further ones \
                         are only counted",
                        sample.payload.len()
                    );
                }
                None
            }
        }
    }
}

impl<R: Receiver + ?Sized> Receiver for Unwrapping<R> {
    fn receive(&self, topic: TopicId, samples: &[Sample<'_>]) {
        // The usual case; Zenoh always passes a single sample.
        if let [sample] = samples {
            if let Some(sample) = self.unwrap(sample) {
                self.receiver.receive(topic, &[sample]);
            }
            return;
        }
        for samples in samples.chunks(BATCH) {
            let mut strings = [Sample::new(&[], None, None); BATCH];
            let mut count = 0;
            for sample in samples.iter().filter_map(|sample| self.unwrap(sample)) {
                strings[count] = sample;
                count += 1;
            }
            if count > 0 {
                self.receiver.receive(topic, &strings[..count]);
            }
        }
    }

    fn idle(&self) {
        self.receiver.idle();
    }

    fn refusal(&self, topic: TopicId) -> Option<Box<str>> {
        self.receiver.refusal(topic)
    }

    fn receive_unnamed(&self, topic: TopicId, sample: Sample<'_>, why: &str) -> bool {
        self.receiver.receive_unnamed(topic, sample, why)
    }

    fn missed(&self, topic: TopicId, from: Timestamp, until: Option<Timestamp>) {
        self.receiver.missed(topic, from, until);
    }

    fn wants_idle(&self) -> bool {
        self.receiver.wants_idle()
    }

    fn wants_names(&self, topic: TopicId) -> bool {
        self.receiver.wants_names(topic)
    }

    fn number(&self, topic: TopicId, name: &str) -> Option<NameId> {
        self.receiver.number(topic, name)
    }

    fn wants_own(&self, topic: TopicId) -> bool {
        self.receiver.wants_own(topic)
    }
}

/// Subscription whose samples go through an [`Unwrapping`].
pub struct Unwrapped {
    subscription: Box<dyn Subscription>,
    malformed: Arc<AtomicU64>,
}

impl Subscription for Unwrapped {
    fn drain(&self, quiet: Duration, limit: Duration) -> bool {
        self.subscription.drain(quiet, limit)
    }

    fn close(&self, limit: Duration) -> bool {
        self.subscription.close(limit)
    }

    fn problems(&self) -> Problems {
        let seen = self.subscription.problems();
        Problems { malformed: seen.malformed + self.malformed.load(Ordering::Relaxed), ..seen }
    }

    fn publishers(&self) -> Option<u64> {
        self.subscription.publishers()
    }
}

/// Publisher that encodes each text as a CDR string.
pub struct Wrapping {
    publisher: Box<dyn Publisher>,
    /// Buffer of the last sample, for reuse.
    spare: Mutex<Vec<u8>>,
}

impl Wrapping {
    /// Creates a publisher in front of `publisher`.
    pub fn new(publisher: Box<dyn Publisher>) -> Wrapping {
        Wrapping { publisher, spare: Mutex::default() }
    }
}

impl Wrapping {
    /// Publishes a payload as a sample.
    fn wrap(
        &self,
        payload: &[u8],
        publish: impl FnOnce(&[u8]) -> Result<(), PublishError>,
    ) -> Result<(), PublishError> {
        // The lock is not held while publishing, which may block.
        let spare = || self.spare.lock().unwrap_or_else(PoisonError::into_inner);
        let mut sample = std::mem::take(&mut *spare());
        let published = rondel_decode::cdr::write_string(payload, &mut sample)
            .map_err(PublishError::Payload)
            .and_then(|()| publish(&sample));
        *spare() = sample;
        published
    }
}

impl Publisher for Wrapping {
    fn publish(&self, payload: &[u8]) -> Result<(), PublishError> {
        self.wrap(payload, |sample| self.publisher.publish(sample))
    }

    fn offer(&self, payload: &[u8], limit: Duration) -> Result<(), PublishError> {
        self.wrap(payload, |sample| self.publisher.offer(sample, limit))
    }

    fn release(&self) {
        self.publisher.release();
    }

    fn is_matched(&self) -> bool {
        self.publisher.is_matched()
    }

    fn wait_matched(&self, limit: Duration) -> bool {
        self.publisher.wait_matched(limit)
    }

    fn flush(&self, limit: Duration) -> bool {
        self.publisher.flush(limit)
    }

    fn settle(&self, limit: Duration) -> bool {
        self.publisher.settle(limit)
    }

    fn unconfirmed(&self) -> Option<u64> {
        self.publisher.unconfirmed()
    }

    fn hand_back(&self) {
        self.publisher.hand_back();
    }

    fn unconfirmed_payloads(&self, visit: &mut dyn FnMut(&[u8])) {
        self.publisher.unconfirmed_payloads(&mut |sample| {
            visit(rondel_decode::cdr::string(sample).unwrap_or_default())
        });
    }

    fn take_abandoned(&self, visit: &mut dyn FnMut(&[u8])) {
        self.publisher
            .take_abandoned(&mut |sample| visit(rondel_decode::cdr::string(sample).unwrap_or_default()));
    }

    fn drops(&self) -> Option<Arc<Drops>> {
        self.publisher.drops()
    }
}

#[cfg(test)]
mod tests {
    use rondel_event::Origin;

    use super::*;

    /// Records its samples and counts calls of `idle`.
    #[derive(Debug, Default)]
    struct Recorder(Mutex<Vec<Recorded>>, AtomicU64);

    type Recorded = (TopicId, Vec<u8>, Option<Timestamp>, Option<Origin>);

    impl Receiver for Recorder {
        fn receive(&self, topic: TopicId, samples: &[Sample<'_>]) {
            assert!(!samples.is_empty());
            let recorded = samples.iter().map(|s| (topic, s.payload.to_vec(), s.source_time, s.origin));
            self.0.lock().unwrap().extend(recorded);
        }

        fn idle(&self) {
            self.1.fetch_add(1, Ordering::Relaxed);
        }

        fn wants_idle(&self) -> bool {
            true
        }
    }

    /// A subscription with problems of its own.
    struct StubSubscription;

    impl Subscription for StubSubscription {
        fn drain(&self, _: Duration, _: Duration) -> bool {
            true
        }

        fn close(&self, _: Duration) -> bool {
            true
        }

        fn problems(&self) -> Problems {
            Problems { malformed: 1, lost: 2, ..Problems::default() }
        }
    }

    /// A publisher that records its payloads.
    struct RecordingPublisher(Arc<Mutex<Vec<Vec<u8>>>>);

    impl Publisher for RecordingPublisher {
        fn publish(&self, payload: &[u8]) -> Result<(), PublishError> {
            self.0.lock().unwrap().push(payload.to_vec());
            Ok(())
        }
    }

    #[test]
    fn wrapped_strings_are_unwrapped_and_other_payloads_are_counted() {
        let sent = Arc::default();
        let wrapping = Wrapping::new(Box::new(RecordingPublisher(Arc::clone(&sent))));
        for i in 0..150 {
            wrapping.publish(format!("{{\"v\":{i}}}").as_bytes()).unwrap();
        }
        assert!(matches!(wrapping.publish(b"a\0b"), Err(PublishError::Payload(_))));
        let samples = sent.lock().unwrap();
        assert_eq!(samples.len(), 150);

        let recorder = Arc::new(Recorder::default());
        let unwrapping = Unwrapping::new(Arc::clone(&recorder), "t");
        let subscription = unwrapping.counting()(Box::new(StubSubscription));
        let (time, origin) = (Timestamp::from_nanos(7), Origin { publisher: 1, number: 2 });
        let sample = |payload| Sample::new(payload, Some(time), None).with_origin(Some(origin));
        let all: Vec<Sample<'_>> = samples.iter().map(|payload| sample(&payload[..])).collect();
        unwrapping.receive(TopicId(3), &all[..1]);
        unwrapping.receive(TopicId(3), &[sample(b"{}")]);
        unwrapping.receive(TopicId(3), &[sample(b""), sample(b"{}")]);
        unwrapping.receive(TopicId(3), &[&all[1..100], &[sample(&[0, 1])], &all[100..]].concat());
        unwrapping.idle();
        let expected: Vec<_> = (0..150)
            .map(|i| (TopicId(3), format!("{{\"v\":{i}}}").into_bytes(), Some(time), Some(origin)))
            .collect();
        assert_eq!(*recorder.0.lock().unwrap(), expected);
        assert_eq!(subscription.problems(), Problems { malformed: 5, lost: 2, ..Problems::default() });
        assert!(unwrapping.wants_idle() && recorder.1.load(Ordering::Relaxed) == 1);
    }
}
