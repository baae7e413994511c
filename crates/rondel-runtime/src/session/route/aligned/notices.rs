//! Notices of alignment groups.

use rondel_align::{Notice as OrderNotice, SetNotice};
use rondel_event::TopicId;

use super::Aligned;
use crate::ordering::align::Rule;
use crate::report::notice::{Notice, of_order, of_sets};
use crate::session::Shared;

impl Aligned {
    /// Collects the notices of the groups.
    pub(super) fn notices(&mut self, shared: &mut Shared) {
        if self.groups.iter().any(|group| group.monitor.monitor().has_uncertain()) {
            let monitors = self.groups.iter_mut();
            shared.blind(monitors.map(|group| (group.monitor.monitor_mut(), &*group.specification.spec)));
        }
        for (i, group) in self.groups.iter_mut().enumerate() {
            let monitor = group.monitor.monitor();
            let leaps = monitor.leaps();
            if leaps > group.leaps {
                shared.notice(Notice::leap(leaps - group.leaps, monitor.time()));
                group.leaps = leaps;
            }
            match group.monitor.rule_mut() {
                Rule::Order(order) => {
                    for notice in order.notices() {
                        // A notice that does not depend on the wait is reported by one group only.
                        let is_own = depends_on_waiting(&notice);
                        let is_first = || {
                            let topic = topic_of(&notice).and_then(|topic| self.readers.get(topic.index()));
                            topic.is_none_or(|readers| readers.first() == Some(&i))
                        };
                        if is_own || is_first() {
                            let mut of_all = of_order(&notice);
                            if is_own && !group.names.is_empty() {
                                of_all.members.push(("properties", serde_json::json!(group.names)));
                            }
                            shared.notice(of_all);
                        }
                    }
                }
                Rule::Sets { sets, topics, .. } => {
                    for notice in sets.notices() {
                        shared.notice(of_sets(&of_specification(notice, topics)));
                    }
                }
            }
        }
    }
}

/// Whether a notice depends on the topics that a group waits for.
fn depends_on_waiting(notice: &OrderNotice) -> bool {
    matches!(
        notice,
        OrderNotice::Late { .. }
            | OrderNotice::WaitTooShort { .. }
            | OrderNotice::Early { .. }
            | OrderNotice::MarkerUnmet { .. }
            | OrderNotice::Omitted { .. }
    )
}

/// The topic of a notice.
fn topic_of(notice: &OrderNotice) -> Option<TopicId> {
    match notice {
        OrderNotice::Late { topic, .. }
        | OrderNotice::WaitTooShort { topic, .. }
        | OrderNotice::Refused { topic, .. }
        | OrderNotice::UnknownTopic { topic }
        | OrderNotice::Absent { topic, .. }
        | OrderNotice::Returned { topic, .. }
        | OrderNotice::SteppedBack { topic, .. }
        | OrderNotice::StampsDisagree { topic, .. }
        | OrderNotice::MarkerBack { topic, .. }
        | OrderNotice::MarkerBroken { topic, .. }
        | OrderNotice::MarkerMissed { topic, .. }
        | OrderNotice::MarkerUnmet { topic, .. }
        | OrderNotice::Early { topic, .. }
        | OrderNotice::Duplicate { topic, .. }
        | OrderNotice::Gap { topic, .. }
        | OrderNotice::NumbersBack { topic, .. } => Some(*topic),
        OrderNotice::ClockBack { .. } | OrderNotice::Omitted { .. } => None,
    }
}

/// A notice of sets, with the topics by their positions in the specification.
pub(in crate::session) fn of_specification(notice: SetNotice, topics: &[TopicId]) -> SetNotice {
    let of = |topic: TopicId| topics.get(topic.index()).copied().unwrap_or(topic);
    match notice {
        SetNotice::Unused { topic, time, why } => SetNotice::Unused { topic: of(topic), time, why },
        SetNotice::Absent { topic, since, ever } => SetNotice::Absent { topic: of(topic), since, ever },
        SetNotice::Returned { topic, after } => SetNotice::Returned { topic: of(topic), after },
        SetNotice::SteppedBack { topic, time, last } => {
            SetNotice::SteppedBack { topic: of(topic), time, last }
        }
        SetNotice::TooClose { topic, time, last } => SetNotice::TooClose { topic: of(topic), time, last },
        SetNotice::UnknownTopic { topic } => SetNotice::UnknownTopic { topic: of(topic) },
        other => other,
    }
}
