//! Portions of a monitor: sections that another thread evaluates, ahead of the monitor.
//!
//! A portion is a blank monitor of the same program that borrows the states of its sections, or those of some instances
//! of a section. The monitor takes its reports as if it had evaluated all of them itself: in the order of
//! [`Monitor::step`], with all others.

use std::cmp::Reverse;
use std::mem::{replace, swap};
use std::sync::Arc;

use rondel_event::{Block, Timestamp};

use crate::exec::report::Report;
use crate::exec::section::Section;
use crate::keyed::divided::WholeReason;
use crate::keyed::plan::Sliced;
use crate::keyed::shards::{SHARDS, Shards};
use crate::keyed::{Events, Instances, PointBatch};
use crate::lower::spread::StayReason;
use crate::monitor::emit::{Occasion, Out, emit};
use crate::monitor::noted::Ended;
use crate::monitor::program::Program;
use crate::monitor::{FARTHEST, Monitor};

/// Cost of an instruction for instances, as a multiple of one for a whole block: each event has a record of its own.
const OF_INSTANCES: usize = 8;

/// The instances of a section are divided if it is larger than the share of a portion, divided by this.
const SMALL: usize = 4;

/// Which sections of a monitor are lent: those without instances, and the shards of those with instances.
#[derive(Clone, Debug)]
pub(super) struct Lent {
    sections: Vec<bool>,
    sliced: Vec<Shards>,
    /// Whether several portions evaluate the instances of each section. This stays when they are taken back.
    divided: Vec<bool>,
}

impl Lent {
    /// Whether several portions evaluate the instances of some section.
    pub(super) fn is_divided(&self) -> bool {
        self.divided.contains(&true)
    }
}

/// Some sections of a monitor, evaluated apart from it.
///
/// The monitor [lends](Monitor::lend) their states. Blocks then go through [`Portion::step`] first, on any thread, and
/// through [`Monitor::step_with`] afterwards; time passes by [`Portion::advance`] and [`Monitor::advance_with`].
/// Everything else needs the states [back](Monitor::take_back), or a [copy](Portion::clone) of them.
#[derive(Clone, Debug)]
pub struct Portion {
    /// Holds the states while they are lent.
    monitor: Monitor,
    /// Positions of its sections without instances.
    sections: Vec<usize>,
    /// Positions of its sections with instances, and the shards of these.
    sliced: Vec<(usize, Shards)>,
}

/// A unit of evaluation that goes to one portion.
#[derive(Clone, Copy, Debug)]
enum Unit {
    Section(usize),
    Sliced(usize, Shards),
}

/// Reports of a portion about one block.
#[derive(Debug, Default)]
pub struct PortionOutput {
    reports: Vec<Report>,
    /// Parameters of the reports.
    words: Vec<u64>,
    /// Instances that ended.
    ended: Vec<Ended>,
}

impl PortionOutput {
    /// Number of reports.
    pub fn len(&self) -> usize {
        self.reports.len()
    }

    /// Whether there is no report.
    pub fn is_empty(&self) -> bool {
        self.reports.is_empty()
    }

    /// Takes the reports of the last call of a monitor, which gets memory to reuse.
    fn take(&mut self, monitor: &mut Monitor) {
        swap(&mut monitor.reports, &mut self.reports);
        swap(&mut monitor.keys.words, &mut self.words);
        swap(&mut monitor.noted.ended, &mut self.ended);
    }
}

impl Portion {
    fn new(program: &Arc<Program>) -> Portion {
        let monitor = Monitor::new(Arc::clone(program));
        Portion { monitor, sections: Vec::new(), sliced: Vec::new() }
    }

    /// Evaluates the events of the next block. `out` is overwritten.
    pub fn step(&mut self, block: &Block, out: &mut PortionOutput) {
        let Portion { monitor, sections, sliced } = self;
        monitor.begin_call();
        if !block.is_empty() {
            let program = Arc::clone(&monitor.program);
            if program.reads_time {
                monitor.clamp(block);
                monitor.event_time = monitor.time;
            }
            for &i in &*sections {
                monitor.section(i, &program.sections[i], block);
            }
            let time = monitor.time;
            for &(i, shards) in &*sliced {
                if shards == Shards::ALL {
                    monitor.divided(i, &program.sliced[i], Some(block), time);
                } else {
                    monitor.divided_part(i, &program.sliced[i], block, time);
                }
            }
            monitor.position = monitor.position.saturating_add(block.len() as u64);
        }
        out.take(monitor);
    }

