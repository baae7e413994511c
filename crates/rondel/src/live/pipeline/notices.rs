//! Notices of a run: sent to their sinks, held while consumers are away, and shown at intervals.

use std::collections::{HashMap, VecDeque};
use std::time::{Duration, Instant};

use rondel_runtime::Notice;
use rondel_runtime::text::counted;

use crate::output::time_text::TimeText;
use crate::sinks::console::Console;
use crate::sinks::{self, Sink};
use crate::warn;

/// Minimum stop of the monitor after which consumers may have dropped it, in seconds. Networks have leases of 10 s,
/// of which a part may have passed before.
const FORGOTTEN: f64 = 5.0;
/// Minimum and maximum time after such a stop for the consumers to find the monitor again.
const FOUND: (Duration, Duration) = (Duration::from_secs(3), Duration::from_secs(10));
/// Maximum number of waiting notices.
const HELD: usize = 1_000;

/// Minimum interval between two shown notices that recur.
const AGAIN: Duration = Duration::from_secs(10);

/// Notices that are limited together on standard error.
#[derive(PartialEq, Eq, Hash)]
struct Group {
    kind: &'static str,
    topic: u32,
    /// The state and the address of a gate: a topic may have several, and each is seen to close and to open.
    gate: Option<String>,
}

impl Group {
    fn of(notice: &Notice) -> Group {
        let text = |name: &str| {
            let found = notice.members.iter().find(|(known, _)| *known == name);
            found.and_then(|(_, value)| value.as_str()).unwrap_or_default()
        };
        let gate = (notice.kind == "gate").then(|| format!("{} {}", text("state"), text("gate")));
        Group { kind: notice.kind, topic: notice.topic.map_or(u32::MAX, |topic| topic.0), gate }
    }
}

/// Sends notices to their sinks, and the first of each kind and topic to standard error; recurring ones at most every
/// ten seconds.
pub(super) struct Notices {
    pub(super) sinks: Vec<Sink>,
    /// Time of the last shown notice, and number of suppressed ones since.
    reported: HashMap<Group, (Instant, u64)>,
    /// Notices that wait for their consumers.
    held: VecDeque<String>,
    /// The end of a stop of the monitor, while notices wait.
    since: Option<Instant>,
}

impl Notices {
    /// Creates the state of notices that were not sent to these sinks yet.
    pub(super) fn new(sinks: Vec<Sink>) -> Notices {
        Notices { sinks, reported: HashMap::new(), held: VecDeque::new(), since: None }
    }

    /// Sends or holds these notices, and shows those that are due.
    pub(super) fn take(&mut self, notices: impl Iterator<Item = Notice>, stdout: &mut Console) {
        for mut notice in notices {
            if !self.sinks.is_empty() {
                let json = notice.json();
                let lasted = |json: &serde_json::Value| json["until"].as_f64().zip(json["from"].as_f64());
                if notice.kind == "paused"
                    && !matches!(json["cause"].as_str(), Some("clock" | "simulation"))
                    && lasted(&json).is_some_and(|(until, from)| until - from >= FORGOTTEN)
                {
                    self.since = Some(Instant::now());
                }
                self.held.push_back(json.to_string());
                if self.since.is_none() || self.held.len() > HELD {
                    self.publish_held(stdout);
                }
            }
            if self.is_shown(&mut notice, Instant::now()) {
                warn(&sentence(&notice));
            }
        }
    }

    /// Sends or holds a notice that is shown elsewhere.
    pub(super) fn publish(&mut self, notice: &Notice, stdout: &mut Console) {
        if !self.sinks.is_empty() {
            self.held.push_back(notice.json().to_string());
            if self.since.is_none() || self.held.len() > HELD {
                self.publish_held(stdout);
            }
        }
    }

    /// Whether the consumers have found the monitor again, or have had time to.
    pub(super) fn is_due(&self, now: Instant) -> bool {
        let Some(since) = self.since else { return false };
        let passed = now.duration_since(since);
        let is_found = |sink: &Sink| sink.publisher().is_none_or(|publisher| publisher.is_matched());
        passed >= FOUND.1 || passed >= FOUND.0 && self.sinks.iter().all(is_found)
    }

    /// Publishes the notices that wait.
    pub(super) fn publish_held(&mut self, stdout: &mut Console) {
        self.since = None;
        for notice in self.held.drain(..) {
            // A broken network shows when verdicts are published.
            let _ = sinks::publish(&self.sinks, notice.as_bytes(), stdout);
        }
    }

    /// Whether a notice is shown now; sets the number of suppressed notices before it.
    fn is_shown(&mut self, notice: &mut Notice, now: Instant) -> bool {
        let group = Group::of(notice);
        match self.reported.get_mut(&group) {
            Some((last, unsaid)) if notice.is_recurring() && now.duration_since(*last) >= AGAIN => {
                (*last, notice.before) = (now, std::mem::take(unsaid));
                true
            }
            Some((_, unsaid)) if !notice.is_single() => {
                *unsaid += 1;
                false
            }
            _ => {
                self.reported.insert(group, (now, 0));
                true
            }
        }
    }
}

/// Returns a notice as a sentence.
pub fn sentence(notice: &Notice) -> String {
    let name = notice.topic_name.as_ref().map(|name| format!("{name}: ")).unwrap_or_default();
    let mut times = TimeText::default();
    let further = match notice.before {
        _ if notice.is_single() => String::new(),
        0 if notice.is_recurring() => String::new(),
        0 => "; further ones are only counted".to_owned(),
        before => format!("; {} before it", counted(before, "such report", "such reports")),
    };
    format!("{name}{}{further}", notice.text(&mut |time| times.text(time)))
}

#[cfg(test)]
mod tests {
    use rondel_event::{Timestamp, TopicId, Verdict};
    use rondel_runtime::GateChange;

    use super::*;

    #[test]
    fn each_gate_is_seen_to_close_and_to_open() {
        let mut notices = Notices::new(Vec::new());
        let now = Instant::now();
        let closed = GateChange::Closed {
            property: "slow",
            verdict: Verdict::Violated,
            instead: "messages are dropped",
        };
        let open = GateChange::Open { after: 1 };
        let mut shown = |to, change| {
            let mut notice = Notice::gate(TopicId(0), "command", to, Timestamp::ZERO, change);
            notices.is_shown(&mut notice, now)
        };
        let all = [("zenoh:a", closed), ("zenoh:a", open), ("zenoh:b", closed), ("zenoh:b", open)];
        assert_eq!(all.map(|(to, change)| shown(to, change)), [true; 4]);
        assert_eq!(all.map(|(to, change)| shown(to, change)), [false; 4]);
    }

    #[test]
    fn notices_that_recur_are_shown_again_and_counted() {
        let mut notices = Notices::new(Vec::new());
        let start = Instant::now();
        let mut shown = |seconds| {
            let mut notice = Notice::outage("mqtt", None, Timestamp::ZERO, None);
            let is_shown = notices.is_shown(&mut notice, start + Duration::from_secs(seconds));
            is_shown.then(|| sentence(&notice))
        };
        let texts = [0, 3, 9, 12, 13, 40].map(&mut shown);
        let first = "mqtt: the connection was lost from 0 s and is not restored".to_owned();
        let after = |count: &str| Some(format!("{first}; {count} before it"));
        let [two, one] = [after("2 such reports"), after("1 such report")];
        assert_eq!(texts, [Some(first), None, None, two, None, one]);
    }
}
