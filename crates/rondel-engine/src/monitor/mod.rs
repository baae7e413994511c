mod contents;
pub(crate) mod doubt;
mod edited;
mod elements;
mod future;
mod linear;
mod machines;
mod moments;
mod noted;
mod parts;
pub(crate) mod program;
mod snapshot;
mod status;
mod tell;
pub(crate) mod term_values;
pub(crate) mod witness;

use std::cmp::Ordering;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

pub use edited::{Anew, Continued, Fate, FieldPlaces, Snapshot};
pub use machines::Ambiguity;
pub use noted::EndedInstance;
pub use parts::{KEY_HASHES, PartsError, key_hash};
use rondel_event::{Block, Rows, Timestamp};
pub use term_values::TermValue;

use crate::chain::{ChainRows, ChainState};
use crate::exec::report::Outcome;
use crate::exec::report::{Report, ReportKeys};
use crate::exec::section::{Section, TimePoints};
use crate::exec::serial::{ByItself, SavedSerial, Serial};
use crate::future::{Decision, Levels, Room, Scratch};
use crate::keyed::plan::Sliced;
use crate::keyed::saved::SavedInstances;
use crate::keyed::{Events, Instances, Moment};
use crate::linear::{LineRows, Linear, LinearState};
use crate::monitor::doubt::Doubts;
use crate::monitor::elements::ElementRoom;
use crate::monitor::moments::Grid;
use crate::monitor::noted::Noted;
use crate::monitor::program::Program;
use crate::monitor::status::has_begun;
use crate::monitor::tell::{Occasion, Out, tell};
use crate::monitor::witness::Violating;

/// The engine doubles times, and adds one.
const FARTHEST: i64 = i64::MAX / 2 - 1;

/// A program on its way over a trace: all that it remembers of the events so far.
///
/// The verdicts are a function of the events alone; how they are cut into blocks does not matter.
/// A step allocates nothing once queues and texts have reached the size they need.
#[derive(Clone, Debug)]
pub struct Monitor {
    pub(crate) program: Arc<Program>,
    pub(crate) sections: Vec<Serial>,
    /// Whether the verdict at every event is reported, and not only changes.
    pub(crate) every: bool,
    /// Whether the caller asked for that.
    pub(crate) asked: bool,
    pub(crate) doubts: Doubts,
    pub(crate) position: u64,
    /// The latest time so far.
    pub(crate) time: i64,
    beyond: u64,
    /// The times of the block's events; one that is earlier than the event before counts as that one's.
    pub(crate) times: [i64; Block::CAPACITY],
    /// What is evaluated where time alone brings a change.
    no_event: Block,
    grid: Grid,
    /// For every section that lags what it waits for.
    linear: Vec<Option<Box<Linear>>>,
    /// What the straight lines of such a section are in the rows that it is evaluated in, and which of these are no
    /// events.
    lines: Vec<LineRows>,
    crossings: Rows,
    outcomes: Vec<(u32, Outcome)>,
    /// For every section that is divided by key its instances.
    pub(crate) instances: Vec<Instances>,
    chains: Vec<ChainState>,
    chain_rows: Vec<ChainRows>,
    pub(crate) reports: Vec<Report>,
    /// The keys of the instances that the reports are of.
    pub(crate) keys: ReportKeys,
    /// Room for what properties with operators of the future need while they are evaluated.
    words: Vec<[Rows; 2]>,
    pasts: (Vec<u8>, Vec<u8>),
    room: Scratch,
    levels: [Vec<Levels>; 2],
    delayed_room: Room,
    decisions: Vec<Decision>,
    /// The values of violations by relations in the last call.
    pub(crate) witnesses: Vec<Violating>,
    pub(crate) noted: Noted,
    /// Room for the elements of messages, where a program has any.
    element_room: Option<Box<ElementRoom>>,
}

/// What of a [`Monitor`] goes into a snapshot.
#[derive(Serialize, Deserialize)]
pub(crate) struct SavedMonitor {
    sections: Vec<SavedSerial>,
    instances: Vec<SavedInstances>,
    chains: Vec<ChainState>,
    linear: Vec<Option<LinearState>>,
    position: u64,
    time: i64,
    beyond: u64,
    doubts: Doubts,
}

