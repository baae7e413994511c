//! Verdicts that become uncertain or certain by time alone, between the reports of a monitor in dense time.

use rondel_event::{Timestamp, Verdict};

use super::state::{ReachPlan, State};
use super::{Blind, Instance, Uncertainties, Uncertainty};
use crate::exec::report::{Report, ReportKey, Withheld};
use crate::monitor::program::Program;
use crate::monitor::{before, step_before};

/// Position of reports added in a call: before the event in a row.
#[derive(Clone, Copy)]
pub(super) struct Before {
    pub(super) row: usize,
    /// Step of the first event of the call.
    pub(super) position: u64,
}

/// Verdict that changed by time alone, with the parameters of its instance.
#[derive(Clone, Debug)]
pub(super) struct TimedReport {
    pub(super) report: Report,
    pub(super) key: Option<Vec<u64>>,
}

/// Next change of a verdict by time alone.
#[derive(Clone, Copy)]
pub(super) struct TimedChange {
    decided: i64,
    about: i64,
    verdict: Verdict,
    is_withheld: bool,
}

impl Uncertainties {
    /// Earliest time at which a verdict may change by time alone: the least time for which [`Uncertainties::change_by_time`] does
    /// something.
    pub(super) fn next_timed_change(&self) -> Option<i64> {
        self.due.map(|due| due.saturating_add(1))
    }

    /// Computes the time of the next change by time alone.
    pub(super) fn find_timed_change(&mut self, program: &Program) {
        self.due = None;
        for (plan, uncertainty) in program.reaches().iter().zip(&self.properties) {
            let Some(uncertainty) = uncertainty.as_ref().filter(|uncertainty| uncertainty.kleene.is_none())
            else {
                continue;
            };
            let instances = uncertainty.keys.values().chain([&uncertainty.whole]);
            instances.for_each(|instance| sooner(&mut self.due, instance.next(&uncertainty.state, plan)));
        }
    }

    /// Adds the verdicts that become certain or uncertain before a time.
    pub(super) fn change_by_time(&mut self, program: &Program, until: i64, place: Before) {
        if self.due.is_none_or(|due| due >= until) {
            return;
        }
        self.due = None;
        for property in 0..self.properties.len() as u32 {
            self.change_property_by_time(program, property, until, place);
        }
    }

    /// Like [`Uncertainties::change_by_time`], for one property.
    pub(super) fn change_property_by_time(
        &mut self,
        program: &Program,
        property: u32,
        until: i64,
        place: Before,
    ) {
        let Uncertainties { properties, blind, timed_reports, due, last, .. } = self;
        let (Some(plan), Some(Some(uncertainty))) =
            (program.reaches().get(property as usize), properties.get_mut(property as usize))
        else {
            return;
        };
        if uncertainty.kleene.is_some() {
            return;
        }
        let Uncertainty { state, whole, keys, is_passed, .. } = &mut **uncertainty;
        let undivided = plan.slice.is_none().then_some((whole, None));
        let divided = keys.iter_mut().map(|(key, instance)| (instance, Some(key)));
        for (instance, key) in undivided.into_iter().chain(divided) {
            while let Some(change) = instance.next(state, plan) {
                if change.decided >= until {
                    sooner(due, Some(change));
                    break;
                }
                (instance.is_shown, instance.has_begun) = (change.is_withheld, true);
                *is_passed |= !change.is_withheld;
                if change.verdict == Verdict::Inconclusive && !change.is_withheld {
                    continue;
                }
                if let Some(blind) = blind.get_mut(property as usize).filter(|_| change.is_withheld) {
                    (blind.times, blind.verdicts) = (blind.times + 1, blind.verdicts + 1);
                }
                let order = before(place.row);
                let time = Timestamp::from_nanos(change.decided.max(*last));
                let about = (change.about != change.decided).then(|| Timestamp::from_nanos(change.about));
                let step = step_before(place.position, order);
                let withheld = if change.is_withheld { Withheld::Yes } else { Withheld::No };
                let report = Report {
                    property,
                    row: None,
                    at_event: false,
                    about,
                    withheld,
                    order,
                    ..Report::at_event(change.verdict, step, time)
                };
                timed_reports.push(TimedReport { report, key: key.cloned() });
            }
        }
    }

