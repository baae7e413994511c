//! Printing messages on standard output.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError, mpsc};

use rondel_decode::json::JsonDecoder;
use rondel_event::{Block, Layout, Projection, Timestamp, TopicId};
use rondel_net::adapter::{Drops, PublishError, Publisher, Receiver, Sample};
use rondel_runtime::text::counted;
use rondel_runtime::{Account, Accounts, Notice, SystemClock, TimeSource};

use super::view::{Message, View};
use crate::console::Console;
use crate::deployment::Binding;
use crate::pipeline::Stop;
use crate::warn;

/// Standard output with a view that writes messages.
struct Paper {
    out: Console,
    view: View,
    text: Vec<u8>,
    stop: mpsc::Sender<Stop>,
    /// Whether `stop` was sent.
    stopped: bool,
}

impl Paper {
    fn new(view: View, out: Console, stop: mpsc::Sender<Stop>) -> Paper {
        Paper { out, view, text: Vec::new(), stop, stopped: false }
    }

    /// Prints `text`, and sends `stop` if `done` or if the output cannot be written.
    fn print(&mut self, done: bool) {
        self.out.write(&self.text);
        self.out.flush();
        self.text.clear();
        if (done || self.out.failure().is_some()) && !self.stopped {
            self.stopped = true;
            // Nobody waits any more when the command is ending already.
            let _ = self.stop.send(Stop::Count);
        }
    }

    /// Sentences about missing fields, and why the output could not be written, unless its reader has closed it.
    fn end(&self) -> (Vec<String>, Option<String>) {
        let sentence = |(field, count): (&str, u64)| {
            format!("{} did not carry {field}", counted(count, "message", "messages"))
        };
        let failure = self.out.failure().filter(|_| !self.out.is_closed()).map(ToString::to_string);
        (self.view.missing().map(sentence).collect(), failure)
    }
}

/// Prints messages as they come.
pub struct Printer {
    state: Mutex<State>,
    topics: Vec<String>,
    times: Vec<TimeSource>,
    once: bool,
    count: u64,
}

struct State {
    paper: Paper,
    decoders: Vec<JsonDecoder>,
    block: Block,
    /// The topics with a message.
    seen: Vec<bool>,
    received: u64,
    no_json: u64,
    accounts: Accounts,
    clock: SystemClock,
}

