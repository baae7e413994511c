//! The results of an aligned session: statistics, omissions and the state for a snapshot.

use rondel_align::Unused;
use rondel_event::{Timestamp, TopicId};

use super::Aligned;
use crate::explanation::Signal;
use crate::ordering::align::Rule;
use crate::ordering::alignment::Late;
use crate::session::Shared;
use crate::session::snapshot::saved::{Known, Saved};
use crate::statistics::alignment::AlignmentStatistics;
use crate::statistics::chains::ChainStatistics;
use crate::statistics::omission::{Omissions, Reason};
use crate::statistics::{Present, PropertyStatistics, Summary, omissions, unchecked};
use crate::time::clock::Clock;

impl Aligned {
    /// The values of all fields, each field once.
    pub(in crate::session) fn courses(&self) -> (Vec<Signal>, u64) {
        let (mut signals, mut left_out) = (Vec::<Signal>::new(), 0);
        for explainer in self.groups.iter().filter_map(|group| group.evaluated.explainer.as_ref()) {
            let (own, more) = explainer.courses();
            left_out += more;
            for signal in own {
                if !signals.iter().any(|known| known.name == signal.name) {
                    signals.push(signal);
                }
            }
        }
        (signals, left_out)
    }

    /// The state for a snapshot, after [`Aligned::step`].
    pub(in crate::session) fn saved(&self, clock: &dyn Clock) -> Saved {
        let is_by_arrival = self.intake.is_by_arrival;
        let recorded_until = self.intake.latest.map(Timestamp::as_nanos);
        let mut waiting = self.intake.saved(clock);
        waiting.numbered = self.numbered.unwrap_or(0);
        let waiting = Some(waiting);
        let known = Known { waiting, is_by_arrival, recorded_until, ..Known::default() };
        Saved { known, states: self.groups.iter().map(|group| group.monitor.snapshot()).collect() }
    }

    /// Adds the least robustness of each property.
    pub(in crate::session) fn see_robustness(&self, statistics: &mut [PropertyStatistics]) {
        for group in &self.groups {
            for (own, &property) in (0..).zip(&group.evaluated.properties) {
                statistics[property as usize].see_robustness(group.monitor.monitor(), own);
            }
        }
    }

    /// Adds the instances at present, of all groups.
    pub(in crate::session) fn add_present(&self, present: &mut Present) {
        self.groups.iter().for_each(|group| present.add(group.monitor.monitor()));
    }

    /// Ends all violations for the statistics, since nothing is received from here on.
    pub(in crate::session) fn stop_measuring(&self, shared: &mut Shared) {
        for group in &self.groups {
            shared.emitter.stop_measuring(group.monitor.monitor(), &group.evaluated);
        }
    }

    /// Adds the messages and values that were late, dropped by a full queue, or left out at a limit.
    pub(in crate::session) fn add_omissions(&self, omissions: &mut Omissions) {
        omissions.add_mistyped(self.intake.mistyped_lines());
        for group in &self.groups {
            omissions.add_limits(group.monitor.monitor(), &group.specification.spec);
            match group.monitor.rule() {
                Rule::Order(order) => {
                    for (topic, own) in (0..).map(TopicId).zip(order.statistics()) {
                        let late = if self.late == Late::Inconclusive { own.late } else { own.dropped };
                        omissions.at_least(Reason::Late, topic, late);
                    }
                }
                Rule::Sets { sets, topics, .. } => {
                    for (topic, own) in topics.iter().zip(&sets.statistics().topics) {
                        let dropped =
                            own.unused[Unused::QueueFull as usize] + own.unused[Unused::AfterLoss as usize];
                        omissions.at_least(Reason::Dropped, *topic, dropped);
                    }
                }
            }
        }
    }

    pub(in crate::session) fn summarize(&self, summary: &mut Summary) {
        summary.counts.mistyped += self.intake.mistyped();
        summary.omissions.extend(self.intake.omission());
        summary.counts.undecodable += self.intake.undecodable();
        summary.counts.received += self.intake.undecodable();
        let names: Vec<String> = summary.topics.iter().map(|topic| topic.name.clone()).collect();
        let unstamped = summary.topics.iter().map(|topic| topic.unstamped).sum();
        let mut alignment = AlignmentStatistics::new(&names, unstamped, self.intake.progress.unread);
        self.see_robustness(&mut summary.properties);
        for group in &self.groups {
            let monitor = group.monitor.monitor();
            let end = group.evaluated.end(monitor);
            summary.reach(end);
            for (&property, waiting) in group.evaluated.properties.iter().zip(monitor.waiting()) {
                summary.properties[property as usize].end(end, waiting, monitor);
            }
            for (own, &property) in (0..).zip(&group.evaluated.properties) {
                summary.properties[property as usize].see_blind(monitor, own);
            }
            let of_all =
                |(own, number): (u32, u32)| Some((*group.evaluated.properties.get(own as usize)?, number));
            summary.unexercised.extend(monitor.unexercised().filter_map(of_all));
            for (own, messages) in unchecked(monitor, Some(&group.specification.spec)) {
                // The parts watched for explanations are not among them.
                if let Some(property) = group.evaluated.properties.get(own as usize) {
                    summary.properties[*property as usize].unchecked += messages;
                }
            }
            let spec = &group.specification.spec;
            summary.omissions.extend(omissions(monitor, spec));
            let all: Vec<u32> = (0..spec.properties.len() as u32).collect();
            summary.chains.extend(ChainStatistics::all(monitor, spec, &all));
            match group.monitor.rule() {
                Rule::Order(order) => alignment.order(&order.statistics(), &group.topics),
                Rule::Sets { sets, topics, .. } => alignment.sets(sets.statistics(), topics),
            }
        }
        alignment.refused(&summary.topics);
        summary.alignment = Some(alignment);
    }
}
