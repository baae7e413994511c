mod contents;
mod edited;
mod elements;
mod emit;
mod future;
mod linear;
mod machines;
mod noted;
mod parts;
mod points;
mod portion;
pub(crate) mod program;
mod sections;
mod snapshot;
mod status;
pub(crate) mod term_values;
pub(crate) mod uncertainty;
pub(crate) mod witness;

use std::cmp::Ordering;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

pub use edited::{Continued, EditOutcome, FieldPlaces, RestartReason, Snapshot};
pub use machines::Ambiguity;
pub use noted::EndedInstance;
pub use parts::{KEY_HASHES, PartsError, key_hash};
pub use portion::{Portion, PortionOutput};
use rondel_event::{Block, Rows, Timestamp};
pub use term_values::TermValue;

use crate::chain::{ChainRows, ChainState};
use crate::exec::report::Outcome;
use crate::exec::report::{Report, ReportKey, ReportKeys};
use crate::exec::section::{Section, TimePoints};
use crate::exec::serial::{ByItself, SavedSerial, Serial};
use crate::keyed::plan::Sliced;
use crate::keyed::saved::SavedInstances;
use crate::keyed::{Events, Instances, PointBatch};
use crate::linear::{LineRows, Linear, LinearState};
use crate::monitor::elements::ElementRoom;
use crate::monitor::emit::{Occasion, Out, emit};
use crate::monitor::future::FutureBuffers;
use crate::monitor::noted::Noted;
use crate::monitor::points::Grid;
use crate::monitor::portion::Lent;
use crate::monitor::program::Program;
use crate::monitor::status::has_begun;
use crate::monitor::uncertainty::Uncertainties;
use crate::monitor::witness::Violating;

/// Largest magnitude of a time in nanoseconds: the engine doubles times and adds one.
const FARTHEST: i64 = i64::MAX / 2 - 1;

/// Execution of a [`Program`] over a trace: all state that depends on the events so far.
///
/// The verdicts are a function of the events alone; how they are cut into blocks does not matter.
/// A step allocates nothing once queues and texts have reached the size they need.
#[derive(Clone, Debug)]
pub struct Monitor {
    pub(crate) program: Arc<Program>,
    pub(crate) sections: Vec<Serial>,
    /// Whether a report is generated at every event, and not only at changes: for the caller or for the uncertainty.
    pub(crate) every: bool,
    /// Whether the caller requested a report at every event.
    pub(crate) every_requested: bool,
    pub(crate) uncertainties: Uncertainties,
    pub(crate) position: u64,
    /// Latest time so far.
    pub(crate) time: i64,
    /// Time of the last event.
    event_time: i64,
    beyond: u64,
    /// Times of the block's events, made monotone: an earlier time counts as that of the event before.
    pub(crate) times: [i64; Block::CAPACITY],
    /// Input of evaluations that time alone causes.
    no_event: Block,
    grid: Grid,
    /// Waiting events of each section with linear interpolation.
    linear: Vec<Option<Box<Linear>>>,
    /// Interpolated values in the rows of such a section, and the rows that are crossings and not events.
    lines: Vec<LineRows>,
    crossings: Rows,
    outcomes: Vec<(u32, Outcome)>,
    /// Instances of each slice.
    pub(crate) instances: Vec<Instances>,
    chains: Vec<ChainState>,
    chain_rows: Vec<ChainRows>,
    pub(crate) reports: Vec<Report>,
    /// Parameters of the instances of the reports.
    pub(crate) keys: ReportKeys,
    /// Scratch space for properties with future operators.
    ahead: FutureBuffers,
    /// Values that violate relations in the last call.
    pub(crate) witnesses: Vec<Violating>,
    pub(crate) noted: Noted,
    /// Scratch space for the elements of messages, where a program has any.
    element_room: Option<Box<ElementRoom>>,
    /// Sections whose states are in portions.
    lent: Option<Box<Lent>>,
}

/// Part of a [`Monitor`] that goes into a snapshot.
#[derive(Serialize, Deserialize)]
pub(crate) struct SavedMonitor {
    sections: Vec<SavedSerial>,
    instances: Vec<SavedInstances>,
    chains: Vec<ChainState>,
    linear: Vec<Option<LinearState>>,
    position: u64,
    time: i64,
    event_time: i64,
    beyond: u64,
    uncertainties: Uncertainties,
}

