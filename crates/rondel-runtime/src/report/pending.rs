//! Reports that have not been taken yet.

use rondel_engine::{EndedInstance, Monitor, Report as EngineReport};
use rondel_event::{Value, Verdict};
use rondel_spec::{Spec, VariableId};

use super::muting::{Muting, SavedMuting};
use super::{PropertyInfo, Report, ReportSource};
use crate::explanation::Explanation;

/// Reports that have not been taken yet. The vectors are reused, so that a report of a property without parameters
/// allocates nothing.
#[derive(Debug, Default)]
pub(crate) struct Reports {
    pub(super) pending: Vec<Pending>,
    pub(super) parameters: Vec<Value>,
    pub(super) explanations: Vec<Explanation>,
    pub(super) values: Vec<Vec<(VariableId, Value)>>,
    /// For each alignment group the latest time of its reports, while they are ordered.
    latest: Vec<i64>,
    /// Whether the reports were taken, so that the next one clears them.
    taken: bool,
    /// The laps before the current one.
    laps: u32,
    /// Muting, if a property has `@because_of`.
    muting: Option<Box<Muting>>,
}

/// Unchanged copy of a report of the engine: the rest that a reader needs is looked up when it is taken.
#[derive(Clone, Copy, Debug)]
pub(super) struct Pending {
    pub(super) report: EngineReport,
    /// The number of the message among all, where the monitor saw only some of them.
    pub(super) number: Option<u64>,
    /// The property, in the specification.
    pub(super) property: u32,
    /// Where the parameters begin and end.
    pub(super) parameters: (u32, u32),
    /// The topic that a stamp did not reach, or [`NONE`].
    pub(super) missing: u32,
    /// The position of the explanation, or [`NONE`].
    pub(super) explanation: u32,
    /// The position of the values of quantified variables, or [`NONE`].
    pub(super) values: u32,
    /// The time by which it is ordered among those of other alignment groups.
    pub(super) order: i64,
    /// The lap, from 1.
    pub(super) lap: u32,
    /// The position among the changes of muting, or [`NONE`].
    pub(super) change: u32,
    /// Whether it is muted.
    pub(super) is_muted: bool,
}

pub(super) const NONE: u32 = u32::MAX;

impl Reports {
    /// Clears the reports if they were taken.
    #[inline]
    pub(crate) fn make_room(&mut self) {
        if std::mem::take(&mut self.taken) {
            self.pending.clear();
            self.parameters.clear();
            self.explanations.clear();
            self.values.clear();
            if let Some(muting) = &mut self.muting {
                muting.forget_due();
            }
        }
    }

    /// Mutes violations of the properties with `@because_of`. `emits_every`: also verdicts without a change are emitted.
    pub(crate) fn mute(&mut self, spec: &Spec, emits_every: bool) {
        self.muting = Muting::of(spec, emits_every).map(Box::new);
    }

    /// The state of muting, for a snapshot.
    pub(crate) fn saved_muting(&mut self) -> Option<SavedMuting> {
        self.examine();
        self.muting.as_ref().map(|muting| muting.saved())
    }

    /// Restores the state of muting.
    pub(crate) fn restore_muting(&mut self, saved: Option<&SavedMuting>) {
        if let (Some(muting), Some(saved)) = (&mut self.muting, saved) {
            muting.restore(saved, self.laps + 1);
        }
    }

    /// Notes a report of a monitor's last call for muting. Returns its position among the changes, or [`NONE`] if its
    /// property neither is muted nor mutes.
    #[inline(always)]
    pub(crate) fn note(&mut self, property: u32, report: &EngineReport, monitor: &Monitor) -> u32 {
        match &mut self.muting {
            None => NONE,
            Some(muting) => muting.note(property, report, monitor, self.laps + 1),
        }
    }

    /// Notes that an instance of a property ended while it was violated.
    pub(crate) fn note_end(&mut self, property: u32, ended: &EndedInstance<'_>, monitor: &Monitor) {
        if let Some(muting) = &mut self.muting {
            muting.note_end(property, ended, monitor, self.laps + 1);
        }
    }

    /// Decides which of the reports are muted.
    fn examine(&mut self) {
        if let Some(mut muting) = self.muting.take() {
            muting.examine(self);
            self.muting = Some(muting);
        }
    }

    /// Begins a lap, to which further reports belong.
    pub(crate) fn begin_lap(&mut self, lap: u32) {
        self.laps = lap.saturating_sub(1);
    }

    /// Orders the reports of several alignment groups by time; those of one group keep their order. `groups` names
    /// the group of each property.
    pub(crate) fn order(&mut self, groups: &[u32]) {
        if let Some(muting) = &mut self.muting {
            muting.order(groups);
        }
        if self.taken || self.pending.len() < 2 {
            return;
        }
        self.latest.clear();
        let mut lap = 0;
        for pending in &mut self.pending {
            if std::mem::replace(&mut lap, pending.lap) != pending.lap {
                self.latest.clear();
            }
            let group = groups.get(pending.property as usize).map_or(0, |group| *group as usize);
            if self.latest.len() <= group {
                self.latest.resize(group + 1, i64::MIN);
            }
            let latest = &mut self.latest[group];
            *latest = pending.report.time.as_nanos().max(*latest);
            pending.order = *latest;
        }
        if !self.pending.is_sorted_by_key(|pending| (pending.lap, pending.order)) {
            self.pending.sort_by_key(|pending| (pending.lap, pending.order));
        }
    }