    /// Advances time to `now`, as [`Monitor::advance`] does. `out` is overwritten.
    pub fn advance(&mut self, now: Timestamp, out: &mut PortionOutput) {
        let monitor = &mut self.monitor;
        monitor.begin_call();
        let now = now.as_nanos().clamp(-FARTHEST, FARTHEST);
        if monitor.position > 0 && now > monitor.time {
            let program = Arc::clone(&monitor.program);
            // Sections that were not lent have no state, in which nothing changes.
            monitor.pass(&program, now);
            monitor.time = now;
        }
        out.take(monitor);
    }

    /// Next change by time alone in the states that are lent: see [`Monitor::next_deadline`].
    pub fn next_deadline(&self) -> Option<Timestamp> {
        self.monitor.next_deadline()
    }

    /// Events that were left out in the slices that are lent: see [`Monitor::refused`].
    pub fn refused(&self) -> impl Iterator<Item = [u64; 2]> {
        self.monitor.refused()
    }

    fn add(&mut self, unit: Unit) {
        match unit {
            Unit::Section(i) => self.sections.push(i),
            Unit::Sliced(i, shards) => match self.sliced.iter_mut().find(|(own, _)| *own == i) {
                Some((_, own)) => own.add(shards),
                None => self.sliced.push((i, shards)),
            },
        }
    }
}

impl Section {
    /// Why only its monitor can evaluate the section without instances.
    fn stays(&self, program: &Program) -> Option<StayReason> {
        if self.linear.is_some() {
            return Some(StayReason::Interpolation);
        }
        if !self.relations.is_empty() || !self.inner.is_empty() {
            return Some(StayReason::Quantifier);
        }
        if !self.machines.is_empty() {
            return Some(StayReason::Machine);
        }
        let reads_chain = |property: u32| {
            let property = program.spec.properties.get(property as usize);
            property.is_some_and(|property| !program.spec.chains_of(property).is_empty())
        };
        if !program.chains.is_empty() && self.all_properties().any(reads_chain) {
            return Some(StayReason::Chain);
        }
        (!self.terms.is_empty()).then_some(StayReason::Term)
    }

    /// Why only its monitor can evaluate the section with instances.
    fn stays_with_instances(&self) -> Option<StayReason> {
        // The steps of machines without messages are reported when they are taken.
        if self.changes.repeats {
            return Some(StayReason::Machine);
        }
        (!self.terms.is_empty()).then_some(StayReason::Term)
    }

    /// Number of instructions that are run for a block.
    fn size(&self) -> usize {
        let eager = self.eager.as_ref().map_or(0, |eager| eager.instructions.len());
        self.instructions.len() - self.constant + eager + 1
    }
}

impl Program {
    /// Why the thread of the monitor evaluates a property; `None` if [portions](Monitor::portions) may.
    pub fn stays(&self, property: u32) -> Option<StayReason> {
        let has = |section: &Section| section.all_properties().any(|own| own == property);
        if let Some(section) = self.sections.iter().find(|section| has(section)) {
            return section.stays(self);
        }
        self.sliced.iter().find(|sliced| has(&sliced.section))?.section.stays_with_instances()
    }

    /// Why one portion evaluates all instances of a property; `None` if they may be divided among portions, or if there
    /// are none.
    pub fn undivided(&self, property: u32) -> Option<WholeReason> {
        let has = |section: &Section| section.all_properties().any(|own| own == property);
        self.sliced.iter().find(|sliced| has(&sliced.section))?.undivided()
    }
}

