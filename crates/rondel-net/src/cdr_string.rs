//! Strings of DDS in CDR on networks that carry bytes: a bridge hands samples on as they are, and [`Unwrapping`] and
//! [`Wrapping`] stand between such a network and receivers and publishers of text.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use rondel_event::TopicId;

use crate::adapter::{Problems, PublishError, Publisher, Receiver, Sample, Subscription};

/// How many samples are handed on at a time.
const BATCH: usize = 64;

/// Takes the strings out of samples of DDS, and hands these to another receiver.
#[derive(Debug)]
pub struct Unwrapping<R: ?Sized> {
    malformed: Arc<AtomicU64>,
    name: String,
    receiver: Arc<R>,
}

impl<R: Receiver + ?Sized> Unwrapping<R> {
    /// For a subscription of this name.
    pub fn new(receiver: Arc<R>, name: impl Into<String>) -> Unwrapping<R> {
        Unwrapping { malformed: Arc::default(), name: name.into(), receiver }
    }

    /// The subscription that hands its samples to this, so that it counts those that are not what they
    /// should be. To be asked for before the receiver is given away.
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
                        "a message of {} bytes is not a string of DDS in CDR: {why}; further ones are only counted",
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
        // By far the most, on Zenoh all.
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

    fn wants_idle(&self) -> bool {
        self.receiver.wants_idle()
    }
}

/// A subscription whose samples go through an [`Unwrapping`].
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
}

/// Publishes texts as samples of DDS, each a string.
pub struct Wrapping {
    publisher: Box<dyn Publisher>,
    /// The room of the last sample, for the next.
    room: Mutex<Vec<u8>>,
}

impl Wrapping {
    /// By this publisher.
    pub fn new(publisher: Box<dyn Publisher>) -> Wrapping {
        Wrapping { publisher, room: Mutex::default() }
    }
}

impl Publisher for Wrapping {
    fn publish(&self, payload: &[u8]) -> Result<(), PublishError> {
        // Not kept locked: to publish may take as long as a subscriber likes.
        let room = || self.room.lock().unwrap_or_else(PoisonError::into_inner);
        let mut sample = std::mem::take(&mut *room());
        let published = rondel_decode::cdr::write_string(payload, &mut sample)
            .map_err(PublishError::Payload)
            .and_then(|()| self.publisher.publish(&sample));
        *room() = sample;
        published
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
}

#[cfg(test)]
mod tests {
    use rondel_event::{Origin, Timestamp};

    use super::*;

    /// Keeps what it is given, and how it came.
    #[derive(Debug, Default)]
    struct Kept(Mutex<Vec<One>>, AtomicU64);

    type One = (TopicId, Vec<u8>, Option<Timestamp>, Option<Origin>);

    impl Receiver for Kept {
        fn receive(&self, topic: TopicId, samples: &[Sample<'_>]) {
            assert!(!samples.is_empty());
            let kept = samples.iter().map(|s| (topic, s.payload.to_vec(), s.source_time, s.origin));
            self.0.lock().unwrap().extend(kept);
        }

        fn idle(&self) {
            self.1.fetch_add(1, Ordering::Relaxed);
        }

        fn wants_idle(&self) -> bool {
            true
        }
    }

    struct Quiet;

    impl Subscription for Quiet {
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

    /// A publisher that keeps what it is given where the test can see it.
    struct Handed(Arc<Mutex<Vec<Vec<u8>>>>);

    impl Publisher for Handed {
        fn publish(&self, payload: &[u8]) -> Result<(), PublishError> {
            self.0.lock().unwrap().push(payload.to_vec());
            Ok(())
        }
    }

    #[test]
    fn what_was_wrapped_comes_out_and_the_rest_is_counted() {
        let sent = Arc::default();
        let wrapping = Wrapping::new(Box::new(Handed(Arc::clone(&sent))));
        for i in 0..150 {
            wrapping.publish(format!("{{\"v\":{i}}}").as_bytes()).unwrap();
        }
        assert!(matches!(wrapping.publish(b"a\0b"), Err(PublishError::Payload(_))));
        let samples = sent.lock().unwrap();
        assert_eq!(samples.len(), 150);

        let kept = Arc::new(Kept::default());
        let unwrapping = Unwrapping::new(Arc::clone(&kept), "t");
        let subscription = unwrapping.counting()(Box::new(Quiet));
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
        assert_eq!(*kept.0.lock().unwrap(), expected);
        assert_eq!(subscription.problems(), Problems { malformed: 5, lost: 2, ..Problems::default() });
        assert!(unwrapping.wants_idle() && kept.1.load(Ordering::Relaxed) == 1);
    }
}
