//! Reports of properties that are evaluated with [missed messages unknown](super::kleene).

use rondel_event::{Block, Timestamp, TopicId, Verdict};

use super::kleene::{Kleene, KleeneVerdict, place_of};
use super::state::End;
use super::{Blind, Uncertainties, Uncertainty};
use crate::exec::report::{Report, Withheld};
use crate::exec::serial::Serial;
use crate::monitor::program::Program;
use crate::monitor::step_before;

/// Sort key of a report within a call.
fn place(order: u32, time: Timestamp) -> (u32, Timestamp, u32) {
    (order & !1, time, order & 1)
}

/// A call whose reports are replaced.
pub(super) struct Call<'a> {
    pub(super) block: Option<&'a Block>,
    /// Times of its events.
    pub(super) times: &'a [i64],
    /// Step of its first event, or of the next event.
    pub(super) position: u64,
    /// Current time, for calls without a block.
    pub(super) now: i64,
    /// Whether the caller requested verdicts at all events.
    pub(super) every_requested: bool,
}

/// State of the monitor when messages are missed.
pub(super) struct BeforeSpan<'a> {
    pub(super) program: &'a Program,
    pub(super) sections: &'a [Serial],
    pub(super) time: i64,
    pub(super) position: u64,
}

impl BeforeSpan<'_> {
    fn serial(&self, property: u32) -> Option<&Serial> {
        self.sections.get(place_of(self.program, property)?)
    }

    /// Last verdict of a past-only property in dense time.
    pub(super) fn verdict(&self, property: u32) -> Option<Verdict> {
        let section = self.program.sections.get(place_of(self.program, property)?)?;
        let formula = section.properties.iter().position(|own| *own == property)?;
        Some(self.serial(property)?.last_verdict(formula))
    }

    /// Records a span for a property. The property is evaluated with missed messages unknown if everything before the
    /// span is known: the span begins now or later.
    pub(super) fn miss(
        &self,
        uncertainty: &mut Uncertainty,
        property: u32,
        is_new: bool,
        topics: &[TopicId],
        from: i64,
        end: End,
    ) {
        let plan = self.program.reaches().get(property as usize);
        let Some(plan) = plan.and_then(|plan| plan.kleene(self.program, property as usize)) else { return };
        let serial = self.serial(property);
        let is_late = from < self.time || !serial.is_some_and(Serial::has_begun);
        let mut kleene = match uncertainty.kleene.take() {
            _ if is_late => return,
            Some(kleene) => kleene,
            None if !is_new => return,
            None => {
                let Some(serial) = serial else { return };
                let verdict = self.verdict(property);
                let mut kleene = Kleene::new(plan, serial, self.time, self.position);
                (kleene.seen, kleene.shown) = (verdict, verdict);
                Box::new(kleene)
            }
        };
        uncertainty.kleene = kleene.miss(plan, topics, from, end).then_some(kleene);
    }
}

impl Uncertainties {
    /// Whether a property is evaluated with missed messages unknown.
    pub(super) fn is_exact(&self, property: u32) -> bool {
        let uncertainty = self.properties.get(property as usize).and_then(Option::as_ref);
        uncertainty.is_some_and(|uncertainty| uncertainty.kleene.is_some())
    }

    /// Earliest time at which a verdict may change by time alone because messages were missed.
    pub(crate) fn next_deadline(&self) -> Option<i64> {
        if !self.is_active() {
            return None;
        }
        let uncertainties = self.properties.iter().flatten();
        let exact = uncertainties.filter_map(|uncertainty| uncertainty.kleene.as_deref()?.next_deadline());
        let fresh = self
            .properties
            .iter()
            .flatten()
            .filter_map(|uncertainty| uncertainty.fresh.as_ref()?.next_deadline());
        exact.chain(fresh).chain(self.next_timed_change()).min()
    }

    /// Removes and returns the reports of properties evaluated with missed messages unknown.
    pub(super) fn take_exact(&self, reports: &mut Vec<Report>) -> Vec<Report> {
        if !self.properties.iter().flatten().any(|uncertainty| uncertainty.kleene.is_some()) {
            return Vec::new();
        }
        let (exact, others) = reports.drain(..).partition(|report| self.is_exact(report.property));
        *reports = others;
        exact
    }

