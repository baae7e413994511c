//! Samples that a reader missed while it was not matched, fetched from publishers that keep them.
//!
//! A participant that was silent for longer than its lease is unmatched, and matched again when it is back. A publisher
//! with the durability TRANSIENT_LOCAL then still has its last samples. The reader itself does not request them: it
//! would not match other publishers, and would get old samples at its first match. So a second reader that requests
//! them is created after such a loss, for a short time. DDS does not show sequence numbers: samples of one publisher
//! are distinguished by the time of their publication.

use std::collections::BTreeMap;
use std::ops::RangeInclusive;
use std::ptr;
use std::time::{Duration, Instant};

use cyclors::dds_instance_handle_t;
use rondel_event::{Timestamp, TypeIndex};

use super::base::{Base, Opened, XCDR1_AND_2};
use super::entity::{Entity, Qos};
use super::taken::SampleBuffer;
use super::{Durability, TopicQos};

/// Time without a sample after which a publisher has sent all its kept samples. A lost request is repeated after 3 s.
const QUIET: Duration = Duration::from_secs(4);
/// Time limit of fetching, even if samples still arrive.
const LIMIT: Duration = Duration::from_secs(30);
/// Time in which both sides rediscover each other: participants announce themselves every second.
const SETTLED: Duration = Duration::from_secs(3);
/// Interval of looking for samples.
const POLL: Duration = Duration::from_millis(5);
/// Limit of remembered publishers.
const KNOWN: usize = 1024;

/// Times of publication of the last sample of a publisher, and of the first and last fetched one; and its type.
#[derive(Clone, Copy, Debug)]
struct Times {
    last: i64,
    fetched_from: i64,
    fetched: i64,
    of_type: TypeIndex,
}

/// The publishers of a reader's samples.
#[derive(Debug)]
pub(super) struct Sources {
    current: dds_instance_handle_t,
    times: Times,
    others: BTreeMap<dds_instance_handle_t, Times>,
    /// The former handle and the handle of a publisher that sends its kept samples again to the reader itself.
    returned: Option<(dds_instance_handle_t, dds_instance_handle_t)>,
    /// The state of a publisher before its first sample.
    new: Times,
}

impl Sources {
    /// Creates the publishers of a reader whose samples have this type.
    pub(super) fn new(of_type: TypeIndex) -> Sources {
        let new = Times { last: i64::MIN, fetched_from: i64::MIN, fetched: i64::MIN, of_type };
        // No publisher has the handle 0.
        Sources { current: 0, times: new, others: BTreeMap::new(), returned: None, new }
    }

    /// Whether a sample of this publisher was received before.
    #[inline]
    pub(super) fn knows(&self, publisher: dds_instance_handle_t) -> bool {
        publisher == self.current || self.others.contains_key(&publisher)
    }

    /// Whether a sample was not fetched before. Records its time.
    #[inline]
    pub(super) fn admit(&mut self, publisher: dds_instance_handle_t, time: i64) -> bool {
        if publisher != self.current {
            self.switch(publisher);
        }
        if time <= self.times.fetched && time >= self.times.fetched_from {
            return false;
        }
        self.times.last = time;
        true
    }

    #[cold]
    fn switch(&mut self, publisher: dds_instance_handle_t) {
        if self.others.len() >= KNOWN {
            self.others.pop_first();
        }
        if self.current != 0 {
            self.others.insert(self.current, self.times);
        }
        (self.current, self.times) = (publisher, self.others.remove(&publisher).unwrap_or(self.new));
        if let Some((former, _)) = self.returned.filter(|(_, returned)| *returned == publisher)
            && let Some(former) = self.others.get(&former)
            && !self.is_refusing()
        {
            self.times.fetched = self.times.fetched.max(former.last);
        }
    }

    /// Refuses all samples of a publisher.
    pub(super) fn refuse(&mut self, publisher: dds_instance_handle_t) {
        self.fetched(publisher, i64::MIN..=i64::MAX);
        self.times.last = i64::MIN;
    }

    /// Sets the type of the samples of a publisher.
    pub(super) fn set_type(&mut self, publisher: dds_instance_handle_t, of_type: TypeIndex) {
        if publisher != self.current {
            self.switch(publisher);
        }
        self.times.of_type = of_type;
    }

    /// Returns the type of the samples of the current publisher.
    #[inline]
    pub(super) fn of_type(&self) -> TypeIndex {
        self.times.of_type
    }

    /// Whether the samples of the current publisher are refused.
    #[inline]
    pub(super) fn is_refusing(&self) -> bool {
        self.times.fetched == i64::MAX
    }

    /// Returns the time of the last sample of a publisher; `None` without one.
    pub(super) fn last(&mut self, publisher: dds_instance_handle_t) -> Option<i64> {
        if publisher != self.current {
            self.switch(publisher);
        }
        Some(self.times.last).filter(|last| *last > i64::MIN)
    }

    /// Records that the samples of a publisher from these times were fetched.
    pub(super) fn fetched(&mut self, publisher: dds_instance_handle_t, times: RangeInclusive<i64>) {
        if publisher != self.current {
            self.switch(publisher);
        }
        let (fetched_from, fetched) = times.into_inner();
        self.times = Times { last: fetched, fetched_from, fetched, ..self.times };
    }

