//! Reading a selection of records once, merged by their times.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;
use std::time::{Duration, Instant};

use rdkafka::consumer::base_consumer::PartitionQueue;
use rdkafka::consumer::{BaseConsumer, Consumer as _};
use rdkafka::error::KafkaError;
use rdkafka::message::BorrowedMessage;
use rdkafka::{Message as _, Offset, TopicPartitionList};
use rondel_event::Timestamp;

use super::client::{self, unreachable, unreadable, unusable};
use super::filter::{Filter, Selected};
use super::incoming::header;
use super::partitions::{self, LIMIT, Partitions, Range, Unknown};
use super::watch::{Breaks, Watch};
use super::{Place, SelectedRecord, Selection, SelectionCounts, Settings};

/// Time of one wait for a record.
const WAIT: Duration = Duration::from_millis(100);
/// Time without a record after which reading fails.
const PATIENCE: Duration = Duration::from_secs(30);
/// Number of records between two looks at events of the client.
const LOOK: u32 = 256;

/// Calls `take` with the selected records at an address, in the order of their times, those of a partition with equal or
/// earlier times in the order of their offsets. Ends at the records that the brokers have when it begins. `is_stopped` is
/// called regularly, and ends reading early.
///
/// # Errors
/// The reason why not all records are read, in a sentence; also that of `take`.
pub fn read_selection(
    settings: &Settings,
    place: &str,
    selection: &Selection,
    is_stopped: &dyn Fn() -> bool,
    take: &mut dyn FnMut(SelectedRecord<'_>) -> Result<(), String>,
) -> Result<SelectionCounts, String> {
    let place = Place::parse(place).map_err(|error| error.to_string())?;
    settings.check().map_err(|error| error.to_string())?;
    let mut config = client::consumer(settings);
    // The end of a partition, behind which a transaction may have records that are never delivered.
    config.set("enable.partition.eof", "true");
    let context = client::Watched::new(Watch::new(settings.place(), Arc::<Breaks>::default()));
    let consumer: BaseConsumer<client::Watched> =
        config.create_with_context(context).map_err(|error| unusable(&error))?;
    let consumer = Arc::new(consumer);
    let reader = Reader { settings, topic: &place.topic, consumer: &consumer };
    let (spans, lost) = reader.spans(selection)?;
    let counts = SelectionCounts { lost, ..SelectionCounts::default() };
    let read = reader.read(&spans, Filter::new(place.clone()), counts, is_stopped, take);
    read.map_err(|reason| {
        format!("cannot read the topic `{}` of Kafka at {}: {reason}", place.topic, settings.place())
    })
}

struct Reader<'r> {
    settings: &'r Settings,
    topic: &'r str,
    consumer: &'r Arc<BaseConsumer<client::Watched>>,
}

/// Records of a partition that are read.
struct Stream<'q> {
    number: i32,
    queue: &'q PartitionQueue<client::Watched>,
    /// Records that came before the partition had its queue.
    early: VecDeque<BorrowedMessage<'q>>,
    /// The next record.
    head: Option<BorrowedMessage<'q>>,
    /// Its time.
    time: i64,
    /// Offset behind the last record.
    next: i64,
    /// Offset of the first record that is not read.
    end: i64,
    has_ended: bool,
    /// Greatest gap between two offsets in which no record had expired.
    harmless: i64,
}

