//! The way of a message: decoded where the network delivers it, evaluated with those that came
//! together with it, and answered, all on the network's own thread.

use std::sync::mpsc::Sender;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError, TryLockError};
use std::time::{Duration, Instant};

use rondel_engine::Monitor;
use rondel_event::{Block, Timestamp, TopicId};
use rondel_net::adapter::{Publisher, Receiver, Sample, now};
use rondel_net::json::JsonDecoder;
use rondel_spec::Spec;

use crate::chains::ChainReport;
use crate::clock::Clock;
use crate::deployment::{Binding, TimeOfEvent};
use crate::evidence::Witness;
use crate::outlet::{Outlet, Sink};
use crate::output::{Emit, Format};
use crate::resume::{self, Known, Resumed};
use crate::specification::Specification;
use crate::tally::{Backwards, Tally, Unseen, left_out};
use crate::warn;

/// Why a run ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stop {
    /// A signal, or the demo is over.
    Asked,
    /// The number of messages asked for was received.
    Count,
}

/// How often at most is looked what time brings.
const FINEST: Duration = Duration::from_millis(1);

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
/// here: the bounded queues are those of the networks, on both sides. What becomes certain by time alone
/// comes from another thread ([`Pipeline::keep_time`]), under the same lock.
pub struct Pipeline {
    state: Mutex<State>,
    /// Something is due sooner than [`Pipeline::keep_time`] knows.
    sooner: Condvar,
    batching: bool,
    stop_after: u64,
    stop: Sender<Stop>,
}