impl Monitor {
    pub(crate) fn saved(&self) -> SavedMonitor {
        let mut doubts = self.doubts.clone();
        if !doubts.is_empty() {
            doubts.save(&self.program);
        }
        SavedMonitor {
            sections: self.sections.iter().map(Serial::saved).collect(),
            instances: self.instances.iter().map(Instances::saved).collect(),
            chains: self.chains.clone(),
            linear: self.linear.iter().map(|linear| Some(linear.as_ref()?.held.clone())).collect(),
            position: self.position,
            time: self.time,
            beyond: self.beyond,
            doubts,
        }
    }

    /// A monitor with what was saved; none if that does not belong to the program.
    pub(crate) fn from_saved(program: Arc<Program>, saved: SavedMonitor) -> Option<Monitor> {
        let mut monitor = Monitor::new(program);
        let SavedMonitor { sections, instances, chains, linear, position, time, beyond, doubts } = saved;
        if !doubts.fits(&monitor.program) {
            return None;
        }
        monitor.doubts = doubts;
        let program = Arc::clone(&monitor.program);
        if !monitor.doubts.restore(&program) {
            return None;
        }
        (monitor.position, monitor.time, monitor.beyond) = (position, time, beyond);
        if (sections.len(), instances.len()) != (monitor.sections.len(), monitor.instances.len())
            || (chains.len(), linear.len()) != (monitor.chains.len(), monitor.linear.len())
        {
            return None;
        }
        monitor.chains = chains;
        for (chain, plan) in monitor.chains.iter_mut().zip(&monitor.program.chains) {
            if !chain.complete(plan) {
                return None;
            }
        }
        let sections = monitor.sections.iter_mut().zip(&monitor.program.sections).zip(sections);
        let mut all = true;
        for (own, saved) in monitor.linear.iter_mut().zip(linear) {
            all &= match (own, saved) {
                (Some(own), Some(saved)) => own.restore(saved),
                (own, saved) => own.is_none() && saved.is_none(),
            };
        }
        for ((serial, section), saved) in sections {
            all &= serial.restore(section, saved);
        }
        let divided = monitor.instances.iter_mut().zip(&monitor.program.sliced).zip(instances);
        for ((own, sliced), saved) in divided {
            all &= own.restore(&sliced.section, saved);
        }
        monitor.choose_reports();
        all.then_some(monitor)
    }

    /// A monitor before the first event. It reports changes of verdicts.
    pub fn new(program: Arc<Program>) -> Monitor {
        let no_event = Block::new(program.layout());
        Monitor {
            sections: program.sections.iter().map(|section| Serial::new(section, &no_event)).collect(),
            instances: program.sliced.iter().map(|sliced| Instances::new(sliced, &no_event)).collect(),
            chains: program.chains.iter().map(ChainState::new).collect(),
            chain_rows: vec![ChainRows::default(); program.chains.len()],
            every: false,
            asked: false,
            doubts: Doubts::new(&program),
            position: 0,
            time: -FARTHEST,
            beyond: 0,
            times: [0; Block::CAPACITY],
            no_event,
            grid: Grid::default(),
            linear: program
                .sections
                .iter()
                .map(|section| {
                    section.linear.as_ref().map(|plan| Box::new(Linear::new(plan, program.layout())))
                })
                .collect(),
            lines: Vec::new(),
            crossings: 0,
            outcomes: Vec::new(),
            reports: Vec::new(),
            keys: ReportKeys::default(),
            words: Vec::new(),
            pasts: (Vec::new(), Vec::new()),
            room: Scratch::default(),
            levels: Default::default(),
            delayed_room: Room::default(),
            decisions: Vec::new(),
            witnesses: Vec::new(),
            noted: Noted::new(program.properties().len()),
            element_room: (!program.elements.is_empty()).then(|| Box::new(ElementRoom::new(&program))),
            program,
        }
    }

    /// Whether it reports the verdict at every event (and the changes in between), or changes only.
    pub fn report_every(&mut self, every: bool) {
        self.asked = every;
        // Not where the monitor reports every verdict to itself: what waits must not depend on that.
        let pending = self.sections.iter_mut().flat_map(|section| &mut section.pending);
        pending.for_each(|pending| pending.keep_apart(every));
        self.instances.iter_mut().for_each(|instances| instances.report_every(every));
        self.choose_reports();
    }

    /// Limits the bytes of the instances of each division by key: events with a new key are then left out, as with
    /// [`@limit`](crate::SliceStatus::refused).
    pub fn limit_instances(&mut self, bytes: usize) {
        self.instances.iter_mut().for_each(|instances| instances.limit_bytes(bytes));
    }

    /// The program it runs.
    pub fn program(&self) -> &Arc<Program> {
        &self.program
    }

