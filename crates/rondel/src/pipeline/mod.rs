//! The way of a message: decoded where the network delivers it, evaluated with those that came
//! together with it, or once nothing earlier can come, and answered, all on the network's own thread.

mod aligned;
mod direct;
mod notice;
mod progress;
mod synchronizer;
mod time;

use std::sync::mpsc::Sender;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError, TryLockError};
use std::time::{Duration, Instant};

use rondel_decode::cdr;
use rondel_event::{Timestamp, TopicId};
use rondel_net::adapter::{Publisher, Receiver, Sample, now};

use crate::chains::ChainReport;
use crate::deployment::{Alignment, Binding, Deployment};
use crate::evidence::Witness;
use crate::outlet::{Outlet, Sink};
use crate::output::{Emit, Format};
use crate::resume::Resumed;
use crate::specification::Specification;
use crate::tally::{Tally, Unseen};
use crate::warn;
use aligned::Aligned;
use direct::Direct;
pub use notice::AlignmentReport;
use synchronizer::Synchronizer;

/// Why a run ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stop {
    /// A signal, or the demo is over.
    Asked,
    /// The number of messages asked for was received.
    Count,
}

/// Whether a deployment's pipeline can go on from there.
///
/// # Errors
/// Why not, in words.
pub fn accepts(deployment: &Deployment, explain: bool, resumed: &Resumed) -> Result<(), String> {
    let Deployment { specification, alignment, synchronized, .. } = deployment;
    if synchronized.is_some() {
        synchronizer::accepts(specification, alignment, resumed)
    } else if alignment.is_needed() {
        aligned::accepts(specification, alignment, explain, resumed)
    } else {
        resumed.monitor(specification).map(drop)
    }
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

impl Counts {
    /// Counts a message that cannot be decoded, and shows the first.
    fn undecodable(&mut self, payload: &[u8], offset: usize, error: &str) {
        self.undecodable += 1;
        if self.undecodable == 1 {
            let hint = if cdr::is_encapsulated(payload) {
                "; it begins like what a bridge makes of a sample of DDS: `encoding: cdr_string` would read that"
            } else {
                ""
            };
            warn(&format!(
                "a message of {} bytes is not JSON ({error}): {}{hint}; further ones are only counted",
                payload.len(),
                excerpt(payload, offset)
            ));
        }
    }
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
    /// The number that samples with word of progress come with: that after the topics.
    progress: TopicId,
}

struct State {
    way: Way,
    outlet: Outlet,
    /// When [`Pipeline::keep_time`] will look again.
    armed: Option<Instant>,
    ended: bool,
    counts: Counts,
}

/// What becomes of messages.
enum Way {
    /// They are evaluated as they come.
    Direct(Box<Direct>),
    /// They are put in order first.
    Aligned(Box<Aligned>),
    /// They are put in order, and published so.
    Synchronizer(Box<Synchronizer>),
}

/// What a [`Pipeline`] is made of.
pub struct Parts<'a> {
    /// What is evaluated.
    pub specification: &'a Specification,
    /// How each topic is read.
    pub bindings: &'a [Binding],
    /// How messages are put in order.
    pub alignment: &'a Alignment,
    /// Where messages that were put in order go, if nothing is to be done with them but that.
    pub synchronized: Option<Vec<Sink>>,
    /// Where is reported what was late, lost or refused.
    pub reports: Vec<Sink>,
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

/// What a run has come to.
pub struct Summary {
    /// What happened to the messages.
    pub counts: Counts,
    /// What became of each property.
    pub tallies: Vec<Tally>,
    /// How often time went back.
    pub backwards: u64,
    /// What never came.
    pub unseen: Unseen,
    /// What could not be taken into account.
    pub left_out: Vec<String>,
    /// What became of the chains.
    pub chains: Vec<ChainReport>,
    /// What alignment did, if there was one.
    pub alignment: Option<AlignmentReport>,
}

impl Pipeline {
    /// Puts the parts together.
    ///
    /// # Errors
    /// What cannot be run, in words.
    pub fn new(mut parts: Parts<'_>) -> Result<Pipeline, String> {
        let sinks = std::mem::take(&mut parts.sinks);
        let mut outlet = Outlet::new(parts.specification, sinks, parts.emit, (parts.format, parts.colour));
        let reports = std::mem::take(&mut parts.reports);
        let way = match parts.synchronized.take() {
            Some(sinks) => Way::Synchronizer(Box::new(Synchronizer::new(&parts, sinks, reports)?)),
            None if parts.alignment.is_needed() => {
                Way::Aligned(Box::new(Aligned::new(&parts, reports, &mut outlet)?))
            }
            None => Way::Direct(Box::new(Direct::new(&mut parts, &mut outlet)?)),
        };
        let state = State { way, outlet, armed: None, ended: false, counts: Counts::default() };
        Ok(Pipeline {
            state: Mutex::new(state),
            sooner: Condvar::new(),
            batching: parts.batching,
            stop_after: parts.stop_after.unwrap_or(u64::MAX),
            stop: parts.stop,
            progress: TopicId(parts.bindings.len() as u32),
        })
    }

    fn state(&self) -> MutexGuard<'_, State> {
        // A panic elsewhere does not make the counts wrong.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The number to subscribe with to what publishers say of their progress.
    pub fn progress(&self) -> TopicId {
        self.progress
    }

    /// What happened so far.
    pub fn summary(&self) -> Summary {
        let mut state = self.state();
        let State { way, outlet, counts, .. } = &mut *state;
        (counts.verdicts, counts.unpublished) = (outlet.verdicts, outlet.unpublished);
        let tallies = outlet.tallies.clone();
        match way {
            Way::Direct(direct) => direct.summary(*counts, tallies),
            Way::Aligned(aligned) => aligned.summary(*counts, tallies),
            Way::Synchronizer(synchronizer) => synchronizer.summary(*counts),
        }
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
        let State { way, outlet, counts, .. } = &mut *state;
        let mut publishers = match way {
            Way::Direct(direct) => direct.end(*counts, outlet),
            Way::Aligned(aligned) => aligned.end(*counts, outlet),
            Way::Synchronizer(synchronizer) => synchronizer.end(*counts),
        };
        state.counts.last.get_or_insert_with(now);
        state.ended = true;
        self.sooner.notify_all();
        publishers.extend(state.outlet.close());
        Some(publishers)
    }

    /// From where another run can go on: from now, or from the end.
    pub fn snapshot(&self) -> Vec<u8> {
        let mut state = self.state();
        let State { way, outlet, counts, .. } = &mut *state;
        match way {
            Way::Direct(direct) => direct.snapshot(*counts, outlet),
            Way::Aligned(aligned) => aligned.snapshot(*counts, outlet),
            Way::Synchronizer(synchronizer) => synchronizer.snapshot(*counts),
        }
    }

    /// Whether time brings something by itself, so that somebody has to [keep it](Pipeline::keep_time).
    pub fn is_timed(&self) -> bool {
        match &self.state().way {
            Way::Direct(direct) => direct.is_timed(),
            Way::Aligned(_) | Way::Synchronizer(_) => true,
        }
    }

    /// Gives, until the pipeline has ended, the verdicts that time brings where no message comes. For a
    /// thread of its own, which sleeps until something is due.
    pub fn keep_time(&self) {
        let mut state = self.state();
        while !state.ended {
            let now = Instant::now();
            let due = state.pass(now).map(|due| due.max(now + FINEST));
            if self.batching {
                state.release();
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
        if topic == self.progress {
            if let Way::Aligned(aligned) = &mut state.way {
                samples.iter().for_each(|sample| aligned.progress(sample.payload));
            } else if let Way::Synchronizer(synchronizer) = &mut state.way {
                samples.iter().for_each(|sample| synchronizer.progress(sample.payload));
            }
            return;
        }
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
            state.release();
        }
    }

    fn wants_idle(&self) -> bool {
        true
    }
}

impl State {
    fn receive(&mut self, topic: TopicId, samples: &[Sample<'_>]) {
        let State { way, outlet, counts, .. } = self;
        counts.received += samples.len() as u64;
        match way {
            Way::Direct(direct) => direct.receive(topic, samples, counts, outlet),
            Way::Aligned(aligned) => aligned.receive(topic, samples, counts, outlet),
            Way::Synchronizer(synchronizer) => synchronizer.receive(topic, samples, counts),
        }
        if counts.first.is_none() {
            // The clock is not read again before the end: that costs more than a step.
            counts.first = samples.first().map(Sample::arrival);
        }
    }

    /// Evaluates what has come and can be evaluated, and publishes what is to be published.
    fn step(&mut self) {
        match &mut self.way {
            Way::Direct(direct) => direct.step(&mut self.outlet),
            Way::Aligned(aligned) => aligned.step(&mut self.outlet),
            Way::Synchronizer(synchronizer) => synchronizer.step(),
        }
    }

    /// When time will bring something by itself.
    fn due(&self) -> Option<Instant> {
        match &self.way {
            Way::Direct(direct) => direct.due(),
            Way::Aligned(aligned) => aligned.due(),
            Way::Synchronizer(synchronizer) => synchronizer.due(),
        }
    }

    /// Evaluates what has come and what time has brought until this instant; when it will bring more.
    fn pass(&mut self, at: Instant) -> Option<Instant> {
        match &mut self.way {
            Way::Direct(direct) => direct.pass(at, &mut self.outlet),
            Way::Aligned(aligned) => aligned.pass(at, &mut self.outlet),
            Way::Synchronizer(synchronizer) => synchronizer.pass(at),
        }
    }

    /// Lets go what publishers hold back to fill a packet.
    fn release(&self) {
        self.outlet.release();
        match &self.way {
            Way::Direct(_) => {}
            Way::Aligned(aligned) => aligned.release(),
            Way::Synchronizer(synchronizer) => synchronizer.release(),
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
mod tests;