struct State {
    decoders: Vec<JsonDecoder>,
    times: Vec<TimeOfEvent>,
    /// Whether a property asks when events arrived.
    reads_arrivals: bool,
    /// The time of the last event.
    time: Timestamp,
    /// How many events were checked in the runs before.
    events: u64,
    /// Whether violations are explained.
    explain: bool,
    /// Whether another run will go on from where this one ends.
    goes_on: bool,
    /// From where that will be, once this one has ended.
    last: Option<Vec<u8>>,
    block: Block,
    monitor: Monitor,
    outlet: Outlet,
    /// What time it is without a message, where properties ask for that.
    clock: Option<Clock>,
    /// When [`Pipeline::keep_time`] will look again.
    armed: Option<Instant>,
    ended: bool,
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
    /// What watches why properties are violated, where that is asked for.
    pub witness: Option<Witness>,
    /// Where it goes on from, if it does.
    pub resumed: Option<Resumed>,
    /// Whether another run will go on from where this one ends.
    pub goes_on: bool,
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
        let explain = parts.witness.is_some();
        let mut unseen = Unseen::new(parts.specification);
        let mut outlet = Outlet::new(
            parts.specification,
            parts.sinks,
            parts.emit,
            (parts.format, parts.colour),
            parts.witness,
        );
        let (mut monitor, known) = match parts.resumed {
            None => (Monitor::new(Arc::clone(&program)), Known::default()),
            Some(Resumed { monitor, mut known }) => {
                unseen.keep(&known.unseen);
                let tallies = std::mem::take(&mut known.tallies);
                outlet.tallies.iter_mut().zip(tallies).for_each(|(tally, saved)| tally.restore(saved));
                (monitor, known)
            }
        };
        monitor.report_every(parts.emit == Emit::Every);
        let state = State {
            decoders: decoders.collect(),
            times: parts.bindings.iter().map(|b| b.time.clone()).collect(),
            reads_arrivals: program.reads_arrivals(),
            time: Timestamp::from_nanos(known.time),
            events: known.events,
            explain,
            goes_on: parts.goes_on,
            last: None,
            block: Block::new(program.layout()),
            monitor,
            outlet,
            clock: parts.specification.is_timed().then(Clock::default),
            armed: None,
            ended: false,
            backwards: Backwards::restored(known.backwards),
            unseen,
            counts: Counts::default(),
        };
        let stop_after = parts.stop_after.unwrap_or(u64::MAX);
        Pipeline {
            state: Mutex::new(state),
            sooner: Condvar::new(),
            batching: parts.batching,
            stop_after,
            stop: parts.stop,
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        // A panic elsewhere does not make the counts wrong.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// What could not be taken into account.
    pub fn left_out(&self, spec: &Spec) -> Vec<String> {
        left_out(&self.state().monitor, spec)
    }

    /// What became of the chains.
    pub fn chains(&self, spec: &Spec) -> Vec<ChainReport> {
        ChainReport::all(&self.state().monitor, spec)
    }

    /// What happened so far: counts, what became of each property, how often time went back, and what
    /// never came.
    pub fn report(&self) -> (Counts, Vec<Tally>, u64, Unseen) {
        let mut state = self.state();
        state.counts.mistyped = state.decoders.iter().map(JsonDecoder::mistyped).sum();
        (state.counts.verdicts, state.counts.unpublished) = (state.outlet.verdicts, state.outlet.unpublished);
        let steps = state.monitor.position();
        let mut tallies = state.outlet.tallies.clone();
        for (tally, waiting) in tallies.iter_mut().zip(state.monitor.waiting()) {
            tally.end(steps, waiting);
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
        state.pass(Instant::now());
        if state.goes_on {
            state.last = Some(state.snapshot());
        } else {
            let State { monitor, outlet, .. } = &mut *state;
            monitor.end();
            outlet.take(None, monitor);
        }
        state.counts.last.get_or_insert_with(now);
        state.ended = true;
        self.sooner.notify_all();
        Some(state.outlet.close())
    }

    /// From where another run can go on: from now, or from the end.
    pub fn snapshot(&self) -> Vec<u8> {
        let mut state = self.state();
        match &state.last {
            Some(last) => last.clone(),
            None => {
                state.step();
                state.snapshot()
            }
        }
    }

    /// Whether time brings verdicts by itself, so that somebody has to [keep it](Pipeline::keep_time).
    pub fn is_timed(&self) -> bool {
        self.state().clock.is_some()
    }

    /// Gives, until the pipeline has ended, the verdicts that time brings where no message comes. For a
    /// thread of its own, which sleeps until something is due.
    pub fn keep_time(&self) {
        let mut state = self.state();
        while !state.ended {
            let now = Instant::now();
            let due = state.pass(now).map(|due| due.max(now + FINEST));
            if self.batching {
                state.outlet.release();
            }
            state.armed = due;
            state = match due {
                None => self.sooner.wait(state).unwrap_or_else(PoisonError::into_inner),
                Some(due) => {
                    let waited = self.sooner.wait_timeout(state, due.saturating_duration_since(now));
                    waited.unwrap_or_else(PoisonError::into_inner).0
                }
            };
        }
    }

    /// Evaluates what has come, and wakes who keeps the time if something is due sooner than that one
    /// knows.
    fn step(&self, state: &mut State) {
        state.step();
        if let Some(due) = state.due()
            && state.armed.is_none_or(|armed| due < armed)
        {
            // Told once is enough.
            state.armed = Some(due);
            self.sooner.notify_one();
        }
    }
}

impl Receiver for Pipeline {
    fn receive(&self, topic: TopicId, samples: &[Sample<'_>]) {
        let mut state = self.state();
        let before = state.counts.received;
        state.receive(topic, samples);
        if before < self.stop_after && state.counts.received >= self.stop_after {
            self.step(&mut state);
            state.counts.last = Some(now());
            state.counts.until_last = state.counts.received;
            // Nobody waits any more when the run is ending already.
            let _ = self.stop.send(Stop::Count);
        }
    }

    fn idle(&self) {
        let mut state = self.state();
        self.step(&mut state);
        if self.batching {
            state.outlet.release();
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
            // The clock is read once for a sample, if at all.
            let mut arrival = self.reads_arrivals.then(|| sample.arrival());
            let time = match self.times[topic.index()] {
                TimeOfEvent::Source => sample.source_time.unwrap_or_else(|| sample.arrival()),
                TimeOfEvent::Arrival => *arrival.get_or_insert_with(|| sample.arrival()),
                // Where the field is missing, the event is as late as the one before it.
                TimeOfEvent::Field(_) => self.time,
            };
            match self.decoders[topic.index()].decode(sample.payload, time, &mut self.block) {
                Ok(()) => {
                    self.counts.checked += 1;
                    let row = self.block.len() - 1;
                    self.time = self.block.time(row);
                    if let Some(arrival) = arrival.filter(|_| self.reads_arrivals) {
                        self.block.set_arrival(row, arrival);
                    }
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
        if let Some(clock) = &mut self.clock {
            // What is evaluated has just come: the clock is read once for all of it.
            let latest = (0..self.block.len()).map(|row| self.block.time(row)).max();
            clock.set(latest.unwrap_or(self.time), Instant::now());
        }
        self.monitor.step(&self.block);
        self.outlet.take(Some((&self.block, first)), &self.monitor);
        self.block.clear();
    }

    /// All that is known. What has come must have been evaluated.
    fn snapshot(&self) -> Vec<u8> {
        let known = Known {
            explain: self.explain,
            events: self.events + self.counts.checked,
            time: self.time.as_nanos(),
            backwards: self.backwards.saved(),
            tallies: self.outlet.tallies.iter().map(Tally::saved).collect(),
            unseen: self.unseen.all(),
        };
        resume::bytes(&self.monitor, &known)
    }

    /// When time will bring something by itself.
    fn due(&self) -> Option<Instant> {
        self.clock.as_ref()?.instant(self.monitor.next_deadline()?)
    }

    /// Evaluates what has come and what time has brought until this instant; when it will bring more.
    fn pass(&mut self, at: Instant) -> Option<Instant> {
        self.step();
        loop {
            let deadline = self.monitor.next_deadline()?;
            let due = self.clock.as_ref()?.instant(deadline)?;
            if due > at {
                return Some(due);
            }
            // No further than needed: an event that is still on its way keeps its time.
            self.monitor.advance(deadline);
            self.outlet.take(None, &self.monitor);
            if self.monitor.next_deadline().is_some_and(|next| next <= deadline) {
                return Some(at);
            }
        }
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

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use std::sync::mpsc;
    use std::thread;

    use rondel_engine::Program;
    use rondel_event::TimeUnit;
    use rondel_net::adapter::PublishError;
    use rondel_spec::{Bounds, Expr, ExprId, Property, TimeModel, Topic};

    use super::*;
    use crate::deployment::Address;

    /// A publisher whose payloads a test reads.
    struct Told(mpsc::Sender<String>);

    impl Publisher for Told {
        fn publish(&self, payload: &[u8]) -> Result<(), PublishError> {
            self.0.send(String::from_utf8_lossy(payload).into_owned()).map_err(|_| PublishError::Closed)
        }
        fn release(&self) {}
        fn is_matched(&self) -> bool {
            true
        }
        fn wait_matched(&self, _: Duration) -> bool {
            true
        }
        fn flush(&self, _: Duration) -> bool {
            true
        }
    }

    /// `once[0, 2 s] on(beat)`, with the time of an event in its field `t`.
    fn alive(time: TimeModel, milliseconds: u64) -> (Pipeline, mpsc::Receiver<String>) {
        let bounds = Bounds { lower: 0, upper: Some(milliseconds * 1_000_000) };
        let topic = Topic { name: "beat".into(), address: "beat".into(), type_name: None, schema: None };
        let spec = Spec {
            topics: vec![topic],
            properties: vec![Property { time, ..Property::new("alive", ExprId(1)) }],
            nodes: vec![Expr::On(TopicId(0)), Expr::Once(bounds, ExprId(0))],
            ..Spec::default()
        };
        pipeline_of(spec)
    }

    fn pipeline_of(spec: Spec) -> (Pipeline, mpsc::Receiver<String>) {
        let program = Arc::new(Program::compile(&spec).unwrap());
        let specification =
            Specification { spec, program, is_formula: false, source: String::new(), text: String::new() };
        let binding = Binding {
            address: Address::Zenoh("beat".into()),
            time: TimeOfEvent::Field(rondel_event::Path::keys(["t"])),
            time_unit: TimeUnit::Seconds,
        };
        let (published, told) = mpsc::channel();
        let pipeline = Pipeline::new(Parts {
            specification: &specification,
            bindings: &[binding],
            emit: Emit::Change,
            sinks: vec![vec![Sink::Network(Box::new(Told(published)))]],
            batching: false,
            format: Format::Json,
            colour: false,
            witness: None,
            resumed: None,
            goes_on: false,
            stop_after: None,
            stop: mpsc::channel().0,
        });
        (pipeline, told)
    }

    fn beat(pipeline: &Pipeline, payload: &str) {
        pipeline.receive(TopicId(0), &[Sample::new(payload.as_bytes(), None, None)]);
        pipeline.idle();
    }

    const ALIVE: &str = r#"{"property":"alive","time":5,"step":0,"verdict":"satisfied"}"#;
    const SILENT: &str = r#"{"property":"alive","time":7,"verdict":"violated"}"#;

    #[test]
    fn time_brings_what_no_message_brings() {
        let (pipeline, told) = alive(TimeModel::Dense, 2000);
        assert!(pipeline.is_timed());
        let pass = |at| pipeline.state().pass(at);
        assert_eq!(pass(Instant::now()), None, "before the first event there is no time");
        let before = Instant::now();
        beat(&pipeline, r#"{"t": 5}"#);
        assert_eq!(told.recv(), Ok(ALIVE.into()));
        let due = pass(Instant::now()).unwrap();
        assert!(due >= before + Duration::from_secs(2) && due <= Instant::now() + Duration::from_secs(3));
        assert_eq!(pass(due - Duration::from_millis(1)), Some(due));
        assert!(told.try_recv().is_err(), "nothing is certain yet");
        assert_eq!(pass(due), None);
        assert_eq!(told.try_recv(), Ok(SILENT.into()));
        assert!(pipeline.end(Duration::ZERO).is_some());
    }

    #[test]
    fn the_keeper_wakes_by_itself_and_ends_with_the_pipeline() {
        let (pipeline, told) = alive(TimeModel::Dense, 50);
        let pipeline = Arc::new(pipeline);
        let kept = Arc::clone(&pipeline);
        let keeper = thread::spawn(move || kept.keep_time());
        beat(&pipeline, r#"{"t": 5}"#);
        assert_eq!(told.recv(), Ok(ALIVE.into()));
        let brought = told.recv_timeout(Duration::from_secs(60)).unwrap();
        assert_eq!(brought, r#"{"property":"alive","time":5.05,"verdict":"violated"}"#);
        assert!(pipeline.end(Duration::from_secs(60)).is_some());
        keeper.join().unwrap();
    }

    #[test]
    fn it_is_known_when_messages_arrived() {
        let text = "topic beat property quick = latency(beat) <= 1 s";
        let (pipeline, told) = pipeline_of(rondel_spec::parse(text).spec.unwrap());
        let arrive = |payload: &str, seconds: i64| {
            let arrival = Some(Timestamp::from_nanos(seconds * 1_000_000_000));
            pipeline.receive(TopicId(0), &[Sample::new(payload.as_bytes(), None, arrival)]);
            pipeline.idle();
        };
        arrive(r#"{"t": 5}"#, 6);
        assert_eq!(told.recv(), Ok(r#"{"property":"quick","time":5,"step":0,"verdict":"satisfied"}"#.into()));
        arrive(r#"{"t": 7}"#, 9);
        assert_eq!(told.recv(), Ok(r#"{"property":"quick","time":7,"step":1,"verdict":"violated"}"#.into()));
    }

    #[test]
    fn in_steps_nobody_keeps_time() {
        assert!(!alive(TimeModel::Steps, 2000).0.is_timed());
    }
}
