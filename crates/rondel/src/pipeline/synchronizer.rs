//! Messages that are put in order and published so, with nothing checked.

use std::sync::Arc;
use std::time::Instant;

use rondel_engine::align::{Order, Released, Sets};
use rondel_event::{Block, Layout, Projection, Timestamp, TopicId};
use rondel_net::adapter::{Publisher, Sample};
use rondel_net::json::JsonDecoder;

use super::aligned::{of_specification, time_before, time_of};
use super::notice::{AlignmentReport, Reporter};
use super::progress::Progress;
use super::time::{Limits, WaitClock};
use super::{Counts, Parts, Summary};
use crate::deployment::TimeOfEvent;
use crate::outlet::{Sink, publishers};
use crate::output::write_seconds;
use crate::tally::Unseen;
use crate::warn;

/// Puts messages in order, and publishes each set, or each message, as one:
/// `{"time":12.5,"gear":{…},"velocity":{…}}`, with the time of the set and, under the names of the topics, the messages
/// as they came.
pub(super) struct Synchronizer {
    rule: Rule,
    decoders: Vec<JsonDecoder>,
    times: Vec<TimeOfEvent>,
    block: Block,
    clock: WaitClock,
    limits: Limits,
    progress: Progress,
    reporter: Reporter,
    topics: Vec<String>,
    sinks: Vec<Sink>,
    set: Vec<(Timestamp, Arc<[u8]>)>,
    text: Vec<u8>,
    unstamped: u64,
    published: u64,
    unpublished: u64,
}

enum Rule {
    Order(Order<Arc<[u8]>>),
    Sets(Sets<Arc<[u8]>>),
}

impl Synchronizer {
    pub(super) fn new(parts: &Parts<'_>, sinks: Vec<Sink>, reports: Vec<Sink>) -> Synchronizer {
        let topics: Vec<String> = parts.specification.spec.topics.iter().map(|t| t.name.clone()).collect();
        let all: Vec<TopicId> = (0..topics.len() as u32).map(TopicId).collect();
        let alignment = parts.alignment;
        let rule = match alignment.set_settings(&all) {
            Some(settings) => Rule::Sets(alignment.sets(settings)),
            None => Rule::Order(Order::new(alignment.order_settings(&all))),
        };
        let decoders = parts.bindings.iter().enumerate().map(|(i, binding)| {
            let field = if let TimeOfEvent::Field(path) = &binding.time { Some(path) } else { None };
            JsonDecoder::new(TopicId(i as u32), &Projection::default(), field, binding.time_unit)
        });
        let units = parts.bindings.iter().map(|binding| binding.time_unit);
        Synchronizer {
            rule,
            decoders: decoders.collect(),
            times: parts.bindings.iter().map(|b| b.time.clone()).collect(),
            block: Block::new(Layout { topics: topics.len(), ..Layout::default() }),
            clock: WaitClock::new(alignment.clock),
            limits: Limits::new(alignment),
            progress: Progress::new(topics.iter().cloned().zip(units).collect()),
            reporter: Reporter::new(topics.clone(), reports),
            topics,
            sinks,
            set: Vec::new(),
            text: Vec::new(),
            unstamped: 0,
            published: 0,
            unpublished: 0,
        }
    }

    pub(super) fn summary(&self, counts: Counts) -> Summary {
        let mut alignment = AlignmentReport::new(&self.topics, self.unstamped, self.progress.unread);
        let all: Vec<TopicId> = (0..self.topics.len() as u32).map(TopicId).collect();
        match &self.rule {
            Rule::Order(order) => alignment.order(&order.statistics(), &all),
            Rule::Sets(sets) => alignment.sets(sets.statistics(), &all),
        }
        Summary {
            counts: Counts { verdicts: self.published, unpublished: self.unpublished, ..counts },
            tallies: Vec::new(),
            backwards: 0,
            unseen: Unseen::default(),
            left_out: Vec::new(),
            chains: Vec::new(),
            alignment: Some(alignment),
        }
    }

    pub(super) fn end(&mut self) -> Vec<Box<dyn Publisher>> {
        match &mut self.rule {
            Rule::Order(order) => order.flush(),
            Rule::Sets(sets) => sets.flush(),
        }
        self.step();
        let mut all = self.reporter.close();
        all.extend(publishers(std::mem::take(&mut self.sinks)));
        all
    }

    pub(super) fn release(&self) {
        for sink in &self.sinks {
            if let Sink::Network(publisher) = sink {
                publisher.release();
            }
        }
        self.reporter.release();
    }

