//! Withholding of uncertain verdicts.

use std::collections::BTreeSet;

use rondel_event::{Block, Rows, TopicId, Verdict};

use super::exact::Call;
use super::fresh::Fresh;
use super::state::ReachPlan;
use super::timed::{Before, FreshChanges, TimedChange, sooner};
use super::{Instance, KEYS, Uncertainties, Uncertainty};
use crate::exec::report::Report;
use crate::keyed::Instances;
use crate::keyed::keys::Keys;
use crate::keyed::plan::Sliced;
use crate::monitor::Monitor;
use crate::monitor::program::Program;

/// Number of events between sweeps for ended instances.
const SWEEP: u32 = 4096;

/// Events of a block with the parameters of their instances.
struct KeyedEvents<'a> {
    block: &'a Block,
    times: &'a [i64],
    /// For each slice: parameters of the rows, rows with parameters, and rows that concern all instances.
    keys: Vec<(Keys, Rows, Rows)>,
}

impl<'a> KeyedEvents<'a> {
    fn new(program: &Program, block: &'a Block, times: &'a [i64]) -> KeyedEvents<'a> {
        let of = |sliced: &Sliced| {
            let mut keys = Keys::new();
            let whole = sliced.plan.whole(block);
            let keyed = keys.read(&sliced.plan.keys, block, block.rows() & !whole);
            let shared = sliced.plan.shared_rows(block, whole);
            (keys, keyed & !shared, shared)
        };
        KeyedEvents { block, times, keys: program.sliced.iter().map(of).collect() }
    }

    fn time(&self, row: usize) -> i64 {
        self.times.get(row).copied().unwrap_or_else(|| self.block.time(row).as_nanos())
    }
}

impl Monitor {
    /// Withholds the uncertain verdicts among the reports of this call. The reports must be in order.
    #[cold]
    pub(crate) fn withhold(&mut self, block: Option<&Block>) {
        let program = std::sync::Arc::clone(&self.program);
        let Monitor { uncertainties, reports, keys, instances, every_requested, times, noted, .. } = self;
        let events = block.map(|block| {
            let times = if program.reads_time { &times[..block.len()] } else { &[][..] };
            KeyedEvents::new(&program, block, times)
        });
        if let Some(events) = &events {
            uncertainties.look_ahead(&program, events);
        }
        let len = block.map_or(0, Block::len);
        if block.is_none() {
            uncertainties.fresh().for_each(|(_, fresh)| fresh.advance(self.time));
        }
        let taken = uncertainties.take_exact(reports);
        let first_step = self.position.saturating_sub(len as u64);
        let mut row = 0;
        let mut take = |uncertainties: &mut Uncertainties, until: usize| {
            while row < until.min(len) {
                if let Some(events) = &events {
                    let place = Before { row, position: first_step };
                    uncertainties.change_by_time(&program, events.time(row), place);
                    uncertainties.event(&program, events, place, instances);
                }
                row += 1;
            }
        };
        reports.retain_mut(|report| {
            let first = report.row.map_or(report.order as usize / 4, |row| usize::from(row) + 1);
            take(uncertainties, first);
            let key = report.key.map(|key| keys.of(key));
            let time = match (report.row, report.about) {
                (Some(row), None) => times.get(usize::from(row)).filter(|_| program.reads_time),
                _ => None,
            };
            if uncertainties.next_timed_change().is_some() {
                let until = report.time.as_nanos().saturating_add(i64::from(report.after));
                let place = Before { row: first, position: first_step };
                uncertainties.change_property_by_time(&program, report.property, until, place);
            }
            if report.row.is_none() {
                uncertainties.reach(report);
            }
            let place = Before { row: first, position: first_step };
            uncertainties.change_fresh_by_time(
                &program,
                report.property,
                Some((report.time, report.after)),
                place,
            );
            let is_kept = uncertainties.report(&program, report, key, time.copied(), *every_requested);
            noted.report(report);
            is_kept
        });
        take(uncertainties, len);
        uncertainties.end_fresh_calls(&program, Before { row: len, position: first_step });
        if block.is_none() {
            uncertainties.change_by_time(&program, self.time, Before { row: 0, position: first_step });
        }
        let (first, now) = (reports.len(), self.time);
        let call = Call {
            block,
            times: &times[..len],
            position: first_step,
            now,
            every_requested: *every_requested,
        };
        uncertainties.add_exact(&program, &taken, reports, &call);
        let slice = |property: u32| program.reaches().get(property as usize)?.slice;
        reports.extend(uncertainties.take_timed_reports(|property, words| {
            keys.slice = slice(property)? as u32;
            Some(keys.add(|key| key.extend_from_slice(words)))
        }));
        if reports.len() > first {
            reports[first..].iter().for_each(|report| noted.report(report));
            self.sort();
        }
        if block.is_none() {
            self.uncertainties.last = self.uncertainties.last.max(self.time);
        }
        self.choose_reports();
    }
}

