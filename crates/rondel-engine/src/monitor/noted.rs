//! Records that a monitor keeps beside its reports: least robustness, ended instances with violations, and values of
//! terms.

use rondel_event::{Rows, Timestamp, Value, Verdict};

use super::Monitor;
use crate::exec::report::{Report, ReportKey, Withheld};
use crate::exec::section::{Margin, Section};
use crate::exec::serial::Serial;
use crate::monitor::term_values::TermValue;
use crate::ops::words::low;

/// Instance that ended while a property was violated in it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Ended {
    pub(crate) property: u32,
    pub(crate) key: ReportKey,
    pub(crate) time: Timestamp,
    pub(crate) order: u32,
}

/// Records of a monitor beside its reports.
#[derive(Clone, Debug, Default)]
pub(crate) struct Noted {
    /// Least robustness of each property, or NaN before the first one.
    least: Vec<f64>,
    /// Whether verdicts may be uncertain: then only reported robustness counts.
    pub(crate) is_uncertain: bool,
    /// Instances that ended in the last call.
    pub(crate) ended: Vec<Ended>,
    /// Values of terms in the last call.
    pub(crate) terms: Vec<TermValue>,
}

impl Noted {
    pub(crate) fn new(properties: usize) -> Noted {
        Noted { least: vec![f64::NAN; properties], ..Noted::default() }
    }

    /// Records an evaluated robustness of a property, if it is known.
    #[inline]
    pub(crate) fn level(&mut self, property: u32, robustness: Option<f64>) {
        if !self.is_uncertain {
            self.certain(property, robustness);
        }
    }

    /// Records the robustness of the properties of a section at the first `rows` rows. Not inlined, to keep the path of
    /// sections without robustness small.
    #[inline(never)]
    pub(crate) fn levels(&mut self, serial: &Serial, section: &Section, rows: usize) {
        for (formula, &property) in section.properties.iter().enumerate() {
            self.level(property, serial.least_level(section, formula, rows));
        }
    }

    /// Records the robustness of one property at time points in dense time, and on the intervals between those that are
    /// not simultaneous.
    #[inline(never)]
    pub(crate) fn dense_levels(
        &mut self,
        serial: &Serial,
        section: &Section,
        formula: usize,
        rows: usize,
        together: Rows,
    ) {
        if !has_levels(section.robust[formula]) {
            return;
        }
        let spans = !together >> 1 & low(rows as u64) >> 1;
        for (row, half) in (0..rows).flat_map(|row| [(row, 0), (row, 1)]) {
            if half == 0 || spans >> row & 1 == 1 {
                let level = serial.robustness(section, formula, row, half, Verdict::Inconclusive);
                self.level(section.properties[formula], level);
            }
        }
    }

    /// Records the robustness of one property on the interval after the last time point.
    #[inline(never)]
    pub(crate) fn span_level(&mut self, serial: &Serial, section: &Section, formula: usize) {
        if has_levels(section.robust[formula]) {
            let level = serial.robustness(section, formula, serial.last_row(), 1, Verdict::Inconclusive);
            self.level(section.properties[formula], level);
        }
    }

    /// Takes over the least robustness that another monitor of the program has recorded.
    pub(crate) fn absorb(&mut self, other: &mut Noted) {
        for (own, other) in self.least.iter_mut().zip(&mut other.least) {
            *own = own.min(*other);
            *other = f64::NAN;
        }
    }

    fn certain(&mut self, property: u32, robustness: Option<f64>) {
        if let (Some(robustness), Some(least)) = (robustness, self.least.get_mut(property as usize)) {
            // `min` ignores NaN, so this also sets the first one.
            *least = least.min(robustness);
        }
    }

    /// Records the robustness of an emitted report.
    pub(crate) fn report(&mut self, report: &Report) {
        if report.withheld == Withheld::No {
            self.certain(report.property, report.robustness);
        }
    }
}

/// Whether the robustness of a property is numeric, and not only infinite according to the verdict.
pub(crate) fn has_levels(margin: Option<Margin>) -> bool {
    matches!(margin, Some(Margin::Levels(_)))
}

/// Instance that ended while a property was violated in it.
#[derive(Clone, Copy, Debug)]
pub struct EndedInstance<'a> {
    /// Position of the property.
    pub property: u32,
    /// Parameters as words, as in [`Monitor::instance`].
    pub key: &'a [u64],
    /// Time at which it ended.
    pub time: Timestamp,
    order: u32,
}

impl EndedInstance<'_> {
    /// Whether the instance ended before a report of the same call, which then belongs to a later instance.
    #[inline]
    pub fn is_before(&self, report: &Report) -> bool {
        self.order < report.order
    }
}

impl Monitor {
    /// Least robustness of a property evaluated since the monitor began or was restored: at events, and in dense time
    /// also at changes between them. `None` without robustness.
    pub fn least_robustness(&self, property: u32) -> Option<f64> {
        self.noted.least.get(property as usize).copied().filter(|least| !least.is_nan())
    }

    /// Instances that ended in the last call while a property was violated in them, in the order of the
    /// [reports](Monitor::reports).
    pub fn ended(&self) -> impl Iterator<Item = EndedInstance<'_>> {
        self.noted.ended.iter().map(|ended| EndedInstance {
            property: ended.property,
            key: self.keys.of(ended.key),
            time: ended.time,
            order: ended.order,
        })
    }

    /// Slice and parameters of the instance of a report of the last call, as the words that parameters are compared by;
    /// `None` without `for each`.
    pub fn instance(&self, report: &Report) -> Option<(u32, &[u64])> {
        report.key.map(|key| (key.slice, self.keys.of(key)))
    }

    /// Parameters that [`Monitor::instance`] returned as words.
    pub fn values_of(&self, slice: u32, key: &[u64]) -> Vec<Value> {
        let mut values = Vec::new();
        if let Some(sliced) = self.program.sliced.get(slice as usize) {
            sliced.plan.keys.write(key, &mut values);
        }
        values
    }
}
