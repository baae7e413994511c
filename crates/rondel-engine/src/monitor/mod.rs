mod contents;
pub(crate) mod doubt;
mod edited;
mod future;
mod linear;
mod machines;
mod noted;
mod parts;
pub(crate) mod program;
mod snapshot;
mod tell;
pub(crate) mod witness;

use std::cmp::Ordering;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

pub use edited::{Anew, Continued, Fate, FieldPlaces, Snapshot};
pub use machines::Ambiguity;
pub use noted::EndedInstance;
pub use parts::{KEY_HASHES, PartsError, key_hash};
use rondel_event::{Block, Rows, Timestamp, TopicId, Value};
use rondel_spec::TimeModel;

use crate::chain::{ChainPlan, ChainRows, ChainState, ChainStatus};
use crate::exec::report::Outcome;
use crate::exec::report::{Report, ReportKeys, SliceStatus, Withheld, in_order};
use crate::exec::section::{Moments, Section};
use crate::exec::serial::{ByItself, Rowed, SavedSerial, Serial};
use crate::future::{Decision, Delayed, Levels, Pending, Room, Scratch};
use crate::keyed::saved::SavedInstances;
use crate::keyed::{Events, Instances, Moment, Sliced};
use crate::linear::{Held, LineRows, Linear};
use crate::monitor::doubt::Doubts;
use crate::monitor::noted::Noted;
use crate::monitor::program::Program;
use crate::monitor::tell::{Out, Told, tell};
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
}

/// What of a [`Monitor`] goes into a snapshot.
#[derive(Serialize, Deserialize)]
pub(crate) struct Saved {
    sections: Vec<SavedSerial>,
    instances: Vec<SavedInstances>,
    chains: Vec<ChainState>,
    linear: Vec<Option<Held>>,
    position: u64,
    time: i64,
    beyond: u64,
    doubts: Doubts,
}

