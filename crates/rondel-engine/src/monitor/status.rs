//! Status of a monitor between calls: parameters of reports, chains, instances, deadlines and limits.

use rondel_event::{Timestamp, TopicId, Value};
use rondel_spec::TimeModel;

use super::Monitor;
use crate::chain::{ChainPlan, ChainStatus};
use crate::exec::report::{Report, SliceStatus};
use crate::exec::section::{Section, TimePoints};
use crate::exec::serial::Serial;
use crate::future::{Delayed, Pending};
use crate::keyed::Instances;
use crate::linear::Linear;

impl Monitor {
    /// Parameters of the instance of a report of the last call; empty without `for each`.
    pub fn key(&self, report: &Report) -> Vec<Value> {
        let mut values = Vec::new();
        self.write_key(report, &mut values);
        values
    }

    /// Appends what [`Monitor::key`] returns.
    pub fn write_key(&self, report: &Report, values: &mut Vec<Value>) {
        let Some(key) = report.key else { return };
        if let Some(sliced) = self.program.sliced.get(key.slice as usize) {
            sliced.plan.keys.write(self.keys.of(key), values);
        }
    }

    /// Status of the chains, in the order of the specification.
    pub fn chains(&self) -> impl Iterator<Item = ChainStatus<'_>> {
        let chains = self.program.chains.iter().zip(&self.chains);
        chains.map(|(plan, chain)| ChainStatus {
            name: &plan.name,
            topics: plan.links.iter().map(|(topic, _)| *topic).collect(),
            figures: chain.figures(),
            under_way: chain.under_way(plan),
        })
    }

    /// First topic that a stamp had not reached, for a report of the last call about a stamp that missed the deadline
    /// of its chain.
    pub fn missing(&self, report: &Report) -> Option<TopicId> {
        let is_its = |plan: &&ChainPlan| plan.property == Some(report.property);
        let at = self.program.chains.iter().position(|plan| is_its(&plan))?;
        let key = self.key(report);
        let [key] = &key[..] else { return None };
        self.chains.get(at)?.missing(self.program.chains.get(at)?, key, report.about?.as_nanos())
    }

    /// Current status of the slices.
    pub fn slices(&self) -> impl Iterator<Item = SliceStatus<'_>> {
        let slices = self.program.sliced.iter().zip(&self.instances);
        slices.map(|(sliced, instances)| instances.status(sliced))
    }

    /// Numbers of events left out in each slice because the number of instances was at its limit, and because the
    /// parameters were too long, in the order of [`Monitor::slices`]. Cheaper than that.
    #[inline]
    pub fn refused(&self) -> impl Iterator<Item = [u64; 2]> {
        self.instances.iter().map(Instances::refused)
    }

    /// Number of inconclusive instances of each property; 0 for properties without `for each`.
    pub fn waiting(&self) -> Vec<u64> {
        let mut waiting = vec![0; self.program.properties().len()];
        for (sliced, instances) in self.program.sliced.iter().zip(&self.instances) {
            instances.waiting(sliced, &mut waiting);
        }
        self.uncertainties.add_waiting(&mut waiting);
        waiting
    }

    /// Premises that were not certainly true at any time point so far, in no instance: the property by its position in
    /// the specification, and the position among its [premises](rondel_spec::Property::premises).
    pub fn unexercised(&self) -> impl Iterator<Item = (u32, u32)> {
        let sections = self.program.sections.iter().zip(&self.sections);
        let whole = sections.flat_map(|(section, serial)| serial.unexercised.of(&section.premises));
        let divided = self.program.sliced.iter().zip(&self.instances);
        whole.chain(divided.flat_map(|(sliced, instances)| instances.unexercised(sliced)))
    }

    /// Properties that joined and have received no event yet.
    pub(super) fn unbegun(&self) -> Vec<u32> {
        let sections = self.program.sections.iter().zip(&self.sections).zip(&self.linear);
        let unbegun = sections.filter(|((_, serial), linear)| !has_begun(serial, linear.as_deref()));
        unbegun.flat_map(|((section, _), _)| section.all_properties()).collect()
    }

    /// Step, from 0, of the first event of the next block.
    pub fn position(&self) -> u64 {
        self.position
    }

    /// Latest time so far, of an event or that was advanced to, where any property measures time.
    pub fn time(&self) -> Timestamp {
        Timestamp::from_nanos(self.time)
    }

    /// Next change by time alone, if no event comes before: the least `now` for which [`Monitor::advance`] does
    /// something. States that are [lent](Monitor::lend) do not count.
    pub fn next_deadline(&self) -> Option<Timestamp> {
        let sections = self.program.sections.iter().zip(&self.sections).zip(&self.linear);
        let moves = |section: &Section, serial: &Serial| {
            section.has_levels && (0..section.robust.len()).any(|formula| serial.moves(section, formula))
        };
        let next = sections.filter_map(|((section, serial), linear)| {
            // Sections that wait for events do not advance with time.
            if linear.as_ref().is_some_and(|linear| !linear.is_free())
                || !has_begun(serial, linear.as_deref())
            {
                return None;
            }
            let waiting = linear.as_ref().and_then(|linear| linear.first());
            // Event sections show changes between events only at the next event.
            let past = match section.time_points {
                TimePoints::Events => None,
                TimePoints::Dense if serial.has_span() || self.every_requested && moves(section, serial) => {
                    Some(serial.time)
                }
                TimePoints::Dense => serial.next_change(section),
            };
            let futures = section.futures.iter().zip(&serial.pending);
            let pending = futures.filter_map(|(future, pending)| pending.deadline(&future.plan));
            let robust = section.robust_futures.iter().zip(&serial.delayed);
            let delayed = robust.filter_map(|(future, delayed)| delayed.deadline(&future.plan));
            let timed = section.futures.iter().filter(|future| future.plan.time != TimeModel::Steps);
            let obligations = timed.flat_map(|future| &future.externals).filter_map(|(_, relation)| {
                serial.state.relations.get(*relation as usize)?.obligations()?.deadline()
            });
            pending.chain(delayed).chain(obligations).chain(past).chain(waiting).min()
        });
        let next = next.chain(self.instances.iter().filter_map(Instances::next_change)).min();
        let next = next.map(|time| time.saturating_add(1));
        let uncertainties =
            self.uncertainties.next_deadline().map(|time| time.max(self.time.saturating_add(1)));
        next.into_iter().chain(uncertainties).min().map(Timestamp::from_nanos)
    }

    /// Number of events more than 146 years from time zero: where time is measured, they count as of that limit.
    pub fn beyond_range(&self) -> u64 {
        self.beyond
    }

    /// Number of window samples beyond the limit: while a window contains more, its value is unknown.
    pub fn dropped_samples(&self) -> u64 {
        let divided = self.instances.iter().map(Instances::dropped_samples);
        self.sections.iter().map(Serial::dropped_samples).chain(divided).fold(0, u64::saturating_add)
    }

    /// Number of verdicts of properties with future operators given up as inconclusive because too many were pending.
    pub fn given_up(&self) -> u64 {
        let pending = self.sections.iter().flat_map(|section| &section.pending).map(Pending::lost);
        let delayed = self.sections.iter().flat_map(|section| &section.delayed).map(Delayed::lost);
        let relations = self.sections.iter().flat_map(|section| &section.state.relations);
        let obligations = relations.filter_map(|relation| Some(relation.obligations()?.lost()));
        pending
            .chain(delayed)
            .chain(obligations)
            .chain(self.instances.iter().map(Instances::given_up))
            .fold(0, u64::saturating_add)
    }

    /// Number of values that quantified formulas have evicted at their `@limit`: verdicts that depend on such a value
    /// are inconclusive.
    pub fn forgotten(&self) -> u64 {
        let sections = self.program.sections.iter().zip(&self.sections);
        let relations =
            sections.flat_map(|(section, own)| section.relations.iter().zip(&own.state.relations));
        relations.map(|(relation, state)| state.forgotten(&relation.plan)).fold(0, u64::saturating_add)
    }

    /// Number of events evaluated before the next numbers for their interpolation had come, because too many waited:
    /// these numbers are unknown. Counted once for each group of properties that wait for the same fields.
    pub fn hurried(&self) -> u64 {
        self.linear.iter().flatten().map(|linear| linear.lost()).fold(0, u64::saturating_add)
    }

    /// Number of times that a machine with repeating timeouts was not followed through a time without messages because
    /// that was too long: it was unknown for that time.
    pub fn leaps(&self) -> u64 {
        let repeating =
            self.program.sections.iter().zip(&self.sections).filter(|(section, _)| section.changes.repeats);
        let undivided = repeating.map(|(_, serial)| serial.leaps());
        undivided.chain(self.instances.iter().map(Instances::leaps)).fold(0, u64::saturating_add)
    }

    /// Current length of the longest queue of any bounded operator, in entries: a measure of memory growth.
    pub fn longest_queue(&self) -> usize {
        let waiting = self.linear.iter().flatten().map(|linear| linear.kept());
        self.sections.iter().map(Serial::longest_queue).chain(waiting).max().unwrap_or(0)
    }
}

/// Whether a section has received an event, or one waits for it.
pub(super) fn has_begun(serial: &Serial, linear: Option<&Linear>) -> bool {
    serial.has_begun() || linear.is_some_and(|linear| !linear.is_free() || linear.first().is_some())
}
