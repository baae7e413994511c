//! Printing messages on standard output.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, mpsc};
use std::time::Duration;

use rondel_decode::json::JsonForm;
use rondel_decode::sparkplug::Address;
use rondel_decode::{Decoder, DecoderError, Encoding, TopicWriter};
use rondel_event::{AddressPattern, Block, Layout, NameId, Projection, Timestamp, TopicId};
use rondel_net::adapter::{Change, ChangeTime, Drops, PublishError, Publisher, Receiver, Sample, now};
use rondel_runtime::text::counted;
use rondel_runtime::{Account, Accounts, Notice, SystemClock, TimeSource};

use super::view::{Message, ReportedEvent, View};
use crate::deployment::Binding;
use crate::live::pipeline::Stop;
use crate::sinks::console::Console;
use crate::warn;

/// Time limit for a reader that is behind at the end.
const LEAVE: Duration = Duration::from_secs(1);
/// Maximum number of topic names that are kept; messages on further topics show the address.
const NAMES: usize = 10_000;

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
            // The receiver is gone when the command is ending already.
            let _ = self.stop.send(Stop::Count);
        }
    }

    /// Waits for a reader that is behind, for a limited time. Returns sentences about missing fields, and why the output
    /// could not be written, unless its reader has closed it.
    fn end(&mut self) -> (Vec<String>, Option<String>) {
        let sentence = |(field, count): (&str, u64)| {
            format!("{} did not carry {field}", counted(count, "message", "messages"))
        };
        // Text that it does not accept is counted.
        self.out.end().flush(LEAVE);
        let failure = self.out.failure().filter(|_| !self.out.is_closed()).map(ToString::to_string);
        (self.view.missing().map(sentence).collect(), failure)
    }
}

/// Decoding of the messages of a topic.
pub struct Reading {
    /// Extractor of their time.
    decoder: Decoder,
    /// Converter to JSON; `None` if they are JSON.
    writer: Option<TopicWriter>,
    /// The largest text that is written, in bytes.
    largest: usize,
}

impl Reading {
    /// Creates the decoding of messages of `binding`, shown in this form. Messages whose type is not resolved yet cannot be
    /// decoded.
    ///
    /// # Errors
    /// A time field that the type does not have.
    pub fn new(
        topic: TopicId,
        binding: &Binding,
        form: JsonForm,
        largest: usize,
    ) -> Result<Reading, DecoderError> {
        let input = &binding.input;
        if input.awaits_type() {
            let (fields, time) = (Projection::default(), input.time.field());
            let decoder = Decoder::awaiting(input.encoding, topic, &fields, time, input.time_unit);
            return Ok(Reading { decoder, writer: None, largest });
        }
        let writer = (input.encoding != Encoding::Json)
            .then(|| TopicWriter::new(input.encoding, input.message_type.clone(), form));
        let mut writer = writer.transpose()?;
        if Address::names_commands(&binding.address.to_string()) {
            writer.iter_mut().for_each(TopicWriter::read_commands);
        }
        Ok(Reading { decoder: input.decoder(topic, &Projection::default())?, writer, largest })
    }
}

impl Reading {
    /// Whether the names of messages say what these mean.
    fn reads_names(&self) -> bool {
        matches!(self.writer, Some(TopicWriter::Sparkplug(_)))
    }
}

/// Prints messages as they arrive.
pub struct Printer {
    state: Mutex<State>,
    topics: Vec<String>,
    times: Vec<TimeSource>,
    /// For each topic whose address has parameters its network and the names that match.
    patterns: Vec<Option<(String, AddressPattern)>>,
    /// Whether the names of messages say what these mean, for each topic.
    reads_names: Vec<bool>,
    once: bool,
    count: u64,
    /// Whether events of topics are printed.
    events: bool,
}

struct State {
    paper: Paper,
    /// The topics that match addresses with parameters, or whose names are read, by their numbers.
    names: Vec<Name>,
    /// Their numbers, by the topic of the address and their names on the network.
    numbers: Vec<HashMap<String, NameId>>,
    readings: Vec<Reading>,
    block: Block,
    /// The last message as JSON, if it came in another encoding.
    json: Vec<u8>,
    /// The topics with a message.
    seen: Vec<bool>,
    received: u64,
    /// Messages that are shown escaped: not JSON, and not of their type or encoding.
    no_json: u64,
    undecodable: u64,
    accounts: Accounts,
    clock: SystemClock,
}

