//! Measurements of the evaluating thread that statistics do not have: bytes, verdicts, and times.

use std::collections::HashMap;
use std::time::{Duration, Instant};

use rondel_event::{Timestamp, TopicId, Verdict};
use rondel_net::adapter::{Sample, now};
use rondel_runtime::Report;
use rondel_runtime::text::parameters_text;

use super::histogram::Histogram;

/// Number of messages after which their service time is measured, if none of them was the last one that waited. The
/// session evaluates that many at once.
const BLOCK: u64 = 64;

/// Verdicts in the order of their counters.
pub const VERDICTS: [Verdict; 3] = [Verdict::Satisfied, Verdict::Violated, Verdict::Inconclusive];

/// Measurements of one run. The clock is read twice or three times for each block of messages.
#[derive(Clone, Debug, Default)]
pub struct Meter {
    /// Payload bytes of each topic.
    pub bytes: Vec<u64>,
    /// Emitted verdicts of each property, in the order of [`VERDICTS`].
    pub verdicts: Vec<[u64; 3]>,
    /// Time per message from its reception until its verdicts were handed to their sinks. Messages of a block have
    /// equal shares.
    pub service: Histogram,
    /// Time from the publication of the first message of a block until the verdicts were handed to their sinks.
    pub since_publication: Histogram,
    /// Time from the arrival of the first message of a block until the verdicts were handed to their sinks.
    pub since_arrival: Histogram,
    /// Violations of instances, by the position of the property and the parameters in brackets.
    pub instances: HashMap<(u32, String), u64>,
    /// Violations of further instances, by property.
    pub further_instances: Vec<u64>,
    /// Maximum number of instances that are counted apart.
    most_instances: usize,
    block: Option<TimedBlock>,
    /// Reception of the first message since the networks were last idle.
    behind_since: Option<Instant>,
}

/// Messages whose evaluation is being timed.
#[derive(Clone, Copy, Debug)]
struct TimedBlock {
    began: Instant,
    messages: u64,
    /// Times of the first message, where the network provides them.
    published: Option<Timestamp>,
    arrived: Option<Timestamp>,
}

impl Meter {
    /// Creates a meter for these numbers of topics and properties; `most_instances` instances are counted apart.
    pub fn new(topics: usize, properties: usize, most_instances: usize) -> Meter {
        Meter {
            bytes: vec![0; topics],
            verdicts: vec![[0; 3]; properties],
            further_instances: vec![0; properties],
            most_instances,
            ..Meter::default()
        }
    }

