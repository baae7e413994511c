//! The results of a session without alignment: statistics, omissions and the state for a snapshot.

use rondel_engine::Monitor;

use super::Direct;
use crate::explanation::{Explainer, Signal};
use crate::session::Shared;
use crate::session::snapshot::saved::{Known, Saved};
use crate::statistics::chains::ChainStatistics;
use crate::statistics::omission::Omissions;
use crate::statistics::{EndOf, Present, PropertyStatistics, Summary, omissions, unchecked};
use crate::text::counted;

impl Direct {
    /// The values of all fields.
    pub(in crate::session) fn courses(&self) -> (Vec<Signal>, u64) {
        self.evaluated.explainer.as_ref().map_or_else(Default::default, Explainer::courses)
    }

    /// The state for a snapshot, after [`Direct::flush`]; with `cuts` one for each part, which has the instances whose
    /// parameters have a hash between two of them.
    pub(in crate::session) fn saved(&self, cuts: Option<&[u64]>) -> Saved {
        let known =
            Known { time: self.time.as_nanos(), backwards: self.backwards.saved(), ..Known::default() };
        let recorded_until = (self.monitor.position() > 0).then(|| self.time.as_nanos());
        let unseen = self.gaps.saved();
        let known = Known { is_by_arrival: self.timing.is_by_arrival, recorded_until, unseen, ..known };
        let states = match cuts {
            Some(cuts) => self.monitor.snapshot_parts(cuts),
            None => vec![self.monitor.snapshot()],
        };
        Saved { known, states }
    }

    /// Adds the least robustness of each property.
    pub(in crate::session) fn see_robustness(&self, statistics: &mut [PropertyStatistics]) {
        see_robustness(&self.whole(), statistics);
    }

    /// Adds the instances at present.
    pub(in crate::session) fn add_present(&self, present: &mut Present) {
        present.add(&self.whole());
    }

    /// Ends all violations for the statistics, since nothing is received from here on.
    pub(in crate::session) fn stop_measuring(&self, shared: &mut Shared) {
        shared.emitter.stop_measuring(&self.monitor, &self.evaluated);
    }

    /// End of the evaluated time span: live, up to the next time after the last message at which a verdict could
    /// change.
    fn end(&self, shared: &Shared) -> EndOf {
        let mut end = self.evaluated.end(&self.monitor);
        if self.is_live
            && let Some(shown) = self.clock.as_ref().and_then(|clock| clock.at(shared.clock.ticks()))
        {
            let due = self.deadline().unwrap_or(shown);
            end.time = end.time.max(shown.min(due));
        }
        end
    }

    /// Adds the messages and values that the monitor left out at a limit, given the monitor with all of its state.
    pub(in crate::session) fn add_omissions(&self, omissions: &mut Omissions, whole: &Monitor) {
        omissions.add_mistyped(self.line_counts.mistyped());
        omissions.add_limits(whole, &self.specification.spec);
    }

    pub(in crate::session) fn summarize(&self, summary: &mut Summary, monitor: &Monitor, shared: &Shared) {
        summary.counts.mistyped += self.reader.mistyped() + self.line_counts.mistyped().sum::<u64>();
        summary.counts.undecodable += self.line_counts.undecodable();
        summary.counts.received += self.line_counts.undecodable();
        let end = self.end(shared);
        summary.reach(end);
        see_robustness(monitor, &mut summary.properties);
        for (property, statistics) in (0..).zip(&mut summary.properties) {
            statistics.see_blind(monitor, property);
        }
        for (statistics, waiting) in summary.properties.iter_mut().zip(monitor.waiting()) {
            statistics.end(end, waiting, monitor);
        }
        for (property, messages) in unchecked(monitor, Some(&self.specification.spec)) {
            // The parts watched for explanations are not among them.
            if let Some(statistics) = summary.properties.get_mut(property as usize) {
                statistics.unchecked += messages;
            }
        }
        summary.backwards = self.backwards.count;
        summary.unexercised = monitor.unexercised().collect();
        summary.omissions = omissions(monitor, &self.specification.spec);
        for topic in summary.topics.iter().filter(|topic| topic.gaps > 0) {
            let messages = counted(topic.gaps, "message is", "messages are");
            let sentence = format!("{}: {messages} missing, by the numbers of publishers", topic.name);
            summary.omissions.push(sentence);
        }
        for topic in summary.topics.iter().filter(|topic| topic.repeats > 0) {
            let messages = counted(topic.repeats, "message came", "messages came");
            let sentence =
                format!("{}: {messages} twice, by the numbers of publishers; both are checked", topic.name);
            summary.omissions.push(sentence);
        }
        summary.chains = ChainStatistics::all(monitor, &self.specification.spec, &self.evaluated.properties);
    }
}

/// Adds the least robustness of each property.
fn see_robustness(monitor: &Monitor, statistics: &mut [PropertyStatistics]) {
    for (property, statistics) in (0..).zip(statistics) {
        statistics.see_robustness(monitor, property);
    }
}
