//! Notices about the times of messages, clocks and pauses.

use rondel_event::{Timestamp, TopicId};
use serde_json::json;

use super::{At, Notice, seconds, span};
use crate::statistics::{Cause, Pause};
use crate::text::{counted, duration as shown};

/// Option that leaves out the messages before a jump in time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum SkipBy {
    /// By the time from which on a recording is read.
    From,
    /// The same, where message times differ from the recording times.
    FromRecorded,
    /// By editing a recording of lines.
    Lines,
    /// By counting messages at their arrival.
    Arrival,
    /// Not at all: only some topics count at their arrival.
    OneClock,
}

impl Notice {
    /// A time that the monitor itself did not see pass.
    pub(crate) fn paused(pause: &Pause) -> Notice {
        let Pause { from, until, cause, may_miss } = *pause;
        let lasted = until.as_nanos().saturating_sub(from.as_nanos()).max(0).unsigned_abs();
        let sentence = match cause {
            Cause::Stopped => {
                let missed = match may_miss {
                    true => "; a broker whose queue was full meanwhile has dropped messages without notice",
                    false => "",
                };
                format!("the monitor did not run for {} from {} on{missed}", shown(lasted), At(from))
            }
            Cause::Restart => {
                format!("the monitor goes on from a snapshot of {}, taken {} ago", At(from), shown(lasted))
            }
            Cause::Clock { by } if by < 0 => format!(
                "the clock of this machine was set back by {}, from {} to {}: where messages count at their arrival, \
                 nothing is known of times until it shows the first again",
                shown(by.unsigned_abs()),
                At(from),
                At(until)
            ),
            Cause::Clock { by } => {
                let by = shown(by.unsigned_abs());
                format!(
                    "the clock of this machine was set forward by {by}, from {} to {}",
                    At(from),
                    At(until)
                )
            }
            Cause::Begun => format!(
                "the first message on /clock, of {}, came after other messages: how old these are is not known",
                At(until)
            ),
            Cause::Simulation => {
                format!("the time on /clock went from {} to {} at once", At(from), At(until))
            }
        };
        let mut members =
            vec![("from", seconds(from)), ("until", seconds(until)), ("cause", json!(cause.as_str()))];
        if may_miss {
            members.push(("may_miss", json!(true)));
        }
        if let Cause::Clock { by } = cause {
            members.push(("by", json!(by as f64 / 1e9)));
        }
        Notice::new("paused", None, members, sentence)
    }

    /// No message on `/clock` for so many nanoseconds; `has_begun`: there was one before.
    pub fn no_clock(after: i64, has_begun: bool) -> Notice {
        let lasted = shown(after.max(0).unsigned_abs());
        let sentence = match has_begun {
            true => format!(
                "no message on /clock for {lasted}: time stands still, and nothing is decided by time alone"
            ),
            false => format!(
                "no message on /clock after {lasted}: until the first one, nothing is decided by time alone"
            ),
        };
        Notice::new("no_clock", None, vec![("after", span(after.max(0).unsigned_abs()))], sentence)
    }

    /// The time on `/clock` went back: the simulation was restarted, and checking with it.
    pub fn simulation_restarted(from: Timestamp, time: Timestamp) -> Notice {
        let sentence = format!(
            "the time on /clock went back from {} to {}: checking restarts; pending verdicts are inconclusive",
            At(from),
            At(time)
        );
        let members = vec![("from", seconds(from)), ("time", seconds(time))];
        Notice::new("simulation_restarted", None, members, sentence)
    }

    /// The times of all topics stepped back: from `from`, the latest time before, to `to`. The lap with this number begins,
    /// or goes on where all verdicts are inconclusive from here on.
    pub(crate) fn reset(lap: u32, from: Timestamp, to: Timestamp) -> Notice {
        let sentence = format!(
            "the times of all topics went back from {} to {}: lap {lap} begins; pending verdicts are inconclusive",
            At(from),
            At(to)
        );
        let members = vec![("lap", json!(lap)), ("from", seconds(from)), ("time", seconds(to))];
        Notice::new("reset", None, members, sentence)
    }

    /// The times of messages jumped forward by more than a year: from `from` to `to`, the time of a message on this topic.
    pub(crate) fn jump(topic: TopicId, from: Timestamp, to: Timestamp, skip_by: SkipBy) -> Notice {
        let (before, after) = (At(from), At(to));
        let advice = match skip_by {
            SkipBy::From => format!("`--from {}` leaves the messages before it out", exact_seconds(to)),
            SkipBy::FromRecorded => {
                "`--from` with the time at which it was recorded leaves the messages before it out".to_owned()
            }
            SkipBy::Lines => "delete the lines before it, if no clock was set then".to_owned(),
            SkipBy::Arrival => {
                "`time: arrival` in the deployment counts messages at their arrival until a clock is set"
                    .to_owned()
            }
            SkipBy::OneClock => {
                "the messages before it have times of another clock than that of arrival".to_owned()
            }
        };
        let sentence = format!("times jump from {before} to {after}; {advice}");
        Notice::new("jump", Some(topic), vec![("from", seconds(from)), ("time", seconds(to))], sentence)
    }

    /// The first event whose time is before that of the event before it.
    pub(crate) fn backwards(step: u64, time: Timestamp) -> Notice {
        let sentence = format!("time goes backwards at step {step} (time {time})", time = At(time));
        Notice::new("backwards", None, vec![("step", json!(step)), ("time", seconds(time))], sentence)
    }

    /// A message without the time that it should carry.
    pub(crate) fn unstamped(topic: TopicId, time: Timestamp) -> Notice {
        let sentence = "a message carries no time, or the time zero".to_owned();
        Notice::new("unstamped", Some(topic), vec![("time", seconds(time))], sentence)
    }

    /// Machines that were not followed through a time without messages.
    pub(crate) fn leap(count: u64, time: Timestamp) -> Notice {
        let sentence = format!(
            "{} not followed through all transitions that time alone brings before {time}",
            counted(count, "machine was", "machines were"),
            time = At(time)
        );
        Notice::new("leap", None, vec![("count", json!(count)), ("time", seconds(time))], sentence)
    }
}

/// A time in seconds with all of its digits, as options take it.
fn exact_seconds(time: Timestamp) -> String {
    let nanos = time.as_nanos();
    let sign = if nanos < 0 { "-" } else { "" };
    let (whole, rest) = (nanos.unsigned_abs() / 1_000_000_000, nanos.unsigned_abs() % 1_000_000_000);
    let text = format!("{sign}{whole}.{rest:09}");
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_jump_names_the_time_to_read_from() {
        let (zero, then) = (Timestamp::ZERO, Timestamp::from_nanos(1_649_138_879_500_000_001));
        let text =
            |skip_by| Notice::jump(TopicId(0), zero, then, skip_by).text(&mut |time| format!("<{time}>"));
        assert!(
            text(SkipBy::From).ends_with("; `--from 1649138879.500000001` leaves the messages before it out")
        );
        assert!(text(SkipBy::Arrival).contains("`time: arrival`"));
        let whole = Timestamp::from_nanos(10_000_000_000);
        assert_eq!((exact_seconds(whole), exact_seconds(zero)), ("10".to_owned(), "0".to_owned()));
    }
}