impl Monitor {
    pub(crate) fn saved(&self) -> SavedMonitor {
        let mut uncertainties = self.uncertainties.clone();
        if !uncertainties.is_empty() {
            uncertainties.save(&self.program);
        }
        SavedMonitor {
            sections: self.sections.iter().map(Serial::saved).collect(),
            instances: self.instances.iter().map(Instances::saved).collect(),
            chains: self.chains.clone(),
            linear: self.linear.iter().map(|linear| Some(linear.as_ref()?.held.clone())).collect(),
            position: self.position,
            time: self.time,
            event_time: self.event_time,
            beyond: self.beyond,
            uncertainties,
        }
    }

    /// Restores a monitor. `None` if the saved state does not belong to the program.
    pub(crate) fn from_saved(program: Arc<Program>, saved: SavedMonitor) -> Option<Monitor> {
        let mut monitor = Monitor::new(program);
        let SavedMonitor {
            sections,
            instances,
            chains,
            linear,
            position,
            time,
            event_time,
            beyond,
            uncertainties,
        } = saved;
        if !uncertainties.fits(&monitor.program) {
            return None;
        }
        monitor.uncertainties = uncertainties;
        let program = Arc::clone(&monitor.program);
        if !monitor.uncertainties.restore(&program) {
            return None;
        }
        (monitor.position, monitor.beyond) = (position, beyond);
        (monitor.time, monitor.event_time) = (time, event_time);
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

    /// Creates a monitor before the first event. It reports changes of verdicts.
    pub fn new(program: Arc<Program>) -> Monitor {
        let no_event = Block::new(program.layout());
        Monitor {
            sections: program.sections.iter().map(|section| Serial::new(section, &no_event)).collect(),
            instances: program.sliced.iter().map(|sliced| Instances::new(sliced, &no_event)).collect(),
            chains: program.chains.iter().map(ChainState::new).collect(),
            chain_rows: vec![ChainRows::default(); program.chains.len()],
            every: false,
            every_requested: false,
            uncertainties: Uncertainties::new(&program),
            position: 0,
            time: -FARTHEST,
            event_time: -FARTHEST,
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
            ahead: FutureBuffers::default(),
            witnesses: Vec::new(),
            noted: Noted::new(program.properties().len()),
            element_room: (!program.elements.is_empty()).then(|| Box::new(ElementRoom::new(&program))),
            lent: None,
            program,
        }
    }

    /// Selects reports at every event (in addition to the changes in between), or at changes only.
    pub fn report_every(&mut self, every: bool) {
        self.every_requested = every;
        // Not for internal reports of uncertain properties: the pending queues must not depend on these.
        let pending = self.sections.iter_mut().flat_map(|section| &mut section.pending);
        pending.for_each(|pending| pending.keep_apart(every));
        self.instances.iter_mut().for_each(|instances| instances.report_every(every));
        self.choose_reports();
    }

    /// Limits the memory of the instances of each slice in bytes: events with new parameters are then left out, as with
    /// [`@limit`](crate::SliceStatus::refused).
    pub fn limit_instances(&mut self, bytes: usize) {
        self.instances.iter_mut().for_each(|instances| instances.limit_bytes(bytes));
    }

    /// Program that the monitor runs.
    pub fn program(&self) -> &Arc<Program> {
        &self.program
    }

    /// Evaluates the events of a block and returns the reports in the order of the events. An event earlier than its
    /// predecessor counts as simultaneous with it.
    ///
    /// # Panics
    /// If the block does not have the [layout](Program::layout) of the program: a mistake of the caller, never of the
    /// input.
    pub fn step(&mut self, block: &Block) -> &[Report] {
        self.begin_call();
        if block.is_empty() {
            return &self.reports;
        }
        let program = Arc::clone(&self.program);
        self.begin_step(&program, block);
        for (i, section) in program.sections.iter().enumerate() {
            self.section(i, section, block);
        }
        for i in 0..program.sliced.len() {
            self.divided(i, &program.sliced[i], Some(block), self.time);
        }
        self.end_step(&program, block, None);
        &self.reports
    }

    /// Records the times of the events of a block, and follows its chains.
    fn begin_step(&mut self, program: &Program, block: &Block) {
        let len = block.len();
        if program.reads_time {
            self.clamp(block);
            self.event_time = self.time;
        }
        let position = self.position;
        let states = self.sections.iter_mut().flat_map(|serial| &mut serial.state.relations);
        let obligations = states.filter_map(|state| state.obligations_mut());
        obligations.for_each(|obligations| obligations.begin_call(position));
        let chains = self.chains.iter_mut().zip(&program.chains).zip(&mut self.chain_rows);
        for ((chain, plan), rows) in chains {
            chain.step(plan, block, &self.times[..len], rows);
        }
    }

    /// Evaluates the events of a block for a section without instances.
    #[inline]
    fn section(&mut self, i: usize, section: &Section, block: &Block) {
        match section.time_points {
            TimePoints::Dense if section.linear.is_some() => self.linear_events(i, section, block),
            TimePoints::Events => self.events(i, section, block),
            TimePoints::Dense => self.dense(i, section, block),
        }
    }

    /// Sorts the reports of the events of a block and withholds the uncertain ones. `lent`: sections that were evaluated
    /// elsewhere.
    fn end_step(&mut self, program: &Program, block: &Block, lent: Option<&Lent>) {
        // Reports of a single event section are in order, unless an event concerns all instances.
        let mixes =
            |s: &Section| s.time_points == TimePoints::Dense || s.looks_ahead() || s.has_obligations();
        let shares = |sliced: &Sliced| !sliced.plan.shared.is_empty();
        let is_ordered = match (&program.sections[..], &program.sliced[..]) {
            ([], []) => true,
            ([section], []) => !mixes(section),
            ([], [sliced]) => !mixes(&sliced.section) && !shares(sliced) && sliced.plan.elements.is_empty(),
            _ => false,
        };
        let is_ordered = is_ordered && !lent.is_some_and(Lent::is_divided);
        if !is_ordered {
            self.sort();
        }
        // The outcome words show whether anything changed, without a pass over the reports.
        let is_plain = lent.is_none() && is_ordered && program.sliced.is_empty();
        let changes = !is_plain || self.outcomes.iter().any(|(_, outcome)| outcome.changed != 0);
        self.position = self.position.saturating_add(block.len() as u64);
        self.sort_ended();
        self.collect_witnesses();
        if self.uncertainties.finals.is_open() && changes && !self.reports.is_empty() {
            self.note_finals();
        }
        if self.uncertainties.is_active() {
            self.withhold(Some(block));
        }
    }

    /// Clears the reports of the last call.
    pub(crate) fn begin_call(&mut self) {
        self.reports.clear();
        self.keys.words.clear();
        self.witnesses.clear();
        self.uncertainties.missed.clear();
        self.noted.ended.clear();
        self.noted.terms.clear();
        self.noted.is_uncertain = self.uncertainties.is_active();
    }

    /// Advances time to `now` without an event, and returns the reports that become certain *before* `now`, since an
    /// event at `now` may still come. A later event that is earlier than `now` counts as of `now`.
    pub fn advance(&mut self, now: Timestamp) -> &[Report] {
        self.advance_with(now, std::iter::empty::<&PortionOutput>())
    }

    /// Like [`Monitor::advance`], with the outputs of all portions that have [advanced](Portion::advance) to `now`.
    pub fn advance_with<'a>(
        &mut self,
        now: Timestamp,
        outputs: impl IntoIterator<Item = &'a PortionOutput>,
    ) -> &[Report] {
        self.begin_call();
        self.chains.iter_mut().for_each(ChainState::clear_missing);
        let now = now.as_nanos().clamp(-FARTHEST, FARTHEST);
        if self.position > 0 && now > self.time {
            let program = Arc::clone(&self.program);
            for (chain, plan) in self.chains.iter_mut().zip(&program.chains) {
                chain.pass(plan, now);
            }
            self.pass(&program, now);
            outputs.into_iter().for_each(|output| self.append(output));
            self.sort();
            self.time = now;
            self.sort_ended();
            self.collect_witnesses();
            if self.uncertainties.finals.is_open() && !self.reports.is_empty() {
                self.note_finals();
            }
            if self.uncertainties.is_active() {
                self.withhold(None);
            }
        }
        &self.reports
    }