impl Uncertainties {
    /// Monitors that began after a span, with the positions of their properties.
    fn fresh(&mut self) -> impl Iterator<Item = (usize, &mut Fresh)> {
        let uncertainties = self.properties.iter_mut().enumerate();
        uncertainties.filter_map(|(place, uncertainty)| Some((place, uncertainty.as_mut()?.fresh.as_mut()?)))
    }

    /// Ends the call of all fresh monitors.
    fn end_fresh_calls(&mut self, program: &Program, place: Before) {
        for property in 0..self.properties.len() as u32 {
            self.change_fresh_by_time(program, property, None, place);
        }
        self.fresh().for_each(|(_, fresh)| fresh.end_call());
    }

    /// Advances the fresh monitor of a property to the time of a report.
    fn reach(&mut self, report: &Report) {
        let uncertainty = self.properties.get_mut(report.property as usize).and_then(Option::as_mut);
        if let Some(fresh) = uncertainty.and_then(|uncertainty| uncertainty.fresh.as_mut()) {
            fresh.reach(report.time);
        }
    }

    /// Evaluates a block with the fresh monitors.
    fn look_ahead(&mut self, program: &Program, events: &KeyedEvents<'_>) {
        let plans = program.reaches();
        for (place, fresh) in self.fresh() {
            if let Some(plan) = plans.get(place).and_then(|plan| plan.fresh(program, place)) {
                fresh.look_ahead(plan, events.block, |row| events.time(row));
            }
        }
    }

    /// Processes the event in a row.
    fn event(
        &mut self,
        program: &Program,
        events: &KeyedEvents<'_>,
        before: Before,
        instances: &[Instances],
    ) {
        let KeyedEvents { block, keys, .. } = events;
        let row = before.row;
        let time = events.time(row);
        // Reports at this event may still be uncertain, so only earlier times end an uncertainty.
        self.events += 1;
        if self.events >= SWEEP {
            self.events = 0;
            self.end_instances(program, self.last, instances);
        }
        self.end_whole(program, self.last);
        self.last = time;
        let is_on = |topic: TopicId| block.topic_rows(topic) >> row & 1 == 1;
        let Uncertainties { properties, due, timed_reports, blind, .. } = self;
        for (place, (plan, uncertainty)) in program.reaches().iter().zip(properties).enumerate() {
            let Some(uncertainty) = uncertainty else { continue };
            let carries = |part: usize| {
                let slots = plan.slots.get(part).map_or(&[][..], Vec::as_slice);
                slots.is_empty() || slots.iter().any(|slot| block.present(*slot) >> row & 1 == 1)
            };
            let of_slice = plan.slice.filter(|_| plan.by_key()).and_then(|slice| keys.get(slice));
            let Some((keys, keyed, shared)) = of_slice else {
                let own = plan.fresh(program, place).filter(|_| uncertainty.kleene.is_none());
                if let Some((own, fresh)) = own.zip(uncertainty.fresh.as_mut()) {
                    fresh.event(own, block, row, time);
                    // Changes by time before the event depend on the state before it.
                    let property = place as u32;
                    FreshChanges { property, plan, uncertainty, timed_reports, blind, due }.add(None, before);
                }
                uncertainty.state.event(plan, time, is_on, carries, true);
                sooner(due, uncertainty.whole.next(&uncertainty.state, plan));
                if let Some(own) =
                    own.filter(|_| uncertainty.fresh.is_none() && uncertainty.state.is_seen(plan, time))
                {
                    uncertainty.fresh.get_or_insert_default().event(own, block, row, time);
                }
                if let Some(fresh) = uncertainty.fresh.as_mut().filter(|_| own.is_some()) {
                    fresh.take();
                }
                continue;
            };
            if shared >> row & 1 == 1 {
                let states = uncertainty.keys.values_mut().filter_map(|key| key.state.as_mut());
                states
                    .chain([&mut uncertainty.state])
                    .for_each(|state| state.event(plan, time, is_on, carries, false));
                uncertainty
                    .keys
                    .values()
                    .for_each(|instance| sooner(due, instance.next(&uncertainty.state, plan)));
            } else if keyed >> row & 1 == 1 {
                let key = keys.key(row);
                if !uncertainty.keys.contains_key(key) && uncertainty.keys.len() < KEYS {
                    uncertainty.keys.insert(key.to_vec(), Instance::default());
                }
                let Some(instance) = uncertainty.keys.get_mut(key) else { continue };
                let state = instance.state.get_or_insert_with(|| uncertainty.state.clone());
                state.event(plan, time, is_on, carries, true);
                sooner(due, instance.next(&uncertainty.state, plan));
            }
        }
    }

