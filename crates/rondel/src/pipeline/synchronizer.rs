//! Messages that are put in order and published so, with nothing checked.

use std::sync::Arc;
use std::time::Instant;

use rondel_align::{Order, Released, Sets};
use rondel_decode::json::JsonDecoder;
use rondel_event::{Block, Layout, Projection, Timestamp, TopicId};
use rondel_net::adapter::{Publisher, Sample};

use super::aligned::{of_specification, time_before, time_of};
use super::notice::{AlignmentReport, Reporter};
use super::progress::Progress;
use super::time::{Limits, NO_TIME, WaitClock};
use super::{Counts, Parts, Summary};
use crate::deployment::{Alignment, TimeOfEvent};
use crate::outlet::{Sink, publishers};
use crate::output::write_seconds;
use crate::resume::{self, Known, Resumed, Waits};
use crate::specification::Specification;
use crate::tally::Unseen;
use crate::warn;

/// Puts messages in order, and publishes each set, or each message, as one:
/// `{"time":12.5,"gear":{…},"velocity":{…}}`, with the time of the set and, under the names of the topics, the messages
/// as they came.
pub(super) struct Synchronizer {
    rule: Rule,
    specification: Specification,
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
    /// How many messages were taken in the runs before.
    events: u64,
    /// Whether nobody has listened for a while, and it is not known yet for how long.
    resumes: bool,
    /// Whether another run will go on from where this one ends.
    goes_on: bool,
    /// From where that will be, once this one has ended.
    last: Option<Vec<u8>>,
}

enum Rule {
    Order(Order<Arc<[u8]>>),
    Sets(Sets<Arc<[u8]>>),
}

impl Rule {
    fn new(specification: &Specification, alignment: &Alignment) -> Rule {
        let all: Vec<TopicId> = (0..specification.spec.topics.len() as u32).map(TopicId).collect();
        match alignment.set_settings(&all) {
            Some(settings) => Rule::Sets(alignment.sets(settings)),
            None => Rule::Order(Order::new(alignment.order_settings(&all))),
        }
    }

    /// The same with what was saved of it. The topics by their names are part of what must fit.
    fn restored(self, specification: &Specification, state: &[u8]) -> Result<Rule, String> {
        let altered = || "it was altered".to_owned();
        let (of_names, state) = state.split_first_chunk().ok_or_else(altered)?;
        let of_names = usize::try_from(u64::from_le_bytes(*of_names)).unwrap_or(usize::MAX);
        let (names, state) = state.split_at_checked(of_names).ok_or_else(altered)?;
        if names != names_of(specification) {
            return Err("it belongs to other topics".to_owned());
        }
        let read = |bytes: &[u8]| Some(Arc::from(bytes));
        let rule = match self {
            Rule::Order(order) => order.restored(state, read).map(Rule::Order),
            Rule::Sets(sets) => sets.restored(state, read).map(Rule::Sets),
        };
        rule.map_err(|error| error.to_string())
    }

    fn saved(&self, specification: &Specification) -> Vec<u8> {
        let write = |item: &Arc<[u8]>, to: &mut Vec<u8>| to.extend_from_slice(item);
        let state = match self {
            Rule::Order(order) => order.snapshot(write),
            Rule::Sets(sets) => sets.snapshot(write),
        };
        let names = names_of(specification);
        [&(names.len() as u64).to_le_bytes()[..], &names, &state].concat()
    }

    fn unheard_until(&mut self, now: Timestamp) {
        match self {
            Rule::Order(order) => order.unheard_until(now),
            Rule::Sets(sets) => sets.unheard_until(now),
        }
    }
}

fn names_of(specification: &Specification) -> Vec<u8> {
    let names: Vec<&str> = specification.spec.topics.iter().map(|topic| topic.name.as_str()).collect();
    // Names always have a JSON form.
    serde_json::to_vec(&names).unwrap_or_default()
}

