//! Reports of properties that are evaluated with [what was not seen unknown](super::kleene).

use rondel_event::{Block, Timestamp, TopicId, Verdict};

use super::kleene::{Kleene, KleeneVerdict, place_of};
use super::state::End;
use super::{Blind, Doubt, Doubts};
use crate::exec::report::{Report, Withheld};
use crate::exec::serial::Serial;
use crate::monitor::program::Program;
use crate::monitor::step_before;

/// The place of a report among those of a call.
fn place(order: u32, time: Timestamp) -> (u32, Timestamp, u32) {
    (order & !1, time, order & 1)
}

/// A call whose reports are replaced.
pub(super) struct Call<'a> {
    pub(super) block: Option<&'a Block>,
    /// The times of its events.
    pub(super) times: &'a [i64],
    /// The number of its first event, or of the next one.
    pub(super) position: u64,
    /// Without a block, the time that has passed.
    pub(super) now: i64,
    /// Whether verdicts at all events are reported.
    pub(super) asked: bool,
}

/// What the monitor knows of a property when messages were missed.
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

    /// The last verdict of a property of the past in dense time.
    pub(super) fn verdict(&self, property: u32) -> Option<Verdict> {
        let section = self.program.sections.get(place_of(self.program, property)?)?;
        let formula = section.properties.iter().position(|own| *own == property)?;
        Some(self.serial(property)?.last_verdict(formula))
    }

    /// Takes note of a span for a property. It is evaluated with what was missed unknown if everything before the span
    /// is known: the span begins now or later.
    pub(super) fn miss(
        &self,
        doubt: &mut Doubt,
        (property, is_new): (u32, bool),
        topics: &[TopicId],
        (from, end): (i64, End),
    ) {
        let plan = self.program.reaches().get(property as usize);
        let Some(plan) = plan.and_then(|plan| plan.kleene(self.program, property as usize)) else { return };
        let serial = self.serial(property);
        let is_late = from < self.time || !serial.is_some_and(Serial::has_begun);
        let mut kleene = match doubt.kleene.take() {
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
        doubt.kleene = kleene.miss(plan, topics, from, end).then_some(kleene);
    }
}

impl Doubts {
    /// Whether a property is evaluated with what was missed unknown.
    pub(super) fn is_exact(&self, property: u32) -> bool {
        let doubt = self.properties.get(property as usize).and_then(Option::as_ref);
        doubt.is_some_and(|doubt| doubt.kleene.is_some())
    }

    /// When time will bring a verdict by itself, as messages were missed.
    pub(crate) fn next_deadline(&self) -> Option<i64> {
        if !self.is_active() {
            return None;
        }
        let doubts = self.properties.iter().flatten();
        let exact = doubts.filter_map(|doubt| doubt.kleene.as_deref()?.next_deadline());
        let fresh =
            self.properties.iter().flatten().filter_map(|doubt| doubt.fresh.as_ref()?.next_deadline());
        exact.chain(fresh).chain(self.next_turn()).min()
    }

    /// Takes the reports of such properties out.
    pub(super) fn take_exact(&self, reports: &mut Vec<Report>) -> Vec<Report> {
        if !self.properties.iter().flatten().any(|doubt| doubt.kleene.is_some()) {
            return Vec::new();
        }
        let (exact, others) = reports.drain(..).partition(|report| self.is_exact(report.property));
        *reports = others;
        exact
    }

    /// Adds reports in the place of those that were taken out.
    pub(super) fn add_exact(
        &mut self,
        program: &Program,
        (taken, reports): (&[Report], &mut Vec<Report>),
        call: &Call<'_>,
    ) {
        let Doubts { properties, blind, active, finals, .. } = self;
        for ((property, place), (plan, blind)) in
            (0..).zip(properties).zip(program.reaches().iter().zip(blind))
        {
            let Some(doubt) = place.as_mut().filter(|doubt| doubt.kleene.is_some()) else { continue };
            let Some(plan) = plan.kleene(program, property as usize) else { continue };
            let Doubt { kleene, whole, is_passed, .. } = &mut **doubt;
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

    /// Reports the properties that what was missed by now makes inconclusive at once.
    pub(super) fn begin_exact(
        &mut self,
        program: &Program,
        reports: &mut Vec<Report>,
        (now, position): (i64, u64),
    ) {
        let doubts = (0..).zip(&mut self.properties).zip(program.reaches().iter().zip(&mut self.blind));
        for ((property, doubt), (plan, blind)) in doubts {
            let Some(doubt) = doubt else { continue };
            let Some(kleene) = doubt.kleene.as_deref_mut() else { continue };
            let Some(plan) = plan.kleene(program, property as usize) else { continue };
            let Some(entry) = kleene.begin(plan, now).pop() else { continue };
            if kleene.shown == Some(entry.verdict) {
                continue;
            }
            kleene.shown = Some(entry.verdict);
            (doubt.whole.is_shown, doubt.whole.has_begun) = (kleene.is_withheld(), true);
            if doubt.whole.is_shown {
                (blind.times, blind.verdicts) = (blind.times + 1, blind.verdicts + 1);
            }
            let step = position.saturating_sub(1);
            // Of the time itself a verdict was given already.
            let after = Timestamp::from_nanos(now.saturating_add(1));
            let report = Report::at_event(entry.verdict, step, after);
            let withheld = if doubt.whole.is_shown { Withheld::FromNow } else { Withheld::No };
            reports.push(Report { property, row: None, at_event: false, withheld, ..report });
        }
    }
}

impl Kleene {
    /// Whether the verdict that was reported last is inconclusive, and that of the monitor is not.
    fn is_withheld(&self) -> bool {
        self.shown == Some(Verdict::Inconclusive) && self.seen != Some(Verdict::Inconclusive)
    }
}

/// The reports of a monitor and those that take what was missed for unknown.
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
                // Of a certain verdict every change of its robustness is reported.
                if same.is_none() && !report.at_event && kleene.shown == Some(report.verdict) && call.asked {
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
            if !changed && !(call.asked && (at_event || same.is_some())) {
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
            if kleene.shown == Some(report.verdict) && call.asked && !report.at_event {
                reports.push(Report { changed: false, ..**report });
            }
        }
    }
}
