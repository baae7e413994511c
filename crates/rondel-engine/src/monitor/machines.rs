//! What becomes of machines at the end, and what was wrong with them.

use rondel_event::{Timestamp, Verdict};

use super::Monitor;
use crate::exec::report::Report;
use crate::exec::section::Section;

/// A machine that could have taken two transitions at once, and has taken none since.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ambiguity<'a> {
    /// Its name.
    pub machine: &'a str,
    /// The two transitions, as they are written.
    pub transitions: [&'a str; 2],
}

impl Monitor {
    /// The machines that could have taken two transitions at once. Of machines for each key one is named.
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

    /// Says which machines have not come to a state in which the trace may end. What is violated stays so.
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

    /// The time of the last event, or of what came after it.
    fn reported_time(&self) -> Timestamp {
        Timestamp::from_nanos(self.time)
    }
}