    /// Records that a publisher, which had another handle before, sends its kept samples again: those that were received
    /// with the former handle until then are refused with this one.
    pub(super) fn returned(&mut self, former: dds_instance_handle_t, publisher: dds_instance_handle_t) {
        let Some(last) = self.last(former) else { return };
        self.fetched(publisher, i64::MIN..=last);
        self.returned = (former != publisher).then_some((former, publisher));
    }
}

/// Fetched samples.
#[derive(Clone, Copy, Debug)]
pub(super) struct Fetched {
    /// Their number.
    pub(super) count: u64,
    /// Times of the first and the last one.
    pub(super) first: i64,
    pub(super) last: i64,
}

/// Fetches the samples of a publisher after a time, up to the first sample that reaches the reader itself after the
/// rediscovery: `find_first` returns its time, once it has arrived. Stops when the subscription is closed. Calls
/// `deliver` with up to 64 samples.
pub(super) fn fetch(
    base: &Base,
    opened: &Opened,
    publisher: dds_instance_handle_t,
    after: i64,
    find_first: impl Fn() -> Option<i64>,
    mut deliver: impl FnMut(&[(&[u8], Timestamp)]) -> u64,
) -> Fetched {
    let mut fetched = Fetched { count: 0, first: i64::MAX, last: after };
    let (partitions, reliability) = (opened.qos.partitions.clone(), opened.qos.reliability);
    let durability = Some(Durability::TransientLocal);
    let wanted = TopicQos { reliability, durability, partitions, ..TopicQos::default() };
    let Ok(qos) = Qos::new().requesting(&wanted, base.queue) else { return fetched };
    let qos = qos.representations(&XCDR1_AND_2);
    // SAFETY: live handles, and qualities of service that outlive the call; no listener.
    let reader = unsafe {
        let participant = base.domain.participant();
        cyclors::dds_create_reader(participant, opened.topic.handle(), qos.as_ptr(), ptr::null())
    };
    let Ok(reader) = Entity::own(reader, "DDS reader") else { return fetched };
    let mut buffer = SampleBuffer::new(opened.has_keys, base.queue);
    let began = Instant::now();
    let mut last_sample = began;
    let (mut first, mut is_reached) = (None, false);
    while !is_reached && began.elapsed() < LIMIT && !base.state.is_stopping() {
        // An earlier sample may have waited in the system since before the loss: the next gap would begin after it.
        first = first.or_else(&find_first).filter(|_| began.elapsed() >= SETTLED);
        is_reached = first.is_some_and(|first| fetched.last >= first);
        let taken = if is_reached { None } else { buffer.take(&reader) };
        let Some(taken) = taken else {
            is_reached |= last_sample.elapsed() >= QUIET;
            std::thread::sleep(POLL);
            continue;
        };
        let mut samples = Vec::with_capacity(64);
        for (data, info) in taken.samples() {
            if !info.valid_data || info.publication_handle != publisher {
                continue;
            }
            last_sample = Instant::now();
            let time = info.source_timestamp;
            if first.is_some_and(|first| time >= first) {
                is_reached = true;
                break;
            }
            if time > fetched.last {
                fetched.first = fetched.first.min(time);
                fetched.last = time;
                samples.push((data, Timestamp::from_nanos(time)));
            }
        }
        if !samples.is_empty() {
            fetched.count += deliver(&samples);
        }
    }
    fetched
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fetched_samples_are_delivered_once() {
        let mut sources = Sources::new(TypeIndex::default());
        assert!(!sources.knows(7));
        assert!(sources.admit(7, 1) && sources.admit(8, 1) && sources.admit(7, 2));
        assert!(sources.knows(7) && sources.knows(8));
        assert_eq!((sources.last(7), sources.last(8), sources.last(9)), (Some(2), Some(1), None));
        sources.fetched(9, i64::MIN..=5);
        assert!(!sources.admit(9, 4) && !sources.admit(9, 5) && sources.admit(9, 6) && sources.admit(7, 3));
        assert!(!sources.is_refusing());
        sources.refuse(11);
        assert!(sources.knows(11) && sources.last(11).is_none());
        assert!(!sources.admit(11, 9) && sources.is_refusing());
        assert!(sources.admit(7, 9) && !sources.is_refusing());
        (100..5_000).for_each(|publisher| assert!(sources.admit(publisher, 1)));
        assert!(sources.others.len() <= KNOWN);
    }

    /// Some of its samples had arrived with the former handle, and wait, when those between were fetched.
    #[test]
    fn samples_with_the_former_handle_are_delivered_once() {
        let mut sources = Sources::new(TypeIndex::default());
        assert!(sources.admit(7, 10));
        sources.fetched(8, i64::MIN..=40);
        sources.fetched(7, 20..=40);
        // A publisher that keeps few samples did not send this one again.
        assert!(sources.admit(7, 15));
        assert!(
            !sources.admit(7, 20) && !sources.admit(7, 40) && !sources.admit(8, 40) && sources.admit(8, 41)
        );
    }

    /// As above, but the reader itself gets the samples again.
    #[test]
    fn samples_that_are_sent_again_are_delivered_once() {
        let mut sources = Sources::new(TypeIndex::default());
        assert!(sources.admit(7, 10));
        sources.returned(7, 8);
        assert!(sources.admit(7, 11) && sources.admit(7, 12));
        assert!(!sources.admit(8, 10) && !sources.admit(8, 12) && sources.admit(8, 13));
        sources.returned(8, 8);
        assert!(!sources.admit(8, 13) && sources.admit(8, 14));
    }
}