    /// Adds reports that replace the `taken` ones.
    pub(super) fn add_exact(
        &mut self,
        program: &Program,
        taken: &[Report],
        reports: &mut Vec<Report>,
        call: &Call<'_>,
    ) {
        let Uncertainties { properties, blind, active, finals, .. } = self;
        for ((property, place), (plan, blind)) in
            (0..).zip(properties).zip(program.reaches().iter().zip(blind))
        {
            let Some(uncertainty) = place.as_mut().filter(|uncertainty| uncertainty.kleene.is_some()) else {
                continue;
            };
            let Some(plan) = plan.kleene(program, property as usize) else { continue };
            let Uncertainty { kleene, whole, is_passed, .. } = &mut **uncertainty;
            let Some(kleene) = kleene.as_deref_mut() else { continue };
            let entries = match call.block {
                Some(block) => kleene.step(plan, block, call.times),
                None => kleene.advance(plan, call.now),
            };
            let own: Vec<&Report> = taken.iter().filter(|report| report.property == property).collect();
            let first = reports.len();
            let merged = Merged { property, kleene, blind, call };
            merged.add(&own, &entries, reports);
            (whole.is_shown, whole.seen) = (kleene.is_withheld(), kleene.seen);
            let mut is_final = false;
            for report in reports[first..].iter().filter(|report| report.verdict != Verdict::Inconclusive) {
                *is_passed = true;
                is_final |= finals.note(&program.finality, report);
            }
            if is_final || kleene.is_over && !whole.is_shown {
                *place = None;
                *active -= 1;
            }
        }
    }

    /// Reports the properties that become inconclusive at once.
    pub(super) fn begin_exact(
        &mut self,
        program: &Program,
        reports: &mut Vec<Report>,
        now: i64,
        position: u64,
    ) {
        let uncertainties =
            (0..).zip(&mut self.properties).zip(program.reaches().iter().zip(&mut self.blind));
        for ((property, uncertainty), (plan, blind)) in uncertainties {
            let Some(uncertainty) = uncertainty else { continue };
            let Some(kleene) = uncertainty.kleene.as_deref_mut() else { continue };
            let Some(plan) = plan.kleene(program, property as usize) else { continue };
            let Some(entry) = kleene.begin(plan, now).pop() else { continue };
            if kleene.shown == Some(entry.verdict) {
                continue;
            }
            kleene.shown = Some(entry.verdict);
            (uncertainty.whole.is_shown, uncertainty.whole.has_begun) = (kleene.is_withheld(), true);
            if uncertainty.whole.is_shown {
                (blind.times, blind.verdicts) = (blind.times + 1, blind.verdicts + 1);
            }
            let step = position.saturating_sub(1);
            // The verdict at the time itself was reported already.
            let after = Timestamp::from_nanos(now.saturating_add(1));
            let report = Report::at_event(entry.verdict, step, after);
            let withheld = if uncertainty.whole.is_shown { Withheld::FromNow } else { Withheld::No };
            reports.push(Report { property, row: None, at_event: false, withheld, ..report });
        }
    }
}

impl Kleene {
    /// Whether the last reported verdict is inconclusive although the monitor's own verdict is not.
    fn is_withheld(&self) -> bool {
        self.shown == Some(Verdict::Inconclusive) && self.seen != Some(Verdict::Inconclusive)
    }
}

/// Combines the reports of a monitor with those of its [`Kleene`] monitor.
struct Merged<'a> {
    property: u32,
    kleene: &'a mut Kleene,
    blind: &'a mut Blind,
    call: &'a Call<'a>,
}

impl Merged<'_> {
    fn add(self, own: &[&Report], entries: &[KleeneVerdict], reports: &mut Vec<Report>) {
        let Merged { property, kleene, blind, call } = self;
        let mut own = own.iter().peekable();
        for entry in entries {
            let here = place(entry.order, entry.time);
            let mut same = None;
            while let Some(report) = own.next_if(|report| place(report.order, report.time) <= here) {
                kleene.seen = Some(report.verdict);
                same = Some(*report).filter(|report| place(report.order, report.time) == here);
                // Every change of robustness is reported while the verdict is certain.
                if same.is_none()
                    && !report.at_event
                    && kleene.shown == Some(report.verdict)
                    && call.every_requested
                {
                    reports.push(Report { changed: false, ..**report });
                }
            }
            let changed = kleene.shown != Some(entry.verdict);
            let at_event = entry.row.is_some();
            if entry.verdict == Verdict::Inconclusive && kleene.seen != Some(Verdict::Inconclusive) {
                blind.verdicts += u64::from(changed || at_event);
                blind.times += u64::from(changed);
            }
            kleene.shown = Some(entry.verdict);
            if !changed && !(call.every_requested && (at_event || same.is_some())) {
                continue;
            }
            let withheld = if kleene.is_withheld() { Withheld::Yes } else { Withheld::No };
            let step = match entry.row {
                Some(row) => call.position + u64::from(row),
                None => step_before(call.position, entry.order),
            };
            let made = Report {
                property,
                row: entry.row,
                at_event,
                after: entry.after,
                order: entry.order,
                ..Report::at_event(entry.verdict, step, entry.time)
            };
            let robustness = same.filter(|_| entry.verdict != Verdict::Inconclusive);
            let robustness = robustness.and_then(|report| report.robustness);
            let time = same.map_or(entry.time, |report| report.time);
            reports.push(Report { changed, withheld, robustness, time, ..made });
        }
        for report in own {
            kleene.seen = Some(report.verdict);
            if kleene.shown == Some(report.verdict) && call.every_requested && !report.at_event {
                reports.push(Report { changed: false, ..**report });
            }
        }
    }
}