impl<'q> Stream<'q> {
    fn new(number: i32, queue: &'q PartitionQueue<client::Watched>, span: Range) -> Stream<'q> {
        let Range { low: next, high: end } = span;
        let (early, head, time, has_ended, harmless) = (VecDeque::new(), None, 0, false, 0);
        Stream { number, queue, early, head, time, next, end, has_ended, harmless }
    }

    /// Waits for the next record. Returns whether it is there, or the partition has ended.
    fn fill(&mut self, wait: Duration) -> Result<bool, KafkaError> {
        if self.head.is_some() || self.has_ended {
            return Ok(true);
        }
        let polled = match self.early.pop_front() {
            Some(early) => Some(Ok(early)),
            None => self.queue.poll(wait),
        };
        match polled {
            Some(Ok(message)) if message.offset() >= self.end => self.has_ended = true,
            Some(Ok(message)) => {
                // A record without a time has that of the one before it.
                self.time = message.timestamp().to_millis().unwrap_or(self.time);
                self.head = Some(message);
            }
            Some(Err(KafkaError::PartitionEOF(_))) => self.has_ended = true,
            Some(Err(error)) => return Err(error),
            None => return Ok(false),
        }
        Ok(true)
    }

    /// Takes the next record, and the gap between it and the one before.
    fn take(&mut self) -> Option<(BorrowedMessage<'q>, i64)> {
        let message = self.head.take()?;
        let gap = message.offset().saturating_sub(self.next);
        self.next = message.offset() + 1;
        self.has_ended = self.next >= self.end;
        Some((message, gap))
    }
}

impl Reader<'_> {
    /// The offsets to read of each partition, and the number of selected ones that have expired.
    fn spans(&self, selection: &Selection) -> Result<(Partitions, u64), String> {
        let place = self.settings.place();
        let found = partitions::find(self.consumer.client(), self.topic, |_| false, LIMIT);
        let found = found.map_err(|unknown| match unknown {
            Unknown::Topic => format!("Kafka at {place} has no topic `{}`", self.topic),
            Unknown::Refused(reason) => format!("Kafka at {place}: {reason}"),
            Unknown::Unreachable(reason) => format!("cannot reach Kafka at {place}: {reason}"),
        })?;
        if let Some(missing) = selection.offsets.keys().find(|number| !found.contains_key(*number)) {
            let all = found.len();
            return Err(format!(
                "the topic `{}` has no partition {missing}: it has {all}, from 0",
                self.topic
            ));
        }
        let from = selection.from.map(|time| self.offsets(&found, ceiling(time))).transpose()?;
        let until =
            selection.until.map(|time| self.offsets(&found, floor(time).saturating_add(1))).transpose()?;
        let mut lost = 0_u64;
        let mut spans = Partitions::new();
        for (number, Range { low, high }) in found {
            let own = selection.offsets.get(&number);
            if own.is_none() && !selection.offsets.is_empty() {
                continue;
            }
            if let Some(own) = own {
                lost += low.min(own.end).saturating_sub(own.start).max(0).unsigned_abs();
            }
            let at = |offsets: Option<&BTreeMap<i32, i64>>, otherwise: i64| {
                offsets.and_then(|offsets| offsets.get(&number).copied()).unwrap_or(otherwise)
            };
            let first = own.map_or(low, |own| own.start).max(at(from.as_ref(), low)).max(low);
            let end = own.map_or(high, |own| own.end).min(at(until.as_ref(), high)).min(high);
            if first < end {
                spans.insert(number, Range { low: first, high: end });
            }
        }
        Ok((spans, lost))
    }

    /// The offset of the first record of each partition at a time in milliseconds or later; its end if there is none.
    fn offsets(&self, found: &Partitions, time: i64) -> Result<BTreeMap<i32, i64>, String> {
        let failed = |error: KafkaError| {
            let error =
                self.consumer.context().watch.last_error().map_or(error.to_string(), |last| last.reason);
            format!("cannot look for records of `{}` by their time: {error}", self.topic)
        };
        let mut list = TopicPartitionList::new();
        for number in found.keys() {
            // Smaller numbers stand for the begin and the end.
            list.add_partition_offset(self.topic, *number, Offset::Offset(time.max(0))).map_err(failed)?;
        }
        let list = self.consumer.offsets_for_times(list, LIMIT).map_err(failed)?;
        let mut offsets = BTreeMap::new();
        for element in list.elements() {
            element.error().map_err(failed)?;
            if let Offset::Offset(offset) = element.offset() {
                offsets.insert(element.partition(), offset);
            }
        }
        // Without such a record there is no offset.
        for (number, range) in found {
            offsets.entry(*number).or_insert(range.high);
        }
        Ok(offsets)
    }