    /// Adds the changes of a property's fresh monitor: see [`FreshChanges::add`].
    pub(super) fn change_fresh_by_time(
        &mut self,
        program: &Program,
        property: u32,
        until: Option<(Timestamp, bool)>,
        place: Before,
    ) {
        let Uncertainties { properties, blind, timed_reports, due, .. } = self;
        let at = property as usize;
        if let (Some(plan), Some(Some(uncertainty))) = (program.reaches().get(at), properties.get_mut(at)) {
            FreshChanges { property, plan, uncertainty, timed_reports, blind, due }.add(until, place);
        }
    }

    /// Takes the reports of changes by time alone, in order.
    pub(super) fn take_timed_reports(
        &mut self,
        mut key: impl FnMut(u32, &[u64]) -> Option<ReportKey>,
    ) -> Vec<Report> {
        let timed_reports = std::mem::take(&mut self.timed_reports);
        let report = |timed_reports: TimedReport| {
            let key =
                timed_reports.key.as_deref().and_then(|words| key(timed_reports.report.property, words));
            Report { key, ..timed_reports.report }
        };
        timed_reports.into_iter().map(report).collect()
    }
}

impl Instance {
    /// Next change of the verdict by time alone, given the state of the property.
    pub(super) fn next(&self, whole: &State, plan: &ReachPlan) -> Option<TimedChange> {
        let state = self.state.as_ref().unwrap_or(whole);
        let verdict = self.seen?;
        if self.is_shown {
            let (about, decided) = state.release(plan)?;
            return Some(TimedChange { decided, about, verdict, is_withheld: false });
        }
        let is_whole = plan.slice.is_none();
        let begins =
            state.begins(plan).filter(|_| is_whole && !self.has_begun && verdict != Verdict::Inconclusive)?;
        Some(TimedChange {
            decided: begins,
            about: begins,
            verdict: Verdict::Inconclusive,
            is_withheld: true,
        })
    }
}

/// A property whose verdict is certain while a [`Fresh`](super::fresh::Fresh) monitor agrees with it.
pub(super) struct FreshChanges<'a> {
    pub(super) property: u32,
    pub(super) plan: &'a ReachPlan,
    pub(super) uncertainty: &'a mut Uncertainty,
    pub(super) timed_reports: &'a mut Vec<TimedReport>,
    pub(super) blind: &'a mut Vec<Blind>,
    pub(super) due: &'a mut Option<i64>,
}

impl FreshChanges<'_> {
    /// Adds the verdicts that become uncertain because the fresh monitor changes its verdict by time alone, before the
    /// next event and before `until`. The verdict of the property itself stays meanwhile.
    pub(super) fn add(self, until: Option<(Timestamp, bool)>, place: Before) {
        let FreshChanges { property, plan, uncertainty, timed_reports, blind, due } = self;
        let Uncertainty { state, fresh, whole, .. } = uncertainty;
        let Some(fresh) = fresh else { return };
        while let Some((time, after, verdict)) = fresh.by_time(until) {
            let Some(seen) = whole.seen.filter(|seen| *seen != Verdict::Inconclusive) else { continue };
            let is_uncertain = state.is_uncertain(plan, time.as_nanos(), 0);
            if verdict == seen || whole.is_shown || !is_uncertain {
                continue;
            }
            (whole.is_shown, whole.has_begun) = (true, true);
            sooner(due, whole.next(state, plan));
            if let Some(blind) = blind.get_mut(property as usize) {
                (blind.times, blind.verdicts) = (blind.times + 1, blind.verdicts + 1);
            }
            let (verdict, withheld) = (Verdict::Inconclusive, Withheld::Yes);
            let order = before(place.row);
            let made = Report::at_event(verdict, step_before(place.position, order), time);
            let report = Report { property, row: None, at_event: false, after, withheld, order, ..made };
            timed_reports.push(TimedReport { report, key: None });
        }
    }
}

/// Lowers the due time to that of a change, if it is earlier.
pub(super) fn sooner(due: &mut Option<i64>, change: Option<TimedChange>) {
    if let Some(TimedChange { decided, .. }) = change {
        *due = Some(due.map_or(decided, |due| due.min(decided)));
    }
}