    /// Takes word of how far a publisher is.
    pub(super) fn progress(&mut self, payload: &[u8]) {
        let Some((topic, marker)) = self.progress.read(payload) else { return self.reporter.unread(payload) };
        if let Rule::Order(order) = &mut self.rule {
            order.mark(topic, &marker, self.clock.at(Instant::now()));
        }
    }

    pub(super) fn receive(&mut self, topic: TopicId, samples: &[Sample<'_>], counts: &mut Counts) {
        for sample in samples {
            let at = Instant::now();
            let shown = self.clock.at(at);
            let of = &self.times[topic.index()];
            self.block.clear();
            let decoder = &mut self.decoders[topic.index()];
            if let Err(error) = decoder.decode(sample.payload, time_before(of, sample), &mut self.block) {
                counts.undecodable(sample.payload, error.offset, &error.to_string());
                continue;
            }
            counts.checked += 1;
            let (time, unstamped) = time_of(self.block.time(0), of, shown, sample);
            if unstamped {
                self.unstamped += 1;
                self.reporter.unstamped(topic, time);
            }
            let now = if shown.as_nanos() == i64::MIN { time } else { shown };
            match &mut self.rule {
                Rule::Order(order) => {
                    order.push(topic, time, sample.origin, now, Arc::from(sample.payload));
                }
                Rule::Sets(sets) => sets.push(topic, time, now, Arc::from(sample.payload)),
            }
            if self.limits.allow(time, shown) {
                self.clock.see(time, at);
            }
        }
        self.step();
    }

    /// Publishes what waits for nothing any more.
    pub(super) fn step(&mut self) {
        while self.write() {
            for sink in &self.sinks {
                let sent = match sink {
                    Sink::Network(publisher) => publisher.publish(&self.text).map_err(|e| e.to_string()),
                    Sink::Stdout => {
                        let line = [&self.text[..], b"\n"].concat();
                        std::io::Write::write_all(&mut std::io::stdout(), &line).map_err(|e| e.to_string())
                    }
                };
                match sent {
                    Ok(()) => self.published += 1,
                    Err(error) => {
                        self.unpublished += 1;
                        if self.unpublished == 1 {
                            warn(&format!(
                                "a set could not be published: {error}; further ones are only counted"
                            ));
                        }
                    }
                }
            }
        }
        match &mut self.rule {
            Rule::Order(order) => order.notices().for_each(|notice| self.reporter.order(&notice, &[])),
            Rule::Sets(sets) => {
                sets.notices().for_each(|notice| self.reporter.set(&of_specification(notice, &[])))
            }
        }
    }

    /// When time will bring something by itself.
    pub(super) fn due(&self) -> Option<Instant> {
        let due = match &self.rule {
            Rule::Order(order) => order.deadline(),
            Rule::Sets(sets) => sets.deadline(),
        };
        self.clock.instant(due?)
    }

    /// Publishes what time has brought until this instant; when it will bring more.
    pub(super) fn pass(&mut self, at: Instant) -> Option<Instant> {
        let now = self.clock.at(at);
        if now.as_nanos() > i64::MIN {
            match &mut self.rule {
                Rule::Order(order) => order.advance(now),
                Rule::Sets(sets) => sets.advance(now),
            }
            self.step();
        }
        self.due()
    }

    /// Writes the next message that can go. Whether there is one.
    fn write(&mut self) -> bool {
        let (set, text) = (&mut self.set, &mut self.text);
        let mut write =
            |time: Timestamp, is_tardy: bool, messages: &mut dyn Iterator<Item = (usize, &[u8])>| {
                text.clear();
                text.extend_from_slice(b"{\"time\":");
                write_seconds(time, text);
                text.extend_from_slice(if is_tardy { b",\"tardy\":true" } else { b"" });
                for (topic, message) in messages {
                    text.push(b',');
                    // A name always has a JSON form.
                    text.extend_from_slice(&serde_json::to_vec(&self.topics[topic]).unwrap_or_default());
                    text.push(b':');
                    text.extend_from_slice(message.trim_ascii());
                }
                text.push(b'}');
            };
        match &mut self.rule {
            Rule::Order(order) => {
                let Some(Released { topic, time, item, tardy }) = order.pop() else { return false };
                write(time, tardy.is_some(), &mut std::iter::once((topic.index(), &item[..])));
            }
            Rule::Sets(sets) => {
                let Some(of) = sets.pop(set) else { return false };
                write(
                    of.time,
                    false,
                    &mut set.iter().enumerate().map(|(topic, (_, message))| (topic, &message[..])),
                );
            }
        }
        true
    }
}