    /// Counts received samples, which are pushed next.
    #[inline]
    pub fn receive(&mut self, topic: TopicId, samples: &[Sample<'_>]) {
        if let Some(bytes) = self.bytes.get_mut(topic.index()) {
            *bytes += samples.iter().map(|sample| sample.payload.len() as u64).sum::<u64>();
        }
        let count = samples.len() as u64;
        match &mut self.block {
            Some(block) => block.messages += count,
            None => self.begin(count, samples.first()),
        }
    }

    fn begin(&mut self, messages: u64, first: Option<&Sample<'_>>) {
        let began = Instant::now();
        self.behind_since.get_or_insert(began);
        let published = first.and_then(|sample| sample.source_time);
        let arrived = first.and_then(Sample::known_arrival);
        self.block = Some(TimedBlock { began, messages, published, arrived });
    }

    /// Ends the measurement of a full block, after its samples were pushed.
    #[inline]
    pub fn pushed(&mut self) {
        if self.block.is_some_and(|block| block.messages >= BLOCK) {
            self.evaluated();
        }
    }

    /// Ends the measurement of a block: its messages are evaluated.
    pub fn evaluated(&mut self) {
        let Some(block) = self.block.take() else { return };
        let elapsed = block.began.elapsed();
        let share = u32::try_from(block.messages.max(1)).unwrap_or(u32::MAX);
        self.service.record(elapsed / share, block.messages);
        let time = match (block.published, block.arrived) {
            (None, None) => None,
            _ => Some(now()),
        };
        let since = |from: Option<Timestamp>| {
            let (from, time) = from.zip(time)?;
            // The publisher's clock may be ahead.
            let nanos = time.as_nanos().saturating_sub(from.as_nanos());
            Some(Duration::from_nanos(u64::try_from(nanos).unwrap_or(0)))
        };
        if let Some(latency) = since(block.published) {
            self.since_publication.record(latency, 1);
        }
        self.since_arrival.record(since(block.arrived).unwrap_or(elapsed), 1);
    }

    /// Gives topics and properties other positions. Each list has for a position the one before; others begin at zero.
    pub fn rearrange(&mut self, topics: &[Option<usize>], properties: &[Option<usize>]) {
        fn moved<T: Copy + Default>(before: &[T], origins: &[Option<usize>]) -> Vec<T> {
            let value = |origin: &Option<usize>| origin.and_then(|at| before.get(at).copied());
            origins.iter().map(|origin| value(origin).unwrap_or_default()).collect()
        }
        self.bytes = moved(&self.bytes, topics);
        self.verdicts = moved(&self.verdicts, properties);
        self.further_instances = moved(&self.further_instances, properties);
        for ((property, parameters), count) in std::mem::take(&mut self.instances) {
            if let Some(at) = properties.iter().position(|origin| *origin == Some(property as usize)) {
                self.instances.insert((at as u32, parameters), count);
            }
        }
    }

    /// Notes that no message waits in a network.
    pub fn idle(&mut self) {
        self.behind_since = None;
    }

    /// Reception of the first message since the networks were last idle; `None` while they are.
    pub fn behind_since(&self) -> Option<Instant> {
        self.behind_since
    }

    /// Counts a verdict.
    #[inline]
    pub fn see(&mut self, report: &Report<'_>) {
        let (property, verdict) = (report.property().position, report.verdict());
        if let Some(counts) = self.verdicts.get_mut(property as usize) {
            let place = match verdict {
                Verdict::Satisfied => 0,
                Verdict::Violated => 1,
                Verdict::Inconclusive => 2,
            };
            counts[place] += 1;
        }
        if self.most_instances > 0 && verdict == Verdict::Violated && report.changed() {
            self.see_instance(property, report);
        }
    }

    #[cold]
    fn see_instance(&mut self, property: u32, report: &Report<'_>) {
        if report.parameters().is_empty() {
            return;
        }
        let key = (property, parameters_text(report.parameters()));
        if let Some(count) = self.instances.get_mut(&key) {
            *count += 1;
        } else if self.instances.len() < self.most_instances {
            self.instances.insert(key, 1);
        } else if let Some(count) = self.further_instances.get_mut(property as usize) {
            *count += 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn receive(meter: &mut Meter, payload: &[u8], times: [Option<Timestamp>; 2]) {
        meter.receive(TopicId(1), &[Sample::new(payload, times[0], times[1])]);
        meter.pushed();
    }

    #[test]
    fn every_message_has_a_service_time_and_every_block_a_latency() {
        let mut meter = Meter::new(2, 1, 0);
        for _ in 0..BLOCK + 6 {
            receive(&mut meter, b"four", [None, None]);
        }
        assert_eq!(
            (meter.service.count(), meter.since_arrival.count()),
            (BLOCK, 1),
            "a full block is measured"
        );
        assert!(meter.behind_since().is_some());
        meter.evaluated();
        meter.idle();
        assert!(meter.behind_since().is_none());
        assert_eq!(meter.service.count(), BLOCK + 6);
        assert_eq!((meter.since_arrival.count(), meter.since_publication.count()), (2, 0));
        assert_eq!(meter.bytes, [0, 4 * (BLOCK + 6)]);
        let ago = |seconds: i64| Some(Timestamp::from_nanos(now().as_nanos() - seconds * 1_000_000_000));
        receive(&mut meter, b"", [ago(3), ago(2)]);
        meter.evaluated();
        assert!(meter.since_publication.seconds() >= 3.0 && meter.since_arrival.seconds() >= 2.0);
        // A publisher whose clock is ahead.
        receive(&mut meter, b"", [ago(-100), None]);
        meter.evaluated();
        assert_eq!(meter.since_publication.count(), 2);
        assert!(meter.since_publication.seconds() < 60.0);
    }
}