    /// Takes the events of a block and reports, in the order of the events, what became of the
    /// properties. Of an event that is earlier than the one before the time is that one's.
    ///
    /// # Panics
    /// When the block has not the [layout](Program::layout) of the program: a mistake of the caller,
    /// never of the input.
    pub fn step(&mut self, block: &Block) -> &[Report] {
        self.begin_call();
        if block.is_empty() {
            return &self.reports;
        }
        let len = block.len();
        if self.program.reads_time {
            self.clamp(block);
        }
        let position = self.position;
        let states = self.sections.iter_mut().flat_map(|serial| &mut serial.state.relations);
        let asking = states.filter_map(|state| state.asking_mut());
        asking.for_each(|asking| asking.begin_call(position));
        let program = Arc::clone(&self.program);
        let chains = self.chains.iter_mut().zip(&program.chains).zip(&mut self.chain_rows);
        for ((chain, plan), rows) in chains {
            chain.step(plan, block, &self.times[..len], rows);
        }
        for (i, section) in program.sections.iter().enumerate() {
            match section.time_points {
                TimePoints::Dense if section.linear.is_some() => self.linear_events(i, section, block),
                TimePoints::Events => self.events(i, section, block),
                TimePoints::Dense => self.dense(i, section, block),
            }
        }
        for i in 0..program.sliced.len() {
            self.divided(i, &program.sliced[i], Some(block), self.time);
        }
        // Those of a single section of events come in order, unless an event concerns all instances.
        let mixes =
            |s: &Section| s.time_points == TimePoints::Dense || s.looks_ahead() || s.has_obligations();
        let shares = |sliced: &Sliced| !sliced.plan.shared.is_empty();
        let is_ordered = match (&program.sections[..], &program.sliced[..]) {
            ([], []) => true,
            ([section], []) => !mixes(section),
            ([], [sliced]) => !mixes(&sliced.section) && !shares(sliced) && sliced.plan.elements.is_empty(),
            _ => false,
        };
        if !is_ordered {
            self.sort();
        }
        // Their words say whether anything changed; the reports need not be gone through.
        let is_plain = is_ordered && program.sliced.is_empty();
        let changes = !is_plain || self.outcomes.iter().any(|(_, outcome)| outcome.changed != 0);
        self.position = self.position.saturating_add(len as u64);
        self.noted.sort();
        self.collect_witnesses();
        if self.doubts.finals.is_open() && changes && !self.reports.is_empty() {
            self.note_finals();
        }
        if self.doubts.is_active() {
            self.withhold(Some(block));
        }
        &self.reports
    }

    /// Forgets the reports of the last call.
    pub(crate) fn begin_call(&mut self) {
        self.reports.clear();
        self.keys.words.clear();
        self.witnesses.clear();
        self.doubts.missed.clear();
        self.noted.ended.clear();
        self.noted.terms.clear();
        self.noted.is_doubtful = self.doubts.is_active();
    }

    /// Lets time pass up to `now` without an event, and reports what that brings: what becomes certain
    /// *before* `now`, since an event at `now` may still come. An event that is earlier than `now` counts
    /// as of `now` from here on.
    pub fn advance(&mut self, now: Timestamp) -> &[Report] {
        self.begin_call();
        self.chains.iter_mut().for_each(ChainState::clear_missing);
        let now = now.as_nanos().clamp(-FARTHEST, FARTHEST);
        if self.position > 0 && now > self.time {
            let program = Arc::clone(&self.program);
            self.sections.iter_mut().for_each(|serial| serial.by_itself = ByItself::default());
            for (chain, plan) in self.chains.iter_mut().zip(&program.chains) {
                chain.pass(plan, now);
            }
            for (i, section) in program.sections.iter().enumerate() {
                // One that has joined begins with an event.
                if !has_begun(&self.sections[i], self.linear[i].as_deref()) {
                    continue;
                }
                if section.linear.is_some() {
                    self.linear_until(i, section, now);
                    continue;
                }
                if section.time_points == TimePoints::Dense {
                    while let Some(due) = self.sections[i].next_change(section).filter(|&due| due < now) {
                        self.alone(i, section, (due, now), 0);
                    }
                    self.span(i, section, now, 0);
                }
                self.future_until(i, section, now);
            }
            for (i, sliced) in program.sliced.iter().enumerate() {
                self.divided(i, sliced, None, now);
            }
            self.sort();
            self.time = now;
            self.noted.sort();
            self.collect_witnesses();
            if self.doubts.finals.is_open() && !self.reports.is_empty() {
                self.note_finals();
            }
            if self.doubts.is_active() {
                self.withhold(None);
            }
        }
        &self.reports
    }

