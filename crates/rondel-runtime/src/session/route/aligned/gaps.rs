//! Missed, refused and unreadable messages, and missed time.

use std::sync::Arc;

use rondel_engine::SeenAgain;
use rondel_event::{Origin, Timestamp, TopicId};
use rondel_spec::{Property, TimeModel};

use super::Aligned;
use super::group::Group;
use crate::ordering::align::ReportCallback;
use crate::session::Shared;
use crate::session::gaps::blind::UNKNOWN;
use crate::session::gaps::pause::Missed;
use crate::session::gaps::restart::Absence;
use crate::session::reading::intake::Taken;
use crate::time::clock::NO_TIME;

impl Aligned {
    /// Records a pause of the session or a step of the day's clock, before time advances after it.
    #[cold]
    pub(in crate::session) fn pause(&mut self, missed: &Missed, shared: &mut Shared) {
        self.intake.pause(missed, &*Arc::clone(&shared.clock));
        self.miss_paused(shared);
    }

    /// Withholds verdicts that depend on a time in which the session did not run, where messages that waited count later.
    #[cold]
    pub(super) fn miss_paused(&mut self, shared: &mut Shared) {
        let Some(missed) = self.intake.missed.take() else { return };
        let leaps = missed.ticks.is_none() && self.intake.clock.shows_day() && missed.repeats().is_none();
        let (from, until) = if self.intake.is_by_arrival || leaps || missed.is_empty {
            (missed.from, missed.again(&self.intake.block))
        } else if missed.ticks.is_none() {
            return;
        } else if let Some(latest) = self.intake.latest.filter(|_| self.reads_arrivals) {
            // The transport delay of waiting messages is unknown.
            let lasted = missed.lasted();
            (latest, SeenAgain::After(Timestamp::from_nanos(latest.as_nanos().saturating_add(lasted))))
        } else {
            return;
        };
        self.miss_time(&self.topics(), from, until, shared);
    }

    /// Records that the day's clock has caught up with the time it had shown before it was set back.
    #[cold]
    pub(in crate::session) fn catch_up(&mut self, shared: &Shared) {
        let shown = self.intake.clock.at(&*shared.clock, shared.clock.ticks());
        let again = self.latest(shared).max(shown).max(shared.clock.now());
        let topics = self.topics();
        self.monitors().for_each(|monitor| monitor.see(&topics, SeenAgain::At(again)));
    }

    fn topics(&self) -> Vec<TopicId> {
        (0..self.specification.spec.topics.len() as u32).map(TopicId).collect()
    }

    /// Records the messages and time missed before the first message that follows.
    pub(in crate::session) fn absent(&mut self, absence: Absence, is_by_arrival: bool, shared: &mut Shared) {
        self.intake.is_by_arrival |= is_by_arrival;
        self.miss(&absence.lost, SeenAgain::Open, shared);
        if self.intake.is_by_arrival || self.reads_arrivals {
            self.miss_time(&absence.late, UNKNOWN, SeenAgain::Open, shared);
        }
        // Messages that waited come before the clock runs.
        let ticks = shared.clock.ticks();
        let began = Timestamp::from_nanos(shared.clock.now().as_nanos().saturating_sub(absence.lasted));
        self.intake.wait(&*shared.clock, ticks.saturating_sub(absence.lasted), ticks, began);
        self.absence = Some(Box::new(absence));
    }

    /// Records that messages of these topics come late, which matters to properties that measure time.
    fn miss_time(&mut self, topics: &[TopicId], from: Timestamp, until: SeenAgain, shared: &mut Shared) {
        let mut is_read = false;
        for group in &mut self.groups {
            let Group { monitor, evaluated, specification, .. } = group;
            let joining = shared.joining_of(&evaluated.properties);
            let emit: ReportCallback<'_> =
                &mut |block, monitor| shared.emitter.take(block, monitor, evaluated);
            let properties = &specification.spec.properties;
            let is_meant = |property: u32| {
                let measures = |property: &Property| self.reads_arrivals || property.time != TimeModel::Steps;
                let joins = joining.contains(&property);
                !joins && properties.get(property as usize).is_none_or(measures)
            };
            monitor.miss_for(topics, from, until, None, &is_meant, emit);
            is_read |= monitor.monitor().missed().iter().any(|missed| missed.is_read);
        }
        if is_read {
            shared.omit_pause(Some(from));
        }
        self.notices(shared);
    }

    /// Records that messages of these topics were missed.
    pub(in crate::session) fn miss(&mut self, topics: &[TopicId], until: SeenAgain, shared: &mut Shared) {
        for group in &mut self.groups {
            let Group { monitor, evaluated, .. } = group;
            let joining = shared.joining_of(&evaluated.properties);
            let emit: ReportCallback<'_> =
                &mut |block, monitor| shared.emitter.take(block, monitor, evaluated);
            let has_seen = |property: u32| !joining.contains(&property);
            monitor.miss_for(topics, UNKNOWN, until, None, &has_seen, emit);
        }
        self.notices(shared);
    }

    /// Reports the properties that depend on a message that cannot be read, and are evaluated at events only.
    #[cold]
    pub(in crate::session) fn withhold_until_event(&mut self, shared: &mut Shared) {
        for Group { monitor, evaluated, .. } in &mut self.groups {
            let latest = evaluated.latest;
            monitor.withhold_until_event(latest, &mut |block, monitor| {
                shared.emitter.take(block, monitor, evaluated);
            });
        }
    }

    /// Ends the pause before a resumed session for all groups, once the clock shows a time.
    pub(super) fn resume(&mut self, now: Timestamp) {
        if self.intake.resumes(now) {
            let absence = self.absence.take();
            let topics = self.topics();
            for group in &mut self.groups {
                if let Some(absence) = &absence {
                    let is_slow = self.reads_arrivals && !self.intake.is_by_arrival;
                    group.monitor.monitor_mut().see(&topics, absence.again(now, is_slow));
                }
                group.monitor.unheard_until(now);
                group.is_fresh = true;
            }
        }
    }

    /// Passes the number of a refused or unreadable message to the groups.
    #[cold]
    pub(in crate::session) fn unread(&mut self, topic: TopicId, origin: Option<Origin>) {
        let Some(origin) = origin else { return };
        for &group in &self.readers[topic.index()] {
            self.groups[group].monitor.unread(topic, origin);
        }
    }

    /// Informs the groups that a message was refused because of its time.
    pub(super) fn refuse(&mut self, topic: TopicId, taken: &Taken) {
        // Before any message with a time, there is no time to advance from.
        if taken.now == NO_TIME {
            return;
        }
        self.resume(taken.now);
        for &group in &self.readers[topic.index()] {
            let group = &mut self.groups[group];
            group.monitor.refuse(topic, taken.time, taken.now);
            group.is_fresh = true;
        }
    }
}