impl Monitor {
    /// Divides its sections among up to `count` portions, by their sizes, and the instances of a large section by the
    /// hashes of their parameters if they may be [divided](Program::undivided). None is empty; there is none if every
    /// section [stays](Program::stays).
    pub fn portions(&self, count: usize) -> Vec<Portion> {
        let program = &self.program;
        let whole = program.sections.iter().enumerate();
        let whole = whole.filter(|(_, section)| section.stays(program).is_none());
        let mut units: Vec<(usize, Unit)> =
            whole.map(|(i, section)| (section.size(), Unit::Section(i))).collect();
        let sliced = program.sliced.iter().map(|sliced| &*sliced.section).enumerate();
        let sliced = sliced.filter(|(_, section)| section.stays_with_instances().is_none());
        units
            .extend(sliced.map(|(i, section)| (section.size() * OF_INSTANCES, Unit::Sliced(i, Shards::ALL))));
        let total: usize = units.iter().map(|(size, _)| size).sum();
        // Small sections are distributed evenly enough as they are.
        let is_large = |size: usize| count > 1 && size * count * SMALL > total;
        let mut divided: Vec<(usize, Unit)> = Vec::new();
        for (size, unit) in units {
            match unit {
                Unit::Sliced(i, _) if is_large(size) && program.sliced[i].undivided().is_none() => {
                    let each = Shards::each().map(|shard| Unit::Sliced(i, shard));
                    divided.extend(each.map(|unit| (size.div_ceil(SHARDS), unit)));
                }
                _ => divided.push((size, unit)),
            }
        }
        let mut units = divided;
        // The largest first, each to the portion with the least.
        units.sort_by_key(|(size, _)| Reverse(*size));
        let mut portions: Vec<Portion> = (0..count.min(units.len())).map(|_| Portion::new(program)).collect();
        let mut sizes = vec![0; portions.len()];
        for (size, unit) in units {
            let least = (0..sizes.len()).min_by_key(|at| sizes[*at]);
            let Some(at) = least else { break };
            sizes[at] += size;
            portions[at].add(unit);
        }
        // Reports are appended in the order of the sections.
        for portion in &mut portions {
            portion.sections.sort_unstable();
            portion.sliced.sort_unstable_by_key(|(i, _)| *i);
        }
        portions
    }

    /// Number of events that portions may evaluate until the states must be taken back: so few that no divided section can
    /// reach its limit of instances, and hardly one that of their memory, which only the monitor knows. To be called while
    /// nothing is lent.
    pub fn room(&self) -> u64 {
        self.divisible().map(Instances::left).min().unwrap_or(u64::MAX)
    }

    /// Number of instances that are copied to lend the states, and to take them back. To be called while nothing is lent.
    pub fn copied(&self) -> u64 {
        self.divisible().map(Instances::live).sum()
    }

    /// The instances that are divided among portions; before they have been lent, those that may be.
    fn divisible(&self) -> impl Iterator<Item = &Instances> {
        let (sliced, lent) = (self.program.sliced.iter().zip(&self.instances), self.lent.as_ref());
        let divisible = sliced.enumerate().filter(move |(i, (sliced, _))| match lent {
            Some(lent) => lent.divided[*i],
            None => sliced.section.stays_with_instances().is_none() && sliced.undivided().is_none(),
        });
        divisible.map(|(_, (_, instances))| instances)
    }

    /// Whether portions may evaluate the next block: no verdict is uncertain, which depends on the states of all
    /// sections.
    #[inline]
    pub fn may_lend(&self) -> bool {
        !self.uncertainties.is_active()
    }

    /// Moves the states of the sections of a portion into it. All portions must be lent to before any evaluates a block.
    pub fn lend(&mut self, portion: &mut Portion) {
        let Portion { monitor, sections, sliced } = portion;
        (monitor.every, monitor.every_requested) = (self.every, self.every_requested);
        (monitor.position, monitor.time, monitor.event_time) = (self.position, self.time, self.event_time);
        let Monitor { program, sections: own, instances, no_event, lent, .. } = self;
        let (whole, count) = (own.len(), instances.len());
        let lent = lent.get_or_insert_with(|| {
            let (sections, sliced) = (vec![false; whole], vec![Shards::NONE; count]);
            Box::new(Lent { sections, sliced, divided: vec![false; count] })
        });
        for &i in &*sections {
            swap(&mut monitor.sections[i], &mut own[i]);
            lent.sections[i] = true;
        }
        for &(i, shards) in &*sliced {
            lent.sliced[i].add(shards);
            if shards == Shards::ALL {
                swap(&mut monitor.instances[i], &mut instances[i]);
                continue;
            }
            lent.divided[i] = true;
            monitor.instances[i] = instances[i].part(&program.sliced[i], no_event, shards);
            if lent.sliced[i] == Shards::ALL {
                instances[i] = instances[i].emptied(&program.sliced[i], no_event);
            }
        }
    }