    /// Ends the trace, and reports what is then left open.
    pub fn end(&mut self) -> &[Report] {
        self.begin_call();
        self.chains.iter_mut().for_each(ChainState::clear_missing);
        let program = Arc::clone(&self.program);
        for (i, section) in program.sections.iter().enumerate() {
            if section.linear.is_some() {
                self.linear_end(i, section);
            }
            self.future_end(i, section);
            self.machines_end(i, section);
        }
        let Monitor { instances, reports, keys, every, time, position, noted, .. } = self;
        let events = Occasion { block: None, times: &[], position: *position, rows: None };
        for (i, (instances, sliced)) in (0..).zip(instances.iter_mut().zip(&program.sliced)) {
            keys.slice = i;
            let out = &mut Out { reports: &mut *reports, keys: &mut *keys, noted: &mut *noted };
            let tell = &mut |moment: &Moment<'_>| tell(moment, sliced, events, *every, out);
            instances.finish(sliced, *time, tell);
        }
        self.sort();
        if self.doubts.is_active() {
            self.withhold(None);
        }
        &self.reports
    }

    /// The reports of the last call of [`Monitor::step`], [`Monitor::advance`] or [`Monitor::end`].
    pub fn reports(&self) -> &[Report] {
        &self.reports
    }

    /// The times of the events of a block, as the engine measures them.
    fn clamp(&mut self, block: &Block) {
        let (mut latest, mut beyond) = (self.time, 0);
        for (row, time) in self.times[..block.len()].iter_mut().enumerate() {
            let given = block.time(row).as_nanos();
            let within = given.clamp(-FARTHEST, FARTHEST);
            beyond += u64::from(given != within);
            latest = latest.max(within);
            *time = latest;
        }
        self.time = latest;
        self.beyond += beyond;
    }

    /// The order of the reports is that of the events, of the properties, of the values of their keys, and of the times that
    /// they are about: none of it depends on which instances there were before, or on other properties. Verdicts that become
    /// certain at one time may be found at several moments, if another property brings one between.
    fn sort(&mut self) {
        let Monitor { reports, keys, program, .. } = self;
        // The lowest bit of the order tells the span after a moment from the moment.
        let place = |r: &Report| (r.order & !1, r.time, r.order & 1, r.property);
        let about = |r: &Report| (r.about.unwrap_or(r.time), r.after);
        reports.sort_by(|a, b| {
            place(a)
                .cmp(&place(b))
                .then_with(|| match (a.key, b.key) {
                    (Some(a), Some(b)) if a.slice == b.slice => program
                        .sliced
                        .get(a.slice as usize)
                        .map_or(Ordering::Equal, |sliced| sliced.plan.keys.compare(keys.of(a), keys.of(b))),
                    _ => Ordering::Equal,
                })
                .then_with(|| about(a).cmp(&about(b)))
        });
    }

    /// Evaluates the events of a block, if there is one, for the instances that they concern, and what time
    /// brings before `time`.
    fn divided(&mut self, i: usize, sliced: &Sliced, block: Option<&Block>, time: i64) {
        if let Some(block) = block
            && !sliced.plan.elements.is_empty()
        {
            return self.divided_by_element(i, sliced, block, time);
        }
        let Monitor { instances, times, reports, keys, every, position, noted, .. } = self;
        keys.slice = i as u32;
        let times = &times[..block.map_or(0, Block::len)];
        let events = Occasion { block, times, position: *position, rows: None };
        let mut out = Out { reports, keys, noted };
        let mut tell = |moment: &Moment<'_>| tell(moment, sliced, events, *every, &mut out);
        if let Some(block) = block {
            instances[i].step(sliced, Events { block, times, rows: block.rows(), inputs: &[] }, &mut tell);
        }
        instances[i].advance(sliced, time, times, &mut tell);
    }

    /// The number of the last event before this place in the order of reports.
    fn step_before(&self, order: u32) -> u64 {
        step_before(self.position, order)
    }
}

/// The place in the order of reports of what happens at a row; right after it comes the span that follows.
pub(crate) fn at(row: usize) -> u32 {
    4 * row as u32 + 2
}

/// The number of the last event before a place in the order of the reports on a block that begins with this event.
pub(crate) fn step_before(position: u64, order: u32) -> u64 {
    (position + u64::from(order / 4)).saturating_sub(1)
}

/// The place of what time brings before a row.
pub(crate) fn before(row: usize) -> u32 {
    4 * row as u32
}
