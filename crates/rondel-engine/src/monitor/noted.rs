//! What a monitor notes beside its reports: the least robustness, and instances that ended while they were violated.

use rondel_event::{Rows, Timestamp, Value, Verdict};

use super::Monitor;
use crate::exec::report::{Report, ReportKey, Withheld};
use crate::exec::section::{Margin, Section};
use crate::exec::serial::Serial;
use crate::monitor::term_values::TermValue;
use crate::ops::words::low;

/// An instance that ended while a property was violated in it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Ended {
    pub(crate) property: u32,
    pub(crate) key: ReportKey,
    pub(crate) time: Timestamp,
    pub(crate) order: u32,
}

/// What is noted beside the reports.
#[derive(Clone, Debug, Default)]
pub(crate) struct Noted {
    /// For each property the least robustness that was evaluated, or not a number.
    least: Vec<f64>,
    /// Whether verdicts may be uncertain: then only what is reported counts.
    pub(crate) is_doubtful: bool,
    /// Those of the last call.
    pub(crate) ended: Vec<Ended>,
    /// The values of terms in the last call.
    pub(crate) terms: Vec<TermValue>,
}

impl Noted {
    pub(crate) fn new(properties: usize) -> Noted {
        Noted { least: vec![f64::NAN; properties], ..Noted::default() }
    }

    /// Takes a robustness that was evaluated for a property, if it is known.
    #[inline]
    pub(crate) fn level(&mut self, property: u32, robustness: Option<f64>) {
        if !self.is_doubtful {
            self.certain(property, robustness);
        }
    }

    /// Takes the robustness of the properties of a section at so many rows. The path of others has no room for this.
    #[inline(never)]
    pub(crate) fn levels(&mut self, serial: &Serial, section: &Section, rows: usize) {
        for (formula, &property) in section.properties.iter().enumerate() {
            self.level(property, serial.least_level(section, formula, rows));
        }
    }

    /// Takes that of one property at so many moments in dense time, and on the spans between those that are not together.
    #[inline(never)]
    pub(crate) fn dense_levels(
        &mut self,
        serial: &Serial,
        (section, formula): (&Section, usize),
        rows: usize,
        together: Rows,
    ) {
        if !has_levels(section.robust[formula]) {
            return;
        }
        let spans = !together >> 1 & low(rows as u64) >> 1;
        for (row, side) in (0..rows).flat_map(|row| [(row, 0), (row, 1)]) {
            if side == 0 || spans >> row & 1 == 1 {
                let level = serial.robustness(section, formula, row, side, Verdict::Inconclusive);
                self.level(section.properties[formula], level);
            }
        }
    }

    /// Takes that of one property on the span after the last moment.
    #[inline(never)]
    pub(crate) fn span_level(&mut self, serial: &Serial, (section, formula): (&Section, usize)) {
        if has_levels(section.robust[formula]) {
            let level = serial.robustness(section, formula, serial.last_row(), 1, Verdict::Inconclusive);
            self.level(section.properties[formula], level);
        }
    }

    fn certain(&mut self, property: u32, robustness: Option<f64>) {
        if let (Some(robustness), Some(least)) = (robustness, self.least.get_mut(property as usize)) {
            // Also if there is none yet.
            *least = least.min(robustness);
        }
    }

    /// Orders the instances that ended like reports.
    #[inline]
    pub(crate) fn sort(&mut self) {
        if self.ended.len() > 1 {
            self.ended.sort_by_key(|ended| ended.order);
        }
    }

    /// Takes a report as it is emitted.
    pub(crate) fn report(&mut self, report: &Report) {
        if report.withheld == Withheld::No {
            self.certain(report.property, report.robustness);
        }
    }
}

/// Whether the robustness of a property is a number of its own, and not only infinite as the verdict says.
pub(crate) fn has_levels(margin: Option<Margin>) -> bool {
    matches!(margin, Some(Margin::Levels(_)))
}

/// An instance that ended while a property was violated in it.
#[derive(Clone, Copy, Debug)]
pub struct EndedInstance<'a> {
    /// The property, by its position.
    pub property: u32,
    /// The key, as in [`Monitor::instance`].
    pub key: &'a [u64],
    /// When it ended.
    pub time: Timestamp,
    order: u32,
}

impl EndedInstance<'_> {
    /// Whether it ended before what a report of the same call is about: a report on an instance that began afterwards.
    #[inline]
    pub fn is_before(&self, report: &Report) -> bool {
        self.order < report.order
    }
}

impl Monitor {
    /// The least robustness of a property, by its position, that was evaluated since the monitor began or was restored:
    /// at events, and in dense time where anything changed between them. `None` without robustness.
    pub fn least_robustness(&self, property: u32) -> Option<f64> {
        self.noted.least.get(property as usize).copied().filter(|least| !least.is_nan())
    }

    /// The instances that ended in the last call while a property was violated in them, in the order of the
    /// [reports](Monitor::reports).
    pub fn ended(&self) -> impl Iterator<Item = EndedInstance<'_>> {
        self.noted.ended.iter().map(|ended| EndedInstance {
            property: ended.property,
            key: self.keys.of(ended.key),
            time: ended.time,
            order: ended.order,
        })
    }

    /// The division by key and the key of the instance that a report of the last call is of, as the words that keys are
    /// compared by; `None` where the property is not divided by key.
    pub fn instance(&self, report: &Report) -> Option<(u32, &[u64])> {
        report.key.map(|key| (key.slice, self.keys.of(key)))
    }

    /// The values of a key that [`Monitor::instance`] returned.
    pub fn values_of(&self, slice: u32, key: &[u64]) -> Vec<Value> {
        let mut values = Vec::new();
        if let Some(sliced) = self.program.sliced.get(slice as usize) {
            sliced.plan.keys.write(key, &mut values);
        }
        values
    }
}