/// Name of a topic.
struct Name {
    /// Name on its network.
    own: Arc<str>,
    /// Name to show.
    shown: Arc<str>,
}

/// The topics of a printer, with their addresses and their decoding.
pub struct ReadTopics<'d> {
    /// Names of the topics.
    pub names: Vec<String>,
    /// Their addresses and inputs.
    pub bindings: &'d [Binding],
    /// Decoding of their messages.
    pub readings: Vec<Reading>,
}

impl Printer {
    /// A printer of these topics on `out`. It sends `stop` after `count` messages, or with `once` after the first of every
    /// topic.
    pub fn new(
        view: View,
        out: Console,
        topics: ReadTopics<'_>,
        once: bool,
        count: u64,
        stop: mpsc::Sender<Stop>,
    ) -> Printer {
        let ReadTopics { names: topics, bindings, readings } = topics;
        let state = State {
            paper: Paper::new(view, out, stop),
            names: Vec::new(),
            numbers: topics.iter().map(|_| HashMap::new()).collect(),
            readings,
            json: Vec::new(),
            block: Block::new(Layout { topics: topics.len(), ..Layout::default() }),
            seen: vec![false; topics.len()],
            received: 0,
            no_json: 0,
            undecodable: 0,
            accounts: Accounts::new(topics.len()),
            clock: SystemClock,
        };
        let times = bindings.iter().map(|binding| binding.input.time.clone()).collect();
        let pattern = |binding: &Binding| {
            let text = binding.address.to_string();
            let network = text.split([':', '+']).next().unwrap_or_default().to_owned();
            Some((network, binding.address.pattern()?.without_slash()))
        };
        let patterns = bindings.iter().map(pattern).collect();
        let reads_names = state.readings.iter().map(Reading::reads_names).collect();
        Printer { state: Mutex::new(state), topics, times, patterns, reads_names, once, count, events: false }
    }

    /// Prints events of topics as well, if `events`.
    pub fn with_events(self, events: bool) -> Printer {
        Printer { events, ..self }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Sets the decoding of the messages of a topic once their type is known.
    pub fn resolve(&self, topic: TopicId, reading: Reading) {
        if let Some(place) = self.state().readings.get_mut(topic.index()) {
            *place = reading;
        }
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
                let writer = state.readings[topic.index()].writer.as_ref();
                let of = &self.times[topic.index()];
                match writer.and_then(|writer| writer.split(sample.payload, sample.arrival())) {
                    None => state.show(topic, name, of, sample, sample.payload),
                    Some(parts) => parts.iter().for_each(|part| state.show(topic, name, of, sample, part)),
                }
            }
        }
        let done = state.received >= self.count || self.once && state.seen.iter().all(|seen| *seen);
        state.paper.print(done);
        state.accounts.pause(&state.clock);
    }

    /// Prints an event of a topic reported by a network, if events are printed. Events do not count as messages.
    fn print_event(&self, topic: TopicId, name: &str, change: Change<'_>, time: ChangeTime) {
        if !self.events {
            return;
        }
        let (event, holds) = change.event();
        let time = time.among(self.times[topic.index()] == TimeSource::Source);
        let State { paper, readings, json, .. } = &mut *self.state();
        json.clear();
        if let Some((payload, is_message)) = change.instance().and_then(|instance| instance.payload())
            && let Some(Reading { writer: Some(writer), largest, .. }) = readings.get(topic.index())
        {
            // An instance whose key cannot be read has none.
            _ = writer.write_key(payload, is_message, *largest, json);
        }
        let publisher = change.owner();
        let event = ReportedEvent { name: event.written(holds), key: json, publisher: publisher.as_deref() };
        paper.view.event(name, &event, time, now(), &mut paper.text);
        paper.print(false);
    }

    /// Notices of messages that were lost since the last call.
    pub fn losses(&self) -> Vec<Notice> {
        self.state().accounts.losses()
    }

    /// The names of the topics.
    pub fn names(&self) -> &[String] {
        &self.topics
    }

    /// The messages of each topic.
    pub fn accounts(&self) -> Vec<Account> {
        self.state().accounts.all()
    }

    /// A sentence about the messages, sentences about missing fields, and why the output could not be written.
    pub fn end(&self) -> (String, Vec<String>, Option<String>) {
        let mut state = self.state();
        let mut summary = format!("received {}", counted(state.received, "message", "messages"));
        if state.no_json > 0 {
            summary += &format!(", {} not JSON", counted(state.no_json, "is", "are"));
        }
        if state.undecodable > 0 {
            summary += &format!(", {} undecodable", state.undecodable);
        }
        let (missing, failure) = state.paper.end();
        (summary, missing, failure)
    }
}

