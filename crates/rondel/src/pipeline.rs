//! The way of a message: decoded where the network delivers it, evaluated with those that came
//! together with it, and answered, all on the network's own thread.

use std::io;
use std::sync::mpsc::Sender;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, TryLockError};
use std::time::{Duration, Instant};

use rondel_engine::Monitor;
use rondel_event::{Block, Timestamp, TopicId};
use rondel_net::adapter::{Publisher, Receiver, Sample, now};
use rondel_net::json::JsonDecoder;

use crate::deployment::{Binding, TimeOfEvent};
use crate::output::{Emit, Format, Output, VerdictWriter};
use crate::specification::Specification;
use crate::tally::{Backwards, Tally, Unseen};
use crate::warn;

/// Why a run ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stop {
    /// A signal, or the demo is over.
    Asked,
    /// The number of messages asked for was received.
    Count,
}

/// Where the verdicts of a property go.
pub enum Sink {
    /// To a topic.
    Network(Box<dyn Publisher>),
    /// To standard output.
    Stdout,
}

/// What happened so far.
#[derive(Clone, Copy, Debug, Default)]
pub struct Counts {
    /// Messages received.
    pub received: u64,
    /// Messages decoded and evaluated.
    pub checked: u64,
    /// Messages that were not JSON.
    pub undecodable: u64,
    /// Values of another type than the specification reads.
    pub mistyped: u64,
    /// Verdicts published or printed, counted per sink.
    pub verdicts: u64,
    /// Verdicts that could not be published.
    pub unpublished: u64,
    /// When the first message was received.
    pub first: Option<Timestamp>,
    /// When the run ended: with the last message that was asked for, or later.
    pub last: Option<Timestamp>,
    /// How many messages had been received then, if it ended with the one that was asked for.
    pub until_last: u64,
}

/// Receives samples, evaluates them and publishes verdicts.
///
/// All of it is under one lock: verdicts leave in the order of the events, and a sink that cannot take
/// more holds the source back. There is no queue
/// here: the bounded queues are those of the networks, on both sides.
pub struct Pipeline {
    state: Mutex<State>,
    batching: bool,
    stop_after: u64,
    stop: Sender<Stop>,
}

struct State {
    decoders: Vec<JsonDecoder>,
    times: Vec<TimeOfEvent>,
    /// The time of the last event.
    time: Timestamp,
    block: Block,
    monitor: Monitor,
    emit: Emit,
    format: Format,
    colour: bool,
    writers: Vec<VerdictWriter>,
    sinks: Vec<Vec<Sink>>,
    text: Vec<u8>,
    stdout: Output<io::Stdout>,
    stdout_failed: bool,
    tallies: Vec<Tally>,
    backwards: Backwards,
    unseen: Unseen,
    counts: Counts,
}

/// What a [`Pipeline`] is made of.
pub struct Parts<'a> {
    /// What is evaluated.
    pub specification: &'a Specification,
    /// How each topic is read.
    pub bindings: &'a [Binding],
    /// Which verdicts leave.
    pub emit: Emit,
    /// Where the verdicts of each property go.
    pub sinks: Vec<Vec<Sink>>,
    /// Whether a sink may hold verdicts back, so that it has to be told when nothing more comes.
    pub batching: bool,
    /// How verdicts are printed on standard output.
    pub format: Format,
    /// Whether they are coloured there.
    pub colour: bool,
    /// After how many messages [`Stop::Count`] is sent.
    pub stop_after: Option<u64>,
    /// Where it is sent.
    pub stop: Sender<Stop>,
}