impl Monitor {
    pub(crate) fn saved(&self) -> Saved {
        let mut doubts = self.doubts.clone();
        if !doubts.is_empty() {
            doubts.save(&self.program);
        }
        Saved {
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
    pub(crate) fn from_saved(program: Arc<Program>, saved: Saved) -> Option<Monitor> {
        let mut monitor = Monitor::new(program);
        let Saved { sections, instances, chains, linear, position, time, beyond, doubts } = saved;
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
    /// [`@limit`](SliceStatus::refused).
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
        let program = Arc::clone(&self.program);
        let chains = self.chains.iter_mut().zip(&program.chains).zip(&mut self.chain_rows);
        for ((chain, plan), rows) in chains {
            chain.step(plan, block, &self.times[..len], rows);
        }
        for (i, section) in program.sections.iter().enumerate() {
            match section.moments {
                Moments::Dense if section.linear.is_some() => self.linear_events(i, section, block),
                Moments::Events => self.events(i, section, block),
                Moments::Dense => self.dense(i, section, block),
            }
        }
        for i in 0..program.sliced.len() {
            self.divided(i, &program.sliced[i], Some(block), self.time);
        }
        // Those of a single section of events come in order, unless an event concerns all instances.
        let mixes = |s: &Section| s.moments == Moments::Dense || s.looks_ahead() || s.has_obligations();
        let shares = |sliced: &Sliced| !sliced.plan.shared.is_empty();
        let is_ordered = match (&program.sections[..], &program.sliced[..]) {
            ([], []) => true,
            ([section], []) => !mixes(section),
            ([], [sliced]) => !mixes(&sliced.section) && !shares(sliced),
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
                if section.moments == Moments::Dense {
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
        let events = Told { block: None, times: &[], position: *position };
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

    /// The values of the keys of the instance that a report of the last call is of; none where the property
    /// is not divided by key.
    pub fn key(&self, report: &Report) -> Vec<Value> {
        let mut values = Vec::new();
        self.write_key(report, &mut values);
        values
    }

    /// Appends what [`Monitor::key`] returns.
    pub fn write_key(&self, report: &Report, values: &mut Vec<Value>) {
        let Some(key) = report.key else { return };
        if let Some(sliced) = self.program.sliced.get(key.slice as usize) {
            sliced.plan.keys.write(self.keys.of(key), values);
        }
    }

    /// What has become of the chains so far, in the order of the specification.
    pub fn chains(&self) -> impl Iterator<Item = ChainStatus<'_>> {
        let chains = self.program.chains.iter().zip(&self.chains);
        chains.map(|(plan, chain)| ChainStatus {
            name: &plan.name,
            topics: plan.links.iter().map(|(topic, _)| *topic).collect(),
            figures: chain.figures(),
            under_way: chain.under_way(plan),
        })
    }

    /// Of a report of the last call that says that a stamp has not come out of its chain in time, the first
    /// topic that the stamp had not reached by then.
    pub fn missing(&self, report: &Report) -> Option<TopicId> {
        let is_its = |plan: &&ChainPlan| plan.property == Some(report.property);
        let at = self.program.chains.iter().position(|plan| is_its(&plan))?;
        let key = self.key(report);
        let [key] = &key[..] else { return None };
        self.chains.get(at)?.missing(self.program.chains.get(at)?, key, report.about?.as_nanos())
    }

    /// How the divisions by key are at the moment.
    pub fn slices(&self) -> impl Iterator<Item = SliceStatus<'_>> {
        let slices = self.program.sliced.iter().zip(&self.instances);
        slices.map(|(sliced, instances)| instances.status(sliced))
    }

    /// For every division by key how many events were left out because there were as many instances as allowed, and
    /// how many because their key was too long, in the order of [`Monitor::slices`]. Costs less than that.
    #[inline]
    pub fn refused(&self) -> impl Iterator<Item = [u64; 2]> {
        self.instances.iter().map(Instances::refused)
    }

    /// For every property that is divided by key how many of its instances are inconclusive now; 0 for the
    /// others.
    pub fn waiting(&self) -> Vec<u64> {
        let mut waiting = vec![0; self.program.properties().len()];
        for (sliced, instances) in self.program.sliced.iter().zip(&self.instances) {
            instances.waiting(sliced, &mut waiting);
        }
        self.doubts.add_waiting(&mut waiting);
        waiting
    }

    /// The premises that were not certainly true at any time point so far, in no instance: the property by its
    /// position in the specification, and the place among its [premises](rondel_spec::Property::premises).
    pub fn untried(&self) -> impl Iterator<Item = (u32, u32)> {
        let sections = self.program.sections.iter().zip(&self.sections);
        let whole = sections.flat_map(|(section, serial)| serial.untried.of(&section.premises));
        let divided = self.program.sliced.iter().zip(&self.instances);
        whole.chain(divided.flat_map(|(sliced, instances)| instances.untried(sliced)))
    }

    /// The properties that have joined and have seen no event yet.
    fn unbegun(&self) -> Vec<u32> {
        let sections = self.program.sections.iter().zip(&self.sections).zip(&self.linear);
        let unbegun = sections.filter(|((_, serial), linear)| !has_begun(serial, linear.as_deref()));
        unbegun.flat_map(|((section, _), _)| section.all_properties()).collect()
    }

    /// The number of the step, from 0, that the first event of the next block will be.
    pub fn position(&self) -> u64 {
        self.position
    }

    /// The latest time so far, of an event or that it was let pass to; where any property measures time.
    pub fn time(&self) -> Timestamp {
        Timestamp::from_nanos(self.time)
    }

    /// When time will bring something by itself, if no event comes before: the least `now` for which
    /// [`Monitor::advance`] does something.
    pub fn next_deadline(&self) -> Option<Timestamp> {
        let sections = self.program.sections.iter().zip(&self.sections).zip(&self.linear);
        let moves = |section: &Section, serial: &Serial| {
            section.has_levels && (0..section.robust.len()).any(|formula| serial.moves(section, formula))
        };
        let next = sections.filter_map(|((section, serial), linear)| {
            // What waits for events is brought on by no time.
            if linear.as_ref().is_some_and(|linear| !linear.is_free())
                || !has_begun(serial, linear.as_deref())
            {
                return None;
            }
            let waiting = linear.as_ref().and_then(|linear| linear.first());
            // Where there is truth at events only, what is measured between them is seen at the next.
            let past = match section.moments {
                Moments::Events => None,
                Moments::Dense if serial.has_span() || self.asked && moves(section, serial) => {
                    Some(serial.time)
                }
                Moments::Dense => serial.next_change(section),
            };
            let futures = section.futures.iter().zip(&serial.pending);
            let pending = futures.filter_map(|(future, pending)| pending.deadline(&future.plan));
            let robust = section.robust_futures.iter().zip(&serial.delayed);
            let delayed = robust.filter_map(|(future, delayed)| delayed.deadline(&future.plan));
            let timed = section.futures.iter().filter(|future| future.plan.time != TimeModel::Steps);
            let asked = timed.flat_map(|future| &future.givens).filter_map(|(_, relation)| {
                serial.state.relations.get(*relation as usize)?.asking()?.deadline()
            });
            pending.chain(delayed).chain(asked).chain(past).chain(waiting).min()
        });
        let next = next.chain(self.instances.iter().filter_map(Instances::next_change)).min();
        next.map(|time| Timestamp::from_nanos(time.saturating_add(1)))
    }

    /// How many events were more than 146 years from time zero: where time is measured, they count as of there.
    pub fn beyond_range(&self) -> u64 {
        self.beyond
    }

    /// How many samples of windows there was no room for: while so many are in a window, what it measures
    /// is unknown.
    pub fn dropped_samples(&self) -> u64 {
        let divided = self.instances.iter().map(Instances::dropped_samples);
        self.sections.iter().map(Serial::dropped_samples).chain(divided).fold(0, u64::saturating_add)
    }

    /// How many verdicts of properties with operators of the future were given up, as inconclusive, because
    /// too many were waited for.
    pub fn given_up(&self) -> u64 {
        let pending = self.sections.iter().flat_map(|section| &section.pending).map(Pending::lost);
        let delayed = self.sections.iter().flat_map(|section| &section.delayed).map(Delayed::lost);
        let relations = self.sections.iter().flat_map(|section| &section.state.relations);
        let asked = relations.filter_map(|relation| Some(relation.asking()?.lost()));
        pending
            .chain(delayed)
            .chain(asked)
            .chain(self.instances.iter().map(Instances::given_up))
            .fold(0, u64::saturating_add)
    }

    /// How many values quantified formulas have forgotten because there were more than their `@limit`: verdicts that
    /// depend on such a value are inconclusive.
    pub fn forgotten(&self) -> u64 {
        let sections = self.program.sections.iter().zip(&self.sections);
        let relations =
            sections.flat_map(|(section, own)| section.relations.iter().zip(&own.state.relations));
        relations.map(|(relation, state)| state.forgotten(&relation.plan)).fold(0, u64::saturating_add)
    }

    /// How many events were evaluated before the next numbers had come that they waited for, because too many
    /// waited: properties whose numbers run straight took these to be unknown. For each group of properties that
    /// wait for the same fields.
    pub fn hurried(&self) -> u64 {
        self.linear.iter().flatten().map(|linear| linear.lost()).fold(0, u64::saturating_add)
    }

    /// How often a machine that moves on by itself again and again was not followed through a time without messages,
    /// because that was too long: for that time it was unknown.
    pub fn leaps(&self) -> u64 {
        let repeating =
            self.program.sections.iter().zip(&self.sections).filter(|(section, _)| section.repeats);
        let undivided = repeating.map(|(_, serial)| serial.leaps());
        undivided.chain(self.instances.iter().map(Instances::leaps)).fold(0, u64::saturating_add)
    }

    /// The longest queue that any bounded operator keeps at the moment, in entries: what its memory
    /// grows with.
    pub fn longest_queue(&self) -> usize {
        let waiting = self.linear.iter().flatten().map(|linear| linear.kept());
        self.sections.iter().map(Serial::longest_queue).chain(waiting).max().unwrap_or(0)
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

    /// The order of the reports is that of the events, of the properties, and of the values of their keys: none of
    /// it depends on which instances there were before, or on other properties.
    fn sort(&mut self) {
        let Monitor { reports, keys, program, .. } = self;
        // The lowest bit of the order tells the span after a moment from the moment.
        let place = |r: &Report| (r.order & !1, r.time, r.order & 1, r.property);
        reports.sort_by(|a, b| {
            place(a).cmp(&place(b)).then_with(|| match (a.key, b.key) {
                (Some(a), Some(b)) if a.slice == b.slice => program
                    .sliced
                    .get(a.slice as usize)
                    .map_or(Ordering::Equal, |sliced| sliced.plan.keys.compare(keys.of(a), keys.of(b))),
                _ => Ordering::Equal,
            })
        });
    }

    /// Evaluates the events of a block, if there is one, for the instances that they concern, and what time
    /// brings before `time`.
    fn divided(&mut self, i: usize, sliced: &Sliced, block: Option<&Block>, time: i64) {
        let Monitor { instances, times, reports, keys, every, position, noted, .. } = self;
        keys.slice = i as u32;
        let times = &times[..block.map_or(0, Block::len)];
        let events = Told { block, times, position: *position };
        let mut out = Out { reports, keys, noted };
        let mut tell = |moment: &Moment<'_>| tell(moment, sliced, events, *every, &mut out);
        if let Some(block) = block {
            instances[i].step(sliced, Events { block, times, rows: block.rows(), inputs: &[] }, &mut tell);
        }
        instances[i].advance(sliced, time, times, &mut tell);
    }

    /// Evaluates a block whose rows are the moments.
    fn events(&mut self, i: usize, section: &Section, block: &Block) {
        let (serial, len) = (&mut self.sections[i], block.len() as u32);
        let times = if section.reads_time { &self.times[..len as usize] } else { &[] };
        serial.run(
            section,
            Rowed { block, start: 0, len, events: block.rows(), times, chains: &self.chain_rows, lines: &[] },
        );
        self.outcomes.clear();
        serial.outcomes_of_events(section, len, self.every, &mut self.outcomes);
        let every = if self.every { block.rows() } else { 0 };
        let (serial, position) = (&self.sections[i], self.position);
        let outcomes = self.outcomes.iter().map(|(formula, outcome)| (*formula, outcome));
        in_order(
            outcomes,
            |_| every,
            block.rows(),
            &mut self.reports,
            |row, formula, outcome| {
                let formula = formula as usize;
                let verdict = outcome.verdict(row);
                Report {
                    property: section.properties[formula],
                    verdict,
                    changed: outcome.changed >> row & 1 == 1,
                    row: Some(row as u8),
                    step: position + row as u64,
                    at_event: true,
                    time: block.time(row),
                    about: None,
                    after: false,
                    back: 0,
                    robustness: serial.robustness(section, formula, row, 0, verdict),
                    withheld: Withheld::No,
                    key: None,
                    order: at(row),
                }
            },
        );
        if section.has_levels {
            self.noted.levels(&self.sections[i], section, block.len());
        }
        self.future_events(i, section, block);
    }

    /// Evaluates a block, and in between the times at which something changes by itself.
    fn dense(&mut self, i: usize, section: &Section, block: &Block) {
        let len = block.len();
        let mut first = 0;
        while first < len {
            // Two events of one time are looked ahead of one after the other: what the second brings to an end held
            // at the first.
            let together = |row: &usize| section.scout.is_some() && self.times[*row] == self.times[*row - 1];
            let end = (first + 1..len).find(together).unwrap_or(len);
            self.dense_rows(i, section, block, first, end);
            first = end;
        }
    }

    /// The same for some rows of it.
    fn dense_rows(&mut self, i: usize, section: &Section, block: &Block, first: usize, end: usize) {
        let times = &self.times[first..end];
        let len = times.len() as u32;
        let events = crate::ops::words::low(len.into());
        let (chains, lines) = (&self.chain_rows[..], &self.lines[..]);
        self.sections[i]
            .look_ahead(section, Rowed { block, start: first as u32, len, events, times, chains, lines });
        let mut grid = std::mem::take(&mut self.grid);
        grid.fill(&self.sections[i], first, times);
        // What the rows to come bring about by themselves, and has not been looked ahead of, is not known before
        // they are evaluated; but it is not sooner than so long after the first of them.
        let shortest = i64::try_from(section.shortest).unwrap_or(i64::MAX);
        let mut start = 0;
        while start < grid.times.len() {
            let first = grid.times[start];
            let order = before(grid.next_event[start].into());
            let deadline = self.fire(i, section, first, order);
            let limit = first.saturating_add(shortest).min(deadline.unwrap_or(i64::MAX));
            let rest = grid.times[start..].iter().take(Block::CAPACITY);
            let len = rest.take_while(|&&time| time <= limit).count().max(1);
            self.moments(
                i,
                section,
                Some(block),
                &grid.times[start..start + len],
                &grid.next_event[start..=start + len],
            );
            start += len;
        }
        self.grid = grid;
    }

    /// Evaluates the deadlines before `time` that have not been looked ahead of, and gives the next one.
    fn fire(&mut self, i: usize, section: &Section, time: i64, order: u32) -> Option<i64> {
        loop {
            let deadline = self.sections[i].next_deadline(section);
            match deadline {
                Some(due) if due < time => self.alone(i, section, (due, time), order),
                _ => return deadline,
            }
        }
    }

    /// Evaluates a moment that time alone brings, before that at `until`.
    fn alone(&mut self, i: usize, section: &Section, (time, until): (i64, i64), order: u32) {
        let (row, before) = ((order / 4) as u8, self.reports.len());
        if section.repeats {
            self.sections[i].count_by_itself(section, time, until);
        }
        self.moments(i, section, None, &[time], &[row, row]);
        let quiet = &mut self.sections[i].by_itself.quiet;
        *quiet = if self.reports.len() == before { quiet.saturating_add(1) } else { 0 };
    }

    /// Evaluates moments at these times: rows of a block, or brought by time itself. `next_event` has for each
    /// the row of the first event that is not before it, and one more; where it does not rise there is no event.
    fn moments(
        &mut self,
        i: usize,
        section: &Section,
        block: Option<&Block>,
        times: &[i64],
        next_event: &[u8],
    ) {
        let len = times.len();
        self.span(i, section, times[0], before(next_event[0].into()));
        let crossing = |row: usize| !self.is_event(next_event, row);
        let crossings = match self.crossings {
            0 => 0,
            _ => crate::ops::columns::rows_where(len as u32, crossing),
        };
        let serial = &mut self.sections[i];
        let mut together = Rows::from(times[0] == serial.time);
        let mut events = 0;
        for row in 0..len {
            events |= Rows::from(next_event[row] != next_event[row + 1]) << row;
            if row > 0 {
                together |= Rows::from(times[row - 1] == times[row]) << row;
            }
        }
        if events != 0 {
            serial.by_itself = ByItself::default();
        }
        let start = next_event[0].into();
        let block = block.unwrap_or(&self.no_event);
        let (chains, lines) = (&self.chain_rows[..], &self.lines[..]);
        serial.run(section, Rowed { block, start, len: len as u32, events, times, chains, lines });
        for (formula, &property) in section.properties.iter().enumerate() {
            let [now, after] = serial.outcomes(section, formula, len as u32, together);
            let every = if self.every { events & !crossings } else { 0 };
            // A robustness may change at any of them, and on the span after it.
            let levels = self.asked && section.robust[formula].is_some();
            let rows = if levels { crate::ops::words::low(len as u64) } else { 0 };
            let spans = !together >> 1 & rows >> 1;
            if section.has_levels {
                self.noted.dense_levels(serial, (section, formula), len, together);
            }
            let mut reported = now.changed | after.changed | every | rows;
            while reported != 0 {
                let row = reported.trailing_zeros() as usize;
                reported &= reported - 1;
                let is_event = events >> row & 1 == 1;
                let next = usize::from(next_event[row]);
                let verdict = now.verdict(row);
                let report = Report {
                    property,
                    verdict,
                    changed: now.changed >> row & 1 == 1,
                    row: is_event.then_some(next as u8),
                    step: (self.position + next as u64).saturating_sub(u64::from(!is_event)),
                    at_event: is_event,
                    time: Timestamp::from_nanos(times[row]),
                    about: None,
                    after: false,
                    back: 0,
                    robustness: serial.robustness(section, formula, row, 0, verdict),
                    withheld: Withheld::No,
                    key: None,
                    order: if is_event { at(next) } else { before(next) },
                };
                let moved = levels && serial.tells(formula, report.robustness);
                if report.changed || every >> row & 1 == 1 || moved {
                    self.reports.push(report);
                }
                let changed = after.changed >> row & 1 == 1;
                if changed || spans >> row & 1 == 1 {
                    // Where [`Monitor::span`] puts it if this is the last moment of a block.
                    let order = before(next_event[row + 1].into()) + 1;
                    let verdict = after.verdict(row);
                    let robustness = serial.robustness(section, formula, row, 1, verdict);
                    let moved = levels && serial.tells(formula, robustness);
                    let (row, at_event, after) = (None, false, true);
                    if changed || moved {
                        self.reports.push(Report {
                            verdict,
                            changed,
                            row,
                            at_event,
                            after,
                            robustness,
                            order,
                            ..report
                        });
                    }
                }
            }
        }
        self.future_moments(i, section, times, next_event);
    }

    /// Reports what is otherwise on the span after the last moment, if there is time before the next at `time`.
    fn span(&mut self, i: usize, section: &Section, time: i64, order: u32) {
        let step = self.step_before(order);
        let serial = &mut self.sections[i];
        if time <= serial.time {
            return;
        }
        serial.time_passes(section);
        for (formula, &property) in section.properties.iter().enumerate() {
            let changed = serial.span(formula);
            if section.has_levels {
                self.noted.span_level(serial, (section, formula));
            }
            let levels = self.asked && section.robust[formula].is_some();
            if changed.is_some() || levels && serial.moves(section, formula) {
                let verdict = changed.unwrap_or_else(|| serial.last_verdict(formula));
                let robustness = serial.robustness(section, formula, serial.last_row(), 1, verdict);
                if levels {
                    serial.tells(formula, robustness);
                }
                self.reports.push(Report {
                    property,
                    verdict,
                    changed: changed.is_some(),
                    row: None,
                    step,
                    at_event: false,
                    time: Timestamp::from_nanos(serial.time),
                    about: None,
                    after: true,
                    back: 0,
                    robustness,
                    withheld: Withheld::No,
                    key: None,
                    order: order + 1,
                });
            }
        }
    }

    /// The number of the last event before this place in the order of reports.
    fn step_before(&self, order: u32) -> u64 {
        step_before(self.position, order)
    }
}

/// Whether a section has seen an event, or one waits for it.
fn has_begun(serial: &Serial, linear: Option<&Linear>) -> bool {
    serial.has_begun() || linear.is_some_and(|linear| !linear.is_free() || linear.first().is_some())
}

/// The moments of a block: its events, and what lies between them.
#[derive(Clone, Debug, Default)]
struct Grid {
    times: Vec<i64>,
    /// For each moment the row of the first event that is not before it, and at the end the number of events.
    next_event: Vec<u8>,
    between: Vec<i64>,
}

impl Grid {
    /// Puts the events at `times`, from the row `first` on, and what has been seen ahead in one order.
    fn fill(&mut self, serial: &Serial, first: usize, times: &[i64]) {
        self.times.clear();
        self.next_event.clear();
        self.between.clear();
        if let Some(&last) = times.last() {
            serial.moments(last, &mut self.between);
        }
        self.between.sort_unstable();
        self.between.dedup();
        let mut between = self.between.iter().copied().peekable();
        for (row, &time) in (first..).zip(times) {
            while let Some(moment) = between.next_if(|&moment| moment <= time) {
                // An event at that time is the moment.
                if moment < time {
                    self.times.push(moment);
                    self.next_event.push(row as u8);
                }
            }
            self.times.push(time);
            self.next_event.push(row as u8);
        }
        self.next_event.push((first + times.len()) as u8);
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
