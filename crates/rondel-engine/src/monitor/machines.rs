//! Machines at the end of a trace, and ambiguous transitions.

use rondel_event::{Timestamp, Verdict};

use super::Monitor;
use crate::exec::report::Report;
use crate::exec::section::Section;

/// Machine with two transitions enabled at once; it has taken none since.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ambiguity<'a> {
    /// Name of the machine.
    pub machine: &'a str,
    /// Source text of the two transitions.
    pub transitions: [&'a str; 2],
}

impl Monitor {
    /// Machines with two transitions enabled at once. At most one instance of each machine is listed.
    pub fn ambiguities(&self) -> Vec<Ambiguity<'_>> {
        let undivided = self
            .program
            .sections
            .iter()
            .zip(&self.sections)
            .flat_map(|(section, serial)| section.machines.iter().zip(&serial.state.machines));
        let mut found: Vec<Ambiguity<'_>> = Vec::new();
        let divided = self.program.sliced.iter().zip(&self.instances);
        let divided = divided.flat_map(|(sliced, instances)| instances.machines(sliced));
        for (plan, state) in undivided.chain(divided) {
            let is_known = found.iter().any(|known| known.machine == plan.name);
            if let Some(transitions) = plan.ambiguous(state).filter(|_| !is_known) {
                found.push(Ambiguity { machine: &plan.name, transitions });
            }
        }
        found
    }

    /// Reports the machines that are not in a final state. A violated property stays violated.
    pub(super) fn machines_end(&mut self, i: usize, section: &Section) {
        if self.position == 0 {
            // Nothing has begun.
            return;
        }
        let serial = &self.sections[i];
        for (plan, state) in section.machines.iter().zip(&serial.state.machines) {
            let Some(property) = plan.property.filter(|_| plan.is_open(state)) else { continue };
            let past = section.properties.iter().position(|other| *other == property);
            let is_here = past.is_some() || section.futures.iter().any(|future| future.property == property);
            let is_violated = |formula| serial.last_verdict(formula) == Verdict::Violated;
            if !is_here || past.is_some_and(is_violated) {
                continue;
            }
            let time = self.reported_time();
            let step = self.position.saturating_sub(1);
            let mut report = Report::at_event(Verdict::Inconclusive, step, time);
            (report.property, report.row, report.at_event) = (property, None, false);
            report.changed = !past.is_some_and(|formula| serial.was_inconclusive(formula));
            self.reports.push(report);
        }
    }

    /// Time of the last event, or the later time that was advanced to.
    fn reported_time(&self) -> Timestamp {
        Timestamp::from_nanos(self.time)
    }
}