    /// Adds a report of a monitor's last call, on the property at this position.
    #[inline(always)]
    pub(crate) fn add(
        &mut self,
        property: u32,
        report: &EngineReport,
        from: ReportSource<'_>,
        explanation: Option<Explanation>,
        change: u32,
    ) {
        let ReportSource { monitor, block } = from;
        let (mut missing, mut values) = (NONE, NONE);
        if report.verdict == Verdict::Violated {
            let mut found = Vec::new();
            monitor.write_witness(report, block, &mut found);
            if !found.is_empty() {
                values = self.values.len() as u32;
                self.values.push(found);
            }
        }
        let start = self.parameters.len() as u32;
        if report.key.is_some() {
            // A chain has one parameter: the stamp.
            if report.verdict == Verdict::Violated {
                missing = monitor.missing(report).map_or(NONE, |topic| topic.0);
            }
            monitor.write_key(report, &mut self.parameters);
        }
        let explanation = explanation.map_or(NONE, |explanation| {
            self.explanations.push(explanation);
            self.explanations.len() as u32 - 1
        });
        let parameters = (start, self.parameters.len() as u32);
        let order = 0;
        self.pending.push(Pending {
            report: *report,
            number: block.zip(report.row).and_then(|(block, row)| block.number(row.into())),
            property,
            parameters,
            missing,
            explanation,
            values,
            order,
            lap: self.laps + 1,
            change,
            is_muted: false,
        });
    }

    /// Adds the verdict on an assert, which has neither parameters nor values.
    pub(crate) fn add_judged(&mut self, property: u32, report: &EngineReport) {
        let (report, parameters, order) = (*report, (0, 0), 0);
        let [missing, explanation, values] = [NONE; 3];
        let lap = self.laps + 1;
        let number = None;
        let (change, is_muted) = (NONE, false);
        self.pending.push(Pending {
            report,
            number,
            property,
            parameters,
            missing,
            explanation,
            values,
            order,
            lap,
            change,
            is_muted,
        });
    }

    /// Whether there is none.
    pub(crate) fn is_empty(&self) -> bool {
        (self.taken || self.pending.is_empty()) && self.muting.as_ref().is_none_or(|muting| muting.is_idle())
    }

    /// Takes the reports in order; adding the next one clears them.
    pub(crate) fn take<'s>(
        &'s mut self,
        properties: &'s [PropertyInfo],
    ) -> impl Iterator<Item = Report<'s>> + use<'s> {
        self.make_room();
        self.examine();
        self.taken = true;
        let all = &*self;
        all.pending.iter().map(move |pending| Report {
            property: &properties[pending.property as usize],
            pending,
            all,
        })
    }

    /// Takes the reports of violations that [were muted](Muting), and are due since the reports were taken last.
    pub(crate) fn take_unmuted<'s>(
        &'s mut self,
        properties: &'s [PropertyInfo],
    ) -> impl Iterator<Item = Report<'s>> + use<'s> {
        let due = self.muting.as_deref_mut().map(|muting| muting.due().take(properties));
        due.into_iter().flatten()
    }

    /// Adds a report that was kept.
    pub(super) fn add_kept(&mut self, kept: Kept) {
        let Kept { pending, parameters, values, explanation } = kept;
        let start = self.parameters.len() as u32;
        self.parameters.extend(parameters);
        let parameters = (start, self.parameters.len() as u32);
        let values = values.map_or(NONE, |values| {
            self.values.push(values);
            self.values.len() as u32 - 1
        });
        let explanation = explanation.map_or(NONE, |explanation| {
            self.explanations.push(explanation);
            self.explanations.len() as u32 - 1
        });
        self.pending.push(Pending {
            parameters,
            values,
            explanation,
            change: NONE,
            is_muted: false,
            ..pending
        });
    }

    /// Returns a copy of a report that lasts, by its position.
    pub(super) fn kept(&self, position: usize) -> Option<Kept> {
        Some(self.copy(self.pending.get(position)?))
    }

    /// Returns a copy of one of these reports that lasts.
    pub(super) fn copy(&self, pending: &Pending) -> Kept {
        let (start, end) = pending.parameters;
        Kept {
            pending: *pending,
            parameters: self.parameters.get(start as usize..end as usize).unwrap_or(&[]).to_vec(),
            values: self.values.get(pending.values as usize).cloned(),
            explanation: self.explanations.get(pending.explanation as usize).cloned(),
        }
    }

    /// Only this report, as it is.
    pub(super) fn of_one(kept: Kept) -> Reports {
        let Kept { pending, parameters, values, explanation } = kept;
        let pending = Pending {
            parameters: (0, parameters.len() as u32),
            values: if values.is_some() { 0 } else { NONE },
            explanation: if explanation.is_some() { 0 } else { NONE },
            ..pending
        };
        Reports {
            pending: vec![pending],
            parameters,
            explanations: explanation.into_iter().collect(),
            values: values.into_iter().collect(),
            ..Reports::default()
        }
    }
}

/// A report that lasts longer than the others of its call.
#[derive(Clone, Debug)]
pub(super) struct Kept {
    pub(super) pending: Pending,
    pub(super) parameters: Vec<Value>,
    pub(super) values: Option<Vec<(VariableId, Value)>>,
    pub(super) explanation: Option<Explanation>,
}
