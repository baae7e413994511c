//! What came on `/clock` in a run whose time is that of a simulation.

use rondel_event::Timestamp;
use rondel_runtime::text::{counted, grouped};
use serde_json::json;

use crate::time_text::TimeText;

/// How long no message may come on `/clock` before that is reported, in nanoseconds of the machine's clock.
pub(super) const SILENCE: i64 = 10_000_000_000;
/// So many restarts and leaps within [`SHORTLY`] look like two publishers of `/clock`.
const MANY: usize = 5;
/// In nanoseconds of the machine's clock.
const SHORTLY: i64 = 10_000_000_000;

/// Times at which a clock went elsewhere: how often, and from which time to which at first and at last.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Jumps {
    /// How often.
    pub count: u64,
    ends: Option<[(Timestamp, Timestamp); 2]>,
}

impl Jumps {
    pub(super) fn add(&mut self, from: Timestamp, to: Timestamp) {
        self.count += 1;
        let first = self.ends.map_or((from, to), |[first, _]| first);
        self.ends = Some([first, (from, to)]);
    }

    /// A sentence with what the clock did, if it did.
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

/// What came on `/clock`.
#[derive(Clone, Debug, Default)]
pub struct ClockAccount {
    /// Messages that were read.
    pub messages: u64,
    /// Messages that cannot be read.
    pub unread: u64,
    /// For how long no message had come at the end, in nanoseconds of the machine's clock.
    pub silence: i64,
    /// How often the simulation was restarted.
    pub restarts: Jumps,
    /// How often the time went forward at once.
    pub leaps: Jumps,
    /// Whether there seem to be two publishers.
    pub is_contested: bool,
    /// Whether a property measures time.
    pub is_needed: bool,
    /// When the last restarts and leaps were, by the clock of the machine.
    latest: [Option<i64>; MANY],
}

impl ClockAccount {
    pub(super) fn new(is_needed: bool) -> ClockAccount {
        ClockAccount { is_needed, ..ClockAccount::default() }
    }

    /// Notes a restart or a leap at this reading of the machine's clock. Returns whether it now seems, and did not
    /// before, that there are two publishers.
    pub(super) fn jumped(&mut self, now: i64) -> bool {
        self.latest.rotate_left(1);
        self.latest[MANY - 1] = Some(now);
        let is_shortly = self.latest[0].is_some_and(|first| now.saturating_sub(first) <= SHORTLY);
        is_shortly && !std::mem::replace(&mut self.is_contested, true)
    }

    /// Whether no message came, or none at the end.
    pub fn is_silent(&self) -> bool {
        self.messages == 0 || self.silence >= SILENCE
    }

    /// Whether verdicts that time alone decides are missing, as time stood.
    pub fn stood(&self) -> bool {
        self.is_needed && self.is_silent()
    }

    /// As JSON, with times in seconds.
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

    /// A sentence for each thing worth knowing. Few leaps are among the pauses of the session.
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
        said.extend(self.restarts.sentence("went back, and checking began anew,", times));
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