/// Whether a run of such a synchronizer can go on from there.
pub(super) fn accepts(
    specification: &Specification,
    alignment: &Alignment,
    resumed: &Resumed,
) -> Result<(), String> {
    resumed.waits(1, 0)?;
    Rule::new(specification, alignment).restored(specification, &resumed.states[0]).map(drop)
}

impl Synchronizer {
    pub(super) fn new(
        parts: &Parts<'_>,
        sinks: Vec<Sink>,
        reports: Vec<Sink>,
    ) -> Result<Synchronizer, String> {
        let topics: Vec<String> = parts.specification.spec.topics.iter().map(|t| t.name.clone()).collect();
        let alignment = parts.alignment;
        let mut rule = Rule::new(parts.specification, alignment);
        let unheard = Waits::default();
        let waits = match &parts.resumed {
            None => &unheard,
            Some(resumed) => {
                let waits = resumed.waits(1, 0)?;
                rule = rule.restored(parts.specification, &resumed.states[0])?;
                waits
            }
        };
        let decoders = parts.bindings.iter().enumerate().map(|(i, binding)| {
            let field = if let TimeOfEvent::Field(path) = &binding.time { Some(path) } else { None };
            JsonDecoder::new(TopicId(i as u32), &Projection::default(), field, binding.time_unit)
        });
        let units = parts.bindings.iter().map(|binding| binding.time_unit);
        Ok(Synchronizer {
            rule,
            specification: parts.specification.clone(),
            decoders: decoders.collect(),
            times: parts.bindings.iter().map(|b| b.time.clone()).collect(),
            block: Block::new(Layout { topics: topics.len(), ..Layout::default() }),
            clock: WaitClock::new(alignment.clock).after(waits.clock),
            limits: Limits::new(alignment),
            progress: Progress::new(topics.iter().cloned().zip(units).collect()).after(waits),
            reporter: Reporter::new(topics.clone(), reports),
            topics,
            sinks,
            set: Vec::new(),
            text: Vec::new(),
            unstamped: waits.unstamped,
            published: 0,
            unpublished: 0,
            events: parts.resumed.as_ref().map_or(0, |resumed| resumed.known.events),
            resumes: parts.resumed.is_some(),
            goes_on: parts.goes_on,
            last: None,
        })
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

    pub(super) fn end(&mut self, counts: Counts) -> Vec<Box<dyn Publisher>> {
        if !self.goes_on {
            match &mut self.rule {
                Rule::Order(order) => order.flush(),
                Rule::Sets(sets) => sets.flush(),
            }
        }
        self.step();
        if self.goes_on {
            self.last = Some(self.known(counts));
        }
        let mut all = self.reporter.close();
        all.extend(publishers(std::mem::take(&mut self.sinks)));
        all
    }

    /// From where another run can go on: from now, or from the end.
    pub(super) fn snapshot(&mut self, counts: Counts) -> Vec<u8> {
        match &self.last {
            Some(last) => last.clone(),
            None => {
                self.step();
                self.known(counts)
            }
        }
    }

    /// All that waits, and what is known beside it. What can be published must have been.
    fn known(&self, counts: Counts) -> Vec<u8> {
        let known = Known {
            events: self.events + counts.checked,
            waits: Some(Waits {
                clock: self.clock.saved(Instant::now()),
                unstamped: self.unstamped,
                unread: self.progress.unread,
                publishers: self.progress.saved(),
            }),
            ..Known::default()
        };
        resume::bytes(&known, &[self.rule.saved(&self.specification)])
    }

    /// The first time that the clock shows in a run that goes on from another one.
    fn resume(&mut self, now: Timestamp) {
        if self.resumes && now != NO_TIME {
            self.resumes = false;
            self.rule.unheard_until(now);
        }
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
        let shown = self.clock.at(Instant::now());
        self.resume(shown);
        if let Rule::Order(order) = &mut self.rule {
            order.mark(topic, &marker, self.clock.shown_or(shown, NO_TIME));
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
            let now = self.clock.shown_or(shown, time);
            self.resume(now);
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
        if now != NO_TIME {
            self.resume(now);
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
