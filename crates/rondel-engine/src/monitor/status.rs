//! What a monitor says of itself between calls: keys of reports, chains, instances, deadlines and limits.

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
    /// The values of the keys of the instance that a report of the last call is of; none where the property
    /// is not divided by key.
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

    /// What has become of the chains so far, in the order of the specification.
    pub fn chains(&self) -> impl Iterator<Item = ChainStatus<'_>> {
        let chains = self.program.chains.iter().zip(&self.chains);
        chains.map(|(plan, chain)| ChainStatus {
            name: &plan.name,
            topics: plan.links.iter().map(|(topic, _)| *topic).collect(),
            figures: chain.figures(),
            under_way: chain.under_way(plan),
        })
    }

    /// Of a report of the last call that says that a stamp has not come out of its chain in time, the first
    /// topic that the stamp had not reached by then.
    pub fn missing(&self, report: &Report) -> Option<TopicId> {
        let is_its = |plan: &&ChainPlan| plan.property == Some(report.property);
        let at = self.program.chains.iter().position(|plan| is_its(&plan))?;
        let key = self.key(report);
        let [key] = &key[..] else { return None };
        self.chains.get(at)?.missing(self.program.chains.get(at)?, key, report.about?.as_nanos())
    }

    /// How the divisions by key are at the moment.
    pub fn slices(&self) -> impl Iterator<Item = SliceStatus<'_>> {
        let slices = self.program.sliced.iter().zip(&self.instances);
        slices.map(|(sliced, instances)| instances.status(sliced))
    }

    /// For every division by key how many events were left out because there were as many instances as allowed, and
    /// how many because their key was too long, in the order of [`Monitor::slices`]. Costs less than that.
    #[inline]
    pub fn refused(&self) -> impl Iterator<Item = [u64; 2]> {
        self.instances.iter().map(Instances::refused)
    }

    /// For every property that is divided by key how many of its instances are inconclusive now; 0 for the
    /// others.
    pub fn waiting(&self) -> Vec<u64> {
        let mut waiting = vec![0; self.program.properties().len()];
        for (sliced, instances) in self.program.sliced.iter().zip(&self.instances) {
            instances.waiting(sliced, &mut waiting);
        }
        self.doubts.add_waiting(&mut waiting);
        waiting
    }

    /// The premises that were not certainly true at any time point so far, in no instance: the property by its
    /// position in the specification, and the place among its [premises](rondel_spec::Property::premises).
    pub fn untried(&self) -> impl Iterator<Item = (u32, u32)> {
        let sections = self.program.sections.iter().zip(&self.sections);
        let whole = sections.flat_map(|(section, serial)| serial.unexercised.of(&section.premises));
        let divided = self.program.sliced.iter().zip(&self.instances);
        whole.chain(divided.flat_map(|(sliced, instances)| instances.untried(sliced)))
    }

    /// The properties that have joined and have seen no event yet.
    pub(super) fn unbegun(&self) -> Vec<u32> {
        let sections = self.program.sections.iter().zip(&self.sections).zip(&self.linear);
        let unbegun = sections.filter(|((_, serial), linear)| !has_begun(serial, linear.as_deref()));
        unbegun.flat_map(|((section, _), _)| section.all_properties()).collect()
    }

    /// The number of the step, from 0, that the first event of the next block will be.
    pub fn position(&self) -> u64 {
        self.position
    }

    /// The latest time so far, of an event or that it was let pass to; where any property measures time.
    pub fn time(&self) -> Timestamp {
        Timestamp::from_nanos(self.time)
    }

    /// When time will bring something by itself, if no event comes before: the least `now` for which
    /// [`Monitor::advance`] does something.
    pub fn next_deadline(&self) -> Option<Timestamp> {
        let sections = self.program.sections.iter().zip(&self.sections).zip(&self.linear);
        let moves = |section: &Section, serial: &Serial| {
            section.has_levels && (0..section.robust.len()).any(|formula| serial.moves(section, formula))
        };
        let next = sections.filter_map(|((section, serial), linear)| {
            // What waits for events is brought on by no time.
            if linear.as_ref().is_some_and(|linear| !linear.is_free())
                || !has_begun(serial, linear.as_deref())
            {
                return None;
            }
            let waiting = linear.as_ref().and_then(|linear| linear.first());
            // Where there is truth at events only, what is measured between them is seen at the next.
            let past = match section.time_points {
                TimePoints::Events => None,
                TimePoints::Dense if serial.has_span() || self.asked && moves(section, serial) => {
                    Some(serial.time)
                }
                TimePoints::Dense => serial.next_change(section),
            };
            let futures = section.futures.iter().zip(&serial.pending);
            let pending = futures.filter_map(|(future, pending)| pending.deadline(&future.plan));
            let robust = section.robust_futures.iter().zip(&serial.delayed);
            let delayed = robust.filter_map(|(future, delayed)| delayed.deadline(&future.plan));
            let timed = section.futures.iter().filter(|future| future.plan.time != TimeModel::Steps);
            let asked = timed.flat_map(|future| &future.givens).filter_map(|(_, relation)| {
                serial.state.relations.get(*relation as usize)?.asking()?.deadline()
            });
            pending.chain(delayed).chain(asked).chain(past).chain(waiting).min()
        });
        let next = next.chain(self.instances.iter().filter_map(Instances::next_change)).min();
        let next = next.map(|time| time.saturating_add(1));
        let doubts = self.doubts.next_deadline().map(|time| time.max(self.time.saturating_add(1)));
        next.into_iter().chain(doubts).min().map(Timestamp::from_nanos)
    }

    /// How many events were more than 146 years from time zero: where time is measured, they count as of there.
    pub fn beyond_range(&self) -> u64 {
        self.beyond
    }

    /// How many samples of windows there was no room for: while so many are in a window, what it measures
    /// is unknown.
    pub fn dropped_samples(&self) -> u64 {
        let divided = self.instances.iter().map(Instances::dropped_samples);
        self.sections.iter().map(Serial::dropped_samples).chain(divided).fold(0, u64::saturating_add)
    }

    /// How many verdicts of properties with operators of the future were given up, as inconclusive, because
    /// too many were waited for.
    pub fn given_up(&self) -> u64 {
        let pending = self.sections.iter().flat_map(|section| &section.pending).map(Pending::lost);
        let delayed = self.sections.iter().flat_map(|section| &section.delayed).map(Delayed::lost);
        let relations = self.sections.iter().flat_map(|section| &section.state.relations);
        let asked = relations.filter_map(|relation| Some(relation.asking()?.lost()));
        pending
            .chain(delayed)
            .chain(asked)
            .chain(self.instances.iter().map(Instances::given_up))
            .fold(0, u64::saturating_add)
    }

    /// How many values quantified formulas have forgotten because there were more than their `@limit`: verdicts that
    /// depend on such a value are inconclusive.
    pub fn forgotten(&self) -> u64 {
        let sections = self.program.sections.iter().zip(&self.sections);
        let relations =
            sections.flat_map(|(section, own)| section.relations.iter().zip(&own.state.relations));
        relations.map(|(relation, state)| state.forgotten(&relation.plan)).fold(0, u64::saturating_add)
    }

    /// How many events were evaluated before the next numbers had come that they waited for, because too many
    /// waited: properties whose numbers run straight took these to be unknown. For each group of properties that
    /// wait for the same fields.
    pub fn hurried(&self) -> u64 {
        self.linear.iter().flatten().map(|linear| linear.lost()).fold(0, u64::saturating_add)
    }

    /// How often a machine that moves on by itself again and again was not followed through a time without messages,
    /// because that was too long: for that time it was unknown.
    pub fn leaps(&self) -> u64 {
        let repeating =
            self.program.sections.iter().zip(&self.sections).filter(|(section, _)| section.repeats);
        let undivided = repeating.map(|(_, serial)| serial.leaps());
        undivided.chain(self.instances.iter().map(Instances::leaps)).fold(0, u64::saturating_add)
    }

    /// The longest queue that any bounded operator keeps at the moment, in entries: what its memory
    /// grows with.
    pub fn longest_queue(&self) -> usize {
        let waiting = self.linear.iter().flatten().map(|linear| linear.kept());
        self.sections.iter().map(Serial::longest_queue).chain(waiting).max().unwrap_or(0)
    }
}

/// Whether a section has seen an event, or one waits for it.
pub(super) fn has_begun(serial: &Serial, linear: Option<&Linear>) -> bool {
    serial.has_begun() || linear.is_some_and(|linear| !linear.is_free() || linear.first().is_some())
}