impl Pipeline {
    /// Puts the parts together.
    pub fn new(parts: Parts<'_>) -> Pipeline {
        let program = Arc::clone(&parts.specification.program);
        let decoders =
            program.projections().iter().zip(parts.bindings).enumerate().map(|(i, (projection, binding))| {
                let field = if let TimeOfEvent::Field(path) = &binding.time { Some(path) } else { None };
                JsonDecoder::new(TopicId(i as u32), projection, field, binding.time_unit)
            });
        let mut monitor = Monitor::new(Arc::clone(&program));
        monitor.report_every(parts.emit == Emit::Every);
        let state = State {
            decoders: decoders.collect(),
            times: parts.bindings.iter().map(|b| b.time.clone()).collect(),
            time: Timestamp::ZERO,
            block: Block::new(program.layout()),
            monitor,
            emit: parts.emit,
            format: parts.format,
            colour: parts.colour,
            writers: program.properties().iter().map(|p| VerdictWriter::new(p, None)).collect(),
            sinks: parts.sinks,
            text: Vec::new(),
            stdout: Output::new(io::stdout()),
            stdout_failed: false,
            tallies: vec![Tally::default(); program.properties().len()],
            backwards: Backwards::default(),
            unseen: Unseen::new(parts.specification),
            counts: Counts::default(),
        };
        let stop_after = parts.stop_after.unwrap_or(u64::MAX);
        Pipeline { state: Mutex::new(state), batching: parts.batching, stop_after, stop: parts.stop }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        // A panic elsewhere does not make the counts wrong.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// What happened so far: counts, what became of each property, how often time went back, and what
    /// never came.
    pub fn report(&self) -> (Counts, Vec<Tally>, u64, Unseen) {
        let mut state = self.state();
        state.counts.mistyped = state.decoders.iter().map(JsonDecoder::mistyped).sum();
        let steps = state.monitor.position();
        let mut tallies = state.tallies.clone();
        for tally in &mut tallies {
            tally.end(steps);
        }
        (state.counts, tallies, state.backwards.count, state.unseen.clone())
    }

    /// Ends the trace and lets go of the sinks, which are handed back to be flushed. `None` when a sink
    /// has not taken its verdict within `limit`: then nothing more can be done here.
    pub fn end(&self, limit: Duration) -> Option<Vec<Box<dyn Publisher>>> {
        let deadline = Instant::now() + limit;
        let mut state = loop {
            match self.state.try_lock() {
                Ok(state) => break state,
                Err(TryLockError::Poisoned(poisoned)) => break poisoned.into_inner(),
                Err(TryLockError::WouldBlock) if Instant::now() >= deadline => return None,
                Err(TryLockError::WouldBlock) => std::thread::sleep(Duration::from_millis(2)),
            }
        };
        state.step();
        state.monitor.end();
        state.counts.last.get_or_insert_with(now);
        state.stdout.flush();
        // The properties keep their places: a receiver that is called once more finds no sinks there.
        let sinks: Vec<Sink> = state.sinks.iter_mut().flat_map(std::mem::take).collect();
        let publisher = |sink| if let Sink::Network(publisher) = sink { Some(publisher) } else { None };
        Some(sinks.into_iter().filter_map(publisher).collect())
    }
}

impl Receiver for Pipeline {
    fn receive(&self, topic: TopicId, samples: &[Sample<'_>]) {
        let mut state = self.state();
        let before = state.counts.received;
        state.receive(topic, samples);
        if before < self.stop_after && state.counts.received >= self.stop_after {
            state.step();
            state.counts.last = Some(now());
            state.counts.until_last = state.counts.received;
            // Nobody waits any more when the run is ending already.
            let _ = self.stop.send(Stop::Count);
        }
    }

    fn idle(&self) {
        let mut state = self.state();
        state.step();
        if !self.batching {
            return;
        }
        for sink in state.sinks.iter().flatten() {
            if let Sink::Network(publisher) = sink {
                publisher.release();
            }
        }
    }

    fn wants_idle(&self) -> bool {
        true
    }
}

impl State {
    /// Decodes samples into the block, and evaluates it when it is full. Otherwise that is for when
    /// nothing more is waiting: 64 events at a time cost little more than one.
    fn receive(&mut self, topic: TopicId, samples: &[Sample<'_>]) {
        for sample in samples {
            self.counts.received += 1;
            let time = match self.times[topic.index()] {
                TimeOfEvent::Source => sample.source_time.unwrap_or_else(|| sample.arrival()),
                TimeOfEvent::Arrival => sample.arrival(),
                // Where the field is missing, the event is as late as the one before it.
                TimeOfEvent::Field(_) => self.time,
            };
            match self.decoders[topic.index()].decode(sample.payload, time, &mut self.block) {
                Ok(()) => {
                    self.counts.checked += 1;
                    self.time = self.block.time(self.block.len() - 1);
                }
                Err(error) => {
                    self.counts.undecodable += 1;
                    if self.counts.undecodable == 1 {
                        warn(&format!(
                            "a message of {} bytes is not JSON ({error}): {}; further ones are only counted",
                            sample.payload.len(),
                            excerpt(sample.payload, error.offset)
                        ));
                    }
                }
            }
            if self.block.is_full() {
                self.step();
            }
        }
        if self.counts.first.is_none() {
            // The clock is not read again before the end: that costs more than a step.
            self.counts.first = samples.first().map(Sample::arrival);
        }
    }

    /// Evaluates the events in the block, publishes what is to be published, and empties it.
    fn step(&mut self) {
        if self.block.is_empty() {
            return;
        }
        let first = self.monitor.position();
        if let Some(row) = self.backwards.add(&self.block) {
            let time = self.block.time(row);
            warn(&format!(
                "time goes backwards at step {} (time {time} s); further ones are only counted",
                first + row as u64
            ));
        }
        self.unseen.look(&self.block);
        let reports = self.monitor.step(&self.block);
        let mut printed = false;
        for report in reports {
            let property = report.property as usize;
            self.tallies[property].add(report);
            if !self.emit.wants(report) {
                continue;
            }
            let writer = &self.writers[property];
            for sink in &self.sinks[property] {
                self.text.clear();
                let done = match sink {
                    Sink::Network(publisher) => {
                        writer.json(report, &mut self.text);
                        publisher.publish(&self.text).map_err(Some)
                    }
                    Sink::Stdout => {
                        printed = true;
                        writer.write(self.format, report, self.colour, &mut self.text);
                        self.stdout.write(&self.text);
                        // What is said of it is said once, below.
                        match self.stdout.failure() {
                            None => Ok(()),
                            Some(_) => Err(None),
                        }
                    }
                };
                match done {
                    Ok(()) => self.counts.verdicts += 1,
                    Err(error) => {
                        self.counts.unpublished += 1;
                        if self.counts.unpublished == 1
                            && let Some(error) = error
                        {
                            warn(&format!(
                                "a verdict could not be published: {error}; further ones are only counted"
                            ));
                        }
                    }
                }
            }
        }
        if printed {
            self.stdout.flush();
            if !self.stdout_failed
                && let Some(error) = self.stdout.failure()
            {
                self.stdout_failed = true;
                warn(&format!("verdicts can no longer be printed: {error}; checking goes on"));
            }
        }
        self.block.clear();
    }
}

/// Some of a payload around a place, for people.
fn excerpt(payload: &[u8], offset: usize) -> String {
    let start = offset.min(payload.len()).saturating_sub(20);
    let end = (start + 40).min(payload.len());
    let mut out = String::new();
    if start > 0 {
        out.push('…');
    }
    out.extend(
        String::from_utf8_lossy(&payload[start..end]).chars().map(|c| if c.is_control() { '·' } else { c }),
    );
    if end < payload.len() {
        out.push('…');
    }
    out
}