    /// Evaluates the changes of all sections by time alone before `now`.
    fn pass(&mut self, program: &Program, now: i64) {
        self.sections.iter_mut().for_each(|serial| serial.by_itself = ByItself::default());
        for (i, section) in program.sections.iter().enumerate() {
            // A property that joined later begins with an event, as does a section whose state is lent.
            if !has_begun(&self.sections[i], self.linear[i].as_deref()) {
                continue;
            }
            if section.linear.is_some() {
                self.linear_until(i, section, now);
                continue;
            }
            if section.time_points == TimePoints::Dense {
                while let Some(due) = self.sections[i].next_change(section).filter(|&due| due < now) {
                    self.alone(i, section, due, now, 0);
                }
                self.span(i, section, now, 0);
            }
            self.future_until(i, section, now);
        }
        for (i, sliced) in program.sliced.iter().enumerate() {
            self.divided(i, sliced, None, now);
        }
    }

    /// Ends the trace, and reports the verdicts left open.
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
        let Monitor { instances, reports, keys, every, time, event_time, position, noted, .. } = self;
        let events = Occasion { block: None, times: &[], position: *position, elements: None };
        for (i, (instances, sliced)) in (0..).zip(instances.iter_mut().zip(&program.sliced)) {
            keys.slice = i;
            let out = &mut Out { reports: &mut *reports, keys: &mut *keys, noted: &mut *noted };
            let emit = &mut |points: &PointBatch<'_>| emit(points, sliced, events, *every, out);
            instances.reach(sliced, *event_time, emit);
            instances.finish(sliced, *time, emit);
        }
        self.sort();
        if self.uncertainties.is_active() {
            self.withhold(None);
        }
        &self.reports
    }

    /// Reports of the last call of [`Monitor::step`], [`Monitor::advance`] or [`Monitor::end`].
    pub fn reports(&self) -> &[Report] {
        &self.reports
    }

    /// Sets [`Monitor::times`] from a block: within the range of the engine, and monotone.
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

    /// Sorts the reports by event, property, parameters and the time that they are about: none of it depends on
    /// existing instances or on other properties. Verdicts that become certain at the same time may be found at
    /// different time points, if another property adds one between.
    fn sort(&mut self) {
        let Monitor { reports, keys, program, .. } = self;
        // The lowest bit of the order distinguishes a time point from the interval after it.
        let place = |r: &Report| (r.order & !1, r.time, r.order & 1, r.property);
        let about = |r: &Report| (r.about.unwrap_or(r.time), r.after);
        reports.sort_by(|a, b| {
            place(a)
                .cmp(&place(b))
                .then_with(|| match (a.key, b.key) {
                    (Some(a), Some(b)) => compare_keys(program, keys, a, b),
                    _ => Ordering::Equal,
                })
                .then_with(|| about(a).cmp(&about(b)))
        });
    }

    /// Sorts the instances that ended like reports.
    #[inline]
    fn sort_ended(&mut self) {
        let Monitor { noted, keys, program, .. } = self;
        if noted.ended.len() > 1 {
            noted.ended.sort_by(|a, b| {
                let places = (a.order, a.property).cmp(&(b.order, b.property));
                places.then_with(|| compare_keys(program, keys, a.key, b.key))
            });
        }
    }

    /// Evaluates the events of a block, if there is one, for the instances concerned, and changes by time alone before
    /// `time`.
    fn divided(&mut self, i: usize, sliced: &Sliced, block: Option<&Block>, time: i64) {
        if let Some(block) = block
            && !sliced.plan.elements.is_empty()
        {
            return self.divided_by_element(i, sliced, block, time);
        }
        let Monitor { instances, times, reports, keys, every, position, noted, .. } = self;
        keys.slice = i as u32;
        let times = &times[..block.map_or(0, Block::len)];
        let events = Occasion { block, times, position: *position, elements: None };
        let mut out = Out { reports, keys, noted };
        let mut emit = |points: &PointBatch<'_>| emit(points, sliced, events, *every, &mut out);
        if let Some(block) = block {
            instances[i].step(sliced, Events { block, times, rows: block.rows(), inputs: &[] }, &mut emit);
        }
        instances[i].advance(sliced, time, times, &mut emit);
    }

    /// Step of the last event before a position in the order of reports.
    fn step_before(&self, order: u32) -> u64 {
        step_before(self.position, order)
    }
}

/// Compares the parameters of two instances of one section.
fn compare_keys(program: &Program, keys: &ReportKeys, a: ReportKey, b: ReportKey) -> Ordering {
    if a.slice != b.slice {
        return Ordering::Equal;
    }
    let sliced = program.sliced.get(a.slice as usize);
    sliced.map_or(Ordering::Equal, |sliced| sliced.plan.keys.compare(keys.of(a), keys.of(b)))
}

/// Position of a row in the order of reports; the interval after the row follows directly.
pub(crate) fn at(row: usize) -> u32 {
    4 * row as u32 + 2
}

/// Step of the last event before a position in the order of reports, for a block that begins with step `position`.
pub(crate) fn step_before(position: u64, order: u32) -> u64 {
    (position + u64::from(order / 4)).saturating_sub(1)
}

/// Position of changes by time alone before a row.
pub(crate) fn before(row: usize) -> u32 {
    4 * row as u32
}
