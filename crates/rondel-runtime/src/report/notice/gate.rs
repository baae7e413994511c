//! Notices about gates, which pass messages on while properties hold.

use rondel_event::{Timestamp, TopicId, Verdict};
use serde_json::json;

use super::{Notice, seconds, span};
use crate::text::duration;

/// A change of the state of a gate.
#[derive(Clone, Copy, Debug)]
pub enum GateChange<'a> {
    /// It does not pass messages on any more.
    Closed {
        /// The property that closed it.
        property: &'a str,
        /// Its verdict.
        verdict: Verdict,
        /// The treatment of messages meanwhile, in words.
        instead: &'a str,
    },
    /// It has never passed messages on.
    Waiting {
        /// The property that has been inconclusive since the start.
        property: &'a str,
    },
    /// It passes messages on again.
    Open {
        /// Time for which it was closed, in nanoseconds.
        after: u64,
    },
    /// The member of a group that has it has become active.
    TakenOver {
        /// Its state, in one word.
        state: &'a str,
        /// The property that closed it, and its verdict, while it is closed.
        cause: Option<(&'a str, Verdict)>,
        /// The epoch of the group.
        epoch: u64,
    },
}

/// The time for which a gate was closed: in milliseconds up to a second, as times of gates are compared with each other.
fn closed_for(nanos: u64) -> String {
    match nanos {
        100_000..1_000_000_000 => format!("{:.1} ms", nanos as f64 / 1e6),
        _ => duration(nanos),
    }
}

impl Notice {
    /// A gate for the messages of a topic to an address has closed or opened at this time.
    pub fn gate(topic: TopicId, name: &str, to: &str, time: Timestamp, change: GateChange<'_>) -> Notice {
        let mut members = vec![("gate", json!(to)), ("time", seconds(time))];
        let sentence = match change {
            GateChange::Closed { property, verdict, instead } => {
                members.push(("state", json!("closed")));
                members.push(("property", json!(property)));
                members.push(("verdict", json!(verdict.as_str())));
                format!("the gate to {to} is closed, as '{property}' is {}; {instead}", verdict.as_str())
            }
            GateChange::Waiting { property } => {
                members.push(("state", json!("waiting")));
                members.push(("property", json!(property)));
                format!("the gate to {to} has not opened yet, as '{property}' is inconclusive")
            }
            GateChange::Open { after } => {
                members.push(("state", json!("open")));
                members.push(("after", span(after)));
                format!("the gate to {to} is open again after {}", closed_for(after))
            }
            GateChange::TakenOver { state, cause, epoch } => {
                members.extend([("state", json!(state)), ("epoch", json!(epoch))]);
                let mut sentence = match state {
                    "waiting" => format!("the gate to {to} has not opened yet"),
                    _ => format!("the gate to {to} is {state}"),
                };
                sentence += &format!(" at the take-over in epoch {epoch}");
                if let Some((property, verdict)) = cause {
                    members.push(("property", json!(property)));
                    members.push(("verdict", json!(verdict.as_str())));
                    sentence += &format!(", as '{property}' was {}", verdict.as_str());
                }
                sentence
            }
        };
        let topic_name = Some(name.to_owned());
        Notice { topic_name, ..Notice::new("gate", Some(topic), members, sentence) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn changes_are_reported_with_their_cause() {
        let at = Timestamp::from_nanos(2_000_000_000);
        let closed = GateChange::Closed {
            property: "too_close",
            verdict: Verdict::Violated,
            instead: "messages are dropped",
        };
        let notice = Notice::gate(TopicId(0), "command", "zenoh:cmd", at, closed);
        assert_eq!(
            notice.text(&mut |_| String::new()),
            "the gate to zenoh:cmd is closed, as 'too_close' is violated; messages are dropped"
        );
        assert_eq!(notice.json()["verdict"], "violated");
        let notice =
            Notice::gate(TopicId(0), "command", "zenoh:cmd", at, GateChange::Open { after: 1_500_000_000 });
        assert_eq!((notice.json()["after"].as_f64(), notice.is_recurring()), (Some(1.5), true));
    }

    #[test]
    fn closed_times_are_in_milliseconds_up_to_a_second() {
        let texts = [99_999, 9_916_100, 19_900_000, 999_000_000, 3_200_000_000].map(closed_for);
        assert_eq!(texts, ["100.0 us", "9.9 ms", "19.9 ms", "999.0 ms", "3.2 s"]);
    }

    #[test]
    fn take_overs_are_reported_with_the_state() {
        for (state, cause, expected) in [
            ("open", None, "the gate to zenoh:cmd is open at the take-over in epoch 2"),
            ("waiting", None, "the gate to zenoh:cmd has not opened yet at the take-over in epoch 2"),
            (
                "closed",
                Some(("too_close", Verdict::Violated)),
                "the gate to zenoh:cmd is closed at the take-over in epoch 2, as 'too_close' was violated",
            ),
        ] {
            let change = GateChange::TakenOver { state, cause, epoch: 2 };
            let notice = Notice::gate(TopicId(0), "command", "zenoh:cmd", Timestamp::ZERO, change);
            assert_eq!(notice.text(&mut |_| String::new()), expected);
            let (json, property) = (notice.json(), cause.map(|(property, _)| property));
            assert_eq!((&json["state"], json["epoch"].as_u64()), (&state.into(), Some(2)));
            assert_eq!(json["property"].as_str(), property);
        }
    }
}
