//! Verdicts that become uncertain or certain by time alone, between the reports of a monitor in dense time.

use rondel_event::{Timestamp, Verdict};

use super::state::{ReachPlan, State};
use super::{Blind, Doubt, Doubts, Instance};
use crate::exec::report::{Report, ReportKey, Withheld};
use crate::monitor::program::Program;
use crate::monitor::{before, step_before};

/// Where reports of a call are added: before the event in a row.
#[derive(Clone, Copy)]
pub(super) struct Before {
    pub(super) row: usize,
    /// The number of the first event of the call.
    pub(super) position: u64,
}

/// A verdict that time alone changes: of an instance, by its key.
#[derive(Clone, Debug)]
pub(super) struct Turned {
    pub(super) report: Report,
    pub(super) key: Option<Vec<u64>>,
}

/// When a verdict turns next by time alone, and what it is then.
#[derive(Clone, Copy)]
pub(super) struct Turn {
    decided: i64,
    about: i64,
    verdict: Verdict,
    is_withheld: bool,
}

impl Doubts {
    /// When time will bring a verdict by itself: the least time that [`Doubts::turn`] does something for.
    pub(super) fn next_turn(&self) -> Option<i64> {
        self.due.map(|due| due.saturating_add(1))
    }

    /// Finds when a verdict turns next.
    pub(super) fn find_turn(&mut self, program: &Program) {
        self.due = None;
        for (plan, doubt) in program.reaches().iter().zip(&self.properties) {
            let Some(doubt) = doubt.as_ref().filter(|doubt| doubt.kleene.is_none()) else { continue };
            let instances = doubt.keys.values().chain([&doubt.whole]);
            instances.for_each(|instance| sooner(&mut self.due, instance.next(&doubt.state, plan)));
        }
    }

    /// Adds the verdicts that become certain or uncertain before a time.
    pub(super) fn turn(&mut self, program: &Program, until: i64, place: Before) {
        if self.due.is_none_or(|due| due >= until) {
            return;
        }
        self.due = None;
        for property in 0..self.properties.len() as u32 {
            self.turn_property(program, property, until, place);
        }
    }

    /// The same of one property.
    pub(super) fn turn_property(&mut self, program: &Program, property: u32, until: i64, place: Before) {
        let Doubts { properties, blind, turned, due, last, .. } = self;
        let (Some(plan), Some(Some(doubt))) =
            (program.reaches().get(property as usize), properties.get_mut(property as usize))
        else {
            return;
        };
        if doubt.kleene.is_some() {
            return;
        }
        let Doubt { state, whole, keys, is_passed, .. } = &mut **doubt;
        let undivided = plan.slice.is_none().then_some((whole, None));
        let divided = keys.iter_mut().map(|(key, instance)| (instance, Some(key)));
        for (instance, key) in undivided.into_iter().chain(divided) {
            while let Some(turn) = instance.next(state, plan) {
                if turn.decided >= until {
                    sooner(due, Some(turn));
                    break;
                }
                (instance.is_shown, instance.has_begun) = (turn.is_withheld, true);
                *is_passed |= !turn.is_withheld;
                if turn.verdict == Verdict::Inconclusive && !turn.is_withheld {
                    continue;
                }
                if let Some(blind) = blind.get_mut(property as usize).filter(|_| turn.is_withheld) {
                    (blind.times, blind.verdicts) = (blind.times + 1, blind.verdicts + 1);
                }
                let order = before(place.row);
                let time = Timestamp::from_nanos(turn.decided.max(*last));
                let about = (turn.about != turn.decided).then(|| Timestamp::from_nanos(turn.about));
                let step = step_before(place.position, order);
                let withheld = if turn.is_withheld { Withheld::Yes } else { Withheld::No };
                let report = Report {
                    property,
                    row: None,
                    at_event: false,
                    about,
                    withheld,
                    order,
                    ..Report::at_event(turn.verdict, step, time)
                };
                turned.push(Turned { report, key: key.cloned() });
            }
        }
    }

    /// The same as a fresh monitor changes its verdict: see [`FreshTurns::add`].
    pub(super) fn turn_fresh(
        &mut self,
        program: &Program,
        property: u32,
        until: Option<(Timestamp, bool)>,
        place: Before,
    ) {
        let Doubts { properties, blind, turned, due, .. } = self;
        let at = property as usize;
        if let (Some(plan), Some(Some(doubt))) = (program.reaches().get(at), properties.get_mut(at)) {
            FreshTurns { property, plan, doubt, turned, blind, due }.add(until, place);
        }
    }

    /// Takes the reports that time alone brought, in their order.
    pub(super) fn take_turned(
        &mut self,
        mut key: impl FnMut(u32, &[u64]) -> Option<ReportKey>,
    ) -> Vec<Report> {
        let turned = std::mem::take(&mut self.turned);
        let report = |turned: Turned| {
            let key = turned.key.as_deref().and_then(|words| key(turned.report.property, words));
            Report { key, ..turned.report }
        };
        turned.into_iter().map(report).collect()
    }
}

impl Instance {
    /// How its verdict turns next by time alone, given the state of the property.
    pub(super) fn next(&self, whole: &State, plan: &ReachPlan) -> Option<Turn> {
        let state = self.state.as_ref().unwrap_or(whole);
        let verdict = self.seen?;
        if self.is_shown {
            let (about, decided) = state.release(plan)?;
            return Some(Turn { decided, about, verdict, is_withheld: false });
        }
        let is_whole = plan.slice.is_none();
        let begins =
            state.begins(plan).filter(|_| is_whole && !self.has_begun && verdict != Verdict::Inconclusive)?;
        Some(Turn { decided: begins, about: begins, verdict: Verdict::Inconclusive, is_withheld: true })
    }
}

/// A property whose verdict is certain while a [`Fresh`](super::fresh::Fresh) monitor agrees with it.
pub(super) struct FreshTurns<'a> {
    pub(super) property: u32,
    pub(super) plan: &'a ReachPlan,
    pub(super) doubt: &'a mut Doubt,
    pub(super) turned: &'a mut Vec<Turned>,
    pub(super) blind: &'a mut Vec<Blind>,
    pub(super) due: &'a mut Option<i64>,
}

impl FreshTurns<'_> {
    /// Adds the verdicts that become uncertain as the fresh monitor changes its verdict by time alone, before the next event
    /// and before a time or what follows it. The verdict of the property itself stays meanwhile.
    pub(super) fn add(self, until: Option<(Timestamp, bool)>, place: Before) {
        let FreshTurns { property, plan, doubt, turned, blind, due } = self;
        let Doubt { state, fresh, whole, .. } = doubt;
        let Some(fresh) = fresh else { return };
        while let Some((time, after, verdict)) = fresh.by_time(until) {
            let Some(seen) = whole.seen.filter(|seen| *seen != Verdict::Inconclusive) else { continue };
            let is_doubtful = state.is_doubtful(plan, time.as_nanos(), 0);
            if verdict == seen || whole.is_shown || !is_doubtful {
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
            turned.push(Turned { report, key: None });
        }
    }
}

/// Notes that a verdict may turn sooner than was known.
pub(super) fn sooner(due: &mut Option<i64>, turn: Option<Turn>) {
    if let Some(Turn { decided, .. }) = turn {
        *due = Some(due.map_or(decided, |due| due.min(decided)));
    }
}