    /// Withholds a verdict if it is uncertain. Returns whether it is to be reported.
    fn report(
        &mut self,
        program: &Program,
        report: &mut Report,
        key: Option<&[u64]>,
        time: Option<i64>,
        every_requested: bool,
    ) -> bool {
        let place = report.property as usize;
        let (Some(plan), Some(Some(uncertainty))) =
            (program.reaches().get(place), self.properties.get_mut(place))
        else {
            return report.changed || every_requested;
        };
        let time = time.unwrap_or(report.about.unwrap_or(report.time).as_nanos());
        let own = key.and_then(|key| uncertainty.keys.get(key));
        let state = own.and_then(|instance| instance.state.as_ref()).unwrap_or(&uncertainty.state);
        let was_shown =
            if key.is_some() { own.is_some_and(|own| own.is_shown) } else { uncertainty.whole.is_shown };
        let has_begun = state.begins(plan).is_some_and(|begins| begins <= time);
        let agrees = uncertainty.fresh.as_mut().is_some_and(|fresh| fresh.agrees(report));
        if agrees || !state.is_uncertain(plan, time, report.back) {
            // A verdict independent of the span counts as one about the time after it.
            uncertainty.is_passed |= agrees || time > state.root();
            if was_shown {
                report.changed = report.verdict != Verdict::Inconclusive;
            }
            uncertainty.show(key, false, report.verdict, has_begun);
            if agrees && self.finals.note(&program.finality, report) {
                self.properties[place] = None;
                self.active -= 1;
            }
            return report.changed || every_requested;
        }
        let blind = &mut self.blind[place];
        let was_inconclusive = was_shown || report.verdict == Verdict::Inconclusive && !report.changed;
        let was_wanted = report.at_event || report.about.is_some();
        if report.verdict != Verdict::Inconclusive {
            blind.verdicts += 1;
            blind.times += u64::from(!was_inconclusive);
        }
        let is_shown = was_shown || report.verdict != Verdict::Inconclusive;
        uncertainty.show(key, is_shown, report.verdict, has_begun);
        sooner(&mut self.due, uncertainty.next(key, plan));
        (report.verdict, report.robustness, report.withheld) =
            (Verdict::Inconclusive, None, crate::exec::report::Withheld::Yes);
        report.changed = !was_inconclusive;
        report.changed || every_requested && was_wanted
    }

    /// Drops the uncertainties of properties without instances that are over.
    fn end_whole(&mut self, program: &Program, now: i64) {
        for (plan, place) in program.reaches().iter().zip(&mut self.properties) {
            if place
                .as_ref()
                .is_some_and(|uncertainty| plan.slice.is_none() && uncertainty.is_over(plan, now))
            {
                *place = None;
                self.active -= 1;
            }
        }
    }

    /// Forgets ended instances, and drops the uncertainties of properties all of whose instances are certain.
    fn end_instances(&mut self, program: &Program, now: i64, instances: &[Instances]) {
        for (plan, place) in program.reaches().iter().zip(&mut self.properties) {
            let (Some(slice), Some(uncertainty)) =
                (plan.slice.and_then(|slice| instances.get(slice)), place.as_mut())
            else {
                continue;
            };
            let live: BTreeSet<&[u64]> = slice.keys().collect();
            uncertainty.keys.retain(|key, _| live.contains(&key[..]));
            let is_over = if plan.by_key() {
                let is_certain = |key: &&[u64]| {
                    let state = uncertainty.keys.get(*key).and_then(|instance| instance.state.as_ref());
                    state.is_some_and(|state| state.is_over(plan, now))
                };
                uncertainty.state.horizon(plan).is_some_and(|horizon| horizon < now)
                    && live.iter().all(is_certain)
            } else {
                uncertainty.state.is_over(plan, now)
            };
            if is_over && !uncertainty.keys.values().any(|instance| instance.is_shown) {
                *place = None;
                self.active -= 1;
            }
        }
    }
}

impl Uncertainty {
    fn is_over(&self, plan: &ReachPlan, now: i64) -> bool {
        if self.kleene.is_some() {
            return false;
        }
        let is_over = self.state.is_over(plan, now) && (self.is_passed || !plan.lags);
        !self.whole.is_shown && (is_over || self.fresh.as_ref().is_some_and(|fresh| fresh.is_over))
    }

    /// Records the last verdict of an instance: whether it was withheld, its value, and whether it is about an
    /// uncertain or later time.
    fn show(&mut self, key: Option<&[u64]>, is_shown: bool, seen: Verdict, has_begun: bool) {
        let instance = match key {
            None => Some(&mut self.whole),
            Some(key) if is_shown && !self.keys.contains_key(key) && self.keys.len() < KEYS => {
                Some(self.keys.entry(key.to_vec()).or_default())
            }
            Some(key) => self.keys.get_mut(key),
        };
        if let Some(instance) = instance {
            instance.has_begun |= is_shown || has_begun;
            (instance.is_shown, instance.seen) = (is_shown, Some(seen));
        }
    }

    /// Next change of the verdict of an instance by time alone.
    fn next(&self, key: Option<&[u64]>, plan: &ReachPlan) -> Option<TimedChange> {
        let instance = key.map_or(Some(&self.whole), |key| self.keys.get(key));
        instance?.next(&self.state, plan)
    }
}