    /// Moves the states of the sections of a portion back. The portion must have evaluated the same blocks.
    pub fn take_back(&mut self, portion: &mut Portion) {
        let Portion { monitor, sections, sliced } = portion;
        self.noted.absorb(&mut monitor.noted);
        let Monitor { program, sections: own, instances, no_event, lent, .. } = self;
        let Some(lent) = lent else { return };
        for &i in &*sections {
            swap(&mut monitor.sections[i], &mut own[i]);
            lent.sections[i] = false;
        }
        for &(i, shards) in &*sliced {
            if shards == Shards::ALL {
                swap(&mut monitor.instances[i], &mut instances[i]);
            } else {
                let of = &program.sliced[i];
                let part = replace(&mut monitor.instances[i], Instances::new(of, no_event));
                if lent.sliced[i] == Shards::ALL {
                    // The others are added to the first part, which is not copied.
                    let empty = replace(&mut instances[i], part);
                    instances[i].follow(&empty);
                } else {
                    instances[i].unite(&part, &of.section, shards, false);
                    instances[i].add_lost(&part);
                }
            }
            lent.sliced[i].remove(shards);
        }
    }

    /// Like [`Monitor::step`], with the outputs of all portions for this block.
    pub fn step_with<'a>(
        &mut self,
        block: &Block,
        outputs: impl IntoIterator<Item = &'a PortionOutput>,
    ) -> &[Report] {
        self.begin_call();
        let Some(lent) = self.lent.take() else {
            return self.step(block);
        };
        if !block.is_empty() {
            let program = Arc::clone(&self.program);
            self.begin_step(&program, block);
            for (i, section) in program.sections.iter().enumerate() {
                if !lent.sections[i] {
                    self.section(i, section, block);
                }
            }
            let time = self.time;
            for (i, sliced) in program.sliced.iter().enumerate() {
                if lent.sliced[i] == Shards::NONE {
                    self.divided(i, sliced, Some(block), time);
                }
            }
            outputs.into_iter().for_each(|output| self.append(output));
            self.end_step(&program, block, Some(&*lent));
        }
        self.lent = Some(lent);
        &self.reports
    }

    /// Evaluates the events of a block for the instances of a part, and changes by time alone before `time`.
    fn divided_part(&mut self, i: usize, sliced: &Sliced, block: &Block, time: i64) {
        let Monitor { instances, times, reports, keys, every, position, noted, .. } = self;
        keys.slice = i as u32;
        let times = &times[..block.len()];
        let events = Occasion { block: Some(block), times, position: *position, elements: None };
        let mut out = Out { reports, keys, noted };
        let mut emit = |points: &PointBatch<'_>| emit(points, sliced, events, *every, &mut out);
        instances[i].step_part(sliced, Events { block, times, rows: block.rows(), inputs: &[] }, &mut emit);
        instances[i].advance(sliced, time, times, &mut emit);
    }

    /// Adds the reports of a portion.
    pub(super) fn append(&mut self, output: &PortionOutput) {
        let PortionOutput { reports, words, ended } = output;
        let start = self.keys.words.len() as u32;
        self.keys.words.extend_from_slice(words);
        let moved = |mut report: Report| {
            report.key.iter_mut().for_each(|key| key.start += start);
            report
        };
        self.reports.extend(reports.iter().map(|report| moved(*report)));
        let moved = |mut ended: Ended| {
            ended.key.start += start;
            ended
        };
        self.noted.ended.extend(ended.iter().map(|ended| moved(*ended)));
    }
}