impl Printer {
    /// A printer of these topics on `out`. It sends `stop` after `count` messages, or with `once` after the first of every
    /// topic.
    pub fn new(
        (view, out): (View, Console),
        topics: Vec<String>,
        bindings: &[Binding],
        once: bool,
        count: u64,
        stop: mpsc::Sender<Stop>,
    ) -> Printer {
        let decoders = bindings.iter().enumerate().map(|(i, binding)| {
            let input = &binding.input;
            JsonDecoder::new(TopicId(i as u32), &Projection::default(), input.time.field(), input.time_unit)
        });
        let state = State {
            paper: Paper::new(view, out, stop),
            decoders: decoders.collect(),
            block: Block::new(Layout { topics: topics.len(), ..Layout::default() }),
            seen: vec![false; topics.len()],
            received: 0,
            no_json: 0,
            accounts: Accounts::new(topics.len()),
            clock: SystemClock::default(),
        };
        let times = bindings.iter().map(|binding| binding.input.time.clone()).collect();
        Printer { state: Mutex::new(state), topics, times, once, count }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A printer for one topic of a pattern.
    pub fn named(self: &Arc<Printer>, name: String) -> Named {
        self.state().paper.view.make_room(&name);
        Named { printer: Arc::clone(self), name }
    }

    fn print(&self, topic: TopicId, name: &str, samples: &[Sample<'_>]) {
        let state = &mut *self.state();
        for sample in samples {
            state.accounts.receive(topic, sample.origin, &state.clock);
            let again = std::mem::replace(&mut state.seen[topic.index()], true);
            if state.received < self.count && !(self.once && again) {
                state.received += 1;
                state.show(topic, name, &self.times[topic.index()], sample);
            }
        }
        let done = state.received >= self.count || self.once && state.seen.iter().all(|seen| *seen);
        state.paper.print(done);
        state.accounts.pause(&state.clock);
    }

    /// Notices of messages that were lost since the last call.
    pub fn losses(&self) -> Vec<Notice> {
        let mut losses = self.state().accounts.losses();
        for notice in &mut losses {
            notice.topic_name = notice.topic.map(|topic| self.topics[topic.index()].clone());
        }
        losses
    }

    /// The names of the topics.
    pub fn names(&self) -> &[String] {
        &self.topics
    }

    /// The messages of each topic, with its name.
    pub fn accounts(&self) -> Vec<(String, Account)> {
        self.topics.iter().cloned().zip(self.state().accounts.all()).collect()
    }

    /// A sentence about the messages, sentences about missing fields, and why the output could not be written.
    pub fn end(&self) -> (String, Vec<String>, Option<String>) {
        let state = self.state();
        let mut summary = format!("received {}", counted(state.received, "message", "messages"));
        if state.no_json > 0 {
            summary += &format!(", {} not JSON", counted(state.no_json, "is", "are"));
        }
        let (missing, failure) = state.paper.end();
        (summary, missing, failure)
    }
}

impl State {
    fn show(&mut self, topic: TopicId, name: &str, of: &TimeSource, sample: &Sample<'_>) {
        let payload = sample.payload;
        let mut message = Message {
            topic: name,
            time: None,
            arrival: Timestamp::ZERO,
            origin: sample.origin,
            payload,
            is_json: true,
        };
        if !self.paper.view.is_raw() {
            message.arrival = sample.arrival();
            let before = match of {
                TimeSource::Arrival => message.arrival,
                TimeSource::Source => sample.source_time.unwrap_or(message.arrival),
                TimeSource::Field(_) => Timestamp::from_nanos(i64::MIN),
            };
            self.block.clear();
            let decoded = self.decoders[topic.index()].decode(payload, before, &mut self.block);
            let error = match decoded {
                Ok(()) => std::str::from_utf8(payload).err().map(|error| error.to_string()),
                Err(error) => Some(error.to_string()),
            };
            let time = if error.is_none() { self.block.time(0) } else { before };
            message.time = Some(time).filter(|time| time.as_nanos() > i64::MIN);
            message.is_json = error.is_none();
            if let Some(error) = error {
                self.no_json += 1;
                if self.no_json == 1 {
                    warn(&format!(
                        "a message of {name} is not JSON ({error}), and is shown escaped; further ones are only counted"
                    ));
                }
            }
        }
        self.paper.view.message(&message, &mut self.paper.text);
    }
}

impl Receiver for Printer {
    fn receive(&self, topic: TopicId, samples: &[Sample<'_>]) {
        self.print(topic, &self.topics[topic.index()], samples);
    }
}

/// Prints the messages of one topic of a pattern.
pub struct Named {
    printer: Arc<Printer>,
    name: String,
}

impl Receiver for Named {
    fn receive(&self, topic: TopicId, samples: &[Sample<'_>]) {
        self.printer.print(topic, &self.name, samples);
    }
}

/// Prints the messages that alignment releases.
#[derive(Clone)]
pub struct Screen(Arc<Mutex<Paper>>);

impl Screen {
    /// A screen, which sends `stop` when the output cannot be written.
    pub fn new(view: View, out: Console, stop: mpsc::Sender<Stop>) -> Screen {
        Screen(Arc::new(Mutex::new(Paper::new(view, out, stop))))
    }

    fn paper(&self) -> MutexGuard<'_, Paper> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Sentences about missing fields, and why the output could not be written.
    pub fn end(&self) -> (Vec<String>, Option<String>) {
        self.paper().end()
    }
}

impl Publisher for Screen {
    fn publish(&self, payload: &[u8]) -> Result<(), PublishError> {
        let paper = &mut *self.paper();
        paper.view.released(payload, &mut paper.text);
        paper.print(false);
        Ok(())
    }

    fn drops(&self) -> Option<Arc<Drops>> {
        Some(self.paper().out.drops())
    }
}
