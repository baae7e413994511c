//! Portions of a monitor: sections that another thread evaluates, ahead of the monitor.
//!
//! A portion is a blank monitor of the same program that borrows the states of its sections. The monitor takes its
//! reports as if it had evaluated these sections itself: in the order of [`Monitor::step`], with all others.

use std::cmp::Reverse;
use std::mem::swap;
use std::sync::Arc;

use rondel_event::Block;

use crate::exec::report::Report;
use crate::exec::section::Section;
use crate::lower::spread::StayReason;
use crate::monitor::Monitor;
use crate::monitor::noted::Ended;
use crate::monitor::program::Program;

/// Cost of an instruction for instances, as a multiple of one for a whole block: each event has a record of its own.
const OF_INSTANCES: usize = 8;

/// Which sections of a monitor are lent, without instances and with instances.
#[derive(Clone, Debug)]
pub(super) struct Lent {
    sections: Vec<bool>,
    sliced: Vec<bool>,
}

/// Some sections of a monitor, evaluated apart from it.
///
/// The monitor [lends](Monitor::lend) their states. Blocks then go through [`Portion::step`] first, on any thread, and
/// through [`Monitor::step_with`] afterwards. Everything else needs the states [back](Monitor::take_back).
#[derive(Debug)]
pub struct Portion {
    /// Holds the states while they are lent.
    monitor: Monitor,
    /// Positions of its sections without instances.
    sections: Vec<usize>,
    /// Positions of its sections with instances.
    sliced: Vec<usize>,
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
            for &i in &*sliced {
                monitor.divided(i, &program.sliced[i], Some(block), time);
            }
            monitor.position = monitor.position.saturating_add(block.len() as u64);
        }
        swap(&mut monitor.reports, &mut out.reports);
        swap(&mut monitor.keys.words, &mut out.words);
        swap(&mut monitor.noted.ended, &mut out.ended);
    }

    /// Exchanges the states of its sections with those of a monitor.
    fn exchange(&mut self, other: &mut Monitor) {
        for &i in &self.sections {
            swap(&mut self.monitor.sections[i], &mut other.sections[i]);
        }
        for &i in &self.sliced {
            swap(&mut self.monitor.instances[i], &mut other.instances[i]);
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
}

impl Monitor {
    /// Divides its sections among up to `count` portions, by their sizes. None is empty; there is none if every section
    /// [stays](Program::stays).
    pub fn portions(&self, count: usize) -> Vec<Portion> {
        let program = &self.program;
        let whole = program.sections.iter().enumerate();
        let whole = whole.filter(|(_, section)| section.stays(program).is_none());
        let divided = program.sliced.iter().map(|sliced| &*sliced.section).enumerate();
        let divided = divided.filter(|(_, section)| section.stays_with_instances().is_none());
        let mut units: Vec<(usize, bool, usize)> = whole
            .map(|(i, section)| (section.size(), false, i))
            .chain(divided.map(|(i, section)| (section.size() * OF_INSTANCES, true, i)))
            .collect();
        // The largest first, each to the portion with the least.
        units.sort_by_key(|(size, ..)| Reverse(*size));
        let mut portions: Vec<Portion> = (0..count.min(units.len())).map(|_| Portion::new(program)).collect();
        let mut sizes = vec![0; portions.len()];
        for (size, has_instances, i) in units {
            let least = (0..sizes.len()).min_by_key(|at| sizes[*at]);
            let Some(at) = least else { break };
            sizes[at] += size;
            let Portion { sections, sliced, .. } = &mut portions[at];
            if has_instances { sliced.push(i) } else { sections.push(i) }
        }
        // Reports are appended in the order of the sections.
        for portion in &mut portions {
            portion.sections.sort_unstable();
            portion.sliced.sort_unstable();
        }
        portions
    }

    /// Whether portions may evaluate the next block: no verdict is uncertain, which depends on the states of all
    /// sections.
    #[inline]
    pub fn may_lend(&self) -> bool {
        !self.uncertainties.is_active()
    }

    /// Moves the states of the sections of a portion into it.
    pub fn lend(&mut self, portion: &mut Portion) {
        portion.exchange(self);
        let Portion { monitor, sections, sliced } = portion;
        (monitor.every, monitor.every_requested) = (self.every, self.every_requested);
        (monitor.position, monitor.time, monitor.event_time) = (self.position, self.time, self.event_time);
        let (whole, divided) = (self.sections.len(), self.instances.len());
        let lent = self.lent.get_or_insert_with(|| {
            Box::new(Lent { sections: vec![false; whole], sliced: vec![false; divided] })
        });
        sections.iter().for_each(|i| lent.sections[*i] = true);
        sliced.iter().for_each(|i| lent.sliced[*i] = true);
    }

    /// Moves the states of the sections of a portion back. The portion must have evaluated the same blocks.
    pub fn take_back(&mut self, portion: &mut Portion) {
        portion.exchange(self);
        self.noted.absorb(&mut portion.monitor.noted);
        if let Some(lent) = &mut self.lent {
            portion.sections.iter().for_each(|i| lent.sections[*i] = false);
            portion.sliced.iter().for_each(|i| lent.sliced[*i] = false);
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
                if !lent.sliced[i] {
                    self.divided(i, sliced, Some(block), time);
                }
            }
            outputs.into_iter().for_each(|output| self.append(output));
            // Of one event, in the order of the sections.
            self.noted.ended.sort_by_key(|ended| ended.key.slice);
            self.end_step(&program, block, false);
        }
        self.lent = Some(lent);
        &self.reports
    }

    /// Adds the reports of a portion.
    fn append(&mut self, output: &PortionOutput) {
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