impl State {
    /// Prints an event of a sample.
    fn show(&mut self, topic: TopicId, name: &str, of: &TimeSource, sample: &Sample<'_>, payload: &[u8]) {
        let json = &mut self.json;
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
            json.clear();
            let Reading { decoder, writer, largest } = &mut self.readings[topic.index()];
            let is_typed = writer.is_some();
            let mut before = before;
            if let Some(TopicWriter::Sparkplug(writer)) = writer
                && let Decoder::Sparkplug(decoder) = decoder
            {
                let name = |NameId(number)| self.names.get(number as usize).map(|name| &name.own);
                decoder.set_name(sample.name, name);
                writer.set_name(sample.name, name);
                if decoder.counts_at_arrival() {
                    before = message.arrival;
                }
            } else if matches!(writer, Some(TopicWriter::Senml(_))) {
                before = message.arrival;
            }
            let decoded = decoder.decode(payload, before, &mut self.block);
            let error = match (decoded, writer) {
                (Ok(()), None) => std::str::from_utf8(payload).err().map(|error| error.to_string()),
                (Ok(()), Some(writer)) => match writer.write(payload, message.arrival, *largest, json) {
                    Ok(()) => {
                        message.payload = json;
                        None
                    }
                    Err(error) => Some(error.to_string()),
                },
                (Err(error), _) => Some(error.to_string()),
            };
            let time = if error.is_none() { self.block.time(0) } else { before };
            message.time = Some(time).filter(|time| time.as_nanos() > i64::MIN);
            message.is_json = error.is_none();
            if let Some(error) = error {
                let (count, what) = match is_typed {
                    true => (&mut self.undecodable, "cannot be decoded"),
                    false => (&mut self.no_json, "is not JSON"),
                };
                *count += 1;
                if *count == 1 {
                    warn(&format!(
                        "a message of {name} {what} ({error}), and is shown escaped; further ones are only counted"
                    ));
                }
            }
        }
        self.paper.view.message(&message, &mut self.paper.text);
    }
}

impl Receiver for Printer {
    fn receive(&self, topic: TopicId, samples: &[Sample<'_>]) {
        // All of one call have one name.
        let number = samples.first().and_then(|sample| sample.name);
        let name = number.and_then(|NameId(number)| {
            self.state().names.get(number as usize).map(|name| Arc::clone(&name.shown))
        });
        self.print(topic, name.as_deref().unwrap_or(&self.topics[topic.index()]), samples);
    }

    fn wants_names(&self, topic: TopicId) -> bool {
        let has_pattern = self.patterns.get(topic.index()).is_some_and(Option::is_some);
        has_pattern || self.reads_names.get(topic.index()).is_some_and(|reads| *reads)
    }

    fn number(&self, topic: TopicId, name: &str) -> Option<NameId> {
        let state = &mut *self.state();
        let numbers = state.numbers.get_mut(topic.index())?;
        if let Some(number) = numbers.get(name) {
            return Some(*number);
        }
        let shown = match self.patterns.get(topic.index())? {
            Some((network, pattern)) => {
                let own = name.strip_prefix('/').unwrap_or(name);
                pattern.captures(own)?;
                let slash = if network == "ros2" || own.len() < name.len() { "/" } else { "" };
                format!("{network}:{slash}{own}")
            }
            None => self.topics.get(topic.index())?.clone(),
        };
        // Names beyond are shown as the address.
        let number = NameId(state.names.len() as u32);
        if state.names.len() < NAMES {
            state.paper.view.make_room(&shown);
            state.names.push(Name { own: name.into(), shown: shown.into() });
            numbers.insert(name.to_owned(), number);
        }
        Some(number)
    }

    fn wants_owner(&self, _: TopicId) -> bool {
        self.events
    }

    fn changed(&self, topic: TopicId, change: Change<'_>, time: ChangeTime) {
        self.print_event(topic, &self.topics[topic.index()], change, time);
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

    fn wants_owner(&self, topic: TopicId) -> bool {
        self.printer.wants_owner(topic)
    }

    fn changed(&self, topic: TopicId, change: Change<'_>, time: ChangeTime) {
        self.printer.print_event(topic, &self.name, change, time);
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