    /// Reads records until all partitions have ended.
    fn read(
        &self,
        spans: &Partitions,
        mut filter: Filter,
        mut counts: SelectionCounts,
        is_stopped: &dyn Fn() -> bool,
        take: &mut dyn FnMut(SelectedRecord<'_>) -> Result<(), String>,
    ) -> Result<SelectionCounts, String> {
        let (queues, mut list) = (self.queues(spans)?, TopicPartitionList::new());
        for (number, span) in spans {
            // An offset is never negative.
            let _ = list.add_partition_offset(self.topic, *number, Offset::Offset(span.low));
        }
        self.consumer.assign(&list).map_err(|error| error.to_string())?;
        let streams = spans.iter().zip(&queues);
        let mut streams: Vec<Stream<'_>> =
            streams.map(|((number, span), queue)| Stream::new(*number, queue, *span)).collect();
        let mut last = Instant::now();
        loop {
            if is_stopped() {
                return Err("it was interrupted".to_owned());
            }
            self.look(&mut streams)?;
            let mut wait = WAIT;
            for stream in &mut streams {
                if !stream.fill(wait).map_err(|error| advice(&error))? {
                    // The others may have come meanwhile.
                    wait = Duration::ZERO;
                }
            }
            if wait.is_zero() {
                if last.elapsed() >= PATIENCE {
                    return Err(unreachable(self.consumer.context().watch.last_error().as_ref()));
                }
                continue;
            }
            for _ in 0..LOOK {
                let waiting = streams.iter_mut().filter(|stream| stream.head.is_some());
                let Some(stream) = waiting.min_by_key(|stream| (stream.time, stream.number)) else {
                    return Ok(counts);
                };
                let time = Timestamp::from_nanos(stream.time.saturating_mul(1_000_000));
                let Some((message, gap)) = stream.take() else { break };
                self.count_gap(stream, gap, &mut counts);
                match (filter.select(message.key(), |name| header(&message, name)), message.payload()) {
                    (Selected::Other, _) => {}
                    (_, None) => counts.empty += 1,
                    (Selected::Malformed, _) => counts.malformed += 1,
                    (Selected::Named(name), Some(payload)) => {
                        counts.records += 1;
                        take(SelectedRecord { name, time, payload })?;
                    }
                }
                last = Instant::now();
                if !stream.fill(Duration::ZERO).map_err(|error| advice(&error))? {
                    break;
                }
            }
        }
    }

    /// Gives each partition a queue of its own, so that none overtakes another.
    fn queues(&self, spans: &Partitions) -> Result<Vec<PartitionQueue<client::Watched>>, String> {
        let queue = |number: &i32| {
            let queue = self.consumer.split_partition_queue(self.topic, *number);
            queue.ok_or_else(|| format!("its partition {number} cannot be read"))
        };
        spans.keys().map(queue).collect()
    }

    /// Serves events of the client.
    fn look<'q>(&'q self, streams: &mut [Stream<'q>]) -> Result<(), String> {
        while let Some(polled) = self.consumer.poll(Duration::ZERO) {
            match polled {
                Ok(message) => {
                    let stream = streams.iter_mut().find(|stream| stream.number == message.partition());
                    if let Some(stream) = stream {
                        stream.early.push_back(message);
                    }
                }
                // That of a partition comes in its queue.
                Err(KafkaError::PartitionEOF(_)) => {}
                Err(error) if unreadable(&error).is_some() => return Err(advice(&error)),
                // The client connects again.
                Err(_) => {}
            }
        }
        Ok(())
    }

    /// Counts the records in a gap before a record that have expired since reading began.
    fn count_gap(&self, stream: &mut Stream<'_>, gap: i64, counts: &mut SelectionCounts) {
        if gap <= stream.harmless {
            return;
        }
        let begin = stream.next - 1 - gap;
        let low = self.consumer.client().fetch_watermarks(self.topic, stream.number, LIMIT);
        let lost = low.map_or(gap, |(low, _)| low.saturating_sub(begin).clamp(0, gap));
        if lost > 0 {
            counts.lost += lost.unsigned_abs();
        } else {
            stream.harmless = gap;
        }
    }
}

/// An error of reading, with advice.
fn advice(error: &KafkaError) -> String {
    unreadable(error).map_or(error.to_string(), |advice| format!("{error}; {advice}"))
}

/// The first millisecond that is not before a time.
fn ceiling(time: Timestamp) -> i64 {
    let (nanos, milli) = (time.as_nanos(), 1_000_000);
    nanos.div_euclid(milli) + i64::from(nanos.rem_euclid(milli) > 0)
}

/// The last millisecond that is not after a time.
fn floor(time: Timestamp) -> i64 {
    time.as_nanos().div_euclid(1_000_000)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_rounded_to_milliseconds_within_the_span() {
        let at = Timestamp::from_nanos;
        assert_eq!([0, 1, 1_000_000, 1_000_001].map(|nanos| ceiling(at(nanos))), [0, 1, 1, 2]);
        assert_eq!([0, 1, 999_999, 1_000_000].map(|nanos| floor(at(nanos))), [0, 0, 0, 1]);
        assert_eq!((ceiling(at(-1)), floor(at(-1))), (0, -1));
    }

    #[test]
    fn without_a_broker_the_reason_is_reported() {
        let settings = Settings { brokers: vec!["127.0.0.1:1".to_owned()], ..Settings::default() };
        let read = |place: &str| {
            read_selection(&settings, place, &Selection::default(), &|| false, &mut |_| Ok(())).unwrap_err()
        };
        assert!(read("state").starts_with("cannot reach Kafka at 127.0.0.1:1: "), "{}", read("state"));
        assert!(read("a b").contains("1 to 249"));
    }
}
