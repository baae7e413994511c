//! Statistics of `/clock` in a run in simulation time.

use rondel_event::Timestamp;
use rondel_runtime::text::{counted, grouped};
use serde_json::json;

use crate::output::time_text::TimeText;

/// Time without a message on `/clock` after which that is reported, in nanoseconds of the machine's clock.
pub(super) const SILENCE: i64 = 10_000_000_000;
/// Number of restarts and leaps within [`SHORTLY`] that indicates two publishers of `/clock`.
const MANY: usize = 5;
/// Window of [`MANY`] jumps, in nanoseconds of the machine's clock.
const SHORTLY: i64 = 10_000_000_000;

/// Jumps of a clock: their number, and the start and end time of the first and the last one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Jumps {
    /// Number of jumps.
    pub count: u64,
    ends: Option<[(Timestamp, Timestamp); 2]>,
}

impl Jumps {
    pub(super) fn add(&mut self, from: Timestamp, to: Timestamp) {
        self.count += 1;
        let first = self.ends.map_or((from, to), |[first, _]| first);
        self.ends = Some([first, (from, to)]);
    }

    /// Returns a sentence about the jumps, if there are any. `what` is the verb.
    fn sentence(&self, what: &str, times: &mut TimeText) -> Option<String> {
        let [first, last] = self.ends?;
        let mut span = |(from, to)| format!("from {} to {}", times.text(from), times.text(to));
        let count = counted(self.count, "time", "times");
        Some(match self.count {
            1 => format!("the time on /clock {what} {count}, {}", span(first)),
            _ => {
                format!("the time on /clock {what} {count}, at first {}, at last {}", span(first), span(last))
            }
        })
    }
}

/// Statistics of `/clock`.
#[derive(Clone, Debug, Default)]
pub struct ClockAccount {
    /// Messages that were read.
    pub messages: u64,
    /// Messages that cannot be read.
    pub unread: u64,
    /// Time since the last message at the end, in nanoseconds of the machine's clock.
    pub silence: i64,
    /// Restarts of the simulation.
    pub restarts: Jumps,
    /// Leaps of the time forward.
    pub leaps: Jumps,
    /// Whether the jumps indicate two publishers.
    pub is_contested: bool,
    /// Whether a property measures time.
    pub is_needed: bool,
    /// Times of the last restarts and leaps, by the clock of the machine.
    latest: [Option<i64>; MANY],
}

impl ClockAccount {
    pub(super) fn new(is_needed: bool) -> ClockAccount {
        ClockAccount { is_needed, ..ClockAccount::default() }
    }

    /// Counts a restart or a leap at this reading of the machine's clock. Returns whether the jumps now, and for the
    /// first time, indicate two publishers.
    pub(super) fn jumped(&mut self, now: i64) -> bool {
        self.latest.rotate_left(1);
        self.latest[MANY - 1] = Some(now);
        let is_shortly = self.latest[0].is_some_and(|first| now.saturating_sub(first) <= SHORTLY);
        is_shortly && !std::mem::replace(&mut self.is_contested, true)
    }

    /// Whether no message arrived, or none for [`SILENCE`] before the end.
    pub fn is_silent(&self) -> bool {
        self.messages == 0 || self.silence >= SILENCE
    }

    /// Whether verdicts that time alone decides are missing, since time stood.
    pub fn stood(&self) -> bool {
        self.is_needed && self.is_silent()
    }

    /// Returns the statistics as JSON, with times in seconds.
    pub fn json(&self) -> serde_json::Value {
        json!({
            "messages": self.messages,
            "unread": self.unread,
            "silent": self.silence as f64 / 1e9,
            "restarts": self.restarts.count,
            "leaps": self.leaps.count,
            "contested": self.is_contested,
        })
    }

    /// Returns a sentence for each problem. A few leaps are listed among the pauses of the session instead.
    pub fn sentences(&self, times: &mut TimeText) -> Vec<String> {
        let mut said = Vec::new();
        let silence = self.silence as f64 / 1e9;
        if self.messages == 0 {
            said.push(
                "no message came on /clock: time stood, and nothing was decided by time alone".to_owned(),
            );
        } else if self.is_silent() {
            said.push(format!(
                "no message came on /clock in the last {silence:.1} s: time stood, and nothing was decided by time alone"
            ));
        }
        if self.unread > 0 {
            said.push(format!(
                "{} on /clock could not be read: no rosgraph_msgs/msg/Clock",
                counted(self.unread, "message", "messages")
            ));
        }
        said.extend(self.restarts.sentence("went back, and checking restarted,", times));
        if self.has_many_leaps() {
            said.extend(self.leaps.sentence("leapt", times));
        }
        if self.is_contested {
            let jumps = grouped(self.restarts.count + self.leaps.count);
            said.push(format!(
                "the time on /clock jumped {jumps} times: are there two publishers of /clock?"
            ));
        }
        said
    }

    /// Whether there are too many leaps for a sentence each.
    pub fn has_many_leaps(&self) -> bool {
        self.leaps.count > 3
    }
}
